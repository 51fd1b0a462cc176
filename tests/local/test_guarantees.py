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


def test_check_mode_only_says_what_would_be_done(tmp_path):
    home = tmp_path / "home"
    code, text = play(home, tmp_path / "log", "--check")
    assert code == 0 and "clusters of the inventory are not touched" in text, text
    assert not home.exists()


@pytest.mark.soak
def test_a_killed_run_is_cleared_away_by_the_next_which_measures_all_rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("g")
    home, log = folder / "home", folder / "killed.log"
    home.mkdir()
    (home / "mine").write_text("mine")
    with log.open("w") as output:
        process = subprocess.Popen(
            PLAYBOOK,
            cwd=CHECKOUT,
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        # in the midst of a row: the first one is over
        wait_until(
            lambda: "(item=acks=0, leader_killed)" in log.read_text() or process.poll() is not None,
            600,
            "the first row is measured",
        )
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    left = running(home)
    text = log.read_text()
    assert len(left) >= 4 and (home / "throwaway" / "throwaway.json").is_file(), text
    assert "PLAY RECAP" not in text

    code, text = play(home, folder / "next.log")
    assert code == 0 and "is removed first" in text and "went as expected" in text, text[-5000:]
    assert not [pid for pid, ticks in left.items() if start_ticks(pid) == ticks]
    assert running(home) == {} and sorted(os.listdir(home)) == ["guarantees", "mine"]
    (kept,) = (home / "guarantees").iterdir()
    told = json.loads(kept.read_text())
    assert len(told["rows"]) == 9 and {each["verdict"] for each in told["rows"]} == {"as expected"}
    lost = {each["case"]: seen["lost"] for each, seen in zip(told["rows"], told["seen"])}
    assert lost["acks=1, leader_killed"] > 0 and lost["acks=all, all_power_cut"] > 0
    assert [lost[f"acks=all, {each}"] for each in ("leader_killed", "all_killed")] == [0, 0]
