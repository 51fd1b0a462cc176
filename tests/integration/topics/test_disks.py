# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_reassignment between the two log directories of a real broker: even, emptied, killed, cancelled."""

from __future__ import annotations

import os

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
# Of each replica: more than Kafka copies before it looks at the limit (replica.fetch.max.bytes, 1 MiB).
SIZE = 3_000_000


class Disks:
    """One broker with two directories, as clients that are not ours see it."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.servers = cluster.bootstrap_servers
        self.first, self.second = (str(cluster.log_directory(1, number)) for number in (1, 2))
        self.admin = AdminClient({"bootstrap.servers": self.servers})

    def other(self, call):
        """A call of a client of the other library, made anew: the broker may have been restarted."""
        client = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            return call(client)
        finally:
            client.close()

    def answers(self):
        """Whether the broker answers; one that has died fails at once."""
        broker = self.cluster.broker_instances[1]
        assert broker.running(), broker.last_lines()
        client = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        try:
            return 1 in client.list_topics(timeout=2).brokers
        except KafkaException:
            return False

    def held(self, future=False):
        """Directory to {(topic, partition): bytes}: its replicas, or with `future` what is to become one."""
        (answer,) = self.other(lambda client: client.describe_log_dirs(brokers=[1]))
        return {
            entry["log_dir"]: {
                (topic["name"], part["partition_index"]): part["partition_size"]
                for topic in entry["topics"]
                for part in topic["partitions"]
                if part["is_future_key"] == future
            }
            for entry in answer["log_dirs"]
        }

    def counts(self, future=False):
        """How many replicas each of the two directories has."""
        held = self.held(future)
        return [len(held[path]) for path in (self.first, self.second)]

    def rate(self):
        """The broker's limit of copies between directories, None if there is none of its own."""
        (future,) = self.admin.describe_configs(
            [ConfigResource(ConfigResource.Type.BROKER, "1")]
        ).values()
        entry = future.result(20).get(RATE)
        return entry.value if entry and entry.source == 2 else None

    def create(self, name, partitions):
        """A topic whose replicas are all in the first directory, with SIZE bytes in each."""
        wanted = {(name, number, 1): self.first for number in range(partitions)}
        # What is not there yet is made there.
        self.other(lambda client: client.alter_replica_log_dirs(wanted))
        topic = NewTopic(name, partitions, replication_factor=1)
        self.admin.create_topics([topic])[name].result(30)
        producer = Producer({"bootstrap.servers": self.servers, "acks": "all"})
        for number in range(partitions):
            for each in range(SIZE // 50_000):
                producer.produce(name, b"%d" % each + os.urandom(49_000), partition=number)
                producer.poll(0)
        assert producer.flush(60) == 0
        assert self.counts() == [partitions, 0]

    def read(self, name, partitions):
        """How many records can be read; without a group, which would make a topic of its own."""
        places = [TopicPartition(name, number) for number in range(partitions)]
        consumer = KafkaConsumer(bootstrap_servers=self.servers, enable_auto_commit=False)
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        total = 0

        def all_read():
            nonlocal total
            total += sum(len(each) for each in consumer.poll(1000).values())
            return all(consumer.position(place) >= ends[place] for place in places)

        wait_until(all_read, 60)
        consumer.close()
        return total


@pytest.fixture
def disks(two_disks):
    """The broker with two directories."""
    return Disks(two_disks)


@pytest.fixture
def reassign(disks):
    """The module, for the broker with two directories."""
    from tests.support.run_module import run_module

    def call(check=False, **options):
        arguments = {"bootstrap_servers": disks.servers, "timeout": 20, "disks": [1]}
        return run_module("kafka_reassignment", {**arguments, **options}, check)

    return call


@pytest.fixture
def place(disks, name, reassign):
    """Make the test's topic with so many partitions, all in the first directory; deleted afterwards."""

    def call(partitions):
        disks.create(name, partitions)
        return name

    yield call
    reassign(state="cancelled")
    for future in disks.admin.delete_topics([name]).values():
        future.exception(30)
    wait_until(lambda: disks.counts() == [0, 0], 30)


@pytest.fixture
def background(disks):
    """Start the module with a limit under which a replica takes most of a minute."""
    from tests.support.run_module import Background

    started = []

    def call(**options):
        asked = {"bootstrap_servers": disks.servers, "disks": [1], "throttle": "20KiB", **options}
        started.append(Background("kafka_reassignment", asked))
        return started[-1]

    yield call
    for each in started:
        if each.process.poll() is None:
            each.kill()


# ------------------------------------------------------------------ plain life


def test_evened_out_then_again(reassign, place, disks):
    name = place(4)
    plan = reassign(check=True)
    assert plan.changed and plan.copies == 2 and 1.9 * SIZE < plan.bytes < 2.1 * SIZE
    assert disks.counts() == [4, 0]  # check mode
    done = reassign()
    assert not done.failed, done.msg
    assert done.plan == plan.plan and done.diff == plan.diff
    assert disks.counts() == [2, 2] and disks.rate() is None
    assert disks.read(name, 4) == 4 * (SIZE // 50_000)
    assert reassign().changed is False


def test_a_directory_is_emptied_and_no_more_than_that(reassign, place, disks):
    name = place(3)
    done = reassign(drain_directories=[disks.first], throttle="unlimited")
    assert not done.failed and done.copies == 3, done.values
    assert disks.counts() == [0, 3] and disks.rate() is None
    assert disks.read(name, 3) == 3 * (SIZE // 50_000)
    assert reassign(drain_directories=[disks.first]).changed is False


def test_refusals_change_nothing(reassign, place, disks, modules):
    from tests.support.run_module import run_module

    place(2)
    for options, check in (
        ({"disks": [1, 9]}, "reassignment.unknown_broker"),
        ({"drain_directories": ["/nowhere"]}, "reassignment.unknown_directory"),
        ({"drain_directories": [disks.first, disks.second]}, "reassignment.nowhere_to_go"),
        ({"throttle": "5"}, "options.range"),
    ):
        refused = reassign(**options)
        assert refused.failed and check in refused.msg, refused.values
    assert "mutually exclusive" in reassign(spread=True).msg
    assert disks.counts() == [2, 0] and disks.counts(future=True) == [0, 0]
    # brokers of one directory each
    alone = run_module(
        "kafka_reassignment", {"bootstrap_servers": modules.bootstrap_servers, "disks": [1, 2]}
    )
    assert "reassignment.one_directory" in alone.msg


# ------------------------------------------------------------------ limit, cancel, resume


def test_killed_half_way_and_gone_on_with(reassign, background, place, disks):
    """The limit is there while it moves, is left by the kill, and gone when a second run is done."""
    name = place(4)
    run = background()
    assert wait_until(lambda: disks.counts(future=True) == [0, 2], 60)
    run.kill()
    assert disks.rate() == str(20 * 1024)
    plan = reassign(check=True)
    assert [kind for kind, _subject in plan.kinds] == ["finish", "finish"]
    done = reassign(throttle="unlimited")
    assert not done.failed, done.msg
    assert disks.counts() == [2, 2] and disks.rate() is None
    assert disks.read(name, 4) == 4 * (SIZE // 50_000)
    assert reassign().changed is False


def test_cancelled(reassign, background, place, disks):
    """A run that still waits sees that its moves were ended."""
    place(4)
    run = background()
    assert wait_until(lambda: disks.counts(future=True) == [0, 2], 60)
    assert reassign(check=True, state="cancelled").changed
    assert disks.counts(future=True) == [0, 2]
    done = reassign(state="cancelled")
    assert not done.failed, done.msg
    assert "rolling_restart.yml -e broker=1" in str(done.warnings)
    assert disks.counts() == [4, 0] and disks.counts(future=True) == [0, 0]
    assert disks.rate() is None
    left = run.end()
    assert left["failed"] and "somebody else has ended the move" in left["msg"]
    assert reassign(state="cancelled").changed is False


def test_too_late_says_how_to_go_on(reassign, place, disks):
    place(2)
    late = reassign(throttle="20KiB", operation_timeout=3)
    assert late.failed and "still under way" in late.msg and "state: cancelled" in late.msg
    assert disks.counts(future=True) == [0, 1] and disks.rate() == str(20 * 1024)


@pytest.mark.soak
def test_a_broker_that_restarts_meanwhile_is_waited_for(reassign, background, place, disks):
    """Kafka goes on with the move by itself."""
    name = place(4)
    run = background(throttle="300KiB")
    assert wait_until(lambda: disks.counts(future=True) == [0, 2], 60)
    broker = disks.cluster.broker_instances[1]
    broker.stop(60)
    broker.start()
    assert wait_until(disks.answers, 120)
    left = run.end()
    assert not left.get("failed"), left
    assert disks.counts() == [2, 2] and disks.rate() is None
    assert disks.read(name, 4) == 4 * (SIZE // 50_000)
    assert reassign().changed is False


@pytest.mark.soak
def test_a_broker_with_a_directory_that_is_offline_is_refused(reassign, place, disks):
    """Kafka itself would refuse each move; the directory comes back at the end."""
    place(2)
    broker = disks.cluster.broker_instances[1]
    away = f"{disks.second}-away"
    broker.stop(60)
    os.rename(disks.second, away)
    with open(disks.second, "w", encoding="utf-8"):
        pass
    try:
        broker.start()
        assert wait_until(disks.answers, 120)
        refused = reassign()
        assert refused.failed and "reassignment.offline_directory" in refused.msg, refused.values
        assert disks.second in refused.msg
    finally:
        broker.stop(60)
        os.remove(disks.second)
        os.rename(away, disks.second)
        broker.start()
        assert wait_until(disks.answers, 120)
