# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From Kafka 3.8 with ZooKeeper to 4.3 without it, by the commands of docs/migration.md, under one proof.

A validation of fixed length runs beside all of them, as a person would have it in a second terminal.
"""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.local.support import OFFSET, LocalCluster
from tests.rolls.migrating import CONTROLLERS, KRAFT, phases, said, wants_kraft
from tests.support import verdict_schema
from tests.support.load import Load
from tests.support.outside import wait_until

pytestmark = pytest.mark.soak

TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync
OLD, BETWEEN, NEW = "3.8.1", "3.9.2", "4.3.1"
# Twice what all commands need on two quiet cores, so that the proof ends after the last of them.
MINUTES = 24
FINALISED = ("-e", "kafka_finalize=true")


@pytest.fixture(scope="module")
def travelling():
    """Three brokers of 3.8 and three servers of ZooKeeper, deployed as people have them."""
    with LocalCluster(OFFSET + 1900) as running:
        running.configure("kafka", kafka_version=OLD)
        running.deploy()
        yield running


def stages(cluster):
    """Yield the name of each stage after the inventory was brought to it, and the commands that take it."""
    cluster.configure("kafka", kafka_version=BETWEEN)
    yield "upgrade", [("rolling_upgrade.yml",)]
    yield "finalising", [("rolling_upgrade.yml", *FINALISED)]
    cluster.configure("kafka")
    wants_kraft(cluster)
    cluster.controllers = {}
    yield "migration to KRaft", [("migrate_to_kraft.yml",)]
    cluster.controllers = dict(CONTROLLERS)
    yield "end of the migration", [("migrate_to_kraft.yml", "-e", "migrate=finish")]
    away = ("-e", "migrate=remove_zookeeper", "-e", f"confirm={cluster.name}")
    yield "servers of ZooKeeper alone", [("migrate_to_kraft.yml", *away)]
    cluster.zookeepers = []
    wants_kraft(cluster, servers=False)
    cluster.configure("all", **KRAFT, zookeeper_group="none_of_them", kafka_version=NEW)
    yield "upgrade in KRaft mode, controllers apart", [("rolling_upgrade.yml",)]
    yield "finalising in KRaft mode", [("rolling_upgrade.yml", *FINALISED)]


def test_one_proof_from_zookeeper_to_kafka_4(travelling):
    """No step stops the clients, and the judge has every record that was acknowledged on the way."""
    reports = travelling.home / "reports" / travelling.name
    timed = ("-e", f"flow_validation_duration={MINUTES}m", "-e", "flow_validation_rate=500")
    with travelling.playing("validate.yml", *timed) as (proof, log):
        try:
            # Not before: the first stage is to be seen whole.
            wait_until(
                lambda: "written" in log.read_text() or proof.poll() is not None,
                180,
                "the proof writes records",
            )
            assert proof.poll() is None, log.read_text()
            for stage, commands in stages(travelling):
                with Load(travelling, TOPIC, stage):
                    for command in commands:
                        travelling.play(*command)
            ended = time.time() * 1000
            assert phases(travelling) == dict.fromkeys(
                [*travelling.brokers, *travelling.controllers], "kraft"
            )
            assert proof.wait((MINUTES + 10) * 60) == 0, log.read_text()[-5000:]
        finally:
            if proof.poll() is None:
                os.killpg(proof.pid, signal.SIGTERM)
                proof.wait(60)
    (report,) = reports.glob("2*")
    verdict = verdict_schema.read(report / "verdict.json")
    assert verdict["verdict"] == "pass", said(travelling.play("inspect.yml", code=None))
    acknowledged = verdict["timing"]["acknowledged"]
    last = acknowledged["start_ms"] + acknowledged["bucket_ms"] * len(acknowledged["records"])
    assert last > ended, "the proof outlasted the last stage"
    assert travelling.deploy().changed() == 0
    assert "All 6 instances run" in said(travelling.play("status.yml"))
