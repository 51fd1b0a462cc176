# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""From findings to one verdict. Pure: values in, a dictionary for verdict.json out."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Collection, Iterable, Mapping, Optional, Sequence

from flow.prepare.applied import named
from flow.record.partition import Partition

SCHEMA_VERSION = 1
WITNESSES = 20

PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"
EXIT_CODE = {PASS: 0, FAIL: 1, INCONCLUSIVE: 2}
COULD_NOT_RUN = 3

# id -> what it says when nothing is wrong
MEANING = {
    "loss": "Every acknowledged record was read.",
    "phantom": "Every record that was read is explained by the ledger.",
    "corrupt": "Every record came out as it went in: value, key, headers, and the timestamp where the topic keeps it.",
    "duplicate": "No record was read twice.",
    "order": "Within producer and partition the sequence rises with the offset.",
    "gap": "No offset is empty, no end offset and no leader epoch fell.",
    "atomicity": "Of each transaction all records are visible, or none.",
    "coverage": "Every broker led a partition that was written to, and answers on each listener that was given.",
    "durability": "Replicas and effective min.insync.replicas are as planned; a write below, if tried, is refused.",
    "continuity": "Consumer groups found their committed offsets, and everything from there on.",
    "compaction": "Compaction happens, and keeps the last value of each key.",
    "retention": "What has expired is deleted, and nothing earlier.",
    "emptiness": "Something was read.",
}


@dataclass(frozen=True)
class Check:
    """The outcome of one check; `count` is exact, `witnesses` are at most WITNESSES of them."""

    id: str
    count: int = 0
    witnesses: list = field(default_factory=list)

    @property
    def status(self) -> str:
        return FAIL if self.count else PASS

    def to_json(self) -> dict:
        return {
            "id": self.id,
            "status": self.status,
            "count": self.count,
            "witnesses": self.witnesses[:WITNESSES],
        }


def gaps_at_the_borders(
    before: dict,
    after: dict,
    now: dict,
    expired: Collection[int] = (),
    acknowledged: Mapping[int, int] = MappingProxyType({}),
) -> list:
    """Witnesses of what counting records cannot see: ends, starts and epochs that moved the wrong
    way.

    Each argument: partition -> Partition. `after` are the positions when producing ended. What lies
    before the run's first record (`before`'s ends) may go: records of others expire. Partitions that
    were added meanwhile hold nothing of the run, nor does what lies behind `after`'s ends. `expired`: partitions
    whose first records went by the topic's own settings. `acknowledged`: partition -> the least offset that was
    acknowledged; before `before`'s end stood others' records, unless they were cut off.
    """
    found = []

    def tell(partition: int, offset: int, records: int, reason: str) -> None:
        found.append(
            {"partition": partition, "offset": offset, "records": records, "reason": reason}
        )

    for number, was in sorted(after.items()):
        if number not in before:
            continue
        current, began = now.get(number), before[number].end
        start = min(began, acknowledged.get(number, began))
        if start < began:
            reason = (
                f"the log was cut from {began} to {start} or less, before the run's first record"
            )
            tell(number, start, began - start, reason)
        if current is None:
            first = max(start, was.start)
            # where the run wrote nothing, it is gone all the same
            tell(number, first, max(1, was.end - first), "the partition is gone")
            continue
        if current.end < was.end:
            reason = f"the end offset fell from {was.end} to {current.end}"
            # where the run wrote nothing, an end does not fall, either
            tell(number, current.end, max(1, was.end - max(current.end, start)), reason)
        gone = min(current.start, was.end) - start
        if gone > 0 and number not in expired:
            reason = f"the first offset rose to {current.start}, beyond the run's first, {start}"
            tell(number, start, gone, reason)
        if None not in (was.epoch, current.epoch) and current.epoch < was.epoch:
            reason = f"the leader epoch fell from {was.epoch} to {current.epoch}"
            tell(number, current.end, 1, reason)
    return found


def leading_none(brokers: Iterable[int], moments: list, partitions: set) -> list:
    """The brokers, sorted, that led none of these partitions at any of the moments."""
    led = {p.leader for moment in moments for n, p in moment.items() if n in partitions}
    return sorted(set(brokers) - led)


@dataclass(frozen=True)
class Judged:
    """What is held against the cluster, and sentences about what stays open."""

    check: Check
    unclear: list


def coverage(
    brokers: list,
    moments: list,
    tested: set,
    expected_brokers: Optional[int] = None,
    listeners: Sequence = (),
    every_broker: bool = True,
    registered: Collection[int] = (),
    settled: Optional[Mapping] = None,
) -> Judged:
    """A broker counts as covered if it led, at any of the moments, a partition that was `tested`:
    for which there were to be records, if `every_broker` was to. `listeners`: witnesses of what could not
    be reached through other listeners.

    registered, settled: ids of the brokers and partition -> Partition, at the end. Whoever was away or behind at
    the first moment, as a broker that has just restarted, and is back at the end, stays open.
    """
    idle = leading_none(brokers, moments, tested) if every_broker else []
    behind, late = (
        {broker for each in out_of_sync(partitions).values() for broker in each}
        for partitions in (moments[0], dict(settled or {}))
    )
    back = [b for b in idle if b in behind - late and b in registered]
    idle = [b for b in idle if b not in back]
    witnesses = [{"broker": b, "reason": "led no partition that was written to"} for b in idle]
    unclear = [
        f"broker {b} was not in sync when the run began, and led nothing since, so it is not judged; begin a new run"
        for b in back
    ]
    there, expected = sorted({*brokers, *registered}), expected_brokers or 0
    absent = max(0, expected - len(there))
    if absent:
        reason = f"{expected} brokers are expected, {len(there)} are registered: {there}"
        witnesses.append({"broker": None, "reason": reason})
    if expected > len(brokers):
        unclear += [
            f"broker {b} was not registered when the run began, and is now, so it is not judged; begin a new run"
            for b in sorted(set(registered) - set(brokers))
        ]
    count = len(idle) + absent + len(listeners)
    return Judged(Check("coverage", count, [*witnesses, *listeners]), unclear)


@dataclass(frozen=True)
class Standing:
    """How durable the topic is at one `moment` ("before the first write", ...): its Partitions, and the
    least min.insync.replicas in force, None where nobody could read it. `of_brokers`: broker -> the one that it
    applies where it leads, of those that told.
    """

    moment: str
    partitions: dict
    min_isr: Optional[int]
    of_brokers: Mapping[int, int] = field(default_factory=dict)

    def minimum(self, place: Partition) -> int:
        """The min.insync.replicas of a partition; 0 where nobody could read it."""
        least = self.min_isr or 0
        return least if place.leader is None else self.of_brokers.get(place.leader, least)

    def lowest(self) -> list:
        """The brokers that apply the least; none where all do, or nobody told."""
        return _some(
            [b for b, least in self.of_brokers.items() if least == self.min_isr], self.of_brokers
        )


def durability(
    standings: Sequence[Standing],
    planned_replication: int,
    planned_min_isr: int,
    registered: Optional[Collection[int]] = None,
    moving: Optional[Collection[int]] = (),
    known: Collection[int] = (),
    shared: bool = False,
    progress_of: Optional[Mapping[tuple, Optional[bool]]] = None,
    leaving: Collection[int] = (),
) -> Judged:
    """At each moment every partition has the planned number of replicas (0: nobody planned any, then it
    stays what it was), at least min.insync.replicas of them are in sync, and that is at least the planned
    one (0: nobody planned any, then it does not fall). What is the same at two moments is told once.

    registered: brokers that are there at the last moment; then each replica on one of them must be in
    sync. Replicas of brokers that are down stay open, and so do brokers that are `known` from before and
    not there any more, unless they were `leaving` on purpose.
    moving: partitions whose replicas are being reassigned at the last moment, None if nobody could say.
    Their replicas are more for a while, and the new ones not in sync: that stays open. So does what was
    only so at an earlier moment.
    shared: the topic is somebody else's, who may lower its min.insync.replicas: that stays open, too.
    progress_of: `progress` of replicas that are not in sync on brokers that are there. One that comes nearer is not in
    sync yet, and one of which nobody could say may be that: both stay open.
    Where the run began with fewer brokers than replicas were planned, its topic has fewer; with enough of them at
    the last moment, that stays open.
    """
    told = _Told()
    begun_with_few = _begun_with_few(standings, planned_replication, registered, known, shared)
    planned_replication = 0 if begun_with_few else planned_replication
    for each in standings:
        _note_replicas(told, each, planned_replication, each is standings[-1], moving)
        _note_in_sync(told, each)
    _note_min_isr(told, standings, planned_min_isr)
    fallen = _fallen(standings) if not planned_min_isr else ""
    if fallen and not shared:
        told.violation(None, fallen, standings[-1].moment)
    if not planned_replication:
        _note_moved(told, standings)
    if registered is not None:
        _note_behind(told, standings[-1], set(registered), moving, progress_of or {})
    unclear = _durability_sentences(told.open, moving)
    unclear += [f"the topic's {fallen}"] if fallen and shared else []
    if begun_with_few:
        unclear.append(
            f"only brokers {', '.join(map(str, sorted(known)))} were registered when the run began, so its topic has"
            " fewer replicas than planned; begin a new run"
        )
    gone = sorted(set(known) - {*registered, *leaving}) if registered is not None else []
    unclear += [f"broker {n} was there when the run began, and is not any more" for n in gone]
    witnesses = told.witnesses()
    return Judged(Check("durability", len(witnesses), witnesses), unclear)


class _Told:
    """What `durability` holds against the cluster, each once; `open`: what -> partitions of which that stays open."""

    def __init__(self) -> None:
        self._found: dict = {}
        self.open: dict = {}

    def violation(self, number: Optional[int], reason: str, moment: str) -> None:
        """Of this partition, None: of the topic."""
        self._found.setdefault((number, reason), moment)

    def stays_open(self, what: str, number: int) -> None:
        """Of this partition."""
        self.open.setdefault(what, set()).add(number)

    def witnesses(self) -> list:
        """As verdict.json has them."""
        return [
            {**({} if n is None else {"partition": n}), "reason": f"{moment}: {reason}"}
            for (n, reason), moment in self._found.items()
        ]


def _begun_with_few(
    standings: Sequence[Standing],
    planned: int,
    registered: Optional[Collection[int]],
    known: Collection[int],
    shared: bool,
) -> bool:
    """Whether the run made its topic when brokers for the planned replicas were missing that are there now."""
    fewer = any(len(p.replicas) < planned for p in standings[0].partitions.values())
    at_first = fewer and bool(known) and not shared and len(known) < planned
    return at_first and planned <= len(registered or ())


def _note_replicas(
    told: _Told,
    standing: Standing,
    planned: int,
    is_last: bool,
    moving: Optional[Collection[int]],
) -> None:
    """How many replicas each partition has; planned: 0 where nobody planned any."""
    for number, place in sorted(standing.partitions.items()):
        count = len(place.replicas)
        too_many = count > planned > 0
        settled = is_last and moving is not None and number not in moving
        if count < planned or (too_many and settled):
            told.violation(number, f"{count} replicas instead of {planned}", standing.moment)
        elif too_many:
            told.stays_open(_MORE if is_last else _WERE_MORE, number)


def _note_in_sync(told: _Told, standing: Standing) -> None:
    """Whether as many replicas of each partition are in sync as its min.insync.replicas says."""
    for number, place in sorted(standing.partitions.items()):
        least = standing.minimum(place)
        if len(place.isr) < min(least, len(place.replicas)):
            reason = f"{len(place.isr)} replicas in sync, and {_MIN_ISR} is {least}"
            told.violation(number, reason, standing.moment)


def _note_min_isr(told: _Told, standings: Sequence[Standing], planned: int) -> None:
    """Whether min.insync.replicas is as planned at each moment; one value once, by the first moment of which it is
    known who applies it.
    """
    low: dict = {}
    for each in standings:
        known = low.get(each.min_isr)
        if each.min_isr is not None and each.min_isr < planned:
            if known is None or (each.lowest() and not known.lowest()):
                low[each.min_isr] = each
    for least, each in low.items():
        reason = f"effective {_MIN_ISR} is {least}{_at(each.lowest())}, planned is {planned}"
        told.violation(None, reason, each.moment)


def _some(brokers: Collection[int], among: Collection[int]) -> list:
    """The brokers, sorted; none if they are all of those."""
    return sorted(brokers) if len(brokers) < len(among) else []


def _at(brokers: list) -> str:
    return f" at {named(brokers)}" if brokers else ""


def untold(brokers: Collection[int]) -> list:
    """A sentence about brokers that do not say which min.insync.replicas they apply; none if there are none."""
    if not brokers:
        return []
    return [
        f"{named(brokers)} did not tell which {_MIN_ISR} the topic has there, so that is not judged; judge"
        " again when the brokers answer"
    ]


def _note_moved(told: _Told, standings: Sequence[Standing]) -> None:
    """Which partitions have another number of replicas than at first; a new one has none to compare."""
    for number, place in standings[-1].partitions.items():
        was = standings[0].partitions.get(number, place)
        if len(was.replicas) != len(place.replicas):
            told.stays_open(_OTHERS_MOVED, number)


def _note_behind(
    told: _Told,
    last: Standing,
    there: Collection[int],
    moving: Optional[Collection[int]],
    progress_of: Mapping[tuple, Optional[bool]],
) -> None:
    """Which replicas are not in sync at the end, by the brokers that are `there`."""
    for number, behind in out_of_sync(last.partitions).items():
        present = []
        for broker in behind:
            nearer = progress_of.get((number, broker), False)
            if broker not in there:
                told.stays_open(f"broker {broker}, which is down, has", number)
            elif nearer is False:
                present.append(broker)
            else:
                told.stays_open(_NEARER if nearer else _NOT_ASKED, number)
        if present and moving is not None and number not in moving:
            said = ", ".join(map(str, present))
            reason = f"replicas on brokers {said}, which are there, are not in sync"
            told.violation(number, reason, last.moment)
        elif present:
            told.stays_open(_MORE, number)


_MIN_ISR = "min.insync.replicas"
_MORE, _WERE_MORE, _OTHERS_MOVED = "more", "were more", "others moved"
_NEARER, _NOT_ASKED = "nearer", "not asked"


def progress(before: Mapping[tuple, int], after: Mapping[tuple, int], replicas: Mapping) -> dict:
    """(partition, broker) -> whether that replica has grown, None where nobody said: by its bytes at two
    moments, of `replicas` (partition -> brokers).
    """
    found: dict = {}
    for number, brokers in replicas.items():
        for broker in brokers:
            was, now = before.get((number, broker)), after.get((number, broker))
            found[number, broker] = None if was is None or now is None else now > was
    return found


def _fallen(standings: Sequence[Standing]) -> str:
    """What is said of a min.insync.replicas that is lower at the last moment than at the first; else ""."""
    first, last = standings[0], standings[-1]
    if first.min_isr is None or last.min_isr is None:
        return ""
    if (
        not first.of_brokers
    ):  # a ledger of an older version: by one broker, of which nobody knows who it was
        was, now = first.min_isr, max(last.of_brokers.values(), default=last.min_isr)
        at = ""
    else:
        fell = {
            (first.of_brokers[b], least)
            for b, least in last.of_brokers.items()
            if least < first.of_brokers.get(b, least)
        }
        if not fell:
            return ""
        was, now = min(fell, key=lambda pair: pair[1])
        those = [
            b for b, n in last.of_brokers.items() if (first.of_brokers.get(b), n) == (was, now)
        ]
        at = _at(_some(those, last.of_brokers))
    return f"effective {_MIN_ISR} is {now}{at}, and was {was} {first.moment}" if now < was else ""


def _durability_sentences(open_: dict, moving: Optional[Collection[int]]) -> list:
    """open_: what -> partitions of which that stays open."""
    found = []
    for what, numbers in sorted(open_.items()):
        named = f"partition{'s' * (len(numbers) > 1)} {', '.join(map(str, sorted(numbers)))}"
        if what == _MORE and moving is None:
            found.append(
                f"{named} may be being reassigned, which the job could not ask for, so their replicas are"
                " not judged; allow its principal Describe on the cluster"
            )
        elif what == _MORE:
            found.append(
                f"{named} are being reassigned, so their replicas are not judged; judge again when that"
                " is over"
            )
        elif what == _WERE_MORE:
            found.append(f"{named} had more replicas than planned, as while they are reassigned")
        elif what == _NEARER:
            found.append(
                f"replicas of {named} are catching up, and not in sync yet; judge again when they are"
            )
        elif what == _NOT_ASKED:
            found.append(
                f"replicas of {named} are not in sync, and whether they are catching up could not be asked"
                " for; allow the job's principal Describe on the cluster, or judge again when they are"
            )
        elif what == _OTHERS_MOVED:
            found.append(f"{named} had another number of replicas before the first write")
        else:
            found.append(f"{what} replicas of {named} that are not in sync")
    return found


def out_of_sync(partitions: dict) -> dict:
    """partition -> brokers whose replica is not in sync, of those partitions that have any."""
    behind = {n: sorted(set(p.replicas) - set(p.isr)) for n, p in sorted(partitions.items())}
    return {n: brokers for n, brokers in behind.items() if brokers}


def decide(
    checks: list, counts: dict, unfinished_producers: list, unclear: Sequence[str] = ()
) -> tuple:
    """(verdict, one sentence). A violation decides, then what stayed open; else it is a pass.

    unclear: sentences about what was to be judged besides, and could not be.
    """
    failed = [c for c in checks if c.status == FAIL]
    if failed:
        return FAIL, "; ".join(f"{c.id}: {c.count:,}" for c in failed)
    unclear = [*unfinished(counts, unfinished_producers), *unclear]
    if unclear:
        return INCONCLUSIVE, f"nothing wrong was found, but {'; '.join(unclear)}"
    return PASS, (f"{counts['acked']:,} acknowledged records came back, once, in order, unchanged")


def unfinished(counts: dict, producers: list) -> list:
    """A sentence about what these producers have left open; none if they are none."""
    if not producers:
        return []
    said = f"{counts['unknown']:,} records unknown and {counts['failed']:,} failed"
    if counts.get("aborted_by_errors"):
        said += f" and {counts['aborted_by_errors']:,} in transactions that had to be aborted"
    if counts.get("never_sent"):
        said += f" and {counts['never_sent']:,} never sent"
    return [f"{said} of those to be written"]
