# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster of drills that could cost records: where it lies, whose it is, and its end.

Private to this collection. Standard library only. It lies below one directory, with a marker that names the
playbook's process. A guard removes the cluster when that process ends, however it did; where there is no guard any
more, whoever finds the marker of a process that is gone removes the cluster.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
from typing import (
    Any,
    Callable,
    ContextManager,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    PARTIAL,
    exclusive,
    json_text,
    read_text,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import (
    in_background,
    start_ticks,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ProblemError,
    refusal,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

NAME = "throwaway"
MARKER = "throwaway.json"
BROKERS = (1, 2, 3)
# As in inventories/local, whose variables it has.
PORTS = (2181, 2888, 3888, *(9091 + each for each in BROKERS))
# Above the ports that people take, below those that Linux lends to clients.
OFFSETS = range(10000, 20000, 20)
# Set for what the drill starts itself, to the directory; supervisord passes no variables on.
VARIABLE = "KAFKAOPS_THROWAWAY"
SUPERVISOR = "supervisor.supervisord"
# Their script is their second word.
SHELLS = ("python", "bash", "sh", "dash")
END_SECONDS = 30.0
GUARD_SECONDS = 0.5
# Settings that Kafka has, and tells nobody of, begin so.
INTERNAL = "log.initial."
SETTINGS = {
    # a broker that hangs is out of sync soon, and one that was killed may soon register again
    "zookeeper.session.timeout.ms": 6000,
    # how far logs are flushed is noted often, and from the start; that a disk is gone is seen then, too
    "log.flush.offset.checkpoint.interval.ms": 250,
    f"{INTERNAL}task.delay.ms": 1000,
}


def inventory() -> Dict[str, Any]:
    """One ZooKeeper server, three brokers."""
    brokers = {f"kafka-{each}": {"kafka_broker_id": each} for each in BROKERS}
    settings = {"kafka_config": SETTINGS, "kafka_plugin_prefixes": [INTERNAL]}
    return {
        "all": {
            "vars": {"local_cluster_name": NAME},
            "children": {
                "zookeeper": {"hosts": {"zookeeper-1": {"zookeeper_myid": 1}}},
                "kafka": {"hosts": brokers, "vars": settings},
            },
        }
    }


def free_offset(offsets: Iterable[int], free: Callable[[int], bool]) -> Optional[int]:
    """The first offset of which all ports are free; None if there is none."""
    return next((each for each in offsets if all(free(port + each) for port in PORTS)), None)


def port_is_free(port: int) -> bool:
    """Whether somebody could listen on it, on the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def state_dir(home: str, broker: int) -> str:
    """Directory of a broker's start record."""
    return os.path.join(home, "clusters", NAME, f"kafka-{broker}", "run")


def data_dir(home: str, broker: int) -> str:
    """Directory of a broker's logs."""
    return os.path.join(home, "clusters", NAME, f"kafka-{broker}", "data")


def supervisor_pid(home: str) -> int:
    """The pid of the supervisord that starts its processes again. OSError or ValueError if there is none."""
    with open(
        os.path.join(home, "clusters", NAME, "supervisor", "supervisord.pid"), encoding="ascii"
    ) as handle:
        return int(handle.read())


def marked(home: str) -> bool:
    """Whether a drill has made this directory."""
    return os.path.isfile(os.path.join(home, MARKER))


def prepare(home: str, owner: int, variables: str) -> Dict[str, Any]:
    """Make the directory with its marker and inventory; returns what a deployment needs.

    `owner`: pid of the playbook's process; `variables`: group_vars of a local inventory. What a killed
    drill has left is removed before. ProblemError where the directory is somebody else's.
    """
    os.makedirs(os.path.dirname(home), exist_ok=True)
    with _turn(home):
        return _prepare(home, owner, variables)


def _prepare(home: str, owner: int, variables: str) -> Dict[str, Any]:
    ended = _removed(home, owner)
    turn = owner % len(OFFSETS)
    offset = free_offset([*OFFSETS[turn:], *OFFSETS[:turn]], port_is_free)
    if offset is None:
        raise refusal(
            "drill.no_ports",
            f"ports={OFFSETS.start + PORTS[0]}...",
            "none are free for a cluster of the drill's own",
            "see with ss -ltn who has them",
        )
    # whoever comes second fails here
    os.mkdir(home, 0o700)
    mark = {"pid": owner, "start_ticks": start_ticks(owner), "directory": home}
    # before anything else is there: without it nobody would dare to remove what a killed run has left
    write_atomically(os.path.join(home, MARKER), json_text(mark))
    folder = os.path.join(home, "inventory")
    os.mkdir(folder)
    # JSON is YAML
    write_atomically(os.path.join(folder, "hosts.yml"), json_text(inventory()))
    os.symlink(variables, os.path.join(folder, "group_vars"))
    return {
        "ended": ended,
        "inventory": folder,
        "offset": offset,
        "bootstrap_servers": [f"127.0.0.1:{9091 + each + offset}" for each in BROKERS],
    }


def removed(home: str, owner: int) -> List[int]:
    """Kill what runs of it and remove the directory; returns the pids, none where there is none.

    ProblemError where no drill has made it, or where the one that did still runs and is not `owner`.
    """
    if not os.path.lexists(home):
        return []
    with _turn(home):
        return _removed(home, owner)


def _turn(home: str) -> ContextManager[int]:
    """One at a time removes and makes the directory: a guard and the next drill may want to at once."""
    return exclusive(f"{home}.lock")


def guard(home: str, owner: int) -> None:
    """Leave a process behind that removes the cluster once `owner` has ended, by Ctrl-C or however it did.

    It is in no group and session of the playbook's, so that what ends those leaves it, and it is gone when
    the cluster is.
    """
    # not of the process: it may be gone by now
    ticks = _mark(home).get("start_ticks")
    in_background(lambda: _keep_guard(home, owner, ticks))


def _keep_guard(home: str, owner: int, ticks: Optional[int]) -> None:
    def over() -> bool:
        return start_ticks(owner) != ticks or not _is_of(home, owner, ticks)

    wait_until(over, float("inf"), poll_seconds=GUARD_SECONDS)
    with _turn(home), contextlib.suppress(ProblemError):
        if _is_of(home, owner, ticks):
            _removed(home, owner)


def _is_of(home: str, owner: int, ticks: Optional[int]) -> bool:
    mark = _mark(home)
    return (mark.get("pid"), mark.get("start_ticks")) == (owner, ticks)


def _mark(home: str) -> Mapping[str, Any]:
    # a text of somebody else's that is not JSON names no directory
    with contextlib.suppress(ValueError):
        mark: Mapping[str, Any] = json.loads(read_text(os.path.join(home, MARKER)) or "{}")
        return mark
    return {}


def _removed(home: str, owner: int) -> List[int]:
    if not os.path.lexists(home):
        return []
    _check_ours(home, owner)
    ended: Dict[int, None] = {}

    def quiet() -> bool:
        # the oldest first: supervisord starts the others again
        found = sorted(_running(home), key=lambda each: start_ticks(each) or 0)
        for each in found:
            ended[each] = None
            with contextlib.suppress(OSError):
                os.kill(each, signal.SIGKILL)
        return not found

    if not wait_until(quiet, END_SECONDS):
        raise refusal(
            "drill.throwaway_alive",
            f"directory={home}",
            f"processes {', '.join(map(str, _running(home)))} do not end",
            "end them, and run the drill again",
        )
    _delete(home)
    return list(ended)


def _check_ours(home: str, owner: int) -> None:
    """ProblemError unless a drill has made the directory that is over, or is `owner`."""
    names = [] if os.path.islink(home) else os.listdir(home)
    # killed before the marker had its name
    begun = all(each.startswith(f"{PARTIAL}{MARKER}") for each in names)
    mark = _mark(home)
    if os.path.islink(home) or not begun and mark.get("directory") != home:
        raise refusal(
            "drill.throwaway_foreign",
            f"directory={home}",
            f"it has no {MARKER} that names it, so no drill has made it",
            "move it away, or set KAFKAOPS_HOME to another directory",
        )
    pid, ticks = mark.get("pid"), mark.get("start_ticks")
    if pid and pid != owner and ticks is not None and start_ticks(pid) == ticks:
        raise refusal(
            "drill.throwaway_busy",
            f"directory={home}",
            f"the drill of process {pid} has its cluster there",
            "wait until it has ended",
        )


def _delete(home: str) -> None:
    """Delete the directory, the marker last: who is killed meanwhile leaves one that is still known."""
    for name in os.listdir(home):
        path = os.path.join(home, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif name != MARKER:
            os.unlink(path)
    shutil.rmtree(home)


def belongs(words: Sequence[str], variables: Sequence[str], home: str) -> bool:
    """Whether a process with this command line and these NAME=VALUE is one of the cluster in `home`.

    It is if the drill has started it (its variable says so), if its program or script lies there, or if it is
    the supervisord or a Java of there. Others that name files of there, such as an editor, are somebody's.
    """
    if f"{VARIABLE}={home}" in variables:
        return True
    inside = os.path.join(home, "")
    program = os.path.basename(words[0]) if words else ""
    if words and words[0].startswith(inside):
        return True
    if program == "java" or SUPERVISOR in words:
        return any(inside in each for each in words)
    return program.startswith(SHELLS) and len(words) > 1 and words[1].startswith(inside)


def _running(home: str) -> Iterator[int]:
    """Processes of this user that belong to the cluster, but for the ones above this one."""
    above = set(_ancestors(os.getpid()))
    for pid in (int(each) for each in os.listdir("/proc") if each.isdigit()):
        with contextlib.suppress(OSError):
            if pid in above or os.stat(f"/proc/{pid}").st_uid != os.getuid():
                continue
            if belongs(_texts(pid, "cmdline"), _texts(pid, "environ"), home):
                # not a zombie
                if start_ticks(pid) is not None:
                    yield pid


def _texts(pid: int, name: str) -> List[str]:
    with open(f"/proc/{pid}/{name}", "rb") as handle:
        return [os.fsdecode(each) for each in handle.read().split(b"\0")]


def _ancestors(pid: int) -> Iterator[int]:
    """The process, its parent, and so on."""
    while pid > 0:
        yield pid
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            pid = int(handle.read().rsplit(") ", 1)[1].split()[1])
