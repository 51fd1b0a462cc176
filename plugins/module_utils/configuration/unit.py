# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Paths as systemd's unit files want them, and the sandbox that fits the directories of an instance. Pure."""

from __future__ import annotations

import posixpath
import string
from typing import Any, Dict, Iterable, List, Sequence

# What ProtectHome hides, and what PrivateTmp replaces by directories that go when the unit stops.
HOMES = ("/home", "/root", "/run/user")
OWN_TEMPORARY = ("/tmp", "/var/tmp")
RUN = "/run"
_PLAIN = string.ascii_letters + string.digits + ":_."


def unit_word(text: str) -> str:
    """Return text as one word of a setting: no specifier, blank or colon is read in it."""
    text = str(text).replace("%", "%%")
    if not any(char in text for char in " \t\"'\\\\;:"):
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def mount_units(paths: Iterable[str]) -> List[str]:
    """Return the names of all mount units that may hold these directories, the outermost first.

    Which one of `/`, `/data` and `/data/1` is a mount point is known to systemd only; it leaves out
    units that do not exist. The root file system is always there.
    """
    found: List[str] = []
    for path in paths:
        parts = [part for part in str(path).split("/") if part]
        for depth in range(1, len(parts) + 1):
            unit = _escaped("/".join(parts[:depth])) + ".mount"
            if unit not in found:
                found.append(unit)
    return found


def _escaped(path: str) -> str:
    """Return what `systemd-escape --path` prints."""
    out = []
    for index, char in enumerate(path):
        if char == "/":
            out.append("-")
        elif char in _PLAIN and not (char == "." and index == 0):
            out.append(char)
        else:
            out += [f"\\x{byte:02x}" for byte in char.encode("utf-8")]
    return "".join(out)


def normal_path(path: str) -> str:
    """Return a path in one spelling: one slash at its beginning and none at its end, /run by that name."""
    path = posixpath.normpath("/" + str(path).lstrip("/"))
    return path[len("/var") :] if f"{path}/".startswith("/var/run/") else path


def root_of(path: str, roots: Iterable[str]) -> str:
    """Return which of these directories a path lies in, or is; "" for none."""
    path = normal_path(path)
    return next((root for root in roots if f"{path}/".startswith(f"{root}/")), "")


def sandbox(
    writes: Sequence[str],
    data: Sequence[str],
    reads: Sequence[str],
    state_dir: str,
    dumps: str = "",
    class_data: str = "",
) -> Dict[str, Any]:
    """Return the part of a unit that lets its instance see its directories, and write where it has to.

    `writes`: directories without which it does not start; `data`: those that may be missing, as a disk may;
    `reads`: what it only reads; `dumps`: the file of a heap dump; `class_data`: a directory of archives. Of what lies
    in a home nothing else is seen; where nothing lies there, homes are hidden as a whole. What lies in /tmp is bound
    into the unit's own, since that goes when it stops.

    Returns `runtime`: the value of RuntimeDirectory, "" where the state is not below /run; `lines`: of [Service];
    `paths`: the settings with paths in them, whose change is a reason to restart.
    """
    state = normal_path(state_dir)
    runtime = state[len(RUN) + 1 :] if root_of(state, (RUN,)) and not root_of(state, HOMES) else ""
    needed = [*writes, *([] if runtime else [state_dir])]
    written = _each_once([*needed, *data])
    for path in (posixpath.dirname(dumps), class_data):
        if path and normal_path(path) != "/" and not root_of(path, map(normal_path, written)):
            written.append(path)
    seen = _each_once([*written, *reads])
    bound = [path for path in seen if _is_bound(path)]
    homes = {root_of(path, HOMES) for path in bound} - {""}
    paths = {
        "ReadWritePaths": [path for path in written if not root_of(path, (*HOMES, *OWN_TEMPORARY))],
        "BindPaths": [path for path in bound if path in written],
        "BindReadOnlyPaths": [path for path in bound if path not in written],
    }
    # Of an empty directory in its own /tmp it would start, and lose what it writes.
    must = {*needed, *reads, *(path for path in data if root_of(path, OWN_TEMPORARY))}
    lines = {key: [_path_line(key, each, must) for each in listed] for key, listed in paths.items()}
    return {
        "runtime": runtime,
        "lines": [
            *lines.pop("ReadWritePaths"),
            *_hidden_homes(homes),
            *(line for listed in lines.values() for line in listed),
        ],
        "paths": {key: " ".join(listed) for key, listed in paths.items() if listed},
    }


def _each_once(paths: Iterable[str]) -> List[str]:
    return list(dict.fromkeys(map(str, paths)))


def _is_bound(path: str) -> bool:
    """Whether a unit sees a path only where it is bound into it; a whole home, or all of /tmp, is not."""
    root = root_of(path, (*HOMES, *OWN_TEMPORARY))
    return bool(root) and normal_path(path) != root


def _path_line(key: str, path: str, needed: Iterable[str]) -> str:
    return f"{key}={'' if path in needed else '-'}{unit_word(path)}"


def _hidden_homes(used: Iterable[str]) -> List[str]:
    """Lines that hide all homes but what is bound from those in use.

    ProtectHome=tmpfs would do the same, but lets an instance write there, where a disk is missing (systemd 252).
    """
    if not used:
        return ["ProtectHome=yes"]
    shown = [root for root in HOMES if root in used]
    others = [f"-{root}" for root in HOMES if root not in used]
    lines = [f"TemporaryFileSystem={' '.join(f'{root}:ro' for root in shown)}"]
    return lines + ([f"InaccessiblePaths={' '.join(others)}"] if others else [])
