# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deleted records as a Resource: what the runner needs to know.

Private to this collection. The glue between `plan`, which decides, and `client`, which
does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Snapshot,
    partition_name,
    partition_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    CHANGED,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.records.client import (
    RecordsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.records.plan import (
    CONSENTS,
    DELETE_RECORDS,
    Extent,
    parse_cuts,
    plan_records,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource


class Records(Resource):
    """The records of one task that are to be gone."""

    def __init__(self, client: RecordsClient, params: Mapping[str, Any]):
        self.client: RecordsClient = client
        self._desired, self._refusals = parse_cuts(params["topics"], client.now_ms())
        self._allow = frozenset(params["allow"])
        self._allow_internal = frozenset(params["allow_internal"])
        self._found = Extent(Snapshot())

    def read(self) -> Extent:
        """The topics with their settings, both ends of their partitions, and offsets of moments."""
        cluster = self.client.fetch_topics([cut.topic for cut in self._desired])
        present = {cut.topic for cut in self._desired}.intersection(cluster.topics)
        ids = self.client.fetch_topic_ids(present)
        led = cluster.led
        keys = {
            cut: [key for key in cut.keys(cluster.topics.get(cut.topic)) if key in led]
            for cut in self._desired
        }
        everything = sorted(key for each in keys.values() for key in each)
        starts, ends = self.client.fetch_both_ends(everything)
        asked = {
            key: cut.before_ms
            for cut, each in keys.items()
            if cut.before_ms is not None
            for key in each
        }
        moments = {key: told[0] for key, told in self.client.fetch_since(asked).items()}
        names = sorted({key[0] for key in everything})
        sizes, unknown = self.client.fetch_sizes(names) if names else ({}, "")
        return Extent(cluster, starts, ends, moments, sizes, unknown, ids)

    def plan(self, snapshot: Extent) -> Plan:
        """The plan, and every item that could not be read."""
        self._found = snapshot
        plan = plan_records(self._desired, snapshot, self._allow, self._allow_internal)
        return plan.refusing(self._refusals)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Delete what is left, in batches.

        A topic that was made anew since the plan has other records, at the same offsets. And brokers do not
        tell whether somebody else has deleted records before: they are asked where partitions begin now.
        """
        places = {change.subject: partition_of(change.subject) for change in changes}
        ids = self.client.fetch_topic_ids({name for name, _partition in places.values()})
        failures: List[Failure] = []
        same: List[Change] = []
        for change in changes:
            name = places[change.subject][0]
            if ids.get(name) == self._found.ids.get(name):
                same.append(change)
                continue
            what = "was made anew" if name in ids else "was deleted"
            words = f"the topic {what} meanwhile, and none of its records was touched"
            failures.append(Failure(change.subject, words, change.kind, CHANGED))
        starts, _ends = self.client.fetch_both_ends([places[each.subject] for each in same])
        found = replace(self._found, starts={**self._found.starts, **starts})
        plan = plan_records(self._desired, found, self._allow, self._allow_internal)
        fresh = {each.subject: each for each in plan.changes}
        self.made = {each.subject: fresh[each.subject] for each in same if each.subject in fresh}
        failures += [
            Failure(each.subject, "somebody else has deleted them", each.kind, moot=True)
            for each in same
            if each.subject not in fresh
        ]
        offsets = {places[name]: each.after["first_offset"] for name, each in self.made.items()}
        refused = self.client.delete_records(offsets, deadline)
        return failures + [
            Failure(partition_name(*key), text, DELETE_RECORDS, code)
            for key, (text, code) in sorted(refused.items())
        ]

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """Partitions that still begin with an earlier record; of a topic that is gone nothing is left."""
        places = {change.subject: partition_of(change.subject) for change in changes}
        starts, _ends = self.client.fetch_both_ends(list(places.values()))
        found = {}
        for change in changes:
            start = starts.get(places[change.subject])
            if start is not None and start < change.after["first_offset"]:
                found[change.subject] = f"begins at {start}"
        return found

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns beside the plan."""
        deleted = sum(
            change.after["first_offset"] - change.before["first_offset"]
            for change in outcome.changed
        )
        return {"cluster_id": outcome.snapshot.cluster.cluster_id, "records": deleted}


# The module's own options; their documentation is in the module.
RECORD_OPTIONS = dict(
    topics=dict(
        type="list",
        elements="dict",
        required=True,
        options=dict(
            # raw: a name that YAML has read as a number must not become a text silently
            name=dict(type="raw", required=True),
            partitions=dict(type="list", elements="int"),
            before_offset=dict(type="int"),
            before_time=dict(type="str"),
            all=dict(type="bool", default=False),
        ),
    ),
    allow=dict(type="list", elements="str", choices=list(CONSENTS), default=[]),
    allow_internal=dict(type="list", elements="str", default=[]),
    operation_timeout=dict(type="float", default=60.0),
)
