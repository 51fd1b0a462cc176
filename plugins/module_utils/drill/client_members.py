# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A group of two consumers, each a process of its own; one of them is killed or closed, and comes back.

Private to this collection. The processes are forked before there is any client: librdkafka's threads
do not survive a fork.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from typing import Any, Dict, List, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    ANSWER_SECONDS,
    SESSION_SECONDS,
    Settings,
    Ticker,
    consumer_settings,
    failed,
    now_ms,
    own_topic,
    record_of,
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
    pass  # require_kafka of admin.client.connection says so

STEADY_SECONDS = 2.0


class Member:
    """A consumer in a process. `came`: (record, when), `places`: (partition, when) of each."""

    def __init__(self, settings: Settings, topic: str, group: str):
        context = multiprocessing.get_context("fork")
        self.came: List[Tuple[str, int]] = []
        self.places: List[Tuple[int, int]] = []
        self.partitions: Set[int] = set()
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_consume, args=(theirs, dict(settings), topic, group), daemon=True
        )
        self._process.start()
        theirs.close()

    def join(self) -> None:
        """Let it become a member of the group."""
        self._pipe.send("join")
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                what, told = self._pipe.recv()
                if what == "has":
                    self.partitions = set(told)
                else:
                    partition, record, at_ms = told
                    self.came.append((record, at_ms))
                    self.places.append((partition, at_ms))

    def end(self, kill: bool) -> int:
        """Kill it, or let it commit and leave its group; returns when that began."""
        at_ms = now_ms()
        if self._process.pid and self._process.is_alive():
            os.kill(self._process.pid, signal.SIGKILL if kill else signal.SIGTERM)
        self._process.join(ANSWER_SECONDS)
        return at_ms


def _consume(pipe: Any, settings: Dict[str, Any], topic: str, group: str) -> None:
    """The process of a member. It ends with SIGTERM, or when its parent is gone; never returns."""
    parent, over = os.getppid(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_signal: over.set())
    while not pipe.poll(0.5):
        if over.is_set() or os.getppid() != parent:
            os._exit(0)
    consumer = Consumer(consumer_settings(settings, group))

    def assigned(_consumer: Any, partitions: Sequence[Any]) -> None:
        pipe.send(("has", [each.partition for each in partitions]))

    def revoked(_consumer: Any, _partitions: Sequence[Any]) -> None:
        with contextlib.suppress(KafkaException):
            consumer.commit(asynchronous=False)
        pipe.send(("has", []))

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
    with contextlib.suppress(OSError):
        while not over.is_set() and os.getppid() == parent:
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                record = record_of(message.value())
                pipe.send(("came", (message.partition(), record, now_ms())))
                with contextlib.suppress(KafkaException):
                    consumer.commit(message=message, asynchronous=True)
        consumer.close()
    os._exit(0)


def hand_over(
    settings: Settings,
    topic: str,
    assignment: Sequence[Sequence[int]],
    config: Dict[str, str],
    group: str,
    kill: bool,
) -> Dict[str, Any]:
    """End one of two members, and let it come back; returns what was seen. AdminError where none reads."""
    stays, leaves, returns = members = [Member(settings, topic, group) for _each in range(3)]
    try:
        with own_topic(settings, topic, assignment, config):
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
