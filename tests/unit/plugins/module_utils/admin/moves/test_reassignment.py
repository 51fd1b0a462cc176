# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reassignment would do, from what was read: changes, refusals, throttles."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    Directory,
    Partition,
    Snapshot,
    Topic,
    UnderWay,
    with_disks,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_replicas import (
    Running,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.layout import (
    CONSENTS,
    Wish,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.moving import rate_from
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.plan_reassignment import (
    Found,
    plan_cancelling,
    plan_reassignment,
    wish_from,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.throttles import (
    Throttles,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError

LEADERS, FOLLOWERS = (f"{side}.replication.throttled.replicas" for side in ("leader", "follower"))
KEYS = [f"{side}.replication.throttled.rate" for side in ("leader", "follower")]
OURS, THEIRS = dict.fromkeys(KEYS, "01048576"), dict.fromkeys(KEYS, "1048576")
ASKED = {"drain": [], "spread": False, "onto": [], "replication_factor": None, "topics": None}


def found(replicas, alive=(1, 2, 3), leaders=True, **more):
    """What was read of a topic `t` whose partitions have these replicas."""
    parts = tuple(
        Partition(number, each[0] if leaders else None, tuple(each), tuple(each))
        for number, each in enumerate(replicas)
    )
    brokers = tuple(Broker(broker, "h", 1) for broker in alive)
    return Found(Snapshot("id", 1, brokers, {"t": Topic("t", parts)}), **more)


def kinds(plan):
    return [(change.kind, change.subject) for change in plan.changes]


def checks(plan):
    return [problem.check for problem in plan.refusals]


def test_a_move_says_before_after_and_bytes():
    plan, moves = plan_reassignment(
        found([(3,), (1,)], sizes={("t", 0): 2**20, ("t", 1): 5}), Wish(drain=frozenset({3}))
    )
    assert kinds(plan) == [("move", "t-0")]
    assert plan.changes[0].after == {"replicas": [2]}
    assert plan.changes[0].note == "1.0 MiB to broker 2"
    assert moves.bytes == 2**20


def test_what_is_under_way_and_wanted_is_gone_on_with():
    running = {("t", 0): Running((2, 3), (2,), (3,))}
    plan, _moves = plan_reassignment(
        found([(2, 3), (3,)], running=running), Wish(drain=frozenset({3}))
    )
    assert kinds(plan) == [("finish", "t-0"), ("move", "t-1")]
    assert plan.changes[0].before == {"replicas": [3]}
    assert plan.changes[0].after == {"replicas": [2]}


def test_what_is_under_way_and_goes_elsewhere_refuses():
    running = {("t", 0): Running((3, 1), (3,), (1,))}
    plan, _moves = plan_reassignment(
        found([(3, 1), (2,)], running=running), Wish(drain=frozenset({3}))
    )
    assert checks(plan) == ["reassignment.running"]
    assert "state: cancelled" in plan.refusals[0].remedy


def test_throttles_that_a_killed_run_has_left_go_when_nothing_is_to_move():
    throttles = Throttles({1: OURS}, {"t": {LEADERS: "00:1"}})
    plan, _moves = plan_reassignment(
        found([(1,), (2,)], throttles=throttles), Wish(drain=frozenset({3}))
    )
    assert kinds(plan) == [("unthrottle", "broker 1"), ("unthrottle", "topic t")]
    assert kinds(plan_cancelling(found([(1,)], throttles=throttles))) == kinds(plan)
    assert not plan.warnings


@pytest.mark.parametrize(
    "racks, drain, refused",
    [
        ({}, (), []),
        ({1: "a", 2: "b", 3: "c"}, (), []),
        ({1: "a", 2: None, 3: "c"}, (), ["reassignment.racks"]),
        ({1: "a"}, (), ["reassignment.racks"]),
        # who leaves needs none
        ({1: "a", 2: "b"}, (3,), []),
        ({3: "c"}, (3,), []),
        ({1: "a", 3: "c"}, (3,), ["reassignment.racks"]),
    ],
)
def test_nothing_is_copied_while_racks_of_some_brokers_are_known(racks, drain, refused):
    wish = Wish(drain=frozenset(drain), spread=True)
    there = [(3,), (3,), (3,)]
    plan, moves = plan_reassignment(found(there, racks=racks), wish)
    assert moves.copies and checks(plan) == refused
    consented, _moves = plan_reassignment(found(there, racks=racks), wish, allow=["racks_ignored"])
    assert checks(consented) == []
    assert bool(consented.warnings) is bool(refused)
    even, _moves = plan_reassignment(found([(1,), (2,), (3,)], racks=racks), Wish(spread=True))
    assert checks(even) == [], "nothing moves"


@pytest.mark.parametrize("entries", ["*", "0:1", "0:1,1:2"])
def test_a_throttle_of_somebody_else_stays_and_is_told(entries):
    """Without a move of his under way nobody knows what it is for."""
    throttles = Throttles({1: THEIRS}, {"t": {LEADERS: entries}})
    read = found([(1,), (2,)], throttles=throttles)
    for plan in (plan_reassignment(read, Wish(drain=frozenset({3})))[0], plan_cancelling(read)):
        assert not plan
        assert "broker 1, topic t: somebody else has throttled" in plan.warnings[0]


def test_the_throttle_of_a_move_that_is_cancelled_goes_with_it():
    """Also of those partitions of the topic that have arrived; the rates only if nobody else needs them."""
    running = {("t", 0): Running((2, 3), (2,), (3,))}
    lists = {LEADERS: "0:3,1:1", FOLLOWERS: "0:2"}
    rates = dict.fromkeys((1, 2, 3, 4), THEIRS)
    plan = plan_cancelling(
        found([(2, 3), (1,)], running=running, throttles=Throttles(rates, {"t": lists}))
    )
    gone = ["broker 1", "broker 2", "broker 3", "topic t"]
    assert kinds(plan) == [("cancel", "t-0"), *(("unthrottle", each) for each in gone)]
    assert plan.changes[-1].before == lists and plan.changes[-1].after == dict.fromkeys(lists)
    assert "broker 4: somebody else" in plan.warnings[0], "it has no part in the move"
    throttles = Throttles(rates, {"t": lists, "u": {LEADERS: "0:9"}})
    plan = plan_cancelling(found([(2, 3), (1,)], running=running, throttles=throttles))
    assert kinds(plan) == [("cancel", "t-0"), ("unthrottle", "topic t")]
    assert "topic u: somebody else" in plan.warnings[0], "the rates may be for this"


def test_cancelling_goes_back_to_where_it_came_from():
    running = {("t", 0): Running((2, 3), (2,), (3,))}
    plan = plan_cancelling(found([(2, 3)], running=running))
    assert kinds(plan) == [("cancel", "t-0")]
    assert plan.changes[0].after == {"replicas": [3]}


@pytest.mark.parametrize(
    "read, wish, check",
    [
        (found([(1,)], leaders=False), Wish(drain=frozenset({1})), "reassignment.offline"),
        (
            found([(1, 2, 3)], minimums={"t": 2}),
            Wish(replication_factor=2),
            "reassignment.below_min_isr",
        ),
        (
            found([(1,)]),
            Wish(spread=True, topics=frozenset({"absent"})),
            "reassignment.unknown_topic",
        ),
        (found([(1, 2, 3)]), Wish(drain=frozenset({1})), "reassignment.nowhere_to_go"),
    ],
)
def test_refusals(read, wish, check):
    assert checks(plan_reassignment(read, wish, CONSENTS)[0]) == [check]


@pytest.mark.parametrize(
    "replicas, alive, wish, refused",
    [
        # (3, 4, 1) becomes (3, 5, 1), and with ZooKeeper 3 would have to be in sync.
        ([(4, 3, 1), (1, 2, 4)], (1, 2, 4, 5), Wish(drain=frozenset({4})), "broker 3"),
        ([(4, 3, 1)], (1, 2, 4, 5), Wish(replication_factor=4), "broker 3"),
        ([(4, 3, 1)], (1, 4, 5), Wish(replication_factor=2), None),  # it is what goes first
        ([(4, 3, 6)], (1, 2, 4), Wish(replication_factor=2), "broker 3"),
        ([(4, 3, 6), (4, 1, 3)], (1, 2, 4, 5), Wish(drain=frozenset({4})), "broker 3, 6"),
        ([(4, 3, 1)], (1, 2, 4, 5), Wish(drain=frozenset({3})), None),
        ([(1, 3), (1, 2)], (1, 2, 4), Wish(spread=True), None),  # stays as it is
        ([(1, 2), (3, 1)], (1, 2, 4), Wish(drain=frozenset({2})), None),
    ],
)
def test_a_move_beside_a_dead_broker_would_never_end_with_zookeeper(replicas, alive, wish, refused):
    read = found(replicas, alive=alive)
    plan, _moves = plan_reassignment(read, wish, CONSENTS)
    assert checks(plan) == (["reassignment.dead_replica"] if refused else [])
    if refused:
        assert plan.refusals[0].subjects == (refused,)
        assert "t-0" in plan.refusals[0].reason
        away = "scale_in.yml -e broker=" if "," not in refused else "drain: [3, 6]"
        assert away in plan.refusals[0].remedy
    in_kraft, _moves = plan_reassignment(dataclasses.replace(read, kraft=True), wish, CONSENTS)
    assert not in_kraft.refusals, "there only what is added has to be in sync"


@pytest.mark.parametrize(
    "isr_of_4, more, wish, refused",
    [
        ((1,), {}, Wish(drain=frozenset({5})), True),
        ((1,), {}, Wish(spread=True), True),
        ((1, 4), {}, Wish(drain=frozenset({5})), False),
        ((1,), {}, Wish(drain=frozenset({5}), onto=frozenset({1, 2, 3})), False),
        # it is what is emptied
        ((1,), {}, Wish(drain=frozenset({4})), False),
        # a killed run has begun to fill it: it is new, and not sick
        (
            (1,),
            {("t", 8): Running((1, 4), (4,), (1,))},
            Wish(spread=True, onto=frozenset({4})),
            False,
        ),
    ],
)
def test_nothing_moves_to_a_broker_that_is_in_sync_with_nobody(isr_of_4, more, wish, refused):
    """It is up and registered, with a wrong password, and no move to it would ever end."""
    replicas = [(1, 2, 5) if number % 2 else (2, 3, 5) for number in range(8)]
    parts = [Partition(number, each[0], each, each) for number, each in enumerate(replicas)]
    parts.append(Partition(8, 1, (1, 4), isr_of_4))
    brokers = tuple(Broker(broker, "h", 1) for broker in (1, 2, 3, 4, 5))
    read = Found(Snapshot("id", 1, brokers, {"t": Topic("t", tuple(parts))}), running=more)
    plan, moves = plan_reassignment(read, wish)
    assert checks(plan) == (["reassignment.isolated"] if refused else []) and moves.moves
    if refused:
        assert plan.refusals[0].subjects == ("broker 4",)
        assert f"{sum(4 in move.adding for move in moves.moves)} partitions would move to it" in (
            plan.refusals[0].reason
        )


GIB = 2**30


def disk(usable, path="/d", total=100 * GIB, online=True, **replicas):
    """A log directory whose disk has so many GiB left; `replicas`: p0=bytes of partition 0."""
    held = {("t", int(name[1:])): size for name, size in replicas.items()}
    left = None if usable is None else usable * GIB
    return Directory(path, held, online, None if usable is None else total, left)


@pytest.mark.parametrize(
    "on_two, on_three, refused, unknown",
    [
        # Partitions of 2 GiB leave broker 4: one for broker 2, one for broker 3. A GiB stays free.
        ([disk(3)], [disk(3)], [], None),
        ([disk(2)], [disk(3)], ["broker 2"], None),
        ([disk(2)], [disk(0)], ["broker 2", "broker 3"], None),
        ([disk(4), disk(3, "/e", 70 * GIB)], [disk(3)], [], None),
        # Of two directories with equal numbers of replicas the broker may take the fuller one.
        ([disk(2), disk(9, "/e", 70 * GIB)], [disk(3)], ["broker 2"], None),
        # One disk with two directories; one that is offline.
        ([disk(2), disk(2, "/e")], [disk(3)], ["broker 2"], None),
        ([disk(2), disk(9, "/e", 70 * GIB, False)], [disk(3)], ["broker 2"], None),
        # What has arrived of a move that is under way is there already.
        ([disk(4, p2=GIB)], [disk(3)], [], None),
        ([disk(4)], [disk(3)], ["broker 2"], None),
        ([disk(None)], [disk(3)], [], "broker 2: how much room"),
        ([disk(9), disk(None, "/e")], [disk(0)], ["broker 3"], "broker 2: how much room"),
        (None, None, [], "broker 2, 3: how much room"),
    ],
)
def test_brokers_have_room_for_what_they_get(on_two, on_three, refused, unknown):
    running = {}
    if on_two and (on_two[0].usable or 0) == 4 * GIB:
        running = {("t", 2): Running((2, 4), (2,), (4,))}
    directories = {2: on_two, 3: on_three} if on_two else {}
    read = found(
        [(4, 1), (4, 1), (2, 4) if running else (1,)],
        alive=(1, 2, 3, 4),
        running=running,
        sizes={("t", 0): 2 * GIB, ("t", 1): 2 * GIB, ("t", 2): 2 * GIB},
        directories=directories,
    )
    brokers = tuple(Broker(broker, f"h{broker}", 1) for broker in (1, 2, 3, 4))
    read = dataclasses.replace(read, snapshot=dataclasses.replace(read.snapshot, brokers=brokers))
    plan, moves = plan_reassignment(read, Wish(drain=frozenset({4}), onto=frozenset({2, 3})))
    assert [each.subjects[0] for each in plan.refusals] == refused
    assert set(checks(plan)) <= {"reassignment.no_room"} and moves.bytes == 4 * GIB
    if refused and on_two == [disk(2)]:
        assert "2.0 GiB would be copied to it" in plan.refusals[0].reason
        assert "2.0 GiB left, of which some must stay free" in plan.refusals[0].reason
    assert [unknown in each for each in plan.warnings] == ([True] if unknown else [])


@pytest.mark.parametrize(
    "sizes, one, other, refused",
    [
        # 100 GiB of 200 come to each: all of it would fit only onto the second.
        ([50] * 4, disk(20, "/d", p90=1), disk(450, "/e", 500 * GIB, p91=1), "/d"),
        ([50] * 4, disk(102, "/d", p90=1), disk(450, "/e", 500 * GIB, p91=1), ""),
        # The directory with fewer replicas gets all until it has as many.
        ([50] * 4, disk(20, "/d", p90=1, p91=1, p92=1, p93=1), disk(450, "/e", 500 * GIB), ""),
        ([50] * 4, disk(450, "/d", 500 * GIB, p90=1, p91=1, p92=1, p93=1), disk(20, "/e"), "/e"),
        # The big one may come first, and last.
        ([1, 60], disk(450, "/d", 500 * GIB, p90=1), disk(20, "/e"), "/e"),
        ([1, 60], disk(20, "/d", p90=1), disk(450, "/e", 500 * GIB), "/d"),
        ([60], disk(20, "/d", p90=1), disk(450, "/e", 500 * GIB), ""),
    ],
)
def test_a_broker_fills_its_directories_by_the_number_of_replicas(sizes, one, other, refused):
    """So the room of all of its disks together is not there for what comes; a full one goes offline with all it has."""
    read = found(
        [(3,)] * len(sizes),
        alive=(1, 2, 3),
        sizes={("t", number): size * GIB for number, size in enumerate(sizes)},
        directories={2: [one, other]},
    )
    plan, moves = plan_reassignment(read, Wish(drain=frozenset({3}), onto=frozenset({2})))
    assert checks(plan) == (["reassignment.no_room"] if refused else []) and moves.moves
    if refused:
        (problem,) = plan.refusals
        assert f"would be copied to {refused}, since" in problem.reason
        assert "playbooks/spread_disks.yml -e broker=2" in problem.remedy


def filling(size, copied=0, key=("t", 90), source="/d", target="/e", broker=2):
    """A replica that a broker moves between its directories."""
    return {(broker, key): UnderWay(source, target, size * GIB, copied * GIB)}


@pytest.mark.parametrize(
    "coming, one, other, within, refused, words",
    [
        # 50 GiB come to the one that has fewer replicas, and that is being filled.
        (
            [50],
            disk(450, "/d", 500 * GIB, p90=300, p91=1, p92=1),
            disk(90, "/e"),
            filling(60, copied=10),
            ["broker 2"],
            "50.0 GiB are being moved there",
        ),
        ([50], disk(450, "/d", 500 * GIB, p90=300, p91=1), disk(120, "/e"), filling(60), [], ""),
        ([50], disk(450, "/d", 500 * GIB, p90=300, p91=1), disk(90, "/e"), {}, [], ""),
        # What is copied there already has its room.
        ([50], disk(450, "/d", 500 * GIB, p90=60, p91=1), disk(60, "/e"), filling(60, 59), [], ""),
        # Until it has arrived it counts in both directories, then in one: either may get the next.
        (
            [50],
            disk(20, "/d", 500 * GIB, p90=60, p91=1),
            disk(450, "/e", 500 * GIB, p92=1),
            filling(1),
            ["broker 2"],
            "copied to /d",
        ),
        (
            [50],
            disk(450, "/d", 500 * GIB, p90=60, p91=1),
            disk(20, "/e", p92=1),
            filling(1),
            ["broker 2"],
            "copied to /e",
        ),
        # Of a broker on the same disk that itself gets nothing.
        (
            [50],
            disk(90, "/d"),
            disk(450, "/e", 500 * GIB),
            filling(60, 10, source="/e", target="/d", broker=1),
            ["broker 2"],
            "50.0 GiB are being moved there",
        ),
        # Full already, and nothing comes to it.
        ([0], disk(90, "/d", 500 * GIB), disk(1, "/e"), filling(60), [], ""),
    ],
)
def test_what_moves_between_the_disks_of_a_broker_takes_its_room(
    coming, one, other, within, refused, words
):
    """A directory that is about to be filled is not free, although its broker tells so."""
    read = found(
        [(3,)] * len(coming),
        alive=(1, 2, 3),
        sizes={("t", number): size * GIB for number, size in enumerate(coming)},
        directories={1: [one], 2: [one, other]},
        within=within,
    )
    if (1, ("t", 90)) not in within:
        brokers = tuple(Broker(broker, f"h{broker}", 1) for broker in (1, 2, 3))
        read = dataclasses.replace(
            read, snapshot=dataclasses.replace(read.snapshot, brokers=brokers)
        )
    plan, moves = plan_reassignment(read, Wish(drain=frozenset({3}), onto=frozenset({2})))
    assert [each.subjects[0] for each in plan.refusals] == refused and moves.moves
    assert all(words in each.reason for each in plan.refusals)
    assert all(
        "spread_disks.yml -e cancel=true" in each.remedy
        for each in plan.refusals
        if "moved there" in words
    )


@pytest.mark.parametrize("left, refused", [(4, ["broker 2, 3"]), (5, [])])
def test_brokers_on_one_disk_share_its_room(left, refused):
    """As those of a local cluster do."""
    read = found(
        [(4,), (4,)],
        alive=(1, 2, 3, 4),
        sizes={("t", 0): 2 * GIB, ("t", 1): 2 * GIB},
        directories={broker: [disk(left)] for broker in (1, 2, 3, 4)},
    )
    plan, _moves = plan_reassignment(read, Wish(drain=frozenset({4}), onto=frozenset({2, 3})))
    assert [each.subjects[0] for each in plan.refusals] == refused


@pytest.mark.parametrize(
    "disks, refused",
    [
        # 50 GiB come to each of two directories, and both tell 60 GiB of room.
        (("", ""), ["broker 2"]),
        (("b1/8:1", "b1/8:17"), []),
        (("b1/8:1", "b1/8:1"), ["broker 2"]),
        # of one of them nobody knows
        (("b1/8:1", ""), ["broker 2"]),
    ],
)
def test_blank_disks_of_one_size_are_told_from_one_disk_where_that_is_known(disks, refused):
    one, other = (
        dataclasses.replace(disk(62, path), disk=each) for path, each in zip(("/d", "/e"), disks)
    )
    read = found(
        [(1,), (1,)],
        alive=(1, 2),
        sizes={("t", number): 50 * GIB for number in (0, 1)},
        directories={2: [one, other]},
    )
    plan, _moves = plan_reassignment(read, Wish(drain=frozenset({1})))
    assert [each.subjects[0] for each in plan.refusals] == refused


def test_brokers_on_one_disk_share_its_room_whatever_their_addresses_and_quotas():
    places = {2: disk(60), 3: dataclasses.replace(disk(40), total=90 * GIB), 4: disk(60)}
    directories = {
        broker: [dataclasses.replace(each, disk="b1/8:1")] for broker, each in places.items()
    }
    read = found(
        [(4,), (4,)],
        alive=(1, 2, 3, 4),
        sizes={("t", 0): 30 * GIB, ("t", 1): 30 * GIB},
        directories=directories,
    )
    brokers = tuple(Broker(broker, f"h{broker}", 1) for broker in (1, 2, 3, 4))
    read = dataclasses.replace(read, snapshot=dataclasses.replace(read.snapshot, brokers=brokers))
    plan, _moves = plan_reassignment(read, Wish(drain=frozenset({4}), onto=frozenset({2, 3})))
    assert [each.subjects[0] for each in plan.refusals] == ["broker 2, 3"]


@pytest.mark.parametrize("path", ["/d", "/d/", "/d//", "/e/../d"])
def test_a_known_disk_is_that_of_its_directory_however_it_is_written(path):
    known = [{"broker": 1, "path": path, "disk": "x"}, {"broker": 2, "path": "/e", "disk": "y"}]
    named = with_disks({1: [Directory("/d"), Directory("/e")], 2: [Directory("/e")]}, known)
    assert [each.disk for each in named[1]] == ["x", ""] and named[2][0].disk == "y"


def test_who_gets_nothing_needs_no_room_and_tells_nothing():
    read = found([(4,), (3,)], alive=(1, 2, 3, 4), directories={2: [disk(3)], 3: [disk(0)]})
    plan, moves = plan_reassignment(read, Wish(drain=frozenset({4}), onto=frozenset({2})))
    assert moves.moves and not plan.refusals and not plan.warnings
    nothing, _moves = plan_reassignment(read, Wish(drain=frozenset({1})))
    assert not nothing.refusals and not nothing.warnings


def test_one_replica_is_enough_for_a_minimum_of_one():
    read = found([(1, 2)], minimums={"t": 1})
    plan, _moves = plan_reassignment(read, Wish(replication_factor=1), CONSENTS)
    assert kinds(plan) == [("move", "t-0")] and plan.changes[0].note == "1 of 2 replicas stay"


def test_copies_go_with_consent_only_and_what_is_on_them_is_told():
    """As a lower min.insync.replicas needs it. Of a partition that has as few already nothing goes."""
    sizes = {("t", number): 2**30 for number in range(3)}
    read = found([(1, 2, 3), (1, 2), (1,)], sizes=sizes)
    plan, _moves = plan_reassignment(read, Wish(replication_factor=1))
    (refusal,) = plan.refusals
    assert refusal.check == "reassignment.fewer_replicas"
    assert "2 partitions, 2.0 GiB in all, would have fewer copies: t (3 to 1)" in refusal.reason
    assert "once the broker that has it is lost" in refusal.reason
    assert "allow: [fewer_replicas]" in refusal.remedy
    assert not plan_reassignment(read, Wish(replication_factor=1), CONSENTS)[0].refusals
    two = plan_reassignment(found([(1, 2, 3)]), Wish(replication_factor=2))[0].refusals[0].reason
    assert "1 partition, of unknown size, would" in two and "once 2 brokers are lost" in two


@pytest.mark.parametrize(
    "wish",
    [Wish(replication_factor=3), Wish(drain=frozenset({3})), Wish(spread=True)],
    ids=["more", "drain", "spread"],
)
def test_as_many_copies_or_more_need_no_consent(wish):
    plan, moves = plan_reassignment(found([(2, 3), (2, 3)], alive=(1, 2, 3, 4)), wish)
    assert moves.moves and not plan.refusals


READ, MOVE, ALL = {"DESCRIBE"}, {"DESCRIBE", "ALTER"}, {"DESCRIBE", "ALTER", "ALTER_CONFIGS"}


@pytest.mark.parametrize(
    "rights, throttled, words",
    [
        (READ, True, "Alter and AlterConfigs on the cluster and on the topics"),
        (READ, False, "grant it Alter on the cluster, or"),
        (MOVE, True, "Alter and AlterConfigs on the cluster and on the topics"),
        (MOVE, False, None),
        (ALL, True, None),
        (set(), True, None),  # the brokers do not tell
    ],
)
def test_who_may_not_is_told_before_anything_moves(rights, throttled, words):
    rights = frozenset(rights)
    read = found([(3,), (1,)], rights=rights)
    plan, _moves = plan_reassignment(read, Wish(drain=frozenset({3})), (), throttled)
    assert [words in each.remedy for each in plan.refusals] == ([True] if words else [])
    assert checks(plan) == (["reassignment.rights"] if words else [])
    nothing = plan_reassignment(read, Wish(drain=frozenset({2})), (), throttled)[0]
    assert not nothing.refusals and not nothing, "nothing is to be done"
    running = {("t", 0): Running((2, 3), (2,), (3,))}
    cancelled = plan_cancelling(found([(2, 3)], running=running, rights=rights))
    assert checks(cancelled) == (["reassignment.rights"] if rights == READ else [])


def test_another_order_of_replicas_needs_no_right_to_throttle():
    read = found([(1, 2), (1, 2)], alive=(1, 2), rights=frozenset(MOVE))
    plan, _moves = plan_reassignment(read, Wish(spread=True), (), True)
    assert kinds(plan) and not plan.refusals


def test_brokers_to_be_filled_alone_mean_a_spread():
    assert wish_from({**ASKED, "onto": [4]}).spread
    assert not wish_from({**ASKED, "onto": [4], "drain": [1]}).spread


@pytest.mark.parametrize(
    "asked, check",
    [
        ({}, "reassignment.nothing_asked"),
        ({"replication_factor": 0}, "options.range"),
    ],
)
def test_what_cannot_be_asked(asked, check):
    with pytest.raises(AdminError) as error:
        wish_from({**ASKED, **asked})
    assert error.value.problem.check == check


def test_rates():
    assert rate_from("50MiB") == 50 * 2**20
    assert rate_from("unlimited") == -1
    for unclear in ("50", "10G", "-5"):
        with pytest.raises(AdminError, match="throttle"):
            rate_from(unclear)
