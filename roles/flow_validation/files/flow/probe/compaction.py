# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The probe compaction: does it happen, and does the last value of each key survive it?

Several rounds write values for the same keys, not each round for each key, so that last values
stand all over the log; the last round deletes some keys. A tail of records with keys of their own
pushes all of that out of the active segment, which is never compacted. Then what was superseded
must go, and what was not must be there, where it was acknowledged.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from typing import Optional

from flow.judge.verdict import WITNESSES
from flow.messages.failure import CannotRun
from flow.prepare.cluster import CLEANUP_POLICY
from flow.probe.trial import Bench, Finding, Read, Record, offsets, read, write

BACKOFF, ENABLED = "log.cleaner.backoff.ms", "log.cleaner.enable"
_USUAL_BACKOFF_MS = 15_000

KEYS, ROUNDS, VALUE_BYTES = 1000, 4, 300  # of each partition: about 1 MB
SEGMENT_BYTES = 2**20  # the least that Kafka 4 allows
_TAIL, _TAIL_BYTES = 120, 10_000  # more than a segment
_TOMBSTONES_MS = 86_400_000
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Written:
    """A record as it was acknowledged, or read; `crc` of the value, None for a tombstone."""

    offset: int
    key: str
    crc: Optional[int]


@dataclass(frozen=True)
class Violation:
    """One record's, or several ones' of which it is the first."""

    offset: int
    key: str
    reason: str
    records: int = 1


def rounds(partition: int) -> list:
    """The Records that compaction is to work on, in their order."""
    return [
        Record(partition, _value(key, turn), f"key-{key}".encode())
        for turn in range(ROUNDS)
        for key in range(KEYS)
        if turn == 0 or (key + turn) % 3
    ]


def _value(key: int, turn: int) -> Optional[bytes]:
    if turn == ROUNDS - 1 and key % 10 == 0:
        return None
    return f"value {turn} of key {key}, ".encode().ljust(VALUE_BYTES, b".")


def tail(partition: int) -> list:
    """Records that nothing supersedes, more than one segment of them."""
    return [
        Record(partition, b"tail".ljust(_TAIL_BYTES, b"."), f"tail-{number}".encode())
        for number in range(_TAIL)
    ]


def last(written: list) -> dict:
    """key -> the last of these Written."""
    return {each.key: each for each in sorted(written, key=lambda each: each.offset)}


def superseded(written: list) -> set:
    """Offsets of these Written that are not their key's last."""
    return {each.offset for each in written} - {each.offset for each in last(written).values()}


def violations(written: list, found: list) -> list:
    """What is wrong with a compacted partition, as Violations by offset, whatever of it has been
    compacted so far; written: what was acknowledged, found: what was read, in the order of reading.
    """
    known = {each.offset: each for each in written}
    final = last(written)
    there = {each.offset for each in found}
    wrong = [
        Violation(each.offset, each.key, "the last value of its key is gone")
        for each in final.values()
        if each.offset not in there
    ]
    before = -1
    for each in found:
        was = known.get(each.offset)
        if each.offset <= before:
            wrong.append(Violation(each.offset, each.key, f"it was read behind offset {before}"))
        elif was is None:
            behind = each.key in final and each.offset > final[each.key].offset
            what = ", behind the last value of its key" if behind else ""
            wrong.append(Violation(each.offset, each.key, f"nobody wrote it there{what}"))
        elif (each.key, each.crc) != (was.key, was.crc):
            wrong.append(Violation(each.offset, was.key, "it is not what was written there"))
        before = max(before, each.offset)
    return sorted(wrong, key=lambda each: (each.offset, each.reason))


def left(written: list, found: list, seconds: float) -> list:
    """A Violation if superseded records are still there, `seconds` after the last write."""
    old = superseded(written)
    stale = [each for each in found if each.offset in old]
    if not stale:
        return []
    first, final = stale[0], last(written)
    reason = (
        f"was not compacted within {seconds:.0f} s: its key has a newer value at offset"
        f" {final[first.key].offset}"
    )
    return [Violation(first.offset, first.key, reason, len(stale))]


def why_never(policy: str, leader: Optional[int], off: list) -> str:
    """What explains that nothing was compacted, "" if nothing does, and it may only be late: the topic's policy in
    force, or that the cleaner is off at its leader.
    """
    if "compact" not in policy:
        return f"the topic has {CLEANUP_POLICY}={policy}"
    return f"{ENABLED} is false at broker {leader}" if leader in off else ""


def deadline_seconds(config: dict, margin: float) -> float:
    """How long compaction may take; config: broker -> {name: value}.

    A cleaner without work looks for some every log.cleaner.backoff.ms, so twice that: it may have
    begun before the last segment was closed. Our log is the dirtiest there is, and is taken first.
    """
    waits = [int(each.get(BACKOFF) or _USUAL_BACKOFF_MS) for each in config.values()]
    return 2 * max(waits, default=_USUAL_BACKOFF_MS) / 1000 + margin


def probe(bench: Bench, topic: str) -> Finding:
    """Create the topic, write, wait until it is compacted, read, judge."""
    config = bench.cluster.broker_config(list(bench.brokers), (BACKOFF, ENABLED))
    _create(bench, topic)
    written = _write(bench, topic, len(bench.brokers))
    began, wait = time.monotonic(), deadline_seconds(config, bench.margin)
    ends = {n: place.end for n, place in bench.cluster.positions(topic, bench.timeout).items()}
    if len(ends) != len(written):
        raise CannotRun(f"topic {topic} was deleted meanwhile")
    old = {number: superseded(each) for number, each in written.items()}
    while True:
        took = time.monotonic() - began
        late = took > wait

        def stale(record: Read, late=late) -> bool:
            return not late and record.offset in old[record.partition]

        records = read(bench, topic, ends, stale)
        if records is not None:
            break
        bench.pause(_POLL_SECONDS)
    found: dict = {number: [] for number in written}
    for each in records:
        found[each.partition].append(written_of(each.offset, each.key, each.value))
    layout = bench.cluster.layout(topic)
    off = [b for b, each in sorted(config.items()) if each.get(ENABLED) == "false"]
    policy = bench.cluster.effective_config(topic, (CLEANUP_POLICY,))[CLEANUP_POLICY]
    witnesses, count, unclear = [], 0, ""
    for number, each in sorted(written.items()):
        broker = layout[number]["leader"] if number in layout else None
        why = why_never(policy, broker, off)
        uncompacted = left(each, found[number], took)
        if uncompacted and not why:
            unclear = (
                f"partition {number} {uncompacted[0].reason}; the cleaner may be busy with others: see its log at"
                f" broker {broker}, or give a greater --probe-margin"
            )
            uncompacted = []
        for wrong in violations(each, found[number]):
            witnesses.append(_witness(number, broker, wrong, wrong.reason))
            count += wrong.records
        for wrong in uncompacted:
            witnesses.append(_witness(number, broker, wrong, f"{wrong.reason}; {why}"))
            count += wrong.records
    measured = {
        "partitions": len(written),
        "keys": sum(len(last(each)) for each in written.values()),
        "written": sum(len(each) for each in written.values()),
        "superseded": sum(len(each) for each in old.values()),
        "read": len(records),
    }
    if not late:
        measured["compacted_after_ms"] = round(took * 1000)
    return Finding(count, witnesses[:WITNESSES], measured, unclear)


def _witness(partition: int, broker: Optional[int], wrong: Violation, reason: str) -> dict:
    where = {"partition": partition, "offset": wrong.offset, "key": wrong.key}
    return {**where, "records": wrong.records, "broker": broker, "reason": reason}


def written_of(offset: int, key: Optional[bytes], value: Optional[bytes]) -> Written:
    """A record for comparing."""
    text = (key or b"").decode(errors="replace")
    return Written(offset, text, None if value is None else zlib.crc32(value))


def _create(bench: Bench, topic: str) -> None:
    settings = {
        CLEANUP_POLICY: "compact",
        "segment.bytes": str(SEGMENT_BYTES),
        "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": "0",
        # whatever the cluster's defaults: tombstones stay until they were looked for, and the tail's records fit
        "delete.retention.ms": str(_TOMBSTONES_MS),
        "max.message.bytes": str(SEGMENT_BYTES),
    }
    bench.cluster.create_topic(topic, bench.replicas(), settings)


def _write(bench: Bench, topic: str, partitions: int) -> dict:
    """partition -> what was acknowledged, as Written."""
    records = [
        each
        for number in range(partitions)
        for part in (rounds(number), tail(number))
        for each in part
    ]
    places = offsets(write(bench, topic, records, enable_idempotence=True))
    written: dict = {number: [] for number in range(partitions)}
    for each, offset in zip(records, places):
        written[each.partition].append(written_of(offset, each.key, each.value))
    return written
