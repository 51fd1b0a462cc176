# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which records are deleted: read from options, and planned. Pure.

Private to this collection. Kafka deletes from the beginning of a partition up to an offset: only that can
be asked for. What is deleted is counted by offsets, and its bytes by the average record.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    Snapshot,
    Topic,
    partition_name,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import (
    did_you_mean,
    unclear_name,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change, Plan
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    reason_and_remedy,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.stakes import estimate_stake
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.plan import (
    holds_state,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    approximate_size,
    parse_moment_ms,
)

DELETE_RECORDS = "delete_records"
CONSENTS = (DELETE_RECORDS,)
# Options of an item that say up to where; one of them.
LIMITS = ("before_offset", "before_time", "all")


@dataclass(frozen=True)
class DesiredCut:
    """Records of a topic that are to be gone: those before an offset, before a moment (ms), or all."""

    topic: str
    partitions: Optional[FrozenSet[int]] = None
    before_offset: Optional[int] = None
    before_ms: Optional[int] = None

    def keys(self, topic: Optional[Topic]) -> List[Key]:
        """The partitions that are meant, as far as they exist."""
        return [
            (self.topic, part.id)
            for part in (topic.partitions if topic else ())
            if self.partitions is None or part.id in self.partitions
        ]


@dataclass(frozen=True)
class Extent:
    """What was read: topics with their settings, ends of partitions, offsets of moments, bytes."""

    cluster: Snapshot
    starts: Mapping[Key, int] = field(default_factory=dict)
    ends: Mapping[Key, int] = field(default_factory=dict)
    moments: Mapping[Key, int] = field(default_factory=dict)
    sizes: Mapping[Key, int] = field(default_factory=dict)
    unknown: str = ""
    # Ids of topics: one that was deleted and made again has another one.
    ids: Mapping[str, str] = field(default_factory=dict)


def _refuse(
    wrong: List[Problem], name: str, reason: str, remedy: str, setting: str = "", value: Any = ""
) -> None:
    wrong.append(Problem("records.bad_item", reason, remedy, (name,), setting, value))


def parse_cuts(
    items: Sequence[Mapping[str, Any]], now_ms: int
) -> Tuple[Tuple[DesiredCut, ...], Tuple[Problem, ...]]:
    """Desired cuts in the order given, and a refusal for everything that is wrong with them."""
    cuts: List[DesiredCut] = []
    refusals: List[Problem] = []
    for item in items:
        name = str(item["name"])
        wrong: List[Problem] = []

        refuse = functools.partial(_refuse, wrong, name)

        if not isinstance(item["name"], str):
            refuse(unclear_name(item["name"]), "write the name in quotes", "name", name)
        # 0 is an offset, and equals False
        given = [each for each in LIMITS if item[each] is not None and item[each] is not False]
        if len(given) != 1:
            told = f"{' and '.join(given)} are given" if given else "nothing says up to where"
            refuse(told, f"give one of {', '.join(LIMITS)}")
        offset, moment = item["before_offset"], None
        if offset is not None and offset < 0:
            refuse("an offset is not negative", "give one from 0 on", "before_offset", offset)
        if item["before_time"] is not None:
            try:
                moment = parse_moment_ms(item["before_time"], now_ms)
            except ValueError as error:
                refuse(*reason_and_remedy(error, "correct it"), "before_time", item["before_time"])
            if moment is not None and moment > now_ms:
                refuse(
                    "it is in the future",
                    "give a moment that is over",
                    "before_time",
                    item["before_time"],
                )
        partitions = frozenset(item["partitions"]) if item["partitions"] is not None else None
        if partitions is not None and not partitions:
            refuse("the list is empty", "leave it out for all", "partitions")
        cut = DesiredCut(name, partitions, offset, moment)
        if any(each.topic == name and _overlap(each, cut) for each in cuts):
            refuse("the topic is listed twice", "keep one, or give each its own partitions")
        refusals += wrong
        if not wrong:
            cuts.append(cut)
    return tuple(cuts), tuple(refusals)


def _overlap(one: DesiredCut, other: DesiredCut) -> bool:
    if one.partitions is None or other.partitions is None:
        return True
    return bool(one.partitions & other.partitions)


def plan_records(
    desired: Sequence[DesiredCut],
    extent: Extent,
    allow: FrozenSet[str],
    allow_internal: FrozenSet[str] = frozenset(),
) -> Plan:
    """The Plan that deletes what is to be gone, as far as there is consent."""
    changes: List[Change] = []
    refusals: List[Problem] = []
    for cut in desired:
        refused = _refusals(cut, extent, allow_internal)
        found: List[Change] = []
        offsets: Dict[Key, Tuple[int, int, int]] = {}
        for key in cut.keys(extent.cluster.topics.get(cut.topic)) if not refused else ():
            start, end = extent.starts[key], extent.ends[key]
            target = _target(cut, key, extent)
            if target > end:
                reason = f"{partition_name(*key)} ends at {end}"
                remedy = "give an offset up to there, or all"
                refused.append(
                    Problem(
                        "records.out_of_range",
                        reason,
                        remedy,
                        (cut.topic,),
                        "before_offset",
                        str(target),
                    )
                )
            elif target > start:
                offsets[key] = (start, end, target)
                found.append(
                    Change(
                        DELETE_RECORDS,
                        partition_name(*key),
                        {"first_offset": start},
                        {"first_offset": target},
                        _words({key: offsets[key]}, extent),
                    )
                )
        if found and DELETE_RECORDS not in allow:
            refused.append(
                Problem(
                    "records.delete",
                    f"{_words(offsets, extent)} would be deleted, and nothing brings them back",
                    f"consent with allow: [{DELETE_RECORDS}]",
                    (cut.topic,),
                )
            )
        refusals += refused
        changes += [] if refused else found
    changes.sort(key=lambda change: change.subject)
    return Plan(tuple(changes), tuple(refusals))


def _target(cut: DesiredCut, key: Key, extent: Extent) -> int:
    """The first offset that stays."""
    if cut.before_offset is not None:
        return cut.before_offset
    if cut.before_ms is not None:
        found = extent.moments.get(key, -1)
        return extent.ends[key] if found < 0 else found
    return extent.ends[key]


def _refusals(cut: DesiredCut, extent: Extent, allow_internal: FrozenSet[str]) -> List[Problem]:
    """Why nothing of a topic may be deleted, whatever the consent."""

    def refuse(check: str, reason: str, remedy: str, setting: str = "", value: Any = "") -> Problem:
        return Problem(check, reason, remedy, (cut.topic,), setting, value)

    topic = extent.cluster.topics.get(cut.topic)
    if topic is None:
        reason = f"there is no such topic{did_you_mean(cut.topic, extent.cluster.topics)}"
        return [refuse("records.unknown_topic", reason, "correct the name")]
    found = []
    if holds_state(cut.topic) and cut.topic not in allow_internal:
        reason = "it looks like the state of Kafka, Connect, a mirror or a stream"
        found.append(
            refuse("topics.protected", reason, f"name it in allow_internal: [{cut.topic}]")
        )
    policy = topic.effective("cleanup.policy")
    if policy is not None and "delete" not in policy:
        reason = "the topic is compacted, and Kafka deletes no records of it before an offset"
        remedy = "write records without a value for the keys, or add delete to cleanup.policy"
        found.append(refuse("records.compacted", reason, remedy, "cleanup.policy", policy))
    there = {part.id for part in topic.partitions}
    for number in sorted((cut.partitions or frozenset()) - there):
        reason = f"the topic has {len(there)} partitions, the first one is 0"
        found.append(
            refuse("records.unknown_partition", reason, "correct the number", "partitions", number)
        )
    silent = [key for key in cut.keys(topic) if key not in extent.starts or key not in extent.ends]
    led = extent.cluster.led if silent else frozenset()
    leaderless = [partition_name(*key) for key in silent if key not in led]
    if silent and not leaderless:
        reason = "the topic was deleted at this moment"
        found.append(refuse("records.unknown_topic", reason, "run it again"))
    if leaderless:
        reason = f"{', '.join(leaderless)}: no leader"
        remedy = "start the brokers that have it (playbooks/start.yml starts what is down)"
        found.append(refuse("records.no_leader", reason, remedy))
    return found


def _words(offsets: Mapping[Key, Tuple[int, int, int]], extent: Extent) -> str:
    """What would be deleted, in records and bytes; `offsets` are (first, end, first that stays)."""
    sizes = [extent.sizes[key] for key in offsets if key in extent.sizes]
    whole = len(sizes) == len(offsets)
    stake = estimate_stake(list(offsets.values()), sizes if whole else [], 0, None, extent.unknown)
    count = stake.records or 0
    text = f"{count} record{'' if count == 1 else 's'}"
    if stake.bytes is not None:
        return f"{text}, about {approximate_size(stake.bytes)} on disk"
    return f"{text} ({stake.unknown})" if stake.unknown else text
