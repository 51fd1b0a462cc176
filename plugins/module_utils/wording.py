# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Values, numbers and lists in messages: every message shows, counts and shortens them alike."""

from __future__ import annotations

from typing import Any, Optional, Sequence

SHOWN_VALUE_CHARACTERS = 160


def counted(number: int, noun: str) -> str:
    """Return `1 replica`, `3 replicas`; the noun's plural ends in s."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def some(texts: Sequence[str], most: int = 5, total: Optional[int] = None) -> str:
    """Return the first `most` of them, `a, b and 3 more`; `total` where `texts` are not all there are."""
    left = (len(texts) if total is None else total) - len(texts[:most])
    return ", ".join(texts[:most]) + (f" and {left} more" if left > 0 else "")


def shown(value: Any) -> str:
    """A value as people write it in an inventory, `[a, null, true]`, cut where it is long."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif value is None:
        text = "null"
    elif isinstance(value, str):
        text = value if value else '""'
    elif isinstance(value, (list, tuple)):
        text = f"[{', '.join(shown(item) for item in value)}]"
    elif isinstance(value, dict):
        text = f"{{{', '.join(f'{shown(key)}: {shown(value[key])}' for key in value)}}}"
    else:
        text = str(value)
    text = " ".join(text.split())
    if len(text) > SHOWN_VALUE_CHARACTERS:
        text = text[: SHOWN_VALUE_CHARACTERS - 3] + "..."
    return text
