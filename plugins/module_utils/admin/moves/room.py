# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether brokers have room for the replicas that they get. Pure.

Private to this collection. A broker puts a new replica into the log directory that has the fewest (LogManager's
nextLogDirs), whatever room is there, so each disk must have room for what comes to it by that rule. In which order
the replicas come, nobody knows. What leaves a disk meanwhile makes no room that could be relied on: that is deleted a
while after it has left.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Directory,
    Key,
    by_disk,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import (
    EXAMPLES,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_size
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some

# Broker to its log directories; one that has not told them is missing.
Directories = Mapping[int, Sequence[Directory]]
# Broker to the replicas that it gets, and the bytes that are still to be copied of each.
Coming = Mapping[int, Mapping[Key, int]]
# A directory and its broker.
Placed = Tuple[int, Directory]


def without_room(
    coming: Coming, directories: Directories, hosts: Mapping[int, str]
) -> List[Problem]:
    """The refusals of disks that would get more bytes than they have room for.

    `hosts`: broker to its host. Directories that share a disk are one, those of two brokers as well. A disk that does
    not tell how large it is is not refused: `unknown_room` names it.
    """
    wanted: Dict[Tuple[int, str], int] = {}
    placed: List[Placed] = []
    for broker, replicas in sorted(coming.items()):
        online = _online(broker, directories)
        placed += [(broker, each) for each in online]
        for path, size in _most(replicas, online).items():
            wanted[broker, path] = size
    problems = []
    for group in by_disk(placed, hosts):
        sizes = [wanted[broker, each.path] for broker, each in group]
        members = [member for member, size in zip(group, sizes) if size]
        size, disk = sum(sizes), group[0][1]
        if disk.room is not None and size > max(0, disk.room):
            problems.append(_problem(members, size, disk, coming, directories))
    return problems


def _problem(
    members: Sequence[Placed], size: int, disk: Directory, coming: Coming, directories: Directories
) -> Problem:
    """The refusal of one disk: `members`, the directories on it that get something; `size`, all that comes to it."""
    brokers = sorted({broker for broker, _each in members})
    left = f"{approximate_size(disk.usable or 0)} left, of which some must stay free"
    reason = f"{approximate_size(size)} would be copied to it, and its disk has {left}"
    remedy = "make room there, shorten the retention of topics, or add a broker"
    if len(brokers) == 1 and len(_online(brokers[0], directories)) > len(members):
        paths = ", ".join(sorted(each.path for _broker, each in members))
        reason = (
            f"up to {approximate_size(size)} would be copied to {paths}, since a broker fills its directories by the"
            f" number of partitions, and that disk has {left}"
        )
        if sum(coming[brokers[0]].values()) <= sum(
            max(0, each.room or 0) for each in _online(brokers[0], directories)
        ):
            remedy = f"even its directories out first, playbooks/spread_disks.yml -e broker={brokers[0]}, or {remedy}"
    return Problem(
        "reassignment.no_room", reason, remedy, (f"broker {', '.join(map(str, brokers))}",)
    )


def unknown_room(coming: Coming, directories: Directories) -> List[str]:
    """One warning of the brokers that get something and do not tell how large their disks are, or none."""
    unknown = [
        broker
        for broker, replicas in sorted(coming.items())
        if sum(replicas.values())
        and any(each.room is None for each in _online(broker, directories) or [Directory("")])
    ]
    if not unknown:
        return []
    return [
        f"broker {some(list(map(str, unknown)), EXAMPLES)}: how much room the disks have is not told (Kafka 3.3 and "
        "newer tell it to who may describe the cluster), so whether all fits was not looked at"
    ]


def _online(broker: int, directories: Directories) -> List[Directory]:
    return [each for each in directories.get(broker, ()) if each.online]


def _most(replicas: Mapping[Key, int], online: Sequence[Directory]) -> Dict[str, int]:
    """Path to the bytes that come to each directory of one broker: the most of two orders, small or big ones first.

    The first is the worse one for directories with many replicas, the second for those with few.
    """
    if not online:
        return {}
    smallest_first = _filled(replicas, online, sorted(replicas, key=lambda key: replicas[key]))
    biggest_first = _filled(replicas, online, sorted(replicas, key=lambda key: -replicas[key]))
    return {path: max(size, biggest_first[path]) for path, size in smallest_first.items()}


def _filled(
    replicas: Mapping[Key, int], online: Sequence[Directory], order: Sequence[Key]
) -> Dict[str, int]:
    """Path to the bytes that come to each directory in this order. Of equal ones the broker may take the fullest."""
    counts = {each.path: len(each.replicas) for each in online}
    rooms = {each.path: each.room or 0 for each in online}
    holders = {key: each.path for each in online for key in each.replicas}
    coming = dict.fromkeys(counts, 0)
    for key in order:
        path = holders.get(key)
        if path is None:
            path = min(counts, key=lambda each: (counts[each], rooms[each] - coming[each]))
            counts[path] += 1
        coming[path] += replicas[key]
    return coming
