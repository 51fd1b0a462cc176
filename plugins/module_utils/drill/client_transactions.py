# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, process, write: with transactions, and without; each is killed between writing and committing.

Private to this collection. Two processes of each kind: the first is killed, the second goes on.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    PLAIN,
    TRANSACTIONAL,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Reader,
    Settings,
    Ticker,
    consumer_settings,
    filled,
    now_ms,
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
    ANSWER_SECONDS,
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import (
    Ask,
    Written,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Seen,
    per_bucket,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

try:
    from confluent_kafka import Consumer, Producer
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

RECORDS, BATCH = 400, 20
# It is killed after it has written so many batches, before it commits the last.
BATCHES = 6
TO_THE_END = {"enable.partition.eof": True}
UNCOMMITTED = {"isolation.level": "read_uncommitted"}


class Copiers(Pair):
    """Two processes that copy from one topic to another."""

    def __init__(self, settings: Settings, source: str, target: str, kind: str):
        self.kind, self.target = kind, target
        # batches whose commit was answered, by either
        self.committed: List[int] = []
        # when, for each of their records
        self.committed_ms: List[int] = []
        self._written = 0
        super().__init__(_copying(settings, source, target, kind == TRANSACTIONAL))

    def _commits(self, count: int) -> None:
        self.committed.append(count)
        self.committed_ms.extend([now_ms()] * count)

    def _of_first(self, what: str, told: int = 0) -> None:
        if what == "committed":
            self._commits(told)
        elif what == "written":
            self._written += 1
            if self._written >= BATCHES:
                self.kill_first()
            else:
                self.first.go_on()

    def _of_second(self, what: str, told: int = 0) -> None:
        if what == "committed":
            self.resumed_ms = self.resumed_ms or now_ms()
            self._commits(told)
        elif what == "written":
            self.second.go_on()


def _copying(
    settings: Settings, source: str, target: str, transactional: bool
) -> Callable[[Inside], None]:
    """What a process does; its group and its transactional id are the target's name."""
    own: Dict[str, Any] = {"acks": "all", "enable.idempotence": True, "linger.ms": 0}
    if transactional:
        # a request may not take longer than a transaction, which is a minute by default
        own.update({"transactional.id": target, "socket.timeout.ms": int(ANSWER_SECONDS * 1000)})

    def body(inside: Inside) -> None:
        producer = Producer({**settings, **own})
        if transactional:
            # fences a process that had this id before, and ends what it has begun
            producer.init_transactions(ANSWER_SECONDS)
        consumer = Consumer(consumer_settings(settings, target))
        consumer.subscribe([source])
        while inside.going():
            batch = [each for each in consumer.consume(BATCH, 0.5) if not each.error()]
            if not batch:
                continue
            if transactional:
                producer.begin_transaction()
            for message in batch:
                producer.produce(target, message.value(), partition=0)
            producer.flush(ANSWER_SECONDS)
            inside.ask("written", len(batch))
            if transactional:
                positions = consumer.position(consumer.assignment())
                member = consumer.consumer_group_metadata()
                producer.send_offsets_to_transaction(positions, member, ANSWER_SECONDS)
                producer.commit_transaction(ANSWER_SECONDS)
            else:
                consumer.commit(asynchronous=False)
            inside.tell("committed", len(batch))
        consumer.close()

    return body


def exactly_once(
    connection: Connection,
    topic: str,
    assignment: Sequence[Sequence[int]],
    config: Mapping[str, str],
    judge: Ask,
) -> Dict[str, Any]:
    """Copy a topic twice, with transactions and without; returns what was seen.

    AdminError where nothing can be read or written.
    """
    settings = librdkafka_settings(connection)
    pairs = [Copiers(settings, topic, f"{topic}-{kind}", kind) for kind in (TRANSACTIONAL, PLAIN)]
    topics = {topic: assignment, **{each.target: assignment for each in pairs}}
    with ended(pairs), own_topics(connection, topics, config), ended(pairs):
        ticker = Ticker(settings, topic, interval=0.001)
        sent = filled(ticker, topic, RECORDS)
        # the batch that was killed before its commit is committed by the second
        unmet = "not every process has written in time"
        take_over(pairs, lambda each: sum(each.committed) >= len(sent), topic, unmet)
        found = {each.kind: _found(settings, each.target, sent, {}) for each in pairs}
        everything = _found(settings, pairs[0].target, sent, UNCOMMITTED, "-uncommitted")
        aborted = len(everything) - len(found[TRANSACTIONAL])
        # a copier's group is named as its target; what it has not come to is not lost
        copied = {each.target: found[each.kind] for each in pairs}
        groups = groups_seen(settings, topic, len(assignment), sent, copied, still_to_come=True)
        # the judge reads the copies: what is not there is missing in them, late or lost
        copies = [
            Written(
                group.name,
                ticker.sent,
                sent,
                set(sent) - {record for record, _at in copied[group.name]},
                group.repeated,
                pair.kind == TRANSACTIONAL,
            )
            for pair, group in zip(pairs, groups)
        ]
        answers = judge([written(topic, ticker), *copies])
    return Seen(
        sent=len(ticker.sent),
        acknowledged=len(sent),
        refused=dict(ticker.refused),
        pause_ms=longest_pause_ms(pairs),
        groups=groups,
        timeline={
            **per_bucket(at_ms for each in pairs for at_ms in each.committed_ms),
            "of": "Records that were copied and committed,",
        },
        measured={
            "kinds": [each.kind for each in pairs],
            "aborted": aborted,
            "batch": BATCH,
            **faults(pairs),
        },
        judged=answers,
    ).to_dict()


def _found(
    settings: Settings,
    topic: str,
    sent: Mapping[str, int],
    extra: Settings,
    suffix: str = "",
) -> Any:
    """(record, when) of each record of a topic, as a new group reads it."""
    reader = Reader(settings, topic, f"{topic}-check{suffix}", extra={**TO_THE_END, **extra})
    try:
        wait_until(lambda: reader.has(sent) and reader.at_end, ANSWER_SECONDS)
        return list(reader.came)
    finally:
        reader.close()
