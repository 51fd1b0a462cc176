# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where replicas are, as a Resource: what the runner needs to know to move them, or to stop moving.

Private to this collection. The glue between `plan_replicas`, which decides, and `client_replicas`, which
does. All that a run knows is read from the cluster, so a killed one is gone on with by the next:
what is under way is waited for, what is missing is started, throttles that are left are removed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import (
    Any,
    Callable,
    Deque,
    Dict,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    Partition,
    Snapshot,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_replicas import (
    MovesClient,
    Running,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import (
    Layout,
    Move,
    Moves,
    Wish,
    some_keys,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.moving import (
    CANCEL,
    FINISH,
    MOVE,
    SETTLE_SECONDS,
    TELL_SECONDS,
    UNTHROTTLE,
    Moving,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.plan_replicas import (
    plan_moves,
    useful,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.throttles import (
    Throttles,
    foreign_warning,
    of_moves,
    of_others,
    removals,
    throttled_lists,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.throttling import (
    Throttling,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    CHANGED,
    AdminError,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import out_of_range
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    UNLIMITED,
    approximate_size,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

# A kind of change that copies nothing: it changes who is preferred as leader.
REORDER = "reorder"
# How long a topic that is asked for by name may be unknown; far less than SETTLE_SECONDS, since a name
# may be wrong.
KNOWN_SECONDS = 5.0
# Reorderings in one request; they are done at once.
REORDERINGS = 500


@dataclass(frozen=True)
class Found:
    """What was read: the cluster, what is under way, sizes in bytes, and throttles."""

    snapshot: Snapshot
    racks: Mapping[int, Optional[str]] = field(default_factory=dict)
    running: Mapping[Key, Running] = field(default_factory=dict)
    sizes: Mapping[Key, int] = field(default_factory=dict)
    throttles: Throttles = Throttles()
    minimums: Mapping[str, int] = field(default_factory=dict)

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


def plan_reassignment(found: Found, wish: Wish) -> Tuple[Plan, Moves]:
    """What to do, and the moves in it. Pure."""
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
    warnings = [*moves.warnings, *_foreign(found)]
    changes = [
        Change(
            FINISH,
            _name(key),
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
        changes.append(
            Change(
                _kind(move),
                _name(move.key),
                {"replicas": list(move.before)},
                {"replicas": list(move.after)},
                note,
            )
        )
    if not changes:
        changes += _unthrottling(found)
    return Plan(tuple(changes), tuple(refusals), tuple(warnings)), moves


def plan_cancelling(found: Found) -> Plan:
    """The way back for everything that is under way. Pure."""
    changes = [
        Change(
            CANCEL,
            _name(key),
            {"replicas": list(running.target)},
            {"replicas": list(running.origin)},
        )
        for key, running in sorted(found.running.items())
    ]
    return Plan(tuple(changes) + tuple(_unthrottling(found)), (), tuple(_foreign(found)))


def _origin(running: Running) -> Tuple[int, ...]:
    return running.origin


def _target(running: Running) -> Tuple[int, ...]:
    return running.target


def _name(key: Key) -> str:
    return f"{key[0]}-{key[1]}"


def _kind(move: Move) -> str:
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


def _unthrottling(found: Found) -> List[Change]:
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


def _given_up(move: Move, where: str) -> Failure:
    """The failure of a move that would undo somebody else's."""
    words = f"it {where} and was on {list(move.before)}"
    words = f"somebody else has changed its replicas: {words}; run the task again to plan anew"
    return Failure(_name(move.key), words, _kind(move), CHANGED)


@dataclass(frozen=True)
class _End:
    """Where a partition must be at the end, and the kind of change that says so."""

    key: Key
    replicas: Tuple[int, ...]
    kind: str


class Reassignment(Moving):
    """The replicas of one cluster, for one task. `tell` gets a line now and then."""

    ONE, SEVERAL = "reassignment", "reassignments"
    LIMIT, WHERE = "throttle", "from and to each broker"
    client: MovesClient

    def prepare(self, params: Mapping[str, Any]) -> None:
        """What is asked for."""
        self.wish = Wish() if self.cancelling else wish_from(params)
        self.moves = Moves()
        self._found = Found(Snapshot())
        self._throttling = Throttling(self.client, self._begun_since, self._clock, self._sleep)
        # Reassignments that were over, or others, when they were to be cancelled.
        self._over: Set[Key] = set()

    # ------------------------------------------------------------ the runner's questions

    def read(self) -> Found:
        """The cluster as it is; a number of requests that depends on brokers, not on topics."""
        running = self.client.fetch_running()
        snapshot = self._fetch_snapshot()
        names = sorted(snapshot.topics)
        alive = [broker.id for broker in snapshot.brokers]
        sizes: Dict[Key, int] = {}
        minimums: Dict[str, int] = {}
        if not self.cancelling:
            for (_broker, key), size in self.client.fetch_replica_sizes(names).items():
                sizes[key] = max(size, sizes.get(key, 0))
            if self.wish.replication_factor is not None:
                chosen = [n for n in names if self.wish.topics is None or n in self.wish.topics]
                for name, entries in self.client.fetch_configs(chosen).items():
                    value = entries["min.insync.replicas"].value
                    minimums[name] = int(value) if value else 1
        return Found(
            snapshot,
            self.client.fetch_racks(),
            running,
            sizes,
            self.client.fetch_throttles(alive, names),
            minimums,
        )

    def _fetch_snapshot(self) -> Snapshot:
        """Brokers and topics; the topics asked for are waited for a little.

        Brokers learn of a new topic one after another, and any of them may be asked.
        """
        snapshot = Snapshot()

        def known() -> bool:
            nonlocal snapshot
            snapshot = self.client.fetch_metadata()
            return (self.wish.topics or frozenset()) <= set(snapshot.topics)

        wait_until(known, KNOWN_SECONDS, self._clock, self._sleep, self.POLL_SECONDS)
        return snapshot

    def plan(self, snapshot: Found) -> Plan:
        """The Plan; the cluster is not asked again."""
        self._found = snapshot
        self._throttling.taken = snapshot.taken
        if self.cancelling:
            return plan_cancelling(snapshot)
        plan, self.moves = plan_reassignment(snapshot, self.wish)
        return plan

    def name_of(self, key: Key) -> str:
        """The partition, for people."""
        return _name(key)

    def under_way(self, snapshot: Found) -> List[Key]:
        """The partitions whose reassignment is not over."""
        return sorted(snapshot.running)

    def planned(self) -> str:
        """What will move, for people."""
        return self.moves.summary()

    # ------------------------------------------------------------ doing it

    def carry_out(self, deadline: float) -> List[Failure]:
        """Copies in batches, then what is only reordered."""
        self._throttle_on()
        copies = [move for move in self.moves.moves if move.adding or move.removing]
        reorderings = [move for move in self.moves.moves if not (move.adding or move.removing)]
        waiting: Dict[Key, Optional[Move]] = dict.fromkeys(self._found.running)
        failures = self._move(deque(copies), waiting, self.batch, deadline)
        # Reordered by now or refused: a few hundred at once cost nothing.
        if not any(failure.code == "timeout" for failure in failures):
            failures += self._move(deque(reorderings), {}, REORDERINGS, deadline)
        return failures

    def _move(
        self,
        pending: Deque[Move],
        waiting: Dict[Key, Optional[Move]],
        batch: int,
        deadline: float,
    ) -> List[Failure]:
        """Keep up to `batch` partitions moving until all are done; `waiting` are under way already."""
        failures: List[Failure] = []
        total = len(pending) + len(waiting)
        progress = Progress(self._tell, self._clock, TELL_SECONDS)
        while pending or waiting:
            running = self.client.fetch_running()
            for key in [key for key in waiting if key not in running]:
                del waiting[key]
            room = max(0, batch - len(waiting))
            chosen = []
            for move in [pending.popleft() for each in range(min(room, len(pending)))]:
                theirs = running.get(move.key)
                if theirs is None:
                    chosen.append(move)
                elif move.key in self._found.running or theirs.target == move.after:
                    # It was planned for, or is the same: what is left then comes after it.
                    pending.append(move)
                else:
                    failures.append(_given_up(move, f"moves to {list(theirs.target)}"))
            chosen, others = self._as_planned(chosen) if chosen else (chosen, [])
            failures += others
            if chosen:
                refused = self.client.alter({move.key: move.after for move in chosen})
                for move in chosen:
                    if move.key in refused:
                        failures.append(
                            Failure(_name(move.key), refused[move.key], _kind(move), "refused")
                        )
                    else:
                        waiting[move.key] = move
            if not (pending or waiting):
                break
            if self._clock() >= deadline:
                started = [(key, MOVE if waiting[key] else FINISH) for key in sorted(waiting)]
                return failures + self.late(started, [(each.key, _kind(each)) for each in pending])
            done = total - len(pending) - len(waiting)
            progress.tell(partial(self._line, done, total, pending, running))
            # What is done at once need not be waited for; the first look comes soon.
            self._sleep(self.POLL_SECONDS)
        return failures

    def _as_planned(self, moves: Sequence[Move]) -> Tuple[List[Move], List[Failure]]:
        """(moves of partitions that are where they were, what became of the others).

        Not even Kafka compares before it moves: replicas that somebody else has added or moved since the plan
        would go back. A broker that has not heard of an earlier move yet is waited for a little.
        """
        now: Dict[Key, Partition] = {}

        def is_as_planned(move: Move) -> bool:
            # Of a topic that is gone the controller says so.
            return move.key not in now or now[move.key].replicas == move.before

        def seen() -> bool:
            nonlocal now
            now = self.client.fetch_metadata().partitions
            return all(map(is_as_planned, moves))

        wait_until(seen, KNOWN_SECONDS, self._clock, self._sleep, self.POLL_SECONDS)
        others = [
            (
                _given_up(move, f"is on {list(now[move.key].replicas)}")
                if now[move.key].replicas != move.after
                else Failure(_name(move.key), "somebody else has moved it", _kind(move), moot=True)
            )
            for move in moves
            if not is_as_planned(move)
        ]
        return [move for move in moves if is_as_planned(move)], others

    def _line(
        self,
        done: int,
        total: int,
        pending: Sequence[Move],
        running: Mapping[Key, Running],
    ) -> str:
        """How far it is: partitions, and bytes that are still to be copied."""
        on_disk = self.client.fetch_replica_sizes(sorted({key[0] for key in running}))
        left = sum(move.bytes for move in pending)
        for key, entry in running.items():
            size = self._found.sizes.get(key, 0)
            left += sum(max(0, size - on_disk.get((broker, key), 0)) for broker in entry.adding)
        line = f"{done} of {total} partitions moved, {approximate_size(left)} left"
        alive = {broker.id for broker in self.client.fetch_metadata().brokers}
        lost = sorted({broker for entry in running.values() for broker in entry.adding} - alive)
        if lost:
            line += f"; waiting for broker {', '.join(map(str, lost))}, which is not alive"
        return line

    def differences(self, failures: Sequence[Failure]) -> List[Failure]:
        """Moves that cannot be seen at the end; partitions go to their preferred leaders."""
        if self.cancelling:
            return self._not_back(failures) + self._left_throttled()
        known = {failure.subject for failure in failures}
        moves = [move for move in self.moves.moves if _name(move.key) not in known]
        ends = [_End(move.key, move.after, _kind(move)) for move in moves]
        further = {move.key for move in moves}
        ends += [
            _End(key, running.target, FINISH)
            for key, running in sorted(self._found.running.items())
            if key not in further
        ]
        if not ends:
            return []
        now: Dict[Key, Partition] = {}
        wrong: List[_End] = []

        def seen() -> bool:
            nonlocal now, wrong
            now = self.client.fetch_metadata().partitions
            wrong = [e for e in ends if e.key in now and now[e.key].replicas != e.replicas]
            return not wrong

        wait_until(seen, SETTLE_SECONDS, self._clock, self._sleep, self.POLL_SECONDS)
        wanted = [
            move.key
            for move in moves
            if move.key in now
            and now[move.key].leader != move.after[0]
            and move.after[0] in now[move.key].isr
        ]
        if wanted:
            # Kafka itself would do it within minutes: what is refused here is no failure.
            self.client.elect_leaders(wanted, self._clock() + SETTLE_SECONDS)
        # A topic that was deleted meanwhile has nothing to be moved.
        gone = [
            Failure(_name(end.key), "somebody else has deleted it", end.kind, CHANGED, moot=True)
            for end in ends
            if end.key not in now
        ]
        return gone + [
            Failure(
                _name(end.key),
                f"its replicas are {list(now[end.key].replicas)} and not {list(end.replicas)}: "
                "somebody else has changed them",
                end.kind,
                CHANGED,
            )
            for end in wrong
        ]

    def turn_back(self) -> Tuple[Mapping[Key, str], Set[Key]]:
        """Cancel the reassignments that were planned to be, as far as they are under way still.

        What somebody has begun since is not among them: nobody was told that it would be cancelled.
        """
        running, planned = self.client.fetch_running(), self._found.running
        own = {
            key
            for key, each in planned.items()
            if key in running and running[key].target == each.target
        }
        self._over = set(planned) - own
        refused = self.client.alter(dict.fromkeys(own)) if own else {}
        return refused, own - set(refused)

    def _not_back(self, failures: Sequence[Failure]) -> List[Failure]:
        """What ended before it could be cancelled. That nothing is under way is no failure."""
        known = {failure.subject for failure in failures}
        cancelled = {
            key: set(each.origin)
            for key, each in self._found.running.items()
            if key not in self._over and _name(key) not in known
        }
        now: Dict[Key, Partition] = {}

        def is_back(key: Key) -> bool:
            # Kafka puts those that stay before those that come back.
            return key in now and set(now[key].replicas) == cancelled[key]

        def seen() -> bool:
            nonlocal now
            now = self.client.fetch_metadata().partitions
            return all(map(is_back, cancelled))

        if cancelled:
            wait_until(seen, SETTLE_SECONDS, self._clock, self._sleep, self.POLL_SECONDS)
        over = self._over.union(key for key in cancelled if not is_back(key))
        return [
            Failure(_name(key), "it was over already", CANCEL, CHANGED, moot=True)
            for key in sorted(over)
        ]

    def _left_throttled(self) -> List[Failure]:
        """Throttles that were to be removed, and stay for the moves of somebody else."""
        words = (
            "it holds for what somebody else has begun to move meanwhile; run the task again once that is over, or"
            " to cancel that, too"
        )
        return [
            Failure(each.subject, words, UNTHROTTLE, CHANGED)
            for each in _unthrottling(self._found)
            if each.subject in self._throttling.left_to_others()
        ]

    def still_going_back(self, keys: Set[Key]) -> Set[Key]:
        """Those that the controller still tells of."""
        return keys & set(self.client.fetch_running())

    # ------------------------------------------------------------ throttles

    def _throttle_on(self) -> None:
        """Throttle what moves, before it moves. What a killed run has left is overwritten."""
        found = self._found
        concerned: Dict[Key, Tuple[Sequence[int], Sequence[int]]] = {
            key: (running.replicas, running.adding) for key, running in found.running.items()
        }
        for move in self.moves.moves:
            if move.adding:
                senders, receivers = concerned.get(move.key, ((), ()))
                concerned[move.key] = (
                    tuple(dict.fromkeys([*senders, *move.before])),
                    tuple(dict.fromkeys([*receivers, *move.adding])),
                )
        wanted = throttled_lists(concerned)
        if not wanted:
            return
        if self.rate == UNLIMITED:
            self.limits_off()
            return
        brokers = [broker.id for broker in found.snapshot.brokers]
        self._throttling.on(found.throttles, self.rate, brokers, wanted)

    def _begun_since(self) -> Set[str]:
        """The topics in which somebody else has begun to move something since the plan."""
        planned = self._found.running
        return {
            key[0]
            for key, each in self.client.fetch_running().items()
            if key not in planned or planned[key].target != each.target
        }

    def limits_off(self) -> None:
        """Remove every throttle of ours, and see that it is gone."""
        self._throttling.off(sorted(self._found.snapshot.topics))
