# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which partitions an election gives back to their preferred leaders. Pure.

Private to this collection. The first replica of a partition is its preferred leader. A restart moves
leadership away from it, and Kafka by itself gives it back only every 300 s, and only beyond an
imbalance of 10 % (`leader.imbalance.*`).
"""

from __future__ import annotations

from typing import Collection, List, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Partition,
    Snapshot,
    partition_name,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import did_you_mean
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change, Plan
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

ELECT = "elect"
SHOWN = 10


def preferred(partition: Partition) -> Optional[int]:
    """Id of the preferred leader, None for a partition without replicas."""
    return partition.replicas[0] if partition.replicas else None


def plan_preferred(snapshot: Snapshot, topics: Optional[Collection[str]] = None) -> Plan:
    """The Plan of one preferred election over `topics` (None: all, internal ones included).

    A preferred leader that is dead or not in sync cannot be elected. Its partitions are left as they are and
    named in a warning: they are nothing to fail about, since somebody else leads them.
    """
    refusals = [
        Problem(
            "topics.unknown",
            f"there is no such topic{did_you_mean(name, snapshot.topics)}",
            "correct the name, or leave topics out for all",
            (name,),
        )
        for name in sorted(set(topics or ()) - set(snapshot.topics))
    ]
    # A dead broker may be the last that was in sync, and stays in the ISR.
    alive = {broker.id for broker in snapshot.brokers}
    changes: List[Change] = []
    waiting: List[str] = []
    for name in sorted(snapshot.topics if topics is None else set(topics) & set(snapshot.topics)):
        for partition in snapshot.topics[name].partitions:
            wanted = preferred(partition)
            if wanted is None or wanted == partition.leader:
                continue
            subject = partition_name(name, partition.id)
            if wanted in alive and wanted in partition.isr:
                before, after = {"leader": partition.leader}, {"leader": wanted}
                changes.append(Change(ELECT, subject, before, after))
            else:
                waiting.append(f"{subject} (broker {wanted})")
    warnings = []
    if waiting:
        more = f", and {len(waiting) - SHOWN} more" if len(waiting) > SHOWN else ""
        warnings.append(
            "left as they are, because the preferred leader is not there or not in sync: "
            f"{', '.join(waiting[:SHOWN])}{more}"
        )
    return Plan(tuple(changes), tuple(refusals), tuple(warnings))
