# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far long work is, said now and then and not all the time."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Callable, Iterator, Optional, Union

LOOK_SECONDS = 1.0
SAY_SECONDS = 10.0


@dataclass
class Progress:
    """Says now and then how far things are; `emit` gets a line at most every `every` seconds."""

    emit: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    every: float = 4.0
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        self._last = self.clock()

    def tell(self, line: Union[str, Callable[[], str]]) -> None:
        """Emit `line`, unless the last one (or the start) was less than `every` seconds ago.

        What costs something to find out is a function, asked for its line only then.
        """
        now = self.clock()
        if now - self._last >= self.every:
            self._last = now
            self.emit(line if isinstance(line, str) else line())


@contextlib.contextmanager
def shown(path: str, emit: Callable[[str], None]) -> Iterator[None]:
    """While the context is open, emit now and then the `line` of the progress file at `path`.

    Whoever works replaces the file, JSON, as a whole; while there is none, nothing is said.
    """
    over = threading.Event()

    def watch() -> None:
        progress = Progress(emit=emit, every=SAY_SECONDS)
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


def line_of(path: str) -> Optional[str]:
    """Return the line for people out of a progress file, None while there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return str(json.load(file)["line"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
