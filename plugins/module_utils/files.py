# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The one way to read and to write a file whole, to digest one, and the one lock between runs on a machine.

Standard library only: managed hosts use it, too.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from typing import IO, Any, Callable, Iterable, Iterator, List, Optional, Tuple, Union

from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

# Begins the name of what a killed run may have left: never taken for a complete file.
PARTIAL = ".partial-"
CHUNK_BYTES = 1024 * 1024
# With less than this left, a disk is full: the next file does not fit.
FULL_BYTES = 65536
# Longer than anything that is done under a lock, a start with log recovery among it.
LOCK_SECONDS = 3600.0
LOCK_POLL_SECONDS = 0.02
# In a directory of `swept_directory`; and until when one may not have it yet.
IN_USE, YOUNG_SECONDS = "in-use", 60.0


def read_text(path: str) -> Optional[str]:
    """Return the file's text, or None where it is missing or not readable for us."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return None


def is_new_mount(path: str) -> bool:
    """Whether a directory is root's, and holds nothing but what a file system begins with, as of a new disk."""
    try:
        with os.scandir(path) as entries:
            empty = all(each.name == "lost+found" for each in entries)
        return empty and not os.path.islink(path) and os.stat(path).st_uid == 0
    except OSError:
        return False


def json_text(value: Any) -> str:
    """Return `value` as the text of a file: the same value is the same bytes, for people to read, too."""
    return json.dumps(value, sort_keys=True, indent=1) + "\n"


def write_atomically(
    path: str,
    content: Union[str, bytes],
    mode: int = 0o640,
    owner: Optional[Tuple[int, int]] = None,
) -> None:
    """Put `content` at `path` so that a crash leaves the old file or the new one, whole.

    `owner`: (uid, gid) of the file, None for the writer's. The temporary name cannot be predicted
    and is created exclusively: root also writes where a service account may plant links. A link at
    `path` itself is replaced, never followed. Raises OSError, and leaves no temporary file then.
    """
    directory, name = os.path.split(os.path.abspath(path))
    descriptor, temporary = tempfile.mkstemp(prefix=f"{PARTIAL}{name}.", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content.encode("utf-8") if isinstance(content, str) else content)
            os.fchmod(stream.fileno(), mode)
            if owner is not None:
                os.fchown(stream.fileno(), *owner)
            flush(stream)
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:
            # "No space left on device" alone does not tell which one.
            error.filename = path
        raise
    flush_directory(directory)


def without_room(paths: Iterable[str]) -> List[str]:
    """Return those of `paths` on whose file system nothing more can be written by an ordinary account."""
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            disk = os.statvfs(path)
            # Some file systems count no files: they have none left of none.
            no_files = disk.f_files > 0 and disk.f_favail == 0
            if disk.f_bavail * disk.f_frsize < FULL_BYTES or no_files:
                found.append(path)
    return found


def sha512_of(path: str) -> str:
    """Return the SHA-512 of a file as lower-case hex; 60 MB take about 0.1 s."""
    digest = hashlib.sha512()
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(CHUNK_BYTES), b""):
            digest.update(chunk)
    return digest.hexdigest()


def flush(stream: IO[Any]) -> None:
    """Bring a written file to the disk, before a rename may promise that it is there."""
    stream.flush()
    os.fsync(stream.fileno())


def flush_directory(path: str) -> None:
    """Bring a directory's entries (a rename in it) to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: str) -> None:
    """Delete a file, a link or a whole directory; nothing there is fine."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def remove_partials(directory: str) -> List[str]:
    """Delete what killed runs left in `directory`; only under its lock. Returns their names."""
    names = sorted(name for name in os.listdir(directory) if name.startswith(PARTIAL))
    for name in names:
        remove(os.path.join(directory, name))
    return names


@contextlib.contextmanager
def in_memory(text: str) -> Iterator[int]:
    """A descriptor of a file that has this text and no name on any disk: a kill leaves no secret behind.

    Who is given it, or is this process, reads it as `path_of(descriptor)`: on Linux as often as he likes, elsewhere
    once, of a file whose name is gone at once.
    """
    if hasattr(os, "memfd_create"):
        stream = os.fdopen(os.memfd_create("kafkaops"), "w", encoding="utf-8")
    else:
        stream = tempfile.TemporaryFile("w", encoding="utf-8")
    with stream:
        stream.write(text)
        stream.seek(0)
        yield stream.fileno()


def path_of(descriptor: int) -> str:
    """The path of an open file, for this process and those that inherit it."""
    return f"/dev/fd/{descriptor}"


@contextlib.contextmanager
def swept_directory(prefix: str, now: Callable[[], float] = time.time) -> Iterator[str]:
    """A new directory of this user alone while the context is open; a kill leaves it to whoever asks for the next.

    `prefix`: of its name, and of those that are swept. A lock, which the kernel gives back with the process, says
    that one is in use; a young one may not have it yet.
    """
    parent = tempfile.gettempdir()
    for name in sorted(os.listdir(parent)):
        path = os.path.join(parent, name)
        with contextlib.suppress(OSError):
            told = os.lstat(path)
            ours = name.startswith(prefix) and told.st_uid == os.getuid()
            if ours and stat.S_ISDIR(told.st_mode) and now() - told.st_mtime > YOUNG_SECONDS:
                _sweep(path)
    with tempfile.TemporaryDirectory(prefix=prefix) as directory:
        with open(os.path.join(directory, IN_USE), "w", encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield directory


def _sweep(path: str) -> None:
    """Remove a directory that nobody holds."""
    with open(os.path.join(path, IN_USE), "w", encoding="ascii") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path)


@contextlib.contextmanager
def exclusive(
    path: str,
    on_wait: Optional[Callable[[], None]] = None,
    mode: int = 0o644,
    owner: Optional[Tuple[int, int]] = None,
    seconds: float = LOCK_SECONDS,
) -> Iterator[int]:
    """Hold an exclusive lock on the file `path`; yields its descriptor.

    The kernel drops the lock with the last process that has the descriptor, so a killed run never
    leaves one behind. `on_wait()` is called once if somebody else holds it; TimeoutError if that is
    still so after `seconds`. The file is opened for
    appending, which changes no time stamp: a run that changes nothing leaves no trace.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, mode)
    try:
        if owner is not None:
            os.fchown(descriptor, *owner)
        if not locked_within(descriptor, fcntl.LOCK_EX, 0):
            if on_wait:
                on_wait()
            if not locked_within(descriptor, fcntl.LOCK_EX, seconds):
                why = f"another process holds this lock, for {seconds:g} s and longer"
                raise TimeoutError(errno.ETIMEDOUT, why, path)
        yield descriptor
    finally:
        os.close(descriptor)


def locked_within(descriptor: int, kind: int, seconds: float) -> bool:
    """Lock an open file (`kind`: LOCK_EX or LOCK_SH); False if others have it for `seconds`.

    Not by waiting in the kernel, which knows no deadline.
    """

    def locked() -> bool:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    return wait_until(locked, seconds, poll_seconds=LOCK_POLL_SECONDS)
