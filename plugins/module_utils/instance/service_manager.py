# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""What a service manager must do for an instance: the interface, and what all of them share.

A third one (OpenRC, say) is a class below ServiceManager in a file of its own, a name in
`managers.py`, and an entry in tests/unit/.../test_service_manager.py, whose tests are the
contract that each of them passes.
"""

from __future__ import annotations

import abc
import os
import signal
from dataclasses import dataclass


class ServiceError(Exception):
    """The service manager refused or did not answer; the text is a sentence for the user."""

    # As in meta/problems.yml, which managed hosts do not have.
    CHECK = "instance.service_manager"
    REMEDY = "remove the cause that the message names, and run again"


@dataclass(frozen=True)
class Attempt:
    """How far a service manager is with a program that it was asked to start.

    `number` is the same as long as it is the same process, and another one after each further start;
    it is not a count. `over`: there is no process, and the manager will not start one by itself - it has
    given up, or the process has ended for good. A start that is only queued is not over.
    """

    number: int
    over: bool


class ServiceManager(abc.ABC):
    """Starts processes, keeps them running and stops them; `name` is always that of an instance.

    Methods that change something raise ServiceError where the manager refuses, and OSError where a
    file or a connection fails. None of them ever kills a process: a stop is SIGTERM, and then patience.
    """

    # Whether it is the machine's, runs programs as accounts, and is there at boot; else a user's own.
    of_the_machine: bool
    # Whether it writes the output into the console's file itself, and keeps it small.
    keeps_console: bool
    # Whether it runs the guard when the program has ended; else the guard watches beside it.
    runs_after_exit: bool
    # Whether it has what it stops go on (SIGCONT), so that a process that stands still ends in order.
    wakes_what_it_stops: bool

    @abc.abstractmethod
    def definition(self, name: str, command: str, console: str) -> str:
        """Return the text that defines the program: it runs `command` and appends output to `console`."""

    @abc.abstractmethod
    def install(self, name: str, definition: str) -> None:
        """Make `definition` that of `name`, which must not be running; nothing is started."""

    @abc.abstractmethod
    def start(self, name: str) -> None:
        """Start the installed program, and again whenever it fails; do not wait for it."""

    @abc.abstractmethod
    def stop(self, name: str) -> None:
        """Ask for a controlled stop (SIGTERM), and start it no more; do not wait for the exit.

        Asking again does no harm, and signals again where the manager itself would not.
        """

    @abc.abstractmethod
    def attempt(self, name: str) -> Attempt:
        """Return how far the start of `name` is."""

    @abc.abstractmethod
    def supervises(self, name: str, pid: int) -> bool:
        """Tell whether the process `pid` is the one that this manager runs as `name`."""

    @abc.abstractmethod
    def wants_running(self, name: str) -> bool:
        """Tell whether the program runs, is being stopped, or is about to be started again."""

    @abc.abstractmethod
    def stopping(self, name: str) -> bool:
        """Tell whether the program was asked to stop, and has not ended yet."""

    @abc.abstractmethod
    def remove(self, name: str) -> None:
        """Forget a stopped program; one that is unknown is fine."""


def terminate(pid: int) -> None:
    """Send SIGTERM to a process that no service manager owns; one that is gone is fine."""
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass


def holds(path: str, text: str) -> bool:
    """Tell whether a file has this text already: what is there needs no room on a disk that is full."""
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read() == text
    except (OSError, UnicodeDecodeError):
        return False
