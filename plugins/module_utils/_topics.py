# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topics as a Resource: what the runner needs to know to reconcile them.

Private to this collection. The glue between `_plan_topics`, which decides, and `_client_kafka`,
which does.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from ansible_collections.kafkaops.cluster.plugins.module_utils._model import (
    Broker,
    Snapshot,
    parse_topics,
    parse_topics_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan import AdminError, Plan
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan_topics import (
    CREATE,
    Purge,
    TopicPolicy,
    apply_to,
    plan_topics,
    subjects_at_stake,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._runner import Resource

# Said of a creation while the topic is still being deleted, or while a broker does not know yet.
_ALREADY_EXISTS = "already exists"
_UNKNOWN = "Unknown topic or partition"


def policy_from(params):
    """The TopicPolicy of a module's parameters; AdminError for a pattern that is none."""
    purge = None
    if params["purge"]:
        for pattern in params["purge"]["patterns"]:
            try:
                re.compile(pattern)
            except re.error as error:
                raise AdminError(
                    f"[purge.pattern] purge: patterns={pattern}: not a regular expression, "
                    f"{error}. Remedy: correct it."
                ) from error
        purge = Purge(tuple(params["purge"]["patterns"]), params["purge"]["maximum"])
    return TopicPolicy(
        replace=params["config_mode"] == "replace",
        allow_partition_growth=params["allow_partition_growth"],
        allow_retention_cut=params["allow_retention_cut"],
        allow_cleanup_change=params["allow_cleanup_change"],
        allow_delete=params["allow_delete"],
        allow_internal=frozenset(params["allow_internal"]),
        purge=purge,
    )


def read_items(params):
    """The items of `topics`, or of the file `src`; AdminError if it cannot be read."""
    if params["src"] is None:
        return params["topics"]
    try:
        with open(params["src"], encoding="utf-8") as stream:
            return parse_topics_text(stream.read(), params["src"])
    except (OSError, ValueError) as error:
        raise AdminError(f"[topics.src] src={params['src']}: {error}.") from error
    except ImportError as error:
        raise AdminError(
            f"[topics.src] src={params['src']}: reading YAML needs PyYAML. Remedy: install it, "
            "or give JSON."
        ) from error


class Topics(Resource):
    """The declared topics of one task."""

    def __init__(self, client, items, params, check_mode):
        self.client = client
        self.desired, self.refusals = parse_topics(items)
        self.policy = policy_from(params)
        self._params = params
        self._check_mode = check_mode
        self._assumed = None
        self._table = _known_keys(params.get("config_keys_file"))

    def connect(self):
        """Reach the cluster, unless it may be assumed empty."""
        try:
            self.client.connect()
        except AdminError as error:
            lenient = self._params["assume_empty_if_unreachable"] and self._check_mode
            if not lenient or error.details.get("reachable", True):
                raise
            count = self._params["expected_brokers"] or 0
            brokers = tuple(Broker(index, "", 0) for index in range(1, count + 1))
            self._assumed = Snapshot(brokers=brokers, assumed=True)

    def read(self):
        snapshot = self._assumed
        if snapshot is None:
            names = [topic.name for topic in self.desired]
            snapshot = self.client.fetch_topics(names)
        if snapshot.known_keys is None and self._table:
            snapshot = replace(snapshot, known_keys=self._table)
        return snapshot

    def plan(self, snapshot):
        cuts = subjects_at_stake(self.desired, snapshot, self.policy)
        if cuts:
            snapshot = replace(snapshot, stakes=self.client.fetch_stakes(snapshot, cuts))
        plan = plan_topics(self.desired, snapshot, self.policy)
        warnings = plan.warnings
        if snapshot.assumed:
            warnings += ("no broker can be reached; planned against an empty cluster",)
        return Plan(plan.changes, self.refusals + plan.refusals, warnings)

    def stale(self, failure):
        if failure.kind == CREATE:
            return _ALREADY_EXISTS in failure.error or "marked for deletion" in failure.error
        return _UNKNOWN in failure.error

    def validate(self, changes, deadline):
        return [] if self._assumed else self.client.validate(changes, deadline)

    def apply(self, changes, deadline):
        return self.client.apply(changes, deadline)

    def unsettled(self, changes):
        return self.client.unsettled(changes)

    def results(self, outcome):
        """What the module returns about topics: as they are now, or would be."""
        snapshot = outcome.snapshot
        after = apply_to(snapshot, Plan(outcome.changed))
        return {
            "cluster_id": snapshot.cluster_id,
            "topics": [
                describe(after.topics[topic.name])
                for topic in sorted(self.desired, key=lambda item: item.name)
                if topic.name in after.topics
            ],
        }


def describe(topic):
    """A topic as modules return it."""
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "replication_factor": max(topic.replication_factors, default=0),
        "config": {
            key: entry.value
            for key, entry in sorted((topic.config or {}).items())
            if entry.source == "topic"
        },
    }


def _known_keys(path):
    if not path:
        return None
    try:
        with open(path, encoding="utf-8") as stream:
            return frozenset(json.load(stream)["topic"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AdminError(f"config_keys_file={path}: cannot be read: {error}.") from error


# The module's own options; their documentation is in the module.
TOPIC_OPTIONS = dict(
    topics=dict(
        type="list",
        elements="dict",
        options=dict(
            name=dict(type="str", required=True),
            state=dict(type="str", choices=["present", "absent"], default="present"),
            # raw: what is wrong with them is said together with everything else.
            partitions=dict(type="raw"),
            replication_factor=dict(type="raw"),
            retention=dict(type="raw"),
            retention_size=dict(type="raw"),
            cleanup=dict(type="raw"),
            config=dict(type="dict"),
        ),
    ),
    src=dict(type="path"),
    config_mode=dict(type="str", choices=["merge", "replace"], default="merge"),
    allow_partition_growth=dict(type="bool", default=False),
    allow_retention_cut=dict(type="bool", default=False),
    allow_cleanup_change=dict(type="bool", default=False),
    allow_delete=dict(type="bool", default=False),
    allow_internal=dict(type="list", elements="str", default=[]),
    purge=dict(
        type="dict",
        options=dict(
            patterns=dict(type="list", elements="str", required=True),
            maximum=dict(type="int", required=True),
        ),
    ),
    operation_timeout=dict(type="float", default=300.0),
    assume_empty_if_unreachable=dict(type="bool", default=False),
    expected_brokers=dict(type="int"),
    config_keys_file=dict(type="path", no_log=False),
)
