# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether replicas come nearer: on made-up sizes, a look every five seconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.pace import (
    OUTPACED_SECONDS,
    RECENT_SECONDS,
    Copy,
    Pace,
)

MIB = 2**20
A, B, OTHER = (4, ("t", 0)), (4, ("t", 1)), (5, ("t", 2))
HOUR = 3600


def steady(rate):
    """Bytes by a time, so many MiB a second."""
    return lambda now: int(now * rate * MIB)


def peaks(low, high, every, long):
    """The same, `low` a second and `high` for `long` of `every` seconds."""

    def written(now):
        whole, part = divmod(now, every)
        of_peaks = whole * long + min(part, long)
        return int((now * low + of_peaks * (high - low)) * MIB)

    return written


def watched(flows, seconds, rate=-1, told=lambda now: True, step=5):
    """(when the pace was first behind, when a run would have ended), of places with (arriving, written)."""
    pace, first, ended = Pace(rate), None, None
    for now in range(0, int(seconds), step):
        copies = {
            place: Copy(arriving(now), 100 * MIB + written(now), 1)
            for place, (arriving, written) in flows.items()
        }
        pace.note(list(flows), copies if told(now) else {}, now)
        if first is None and pace.behind(now):
            first = now
        if pace.outpaced(now):
            ended = now
            break
    return first, ended


@pytest.mark.parametrize(
    "arriving, written, behind, ends",
    [
        (steady(4), steady(5), True, True),
        (steady(5), steady(5), True, True),
        # merely slow
        (steady(5), steady(4.99), False, False),
        (steady(0.01), steady(0), False, False),
        # a peak of a quarter of an hour, then it comes nearer again, and is nearest hours later
        (steady(5), peaks(4, 40, 24 * HOUR, 900), True, False),
        # peaks by which more is written than copied, though it comes nearer between them; and less
        (steady(5), peaks(1, 50, 600, 120), True, True),
        (steady(5), peaks(1, 20, 600, 120), True, False),
        # nothing arrives and nothing is written: that is told otherwise
        (steady(0), steady(0), False, False),
    ],
)
def test_who_copies_less_than_is_written_is_told_and_ends(arriving, written, behind, ends):
    first, ended = watched({A: (arriving, written)}, 5 * HOUR)
    assert (first is not None, ended is not None) == (behind, ends)
    if ends:
        assert RECENT_SECONDS <= first <= RECENT_SECONDS + 600
        assert OUTPACED_SECONDS <= ended <= OUTPACED_SECONDS + 1200


@pytest.mark.parametrize(
    "flows, ends",
    [
        # one that comes nearer is worth waiting for, whatever becomes of the others
        ({A: (steady(1), steady(2)), B: (steady(1), steady(0))}, False),
        ({A: (steady(1), steady(2)), B: (steady(1), steady(1.5))}, True),
        # one that waits for its turn, as between directories
        ({A: (steady(1), steady(2)), B: (steady(0), steady(0))}, True),
        ({A: (steady(0), steady(2)), B: (steady(3), steady(2))}, False),
        # another broker does well
        ({A: (steady(1), steady(2)), OTHER: (steady(9), steady(2))}, True),
    ],
)
def test_a_broker_is_outpaced_once_none_of_its_replicas_comes_nearer(flows, ends):
    assert (watched(flows, HOUR)[1] is not None) is ends


def test_what_arrives_begins_the_count_anew():
    pace = Pace(-1)
    for now in range(0, 3 * HOUR, 5):
        moving = [A, B] if now < 1500 else [A]
        copies = {place: Copy(now * MIB, 2 * now * MIB, 1) for place in moving}
        pace.note(moving, copies, now)
        if pace.outpaced(now):
            break
    assert 1500 + OUTPACED_SECONDS <= now <= 1600 + OUTPACED_SECONDS
    assert pace.keys(4) == [("t", 0)]
    assert "broker 4 has come no nearer to what it copies for 1800 s: 1.0 MiB a second arrive" in (
        pace.told(now)
    )
    assert "; broker 4 comes no nearer: " in pace.line(now)


def test_under_a_low_rate_it_takes_its_time():
    """A megabyte arrives every ten seconds: between two of them nothing has come nearer."""

    def chunks(now):
        return now // 1000 * 100 * MIB

    flows = {A: (chunks, steady(0.09))}
    assert watched(flows, 10 * HOUR, rate=102400, step=50) == (None, None)
    assert watched(flows, 10 * HOUR, step=50)[0] is not None


def test_what_is_not_told_for_a_while_is_no_sign():
    flows = {A: (steady(3), steady(2))}
    assert watched(flows, 2 * HOUR, told=lambda now: now % 1000 > 600) == (None, None)


@pytest.mark.parametrize("every", [300, 900])
def test_segments_that_are_deleted_hide_nothing_and_are_no_sign(every):
    """On the leader and then on the copy; and a leader that has compacted is smaller than what was copied of it."""
    gib = 1024 * MIB

    def looks(rate, written):
        pace = Pace(-1)
        for now in range(0, 2 * HOUR, 5):
            there = steady(rate)(now) - now // every * 100 * MIB
            of = steady(written)(now) + 9 * gib - (now + 60) // every * 100 * MIB
            pace.note([A], {A: Copy(max(0, there), of, 1)}, now)
            if pace.outpaced(now):
                return now
        return None

    assert looks(5, 4) is None and looks(4, 5) is not None
    pace = Pace(-1)
    for now in range(0, 2 * HOUR, 5):
        there, of = steady(5)(now), steady(1)(now) + (9 * gib if now < 600 else 0)
        pace.note([A], {A: Copy(there - (2 * gib if now > 3000 else 0), of, 1)}, now)
        assert not pace.outpaced(now) and not pace.behind(now)


def test_another_leader_has_another_size():
    pace = Pace(-1)
    for now in range(0, HOUR, 5):
        leader = now // 600 % 2
        pace.note([A], {A: Copy(now * MIB, now * MIB // 2 + leader * 999 * MIB, leader)}, now)
        assert not pace.behind(now)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 40)),
        min_size=1,
        max_size=40,
    )
)
def test_who_always_copies_more_than_is_written_never_ends(spans):
    """Whatever is written when, and however fast: one more byte a second is enough."""
    pace, now, there, of = Pace(-1), 0, 0, 9 * MIB
    for written, more, looks in spans:
        for _look in range(looks):
            now += 5
            of += written * 5
            there += (written + more) * 5 + 1
            pace.note([A], {A: Copy(there, of, 1)}, now)
            assert not pace.behind(now) and not pace.outpaced(now)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=400, max_size=400))
def test_who_never_copies_more_than_is_written_ends_after_half_an_hour(spans):
    pace, there, of, ended = Pace(-1), 0, 0, None
    for look, (written, less) in enumerate(spans):
        of += written
        there += max(0, written - less)
        pace.note([A], {A: Copy(there, of, 1)}, look * 5)
        if ended is None and pace.outpaced(look * 5):
            ended = look * 5
    assert ended is not None and OUTPACED_SECONDS <= ended <= OUTPACED_SECONDS + 15
