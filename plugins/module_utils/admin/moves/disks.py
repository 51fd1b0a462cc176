# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log directories of brokers as a Resource: what the runner needs to know to move replicas between them.

Private to this collection. The glue between `plan_disks`, which decides, and `client_disks`, which
does. All that a run knows is read from the brokers, so a killed one is gone on with by the next: a
broker goes on copying by itself, also after a restart.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Collection, Deque, Dict, FrozenSet, List, Mapping, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.log_dirs import Disks
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Directory,
    Key,
    Place,
    Snapshot,
    UnderWay,
    with_disks,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_disks import (
    DISK_RATE,
    DisksClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.copying import Copying
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import (
    CANCEL,
    FINISH,
    MOVE,
    UNTHROTTLE,
    rights_problem,
    some_keys,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.low_throttle import (
    remedy,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.moving import (
    KNOWN_SECONDS,
    TELL_SECONDS,
    Moving,
    lift,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.pace import (
    Copy,
    Pace,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.plan_disks import (
    TOLERANCE_PERCENT,
    DiskMove,
    DiskMoves,
    DiskWish,
    carried_out,
    filled_since,
    plan_disks,
    told,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
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

_ENDED = "somebody else has ended a move of this run"
# Code of failures for a directory that has gone offline since the plan, and the id that the next plan refuses with.
FAILED = "directory_failed"
OFFLINE = "reassignment.offline_directory"
# The same of a disk that something else has filled since.
FULL, NO_ROOM = "directory_full", "reassignment.no_room"
_REPAIR = (
    "keep its disk, on which may be the only copy; repair it and restart the broker, or replace the broker"
    " (playbooks/replace_broker.yml)"
)
_LOOK_AT_IT = "its log says why; a restart begins the copies again (playbooks/rolling_restart.yml -e broker=ID)"


def failed_under(place: Place, move: UnderWay, now: Disks) -> List[str]:
    """The failed directories that have kept this replica from arriving, none where it has arrived or stays. Pure."""
    here, offline = now.where(place), now.offline(place[0])
    if here == move.target:
        return []
    # A failed directory tells no replicas: one that is in none may be in any of those.
    return offline if here is None else [path for path in offline if path == move.target]


def _has_failed(paths: Sequence[str]) -> str:
    verb = "has" if len(paths) == 1 else "have"
    return f"[{OFFLINE}] {', '.join(paths)} {verb} gone offline"


def _end(move: DiskMove) -> Tuple[int, str]:
    return move.broker, move.target


def _filled(move: DiskMove) -> str:
    return (
        f"not started: [{NO_ROOM}] {move.target} has no room any more for what would come to it; make room there, then"
        " run the task again to plan anew"
    )


@dataclass(frozen=True)
class FoundDisks:
    """What was read: the cluster, directories, limits, and which of the brokers get copies of others."""

    snapshot: Snapshot
    disks: Disks = Disks()
    rates: Mapping[int, str] = field(default_factory=dict)
    joining: Mapping[int, Sequence[Tuple[str, int]]] = field(default_factory=dict)
    # What this very user may do with the cluster, by the protocol's names; none where that is not told.
    rights: FrozenSet[str] = frozenset()

    @property
    def settled(self) -> Dict[int, Tuple[Directory, ...]]:
        """The directories once what is under way has arrived."""
        moves = [
            DiskMove(broker, key, move.source, move.target, move.size)
            for (broker, key), move in self.disks.under_way.items()
        ]
        return carried_out(self.disks.directories, moves)


def disk_wish_from(params: Mapping[str, Any]) -> DiskWish:
    """The DiskWish of a module's parameters; AdminError for what cannot be one."""
    tolerance = TOLERANCE_PERCENT if params["tolerance"] is None else params["tolerance"]
    if not 0 <= tolerance <= 100:
        raise out_of_range(
            "tolerance", tolerance, "must be from 0 to 100", "choose percent of a directory's share"
        )
    return DiskWish(frozenset(params["drain_directories"] or ()), tolerance)


def plan_disk_moves(
    found: FoundDisks, asked: Sequence[int], wish: DiskWish, throttled: bool = False
) -> Tuple[Plan, DiskMoves]:
    """What to do, and the moves in it; `throttled`: under a limit. Pure."""
    refusals = _unknown(found, asked) or _joining(found)
    moves = DiskMoves()
    if not refusals:
        moves = plan_disks(found.settled, wish, found.disks.under_way)
        refusals = list(moves.refusals)
    changes = [
        Change(
            FINISH,
            _name(place),
            {"directory": move.source},
            {"directory": move.target},
            "under way already",
        )
        for place, move in sorted(found.disks.under_way.items())
    ]
    changes += [
        Change(
            MOVE,
            _name(move.place),
            {"directory": move.source},
            {"directory": move.target},
            approximate_size(move.size),
        )
        for move in moves.moves
    ]
    refusals += rights_problem(found.rights, throttled) if changes else []
    return Plan(tuple(changes or _unthrottling(found)), tuple(refusals)), moves


def plan_disk_cancelling(found: FoundDisks, asked: Sequence[int]) -> Plan:
    """The way back for every move between directories that is under way. Pure."""
    changes = [
        Change(CANCEL, _name(place), {"directory": move.target}, {"directory": move.source})
        for place, move in sorted(found.disks.under_way.items())
    ]
    brokers = sorted({broker for broker, _key in found.disks.under_way})
    warnings = [
        f"broker {broker} deletes and compacts nothing of the partitions whose moves are cancelled until it "
        "restarts (KAFKA-19458, all of Kafka 3.8 and 3.9): "
        f"playbooks/rolling_restart.yml -e broker={broker}"
        for broker in brokers
    ]
    refusals = _unknown(found, asked) + (rights_problem(found.rights, False) if changes else [])
    return Plan((*changes, *_unthrottling(found)), tuple(refusals), tuple(warnings))


def _name(place: Place) -> str:
    broker, (topic, partition) = place
    return f"broker {broker}: {topic}-{partition}"


def _unthrottling(found: FoundDisks) -> List[Change]:
    return [
        Change(UNTHROTTLE, f"broker {broker}", {DISK_RATE: rate}, {DISK_RATE: None})
        for broker, rate in sorted(found.rates.items())
    ]


def _unknown(found: FoundDisks, asked: Sequence[int]) -> List[Problem]:
    alive = sorted(broker.id for broker in found.snapshot.brokers)
    unknown = sorted(set(asked) - set(alive))
    if asked and not unknown:
        return []
    return [
        Problem(
            "reassignment.unknown_broker",
            "no such broker is registered" if unknown else "no broker is named",
            f"start it, or name brokers that are: {', '.join(map(str, alive)) or 'none'}",
            (f"broker {', '.join(map(str, unknown))}",) if unknown else (),
            "disks",
            ",".join(map(str, sorted(asked))),
        )
    ]


def _joining(found: FoundDisks) -> List[Problem]:
    """Brokers that replicas are copied to: what they will hold is not there to be planned with."""
    return [
        Problem(
            "reassignment.running",
            f"replicas are being moved to it from other brokers: {some_keys(sorted(keys))}",
            "wait until that is over, or end it with playbooks/scale_out.yml -e cancel=true, which is"
            " kafka_reassignment with state: cancelled",
            (f"broker {broker}",),
        )
        for broker, keys in sorted(found.joining.items())
    ]


class DiskReassignment(Moving):
    """The log directories of the brokers that `disks` names, for one task. `tell` gets a line now and then."""

    ONE, SEVERAL = "move between directories", "moves between directories"
    LIMIT, WHERE = "limit", "on each broker"
    POLL_SECONDS = 1.0
    client: DisksClient

    def prepare(self, params: Mapping[str, Any]) -> None:
        """The brokers that are asked about, and what is asked for."""
        self.asked = sorted(set(params["disks"]))
        self.wish = disk_wish_from(params)
        self._known_disks = params["known_disks"]
        self.moves = DiskMoves()
        self._limited: Set[int] = set()
        # Those that have told their limit since.
        self._told: Set[int] = set()
        # Broker to the directories that were offline when it has answered last.
        self._offline: Dict[int, List[str]] = {}
        # The fewest bytes that a replica had left to copy at any look.
        self._least: Dict[Place, int] = {}
        self._found = FoundDisks(Snapshot())

    # ------------------------------------------------------------ the runner's questions

    def read(self) -> FoundDisks:
        """The brokers as they are; a few requests for each."""
        snapshot = self.client.fetch_metadata()
        alive = {broker.id for broker in snapshot.brokers}
        asked = [broker for broker in self.asked if broker in alive]
        joining: Dict[int, List[Tuple[str, int]]] = {}
        if not self.cancelling:
            for key, running in self.client.fetch_running().items():
                for broker in set(running.adding) & set(asked):
                    joining.setdefault(broker, []).append(key)
        disks = self.client.fetch_disks(asked)
        disks = replace(disks, directories=with_disks(disks.directories, self._known_disks))
        rates, rights = self.client.fetch_disk_rates(asked), self.client.fetch_own_rights()
        return FoundDisks(snapshot, disks, rates, joining, rights)

    def plan(self, snapshot: FoundDisks) -> Plan:
        """The Plan; the cluster is not asked again."""
        self._found = snapshot
        if self.cancelling:
            return plan_disk_cancelling(snapshot, self.asked)
        throttled = self.rate != UNLIMITED
        plan, self.moves = plan_disk_moves(snapshot, self.asked, self.wish, throttled)
        return plan

    def name_of(self, key: Place) -> str:
        """Broker and partition, for people."""
        return _name(key)

    def under_way(self, snapshot: FoundDisks) -> List[Place]:
        """The replicas that are copied to another directory."""
        return sorted(snapshot.disks.under_way)

    def planned(self) -> str:
        """What will move, for people."""
        return told(self._found.settled, self.moves)

    # ------------------------------------------------------------ doing it

    def carry_out(self, deadline: float) -> List[Failure]:
        """Keep up to `batch` replicas moving until all are done, those of all brokers in turn.

        What arrives moves the `deadline`: what is a lot takes long, and is not a failure.
        """
        seconds, copying, stalled = deadline - self._clock(), Copying(self._clock(), self.rate), ""
        pace = Pace(self.rate)
        waiting: Dict[Place, UnderWay] = dict(self._found.disks.under_way)
        pending = _in_turn(self.moves.moves)
        self._rates_on({place[0] for place in waiting} | {move.broker for move in pending})
        failures: List[Failure] = []
        total = len(pending) + len(waiting)
        progress = Progress(self._tell, self._clock, TELL_SECONDS)
        doubtful: Set[Place] = set()
        kinds = {**dict.fromkeys(waiting, FINISH), **{move.place: MOVE for move in pending}}
        while True:
            # Who ends one move may be ending all of them: what is in doubt is told first.
            free = 0 if doubtful else self._room(waiting)
            chosen = [pending.popleft() for each in range(min(len(pending), free))]
            stopped = stalled or self.stopped() or (self._unlimited(chosen) if chosen else "")
            if stopped:
                started = [(place, kinds[place]) for place in sorted(waiting)]
                rest = [(each.place, MOVE) for each in [*chosen, *pending]]
                return failures + self.late(started, rest, stopped)
            filled = self._filled_since(chosen, waiting)
            for move in [move for move in [*chosen, *pending] if _end(move) in filled]:
                (chosen if move in chosen else pending).remove(move)
                failures.append(Failure(_name(move.place), _filled(move), MOVE, FULL))
            refused = self.client.move_between_disks({move.place: move.target for move in chosen})
            for move in chosen:
                if move.place in refused:
                    failures.append(
                        Failure(_name(move.place), refused[move.place], MOVE, "refused")
                    )
                else:
                    waiting[move.place] = UnderWay(move.source, move.target, move.size)
            now = self._look(waiting)
            if self._is_nearer(waiting, now):
                deadline = self._clock() + seconds
            stalled = self._not_copied(copying, pace, waiting, now)
            for place, aim in sorted(waiting.items()):
                failed = failed_under(place, aim, now)
                if place[0] not in now.directories or place in now.under_way:
                    doubtful.discard(place)
                elif failed:
                    del waiting[place]
                    why = (
                        f"{_has_failed(failed)}, and it has not arrived in {aim.target}; {_REPAIR}"
                    )
                    failures.append(Failure(_name(place), why, kinds[place], FAILED))
                elif now.where(place) in (None, aim.target):
                    # Arrived, or the replica is not on this broker any more.
                    del waiting[place]
                    deadline = self._clock() + seconds
                elif place in doubtful:
                    del waiting[place]
                    why = f"it stays in {now.where(place)}: somebody else has ended the move"
                    failures.append(Failure(_name(place), why, kinds[place], "changed"))
                    # Who cancels what this run has begun does not want it to go on.
                    failures += self.late([], [(each.place, MOVE) for each in pending], _ENDED)
                    pending.clear()
                else:
                    # At the very end of a move it can be seen as neither.
                    doubtful.add(place)
            doubtful &= set(waiting)
            # Nobody knows how much longer the other disks of such a host last: as in a plan, nothing more moves there.
            for move in [move for move in pending if now.offline(move.broker)]:
                pending.remove(move)
                why = f"not started: {_has_failed(now.offline(move.broker))}; {_REPAIR}"
                failures.append(Failure(_name(move.place), why, MOVE, FAILED))
            if not (pending or waiting):
                return failures
            if self._clock() >= deadline:
                started = [(place, kinds[place]) for place in sorted(waiting)]
                return failures + self.late(started, [(each.place, MOVE) for each in pending])
            progress.tell(partial(self._line, total, pending, waiting, now, pace))
            self._sleep(self.POLL_SECONDS)

    def _filled_since(
        self, chosen: Sequence[DiskMove], waiting: Collection[Place]
    ) -> Set[Tuple[int, str]]:
        """(broker, directory) of those of these moves that do not fit any more."""
        if not chosen:
            return set()
        now = self._look([*waiting, *(move.place for move in chosen)])
        return filled_since(chosen, now.directories, now.under_way)

    def _room(self, waiting: Mapping[Place, UnderWay]) -> int:
        return max(0, self.batch - len(waiting))

    def _look(self, waiting: Collection[Place]) -> Disks:
        """Where the replicas that move are now."""
        brokers = sorted({broker for broker, _key in waiting})
        topics = sorted({key[0] for _broker, key in waiting})
        now = self.client.look_at_disks(brokers, topics) if waiting else Disks()
        self._offline.update({broker: now.offline(broker) for broker in now.directories})
        return now

    def _is_nearer(self, waiting: Collection[Place], now: Disks) -> bool:
        """Whether something has less left to copy than ever before; what only grows as producers write does not."""
        left = {place: now.under_way[place].left for place in waiting if place in now.under_way}
        nearer = [place for place, each in left.items() if each < self._least.get(place, each)]
        self._least.update(
            {place: min(each, self._least.get(place, each)) for place, each in left.items()}
        )
        return bool(nearer)

    def _not_copied(
        self, copying: Copying, pace: Pace, waiting: Collection[Place], now: Disks
    ) -> str:
        """Words about brokers that answer and copy nothing, or less than is written; empty where all is well."""
        told = {place: now.under_way[place] for place in waiting if place in now.under_way}
        copied = {place: move.copied for place, move in told.items()}
        at: Dict[int, List[Key]] = {}
        for broker, key in waiting:
            if broker in now.directories:
                at.setdefault(broker, []).append(key)
        clock = self._clock()
        copying.note(copied, at, clock)
        copies = {place: Copy(each.copied, each.size, each.source) for place, each in told.items()}
        pace.note(waiting, copies, clock)
        stalled, outpaced = copying.told(clock), pace.told(clock)
        if stalled:
            return f"{stalled}; {_LOOK_AT_IT}"
        if not outpaced:
            return ""
        need = max(flow.written for flow in pace.outpaced(clock).values())
        return f"{outpaced}; {remedy(need, self.rate, False)}"

    def _line(
        self,
        total: int,
        pending: Sequence[DiskMove],
        waiting: Mapping[Place, UnderWay],
        now: Disks,
        pace: Pace,
    ) -> str:
        """How far it is: replicas, and bytes that are still to be copied."""
        left = sum(move.size for move in pending)
        left += sum(now.under_way.get(place, move).left for place, move in waiting.items())
        done = total - len(pending) - len(waiting)
        line = f"{done} of {total} replicas moved, {approximate_size(left)} left"
        line += pace.line(self._clock())
        silent = sorted({broker for broker, _key in waiting} - set(now.directories))
        if silent:
            line += f"; waiting for broker {', '.join(map(str, silent))}, which does not answer"
        return line

    def differences(self, failures: Sequence[Failure]) -> List[Failure]:
        """Directories that have gone offline by the end: what is there is not told, so none of them is empty."""
        if self.cancelling:
            return []
        self._look([*self._found.disks.under_way, *(move.place for move in self.moves.moves)])
        return [
            Failure(f"broker {broker}: {path}", f"{_has_failed([path])}; {_REPAIR}", MOVE, FAILED)
            for broker, paths in sorted(self._offline.items())
            for path in paths
        ]

    def turn_back(self) -> Tuple[Mapping[Place, str], Set[Place]]:
        """Cancel every move between directories of these brokers."""
        running = self._found.disks.under_way
        wanted = {place: move.source for place, move in running.items()}
        refused = self.client.move_between_disks(wanted)
        return refused, set(running) - set(refused)

    def still_going_back(self, keys: Set[Place]) -> Set[Place]:
        """Those that their broker still tells of, and those of brokers that do not answer."""
        now = self._look(keys)
        return {each for each in keys if each[0] not in now.directories or each in now.under_way}

    # ------------------------------------------------------------ the limit

    def _rates_on(self, brokers: Set[int]) -> None:
        """Limit copies before they begin. What a killed run has left is overwritten."""
        if self.rate == UNLIMITED:
            self.limits_off()
            return
        rate = str(self.rate)
        self._limited = {broker for broker in brokers if self._found.rates.get(broker) != rate}
        self.client.set_disk_rates(dict.fromkeys(self._limited, rate))

    def _unlimited(self, moves: Sequence[DiskMove]) -> str:
        """Words about brokers whose limit somebody has taken away since they have told it."""
        brokers = sorted({move.broker for move in moves})
        if self.rate == UNLIMITED:
            return ""
        gone: List[int] = []

        def there() -> bool:
            nonlocal gone
            rates = self.client.look_at_disk_rates(brokers)
            self._told.update(broker for broker, rate in rates.items() if rate is not None)
            gone = sorted(b for b, rate in rates.items() if rate is None and b in self._told)
            return not gone

        wait_until(there, KNOWN_SECONDS, self._clock, self._sleep, self.POLL_SECONDS)
        named = ", ".join(map(str, gone))
        return f"somebody else has taken the limit away: broker {named}" if gone else ""

    def limits_off(self) -> None:
        """Remove the limits, and see that they are gone."""
        own, self._limited = self._limited, set()
        lift(
            (dict.fromkeys(own),),
            lambda: (dict.fromkeys(self.client.fetch_disk_rates(self.asked)),),
            lambda limits: self.client.set_disk_rates(*limits),
            lambda limits: f"{DISK_RATE} could not be removed: "
            + f"broker {', '.join(map(str, sorted(limits[0])))}",
            self._clock,
            self._sleep,
        )


def _in_turn(moves: Sequence[DiskMove]) -> Deque[DiskMove]:
    """One of each broker, then the next one of each: their disks work at the same time."""
    of_broker: Dict[int, int] = {}
    turns = []
    for move in moves:
        of_broker[move.broker] = of_broker.get(move.broker, 0) + 1
        turns.append((of_broker[move.broker], move.broker, move))
    return deque(move for _turn, _broker, move in sorted(turns, key=lambda each: each[:2]))
