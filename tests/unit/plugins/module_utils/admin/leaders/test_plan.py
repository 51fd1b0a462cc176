# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preferred elections: exactly the partitions that can be given back, and nothing twice."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.leaders.plan import (
    plan_preferred,
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


def test_a_long_warning_is_cut():
    plan = plan_preferred(cluster(t=[(2, (1, 2), (2,))] * 13))
    assert plan.warnings[0].endswith("t-9 (broker 1), and 3 more")


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
