# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host without any Kafka client sees through one address of a broker: name, port, certificate, who answers.

Private to this collection. Standard library only: hosts of clients have no more. Four requests of Kafka's protocol,
in versions that brokers from 1.0 on know: SaslHandshake 1, SaslAuthenticate 0, Metadata 4, DescribeConfigs 1.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import socket
import ssl
import struct
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    kafka_python_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection

METADATA, SASL_HANDSHAKE, DESCRIBE_CONFIGS, SASL_AUTHENTICATE = 3, 17, 32, 36
_BROKER = 4  # a type of resource
_LARGEST_BYTES = 64 * 1024 * 1024
_RESPONDER = re.compile(r"expected (\d+)")


@dataclass(frozen=True)
class Seen:
    """What was seen through one address, up to the step that failed.

    `failed`: "" or one of name, port, certificate, protocol, login; `detail`: why, in words. `brokers`: id -> address
    that clients are told. `answered_by`: the broker at the other end, None where it may not be asked.
    """

    failed: str = ""
    detail: str = ""
    cluster_id: str = ""
    brokers: Mapping[int, str] = field(default_factory=dict)
    answered_by: Optional[int] = None


class Turned(Exception):
    """A step failed; `step` as in Seen.failed."""

    def __init__(self, step: str, detail: str):
        super().__init__(detail)
        self.step, self.detail = step, detail


def look(
    host: str, port: int, broker: int, protocol: str, login: Mapping[str, Any], seconds: float
) -> Seen:
    """Connect as a client would, and ask who is there.

    `login`: as kafka_client_security, its certificates as text or as paths here. No step takes longer than `seconds`.
    """
    try:
        with _connected(host, port, seconds) as plain:
            if not protocol.endswith("SSL"):
                return _asked(plain, broker, protocol, login)
            with _encrypted(plain, host, login) as encrypted:
                return _asked(encrypted, broker, protocol, login)
    except Turned as turned:
        return Seen(turned.step, turned.detail)
    except (OSError, ValueError, struct.error, IndexError) as error:
        return Seen("protocol", f"no answer of a broker ({_words(error)})")


def _words(error: BaseException) -> str:
    if isinstance(error, socket.timeout):
        return "timed out"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _connected(host: str, port: int, seconds: float) -> socket.socket:
    try:
        socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Turned("name", f"the name does not resolve ({_words(error)})") from None
    try:
        return socket.create_connection((host, port), timeout=seconds)
    except OSError as error:
        raise Turned("port", _words(error)) from None


def _encrypted(plain: socket.socket, host: str, login: Mapping[str, Any]) -> ssl.SSLSocket:
    connection = Connection(
        addresses=(),
        security_protocol="SSL",
        ssl_ca=login.get("ssl_ca") or None,
        ssl_certificate=login.get("ssl_certificate") or None,
        ssl_key=login.get("ssl_key") or None,
        ssl_key_password=login.get("ssl_key_password") or None,
    )
    with kafka_python_settings(connection) as settings:
        context = settings["ssl_context"]
    # The name is compared below, so that the names that are there can be told.
    context.check_hostname = False
    try:
        wrapped = context.wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise Turned("certificate", error.verify_message) from None
    except (ssl.SSLError, ConnectionError) as error:
        raise Turned("certificate", f"it does not speak TLS ({_words(error)})") from None
    names = names_of(wrapped.getpeercert() or {})
    if login.get("ssl_check_hostname") is not False and not covers(names, host):
        raise Turned("certificate", f"it is for {', '.join(names) or 'nobody'}")
    return wrapped


def names_of(certificate: Mapping[str, Any]) -> Tuple[str, ...]:
    """Host names and addresses that a certificate is for, as Python's ssl shows it."""
    return tuple(str(value) for _kind, value in certificate.get("subjectAltName") or ())


def covers(names: Tuple[str, ...], host: str) -> bool:
    """Whether one of a certificate's names is the host's; a star stands for its first label."""
    wanted = host.lower().rstrip(".")
    star = f"*.{wanted.partition('.')[2]}"
    return any(name.lower() in (wanted, star) for name in names)


# ---------------------------------------------------------------- the conversation


class _Talk:
    """Requests and answers on one connection."""

    def __init__(self, connection: socket.socket):
        self._connection, self._number = connection, 0

    def ask(self, key: int, version: int, body: bytes) -> _Answer:
        """Send a request; return what came back."""
        self._number += 1
        head = struct.pack(">hhi", key, version, self._number) + _string("kafkaops")
        message = head + body
        self._connection.sendall(struct.pack(">i", len(message)) + message)
        (size,) = struct.unpack(">i", self._take(4))
        if not 4 <= size <= _LARGEST_BYTES:
            raise Turned("protocol", "what answers is not a broker")
        answer = _Answer(self._take(size))
        if answer.number("i") != self._number:
            raise Turned("protocol", "what answers is not a broker")
        return answer

    def _take(self, size: int) -> bytes:
        taken = b""
        while len(taken) < size:
            more = self._connection.recv(size - len(taken))
            if not more:
                raise Turned("protocol", "the connection was closed without an answer")
            taken += more
        return taken


class _Answer:
    """Reads an answer from its beginning."""

    def __init__(self, data: bytes):
        self._data, self._at = data, 0

    def number(self, form: str) -> int:
        """Return the next whole number; `form` as of struct."""
        (value,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def bytes(self, form: str) -> Optional[bytes]:
        """Return the next bytes, whose length stands before them; None for null."""
        size = self.number(form)
        if size < 0:
            return None
        self._at += size
        return self._data[self._at - size : self._at]

    def text(self) -> str:
        """Return the next text; empty for null."""
        return (self.bytes("h") or b"").decode(errors="replace")


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _asked(connection: socket.socket, broker: int, protocol: str, login: Mapping[str, Any]) -> Seen:
    talk = _Talk(connection)
    if protocol.startswith("SASL"):
        _log_in(talk, login)
    seen = _metadata(talk.ask(METADATA, 4, struct.pack(">i?", 0, False)))
    question = struct.pack(">ib", 1, _BROKER) + _string(str(broker))
    question += struct.pack(">i", 1) + _string("broker.id") + b"\0"
    answer = talk.ask(DESCRIBE_CONFIGS, 1, question)
    answer.number("i"), answer.number("i")  # throttled for so long; one result
    error, words = answer.number("h"), answer.text()
    other = _RESPONDER.search(words)
    if error == 0:
        return replace(seen, answered_by=broker)
    # Without the right to ask, nobody says who answers.
    return replace(seen, answered_by=int(other[1]) if other else None)


def _metadata(answer: _Answer) -> Seen:
    answer.number("i")  # throttled for so long
    brokers: Dict[int, str] = {}
    for _each in range(answer.number("i")):
        number, host, port = answer.number("i"), answer.text(), answer.number("i")
        answer.text()  # its rack
        brokers[number] = endpoint(host, port)
    return Seen(cluster_id=answer.text(), brokers=brokers)


# ---------------------------------------------------------------- logging in


def _log_in(talk: _Talk, login: Mapping[str, Any]) -> None:
    mechanism = str(login.get("sasl_mechanism") or "PLAIN")
    answer = talk.ask(SASL_HANDSHAKE, 1, _string(mechanism))
    if answer.number("h") != 0:
        raise Turned("login", f"it does not offer the mechanism {mechanism}")

    def exchange(data: bytes) -> bytes:
        told = talk.ask(SASL_AUTHENTICATE, 0, struct.pack(">i", len(data)) + data)
        error, words = told.number("h"), told.text()
        if error != 0:
            raise Turned("login", words or f"error {error}")
        return told.bytes("i") or b""

    user, password = str(login.get("sasl_username") or ""), str(login.get("sasl_password") or "")
    if mechanism == "PLAIN":
        exchange(f"\0{user}\0{password}".encode())
    else:
        scram(mechanism, user, password, exchange)


def scram(
    mechanism: str,
    user: str,
    password: str,
    exchange: Callable[[bytes], bytes],
    nonce: str = "",
) -> None:
    """Log in by SCRAM-SHA-256 or SCRAM-SHA-512 (RFC 5802); `exchange` sends a message and returns the answer."""
    algorithm = "sha256" if mechanism.endswith("256") else "sha512"
    nonce = nonce or base64.b64encode(os.urandom(18)).decode()
    name = user.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    challenge = exchange(f"n,,{first}".encode()).decode()
    parts = dict(part.split("=", 1) for part in challenge.split(","))
    if not parts["r"].startswith(nonce):
        raise Turned("login", "the answer is not to this question")
    salt, rounds = base64.b64decode(parts["s"]), int(parts["i"])
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, rounds)
    key = hmac.new(salted, b"Client Key", algorithm).digest()
    stored = hashlib.new(algorithm, key).digest()
    last = f"c=biws,r={parts['r']}"
    signed = hmac.new(stored, f"{first},{challenge},{last}".encode(), algorithm).digest()
    proof = bytes(one ^ other for one, other in zip(key, signed))
    exchange(f"{last},p={base64.b64encode(proof).decode()}".encode())
