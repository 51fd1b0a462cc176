# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drill has stopped comes back when its run is gone, with real processes of both service managers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import fault
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.fault import (
    SETTLED_SECONDS,
    Guarded,
    carry_out,
    keep_guard,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.away import (
    NOTE,
    leave_away,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.instance import Instance
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from tests.support.outside import wait_until
from tests.support.still_time import Time
from tests.unit.plugins.module_utils.instance.test_service_manager import (  # noqa: F401
    bench,
    host,
)


class Manager:
    """A service manager of one program: what it was asked, and what it says."""

    def __init__(self, state_dir, states):
        self.state_dir, self.states, self.started = state_dir, list(states), 0

    def stopping(self, _name):
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if state == "broken":
            raise ServiceError("it does not answer")
        self.now = state
        self.record(state in ("running", "stopping"))
        return state == "stopping"

    def wants_running(self, _name):
        return self.now in ("running", "starting")

    def start(self, _name):
        self.started += 1
        self.states = ["starting", "running"]

    def record(self, runs):
        told = {"pid": os.getpid(), "start_ticks": start_ticks(os.getpid()) if runs else 0}
        (self.state_dir / "started.json").write_text(json.dumps(told))


def guarded(tmp_path, states, gone=lambda: True, replaced=lambda: False, seconds=300):
    manager = Manager(tmp_path, states)
    return (
        Guarded("one", str(tmp_path), str(tmp_path), manager, gone, replaced, seconds),
        manager,
    )


def note(tmp_path, token="mine"):
    (tmp_path / NOTE).write_text(json.dumps({"drill": "x", "token": token}))


@pytest.mark.parametrize(
    "states, starts",
    [
        (["stopped"], 1),
        # a worker that has outlived the run stops it only now
        (["running", "running", "stopping", "stopping", "stopped"], 1),
        (["stopping", "stopped"], 1),
        # its service manager is about to start it
        (["starting", "running"], 0),
        (["running"], 0),
        (["broken", "broken", "stopped"], 1),
    ],
)
def test_a_guard_starts_what_the_run_has_left_stopped(tmp_path, states, starts):
    note(tmp_path)
    what, manager = guarded(tmp_path, states)
    time = Time()
    keep_guard(what, "mine", time.clock, time.sleep)
    assert manager.started == starts and not (tmp_path / NOTE).exists()
    assert manager.now == "running" and time.now >= SETTLED_SECONDS


@pytest.mark.parametrize("token", ["", "another"])
def test_a_guard_leaves_alone_what_the_run_has_put_back(tmp_path, token):
    if token:
        note(tmp_path, token)
    what, manager = guarded(tmp_path, ["stopped"])
    keep_guard(what, "mine", Time().clock, Time().sleep)
    assert manager.started == 0 and (tmp_path / NOTE).exists() is bool(token)


TAKEN = 2_000  # seconds for which another run has the lock: longer than any limit of a guard


@pytest.mark.parametrize("first", [0, 20, 300, 302])
@pytest.mark.parametrize("states, starts", [(["stopped"], 1), (["running"], 0)])
def test_a_guard_leaves_the_decision_to_a_run_that_has_taken_over(tmp_path, first, states, starts):
    """Until that has ended, also where it has given up because of what is down; `first`: when it takes over."""
    note(tmp_path)
    time = Time()
    what, manager = guarded(
        tmp_path,
        states,
        lambda: time.now >= first + TAKEN,
        lambda: first <= time.now < first + TAKEN,
    )
    begun = []

    def start(name):
        begun.append(time.now)
        Manager.start(manager, name)

    manager.start = start
    # whoever cannot be seen has its time, and what is to be started then is started slowly
    manager.states = ["stopping", "stopping", "stopping", *states]
    keep_guard(what, "mine", time.clock, time.sleep)
    assert len(begun) == starts and not (tmp_path / NOTE).exists()
    assert all(at >= first + TAKEN or at < first for at in begun)


@pytest.mark.parametrize(
    "text, run, stays",
    [
        ("", "b", False),
        (json.dumps({"drill": "x", "token": "t", "run": "a"}), "a", True),
        (json.dumps({"drill": "x", "token": "t", "run": "a"}), "b", False),
        (json.dumps({"drill": "x", "token": "t", "run": "a"}), "", False),
        # of an earlier release, and one that cannot be read
        (json.dumps({"drill": "x", "token": "t"}), "b", False),
        ("{", "b", False),
    ],
)
def test_another_run_that_stops_an_instance_forgets_that_a_drill_has(tmp_path, text, run, stays):
    if text:
        (tmp_path / NOTE).write_text(text)
    leave_away(str(tmp_path), run)
    assert (tmp_path / NOTE).exists() is stays


def test_a_run_that_cannot_be_seen_has_its_time(tmp_path):
    note(tmp_path)
    what, manager = guarded(tmp_path, ["stopped"], lambda: False, seconds=77)
    time = Time()
    keep_guard(what, "mine", time.clock, time.sleep)
    assert manager.started == 1 and 77 <= time.now < 300


def test_what_does_not_run_cannot_be_killed(tmp_path):
    with pytest.raises(
        ProblemError, match=r"\[drill.no_process\] drill=kafka-1: kafka-1 does not run"
    ):
        carry_out("killed", "kafka-1", str(tmp_path), "leader_killed")


def test_a_run_that_ends_leaves_a_process_that_starts_it_again(bench):  # noqa: F811
    bench.stage()
    bench.turn()
    run = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        ticks = start_ticks(run.pid)
        layout = bench.layout
        carry_out(
            "noted",
            "one",
            layout.state_dir,
            "leader_stopped",
            Guarded(
                "one",
                layout.state_dir,
                layout.config_dir,
                bench.service,
                lambda: start_ticks(run.pid) != ticks,
                lambda: False,
                300,
            ),
            leads=True,
        )
        Instance(layout, bench.service).stop(30)
        told, now_ms = carry_out("looked", "one", layout.state_dir, ""), time.time() * 1000
        assert 0 <= now_ms - told.pop("now_ms") < 60_000
        noted = {"note": "leader_stopped", "leaders": True}
        assert told == {"changed": False, "running": False, **noted}
        run.kill()
        run.wait()
        wait_until(lambda: bench.pid, 60, "it runs again")
        note_path = os.path.join(layout.state_dir, NOTE)
        wait_until(lambda: not os.path.exists(note_path), 60, "the note is gone")
        # whoever started it again has given no leadership back, and the next drill has to hear of that
        told = carry_out("looked", "one", layout.state_dir, "")
        assert told["leaders"] and not told["note"]
        assert not carry_out("given_back", "one", layout.state_dir, "")["leaders"]
    finally:
        run.kill()
        run.wait()


def test_who_is_killed_and_shall_stay_away_is_not_started_again(bench):  # noqa: F811
    bench.stage()
    bench.turn()
    layout, pid = bench.layout, bench.pid
    guarded_one = Guarded(
        "one",
        layout.state_dir,
        layout.config_dir,
        bench.service,
        lambda: False,
        lambda: False,
        300,
    )
    told = carry_out("killed", "one", layout.state_dir, "x", guarded_one, stays_away=True)
    assert told["changed"] and not told["running"] and start_ticks(pid) is None
    assert not bench.service.wants_running("one")
    carry_out("forgotten", "one", layout.state_dir, "")
    bench.turn(bench.instance.in_effect())
    assert bench.pid not in (None, pid)


class Stopping:
    """A manager of one process. As systemd it sends SIGCONT behind its SIGTERM, or not."""

    def __init__(self, process, wakes_what_it_stops):
        self.process, self.wakes_what_it_stops = process, wakes_what_it_stops

    def stop(self, _name):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        if self.wakes_what_it_stops and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.wait()

    def wants_running(self, _name):
        return False


@pytest.mark.parametrize("wakes", [True, False])
def test_who_is_killed_and_shall_stay_away_does_not_end_in_order(tmp_path, wakes):
    """Else the table would tell a kill that never was."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        told = {"pid": process.pid, "start_ticks": start_ticks(process.pid)}
        (tmp_path / "started.json").write_text(json.dumps(told))
        manager = Stopping(process, wakes)
        what = Guarded(
            *("one", str(tmp_path), str(tmp_path), manager),
            *(lambda: False, lambda: True, 300),
        )
        done = carry_out("killed", "one", str(tmp_path), "zookeeper_quorum", what, stays_away=True)
        assert (done["changed"], done["running"], done["note"]) == (True, False, "zookeeper_quorum")
        assert 0 <= done["now_ms"] - done["at_ms"] < 60_000
        assert process.wait(30) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()
        carry_out("forgotten", "one", str(tmp_path), "")


def test_who_is_killed_stands_still_before_its_manager_is_told(tmp_path, monkeypatch):
    """A signal that stops a process takes a moment on a busy machine: the manager's SIGTERM came first."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    send = os.kill

    def late(pid, number):
        if number == signal.SIGSTOP:
            threading.Timer(0.5, send, (pid, number)).start()
        else:
            send(pid, number)

    try:
        told = {"pid": process.pid, "start_ticks": start_ticks(process.pid)}
        (tmp_path / "started.json").write_text(json.dumps(told))
        what = Guarded(
            *("one", str(tmp_path), str(tmp_path), Stopping(process, False)),
            *(lambda: False, lambda: True, 300),
        )
        monkeypatch.setattr(fault.os, "kill", late)
        carry_out("killed", "one", str(tmp_path), "zookeeper_quorum", what, stays_away=True)
        assert process.wait(30) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()
        carry_out("forgotten", "one", str(tmp_path), "")


def state_of(pid):
    """The letter by which the kernel tells what a process does; T: it stands still."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


@pytest.mark.parametrize("by", ["the guard", "the next drill"])
def test_a_process_that_stands_still_goes_on_when_nobody_kills_it_any_more(bench, by):  # noqa: F811
    """The module died when it had stopped the process, before its service manager was told."""
    bench.stage()
    bench.turn()
    layout, pid = bench.layout, bench.pid
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state_of(pid) == "T", 30, "it stands still")
    note(Path(layout.state_dir))
    if by == "the guard":
        what = Guarded(
            *("one", layout.state_dir, layout.config_dir, bench.service),
            *(lambda: True, lambda: False, 300),
        )
        still = Time()
        keep_guard(what, "mine", still.clock, still.sleep)
    else:
        carry_out("forgotten", "one", layout.state_dir, "")
    wait_until(lambda: state_of(pid) != "T", 30, "it goes on")
    assert bench.pid == pid and not os.path.exists(os.path.join(layout.state_dir, NOTE))
