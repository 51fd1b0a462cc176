# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of examples/, each run as a process of its own: drills try what people are told to write.

Private to this collection. Text and settings go through pipes: nothing is left on a disk, and settings have
passwords. A process ends with the one that has started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from typing import Any, Callable, Iterator, List, Mapping, Sequence

# Linux sends SIGKILL when the parent ends (PR_SET_PDEATHSIG), and remembers it when another program begins.
_TIED = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
# Of what it says; so many lines are kept.
SAID_LINES = 20


class Example:
    """A running program of examples/. `heard` gets each line of its output; `said` are the last ones of its errors."""

    def __init__(
        self,
        text: str,
        settings: Mapping[str, Any],
        arguments: Sequence[str],
        heard: Callable[[str], None] = lambda _line: None,
    ):
        self.said: List[str] = []
        with _piped(text) as program, _piped(json.dumps(dict(settings))) as file:
            words = [_TIED, str(os.getpid()), f"/dev/fd/{program}", f"/dev/fd/{file}", *arguments]
            self._process = subprocess.Popen(
                [sys.executable, "-c", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(program, file),
                text=True,
                bufsize=1,
            )
        self._threads = [
            threading.Thread(target=_read, args=(stream, to), daemon=True)
            for stream, to in (
                (self._process.stdout, heard),
                (self._process.stderr, self._hear_error),
            )
        ]
        for each in self._threads:
            each.start()

    def _hear_error(self, line: str) -> None:
        self.said.append(line)
        del self.said[:-SAID_LINES]

    def write(self, line: str) -> None:
        """Give it a line of input; one that has ended takes none."""
        stream = self._process.stdin
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                stream.write(f"{line}\n")
                stream.flush()

    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def end_of_input(self) -> None:
        """There are no more lines."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def wait(self, seconds: float) -> int:
        """Its exit code; whoever has not ended in time is killed."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        for each in self._threads:
            each.join(seconds)
        return code


def _read(stream: Any, to: Callable[[str], None]) -> None:
    for line in stream:
        to(line.rstrip("\n"))


@contextlib.contextmanager
def _piped(text: str) -> Iterator[int]:
    """A descriptor that reads this text; a thread writes what a pipe does not hold."""
    reading, writing = os.pipe()

    def write() -> None:
        with contextlib.suppress(OSError), os.fdopen(writing, "w", encoding="utf-8") as pipe:
            pipe.write(text)

    threading.Thread(target=write, daemon=True).start()
    try:
        yield reading
    finally:
        os.close(reading)
