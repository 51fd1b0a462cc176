# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole modules on the wire, through both client libraries, against a broker without a JVM."""

from __future__ import annotations

import pytest

from tests.support.run_module import run_module
from tests.support.wire_broker import CLUSTER_ID, WireBroker, closed_port

POLICY_VIOLATION = 44
KINDS = {
    "kafka_topics": (
        "topics",
        lambda name: {"name": name, "retention": "3d"},
        lambda name: {"name": name, "state": "absent"},
        {"allow": ["delete"]},
    ),
    "kafka_quotas": (
        "quotas",
        lambda name: {"user": name, "limits": {"producer_byte_rate": 1024}},
        lambda name: {"user": name, "state": "absent"},
        {},
    ),
    "kafka_acls": (
        "acls",
        lambda name: {"topic": name, "principal": "a", "operations": "read"},
        lambda name: {"topic": name, "principal": "a", "operations": "read", "state": "absent"},
        {},
    ),
}


@pytest.fixture(name="broker")
def _broker():
    with WireBroker() as found:
        yield found


def run(broker, module, check=False, **options):
    """A module against the broker."""
    options = {"bootstrap_servers": broker.address, "timeout": 10, **options}
    return run_module(module, options, check)


def held(broker):
    """What the broker has, as text that can be compared."""
    return repr((broker.topics, broker.quotas, broker.acls))


@pytest.mark.parametrize("module", sorted(KINDS))
def test_created_unchanged_and_removed_as_checked(broker, module):
    option, there, gone, allow = KINDS[module]
    for make in (there, gone):
        items = {option: [make(f"n{number}") for number in range(3)]}
        before = held(broker)
        looked = run(broker, module, True, **items, **allow)
        assert looked.changed and held(broker) == before, looked.values
        done = run(broker, module, **items, **allow)
        assert not done.failed and done.changed and held(broker) != before, done.values
        assert (done.plan, done.diff) == (looked.plan, looked.diff)
        assert run(broker, module, **items, **allow).changed is False
    assert not (broker.topics or broker.quotas or broker.acls)


def test_settings_and_partitions_of_a_topic(broker):
    """Only what is named is sent, and what is dangerous is refused."""
    broker.topics["t"] = [2, {"retention.ms": "86400000", "segment.ms": "1000000"}]
    item = {"name": "t", "partitions": 4, "retention": "2d"}
    refused = run(broker, "kafka_topics", topics=[item])
    assert refused.checks == [("partitions.growth", "t")] and broker.topics["t"][0] == 2
    done = run(broker, "kafka_topics", topics=[item], allow=["partition_growth"])
    assert done.changed and not done.failed, done.values
    assert broker.topics["t"] == [4, {"retention.ms": "172800000", "segment.ms": "1000000"}]
    replaced = {"config_mode": "replace", "topics": [item]}
    assert run(broker, "kafka_topics", **replaced).changed
    assert broker.topics["t"] == [4, {"retention.ms": "172800000"}]


@pytest.mark.parametrize("module", sorted(KINDS))
def test_what_is_refused_when_it_is_made_is_named_and_the_rest_is_done(broker, module):
    option, there, _gone, _allow = KINDS[module]
    broker.refusals["b"] = (POLICY_VIOLATION, "the owner says no")
    done = run(broker, module, **{option: [there(name) for name in "abc"]})
    assert (
        done.failed and done.changed and done.msg.startswith("2 of 3 changes were made")
    ), done.msg
    (failure,) = done.failed_items
    assert failure["code"] == "POLICY_VIOLATION" and "the owner says no" in failure["error"]
    assert "b" in failure["name"].split() or failure["name"].endswith("=b")
    assert "b" not in str(list(done.diff["after"])) or module == "kafka_acls"
    assert len(broker.topics or broker.quotas or broker.acls) == 2


# Looks until it is there, and what a connection costs: a matter of time.
NOT_COUNTED = {"Metadata", "ApiVersions"}


@pytest.mark.parametrize("module", sorted(KINDS))
def test_ten_and_a_thousand_take_as_many_requests(broker, module):
    """But for batches of 500, or of a third where they go over three connections."""
    option, there, gone, allow = KINDS[module]
    counts = {}
    for number in (10, 1000):
        names = [f"n{each}" for each in range(number)]
        for step, make in (("create", there), ("unchanged", there), ("remove", gone)):
            broker.requests.clear()
            done = run(broker, module, **{option: [make(name) for name in names]}, **allow)
            assert not done.failed and done.changed is (step != "unchanged"), done.msg
            counts[number, step] = {
                key: count for key, count in broker.requests.items() if key not in NOT_COUNTED
            }
    for step in ("create", "unchanged", "remove"):
        few, many = counts[10, step], counts[1000, step]
        assert few.keys() == many.keys() and few
        assert all(many[key] <= 3 * few[key] for key in many), (few, many)


def test_what_is_read_can_be_declared(broker):
    """The infos tell it in the form in which it is taken, and then nothing changes."""
    broker.quotas[(("user", "a"), ("client-id", None))] = {"consumer_byte_rate": 5.0}
    broker.acls.append(
        {
            "resource_type": 2,
            "resource_name": "t",
            "pattern_type": 4,
            "principal": "User:a",
            "host": "*",
            "operation": 3,
            "permission_type": 2,
        }
    )
    before = held(broker)
    for kind in ("quotas", "acls"):
        told = run(broker, f"kafka_{kind}_info").values[kind]
        assert len(told) == 1
        again = run(broker, f"kafka_{kind}", **{kind: told})
        assert again.changed is False and not again.failed, again.values
    assert held(broker) == before


@pytest.mark.parametrize(
    "module, options, without, words",
    [
        ("kafka_quotas_info", {}, "DescribeClientQuotas", "which came with Kafka 2.6"),
        ("kafka_acls_info", {}, "DescribeAcls", "which came with Kafka 0.11"),
        (
            *("kafka_topics", {"topics": [{"name": "old", "retention": "30d"}]}),
            *("IncrementalAlterConfigs", "IncrementalAlterConfigs"),
        ),
    ],
)
def test_a_request_that_the_broker_does_not_have_is_named(module, options, without, words):
    with WireBroker(without=[without]) as broker:
        broker.topics["old"] = [1, {}]
        told = run(broker, module, **options)
        assert told.failed and not told.values.get("changed"), told.values
        assert words in str(told.values), told.msg
        assert broker.topics["old"] == [1, {}]


def test_another_cluster_and_nobody_at_all(broker):
    item = {"topics": [{"name": "t"}]}
    right = run(broker, "kafka_topics", True, cluster_id=CLUSTER_ID, **item)
    assert right.changed and right.cluster_id == CLUSTER_ID
    other = run(broker, "kafka_topics", cluster_id="B" * 22, **item)
    assert other.failed and "[cluster.foreign]" in other.msg and not broker.topics
    options = {"bootstrap_servers": f"127.0.0.1:{closed_port()}", "timeout": 2, **item}
    nobody = run_module("kafka_topics", options)
    assert nobody.failed and nobody.msg.startswith("[connection.unreachable] 127.0.0.1:")
