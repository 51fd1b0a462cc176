# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether brokers copy what they shall have, by the bytes that they have on their disks, over a while. Pure.

Private to this collection. A broker can be up and registered, and yet fetch nothing from the others: its way to them is
closed, or they do not take its password or certificate. Kafka tells nobody, and a move to it never ends. The same holds
for a copy between its own directories whose thread has given up.
"""

from __future__ import annotations

from typing import Collection, Dict, List, Mapping

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    Place,
    Snapshot,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_replicas import (
    Running,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import some_keys
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import UNLIMITED

STALLED = "reassignment.stalled"
# Between two looks at sizes; and how long a broker may copy nothing: an election of leaders takes seconds.
LOOK_SECONDS = 5.0
STALLED_SECONDS = 120.0
# What a broker fetches at once (replica.fetch.max.bytes). Under a lower rate it gets nothing for as many seconds.
FETCH_BYTES = 2**20


def joining(snapshot: Snapshot, running: Mapping[Key, Running]) -> Dict[int, List[Key]]:
    """Live broker to the partitions that are added to it and not in sync there yet."""
    alive = {broker.id for broker in snapshot.brokers}
    found: Dict[int, List[Key]] = {}
    for key, part in snapshot.partitions.items():
        for broker in running[key].adding if key in running else ():
            if broker in alive and broker not in part.isr:
                found.setdefault(broker, []).append(key)
    return found


def slowness(rate: int) -> float:
    """How many times longer than usual to look at copies under such a rate: under a low one bytes arrive seldom."""
    return 1.0 if rate == UNLIMITED else max(1.0, FETCH_BYTES / rate)


class Copying:
    """What the brokers had at the last looks. `rate`: bytes a second that each may copy, -1 for unlimited."""

    def __init__(self, now: float, rate: int):
        self.seconds = STALLED_SECONDS * slowness(rate)
        self._looked = now
        self._seen: Dict[int, Dict[Key, int]] = {}
        self._since: Dict[int, float] = {}

    def is_due(self, now: float) -> bool:
        """Whether it is time for another look."""
        return now - self._looked >= LOOK_SECONDS

    def note(
        self, sizes: Mapping[Place, int], added: Mapping[int, Collection[Key]], now: float
    ) -> bool:
        """Note bytes by (broker, partition), none where they are not told; returns whether something was copied.

        `added`: as `joining` has it, or what they copy between their directories; brokers that do not answer are left
        out. What has begun or ended since counts as copied.
        """
        self._looked = now
        before, self._seen = self._seen, {}
        if not sizes:
            self._since = {}
            return False
        copied = False
        for broker, keys in added.items():
            self._seen[broker] = {key: sizes.get((broker, key), 0) for key in keys}
            if self._seen[broker] != before.get(broker):
                copied = copied or broker in before
                self._since[broker] = now
        self._since = {broker: self._since[broker] for broker in self._seen}
        return copied

    def stalled(self, now: float) -> Dict[int, List[Key]]:
        """Brokers that have copied nothing for so long, with the partitions that wait for them."""
        return {
            broker: sorted(keys)
            for broker, keys in sorted(self._seen.items())
            if now - self._since[broker] >= self.seconds
        }

    def told(self, now: float, check: str = STALLED) -> str:
        """The same for people, with the id of that; empty where all copy."""
        words = [
            f"broker {broker} has copied nothing for {self.seconds:.0f} s although it is alive: {some_keys(keys)}"
            for broker, keys in self.stalled(now).items()
        ]
        return f"[{check}] {'; '.join(words)}" if words else ""
