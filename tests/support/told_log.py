# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A metadata log that is made up, batch by batch and record by record, as Kafka 4.3 writes it."""

from __future__ import annotations

import struct

FOLDER = "__cluster_metadata-0"
CONTROL = 0x20


def varint(number):
    """A number in zigzag encoding, as a record has it."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    return bytes((*out, number))


def batch(offset, *values, attributes=0, epoch=1):
    """The records of these values from this offset on."""
    records = b""
    for delta, value in enumerate(values):
        body = (
            b"\x00"
            + varint(delta)
            + varint(delta)
            + varint(-1)
            + varint(len(value))
            + value
            + varint(0)
        )
        records += varint(len(body)) + body
    tail = (
        struct.pack(">hiqqqhii", attributes, len(values) - 1, 0, 0, -1, -1, -1, len(values))
        + records
    )
    return struct.pack(">qiibI", offset, len(tail) + 9, epoch, 2, 0) + tail


def written(directory, files):
    """A log below a metadata directory: name of a file to its bytes."""
    folder = directory / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


# Records: frame 1, kind, version, the message of this version in its flexible form.

NOTHING = b"\x01\x14\x00\x00"


def ids(numbers):
    """A compact array of ids."""
    return bytes([len(numbers) + 1]) + b"".join(struct.pack(">i", each) for each in numbers)


def tags(fields):
    """Tagged fields, number to bytes."""
    found = bytes([len(fields)])
    for number, data in sorted(fields.items()):
        found += bytes([number, len(data)]) + data
    return found


def topic_id(name):
    """Sixteen bytes of a name."""
    return name.encode().ljust(16, b"\0")


def partition(topic, index, isr, elr=(), version=2):
    """A PartitionRecord of brokers 1, 2 and 3."""
    directories = bytes([4]) + b"d" * 48 if version else b""
    told = {0: b"\1", 2: ids([9])} if elr else {}
    told.update({1: ids(elr)} if elr else {})
    return (
        bytes([1, 3, version])
        + struct.pack(">i", index)
        + topic_id(topic)
        + (ids([1, 2, 3]) + ids(isr) + ids([]) + ids([]))
        + struct.pack(">iii", isr[0] if isr else -1, 4, 7)
        + directories
        + tags(told)
    )


def change(topic, index, isr=None, elr=None, version=2):
    """A PartitionChangeRecord; what is None does not change."""
    told = {1: struct.pack(">i", -1), 7: ids([1])}
    told.update({0: ids(isr)} if isr is not None else {})
    told.update({6: ids(elr)} if elr is not None else {})
    return bytes([1, 5, version]) + struct.pack(">i", index) + topic_id(topic) + tags(told)


def removed(topic):
    """A RemoveTopicRecord."""
    return b"\1\x09\0" + topic_id(topic) + b"\0"


def registered(broker, version=3):
    """A RegisterBrokerRecord, as far as it is read."""
    return bytes([1, 0, version]) + struct.pack(">i", broker) + b"and more"


def altered(broker, fenced=0, shuts_down=0):
    """A BrokerRegistrationChangeRecord."""
    told = {0: struct.pack(">b", fenced)} if fenced else {}
    told.update({1: b"\1"} if shuts_down else {})
    return b"\1\x11\1" + struct.pack(">iq", broker, 191) + tags(told)
