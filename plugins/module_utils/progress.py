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
from typing import Callable, Iterator, Optional

LOOK_SECONDS = 1.0
SAY_SECONDS = 10.0


@dataclass
class Progress:
    """Says now and then how far things are; `emit` gets a line at most every `every` seconds."""

    emit: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    every: float = 4.0
    _last: Optional[float] = field(default=None)

    def tell(self, line: str) -> None:
        """Emit `line`, unless the last one (or the start) was less than `every` seconds ago."""
        now = self.clock()
        if self._last is None:
            self._last = now
        elif now - self._last >= self.every:
            self._last = now
            self.emit(line)


@contextlib.contextmanager
def shown(path: str, emit: Callable[[str], None]) -> Iterator[None]:
    """While the context is open, emit now and then the `line` of the progress file at `path`.

    Whoever works replaces the file, JSON, as a whole; while there is none, nothing is said.
    """
    over = threading.Event()

    def watch() -> None:
        progress = Progress(emit=emit, every=SAY_SECONDS)
        said = None
        progress.tell("")  # from now on
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
