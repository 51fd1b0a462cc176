# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Retention by policies over topic names: which policy a topic has, and what it means for the topic.

Private to this collection. Pure. A policy becomes a DesiredTopic of `topics.plan`, which plans, and
which knows the dangers: there is no second judgement of what deletes records.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Pattern,
    Sequence,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import did_you_mean
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    CLEANUP_REMEDY,
    cleanup_policy,
    reason_and_remedy,
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.dangers import (
    CLEANUP_CHANGE,
    RETENTION_CUT,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    RETENTION,
    RETENTION_SIZE,
    DesiredTopic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.plan import holds_state
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    UNLIMITED,
    approximate_size,
    format_duration_ms,
    whole_number,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted, shown, some

CONSENTS = (RETENTION_CUT, CLEANUP_CHANGE)
RETENTION_MS, RETENTION_BYTES = RETENTION.key, RETENTION_SIZE.key
CLEANUP, SEGMENT_MS, SEGMENT_BYTES = "cleanup.policy", "segment.ms", "segment.bytes"
# What a policy can set, and what is shown of each topic, with where it comes from.
KEYS = (RETENTION_MS, RETENTION_BYTES, CLEANUP, SEGMENT_MS, SEGMENT_BYTES)
# Instead of a value: take the topic's own setting away.
DEFAULT = "default"
_POLICY_KEYS = ("match", "keep_for", "keep_up_to", "cleanup", "fit_segments", "leave_alone")
# A segment is deleted as a whole, once its newest record is too old. Asked to fit, it spans a tenth of
# what is kept, and is left as it is up to a quarter.
FITTING, FITTED = 4, 10
LEAST_SEGMENT_MS, LEAST_SEGMENT_BYTES = 60 * 1000, 2**20
# Which option of a policy sets a key.
_OPTION_OF = {
    RETENTION_MS: "keep_for",
    RETENTION_BYTES: "keep_up_to",
    CLEANUP: "cleanup",
    SEGMENT_MS: "fit_segments",
    SEGMENT_BYTES: "fit_segments",
}
SHOWN = 5


@dataclass(frozen=True)
class RetentionPolicy:
    """One policy. None: it says nothing of it. `cleanup` and the limits may be DEFAULT.

    `written`: its options as people wrote them.
    """

    position: int
    pattern: Pattern[str]
    keep_for: Optional[str] = None
    keep_up_to: Optional[str] = None
    cleanup: Optional[str] = None
    fit_segments: bool = False
    leave_alone: bool = False
    written: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def match(self) -> str:
        """The expression as it was written."""
        return self.pattern.pattern


@dataclass(frozen=True)
class Matching:
    """Who has which policy; the names in `protected` match one, hold somebody's state, and are left alone."""

    policies: Mapping[str, RetentionPolicy] = field(default_factory=dict)
    protected: Tuple[str, ...] = ()
    left_alone: Tuple[str, ...] = ()
    without: Tuple[str, ...] = ()
    idle: Tuple[RetentionPolicy, ...] = ()


# ---------------------------------------------------------------- reading policies


class _PolicyReader:
    """Reads one item and collects everything that is wrong with it, not only the first."""

    def __init__(self, item: Any, position: int):
        self.item = item
        self.position = position
        self.refusals: List[Problem] = []

    def refuse(
        self, check: str, reason: str, remedy: str, setting: str = "", value: Any = ""
    ) -> None:
        """Note a problem of this policy."""
        subject = (f"policies[{self.position}]",)
        self.refusals.append(Problem(check, reason, remedy, subject, setting, value))

    def read(self) -> Optional[RetentionPolicy]:
        """The policy; None if something is wrong with it."""
        if not isinstance(self.item, Mapping):
            reason = f"a policy must be a mapping, not {shown(self.item)}"
            self.refuse("retention.bad_policy", reason, "write match: ... and keep_for: ...")
            return None
        # As Ansible hands options over: what is not given is None.
        item = {key: value for key, value in self.item.items() if value is not None}
        for key in sorted(set(item) - set(_POLICY_KEYS), key=str):
            self.refuse(
                "retention.bad_policy",
                f"unknown option{did_you_mean(key, _POLICY_KEYS)}",
                f"use {', '.join(_POLICY_KEYS)}",
                shown(key),
                item[key],
            )
        pattern = self._pattern(item.get("match"))
        switches = {key: self._switch(item, key) for key in ("fit_segments", "leave_alone")}
        keep_for = self._value(item, "keep_for", RETENTION.read)
        keep_up_to = self._value(item, "keep_up_to", RETENTION_SIZE.read)
        cleanup = self._value(item, "cleanup", cleanup_policy, CLEANUP_REMEDY)
        self._whole(item, switches, cleanup)
        if self.refusals or pattern is None:
            return None
        return RetentionPolicy(
            self.position, pattern, keep_for, keep_up_to, cleanup, **switches, written=item
        )

    def _pattern(self, text: Any) -> Optional[Pattern[str]]:
        try:
            if not isinstance(text, str) or not text:
                raise ValueError("a policy needs a regular expression over whole topic names")
            return re.compile(text)
        except (re.error, ValueError) as error:
            words = f"not a regular expression, {error}" if isinstance(error, re.error) else error
            remedy = "write for example match: 'logs\\..*'"
            self.refuse("retention.bad_policy", str(words), remedy, "match", text)
            return None

    def _switch(self, item: Mapping[str, Any], key: str) -> bool:
        value = item.get(key, False)
        if not isinstance(value, bool):
            self.refuse("retention.bad_policy", "not a boolean", "use true or false", key, value)
        return value is True

    def _value(
        self, item: Mapping[str, Any], key: str, read: Callable[[Any], str], remedy: str = ""
    ) -> Optional[str]:
        """Kafka's text for an option, DEFAULT, or None."""
        value = item.get(key)
        if value is None or value == DEFAULT:
            return value
        try:
            text = read(value)
            if text == "0":
                raise ValueError("0 keeps nothing at all")
            return text
        except ValueError as error:
            told = reason_and_remedy(error, remedy or f"correct {key}")
            self.refuse("config.bad_value", *told, key, value)
            return None

    def _whole(
        self, item: Mapping[str, Any], switches: Mapping[str, bool], cleanup: Optional[str]
    ) -> None:
        """What the options say together."""
        said = [key for key in ("keep_for", "keep_up_to", "cleanup") if key in item]
        if switches["leave_alone"]:
            if said or switches["fit_segments"]:
                self.refuse(
                    "retention.contradiction",
                    f"leave_alone, and yet {', '.join([*said, 'fit_segments'][:1])}",
                    "keep one of the two",
                    "leave_alone",
                    True,
                )
        elif not said:
            self.refuse(
                "retention.bad_policy",
                "it says nothing about the topics that match",
                "give keep_for, keep_up_to or cleanup, or leave_alone: true",
            )
        if cleanup == "compact" and set(said) & {"keep_for", "keep_up_to"}:
            self.refuse(
                "retention.contradiction",
                "neither age nor size deletes anything while cleanup is compact alone",
                "write cleanup: compact,delete, or leave keep_for and keep_up_to out",
                "cleanup",
                item["cleanup"],
            )


def parse_policies(
    items: Sequence[Any],
) -> Tuple[Tuple[RetentionPolicy, ...], Tuple[Problem, ...]]:
    """Policies in the order given, which decides, and a refusal for everything that is wrong."""
    policies: List[RetentionPolicy] = []
    refusals: List[Problem] = []
    first: Dict[str, int] = {}
    for position, item in enumerate(items):
        reader = _PolicyReader(item, position)
        policy = reader.read()
        if policy and first.setdefault(policy.match, position) != position:
            reader.refuse(
                "retention.duplicate",
                f"policies[{first[policy.match]}] has the same expression, and the first one counts",
                "keep one of them",
                "match",
                policy.match,
            )
        refusals += reader.refusals
        if policy and not reader.refusals:
            policies.append(policy)
    return tuple(policies), tuple(refusals)


# ---------------------------------------------------------------- which topic has which policy


def policy_of(policies: Iterable[RetentionPolicy], name: str) -> Optional[RetentionPolicy]:
    """The first policy whose expression is the whole name; None if there is none."""
    return next((each for each in policies if each.pattern.fullmatch(name)), None)


def is_protected(name: str, allow_internal: Collection[str]) -> bool:
    """Whether no policy may touch this topic: it holds somebody's state, and is not named."""
    return holds_state(name) and name not in allow_internal


def match_policies(
    policies: Sequence[RetentionPolicy], names: Iterable[str], allow_internal: FrozenSet[str]
) -> Matching:
    """Who has which policy."""
    found: Dict[str, RetentionPolicy] = {}
    protected, left_alone, without = [], [], []
    used = set()
    for name in sorted(names):
        policy = policy_of(policies, name)
        if policy is None:
            without.append(name)
            continue
        used.add(policy.position)
        if policy.leave_alone:
            left_alone.append(name)
        elif is_protected(name, allow_internal):
            protected.append(name)
        else:
            found[name] = policy
    idle = tuple(each for each in policies if each.position not in used)
    return Matching(found, tuple(protected), tuple(left_alone), tuple(without), idle)


# ---------------------------------------------------------------- what it means for a topic


def settings_of(policy: RetentionPolicy, partitions: int) -> Dict[str, Optional[str]]:
    """What a policy sets on a topic of so many partitions, by Kafka's keys; None: the default.

    `keep_up_to` is for the whole topic, and Kafka's limit is for each partition.
    """
    settings: Dict[str, Optional[str]] = {}
    if policy.keep_for is not None:
        settings[RETENTION_MS] = None if policy.keep_for == DEFAULT else policy.keep_for
    if policy.keep_up_to == DEFAULT:
        settings[RETENTION_BYTES] = None
    elif policy.keep_up_to is not None:
        whole = int(policy.keep_up_to)
        each = whole if whole == UNLIMITED else max(1, whole // max(1, partitions))
        settings[RETENTION_BYTES] = str(each)
    if policy.cleanup is not None:
        settings[CLEANUP] = None if policy.cleanup == DEFAULT else policy.cleanup
    return settings


def wish_of(policy: RetentionPolicy, topic: Topic) -> DesiredTopic:
    """The policy as a declared topic."""
    settings = settings_of(policy, len(topic.partitions))
    if policy.fit_segments:
        settings.update(_fitting(topic, settings))
    written = {
        key: (f"policies[{policy.position}].{option}", policy.written.get(option))
        for key, option in _OPTION_OF.items()
        if key in settings
    }
    return DesiredTopic(topic.name, config=settings, written=written)


def wishes(matching: Matching, snapshot: Snapshot) -> List[DesiredTopic]:
    """The declared topics that follow from the policies; topics that vanished are left out."""
    return [
        wish_of(policy, snapshot.topics[name])
        for name, policy in sorted(matching.policies.items())
        if name in snapshot.topics
    ]


def _fitting(topic: Topic, settings: Mapping[str, Optional[str]]) -> Dict[str, Optional[str]]:
    """Segments small enough for what is asked; nothing where they are already."""
    fitted: Dict[str, Optional[str]] = {}
    age, now = whole_number(settings.get(RETENTION_MS)), whole_number(topic.effective(SEGMENT_MS))
    if age and age > 0 and (now is None or now > age // FITTING):
        wanted = max(age // FITTED, min(LEAST_SEGMENT_MS, age))
        if now is None or wanted < now:
            fitted[SEGMENT_MS] = str(wanted)
    size = whole_number(settings.get(RETENTION_BYTES))
    now = whole_number(topic.effective(SEGMENT_BYTES))
    if size and size > 0 and now is not None and now > size // FITTING:
        # A batch of records must fit into a segment.
        batch = whole_number(topic.effective("max.message.bytes")) or 0
        wanted = max(size // FITTED, LEAST_SEGMENT_BYTES, 2 * batch)
        if wanted < now:
            fitted[SEGMENT_BYTES] = str(wanted)
    return fitted


def contradictions(
    policies: Sequence[RetentionPolicy],
    declared: Iterable[DesiredTopic],
    snapshot: Snapshot,
    allow_internal: Collection[str] = (),
) -> List[Problem]:
    """Declared topics that say something else than their policy: each run would undo the other.

    `snapshot`: the topics that exist, and the brokers' defaults for those that do not.
    """
    found = []
    default = whole_number(snapshot.broker_defaults.get("num.partitions")) or 1
    for topic in declared:
        policy = policy_of(policies, topic.name)
        if topic.state != "present" or policy is None or policy.leave_alone:
            continue
        if is_protected(topic.name, allow_internal):
            continue
        exists = snapshot.topics.get(topic.name)
        # that it has, or will have
        partitions = topic.partitions or (len(exists.partitions) if exists else default)
        for key, value in settings_of(policy, partitions).items():
            if key not in topic.config or _same(key, topic.config[key], value):
                continue
            said = topic.config[key] or DEFAULT
            found.append(
                Problem(
                    "retention.contradiction",
                    f"kafka_topics declares {said}, and policies[{policy.position}] "
                    f"({policy.match}) means {value or DEFAULT}",
                    "say it in one place: leave it out of kafka_topics, or put a policy with "
                    "leave_alone: true for this topic before that one",
                    (topic.name,),
                    *topic.where(key, said),
                )
            )
    return found


def _same(key: str, one: Optional[str], other: Optional[str]) -> bool:
    return one == other if one is None or other is None else same_value(key, one, other)


# ---------------------------------------------------------------- what keeps records longer


def segment_warnings(
    matching: Matching, after: Mapping[str, Topic], sizes: Mapping[Key, int]
) -> List[str]:
    """Policies whose records stay far longer, or take far more room, because segments are large.

    `after`: the topics as they will be; `sizes`: bytes of partitions. A segment is deleted as a whole: its
    oldest record may stay for `segment.ms` longer, unless the segment is full before.
    """
    longer: Dict[int, List[Tuple[str, int, int]]] = {}
    larger: Dict[int, List[Tuple[str, int, int]]] = {}
    useless: Dict[int, List[str]] = {}
    for name, policy in sorted(matching.policies.items()):
        topic = after.get(name)
        if topic is None:
            continue
        if topic.effective(CLEANUP) == "compact":
            if policy.keep_for or policy.keep_up_to:
                useless.setdefault(policy.position, []).append(name)
            continue
        segment_bytes = whole_number(topic.effective(SEGMENT_BYTES)) or 0
        if policy.keep_for:
            age = whole_number(topic.effective(RETENTION_MS)) or 0
            rolled = whole_number(topic.effective(SEGMENT_MS)) or 0
            full = any(sizes.get((name, p.id), 0) > segment_bytes for p in topic.partitions)
            if 0 < age < rolled and not full:
                longer.setdefault(policy.position, []).append((name, age, rolled))
        if policy.keep_up_to:
            limit = whole_number(topic.effective(RETENTION_BYTES)) or 0
            if 0 < limit < segment_bytes:
                larger.setdefault(policy.position, []).append((name, limit, segment_bytes))
    found = []
    for position, cases in sorted(longer.items()):
        name, age, rolled = max(cases, key=lambda each: each[2] / each[1])
        found.append(
            f"policies[{position}]: segment.ms keeps records of {counted(len(cases), 'topic')} up to "
            f"{format_duration_ms(age + rolled)} instead of {format_duration_ms(age)} ({name}); "
            "fit_segments: true sets it, too"
        )
    for position, cases in sorted(larger.items()):
        name, limit, segment = max(cases, key=lambda each: each[2] / each[1])
        found.append(
            f"policies[{position}]: segment.bytes lets partitions of {counted(len(cases), 'topic')} grow to "
            f"{approximate_size(limit + segment)} instead of {approximate_size(limit)} ({name}); "
            "fit_segments: true sets it, too"
        )
    for position, names in sorted(useless.items()):
        found.append(
            f"policies[{position}]: neither age nor size deletes anything in {counted(len(names), 'topic')}, "
            "because cleanup.policy is compact"
        )
    return found


def named(names: Sequence[str]) -> str:
    """Some names, for sentences."""
    return some(names, SHOWN)
