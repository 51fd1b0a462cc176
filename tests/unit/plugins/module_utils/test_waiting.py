# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting ends with the condition or at the deadline, and looks once more then."""

from __future__ import annotations

from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import Steady, wait_until


class Clock:
    """Time that passes by sleeping only."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def asked(becomes_true_at, seconds):
    clock = Clock()
    looks = []

    def condition():
        looks.append(clock.now)
        return "yes" if clock.now >= becomes_true_at else ""

    value = wait_until(condition, seconds, clock, clock.sleep, poll_seconds=1.0)
    return value, looks


def test_it_ends_with_the_first_true_value():
    assert asked(2, 10) == ("yes", [0, 1, 2])


def test_the_last_look_comes_not_before_the_deadline():
    assert asked(3, 3) == ("yes", [0, 1, 2, 3])
    assert asked(9, 3) == ("", [0, 1, 2, 3])


def test_it_looks_once_even_without_time():
    assert asked(0, 0) == ("yes", [0])
    assert asked(1, -5) == ("", [0])


def test_steady_is_what_every_look_has_found():
    clock = Clock()
    steady = Steady(2, clock)
    found = []
    for so in (True, True, False, True, True, True, True):
        found.append(steady(so))
        clock.sleep(1)
    assert found == [False, False, False, False, False, True, True]
    assert Steady(0, clock)(True) and not Steady(0, clock)(False), "one look is enough for no time"
