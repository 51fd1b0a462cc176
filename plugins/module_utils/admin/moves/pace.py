# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether replicas come nearer to what they copy, or records are written as fast as they are copied. Pure.

Private to this collection. Where a throttle carries less than producers write, Kafka copies for ever, and tells nobody:
bytes arrive all the time. How far a replica is behind its leader it does not tell either, so that is known by how much
the sizes of both have grown. A size that has fallen tells nothing: segments were deleted, or compacted.

Who writes much for some minutes does not make a move endless, and who copies slowly is not behind. So of a broker

* it is told while it goes on, once none of its replicas has come nearer in the last minutes;
* a run ends, once that holds still, and none of them has been nearer than half an hour ago, nor is now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Dict, Iterable, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key, Place
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.copying import slowness
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import some_keys
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_size

OUTPACED = "reassignment.outpaced"
# After so long it is told; after so long a run ends: a peak of writes may be over by then.
RECENT_SECONDS, OUTPACED_SECONDS = 300.0, 1800.0
# Of a window, between two samples that are kept.
SAMPLES = 30


@dataclass(frozen=True)
class Copy:
    """Bytes of a replica that is being made, of the one that it is a copy of, and where that one is."""

    there: int
    of: int
    source: object


@dataclass(frozen=True)
class Flow:
    """Bytes a second that arrive on a broker, and that are written into what it copies."""

    arriving: float
    written: float

    def __str__(self) -> str:
        """For people."""
        arriving, written = (approximate_size(int(each)) for each in (self.arriving, self.written))
        return f"{arriving} a second arrive, and {written} are written"


@dataclass
class _Track:
    """What has arrived of one replica, and what was written into its source, since it is looked at.

    `samples`: (time, arrived, written), the first at the beginning; `nearest_at`: when it has been nearest.
    """

    samples: List[Tuple[float, int, int]]
    last: Tuple[float, int, int]
    nearest: int = 0
    nearest_at: float = 0.0

    def add(self, now: float, arrived: int, written: int, every: float, keep: float) -> None:
        """Note bytes since the last look."""
        self.last = (now, self.last[1] + arrived, self.last[2] + written)
        if now - self.samples[-1][0] >= every:
            self.samples.append(self.last)
        while len(self.samples) > 1 and self.samples[1][0] <= now - keep:
            del self.samples[0]
        distance = self.last[1] - self.last[2]
        if distance > self.nearest:
            self.nearest, self.nearest_at = distance, now

    def at(self, time: float) -> Optional[Tuple[float, int, int]]:
        """The last sample that is not younger; None where it was not looked at then."""
        return next((each for each in reversed(self.samples) if each[0] <= time), None)

    def is_nearer(self, time: float) -> bool:
        """Whether it is nearer than at that time, or has begun since."""
        then = self.at(time)
        return then is None or self.last[1] - self.last[2] > then[1] - then[2]


class Pace:
    """How fast brokers copy, over the last looks. `rate`: bytes a second that each may copy, -1 for unlimited."""

    def __init__(self, rate: int):
        self.recent, self.seconds = (
            each * slowness(rate) for each in (RECENT_SECONDS, OUTPACED_SECONDS)
        )
        self._seen: Dict[Place, Copy] = {}
        self._tracks: Dict[Place, _Track] = {}
        # Broker to when something has arrived there as a whole.
        self._arrived: Dict[int, float] = {}

    def note(self, moving: Collection[Place], copies: Mapping[Place, Copy], now: float) -> None:
        """Note what there is of the replicas that are being made; `copies` has those of `moving` that are told."""
        for place in set(self._tracks) - set(moving):
            del self._tracks[place], self._seen[place]
            self._arrived[place[0]] = now
        for place, copy in copies.items():
            was = self._seen.get(place)
            self._seen[place] = copy
            if was is None:
                begun = (now, 0, 0)
                self._tracks[place] = _Track([begun], begun, nearest_at=now)
                continue
            grown = copy.there - was.there, copy.of - was.of
            if copy.source != was.source or min(grown) < 0:
                grown = 0, 0
            self._tracks[place].add(now, *grown, self.recent / SAMPLES, self.seconds)

    def behind(self, now: float) -> Dict[int, Flow]:
        """Brokers of which no replica has come nearer lately, with what they have copied since."""
        since = now - self.recent
        found = {}
        for broker, tracks in self._of_brokers().items():
            flow = _flow(tracks, since)
            has_arrived = self._arrived.get(broker, since) > since
            if (
                flow.written > 0
                and not has_arrived
                and not any(each.is_nearer(since) for each in tracks)
            ):
                found[broker] = flow
        return found

    def outpaced(self, now: float) -> Dict[int, Flow]:
        """Those for which that has been so for long."""
        since, tracks = now - self.seconds, self._of_brokers()
        return {
            broker: _flow(tracks[broker], since)
            for broker in self.behind(now)
            if self._arrived.get(broker, since) <= since
            and not any(
                track.nearest_at > since or track.is_nearer(since) for track in tracks[broker]
            )
        }

    def keys(self, broker: int) -> List[Key]:
        """The partitions of which this broker makes a replica."""
        return sorted(key for at, key in self._tracks if at == broker)

    def line(self, now: float) -> str:
        """What to add to a line about progress; empty where all come nearer."""
        return "".join(
            f"; broker {broker} comes no nearer: {flow}"
            for broker, flow in sorted(self.behind(now).items())
        )

    def told(self, now: float) -> str:
        """Words about brokers for which it has been so for long, with the id of that; empty where all come nearer."""
        words = [
            f"broker {broker} has come no nearer to what it copies for {self.seconds:.0f} s: {flow}: "
            + some_keys(self.keys(broker))
            for broker, flow in sorted(self.outpaced(now).items())
        ]
        return f"[{OUTPACED}] {'; '.join(words)}" if words else ""

    def _of_brokers(self) -> Dict[int, List[_Track]]:
        found: Dict[int, List[_Track]] = {}
        for (broker, _key), track in self._tracks.items():
            found.setdefault(broker, []).append(track)
        return found


def _flow(tracks: Iterable[_Track], since: float) -> Flow:
    """What has arrived of these replicas of one broker since then, or since they are looked at."""
    arriving = written = 0.0
    for track in tracks:
        then = track.at(since) or track.samples[0]
        seconds = track.last[0] - then[0]
        if seconds > 0:
            arriving += (track.last[1] - then[1]) / seconds
            written += (track.last[2] - then[2]) / seconds
    return Flow(arriving, written)
