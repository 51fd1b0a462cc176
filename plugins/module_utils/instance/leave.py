# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Leave to stop a process, asked for on its host and given by the controller, at the last moment.

A module takes up to a second until it works, and what was true of the cluster before is old by then. So it
comes first: on the host, with nothing left to do but the stop, it writes a file and waits. The controller,
which looks for that file, asks the cluster, and grants by giving the file another name. The files are in the
configuration directory, where only who runs the module may write. Nothing is stopped without leave: a run
that was killed grants nothing.
"""

from __future__ import annotations

import contextlib
import contextvars
import glob
import os
import shlex
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, ContextManager, List, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

# So long does a module wait for leave. It holds its instance's lock meanwhile, for which the next run waits.
WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.02
# So often does one command of the controller look for the file, every 0.05 s.
LOOKS = 20
ASKS, MAY = ".asks-to-stop-", ".may-stop-"

# Tells why the process may not stop now; nothing where it may.
Look = Callable[[], List[str]]


@dataclass(frozen=True)
class Place:
    """Where leave is asked for and given: the two names of a file, made of a token that nobody else has."""

    config_dir: str
    token: str

    @property
    def asks(self) -> str:
        """Return the path of the file while leave is asked for."""
        return os.path.join(self.config_dir, ASKS + self.token)

    @property
    def may(self) -> str:
        """Return its path when leave is given."""
        return os.path.join(self.config_dir, MAY + self.token)

    # Commands for the host's shell

    def asked(self) -> str:
        """Succeeds as soon as leave is asked for, and fails if it is not for a second."""
        return (
            f"n=0; until [ -e {shlex.quote(self.asks)} ]; do"
            f' [ "$n" -lt {LOOKS} ] || exit 1; n=$((n+1)); sleep 0.05; done'
        )

    def grant(self) -> str:
        """Gives leave; fails where it is not asked for any more."""
        return f"mv {shlex.quote(self.asks)} {shlex.quote(self.may)}"

    def refuse(self) -> str:
        """Gives none."""
        return f"rm -f {shlex.quote(self.asks)}"


def wait_for_leave(
    place: Place,
    name: str,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Ask for leave to stop the instance `name`, and return when it is given. Raises ProblemError if not.

    To be called by who holds the instance's lock: it removes what a killed module has left.
    """
    for left in (ASKS, MAY):
        for path in glob.glob(os.path.join(glob.escape(place.config_dir), f"{left}*")):
            os.unlink(path)
    os.close(os.open(place.asks, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def answer() -> str:
        if os.path.exists(place.may):
            return "granted"
        if os.path.exists(place.asks):
            return ""
        # it got its other name in between, or was removed
        return "granted" if os.path.exists(place.may) else "refused"

    try:
        found = wait_until(answer, WAIT_SECONDS, clock, sleep, LOOK_SECONDS)
        why = "it may not be stopped any more"
        if not found:
            # Once it is gone nobody can give leave any more.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place.asks)
            found = answer()
            why = f"for {WAIT_SECONDS:g} s nobody has said whether it may be stopped"
        if found != "granted":
            raise ProblemError(
                Problem(
                    "instance.no_leave",
                    f"{why}. It was not stopped",
                    "see playbooks/status.yml, and run again when the cluster can spare it",
                    (name,),
                )
            )
    finally:
        for path in (place.asks, place.may):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


class Answering:
    """Answers, while its context is open, the module that asks for leave on the host.

    `command(text)` runs a command on the host, beside the module, and tells whether it succeeded.
    `at_hand()` gives a context of a Look, made before it is needed. Afterwards `reasons` has why leave was not
    given, and `looked_ms` when the last look had ended, since 1970, if it was asked for.
    """

    def __init__(
        self,
        command: Callable[[str], bool],
        place: Place,
        at_hand: Callable[[], ContextManager[Look]],
    ):
        self.reasons: List[str] = []
        self.looked_ms: Optional[int] = None
        self._command, self._place, self._at_hand = command, place, at_hand
        self._over = threading.Event()
        self._error: Optional[Exception] = None
        # Who looks may be a module, for which Ansible keeps there what belongs to the task.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), daemon=True)

    def _run(self) -> None:
        try:
            with self._at_hand() as look:
                if self._is_asked():
                    self._answer(look())
        except Exception as error:  # pylint: disable=broad-except
            self._error = error  # for the thread that waits; without leave the module stops nothing

    def _is_asked(self) -> bool:
        while not self._over.is_set():
            if self._command(self._place.asked()):
                return True
        return False

    def _answer(self, reasons: List[str]) -> None:
        self.looked_ms = int(time.time() * 1000)
        if not reasons and not self._command(self._place.grant()):
            reasons = ["the look at the cluster took too long"]
        if reasons:
            self.reasons = reasons
            self._command(self._place.refuse())

    def __enter__(self) -> Answering:
        self._thread.start()
        return self

    def __exit__(self, kind: Any, *_rest: Any) -> None:
        self._over.set()
        self._thread.join()
        if self._error and kind is None:
            raise self._error
