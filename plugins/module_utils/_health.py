# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions about the health of a cluster: Snapshot in, plain answers out.

Private to this collection. Pure: no I/O, no clock.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """What to wait for. `brokers`: ids that must be registered; `quiet_seconds`: for how long."""

    brokers: tuple = ()
    full_isr: bool = False
    controller: bool = False
    quiet_seconds: float = 0.0
    timeout: float = 120.0


def partitions_where(snapshot, condition):
    """(topic name, Partition) pairs, sorted, for which condition(topic, partition) holds."""
    return [
        (name, partition)
        for name, topic in sorted(snapshot.topics.items())
        for partition in topic.partitions
        if condition(topic, partition)
    ]


def under_replicated(snapshot):
    """Partitions with fewer in-sync replicas than replicas."""
    return partitions_where(snapshot, lambda _topic, part: len(part.isr) < len(part.replicas))


def offline(snapshot):
    """Partitions without a leader."""
    return partitions_where(snapshot, lambda _topic, part: part.leader is None)


def under_min_isr(snapshot):
    """Partitions with fewer in-sync replicas than the topic's effective min.insync.replicas."""

    def condition(topic, part):
        minimum = topic.effective("min.insync.replicas")
        return minimum is not None and len(part.isr) < int(minimum)

    return partitions_where(snapshot, condition)


def replica_holders(snapshot):
    """Ids of all brokers that hold a replica, alive or not, sorted."""
    return sorted(
        {
            member
            for topic in snapshot.topics.values()
            for part in topic.partitions
            for member in part.replicas
        }
    )


def loads(snapshot):
    """Broker id to (partitions led, replicas held, replicas not in sync)."""
    led, held, behind = collections.Counter(), collections.Counter(), collections.Counter()
    for topic in snapshot.topics.values():
        for part in topic.partitions:
            led[part.leader] += 1
            held.update(part.replicas)
            behind.update(set(part.replicas) - set(part.isr))
    ids = {broker.id for broker in snapshot.brokers} | set(held)
    return {broker: (led[broker], held[broker], behind[broker]) for broker in sorted(ids)}


def unmet(snapshot, goal):
    """Why the goal is not met, one sentence each; an empty list if it is."""
    reasons = []
    alive = {broker.id for broker in snapshot.brokers}
    missing = sorted(set(goal.brokers) - alive)
    if missing:
        reasons.append(f"not registered: {_ids(missing)}")
    if goal.controller and (snapshot.controller is None or snapshot.controller not in alive):
        reasons.append("there is no controller")
    if goal.full_isr:
        lacking = under_replicated(snapshot)
        if lacking:
            reasons.append(
                f"{_plural(len(lacking), 'partition')} not fully in sync: {_some(lacking)}"
            )
        leaderless = offline(snapshot)
        if leaderless:
            reasons.append(f"{_plural(len(leaderless), 'partition')} offline: {_some(leaderless)}")
    return reasons


def partition_dict(name, part):
    """A partition as modules return it."""
    return {
        "topic": name,
        "partition": part.id,
        "leader": part.leader,
        "replicas": list(part.replicas),
        "isr": list(part.isr),
    }


def _some(pairs, most=10):
    told = []
    for name, part in pairs[:most]:
        absent = [member for member in part.replicas if member not in part.isr]
        detail = f" lacks {', '.join(map(str, absent))}" if absent else ""
        told.append(f"{name}-{part.id}{detail}")
    return "; ".join(told) + (f"; and {len(pairs) - most} more" if len(pairs) > most else "")


def _ids(ids):
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def _plural(count, noun):
    return f"{count} {noun}{'' if count == 1 else 's'}"
