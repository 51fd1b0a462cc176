# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody else does to a cluster by hand: topics, moves, throttles and records, with other clients."""

from __future__ import annotations

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from kafka import KafkaAdminClient, TopicPartition

from tests.support.outside import wait_until
from tests.support.run_module import Modules, run_module

# Bytes in each partition, of which a throttled copy takes minutes.
SIZE = 4_000_000


THROTTLED = ("leader.replication.throttled", "follower.replication.throttled")


def throttles(admin):
    """Every throttle that somebody has set, on brokers and topics: (name, key) to value."""
    kinds = ConfigResource.Type
    known = admin.list_topics(timeout=10)
    found = {}
    asked = [[ConfigResource(kinds.BROKER, str(broker))] for broker in known.brokers]
    asked.append([ConfigResource(kinds.TOPIC, topic) for topic in known.topics])
    for resources in filter(None, asked):  # there may be no topic at all
        for resource, future in admin.describe_configs(resources).items():
            for entry in future.result(20).values():
                if entry.name.startswith(THROTTLED) and entry.value and entry.source in (1, 2):
                    found[(resource.name, entry.name)] = entry.value
    return found


class ByHand:
    """Somebody else at a cluster of three brokers, by other clients than ours."""

    def __init__(self, cluster):
        self.servers = cluster.bootstrap_servers
        self.admin = AdminClient({"bootstrap.servers": self.servers})
        self.python = KafkaAdminClient(bootstrap_servers=self.servers)

    def make(self, name, *placed):
        """A topic with these replicas, which all are in sync."""
        config = {"min.insync.replicas": "1"}
        new = NewTopic(
            name, len(placed), replica_assignment=[list(each) for each in placed], config=config
        )
        self.admin.create_topics([new])[name].result(30)
        wait_until(lambda: len(self.replicas(name)) == len(placed), 30, "created")
        self.settle()

    def settle(self):
        """All brokers agree, and every replica is in sync."""
        ready = Modules(self.servers).info(wait={"brokers": [1, 2, 3], "full_isr": True})
        assert not ready.failed, ready.msg

    def parts(self, name):
        """Partitions of a topic, by number."""
        topic = self.admin.list_topics(timeout=10).topics.get(name)
        return topic.partitions if topic else {}

    def replicas(self, name):
        """Partition to its replicas."""
        return {number: list(part.replicas) for number, part in self.parts(name).items()}

    def leaders(self, name):
        """Partition to its leader."""
        return {number: part.leader for number, part in self.parts(name).items()}

    def move(self, name, **wanted):
        """Begin to move partitions, as p0=[1, 2]; None cancels."""
        places = {TopicPartition(name, int(key[1:])): each for key, each in wanted.items()}
        self.python.alter_partition_reassignments(places)

    def moving(self, name):
        """The partitions of a topic that move."""
        found = self.python.list_partition_reassignments()
        return {key.partition for key in found if key.topic == name}

    def moved(self, name, **wanted):
        """Move partitions to the end."""
        self.move(name, **wanted)
        wait_until(lambda: not self.moving(name), 60, "moved")
        places = {int(key[1:]): each for key, each in wanted.items()}
        wait_until(lambda: places.items() <= self.replicas(name).items(), 30, "told")
        self.settle()

    def throttle(self, name, rate, count):
        """Limit the copies of a topic's partitions to broker 3 by hand, or with None no more."""
        leader, follower = THROTTLED
        lists = {
            f"{leader}.replicas": ",".join(f"{n}:{b}" for n in range(count) for b in (1, 2)),
            f"{follower}.replicas": ",".join(f"{n}:3" for n in range(count)),
        }
        for broker in "123":
            self.configure(
                "broker", broker, dict.fromkeys([f"{each}.rate" for each in THROTTLED], rate)
            )
        self.configure("topic", name, lists if rate else dict.fromkeys(lists))
        # One broker tells of it after another.
        wanted = {(each, f"{key}.rate"): rate for each in "123" for key in THROTTLED}
        wanted.update({(name, key): text for key, text in lists.items()})

        def told():
            found = throttles(self.admin)
            return wanted.items() <= found.items() if rate else not wanted.keys() & found.keys()

        wait_until(told, 30, "throttles are told")

    def configure(self, kind, name, settings):
        """Set settings of a "broker" or a "topic", or with None take them away."""
        operations = {True: AlterConfigOpType.SET, False: AlterConfigOpType.DELETE}
        entries = [
            ConfigEntry(key, value or "", incremental_operation=operations[bool(value)])
            for key, value in settings.items()
        ]
        kinds = {"broker": ConfigResource.Type.BROKER, "topic": ConfigResource.Type.TOPIC}
        resource = ConfigResource(kinds[kind], name, incremental_configs=entries)
        for future in self.admin.incremental_alter_configs([resource]).values():
            future.result(20)

    def write(self, name, count):
        """So much into each partition that a throttled copy does not end."""
        producer = Producer({"bootstrap.servers": self.servers, "acks": "all"})
        for number in range(count):
            for _each in range(SIZE // 100_000):
                producer.produce(name, b"x" * 100_000, partition=number)
                producer.poll(0)
        assert producer.flush(60) == 0

    def reassign(self, check=False, **options):
        """Our module."""
        arguments = {"bootstrap_servers": self.servers, "timeout": 20, "operation_timeout": 60}
        return run_module("kafka_reassignment", {**arguments, **options}, check)
