# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the quorum of a KRaft cluster gets other voters, one voter more or less a step.

Private to this collection. Pure: no I/O, no clock. The order:

1. A voter whose disk was replaced is removed by the id of its former directory, and added by that of its new one.
   A quorum never has two voters of one id.
2. Voters that are new are added. It grows before it shrinks.
3. Voters that leave are removed: first those that do not keep up, which only count against the majority, then the
   others, the leader last.

Each removal has to leave voters of whom a majority keeps up. An addition cannot make it worse: whoever is added keeps
up, which is waited for.

What has to be done follows from what the leader says alone, so that a run goes on with what a killed one has left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Collection, Dict, Iterable, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change, Plan
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import (
    Quorum,
    Replica,
    other_directory,
    uuid_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

ADD, REMOVE = "add", "remove"
BRING_BACK = "bring back the voters that are behind, or add others first"


@dataclass(frozen=True)
class Wanted:
    """A node that is to vote. `directory`: id of its metadata's directory, "" where it votes already."""

    id: int
    directory: str = ""
    host: str = ""
    port: int = 0


def parse_voters(
    voters: Iterable[Mapping[str, Any]], leaving: Collection[int], replaced: Collection[int]
) -> Tuple[Tuple[Wanted, ...], Tuple[Problem, ...]]:
    """(the voters that are wanted, what contradicts itself or cannot be read) of the module's options."""
    wanted: Dict[int, Wanted] = {}
    refusals: List[Problem] = []

    def refuse(node: int, reason: str, option: str, value: Any) -> None:
        remedy = "see `ansible-doc kafkaops.cluster.kafka_voters`"
        refusals.append(Problem("voters.bad_value", reason, remedy, (_named(node),), option, value))

    for each in voters:
        found = Wanted(
            each["id"],
            each.get("directory_id") or "",
            each.get("host") or "",
            each.get("port") or 0,
        )
        if found.id in wanted:
            refuse(found.id, "the node is named twice", "voters", found.id)
        wanted[found.id] = found
        if found.directory:
            try:
                uuid_of(found.directory)
            except ValueError:
                reason = "it is not an id of a directory, which has 22 characters of base64"
                refuse(found.id, reason, "voters.directory_id", found.directory)
        if not 0 <= found.port <= 65535:
            refuse(found.id, "there is no such port", "voters.port", found.port)
    for node in sorted(set(leaving) & set(wanted)):
        refuse(node, "it is to vote and to leave", "leaving", node)
    for node in sorted(set(replaced) - set(wanted)):
        refuse(node, "it is to be replaced, and is not among the voters", "replaced", node)
    return tuple(wanted[node] for node in sorted(wanted)), tuple(refusals)


def plan_voters(
    quorum: Quorum,
    wanted: Sequence[Wanted],
    leaving: Collection[int] = (),
    replaced: Collection[int] = (),
    formatted: bool = True,
) -> Plan:
    """The plan that makes the wanted nodes the voters; it has no change where they are.

    `leaving`: voters that are removed; `replaced`: those of the wanted whose former directory is gone;
    `formatted`: whether whoever is to be added has a directory by now: a plan alone can be made before.
    """
    now = {each.id: each for each in quorum.voters}
    ahead = {each.id: each for each in wanted}
    changes: List[Change] = []
    refusals: List[Problem] = []
    unknown = sorted(set(now) - set(ahead) - set(leaving))
    if unknown:
        refusals.append(
            Problem(
                "voters.unknown",
                f"the quorum has voters that are named nowhere: {_listed(unknown)}",
                "name them in voters, or in leaving if they are to go",
                tuple(map(_named, unknown)),
            )
        )
    swapped = [
        each
        for each in wanted
        if each.id in now and now[each.id].directory
        # an empty disk has no directory yet where nothing is formatted, as in check mode
        and each.directory != now[each.id].directory
        and (each.directory or (each.id in replaced and not formatted))
    ]
    joining = [each for each in wanted if each.id not in now]
    going = sorted(
        (each for each in quorum.voters if each.id in leaving),
        key=lambda each: (quorum.keeps_up(each), each.id == quorum.leader, each.id),
    )
    # id -> whether it keeps up, step by step
    alive = {each.id: quorum.keeps_up(each) for each in quorum.voters}
    for each in swapped:
        old = now[each.id]
        if each.id not in replaced:
            refusals.append(_other_directory(old, each))
        elif alive[each.id]:
            refusals.append(_still_alive(quorum, old))
        else:
            refusals += _short(alive, each.id)
            changes += [_removal(old, "its disk was replaced"), _addition(each)]
            alive[each.id] = True
    for each in joining:
        if not ((each.directory or not formatted) and each.host and each.port):
            refusals.append(_unknown_place(each))
        changes.append(_addition(each))
        alive[each.id] = True
    for old in going:
        refusals += _short(alive, old.id)
        changes.append(_removal(old))
        del alive[old.id]
    if changes and not refusals:
        refusals += _undecided(quorum)
    if changes and quorum.static:
        refusals = [_static(quorum)]
    return Plan(tuple(changes), tuple(refusals), tuple(_even(alive) if changes else ()))


def behind(quorum: Quorum, wanted: Wanted) -> str:
    """In words, why a node may not be added yet; "" if it follows the leader and lacks nothing."""
    mine = [
        each
        for each in quorum.observers
        if each.id == wanted.id and each.directory == wanted.directory
    ]
    if not mine:
        there = [each.directory for each in quorum.observers if each.id == wanted.id]
        also = f"; with directory {', '.join(there)} it does" if there else ""
        return (
            f"node {wanted.id} does not follow the leader with directory {wanted.directory}{also}"
        )
    (own,) = mine[:1]
    if quorum.keeps_up(own):
        return ""
    return f"node {wanted.id} lacks {quorum.lag(own)} of the leader's records"


def withheld(quorum: Quorum, node: int) -> str:
    """In words, why this voter may not be removed at this moment; "" if it may, or is none."""
    alive = {each.id: quorum.keeps_up(each) for each in quorum.voters}
    if node not in alive:
        return ""
    return "; ".join(each.reason for each in _short(alive, node))


def not_yet(change: Change, quorum: Quorum, wanted: Iterable[Wanted]) -> str:
    """In words, why a change may not be made at this moment; "" if it may.

    Of a disk that was replaced the former vote stays until the node is there: without it, and without the new one, the
    quorum would have one voter less for as long as the node cannot follow.
    """
    node = node_of(change)
    new = next((each for each in wanted if each.id == node), None)
    if change.kind == ADD:
        return behind(quorum, new) if new else "nobody says where it is"
    swapped = new and new.directory and new.directory != change.before["directory_id"]
    return (behind(quorum, new) if new and swapped else "") or withheld(quorum, node)


def votes(quorum: Quorum, node: int, directory: str) -> bool:
    """Whether the node votes, with this directory."""
    return any(each.id == node and each.directory == directory for each in quorum.voters)


# ---------------------------------------------------------------- changes


def _addition(wanted: Wanted) -> Change:
    after = {
        "directory_id": wanted.directory or "(of its format)",
        "endpoint": endpoint(wanted.host, wanted.port),
    }
    return Change(ADD, _named(wanted.id), {}, after)


def _removal(old: Replica, note: str = "") -> Change:
    return Change(REMOVE, _named(old.id), {"directory_id": old.directory}, {}, note)


def _named(node: int) -> str:
    return f"voter {node}"


def node_of(change: Change) -> int:
    """The id of a change's node."""
    return int(change.subject.rpartition(" ")[2])


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ids))) or "none"


# ---------------------------------------------------------------- refusals


def _short(alive: Mapping[int, bool], node: int) -> List[Problem]:
    """Whether a removal would leave voters that cannot decide."""
    left = {each: keeps_up for each, keeps_up in alive.items() if each != node}
    needed, have = len(left) // 2 + 1, sum(left.values())
    if have >= needed:
        return []
    silent = _listed(each for each, keeps_up in left.items() if not keeps_up)
    reason = (
        f"without it {have} of {len(left)} voters keep up, and {needed} are a majority; behind: {silent}"
        if left
        else "it is the last voter, and without one nothing in the cluster can change"
    )
    return [
        Problem(
            "voters.majority",
            reason,
            BRING_BACK,
            (_named(node),),
        )
    ]


def _undecided(quorum: Quorum) -> List[Problem]:
    """Whether the voters as they are cannot decide: a leader goes on for a moment when its majority has gone."""
    behind_it = [each.id for each in quorum.voters if not quorum.keeps_up(each)]
    needed = len(quorum.voters) // 2 + 1
    if len(quorum.voters) - len(behind_it) >= needed:
        return []
    return [
        Problem(
            "voters.majority",
            f"{len(quorum.voters) - len(behind_it)} of {len(quorum.voters)} voters keep up, and {needed}"
            f" are a majority; behind: {_listed(behind_it)}",
            BRING_BACK,
            tuple(map(_named, behind_it)),
        )
    ]


def _other_directory(old: Replica, wanted: Wanted) -> Problem:
    return Problem(
        "voters.other_directory",
        other_directory(old.directory, wanted.directory),
        f"bring its old disk back; or, if that is gone for good, name {wanted.id} in replaced"
        f" (playbooks: replace_broker.yml -e broker={wanted.id})",
        (_named(wanted.id),),
        "voters.directory_id",
        wanted.directory,
    )


def _still_alive(quorum: Quorum, old: Replica) -> Problem:
    doing = "leads" if old.id == quorum.leader else "follows the leader"
    return Problem(
        "voters.alive",
        f"the voter with directory {old.directory} still {doing}, so it is not one whose disk is gone",
        "stop that process, wherever it runs, or leave the voter as it is",
        (_named(old.id),),
        "replaced",
        str(old.id),
    )


def _unknown_place(wanted: Wanted) -> Problem:
    return Problem(
        "voters.bad_value",
        "it does not vote yet, and its directory, host or port is not named",
        "name directory_id, as it stands in meta.properties, host and port",
        (_named(wanted.id),),
        "voters",
        str(wanted.id),
    )


def _static(quorum: Quorum) -> Problem:
    return Problem(
        "voters.static",
        "the quorum is static: its voters stand in the configuration of every node, and cannot change",
        "make it a dynamic one first, which there is no way back from: playbooks/dynamic_quorum.yml, or"
        " kafka_features with kraft.version: 1",
        tuple(_named(each.id) for each in quorum.voters),
    )


def _even(alive: Mapping[int, bool]) -> List[str]:
    size = len(alive)
    if size % 2 or not size:
        return []
    return [
        f"{size} voters: an even number tolerates no more failures than {size - 1}, and needs one vote more"
    ]
