# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where replicas are, as a Resource: what the runner needs to know to move them, or to stop moving.

Private to this collection. The glue between `plan_reassignment`, which decides, and `client_replicas`, which
does. All that a run knows is read from the cluster, so a killed one is gone on with by the next:
what is under way is waited for, what is missing is started, throttles that are left are removed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Deque, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.log_dirs import Disks
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    Partition,
    Place,
    Snapshot,
    with_disks,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_replicas import (
    MovesClient,
    Running,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.copying import (
    Copying,
    joining,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import (
    CANCEL,
    EXAMPLES,
    FINISH,
    MOVE,
    UNTHROTTLE,
    Move,
    Moves,
    Wish,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.low_throttle import (
    GUESSED,
    MEASURE_SECONDS,
    low_throttle,
    needed,
    remedy,
    written_to,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.moving import (
    KNOWN_SECONDS,
    LEFT_UNDER_WAY,
    SETTLE_SECONDS,
    TELL_SECONDS,
    Moving,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.pace import (
    OUTPACED,
    Copy,
    Pace,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.plan_reassignment import (
    Found,
    kind_of,
    plan_cancelling,
    plan_reassignment,
    subject_of,
    unthrottled,
    wish_from,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.throttles import (
    of_others,
    throttled_lists,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.throttling import (
    Throttling,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    CHANGED,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    UNLIMITED,
    approximate_size,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some

# Reorderings in one request; they are done at once.
REORDERINGS = 500
# Whoever starts it needs the lock that this run has.
_START_IT = "stop this run, start the broker (playbooks/start.yml), and run the same again"
_LOOK_AT_IT = (
    "its log says why it cannot fetch from the others: their ports are closed to it, or they do not take its password"
    " or certificate"
)
_CANCELLED = "somebody else has cancelled what moved"


def _given_up(move: Move, where: str) -> Failure:
    """The failure of a move that would undo somebody else's."""
    words = f"it {where} and was on {list(move.before)}"
    words = f"somebody else has changed its replicas: {words}; run the task again to plan anew"
    return Failure(subject_of(move.key), words, kind_of(move), CHANGED)


def _leaders(snapshot: Snapshot) -> Dict[Key, Optional[int]]:
    return {key: part.leader for key, part in snapshot.partitions.items()}


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
        self._known_disks = params["known_disks"]
        self.wish = Wish() if self.cancelling else wish_from(params)
        self.moves = Moves()
        self._found = Found(Snapshot())
        self._throttling = Throttling(self.client, self._begun_since, self._clock, self._sleep)
        # Reassignments that were over, or others, when they were to be cancelled.
        self._ended: Set[Key] = set()
        # Of what has ended since the last batch: kind of the change, and the replicas if it has been cancelled.
        self._origins: Dict[Key, Tuple[str, Tuple[int, ...]]] = {}
        # The cluster as it was at the last look before a batch.
        self._seen = Snapshot()
        self._kraft: Optional[bool] = None
        # At the last look while it moves: bytes by (broker, partition), the live brokers, and who leads what.
        self._on_disk: Mapping[Place, int] = {}
        self._leaders: Mapping[Key, Optional[int]] = {}
        # When the sizes of the plan were read.
        self._read_at = 0.0
        self._alive: Set[int] = set()

    # ------------------------------------------------------------ the runner's questions

    def read(self) -> Found:
        """The cluster as it is; a number of requests that depends on brokers, not on topics."""
        running = self.client.fetch_running()
        snapshot = self._fetch_snapshot()
        names = sorted(snapshot.topics)
        alive = [broker.id for broker in snapshot.brokers]
        sizes: Dict[Key, int] = {}
        minimums: Dict[str, int] = {}
        disks = Disks()
        if not self.cancelling:
            disks = self.client.look_at_disks(alive, names)
            self._read_at = self._clock()
            for (_broker, key), size in disks.sizes.items():
                sizes[key] = max(size, sizes.get(key, 0))
            if self.wish.replication_factor is not None:
                chosen = [n for n in names if self.wish.topics is None or n in self.wish.topics]
                for name, entries in self.client.fetch_configs(chosen).items():
                    value = entries["min.insync.replicas"].value
                    minimums[name] = int(value) if value else 1
        found = Found(
            snapshot,
            self.client.fetch_racks(),
            running,
            sizes,
            self.client.fetch_throttles(alive, names),
            minimums,
            self.client.fetch_own_rights(),
            directories=with_disks(disks.directories, self._known_disks),
            within=disks.under_way,
        )
        return replace(found, kraft=self._in_kraft_mode(alive)) if found.dead else found

    def _in_kraft_mode(self, alive: Sequence[int]) -> Optional[bool]:
        """Whether the cluster is, None where its brokers do not tell; asked once, where it matters."""
        if self._kraft is None and alive:
            self._kraft = self.client.fetch_in_kraft_mode(alive[0])
        return self._kraft

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
        self._found, self._leaders = snapshot, _leaders(snapshot.snapshot)
        self._throttling.taken = snapshot.taken
        if self.cancelling:
            return plan_cancelling(snapshot)
        throttled = self.rate != UNLIMITED
        plan, self.moves = plan_reassignment(snapshot, self.wish, self.allow, throttled)
        if plan.refusals or not throttled:
            return plan
        return replace(plan, warnings=(*plan.warnings, *self._low_throttle()))

    def name_of(self, key: Key) -> str:
        """The partition, for people."""
        return subject_of(key)

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
        if not any(failure.code in LEFT_UNDER_WAY for failure in failures):
            failures += self._move(deque(reorderings), {}, REORDERINGS, deadline)
        return failures

    def _move(
        self,
        pending: Deque[Move],
        waiting: Dict[Key, Optional[Move]],
        batch: int,
        deadline: float,
    ) -> List[Failure]:
        """Keep up to `batch` partitions moving until all are done; `waiting` are under way already.

        What arrives moves the `deadline`: what is a lot takes long, and is not a failure.
        """
        failures: List[Failure] = []
        seconds = deadline - self._clock()
        copying, pace = Copying(self._clock(), self.rate), Pace(self.rate)
        total = len(pending) + len(waiting)
        progress = Progress(self._tell, self._clock, TELL_SECONDS)
        while pending or waiting:
            running = self.client.fetch_running()
            for key in [key for key in waiting if key not in running]:
                self._note_ended(key, waiting.pop(key))
                deadline = self._clock() + seconds
            stopped = self.stopped()
            looked = copying.is_due(self._clock())
            if looked:
                if self._look_at_copies(copying, pace, running):
                    deadline = self._clock() + seconds
                stopped = stopped or self._not_copied(copying, pace)
            room = 0 if stopped else max(0, batch - len(waiting))
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
            if chosen:
                chosen, others = self._as_planned(chosen)
                cancelled = self._cancelled()
                failures += others + cancelled
                # Who cancels what this run has begun, or takes its throttles away, does not want it to go on.
                stopped = _CANCELLED if cancelled else self._unthrottled(chosen) or self.stopped()
            if chosen and not stopped:
                refused = self.client.alter({move.key: move.after for move in chosen})
                for move in chosen:
                    if move.key in refused:
                        failures.append(
                            Failure(
                                subject_of(move.key), refused[move.key], kind_of(move), "refused"
                            )
                        )
                    else:
                        waiting[move.key] = move
                # An answer can take long, and whoever has cancelled meanwhile did not see these.
                stopped = self.stopped()
                chosen = [move for move in chosen if move.key in waiting] if stopped else chosen
                if stopped:
                    self.client.alter(dict.fromkeys(move.key for move in chosen))
                    waiting = {k: move for k, move in waiting.items() if move not in chosen}
            if stopped:
                if self._origins:
                    self._seen = self.client.fetch_metadata()
                    failures += self._cancelled()
                started = [(key, MOVE if waiting[key] else FINISH) for key in sorted(waiting)]
                rest = [(each.key, kind_of(each)) for each in [*chosen, *pending]]
                return failures + self.late(started, rest, stopped)
            if not (pending or waiting):
                break
            if self._clock() >= deadline:
                started = [(key, MOVE if waiting[key] else FINISH) for key in sorted(waiting)]
                return failures + self.late(
                    started, [(each.key, kind_of(each)) for each in pending]
                )
            done = total - len(pending) - len(waiting)
            if looked:
                progress.tell(partial(self._line, done, total, pending, running, pace))
            # What is done at once need not be waited for; the first look comes soon.
            self._sleep(self.POLL_SECONDS)
        return failures

    def _look_at_copies(self, copying: Copying, pace: Pace, running: Mapping[Key, Running]) -> bool:
        """Whether something was copied since the last look."""
        self._on_disk = self.client.fetch_replica_sizes(sorted({key[0] for key in running}))
        now, clock = self.client.fetch_metadata(), self._clock()
        self._alive = {broker.id for broker in now.brokers}
        self._leaders = _leaders(now)
        added = joining(now, running)
        moving = [(broker, key) for broker, keys in added.items() for key in keys]
        copies = {}
        for broker, key in moving:
            leader = self._leaders[key]
            if leader is not None and (leader, key) in self._on_disk:
                there, of = (self._on_disk.get((each, key), 0) for each in (broker, leader))
                copies[broker, key] = Copy(there, of, leader)
        pace.note(moving, copies, clock)
        return copying.note(self._on_disk, added, clock)

    def _not_copied(self, copying: Copying, pace: Pace) -> str:
        """Words about brokers that copy nothing, or less than is written, with the id of that; empty where all do."""
        now = self._clock()
        stalled, outpaced = copying.stalled(now), pace.outpaced(now)
        if not (stalled or outpaced):
            return ""
        keys = {broker: pace.keys(broker) for broker in outpaced} if not stalled else stalled
        leaders = {self._leaders.get(key) for waiting in keys.values() for key in waiting}
        before = self.client.fetch_replica_sizes(self._topics())
        needs = self._needed(now, before, MEASURE_SECONDS)
        need = max(
            (needs.get(broker, 0.0) for broker in {*keys, *leaders} if broker is not None),
            default=0.0,
        )
        if stalled and (self.rate == UNLIMITED or need < self.rate):
            return f"{copying.told(now)}; {_LOOK_AT_IT}"
        # Where nothing arrives at all, the throttle carries nothing but what goes to the replicas in sync.
        words = copying.told(now, OUTPACED) if stalled else pace.told(now)
        need = max([need, *(flow.written for flow in outpaced.values())])
        foreign = bool(of_others(self._found.throttles, self._throttling.taken).brokers)
        return f"{words}; {remedy(need, self.rate, foreign)}"

    def _low_throttle(self) -> List[str]:
        """A warning where records are written faster than the throttle carries them, or none.

        It takes its time only where the first guess, by what has been written since it was read, is not far below.
        """
        if not self._topics():
            return []
        at, before = self._read_at, Disks(self._found.directories).sizes
        needs = self._needed(at, before, 0.0)
        if max(needs.values(), default=0.0) >= self.rate * GUESSED:
            needs = self._needed(at, before, MEASURE_SECONDS)
        return low_throttle(needs, self.rate)

    def _needed(self, at: float, before: Mapping[Place, int], seconds: float) -> Dict[int, float]:
        """What the throttles have to carry, as records are written from `at`, with these sizes, for so many seconds."""
        self._sleep(max(0.0, at + seconds - self._clock()))
        after = self.client.fetch_replica_sizes(self._topics())
        moves = self._concerned()
        leaders = {key: self._leaders.get(key) for key in moves}
        return needed(written_to(before, after, self._clock() - at, leaders), leaders, moves)

    def _topics(self) -> List[str]:
        """The topics of which replicas are copied."""
        return sorted(
            {topic for (topic, _partition), sides in self._concerned().items() if sides[1]}
        )

    def _note_ended(self, key: Key, move: Optional[Move]) -> None:
        """Note where a partition that does not move any more was, if it can be told from where it was to go."""
        found = self._found.running.get(key)
        origin = move.before if move else found.origin if found else ()
        target = move.after if move else found.target if found else ()
        if set(origin) != set(target):
            self._origins[key] = (MOVE if move else FINISH, origin)

    def _cancelled(self) -> List[Failure]:
        """What somebody has cancelled, of what has ended since this was asked for the last time."""
        ended, self._origins = self._origins, {}

        def back() -> List[Key]:
            now = self._seen.partitions
            there = [key for key in sorted(ended) if key in now]
            return [key for key in there if set(now[key].replicas) == set(ended[key][1])]

        def arrived() -> bool:
            # What has arrived is told a little later by some brokers.
            self._seen = self.client.fetch_metadata()
            return not back()

        if back():
            wait_until(arrived, SETTLE_SECONDS, self._clock, self._sleep, self.POLL_SECONDS)
        return [Failure(subject_of(key), _CANCELLED, ended[key][0], CHANGED) for key in back()]

    def _unthrottled(self, moves: Sequence[Move]) -> str:
        """Words about throttles that somebody has taken away, of those that these moves need."""
        copies = {move.key: (move.before, move.adding) for move in moves if move.adding}
        if self.rate == UNLIMITED or not copies:
            return ""
        alive = [broker.id for broker in self._seen.brokers]
        gone = self._throttling.gone(alive, copies)
        return f"somebody else has taken the throttle away: {some(gone, EXAMPLES)}" if gone else ""

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
            self._seen = self.client.fetch_metadata()
            now = self._seen.partitions
            return all(map(is_as_planned, moves))

        wait_until(seen, KNOWN_SECONDS, self._clock, self._sleep, self.POLL_SECONDS)
        others = [
            (
                _given_up(move, f"is on {list(now[move.key].replicas)}")
                if now[move.key].replicas != move.after
                else Failure(
                    subject_of(move.key), "somebody else has moved it", kind_of(move), moot=True
                )
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
        pace: Pace,
    ) -> str:
        """How far it is: partitions, and bytes that are still to be copied."""
        left = sum(move.bytes for move in pending)
        for key, entry in running.items():
            leader = self._leaders.get(key)
            size = self._found.sizes.get(key, 0)
            if leader is not None:
                # Producers go on writing.
                size = self._on_disk.get((leader, key), size)
            left += sum(
                max(0, size - self._on_disk.get((broker, key), 0)) for broker in entry.adding
            )
        line = f"{done} of {total} partitions moved, {approximate_size(left)} left"
        line += pace.line(self._clock())
        alive = self._alive
        # With ZooKeeper, a move ends when all replicas are in sync; in KRaft mode, when those are that it adds.
        away = {broker for entry in running.values() for broker in entry.target} - alive
        if away and self._in_kraft_mode(sorted(alive)):
            away &= {broker for entry in running.values() for broker in entry.adding}
        lost = sorted(away)
        if lost:
            line += (
                f"; waiting for broker {', '.join(map(str, lost))}, which is not alive: {_START_IT}"
            )
        return line

    def differences(self, failures: Sequence[Failure]) -> List[Failure]:
        """Moves that cannot be seen at the end; partitions go to their preferred leaders."""
        if self.cancelling:
            return self._not_back(failures) + self._left_throttled()
        known = {failure.subject for failure in failures}
        moves = [move for move in self.moves.moves if subject_of(move.key) not in known]
        ends = [_End(move.key, move.after, kind_of(move)) for move in moves]
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
            # Kafka itself would do it within minutes: what is refused here is not a failure.
            self.client.elect_leaders(wanted, self._clock() + SETTLE_SECONDS)
        # A topic that was deleted meanwhile has nothing to be moved.
        gone = [
            Failure(
                subject_of(end.key), "somebody else has deleted it", end.kind, CHANGED, moot=True
            )
            for end in ends
            if end.key not in now
        ]
        return gone + [
            Failure(
                subject_of(end.key),
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
        self._ended = set(planned) - own
        refused = self.client.alter(dict.fromkeys(own)) if own else {}
        return refused, own - set(refused)

    def _not_back(self, failures: Sequence[Failure]) -> List[Failure]:
        """What ended before it could be cancelled. That nothing is under way is not a failure."""
        known = {failure.subject for failure in failures}
        cancelled = {
            key: set(each.origin)
            for key, each in self._found.running.items()
            if key not in self._ended and subject_of(key) not in known
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
        over = self._ended.union(key for key in cancelled if not is_back(key))
        return [
            Failure(subject_of(key), "it was over already", CANCEL, CHANGED, moot=True)
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
            for each in unthrottled(self._found)
            if each.subject in self._throttling.left_to_others()
        ]

    def still_going_back(self, keys: Set[Key]) -> Set[Key]:
        """Those that the controller still tells of."""
        return keys & set(self.client.fetch_running())

    # ------------------------------------------------------------ throttles

    def _concerned(self) -> Dict[Key, Tuple[Sequence[int], Sequence[int]]]:
        """The partitions that this run moves, with (who may send, who receives)."""
        concerned: Dict[Key, Tuple[Sequence[int], Sequence[int]]] = {
            key: (running.replicas, running.adding) for key, running in self._found.running.items()
        }
        for move in self.moves.moves:
            if move.adding:
                senders, receivers = concerned.get(move.key, ((), ()))
                concerned[move.key] = (
                    tuple(dict.fromkeys([*senders, *move.before])),
                    tuple(dict.fromkeys([*receivers, *move.adding])),
                )
        return concerned

    def _throttle_on(self) -> None:
        """Throttle what moves, before it moves. What a killed run has left is overwritten."""
        found = self._found
        wanted = throttled_lists(self._concerned())
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
