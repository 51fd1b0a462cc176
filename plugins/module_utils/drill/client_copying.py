# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that copy from one topic to another, with transactions and at least once; and what they have written.

Private to this collection. Errors are handled as the documentation of the client has it: a call that can be repeated
is repeated; a transaction that has to be aborted is aborted, and its records are read again from the committed offsets
on; after a fatal error there is a new producer, which ends what the one before has begun. Who lacks a right, ends.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    PLAIN,
    TRANSACTIONAL,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    DELIVERY_SECONDS,
    Settings,
    Ticker,
    consumer_settings,
    now_ms,
    record_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_processes import (
    Inside,
    Process,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_there import (
    groups_seen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import Written
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import GroupSeen
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

try:
    from confluent_kafka import (
        OFFSET_BEGINNING,
        Consumer,
        KafkaError,
        KafkaException,
        Producer,
        TopicPartition,
    )
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

BATCH, AT_ONCE = 20, 1000
# A call that fails at once is not repeated at once.
AGAIN_SECONDS = 0.2
UNCOMMITTED = {"isolation.level": "read_uncommitted"}


def repeated(ask: Callable[[], Any], inside: Inside) -> Any:
    """Call `ask` until it is answered; the error that does not go away by that is raised."""
    while True:
        try:
            return ask()
        except KafkaException as error:
            if not error.args[0].retriable() or not inside.going():
                raise
            inside.pause(AGAIN_SECONDS)


def produced(producer: Any, topic: str, values: Sequence[bytes], told: Any = None) -> None:
    """Hand these to a producer, which may have no room for a while; `told` hears what became of each."""
    for value in values:
        while True:
            try:
                producer.produce(topic, value, partition=0, on_delivery=told)
                break
            except BufferError:
                producer.poll(AGAIN_SECONDS)


class InTransactions:
    """Writes each batch in a transaction, together with the offsets of what was read."""

    def __init__(self, settings: Settings, target: str, inside: Inside):
        self._settings = {
            **settings,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            "transactional.id": target,
            # a request may not take longer than a transaction, which is a minute by default
            "socket.timeout.ms": int(ANSWER_SECONDS * 1000),
        }
        self._target, self._inside = target, inside
        self._producer: Any = None
        self.renew()

    def renew(self) -> None:
        """Have a new producer. It fences one that had this id before, and ends what that has begun."""
        self._producer = producer = Producer(self._settings)
        repeated(lambda: producer.init_transactions(ANSWER_SECONDS), self._inside)

    def write(self, batch: Sequence[Any], consumer: Any, between: Callable[[int], None]) -> None:
        """Copy a batch; KafkaException where that was in vain, or nobody knows."""
        producer, inside = self._producer, self._inside
        producer.begin_transaction()
        produced(producer, self._target, [each.value() for each in batch])
        producer.flush(ANSWER_SECONDS)
        between(len(batch))
        offsets, member = offsets_after(batch), consumer.consumer_group_metadata()
        repeated(
            lambda: producer.send_offsets_to_transaction(offsets, member, ANSWER_SECONDS), inside
        )
        repeated(lambda: producer.commit_transaction(ANSWER_SECONDS), inside)

    def recover(self, error: Any) -> str:
        """After an error of `write`; returns what was done: the transaction aborted, or the producer renewed."""
        producer = self._producer
        if error.txn_requires_abort():
            # what keeps it from aborting is fatal
            with contextlib.suppress(KafkaException):
                repeated(lambda: producer.abort_transaction(ANSWER_SECONDS), self._inside)
                return "aborted"
        self.renew()
        return "renewed"


class AtLeastOnce:
    """Writes each batch, and commits the offsets when it is acknowledged; `extra`: settings of the producer."""

    def __init__(self, settings: Settings, target: str, extra: Settings):
        own = {"acks": "all", "linger.ms": 0, "message.timeout.ms": DELIVERY_SECONDS * 1000}
        self._settings, self._target = {**settings, **own, **extra}, target
        self._producer = Producer(self._settings)

    def write(self, batch: Sequence[Any], consumer: Any, between: Callable[[int], None]) -> None:
        """Copy a batch; KafkaException where that was in vain, or nobody knows."""
        refused: List[Any] = []

        def told(error: Any, _message: Any) -> None:
            if error:
                refused.append(error)

        produced(self._producer, self._target, [each.value() for each in batch], told)
        self._producer.flush(DELIVERY_SECONDS + ANSWER_SECONDS)
        if refused:
            raise KafkaException(refused[0])
        between(len(batch))
        consumer.commit(offsets=offsets_after(batch), asynchronous=False)

    def recover(self, error: Any) -> str:
        """After an error of `write`: there is nothing to undo, it is written again, if need be by a new producer."""
        # calls after the one that was fatal have this code, and are not said to be
        if error.fatal() or error.code() == KafkaError._FATAL:
            self._producer = Producer(self._settings)
            return "renewed"
        return "again"


def offsets_after(batch: Sequence[Any]) -> List[Any]:
    """Where a consumer goes on that has worked at these messages."""
    last = {(each.topic(), each.partition()): each.offset() for each in batch}
    return [TopicPartition(topic, number, at + 1) for (topic, number), at in last.items()]


def rewind(consumer: Any, inside: Inside) -> None:
    """Have a consumer read again what it has not committed; it may take a while to hear what it has."""

    def rewound() -> bool:
        try:
            # those that it gets anew begin there anyway
            places = consumer.assignment()
            for place in consumer.committed(places, timeout=ANSWER_SECONDS) if places else ():
                at = place.offset if place.offset >= 0 else OFFSET_BEGINNING
                consumer.seek(TopicPartition(place.topic, place.partition, at))
        except KafkaException:
            inside.pause(AGAIN_SECONDS)
            return False
        return True

    while inside.going() and not rewound():
        continue


def copying(
    settings: Settings,
    source: str,
    target: str,
    plain: Optional[Settings] = None,
    asks: bool = False,
) -> Callable[[Inside], None]:
    """What the process of a program does; its group and its transactional id are the target's name.

    `plain`: settings of a producer without transactions, None: it has them. It tells `committed` with how many records
    and the last of them, and what it has done about an error. `asks`: between writing and committing it tells
    `written`, and goes on when it is told to.
    """

    def body(inside: Inside) -> None:
        # before the consumer, which hears nothing of offsets in a transaction that nobody ends
        writer = (
            InTransactions(settings, target, inside)
            if plain is None
            else AtLeastOnce(settings, target, plain)
        )

        def between(count: int) -> None:
            if asks:
                inside.ask("written", count)

        consumer = Consumer(consumer_settings(settings, target))
        consumer.subscribe([source])
        while inside.going():
            batch = [each for each in consumer.consume(BATCH, 0.5) if not each.error()]
            if not batch:
                continue
            try:
                writer.write(batch, consumer, between)
            except KafkaException as error:
                if "AUTHORIZATION_FAILED" in error.args[0].name():
                    raise
                inside.tell(writer.recover(error.args[0]), str(error.args[0]))
                inside.pause(AGAIN_SECONDS)
                rewind(consumer, inside)
            else:
                inside.tell("committed", (len(batch), record_of(batch[-1].value())))
        consumer.close()

    return body


class Mended:
    """What a program has done about errors: how often each thing, and about which error first."""

    def __init__(self) -> None:
        self._done: Dict[str, Tuple[int, str]] = {}

    def note(self, done: str, error: str) -> None:
        """Note what a program tells."""
        times, first = self._done.get(done, (0, error))
        self._done[done] = (times + 1, first)

    def told(self) -> List[List[Any]]:
        """(what was done, how often, the first error) of each, as JSON has it."""
        return [[done, times, first] for done, (times, first) in list(self._done.items())]


# What is not known to be written is written again.
NO_IDEMPOTENCE: Mapping[str, Any] = {"enable.idempotence": False}


class Copier:
    """A program that copies steadily, in a process of its own. `committed_ms`: when, for each commit."""

    def __init__(self, settings: Settings, source: str, target: str, kind: str):
        self.target, self.kind = target, kind
        self.committed_ms: List[int] = []
        self._mended = Mended()
        self._last = -1
        plain = None if kind == TRANSACTIONAL else NO_IDEMPOTENCE
        self.process = Process(copying(settings, source, target, plain), self._heard)

    def _heard(self, what: str, told: Any = None) -> None:
        if what == "committed":
            self.committed_ms.append(now_ms())
            self._last = max(self._last, int(told[1]))
        else:
            self._mended.note(what, told)

    def has(self, record: str) -> bool:
        """Whether it has copied its source up to this record, or has ended by itself."""
        return self._last >= int(record) or bool(self.process.trouble)

    def told(self) -> Dict[str, Any]:
        """What was measured."""
        return {
            "kind": self.kind,
            "commits": len(self.committed_ms),
            "last_commit_ms": max(self.committed_ms, default=0),
            "errors": self._mended.told(),
            "trouble": self.process.trouble,
        }


def copiers(settings: Settings, topic: str, groups: Sequence[str]) -> List[Copier]:
    """One for each of these groups whose name ends with a kind. To be made before there is any client."""
    kinds = {each: each.rpartition("-")[2] for each in groups}
    return [
        Copier(settings, topic, group, kind)
        for group, kind in kinds.items()
        if kind in (TRANSACTIONAL, PLAIN)
    ]


@dataclass(frozen=True)
class Copied:
    """What is in the topics that were copied to: of each group what came, and what the judge is asked.

    `aborted`: so many records are in the one with transactions that nobody sees.
    """

    groups: Tuple[GroupSeen, ...]
    written: Tuple[Written, ...]
    aborted: int


def copied(
    settings: Settings, topic: str, partitions: int, targets: Mapping[str, str], ticker: Ticker
) -> Copied:
    """Read the copies of what was acknowledged. `targets`: topic to its kind; its group has its name."""
    sent = ticker.sent_and_acknowledged
    found = {each: _found(settings, each, sent, {}) for each in targets}
    hidden = 0
    for target, kind in targets.items():
        if kind == TRANSACTIONAL:
            everything = _found(settings, target, sent, UNCOMMITTED)
            hidden += len(everything) - len(found[target])
    # what a program has not come to is not lost
    groups = groups_seen(settings, topic, partitions, sent, found, still_to_come=True)
    # the judge reads the copies: what is not there is missing in them, late or lost
    asked = tuple(
        Written(
            group.name,
            ticker.sent,
            sent,
            set(sent) - {record for record, _at in found[group.name]},
            group.repeated,
            targets[group.name] == TRANSACTIONAL,
        )
        for group in groups
    )
    return Copied(groups, asked, hidden)


def _found(
    settings: Settings, topic: str, wanted: Mapping[str, int], extra: Settings
) -> List[Tuple[str, int]]:
    """(record, when) of each record of a topic's first partition; who joins no group reads at once."""
    own = {"group.id": topic, "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({**settings, **own, **extra})
    found: List[Tuple[str, int]] = []
    at_end = False

    def over() -> bool:
        nonlocal at_end
        for message in consumer.consume(AT_ONCE, 0.5):
            error = message.error()
            at_end = error is not None and error.code() == KafkaError._PARTITION_EOF
            if error is None:
                found.append((record_of(message.value()), now_ms()))
        # the end of a transaction may not be known there yet
        return at_end and set(wanted) <= {record for record, _at in found}

    with contextlib.closing(consumer):
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        wait_until(over, ANSWER_SECONDS, poll_seconds=0.0)
    return found
