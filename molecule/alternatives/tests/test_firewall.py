# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of `site.yml` behind firewalls: who is let in, and a listener that moves while the brokers restart.

`ko-node-1` and `ko-node-2` have nftables, `ko-node-3` has firewalld, and two names in the inventory.
"""

from __future__ import annotations

import json

import pytest

from tests.support import firewalls
from tests.support.node_containers import inside
from tests.support.nodes import ADDRESSES, Cluster, changed, play

FIREWALLD = "ko-node-3"
# inventory name: node
MEMBERS = {
    "ko-node-1": "ko-node-1",
    "ko-node-2": "ko-node-2",
    "ko-node-3": FIREWALLD,
    "ko-node-3-second": FIREWALLD,
}
ZOOKEEPER, ELECTION, INSIDE, OUTSIDE = 12181, 13888, 19092, 19093
MOVED = 19095
# the port of the second broker of a host
SHIFT = 100


def rules():
    """{inventory name: our rules}, each as it is printed."""
    return {
        name: firewalls.ruleset(node, firewalls.name_of("alternatives", name), node == FIREWALLD)
        for name, node in MEMBERS.items()
    }


def outside(port):
    """{broker: host:port} of the listener for clients."""
    return {
        102: f"172.29.78.22:{port}",
        103: f"172.29.78.23:{port}",
        203: f"172.29.78.23:{port + SHIFT}",
    }


@pytest.mark.parametrize(
    "source, address, port, seen",
    [
        # who has no broker is no client of them, and speaks with the ensemble
        ("ko-node-1", "172.29.78.23", OUTSIDE, "refused"),
        ("ko-node-1", "172.29.78.23", OUTSIDE + SHIFT, "refused"),
        ("ko-node-1", "172.29.78.22", OUTSIDE, "refused"),
        ("ko-node-1", "172.29.78.13", INSIDE, "refused"),
        ("ko-node-1", "172.29.78.13", ELECTION, "open"),
        ("ko-node-1", "172.29.78.12", ZOOKEEPER, "open"),
        # brokers reach each other, also both of one host
        ("ko-node-2", "172.29.78.13", INSIDE, "open"),
        ("ko-node-2", "172.29.78.13", INSIDE + SHIFT, "open"),
        ("ko-node-3", "172.29.78.12", INSIDE, "open"),
        ("ko-node-3", "172.29.78.12", OUTSIDE, "refused"),
        ("ko-node-3", "172.29.78.11", ZOOKEEPER, "open"),
    ],
)
def test_who_is_let_in_where(source, address, port, seen):
    assert firewalls.tried(source, address, port) == seen


def test_each_name_of_a_host_has_rules_of_its_own_and_those_of_others_stay():
    found = rules()
    assert all(found.values()), found
    assert str(OUTSIDE + SHIFT) in found["ko-node-3-second"]
    assert str(OUTSIDE + SHIFT) not in found["ko-node-3"]
    assert "9998" in inside("ko-node-2", "nft list table inet of_somebody")
    assert "9999/tcp" in inside(FIREWALLD, "firewall-cmd --list-ports")


def test_a_listener_moves_and_clients_and_gate_reach_both_ports_meanwhile():
    """The new port is open before a broker restarts, the old one until the last has."""
    before = Cluster(outside(OUTSIDE))
    assert before.round_trip("orders", 60) == 60
    listeners = [
        {
            "name": name,
            "port": f"{{{{ {port} + port_shift | int }}}}",
            "bind": f"{{{{ {address} }}}}",
            "advertised": f"{{{{ {address} }}}}",
            "protocol": "PLAINTEXT",
            "audience": [audience],
        }
        for name, port, address, audience in (
            ("INSIDE", INSIDE, "ansible_host", "brokers"),
            ("OUTSIDE", MOVED, "outside_address", "clients"),
        )
    ]
    moved = ("-e", json.dumps({"kafka_listeners": listeners, "flow_validation": "never"}))
    # tried on one broker first: the others go on as they are, and their clients reach them
    play("rolling_restart.yml", "-e", "broker=102", *moved, inventory="alternatives")
    found = rules()
    assert str(OUTSIDE) not in found["ko-node-2"], found
    assert str(OUTSIDE) in found["ko-node-3"] and str(MOVED) in found["ko-node-3"], found
    assert str(OUTSIDE + SHIFT) in found["ko-node-3-second"], found

    said = play("site.yml", *moved, inventory="alternatives")
    assert all(changed(said)[name] for name in ("ko-node-3", "ko-node-3-second")), said[-3000:]

    after = Cluster(outside(MOVED))
    assert {
        n: f"{each.host}:{each.port}" for n, each in after.metadata().brokers.items()
    } == outside(MOVED)
    assert after.is_whole() and after.round_trip("orders", 60) == 60
    found = rules()
    for name, port in (
        ("ko-node-2", MOVED),
        ("ko-node-3", MOVED),
        ("ko-node-3-second", MOVED + SHIFT),
    ):
        assert str(port) in found[name] and str(port - MOVED + OUTSIDE) not in found[name], found[
            name
        ]
    assert firewalls.tried("ko-node-1", "172.29.78.22", MOVED) == "refused"


def test_a_node_has_its_rules_when_it_boots():
    """Before a broker runs there: its unit comes after ours, firewalld keeps what is ours."""
    before = rules()
    for name in ("ko-node-2", FIREWALLD):
        unit = "firewalld" if name == FIREWALLD else f"{firewalls.name_of('alternatives', name)}"
        assert inside(name, f"systemctl is-enabled {unit}").strip() == "enabled"
    inside(
        "ko-node-2",
        f"nft flush ruleset && systemctl restart {firewalls.name_of('alternatives', 'ko-node-2')}",
    )
    inside(FIREWALLD, "systemctl restart firewalld")
    assert {name: sorted(text.split()) for name, text in rules().items()} == {
        name: sorted(text.split()) for name, text in before.items()
    }
    assert set(ADDRESSES) == set(MEMBERS.values())
