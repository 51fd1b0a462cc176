# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What became of the canary's records, batch by batch. Pure.

A row of the join has the record's place in the ledger (what was acknowledged), its place in the topic
(what was read), or both. Without the second it is lost: the join gives such a row only once the
watermark has passed. Without the first it was never acknowledged to somebody who could note it, and is
no more than unconfirmed.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Iterable, List, Mapping, Optional, Sequence, Tuple

from flow.judge.verdict import FAIL, INCONCLUSIVE, PASS

CANARY, SENTINEL = 0, 1  # of a record's field `producer`
LOST, DUPLICATE, UNCONFIRMED = "lost", "duplicate", "unconfirmed"
COUNTED = ("arrived", LOST, DUPLICATE, UNCONFIRMED, "late")
WITNESSES = 100  # of each kind, the latest
POINTS = 720  # of the course over time
_ATTEMPTS = 3  # starts of the canary whose sequences are remembered
_RANGES = 1000  # of sequences, for each start and partition


@dataclass(frozen=True)
class Row:
    """A row of the join; the fields of a side that is missing are None."""

    producer: int
    attempt: int
    partition: int
    sequence: int
    sent_us: int
    offset: Optional[int]  # that was acknowledged
    acknowledged_us: Optional[int]
    read_offset: Optional[int]
    appended_us: Optional[int]


@dataclass(frozen=True)
class Found:
    """Of one batch: counts, witnesses (kind -> rows for people), latencies in milliseconds."""

    counts: Mapping[str, int]
    witnesses: Mapping[str, Sequence[dict]]
    acknowledgement_ms: Sequence[float]
    append_ms: Sequence[float]
    newest_us: int  # when the newest record that came was sent; 0: none came


@dataclass
class Account:
    """The sum of all batches, as it is kept in a file. `batch` makes a batch that Spark repeats after
    a fault count once.
    """

    generation: int = 0
    batch: int = -1
    counts: dict = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    witnesses: dict = field(default_factory=lambda: {LOST: [], DUPLICATE: []})
    given_up: int = (
        0  # acknowledged, and not known: their generation ended before they were decided
    )
    last_lost: float = 0.0  # seconds since 1970
    last_arrived: float = 0.0
    # when a batch was counted last; 0.0 where none was, and once a watch has ended in order
    last_counted: float = 0.0
    seen: dict = field(default_factory=dict)  # "attempt:partition" -> ranges of sequences that came
    course: list = field(default_factory=list)

    def to_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping) -> "Account":
        return cls(**data)

    def take(self, generation: int, batch: int, rows: Iterable[Row], now: float) -> Optional[Found]:
        """Add a batch; None if it was added before."""
        if (generation, batch) <= (self.generation, self.batch):
            return None
        self.generation, self.batch, self.last_counted = generation, batch, now
        found = self._judge([row for row in rows if row.producer == CANARY])
        for kind, count in found.counts.items():
            self.counts[kind] += count
        for kind, witnesses in found.witnesses.items():
            told = [{"seen": round(now, 3), **each} for each in witnesses]
            self.witnesses[kind] = [*self.witnesses[kind], *told][-WITNESSES:]
        if found.counts[LOST]:
            self.last_lost = now
        if found.newest_us:
            self.last_arrived = now
        return found

    def _judge(self, rows: Sequence[Row]) -> Found:
        counts = dict.fromkeys(COUNTED, 0)
        witnesses: dict = {LOST: [], DUPLICATE: []}
        acknowledgement, append, newest = [], [], 0
        for row in sorted(rows, key=lambda row: (row.attempt, row.partition, row.sequence)):
            if row.read_offset is None:
                counts[LOST] += 1
                witnesses[LOST].append(_witness(row, row.offset))
                continue
            newest = max(newest, row.sent_us)
            if row.offset is None:
                counts[UNCONFIRMED] += 1
            elif self._is_new(row):
                counts["arrived"] += 1
                # what has both offsets has both times
                assert row.acknowledged_us is not None and row.appended_us is not None
                acknowledgement.append((row.acknowledged_us - row.sent_us) / 1000)
                append.append((row.appended_us - row.sent_us) / 1000)
            else:
                counts[DUPLICATE] += 1
                witnesses[DUPLICATE].append(_witness(row, row.read_offset))
        self._forget()
        return Found(counts, witnesses, acknowledgement, append, newest)

    def _is_new(self, row: Row) -> bool:
        """Whether no record of this sequence came before; it is remembered."""
        return added(self.seen.setdefault(f"{row.attempt}:{row.partition}", []), row.sequence)

    def _forget(self) -> None:
        """Keep what is remembered small."""
        latest = sorted({int(key.split(":")[0]) for key in self.seen})[-_ATTEMPTS:]
        self.seen = {
            key: ranges[-_RANGES:]
            for key, ranges in self.seen.items()
            if int(key.split(":")[0]) in latest
        }

    def note(self, point: dict) -> None:
        """Add a point to the course over time. Where there are too many, every second one goes, of the
        older half."""
        self.course.append(point)
        if len(self.course) > POINTS:
            older = self.course[: POINTS // 2]
            self.course = older[::2] + self.course[POINTS // 2 :]


@dataclass(frozen=True)
class Standing:
    """Where a watch stands: records acknowledged, lost, given up undecided, and not decided yet."""

    acknowledged: int
    lost: int
    given_up: int
    pending: int = 0


def outcome(before: Standing, now: Standing) -> Tuple[str, str]:
    """(verdict, why) of a watch with an end, by what it has added to what was so before."""
    lost = now.lost - before.lost
    if lost:
        return FAIL, f"lost: {lost:,}"
    if now.acknowledged <= before.acknowledged:
        return INCONCLUSIVE, "no record was acknowledged"
    undecided = max(0, now.pending) + now.given_up - before.given_up
    if undecided:
        return INCONCLUSIVE, f"what became of {undecided:,} acknowledged records is not known"
    return PASS, ""


def added(ranges: List[list], number: int) -> bool:
    """Add a number to ranges [first, last], which rise; whether none of them had it."""
    place = bisect.bisect_right(ranges, [number, math.inf])
    before = ranges[place - 1] if place else None
    after = ranges[place] if place < len(ranges) else None
    if before and number <= before[1]:
        return False
    if before and before[1] == number - 1:
        before[1] = number
        if after and after[0] == number + 1:
            before[1] = after[1]
            del ranges[place]
    elif after and after[0] == number + 1:
        after[0] = number
    else:
        ranges.insert(place, [number, number])
    return True


def quantiles(values: Sequence[float]) -> Optional[dict]:
    """p50, p99 and the greatest; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)

    def at(share: float) -> float:
        return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3)

    return {"p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": round(ordered[-1], 3)}


def _witness(row: Row, offset: Optional[int]) -> dict:
    return {
        "partition": row.partition,
        "offset": offset,
        "attempt": row.attempt,
        "sequence": row.sequence,
        "sent_us": row.sent_us,
    }


def state_of(operators: Iterable[Mapping]) -> Tuple[int, int, int]:
    """(rows, bytes, rows that came too late) of `stateOperators` of Spark's progress."""
    rows = size = late = 0
    for each in operators:
        rows += int(each.get("numRowsTotal", 0))
        size += int(each.get("memoryUsedBytes", 0))
        late += int(each.get("numRowsDroppedByWatermark", 0))
    return rows, size, late


def watermark_of(event_time: Mapping) -> float:
    """Seconds since 1970 of `watermark` in `eventTime` of Spark's progress; 0.0 before the first one."""
    told = event_time.get("watermark")
    if not told:
        return 0.0
    # Python 3.10 knows no Z
    return datetime.fromisoformat(told.replace("Z", "+00:00")).timestamp()
