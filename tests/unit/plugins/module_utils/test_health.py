# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lacks in a cluster, and waiting for it with a clock of our own."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils import _health
from ansible_collections.kafkaops.cluster.plugins.module_utils._cluster_info import wait_for
from ansible_collections.kafkaops.cluster.plugins.module_utils._health import Goal
from ansible_collections.kafkaops.cluster.plugins.module_utils._model import (
    Broker,
    ConfigEntry,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan import AdminError


def snapshot(*isrs, brokers=(1, 2, 3), controller=1, minimum=None):
    """A topic `t` with one partition for each ISR, of replicas 1, 2, 3."""
    config = minimum and {"min.insync.replicas": ConfigEntry("min.insync.replicas", minimum)}
    parts = tuple(
        Partition(i, isr[0] if isr else None, (1, 2, 3), tuple(isr)) for i, isr in enumerate(isrs)
    )
    live = tuple(Broker(broker, "h", 9092) for broker in brokers)
    return Snapshot("id", controller, live, {"t": Topic("t", parts, config)})


GOOD = snapshot((1, 2, 3), (2, 3, 1))
LAGGING = snapshot((1, 2, 3), (2, 3))
OFFLINE = snapshot((1, 2, 3), ())


def found(pairs):
    """Names of partitions."""
    return [f"{name}-{part.id}" for name, part in pairs]


def test_lists():
    assert found(_health.under_replicated(GOOD)) == []
    assert found(_health.under_replicated(LAGGING)) == ["t-1"]
    assert found(_health.offline(OFFLINE)) == ["t-1"] and found(_health.offline(LAGGING)) == []
    assert found(_health.under_min_isr(snapshot((1, 2), (1,), minimum="2"))) == ["t-1"]
    assert found(_health.under_min_isr(snapshot((1,)))) == []


def test_loads_count_dead_holders_too():
    partial = snapshot((1, 2), brokers=(1, 2))
    assert _health.loads(partial) == {1: (1, 1, 0), 2: (0, 1, 0), 3: (0, 1, 1)}
    assert _health.replica_holders(partial) == [1, 2, 3]


UNMET = [
    (GOOD, Goal((1, 2, 3), True, True), ""),
    (GOOD, Goal((1, 4, 5)), "not registered: brokers 4, 5"),
    (LAGGING, Goal(full_isr=True), "1 partition not fully in sync: t-1 lacks 1"),
    (OFFLINE, Goal(full_isr=True), "1 partition offline: t-1"),
    (LAGGING, Goal(full_isr=False), ""),
    (snapshot(controller=None), Goal(controller=True), "there is no controller"),
    (snapshot(controller=9), Goal(controller=True), "there is no controller"),
]


@pytest.mark.parametrize("state, goal, words", UNMET)
def test_unmet(state, goal, words):
    reasons = "; ".join(_health.unmet(state, goal))
    assert words in reasons and bool(reasons) == bool(words)


def test_many_partitions_are_told_in_part():
    reasons = _health.unmet(snapshot(*[(1,)] * 25), Goal(full_isr=True))
    assert "25 partitions" in reasons[0] and "and 15 more" in reasons[0]


class World:
    """States of a cluster by time; as client factory and clock at once."""

    def __init__(self, *states, views=None):
        self.now = 0.0
        self.states = states  # (from second, Snapshot or AdminError)
        self.views = views or {}
        self.log = []
        self.connects = 0

    def current(self):
        state = [each for since, each in self.states if since <= self.now][-1]
        if isinstance(state, AdminError):
            raise state
        return state

    def connect(self):
        self.connects += 1
        self.current()

    def fetch_metadata(self):
        return self.current()

    def fetch_every_view(self, _snapshot):
        return {broker: views.pop(0) for broker, views in self.views.items() if views}

    def sleep(self, seconds):
        self.now += seconds

    def wait(self, **goal):
        return wait_for(lambda: self, Goal(**goal), lambda: self.now, self.sleep, self.log.append)


AWAY = AdminError("unreachable: x.", reachable=False)


def test_waiting_through_absence_and_lag():
    world = World((0, AWAY), (3, LAGGING), (6, GOOD))
    assert 6 <= world.wait(full_isr=True)["waited_seconds"] < 7
    assert any("unreachable" in line or "lacks" in line for line in world.log)


def test_a_flap_starts_the_quiet_time_anew():
    world = World((0, GOOD), (2, LAGGING), (4, GOOD))
    assert 9 <= world.wait(full_isr=True, quiet_seconds=5)["waited_seconds"] < 10


def test_the_deadline_names_what_is_missing():
    with pytest.raises(AdminError, match="waited 5 s: 1 partition not fully in sync: t-1 lacks 1"):
        World((0, LAGGING)).wait(full_isr=True, timeout=5)
    with pytest.raises(AdminError, match="quiet|good for"):
        World((0, LAGGING), (4, GOOD)).wait(full_isr=True, timeout=5, quiet_seconds=3)


def test_an_absent_cluster_is_still_absent_at_the_deadline():
    with pytest.raises(AdminError, match="unreachable") as caught:
        World((0, AWAY)).wait(timeout=2)
    assert caught.value.details == {"reachable": False}


def test_wrong_credentials_end_the_waiting_at_once():
    world = World((0, AdminError("wrong credentials: x.")))
    with pytest.raises(AdminError, match="wrong credentials"):
        world.wait(timeout=500)
    assert world.now == 0


def test_one_broker_that_sees_otherwise_is_waited_for():
    world = World((0, GOOD), views={1: [GOOD, GOOD, GOOD], 2: [LAGGING, None, GOOD]})
    assert world.wait(full_isr=True)["polls"] == 3


def test_a_lost_connection_is_made_anew():
    world = World((0, GOOD), (1, AWAY), (2, GOOD))
    world.wait(quiet_seconds=3)
    assert world.connects > 2
