# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real consumers and producers, as the groups and records that a test wants to see; and what others say."""

from __future__ import annotations

import re
import threading
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    NewTopic,
    OffsetSpec,
)

from tests.support.outside import wait_until


def write(settings, topic, counts, size=100, timestamp=0):
    """Write records to partitions, as {partition: number}, acknowledged by all; `timestamp` in ms, 0: now."""
    failed = []
    producer = Producer({**settings, "linger.ms": 1, "acks": "all"})
    for partition, count in counts.items():
        for _number in range(count):
            producer.produce(
                topic,
                b"x" * size,
                key=b"k",
                partition=partition,
                timestamp=timestamp,
                on_delivery=lambda error, _message: failed.append(error) if error else None,
            )
            producer.poll(0)
    assert producer.flush(60) == 0 and not failed


def commit(settings, group, offsets):
    """Commit {(topic, partition): offset} for a group that nobody is a member of."""
    consumer = Consumer({**settings, "group.id": group, "enable.auto.commit": False})
    parts = [TopicPartition(*key, offset) for key, offset in offsets.items()]

    def done():
        """Not while the cluster is still making the topic of offsets."""
        try:
            told = consumer.commit(offsets=parts, asynchronous=False)
        except KafkaException as error:
            passing = (
                KafkaError.NOT_COORDINATOR,
                KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
                KafkaError._WAIT_COORD,
            )
            if error.args[0].code() in passing:
                return False
            raise
        return not [part.error for part in told if part.error]

    try:
        wait_until(done, 60, "committed")
    finally:
        consumer.close()


class Reader(threading.Thread):
    """A member of a group that reads at its pace and commits; a context that ends with it.

    `pause` seconds between two records; `stand` so many records, then it reads no more and stays a member;
    `protocol` is classic or consumer.
    """

    def __init__(self, settings, group, topics, pause=0.01, stand=None, protocol="classic"):
        super().__init__(daemon=True)
        self._topics, self._pause, self._stand = topics, pause, stand
        self._done = threading.Event()
        self.count = 0
        self.assigned = threading.Event()
        self._consumer = Consumer(
            {
                **settings,
                "group.id": group,
                "group.protocol": protocol,
                "client.id": f"reader-{group}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                # no more than one record is fetched and taken for read
                "queued.min.messages": 1,
            }
        )

    def run(self):
        self._consumer.subscribe(self._topics, on_assign=lambda *_args: self.assigned.set())
        while not self._done.is_set():
            if self._stand is not None and self.count >= self._stand:
                self._consumer.pause(self._consumer.assignment())
            message = self._consumer.poll(0.1)
            if message is None or message.error():
                continue
            self.count += 1
            self._consumer.commit(message, asynchronous=False)
            self._done.wait(self._pause)
        self._consumer.close()

    def __enter__(self):
        self.start()
        assert self.assigned.wait(30), "no partitions"
        return self

    def __exit__(self, *_exc):
        self._done.set()
        self.join(30)


class Writer(threading.Thread):
    """Writes `size` bytes to partition 0 every `pause` seconds until the context ends."""

    def __init__(self, settings, topic, size=100, pause=0.01):
        super().__init__(daemon=True)
        self._topic, self._size, self._pause = topic, size, pause
        self._producer = Producer({**settings, "linger.ms": 1})
        self._done = threading.Event()

    def run(self):
        due = time.monotonic()
        while not self._done.wait(max(0.0, due - time.monotonic())):
            self._producer.produce(self._topic, b"x" * self._size, partition=0)
            self._producer.poll(0)
            due += self._pause
        self._producer.flush(30)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_exc):
        self._done.set()
        self.join(60)


def create(secured, admin, name, partitions=1, **config):
    """A topic with all brokers, once it has leaders."""
    settings = {key.replace("_", "."): str(value) for key, value in config.items()}
    new = NewTopic(name, partitions, secured.bare.brokers, config=settings)
    admin.create_topics([new])[name].result(30)

    def led():
        found = admin.list_topics(name, timeout=30).topics[name].partitions
        return len(found) == partitions and all(each.leader >= 0 for each in found.values())

    wait_until(led, 30, "led")


def start_of(admin, topic, partition=0):
    """The first offset that is still there, by a client that is not ours."""
    part = TopicPartition(topic, partition)
    return admin.list_offsets({part: OffsetSpec.earliest()})[part].result(30).offset


def allow(secured, *rights):
    """Give `team` rights, each (kind of resource, name, operation); every broker knows them afterwards."""
    acls = [
        {kind: what, "principal": "team", "operations": operation}
        for kind, what, operation in rights
    ]
    done = secured.run("kafka_acls", acls=acls)
    assert done.changed and not done.failed, done.msg


def told_by_kafka(secured, group):
    """(topic, partition) -> (committed, end, lag), by Kafka's own tool."""
    text = secured.tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        *("--describe", "--group", group, "--timeout", "60000"),
    )
    found = re.findall(
        rf"^{re.escape(group)}\s+(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", text, flags=re.M
    )
    return {(topic, int(part)): tuple(map(int, rest)) for topic, part, *rest in found}
