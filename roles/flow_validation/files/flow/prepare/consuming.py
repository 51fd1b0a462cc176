# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""A topic read to its end by an ordinary consumer: for listeners, groups and probes, which all wait in the same way.

How long is decided by what comes, and not by how much there is: it ends when nothing has come for a while.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum
from typing import Any, Callable, Mapping, Set

from flow.messages import stopping
from flow.messages.librdkafka import quiet_logger

_BATCH = 10_000
_POLL_SECONDS = 0.1


class Ended(Enum):
    """Why a reading has ended."""

    WHOLE = "every partition was read to its end"
    SILENT = "nothing more came"
    STOPPED = "somebody wants it to end"
    ENOUGH = "whoever looks at the records, or at errors, wants no more"


class After(Enum):
    """What follows from an error."""

    WAIT = "the client goes on by itself"
    NOTHING_THERE = "the cluster has nothing more of this partition"
    LEAVE = "nothing more comes of this partition, whatever is there"
    END = "nothing more comes at all"


@dataclass(frozen=True)
class Reading:
    """How a topic was read: `left`, partitions that were not read to their end, and among the others `exhausted`:
    those that are shorter, or were gone, as the cluster says.
    """

    ended: Ended
    left: Set[int]
    exhausted: Set[int]


class Patience:
    """Waits `seconds` for what comes next, `more` for the first of it."""

    def __init__(
        self, seconds: float, more: float = 0, clock: Callable[[], float] = time.monotonic
    ):
        self._seconds, self._clock = seconds, clock
        self._until = clock() + seconds + more

    def renew(self) -> None:
        """Something has come."""
        self._until = self._clock() + self._seconds

    def is_over(self) -> bool:
        """Whether nothing has come for too long."""
        return self._clock() > self._until


def consumer(settings: Mapping[str, Any]):
    """A client for `read_to_end`, with these settings of librdkafka: it commits nothing and, unless they name one,
    belongs to no group.
    """
    from confluent_kafka import Consumer

    own = {
        "group.id": "none",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,
    }
    return Consumer({**own, **settings}, logger=quiet_logger())


def read_to_end(
    client: Any,
    ends: Mapping[int, int],
    patience: Patience,
    record: Callable[[Any], bool],
    trouble: Callable[[Any], After],
    stopped: Callable[[], bool] = stopping.requested.is_set,
) -> Reading:
    """Read what a client is assigned, or is given by its group, to these ends (partition -> offset behind the last).

    record: of each message, beyond the ends as well; whether it is enough. trouble: what follows from the error of a
    message. A partition of which nothing more is wanted is paused, else it would be in the way of the others.
    """
    from confluent_kafka import KafkaError

    left, exhausted = set(ends), set()  # of partitions
    while left:
        if stopped():
            return Reading(Ended.STOPPED, left, exhausted)
        if patience.is_over():
            return Reading(Ended.SILENT, left, exhausted)
        before = set(left)
        for message in client.consume(_BATCH, timeout=_POLL_SECONDS):
            number, at, error = message.partition(), message.offset(), message.error()
            if error is None:
                if number in left:
                    patience.renew()
                if record(message):
                    return Reading(Ended.ENOUGH, left, exhausted)
                if at >= ends.get(number, 0) - 1:
                    left.discard(number)
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                # a new leader may not know yet how far the others have come: wait for the rest
                after = After.NOTHING_THERE if at >= ends.get(number, 0) else After.WAIT
            else:
                after = trouble(message)
            if after is After.END:
                return Reading(Ended.ENOUGH, left, exhausted)
            if after is not After.WAIT:
                left.discard(number)
            if after is After.NOTHING_THERE:
                exhausted.add(number)
        if left and (done := before - left):
            client.pause([place for place in client.assignment() if place.partition in done])
    return Reading(Ended.WHOLE, left, exhausted)
