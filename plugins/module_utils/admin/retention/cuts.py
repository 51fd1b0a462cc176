# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How large a cut of retention is, and how it is made in steps of at most a given share.

Private to this collection. Pure; `ask` is handed in where offsets are needed. A step is planned from what
the topic holds at that moment, so that it does not matter who made the step before, or when: as long as
the brokers have not deleted what a step lets go, the next one finds it still there and goes no further.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    ConfigEntry,
    Key,
    Snapshot,
    Stake,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.plan import (
    CLEANUP,
    RETENTION_BYTES,
    RETENTION_MS,
    SEGMENT_BYTES,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.dangers import dangers
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    DesiredTopic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    format_share,
    whole_number,
)

# (retention_ms, retention_bytes), None where that limit is not cut
Cut = Tuple[Optional[int], Optional[int]]
ROUNDS = 48
# How exact the age of a step is: a second, or a thousandth of it.
EXACT_MS, EXACT_SHARE = 1000, 1000


def share_of(stake: Stake) -> Optional[float]:
    """The share of a topic that a cut deletes, of its bytes or its records; None: not known."""
    shares = [
        part / whole if whole else 0.0
        for part, whole in (
            (stake.bytes, stake.total_bytes),
            (stake.records, stake.total_records),
        )
        if part is not None and whole is not None
    ]
    return max(shares) if shares else None


def large_cuts(
    cuts: Mapping[str, Cut], stakes: Mapping[str, Stake], maximum: float
) -> Dict[str, Optional[float]]:
    """Topics whose cut is larger than the share `maximum`, or of unknown size: name to share.

    Only limits count: how much a compaction takes away nobody can know before.
    """
    found = {}
    for name, limits in cuts.items():
        if limits == (None, None):
            continue
        share = share_of(stakes[name]) if name in stakes else None
        if share is None or share > maximum:
            found[name] = share
    return found


def refuse_large(large: Mapping[str, Optional[float]], maximum: float) -> List[Problem]:
    """A refusal for each cut that is larger than was agreed."""
    found = []
    for name, share in sorted(large.items()):
        if share is None:
            reason = "how much of the topic the cut would delete could not be learned"
            remedy = "grant this user Describe on the topic and on the cluster, or leave it out"
        else:
            reason = f"the cut would delete {format_share(share)} of what the topic holds"
            remedy = (
                "cut_in_steps: true cuts a part in each run (playbooks: -e "
                "kafka_retention_cut_in_steps=true), or raise it (-e kafka_retention_maximum_cut=100%)"
            )
        found.append(
            Problem(
                "retention.large_cut", reason, remedy, (name,), "maximum_cut", format_share(maximum)
            )
        )
    return found


# ---------------------------------------------------------------- steps


@dataclass(frozen=True)
class Step:
    """The next limits of a topic on the way to `final`; `waiting`: the last step is still being deleted."""

    settings: Mapping[str, str]
    final: Mapping[str, Optional[str]]

    @property
    def waiting(self) -> bool:
        """Whether nothing can be cut now."""
        return not self.settings


Ask = Callable[[Mapping[str, int]], Mapping[str, int]]


def plan_steps(
    snapshot: Snapshot,
    cuts: Mapping[str, Cut],
    sizes: Mapping[Key, int],
    maximum: float,
    ask: Ask,
) -> Dict[str, Step]:
    """The next Step of each of these cuts, all of which are larger than `maximum`.

    `ask` maps {topic: age in ms} to how many records are older than that.
    """
    steps: Dict[str, Dict[str, str]] = {name: {} for name in cuts}
    by_age: Dict[str, Tuple[int, int, float]] = {}
    for name, (age, size) in cuts.items():
        topic = snapshot.topics[name]
        # Where both limits are cut, both together may delete the share.
        share = maximum / 2 if age is not None and size is not None else maximum
        if size is not None:
            step = size_step(topic, sizes, size, share)
            if step is not None:
                steps[name][RETENTION_BYTES] = str(step)
        total = snapshot.stakes[name].total_records
        if age is not None and total:
            old = whole_number(topic.effective(RETENTION_MS))
            gained = "delete" not in (topic.effective("cleanup.policy") or "")
            endless = old is None or old < 0 or gained
            by_age[name] = (age, -1 if endless else int(old or 0), share * total)
    for name, age in age_steps(snapshot, sizes, by_age, ask).items():
        steps[name][RETENTION_MS] = str(age)
    keys = ((RETENTION_MS, 0), (RETENTION_BYTES, 1))
    return {
        name: Step(
            steps[name],
            {key: str(cuts[name][index]) for key, index in keys if cuts[name][index] is not None},
        )
        for name in cuts
    }


def stepped(wish: DesiredTopic, step: Step) -> DesiredTopic:
    """The declared topic with the limits of the step; without those that cannot be cut now."""
    kept = {key: value for key, value in wish.config.items() if key not in step.final}
    return replace(wish, config={**kept, **step.settings})


def size_step(topic: Topic, sizes: Mapping[Key, int], final: int, share: float) -> Optional[int]:
    """The next `retention.bytes` on the way to `final`; None if nothing can be cut now."""
    held = [sizes.get((topic.name, part.id), 0) for part in topic.partitions]
    limit = whole_number(topic.effective(RETENTION_BYTES))
    allowance = share * sum(held)
    found = max(final, least_limit(held, allowance))
    if limit is None or limit < 0 or found < limit:
        return found
    # What is left above the limit and fits into a segment stays until the segment is full.
    left = sum(max(0, each - limit) for each in held)
    if left > one_segment_each(topic, held):
        return None
    found = max(final, least_limit(held, allowance + left))
    return found if found < limit else None


def least_limit(sizes: Sequence[int], allowance: float) -> int:
    """The least limit of each partition with which at most `allowance` bytes are above it in all."""
    low, high = 0, max(sizes, default=0)
    while low < high:
        middle = (low + high) // 2
        if sum(max(0, size - middle) for size in sizes) <= allowance:
            high = middle
        else:
            low = middle + 1
    return high


def one_segment_each(topic: Topic, held: Sequence[int]) -> int:
    """The most bytes that one segment of each partition can have."""
    segment = whole_number(topic.effective(SEGMENT_BYTES)) or 0
    return sum(min(size, segment) for size in held)


def age_steps(
    snapshot: Snapshot,
    sizes: Mapping[Key, int],
    cuts: Mapping[str, Tuple[int, int, float]],
    ask: Ask,
) -> Dict[str, int]:
    """The next `retention.ms` of each topic; those that cannot be cut now are left out.

    `cuts` maps names to (final age, present age, records that may go); a present age of -1 is endless.
    All topics are asked about at once, so the number of requests does not depend on how many there are.
    """
    if not cuts:
        return {}
    left = ask({name: old for name, (_final, old, _may) in cuts.items() if old >= 0})
    allowed: Dict[str, float] = {}
    small: Dict[str, bool] = {}
    for name, (_final, _old, may) in cuts.items():
        rest = left.get(name, 0)
        # What is too old already and still there is being deleted, or is one segment of each partition.
        small[name] = rest <= _records_of_segments(snapshot, name, sizes)
        if rest < may:
            allowed[name] = may
        elif small[name]:
            allowed[name] = may + rest
    found = _least_ages({name: cuts[name][:2] for name in allowed}, allowed, ask)
    older = ask({name: high for name, (_low, high) in found.items()})
    steps = {}
    for name, (low, high) in found.items():
        if older.get(name, 0) > left.get(name, 0):
            steps[name] = high
        elif small[name]:
            # Records of one moment are more than the share, and no age divides them.
            steps[name] = low
    return {name: age for name, age in steps.items() if cuts[name][1] < 0 or age < cuts[name][1]}


def _records_of_segments(snapshot: Snapshot, name: str, sizes: Mapping[Key, int]) -> float:
    topic, total = snapshot.topics[name], snapshot.stakes[name].total_records or 0
    held = [sizes.get((name, part.id), 0) for part in topic.partitions]
    return total * one_segment_each(topic, held) / sum(held) if sum(held) else 0.0


def _least_ages(
    ranges: Mapping[str, Tuple[int, int]], allowed: Mapping[str, float], ask: Ask
) -> Dict[str, Tuple[int, int]]:
    """Ages between which the allowed records are passed: more are older than the first, not than the second."""
    # Older than the epoch is nothing.
    endless = 2**41
    low = {name: final for name, (final, _old) in ranges.items()}
    high = {name: old if old >= 0 else endless for name, (_final, old) in ranges.items()}
    for _round in range(ROUNDS):
        middle = {
            name: (low[name] + high[name]) // 2
            for name in ranges
            if high[name] - low[name] > max(EXACT_MS, high[name] // EXACT_SHARE)
        }
        if not middle:
            break
        older = ask(middle)
        for name, age in middle.items():
            if older.get(name, 0) <= allowed[name]:
                high[name] = age
            else:
                low[name] = age
    return {name: (low[name], high[name]) for name in ranges}


def left_of(
    change: Change, then: Topic, now: Topic
) -> Tuple[Optional[Change], Dict[str, ConfigEntry]]:
    """(what is left of a planned change of settings, what somebody else has set that stands in its way).

    What he has set to the same is left out; None if that is everything. In the way are settings of the change
    that are others than they were then, and another cleanup.policy, if records are deleted now: a short limit
    deletes nothing of a compacted topic, until somebody makes it one that is not.
    """
    asked = change.after["config"]
    found, before = now.config or {}, then.config or {}

    def differs(key: str) -> bool:
        old, new = before.get(key), found.get(key)
        return new is not None and (
            old is None or (old.value, old.source) != (new.value, new.source)
        )

    def own(key: str) -> Optional[str]:
        entry = found.get(key)
        return entry.value if entry is not None and entry.source == "topic" else None

    left = {key: value for key, value in asked.items() if not same_value(key, value, own(key))}
    if not left:
        return None, {}
    others = [key for key in left if differs(key)]
    if CLEANUP not in asked and differs(CLEANUP) and any(dangers(now, left)):
        others.append(CLEANUP)
    kept = replace(
        change,
        before={**change.before, "config": {key: change.before["config"][key] for key in left}},
        after={**change.after, "config": left},
    )
    return kept, {key: found[key] for key in others}
