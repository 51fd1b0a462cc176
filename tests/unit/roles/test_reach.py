# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a host of clients is no more than what was seen from there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
TASKS = ROOT / "roles" / "kafka" / "tasks" / "reach.yml"
# what the module found for each cluster -> what the run says
CASES = [
    ([{"tried": 2, "unknown": []}], "Clients on localhost reach every broker"),
    (
        [{"tried": 2, "unknown": [2, 1]}, {"tried": 1, "unknown": [2]}],
        "Clients on localhost reach every broker; whether it is the right one could not be asked of broker 1, "
        "broker 2, for want of DescribeConfigs on the cluster",
    ),
    ([{"tried": 0, "unknown": []}], "No listener is for clients on localhost: nothing was tried"),
    # of a cluster that this run has not
    ([], "No listener is for clients on localhost: nothing was tried"),
]


def test_nothing_is_said_that_was_not_seen(tmp_path):
    said = yaml.safe_load(TASKS.read_text(encoding="utf-8"))[-1]
    tasks = []
    for results, words in CASES:
        seen = {"results": [{"problems": [], **each} for each in results]}
        wanted = {"that": f"__told.msg == {words!r}", "fail_msg": "told: {{ __told.msg }}"}
        tasks += [
            {**said, "vars": {**said["vars"], "__kafka_reached": seen}, "register": "__told"},
            {"ansible.builtin.assert": wanted},
        ]
    play = tmp_path / "play.yml"
    play.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", str(play)],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ok={len(tasks)} " in done.stdout
