# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole process group of site.yml is killed at a random moment; the next run completes what it left.

KAFKAOPS_TEST_SEED repeats the moments that an earlier run has printed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import time

import pytest

from tests.support.node_containers import inside
from tests.support.nodes import ADDRESSES, CHECKOUT, changed, play, play_command, three
from tests.support.outside import wait_until
from tests.support.traffic import Traffic

SEED = int(os.environ.get("KAFKAOPS_TEST_SEED") or time.time_ns() % 10**6)
CLEANUP = str(CHECKOUT / "molecule" / "cleanup.yml")
NO_VALIDATION = ("-e", "flow_validation=never")
# About as long as a run takes; one that is over before its moment has come is started once more.
LATEST_SECONDS = 40.0
cluster = three()


def killed_half_way(moments, *arguments):
    """Run site.yml and kill it at a random moment; return its output, None if it was over before."""
    with tempfile.TemporaryFile("w+") as output:
        command, environment = play_command("site.yml", *arguments, inventory="faults")
        process = subprocess.Popen(
            command,
            cwd=CHECKOUT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        moment = moments.uniform(1, LATEST_SECONDS)
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
        output.seek(0)
        said = output.read()
    if "PLAY RECAP" in said:
        return None
    tasks = [line for line in said.splitlines() if line.startswith("TASK [")]
    at = tasks[-1].strip("* ") if tasks else "the start"
    print(f"\nkilled after {moment:.1f} s in {at}", flush=True)
    return said


def identities():
    """Node -> (myid, broker id, cluster id) as they stand on its disks."""
    found = {}
    for name in ADDRESSES:
        meta = dict(
            line.split("=", 1)
            for line in inside(name, "cat /var/lib/kafka/data/meta.properties").splitlines()
            if "=" in line
        )
        myid = inside(name, "cat /var/lib/zookeeper/myid").strip()
        found[name] = (myid, meta["broker.id"], meta["cluster.id"])
    return found


def completed(*arguments):
    """Run site.yml to its end, and once more: whole, nothing changed, ids of the inventory, one cluster."""
    play("site.yml", *arguments, inventory="faults")
    wait_until(cluster.is_whole, 180, "the cluster is whole")
    found = identities()
    assert [item[:2] for item in found.values()] == [("1", "1"), ("2", "2"), ("3", "3")]
    assert len({item[2] for item in found.values()}) == 1, found
    assert {"orders", "events", "single", "customers"} <= set(cluster.metadata().topics)
    again = play("site.yml", *arguments, inventory="faults")
    assert set(changed(again).values()) == {0}, again
    # nothing half done is left
    for name in ADDRESSES:
        left = inside(
            name, "find /opt /etc/kafka /etc/zookeeper -name '*.tmp' -o -name '.partial*'"
        )
        assert left == "", left
    return found


def first_run(number):
    """Killed on empty nodes."""
    moments = random.Random(f"{SEED} first {number}")
    while True:
        play(CLEANUP, inventory="faults")
        if killed_half_way(moments, *NO_VALIDATION):
            break
    completed(*NO_VALIDATION)


def change(number):
    """Killed while it rolls a change through a cluster that a client writes to."""
    moments = random.Random(f"{SEED} change {number}")
    before = completed(*NO_VALIDATION)
    with Traffic(cluster, "orders") as traffic:
        wait_until(lambda: traffic.acknowledged, 60, "acknowledgements")
        attempt, said = 0, None
        while said is None:
            attempt += 1
            queued = (
                500 + number % 2 * 10 + attempt
            )  # read at the start only: every broker restarts
            changes = (
                *(*NO_VALIDATION, "-e", f'{{"kafka_config": {{"queued.max.requests": {queued}}}}}'),
                *("-e", f'{{"zookeeper_config": {{"maxClientCnxns": {queued * 10}}}}}'),
            )
            said = killed_half_way(moments, *changes)
        after = completed(*changes)
        enough = len(traffic.acknowledged) + 100
        wait_until(lambda: len(traffic.acknowledged) > enough, 120, "acknowledgements afterwards")
    assert after == before
    assert all(cluster.effective(item)["queued.max.requests"] == str(queued) for item in (1, 2, 3))
    assert not traffic.failed and traffic.lost() == []


KINDS = {"first-run": first_run, "change": change}


# On this machine, a run dies in each of its phases and a roll at a random moment in every run of the tests.
@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_half_way_is_completed_by_the_next(kind):
    print(f"\nseed {SEED}", flush=True)
    KINDS[kind](0)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(1, 11))
@pytest.mark.parametrize("kind", KINDS)
def test_twenty_runs_killed_half_way_are_completed(kind, number):
    print(f"\nseed {SEED}", flush=True)
    KINDS[kind](number)
