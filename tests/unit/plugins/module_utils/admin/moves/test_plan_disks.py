# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning moves between the directories of a broker: a table of cases, and the invariants of the module's header."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Directory,
    UnderWay,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.plan_disks import (
    DiskMove,
    DiskWish,
    carried_out,
    filled_since,
    plan_disks,
    told,
)

GIB = 2**30
EVEN = DiskWish()


def broker(*held, **more):
    """Directories /d1, /d2, ... with replicas of these sizes."""
    names = itertools.count()
    return tuple(
        Directory(f"/d{n}", {("t", next(names)): size for size in sizes}, **more)
        for n, sizes in enumerate(held, 1)
    )


def holds(directories):
    return [each.bytes for each in directories]


def moved(*held, wish=EVEN):
    """(bytes of the moves, what the directories hold afterwards)."""
    brokers = {1: broker(*held)}
    plan = plan_disks(brokers, wish)
    assert not plan.refusals, plan.refusals
    return plan.bytes, holds(carried_out(brokers, plan.moves)[1])


def checks(plan):
    assert plan.moves == () or not plan.refusals
    return [problem.check for problem in plan.refusals]


# ------------------------------------------------------------------ single cases


@pytest.mark.parametrize(
    "held, cost, after",
    [
        (([10] * 6, []), 30, [30, 30]),
        # one that is enough, not several
        (([50, 10, 10, 10, 10, 10], []), 50, [50, 50]),
        # within ten percent of 100: nothing moves
        (([110], [90]), 0, [110, 90]),
        (([100, 5, 5], [100, 5, 5]), 0, [110, 110]),
        # just outside: until within five percent, and no further
        (([100, 3, 3, 3, 3], [88]), 9, [103, 97]),
        # neither 5 nor 3 alone would be even; the cheaper one moves
        (([3, 5], []), 3, [5, 3]),
        # the larger one overshoots, and is better than nothing
        (([60, 50], [30]), 50, [60, 80]),
        # it would only change places
        (([100], []), 0, [100, 0]),
        (([100], [0, 0]), 0, [100, 0]),
        (([], [], []), 0, [0, 0, 0]),
        (([30, 30, 30], [], []), 60, [30, 30, 30]),
        (([40, 40], [20, 20], [], []), 60, [40, 20, 40, 20]),
    ],
)
def test_directories_are_evened_out(held, cost, after):
    assert moved(*held) == (cost, after)


def test_a_larger_disk_gets_more():
    small = Directory("/small", {("t", n): 10 for n in range(12)}, total=100 * GIB)
    large = Directory("/large", {}, total=200 * GIB)
    brokers = {1: (small, large)}
    assert holds(carried_out(brokers, plan_disks(brokers, EVEN).moves)[1]) == [40, 80]
    unknown = {1: (small, Directory("/large"))}
    assert holds(carried_out(unknown, plan_disks(unknown, EVEN).moves)[1]) == [60, 60]


def test_what_leaves_a_directory_goes_where_it_fills_least_and_nothing_else_moves():
    brokers = {1: broker([50], [10, 20], [7, 3, 30])}
    plan = plan_disks(brokers, DiskWish(drain=frozenset({"/d3/"})))
    assert {move.source for move in plan.moves} == {"/d3"} and len(plan.moves) == 3
    assert holds(carried_out(brokers, plan.moves)[1]) == [60, 60, 0] and plan.bytes == 40


def test_an_empty_replica_leaves_a_directory_too():
    brokers = {1: broker([1], [0, 0])}
    assert len(plan_disks(brokers, DiskWish(drain=frozenset({"/d2"}))).moves) == 2


def test_of_several_brokers_each_keeps_its_own():
    brokers = {1: broker([10] * 4, []), 2: broker([20], []), 3: broker([5])}
    plan = plan_disks(brokers, EVEN)
    assert [(move.broker, move.target) for move in plan.moves] == [(1, "/d2"), (1, "/d2")]


def test_what_moves_already_is_left_where_it_goes():
    brokers = {1: broker([10, 10, 10, 10], [])}
    under_way = {(1, ("t", number)): UnderWay("/d2", "/d1", 10) for number in (0, 1)}
    plan = plan_disks(brokers, EVEN, under_way)
    assert [move.key[1] for move in plan.moves] == [2, 3]
    refused = plan_disks(brokers, DiskWish(drain=frozenset({"/d1"})), under_way)
    assert checks(refused) == ["reassignment.running"] and "t-0" in refused.refusals[0].line()


def test_it_is_said_what_the_directories_hold_before_and_after():
    brokers = {1: broker([GIB] * 4, []), 2: broker([GIB], [GIB])}
    assert told(brokers, plan_disks(brokers, EVEN)) == (
        "2 replicas are copied between directories, 2.0 GiB in all "
        "(broker 1: /d1 4.0 GiB -> 2.0 GiB, /d2 0 B -> 2.0 GiB)"
    )
    assert told({}, plan_disks({2: brokers[2]}, EVEN)) == "nothing to move"


@pytest.mark.parametrize(
    "directories, wish, check",
    [
        (broker([5]), EVEN, "reassignment.one_directory"),
        (broker([5, 5], []), DiskWish(frozenset({"/d9"})), "reassignment.unknown_directory"),
        (broker([5, 5], []), DiskWish(frozenset({"/d1", "/d2"})), "reassignment.nowhere_to_go"),
        (
            (*broker([5, 5], []), Directory("/gone", online=False)),
            EVEN,
            "reassignment.offline_directory",
        ),
    ],
)
def test_refusals(directories, wish, check):
    assert checks(plan_disks({1: directories}, wish)) == [check]


@pytest.mark.parametrize(
    "usable, under_way, enough",
    [(3 * GIB, 0, True), (3 * GIB, GIB, False), (2 * GIB, 0, False), (None, 0, True)],
)
def test_a_directory_without_room_is_refused(usable, under_way, enough):
    """Two GiB would move; some of the disk stays free, and what is still coming needs room, too."""
    brokers = {
        1: (
            Directory("/d1", {("t", n): GIB for n in range(4)}),
            Directory("/d2", {("u", 0): 0}, total=100 * GIB, usable=usable),
        )
    }
    coming = {(1, ("u", 0)): UnderWay("/d1", "/d2", under_way)} if under_way else {}
    plan = plan_disks(brokers, EVEN, coming)
    assert checks(plan) == ([] if enough else ["reassignment.no_room"])


@pytest.mark.parametrize(
    "held, apart, under_way, enough",
    [
        # each has room, both have not
        (GIB, 0, 0, False),
        (GIB, GIB, 0, True),
        # blank disks look alike
        (0, 0, 0, True),
        # what comes to a blank one is not there yet
        (0, 0, GIB, True),
    ],
)
def test_directories_that_share_a_disk_have_its_room_once(held, apart, under_way, enough):
    """Eight GiB leave /old, for two directories that tell 6 GiB of room each."""
    usable = 7 * GIB
    shared = {"total": 100 * GIB}
    brokers = {
        1: (
            Directory("/a", {("a", 0): held or under_way}, usable=usable, **shared),
            Directory("/b", {("b", 0): held}, usable=usable + apart, **shared),
            Directory("/old", {("t", n): GIB for n in range(8)}, total=50 * GIB, usable=0),
        )
    }
    coming = {(1, ("a", 0)): UnderWay("/old", "/a", under_way)} if under_way else {}
    plan = plan_disks(brokers, DiskWish(drain=frozenset({"/old"})), coming)
    assert checks(plan) == ([] if enough else ["reassignment.no_room"])
    if not enough:
        assert "/a, /b would get 8.0 GiB together" in plan.refusals[0].reason


@pytest.mark.parametrize(
    "left, size, coming, filled",
    [
        (6 * GIB, GIB, 0, set()),
        (5 * GIB, GIB, 4 * GIB, {(1, "/a")}),
        (1, GIB, 0, {(1, "/a")}),
        (None, GIB, 0, set()),
    ],
)
def test_a_move_does_not_begin_once_its_disk_was_filled_by_something_else(
    left, size, coming, filled
):
    moves = [
        DiskMove(1, ("t", 0), "/old", "/a", size),
        DiskMove(1, ("t", 1), "/old", "/b", size),
        # of a broker that has not answered
        DiskMove(2, ("t", 1), "/old", "/a", size),
    ]
    total = None if left is None else 100 * GIB
    now = {
        1: (
            Directory("/a", {}, total=total, usable=left),
            Directory("/b", {}, total=100 * GIB, usable=50 * GIB),
            Directory("/old", {}, total=100 * GIB, usable=0),
        )
    }
    under_way = {(1, ("u", 0)): UnderWay("/old", "/a", coming)} if coming else {}
    assert filled_since(moves, now, under_way) == filled


@pytest.mark.parametrize(
    "disks, enough", [(("", ""), True), (("x", "y"), True), (("x", "x"), False)]
)
def test_blank_directories_that_are_known_to_share_a_disk_have_its_room_once(disks, enough):
    """Eight GiB leave /old, for two directories that tell 6 GiB of room each."""
    blank = [
        Directory(path, {}, total=100 * GIB, usable=7 * GIB, disk=each)
        for path, each in zip(("/a", "/b"), disks)
    ]
    old = Directory("/old", {("t", n): GIB for n in range(8)}, total=50 * GIB, usable=0)
    plan = plan_disks({1: (*blank, old)}, DiskWish(drain=frozenset({"/old"})))
    assert checks(plan) == ([] if enough else ["reassignment.no_room"])
    if not enough:
        assert "together, and they are on one disk" in plan.refusals[0].reason


def test_directories_that_look_alike_are_not_together_where_they_are_known_to_be_apart():
    alike = [
        Directory(path, {(path[1:], 0): GIB}, total=100 * GIB, usable=7 * GIB, disk=path)
        for path in ("/a", "/b")
    ]
    old = Directory("/old", {("t", n): GIB for n in range(8)}, total=50 * GIB, usable=0)
    assert not plan_disks({1: (*alike, old)}, DiskWish(drain=frozenset({"/old"}))).refusals


def test_what_moves_within_a_disk_needs_no_room_for_all_of_it():
    brokers = {1: broker([GIB] * 9, [GIB], [GIB], total=100 * GIB, usable=6 * GIB)}
    plan = plan_disks(brokers, DiskWish(drain=frozenset({"/d1"})))
    assert not plan.refusals and plan.copies == 9


def test_what_leaves_goes_where_there_is_room():
    brokers = {
        1: (
            Directory("/full", {}, total=GIB, usable=0),
            Directory("/roomy", {("t", 0): GIB}, total=GIB, usable=9 * GIB),
            Directory("/old", {("t", 1): GIB}, total=GIB, usable=0),
        )
    }
    plan = plan_disks(brokers, DiskWish(drain=frozenset({"/old"})))
    assert [move.target for move in plan.moves] == ["/roomy"]


def test_a_large_broker():
    """12 disks, of them one new, with 4,000 replicas; what matters is that it ends."""
    sizes = iter(range(1, 5000))
    held = [[next(sizes) * 1000 % 977 for each in range(4000 // 11)] for disk in range(11)]
    cost, after = moved(*held, [])
    share = sum(after) / 12
    assert all(0.94 * share < each < 1.06 * share for each in after)
    assert cost < 1.06 * share


# ------------------------------------------------------------------ properties


SIZES = st.integers(0, 30)


@st.composite
def disks(draw, sizes=SIZES, least=1):
    """The directories of a broker, whose disks are of one size, of several, or of unknown ones."""
    count = draw(st.integers(least, 5))
    totals = draw(st.sampled_from([None, (50, 50, 50, 50, 50), (50, 100, 50, 150, 70)]))
    numbers = itertools.count()
    return tuple(
        Directory(
            f"/d{n}",
            {("t", next(numbers)): size for size in draw(st.lists(sizes, max_size=6))},
            total=totals[n] if totals else None,
        )
        for n in range(count)
    )


def levels(directories):
    return [Fraction(each.bytes, each.total or 1) for each in directories]


def distance(directories):
    return max(levels(directories)) - min(levels(directories))


@st.composite
def wishes(draw):
    drained = draw(st.sets(st.sampled_from(["/d0", "/d1"]), max_size=2))
    return DiskWish(frozenset(drained), draw(st.integers(0, 30)))


@given(st.dictionaries(st.integers(1, 3), disks(), min_size=1), wishes())
def test_what_holds_after_every_plan(brokers, wish):
    plan = plan_disks(brokers, wish)
    assume(not plan.refusals)
    after = carried_out(brokers, plan.moves)
    for number, directories in brokers.items():
        every = [replica for each in directories for replica in each.replicas.items()]
        assert sorted(every) == sorted(r for each in after[number] for r in each.replicas.items())
        if wish.drain:
            for old, new in zip(directories, after[number]):
                drained = old.path in wish.drain
                assert not new.replicas if drained else old.replicas.items() <= new.replicas.items()
        else:
            assert distance(after[number]) <= distance(directories)
    for move in plan.moves:
        paths = [each.path for each in brokers[move.broker]]
        assert move.source in paths and move.target in paths and move.source != move.target


@given(st.dictionaries(st.integers(1, 3), disks(), min_size=1), wishes())
def test_a_second_plan_is_empty(brokers, wish):
    plan = plan_disks(brokers, wish)
    assume(not plan.refusals)
    assert plan_disks(carried_out(brokers, plan.moves), wish).moves == ()


@given(disks(), wishes(), st.randoms())
def test_the_same_answer_whatever_the_order_of_the_input(directories, wish, chance):
    shuffled = list(directories)
    chance.shuffle(shuffled)
    assert plan_disks({1: directories}, wish) == plan_disks({1: shuffled}, wish)


@given(disks(), wishes(), st.integers(0, 4))
def test_a_directory_that_is_offline_is_never_touched(directories, wish, number):
    assume(number < len(directories))
    lost = Directory(directories[number].path, online=False)
    brokers = {1: (*directories[:number], lost, *directories[number + 1 :])}
    plan = plan_disks(brokers, wish)
    assert plan.moves == () and plan.refusals


@given(disks(least=2), st.integers(0, 30))
def test_nothing_moves_while_all_are_within_the_tolerance(directories, tolerance):
    total = sum(each.total or 1 for each in directories)
    held = sum(each.bytes for each in directories)
    shares = [Fraction(held * (each.total or 1), total) for each in directories]
    even = all(
        abs(each.bytes - share) * 100 <= tolerance * share
        for each, share in zip(directories, shares)
    )
    plan = plan_disks({1: directories}, DiskWish(tolerance=tolerance))
    assert not even or plan.moves == ()


@given(disks(st.just(1), least=2))
def test_of_replicas_of_one_size_the_fewest_move(directories):
    """With a tolerance of nothing: as many as must leave the directories that hold more than their share."""
    brokers = {1: tuple(Directory(each.path, each.replicas) for each in directories)}
    plan = plan_disks(brokers, DiskWish(tolerance=0))
    after = sorted(holds(carried_out(brokers, plan.moves)[1]))
    assert after[-1] - after[0] <= 1
    average, rest = divmod(sum(after), len(after))
    above = sorted(
        (each.bytes - average for each in directories if each.bytes > average), reverse=True
    )
    assert len(plan.moves) == sum(above) - min(rest, len(above))


@given(disks(st.integers(1, 9), least=2))
def test_no_single_move_would_bring_the_edge_nearer(directories):
    """What is left outside of half the tolerance is so because replicas cannot be cut."""
    brokers = {1: tuple(Directory(each.path, each.replicas) for each in directories)}
    after = carried_out(brokers, plan_disks(brokers, DiskWish(tolerance=0)).moves)[1]
    for source in after:
        for target in after:
            for size in source.replicas.values():
                # the two would at best change places
                assert source.bytes - target.bytes <= size


@given(disks(least=2), st.data())
def test_a_spread_that_was_cut_off_goes_on(directories, data):
    brokers = {1: directories}
    plan = plan_disks(brokers, EVEN)
    done = data.draw(st.sets(st.sampled_from(plan.moves))) if plan.moves else set()
    half = carried_out(brokers, done)
    end = carried_out(half, plan_disks(half, EVEN).moves)
    assert distance(end[1]) <= distance(half[1])
    assert plan_disks(end, EVEN).moves == ()


@given(disks(st.just(1), least=2), st.data())
def test_of_replicas_of_one_size_it_ends_where_it_would_have(directories, data):
    brokers = {1: tuple(Directory(each.path, each.replicas) for each in directories)}
    wish = DiskWish(tolerance=0)
    plan = plan_disks(brokers, wish)
    done = data.draw(st.sets(st.sampled_from(plan.moves))) if plan.moves else set()
    half = carried_out(brokers, done)
    rest = plan_disks(half, wish)
    assert len(done) + len(rest.moves) == len(plan.moves)
    assert distance(carried_out(half, rest.moves)[1]) <= 1
