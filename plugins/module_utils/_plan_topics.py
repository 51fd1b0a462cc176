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

from ansible_collections.kafkaops.cluster.plugins.module_utils._model import (
    ConfigEntry,
    Partition,
    Stake,
    Topic,
    collision_key,
    nearest,
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan import Change, Plan, Refusal
from ansible_collections.kafkaops.cluster.plugins.module_utils._units import (
    approximate_size,
    format_duration_ms,
    format_size_bytes,
)

CREATE, GROW, CONFIGURE, DELETE = "create", "grow", "configure", "delete"
# The order in which a plan is applied: what adds first, what takes away last.
_ORDER = {CREATE: 0, GROW: 1, CONFIGURE: 2, DELETE: 3}

# Topics in which Kafka, Connect and mirrors keep their own state; never deleted unless named.
_FOREIGN_STATE = re.compile(
    r"_.*|connect-(configs|offsets|status)|(.*\.)?heartbeats|.*\.checkpoints\.internal"
    r"|mm2-.*\.internal|.*-(changelog|repartition)"
)


@dataclass(frozen=True)
class Purge:
    """Delete topics that are not declared: regular expressions over whole names, and a limit."""

    patterns: tuple
    maximum: int


@dataclass(frozen=True)
class TopicPolicy:
    """What the task consents to. `replace` resets overrides that are not declared."""

    replace: bool = False
    allow_partition_growth: bool = False
    allow_retention_cut: bool = False
    allow_cleanup_change: bool = False
    allow_delete: bool = False
    allow_internal: frozenset = frozenset()
    purge: Purge | None = None


def plan_topics(desired, snapshot, policy):
    """The Plan that turns the snapshot into the desired state, as far as the policy consents."""
    changes, refusals, warnings = [], [], []
    by_collision = {}
    for name in snapshot.topics:
        by_collision.setdefault(collision_key(name), []).append(name)
    declared = {}
    for topic in desired:
        declared.setdefault(collision_key(topic.name), []).append(topic.name)
    for topic in sorted(desired, key=lambda item: item.name):
        found = _plan_one(topic, snapshot, policy)
        if topic.state == "present" and topic.name not in snapshot.topics:
            found.refusals += _collisions(topic, desired, by_collision, declared)
        warnings += found.warnings
        refusals += found.refusals
        if not found.refusals:
            changes += found.changes
    purged, purge_refusals = _plan_purge(desired, snapshot, policy)
    changes += purged
    refusals += purge_refusals
    changes.sort(key=lambda change: (_ORDER[change.kind], change.subject))
    return Plan(tuple(changes), tuple(refusals), tuple(warnings))


def subjects_at_stake(desired, snapshot, policy):
    """Names of topics whose records the plan could endanger, with the cuts that would apply.

    A mapping of name to (retention_ms, retention_bytes): the new limits, None where the whole
    topic is concerned or that limit does not change. Ask the cluster for their Stake, put it into
    the snapshot, and plan again.
    """
    endangered = {}
    generous = replace(
        policy,
        allow_partition_growth=True,
        allow_retention_cut=True,
        allow_cleanup_change=True,
        allow_delete=True,
    )
    wished = list(_plan_purge(desired, snapshot, generous)[0])
    for topic in desired:
        # Also of topics that are refused for another reason: all is said at once.
        wished += _plan_one(topic, snapshot, generous).changes
    for change in wished:
        if change.kind in (DELETE, GROW):
            endangered[change.subject] = (None, None)
        elif change.kind == CONFIGURE:
            topic = snapshot.topics[change.subject]
            cuts = {
                key: value for key, _old, value in _retention_cuts(topic, change.after["config"])
            }
            if _gains_deletion(topic, change.after["config"]):
                cuts.setdefault(
                    "retention.ms", _after(topic, change.after["config"], "retention.ms")
                )
            if cuts:
                endangered[change.subject] = (
                    _number(cuts.get("retention.ms")),
                    _number(cuts.get("retention.bytes")),
                )
    return endangered


def apply_to(snapshot, plan):
    """The snapshot as it would be after the plan: for tests and for previews."""
    topics = dict(snapshot.topics)
    for change in plan.changes:
        if change.kind == DELETE:
            del topics[change.subject]
        elif change.kind == CREATE:
            count = change.after["partitions"] or _default(snapshot, "num.partitions") or 1
            factor = change.after["replication_factor"]
            factor = factor or _default(snapshot, "default.replication.factor") or 1
            members = tuple(range(factor))
            topics[change.subject] = Topic(
                change.subject,
                tuple(Partition(i, 0, members, members) for i in range(count)),
                {
                    key: ConfigEntry(key, value, "topic")
                    for key, value in change.after["config"].items()
                },
            )
        elif change.kind == GROW:
            topic = topics[change.subject]
            model = topic.partitions[0]
            grown = topic.partitions + tuple(
                replace(model, id=i)
                for i in range(len(topic.partitions), change.after["partitions"])
            )
            topics[change.subject] = replace(topic, partitions=grown)
        else:
            topic = topics[change.subject]
            config = dict(topic.config or {})
            for key, value in change.after["config"].items():
                if value is not None:
                    old = config.get(key)
                    config[key] = ConfigEntry(key, value, "topic", fallback=old and old.fallback)
                else:
                    config[key] = replace(config[key], value=config[key].fallback, source="default")
            topics[change.subject] = replace(topic, config=config)
    return replace(snapshot, topics=topics)


# ---------------------------------------------------------------- one topic


class _Found:
    def __init__(self, subject):
        self.subject = subject
        self.changes = []
        self.refusals = []
        self.warnings = []

    def refuse(self, check, reason, remedy, setting=""):
        self.refusals.append(Refusal(check, self.subject, reason, remedy, setting))

    def change(self, kind, before, after, note=""):
        self.changes.append(Change(kind, self.subject, before, after, note))


def _plan_one(desired, snapshot, policy):
    found = _Found(desired.name)
    current = snapshot.topics.get(desired.name)
    if desired.name.startswith("_") and desired.name not in policy.allow_internal:
        found.refuse(
            "topics.protected",
            "topics that begin with _ hold the cluster's own state and are not touched",
            f"name it in allow_internal: [{desired.name}]",
        )
        return found
    if desired.state == "absent":
        if current:
            _plan_deletion(found, current, snapshot, policy)
        return found
    _check_keys(found, desired, snapshot)
    if current is None:
        _plan_creation(found, desired, snapshot)
    else:
        _plan_alteration(found, desired, current, snapshot, policy)
    return found


def _check_keys(found, desired, snapshot):
    if snapshot.known_keys is None:
        return
    for key in sorted(desired.config):
        if key not in snapshot.known_keys:
            found.refuse(
                "config.unknown_key",
                f"the brokers know no such topic setting{nearest(key, snapshot.known_keys)}",
                "correct the name in config",
                f"{key}={desired.config[key]}",
            )


def _plan_creation(found, desired, snapshot):
    config = {key: value for key, value in desired.config.items() if value is not None}
    factor = desired.replication_factor or _default(snapshot, "default.replication.factor")
    _check_replication(found, factor, config.get("min.insync.replicas"), snapshot)
    found.change(
        CREATE,
        {},
        {
            "partitions": desired.partitions or _default(snapshot, "num.partitions"),
            "replication_factor": factor,
            "config": config,
        },
    )


def _check_replication(found, factor, own_minimum, snapshot):
    """RF against the live brokers, and against the min.insync.replicas that will be in force."""
    alive = len(snapshot.brokers)
    if factor and alive and factor > alive:
        found.refuse(
            "replication.exceeds_brokers",
            f"only {alive} broker{'s are' if alive > 1 else ' is'} alive",
            f"start the missing brokers or declare replication_factor: {alive}",
            f"replication_factor={factor}",
        )
        return
    _check_minimum(found, factor, _number(own_minimum), snapshot)


def _check_minimum(found, factor, own_minimum, snapshot):
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
    found.refuse(
        "replication.min_insync",
        f"not above min.insync.replicas {minimum}{origin}: {harm}",
        " or ".join(remedies),
        f"replication_factor={factor}",
    )


def _plan_alteration(found, desired, current, snapshot, policy):
    _plan_partitions(found, desired, current, snapshot, policy)
    factors = current.replication_factors
    if desired.replication_factor and desired.replication_factor not in factors:
        existing = max(factors)
        found.refuse(
            "replication.change",
            f"the topic has {existing}; replicas are moved by kafka_reassignment, which a later "
            "release of this collection brings",
            f"declare replication_factor: {existing}",
            f"replication_factor={desired.replication_factor}",
        )
    elif len(factors) > 1:
        found.warnings.append(
            f"{current.name}: its partitions have {min(factors)} to {max(factors)} replicas; "
            "is a reassignment running?"
        )
    _plan_config(found, desired, current, snapshot, policy)


def _plan_partitions(found, desired, current, snapshot, policy):
    count = len(current.partitions)
    if desired.partitions is None or desired.partitions == count:
        return
    setting = f"partitions={desired.partitions}"
    if desired.partitions < count:
        found.refuse(
            "partitions.decrease",
            f"the topic has {count}; Kafka cannot remove partitions, their records would be lost",
            f"declare partitions: {count}, or copy the records into a new topic with "
            f"{desired.partitions}",
            setting,
        )
        return
    stake = _describe_stake(snapshot.stakes.get(current.name), whole=True)
    harm = "keys move to other partitions, so records of one key before and after are not in order"
    if not policy.allow_partition_growth:
        found.refuse(
            "partitions.growth",
            f"growing from {count}: {harm}{stake and f' ({stake} in it)'}",
            _consent("partition_growth"),
            setting,
        )
        return
    found.change(
        GROW,
        {"partitions": count},
        {"partitions": desired.partitions},
        f"{harm}{stake and f' ({stake} in it)'}",
    )


def _plan_config(found, desired, current, snapshot, policy):
    config = current.config or {}
    before, after = {}, {}
    for key, value in desired.config.items():
        entry = config.get(key)
        if value is None:
            if entry and entry.source == "topic":
                before[key], after[key] = entry.value, None
        elif entry is None or not same_value(key, value, entry.value):
            before[key], after[key] = entry.value if entry else None, value
    if policy.replace:
        for key, entry in config.items():
            if entry.source == "topic" and key not in desired.config:
                before[key], after[key] = entry.value, None
    if not after:
        return
    if "min.insync.replicas" in after:
        minimum = _number(_after(current, after, "min.insync.replicas"))
        factor = max(current.replication_factors, default=0)
        _check_minimum(found, factor, minimum, snapshot)
    notes = _consents(found, current, after, snapshot, policy)
    found.change(
        CONFIGURE,
        {"config": dict(sorted(before.items()))},
        {"config": dict(sorted(after.items()))},
        "; ".join(notes),
    )


def _consent(what):
    """How to allow it, for a task and for the playbooks of this collection."""
    return f"consent with allow_{what}: true (playbooks: -e kafka_topics_allow={what})"


def _consents(found, current, after, snapshot, policy):
    """Refuses what needs consent and has none; returns the notes of what has it."""
    notes = []
    stake = snapshot.stakes.get(current.name)
    for key, old, new in _retention_cuts(current, after):
        write = format_duration_ms if key == "retention.ms" else format_size_bytes
        what = f"{key} down from {write(_number(old))} to {write(_number(new))}"
        told = _describe_stake(stake, whole=False)
        sentence = f"{what}: {told} would be deleted" if told else what
        if policy.allow_retention_cut:
            notes.append(sentence)
        else:
            found.refuse(
                "retention.cut",
                sentence,
                _consent("retention_cut"),
                f"{key}={new}",
            )
    if _gains_deletion(current, after):
        told = _describe_stake(stake, whole=False)
        sentence = (
            f"cleanup.policy from {current.effective('cleanup.policy')} to "
            f"{_after(current, after, 'cleanup.policy')}: the last record of each key becomes "
            "deletable by age"
            f"{told and f', {told} at once'}"
        )
        if policy.allow_cleanup_change:
            notes.append(sentence)
        else:
            found.refuse(
                "cleanup.change",
                sentence,
                _consent("cleanup_change"),
                f"cleanup.policy={after['cleanup.policy']}",
            )
    return notes


def _plan_deletion(found, current, snapshot, policy, purge=False):
    stake = _describe_stake(snapshot.stakes.get(current.name), whole=True)
    if not purge:
        if _FOREIGN_STATE.fullmatch(current.name) and current.name not in policy.allow_internal:
            found.refuse(
                "topics.protected",
                "it looks like the state of Connect, a mirror or a stream and is not deleted",
                f"name it in allow_internal: [{current.name}]",
                "state=absent",
            )
            return
        if not policy.allow_delete:
            found.refuse(
                "topics.delete",
                f"deleting it deletes {stake or 'all its records'}",
                _consent("delete"),
                "state=absent",
            )
            return
    overrides = {
        key: entry.value
        for key, entry in sorted((current.config or {}).items())
        if entry.source == "topic"
    }
    found.change(
        DELETE,
        {
            "partitions": len(current.partitions),
            "replication_factor": max(current.replication_factors, default=0),
            "config": overrides,
        },
        {},
        f"deletes {stake}" if stake else "",
    )


# ---------------------------------------------------------------- across topics


def _collisions(topic, desired, by_collision, declared):
    key = collision_key(topic.name)
    leaving = {item.name for item in desired if item.state == "absent"}
    others = set(by_collision.get(key, ())) | set(declared.get(key, ()))
    others -= {topic.name}
    others -= leaving
    if not others:
        return []
    return [
        Refusal(
            "topics.collision",
            topic.name,
            f"`.` and `_` are the same in Kafka's metric names, so it collides with "
            f"{', '.join(sorted(others))}",
            "choose another name",
            f"name={topic.name}",
        )
    ]


def _plan_purge(desired, snapshot, policy):
    if policy.purge is None:
        return [], []
    declared = {topic.name for topic in desired}
    patterns = [re.compile(pattern) for pattern in policy.purge.patterns]
    doomed = sorted(
        name
        for name in snapshot.topics
        if name not in declared
        and (name in policy.allow_internal or not _FOREIGN_STATE.fullmatch(name))
        and any(pattern.fullmatch(name) for pattern in patterns)
    )
    if len(doomed) > policy.purge.maximum:
        some = ", ".join(doomed[:5]) + (", ..." if len(doomed) > 5 else "")
        return [], [
            Refusal(
                "purge.maximum",
                "purge",
                f"{len(doomed)} topics match and are not declared ({some})",
                f"raise purge maximum to {len(doomed)} or narrow the patterns",
                f"maximum={policy.purge.maximum}",
            )
        ]
    changes = []
    for name in doomed:
        found = _Found(name)
        _plan_deletion(found, snapshot.topics[name], snapshot, policy, purge=True)
        changes += found.changes
    return changes, []


# ---------------------------------------------------------------- small questions


def _number(value):
    """An integer of Kafka's text, None if it is none."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _default(snapshot, key):
    return _number(snapshot.broker_defaults.get(key))


def _after(topic, after, key):
    """The effective value of a key once `after` is applied; None if it cannot be known."""
    if key not in after:
        return topic.effective(key)
    if after[key] is not None:
        return after[key]
    entry = (topic.config or {}).get(key)
    return entry.fallback if entry else None


def _retention_cuts(topic, after):
    """(key, old, new) of the limits that become tighter, where age or size deletes at all."""
    policy = _after(topic, after, "cleanup.policy") or "delete"
    if "delete" not in policy.split(","):
        return []
    cuts = []
    for key in ("retention.ms", "retention.bytes"):
        if key not in after:
            continue
        old, new = topic.effective(key), _after(topic, after, key)
        if _number(new) is None or _number(old) is None:
            continue
        endless = float("inf")
        limits = [endless if _number(value) < 0 else _number(value) for value in (old, new)]
        if limits[1] < limits[0]:
            cuts.append((key, old, new))
    return cuts


def _gains_deletion(topic, after):
    """Whether records that only compaction touched so far become deletable by age and size."""
    if "cleanup.policy" not in after:
        return False
    old = (topic.effective("cleanup.policy") or "delete").split(",")
    new = (_after(topic, after, "cleanup.policy") or "delete").split(",")
    return "delete" in new and "delete" not in old


def _describe_stake(stake, whole):
    """`1234 records (about 1.2 MiB)` for sentences; empty if nothing was asked."""
    if not isinstance(stake, Stake):
        return ""
    records = stake.total_records if whole else stake.records
    size = stake.total_bytes if whole else stake.bytes
    parts = []
    if records is not None:
        parts.append(f"{records} record{'' if records == 1 else 's'}")
    if size is not None:
        parts.append(f"{'' if whole else 'about '}{approximate_size(size)} on disk")
    text = " and ".join(parts)
    if stake.unknown:
        text = f"{text} ({stake.unknown})" if text else f"records ({stake.unknown})"
    return text
