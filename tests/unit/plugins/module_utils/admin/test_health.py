# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lacks in a cluster, and waiting for it with a clock of our own."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin import health
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.info import (
    described,
    in_sync_everywhere,
    wait_for,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.health import Goal
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    ConfigEntry,
    Directory,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem


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
# Without a leader, and its only in-sync replica is on broker 3, which is not there.
STRANDED = Snapshot(
    "id",
    1,
    (Broker(1, "h", 9092), Broker(2, "h", 9092)),
    {"t": Topic("t", (Partition(0, 1, (1, 2, 3), (1, 2)), Partition(1, None, (1, 2, 3), (3,))))},
)


def found(pairs):
    """Names of partitions."""
    return [f"{name}-{part.id}" for name, part in pairs]


def test_lists():
    assert found(health.under_replicated(GOOD)) == []
    assert found(health.under_replicated(LAGGING)) == ["t-1"]
    assert found(health.offline(OFFLINE)) == ["t-1"] and found(health.offline(LAGGING)) == []
    assert found(health.under_min_isr(snapshot((1, 2), (1,), minimum="2"))) == ["t-1"]
    assert found(health.under_min_isr(snapshot((1,)))) == []


@pytest.mark.parametrize(
    "isr, eligible, last",
    [
        ((3,), None, True),
        # neither is there: the first of them that is back leads, also with nothing
        ((2, 3), None, True),
        ((2,), None, False),
        # nobody said who is eligible, or nobody is
        ((), None, True),
        ((), health.Eligible(), True),
        ((), health.Eligible((3,), (3,)), True),
        ((), health.Eligible((3,)), True),
        # it would be the first that is back, and lead with nothing
        ((), health.Eligible((2, 3), (3,)), True),
        ((), health.Eligible((2,), (3,)), False),
        ((), health.Eligible((), (3,)), True),
        ((), health.Eligible((), (2, 3)), True),
        ((), health.Eligible((), (2,)), False),
    ],
)
def test_whether_a_broker_may_have_the_last_copy(isr, eligible, last):
    assert health.may_be_last_copy(3, isr, eligible) is last
    assert health.may_be_last_copy(3, isr, eligible, unclean=True), "whoever is back first leads"


@pytest.mark.parametrize(
    "value, source, defaults, unclean",
    [
        ("false", "default", (), False),
        ("false", "default", ("false", "false"), False),
        ("true", "static", ("true", "false"), True),
        # the broker that was asked has not what the controller may have
        ("false", "default", ("false", "true"), True),
        ("false", "topic", ("true", "true"), False),
        ("true", "topic", ("false",), True),
        (None, None, ("false",), True),
    ],
)
def test_whether_any_replica_may_lead(value, source, defaults, unclean):
    key = "unclean.leader.election.enable"
    config = None if source is None else {key: ConfigEntry(key, value, source)}
    assert health.elects_unclean(Topic("t", (), config), defaults) is unclean


def test_topics_on_the_default_min_isr_by_their_replicas():
    def topic(name, *replicas, source="default"):
        config = {"min.insync.replicas": ConfigEntry("min.insync.replicas", "1", source)}
        parts = tuple(Partition(i, 1, each, each) for i, each in enumerate(replicas))
        return Topic(name, parts, config)

    topics = [topic(f"t{n}", (1, 2)) for n in range(6)]
    topics += [topic("static", (1, 2, 3), source="static"), topic("own", (1,), source="topic")]
    topics += [topic("reassigned", (1, 2, 3), (3,))]
    cluster = Snapshot("id", 1, (), {each.name: each for each in topics})
    assert health.on_default_min_isr(cluster) == [
        {"replicas": 1, "topics": 1, "examples": ["reassigned"]},
        {"replicas": 2, "topics": 6, "examples": ["t0", "t1", "t2", "t3", "t4"]},
        {"replicas": 3, "topics": 1, "examples": ["static"]},
    ]


def test_loads_count_dead_holders_too():
    partial = snapshot((1, 2), brokers=(1, 2))
    assert health.loads(partial) == {1: (1, 1, 0), 2: (0, 1, 0), 3: (0, 1, 1)}
    assert health.replica_holders(partial) == [1, 2, 3]


UNMET = [
    (GOOD, Goal((1, 2, 3), True, True), ""),
    (GOOD, Goal((1, 4, 5)), "not registered: brokers 4, 5"),
    (GOOD, Goal(gone=(2, 3)), "still registered: brokers 2, 3"),
    (GOOD, Goal(gone=(4,)), ""),
    (LAGGING, Goal(full_isr=True), "1 partition not fully in sync: t-1 lacks 1"),
    (OFFLINE, Goal(full_isr=True), "1 partition offline: t-1"),
    (LAGGING, Goal(full_isr=False), ""),
    # broker 3 is dead and not of this run
    (snapshot((1, 2), (2, 1), brokers=(1, 2)), Goal((1, 2), in_sync=(1, 2), controller=True), ""),
    (snapshot((1,), brokers=(1, 2)), Goal((1, 2), in_sync=(1, 2)), "not in sync: t-0 lacks 2"),
    (snapshot((1, 2), (3,), brokers=(1, 2)), Goal(in_sync=(1, 2)), "not in sync: t-1 lacks 1, 2"),
    (STRANDED, Goal((1, 2), in_sync=(1, 2)), ""),
    (STRANDED, Goal((1, 2), full_isr=True), "1 partition offline: t-1"),
    (snapshot(controller=None), Goal(controller=True), "there is no controller"),
    (snapshot(controller=9), Goal(controller=True), "there is no controller"),
]


@pytest.mark.parametrize("state, goal, words", UNMET)
def test_unmet(state, goal, words):
    reasons = "; ".join(health.unmet(state, goal))
    assert words in reasons and bool(reasons) == bool(words)


def test_what_a_wait_leaves_out_is_named():
    assert health.not_waited_for(GOOD, Goal()) == []
    absent, waiting = health.not_waited_for(STRANDED, Goal((1, 2), in_sync=(1, 2)))
    assert absent == "broker 3 holds replicas and is not registered"
    assert waiting.startswith("1 partition without a leader until") and "t-1" in waiting


def test_a_dead_broker_outside_the_goal_may_still_be_registered():
    """Until its session expires it is in everybody's metadata, and answers nobody."""
    dead = {3: [None] * 100}
    assert World((0, GOOD), views=dead).wait(brokers=(1, 2), in_sync=(1, 2))["polls"] == 1
    with pytest.raises(AdminError, match="broker 3 is registered but does not answer"):
        World((0, GOOD), views=dict(dead)).wait(brokers=(1, 2, 3), in_sync=(1, 2), timeout=5)


def test_who_is_still_to_be_mended_is_not_waited_for():
    """Two brokers with a wrong password: the first one is back, and the other one gets its own turn."""
    one_cured = snapshot((1, 2), (2, 1))
    goal = {"brokers": (1, 2), "in_sync": (1, 2)}
    world = World((0, one_cured), views={3: [snapshot(brokers=())] * 100})
    assert world.wait(**goal, unmended=(3,))["not_waited_for"] == [
        "broker 3 was not in sync before, and the restart is still to come"
    ]
    assert world.besides == (3,), "what a sick broker says is not believed"
    with pytest.raises(AdminError, match="t-0 lacks 3"):
        World((0, one_cured)).wait(brokers=(1, 2, 3), in_sync=(1, 2, 3), timeout=5)


def test_nobody_can_follow_a_leader_that_is_still_to_be_mended():
    led_by_the_sick = snapshot((3,), (1, 2))
    assert health.unmet(led_by_the_sick, Goal(in_sync=(1, 2), unmended=(3,))) == []
    assert health.unmet(led_by_the_sick, Goal(in_sync=(1, 2)))
    # where another one is in sync as well, it can be followed
    assert health.unmet(snapshot((3, 1)), Goal(in_sync=(1, 2), unmended=(3,)))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (GOOD, []),
        (LAGGING, [1]),
        (snapshot((1, 2), (2, 1)), [3]),
        # broker 3 leads one partition that nobody can follow: that makes the others no worse
        (snapshot((3,), (1, 2)), [3]),
        # each by itself: who is the sick one cannot be told
        (snapshot((1,), (2,), (3,)), [1, 2, 3]),
        (snapshot((1, 2), brokers=(1, 2)), []),
    ],
)
def test_who_is_not_in_sync(state, expected):
    assert health.not_in_sync(state) == expected


def test_in_sync_is_who_every_broker_sees_so():
    """A broker that lost touch tells what was: that all is well."""
    stale = World((0, GOOD), views={1: [snapshot((1, 2), (2, 1))], 3: [GOOD], 2: [None]})
    assert in_sync_everywhere(stale) == [1, 2]
    assert in_sync_everywhere(World((0, AWAY))) is None


def test_many_partitions_are_told_in_part():
    reasons = health.unmet(snapshot(*[(1,)] * 25), Goal(full_isr=True))
    assert "25 partitions" in reasons[0] and "and 15 more" in reasons[0]


class World:
    """States of a cluster by time; as client factory and clock at once."""

    def __init__(self, *states, views=None):
        self.now = 0.0
        self.states = states  # (from second, Snapshot or AdminError)
        self.views = views or {}
        self.log = []
        self.connects = 0
        self.disks, self.disks_of = {}, []
        self.joining = {}

    def current(self):
        state = [each for since, each in self.states if since <= self.now][-1]
        if isinstance(state, AdminError):
            raise state
        return state

    def connect(self):
        self.connects += 1
        self.current()

    def close(self):
        pass

    def fetch_metadata(self):
        return self.current()

    def fetch_view_of_others(self, *besides):
        self.besides = besides
        return self.current()

    def fetch_every_view(self, _snapshot, besides=()):
        return {
            broker: views.pop(0)
            for broker, views in self.views.items()
            if views and broker not in besides
        }

    def fetch_joining(self, places):
        assert places == [("h", 9092)], "only the controller knows"
        if isinstance(self.joining, Exception):
            raise self.joining
        return self.joining

    def fetch_directories(self, brokers, places):
        self.disks_of.append((list(brokers), places))
        return self.disks

    def sleep(self, seconds):
        self.now += seconds

    def wait(self, **goal):
        return wait_for(lambda: self, Goal(**goal), lambda: self.now, self.sleep, self.log.append)


AWAY = AdminError(Problem("connection.unreachable", "unreachable", "wait", ("x",)), reachable=False)


def test_waiting_through_absence_and_lag():
    world = World((0, AWAY), (3, LAGGING), (6, GOOD))
    assert 6 <= world.wait(full_isr=True)["waited_seconds"] < 7
    assert any("unreachable" in line or "lacks" in line for line in world.log)


@pytest.mark.parametrize(
    "joining, goal, met",
    [
        ({("t", 1): (1,)}, {"in_sync": (1, 2, 3)}, True),
        ({("t", 1): (1, 2)}, {"in_sync": (1, 2, 3)}, True),
        # who held it before has to be in sync, and another partition's move says nothing
        ({("t", 1): (2,)}, {"in_sync": (1, 2, 3)}, False),
        ({("t", 0): (1,)}, {"in_sync": (1, 2, 3)}, False),
        ({}, {"in_sync": (1, 2, 3)}, False),
        (AdminError(Problem("cluster.read", "silent", "wait")), {"in_sync": (1, 2, 3)}, False),
        (ImportError("kafka"), {"in_sync": (1, 2, 3)}, False),
        # all replicas is all replicas
        ({("t", 1): (1,)}, {"full_isr": True}, False),
    ],
)
def test_replicas_that_are_being_added_are_told_and_not_waited_for(joining, goal, met):
    """They take hours, and a broker that was started is not sick because of them."""
    world = World((0, LAGGING), views={2: [LAGGING]})
    world.joining = joining
    if not met:
        with pytest.raises(AdminError, match="t-1 lacks 1"):
            world.wait(timeout=20, **goal)
        return
    found = world.wait(timeout=20, **goal)
    assert found["polls"] == 1
    (told,) = found["not_waited_for"]
    assert "1 partition with new replicas, which are being copied: t-1 lacks 1" in told


def test_what_joins_later_is_left_out_too():
    world = World((0, LAGGING))
    world.joining = {}

    def sleep(seconds, before=world.sleep):
        before(seconds)
        world.joining = {("t", 1): (1,)} if world.now > 7 else {}

    world.sleep = sleep
    assert 7 < world.wait(in_sync=(1,), timeout=20)["waited_seconds"] < 13


def test_a_flap_starts_the_quiet_time_anew():
    world = World((0, GOOD), (2, LAGGING), (4, GOOD))
    assert 9 <= world.wait(full_isr=True, quiet_seconds=5)["waited_seconds"] < 10


def test_the_deadline_names_what_is_missing():
    with pytest.raises(AdminError, match="waited 5 s: 1 partition not fully in sync: t-1 lacks 1"):
        World((0, LAGGING)).wait(full_isr=True, timeout=5)
    with pytest.raises(AdminError, match="quiet|good for"):
        World((0, LAGGING), (4, GOOD)).wait(full_isr=True, timeout=5, quiet_seconds=9)


def test_a_log_directory_that_failed_is_named_where_a_broker_does_not_come_into_sync():
    """Asked for after five seconds in vain: until then it is catching up."""
    world = World((0, LAGGING))
    world.disks = {1: [Directory("/disk/b", {}, False)]}
    with pytest.raises(
        AdminError, match="not_ready.*broker 1: its log directory /disk/b is off"
    ) as it:
        world.wait(full_isr=True, timeout=6)
    assert "broker 1: make room on the disk or repair it" in it.value.message
    assert [brokers for brokers, _places in world.disks_of] == [[1]]
    world = World((0, LAGGING), (4, GOOD))
    world.wait(full_isr=True, timeout=6)
    assert not world.disks_of


def test_while_replicas_join_the_deadline_moves():
    """Half an hour of copying is no failure; each replica that is in sync gives the others as long again."""
    joining = [
        (each, snapshot(*[(1, 2, 3)] * (each // 4), *[(1, 2)] * (5 - each // 4)))
        for each in range(20)
    ]
    world = World(*joining, (20, snapshot(*[(1, 2, 3)] * 5)))
    found = world.wait(brokers=(1, 2, 3), in_sync=(1, 2, 3), timeout=5)
    assert 20 <= found["waited_seconds"] < 21
    stuck = World(*joining[:13])
    with pytest.raises(AdminError, match="waited 17 s: 2 partitions not in sync: t-3 lacks 3"):
        stuck.wait(brokers=(1, 2, 3), in_sync=(1, 2, 3), timeout=5)


def test_what_comes_and_goes_is_no_progress():
    flapping = [(each, LAGGING if each % 2 else snapshot((1, 2), (2, 3))) for each in range(60)]
    with pytest.raises(AdminError, match="waited [56] s"):
        World(*flapping).wait(full_isr=True, timeout=5)


def test_a_broker_that_knows_nothing_yet_is_no_progress():
    """An empty view lacks nothing; it must not count as less than ever before."""
    empty = Snapshot("id", None, (), {})
    assert health.lagging(empty, Goal((1,), in_sync=(1,))) is None
    behind = [snapshot((2, 3), (2, 3)), snapshot((1, 2, 3), (2, 3)), snapshot((1, 2, 3), (2, 3, 1))]
    world = World((0, empty), *((2 + 4 * each, behind[each]) for each in range(3)))
    assert world.wait(brokers=(1,), in_sync=(1,), timeout=7)["waited_seconds"] >= 10


def test_an_absent_cluster_is_still_absent_at_the_deadline():
    with pytest.raises(AdminError, match="unreachable") as caught:
        World((0, AWAY)).wait(timeout=2)
    assert caught.value.details == {"reachable": False}


def test_wrong_credentials_end_the_waiting_at_once():
    world = World((0, AdminError(Problem("connection.credentials", "wrong credentials", "x"))))
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


def test_a_cluster_that_does_not_answer_is_described_by_the_same_keys():
    told = described(Snapshot(), {}, reachable=False)
    assert set(told) == set(described(GOOD, {}))
    assert not told.pop("reachable") and not any(told.values())
