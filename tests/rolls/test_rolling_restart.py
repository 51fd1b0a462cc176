# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""rolling_restart.yml: what is pending, or one broker on purpose; leaders come back; a proof meanwhile."""

from __future__ import annotations

import pytest

from tests.local.proof import labels, proven
from tests.local.watching import changed, led_by_others
from tests.support.outside import wait_until
from tests.support.readers import commit
from tests.support.watching import Watch, cluster_is_whole, metadata


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
    before = cluster.processes()
    broker = cluster.brokers["kafka-2"]
    with Watch(cluster) as watch:
        run, verdict = proven(cluster, "rolling_restart.yml", "-e", f"broker={broker}")
    assert watch.check() == ["kafka-2"]
    assert changed(before, cluster.processes()) == {"kafka-2"}
    assert led_by_others(cluster) == []
    assert labels(verdict) == ["kafka-2 restarted"]
    assert (
        "Could not match supplied host pattern" not in run.text
    ), "nobody was put off: no reason to warn"


@pytest.mark.soak
def test_a_proof_that_cannot_begin_stops_everything_before_the_change(cluster):
    before = cluster.processes()
    arguments = ["-e", "broker=1", "-e", "prove=true", "-e", "flow_validation_partitions=1"]
    run = cluster.play(
        "rolling_restart.yml", *arguments, "-e", "flow_validation_jars=/nowhere", code=2
    )
    assert "[validation.not_begun]" in run.text and "/nowhere" in run.text, run.text
    assert cluster.processes() == before


@pytest.mark.soak
def test_a_broker_that_is_down_takes_part_in_the_proof_when_it_is_back(cluster):
    """So a run that was killed between a stop and a start goes on with a proof: its topic can spare the others."""
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    # the topic of groups has three replicas, and nobody can make it while a broker is down
    commit({"bootstrap.servers": cluster.bootstrap_servers}, "somebody", {("orders", 0): 0})
    cluster.set_brokers({"queued.max.requests": 610})
    cluster.supervisorctl("stop", "kafka-3")
    wait_until(lambda: set(metadata(cluster).brokers) == {1, 2}, 120, "broker 3 is not registered")
    _run, verdict = proven(cluster, "rolling_restart.yml")
    assert labels(verdict)[0] == "kafka-3 started"
    assert sorted(labels(verdict)[1:]) == ["kafka-1 restarted", "kafka-2 restarted"]
    assert {len(each["replicas"]) for each in verdict["partitions"]} == {3}


def test_a_proof_without_a_broker_in_the_run_is_refused(cluster):
    """Nobody would begin it, and the change would be made without a word about that."""
    before = cluster.processes()
    limit = ("--limit", "zookeeper-1", "-e", "prove=true")
    run = cluster.play("rolling_restart.yml", *limit, code=2)
    text = " ".join(run.text.split())
    assert "[validation.not_begun] zookeeper-1: prove=true: with this --limit" in text, text
    assert cluster.processes() == before


@pytest.mark.soak
def test_a_proof_that_nobody_could_write_to_stops_everything_before_the_change(cluster):
    """With one broker of three, no topic takes writes: the proof says so at once, and nothing is started."""
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    for name in ("kafka-2", "kafka-3"):
        cluster.supervisorctl("stop", name)
    wait_until(lambda: set(metadata(cluster).brokers) == {1}, 120, "one broker is left")
    before = cluster.processes()
    run = cluster.play("rolling_restart.yml", "-e", "prove=true", code=2)
    assert "[validation.not_begun]" in run.text and "min.insync.replicas is 2" in run.text, run.text
    assert cluster.processes() == before
    cluster.play("rolling_restart.yml")
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole afterwards")
