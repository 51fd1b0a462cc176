# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client under fire: what it was told is safe, and how long it was told nothing."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import Counter, defaultdict

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.outside import wait_until


class Traffic(threading.Thread):
    """Writes numbered records with acks=all and notes which ones were acknowledged.

    `cluster`: has client(**settings), settings of a confluent-kafka client, and partitions(topic).
    `at_once`: records each 5 ms; `waiting`: how many records of one partition may wait for their
    acknowledgement, any number by default; `settings`: of the producer, underscores for dots.
    """

    def __init__(self, cluster, topic, at_once=1, waiting=None, **settings):
        super().__init__(daemon=True)
        self._cluster, self._topic, self._done = cluster, topic, threading.Event()
        self._at_once, self._waiting, self._settings = at_once, waiting, settings
        self._pending = Counter()  # partition -> records without an acknowledgement
        self.acknowledged, self.failed = set(), []
        self._last = {}  # partition -> when it acknowledged last
        self.longest_pause = 0.0  # seconds between two acknowledgements of one partition
        # Whatever the topic holds already was written by somebody else.
        self._prefix = f"{time.time_ns()}:"

    def run(self):
        producer = Producer(
            self._cluster.client(
                acks="all",
                enable_idempotence=True,
                delivery_timeout_ms=300000,
                # As many records in a quarter of the batches: with 5 ms they kept one core busy, and what was
                # measured was that.
                **{"linger_ms": 50, **self._settings},
            )
        )
        partitions = itertools.cycle(sorted(self._cluster.partitions(self._topic)))
        number = 0
        while not self._done.wait(0.005):
            for partition in itertools.islice(partitions, self._at_once):
                if self._waiting and self._pending[partition] >= self._waiting:
                    continue
                self._pending[partition] += 1
                producer.produce(
                    self._topic,
                    f"{self._prefix}{number}",
                    partition=partition,
                    on_delivery=self._note,
                )
                number += 1
            producer.poll(0)
        producer.flush(300)

    def _note(self, error, message):
        self._pending[message.partition()] -= 1
        if error:
            self.failed.append(str(error))
        else:
            now = time.monotonic()
            pause = now - self._last.get(message.partition(), now)
            self._last[message.partition()] = now
            self.longest_pause = max(self.longest_pause, pause)
            self.acknowledged.add(message.value().decode())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_exc):
        self._done.set()
        self.join(360)

    def read_back(self):
        """Return value -> where it is, of the records of this client: {(partition, offset): leader's epoch}.

        By places, not by deliveries: a consumer may be given the same record again.
        """
        consumer = Consumer(
            self._cluster.client(
                group_id="traffic", enable_auto_commit=False, enable_partition_eof=True
            )
        )
        partitions = self._cluster.partitions(self._topic)
        consumer.assign([TopicPartition(self._topic, number, 0) for number in partitions])
        open_partitions, read = set(partitions), defaultdict(dict)
        heard = time.monotonic()
        while open_partitions:
            # waits for all of them: so not for long
            messages = consumer.consume(1000, 0.2)
            heard = time.monotonic() if messages else heard
            assert time.monotonic() - heard < 60, "the broker answers no more"
            for message in messages:
                if message.error():
                    open_partitions.discard(message.partition())
                elif message.value().decode().startswith(self._prefix):
                    place = (message.partition(), message.offset())
                    read[message.value().decode()][place] = message.leader_epoch()
        consumer.close()
        return read

    def lost(self):
        """Return the acknowledged records that cannot be read any more."""
        return sorted(self.acknowledged - set(self.read_back()))


@contextlib.contextmanager
def through(what, cluster, topic, whole):
    """Write during a fault and its recovery, and print the pause; afterwards nothing acknowledged may be missing.

    `whole`: waits until the cluster is. Yields the Traffic.
    """
    whole()
    with Traffic(cluster, topic) as running:
        wait_until(lambda: len(running.acknowledged) > 200, 60, "acknowledgements")
        yield running
        whole()
        enough = len(running.acknowledged) + 200
        wait_until(lambda: len(running.acknowledged) > enough, 120, "acknowledgements afterwards")
    print(f"\n{what}: longest pause {running.longest_pause:.2f} s", flush=True)
    assert not running.failed and running.lost() == []
