# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topics as a Resource: what the runner needs to know to reconcile them.

Private to this collection. The glue between `plan`, which decides, and `client.kafka`,
which does.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    PythonClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.reading import (
    with_config,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settled import (
    unsettled,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    CONFIGURE,
    CREATE,
    Broker,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    Plan,
    left_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.purge import (
    PURGE_OPTION,
    purge_from,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import (
    OPERATION_MAX_SECONDS,
    checked_seconds,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.dangers import CONSENTS
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    DesiredTopic,
    parse_topics,
    parse_topics_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.plan import (
    TopicPolicy,
    apply_to,
    asked_by,
    plan_topics,
    subjects_at_stake,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# Codes of the brokers while their views differ, by the protocol's names.
_ALREADY_EXISTS = "TOPIC_ALREADY_EXISTS"
_UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PART"


def policy_from(params: Mapping[str, Any]) -> TopicPolicy:
    """The TopicPolicy of a module's parameters; AdminError for a pattern that cannot be one."""
    return TopicPolicy(
        replace=params["config_mode"] == "replace",
        allow=frozenset(params["allow"]),
        allow_internal=frozenset(params["allow_internal"]),
        purge=purge_from(params["purge"]),
    )


def read_items(params: Mapping[str, Any]) -> List[Any]:
    """The items of `topics`, or of the file `src`; AdminError if it cannot be read."""
    if params["src"] is None:
        return params["topics"]
    path = params["src"]
    try:
        with open(path, encoding="utf-8") as stream:
            return parse_topics_text(stream.read(), path)
    except (OSError, ValueError) as error:
        problem = Problem("topics.src", str(error), "correct it", setting="src", value=path)
        raise AdminError(problem) from error
    except ImportError as error:
        reason, remedy = "reading YAML needs PyYAML", "install it, or give JSON"
        raise AdminError(
            Problem("topics.src", reason, remedy, setting="src", value=path)
        ) from error


def topics_of(connection: Connection, params: Mapping[str, Any], check_mode: bool) -> Topics:
    """The declared topics of a task with these parameters, unconnected."""
    return Topics(PythonClient(connection), read_items(params), params, check_mode)


class Topics(Resource):
    """The declared topics of one task."""

    def __init__(
        self,
        client: PythonClient,
        items: Sequence[Any],
        params: Mapping[str, Any],
        check_mode: bool,
    ):
        checked_seconds("operation_timeout", params["operation_timeout"], OPERATION_MAX_SECONDS)
        self.client = client
        self.desired, self.refusals = parse_topics(items)
        self.policy = policy_from(params)
        self._params = params
        self._check_mode = check_mode
        self._assumed: Optional[Snapshot] = None
        self._table = _known_keys(params.get("config_keys_file"))
        # The cluster that was planned for, and as it was when the changes were made.
        self._planned = Snapshot()
        self._found: Optional[Snapshot] = None

    def connect(self) -> None:
        """Reach the cluster, unless it may be assumed empty."""
        try:
            self.client.connect()
        except AdminError as error:
            lenient = self._params["assume_empty_if_unreachable"] and self._check_mode
            if not lenient or error.reachable:
                raise
            count = self._params["expected_brokers"] or 0
            brokers = tuple(Broker(index, "", 0) for index in range(1, count + 1))
            self._assumed = Snapshot(brokers=brokers, assumed=True)

    def read(self) -> Snapshot:
        """The cluster with the settings of the declared topics, or the empty one."""
        snapshot = self._assumed
        if snapshot is None:
            names = [topic.name for topic in self.desired]
            snapshot = self.client.fetch_topics(names)
        if snapshot.known_keys is None and self._table:
            snapshot = replace(snapshot, known_keys=self._table)
        return snapshot

    def plan(self, snapshot: Snapshot) -> Plan:
        """The plan, with what is at stake; and every item that could not be read."""
        self._planned = snapshot
        plan = self._with_stakes(self.desired, snapshot, self.policy)
        warnings = plan.warnings
        if snapshot.assumed:
            warnings += ("no broker can be reached; planned against an empty cluster",)
        if snapshot.defaults_denied and plan:
            warnings += (
                "this user may not see the brokers' settings (DescribeConfigs on the cluster), so "
                "what follows from their defaults is judged by the brokers alone",
            )
        return Plan(plan.changes, self.refusals + plan.refusals, warnings)

    def _with_stakes(
        self, desired: Sequence[DesiredTopic], snapshot: Snapshot, policy: TopicPolicy
    ) -> Plan:
        """The plan; the cluster is asked what is at stake where something is."""
        cuts = subjects_at_stake(desired, snapshot, policy)
        if cuts:
            snapshot = replace(snapshot, stakes=self.client.fetch_stakes(snapshot, cuts))
        return plan_topics(desired, snapshot, policy)

    def stale(self, failure: Failure) -> str:
        """A creation of what exists, or a change of what does not: brokers disagree for a while."""
        # The code is the same while the topic is marked for deletion.
        if failure.kind == CREATE and failure.code == _ALREADY_EXISTS:
            return "no broker shows it to this user: is the right to Describe missing?"
        if failure.kind != CREATE and failure.code == _UNKNOWN_TOPIC:
            return "a broker shows it, the controller does not"
        return ""

    def validate(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """What the brokers would refuse; nothing for a cluster that is assumed."""
        return [] if self._assumed else self.client.validate(changes, deadline)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Make what is left of the changes, in batches.

        Brokers do not tell what a setting was that they overwrite. So the topics that get other settings are read
        once more: what somebody else has set to the same is not ours, and what has become dangerous by it needs
        consent.
        """
        left, failures = self._left_of(changes)
        return failures + self.client.apply(left, deadline)

    def _left_of(self, changes: Sequence[Change]) -> Tuple[List[Change], List[Failure]]:
        """(what is left of the changes at this moment, failures of the rest)."""
        configured = [change for change in changes if change.kind == CONFIGURE]
        if not configured:
            return list(changes), []
        then, defaults = self._planned.topics, self._planned.broker_defaults
        configs = self.client.fetch_configs([change.subject for change in configured])
        # Of a topic that is gone the brokers say so.
        now = {name: with_config(then[name], each, defaults) for name, each in configs.items()}
        self._found = replace(self._planned, topics={**then, **now})
        others = [
            change
            for change in configured
            if change.subject in now and now[change.subject] != then[change.subject]
        ]
        policy = replace(self.policy, replace=False, purge=None)
        plan = self._with_stakes(asked_by(others), self._found, policy)
        made, failures = left_of(others, plan)
        self.made = {change.subject: change for change in made}
        failed = {failure.subject for failure in failures}
        left = [
            change for change in changes if change.kind != CONFIGURE or change.subject not in failed
        ]
        return list(self.as_made(left)), failures

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """What not every live broker shows yet."""
        return unsettled(self.client, changes)

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns about topics: as they are now, or would be."""
        snapshot = self._found or outcome.snapshot
        after = apply_to(snapshot, Plan(outcome.changed))
        return {
            "cluster_id": snapshot.cluster_id,
            "topics": [
                describe(after.topics[topic.name])
                for topic in sorted(self.desired, key=lambda item: item.name)
                if topic.name in after.topics
            ],
        }


def describe(topic: Topic) -> Dict[str, Any]:
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


def _known_keys(path: Optional[str]) -> Optional[FrozenSet[str]]:
    if not path:
        return None
    try:
        with open(path, encoding="utf-8") as stream:
            return frozenset(json.load(stream)["topic"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AdminError(
            Problem(
                "options.file",
                f"cannot be read: {error}",
                "name a JSON file with the key topic, or leave the option out",
                setting="config_keys_file",
                value=path,
            )
        ) from error


# The module's own options; their documentation is in the module.
TOPIC_OPTIONS = dict(
    topics=dict(
        type="list",
        elements="dict",
        options=dict(
            # raw: what is wrong with them is said together with everything else; and a name that
            # YAML has read as a number or a boolean must not become a text silently.
            name=dict(type="raw", required=True),
            state=dict(type="str", choices=["present", "absent"], default="present"),
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
    allow=dict(type="list", elements="str", choices=list(CONSENTS), default=[]),
    allow_internal=dict(type="list", elements="str", default=[]),
    purge=PURGE_OPTION,
    operation_timeout=dict(type="float", default=300.0),
    assume_empty_if_unreachable=dict(type="bool", default=False),
    expected_brokers=dict(type="int"),
    config_keys_file=dict(type="path", no_log=False),
)
# Keyword arguments of AnsibleModule that go with them.
TOPIC_RULES: Dict[str, Any] = dict(
    mutually_exclusive=[("topics", "src")], required_one_of=[("topics", "src")]
)
