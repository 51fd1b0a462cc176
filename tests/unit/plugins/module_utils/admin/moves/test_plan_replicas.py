# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning moves of replicas: a table of cases, and the invariants of the module's header."""

from __future__ import annotations

import collections

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import (
    Layout,
    Wish,
    carried_out,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.plan_replicas import (
    plan_moves,
    useful,
)

MIB = 2**20


def cyclic(partitions, factor, brokers, topic="orders"):
    """Partitions laid out as Kafka does it."""
    return {
        (topic, number): tuple(brokers[(number + step) % len(brokers)] for step in range(factor))
        for number in range(partitions)
    }


def held(layout, brokers=None):
    counts = collections.Counter(dict.fromkeys(brokers or layout.brokers, 0))
    for replicas in layout.replicas.values():
        counts.update(replicas)
    return counts


def led(layout):
    counts = collections.Counter(dict.fromkeys(layout.brokers, 0))
    counts.update(replicas[0] for replicas in layout.replicas.values())
    return counts


def racks_of(layout, replicas):
    return {layout.racks.get(broker) or f"none {broker}" for broker in replicas}


def fewest_moves(counts, brokers):
    """How many replicas must move until the counts of `brokers` are within one: a lower bound."""
    average, rest = divmod(sum(counts[broker] for broker in brokers), len(brokers))
    above = [counts[broker] - average for broker in brokers if counts[broker] > average]
    return sum(above) - min(rest, len(above))


# ------------------------------------------------------------------ single cases


def test_a_broker_that_holds_its_part_already_takes_nothing():
    """Its topics may be few, but what it took, it or another would have to give away again."""
    layout = Layout(
        {
            **{("t0", number): (1, 2) for number in range(4)},
            **{("t1", number): (1, 2, 3) for number in range(5)},
            **{("t2", number): (1, 2, 3, 4, 5) for number in range(2)},
            **{("t2", number): (1, 2, 4, 5, 6) for number in range(2, 5)},
        },
        tuple(range(1, 8)),
    )
    assert held(layout) == {1: 14, 2: 14, 3: 7, 4: 5, 5: 5, 6: 3, 7: 0}
    plan = plan_moves(layout, Wish(spread=True))
    assert plan.copies == 14
    assert not any(3 in move.adding for move in plan.moves)


def test_a_new_broker_gets_its_part_of_every_topic_and_the_least_that_must_move():
    layout = Layout(
        {**cyclic(12, 3, (1, 2, 3)), **cyclic(12, 3, (1, 2, 3), "clicks")},
        (1, 2, 3, 4),
        sizes={
            **{("orders", n): 100 * MIB for n in range(12)},
            **{("clicks", n): MIB for n in range(12)},
        },
    )
    plan = plan_moves(layout, Wish(spread=True))
    after = carried_out(layout, plan.moves)
    assert held(after) == {1: 18, 2: 18, 3: 18, 4: 18}
    assert plan.copies == 18
    of_orders = [move for move in plan.moves if move.key[0] == "orders" and move.adding]
    assert len(of_orders) == 9
    assert plan.bytes == 9 * 100 * MIB + 9 * MIB
    assert set(led(after).values()) == {6}
    assert "18 replicas are copied, 909.0 MiB in all (909.0 MiB to broker 4)" in plan.summary()


def test_of_the_partitions_of_a_topic_the_smallest_move():
    layout = Layout(
        cyclic(6, 1, (1, 2)), (1, 2, 3), sizes={("orders", n): n * MIB for n in range(6)}
    )
    moved = {move.key[1] for move in plan_moves(layout, Wish(spread=True)).moves}
    assert moved == {0, 1}


def test_a_drained_broker_is_replaced_in_its_place_and_nothing_else_changes():
    layout = Layout(cyclic(8, 2, (1, 2, 3, 4)), (1, 2, 3, 4))
    plan = plan_moves(layout, Wish(drain=frozenset({4})))
    assert len(plan.moves) == 4 == plan.copies
    for move in plan.moves:
        assert 4 in move.before and 4 not in move.after
    counts = held(carried_out(layout, plan.moves))
    assert sorted(counts.values()) == [0, 5, 5, 6]


def test_a_rack_that_is_left_keeps_a_replica():
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    layout = Layout(
        {("t", n): ((1, 3), (2, 4), (3, 1), (4, 2))[n % 4] for n in range(8)}, (1, 2, 3, 4), racks
    )
    after = carried_out(layout, plan_moves(layout, Wish(drain=frozenset({4}))).moves)
    assert all(len(racks_of(layout, replicas)) == 2 for replicas in after.replicas.values())
    assert held(after)[3] == 8


def test_a_higher_factor_uses_new_racks_first():
    racks = {1: "a", 2: "a", 3: "b", 4: "c"}
    layout = Layout(cyclic(6, 1, (1, 2)), (1, 2, 3, 4), racks)
    after = carried_out(layout, plan_moves(layout, Wish(replication_factor=3)).moves)
    assert all(len(racks_of(layout, replicas)) == 3 for replicas in after.replicas.values())


def test_a_lower_factor_takes_first_what_is_not_in_sync():
    layout = Layout(
        {("t", 0): (1, 2, 3), ("t", 1): (2, 3, 1)},
        (1, 2, 3),
        in_sync={("t", 0): (1, 3), ("t", 1): (2, 3, 1)},
    )
    plan = plan_moves(layout, Wish(replication_factor=2))
    assert plan.moves[0].after == (1, 3)
    assert len(plan.moves[1].after) == 2
    assert plan.copies == 0 == plan.bytes


def test_only_the_named_topics_change():
    layout = Layout({**cyclic(4, 1, (1,)), **cyclic(4, 1, (1,), "other")}, (1, 2))
    plan = plan_moves(layout, Wish(spread=True, topics=frozenset({"other"})))
    assert {move.key[0] for move in plan.moves} == {"other"}
    assert held(carried_out(layout, plan.moves)) == {1: 6, 2: 2}  # even are the two of `other`


def test_only_the_named_brokers_are_filled():
    layout = Layout(cyclic(12, 2, (1, 2)), (1, 2, 3, 4))
    after = carried_out(layout, plan_moves(layout, Wish(spread=True, onto=frozenset({4}))).moves)
    assert held(after) == {1: 8, 2: 8, 3: 0, 4: 8}


def test_a_dead_broker_can_be_drained():
    layout = Layout(cyclic(6, 2, (1, 2, 3)), (1, 2, 4))
    after = carried_out(layout, plan_moves(layout, Wish(drain=frozenset({3}))).moves)
    assert held(after, (1, 2, 3, 4))[3] == 0


def test_beside_a_dead_broker_nothing_moves_that_could_not_end():
    """A move ends when all replicas are in sync; the order of replicas may change at once."""
    replicas = {
        **{("beside", number): (3, 1) for number in range(4)},
        **{("free", number): (1,) for number in range(4)},
    }
    layout = Layout(replicas, (1, 2))
    plan = plan_moves(layout, Wish(spread=True))
    copied = [move for move in plan.moves if move.adding]
    assert copied and {move.key[0] for move in copied} == {"free"}
    assert "broker 3 holds replicas and is not alive" in plan.warnings[0]


@pytest.mark.parametrize(
    "wish, check, words",
    [
        (Wish(drain=frozenset({3})), "reassignment.nowhere_to_go", "3 replicas each"),
        (Wish(replication_factor=4), "reassignment.nowhere_to_go", "orders (6)"),
        (Wish(drain=frozenset({7})), "reassignment.unknown_broker", "1, 2, 3"),
        (Wish(spread=True, onto=frozenset({8})), "reassignment.unknown_broker", "broker 8"),
        (Wish(drain=frozenset({1}), onto=frozenset({1})), "reassignment.contradiction", "filled"),
    ],
)
def test_refusals(wish, check, words):
    layout = Layout(cyclic(6, 3, (1, 2, 3)), (1, 2, 3))
    plan = plan_moves(layout, wish)
    assert [problem.check for problem in plan.refusals] == [check]
    assert words in plan.refusals[0].line()
    assert plan.moves == ()


def test_a_target_that_is_not_alive_is_refused():
    layout = Layout(cyclic(6, 2, (1, 2, 3)), (1, 2))
    plan = plan_moves(layout, Wish(spread=True, onto=frozenset({3})))
    assert [problem.check for problem in plan.refusals] == ["reassignment.dead_target"]


def test_racks_of_some_brokers_only_are_ignored_and_said():
    layout = Layout(cyclic(4, 1, (1,)), (1, 2), {1: "a", 2: None})
    plan = plan_moves(layout, Wish(spread=True))
    assert plan.copies == 2
    assert "broker 2 has no rack" in plan.warnings[0]


def test_a_broker_that_is_emptied_needs_no_rack():
    racks = {1: "a", 2: "a", 3: "b", 4: None}
    layout = Layout(
        cyclic(6, 2, (1, 3)) | {("t", n): (4, 1) for n in range(6)}, (1, 2, 3, 4), racks
    )
    after = carried_out(layout, plan_moves(layout, Wish(drain=frozenset({4}))).moves)
    assert all(len(racks_of(layout, replicas)) == 2 for replicas in after.replicas.values())


def test_moves_under_way_are_judged_by_whether_they_help():
    before = Layout(cyclic(4, 1, (1, 2)), (1, 2, 3))
    helps = Layout({**before.replicas, ("orders", 0): (3,)}, (1, 2, 3))
    harms = Layout({**before.replicas, ("orders", 0): (2,)}, (1, 2, 3))
    wish = Wish(drain=frozenset({1}))
    assert useful(before, helps, wish)
    assert not useful(before, Layout({**before.replicas, ("orders", 1): (1,)}, (1, 2, 3)), wish)
    assert not useful(before, harms, Wish(spread=True))


def test_a_large_cluster():
    """99 brokers, 9 of them new, 200,000 partitions; what matters is that it ends."""
    replicas = {}
    brokers = tuple(range(90))
    for topic in range(2000):
        for number in range(100):
            first = topic * 7 + number
            replicas[(f"t{topic:04}", number)] = tuple(
                brokers[(first + step * 31) % 90] for step in range(3)
            )
    racks = {broker: "abc"[broker % 3] for broker in range(99)}
    layout = Layout(replicas, tuple(range(99)), racks)
    plan = plan_moves(layout, Wish(spread=True))
    after = held(carried_out(layout, plan.moves))
    assert max(after.values()) - min(after.values()) <= 1
    assert plan.copies == fewest_moves(held(layout), layout.brokers)


# ------------------------------------------------------------------ properties


@st.composite
def layouts(draw, racks=True):
    brokers = tuple(range(1, draw(st.integers(1, 7)) + 1))
    placed = draw(st.integers(1, len(brokers)))
    replicas, sizes = {}, {}
    for topic in range(draw(st.integers(1, 3))):
        factor = draw(st.integers(1, placed))
        for number in range(draw(st.integers(1, 8))):
            order = draw(st.permutations(brokers[:placed]))
            replicas[(f"t{topic}", number)] = tuple(order[:factor])
            sizes[(f"t{topic}", number)] = draw(st.integers(0, 5))
    names = draw(
        st.one_of(
            st.just([None] * len(brokers)),
            st.lists(st.sampled_from("abc"), min_size=len(brokers), max_size=len(brokers)),
        )
        if racks
        else st.just([None] * len(brokers))
    )
    return Layout(replicas, brokers, dict(zip(brokers, names)), sizes)


@st.composite
def wishes(draw, brokers):
    return Wish(
        drain=frozenset(draw(st.sets(st.sampled_from(brokers), max_size=2))),
        spread=draw(st.booleans()),
        replication_factor=draw(st.one_of(st.none(), st.integers(1, 3))),
    )


@given(st.data())
def test_what_holds_after_every_plan(data):
    layout = data.draw(layouts())
    wish = data.draw(wishes(layout.brokers))
    plan = plan_moves(layout, wish)
    if plan.refusals:
        assert plan.moves == ()
        return
    after = carried_out(layout, plan.moves)
    left = set(layout.brokers) - wish.drain
    for key, replicas in after.replicas.items():
        before = layout.replicas[key]
        assert len(replicas) == (wish.replication_factor or len(before))
        assert len(set(replicas)) == len(replicas)
        assert not set(replicas) & wish.drain
        assert set(replicas) <= set(layout.brokers)
        possible = min(len(replicas), len(racks_of(layout, left)))
        kept = [broker for broker in before if broker not in wish.drain]
        wanted = min(possible, len(racks_of(layout, kept)), len(replicas))
        assert len(racks_of(layout, replicas)) >= wanted
    for move in plan.moves:
        assert move.before != move.after
    assert plan.bytes == sum(
        layout.sizes[move.key] * len(set(move.after) - set(move.before)) for move in plan.moves
    )


@given(st.data())
def test_a_second_plan_is_empty(data):
    layout = data.draw(layouts())
    wish = data.draw(wishes(layout.brokers))
    plan = plan_moves(layout, wish)
    assume(not plan.refusals)
    assert plan_moves(carried_out(layout, plan.moves), wish).moves == ()


@given(st.data())
def test_the_same_answer_whatever_the_order_of_the_input(data):
    layout = data.draw(layouts())
    wish = data.draw(wishes(layout.brokers))
    keys = data.draw(st.permutations(sorted(layout.replicas)))
    shuffled = Layout(
        {key: layout.replicas[key] for key in keys},
        tuple(reversed(layout.brokers)),
        layout.racks,
        layout.sizes,
    )
    assert plan_moves(layout, wish) == plan_moves(shuffled, wish)


@given(layouts(racks=False))
def test_without_racks_a_spread_is_even_and_moves_the_fewest_replicas(layout):
    plan = plan_moves(layout, Wish(spread=True))
    after = carried_out(layout, plan.moves)
    assert max(held(after).values()) - min(held(after).values()) <= 1
    assert plan.copies == fewest_moves(held(layout), layout.brokers)


@given(layouts())
def test_with_racks_no_single_move_would_make_a_spread_more_even(layout):
    after = carried_out(layout, plan_moves(layout, Wish(spread=True)).moves)
    counts = held(after)
    for replicas in after.replicas.values():
        for source in replicas:
            for target in set(layout.brokers) - set(replicas):
                if counts[target] + 2 <= counts[source]:
                    moved = [target if broker == source else broker for broker in replicas]
                    assert len(racks_of(layout, moved)) < len(racks_of(layout, replicas))


@given(layouts(racks=False), st.data())
def test_a_drain_copies_what_it_takes_away_and_nothing_else(layout, data):
    drained = frozenset({data.draw(st.sampled_from(layout.brokers))})
    plan = plan_moves(layout, Wish(drain=drained))
    assume(not plan.refusals)
    assert plan.copies == held(layout)[min(drained)]
    changed = {move.key for move in plan.moves}
    assert changed == {key for key, replicas in layout.replicas.items() if drained & {*replicas}}


@given(layouts())
def test_preferred_leaders_of_a_spread_are_as_even_as_the_replicas_allow(layout):
    after = carried_out(layout, plan_moves(layout, Wish(spread=True)).moves)
    leaders = led(after)
    for replicas in after.replicas.values():
        for other in replicas[1:]:
            assert leaders[replicas[0]] - leaders[other] <= 1


@given(layouts(), st.data())
def test_a_spread_that_was_cut_off_goes_on_to_an_even_end(layout, data):
    wish = Wish(spread=True)
    plan = plan_moves(layout, wish)
    done = data.draw(st.sets(st.sampled_from(plan.moves))) if plan.moves else set()
    half = carried_out(layout, done)
    rest = plan_moves(half, wish)
    end = held(carried_out(half, rest.moves))
    whole = held(carried_out(layout, plan.moves))
    assert (
        max(end.values()) - min(end.values())
        <= max(1, max(whole.values()) - min(whole.values())) + 1
    )
