# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""KRaft mode: each trap that Kafka does not tell, or tells by a process that lives on, is a refusal."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.storage import (
    directory_id,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import read_member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.running_cluster import (
    healthy_nodes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import World
from tests.unit.plugins.module_utils.preflight.good_inventory import (
    FRESH_CLUSTER_ID,
    gather,
    good,
    merge,
    verdict_of,
)

NODES = ["kafka-1", "kafka-2", "kafka-3"]
OTHER_ID = "Zm9yZWlnbi1jbHVzdGVyLQ"
CONTROLLERS = ",".join(f"kafka-{number}.example.com:9093" for number in (1, 2, 3))
CURRENT = {
    "process.roles": "broker,controller",
    "controller.quorum.bootstrap.servers": CONTROLLERS,
    "advertised.listeners": "INTERNAL://kafka-1.example.com:9092",
}


def kraft(more=None):
    """The good inventory as a cluster of three combined nodes of Kafka 4.3.1."""
    document = good()
    del document["all"]["children"]["zookeeper"]
    document["all"]["vars"].update(kafka_metadata="kraft", kafka_version="4.3.1")
    document["all"]["children"]["controllers"] = {"hosts": {name: {} for name in NODES}}
    return merge(document, more or {})


def group(name, hosts):
    """An overlay that gives a group these hosts, and no others."""
    return {"all": {"children": {name: {"=hosts": {host: {} for host in hosts}}}}}


def variables(**values):
    """An overlay of the variables of all hosts."""
    return {"all": {"vars": values}}


def meta(node, cluster_id=FRESH_CLUSTER_ID, **more):
    """Facts of a directory that was formatted for a node."""
    found = {
        "version": "1",
        "node.id": str(node),
        "cluster.id": cluster_id,
        "directory.id": directory_id(cluster_id, node),
        **more,
    }
    return {"kafka/log_dirs/0/meta": found, "kafka/log_dirs/0/exists": True}


# A node that has run with its directory.
RAN = {"kafka/log_dirs/0/quorum_state": True}


def begun(**more):
    """Facts of a cluster that has begun, with those of single nodes laid over."""
    facts = {f"kafka-{node}": {**meta(node), **RAN, "kafka/current": CURRENT} for node in (1, 2, 3)}
    for name, changes in more.items():
        facts[name.replace("_", "-")].update(changes)
    return facts


def told(verdict):
    """check id -> hosts of all findings."""
    hosts: dict = {}
    for each in verdict.findings:
        hosts.setdefault(each.check, []).extend(each.subjects)
    return {check: sorted(set(names)) for check, names in hosts.items()}


def test_a_new_cluster(tmp_path):
    """Nothing is wrong with it: all nodes are formatted, with one id and the same voters."""
    verdict = verdict_of(kraft(), tmp_path)
    assert not told(verdict)
    storage = verdict.result["storage"]["orders-prod"]
    assert storage["cluster_id"] == FRESH_CLUSTER_ID and storage["unformatted"] == NODES
    assert storage["initial_controllers"] == ",".join(
        f"{node}@kafka-{node}.example.com:9093:{directory_id(FRESH_CLUSTER_ID, node)}"
        for node in (1, 2, 3)
    )
    assert verdict.result["quorums"]["kafka-2"]["roles"] == ["broker", "controller"]


def test_zookeeper_mode_has_nothing_of_it(tmp_path):
    result = verdict_of(good(), tmp_path).result
    assert result["storage"] == {"orders-prod": None}
    assert result["quorums"] == dict.fromkeys(NODES)


def test_a_format_that_was_killed_goes_on_with_its_id(tmp_path):
    """Of three nodes one is formatted, and none was ever started.

    Which voters and users are in its format nobody can tell: the inventory may have been another one.
    """
    verdict = verdict_of(kraft(), tmp_path, facts={"kafka-2": meta(2, OTHER_ID)})
    assert not told(verdict)
    storage = verdict.result["storage"]["orders-prod"]
    assert storage["cluster_id"] == OTHER_ID and storage["unformatted"] == NODES
    assert not storage["begun"]
    # one of them has run, whoever has started it
    facts = {"kafka-2": {**meta(2, OTHER_ID), **RAN}}
    verdict = verdict_of(kraft(), tmp_path, facts=facts)
    assert told(verdict) == {"quorum.unformatted": ["kafka-1", "kafka-3"]}
    # a broker has nothing of it in its format
    document = kraft(group("controllers", ["kafka-1"]))
    verdict = verdict_of(document, tmp_path, facts={"kafka-2": meta(2), "kafka-1": meta(1)})
    assert verdict.result["storage"]["orders-prod"]["unformatted"] == ["kafka-1", "kafka-3"]


@pytest.mark.parametrize(
    "forks, runs, purpose, refused",
    [
        (1, [], "deploy", True),
        (1, [], "start", True),
        (2, [], "deploy", False),
        (0, [], "deploy", False),
        # what runs is waited for by nobody
        (1, ["kafka-2"], "start", False),
        (1, [], "keep", False),
    ],
)
def test_as_many_nodes_start_at_a_time_as_their_quorum_needs(
    tmp_path, forks, runs, purpose, refused
):
    facts = begun()
    for name, each in facts.items():
        each["kafka/started"] = {"alive": name in runs, "port": 1}
    verdict = verdict_of(kraft(), tmp_path, facts=facts, forks=forks, purpose=purpose)
    found = [each for each in verdict.errors if each.check == "quorum.forks"]
    assert bool(found) is refused
    assert all(each.subjects == tuple(NODES) and "-f 2" in each.remedy for each in found)
    # controllers alone are ready without one
    alone = verdict_of(apart(), tmp_path, forks=1, purpose=purpose)
    assert "quorum.forks" not in told(alone)


def test_brokers_that_do_not_vote(tmp_path):
    """A node beside the quorum is a broker only, and knows the same controllers."""
    verdict = verdict_of(kraft(group("controllers", ["kafka-1"])), tmp_path)
    assert told(verdict) == {"quorum.single": ["kafka-1"]}
    parts = verdict.result["quorums"]
    assert [parts[name]["roles"] for name in NODES] == [
        ["broker", "controller"],
        ["broker"],
        ["broker"],
    ]
    assert len(parts["kafka-3"]["controllers"]) == 1


SERVERS = {"all": {"children": {"zookeeper": {"hosts": {"zookeeper-1": {}}}}}}
WRONG = {
    "two voters": (group("controllers", NODES[:2]), {}, {"quorum.size": NODES[:2]}),
    "no voters": (group("controllers", []), {}, {"quorum.size": NODES}),
    "a controller whose mode nobody has set": (
        {
            "all": {
                "children": {
                    "controllers": {"hosts": {"c-1": {"kafka_metadata": "zookeeper"}}},
                }
            }
        },
        {},
        {"quorum.separate": ["c-1"]},
    ),
    "ZooKeeper servers beside controllers": (SERVERS, {}, {"metadata.mixed": ["zookeeper-1"]}),
    "one broker in the other mode": (
        {"all": {"children": {"kafka": {"hosts": {"kafka-3": {"kafka_metadata": "zookeeper"}}}}}},
        {},
        # Kafka 4 for it, and no voter
        {
            "settings.not_uniform": ["kafka-3"],
            "version.illegal_path": ["kafka-3"],
            "quorum.size": ["kafka-1", "kafka-2"],
        },
    ),
    "a release without voters that can change": (
        variables(kafka_version="3.8.1"),
        {},
        {"version.illegal_path": NODES},
    ),
    "a release that nobody knows": (
        variables(kafka_version="4.9.9"),
        {},
        {"version.unknown": NODES},
    ),
    "a key that the quorum owns": (
        variables(kafka_config={"controller.quorum.voters": "1@a:1"}),
        {},
        {"config.owned_key": NODES},
    ),
    "another place for the metadata than the one that is formatted": (
        variables(kafka_config={"metadata.log.dir": "/var/lib/kafka/metadata"}),
        {},
        {"config.owned_key": NODES},
    ),
    "a listener for the controller, which a release with both modes has in the other one": (
        variables(kafka_version="3.9.2", kafka_config={"control.plane.listener.name": "A"}),
        {},
        {"config.removed_key": NODES},
    ),
    "the same with a release that does not know it": (
        variables(kafka_host_config={"control.plane.listener.name": "A"}),
        {},
        {"config.removed_key": NODES},
    ),
    "two ports in one": (
        variables(kafka_controller_port=9092),
        {},
        {"listeners.duplicate": NODES},
    ),
    "a listener with the controllers' name": (
        variables(kafka_listeners=[{"name": "CONTROLLER", "port": 9092, "advertised": "a"}]),
        {},
        {"listeners.duplicate": NODES},
    ),
    "an authorizer": (
        variables(kafka_authorizer=True),
        {},
        {"security.super_users": NODES},
    ),
    "two nodes with one id": (
        {
            "all": {
                "children": {
                    "kafka": {
                        "hosts": {
                            "kafka-1": {"kafka_broker_id": 4},
                            "kafka-2": {"kafka_broker_id": 4},
                        }
                    }
                }
            }
        },
        {},
        {"identity.duplicate_broker_id": ["kafka-1", "kafka-2"]},
    ),
    "an id that is not the one on the disk": (
        {"all": {"children": {"kafka": {"hosts": {"kafka-2": {"kafka_broker_id": 7}}}}}},
        begun(),
        {"identity.contradicts_disk": ["kafka-2"]},
    ),
    "one disk with a foreign cluster id": (
        {},
        begun(kafka_3=meta(3, OTHER_ID)),
        {"identity.foreign_cluster": ["kafka-3"]},
    ),
    "an empty disk beside nodes that have begun": (
        {},
        begun(kafka_3={"kafka/log_dirs/0/meta": None}),
        {"quorum.unformatted": ["kafka-3"]},
    ),
    "a new node of a cluster that has begun": (
        {
            "all": {
                "children": {
                    "kafka": {"hosts": {"kafka-4": {"ansible_host": "kafka-4.example.com"}}}
                }
            }
        },
        begun(),
        {"quorum.unformatted": ["kafka-4"]},
    ),
    "another group of controllers than at the beginning": (
        group("controllers", ["kafka-1"]),
        begun(),
        {"quorum.changed": NODES, "quorum.single": ["kafka-1"]},
    ),
    "an id of the cluster that Kafka did not make": (
        {},
        {"kafka-1": meta(1, "mycluster")},
        {"quorum.foreign_format": ["kafka-1"]},
    ),
    "a directory that somebody else has formatted": (
        {},
        {"kafka-1": meta(1, **{"directory.id": "AAAAAAAAAAAAAAAAAAAAAA"})},
        {"quorum.foreign_format": ["kafka-1"]},
    ),
    "a cluster of ZooKeeper mode": (
        {},
        {
            name: {"kafka/current": {"broker.id": name[-1], "zookeeper.connect": "a:2181/kafka"}}
            for name in NODES
        },
        # and nothing is formatted there
        {"metadata.changed": NODES, "quorum.unformatted": NODES},
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name, tmp_path):
    overlay, facts, expected = WRONG[name]
    assert told(verdict_of(kraft(overlay), tmp_path, facts=copy.deepcopy(facts))) == expected


# ---------------------------------------------------------------- controllers that are not brokers

APART = ["c-1", "c-2", "c-3"]
APART_KNOWN = ",".join(f"{name}.example.com:9093" for name in APART)


def apart(more=None):
    """Three brokers, and three controllers on hosts of their own."""
    document = kraft()
    hosts = {name: {"ansible_host": f"{name}.example.com"} for name in APART}
    document["all"]["children"]["controllers"] = {"hosts": hosts}
    return merge(document, more or {})


def begun_apart(**more):
    """Facts of such a cluster that has begun: brokers 1 to 3, controllers 4 to 6."""
    facts = {}
    for node, name in enumerate([*NODES, *APART], 1):
        current = {
            "process.roles": "broker" if name in NODES else "controller",
            "controller.quorum.bootstrap.servers": APART_KNOWN,
            "node.id": str(node),
        }
        facts[name] = {**meta(node), **RAN, "kafka/current": current}
    for name, changes in more.items():
        facts[name.replace("_", "-")].update(changes)
    return facts


TWO_LISTENERS = {
    "kafka_listeners": [
        {"name": name, "port": port, "protocol": protocol, "advertised": "{{ ansible_host }}"}
        for name, port, protocol in (
            ("INTERNAL", 9092, "PLAINTEXT"),
            ("SECURE", 9192, "SASL_PLAINTEXT"),
        )
    ],
    "kafka_admin_listener": "INTERNAL",
    "kafka_sasl": {
        "mechanisms": ["PLAIN"],
        "inter_broker_user": "broker",
        "inter_broker_password": "x",
    },
}
BOTH = "INTERNAL:PLAINTEXT,SECURE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
NOW_SECURE = "INTERNAL:PLAINTEXT,SECURE:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"


@pytest.mark.parametrize(
    ("inner", "runs", "protocols", "level"),
    [
        ("INTERNAL", [*NODES, "c-1"], BOTH, None),
        # one node after the other would be shut out, from the first one on
        ("SECURE", [*NODES, "c-1", "c-2", "c-3"], BOTH, "error"),
        ("SECURE", ["c-2"], BOTH, "error"),
        # all start together
        ("SECURE", [], BOTH, "warning"),
        ("SECURE", [*NODES, "c-1"], NOW_SECURE, None),
    ],
)
def test_the_protocol_of_the_controllers_changes_while_none_of_them_runs(
    inner, runs, protocols, level, tmp_path
):
    facts = begun_apart()
    for name, each in facts.items():
        each["kafka/current"]["listener.security.protocol.map"] = protocols
        each["kafka/started"] = {"alive": name in runs, "port": 1}
    document = apart(variables(**TWO_LISTENERS, kafka_inter_broker_listener=inner))
    verdict = verdict_of(document, tmp_path, facts=facts)
    found = [each for each in verdict.findings if each.check == "quorum.protocol_changed"]
    assert {each.level for each in found} == ({level} if level else set())
    if level:
        assert {name for each in found for name in each.subjects} == {*NODES, *APART}
        assert "CONTROLLER" in found[0].reason and "playbooks/stop.yml" in found[0].remedy


def test_a_run_that_was_killed_between_two_starts_with_the_new_protocol_goes_on(tmp_path):
    """What runs has it, and what is down starts with it."""
    facts = begun_apart()
    for name, each in facts.items():
        here = name in NODES
        each["kafka/current"]["listener.security.protocol.map"] = NOW_SECURE if here else BOTH
        each["kafka/started"] = {"alive": here, "port": 1}
    document = apart(variables(**TWO_LISTENERS, kafka_inter_broker_listener="SECURE"))
    verdict = verdict_of(document, tmp_path, facts=facts)
    levels = {each.level for each in verdict.findings if each.check == "quorum.protocol_changed"}
    assert levels == {"warning"}


def test_controllers_of_their_own(tmp_path):
    """Their ids and the brokers' are of one kind; each has its part, and the directory id of a voter."""
    verdict = verdict_of(apart(), tmp_path)
    assert not told(verdict)
    result = verdict.result
    ids = {name: each["broker_id"] for name, each in result["ids"].items()}
    assert sorted(ids.values()) == [1, 2, 3, 4, 5, 6]
    assert {result["quorums"][name]["roles"][0] for name in NODES} == {"broker"}
    assert [result["quorums"][name]["roles"] for name in APART] == [["controller"]] * 3
    assert [each["host"] for each in result["brokers"]["orders-prod"]] == NODES
    nodes = result["nodes"]["orders-prod"]
    assert {each["host"] for each in nodes if not each["broker"]} == set(APART)
    assert [each["broker"] for each in nodes] == [True] * 3 + [False] * 3
    storage = result["storage"]["orders-prod"]
    assert set(storage["unformatted"]) == {*NODES, *APART}
    voters = {each.split("@")[0] for each in storage["initial_controllers"].split(",")}
    assert voters == {str(ids[name]) for name in APART}


def test_controllers_keep_the_ids_on_their_disks(tmp_path):
    facts = begun_apart()
    verdict = verdict_of(apart(), tmp_path, facts=facts)
    assert not told(verdict)
    assert [verdict.result["ids"][name]["broker_id"] for name in APART] == [4, 5, 6]


def test_a_run_for_controllers_alone_has_somebody_who_speaks_for_the_cluster(tmp_path):
    away = {name: {"in_play": False} for name in [*NODES, "c-2", "c-3"]}
    verdict = verdict_of(apart(), tmp_path, facts=begun_apart(), raw=away)
    assert verdict.result["cluster_first"] == {"orders-prod": "c-1"}


WRONG_APART = {
    "a controller with the id of a broker": (
        {
            "all": {
                "children": {
                    "kafka": {"hosts": {"kafka-1": {"kafka_broker_id": 7}}},
                    "controllers": {"hosts": {"c-1": {"kafka_broker_id": 7}}},
                }
            }
        },
        {},
        {"identity.duplicate_broker_id": ["c-1", "kafka-1"]},
    ),
    "a controller's disk with the id of a broker": (
        {},
        begun_apart(c_2=meta(2)),
        {"identity.duplicate_broker_id": ["c-2", "kafka-2"]},
    ),
    "a controller with a foreign cluster id": (
        {},
        begun_apart(c_3=meta(6, OTHER_ID)),
        {"identity.foreign_cluster": ["c-3"]},
    ),
    "a controller whose disk is empty": (
        {},
        begun_apart(c_1={"kafka/log_dirs/0/meta": None}),
        {"quorum.unformatted": ["c-1"]},
    ),
    "a controller whose directory is damaged": (
        {},
        begun_apart(
            c_1={"kafka/log_dirs/0/meta": None, "kafka/log_dirs/0/meta_broken": "it is empty"}
        ),
        {"identity.broken_meta": ["c-1"]},
    ),
    "a controller that becomes a broker, too": (
        {"all": {"children": {"kafka": {"hosts": {"c-1": {}}}}}},
        begun_apart(),
        {"quorum.changed": ["c-1"]},
    ),
    "another release for the controllers": (
        {"all": {"children": {"controllers": {"hosts": {"c-1": {"kafka_version": "3.9.2"}}}}}},
        {},
        {"settings.not_uniform": ["c-1"]},
    ),
}

LOGIN = {
    "mechanisms": ["SCRAM-SHA-512"],
    "inter_broker_user": "broker",
    "inter_broker_password": "b",
    "users": {"admin": "a"},
}
SECURED = {
    "=kafka_listeners": [
        {
            "name": "A",
            "port": 9092,
            "protocol": "SASL_PLAINTEXT",
            "advertised": "{{ ansible_host }}",
        }
    ],
    "kafka_sasl": LOGIN,
    "kafka_authorizer": True,
    "kafka_super_users": ["broker"],
    "kafka_client_security": {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "admin",
        "sasl_password": "a",
    },
}


def of_controllers(**values):
    return {"all": {"children": {"controllers": {"vars": values}}}}


WRONG_SECURED = {
    "all is well": ({}, {}),
    "an authorizer that lets everybody in at the brokers alone": (
        {
            "all": {
                "children": {
                    "kafka": {"vars": {"kafka_config": {"allow.everyone.if.no.acl.found": True}}}
                }
            }
        },
        {"quorum.settings": NODES},
    ),
    "controllers without a login": (of_controllers(kafka_sasl={}), {"listeners.security": APART}),
    "another login at the controllers": (
        of_controllers(kafka_sasl={**LOGIN, "inter_broker_user": "other"}),
        {"settings.not_uniform": sorted([*NODES, *APART]), "security.super_users": APART},
    ),
    "a name that the format cannot take": (
        variables(kafka_sasl={**LOGIN, "users": {"a,b": "c"}}),
        {"listeners.security": sorted([*NODES, *APART])},
    ),
    "controllers that cannot ask the brokers": (
        of_controllers(kafka_client_security={}),
        {"listeners.client_security": APART},
    ),
    "controllers without an authorizer": (
        of_controllers(kafka_authorizer=False),
        {"settings.not_uniform": APART},
    ),
    "controllers who turn the nodes away": (
        of_controllers(kafka_super_users=["admin"]),
        {"security.super_users": APART},
    ),
    "controllers who do not know the admins": (
        merge(
            of_controllers(kafka_super_users=["User:broker"]),
            {"all": {"children": {"kafka": {"vars": {"kafka_super_users": ["broker", "admin"]}}}}},
        ),
        {"settings.not_uniform": APART},
    ),
}


@pytest.mark.parametrize("name", WRONG_SECURED)
def test_what_is_refused_of_a_login_at_the_controllers(name, tmp_path):
    overlay, expected = WRONG_SECURED[name]
    document = apart({"all": {"vars": SECURED}})
    verdict = verdict_of(merge(document, overlay), tmp_path)
    assert told(verdict) == expected
    assert verdict.result["quorums"]["c-1"]["protocol"] == "SASL_PLAINTEXT"


def test_an_open_port_of_controllers_is_not_told_where_they_ask_who_comes(tmp_path):
    found = told(verdict_of(apart({"all": {"vars": SECURED}}), tmp_path, unprotected=True))
    assert "security.controller_open" not in found


@pytest.mark.parametrize("name", WRONG_APART)
def test_what_is_refused_of_controllers_of_their_own(name, tmp_path):
    overlay, facts, expected = WRONG_APART[name]
    assert told(verdict_of(apart(overlay), tmp_path, facts=copy.deepcopy(facts))) == expected


def test_a_group_of_controllers_makes_no_members_in_zookeeper_mode(tmp_path):
    """Any other group may be called so."""
    document = good()
    document["all"]["children"]["controllers"] = {"hosts": {"switch-1": {}}}
    verdict = verdict_of(document, tmp_path)
    assert not told(verdict) and "switch-1" not in verdict.result["ids"]


def test_a_cluster_of_kraft_mode_stays_one(tmp_path):
    """The inventory of ZooKeeper mode for hosts on which a KRaft cluster is."""
    found = told(verdict_of(good(), tmp_path, facts=begun()))
    assert found["metadata.changed"] == NODES


def test_controllers_in_zookeeper_mode(tmp_path):
    document = good()
    document["all"]["children"]["controllers"] = {"hosts": {name: {} for name in NODES}}
    assert told(verdict_of(document, tmp_path)) == {"metadata.mixed": NODES}


def test_a_cluster_that_has_begun_is_in_order(tmp_path):
    verdict = verdict_of(kraft(), tmp_path, facts=begun())
    assert not told(verdict)
    assert verdict.result["storage"]["orders-prod"]["unformatted"] == []


def test_playbooks_that_are_not_fit_for_it_yet(tmp_path):
    assert told(verdict_of(kraft(), tmp_path, facts=begun(), fit_for=())) == {
        "metadata.not_yet": NODES
    }
    assert not told(verdict_of(good(), tmp_path, fit_for=()))


def test_a_new_cluster_begins_with_all_of_its_nodes(tmp_path):
    verdict = verdict_of(kraft(), tmp_path, raw={"kafka-3": {"in_play": False}})
    assert told(verdict) == {"quorum.unformatted": ["kafka-3"]}


def test_an_open_port_of_controllers_is_told_in_production(tmp_path):
    found = told(verdict_of(kraft(), tmp_path, unprotected=True))
    assert found["security.controller_open"] == NODES
    assert found["security.controller_plaintext"] == NODES
    bound = kraft(variables(kafka_controller_bind="192.0.2.1"))
    found = told(verdict_of(bound, tmp_path, unprotected=True))
    assert "security.controller_open" not in found
    assert found["security.controller_plaintext"] == NODES


def test_each_new_cluster_of_an_inventory_has_an_id_of_its_own(tmp_path):
    """With one for both, a disk of one would fit into the other: Kafka tells clusters apart by nothing else."""
    found = {}
    for name in ("orders-prod", "other"):
        (tmp_path / name).mkdir()
        verdict = verdict_of(kraft(variables(kafka_cluster_name=name)), tmp_path / name)
        found[name] = verdict.result["storage"][name]["cluster_id"]
    assert found["orders-prod"] == FRESH_CLUSTER_ID != found["other"]


def test_who_joins_gets_the_id_that_the_brokers_tell(tmp_path):
    """The hosts of the others are silent, so no disk tells it."""
    snapshot = {
        "cluster_id": "AAAAAAAAAAAAAAAAAAAAAA",
        "brokers": {node: ((f"kafka-{node}.example.com", 9092),) for node in (1, 2, 3)},
    }
    verdict = verdict_of(kraft(), tmp_path, snapshot=snapshot)
    assert verdict.result["storage"]["orders-prod"]["cluster_id"] == snapshot["cluster_id"]


@pytest.mark.parametrize(("value", "warned"), [("2", False), ("1", True)])
def test_the_setting_that_kafka_itself_makes_of_its_configuration(value, warned, tmp_path):
    """Kafka 4.1 and later begin a cluster with min.insync.replicas as a setting of the cluster."""
    snapshot = {
        "cluster_id": FRESH_CLUSTER_ID,
        "brokers": {node: ((f"kafka-{node}.example.com", 9092),) for node in (1, 2, 3)},
        "overrides": ((None, "min.insync.replicas", value),),
    }
    found = told(verdict_of(kraft(), tmp_path, facts=begun(), snapshot=snapshot))
    assert ("config.dynamic_override" in found) == warned, found


STATIC = {
    "controller.quorum.bootstrap.servers": None,
    "controller.quorum.voters": "4@c-1.example.com:9093,5@c-2.example.com:9093,6@c-3.example.com:9093",
}


def begun_static(voters=STATIC["controller.quorum.voters"]):
    """Facts of a cluster whose nodes name the voters in their configuration, whoever has made it."""
    facts = begun_apart()
    for each in facts.values():
        each["kafka/log_dirs/0/meta"]["directory.id"] = "AAAAAAAAAAAAAAAAAAAAAA"
        del each["kafka/current"]["controller.quorum.bootstrap.servers"]
        each["kafka/current"]["controller.quorum.voters"] = voters
    return facts


def test_a_static_quorum_stays_one(tmp_path):
    """Whatever the inventory says of new clusters."""
    verdict = verdict_of(apart(), tmp_path, facts=begun_static())
    assert not told(verdict)
    part = verdict.result["quorums"]["kafka-1"]
    assert part["static"] and [each["id"] for each in part["controllers"]] == [4, 5, 6]
    assert verdict.result["storage"]["orders-prod"]["initial_controllers"] == ""


def test_a_dynamic_quorum_stays_one(tmp_path):
    document = apart(variables(kafka_static_quorum=True))
    verdict = verdict_of(document, tmp_path, facts=begun_apart())
    assert not told(verdict)
    assert not verdict.result["quorums"]["c-1"]["static"]
    fresh = verdict_of(document, tmp_path)
    assert not told(fresh) and fresh.result["quorums"]["c-1"]["static"]
    assert fresh.result["storage"]["orders-prod"]["initial_controllers"] == ""


def test_other_voters_than_a_static_quorum_has(tmp_path):
    """Such as a broker that it counts among them: neither could start."""
    facts = begun_static("1@kafka-1.example.com:9093,5@c-2.example.com:9093,6@c-3.example.com:9093")
    assert told(verdict_of(apart(), tmp_path, facts=facts)) == {
        "quorum.changed": sorted([*NODES, *APART])
    }


@pytest.mark.parametrize(
    ("voters", "hosts"),
    [({4, 5, 6}, None), ({4, 5}, APART), ({1, 5, 6}, ["kafka-1"]), (None, None)],
)
def test_the_voters_of_the_quorum_that_runs(voters, hosts, tmp_path):
    """It may have changed by other hands. Where none leads, nobody knows."""
    snapshot = {
        "cluster_id": FRESH_CLUSTER_ID,
        "brokers": {node: ((f"kafka-{node}.example.com", 9092),) for node in (1, 2, 3)},
        "voters": None if voters is None else frozenset(voters),
    }
    found = told(verdict_of(apart(), tmp_path, facts=begun_apart(), snapshot=snapshot))
    assert found == ({"quorum.other_voters": hosts} if hosts else {})


DECIDED = {
    "num.partitions": 7,
    "unclean.leader.election.enable": True,
    "auto.leader.rebalance.enable": False,
    "delegation.token.max.lifetime.ms": 60000,
    "remote.log.storage.system.enable": True,
}


@pytest.mark.parametrize("key", DECIDED)
def test_what_brokers_say_and_controllers_decide(key, tmp_path):
    value = DECIDED[key]
    alone = {"all": {"children": {"kafka": {"vars": {"kafka_config": {key: value}}}}}}
    assert told(verdict_of(apart(alone), tmp_path)).get("quorum.settings") == NODES
    alike = variables(kafka_config={key: value})
    assert "quorum.settings" not in told(verdict_of(apart(alike), tmp_path))
    own = {"all": {"children": {"kafka": {"vars": {"kafka_config": {"num.io.threads": 9}}}}}}
    assert not told(verdict_of(apart(own), tmp_path))


def of_group(name, **values):
    """An overlay of the variables of one group."""
    return {"all": {"children": {name: {"vars": values}}}}


def of_host(name, **values):
    """An overlay of the variables of one controller."""
    return {"all": {"children": {"controllers": {"hosts": {name: values}}}}}


SECRET, OLD_SECRET = "delegation.token.secret.key", "delegation.token.master.key"


@pytest.mark.parametrize("key", DECIDED)
@pytest.mark.parametrize("make, odd", [(kraft, "kafka-2"), (apart, "c-2")])
def test_controllers_that_decide_by_different_files(make, odd, key, tmp_path):
    """Which of them is in force changes with each election."""
    spoilt = make(of_host(odd, kafka_host_config={key: DECIDED[key]}))
    (finding,) = [each for each in verdict_of(spoilt, tmp_path).findings if each.level == "error"]
    assert (finding.check, finding.subjects) == ("quorum.settings", (odd,))
    assert finding.setting == f"kafka_host_config.{key}"
    assert "changes with each election" in finding.reason
    # who starts what ran is not refused
    assert not verdict_of(spoilt, tmp_path, purpose="start").errors


@pytest.mark.parametrize(
    "key, value",
    [
        ("num.partitions", 1),
        ("unclean.leader.election.enable", "False"),
        ("default.replication.factor", "3"),
        ("auto.leader.rebalance.enable", True),
        ("alter.config.policy.class.name", ""),
    ],
)
@pytest.mark.parametrize("make, name", [(kraft, "kafka-2"), (apart, "c-2"), (apart, "kafka-2")])
def test_a_value_that_the_others_have_by_default(make, name, key, value, tmp_path):
    spoilt = make(of_host(name, kafka_host_config={key: value}))
    if name == "kafka-2" and make is apart:
        spoilt = make(
            {"all": {"children": {"kafka": {"hosts": {name: {"kafka_host_config": {key: value}}}}}}}
        )
    assert "quorum.settings" not in told(verdict_of(spoilt, tmp_path))


def test_what_brokers_do_not_say_they_have_from_the_controllers(tmp_path):
    spoilt = apart(of_group("controllers", kafka_config={"num.partitions": 7}))
    assert not told(verdict_of(spoilt, tmp_path))


@pytest.mark.parametrize(
    "of_brokers, of_controllers, hosts",
    [
        ({}, {SECRET: "hush"}, NODES),
        ({SECRET: "hush"}, {}, NODES),
        ({SECRET: "hush"}, {SECRET: ""}, NODES),
        ({SECRET: "hush"}, {SECRET: "hush-hush"}, NODES),
        ({SECRET: "hush"}, {SECRET: "hush"}, None),
        ({OLD_SECRET: "hush"}, {SECRET: "hush"}, None),
        ({OLD_SECRET: "hush-hush"}, {SECRET: "hush"}, NODES),
    ],
)
def test_a_secret_that_not_all_nodes_have(of_brokers, of_controllers, hosts, tmp_path):
    spoilt = apart(
        merge(
            variables(kafka_version="3.9.2"),
            merge(
                of_group("kafka", kafka_config=of_brokers),
                of_group("controllers", kafka_config=of_controllers),
            ),
        )
    )
    verdict = verdict_of(spoilt, tmp_path)
    assert told(verdict).get("quorum.settings") == hosts
    assert "hush" not in repr(verdict)


def test_a_secret_of_one_controllers_own(tmp_path):
    spoilt = kraft(variables(kafka_config={SECRET: "hush"}))
    spoilt = merge(spoilt, of_host("kafka-3", kafka_host_config={SECRET: "hush-hush"}))
    verdict = verdict_of(spoilt, tmp_path)
    assert told(verdict) == {"quorum.settings": ["kafka-3"]}
    assert (
        "hush" not in repr(verdict) and "another one than on kafka-1" in verdict.findings[0].reason
    )


UNCLEAN = {"unclean.leader.election.enable": True}
LOW = {"min.insync.replicas": 1}
RUNS = {"unclean.leader.election.enable": "false", "min.insync.replicas": "2"}


def ran_apart():
    """Facts of controllers and brokers that have run with the defaults."""
    facts = begun_apart()
    for each in facts.values():
        each["kafka/current"] = {**each["kafka/current"], **RUNS}
    return facts


def test_what_controllers_decide_is_judged_at_controllers_that_are_no_brokers(tmp_path):
    """Theirs is the value in force, whatever the brokers have."""
    spoilt = apart(of_group("controllers", kafka_config={**UNCLEAN, **LOW}))
    verdict = verdict_of(spoilt, tmp_path, facts=ran_apart())
    assert told(verdict) == dict.fromkeys(
        ("min_insync.cut", "replication.unclean", "unclean.election"), APART
    )
    assert {each.check for each in verdict.errors} == {"min_insync.cut", "unclean.election"}
    assert len(verdict.findings) == 3
    many = apart(of_group("controllers", kafka_config={"default.replication.factor": 5}))
    assert told(verdict_of(many, tmp_path)) == {"replication.exceeds_brokers": APART}


def test_what_all_nodes_have_is_told_once(tmp_path):
    spoilt = apart(variables(kafka_config={**UNCLEAN, **LOW}))
    verdict = verdict_of(spoilt, tmp_path, facts=ran_apart())
    everybody = sorted([*NODES, *APART])
    assert [sorted(each.subjects) for each in verdict.findings] == [everybody] * 3


def test_what_brokers_decide_is_not_judged_at_controllers(tmp_path):
    theirs = {"log.retention.hours": 1, "offsets.topic.replication.factor": 9}
    spoilt = apart(of_group("controllers", kafka_config=theirs))
    assert not told(verdict_of(spoilt, tmp_path, facts=ran_apart()))


@pytest.mark.parametrize("variable", ["kafka_config", "kafka_host_config"])
@pytest.mark.parametrize(
    "key, value, instead",
    [
        ("controller.sasl.enabled.mechanisms", "SCRAM-SHA-512", "kafka_sasl"),
        ("CONTROLLER.sasl.enabled.mechanisms", "PLAIN", "kafka_sasl"),
        ("controller.plain.sasl.jaas.config", "M required;", "kafka_sasl"),
        ("Controller.scram-sha-512.sasl.jaas.config", "M required;", "kafka_sasl"),
        ("controller.sasl.jaas.config", "M required;", "kafka_sasl"),
        ("controller.ssl.client.auth", "none", "kafka_ssl"),
        ("controller.ssl.truststore.location", "/srv/all.pem", "kafka_ssl"),
    ],
)
def test_the_login_at_the_controllers_is_not_set_by_hand(key, value, instead, variable, tmp_path):
    """Users of SCRAM stand in the metadata; and whoever reaches a port that asks for no name may change everything."""
    overlay = variables(**{variable: {f"listener.name.{key}": value}})
    verdict = verdict_of(kraft(overlay), tmp_path)
    assert told(verdict) == {"config.owned_key": NODES}
    (finding,) = verdict.findings
    assert finding.remedy == f"set {instead}" and "required;" not in finding.line()


@pytest.mark.parametrize(
    "key, mode",
    [
        ("internal.ssl.client.auth", "kraft"),
        ("internal.plain.sasl.jaas.config", "kraft"),
        ("controllers.ssl.client.auth", "kraft"),
        ("controller.num.network.threads", "kraft"),
        ("controller.ssl.client.auth", "zookeeper"),
    ],
)
def test_what_belongs_to_a_listener_of_brokers_or_to_no_login_is_free(key, mode, tmp_path):
    value = "9" if key.endswith("threads") else "none"
    overlay = variables(kafka_config={f"listener.name.{key}": value})
    document = kraft(overlay) if mode == "kraft" else merge(good(), overlay)
    assert not told(verdict_of(document, tmp_path))


def test_which_nodes_are_sick(tmp_path):
    """Controllers that are not brokers are in no answer about replicas: the quorum tells of them."""
    raws, _inventory, _groups = gather(apart(), tmp_path)
    facts = begun_apart()
    members = []
    for raw in raws:
        known = {"log_dirs": [{"meta": facts[raw.name]["kafka/log_dirs/0/meta"]}]}
        members.append(read_member(dataclasses.replace(raw, facts={"kafka": known}))[0])
    (cluster,) = World(tuple(members)).clusters
    voters = [{"id": node, "keeps_up": node != 5} for node in (4, 5, 6)]
    answer = {"in_sync": [1, 3], "quorum": {"leader": 4, "voters": voters}}
    assert healthy_nodes(cluster, answer) == [1, 3, 4, 6]
    unknown = {"in_sync": [1, 3], "quorum": {"leader": None, "voters": []}}
    assert healthy_nodes(cluster, unknown) == [1, 3, 4, 5, 6]
