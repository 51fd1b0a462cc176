# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Throttles that somebody has set by hand, on real clusters: they stay, ours go, also after SIGKILL."""

from __future__ import annotations

import pytest

from tests.support.by_hand import THROTTLED, throttles
from tests.support.outside import wait_until
from tests.support.run_module import Background

LEADERS, FOLLOWERS = (f"{each}.replicas" for each in THROTTLED)
RATES = [f"{each}.rate" for each in THROTTLED]


@pytest.fixture
def by_hand(other, name):
    """A rate of one broker, a topic's list, and a part of what will move; told as `throttles` tells them."""
    kept = f"{name}.kept"
    other.make(kept, (1, 2))
    other.make(name, (1, 2), (2, 1))
    other.write(name, 2)
    settings = [
        ("broker", "2", {RATES[0]: "777777"}),
        ("topic", kept, {LEADERS: "0:1", FOLLOWERS: "0:2"}),
        ("topic", name, {FOLLOWERS: "1:2"}),
    ]
    for kind, subject, keys in settings:
        other.configure(kind, subject, keys)
    expected = {
        (subject, key): value for _kind, subject, keys in settings for key, value in keys.items()
    }
    wait_until(lambda: throttles(other.admin) == expected, 30, "told")
    yield expected
    for kind, subject, keys in settings:
        other.configure(kind, subject, dict.fromkeys(keys))


def test_without_a_move_they_are_no_leftover(other, name, by_hand):
    """Neither of a run that has nothing to do, nor of one that moves, nor of one that cancels."""
    words = f"broker 2, topic {name}, topic {name}.kept: somebody else has throttled"
    for options in (
        {"topics": [f"{name}.kept"], "replication_factor": 2},
        {"state": "cancelled"},
    ):
        idle = other.reassign(**options)
        assert not idle.failed and idle.changed is False, idle.values
        assert words in str(idle.warnings)
        assert throttles(other.admin) == by_hand
    done = other.reassign(topics=[name], drain=[2], throttle="100MiB")
    assert not done.failed and done.changed, done.values
    assert {n: sorted(each) for n, each in other.replicas(name).items()} == {0: [1, 3], 1: [1, 3]}
    assert throttles(other.admin) == by_hand


@pytest.mark.parametrize("state", ["applied", "cancelled"])
def test_after_a_kill_all_of_ours_go_and_they_stay(other, name, by_hand, state):
    asked = {"bootstrap_servers": other.servers, "topics": [name], "drain": [2]}
    running = Background("kafka_reassignment", {**asked, "throttle": "32KiB"})
    try:
        wait_until(lambda: other.moving(name) == {0, 1}, 60, "both move")
    finally:
        running.kill()
    # One broker tells of it after another. The zero in front is the mark of ours; his are as they were.
    during = {**by_hand, (name, LEADERS): "00:1,00:2,01:2,01:1", (name, FOLLOWERS): "1:2,00:3,01:3"}
    ours = [(broker, key) for broker in "123" for key in RATES if (broker, key) not in by_hand]
    during.update(dict.fromkeys(ours, "032768"))
    wait_until(lambda: throttles(other.admin) == during, 30, "ours are told beside his")
    again = {"topics": [name], "drain": [2], "throttle": "unlimited"}
    done = other.reassign(**(again if state == "applied" else {"state": state}))
    assert not done.failed and done.changed, done.values
    assert not other.moving(name)
    assert throttles(other.admin) == by_hand


def test_what_somebody_throttles_for_his_own_move_goes_with_it(other, name):
    """Cancelled by ours, nobody else would remove it."""
    other.make(name, (1, 2))
    other.write(name, 1)
    other.throttle(name, "1024", 1)
    other.move(name, p0=[1, 3])
    wait_until(lambda: other.moving(name), 30, "it moves")
    done = other.reassign(state="cancelled")
    assert not done.failed and not other.moving(name), done.values
    assert throttles(other.admin) == {}
