# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a change could delete, from offsets and sizes.

Private to this collection. Pure: numbers in, a Stake out. Records are counted by offsets, so in a
compacted topic they are an upper bound.
"""

from __future__ import annotations

from typing import Iterable, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Stake


def estimate_stake(
    offsets: Optional[Sequence[Tuple[int, int, int]]],
    sizes: Sequence[int],
    retention_ms: Optional[int],
    retention_bytes: Optional[int],
    unknown: str = "",
) -> Stake:
    """The Stake of one topic.

    `offsets`: (first, end, first young enough to stay or -1) of each partition, None if they could
    not be read. `sizes`: bytes of each partition, empty if they could not be. The new limits are
    None where they do not change, negative where there is none. `unknown` says what is missing.
    """
    total = records = total_bytes = lost_bytes = None
    if offsets is not None:
        total = sum(max(0, end - first) for first, end, _young in offsets)
        if retention_ms is not None:
            records = 0 if retention_ms < 0 else sum(too_old(*each) for each in offsets)
    if sizes:
        total_bytes = sum(sizes)
        beyond = 0
        if retention_bytes is not None and retention_bytes >= 0:
            beyond = sum(max(0, size - retention_bytes) for size in sizes)
        # A record is taken to be as large as the average one.
        aged = total_bytes * records / total if total and records else 0
        # What goes by its age is not known where no record could be counted; it is not nothing.
        by_age = retention_ms is not None and retention_ms >= 0
        lost_bytes = None if by_age and total is None else int(max(aged, beyond))
        if total is not None and total_bytes:
            records = max(records or 0, int(total * beyond / total_bytes))
    if records is None and total == 0:
        records = 0
    return Stake(records, total, lost_bytes, total_bytes, unknown)


def too_old(first: int, end: int, young: int) -> int:
    """Records of a partition before its first young one; all, if none is."""
    return max(0, (end if young < 0 else young) - first)


def growth_rate(
    first: int, end: int, young: int, size: Optional[int], seconds: float
) -> Optional[float]:
    """Bytes a second that were written to a partition within the last `seconds`; None: not known.

    `young`: first offset of that time, -1 if there is none; `size`: bytes of the partition. It is known if
    there is an older record: else nobody can say since when records are written, or how many are gone.
    """
    if end == 0:
        return None
    if end <= first or young < 0:
        return 0.0
    if size is None or young <= first:
        return None
    return size * (end - young) / (end - first) / seconds


def sum_of(stakes: Iterable[Stake]) -> Optional[Stake]:
    """All of them as one, None if there is none; a number is None where none of them has it."""
    every = list(stakes)
    if not every:
        return None
    unknown = next((each.unknown for each in every if each.unknown), "")
    return Stake(
        _total(each.records for each in every),
        _total(each.total_records for each in every),
        _total(each.bytes for each in every),
        _total(each.total_bytes for each in every),
        unknown,
    )


def _total(numbers: Iterable[Optional[int]]) -> Optional[int]:
    known = [each for each in numbers if each is not None]
    return sum(known) if known else None
