# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a throttle is, for every throttle there can be: ours always go, others' stay to the letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.throttles import (
    RATES,
    REPLICAS,
    Throttles,
    additions,
    before,
    foreign_warning,
    is_ours,
    missing,
    of_moves,
    of_others,
    rates_of,
    removals,
    throttled_lists,
    unseen,
)

LEADERS, FOLLOWERS = REPLICAS
NUMBERS = st.integers(0, 120)
ENTRIES = st.builds("{}:{}".format, NUMBERS, st.integers(1, 4))
LISTS = st.one_of(
    st.just("*"), st.lists(ENTRIES, min_size=1, max_size=4, unique=True).map(",".join)
)


def some(keys, values):
    """Some of the settings, each with one of the values."""
    return st.dictionaries(st.sampled_from(keys), values, min_size=1)


BY_HAND = st.builds(
    Throttles,
    st.dictionaries(st.integers(1, 4), some(RATES, st.integers(0, 2**40).map(str)), max_size=3),
    st.dictionaries(st.sampled_from("tuv"), some(REPLICAS, LISTS), max_size=3),
)
MOVES = st.dictionaries(
    st.tuples(st.sampled_from("tuv"), NUMBERS),
    st.tuples(
        st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True),
        st.lists(st.integers(1, 4), max_size=2, unique=True),
    ),
    max_size=5,
)


def put(now, new):
    """The throttles after these settings; None takes away."""
    both = []
    for there, wanted in ((now.brokers, new[0]), (now.topics, new[1])):
        after = {subject: dict(keys) for subject, keys in there.items()}
        for subject, keys in wanted.items():
            merged = {**after.get(subject, {}), **keys}
            after[subject] = {key: value for key, value in merged.items() if value is not None}
        both.append({subject: keys for subject, keys in after.items() if keys})
    return Throttles(*both)


def throttled(now, moves, rate):
    """(the throttles while a run moves, what it has set)."""
    wanted = additions(now, Throttles(), rate, range(1, 5), throttled_lists(moves))
    new = missing(now, wanted)
    return put(now, (new.brokers, new.topics)), new


def test_the_throttle_names_who_sends_and_who_receives_and_that_it_is_ours():
    lists = throttled_lists(
        {("t", 0): ((1, 2), (3,)), ("t", 1): ((2,), (3,)), ("u", 0): ((1,), ())}
    )
    assert lists == {"t": {LEADERS: "00:1,00:2,01:2", FOLLOWERS: "00:3,01:3"}}
    assert set(rates_of(1024).values()) == {"01024"}


@pytest.mark.parametrize(
    "text, ours",
    [("0", False), ("0:1", False), ("10:1", False), ("1024", False), ("*", False), ("", False)]
    + [("00", True), ("00:1", True), ("010:1", True), ("01024", True)],
)
def test_ours_bear_a_leading_zero(text, ours):
    assert is_ours(text) is ours


@given(BY_HAND, st.lists(st.tuples(MOVES, st.integers(1024, 2**40)), max_size=3))
def test_however_many_runs_were_killed_all_of_ours_go_and_the_rest_is_as_it_was(by_hand, runs):
    now = by_hand
    for moves, rate in runs:
        now, _new = throttled(now, moves, rate)
        assert of_others(now) == by_hand
    after = put(now, removals(now))
    assert after == by_hand
    assert not any(removals(after))


@given(BY_HAND, MOVES, st.integers(1024, 2**40))
def test_what_moves_is_throttled_whatever_others_have_set(by_hand, moves, rate):
    now, _new = throttled(by_hand, moves, rate)
    for (topic, partition), (senders, receivers) in moves.items():
        for key, brokers in zip(REPLICAS, (senders, receivers)):
            entries = now.topics[topic][key].split(",") if receivers else []
            numbers = {tuple(map(int, entry.split(":"))) for entry in entries if entry != "*"}
            wanted = {(partition, broker) for broker in brokers} if receivers else set()
            assert "*" in entries or wanted <= numbers
    assert all(set(now.brokers[broker]) == set(RATES) for broker in range(1, 5))


@given(BY_HAND, MOVES, st.integers(1024, 2**40))
def test_what_brokers_do_not_tell_yet_is_brought_back_all_the_same(by_hand, moves, rate):
    now, new = throttled(by_hand, moves, rate)
    own = before(by_hand, Throttles(), new)
    for told in (by_hand, Throttles()):
        assert put(now, unseen(own, told)) == by_hand
    assert not any(unseen(own, now)), "what is told is decided by its mark"


@given(BY_HAND, MOVES, st.integers(1024, 2**40), BY_HAND)
def test_what_somebody_sets_over_ours_is_not_taken_away(by_hand, moves, rate, over):
    now, new = throttled(by_hand, moves, rate)
    told = put(now, (over.brokers, over.topics))
    after = put(told, unseen(before(by_hand, Throttles(), new), told))
    after = put(after, removals(after))
    for there, theirs in ((after.brokers, over.brokers), (after.topics, over.topics)):
        for subject, keys in theirs.items():
            for key, value in keys.items():
                assert there[subject][key] == value
    assert of_others(after) == after


@given(BY_HAND, st.dictionaries(st.tuples(st.sampled_from("tuv"), NUMBERS), st.just((1, 2, 3))))
def test_no_more_goes_with_a_move_than_what_may_be_for_it(by_hand, moving):
    taken = of_moves(by_hand, moving)
    assert set(taken.topics) <= {topic for topic, _partition in moving}
    after = put(by_hand, removals(by_hand, taken))
    assert after == of_others(by_hand, taken)
    if not taken.topics:
        assert after == by_hand
    if taken.brokers:
        assert not after.topics, "a rate stays while something is listed that it may be for"


def test_by_hand_at_a_move_of_ours_is_not_for_it():
    beside = Throttles({1: {RATES[0]: "9"}}, {"t": {LEADERS: "0:1,00:2", FOLLOWERS: "00:3"}})
    assert of_moves(beside, {("t", 0): (1, 2, 3)}) == Throttles()
    alone = Throttles({1: {RATES[0]: "9"}}, {"t": {LEADERS: "0:1"}})
    assert of_moves(alone, {("t", 0): (1, 2, 3)}) == alone


def test_the_warning_names_five_and_counts_the_rest():
    many = Throttles({n: {RATES[0]: "1"} for n in range(1, 5)}, {t: {LEADERS: "*"} for t in "ab"})
    (warning,) = foreign_warning(many)
    assert warning.startswith("broker 1, broker 2, broker 3, broker 4, topic a and 1 more: ")
    assert foreign_warning(Throttles()) == []
