# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a process that lives makes any progress, as its own host sees it.

A broker that hangs is not dead: its locks are held, its sockets stay open, and nobody may unregister it.
Two kinds are told apart from one that is only busy or idle:

* no thread at all has run: the process is stopped (SIGSTOP, a debugger), frozen, or the machine swaps;
* a thread has waited in the kernel all the time and has not run: a disk that does not answer.

An idle broker is no such case, since its threads wake several times a second. Nor is a JVM that collects
garbage, which runs all the time: what it does to clients, the session decides.

Standard library of Python 3.6 only, for the reasons that registration.py has.
"""

import os

STATE, USER_TICKS, SYSTEM_TICKS = 0, 11, 12  # of the fields behind the name, see proc(5)
WAITS_IN_KERNEL = "D"
INTERVAL_SECONDS = 0.5
# Looks that lie further apart tell nothing: whoever looks was stopped, too.
GAP_SECONDS = 3 * INTERVAL_SECONDS


def threads_of(pid):
    """Return {thread id: (state letter, how long it has run)} of a process, empty where it is gone.

    The second is a number that grows when the thread runs, in nanoseconds where the kernel counts them,
    else in clock ticks.
    """
    found = {}
    folder = f"/proc/{pid}/task"
    try:
        names = os.listdir(folder)
    except OSError:
        return found
    for name in names:
        try:
            fields = _text(f"{folder}/{name}/stat").rpartition(") ")[2].split()
            ran = int(fields[USER_TICKS]) + int(fields[SYSTEM_TICKS])
            try:
                ran = int(_text(f"{folder}/{name}/schedstat").split()[0])
            except (OSError, IndexError, ValueError):
                pass  # a kernel without these figures
            found[name] = (fields[STATE], ran)
        except (OSError, IndexError, ValueError):
            continue  # it has ended meanwhile
    return found


def _text(path):
    with open(path, encoding="utf-8", errors="replace") as handle:
        return handle.read()


class Progress:
    """Looks at a process, one after the other; `look` says for how long it has made no progress."""

    def __init__(self):
        self._before, self._looked = {}, None
        self._idle_since = None  # since when no thread has run
        self._waiting = {}  # thread id -> since when it waits in the kernel

    def look(self, now, threads):
        """Return (seconds without progress, the reason); (0, "") where it makes some.

        `now`: seconds on a clock that never goes back; `threads`: as `threads_of` returns them.
        """
        before, gap = self._before, self._looked is None or now - self._looked > GAP_SECONDS
        start, self._before, self._looked = self._looked, threads, now
        if gap or not threads:
            self._idle_since, self._waiting = None, {}
            return 0, ""
        still = {name for name, seen in threads.items() if before.get(name, ("", -1))[1] == seen[1]}
        if still != set(threads):
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = start
        waits = {name for name in still if threads[name][0] == before[name][0] == WAITS_IN_KERNEL}
        self._waiting = {name: self._waiting.get(name, start) for name in waits}
        if self._idle_since is not None:
            return now - self._idle_since, "no thread of it has run"
        if self._waiting:
            return now - min(self._waiting.values()), "a thread of it waits for a disk"
        return 0, ""
