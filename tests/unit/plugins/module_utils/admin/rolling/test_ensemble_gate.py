# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ZooKeeper server is about to stop: what the others are right before, and what is waited for then."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.ensemble_gate import (
    EnsembleGate,
    EnsembleQuestion,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError

LOOKING = "it runs, but has no quorum"


def server(number, role, error=None, synced=None):
    told = {"id": number, "address": "z", "port": 2181, "role": role, "serving": role is not None}
    return {**told, "synced_followers": synced, "error": error, "listed": None, "runs": True}


WHOLE = [server(1, "leader", synced=2), server(2, "follower"), server(3, "follower")]
THIN = [server(1, "leader", synced=1), server(2, "follower"), server(3, None, "refused")]
APART = [server(1, None, "refused"), server(2, None, LOOKING), server(3, None, "refused")]
SERVERS = tuple({"id": each, "address": "z", "port": 2181} for each in (1, 2, 3))


class World:
    """An ensemble over time: from when on what is so; a module takes two seconds until it is about to stop server 2."""

    def __init__(self, *states):
        self.states, self.now = states, 0.0
        self.log, self.said = [], []

    def ask(self, _servers):
        return [found for since, found in self.states if since <= self.now][-1]

    def sleep(self, seconds):
        self.now += seconds

    def attempt(self, at_hand):
        with at_hand() as look:
            self.sleep(2)
            self.said.append(look())
        return self.now, self.said[-1]

    def stopped(self, seconds=60.0, idle=False, **more):
        """When server 2 was stopped."""
        question = EnsembleQuestion(
            SERVERS, stopping=2, quiet_seconds=1.0, wait_seconds=seconds, **more
        )
        gate = EnsembleGate(question, idle, self.ask, lambda: self.now, self.sleep)
        return gate.until_stopped(self.attempt, self.log.append)


def test_right_before_the_stop_the_ensemble_is_asked_once_more():
    world = World((0, WHOLE))
    assert world.stopped() == 2 and world.said == [[]] and not world.log


def test_a_server_that_is_lost_behind_the_gate_is_waited_for():
    """Back after seven seconds, quiet for one more, and then a module takes its two."""
    world = World((0, WHOLE), (1, THIN), (7, WHOLE))
    assert 10 <= world.stopped() < 11 and len(world.said) == 2
    lost = "server 3 at z:2181: refused; 1 of 3 serve without server 2, 2 are needed"
    assert world.log[0] == f"it may not stop any more: {lost}"


def test_a_server_that_stays_away_ends_with_the_words_of_the_gate():
    with pytest.raises(
        ProblemError, match="gate.waiting.*server 2: waited 5 s.*server 3.*not stopped"
    ):
        World((0, WHOLE), (1, THIN)).stopped(seconds=5)


def test_what_is_lost_each_time_at_that_moment_ends_at_the_deadline():
    """Whole whenever the gate looks, and never when the module asks."""
    world = World((0, WHOLE))

    def attempt(at_hand):
        world.states = ((0, THIN),)
        found = World.attempt(world, at_hand)
        world.states = ((0, WHOLE),)
        return found

    world.attempt = attempt
    with pytest.raises(ProblemError, match="gate.waiting.*waited 20 s"):
        world.stopped(seconds=20)
    assert len(world.said) > 3 and all(world.said)


def test_a_server_without_a_quorum_may_stop_if_that_was_why_the_gate_opened():
    """Else the loss is new, and it has to say so for twenty seconds: it may be an election."""
    assert World((0, APART)).stopped(idle=True) == 2
    world = World((0, WHOLE), (1, APART))
    assert 24 <= world.stopped() < 25 and len(world.said) == 2
    world = World((0, APART), (1, THIN), (6, WHOLE))
    assert 9 <= world.stopped(idle=True) < 10, "it has found the others since"
