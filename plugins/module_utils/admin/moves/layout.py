# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where replicas are, where they shall be, and the moves between: values for those who plan and move.

Private to this collection. Pure.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import Collection, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    partition_name,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_size
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted, some

# Kinds of changes; a reordering copies nothing: it changes who is preferred as leader.
MOVE, REORDER, FINISH, CANCEL, UNTHROTTLE = "move", "reorder", "finish", "cancel", "unthrottle"
# A few names are enough for a message.
EXAMPLES = 5
# What a task can consent to.
FEWER_REPLICAS = "fewer_replicas"
RACKS_IGNORED = "racks_ignored"
CONSENTS = (FEWER_REPLICAS, RACKS_IGNORED)
# What the brokers ask of whoever moves, and of whoever throttles; by the protocol's names.
MOVING_RIGHT, THROTTLING_RIGHT = "ALTER", "ALTER_CONFIGS"


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

    def without_rack(self, brokers: Iterable[int]) -> List[int]:
        """Those of these brokers that have no rack, sorted."""
        return sorted(broker for broker in brokers if not self.racks.get(broker))


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


def carried_out(layout: Layout, moves: Iterable[Move]) -> Layout:
    """The layout after moves."""
    replicas = dict(layout.replicas)
    for move in moves:
        replicas[move.key] = move.after
    return Layout(replicas, layout.brokers, layout.racks, layout.sizes)


def some_keys(keys: Sequence[Key]) -> str:
    """A few partitions as text."""
    return some([partition_name(*key) for key in keys[:EXAMPLES]], EXAMPLES, len(keys))


def rights_problem(rights: Collection[str], throttled: bool) -> List[Problem]:
    """The refusal of a user who may see moves and not make them; `throttled`: it has to set a throttle, too.

    `rights` are what it may do with the cluster, none where the brokers do not tell.
    """
    needed = [MOVING_RIGHT, *([THROTTLING_RIGHT] if throttled else [])]
    lacking = [right for right in needed if right not in rights]
    if not rights or not lacking:
        return []
    words = {MOVING_RIGHT: "Alter", THROTTLING_RIGHT: "AlterConfigs"}
    what = "move replicas" if MOVING_RIGHT in lacking else "throttle moves"
    also = " and on the topics" if throttled else ""
    named = " and ".join(words[right] for right in needed)
    return [
        Problem(
            "reassignment.rights",
            f"this user may not {what}",
            f"grant it {named} on the cluster{also}, or run as a super user",
        )
    ]
