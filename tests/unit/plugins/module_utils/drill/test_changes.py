# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes that are asked for while a quorum is away: once until they are answered, and again where that was in vain."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import client_changes
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_changes import (
    Stage,
    asked_until,
)
from tests.support.outside import wait_until


class Quorum:
    """Away until `back` (seconds). `answers`: how long a question waits at most until it is refused."""

    def __init__(self, back, answers):
        self.now, self.back, self.answers = 0.0, back, answers
        self.asked = []
        self.deadlines = set()
        self.done = False

    def ask(self, deadline):
        self.asked.append(self.now)
        self.deadlines.add(deadline)
        self.now = max(self.now, min(self.now + self.answers, self.back, deadline))
        self.done = self.done or self.now >= self.back

    def wait(self, seconds):
        self.now += seconds


@pytest.mark.parametrize(
    "back, answers, times",
    [
        (0, 60, 1),
        (8, 60, 1),
        # ZooKeeper mode: the broker's answer waits with the servers
        (600, 10**6, 1),
        # a KRaft broker gives up after a minute
        (70, 60, 2),
        (200, 60, 4),
        # or refuses at once
        (12, 0, 4),
        (10**6, 60, 15),
    ],
)
def test_what_was_answered_in_vain_is_asked_again(back, answers, times):
    quorum = Quorum(back, answers)
    found = asked_until(
        quorum.ask, lambda: quorum.done, 900, clock=lambda: quorum.now, sleep=quorum.wait
    )
    assert found is (back < 900) and len(quorum.asked) == times and quorum.deadlines == {900}
    # nobody who waits for an answer asks meanwhile, and nobody asks without a pause
    pauses = [later - earlier for earlier, later in zip(quorum.asked, quorum.asked[1:])]
    assert all(each >= max(answers, 5) - 1e-6 for each in pauses[:-1])


class Leading:
    """A client of a cluster in which this broker leads partition 2 of a topic, and follows when it is asked."""

    def __init__(self, leader):
        self.leader, self.asked = leader, []

    def fetch_metadata(self):
        part = Partition(2, self.leader, (5, 4), (4, 5))
        return Snapshot(topics={"t": Topic("t", (part,))})

    def elect_leaders(self, partitions, _deadline):
        self.asked += partitions
        self.leader = 5


@pytest.mark.parametrize("leader, already", [(4, False), (5, True), (None, False)])
def test_a_leader_that_leads_before_it_is_asked_for_is_no_change(monkeypatch, leader, already):
    """`_elect` of a drill whose partition 2 shall be led by broker 5."""
    client = Leading(leader)
    monkeypatch.setattr(client_changes, "drill_client", lambda _connection: client)
    monkeypatch.setattr(Stage, "_make", lambda self, _client: None)
    asked = Stage(None, "t", 2, (4, 5))
    wait_until(lambda: asked.leader_ms or asked.led_already, 10, "it is known")
    assert asked.led_already is already and client.asked == ([] if already else [("t", 2)])
    assert (asked.leader_ms is None) is already
    asked.topic_ms = 1
    assert asked.done


def test_what_others_have_done_meanwhile_is_done():
    quorum = Quorum(10**6, 60)
    found = asked_until(quorum.ask, lambda: quorum.now > 64, 900, lambda: quorum.now, quorum.wait)
    assert found and quorum.asked == [0.0]
