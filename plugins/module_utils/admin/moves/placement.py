# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replicas while they are being arranged: drained, spread, even on every broker.

Private to this collection. Pure, and the same answer every time. Counts are made even, with as few moves
of replicas as that needs. Which replicas go is then free: first those of the topics of which the crowded
broker has more than its share, so that a new broker gets a part of every topic and not only the smallest
partitions; among those the smallest.
"""

from __future__ import annotations

import bisect
import collections
import heapq
import math
from typing import Collection, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import (
    Layout,
    Move,
    Wish,
)


class Placement:
    """Replicas of all partitions while they are being arranged. Partitions are known by number."""

    def __init__(self, layout: Layout, wish: Wish):
        self.wish = wish
        self.keys = sorted(layout.replicas)
        self.before = [layout.replicas[key] for key in self.keys]
        self.now = [list(replicas) for replicas in self.before]
        self.sizes = [layout.sizes.get(key) for key in self.keys]
        self.in_sync = [layout.in_sync.get(key) for key in self.keys]
        self.chosen = [is_chosen(key, wish) for key in self.keys]
        # A move ends when all replicas of its partition are in sync: not before these brokers are back.
        away = {broker for replicas in self.before for broker in replicas} - set(layout.brokers)
        self.away = away - wish.drain
        self.members = sorted(set(layout.brokers) - wish.drain)
        self.targets = sorted(set(wish.onto or layout.brokers) - wish.drain)
        aware = not layout.without_rack(self.members)
        # Without racks each broker is one. Those that are emptied need none.
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

    def __init__(self, placement: Placement, only_new: bool):
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
        if self.only_new:
            return broker not in self.placement.before[number]
        return self.placement.away.isdisjoint(self.placement.now[number])

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


def is_chosen(key: Key, wish: Wish) -> bool:
    return wish.topics is None or key[0] in wish.topics
