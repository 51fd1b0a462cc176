# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions about the health of a cluster: Snapshot in, plain answers out.

Private to this collection. Pure: no I/O, no clock.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Directory,
    Key,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.files import FULL_BYTES
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted

# A few names are enough for a message.
EXAMPLES = 5
UNCLEAN = "unclean.leader.election.enable"
# A partition and the name of its topic.
Named = Tuple[str, Partition]


@dataclass(frozen=True)
class Goal:
    """What to wait for. `brokers`: ids that must be registered; `in_sync`: ids whose replicas must all
    be in sync; `full_isr`: those of all brokers; `gone`: ids that must not be registered;
    `unmended`: ids of brokers that are sick and still to be mended, from which nothing is expected;
    `voters`: ids of controllers of a KRaft quorum that must follow its leader;
    `quiet_seconds`: for how long all of it must hold.
    """

    brokers: Tuple[int, ...] = ()
    in_sync: Tuple[int, ...] = ()
    full_isr: bool = False
    gone: Tuple[int, ...] = ()
    unmended: Tuple[int, ...] = ()
    voters: Tuple[int, ...] = ()
    controller: bool = False
    quiet_seconds: float = 0.0
    timeout: float = 120.0


@dataclass(frozen=True)
class Eligible:
    """Ids of brokers that have all records of a partition although they are in no ISR; `led_last`: of those
    that led it last, where no one is eligible any more."""

    replicas: Tuple[int, ...] = ()
    led_last: Tuple[int, ...] = ()


def partitions_where(
    snapshot: Snapshot, condition: Callable[[Topic, Partition], bool]
) -> List[Named]:
    """(topic name, Partition) pairs, sorted, for which condition(topic, partition) holds."""
    return [
        (name, partition)
        for name, topic in sorted(snapshot.topics.items())
        for partition in topic.partitions
        if condition(topic, partition)
    ]


def under_replicated(snapshot: Snapshot) -> List[Named]:
    """Partitions with fewer in-sync replicas than replicas."""
    return partitions_where(snapshot, lambda _topic, part: len(part.isr) < len(part.replicas))


def offline(snapshot: Snapshot) -> List[Named]:
    """Partitions without a leader."""
    return partitions_where(snapshot, lambda _topic, part: part.leader is None)


def under_min_isr(snapshot: Snapshot) -> List[Named]:
    """Partitions with fewer in-sync replicas than the topic's effective min.insync.replicas."""

    def condition(topic: Topic, part: Partition) -> bool:
        minimum = topic.effective("min.insync.replicas")
        return minimum is not None and len(part.isr) < int(minimum)

    return partitions_where(snapshot, condition)


def replica_holders(snapshot: Snapshot) -> List[int]:
    """Ids of all brokers that hold a replica, alive or not, sorted."""
    return sorted(
        {
            member
            for topic in snapshot.topics.values()
            for part in topic.partitions
            for member in part.replicas
        }
    )


def own_setting(topic: Topic, key: str) -> bool:
    """Whether the topic has a value of its own, and not the brokers'."""
    entry = (topic.config or {}).get(key)
    return entry is not None and entry.source == "topic"


def replica_counts(counts: Mapping[str, int]) -> List[Dict[str, Any]]:
    """Topic to its smallest replica count, grouped: `replicas topics examples`, small ones first."""
    grouped: Dict[int, List[str]] = {}
    for name, count in sorted(counts.items()):
        grouped.setdefault(count, []).append(name)
    return [
        {"replicas": count, "topics": len(names), "examples": names[:EXAMPLES]}
        for count, names in sorted(grouped.items())
    ]


def on_default_min_isr(snapshot: Snapshot) -> List[Dict[str, Any]]:
    """Replica counts of the topics whose min.insync.replicas is the brokers' default."""
    return replica_counts(
        {
            name: min(topic.replication_factors)
            for name, topic in snapshot.topics.items()
            if topic.partitions and not own_setting(topic, "min.insync.replicas")
        }
    )


def loads(snapshot: Snapshot) -> Dict[int, Tuple[int, int, int]]:
    """Broker id to (partitions led, replicas held, replicas not in sync)."""
    led, held, behind = collections.Counter(), collections.Counter(), collections.Counter()
    for topic in snapshot.topics.values():
        for part in topic.partitions:
            led[part.leader] += 1
            held.update(part.replicas)
            behind.update(set(part.replicas) - set(part.isr))
    ids = {broker.id for broker in snapshot.brokers} | set(held)
    return {broker: (led[broker], held[broker], behind[broker]) for broker in sorted(ids)}


def stranded(snapshot: Snapshot) -> List[Named]:
    """Partitions without a leader that wait for brokers which are not there.

    Only an in-sync replica may lead, so that nothing acknowledged is lost: the others wait, too.
    """
    alive = {broker.id for broker in snapshot.brokers}
    return [(name, part) for name, part in offline(snapshot) if not alive & set(part.isr)]


def elects_unclean(topic: Topic, defaults: Collection[str]) -> bool:
    """Whether a replica that is not in sync may lead this topic; also where nobody tells.

    `defaults`: what single brokers have as default. It is the controller that elects, and any of them may be it: for
    a topic without a value of its own one that allows it is enough.
    """
    value = topic.effective(UNCLEAN)
    values = [value] if value is None or own_setting(topic, UNCLEAN) else [value, *defaults]
    return any(each is None or each.strip().lower() != "false" for each in values)


def may_be_last_copy(
    broker: int, isr: Collection[int], eligible: Optional[Eligible], unclean: bool = False
) -> bool:
    """Whether a partition without a leader, of which `broker` holds a replica, may have its last copy there.

    Without a leader nobody of its ISR is there, and the first one that is back leads, also with an empty disk.
    KRaft empties the ISR when the last one that is in it goes, where it keeps eligible leaders. The first of
    those that is back, and without any who led last, leads next, and the others cut their logs to that one's: so
    one of several is enough while none of them runs. That it comes back with nothing, Kafka did not see in a trial
    (4.3.1). `eligible`: None where that is not known; then a replica that could be the last one counts as one.
    `unclean`: that a replica need not be in sync to lead. Then nobody who has a replica is there, or he would lead, and
    whoever is back first leads.
    """
    if unclean:
        return True
    if isr:
        return broker in isr
    if eligible is None:
        return True
    if eligible.replicas:
        return broker in eligible.replicas
    return not eligible.led_last or broker in eligible.led_last


def isolated(snapshot: Snapshot) -> Set[int]:
    """Ids of registered brokers that are in no ISR together with another one although they share
    partitions with live ones: with a wrong password, certificate or listener a broker is like that.
    """
    alive = {broker.id for broker in snapshot.brokers}
    accompanied, lonely = set(), set()
    for topic in snapshot.topics.values():
        for part in topic.partitions:
            isr = part.isr
            if len(isr) > 1:
                accompanied.update(isr)
            if len(isr) < len(part.replicas):
                others = [member for member in part.replicas if member not in isr]
                lonely.update(others)
                # Others are there and do not follow it. If they were dead, it would be the last.
                if len(isr) == 1 and any(member in alive for member in others):
                    lonely.update(isr)
    return (lonely - accompanied) & alive


def behind(
    snapshot: Snapshot, brokers: Collection[int], unmended: Collection[int] = ()
) -> List[Named]:
    """Partitions of which one of `brokers` holds a replica that is not in sync.

    Those are left out that nobody can lead, or that only brokers of `unmended` lead: nobody can follow.
    """
    able = {broker.id for broker in snapshot.brokers} - set(unmended)

    def condition(_topic: Topic, part: Partition) -> bool:
        hopeless = part.leader in {None, *unmended} and not able & set(part.isr)
        return not hopeless and bool(set(brokers) & set(part.replicas) - set(part.isr))

    return partitions_where(snapshot, condition)


def without_joining(snapshot: Snapshot, joining: Mapping[Key, Collection[int]]) -> Snapshot:
    """The snapshot without replicas that a reassignment adds and that are not in sync yet.

    `joining`: partition to the brokers that it adds. Until such a replica has everything, the partition is as good as
    it was before. Metadata show it like any other.
    """

    def settled(name: str, part: Partition) -> Partition:
        new = set(joining.get((name, part.id), ())) - set(part.isr)
        return replace(part, replicas=tuple(each for each in part.replicas if each not in new))

    if not joining:
        return snapshot
    topics = {
        name: replace(topic, partitions=tuple(settled(name, part) for part in topic.partitions))
        for name, topic in snapshot.topics.items()
    }
    return replace(snapshot, topics=topics)


def lagging(snapshot: Snapshot, goal: Goal) -> Optional[int]:
    """How many replicas the goal still lacks; None while one of its brokers is not there to catch up."""
    if set(goal.brokers) - {broker.id for broker in snapshot.brokers}:
        return None
    parts = under_replicated(snapshot)
    if not goal.full_isr:
        parts = behind(snapshot, goal.in_sync, goal.unmended)
    return sum(
        member not in part.isr and (goal.full_isr or member in goal.in_sync)
        for _name, part in parts
        for member in part.replicas
    )


def not_in_sync(snapshot: Snapshot) -> List[int]:
    """Ids of registered brokers that are isolated, or behind a leader that is not."""
    alive = {broker.id for broker in snapshot.brokers}
    alone = isolated(snapshot)
    lagging = (
        set(part.replicas) - set(part.isr) for _name, part in behind(snapshot, alive - alone, alone)
    )
    return sorted(alive & alone.union(*lagging))


def bad_directories(found: Mapping[int, Sequence[Directory]]) -> List[Problem]:
    """A Problem for each log directory, by broker id, that takes no records any more."""
    problems = []
    for broker, directories in sorted(found.items()):
        for each in directories:
            full = each.usable is not None and each.usable < FULL_BYTES
            if each.online and not full:
                continue
            reason = f"no space is left on the disk of its log directory {each.path}"
            if not each.online:
                reason = (
                    f"its log directory {each.path} is offline, since Kafka could not read or write it, and the"
                    " replicas in it follow nobody"
                )
            problems.append(
                Problem(
                    "directories.failed",
                    reason,
                    "make room on the disk or repair it, and restart this broker"
                    " (playbooks/rolling_restart.yml -e broker=ID); if the disk is lost, stop the broker"
                    " (playbooks/stop.yml -e broker=ID), replace the disk, and have it filled anew"
                    " (playbooks/replace_broker.yml -e broker=ID)",
                    (f"broker {broker}",),
                )
            )
    return problems


def unmet(snapshot: Snapshot, goal: Goal) -> List[str]:
    """Why the goal is not met, one sentence each; an empty list if it is."""
    reasons = []
    alive = {broker.id for broker in snapshot.brokers}
    missing = sorted(set(goal.brokers) - alive)
    if missing:
        reasons.append(f"not registered: {_ids(missing)}")
    present = sorted(set(goal.gone) & alive)
    if present:
        reasons.append(f"still registered: {_ids(present)}")
    if goal.controller and (snapshot.controller is None or snapshot.controller not in alive):
        reasons.append("there is no controller")
    if goal.full_isr:
        lacking = under_replicated(snapshot)
        if lacking:
            reasons.append(
                f"{counted(len(lacking), 'partition')} not fully in sync: {_some(lacking)}"
            )
        leaderless = offline(snapshot)
        if leaderless:
            reasons.append(f"{counted(len(leaderless), 'partition')} offline: {_some(leaderless)}")
    elif goal.in_sync:
        lacking = behind(snapshot, goal.in_sync, goal.unmended)
        if lacking:
            told = _some(lacking, only=goal.in_sync)
            reasons.append(f"{counted(len(lacking), 'partition')} not in sync: {told}")
    return reasons


def not_waited_for(
    snapshot: Snapshot, goal: Goal, joining: Mapping[Key, Collection[int]] = MappingProxyType({})
) -> List[str]:
    """What is amiss although the goal is met, one sentence each: it needs brokers outside the goal.

    Or it takes its time: `joining` is partition to the brokers that a reassignment adds.
    """
    alive = {broker.id for broker in snapshot.brokers}
    absent = sorted(set(replica_holders(snapshot)) - alive)
    sentences = []
    if absent:
        verb = "holds" if len(absent) == 1 else "hold"
        sentences.append(f"{_ids(absent)} {verb} replicas and {_are(absent)} not registered")
    if goal.unmended:
        verb = "was" if len(goal.unmended) == 1 else "were"
        sentences.append(
            f"{_ids(goal.unmended)} {verb} not in sync before, and the restart is still to come"
        )
    parts = snapshot.partitions
    copied = [
        (key[0], parts[key])
        for key, brokers in sorted(joining.items())
        if key in parts and set(brokers) & set(parts[key].replicas) - set(parts[key].isr)
    ]
    if copied:
        sentences.append(
            f"{counted(len(copied), 'partition')} with new replicas, which are being copied: {_some(copied)}"
        )
    waiting = stranded(snapshot)
    if waiting:
        sentences.append(
            f"{counted(len(waiting), 'partition')} without a leader until the brokers with the last"
            f" in-sync replicas are back: {_some(waiting)}"
        )
    return sentences


def partition_dict(name: str, part: Partition) -> Dict[str, Any]:
    """A partition as modules return it."""
    return {
        "topic": name,
        "partition": part.id,
        "leader": part.leader,
        "replicas": list(part.replicas),
        "isr": list(part.isr),
    }


def _some(pairs: Sequence[Named], most: int = 10, only: Collection[int] = ()) -> str:
    """The first `most` partitions and which replicas they lack, all or those of the brokers `only`."""
    texts = []
    for name, part in pairs[:most]:
        absent = [
            member
            for member in part.replicas
            if member not in part.isr and (not only or member in only)
        ]
        detail = f" lacks {', '.join(map(str, absent))}" if absent else ""
        texts.append(f"{name}-{part.id}{detail}")
    return "; ".join(texts) + (f"; and {len(pairs) - most} more" if len(pairs) > most else "")


def _ids(ids: Sequence[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def _are(ids: Sequence[int]) -> str:
    return "is" if len(ids) == 1 else "are"
