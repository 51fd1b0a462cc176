# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_partition_advice against real clusters: its numbers are Kafka's own, and its predictions come true."""

from __future__ import annotations

import collections
import concurrent.futures
import os
import re
import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.client import (
    AdviceClient,
)
from tests.support.bare_cluster import BareCluster
from tests.support.outside import create_topics, wait_until
from tests.support.run_module import run_module

from .conftest import PORT_BASE

TOPICS = "org.apache.kafka.tools.TopicCommand"


def advice(secured, user="admin", **options):
    """The module."""
    return secured.run("kafka_partition_advice", user=user, **options)


def create(secured, topic, partitions=3, **config):
    """A topic with one replica more than the smallest cluster has, if there are so many brokers."""
    new = NewTopic(topic, partitions, min(2, secured.bare.brokers), config=config)
    create_topics(secured.client_settings(), [new])
    return AdminClient(secured.client_settings())


def bound(result, words):
    """The bound whose name begins like this, without those that a year has made obsolete."""
    return next(
        each for each in result.bounds if each["bound"].startswith(words) and each["year"] != 2015
    )


def open_things(pid, topic="[^/]+"):
    """(open segments, mapped indexes) of a process, by default of all topics."""
    place = rf"/{topic}-\d+/\d{{20}}"
    files = 0
    for each in os.listdir(f"/proc/{pid}/fd"):
        try:
            files += bool(re.search(rf"{place}\.log$", os.readlink(f"/proc/{pid}/fd/{each}")))
        except OSError:
            continue
    maps = Path(f"/proc/{pid}/maps").read_text()
    return files, len(re.findall(rf"{place}\.(?:time)?index$", maps, re.MULTILINE))


def test_its_numbers_are_those_of_kafka_and_of_the_kernel(secured, name):
    """Other tests' topics go meanwhile, so all is asked again until it was asked of the same topics."""
    create(secured, name, 5)
    producer = Producer({**secured.client_settings(), "acks": "all"})
    for number in range(15):
        # An index has its first entry with the first batch behind 4 KiB, and is not mapped without one.
        producer.produce(name, bytes(5000), partition=number % 5)
        assert producer.flush(30) == 0
    brokers = secured.bare.broker_instances
    seen = {}

    def held():
        told = secured.tool(TOPICS, "--describe")
        lines = re.findall(r"Topic: (\S+)\t.*\tReplicas: ([\d,]+)", told)
        everything, own = collections.Counter(), collections.Counter()
        for topic, of_partition in lines:
            everything.update(map(int, of_partition.split(",")))
            own.update(map(int, of_partition.split(",") if topic == name else ()))
        return len(lines), everything, own

    def of_the_same_topics():
        before, found = held(), advice(secured)
        kernel = {
            broker: (open_things(each.process.pid), open_things(each.process.pid, re.escape(name)))
            for broker, each in brokers.items()
        }
        seen.update(before=before, found=found, kernel=kernel)
        partitions, replicas, own = before
        of_broker, files, maps = (
            bound(found, f"{words} of a broker")
            for words in ("replicas", "open files", "memory maps")
        )
        worst = int(of_broker["where"].split()[1])
        holding = int(files["where"].split()[1])
        (segments, mapped), _own = kernel[holding]
        return (
            before == held()
            and bound(found, "partitions of the cluster")["now"] == partitions
            and of_broker["now"] == of_broker["planned"] == replicas[worst]
            and replicas[worst] == max(replicas.values())
            # At least so many: segments that were closed by time or are about to go are more.
            and replicas[holding] <= files["now"] <= segments
            and maps["now"] == 2 * files["now"]
            and mapped <= 2 * segments
            # Of what is written to it is exactly that.
            and all(kernel[each][1] == (own[each], 2 * own[each]) for each in brokers)
        )

    try:
        wait_until(of_the_same_topics, 120, "all is told of the same topics")
    except AssertionError:
        found = seen.pop("found")
        pytest.fail(f"{seen}: {found.bounds}")
    found = seen["found"]
    assert found.kraft is secured.bare.kraft and found.changed is False
    key = ("broker" if secured.bare.kraft else "zookeeper") + ".session.timeout.ms"
    assert key in found.estimates[0]["what"]
    assert found.estimates[0]["seconds"] == (9 if secured.bare.kraft else 18)
    assert found.estimates[0]["year"] is None and "this cluster" in found.estimates[0]["source"]
    assert found.watched is None and any("Estimated, not measured" in each for each in found.lines)


def test_planned_partitions_break_bounds_before_they_are_there(secured, name):
    found = advice(secured, topics=[{"name": name, "partitions": 20_000}])
    level = "note" if secured.bare.kraft else "beyond"
    assert bound(found, "replicas of a broker")["level"] == level
    assert bound(found, "partitions that one producer")["where"] == name
    admin = AdminClient(secured.client_settings())
    assert name not in admin.list_topics(timeout=10).topics, "it is only asked"


def where_keys_go(secured, topic, partitions, keys):
    """Key to partition, as the partitioner of Java clients chooses once it knows of all partitions."""
    settings = {**secured.client_settings(), "partitioner": "murmur2_random"}
    producer = Producer(settings)
    wait_until(
        lambda: len(producer.list_topics(topic, timeout=10).topics[topic].partitions) == partitions,
        *(30, "the producer knows of all partitions"),
    )
    placed = {}
    for key in keys:
        producer.produce(
            topic, b"x", key, on_delivery=lambda _e, m: placed.update({m.key(): m.partition()})
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    return placed


def test_as_many_keys_move_as_it_says(secured, name):
    admin = create(secured, name, 4)
    found = advice(secured, topics=[{"name": name, "partitions": 6, "throughput": "60MiB"}])
    (row,) = found.topics
    assert (row["partitions"], row["planned"], row["needed"], row["suggested"]) == (4, 6, 6, 8)
    assert row["keys_moved"] == 0.6667 and row["keys_moved_suggested"] == 0.5
    keys = [f"customer-{number}".encode() for number in range(3000)]
    before = where_keys_go(secured, name, 4, keys)
    admin.create_partitions([NewPartitions(name, 6)])[name].result(30)
    after = where_keys_go(secured, name, 6, keys)
    moved = sum(before[key] != after[key] for key in keys) / len(keys)
    # Three thousand throws: four standard deviations are 0.034.
    assert abs(moved - row["keys_moved"]) < 0.035


def test_what_growth_does_to_a_group_that_is_behind(secured, name):
    admin = create(secured, name, 2)
    producer = Producer(secured.client_settings())
    for number in range(100):
        producer.produce(name, b"x", partition=number % 2)
    producer.flush(30)
    reader = Consumer({**secured.client_settings(), "group.id": f"{name}-readers"})
    reader.commit(
        offsets=[TopicPartition(name, 0, 40), TopicPartition(name, 1, 50)], asynchronous=False
    )
    reader.close()
    topics = [{"name": name, "partitions": 4}]
    (row,) = advice(secured, topics=topics, sample_seconds=0.5).topics
    (group,) = row["groups"]
    assert (group["group"], group["lag"], group["members"]) == (f"{name}-readers", 10, 0)
    assert group["seconds_now"] is None, "nobody reads"
    assert any(
        "10 unread records" in each and "growth moves none" in each for each in row["advice"]
    )
    admin.create_partitions([NewPartitions(name, 4)])[name].result(30)
    wait_until(
        lambda: len(admin.list_topics(name, timeout=10).topics[name].partitions) == 4, 30, "grown"
    )
    lag = secured.run("kafka_consumer_groups_info", groups=[f"{name}-readers"])
    assert lag.groups[0]["lag"] == 10, "as it said"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"topics": [{"name": "no-such"}]}, "[advice.bad_item] no-such: name=no-such: there is no"),
        ({"topics": [{"name": "a", "partitions": 0}]}, "it is at least 1"),
        ({"topics": [{"name": "a", "throughput": "10G"}]}, "10G"),
        ({"sample_seconds": -1}, "[options.range] sample_seconds=-1"),
        ({"open_files": 0}, "[options.range] open_files=0"),
        ({"watch": {"broker": 77}}, "[options.range] watch.broker=77: no such broker is alive"),
    ],
)
def test_bad_input(on_kraft, options, words):
    failed = advice(on_kraft, **options)
    assert failed.failed and words in failed.msg


def test_nobody_dies(on_kraft):
    failed = advice(on_kraft, watch={"broker": 1, "timeout": 0.5})
    assert failed.failed and "[advice.nobody_died] broker 1:" in failed.msg


def test_without_rights_what_is_unknown_is_said(secured, name):
    create(secured, name)
    found = advice(secured, user="nobody")
    assert not found.failed and found.changed is False
    warnings = str(found.warnings)
    assert "DescribeConfigs on the cluster" in warnings and "memory maps are unknown" in warnings
    assert "open files" not in str(found.bounds)


def test_a_broker_that_dies_is_measured(tmp_path, monkeypatch):
    """Its session ends after four seconds: sooner than half of them nobody can take over."""
    fast = {"zookeeper.session.timeout.ms": 4000}
    with BareCluster(
        tmp_path, PORT_BASE + 200, zookeepers=1, broker_heap="256m", broker_config=fast
    ) as running:
        servers = running.bootstrap_servers
        whole = {"brokers": [1, 2, 3]}
        assert not run_module(
            "kafka_cluster_info", {"bootstrap_servers": servers, "wait": whole}
        ).failed
        new = [
            NewTopic("measured", 6, replica_assignment=[[2, 1], [2, 3]] * 3),
            NewTopic("alone", 1, replica_assignment=[[2]], config={"min.insync.replicas": "1"}),
        ]
        create_topics({"bootstrap.servers": servers}, new)
        settled = {"bootstrap_servers": servers, "wait": {**whole, "full_isr": True}}
        assert not run_module("kafka_cluster_info", settled).failed
        observe = AdviceClient.observe

        def observed(*arguments):
            watching.set()
            return observe(*arguments)

        watching = threading.Event()
        monkeypatch.setattr(AdviceClient, "observe", observed)
        options = {"bootstrap_servers": servers, "watch": {"broker": 2, "timeout": 60}}
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            result = pool.submit(run_module, "kafka_partition_advice", options)
            assert watching.wait(30)
            running.broker_instances[2].kill()
            result = result.result()
        assert not result.failed, result.msg
        found = result.watched
        assert (found["broker"], found["partitions"]) == (2, 7)
        assert 2 <= found["seconds_first"] <= found["seconds_last"] < 20
        assert found["without_leader"] == ["alone-0"], "nobody else has it"
        assert any("Measured: broker 2 died; of the 7 partitions" in each for each in result.lines)
