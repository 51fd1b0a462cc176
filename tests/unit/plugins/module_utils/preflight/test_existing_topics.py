# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What existing topics make impossible is told before the first change, in the words of the plan."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    ConfigEntry,
    Partition,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Snapshot as TopicSnapshot,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    parse_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.plan import (
    TopicPolicy,
    plan_topics,
)
from tests.unit.plugins.module_utils.preflight import good_inventory as ground

DEFAULTS = {
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
}
BROKERS = {number: ((f"192.0.2.2{number}", 9092),) for number in (1, 2, 3)}


def topic(name, partitions=12, replicas=3, **own):
    """A topic of the running cluster; `own`: settings of its own, dots written as underscores."""
    config = {key: ConfigEntry(key, value, fallback=value) for key, value in DEFAULTS.items()}
    for key, value in own.items():
        key = key.replace("_", ".")
        config[key] = ConfigEntry(key, value, "topic", fallback=DEFAULTS.get(key))
    members = tuple(range(replicas))
    parts = tuple(Partition(index, 0, members, members) for index in range(partitions))
    return Topic(name, parts, config)


def findings(tmp_path, declared, *existing, allow=(), policies=(), **more):
    """Findings of the good inventory with these topics declared, where these exist."""
    facts = {f"zookeeper-{n}": {"zookeeper/data/has_data": True} for n in (1, 2, 3)}
    for number in (1, 2, 3):
        facts[f"kafka-{number}"] = {
            "kafka/started/alive": True,
            "kafka/log_dirs/0/meta": {"broker.id": str(number), "cluster.id": "AAAA"},
        }
    variables = {"=kafka_topics": declared, "kafka_topics_allow": list(allow)}
    variables["kafka_retention_policies"] = list(policies)
    document = ground.merge(ground.good(), {"all": {"children": {"kafka": {"vars": variables}}}})
    snapshot = {
        "cluster_id": "AAAA",
        "brokers": BROKERS,
        "topics": {each.name: each for each in existing},
    }
    return ground.verdict_of(document, tmp_path, facts, snapshot, **more).findings


ORDERS = {"name": "orders", "partitions": 12, "replication_factor": 3, "retention": "7d"}


@pytest.mark.parametrize(
    "declared, existing, check, consent",
    [
        (ORDERS, topic("orders", 24), "partitions.decrease", ""),
        (ORDERS, topic("orders", 6), "partitions.growth", "partition_growth"),
        (ORDERS, topic("orders", replicas=2), "replication.change", ""),
        (ORDERS, topic("orders", retention_ms="-1"), "retention.cut", "retention_cut"),
        ({**ORDERS, "cleanup": "compact"}, topic("orders"), "cleanup.change", "cleanup_change"),
        ({"name": "orders", "state": "absent"}, topic("orders"), "topics.delete", "delete"),
        # not declared, and in the way
        ({**ORDERS, "name": "a_b"}, topic("a.b"), "topics.collision", ""),
    ],
)
def test_it_is_refused_before_a_broker_restarts(tmp_path, declared, existing, check, consent):
    (found,) = findings(tmp_path, [declared], existing)
    assert (found.check, found.level) == (check, "error")
    assert found.setting.startswith(f"kafka_topics[{declared['name']}]")
    # one plan function: what the step of topics would say, but for the records at stake
    desired, _refusals = parse_topics([declared])
    running = TopicSnapshot(topics={existing.name: existing}, broker_defaults=DEFAULTS)
    (refusal,) = plan_topics(desired, running, TopicPolicy()).refusals
    assert (found.check, found.reason, found.remedy) == (check, refusal.reason, refusal.remedy)
    if consent:
        assert not findings(tmp_path, [declared], existing, allow=[consent])


def test_nothing_is_said_of_what_is_as_declared(tmp_path):
    compacted = topic("customers", 3, cleanup_policy="compact")
    declared = [ORDERS, {"name": "customers", "partitions": 3, "cleanup": "compact"}]
    assert not findings(tmp_path, declared, topic("orders"), compacted)


def test_what_could_not_even_be_made_is_told_once(tmp_path):
    wrong = {**ORDERS, "config": {"no.such.key": 1}}
    (found,) = findings(tmp_path, [wrong], topic("orders"))
    assert found.check == "config.unknown_key"


@pytest.mark.parametrize(
    "more", [{"reconciles": False}, *({"purpose": name} for name in ("keep", "start"))]
)
def test_a_run_that_leaves_topics_alone_is_not_refused_for_them(tmp_path, more):
    """A broker is replaced, and nobody asks for the partitions of a topic."""
    assert not findings(tmp_path, [ORDERS], topic("orders", 24), **more)


@pytest.mark.parametrize(
    "policy, own, check, consent",
    [
        ({"keep_for": "1d"}, {}, "retention.cut", "retention_cut"),
        ({"keep_up_to": "1GiB"}, {}, "retention.cut", "retention_cut"),
        ({"cleanup": "compact"}, {}, "cleanup.change", "cleanup_change"),
        ({"keep_for": "7d"}, {"retention_ms": "-1"}, "retention.cut", "retention_cut"),
    ],
)
def test_a_policy_that_deletes_is_refused_before_a_broker_restarts(
    tmp_path, policy, own, check, consent
):
    """Of topics that nobody declares, too; where nothing is cut, or nobody changes topics, it is not."""
    policies = [{"match": "logs[.].*", **policy}]
    web, other = topic("logs.web", **own), topic("web", **own)
    (found,) = findings(tmp_path, [], web, other, policies=policies)
    assert (found.check, found.level) == (check, "error")
    ((option, value),) = policy.items()
    assert (found.setting, found.value) == (f"kafka_retention_policies[0].{option}", value)
    assert found.reason.startswith("logs.web: ")
    assert not findings(tmp_path, [], web, other, policies=policies, allow=[consent])
    assert not findings(tmp_path, [], web, policies=policies, reconciles=False)
    free = [{"match": "logs[.]web", "leave_alone": True}, *policies]
    assert not findings(tmp_path, [], web, policies=free)
