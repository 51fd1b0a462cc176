# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load of a drill, and what watches it: a producer, consumers, and looks at the topic, each a thread.

Private to this collection. They count; `observed` and `verdict` judge.
"""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.answers import (
    snapshot_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.connection import (
    error_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    NOT_ENOUGH,
    PREFIX,
    SESSION_SECONDS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import Moment
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
    from confluent_kafka.admin import AdminClient, NewTopic
except ImportError:
    pass  # require_kafka of admin.client.connection says so

LOOK_SECONDS = 0.1
ANSWER_SECONDS = 30.0
# Without the retries of a producer, refusals are seen; with them, none is expected within:
DELIVERY_SECONDS = 120
SEPARATOR = b" "

Settings = Mapping[str, Any]


def now_ms() -> int:
    """Milliseconds since 1970."""
    return int(time.time() * 1000)


def failed(what: str, why: str) -> AdminError:
    """The error that ends a drill before its verdict."""
    return AdminError(
        Problem("drill.failed", f"{what}: {why}", "see with playbooks/status.yml whether all runs")
    )


class Ticker:
    """Sends a numbered record each `interval` seconds, in turn to each partition, until it is stopped.

    With `retry` it is a producer as one should be (idempotent, acks=all); without, each refusal counts.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        partitions: int = 1,
        interval: float = 0.05,
        retry: bool = True,
        first: int = 0,
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
        self._topic, self._partitions, self._interval = topic, partitions, interval
        self._first = first
        self._stop = threading.Event()
        self._producer = Producer({**settings, **safe})
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = self._first
        while not self._stop.is_set():
            self.send(str(number), number % self._partitions)
            number += 1
            self._stop.wait(self._interval)

    def send(self, record: str, partition: int = 0) -> None:
        """Send one record; its number and time are its value."""
        self.sent[record] = now_ms()

        def told(error: Any, _message: Any) -> None:
            if error:
                self.refused[error.name().lstrip("_")] += 1
                self.refused_ms.append(now_ms())
                if error.name() in NOT_ENOUGH:
                    self.wanting_ms.append(now_ms())
            else:
                self.acknowledged[record] = now_ms()

        value = SEPARATOR.join([record.encode(), str(self.sent[record]).encode()])
        with contextlib.suppress(BufferError):
            self._producer.produce(self._topic, value, partition=partition, on_delivery=told)
        self._producer.poll(0)

    def stop(self) -> None:
        """Send no more, and wait for what is under way."""
        self._stop.set()
        self._thread.join(ANSWER_SECONDS)
        self._producer.flush(DELIVERY_SECONDS)

    @property
    def sent_and_acknowledged(self) -> Dict[str, int]:
        """Each record that was acknowledged, and when it was sent."""
        return {record: self.sent[record] for record in list(self.acknowledged)}


def consumer_settings(settings: Settings, group: str) -> Dict[str, Any]:
    """Of a member of a drill's group: it commits when it has read, and not before."""
    return {
        **settings,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": SESSION_SECONDS * 1000,
        "heartbeat.interval.ms": 1000,
    }


def record_of(value: Optional[bytes]) -> str:
    """The number of a record, of its value."""
    return (value or b"").split(SEPARATOR)[0].decode()


class Reader:
    """The one member of a group: `came` are (record, when), each time it came."""

    def __init__(self, settings: Settings, topic: str, group: str):
        self.group = group
        self.came: List[Tuple[str, int]] = []
        self.partitions: Tuple[int, ...] = ()
        self._stop = threading.Event()
        self._consumer = Consumer(consumer_settings(settings, group))
        self._consumer.subscribe([topic], on_assign=self._assign)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _assign(self, _consumer: Any, partitions: Sequence[Any]) -> None:
        self.partitions = tuple(each.partition for each in partitions)

    def _run(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error():
                continue
            self.came.append((record_of(message.value()), now_ms()))
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


class Watch:
    """Looks at a topic and the controller, and keeps each change as a Moment."""

    def __init__(self, settings: Settings, topic: str):
        self.moments: List[Moment] = []
        self._topic = topic
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
        told = snapshot_of(self._admin.list_topics(timeout=1.0))
        topic = told.topics.get(self._topic)
        if topic is None or not topic.partitions:
            return
        part = topic.partitions[0]
        found = Moment(now_ms(), part.leader, frozenset(part.isr), told.controller)
        if not self.moments or not found.same(self.moments[-1]):
            self.moments.append(found)

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join(ANSWER_SECONDS)


# ---------------------------------------------------------------- what a drill makes, and removes


def create_topic(
    settings: Settings, topic: str, assignment: Sequence[Sequence[int]], config: Mapping[str, str]
) -> None:
    """Make a drill's topic with these replicas, and wait until each partition has its leader."""
    admin = AdminClient(dict(settings))
    new = NewTopic(
        topic,
        len(assignment),
        replica_assignment=[list(each) for each in assignment],
        config=dict(config),
    )

    def refused() -> Any:
        return error_of(admin.create_topics([new], operation_timeout=ANSWER_SECONDS)[topic])

    error = refused()
    if error and error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
        # one of this name is being deleted: ZooKeeper forgets it last
        wait_until(lambda: refused() is None, ANSWER_SECONDS, poll_seconds=0.5)
        error = None
    if error:
        raise failed(f"topic {topic} could not be made", error.str())

    def led() -> bool:
        found = _topics(admin).get(topic)
        return (
            found is not None
            and len(found.partitions) == len(assignment)
            and all(
                part.leader == replicas[0] and set(part.isr) == set(replicas)
                for part, replicas in zip(found.partitions, assignment)
            )
        )

    if not wait_until(led, ANSWER_SECONDS):
        raise failed(f"topic {topic}", "its replicas are not in sync in time")


def _topics(admin: Any) -> Mapping[str, Any]:
    with contextlib.suppress(KafkaException):
        return snapshot_of(admin.list_topics(timeout=5.0)).topics
    return {}


def clean(settings: Settings, topics: Optional[Sequence[str]] = None) -> List[str]:
    """Remove drills' topics and groups: these topics with their groups, or all; returns their names."""
    admin = AdminClient(dict(settings))
    there = clean_topics(settings, topics)
    return [*there, *_clean_groups(admin, lambda name: _ours(name, topics))]


def _ours(name: str, topics: Optional[Sequence[str]]) -> bool:
    return name.startswith(PREFIX) and (
        topics is None or any(name == each or name.startswith(f"{each}-") for each in topics)
    )


def clean_topics(settings: Settings, topics: Optional[Sequence[str]] = None) -> List[str]:
    """Remove these topics of drills, or all, and wait until they are gone; returns their names."""
    admin = AdminClient(dict(settings))
    found = snapshot_of(admin.list_topics(timeout=ANSWER_SECONDS)).topics
    there = [name for name in found if _ours(name, topics)]
    if not there:
        return []
    answers = admin.delete_topics(there, operation_timeout=ANSWER_SECONDS)
    for name, future in answers.items():
        error = error_of(future)
        if error and name in _topics(admin):
            raise failed(f"topic {name} could not be removed", error.str())
    wait_until(lambda: not set(there) & set(_topics(admin)), ANSWER_SECONDS)
    return there


def _clean_groups(admin: Any, ours: Callable[[str], bool]) -> List[str]:
    """A group can go when its last member is away: a killed one is there until its session ends."""

    def listed() -> List[str]:
        found = admin.list_consumer_groups().result(ANSWER_SECONDS)
        return [each.group_id for each in found.valid if ours(each.group_id)]

    gone: Dict[str, None] = {}

    def removed() -> bool:
        left = listed()
        if left:
            answers = admin.delete_consumer_groups(left)
            gone.update({name: None for name, each in answers.items() if not error_of(each)})
        return not left

    if not wait_until(removed, SESSION_SECONDS + ANSWER_SECONDS, poll_seconds=0.5):
        raise failed(f"groups {', '.join(listed())}", "they could not be removed")
    return list(gone)


@contextlib.contextmanager
def own_topic(
    settings: Settings, topic: str, assignment: Sequence[Sequence[int]], config: Mapping[str, str]
) -> Iterator[None]:
    """The drill's topic while the context is open; it and its groups are removed at the end."""
    create_topic(settings, topic, assignment, config)
    try:
        yield
    finally:
        clean(settings, [topic])
