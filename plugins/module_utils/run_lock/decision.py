# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Where a run takes the locks of its clusters, in which order, and whether it may go on. Pure.

A run goes on only if every host of the cluster that answers has granted the lock, so of two runs
that reach a common host at most one does. Of two that start at once the first host in a fixed order
decides: it is asked alone, before all others, and who is refused there asks nobody else.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ERROR,
    WARNING,
    Problem,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.held import OF_DISKS
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.owner import (
    Owner,
    can_be_seen,
)

# How the lock of another run came to be ours.
LEFT = "left"
BROKEN = "broken"


@dataclass(frozen=True)
class Member:
    """One inventory name of a cluster. `address`: equal for names that are one machine as far as is known.

    `directory`: that of the locks; `instances`: the lock files of its instances; `absent`: why it
    cannot be asked, in words, "" if it can or nobody knows; `in_play`: whether --limit leaves it in.
    """

    name: str
    cluster: str
    address: str
    directory: str
    instances: Tuple[str, ...] = ()
    absent: str = ""
    in_play: bool = True


@dataclass(frozen=True)
class Place:
    """One lock on one host: that of a cluster, reached by the inventory name `host`."""

    cluster: str
    host: str
    directory: str
    members: Tuple[str, ...]
    instances: Tuple[str, ...] = ()
    absent: str = ""

    def to_dict(self) -> Dict[str, Any]:
        """As it travels through the playbook; `from_dict` reads it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Place:
        """Return the place of a dictionary that `to_dict` has made."""
        return cls(
            str(found["cluster"]),
            str(found["host"]),
            str(found["directory"]),
            tuple(str(each) for each in found["members"]),
            tuple(str(each) for each in found["instances"]),
            str(found["absent"]),
        )


@dataclass(frozen=True)
class Plan:
    """What is asked first, one place a cluster; what each host of the play asks then, and in all."""

    first: Tuple[Place, ...]
    others: Mapping[str, Tuple[Place, ...]]
    shares: Mapping[str, Tuple[Place, ...]]
    absent: Tuple[Place, ...]


@dataclass(frozen=True)
class Answer:
    """The answer of one place: granted, refused by a holder, or none, with the reason.

    `busy`: the lock file of an instance on which a module of another run still works. `beside`: who lives and holds the
    cluster's other lock; `marks`: of the instances there, as `held.marks_of` has them.
    """

    place: Place
    granted: bool
    holder: Optional[Owner] = None
    replaced: str = ""
    unanswered: str = ""
    waited: bool = False
    busy: str = ""
    beside: Optional[Owner] = None
    marks: Tuple[str, ...] = ()

    def to_dict(self) -> Dict[str, Any]:
        """As it travels through the playbook; `from_dict` reads it."""
        return {
            "place": self.place.to_dict(),
            "granted": self.granted,
            "holder": self.holder.to_dict() if self.holder else None,
            "replaced": self.replaced,
            "unanswered": self.unanswered,
            "waited": self.waited,
            "busy": self.busy,
            "beside": self.beside.to_dict() if self.beside else None,
            "marks": list(self.marks),
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Answer:
        """Return the answer that `to_dict` has told."""
        return cls(
            Place.from_dict(found["place"]),
            bool(found["granted"]),
            Owner.from_dict(found["holder"]) if found["holder"] else None,
            str(found["replaced"]),
            str(found["unanswered"]),
            bool(found["waited"]),
            str(found["busy"]),
            Owner.from_dict(found["beside"]) if found["beside"] else None,
            tuple(str(each) for each in found["marks"]),
        )


@dataclass(frozen=True)
class Verdict:
    """Whether the run may go on; what it says; and where each member's lock is, if it was granted.

    `outdated`: another run was at work when the preflight looked, or has come and gone since.
    """

    granted: bool
    errors: Tuple[Problem, ...] = ()
    warnings: Tuple[Problem, ...] = ()
    notes: Tuple[str, ...] = ()
    fences: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    outdated: bool = False


def plan(members: Iterable[Member], workers: Sequence[str]) -> Plan:
    """Return which host asks where; `workers` are the hosts of the play, which work at the same time.

    Only clusters of which a member is in the play. Every run has the same order, whatever --limit
    says: that of the names. Names of one machine are one place, asked through the first that answers.
    """
    members = sorted(members, key=lambda member: member.name)
    clusters = sorted({member.cluster for member in members if member.in_play})
    groups: Dict[Tuple[str, str, str], List[Member]] = {}
    for member in members:
        if member.cluster in clusters:
            key = (member.cluster, member.address, member.directory)
            groups.setdefault(key, []).append(member)
    places = [_place(group) for group in groups.values()]
    first: Dict[str, Place] = {}
    for place in places:
        if not place.absent:
            first.setdefault(place.cluster, place)
    reached = [place for place in places if not place.absent]
    return Plan(
        tuple(first[name] for name in sorted(first)),
        _shared_out([place for place in reached if place != first[place.cluster]], workers),
        _shared_out(reached, workers),
        tuple(place for place in places if place.absent),
    )


def _place(group: Sequence[Member]) -> Place:
    speaker = next((member for member in group if not member.absent), group[0])
    return Place(
        speaker.cluster,
        speaker.name,
        speaker.directory,
        tuple(member.name for member in group),
        tuple(path for member in group for path in member.instances),
        speaker.absent,
    )


def _shared_out(places: Iterable[Place], workers: Sequence[str]) -> Dict[str, Tuple[Place, ...]]:
    """Each worker asks on its own host; hosts outside of the play are dealt out."""
    shares: Dict[str, List[Place]] = {}
    dealt = 0
    for place in places:
        own = [name for name in place.members if name in workers]
        if own:
            worker = own[0]
        else:
            worker = workers[dealt % len(workers)]
            dealt += 1
        shares.setdefault(worker, []).append(place)
    return {worker: tuple(share) for worker, share in shares.items()}


def replacement(holder: Owner, gone: bool, break_lock: str) -> str:
    """Return why the lock of `holder` may be replaced: LEFT, BROKEN, or "" if it must not be."""
    if gone:
        return LEFT
    return BROKEN if break_lock == holder.id else ""


def verdict(
    wanted: Plan,
    answers: Iterable[Answer],
    viewer: Owner,
    break_lock: str = "",
    seen: Iterable[str] = (),
    marks: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> Verdict:
    """Judge all answers of a run.

    `viewer`: the run itself; `break_lock`: the holder that it may replace; `seen`: ids of the holders that the
    preflight has found. What another run held then, or has left since, may have changed after the preflight.
    `marks`: member -> the marks that it has found, of members that it has asked.
    """
    answers = list(answers)
    silent = [answer for answer in answers if answer.unanswered]
    absent = [(place, place.absent) for place in wanted.absent]
    absent += [(answer.place, answer.unanswered) for answer in silent]
    errors = _refusals(answers, viewer, break_lock)
    errors += [_at_work(answer) for answer in answers if answer.granted and answer.busy]
    refused = {error.value for error in errors if error.check == "run.locked"}
    granted = {answer.place.cluster for answer in answers if answer.granted}
    clusters = {place.cluster for place in wanted.first + wanted.absent}
    for cluster in sorted(clusters - granted - refused):
        errors.append(_nowhere(cluster, [each for each in absent if each[0].cluster == cluster]))
    if errors:
        return Verdict(False, tuple(errors))
    return Verdict(
        True,
        warnings=tuple(_incomplete(place, reason) for place, reason in absent),
        notes=tuple(_notes(answers)),
        outdated=any(answer.waited or answer.replaced for answer in answers)
        or any(holder != viewer.id for holder in seen)
        or any(_has_new_marks(answer, viewer, marks) for answer in answers),
        fences={
            name: {
                "directory": answer.place.directory,
                "cluster": answer.place.cluster,
                "owner": viewer.id,
            }
            for answer in answers
            if answer.granted
            for name in answer.place.members
        },
    )


def _has_new_marks(answer: Answer, viewer: Owner, marks: Mapping[str, Iterable[str]]) -> bool:
    """Whether a run has given the lock back here since the preflight has looked."""
    asked = [marks[name] for name in answer.place.members if name in marks]
    known = {each for of_member in asked for each in of_member}
    if len(asked) < len(answer.place.members):
        # A new one may be an old one of another inventory name of the machine, which the preflight has not asked.
        return bool(known - set(answer.marks))
    return any(each not in known and each.partition(" ")[0] != viewer.id for each in answer.marks)


def _refusals(answers: Iterable[Answer], viewer: Owner, break_lock: str) -> List[Problem]:
    """One problem for each cluster and holder."""
    found: Dict[Tuple[str, str], Tuple[Owner, List[str]]] = {}
    for answer in answers:
        if answer.holder and not answer.granted:
            key = (answer.place.cluster, answer.holder.id)
            _holder, members = found.setdefault(key, (answer.holder, []))
            members += answer.place.members
    problems = []
    for (cluster, _owner), (holder, members) in sorted(found.items()):
        reason = f"{holder.described()} holds the lock of this cluster"
        if cluster.endswith(OF_DISKS):
            reason = f"{holder.described()} moves replicas between the disks of this cluster"
        # Of a file that nobody can read nothing is known.
        if holder.cluster not in ("", cluster):
            reason += f" under another name, {holder.cluster}"
        breaking = f"-e kafkaops_break_lock={holder.id}"
        if can_be_seen(holder, viewer):
            reason += " and still runs"
            when = "if it never will"
        else:
            reason += "; whether it still runs cannot be seen from here"
            when = "if it has, and left its lock"
        remedy = (
            f"wait until it has ended, then run again; {when}, {breaking} takes the lock from it"
        )
        if break_lock and break_lock != holder.id:
            reason += f"; kafkaops_break_lock={break_lock} names somebody else"
        problems.append(
            Problem(
                "run.locked",
                reason,
                remedy,
                tuple(sorted(set(members))),
                "kafka_cluster_name",
                cluster,
            )
        )
    return problems


def _at_work(answer: Answer) -> Problem:
    return Problem(
        "run.module_at_work",
        f"a module of another run still works on an instance here, and holds {answer.busy}",
        "wait until that process has ended, then run again; `fuser` with this path names it",
        answer.place.members,
    )


def _nowhere(cluster: str, absent: Sequence[Tuple[Place, str]]) -> Problem:
    told = "; ".join(f"{place.host}: {reason}" for place, reason in absent)
    return Problem(
        "run.lock_failed",
        f"the lock of this cluster could be taken nowhere: {told or 'no host was asked'}",
        "bring a host of the cluster within reach, or make its directory of locks (kafkaops_lock_dir) writable",
        tuple(sorted({name for place, _reason in absent for name in place.members})),
        "kafka_cluster_name",
        cluster,
        ERROR,
    )


def _incomplete(place: Place, reason: str) -> Problem:
    return Problem(
        "run.lock_incomplete",
        f"the lock of cluster {place.cluster} was not taken here ({reason}):"
        " a run that reaches only such hosts would not be refused",
        "start no other run from a machine that reaches other hosts than this one",
        place.members,
        level=WARNING,
    )


def _notes(answers: Iterable[Answer]) -> List[str]:
    """One line for each lock that was another run's, and for who works beside this one."""
    lines = {}
    for answer in answers:
        if answer.replaced and answer.holder:
            told = "was left by" if answer.replaced == LEFT else "is taken from"
            then = ", which no longer runs: taken over" if answer.replaced == LEFT else ", as asked"
            text = f"The lock of cluster {answer.place.cluster} {told} {answer.holder.described()}{then}."
            lines[(answer.place.cluster, answer.holder.id, answer.replaced)] = text
        if answer.granted and answer.beside:
            text = f"Meanwhile {answer.beside.described()} is at work with this cluster, too"
            text += (
                "."
                if answer.place.cluster.endswith(OF_DISKS)
                else ": replicas move between the disks of brokers, which goes on through a restart."
            )
            lines[(answer.place.cluster, answer.beside.id, "beside")] = text
    return [lines[key] for key in sorted(lines)]


LOCKED = "Locked"
# A roll goes on beside it; a second spread, and a cancel, do not.
DISKS_LOCKED = "Disks locked, between which replicas move,"


def told_by_status(
    locks: Iterable[Tuple[str, Owner]],
    viewer_sees_gone: Iterable[str],
    under: Mapping[str, str] = MappingProxyType({}),
    word: str = LOCKED,
) -> List[str]:
    """Return lines for the status table: who holds the lock. `locks`: (member, holder) pairs.

    `viewer_sees_gone`: ids of holders that have certainly ended; `under`: id -> another name of the
    cluster, under which it is held; `word`: DISKS_LOCKED for that of who moves replicas between disks.
    """
    held: Dict[str, Tuple[Owner, List[str]]] = {}
    for name, holder in locks:
        held.setdefault(holder.id, (holder, []))[1].append(name)
    gone = set(viewer_sees_gone)
    lines = []
    for owner, (holder, names) in sorted(held.items()):
        if owner in gone:
            end = "it no longer runs, so the next run from here takes it over"
        else:
            end = f"to break it: -e kafkaops_break_lock={owner}"
        name = f", under another name of the cluster, {under[owner]}" if under.get(owner) else ""
        lines.append(f"{word} on {', '.join(sorted(names))}{name}: {holder.described()}; {end}.")
    return lines
