# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that wait say meanwhile what for: a task that says nothing for five minutes is killed at night."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.outside import free_port

CHECKOUT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The output of a play in which each module waits on a host of its own for what never answers.

    Ansible shows a line every ten seconds.
    """
    nobody = f"127.0.0.1:{free_port()}"
    waits = {
        "kafka_broker_gate": {"bootstrap_servers": nobody, "broker": 2, "wait_seconds": 12},
        "kafka_cluster_info": {
            "bootstrap_servers": nobody,
            "wait": {"brokers": [7], "timeout": 12},
        },
        "zookeeper_info": {
            "servers": [
                {"id": number, "address": "127.0.0.1", "port": free_port()} for number in (1, 2, 3)
            ],
            "wait": True,
            "stopping": 2,
            "timeout": 12,
        },
    }
    folder = tmp_path_factory.mktemp("waiting")
    (folder / "progress.json").write_text('{"shrank": false, "line": "7 records answered"}')
    waits["file_says"] = {
        "path": str(folder / "progress.json"),
        "search_regex": '"shrank": true',
        "timeout": 12,
        "awaited": "the ISR has shrunk",
        "about_seconds": 20,
    }
    tasks = [
        {f"kafkaops.cluster.{name}": arguments, "when": f"inventory_hostname == '{name}'"}
        for name, arguments in waits.items()
    ]
    play = {"hosts": "all", "gather_facts": False, "strategy": "free", "tasks": tasks}
    playbook = folder / "playbook.yml"
    playbook.write_text(json.dumps([play]))
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("ansible-playbook")), str(playbook)),
            *("-i", ",".join(waits) + ",", "-c", "local"),
            *("-e", f"ansible_python_interpreter={sys.executable}"),
        ],
        env={**kept, "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "begin, problem",
    [
        ("    broker 2: waiting for ", "[gate.waiting] broker 2:"),
        ("    waiting for ", "[cluster.not_ready]"),
        ("    server 2: waiting for ", "[gate.waiting] server 2:"),
    ],
)
def test_what_is_waited_for_is_said_meanwhile(said, begin, problem):
    lines = [line for line in said.splitlines() if line.startswith(begin)]
    assert len(lines) == 1, said
    assert "refused" in lines[0] or "127.0.0.1" in lines[0], lines
    assert problem in said


def test_what_a_drill_waits_for_is_said_with_the_time_left_and_how_far_it_is(said):
    told = r"    until the ISR has shrunk: 1\ds of about 20s, \d+s left; 7 records answered\n"
    assert len(re.findall(told, said)) == 1, said
    assert 'Timeout when waiting for search string "shrank": true' in said
