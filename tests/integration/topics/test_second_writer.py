# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody else moves or elects between plan and write: what is told, what is ours, what is there then."""

from __future__ import annotations

import pytest
from confluent_kafka import ElectionType
from confluent_kafka import TopicPartition as Place

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.leaders.resource import (
    PreferredLeaders,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves import reassignment
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.reassignment import (
    Reassignment,
)
from tests.support.outside import wait_until
from tests.support.run_module import run_module
from tests.support.second_writer import before_writing

SLOW = "1024"


def elect(other, name):
    """The module."""
    return run_module(
        "kafka_leader_election", {"bootstrap_servers": other.servers, "topics": [name]}
    )


def test_leaders(other, name, monkeypatch):
    """One that the other one has elected already, one whose order he has changed, and one that is ours."""
    other.make(name, *[(1, 2, 3)] * 3)
    other.moved(name, p0=[2, 1, 3], p1=[2, 1, 3], p2=[2, 1, 3])
    assert other.leaders(name) == {0: 1, 1: 1, 2: 1}

    def act():
        places = [Place(name, 0)]
        other.admin.elect_leaders(ElectionType.PREFERRED, places).result(30)
        other.moved(name, p1=[3, 2, 1])
        wait_until(lambda: other.leaders(name)[0] == 2, 30, "elected")
        other.settle()

    before_writing(monkeypatch, PreferredLeaders, act)
    done = elect(other, name)
    assert not done.failed and done.changed, done.msg
    assert done.diff == {
        "before": {f"{name}-1": {"leader": 1}, f"{name}-2": {"leader": 1}},
        "after": {f"{name}-1": {"leader": 3}, f"{name}-2": {"leader": 2}},
    }
    assert len(done.plan["changes"]) == 3
    assert other.leaders(name) == {0: 2, 1: 3, 2: 2}


def test_leaders_that_are_elected_already(other, name, monkeypatch):
    other.make(name, (1, 2, 3))
    other.moved(name, p0=[2, 1, 3])

    def act():
        places = [Place(name, 0)]
        other.admin.elect_leaders(ElectionType.PREFERRED, places).result(30)

    before_writing(monkeypatch, PreferredLeaders, act)
    done = elect(other, name)
    assert not done.failed and done.changed is False and not done.diff["after"], done.values


@pytest.mark.soak  # a model shows the same in tests/unit
def test_moves(other, name, monkeypatch):
    """More replicas by the other one stay, the same move is not ours, and a topic that is gone is not moved."""
    gone = f"{name}.gone"
    other.make(name, *[(1, 2)] * 3)
    other.make(gone, (1, 2))
    planned = other.reassign(check=True, topics=[name, gone], drain=[2])
    after = {each["subject"]: each["after"]["replicas"] for each in planned.plan["changes"]}
    assert len(after) == 4

    def act():
        other.moved(name, p0=[1, 2, 3], p1=after[f"{name}-1"])
        other.admin.delete_topics([gone])[gone].result(30)
        wait_until(lambda: not other.parts(gone), 30, "deleted")
        other.settle()

    before_writing(monkeypatch, Reassignment, act)
    monkeypatch.setattr(reassignment, "KNOWN_SECONDS", 1.0)  # all brokers know it
    done = other.reassign(topics=[name, gone], drain=[2])
    assert done.failed and done.changed, done.values
    assert list(done.diff["after"]) == [f"{name}-2"]
    (failure,) = done.failed_items
    assert (failure["name"], failure["code"]) == (f"{name}-0", "changed")
    assert "it is on [1, 2, 3] and was on [1, 2]" in failure["error"]
    found = other.replicas(name)
    assert found == {0: [1, 2, 3], 1: after[f"{name}-1"], 2: after[f"{name}-2"]}


@pytest.mark.soak  # a model shows the same in tests/unit
def test_a_move_under_way_that_the_other_one_cancels(other, name, monkeypatch):
    """The run was to wait for its end; it never came where it went to."""
    monkeypatch.setattr(reassignment, "SETTLE_SECONDS", 1.0)
    other.make(name, (1, 2))
    other.write(name, 1)
    other.throttle(name, SLOW, 1)
    other.move(name, p0=[1, 3])
    wait_until(lambda: other.moving(name), 30, "it moves")

    def act():
        other.move(name, p0=None)
        wait_until(lambda: not other.moving(name), 30, "cancelled")
        wait_until(lambda: set(other.replicas(name)[0]) == {1, 2}, 30, "told")

    before_writing(monkeypatch, Reassignment, act)
    done = other.reassign(topics=[name], drain=[2])
    assert done.failed and done.changed is False, done.values
    assert ("finish", f"{name}-0") in done.kinds
    assert {(each["kind"], each["code"]) for each in done.failed_items} == {("finish", "changed")}
    assert set(other.replicas(name)[0]) == {1, 2}, "as the other one wants it"


@pytest.mark.soak  # a model shows the same in tests/unit
def test_what_has_ended_cannot_be_cancelled_and_what_has_begun_since_is_not(
    other, name, monkeypatch
):
    other.make(name, (1, 2), (1, 2), (1, 2))
    other.write(name, 3)
    other.throttle(name, SLOW, 3)
    other.move(name, p0=[1, 3], p2=[1, 3])
    wait_until(lambda: other.moving(name) == {0, 2}, 30, "they move")

    def act():
        other.throttle(name, None, 3)
        wait_until(lambda: not other.moving(name), 60, "moved")
        other.throttle(name, SLOW, 3)
        other.move(name, p1=[1, 3], p2=[2, 3])
        wait_until(lambda: other.moving(name) >= {1}, 30, "another one moves")

    before_writing(monkeypatch, Reassignment, act)
    done = other.reassign(state="cancelled")
    left = {each["name"] for each in done.failed_items}
    assert done.failed and {each["code"] for each in done.failed_items} == {"changed"}, done.msg
    assert left == {f"topic {name}", "broker 1", "broker 2", "broker 3"}, "it goes on under these"
    assert "somebody else has begun" in done.msg
    still = other.reassign(check=True, state="cancelled").kinds
    assert {subject for kind, subject in still if kind == "unthrottle"} == left, "untouched"
    assert {subject for kind, subject in done.kinds if kind == "cancel"} == {
        f"{name}-0",
        f"{name}-2",
    }
    assert not {each for each in done.diff["after"] if each.startswith(name)}, done.diff
    assert other.moving(name) == {1, 2}
    other.throttle(name, None, 3)
    wait_until(lambda: not other.moving(name), 60, "what has begun since goes on")
    ends = {0: [1, 3], 1: [1, 3], 2: [2, 3]}
    wait_until(lambda: other.replicas(name) == ends, 30, "all are where they went to")
