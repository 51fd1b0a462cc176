# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Consumers that commit before their work, after it, and automatically; each is killed in the midst of it.

Private to this collection. A consumer takes records in batches, works at one after the other, and tells
each that is done. Another one of its group goes on.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    AFTER,
    AUTOMATIC,
    BEFORE,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Settings,
    Ticker,
    consumer_settings,
    filled,
    now_ms,
    record_of,
    written,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_processes import (
    Inside,
    Pair,
    ended,
    faults,
    longest_pause_ms,
    take_over,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_there import (
    groups_seen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import Ask
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Seen,
    per_bucket,
)

try:
    from confluent_kafka import Consumer, KafkaException
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

RECORDS, BATCH = 600, 20
# How long the work at one record takes, and Kafka's default of auto.commit.interval.ms.
WORK_SECONDS, INTERVAL_MS = 0.02, 5000
# It is killed in the midst of a batch, after so many; an automatic one so many after its first commit.
BATCHES = 5


class Consumers(Pair):
    """Two consumers of a group. `done`: (record, when)."""

    def __init__(self, settings: Settings, topic: str, group: str, mode: str):
        self.group, self.mode = group, mode
        self.done: List[Tuple[str, int]] = []
        self._batches, self._committed = 0, False
        super().__init__(_working(settings, topic, group, mode))

    def _of_first(self, what: str, told: Any = "") -> None:
        if what == "done":
            self.done.append((told, now_ms()))
        elif what == "committed":
            if self.mode == AUTOMATIC and not self._committed:
                self._batches = 0
            self._committed = True
        elif what == "half":
            self._batches += 1
            enough = self._batches >= BATCHES and (self.mode != AUTOMATIC or self._committed)
            if enough and not self.killed_ms:
                self.kill_first()
            else:
                self.first.go_on()

    def _of_second(self, what: str, told: Any = "") -> None:
        if what == "done":
            self.resumed_ms = self.resumed_ms or now_ms()
            self.done.append((told, now_ms()))
        elif what == "half":
            self.second.go_on()

    def has(self, record: str) -> bool:
        """Whether it was done."""
        return any(each == record for each, _at in list(self.done))


def _working(settings: Settings, topic: str, group: str, mode: str) -> Callable[[Inside], None]:
    """What the process of a consumer does."""
    own = {"enable.auto.commit": mode == AUTOMATIC, "auto.commit.interval.ms": INTERVAL_MS}

    def body(inside: Inside) -> None:
        def committed(error: Any, _offsets: Any) -> None:
            if not error:
                inside.tell("committed")

        told = {"on_commit": committed}
        consumer = Consumer({**consumer_settings(settings, group), **own, **told})
        consumer.subscribe([topic])
        while inside.going():
            batch = [each for each in consumer.consume(BATCH, 0.5) if not each.error()]
            if batch and mode == BEFORE:
                consumer.commit(asynchronous=False)
            for number, message in enumerate(batch):
                if number == len(batch) // 2 and len(batch) > 1:
                    inside.ask("half")
                inside.pause(WORK_SECONDS)
                inside.tell("done", record_of(message.value()))
            if batch and mode == AFTER:
                with contextlib.suppress(KafkaException):  # it was taken out of the group
                    consumer.commit(asynchronous=False)
        consumer.close()

    return body


def commit_modes(
    connection: Connection,
    topic: str,
    assignment: Sequence[Sequence[int]],
    config: Mapping[str, str],
    groups: Mapping[str, str],
    judge: Ask,
) -> Dict[str, Any]:
    """Kill a consumer of each way to commit; returns what was seen. `groups`: mode to its group.

    AdminError where none reads.
    """
    settings = librdkafka_settings(connection)
    pairs = [Consumers(settings, topic, groups[mode], mode) for mode in (AUTOMATIC, AFTER, BEFORE)]
    with ended(pairs), own_topics(connection, {topic: assignment}, config), ended(pairs):
        ticker = Ticker(settings, topic, interval=0.001)
        sent = filled(ticker, topic, RECORDS)
        last = max(sent, key=int)
        unmet = "not every consumer has worked in time"
        take_over(pairs, lambda each: each.has(last), topic, unmet)
        done = {each.group: each.done for each in pairs}
        came = groups_seen(settings, topic, len(assignment), sent, done, still_to_come=True)
        # whether the topic has them the judge says, who reads it
        groups_came = [replace(each, missing=(), skipped=each.missing) for each in came]
        answers = judge([written(topic, ticker)])
    return Seen(
        sent=len(ticker.sent),
        acknowledged=len(sent),
        refused=dict(ticker.refused),
        pause_ms=longest_pause_ms(pairs),
        groups=tuple(groups_came),
        timeline={
            **per_bucket(at_ms for each in pairs for _record, at_ms in each.done),
            "of": "Records at which somebody has worked,",
        },
        measured={"modes": [each.mode for each in pairs], "batch": BATCH, **faults(pairs)},
        judged=answers,
    ).to_dict()
