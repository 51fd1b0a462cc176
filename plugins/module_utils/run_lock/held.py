# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""A cluster's lock on one host: a file that says which run holds it, there or not there.

It outlives processes and reboots, other than the locks of `files.exclusive`, under one of which
each change of it is made: reading, comparing and writing are one step. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
from dataclasses import dataclass
from typing import Iterator, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    exclusive,
    json_text,
    remove_partials,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.owner import (
    UNREADABLE,
    Owner,
)

# Held while the files beside it are read and written.
GUARD = ".lock"


@dataclass(frozen=True)
class Taken:
    """Whether the lock was granted, who holds it now, and whether a module of the other run still worked."""

    granted: bool
    holder: Owner
    waited: bool = False


def path_of(directory: str, cluster: str) -> str:
    """Return the path of a cluster's lock in the directory of the locks."""
    return os.path.join(directory, re.sub(r"[^A-Za-z0-9._-]", "_", cluster) + ".json")


def holder_of(directory: str, cluster: str) -> Optional[Owner]:
    """Return who holds the lock, None if nobody does. Raises OSError other than of an absent file."""
    try:
        with open(path_of(directory, cluster), encoding="utf-8") as source:
            text = source.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return Owner.from_dict(json.loads(text))
    except (ValueError, KeyError, TypeError):
        return Owner(UNREADABLE, "", 0, 0, "", "", cluster, 0)


def take(
    directory: str,
    cluster: str,
    owner: Owner,
    instead_of: Optional[Owner] = None,
    wait_for: Sequence[str] = (),
) -> Taken:
    """Take the lock if it is free, ours already, or held by exactly `instead_of`.

    `wait_for`: lock files of instances. What replaces another run waits for them: a module that the
    other one has left running holds its instance's lock until it is done. Raises OSError.
    """
    with _alone(directory, create=True):
        holder = holder_of(directory, cluster)
        if holder is not None and not owner.is_same(holder) and not holder.is_same(instead_of):
            return Taken(False, holder)
        if not owner.is_same(holder):
            text = json_text(owner.to_dict())
            write_atomically(path_of(directory, cluster), text, mode=0o644)
    if instead_of is None:
        return Taken(True, owner)
    waits = [_wait_for(path) for path in wait_for]
    return Taken(True, owner, waited=any(waits))


def give_back(directory: str, cluster: str, owner: Owner) -> bool:
    """Remove the lock if it is ours, and the directory if nothing else is in it; tell whether it was.

    Raises OSError.
    """
    if not os.path.isdir(directory):
        return False
    with _alone(directory, create=False) as there:
        if not there:
            return False
        ours = owner.is_same(holder_of(directory, cluster))
        if ours:
            os.unlink(path_of(directory, cluster))
        remove_partials(directory)
        if os.listdir(directory) == [GUARD]:
            os.unlink(os.path.join(directory, GUARD))
            with contextlib.suppress(OSError):
                os.rmdir(directory)
        return ours


def check_held(directory: str, cluster: str, owner: str) -> None:
    """Raise ProblemError unless the run `owner` (its id) still holds the lock.

    For whoever is about to start or stop something: a worker that has outlived its run, or a run whose
    lock was broken, must not go on beside the one that has it now.
    """
    holder = holder_of(directory, cluster)
    if holder is not None and holder.id == owner:
        return
    who = f"{holder.described()} has it" if holder else "nobody has it"
    raise ProblemError(
        Problem(
            "run.lock_lost",
            f"the run {owner} no longer holds the lock of cluster {cluster}: {who}",
            "see who holds it now (playbooks/status.yml), and run again when that run has ended",
            (path_of(directory, cluster),),
        )
    )


@contextlib.contextmanager
def _alone(directory: str, create: bool) -> Iterator[bool]:
    """Keep others away from the directory; yields False where it is absent and not to be created.

    Whoever leaves last removes guard and directory, so that what was locked may be another file than
    the one that is there now: then once more.
    """
    guard = os.path.join(directory, GUARD)
    while True:
        if create:
            try:
                os.makedirs(directory, mode=0o755, exist_ok=True)
            except FileExistsError:
                # Either it is no directory, or it was removed before makedirs looked what it is.
                with contextlib.suppress(FileNotFoundError):
                    if not stat.S_ISDIR(os.lstat(directory).st_mode):
                        raise
                continue
        with contextlib.ExitStack() as stack:
            try:
                descriptor = stack.enter_context(exclusive(guard))
            except FileNotFoundError:
                if create:
                    continue
                yield False
                return
            if _is_there(guard, descriptor):
                yield True
                return


def _is_there(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _wait_for(path: str) -> bool:
    """Wait until nobody holds the lock of an instance; tell whether somebody did.

    One that is not there is held by nobody.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        # shared: enough to wait for, and a read-only file may be locked so on any file system
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return True
    finally:
        os.close(descriptor)
