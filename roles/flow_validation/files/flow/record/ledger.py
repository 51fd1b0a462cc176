# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What was acknowledged, what failed, what is unknown: as ranges, so that ten million are few rows.

Pure: no files, no Kafka, no Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Collection, Iterable, Optional

from flow.record.schema import ABORTED, ACKED, FAILED, UNKNOWN


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
        # ranges that will not grow any more, and the records in them and in those that were handed out
        self._counted = 0
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

    def take(self, other: "Acknowledged") -> None:
        """Note all that another one has noted."""
        self.ranges += other.ranges

    def hand_out(self) -> list:
        """The ranges that will not grow any more, `merged`; here they are only counted from now on."""
        self.count()
        settled, self.ranges, self._counted = self.ranges[:-1], self.ranges[-1:], 0
        return joined(settled)

    def merged(self) -> list:
        """The ranges in order of sequence, neighbours joined."""
        return joined(self.ranges)


def joined(ranges: Iterable) -> list:
    """Acknowledged ranges in order of sequence, neighbours as one."""
    found: list = []
    for first, last, low, high in sorted(ranges):
        if found and found[-1][1] + 1 == first and found[-1][3] + 1 == low:
            found[-1][1], found[-1][3] = last, high
        else:
            found.append([first, last, low, high])
    return found


class Refused:
    """The refused sequences of a partition and by which error: ranges, since a batch is refused whole."""

    __slots__ = ("ranges",)

    def __init__(self) -> None:
        self.ranges: list = []  # [first sequence, last sequence, error name]

    def add(self, sequence: int, error: str) -> None:
        """Note one refusal; usually that only moves the end of the last range."""
        if self.ranges:
            last = self.ranges[-1]
            if last[1] + 1 == sequence and last[2] == error:
                last[1] = sequence
                return
        self.ranges.append([sequence, sequence, error])

    def count(self, errors: Collection[str]) -> int:
        """How many refusals by any of these errors were noted."""
        return sum(last - first + 1 for first, last, error in self.ranges if error in errors)

    def take(self, other: "Refused") -> None:
        """Note all that another one has noted."""
        self.ranges += other.ranges

    def merged(self) -> list:
        """The ranges in order of sequence, neighbours of one error joined."""
        joined: list = []
        for first, last, error in sorted(self.ranges):
            if joined and joined[-1][1] + 1 == first and joined[-1][2] == error:
                joined[-1][1] = last
            else:
                joined.append([first, last, error])
        return joined


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
    # the same of what was refused, and perhaps written before: unknown, then
    doubted: dict = field(default_factory=dict)
    # partition -> [[s, s, error], ...], a transaction each; no error: aborted on purpose
    aborted: dict = field(default_factory=dict)
    errors: dict = field(default_factory=dict)  # error text -> count, of all outcomes
    position: int = 0  # records of each partition that were handed over, or were to be next
    epochs: int = 1  # in which its producer wrote, as far as it noticed
    seconds: float = 0.0
    acknowledgements: dict = field(default_factory=dict)  # timing.Acknowledgements.to_json
    latencies: dict = field(default_factory=dict)  # timing.Latencies.to_json
    run_id: str = ""  # hexadecimal; "" in ledgers of older versions
    parts: int = 0  # files beside its own that have the first of its acknowledged ranges
    in_parts: int = 0  # records in those

    @property
    def acknowledged(self) -> int:
        """Records acknowledged so far, those of aborted transactions among them."""
        ranges = (*self.acked.values(), *self.aborted.values())
        known = sum(last - first + 1 for each in ranges for first, last, *_ in each)
        return self.in_parts + known

    def with_parts(self, parts: Iterable[dict]) -> "Attempt":
        """This one with the acknowledged ranges of its other files (partition -> ranges) among its own."""
        acked = {partition: list(ranges) for partition, ranges in self.acked.items()}
        for part in parts:
            for partition, ranges in part.items():
                acked.setdefault(partition, []).extend(ranges)
        whole = {partition: joined(ranges) for partition, ranges in acked.items()}
        return replace(self, acked=whole, parts=0, in_parts=0)

    def rows(self) -> list:
        """Ledger rows: together they cover every planned sequence exactly once."""
        rows = []
        for partition, planned in sorted(self.planned.items()):
            acked = self.acked.get(partition, [])
            failed = self.failed.get(partition, [])
            aborted = self.aborted.get(partition, [])
            doubted = self.doubted.get(partition, [])
            where = (self.producer, self.attempt, partition)
            rows += [Row(*where, ACKED, *r) for r in acked]
            rows += [
                Row(*where, outcome, low, high, None, None, error)
                for outcome, ranges in ((FAILED, failed), (UNKNOWN, doubted), (ABORTED, aborted))
                for low, high, error in ranges
            ]
            reason = None if self.complete else "the produce task ended before its time"
            for first, last in complement([*acked, *failed, *doubted, *aborted], planned):
                rows.append(Row(*where, UNKNOWN, first, last, None, None, reason or "no answer"))
        return rows

    def to_json(self) -> dict:
        return dict(self.__dict__)

    @classmethod
    def from_json(cls, data: dict) -> "Attempt":
        number_keys = ("planned", "acked", "failed", "doubted", "aborted")
        fixed = {k: {int(p): v for p, v in data.get(k, {}).items()} for k in number_keys}
        return cls(**{**data, **fixed})


def counts(rows: Iterable[Row]) -> dict:
    """Records by outcome: acked, failed, unknown; of a run with transactions also aborted, and how
    many of those were not aborted on purpose (aborted_by_errors).
    """
    total = {ACKED: 0, FAILED: 0, UNKNOWN: 0}
    for row in rows:
        total[row.outcome] = total.get(row.outcome, 0) + row.records
        if row.outcome == ABORTED:
            by_error = row.records if row.error is not None else 0
            total["aborted_by_errors"] = total.get("aborted_by_errors", 0) + by_error
    return total


def power_of_two(most: int) -> int:
    """The largest one that is not more; at least 1."""
    return 1 << max(0, most.bit_length() - 1)


def share(partitions: int, producers: int, producer: int, records: int) -> dict:
    """Which partitions a producer writes, and how many records to each: partition -> records.

    Every partition belongs to one producer, so undisturbed its offsets rise with its sequences.
    """
    mine = range(producer, partitions, producers)
    return {p: records // partitions + (1 if p < records % partitions else 0) for p in mine}


def unfinished(rows: Iterable[Row], partitions: int, producers: int, records: int) -> list:
    """Producers of which no attempt got its whole share acknowledged (sorted numbers).

    An attempt that died does not matter once another attempt at the same task did the whole work.
    What was aborted on purpose is work done, too. One that was told too late where to end has done more.
    """
    acked: dict = {}  # (producer, attempt) -> partition -> records
    for row in rows:
        if row.outcome == ACKED or (row.outcome == ABORTED and row.error is None):
            of_each = acked.setdefault((row.producer, row.attempt), {})
            of_each[row.partition] = of_each.get(row.partition, 0) + row.records
    wanted = _wanted(partitions, producers, records)
    settled = {
        who
        for (who, _attempt), of_each in acked.items()
        # what it has beyond its share of one partition makes up for nothing in another
        if all(of_each.get(n, 0) >= count for n, count in wanted.get(who, {}).items())
    }
    return sorted(p for p, each in wanted.items() if sum(each.values()) and p not in settled)


def never_sent(rows: Iterable[Row], partitions: int, producers: int, records: int) -> int:
    """Records of the producers of which no attempt began."""
    begun = {row.producer for row in rows}
    wanted = _wanted(partitions, producers, records)
    return sum(sum(each.values()) for who, each in wanted.items() if who not in begun)


def _wanted(partitions: int, producers: int, records: int) -> dict:
    """producer -> its whole `share`."""
    return {p: share(partitions, producers, p, records) for p in range(producers)}


def acknowledged_offsets(rows: Iterable[Row]) -> dict:
    """partition -> [[first, last], ...]: the offsets at which acknowledged records must stand."""
    found: dict = {}
    for row in rows:
        if row.outcome == ACKED:
            found.setdefault(row.partition, []).append([row.first_offset, row.last_offset])
    return {partition: sorted(ranges) for partition, ranges in found.items()}


def renewed(attempts: Iterable[Attempt]) -> list:
    """[(producer, attempt)] of those whose producer began a new epoch, or may have: then the client
    may itself have sent again what a broker had written already.

    Within an epoch the brokers sort out repetitions. A client that gives up waiting for a record
    begins a new one, in which it sends again what was under way with it (librdkafka #4953). The
    last moments of an attempt that was killed nobody knows.
    """
    return sorted(
        (each.producer, each.attempt) for each in attempts if each.epochs > 1 or not each.complete
    )


def common(ranges: Iterable, others: list) -> list:
    """What two lists of (first, last), each sorted and without overlaps, have in common."""
    found, index = [], 0
    for first, last in ranges:
        while index < len(others) and others[index][1] < first:
            index += 1
        at = index
        while at < len(others) and others[at][0] <= last:
            found.append((max(first, others[at][0]), min(last, others[at][1])))
            at += 1
    return found
