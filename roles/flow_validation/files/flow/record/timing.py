# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""When records were appended, and how long that took: from counts by bucket to distributions.

Pure: the judging pass counts in Spark (schema.with_agreement, checks.confirmation), this adds up.
What is known of a record is Kafka's timestamp, in milliseconds, and the produce time in its value,
in microseconds. Both are put into buckets, so that what is kept grows with neither records nor time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Iterable, Mapping, Optional

APPENDED, CREATED = "LogAppendTime", "CreateTime"

CLASSES_PER_OCTAVE = 4  # a latency is told to within 19 %
BEFORE_SENT = -1  # class of what was appended, by the leader's clock, before it was sent
_ROWS = 1500  # buckets of time, over all partitions: what the driver can take without being noticed
_BUCKETS = range(60, 601)
_SAMPLES = 50_000  # taking a number out of bytes is dear in Spark, and this many say it all
_PAUSES = 5  # longest pauses that are told of a partition
_LEAST_APART_MS = (
    200  # of partitions' least latencies: less is how clients and brokers fill batches
)
_RATE_SHARE = 4  # of the time of a run, what clocks may make of it: a fourth
_QUANTILES = (("p50_ms", 0.5), ("p99_ms", 0.99), ("p99_9_ms", 0.999))


@dataclass(frozen=True)
class Clock:
    """How time is measured in one run; `kind` is the topic's message.timestamp.type."""

    kind: str
    bucket_ms: int
    sampled_every: int  # latencies are taken of offsets that this divides; a power of two

    @property
    def appended(self) -> bool:
        """Whether Kafka's timestamps are the leaders', taken when they appended a batch."""
        return self.kind == APPENDED


@dataclass
class Bucket:
    """The records of one partition in one bucket of time; times in milliseconds since 1970."""

    records: int
    first_ms: int
    last_ms: int

    def add(self, other: "Bucket") -> None:
        """Take another one's records in."""
        self.records += other.records
        self.first_ms = min(self.first_ms, other.first_ms)
        self.last_ms = max(self.last_ms, other.last_ms)


def clock(kind: str, seconds: float, partitions: int, records: int) -> Clock:
    """The clock for a run that produced `records` to `partitions` in `seconds`."""
    buckets = min(max(_ROWS // max(partitions, 1), _BUCKETS[0]), _BUCKETS[-1])
    sampled_every = 1 << max(0, math.ceil(records / _SAMPLES) - 1).bit_length()
    return Clock(kind, round_up(seconds * 1000 / buckets), sampled_every)


def round_up(number: float) -> int:
    """The least of 1, 2, 5, 10, 20, 50, ... that is not below `number`."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power >= number:
                return digit * power
        power *= 10


def class_edges_ms(number: int) -> tuple:
    """(from, to) of a class of latencies; those below a millisecond, Kafka's resolution, are 0."""
    if number == BEFORE_SENT:
        return None, 0.0
    if number == 0:
        return 0.0, 1.0
    return 2 ** ((number - 1) / CLASSES_PER_OCTAVE), 2 ** (number / CLASSES_PER_OCTAVE)


def quantile_ms(classes: Mapping[int, int], share: float, most_ms: float) -> float:
    """The upper edge of the class in which the quantile lies, so that it is never understated."""
    left = math.ceil(share * sum(classes.values()))
    for number, count in sorted(classes.items()):
        left -= count
        if left <= 0:
            return round(min(class_edges_ms(number)[1], most_ms), 3)
    raise ValueError("no latencies")


def pauses(buckets: Mapping[int, Bucket], bucket_ms: int) -> list:
    """Every pause of at least a bucket's width as (from, to) in milliseconds, in order of time.

    The records at both ends of such a pause lie in different buckets, with nothing in between: one
    is the last of its bucket, the other the first of its own. So all are found, and exactly.
    """
    found, before = [], None
    for _number, bucket in sorted(buckets.items()):
        if before is not None and bucket.first_ms - before >= bucket_ms:
            found.append((before, bucket.first_ms))
        before = bucket.last_ms
    return found


def longest(found: Iterable[tuple], most: int = 1) -> list:
    """The longest of some pauses, longest first."""
    return sorted(found, key=lambda pause: (pause[0] - pause[1], pause[0]))[:most]


def together(several: Iterable[Mapping[int, Bucket]]) -> dict:
    """The buckets of several partitions as if they were one."""
    result: dict = {}
    for buckets in several:
        for number, bucket in buckets.items():
            if number in result:
                result[number].add(bucket)
            else:
                result[number] = Bucket(bucket.records, bucket.first_ms, bucket.last_ms)
    return result


class Acknowledgements:
    """How many acknowledgements came in each step of time, as their producer got them.

    Steps are `bucket_ms` wide and become twice as wide whenever there are more than MOST of them, so
    that a long run keeps no more than a short one.
    """

    MOST = 1200
    LONGEST_MS = 60 * 24 * 3600 * 1000  # twice the longest run; more is a clock that was set

    def __init__(self, bucket_ms: int = 100, counts: Optional[Mapping] = None):
        self.bucket_ms = bucket_ms
        self.counts: dict = {int(number): n for number, n in (counts or {}).items()}

    def add(self, now_ms: int, records: int) -> None:
        """Count what came at a moment, in milliseconds since 1970."""
        if records:
            number = now_ms // self.bucket_ms
            self.counts[number] = self.counts.get(number, 0) + records
            while len(self.counts) > self.MOST:
                self.widen()

    def widen(self) -> None:
        """Make the steps twice as wide."""
        self.bucket_ms *= 2
        wider: dict = {}
        for number, records in self.counts.items():
            wider[number // 2] = wider.get(number // 2, 0) + records
        self.counts = wider

    def merge(self, other: "Acknowledgements") -> None:
        """Take another producer's in; the wider of both steps is the common one."""
        theirs = Acknowledgements(other.bucket_ms, other.counts)
        while theirs.bucket_ms < self.bucket_ms:
            theirs.widen()
        while self.bucket_ms < theirs.bucket_ms:
            self.widen()
        for number, records in theirs.counts.items():
            self.add(number * self.bucket_ms, records)

    def to_json(self) -> dict:
        """For the attempt's file."""
        return {"bucket_ms": self.bucket_ms, "counts": self.counts}

    def series(self) -> Optional[dict]:
        """The part `timing.acknowledged` of verdict.json; None if there were none, or a clock
        jumped.
        """
        if not self.counts:
            return None
        seen = Acknowledgements(self.bucket_ms, self.counts)
        if (max(seen.counts) - min(seen.counts)) * seen.bucket_ms > self.LONGEST_MS:
            return None
        # A slow run has few steps with anything in them, far apart.
        while max(seen.counts) - min(seen.counts) >= 10 * self.MOST:
            seen.widen()
        steps = sorted(seen.counts)
        silent = max((b - a - 1 for a, b in zip(steps, steps[1:])), default=0)
        return {
            "bucket_ms": seen.bucket_ms,
            "start_ms": steps[0] * seen.bucket_ms,
            "records": [seen.counts.get(number, 0) for number in range(steps[0], steps[-1] + 1)],
            "longest_pause_ms": silent * seen.bucket_ms,
        }


class Latencies:
    """How long acknowledgements took, from handing a record over until its producer was told.

    Counts by class (class_edges_ms), so that a long run keeps no more than a short one.
    """

    def __init__(
        self,
        sampled_every: int = 1,
        classes: Optional[Mapping] = None,
        most_ms: float = 0.0,
        least_ms: float = math.inf,
    ):
        self.sampled_every, self.most_ms, self.least_ms = sampled_every, most_ms, least_ms
        self.classes: dict = {int(number): n for number, n in (classes or {}).items()}

    def add(self, seconds: Optional[float]) -> None:
        """Count one; None and what is below 0 is how the client says that it does not know."""
        if seconds is None or seconds < 0:
            return
        ms = seconds * 1000
        number = latency_class(ms)
        self.classes[number] = self.classes.get(number, 0) + 1
        self.most_ms = max(self.most_ms, ms)
        self.least_ms = min(self.least_ms, ms)

    def merge(self, other: "Latencies") -> None:
        """Take another producer's in."""
        self.sampled_every = max(self.sampled_every, other.sampled_every)
        self.most_ms = max(self.most_ms, other.most_ms)
        self.least_ms = min(self.least_ms, other.least_ms)
        for number, count in other.classes.items():
            self.classes[number] = self.classes.get(number, 0) + count

    def to_json(self) -> dict:
        """For the attempt's file; {} while there is none."""
        classes = {str(number): count for number, count in self.classes.items()}
        return {**vars(self), "classes": classes} if classes else {}

    def told(self) -> Optional[dict]:
        """The part `timing.acknowledgement_latency` of verdict.json; None if there were none."""
        if not self.classes:
            return None
        return _distribution(self.classes, self.sampled_every, self.least_ms, self.most_ms)


def latency_class(ms: float) -> int:
    """The class of a latency, numbered as the judging pass does it (schema._timed)."""
    return 0 if ms < 1 else 1 + math.floor(math.log2(ms) * CLASSES_PER_OCTAVE + 1e-9)


@dataclass(frozen=True)
class Observed:
    """What the pass saw: by partition and bucket, and by class of latency."""

    clock: Clock
    partitions: dict  # partition -> bucket number -> Bucket
    latencies: dict  # class -> sampled records
    most_us: Optional[int] = None  # the greatest sampled latency, microseconds
    least_us: Optional[int] = None
    least_of: Mapping[int, int] = field(default_factory=dict)  # partition -> the same, of its own

    def apart_ms(self, took: Optional[Latencies] = None) -> int:
        """By how much clocks differ: all that the leader of one partition appended came so much later, after it was
        sent, than what that of another one did; 0 if that is little. Records that had to wait for their leader look the
        same, but for their acknowledgements, which `took` at least as long by a single clock.
        """
        least = self.least_of.values()
        apart = (max(least) - min(least)) // 1000 if least else 0
        waited = took.most_ms if took and took.classes else 0
        return apart if apart >= _LEAST_APART_MS and apart > waited else 0


def observe(measured: Clock, rows: Iterable) -> Observed:
    """Add up collected rows: partition, bucket, latency_class, records, first_ms, last_ms,
    least_latency, most_latency. What has no bucket was not a record of this run.
    """
    partitions: dict = {}
    latencies: dict = {}
    least_of: dict = {}
    most = []
    for row in rows:
        if row["bucket"] is None:
            continue
        found = Bucket(row["records"], row["first_ms"], row["last_ms"])
        buckets = partitions.setdefault(row["partition"], {})
        if row["bucket"] in buckets:
            buckets[row["bucket"]].add(found)
        else:
            buckets[row["bucket"]] = found
        number = row["latency_class"]
        if number is not None:
            latencies[number] = latencies.get(number, 0) + row["records"]
            least = least_of.get(row["partition"], row["least_latency"])
            least_of[row["partition"]] = min(least, row["least_latency"])
            most.append(row["most_latency"])
    return Observed(
        measured,
        partitions,
        latencies,
        max(most) if most else None,
        min(least_of.values(), default=None),
        least_of,
    )


def to_json(
    seen: Observed, acknowledged: Acknowledgements, took: Optional[Latencies] = None
) -> dict:
    """The part `timing` of verdict.json; took: how long acknowledgements did. What clocks that differ may have made
    is not told: a pause of the whole topic, and the rate.
    """
    measured, apart_ms = seen.clock, seen.apart_ms(took)
    whole = together(seen.partitions.values())
    found = longest(pauses(whole, measured.bucket_ms))
    top = [each for each in found if each[1] - each[0] > apart_ms]
    length = _length(whole)
    uncertain = apart_ms * _RATE_SHARE > length
    return {
        "timestamp_type": measured.kind,
        "bucket_ms": measured.bucket_ms,
        "first_ms": min((b.first_ms for b in whole.values()), default=None),
        "last_ms": max((b.last_ms for b in whole.values()), default=None),
        "records_per_second": None if uncertain else _mean(whole),
        "longest_pause": _pause(top[0]) if top else None,
        "leaders_apart_ms": apart_ms if top != found or (uncertain and length) else None,
        "series": _series(whole, measured.bucket_ms),
        "acknowledged": acknowledged.series(),
        "partitions": [
            _lane(number, buckets, measured.bucket_ms)
            for number, buckets in sorted(seen.partitions.items())
        ],
        "latency": _latency(seen),
        "acknowledgement_latency": took.told() if took else None,
    }


def longest_pause_ms(seen: Observed, partitions: Iterable[int]) -> Optional[int]:
    """The longest time in which none of these partitions got a record; None if below a bucket."""
    chosen = [seen.partitions[p] for p in partitions if p in seen.partitions]
    found = longest(pauses(together(chosen), seen.clock.bucket_ms))
    return found[0][1] - found[0][0] if found else None


def _length(buckets: Mapping[int, Bucket]) -> int:
    """Milliseconds from the first to the last record."""
    first = min((b.first_ms for b in buckets.values()), default=0)
    return max((b.last_ms for b in buckets.values()), default=0) - first


def _mean(buckets: Mapping[int, Bucket]) -> Optional[float]:
    """Records a second between the first and the last one; None if they share a millisecond."""
    length = _length(buckets)
    return round(sum(b.records for b in buckets.values()) * 1000 / length, 1) if length else None


def _pause(pause: tuple) -> dict:
    return {"from_ms": pause[0], "to_ms": pause[1], "ms": pause[1] - pause[0]}


def _series(buckets: Mapping[int, Bucket], bucket_ms: int) -> dict:
    """Records of each bucket from the first to the last; of those in between, none is left out."""
    if not buckets:
        return {"start_ms": None, "records": []}
    first, last = min(buckets), max(buckets)
    # A clock that jumped while records were appended must not make a page of zeros.
    if last - first >= 10 * _BUCKETS[-1]:
        return {"start_ms": None, "records": []}
    counts = [buckets[n].records if n in buckets else 0 for n in range(first, last + 1)]
    return {"start_ms": first * bucket_ms, "records": counts}


def _lane(number: int, buckets: Mapping[int, Bucket], bucket_ms: int) -> dict:
    return {
        "partition": number,
        "first_ms": min(b.first_ms for b in buckets.values()),
        "last_ms": max(b.last_ms for b in buckets.values()),
        "pauses": [_pause(p) for p in longest(pauses(buckets, bucket_ms), _PAUSES)],
    }


def _latency(seen: Observed) -> Optional[dict]:
    if not seen.latencies or seen.least_us is None or seen.most_us is None:
        return None
    every = seen.clock.sampled_every
    return _distribution(seen.latencies, every, seen.least_us / 1000, max(seen.most_us / 1000, 0.0))


def _distribution(counts: Mapping[int, int], every: int, least_ms: float, most_ms: float) -> dict:
    """A distribution of verdict.json: counts by class, of one record in `every`."""
    classes = []
    for number, count in sorted(counts.items()):
        low, high = class_edges_ms(number)
        classes.append(
            {"from_ms": low and round(low, 3), "to_ms": round(high, 3), "records": count}
        )
    return {
        "sampled_every": every,
        "records": sum(counts.values()),
        **{name: quantile_ms(counts, q, most_ms) for name, q in _QUANTILES},
        "max_ms": round(most_ms, 3),
        "min_ms": round(least_ms, 3),
        "classes": classes,
    }
