# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that move leaders and replicas, or advise on partitions, ask as often for many partitions as for a few."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from kafka import KafkaAdminClient, TopicPartition

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
    BATCH,
    KafkaClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    Connection,
    parse_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves import reassignment
from tests.support.outside import wait_until
from tests.support.run_module import run_module

SIZES = [(3, 120), pytest.param((10, 1000), marks=pytest.mark.soak)]
# How often one looks until it is true is a matter of time.
LOOKS = {"metadata", "listing reassignments"}


@pytest.fixture(name="requests")
def requests_of_clients(monkeypatch):
    """Return a call that runs a module and returns (result, what it has asked how often, looks left out)."""
    made = []
    begin = KafkaClient.__init__

    def noted(self, *arguments, **options):
        begin(self, *arguments, **options)
        made.append(self)

    monkeypatch.setattr(KafkaClient, "__init__", noted)

    def call(module, **options):
        made.clear()
        result = run_module(module, options)
        assert not result.failed, result.msg
        total = {}
        for client in made:
            for what, count in client.requests.items():
                total[what] = total.get(what, 0) + count
        return result, {what: count for what, count in total.items() if what not in LOOKS}

    return call


def lie_everywhere(cluster, topic, placed):
    """Whether every broker says that each partition has these replicas; they learn of it one after another."""
    asked = KafkaClient(Connection(parse_addresses([cluster.bootstrap_servers])))
    asked.connect()
    views = asked.fetch_every_view(asked.fetch_metadata())
    return len(views) == 3 and all(
        view
        and topic in view.topics
        and [tuple(part.replicas) for part in view.topics[topic].partitions] == placed
        for view in views.values()
    )


@pytest.fixture(name="topics", params=SIZES, ids=str)
def topics_of_both_sizes(request, cluster, admin, name):
    """Return {number of partitions: topic}; each partition lies on brokers 1, 2 and 3 in this order."""
    found = {number: f"{name}-{number}" for number in request.param}
    for number, topic in found.items():
        placed = [[1, 2, 3]] * number
        new = NewTopic(
            topic, number, replica_assignment=placed, config={"min.insync.replicas": "1"}
        )
        admin.create_topics([new])[topic].result(30)
        wait_until(
            lambda topic=topic, number=number: lie_everywhere(cluster, topic, [(1, 2, 3)] * number),
            180,
            "created",
        )
    info = {"bootstrap_servers": cluster.bootstrap_servers, "wait": {"full_isr": True}}
    assert not run_module("kafka_cluster_info", info).failed
    yield found
    for future in admin.delete_topics(list(found.values())).values():
        future.result(30)


def test_moves(cluster, topics, requests, monkeypatch):
    monkeypatch.setattr(
        reassignment, "TELL_SECONDS", 600.0
    )  # each line about progress asks for sizes
    asked = {}
    for number, topic in topics.items():
        result, asked[number] = requests(
            "kafka_reassignment",
            bootstrap_servers=cluster.bootstrap_servers,
            topics=[topic],
            drain=[1],
            replication_factor=2,
            allow=["fewer_replicas"],
            batch=max(topics),
        )
        assert result.changed and len(result.plan["changes"]) == number
    few, many = asked.values()
    assert few == many and many["altering reassignments"] == 1


def test_elections(cluster, topics, requests):
    """Another order of replicas copies nothing, and the leader is not the preferred one any more."""
    other = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    asked = {}
    for number, topic in topics.items():
        order = {TopicPartition(topic, each): [2, 3, 1] for each in range(number)}
        other.alter_partition_reassignments(order)
        wait_until(
            lambda topic=topic, number=number: lie_everywhere(cluster, topic, [(2, 3, 1)] * number),
            180,
            "the order is another one",
        )
        options = {"bootstrap_servers": cluster.bootstrap_servers, "topics": [topic]}
        result, asked[number] = requests("kafka_leader_election", **options)
        assert result.changed and len(result.plan["changes"]) == number
    other.close()
    print(f"\n{asked}")
    few, many = asked.values()
    batches = -(-max(topics) // BATCH)
    assert few["elect_leaders"] == 1 and many == {**few, "elect_leaders": batches}


def test_advice(cluster, topics, requests):
    asked = {}
    for number, topic in topics.items():
        options = {"bootstrap_servers": cluster.bootstrap_servers, "topics": [{"name": topic}]}
        _result, asked[number] = requests("kafka_partition_advice", **options)
    print(f"\n{asked}")
    few, many = asked.values()
    assert few == many


LEAST = 250  # topics of one request, where there are many: up to 500, over three connections


@pytest.mark.soak
def test_ten_thousand_topics_in_one_task(both, name, requests):
    """Made, left alone, changed and deleted: the requests grow by batches, and Kafka has what was asked for."""
    few, many = 10, 10_000
    admin = AdminClient({"bootstrap.servers": both.bootstrap_servers})
    steps = {
        "create": {"retention": "7d"},
        "unchanged": {"retention": "7d"},
        "alter": {"retention": "14d"},
        "delete": {"state": "absent"},
    }
    shape = {"partitions": 1, "replication_factor": 1, "config": {"min.insync.replicas": 1}}
    asked = {}
    for number in (few, many):
        names = [f"{name}-{number}-{index:05}" for index in range(number)]
        for step, wanted in steps.items():
            items = [
                {"name": each, **({} if step == "delete" else shape), **wanted} for each in names
            ]
            result, asked[step, number] = requests(
                "kafka_topics",
                bootstrap_servers=both.bootstrap_servers,
                topics=items,
                allow=["delete"],
                operation_timeout=1200,
            )
            assert result.changed is (step != "unchanged")
            assert len(result.plan["changes"]) == (number if result.changed else 0)
            there = set(admin.list_topics(timeout=60).topics) & set(names)
            assert len(there) == (0 if step == "delete" else number)
            if step != "delete":
                last = ConfigResource(ConfigResource.Type.TOPIC, names[-1])
                (future,) = admin.describe_configs([last]).values()
                days = int(future.result(60)["retention.ms"].value) / 86_400_000
                assert days == int(wanted["retention"].rstrip("d"))
    print(f"\n{asked}")
    for step in steps:
        for what, count in asked[step, many].items():
            base = asked[step, few].get(what, 0)
            assert count <= max(base, 1) * many // LEAST, (step, what, base, count)
