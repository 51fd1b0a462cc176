# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether what topics may keep fits the disks that they lie on: the worst case of each, summed up.

Private to this collection. Pure. A replica stays in its log directory, so each disk is judged by what lies
on it, not the cluster by its average. Every topic counts, also those without a policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Directory,
    Key,
    Snapshot,
    Topic,
    by_disk,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    approximate_size,
    format_share,
    whole_number,
)

LARGEST = 3
Directories = Mapping[int, Sequence[Directory]]


@dataclass(frozen=True)
class Disk:
    """A disk, as far as brokers tell: the directories on it, and bytes. `foreign` is held by others."""

    places: Tuple[str, ...]
    total: int
    usable: int
    foreign: int
    worst: Mapping[str, int] = field(default_factory=dict)

    @property
    def worst_bytes(self) -> int:
        """What may lie on it in the worst case, of all topics and of others."""
        return self.foreign + sum(self.worst.values())


def worst_of(topic: Topic, partition: int, rate: Optional[float]) -> Optional[int]:
    """The most bytes that a replica of a partition can have, None: nothing bounds it.

    `rate`: bytes a second that are written to it, None if not known. Deletion takes whole segments, so a limit
    by size or by age holds but for one segment.
    """
    if "delete" not in (topic.effective("cleanup.policy") or ""):
        return None
    segment = whole_number(topic.effective("segment.bytes")) or 0
    size, age = (whole_number(topic.effective(key)) for key in ("retention.bytes", "retention.ms"))
    bounds = []
    if size is not None and size >= 0:
        bounds.append(size + segment)
    if age is not None and age >= 0 and rate is not None:
        rolled = whole_number(topic.effective("segment.ms")) or 0
        bounds.append(int(rate * age / 1000 + min(segment, rate * rolled / 1000)))
    return min(bounds) if bounds else None


def needs_rate(topic: Topic) -> bool:
    """Whether only the growth of a topic can bound it: it has an age, and no size."""
    size, age = (whole_number(topic.effective(key)) for key in ("retention.bytes", "retention.ms"))
    deletes = "delete" in (topic.effective("cleanup.policy") or "")
    return deletes and (size is None or size < 0) and age is not None and age >= 0


def disks_of_topics(
    after: Snapshot, directories: Directories, rates: Mapping[Key, float]
) -> Tuple[List[Disk], List[str]]:
    """(the disks with their worst case, names of topics that nothing bounds).

    `after`: the topics as they will be. What is not bounded counts with what it holds now.
    """
    unbounded = set()
    hosts = {broker.id: broker.host for broker in after.brokers}
    placed = [(broker, each) for broker, found in sorted(directories.items()) for each in found]
    disks = []
    for group in by_disk(placed, hosts):
        worst: Dict[str, int] = {}
        for _broker, directory in group:
            for (name, partition), size in directory.replicas.items():
                topic = after.topics.get(name)
                known = topic.config is not None if topic else False
                bound = (
                    worst_of(topic, partition, rates.get((name, partition)))
                    if topic and known
                    else None
                )
                if bound is None:
                    unbounded.add(name)
                    bound = size
                worst[name] = worst.get(name, 0) + bound
        total, usable = group[0][1].total or 0, group[0][1].usable or 0
        held = sum(directory.bytes for _broker, directory in group)
        places = tuple(f"broker {broker} {each.path}" for broker, each in group)
        disks.append(Disk(places, total, usable, max(0, total - usable - held), worst))
    return disks, sorted(unbounded)


def unknown_disks(snapshot: Snapshot, directories: Directories, budget: float) -> List[Problem]:
    """What cannot be judged: brokers that are down, directories that are offline or not told."""
    holders = {
        each for topic in snapshot.topics.values() for p in topic.partitions for each in p.replicas
    }
    unknown = {}
    for broker in sorted(holders - set(directories)):
        unknown[f"broker {broker}"] = ("it is down, or does not answer", "start it")
    for broker, found in sorted(directories.items()):
        for each in found:
            where = f"broker {broker} {each.path}"
            if not each.online:
                unknown[where] = ("the directory is offline", "replace its disk")
            elif each.total is None or each.usable is None:
                unknown[where] = ("the broker does not tell the size of its disk", "upgrade Kafka")
    return [
        Problem(
            "retention.budget_unknown",
            f"{reason}, so nobody can say whether the policies fit",
            f"{remedy}, or leave disk_budget out (playbooks: kafka_retention_disk_budget)",
            (where,),
            "disk_budget",
            format_share(budget),
        )
        for where, (reason, remedy) in unknown.items()
    ]


def refuse_overfull(disks: Sequence[Disk], budget: float) -> List[Problem]:
    """A refusal for each disk on which the worst case is more than its share."""
    found = []
    for disk in disks:
        allowed = int(budget * disk.total)
        if disk.worst_bytes <= allowed:
            continue
        largest = sorted(disk.worst.items(), key=lambda each: (-each[1], each[0]))[:LARGEST]
        listed = ", ".join(f"{name} {approximate_size(size)}" for name, size in largest)
        mine = sum(disk.worst.values())
        fits = max(0, allowed - disk.foreign)
        # Of whole percents, so that what is proposed fits.
        part = f"to {100 * fits // mine}% of it" if fits and mine else ""
        found.append(
            Problem(
                "retention.over_budget",
                f"topics may keep {approximate_size(mine)} there (most: {listed}), others hold "
                f"{approximate_size(disk.foreign)}; {format_share(budget)} of the disk are "
                f"{approximate_size(allowed)}",
                f"lower keep_up_to{part and f' {part}'}, add disks or brokers, or raise disk_budget",
                disk.places,
                "disk_budget",
                format_share(budget),
            )
        )
    return found


def told(disks: Sequence[Disk], budget: Optional[float]) -> List[Dict[str, Any]]:
    """As the module returns them, the fullest first."""
    ordered = sorted(disks, key=lambda each: -each.worst_bytes / max(1, each.total))
    return [
        {
            "directories": list(disk.places),
            "total_bytes": disk.total,
            "usable_bytes": disk.usable,
            "others_bytes": disk.foreign,
            "worst_case_bytes": disk.worst_bytes,
            "worst_case_share": format_share(disk.worst_bytes / max(1, disk.total)),
            "budget_bytes": None if budget is None else int(budget * disk.total),
        }
        for disk in ordered
    ]
