# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a controller knows the migration to be, read from its own metadata log on its disk.

The active controller writes each state as a record (ZkMigrationStateRecord), and the metric ZkMigrationState is made of
that record. So the log tells the same as JMX, on every controller, without a JVM, a port or a login. What is written is
not committed yet; what all voters have written is.

Runs on managed hosts with Python 3.9 and nothing else. Format: Kafka's documentation, "Message Format", and
KafkaRaft's framing of a record: version of the frame, type and version as unsigned varints, then the message.
"""

from __future__ import annotations

import os
import re
import struct
from typing import Dict, Iterator, List, Optional, Tuple

TOPIC = "__cluster_metadata-0"
# Values of the record, and of the metric; they do not rise in the order of the way.
STATES: Dict[int, str] = {
    0: "NONE",
    1: "MIGRATION",
    2: "PRE_MIGRATION",
    3: "POST_MIGRATION",
    4: "ZK",
}
_NOTHING, _STATE, _BEGIN, _END, _ABORT = 20, 21, 23, 24, 25
_BATCH = struct.Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH = 12
_COMPRESSED, _CONTROL = 0x07, 0x20
_SEGMENT = re.compile(r"^(\d{20})\.log$")
_SNAPSHOT = re.compile(r"^(\d{20})-\d{10}\.checkpoint$")


def unsigned(data: bytes, at: int) -> Tuple[int, int]:
    """(number, where it ends) of an unsigned varint."""
    shift = result = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return result, at
        shift += 7


def signed(data: bytes, at: int) -> Tuple[int, int]:
    """(number, where it ends) of a varint in zigzag encoding."""
    number, at = unsigned(data, at)
    return (number >> 1) ^ -(number & 1), at


def records_of(data: bytes, since: int = 0) -> Iterator[Tuple[int, bytes]]:
    """(offset, value) of all records in a segment or snapshot, without control records.

    `since`: batches that begin before this offset are left out. A batch that is being written ends it.
    """
    at = 0
    while at + _BATCH.size <= len(data):
        head = _BATCH.unpack_from(data, at)
        offset, length, magic, attributes, count = head[0], head[1], head[3], head[5], head[12]
        end = at + _BEFORE_LENGTH + length
        if magic != 2 or length <= 0 or end > len(data):
            return
        place, at = at + _BATCH.size, end
        if attributes & _CONTROL or offset < since:
            continue
        if attributes & _COMPRESSED:
            raise ValueError("a batch of the metadata log is compressed")
        for index in range(count):
            size, place = signed(data, place)
            following = place + size
            # nothing compacts this log, so that no record of a batch is missing
            yield offset + index, _value(data, place)
            place = following


def values_of(data: bytes, since: int = 0) -> Iterator[bytes]:
    """The values of records_of."""
    return (value for _offset, value in records_of(data, since))


def _value(data: bytes, at: int) -> bytes:
    at += 1  # attributes
    for _delta in range(2):
        _number, at = signed(data, at)
    size, at = signed(data, at)
    at += max(size, 0)  # the key
    size, at = signed(data, at)
    return data[at : at + max(size, 0)]


def last_state(values: Iterator[bytes], before: Optional[str] = None) -> Optional[str]:
    """The state that the last record names; `before` where none does. What a transaction writes counts from its end."""
    state, pending, within = before, None, False
    for value in values:
        if not value:
            continue
        _frame, at = unsigned(value, 0)
        kind, at = unsigned(value, at)
        _version, at = unsigned(value, at)
        if kind == _STATE:
            named = STATES.get(value[at], str(value[at]))
            if within:
                pending = named
            else:
                state = named
        elif kind == _BEGIN:
            within, pending = True, None
        elif kind in (_END, _ABORT):
            if kind == _END and pending:
                state = pending
            within, pending = False, None
    return state


def state_on_disk(metadata_dir: str) -> Optional[str]:
    """The state in the log below a controller's metadata directory; None where nothing tells one."""
    folder, snapshots, segments = _files(metadata_dir)
    state, since = None, 0
    if snapshots:
        since = int(snapshots[-1].split("-")[0])
        state = last_state(values_of(_content(folder, snapshots[-1])))
    for index, (_begin, name) in enumerate(segments):
        following = segments[index + 1][0] if index + 1 < len(segments) else None
        if following is None or following > since:
            state = last_state(values_of(_content(folder, name), since), state)
    return state


def last_on_disk(metadata_dir: str) -> int:
    """The offset of the last record in a controller's log that says anything; -1 where there is none.

    Records that the active controller writes twice a second to show that it is there do not count. What a snapshot
    has was written before its end.
    """
    folder, snapshots, segments = _files(metadata_dir)
    last = int(snapshots[-1].split("-")[0]) - 1 if snapshots else -1
    for begin, name in reversed(segments):
        told = [
            offset
            for offset, value in records_of(_content(folder, name))
            if value and unsigned(value, unsigned(value, 0)[1])[0] != _NOTHING
        ]
        if told or begin <= last:
            return max([last, *told[-1:]])
    return last


def _files(metadata_dir: str) -> Tuple[str, List[str], List[Tuple[int, str]]]:
    """(folder, snapshots, (first offset, segment)) of the log below a metadata directory, oldest first."""
    folder = os.path.join(metadata_dir, TOPIC)
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        names = []
    snapshots = [name for name in names if _SNAPSHOT.match(name)]
    matches = [(_SEGMENT.match(name), name) for name in names]
    return folder, snapshots, [(int(match.group(1)), name) for match, name in matches if match]


def _content(folder: str, name: str) -> bytes:
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()
    except (
        FileNotFoundError
    ):  # Kafka has deleted it meanwhile, because a newer snapshot has all of it
        return b""
