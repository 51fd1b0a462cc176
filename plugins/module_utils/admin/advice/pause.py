# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds without a leader once a broker dies uncleanly: estimated, or watched. Pure.

Private to this collection. The estimate is made of the settings of the brokers and of what others have
measured in their year. `Watch` judges what was really seen; who ends the broker is somebody else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Mapping, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.bounds import (
    MANUAL,
    RAO,
    Load,
    Source,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    Snapshot,
    partition_name,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import whole_number

# What tells a broker's death: settings of brokers, and their defaults in ms.
SESSION_KEYS = {False: "zookeeper.session.timeout.ms", True: "broker.session.timeout.ms"}
SESSION_DEFAULTS_MS = {False: 18_000, True: 9_000}
THIS_CLUSTER = Source("this cluster", 0, "the settings of this cluster's brokers")
ELECTION_SECONDS = 0.005
RELOAD_SECONDS = 0.002
FETCH_SECONDS = 0.02
FETCHED = 1000
# A listener may refuse one connection without being dead, and what one broker sees may be late.
BLIP_SECONDS = 1.0


@dataclass(frozen=True)
class Estimate:
    """One part of what is estimated, in seconds."""

    name: str
    seconds: float
    source: Source

    def to_dict(self) -> Dict[str, Any]:
        """As the module returns it; the year of a setting of now is null."""
        return {
            "what": self.name,
            "seconds": round(self.seconds, 3),
            "source": self.source.name,
            "year": self.source.year or None,
        }


def estimates(
    load: Load, settings: Mapping[str, str], kraft: Optional[bool], fetchers: int = 1
) -> List[Estimate]:
    """How long partitions are without a leader at worst, part by part, and what more replicas add to a write."""
    mode = kraft is True
    key = SESSION_KEYS[mode]
    session = whole_number(settings.get(key))
    found = [
        Estimate(
            f"until the death of a broker is noticed ({key})",
            (SESSION_DEFAULTS_MS[mode] if session is None else session) / 1000,
            THIS_CLUSTER if session is not None else MANUAL,
        ),
        Estimate(
            "electing leaders for all that one broker leads (5 ms each)",
            max(load.leaders.values(), default=0) * ELECTION_SECONDS,
            RAO,
        ),
    ]
    if not mode:
        found.append(
            Estimate(
                "and if it was the controller, until the next one has read all partitions (2 ms each)",
                load.partitions * RELOAD_SECONDS,
                RAO,
            )
        )
    widest = max(load.pairs.values(), default=0)
    found.append(
        Estimate(
            "and at any time: added to a write with acks=all (20 ms for 1,000 partitions that one fetcher copies)",
            widest / max(1, fetchers) / FETCHED * FETCH_SECONDS,
            RAO,
        )
    )
    return found


@dataclass
class Watch:
    """What is seen of a broker that dies, in seconds since the beginning."""

    broker: int
    led: FrozenSet[Key]
    died: Optional[float] = None
    led_again: Dict[Key, float] = field(default_factory=dict)
    settled: Optional[float] = None

    def probed(self, seconds: float, alive: bool) -> bool:
        """Note whether the broker's listener accepted a connection; whether the leaders are of interest."""
        if not alive and self.died is None:
            self.died = seconds
        elif alive and self.died is not None and seconds - self.died < BLIP_SECONDS:
            self.died = None
        return self.died is not None

    def seen(self, seconds: float, alive: bool, snapshot: Snapshot) -> bool:
        """Note who leads now; whether all that the broker led is led again, or can have no leader.

        A broker that has come back leads again where nobody has taken over. Without a leader, and not
        still with the dead one, are partitions that the controller has found nobody for.
        """
        orphans = set()
        for name in {name for name, _number in self.waiting}:
            topic = snapshot.topics.get(name)
            for part in topic.partitions if topic else ():
                key = (name, part.id)
                if part.leader is None:
                    orphans.add(key)
                elif key in self.waiting and (alive or part.leader != self.broker):
                    self.led_again[key] = seconds
        if not self.waiting <= orphans:
            self.settled = None
        elif self.settled is None:
            self.settled = seconds
        return not self.waiting or (
            self.settled is not None and seconds - self.settled >= BLIP_SECONDS
        )

    @property
    def waiting(self) -> FrozenSet[Key]:
        """Partitions that the dead broker led, and that nobody leads yet."""
        return self.led - self.led_again.keys()

    def to_dict(self) -> Dict[str, Any]:
        """As the module returns it; seconds since the death."""
        died = self.died or 0.0
        after = sorted(seconds - died for seconds in self.led_again.values())
        return {
            "broker": self.broker,
            "partitions": len(self.led),
            "seconds_first": round(after[0], 3) if after else None,
            "seconds_last": round(after[-1], 3) if after else None,
            "without_leader": sorted(partition_name(*key) for key in self.waiting),
        }
