# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A replica that flaps: what follows from the moments, and whether the gate waited long enough."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.guarantees_flaps import (
    a_minute,
    flaps_of,
    quiet_before,
    row_of_flaps,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    GroupSeen,
    Moment,
    Seen,
)

ALL = (1, 2, 3)
THRICE = [
    (0, ALL),
    (1000, (1, 2)),
    (8000, ALL),
    (9000, (1, 2)),
    (16000, ALL),
    (17000, (1, 2)),
    (24000, ALL),
]


def moments(changes):
    """Moments of (when, who is in sync)."""
    return tuple(Moment(at_ms, 1, frozenset(isr), 1) for at_ms, isr in changes)


def seen(changes=THRICE, passed_ms=27000, missing=(), reason="", late=0):
    """What was seen of broker 3, which hung three times."""
    group = GroupSeen("mine", 300 - len(missing), tuple(missing), late=late)
    measured = {"follower": 3, "passed_ms": passed_ms, "waited_seconds": 19.0, "reason": reason}
    return Seen(
        300, 300, pause_ms=6000, groups=(group,), moments=moments(changes), measured=measured
    )


@pytest.mark.parametrize(
    "given_, wrong",
    [
        ({}, ""),
        # a bystander sees it a look later
        ({"passed_ms": 26600}, ""),
        ({"passed_ms": 25000}, "the gate let another broker stop 1.0 s after it was back"),
        ({"passed_ms": 18000}, "the gate let another broker stop while it was out of the ISR"),
        ({"passed_ms": 8500}, "the gate let another broker stop 0.5 s after it was back"),
        # between two flaps it was good for long enough
        ({"changes": [*THRICE[:5], (27000, (1, 2)), (29000, ALL)], "passed_ms": 20000}, ""),
        ({"passed_ms": None, "reason": "waited in vain"}, "afterwards: waited in vain"),
        ({"missing": ["7"]}, "1 acknowledged records never came"),
        ({"late": 4}, "4 acknowledged records did not come in time; the topic has them"),
        ({"changes": THRICE[:5]}, "it was seen to leave the ISR 2 times, and hung 3 times"),
        ({"changes": [*THRICE[:5], (17000, (1,)), (24000, ALL)]}, "2 left the ISR, too"),
    ],
)
def test_a_row_is_judged_by_what_was_seen_and_by_the_gate(given_, wrong):
    row = row_of_flaps(seen(**given_), ALL).to_dict()
    assert row["verdict"] == ("NOT as expected" if wrong else "as expected"), row
    assert wrong in "; ".join(row["wrong"])
    assert row["scenario"] == "S17"


@pytest.mark.parametrize(
    "word, verdict",
    [("pass", "as expected"), ("fail", "NOT as expected"), ("inconclusive", "open")],
)
def test_the_judge_has_its_say(word, verdict):
    counts = {"acked": 1234, "lost": 9, "again": 0}
    answers = ({"topic": "t", "verdict": word, "summary": "told", "counts": counts},)
    row = row_of_flaps(replace(seen(), judged=answers), ALL)
    assert row.verdict == verdict and row.observed.endswith("judge: 9 of 1,234 lost")


def test_the_row_tells_rate_and_times():
    observed = row_of_flaps(seen(), ALL).observed
    assert "broker 3 out of the ISR 3 times (7.8 a minute), for 7.0 / 7.0 / 7.0 s" in observed
    assert "the gate opened 3.0 s after the last" in observed


def test_a_row_that_could_not_be_measured_is_open_and_says_why():
    row = row_of_flaps(None, ALL, "it hangs, and stays in the ISR").to_dict()
    assert (row["verdict"], row["open"]) == ("open", ["it hangs, and stays in the ISR"])
    assert row["done"] == "nothing that is known"


def test_one_that_is_not_back_has_no_rate_and_no_quiet():
    flaps = flaps_of(moments(THRICE[:-1]), ALL)
    assert [each.back_ms for each in flaps] == [8000, 16000, None]
    assert a_minute(flaps) is None and quiet_before(flaps, 30000) is None


@given(st.lists(st.sets(st.sampled_from(ALL)), max_size=20))
def test_each_time_out_of_the_isr_is_one_flap(isrs):
    changes = [(1000 * number, isr) for number, isr in enumerate(isrs)]
    flaps = flaps_of(moments(changes), ALL)
    out = [isr != set(ALL) for isr in isrs]
    begins = sum(now and not before for before, now in zip([False, *out], out))
    assert len(flaps) == begins
    assert all(each.back_ms is None or each.back_ms > each.left_ms for each in flaps)
    away = sum((each.back_ms or 1000 * len(isrs)) - each.left_ms for each in flaps)
    assert away == 1000 * sum(out)
