# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `distribution` and `release` share: their error, digests, durable files and locks.

Private to this collection: names may change without notice. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil

CHUNK = 1024 * 1024
PARTIAL = ".partial-"


class SupplyError(Exception):
    """A refusal or failure, as one sentence with its remedy; the edge turns it into fail_json.

    `check` is the stable id (`version.unknown`), `setting` the input that led here (`name=value`).
    """

    def __init__(self, check, setting, reason, remedy):
        super().__init__(check, setting, reason, remedy)
        self.check = check
        self.setting = setting
        self.reason = reason
        self.remedy = remedy

    def __str__(self):
        return f"[{self.check}] {self.setting}: {self.reason}. Remedy: {self.remedy}."

    def to_dict(self):
        """As returned to the playbook."""
        return {
            "check": self.check,
            "setting": self.setting,
            "reason": self.reason,
            "remedy": self.remedy,
        }


def sha512_of(path):
    """Return the SHA-512 of a file as lower-case hex; 60 MB take about 0.1 s."""
    digest = hashlib.sha512()
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def write_durably(path, content):
    """Put `content` (bytes) at `path` so that a crash leaves the old file or the new, whole."""
    partial = os.path.join(os.path.dirname(path), PARTIAL + os.path.basename(path))
    with open(partial, "wb") as stream:
        stream.write(content)
        flush(stream)
    os.replace(partial, path)
    flush_directory(os.path.dirname(path))


def flush(stream):
    """Bring a written file to the disk, before a rename may promise that it is there."""
    stream.flush()
    os.fsync(stream.fileno())


def flush_directory(path):
    """Bring a directory's entries (a rename in it) to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path):
    """Delete a file, a link or a whole directory; nothing there is fine."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def remove_partials(directory):
    """Delete what killed runs left in `directory`; only under the lock. Returns their names."""
    names = sorted(name for name in os.listdir(directory) if name.startswith(PARTIAL))
    for name in names:
        remove(os.path.join(directory, name))
    return names


@contextlib.contextmanager
def exclusive(path, on_wait=None):
    """Hold an exclusive lock on the file `path`; yields its descriptor.

    The kernel drops the lock with the last process that has the descriptor, so a killed run never
    leaves one behind. `on_wait()` is called once if somebody else holds it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait:
                on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
