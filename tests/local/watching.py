# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bystander sees while a cluster is worked on: who serves, what is in sync, what is acknowledged."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass

from confluent_kafka import KafkaException
from kazoo.client import KazooClient

from tests.support.outside import ask_zookeeper, mode_of


def zookeeper_port(cluster, name):
    """Return the client port of a ZooKeeper server by its inventory name."""
    return 2180 + int(name.rpartition("-")[2]) + cluster.offset


def zookeeper_says(cluster, name, word="srvr"):
    """Return a server's answer to a four-letter word, "" where it does not answer."""
    return ask_zookeeper("127.0.0.1", zookeeper_port(cluster, name), word)


def zookeeper_mode(cluster, name):
    """Return leader, follower or standalone, or "" for a server that does not serve."""
    return mode_of(zookeeper_says(cluster, name))


def modes(cluster):
    """Return server name -> mode."""
    return {name: zookeeper_mode(cluster, name) for name in cluster.zookeepers}


def ensemble_is_whole(cluster):
    """Tell whether there is one leader, and everybody else follows it."""
    return sorted(modes(cluster).values()) == ["follower", "follower", "leader"]


@dataclass(frozen=True)
class Metadata:
    """The cluster as one of its brokers tells it."""

    cluster_id: str
    controller: int
    brokers: frozenset
    behind: int  # partitions with replicas out of sync, or without a leader


def metadata(cluster, timeout=30):
    """Return the Metadata of a cluster."""
    found = cluster.admin().list_topics(timeout=timeout)
    behind = sum(
        item.leader < 0 or len(item.isrs) < len(item.replicas)
        for topic in found.topics.values()
        for item in topic.partitions.values()
    )
    return Metadata(found.cluster_id, found.controller_id, frozenset(found.brokers), behind)


def cluster_is_whole(cluster):
    """Return the Metadata if all brokers are registered and all replicas in sync, else None."""
    try:
        found = metadata(cluster, timeout=10)
    except KafkaException:
        return None
    whole = found.brokers == frozenset(cluster.brokers.values()) and not found.behind
    return found if whole else None


def changed(before, after):
    """Return the names whose process is another one."""
    return {name for name in before if before[name] != after[name]}


def led_by_others(cluster):
    """Return the partitions of all topics that another broker leads than the preferred one."""
    return [
        (topic.topic, part.id)
        for topic in cluster.admin().list_topics(timeout=30).topics.values()
        for part in topic.partitions.values()
        if part.replicas[0] != part.leader
    ]


@contextlib.contextmanager
def zookeeper(cluster):
    """A connected kazoo client of the cluster's ensemble, below the chroot that the role sets by default."""
    client = KazooClient(f"127.0.0.1:{zookeeper_port(cluster, cluster.zookeepers[0])}/kafka")
    client.start(30)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def registered_at(cluster):
    """Return broker id -> when it registered, in seconds since the epoch.

    A killed broker stays in the metadata, and in sync, until its session has expired; only the age
    of its registration tells whether the one that answers now is the one that was started again.
    """
    with zookeeper(cluster) as client:
        found = {
            int(number): client.exists(f"/brokers/ids/{number}")
            for number in client.get_children("/brokers/ids")
        }
        return {number: stat.ctime / 1000 for number, stat in found.items() if stat}


class Watch(threading.Thread):
    """Notes every change of what runs, from its `with` to its end; then answers questions about it.

    `events` is a list of (kind, what): ("down", names) when the set of instances whose port does not
    answer has changed, ("whole", id of the controller) when every broker was registered and in sync.
    `reasons` are pairs of a name and what was wrong when its port did not answer.
    """

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self._cluster, self._done = cluster, threading.Event()
        self._ports = {name: zookeeper_port(cluster, name) for name in cluster.zookeepers}
        self._ports |= {name: cluster.port(name) for name in cluster.brokers}
        self.events = []
        self.reasons = set()
        self.looks = 0

    def _runs(self, name):
        # By the port, not by a word: servers of ZooKeeper that lose their leader drop every connection,
        # an asker's too, and elect; none of them serves then, and all run.
        try:
            socket.create_connection(("127.0.0.1", self._ports[name]), 5).close()
        except OSError as error:
            self.reasons.add((name, repr(error)))
            return False
        return True

    def run(self):
        admin, down = self._cluster.admin(), frozenset()
        brokers = frozenset(self._cluster.brokers.values())
        while not self._done.wait(0.03):
            now = frozenset(name for name in self._ports if not self._runs(name))
            self.looks += 1
            if now != down:
                down = now
                self.events.append(("down", now))
            if not now and (not self.events or self.events[-1][0] == "down"):
                with contextlib.suppress(KafkaException):
                    found = admin.list_topics(timeout=5)
                    if frozenset(found.brokers) == brokers and all(
                        len(item.isrs) == len(item.replicas)
                        for topic in found.topics.values()
                        for item in topic.partitions.values()
                    ):
                        self.events.append(("whole", found.controller_id))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_exc):
        self._done.set()
        self.join(60)

    def is_back(self, name):
        """Tell whether an instance was down, and everything was whole afterwards."""
        kinds = [kind if kind == "whole" or name in what else "" for kind, what in self.events]
        return "down" in kinds and "whole" in kinds[kinds.index("down") :]

    def check(self):
        """Fail unless never two instances were down at once, and all was whole between two of them.

        Returns the names of those that were seen down, in their order.
        """
        turns, whole = [], True
        for kind, what in self.events:
            if kind == "whole":
                whole = True
                continue
            assert len(what) <= 1, f"down at the same time: {sorted(what)}; {self.events}"
            for name in what:
                assert whole or turns[-1] == name, f"{name} went down too early: {self.events}"
                turns += [] if turns[-1:] == [name] else [name]
                whole = False
        return turns


class InSync(threading.Thread):
    """Looks at one topic ten times a second with a client of its own: how few replicas were in sync.

    `fewest` is the smallest ISR of any of its partitions in any answer; `looks` counts the answers.
    """

    def __init__(self, cluster, topic):
        super().__init__(daemon=True)
        self._admin, self._topic, self._done = cluster.admin(), topic, threading.Event()
        self.fewest, self.looks = None, 0

    def run(self):
        while not self._done.wait(0.1):
            with contextlib.suppress(KafkaException):
                found = self._admin.list_topics(self._topic, timeout=5).topics[self._topic]
                now = min(len(each.isrs) for each in found.partitions.values())
                self.fewest = now if self.fewest is None else min(self.fewest, now)
                self.looks += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_exc):
        self._done.set()
        self.join(60)
