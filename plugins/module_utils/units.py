# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Durations and sizes as people write them, and back.

Private to this collection. Pure text: no Ansible, no Kafka. What could mean two things is refused,
because the wrong guess deletes data: `10G` is 10^10 to some and 10 * 2^30 to others, `1m` a minute
here and a month elsewhere, so a month is not accepted under any name.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import shown

UNLIMITED = -1
LONG_MAX = 2**63 - 1

_MILLISECONDS = {
    "ms": 1,
    "s": 1000,
    "m": 60 * 1000,
    "h": 60 * 60 * 1000,
    "d": 24 * 60 * 60 * 1000,
    "w": 7 * 24 * 60 * 60 * 1000,
}
_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
# For people days read better than weeks: 7d, not 1w; weeks are read, never written.
_WRITTEN_DURATIONS = ("d", "h", "m", "s", "ms")
_WRITTEN_SIZES = ("TiB", "GiB", "MiB", "KiB")

_SHARE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?%\Z")
_FORMS = re.compile(r"([0-9]+) ?([A-Za-z]+)\Z")


class Unclear(ValueError):
    """A value that cannot be read: why, and what to write. The two stay apart, as either may quote the value."""

    def __init__(self, reason: str, remedy: str):
        super().__init__(reason, remedy)

    def __str__(self) -> str:
        return "; ".join(self.args)


def _parse(value: Any, units: Mapping[str, int], endless: str, what: str, forms: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise Unclear(f"{shown(value)} is not a {what}", f"write {forms}")
    text = str(value).strip()
    if text == endless:
        return UNLIMITED
    if re.match(r"-[0-9]", text):
        raise Unclear(f"{text} is negative", f"write {endless!r} for no limit")
    if re.match(r"[0-9]+\Z", text):
        number = int(text)
    else:
        match = _FORMS.match(text)
        factor = units.get(match.group(2)) if match else None
        if match is None or factor is None:
            raise Unclear(f"{text!r} is not a clear {what}", f"write {forms}")
        number = int(match.group(1)) * factor
    if number > LONG_MAX:
        raise Unclear(f"{text} is more than Kafka can count", f"write {endless!r} for no limit")
    return number


def whole_number(text: Any) -> Optional[int]:
    """The integer that a property's text is; None if it is none, or if there is no text."""
    try:
        return int(str(text).strip())
    except ValueError:
        return None


def parse_duration_ms(value: Any) -> int:
    """Milliseconds of `30m`, `12h`, `7d`, `4w`, plain milliseconds; -1 for `forever`.

    Raises Unclear, which says what to write instead.
    """
    forms = "30m, 12h, 7d, 4w, forever, or plain milliseconds"
    return _parse(value, _MILLISECONDS, "forever", "duration", forms)


def parse_size_bytes(value: Any) -> int:
    """Bytes of `512MiB`, `10GiB`, plain bytes; -1 for `unlimited`.

    Raises Unclear, which says what to write instead.
    """
    forms = "512MiB, 10GiB, 1TiB, unlimited, or plain bytes (powers of 1024 only)"
    return _parse(value, _BYTES, "unlimited", "size", forms)


def parse_share(value: Any) -> float:
    """The share that a percentage such as `80%` is: 0.8; from above 0 to 100 %.

    Raises Unclear; a bare number could mean either.
    """
    match = _SHARE.match(value.strip()) if isinstance(value, str) else None
    share = float(match.group(1)) / 100 if match else 0.0
    if not 0 < share <= 1:
        raise Unclear(f"{shown(value)} is not a share", "write a percentage from 1% to 100%")
    return share


def format_share(share: float) -> str:
    """A share for sentences: 0.3 is `30%`, 0.0004 is `0.04%`."""
    return f"{share * 100:.3g}%"


def _format(number: int, units: Mapping[str, int], order: Sequence[str], endless: str) -> str:
    if number == UNLIMITED:
        return endless
    for unit in order:
        if number and number % units[unit] == 0:
            return f"{number // units[unit]}{unit}"
    return str(number)


def format_duration_ms(milliseconds: int) -> str:
    """The shortest exact form that parse_duration_ms reads back to the same number."""
    return _format(milliseconds, _MILLISECONDS, _WRITTEN_DURATIONS, "forever")


def format_size_bytes(size: int) -> str:
    """The shortest exact form that parse_size_bytes reads back to the same number."""
    return _format(size, _BYTES, _WRITTEN_SIZES, "unlimited")


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# Milliseconds of the year 2001: a smaller number is one of seconds, or a mistake.
_MOMENT_MIN_MS = 10**12


def parse_moment_ms(value: Any, now_ms: int) -> int:
    """Milliseconds since 1970 of `2026-01-31T08:00:00Z`, of `2h` (two hours ago), or of themselves.

    Raises Unclear, which says what to write instead.
    """
    forms = '"2026-01-31T08:00:00Z", "2h" for two hours ago, or milliseconds since 1970'
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise Unclear(f"{shown(value)} is not a moment", f"write {forms}")
    text = str(value).strip()
    if re.match(r"[0-9]+\Z", text):
        if not _MOMENT_MIN_MS <= int(text) <= LONG_MAX:
            raise Unclear(f"{text} are not milliseconds since 1970", f"write {forms}")
        return int(text)
    if _FORMS.match(text):
        return max(0, now_ms - parse_duration_ms(text))
    try:
        moment = datetime.fromisoformat(re.sub(r"[Zz]\Z", "+00:00", text))
    except ValueError as error:
        raise Unclear(f"{text!r} is not a moment", f"write {forms}") from error
    if moment.tzinfo is None:
        raise Unclear(f"{text!r} has no time zone", f"write {forms}")
    if moment < _EPOCH:
        # Brokers take a negative one for something else: -1 is the end of a partition.
        raise Unclear(f"{text} is before 1970, from when on Kafka counts", f"write {forms}")
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def approximate_duration(seconds: float) -> str:
    """For sentences, not for parsing: 93784 is `1d 2h`, 75 is `1m 15s`."""
    left = int(seconds)
    parts = []
    for unit in ("d", "h", "m"):
        size = _MILLISECONDS[unit] // 1000
        parts.append((left // size, unit))
        left %= size
    parts.append((left, "s"))
    first = next((i for i, (number, _unit) in enumerate(parts) if number), len(parts) - 1)
    return " ".join(f"{number}{unit}" for number, unit in parts[first : first + 2])


def approximate_size(size: int) -> str:
    """For sentences, not for parsing: 1610612736 is `1.5 GiB`."""
    for unit in _WRITTEN_SIZES:
        if size >= _BYTES[unit]:
            return f"{size / _BYTES[unit]:.1f} {unit}"
    return f"{size} B"
