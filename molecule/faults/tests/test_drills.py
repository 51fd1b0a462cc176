# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/drill.yml on hosts with systemd: as expected, nothing left, and undone where its run is killed."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.support.node_containers import inside
from tests.support.nodes import ADDRESSES, CHECKOUT, host, main_process, play, play_command, three
from tests.support.outside import wait_until

NOTE = "/run/kafka/drill.json"
cluster = three()
allowed = ("-e", "confirm=nodes")


def whole():
    wait_until(cluster.is_whole, 180, "the cluster is whole")


def left():
    """Topics and notes of drills that are still there."""
    found = [name for name in cluster.metadata().topics if name.startswith("kafkaops-")]
    for name in ADDRESSES:
        found += inside(name, "ls /run/kafka/drill.json /run/zookeeper/drill.json || true").split()
    return found


# One of them in each run: on this machine, all drills run in tests/local/test_drill.py.
@pytest.mark.parametrize(
    "names",
    ["leader_killed", pytest.param("all", marks=pytest.mark.soak)],
)
def test_drills_of_systemd_hosts_are_as_expected(names):
    whole()
    said = play("drill.yml", "-e", f"drill={names}", *allowed, inventory="faults")
    ended = "All 15 drills went" if names == "all" else "The drill went"
    assert f"{ended} as expected." in said, said[-5000:]
    assert "NOT as expected" not in said
    whole()
    assert left() == []


@pytest.mark.soak
def test_a_drill_that_is_killed_is_undone_by_its_host():
    whole()
    # The run is on a machine that the host cannot see: it has this many seconds.
    more = ("-e", "drill=leader_stopped", "-e", "kafka_drill_away_seconds=30")
    command, environment = play_command("drill.yml", *more, *allowed, inventory="faults")
    with subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:

        def stopped():
            return [name for name in ADDRESSES if not main_process(host(name), "kafka")]

        try:
            wait_until(lambda: stopped() or process.poll() is not None, 600, "a broker is stopped")
            assert process.poll() is None, "the drill was over before"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    (name,) = stopped()
    assert inside(name, f"cat {NOTE}")
    wait_until(lambda: main_process(host(name), "kafka"), 120, "its host starts it again")
    whole()
    # topics and groups go with the next drill, and so does the lock that the killed run has left
    play("drill.yml", "-e", "drill=consumer_closed", *allowed, inventory="faults")
    assert left() == []
