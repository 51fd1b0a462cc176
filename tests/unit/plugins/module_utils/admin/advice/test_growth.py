# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Growth: the share of keys that move is what counting says, and what becomes of lag."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.growth import (
    GroupEffect,
    Reading,
    keys_moved,
    partitions_needed,
    suggested,
)

COUNTS = st.integers(1, 60)


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [(4, 4, 0), (4, 8, 1 / 2), (5, 20, 3 / 4), (5, 6, 5 / 6), (10, 15, 2 / 3), (1, 2, 1 / 2)],
)
def test_shares(before, after, share):
    assert keys_moved(before, after) == pytest.approx(share)


@given(COUNTS, COUNTS)
def test_the_share_is_what_counting_every_hash_says(before, after):
    whole = math.lcm(before, after)
    moved = sum(number % before != number % after for number in range(whole))
    assert keys_moved(before, after) == pytest.approx(moved / whole)


@given(COUNTS, st.integers(1, 200))
def test_no_number_from_what_is_needed_up_to_the_suggestion_moves_fewer_keys(present, needed):
    assume(needed > present)
    better = suggested(present, needed, keyed=True)
    assert better >= needed and better - needed < present
    assert all(
        keys_moved(present, better) <= keys_moved(present, other) + 1e-9
        for other in range(needed, better)
    )


@pytest.mark.parametrize(
    ("present", "needed", "keyed", "better"),
    [(4, 3, True, 4), (4, 5, True, 8), (4, 5, False, 5), (0, 7, True, 7), (4, 4, True, 4)],
)
def test_suggestions(present, needed, keyed, better):
    assert suggested(present, needed, keyed) == better


@pytest.mark.parametrize(
    ("numbers", "needed"),
    [
        ((100, 10), 10),
        ((101, 10), 11),
        ((100, 10, 4), 25),
        ((100, 10, 50), 10),
        ((1, 10), 1),
        ((100, 10, None, 24), 24),
    ],
)
def test_partitions_for_a_throughput(numbers, needed):
    assert partitions_needed(*numbers) == needed


def effect(*readings, members=2, before=2, after=4, sampled=True):
    """What growth does to a group whose partitions are like this."""
    keys = {("t", number): reading for number, reading in enumerate(readings)}
    return GroupEffect("g", members, keys, before, after, sampled)


def test_growth_takes_nothing_of_the_lag_but_half_of_what_comes():
    found = effect(Reading(600, 10, 12), Reading(0, 10, 10))
    assert found.lag == 600
    assert found.seconds(2) == 300  # 2 records a second are gained
    assert found.seconds(4) == pytest.approx(600 / 7)  # 7 are, since 5 come


def test_who_falls_behind_may_catch_up_with_more_partitions():
    found = effect(Reading(100, 10, 8))
    assert found.seconds(2) is None and found.seconds(4) == pytest.approx(100 / 3)
    assert "in no time: it falls behind" in found.sentence()
    assert found.to_dict()["seconds_now"] is None


def test_idle_members_get_work():
    found = effect(Reading(0), members=5, sampled=False)
    assert (found.idle(2), found.idle(4)) == (3, 1)
    assert found.sentence() == "g: 5 members; 3 idle now, 1 then; nothing unread"


def test_without_a_sample_there_is_no_time():
    told = effect(Reading(7), sampled=False).to_dict()
    assert told["lag"] == 7 and told["seconds_now"] is None and told["seconds_planned"] is None


@given(
    st.lists(
        st.builds(Reading, st.integers(0, 1000), st.floats(0, 100), st.floats(0, 100)),
        max_size=6,
    ),
    COUNTS,
    COUNTS,
)
def test_growth_never_makes_catching_up_longer(readings, before, more):
    found = effect(*readings, before=before, after=before + more)
    now, then = found.seconds(before), found.seconds(before + more)
    assert now is None or (then is not None and then <= now + 1e-6)
