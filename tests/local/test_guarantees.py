# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/guarantees.yml: its check mode, its table, and what becomes of a run that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.local.support import CHECKOUT, start_ticks
from tests.support.outside import wait_until

PLAYBOOK = [
    str(Path(sys.executable).with_name("ansible-playbook")),
    str(CHECKOUT / "playbooks" / "guarantees.yml"),
]


def environment(home):
    """Variables of the playbook's process."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    own = {"KAFKAOPS_HOME": str(home), "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg")}
    return {**kept, **own, "ANSIBLE_NOCOLOR": "1"}


def running(home):
    """{pid: start} of processes that name the throw-away cluster of this home, or were started for it."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            except OSError:
                continue
            ticks = start_ticks(int(folder.name))
            if ticks is not None and f"{home}/throwaway".encode() in text:
                found[int(folder.name)] = ticks
    return found


def play(home, log, *arguments):
    """Run it to its end; return (exit code, output)."""
    # into a file: what it leaves behind would keep a pipe open
    with log.open("w") as output:
        done = subprocess.run(
            [*PLAYBOOK, *arguments],
            cwd=CHECKOUT,
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=1800,
            check=False,
        )
    return done.returncode, log.read_text()


def judged_like_counted(rows):
    """The PySpark judge has read each topic before it went, and misses as many records as the row counts."""
    for row in rows:
        (told,) = row["seen"]["judged"]
        assert (
            told["verdict"] == "pass" and told["counts"]["acked"] == row["seen"]["acknowledged"]
        ), row
        assert told["counts"]["lost"] == row["seen"]["lost"]


def test_check_mode_only_says_what_would_be_done(tmp_path):
    home = tmp_path / "home"
    code, text = play(home, tmp_path / "log", "--check")
    assert code == 0 and "clusters of the inventory are not touched" in text, text
    assert not home.exists()


def test_a_part_that_there_is_not_is_refused_with_those_there_are(tmp_path):
    home = tmp_path / "home"
    code, text = play(home, tmp_path / "log", "-e", "guarantees=disk,luck")
    assert code == 2 and "[drill.unknown]" in text and "there is no luck" in text, text
    assert "acks, flush, disk, unclean, groups, flaps" in text and not home.exists()


def begin(home, log, *arguments):
    """Start it in a session of its own, and return its process once brokers run."""
    with log.open("w") as output:
        process = subprocess.Popen(
            [*PLAYBOOK, *arguments],
            cwd=CHECKOUT,
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # what pytest was started in the background with would let Ctrl-C pass
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        wait_until(
            lambda: len(running(home)) >= 4 or process.poll() is not None, 600, "its brokers run"
        )
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_a_signal_has_ended_leaves_nothing(tmp_path_factory, number):
    folder = tmp_path_factory.mktemp("g")
    home = folder / "home"
    process = begin(home, folder / "log")
    try:
        assert process.poll() is None, (folder / "log").read_text()
        # another one at the same time is refused, and disturbs nothing
        code, text = play(home, folder / "second.log")
        assert code == 2 and "drill.throwaway_busy" in text, text
        assert process.poll() is None
        left = running(home)
        os.killpg(process.pid, number)
        process.wait(120)
        wait_until(lambda: not (home / "throwaway").exists(), 120, "the guard removes it")
        assert not [pid for pid, ticks in left.items() if start_ticks(pid) == ticks]
        # rows that it has measured stay
        assert running(home) == {} and set(os.listdir(home)) <= {"throwaway.lock", "reports"}
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.soak
def test_rows_that_were_measured_outlive_a_run_that_is_killed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("g")
    home = folder / "home"
    reports = home / "reports" / "throwaway"

    def kept():
        return [json.loads(path.read_text()) for path in reports.glob("guarantees/*.json")]

    process = begin(home, folder / "log", "-e", "guarantees=groups")
    try:
        # the results are written after the rows
        wait_until(
            lambda: list(reports.glob("*/drill.json")) or process.poll() is not None,
            300,
            "a row is kept",
        )
        assert process.poll() is None, (folder / "log").read_text()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(120)
        (told,) = kept()
        assert not told["over"] and len(told["names"]) == 4
        assert told["names"][0] == told["drills"][0]["case"]
        assert {each["verdict"] for each in told["drills"]} == {"as expected"}
        judged_like_counted(told["drills"])
        (results,) = [json.loads(path.read_text()) for path in reports.glob("*/drill.json")]
        assert results["verdict"] == "inconclusive" and not results["over"]
        wait_until(lambda: not (home / "throwaway").exists(), 120, "the guard removes it")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    code, text = play(home, folder / "second.log", "-e", "guarantees=flaps")
    assert code == 0 and "Measure row 1 of 1" in text, text[-5000:]
    index = (reports / "index.html").read_text()
    assert "interrupted" in index and "follower_flaps" in index


@pytest.mark.soak
def test_all_rows_are_as_expected_and_the_page_has_them(tmp_path_factory):
    folder = tmp_path_factory.mktemp("g")
    home = folder / "home"
    home.mkdir()
    (home / "mine").write_text("mine")
    code, text = play(home, folder / "log")
    assert code == 0 and "All 37 cases went as expected." in text, text[-5000:]
    assert running(home) == {} and sorted(os.listdir(home)) == ["mine", "reports", "throwaway.lock"]
    reports = home / "reports" / "throwaway"
    (kept,) = (reports / "guarantees").glob("*.json")
    rows = {each["case"]: each for each in json.loads(kept.read_text())["drills"]}
    assert len(rows) == 37 and {each["verdict"] for each in rows.values()} == {"as expected"}
    judged_like_counted(rows.values())
    (results,) = reports.glob("*/drill.json")
    told = json.loads(results.read_text())
    assert told["verdict"] == "pass" and len(told["cases"]) == len(rows)
    assert {each["drill"] for each in told["cases"]} == {"acks", "flap"}
    lost = {case: each["seen"]["lost"] for case, each in rows.items()}
    assert lost["acks=1, leader_killed"] > 0 and lost["acks=all, all_power_cut"] > 0
    assert lost["acks=all, flush.messages=1, all_power_cut"] == 0
    assert lost["acks=all, min ISR 1, unclean election on, last_in_sync_killed"] > 0
    assert [lost[f"acks=all, {each}"] for each in ("leader_killed", "all_killed")] == [0, 0]
    page, index = kept.with_suffix(".html").read_text(), (reports / "index.html").read_text()
    assert all(case in page and case in index for case in rows)
    assert f"guarantees/{kept.stem}.html" in index
