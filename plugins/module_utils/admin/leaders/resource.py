# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leadership as a Resource: what the runner needs to give it back to the preferred leaders.

Private to this collection. The glue between `plan`, which decides, and `client.kafka`,
which does.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, List, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import KafkaClient
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.leaders.plan import (
    ELECT,
    plan_preferred,
    preferred,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Snapshot,
    partition_name,
    partition_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource


class PreferredLeaders(Resource):
    """The leaders of all topics, or of some."""

    def __init__(self, client: KafkaClient, topics: Optional[Collection[str]]):
        self.client = client
        self._topics = topics

    def read(self) -> Snapshot:
        """All partitions, without settings: one request."""
        return self.client.fetch_metadata()

    def plan(self, snapshot: Snapshot) -> Plan:
        """The partitions that another broker leads than the preferred one."""
        return plan_preferred(snapshot, self._topics)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Elect, in batches."""
        failed = self.client.elect_preferred(
            [partition_of(change.subject) for change in changes], deadline
        )
        return [
            Failure(partition_name(*key), text, ELECT, code)
            for key, (text, code) in sorted(failed.items())
        ]

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """Partitions of which the leader has not moved yet, or has moved on, as any broker sees it.

        Brokers learn of it one after another: who asks next may ask one that knows of nothing yet.
        """
        snapshot = self.client.fetch_metadata()
        found = _led_by_others(snapshot, changes)
        for broker, view in {} if found else self.client.fetch_every_view(snapshot).items():
            for subject, text in _led_by_others(view, changes).items() if view else ():
                found[subject] = f"broker {broker} still says: {text}"
        return found

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns beside the plan."""
        snapshot: Snapshot = outcome.snapshot
        partitions = [part for topic in snapshot.topics.values() for part in topic.partitions]
        apart = sum(preferred(part) != part.leader for part in partitions)
        return {
            "cluster_id": snapshot.cluster_id,
            "partition_count": len(partitions),
            "not_preferred": apart - len(outcome.changed),
        }


def _led_by_others(snapshot: Snapshot, changes: Sequence[Change]) -> Dict[str, str]:
    """Partitions that another broker leads than they were to get, with words that name it."""
    leaders = {
        partition_name(name, part.id): part.leader
        for name, topic in snapshot.topics.items()
        for part in topic.partitions
    }
    return {
        change.subject: f"led by broker {leaders[change.subject]}"
        for change in changes
        if leaders.get(change.subject, change.after["leader"]) != change.after["leader"]
    }


# The module's own options; their documentation is in the module.
ELECTION_OPTIONS = dict(
    topics=dict(type="list", elements="str"),
    operation_timeout=dict(type="float", default=60.0),
)
