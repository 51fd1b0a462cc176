# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The log files of an instance, read from where they ended when a start began."""

from __future__ import annotations

import os
import re
from typing import Dict, List, Sequence

# Of one file, at most this much of its end is read at once.
TAIL_BYTES = 65536
LINES = 20
# A line that complains: a level of log4j and logback, or what Java prints of an exception.
_COMPLAINT = re.compile(
    r"\b(ERROR|FATAL)\b|^Caused by: |^(Exception in |[\w.$]+(Exception|Error)\b)"
)


class Journal:
    """What the log files `paths` have gained since this was made; with `whole`, all that is in them."""

    def __init__(self, paths: Sequence[str], whole: bool = False):
        self._paths = tuple(paths)
        self._begin = {path: 0 if whole else _size(path) for path in self._paths}
        self._seen: Dict[str, int] = dict(self._begin)

    def last_lines(self, lines: int = LINES) -> str:
        """Return an excerpt of the end of each file, none of it older than this journal."""
        parts = []
        for path in self._paths:
            tail = excerpt(_text(path, self._begin[path]).splitlines(), lines)
            if tail:
                parts.append("\n".join([f"--- {path}", *tail]))
        return "\n".join(parts)

    def has_new(self, pattern: str) -> bool:
        """Tell whether a line that matches `pattern` has come since the last call."""
        found = False
        for path in self._paths:
            size = _size(path)
            if size == self._seen[path]:
                continue
            found = found or bool(pattern and re.search(pattern, _text(path, self._seen[path])))
            self._seen[path] = size
        return found


def excerpt(lines: Sequence[str], most: int = LINES) -> List[str]:
    """Return the last `most` of the lines; where none of them complains, half of them are the last that do.

    A process that is stopped while it tries once more has a list of settings at its end, and the reason above.
    """
    tail = list(lines[-most:])
    if any(_COMPLAINT.search(line) for line in tail):
        return tail
    complaints = [line for line in lines[:-most] if _COMPLAINT.search(line)]
    if not complaints:
        return tail
    # What is said again in each attempt, but for its time, is said once.
    latest = {re.sub(r"^\[?[\d:,. TZ-]+\]? ", "", line): line for line in complaints}
    half = most // 2
    return [*list(latest.values())[-half:], "...", *tail[-(most - half - 1) :]]


def _text(path: str, start: int) -> str:
    """Return the text of `path` from `start` on; of much text only the end."""
    try:
        with open(path, "rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            # A file that has shrunk was rotated: all of it is new.
            handle.seek(max(start if start <= size else 0, size - TAIL_BYTES))
            return handle.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
