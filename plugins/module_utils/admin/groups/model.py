# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Frozen values of consumer groups: who reads, and how far.

Private to this collection. No I/O, no Ansible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import FrozenSet, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key

EMPTY, DEAD = "Empty", "Dead"
# What the members of a group speak; those of the last are told to no client that we have.
CLASSIC, CONSUMER, STREAMS = "classic", "consumer", "streams"


@dataclass(frozen=True)
class Member:
    """One consumer of a group; `topics` are those that it asked for, None if that is not told."""

    id: str
    client: str
    host: str
    partitions: FrozenSet[Key] = frozenset()
    topics: Optional[FrozenSet[str]] = None

    def __str__(self) -> str:
        return f"{self.client} at {self.host}"

    def reads(self, topic: str) -> bool:
        """Whether it has a partition of a topic, or has asked for it."""
        return topic in (self.topics or ()) or any(name == topic for name, _id in self.partitions)


@dataclass(frozen=True)
class Group:
    """A consumer group; `state` in Kafka's words, Dead for one that is not there.

    `kind` is the protocol that its members speak, CLASSIC, CONSUMER or STREAMS. `committed` maps partitions
    to the offset of the next record that the group reads.
    """

    name: str
    state: str = DEAD
    kind: str = CLASSIC
    members: Tuple[Member, ...] = ()
    committed: Mapping[Key, int] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        """Whether somebody reads, or is about to: offsets belong to the members then."""
        return bool(self.members) or self.state not in (EMPTY, DEAD)

    @property
    def reads_unseen(self) -> bool:
        """Whether it has members of which nobody tells what they read."""
        return self.kind == STREAMS and self.active

    @property
    def exists(self) -> bool:
        """Whether the cluster knows it."""
        return self.state != DEAD or bool(self.committed)

    def holder(self, key: Key) -> Optional[Member]:
        """The member that reads a partition."""
        return next((each for each in self.members if key in each.partitions), None)
