# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run on the replicas of a cluster will do: moves, what is under way, throttles that are left. Pure.

Private to this collection. `plan_replicas` decides which partition goes where; this is the Plan that people see, and
its refusals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    FrozenSet,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.health import (
    isolated,
    without_joining,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Directory,
    Key,
    Place,
    Snapshot,
    UnderWay,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_replicas import (
    Running,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import (
    CANCEL,
    EXAMPLES,
    FEWER_REPLICAS,
    FINISH,
    MOVE,
    RACKS_IGNORED,
    REORDER,
    UNTHROTTLE,
    Layout,
    Move,
    Moves,
    Wish,
    rights_problem,
    some_keys,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.plan_replicas import (
    plan_moves,
    racks_of_some,
    useful,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.room import (
    unknown_room,
    without_room,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.throttles import (
    Throttles,
    foreign_warning,
    of_moves,
    of_others,
    removals,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import out_of_range
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_size
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted, some


@dataclass(frozen=True)
class Found:
    """What was read: the cluster, what is under way, sizes in bytes, and throttles."""

    snapshot: Snapshot
    racks: Mapping[int, Optional[str]] = field(default_factory=dict)
    running: Mapping[Key, Running] = field(default_factory=dict)
    sizes: Mapping[Key, int] = field(default_factory=dict)
    throttles: Throttles = Throttles()
    minimums: Mapping[str, int] = field(default_factory=dict)
    # What this very user may do with the cluster, by the protocol's names; none where that is not told.
    rights: FrozenSet[str] = frozenset()
    # Whether the cluster is in KRaft mode; None where that is not known.
    kraft: Optional[bool] = None
    # Broker to its log directories; one that has not told them is missing.
    directories: Mapping[int, Sequence[Directory]] = field(default_factory=dict)
    # What moves between the directories of a broker, by whomever.
    within: Mapping[Place, UnderWay] = field(default_factory=dict)

    def coming(self, moves: Moves) -> Dict[int, Dict[Key, int]]:
        """Broker to the replicas that it gets, by these moves and by what is under way, and the bytes left of each."""
        there: Dict[Tuple[int, Key], int] = {
            (broker, key): size
            for broker, directories in self.directories.items()
            for each in directories
            for key, size in each.replicas.items()
        }
        coming: Dict[int, Dict[Key, int]] = {}
        for key, running in self.running.items():
            for broker in running.adding:
                left = max(0, self.sizes.get(key, 0) - there.get((broker, key), 0))
                coming.setdefault(broker, {})[key] = left
        for move in moves.moves:
            for broker in move.adding:
                coming.setdefault(broker, {})[move.key] = move.size or 0
        return coming

    @property
    def dead(self) -> FrozenSet[int]:
        """Brokers that hold replicas, or are to get one, and are not alive."""
        parts = self.snapshot.partitions.values()
        holders = {broker for part in parts for broker in part.replicas}
        return frozenset(holders - {broker.id for broker in self.snapshot.brokers})

    @property
    def isolated(self) -> FrozenSet[int]:
        """Live brokers that are in sync with nobody, whatever is being added to them."""
        joining = {key: each.adding for key, each in self.running.items()}
        return frozenset(isolated(without_joining(self.snapshot, joining)))

    @property
    def taken(self) -> Throttles:
        """Somebody else's throttles that go with what is under way, which a run finishes or cancels."""
        return of_moves(self.throttles, {key: each.replicas for key, each in self.running.items()})

    def layout(self, settled: Callable[[Running], Tuple[int, ...]]) -> Layout:
        """The layout once what is under way has been settled, by Running.target or Running.origin."""
        replicas, in_sync = {}, {}
        for key, part in self.snapshot.partitions.items():
            running = self.running.get(key)
            replicas[key] = settled(running) if running else part.replicas
            in_sync[key] = part.isr
        alive = tuple(sorted(broker.id for broker in self.snapshot.brokers))
        return Layout(replicas, alive, self.racks, self.sizes, in_sync)


def wish_from(params: Mapping[str, Any]) -> Wish:
    """The Wish of a module's parameters; AdminError if nothing is asked for."""
    onto = frozenset(params["onto"] or ())
    drain = frozenset(params["drain"] or ())
    factor = params["replication_factor"]
    # Brokers to be filled and nothing else: that is a spread.
    spread = params["spread"] or bool(onto and not drain and factor is None)
    if not (drain or spread or factor is not None):
        raise AdminError(
            Problem(
                "reassignment.nothing_asked",
                "nothing is asked for",
                "give drain, spread, onto, replication_factor or disks, or state: cancelled",
            )
        )
    if factor is not None and factor < 1:
        raise out_of_range(
            "replication_factor", factor, "must be at least 1", "choose a number of replicas"
        )
    topics = None if params["topics"] is None else frozenset(params["topics"])
    return Wish(drain, spread, onto, factor, topics)


def plan_reassignment(
    found: Found, wish: Wish, allow: Collection[str] = (), throttled: bool = False
) -> Tuple[Plan, Moves]:
    """What to do, and the moves in it, as far as `allow` consents; `throttled`: under a throttle. Pure."""
    before, after = found.layout(_origin), found.layout(_target)
    moves = plan_moves(after, wish)
    refusals = list(moves.refusals)
    unknown = sorted((wish.topics or frozenset()) - set(found.snapshot.topics))
    if unknown:
        refusals.append(
            Problem(
                "reassignment.unknown_topic",
                "there is no such topic",
                "name topics of this cluster",
                tuple(unknown),
                "topics",
            )
        )
    if found.running and not refusals and not useful(before, after, wish):
        refusals.append(
            Problem(
                "reassignment.running",
                f"a reassignment is under way that goes elsewhere: {some_keys(sorted(found.running))}",
                "wait until it is over, or end it with playbooks/scale_out.yml -e cancel=true, which is"
                " kafka_reassignment with state: cancelled",
            )
        )
    refusals += _unable(found, moves)
    coming = found.coming(moves) if moves.moves else {}
    hosts = {broker.id: broker.host for broker in found.snapshot.brokers}
    refusals += without_room(coming, found.directories, hosts, found.within)
    if FEWER_REPLICAS not in allow:
        refusals += _fewer(moves)
    if RACKS_IGNORED not in allow and moves.copies:
        refusals += _racks(racks_of_some(after, wish))
    warnings = [*moves.warnings, *_foreign(found), *unknown_room(coming, found.directories)]
    changes = [
        Change(
            FINISH,
            subject_of(key),
            {"replicas": list(running.origin)},
            {"replicas": list(running.target)},
            "under way already",
        )
        for key, running in sorted(found.running.items())
    ]
    for move in moves.moves:
        note = ""
        if move.adding:
            size = "an unknown size" if move.size is None else approximate_size(move.bytes)
            note = f"{size} to broker {', '.join(map(str, move.adding))}"
        if fewer(move):
            lost = f"{len(move.after)} of {len(move.before)} replicas stay"
            note = f"{lost}; {note}" if note else lost
        changes.append(
            Change(
                kind_of(move),
                subject_of(move.key),
                {"replicas": list(move.before)},
                {"replicas": list(move.after)},
                note,
            )
        )
    if not changes:
        changes += unthrottled(found)
    if changes:
        copies = bool(found.running) or any(move.adding for move in moves.moves)
        refusals += rights_problem(found.rights, throttled and copies)
    return Plan(tuple(changes), tuple(refusals), tuple(warnings)), moves


def plan_cancelling(found: Found) -> Plan:
    """The way back for everything that is under way. Pure."""
    changes = [
        Change(
            CANCEL,
            subject_of(key),
            {"replicas": list(running.target)},
            {"replicas": list(running.origin)},
        )
        for key, running in sorted(found.running.items())
    ]
    changes += unthrottled(found)
    refusals = rights_problem(found.rights, False) if changes else []
    return Plan(tuple(changes), tuple(refusals), tuple(_foreign(found)))


def _origin(running: Running) -> Tuple[int, ...]:
    return running.origin


def _target(running: Running) -> Tuple[int, ...]:
    return running.target


def subject_of(key: Key) -> str:
    """The partition in a plan: topic-number."""
    return f"{key[0]}-{key[1]}"


def kind_of(move: Move) -> str:
    """The kind of change that a move is."""
    return MOVE if move.adding or move.removing else REORDER


def _unable(found: Found, moves: Moves) -> List[Problem]:
    """Moves that could not end, or after which nobody could write."""
    problems = []
    led = found.snapshot.led
    dark = [move.key for move in moves.moves if move.adding and move.key not in led]
    if dark:
        problems.append(
            Problem(
                "reassignment.offline",
                f"without a leader nothing can be copied: {some_keys(dark)}",
                "bring the brokers with the last in-sync replicas back, see playbooks/status.yml",
            )
        )
    sick = found.isolated & {broker for move in moves.moves for broker in move.adding}
    if sick:
        waiting = [move.key for move in moves.moves if not sick.isdisjoint(move.adding)]
        problems.append(
            Problem(
                "reassignment.isolated",
                f"{counted(len(waiting), 'partition')} would move to it, and of the replicas that it has none is in"
                f" sync with others, so it may copy nothing: {some_keys(waiting)}",
                "see playbooks/status.yml: if it is catching up, wait; else correct its password, certificate or"
                " listener and run playbooks/rolling_restart.yml; or name other brokers (kafka_reassignment with onto)",
                (f"broker {', '.join(map(str, sorted(sick)))}",),
            )
        )
    if not found.kraft:
        problems += _beside_the_dead(found.dead, moves)
    low: Dict[str, int] = {}
    for move in moves.moves:
        minimum = found.minimums.get(move.key[0], 1)
        if len(move.after) < len(move.before) and minimum > 1 and len(move.after) <= minimum:
            low[move.key[0]] = minimum
    if low:
        told = ", ".join(f"{topic} ({minimum})" for topic, minimum in sorted(low.items())[:5])
        problems.append(
            Problem(
                "reassignment.below_min_isr",
                f"not above min.insync.replicas, so each restart of a broker would stop writes: {told}",
                "lower min.insync.replicas of these topics first (kafka_topics), or keep more replicas",
                (),
                "replication_factor",
                str(min(len(move.after) for move in moves.moves if move.key[0] in low)),
            )
        )
    return problems


def _beside_the_dead(dead: Collection[int], moves: Moves) -> List[Problem]:
    """Moves that wait for a broker that is not alive: with ZooKeeper all replicas have to be in sync at the end.

    In KRaft mode only those that are added have to be.
    """
    waiting = {
        move.key: set(move.after) & set(dead)
        for move in moves.moves
        if (move.adding or move.removing) and not set(dead).isdisjoint(move.after)
    }
    if not waiting:
        return []
    brokers = sorted(set().union(*waiting.values()))
    if len(brokers) == 1:
        away = f"playbooks/scale_in.yml -e broker={brokers[0]}"
    else:
        away = f"all of them at once, kafka_reassignment with drain: {brokers}"
    return [
        Problem(
            "reassignment.dead_replica",
            f"{counted(len(waiting), 'partition')} would move and keep a replica on it, and it is not alive: no such "
            f"move ends before it is back: {some_keys(sorted(waiting))}",
            f"start it, see playbooks/status.yml; if it is gone for good, empty it first ({away})",
            (f"broker {', '.join(map(str, brokers))}",),
        )
    ]


def _racks(without: Sequence[int]) -> List[Problem]:
    """The refusal of copies that racks have no say in; `without`: the brokers that have none although others have."""
    if not without:
        return []
    return [
        Problem(
            "reassignment.racks",
            "it has no rack although others do, so that all copies of a record might get into one rack",
            "give each broker a rack (kafka_rack, and playbooks/rolling_restart.yml), or consent with"
            f' allow: [{RACKS_IGNORED}] (playbooks: -e \'{{"kafkaops_preflight_accept": ["racks.some"]}}\')',
            (f"broker {', '.join(map(str, without))}",),
        )
    ]


def fewer(move: Move) -> bool:
    """Whether a partition has fewer replicas after a move."""
    return len(move.after) < len(move.before)


def _fewer(moves: Moves) -> List[Problem]:
    """The refusal of copies that go for good, with what is on them."""
    losing = [move for move in moves.moves if fewer(move)]
    if not losing:
        return []
    topics: Dict[str, Tuple[int, int]] = {}
    for move in losing:
        before, after = topics.get(move.key[0], (0, len(move.after)))
        topics[move.key[0]] = (max(before, len(move.before)), min(after, len(move.after)))
    told = some(
        [f"{name} ({was} to {now})" for name, (was, now) in sorted(topics.items())], EXAMPLES
    )
    known = all(move.size is not None for move in losing)
    held = approximate_size(sum(move.size or 0 for move in losing))
    size = f"{held} in all" if known else "of unknown size"
    least = min(now for _was, now in topics.values())
    return [
        Problem(
            "reassignment.fewer_replicas",
            f"{counted(len(losing), 'partition')}, {size}, would have fewer copies: {told}; a record is "
            f"lost once {'the broker that has it is' if least == 1 else f'{least} brokers are'} lost",
            f"consent with allow: [{FEWER_REPLICAS}], or keep as many replicas",
            (),
            "replication_factor",
            str(least),
        )
    ]


def unthrottled(found: Found) -> List[Change]:
    """The throttles to be removed: ours, of moves that are over."""
    throttles = found.throttles
    brokers, topics = removals(throttles, found.taken)
    changes = []
    for broker, keys in sorted(brokers.items()):
        was = {key: throttles.brokers[broker][key] for key in keys}
        changes.append(Change(UNTHROTTLE, f"broker {broker}", was, dict(keys)))
    for topic, keys in sorted(topics.items()):
        was = {key: throttles.topics[topic][key] for key in keys}
        changes.append(Change(UNTHROTTLE, f"topic {topic}", was, dict(keys)))
    return changes


def _foreign(found: Found) -> List[str]:
    return foreign_warning(of_others(found.throttles, found.taken))
