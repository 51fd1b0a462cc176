# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which partitions an election gives a leader: the preferred one, or any that is left. Pure.

Private to this collection. The first replica of a partition is its preferred leader. A restart moves
leadership away from it, and Kafka by itself gives it back only every 300 s, and only beyond an
imbalance of 10 % (`leader.imbalance.*`). A partition whose in-sync replicas are all dead has no leader;
an unclean election makes one of a replica that lags behind, and what it lacks is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Collection, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Partition,
    Place,
    Snapshot,
    partition_name,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import did_you_mean
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change, Plan
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.dangers import (
    UNCLEAN_ELECTION,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_size
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some

ELECT = "elect"
PREFERRED, UNCLEAN = "preferred", "unclean"
CONSENTS = (UNCLEAN_ELECTION,)
# What the brokers ask of whoever elects, by the protocol's name.
ELECTING_RIGHT = "ALTER"
SHOWN = 10


def preferred(partition: Partition) -> Optional[int]:
    """Id of the preferred leader, None for a partition without replicas."""
    return partition.replicas[0] if partition.replicas else None


def plan_preferred(
    snapshot: Snapshot, topics: Optional[Collection[str]] = None, leave: Collection[str] = ()
) -> Plan:
    """The Plan of one preferred election over `topics` (None: all, internal ones included).

    `leave`: partitions by name, each of which keeps its leader if it has one.

    A preferred leader that is dead or not in sync cannot be elected. Its partitions are left as they are and
    named in a warning: they are nothing to fail about, since somebody else leads them.
    """
    refusals = _unknown(snapshot, topics or ())
    # A dead broker may be the last that was in sync, and stays in the ISR.
    alive = {broker.id for broker in snapshot.brokers}
    changes: List[Change] = []
    waiting: List[str] = []
    left = frozenset(leave)
    for name in sorted(snapshot.topics if topics is None else set(topics) & set(snapshot.topics)):
        for partition in snapshot.topics[name].partitions:
            wanted = preferred(partition)
            if wanted is None or wanted == partition.leader:
                continue
            subject = partition_name(name, partition.id)
            if subject in left and partition.leader is not None:
                continue
            if wanted in alive and wanted in partition.isr:
                before, after = {"leader": partition.leader}, {"leader": wanted}
                changes.append(Change(ELECT, subject, before, after))
            else:
                waiting.append(f"{subject} (broker {wanted})")
    words = "the preferred leader is not there or not in sync"
    return Plan(tuple(changes), tuple(refusals), _left_alone(waiting, words))


def as_permitted(plan: Plan, rights: Collection[str]) -> Plan:
    """The plan, refused where this user may not elect; `rights` on the cluster, none where that is not told."""
    if not plan or not rights or ELECTING_RIGHT in rights:
        return plan
    remedy = "grant it Alter on the cluster, or run as a super user"
    return plan.refusing((Problem("leaders.rights", "this user may not elect leaders", remedy),))


def _unknown(snapshot: Snapshot, topics: Collection[str]) -> List[Problem]:
    return [
        Problem(
            "topics.unknown",
            f"there is no such topic{did_you_mean(name, snapshot.topics)}",
            "correct the name, or leave topics out for all",
            (name,),
        )
        for name in sorted(set(topics) - set(snapshot.topics))
    ]


def _left_alone(partitions: Sequence[str], reason: str) -> Tuple[str, ...]:
    """The warning about partitions that get no leader; none where there is no such partition."""
    if not partitions:
        return ()
    return (f"left as they are, because {reason}: {some(partitions, SHOWN)}",)


# ---------------------------------------------------------------- unclean


@dataclass(frozen=True)
class Leaderless:
    """A cluster, and the bytes of the replicas that its live brokers have of the topics in question."""

    cluster: Snapshot
    sizes: Mapping[Place, int] = field(default_factory=dict)


def plan_unclean(state: Leaderless, topics: Collection[str], allow: Collection[str]) -> Plan:
    """The Plan that gives a leader to each partition of `topics` that has none.

    As the controller does it: the first replica in the list that is alive and in sync; where none is,
    the first that is alive, and this is what needs consent. A partition without a live replica is
    named in a warning: nobody could lead it.
    """
    snapshot = state.cluster
    alive = {broker.id for broker in snapshot.brokers}
    changes: List[Change] = []
    refusals = _unknown(snapshot, topics)
    waiting: List[str] = []
    for name in sorted(set(topics) & set(snapshot.topics)):
        for partition in snapshot.topics[name].partitions:
            if partition.leader is not None:
                continue
            subject = partition_name(name, partition.id)
            living = [broker for broker in partition.replicas if broker in alive]
            clean = [broker for broker in living if broker in partition.isr]
            if not living:
                waiting.append(f"{subject} (brokers {', '.join(map(str, partition.replicas))})")
                continue
            leader = (clean or living)[0]
            note = "" if clean else _loss(name, partition, living, state.sizes)
            if clean or UNCLEAN_ELECTION in allow:
                changes.append(Change(ELECT, subject, {"leader": None}, {"leader": leader}, note))
                continue
            refusals.append(_unclean(subject, partition, living, note))
    return Plan(tuple(changes), tuple(refusals), _left_alone(waiting, "no replica is alive"))


def _unclean(subject: str, partition: Partition, living: Sequence[int], loss: str) -> Problem:
    # KRaft empties the ISR when the last one that is in it goes; then it is one of those that are dead.
    dead = [broker for broker in partition.replicas if broker not in living]
    last = ", ".join(map(str, partition.isr or dead))
    who = f"broker {last} was the last" if partition.isr else f"down: {last or 'none'}"
    start = f"start broker {last} (playbooks/start.yml starts what is down)" if last else "wait"
    return Problem(
        "unclean.leader",
        f"no replica that is in sync is alive ({who}); {loss}",
        f"{start}, or consent with allow: [{UNCLEAN_ELECTION}]",
        (subject,),
    )


def _loss(
    topic: str, partition: Partition, living: Sequence[int], sizes: Mapping[Place, int]
) -> str:
    """What an unclean election costs. How far the dead ones were, nobody can say."""
    leader = living[0]
    bytes_of = {
        broker: sizes[(broker, (topic, partition.id))]
        for broker in living
        if (broker, (topic, partition.id)) in sizes
    }
    text = (
        f"broker {leader} would lead, and every acknowledged record that it lacks is lost for good"
    )
    if leader not in bytes_of:
        return f"{text}; how much it has is not known"
    text = f"{text}; it has {approximate_size(bytes_of[leader])}"
    fuller = max(bytes_of, key=lambda broker: (bytes_of[broker], -broker))
    if bytes_of[fuller] > bytes_of[leader]:
        text += (
            f", and broker {fuller}, which stands behind it in the list of replicas, "
            f"{approximate_size(bytes_of[fuller])}"
        )
    return text
