# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The server.properties of each phase of a migration, as they were measured."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    broker_properties,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.migration import (
    phase_of,
)
from tests.unit.plugins.module_utils.configuration.test_properties import LISTENER

INNER = {"name": "INTERNAL", "protocol": "PLAINTEXT"}
VOTERS = "3001@c1:9093,3002@c2:9093,3003@c3:9093"
OF_ZOOKEEPER = {
    "broker.id",
    "broker.id.generation.enable",
    "zookeeper.connect",
    "zookeeper.session.timeout.ms",
}
OF_MIGRATION = {"zookeeper.metadata.migration.enable"}
OF_QUORUM = {"controller.listener.names", "controller.quorum.voters"}


def quorum(*roles):
    return {
        "roles": list(roles),
        "bind": "c1",
        "address": "c1",
        "port": 9093,
        "protocol": "PLAINTEXT",
        "static": True,
        "controllers": [
            {"id": 3000 + each, "address": f"c{each}", "port": 9093} for each in (1, 2, 3)
        ],
    }


def written(role, phase, **more):
    return broker_properties(
        broker_id=3001 if role == "controller" else 1,
        listeners=[LISTENER],
        log_dirs=["/data/1", "/data/2"],
        zookeeper_connect="z1:2181/kafka",
        brokers=3,
        quorum=quorum(role),
        migration={"phase": phase, "inner": INNER} if phase else None,
        **{"protocol": "3.9" if role == "broker" else "", **more},
    )


@pytest.mark.parametrize("role", ["broker", "controller"])
@pytest.mark.parametrize("phase", ["zookeeper", "migration", "kraft"])
def test_what_was_written_tells_how_far_the_node_is(role, phase):
    if (role, phase) != ("controller", "zookeeper"):
        assert phase_of(written(role, phase)) == phase


def test_a_node_without_a_configuration_is_nowhere():
    assert phase_of(None) == phase_of({}) == ""
    assert (
        phase_of({"broker.id": "1", "zookeeper.metadata.migration.enable": "false"}) == "zookeeper"
    )


def test_a_broker_that_migrates_is_one_of_zookeeper_that_knows_the_controllers():
    plain = broker_properties(
        1, [LISTENER], ["/data/1", "/data/2"], "z1:2181/kafka", 3, protocol="3.9"
    )
    assert written("broker", "zookeeper") == plain, "back is what it was"
    migrating = written("broker", "migration")
    assert set(migrating) - set(plain) == OF_QUORUM | OF_MIGRATION
    assert migrating["controller.quorum.voters"] == VOTERS
    assert migrating["inter.broker.protocol.version"] == "3.9"
    assert migrating["listener.security.protocol.map"] == "INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert migrating["inter.broker.listener.name"] == "INTERNAL"
    same = set(plain) - {"listener.security.protocol.map"}
    assert {key: migrating[key] for key in same} == {key: plain[key] for key in same}


def test_a_broker_in_kraft_is_as_any_other_one():
    """So that site.yml has nothing to do after the migration."""
    kraft = written("broker", "kraft")
    assert kraft == written("broker", "")
    assert not set(kraft) & (OF_ZOOKEEPER | OF_MIGRATION | {"inter.broker.protocol.version"})
    assert kraft["node.id"] == "1" and kraft["process.roles"] == "broker"
    assert kraft["controller.quorum.voters"] == VOTERS
    assert kraft["log.dirs"] == written("broker", "migration")["log.dirs"]


def test_a_controller_reads_zookeeper_and_speaks_to_brokers_until_the_last_step():
    migrating, final = written("controller", "migration"), written("controller", "kraft")
    assert final == written("controller", "")
    assert set(migrating) - set(final) == {
        *("zookeeper.connect", "zookeeper.session.timeout.ms"),
        *("zookeeper.metadata.migration.enable", "inter.broker.listener.name"),
    }
    assert migrating["zookeeper.connect"] == "z1:2181/kafka", "with the chroot of the brokers"
    assert migrating["listener.security.protocol.map"] == "INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert (
        migrating["listeners"] == "CONTROLLER://c1:9093" and migrating["min.insync.replicas"] == "2"
    )


def test_a_controller_knows_the_listener_of_the_brokers_whatever_its_own_variables_say():
    found = broker_properties(
        3001,
        [{**LISTENER, "name": "OTHER"}],
        ["/data"],
        "z1:2181/kafka",
        3,
        quorum=quorum("controller"),
        migration={"phase": "migration", "inner": INNER},
    )
    assert found["inter.broker.listener.name"] == "INTERNAL"
    assert found["listener.security.protocol.map"] == "INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"


LOGIN = {
    "mechanisms": ["SCRAM-SHA-512"],
    "inter_broker_mechanism": "SCRAM-SHA-512",
    "inter_broker_user": "broker",
    "inter_broker_password": "secret",
}
CLOSED = {"name": "INTERNAL", "protocol": "SASL_SSL"}
AS_BROKER = "listener.name.internal.scram-sha-512.sasl.jaas.config"
AT_CONTROLLERS = "listener.name.controller.plain.sasl.jaas.config"


def closed(role, phase):
    return broker_properties(
        3001 if role == "controller" else 1,
        [{**LISTENER, **CLOSED}],
        ["/data"],
        "z1:2181/kafka",
        3,
        config_dir="/etc/kafka",
        ssl={"certificate": "c", "key": "k", "ca": "a"},
        sasl=LOGIN,
        authorizer=True,
        super_users=["broker", "admin"],
        protocol="3.9" if role == "broker" else "",
        quorum={**quorum(role), "protocol": "SASL_SSL"},
        migration={"phase": phase, "inner": CLOSED} if phase else None,
    )


def test_a_controller_logs_in_at_brokers_of_zookeeper_and_brokers_at_the_controllers():
    controller, broker = closed("controller", "migration"), closed("broker", "migration")
    assert controller[AS_BROKER] == broker[AS_BROKER] and "secret" in broker[AS_BROKER]
    assert controller[AT_CONTROLLERS] == broker[AT_CONTROLLERS]
    assert controller["sasl.mechanism.inter.broker.protocol"] == "SCRAM-SHA-512"
    assert broker["sasl.mechanism.controller.protocol"] == "PLAIN"
    both = "INTERNAL:SASL_SSL,CONTROLLER:SASL_SSL"
    assert {each["listener.security.protocol.map"] for each in (controller, broker)} == {both}
    assert controller["ssl.keystore.location"] == "/etc/kafka/current/keystore.pem"
    assert controller["super.users"] == broker["super.users"] == "User:broker;User:admin"


def test_each_node_has_the_authorizer_of_where_its_metadata_are():
    classes = {
        (role, phase): closed(role, phase)["authorizer.class.name"].rpartition(".")[2]
        for role in ("controller", "broker")
        for phase in ("migration", "kraft")
    }
    assert classes == {
        ("controller", "migration"): "StandardAuthorizer",
        ("controller", "kraft"): "StandardAuthorizer",
        ("broker", "migration"): "AclAuthorizer",
        ("broker", "kraft"): "StandardAuthorizer",
    }


def test_after_the_last_step_a_controller_has_no_login_at_brokers_any_more():
    assert AS_BROKER not in closed("controller", "kraft")
    assert closed("controller", "kraft") == closed("controller", "")
