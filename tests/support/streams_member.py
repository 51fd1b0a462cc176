# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member of a group of Kafka Streams' own protocol (KIP-1071), by the one request that makes it one.

No client library of ours knows the message StreamsGroupHeartbeat; its form is in kafka-clients-4.3.1.jar,
common/message/StreamsGroupHeartbeatRequest.json, version 0.
"""

from __future__ import annotations

import socket
import struct
import uuid

API, VERSION = 88, 0
JOINS, LEAVES = 0, -1


def _number(value: int) -> bytes:
    """An unsigned varint."""
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def _text(value: str | None) -> bytes:
    if value is None:
        return _number(0)
    raw = value.encode()
    return _number(len(raw) + 1) + raw


def _list(values: list[bytes]) -> bytes:
    return _number(len(values) + 1) + b"".join(values)


NONE, NO_TAGS = _number(0), _number(0)


class StreamsMember:
    """Reads `topic` with a group, as far as its coordinator at this address can see; a context that leaves."""

    def __init__(self, address: str, group: str, topic: str):
        host, _colon, port = address.rpartition(":")
        self._where, self._group, self._topic = (host, int(port)), group, topic
        self._id, self._process = str(uuid.uuid4()), str(uuid.uuid4())

    def __enter__(self) -> StreamsMember:
        self._heartbeat(JOINS)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._heartbeat(LEAVES)

    def _topology(self) -> bytes:
        part = [_text("0"), _list([_text(self._topic)]), *[_list([])] * 5, NO_TAGS]
        return b"\x01" + struct.pack(">i", 0) + _list([b"".join(part)]) + NO_TAGS

    def _heartbeat(self, epoch: int) -> None:
        """AssertionError with the coordinator's words where it refuses."""
        joins = epoch == JOINS
        body = b"".join(
            [
                *(_text(self._group), _text(self._id), struct.pack(">ii", epoch, 0)),
                *(_text(None), _text(None), struct.pack(">i", 60_000 if joins else -1)),
                self._topology() if joins else b"\xff",
                *[_list([]) if joins else NONE] * 3,
                *(_text(self._process if joins else None), b"\xff"),
                *(_list([]) if joins else NONE, NONE, NONE, b"\x00", NO_TAGS),
            ]
        )
        client = b"test"
        head = struct.pack(">hhih", API, VERSION, 1, len(client)) + client + NO_TAGS
        with socket.create_connection(self._where, timeout=20) as connection:
            connection.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
            stream = connection.makefile("rb")
            (size,) = struct.unpack(">i", stream.read(4))
            answer = stream.read(size)
        # correlation id, tags, throttle time
        (code,) = struct.unpack(">h", answer[9:11])
        assert code == 0, (code, answer[11:200])
