# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finalised features as a Resource: what the runner needs to know to raise them.

Private to this collection. The glue between `plan`, which decides, and `client`, which does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.features.client import (
    FeaturesClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.features.plan import (
    parse_levels,
    plan_levels,
    raised,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource


@dataclass(frozen=True)
class FeatureSnapshot:
    """The finalised levels, as the broker knows them that has the highest ones."""

    cluster_id: Optional[str]
    levels: Mapping[str, int]


class Features(Resource):
    """The features of one task."""

    client: FeaturesClient

    def __init__(self, client: FeaturesClient, params: Mapping[str, Any]):
        self.client = client
        self._wanted, self._refusals = parse_levels(params["levels"])

    def read(self) -> FeatureSnapshot:
        """The features as every live broker knows them: one request each, beside the metadata."""
        metadata = self.client.fetch_metadata()
        told = self.client.fetch_levels(each.id for each in metadata.brokers)
        highest: Dict[str, int] = {}
        for levels in told.values():
            for name, level in levels.items():
                highest[name] = max(level, highest.get(name, 0))
        return FeatureSnapshot(metadata.cluster_id, highest)

    def plan(self, snapshot: FeatureSnapshot) -> Plan:
        """The plan, and every level that could not be read."""
        return plan_levels(self._wanted, snapshot.levels).refusing(self._refusals)

    def validate(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """What the active controller would refuse: a feature, or a level, that a node does not support."""
        return self.client.raise_levels(changes, deadline, validate_only=True)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Raise all of them in one request."""
        return self.client.raise_levels(changes, deadline)

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """What not every live broker knows yet."""
        brokers = [each.id for each in self.client.fetch_metadata().brokers]
        told = self.client.fetch_levels(brokers)
        waiting = {}
        for broker in brokers:
            for change in changes:
                if told.get(broker, {}).get(change.subject, 0) < change.after["level"]:
                    waiting[change.subject] = f"broker {broker} does not have it yet"
        return waiting

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """The levels as they are now, or would be."""
        return {
            "cluster_id": outcome.snapshot.cluster_id,
            "levels": dict(raised(outcome.snapshot.levels, outcome.changed)),
        }


# The module's own options; their documentation is in the module.
FEATURE_OPTIONS = dict(
    levels=dict(type="dict", required=True),
    operation_timeout=dict(type="float", default=60.0),
)
