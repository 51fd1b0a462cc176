# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that keep going while something is done to the cluster: they count, tests judge."""

from __future__ import annotations

import threading
import time
from collections import Counter

from confluent_kafka import Consumer, Producer

from tests.support.outside import wait_until


class Ticker:
    """Sends a numbered record each `interval` seconds to one topic, until the block ends."""

    def __init__(self, settings, topic, interval=0.1):
        self.acknowledged = set()
        self.failed = []
        self.sent = 0
        self._topic = topic
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        # One in flight, no pauses of its own: what is acknowledged is in every replica of the ISR.
        self._producer = Producer(
            {"acks": "all", "enable.idempotence": True, "delivery.timeout.ms": 120000, **settings}
        )

    def __enter__(self):
        self._thread.start()
        wait_until(lambda: self.acknowledged, 120, f"the first tick on {self._topic}")
        return self

    def __exit__(self, *_exc):
        self._stop.set()
        self._thread.join(30)
        self._producer.flush(150)

    def _run(self):
        while not self._stop.is_set():
            value = str(self.sent)
            self._producer.produce(
                self._topic,
                value.encode(),
                callback=lambda error, _message, value=value: (
                    self.failed.append(value) if error else self.acknowledged.add(value)
                ),
            )
            self.sent += 1
            self._producer.poll(0)
            self._stop.wait(self._interval)

    def wait_for_more(self, number, timeout=180):
        """Wait until `number` more ticks than now are acknowledged."""
        wanted = len(self.acknowledged) + number
        wait_until(lambda: len(self.acknowledged) >= wanted, timeout, f"{number} more ticks")


class Reader:
    """One consumer in a thread: `values` counts what came, `places` holds (partition, offset, key, value)."""

    def __init__(self, settings, topic, group):
        self.values = Counter()
        self.places = []
        self.assigned = set()
        self.errors = []
        self._stop = threading.Event()
        self._consumer = Consumer(
            {
                **settings,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 10000,
            }
        )
        self._consumer.subscribe([topic], on_assign=self._assign, on_revoke=self._revoke)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.close()

    def _assign(self, _consumer, partitions):
        self.assigned = {item.partition for item in partitions}

    def _revoke(self, _consumer, _partitions):
        self.assigned = set()

    def _run(self):
        while not self._stop.is_set():
            message = self._consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                self.errors.append(message.error())
                time.sleep(0.2)
                continue
            key = message.key() and message.key().decode()
            value = message.value().decode()
            self.places.append((message.partition(), message.offset(), key, value))
            self.values[value] += 1
        self._consumer.close()

    def close(self):
        """Leave the group."""
        self._stop.set()
        self._thread.join(60)

    def wait_for(self, values, timeout=180):
        """Wait until all of `values` have come."""
        wanted = set(values)
        wait_until(
            lambda: wanted <= set(self.values),
            timeout,
            f"{len(wanted)} records, of {len(self.values)}",
        )
