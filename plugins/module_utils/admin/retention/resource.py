# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Retention by policies as a Resource: what the runner needs to know to reconcile it.

Private to this collection. The glue between `plan`, `cuts` and `budget`, which decide, and
`client`, which asks. Topics are changed by the same calls as those of `kafka_topics`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    FrozenSet,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.reading import (
    with_config,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settled import (
    unsettled,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    CONFIGURE,
    ConfigEntry,
    Directory,
    Key,
    Snapshot,
    Topic,
    with_disks,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    CHANGED,
    AdminError,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import (
    OPERATION_MAX_SECONDS,
    checked_seconds,
    out_of_range,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.budget import (
    Disk,
    disks_of_topics,
    needs_rate,
    refuse_overfull,
    told,
    unknown_disks,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.client import (
    RetentionClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.cuts import (
    Cut,
    Step,
    large_cuts,
    left_of,
    plan_steps,
    refuse_large,
    stepped,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.plan import (
    CONSENTS,
    KEYS,
    RETENTION_MS,
    Matching,
    contradictions,
    match_policies,
    named,
    parse_policies,
    segment_warnings,
    wishes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    reason_and_remedy,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.dangers import (
    CONSENTS as ALL_CONSENTS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    DesiredTopic,
    parse_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.plan import (
    TopicPolicy,
    apply_to,
    plan_topics,
    subjects_at_stake,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    Unclear,
    approximate_size,
    format_duration_ms,
    format_size_bytes,
    parse_duration_ms,
    parse_share,
    whole_number,
)

_VANISHED = "UNKNOWN_TOPIC_OR_PART"


@dataclass(frozen=True)
class Rules:
    """What a task asks for beside the policies."""

    consents: TopicPolicy
    maximum_cut: Optional[float] = None
    in_steps: bool = False
    budget: Optional[float] = None
    growth_window_ms: int = 0


@dataclass(frozen=True)
class Holdings:
    """The cluster, and what lies on its disks. `unknown`: why bytes are not known, if they are not."""

    cluster: Snapshot
    directories: Mapping[int, Tuple[Directory, ...]] = field(default_factory=dict)
    unknown: str = ""

    @property
    def sizes(self) -> Dict[Key, int]:
        """Bytes of the largest replica of each partition."""
        sizes: Dict[Key, int] = {}
        for found in self.directories.values():
            for directory in found:
                for key, size in directory.replicas.items():
                    sizes[key] = max(size, sizes.get(key, 0))
        return sizes


def _read(option: str, value: Any, parse: Callable[[Any], Any]) -> Any:
    """An option's value, None if it is not given; AdminError for one that cannot be."""
    if value is None:
        return None
    try:
        return parse(value)
    except ValueError as error:
        told = reason_and_remedy(error, f"correct {option}")
        raise out_of_range(option, value, *told) from error


def _window(value: Any) -> int:
    window = parse_duration_ms(value)
    if window <= 0:
        raise Unclear("a time to look back must have an end", "write for example 1d")
    return window


def rules_from(params: Mapping[str, Any]) -> Rules:
    """The Rules of a module's parameters; AdminError for what cannot be."""
    maximum = _read("maximum_cut", params["maximum_cut"], parse_share)
    if params["cut_in_steps"] and maximum is None:
        raise out_of_range(
            "cut_in_steps", "true", "steps of which size?", "give maximum_cut, such as 30%"
        )
    return Rules(
        TopicPolicy(
            allow=frozenset(params["allow"]), allow_internal=frozenset(params["allow_internal"])
        ),
        maximum,
        params["cut_in_steps"],
        _read("disk_budget", params["disk_budget"], parse_share),
        _read("growth_window", params["growth_window"], _window),
    )


class Retention(Resource):
    """The policies of one task, and the topics that they match."""

    def __init__(self, client: RetentionClient, params: Mapping[str, Any], check_mode: bool):
        checked_seconds("operation_timeout", params["operation_timeout"], OPERATION_MAX_SECONDS)
        self.client = client
        self.policies, self.refusals = parse_policies(params["policies"])
        self.declared = parse_topics(params["declared_topics"])[0]
        self.rules = rules_from(params)
        self._known_disks = params["known_disks"]
        self._lenient = params["assume_empty_if_unreachable"] and check_mode
        self._matching = Matching()
        self._full = Snapshot()
        self._steps: Dict[str, Step] = {}
        self._disks: List[Disk] = []
        self._unbounded: List[str] = []
        self._assumed = False
        # The cluster that was planned for, and settings at the moment of the changes.
        self._planned = Snapshot()
        self._asked: List[str] = []
        self._now: Optional[Mapping[str, Mapping[str, ConfigEntry]]] = None

    @property
    def _internal(self) -> FrozenSet[str]:
        return self.rules.consents.allow_internal

    def connect(self) -> None:
        """Reach the cluster, unless it may be assumed empty."""
        try:
            self.client.connect()
        except AdminError as error:
            if not self._lenient or error.reachable:
                raise
            self._assumed = True

    # ------------------------------------------------------------ reading

    def read(self) -> Holdings:
        """Topics with the settings of those that a policy matches, and what lies on the disks."""
        if self._assumed:
            return Holdings(Snapshot(assumed=True))
        cluster = self.client.fetch_topics((), self._is_concerned)
        try:
            disks = self.client.fetch_disks([broker.id for broker in cluster.brokers])
        except AdminError as error:
            if self.rules.budget is not None:
                raise
            return Holdings(cluster, unknown=f"bytes are unknown: {error.problem.reason}")
        return Holdings(cluster, with_disks(disks.directories, self._known_disks))

    def _is_concerned(self, name: str) -> bool:
        """Whether a topic's settings are needed: those of all, where they share the disks."""
        if self.rules.budget is not None:
            return True
        return bool(match_policies(self.policies, [name], self._internal).policies)

    def _with_stakes(
        self, found: Holdings, desired: Sequence[DesiredTopic]
    ) -> Tuple[Snapshot, Dict[str, Cut]]:
        """The cluster with what these topics would lose, and the cuts."""
        cuts = subjects_at_stake(desired, found.cluster, self.rules.consents)
        if not cuts:
            return found.cluster, {}
        stakes = self.client.fetch_stakes(found.cluster, cuts, found.sizes)
        if found.unknown:
            stakes = {
                name: replace(stake, unknown=stake.unknown or found.unknown)
                for name, stake in stakes.items()
            }
        return replace(found.cluster, stakes=stakes), cuts

    # ------------------------------------------------------------ planning

    def plan(self, snapshot: Holdings) -> Plan:
        """The plan, with what is at stake. Refusals are those of the whole cut, also of one in steps."""
        self._planned = snapshot.cluster
        names = snapshot.cluster.topics
        self._matching = match_policies(self.policies, names, self._internal)
        desired = wishes(self._matching, snapshot.cluster)
        full, cuts = self._with_stakes(snapshot, desired)
        plan = plan_topics(desired, full, self.rules.consents)
        contradicted = contradictions(
            self.policies, self.declared, snapshot.cluster, self._internal
        )
        refusals = [*self.refusals, *contradicted, *plan.refusals]
        consenting = replace(self.rules.consents, allow=frozenset(ALL_CONSENTS))
        self._full = apply_to(full, plan_topics(desired, full, consenting))
        warnings = [*self._told(snapshot), *plan.warnings]
        if self.rules.budget is not None and not self._assumed:
            refusals += self._over_budget(snapshot, self.rules.budget)
        self._steps = {}
        if self.rules.maximum_cut is not None:
            large = large_cuts(cuts, full.stakes, self.rules.maximum_cut)
            whole, divided = self._divided(large, desired, cuts)
            refusals += refuse_large(whole, self.rules.maximum_cut)
            if divided and not refusals:
                plan = self._in_steps(replace(snapshot, cluster=full), desired, divided)
        for name, step in sorted(self._steps.items()):
            if step.waiting:
                warnings.append(f"{name}: waits until the brokers have deleted what they may")
        return Plan(plan.changes, tuple(refusals), tuple(warnings))

    def _told(self, found: Holdings) -> List[str]:
        matching = self._matching
        warnings = segment_warnings(matching, self._full.topics, found.sizes)
        if self._assumed:
            return ["no broker can be reached; planned against an empty cluster"]
        warnings += [
            f"policies[{each.position}]: no topic has a name like {each.match} that no policy "
            "before it matches"
            for each in matching.idle
        ]
        if found.unknown:
            warnings.append(f"{found.unknown}; DescribeLogDirs needs Describe on the cluster")
        return warnings

    def _over_budget(self, found: Holdings, budget: float) -> List[Problem]:
        """What does not fit, and what cannot be judged."""
        unknown = unknown_disks(found.cluster, found.directories, budget)
        if unknown:
            return unknown
        rates: Dict[Key, float] = {}
        windows = {}
        for name, topic in self._full.topics.items():
            if topic.config is not None and needs_rate(topic):
                there = found.cluster.topics[name]
                kept = whole_number(there.effective(RETENTION_MS))
                window = self.rules.growth_window_ms
                windows[name] = min(window, kept) if kept and kept > 0 else window
        if windows:
            ends = self.client.fetch_ends(found.cluster, windows)
            rates = self.client.fetch_growth(ends, found.sizes, windows)
        self._disks, self._unbounded = disks_of_topics(self._full, found.directories, rates)
        return refuse_overfull(self._disks, budget)

    def _divided(
        self,
        large: Mapping[str, Optional[float]],
        desired: Sequence[DesiredTopic],
        cuts: Mapping[str, Cut],
    ) -> Tuple[Dict[str, Optional[float]], Dict[str, Cut]]:
        """(cuts that must be made at once, with their share; cuts that go in steps)."""
        said = {wish.name: wish.config for wish in desired}
        keys = KEYS[:2]
        divided = {
            name: cuts[name]
            for name, share in large.items()
            # Only a limit that the policy names is reached by steps in the end.
            if self.rules.in_steps
            and share is not None
            and all(key in said[name] for key, new in zip(keys, cuts[name]) if new is not None)
        }
        return {name: share for name, share in large.items() if name not in divided}, divided

    def _in_steps(
        self, found: Holdings, desired: Sequence[DesiredTopic], cuts: Mapping[str, Cut]
    ) -> Plan:
        """The plan of what is cut now; what is at stake is that of the steps."""
        cluster = found.cluster
        ends = self.client.fetch_ends(cluster, cuts)
        self._steps = plan_steps(
            cluster,
            cuts,
            found.sizes,
            self.rules.maximum_cut or 1.0,
            lambda ages: self.client.count_older(ends, ages) if ages else {},
        )
        now = [
            stepped(wish, self._steps[wish.name]) if wish.name in self._steps else wish
            for wish in desired
        ]
        staked, _cuts = self._with_stakes(found, now)
        plan = plan_topics(now, staked, self.rules.consents)
        changes = [
            (
                replace(change, note=f"{change.note}; {_towards(self._steps[change.subject])}")
                if change.subject in self._steps
                else change
            )
            for change in plan.changes
        ]
        return Plan(tuple(changes), plan.refusals, plan.warnings)

    # ------------------------------------------------------------ doing it

    def stale(self, failure: Failure) -> str:
        """A change of a topic that is deleted at this moment."""
        gone = failure.kind == CONFIGURE and failure.code == _VANISHED
        return "a broker shows it, the controller does not" if gone else ""

    def validate(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """What the brokers would refuse."""
        return self.client.validate(changes, deadline)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Make what is left of the changes, in batches.

        What is at stake was counted for the settings of the plan. So the topics are read once more: what
        somebody else has set to the same is not ours, and what he has set to something else is left to him.
        """
        self._asked = [change.subject for change in changes]
        now = self._now = self.client.fetch_configs(self._asked)
        failures: List[Failure] = []
        made: Dict[str, Change] = {}
        for change in changes:
            # Of a topic that is gone the brokers say so.
            left: Optional[Change] = change
            others: Dict[str, ConfigEntry] = {}
            if change.subject in now:
                then, defaults = self._planned.topics[change.subject], self._planned.broker_defaults
                left, others = left_of(
                    change, then, with_config(then, now[change.subject], defaults)
                )
            if others:
                words = ", ".join(
                    f"{key} to {value_told(key, entry.value)} ({entry.source})"
                    for key, entry in sorted(others.items())
                )
                words = f"somebody else has set {words} meanwhile; run the task again to plan anew"
                failures.append(Failure(change.subject, words, change.kind, CHANGED))
            elif left is None:
                words = "somebody else has set it"
                failures.append(Failure(change.subject, words, change.kind, moot=True))
            else:
                made[change.subject] = left
        self.made = made
        return failures + self.client.apply(list(made.values()), deadline)

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """What not every live broker shows yet."""
        return unsettled(self.client, changes)

    # ------------------------------------------------------------ telling

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns beside the plan."""
        found: Holdings = outcome.snapshot
        after = apply_to(self._at_the_changes(found.cluster), Plan(outcome.changed))
        stakes = self._full.stakes
        sizes = found.sizes
        matching = self._matching
        topics = []
        for name, policy in sorted(matching.policies.items()):
            old, new = found.cluster.topics.get(name), after.topics.get(name)
            if old is None or new is None:
                continue
            held = [sizes[(name, p.id)] for p in old.partitions if (name, p.id) in sizes]
            entry: Dict[str, Any] = {
                "name": name,
                "policy": policy.match,
                "partitions": len(old.partitions),
                "bytes": sum(held) if held or not found.unknown else None,
                "before": settings_told(old),
                "after": settings_told(new),
                "deletable": None,
                "unfinished": name in self._steps,
            }
            if name in stakes:
                stake = stakes[name]
                entry["deletable"] = {
                    "records": stake.records,
                    "bytes": stake.bytes,
                    "total_records": stake.total_records,
                    "total_bytes": stake.total_bytes,
                }
            topics.append(entry)
        return {
            "cluster_id": found.cluster.cluster_id,
            "topics": topics,
            "unfinished": sorted(self._steps),
            "protected": list(matching.protected),
            "left_alone": list(matching.left_alone),
            "without_policy": len(matching.without),
            "disks": told(self._disks, self.rules.budget),
            "not_bounded": self._unbounded,
            "report": self._report(topics, {change.subject for change in outcome.changed}),
        }

    def _at_the_changes(self, planned: Snapshot) -> Snapshot:
        """The cluster with the settings that there were when it was changed; without topics that were gone."""
        now = self._now
        if now is None:
            return planned
        topics = {
            name: with_config(topic, now[name], planned.broker_defaults) if name in now else topic
            for name, topic in planned.topics.items()
            if name in now or name not in self._asked
        }
        return replace(planned, topics=topics)

    def _report(self, topics: Sequence[Mapping[str, Any]], made: Collection[str]) -> List[str]:
        """For people: one line for each topic that changes, most records first, and a line in all."""
        changing = [
            each for each in topics if each["name"] in made and each["before"] != each["after"]
        ]
        changing.sort(
            key=lambda each: (-((each["deletable"] or {}).get("bytes") or 0), each["name"])
        )
        matching = self._matching
        counts = [
            f"{len(matching.policies)} topics have a policy",
            f"{len(changing)} change",
            f"{len(matching.without)} match none",
        ]
        counts += [
            f"{len(names)} {words}"
            for names, words in (
                (matching.protected, "are protected"),
                (matching.left_alone, "are left alone"),
                (self._steps, "are cut in steps"),
            )
            if names
        ]
        lines = [", ".join(counts)]
        if self._unbounded:
            lines.append(f"not bounded, counted with what they hold now: {named(self._unbounded)}")
        return lines + [_line(each) for each in changing]


def _towards(step: Step) -> str:
    """Where a step leads."""
    return "a step towards " + ", ".join(
        f"{key} {value_told(key, value)}" for key, value in sorted(step.final.items())
    )


def value_told(key: str, value: Optional[str]) -> str:
    """A setting for people: durations and sizes with their units."""
    number = whole_number(value)
    if number is None:
        return str(value)
    if key.endswith(".ms"):
        return format_duration_ms(number)
    return format_size_bytes(number) if key.endswith(".bytes") else str(number)


def settings_told(topic: Topic, keys: Sequence[str] = KEYS) -> Dict[str, Dict[str, Any]]:
    """Settings of a topic as modules return them: value, the same for people, and where it comes from."""
    config = topic.config or {}
    return {
        key: {
            "value": config[key].value,
            "means": value_told(key, config[key].value),
            "source": config[key].source,
        }
        for key in keys
        if key in config
    }


def _line(entry: Mapping[str, Any]) -> str:
    changed = [
        f"{key} {entry['before'].get(key, {}).get('means', 'unknown')} "
        f"({entry['before'].get(key, {}).get('source', 'unknown')}) -> {new['means']}"
        for key, new in entry["after"].items()
        if entry["before"].get(key) != new
    ]
    stake = entry["deletable"]
    lost = ""
    if stake and (stake["records"] or stake["bytes"]):
        size = (
            f" and about {approximate_size(stake['bytes'])}" if stake["bytes"] is not None else ""
        )
        lost = f"; deletable: {stake['records']} records{size}"
    return f"{entry['name']}: {', '.join(changed)}{lost}"


# The module's own options; their documentation is in the module.
RETENTION_OPTIONS = dict(
    policies=dict(
        type="list",
        elements="dict",
        required=True,
        options=dict(
            # raw: what is wrong with them is said together with everything else.
            match=dict(type="raw", required=True),
            keep_for=dict(type="raw"),
            keep_up_to=dict(type="raw"),
            cleanup=dict(type="raw"),
            fit_segments=dict(type="bool"),
            leave_alone=dict(type="bool"),
        ),
    ),
    disk_budget=dict(type="str"),
    growth_window=dict(type="str", default="1d"),
    maximum_cut=dict(type="str"),
    cut_in_steps=dict(type="bool", default=False),
    allow=dict(type="list", elements="str", choices=list(CONSENTS), default=[]),
    allow_internal=dict(type="list", elements="str", default=[]),
    declared_topics=dict(type="list", elements="raw", default=[]),
    assume_empty_if_unreachable=dict(type="bool", default=False),
    operation_timeout=dict(type="float", default=300.0),
)
