# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Voters come and go one at a time, and never so that those that are left cannot decide."""

from __future__ import annotations

import base64
import dataclasses
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import (
    FETCHED_MS,
    Quorum,
    Replica,
    quorum_of,
    uuid_of,
    uuid_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.voters.plan import (
    ADD,
    REMOVE,
    Wanted,
    behind,
    node_of,
    not_yet,
    parse_voters,
    plan_voters,
    votes,
    withheld,
)

NOW, END = 1_800_000_000_000, 500


def directory(node, disk=0):
    """The id of a node's directory, of its first or a later disk."""
    data = bytes([node, disk, *range(14)])
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def replica(node, alive=True, disk=0):
    """A voter or an observer; a dead one lacks nothing either."""
    then = NOW - (100 if alive else FETCHED_MS + 1)
    return Replica(node, END, then, then, directory(node, disk))


def quorum(alive, dead=(), leads=1, observers=()):
    """A quorum of which these keep up, and these do not."""
    head = Replica(leads, END, -1, NOW, directory(leads))
    others = [replica(each, each in alive) for each in sorted({*alive, *dead} - {leads})]
    return Quorum(leads, 7, (head, *others), tuple(observers))


def wanted(*nodes, disk=0):
    """Nodes as the inventory and their disks name them."""
    return [Wanted(each, directory(each, disk), f"c{each}", 9093) for each in nodes]


def steps(plan):
    """The changes in short: +4, -5."""
    signs = {ADD: "+", REMOVE: "-"}
    return " ".join(f"{signs[each.kind]}{node_of(each)}" for each in plan.changes)


# alive, dead, leader, wanted, leaving, the steps
WAYS = [
    ("123", "", 1, "123", "", ""),
    ("123", "", 1, "12345", "", "+4 +5"),
    # killed half way
    ("1234", "", 1, "12345", "", "+5"),
    ("12345", "", 1, "123", "45", "-4 -5"),
    # what is gone already stays gone
    ("1234", "", 1, "123", "45", "-4"),
    ("123", "", 1, "123", "45", ""),
    # the leader last, a dead one first
    ("12345", "", 4, "123", "45", "-5 -4"),
    ("1234", "5", 4, "123", "45", "-5 -4"),
    # it grows before it shrinks
    ("123", "", 1, "234", "1", "+4 -1"),
    ("12", "3", 1, "124", "3", "+4 -3"),
    ("12", "3", 1, "12", "3", "-3"),
    ("1", "", 1, "123", "", "+2 +3"),
    ("123", "", 1, "1", "23", "-2 -3"),
]


def digits(text):
    """The nodes of a row."""
    return [int(each) for each in text]


@pytest.mark.parametrize("alive, dead, leads, ahead, leaving, told", WAYS)
def test_the_way_to_the_wanted_voters(alive, dead, leads, ahead, leaving, told):
    found = quorum(digits(alive), digits(dead), leads)
    plan = plan_voters(found, wanted(*digits(ahead)), digits(leaving))
    assert steps(plan) == told and not plan.refusals
    assert bool(plan.warnings) == (bool(told) and len(ahead) % 2 == 0), plan.warnings


# alive, dead, wanted, leaving, id of the refusal, words
REFUSED = [
    ("12", "3", "13", "2", "voters.majority", "without it 1 of 2 voters keep up, and 2 are"),
    ("123", "45", "1245", "3", "voters.majority", "behind: 4, 5"),
    ("123", "45", "12", "345", "", ""),
    ("1", "", "", "1", "voters.majority", "it is the last voter"),
    ("123", "", "12", "", "voters.unknown", "named nowhere: 3"),
    # a leader that does not know yet that it has lost its majority
    ("1", "23", "1234", "", "voters.majority", "1 of 3 voters keep up, and 2 are a majority"),
]


@pytest.mark.parametrize("alive, dead, ahead, leaving, check, words", REFUSED)
def test_what_is_refused(alive, dead, ahead, leaving, check, words):
    plan = plan_voters(quorum(digits(alive), digits(dead)), wanted(*digits(ahead)), digits(leaving))
    lines = [each.line() for each in plan.refusals]
    assert [each.check for each in plan.refusals] == ([check] if check else []), lines
    assert all(words in each for each in lines)


def test_a_dead_voter_with_a_new_disk_is_removed_before_it_is_added():
    found = quorum([1, 3], [2])
    ahead = [*wanted(1, 3), *wanted(2, disk=1)]
    plan = plan_voters(found, ahead, replaced=[2])
    assert steps(plan) == "-2 +2" and not plan.refusals
    removal, addition = plan.changes
    assert removal.before["directory_id"] == directory(2)
    assert addition.after == {"directory_id": directory(2, 1), "endpoint": "c2:9093"}
    (refusal,) = plan_voters(found, ahead).refusals
    assert refusal.check == "voters.other_directory" and "replace_broker.yml -e broker=2" in str(
        refusal
    )
    # gone on with after a kill between the two
    assert steps(plan_voters(quorum([1, 3]), ahead, replaced=[2])) == "+2"


def test_check_mode_tells_what_becomes_of_a_voter_whose_new_disk_is_empty():
    """Nothing is formatted there, so that the new directory has no id yet."""
    found = quorum([1, 3], dead=[2])
    ahead = [*wanted(1, 3), Wanted(2, "", "c2", 9093)]
    assert steps(plan_voters(found, ahead, replaced=[2], formatted=False)) == "-2 +2"
    # who keeps its disk is named with its directory, or not at all
    assert not plan_voters(found, wanted(1, 2, 3), replaced=[2], formatted=False)
    assert not plan_voters(found, ahead, formatted=False)


@pytest.mark.parametrize("leads", [1, 2])
def test_a_voter_that_lives_is_not_replaced(leads):
    found = quorum([1, 2, 3], leads=leads)
    (refusal,) = plan_voters(found, [*wanted(1, 3), *wanted(2, disk=1)], replaced=[2]).refusals
    assert refusal.check == "voters.alive"
    # one that is named and has its disk is left alone
    assert not plan_voters(found, wanted(1, 2, 3), replaced=[2])


def test_nobody_is_replaced_while_the_others_could_not_decide():
    ahead = [*wanted(1, 2, 3), *wanted(4, 5, disk=1)]
    found = quorum([1, 2, 3], [4, 5])
    assert steps(plan_voters(found, ahead, replaced=[4, 5])) == "-4 +4 -5 +5"
    assert not plan_voters(found, ahead, replaced=[4, 5]).refusals


def test_a_static_quorum_does_not_change():
    found = quorum([1, 2, 3])
    bare = tuple(dataclasses.replace(each, directory="") for each in found.voters)
    static = dataclasses.replace(found, voters=bare)
    (refusal,) = plan_voters(static, [*map(Wanted, (1, 2, 3)), *wanted(4)]).refusals
    assert refusal.check == "voters.static" and "dynamic_quorum.yml" in refusal.remedy
    same = plan_voters(static, list(map(Wanted, (1, 2, 3))))
    assert not same and not same.refusals


def test_what_does_not_vote_needs_its_directory_and_its_place():
    (refusal,) = plan_voters(quorum([1, 2, 3]), [*wanted(1, 2, 3), Wanted(4)]).refusals
    assert refusal.check == "voters.bad_value" and refusal.subjects == ("voter 4",)
    # what check mode tells before anything is formatted
    before = [*wanted(1, 2, 3), Wanted(4, "", "c4", 9093)]
    assert plan_voters(quorum([1, 2, 3]), before).refusals
    (change,) = plan_voters(quorum([1, 2, 3]), before, formatted=False).changes
    assert change.after == {"directory_id": "(of its format)", "endpoint": "c4:9093"}


@given(
    alive=st.sets(st.integers(1, 9), min_size=1, max_size=7),
    dead=st.sets(st.integers(1, 9), max_size=4),
    ahead=st.sets(st.integers(1, 9), max_size=7),
    replaced=st.sets(st.integers(1, 9), max_size=2),
    data=st.data(),
)
def test_no_step_leaves_voters_that_cannot_decide(alive, dead, ahead, replaced, data):
    dead -= alive
    leads = data.draw(st.sampled_from(sorted(alive)))
    found = quorum(alive, dead, leads)
    now = alive | dead
    leaving, replaced = now - ahead, replaced & ahead
    named = [Wanted(n, directory(n, n in replaced), "c", 1) for n in sorted(ahead)]
    plan = plan_voters(found, named, leaving, replaced)
    if plan.refusals:
        checks = {each.check for each in plan.refusals}
        assert checks <= {"voters.majority", "voters.alive"}
        assert "voters.alive" not in checks or replaced & alive
        return
    living, voters = set(alive), {each.id for each in found.voters}
    for change in plan.changes:
        node = node_of(change)
        assert (node in voters) == (change.kind == REMOVE)
        if change.kind == ADD:
            voters.add(node)
            living.add(node)
        else:
            voters.remove(node)
            living.discard(node)
        assert len(living & voters) > len(voters) / 2, change
    assert voters == ahead
    # done, there is nothing left to do
    after = Quorum(leads, 7, tuple(replica(n, True, n in replaced) for n in sorted(voters)))
    assert not plan_voters(after, named, leaving, replaced)


def test_whoever_is_added_follows_with_its_own_directory_and_lacks_nothing():
    (new,) = wanted(4)
    assert "does not follow" in behind(quorum([1, 2, 3]), new)
    other = quorum([1, 2, 3], observers=[replica(4, disk=1)])
    assert f"with directory {directory(4, 1)} it does" in behind(other, new)
    dead = dataclasses.replace(replica(4, alive=False), end=END - 9)
    assert "lacks 9" in behind(quorum([1, 2, 3], observers=[dead]), new)
    assert behind(quorum([1, 2, 3], observers=[replica(4, disk=1), replica(4)]), new) == ""


def test_what_holds_when_the_turn_comes_is_asked_anew():
    assert withheld(quorum([1, 2, 3]), 3) == "" and withheld(quorum([1, 2], [3]), 3) == ""
    assert "1 of 2 voters keep up" in withheld(quorum([1, 2], [3]), 2)
    assert withheld(quorum([1]), 9) == ""
    assert votes(quorum([1, 2]), 2, directory(2)) and not votes(quorum([1]), 1, directory(1, 1))


def test_a_former_vote_goes_when_the_node_with_the_new_disk_is_there():
    """Where that cannot reach the leader, an even number of voters would be left."""
    named = [*wanted(1, 2), *wanted(3, disk=1)]
    plan = plan_voters(quorum([1, 2], [3]), named, [], [3], formatted=True)
    gone, come = plan.changes
    assert steps(plan) == "-3 +3" and not plan.refusals
    alone = quorum([1, 2], [3])
    assert "does not follow the leader with directory " + directory(3, 1) in not_yet(
        gone, alone, named
    )
    late = dataclasses.replace(replica(3, disk=1), end=END - 9, caught_up=NOW - 60_000)
    assert "lacks 9" in not_yet(gone, quorum([1, 2], [3], observers=[late]), named)
    there = quorum([1, 2], [3], observers=[replica(3, disk=1)])
    assert not_yet(gone, there, named) == ""
    assert "does not follow" in not_yet(come, quorum([1, 2]), named)
    assert not_yet(come, quorum([1, 2], observers=[replica(3, disk=1)]), named) == ""
    # whoever leaves has no new disk
    (leaves,) = plan_voters(quorum([1, 2, 3, 4]), wanted(1, 2, 3), [4], []).changes
    assert not_yet(leaves, quorum([1, 2, 3, 4]), wanted(1, 2, 3)) == ""
    assert "1 of 2 voters" in not_yet(leaves, quorum([1, 4], [2]), wanted(1, 2))


def test_ids_as_kafka_writes_them():
    text = directory(3)
    assert uuid_text(uuid_of(text)) == text
    assert uuid_text(None) == uuid_text(uuid.UUID(int=0)) == ""
    # as kafka-python writes an answer
    assert uuid_text(str(uuid_of(text))) == text
    with pytest.raises(ValueError):
        uuid_of("short")
    row = {"replica_id": 1, "log_end_offset": 5, "replica_directory_id": uuid_of(text)}
    answer = {"leader_id": 1, "leader_epoch": 2, "current_voters": [row]}
    assert quorum_of(answer).voters[0].directory == text and not quorum_of(answer).static
    del row["replica_directory_id"]
    assert quorum_of(answer).static


BAD = [
    ([{"id": 1}, {"id": 1}], [], [], "named twice"),
    ([{"id": 1, "directory_id": "x"}], [], [], "22 characters"),
    ([{"id": 1, "port": 70000}], [], [], "no such port"),
    ([{"id": 1}], [1], [], "to vote and to leave"),
    ([{"id": 1}], [], [2], "not among the voters"),
]


@pytest.mark.parametrize("voters, leaving, replaced, words", BAD)
def test_options_that_contradict_themselves(voters, leaving, replaced, words):
    _wanted, (refusal,) = parse_voters(voters, leaving, replaced)
    assert refusal.check == "voters.bad_value" and words in refusal.reason
