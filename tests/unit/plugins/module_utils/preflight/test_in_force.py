# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory would change in a cluster that exists: how much it is refused, and with which remedy."""

from __future__ import annotations

import pytest
import yaml

from tests.unit.plugins.module_utils.preflight import good_inventory as ground

CURRENT = {
    "zookeeper.connect": "192.0.2.11:2181,192.0.2.12:2181,192.0.2.13:2181/kafka",
    "listeners": "INTERNAL://:9092",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
    "min.insync.replicas": "2",
}
TLS = yaml.safe_load("""
kafka_listeners: [{name: INTERNAL, port: 9092, protocol: SASL_PLAINTEXT, advertised: "{{ ansible_host }}"}]
kafka_sasl: {mechanisms: [PLAIN], inter_broker_user: broker, inter_broker_password: x}
kafka_client_security: {security_protocol: SASL_PLAINTEXT, sasl_mechanism: PLAIN}
""")


def findings(tmp_path, variables, alive=True, accept=(), snapshot=None, current=None):
    """Findings of the good cluster, after it ran, with new variables for the brokers."""
    facts = {f"zookeeper-{n}": {"zookeeper/data/has_data": True} for n in (1, 2, 3)}
    for number in (1, 2, 3):
        facts[f"kafka-{number}"] = {
            "kafka/started/alive": alive,
            "kafka/log_dirs/0/meta": {"broker.id": str(number), "cluster.id": "AAAA"},
            "kafka/current": {**CURRENT, **(current or {})},
        }
    document = ground.merge(ground.good(), {"all": {"children": {"kafka": {"vars": variables}}}})
    return ground.verdict_of(document, tmp_path, facts, snapshot, accept=accept).findings


def test_the_remedy_names_the_chroot_that_the_brokers_have(tmp_path):
    (finding,) = findings(tmp_path, {"kafka_zookeeper_chroot": "/other"})
    assert finding.remedy == "set kafka_zookeeper_chroot: /kafka"


def test_a_chroot_is_never_consented_to(tmp_path):
    wanted = {"kafka_zookeeper_chroot": "/other"}
    (finding,) = findings(tmp_path, wanted, accept=["cluster.chroot_changed"])
    assert finding.level == "error"


@pytest.mark.parametrize(
    "alive,accept,level",
    [
        (True, [], "error"),
        (True, ["listeners.protocol_changed"], "warning"),
        (False, [], "warning"),
    ],
)
def test_a_new_protocol_is_refused_while_brokers_run(tmp_path, alive, accept, level):
    (finding,) = findings(tmp_path, TLS, alive=alive, accept=accept)
    assert (finding.check, finding.level) == ("listeners.protocol_changed", level)
    assert finding.setting == "kafka_listeners[0].protocol"
    assert "speaks PLAINTEXT now" in finding.reason


@pytest.mark.parametrize(
    "wanted,replicas,expected", [(2, 1, "any more"), (2, 2, "a broker is down")]
)
def test_more_in_sync_replicas_than_topics_can_spare(tmp_path, wanted, replicas, expected):
    topics = {replicas: (7, ("a", "b", "c", "d", "e")), 3: (1, ("new",))}
    (finding,) = findings(
        tmp_path,
        {"kafka_config": {"min.insync.replicas": wanted}},
        snapshot={"cluster_id": "AAAA", "on_default_min_isr": topics},
        current={"min.insync.replicas": "1"},
    )
    assert finding.check == "replication.min_insync_raised"
    assert expected in finding.reason and finding.reason.endswith("and 2 more")
    assert finding.remedy == (
        "set kafka_config: {min.insync.replicas: 1} until these topics have 3 replicas"
    )


def in_effect(tmp_path, listeners, current, admin=""):
    """The addresses at which the preflight says that the cluster is to be asked now."""
    facts = {
        f"kafka-{number}": {"kafka/current": each} for number, each in enumerate(current, 1) if each
    }
    variables = {"kafka_listeners": listeners, "kafka_admin_listener": admin}
    document = ground.merge(ground.good(), {"all": {"children": {"kafka": {"vars": variables}}}})
    (cluster,) = ground.verdict_of(document, tmp_path, facts).result["in_effect"].values()
    return cluster


def listener(name, port, protocol="PLAINTEXT"):
    return {"name": name, "port": port, "protocol": protocol, "advertised": "{{ ansible_host }}"}


def current(advertised, protocols="A:PLAINTEXT,B:SSL"):
    """What decides in a server.properties; listeners bind to every address."""
    listeners = ",".join(
        f"{name}://:{address.rpartition(':')[2]}"
        for name, _slashes, address in (each.partition("://") for each in advertised.split(","))
    )
    return {
        "listeners": listeners,
        "advertised.listeners": advertised,
        "listener.security.protocol.map": protocols,
    }


OLD = current("A://k:9092,B://k:9093")


@pytest.mark.parametrize(
    "listeners, files, admin, expected",
    [
        # a new port, and one broker that has it already
        ([listener("A", 9192)], [OLD, current("A://k2:9192"), None], "", ["k:9092", "k2:9192"]),
        # the listener that admins use, not the first
        ([listener("A", 1), listener("B", 2, "SSL")], [OLD], "B", ["k:9093"]),
        # a new name: the one that speaks the same
        ([listener("C", 9092)], [OLD], "", ["k:9092"]),
        ([listener("C", 9092, "SASL_SSL")], [OLD], "", []),
        ([listener("A", 9092)], [current("A://[2001:db8::1]:9092")], "", ["[2001:db8::1]:9092"]),
        # nothing is known, or nothing can be made of it
        ([listener("A", 9092)], [None], "", []),
        ([listener("A", 9092)], [{"listeners": "A://:9092"}], "", []),
        ([listener("A", 9092)], [{**OLD, "advertised.listeners": "A://:9092"}], "", []),
    ],
)  # fmt: skip
def test_brokers_are_asked_where_they_are_now(tmp_path, listeners, files, admin, expected):
    assert in_effect(tmp_path, listeners, files, admin) == expected


# ---------------------------------------------------------------- overrides


def overridden(tmp_path, *overrides, ours=None):
    """Findings of the good cluster while it runs with overrides."""
    facts = {f"zookeeper-{n}": {"zookeeper/data/has_data": True} for n in (1, 2, 3)}
    for number in (1, 2, 3):
        facts[f"kafka-{number}"] = {
            "kafka/started/alive": True,
            "kafka/log_dirs/0/meta": {"broker.id": str(number), "cluster.id": "AAAA"},
            "kafka/current": {**CURRENT, "broker.id": str(number)},
            "kafka/overrides": ours or {},
        }
    snapshot = {
        "cluster_id": "AAAA",
        "brokers": {number: ((f"192.0.2.2{number}", 9092),) for number in (1, 2, 3)},
        "overrides": tuple(overrides),
    }
    found = ground.verdict_of(ground.good(), tmp_path, facts, snapshot).findings
    return [each for each in found if each.check == "config.dynamic_override"]


def test_an_override_that_somebody_else_has_set_is_told_with_the_command_that_takes_it_away(
    tmp_path,
):
    (finding,) = overridden(tmp_path, (2, "num.io.threads", "4"))
    assert (finding.level, finding.subjects) == ("warning", ("kafka-2",))
    assert (finding.setting, finding.value) == ("num.io.threads", "4")
    assert (
        "`kafka-configs.sh --bootstrap-server 192.0.2.22:9092 --alter --entity-type brokers"
        " --entity-name 2 --delete-config num.io.threads`"
    ) in finding.remedy


def test_one_of_all_brokers_is_told_once(tmp_path):
    (finding,) = overridden(tmp_path, (None, "num.io.threads", "4"))
    assert finding.subjects == ("kafka-1", "kafka-2", "kafka-3")
    assert "--entity-default --delete-config num.io.threads" in finding.remedy


def test_a_secret_is_not_shown(tmp_path):
    (finding,) = overridden(tmp_path, (1, "ssl.keystore.password", None))
    assert finding.value == "(hidden)"


@pytest.mark.parametrize(
    "key,value,ours,count",
    [
        ("num.io.threads", "12", {"num.io.threads": ["8", "12"]}, 0),
        ("num.io.threads", "13", {"num.io.threads": ["8", "12"]}, 1),
        ("leader.replication.throttled.rate", "1000", {}, 0),
    ],
)
def test_our_own_overrides_are_no_finding(tmp_path, key, value, ours, count):
    assert len(overridden(tmp_path, (1, key, value), ours=ours)) == count
