# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A group of two consumers, each a process of its own; one of them is killed or closed, and comes back.

Private to this collection.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, List, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    SESSION_SECONDS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
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
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    failed,
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Seen,
    group_seen,
    handed_over_ms,
    per_bucket,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

try:
    from confluent_kafka import Consumer, KafkaException
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

STEADY_SECONDS = 2.0


class Member:
    """A consumer in a process. `came`: (record, when), `places`: (partition, when) of each."""

    def __init__(self, settings: Settings, topic: str, group: str):
        self.came: List[Tuple[str, int]] = []
        self.places: List[Tuple[int, int]] = []
        self.partitions: Set[int] = set()
        self._process = Process(_consuming(settings, topic, group), self._heard)
        # Let it become a member of the group; kill it, or let it commit and leave.
        self.join, self.end = self._process.begin, self._process.end

    def _heard(self, what: str, told: Any) -> None:
        if what == "has":
            self.partitions = set(told)
        else:
            partition, record, at_ms = told
            self.came.append((record, at_ms))
            self.places.append((partition, at_ms))


def _consuming(settings: Settings, topic: str, group: str) -> Callable[[Inside], None]:
    """What the process of a member does."""

    def body(inside: Inside) -> None:
        consumer = Consumer(consumer_settings(settings, group))

        def assigned(_consumer: Any, partitions: Sequence[Any]) -> None:
            inside.tell("has", [each.partition for each in partitions])

        def revoked(_consumer: Any, _partitions: Sequence[Any]) -> None:
            with contextlib.suppress(KafkaException):
                consumer.commit(asynchronous=False)
            inside.tell("has", [])

        consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
        while inside.going():
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                record = record_of(message.value())
                inside.tell("came", (message.partition(), record, now_ms()))
                with contextlib.suppress(KafkaException):
                    consumer.commit(message=message, asynchronous=True)
        consumer.close()

    return body


def hand_over(
    connection: Connection,
    topic: str,
    assignment: Sequence[Sequence[int]],
    config: Dict[str, str],
    group: str,
    kill: bool,
) -> Dict[str, Any]:
    """End one of two members, and let it come back; returns what was seen. AdminError where none reads."""
    settings = librdkafka_settings(connection)
    stays, leaves, returns = members = [Member(settings, topic, group) for _each in range(3)]
    try:
        with own_topics(connection, {topic: assignment}, config):
            ticker = Ticker(settings, topic, len(assignment))
            try:
                stays.join()
                leaves.join()
                _shared(
                    stays, leaves, len(assignment), "two consumers did not share the partitions"
                )
                theirs = set(leaves.partitions)
                at_ms = leaves.end(kill)
                pause = wait_until(
                    lambda: handed_over_ms(theirs, stays.places, at_ms),
                    SESSION_SECONDS + ANSWER_SECONDS,
                )
                back_ms = now_ms()
                returns.join()
                _shared(stays, returns, len(assignment), "the consumer that returned got nothing")
                back = now_ms() - back_ms
            except BaseException:
                # a group with members cannot be removed
                for each in members:
                    each.end(kill=True)
                raise
            finally:
                ticker.stop()
            sent = ticker.sent_and_acknowledged

            def came() -> List[Tuple[str, int]]:
                return sorted((pair for each in members for pair in each.came), key=lambda p: p[1])

            wait_until(lambda: set(sent) <= {record for record, _at in came()}, ANSWER_SECONDS)
            for each in members:
                each.end(kill=False)
            return Seen(
                sent=len(ticker.sent),
                acknowledged=len(sent),
                refused=dict(ticker.refused),
                pause_ms=pause,
                groups=(group_seen(group, sent, came()),),
                notes=(f"shared again {back / 1000:.1f} s after its return",),
                timeline=per_bucket(ticker.acknowledged.values()),
            ).to_dict()
    finally:
        for each in members:
            each.end(kill=True)


def _shared(one: Member, other: Member, partitions: int, otherwise: str) -> None:
    """Wait until the two have all partitions between them, and each has read of each of its own."""

    def so() -> bool:
        begun = now_ms() - int(STEADY_SECONDS * 1000)
        return (
            bool(one.partitions)
            and bool(other.partitions)
            and not one.partitions & other.partitions
            and len(one.partitions | other.partitions) == partitions
            and all(
                {place for place, at_ms in list(each.places) if at_ms > begun} >= each.partitions
                for each in (one, other)
            )
        )

    if not wait_until(so, 2 * ANSWER_SECONDS):
        raise failed("consumer group", otherwise)
