# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The probe retention: does the cluster delete what is older than retention.ms, and nothing else?

Brokers go by the timestamps of records, which their writer may choose. So nobody waits until
records have grown old: the first ones are written with timestamps that expire during the probe, one
after another, the last ones are young. A record fills more than half a segment, so each has a
segment of its own, and none has to wait for a younger neighbour.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from typing import Optional

from flow.judge.verdict import WITNESSES
from flow.messages.failure import CannotRun
from flow.prepare.cluster import CLEANUP_POLICY, TIMESTAMP_TYPE
from flow.probe.trial import Bench, Finding, Record, offsets, read, write
from flow.record.timing import APPENDED, CREATED

RETENTION = "retention.ms"
INTERVAL = "log.retention.check.interval.ms"
_USUAL_INTERVAL_MS = 300_000

EXPIRING, YOUNG = 6, 3  # records of each partition
SEGMENT_BYTES = 2**20  # the least that Kafka 4 allows
VALUE_BYTES = 600_000  # one fits into a segment, two do not
TOLERANCE_MS = 1000  # of what is told of a broker's clock
_LEAST_RETENTION_MS = 600_000
_MOST_SPREAD_MS = 60_000
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Timetable:
    """retention_ms: of the topic; spread_ms: between the first expiry and the last; wait_ms: after
    its expiry a record must be gone.
    """

    retention_ms: int
    spread_ms: int
    wait_ms: int

    def expiries_ms(self, now_ms: int) -> list:
        """When the expiring records expire: one has already, the last does `spread_ms` from now."""
        step = self.spread_ms / (EXPIRING - 2)
        return [round(now_ms + (number - 1) * step) for number in range(EXPIRING)]


@dataclass(frozen=True)
class Aged:
    """A record as it was acknowledged."""

    partition: int
    offset: int
    timestamp_ms: int
    crc: int = 0  # of its value


@dataclass(frozen=True)
class Gone:
    """A record that a look at the log did not find any more; `age_ms` at that moment."""

    record: Aged
    age_ms: int


def timetable(config: dict, margin: float) -> Timetable:
    """config: broker -> {name: value}; margin: seconds. The young records must not expire before
    the last look, which decides the retention.
    """
    intervals = [int(each.get(INTERVAL) or _USUAL_INTERVAL_MS) for each in config.values()]
    interval_ms = max(intervals, default=_USUAL_INTERVAL_MS)
    spread_ms = min(interval_ms, _MOST_SPREAD_MS)
    wait_ms = interval_ms + round(margin * 1000)
    return Timetable(max(_LEAST_RETENTION_MS, 2 * (spread_ms + wait_ms)), spread_ms, wait_ms)


def went(records: list, before: dict, now: dict, moment_ms: int) -> list:
    """What has Gone between two looks at the first offsets (partition -> offset); the second one
    had its answer at `moment_ms` by the observer's clock, so no record is told younger than it was.
    """
    return [
        Gone(each, moment_ms - each.timestamp_ms)
        for each in records
        if before.get(each.partition, 0) <= each.offset < now.get(each.partition, 0)
    ]


def early(gone: list, retention_ms: int, ahead_ms: int = 0) -> list:
    """Those of these Gone whose time had not come; not by a broker's clock either, which may be ahead by so much."""
    return [each for each in gone if each.age_ms + ahead_ms < retention_ms - TOLERANCE_MS]


def why_never(settings: dict, retention_ms: int) -> str:
    """What of the topic's settings in force explains that nothing was deleted, "" if nothing does, and it may only be
    late.
    """
    if "delete" not in settings.get(CLEANUP_POLICY, "delete"):
        return f"the topic has {CLEANUP_POLICY}={settings[CLEANUP_POLICY]}"
    kept = settings.get(RETENTION, str(retention_ms))
    return f"the topic has {RETENTION}={kept}" if kept != str(retention_ms) else ""


def overdue(records: list, now: dict, moment_ms: int, retention_ms: int) -> list:
    """Records that have expired and are not before the first offset (partition -> offset)."""
    return [
        each
        for each in records
        if each.timestamp_ms + retention_ms < moment_ms
        and each.offset >= now.get(each.partition, 0)
    ]


def probe(bench: Bench, topic: str) -> Finding:
    """Create the topic, write, watch its first offsets, read what is left, judge."""
    table = timetable(bench.cluster.broker_config(list(bench.brokers), (INTERVAL,)), bench.margin)
    _create(bench, topic, table)
    now_ms = _clock_ms()
    expiries = table.expiries_ms(now_ms)
    written = _write(bench, topic, now_ms, expiries, table)
    watch = _Watch(bench, topic, written)
    asked_ms = watch.until(expiries[-1] + table.wait_ms, table.retention_ms)
    late = overdue(written, watch.starts, asked_ms, table.retention_ms)
    came = _read(bench, topic, written)
    watch.look()  # once more: what could not be read may be gone, and then that is the trouble
    gone = watch.gone
    hasty, unclear = early(gone, table.retention_ms), ""
    ahead_ms = _ahead_ms(bench, topic) if hasty else 0
    if ahead_ms is None:
        unclear = (
            f"{len(hasty)} records were gone before their time by the job's clock, and the brokers' clocks could not"
            " be asked for; allow this user AlterConfigs on the topic, and see that the clocks agree"
        )
        hasty = []
    else:
        hasty = early(gone, table.retention_ms, ahead_ms)
    why = (
        ""
        if not late
        else why_never(
            bench.cluster.effective_config(topic, (CLEANUP_POLICY, RETENTION)), table.retention_ms
        )
    )
    if late and not why:
        unclear = (
            f"offset {late[0].offset} of partition {late[0].partition} {_overdue(late[0], asked_ms, table)}; a broker"
            " may be busy, or its clock behind: see that the clocks agree, or give a greater --probe-margin"
        )
        late = []
    unread = unreadable(written[-YOUNG * len(bench.brokers) :], came, watch.starts)
    witnesses = [
        _witness(
            each.record,
            f"was gone when it was {each.age_ms / 1000:,.1f} s old, earlier than promised:"
            f" retention.ms is {table.retention_ms}",
        )
        for each in hasty
    ]
    witnesses += [_witness(each, f"{_overdue(each, asked_ms, table)}; {why}") for each in late]
    witnesses += [
        _witness(each, "has not expired, and cannot be read as it was written") for each in unread
    ]
    waits = [each.age_ms - table.retention_ms for each in gone]
    measured = {
        "partitions": len({each.partition for each in written}),
        "written": len(written),
        "deleted": len(gone),
        "kept": len(written) - len(gone),
        "retention_ms": table.retention_ms,
        "earliest_after_expiry_ms": min(waits, default=0),
        "latest_after_expiry_ms": max(waits, default=0),
    }
    return Finding(len(witnesses), witnesses[:WITNESSES], measured, unclear)


def _overdue(record: Aged, asked_ms: int, table: Timetable) -> str:
    seconds = (asked_ms - record.timestamp_ms - table.retention_ms) / 1000
    return f"was not deleted within {seconds:,.0f} s after it expired"


def _ahead_ms(bench: Bench, topic: str) -> Optional[int]:
    """By how much a broker's clock is ahead of this one at most: by the moment at which each leader says that it has
    appended a record. None if none of them says so.
    """
    deadline = time.monotonic() + bench.timeout
    try:
        bench.cluster.set_config(topic, {TIMESTAMP_TYPE: APPENDED})
    except CannotRun:
        return None
    while True:
        began_ms = _clock_ms()
        asked = [Record(number, b"when is it?") for number in range(len(bench.brokers))]
        stamps = [each.appended_ms for each in write(bench, topic, asked)]
        known = [each for each in stamps if each is not None]
        if len(known) == len(stamps):
            return max(0, *(each - began_ms for each in known))
        if time.monotonic() > deadline:
            return None
        bench.pause(_POLL_SECONDS)  # not every broker has heard of the setting


def _witness(record: Aged, reason: str) -> dict:
    return {"partition": record.partition, "offset": record.offset, "reason": reason}


def _clock_ms() -> int:
    return time.time_ns() // 1_000_000


def _create(bench: Bench, topic: str, table: Timetable) -> None:
    settings = {
        CLEANUP_POLICY: "delete",
        RETENTION: str(table.retention_ms),
        "retention.bytes": "-1",
        "segment.bytes": str(SEGMENT_BYTES),
        "max.message.bytes": str(SEGMENT_BYTES),
        TIMESTAMP_TYPE: CREATED,
    }
    bench.cluster.create_topic(topic, bench.replicas(), settings)


def _write(bench: Bench, topic: str, now_ms: int, expiries: list, table: Timetable) -> list:
    stamps = [each - table.retention_ms for each in expiries] + [now_ms] * YOUNG
    planned = [(n, turn) for turn in range(len(stamps)) for n in range(len(bench.brokers))]
    records = (Record(n, _value(n, turn), None, stamps[turn]) for n, turn in planned)
    places = offsets(write(bench, topic, records, enable_idempotence=True))
    return [
        Aged(number, at, stamps[turn], zlib.crc32(_value(number, turn)))
        for (number, turn), at in zip(planned, places)
    ]


def _value(partition: int, turn: int) -> bytes:
    """Of the record that is written to this partition in this turn."""
    return f"partition {partition}, record {turn}, ".encode().ljust(VALUE_BYTES, b".")


class _Watch:
    """Looks at a topic's first offsets: `starts`, partition -> offset, and what has `gone` so far."""

    def __init__(self, bench: Bench, topic: str, written: list):
        self._bench, self._topic, self._written = bench, topic, written
        self.starts: dict = {}
        self.gone: list = []

    def look(self) -> int:
        """Once; returns the moment of the answer."""
        places = self._bench.cluster.positions(self._topic, self._bench.timeout)
        moment_ms = _clock_ms()
        if not places:
            raise CannotRun(f"topic {self._topic} was deleted meanwhile")
        # a new leader may have a lower first offset than the old one had: gone is gone
        now = {n: max(place.start, self.starts.get(n, 0)) for n, place in places.items()}
        self.gone += went(self._written, self.starts, now, moment_ms)
        self.starts = now
        return moment_ms

    def until(self, end_ms: int, retention_ms: int) -> int:
        """Until nothing is left that expires before `end_ms`, or until then; returns the moment of
        the last look.
        """
        while True:
            moment_ms = self.look()
            if moment_ms > end_ms or not overdue(self._written, self.starts, end_ms, retention_ms):
                return moment_ms
            self._bench.pause(_POLL_SECONDS)


def _read(bench: Bench, topic: str, written: list) -> dict:
    """(partition, offset) -> crc of the value, of all that can be read."""
    ends: dict = {}
    for each in written:
        ends[each.partition] = max(ends.get(each.partition, 0), each.offset + 1)
    found = read(bench, topic, ends) or []
    return {(each.partition, each.offset): zlib.crc32(each.value or b"") for each in found}


def unreadable(young: list, came: dict, starts: dict) -> list:
    """Those of these records that did not come as they were written, (partition, offset) -> crc,
    though they are not before the first offset (partition -> offset).
    """
    return [
        each
        for each in young
        if each.offset >= starts.get(each.partition, 0)
        and came.get((each.partition, each.offset)) != each.crc
    ]
