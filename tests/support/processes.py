# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on this machine, from /proc."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def start_record(pid: int) -> dict:
    """Return what the launcher notes of a process that it has started: its id, and when it began."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return {"pid": pid, "start_ticks": int(fields[19])}


def _children() -> dict:
    """Return pid -> the pids of its children, of all processes of this machine."""
    found: dict = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(") ")[2].split()[1])
                found.setdefault(parent, []).append(int(entry.name))
    return found


def children(pid: int) -> list:
    """Return the pids of the processes that a process has started itself, the newest last."""
    return sorted(_children().get(pid, []))


def command_line(pid: int) -> str:
    """Return the words of a process, separated by spaces; "" if it is gone."""
    with contextlib.suppress(OSError):
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    return ""


def commands() -> dict:
    """Return pid -> the words of the process, separated by spaces, of all processes of this machine."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return {pid: command_line(pid) for pid in pids}


def seconds_worked(pid: int) -> float:
    """Return the seconds that a process has worked until now, in its own code and in the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> set:
    """Return the pids of all processes that a process has started, and those have, still its own."""
    of = _children()
    found, queue = set(), [pid]
    while queue:
        for child in of.get(queue.pop(), []):
            found.add(child)
            queue.append(child)
    return found


def hang_ups_count():
    """As preexec_fn of a process that the end of a terminal is to reach: who runs the tests may have said nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def kill_run(process, how):
    """SIGKILL the process group of a run, or (`tree`) also Ansible's workers, which leave the group."""
    doomed = descendants(process.pid) if how == "tree" else []
    os.killpg(process.pid, signal.SIGKILL)
    for pid in doomed:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(60)
