# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guarantees: the verdict on each row, log files cut to a flush, and whose directory and processes are whose."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import throwaway
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.asked_judge import judge_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_guarantees import (
    measured_row,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_throwaway import (
    seen_or_why,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.guarantees import (
    ACKS,
    ALL_KILLED,
    ALL_POWER,
    DISK_FULL,
    DISK_GONE,
    EACH_MESSAGE,
    EACH_TENTH,
    EVERY,
    FAULTS,
    FLUSHES,
    KEPT,
    LAST_IN_SYNC,
    LEADER,
    LEADER_KILLED,
    LEADER_POWER,
    LOST,
    MAYBE,
    NONE,
    Case,
    end_offset,
    expectation,
    flushed_bytes,
    ranges,
    recovery_points,
    row_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    GroupSeen,
    Seen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.throwaway import (
    MARKER,
    PORTS,
    belongs,
    free_offset,
    guard,
    prepare,
    removed,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

HOME = "/home/me/kafkaops/throwaway"


def seen(lost=0, written=100, cut=0, led_by=2, acknowledged=100, alone=0):
    """What was seen of a leader 1 that had acknowledged 100 records."""
    missing = tuple(str(each) for each in range(lost))
    measured = {"leader": 1, "led_by": led_by, "answered": 100, "written": written}
    measured.update(cut=cut, alone=alone, rate=12345, ended_ms=1700)
    group = GroupSeen("mine", acknowledged - lost, missing)
    return Seen(120, acknowledged, pause_ms=900, groups=(group,), measured=measured)


@pytest.mark.parametrize(
    "acks, loss, numbers, wrong",
    [
        (NONE, LEADER_KILLED, {"lost": 7}, ""),
        (NONE, LEADER_KILLED, {"lost": 7, "written": 90}, ""),
        (NONE, LEADER_KILLED, {}, "nothing was tried"),
        (LEADER, LEADER_KILLED, {"lost": 7}, ""),
        (LEADER, LEADER_KILLED, {"lost": 7, "written": 90}, "files had 90 of 100"),
        (LEADER, LEADER_KILLED, {"lost": 7, "led_by": 1}, "nobody else has led"),
        (EVERY, LEADER_KILLED, {}, ""),
        (EVERY, LEADER_KILLED, {"lost": 2}, "2 acknowledged records are lost: 0-1"),
        (LEADER, ALL_KILLED, {}, ""),
        (LEADER, ALL_KILLED, {"lost": 3}, ""),
        (EVERY, ALL_KILLED, {}, ""),
        (EVERY, ALL_KILLED, {"lost": 1}, "1 acknowledged records are lost: 0"),
        (LEADER, LEADER_POWER, {"cut": 40, "lost": 1}, ""),
        (EVERY, LEADER_POWER, {"cut": 40}, ""),
        (EVERY, LEADER_POWER, {"cut": 40, "lost": 1}, "are lost"),
        (EVERY, LEADER_POWER, {}, "no record was cut off"),
        (EVERY, ALL_POWER, {"cut": 40, "lost": 40}, ""),
        (EVERY, ALL_POWER, {"cut": 40}, "nothing was lost although nothing was flushed"),
        (EVERY, ALL_KILLED, {"acknowledged": 0}, "no record was acknowledged"),
    ],
)
def test_a_row_is_judged_by_what_its_acks_promise(acks, loss, numbers, wrong):
    row = row_of(Case(acks, loss), seen(**numbers)).to_dict()
    assert row["verdict"] == ("NOT as expected" if wrong else "as expected"), row
    assert wrong in "; ".join(row["wrong"]) and row["case"] == f"acks={acks}, {loss}"
    assert row["pause_ms"] == 900 and f"{numbers.get('lost', 0)} lost" in row["observed"]
    assert "12,345 a second" in row["observed"]


@pytest.mark.parametrize(
    "word, verdict",
    [("pass", "as expected"), ("fail", "NOT as expected"), ("inconclusive", "open")],
)
def test_the_judge_has_its_say(word, verdict):
    counts = {"acked": 1234, "lost": 9, "again": 0}
    answers = ({"topic": "t", "verdict": word, "summary": "told", "counts": counts},)
    row = row_of(Case(EVERY, ALL_KILLED), replace(seen(), judged=answers))
    assert row.verdict == verdict and row.observed.endswith("judge: 9 of 1,234 lost")


ALONE = {"min_isr": 1, "loss": LAST_IN_SYNC}
UNCLEAN = {**ALONE, "unclean": True}
REFUSED = {**UNCLEAN, "min_isr": 2}


@pytest.mark.parametrize(
    "acks, more, numbers, expected, wrong",
    [
        # who flushes each message has lost nothing of acks=all when all lose power, and nothing was cut
        (EVERY, {"loss": ALL_POWER, "flush": EACH_MESSAGE}, {}, KEPT, ""),
        (EVERY, {"loss": ALL_POWER, "flush": EACH_MESSAGE}, {"lost": 1}, KEPT, "are lost: 0"),
        (LEADER, {"loss": ALL_POWER, "flush": EACH_MESSAGE}, {"lost": 1}, MAYBE, ""),
        (LEADER, {"loss": LEADER_KILLED, "flush": EACH_MESSAGE}, {"lost": 9}, LOST, ""),
        (LEADER, {"loss": LEADER_KILLED, "flush": EACH_MESSAGE}, {}, LOST, "nothing was tried"),
        (NONE, {"loss": ALL_POWER, "flush": EACH_MESSAGE}, {"lost": 3}, MAYBE, ""),
        (NONE, {"loss": ALL_POWER}, {"cut": 9, "lost": 9}, LOST, ""),
        (NONE, {"loss": ALL_POWER}, {"cut": 9}, LOST, "nothing was lost"),
        (NONE, {"loss": ALL_KILLED}, {"lost": 3, "written": 60}, MAYBE, ""),
        (NONE, {"loss": LEADER_POWER}, {"cut": 9}, MAYBE, ""),
        (NONE, {"loss": LEADER_POWER}, {}, MAYBE, "no record was cut off"),
        (NONE, {"loss": DISK_GONE}, {"written": None, "lost": 3}, MAYBE, ""),
        (NONE, {"loss": DISK_FULL}, {"lost": 3, "led_by": 1}, MAYBE, "nobody else has led"),
        # flushing helps where the power is lost, not where the disk is
        (EVERY, {"loss": LEADER_POWER, "flush": EACH_MESSAGE}, {"lost": 1}, KEPT, "are lost: 0"),
        (LEADER, {"loss": LEADER_POWER, "flush": EACH_MESSAGE}, {"lost": 1}, MAYBE, ""),
        (EVERY, {"loss": DISK_GONE, "flush": EACH_MESSAGE}, {"written": None}, KEPT, ""),
        (
            EVERY,
            {"loss": DISK_GONE, "replicas": 1, "flush": EACH_MESSAGE},
            {"written": None, "led_by": 1},
            LOST,
            "nobody else had it",
        ),
        # flush.ms does nothing of itself
        (EVERY, {"loss": ALL_POWER, "flush": EACH_TENTH}, {"lost": 9, "cut": 9}, LOST, ""),
        (EVERY, {"loss": ALL_POWER, "flush": EACH_TENTH}, {"cut": 9}, LOST, "nothing was lost"),
        (EVERY, {"loss": DISK_GONE}, {"written": None}, KEPT, ""),
        (EVERY, {"loss": DISK_GONE}, {"written": None, "lost": 1}, KEPT, "are lost: 0"),
        (EVERY, {"loss": DISK_GONE}, {"written": None, "led_by": 1}, KEPT, "nobody else has led"),
        (LEADER, {"loss": DISK_GONE}, {"written": None, "lost": 1}, MAYBE, ""),
        (
            EVERY,
            {"loss": DISK_GONE, "replicas": 1},
            {"written": None, "lost": 9, "led_by": 1},
            LOST,
            "",
        ),
        (EVERY, {"loss": DISK_GONE, "replicas": 1}, {"written": None}, LOST, "nobody else had it"),
        (EVERY, {"loss": DISK_FULL}, {}, KEPT, ""),
        (LEADER, {"loss": DISK_FULL}, {"written": 99}, MAYBE, "files had 99 of 100"),
        (EVERY, ALONE, {"alone": 9, "led_by": None}, KEPT, ""),
        (EVERY, ALONE, {"alone": 9, "led_by": None, "lost": 1}, KEPT, "are lost: 0"),
        (EVERY, ALONE, {"alone": 9}, KEPT, "broker 2 has led, and was out of sync"),
        (EVERY, ALONE, {"led_by": None}, KEPT, "by one alone in sync, so nothing was tried"),
        (EVERY, UNCLEAN, {"alone": 9, "lost": 9}, LOST, ""),
        (EVERY, UNCLEAN, {"alone": 9}, LOST, "nothing was lost"),
        (EVERY, UNCLEAN, {"alone": 9, "lost": 9, "led_by": None}, LOST, "nobody else has led"),
        (EVERY, REFUSED, {}, KEPT, ""),
        (EVERY, REFUSED, {"lost": 2}, KEPT, "2 acknowledged records are lost: 0-1"),
        (EVERY, REFUSED, {"alone": 3}, KEPT, "3 records were acknowledged by one alone"),
    ],
)
def test_a_row_of_flushes_disks_and_elections_is_judged_by_what_kafka_promises(
    acks, more, numbers, expected, wrong
):
    case = Case(acks, **more)
    assert expectation(case)[0] == expected
    row = row_of(case, seen(**numbers)).to_dict()
    assert row["verdict"] == ("NOT as expected" if wrong else "as expected"), row
    assert wrong in "; ".join(row["wrong"])


def test_each_case_has_a_name_and_a_topic_of_its_own():
    cases = [
        Case(acks, loss, flush, replicas, min_isr, unclean)
        for acks, loss, flush, replicas, min_isr, unclean in itertools.product(
            ACKS, FAULTS, FLUSHES, (1, 3), (1, 2), (False, True)
        )
    ]
    assert len({each.topic for each in cases}) == len(cases)
    assert all(re.fullmatch(r"[a-z0-9-]{1,249}", each.topic) for each in cases)
    assert Case(EVERY, ALL_POWER, EACH_MESSAGE).name == "acks=all, flush.messages=1, all_power_cut"
    assert Case(EVERY, replicas=1, loss=DISK_GONE).config["min.insync.replicas"] == "1"


def test_a_row_that_could_not_be_measured_is_open_and_says_why():
    row = row_of(Case(EVERY, ALL_KILLED), None, "nobody leads it").to_dict()
    assert row["done"] == "nothing that is known"
    assert (row["verdict"], row["open"]) == ("open", ["nobody leads it"])


@pytest.mark.parametrize(
    "records, told",
    [
        ([], ""),
        (["3"], "3"),
        (["9", "7", "8", "3"], "3, 7-9"),
        (["10", "9"], "9-10"),
        (["1", "3", "5", "7", "8", "10"], "1, 3, 5 and 2 more"),
    ],
)
def test_numbers_are_told_as_ranges(records, told):
    assert ranges(records) == told


def batch(first, records):
    """A batch whose body is of no interest."""
    body = bytes(11) + struct.pack(">i", records - 1) + bytes(40)
    return struct.pack(">qi", first, len(body)) + body


def test_a_log_is_cut_before_the_first_batch_that_was_not_flushed():
    log = batch(100, 5) + batch(105, 10) + batch(115, 1)
    one = len(batch(0, 1))
    assert end_offset(log, 100) == 116 and end_offset(b"", 100) == 100
    # what is torn off, and the zeros of a mapped file, are no batch
    assert end_offset(log[:-1], 100) == 115 and end_offset(log + bytes(100), 100) == 116
    points = {0: 0, 105: one, 106: 2 * one, 115: 2 * one, 116: 3 * one}
    assert {point: flushed_bytes(log, point) for point in points} == points


def test_the_checkpoint_says_how_far_each_partition_is_flushed():
    assert recovery_points("0\n2\nmy-topic 0 17\nother 12 0\n") == {"my-topic-0": 17, "other-12": 0}
    with pytest.raises(ValueError):
        recovery_points("1\n0\n")


@pytest.mark.parametrize(
    "words, variables, expected",
    [
        (["/usr/bin/java", "-cp", f"{HOME}/opt/kafka/libs/*", "kafka.Kafka"], [], True),
        (["python", "-m", "supervisor.supervisord", "-c", f"{HOME}/c.conf"], [], True),
        (["/bin/sh", f"{HOME}/clusters/throwaway/kafka-1/conf/current/launch"], [], True),
        (["python3", "-m", "ansible"], [f"KAFKAOPS_THROWAWAY={HOME}"], True),
        (["python3", "-m", "ansible"], [f"KAFKAOPS_THROWAWAY={HOME}2"], False),
        (["vim", f"{HOME}/throwaway.json"], [], False),
        (["bash", "-c", f"tail -f {HOME}/log"], [], False),
        (["python3", "ansible-playbook", "-e", f"x={HOME}/"], [f"KAFKAOPS_HOME={HOME}"], False),
        (["/usr/bin/java", "-cp", f"{HOME}2/opt/kafka/libs/*"], [], False),
        ([""], [], False),
    ],
)
def test_a_process_is_the_clusters_by_what_it_runs_or_by_who_started_it(words, variables, expected):
    assert belongs(words, variables, HOME) is expected


def test_an_offset_is_taken_if_all_of_its_ports_are_free():
    taken = {10000 + PORTS[0], 10020 + PORTS[-1]}
    assert free_offset((10000, 10020, 10040), lambda port: port not in taken) == 10040
    assert free_offset((10000, 10020), lambda port: port not in taken) is None


def gone():
    """The pid of a process that is over."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def test_what_a_killed_run_has_left_is_ended_and_removed(tmp_path):
    home = str(tmp_path / "throwaway")
    variables = tmp_path / "group_vars"
    variables.mkdir()
    room = prepare(home, os.getpid(), str(variables))
    assert json.loads((tmp_path / "throwaway/inventory/hosts.yml").read_text())["all"]
    # somebody else's run is not disturbed
    with pytest.raises(ProblemError, match="drill.throwaway_busy"):
        removed(home, gone())
    mark = {"pid": gone(), "start_ticks": 1, "directory": home}
    (tmp_path / "throwaway" / MARKER).write_text(json.dumps(mark))
    sleep = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
    # a bystander has the directory's name among its words
    other = subprocess.Popen([*sleep, f"{home}/"], stdout=subprocess.PIPE)
    left = subprocess.Popen(
        sleep, stdout=subprocess.PIPE, env={**os.environ, "KAFKAOPS_THROWAWAY": home}
    )
    try:
        assert other.stdout.readline() and left.stdout.readline()
        again = prepare(home, os.getpid(), str(variables))
        assert again["ended"] == [left.pid] and again["inventory"] == room["inventory"]
        assert wait_until(lambda: start_ticks(left.pid) is None, 30)
        assert start_ticks(other.pid) is not None
        assert removed(home, os.getpid()) == [] and not os.path.exists(home)
        assert variables.is_dir()
    finally:
        for each in (other, left):
            each.kill()
            each.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_guard_removes_the_cluster_of_a_playbook_that_a_signal_has_ended(tmp_path, number):
    home = str(tmp_path / "throwaway")
    (tmp_path / "group_vars").mkdir()
    idle = [sys.executable, "-c", "import time; time.sleep(600)"]
    # What a shell runs in the background ignores it, and so would what is started from there.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    playbook = subprocess.Popen(idle, start_new_session=True)
    signal.signal(signal.SIGINT, before)
    left = subprocess.Popen(idle, env={**os.environ, "KAFKAOPS_THROWAWAY": home})
    try:
        prepare(home, playbook.pid, str(tmp_path / "group_vars"))
        guard(home, playbook.pid)
        assert start_ticks(left.pid) and os.path.isdir(home)
        os.killpg(playbook.pid, number)
        playbook.wait()
        assert wait_until(lambda: not os.path.exists(home), 60)
        assert wait_until(lambda: start_ticks(left.pid) is None, 60)
    finally:
        for each in (playbook, left):
            each.kill()
            each.wait()


def test_a_guard_leaves_the_cluster_of_the_next_playbook_alone_and_ends(tmp_path):
    home = str(tmp_path / "throwaway")
    (tmp_path / "group_vars").mkdir()
    idle = [sys.executable, "-c", "import time; time.sleep(600)"]
    others = guards()
    playbook = subprocess.Popen(idle)
    try:
        prepare(home, playbook.pid, str(tmp_path / "group_vars"))
        guard(home, playbook.pid)
        assert wait_until(lambda: len(guards() - others) == 1, 60)
        (mine,) = guards() - others
        # it has ended well, another one has begun, and the first one's process goes away only now
        assert removed(home, playbook.pid) == []
        prepare(home, os.getpid(), str(tmp_path / "group_vars"))
    finally:
        playbook.kill()
        playbook.wait()
    assert wait_until(lambda: mine not in guards(), 60)
    assert removed(home, os.getpid()) == [] and not os.path.exists(home)


def guards():
    """Processes like this one of another session: guards, as they are forked from it, and those of other tests."""
    mine = [each.read_bytes() for each in [Path("/proc/self/cmdline")]]
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                if [(folder / "cmdline").read_bytes()] == mine and os.getsid(
                    int(folder.name)
                ) != os.getsid(0):
                    found.add(int(folder.name))
    return found


def test_a_cluster_without_ports_or_with_a_process_that_does_not_end_is_refused(
    tmp_path, monkeypatch
):
    home = str(tmp_path / "throwaway")
    with monkeypatch.context() as patched:
        patched.setattr(throwaway, "port_is_free", lambda _port: False)
        with pytest.raises(ProblemError, match=r"\[drill.no_ports\]"):
            prepare(home, os.getpid(), str(tmp_path))
    assert not os.path.exists(home)
    prepare(home, os.getpid(), str(tmp_path))
    # as a process that waits for a disk: the signal is taken, and nothing ends
    monkeypatch.setattr(throwaway, "_running", lambda _home: [os.getpid()])
    monkeypatch.setattr(throwaway.os, "kill", lambda _pid, _signal: None)
    monkeypatch.setattr(throwaway, "END_SECONDS", 0.2)
    with pytest.raises(ProblemError, match=rf"\[drill.throwaway_alive\].*{os.getpid()}"):
        removed(home, os.getpid())
    assert os.path.exists(home)


@pytest.mark.parametrize("name", ["", ".partial-throwaway.json.x1", MARKER])
def test_a_directory_that_was_only_begun_is_removed(tmp_path, name):
    home = tmp_path / "throwaway"
    home.mkdir()
    if name == MARKER:
        (home / name).write_text(
            json.dumps({"pid": gone(), "start_ticks": 1, "directory": str(home)})
        )
    elif name:
        (home / name).write_text("")
    assert removed(str(home), os.getpid()) == [] and not home.exists()


@pytest.mark.parametrize("mark", [None, "{}", '{"directory": "/somewhere/else"}'])
def test_a_directory_that_no_run_has_made_is_refused(tmp_path, mark):
    home = tmp_path / "throwaway"
    home.mkdir()
    (home / "mine").write_text("precious")
    if mark is not None:
        (home / MARKER).write_text(mark)
    with pytest.raises(ProblemError, match="drill.throwaway_foreign"):
        removed(str(home), os.getpid())
    assert (home / "mine").read_text() == "precious"
    link = tmp_path / "link"
    link.symlink_to(home)
    with pytest.raises(ProblemError, match="drill.throwaway_foreign"):
        removed(str(link), os.getpid())


@pytest.mark.parametrize(
    "error, told",
    [
        (KeyError("__consumer_offsets"), "KeyError: '__consumer_offsets'"),
        (IndexError("list index out of range"), "IndexError: list index out of range"),
        (struct.error("unpack requires 4 bytes"), "error: unpack requires 4 bytes"),
        (OSError(28, "No space left"), "OSError: [Errno 28] No space left"),
    ],
)
def test_a_row_that_fails_in_a_way_that_nobody_has_foreseen_says_so(error, told):
    def measure():
        raise error

    assert seen_or_why(measure) == (None, told)
    row = row_of(Case("all", ALL_KILLED), *seen_or_why(measure))
    assert row.verdict == "open" and row.open == (told,)


def test_an_interruption_is_no_row():
    def measure():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        seen_or_why(measure)


def test_a_directory_of_somebody_else_is_a_row_that_says_so(tmp_path):
    row = measured_row(None, str(tmp_path), Case("all", ALL_KILLED), judge_of(""))["row"]
    assert row["verdict"] == "open" and "no drill has made a cluster there" in row["open"][0]
