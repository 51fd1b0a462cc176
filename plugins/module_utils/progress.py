# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far long work is, said now and then and not all the time."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Optional, Union

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    swept_directory,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_duration

LOOK_SECONDS = 1.0
SAY_SECONDS = 10.0


@dataclass
class Progress:
    """Says now and then how far things are; `emit` gets a line at most every `every` seconds."""

    emit: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    every: float = 4.0
    _begun: float = field(init=False)
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self._last = self.clock()

    def seconds(self) -> float:
        """How long the work has taken so far."""
        return self.clock() - self._begun

    def tell(self, line: Union[str, Callable[[], str]]) -> None:
        """Emit `line`, unless the last one (or the start) was less than `every` seconds ago.

        What costs something to find out is a function, asked for its line only then.
        """
        now = self.clock()
        if now - self._last >= self.every:
            self._last = now
            self.emit(line if isinstance(line, str) else line())


def told_into(path: Optional[str], log: Callable[[str], None]) -> Callable[[str], None]:
    """A function for lines about progress: into the log, and as {"line": ...} into a file."""

    def tell(line: str) -> None:
        log(line)
        if path:
            # Another user's file, a full disk: words about the work are no reason to end it.
            with contextlib.suppress(OSError):
                write_atomically(path, json.dumps({"line": line}).encode(), mode=0o600)

    return tell


@contextlib.contextmanager
def shown_of_module(action: Any, every: float = SAY_SECONDS, **here: Any) -> Iterator[None]:
    """While the context is open, show the progress of the module that an Ansible action runs, as `shown` does.

    Its output appears when it ends. Elsewhere the file could only be had through the connection that waits for the
    module, so there nothing is shown. `here`: options that the module gets besides, where it runs on this machine.
    """
    task, arguments = action._task, action._task.args
    if action._connection.transport != "local" or task.async_val or arguments.get("progress"):
        yield
        return
    with swept_directory("kafkaops-progress-") as directory:
        path = os.path.join(directory, "progress.json")
        task.args = {**arguments, **here, "progress": path}
        try:
            with shown(path, lambda line: action._display.display(f"    {line}"), every):
                yield
        finally:
            task.args = arguments


@contextlib.contextmanager
def shown(path: str, emit: Callable[[str], None], every: float = SAY_SECONDS) -> Iterator[None]:
    """While the context is open, emit the `line` of the progress file at `path`, at most every `every` seconds.

    Whoever works replaces the file, JSON, as a whole; while there is none, nothing is said.
    """
    over = threading.Event()

    def watch() -> None:
        progress = Progress(emit=emit, every=every)
        said = None
        while not over.wait(LOOK_SECONDS):
            line = line_of(path)
            if line and line != said:
                said = line
                progress.tell(line)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextlib.contextmanager
def passing(
    about_seconds: float, emit: Callable[[str], None], every: float = SAY_SECONDS
) -> Iterator[None]:
    """While the context is open, emit every `every` seconds how long it has been, and how long it takes about."""
    over, progress = threading.Event(), Progress(emit=emit)

    def say() -> None:
        while not over.wait(every):
            emit(time_left(progress.seconds(), about_seconds))

    teller = threading.Thread(target=say, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def time_left(seconds: float, about_seconds: float) -> str:
    """What is said of work that has taken `seconds`, and takes about `about_seconds`."""
    gone = f"{approximate_duration(seconds)} of about {approximate_duration(about_seconds)}"
    left = about_seconds - seconds
    return (
        f"{gone}, {approximate_duration(left)} left"
        if left >= 1
        else f"{gone}; it takes longer here"
    )


def line_of(path: str) -> Optional[str]:
    """Return the line for people out of a progress file, None while there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return str(json.load(file)["line"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
