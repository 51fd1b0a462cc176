# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drill does to the process of an instance on its host, and how it is undone when the run is gone.

Private to this collection. Standard library only: managed hosts have nothing else. A note on the host says
what was done. Beside it a guard waits, a process of its own: it starts the instance again if the run has
ended, however it did, and the note is still there. Whose leadership moves has a second note, which no guard removes:
it knows no client of Kafka, and whoever gives leadership back has to hear of it.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import signal
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    exclusive,
    json_text,
    remove,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.away import NOTE, note_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import (
    in_background,
    recorded,
    stands_still,
    start_ticks,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceError,
    ServiceManager,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import refusal
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

KILL_SECONDS = 10.0
# Held by who starts or stops the instance, below its configuration.
LOCK = ".lock"
# Beside the note, and longer there: leaders that a drill has moved have not been given back.
LEADERS = "drill-leaders.json"
LOOK_SECONDS = 1.0
# A worker of the run may outlive it, and stop the instance only then.
SETTLED_SECONDS = 5.0
# So long a guard tries to start an instance.
UNDO_SECONDS = 600.0


@dataclass(frozen=True)
class Guarded:
    """An instance that comes back without its run.

    `gone()`: whether the run has ended, and with it any that has taken over; `replaced()`: whether another one
    has taken over, which decides what runs until it has ended. `seconds`: after these the instance comes back
    although the run seems to be there. `run`: its name.
    """

    name: str
    state_dir: str
    config_dir: str
    manager: ServiceManager
    gone: Callable[[], bool]
    replaced: Callable[[], bool]
    seconds: float
    run: str = ""


def carry_out(
    state: str,
    name: str,
    state_dir: str,
    drill: str,
    guarded: Optional[Guarded] = None,
    stays_away: bool = False,
    leads: bool = False,
) -> Dict[str, Any]:
    """Do what `state` says; returns the module's result. `guarded`: a guard is left beside the note.

    `stays_away`: whom it kills its service manager does not start again. `leads`: others lead meanwhile what it leads.

    Raises ProblemError where there is no process to kill, and OSError where the note cannot be written.
    """
    path = os.path.join(state_dir, NOTE)
    result: Dict[str, Any] = {"changed": False}
    if state in ("noted", "killed"):
        token = secrets.token_hex(8)
        run = guarded.run if guarded is not None else ""
        if leads:
            write_atomically(os.path.join(state_dir, LEADERS), json_text({"drill": drill}))
        write_atomically(path, json_text({"drill": drill, "token": token, "run": run}))
        if guarded is not None:
            kept = guarded
            in_background(lambda: keep_guard(kept, token))
    if state == "killed":
        manager = guarded.manager if guarded is not None and stays_away else None
        result.update(changed=True, at_ms=_kill(name, state_dir, manager))
    if state in ("forgotten", "given_back"):
        if _noted(state_dir):
            _go_on(state_dir)
        remove(path)
    if state == "given_back":
        remove(os.path.join(state_dir, LEADERS))
    return {
        **result,
        "note": _noted(state_dir),
        "leaders": os.path.exists(os.path.join(state_dir, LEADERS)),
        "running": recorded(state_dir) is not None,
        "now_ms": _now_ms(),
    }


def _now_ms() -> int:
    """Milliseconds since 1970, by the clock of this host."""
    return int(time.time() * 1000)


def keep_guard(
    guarded: Guarded,
    token: str,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until the note of this `token` is gone; start the instance again if the run is gone before it.

    While another run has taken over, nothing is done; it may end, or fail, without having thought of this instance.
    Where it decides that the instance stays away, it removes the note. Otherwise that goes when the instance runs.
    It has no limit of time: one that cannot be seen from here may be about to replace what is on this host.
    """
    path = os.path.join(guarded.state_dir, NOTE)
    begun = clock()

    def away() -> bool:
        return _token(guarded.state_dir) == token

    def over() -> bool:
        if not away() or guarded.gone():
            return True
        return clock() - begun >= guarded.seconds and not guarded.replaced()

    # since when it has run
    since: Optional[float] = None

    def undone() -> bool:
        nonlocal since
        # a turn that goes on comes to its end first
        with exclusive(os.path.join(guarded.config_dir, LOCK), mode=0o640):
            if not away() or guarded.replaced():
                return True
            _go_on(guarded.state_dir)
            if not _runs(guarded):
                since = None
                return False
            since = clock() if since is None else since
            if clock() - since < SETTLED_SECONDS:
                return False
            remove(path)
            return True

    def tried() -> bool:
        # what fails may be better in a second; nobody would hear of it
        with contextlib.suppress(ServiceError, OSError):
            return undone()
        return False

    wait_until(over, math.inf, clock, sleep, LOOK_SECONDS)
    # the note is there still where another run has taken over meanwhile
    while wait_until(tried, UNDO_SECONDS, clock, sleep, LOOK_SECONDS) and away():
        since = None
        wait_until(over, math.inf, clock, sleep, LOOK_SECONDS)


def _runs(guarded: Guarded) -> bool:
    """Whether the instance runs and stays; where nobody is about to start it, it is started."""
    if guarded.manager.stopping(guarded.name):
        return False
    if not guarded.manager.wants_running(guarded.name):
        guarded.manager.start(guarded.name)
    return recorded(guarded.state_dir) is not None


def _go_on(state_dir: str) -> None:
    """Have a process go on that stands still: whoever was about to kill it, died between SIGSTOP and SIGKILL."""
    process = recorded(state_dir)
    if process is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)


def _kill(name: str, state_dir: str, manager: Optional[ServiceManager]) -> int:
    """Send SIGKILL and wait until the process is gone; returns when it was sent. `manager` is told to stop it."""
    process = recorded(state_dir)
    if process is None:
        raise refusal(
            "drill.no_process", f"drill={name}", f"{name} does not run", "run playbooks/start.yml"
        )
    ticks = start_ticks(process.pid)
    at_ms = _now_ms()
    # It must neither end in order while its manager is asked, nor be started again before. What stands still does
    # neither. systemd has it go on, but waits before it starts again what was killed, so that it is asked then.
    before = manager is not None and not manager.wakes_what_it_stops
    try:
        if manager is not None and before:
            os.kill(process.pid, signal.SIGSTOP)
            # On a busy machine that takes a moment, in which its manager's SIGTERM would come first.
            wait_until(
                lambda: stands_still(process.pid) or start_ticks(process.pid) != ticks,
                KILL_SECONDS,
            )
            manager.stop(name)
    finally:
        # it may have ended by then
        if start_ticks(process.pid) == ticks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: start_ticks(process.pid) != ticks, KILL_SECONDS)
    if manager is not None:
        if not before:
            manager.stop(name)
        # its order may be queued still, and then it would start what has ended
        wait_until(lambda: not manager.wants_running(name), KILL_SECONDS)
    return at_ms


def _noted(state_dir: str) -> str:
    note = note_of(state_dir)
    return "unknown" if note is None else str(note.get("drill") or "")


def _token(state_dir: str) -> str:
    return str((note_of(state_dir) or {}).get("token") or "")
