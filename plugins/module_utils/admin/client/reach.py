# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a cluster cannot be reached: one word for the cause, one problem for people.

Private to this collection. Plain sockets and librdkafka's own words; imports no client library.
"""

from __future__ import annotations

import collections
import errno
import logging
import os
import re
import selectors
import socket
import ssl
import time
from typing import Any, Callable, Counter, List, Optional, Sequence, Tuple, cast

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint, endpoints
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    OAUTHBEARER,
    Connection,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

Address = Tuple[str, int]
UNREACHABLE = "connection.unreachable"
PROTOCOL = "connection.protocol"
CREDENTIALS = "connection.credentials"
CERTIFICATE = "connection.certificate"
LISTENER = "connection.listener"


def connection_problem(connection: Connection, verdict: Optional[str], detail: str) -> Problem:
    """What is wrong with a connection. `verdict` as of ConnectionLog.verdict, `detail` its last words."""
    protocol = connection.security_protocol
    encrypted = protocol.endswith("SSL")
    if verdict == "closed" and speaks_tls(connection.addresses) != encrypted:
        verdict = "not_tls" if encrypted else "tls"
    wants = "SASL or a client certificate" if encrypted else "SASL"
    because = f": {detail.rstrip('.: ')}" if detail else ""
    within = f"within {connection.timeout:g} s"
    problems = {
        "closed": (
            PROTOCOL,
            f"wrong protocol: it accepts connections but closes them when spoken to in {protocol}; "
            f"the listener wants {wants}, or is not Kafka's",
            "set security_protocol, or name a listener of a broker",
        ),
        "tls": (
            PROTOCOL,
            f"wrong protocol: it speaks TLS, not {protocol}",
            "set security_protocol to SSL or SASL_SSL",
        ),
        "not_tls": (
            PROTOCOL,
            f"wrong protocol: it does not speak TLS, security_protocol is {protocol}",
            "set it to PLAINTEXT or SASL_PLAINTEXT, or name the TLS listener",
        ),
        "not_sasl": (
            PROTOCOL,
            f"wrong protocol: the listener wants no SASL, security_protocol is {protocol}",
            "set it to PLAINTEXT or SSL",
        ),
        "mechanism": (
            CREDENTIALS,
            f"wrong credentials: it does not offer the mechanism {connection.sasl_mechanism}"
            f"{because}",
            "set sasl_mechanism",
        ),
        "credentials": (
            CREDENTIALS,
            f"wrong credentials: it refuses user {connection.sasl_username} by "
            f"{connection.sasl_mechanism}{because}",
            (
                "ask for the scope and the audience that the brokers expect, by sasl_scope and at the provider"
                if connection.sasl_mechanism == OAUTHBEARER
                else "correct sasl_username or sasl_password"
            ),
        ),
        "certificate": (
            CERTIFICATE,
            f"certificate not trusted{because}",
            "set ssl_ca, or ssl_check_hostname if only the name differs",
        ),
        "tls_failed": (
            CERTIFICATE,
            f"TLS failed{because}",
            "a client certificate is needed, or another one: set ssl_certificate and ssl_key",
        ),
        "controller": (LISTENER, "wrong listener: it is a KRaft controller", "name a broker"),
        "nobody_behind": (
            UNREACHABLE,
            f"unreachable: it accepts connections and closes them before anything is sent, for {within[7:]}; a "
            "proxy or forwarded port without a broker behind it does so",
            "start the broker, or correct the address",
        ),
    }
    default = (
        UNREACHABLE,
        f"unreachable: no Kafka broker answered {within}{because}",
        "start a broker there (playbooks/start.yml starts what is down), or correct the address",
    )
    check, reason, remedy = problems.get(verdict or "", default)
    return Problem(check, reason, remedy, (connection.bootstrap,))


class ConnectionLog(logging.Handler):
    """Remembers what librdkafka says about its connections, to explain a failure."""

    # `10.0.0.1:9092/bootstrap: ` in front and ` (after 3ms in state ...)` behind.
    _AROUND = re.compile(r"^(?:\[thrd:[^\]]*\]: )?(.*?)(?: \(after \d+ms in state (\w+)[^)]*\))?$")

    # From TLS 1.3 on a broker refuses a client's certificate, or that there is none, only after the handshake: it
    # is not an error of TLS for librdkafka then.
    _REFUSED = re.compile(r"SSL alert number (4[2-9]|116)\b")

    # The problem has the address already.
    _ADDRESS = re.compile(r"^(\w+://)?\S+:\d+/(bootstrap|\d+): ")

    def __init__(self) -> None:
        super().__init__()
        self.last = ""
        self._closed = 0
        self._codes: Counter[str] = collections.Counter()

    def error(self, error: Any) -> None:
        """librdkafka's error callback."""
        if error.name() == "_ALL_BROKERS_DOWN":
            return
        self._codes[error.name()] += 1
        self._note(error.str())

    def emit(self, record: logging.LogRecord) -> None:
        """A log line of librdkafka."""
        text = record.getMessage()
        if text.startswith("FAIL "):
            self._note(text.split("]: ", 1)[-1].split("]: ", 1)[-1])

    @property
    def unsupported_mechanism(self) -> bool:
        """Whether the last that was heard is that the SASL mechanism is not offered."""
        return "Unsupported SASL mechanism" in self.last

    def _note(self, text: str) -> None:
        match = self._AROUND.match(text)
        line = self._ADDRESS.sub("", match.group(1) if match else text)
        # A proxy that throws away what the client has sent already resets the connection instead.
        if "connection closed by peer" in line or "onnection reset by peer" in line:
            self._closed += 1
            if self._codes["_SSL"] or self._codes["_AUTHENTICATION"] or self._certificate_refused:
                return  # it is known why
        self.last = line

    @property
    def _certificate_refused(self) -> bool:
        return self._REFUSED.search(self.last) is not None

    def verdict(self, error: Any) -> Optional[str]:
        """One word for what is hopeless, None while it may just take time."""
        text = self.last
        if error.name() == "_UNSUPPORTED_FEATURE":
            return "controller"
        if self._codes["_AUTHENTICATION"]:
            if "not valid in current SASL state" in text:
                return "not_sasl"
            return "mechanism" if self.unsupported_mechanism else "credentials"
        if "PLAINTEXT broker listener" in text or "wrong version number" in text:
            return "not_tls"
        if self._codes["_SSL"]:
            return "certificate" if "certificate verify failed" in text else "tls_failed"
        if self._certificate_refused:
            return "tls_failed"
        # Once or twice may be a broker that is just stopping.
        return "closed" if self._closed >= 3 else None


# ---------------------------------------------------------------- plain sockets


def probe_addresses(
    addresses: Sequence[Address], timeout: float, clock: Callable[[], float] = time.monotonic
) -> None:
    """Return as soon as one address accepts a connection; else AdminError with each one's error.

    Client libraries would try until the timeout and not say which address failed how.
    """
    deadline = clock() + timeout
    failures: List[str] = []
    with selectors.DefaultSelector() as selector:
        sockets: List[socket.socket] = []
        try:
            for host, port in addresses:
                address = endpoint(host, port)
                try:
                    targets = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                except OSError as error:
                    failures.append(f"{address}: the name does not resolve ({error.strerror})")
                    continue
                for family, kind, proto, _name, target in targets:
                    try:
                        plain = socket.socket(family, kind, proto)
                    except OSError as error:  # no IPv6 in this kernel
                        failures.append(f"{address}: {error.strerror}")
                        continue
                    sockets.append(plain)
                    plain.setblocking(False)
                    code = plain.connect_ex(target)
                    if code == 0:
                        return
                    if code in (115, 36, 10035):  # in progress: Linux, macOS, Windows
                        selector.register(plain, selectors.EVENT_WRITE, address)
                    else:
                        failures.append(f"{address}: {os.strerror(code)}")
            while selector.get_map() and clock() < deadline:
                for key, _events in selector.select(max(0, deadline - clock())):
                    code = cast(socket.socket, key.fileobj).getsockopt(
                        socket.SOL_SOCKET, socket.SO_ERROR
                    )
                    # Reset: it was accepted, and is closed already.
                    if code in (0, errno.ECONNRESET):
                        return
                    failures.append(f"{key.data}: {os.strerror(code)}")
                    selector.unregister(key.fileobj)
            for key in selector.get_map().values():
                failures.append(f"{key.data}: no answer within {timeout:g} s")
        finally:
            for plain in sockets:
                plain.close()
    reason = "; ".join(dict.fromkeys(failures))
    head = f"{endpoints(addresses)}: "
    if len(addresses) == 1:  # named once is enough
        reason = "; ".join(dict.fromkeys(text.replace(head, "", 1) for text in failures))
    raise AdminError(
        Problem(
            UNREACHABLE,
            f"unreachable: {reason}",
            "start what should listen there, or correct the address",
            (endpoints(addresses),),
        ),
        reachable=False,
    )


def closes_unasked(addresses: Sequence[Address], seconds: float = 1.0) -> bool:
    """Whether an address accepts a connection and closes it before anything was sent.

    So does a proxy, or a forwarded port, while the broker behind it is not running. Brokers, of
    whatever protocol, wait for the client to begin.
    """
    for host, port in addresses:
        try:
            with socket.create_connection((host, port), timeout=seconds) as plain:
                if plain.recv(1) == b"":
                    return True
        except ConnectionResetError:
            return True
        except OSError:
            continue
    return False


def listens(address: Address, seconds: float = 1.0) -> bool:
    """Whether an address takes a connection."""
    try:
        with socket.create_connection(address, timeout=seconds):
            return True
    except OSError:
        return False


def speaks_tls(addresses: Sequence[Address], timeout: float = 3.0) -> bool:
    """Whether one of the addresses completes or understands a TLS handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Only the language is asked for, nothing is said: the certificate does not matter.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for host, port in addresses:
        try:
            with socket.create_connection((host, port), timeout=timeout) as plain:
                with context.wrap_socket(plain, server_hostname=host):
                    return True
        except OSError:
            continue
    return False
