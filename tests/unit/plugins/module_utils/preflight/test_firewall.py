# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is let in where, from inventories as people write them."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest
import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.callers import (
    callers_of,
    seen_by,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.firewall import (
    VARIABLES,
    addresses_of,
    openings_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    Raw,
    read_member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    Callers,
    Controller,
    World,
)
from tests.unit.plugins.module_utils.preflight import good_inventory as ground

INVENTORY = """
all:
  vars:
    kafka_cluster_name: orders
    host_baseline_firewall: nftables
  children:
    zookeeper:
      hosts:
        zk-1: {ansible_host: 192.0.2.11}
        zk-2: {ansible_host: 192.0.2.12}
    kafka:
      vars:
        kafka_listeners:
          - {name: INTERNAL, port: 9092, audience: [brokers], advertised: "{{ ansible_host }}"}
          - {name: CLIENTS, port: 9093, audience: [clients], advertised: "{{ inventory_hostname }}.example.com"}
      hosts:
        kafka-1: {ansible_host: 192.0.2.21}
        kafka-2: {ansible_host: 192.0.2.22}
    kafka_clients:
      hosts:
        app-1: {ansible_host: 192.0.2.31}
"""
INVENTORY_LISTENERS = yaml.safe_load(INVENTORY)["all"]["children"]["kafka"]["vars"][
    "kafka_listeners"
]
ADMIN = "198.51.100.1"


def read(tmp_path, overlay=None, admin=(ADMIN,)):
    """(openings, problems, members) of the inventory with an overlay."""
    document = ground.merge(yaml.safe_load(INVENTORY), {"all": overlay or {}})
    raws, inventory, groups = ground.gather(document, tmp_path)
    members = [read_member(raw)[0] for raw in raws]
    callers = callers_of(inventory, members, groups)
    assert set(callers.admin) == {each.name for each in members} or overlay
    # what the machine of the tests would be to these hosts differs
    callers = replace(callers, admin=dict.fromkeys(callers.admin, tuple(admin)))
    (cluster,) = World(tuple(members)).clusters
    openings, problems = openings_of(cluster, callers)
    return openings, problems, members, callers


def told(openings, host):
    return {each.port: sorted(each.sources) for each in openings[host]}


def test_the_port_of_controllers_is_open_to_the_other_brokers(tmp_path):
    overlay = {
        "vars": {"kafka_metadata": "kraft", "kafka_controller_port": 9095},
        "children": {"controllers": {"hosts": {"kafka-1": {}}}},
    }
    openings, problems, _members, _callers = read(tmp_path, overlay)
    assert problems == []
    assert told(openings, "kafka-1")[9095] == ["192.0.2.22"]
    assert 9095 not in told(openings, "kafka-2")


def production_example():
    """inventories/production as one document, without what is encrypted."""
    place = pathlib.Path(ground.ROLES).parent / "inventories" / "production"
    document = yaml.safe_load((place / "hosts.yml").read_text(encoding="utf-8"))
    for path in sorted(place.glob("group_vars/*/*.yml")):
        group = document["all"]
        if path.parent.name != "all":
            group = group["children"][path.parent.name]
        if path.name != "vault.yml":
            values = yaml.safe_load(path.read_text(encoding="utf-8"))
            group.setdefault("vars", {}).update(values)
    return document


def test_an_admin_host_that_does_not_exist_has_no_address(tmp_path):
    """Which is told as host.admin, and must not end the run before."""
    document = yaml.safe_load(INVENTORY)
    document["all"]["children"]["kafka"]["vars"]["kafka_admin_host"] = "kafka-9"
    raws, inventory, groups = ground.gather(document, tmp_path)
    callers = callers_of(inventory, [read_member(raw)[0] for raw in raws], groups)
    assert callers.admin["kafka-1"] == () != callers.admin["zk-1"]


def test_zookeeper_of_the_production_example_is_open_to_the_cluster_alone(tmp_path):
    document = production_example()
    raws, inventory, groups = ground.gather(document, tmp_path)
    members = [read_member(raw)[0] for raw in raws]
    callers = callers_of(inventory, members, groups)
    callers = Callers(callers.clients, dict.fromkeys(callers.admin, (ADMIN,)))
    (cluster,) = World(tuple(members)).clusters
    openings, problems = openings_of(cluster, callers)
    assert problems == []
    brokers = ["10.0.0.21", "10.0.0.22", "10.0.0.23"]
    assert told(openings, "zk1.example.org") == {
        2181: sorted([*brokers, "10.0.0.12", "10.0.0.13", ADMIN]),
        2888: ["10.0.0.12", "10.0.0.13"],
        3888: ["10.0.0.12", "10.0.0.13"],
    }


def test_each_port_is_open_to_those_that_need_it_and_to_nobody_else(tmp_path):
    openings, problems, _members, _callers = read(tmp_path)
    assert problems == []
    assert told(openings, "kafka-1") == {
        # the other broker, and whoever runs the modules
        9092: ["192.0.2.22", ADMIN],
        # the validation tries what clients use
        9093: ["192.0.2.31", ADMIN],
    }
    assert told(openings, "zk-1") == {
        2181: ["192.0.2.12", "192.0.2.21", "192.0.2.22", ADMIN],
        2888: ["192.0.2.12"],
        3888: ["192.0.2.12"],
    }
    purposes = {each.port: each.purpose for each in openings["zk-1"]}
    assert purposes[2181] == "ZooKeeper, clients"


def test_whoever_runs_the_modules_is_let_in_where_they_ask(tmp_path):
    """At the first listener, also where brokers speak to one another through another one."""
    overlay = {"vars": {"kafka_inter_broker_listener": "CLIENTS", "flow_validation": "never"}}
    openings, problems, _members, _callers = read(tmp_path, overlay)
    assert problems == []
    assert told(openings, "kafka-1") == {
        9092: ["192.0.2.22", ADMIN],
        9093: ["192.0.2.22", "192.0.2.31"],
    }


def of_brokers(**variables):
    return {"children": {"kafka": {"vars": variables}}}


def everywhere(**variables):
    return {"vars": variables}


TWO_AUDIENCES = [
    {"name": "INTERNAL", "port": 9092, "advertised": "{{ ansible_host }}", "audience": ["brokers"]},
    {"name": "CLIENTS", "port": 9093, "advertised": "a.example.com", "audience": ["clients"]},
    {"name": "B", "port": 9094, "advertised": "b.example.com", "audience": ["b"]},
]
LISTENER = {"name": "ONLY", "port": 9092, "advertised": "{{ ansible_host }}"}


@pytest.mark.parametrize(
    "overlay, host, expected",
    [
        (everywhere(flow_validation="never"), "kafka-1", {9093: ["192.0.2.31"]}),
        (
            everywhere(host_baseline_firewall_sources={"clients": ["203.0.113.0/24", "brokers"]}),
            *("kafka-1", {9093: ["192.0.2.22", ADMIN, "203.0.113.0/24"]}),
        ),
        (
            everywhere(host_baseline_firewall_sources={"admin": ["203.0.113.7/32"]}),
            *("zk-1", {2181: ["192.0.2.12", "192.0.2.21", "192.0.2.22", "203.0.113.7"]}),
        ),
        (
            everywhere(host_baseline_firewall_sources={"clients": []}, flow_validation="never"),
            *("kafka-1", {9093: []}),
        ),
        (
            everywhere(host_baseline_firewall_sources={"clients": ["members"]}),
            *("kafka-1", {9093: ["192.0.2.11", "192.0.2.12", "192.0.2.22", ADMIN]}),
        ),
        (
            # brokers are let in where they talk, also if nobody has said so
            of_brokers(kafka_listeners=[{**LISTENER, "audience": ["clients"]}]),
            *("kafka-1", {9092: ["192.0.2.22", "192.0.2.31", ADMIN]}),
        ),
        (
            of_brokers(kafka_config={"control.plane.listener.name": "CLIENTS"}),
            *("kafka-1", {9093: ["192.0.2.22", "192.0.2.31", ADMIN]}),
        ),
        (
            of_brokers(kafka_admin_listener="CLIENTS", flow_validation="never"),
            *("kafka-1", {9092: ["192.0.2.22"], 9093: ["192.0.2.31", ADMIN]}),
        ),
        (
            # the address of Ansible is not the one of the cluster
            {"children": {"kafka": {"hosts": {"kafka-2": {"kafka_address": "10.0.0.22"}}}}},
            *("kafka-1", {9092: ["10.0.0.22", "192.0.2.22", ADMIN]}),
        ),
        (
            {
                "children": {
                    "kafka": {
                        "hosts": {"kafka-2": {"host_baseline_firewall_addresses": ["2001:DB8::2"]}}
                    }
                }
            },
            *("kafka-1", {9092: [ADMIN, "2001:db8::2"]}),
        ),
        (
            {"children": {"kafka_clients": {"hosts": {"app-1": {"kafka_clients_of": "other"}}}}},
            *("kafka-1", {9093: [ADMIN]}),
        ),
        (
            # a host of clients is let in where its audiences are
            {
                "children": {
                    "kafka_clients": {"hosts": {"app-1": {"kafka_client_audiences": ["b"]}}}
                }
            },
            *("kafka-1", {9093: [ADMIN]}),
        ),
        (
            {
                "vars": {"host_baseline_firewall_sources": {"b": ["kafka_clients"]}},
                "children": {
                    "kafka": {"vars": {"kafka_listeners": TWO_AUDIENCES}},
                    "kafka_clients": {"hosts": {"app-1": {"kafka_client_audiences": ["b"]}}},
                },
            },
            *("kafka-1", {9093: [ADMIN], 9094: ["192.0.2.31"]}),
        ),
        ({"children": {"zookeeper": {"hosts": {"zk-2": None}}}}, "zk-1", {2888: None, 3888: None}),
    ],
)
def test_what_the_inventory_changes(tmp_path, overlay, host, expected):
    openings, problems, _members, _callers = read(tmp_path, overlay)
    assert problems == []
    found = told(openings, host)
    assert {port: found.get(port) for port in expected} == expected


@pytest.mark.parametrize(
    "overlay, check, told_of",
    [
        (
            everywhere(host_baseline_firewall_sources={"clients": ["app.example.com"]}),
            *("firewall.source", "host_baseline_firewall_sources.clients=app.example.com"),
        ),
        (
            everywhere(host_baseline_firewall_sources={"clients": ["203.0.113.7/24"]}),
            *("firewall.source", "Remedy: write 203.0.113.0/24, or 203.0.113.7"),
        ),
        (
            everywhere(host_baseline_firewall_sources={"clients": "203.0.113.0/24"}),
            *("firewall.source", "not a list"),
        ),
        (
            of_brokers(kafka_listeners=[LISTENER, {**LISTENER, "name": "B", "port": 1}]),
            *("firewall.audience", "kafka_listeners[1].audience=[]: no audience"),
        ),
        (
            of_brokers(kafka_listeners=[{**LISTENER, "audience": ["partners"]}]),
            *("firewall.audience", "such as partners: [203.0.113.0/24]"),
        ),
        (
            {
                "children": {
                    "kafka": {
                        "hosts": {
                            "kafka-2": {
                                "ansible_host": "kafka-2.example.com",
                                "kafka_listeners": [LISTENER],
                            }
                        }
                    }
                }
            },
            *("firewall.source", "kafka-2: host_baseline_firewall_addresses=[]: the inventory has"),
        ),
        (
            {"children": {"kafka_clients": {"hosts": {"app-1": {"ansible_host": "app-1.net"}}}}},
            *("firewall.source", "app-1: host_baseline_firewall_addresses"),
        ),
    ],
)
def test_what_is_not_an_address_is_refused_with_its_place(tmp_path, overlay, check, told_of):
    _openings, problems, _members, _callers = read(tmp_path, overlay)
    lines = [each.line() for each in problems if each.check == check]
    assert any(told_of in line for line in lines), [each.line() for each in problems]
    assert {each.check for each in problems} == {check}


def verdict(tmp_path, overlay=None, facts=None, admin=(ADMIN,)):
    document = ground.merge(yaml.safe_load(INVENTORY), {"all": overlay or {}})
    *_rest, callers = read(tmp_path, overlay, admin)
    found = ground.verdict_of(
        document, tmp_path, facts=facts, controller=Controller(callers=callers)
    )
    return [each for each in found.findings if "firewall" in each.check]


NO_FIREWALLD = {"all": {"firewall": {"firewalld": "stopped", "nft": False, "ours": []}}}
NOT_THERE = {"all": {"firewall": {"firewalld": "", "nft": False, "ours": []}}}
QUIET = {"all": {"firewall": {"firewalld": "", "nft": True, "ours": []}}}


@pytest.mark.parametrize(
    "overlay, facts, admin, expected",
    [
        ({}, QUIET, [ADMIN], {}),
        ({}, None, [ADMIN], {"host.two_firewalls": "set host_baseline_firewall to firewalld"}),
        ({}, NOT_THERE, [ADMIN], {"host.firewall": "install the package nftables"}),
        (
            everywhere(host_baseline_firewall="firewalld"),
            *(NO_FIREWALLD, [ADMIN], {"host.firewall": "systemctl enable --now firewalld"}),
        ),
        (
            everywhere(host_baseline_firewall="firewalld"),
            *(NOT_THERE, [ADMIN], {"host.firewall": "install and start the package firewalld"}),
        ),
        # containers, and hosts whose firewall is left alone
        ({}, {"all": {"container": "docker"}}, [ADMIN], {}),
        (everywhere(host_baseline_firewall="none"), NOT_THERE, [ADMIN], {}),
        (everywhere(jvm_service_manager="supervisor"), NOT_THERE, [ADMIN], {}),
        (
            everywhere(host_baseline_firewall_sources={"admin": ["203.0.113.7"]}),
            *(QUIET, [ADMIN], {"firewall.admin_host": "the host that administers, 198.51.100.1"}),
        ),
        ({}, QUIET, [], {"firewall.admin_host": "whose address is not known"}),
        (
            everywhere(host_baseline_firewall_sources={"admin": ["198.51.100.0/24"]}),
            *(QUIET, [ADMIN], {}),
        ),
        (everywhere(ansible_port=9093), QUIET, [ADMIN], {"firewall.ssh_port": "9093"}),
        (
            of_brokers(host_baseline_firewall_addresses=["192.0.2.9", "kafka.example.com"]),
            *(
                QUIET,
                [ADMIN],
                {"firewall.source": "host_baseline_firewall_addresses=kafka.example"},
            ),
        ),
    ],
)
def test_what_the_preflight_says(tmp_path, overlay, facts, admin, expected):
    findings = verdict(tmp_path, overlay, facts, admin)
    assert {each.check for each in findings} == set(expected), [each.line() for each in findings]
    for each in findings:
        assert expected[each.check] in each.line()


def test_a_word_that_is_no_firewall_is_refused(tmp_path):
    document = ground.merge(ground.good(), {"all": {"vars": {"host_baseline_firewall": "ufw"}}})
    (finding,) = ground.verdict_of(document, tmp_path).findings
    assert finding.check == "settings.bad_value" and "none, firewalld, nftables" in finding.line()


@pytest.mark.parametrize(
    "value, expected",
    [
        (["clients"], ["listeners.audience"]),  # of PARTNERS: nobody tries it
        ("clients, partners", []),
        ([], ["listeners.audience"]),
        (
            ["cleints", "partners"],
            [
                "[listeners.client_audience] app-1: kafka_client_audiences=cleints: no listener has this audience; "
                "there are clients, partners."
            ],
        ),
        ({"a": 1}, ["[settings.bad_value] app-1: kafka_client_audiences=", "listeners.audience"]),
    ],
)
def test_the_audiences_of_a_host_of_clients_are_judged(value, expected, tmp_path):
    """Also without a firewall, and a listener that such a host tries needs no other mention."""
    partners = {**LISTENER, "name": "PARTNERS", "port": 9094, "audience": ["partners"]}
    overlay = {
        "vars": {"host_baseline_firewall": "none", "flow_validation_audiences": ["clients"]},
        "children": {
            "kafka": {"vars": {"kafka_listeners": [*INVENTORY_LISTENERS, partners]}},
            "kafka_clients": {"hosts": {"app-1": {"kafka_client_audiences": value}}},
        },
    }
    document = ground.merge(yaml.safe_load(INVENTORY), {"all": overlay})
    *_rest, callers = read(tmp_path, overlay)
    found = ground.verdict_of(document, tmp_path, controller=Controller(callers=callers))
    lines = [each.line() for each in found.findings if "audience" in each.line()]
    assert len(lines) == len(expected), lines
    assert all(words in line for words, line in zip(expected, lines)), lines


@pytest.mark.parametrize(
    "value, expected",
    [
        ({"kafka_clients_of": "orders"}, ""),
        ({"kafka_clients_of": "odrers"}, "[listeners.clients_of] app-1: kafka_clients_of=odrers: "),
        # an audience of the other cluster alone
        (
            {"kafka_clients_of": "orders", "kafka_client_audiences": ["partners"]},
            "[listeners.client_audience] app-1: kafka_client_audiences=partners: ",
        ),
        ({"kafka_clients_of": "other", "kafka_client_audiences": ["partners"]}, ""),
        ({"kafka_client_audiences": ["partners"]}, ""),
    ],
)
def test_a_host_of_clients_is_held_against_the_cluster_that_it_uses(value, expected, tmp_path):
    """kafka-9 is a cluster of its own, with another audience."""
    partners = [{**LISTENER, "name": "PARTNERS", "audience": ["partners", "brokers"]}]
    overlay = {
        "vars": {"host_baseline_firewall": "none"},
        "children": {
            "kafka": {
                "hosts": {
                    "kafka-9": {
                        "ansible_host": "192.0.2.99",
                        "kafka_cluster_name": "other",
                        "kafka_listeners": partners,
                    }
                }
            },
            "kafka_clients": {"hosts": {"app-1": value}},
        },
    }
    document = ground.merge(yaml.safe_load(INVENTORY), {"all": overlay})
    raws, inventory, groups = ground.gather(document, tmp_path)
    callers = callers_of(inventory, [read_member(raw)[0] for raw in raws], groups)
    found = ground.verdict_of(document, tmp_path, controller=Controller(callers=callers))
    lines = [each.line() for each in found.findings if "app-1" in each.line()]
    assert len(lines) == bool(expected) and all(line.startswith(expected) for line in lines), lines


def test_without_a_firewall_nobody_is_looked_up(tmp_path):
    overlay = everywhere(host_baseline_firewall="none")
    openings, problems, _members, callers = read(tmp_path, overlay)
    assert (openings, problems, callers) == ({}, [], Callers())


def test_the_address_that_others_see_is_found_without_sending_anything():
    assert seen_by("127.0.0.1") == ("127.0.0.1",)
    assert seen_by("no-such-host.invalid") == ()


def test_the_action_reads_all_that_the_rules_need(tmp_path):
    """What it leaves out would be a default for it, and something else for the preflight."""
    _openings, _problems, members, callers = read(tmp_path)
    some = [
        read_member(
            Raw(
                each.name,
                each.is_broker,
                each.is_server,
                {key: value for key, value in each.settings.items() if key in VARIABLES},
            )
        )[0]
        for each in members
    ]
    sides = [World(tuple(each)).clusters[0] for each in (members, some)]
    assert openings_of(sides[0], callers) == openings_of(sides[1], callers)
    assert [addresses_of(each) for each in members] == [addresses_of(each) for each in some]
