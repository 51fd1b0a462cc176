# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the preflight asks of clusters that run, and says where it has no answer."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.asking import (
    ask_clusters,
    asked_here,
    not_asked,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import read_member
from tests.support.outside import free_port
from tests.unit.plugins.module_utils.preflight import good_inventory as ground
from tests.unit.plugins.module_utils.preflight.test_two_clusters import both

KAFKA = ("kafka-1", "kafka-2", "kafka-3")
ZOOKEEPER = ("zookeeper-1", "zookeeper-2", "zookeeper-3")
SILENT = {"reachable": False, "unreachable_reason": "no broker answers\nwithin 5 s", "brokers": []}
NO_ENSEMBLE = {"reachable": False, "unreachable_reason": "no server answers", "exists": False}
ANSWER = {"reachable": True, "cluster_id": "x", "controller": 1, "brokers": [], "in_sync": [1]}


def members_of(document, tmp_path, alive):
    """The members of an inventory document, with what runs."""
    raws, _inventory, _groups = ground.gather(document, tmp_path)
    members = []
    for raw in raws:
        facts = ground.good_facts(read_member(raw)[0], [])
        if raw.name in alive:
            product = "kafka" if raw.is_broker else "zookeeper"
            ground.set_at(facts, f"{product}/started/alive", True)
        members.append(read_member(dataclasses.replace(raw, facts=facts))[0])
    return members


@pytest.mark.parametrize(
    "alive, answer, told",
    [
        (KAFKA, SILENT, "no broker answers"),
        (KAFKA + ZOOKEEPER, SILENT, "no broker answers"),
        # nobody but ZooKeeper runs, and that is asked
        (ZOOKEEPER, {**SILENT, "zookeeper": NO_ENSEMBLE}, "no server answers"),
        (ZOOKEEPER, {**SILENT, "zookeeper": {"reachable": True, "exists": True}}, None),
        (KAFKA, {"failed": True, "msg": "wrong credentials"}, "wrong credentials"),
        (KAFKA, ANSWER, None),
    ],
)
def test_a_cluster_that_runs_and_cannot_be_reached_is_not_left_out_in_silence(
    alive, answer, told, tmp_path
):
    """All that is checked against what runs is left out: whoever reads `nothing against it` believes the opposite."""
    members = members_of(ground.good(), tmp_path, alive)
    asked = ask_clusters(members, {}, {"orders-prod": lambda asking: answer}, topics=True)
    lines = [each.line() for each in not_asked(asked)]
    assert len(lines) == bool(told), lines
    assert bool(asked["orders-prod"]["snapshot"]) == (told is None)
    if told:
        assert f"the running cluster orders-prod could not be asked: {told}. Remedy: " in lines[0]
    if told and not answer.get("failed"):
        assert lines[0].startswith(
            "[cluster.unreadable] kafka-1, kafka-2, kafka-3: kafka_admin_host=localhost: "
        )
        assert "or name one in kafka_admin_host that does; nothing was checked" in lines[0]


def test_the_module_itself_at_a_port_where_nobody_listens(tmp_path):
    here = {"ansible_host": "127.0.0.1", "kafka_advertised_address": "127.0.0.1"}
    document = ground.merge(ground.good(), {"all": {"vars": here}})
    members = members_of(document, tmp_path, KAFKA)

    def ask(asking):
        return asked_here(
            {**asking, "bootstrap_servers": [f"127.0.0.1:{free_port()}"], "timeout": 1}
        )

    (found,) = not_asked(ask_clusters(members, {}, {"orders-prod": ask}, topics=False))
    assert (found.check, found.level) == ("cluster.unreadable", "warning")


@pytest.mark.parametrize("alive", [(), KAFKA])
def test_of_what_others_have_installed_nobody_knows_that_it_runs(alive, tmp_path, monkeypatch):
    """To find nobody there is no finding; where something of ours runs it is."""
    members = members_of(ground.good(), tmp_path, alive)
    monkeypatch.setattr(
        "ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.taking_over.is_strange",
        lambda member: True,
    )
    answer = {**SILENT, "zookeeper": NO_ENSEMBLE}
    asked = ask_clusters(members, {}, {"orders-prod": lambda asking: answer}, topics=False)
    assert set(asked) == {"orders-prod"} and len(not_asked(asked)) == bool(alive)


def test_each_cluster_is_asked_where_it_is_administered_and_nowhere_else(tmp_path):
    """One whose host does not exist is asked by nobody: no other host has its logins."""
    members = members_of(both(), tmp_path, (*KAFKA, "kafka-4", "kafka-5", "kafka-6"))
    calls = []

    def asks(name):
        return lambda asking: calls.append((name, asking["bootstrap_servers"])) or ANSWER

    asked = ask_clusters(
        members, {}, {name: asks(name) for name in ("orders-prod", "payments")}, False
    )
    assert set(asked) == {"orders-prod", "payments"} and len(calls) == 2
    for name, servers in calls:
        own = ("kafka-4", "kafka-5", "kafka-6") if name == "payments" else KAFKA
        assert all(any(host in each for host in own) for each in servers), (name, servers)
    assert set(ask_clusters(members, {}, {"payments": asks("payments")}, False)) == {"payments"}


def test_a_cluster_that_runs_and_does_not_answer_is_named_with_its_brokers():
    """One that could be asked is not."""
    brokers = [SimpleNamespace(name=name) for name in ("kafka-1", "kafka-2")]
    wrong = {"problem": "wrong credentials", "silent": False}
    asked = {
        "payments": {"cluster": SimpleNamespace(brokers=brokers), **wrong},
        "orders": {"cluster": SimpleNamespace(brokers=brokers), "problem": "", "silent": False},
    }
    assert [each.line().split(" Remedy")[0] for each in not_asked(asked)] == [
        "[cluster.unreadable] kafka-1, kafka-2: kafka_client_security=...: the running cluster payments could not be "
        "asked: wrong credentials."
    ]
