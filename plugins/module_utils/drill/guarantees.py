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
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import judgement
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import Seen
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import Row, unmeasured

# What is lost: the leader's process, the processes of all brokers, the leader's machine, all machines.
LEADER_KILLED, ALL_KILLED = "leader_killed", "all_killed"
LEADER_POWER, ALL_POWER = "leader_power_cut", "all_power_cut"
# The leader's log directory: removed under it, or it takes no more bytes.
DISK_GONE, DISK_FULL = "disk_gone", "disk_full"
# The leader, when all others hang for so long that it alone is in sync.
LAST_IN_SYNC = "last_in_sync_killed"
POWER, DISK = (LEADER_POWER, ALL_POWER), (DISK_GONE, DISK_FULL)
FAULTS = (LEADER_KILLED, ALL_KILLED, *POWER, *DISK, LAST_IN_SYNC)
NONE, LEADER, EVERY = "0", "1", "all"
ACKS = (NONE, LEADER, EVERY)
# When a log is flushed: as Kafka does by default, after each message, or after 100 ms.
BY_DEFAULT, EACH_MESSAGE, EACH_TENTH = "default", "messages", "ms"
FLUSHES: Dict[str, Dict[str, str]] = {
    BY_DEFAULT: {},
    EACH_MESSAGE: {"flush.messages": "1"},
    EACH_TENTH: {"flush.ms": "100"},
}
# The row of the table of scenarios.
SCENARIO = "S27"
# What is expected: no record is lost, some may be, some must be (otherwise nothing was tried).
KEPT, MAYBE, LOST = "kept", "maybe", "lost"

# A batch of records: base offset, its length from here on, and at 23 of it the last offset's delta.
_BATCH_START = struct.Struct(">qi")
_LAST_DELTA_AT = 23
_LAST_DELTA = struct.Struct(">i")


@dataclass(frozen=True)
class Case:
    """What a row tries: a producer's acks, a topic's settings, and what is lost."""

    acks: str
    loss: str
    flush: str = BY_DEFAULT
    replicas: int = 3
    min_isr: int = 2
    unclean: bool = False

    @property
    def name(self) -> str:
        """As the table has it: what is not as in the first rows is named."""
        words = [f"acks={self.acks}"]
        words.extend(f"{key}={value}" for key, value in FLUSHES[self.flush].items())
        if self.replicas == 1:
            words.append("one replica")
        if self.loss == LAST_IN_SYNC:
            words.append(f"min ISR {self.min_isr}")
            words.append(f"unclean election {'on' if self.unclean else 'off'}")
        return ", ".join([*words, self.loss])

    @property
    def topic(self) -> str:
        """What its topic is named after."""
        words = ["acks", self.acks, self.flush, self.loss.replace("_", "-")]
        words += [str(self.replicas), str(self.min_isr)]
        return "-".join([*words, *(["unclean"] if self.unclean else [])])

    @property
    def config(self) -> Dict[str, str]:
        """Settings of its topic."""
        return {
            "min.insync.replicas": str(min(self.min_isr, self.replicas)),
            "unclean.leader.election.enable": str(self.unclean).lower(),
            **FLUSHES[self.flush],
        }

    @property
    def everybody(self) -> bool:
        """Whether all brokers are hit."""
        return self.loss in (ALL_KILLED, ALL_POWER)

    @property
    def another_leads(self) -> bool:
        """Whether somebody else has to lead while the leader is away."""
        if self.loss == LAST_IN_SYNC:
            return self.unclean
        return self.replicas > 1 and not self.everybody


def expectation(case: Case) -> Tuple[str, str]:
    """KEPT, MAYBE or LOST, and the same in words."""
    if case.loss == ALL_POWER:
        return _of_power(case)
    if case.loss == DISK_GONE and case.replicas == 1:
        return LOST, "all of it lost: nobody else had it"
    if case.loss == LAST_IN_SYNC and not case.unclean:
        return KEPT, "nothing lost; nobody leads until the last one in sync is back"
    if case.loss == LAST_IN_SYNC and case.min_isr > 1:
        return KEPT, "nothing lost: one alone in sync takes no writes"
    if case.loss == LAST_IN_SYNC:
        return LOST, "lost is what one alone in sync has taken"
    if case.acks == EVERY:
        return KEPT, "nothing lost"
    if case.loss == LEADER_KILLED:
        return LOST, "lost is what the followers had not yet"
    if case.acks == NONE:
        return MAYBE, "may lose what was under way: nobody has answered for it"
    if case.loss == DISK_GONE:
        return MAYBE, "may lose what only the leader had"
    return MAYBE, "the files have all; may lose what only the leader had"


def _of_power(case: Case) -> Tuple[str, str]:
    if case.flush == EACH_MESSAGE and case.acks == EVERY:
        return KEPT, "nothing lost: flushed before it is acknowledged"
    if case.flush == EACH_MESSAGE and case.acks == NONE:
        return MAYBE, "may lose what was under way: nobody has answered for it"
    if case.flush == EACH_MESSAGE:
        return MAYBE, "may lose what only the leader had"
    if case.flush == EACH_TENTH:
        return LOST, "lost as without: log.flush.scheduler.interval.ms is not set, so nobody looks"
    return LOST, "lost is what was not flushed, whatever acks"


def row_of(case: Case, seen: Optional[Seen], error: str = "") -> Row:
    """The row of the table. `seen` is None where it could not be measured; `error` says why."""
    expected = expectation(case)[1]
    if seen is None:
        return unmeasured(case.name, SCENARIO, expected, error)
    return Row(
        case.name,
        SCENARIO,
        done_of(case),
        expected,
        "; ".join([*told(case, seen), *judgement.told(seen.judged)]),
        seen.pause_ms,
        (*broken(case, seen), *judgement.broken(seen.judged)),
        tuple(judgement.unclear(seen.judged)),
    )


def done_of(case: Case) -> str:
    """What is done, in words."""
    return {
        LEADER_KILLED: "leader killed, its followers hang",
        ALL_KILLED: "all brokers killed",
        LEADER_POWER: "leader killed, its log cut to the last flush",
        ALL_POWER: "all brokers killed, logs cut to the last flush",
        DISK_GONE: "leader's log directory removed under it",
        DISK_FULL: "leader's log directory takes no more bytes",
        LAST_IN_SYNC: "followers out of sync, then the leader killed",
    }[case.loss]


def broken(case: Case, seen: Seen) -> Iterator[str]:
    """What is not as expected."""
    measured = seen.measured
    lost = seen.groups[0].missing
    expected = expectation(case)[0]
    if not seen.acknowledged:
        yield "no record was acknowledged"
    written = measured["written"]
    if written is not None and written < measured["answered"] and case.acks != NONE:
        yield f"the killed leader's files had {written} of {measured['answered']} acknowledged records"
    if expected == KEPT and lost:
        yield f"{len(lost)} acknowledged records are lost: {ranges(lost)}"
    if expected == LOST and not lost:
        why = {LEADER_KILLED: "the followers hung", ALL_POWER: "nothing was flushed"}
        yield f"nothing was lost although {why.get(case.loss, 'nobody else had it')}, so nothing was tried"
    if case.another_leads and measured["led_by"] in (None, measured["leader"]):
        yield "nobody else has led, so nothing was tried"
    if case.loss == LAST_IN_SYNC:
        yield from _out_of_sync(case, measured)
    if case.loss in POWER and case.flush != EACH_MESSAGE and not measured["cut"]:
        yield "no record was cut off, so nothing was tried"


def _out_of_sync(case: Case, measured: Mapping[str, Any]) -> Iterator[str]:
    alone = measured["alone"]
    if case.min_isr > 1 and alone:
        yield f"{alone} records were acknowledged by one alone in sync"
    if case.min_isr == 1 and not alone:
        yield "no record was acknowledged by one alone in sync, so nothing was tried"
    if not case.unclean and measured["led_by"] is not None:
        yield f"broker {measured['led_by']} has led, and was out of sync"


def told(case: Case, seen: Seen) -> Iterator[str]:
    """What was measured, in a few words each."""
    measured, lost = seen.measured, seen.groups[0].missing
    yield f"{seen.acknowledged:,} acknowledged"
    yield f"{len(lost):,} lost: {ranges(lost)}" if lost else "0 lost"
    if measured.get("rate"):
        yield f"{measured['rate']:,} a second"
    if measured["written"] is not None:
        yield f"killed leader's files had {measured['written']:,} of {measured['answered']:,}"
    if case.loss in POWER:
        yield f"{measured['cut']:,} cut off"
    if case.loss in DISK:
        yield f"it ended by itself after {measured['ended_ms'] / 1000:.1f} s"
    if case.loss == LAST_IN_SYNC:
        yield f"{measured['alone']:,} acknowledged by one alone in sync"


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
