# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is hit by a drill on a given cluster, and where its topic lies. Pure.

Private to this collection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    CONTROLLER,
    KILL,
    LEADER,
    MEMBER_CLOSE,
    MEMBER_KILL,
    STOP,
    Drill,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import refusal

REPLICAS = 3
# Of a topic whose group hands partitions over: two for each of its two members.
MEMBER_PARTITIONS = 4


@dataclass(frozen=True)
class Cast:
    """A drill on one cluster. `victim` is the id of the broker that is hit, None if none is.

    `assignment` is the topic's: for each partition its replicas, the preferred leader first.
    """

    drill: Drill
    victim: Optional[int]
    assignment: Tuple[Tuple[int, ...], ...]
    min_isr: int

    def to_dict(self) -> Dict[str, Any]:
        """As the playbook takes it."""
        return {
            **self.drill.to_dict(),
            "victim": self.victim,
            "assignment": [list(replicas) for replicas in self.assignment],
            "config": {"min.insync.replicas": str(self.min_isr)},
        }


def cast(drill: Drill, brokers: Sequence[int], controller: Optional[int]) -> Cast:
    """Who is hit, and where the topic lies.

    A leader or follower that is hit is not the controller, where another broker can be it: one thing
    at a time. Raises ProblemError where the cluster has too few brokers.
    """
    ids = sorted(set(brokers))
    if len(ids) < drill.min_brokers:
        raise refusal(
            "drill.too_few_brokers",
            f"drill={drill.name}",
            f"it needs {drill.min_brokers} brokers, and {len(ids)} are there",
            "run it on a larger cluster",
        )
    count = min(REPLICAS, len(ids))
    if not drill.hits_broker:
        partitions = MEMBER_PARTITIONS if drill.fault in (MEMBER_KILL, MEMBER_CLOSE) else 1
        rows = tuple(_rotated(ids, start, count) for start in range(partitions))
        return Cast(drill, None, rows, _min_isr(count))
    if drill.part == CONTROLLER:
        victim = controller if controller in ids else ids[0]
    else:
        victim = next((each for each in ids if each != controller), ids[0])
    others = [each for each in ids if each != victim]
    # of the others, one that is not the controller leads, where there is one
    others.sort(key=lambda each: (each == controller, each))
    if drill.fault == STOP and drill.part != LEADER:
        return Cast(drill, victim, ((others[0], victim),), 2)
    survivors = others[: count - 1]
    replicas = (victim, *survivors) if drill.part == LEADER else (*survivors, victim)
    return Cast(drill, victim, (replicas,), _min_isr(count))


def _min_isr(replicas: int) -> int:
    return 2 if replicas > 2 else 1


def _rotated(ids: Sequence[int], start: int, count: int) -> Tuple[int, ...]:
    return tuple(ids[(start + offset) % len(ids)] for offset in range(count))


_DOES = {
    KILL: "kills broker {victim} ({host}) with SIGKILL; its service manager starts it again",
    STOP: "stops broker {victim} ({host}), and starts it again",
    MEMBER_KILL: "kills a consumer of its own with SIGKILL; touches no broker",
    MEMBER_CLOSE: "closes a consumer of its own; touches no broker",
}


def announced(chosen: Cast, host: str) -> List[str]:
    """What is said before a drill begins: what is done to whom, under which load, and what is expected."""
    drill = chosen.drill
    does = _DOES.get(drill.fault, "deletes its own topic and makes it anew; touches no broker")
    load = ", ".join(drill.groups)
    lines = [
        f"{drill.name} ({drill.row}): {drill.case}",
        f"does: {does.format(victim=chosen.victim, host=host)}",
        f"load: topic {drill.topic}, groups {load}"
        + ("; the PySpark judge writes to a topic of its own" if drill.proven else ""),
        f"expected: {drill.expected}; pause at most {drill.pause_seconds:g} s",
    ]
    return lines
