# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ids of a KRaft cluster's storage, and the configuration of its nodes."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    ZOOKEEPER_MODE_KEYS,
    broker_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.storage import (
    as_uuid,
    directory_id,
    initial_controllers,
    is_uuid,
)

LISTENERS = [
    {"name": "LOCAL", "port": 9092, "protocol": "PLAINTEXT", "bind": "", "advertised": "a"}
]
QUORUM = {
    "roles": ["broker", "controller"],
    "bind": "",
    "address": "a",
    "port": 9093,
    "controllers": [{"address": "a", "port": 9093}, {"address": "::1", "port": 9094}],
}


def properties(**more):
    """The server.properties of a node."""
    given = {"broker_id": 1, "listeners": LISTENERS, "log_dirs": ["/d"], "brokers": 3}
    return broker_properties(**given, zookeeper_connect="z:2181", **more)


def test_ids_are_uuids_that_no_command_takes_for_an_option():
    """One in 64 of plain random ids begins with a dash."""
    made = {as_uuid(str(number).encode()) for number in range(2000)}
    assert len(made) == 2000 and all(map(is_uuid, made))


@pytest.mark.parametrize("text", ["", "mycluster", "-" + "A" * 21, "A" * 23, "A" * 21 + "*"])
def test_what_is_no_id(text):
    assert not is_uuid(text)


def test_a_directory_id_follows_from_cluster_and_node():
    assert directory_id("one", 1) == directory_id("one", 1)
    assert len({directory_id(name, node) for name in ("one", "two") for node in range(9)}) == 18


def test_the_first_voters_are_the_same_text_on_every_node():
    voters = [{"id": 10, "address": "b", "port": 2}, {"id": 9, "address": "::1", "port": 1}]
    expected = f"9@[::1]:1:{directory_id('x', 9)},10@b:2:{directory_id('x', 10)}"
    assert initial_controllers("x", voters) == initial_controllers("x", voters[::-1]) == expected


def test_a_node_that_is_broker_and_controller():
    found = properties(quorum=QUORUM)
    assert not set(found) & set(ZOOKEEPER_MODE_KEYS)
    wanted = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "LOCAL://:9092,CONTROLLER://:9093",
        "advertised.listeners": "LOCAL://a:9092,CONTROLLER://a:9093",
        "listener.security.protocol.map": "LOCAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "a:9093,[::1]:9094",
    }
    assert {key: found[key] for key in wanted} == wanted
    assert found["min.insync.replicas"] == "2", "settings of both modes are the same"


def test_a_node_that_is_a_broker_only():
    found = properties(quorum={**QUORUM, "roles": ["broker"]})
    assert found["listeners"] == "LOCAL://:9092" and found["process.roles"] == "broker"
    assert found["listener.security.protocol.map"].endswith("CONTROLLER:PLAINTEXT")


def test_no_protocol_version_is_pinned_without_zookeeper():
    assert "inter.broker.protocol.version" not in properties(quorum=QUORUM, protocol="3.9")
    assert properties(protocol="3.9")["inter.broker.protocol.version"] == "3.9"


def test_a_node_that_is_a_controller_only():
    """It has its own listener, and none of a broker; what the cluster's defaults are it decides."""
    found = properties(quorum={**QUORUM, "roles": ["controller"]})
    assert found["process.roles"] == "controller"
    assert found["listeners"] == "CONTROLLER://:9093"
    assert found["advertised.listeners"] == "CONTROLLER://a:9093"
    assert "inter.broker.listener.name" not in found
    assert found["default.replication.factor"] == "3"


SASL = {
    "mechanisms": ["SCRAM-SHA-512"],
    "inter_broker_user": "broker",
    "inter_broker_password": 's"ecret',
    "users": {"admin": "x"},
}


@pytest.mark.parametrize("roles", [["broker"], ["controller"], ["broker", "controller"]])
def test_nodes_log_in_at_the_controllers_by_plain(roles):
    """By SCRAM nobody could: its users stand in the metadata, which need the quorum first."""
    quorum = {**QUORUM, "roles": roles, "protocol": "SASL_SSL"}
    found = properties(quorum=quorum, sasl=SASL, authorizer=True, super_users=["broker"])
    assert found["sasl.mechanism.controller.protocol"] == "PLAIN"
    assert found["listener.name.controller.sasl.enabled.mechanisms"] == "PLAIN"
    assert found["listener.name.controller.plain.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        ' username="broker" password="s\\"ecret" user_broker="s\\"ecret";'
    )
    assert found["listener.security.protocol.map"].endswith("CONTROLLER:SASL_SSL")
    assert found["authorizer.class.name"].endswith(".StandardAuthorizer")
    assert found["super.users"] == "User:broker"


@pytest.mark.parametrize(
    ("own", "super_users", "known"),
    [
        # added, used, and the former one removed: each run's nodes know the user of the run before and of the next
        ({"inter_broker_user": "broker"}, ["broker", "new"], ["broker", "new"]),
        ({"inter_broker_user": "new"}, ["User:broker", "User:new"], ["broker", "new"]),
        ({"inter_broker_user": "new"}, ["new"], ["new"]),
        # a client's login is none at the controllers
        ({"inter_broker_user": "broker"}, ["broker", "Group:app"], ["broker"]),
        ({"inter_broker_user": "broker"}, [], ["broker"]),
    ],
)
def test_super_users_are_known_to_the_controllers_so_that_the_nodes_may_get_another(
    own, super_users, known
):
    users = {"broker": "old", "new": "n", "app": "a"}
    sasl = {**SASL, "users": users, "inter_broker_password": users[own["inter_broker_user"]], **own}
    quorum = {**QUORUM, "protocol": "SASL_SSL"}
    found = properties(quorum=quorum, sasl=sasl, super_users=super_users)
    login = found["listener.name.controller.plain.sasl.jaas.config"]
    for name in known:
        assert f' user_{name}="{users[name]}"' in login
    assert login.count(" user_") == len(known)


def test_nodes_show_a_certificate_where_they_do_not_log_in():
    found = properties(quorum={**QUORUM, "protocol": "SSL"})
    assert found["listener.name.controller.ssl.client.auth"] == "required"
    assert not any("sasl" in key for key in found)


@pytest.mark.parametrize("roles", [["broker"], ["controller"], ["broker", "controller"]])
def test_the_voters_of_a_static_quorum_stand_in_every_configuration(roles):
    controllers = [{"id": 9, "address": "a", "port": 9093}, {"id": 10, "address": "::1", "port": 1}]
    quorum = {**QUORUM, "roles": roles, "static": True, "controllers": controllers}
    found = properties(quorum=quorum)
    assert found["controller.quorum.voters"] == "9@a:9093,10@[::1]:1"
    assert "controller.quorum.bootstrap.servers" not in found
    # by which the voters are known once the quorum becomes a dynamic one
    told = "CONTROLLER://" + endpoint(quorum["address"], quorum["port"])
    assert (told in found.get("advertised.listeners", "")) == ("controller" in roles)
