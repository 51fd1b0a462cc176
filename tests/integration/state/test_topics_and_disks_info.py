# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_topics_info and kafka_log_dirs_info against both real clusters, compared with Kafka's own tools."""

from __future__ import annotations

import json
import os

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kafka.protocol.admin import DescribeLogDirsRequest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
    connection_from,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    PythonClient,
    send,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import FinalError
from tests.support.outside import create_topics


@pytest.fixture
def filled(secured, admin, name):
    """A topic of two partitions with 100 records of 1,000 bytes each, and an empty one beside it."""
    factor = min(3, secured.bare.brokers)
    topics = [
        NewTopic(f"{name}.full", 2, factor, config={"retention.ms": "86400000"}),
        NewTopic(f"{name}.empty", 1, factor),
    ]
    create_topics(secured.client_settings(), topics)
    failed = []
    producer = Producer({**secured.client_settings(), "acks": "all"})
    for number in range(200):
        producer.produce(
            f"{name}.full",
            os.urandom(1000),
            partition=number % 2,
            on_delivery=lambda error, _message: failed.append(error) if error else None,
        )
    assert producer.flush(30) == 0 and not failed
    return name


def log_dirs_of_kafka(secured):
    """What Kafka's own tool says: broker to directory to {partition: bytes}."""
    text = secured.tool("org.apache.kafka.tools.LogDirsCommand", "--describe")
    told = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
    return {
        broker["broker"]: {
            each["logDir"]: {part["partition"]: part["size"] for part in each["partitions"]}
            for each in broker["logDirs"]
        }
        for broker in told["brokers"]
    }


def test_topics_with_settings_sizes_and_records(secured, filled):
    told = secured.run("kafka_topics_info", patterns=[f"{filled}[.].*"], partitions=True)
    assert not told.changed and not told.failed and told.missing == []
    empty, full = told.topics
    assert (empty["name"], empty["records"], empty["bytes"]) == (f"{filled}.empty", 0, 0)
    factor = min(3, secured.bare.brokers)
    assert (full["partitions"], full["replication_factor"], full["records"]) == (2, factor, 200)
    assert full["config"]["retention.ms"] == {"value": "86400000", "source": "topic"}
    assert "retention.ms" not in empty["config"]
    theirs = log_dirs_of_kafka(secured)
    sizes = [
        [
            found.get(f"{filled}.full-{index}", 0)
            for dirs in theirs.values()
            for found in dirs.values()
        ]
        for index in (0, 1)
    ]
    assert full["bytes"] == sum(map(max, sizes)) > 200 * 1000
    assert full["bytes_on_disks"] == sum(map(sum, sizes))
    described = secured.tool(
        "org.apache.kafka.tools.TopicCommand", "--describe", "--topic", full["name"]
    )
    for part in full["partition_list"]:
        assert f"Partition: {part['partition']}\tLeader: {part['leader']}\t" in described
        assert f"Replicas: {','.join(map(str, part['replicas']))}\t" in described
        assert (part["first_offset"], part["end_offset"]) == (0, 100)


def test_one_that_does_not_exist_is_named(secured, filled):
    told = secured.run(
        "kafka_topics_info", topics=[f"{filled}.ful", f"{filled}.full"], config="all", sizes=False
    )
    assert told.missing == [f"{filled}.ful"] and f"did you mean {filled}.full" in str(told.warnings)
    (full,) = told.topics
    assert full["config"]["segment.bytes"]["value"] == str(2**30)
    assert full["bytes"] is None and full["records"] == 200 and "partition_list" not in full
    wrong = secured.run("kafka_topics_info", patterns=["("])
    assert wrong.failed and "[options.range] patterns=(" in wrong.msg
    blind = secured.run("kafka_topics_info", user="nobody")
    assert not blind.failed and blind.topics == []


def test_disks_and_what_fills_them(secured, filled):
    told = secured.run("kafka_log_dirs_info", largest=0)
    theirs = log_dirs_of_kafka(secured)
    assert [each["id"] for each in told.brokers] == sorted(theirs) and not told.missing_brokers
    for broker in told.brokers:
        (directory,) = broker["directories"]
        stat = os.statvfs(directory["path"])
        total = stat.f_blocks * stat.f_frsize
        assert directory["online"] and directory["total_bytes"] == total
        assert abs(directory["usable_bytes"] - stat.f_bavail * stat.f_frsize) < total / 50
        found = theirs[broker["id"]][directory["path"]]
        assert directory["kafka_bytes"] == sum(found.values())
        sizes = [each["bytes"] for each in directory["topics"]]
        assert sizes == sorted(sizes, reverse=True) and sum(sizes) == directory["kafka_bytes"]
        (full,) = [each for each in directory["topics"] if each["name"] == f"{filled}.full"]
        expected = [size for part, size in found.items() if part.startswith(f"{filled}.full-")]
        assert (full["bytes"], full["replicas"]) == (sum(expected), len(expected))
    (few,) = secured.run("kafka_log_dirs_info", brokers=[1], largest=1).brokers
    assert few["id"] == 1 and len(few["directories"][0]["topics"]) == 1


def test_what_cannot_be_asked(secured):
    unknown = secured.run("kafka_log_dirs_info", brokers=[99])
    assert unknown.failed and "[options.range] brokers=99" in unknown.msg
    assert "less than nothing" in secured.run("kafka_log_dirs_info", largest=-1).msg
    nobody = secured.run("kafka_log_dirs_info", user="nobody")
    assert nobody.failed and "grant this user Describe on the cluster" in nobody.msg


def test_a_request_that_brokers_do_not_have_is_named_with_the_kafka_that_has_it(on_zookeeper):
    """Version 5 of this one came with Kafka 4.3; `tests/unit` has the other words."""
    client = PythonClient(connection_from(on_zookeeper.parameters()))
    request = DescribeLogDirsRequest(topics=None, min_version=5)
    with pytest.raises(FinalError) as caught:
        client.ask("reading disks", lambda admin: send(admin, request))
    problem = caught.value.problem
    assert problem.reason == (
        "reading disks failed: these brokers do not have the request DescribeLogDirs in version 5, "
        "which came with Kafka 4.3"
    )
    assert problem.remedy == "upgrade Kafka to 4.3 or newer"
    assert client.requests["reading disks"] == 1, "nobody waits for another version"
