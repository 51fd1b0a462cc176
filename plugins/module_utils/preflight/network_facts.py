# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Read-only probes of one host's network: who listens, its addresses, its ports, how it resolves names."""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import read_text

# A listening socket in /proc/net/tcp (include/net/tcp_states.h).
TCP_LISTEN = "0A"
RESOLVE_DEADLINE_SECONDS = 5.0

# What the kernel calls a process of ours that holds a port until an instance is started; at most 15 characters.
STAND_IN = "kafkaops-ports"


def command_line(pid: int, proc: str = "/proc") -> str:
    """The process's command line, blanks between the arguments; empty where it is hidden."""
    text = read_text(os.path.join(proc, str(pid), "cmdline"))
    return (text or "").replace("\0", " ").strip()


def _address(hexadecimal: str) -> str:
    """`0100007F` of /proc/net/tcp as 127.0.0.1; IPv6 in the same way."""
    raw = bytes.fromhex(hexadecimal)
    # The kernel prints 32-bit words in host order (little endian wherever Kafka runs).
    words = [raw[at : at + 4][::-1] for at in range(0, len(raw), 4)]
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
    address = socket.inet_ntop(family, b"".join(words))
    return address[7:] if address.startswith("::ffff:") and "." in address else address


def listening_sockets(proc: str = "/proc") -> List[Dict[str, Any]]:
    """All listening TCP sockets: [{port, address, inode, uid}]."""
    found = []
    for table in ("net/tcp", "net/tcp6"):
        for line in (read_text(os.path.join(proc, table)) or "").splitlines()[1:]:
            fields = line.split()
            if len(fields) < 10 or fields[3] != TCP_LISTEN:
                continue
            address, _colon, port = fields[1].rpartition(":")
            found.append(
                {
                    "port": int(port, 16),
                    "address": _address(address),
                    "inode": fields[9],
                    "uid": int(fields[7]),
                }
            )
    return found


def socket_owners(inodes: Iterable[str], proc: str = "/proc") -> Dict[str, int]:
    """Which process holds which socket inode. Processes of other users stay invisible."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    owners: Dict[str, int] = {}
    for name in os.listdir(proc):
        if len(owners) == len(wanted):
            break
        if not name.isdigit():
            continue
        directory = os.path.join(proc, name, "fd")
        try:
            descriptors = os.listdir(directory)
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                target = os.readlink(os.path.join(directory, descriptor))
            except OSError:
                continue
            if target in wanted:
                owners.setdefault(wanted[target], int(name))
    return owners


def is_stand_in(pid: int, proc: str = "/proc") -> bool:
    """Whether a process listens in the place of an instance that does not run yet; see stand_in.py."""
    return (read_text(os.path.join(proc, str(pid), "comm")) or "").strip() == STAND_IN


def held_sockets(proc: str = "/proc") -> List[Dict[str, Any]]:
    """All listening TCP sockets with their processes: [{port, address, inode, uid, pid}]; pid None where unknown."""
    sockets = listening_sockets(proc)
    owners = socket_owners([each["inode"] for each in sockets], proc)
    if len(owners) < len(sockets):
        # One that was closed while we looked for its process is not a stranger's: nobody listens there any more.
        open_still = {each["inode"] for each in listening_sockets(proc)}
        sockets = [each for each in sockets if each["inode"] in open_still]
    return [{**each, "pid": owners.get(each["inode"])} for each in sockets]


def port_holders(
    our_pids: Iterable[int],
    our_paths: Iterable[str],
    proc: str = "/proc",
    sockets: Optional[Sequence[Mapping[str, Any]]] = None,
) -> List[Dict[str, Any]]:
    """Who listens on which port: [{port, address, pid, command, ours}].

    All ports, not only the wanted ones: which are wanted may depend on an id that is assigned only
    when every host has answered. Ours is a process that our launcher recorded, or one whose command
    line names our configuration (an instance whose record was lost is still no stranger). Root in a
    container may not look into processes of other users: there a socket is ours whose user is that
    of our process. `sockets`: what `held_sockets` has found already.
    """
    pids = set(our_pids)
    uids = {uid for uid in (_owner(pid, proc) for pid in pids) if uid}
    paths = [path.rstrip("/") + "/" for path in our_paths if path]
    holders = []
    for each in held_sockets(proc) if sockets is None else sockets:
        pid = each["pid"]
        if pid and is_stand_in(pid, proc):
            continue  # a killed run has left it; it is ended as soon as its port is needed
        command = command_line(pid, proc) if pid else ""
        holders.append(
            {
                "port": each["port"],
                "address": each["address"],
                "pid": pid,
                # The program alone: arguments of other people's processes may be secrets.
                "command": command.split(" ")[0],
                "ours": pid in pids
                or any(path in command for path in paths)
                or (pid is None and each["uid"] in uids),
            }
        )
    return holders


def _owner(pid: int, proc: str) -> Optional[int]:
    """The user that a process belongs to; root counts as nobody, because it owns too much."""
    try:
        return os.stat(os.path.join(proc, str(pid))).st_uid or None
    except OSError:
        return None


def local_addresses(proc: str = "/proc") -> List[str]:
    """The addresses of this host's interfaces, loopback included; empty where the kernel does not tell.

    Source: Linux, the local entries of the routing trie, and net/if_inet6.
    """
    found, address = set(), ""
    for line in (read_text(os.path.join(proc, "net/fib_trie")) or "").splitlines():
        if "|-- " in line:
            address = line.split("|-- ", 1)[1].strip()
        elif "/32 host LOCAL" in line:
            found.add(address)
    for line in (read_text(os.path.join(proc, "net/if_inet6")) or "").splitlines():
        # unlike the tables of sockets, these are in the order of the network
        found.add(socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line.split()[0])))
    return sorted(found)


def ephemeral_ports(proc: str = "/proc") -> Dict[str, Any]:
    """Ports that the kernel uses for outgoing connections: {first, last, reserved: [[first, last]]}.

    First and last are 0 where the kernel does not tell. Source: Linux, networking/ip-sysctl.
    """
    directory = os.path.join(proc, "sys/net/ipv4")
    bounds = (read_text(os.path.join(directory, "ip_local_port_range")) or "0 0").split()
    reserved = []
    kept = (read_text(os.path.join(directory, "ip_local_reserved_ports")) or "").strip()
    for part in kept.split(",") if kept else []:
        first, _dash, last = part.partition("-")
        reserved.append([int(first), int(last or first)])
    return {"first": int(bounds[0]), "last": int(bounds[1]), "reserved": reserved}


def resolve_names(
    names: Iterable[str],
    deadline_seconds: float = RESOLVE_DEADLINE_SECONDS,
    resolver: Optional[Callable[[str], Iterable[Any]]] = None,
) -> Dict[str, Any]:
    """name -> {addresses, error} as this host's own resolver sees it, all names at once.

    A dead name server must not hold the run for minutes: what has no answer at the deadline is
    reported as such, and its thread is left to die with the module's process.
    """
    look_up = resolver or (lambda name: socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM))
    answers: Dict[str, Any] = {}

    def ask(name: str) -> None:
        try:
            found = look_up(name)
            answers[name] = {"addresses": sorted({each[4][0] for each in found}), "error": None}
        except (OSError, UnicodeError) as error:
            text = getattr(error, "strerror", None) or str(error)
            answers[name] = {"addresses": [], "error": text}

    wanted = sorted(set(names))
    threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in wanted]
    for thread in threads:
        thread.start()
    end = time.monotonic() + deadline_seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    late = {"addresses": [], "error": f"no answer within {deadline_seconds:g} s"}
    return {name: answers.get(name, late) for name in wanted}
