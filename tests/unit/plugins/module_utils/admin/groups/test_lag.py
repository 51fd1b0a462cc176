# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status by trend, and the table: the worst first, and everything in its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.expiry import (
    COMPACTED,
    TIME,
    Expiry,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.lag import (
    Row,
    deleted_in,
    group_dict,
    lag_lines,
    samples_of,
    trend,
    trend_of_group,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.model import (
    Group,
    Member,
)


@pytest.mark.parametrize(
    ("samples", "held", "status"),
    [
        ([(10, 10), (20, 20)], True, "OK"),
        ([(10, 10), (10, 10)], False, "OK"),
        ([(10, 30), (20, 35)], True, "OK"),
        ([(10, 10), (15, 30)], True, "OK"),
        ([(10, 30), (20, 40)], True, "WARN"),
        ([(10, 30), (20, 50)], True, "WARN"),
        ([(10, 30), (20, 50), (40, 60)], True, "OK"),
        ([(10, 30), (10, 40), (40, 90)], True, "WARN"),
        ([(10, 30), (10, 40)], True, "STALL"),
        ([(10, 30), (10, 30)], True, "STALL"),
        ([(10, 30), (10, 40)], False, "STOP"),
        ([(10, 10), (10, 40)], False, "OK"),
        ([(20, 30), (10, 30)], True, "REWIND"),
        ([(30, 30), (10, 30)], False, "REWIND"),
        ([(20, 30), (10, 30), (30, 30)], True, "OK"),
        ([(None, 30), (10, 30), (10, 30)], True, "STALL"),
        ([(None, 30), (10, 30)], True, ""),
        ([(10, 30)], True, ""),
        ([], True, ""),
        ([(50, 30), (50, 30)], True, "OK"),
    ],
    ids=[
        "reads all at once",
        "nothing to read",
        "catches up",
        "had read all at some moment",
        "keeps its distance",
        "falls behind",
        "fell behind and catches up",
        "commits seldom and falls behind",
        "a member stands still",
        "a member stands still, nothing is written",
        "nobody reads",
        "nobody reads, but all was read a moment ago",
        "went back",
        "went back from the end",
        "went back and read all again",
        "the first commit was within the sample",
        "one offset only",
        "one sample",
        "none",
        "beyond the end",
    ],
)
def test_status_by_trend(samples, held, status):
    assert trend(samples, held) == status


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2), st.booleans())
def test_who_has_read_everything_is_never_in_error(pairs, held):
    samples = [(committed, committed + more) for committed, more in pairs]
    found = trend(samples, held)
    assert found in ("OK", "WARN", "STOP", "STALL", "REWIND")
    assert found == "OK" or samples[-1][0] < samples[-1][1]
    assert (found == "STALL") <= held and (found == "STOP") <= (not held)


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        (["OK", "OK"], "OK"),
        (["OK", "WARN"], "WARN"),
        (["OK", "STOP", "WARN"], "ERR"),
        (["REWIND"], "ERR"),
        (["", "STALL"], "ERR"),
        ([""], ""),
        ([], ""),
    ],
)
def test_status_of_a_group(statuses, status):
    assert trend_of_group(statuses) == status


@pytest.mark.parametrize("seconds, count", [(0, 1), (0.5, 2), (1, 2), (5, 6), (60, 10)])
def test_number_of_samples(seconds, count):
    assert samples_of(seconds) == count


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Expiry(), "-"),
        (Expiry(0, 90061.0, None, TIME), "1d 1h"),
        (Expiry(0, 0.0, 300.0, TIME), "any moment"),
        (Expiry(7, 75.5, 300.0, TIME), "7 lost, 1m 15s"),
        (Expiry(7), "7 lost"),
        (Expiry(cause=COMPACTED), "never"),
        (Expiry(unknown="bytes are not told"), "unknown"),
    ],
)
def test_time_until_records_are_deleted_in_words(found, words):
    assert deleted_in(Row("g", ("t", 0), 1, 0, 9, expiry=found)) == words


MEMBER = Member("app-1-x", "app-1", "10.0.0.7", frozenset({("orders", 0)}))
GROUPS = [Group("billing", "Stable", "classic", (MEMBER,)), Group("search", "Empty")]


def test_the_table_begins_with_what_is_lost_and_ends_with_a_sum():
    rows = [
        Row("billing", ("orders", 0), 90, 0, 100, MEMBER, "OK", 5, Expiry(0, 60.0, 90.0, TIME)),
        Row("billing", ("orders", 1), 100, 0, 100, MEMBER, "OK"),
        Row("search", ("orders", 0), 10, 50, 100, None, "STOP", 5, Expiry(40, 30.0, 90.0, TIME)),
        Row("search", ("orders", 1), 10, 0, 100, None, "STOP", 5, Expiry(0, 20.0, 90.0, TIME)),
        Row("search", ("orders", 2), None, 0, 100, MEMBER),
    ]
    assert lag_lines(GROUPS, rows) == [
        "GROUP    PARTITION  COMMITTED  END  LAG  STATUS  DELETED IN    MEMBER",
        "search   orders-0   10         100  90   STOP    40 lost, 30s  -",
        "search   orders-1   10         100  90   STOP    20s           -",
        "search   orders-2   -          100  -    -       -             app-1 at 10.0.0.7",
        "billing  orders-0   90         100  10   OK      1m 0s         app-1 at 10.0.0.7",
        "",
        "2 of 2 groups behind, by 190 records; stopped, stalled or rewound: search; 40 records were deleted before "
        "they were read; unread records may be deleted in 20s at the soonest.",
    ]
    told = group_dict(GROUPS[1], rows[2:])
    assert (told["status"], told["lost"], told["lag"]) == ("ERR", 40, 180)
    assert told["deleted_in_seconds"] == 20.0
    assert [each["partition"] for each in told["partitions"]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("groups", "rows", "last"),
    [
        ([], [], "There is no consumer group."),
        (GROUPS[:1], [Row("billing", ("orders", 0), 9, 0, 9)], "The group has read everything."),
        (GROUPS, [Row("billing", ("orders", 0), 9, 0, 9)], "All 2 groups have read everything."),
    ],
)
def test_the_table_without_rows(groups, rows, last):
    assert lag_lines(groups, rows) == [last]


def test_without_samples_there_is_no_column_of_status_and_fifty_rows_at_most():
    rows = [
        Row("billing", ("orders", number), 0, 0, 9, None, "", 5, Expiry(0, 0.0, 9.0, TIME))
        for number in range(60)
    ]
    lines = lag_lines(GROUPS, rows)
    assert "STATUS" not in lines[0] and lines[51:] == [
        "and 10 more partitions",
        "",
        "1 of 2 groups behind, by 540 records; unread records may be deleted at any moment.",
    ]
