# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a broker's own copy of the metadata log says of the broker when it has ended: what it still counts for.

Every node of a KRaft cluster keeps the log of its controllers in __cluster_metadata-0: the newest snapshot has
all before its end, and the segments the rest. A record is its frame's version, its kind and its version as
varints, and a message of Kafka's protocol. Of kinds and versions that are not known here nothing is guessed.

Standard library of Python 3.6 only, for the reasons that registration.py has.
"""

import collections
import mmap
import os
import re
import struct

from quorum_wire import (
    INT8,
    INT32,
    INT64,
    UUID,
    CompactArray,
    Schema,
    TaggedFields,
    Tags,
    WireError,
    read_varint,
)

FOLDER = "__cluster_metadata-0"
SEGMENT = re.compile(r"^(\d{20})\.log$")
SNAPSHOT = re.compile(r"^(\d{20})-\d{10}\.checkpoint$")
# Offset, length, epoch of the leader that wrote it, magic, checksum, attributes, last offset less the first, two time
# stamps, three fields of producers, number of records.
BATCH = struct.Struct(">qiibIhiqqqhii")
BEFORE_LENGTH = 12
COMPRESSED, CONTROL = 0x07, 0x20
# An entry of a segment's index: an offset less the first one of the segment, and where the batch begins that has it.
ENTRY = struct.Struct(">ii")

REGISTER_BROKER, PARTITION, PARTITION_CHANGE, UNFENCE_BROKER, REMOVE_TOPIC = 0, 3, 5, 8, 9
REGISTRATION_CHANGE, ABORT_TRANSACTION = 17, 25
# Kafka 4.3 has no later kind; of those that are read here the latest version that is known.
LAST_KIND = 28
VERSIONS = {
    REGISTER_BROKER: 4,
    PARTITION: 2,
    PARTITION_CHANGE: 2,
    UNFENCE_BROKER: 0,
    REMOVE_TOPIC: 0,
    REGISTRATION_CHANGE: 3,
}
IDS = CompactArray(INT32)


def _partition(version):
    tags = TaggedFields({1: ("elr", IDS)})
    fields = [("index", INT32), ("topic", UUID)]
    fields += [(name, IDS) for name in ("replicas", "isr", "removing", "adding")]
    fields += [(name, INT32) for name in ("leader", "leader_epoch", "partition_epoch")]
    fields += [("directories", CompactArray(UUID))] if version >= 1 else []
    return Schema(*fields, ("told", tags))


PARTITIONS = [_partition(version) for version in range(3)]
CHANGE = Schema(
    ("index", INT32), ("topic", UUID), ("told", TaggedFields({0: ("isr", IDS), 6: ("elr", IDS)}))
)
REGISTRATION = Schema(
    ("broker", INT32),
    ("epoch", INT64),
    ("told", TaggedFields({0: ("fenced", INT8), 1: ("shuts_down", INT8)})),
)
TOPIC = Schema(("topic", UUID), ("tags", Tags))

# `end`: the offset behind what was read, of the epoch `epoch`; `away`: whether the broker has left by then, fenced
# or in its controlled shutdown; `counts`: of how many partitions it is in sync or eligible to lead.
Seen = collections.namedtuple("Seen", ["end", "epoch", "away", "counts"])


class LogError(Exception):
    """The log is not whole, or has what is not known here."""


def last_seen(metadata_dir, broker):
    """Return what the log below a node's metadata directory says last of this broker, as Seen.

    Nobody may write there meanwhile. LogError where it cannot be told, OSError where it cannot be read.
    """
    folder = os.path.join(metadata_dir, FOLDER)
    names = sorted(os.listdir(folder))
    snapshots = [name for name in names if SNAPSHOT.match(name)]
    segments = [(int(SEGMENT.match(name).group(1)), name) for name in names if SEGMENT.match(name)]
    replay, end, epoch = _Replay(broker), 0, -1
    try:
        if snapshots:
            end = int(SNAPSHOT.match(snapshots[-1]).group(1))
            for batch in _batches(os.path.join(folder, snapshots[-1])):
                replay.take(batch)
        for index, (begin, name) in enumerate(segments):
            if index + 1 < len(segments) and segments[index + 1][0] <= end:
                continue
            path = os.path.join(folder, name)
            for batch in _batches(path, _position(path, end - begin)):
                if batch.last < end:
                    continue
                if batch.first > end:
                    raise LogError(f"what begins at {end} is missing")
                replay.take(batch)
                end, epoch = batch.last + 1, batch.epoch
    except (WireError, struct.error, IndexError, KeyError) as error:
        raise LogError(f"{type(error).__name__}: {error}") from None
    return Seen(end, epoch, replay.away, len(replay.held))


class _Batch:
    """`first`, `last`: offsets; `epoch`: of the leader that wrote it; `data[at:end]`: its `count` records."""

    def __init__(self, head, data, at, end):
        self.first, self.epoch, self.attributes = head[0], head[2], head[5]
        self.last, self.count = head[0] + head[6], head[12]
        self._data, self._at, self._end = data, at, end

    def values(self):
        """Yield what is in each record; nothing where only Raft is told something."""
        if self.attributes & CONTROL:
            return
        if self.attributes & COMPRESSED:
            raise LogError("a batch is compressed")
        data, at = bytes(self._data[self._at : self._end]), 0
        for _each in range(self.count):
            size, at = _signed(data, at)
            following = at + size
            at += 1  # attributes
            for _delta in range(2):
                _number, at = _signed(data, at)
            size, at = _signed(data, at)
            at += max(size, 0)  # the key
            size, at = _signed(data, at)
            yield data[at : at + max(size, 0)]
            at = following


def _batches(path, at=0):
    """Yield the batches of a file from a place on, as _Batch; one that is cut off ends it."""
    if not os.path.getsize(path):
        return
    with open(path, "rb") as handle:
        with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
            while at + BATCH.size <= len(data):
                head = BATCH.unpack_from(data, at)
                end = at + BEFORE_LENGTH + head[1]
                if head[3] != 2 or head[1] <= 0 or end > len(data):
                    return
                yield _Batch(head, data, at + BATCH.size, end)
                at = end


def _position(segment, offset):
    """Return where the batch of an offset, less the segment's first one, begins, or a place before it."""
    found = 0
    try:
        with open(segment[: -len(".log")] + ".index", "rb") as handle:
            data = handle.read()
    except OSError:
        return found
    for at in range(0, len(data) - ENTRY.size + 1, ENTRY.size):
        told, position = ENTRY.unpack_from(data, at)
        # behind its last entry an index may have room, which is empty
        if told > offset or position < found:
            break
        found = position
    return found


def _signed(data, at):
    number, at = read_varint(data, at)
    return (number >> 1) ^ -(number & 1), at


class _Replay:
    """What is known of a broker after some records; `held`: (topic, index) of the partitions that it counts for."""

    def __init__(self, broker):
        self._broker = broker
        # topic -> indexes of its partitions: one that is deleted is looked up, and not searched for
        self._in = {"isr": {}, "elr": {}}
        self._known = {}
        self.away = False

    @property
    def held(self):
        """The partitions of which it is in sync or eligible to lead."""
        lists = self._in.values()
        return {(topic, index) for each in lists for topic in each for index in each[topic]}

    def take(self, batch):
        """Read the records of a batch."""
        for value in batch.values():
            if value:
                self._take(value)

    def _take(self, value):
        _frame, at = read_varint(value, 0)
        kind, at = read_varint(value, at)
        version, at = read_varint(value, at)
        if kind > LAST_KIND or version > VERSIONS.get(kind, version) or kind == ABORT_TRANSACTION:
            raise LogError(f"a record of kind {kind}, version {version}, is not known here")
        if kind == PARTITION:
            told = PARTITIONS[version].decode(value, at)[0]
            key = (told["topic"], told["index"])
            self._known.setdefault(key[0], set()).add(key[1])
            self._note(key, {"isr": told["isr"], "elr": told["told"].get("elr", [])})
        elif kind == PARTITION_CHANGE:
            told = CHANGE.decode(value, at)[0]
            key = (told["topic"], told["index"])
            if key[1] not in self._known.get(key[0], ()):
                raise LogError("a partition changes that is not known")
            self._note(key, told["told"])
        elif kind == REMOVE_TOPIC:
            topic = TOPIC.decode(value, at)[0]["topic"]
            for topics in (self._known, *self._in.values()):
                topics.pop(topic, None)
        elif kind in (REGISTER_BROKER, UNFENCE_BROKER):
            if INT32.decode(value, at)[0] == self._broker:
                self.away = False
        elif kind == REGISTRATION_CHANGE:
            told = REGISTRATION.decode(value, at)[0]
            if told["broker"] == self._broker:
                fenced, shuts_down = (told["told"].get(key, 0) for key in ("fenced", "shuts_down"))
                self.away = (self.away or fenced > 0 or shuts_down > 0) and fenced >= 0

    def _note(self, key, lists):
        """Note the lists that are there, of this partition; one that is not told stays."""
        for name, topics in self._in.items():
            if name in lists:
                indexes = topics.setdefault(key[0], set())
                (indexes.add if self._broker in lists[name] else indexes.discard)(key[1])
