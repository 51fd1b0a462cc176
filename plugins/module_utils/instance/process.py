# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""A process of this machine, known by its pid and its start time: a pid alone may be used again.

Standard library only, no Ansible: the preflight's facts read processes, too.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Callable, List, Optional

RECORD = "started.json"


@dataclass(frozen=True)
class Started:
    """What the launch script has recorded of a start, and whose process still runs."""

    pid: int
    started_at: int  # seconds since the epoch
    fingerprint: str


def start_ticks(pid: int, proc: str = "/proc") -> Optional[int]:
    """Return the start time of `pid` in clock ticks since boot, or None where it is gone or a zombie."""
    fields = _stat(pid, proc)
    return None if not fields or fields[0] in ("Z", "X") else int(fields[19])


def stands_still(pid: int) -> bool:
    """Return whether a signal has stopped `pid`: until then the next signal may reach it first."""
    return _stat(pid, "/proc")[:1] == ["T"]


def _stat(pid: int, proc: str) -> List[str]:
    """Return what the kernel tells of a process behind its name, state first; empty where it is gone."""
    try:
        with open(f"{proc}/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            return handle.read().rsplit(") ", 1)[1].split()
    except (OSError, IndexError):
        return []


def recorded(state_dir: str) -> Optional[Started]:
    """Return the process of the start record in `state_dir`, or None where it no longer runs."""
    try:
        with open(os.path.join(state_dir, RECORD), encoding="utf-8") as handle:
            record = json.load(handle)
        pid = int(record["pid"])
        if start_ticks(pid) != int(record["start_ticks"]):
            return None
        return Started(
            pid, int(record.get("started_at") or 0), str(record.get("fingerprint") or "")
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def in_background(work: Callable[[], None]) -> int:
    """Do some work in a process of its own and return its pid; what ends this process leaves that one.

    It is in no group and session of ours, and has no input or output, so that nobody waits for it.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            pid = os.fork()
            if pid:
                os.write(writing, str(pid).encode("ascii"))
                os._exit(0)
            os.chdir("/")
            nothing = os.open(os.devnull, os.O_RDWR)
            for each in (0, 1, 2):
                os.dup2(nothing, each)
            os.close(reading)
            os.close(writing)
            work()
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return int(pipe.read())
