# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drills: which there are, who is hit, what follows from what was seen, and the verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.filter.drills import (
    drill_left,
    drill_names,
    drill_plan,
    drill_row,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.cast import (
    announced,
    cast,
    partition_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    DRILLS,
    PREFIX,
    SHORT,
    THROWN_AWAY,
    chosen,
    drill_of,
    progress_line,
    short_names,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    GroupSeen,
    Moment,
    Seen,
    below_min_isr,
    clock_ahead_ms,
    committed_elsewhere,
    coordinated,
    course,
    group_seen,
    growth,
    handed_over_ms,
    lacking,
    longest_pause_ms,
    longest_since,
    pauses,
    per_bucket,
    percentile,
    spread,
    unprotected,
    watched_line,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.parts import play_part
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import (
    AS_EXPECTED,
    NOT_EXPECTED,
    OPEN,
    PASS,
    VIOLATION,
    drill_table,
    fault_of,
    interrupted_lines,
    judged,
    results,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError

SCHEMA = (
    Path(__file__).resolve().parents[5]
    / "roles/flow_validation/files/flow/present/verdict.schema.json"
)
NAMES = [each.name for each in DRILLS]
ALL_NAMES = [name for name in NAMES if name != "copies_leader_killed"]
SERVERS = (1, 2, 3)
VOTERS = (101, 102, 103)


def cast_of(name, ids=(1, 2, 3), controller=3):
    """The drill on a cluster in which nothing is missing."""
    ids = sorted(ids)
    leaders = {number: ids[number % len(ids)] for number in range(50)}
    if name == "controllers_quorum":
        return cast(drill_of(name), ids, 102, leaders, (), VOTERS)
    return cast(drill_of(name), ids, controller, leaders, SERVERS)


BROKER = [each.name for each in DRILLS if each.hits_broker]
PASSED = {"verdict": "pass", "summary": "all there", "counts": {"acked": 1000}}


# -- which


@pytest.mark.parametrize(
    "text, names",
    [
        ("leader_killed", ["leader_killed"]),
        ("consumer_closed, leader_killed,consumer_closed", ["consumer_closed", "leader_killed"]),
        ("all", [name for name in ALL_NAMES if name != "controllers_quorum"]),
        ("leader_killed,all", [name for name in ALL_NAMES if name != "controllers_quorum"]),
        # as results call them
        ("leader_stop,groups,leader_stopped", ["leader_stopped", "task_queue"]),
        ("zookeeper_kill,min_isr", ["below_min_isr", "zookeeper_quorum"]),
    ],
)
def test_names_are_taken_in_their_order_and_once(text, names):
    assert [each.name for each in chosen(text)] == names


@pytest.mark.parametrize("text", ["", " , ", "leader_kiled", "leader_killed,nothing", "None"])
def test_an_unknown_name_is_refused_with_all_that_there_are(text):
    with pytest.raises(ProblemError) as refused:
        chosen(text)
    told = str(refused.value)
    assert told.startswith("[drill.unknown]") and all(name in told for name in NAMES)


PROMISED = (
    "broadcast, leader_stop, leader_kill, follower_kill, controller_kill, consumer_kill, consumer_close,"
    " zookeeper_kill, coordinator_kill, task_queue, groups, commits, exactly_once, acks, recreate, flap,"
    " copies_leader_kill, growth, min_isr, controllers_kill"
).split(", ")


@pytest.mark.parametrize("name", PROMISED)
def test_each_promised_name_is_a_drill_or_says_which_playbook_shows_it(name):
    if name not in THROWN_AWAY:
        (drill,) = chosen(name, kraft=name == "controllers_kill", apart=True)
        assert name in short_names(drill.name)
        return
    with pytest.raises(ProblemError, match="drill.elsewhere") as refused:
        chosen(f"broadcast,{name}")
    told = str(refused.value)
    assert f"playbooks/guarantees.yml -e guarantees={THROWN_AWAY[name][0]}" in told


def test_every_drill_has_a_short_name_and_no_other_is_known():
    assert set(SHORT) | set(THROWN_AWAY) == set(PROMISED) and set(SHORT.values()) == set(NAMES)


def test_every_name_and_every_thing_that_is_made_is_a_drills_own():
    made = [name for each in DRILLS for name in (each.topic, *each.groups)]
    assert all(name.startswith(PREFIX) for name in made)
    assert len(set(NAMES)) == len(NAMES)
    topics = [each.topic for each in DRILLS]
    # `clean` takes NAME and NAME-... of a topic that is given
    assert not [(a, b) for a in topics for b in topics if a != b and b.startswith(f"{a}-")]


@pytest.mark.parametrize("params", [{"topic": "orders"}, {"topic": None, "groups": ["billing"]}])
def test_nothing_of_somebody_else_is_touched(params):
    with pytest.raises(ProblemError, match="drill.foreign"):
        play_part({}, {"part": "clean", "groups": [], "config": {}, "assignment": [], **params})


# -- who

CLUSTERS = st.sets(st.integers(0, 9), min_size=2, max_size=6).flatmap(
    lambda ids: st.tuples(st.just(ids), st.sampled_from(sorted(ids)))
)


@given(CLUSTERS, st.sampled_from(BROKER))
def test_the_victim_has_the_part_and_others_stay(cluster, name):
    ids, controller = cluster
    play = cast_of(name, ids, controller)
    (replicas,) = play.assignment
    assert play.victim in replicas and set(replicas) <= ids
    assert len(set(replicas)) == len(replicas) >= 2
    assert (replicas[0] == play.victim) == (play.drill.part == "leader")
    assert (play.victim == controller) == (play.drill.part == "controller")
    if name == "coordinator_lost":
        leaders = {number: sorted(ids)[number % len(ids)] for number in range(50)}
        assert leaders[partition_of(play.groups[0], 50)] == play.victim
        assert all(each.startswith(play.drill.topic) for each in play.groups)
    if name == "below_min_isr":
        assert play.min_isr == len(replicas)
    else:
        assert len(replicas) > play.min_isr, "it can be spared"


@given(CLUSTERS, st.sampled_from([name for name in NAMES if name not in BROKER]))
def test_without_a_victim_no_broker_is_touched(cluster, name):
    play = cast_of(name, *cluster)
    assert play.victim is None and all(set(each) <= cluster[0] for each in play.assignment)
    assert "touches no broker" in " ".join(announced(play, ""))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BROKER])
def test_without_a_victim_no_host_is_asked_whether_it_may_be_away(name):
    cluster = {"brokers": [{"id": 0}, {"id": 1}, {"id": 2}], "controller": 1}
    cluster["quorum"] = {"leader": 101, "voters": [{"id": each} for each in VOTERS]}
    hosts = {each: f"kafka-{each}" for each in (0, 1, 2, *VOTERS)}
    servers = {each: f"z-{each}" for each in SERVERS}
    plan = drill_plan(name, cluster, hosts, {}, servers)
    assert (plan["problem"], plan["host"]) == ("", "")


def test_the_broker_with_the_number_0_is_hit_where_it_is():
    cluster = {"brokers": [{"id": 0}, {"id": 1}, {"id": 2}], "controller": 0}
    plan = drill_plan("controller_killed", cluster, {0: "kafka-1", 1: "kafka-2", 2: "kafka-3"})
    assert (plan["victim"], plan["host"]) == (0, "kafka-1")


@pytest.mark.parametrize("name", BROKER)
def test_a_broker_alone_is_refused(name):
    with pytest.raises(ProblemError, match="drill.too_few_brokers"):
        cast(drill_of(name), [0], 0)
    plan = drill_plan(name, {"brokers": [{"id": 0}], "controller": 0}, {0: "kafka-1"})
    assert "drill.too_few_brokers" in plan["problem"] and not plan["hits_broker"]
    assert drill_row(plan)["verdict"] == OPEN


@pytest.mark.parametrize(
    "group, partition",
    # Math.abs(name.hashCode()) % 50, by Java
    [("", 0), ("a", 47), ("polygenelubricants", 0), ("kafkaops-drill-x", 21), ("größe", 7)],
)
def test_the_partition_of_a_groups_offsets(group, partition):
    assert partition_of(group, 50) == partition


def test_without_an_internal_topic_of_groups_nobody_coordinates():
    for leaders in ({}, {0: None}, {0: 7}):
        with pytest.raises(ProblemError, match="drill.no_coordinator"):
            cast(drill_of("coordinator_lost"), [1, 2, 3], 1, leaders)


@pytest.mark.parametrize(
    "servers, stopped", [((1, 2, 3), (3, 2)), ((4, 7, 9, 2, 1), (9, 7, 4)), (range(1, 5), (4, 3))]
)
def test_servers_stop_until_there_is_no_quorum(servers, stopped):
    play = cast(drill_of("zookeeper_quorum"), [1, 2, 3], 1, {}, servers)
    assert play.servers == stopped and len(play.assignment) == len(stopped) + 1


@pytest.mark.parametrize("members", [(), (1,), (1, 2)])
def test_too_few_servers_are_refused(members):
    count = rf"drill.too_few_servers.* it needs 3 {{}}, and {len(members)} are there"
    with pytest.raises(ProblemError, match=count.format("ZooKeeper servers")):
        cast(drill_of("zookeeper_quorum"), [1, 2, 3], 1, {}, members, VOTERS)
    with pytest.raises(ProblemError, match=count.format("controllers")):
        cast(drill_of("controllers_quorum"), [1, 2, 3], 1, {}, SERVERS, members)


@pytest.mark.parametrize(
    "voters, active, stopped",
    [
        ((101, 102, 103), 101, (103, 101)),
        ((101, 102, 103), 103, (102, 103)),
        ((104, 101, 102, 105, 103), 105, (104, 103, 105)),
        ((104, 101, 102, 105, 103), 101, (105, 104, 101)),
        # nobody knows who leads
        ((101, 102, 103), None, (103, 102)),
    ],
)
def test_controllers_stop_until_there_is_no_quorum_the_active_one_last(voters, active, stopped):
    cluster = {
        "brokers": [{"id": 1}, {"id": 2}, {"id": 3}],
        "controller": 2,
        "quorum": {"leader": active, "voters": [{"id": each} for each in voters]},
    }
    hosts = {each: f"node-{each}" for each in (1, 2, 3, *voters)}
    # ZooKeeper servers of such an id are others
    plan = drill_plan("controllers_quorum", cluster, hosts, {}, {101: "z-1"})
    assert plan["problem"] == "" and plan["victim"] is None and plan["member_role"] == "kafka"
    assert tuple(plan["servers"]) == stopped
    assert plan["server_hosts"] == [f"node-{each}" for each in stopped]
    assert len(plan["assignment"]) == len(stopped) + 1
    assert {each for replicas in plan["assignment"] for each in replicas} == {1, 2, 3}
    said = "\n".join(plan["lines"])
    assert f"stops controllers {', '.join(map(str, stopped))}, one after the other" in said
    seen, gone = good("controllers_quorum")[1], len(stopped)
    first, last = seen.measured["stages"]
    stages = [*({**first, "away": each} for each in range(1, gone)), {**last, "away": gone}]
    row = drill_row(plan, numbers(stages=stages)(seen).to_dict(), 100, PASSED)
    assert row["done"] == f"{gone} of {len(voters)} controllers gone, the last killed"
    assert row["verdict"] == AS_EXPECTED


# -- KRaft: a quorum of controllers, some of which are brokers


@pytest.mark.parametrize(
    "voters, leader, victim, apart",
    [
        # both on each node, and a leader that is another one than metadata name
        ((1, 2, 3), 2, 2, False),
        ((101, 102, 103), 102, 102, True),
        # one of the voters is a broker
        ((1, 101, 102), 1, 1, False),
        ((1, 101, 102), 101, 101, True),
    ],
)
def test_the_leader_of_the_quorum_is_the_controller(voters, leader, victim, apart):
    cluster = {
        "brokers": [{"id": 1}, {"id": 2}, {"id": 3}],
        "controller": 3,
        "quorum": {"leader": leader, "voters": [{"id": each} for each in voters]},
    }
    hosts = {each: f"node-{each}" for each in (1, 2, 3, *voters)}
    plan = drill_plan("controller_killed", cluster, hosts)
    assert (plan["victim"], plan["host"], plan["apart"]) == (victim, f"node-{victim}", apart)
    (replicas,) = plan["assignment"]
    assert len(set(replicas)) == 3 and set(replicas) <= {1, 2, 3} and replicas[0] != victim
    kind = "controller" if apart else "broker"
    assert f"kills {kind} {victim} (node-{victim}) with SIGKILL" in "\n".join(plan["lines"])
    # whoever else is hit is not the leader
    assert drill_plan("leader_killed", cluster, hosts)["victim"] == (2 if leader == 1 else 1)


@pytest.mark.parametrize("voters", [(1,), (1, 2)])
def test_a_quorum_that_does_not_outlive_its_leader_is_refused(voters):
    with pytest.raises(ProblemError, match=r"drill.too_few_servers.* 3 controllers"):
        cast(drill_of("controller_killed"), [1, 2, 3], 1, {}, (), voters)


def test_a_controller_apart_is_judged_by_the_election_alone():
    play = cast(drill_of("controller_killed"), [1, 2, 3], 102, {}, (), (101, 102, 103))
    everybody = frozenset(play.assignment[0])
    leader = play.assignment[0][0]
    before = Moment(900, leader, everybody, 102)

    def wrong(*moments):
        seen = Seen(9, 9, pause_ms=100, groups=(GroupSeen("g", 9),), moments=(before, *moments))
        return judged(play, "controller-2", seen, 1000, PASSED, "").wrong

    assert not wrong(Moment(1200, leader, everybody, 103))
    assert "no other controller was elected" in " ".join(wrong())
    assert "leadership moved" in " ".join(
        wrong(Moment(1200, play.assignment[0][1], everybody, 103))
    )


@pytest.mark.parametrize(
    "kraft, apart, text, check, instead",
    [
        (True, True, "zookeeper_quorum", "no_zookeeper", "run controllers_quorum"),
        (True, False, "leader_killed,zookeeper_kill", "no_zookeeper", "leave it out; controller_k"),
        (True, False, "all,controllers_kill", "", ""),
        (True, False, "leader_killed,controllers_kill", "no_controllers", "controller_killed"),
        (False, False, "controllers_quorum", "no_controllers", "run zookeeper_quorum"),
    ],
)
def test_who_is_not_there_is_not_hit(kraft, apart, text, check, instead):
    if not check:
        # what `all` leaves out nobody has asked for
        assert not any(each.hits_quorum for each in chosen(text, kraft, apart))
        return
    with pytest.raises(ProblemError, match=rf"\[drill.{check}\] drill={text}: .*{instead}"):
        chosen(text, kraft, apart)


@pytest.mark.parametrize(
    "kraft, apart, left_out",
    [
        (False, False, {"controllers_quorum"}),
        (True, False, {"zookeeper_quorum", "controllers_quorum"}),
        (True, True, {"zookeeper_quorum"}),
    ],
)
def test_all_are_those_that_hit_what_is_there(kraft, apart, left_out):
    found = chosen("all", kraft, apart)
    assert [each.name for each in found] == [name for name in ALL_NAMES if name not in left_out]
    # in a play of their own
    assert [each.hits_quorum for each in found] == sorted(each.hits_quorum for each in found)
    told = drill_names("leader_killed,all", kraft, apart)
    assert told["problem"] == ""
    assert told["quorum"] == [each.name for each in found if each.hits_quorum]


def test_who_and_what_is_said_beforehand():
    brokers = [{"id": 1}, {"id": 2}, {"id": 3}]
    plan = drill_plan("leader_killed", {"brokers": brokers, "controller": 1}, {2: "kafka-2"})
    assert (plan["victim"], plan["host"], plan["assignment"]) == (2, "kafka-2", [[2, 3, 1]])
    said = "\n".join(plan["lines"])
    for text in ("S23", "kills broker 2 (kafka-2) with SIGKILL", plan["topic"], "nothing lost"):
        assert text in said
    assert json.loads(json.dumps(plan)) == plan


def brokers_have(replicas, min_isr, unclean):
    """Settings of two brokers, as kafka_configs_info returns them; a pair is one for each."""
    given = {
        "default.replication.factor": replicas,
        "min.insync.replicas": min_isr,
        "unclean.leader.election.enable": unclean,
    }
    return [
        {"broker": broker, "name": name, "value": value[broker] if len(value) == 2 else value[0]}
        for name, value in given.items()
        for broker in (0, 1)
    ]


@pytest.mark.parametrize(
    "settings, has, otherwise",
    [
        (brokers_have(["3"], ["2"], ["false"]), "3 replicas, min ISR 2, unclean election off", ""),
        (
            brokers_have(["1"], ["1"], ["true"]),
            "3 replicas, min ISR 2, unclean election on",
            "replication factor 1, min ISR 1, unclean election on",
        ),
        (brokers_have(["3"], ["2", "1"], ["false"]), "3 replicas, min ISR 2", "min ISR 1 or 2"),
        (
            brokers_have(["3"], ["2"], ["true", "false"]),
            "3 replicas, min ISR 2)",
            "unclean election off or on",
        ),
        ([], "3 replicas, min ISR 2)", "unknown"),
    ],
)
def test_what_the_topic_has_that_others_have_not_is_said_beforehand(settings, has, otherwise):
    cluster = {"brokers": [{"id": 1}, {"id": 2}, {"id": 3}], "controller": 1}
    plan = drill_plan("leader_killed", cluster, {2: "kafka-2"}, {}, {}, settings)
    said = "\n".join(plan["lines"])
    assert f"load: topic kafkaops-drill-leader-killed ({has}" in said
    assert (f"the brokers' defaults are {otherwise}" in said) if otherwise else "yours" not in said
    # whoever opens page or JSON later has not seen that
    row = drill_row(plan, good("leader_killed")[1].to_dict(), 100, PASSED)
    assert row["durability"].startswith(has.rstrip(")")) and row["otherwise"] in said
    assert bool(row["otherwise"]) is bool(otherwise)
    (case,) = results({"cluster": "local", "drills": [row]}, "x")["cases"]
    assert (case["durability"], case["otherwise"]) == (row["durability"], row["otherwise"])
    twice = [line for line in drill_table([row, row])["lines"] if "yours may fare" in line]
    assert len(twice) == bool(otherwise)
    assert not twice or twice[0].startswith("leader_killed, leader_killed: ")


# -- what follows


@pytest.mark.parametrize(
    "times, pause", [([], None), ([5], None), ([10, 20, 80, 90], 60), ([90, 10], 80)]
)
def test_the_longest_pause(times, pause):
    assert longest_pause_ms(times) == pause


@pytest.mark.parametrize(
    "times, ended, found",
    [
        ([], 50, []),
        # nothing came since
        ([5], 50, [(5, 50)]),
        ([10, 20, 80, 90], 90, [(20, 80), (80, 90)]),
        # of two that are as long, the later one
        ([0, 40, 50, 90], 95, [(50, 90), (90, 95)]),
        # what came after the end came late: the end does not divide the time
        ([0, 100], 60, [(0, 100)]),
    ],
)
def test_pauses_are_those_that_no_later_one_exceeds(times, ended, found):
    assert pauses(times, ended) == found


@given(st.lists(st.integers(1, 500), max_size=30), st.integers(0, 600), st.integers(0, 600))
def test_the_longest_pause_since_a_moment(times, ended, since):
    ordered = sorted(times)
    if ordered and ended > ordered[-1]:
        ordered.append(ended)
    pairs = [(a, b) for a, b in zip(ordered, ordered[1:]) if b > since]
    assert longest_since(pauses(times, ended), since) == max(
        (b - a for a, b in pairs), default=None
    )


@given(st.lists(st.integers(10**12, 10**12 + 5000), max_size=50))
def test_no_acknowledgement_is_left_out_of_the_timeline(times):
    told = per_bucket(times)
    assert sum(told["records"]) == len(times)
    for each in times:
        assert told["records"][(each - told["start_ms"]) // told["bucket_ms"]]


def test_what_came_to_a_group():
    sent = {"1": 100, "2": 200, "10": 300, "3": 400}
    seen = group_seen("g", sent, [("1", 150), ("1", 900), ("3", 1400), ("unknown", 99999)])
    assert (seen.missing, seen.repeated, seen.delay_ms) == (("2", "10"), 1, 1000)
    # what came, and what was never acknowledged, is not late
    there = {"1", "10", "unknown"}
    late = group_seen("g", sent, [("1", 150), ("1", 900), ("3", 1400)], there)
    assert (late.missing, late.late, seen.late) == (("2",), 1, 0)
    # where not all could be looked at
    some = group_seen("g", sent, [("1", 150), ("3", 1400)], {"10"}, whole=False)
    assert (some.missing, some.late, some.unknown) == ((), 1, 1)


@pytest.mark.parametrize(
    "values, percent, found",
    [([], 50, 0), ([7], 1, 7), ([5, 1, 3], 50, 3), (range(1, 101), 99, 99), ([1, 2], 99, 2)],
)
def test_percentiles(values, percent, found):
    assert percentile(values, percent) == found


@pytest.mark.parametrize(
    "samples, rate",
    [
        ([], None),
        ([(0, 5, 2)], None),
        ([(0, 9, 1), (1000, 5, 2), (2000, 4, 2), (5000, 25, 2), (6000, 0, 3)], 5.0),
    ],
)
def test_how_fast_a_backlog_grows_is_by_the_number_of_consumers(samples, rate):
    assert growth(samples, 2) == rate


def test_how_records_lie():
    lay = spread(
        [("1", 0, "a"), ("3", 1, "b"), ("2", 1, "b"), ("4", 2, "a"), ("5", 2, ""), ("6", 2, "")]
    )
    assert (lay.keys, lay.split, lay.disordered, lay.unkeyed) == (2, 1, 1, {2: 2})


@pytest.mark.parametrize(
    "places, expected",
    [
        ([], None),
        ([(0, 50), (1, 150)], None),  # 0 came before the fault only
        ([(0, 120), (1, 150), (0, 160)], 50),
    ],
)
def test_handed_over_is_when_all_partitions_have_a_record(places, expected):
    assert handed_over_ms({0, 1}, places, 100) == expected


def moments(*steps):
    """Moments of (at_ms, leader, isr, controller)."""
    return tuple(
        Moment(at, leader, frozenset(isr), controller) for at, leader, isr, controller in steps
    )


@pytest.mark.parametrize(
    "acknowledged, refused, count",
    [
        ([(300, 310)], [], 0),  # the ISR may have been full: nobody was refused
        ([(300, 310), (400, 410)], [250, 350, 500], 2),
        ([(240, 260), (90, 260), (490, 510)], [250, 500], 0),  # begun before, or over afterwards
        ([(700, 710)], [650, 800], 0),  # it was full
    ],
)
def test_what_is_accepted_between_refusals_is_unprotected(acknowledged, refused, count):
    seen = moments((0, 1, {1, 2}, 3), (200, 1, {1}, 3), (600, 1, {1, 2}, 3))
    records = {str(number): pair for number, pair in enumerate(acknowledged)}
    assert unprotected(records, refused, seen, 2) == count
    assert unprotected(records, refused, seen, 1) == 0


@pytest.mark.parametrize(
    "acknowledged, refused, unknown, came, told",
    [
        # refused at 250 and 500, while the ISR was too small from 200 to 600
        ({"1": (90, 95), "2": (610, 620)}, [250, 500], [], {"1": 300}, (1, 1, 1, 0)),
        # it came when the replica was back
        ({"1": (90, 95), "2": (610, 620)}, [250, 500], [], {"1": 640}, (1, 0, 1, 0)),
        ({"1": (90, 95)}, [250, 500], [], {}, (1, 0, 0, 0)),
        # accepted between two refusals: that is neither before nor afterwards
        ({"1": (300, 310)}, [250, 500], [], {"1": 320}, (0, 0, 0, 0)),
        # nobody has said what became of them: excused while a replica was away, and not before or afterwards
        ({}, [250], [(150, 210), (300, 99999), (90, 120), (610, 99999)], {}, (0, 0, 0, 2)),
        ({"1": (90, 95)}, [], [], {"1": 300}, (0, 0, 0, 0)),
    ],
)
def test_what_goes_on_below_min_isr(acknowledged, refused, unknown, came, told):
    seen = moments((0, 1, {1, 2}, 3), (200, 1, {1}, 3), (600, 1, {1, 2}, 3))
    found = below_min_isr(acknowledged, refused, unknown, list(came.items()), seen, {1, 2})
    assert tuple(found[name] for name in ("there", "read", "again", "unknown")) == told


@pytest.mark.parametrize(
    "there, ahead",
    [(1000, 0), (1400, 0), (2000, 0), (61_500, 60_000), (500, -1000), (2001, 501), (999, -501)],
)
def test_a_clock_is_corrected_only_where_it_cannot_be_right(there, ahead):
    assert clock_ahead_ms(1000, there, 2000) == ahead


def test_how_it_went():
    went = course(
        moments(
            (0, 1, {1, 2, 3}, 3),
            (110, None, {1, 2, 3}, 3),
            (150, 2, {2, 3}, 3),
            (400, 2, {1, 2, 3}, 3),
            (500, 2, {2, 3}, 3),  # it flaps
            (700, 2, {1, 2, 3}, 3),
            (900, 1, {1, 2, 3}, 3),
        ),
        (1, 2, 3),
        100,
    )
    assert (went.leader_before, went.led_by, went.led_ms, went.leader_after) == (1, (2,), 50, 1)
    assert (went.smallest_isr, went.shrank_ms, went.full_ms) == (2, 50, 600)
    assert went.full_at_end and went.elected_ms is None and went.controlled_by == ()


# -- the verdict

GROUPS = (GroupSeen("one", 100, delay_ms=300), GroupSeen("two", 100, delay_ms=400))


REPEATED = replace(GROUPS[0], repeated=20)
# the coordinator that coordinator_lost kills
HIT = cast_of("coordinator_lost").victim
LAY = {"keys": 12, "keys_split": 0, "keys_disordered": 0}
# What the drills that touch no broker measure when all goes well: (groups, numbers).
MEASURED = {
    "task_queue": (
        GROUPS,
        {
            "growth": {"1": 2.5, "2": 0.1, "3": -2.4, "4": -1.0},
            "consumers": 4,
            "partitions": 3,
            "idle": 1,
            "unkeyed": [80, 90, 70],
            **LAY,
        },
    ),
    "commit_modes": (
        (
            replace(REPEATED, name="x-automatic"),
            replace(REPEATED, name="x-after"),
            replace(GROUPS[0], name="x-before", skipped=("7", "8")),
        ),
        {"modes": ["automatic", "after", "before"], "batch": 20},
    ),
    "exactly_once": (
        (replace(GROUPS[0], name="x-transactional"), replace(REPEATED, name="x-plain")),
        {
            "kinds": ["transactional", "plain"],
            "errors": [[], []],
            "aborted": 20,
            "batch": 20,
        },
    ),
    "copies_leader_killed": (
        (
            GROUPS[0],
            replace(GROUPS[0], name="x-transactional"),
            replace(GROUPS[0], name="x-plain", repeated=3),
        ),
        {
            "aborted": 7,
            "copies": [
                {
                    "kind": kind,
                    "commits": 40,
                    "last_commit_ms": 2100,
                    "errors": [["aborted", 2, "why"], ["renewed", 1, "another"]],
                    "trouble": "",
                    "pauses": [[90, 1400], [1500, 2100]],
                }
                for kind in ("transactional", "plain")
            ],
        },
    ),
    **{
        name: (GROUPS, {"example": {"lines": 41, "code": 0, "said": "", "missing": 0, "late": 0}})
        for name in ("leader_killed", "leader_stopped")
    },
    "coordinator_lost": (
        GROUPS,
        {
            "commit_pause_ms": [900, 60],
            "commit_pauses": [[[100, 1000]], [[60, 120]]],
            "coordinators": [
                [50, HIT, 3, [HIT, 4, 5], 3],
                [150, None, 3, [HIT, 4, 5], 0],
                [200, 4, 3, [4, 5], 4],
                [300, 4, 3, [HIT, 4, 5], 2],
                [400, HIT, 3, [HIT, 4, 5], 9],
            ],
        },
    ),
    "below_min_isr": (GROUPS, {"below": {"there": 20, "read": 20, "again": 9, "unknown": 0}}),
    **{
        name: (
            GROUPS,
            {
                "stages": [
                    {"away": 1, "topic_ms": 300, "leader_ms": 200, "back_ms": 30000, "trouble": ""},
                    {
                        "away": 2,
                        "topic_ms": 15500,
                        "leader_ms": 16000,
                        "back_ms": 15000,
                        "trouble": "",
                    },
                ]
            },
        )
        for name in ("zookeeper_quorum", "controllers_quorum")
    },
    "partitions_grown": (
        GROUPS,
        {
            "growth_before": 6.0,
            "growth_after": -6.5,
            "lag": 60,
            "partitions": [2, 4],
            **LAY,
            "keys_split": 9,
        },
    ),
}


def good(name):
    """(Cast, Seen, when) of a drill that goes as it should."""
    play = cast_of(name)
    replicas = set(play.assignment[0])
    leader, rest = play.assignment[0][0], replicas - {play.victim}
    other = min(rest) if play.drill.part == "leader" else leader
    controller = 2 if play.drill.part == "controller" else 3
    seen = Seen(
        sent=100,
        acknowledged=100,
        pause_ms=900,
        groups=GROUPS,
        moments=moments(
            (0, leader, replicas, 3),
            (200, other, rest, controller),
            (900, leader, replicas, controller),
        ),
    )
    if name == "consumer_killed":
        seen = replace(seen, pause_ms=9500)
    if name == "below_min_isr":
        seen = replace(seen, refused={"NOT_ENOUGH_REPLICAS": 9})
    if not play.drill.hits_broker:
        seen = replace(seen, moments=())
    groups, measured = MEASURED.get(name, (seen.groups, {}))
    return play, replace(seen, groups=groups, measured=measured)


@pytest.mark.parametrize("name", NAMES)
def test_a_drill_that_goes_well_is_as_expected(name):
    play, seen = good(name)
    row = judged(play, "kafka-1", seen, 100, PASSED)
    assert (row.verdict, row.wrong, row.open) == (AS_EXPECTED, (), ())
    assert Seen.from_dict(json.loads(json.dumps(seen.to_dict()))) == seen


def without(seen, *numbers):
    return replace(seen, moments=tuple(seen.moments[number] for number in numbers))


LOST = (GroupSeen("one", 99, ("7",)), GROUPS[1])


def lacks(seen):
    return replace(seen, groups=tuple(replace(each, missing=("7",)) for each in seen.groups))


def of_group(number, **spoiled):
    """Spoil what came to one group."""

    def spoil(seen):
        groups = list(seen.groups)
        groups[number] = replace(groups[number], **spoiled)
        return replace(seen, groups=tuple(groups))

    return spoil


def numbers(**spoiled):
    """Spoil what was measured."""
    return lambda seen: replace(seen, measured={**seen.measured, **spoiled})


def stage(number, **spoiled):
    """Spoil what happened while so many and one more members of a quorum were away."""

    def spoil(seen):
        stages = [dict(each) for each in seen.measured["stages"]]
        stages[number].update(spoiled)
        return numbers(stages=stages)(seen)

    return spoil


def copies(number, **spoiled):
    """Spoil what a program did that copies."""

    def spoil(seen):
        told = [dict(each) for each in seen.measured["copies"]]
        told[number].update(spoiled)
        return numbers(copies=told)(seen)

    return spoil


def commit_pause(found):
    """Spoil when the group whose coordinator is lost did not commit."""
    return numbers(commit_pauses=[found], commit_pause_ms=[longest_since(found, 0)])


def coordinated_by(others, replicas=3):
    """Spoil who has coordinated the group: broker 4 after the fault, (when, in sync, commits) of each change."""
    found = [[50, HIT, replicas, [HIT, 4], 3], [150, None, replicas, [HIT, 4], 0]]
    found += [[at_ms, 4, replicas, in_sync, commits] for at_ms, in_sync, commits in others]
    return numbers(coordinators=[*found, [30000, HIT, replicas, [HIT, 4], 9]])


def below(**spoiled):
    """Spoil what went on while min ISR wanted another replica."""
    return lambda seen: numbers(below={**seen.measured["below"], **spoiled})(seen)


EXAMPLE = {"lines": 41, "code": 0, "said": "40 of 41", "missing": 0, "late": 0}


def example(found):
    """Spoil what became of the lines of examples/producer.py."""
    return numbers(example=found)


def grew(**rates):
    """Spoil how the backlog went with so many consumers."""
    named = {"one": "1", "two": "2", "three": "3"}
    told = {named[each]: rate for each, rate in rates.items()}
    return lambda seen: numbers(growth={**seen.measured["growth"], **told})(seen)


WRONG = [
    *((name, lambda seen: lacks(seen), "never came to ") for name in NAMES),
    *((name, lambda seen: replace(seen, acknowledged=0), "no record was") for name in NAMES),
    *(
        (name, lambda seen: replace(seen, pause_ms=10**6), "is longer than")
        for name in NAMES
        if name not in ("coordinator_lost", "copies_leader_killed")
    ),
    ("copies_leader_killed", copies(1, pauses=[[99, 10**6]]), "is longer than"),
    (
        "copies_leader_killed",
        copies(0, trouble="KafkaException: no"),
        "with transactions has ended: ",
    ),
    ("copies_leader_killed", of_group(1, repeated=2), "2 records were written twice in spite of"),
    ("copies_leader_killed", of_group(1, missing=("7",)), "never came to x-transactional: 7"),
    ("copies_leader_killed", of_group(2, missing=("7",)), "never came to x-plain: 7"),
    ("coordinator_lost", commit_pause([[99, 10**6]]), "is longer than"),
    ("coordinator_lost", commit_pause([]), "never committed"),
    *((name, lambda seen: without(seen, 0), "never shrank") for name in BROKER),
    *((name, lambda seen: without(seen, 0, 1), "not full again") for name in BROKER),
    *((name, lambda seen: replace(seen, refused={"MSG_TIMED_OUT": 1}), "") for name in NAMES),
    ("leader_killed", example(None), "examples/producer.py has written nothing"),
    ("leader_killed", example({**EXAMPLE, "lines": 0}), "examples/producer.py has written nothing"),
    ("leader_stopped", example({**EXAMPLE, "code": 1}), "ended with 1: 40 of 41"),
    ("leader_stopped", example({**EXAMPLE, "missing": 2}), "2 lines of examples/producer.py never"),
    (
        "leader_stopped",
        example({**EXAMPLE, "late": 2}),
        "producer.py did not come to every group in",
    ),
    (
        "follower_killed",
        of_group(1, late=4),
        "4 acknowledged records did not come to two in time; the",
    ),
    ("leader_killed", lambda seen: without(seen, 0, 2), "nobody else has led"),
    ("leader_stopped", lambda seen: without(seen, 1), "did not lead before"),
    ("leader_stopped", lambda seen: without(seen, 0, 1), "does not lead again"),
    ("controller_killed", lambda seen: without(seen, 0), "no other controller"),
    ("below_min_isr", lambda seen: replace(seen, refused={}), "no write was refused"),
    ("below_min_isr", lambda seen: replace(seen, unprotected=2), "2 writes were accepted"),
    ("below_min_isr", below(again=0), "no write was accepted again afterwards"),
    ("below_min_isr", below(read=3), "3 of 20 records could be read while a replica was away"),
    # internal topics with one replica: the group waits for the one broker
    (
        "coordinator_lost",
        numbers(coordinators=[[50, 4, 1, [4], 9], [150, None, 1, [4], 0], [400, None, 1, [4], 0]]),
        "nobody else has coordinated the group: its offsets in __consumer_offsets have 1 replica",
    ),
    ("coordinator_lost", numbers(coordinators=[]), "nobody else has coordinated"),
    (
        "coordinator_lost",
        coordinated_by(others=[(5000, [4, 5], 0), (7000, [HIT, 4, 5], 0)]),
        "has not committed while another broker coordinated it",
    ),
    # as min ISR 2 of two replicas has it: the next commit comes when the lost one is in sync again
    (
        "coordinator_lost",
        coordinated_by(others=[(200, [4], 0), (20700, [HIT, 4], 40)], replicas=2),
        "while its coordinator was away, for 20.5 s with 1 of 2 replicas of its offsets in sync",
    ),
    ("consumer_killed", lambda seen: replace(seen, pause_ms=None), "never had all"),
    (
        "consumer_killed",
        lambda seen: replace(seen, pause_ms=6900),
        "took over after 6.9 s, without",
    ),
    ("consumer_closed", lambda seen: replace(seen, pause_ms=10000), "is longer than 8 s"),
    (
        "consumer_closed",
        lambda seen: replace(seen, groups=(replace(GROUPS[0], repeated=3),)),
        "3 records came twice",
    ),
    ("broadcast", of_group(1, repeated=2), "2 records came to two twice"),
    ("task_queue", grew(one=0.0), "did not grow with one consumer"),
    ("task_queue", grew(one=None), "did not grow with one consumer"),
    ("task_queue", grew(two=5.0), "did not stay with two consumers: +5.0 a second"),
    ("task_queue", grew(two=-1.5), "did not stay with two consumers: -1.5 a second"),
    ("task_queue", grew(two=None), "did not stay with two consumers: - a second"),
    ("task_queue", grew(three=0.5), "did not drain with 3 consumers"),
    ("task_queue", numbers(idle=0), "0 of 4 consumers were idle"),
    ("task_queue", of_group(0, repeated=1), "1 tasks were done twice"),
    ("task_queue", numbers(keys_split=2), "2 keys lay in more than one partition"),
    ("task_queue", numbers(keys_disordered=2), "2 keys came out of order"),
    ("commit_modes", of_group(1, skipped=("4",)), "although committed afterwards"),
    ("commit_modes", of_group(1, repeated=0), "so nothing was tried"),
    ("commit_modes", of_group(2, repeated=1), "although committed before"),
    ("commit_modes", of_group(2, skipped=()), "so nothing was tried"),
    ("exactly_once", of_group(0, repeated=1), "twice in spite of transactions"),
    ("exactly_once", of_group(1, repeated=0), "so nothing was tried"),
    ("exactly_once", numbers(aborted=0), "no transaction was aborted"),
    ("partitions_grown", lambda seen: replace(seen, pause_ms=None), "were not worked at"),
    ("partitions_grown", numbers(growth_after=7.0), "did not go better"),
    ("partitions_grown", numbers(growth_after=1.0), "did not drain"),
    *(
        (name, spoil, told)
        for name in ("zookeeper_quorum", "controllers_quorum")
        for spoil, told in (
            (stage(0, topic_ms=31000), "a topic took 31.0 s although a quorum was"),
            # whatever came later, and however long the member was away
            (stage(0, leader_ms=11000), "a leader change took 11.0 s although"),
            (stage(0, topic_ms=110000, back_ms=200000), "a topic took 110.0 s"),
            (stage(0, leader_ms=None), "a leader change never happened"),
            (stage(1, leader_ms=400), "a leader change happened with 2 away"),
            (stage(1, topic_ms=None), "a topic never happened"),
            (stage(1, back_ms=None), "so there was a quorum"),
            (numbers(stages=[]), "nothing was tried"),
        )
    ),
]


@pytest.mark.parametrize("name, spoil, told", WRONG)
def test_what_is_not_as_expected_is_named(name, spoil, told):
    play, seen = good(name)
    row = judged(play, "kafka-1", spoil(seen), 100, PASSED)
    assert row.verdict == NOT_EXPECTED and any(told in text for text in row.wrong), row


@pytest.mark.parametrize(
    "others",
    [
        # while it was away, and as soon as it was in sync again
        [(200, [4], 1), (12700, [HIT, 4], 0)],
        # it was back before the group had found the other one
        [(200, [4], 0), (9700, [HIT, 4], 1)],
        # a fail-over by the session, and a machine that is busy
        [(18200, [4], 0), (29700, [HIT, 4], 1)],
        [(200, [HIT, 4], 1)],
    ],
)
def test_a_group_that_commits_under_another_coordinator_is_as_expected(others):
    play, seen = good("coordinator_lost")
    row = judged(play, "kafka-1", coordinated_by(others)(seen), 100, PASSED)
    assert (row.verdict, row.wrong) == (AS_EXPECTED, ())


def test_commits_are_counted_for_whom_they_were_made_under():
    changes = [
        (50, 1, 3, frozenset({1, 4})),
        (150, None, 3, frozenset({4})),
        (200, 4, 3, frozenset({4})),
    ]
    assert coordinated(changes, [300, 60, 150, 40, 220]) == [
        [50, 1, 3, [1, 4], 2],
        [150, None, 3, [4], 0],
        [200, 4, 3, [4], 2],
    ]
    assert coordinated([], [1]) == []


@pytest.mark.parametrize(
    "committed, elsewhere",
    [([], False), ([60, 140], False), ([60, 180], False), ([60, 250], True), ([60, 350], False)],
)
def test_a_commit_under_another_coordinator_is_told_while_it_lasts(committed, elsewhere):
    """The playbook waits for it before it gives leadership back."""
    every = frozenset({1, 4})
    who = [(50, 1, 2, every), (150, None, 2, every), (200, 4, 2, every), (300, 1, 2, every)]
    assert committed_elsewhere(who, committed) is elsewhere
    assert not committed_elsewhere([], committed)


def test_programs_that_copy_are_told_with_what_they_did_about_errors():
    play, seen = good("copies_leader_killed")
    row = judged(play, "kafka-1", seen, 1450, PASSED, before_ms=150)
    assert (
        "with transactions: 0 lost, 0 twice, no commit for 1.3 s; aborted 2 times" in row.observed
    )
    assert "began with a new producer 1 time, first after another" in row.observed
    assert "at least once: 0 lost, 3 twice" in row.observed and "7 aborted ones" in row.observed
    assert row.pause_ms == 1310 and "; 3 twice" not in row.observed and "delay" not in row.observed
    # before the fault: what a load that has just begun does
    assert judged(play, "kafka-1", seen, 1450, PASSED).pause_ms == 600


def test_processes_that_copy_are_told_with_what_they_did_about_errors():
    play, seen = good("exactly_once")
    seen = numbers(errors=[[], [["again", 900, "why"]]])(seen)
    row = judged(play, "kafka-1", seen, 100, PASSED)
    assert "twice; wrote again 900 times, first after why" in row.observed
    assert "wrote again" not in row.observed.split("plain:")[0]


@pytest.mark.parametrize("fault_ms", [-5000, 100, 190, 201, 650, 5000])
@pytest.mark.parametrize("name", BROKER)
def test_what_was_before_is_by_the_clock_of_who_has_seen_it(name, fault_ms):
    """The time of the fault is that of the host that was hit, whose clock is ahead, or behind."""
    play, seen = good(name)
    at = 10**6
    moved = tuple(replace(each, at_ms=each.at_ms + at) for each in seen.moments)
    who = [[when + at, *more] for when, *more in seen.measured.get("coordinators", [])]
    seen = replace(numbers(coordinators=who)(seen), moments=moved)
    row = judged(play, "kafka-1", seen, at + fault_ms, PASSED, before_ms=at + 120)
    assert (row.verdict, row.wrong) == (AS_EXPECTED, ())
    if play.drill.part == "leader":
        # no time is negative, and none is longer than since nothing had been done
        led = float(row.observed.split("led after ")[1].split(" s")[0])
        assert 0 <= led <= 0.1


@pytest.mark.parametrize("name", ["zookeeper_quorum", "controllers_quorum"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_leader_change_that_had_happened_before_it_was_asked_for_is_open(name, number):
    """Kafka gives leadership back by itself now and then: with a quorum it shows nothing, and without it had one."""
    play, seen = good(name)
    row = judged(play, "", stage(number, led_already=True, leader_ms=None)(seen), 100, PASSED)
    assert (row.verdict, row.wrong) == (OPEN, ())
    assert f"no leader change could be tried with {number + 1} away" in row.open[0]
    assert "leader not tried" in row.observed and "never" not in row.observed


@pytest.mark.parametrize("name", ["leader_killed", "zookeeper_quorum", "coordinator_lost"])
def test_a_pause_before_the_fault_is_none_of_it(name):
    play, seen = good(name)
    at, found = 50000, [[0, 40000], [49980, 51180]]
    measured = {"pauses": found, "commit_pauses": [found], "commit_pause_ms": [40000]}
    moved = tuple(replace(each, at_ms=each.at_ms + at - 100) for each in seen.moments)
    who = [[when + at - 100, *more] for when, *more in seen.measured.get("coordinators", [])]
    seen = replace(numbers(coordinators=who, **measured)(seen), moments=moved, pause_ms=40000)
    row = judged(play, "kafka-1", seen, at, PASSED)
    assert (row.pause_ms, row.verdict) == (1200, AS_EXPECTED), row


def test_what_is_late_is_not_called_lost():
    play, seen = good("leader_killed")
    told = judged(play, "kafka-1", of_group(1, late=4)(seen), 100, PASSED).observed
    assert "0 of 100 lost; 4 late" in told
    assert "late" not in judged(play, "kafka-1", seen, 100, PASSED).observed


@pytest.mark.parametrize("name", NAMES)
def test_what_could_not_be_looked_for_is_open(name):
    play, seen = good(name)
    # of commits one group has lost some, as it should
    row = judged(play, "kafka-1", of_group(0, unknown=4)(seen), 100, PASSED)
    assert (row.verdict, row.wrong) == (OPEN, ())
    assert "4 acknowledged records did not come to" in row.open[0] and "4 unknown" in row.observed
    spoiled = of_group(0, unknown=4)(seen)
    assert Seen.from_dict(json.loads(json.dumps(spoiled.to_dict()))) == spoiled


def test_lines_that_could_not_be_looked_for_are_open():
    play, seen = good("leader_killed")
    row = judged(play, "kafka-1", example({**EXAMPLE, "unknown": 2})(seen), 100, PASSED)
    assert (row.verdict, row.wrong) == (OPEN, ())
    assert "2 lines of examples/producer.py did not come" in row.open[0]


@pytest.mark.parametrize("name, number", [("commit_modes", 1), ("exactly_once", 0)])
def test_work_that_was_not_done_in_time_is_not_called_lost(name, number):
    play, seen = good(name)
    row = judged(play, "", of_group(number, late=165)(seen), 0, PASSED)
    assert row.verdict == NOT_EXPECTED and len(row.wrong) == 1
    assert "165 acknowledged records did not come to x-" in row.wrong[0]
    assert "0 lost" in row.observed and "165 late" in row.observed


def test_what_a_group_has_committed_without_working_at_it_is_not_lost():
    """It is in the topic, and other groups have it."""
    _play, seen = good("commit_modes")
    told = seen.to_dict()
    assert (seen.lost, told["lost"], told["late"]) == (0, 0, 0)
    assert told["groups"][2]["skipped"] == ["7", "8"]


def test_nothing_is_said_to_have_been_tried_where_it_is_not_known():
    play, seen = good("commit_modes")
    row = judged(play, "", of_group(2, skipped=(), unknown=3)(seen), 0, PASSED)
    assert (row.verdict, row.wrong) == (OPEN, ())


def test_timeouts_while_a_replica_was_away_are_no_failure():
    play, seen = good("below_min_isr")
    refused = {**seen.refused, "MSG_TIMED_OUT": 4}
    for excused, verdict in ((4, AS_EXPECTED), (3, NOT_EXPECTED)):
        spoiled = below(unknown=excused)(replace(seen, refused=refused))
        assert judged(play, "kafka-1", spoiled, 100).verdict == verdict


@pytest.mark.parametrize("stages", [0, 1])
def test_what_a_quorum_was_not_yet_lost_for_is_open(stages):
    """The last server was not stopped: what happened meanwhile had a quorum."""
    play, seen = good("zookeeper_quorum")
    partial = numbers(stages=[*seen.measured["stages"]][:stages])(seen)
    row = judged(play, "", partial, 0, PASSED, "the server was not stopped")
    assert (row.verdict, row.wrong) == (OPEN, ()) and "waited" not in row.observed
    late = stage(0, topic_ms=31000)(numbers(stages=[seen.measured["stages"][0]])(seen))
    row = judged(play, "", late, 0, PASSED, "the server was not stopped")
    assert row.verdict == NOT_EXPECTED, "a quorum was there"


@pytest.mark.parametrize(
    "stages, fault_ms, done",
    [
        (None, 0, "nothing that is known"),
        (None, 100, "at least 1 of 3 ZooKeepers gone"),
        (0, 0, "nothing that is known"),
        (0, 100, "at least 1 of 3 ZooKeepers gone"),
        (1, 100, "1 of 3 ZooKeepers gone"),
        (2, 100, "2 of 3 ZooKeepers gone, the last killed"),
    ],
)
def test_of_a_quorum_is_told_as_much_as_was_done(stages, fault_ms, done):
    play, seen = good("zookeeper_quorum")
    if stages is None:
        seen = None
    else:
        seen = numbers(stages=[*seen.measured["stages"]][:stages])(seen)
    row = judged(play, "", seen, fault_ms, PASSED, "[gate.x] the gate refused z-3")
    assert (row.done, row.verdict) == (done, OPEN)


def test_an_ensemble_of_four_is_called_one_of_four():
    """Two of them may not go, as of three."""
    play, seen = good("zookeeper_quorum")
    of_four = cast(play.drill, (1, 2, 3), 1, servers=(1, 2, 3, 4))
    assert len(of_four.servers) == len(play.servers) == 2
    for each, size in ((play, 3), (of_four, 4)):
        assert judged(each, "", seen, 100, PASSED, "").done.startswith(f"2 of {size} ZooKeepers")


@pytest.mark.parametrize(
    "name", [each.name for each in DRILLS if not each.hits_broker and not each.hits_quorum]
)
def test_what_clients_have_not_come_to_do_is_not_told_as_done(name):
    play, seen = good(name)
    row = judged(play, "", None, 0, None, "topic could not be made")
    assert (row.done, row.observed) == ("nothing that is known", "nothing")
    assert "nothing" not in judged(play, "", seen, 0, PASSED).done


def test_keys_that_lay_apart_are_told_so():
    play, seen = good("task_queue")
    assert "12 keys, each in one partition" in judged(play, "", seen).observed
    told = judged(play, "", numbers(keys_split=7)(seen)).observed
    assert "12 keys, 7 of them in several partitions" in told and "each in one" not in told


def test_a_change_that_had_to_be_asked_for_again_is_told():
    play, seen = good("controllers_quorum")
    for times, told in ((0, False), (2, True)):
        row = judged(play, "", stage(1, asked_again=times)(seen), 100, PASSED)
        assert row.verdict == AS_EXPECTED
        assert ("2 away: asked again 2 times" in row.observed) is told


LOOKS = {"last_ms": 9000, "until_ms": 9100}


@pytest.mark.parametrize("name", BROKER)
@pytest.mark.parametrize(
    "kept, looks, told",
    [
        # each look has failed, all since the fault have, and all near the end
        (0, {"last_ms": None, "until_ms": 9100}, "never be looked at"),
        (1, {"last_ms": 60, "until_ms": 9100}, "not be looked at since the fault"),
        (2, {"last_ms": 300, "until_ms": 300_000}, "not be looked at for the last 299.7 s"),
    ],
)
def test_where_nobody_could_look_the_cluster_is_not_accused(name, kept, looks, told):
    play, seen = good(name)
    blind = replace(numbers(looks=looks)(seen), moments=seen.moments[:kept])
    if kept < 2 and name == "coordinator_lost":
        blind = numbers(coordinators=[[50, HIT, 3, [HIT, 4, 5], 3]][:kept])(blind)
    row = judged(play, "kafka-1", blind, 100, PASSED)
    assert (row.verdict, row.wrong) == (OPEN, ()), row
    assert row.open == (f"leader, ISR and controller could {told}",)
    assert judged(play, "kafka-1", numbers(looks=LOOKS)(seen), 100, PASSED).verdict == AS_EXPECTED


def test_what_was_seen_before_nobody_could_look_counts():
    play, seen = good("follower_killed")
    moved = replace(seen.moments[1], leader=3)
    blind = numbers(looks={"last_ms": 300, "until_ms": 300_000})(seen)
    blind = replace(blind, moments=(seen.moments[0], moved))
    row = judged(play, "kafka-1", blind, 100, PASSED)
    assert row.wrong == ("leadership moved to broker 3",) and row.open


@pytest.mark.parametrize(
    "looked, full, told",
    [
        (False, False, "its leader and replicas could not be looked at"),
        (True, False, "not all of its replicas were in sync"),
        (True, True, ""),
    ],
)
def test_what_a_drill_lacks_before_it_begins_is_named(looked, full, told):
    assert lacking(looked, full) == told


def test_leadership_that_moves_from_a_follower_that_dies_is_named():
    play, seen = good("follower_killed")
    moved = replace(seen.moments[1], leader=3)
    row = judged(play, "kafka-1", replace(seen, moments=(seen.moments[0], moved)), 100, PASSED)
    assert "leadership moved to broker 3" in row.wrong


@pytest.mark.parametrize("name", [each.name for each in DRILLS if each.proven])
@pytest.mark.parametrize(
    "proof, verdict",
    [
        (None, OPEN),
        ({}, OPEN),
        ({"verdict": "inconclusive"}, OPEN),
        ({"verdict": "fail", "summary": "loss: 3"}, NOT_EXPECTED),
    ],
)
def test_the_judge_has_its_say(name, proof, verdict):
    play, seen = good(name)
    assert judged(play, "kafka-1", seen, 100, proof).verdict == verdict


@pytest.mark.parametrize("name", NAMES)
def test_the_judge_has_its_say_of_what_each_drill_has_written(name):
    """Whatever the drill's own clients have counted."""
    play, seen = good(name)
    told = {"topic": "t", "counts": {"acked": 1234, "lost": 0, "again": 0}}
    for word, summary, verdict, of in (
        ("pass", "0 lost", AS_EXPECTED, ()),
        ("fail", "3 are not there", NOT_EXPECTED, "wrong"),
        ("inconclusive", "it has ended", OPEN, "open"),
    ):
        answers = ({**told, "verdict": word, "summary": summary},)
        row = judged(play, "kafka-1", replace(seen, judged=answers), 100, PASSED)
        assert row.verdict == verdict and "judge: 0 of 1,234 lost" in row.observed
        assert not of or any(summary in each for each in getattr(row, of))


def test_the_judges_words_are_those_of_its_schema():
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    words = schema["properties"]["verdict"]["enum"]
    assert {PASS, VIOLATION} < set(words) and len(words) == 3


@pytest.mark.parametrize("name", NAMES)
def test_what_did_not_come_to_its_end_is_never_as_expected(name):
    play, seen = good(name)
    assert judged(play, "kafka-1", None).verdict == OPEN
    row = judged(play, "kafka-1", seen, 100, PASSED, "the host was gone")
    assert row.verdict == OPEN and row.open == ("the host was gone",)


def test_a_drill_that_leaves_something_is_not_as_expected():
    play, seen = good("below_min_isr")
    row = judged(play, "kafka-1", numbers(left="nobody answers")(seen), 100)
    assert row.verdict == OPEN and "removed later: nobody answers" in row.open[0]


@pytest.mark.parametrize("name", BROKER)
def test_a_broker_that_was_not_hit_is_not_judged_by_what_was_seen_meanwhile(name):
    play, seen = good(name)
    row = judged(play, "kafka-1", without(seen, 0), 0, PASSED, "the gate has refused it")
    assert (row.verdict, row.wrong) == (OPEN, ()) and row.open == ("the gate has refused it",)
    assert (row.done, row.observed, row.pause_ms) == ("nothing", "nothing", None)


@pytest.mark.parametrize("name", BROKER)
def test_a_broker_that_is_not_back_is_not_as_expected(name):
    play, seen = good(name)
    amiss = ["the cluster is not as before: kafka-1: it did not start"]
    # also where nothing else was seen, and where all that was seen is good
    for told, error in ((None, "it could not be watched"), (seen, "")):
        row = judged(play, "kafka-1", told, 100, PASSED, error, amiss)
        assert row.verdict == NOT_EXPECTED and row.wrong == tuple(amiss)
        assert row.done != "nothing" and row.open == ((error,) if error else ())
    plan = drill_plan("leader_stopped", {"brokers": [{"id": 1}, {"id": 2}], "controller": 1}, {})
    assert drill_row(plan, None, 100, {}, "x", amiss)["wrong"] == amiss


def test_a_leader_without_a_successor_is_told_with_its_pause():
    play, seen = good("leader_stopped")
    nobody = moments((0, 1, {1, 2, 3}, 3), (200, None, {1, 2, 3}, 3), (300_000, 1, {1, 2, 3}, 3))
    seen = replace(seen, moments=nobody, pause_ms=299_000)
    row = judged(play, "kafka-1", seen, 100, PASSED, "", ["the others did not go on without it"])
    assert row.verdict == NOT_EXPECTED and row.pause_ms == 299_000
    assert "nobody else has led" in row.wrong and "did not go on" in " ".join(row.wrong)


def test_the_table():
    rows = []
    for name in ("leader_killed", "consumer_closed"):
        play, seen = good(name)
        rows.append(judged(play, "kafka-1", seen, 100, PASSED).to_dict())
    told = drill_table(rows)
    assert told["good"] and told["lines"][-1] == "All 2 drills went as expected."
    head = told["lines"][0].split()
    assert head == ["CASE", "DONE", "EXPECTED", "OBSERVED", "PAUSE", "VERDICT"]
    assert "kafka-1 killed" in told["lines"][1] and "0.9 s" in told["lines"][1]
    assert max(map(len, told["lines"])) < 170, "a terminal shows it as a table"
    # whatever is folded is there, word by word in its column
    at = told["lines"][0].index("OBSERVED")
    column = " ".join(line[at : at + 44].strip() for line in told["lines"][1:] if line)
    assert rows[0]["observed"] in " ".join(column.split())
    play, seen = good("leader_stopped")
    rows.append(judged(play, "kafka-1", replace(seen, groups=LOST), 100, PASSED).to_dict())
    told = drill_table(rows)
    assert not told["good"] and told["lines"][-1] == "ATTENTION: 2 of 3 drills went as expected."
    assert any(line.startswith("leader_stopped: 1 acknowledged") for line in told["lines"])
    held = [{**each, "verdict": "as expected"} for each in rows] * 2
    for count, last in ((1, "The case went as expected."), (2, "All 2 cases went as expected.")):
        assert drill_table(held[:count], "case")["lines"][-1] == last
    assert not drill_table([])["good"], "nothing is not good"


def test_results_have_the_names_the_words_and_the_units_that_were_promised():
    rows = [judged(*_of(name), 100, PASSED).to_dict() for name in ("leader_killed", "task_queue")]
    told = results({"cluster": "local", "over": True, "drills": rows}, "20261125T120000Z")
    assert (told["run_id"], told["cluster"], told["verdict"]) == ("20261125T120000Z", "local", PASS)
    assert [each["drill"] for each in told["cases"]] == ["leader_kill", "task_queue", "groups"]
    first = told["cases"][0]
    promised = {"drill", "case", "done", "expected", "observed", "pause_seconds", "verdict"}
    assert promised <= set(first) and first["pause_seconds"] == 0.9
    assert all(first[key] == rows[0][key] for key in ("case", "done", "expected", "observed"))
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    "verdicts, over, verdict",
    [
        ([AS_EXPECTED, AS_EXPECTED], True, PASS),
        ([AS_EXPECTED, OPEN], True, "inconclusive"),
        ([AS_EXPECTED], False, "inconclusive"),
        ([OPEN, NOT_EXPECTED], False, VIOLATION),
        ([], True, "inconclusive"),
    ],
)
def test_the_verdict_of_all(verdicts, over, verdict):
    row = judged(*_of("broadcast")).to_dict()
    rows = [{**row, "verdict": each, "pause_ms": None} for each in verdicts]
    told = results({"cluster": "local", "over": over, "drills": rows}, "x")
    assert told["verdict"] == verdict and len(told["cases"]) == len(verdicts)


@pytest.mark.parametrize(
    "part, drill", [("acks", "acks"), ("disk", "acks"), ("groups", "acks"), ("flaps", "flap")]
)
def test_guarantees_have_promised_names_too(part, drill):
    row = {**judged(*_of("broadcast")).to_dict(), "part": part, "case": "acks=0, leader_killed"}
    (case,) = results({"cluster": "throwaway", "drills": [row]}, "x")["cases"]
    assert (case["drill"], case["case"]) == (drill, "acks=0, leader_killed")


def _of(name):
    """What a drill that went well is judged by."""
    play, seen = good(name)
    return play, "kafka-1", seen


def test_drills_that_were_interrupted_are_told_with_what_they_had_done():
    play, seen = good("leader_killed")
    row = judged(play, "kafka-1", seen, 100, PASSED).to_dict()
    kept = {"names": ["leader_killed", "broadcast"], "next": "broadcast", "drills": [row]}
    told = interrupted_lines({**kept, "over": False}, "20261125T120000Z")
    assert told[0] == (
        "The drills of 20261125T120000Z were interrupted during broadcast; 1 of 2 drills had ended."
    )
    assert any(line.startswith("leader_killed") for line in told)
    assert interrupted_lines({**kept, "over": True}, "x") == []
    assert interrupted_lines({"drills": []}, "x") == [], "of a release that did not say so"


def test_before_each_drill_is_said_which_one_it_is_and_how_long_all_of_them_take():
    names = ["broadcast", "topic_recreated", "zookeeper_quorum"]
    assert drill_left(names, "broadcast") == "drill 1 of 3, about 2m 10s left"
    assert drill_left(names, "broadcast", 3) == "drill 1 of 3, about 2m 10s left"
    assert drill_left(names, "zookeeper_quorum") == "drill 3 of 3, about 1m 25s left"
    assert all(each.seconds > 0 for each in DRILLS)


@pytest.mark.parametrize(
    "seconds, left", [(25, "1m 45s"), (50, "3m 30s"), (20, "1m 24s"), (1, "52s")]
)
def test_the_time_left_is_by_the_drills_so_far(seconds, left):
    """Broadcast takes 25 s. One that was refused at once makes the others no faster than twice."""
    drills = chosen("broadcast,topic_recreated,zookeeper_quorum")
    told = progress_line(drills, "topic_recreated", seconds)
    assert told == f"drill 2 of 3, about {left} left"


def test_how_far_a_drill_is_says_who_leads_and_who_is_in_sync():
    assert watched_line(1200, None) == "1,200 records answered"
    moment = Moment(1, 2, frozenset({3, 2}), 1)
    assert watched_line(1200, moment) == "1,200 records answered, 2 leads, in sync 2, 3"
    nobody = replace(moment, leader=None, isr=frozenset())
    assert watched_line(7, nobody) == "7 records answered, nobody leads, in sync nobody"


def test_a_row_says_when_a_drill_has_done_it_itself():
    play, seen = good("consumer_killed")
    row = judged(play, "", seen)
    assert fault_of(row, seen) == fault_of(row, None) == {}
    timed = replace(seen, measured={**seen.measured, "at_ms": 5000, "ended_ms": 700})
    assert fault_of(row, timed) == {"at_ms": 5000, "to_ms": 5700, "label": "consumer killed"}
    plan = drill_plan("consumer_killed", {"brokers": [{"id": 1}, {"id": 2}], "controller": 1}, {})
    assert drill_row(plan, timed.to_dict())["fault"]["to_ms"] == 5700


def test_drills_run_examples_that_are_there():
    named = {each.example for each in DRILLS} - {""}
    assert named == {"consumer.py", "producer.py"}
    for name in named:
        assert (SCHEMA.parents[5] / "examples" / name).is_file()
    ignored = yaml.safe_load((SCHEMA.parents[5] / "galaxy.yml").read_text())["build_ignore"]
    assert "examples" not in ignored, "they are part of the collection"
