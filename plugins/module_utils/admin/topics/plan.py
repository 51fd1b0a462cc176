# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topics: desired state + snapshot + policy -> Plan.

Private to this collection. Pure: no I/O, no clock, no Ansible. Invariants, kept for every input:

* a plan that is applied to its snapshot and computed again is empty;
* the order of the desired topics does not matter;
* nothing that can delete records, or change where keys go, is planned without its consent;
* a refused topic has no change: it is refused as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import (
    Any,
    Dict,
    FrozenSet,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    CONFIGURE,
    CREATE,
    DELETE,
    GROW,
    ConfigEntry,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import (
    collision_key,
    did_you_mean,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    Change,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.purge import Purge, purged
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    THROTTLED_REPLICAS,
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.dangers import (
    CONSENTS,
    DELETION,
    PARTITION_GROWTH,
    dangers,
    describe_stake,
    effective_after,
    gained_policies,
    in_parentheses,
    retention_cuts,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    DesiredTopic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    whole_number,
)

# The order in which a plan is applied: what adds first, what takes away last.
_ORDER = {CREATE: 0, GROW: 1, CONFIGURE: 2, DELETE: 3}

# Topics in which Kafka, Connect and mirrors keep their own state; never deleted unless named.
_FOREIGN_STATE = re.compile(
    r"_.*|connect-(configs|offsets|status)|(.*\.)?heartbeats|.*\.checkpoints\.internal"
    r"|mm2-.*\.internal|.*-(changelog|repartition)"
)

# Of these a worker of Connect in distributed mode asks for cleanup.policy=compact, and one partition of the first.
_OF_CONNECT = re.compile(r"connect-(configs|offsets|status)")


def holds_state(name: str) -> bool:
    """Whether a topic looks like the state of Kafka, Connect, a mirror or a stream."""
    return _FOREIGN_STATE.fullmatch(name) is not None


@dataclass(frozen=True)
class TopicPolicy:
    """What the task consents to (of CONSENTS). `replace` resets overrides that are not declared."""

    replace: bool = False
    allow: FrozenSet[str] = frozenset()
    allow_internal: FrozenSet[str] = frozenset()
    purge: Optional[Purge] = None


def plan_topics(desired: Sequence[DesiredTopic], snapshot: Snapshot, policy: TopicPolicy) -> Plan:
    """The Plan that turns the snapshot into the desired state, as far as the policy consents."""
    changes: List[Change] = []
    refusals: List[Problem] = []
    warnings: List[str] = []
    names: Dict[str, Set[str]] = {}
    for name in snapshot.topics:
        names.setdefault(collision_key(name), set()).add(name)
    for topic in desired:
        if topic.state == "present":
            names.setdefault(collision_key(topic.name), set()).add(topic.name)
    for topic in sorted(desired, key=lambda item: item.name):
        one = _plan_one(topic, snapshot, policy)
        if topic.state == "present" and topic.name not in snapshot.topics:
            one.refusals += _collisions(topic, desired, names[collision_key(topic.name)])
        warnings += one.warnings
        refusals += one.refusals
        if not one.refusals:
            changes += one.changes
    purged, purge_refusals = _plan_purge(desired, snapshot, policy)
    changes += purged
    refusals += purge_refusals
    changes.sort(key=lambda change: (_ORDER[change.kind], change.subject))
    return Plan(tuple(changes), tuple(refusals), tuple(warnings))


def subjects_at_stake(
    desired: Sequence[DesiredTopic], snapshot: Snapshot, policy: TopicPolicy
) -> Dict[str, Tuple[Optional[int], Optional[int]]]:
    """Names of topics whose records the plan could endanger, with the cuts that would apply.

    A mapping of name to (retention_ms, retention_bytes): the new limits, None where the whole
    topic is concerned or that limit does not change. Ask the cluster for their Stake, put it into
    the snapshot, and plan again.
    """
    consenting = replace(policy, allow=frozenset(CONSENTS))
    changes = list(_plan_purge(desired, snapshot, consenting)[0])
    for topic in desired:
        # Also of topics that are refused for another reason: all is said at once.
        changes += _plan_one(topic, snapshot, consenting).changes
    endangered: Dict[str, Tuple[Optional[int], Optional[int]]] = {}
    for change in changes:
        if change.kind in (DELETE, GROW):
            endangered[change.subject] = (None, None)
        elif change.kind == CONFIGURE:
            current = snapshot.topics[change.subject]
            after = change.after["config"]
            if not any(dangers(current, after)):
                continue
            limits = {key: value for key, _old, value in retention_cuts(current, after)}
            if "delete" in gained_policies(current, after):
                limits.setdefault("retention.ms", effective_after(current, after, "retention.ms"))
            endangered[change.subject] = (
                whole_number(limits.get("retention.ms")),
                whole_number(limits.get("retention.bytes")),
            )
    return endangered


def asked_by(changes: Sequence[Change]) -> List[DesiredTopic]:
    """Changes of settings as what they ask for: just the settings that they name."""
    return [DesiredTopic(change.subject, config=dict(change.after["config"])) for change in changes]


def apply_to(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The snapshot as it is after the plan: what the module returns, also in check mode."""
    topics = dict(snapshot.topics)
    for change in plan.changes:
        if change.kind == DELETE:
            del topics[change.subject]
        elif change.kind == CREATE:
            topics[change.subject] = _created(change, snapshot)
        elif change.kind == GROW:
            topic = topics[change.subject]
            grown = topic.partitions + tuple(
                replace(topic.partitions[0], id=index)
                for index in range(len(topic.partitions), change.after["partitions"])
            )
            topics[change.subject] = replace(topic, partitions=grown)
        else:
            topic = topics[change.subject]
            config = dict(topic.config or {})
            for key, value in change.after["config"].items():
                if value is not None:
                    old = config.get(key)
                    fallback = old.fallback if old else None
                    config[key] = ConfigEntry(key, value, "topic", fallback=fallback)
                else:
                    config[key] = replace(config[key], value=config[key].fallback, source="default")
            topics[change.subject] = replace(topic, config=config)
    return replace(snapshot, topics=topics)


def _created(change: Change, snapshot: Snapshot) -> Topic:
    """The topic that a creation makes; the brokers' defaults where it does not say."""
    count = change.after["partitions"] or _default(snapshot, "num.partitions") or 1
    factor = change.after["replication_factor"]
    factor = factor or _default(snapshot, "default.replication.factor") or 1
    members = tuple(range(factor))
    return Topic(
        change.subject,
        tuple(Partition(index, 0, members, members) for index in range(count)),
        {key: ConfigEntry(key, value, "topic") for key, value in change.after["config"].items()},
    )


# ---------------------------------------------------------------- one topic


class _TopicPlan:
    """What is planned for one topic, while it is being worked out."""

    def __init__(self, subject: str):
        self.subject = subject
        self.changes: List[Change] = []
        self.refusals: List[Problem] = []
        self.warnings: List[str] = []

    def refuse(
        self, check: str, reason: str, remedy: str, setting: str = "", value: Any = ""
    ) -> None:
        """Note a refusal of this topic."""
        self.refusals.append(Problem(check, reason, remedy, (self.subject,), setting, value))

    def change(
        self, kind: str, before: Mapping[str, Any], after: Mapping[str, Any], note: str = ""
    ) -> None:
        """Note a change of this topic."""
        self.changes.append(Change(kind, self.subject, before, after, note))


def _plan_one(desired: DesiredTopic, snapshot: Snapshot, policy: TopicPolicy) -> _TopicPlan:
    one = _TopicPlan(desired.name)
    current = snapshot.topics.get(desired.name)
    if desired.name.startswith("_") and desired.name not in policy.allow_internal:
        one.refuse(
            "topics.protected",
            "topics that begin with _ hold the cluster's own state and are not touched",
            f"name it in allow_internal: [{desired.name}]",
        )
        return one
    if desired.state == "absent":
        if current:
            _plan_deletion(one, current, snapshot, policy)
        return one
    _check_keys(one, desired, snapshot)
    if desired.name not in policy.allow_internal:
        _check_connect(one, desired, current)
    if current is None:
        _plan_creation(one, desired, snapshot)
    else:
        _plan_alteration(one, desired, current, snapshot, policy)
    return one


def _check_keys(one: _TopicPlan, desired: DesiredTopic, snapshot: Snapshot) -> None:
    if snapshot.known_keys is None:
        return
    for key in sorted(desired.config):
        if key not in snapshot.known_keys:
            one.refuse(
                "config.unknown_key",
                f"the brokers know no such topic setting{did_you_mean(key, snapshot.known_keys)}",
                "correct the name in config",
                f"config.{key}",
                desired.config[key],
            )


def _check_connect(one: _TopicPlan, desired: DesiredTopic, current: Optional[Topic]) -> None:
    """What a worker of Connect asks of its three topics when it starts; else it ends."""
    if not _OF_CONNECT.fullmatch(desired.name):
        return
    remedy = f"if it is none of Connect's, name it in allow_internal: [{desired.name}]"
    cleanup = desired.config.get("cleanup.policy") or "delete"
    if current is not None:
        cleanup = effective_after(current, desired.config, "cleanup.policy") or "compact"
    if cleanup != "compact":
        reason = "it looks like the state of Connect, of which age would delete connectors and their positions"
        remedies = f"declare cleanup: compact; {remedy}"
        where = desired.where("cleanup.policy", cleanup)
        one.refuse("topics.connect", reason, remedies, *where)
    partitions = desired.partitions or (len(current.partitions) if current else None)
    if desired.name.endswith("-configs") and partitions != 1:
        reason = "it looks like the configurations of Connect, whose order one partition keeps"
        remedies = f"declare partitions: 1; {remedy}"
        one.refuse("topics.connect", reason, remedies, "partitions", partitions or "default")


def _plan_creation(one: _TopicPlan, desired: DesiredTopic, snapshot: Snapshot) -> None:
    config = {key: value for key, value in desired.config.items() if value is not None}
    factor = desired.replication_factor or _default(snapshot, "default.replication.factor")
    _check_replication(one, factor, config.get("min.insync.replicas"), snapshot)
    one.change(
        CREATE,
        {},
        {
            "partitions": desired.partitions or _default(snapshot, "num.partitions"),
            "replication_factor": factor,
            "config": config,
        },
    )


def _check_replication(
    one: _TopicPlan, factor: Optional[int], own_minimum: Optional[str], snapshot: Snapshot
) -> None:
    """RF against the live brokers, and against the min.insync.replicas that will be in force."""
    alive = len(snapshot.brokers)
    if factor and alive and factor > alive:
        one.refuse(
            "replication.exceeds_brokers",
            f"only {alive} broker{'s are' if alive > 1 else ' is'} alive",
            f"start the missing brokers or declare replication_factor: {alive}",
            "replication_factor",
            factor,
        )
        return
    _check_minimum(one, factor, whole_number(own_minimum), snapshot)


def _check_minimum(
    one: _TopicPlan, factor: Optional[int], own_minimum: Optional[int], snapshot: Snapshot
) -> None:
    minimum = own_minimum or _default(snapshot, "min.insync.replicas")
    if not factor or not minimum or factor > minimum or factor == minimum == 1:
        return
    origin = "" if own_minimum else ", the brokers' default"
    if factor < minimum:
        harm = "no write with acks=all can ever succeed"
    else:
        harm = "one broker down stops every write with acks=all"
    remedies = [f"declare config min.insync.replicas: {max(1, factor - 1)}"]
    if minimum < len(snapshot.brokers):
        remedies.insert(0, f"declare replication_factor: {minimum + 1}")
    one.refuse(
        "replication.min_insync",
        f"not above min.insync.replicas {minimum}{origin}: {harm}",
        " or ".join(remedies),
        "replication_factor",
        factor,
    )


def _plan_alteration(
    one: _TopicPlan,
    desired: DesiredTopic,
    current: Topic,
    snapshot: Snapshot,
    policy: TopicPolicy,
) -> None:
    _plan_partitions(one, desired, current, snapshot, policy)
    factors = current.replication_factors
    if desired.replication_factor and desired.replication_factor not in factors:
        existing = max(factors)
        one.refuse(
            "replication.change",
            f"the topic has {existing}, and kafka_topics moves no replicas",
            f"declare replication_factor: {existing}, or change it with kafka_reassignment",
            "replication_factor",
            desired.replication_factor,
        )
    elif len(factors) > 1:
        one.warnings.append(
            f"{current.name}: its partitions have {min(factors)} to {max(factors)} replicas; "
            "is a reassignment running?"
        )
    _plan_config(one, desired, current, snapshot, policy)


def _plan_partitions(
    one: _TopicPlan,
    desired: DesiredTopic,
    current: Topic,
    snapshot: Snapshot,
    policy: TopicPolicy,
) -> None:
    count = len(current.partitions)
    if desired.partitions is None or desired.partitions == count:
        return
    if desired.partitions < count:
        one.refuse(
            "partitions.decrease",
            f"the topic has {count}; Kafka cannot remove partitions, their records would be lost",
            f"declare partitions: {count}, or copy the records into a new topic with "
            f"{desired.partitions}",
            "partitions",
            desired.partitions,
        )
        return
    harm = (
        "keys move to other partitions, so records of one key before and after are not in order"
        f"{in_parentheses(snapshot.stakes.get(current.name))}"
    )
    if PARTITION_GROWTH not in policy.allow:
        one.refuse(
            "partitions.growth",
            f"growing from {count}: {harm}",
            _consent(PARTITION_GROWTH),
            "partitions",
            desired.partitions,
        )
        return
    one.change(GROW, {"partitions": count}, {"partitions": desired.partitions}, harm)


def _plan_config(
    one: _TopicPlan,
    desired: DesiredTopic,
    current: Topic,
    snapshot: Snapshot,
    policy: TopicPolicy,
) -> None:
    config = current.config or {}
    before: Dict[str, Optional[str]] = {}
    after: Dict[str, Optional[str]] = {}
    for key, value in desired.config.items():
        entry = config.get(key)
        if value is None:
            if entry and entry.source == "topic":
                before[key], after[key] = entry.value, None
        elif entry is None or not same_value(key, value, entry.value):
            before[key], after[key] = entry.value if entry else None, value
        elif entry.source != "topic":
            # As a creation does: what is declared does not move with the brokers' defaults.
            before[key], after[key] = None, value
    if policy.replace:
        for key, entry in config.items():
            declared = key in desired.config or key in THROTTLED_REPLICAS
            if entry.source == "topic" and not declared:
                before[key], after[key] = entry.value, None
    if not after:
        return
    if "min.insync.replicas" in after:
        minimum = whole_number(effective_after(current, after, "min.insync.replicas"))
        _check_minimum(one, max(current.replication_factors, default=0), minimum, snapshot)
    notes = []
    for danger in dangers(current, after, snapshot.stakes.get(current.name)):
        if danger.consent in policy.allow:
            notes.append(danger.sentence)
        else:
            value = after[danger.key] or "default"
            remedy = _consent(danger.consent)
            where = desired.where(danger.key, value)
            one.refuse(danger.check, danger.sentence, remedy, *where)
    one.change(
        CONFIGURE,
        {"config": dict(sorted(before.items()))},
        {"config": dict(sorted(after.items()))},
        "; ".join(notes),
    )


def _plan_deletion(
    one: _TopicPlan,
    current: Topic,
    snapshot: Snapshot,
    policy: TopicPolicy,
    purge: bool = False,
) -> None:
    stake = describe_stake(snapshot.stakes.get(current.name), whole=True)
    if not purge:
        if holds_state(current.name) and current.name not in policy.allow_internal:
            one.refuse(
                "topics.protected",
                "it looks like the state of Connect, a mirror or a stream and is not deleted",
                f"name it in allow_internal: [{current.name}]",
                "state",
                "absent",
            )
            return
        if DELETION not in policy.allow:
            one.refuse(
                "topics.delete",
                f"deleting it deletes {stake or 'all its records'}",
                _consent(DELETION),
                "state",
                "absent",
            )
            return
    overrides = {
        key: entry.value
        for key, entry in sorted((current.config or {}).items())
        if entry.source == "topic"
    }
    one.change(
        DELETE,
        {
            "partitions": len(current.partitions),
            "replication_factor": max(current.replication_factors, default=0),
            "config": overrides,
        },
        {},
        f"deletes {stake}" if stake else "",
    )


def _consent(what: str) -> str:
    """How to allow it, for a task and for the playbooks of this collection."""
    return f"consent with allow: [{what}] (playbooks: -e kafka_topics_allow={what})"


# ---------------------------------------------------------------- across topics


def _collisions(
    topic: DesiredTopic, desired: Sequence[DesiredTopic], names: Set[str]
) -> List[Problem]:
    """Why a new topic cannot be created beside `names`, those that share its metric names."""
    others = names - {topic.name}
    if not others:
        return []
    # Deletions come last, and their names are free only once every broker has forgotten them.
    leaving = others & {item.name for item in desired if item.state == "absent"}
    return [
        Problem(
            "topics.collision",
            f"`.` and `_` are the same in Kafka's metric names, so it collides with "
            f"{', '.join(sorted(others))}",
            (
                f"delete {', '.join(sorted(leaving))} in a run before this one"
                if leaving == others
                else "choose another name"
            ),
            (topic.name,),
            "name",
            topic.name,
        )
    ]


def _plan_purge(
    desired: Sequence[DesiredTopic], snapshot: Snapshot, policy: TopicPolicy
) -> Tuple[List[Change], List[Problem]]:
    declared = {topic.name for topic in desired}
    undeclared = (
        name
        for name in snapshot.topics
        if name not in declared and (name in policy.allow_internal or not holds_state(name))
    )
    to_delete, refusals = purged(policy.purge, undeclared, "topics")
    changes: List[Change] = []
    for name in to_delete:
        one = _TopicPlan(name)
        _plan_deletion(one, snapshot.topics[name], snapshot, policy, purge=True)
        changes += one.changes
    return changes, refusals


# ---------------------------------------------------------------- small questions


def _default(snapshot: Snapshot, key: str) -> Optional[int]:
    return whole_number(snapshot.broker_defaults.get(key))
