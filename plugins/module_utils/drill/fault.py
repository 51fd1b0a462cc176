# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drill does to the process of an instance on its host, and how it is undone when the run is gone.

Private to this collection. Standard library only: managed hosts have nothing else. A note on the host says
what was done. Beside it a guard waits, a process of its own: it starts the instance again if the run has
ended, however it did, and the note is still there.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    exclusive,
    json_text,
    read_text,
    remove,
    write_atomically,
)
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

NOTE = "drill.json"
KILL_SECONDS = 10.0
# Held by who starts or stops the instance, below its configuration.
LOCK = ".lock"
LOOK_SECONDS = 1.0
# A worker of the run may outlive it, and stop the instance only then.
SETTLED_SECONDS = 5.0
# So long a guard tries to start an instance.
UNDO_SECONDS = 600.0


@dataclass(frozen=True)
class Guarded:
    """An instance that comes back without its run.

    `gone()`: whether the run has ended; `replaced()`: whether another one has taken over, which then decides
    what runs. `seconds`: after these the instance comes back although the run seems to be there.
    """

    name: str
    state_dir: str
    config_dir: str
    manager: ServiceManager
    gone: Callable[[], bool]
    replaced: Callable[[], bool]
    seconds: float


def carry_out(
    state: str,
    name: str,
    state_dir: str,
    drill: str,
    guarded: Optional[Guarded] = None,
    stays_away: bool = False,
) -> Dict[str, Any]:
    """Do what `state` says; returns the module's result. `guarded`: a guard is left beside the note.

    `stays_away`: whom it kills its service manager does not start again.

    Raises ProblemError where there is no process to kill, and OSError where the note cannot be written.
    """
    path = os.path.join(state_dir, NOTE)
    result: Dict[str, Any] = {"changed": False}
    if state in ("noted", "killed"):
        token = secrets.token_hex(8)
        write_atomically(path, json_text({"drill": drill, "token": token}))
        if guarded is not None:
            kept = guarded
            in_background(lambda: keep_guard(kept, token))
    if state == "killed":
        manager = guarded.manager if guarded is not None and stays_away else None
        result.update(changed=True, at_ms=_kill(name, state_dir, manager))
    if state == "forgotten":
        if _noted(path):
            _go_on(state_dir)
        remove(path)
    return {
        **result,
        "note": _noted(path),
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

    Nothing is done for a run that another one has replaced. The note goes when the instance runs.
    """
    path = os.path.join(guarded.state_dir, NOTE)

    def over() -> bool:
        return _token(path) != token or guarded.gone() or guarded.replaced()

    wait_until(over, guarded.seconds, clock, sleep, LOOK_SECONDS)
    # since when it has run
    since: Optional[float] = None

    def undone() -> bool:
        nonlocal since
        # a turn that goes on comes to its end first
        with exclusive(os.path.join(guarded.config_dir, LOCK), mode=0o640):
            if _token(path) != token or guarded.replaced():
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

    wait_until(tried, UNDO_SECONDS, clock, sleep, LOOK_SECONDS)


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


def _noted(path: str) -> str:
    note = _note(path)
    return "unknown" if note is None else str(note.get("drill") or "")


def _token(path: str) -> str:
    return str((_note(path) or {}).get("token") or "")


def _note(path: str) -> Optional[Dict[str, Any]]:
    """What the note says, empty where there is none; None where it cannot be read."""
    try:
        told = json.loads(read_text(path) or "{}")
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
