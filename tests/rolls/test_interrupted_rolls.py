# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rolls that are killed at moments nobody chose, while records flow: the next run goes on, nothing is lost.

The seed is printed; KAFKAOPS_TEST_SEED repeats it. KAFKAOPS_TEST_KILLS says how many instead of thirty. What
is killed: the process of ansible-playbook, its process group, everything below it, one worker (the connection
to a host), or one module at its work; or the terminal goes, which hangs up its process group.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
import time

import pytest

from tests.local.support import LocalCluster
from tests.local.watching import changed, led_by_others
from tests.support.outside import wait_until
from tests.support.processes import children, command_line, descendants, kill_run
from tests.support.traffic import Traffic
from tests.support.watching import InSync, Watch, cluster_is_whole

TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync
KILLS = ("playbook", "group", "tree", "worker", "module", "terminal")
SECONDS = 40.0  # about as long as a roll of three brokers takes on a quiet machine
PYTHON = re.compile(r"\S*python[\d.]* ")
values = itertools.count(510)


def victims(process, how):
    """Return the pids to kill, of what runs now; none where there is no such process at the moment."""
    if how == "playbook":
        return [process.pid]
    workers = children(process.pid)
    if how == "worker":
        return workers[-1:]
    # Pipelined: the module is an interpreter without arguments that reads its program from its input.
    below = set().union(*(descendants(worker) for worker in workers))
    return [pid for pid in below if PYTHON.fullmatch(command_line(pid))]


def kill(process, how):
    """SIGKILL a run or a part of it, or hang up on it, and wait until ansible-playbook is gone."""
    if how in ("group", "tree"):
        kill_run(process, how)
        return
    if how == "terminal":
        os.killpg(process.pid, signal.SIGHUP)
        process.wait(300)
        return
    found = wait_until(
        lambda: victims(process, how) or process.poll() is not None, 60, f"a {how} to kill"
    )
    for pid in found if isinstance(found, list) else []:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(300)


def kill_one_roll(cluster, moments, seconds=SECONDS):
    """Have every broker rolled by runs of which the first is killed; fail if anybody noticed.

    `seconds`: how long a roll takes. Returns it, or what the second run took if that was longer: on a busy
    machine a kill would otherwise always come before the first stop.
    """
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    cluster.set_brokers({"queued.max.requests": next(values)})
    before = cluster.processes()
    how, moment = moments.choice(KILLS), moments.uniform(1, seconds)
    with (
        Traffic(cluster, TOPIC) as traffic,
        Watch(cluster) as watch,
        InSync(cluster, TOPIC) as seen,
    ):
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        with cluster.playing("rolling_restart.yml") as (process, log):
            began = time.monotonic()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(moment)
            over = process.poll() is not None
            if not over:
                kill(process, how)
            done = changed(before, cluster.processes())
            print(
                f"{how} killed after {time.monotonic() - began:.1f} s"
                f"{' (it was over)' if over else ''}; new by then: {sorted(done)}",
                flush=True,
            )
            text = log.read_text()
        began = time.monotonic()
        run = cluster.play("rolling_restart.yml")
        took = time.monotonic() - began
        wait_until(lambda: cluster_is_whole(cluster), 120, "whole afterwards")
    story = (how, moment, watch.events, watch.reasons, text[-3000:], run.text[-3000:])
    print(f"down: {sorted(watch.reasons)}; slow: {sorted(watch.slow)}", flush=True)
    assert set(watch.check()) == set(cluster.brokers), story
    assert changed(before, cluster.processes()) == set(cluster.brokers), story
    assert seen.looks > 20 and seen.fewest >= 2, story
    assert not traffic.failed and traffic.lost() == [], story
    assert led_by_others(cluster) == [], story
    assert not list((cluster.home / "locks").glob("*.json")), "the lock is given back"
    again = cluster.play("rolling_restart.yml")
    assert again.changed() == 0, again.text
    return max(seconds, took)


def test_a_roll_that_is_killed_at_any_moment_is_completed_by_the_next(cluster, moments):
    kill_one_roll(cluster, moments)


@pytest.mark.soak
def test_thirty_rolls_that_are_killed_at_any_moment(next_offset, moments):
    with LocalCluster(next_offset()) as cluster:
        cluster.deploy()
        seconds = SECONDS
        for _kill in range(int(os.environ.get("KAFKAOPS_TEST_KILLS") or 30)):
            seconds = kill_one_roll(cluster, moments, seconds)
