# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which steps replicas move: batches, throttles, what a killed run leaves; with a clock of our own.

The cluster here is a model: what a real one does is in tests/integration/topics.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import DISK_OPTIONS
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.log_dirs import Disks
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    Directory,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_replicas import (
    Running,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.moving import (
    OPTIONS,
    lift,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.reassignment import (
    Reassignment,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.throttles import (
    Throttles,
    of_others,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import reconcile
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

SIDES = ("leader", "follower")


class Killed(Exception):
    """The run ends here."""


class Model:
    """A cluster whose copies take a second each; it notes what it saw. `kill_after`: requests."""

    def __init__(self, replicas, brokers=(1, 2, 3, 4), seconds=1.0):
        self.replicas = {("t", number): tuple(each) for number, each in enumerate(replicas)}
        self.brokers = brokers
        self.running, self.ends = {}, {}
        self.rates, self.lists = {}, {}
        self.now, self.seconds = 0.0, seconds
        self.most, self.unthrottled = 0, []
        self.kill_after = None
        self.shy = False
        self.stuck, self.silent = (), False
        # Bytes that are written to each partition, and that arrive at each new replica, by a time.
        self.written, self.arriving = (lambda now: 0), (lambda now: int(now))

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def _request(self):
        if self.kill_after is not None:
            self.kill_after -= 1
            if self.kill_after < 0:
                raise Killed
        for key in [key for key, end in self.ends.items() if end <= self.now]:
            self.replicas[key] = self.running.pop(key).target
            del self.ends[key]

    def fetch_metadata(self):
        self._request()
        parts = tuple(
            Partition(key[1], each[0], each, self._in_sync(key, each))
            for key, each in sorted(
                {
                    **self.replicas,
                    **{key: each.replicas for key, each in self.running.items()},
                }.items()
            )
        )
        brokers = tuple(Broker(broker, "h", 1) for broker in self.brokers)
        return Snapshot("id", 1, brokers, {"t": Topic("t", parts)})

    def _in_sync(self, key, replicas):
        adding = self.running[key].adding if key in self.running else ()
        return tuple(broker for broker in replicas if broker not in adding)

    def fetch_running(self):
        self._request()
        return dict(self.running)

    def fetch_own_rights(self):
        return frozenset({"DESCRIBE", "ALTER", "ALTER_CONFIGS"})

    def fetch_racks(self):
        return {}

    def fetch_replica_sizes(self, _names):
        if self.silent:
            return {}
        size = 5 + self.written(self.now)
        there = {(broker, key): size for key, each in self.replicas.items() for broker in each}
        coming = {
            (broker, key): self.arriving(self.now)
            for key, each in self.running.items()
            for broker in each.adding
            if broker not in self.stuck
        }
        return {**there, **coming}

    def look_at_disks(self, brokers, _topics):
        size = 5 + self.written(self.now)
        return Disks(
            {
                broker: (
                    Directory(
                        "/d", {key: size for key, each in self.replicas.items() if broker in each}
                    ),
                )
                for broker in brokers
            }
        )

    def fetch_configs(self, _names):
        return {}

    def fetch_throttles(self, _brokers, _names):
        self._request()
        if self.shy:
            return Throttles()
        return Throttles(
            {broker: keys for broker, keys in self.rates.items() if keys},
            {topic: keys for topic, keys in self.lists.items() if keys},
        )

    def look_at_throttles(self, brokers, names):
        return self.fetch_throttles(brokers, names), set()

    def set_throttles(self, brokers, topics):
        self._request()
        for now, wanted in ((self.rates, brokers), (self.lists, topics)):
            for subject, keys in wanted.items():
                both = {**now.get(subject, {}), **keys}
                now[subject] = {key: value for key, value in both.items() if value is not None}

    def alter(self, wanted):
        self._request()
        for key, target in wanted.items():
            if key not in self.replicas:
                continue  # the topic is gone
            before = self.replicas[key]
            if target is None:
                self.running.pop(key, None)
                self.ends.pop(key, None)
                continue
            adding = tuple(broker for broker in target if broker not in before)
            removing = tuple(broker for broker in before if broker not in target)
            if not adding and not removing:
                self.replicas[key] = tuple(target)
                continue
            self.running[key] = Running((*target, *removing), adding, removing)
            self.ends[key] = self.now + self.seconds
            if adding and not (self.rates.get(1) and self.lists.get("t")):
                self.unthrottled.append(key)
        self.most = max(self.most, len(self.running))
        return {}

    def elect_leaders(self, _keys, _deadline):
        return {}


def parameters(**options):
    """The module's parameters as they are if nothing is said."""
    defaults = {**OPTIONS, **DISK_OPTIONS}
    return {**{name: option.get("default") for name, option in defaults.items()}, **options}


def run(model, seconds=1000.0, lines=None, over=str, **options):
    tell = (lines if lines is not None else []).append
    resource = Reassignment(model, parameters(**options), tell, model.clock, model.sleep, over)
    return reconcile(resource, False, seconds, model.clock, model.sleep)


def no_throttle(model):
    return not any(model.rates.values()) and not any(model.lists.values())


MOVING = [(1, 2), (2, 3), (3, 1)] * 4


def test_never_more_than_a_batch_moves_and_all_of_it_under_the_throttle():
    model = Model(MOVING)
    outcome = run(model, spread=True, batch=2, throttle="1MiB")
    assert not outcome.failures
    assert model.most == 2 and model.unthrottled == []
    assert no_throttle(model)
    counts = [sum(b in each for each in model.replicas.values()) for b in model.brokers]
    assert counts == [6, 6, 6, 6]


def test_unlimited_sets_no_throttle():
    model = Model(MOVING)
    assert not run(model, spread=True, throttle="unlimited").failures
    assert model.unthrottled and no_throttle(model)


def test_another_order_of_replicas_sets_no_throttle():
    model, set_ = Model([(1, 2), (1, 2)], brokers=(1, 2)), []
    really = model.set_throttles

    def noted(brokers, topics):
        set_.extend((brokers, topics))
        really(brokers, topics)

    model.set_throttles = noted
    outcome = run(model, spread=True, throttle="1MiB")
    assert [change.kind for change in outcome.changed] == ["reorder"] and not set_


def test_throttles_that_the_brokers_do_not_tell_yet_are_removed():
    model = Model(MOVING)
    model.shy = True
    assert not run(model, spread=True, throttle="1MiB").failures
    assert model.unthrottled == [] and no_throttle(model)


def test_a_throttle_that_is_refused_half_way_leaves_nothing_and_nothing_moves():
    """The brokers take it, the topic does not: its right is another one."""
    model = Model(MOVING)
    really = model.set_throttles

    def refusing(brokers, topics):
        really(brokers, {})
        if any(value is not None for keys in topics.values() for value in keys.values()):
            raise AdminError(Problem("cluster.read", "the topic refuses", "grant it"))
        really({}, topics)

    model.set_throttles = refusing
    outcome = run(model, spread=True, throttle="1MiB")
    assert outcome.failures and {each.code for each in outcome.failures} == {"interrupted"}
    assert not outcome.changed and not model.running and no_throttle(model)


def test_a_throttle_that_stays_whatever_is_done_is_told():
    """Somebody, or something, sets it again each time."""
    model = Model(MOVING)
    removed = []
    with pytest.raises(
        AdminError, match=r"\[reassignment.throttle_left\] brokers 1, 2 .*run the task"
    ):
        lift(
            ["1", "2"],
            lambda: ["1", "2"],
            removed.append,
            lambda left: f"brokers {', '.join(left)} keep a throttle",
            lambda: model.now,
            model.sleep,
        )
    assert len(removed) > 2


def test_it_says_now_and_then_how_far_it_is():
    lines = []
    assert not run(Model(MOVING, seconds=20.0), lines=lines, spread=True, batch=2).failures
    assert lines[0].startswith("0 of ") and "left" in lines[0] and len(lines) > 3


@pytest.mark.parametrize(
    "kraft, dead, waited_for",
    [
        (False, 2, "broker 2, which"),
        (True, 2, ""),
        (False, 4, "broker 4, which"),
        (True, 4, "broker 4, which"),
        (None, 2, "broker 2, which"),
    ],
)
def test_it_names_the_dead_broker_that_is_waited_for(kraft, dead, waited_for):
    """One that dies while it moves: with ZooKeeper each replica is waited for, in KRaft mode each new one."""
    lines = []
    model = Model([(1, 2, 3)], seconds=60.0)
    model.fetch_in_kraft_mode = lambda broker: {1: kraft}[broker]

    def die():
        model.brokers = tuple(broker for broker in model.brokers if broker != dead)

    assert not run(interrupting(model, 2.0, die), lines=lines, drain=[3]).failures
    assert bool(waited_for) == ("waiting for" in lines[-1]) and waited_for in lines[-1]


@pytest.mark.parametrize(
    "stuck, silent, seconds, rate, stalled",
    [
        ((4,), False, 1e9, "1MiB", True),
        ((4,), False, 1e9, "unlimited", True),
        ((), False, 900.0, "1MiB", False),
        # under a low rate it takes its time, and who does not tell may be copying
        ((4,), False, 900.0, "100KiB", False),
        ((4,), True, 900.0, "1MiB", False),
        ((2,), False, 900.0, "1MiB", False),
    ],
)
def test_a_live_broker_that_copies_nothing_ends_the_run_and_is_named(
    stuck, silent, seconds, rate, stalled
):
    """It is registered, and its way to the others is closed: Kafka would wait for ever, and say nothing."""
    model = Model([(1, 2, 3)], seconds=seconds)
    model.stuck, model.silent = stuck, silent
    outcome = run(model, seconds=86400.0, drain=[3], throttle=rate)
    assert {failure.code for failure in outcome.failures} == ({"stopped"} if stalled else set())
    if stalled:
        assert 120 <= model.now < 140
        (failure,) = outcome.failures
        assert "[reassignment.stalled] broker 4 has copied nothing for 120 s" in failure.error
        assert "t-0; " in failure.error and "still under way" in failure.error
        assert model.running and (rate == "unlimited" or not no_throttle(model))
    else:
        assert model.replicas == {("t", 0): (1, 2, 4)}


MIB = 2**20


def mebi(rate):
    """Bytes by a time, so many MiB a second."""
    return lambda now: int(now * rate * MIB)


@pytest.mark.parametrize(
    "written, arriving, rate, remedy",
    [
        # 2 MiB a second to each of two replicas in sync and the one that joins
        (2, 1, "1MiB", "a higher throttle, such as 9MiB (kafka_reassignment_throttle)"),
        (2, 1, "unlimited", "its disks, its network or those of the leaders carry no more"),
        (2, 1, "50MiB", "its disks, its network or those of the leaders carry no more"),
        (2, 3, "50MiB", ""),
        # the same at a low rate
        (0.02, 0.01, "100KiB", ""),
        (0, 0.01, "100KiB", ""),
    ],
)
def test_a_run_ends_whose_throttle_carries_less_than_is_written(written, arriving, rate, remedy):
    """Bytes arrive all the time, and the move would never end."""
    model, lines = Model([(1, 2, 3)], seconds=9000.0), []
    model.written, model.arriving = mebi(written), mebi(arriving)
    outcome = run(model, seconds=86400.0, lines=lines, drain=[3], throttle=rate)
    told = "; broker 4 comes no nearer: 1.0 MiB a second arrive, and 2.0 MiB are written"
    assert any(told in line for line in lines) is bool(remedy)
    assert {failure.code for failure in outcome.failures} == ({"stopped"} if remedy else set())
    if remedy:
        assert 1800 <= model.now < 1900 and "GiB left" in lines[-1], "with what is written since"
        (failure,) = outcome.failures
        assert "[reassignment.outpaced] broker 4 has come no nearer to what it" in failure.error
        assert remedy in failure.error and "t-0; " in failure.error
        assert "still under way; run the task again to go on" in failure.error
        assert model.running and (rate == "unlimited" or not no_throttle(model))
    else:
        assert model.replicas == {("t", 0): (1, 2, 4)}


@pytest.mark.parametrize(
    "written, rate, check",
    [
        # the two replicas in sync are sent all that the throttle carries
        (0.5, "1MiB", "outpaced"),
        (0.1, "1MiB", "stalled"),
        (0.5, "unlimited", "stalled"),
        (0, "1MiB", "stalled"),
    ],
)
def test_a_throttle_that_replicas_in_sync_use_up_is_not_taken_for_a_closed_port(
    written, rate, check
):
    model = Model([(1, 2, 3)], seconds=1e9)
    model.stuck, model.written = (4,), mebi(written)
    (failure,) = run(model, seconds=86400.0, drain=[3], throttle=rate).failures
    assert f"[reassignment.{check}] broker 4 has copied nothing for 120 s" in failure.error
    words = {"outpaced": "such as 3MiB (kafka_reassignment_", "stalled": "its log says why"}
    assert words[check] in failure.error


def test_who_is_stalled_is_not_blamed_for_what_other_leaders_send():
    """Broker 4 waits for broker 1; only what broker 2 leads is written to."""
    model = Model([(1, 3), (2, 3)], seconds=1e9)
    model.stuck = (4,)
    sizes = model.fetch_replica_sizes

    def written(names):
        more = {(2, ("t", 1)): int(model.now * 50 * MIB)}
        return {place: size + more.get(place, 0) for place, size in sizes(names).items()}

    model.fetch_replica_sizes = written
    model.brokers = (1, 2, 3, 4, 5)
    outcome = run(model, seconds=86400.0, drain=[3], onto=[4, 5], throttle="1MiB")
    assert model.running[("t", 0)].adding == (4,) and model.running[("t", 1)].adding == (5,)
    assert all("[reassignment.stalled] broker 4" in each.error for each in outcome.failures)


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    "written, rate, seconds, warned",
    [
        # of two partitions, each led by broker 1, to two followers and the new one
        (
            0.5,
            "1MiB",
            10,
            "up to 3.0 MiB a second of what moves would have to pass its throttle of 1.0",
        ),
        (0.1, "1MiB", 10, ""),
        (0.01, "1MiB", 0, ""),
        (0, "1MiB", 0, ""),
        (5, "unlimited", 0, ""),
    ],
)
def test_a_throttle_that_is_too_low_is_told_beforehand(written, rate, seconds, warned, check):
    """As it costs time, it is measured only where it may matter."""
    model = Model([(1, 2, 3), (1, 2, 3)])
    model.written = mebi(written)

    def takes_its_time():
        model.now += 0.5
        return {}

    model.fetch_racks = takes_its_time
    resource = Reassignment(
        model, parameters(drain=[3], throttle=rate), str, model.clock, model.sleep
    )
    outcome = reconcile(resource, check, 1000.0, model.clock, model.sleep)
    told = [each for each in outcome.plan.warnings if "kafka_reassignment_throttle" in each]
    assert [warned in each for each in told] == ([True] if warned else [])
    assert not outcome.plan.refusals and not outcome.failures
    assert not check or model.now == max(seconds, 0.5)


def test_what_still_arrives_moves_the_deadline():
    """A full disk of 8 TB takes two days at 50 MiB/s."""
    model = Model([(1, 2, 3)], seconds=5000.0)
    assert not run(model, seconds=100.0, drain=[3]).failures
    assert model.now >= 5000


def test_at_the_deadline_what_moves_goes_on_under_its_throttle():
    model = Model(MOVING, seconds=100.0)
    model.silent = True
    outcome = run(model, seconds=10.0, spread=True, batch=2)
    assert {failure.code for failure in outcome.failures} == {"timeout"}
    assert model.running and not no_throttle(model)


@given(st.integers(0, 60), st.booleans())
def test_killed_anywhere_and_run_again(requests, drain):
    """The second run ends where one that was not killed would: placed, and without a throttle."""
    asked = {"drain": [3]} if drain else {"spread": True}
    model = Model(MOVING)
    model.kill_after = requests
    try:
        run(model, batch=3, **asked)
    except Killed:
        pass
    model.kill_after = None
    outcome = run(model, batch=3, **asked)
    assert not outcome.plan.refusals and not outcome.failures
    assert no_throttle(model) and not model.running
    if drain:
        assert not any(3 in each for each in model.replicas.values())
    again = run(model, batch=3, **asked)
    assert not again.plan


@given(st.integers(0, 60))
def test_killed_anywhere_and_cancelled(requests):
    model = Model(MOVING)
    model.kill_after = requests
    try:
        run(model, batch=3, spread=True)
    except Killed:
        pass
    model.kill_after = None
    outcome = run(model, state="cancelled")
    assert not outcome.failures
    assert no_throttle(model) and not model.running
    assert all(len(each) == 2 for each in model.replicas.values())
    assert not run(model, state="cancelled").plan


def test_what_somebody_begins_meanwhile_is_not_waited_for():
    model = Model(MOVING, seconds=100.0)
    run(model, seconds=1.0, spread=True, batch=2)
    ours, others = model.fetch_running, {("t", 9): Running((1, 2, 4), (4,), ())}
    assert set(model.running).isdisjoint(others)
    model.fetch_running = lambda: ours() or others
    _changed, failed = subjects(run(model, state="cancelled"))
    assert {each.split()[0] for each in failed} == {"broker", "topic"}, "their throttles stay"
    assert model.now < 100


def test_a_topic_that_this_broker_does_not_know_yet_is_waited_for():
    model = Model(MOVING)
    told = model.fetch_metadata
    model.fetch_metadata = lambda: told() if model.now >= 1 else replace(told(), topics={})
    outcome = run(model, spread=True, topics=["t"])
    assert not outcome.plan.refusals and not outcome.failures
    assert any(4 in each for each in model.replicas.values())


def test_a_topic_that_nobody_knows_is_refused_soon():
    model = Model(MOVING)
    refusals = run(model, spread=True, topics=["t", "misspelt"]).plan.refusals
    assert [each.check for each in refusals] == ["reassignment.unknown_topic"]
    assert 4 <= model.now <= 6 and not model.running


@pytest.mark.parametrize("state", ["applied", "cancelled"])
def test_a_throttle_of_somebody_else_is_left(state):
    model = Model(MOVING)
    model.lists["t"] = {"leader.replication.throttled.replicas": "*"}
    model.rates = {1: {"leader.replication.throttled.rate": "9999"}}
    asked = {"spread": True} if state == "applied" else {"state": state}
    assert not run(model, **asked).failures
    assert of_hand(model) == {
        "rates": {1: {"leader.replication.throttled.rate": "9999"}},
        "lists": {"t": {"leader.replication.throttled.replicas": "*"}},
    }


BY_HAND = {
    "rates": {
        1: {"leader.replication.throttled.rate": "9999"},
        3: dict.fromkeys((f"{side}.replication.throttled.rate" for side in SIDES), "1048576"),
    },
    "lists": {
        "t": {
            "leader.replication.throttled.replicas": "0:1,0:2",
            "follower.replication.throttled.replicas": "0:3",
        }
    },
}


def of_hand(model):
    """The throttles of the model, as they were set by hand."""
    there = {"rates": model.rates, "lists": model.lists}
    return {
        what: {key: keys for key, keys in found.items() if keys} for what, found in there.items()
    }


@given(st.integers(0, 60), st.sampled_from(["applied", "cancelled"]))
def test_killed_anywhere_what_somebody_set_by_hand_stays_and_ours_go(requests, state):
    """Throttles without a move, from before the run: neither it nor the next one takes them for a leftover."""
    model = Model(MOVING)
    model.rates, model.lists = (dict(BY_HAND[what]) for what in ("rates", "lists"))
    model.kill_after = requests
    try:
        run(model, batch=3, spread=True, throttle="2MiB")
    except Killed:
        pass
    model.kill_after = None
    assert of_others(Throttles(model.rates, model.lists)) == Throttles(*BY_HAND.values())
    asked = {"spread": True} if state == "applied" else {"state": state}
    assert not run(model, batch=3, **asked).failures
    assert of_hand(model) == BY_HAND and not model.running


def test_what_brokers_do_not_tell_yet_brings_back_what_was_set_by_hand():
    model = Model(MOVING)
    model.rates, model.lists = (dict(BY_HAND[what]) for what in ("rates", "lists"))
    really, looks = model.fetch_throttles, []

    def late(brokers, names):
        """They tell what was there before, whatever is set since."""
        looks.append(really(brokers, names))
        return Throttles(*BY_HAND.values())

    model.fetch_throttles = late
    assert not run(model, batch=3, spread=True, throttle="2MiB").failures
    assert of_hand(model) == BY_HAND and len(looks) > 2


def test_what_somebody_sets_over_ours_by_hand_stays():
    """While it moves, and without a move of his own: a faster rate, and one more replica in our list."""
    model = Model(MOVING)
    faster = dict.fromkeys((f"{side}.replication.throttled.rate" for side in SIDES), "9000000")
    followers = "follower.replication.throttled.replicas"
    really, begun = model.alter, []

    def altered(wanted):
        if not begun:
            begun.append("once")
            model.rates[2] = dict(faster)
            model.lists["t"] = {
                **model.lists["t"],
                followers: model.lists["t"][followers] + ",99:1",
            }
        return really(wanted)

    model.alter = altered
    assert not run(model, batch=3, spread=True, throttle="2MiB").failures
    assert of_hand(model) == {"rates": {2: faster}, "lists": {"t": {followers: "99:1"}}}


def meddled(model, act, seconds=1000.0, **options):
    """Run with somebody else who acts after the plan, before the first write."""
    resource = Reassignment(model, parameters(**options), str, model.clock, model.sleep)
    apply = resource.apply

    def meddle(changes, deadline):
        act()
        return apply(changes, deadline)

    resource.apply = meddle
    return reconcile(resource, False, seconds, model.clock, model.sleep)


def subjects(outcome):
    """(what was changed; code of each failure by subject)."""
    changed = {change.subject for change in outcome.changed}
    return changed, {failure.subject: failure.code for failure in outcome.failures}


def test_a_move_that_somebody_else_begins_meanwhile():
    """One that goes elsewhere is left alone, the same one is waited for and not ours."""
    model = Model([(1, 2)] * 3, brokers=(1, 2, 3))

    def act():
        model.alter({("t", 0): (2, 3), ("t", 1): (1, 3)})

    changed, failed = subjects(meddled(model, act, drain=[2]))
    assert changed == {"t-2"} and failed == {"t-0": "changed"}
    assert model.replicas == {("t", 0): (2, 3), ("t", 1): (1, 3), ("t", 2): (1, 3)}


def test_what_is_under_way_and_is_cancelled_by_somebody_else_is_not_told_to_be_finished():
    model = Model([(1, 2)] * 2, brokers=(1, 2, 3), seconds=50.0)
    run(model, seconds=1.0, drain=[2], batch=2)
    outcome = meddled(model, lambda: model.alter({("t", 0): None}), drain=[2])
    changed, failed = subjects(outcome)
    assert changed == {"t-1"} and failed == {"t-0": "changed"}
    assert model.replicas == {("t", 0): (1, 2), ("t", 1): (1, 3)}


def test_what_is_over_before_it_can_be_cancelled_is_not_told_to_be():
    """And what somebody has begun since the plan goes on."""
    model = Model([(1, 2)] * 3, brokers=(1, 2, 3), seconds=50.0)
    run(model, seconds=1.0, drain=[2], batch=2)
    assert set(model.running) == {("t", 0), ("t", 1)}

    def act():
        model.ends[("t", 0)] = model.now
        model.fetch_running()
        model.alter({("t", 2): (2, 3)})

    changed, failed = subjects(meddled(model, act, state="cancelled"))
    assert changed == {"t-1"}
    assert set(model.running) == {("t", 2)}
    assert set(model.replicas[("t", 0)]) == {1, 3} and model.replicas[("t", 1)] == (1, 2)
    throttled = {"broker 1", "broker 2", "broker 3", "topic t"}
    assert failed == dict.fromkeys(throttled, "changed") and not no_throttle(model)
    again = run(model, state="cancelled")
    assert not again.failures and no_throttle(model)


THEIRS = {
    "leader.replication.throttled.replicas": "2:1,2:2",
    "follower.replication.throttled.replicas": "2:3",
}


@pytest.mark.parametrize("state", ["applied", "cancelled"])
def test_throttles_of_what_somebody_else_begins_meanwhile_stay(state):
    """They were not there when it was planned, so they are not told to be removed, and nothing has failed."""
    model = Model([(1, 2)] * 3, brokers=(1, 2, 3), seconds=50.0)
    run(model, seconds=1.0, drain=[2], batch=2, throttle="unlimited")
    assert set(model.running) == {("t", 0), ("t", 1)} and no_throttle(model)
    rates = {"leader.replication.throttled.rate": "7", "follower.replication.throttled.rate": "7"}

    def act():
        model.rates, model.lists = {1: rates, 3: rates}, {"t": THEIRS}
        model.alter({("t", 2): (2, 3)})
        model.ends[("t", 2)] = model.now + 500

    asked = {"drain": [2], "topics": ["t"]} if state == "applied" else {"state": state}
    options = {"throttle": "unlimited"} if state == "applied" else {}
    outcome = meddled(model, act, seconds=100.0, **asked, **options)
    assert {each.subject for each in outcome.failures} <= {"t-2"}
    assert set(model.running) == {("t", 2)}
    assert model.lists == {"t": THEIRS} and model.rates == {1: rates, 3: rates}


def test_a_throttle_that_somebody_else_has_set_over_ours_stays_and_ours_go():
    model = Model([(1, 2), (1, 3)], seconds=5.0)
    theirs = {"leader.replication.throttled.rate": "7", "follower.replication.throttled.rate": "7"}
    really, begun = model.set_throttles, []

    def throttled(brokers, topics):
        really(brokers, topics)
        if not begun and brokers:
            begun.append("once")
            model.rates[3] = dict(theirs)
            model.running[("t", 1)] = Running((1, 3, 4), (4,), ())
            model.ends[("t", 1)] = 500.0

    model.set_throttles = throttled
    assert not run(model, drain=[2], throttle="1MiB").failures
    assert 2 not in model.replicas[("t", 0)] and set(model.running) == {("t", 1)}
    assert {key: keys for key, keys in model.rates.items() if keys} == {3: theirs}
    assert not any(model.lists.values())


def interrupting(model, at, act):
    """The model, whose first request from the second `at` on makes somebody `act`."""
    really, done = model._request, []

    def request():
        if model.now >= at and not done:
            done.append("once")
            act()
        really()

    model._request = request
    return model


@pytest.mark.parametrize("second", [0.5, 2.0, 3.0, 3.5])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_who_is_cancelled_by_another_run_begins_nothing_more(second, batch):
    """As the module does that has outlived its killed playbook and cannot see that."""
    model = Model([(1, 3)] * 9, brokers=(1, 2, 3), seconds=2.0)
    begun = []

    def cancel():
        assert not run(model, state="cancelled").failures
        begun.append(dict(model.replicas))
        assert not model.running and no_throttle(model)

    outcome = run(interrupting(model, second, cancel), drain=[3], batch=batch, throttle="1MiB")
    assert model.replicas == begun[0] and not model.running
    assert model.unthrottled == [] and no_throttle(model)
    changed, failed = subjects(outcome)
    kept = {f"t-{key[1]}" for key, each in model.replicas.items() if 3 in each}
    assert kept and set(failed) == kept and len(changed | kept) == 9 and not changed & kept
    assert set(failed.values()) <= {"changed", "stopped"}


@pytest.mark.parametrize("gone", ["rates", "lists", "both"])
def test_whose_throttles_are_taken_away_begins_nothing_more(gone):
    """Such as by kafka-reassign-partitions.sh --verify, which takes all away."""
    model = Model([(1, 3)] * 9, brokers=(1, 2, 3), seconds=2.0)

    def take():
        model.rates = {} if gone != "lists" else model.rates
        model.lists = {} if gone != "rates" else model.lists

    outcome = run(interrupting(model, 5.0, take), drain=[3], batch=2, throttle="1MiB")
    assert model.unthrottled == []
    assert {each.code for each in outcome.failures} == {"stopped"}
    words = "topic t" if gone == "lists" else "broker 1, broker 2, broker 3"
    assert f"somebody else has taken the throttle away: {words}" in outcome.failures[0].error
    assert not run(model, drain=[3], batch=2, throttle="1MiB").failures
    assert not any(3 in replicas for replicas in model.replicas.values()) and no_throttle(model)


def test_who_does_not_tell_for_a_moment_has_lost_no_throttle():
    """A broker that restarts is silent, and another one tells what it has heard of so far."""
    model = Model([(1, 3)] * 9, brokers=(1, 2, 3), seconds=2.0)

    def look(brokers, names):
        if 2 <= model.now < 4:
            return Throttles({}, model.lists), {f"broker {broker}" for broker in brokers}
        if 6 <= model.now < 14:
            return Throttles(), set()
        return model.fetch_throttles(brokers, names), set()

    model.look_at_throttles = look
    assert not run(model, drain=[3], batch=2, throttle="1MiB").failures
    assert model.unthrottled == [] and no_throttle(model) and model.now > 14


def test_whose_run_has_ended_begins_nothing_more_and_leaves_what_is_under_way():
    model = Model([(1, 3)] * 9, brokers=(1, 2, 3), seconds=2.0)

    def over():
        return "the run has ended" if model.now >= 3 else ""

    outcome = run(model, over=over, drain=[3], batch=2, throttle="1MiB")
    assert {each.code for each in outcome.failures} == {"stopped"}
    assert "[reassignment.run_over] the run has ended; still under way" in outcome.failures[0].error
    assert "the run has ended; not started" in outcome.failures[-1].error
    assert len(model.running) == 2 and not no_throttle(model) and model.now < 4
    nothing = Model([(1, 3)] * 9, brokers=(1, 2, 3))
    outcome = run(nothing, over=lambda: "the run has ended", drain=[3])
    assert {each.code for each in outcome.failures} == {"stopped"}
    assert outcome.failures[0].error.startswith("[reassignment.run_over] the run has ended")
    assert nothing.most == 0 and nothing.rates == {}


def test_what_is_begun_by_a_late_answer_is_taken_back():
    """The request stood still while the run was killed, and another one cancelled."""
    model = Model([(1, 3)] * 9, brokers=(1, 2, 3), seconds=20.0)
    really = model.alter

    def late(wanted):
        if model.now > 15 and any(wanted.values()):
            model.now += 30
        return really(wanted)

    model.alter = late

    def over():
        return "the run has ended" if model.now > 40 else ""

    outcome = run(model, over=over, drain=[3], batch=2)
    moved = [key for key, each in model.replicas.items() if 3 not in each]
    assert len(moved) == 2 and not model.running
    assert len(outcome.changed) == 2 and len(outcome.failures) == 7


def test_the_throttles_of_the_next_run_are_not_removed_by_the_one_before():
    """It ends by itself, and the rates look like its own."""
    model = Model([(1, 3)] * 2, brokers=(1, 2, 3), seconds=5.0)
    outcome = run(model, over=lambda: "over" if model.now > 4.9 else "", drain=[3])
    assert {each.code for each in outcome.failures} == {"stopped"}
    assert not no_throttle(model)


def test_a_topic_that_is_deleted_meanwhile_is_not_moved():
    model = Model([(1, 2)] * 2, brokers=(1, 2, 3))
    changed, failed = subjects(meddled(model, lambda: model.replicas.pop(("t", 1)), drain=[2]))
    assert changed == {"t-0"} and not failed
