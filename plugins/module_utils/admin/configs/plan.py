# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of running brokers: desired state + snapshot + policy -> Plan. Pure.

Private to this collection. Invariants, kept for every input:

* a plan that is applied to its snapshot and computed again is empty, but for secrets that are always set;
* what is not named is not touched; with `replace` throttles of those who move replicas stay, too, and defaults
  that the controllers need;
* nothing that can delete or endanger records is planned without its consent;
* no secret is in the plan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.scopes import (
    BROKER,
    CLUSTER,
    LOGGERS,
    ROOT,
    THROTTLES,
    ConfigsSnapshot,
    DesiredScope,
    Scope,
    Setting,
    Settings,
    inherited_level,
    shown,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    BROKER_KEYS,
    CONFIGURE,
    ConfigEntry,
    Snapshot,
    Topic,
    topic_default,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import did_you_mean
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    Change,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.dangers import (
    CLEANUP_CHANGE,
    MIN_INSYNC_CUT,
    RETENTION_CUT,
    UNCLEAN_ELECTION,
    Danger,
    dangers,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    HIDDEN,
    is_secret,
    masked,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import whole_number
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some

CONSENTS = (RETENTION_CUT, CLEANUP_CHANGE, UNCLEAN_ELECTION, MIN_INSYNC_CUT)
LOG_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_OF_A_LISTENER = re.compile(r"listener\.name\.[^.]+\.(?P<key>.+)")


@dataclass(frozen=True)
class ConfigsPolicy:
    """What the task consents to (of CONSENTS), and how it wants what it does not name to be treated."""

    replace: bool = False
    allow: FrozenSet[str] = frozenset()
    always_set_secrets: bool = True
    plugin_prefixes: Tuple[str, ...] = ()


def plan_configs(
    desired: Sequence[DesiredScope], snapshot: ConfigsSnapshot, policy: ConfigsPolicy
) -> Plan:
    """The Plan that turns the snapshot into the desired state, as far as the policy consents."""
    changes: List[Change] = []
    refusals: List[Problem] = []
    state = snapshot
    for each in sorted(desired, key=_order):
        wrong = list(_problems(each, snapshot, policy))
        refusals += wrong
        if wrong:
            continue
        change = _change(each, state, policy)
        if change is None:
            continue
        after = apply_to(state, [change])
        notes = []
        for danger, brokers in endangered(state, after).items():
            sentence = f"{danger.sentence}; so {_concerned(snapshot, brokers)}"
            if danger.consent in policy.allow:
                notes.append(sentence)
                continue
            remedy = f"consent with allow: [{danger.consent}]"
            key = _cause(danger.key, change)
            value = str(change.after[key] or "default")
            refusals.append(Problem(danger.check, sentence, remedy, (change.subject,), key, value))
        changes.append(replace(change, note="; ".join(notes)))
        state = after
    warnings = [warning for each in desired for warning in _beaten(each, state)]
    return Plan(tuple(changes), tuple(refusals), tuple(warnings))


def _order(each: DesiredScope) -> Tuple[int, int]:
    return (CLUSTER, BROKER, LOGGERS).index(each.scope.kind), each.scope.broker or 0


# ---------------------------------------------------------------- what cannot be


def about(key: str, settings: Settings) -> Optional[Setting]:
    """What the brokers tell of a key; of one for a single listener, what they tell of the key behind it."""
    match = _OF_A_LISTENER.fullmatch(key)
    if match is None:
        return settings.get(key)
    rest = match["key"]
    # A mechanism may stand between: listener.name.inside.scram-sha-256.sasl.jaas.config
    return settings.get(rest) or settings.get(rest.partition(".")[2])


def is_secret_setting(key: str, setting: Optional[Setting]) -> bool:
    """Whether the value of a setting must not be shown: the brokers say so, or its name does."""
    return bool(setting and setting.sensitive) or is_secret(key)


def _problems(
    each: DesiredScope, snapshot: ConfigsSnapshot, policy: ConfigsPolicy
) -> Iterator[Problem]:
    scope = each.scope
    if scope.broker is not None and scope.broker not in snapshot.brokers:
        alive = ", ".join(map(str, sorted(snapshot.brokers)))
        yield Problem(
            "configs.unknown_broker",
            f"no such broker is running, these are: {alive}",
            "start it, or correct the id; for all brokers at once there is scope: cluster",
            (scope.subject,),
        )
        return
    if scope.kind == LOGGERS:
        yield from _logger_problems(each, snapshot.loggers.get(scope.broker or 0, {}))
        return
    tables = snapshot.brokers if scope.broker is None else {0: snapshot.brokers[scope.broker]}
    known: Dict[str, Setting] = {
        key: one for table in tables.values() for key, one in table.items()
    }
    for key in sorted({**each.settings, **each.secrets}):
        yield from _key_problem(key, each, known, snapshot.cluster, policy)


def _key_problem(
    key: str,
    each: DesiredScope,
    known: Settings,
    cluster: Settings,
    policy: ConfigsPolicy,
) -> Iterator[Problem]:
    setting, subjects = about(key, known), (each.scope.subject,)
    secret = is_secret_setting(key, setting)
    value = HIDDEN if secret else str(masked(key, each.settings.get(key)))
    # Brokers tell of throttles only while they are set.
    elsewhere = key in cluster or key in THROTTLES
    if setting is None and not elsewhere and not key.startswith(policy.plugin_prefixes or "\0"):
        yield Problem(
            "config.unknown_key",
            f"the brokers know no such setting{did_you_mean(key, known)}",
            "correct the name; if a plug-in reads it, name its prefix in plugin_prefixes",
            subjects,
            key,
            value,
        )
    elif setting is not None and setting.read_only:
        yield Problem(
            "configs.read_only",
            "Kafka reads it only at its start",
            "put it into the brokers' file (kafka_config) and restart them",
            subjects,
            key,
            value,
        )
    elif (secret or (setting is None and not elsewhere)) and each.settings.get(key) is not None:
        # Brokers hide the value of a key that they do not know, so whether it is set nobody could tell.
        yield Problem(
            "configs.secret",
            (
                "it is a secret, and settings are shown"
                if secret
                else "the brokers do not know this key, and tell no value of it"
            ),
            "move it from settings to secrets",
            subjects,
            key,
            HIDDEN,
        )


def _logger_problems(each: DesiredScope, levels: Mapping[str, str]) -> Iterator[Problem]:
    for name, level in sorted(each.settings.items()):
        check, reason, remedy = "", "", ""
        if name not in levels:
            check = "configs.unknown_logger"
            reason = f"the broker has no such logger{did_you_mean(name, levels)}"
            remedy = "correct the name; a logger exists once its class was loaded"
        elif level is not None and level not in LOG_LEVELS:
            check, reason = "config.bad_value", "not a level"
            remedy = f"use one of {', '.join(LOG_LEVELS)}"
        elif level is None and name == ROOT:
            check, reason = "config.bad_value", "the root logger needs a level"
            remedy = f"use one of {', '.join(LOG_LEVELS)}"
        if check:
            yield Problem(check, reason, remedy, (each.scope.subject,), name, str(level or ""))


# ---------------------------------------------------------------- what changes


def _change(each: DesiredScope, state: ConfigsSnapshot, policy: ConfigsPolicy) -> Optional[Change]:
    if each.scope.kind == LOGGERS:
        before, after = _logger_change(each, state.loggers[each.scope.broker or 0])
    else:
        before, after = _settings_change(each, state, policy)
    if not after:
        return None
    keys = sorted(after)
    return Change(
        CONFIGURE,
        each.scope.subject,
        {key: before[key] for key in keys},
        {key: after[key] for key in keys},
    )


_Both = Tuple[Dict[str, Optional[str]], Dict[str, Optional[str]]]


def _logger_change(each: DesiredScope, levels: Mapping[str, str]) -> _Both:
    """Levels from the root down, because a logger without a level of its own follows the one above.

    Brokers tell which level is in force, not whether it is a logger's own. So one below a logger that changes
    is set, too, whatever it has.
    """
    before: Dict[str, Optional[str]] = {}
    after: Dict[str, Optional[str]] = {}
    now = dict(levels)
    for name in sorted(each.settings, key=lambda each: (each != ROOT, each)):
        level = each.settings[name]
        wanted = inherited_level(now, name) if level is None else level
        if levels[name] != wanted or any(_is_above(above, name) for above in after):
            before[name], after[name] = levels[name], level
            now[name] = wanted or now[name]
    return before, after


def _is_above(one: str, other: str) -> bool:
    """Whether the second logger may have its level from the first."""
    return other != ROOT and (one == ROOT or other.startswith(f"{one}."))


def own_settings(scope: Scope, snapshot: ConfigsSnapshot) -> Dict[str, Setting]:
    """What is set at a scope itself."""
    if scope.kind == CLUSTER:
        return {key: each for key, each in snapshot.cluster.items() if each.at(CLUSTER)}
    table = snapshot.brokers[scope.broker or 0]
    return {key: each for key, each in table.items() if each.at(BROKER)}


def _settings_change(each: DesiredScope, state: ConfigsSnapshot, policy: ConfigsPolicy) -> _Both:
    source = each.scope.kind
    own = own_settings(each.scope, state)
    before: Dict[str, Optional[str]] = {}
    after: Dict[str, Optional[str]] = {}

    def now(key: str) -> Optional[str]:
        level = own[key].at(source) if key in own else None
        if level is None:
            return None
        if is_secret_setting(key, own[key]):
            return HIDDEN
        return shown(own[key], level.value)

    wanted = dict(each.settings)
    if policy.replace:
        gone = set(own) - set(each.secrets) - set(wanted) - set(THROTTLES)
        gone -= state.fixed if each.scope.kind == CLUSTER else frozenset()
        wanted.update(dict.fromkeys(gone))
    for key, value in wanted.items():
        level = own[key].at(source) if key in own else None
        if (value is None) != (level is None) or (
            level is not None and value is not None and not same_value(key, value, level.value)
        ):
            before[key], after[key] = now(key), masked(key, value)
    for key, value in each.secrets.items():
        if value is None and key in own:
            before[key], after[key] = now(key), None
        elif value is not None and (key not in own or policy.always_set_secrets):
            before[key], after[key] = now(key), HIDDEN
    return before, after


def asked_by(
    changes: Sequence[Change], desired: Mapping[Scope, DesiredScope], now: ConfigsSnapshot
) -> List[DesiredScope]:
    """Planned changes as what they ask for: just the settings that they name.

    What nobody declares and somebody else has taken away is not asked for any more.
    """
    asked = []
    for change in changes:
        scope = scope_of(change.subject)
        said = desired[scope]
        here = scope.kind != LOGGERS and (scope.broker is None or scope.broker in now.brokers)
        own = own_settings(scope, now) if here else {}
        named = {key: said.settings[key] for key in change.after if key in said.settings}
        secrets = {key: said.secrets[key] for key in change.after if key in said.secrets}
        rest = set(change.after) - set(named) - set(secrets)
        named.update(dict.fromkeys(rest & set(own)))
        asked.append(DesiredScope(scope, named, secrets))
    return asked


def apply_to(snapshot: ConfigsSnapshot, changes: Sequence[Change]) -> ConfigsSnapshot:
    """The snapshot after these changes; a secret has no value in it."""
    for change in changes:
        scope = scope_of(change.subject)
        if scope.kind == LOGGERS:
            levels = dict(snapshot.loggers[scope.broker or 0])
            for name, level in change.after.items():
                levels[name] = level or inherited_level(levels, name) or levels[name]
            snapshot = replace(snapshot, loggers={**snapshot.loggers, scope.broker or 0: levels})
            continue
        brokers = dict(snapshot.brokers)
        for broker in [scope.broker] if scope.broker is not None else list(brokers):
            brokers[broker] = _altered(brokers[broker], scope.kind, change)
        cluster = snapshot.cluster
        if scope.kind == CLUSTER:
            cluster = _altered(cluster, CLUSTER, change)
            cluster = {key: each for key, each in cluster.items() if each.levels}
        snapshot = replace(snapshot, brokers=brokers, cluster=cluster)
    return snapshot


def _altered(settings: Settings, source: str, change: Change) -> Dict[str, Setting]:
    altered = dict(settings)
    for key, value in change.after.items():
        secret = value == HIDDEN
        setting = altered.get(key) or Setting(key, sensitive=secret)
        altered[key] = setting.with_level(
            source, None if secret else value, present=value is not None
        )
    return altered


def scope_of(subject: str) -> Scope:
    """The Scope of a subject, as Scope.subject writes it."""
    if subject == Scope(CLUSTER).subject:
        return Scope(CLUSTER)
    kind = LOGGERS if subject.startswith("loggers") else BROKER
    return Scope(kind, int(subject.rpartition(" ")[2]))


# ---------------------------------------------------------------- what overrides what, and what is at stake


def _beaten(each: DesiredScope, after: ConfigsSnapshot) -> List[str]:
    """Brokers on which a default of all has no effect, because they have an override."""
    if each.scope.kind != CLUSTER:
        return []
    warnings = []
    for key, value in sorted({**each.settings, **each.secrets}.items()):
        own = [
            str(broker)
            for broker, settings in sorted(after.brokers.items())
            if value is not None and key in settings and settings[key].at(BROKER)
        ]
        if own:
            several = len(own) > 1
            warnings.append(
                f"{key}: broker{'s' * several} {', '.join(own)} {'have' if several else 'has'} an"
                f" override of {'their' if several else 'its'} own, which stays in force there"
            )
    return warnings


def effective(settings: Settings) -> Dict[str, str]:
    """Name to value of what is in force, secrets and what is not set left out."""
    return {key: each.value for key, each in settings.items() if each.value is not None}


def endangered(before: ConfigsSnapshot, after: ConfigsSnapshot) -> Dict[Danger, List[int]]:
    """The dangers for records between two states, with the brokers concerned.

    As for a setting of one topic, by the same function: topics without a value of their own get these.
    """
    found: Dict[Danger, List[int]] = {}
    for broker in sorted(before.brokers):
        values = [effective(state.brokers[broker]) for state in (before, after)]
        for key in BROKER_KEYS:
            old, new = (topic_default(key, each) for each in values)
            if same_value(key, old, new):
                continue
            topic = Topic("", (), {key: ConfigEntry(key, old)})
            for danger in dangers(topic, {key: new}, before.stake):
                found.setdefault(danger, []).append(broker)
    return found


def cuts_of(
    before: ConfigsSnapshot, after: ConfigsSnapshot, topics: Snapshot
) -> Dict[str, Tuple[Optional[int], Optional[int]]]:
    """Topics that the dangers between two states concern, with the new (retention_ms, retention_bytes).

    These are the ones without a value of their own. None: that limit does not change.
    """
    limits: Dict[str, Set[int]] = {}
    keys = set()
    for danger, brokers in endangered(before, after).items():
        keys.add(danger.key)
        for broker in brokers:
            number = whole_number(topic_default(danger.key, effective(after.brokers[broker])))
            if number is not None:
                limits.setdefault(danger.key, set()).add(number)
    # With another policy, what has become too old goes by the limit that is in force.
    if "cleanup.policy" in keys:
        for settings in after.brokers.values():
            number = whole_number(topic_default("retention.ms", effective(settings)))
            limits.setdefault("retention.ms", set()).add(-1 if number is None else number)
    cuts = {}
    for name, topic in topics.topics.items():
        own = {key for key, each in (topic.config or {}).items() if each.source == "topic"}
        if keys - own:
            cuts[name] = (
                None if "retention.ms" in own else _lowest(limits.get("retention.ms")),
                None if "retention.bytes" in own else _lowest(limits.get("retention.bytes")),
            )
    return cuts


def _lowest(limits: Optional[Set[int]]) -> Optional[int]:
    return min((each for each in limits or () if each >= 0), default=None)


def _concerned(snapshot: ConfigsSnapshot, brokers: Sequence[int]) -> str:
    """Which topics and brokers a danger concerns, for the end of a sentence."""
    where = ""
    if len(brokers) < len(snapshot.brokers):
        where = f" on broker{'s' * (len(brokers) > 1)} {', '.join(map(str, brokers))}"
    names = snapshot.stake_topics
    now = f", {len(names)} now: {some(names)}" if names else ""
    return f"for every topic without a value of its own{where}{now}"


def _cause(key: str, change: Change) -> str:
    """The setting of the change that a danger for a topic's setting comes from."""
    names = [name for name, _factor in BROKER_KEYS[key]]
    return next(name for name in names if name in change.after)


def describe(setting: Setting, broker: int) -> Dict[str, Any]:
    """A setting of a broker as modules return it."""
    return {"broker": broker, **setting.to_dict()}
