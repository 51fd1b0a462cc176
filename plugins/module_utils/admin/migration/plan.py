# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The migration of one cluster from ZooKeeper to KRaft: what is left to do, and what must not be done. Pure.

All of it follows from what runs and what is on disk now, see configuration.migration; nothing is remembered between two
runs. Private to the collection: names may change without notice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.migration import (
    IN_KRAFT,
    IN_ZOOKEEPER,
    MIGRATING,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# States of the migration that a controller has in its metadata log.
DUAL_WRITE, FINAL = "MIGRATION", "POST_MIGRATION"
# The same of a cluster that never was in ZooKeeper.
NEVER = "NONE"
# What a run is to do: up to the last step that can still be thought over, to the end, or back.
FORWARD, FINISH, BACK, REMOVE = "", "finish", "back", "remove_zookeeper"
WISHES = (FORWARD, FINISH, BACK, REMOVE)
# Where a run that goes forward ends: where all brokers are in KRaft, or while it can still be taken back.
NO_END, DUAL_WRITE_END = "", "dual_write"
ENDS = (NO_END, DUAL_WRITE_END)
# Steps, in their order.
CONTROLLERS, ENTER, AWAIT, KRAFT = "controllers", "enter", "await", "kraft"
END, SERVERS = "end", "servers"
RETURN, LEAVE_CONTROLLERS, RELEASE, LEAVE = "return", "leave_controllers", "release", "leave"
_FORWARD, _BACK = "playbooks/migrate_to_kraft.yml", "playbooks/migrate_back.yml"


@dataclass(frozen=True)
class Node:
    """One broker or controller as it is.

    `phase`: as configuration.migration tells it of the configuration in force, "" where there is none; `state`: of a
    controller, see STATES of records, "" where it has none; `formatted`: of a controller, whether its disk knows what
    it has voted for, which it does not before its first start; `last`: offset of the last record in its log that says
    anything, -1 where there is none.
    """

    host: str
    id: int
    is_broker: bool
    phase: str = ""
    running: bool = False
    state: str = ""
    formatted: bool = True
    last: int = -1


@dataclass(frozen=True)
class Znodes:
    """What ZooKeeper has of the controller.

    `controller`: its id, None for nobody; `epoch`: that of KRaft; `offset`: of the last record of KRaft that was
    written there; each -1 where there is none; `migration`: whether there is a node that could have the offset.
    """

    controller: Optional[int] = None
    epoch: int = -1
    offset: int = -1
    migration: bool = False

    @property
    def held(self) -> bool:
        """Whether a controller of KRaft has ZooKeeper's cluster."""
        return self.controller is not None and self.epoch >= 1


@dataclass(frozen=True)
class Situation:
    """A cluster.

    `znodes` is None where ZooKeeper does not answer; `servers`: hosts that have a server still; `outside`: those that
    this run is without; `quorate`: whether so many of them run that they may serve somebody; `others`: nodes there
    of those who are no part of the cluster and at work with it, where it was looked for them, None where nobody told.
    """

    cluster: str
    nodes: Tuple[Node, ...]
    znodes: Optional[Znodes] = None
    servers: Tuple[str, ...] = ()
    others: Optional[Tuple[str, ...]] = ()
    outside: Tuple[str, ...] = ()
    quorate: bool = False

    @property
    def brokers(self) -> Tuple[Node, ...]:
        return tuple(each for each in self.nodes if each.is_broker)

    @property
    def controllers(self) -> Tuple[Node, ...]:
        return tuple(each for each in self.nodes if not each.is_broker)


@dataclass(frozen=True)
class Step:
    """One step with the hosts that it concerns."""

    name: str
    hosts: Tuple[str, ...]


@dataclass(frozen=True)
class MigrationPlan:
    """What this run does, or why it does nothing, and what is left after it."""

    steps: Tuple[Step, ...] = ()
    refusals: Tuple[Problem, ...] = ()
    after: Tuple[str, ...] = ()


_TOLD = {
    CONTROLLERS: "Start the controllers, which then wait for the brokers: {}.",
    ENTER: "Restart the brokers one at a time so that they know the controllers, metadata still in ZooKeeper: {}.",
    AWAIT: "Wait until the controllers have all metadata and write them to ZooKeeper, too.",
    KRAFT: "Restart the brokers one at a time as brokers of the controllers: {}.",
    END: "Restart the controllers one at a time without ZooKeeper, the active one last: {}."
    " THERE IS NO WAY BACK from the first one on.",
    SERVERS: "Stop the ZooKeeper servers and remove their services, their data stay: {}.",
    RETURN: "Restart the brokers one at a time with their metadata in ZooKeeper again: {}.",
    LEAVE_CONTROLLERS: "Stop the controllers and delete them with their metadata, once ZooKeeper has all of it: {}.",
    RELEASE: "Delete /controller and /migration in ZooKeeper, so that a broker becomes the controller again.",
    LEAVE: "Restart the brokers one at a time without the controllers: {}.",
}


def lines_of(steps: Sequence[Step]) -> List[str]:
    """The steps as people read them."""
    return [
        f"{number}. {_TOLD[each.name].format(', '.join(each.hosts))}"
        for number, each in enumerate(steps, 1)
    ]


def _names(nodes: Sequence[Node]) -> Tuple[str, ...]:
    return tuple(each.host for each in nodes)


def awaited(situation: Situation, most: bool = False) -> List[str]:
    """Why the controllers do not have the metadata yet, or do not write them to ZooKeeper; empty if they do.

    `most`: a majority of them is enough, as it is on the way back, which has to be open to a quorum that has lost one.
    """
    reasons: List[str] = []
    for each in situation.controllers:
        if not each.running:
            reasons.append(f"controller {each.id} ({each.host}) does not answer")
        elif each.state != DUAL_WRITE:
            reasons.append(
                f"controller {each.id} ({each.host}) is in state {each.state or '(none)'}"
            )
    if most and 2 * len(reasons) < len(situation.controllers):
        reasons = []
    znodes = situation.znodes
    if znodes is None:
        reasons.append("ZooKeeper does not answer")
    elif not znodes.held:
        held = "nobody" if znodes.controller is None else f"broker {znodes.controller}"
        reasons.append(f"{held} is the controller in ZooKeeper, and none of KRaft")
    elif znodes.controller not in {each.id for each in situation.controllers}:
        reasons.append(f"node {znodes.controller} is the controller in ZooKeeper")
    elif znodes.offset <= 0:
        reasons.append("nothing of KRaft is written to ZooKeeper yet")
    return reasons


def unwritten(situation: Situation) -> Dict[int, str]:
    """Id of a controller -> what it has that is not in ZooKeeper yet, and would go with it.

    Controllers write to ZooKeeper after they have answered. Before they have taken the metadata over, and once another
    one is the controller there, ZooKeeper has what counts.
    """
    znodes = situation.znodes
    if znodes is None or not znodes.held:
        return {}
    return {
        each.id: f"its metadata reach to record {each.last}, and ZooKeeper has them up to {znodes.offset}"
        for each in situation.controllers
        if each.state == DUAL_WRITE and each.last > znodes.offset
    }


def not_written(situation: Situation) -> List[str]:
    """The refusals to delete controllers that have what ZooKeeper has not; empty where there are none."""
    return [each.line() for each in _lacking(situation)]


def _lacking(situation: Situation) -> List[Problem]:
    told = unwritten(situation)
    return [
        _problem(
            "migration.not_written",
            [each],
            told[each.id],
            f"start ZooKeeper and the controllers with playbooks/start.yml, then run {_BACK} again",
        )
        for each in situation.controllers
        if each.id in told
    ]


def plan(situation: Situation, wish: str = FORWARD, until: str = NO_END) -> MigrationPlan:
    """What a run with this wish, one of WISHES, does; `until`, one of ENDS, is for FORWARD alone."""
    if _began_in_kraft(situation):
        after = (
            f"Cluster {situation.cluster} began in KRaft mode: there is nothing to migrate. Leave it out with --limit.",
        )
        return MigrationPlan(after=after)
    if wish == FORWARD:
        planned = _forward(situation)
        return _ended(situation, planned) if until == DUAL_WRITE_END else planned
    return {FINISH: _finish, BACK: _back, REMOVE: _remove}[wish](situation)


def _began_in_kraft(situation: Situation) -> bool:
    """Whether no node has ever had anything to do with ZooKeeper."""
    return all(each.phase in ("", IN_KRAFT) for each in situation.nodes) and any(
        each.state == NEVER for each in situation.controllers
    )


def _ended(situation: Situation, planned: MigrationPlan) -> MigrationPlan:
    """The plan without the step by which brokers leave ZooKeeper."""
    if planned.refusals:
        return planned
    in_kraft = [each for each in situation.brokers if each.phase == IN_KRAFT]
    after = "The controllers have the metadata, and the brokers theirs in ZooKeeper still."
    if in_kraft:
        after = f"{', '.join(_names(in_kraft))} in KRaft already, the other brokers have their metadata in ZooKeeper."
    after += f" On with {_FORWARD}, back with {_BACK}."
    steps = tuple(each for each in planned.steps if each.name != KRAFT)
    return replace(planned, steps=steps, after=(after,))


def _problem(check: str, nodes: Sequence[Node], reason: str, remedy: str) -> Problem:
    return Problem(check, reason, remedy, _names(nodes), "kafka_metadata", "kraft")


def _final(situation: Situation) -> Tuple[Node, ...]:
    """The controllers that know of no ZooKeeper any more, or whose log says that it has ended."""
    return tuple(
        each for each in situation.controllers if each.phase == IN_KRAFT or each.state == FINAL
    )


def _bare(situation: Situation) -> List[Node]:
    """The controllers that nobody has started yet, or whose disk was lost: /etc outlives it.

    One that has its metadata and no configuration has lost the system's disk. It may vote, unless a deletion of the
    controllers was cut off, before which all of them stop.
    """
    at_work = [
        each
        for each in situation.controllers
        if each.phase and each.running and each.state in (DUAL_WRITE, FINAL)
    ]
    goes_on = 2 * len(at_work) > len(situation.controllers)
    return [
        each
        for each in situation.controllers
        if not each.formatted or not (each.phase or (each.state and goes_on))
    ]


def _lost(situation: Situation, bare: Sequence[Node]) -> Problem:
    final = _final(situation)
    numbers = " or ".join(str(each.id) for each in bare)
    replaces = f"playbooks/replace_broker.yml -e broker={numbers}, then run this again"
    kept = [each for each in bare if each.formatted and each.state]
    reason = (
        "it has nothing on its disk, and controllers of KRaft have the metadata already: empty it would vote"
        " for a past that it does not know"
    )
    if kept == list(bare):
        reason = (
            "its metadata are there and its configuration is not, and too few of the others are at work to tell whether"
            " somebody has begun to delete them"
        )
        remedy = f"start the others with playbooks/start.yml, then run this again; or go back with {_BACK}"
    elif any(each.phase != IN_KRAFT for each in situation.brokers):
        remedy = f"go back with {_BACK}, then begin anew; or bring its disk back"
    elif all(each.phase == IN_KRAFT for each in situation.controllers if each.phase):
        remedy = f"bring its disk back; or take ZooKeeper out of the inventory, and run {replaces}"
    else:
        remedy = f"bring its disk back; or run {replaces}"
        remedy += "" if final else f"; or go back with {_BACK}, then begin anew"
    return _problem("migration.lost_controller", bare, reason, remedy)


def _forward(situation: Situation) -> MigrationPlan:
    in_kraft = [each for each in situation.brokers if each.phase == IN_KRAFT]
    behind = [each for each in situation.brokers if each.phase != IN_KRAFT]
    outside = [each for each in behind if each.phase != MIGRATING]
    final, znodes = _final(situation), situation.znodes
    refusals: List[Problem] = []
    if behind and final:
        refusals.append(
            _problem(
                "migration.left_behind",
                behind,
                f"the controllers ({', '.join(_names(final))}) do not read ZooKeeper any more, where this broker"
                " has its metadata",
                "restart nothing; if this broker has left ZooKeeper before, bring back its configuration of then (a"
                " generation in its conf/generations with process.roles), and start it",
            )
        )
    elif in_kraft and outside:
        refusals.append(
            _problem(
                "migration.left_behind",
                outside,
                f"it has its metadata in ZooKeeper alone, and {', '.join(_names(in_kraft))} in KRaft",
                "bring back its former configuration (the generation before in its conf/generations), and start it",
            )
        )
    had = [each for each in situation.controllers if each.state == DUAL_WRITE]
    if behind and znodes is None:
        refusals.append(
            _problem(
                "migration.no_zookeeper",
                behind,
                "its metadata are in ZooKeeper, which does not answer",
                "start it with playbooks/start.yml",
            )
        )
    elif behind and had and not final and znodes is not None and not znodes.held:
        refusals.append(
            _problem(
                "migration.half_back",
                had,
                "it has the metadata, and in ZooKeeper no controller of KRaft is registered: somebody has begun to go"
                " back, and what it has may be out of date",
                f"go back to the end with {_BACK}, then begin anew",
            )
        )
    bare = _bare(situation)
    entered = [each for each in behind if each.phase == MIGRATING]
    held = znodes is not None and znodes.held
    if entered and 2 * len(bare) > len(situation.controllers) and not (held or in_kraft or final):
        refusals.append(
            _problem(
                "migration.half_back",
                entered,
                "it knows controllers that are deleted, and would take no answer of new ones, which begin at a lower"
                " epoch: somebody has begun to go back",
                f"go back to the end with {_BACK}, then begin anew",
            )
        )
    elif bare and (held or in_kraft or final):
        refusals.append(_lost(situation, bare))
    if refusals:
        return MigrationPlan(refusals=tuple(refusals))
    down = [each for each in situation.controllers if not each.running]
    # Where the migration has ended nobody gets its ZooKeeper back.
    ended = [each for each in down if each.phase in ("", IN_KRAFT) and each.state == FINAL]
    down = [each for each in down if each not in ended]
    enter = [each for each in behind if each.phase != MIGRATING or not each.running]
    steps = [Step(CONTROLLERS, _names(down))] if down else []
    steps += [Step(ENTER, _names(enter))] if enter else []
    kraft = [each for each in situation.brokers if each.phase != IN_KRAFT or not each.running]
    if behind:
        steps.append(Step(AWAIT, ()))
    if kraft:
        steps.append(Step(KRAFT, _names(kraft)))
    if ended:
        steps.append(Step(END, _names(ended)))
    return MigrationPlan(tuple(steps), after=tuple(_left(situation, FORWARD)))


def _left(situation: Situation, done: str) -> List[str]:
    """What people do next when a run has ended well."""
    lines: List[str] = []
    final = done == FINISH or (
        len(_final(situation)) == len(situation.controllers)
        and all(each.state == FINAL for each in situation.controllers)
    )
    gone = _final(situation)
    if done == FORWARD and gone and not final:
        lines = [
            f"All brokers are in KRaft. The last step has begun, and there is no way back: {', '.join(_names(gone))}"
            " without ZooKeeper.",
            f"  To end it: {_FORWARD} -e migrate=finish",
        ]
    elif done == FORWARD and not final:
        lines = [
            "All brokers are in KRaft, and the controllers write to ZooKeeper still. It may stay so for some days.",
            f"  To end it, with no way back: {_FORWARD} -e migrate=finish",
            f"  To go back: {_BACK}",
        ]
    elif done != REMOVE and situation.servers:
        lines = [
            "The cluster has its metadata in KRaft alone. ZooKeeper serves nobody any more.",
            f"  To stop it and remove its services: {_FORWARD} -e migrate=remove_zookeeper"
            f" -e confirm={situation.cluster}",
        ]
    else:
        lines = [
            "Take the hosts of ZooKeeper out of the inventory (its group); then all playbooks work as in KRaft mode."
        ]
    return lines


def _finish(situation: Situation) -> MigrationPlan:
    not_there = [each for each in situation.brokers if each.phase != IN_KRAFT or not each.running]
    odd = [
        each
        for each in situation.controllers
        if not (each.phase == MIGRATING and each.state == DUAL_WRITE)
        and each not in _final(situation)
    ]
    bare = _bare(situation)
    if bare and not not_there:
        return MigrationPlan(refusals=(_lost(situation, bare),))
    if not_there or odd:
        reason = (
            "it does not run as a broker of the controllers"
            if not_there
            else "it does not have the metadata"
        )
        return MigrationPlan(
            refusals=(
                _problem(
                    "migration.not_ready",
                    not_there or odd,
                    f"{reason}, and after the last step it never could",
                    f"run {_FORWARD} without -e migrate first",
                ),
            )
        )
    hosts = [
        each
        for each in situation.controllers
        if each.phase != IN_KRAFT or not each.running or each.state != FINAL
    ]
    steps = (Step(END, _names(hosts)),) if hosts else ()
    return MigrationPlan(steps, after=tuple(_left(situation, FINISH)))


def _remove(situation: Situation) -> MigrationPlan:
    needing = [each for each in situation.nodes if each.phase != IN_KRAFT]
    needing += [
        each for each in situation.controllers if each.state != FINAL and each not in needing
    ]
    if needing:
        return MigrationPlan(
            refusals=(
                _problem(
                    "migration.not_ready",
                    needing,
                    "it still has to do with ZooKeeper",
                    f"run {_FORWARD} -e migrate=finish first",
                ),
            )
        )
    told = _kept(situation) if situation.servers else None
    if told:
        return MigrationPlan(refusals=(told,))
    steps = (Step(SERVERS, situation.servers),) if situation.servers else ()
    return MigrationPlan(steps, after=tuple(_left(situation, REMOVE)))


def _kept(situation: Situation) -> Optional[Problem]:
    """Why the servers of ZooKeeper have to stay, None if they may go."""
    check, names = "migration.others", situation.servers
    leave = "leave it to them, and take its hosts out of the inventory without this step"
    if situation.outside:
        check, names = "migration.limited", situation.outside
        reason = "this run is without it, and its server would run on, which nobody knows then"
        remedy = "run it without --limit"
    elif situation.others is None and situation.quorate:
        reason = "it did not tell who else is at work with it, and enough of its servers run to serve them"
        remedy = f"see why it does not answer where kafka_admin_host is; or {leave}"
    elif situation.others:
        reason = f"others are at work with it, and would go with it: {', '.join(situation.others)}"
        remedy = f"{leave}; or stop what uses it"
    else:
        return None
    return Problem(check, reason, remedy, names, "migrate", REMOVE)


def _back(situation: Situation) -> MigrationPlan:
    in_kraft = [each for each in situation.brokers if each.phase == IN_KRAFT]
    missing = awaited(situation, most=True) if in_kraft else []
    refusals: List[Problem] = []
    if _final(situation):
        refusals.append(
            _problem(
                "migration.no_way_back",
                _final(situation),
                "it has left ZooKeeper for good",
                f"go on with {_FORWARD} -e migrate=finish",
            )
        )
    elif situation.znodes is None:
        refusals.append(
            _problem(
                "migration.no_zookeeper",
                situation.brokers,
                "its metadata are in ZooKeeper, which does not answer",
                "start it with playbooks/start.yml",
            )
        )
    elif missing:
        refusals.append(
            _problem(
                "migration.not_ready",
                in_kraft,
                f"it has its metadata in KRaft, and could not find them in ZooKeeper: {'; '.join(missing)}",
                f"start the controllers with playbooks/start.yml, then run {_BACK} again",
            )
        )
    elif not any(each.running for each in situation.controllers):
        # Those that run are waited for.
        refusals += _lacking(situation)
    if refusals:
        return MigrationPlan(refusals=tuple(refusals))
    znodes = situation.znodes or Znodes()
    # a deletion that was cut off may have left the metadata without a configuration
    there = [each for each in situation.controllers if each.phase or each.state]
    leaving = [
        each
        for each in situation.brokers
        if each.phase in (MIGRATING, IN_KRAFT) or not each.running
    ]
    steps = [Step(RETURN, _names(in_kraft))] if in_kraft else []
    steps += [Step(LEAVE_CONTROLLERS, _names(there))] if there else []
    steps += [Step(RELEASE, ())] if znodes.held or znodes.migration else []
    steps += [Step(LEAVE, _names(leaving))] if leaving else []
    return MigrationPlan(
        tuple(steps),
        after=(
            "Set kafka_metadata: zookeeper, and take the controllers out of the inventory (their group).",
        ),
    )


# ---------------------------------------------------------------- from and to plain data


def znodes_of(data: Optional[Mapping[str, Any]]) -> Optional[Znodes]:
    """What the module kafka_migration returns of ZooKeeper; None where it did not answer."""
    if not data:
        return None
    controller = data.get("controller")
    return Znodes(
        None if controller is None else int(controller),
        int(data.get("epoch", -1)),
        int(data.get("offset", -1)),
        bool(data.get("migration")),
    )


def situation_of(data: Mapping[str, Any]) -> Situation:
    """A situation of plain data: cluster, nodes as dicts of the fields of Node, and the other fields of Situation."""
    nodes = tuple(
        Node(
            str(each["host"]),
            int(each["id"]),
            bool(each["is_broker"]),
            str(each.get("phase") or ""),
            bool(each.get("running")),
            str(each.get("state") or ""),
            bool(each.get("formatted", True)),
            int(each.get("last", -1)),
        )
        for each in data["nodes"]
    )
    others = data.get("others", ())
    return Situation(
        str(data["cluster"]),
        nodes,
        znodes_of(data.get("znodes")),
        tuple(str(each) for each in data.get("servers") or ()),
        None if others is None else tuple(str(each) for each in others),
        tuple(str(each) for each in data.get("outside") or ()),
        bool(data.get("quorate")),
    )


def to_dict(planned: MigrationPlan) -> Dict[str, Any]:
    """As later plays take it: {steps: name -> hosts, lines, refused, after}."""
    return {
        "steps": {each.name: list(each.hosts) for each in planned.steps},
        "lines": lines_of(planned.steps),
        "refused": [each.line() for each in planned.refusals],
        "after": list(planned.after),
    }


def phases_told(nodes: Sequence[Node]) -> List[str]:
    """What a table of the status says of a cluster that is under way; nothing of one that is not."""
    brokers = [each for each in nodes if each.is_broker]
    controllers = [each for each in nodes if not each.is_broker]
    if not any(each.phase == MIGRATING for each in nodes):
        return []
    told = []
    for phase, words in (
        (IN_ZOOKEEPER, "still in ZooKeeper"),
        (MIGRATING, "in ZooKeeper and known to the controllers"),
        (IN_KRAFT, "in KRaft"),
    ):
        names = [each.host for each in brokers if each.phase == phase]
        told += [f"{', '.join(names)} {words}"] if names else []
    ended = [each.host for each in controllers if each.phase == IN_KRAFT]
    told += [f"controllers {', '.join(ended)} without ZooKeeper"] if ended else []
    return [
        f"Migration to KRaft under way: {'; '.join(told)}.",
        f"  Go on with {_FORWARD}; docs/migration.md says until when {_BACK} goes back.",
    ]
