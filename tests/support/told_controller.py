# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard of KRaft mode as it runs on a host, and a controller that answers as it is told."""

from __future__ import annotations

import contextlib
import importlib.util
import socket
import ssl
import struct
import sys
import threading
from pathlib import Path

FILES = Path(__file__).resolve().parents[2] / "roles" / "kafka" / "files"


def _load(name="fencing", beside=("quorum_wire", "registration", "metadata_log")):
    """A guard as it runs: what lies beside it is found by its name, and leaves no bytecode there."""
    kept, path = sys.dont_write_bytecode, list(sys.path)
    sys.path.insert(0, str(FILES))
    try:
        spec = importlib.util.spec_from_file_location(name, FILES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return (module, *(sys.modules[each] for each in beside))
    finally:
        sys.dont_write_bytecode, sys.path[:] = kept, path
        for each in ("registration", "quorum_wire", "hanging", "metadata_log", "fencing"):
            sys.modules.pop(each, None)


fencing, wire, registration, metadata_log = _load()
(migrating,) = _load("migrating", ())
OF_3, OF_4 = (0, 17), (4, 18)  # versions of Fetch
ELIGIBLE = fencing.ELIGIBLE


def features_told(levels):
    """The body of an answer to ApiVersions in version 3, as kafka-clients 4.3.1 writes it; None: of no known epoch."""
    epoch = -1 if levels is None else 7
    names = [(name.encode(), level) for name, level in (levels or {}).items()]
    keys = b"".join(
        bytes([len(name) + 1]) + name + struct.pack(">hhb", level, 1, 0) for name, level in names
    )
    fields = [(0, b"\1"), (1, struct.pack(">q", epoch)), (2, bytes([len(names) + 1]) + keys)]
    tags = b"".join(bytes([tag, len(data)]) + data for tag, data in fields)
    api = struct.pack(">hhhb", 18, 0, 4, 0)
    return b"\0\0\2" + api + struct.pack(">i", 0) + bytes([len(fields)]) + tags


class ToldController(threading.Thread):
    """A controller that gives the errors it was told, in their order; `asked`: (key, values) of requests.

    `tls`: the context of a server, or None; `users`: user -> password of those who may log in by PLAIN, None
    where nobody is asked. `features`: name -> finalised level, None where it does not know any. `quorum`: what it
    tells of the quorum, (error, epoch, high watermark), which `asked` does not count. `attempts`: how many have tried
    to log in; `refused`: how many handshakes failed.
    """

    APIS = {
        api.key: api
        for api in (
            *(wire.API_VERSIONS, wire.BROKER_HEARTBEAT),
            *(wire.UNREGISTER_BROKER, wire.END_QUORUM_EPOCH, wire.DESCRIBE_QUORUM),
            *(wire.SASL_HANDSHAKE, wire.SASL_AUTHENTICATE),
        )
    }

    def __init__(
        self, heartbeat=(0,), unregister=(0,), election=(0,), fetch=OF_4, newest=2, **door
    ):
        super().__init__(daemon=True)
        self._errors = {63: list(heartbeat), 64: list(unregister), 54: list(election)}
        self._fetch, self._newest = fetch, newest
        self._tls, self._users = door.get("tls"), door.get("users")
        self._mechanisms = door.get("mechanisms", ["PLAIN"])
        self._features = door.get("features", {ELIGIBLE: 1})
        self._quorum = list(door.get("quorum", [(0, 3, 0)]))
        self.asked, self.attempts, self.refused = [], 0, 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                connection = self._socket.accept()[0]
            except OSError:
                return
            with connection:
                connection.settimeout(10)
                try:
                    if self._tls:
                        connection = self._tls.wrap_socket(connection, server_side=True)
                    self._serve(connection)
                except ssl.SSLError:
                    self.refused += 1
                except ConnectionError:
                    pass
                finally:
                    connection.close()

    @staticmethod
    def _exactly(connection, size):
        data = b""
        while len(data) < size:
            part = connection.recv(size - len(data))
            if not part:
                return b""
            data += part
        return data

    def _serve(self, connection):
        known = self._users is None
        while True:
            head = self._exactly(connection, 4)
            if not head:
                return
            data = self._exactly(connection, struct.unpack(">i", head)[0])
            key, version, correlation, size = struct.unpack(">hhih", data[:10])
            api, at = self.APIS[key], 10 + size
            api = wire.FEATURES if (key, version) == (18, wire.FEATURES.version) else api
            assert version == api.version
            if api.flexible:
                at += 1
            values, end = api.request.decode(data, at)
            assert end == len(data)
            if not known and key not in (17, 18, 36):
                return  # as Kafka does with whoever has not logged in
            if api is wire.FEATURES:
                self._send(
                    connection, struct.pack(">i", correlation) + features_told(self._features)
                )
                continue
            answer = struct.pack(">i", correlation) + (b"\0" if api.flexible else b"")
            told = self._logged_in(key, values) or self._answer(key, values)
            known = known or (key == 36 and not told["error"])
            answer += api.answer.encode(told)
            self._send(connection, answer)

    @staticmethod
    def _send(connection, answer):
        connection.sendall(struct.pack(">i", len(answer)) + answer)

    def _logged_in(self, key, values):
        if key == 17:
            error = 0 if values["mechanism"] in self._mechanisms else 33
            return {"error": error, "mechanisms": self._mechanisms}
        if key != 36:
            return None
        self.attempts += 1
        dummy, user, password = values["token"].decode().split("\0")
        welcome = self._users.get(user) == password
        message = None if welcome else "Authentication failed: Invalid username\nor password"
        return {"error": 0 if welcome else 58, "message": message, "token": b""}

    def _answer(self, key, values):
        if key == 18:
            lowest = 0 if self._newest >= 0 else 9
            apis = [{"key": each, "min": lowest, "max": 9} for each in (17, 36, 54, 63, 64)]
            apis.append({"key": 55, "min": 0, "max": 2})
            apis.append({"key": 18, "min": 0, "max": 4})
            apis.append({"key": 1, "min": self._fetch[0], "max": self._fetch[1]})
            return {"error": 0, "apis": apis}
        if key == 55:
            told = self._quorum.pop(0) if len(self._quorum) > 1 else self._quorum[0]
            part = dict(zip(("error", "epoch", "high_watermark"), told), index=0, leader=1)
            part.update(voters=[{"id": 1, "end": told[2]}], observers=[])
            return {"error": 0, "topics": [{"name": "__cluster_metadata", "partitions": [part]}]}
        self.asked.append((key, values))
        errors = self._errors[key]
        error = errors.pop(0) if len(errors) > 1 else errors[0]
        partition = {"index": 0, "error": error, "leader": 1, "epoch": 3}
        return {
            "throttle_ms": 0,
            "error": error if key != 54 or error == 31 else 0,
            "message": None,
            "caught_up": True,
            "fenced": True,
            "should_shut_down": False,
            "topics": [{"name": "__cluster_metadata", "partitions": [partition]}],
        }

    @property
    def keys(self):
        """The kinds of requests, in their order."""
        return [key for key, values in self.asked]

    def close(self):
        """End the thread, too: a closed socket alone leaves it in its call."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextlib.contextmanager
def told_controllers():
    """Yield a function that makes controllers, each told what to answer; all are closed at the end."""
    made = []

    def make(**told):
        made.append(ToldController(**told))
        return made[-1]

    yield make
    for each in made:
        each.close()
