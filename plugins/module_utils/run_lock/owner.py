# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Who holds a cluster's lock: one run of ansible-playbook, by controller, process and start time.

Standard library only: members of a cluster read it, too.
"""

from __future__ import annotations

import getpass
import hashlib
import multiprocessing
import os
import re
import socket
import time
from dataclasses import asdict, dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import read_text
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks

# Stands for a holder whose file nobody can read.
UNREADABLE = "unreadable"
# The kernel's number of the first process name space: that of no container (PROC_PID_INIT_INO).
FIRST_PID_SPACE = 4026531836
RUN_ENDED = "the run that this task belongs to has ended"


@dataclass(frozen=True)
class Owner:
    """A run that holds, or wants, the lock of one cluster.

    `host`: the controller's name; `place`: its boot and process name space, which tell two containers
    of one name apart, and a process from one before a reboot; `pid`, `start_ticks`: the process of
    ansible-playbook, and its start in clock ticks since boot; `taken_at`: seconds since the epoch;
    `machine`: what stays the same of this controller through a reboot, "" of a container and where it is unknown.
    """

    host: str
    place: str
    pid: int
    start_ticks: int
    user: str
    playbook: str
    cluster: str
    taken_at: int
    machine: str = ""

    @property
    def id(self) -> str:
        """What `kafkaops_break_lock` has to be: one word that no other run has."""
        return f"{self.host}:{self.pid}:{self.start_ticks}"

    def is_same(self, other: Optional[Owner]) -> bool:
        """Whether both are the same process; when they took which lock does not matter."""
        return other is not None and (self.id, self.place) == (other.id, other.place)

    def described(self) -> str:
        """The owner in words, without what it does."""
        if self.host == UNREADABLE:
            return "somebody (the file of the lock cannot be read)"
        when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(self.taken_at))
        return f"{self.playbook} (process {self.pid} of {self.user} on {self.host}, since {when})"

    def to_dict(self) -> Dict[str, Any]:
        """As it is written."""
        return {**asdict(self), "owner": self.id}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Owner:
        """Return the owner that was written; raises ValueError, KeyError or TypeError."""
        return cls(
            host=str(found["host"]),
            place=str(found["place"]),
            pid=int(found["pid"]),
            start_ticks=int(found["start_ticks"]),
            user=str(found["user"]),
            playbook=str(found["playbook"]),
            cluster=str(found["cluster"]),
            taken_at=int(found["taken_at"]),
            machine=str(found.get("machine") or ""),  # earlier releases wrote none
        )


def place_of(proc: str = "/proc") -> str:
    """Return boot id and process name space of this machine or container, "" where they are unknown."""
    try:
        with open(f"{proc}/sys/kernel/random/boot_id", encoding="utf-8") as source:
            boot = source.read().strip()
        space = os.readlink(f"{proc}/self/ns/pid")
    except OSError:
        return ""
    return f"{boot}/{re.sub('[^0-9]', '', space)}"


def machine_of(
    proc: str = "/proc", paths: Sequence[str] = ("/etc/machine-id", "/var/lib/dbus/machine-id")
) -> str:
    """Return an id of this machine that outlives a reboot, "" in a container and where there is none.

    The machine id itself is not to be shown to others, by its manual. An image of a container may bring
    one that many have.
    """
    try:
        if os.readlink(f"{proc}/self/ns/pid") != f"pid:[{FIRST_PID_SPACE}]":
            return ""
    except OSError:
        return ""
    for path in paths:
        found = (read_text(path) or "").strip()
        if re.fullmatch("[0-9a-f]{32}", found):
            return hashlib.sha256(f"kafkaops {found}".encode()).hexdigest()[:16]
    return ""


def booted_at(proc: str = "/proc") -> float:
    """Return when this machine was started, in seconds since the epoch; 0 where it does not tell."""
    found = re.search(r"^btime (\d+)$", read_text(f"{proc}/stat") or "", re.MULTILINE)
    return float(found[1]) if found else 0.0


def user_name() -> str:
    """Return the name of the user, or its number where it has none, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def owner_of(
    pid: int, playbook: str, cluster: str, taken_at: float, proc: str = "/proc"
) -> Optional[Owner]:
    """Return the Owner that a running process of this machine is; None if it has ended."""
    ticks = start_ticks(pid, proc)
    if ticks is None:
        return None
    return Owner(
        host=re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()) or "unnamed",
        place=place_of(proc),
        pid=pid,
        start_ticks=ticks,
        user=user_name(),
        playbook=playbook,
        cluster=cluster,
        taken_at=int(taken_at),
        machine=machine_of(proc),
    )


def this_run(proc: str = "/proc") -> Tuple[int, int]:
    """Return (pid, start in clock ticks since boot) of the ansible-playbook that this worker of it was forked from.

    A worker can outlive its run, and has another parent then. LookupError, with words for people, once the run has
    ended, and on a machine that does not tell.
    """
    parent = multiprocessing.parent_process()
    pid = (parent and parent.pid) or os.getppid()
    ticks = start_ticks(pid, proc) if pid == os.getppid() else None
    if ticks is None and not os.path.exists(f"{proc}/self/stat"):
        raise LookupError(
            "the machine that runs Ansible shows no processes in /proc, as Linux does"
        )
    if ticks is None:
        raise LookupError(RUN_ENDED)
    return pid, ticks


def as_option(proc: str = "/proc") -> Dict[str, int]:
    """Return this run as the option `run` of modules that can outlive it has it; LookupError as `this_run`."""
    pid, ticks = this_run(proc)
    return {"pid": pid, "start_ticks": ticks}


def can_be_seen(holder: Owner, viewer: Owner) -> bool:
    """Whether the viewer's machine can tell if the holder still runs."""
    here = (viewer.host, viewer.place)
    return bool(viewer.place) and (holder.host, holder.place) == here


def has_ended(pid: int, ticks: int, proc: str = "/proc") -> bool:
    """Whether the process that started at `ticks` has certainly ended; a zombie has.

    Where /proc shows nobody the processes of others (hidepid), a process that is there counts as it.
    """
    found = start_ticks(pid, proc)
    if found is not None or os.access(f"{proc}/{pid}/stat", os.R_OK):
        return found != ticks
    try:
        os.kill(pid, 0)
    except PermissionError:
        return False
    except ProcessLookupError:
        return True
    return True  # ours, and it ended between the two looks


def ended_with_its_boot(holder: Owner, viewer: Owner, booted: float) -> bool:
    """Whether the holder ran on the viewer's machine before that was started, `booted` seconds since the epoch.

    A lock that was taken later is one of another machine, that was made as a copy of this one.
    """
    same = (holder.host, holder.machine) == (viewer.host, viewer.machine)
    known = bool(viewer.machine and holder.place and viewer.place)
    boots = [each.place.split("/")[0] for each in (holder, viewer)]
    return known and same and boots[0] != boots[1] and holder.taken_at < booted


def is_gone(holder: Owner, viewer: Owner, proc: str = "/proc") -> bool:
    """Whether the holder has certainly ended. Of another machine or container that is never certain."""
    if can_be_seen(holder, viewer):
        return has_ended(holder.pid, holder.start_ticks, proc)
    return ended_with_its_boot(holder, viewer, booted_at(proc))
