# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""A copy of what a ZooKeeper server needs to start again, made while it runs.

A snapshot is never changed, and a log only grows, so a copy of a running server's files is what a
crash at that moment would have left: an intact start, up to the last transaction that was copied.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from typing import Dict, Iterable, List, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    CHUNK_BYTES,
    PARTIAL,
    flush,
    flush_directory,
    remove,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_size

VERSION_2 = "version-2"
# With snapshot.compression.method the name has one more suffix: snapshot.1f.gz
NUMBERED = re.compile(r"^(snapshot|log)\.([0-9a-f]+)(?:\.\w+)?$")
EPOCHS = ("acceptedEpoch", "currentEpoch")
# The newest may be half written.
SNAPSHOTS_KEPT = 2
# Two transaction logs, as a server allocates them: one that cannot write its log ends.
RESERVE_BYTES = 2 * 64 * 2**20


def needed(names: Iterable[str]) -> List[str]:
    """Of the files of version-2 directories, those that a start needs, in the order to copy them in.

    The newest snapshots, and every transaction log from the one on that holds the transaction after
    the oldest of them.
    """
    numbers: Dict[str, List[Tuple[int, str]]] = {"snapshot": [], "log": []}
    epochs = []
    for name in names:
        match = NUMBERED.match(name)
        if match:
            numbers[match[1]].append((int(match[2], 16), name))
        elif name in EPOCHS:
            epochs.append(name)
    snapshots = sorted(numbers["snapshot"])[-SNAPSHOTS_KEPT:]
    oldest = snapshots[0][0] if snapshots else 0
    before = [number for number, _name in numbers["log"] if number <= oldest]
    first = max(before, default=0)
    logs = sorted(each for each in numbers["log"] if each[0] >= first)
    return sorted(epochs) + [name for _number, name in snapshots + logs]


def copy(data_dir: str, data_log_dir: str, name: str) -> Dict[str, int]:
    """Copy what `needed` names into `data_dir`/`name`, whole or not at all; file -> bytes.

    Only the account that copies can read it: ZooKeeper holds the users' credentials. A copy of the
    same name is replaced. A server without data has nothing to copy: no directory is made. Raises OSError,
    before anything is copied if too little room would be left for the server, which may run.
    """
    places: Dict[str, str] = {}
    for directory in (data_log_dir, data_dir):
        place = os.path.join(directory, VERSION_2)
        if os.path.isdir(place):
            places.update((each, os.path.join(place, each)) for each in os.listdir(place))
    wanted = needed(places)
    if not wanted:
        return {}
    beginning = f"{PARTIAL}{name}."
    for left in os.listdir(data_dir):
        if left.startswith(beginning):
            remove(os.path.join(data_dir, left))
    _check_room(data_dir, [places[each] for each in wanted])
    temporary = tempfile.mkdtemp(prefix=beginning, dir=data_dir)
    try:
        inside = os.path.join(temporary, VERSION_2)
        os.mkdir(inside, 0o700)
        sizes = {each: _copy_file(places[each], os.path.join(inside, each)) for each in wanted}
        flush_directory(inside)
        target = os.path.join(data_dir, name)
        if os.path.lexists(target):
            os.rename(target, tempfile.mkdtemp(prefix=beginning, dir=data_dir) + "/old")
        os.rename(temporary, target)
    finally:
        for left in os.listdir(data_dir):
            if left.startswith(beginning):
                remove(os.path.join(data_dir, left))
    flush_directory(data_dir)
    return sizes


def _check_room(directory: str, paths: Iterable[str]) -> None:
    """OSError unless copies of these files leave RESERVE_BYTES on the disk of `directory`."""
    disk = os.statvfs(directory)
    free = disk.f_bavail * disk.f_frsize
    # Holes are copied as holes.
    wanted = sum(min(each.st_size, each.st_blocks * 512) for each in map(os.stat, paths))
    if free < wanted + RESERVE_BYTES:
        raise OSError(
            errno.ENOSPC,
            f"the copy takes {approximate_size(wanted)}, and {approximate_size(free)} are left, of which"
            f" {approximate_size(RESERVE_BYTES)} must stay free for the server",
            directory,
        )


def _copy_file(source: str, target: str) -> int:
    """Copy a file, holes as holes (logs are allocated ahead, 64 MiB each); returns its bytes."""
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as reader, open(target, "xb") as writer:
        os.fchmod(writer.fileno(), 0o600)
        for chunk in iter(lambda: reader.read(CHUNK_BYTES), b""):
            if chunk.strip(b"\0"):
                writer.write(chunk)
            else:
                writer.seek(len(chunk), os.SEEK_CUR)
        writer.truncate(writer.tell())
        flush(writer)
        return writer.tell()
