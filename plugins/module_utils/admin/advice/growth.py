# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What more partitions do: how many a throughput needs, which keys move, what becomes of lag. Pure.

Private to this collection. A producer takes the hash of a key modulo the number of partitions. With n of
them, and then m, a hash keeps its partition for n residues of lcm(n, m): so much is computed, whatever the
hash, as long as it spreads evenly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Dict, Mapping, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted


def keys_moved(before: int, after: int) -> float:
    """The share of keys, 0 to 1, that are in another partition once a topic has grown."""
    if before == after:
        return 0.0
    return float(1 - Fraction(min(before, after), math.lcm(before, after)))


def partitions_needed(
    throughput: int, write: int, read: Optional[int] = None, consumers: int = 0
) -> int:
    """Partitions that a throughput needs, all in bytes a second: max(t/p, t/c).

    `write` is what one partition takes, `read` what one consumer reads, None: not known; `consumers` of
    a group have at least one each.
    """
    need = -(-throughput // write)
    if read:
        need = max(need, -(-throughput // read))
    return max(1, need, consumers)


def suggested(present: int, needed: int, keyed: bool) -> int:
    """How many partitions to have: the least multiple of the present ones, where keys are to move least."""
    if needed <= present or present == 0:
        return max(present, needed)
    return -(-needed // present) * present if keyed else needed


@dataclass(frozen=True)
class Reading:
    """How one group reads one partition: unread records, and records a second that come and are read.

    The rates are None where they were not measured.
    """

    lag: int
    written: Optional[float] = None
    read: Optional[float] = None

    def seconds(self, share: float = 1.0) -> Optional[float]:
        """Until all is read, if only so much of what comes now will come; None: never, or not known."""
        if not self.lag:
            return 0.0
        if self.written is None or self.read is None:
            return None
        gain = self.read - self.written * share
        return self.lag / gain if gain > 0 else None


@dataclass(frozen=True)
class GroupEffect:
    """What growth does to a group that reads the topic."""

    group: str
    members: int
    readings: Mapping[Key, Reading]
    before: int
    after: int
    sampled: bool = False

    @property
    def lag(self) -> int:
        """Unread records of the topic. They stay where they are."""
        return sum(each.lag for each in self.readings.values())

    def seconds(self, partitions: int) -> Optional[float]:
        """Until the last partition has caught up, if the topic had so many partitions."""
        share = self.before / partitions
        each = [reading.seconds(share) for reading in self.readings.values()]
        known = [seconds for seconds in each if seconds is not None]
        return max(known, default=0.0) if len(known) == len(each) else None

    def idle(self, partitions: int) -> int:
        """Members that have no partition of the topic."""
        return max(0, self.members - partitions)

    def sentence(self) -> str:
        """For people."""
        parts = [f"{self.group}: {counted(self.members, 'member')}"]
        if self.idle(self.before) or self.idle(self.after):
            parts.append(f"{self.idle(self.before)} idle now, {self.idle(self.after)} then")
        if self.lag:
            parts.append(
                f"{counted(self.lag, 'unread record')} in the partitions where they are, growth moves none"
            )
            if self.sampled:
                now, then = (_when(self.seconds(each)) for each in (self.before, self.after))
                parts.append(f"read in {now} at this rate, in {then} with {self.after} partitions")
        else:
            parts.append("nothing unread")
        return "; ".join(parts)

    def to_dict(self) -> Dict[str, Any]:
        """As the module returns it."""
        return {
            "group": self.group,
            "members": self.members,
            "idle_now": self.idle(self.before),
            "idle_planned": self.idle(self.after),
            "lag": self.lag,
            "seconds_now": self.seconds(self.before) if self.sampled else None,
            "seconds_planned": self.seconds(self.after) if self.sampled else None,
        }


def _when(seconds: Optional[float]) -> str:
    return "no time: it falls behind" if seconds is None else f"{seconds:.0f} s"
