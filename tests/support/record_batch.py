# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Edit Kafka's log segments so that Kafka itself believes them: record batches of format 2,
uncompressed.

Only for tests that lose or alter records behind a cluster's back::

    edit(partition_directory, lambda batches: drop(batches, offset=7))

Format: Kafka's documentation, "Message Format". All brokers that hold the partition must be
stopped.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable

_HEAD = struct.Struct(">qiibI")  # base offset, length, leader epoch, magic, crc
_BODY = struct.Struct(">hiqqqhii")  # attributes .. number of records
_COMPRESSION = 0x07


def _crc32c_table() -> list[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


_TABLE = _crc32c_table()


def crc32c(data: bytes) -> int:
    """The checksum (Castagnoli) that Kafka keeps for each batch; pure Python, for small batches."""
    value = 0xFFFFFFFF
    for byte in data:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    shift = result = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (result >> 1) ^ -(result & 1), at
        shift += 7


def _varint(number: int) -> bytes:
    return unsigned_varint((number << 1) ^ (number >> 63))


def unsigned_varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; Kafka's lengths in requests of flexible versions."""
    out = bytearray()
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


@dataclass(frozen=True)
class Record:
    """One record; its offset is the batch's base offset plus `delta`."""

    delta: int
    timestamp_delta: int
    key: bytes | None
    value: bytes | None
    headers: bytes  # as they stand, count included

    def encode(self) -> bytes:
        """The record's bytes, length in front."""
        body = b"\x00" + _varint(self.timestamp_delta) + _varint(self.delta)
        for part in (self.key, self.value):
            body += _varint(-1) if part is None else _varint(len(part)) + part
        body += self.headers
        return _varint(len(body)) + body


@dataclass(frozen=True)
class Batch:
    """One record batch; `encode` computes length, count and checksum anew."""

    base_offset: int
    leader_epoch: int
    attributes: int
    last_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: tuple[Record, ...] = field(repr=False)

    def offset(self, record: Record) -> int:
        """The record's offset."""
        return self.base_offset + record.delta

    def encode(self) -> bytes:
        """The batch's bytes, with a checksum that Kafka accepts."""
        body = _BODY.pack(
            self.attributes,
            self.last_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            len(self.records),
        ) + b"".join(r.encode() for r in self.records)
        length = _HEAD.size - 12 + len(body)
        return _HEAD.pack(self.base_offset, length, self.leader_epoch, 2, crc32c(body)) + body


def decode(data: bytes) -> list[Batch]:
    """All batches of a segment. ValueError for other formats, compression or a wrong checksum."""
    batches, at = [], 0
    while at < len(data):
        base, length, epoch, magic, crc = _HEAD.unpack_from(data, at)
        body = data[at + _HEAD.size : at + 12 + length]
        at += 12 + length
        attributes, last, first_time, max_time, pid, pepoch, sequence, count = _BODY.unpack_from(
            body
        )
        if magic != 2 or attributes & _COMPRESSION:
            raise ValueError(f"batch at offset {base}: only uncompressed batches of format 2")
        if crc32c(body) != crc:
            raise ValueError(f"batch at offset {base}: wrong checksum")
        records, position = [], _BODY.size
        for _ in range(count):
            size, position = _read_varint(body, position)
            records.append(_decode_record(body[position : position + size]))
            position += size
        batches.append(
            Batch(base, epoch, attributes, last, first_time, max_time, pid, pepoch, sequence,
                  tuple(records))
        )  # fmt: skip
    return batches


def _decode_record(data: bytes) -> Record:
    time_delta, at = _read_varint(data, 1)
    delta, at = _read_varint(data, at)
    parts = []
    for _ in range(2):
        size, at = _read_varint(data, at)
        parts.append(None if size < 0 else data[at : at + size])
        at += max(size, 0)
    return Record(delta, time_delta, parts[0], parts[1], data[at:])


def written_by(data: bytes, offset: int) -> tuple[int, int, int]:
    """(producer id, producer epoch, sequence) of the record at an offset, by the heads of the batches alone.

    By these three a broker recognizes what it has already. KeyError if nothing stands at the offset.
    """
    at = 0
    while at + _HEAD.size + _BODY.size <= len(data):
        base, length, *_rest = _HEAD.unpack_from(data, at)
        _attributes, last, _first, _max, pid, epoch, sequence, _count = _BODY.unpack_from(
            data, at + _HEAD.size
        )
        if base <= offset <= base + last:
            return pid, epoch, sequence + offset - base
        at += 12 + length
    raise KeyError(offset)


# -- what can happen to a log: batches in, batches out


def record_at(batches: list[Batch], offset: int) -> Record:
    """The record at an offset; KeyError if nothing stands there."""
    for batch in batches:
        for record in batch.records:
            if batch.offset(record) == offset:
                return record
    raise KeyError(offset)


def value_at(batches: list[Batch], offset: int) -> bytes:
    """The value at an offset; KeyError if nothing stands there."""
    return record_at(batches, offset).value


def set_record(batches: list[Batch], offset: int, **what: object) -> list[Batch]:
    """Another key, value, headers or timestamp_delta at an offset; KeyError if nothing stands there."""
    record_at(batches, offset)
    return [
        replace(
            b,
            records=tuple(replace(r, **what) if b.offset(r) == offset else r for r in b.records),
        )
        for b in batches
    ]


def set_value(batches: list[Batch], offset: int, value: bytes) -> list[Batch]:
    """Other bytes at an offset; KeyError if nothing stands there."""
    return set_record(batches, offset, value=value)


def drop(batches: list[Batch], *offsets: int) -> list[Batch]:
    """Take records out and leave holes, as compaction does; a batch may become empty."""
    for offset in offsets:
        value_at(batches, offset)
    return [
        replace(b, records=tuple(r for r in b.records if b.offset(r) not in offsets))
        for b in batches
    ]


def swap(batches: list[Batch], one: int, other: int) -> list[Batch]:
    """Exchange the records at two offsets: keys, values and headers."""
    first, second = record_at(batches, one), record_at(batches, other)
    return set_record(
        set_record(batches, one, key=second.key, value=second.value, headers=second.headers),
        other,
        key=first.key,
        value=first.value,
        headers=first.headers,
    )


def append(batches: list[Batch], *contents: bytes | Record) -> list[Batch]:
    """One more batch at the end, of a producer without idempotence; of values, or of records. Whose time
    its timestamps are is as in the one before.
    """
    last = batches[-1]
    base = last.base_offset + last.last_delta + 1
    records = tuple(
        (
            replace(each, delta=i, timestamp_delta=0)
            if isinstance(each, Record)
            else Record(i, 0, None, each, b"\x00")
        )
        for i, each in enumerate(contents)
    )
    return [
        *batches,
        Batch(base, last.leader_epoch, last.attributes & 0x08, len(records) - 1, last.max_timestamp,
              last.max_timestamp, -1, -1, -1, records),
    ]  # fmt: skip


def truncate(batches: list[Batch], end: int) -> list[Batch]:
    """Forget everything from an offset on; the log ends there."""
    kept = []
    for batch in batches:
        records = tuple(r for r in batch.records if batch.offset(r) < end)
        if batch.base_offset < end and records:
            last = min(batch.last_delta, end - 1 - batch.base_offset)
            kept.append(replace(batch, last_delta=last, records=records))
    return kept


# -- files


def edit(directory: Path, change: Callable[[list[Batch]], list[Batch]], segment: int = 0) -> None:
    """Rewrite one segment (by its place) of a stopped broker's partition; its indexes are made
    anew at start.
    """
    path = sorted(Path(directory).glob("*.log"))[segment]
    path.write_bytes(b"".join(b.encode() for b in change(decode(path.read_bytes()))))
    for suffix in (".index", ".timeindex"):
        path.with_suffix(suffix).unlink(missing_ok=True)
