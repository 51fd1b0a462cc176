# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether brokers have room for the replicas that they get. Pure.

Private to this collection. A broker puts a new replica into the log directory that has the fewest (LogManager's
nextLogDirs), whatever room is there, so each disk must have room for what comes to it by that rule. In which order
the replicas come, nobody knows. What leaves a disk meanwhile makes no room that could be relied on: that is deleted a
while after it has left. What moves between the directories of a broker at the same time takes its room, too.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Directory,
    Key,
    Place,
    UnderWay,
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
# What moves between the directories of a broker.
Within = Mapping[Place, UnderWay]
# A directory and its broker.
Placed = Tuple[int, Directory]


def without_room(
    coming: Coming, directories: Directories, hosts: Mapping[int, str], within: Within
) -> List[Problem]:
    """The refusals of disks that would get more bytes than they have room for.

    `hosts`: broker to its host. Directories that share a disk are one, those of two brokers as well. A disk that does
    not tell how large it is is not refused: `unknown_room` names it. The moves `within` a broker that gets nothing
    count as well: it may share a disk with one that does.
    """
    wanted: Dict[Tuple[int, str], int] = {}
    for broker, replicas in sorted(coming.items()):
        of_broker = [move for (at, _key), move in sorted(within.items()) if at == broker]
        for path, size in _most(replicas, _online(broker, directories), of_broker).items():
            wanted[broker, path] = size
    filling: Dict[Tuple[int, str], int] = {}
    for (broker, _key), move in within.items():
        place = broker, move.target
        filling[place] = filling.get(place, 0) + move.left
    concerned = sorted({*coming, *(broker for broker, _path in filling)})
    placed = [(broker, each) for broker in concerned for each in _online(broker, directories)]
    problems = []
    for group in by_disk(placed, hosts):
        members = [(broker, each) for broker, each in group if wanted.get((broker, each.path))]
        size = sum(wanted[broker, each.path] for broker, each in members)
        more = sum(filling.get((broker, each.path), 0) for broker, each in group)
        # Of directories of one disk one may have a smaller part of it, by a quota.
        disk = min((each for _broker, each in group), key=lambda each: each.room or 0)
        if size and disk.room is not None and size + more > max(0, disk.room):
            problems.append(_problem(members, size, more, disk, coming, directories))
    return problems


def _problem(
    members: Sequence[Placed],
    size: int,
    more: int,
    disk: Directory,
    coming: Coming,
    directories: Directories,
) -> Problem:
    """The refusal of one disk: `members`, the directories on it that get something; `size`, all that comes to them.

    `more`: what comes to it from other directories of its brokers.
    """
    brokers = sorted({broker for broker, _each in members})
    left = f"{approximate_size(disk.usable or 0)} left, of which some must stay free"
    if more:
        left += f" and {approximate_size(more)} are being moved there from another directory"
    reason = f"{approximate_size(size)} would be copied to it, and its disk has {left}"
    remedy = "make room there, shorten the retention of topics, or add a broker"
    if len(brokers) == 1 and len(_online(brokers[0], directories)) > len(members):
        paths = ", ".join(sorted(each.path for _broker, each in members))
        reason = (
            f"up to {approximate_size(size)} would be copied to {paths}, since a broker fills its directories by the"
            f" number of partitions, and that disk has {left}"
        )
        if not more and sum(coming[brokers[0]].values()) <= sum(
            max(0, each.room or 0) for each in _online(brokers[0], directories)
        ):
            remedy = f"even its directories out first, playbooks/spread_disks.yml -e broker={brokers[0]}, or {remedy}"
    if more and (disk.room or 0) >= size:
        remedy = f"end the moves between its directories (playbooks/spread_disks.yml -e cancel=true), or {remedy}"
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


def _most(
    replicas: Mapping[Key, int], online: Sequence[Directory], within: Sequence[UnderWay]
) -> Dict[str, int]:
    """Path to the bytes that come to each directory of one broker: the most of two orders, small or big ones first.

    The first is the worse one for directories with many replicas, the second for those with few. What moves `within`
    counts in both of its directories until it has arrived, and the replicas may come before that and after.
    """
    if not online:
        return {}
    counts = {each.path: len(each.replicas) for each in online}
    rooms = {each.path: each.room or 0 for each in online}
    for move in within:
        counts[move.target] = counts.get(move.target, 0) + 1
        rooms[move.target] = rooms.get(move.target, 0) - move.left
    arrived = dict(counts)
    for move in within:
        arrived[move.source] = arrived.get(move.source, 0) - 1
    holders = {key: each.path for each in online for key in each.replicas}
    smallest_first = sorted(replicas, key=lambda key: replicas[key])
    biggest_first = sorted(replicas, key=lambda key: -replicas[key])
    found = [
        _filled(replicas, order, holders, {each.path: held[each.path] for each in online}, rooms)
        for held in (counts, arrived)
        for order in (smallest_first, biggest_first)
    ]
    return {each.path: max(coming[each.path] for coming in found) for each in online}


def _filled(
    replicas: Mapping[Key, int],
    order: Sequence[Key],
    holders: Mapping[Key, str],
    counts: Dict[str, int],
    rooms: Mapping[str, int],
) -> Dict[str, int]:
    """Path to the bytes that come to each directory in this order. Of equal ones the broker may take the fullest.

    `holders`: where what has begun to come is already; `counts`: how many replicas each directory has.
    """
    coming = dict.fromkeys(counts, 0)
    for key in order:
        path = holders.get(key)
        if path is None:
            path = min(counts, key=lambda each: (counts[each], rooms[each] - coming[each]))
            counts[path] += 1
        coming[path] += replicas[key]
    return coming
