# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effective configuration: what is computed, what wins, and how it is escaped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    OWNED_KEYS,
    SMALL,
    bootstrap_servers,
    broker_properties,
    client_listeners,
    client_properties,
    parse_properties,
    properties_text,
    shrink_to_fit,
    zookeeper_connect,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.zookeeper import (
    zookeeper_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import is_secret

LISTENER = {
    "name": "INTERNAL",
    "port": 9092,
    "protocol": "PLAINTEXT",
    "bind": "",
    "advertised": "b1",
}


def properties(**changes):
    settings = {
        "broker_id": 1,
        "listeners": [LISTENER],
        "log_dirs": ["/data/1", "/data/2"],
        "zookeeper_connect": "z1:2181/kafka",
        "brokers": 3,
    }
    settings.update(changes)
    return broker_properties(**settings)


def test_production_values_are_the_defaults():
    found = properties()
    assert found["default.replication.factor"] == "3"
    assert found["min.insync.replicas"] == "2"
    assert found["unclean.leader.election.enable"] == "false"
    assert found["auto.create.topics.enable"] == "false"
    assert found["offsets.topic.replication.factor"] == "3"
    assert found["transaction.state.log.min.isr"] == "2"
    assert found["log.dirs"] == "/data/1,/data/2"


def test_a_small_host_has_small_buffers():
    """In bytes; what is written into the inventory wins."""
    small, usual = properties(small=True), properties()
    assert small["log.cleaner.dedupe.buffer.size"] == "16777216"
    assert small["queued.max.request.bytes"] == "104857600"
    other = {key: value for key, value in small.items() if usual.get(key) != value}
    assert set(other) == set(SMALL)
    given = properties(small=True, config={"num.io.threads": 8})
    assert given["num.io.threads"] == "8" and given["num.network.threads"] == "2"


@pytest.mark.parametrize("brokers, expected", [(1, (1, 1)), (2, (2, 1)), (3, (3, 2)), (9, (3, 2))])
def test_replication_shrinks_to_fit_small_clusters(brokers, expected):
    assert shrink_to_fit(brokers) == expected


def test_the_host_wins_over_the_cluster_and_the_cluster_over_what_is_computed():
    found = properties(
        config={"num.io.threads": 16, "min.insync.replicas": 1}, host_config={"num.io.threads": 4}
    )
    assert found["num.io.threads"] == "4"
    assert found["min.insync.replicas"] == "1"


def test_several_listeners_keep_their_names_protocols_and_addresses():
    found = properties(
        listeners=[
            LISTENER,
            {
                "name": "OUTSIDE",
                "port": 29092,
                "protocol": "SSL",
                "bind": "::",
                "advertised": "2001:db8::1",
            },
        ],
        inter_broker_listener="INTERNAL",
    )
    assert found["listeners"] == "INTERNAL://:9092,OUTSIDE://[::]:29092"
    assert found["advertised.listeners"] == "INTERNAL://b1:9092,OUTSIDE://[2001:db8::1]:29092"
    assert found["listener.security.protocol.map"] == "INTERNAL:PLAINTEXT,OUTSIDE:SSL"
    assert found["inter.broker.listener.name"] == "INTERNAL"


def test_every_user_of_plain_is_in_the_listeners_login_and_quotes_cannot_break_out():
    found = properties(
        listeners=[dict(LISTENER, protocol="SASL_SSL")],
        sasl={
            "mechanisms": ["PLAIN"],
            "inter_broker_user": "broker",
            "inter_broker_password": 'a"b\\c',
            "users": {"app": "p"},
        },
    )
    login = found["listener.name.internal.plain.sasl.jaas.config"]
    assert 'username="broker" password="a\\"b\\\\c"' in login
    assert 'user_app="p"' in login and 'user_broker="a\\"b\\\\c"' in login
    assert is_secret("listener.name.internal.plain.sasl.jaas.config")


def test_a_user_name_that_is_not_one_word_is_quoted():
    """Kafka's parser ends a word at a blank or a sign; names of one word stay as they were."""
    users = {"bob": "x", "a b": "y", "k@realm": "z"}
    found = properties(
        listeners=[{**LISTENER, "protocol": "SASL_PLAINTEXT"}],
        sasl={"mechanisms": ["PLAIN"], "users": users},
    )
    login = found["listener.name.internal.plain.sasl.jaas.config"]
    assert ' "user_a b"="y" user_bob="x" "user_k@realm"="z";' in login


PEM = "-----BEGIN PRIVATE KEY-----"


@pytest.mark.parametrize(
    "security, expected",
    [
        ({}, {}),
        ({"ssl_check_hostname": True, "ssl_key_password": None}, {}),
        (
            {"security_protocol": "SSL", "ssl_ca": "/ca.pem", "ssl_check_hostname": False},
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": "/ca.pem",
                "ssl.endpoint.identification.algorithm": "",
            },
        ),
        (
            {"ssl_certificate": "/all.pem", "ssl_key": "/all.pem", "ssl_key_password": "x"},
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": "/all.pem",
                "ssl.key.password": "x",
            },
        ),
        (
            {"ssl_certificate": PEM, "ssl_key": PEM},
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": PEM,
                "ssl.keystore.key": PEM,
            },
        ),
    ],
)
def test_every_option_of_the_login_becomes_a_property(security, expected):
    assert client_properties(security) == expected


def test_the_authorizer_knows_its_super_users_and_denies_by_default():
    found = properties(authorizer=True, super_users=["broker", "Group:ops"])
    assert found["super.users"] == "User:broker;Group:ops"
    assert found["allow.everyone.if.no.acl.found"] == "false"


def test_owned_keys_name_the_variable_that_sets_them():
    assert OWNED_KEYS["log.dirs"] == "kafka_log_dirs"
    assert set(properties()) & set(OWNED_KEYS) >= {
        "broker.id",
        "listeners",
        "log.dirs",
        "zookeeper.connect",
    }


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_a_written_file_reads_back_as_it_was(values):
    assert parse_properties(properties_text(values)) == values


def test_bootstrap_takes_one_listener_by_name():
    members = [
        [LISTENER, {"name": "OUT", "port": 1, "advertised": "o1"}],
        [LISTENER, {"name": "OUT", "port": 2, "advertised": "::1"}],
    ]
    assert bootstrap_servers(members) == "b1:9092,b1:9092"
    assert bootstrap_servers(members, "OUT") == "o1:1,[::1]:2"


def test_listeners_of_an_audience_come_with_their_servers_and_their_login():
    def of_broker(number):
        rows = [
            ("INSIDE", 1, "PLAINTEXT", f"b{number}", ["brokers"]),
            ("ADMIN", 2, "PLAINTEXT", f"b{number}", ["admin"]),
            ("OUT", 3, "SASL_SSL", f"o{number}", ["clients", "partners"]),
            ("ANY", 4, "PLAINTEXT", f"b{number}", []),
        ]
        return [dict(zip(("name", "port", "protocol", "advertised", "audience"), r)) for r in rows]

    members = [of_broker(1), of_broker(2)]
    security = {"security_protocol": "PLAINTEXT", "ssl_ca": "/ca.pem"}
    (out,) = client_listeners(members, ["clients", "admin"], "ADMIN", security)
    assert (out["name"], out["bootstrap_servers"]) == ("OUT", "o1:3,o2:3")
    assert out["properties"]["security.protocol"] == "SASL_SSL"
    assert out["properties"]["ssl.truststore.location"] == "/ca.pem"
    own = {"OUT": {"ssl_ca": "/other.pem"}}
    (out,) = client_listeners(members, ["partners"], "ADMIN", security, own)
    assert out["properties"]["ssl.truststore.location"] == "/other.pem"
    # without a name the admin's is the first one
    assert [each["name"] for each in client_listeners(members, ["brokers", "admin"])] == ["ADMIN"]
    assert client_listeners(members, []) == []


def test_connect_string_is_sorted_by_id_with_the_chroot_once():
    servers = [
        {"id": 2, "address": "z2", "client_port": 2181},
        {"id": 1, "address": "z1", "client_port": 2181},
    ]
    assert zookeeper_connect(servers, "/kafka") == "z1:2181,z2:2181/kafka"
    assert zookeeper_connect(servers, "/") == "z1:2181,z2:2181"


def test_an_ensemble_lists_its_servers_and_a_single_server_does_not():
    server = {"id": 1, "address": "z1", "peer_port": 2888, "election_port": 3888}
    three = zookeeper_properties(
        [dict(server, id=number, address="z%d" % number) for number in (1, 2, 3)], "/d", "/l", 2181
    )
    assert three["server.3"] == "z3:2888:3888"
    assert three["dataLogDir"] == "/l"
    assert three["autopurge.purgeInterval"] == "1"
    assert three["admin.enableServer"] == "false"
    assert not any(
        key.startswith("server.") for key in zookeeper_properties([server], "/d", "", 2181)
    )
