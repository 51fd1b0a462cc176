# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When unread records are deleted: by each limit, against a log that deletes as Kafka does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.expiry import (
    COMPACTED,
    NOT_TOLD,
    ROUNDS_MAX,
    SIZE,
    TIME,
    TOLERANCE_MS,
    UNLIMITED,
    Expiry,
    Log,
    PrefixTimes,
    Retention,
    expiry,
    growth_of,
    retention_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    ConfigEntry,
    Topic,
)

NOW = 1_800_000_000_000
HOUR = 3_600_000
BY_AGE = Retention(ms=24 * HOUR, segment_ms=HOUR, segment_bytes=1000)
BY_SIZE = Retention(bytes=10_000, segment_ms=HOUR, segment_bytes=1000)
BOTH = Retention(24 * HOUR, 10_000, HOUR, 1000)
# 100 records of 100 bytes, 10 bytes a second
LOG = Log(100, 200, NOW - 20 * HOUR, 10_000, 10.0)


@pytest.mark.parametrize(
    ("committed", "log", "retention", "unread_ms", "expected"),
    [
        (200, LOG, BY_AGE, None, Expiry()),
        (150, LOG, BY_AGE, NOW - 4 * HOUR, Expiry(0, 72000, 75900, TIME)),
        (150, LOG, BY_AGE, NOW - 30 * HOUR, Expiry(0, 0, 0, TIME)),
        (150, LOG, BY_AGE, NOW - 24 * HOUR, Expiry(0, 0, 3900, TIME)),
        (40, LOG, BY_AGE, NOW - 20 * HOUR, Expiry(60, 14400, 18300, TIME)),
        (40, Log(200, 200), BY_AGE, None, Expiry(160)),
        (250, LOG, BY_AGE, None, Expiry()),
        (150, LOG, Retention(none=COMPACTED), None, Expiry(cause=COMPACTED)),
        (40, LOG, Retention(none=UNLIMITED), None, Expiry(60, cause=UNLIMITED)),
        (150, LOG, BY_AGE, None, Expiry(unknown="its records have no timestamp")),
        (150, LOG, BY_SIZE, None, Expiry(0, 500, 900, SIZE)),
        (100, LOG, BY_SIZE, None, Expiry(0, 0, 100, SIZE)),
        (150, Log(100, 200, None, 10_000, 0.0), BY_SIZE, None, Expiry(cause=UNLIMITED)),
        (100, Log(100, 200, None, 10_000, 0.0), BY_SIZE, None, Expiry(0, 0, None, SIZE)),
        (150, Log(100, 200), BY_SIZE, None, Expiry(unknown="bytes are not told")),
        (150, LOG, BOTH, NOW - 4 * HOUR, Expiry(0, 500, 900, SIZE)),
        (199, LOG, BOTH, NOW - 24 * HOUR + 5000, Expiry(0, 5, 1390, TIME)),
        (
            150,
            Log(100, 200),
            BOTH,
            NOW - 4 * HOUR,
            Expiry(0, 72000, 75900, TIME, "bytes are not told"),
        ),
    ],
    ids=[
        "all is read",
        "by age",
        "long overdue",
        "due now",
        "some are lost, others follow",
        "all are lost",
        "beyond the end",
        "compacted",
        "no limit",
        "no timestamps",
        "by size",
        "the limit of size is reached",
        "nothing grows",
        "the limit is reached, and nothing grows",
        "size unknown",
        "size comes first",
        "age comes first, size is what is sure",
        "size unknown beside age",
    ],
)
def test_what_becomes_of_unread_records(committed, log, retention, unread_ms, expected):
    assert expiry(committed, log, retention, unread_ms, NOW) == expected


def test_settings_that_are_not_told_are_said_to_be_unknown():
    found = expiry(150, LOG, Retention(none=NOT_TOLD), None, NOW)
    assert found.soonest is None and found.cause == "" and "not told" in found.unknown


@pytest.mark.parametrize(
    ("policy", "ms", "size", "expected"),
    [
        ("delete", "1000", "-1", Retention(1000, None, 7, 8)),
        ("delete", "-1", "500", Retention(None, 500, 7, 8)),
        ("compact,delete", "1000", "500", Retention(1000, 500, 7, 8)),
        ("delete", "-1", "-1", Retention(None, None, 7, 8, UNLIMITED)),
        ("compact", "1000", "500", Retention(none=COMPACTED)),
        (None, "1000", "500", Retention(none=NOT_TOLD)),
    ],
)
def test_limits_of_a_topic(policy, ms, size, expected):
    values = {
        "cleanup.policy": policy,
        "retention.ms": ms,
        "retention.bytes": size,
        "segment.ms": "7",
        "segment.bytes": "8",
    }
    config = {key: ConfigEntry(key, value) for key, value in values.items()}
    assert retention_of(Topic("t", (), config)) == expected


@pytest.mark.parametrize(
    ("log", "before", "seconds", "expected"),
    [
        (Log(0, 100, NOW - 10_000, 1000), None, 0, 100.0),
        (Log(0, 100, NOW - 10_000, 1000), 50, 1, 500.0),
        (Log(0, 100, NOW - 10_000, 1000), 100, 1, 100.0),
        (Log(0, 100, None, 1000), 50, 1, 500.0),
        (Log(0, 100, NOW - 10_000), 50, 1, None),
        (Log(100, 100, None, 0), None, 0, None),
    ],
    ids=["average", "measured is more", "measured is less", "no age", "no size", "empty"],
)
def test_growth(log, before, seconds, expected):
    assert growth_of(log, NOW, before, seconds) == expected


class KafkaLog:
    """Timestamps of records, and what Kafka tells of them."""

    def __init__(self, start, stamps):
        self.start, self.stamps = start, stamps

    def since(self, moment):
        """The first record that is not older, as ListOffsets has it."""
        for number, stamp in enumerate(self.stamps):
            if stamp >= moment:
                return self.start + number, stamp
        return -1, -1

    def prefix(self, offset):
        """What is searched for."""
        return max(self.stamps[: offset - self.start + 1])


KEY = ("t", 0)


def search(log, offsets):
    """(the search at its end, number of questions)."""
    times = PrefixTimes({KEY: offsets})
    times.begin({KEY: log.since(0)}, {KEY: max(log.stamps)}, {KEY: log.start + len(log.stamps)})
    for number in range(ROUNDS_MAX):
        asked = times.questions()
        if not asked:
            return times, number
        times.learn(asked, {key: log.since(moment) for key, moment in asked.items()})
    return times, ROUNDS_MAX


@given(
    st.integers(0, 1000),
    st.lists(st.integers(NOW - 10**12, NOW), min_size=1, max_size=60),
    st.data(),
)
def test_the_timestamp_is_found_whatever_the_order_of_records(start, stamps, data):
    log = KafkaLog(start, stamps)
    offset = start + data.draw(st.integers(0, len(stamps) - 1))
    times, rounds = search(log, [offset])
    assert log.prefix(offset) - TOLERANCE_MS <= times.of(KEY, offset) <= log.prefix(offset)
    assert rounds < ROUNDS_MAX


@given(st.lists(st.integers(NOW - 10**10, NOW), min_size=1, max_size=60))
def test_many_groups_on_one_partition_share_the_questions_and_none_is_told_too_late(stamps):
    log = KafkaLog(0, stamps)
    times, _rounds = search(log, range(len(stamps)))
    assert all(times.of(KEY, offset) <= log.prefix(offset) for offset in range(len(stamps)))


def test_an_even_stream_of_a_week_takes_few_questions():
    log = KafkaLog(0, [NOW - 604_800_000 + 60_480 * number for number in range(10_000)])
    for offset in (0, 1, 4321, 9999):
        times, rounds = search(log, [offset])
        assert abs(times.of(KEY, offset) - log.prefix(offset)) <= TOLERANCE_MS
        assert rounds <= 6, offset


def test_records_without_a_timestamp_have_none():
    times = PrefixTimes({KEY: [3]})
    times.begin({KEY: (-1, -1)}, {KEY: -1}, {KEY: 10})
    assert times.questions() == {} and times.of(KEY, 3) is None


@given(
    st.lists(st.integers(1, 1000), min_size=2, max_size=40),
    st.lists(st.integers(1, 5), min_size=1, max_size=12),
    st.integers(0, 20_000),
    st.data(),
)
def test_no_record_is_deleted_before_the_time_that_is_told_or_after_the_last(
    steps, cuts, retention_ms, data
):
    """Against a log in segments that deletes as Kafka does; records in order of time."""
    stamps = [NOW + sum(steps[: number + 1]) for number in range(len(steps))]
    segments, rest = [], list(range(len(stamps)))
    for cut in [*cuts, len(stamps)]:
        segments, rest = [*segments, rest[:cut]], rest[cut:]
    segments = [each for each in segments if each]
    longest = max(stamps[each[-1]] - stamps[each[0]] for each in segments)
    offset = data.draw(st.integers(0, len(stamps) - 1))
    (segment,) = [each for each in segments if offset in each]
    # the moment from which the broker's next look deletes the segment
    gone_at = max(stamps[each[-1]] for each in segments[: segments.index(segment) + 1])
    gone_in = (gone_at + retention_ms - stamps[-1]) / 1000
    told = expiry(
        offset,
        Log(0, len(stamps)),
        Retention(ms=retention_ms, segment_ms=longest),
        stamps[offset],
        stamps[-1],
        check_ms=500,
    )
    assert told.soonest <= max(0, gone_in) and gone_in + 0.5 <= told.latest + 0.001
