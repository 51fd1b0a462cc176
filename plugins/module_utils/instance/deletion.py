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


def present(directories: Iterable[str]) -> Tuple[str, ...]:
    """Return those that are there, links to nowhere among them."""
    return tuple(path for path in directories if os.path.lexists(path))


def delete(directories: Iterable[str], name: str, cluster: str) -> Tuple[bool, Tuple[str, ...]]:
    """Delete directories with all they hold; return (whether anything was deleted, what stays and why).

    Folders above that bear the name of the instance or of its cluster go if they are empty. Raises OSError.
    """
    directories = tuple(directories)
    deleted, kept = False, []
    for path in present(directories):
        deleted = True
        if os.path.islink(path):
            kept.append(f"{os.path.realpath(path)}: {path} was a link to it")
            os.unlink(path)
        elif os.path.ismount(path):
            deleted = bool(_emptied(path))
            kept.append(f"{path}: something is mounted there, it is empty now")
        else:
            shutil.rmtree(path)
    for folder in folders_above(directories, {name, cluster}):
        # Other folders in that of the cluster are those of its other instances, which have their own turn.
        shared = os.path.basename(folder) != name
        deleted = _left_empty(folder, shared, kept) or deleted
    return deleted, tuple(kept)


def _emptied(path: str) -> int:
    """Delete what a directory holds; return how much that was."""
    entries = sorted(os.scandir(path), key=lambda each: each.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    return len(entries)


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
