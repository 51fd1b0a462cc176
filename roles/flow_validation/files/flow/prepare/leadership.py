# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Who led each partition, and who was in sync, while the run went on.

An election is unclean where the new leader was not in sync before: what only the others had is gone.
By metadata alone that is a suspicion, since a replica may have come into sync between two looks; the
judge tells of it only where acknowledged records of the partition are gone.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import asdict, dataclass
from typing import Callable, Iterator, List, Mapping, Sequence

from flow.messages.meanwhile import meanwhile
from flow.prepare.cluster import Cluster
from flow.record.partition import Partition

_LOOK_SECONDS = 1.0
# That are told of: a cluster that flaps for hours says no more with more of them.
MOST_CHANGES = 200


@dataclass(frozen=True)
class Election:
    """A broker took the lead of a partition, of which only `in_sync` were in sync when last seen."""

    partition: int
    leader: int
    in_sync: tuple


def unclean(moments: Sequence[Mapping]) -> list:
    """Elections of leaders that were not in sync the moment before, in order. A moment: partition ->
    (leader or None, brokers in sync).

    While nobody leads, those who were in sync last are asked.
    """
    found, last = [], {}
    for moment in moments:
        for partition, (leader, in_sync) in sorted(moment.items()):
            before = last.get(partition)
            if leader is None:
                continue
            if before is not None and before and leader not in before:
                found.append(Election(partition, leader, tuple(before)))
            last[partition] = in_sync
    return found


@dataclass(frozen=True)
class Change:
    """What was seen to be different at a look, `at_ms` since 1970: the `leader` of these partitions, or
    who is `in_sync`; brokers before and after, none where nobody leads.
    """

    at_ms: int
    what: str  # leader, in_sync
    partitions: tuple
    before: tuple
    after: tuple


def changes(at_ms: int, before: Mapping, after: Mapping) -> List[Change]:
    """What differs between two moments (as of `unclean`), one Change for all partitions that changed
    alike. Partitions that only one of them knows are left out.
    """
    alike: dict = {}
    for partition in sorted(set(before) & set(after)):
        (led, in_sync), (leads, in_sync_now) = before[partition], after[partition]
        pairs = (
            ("leader", *(() if each is None else (each,) for each in (led, leads))),
            ("in_sync", tuple(sorted(in_sync)), tuple(sorted(in_sync_now))),
        )
        for what, was, now in pairs:
            if was != now:
                alike.setdefault((what, was, now), []).append(partition)
    return [
        Change(at_ms, what, tuple(partitions), was, now)
        for (what, was, now), partitions in alike.items()
    ]


def standing(partitions: Mapping[int, Partition]) -> dict:
    """A moment as `unclean` and `changes` take it, of the partitions as they were described."""
    return {n: (place.leader, tuple(place.isr)) for n, place in partitions.items()}


class Watch:
    """Looks at a topic's leaders now and then, from the moment on in which it is `before`.

    `elections`: the unclean ones; `seen`: the first MOST_CHANGES Changes, and how many more there were
    in `left_out`. So what is kept does not grow with the time. `places`: partition -> Partition when all led last.
    """

    def __init__(self, cluster: Cluster, topic: str, before: Mapping[int, Partition]):
        self.elections: List[Election] = []
        self.seen: List[Change] = []
        self.left_out = 0
        self.places = dict(before)
        self._last = standing(before)
        self._led = {n: each for n, each in self._last.items() if each[0] is not None}
        self._cluster, self._topic = cluster, topic

    def look(self) -> None:
        """Note what has changed since the last look."""
        layout = self._cluster.layout(self._topic)
        now = {n: (place["leader"], place["isr"]) for n, place in layout.items()}
        self.note(now)
        if now and all(leader is not None for leader, _in_sync in now.values()):
            # no longer than a look: who leads next must not be missed
            self.places = self._cluster.positions(self._topic, patience=0) or self.places

    def note(self, now: Mapping) -> None:
        """Note what differs at this moment from the last one."""
        found = changes(int(time.time() * 1000), self._last, now)
        room = MOST_CHANGES - len(self.seen)
        self.seen += found[:room]
        self.left_out += len(found[room:])
        self.elections += unclean([self._led, now])
        self._last = {**self._last, **now}
        self._led.update({n: each for n, each in now.items() if each[0] is not None})

    def told(self) -> dict:
        """The changes for the plan: `changes`, `left_out`."""
        return {"changes": [asdict(each) for each in self.seen], "left_out": self.left_out}

    def kept(self) -> dict:
        """All that is known so far, for JSON: `elections`, `leadership` (told), `last` (`places`)."""
        return {
            "elections": [asdict(each) for each in self.elections],
            "leadership": self.told(),
            "last": {str(number): asdict(place) for number, place in self.places.items()},
        }

    @contextlib.contextmanager
    def going_on(
        self, keep: Callable[[dict], None], every: float = _LOOK_SECONDS
    ) -> Iterator[None]:
        """Look all the while that the body runs, each time so many seconds after the last one, and hand
        what is `kept` to `keep`.
        """

        def look() -> None:
            with contextlib.suppress(Exception):  # brokers may be what is gone
                self.look()
            # A run that comes to its end tells all this itself, so it does not end by a full disk here.
            keep(self.kept())

        with meanwhile("leadership", look, every, at_once=True):
            yield
