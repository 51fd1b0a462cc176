# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands between a client and a broker and lies: it changes record batches on their way in or out.

Both sides believe it, since lengths and checksums are right. Every broker announces its proxy's
address on the listener that the client uses, so nothing but batches needs to be understood::

    with LyingProxy(listen=("127.0.0.1", 9098), broker=("127.0.0.1", 9093)) as proxy:
        proxy.on_produce = lambda batch: replace(batch, records=batch.records[1:])

A lie gets a Batch and returns another one, or None for the truth. Batches that are produced are made
ones of a producer without idempotence: a broker would notice a lie about sequences.
Only for requests with one uncompressed batch of format 2 for each partition.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import replace
from typing import Callable, Iterable, Iterator, Optional

from tests.support import record_batch
from tests.support.record_batch import Batch, unsigned_varint

PRODUCE, FETCH = 0, 1
FIRST_FLEXIBLE_PRODUCE = 9  # from this version on lengths are unsigned varints
Lie = Callable[[Batch], Optional[Batch]]


class LyingProxy:
    """Forwards every connection; `told` counts the batches that were changed by a lie."""

    def __init__(self, listen: tuple, broker: tuple):
        self._listen, self._broker = listen, broker
        self.on_produce: Optional[Lie] = None
        self.on_fetch: Optional[Lie] = None
        self.told = 0
        self._lock = threading.Lock()
        self._sockets: list = []

    @classmethod
    def of_broker(cls, cluster, listener: str, broker: int) -> LyingProxy:
        """One where a broker of a BareCluster announces the listener, in front of that broker."""

        def pair(address: str) -> tuple:
            host, _colon, port = address.rpartition(":")
            return host, int(port)

        return cls(
            listen=pair(cluster.announced_address(listener, broker)),
            broker=pair(cluster.listener_address(listener, broker)),
        )

    @classmethod
    @contextlib.contextmanager
    def before_brokers(cls, cluster, brokers: Iterable[int]) -> Iterator[list]:
        """Those of brokers that announce the listener PROXY, one for each, until the end of the block."""
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(cls.of_broker(cluster, "PROXY", each)) for each in brokers]

    def __enter__(self) -> LyingProxy:
        self._server = socket.create_server(self._listen)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_exc) -> None:
        with self._lock:
            every = [self._server, *self._sockets]
            self._sockets = []
        for each in every:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _address = self._server.accept()
                broker = socket.create_connection(self._broker, 10)
                broker.settimeout(None)
            except OSError:
                return
            with self._lock:
                self._sockets += [client, broker]
            kinds: dict = {}  # correlation id -> kind of request
            for source, target, change in (
                (client, broker, lambda frame, kinds=kinds: self._request(frame, kinds)),
                (broker, client, lambda frame, kinds=kinds: self._answer(frame, kinds)),
            ):
                threading.Thread(target=_pump, args=(source, target, change), daemon=True).start()

    def _request(self, frame: bytes, kinds: dict) -> bytes:
        kind, version, correlation = struct.unpack_from(">hhi", frame)
        kinds[correlation] = kind
        lie = self.on_produce
        if kind != PRODUCE or lie is None:
            return frame
        for at, size, batch in _batches(frame):
            changed = self._changed(lie, batch) or batch
            plain = replace(changed, producer_id=-1, producer_epoch=-1, base_sequence=-1)
            encoded = plain.encode()
            if version >= FIRST_FLEXIBLE_PRODUCE:
                before, length = unsigned_varint(size + 1), unsigned_varint(len(encoded) + 1)
            else:
                before, length = struct.pack(">i", size), struct.pack(">i", len(encoded))
            assert frame[at - len(before) : at] == before, "the length is not where it must be"
            return frame[: at - len(before)] + length + encoded + frame[at + size :]
        return frame

    def _answer(self, frame: bytes, kinds: dict) -> bytes:
        (correlation,) = struct.unpack_from(">i", frame)
        lie = self.on_fetch
        if kinds.pop(correlation, None) != FETCH or lie is None:
            return frame
        for at, size, batch in list(_batches(frame)):
            changed = self._changed(lie, batch)
            if changed:
                encoded = changed.encode()
                assert len(encoded) == size, "what is fetched must keep its length"
                frame = frame[:at] + encoded + frame[at + size :]
        return frame

    def _changed(self, lie: Lie, batch: Batch) -> Optional[Batch]:
        changed = lie(batch)
        if changed is not None:
            with self._lock:
                self.told += 1
        return changed


def _pump(source, target, change) -> None:
    """Forward frames (a length of four bytes, and as many bytes) until one side ends."""
    try:
        while head := _exactly(source, 4):
            frame = change(_exactly(source, struct.unpack(">i", head)[0]))
            target.sendall(struct.pack(">i", len(frame)) + frame)
    except OSError:
        pass
    finally:
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _exactly(source, count: int) -> bytes:
    """That many bytes; b"" if the other side ended before."""
    data = bytearray()
    while len(data) < count:
        part = source.recv(count - len(data))
        if not part:
            return b""
        data += part
    return bytes(data)


def _batches(frame: bytes):
    """(place, size, Batch) of every batch in a frame: where a head is whose checksum is right."""
    at = 0
    while (magic := frame.find(b"\x02", at + 16)) >= 0:
        at = magic - 16
        (length,) = struct.unpack_from(">i", frame, at + 8)
        size = length + 12
        if 61 <= size <= len(frame) - at:
            with contextlib.suppress(ValueError, IndexError, struct.error):
                (batch,) = record_batch.decode(frame[at : at + size])
                yield at, size, batch
                at += size - 16
                continue
        at += 1
