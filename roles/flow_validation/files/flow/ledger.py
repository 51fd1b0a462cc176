# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What was acknowledged, what failed, what is unknown: as ranges, so that ten million are few rows.

Pure: no files, no Kafka, no Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterable, Optional

from flow.schema import ACKED, FAILED, UNKNOWN


@dataclass(frozen=True)
class Row:
    """One range of one producer's sequences in one partition; the columns of the ledger."""

    producer: int
    attempt: int
    partition: int
    outcome: str
    first_sequence: int
    last_sequence: int
    first_offset: Optional[int] = None
    last_offset: Optional[int] = None
    error: Optional[str] = None

    @property
    def records(self) -> int:
        return self.last_sequence - self.first_sequence + 1


class Acknowledged:
    """The acknowledged (sequence, offset) pairs of a partition: ranges in which both count up."""

    __slots__ = ("ranges", "_counted", "_records")

    def __init__(self) -> None:
        self.ranges: list = []  # [first sequence, last sequence, first offset, last offset]
        self._counted = 0  # ranges that will not grow any more, and the records in them
        self._records = 0

    def add(self, sequence: int, offset: int) -> None:
        """Note one acknowledgement; usually that only moves the end of the last range."""
        if self.ranges:
            last = self.ranges[-1]
            if last[1] + 1 == sequence and last[3] + 1 == offset:
                last[1] = sequence
                last[3] = offset
                return
        self.ranges.append([sequence, sequence, offset, offset])

    def count(self) -> int:
        """How many acknowledgements were noted; costs nothing for each of them."""
        if not self.ranges:
            return 0
        for first, last, *_offsets in self.ranges[self._counted : -1]:
            self._records += last - first + 1
        self._counted = len(self.ranges) - 1
        return self._records + self.ranges[-1][1] - self.ranges[-1][0] + 1

    def merged(self) -> list:
        """The ranges in order of sequence, neighbours joined."""
        joined: list = []
        for first, last, low, high in sorted(self.ranges):
            if joined and joined[-1][1] + 1 == first and joined[-1][3] + 1 == low:
                joined[-1][1], joined[-1][3] = last, high
            else:
                joined.append([first, last, low, high])
        return joined


def as_ranges(numbers: Iterable[int]) -> list:
    """Numbers in any order -> [first, last] pairs without neighbours."""
    ranges: list = []
    for number in sorted(numbers):
        if ranges and number <= ranges[-1][1] + 1:
            ranges[-1][1] = max(ranges[-1][1], number)
        else:
            ranges.append([number, number])
    return ranges


def complement(ranges: Iterable, end: int) -> list:
    """What of 0..end-1 `ranges` ([first, last, ...], any order) leave out, as [first, last]."""
    missing, position = [], 0
    for first, last in sorted(r[:2] for r in ranges):
        if first > position:
            missing.append([position, first - 1])
        position = max(position, last + 1)
    if position < end:
        missing.append([position, end - 1])
    return missing


@dataclass
class Attempt:
    """What one attempt at a produce task did; what neither was acknowledged nor failed is unknown."""

    producer: int
    attempt: int
    complete: bool
    planned: dict  # partition -> number of records it was to send
    acked: dict = field(default_factory=dict)  # partition -> [[s, s, o, o], ...]
    failed: dict = field(default_factory=dict)  # partition -> [[s, s, error], ...]
    errors: dict = field(default_factory=dict)  # error text -> count, of all outcomes
    seconds: float = 0.0
    acknowledgements: dict = field(default_factory=dict)  # timing.Acknowledgements.to_json

    @property
    def acknowledged(self) -> int:
        """Records acknowledged so far."""
        return sum(last - first + 1 for known in self.acked.values() for first, last, *_ in known)

    def rows(self) -> list:
        """Ledger rows: together they cover every planned sequence exactly once."""
        rows = []
        for partition, planned in sorted(self.planned.items()):
            acked = self.acked.get(partition, [])
            failed = self.failed.get(partition, [])
            where = (self.producer, self.attempt, partition)
            rows += [Row(*where, ACKED, *r) for r in acked]
            rows += [
                Row(*where, FAILED, low, high, None, None, error) for low, high, error in failed
            ]
            reason = None if self.complete else "the produce task ended before its time"
            for first, last in complement(list(acked) + list(failed), planned):
                rows.append(Row(*where, UNKNOWN, first, last, None, None, reason or "no answer"))
        return rows

    def to_json(self) -> dict:
        return dict(self.__dict__)

    @classmethod
    def from_json(cls, data: dict) -> "Attempt":
        number_keys = ("planned", "acked", "failed")
        fixed = {k: {int(p): v for p, v in data[k].items()} for k in number_keys}
        return cls(**{**data, **fixed})


def counts(rows: Iterable[Row]) -> dict:
    """Records by outcome."""
    total = {ACKED: 0, FAILED: 0, UNKNOWN: 0}
    for row in rows:
        total[row.outcome] += row.records
    return total


def share(partitions: int, producers: int, producer: int, records: int) -> dict:
    """Which partitions a producer writes, and how many records to each: partition -> records.

    Every partition belongs to one producer, so undisturbed its offsets rise with its sequences.
    """
    mine = range(producer, partitions, producers)
    return {p: records // partitions + (1 if p < records % partitions else 0) for p in mine}


def unfinished(rows: Iterable[Row], partitions: int, producers: int, records: int) -> list:
    """Producers of which no attempt got its whole share acknowledged (sorted numbers).

    An attempt that died does not matter once another attempt at the same task did the whole work.
    """
    acked: dict = {}
    for row in rows:
        if row.outcome == ACKED:
            key = (row.producer, row.attempt)
            acked[key] = acked.get(key, 0) + row.records
    wanted = {p: sum(share(partitions, producers, p, records).values()) for p in range(producers)}
    settled = {producer for (producer, _), count in acked.items() if count == wanted.get(producer)}
    return sorted(p for p, count in wanted.items() if count and p not in settled)


def errors(attempts: Iterable[Attempt]) -> dict:
    """What the clients complained about: error name -> times, over all attempts."""
    total: dict = {}
    for attempt in attempts:
        for name, count in attempt.errors.items():
            total[name] = total.get(name, 0) + count
    return total
