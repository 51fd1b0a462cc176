# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before a first start: who administers is tried, too, once for a cluster; stand-ins listen for real."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
HERE, ELSEWHERE = "127.0.0.2", "127.0.0.3"


def free_port():
    """A port that nobody listens on."""
    with socket.create_server((HERE, 0)) as held:
        return held.getsockname()[1]


def tried(folder, listening):
    """Run the phase for two brokers, of which nothing runs but what `listening` has: (code, output)."""
    hosts = {
        name: {"kafkaops_preflight": {"listening": {"A": listening}, "cluster_first": {"A": "one"}}}
        for name in ("one", "two")
    }
    # by its full name: of connections that are called `local` nothing is tried
    variables = {
        "ansible_connection": "ansible.builtin.local",
        "ansible_python_interpreter": sys.executable,
        "kafka_cluster_name": "A",
    }
    groups = {
        **dict.fromkeys(("kafkaops_run", "kafkaops_members", "kafkaops_kafka"), {"hosts": hosts}),
        "kafkaops_first": {"hosts": {"one": {}}},
    }
    inventory = folder / "hosts.yml"
    inventory.write_text(yaml.safe_dump({"all": {"children": groups, "vars": variables}}))
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory)),
            str(ROOT / "playbooks" / "phases" / "reach_before.yml"),
        ],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def port(host, number, address, *callers):
    """A port that listens at one address and is to be reached by another."""
    ours = {"host": host, "what": "listener ADMIN", "bind": HERE, "port": number}
    return {**ours, "address": address, "callers": list(callers)}


@pytest.mark.parametrize("address, code", [(HERE, 0), (ELSEWHERE, 2)], ids=["open", "closed"])
def test_what_the_host_that_administers_does_not_reach_is_refused(tmp_path, address, code):
    number = free_port()
    listening = [port("two", number, HERE, "nodes"), port("two", number, address, "admin")]
    found, said = tried(tmp_path, listening)
    assert found == code, said
    tasks = re.findall(r"TASK \[Connect to what is administered\] \**\n(.*)", said)
    assert [line.split(": ")[1].split(" ->")[0] for line in tasks] == ["[one"], said
    refused = (
        f"[reach.port] localhost, which administers,: listener ADMIN of two={address}:{number}"
    )
    assert (refused in said) == bool(code), said
    assert not list(held_by_stand_ins(number)), "nothing is left listening"


def held_by_stand_ins(number):
    """Addresses on which somebody still listens at the port."""
    for address in (HERE, ELSEWHERE):
        with socket.socket() as probe:
            if probe.connect_ex((address, number)) == 0:
                yield address


def test_where_all_runs_nobody_is_asked(tmp_path):
    code, said = tried(tmp_path, [])
    assert code == 0 and "TASK" not in said, said
