# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When retention deletes the records that a group has not read yet. Pure.

Private to this collection. How Kafka deletes, as of 3.9 and 4.3: it looks every
`log.retention.check.interval.ms`, and from the oldest segment on it deletes as long as the largest
timestamp in a segment is older than `retention.ms`, or the bytes behind the segment are at least
`retention.bytes`. So nothing of a record goes before the largest timestamp among it and all records
before it is too old: `PrefixTimes` finds that timestamp. It goes at the latest when the last record of
its segment is too old, which is at most `segment.ms` younger. A compacted topic, or one without
limits, deletes no record because of its age.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Collection, Dict, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key, Topic
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import whole_number

# What is asked no closer: retention looks every few minutes.
TOLERANCE_MS = 1000
# Halving 30 years down to the tolerance takes 30 questions; several groups on one partition share them.
ROUNDS_MAX = 60
CHECK_KEY = "log.retention.check.interval.ms"
CHECK_DEFAULT_MS = 300000

TIME, SIZE = "time", "size"
COMPACTED, UNLIMITED, NOT_TOLD = "compacted", "unlimited", "not told"


@dataclass(frozen=True)
class Retention:
    """The limits of a topic in force: None is no limit. `none` says why nothing is deleted, "" if it is."""

    ms: Optional[int] = None
    bytes: Optional[int] = None
    segment_ms: int = 0
    segment_bytes: int = 0
    none: str = ""


def retention_of(topic: Topic) -> Retention:
    """The Retention of a topic with its settings."""
    policy = topic.effective("cleanup.policy")
    if policy is None:
        return Retention(none=NOT_TOLD)
    if "delete" not in policy:
        return Retention(none=COMPACTED)
    numbers = {
        key: whole_number(topic.effective(key)) or 0
        for key in ("retention.ms", "retention.bytes", "segment.ms", "segment.bytes")
    }
    ms = numbers["retention.ms"] if numbers["retention.ms"] >= 0 else None
    size = numbers["retention.bytes"] if numbers["retention.bytes"] >= 0 else None
    none = UNLIMITED if ms is None and size is None else ""
    return Retention(ms, size, numbers["segment.ms"], numbers["segment.bytes"], none)


@dataclass(frozen=True)
class Log:
    """A partition: `start` and `end` offset, the timestamp in ms of its `oldest` record.

    `size` in bytes, `growth` in bytes a second; None where unknown.
    """

    start: int
    end: int
    oldest: Optional[int] = None
    size: Optional[int] = None
    growth: Optional[float] = None


@dataclass(frozen=True)
class Expiry:
    """What becomes of the unread records of a group in a partition.

    `lost`: how many were deleted unread. The next one goes after `soonest` seconds, and is gone after
    `latest`; None: never, as far as is known. `cause` is time, size, or why it never goes. `unknown`
    says what could not be learned.
    """

    lost: int = 0
    soonest: Optional[float] = None
    latest: Optional[float] = None
    cause: str = ""
    unknown: str = ""


def expiry(
    committed: int,
    log: Log,
    retention: Retention,
    unread_ms: Optional[int],
    now_ms: int,
    check_ms: int = CHECK_DEFAULT_MS,
) -> Expiry:
    """The Expiry of what a group has not read of a partition.

    `unread_ms` is the timestamp by which its first unread record is deleted, see PrefixTimes; None if
    unknown.
    """
    lost = max(0, min(log.start, log.end) - committed)
    position = max(committed, log.start)
    if position >= log.end:
        return Expiry(lost)
    if retention.none:
        why = "the settings of the topic are not told" if retention.none == NOT_TOLD else ""
        return Expiry(lost, cause="" if why else retention.none, unknown=why)
    found: List[Tuple[float, float, str]] = []
    unknown: List[str] = []
    if retention.ms is not None:
        if unread_ms is None or unread_ms < 0:
            unknown.append("its records have no timestamp")
        else:
            left_ms = unread_ms + retention.ms - now_ms
            latest_ms = left_ms + retention.segment_ms + check_ms
            found.append((left_ms / 1000, latest_ms / 1000, TIME))
    if retention.bytes is not None:
        if log.size is None:
            unknown.append("bytes are not told")
        else:
            behind = log.size * (log.end - position) / (log.end - log.start)
            room = retention.bytes - behind
            if room <= 0:
                found.append((0.0, _seconds(room + retention.segment_bytes, log.growth), SIZE))
            elif log.growth:
                soonest = _seconds(room, log.growth)
                latest = _seconds(room + retention.segment_bytes, log.growth) + check_ms / 1000
                found.append((soonest, latest, SIZE))
    if not found:
        # A limit of size that a partition without growth never reaches.
        return Expiry(lost, cause="" if unknown else UNLIMITED, unknown="; ".join(unknown))
    soonest, _latest, cause = min(found)
    latest = min(each[1] for each in found)
    gone_by = None if latest == float("inf") else max(0.0, latest)
    return Expiry(lost, max(0.0, soonest), gone_by, cause, "; ".join(unknown))


def _seconds(room: float, growth: Optional[float]) -> float:
    """Until a partition that grows by so many bytes a second has filled the room."""
    return max(0.0, room) / growth if growth else float("inf")


def growth_of(
    log: Log, now_ms: int, ends_before: Optional[int] = None, seconds: float = 0.0
) -> Optional[float]:
    """Bytes a second by which a partition grows, None if unknown.

    The average since its oldest record, or what was measured if that is more: `ends_before` is the end
    offset `seconds` ago.
    """
    if log.size is None or log.end <= log.start:
        return None
    each = log.size / (log.end - log.start)
    rates = []
    if log.oldest is not None and 0 <= log.oldest < now_ms:
        rates.append(log.size * 1000 / (now_ms - log.oldest))
    if ends_before is not None and seconds > 0:
        rates.append(max(0, log.end - ends_before) * each / seconds)
    return max(rates, default=None)


@dataclass
class _Search:
    """Where the timestamp of one offset lies: at least `low`, below `high`; with offsets there."""

    low: int
    high: int
    low_offset: int
    high_offset: int
    halve: bool = False


@dataclass
class PrefixTimes:
    """Finds, for offsets of partitions, the largest timestamp of all records up to there.

    Kafka has no such question. But it tells the first record that is not older than a moment. That one
    lies behind an offset exactly if everything up to the offset is older: so the moment is searched for.
    All partitions are asked at once, and one answer serves all offsets of a partition. This needs no
    right to read records. What is found is at most TOLERANCE_MS too early, and never too late.
    """

    targets: Mapping[Key, Collection[int]]
    _searches: Dict[Key, Dict[int, _Search]] = field(default_factory=dict)

    def begin(
        self,
        oldest: Mapping[Key, Tuple[int, int]],
        newest: Mapping[Key, int],
        ends: Mapping[Key, int],
    ) -> None:
        """With (offset, timestamp) of the first record that has one, largest timestamp, end offset."""
        for key, offsets in self.targets.items():
            first, stamp = oldest.get(key, (-1, -1))
            if stamp < 0 or newest.get(key, -1) < stamp:
                continue
            self._searches[key] = {
                offset: _Search(stamp, newest[key] + 1, first, ends[key])
                for offset in offsets
                if offset >= first
            }
            self._learn(key, stamp, first, stamp)

    def questions(self) -> Dict[Key, int]:
        """The next moment (ms) to ask of each partition that is not finished; empty at the end."""
        asked = {}
        for key, searches in self._searches.items():
            open_ones = [
                (search.high - search.low, offset)
                for offset, search in searches.items()
                if search.high - search.low > TOLERANCE_MS
            ]
            if open_ones:
                offset = max(open_ones)[1]
                asked[key] = _probe(searches[offset], offset)
        return asked

    def learn(self, asked: Mapping[Key, int], answers: Mapping[Key, Tuple[int, int]]) -> None:
        """The answers to `questions`: (offset, timestamp), or -1 where all records are older."""
        for key, moment in asked.items():
            self._learn(key, moment, *answers.get(key, (-1, -1)))

    def _learn(self, key: Key, moment: int, found: int, stamp: int) -> None:
        for offset, search in self._searches[key].items():
            if 0 <= found <= offset:
                search.low = max(search.low, stamp)
                search.low_offset = max(search.low_offset, found)
                if found == offset:
                    search.high = search.low + 1
            else:
                search.high = min(search.high, max(moment, search.low + 1))
                if found > offset:
                    search.high_offset = min(search.high_offset, found)

    def of(self, key: Key, offset: int) -> Optional[int]:
        """The timestamp in ms, None if there is none."""
        search = self._searches.get(key, {}).get(offset)
        return search.low if search else None


def _probe(search: _Search, offset: int) -> int:
    """A moment above `low` and below `high`: by proportion, every second time the middle."""
    width = search.high - search.low
    search.halve = not search.halve
    if search.halve and search.low_offset < offset < search.high_offset:
        part = (offset - search.low_offset) / (search.high_offset - search.low_offset)
        step = int(width * part)
    else:
        step = width // 2
    return search.low + min(max(1, step), width - 1)
