# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drill has seen, as values; and what follows from moments and acknowledgements. Pure.

Private to this collection. All moments are milliseconds since 1970, by the clock of the host that asks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import (
    Any,
    Collection,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

BUCKET_MS = 100


@dataclass(frozen=True)
class Moment:
    """From when on the topic's first partition and the cluster were so; `leader` is None while there is none."""

    at_ms: int
    leader: Optional[int]
    isr: FrozenSet[int]
    controller: Optional[int]

    def same(self, other: Moment) -> bool:
        """Whether nothing but the time differs."""
        return (self.leader, self.isr, self.controller) == (
            other.leader,
            other.isr,
            other.controller,
        )

    def to_dict(self) -> Dict[str, Any]:
        """As the module returns it."""
        return {
            "at_ms": self.at_ms,
            "leader": self.leader,
            "isr": sorted(self.isr),
            "controller": self.controller,
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Moment:
        """The Moment of a `to_dict`."""
        return cls(told["at_ms"], told["leader"], frozenset(told["isr"]), told["controller"])


@dataclass(frozen=True)
class GroupSeen:
    """What came to one group: acknowledged records that did not, how many came again.

    `late`: so many did not come in time, but are in the topic; `unknown`: so many of which nobody could say
    whether they are; `skipped`: which it has committed without working at them, so that they are lost to it alone.
    `delay_ms`: the longest time from sending to reading; `p50_ms` and `p99_ms` are those of half of the records,
    and of 99 of 100.
    """

    name: str
    received: int
    missing: Tuple[str, ...] = ()
    repeated: int = 0
    delay_ms: int = 0
    p50_ms: int = 0
    p99_ms: int = 0
    late: int = 0
    unknown: int = 0
    skipped: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """What a drill has seen. `refused`: sends that failed, by the broker's word for it.

    `pause_ms`: the longest time without an acknowledgement, or until a group had its records again.
    `notes`: what else was measured, in words; `measured`: the same as numbers, each drill has its own.
    """

    sent: int
    acknowledged: int
    refused: Mapping[str, int] = field(default_factory=dict)
    pause_ms: Optional[int] = None
    groups: Tuple[GroupSeen, ...] = ()
    moments: Tuple[Moment, ...] = ()
    notes: Tuple[str, ...] = ()
    # acknowledged while too few replicas were in sync
    unprotected: int = 0
    timeline: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    # the PySpark judge's answers about the drill's topics; none where nobody has asked it
    judged: Tuple[Mapping[str, Any], ...] = ()

    @property
    def lost(self) -> int:
        """Acknowledged records that did not come to every group."""
        return len({name for group in self.groups for name in group.missing})

    @property
    def late(self) -> int:
        """Acknowledged records that are there, and did not come to some group in time."""
        return max((group.late for group in self.groups), default=0)

    @property
    def unknown(self) -> int:
        """Acknowledged records that did not come to some group, and could not be looked for."""
        return max((group.unknown for group in self.groups), default=0)

    def to_dict(self) -> Dict[str, Any]:
        """As the module returns it."""
        return {
            "sent": self.sent,
            "acknowledged": self.acknowledged,
            "refused": dict(self.refused),
            "pause_ms": self.pause_ms,
            "lost": self.lost,
            "late": self.late,
            "unprotected": self.unprotected,
            "groups": [
                {
                    "name": each.name,
                    "received": each.received,
                    "missing": list(each.missing),
                    "repeated": each.repeated,
                    "delay_ms": each.delay_ms,
                    "p50_ms": each.p50_ms,
                    "p99_ms": each.p99_ms,
                    "late": each.late,
                    "unknown": each.unknown,
                    "skipped": list(each.skipped),
                }
                for each in self.groups
            ],
            "moments": [each.to_dict() for each in self.moments],
            "notes": list(self.notes),
            "timeline": dict(self.timeline),
            "measured": dict(self.measured),
            "judged": [dict(each) for each in self.judged],
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Seen:
        """The Seen of a `to_dict`."""
        return cls(
            told["sent"],
            told["acknowledged"],
            told["refused"],
            told["pause_ms"],
            tuple(
                GroupSeen(
                    each["name"],
                    each["received"],
                    tuple(each["missing"]),
                    each["repeated"],
                    each["delay_ms"],
                    each["p50_ms"],
                    each["p99_ms"],
                    each["late"],
                    each["unknown"],
                    tuple(each["skipped"]),
                )
                for each in told["groups"]
            ),
            tuple(Moment.from_dict(each) for each in told["moments"]),
            tuple(told["notes"]),
            told["unprotected"],
            told["timeline"],
            told["measured"],
            tuple(told["judged"]),
        )


def longest_pause_ms(acknowledged_ms: Iterable[int]) -> Optional[int]:
    """The longest time between two acknowledgements; None if there are fewer than two."""
    times = sorted(acknowledged_ms)
    return max((later - earlier for earlier, later in zip(times, times[1:])), default=None)


# (from, to), in ms since 1970: nothing came between.
Pause = Tuple[int, int]


def pauses(times_ms: Iterable[int], ended_ms: int) -> List[Pause]:
    """Each time without one of these that is longer than all later ones, in their order.

    So the longest one since any moment is the first that ends after it. `ended_ms`: until when some could be
    expected; what came later, came late.
    """
    times = sorted(times_ms)
    if times and ended_ms > times[-1]:
        times.append(ended_ms)
    found: List[Pause] = []
    for earlier, later in reversed(list(zip(times, times[1:]))):
        if not found or later - earlier > found[-1][1] - found[-1][0]:
            found.append((earlier, later))
    return found[::-1]


def longest_since(found: Sequence[Sequence[int]], since_ms: int) -> Optional[int]:
    """The longest of `pauses` that lasted after a moment, in ms; None if there was none."""
    return next((to_ms - from_ms for from_ms, to_ms in found if to_ms > since_ms), None)


# (from when on, who leads the partition with a group's offsets, how many replicas it has, which are in sync)
Coordinated = Tuple[int, Optional[int], int, FrozenSet[int]]


def coordinated(changes: Sequence[Coordinated], committed_ms: Iterable[int]) -> List[List[Any]]:
    """Each change, as JSON has it, with how many commits the group made from then on until the next one."""
    times = sorted(committed_ms)
    ends = [each[0] for each in changes[1:]]
    return [
        [at_ms, who, replicas, sorted(in_sync), sum(at_ms < each <= end for each in times)]
        for (at_ms, who, replicas, in_sync), end in zip(changes, [*ends, math.inf])
    ]


def committed_elsewhere(changes: Sequence[Coordinated], committed_ms: Iterable[int]) -> bool:
    """Whether the group has committed while another broker coordinated it than the one that did at first."""
    found = coordinated(changes, committed_ms)
    return any(commits and who not in (None, found[0][1]) for _at, who, *_how, commits in found)


def handed_over_ms(
    partitions: Iterable[int], places: Sequence[Tuple[int, int]], since_ms: int
) -> Optional[int]:
    """How long it took until somebody had a record of each of these partitions; None while he has not.

    `places`: (partition, when) of what came to him.
    """
    firsts = [
        min(
            (at_ms for place, at_ms in list(places) if place == each and at_ms > since_ms),
            default=None,
        )
        for each in partitions
    ]
    if None in firsts:
        return None
    return max((each - since_ms for each in firsts if each is not None), default=None)


def unprotected(
    acknowledged: Mapping[str, Tuple[int, int]],
    refused_ms: Iterable[int],
    moments: Sequence[Moment],
    min_isr: int,
) -> int:
    """How many records were acknowledged while fewer than `min_isr` replicas were in sync.

    `acknowledged`: record to (when it was sent, when it was acknowledged); `refused_ms`: when others were
    refused for want of replicas. Metadata lag behind: only what lies between two such refusals counts, within
    a time for which the ISR is known to have been too small.
    """
    times, count = sorted(refused_ms), 0
    for moment, later in zip(moments, moments[1:]):
        within = [each for each in times if moment.at_ms < each < later.at_ms]
        if len(moment.isr) < min_isr and within:
            count += sum(
                within[0] < sent and at_ms < within[-1] for sent, at_ms in acknowledged.values()
            )
    return count


def below_min_isr(
    acknowledged: Mapping[str, Tuple[int, int]],
    refused_ms: Iterable[int],
    unknown: Iterable[Tuple[int, int]],
    came: Sequence[Tuple[str, int]],
    moments: Sequence[Moment],
    replicas: Iterable[int],
) -> Dict[str, int]:
    """What went on while min ISR wanted more replicas: {there, read, again, unknown}, each a number of records.

    `acknowledged` and `refused_ms` are as of `unprotected`; `unknown`: (when sent, when given up) of those of which
    nobody has said whether they were written; `came`: (record, when) of a group that began to read meanwhile.
    `there` were acknowledged before the first refusal, and `read` of them came before the last one. `again` were
    sent after it and acknowledged. `unknown` are those under way while the ISR was not full.
    """
    times, everybody = sorted(refused_ms), frozenset(replicas)
    short = [each.at_ms for each in moments if each.isr != everybody]
    full = [each.at_ms for each in moments if short and each.at_ms > short[-1]]
    until = full[0] if full else float("inf")
    excused = [sent <= until and short[0] <= at_ms for sent, at_ms in unknown if short]
    if not times:
        return {"there": 0, "read": 0, "again": 0, "unknown": sum(excused)}
    there = {record for record, (_sent, at_ms) in acknowledged.items() if at_ms < times[0]}
    return {
        "there": len(there),
        "read": len(there & {record for record, at_ms in came if at_ms <= times[-1]}),
        "again": sum(sent > times[-1] for sent, _at in acknowledged.values()),
        "unknown": sum(excused),
    }


def per_bucket(acknowledged_ms: Iterable[int]) -> Dict[str, Any]:
    """How many acknowledgements came in each tenth of a second: {start_ms, bucket_ms, records}."""
    times = sorted(acknowledged_ms)
    if not times:
        return {"start_ms": None, "bucket_ms": BUCKET_MS, "records": []}
    start = times[0] - times[0] % BUCKET_MS
    records = [0] * ((times[-1] - start) // BUCKET_MS + 1)
    for each in times:
        records[(each - start) // BUCKET_MS] += 1
    return {"start_ms": start, "bucket_ms": BUCKET_MS, "records": records}


def group_seen(
    name: str,
    acknowledged: Mapping[str, int],
    came: Sequence[Tuple[str, int]],
    there: Collection[str] = (),
    whole: bool = True,
) -> GroupSeen:
    """What came to a group. `acknowledged`: record to when it was sent; `came`: (record, when), each time.

    `there`: records that are known to be in the topic, so that they are late where they did not come; `whole`:
    whether the others are known not to be there.
    """
    counts: Dict[str, int] = {}
    delays: List[int] = []
    for record, at_ms in came:
        counts[record] = counts.get(record, 0) + 1
        if counts[record] == 1 and record in acknowledged:
            delays.append(max(0, at_ms - acknowledged[record]))
    absent = set(acknowledged) - set(counts)
    not_there = tuple(sorted(absent - set(there), key=_by_number))
    return GroupSeen(
        name,
        len(counts),
        not_there if whole else (),
        sum(each - 1 for each in counts.values()),
        max(delays, default=0),
        percentile(delays, 50),
        percentile(delays, 99),
        len(absent) - len(not_there),
        0 if whole else len(not_there),
    )


def percentile(values: Iterable[int], percent: int) -> int:
    """The least value that so many of 100 do not exceed; 0 of none."""
    ordered = sorted(values)
    if not ordered:
        return 0
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


# (when, records that wait, consumers that are there)
Backlog = Tuple[int, int, int]


def growth(samples: Sequence[Backlog], consumers: int) -> Optional[float]:
    """By how many records a second the backlog grew with so many consumers; None if it is not known."""
    found = [(at_ms, waiting) for at_ms, waiting, there in samples if there == consumers]
    if len(found) < 2 or found[-1][0] == found[0][0]:
        return None
    return (found[-1][1] - found[0][1]) * 1000 / (found[-1][0] - found[0][0])


@dataclass(frozen=True)
class Spread:
    """How records lay in partitions. `split`: keys in more than one, `disordered`: keys whose records came
    out of order; `unkeyed`: how many records without a key each partition had.
    """

    keys: int
    split: int
    disordered: int
    unkeyed: Mapping[int, int]


def spread(places: Sequence[Tuple[str, int, str]]) -> Spread:
    """From (record's number, partition, key or "") in the order in which they came."""
    partitions: Dict[str, set] = {}
    numbers: Dict[str, List[int]] = {}
    unkeyed: Dict[int, int] = {}
    for record, partition, key in places:
        if key:
            partitions.setdefault(key, set()).add(partition)
            numbers.setdefault(key, []).append(int(record))
        else:
            unkeyed[partition] = unkeyed.get(partition, 0) + 1
    return Spread(
        len(partitions),
        sum(len(each) > 1 for each in partitions.values()),
        sum(each != sorted(each) for each in numbers.values()),
        unkeyed,
    )


def _by_number(record: str) -> Tuple[int, str]:
    return (int(record), "") if record.isdigit() else (0, record)


def clock_ahead_ms(before_ms: int, there_ms: int, after_ms: int) -> int:
    """By how much another host's clock is ahead of ours, in ms; negative: behind.

    It said `there_ms` when ours had said `before_ms` and had not yet said `after_ms`. 0 where it may be right;
    else the middle of what is possible, which is wrong by half of the time between at most.
    """
    if before_ms <= there_ms <= after_ms:
        return 0
    return there_ms - (before_ms + after_ms) // 2


# ---------------------------------------------------------------- what follows from moments


@dataclass(frozen=True)
class Course:
    """How leader, ISR and controller went. None: nothing was seen. Times in ms from the fault on.

    `shrank_ms`: until a replica was out of the ISR; `led_ms`: until somebody else led; `elected_ms`:
    until somebody else was controller; `full_ms`: until the ISR was full again for good.
    """

    leader_before: Optional[int] = None
    led_by: Tuple[int, ...] = ()
    leader_after: Optional[int] = None
    controller_before: Optional[int] = None
    controlled_by: Tuple[int, ...] = ()
    smallest_isr: Optional[int] = None
    shrank_ms: Optional[int] = None
    led_ms: Optional[int] = None
    elected_ms: Optional[int] = None
    full_ms: Optional[int] = None
    full_at_end: bool = False


def course(
    moments: Sequence[Moment],
    replicas: Iterable[int],
    fault_ms: int,
    since_ms: Optional[int] = None,
) -> Course:
    """How it went, from moments in their order. `replicas`: of the partition; `fault_ms`: when it began.

    `since_ms`: what was so then was so before; without it, the time of the fault. That may be told by another clock,
    and what the fault has done may seem to have been before it: a time of 0, then.
    """
    everybody = frozenset(replicas)
    cut_ms = fault_ms if since_ms is None else since_ms
    before = [each for each in moments if each.at_ms <= cut_ms]
    after = [each for each in moments if each.at_ms > cut_ms]
    if not moments:
        return Course()
    first, last = (before or list(moments))[-1], moments[-1]

    def until(holds: Any) -> Optional[int]:
        return next((max(0, each.at_ms - fault_ms) for each in after if holds(each)), None)

    shrunk = [each for each in after if each.isr != everybody]
    full = None
    if last.isr == everybody and shrunk:
        full = until(lambda each: each.at_ms > shrunk[-1].at_ms)
    return Course(
        leader_before=first.leader,
        led_by=_others((each.leader for each in after), first.leader),
        leader_after=last.leader,
        controller_before=first.controller,
        controlled_by=_others((each.controller for each in after), first.controller),
        smallest_isr=min(len(each.isr) for each in [first, *after]),
        shrank_ms=until(lambda each: each.isr != everybody),
        led_ms=until(lambda each: each.leader not in (None, first.leader)),
        elected_ms=until(lambda each: each.controller not in (None, first.controller)),
        full_ms=full,
        full_at_end=last.isr == everybody,
    )


def lacking(looked: bool, full: bool) -> str:
    """What keeps a drill from its begin although records flow, in words; empty if nothing does."""
    if not looked:
        return "its leader and replicas could not be looked at"
    return "" if full else "not all of its replicas were in sync"


def watched_line(answered: int, last: Optional[Moment]) -> str:
    """How far a drill is, in words: records that were answered, and how the topic was when it was looked at last."""
    records = f"{answered:,} records answered"
    if last is None:
        return records
    leader = "nobody leads" if last.leader is None else f"{last.leader} leads"
    return f"{records}, {leader}, in sync {', '.join(map(str, sorted(last.isr))) or 'nobody'}"


def _others(found: Iterable[Optional[int]], first: Optional[int]) -> Tuple[int, ...]:
    """Each other one that is named, once, in the order of their coming."""
    others: List[int] = []
    for each in found:
        if each is not None and each != first and each not in others:
            others.append(each)
    return tuple(others)
