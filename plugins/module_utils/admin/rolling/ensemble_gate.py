# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks an ensemble of ZooKeeper servers whether it serves, and whether it will without one of them: reads and waits.

`admin.client.four_letter_words` judges. Private to this collection. Clock and sleep are handed in. Nothing
here changes anything.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.four_letter_words import (
    Ask,
    States,
    says_it_does_not_serve,
    states_of,
    unmet,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.last_look import (
    AtHand,
    Look,
    T,
    until_stopped,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    Problem,
    ProblemError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import Steady, wait_until

POLL_SECONDS = 0.2
# The default of initLimit (10) in ticks of 2 s: so long a server may read and fetch its database before
# it serves, and that is not to be disturbed.
NOT_SERVING_SECONDS = 20
# Between two lines about what is waited for.
TELL_SECONDS = 5.0
SERVER = {
    "id": {"type": "int"},
    "address": {"type": "str", "required": True},
    "port": {"type": "int", "default": 2181},
}
# The question as options: of zookeeper_info, and of who asks once more right before the stop.
ENSEMBLE_OPTIONS: Dict[str, Any] = {
    "servers": {"type": "list", "elements": "dict", "required": True, "options": SERVER},
    "required": {"type": "list", "elements": "int"},
    "stopping": {"type": "int"},
    "unmended": {"type": "list", "elements": "int"},
    "quiet_seconds": {"type": "float", "default": 0.0},
    "lists": {"type": "list", "elements": "list"},
    "timeout": {"type": "int", "default": 120},
}
# What the gate has told before: `idle` of what zookeeper_info returns.
LAST_LOOK_OPTIONS: Dict[str, Any] = {**ENSEMBLE_OPTIONS, "idle": {"type": "bool", "default": False}}


@dataclass(frozen=True)
class EnsembleQuestion:
    """What is expected of the ensemble, as `unmet` takes it, and for how long."""

    servers: Tuple[Mapping[str, Any], ...]
    required: Optional[Tuple[int, ...]] = None
    stopping: Optional[int] = None
    lists: Tuple[Tuple[int, ...], ...] = ()
    unmended: Tuple[int, ...] = ()
    quiet_seconds: float = 0.0
    wait_seconds: float = 120.0


def question_of(params: Mapping[str, Any]) -> EnsembleQuestion:
    """The question of the options; ProblemError where they mean nothing."""
    wrong = wrong_parameters(params)
    if wrong is not None:
        raise ProblemError(wrong)
    required = params["required"]
    return EnsembleQuestion(
        tuple(params["servers"]),
        None if required is None else tuple(required),
        params["stopping"],
        tuple(tuple(int(number) for number in each) for each in params["lists"] or ()),
        tuple(params["unmended"] or ()),
        params["quiet_seconds"],
        params["timeout"],
    )


def wrong_parameters(params: Mapping[str, Any]) -> Optional[Problem]:
    """What is wrong with the parameters beyond their types; None if nothing."""
    if not params["servers"]:
        reason, remedy = "the list is empty", "name at least one server"
        return Problem("options.servers", reason, remedy, setting="servers")
    if params["timeout"] < 0:
        reason, remedy = "must not be negative", "give the seconds to wait; 0 is one look"
        return Problem("options.range", reason, remedy, setting="timeout", value=params["timeout"])
    known = {server["id"] for server in params["servers"]}
    named = {"required": params["required"] or [], "stopping": [params["stopping"]]}
    named["unmended"] = params["unmended"] or []
    named["lists"] = [int(number) for each in params["lists"] or [] for number in each]
    for option, ids in named.items():
        for number in ids:
            if number is not None and number not in known:
                reason, remedy = "no entry of servers has this id", "name a server by its id"
                return Problem("options.servers", reason, remedy, setting=option, value=number)
    return None


class EnsembleGate:
    """Looks at an ensemble; remembers what the last look saw.

    `idle`: whether the server that is to stop may do so since it says that it runs without a quorum. Only a wait
    finds that out; who takes a last look behind it says so.
    """

    def __init__(
        self,
        question: EnsembleQuestion,
        idle: bool = False,
        ask: Ask = states_of,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self.question, self.idle = question, idle
        self.states: States = []
        self.missing: List[str] = []
        self._ask, self._clock, self._sleep = ask, clock, sleep

    def look(self) -> List[str]:
        """One look: what is missing, in sentences."""
        question = self.question
        self.states = self._ask(question.servers)
        self.missing = unmet(
            self.states,
            question.required,
            question.stopping,
            question.lists,
            question.unmended,
        )
        return self.missing

    def _says_it_does_not_serve(self) -> bool:
        stopping = self.question.stopping
        return stopping is not None and says_it_does_not_serve(self.states, stopping)

    def wait(self, seconds: float, log: Callable[[str], None] = lambda text: None) -> bool:
        """Tell whether nothing was missing for the quiet time; it is looked for so many seconds, and once at least."""
        question = self.question
        quiet = Steady(question.quiet_seconds, self._clock)
        not_serving = Steady(NOT_SERVING_SECONDS, self._clock)
        progress = Progress(log, self._clock, TELL_SECONDS)

        def met() -> bool:
            self.look()
            # Both are told of every look.
            self.idle = not_serving(self._says_it_does_not_serve())
            if self.idle:
                self.missing = []
            progress.tell(
                lambda: f"waiting for {progress.seconds():.0f} s:"
                f" {'; '.join(self.missing) or 'quiet so far'}"
            )
            return quiet(not self.missing) or self.idle

        if wait_until(met, seconds, self._clock, self._sleep, POLL_SECONDS):
            return True
        self.missing = self.missing or [f"the state was not good for {question.quiet_seconds:g} s"]
        return False

    def waited_in_vain(self) -> Problem:
        """The problem of a server that may not stop."""
        remedy = (
            "bring back what is missing (playbooks/status.yml shows it), then run it again, it"
            " goes on from here"
        )
        if not any(state["serving"] for state in self.states):
            remedy = (
                "none serves, so that turns cannot help: run playbooks/stop.yml, then"
                " playbooks/site.yml, which starts them together"
            )
        return Problem(
            "gate.waiting",
            f"waited {self.question.wait_seconds:g} s, and it may not be stopped yet:"
            f" {'; '.join(self.missing)}. It was not stopped",
            remedy,
            (f"server {self.question.stopping}",),
        )

    # ------------------------------------------------------------ right before the stop

    @contextlib.contextmanager
    def at_hand(self) -> Iterator[Look]:
        """A last look at the server that stops; nothing has to be made ready for it."""

        def look() -> List[str]:
            reasons = self.look()
            return [] if self.idle and self._says_it_does_not_serve() else reasons

        yield look

    def until_stopped(
        self,
        attempt: Callable[[AtHand], Tuple[T, List[str]]],
        log: Callable[[str], None] = lambda text: None,
    ) -> T:
        """What `attempt` returns of the stop of the server, as `last_look.until_stopped`."""

        def wait() -> None:
            if not self.wait(self.question.wait_seconds, log):
                raise ProblemError(self.waited_in_vain())

        return until_stopped(
            attempt,
            self.at_hand,
            wait,
            lambda _reasons: ProblemError(self.waited_in_vain()),
            self.question.wait_seconds,
            log,
            self._clock,
        )
