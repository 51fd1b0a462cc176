# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which replicas move where: layout + wish -> moves.

Private to this collection. Pure: no I/O, no clock, no Ansible, and the same answer every time.
Invariants, kept for every input:

* a drained broker holds nothing afterwards, and no partition has a broker twice;
* no partition loses replicas, unless another replication factor was asked for;
* what is on several racks stays on as many, unless a drain takes the rack away;
* a plan that is carried out and computed again is empty.

Counts are made even, with as few moves of replicas as that needs. Which replicas go is then free:
first those of the topics of which the crowded broker has more than its share, so that a new broker
gets a part of every topic and not only the smallest partitions; among those the smallest.
"""

from __future__ import annotations

import bisect
import collections
import heapq
import math
from dataclasses import dataclass, field
from typing import (
    Collection,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    partition_name,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_size
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted, some

# (topic, partition)
# A few names are enough for a message.
EXAMPLES = 5


@dataclass(frozen=True)
class Layout:
    """Where replicas are. `replicas` maps partitions to broker ids, the preferred leader first.

    `brokers` are the live ones; `racks` maps ids to racks; `sizes` partitions to bytes of one replica;
    `in_sync` partitions to their in-sync replicas. What is missing in the last two is not known.
    """

    replicas: Mapping[Key, Tuple[int, ...]]
    brokers: Tuple[int, ...]
    racks: Mapping[int, Optional[str]] = field(default_factory=dict)
    sizes: Mapping[Key, int] = field(default_factory=dict)
    in_sync: Mapping[Key, Tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Wish:
    """What is asked for.

    `drain`: brokers that shall hold nothing; `spread`: even counts on all brokers; `onto`: the only
    brokers that may get replicas, empty for all; `replication_factor`: of every partition, None: as it
    is; `topics`: the only topics that may change, and whose replicas are counted, None for all.
    """

    drain: FrozenSet[int] = frozenset()
    spread: bool = False
    onto: FrozenSet[int] = frozenset()
    replication_factor: Optional[int] = None
    topics: Optional[FrozenSet[str]] = None


@dataclass(frozen=True)
class Move:
    """One partition's replicas, before and after. `size` is bytes of one replica, None if unknown."""

    key: Key
    before: Tuple[int, ...]
    after: Tuple[int, ...]
    size: Optional[int] = None

    @property
    def adding(self) -> Tuple[int, ...]:
        """Brokers that get a copy."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def removing(self) -> Tuple[int, ...]:
        """Brokers that lose their replica."""
        return tuple(broker for broker in self.before if broker not in self.after)

    @property
    def bytes(self) -> int:
        """Bytes that are copied; 0 if the size is unknown."""
        return (self.size or 0) * len(self.adding)


@dataclass(frozen=True)
class Moves:
    """All moves, sorted by topic and partition; nothing moves where there is a refusal."""

    moves: Tuple[Move, ...] = ()
    refusals: Tuple[Problem, ...] = ()
    warnings: Tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes that are copied between brokers."""
        return sum(move.bytes for move in self.moves)

    @property
    def copies(self) -> int:
        """Number of replicas that are copied."""
        return sum(len(move.adding) for move in self.moves)

    def summary(self) -> str:
        """One line for people: what moves, and how much."""
        if not self.moves:
            return "nothing to move"
        per_target: Dict[int, int] = collections.Counter()
        for move in self.moves:
            for broker in move.adding:
                per_target[broker] += move.size or 0
        targets = ", ".join(
            f"{approximate_size(size)} to broker {broker}"
            for broker, size in sorted(per_target.items())
        )
        unknown = sum(1 for move in self.moves if move.adding and move.size is None)
        parts = [
            f"{counted(len(self.moves), 'partition')} change, {counted(self.copies, 'replica')} are "
            f"copied, {approximate_size(self.bytes)} in all"
        ]
        parts += [f"({targets})"] if targets else []
        parts += [f"the sizes of {counted(unknown, 'partition')} are not known"] if unknown else []
        return " ".join(parts)


def plan_moves(layout: Layout, wish: Wish) -> Moves:
    """The moves that turn the layout into what is asked for, or the refusals."""
    refusals = _refusals(layout, wish)
    if refusals:
        return Moves(refusals=tuple(refusals))
    placement = _Placement(layout, wish)
    placement.force()
    placement.balance(only_new=True)
    if wish.spread:
        placement.balance(only_new=False)
    placement.order()
    return Moves(placement.moves(), (), tuple(_warnings(layout, wish)))


def carried_out(layout: Layout, moves: Iterable[Move]) -> Layout:
    """The layout after moves."""
    replicas = dict(layout.replicas)
    for move in moves:
        replicas[move.key] = move.after
    return Layout(replicas, layout.brokers, layout.racks, layout.sizes)


def useful(before: Layout, after: Layout, wish: Wish) -> bool:
    """Whether moves that are under way, from `before` to `after`, bring the wish nearer."""
    remaining, whole = plan_moves(after, wish), plan_moves(before, wish)
    if remaining.refusals or whole.refusals:
        return False
    if whole.copies or remaining.copies:
        return remaining.copies < whole.copies
    return len(remaining.moves) <= len(whole.moves)


# ------------------------------------------------------------------ what cannot be


def _refusals(layout: Layout, wish: Wish) -> List[Problem]:
    alive = set(layout.brokers)
    holders = {broker for replicas in layout.replicas.values() for broker in replicas}
    known = ", ".join(map(str, sorted(alive | holders))) or "none"
    refusals = []
    for setting, ids in (("drain", wish.drain), ("onto", wish.onto)):
        unknown = sorted(ids - alive - holders)
        if unknown:
            refusals.append(
                Problem(
                    "reassignment.unknown_broker",
                    "no such broker is registered, and none of this id holds a replica",
                    f"name brokers of this cluster: {known}",
                    (f"broker {', '.join(map(str, unknown))}",),
                    setting,
                    ",".join(map(str, sorted(ids))),
                )
            )
    both = sorted(wish.drain & wish.onto)
    if both:
        refusals.append(
            Problem(
                "reassignment.contradiction",
                f"broker {', '.join(map(str, both))} is to be emptied and filled",
                "name it in one of both",
                (),
                "onto",
                ",".join(map(str, sorted(wish.onto))),
            )
        )
    dead = sorted((wish.onto & holders) - alive - set(both))
    if dead:
        refusals.append(
            Problem(
                "reassignment.dead_target",
                "it is not alive, so nothing can be copied to it",
                "start it, see playbooks/status.yml, or name others",
                (f"broker {', '.join(map(str, dead))}",),
                "onto",
                ",".join(map(str, sorted(wish.onto))),
            )
        )
    return refusals or _nowhere(layout, wish)


def _nowhere(layout: Layout, wish: Wish) -> List[Problem]:
    """Partitions that would have more replicas than brokers that may hold them."""
    targets = set(wish.onto or layout.brokers) - wish.drain
    lacking: Dict[int, List[Key]] = {}
    for key in sorted(layout.replicas):
        if not _chosen(key, wish):
            continue
        replicas = layout.replicas[key]
        wanted = wish.replication_factor or len(replicas)
        if wanted > len(set(replicas) - wish.drain | targets):
            lacking.setdefault(wanted, []).append(key)
    problems = []
    for wanted, keys in sorted(lacking.items()):
        setting = "drain" if wish.drain else "replication_factor"
        value = ",".join(map(str, sorted(wish.drain))) if wish.drain else str(wanted)
        problems.append(
            Problem(
                "reassignment.nowhere_to_go",
                f"{counted(len(keys), 'partition')} with {counted(wanted, 'replica')} each would have "
                f"{counted(len(targets), 'broker')} to go to: {_some_topics(keys)}",
                "add a broker first (playbooks/scale_out.yml), or lower the replication factor of "
                "these topics (kafka_reassignment with topics and replication_factor)",
                (),
                setting,
                value,
            )
        )
    return problems


def _warnings(layout: Layout, wish: Wish) -> List[str]:
    alive = set(layout.brokers)
    warnings = []
    missing = sorted(
        {broker for replicas in layout.replicas.values() for broker in replicas}
        - alive
        - wish.drain
    )
    if missing and wish.spread:
        warnings.append(
            f"broker {', '.join(map(str, missing))} holds replicas and is not alive: they stay "
            "where they are, and are not counted"
        )
    racks = [layout.racks.get(broker) for broker in sorted(alive)]
    if any(racks) and not all(racks):
        without = [broker for broker in sorted(alive) if not layout.racks.get(broker)]
        warnings.append(
            f"broker {', '.join(map(str, without))} has no rack although others do: racks are ignored"
        )
    return warnings


# ------------------------------------------------------------------ the placement


class _Placement:
    """Replicas of all partitions while they are being arranged. Partitions are known by number."""

    def __init__(self, layout: Layout, wish: Wish):
        self.wish = wish
        self.keys = sorted(layout.replicas)
        self.before = [layout.replicas[key] for key in self.keys]
        self.now = [list(replicas) for replicas in self.before]
        self.sizes = [layout.sizes.get(key) for key in self.keys]
        self.in_sync = [layout.in_sync.get(key) for key in self.keys]
        self.chosen = [_chosen(key, wish) for key in self.keys]
        self.members = sorted(set(layout.brokers) - wish.drain)
        self.targets = sorted(set(wish.onto or layout.brokers) - wish.drain)
        aware = all(layout.racks.get(broker) for broker in layout.brokers)
        # Without racks each broker is one.
        self.rack = {
            broker: (layout.racks.get(broker) if aware else None) or f"\0{broker}"
            for broker in {*layout.brokers, *(b for replicas in self.before for b in replicas)}
        }
        self.held: Dict[int, int] = dict.fromkeys(self.rack, 0)
        self.of_topic: Dict[str, Dict[int, int]] = {}
        # How many replicas a topic has; right while replicas are exchanged, not while they are added.
        self.of_topics: Dict[str, int] = {}
        for number, replicas in enumerate(self.now):
            # What may not change is not counted either: the chosen topics are to be even.
            if self.chosen[number]:
                for broker in replicas:
                    self._note(number, broker, 1)

    def _note(self, number: int, broker: int, more: int) -> None:
        self.held[broker] += more
        topic = self.of_topic.setdefault(self.keys[number][0], {})
        topic[broker] = topic.get(broker, 0) + more

    def _spread(self, replicas: Collection[int]) -> int:
        return len({self.rack[broker] for broker in replicas})

    def moves(self) -> Tuple[Move, ...]:
        """What differs."""
        return tuple(
            Move(key, before, tuple(now), size)
            for key, before, now, size in zip(self.keys, self.before, self.now, self.sizes)
            if before != tuple(now)
        )

    # ---------------------------------------------------------------- what must change

    def force(self) -> None:
        """Drain, and bring every chosen partition to its number of replicas."""
        queue = sorted((self.held[broker], broker) for broker in self.targets)
        for number, replicas in enumerate(self.now):
            if not self.chosen[number]:
                continue
            wanted = self.wish.replication_factor or len(replicas)
            while len(replicas) > wanted:
                self._drop(number, queue)
            for place, broker in enumerate(replicas):
                if broker in self.wish.drain:
                    others = replicas[:place] + replicas[place + 1 :]
                    self._put(number, place, self._best(others, queue), queue)
            while len(replicas) < wanted:
                self._put(number, None, self._best(replicas, queue), queue)

    def _best(self, replicas: Sequence[int], queue: List[Tuple[int, int]]) -> int:
        """The broker for one more replica: another rack if there is one, then who holds least."""
        taken = {self.rack[broker] for broker in replicas if broker not in self.wish.drain}
        fallback = None
        for _held, broker in queue:
            if broker in replicas:
                continue
            if self.rack[broker] not in taken:
                return broker
            fallback = broker if fallback is None else fallback
        if fallback is None:
            raise ValueError("no broker is left for a replica, which _nowhere should have refused")
        return fallback

    def _put(
        self, number: int, place: Optional[int], broker: int, queue: List[Tuple[int, int]]
    ) -> None:
        replicas = self.now[number]
        if place is None:
            replicas.append(broker)
        else:
            self._requeue(number, replicas[place], -1, queue)
            replicas[place] = broker
        self._requeue(number, broker, 1, queue)

    def _drop(self, number: int, queue: List[Tuple[int, int]]) -> None:
        replicas = self.now[number]
        in_sync = self.in_sync[number]

        def cost(place: int) -> Tuple[bool, bool, bool, int, int, int]:
            broker = replicas[place]
            others = replicas[:place] + replicas[place + 1 :]
            return (
                broker not in self.wish.drain,
                broker in self.members,
                in_sync is None or broker in in_sync,
                -self._spread(others),
                -self.held[broker],
                -place,
            )

        place = min(range(len(replicas)), key=cost)
        self._requeue(number, replicas.pop(place), -1, queue)

    def _requeue(self, number: int, broker: int, more: int, queue: List[Tuple[int, int]]) -> None:
        old = (self.held[broker], broker)
        self._note(number, broker, more)
        at = bisect.bisect_left(queue, old)
        if at < len(queue) and queue[at] == old:
            del queue[at]
            bisect.insort(queue, (self.held[broker], broker))

    # ---------------------------------------------------------------- even counts

    def balance(self, only_new: bool) -> None:
        """Even out how many replicas the brokers hold; `only_new`: by replicas that move anyway.

        Always from a broker that holds most to one that holds at least two less. Without racks such
        a move always exists, and no replica moves that could have stayed: a source is above the
        average, or the rest could not be within one.
        """
        if not self.targets:
            return
        self.of_topics = {topic: sum(shares.values()) for topic, shares in self.of_topic.items()}
        where = _Where(self, only_new)
        stuck: Set[int] = set()
        progress = False
        while True:
            least = min(self.held[broker] for broker in self.targets)
            crowded = [
                (-self.held[broker], broker)
                for broker in self.members
                if broker not in stuck and self.held[broker] >= least + 2
            ]
            if not crowded:
                if not (stuck and progress):
                    return
                # What was not possible then may be now.
                where, stuck, progress = _Where(self, only_new), set(), False
                continue
            source = min(crowded)[1]
            found = where.next_move(source)
            if found is None:
                stuck.add(source)
                continue
            number, target = found
            progress = True
            self.now[number][self.now[number].index(source)] = target
            self._note(number, source, -1)
            self._note(number, target, 1)
            where.moved(number, target)

    # ---------------------------------------------------------------- preferred leaders

    def order(self) -> None:
        """Even out how many partitions prefer each broker as leader, by the order of replicas.

        Costs no bytes. In a spread any chosen partition may be reordered, else only those that
        change anyway.
        """
        leads: Dict[int, int] = dict.fromkeys(self.rack, 0)
        for number, replicas in enumerate(self.now):
            if replicas and self.chosen[number]:
                leads[replicas[0]] += 1
        members = set(self.members)
        # (leader, other replica) to partitions; those that change anyway come last and go first.
        pairs: Dict[Tuple[int, int], List[int]] = {}
        free = [
            number
            for number, replicas in enumerate(self.now)
            if self.chosen[number] and len(replicas) > 1 and replicas[0] in members
        ]
        changed = [number for number in free if tuple(self.now[number]) != self.before[number]]
        if self.wish.spread:
            same = [number for number in free if tuple(self.now[number]) == self.before[number]]
            self._pair(reversed(same), pairs, members)
        self._pair(reversed(changed), pairs, members)
        stuck: Set[int] = set()
        progress = False
        while True:
            crowded = [(-leads[b], b) for b in self.members if b not in stuck]
            if not crowded:
                if not progress:
                    return
                stuck, progress = set(), False
                continue
            source = min(crowded)[1]
            path = self._path(source, leads, pairs)
            if path is None:
                stuck.add(source)
                continue
            progress = True
            for giver, taker in zip(path, path[1:]):
                led = self._led(giver, taker, pairs)
                if led is None:
                    raise ValueError("a path over a pair of brokers that shares no partition")
                replicas = self.now[led]
                place = replicas.index(taker)
                replicas[0], replicas[place] = replicas[place], replicas[0]
                self._pair([led], pairs, members)
            leads[path[0]] -= 1
            leads[path[-1]] += 1

    def _pair(
        self, numbers: Iterable[int], pairs: Dict[Tuple[int, int], List[int]], members: Set[int]
    ) -> None:
        for number in numbers:
            leader, *others = self.now[number]
            for other in others:
                if other in members:
                    pairs.setdefault((leader, other), []).append(number)

    def _led(
        self, giver: int, taker: int, pairs: Dict[Tuple[int, int], List[int]]
    ) -> Optional[int]:
        """A partition that `giver` leads and `taker` could, None if there is none."""
        numbers = pairs.get((giver, taker), [])
        while numbers:
            replicas = self.now[numbers[-1]]
            if replicas[0] == giver and taker in replicas:
                return numbers[-1]
            numbers.pop()
        return None

    def _path(
        self, source: int, leads: Mapping[int, int], pairs: Dict[Tuple[int, int], List[int]]
    ) -> Optional[List[int]]:
        """The shortest way from a broker to one that leads at least two less; None if none."""
        if leads[source] < min(leads[broker] for broker in self.members) + 2:
            return None
        came: Dict[int, int] = {source: source}
        queue = collections.deque([source])
        order = sorted(self.members, key=lambda broker: (leads[broker], broker))
        while queue:
            giver = queue.popleft()
            for taker in order:
                if taker in came or self._led(giver, taker, pairs) is None:
                    continue
                came[taker] = giver
                if leads[taker] + 2 <= leads[source]:
                    path = [taker]
                    while path[-1] != source:
                        path.append(came[path[-1]])
                    return path[::-1]
                queue.append(taker)
        return None


class _Where:
    """Answers which replica of a crowded broker goes where next."""

    def __init__(self, placement: _Placement, only_new: bool):
        self.placement = placement
        self.only_new = only_new
        self.average = sum(placement.held[b] for b in placement.members) // len(placement.members)
        self.on: Dict[int, List[int]] = {broker: [] for broker in placement.members}
        for number, replicas in enumerate(placement.now):
            if placement.chosen[number]:
                for broker in replicas:
                    if broker in self.on and self._may_move(number, broker):
                        self.on[broker].append(number)
        # First to those below the average, then to those at it, who end one above. Whoever else took
        # one would have to give something away again; only racks leave no other choice.
        self.rounds: Tuple[float, ...] = (self.average - 1, self.average, math.inf)
        # (source, how many replicas a target holds at most) to (heap of (-excess, bytes, topic), topic
        # to its partitions, the next one last)
        self.queues: Dict[
            Tuple[int, float], Tuple[List[Tuple[int, int, str]], Dict[str, List[int]]]
        ] = {}

    def _may_move(self, number: int, broker: int) -> bool:
        return not self.only_new or broker not in self.placement.before[number]

    def moved(self, number: int, target: int) -> None:
        """Note that `target` holds this partition now."""
        if self._may_move(number, target):
            self.on[target].append(number)
            for most in self.rounds:
                self.queues.pop((target, most), None)

    def next_move(self, source: int) -> Optional[Tuple[int, int]]:
        """(partition, target) for a replica of `source`, None if there is none."""
        for most in self.rounds:
            if (source, most) not in self.queues:
                self.queues[(source, most)] = self._queue(source)
            found = self._from_queue(source, most)
            if found is not None:
                return found
        return None

    def _queue(self, source: int) -> Tuple[List[Tuple[int, int, str]], Dict[str, List[int]]]:
        topics: Dict[str, List[int]] = {}
        for number in self.on[source]:
            if source in self.placement.now[number]:
                topics.setdefault(self.placement.keys[number][0], []).append(number)
        for numbers in topics.values():
            numbers.sort(key=self._cost, reverse=True)
        heap = [self._entry(source, topic, numbers) for topic, numbers in topics.items()]
        heapq.heapify(heap)
        return heap, topics

    def _cost(self, number: int) -> Tuple[int, int]:
        """The smallest first. A size that is not known counts as nothing."""
        return self.placement.sizes[number] or 0, number

    def _entry(self, source: int, topic: str, numbers: List[int]) -> Tuple[int, int, str]:
        shares = self.placement.of_topic[topic]
        excess = shares[source] * len(self.placement.members) - self.placement.of_topics[topic]
        return -excess, self.placement.sizes[numbers[-1]] or 0, topic

    def _from_queue(self, source: int, most: float) -> Optional[Tuple[int, int]]:
        heap, topics = self.queues[(source, most)]
        limit = min(most, self.placement.held[source] - 2)
        targets = [
            broker for broker in self.placement.targets if self.placement.held[broker] <= limit
        ]
        while heap and targets:
            topic = heapq.heappop(heap)[2]
            numbers = topics[topic]
            while numbers:
                number = numbers.pop()
                target = self._target(source, number, targets)
                if target is not None:
                    if numbers:
                        excess, size, topic = self._entry(source, topic, numbers)
                        # one less in a moment
                        excess += len(self.placement.members)
                        heapq.heappush(heap, (excess, size, topic))
                    return number, target
        return None

    def _target(self, source: int, number: int, targets: Sequence[int]) -> Optional[int]:
        """Which of the targets takes it: the one with the least of the topic, then of all."""
        placement = self.placement
        replicas = placement.now[number]
        if source not in replicas:
            return None
        shares = placement.of_topic[placement.keys[number][0]]
        racks = {placement.rack[broker] for broker in replicas if broker != source}
        # A copy in a rack that has one already: only if the source's rack has another, too.
        same_rack = placement.rack[source] in racks
        best = None
        for broker in targets:
            if broker in replicas or not (same_rack or placement.rack[broker] not in racks):
                continue
            rank = (shares.get(broker, 0), placement.held[broker], broker)
            if best is None or rank < best:
                best = rank
        return best[2] if best else None


def _chosen(key: Key, wish: Wish) -> bool:
    return wish.topics is None or key[0] in wish.topics


def some_keys(keys: Sequence[Key]) -> str:
    """A few partitions as text."""
    return some([partition_name(*key) for key in keys[:EXAMPLES]], EXAMPLES, len(keys))


def _some_topics(keys: Sequence[Key]) -> str:
    """A few topics, each with the number of its partitions, as text."""
    topics = collections.Counter(topic for topic, _partition in keys)
    told = [f"{topic} ({count})" for topic, count in sorted(topics.items())]
    return ", ".join(told[:EXAMPLES]) + (
        f" and {len(told) - EXAMPLES} more topics" if len(told) > EXAMPLES else ""
    )
