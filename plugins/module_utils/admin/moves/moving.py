# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What moving replicas has in common, whether between brokers or between their log directories.

Private to this collection. The way of a run, which the subclasses of `Moving` fill: start what is
planned in small batches under a limit, or turn back what is under way; wait; remove the limit.
"""

from __future__ import annotations

import time
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    Sequence,
    Set,
    Tuple,
    TypeVar,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import (
    CANCEL,
    CONSENTS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import (
    checked_seconds,
    out_of_range,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    UNLIMITED,
    approximate_size,
    parse_size_bytes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

APPLIED, CANCELLED = "applied", "cancelled"
OPERATION_MAX_SECONDS = 30 * 86400
# Between two looks at sizes and two lines about progress.
TELL_SECONDS = 5.0
# How long a broker may need to learn of what was there before; a name that is asked for may be wrong.
KNOWN_SECONDS = 5.0
# How long brokers may need to learn of a change that is made.
SETTLE_SECONDS = 30.0
LIFT_POLL_SECONDS = 0.5
LEAST_RATE = 1024
L = TypeVar("L", bound=Tuple[Mapping[Any, Any], ...])
AGAIN = "run the task again to go on, or with state: cancelled to go back"
# Codes of failures of a run that leaves moves under way, with their limits: out of time, or not to go on.
TIMEOUT, STOPPED = "timeout", "stopped"
RUN_OVER = "reassignment.run_over"
LEFT_UNDER_WAY = (TIMEOUT, STOPPED)
# The module's own options; their documentation is in the module.
OPTIONS = dict(
    state=dict(type="str", choices=[APPLIED, CANCELLED], default=APPLIED),
    drain=dict(type="list", elements="int", default=[]),
    spread=dict(type="bool", default=False),
    onto=dict(type="list", elements="int", default=[]),
    replication_factor=dict(type="int"),
    topics=dict(type="list", elements="str"),
    disks=dict(type="list", elements="int"),
    # Without a default: one counts as given, and both are refused without disks.
    drain_directories=dict(type="list", elements="str"),
    tolerance=dict(type="int"),
    allow=dict(type="list", elements="str", choices=list(CONSENTS), default=[]),
    throttle=dict(type="str", default="50MiB"),
    batch=dict(type="int", default=20),
    operation_timeout=dict(type="float", default=86400.0),
    progress=dict(type="path"),
)


def rate_from(text: Any) -> int:
    """Bytes a second of the option `throttle`, -1 for unlimited; AdminError for what is unclear."""
    try:
        rate = parse_size_bytes(text)
        if 0 <= rate < LEAST_RATE:
            raise ValueError("less than 1KiB a second would never end")
        return rate
    except ValueError as error:
        raise out_of_range(
            "throttle", text, str(error), 'write bytes a second such as "50MiB", or unlimited'
        ) from error


def checked_batch(batch: int) -> int:
    """The option `batch`; AdminError for less than one."""
    if batch < 1:
        raise out_of_range(
            "batch", batch, "must be at least 1", "choose how many partitions move at the same time"
        )
    return batch


def lift(
    own: L,
    fetch: Callable[[], L],
    remove: Callable[[L], None],
    told: Callable[[L], str],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """Remove the limits that this run has set and those that brokers tell; see that they are gone.

    A broker tells a limit only a moment after it was set, so `own` is removed unseen.
    """
    left = own
    if any(own):
        remove(own)

    def gone() -> bool:
        nonlocal left
        left = fetch()
        if any(left):
            remove(left)
        return not any(left)

    if not wait_until(gone, SETTLE_SECONDS, clock, sleep, LIFT_POLL_SECONDS):
        raise AdminError(Problem("reassignment.throttle_left", told(left), "run the task again"))


def _now_ms() -> int:
    return int(time.time() * 1000)


class Moving(Resource):
    """The moves of one task. `tell` gets a line now and then; `over` says why this run must not go on, "" if it may.

    A module can outlive the playbook that it belongs to. So `over` is asked before anything is begun, and at each look.
    """

    # One move that is under way, several, the limit, and where it holds; and between two looks.
    ONE, SEVERAL, LIMIT, WHERE = "", "", "", ""
    POLL_SECONDS = 0.5
    # The moves of the plan, and the snapshot that it was made of.
    moves: Any
    _found: Any

    def __init__(
        self,
        client: Any,
        params: Mapping[str, Any],
        tell: Callable[[str], None] = lambda line: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        over: Callable[[], str] = lambda: "",
    ):
        checked_seconds("operation_timeout", params["operation_timeout"], OPERATION_MAX_SECONDS)
        self.client = client
        self.cancelling = params["state"] == CANCELLED
        self.rate = rate_from(params["throttle"])
        self.batch = checked_batch(params["batch"])
        self.allow = frozenset(params["allow"])
        self._took: Dict[str, Dict[str, int]] = {}
        self._tell, self._clock, self._sleep, self._over = tell, clock, sleep, over
        self.prepare(params)

    # ------------------------------------------------------------ what a subclass fills in

    def prepare(self, params: Mapping[str, Any]) -> None:
        """Take what is its own of the parameters; AdminError for what cannot be."""
        raise NotImplementedError

    def name_of(self, key: Any) -> str:
        """The subject of a move, for people."""
        raise NotImplementedError

    def under_way(self, snapshot: Any) -> List[Any]:
        """What moves already in a snapshot, sorted."""
        raise NotImplementedError

    def planned(self) -> str:
        """The moves of the plan, for people."""
        raise NotImplementedError

    def carry_out(self, deadline: float) -> List[Failure]:
        """Make the moves that are planned."""
        raise NotImplementedError

    def turn_back(self) -> Tuple[Mapping[Any, str], Set[Any]]:
        """Cancel all that is under way: what was refused, and why; and what goes back now."""
        raise NotImplementedError

    def still_going_back(self, keys: Set[Any]) -> Set[Any]:
        """Which of these cancelled moves have not ended yet."""
        raise NotImplementedError

    def limits_off(self) -> None:
        """Remove every limit of ours, and see that it is gone."""
        raise NotImplementedError

    def differences(self, failures: Sequence[Failure]) -> List[Failure]:
        """What is not as planned at the end, besides what is known to have failed."""
        return []

    # ------------------------------------------------------------ the same for all

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Move in small batches under the limit, or cancel; wait; remove the limit."""
        began = _now_ms()
        try:
            failures = self._if_stopped(changes)
            if not failures:
                failures = self._cancel(deadline) if self.cancelling else self.carry_out(deadline)
            if not any(failure.code in LEFT_UNDER_WAY for failure in failures):
                # The limits may be another run's by now.
                over = self._if_stopped(changes)
                if over:
                    return over
                self.limits_off()
                failures += self.differences(failures)
        except AdminError as error:
            # Something may have been started: what was not is found by the next run.
            problem = error.problem
            why = f"[{problem.check}] {problem.reason}; {problem.remedy if error.final else AGAIN}"
            return [Failure(each.subject, why, each.kind, "interrupted") for each in changes]
        self._took = {"took": {"from_ms": began, "to_ms": _now_ms()}}
        return failures

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns about the moves."""
        return {
            **self._took,
            "cluster_id": outcome.snapshot.snapshot.cluster_id,
            "summary": self.summary(),
            "bytes": self.moves.bytes,
            "copies": self.moves.copies,
            "under_way": [self.name_of(key) for key in self.under_way(outcome.snapshot)],
        }

    def summary(self) -> str:
        """One line for people."""
        running, told = len(self.under_way(self._found)), self.planned()
        under_way = f"{running} {self.ONE if running == 1 else self.SEVERAL} under way"
        if self.cancelling:
            return f"{under_way}, to be cancelled" if running else "nothing to cancel"
        if running:
            told = f"{under_way}: this run continues them, then {told}"
        if self.moves.copies and self.rate != UNLIMITED:
            told += f", at most {approximate_size(self.rate)} a second {self.WHERE}"
        return told

    def stopped(self) -> str:
        """Why this run must begin nothing more, with the id of that; empty where it may go on."""
        why = self._over()
        return f"[{RUN_OVER}] {why}" if why else ""

    def _if_stopped(self, changes: Sequence[Change]) -> List[Failure]:
        """The failures of all changes if this run must not go on, else none."""
        why = self.stopped()
        if not why:
            return []
        return [Failure(each.subject, f"{why}; {AGAIN}", each.kind, STOPPED) for each in changes]

    def late(
        self,
        waiting: Iterable[Tuple[Any, str]],
        pending: Iterable[Tuple[Any, str]],
        stopped: str = "",
    ) -> List[Failure]:
        """The failures of a run that is out of time: (key, kind) of what was started, and of the rest.

        Or of one that is `stopped`, for this reason; whether what it has started is still limited is not known then.
        """
        under_way = "still under way" if stopped else f"still under way, under its {self.LIMIT}"
        reason = f"{stopped}; " if stopped else ""
        return [
            Failure(
                self.name_of(key), f"{reason}{why}; {AGAIN}", kind, STOPPED if stopped else TIMEOUT
            )
            for moves, why in ((waiting, under_way), (pending, "not started"))
            for key, kind in moves
        ]

    def _cancel(self, deadline: float) -> List[Failure]:
        refused, left = self.turn_back()

        def ended() -> bool:
            nonlocal left
            left = self.still_going_back(left)
            return not left

        if left:
            seconds = deadline - self._clock()
            wait_until(ended, seconds, self._clock, self._sleep, self.POLL_SECONDS)
        return [
            Failure(self.name_of(key), why, CANCEL, "refused")
            for key, why in sorted(refused.items())
        ] + [
            Failure(self.name_of(key), f"still under way; {AGAIN}", CANCEL, TIMEOUT)
            for key in sorted(left)
        ]
