# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a throttle has to carry, by what is written meanwhile."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.low_throttle import (
    low_throttle,
    needed,
    proposed,
    remedy,
    written_to,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.moving import rate_from
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import UNLIMITED

MIB = 2**20
P, Q = ("t", 0), ("t", 1)


@pytest.mark.parametrize(
    "before, after, leaders, written",
    [
        ({(1, P): 100, (2, P): 0}, {(1, P): 150, (2, P): 900}, {P: 1}, {P: 10.0}),
        # a segment was deleted meanwhile
        ({(1, P): 100}, {(1, P): 50}, {P: 1}, {P: 0.0}),
        # of what has no leader, or is not told, nothing is known
        ({(1, P): 100}, {(1, P): 150}, {P: None}, {}),
        ({}, {(1, P): 150}, {P: 1}, {}),
        ({(1, P): 100}, {}, {P: 1}, {}),
        ({(1, P): 1, (2, Q): 1}, {(1, P): 1, (2, Q): 6}, {P: 1, Q: 2}, {P: 0.0, Q: 1.0}),
    ],
)
def test_what_is_written_is_what_leaders_grow_by(before, after, leaders, written):
    assert written_to(before, after, 5.0, leaders) == written
    assert written_to(before, after, 0.0, leaders) == {}


@pytest.mark.parametrize(
    "written, leaders, moves, need",
    [
        # from 1 and 2 to 4: broker 1 sends to both
        ({P: 10}, {P: 1}, {P: ((1, 2), (4,))}, {1: 20, 4: 10}),
        # one replica, and one more
        ({P: 10}, {P: 1}, {P: ((1,), (4,))}, {1: 10, 4: 10}),
        # two of them to the same broker, from two leaders
        ({P: 10, Q: 3}, {P: 1, Q: 2}, {P: ((1, 2), (4,)), Q: ((2, 1), (4,))}, {1: 20, 2: 6, 4: 13}),
        # two new ones at a time; one is on its way already, as of what is under way
        ({P: 10}, {P: 1}, {P: ((1, 2, 4), (4, 5))}, {1: 30, 4: 10, 5: 10}),
        # nothing is copied
        ({P: 10}, {P: 1}, {P: ((1, 2), ())}, {}),
        ({}, {P: 1}, {P: ((1, 2), (4,))}, {1: 0, 4: 0}),
        ({P: 10}, {P: None}, {P: ((1, 2), (4,))}, {4: 10}),
    ],
)
def test_a_leader_sends_to_all_replicas_and_all_of_it_counts(written, leaders, moves, need):
    assert needed(written, leaders, moves) == need


@pytest.mark.parametrize(
    "needs, rate, brokers",
    [
        ({1: 50 * MIB, 4: 60 * MIB}, 50 * MIB, "broker 1, 4"),
        ({1: 49 * MIB, 4: 60 * MIB}, 50 * MIB, "broker 4"),
        ({1: 49 * MIB}, 50 * MIB, ""),
        ({1: 49 * MIB}, UNLIMITED, ""),
        ({}, 1024, ""),
    ],
)
def test_brokers_are_named_whose_throttle_carries_less(needs, rate, brokers):
    warnings = low_throttle(needs, rate)
    assert [each.partition(":")[0] for each in warnings] == ([brokers] if brokers else [])
    if brokers:
        assert "such as 90MiB (kafka_reassignment_throttle)" in warnings[0]


@pytest.mark.parametrize("need", [0.0, 1.0, 700000.0, 33.4 * MIB, 5e9])
def test_what_is_proposed_is_taken_and_enough(need):
    assert rate_from(proposed(need)) > need * 1.4


@pytest.mark.parametrize(
    "need, rate, foreign, words",
    [
        (40 * MIB, 50 * MIB, False, "such as 75MiB (kafka_reassignment_throttle), or once"),
        (80 * MIB, 50 * MIB, True, "such as 120MiB (kafka_reassignment_throttle), and that of"),
        (20 * MIB, 50 * MIB, False, "carry no more"),
        (80 * MIB, UNLIMITED, False, "carry no more"),
    ],
)
def test_a_higher_throttle_is_proposed_where_it_is_what_holds_the_moves(need, rate, foreign, words):
    assert words in remedy(need, rate, foreign)
