# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an ensemble of ZooKeeper servers gets another list of servers, one server more or less a step. Pure.

A step goes from a list to one with a server more or less. Majorities of two such lists always have a
server in common, so there are never two quorums; in one step from {1, 2, 3} to {1, 2, 3, 4, 5}, {1, 2}
and {3, 4, 5} would be two. Within a step each server gets the new list in its turn, the leader last:

* A server that joins starts first, with the new list. It follows the leader, who does not count it
  until it has the new list itself.
* A server that leaves stops last, when nobody lists it any more. Until then it counts for those that
  have the old list. It must not lead meanwhile, since whoever has the new list would not follow it:
  if it does, it restarts first, as it is, and the others elect.

What has to be done follows from what the servers say alone (`conf`, `srvr`) and from the list that is
wanted, so that a run goes on with what a killed one has left. Nothing is remembered.

Private to the collection: names and behaviour may change without notice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import (
    Any,
    Collection,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Set,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.four_letter_words import (
    unmet,
)

START, RESTART, YIELD, STOP = "start", "restart", "yield", "stop"
# More turns than any change of seven servers takes: a plan that gets here does not end.
ENDLESS = 100
# Of two servers none can be spared, so the way from three to one would stop what it serves.
SMALLEST = 3
List_ = FrozenSet[int]


@dataclass(frozen=True)
class Server:
    """What is known of one server. `listed`: the list that it has in effect, None where it does not say."""

    id: int
    runs: bool = False
    serves: bool = False
    leads: bool = False
    listed: Optional[List_] = None


@dataclass(frozen=True)
class Turn:
    """What is done next with one server.

    `action`: START or RESTART with the list `members`, YIELD: restart it as it is, so that another one
    leads, STOP for good; `lists`: those in effect meanwhile; `required`: the servers that have to serve
    before it; `guarded`: whether it has to wait until the others have a quorum; `serves`: whether it
    serves afterwards, before anything else happens.
    """

    id: int
    action: str
    members: List_
    lists: Tuple[List_, ...]
    required: FrozenSet[int] = frozenset()
    guarded: bool = True
    serves: bool = True


class Refused(Exception):
    """There is no safe next turn; the message says why and what helps."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


def majority(members: Collection[int]) -> int:
    """Return how many servers of a list make a quorum."""
    return len(members) // 2 + 1


def next_list(now: List_, target: List_, servers: Mapping[int, Server]) -> List_:
    """Return the neighbour of a list on the way to another one; `now` itself where that is the other one.

    It grows before it shrinks. Of several that leave, one that does not serve goes first: it only
    counts against the quorum; then one that does not lead.
    """
    if target - now:
        return now | {min(target - now)}
    if now - target:

        def order(number: int) -> Tuple[bool, bool, int]:
            server = servers.get(number, Server(number))
            return server.serves, server.leads, -number

        return now - {min(now - target, key=order)}
    return now


def leader_of(servers: Mapping[int, Server]) -> Server:
    """Return the server that leads, or stands alone. Raises Refused where there is none."""
    for each in servers.values():
        if each.leads or _alone(each):
            return each
    raise Refused("no server leads", "look at what is missing with playbooks/status.yml")


def step(servers: Mapping[int, Server], target: List_) -> Tuple[List_, List_]:
    """Return (the smaller, the larger) list of the step that is under way or comes next; equal at the end.

    Raises Refused where no step explains what the servers have.
    """
    if not any(each.serves for each in servers.values()):
        raise Refused(
            "no server serves, so nothing tells the list that is in effect",
            "start it as it was, ansible-playbook playbooks/start.yml",
        )
    leader = leader_of(servers)
    # What the leader does not list has no vote: one that joins, or was started again after it had left.
    lists: Set[List_] = {
        each.listed
        for each in servers.values()
        if each.serves and each.listed and each.id in (leader.listed or ())
    }
    told = " and ".join(sorted(_said(each) for each in lists))
    unknown = frozenset().union(*lists) - set(servers)
    if unknown:
        raise Refused(
            f"{_said(unknown)} is in the lists {told} of the servers, and no host of the inventory has this id",
            "put the host back into the inventory; what is to leave leaves by -e zookeeper_leaves=NAME",
        )
    if not lists or len(lists) > 2:
        raise Refused(
            f"the servers have {f'the lists {told}' if told else 'no list that they tell'}, and no"
            " single step explains that",
            "allow the word conf in 4lw.commands.whitelist, and give all servers one list by hand",
        )
    small = min(lists, key=len)
    large = next_list(small, target, servers) if len(lists) == 1 else max(lists, key=len)
    if len(large) < len(small):
        small, large = large, small
    if len(large - small) > 1 or small - large:
        raise Refused(
            f"the servers have the lists {told}, which are more than one server apart: each could"
            " have a quorum of its own",
            "stop the servers of one of them, give all servers one list by hand, and start them",
        )
    return small, large


def next_turn(servers: Mapping[int, Server], target: List_) -> Optional[Turn]:
    """Return what is to be done next so that exactly `target` is the ensemble; None if it is.

    Raises Refused where there is nothing safe to do.
    """
    small, large = step(servers, target)
    (moving,) = large - small or {None}
    grows = moving in target
    wanted = large if grows or moving is None else small
    leader = leader_of(servers)
    lists = (small, large) if moving is not None else (small,)

    # Members that do not serve first, with the list that lets them follow at once. One that leaves may
    # stay down, unless it is needed for the quorum while the others restart.
    there = {each.id for each in servers.values() if each.serves}
    there |= {moving} if grows and moving is not None else set()
    spare = all(len(there & each) - 1 >= majority(each) for each in (small, large))
    for each in _ordered(servers.values()):
        member = each.id in (small if grows else large)
        if member and not each.serves and (each.id in target or (moving is not None and not spare)):
            known = leader.listed or large
            members = known if each.id in known else large
            return Turn(each.id, START, members, lists, guarded=False)
    # A server that has left, and that nobody lists.
    for each in _ordered(servers.values()):
        if each.runs and each.id not in target | large:
            kept = leader.listed or wanted
            return _guarded(Turn(each.id, STOP, kept, (kept,)), target, kept)
    if moving is None:
        return None
    mover = servers[moving]
    if grows and (not mover.serves or mover.listed != large):
        # Beside one that stands alone nobody can serve before that one has the list, too.
        waits = not _alone(leader)
        if waits or not mover.runs:
            return _guarded(Turn(moving, START, large, lists, serves=waits), target, small)
    behind = [each for each in servers.values() if each.id in small and each.serves]
    behind = [each for each in behind if each.listed != wanted]
    if behind and not grows and mover.leads:
        return _guarded(Turn(moving, YIELD, large, lists), target, small)
    for each in _ordered(behind):
        members = large if mover.serves and grows else small
        return _guarded(Turn(each.id, RESTART, wanted, lists), target, members)
    if not grows and mover.runs:
        return _guarded(Turn(moving, STOP, wanted, (wanted,)), target, wanted)
    return None


def after(servers: Mapping[int, Server], turn: Turn) -> Dict[int, Server]:
    """Return what the servers say when the turn went well; whoever of the list has the highest id leads next."""
    result = dict(servers)
    before = result.get(turn.id, Server(turn.id))
    if turn.action == STOP:
        now = Server(turn.id)
    else:
        kept = before.listed if turn.action == YIELD else turn.members
        now = Server(turn.id, runs=True, serves=turn.serves, listed=kept)
        if len(turn.members) == 1:
            now = replace(now, leads=True)
    result[turn.id] = now
    # One that stood alone and now has others makes them serve, too.
    if _alone(before) and len(turn.members) > 1:
        for number in turn.members:
            each = result.get(number, Server(number))
            result[number] = replace(each, serves=each.runs, listed=turn.members)
    if not any(each.leads for each in result.values()):
        heirs = [each for each in result.values() if each.serves and each.id in turn.members]
        heirs = [each for each in heirs if each.id != turn.id] or heirs
        heir = max(heirs, key=lambda each: each.id)
        result[heir.id] = replace(heir, leads=True)
    return result


def all_turns(servers: Mapping[int, Server], target: List_) -> List[Turn]:
    """Return every turn to the end, as they follow if each goes well. Raises Refused."""
    turns: List[Turn] = []
    while True:
        turn = next_turn(servers, target)
        if turn is None:
            return turns
        if len(turns) == ENDLESS:
            raise Refused(
                "the turns come to no end", "run it again when the ensemble is whole and quiet"
            )
        turns.append(turn)
        servers = after(servers, turn)


def refuse_two(servers: Mapping[int, Server], target: List_) -> None:
    """Raise Refused where an ensemble would become smaller than three: two servers can spare none of them."""
    if len(target) < SMALLEST and any(
        len(each.listed or ()) > len(target) for each in servers.values()
    ):
        raise Refused(
            f"{_said(target)} would be left, and an ensemble does not get smaller than {SMALLEST} while it serves",
            "let three servers stay",
        )


def server_of(state: Mapping[str, Any]) -> Server:
    """Return the Server of one entry of what the module zookeeper_info returns."""
    serves = state["error"] is None
    listed = frozenset(state["listed"]) if serves and state.get("listed") else None
    leads = serves and state["role"] in ("leader", "standalone")
    return Server(int(state["id"]), bool(state["runs"]), serves, leads, listed)


def ensemble_plan(states: Iterable[Mapping[str, Any]], target: Iterable[int]) -> Dict[str, Any]:
    """Return {turns, told, refused, remedy, unmet} of a change of an ensemble's list.

    `states`: what the module zookeeper_info returns of all servers, also of those that join or leave;
    `target`: the ids of the list that is wanted. `turns`: all of them, the first one is next; each has
    what the module zookeeper_info takes to wait before it (`required`, `stopping`, `lists`). `told`: one
    line a turn. `refused`: why there is no safe way, "" if there is one. `unmet`: what the first turn
    would have to wait for.
    """
    states = [dict(each) for each in states]
    servers = {each.id: each for each in map(server_of, states)}
    wanted = frozenset(int(number) for number in target)
    result: Dict[str, Any] = {"turns": [], "told": [], "refused": "", "remedy": "", "unmet": []}
    try:
        refuse_two(servers, wanted)
        turns = all_turns(servers, wanted)
    except Refused as refusal:
        return dict(result, refused=refusal.reason, remedy=refusal.remedy)
    result["turns"] = [_plain(turn) for turn in turns]
    result["told"] = [_told(turn) for turn in turns]
    if turns and turns[0].guarded:
        first = result["turns"][0]
        result["unmet"] = unmet(states, first["required"], first["stopping"], first["lists"])
    return result


def _plain(turn: Turn) -> Dict[str, Any]:
    stops = turn.action in (RESTART, YIELD)
    return {
        "id": turn.id,
        "action": turn.action,
        "members": sorted(turn.members),
        "lists": [sorted(each) for each in turn.lists],
        "required": sorted(turn.required),
        "stopping": turn.id if stops else None,
        "guarded": turn.guarded,
        "serves": turn.serves,
        "told": _told(turn),
    }


def _told(turn: Turn) -> str:
    if turn.action == STOP:
        return f"stop server {turn.id}: nobody lists it any more"
    if turn.action == YIELD:
        return f"restart server {turn.id} as it is: it leaves, so another one has to lead"
    return f"{turn.action} server {turn.id} with the list {_said(turn.members)}"


def _guarded(turn: Turn, target: List_, members: Collection[int]) -> Turn:
    """The turn with the servers that have to serve before it: those of `members` that stay."""
    return replace(turn, required=frozenset(members) & target - {turn.id})


def _ordered(servers: Iterable[Server]) -> List[Server]:
    """In the order of their turns: the leader last, so that it moves once."""
    return sorted(servers, key=lambda each: (each.leads, each.id))


def _alone(server: Server) -> bool:
    return server.serves and server.listed == frozenset((server.id,))


def _said(members: Iterable[int]) -> str:
    return "{" + ", ".join(str(number) for number in sorted(members)) + "}"
