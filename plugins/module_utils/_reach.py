# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a cluster cannot be reached: one word for the cause, one sentence for people.

Private to this collection. Plain sockets and librdkafka's own words; imports no client library.
"""

from __future__ import annotations

import collections
import logging
import os
import re
import selectors
import socket
import ssl
import time

from ansible_collections.kafkaops.cluster.plugins.module_utils._argspec import join_address
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan import AdminError


def sentence(connection, verdict, told):
    """What is wrong, with the address. `verdict` as of Trouble.verdict, `told` its last words."""
    address = connection.bootstrap
    protocol = connection.security_protocol
    encrypted = protocol.endswith("SSL")
    if verdict == "closed" and speaks_tls(connection.addresses) != encrypted:
        verdict = "not_tls" if encrypted else "tls"
    wants = "SASL or a client certificate" if encrypted else "SASL"
    sentences = {
        "closed": f"wrong protocol: {address} accepts connections but closes them when spoken to in "
        f"{protocol}; the listener wants {wants}, or is not Kafka's. Set security_protocol",
        "tls": f"wrong protocol: {address} speaks TLS, not {protocol}. Set security_protocol to SSL "
        "or SASL_SSL",
        "not_tls": f"wrong protocol: {address} does not speak TLS, security_protocol is {protocol}. "
        "Set it to PLAINTEXT or SASL_PLAINTEXT, or name the TLS listener",
        "not_sasl": f"wrong protocol: the listener {address} wants no SASL, security_protocol is "
        f"{protocol}. Set it to PLAINTEXT or SSL",
        "mechanism": f"wrong credentials: {address} does not offer the mechanism "
        f"{connection.sasl_mechanism}: {told}",
        "credentials": f"wrong credentials: {address} refuses user {connection.sasl_username} by "
        f"{connection.sasl_mechanism}: {told}",
        "certificate": f"certificate not trusted: {address}: {told}. Set ssl_ca, or "
        "ssl_check_hostname if only the name differs",
        "tls_failed": f"TLS to {address} failed: {told}. A client certificate may be needed: "
        "ssl_certificate and ssl_key",
        "controller": f"wrong listener: {address} is a KRaft controller. Name a broker",
    }
    default = (
        f"unreachable: no Kafka broker answered at {address} within {connection.timeout:g} s"
        f"{told and f': {told}'}"
    )
    return sentences.get(verdict, default).rstrip(".: ") + "."


class Trouble(logging.Handler):
    """Remembers what librdkafka says about its connections, to explain a failure."""

    # `10.0.0.1:9092/bootstrap: ` in front and ` (after 3ms in state ...)` behind.
    _AROUND = re.compile(r"^(?:\[thrd:[^\]]*\]: )?(.*?)(?: \(after \d+ms in state (\w+)[^)]*\))?$")

    # The sentence has the address already.
    _ADDRESS = re.compile(r"^(\w+://)?\S+:\d+/(bootstrap|\d+): ")

    def __init__(self):
        super().__init__()
        self.last = ""
        self._closed = 0
        self._codes = collections.Counter()

    def error(self, error):
        """librdkafka's error callback."""
        if error.name() == "_ALL_BROKERS_DOWN":
            return
        self._codes[error.name()] += 1
        self._note(error.str())

    def emit(self, record):
        """A log line of librdkafka."""
        text = record.getMessage()
        if text.startswith("FAIL "):
            self._note(text.split("]: ", 1)[-1].split("]: ", 1)[-1])

    def _note(self, text):
        match = self._AROUND.match(text)
        said = self._ADDRESS.sub("", match.group(1) if match else text)
        if "connection closed by peer" in said:
            self._closed += 1
            if self._codes["_SSL"] or self._codes["_AUTHENTICATION"]:
                return  # it is known why
        self.last = said

    def verdict(self, error):
        """One word for what is hopeless, None while it may just take time."""
        text = self.last
        if error.name() == "_UNSUPPORTED_FEATURE":
            return "controller"
        if self._codes["_AUTHENTICATION"]:
            if "not valid in current SASL state" in text:
                return "not_sasl"
            return "mechanism" if "Unsupported SASL mechanism" in text else "credentials"
        if "PLAINTEXT broker listener" in text or "wrong version number" in text:
            return "not_tls"
        if self._codes["_SSL"]:
            return "certificate" if "certificate verify failed" in text else "tls_failed"
        # Once or twice may be a broker that is just stopping.
        return "closed" if self._closed >= 3 else None


# ---------------------------------------------------------------- plain sockets


def probe_addresses(connection, clock=time.monotonic):
    """Return as soon as one address accepts a connection; else AdminError with each one's error.

    librdkafka would try until the timeout and not say which address failed how.
    """
    deadline = clock() + connection.timeout
    failures = []
    with selectors.DefaultSelector() as selector:
        sockets = []
        try:
            for host, port in connection.addresses:
                address = join_address(host, port)
                try:
                    targets = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                except OSError as error:
                    failures.append(f"{address}: the name does not resolve ({error.strerror})")
                    continue
                for family, kind, proto, _name, target in targets:
                    plain = socket.socket(family, kind, proto)
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
                    code = key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if code == 0:
                        return
                    failures.append(f"{key.data}: {os.strerror(code)}")
                    selector.unregister(key.fileobj)
            for key in selector.get_map().values():
                failures.append(f"{key.data}: no answer within {connection.timeout:g} s")
        finally:
            for plain in sockets:
                plain.close()
    told = "; ".join(dict.fromkeys(failures))
    raise AdminError(f"unreachable: {told}.", reachable=False)


def speaks_tls(addresses, timeout=3.0):
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
