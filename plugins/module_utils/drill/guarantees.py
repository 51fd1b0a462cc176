# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which guarantees are measured, the log files of a killed broker, and what must hold. Pure.

Private to this collection. A producer writes with some acks, something is killed or loses what it had not
flushed, and all records are read back. This happens on clusters that are thrown away.
"""

from __future__ import annotations

import re
import struct
from typing import Dict, Iterator, List, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import Seen
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import Row

# What is lost: the leader's process, the processes of all brokers, the leader's machine, all machines.
LEADER_KILLED, ALL_KILLED = "leader_killed", "all_killed"
LEADER_POWER, ALL_POWER = "leader_power_cut", "all_power_cut"
POWER = (LEADER_POWER, ALL_POWER)
FAULTS = (LEADER_KILLED, ALL_KILLED, *POWER)
NONE, LEADER, EVERY = "0", "1", "all"
ACKS = (NONE, LEADER, EVERY)
# The row of the table of scenarios.
SCENARIO = "S27"

# A batch of records: base offset, its length from here on, and at 23 of it the last offset's delta.
_BATCH_START = struct.Struct(">qi")
_LAST_DELTA_AT = 23
_LAST_DELTA = struct.Struct(">i")


def expected_of(acks: str, loss: str) -> str:
    """What is expected, in words."""
    if loss == ALL_POWER:
        return "lost is what was not flushed, whatever acks"
    if acks == EVERY:
        return "nothing lost"
    if loss == LEADER_KILLED:
        return "lost is what the followers had not yet"
    return "the files have all; lost is at most what only the leader had"


def row_of(acks: str, loss: str, seen: Optional[Seen], error: str = "") -> Row:
    """The row of the table. `seen` is None where it could not be measured; `error` says why."""
    name = f"acks={acks}, {loss}"
    if seen is None:
        return Row(
            name, SCENARIO, done_of(loss), expected_of(acks, loss), "nothing", None, (), (error,)
        )
    return Row(
        name,
        SCENARIO,
        done_of(loss),
        expected_of(acks, loss),
        "; ".join(told(seen)),
        seen.pause_ms,
        tuple(broken(seen)),
    )


def done_of(loss: str) -> str:
    """What is done, in words."""
    return {
        LEADER_KILLED: "leader killed, its followers hang",
        ALL_KILLED: "all brokers killed",
        LEADER_POWER: "leader killed, its log cut to the last flush",
        ALL_POWER: "all brokers killed, logs cut to the last flush",
    }[loss]


def broken(seen: Seen) -> Iterator[str]:
    """What is not as expected."""
    measured = seen.measured
    acks, loss = measured["acks"], measured["loss"]
    lost = seen.groups[0].missing
    if not seen.acknowledged:
        yield "no record was acknowledged"
    if measured["written"] < measured["answered"] and acks != NONE:
        told = f"{measured['written']} of {measured['answered']} acknowledged records"
        yield f"the killed leader's files had {told}"
    if acks == EVERY and loss != ALL_POWER and lost:
        yield f"{len(lost)} acknowledged records are lost: {ranges(lost)}"
    if loss == LEADER_KILLED:
        if measured["led_by"] == measured["leader"]:
            yield "nobody else has led, so nothing was tried"
        if acks != EVERY and not lost:
            yield "nothing was lost although the followers hung, so nothing was tried"
    if loss in POWER and not measured["cut"]:
        yield "no record was cut off, so nothing was tried"
    if loss == ALL_POWER and not lost:
        yield "nothing was lost although nothing was flushed"


def told(seen: Seen) -> Iterator[str]:
    """What was measured, in a few words each."""
    measured, lost = seen.measured, seen.groups[0].missing
    yield f"{seen.acknowledged:,} acknowledged"
    yield f"{len(lost):,} lost: {ranges(lost)}" if lost else "0 lost"
    yield f"killed leader's files had {measured['written']:,} of {measured['answered']:,}"
    if measured["loss"] in POWER:
        yield f"{measured['cut']:,} cut off"


def ranges(records: Sequence[str], most: int = 3) -> str:
    """Numbers in short: "3, 7-9"; of more than `most` such, how many follow."""
    found: List[List[int]] = []
    for number in sorted(int(each) for each in records):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    words = [str(low) if low == high else f"{low}-{high}" for low, high in found]
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")


def recovery_points(text: str) -> Dict[str, int]:
    """{topic-partition: offset up to which it is flushed} of Kafka's recovery-point-offset-checkpoint.

    ValueError for another version than 0.
    """
    lines = text.split("\n")
    if lines[0].strip() != "0":
        raise ValueError(f"version {lines[0]!r}")
    found = (re.fullmatch(r"(\S+) (\d+) (\d+)", line) for line in lines[2:])
    return {f"{each[1]}-{each[2]}": int(each[3]) for each in found if each}


def end_offset(segment: bytes, base: int) -> int:
    """The offset after the last whole batch of a segment that begins with `base`."""
    return max((last + 1 for _at, _first, last in _batches(segment)), default=base)


def flushed_bytes(segment: bytes, point: int) -> int:
    """How many bytes of a segment remain when the batches from offset `point` on are gone."""
    ends = (at for at, first, _last in _batches(segment) if first >= point)
    return next(ends, len(segment))


def _batches(segment: bytes) -> Iterator[Sequence[int]]:
    """(where it begins, first offset, last offset) of each whole batch."""
    at, size = 0, _BATCH_START.size
    while at + size + _LAST_DELTA_AT - size + _LAST_DELTA.size <= len(segment):
        first, length = _BATCH_START.unpack_from(segment, at)
        # files that are mapped end with zeros
        if length <= 0 or at + size + length > len(segment):
            return
        (delta,) = _LAST_DELTA.unpack_from(segment, at + _LAST_DELTA_AT)
        yield at, first, first + delta
        at += size + length
