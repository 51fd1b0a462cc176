# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""A process that listens in the place of an instance that does not run yet, and says which host it is on.

So whether others get through is known before anything is started. It ends when it is told to, and by itself
after a while, whoever has forgotten it. Its name in /proc says what it is, so that no later run takes it for a
stranger who holds the port.
"""

from __future__ import annotations

import errno
import os
import selectors
import signal
import socket
import ssl
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import (
    in_background,
    start_ticks,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.network_facts import (
    STAND_IN,
    is_stand_in,
    listening_sockets,
    socket_owners,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

GREETING = "kafkaops stands in for"
# Between two tries of what may be there in a moment.
RETRY_SECONDS = 1.0
# Longer than any such line.
LINE_MAX = 400


class StillThere(Exception):
    """A stand-in does not end."""


def greeting(name: str, port: int) -> str:
    """The line that a stand-in for a host says at a port."""
    return f"{GREETING} {name} {port}"


# ---------------------------------------------------------------- where it listens


def stand_in(
    name: str, ports: Sequence[Mapping[str, Any]], seconds: float
) -> Tuple[Optional[Dict[str, int]], List[int], List[Dict[str, Any]]]:
    """Listen on ports, dicts of `port bind`, in a process of its own.

    Returns (its `pid` and `start_ticks`, None without a port to listen on; the ports; those where it cannot
    listen, as `port reason`).
    """
    sockets: Dict[int, socket.socket] = {}
    refused: List[Dict[str, Any]] = []
    for each in ports:
        port = int(each["port"])
        try:
            try:
                sockets[port] = _bound(str(each["bind"]), port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE or not _end_what_was_left(port):
                    raise
                sockets[port] = _bound(str(each["bind"]), port)
        except OSError as error:
            refused.append({"port": port, "reason": error.strerror or str(error)})
    try:
        pid = in_background(lambda: _serve(name, sockets, seconds)) if sockets else None
    finally:
        for opened in sockets.values():
            opened.close()
    if pid is None:
        return None, [], refused
    return {"pid": pid, "start_ticks": start_ticks(pid) or 0}, sorted(sockets), refused


def _bound(bind: str, port: int) -> socket.socket:
    bind = bind.strip("[]")
    found = socket.getaddrinfo(bind or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # With all addresses meant, the one socket that takes both families.
    found.sort(key=lambda item: item[0] != socket.AF_INET6 if not bind else 0)
    problem: Optional[OSError] = None
    for family, kind, protocol, _name, address in found:
        try:
            opened = socket.socket(family, kind, protocol)
        except OSError as error:
            problem = error
            continue
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6 and not bind:
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            opened.bind(address)
            opened.listen(64)
            return opened
        except OSError as error:
            opened.close()
            problem = error
            if error.errno == errno.EADDRINUSE:
                break
    raise problem or OSError(errno.EADDRNOTAVAIL, "no such address")


def _serve(name: str, sockets: Mapping[int, socket.socket], seconds: float) -> None:
    with open("/proc/self/comm", "w", encoding="ascii") as handle:
        handle.write(STAND_IN)
    signal.setitimer(signal.ITIMER_REAL, seconds)  # nobody handles it: the process ends
    with selectors.DefaultSelector() as selector:
        for port, each in sockets.items():
            each.setblocking(False)
            selector.register(each, selectors.EVENT_READ, port)
        # Connections stay open until the other side has read: who closes first keeps the port for a while.
        answered: List[socket.socket] = []
        while True:
            for key, _events in selector.select():
                try:
                    connection, _address = sockets[key.data].accept()
                    connection.sendall((greeting(name, key.data) + "\n").encode("utf-8"))
                    answered.append(connection)
                except OSError:
                    continue


def end(process: Mapping[str, int], seconds: float = 5.0) -> bool:
    """End a stand-in and return whether it was there; StillThere where it does not end."""
    pid = int(process["pid"])

    def gone() -> bool:
        return start_ticks(pid) != int(process["start_ticks"])

    if gone() or not is_stand_in(pid):
        return False
    os.kill(pid, signal.SIGKILL)
    if not wait_until(gone, seconds):
        raise StillThere(f"process {pid} does not end")
    return True


def _end_what_was_left(port: int) -> bool:
    """End the stand-in that an earlier run has left on a port; return whether there was one."""
    inodes = [each["inode"] for each in listening_sockets() if each["port"] == port]
    pids = [pid for pid in socket_owners(inodes).values() if is_stand_in(pid)]
    ended = [end({"pid": pid, "start_ticks": start_ticks(pid) or 0}) for pid in pids]
    return any(ended)


# ---------------------------------------------------------------- from where it is tried


def tried(
    name: str, address: str, port: int, seconds: float, runs: bool = False, authorities: str = ""
) -> Tuple[str, str]:
    """Connect to where the stand-in for host `name` should be: (the step that failed or "", words on it).

    Where the instance itself runs, it is enough that the connection comes about. The steps: `name`, `port`,
    `protocol` where no stand-in answers, `broker` where that of another host does, and `listener` where the host is
    right and the port is not; `certificate` where the instance runs, and none of `authorities`, a file of them, has
    signed for it.
    """
    address = address.strip("[]")
    try:
        socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return "name", f"the name does not resolve ({error.strerror or error})"
    try:
        connection = socket.create_connection((address, port), timeout=seconds)
    except socket.timeout:
        return "port", "timed out"
    except OSError as error:
        return "port", error.strerror or str(error)
    if runs:
        with connection:
            return _certified(connection, authorities) if authorities else ("", "")
    try:
        with connection, connection.makefile("r", encoding="utf-8", errors="replace") as lines:
            line = lines.readline(LINE_MAX).rstrip("\n")
    except OSError as error:
        return "protocol", f"nothing comes after the connection ({error.strerror or error})"
    if line == greeting(name, port):
        return "", ""
    if not line.startswith(GREETING):
        return "protocol", "something else answers"
    host, _blank, number = line[len(GREETING) :].strip().rpartition(" ")
    return "listener" if host == name else "broker", f"port {number} of {host} answers"


def tried_for(
    attempt: Callable[[], Tuple[str, str]],
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Tuple[str, str]:
    """What `attempt` gives, as `tried` does; made again for some seconds as long as a step fails."""
    last = ("", "")

    def reached() -> bool:
        nonlocal last
        last = attempt()
        return not last[0]

    wait_until(reached, seconds, clock, sleep, RETRY_SECONDS)
    return last


def _certified(connection: socket.socket, authorities: str) -> Tuple[str, str]:
    """Whether who is at the other end has a certificate of one of these authorities.

    Who shows none itself may be turned away, or answered in another protocol: that is not the question.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    # To Java each certificate of the file is an authority, also one that another has signed.
    context.verify_flags |= getattr(ssl, "VERIFY_X509_PARTIAL_CHAIN", 0x80000)
    try:
        context.load_verify_locations(cafile=authorities)
        context.wrap_socket(connection).close()
    except ssl.SSLCertVerificationError as error:
        return "certificate", error.verify_message
    except OSError:
        pass
    return "", ""
