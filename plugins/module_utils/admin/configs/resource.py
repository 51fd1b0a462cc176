# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of running brokers as a Resource: what the runner needs to know to reconcile them.

Private to this collection. The glue between `plan`, which decides, and `client`, which
does. Secrets are in what is sent, and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.client import (
    ConfigsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.items import (
    CONFIG_ITEM,
    Values,
    parse_configs,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.plan import (
    CONSENTS,
    ConfigsPolicy,
    DesiredScope,
    apply_to,
    asked_by,
    cuts_of,
    describe,
    is_secret_setting,
    own_settings,
    plan_configs,
    scope_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.scopes import (
    BROKER,
    CLUSTER,
    LOGGERS,
    ConfigsSnapshot,
    Scope,
    inherited_level,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    Plan,
    left_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.stakes import sum_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.features import (
    ELIGIBLE_LEADERS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    masked,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

MIN_INSYNC = "min.insync.replicas"


class Configs(Resource):
    """The declared settings of one task."""

    client: ConfigsClient

    def __init__(self, client: ConfigsClient, params: Mapping[str, Any]):
        self.client = client
        self._items = params["configs"]
        self._policy = ConfigsPolicy(
            replace=params["config_mode"] == "replace",
            allow=frozenset(params["allow"]),
            always_set_secrets=params["update_secrets"] == "always",
            plugin_prefixes=tuple(params["plugin_prefixes"]),
        )
        self._desired: Dict[Scope, DesiredScope] = {}
        # What there was when the changes were made.
        self._found: Optional[ConfigsSnapshot] = None

    def read(self) -> ConfigsSnapshot:
        """All live brokers: one request each, beside the metadata."""
        loggers: Optional[List[int]] = []
        for item in self._items:
            if item["scope"] == LOGGERS and loggers is not None:
                named = item.get("brokers")
                loggers = None if named is None else loggers + list(named)
        snapshot = read_configs(self.client, loggers)
        if self._policy.replace and MIN_INSYNC in snapshot.cluster:
            # A cluster with ZooKeeper has no features.
            if self.client.fetch_features(()).get(ELIGIBLE_LEADERS):
                return replace(snapshot, fixed=frozenset({MIN_INSYNC}))
        return snapshot

    def plan(self, snapshot: ConfigsSnapshot) -> Plan:
        """The plan, with what is at stake; and every item that could not be read."""
        desired, refusals = parse_configs(self._items, sorted(snapshot.brokers))
        self._desired = {each.scope: each for each in desired}
        return self._planned(desired, snapshot, self._policy).refusing(refusals)

    def _planned(
        self, desired: Sequence[DesiredScope], snapshot: ConfigsSnapshot, policy: ConfigsPolicy
    ) -> Plan:
        """The plan; the cluster is asked what is at stake where something is."""
        consenting = replace(policy, allow=frozenset(CONSENTS))
        changes = plan_configs(desired, snapshot, consenting).changes
        if any(change.note for change in changes):
            snapshot = self._with_stakes(snapshot, apply_to(snapshot, changes))
        return plan_configs(desired, snapshot, policy)

    def _with_stakes(self, before: ConfigsSnapshot, after: ConfigsSnapshot) -> ConfigsSnapshot:
        """The snapshot with how much the topics hold that a danger concerns."""
        topics = self.client.fetch_topics((), chosen=lambda name: True)
        cuts = cuts_of(before, after, topics)
        stake = sum_of(self.client.fetch_stakes(topics, cuts).values())
        return replace(before, stake=stake, stake_topics=tuple(sorted(cuts)))

    def _wanted(self, changes: Sequence[Change]) -> Dict[Scope, Values]:
        """What is sent for the changes, secrets included."""
        wanted = {}
        for change in changes:
            scope = scope_of(change.subject)
            said = self._desired[scope]
            values = {**said.settings, **said.secrets}
            wanted[scope] = {key: values.get(key) for key in change.after}
        return wanted

    def _alter(
        self, changes: Sequence[Change], deadline: float, validate_only: bool
    ) -> List[Failure]:
        failed = self.client.alter_settings(self._wanted(changes), deadline, validate_only)
        return [
            Failure(scope.subject, words, change.kind, code)
            for change in changes
            for scope, (words, code) in failed.items()
            if scope.subject == change.subject
        ]

    def validate(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """What the brokers would refuse."""
        return self._alter(changes, deadline, validate_only=True)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Make what is left of the changes.

        Brokers do not tell what a setting was that they overwrite. So they are read once more: what somebody
        else has set to the same is not ours, and what has become dangerous by it needs consent.
        """
        self._found = self.read()
        left, failures = self._left_of(changes, self._found)
        self.made = {change.subject: change for change in left}
        return failures + self._alter(left, deadline, validate_only=False)

    def _left_of(
        self, changes: Sequence[Change], now: ConfigsSnapshot
    ) -> Tuple[List[Change], List[Failure]]:
        """(what is left of the changes at this moment, failures of the rest).

        What is safe together may not be without what is refused: an override that goes makes way for the
        default of all, which is then another one. So the rest is judged once more.
        """
        policy = replace(self._policy, replace=False)
        refused: List[Failure] = []
        while True:
            plan = self._planned(asked_by(changes, self._desired, now), now, policy)
            left, failures = left_of(changes, plan)
            worse = [each for each in failures if not each.moot]
            if not worse:
                return left, refused + failures
            refused += worse
            gone = {each.subject for each in worse}
            changes = [change for change in changes if change.subject not in gone]

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """What not every live broker shows yet."""
        wanted = self._wanted(changes)
        loggers = [scope.broker for scope in wanted if scope.kind == LOGGERS]
        snapshot = read_configs(self.client, [each for each in loggers if each is not None])
        waiting = {}
        for scope, values in wanted.items():
            late = sorted(
                key for key, value in values.items() if not _took(scope, key, value, snapshot)
            )
            if late:
                waiting[scope.subject] = f"{', '.join(late)} not yet in force"
        return waiting

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns about the declared settings: as they are now, or would be."""
        after = apply_to(self._found or outcome.snapshot, outcome.changed)
        named = {
            (broker, key)
            for scope, said in self._desired.items()
            if scope.kind != LOGGERS
            for broker in (after.brokers if scope.broker is None else [scope.broker])
            for key in (*said.settings, *said.secrets)
        }
        return {
            "cluster_id": after.cluster_id,
            "settings": [
                describe(after.brokers[broker][key], broker)
                for broker, key in sorted(named)
                if key in after.brokers.get(broker, {})
            ],
        }


def _took(scope: Scope, key: str, value: Optional[str], snapshot: ConfigsSnapshot) -> bool:
    """Whether a change can be seen: on the broker, or on every one that knows the setting."""
    if scope.kind == LOGGERS:
        levels = snapshot.loggers.get(scope.broker or 0, {})
        wanted = inherited_level(levels, key) if value is None else value
        return levels.get(key) == wanted
    tables = [snapshot.cluster] if scope.broker is None else []
    tables += [
        settings
        for broker, settings in snapshot.brokers.items()
        if scope.broker in (None, broker) and (key in settings or scope.broker is not None)
    ]
    for settings in tables:
        level = settings[key].at(scope.kind) if key in settings else None
        if (level is None) != (value is None):
            return False
        secret = level is not None and level.value is None
        if level is not None and not secret and not same_value(key, value, level.value):
            return False
    return True


def read_configs(
    client: ConfigsClient, loggers: Optional[Sequence[int]], brokers: Optional[Sequence[int]] = None
) -> ConfigsSnapshot:
    """The settings of these brokers and the levels of these brokers' loggers; None: of all live ones."""
    metadata = client.fetch_metadata()
    live = [broker.id for broker in metadata.brokers]
    asked = live if brokers is None else [each for each in live if each in brokers]
    told = client.fetch_settings(asked, live if loggers is None else loggers)
    return ConfigsSnapshot(metadata.cluster_id, *told)


def all_configs(client: ConfigsClient, params: Mapping[str, Any]) -> Dict[str, Any]:
    """What kafka_configs_info returns."""
    patterns = []
    for pattern in params["names"]:
        try:
            patterns.append(re.compile(pattern))
        except re.error as error:
            reason = f"not a regular expression, {error}"
            raise AdminError(
                Problem("configs.bad_item", reason, "correct it", setting="names", value=pattern)
            ) from error
    client.connect()
    brokers = params["brokers"]
    snapshot = read_configs(client, brokers if params["loggers"] else [], brokers)
    gone = sorted(set(brokers or ()) - set(snapshot.brokers))
    if gone:
        reason = f"no such broker is running, these are: {', '.join(map(str, snapshot.brokers))}"
        subjects = tuple(f"broker {each}" for each in gone)
        raise AdminError(Problem("configs.unknown_broker", reason, "correct the ids", subjects))
    kept = {"overrides": (BROKER, CLUSTER), "set": (BROKER, CLUSTER, "static")}.get(
        params["include"]
    )
    return {
        "cluster_id": snapshot.cluster_id,
        "settings": [
            describe(setting, broker)
            for broker, settings in sorted(snapshot.brokers.items())
            for key, setting in sorted(settings.items())
            if (kept is None or setting.source in kept)
            and (not patterns or any(each.fullmatch(key) for each in patterns))
        ],
        "differing": differing(snapshot),
        "configs": declared(snapshot),
        "loggers": [
            {"broker": broker, "levels": dict(sorted(levels.items()))}
            for broker, levels in sorted(snapshot.loggers.items())
        ],
    }


# Every broker has its own.
_OWN_KEYS = re.compile(
    r"(node|broker)\.id|broker\.rack|(advertised\.|controller\.quorum\..*)?listeners"
    r"|log\.dirs?|metadata\.log\.dir|.*\.(keystore|truststore)\.location"
)


def differing(snapshot: ConfigsSnapshot) -> List[Dict[str, Any]]:
    """Settings whose values in force are not the same on all of these brokers."""
    found = []
    for key in sorted({key for settings in snapshot.brokers.values() for key in settings}):
        values = {
            broker: settings[key].to_dict()["value"] if key in settings else None
            for broker, settings in sorted(snapshot.brokers.items())
        }
        if len(set(values.values())) > 1 and not _OWN_KEYS.fullmatch(key):
            found.append(
                {"name": key, "values": {str(each): value for each, value in values.items()}}
            )
    return found


def declared(snapshot: ConfigsSnapshot) -> List[Dict[str, Any]]:
    """What is set in the cluster, as kafka_configs takes it; secrets are not told and left out."""
    items = []
    for scope in [Scope(CLUSTER), *(Scope(BROKER, each) for each in sorted(snapshot.brokers))]:
        values = {}
        for key, setting in sorted(own_settings(scope, snapshot).items()):
            level = setting.at(scope.kind)
            if level is not None and not is_secret_setting(key, setting):
                values[key] = masked(key, level.value)
        if values:
            where = {} if scope.broker is None else {"brokers": [scope.broker]}
            items.append({"scope": scope.kind, **where, "settings": values})
    return items


# The modules' own options; their documentation is in the modules.
CONFIGS_OPTIONS = dict(
    configs=dict(
        type="list",
        elements="dict",
        required=True,
        options=CONFIG_ITEM,
    ),
    config_mode=dict(type="str", choices=["merge", "replace"], default="merge"),
    update_secrets=dict(
        type="str", choices=["always", "on_create"], default="always", no_log=False
    ),
    plugin_prefixes=dict(type="list", elements="str", default=[]),
    allow=dict(type="list", elements="str", choices=list(CONSENTS), default=[]),
    operation_timeout=dict(type="float", default=60.0),
)
INFO_OPTIONS = dict(
    brokers=dict(type="list", elements="int"),
    include=dict(type="str", choices=["overrides", "set", "all"], default="overrides"),
    names=dict(type="list", elements="str", default=[]),
    loggers=dict(type="bool", default=False),
)
