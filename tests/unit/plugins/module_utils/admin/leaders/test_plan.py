# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Elections: exactly the partitions that can get their leader, nothing twice, and no loss without consent."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.leaders.plan import (
    Leaderless,
    as_permitted,
    plan_preferred,
    plan_unclean,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    Partition,
    Snapshot,
    Topic,
)

ALIVE = tuple(Broker(number, "", 0) for number in range(1, 6))


def cluster(**topics):
    """A Snapshot of topics, each a list of (leader, replicas, isr)."""
    return Snapshot(
        brokers=ALIVE,
        topics={
            name: Topic(
                name, tuple(Partition(number, *part) for number, part in enumerate(partitions))
            )
            for name, partitions in topics.items()
        },
    )


@pytest.mark.parametrize(
    ("partition", "moves", "warns"),
    [
        ((1, (1, 2, 3), (1, 2, 3)), {}, False),
        ((2, (1, 2, 3), (1, 2, 3)), {"t-0": 1}, False),
        ((2, (1, 2, 3), (2, 3)), {}, True),
        ((None, (1, 2), ()), {}, True),
        ((None, (1, 2), (1,)), {"t-0": 1}, False),
        ((None, (9, 1), (9,)), {}, True),
        ((None, (), ()), {}, False),
    ],
    ids=[
        "it leads already",
        "another one leads",
        "the preferred one is not in sync",
        "nobody can lead",
        "nobody leads, and it could",
        "the last that was in sync is dead",
        "no replicas yet",
    ],
)
def test_each_partition(partition, moves, warns):
    plan = plan_preferred(cluster(t=[partition]))
    assert {change.subject: change.after["leader"] for change in plan.changes} == moves
    assert bool(plan.warnings) == warns and not plan.refusals


def test_only_the_named_topics_and_none_that_is_not_there():
    moved = (2, (1, 2), (1, 2))
    plan = plan_preferred(cluster(orders=[moved], clicks=[moved]), ["orders", "order"])
    assert [change.subject for change in plan.changes] == ["orders-0"]
    (refusal,) = plan.refusals
    assert refusal.line().startswith("[topics.unknown] order: ") and "orders" in refusal.reason


@pytest.mark.parametrize(
    "leave, moves",
    [
        ([], ["t-0", "t-1", "t-3"]),
        (["t-1", "t-2", "u-0"], ["t-0", "t-3"]),
        # it has no leader that it could keep
        (["t-0", "t-1", "t-3"], ["t-3"]),
    ],
)
def test_who_is_left_keeps_its_leader(leave, moves):
    """A drill gives back what it has moved, and nothing else."""
    moved, none = (2, (1, 2), (1, 2)), (None, (1, 2), (1, 2))
    plan = plan_preferred(cluster(t=[moved, moved, (2, (1, 2), (2,)), none]), None, leave)
    assert [change.subject for change in plan.changes] == moves
    assert bool(plan.warnings) is ("t-2" not in leave)


@pytest.mark.parametrize(
    "rights, refused",
    [({"DESCRIBE"}, True), ({"DESCRIBE", "ALTER"}, False), ((), False)],
    ids=["may look", "may elect", "not told"],
)
def test_who_may_not_elect_is_told_before(rights, refused):
    plan = as_permitted(plan_preferred(cluster(t=[(2, (1, 2), (1, 2))])), rights)
    assert [each.check for each in plan.refusals] == (["leaders.rights"] if refused else [])
    nothing = as_permitted(plan_preferred(cluster(t=[(1, (1, 2), (1, 2))])), rights)
    assert not nothing and not nothing.refusals, "nothing is to be done"


def test_a_long_warning_is_cut():
    plan = plan_preferred(cluster(t=[(2, (1, 2), (2,))] * 13))
    assert plan.warnings[0].endswith("t-9 (broker 1) and 3 more")


@st.composite
def partitions(draw):
    """(leader, replicas, isr) as a cluster can have them."""
    replicas = tuple(draw(st.permutations(range(1, 6)))[: draw(st.integers(1, 4))])
    isr = tuple(each for each in replicas if draw(st.booleans()))
    return (draw(st.sampled_from(isr)) if isr else None, replicas, isr)


@given(st.lists(partitions(), max_size=8))
def test_a_second_election_has_nothing_to_do(parts):
    before = cluster(t=parts)
    plan = plan_preferred(before)
    leaders = {change.subject: change.after["leader"] for change in plan.changes}
    topic = before.topics["t"]
    led = tuple(
        replace(part, leader=leaders.get(f"t-{part.id}", part.leader)) for part in topic.partitions
    )
    assert all(part.leader is None or part.leader in part.isr for part in led)
    again = plan_preferred(Snapshot(brokers=ALIVE, topics={"t": Topic("t", led)}))
    assert not again and again.warnings == plan.warnings


# ---------------------------------------------------------------- unclean

CONSENT = ["unclean_election"]


@pytest.mark.parametrize(
    ("partition", "leader", "loses"),
    [
        ((1, (1, 2), (1,)), None, False),
        ((None, (9, 2, 3), (9,)), 2, True),
        ((None, (9, 2, 3), (9, 3)), 3, False),
        ((None, (9, 2), ()), 2, True),
        ((None, (8, 9), (9,)), None, False),
        ((None, (), ()), None, False),
    ],
    ids=[
        "it is led",
        "the last in sync is dead",
        "one in sync is alive, and will be elected",
        "nobody is known to be in sync",
        "nobody is alive",
        "no replicas yet",
    ],
)
def test_who_is_elected_and_what_needs_consent(partition, leader, loses):
    state = Leaderless(cluster(t=[partition]))
    plan = plan_unclean(state, ["t"], CONSENT)
    assert [change.after["leader"] for change in plan.changes] == ([leader] if leader else [])
    assert [bool(change.note) for change in plan.changes] == ([loses] if leader else [])
    without = plan_unclean(state, ["t"], [])
    assert bool(without) == (leader is not None and not loses)
    assert [each.check for each in without.refusals] == (["unclean.leader"] if loses else [])


def test_the_refusal_says_who_would_lead_and_what_each_has():
    state = Leaderless(
        cluster(t=[(None, (9, 2, 3), (9,))]), {(2, ("t", 0)): 2048, (3, ("t", 0)): 4096}
    )
    (refusal,) = plan_unclean(state, ["t"], []).refusals
    assert refusal.line() == (
        "[unclean.leader] t-0: no replica that is in sync is alive (broker 9 was the last); broker 2 would lead, and "
        "every acknowledged record that it lacks is lost for good; it has 2.0 KiB, and broker 3, which "
        "stands behind it in the list of replicas, 4.0 KiB. Remedy: start broker 9 (playbooks/start.yml "
        "starts what is down), or consent with allow: [unclean_election]."
    )


def test_where_kraft_has_emptied_the_isr_the_dead_are_named():
    (refusal,) = plan_unclean(Leaderless(cluster(t=[(None, (9, 2), ())])), ["t"], []).refusals
    assert "(down: 9)" in refusal.reason and refusal.remedy.startswith("start broker 9 (")


def test_nobody_alive_is_a_warning_and_an_unknown_topic_a_refusal():
    plan = plan_unclean(Leaderless(cluster(t=[(None, (8, 9), (9,))])), ["t", "u"], CONSENT)
    assert plan.warnings == ("left as they are, because no replica is alive: t-0 (brokers 8, 9)",)
    assert [each.check for each in plan.refusals] == ["topics.unknown"]


@st.composite
def broken(draw):
    """(leader, replicas, isr) where brokers 6 to 9 are dead."""
    replicas = tuple(draw(st.permutations(range(1, 10)))[: draw(st.integers(1, 5))])
    isr = tuple(each for each in replicas if draw(st.booleans()))
    able = [each for each in isr if each <= 5]
    return (able[0] if able and draw(st.booleans()) else None, replicas, isr)


@given(st.lists(broken(), max_size=8), st.booleans())
def test_unclean_plans_touch_only_what_has_no_leader_and_lose_nothing_without_consent(parts, may):
    before = cluster(t=parts, other=parts)
    plan = plan_unclean(Leaderless(before), ["t"], CONSENT if may else [])
    leaders = {change.subject: change.after["leader"] for change in plan.changes}
    led = []
    for part in before.topics["t"].partitions:
        leader = leaders.pop(f"t-{part.id}", part.leader)
        assert part.leader in (None, leader)
        if part.leader is None and leader is not None:
            assert leader in part.replicas and leader <= 5
            assert may or leader in part.isr
        led.append(replace(part, leader=leader))
    assert not leaders, "nothing of another topic"
    again = plan_unclean(
        Leaderless(Snapshot(brokers=ALIVE, topics={"t": Topic("t", tuple(led))})), ["t"], CONSENT
    )
    assert not again or not may
