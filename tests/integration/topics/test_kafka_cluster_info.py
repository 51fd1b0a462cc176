# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_cluster_info: describing, waiting, and what a controller change does to a client."""

from __future__ import annotations

import time

import pytest

from tests.support.outside import free_port
from tests.support.run_module import run_module


def test_a_healthy_cluster(modules, cluster, name):
    """Everything that is there, and nothing amiss."""
    modules.topics([{"name": name, "partitions": 3, "replication_factor": 3}])
    info = modules.info(wait={"full_isr": True}, zookeeper=cluster.zookeeper_connect)
    assert info.changed is False and info.reachable is True
    assert [broker["id"] for broker in info.brokers] == [1, 2, 3]
    first = info.brokers[0]
    assert (first["host"], first["port"], first["rack"]) == (
        "127.0.0.1",
        cluster.broker_port(1),
        "rack-1",
    )
    assert sum(broker["leaders"] for broker in info.brokers) == info.partition_count
    assert info.under_replicated == info.under_min_isr == info.offline == []
    assert info.replica_holders == [1, 2, 3] and info.missing_brokers == []
    registered = info.zookeeper
    assert registered["exists"] and registered["cluster_id"] == info.cluster_id
    assert registered["controller"]["id"] == info.controller
    quorum = modules.info(quorum=True)
    assert quorum.failed and "have no quorum: their cluster keeps its metadata" in quorum.msg
    asked = {"bootstrap_servers": cluster.bootstrap_servers, "levels": {"metadata.version": 21}}
    features = run_module("kafka_features", asked)
    assert features.failed and "finalise no features: their cluster keeps its" in features.msg
    assert [broker["id"] for broker in registered["brokers"]] == [1, 2, 3]
    assert all(broker["czxid"] and broker["ephemeral_owner"] for broker in registered["brokers"])
    assert (
        f"PLAINTEXT://127.0.0.1:{cluster.broker_port(1)}" in registered["brokers"][0]["endpoints"]
    )


def test_nothing_is_there(modules):
    """With missing_ok: said, and quickly; without it: a failure."""
    address = f"127.0.0.1:{free_port()}"
    options = {
        "bootstrap_servers": address,
        "timeout": 1,
        "zookeeper": f"{address}/kafka",
        "zookeeper_timeout": 1,
    }
    info = modules.info(missing_ok=True, **options)
    assert not info.failed and info.reachable is False and info.zookeeper["reachable"] is False
    assert info.brokers == [] and address in info.unreachable_reason
    assert modules.info(**options).failed


def test_only_the_ensemble_is_there(modules, cluster, name):
    """Ids that hold replicas are known even if no broker can be asked."""
    modules.topics([{"name": name, "replication_factor": 3}])
    info = modules.info(
        bootstrap_servers=f"127.0.0.1:{free_port()}",
        missing_ok=True,
        zookeeper=cluster.zookeeper_connect,
    )
    assert info.reachable is False and info.zookeeper["reachable"] is True
    assert info.replica_holders == [1, 2, 3]


def test_topics_on_the_default_min_isr_are_the_same_for_brokers_and_ensemble(
    modules, cluster, name
):
    """Without those that have a value of their own."""

    def of_three(info):
        return sum(each["topics"] for each in info.on_default_min_isr if each["replicas"] == 3)

    before = of_three(modules.info())
    own = {"name": f"{name}-own", "replication_factor": 3, "config": {"min.insync.replicas": 1}}
    made = modules.topics([{"name": name, "replication_factor": 3}, own])
    assert made.changed is True
    asked = modules.info()
    read = modules.info(
        bootstrap_servers=f"127.0.0.1:{free_port()}",
        missing_ok=True,
        zookeeper=cluster.zookeeper_connect,
    )
    assert read.on_default_min_isr == asked.on_default_min_isr
    assert of_three(asked) == before + 1


def test_a_topic_that_is_named_is_told_with_its_settings(modules, name):
    """As the preflight wants to know it; one that does not exist is left out."""
    declared = {"name": name, "partitions": 2, "replication_factor": 3, "retention": "1d"}
    assert modules.topics([declared]).changed is True
    (told,) = modules.info(topics=[name, f"{name}-absent"]).topics
    assert (told["name"], told["replicas"]) == (name, [3, 3])
    retention = {"value": "86400000", "source": "topic", "fallback": "604800000"}
    assert told["config"]["retention.ms"] == retention
    assert told["config"]["cleanup.policy"]["value"] == "delete"


def test_a_chroot_that_nobody_made(modules, cluster):
    """An ensemble without Kafka in it."""
    connect = cluster.zookeeper_connect.replace("/kafka", "/elsewhere")
    found = modules.info(zookeeper=connect).zookeeper
    assert found["exists"] is False and found["brokers"] == [] and found["cluster_id"] is None


def test_waiting_in_vain_names_what_is_missing(modules):
    """A broker that does not exist."""
    result = modules.info(wait={"brokers": [1, 2, 3, 7], "timeout": 1})
    assert result.failed and "not registered: broker 7" in result.msg


def test_wrong_credentials_are_not_waited_for(modules, cluster):
    """They do not become right."""
    result = modules.info(
        bootstrap_servers=cluster.listener_address("LOGIN"), wait={"timeout": 300}
    )
    assert result.failed and "wrong protocol" in result.msg


@pytest.fixture
def without_controller(modules, cluster, name):
    """The controller is stopped; started again and in sync afterwards. Yields its id."""
    modules.topics([{"name": name, "partitions": 3, "replication_factor": 3}])
    assert not modules.info(wait={"full_isr": True, "brokers": [1, 2, 3]}).failed
    victim = modules.info().controller
    yield victim
    cluster.broker_instances[victim].start()
    back = modules.info(wait={"full_isr": True, "brokers": [1, 2, 3], "quiet_seconds": 1})
    assert not back.failed, back.msg


def test_the_controller_leaves(modules, cluster, name, without_controller):
    """A client that knew the old controller still gets its topic; what lacks is named."""
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
        KafkaClient,
    )
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
        Connection,
    )
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change

    addresses = tuple(("127.0.0.1", cluster.broker_port(broker)) for broker in (1, 2, 3))
    client = KafkaClient(Connection(addresses, timeout=20))
    client.connect()
    client.fetch_topics([name])
    victim = without_controller
    cluster.broker_instances[victim].stop()

    change = Change(
        "create",
        f"{name}-late",
        {},
        {"partitions": 1, "replication_factor": 1, "config": {"min.insync.replicas": "1"}},
    )
    assert client.apply([change], time.monotonic() + 60) == []

    waited = modules.info(wait={"full_isr": True, "timeout": 1})
    assert waited.failed and "partitions not fully in sync" in waited.msg
    assert f"-0 lacks {victim}" in waited.msg
    info = modules.info(wait={"controller": True})
    assert info.controller != victim and info.missing_brokers == [victim]
    lacking = {(part["topic"], part["partition"]) for part in info.under_replicated}
    assert {(name, 0), (name, 1), (name, 2)} <= lacking
    assert all(victim not in part["isr"] for part in info.under_replicated)
    refused = modules.topics([{"name": f"{name}-three", "replication_factor": 3}])
    assert refused.checks == [("replication.exceeds_brokers", f"{name}-three")]
