# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Paths as systemd's unit files want them."""

from __future__ import annotations

import string
from typing import Iterable, List

_PLAIN = string.ascii_letters + string.digits + ":_."


def unit_word(text: str) -> str:
    """Return text as one word of a setting: no specifier and no blank is read in it."""
    text = str(text).replace("%", "%%")
    if not any(char in text for char in " \t\"'\\\\;"):
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
