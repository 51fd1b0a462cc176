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
import glob
import json
import os
import re
import secrets
import stat
from dataclasses import dataclass
from typing import Any, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    exclusive,
    json_text,
    locked_within,
    read_text,
    remove_partials,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.owner import (
    UNREADABLE,
    Owner,
    has_ended,
    is_gone,
    owner_of,
)

THERE, GONE, REPLACED = "there", "gone", "replaced"
# Held while the files beside it are read and written.
GUARD = ".lock"
WAITED, BUSY = "waited", "busy"
# Behind the name of a cluster: the lock of who moves replicas between disks, which takes hours and stops nobody.
OF_DISKS = " (disks)"


@dataclass(frozen=True)
class Taken:
    """Whether the lock was granted, who holds it now, and whether a module of another run still worked.

    `busy`: the lock file of an instance at which one still works, "" if none does. `beside`: who holds the other one
    of the cluster's two locks here. `marks`: as of `marks_of`.
    """

    granted: bool
    holder: Owner
    waited: bool = False
    busy: str = ""
    beside: Optional[Owner] = None
    marks: Tuple[str, ...] = ()


def path_of(directory: str, cluster: str) -> str:
    """Return the path of a cluster's lock in the directory of the locks."""
    return os.path.join(directory, re.sub(r"[^A-Za-z0-9._-]", "_", cluster) + ".json")


def lock_beside(cluster: str) -> str:
    """Return the other one of the two locks of a cluster: that of its disks, and the other way round."""
    return cluster[: -len(OF_DISKS)] if cluster.endswith(OF_DISKS) else cluster + OF_DISKS


def marks_of(instances: Sequence[str]) -> Tuple[str, ...]:
    """Return what the runs that last gave the lock back have written into these lock files of instances.

    The owner and a word that nobody has had before: another one than a moment ago tells that a run has come and gone.
    """
    found = set()
    for path in instances:
        with contextlib.suppress(OSError, ValueError):
            found.add(read_text(path) or "")
    return tuple(sorted(found - {""}))


def _mark(instances: Iterable[str], owner: Owner) -> None:
    """Write a new mark into the lock files of instances; as if nothing had been written, by their times."""
    mark = f"{owner.id} {secrets.token_hex(8)}"
    for path in instances:
        # an instance that is not there any more, or one of a user that is not this one
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                times = os.fstat(descriptor)
                os.ftruncate(descriptor, 0)
                os.write(descriptor, mark.encode())
                os.utime(descriptor, ns=(times.st_atime_ns, times.st_mtime_ns))
            finally:
                os.close(descriptor)


def holder_of(directory: str, cluster: str, instances: Sequence[str] = ()) -> Optional[Owner]:
    """Return who holds the lock, None if nobody does. Raises OSError other than of an absent file.

    Also who holds one of these `instances` (their lock files) under another name of the cluster.
    """
    own = _read(path_of(directory, cluster))
    if own:
        return own.owner
    others = _under_other_names(directory, cluster, instances)
    return others[0][1].owner if others else None


@dataclass(frozen=True)
class _Held:
    owner: Owner
    instances: FrozenSet[str] = frozenset()


def _read(path: str) -> Optional[_Held]:
    """What a lock says; None where there is none. Raises OSError."""
    try:
        with open(path, encoding="utf-8") as source:
            text = source.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found = json.loads(text)
        # Earlier releases wrote no instances.
        return _Held(Owner.from_dict(found), frozenset(map(str, found.get("instances") or ())))
    except (ValueError, KeyError, TypeError):
        return _Held(Owner(UNREADABLE, "", 0, 0, "", "", "", 0))


def _under_other_names(
    directory: str, cluster: str, instances: Sequence[str]
) -> List[Tuple[str, _Held]]:
    """(path, lock) of each other lock of one of these instances: two inventories may name a cluster differently."""
    wanted = {_real(path) for path in instances}
    own = path_of(directory, cluster)
    found = []
    for path in sorted(glob.glob(os.path.join(glob.escape(directory), "*.json"))):
        held = _read(path) if path != own else None
        if held and not wanted.isdisjoint(held.instances):
            found.append((path, held))
    return found


def _real(path: str) -> str:
    """One path for an instance, whichever way an inventory names its directory."""
    return os.path.realpath(path)


def take(
    directory: str,
    cluster: str,
    owner: Owner,
    instead_of: Optional[Owner] = None,
    instances: Sequence[str] = (),
    seconds: float = 0.0,
) -> Taken:
    """Take the lock if it is free, ours already, or held by exactly `instead_of`.

    `instances`: lock files of the instances that this cluster has here. Whoever holds one of them under
    another name of the cluster holds the lock, too. A module that a run before has left running holds its
    instance's lock until it is done: that is waited for, for up to `seconds`. Raises OSError.
    """
    own = path_of(directory, cluster)
    with _alone(directory, create=True):
        held = _read(own)
        locks = [(own, held)] if held else []
        for path, lock in locks + _under_other_names(directory, cluster, instances):
            if owner.is_same(lock.owner):
                continue
            if not lock.owner.is_same(instead_of):
                return Taken(False, lock.owner)
            os.unlink(path)
        # Two inventory names of one machine ask one after the other.
        ours = held.instances if held and owner.is_same(held.owner) else None
        named = {_real(path) for path in instances}.union(ours or ())
        if ours is None or named != ours:
            text = {**owner.to_dict(), "instances": sorted(named)}
            write_atomically(own, json_text(text), mode=0o644)
    waits = {path: _wait_for(path, seconds) for path in instances}
    busy = [path for path, found in waits.items() if found == BUSY]
    beside = _read(path_of(directory, lock_beside(cluster)))
    return Taken(
        True,
        owner,
        waited=any(waits.values()),
        busy=busy[0] if busy else "",
        beside=beside.owner if beside else None,
        marks=marks_of(instances),
    )


def give_back(directory: str, cluster: str, owner: Owner) -> bool:
    """Remove the lock if it is ours, and the directory if nothing else is in it; tell whether it was.

    The instances that it was for are marked, so that a run that has looked at them before looks again. Raises OSError.
    """
    if not os.path.isdir(directory):
        return False
    with _alone(directory, create=False) as there:
        if not there:
            return False
        held = _read(path_of(directory, cluster))
        ours = held is not None and owner.is_same(held.owner)
        if held and ours:
            _mark(held.instances, owner)
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


def why_over(run: Mapping[str, Any], lock: Mapping[str, Any]) -> str:
    """Return why the work of a run must not go on, in words; "" if it may.

    `run`: its process on this machine, as `pid` and `start_ticks`; `lock`: what it holds here, as `directory`,
    `cluster` and `owner`. Either may be empty: then it is not looked at. Nor is a lock that cannot be read.
    """
    if run.get("pid") and has_ended(int(run["pid"]), int(run["start_ticks"])):
        return f"the run that has begun this (process {run['pid']}) has ended"
    if lock.get("owner"):
        try:
            check_held(lock["directory"], lock["cluster"], lock["owner"])
        except ProblemError as error:
            return error.problem.reason
        except OSError:
            return ""
    return ""


def why_unread(lock: Mapping[str, Any]) -> str:
    """Return a warning, in words, where the lock of `why_over` is given and cannot be read here; else ""."""
    if not lock.get("owner"):
        return ""
    try:
        holder_of(lock["directory"], lock["cluster"])
    except OSError as error:
        path = path_of(lock["directory"], lock["cluster"])
        return (
            f"The lock {path} cannot be read ({error.strerror or error}), so this goes on, too, when another run has "
            "taken it: give this user the right to read it."
        )
    return ""


def run_is(directory: str, cluster: str, owner: str) -> str:
    """THERE, GONE or REPLACED: what has become of the run `owner` (its id), as its lock on this host tells.

    For what a run has left behind to clean up after it. A run on another machine counts as there for as
    long as it has the lock, and so does one whose lock cannot be read. One that was replaced is gone when the
    one that has replaced it is.
    """
    try:
        holder = holder_of(directory, cluster)
    except OSError:
        return THERE
    if holder is None:
        return GONE
    viewer = owner_of(os.getpid(), "", cluster, 0)
    if viewer is not None and is_gone(holder, viewer):
        return GONE
    return THERE if holder.id == owner else REPLACED


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
                _make(directory)
            except FileExistsError:
                # Either it is not a directory, or it was removed before makedirs looked what it is.
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


def _make(directory: str) -> None:
    """Make the directory of the locks where it is absent, readable to all: who moves replicas is another user.

    Raises OSError.
    """
    absent = not os.path.isdir(directory)
    os.makedirs(directory, exist_ok=True)
    if absent:
        # Whoever has left last may have removed it.
        with contextlib.suppress(FileNotFoundError):
            # Not by the mode of makedirs: that goes through the umask.
            os.chmod(directory, 0o755)


def _is_there(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _wait_for(path: str, seconds: float) -> str:
    """Wait until nobody holds the lock of an instance: "" at once, WAITED after a while, BUSY if not within `seconds`.

    One that is not there is held by nobody.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    try:
        # shared: enough to wait for, and a read-only file may be locked so on any file system
        if locked_within(descriptor, fcntl.LOCK_SH, 0):
            return ""
        return WAITED if locked_within(descriptor, fcntl.LOCK_SH, seconds) else BUSY
    finally:
        os.close(descriptor)
