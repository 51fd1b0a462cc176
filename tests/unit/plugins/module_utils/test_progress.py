# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far work is of which only its usual length is known."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import passing, time_left
from tests.support.outside import wait_until


@pytest.mark.parametrize(
    "seconds, about, told",
    [
        (10.2, 65.0, "10s of about 1m 5s, 54s left"),
        (64.0, 65.0, "1m 4s of about 1m 5s, 1s left"),
        (70.0, 65.0, "1m 10s of about 1m 5s; it takes longer here"),
    ],
)
def test_what_is_said_of_work_that_goes_on(seconds, about, told):
    assert time_left(seconds, about) == told


def test_it_is_said_while_the_work_goes_on_and_not_afterwards():
    lines = []
    with passing(600, lines.append, every=0.01):
        wait_until(lambda: len(lines) >= 2, 30, "it is said twice")
    count = len(lines)
    assert all("of about 10m" in each for each in lines)
    with passing(600, lines.append, every=60):
        pass
    assert len(lines) == count
