# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody else moves or elects between plan and write: what is told, what is ours, what is there then."""

from __future__ import annotations

import itertools

import pytest
from confluent_kafka import ElectionType, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from kafka import KafkaAdminClient, TopicPartition

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.leaders.resource import (
    PreferredLeaders,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves import reassignment
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.reassignment import (
    Reassignment,
)
from tests.integration.topics.conftest import PORT_BASE
from tests.support.bare_cluster import BareCluster
from tests.support.outside import wait_until
from tests.support.run_module import Modules, run_module
from tests.support.second_writer import before_writing

SLOW, SIZE = "1024", 4_000_000
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def three_kraft(tmp_path_factory):
    """Three KRaft nodes, of which each has records."""
    with BareCluster(
        tmp_path_factory.mktemp("three"),
        port_base=PORT_BASE + 300,
        kraft=True,
        broker_config={"auto.leader.rebalance.enable": "false"},
    ) as running:
        ready = Modules(running.bootstrap_servers).info(wait={"brokers": [1, 2, 3]})
        assert not ready.failed, ready.msg
        yield running


@pytest.fixture(params=["zookeeper", pytest.param("kraft", marks=pytest.mark.soak)])
def both(request):
    """Three brokers, in each mode."""
    return request.getfixturevalue("three_kraft" if request.param == "kraft" else "cluster")


class Other:
    """Somebody else at a cluster, by other clients than ours."""

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
        kinds = ConfigResource.Type
        keys = [f"{side}.replication.throttled" for side in ("leader", "follower")]
        lists = {
            f"{keys[0]}.replicas": ",".join(f"{n}:{b}" for n in range(count) for b in (1, 2)),
            f"{keys[1]}.replicas": ",".join(f"{n}:3" for n in range(count)),
        }
        asked = [
            (kinds.BROKER, each, dict.fromkeys([f"{k}.rate" for k in keys], rate)) for each in "123"
        ]
        asked.append((kinds.TOPIC, name, lists if rate else dict.fromkeys(lists)))
        for kind, subject, settings in asked:
            entries = [
                ConfigEntry(
                    key,
                    value or "",
                    incremental_operation=(
                        AlterConfigOpType.SET if value else AlterConfigOpType.DELETE
                    ),
                )
                for key, value in settings.items()
            ]
            resource = ConfigResource(kind, subject, incremental_configs=entries)
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


@pytest.fixture
def other(both):
    """Somebody else; what he has left under way is cancelled, with all throttles."""
    found = Other(both)
    yield found
    cancelled = run_module(
        "kafka_reassignment", {"bootstrap_servers": found.servers, "state": "cancelled"}
    )
    assert not cancelled.failed, cancelled.msg
    found.python.close()


@pytest.fixture
def topic():
    """A name that no other test uses."""
    return f"both-{next(_numbers)}"


def reassign(other, check=False, **options):
    """The module."""
    arguments = {"bootstrap_servers": other.servers, "timeout": 20, "operation_timeout": 60}
    return run_module("kafka_reassignment", {**arguments, **options}, check)


def elect(other, topic):
    """The module."""
    return run_module(
        "kafka_leader_election", {"bootstrap_servers": other.servers, "topics": [topic]}
    )


def test_leaders(other, topic, monkeypatch):
    """One that the other one has elected already, one whose order he has changed, and one that is ours."""
    other.make(topic, *[(1, 2, 3)] * 3)
    other.moved(topic, p0=[2, 1, 3], p1=[2, 1, 3], p2=[2, 1, 3])
    assert other.leaders(topic) == {0: 1, 1: 1, 2: 1}

    def act():
        places = [Place(topic, 0)]
        other.admin.elect_leaders(ElectionType.PREFERRED, places).result(30)
        other.moved(topic, p1=[3, 2, 1])
        wait_until(lambda: other.leaders(topic)[0] == 2, 30, "elected")
        other.settle()

    before_writing(monkeypatch, PreferredLeaders, act)
    done = elect(other, topic)
    assert not done.failed and done.changed, done.msg
    assert done.diff == {
        "before": {f"{topic}-1": {"leader": 1}, f"{topic}-2": {"leader": 1}},
        "after": {f"{topic}-1": {"leader": 3}, f"{topic}-2": {"leader": 2}},
    }
    assert len(done.plan["changes"]) == 3 and done.not_preferred == 0
    assert other.leaders(topic) == {0: 2, 1: 3, 2: 2}


def test_leaders_that_are_elected_already(other, topic, monkeypatch):
    other.make(topic, (1, 2, 3))
    other.moved(topic, p0=[2, 1, 3])

    def act():
        places = [Place(topic, 0)]
        other.admin.elect_leaders(ElectionType.PREFERRED, places).result(30)

    before_writing(monkeypatch, PreferredLeaders, act)
    done = elect(other, topic)
    assert not done.failed and done.changed is False and not done.diff["after"], done.values


def test_moves(other, topic, monkeypatch):
    """More replicas by the other one stay, the same move is not ours, and a topic that is gone is not moved."""
    gone = f"{topic}.gone"
    other.make(topic, *[(1, 2)] * 3)
    other.make(gone, (1, 2))
    planned = reassign(other, check=True, topics=[topic, gone], drain=[2])
    after = {each["subject"]: each["after"]["replicas"] for each in planned.plan["changes"]}
    assert len(after) == 4

    def act():
        other.moved(topic, p0=[1, 2, 3], p1=after[f"{topic}-1"])
        other.admin.delete_topics([gone])[gone].result(30)
        wait_until(lambda: not other.parts(gone), 30, "deleted")
        other.settle()

    before_writing(monkeypatch, Reassignment, act)
    monkeypatch.setattr(reassignment, "KNOWN_SECONDS", 1.0)  # all brokers know it
    done = reassign(other, topics=[topic, gone], drain=[2])
    assert done.failed and done.changed, done.values
    assert list(done.diff["after"]) == [f"{topic}-2"]
    (failure,) = done.failed_items
    assert (failure["name"], failure["code"]) == (f"{topic}-0", "changed")
    assert "it is on [1, 2, 3] and was on [1, 2]" in failure["error"]
    found = other.replicas(topic)
    assert found == {0: [1, 2, 3], 1: after[f"{topic}-1"], 2: after[f"{topic}-2"]}


def test_a_move_under_way_that_the_other_one_cancels(other, topic, monkeypatch):
    """The run was to wait for its end; it never came where it went to."""
    monkeypatch.setattr(reassignment, "SETTLE_SECONDS", 1.0)
    other.make(topic, (1, 2))
    other.write(topic, 1)
    other.throttle(topic, SLOW, 1)
    other.move(topic, p0=[1, 3])
    wait_until(lambda: other.moving(topic), 30, "it moves")

    def act():
        other.move(topic, p0=None)
        wait_until(lambda: not other.moving(topic), 30, "cancelled")
        wait_until(lambda: set(other.replicas(topic)[0]) == {1, 2}, 30, "told")

    before_writing(monkeypatch, Reassignment, act)
    done = reassign(other, topics=[topic], drain=[2])
    assert done.failed and done.changed is False, done.values
    assert ("finish", f"{topic}-0") in done.kinds
    assert {(each["kind"], each["code"]) for each in done.failed_items} == {("finish", "changed")}
    assert set(other.replicas(topic)[0]) == {1, 2}, "as the other one wants it"


def test_what_has_ended_cannot_be_cancelled_and_what_has_begun_since_is_not(
    other, topic, monkeypatch
):
    other.make(topic, (1, 2), (1, 2), (1, 2))
    other.write(topic, 3)
    other.throttle(topic, SLOW, 3)
    other.move(topic, p0=[1, 3], p2=[1, 3])
    wait_until(lambda: other.moving(topic) == {0, 2}, 30, "they move")

    def act():
        other.throttle(topic, None, 3)
        wait_until(lambda: not other.moving(topic), 60, "moved")
        other.throttle(topic, SLOW, 3)
        other.move(topic, p1=[1, 3], p2=[2, 3])
        wait_until(lambda: other.moving(topic) >= {1}, 30, "another one moves")

    before_writing(monkeypatch, Reassignment, act)
    done = reassign(other, state="cancelled")
    assert not done.failed, done.msg
    assert {subject for kind, subject in done.kinds if kind == "cancel"} == {
        f"{topic}-0",
        f"{topic}-2",
    }
    assert not {each for each in done.diff["after"] if each.startswith(topic)}, done.diff
    wait_until(lambda: not other.moving(topic), 60, "what has begun since goes on")
    assert other.replicas(topic) == {0: [1, 3], 1: [1, 3], 2: [2, 3]}
