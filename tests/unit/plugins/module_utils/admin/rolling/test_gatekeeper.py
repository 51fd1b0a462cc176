# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No broker stops while ZooKeeper has no quorum, and who asks says so; tests/integration has the rest of the gate."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling import gate
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.gatekeeper import (
    Gatekeeper,
    Question,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

SERVERS = tuple({"id": each, "address": "z", "port": 2180 + each} for each in (1, 2, 3))
IDLE, DEAD = "it runs, but has no quorum", "[Errno 111] Connection refused"


class Ensemble:
    """Servers that serve, or say why they do not; remembers who was asked."""

    def __init__(self, **says):
        self.says = {int(name[1:]): word for name, word in says.items()}
        self.asked = []

    def __call__(self, servers):
        self.asked.append([each["id"] for each in servers])
        return [self.state(each) for each in servers]

    def state(self, server):
        error = self.says.get(server["id"])
        serves = {"serving": not error, "role": None if error else "follower"}
        return {**server, **serves, "error": error, "runs": error != DEAD}


class Brokers:
    """No broker answers; connected or not."""

    def connect(self):
        """They are reached."""

    def close(self):
        """They are left."""

    def fetch_view_of_others(self, broker):
        raise AdminError(Problem("cluster.read", "no answer", "wait", ("kafka-1:9092",)))


def keeper(ensemble, **more):
    return Gatekeeper(Question((2,), (1, 2, 3), zookeeper=SERVERS, **more), ensemble)


def test_without_a_quorum_nobody_stops_and_no_broker_is_asked():
    """Not even one that is to be mended: it could not register again."""
    found = keeper(Ensemble(z1=IDLE, z2=DEAD, z3=DEAD)).look(None)
    assert found[2].verdict == gate.WAIT
    assert found[2].reasons == (
        f"ZooKeeper has no quorum: 1 of 3 answer, 0 serve, 2 are needed: server 1 at z:2181: {IDLE};"
        f" server 2 at z:2182: {DEAD}; server 3 at z:2183: {DEAD}",
    )
    several = Gatekeeper(
        Question((1, 3), (1, 2, 3), zookeeper=SERVERS), Ensemble(z1=IDLE, z2=IDLE, z3=IDLE)
    )
    assert {broker: each.verdict for broker, each in several.look(None).items()} == {
        1: "wait",
        3: "wait",
    }


def test_what_is_waited_for_in_vain_names_zookeeper_and_what_starts_it():
    now = [0.0]

    def sleep(seconds):
        now[0] += seconds

    asks = keeper(Ensemble(z1=IDLE, z2=DEAD, z3=DEAD), wait_seconds=5.0)
    with pytest.raises(AdminError) as caught:
        asks.wait(Brokers, lambda: now[0], sleep)
    line = caught.value.problem.line()
    assert line.startswith(
        "[gate.waiting] broker 2: waited 5 s, and it may not be stopped yet: ZooKeeper has no "
    )
    assert "Remedy: playbooks/start.yml starts the servers that are down" in line
    with asks.at_hand(Brokers) as look:
        assert look()[0].startswith("ZooKeeper has no quorum"), "right before the stop, too"


def test_a_quorum_that_goes_while_brokers_are_asked_is_why_they_do_not_answer():
    """A question for settings hangs in a broker then, for longer than somebody waits."""
    ensemble = Ensemble()

    class Hanging(Brokers):
        """Who asks it, asks in vain."""

        def fetch_view_of_others(self, broker):
            ensemble.says.update({1: IDLE, 2: DEAD, 3: DEAD})
            return super().fetch_view_of_others(broker)

    (reason,) = keeper(ensemble).look(Hanging())[2].reasons
    assert reason.startswith("ZooKeeper has no quorum: 1 of 3 answer")


def test_servers_that_are_out_of_reach_hold_nobody_and_are_named_where_brokers_do_not_answer():
    with pytest.raises(AdminError) as caught:
        keeper(Ensemble(z1=DEAD, z2=DEAD, z3=DEAD)).look(Brokers())
    assert caught.value.problem.reason.startswith(
        "no answer; no ZooKeeper server serves here: 0 of 3 answer, 0 serve, 2 are needed: server 1"
    )
    with pytest.raises(AdminError) as caught:
        keeper(Ensemble(z1=DEAD)).look(Brokers())
    assert caught.value.problem.reason == "no answer"


def test_one_server_that_serves_is_enough_and_is_asked_alone():
    ensemble = Ensemble(z1=DEAD)
    asks = keeper(ensemble)
    for _look in range(2):
        with pytest.raises(AdminError):
            asks.look(Brokers())
    ensemble.says[2] = IDLE
    with pytest.raises(AdminError):
        asks.look(Brokers())
    # once more behind each look in vain, which may have hung because of it
    assert ensemble.asked == [[1, 2, 3], [2], [2], [2], [2], [1, 2, 3], [3]]
    in_kraft_mode = Gatekeeper(Question((2,), (1, 2, 3)), ensemble)
    with pytest.raises(AdminError):
        in_kraft_mode.look(Brokers())
    assert len(ensemble.asked) == 7


class Fine(Gatekeeper):
    """All is well with the brokers."""

    def _look(self, client, anew):
        return {2: gate.Verdict(2, gate.GO)}


def test_servers_that_nobody_reaches_from_here_are_not_asked_at_each_look():
    """Behind a firewall that would take seconds, and the brokers may reach them; until these do not answer either."""
    ensemble = Ensemble(z1=DEAD, z2=DEAD, z3=DEAD)
    asks = Fine(Question((2,), (1, 2, 3), zookeeper=SERVERS), ensemble)
    assert [asks.look(None)[2].verdict for _look in range(3)] == [gate.GO] * 3
    assert len(ensemble.asked) == 1
    asks._look = Gatekeeper._look.__get__(asks)
    told = []
    for _look in range(2):
        with pytest.raises(AdminError) as caught:
            asks.look(Brokers())
        told.append(caught.value.problem.reason)
    assert all(each.startswith("no answer; no ZooKeeper server serves here") for each in told)
