# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the test suites of other tools ask for of a topic's partitions and replicas, in both modes."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from tests.support.run_module import Modules


@pytest.mark.soak
def test_more_partitions_and_replicas_and_fewer_replicas_and_no_record_is_lost(other, name):
    """As Terraform's provider is tested; who leads stays among the replicas, as ansible-kafka-admin's test asks."""
    config = {"min.insync.replicas": 1}

    def declared(partitions, factor):
        item = {"name": name, "partitions": partitions, "replication_factor": factor}
        return Modules(other.servers).topics(
            [{**item, "config": config}], allow=["partition_growth"]
        )

    assert declared(1, 1).changed
    other.settle()
    leader = other.leaders(name)[0]
    producer = Producer({"bootstrap.servers": other.servers, "acks": "all"})
    for number in range(3):
        producer.produce(name, b"%d" % number, key=b"same", partition=0)
    assert producer.flush(60) == 0
    for partitions, factor in ((1, 3), (4, 2), (5, 1)):
        now = len(other.replicas(name)[0])
        assert declared(partitions, now).changed is (partitions > 1)
        asked = {"topics": [name], "replication_factor": factor}
        allow = {"allow": ["fewer_replicas"]} if factor < now else {}
        moved = other.reassign(**asked, **allow)
        assert moved.changed and not moved.failed, moved.msg
        again = other.reassign(topics=[name], replication_factor=factor)
        assert again.changed is False and declared(partitions, factor).changed is False
        other.settle()
        found = other.replicas(name)
        assert {len(each) for each in found.values()} == {factor} and len(found) == partitions
        if factor == 3:
            assert found[0][0] == leader == other.leaders(name)[0]
    reader = Consumer({"bootstrap.servers": other.servers, "group.id": "unused"})
    reader.assign([Place(name, 0, 0)])
    values = [each.value() for each in reader.consume(3, timeout=30)]
    reader.close()
    assert values == [b"0", b"1", b"2"]
