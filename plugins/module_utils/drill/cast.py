# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is hit by a drill on a given cluster, and where its topic lies. Pure.

Private to this collection.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    BROADCAST,
    COMMITS,
    CONTROLLER,
    COORDINATOR,
    GROW,
    KILL,
    LEADER,
    MEANWHILE,
    MEMBER_CLOSE,
    MEMBER_KILL,
    ONCE,
    QUEUE,
    QUORUM,
    RECREATE,
    STOP,
    Drill,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import refusal
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted

REPLICAS = 3
# So many names of a group are tried until one has a coordinator that is not the controller.
NAMES_TRIED = 50
# A quorum outlives the loss of one from this number on.
LEAST_SERVERS = 3


@dataclass(frozen=True)
class Cast:
    """A drill on one cluster. `victim` is the id of the broker that is hit, None if none is.

    `assignment` is the topic's: for each partition its replicas, the preferred leader first. `groups` are
    those of the drill on this cluster. `servers`: ids of the ZooKeeper servers, or controllers, that are stopped,
    in their order, of `members` in all; before the last one the others have a quorum. In KRaft mode the victim may
    be a controller that is no broker, and so has no replica of the topic.
    """

    drill: Drill
    victim: Optional[int]
    assignment: Tuple[Tuple[int, ...], ...]
    min_isr: int
    groups: Tuple[str, ...] = field(default=())
    servers: Tuple[int, ...] = ()
    members: int = 0

    @property
    def apart(self) -> bool:
        """Whether the victim has no replica of the topic's first partition."""
        return self.victim is not None and self.victim not in self.assignment[0]

    def to_dict(self) -> Dict[str, Any]:
        """As the playbook takes it."""
        return {
            **self.drill.to_dict(),
            "victim": self.victim,
            "apart": self.apart,
            "assignment": [list(replicas) for replicas in self.assignment],
            "groups": list(self.groups or self.drill.groups),
            "servers": list(self.servers),
            "members": _OF_QUORUM[self.drill.part][0] if self.drill.hits_quorum else "",
            "config": {"min.insync.replicas": str(self.min_isr)},
        }


def cast(
    drill: Drill,
    brokers: Sequence[int],
    controller: Optional[int],
    coordinators: Optional[Mapping[int, Optional[int]]] = None,
    servers: Sequence[int] = (),
    voters: Sequence[int] = (),
) -> Cast:
    """Who is hit, and where the topic lies.

    A leader or follower that is hit is not the controller, where another broker can be it: one thing
    at a time. `coordinators`: for each partition of the internal topic of groups, the broker that leads it;
    `servers`: ids of all ZooKeeper servers; `voters`: of all controllers of a quorum, of which `controller` is
    the leader. Raises ProblemError where the cluster has too few brokers or servers, or where nobody coordinates.
    """
    ids = sorted(set(brokers))
    if len(ids) < drill.min_brokers:
        raise refusal(
            "drill.too_few_brokers",
            f"drill={drill.name}",
            f"it needs {drill.min_brokers} brokers, and {len(ids)} are there",
            "run it on a larger cluster",
        )
    count = min(REPLICAS, len(ids))
    if drill.hits_quorum:
        members, last = sorted(set(servers)), None
        if drill.hits_controllers:
            # The active one dies, and with it the quorum at once: without followers it would lead on for seconds, and
            # take what it cannot keep. An election that has a quorum is what controller_killed shows.
            members, last = sorted(set(voters)), controller
        _enough(drill, members)
        stopped = _without_quorum(members, last)
        # one partition for records, and one whose leader changes with each server that is away
        rows = tuple(_rotated(ids, 0, count) for _each in range(len(stopped) + 1))
        return Cast(drill, None, rows, _min_isr(count), servers=stopped, members=len(members))
    if not drill.hits_broker:
        rows = tuple(_rotated(ids, start, count) for start in range(drill.partitions))
        return Cast(drill, None, rows, _min_isr(count))
    groups: Tuple[str, ...] = ()
    victim: Optional[int]
    if drill.part == COORDINATOR:
        group, victim = _coordinated(drill, ids, controller, coordinators or {})
        groups = (group, *drill.groups[1:])
    elif drill.part == CONTROLLER:
        if voters:
            _enough(drill, voters)
        victim = controller if controller in (*ids, *voters) else ids[0]
    else:
        victim = next((each for each in ids if each != controller), ids[0])
    others = [each for each in ids if each != victim]
    # of the others, one that is not the controller leads, where there is one
    others.sort(key=lambda each: (each == controller, each))
    if drill.fault == STOP and drill.part != LEADER:
        return Cast(drill, victim, ((others[0], victim),), 2)
    if victim not in ids:
        return Cast(drill, victim, (tuple(others[:count]),), _min_isr(count))
    survivors = others[: count - 1]
    replicas = (victim, *survivors) if drill.part == LEADER else (*survivors, victim)
    return Cast(drill, victim, (replicas,), _min_isr(count), groups)


def _enough(drill: Drill, members: Sequence[int]) -> None:
    """Refuse a quorum that does not outlive the loss of one."""
    if len(members) < LEAST_SERVERS:
        who, together = _OF_QUORUM[drill.part]
        raise refusal(
            "drill.too_few_servers",
            f"drill={drill.name}",
            f"it needs {LEAST_SERVERS} {who}, and {len(members)} are there",
            f"run it on a larger {together}",
        )


# By the part of who is hit: members of a quorum, and what they are together.
_OF_QUORUM = {"": ("ZooKeeper servers", "ensemble"), CONTROLLER: ("controllers", "quorum")}


def _without_quorum(members: Sequence[int], last: Optional[int]) -> Tuple[int, ...]:
    """Members of a quorum whose loss is its loss, as few as that takes: the highest ids first, `last` as the last."""
    ends = [each for each in members if each == last]
    others = sorted(set(members) - {last}, reverse=True)
    return (*others[: len(members) - len(members) // 2 - len(ends)], *ends)


def partition_of(group: str, partitions: int) -> int:
    """The partition of the internal topic that has a group's offsets: Kafka takes Java's hash of the name."""
    found = 0
    units = group.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2]):
        found = (31 * found + high * 256 + low) & 0xFFFFFFFF
    signed = found - (1 << 32) if found >= 1 << 31 else found
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def _coordinated(
    drill: Drill,
    ids: Sequence[int],
    controller: Optional[int],
    coordinators: Mapping[int, Optional[int]],
) -> Tuple[str, int]:
    """(a group, its coordinator), another broker than the controller where there is such a name."""
    names = [f"{drill.groups[0]}-{number}" for number in range(1, NAMES_TRIED + 1)]
    found = [
        (name, coordinators.get(partition_of(name, len(coordinators))))
        for name in names
        if coordinators
    ]
    known = [(name, broker) for name, broker in found if broker in ids and broker is not None]
    if not known:
        raise refusal(
            "drill.no_coordinator",
            f"drill={drill.name}",
            "the cluster has no internal topic of groups yet, or nobody leads it",
            "without --check the drill makes it",
        )
    return next((each for each in known if each[1] != controller), known[0])


def _min_isr(replicas: int) -> int:
    return 2 if replicas > 2 else 1


def _rotated(ids: Sequence[int], start: int, count: int) -> Tuple[int, ...]:
    return tuple(ids[(start + offset) % len(ids)] for offset in range(count))


_DOES = {
    QUORUM: "stops {who} {servers}, one after the other, the last with SIGKILL, and starts them again;"
    " touches no broker",
    KILL: "kills broker {victim} ({host}) with SIGKILL; its service manager starts it again",
    STOP: "stops broker {victim} ({host}), and starts it again",
    MEMBER_KILL: "kills a consumer of its own with SIGKILL; touches no broker",
    MEMBER_CLOSE: "closes a consumer of its own; touches no broker",
    RECREATE: "deletes its own topic and makes it anew; touches no broker",
    BROADCAST: "writes to its own topic, which five groups of its own read; touches no broker",
    QUEUE: "works on records of its own with one to four consumers of a group; touches no broker",
    COMMITS: "kills three consumers of its own with SIGKILL, and others go on; touches no broker",
    ONCE: "kills two processes of its own with SIGKILL, and others go on; touches no broker",
    GROW: "doubles the partitions of its own topic; touches no broker",
}


_BOTH_COPIED = "; two programs copy its topic to two more, which that broker leads, too"


_KILLS_CONTROLLER = (
    "kills controller {victim} ({host}) with SIGKILL; its service manager starts it again;"
    " touches no broker"
)


# Settings of brokers that topics have which set none of their own; in words, of each value.
DEFAULTS = {
    "default.replication.factor": "replication factor {}",
    "min.insync.replicas": "min ISR {}",
    "unclean.leader.election.enable": "unclean election {}",
}
_SWITCH = {"true": "on", "false": "off"}


@dataclass(frozen=True)
class Durability:
    """What the drill's topic has, and what the brokers' defaults have otherwise, in words.

    `known`: whether anybody knows the defaults.
    """

    topic: str
    unlike: Tuple[str, ...] = ()
    known: bool = True

    @property
    def otherwise(self) -> str:
        """The sentence about topics of the user; empty where the defaults promise as much."""
        if not self.known:
            return f"{_OTHERWISE} are unknown"
        return f"{_OTHERWISE} are {', '.join(self.unlike)}" if self.unlike else ""


_OTHERWISE = "topics of yours may fare otherwise: the brokers' defaults"


def durability(chosen: Cast, settings: Optional[Sequence[Mapping[str, Any]]]) -> Durability:
    """How durable the drill's topic is, beside the brokers' defaults.

    `settings`: name and value of brokers' settings, as the module kafka_configs_info has them; none: unknown.
    """
    by_name = {
        name: sorted(
            {str(each["value"]).lower() for each in settings or () if each["name"] == name}
        )
        for name in DEFAULTS
    }
    replicas, min_isr, unclean = by_name.values()
    told = f"{counted(len(chosen.assignment[0]), 'replica')}, min ISR {chosen.min_isr}"
    if len(unclean) == 1:
        told += f", unclean election {_SWITCH.get(unclean[0], unclean[0])}"
    own = ([str(len(chosen.assignment[0]))], [str(chosen.min_isr)], ["false"])
    unlike = tuple(
        words.format(" or ".join(_SWITCH.get(each, each) for each in values))
        for words, values, its in zip(DEFAULTS.values(), (replicas, min_isr, unclean), own)
        if values and values != its
    )
    return Durability(told, unlike, bool(settings))


def announced(
    chosen: Cast, host: str, settings: Optional[Sequence[Mapping[str, Any]]] = None
) -> List[str]:
    """What is said before a drill begins: what is done to whom, under which load, and what is expected.

    `host` is the victim's; of ZooKeeper servers and controllers their names stand in the inventory. `settings`: those
    of brokers that `DEFAULTS` names, each with name and value; None: unknown.
    """
    drill = chosen.drill
    does = _KILLS_CONTROLLER if chosen.apart else _DOES[drill.fault]
    servers = ", ".join(map(str, chosen.servers))
    who = _OF_QUORUM[drill.part][0] if drill.hits_quorum else ""
    load = ", ".join(chosen.groups or drill.groups)
    has = durability(chosen, settings)
    lines = [
        f"{drill.name} ({drill.row}): {drill.case}",
        f"does: {does.format(victim=chosen.victim, host=host, servers=servers, who=who)}"
        + (_BOTH_COPIED if drill.copied else ""),
        f"load: topic {drill.topic} ({has.topic}), groups {load}"
        + (f", {drill.topic}-{MEANWHILE} while it is away" if drill.below_min_isr else "")
        + "; the PySpark judge reads what is there at the end"
        + (", and writes to a topic of its own" if drill.proven else ""),
        f"expected: {drill.expected}; pause at most {drill.pause_seconds:g} s",
    ]
    return [*lines, *filter(None, [has.otherwise])]
