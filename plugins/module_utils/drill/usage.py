# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What processes and a machine have used between two moments, by /proc. What cannot be read is None.

Private to this collection.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any, Collection, Dict, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import read_text

TICKS = os.sysconf("SC_CLK_TCK")
# Of /proc/diskstats, whatever the disk has.
SECTOR = 512


@dataclass(frozen=True)
class Process:
    """Counters of a process: seconds of CPU, bytes that it had written to and read from a disk, and seconds in which
    it waited for one, which is known of a control group of its own.
    """

    cpu_seconds: float
    written: Optional[int] = None
    read: Optional[int] = None
    waited: Optional[float] = None


@dataclass(frozen=True)
class Snapshot:
    """Counters at a moment. `machine` are (busy, all) seconds of its cores; `stalled_seconds`: in which some
    task waited for a disk; `sent`: bytes (received, sent) of each network interface. `disk_bytes`: written by its
    disks; `unwritten`: bytes of files that are still to be.
    """

    at: float
    processes: Mapping[int, Process] = field(default_factory=dict)
    machine: Optional[Tuple[float, float]] = None
    stalled_seconds: Optional[float] = None
    sent: Mapping[str, Tuple[int, int]] = field(default_factory=dict)
    disk_bytes: Optional[int] = None
    unwritten: Optional[int] = None


def snapshot(
    pids: Mapping[int, int], proc: str = "/proc", clock: Any = time.monotonic, sys: str = "/sys"
) -> Snapshot:
    """Read the counters of processes, {key: pid}, and of the machine."""
    found = {key: process_of(pid, pids.values(), proc, sys) for key, pid in pids.items()}
    return Snapshot(
        clock(),
        {key: each for key, each in found.items() if each is not None},
        _machine(proc),
        _stalled(f"{proc}/pressure/io"),
        _sent(proc),
        _disk_bytes(proc, sys),
        _unwritten(proc),
    )


def process_of(
    pid: int, own: Collection[int] = (), proc: str = "/proc", sys: str = "/sys"
) -> Optional[Process]:
    """The counters of a process; None where it is gone. `own`: those that may share a control group with it."""
    stat = read_text(f"{proc}/{pid}/stat")
    if stat is None:
        return None
    cpu = _cpu(stat)
    told = dict(_pair(line) for line in (read_text(f"{proc}/{pid}/io") or "").splitlines())
    return Process(
        cpu,
        _whole(told.get("write_bytes")),
        _whole(told.get("read_bytes")),
        _waited(pid, own, proc, sys),
    )


def _waited(pid: int, own: Collection[int], proc: str, sys: str) -> Optional[float]:
    """Seconds in which some task of its control group waited for a disk; None where others are in that, too."""
    lines = (read_text(f"{proc}/{pid}/cgroup") or "").splitlines()
    path = next((line[len("0::") :] for line in lines if line.startswith("0::/")), "/")
    group = f"{sys}/fs/cgroup{path}"
    members = (read_text(f"{group}/cgroup.procs") or "").split()
    if path == "/" or not members or not {*map(int, members)} <= {pid, *own}:
        return None
    return _stalled(f"{group}/io.pressure")


def threads_of(pid: int, proc: str = "/proc") -> Dict[int, float]:
    """{thread: seconds of CPU} of a process."""
    found = {}
    try:
        names = os.listdir(f"{proc}/{pid}/task")
    except OSError:
        names = []
    for name in names:
        stat = read_text(f"{proc}/{pid}/task/{name}/stat")
        if stat is not None:
            found[int(name)] = _cpu(stat)
    return found


def _cpu(stat: str) -> float:
    words = stat.rpartition(") ")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def _machine(proc: str) -> Optional[Tuple[float, float]]:
    words = (read_text(f"{proc}/stat") or "").split("\n", 1)[0].split()
    if len(words) < 9 or words[0] != "cpu":
        return None
    # guests are in user and nice; idle and waiting for a disk are not busy
    ticks = [int(each) / TICKS for each in words[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def _stalled(path: str) -> Optional[float]:
    for line in (read_text(path) or "").splitlines():
        if line.startswith("some ") and "total=" in line:
            return int(line.rpartition("total=")[2]) / 1e6
    return None


def _disk_bytes(proc: str, sys: str) -> Optional[int]:
    """Bytes written by disks of their own: neither a part of one, nor what lies on others, as dm, md and loop do."""
    found = [
        int(words[9]) * SECTOR
        for words in map(str.split, (read_text(f"{proc}/diskstats") or "").splitlines())
        if len(words) > 9 and os.path.exists(f"{sys}/block/{words[2]}/device")
    ]
    return sum(found) if found else None


def _unwritten(proc: str) -> Optional[int]:
    """Bytes of files that are in memory only, or on their way to a disk."""
    told = dict(_pair(line) for line in (read_text(f"{proc}/meminfo") or "").splitlines())
    sizes = [_whole(told.get(name, "").partition(" ")[0]) for name in ("Dirty", "Writeback")]
    return None if None in sizes else sum(each or 0 for each in sizes) * 1024


def _sent(proc: str) -> Dict[str, Tuple[int, int]]:
    """{interface: bytes (received, sent)}, without the loopback."""
    found = {}
    for line in (read_text(f"{proc}/net/dev") or "").splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and name.strip() != "lo" and len(words) >= 9:
            found[name.strip()] = int(words[0]), int(words[8])
    return found


def between(before: Snapshot, after: Snapshot) -> Dict[str, Any]:
    """What was used: of each process `cores`, `written_rate`, `read_rate` and `waited` (a share of the time); of the
    machine `busy` (a share), `stalled` (a share of the time), `disk_rate` (bytes a second that its disks have written)
    and `unwritten_rate`: what they may have written of that although it was of before.
    """
    seconds = max(after.at - before.at, 1e-9)
    processes = {}
    for key, now in after.processes.items():
        was = before.processes.get(key)
        if was is not None and now.cpu_seconds >= was.cpu_seconds:
            processes[key] = {
                "cores": (now.cpu_seconds - was.cpu_seconds) / seconds,
                "written_rate": _rate(was.written, now.written, seconds),
                "read_rate": _rate(was.read, now.read, seconds),
                "waited": _rate(was.waited, now.waited, seconds),
            }
    return {
        "processes": processes,
        "busy": _busy(before.machine, after.machine),
        "stalled": _rate(before.stalled_seconds, after.stalled_seconds, seconds),
        "disk_rate": _rate(before.disk_bytes, after.disk_bytes, seconds),
        "unwritten_rate": None if before.unwritten is None else before.unwritten / seconds,
    }


def network_rates(before: Snapshot, after: Snapshot) -> Dict[str, float]:
    """{interface: bytes a second} of its busier direction: a card carries as much in each at the same time."""
    seconds = max(after.at - before.at, 1e-9)
    return {
        name: max(now - was for now, was in zip(numbers, before.sent[name])) / seconds
        for name, numbers in after.sent.items()
        if name in before.sent
    }


def fullest(
    rates: Mapping[str, float], speeds: Mapping[str, int]
) -> Tuple[Optional[float], Optional[int]]:
    """(bytes a second, bits a second at most) of the interface that has least left; the latter None if none tells.

    `speeds`: {interface: bits a second}.
    """
    known = [(rates[name] / speeds[name], name) for name in rates if speeds.get(name)]
    if not known:
        return max(rates.values(), default=None), None
    name = max(known)[1]
    return rates[name], speeds[name]


def _busy(
    before: Optional[Tuple[float, float]], after: Optional[Tuple[float, float]]
) -> Optional[float]:
    if before is None or after is None or after[1] <= before[1]:
        return None
    return (after[0] - before[0]) / (after[1] - before[1])


def _rate(before: Optional[float], after: Optional[float], seconds: float) -> Optional[float]:
    return None if before is None or after is None else (after - before) / seconds


def _pair(line: str) -> Tuple[str, str]:
    name, _colon, value = line.partition(":")
    return name.strip(), value.strip()


def _whole(text: Optional[str]) -> Optional[int]:
    return int(text) if text and text.isdigit() else None
