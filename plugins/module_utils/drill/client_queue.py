# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A topic as a queue of tasks: backlog with more and more consumers in one group, and with more partitions.

Private to this collection. A task is a record at which a consumer works for a while.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Reader,
    Settings,
    Ticker,
    now_ms,
    written,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_there import (
    groups_seen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    failed,
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import Ask
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Backlog,
    GroupSeen,
    Seen,
    growth,
    per_bucket,
    spread,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

# Five tasks a second, and a consumer needs the time of two for one.
TASK_INTERVAL_SECONDS, TASK_SECONDS = 0.2, 0.4
MOST_CONSUMERS = 4
# For how long the backlog is measured each time, and how often.
STAGE_SECONDS, LOOK_SECONDS = 8.0, 0.25
# Java's clients choose partitions so; librdkafka's own default is another one.
PARTITIONER = {"partitioner": "murmur2_random"}
KEYS, KEYED, UNKEYED = 12, 240, 240
# While partitions grow: consumers, and how often clients ask for what has changed (5 minutes by default).
GROW_CONSUMERS, GROW_KEYS = 4, 40
GROW_INTERVAL_SECONDS, GROW_TASK_SECONDS = 0.05, 0.15
REFRESH = {"topic.metadata.refresh.interval.ms": 5000}


class Queue:
    """Consumers of one group, what they have done, and how the backlog went."""

    def __init__(self, make: Callable[[], Reader], ticker: Ticker, partitions: int):
        self.samples: List[Backlog] = []
        self.consumers: List[Reader] = []
        self._make, self._ticker, self.partitions = make, ticker, partitions

    def join(self) -> None:
        """One consumer more; returns when as many as can have partitions share them all."""
        self.consumers.append(self._make())
        if not wait_until(self.shared, 2 * ANSWER_SECONDS):
            raise failed("consumer group", "its consumers did not share the partitions in time")

    def shared(self) -> bool:
        """Whether each partition has one consumer, and as many consumers as can have one."""
        held = [each.partitions for each in self.consumers]
        given = sorted(number for each in held for number in each)
        busy = sum(bool(each) for each in held)
        return given == list(range(self.partitions)) and busy == min(
            self.partitions, len(self.consumers)
        )

    @property
    def done(self) -> List[Tuple[str, int]]:
        """(record, when) of each task that was done, in this order."""
        pairs = [pair for each in self.consumers for pair in list(each.came)]
        return sorted(pairs, key=lambda pair: pair[1])

    @property
    def places(self) -> List[Tuple[str, int, str]]:
        """(record, partition, key) in the order in which they were done."""
        rows = [
            (at_ms, place)
            for each in self.consumers
            for (_record, at_ms), place in zip(list(each.came), list(each.places))
        ]
        return [place for _at_ms, place in sorted(rows, key=lambda row: row[0])]

    def waiting(self) -> int:
        """How many acknowledged tasks nobody has done."""
        return len(set(self._ticker.sent_and_acknowledged) - {record for record, _at in self.done})

    def watch(self, seconds: float) -> None:
        """Look at the backlog for so long."""

        def look() -> bool:
            self.samples.append((now_ms(), self.waiting(), len(self.consumers)))
            return False

        wait_until(look, seconds, poll_seconds=LOOK_SECONDS)

    def group_seen(self, settings: Settings, topic: str, group: str) -> Tuple[GroupSeen, ...]:
        """What the group has done, once the producer has stopped; while the topic is there."""
        sent = self._ticker.sent_and_acknowledged
        return groups_seen(settings, topic, self.partitions, sent, {group: self.done})

    def seen(self, groups: Tuple[GroupSeen, ...], **more: Any) -> Seen:
        """What was seen, once the producer has stopped and everything is done."""
        sent = self._ticker.sent_and_acknowledged
        return Seen(
            sent=len(self._ticker.sent),
            acknowledged=len(sent),
            refused=dict(self._ticker.refused),
            groups=groups,
            timeline=per_bucket(self._ticker.acknowledged.values()),
            **more,
        )


@contextlib.contextmanager
def _working(make: Callable[[], Reader], ticker: Ticker, partitions: int) -> Iterator[Queue]:
    """A queue that is worked on until everything is done, or for a minute at most."""
    queue = Queue(make, ticker, partitions)
    try:
        yield queue
        ticker.stop()
        wait_until(lambda: not queue.waiting(), 2 * ANSWER_SECONDS)
    finally:
        ticker.stop()
        for each in queue.consumers:
            each.close()


def task_queue(
    connection: Connection,
    topic: str,
    assignment: Sequence[Sequence[int]],
    config: Mapping[str, str],
    group: str,
    judge: Ask,
) -> Dict[str, Any]:
    """Add consumers to a group, one after the other; returns what was seen. AdminError where none reads."""
    settings, count, keyed = librdkafka_settings(connection), len(assignment), f"{topic}-keys"
    with own_topics(connection, {topic: assignment, keyed: assignment}, config):
        lying, places = _lie(settings, keyed, f"{group}-keys")
        ticker = Ticker(settings, topic, count, TASK_INTERVAL_SECONDS)

        def make() -> Reader:
            return Reader(settings, topic, group, TASK_SECONDS)

        with _working(make, ticker, count) as queue:
            for _consumer in range(MOST_CONSUMERS):
                queue.join()
                queue.watch(STAGE_SECONDS)
            idle = sum(not each.partitions for each in queue.consumers)
        groups = queue.group_seen(settings, topic, group)
        answers = judge([written(topic, ticker), written(keyed, lying)])
    lay = spread(places)
    each_of = range(1, MOST_CONSUMERS + 1)
    measured = {
        "backlog": [list(each) for each in queue.samples],
        "growth": {str(number): growth(queue.samples, number) for number in each_of},
        "consumers": MOST_CONSUMERS,
        "partitions": count,
        "idle": idle,
        "keys": lay.keys,
        "keys_split": lay.split,
        "keys_disordered": lay.disordered,
        "unkeyed": [lay.unkeyed.get(number, 0) for number in range(count)],
    }
    return queue.seen(groups, measured=measured, judged=answers).to_dict()


def _lie(settings: Settings, topic: str, group: str) -> Tuple[Ticker, List[Tuple[str, int, str]]]:
    """Write records with keys and without; returns what has written, and (record, partition, key) of each as read."""
    ticker = Ticker(settings, topic, interval=3600.0, keys=KEYS, extra=PARTITIONER)
    # Its thread sends the first one, which must not come behind a later one with the same key.
    if not wait_until(ticker.is_answered, ANSWER_SECONDS):
        ticker.stop()
        raise failed(topic, "the first record was not acknowledged in time")
    for number in range(1, KEYED):
        ticker.send(str(number), None, str(number % KEYS))
    for number in range(KEYED, KEYED + UNKEYED):
        ticker.send(str(number), None)
    ticker.stop()
    reader = Reader(settings, topic, group)
    try:
        if not wait_until(lambda: reader.has(ticker.sent_and_acknowledged), ANSWER_SECONDS):
            raise failed(topic, "what was written was not read in time")
        return ticker, list(reader.places)
    finally:
        reader.close()


def partitions_grown(
    connection: Connection,
    topic: str,
    assignment: Sequence[Sequence[int]],
    config: Mapping[str, str],
    group: str,
    judge: Ask,
) -> Dict[str, Any]:
    """Double the partitions under a group that lags; returns what was seen. AdminError where none reads."""
    settings, before = librdkafka_settings(connection), len(assignment)
    after = 2 * before
    with own_topics(connection, {topic: assignment}, config) as client:
        ticker = Ticker(
            settings,
            topic,
            interval=GROW_INTERVAL_SECONDS,
            keys=GROW_KEYS,
            extra={**PARTITIONER, **REFRESH},
        )

        def make() -> Reader:
            return Reader(settings, topic, group, GROW_TASK_SECONDS, REFRESH)

        with _working(make, ticker, before) as queue:
            for _consumer in range(GROW_CONSUMERS):
                queue.join()
            queue.watch(STAGE_SECONDS)
            grew, lag = growth(queue.samples, GROW_CONSUMERS), queue.waiting()
            queue.samples, first = [], queue.samples
            at_ms = now_ms()
            client.grow(topic, after)
            queue.partitions = after
            new = set(range(before, after))
            found = wait_until(
                lambda: new <= {partition for _r, partition, _k in queue.places} and queue.shared(),
                2 * ANSWER_SECONDS,
            )
            pause = now_ms() - at_ms if found else None
            queue.watch(STAGE_SECONDS)
            falls = growth(queue.samples, GROW_CONSUMERS)
        groups = queue.group_seen(settings, topic, group)
        answers = judge([written(topic, ticker)])
    lay = spread(queue.places)
    measured = {
        "at_ms": at_ms,
        "ended_ms": pause or 0,
        "backlog": [list(each) for each in [*first, *queue.samples]],
        "growth_before": grew,
        "growth_after": falls,
        "lag": lag,
        "partitions": [before, after],
        "keys": lay.keys,
        "keys_split": lay.split,
        "keys_disordered": lay.disordered,
    }
    return queue.seen(groups, pause_ms=pause, measured=measured, judged=answers).to_dict()
