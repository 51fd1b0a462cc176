# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether brokers have room for the replicas that they get. Pure.

Private to this collection. A broker chooses the log directory of a new replica by their number, not by bytes, so what
counts is the room of all of its disks. What leaves it meanwhile makes no room that could be relied on: that is deleted
a while after it has left.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Directory,
    one_disk,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import (
    EXAMPLES,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_size
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some

# Broker to its log directories; one that has not told them is missing.
Directories = Mapping[int, Sequence[Directory]]
# A directory and its broker.
Placed = Tuple[int, Directory]


def without_room(
    coming: Mapping[int, int], directories: Directories, hosts: Mapping[int, str]
) -> List[Problem]:
    """The refusals of brokers that would get more bytes than their disks have room for.

    `coming`: broker to the bytes that it gets; `hosts`: broker to its host. Brokers that share a disk are one. What
    does not tell how large its disks are is not refused: `unknown_room` names it.
    """
    problems = []
    for group in _sharing(coming, directories, hosts):
        disks = _disks(group, directories, hosts)
        rooms = [each.room for _broker, each in disks]
        if any(room is None for room in rooms):
            continue
        wanted = sum(coming.get(broker, 0) for broker in group)
        if wanted > sum(max(0, room or 0) for room in rooms):
            usable = approximate_size(sum(each.usable or 0 for _broker, each in disks))
            problems.append(
                Problem(
                    "reassignment.no_room",
                    f"{approximate_size(wanted)} would be copied to it, and its disks have {usable} left, of which "
                    "some must stay free",
                    "make room there, shorten the retention of topics, or add a broker",
                    (f"broker {', '.join(map(str, group))}",),
                )
            )
    return problems


def unknown_room(coming: Mapping[int, int], directories: Directories) -> List[str]:
    """One warning of the brokers that get something and do not tell how large their disks are, or none."""
    unknown = [
        broker
        for broker, size in sorted(coming.items())
        if size
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


def _disks(
    brokers: Iterable[int], directories: Directories, hosts: Mapping[int, str]
) -> List[Placed]:
    """One directory of each disk of these brokers."""
    found: List[Placed] = []
    for broker in brokers:
        for each in _online(broker, directories):
            if not any(one_disk(other, (broker, each), hosts) for other in found):
                found.append((broker, each))
    return found


def _sharing(
    coming: Mapping[int, int], directories: Directories, hosts: Mapping[int, str]
) -> List[List[int]]:
    """The brokers that get something, and have told their directories, as groups with disks of their own."""
    groups: Dict[int, List[int]] = {}
    for broker, size in sorted(coming.items()):
        own = [(broker, each) for each in _online(broker, directories)]
        if not size or not own:
            continue
        groups[broker] = [broker]
        for first, group in sorted(groups.items()):
            theirs = _disks(group, directories, hosts)
            if first != broker and any(one_disk(a, b, hosts) for a in theirs for b in own):
                groups[broker] = [*groups.pop(first), *groups[broker]]
    return list(groups.values())
