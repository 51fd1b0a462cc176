# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""rolling_restart.yml: what is pending, or one broker on purpose; leaders come back; a proof meanwhile."""

from __future__ import annotations

import json

import pytest

from tests.local.watching import changed, led_by_others
from tests.support import verdict_schema
from tests.support.watching import Watch


def test_an_id_that_nobody_has_is_refused(cluster):
    before = cluster.processes()
    run = cluster.play("rolling_restart.yml", "-e", "broker=9", code=2)
    assert (
        "[broker.unknown] broker=9: no broker of this run has this id; there are 1, 2, 3"
        in run.text
    )
    assert cluster.processes() == before


def test_check_mode_says_what_would_be_restarted_and_restarts_nothing(cluster):
    before = cluster.processes()
    run = cluster.play("rolling_restart.yml", "-e", "broker=2", "--check")
    assert "asked for with -e broker=2" in run.text
    assert cluster.processes() == before


def test_one_broker_on_purpose_with_a_proof_meanwhile(cluster):
    """Nothing is pending; exactly one process is new; its partitions are its own again; all is proven."""
    reports = cluster.home / "reports" / cluster.name
    before, earlier = cluster.processes(), set(reports.glob("2*"))
    broker = cluster.brokers["kafka-2"]
    with Watch(cluster) as watch:
        run = cluster.play("rolling_restart.yml", "-e", f"broker={broker}", "-e", "prove=true")
    assert watch.check() == ["kafka-2"]
    assert changed(before, cluster.processes()) == {"kafka-2"}
    assert led_by_others(cluster) == []
    (report,) = set(reports.glob("2*")) - earlier
    verdict = verdict_schema.read(report / "verdict.json")
    assert verdict["verdict"] == "pass" and "PASS" in run.text
    (event,) = verdict["events"]
    assert event["label"] == "kafka-2 restarted" and event["from_ms"] < event["to_ms"]
    assert verdict["timing"]["first_ms"] < event["from_ms"], "records flowed before"
    acknowledged = verdict["timing"]["acknowledged"]
    last = acknowledged["start_ms"] + acknowledged["bucket_ms"] * len(acknowledged["records"])
    assert last > event["to_ms"], "and afterwards"
    assert not list(report.glob(".client*")), "no password stays behind"
    assert json.loads((report / "events.json").read_text()) == [event]


@pytest.mark.soak
def test_a_proof_that_cannot_begin_stops_everything_before_the_change(cluster):
    before = cluster.processes()
    arguments = ["-e", "broker=1", "-e", "prove=true", "-e", "flow_validation_partitions=1"]
    run = cluster.play(
        "rolling_restart.yml", *arguments, "-e", "flow_validation_jars=/nowhere", code=2
    )
    assert "[validation.not_begun]" in run.text and "/nowhere" in run.text, run.text
    assert cluster.processes() == before
