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

import collections
from typing import (
    Dict,
    List,
    Sequence,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import (
    EXAMPLES,
    Layout,
    Moves,
    Wish,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.placement import (
    Placement,
    is_chosen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted


def plan_moves(layout: Layout, wish: Wish) -> Moves:
    """The moves that turn the layout into what is asked for, or the refusals."""
    refusals = _refusals(layout, wish)
    if refusals:
        return Moves(refusals=tuple(refusals))
    placement = Placement(layout, wish)
    placement.force()
    placement.balance(only_new=True)
    if wish.spread:
        placement.balance(only_new=False)
    placement.order()
    return Moves(placement.moves(), (), tuple(_warnings(layout, wish)))


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
        if not is_chosen(key, wish):
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
            "where they are, with all replicas of their partitions, and are not counted"
        )
    without = racks_of_some(layout, wish)
    if without:
        warnings.append(
            f"broker {', '.join(map(str, without))} has no rack although others do: racks are ignored"
        )
    return warnings


def racks_of_some(layout: Layout, wish: Wish) -> List[int]:
    """The brokers that stay and have no rack, where others have one: nobody can spread replicas over racks then."""
    staying = set(layout.brokers) - wish.drain
    without = layout.without_rack(staying)
    return without if len(without) < len(staying) else []


def _some_topics(keys: Sequence[Key]) -> str:
    """A few topics, each with the number of its partitions, as text."""
    topics = collections.Counter(topic for topic, _partition in keys)
    told = [f"{topic} ({count})" for topic, count in sorted(topics.items())]
    return ", ".join(told[:EXAMPLES]) + (
        f" and {len(told) - EXAMPLES} more topics" if len(told) > EXAMPLES else ""
    )
