# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that changes voters ends with its playbook and its lock, and says what it waits for."""

from __future__ import annotations

import dataclasses

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import Quorum
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import reconcile
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.voters.resource import Voters
from tests.unit.plugins.module_utils.admin.voters.test_plan import (
    END,
    NOW,
    directory,
    quorum,
    replica,
)


class Model:
    """Voters 1 to 3, which 4 and 5 follow; 4 lacks what it is made to lack. Its clock stands between sleeps."""

    def __init__(self, lacks=0):
        self.now = 0.0
        observers = [
            dataclasses.replace(replica(4), end=END - lacks, caught_up=-1 if lacks else NOW),
            replica(5),
        ]
        self.quorum = quorum({1, 2, 3}, observers=observers)
        self.added = []

    def connect(self):
        """It is reached."""

    def fetch_voters(self):
        return "a-cluster", self.quorum

    def add_voter(self, cluster_id, node, disk, place, deadline):
        """It votes at once."""
        self.added.append(node)
        stay = tuple(each for each in self.quorum.observers if each.id != node)
        self.quorum = Quorum(1, 7, (*self.quorum.voters, replica(node)), stay)

    def sleep(self, seconds):
        self.now += seconds

    def run(self, **how):
        """Let 4 and 5 vote."""
        voters = [
            {"id": node, "directory_id": directory(node), "host": f"c{node}", "port": 9093}
            for node in (1, 2, 3, 4, 5)
        ]
        params = {"voters": voters, "leaving": [], "replaced": [], "listener": "CONTROLLER"}
        params["operation_timeout"] = 60.0
        resource = Voters(self, params, clock=lambda: self.now, sleep=self.sleep, **how)
        return reconcile(resource, False, 60.0, lambda: self.now, self.sleep)


def test_no_voter_more_is_added_once_the_run_is_over():
    model = Model()
    outcome = model.run(over=lambda: "the run has ended" if model.added else "")
    assert model.added == [4], "what has begun is seen to its end"
    assert [change.subject for change in outcome.changed] == ["voter 4"]
    (failed,) = outcome.failures
    assert failed.subject == "voter 5"
    assert failed.error == "[quorum.run_over] the run has ended; run the task again to go on"
    assert not Model().run().failures


def test_a_voter_that_is_waited_for_is_not_added_once_the_run_is_over():
    model, lines = Model(lacks=400), []

    def over():
        return "the run has ended" if model.now > 20 else ""

    outcome = model.run(over=over, tell=lines.append)
    assert model.added == [] and not outcome.changed and 20 < model.now < 22
    assert [failure.error for failure in outcome.failures] == [
        "[quorum.run_over] the run has ended; run the task again to go on",
        "not tried, since a change before it failed",
    ]
    assert set(lines) == {"voter 4: node 4 lacks 400 of the leader's records"} and len(lines) == 4


def test_an_answer_that_comes_when_the_run_is_over_adds_no_voter():
    model = Model()
    looks = iter(["", "the run has ended"])
    assert model.run(over=lambda: next(looks)).failures[0].code == ""
    assert model.added == []
