# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a run takes its locks, and whether it may go on; two and more runs, interleaved at any step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.decision import (
    BROKEN,
    DISKS_LOCKED,
    LEFT,
    Answer,
    Member,
    Place,
    plan,
    replacement,
    told_by_status,
    verdict,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.owner import Owner


def owner(pid, host="ctl", playbook="site.yml"):
    return Owner(host, "boot/1", pid, pid * 7, "alice", playbook, "c", 1795256400)


ME, OTHER, FAR = owner(1), owner(2, playbook="stop.yml"), owner(3, host="laptop")


def member(name, address=None, **more):
    fields = {"cluster": "c", "directory": "/locks", **more}
    return Member(name=name, address=address or name, **fields)


def hosts(places):
    return [place.host for place in places]


# ---------------------------------------------------------------- the plan


def test_the_order_is_that_of_the_names_whatever_limit_says():
    members = [
        member(name, in_play=name == "kafka-2") for name in ("kafka-3", "kafka-2", "kafka-1")
    ]
    found = plan(members, ["kafka-2"])
    assert hosts(found.first) == ["kafka-1"]
    assert {worker: hosts(places) for worker, places in found.others.items()} == {
        "kafka-2": ["kafka-2", "kafka-3"]
    }
    assert hosts(found.shares["kafka-2"]) == ["kafka-1", "kafka-2", "kafka-3"]


def test_each_host_asks_on_itself_and_those_outside_are_dealt_out():
    members = [member(f"h{number}", in_play=number in (2, 4)) for number in range(1, 7)]
    found = plan(members, ["h2", "h4"])
    assert hosts(found.first) == ["h1"]
    shares = {worker: set(hosts(places)) for worker, places in found.others.items()}
    assert "h2" in shares["h2"] and "h4" in shares["h4"]
    assert shares["h2"] | shares["h4"] == {"h2", "h3", "h4", "h5", "h6"}
    assert abs(len(shares["h2"]) - len(shares["h4"])) <= 1


def test_names_of_one_machine_are_one_place():
    members = [member(name, address="local", instances=(f"/{name}/.lock",)) for name in "ba"]
    found = plan(members, ["a", "b"])
    assert found.first == (Place("c", "a", "/locks", ("a", "b"), ("/a/.lock", "/b/.lock")),)
    assert found.others == {} and found.absent == ()


def test_names_of_one_machine_with_directories_of_their_own_are_two_places():
    members = [member("a", "m"), member("b", "m", directory="/other")]
    found = plan(members, ["a", "b"])
    assert hosts(found.first) == ["a"] and hosts(found.others["b"]) == ["b"]


def test_who_does_not_answer_is_not_asked():
    members = [
        member("a", absent="dead"),
        member("b"),
        member("c", "m", absent="no"),
        member("d", "m"),
    ]
    found = plan(members, ["b", "d"])
    assert hosts(found.first) == ["b"]
    assert hosts(found.others["d"]) == ["d"]  # the machine of c, through its other name
    assert hosts(found.absent) == ["a"]


def test_only_clusters_of_the_play_are_locked():
    members = [member("a"), member("b", in_play=False), member("x", cluster="d", in_play=False)]
    found = plan(members, ["a"])
    assert [place.cluster for place in found.first] == ["c"]
    assert hosts(found.shares["a"]) == ["a", "b"]
    both = plan([member("a"), member("x", cluster="d")], ["a", "x"])
    assert [(place.cluster, place.host) for place in both.first] == [("c", "a"), ("d", "x")]
    assert both.others == {}


def test_plans_and_answers_travel_as_plain_data():
    (place,) = plan([member("a", instances=("/x",))], ["a"]).first
    assert Place.from_dict(place.to_dict()) == place
    marked = Answer(place, True, beside=OTHER, marks=("a:1:2 x",))
    for answer in (Answer(place, True), Answer(place, False, OTHER, LEFT, "x"), marked):
        assert Answer.from_dict(answer.to_dict()) == answer


# ---------------------------------------------------------------- who may be replaced


@pytest.mark.parametrize(
    "gone, break_lock, expected",
    [
        (True, "", LEFT),
        (True, "somebody else", LEFT),
        (False, "", ""),
        (False, OTHER.id, BROKEN),
        (False, ME.id, ""),
        (False, OTHER.host, ""),
        (False, OTHER.id[:-1], ""),
    ],
)
def test_replacement(gone, break_lock, expected):
    assert replacement(OTHER, gone, break_lock) == expected


# ---------------------------------------------------------------- the verdict

ONE, TWO = Place("c", "kafka-1", "/locks", ("kafka-1", "zookeeper-1")), Place(
    "c", "kafka-2", "/locks", ("kafka-2",)
)
WANTED = plan([member("kafka-1"), member("kafka-2")], ["kafka-1", "kafka-2"])


def judged(*answers, wanted=WANTED, break_lock=""):
    return verdict(wanted, answers, ME, break_lock)


def test_granted_everywhere():
    found = judged(Answer(ONE, True), Answer(TWO, True))
    assert found.granted and found.errors == found.warnings == found.notes == ()
    fence = {"directory": "/locks", "cluster": "c", "owner": ME.id}
    assert found.fences == {"kafka-1": fence, "zookeeper-1": fence, "kafka-2": fence}


def test_one_refusal_is_enough_and_every_holder_is_named():
    found = judged(Answer(ONE, False, OTHER), Answer(TWO, False, FAR))
    assert not found.granted and found.fences == {}
    near, far = (each.line() for each in found.errors)
    assert near.startswith(
        "[run.locked] kafka-1, zookeeper-1: kafka_cluster_name=c: stop.yml (process 2"
    )
    assert "and still runs" in near and f"-e kafkaops_break_lock={OTHER.id} " in near
    assert far.startswith("[run.locked] kafka-2: ") and "process 3 of alice on laptop" in far
    assert "cannot be seen from here" in far and f"-e kafkaops_break_lock={FAR.id} " in far
    assert not judged(Answer(ONE, True), Answer(TWO, False, FAR)).granted


def test_a_holder_of_several_hosts_is_named_once():
    (error,) = judged(Answer(ONE, False, OTHER), Answer(TWO, False, OTHER)).errors
    assert error.subjects == ("kafka-1", "kafka-2", "zookeeper-1")


def test_a_break_of_somebody_else_is_told():
    (error,) = judged(Answer(ONE, False, OTHER), break_lock="x:1:2").errors
    assert "kafkaops_break_lock=x:1:2 names somebody else" in error.line()


def test_where_nobody_answers_a_warning_tells_what_that_means():
    wanted = plan([member("kafka-1"), member("kafka-3", absent="it is off")], ["kafka-1"])
    found = judged(Answer(ONE, True), Answer(TWO, False, unanswered="no route"), wanted=wanted)
    assert found.granted
    assert [each.check for each in found.warnings] == ["run.lock_incomplete"] * 2
    assert [each.subjects for each in found.warnings] == [("kafka-3",), ("kafka-2",)]
    assert "kafka-2" not in found.fences


def test_a_lock_that_nobody_keeps_is_none():
    found = judged(Answer(ONE, False, unanswered="disk full"))
    (error,) = found.errors
    assert not found.granted and error.check == "run.lock_failed" and "disk full" in error.line()
    nobody = plan([member("a", absent="off")], ["a"])
    assert [each.check for each in judged(wanted=nobody).errors] == ["run.lock_failed"]
    # of two clusters, one that is locked does not stand for the other
    both = plan([member("a"), member("b", cluster="d")], ["a", "b"])
    (error,) = judged(Answer(both.first[0], True), wanted=both).errors
    assert error.value == "d"


def test_what_a_module_did_after_the_preflight_has_looked_is_to_be_looked_at_again():
    waited = Answer(ONE, True, waited=True)
    assert Answer.from_dict(waited.to_dict()) == waited
    assert judged(waited, Answer(TWO, True)).outdated
    # the run was killed: it may have ended a turn between our look and its end
    assert judged(Answer(ONE, True, OTHER, LEFT), Answer(TWO, True)).outdated
    assert judged(Answer(ONE, True, OTHER, BROKEN)).outdated
    assert not judged(Answer(ONE, True), Answer(TWO, True)).outdated


def test_a_run_that_has_ended_after_the_preflight_has_seen_it_is_reason_to_look_again():
    answers = [Answer(ONE, True), Answer(TWO, True)]
    assert verdict(WANTED, answers, ME, seen=[ME.id, OTHER.id]).outdated
    assert not verdict(WANTED, answers, ME, seen=[ME.id]).outdated


OLD, NEW, OWN = f"{OTHER.id} 1", f"{OTHER.id} 2", f"{ME.id} 3"


@pytest.mark.parametrize(
    "before, now, outdated",
    [
        ({"kafka-1": [OLD], "zookeeper-1": []}, [OLD], False),
        ({"kafka-1": [OLD], "zookeeper-1": []}, [NEW], True),
        ({"kafka-1": [], "zookeeper-1": []}, [NEW], True),
        ({"kafka-1": [], "zookeeper-1": []}, [], False),
        # what this run has given back itself, and an instance that is not there any more
        ({"kafka-1": [OLD], "zookeeper-1": []}, [OWN], False),
        ({"kafka-1": [OLD], "zookeeper-1": []}, [], False),
        # of a host of two names one was asked: the other's mark may be as old as it likes
        ({"kafka-1": [OLD]}, [NEW, OLD], False),
        ({"kafka-1": [OLD]}, [NEW], True),
        ({"kafka-1": []}, [NEW], False),
        ({}, [NEW], False),
    ],
)
def test_a_run_that_came_and_went_since_the_preflight_is_reason_to_look_again(
    before, now, outdated
):
    answers = [Answer(ONE, True, marks=tuple(now)), Answer(TWO, True)]
    assert verdict(WANTED, answers, ME, marks=before).outdated is outdated


def test_who_moves_replicas_between_disks_is_told_and_stops_nobody():
    found = judged(Answer(ONE, True, beside=OTHER), Answer(TWO, True, beside=OTHER))
    (line,) = found.notes
    assert found.granted and line.startswith(f"Meanwhile {OTHER.described()} is at work")
    assert "between the disks of brokers" in line
    disks = Place("c (disks)", "kafka-1", "/locks", ("kafka-1",))
    wanted = plan([member("kafka-1", cluster="c (disks)")], ["kafka-1"])
    (line,) = judged(Answer(disks, True, beside=OTHER), wanted=wanted).notes
    assert "is at work" in line and "disks" not in line
    holder = replace(OTHER, cluster="c (disks)")
    (error,) = judged(Answer(disks, False, holder), wanted=wanted).errors
    assert "moves replicas between the disks of this cluster and still runs" in error.reason


def test_what_was_replaced_is_told_once():
    found = judged(Answer(ONE, True, OTHER, LEFT), Answer(TWO, True, OTHER, LEFT))
    (line,) = found.notes
    assert "was left by stop.yml" in line and line.endswith("taken over.")
    (line,) = judged(Answer(ONE, True, FAR, BROKEN)).notes
    assert "is taken from site.yml (process 3 of alice on laptop" in line


def test_status_names_the_holder():
    locks = [("b", OTHER), ("a", OTHER), ("c", FAR)]
    gone, far = told_by_status(locks, [OTHER.id])
    assert gone.startswith("Locked on a, b: stop.yml") and "no longer runs" in gone
    assert far.endswith(f"to break it: -e kafkaops_break_lock={FAR.id}.")
    assert told_by_status([], []) == []


# ---------------------------------------------------------------- runs beside each other


class Hosts:
    """The locks of all hosts, each of whose operations is one step, as `held` does it."""

    def __init__(self):
        self.holders = {}

    def take(self, host, me, instead_of):
        holder = self.holders.get(host)
        if holder is None or holder.is_same(me) or holder.is_same(instead_of):
            self.holders[host] = me
            return None
        return holder

    def give_back(self, host, me):
        if me.is_same(self.holders.get(host)):
            del self.holders[host]


def run(hosts_, me, reach, names, order, outcome, dead=frozenset()):
    """A run as phases/lock.yml has it, one step at each yield. `order`: how its parallel part goes."""
    members = [member(name, absent="" if name in reach else "off") for name in names]
    wanted = plan(members, sorted(reach))
    answers = []

    def ask(place):
        holder = None
        for _attempt in range(2):
            yield
            found = hosts_.take(place.host, me, holder)
            if found is None:
                replaced = LEFT if holder else ""
                answers.append(Answer(place, True, holder, replaced))
                return
            holder = found
            if not replacement(found, found.id in dead, ""):
                break
        answers.append(Answer(place, False, holder))

    for place in wanted.first:
        yield from ask(place)
    if all(answer.granted for answer in answers):
        rest = [place for places in wanted.others.values() for place in places]
        for place in sorted(rest, key=lambda place: order[place.host]):
            yield from ask(place)
    yield
    outcome[me.pid] = verdict(wanted, answers, me).granted
    if not outcome[me.pid]:
        for place in [place for places in wanted.shares.values() for place in places]:
            yield
            hosts_.give_back(place.host, me)


NAMES = ("a", "b", "c", "d")


@st.composite
def worlds(draw, same_reach):
    """(reach of each run, order of each one's parallel part, whose step comes next)."""
    count = draw(st.integers(2, 3))
    subsets = st.sets(st.sampled_from(NAMES), min_size=1)
    reach = [draw(subsets)] * count if same_reach else [draw(subsets) for _run in range(count)]
    orders = [dict(zip(NAMES, draw(st.permutations(range(len(NAMES)))))) for _run in range(count)]
    steps = draw(st.lists(st.integers(0, count - 1), max_size=60))
    return reach, orders, steps


def played(world, hosts_, dead=frozenset()):
    """Interleave the runs; return pid -> granted."""
    reach, orders, steps = world
    outcome = {}
    runs = [
        run(hosts_, owner(10 + index), reach[index], NAMES, orders[index], outcome, dead)
        for index in range(len(reach))
    ]
    alive = dict(enumerate(runs))
    for index in [*steps, *[index for index in alive for _step in range(60)]]:
        if index in alive and next(alive[index], "over") == "over":
            del alive[index]
    assert not alive
    return outcome


@given(worlds(same_reach=False))
def test_two_runs_that_reach_a_common_host_never_both_go_on(world):
    outcome = played(world, Hosts())
    winners = [world[0][pid - 10] for pid, granted in outcome.items() if granted]
    for index, one in enumerate(winners):
        for other in winners[:index]:
            assert not one & other, (winners, outcome)


@given(worlds(same_reach=True))
def test_of_runs_that_reach_the_same_hosts_exactly_one_goes_on(world):
    hosts_ = Hosts()
    outcome = played(world, hosts_)
    (winner,) = [pid for pid, granted in outcome.items() if granted]
    # and what the others had taken is given back
    assert {holder.pid for holder in hosts_.holders.values()} == {winner}


@given(worlds(same_reach=True), st.sets(st.sampled_from(NAMES)))
def test_of_runs_that_find_a_dead_one_exactly_one_takes_over(world, left):
    hosts_ = Hosts()
    hosts_.holders = {host: owner(99) for host in left}
    outcome = played(world, hosts_, dead={owner(99).id})
    assert sum(outcome.values()) == 1


@given(worlds(same_reach=False), st.sampled_from(NAMES))
def test_nobody_goes_on_beside_one_that_cannot_be_seen(world, held):
    hosts_ = Hosts()
    hosts_.holders = {held: FAR}
    outcome = played(world, hosts_)
    assert all(held not in world[0][pid - 10] for pid, granted in outcome.items() if granted)
    assert hosts_.holders[held] == FAR


@given(worlds(same_reach=True))
def test_a_run_keeps_what_it_has_while_others_come_and_go(world):
    hosts_ = Hosts()
    hosts_.holders = dict.fromkeys(world[0][0], ME)
    outcome = played(world, hosts_)
    assert not any(outcome.values())
    assert hosts_.holders == dict.fromkeys(world[0][0], ME)


def test_a_lock_under_another_name_says_so():
    place = Place("kafka", "h", "/locks", ("h",))
    found = plan([member("h", cluster="kafka")], ["h"])
    refused = verdict(found, [Answer(place, False, OTHER)], ME)
    (problem,) = refused.errors
    assert "holds the lock of this cluster under another name, c and still runs" in problem.reason
    assert problem.check == "run.locked" and OTHER.id in problem.remedy
    (line,) = told_by_status([("h", OTHER)], [], {OTHER.id: "c"})
    assert line.startswith("Locked on h, under another name of the cluster, c: stop.yml (process 2")
    (line,) = told_by_status([("h", OTHER)], [OTHER.id], word=DISKS_LOCKED)
    assert line.startswith("Disks locked, between which replicas move, on h: stop.yml (process 2")


def test_a_module_that_does_not_end_stops_the_run():
    found = plan([member("h"), member("i")], ["h", "i"])
    places = [Place("c", name, "/locks", (name,)) for name in "hi"]
    answers = [Answer(places[0], True), Answer(places[1], True, busy="/etc/kafka/.lock")]
    judged = verdict(found, answers, ME)
    assert not judged.granted and [each.check for each in judged.errors] == ["run.module_at_work"]
    assert judged.errors[0].subjects == ("i",) and "/etc/kafka/.lock" in judged.errors[0].reason
    assert Answer.from_dict(answers[1].to_dict()) == answers[1]
