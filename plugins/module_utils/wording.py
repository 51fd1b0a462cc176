# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Numbers and lists in sentences: every message counts and shortens them alike."""

from __future__ import annotations

from typing import Optional, Sequence


def counted(number: int, noun: str) -> str:
    """Return `1 replica`, `3 replicas`; the noun's plural ends in s."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def some(texts: Sequence[str], most: int = 5, total: Optional[int] = None) -> str:
    """Return the first `most` of them, `a, b and 3 more`; `total` where `texts` are not all there are."""
    left = (len(texts) if total is None else total) - len(texts[:most])
    return ", ".join(texts[:most]) + (f" and {left} more" if left > 0 else "")
