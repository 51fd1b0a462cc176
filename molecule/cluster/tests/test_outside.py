# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster as clients see it, and the verdict of the validation job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import verdict_schema
from tests.support.nodes import Cluster, three

cluster = three()


def test_three_brokers_one_controller_all_in_sync():
    found = cluster.metadata()
    assert {
        number: f"{item.host}:{item.port}" for number, item in found.brokers.items()
    } == cluster.brokers
    assert found.controller_id in cluster.brokers
    assert cluster.under_replicated() == []


def test_declared_topics():
    topics = cluster.metadata().topics
    for name, partitions in [("orders", 6), ("events", 3), ("customers", 3)]:
        assert len(topics[name].partitions) == partitions
        assert all(len(item.replicas) == 3 for item in topics[name].partitions.values())


@pytest.mark.parametrize("number", cluster.brokers)
def test_effective_configuration(number):
    found = cluster.effective(number)
    expected = {
        "min.insync.replicas": "2",
        "default.replication.factor": "3",
        "unclean.leader.election.enable": "false",
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "num.network.threads": "3",
        "log.dirs": "/var/lib/kafka/data",
        "broker.id": str(number),
    }
    assert {key: found[key] for key in expected} == expected


def test_every_broker_takes_and_gives_records():
    for number, address in cluster.brokers.items():
        assert Cluster({number: address}).round_trip("orders", 60) == 60


def test_proven_by_the_validation_job():
    home = Path(os.environ.get("KAFKAOPS_HOME") or Path.home() / ".local" / "share" / "kafkaops")
    verdict = verdict_schema.read(home / "reports" / "nodes" / "latest" / "verdict.json")
    assert verdict["verdict"] == "pass" and verdict["counts"]["acked"] > 0
