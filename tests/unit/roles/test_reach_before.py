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
HERE, ELSEWHERE, NOWHERE = "127.0.0.2", "127.0.0.3", "192.0.2.1"


def free_port():
    """A port that nobody listens on."""
    with socket.create_server((HERE, 0)) as held:
        return held.getsockname()[1]


def tried(folder, listening, clients=None, listened=(), **more):
    """Run the phase for two brokers, of which nothing runs but what `listening` has: (code, output).

    `listened`: what runs; `clients`: the hosts of kafka_clients with their variables; `more`: variables of all.
    """
    hosts = {
        name: {
            "kafkaops_preflight": {
                "listening": {"A": listening},
                "listened": {"A": list(listened)},
                "cluster_first": {"A": "one"},
            }
        }
        for name in ("one", "two")
    }
    # by its full name: of connections that are called `local` nothing is tried
    variables = {
        "ansible_connection": "ansible.builtin.local",
        "ansible_python_interpreter": sys.executable,
        "kafka_cluster_name": "A",
        **more,
    }
    groups = {
        **dict.fromkeys(("kafkaops_run", "kafkaops_members", "kafkaops_kafka"), {"hosts": hosts}),
        "kafkaops_first": {"hosts": {"one": {}}},
        "kafka_clients": {"hosts": clients or {}},
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


def port(host, number, address, *callers, bind=HERE, audience=()):
    """A port that listens at one address and is to be reached by another."""
    ours = {"host": host, "what": "listener ADMIN", "bind": bind, "port": number}
    return {**ours, "address": address, "callers": list(callers), "audience": list(audience)}


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


@pytest.mark.parametrize("address, code", [(HERE, 0), (ELSEWHERE, 2)], ids=["open", "closed"])
def test_what_runs_has_to_be_reached_by_a_new_broker(tmp_path, address, code):
    """It says nothing to whom it does not know, as a broker does."""
    with socket.create_server((HERE, 0)) as broker:
        number = broker.getsockname()[1]
        runs = {**port("one", number, address, "nodes"), "newcomers": ["two"]}
        found, said = tried(tmp_path, [port("two", free_port(), HERE, "nodes")], listened=[runs])
    assert found == code, said
    refused = f"[reach.port] two: listener ADMIN of one={address}:{number}: Connection refused"
    assert (refused in said) == bool(code), said


def held_by_stand_ins(number):
    """Addresses on which somebody still listens at the port."""
    for address in (HERE, ELSEWHERE):
        with socket.socket() as probe:
            if probe.connect_ex((address, number)) == 0:
                yield address


def test_where_all_runs_nobody_is_asked(tmp_path):
    code, said = tried(tmp_path, [])
    assert code == 0 and "TASK" not in said, said


def test_an_address_that_only_some_reach_is_tried_from_there_alone(tmp_path):
    """The listener of partners is announced at an address that the application does not reach."""
    number, other = free_port(), free_port()
    listening = [
        port("one", number, HERE, "clients", audience=["clients"]),
        port("one", other, ELSEWHERE, "clients", audience=["partners"]),
    ]
    app = {"kafka_client_audiences": ["clients"]}
    code, said = tried(tmp_path, listening, {"app": app})
    assert code == 0, said
    code, said = tried(tmp_path, listening, {"app": app, "partner": {}})
    refused = f"[reach.port] partner: listener ADMIN of one={ELSEWHERE}:{other}"
    assert code == 2 and refused in said and "] app:" not in said, said


def test_a_mapping_of_ports_that_leads_to_another_broker_is_named(tmp_path):
    number = free_port()
    listening = [
        port("one", number, ELSEWHERE, "clients", audience=["clients"]),
        port("two", number, ELSEWHERE, "clients", bind=ELSEWHERE, audience=["clients"]),
    ]
    code, said = tried(tmp_path, listening, {"app": {}})
    refused = f"[reach.broker] app: listener ADMIN of one={ELSEWHERE}:{number}: port {number} of two answers"
    assert code == 2 and refused in said, said
    assert "listener ADMIN of two=" not in said, said


def test_where_an_audience_cannot_reach_its_address_the_audience_is_named(tmp_path):
    """Nothing listens at the address of partners; nobody else is told of it."""
    number, other = free_port(), free_port()
    listening = [
        port("one", number, HERE, "clients", audience=["clients"]),
        port("one", other, ELSEWHERE, "clients", audience=["partners", "brokers"]),
    ]
    clients = {
        "app": {"kafka_client_audiences": "clients"},
        "partner": {"kafka_client_audiences": ["partners"]},
    }
    code, said = tried(tmp_path, listening, clients)
    refused = f"[reach.port] partner: listener ADMIN of one={ELSEWHERE}:{other}: Connection refused"
    assert code == 2 and refused in said and "] app:" not in said, said
    assert "belongs to the audience partners, name the audiences of this host" in said, said


def test_what_nobody_can_know_before_the_start_is_said(tmp_path):
    """An address that the host gets later: nothing else can listen on it."""
    listening = [port("one", 9, NOWHERE, "nodes", bind=NOWHERE)]
    code, said = tried(tmp_path, listening)
    assert code == 0 and f"one, listener ADMIN ({NOWHERE}:9): unknown until it runs" in said, said


def test_who_starts_one_broker_alone_learns_of_that_one(tmp_path):
    number = free_port()
    listening = [port("one", number, HERE, "nodes"), port("two", number, NOWHERE, "nodes")]
    code, said = tried(tmp_path, listening, kafkaops_broker="one")
    assert code == 0, said
