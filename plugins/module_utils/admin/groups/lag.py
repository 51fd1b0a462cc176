# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far consumer groups are behind, whether they catch up, and the table of it. Pure.

Private to this collection. The status follows Burrow's rules (github.com/linkedin/Burrow, "Consumer Lag
Evaluation Rules"), on what can be asked: offsets at several moments. Burrow reads every commit, so that
it can tell a consumer that commits the same offset again (STALL) from one that does not commit (STOP).
Here that is whether a member of the group has the partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.status import table
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.expiry import (
    COMPACTED,
    UNLIMITED,
    Expiry,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.model import (
    Group,
    Member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_duration

OK, WARN, ERR = "OK", "WARN", "ERR"
STOP, STALL, REWIND = "STOP", "STALL", "REWIND"
# The worst first; "": not asked.
_WORST = (STOP, STALL, REWIND, WARN, "", OK)
COLUMNS = ("GROUP", "PARTITION", "COMMITTED", "END", "LAG", "STATUS", "DELETED IN", "MEMBER")
ROWS_SHOWN = 50
SAMPLES_MAX = 10


def samples_of(seconds: float) -> int:
    """At how many moments within so many seconds offsets are read."""
    return min(SAMPLES_MAX, int(seconds) + 1) if seconds >= 1 else (2 if seconds > 0 else 1)


def trend(samples: Sequence[Tuple[Optional[int], int]], held: bool) -> str:
    """The status of one partition of a group: OK, WARN, STOP, STALL or REWIND; "" if it has none.

    `samples` are (committed, end) at several moments, the oldest first; `held`: a member has the
    partition. The first rule that fits: nothing is unread now -> OK; the offset went back -> REWIND;
    nothing was unread at some moment -> OK; the offset stood still -> STALL if held, else STOP; the lag
    never became smaller -> WARN.
    """
    known = [(committed, end) for committed, end in samples if committed is not None]
    if len(known) < 2:
        return ""
    lags = [max(0, end - committed) for committed, end in known]
    offsets = [committed for committed, _end in known]
    if not lags[-1]:
        return OK
    if any(later < earlier for earlier, later in zip(offsets, offsets[1:])):
        return REWIND
    if not all(lags):
        return OK
    if offsets[0] == offsets[-1]:
        return STALL if held else STOP
    if all(later >= earlier for earlier, later in zip(lags, lags[1:])):
        return WARN
    return OK


def trend_of_group(statuses: Iterable[str]) -> str:
    """The status of a group: ERR where a partition is stopped, stalled or rewound; "" if none has one."""
    found = set(statuses) - {""}
    if not found:
        return ""
    return ERR if found - {OK, WARN} else WARN if WARN in found else OK


@dataclass(frozen=True)
class Row:
    """One partition of a group; `committed` is None where the group has a member but no offset.

    `start` and `end` are None while nobody leads the partition, or where the topic is not there.
    `unread_ms` is the timestamp by which its first unread record is deleted, None if there is none, or
    if it does not matter.
    """

    group: str
    key: Key
    committed: Optional[int]
    start: Optional[int] = None
    end: Optional[int] = None
    member: Optional[Member] = None
    status: str = ""
    unread_ms: Optional[int] = None
    expiry: Expiry = Expiry()

    @property
    def lag(self) -> Optional[int]:
        """Records that the group has still to read, None if unknown."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed)

    @property
    def badness(self) -> Tuple[Any, ...]:
        """Sorts the worst first: records are lost, then by status, by what is deleted next, by lag."""
        return (
            not self.expiry.lost,
            _WORST.index(self.status),
            self.expiry.soonest is None,
            self.expiry.soonest or 0.0,
            -(self.lag or 0),
            self.group,
            self.key,
        )

    def to_dict(self) -> Dict[str, Any]:
        """As the module returns it."""
        return {
            "topic": self.key[0],
            "partition": self.key[1],
            "committed": self.committed,
            "start": self.start,
            "end": self.end,
            "lag": self.lag,
            "member": str(self.member) if self.member else None,
            "status": self.status or None,
            "unread_since_ms": self.unread_ms,
            "lost": self.expiry.lost,
            "deleted_in_seconds": self.expiry.soonest,
            "gone_in_seconds": self.expiry.latest,
            "deleted_by": self.expiry.cause or None,
            "unknown": self.expiry.unknown or None,
        }


def group_dict(group: Group, rows: Sequence[Row]) -> Dict[str, Any]:
    """A group with its partitions, the worst first, as the module returns it."""
    soonest = [row.expiry.soonest for row in rows if row.expiry.soonest is not None]
    return {
        "name": group.name,
        "state": group.state,
        "type": group.kind,
        "members": [
            {"id": each.id, "client": each.client, "host": each.host} for each in group.members
        ],
        "lag": sum(row.lag or 0 for row in rows),
        "status": trend_of_group(row.status for row in rows) or None,
        "lost": sum(row.expiry.lost for row in rows),
        "deleted_in_seconds": min(soonest, default=None),
        "partitions": [row.to_dict() for row in sorted(rows, key=lambda row: row.badness)],
    }


def lag_lines(groups: Sequence[Group], rows: Sequence[Row]) -> List[str]:
    """The table, the worst first, and a last line that sums up."""
    behind = [row for row in rows if row.lag or row.lag is None or row.expiry.lost]
    behind.sort(key=lambda row: row.badness)
    lines = []
    if behind:
        cells = [_cells(row) for row in behind[:ROWS_SHOWN]]
        columns = list(COLUMNS)
        if not any(row.status for row in rows):
            place = COLUMNS.index("STATUS")
            columns.pop(place)
            for each in cells:
                each.pop(place)
        lines = table(columns, cells)
        if len(behind) > ROWS_SHOWN:
            lines.append(f"and {len(behind) - ROWS_SHOWN} more partitions")
        lines.append("")
    return [*lines, _summary(groups, rows)]


def _cells(row: Row) -> List[Any]:
    return [
        row.group,
        f"{row.key[0]}-{row.key[1]}",
        "-" if row.committed is None else row.committed,
        "-" if row.end is None else row.end,
        "-" if row.lag is None else row.lag,
        row.status or "-",
        deleted_in(row),
        row.member or "-",
    ]


def deleted_in(row: Row) -> str:
    """When the first unread record is deleted, in words; what is lost comes first."""
    found = row.expiry
    words = [f"{found.lost} lost"] if found.lost else []
    if found.soonest is not None:
        words.append(approximate_duration(found.soonest) if found.soonest >= 1 else "any moment")
    elif found.cause in (COMPACTED, UNLIMITED):
        words.append("never")
    elif found.unknown:
        words.append("unknown")
    return ", ".join(words) or "-"


def _summary(groups: Sequence[Group], rows: Sequence[Row]) -> str:
    names = {row.group for row in rows if row.lag}
    lost = sum(row.expiry.lost for row in rows)
    if not groups:
        return "There is no consumer group."
    noun = "group" if len(groups) == 1 else "groups"
    unread = sum(row.lag or 0 for row in rows)
    parts = [f"{len(names)} of {len(groups)} {noun} behind, by {unread} records"]
    bad = sorted({row.group for row in rows if row.status not in ("", OK, WARN)})
    if bad:
        parts.append(f"stopped, stalled or rewound: {', '.join(bad)}")
    if lost:
        parts.append(f"{lost} records were deleted before they were read")
    next_one = min(
        (row for row in rows if row.expiry.soonest is not None),
        key=lambda row: row.expiry.soonest or 0.0,
        default=None,
    )
    if next_one:
        left = next_one.expiry.soonest or 0.0
        when = f"in {approximate_duration(left)} at the soonest" if left >= 1 else "at any moment"
        parts.append(f"unread records may be deleted {when}")
    elif not names and not lost:
        parts = [
            (
                f"All {len(groups)} {noun} have read everything"
                if len(groups) > 1
                else "The group has read everything"
            )
        ]
    return f"{'; '.join(parts)}."
