# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client quotas as a Resource: what the runner needs to know to reconcile them.

Private to this collection. The glue between `plan`, which decides, and `client`, which does.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.purge import (
    PURGE_OPTION,
    purge_from,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.client import (
    QuotasClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.entities import (
    entity_of,
    operations,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.plan import (
    QUOTA_ITEM,
    QuotaSnapshot,
    apply_to,
    describe,
    left_of,
    parse_quotas,
    plan_quotas,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource


class Quotas(Resource):
    """The declared quotas of one task."""

    client: QuotasClient

    def __init__(self, client: QuotasClient, params: Mapping[str, Any]):
        self.client = client
        self.desired, self._refusals = parse_quotas(params["quotas"])
        self._replacing = params["limits_mode"] == "replace"
        self._purge = purge_from(params["purge"])
        # What there was when the changes were made.
        self._found: Optional[QuotaSnapshot] = None

    def read(self) -> QuotaSnapshot:
        """All quotas of the cluster: one request beside the metadata."""
        return read_quotas(self.client)

    def plan(self, snapshot: QuotaSnapshot) -> Plan:
        """The plan, and every item that could not be read."""
        plan = plan_quotas(self.desired, snapshot, self._replacing, self._purge)
        return plan.refusing(self._refusals)

    def validate(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """What the brokers would refuse."""
        return self.client.alter_quotas(changes, deadline, validate_only=True)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Make what is left of the changes, in batches.

        Brokers do not tell what a limit was that they overwrite, so they are asked once more.
        """
        found = self._found = read_quotas(self.client)
        left, moot = left_of(changes, found.quotas)
        self.made = {change.subject: change for change in left}
        return moot + self.client.alter_quotas(left, deadline)

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """What not every live broker shows yet."""
        brokers = [broker.id for broker in self.client.fetch_metadata().brokers]
        waiting = {}
        for broker, quotas in zip(brokers, self.client.fetch_quotas(brokers)):
            for change in changes:
                limits = quotas.get(entity_of(change.subject), {})
                if any(limits.get(key) != value for key, value in operations(change).items()):
                    waiting[change.subject] = f"broker {broker} does not have it yet"
        return waiting

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """The declared quotas as they are now, or would be."""
        after = apply_to(self._found or outcome.snapshot, outcome.changed).quotas
        return {
            "cluster_id": outcome.snapshot.cluster_id,
            "quotas": [
                describe(quota.entity, after[quota.entity])
                for quota in sorted(self.desired, key=lambda each: each.entity.subject)
                if quota.entity in after
            ],
        }


def read_quotas(client: QuotasClient) -> QuotaSnapshot:
    """The quotas of a cluster, as any one broker tells them."""
    cluster_id = client.fetch_metadata().cluster_id
    (quotas,) = client.fetch_quotas()
    return QuotaSnapshot(cluster_id, quotas)


def all_quotas(client: QuotasClient) -> Dict[str, Any]:
    """What kafka_quotas_info returns: every quota, in the order of their names."""
    client.connect()
    snapshot = read_quotas(client)
    return {
        "cluster_id": snapshot.cluster_id,
        "quotas": [
            describe(entity, snapshot.quotas[entity])
            for entity in sorted(snapshot.quotas, key=lambda each: each.subject)
        ],
    }


# The module's own options; their documentation is in the module.
QUOTA_OPTIONS = dict(
    quotas=dict(
        type="list",
        elements="dict",
        required=True,
        options=QUOTA_ITEM,
    ),
    limits_mode=dict(type="str", choices=["merge", "replace"], default="merge"),
    purge=PURGE_OPTION,
    operation_timeout=dict(type="float", default=60.0),
)
