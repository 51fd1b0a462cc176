# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is let in follows from the listeners of the inventory, and from nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.from_inventory import (
    Host,
    options_of,
    removal_of,
)

SETTINGS = {
    "aws_region": "eu-central-1",
    "aws_image": "ami-1",
    "aws_type": "m7i.large",
    "aws_subnet": "",
    "aws_cores": 0,
    "aws_root_volume": {"size": "20GiB"},
    "aws_key_name": "orders",
    "aws_sources": {
        "brokers": ["members"],
        "clients": ["198.51.100.0/24"],
        "admin": ["203.0.113.7/32"],
    },
    "aws_ssh_sources": ["0.0.0.0/0"],
    "aws_rules": [],
    "zookeeper_client_port": 2181,
    "zookeeper_peer_port": 2888,
    "zookeeper_election_port": 3888,
    "kafka_controller_port": 9095,
    "kafka_inter_broker_listener": "INTERNAL",
    "kafka_listeners": [
        {"name": "INTERNAL", "port": 9093, "audience": ["brokers"]},
        {"name": "CLIENTS", "port": "9092", "audience": ["clients", "admin"]},
    ],
}


def host(name="kafka-01", broker=True, server=True, **changes):
    groups = (*(["kafka"] if broker else []), *(["zookeeper"] if server else []))
    return Host(name, groups, broker, server, {**SETTINGS, **changes})


def opened(options):
    """{(ports, source)} of the rules."""
    return {(each["ports"], source) for each in options["rules"] for source in each["sources"]}


SSH = {("22", "0.0.0.0/0")}
ZOOKEEPER = {("2181", "members"), ("2181", "203.0.113.7/32")}
QUORUM = {("2888", "members"), ("3888", "members")}
CONTROLLERS = {("9095", "members")}
KAFKA = {("9093", "members"), ("9092", "198.51.100.0/24"), ("9092", "203.0.113.7/32")}


@pytest.mark.parametrize(
    "hosts, rules",
    [
        ([host()], SSH | ZOOKEEPER | KAFKA),
        ([host(server=False)], SSH | KAFKA),
        ([host(broker=False)], SSH | ZOOKEEPER),
        ([host(server=False), host("zk-01", broker=False)], SSH | ZOOKEEPER | KAFKA),
        # a lone server opens no port for others
        ([host("a"), host("b")], SSH | ZOOKEEPER | QUORUM | KAFKA),
        # in KRaft mode, with and apart from brokers
        ([replace(host(server=False), is_controller=True)], SSH | KAFKA | CONTROLLERS),
        (
            [host(server=False), replace(host("c", False, False), is_controller=True)],
            SSH | KAFKA | CONTROLLERS,
        ),
        # two brokers on other ports: all of them
        (
            [
                host(server=False),
                host(
                    "b",
                    server=False,
                    kafka_listeners=[{"name": "INTERNAL", "port": 1, "audience": []}],
                ),
            ],
            SSH | KAFKA | {("1", "members")},
        ),
        ([replace(host(server=False), ssh_port=2222)], {("2222", "0.0.0.0/0")} | KAFKA),
        ([host(server=False, aws_ssh_sources=[])], KAFKA),
    ],
)
def test_rules_follow_from_the_listeners(hosts, rules):
    options, refusals = options_of("orders", hosts)
    assert opened(options) == rules and not refusals


def test_brokers_are_let_in_at_their_own_listener_whatever_its_audience_says():
    listeners = [{"name": "INTERNAL", "port": 9093, "audience": ["clients"]}]
    options, _refusals = options_of("orders", [host(server=False, kafka_listeners=listeners)])
    assert ("9093", "members") in opened(options)


def test_an_empty_audience_lets_nobody_in_and_an_unknown_one_is_refused_once_for_all_hosts():
    nobody = {**SETTINGS["aws_sources"], "clients": [], "admin": []}
    options, refusals = options_of("orders", [host(server=False, aws_sources=nobody)])
    assert not refusals and not [each for each in opened(options) if each[0] == "9092"]
    listeners = [{"name": "X", "port": 1, "audience": ["clints"]}]
    hosts = [host(each, kafka_listeners=listeners) for each in ("a", "b")]
    (problem,) = options_of("orders", hosts)[1]
    assert problem.check == "aws.audience" and problem.subjects == ("a", "b")
    assert "kafka_listeners[0].audience=clints" in problem.line()
    listeners = [{"name": "X", "port": 1}]
    (problem,) = options_of("orders", [host(kafka_listeners=listeners)])[1]
    assert "no audience" in problem.line()


def test_what_concerns_the_cluster_is_the_same_on_all_hosts():
    hosts = [host("a"), host("b", aws_region="us-east-1")]
    (problem,) = options_of("orders", hosts)[1]
    assert problem.check == "settings.not_uniform" and problem.subjects == ("b",)


def test_image_and_type_must_be_set():
    refusals = options_of("orders", [host("a", aws_image=""), host("b", aws_type="")])[1]
    assert [(each.setting, each.subjects) for each in refusals] == [
        ("aws_image", ("a",)),
        ("aws_type", ("b",)),
    ]


def test_a_machine_has_what_its_host_says():
    options, _refusals = options_of("orders", [host("b", aws_type="big"), host("a")], ["b"])
    assert [each["name"] for each in options["machines"]] == ["a", "b"]
    assert [each["type"] for each in options["machines"]] == ["m7i.large", "big"]
    assert options["machines"][0]["groups"] == ["kafka", "zookeeper"]
    assert "subnet" not in options["machines"][0] and options["only"] == ["b"]
    assert options["region"] == "eu-central-1" and options["key_name"] == "orders"


def test_a_removal_needs_nothing_but_names():
    bare = Host("a", ("kafka",), True, False, {"aws_region": "eu-central-1"})
    options, refusals = removal_of("orders", [bare])
    assert not refusals
    assert options == {"cluster": "orders", "state": "absent", "region": "eu-central-1"}
