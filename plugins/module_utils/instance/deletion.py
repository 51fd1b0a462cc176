# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Delete an instance's directories, and the folders above them that were made for it and are empty."""

from __future__ import annotations

import errno
import os
import shutil
from typing import AbstractSet, Iterable, List, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some

# Of the host itself, whatever an inventory says, so that no instance has it. /mnt, /media and /srv may be disks.
OF_THE_HOST = frozenset(
    "/ /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /run /sbin /sys /tmp /usr /var"
    " /etc/default /etc/ssl /etc/systemd /etc/systemd/system /usr/bin /usr/lib /usr/lib/jvm /usr/local"
    " /usr/local/bin /usr/local/lib /usr/local/share /usr/sbin /usr/share"
    " /var/cache /var/lib /var/lock /var/log /var/opt /var/run /var/spool /var/tmp".split()
)


def is_of_the_host(path: str) -> bool:
    """Whether a path is a directory that every host has, so that it is nobody's own."""
    # of two slashes at the beginning normpath keeps both
    return os.path.normpath("/" + path.lstrip("/")) in OF_THE_HOST


def folders_above(directories: Iterable[str], names: AbstractSet[str]) -> Tuple[str, ...]:
    """Return the folders right above that bear one of these names, the deepest first.

    A folder of another name, such as a disk's mount point, was not made for the instance, nor is
    anything above it.
    """
    found = set()
    for path in directories:
        folder = os.path.dirname(os.path.normpath(path))
        while os.path.basename(folder) in names:
            found.add(folder)
            folder = os.path.dirname(folder)
    return tuple(sorted(found, key=lambda each: (-each.count(os.sep), each)))


def foreseen(directories: Iterable[str], name: str, cluster: str) -> Tuple[str, ...]:
    """Return what `delete` would delete or empty."""
    directories = tuple(directories)
    found = _to_delete(directories)
    gone = {os.path.normpath(path) for path in found if not _mounted(path)}
    for folder in folders_above(directories, {name, cluster}):
        held = {os.path.join(folder, each) for each in _entries(folder)}
        if os.path.isdir(folder) and not os.path.ismount(folder) and held <= gone:
            gone.add(folder)
            found.append(folder)
    return tuple(found)


def delete(
    directories: Iterable[str], name: str, cluster: str
) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """Delete directories with all they hold; return (what was deleted or emptied, what stays and why).

    Folders above that bear the name of the instance or of its cluster go if they are empty. Raises OSError.
    """
    directories = tuple(directories)
    deleted, kept = _to_delete(directories), []
    kept += [f"{path}: it is the host's" for path in directories if is_of_the_host(path)]
    for path in deleted:
        if not os.path.lexists(path):
            continue  # it was below another one
        if os.path.islink(path):
            kept.append(f"{os.path.realpath(path)}: {path} was a link to it")
            os.unlink(path)
        elif os.path.ismount(path):
            for each in _entries(path):
                _remove(os.path.join(path, each))
            kept.append(f"{path}: something is mounted there, it is empty now")
        else:
            _remove(path)
    for folder in folders_above(directories, {name, cluster}):
        # Other folders in that of the cluster are those of its other instances, which have their own turn.
        shared = os.path.basename(folder) != name
        if _left_empty(folder, shared, kept):
            deleted.append(folder)
    return tuple(deleted), tuple(kept)


def _to_delete(directories: Iterable[str]) -> List[str]:
    """Those that are there, links to nowhere among them; none of the host, no empty one where something is mounted."""
    own = [path for path in dict.fromkeys(directories) if not is_of_the_host(path)]
    there = [path for path in own if os.path.lexists(path)]
    return [path for path in there if not _mounted(path) or _entries(path)]


def _mounted(path: str) -> bool:
    return not os.path.islink(path) and os.path.ismount(path)


def _entries(path: str) -> List[str]:
    """The names in a directory; none where there is no directory."""
    try:
        return sorted(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _left_empty(folder: str, shared: bool, kept: List[str]) -> bool:
    """Remove a folder if it is empty; else note in `kept` what it holds. Tell whether it was removed."""
    try:
        os.rmdir(folder)
        return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
            raise
    held = sorted(each.name for each in os.scandir(folder) if not (shared and each.is_dir()))
    if shared and not held:
        return False
    why = f"it holds {some(held, 3)}" if held else "something is mounted there"
    kept.append(f"{folder}: {why}")
    return False
