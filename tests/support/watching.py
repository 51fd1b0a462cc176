# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bystander sees while a cluster is worked on, wherever it runs: who serves, and what is in sync.

A cluster has admin(), broker_ids (a set), and addresses: (host, port) of every instance by its name.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import dataclass

from confluent_kafka import KafkaException


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


def quorum_of(bootstrap_servers):
    """Return {leader, voters: ids} of a quorum as its brokers tell it to kafka-python."""
    from kafka.admin import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        found = admin.describe_metadata_quorum()
    finally:
        admin.close()
    (partition,) = found["topics"][0]["partitions"]
    return {
        "leader": partition["leader_id"],
        "voters": sorted(each["replica_id"] for each in partition["current_voters"]),
    }


def cluster_is_whole(cluster):
    """Return the Metadata if all brokers are registered and all replicas in sync, else None."""
    try:
        found = metadata(cluster, timeout=10)
    except KafkaException:
        return None
    whole = found.brokers == frozenset(cluster.broker_ids) and not found.behind
    return found if whole else None


class Watch(threading.Thread):
    """Notes every change of what runs, from its `with` to its end; then answers questions about it.

    `events` is a list of (kind, what): ("down", names) when the set of instances whose port does not
    answer has changed, ("whole", id of the controller) when every broker was registered and in sync. `times` has
    the seconds since the epoch of each.
    `reasons` are pairs of a name and what was wrong when its port did not answer. `slow` are the names of
    those that took no connection for five seconds: their processes run, and come to nothing on a busy machine.
    """

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self._cluster, self._done = cluster, threading.Event()
        self._addresses, self._brokers = cluster.addresses, frozenset(cluster.broker_ids)
        self.events, self.times = [], []
        self.reasons, self.slow = set(), set()
        self.looks = 0

    def _runs(self, name):
        # By the port, not by a word: servers of ZooKeeper that lose their leader drop every connection,
        # an asker's too, and elect; none of them serves then, and all run.
        try:
            socket.create_connection(self._addresses[name], 5).close()
        except TimeoutError:
            # Its queue is full. The port of a process that has ended refuses, at once.
            self.slow.add(name)
        except OSError as error:
            self.reasons.add((name, repr(error)))
            return False
        return True

    def _note(self, kind, what):
        self.times.append(time.time())
        self.events.append((kind, what))

    def run(self):
        admin, down = self._cluster.admin(), frozenset()
        while not self._done.wait(0.1):
            now = frozenset(name for name in self._addresses if not self._runs(name))
            self.looks += 1
            if now != down:
                down = now
                self._note("down", now)
            if not now and (not self.events or self.events[-1][0] == "down"):
                with contextlib.suppress(KafkaException):
                    found = admin.list_topics(timeout=5)
                    # one that has joined meanwhile does no harm
                    if self._brokers <= set(found.brokers) and all(
                        len(item.isrs) == len(item.replicas)
                        for topic in found.topics.values()
                        for item in topic.partitions.values()
                    ):
                        self._note("whole", found.controller_id)

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
