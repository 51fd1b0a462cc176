# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load of a drill, and what watches it: a producer, consumers, and looks at the topic, each a thread.

Private to this collection. They count; `observed` and `verdict` judge.
"""

from __future__ import annotations

import collections
import contextlib
import json
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.answers import (
    snapshot_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.cast import partition_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    HEARTBEAT_SECONDS,
    NOT_ENOUGH,
    SESSION_SECONDS,
    UNKNOWN,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    GROUPS_TOPIC,
    failed,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import Written
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Coordinated,
    Moment,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
    from confluent_kafka.admin import AdminClient
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

LOOK_SECONDS = 0.1
# How often librdkafka tells its counters, and how long the last ones are waited for: a machine may be busy.
STATISTICS_MS, STATISTICS_WAIT = 500, 30.0
# librdkafka's word for a partition that the partitioner chooses
PARTITION_ANY = -1
# Without the retries of a producer, refusals are seen; with them, none is expected within:
DELIVERY_SECONDS = 120
SEPARATOR = b" "

Settings = Mapping[str, Any]


def now_ms() -> int:
    """Milliseconds since 1970."""
    return int(time.time() * 1000)


def transmitted(statistics: str, topic: str) -> int:
    """How many records went to brokers, by librdkafka's statistics: one that is sent again counts again.

    Its counter `txretries` is of other requests: records that are sent again are not in it.
    """
    partitions = json.loads(statistics)["topics"].get(topic, {}).get("partitions", {})
    return sum(int(each["txmsgs"]) for each in partitions.values())


def counted_after(statistics: str) -> float:
    """How many seconds after the begin of its client librdkafka has counted; they are heard later, by chance."""
    return float(json.loads(statistics)["age"]) / 1e6


def written(topic: str, *tickers: Ticker) -> Written:
    """What these have written to a topic, for the judge."""
    return Written(
        topic,
        {record for each in tickers for record in each.sent},
        {record for each in tickers for record in each.acknowledged},
    )


class Ticker:
    """Sends a numbered record each `interval` seconds, in turn to each partition, until it is stopped.

    With `retry` it is a producer as one should be (idempotent, acks=all); without, each refusal counts.
    With `keys` each record has one of so many keys, and the partitioner chooses. `extra`: more settings.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        partitions: int = 1,
        interval: float = 0.05,
        retry: bool = True,
        first: int = 0,
        keys: int = 0,
        extra: Optional[Settings] = None,
    ):
        safe: Dict[str, Any] = {"acks": "all", "linger.ms": 0}
        if retry:
            safe.update(
                {"enable.idempotence": True, "delivery.timeout.ms": DELIVERY_SECONDS * 1000}
            )
        else:
            safe.update({"retries": 0, "message.timeout.ms": 60000})
        self.sent: Dict[str, int] = {}
        self.acknowledged: Dict[str, int] = {}
        self.refused: collections.Counter[str] = collections.Counter()
        self.refused_ms: List[int] = []
        # of them, those that were refused for want of replicas
        self.wanting_ms: List[int] = []
        # (when sent, when given up) of those of which nobody has said whether they were written
        self.unknown: List[Tuple[int, int]] = []
        # when it sent the last one; 0 while it goes on
        self.ended_ms = 0
        self._topic, self._partitions, self._interval = topic, partitions, interval
        self._first, self._keys = first, keys
        self._stop, self._holds, self._rests = (threading.Event() for _each in range(3))
        # records that went to a broker, each time they did, as of `_counted` (time.monotonic())
        self._transmitted, self._counted = 0, 0.0
        # no later than librdkafka's own begin
        self._begun = time.monotonic()
        told = {"statistics.interval.ms": STATISTICS_MS, "stats_cb": self._hear}
        self._producer = Producer({**settings, **safe, **told, **(extra or {})})
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = self._first
        while not self._stop.is_set():
            if self._holds.is_set():
                self._rests.set()
                self._stop.wait(LOOK_SECONDS)
                continue
            if self._keys:
                self.send(str(number), None, str(number % self._keys))
            else:
                self.send(str(number), number % self._partitions)
            number += 1
            self._stop.wait(self._interval)

    def send(self, record: str, partition: Optional[int] = 0, key: Optional[str] = None) -> None:
        """Send one record; its number and time are its value. None: the partitioner chooses."""
        self.sent[record] = now_ms()

        def told(error: Any, _message: Any) -> None:
            if error:
                name = error.name().lstrip("_")
                self.refused[name] += 1
                self.refused_ms.append(now_ms())
                if name in NOT_ENOUGH:
                    self.wanting_ms.append(now_ms())
                if name in UNKNOWN:
                    self.unknown.append((self.sent[record], now_ms()))
            else:
                self.acknowledged[record] = now_ms()

        value = value_of(record, self.sent[record])
        try:
            self._producer.produce(
                self._topic,
                value,
                None if key is None else key.encode(),
                partition=PARTITION_ANY if partition is None else partition,
                on_delivery=told,
            )
            self._producer.poll(0)
        except BufferError:
            self._producer.poll(0)
        except KafkaException as error:
            # brokers that have just started may not know the topic yet
            told(error.args[0], None)

    def is_answered(self) -> bool:
        """Hear answers, which nobody does between two records; whether any record is acknowledged."""
        self._producer.poll(0)
        return bool(self.acknowledged)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Send nothing while the context is open; what was sent before is answered."""
        self._rests.clear()
        self._holds.set()
        try:
            self._rests.wait(DELIVERY_SECONDS)
            self._producer.flush(DELIVERY_SECONDS)
            yield
        finally:
            self._holds.clear()

    def stop(self) -> None:
        """Send no more, and wait for what is under way."""
        self._stop.set()
        self._thread.join(ANSWER_SECONDS)
        self.ended_ms = self.ended_ms or now_ms()
        self._producer.flush(DELIVERY_SECONDS)
        flushed = time.monotonic()

        def told() -> bool:
            self._producer.poll(0.1)
            return self._counted > flushed

        wait_until(told, STATISTICS_WAIT, poll_seconds=0.0)

    def _hear(self, statistics: str) -> None:
        self._transmitted = transmitted(statistics, self._topic)
        self._counted = self._begun + counted_after(statistics)

    @property
    def retried(self) -> int:
        """How many times a record was sent again, once stopped: after an error, or for want of an answer."""
        return max(0, self._transmitted - len(self.sent))

    @property
    def sent_and_acknowledged(self) -> Dict[str, int]:
        """Each record that was acknowledged, and when it was sent."""
        return {record: self.sent[record] for record in list(self.acknowledged)}


def filled(ticker: Ticker, topic: str, records: int) -> Dict[str, int]:
    """Wait until so many records are acknowledged, and stop; returns each, and when it was sent.

    There may be fewer after a minute. AdminError where there is none.
    """
    seconds = 2 * ANSWER_SECONDS
    wait_until(lambda: len(ticker.acknowledged) >= records, seconds)
    ticker.stop()
    if not ticker.acknowledged:
        refused = [f"{count} {name}" for name, count in sorted(ticker.refused.items())]
        why = ", ".join(refused) or "nobody has answered"
        raise failed(topic, f"no record was acknowledged within {seconds:g} s: {why}")
    return ticker.sent_and_acknowledged


def consumer_settings(settings: Settings, group: str) -> Dict[str, Any]:
    """Of a member of a drill's group: it commits when it has read, and not before."""
    return {
        **settings,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": SESSION_SECONDS * 1000,
        "heartbeat.interval.ms": HEARTBEAT_SECONDS * 1000,
    }


def value_of(record: str, sent_ms: int) -> bytes:
    """The value of a record: its number, and when it was sent."""
    return SEPARATOR.join([record.encode(), str(sent_ms).encode()])


def record_of(value: Optional[bytes]) -> str:
    """The number of a record, of its value."""
    return (value or b"").split(SEPARATOR)[0].decode()


class Reader:
    """A member of a group. `came` are (record, when), each time it came, `places` (record, partition, key).

    `seconds_each`: how long it works on each record before it takes the next. `committed_ms`: when the
    group's coordinator had taken an offset.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        group: str,
        seconds_each: float = 0.0,
        extra: Optional[Settings] = None,
    ):
        self.group = group
        self.came: List[Tuple[str, int]] = []
        self.places: List[Tuple[str, int, str]] = []
        self.committed_ms: List[int] = []
        self.partitions: Tuple[int, ...] = ()
        # with enable.partition.eof: whether nothing more was there at the last look
        self.at_end = False
        self._seconds_each = seconds_each
        self._stop = threading.Event()
        told = {"on_commit": self._committed}
        self._consumer = Consumer({**consumer_settings(settings, group), **told, **(extra or {})})
        self._consumer.subscribe([topic], on_assign=self._assign, on_revoke=self._revoke)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _assign(self, _consumer: Any, partitions: Sequence[Any]) -> None:
        self.partitions = tuple(each.partition for each in partitions)

    def _revoke(self, consumer: Any, _partitions: Sequence[Any]) -> None:
        """Between two records: what it has is done, and the next one shall not do it again."""
        self.partitions = ()
        with contextlib.suppress(KafkaException):
            consumer.commit(asynchronous=False)

    def _committed(self, error: Any, _offsets: Any) -> None:
        if not error:
            self.committed_ms.append(now_ms())

    def _run(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            self.at_end = error is not None and error.code() == KafkaError._PARTITION_EOF
            if error:
                continue
            if self._seconds_each:
                self._stop.wait(self._seconds_each)
            record = record_of(message.value())
            self.places.append((record, message.partition() or 0, (message.key() or b"").decode()))
            self.came.append((record, now_ms()))
            with contextlib.suppress(KafkaException):
                self._consumer.commit(message=message, asynchronous=True)
        with contextlib.suppress(KafkaException):
            self._consumer.commit(asynchronous=False)
        self._consumer.close()

    def has(self, records: Mapping[str, int]) -> bool:
        """Whether all of these have come."""
        return set(records) <= {record for record, _at in list(self.came)}

    def close(self) -> None:
        """Commit and leave the group."""
        self._stop.set()
        self._thread.join(ANSWER_SECONDS)


# A look asks for all topics; a slow network or very many of them need more than a moment.
ANSWERED_SECONDS = 5.0


class Watch:
    """Looks at a topic and the controller, and keeps each change as a Moment.

    `coordinators` are of the partition that has the offsets of the group, at each change.
    `controller` tells who leads a quorum, for which metadata name any broker. `looked_ms`: when a look was answered
    last, 0: none was.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        group: str = "",
        controller: Optional[Callable[[], Optional[int]]] = None,
    ):
        self.moments: List[Moment] = []
        self.coordinators: List[Coordinated] = []
        self.looked_ms = 0
        self._topic, self._group, self._controller = topic, group, controller
        self._admin = AdminClient(dict(settings))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(KafkaException):
                self._look()
            self._stop.wait(LOOK_SECONDS)

    def _look(self) -> None:
        # without a name: with one, librdkafka's answer has no controller in some versions
        told = snapshot_of(self._admin.list_topics(timeout=ANSWERED_SECONDS))
        self._look_for_coordinator(told.topics.get(GROUPS_TOPIC))
        topic = told.topics.get(self._topic)
        if topic is None or not topic.partitions:
            return
        part = topic.partitions[0]
        controller = told.controller if self._controller is None else self._controller()
        found = Moment(now_ms(), part.leader, frozenset(part.isr), controller)
        if not self.moments or not found.same(self.moments[-1]):
            self.moments.append(found)
        self.looked_ms = found.at_ms

    def _look_for_coordinator(self, topic: Any) -> None:
        if topic is None or not topic.partitions or not self._group:
            return
        number = partition_of(self._group, len(topic.partitions))
        part = next(each for each in topic.partitions if each.id == number)
        found = (part.leader, len(part.replicas), frozenset(part.isr))
        if not self.coordinators or found != self.coordinators[-1][1:]:
            self.coordinators.append((now_ms(), *found))

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join(ANSWER_SECONDS)
