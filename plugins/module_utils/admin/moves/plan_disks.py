# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which replicas move between the log directories of their broker: directories + wish -> moves.

Private to this collection. Pure: no I/O, no clock, no Ansible, and the same answer every time.
Invariants, kept for every input:

* no replica leaves its broker, and none is lost;
* the fullest and the emptiest directory are never further apart afterwards, unless one is emptied;
* a directory that is offline neither gets nor gives anything;
* a plan that is carried out and computed again is empty.

A directory's share of the bytes is that of its disk in all disks of the broker, or the same for each
where the broker does not tell. Nothing moves while every directory is within the tolerance of its
share. Where one is not, replicas move until all are within half of it: otherwise what producers
write would bring the edge back with the next run.
"""

from __future__ import annotations

import bisect
import posixpath
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    SAME_DISK_BYTES,
    Directory,
    Key,
    Place,
    UnderWay,
    by_disk,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import some_keys
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_size

TOLERANCE_PERCENT = 10


@dataclass(frozen=True)
class DiskWish:
    """What is asked for.

    `drain`: directories that shall hold nothing, on whichever of the brokers have them; without any,
    the directories of each broker are evened out, within `tolerance` percent of their share.
    """

    drain: FrozenSet[str] = frozenset()
    tolerance: int = TOLERANCE_PERCENT


@dataclass(frozen=True)
class DiskMove:
    """One replica of a broker, from one of its directories to another."""

    broker: int
    key: Key
    source: str
    target: str
    size: int

    @property
    def place(self) -> Place:
        """Which replica of which broker."""
        return self.broker, self.key


@dataclass(frozen=True)
class DiskMoves:
    """All moves, sorted by broker and partition; nothing moves where there is a refusal."""

    moves: Tuple[DiskMove, ...] = ()
    refusals: Tuple[Problem, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes that are copied between directories."""
        return sum(move.size for move in self.moves)

    @property
    def copies(self) -> int:
        """Number of replicas that are copied."""
        return len(self.moves)


# Broker to its directories, with what is under way at its target already.
Brokers = Mapping[int, Sequence[Directory]]


def plan_disks(
    brokers: Brokers, wish: DiskWish, under_way: Optional[Mapping[Place, UnderWay]] = None
) -> DiskMoves:
    """The moves that turn the directories into what is asked for, or the refusals."""
    under_way = under_way or {}
    wish = replace(wish, drain=frozenset(posixpath.normpath(path) for path in wish.drain))
    refusals = _refusals(brokers, wish, under_way)
    if refusals:
        return DiskMoves(refusals=tuple(refusals))
    moves: List[DiskMove] = []
    for broker, directories in sorted(brokers.items()):
        # What moves already is not sent elsewhere.
        kept = frozenset(key for at, key in under_way if at == broker)
        coming = _coming(broker, under_way)
        disks = _Disks(directories, kept, coming)
        if wish.drain:
            disks.drain(wish.drain)
        else:
            disks.spread(Fraction(wish.tolerance, 100))
        moves += [DiskMove(broker, *move) for move in disks.moves()]
    refusals = _without_room(brokers, moves, under_way)
    return DiskMoves(() if refusals else tuple(moves), tuple(refusals))


def filled_since(
    moves: Sequence[DiskMove], brokers: Brokers, under_way: Mapping[Place, UnderWay]
) -> Set[Tuple[int, str]]:
    """(broker, directory) of those of these moves that have no room any more, as the directories are now.

    Producers, and replicas that come from other brokers, fill disks while a plan is carried out.
    """
    filled = set()
    for broker, directories in brokers.items():
        coming = _coming(broker, under_way)
        for path in {move.target for move in moves if move.broker == broker}:
            new = sum(move.size for move in moves if (move.broker, move.target) == (broker, path))
            rooms = [each.room for each in directories if each.path == path]
            if any(room is not None and coming.get(path, 0) + new > room for room in rooms):
                filled.add((broker, path))
    return filled


def carried_out(brokers: Brokers, moves: Iterable[DiskMove]) -> Dict[int, Tuple[Directory, ...]]:
    """The directories after moves."""
    where = {move.place: move for move in moves}
    after = {}
    for broker, directories in brokers.items():
        found: Dict[str, Dict[Key, int]] = {each.path: {} for each in directories}
        for each in directories:
            for key, size in each.replicas.items():
                move = where.get((broker, key))
                found[move.target if move else each.path][key] = size
        after[broker] = tuple(replace(each, replicas=found[each.path]) for each in directories)
    return after


def told(brokers: Brokers, moves: DiskMoves) -> str:
    """One line for people: what moves, and what the directories hold before and after."""
    if not moves.moves:
        return "nothing to move"
    after = carried_out(brokers, moves.moves)
    parts = []
    for broker in sorted({move.broker for move in moves.moves}):
        changes = [
            f"{old.path} {approximate_size(old.bytes)} -> {approximate_size(new.bytes)}"
            for old, new in zip(brokers[broker], after[broker])
            if old.replicas != new.replicas
        ]
        parts.append(f"broker {broker}: {', '.join(changes)}")
    count = len(moves.moves)
    return (
        f"{count} replica{' is' if count == 1 else 's are'} copied between directories, "
        f"{approximate_size(moves.bytes)} in all ({'; '.join(parts)})"
    )


# ------------------------------------------------------------------ what cannot be


def _drained(directory: Directory, wish: DiskWish) -> bool:
    return posixpath.normpath(directory.path) in wish.drain


def _refusals(
    brokers: Brokers, wish: DiskWish, under_way: Mapping[Place, UnderWay]
) -> List[Problem]:
    known = sorted({each.path for directories in brokers.values() for each in directories})
    unknown = sorted(wish.drain - {posixpath.normpath(path) for path in known})
    if unknown:
        return [
            Problem(
                "reassignment.unknown_directory",
                "none of these brokers has such a log directory",
                f"name one of those that they have: {', '.join(known) or 'none'}",
                (),
                "drain_directories",
                ",".join(unknown),
            )
        ]
    single = [broker for broker, directories in sorted(brokers.items()) if len(directories) < 2]
    if brokers and len(single) == len(brokers):
        return [
            Problem(
                "reassignment.one_directory",
                "it has one log directory, so nothing can move to another one",
                "add one to kafka_log_dirs and restart the broker (site.yml), or move replicas to "
                "other brokers",
                (_brokers(single),),
                "disks",
                ",".join(map(str, sorted(brokers))),
            )
        ]
    refusals = []
    for broker, directories in sorted(brokers.items()):
        offline = [each.path for each in directories if not each.online]
        if offline:
            refusals.append(
                Problem(
                    "reassignment.offline_directory",
                    f"{', '.join(offline)} is offline, and Kafka moves nothing between the directories "
                    "of such a broker",
                    "repair the disk and restart the broker, or replace it "
                    "(playbooks/replace_broker.yml)",
                    (_brokers([broker]),),
                )
            )
        elif wish.drain and all(_drained(each, wish) for each in directories):
            refusals.append(
                Problem(
                    "reassignment.nowhere_to_go",
                    "all of its log directories are to be emptied",
                    "leave one out, or empty the broker (playbooks/scale_in.yml)",
                    (_brokers([broker]),),
                    "drain_directories",
                    ",".join(sorted(wish.drain)),
                )
            )
    back = sorted(
        key
        for (_broker, key), move in under_way.items()
        if posixpath.normpath(move.target) in wish.drain
    )
    if back and not refusals:
        refusals.append(
            Problem(
                "reassignment.running",
                f"a move is under way into a directory that is to be emptied: {some_keys(back)}",
                "wait until it is over, or end it with playbooks/spread_disks.yml -e cancel=true, which is "
                "kafka_reassignment with state: cancelled and the same disks",
            )
        )
    return refusals


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {', '.join(map(str, ids))}"


def _coming(broker: int, under_way: Mapping[Place, UnderWay]) -> Dict[str, int]:
    """Directory to bytes that moves under way still bring."""
    coming: Dict[str, int] = {}
    for (at, _key), move in under_way.items():
        if at == broker:
            coming[move.target] = coming.get(move.target, 0) + move.left
    return coming


def _without_room(
    brokers: Brokers, moves: Sequence[DiskMove], under_way: Mapping[Place, UnderWay]
) -> List[Problem]:
    """Directories that would get more than their disk has room for."""
    refusals = []
    for broker, directories in sorted(brokers.items()):
        coming = _coming(broker, under_way)
        for move in moves:
            if move.broker == broker:
                coming[move.target] = coming.get(move.target, 0) + move.size
        for each in directories:
            wanted, room = coming.get(each.path, 0), each.room
            if room is not None and wanted > max(0, room):
                refusals.append(
                    Problem(
                        "reassignment.no_room",
                        f"{each.path} would get {approximate_size(wanted)}, and its disk has "
                        f"{approximate_size(each.usable or 0)} left, of which some must stay free",
                        "make room on that disk, shorten the retention of topics, or add a directory",
                        (_brokers([broker]),),
                    )
                )
        if not any(_brokers([broker]) in each.subjects for each in refusals):
            refusals += _without_room_together(broker, directories, moves, under_way)
    return refusals


def _without_room_together(
    broker: int,
    directories: Sequence[Directory],
    moves: Sequence[DiskMove],
    under_way: Mapping[Place, UnderWay],
) -> List[Problem]:
    """Directories of one disk that have room each, and not for what comes to all of them from other disks."""
    coming = [
        (each.source, each.target, each.left)
        for place, each in under_way.items()
        if place[0] == broker
    ]
    coming += [(each.source, each.target, each.size) for each in moves if each.broker == broker]
    refusals = []
    for group in by_disk([(broker, each) for each in directories], {}):
        paths = [each.path for _broker, each in group]
        known = all(each.disk for _broker, each in group)
        # Blank disks of one size look like one disk; beside one that holds something they do not.
        held = (
            size
            for _broker, each in group
            for key, size in each.replicas.items()
            if (broker, key) not in under_way
        )
        room = min((each.room for _broker, each in group if each.room is not None), default=None)
        wanted = sum(
            size for source, target, size in coming if target in paths and source not in paths
        )
        judged = len(group) > 1 and (known or sum(held) > SAME_DISK_BYTES)
        if not judged or room is None or wanted <= max(0, room):
            continue
        refusals.append(
            Problem(
                "reassignment.no_room",
                f"{', '.join(paths)} would get {approximate_size(wanted)} together, and they"
                f" {'are' if known else 'seem to be'} on one disk, which has"
                f" {approximate_size(group[0][1].usable or 0)} left, of which some must stay free",
                "make room on that disk, shorten the retention of topics, or add a directory on another one",
                (_brokers([broker]),),
            )
        )
    return refusals


# ------------------------------------------------------------------ one broker


class _Disks:
    """The directories of one broker while replicas are being arranged; known by number."""

    def __init__(
        self, directories: Sequence[Directory], kept: FrozenSet[Key], coming: Mapping[str, int]
    ):
        ordered = sorted(directories, key=lambda each: each.path)
        self.paths = [each.path for each in ordered]
        self.online = [number for number, each in enumerate(ordered) if each.online]
        self.room = [
            None if each.room is None else each.room - coming.get(each.path, 0) for each in ordered
        ]
        totals = [each.total or 0 for each in ordered]
        known = all(totals[number] for number in self.online)
        self.weights = totals if known else [1] * len(ordered)
        self.held = [each.bytes for each in ordered]
        # (bytes, partition) of those that may move, the smallest first
        self.free = [
            sorted((size, key) for key, size in each.replicas.items() if key not in kept)
            for each in ordered
        ]
        self.before = {
            key: (number, size) for number, each in enumerate(self.free) for size, key in each
        }

    def moves(self) -> List[Tuple[Key, str, str, int]]:
        """(partition, source, target, bytes) of what differs, sorted."""
        found = []
        for number, each in enumerate(self.free):
            for size, key in each:
                source = self.before[key][0]
                if source != number:
                    found.append((key, self.paths[source], self.paths[number], size))
        return sorted(found)

    def _move(self, source: int, target: int, entry: Tuple[int, Key]) -> None:
        del self.free[source][bisect.bisect_left(self.free[source], entry)]
        bisect.insort(self.free[target], entry)
        self.held[source] -= entry[0]
        self.held[target] += entry[0]

    # ---------------------------------------------------------------- empty some

    def drain(self, drained: FrozenSet[str]) -> None:
        """Everything out of some directories, the largest first, each to where it fills least."""
        leaving = [n for n in self.online if posixpath.normpath(self.paths[n]) in drained]
        targets = [number for number in self.online if number not in leaving]
        entries = [(entry, source) for source in leaving for entry in self.free[source]]
        for entry, source in sorted(entries, key=lambda each: (-each[0][0], each[0][1])):
            target = min(targets, key=lambda number: self._rank(number, entry[0]))
            self._move(source, target, entry)
            room = self.room[target]
            self.room[target] = None if room is None else room - entry[0]

    def _rank(self, number: int, size: int) -> Tuple[bool, Fraction, int]:
        room = self.room[number]
        full = room is not None and size > room
        return full, Fraction(self.held[number] + size, self.weights[number]), number

    # ---------------------------------------------------------------- even out

    def spread(self, tolerance: Fraction) -> None:
        """Even out, if some directory is further from its share than the tolerance.

        Always from a directory to one that is less full, and never so much that the two only change
        places: the distance between the fullest and the emptiest cannot grow, and the sum of
        squares falls with each move, so this ends. What is decided depends on nothing but what the
        directories hold now: where it ends, a second plan begins and finds nothing.
        """
        weight = sum(self.weights[number] for number in self.online)
        bytes_in_all = sum(self.held[number] for number in self.online)
        if not weight or not bytes_in_all:
            return
        share = {n: Fraction(bytes_in_all * self.weights[n], weight) for n in self.online}
        if all(abs(self.held[n] - share[n]) <= tolerance * share[n] for n in self.online):
            return
        while True:
            step = self._step(share, tolerance / 2)
            if step is None:
                return
            self._move(*step)

    def _step(
        self, share: Mapping[int, Fraction], goal: Fraction
    ) -> Optional[Tuple[int, int, Tuple[int, Key]]]:
        """The next move, from the fullest to the emptiest where that is possible; None at the end."""
        level = {n: Fraction(self.held[n], self.weights[n]) for n in self.online}
        fullest = sorted(self.online, key=lambda number: (-level[number], number))
        emptiest = sorted(self.online, key=lambda number: (level[number], number))
        for source in fullest:
            for target in emptiest:
                above = self.held[source] - share[source]
                below = share[target] - self.held[target]
                needed = max(above - goal * share[source], below - goal * share[target])
                if needed <= 0 or level[source] <= level[target]:
                    continue
                most = (level[source] - level[target]) * min(
                    self.weights[source], self.weights[target]
                )
                entry = self._fitting(source, needed, min(above, below), most)
                if entry is not None:
                    return source, target, entry
        return None

    def _fitting(
        self, source: int, needed: Fraction, fair: Fraction, most: Fraction
    ) -> Optional[Tuple[int, Key]]:
        """The replica that moves.

        The smallest that is enough, if it takes neither directory beyond its share. Else the largest
        that does not. Else the smallest one, which overshoots least, if it is below `most`, with
        which the two would change places.
        """
        free = self.free[source]
        if needed <= fair:
            at = _first(free, needed)
            if at < len(free) and free[at][0] <= fair:
                return free[at]
        at = _first(free, fair)
        if at < len(free) and free[at][0] == fair and fair > 0:
            return free[at]
        if at and free[at - 1][0] > 0:
            # Of those of this size the first by name.
            return free[_first(free, Fraction(free[at - 1][0]))]
        at = _first(free, Fraction(1))
        at = max(at, _first(free, fair))
        return free[at] if at < len(free) and free[at][0] < most else None


def _first(entries: Sequence[Tuple[int, Key]], size: Fraction) -> int:
    """The number of the first entry of at least so many bytes."""
    return bisect.bisect_left(entries, (size, ("", -1)))
