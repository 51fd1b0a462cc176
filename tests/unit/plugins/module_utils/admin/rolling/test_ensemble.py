# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An ensemble that grows and shrinks: whatever is killed, there are never two quorums, and it ends."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.four_letter_words import (
    unmet,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.ensemble import (
    RESTART,
    START,
    STOP,
    YIELD,
    Refused,
    Server,
    after,
    all_turns,
    ensemble_plan,
    majority,
    next_list,
    next_turn,
)

IDS = range(1, 10)
LISTS = st.frozensets(st.sampled_from(IDS), min_size=1, max_size=7)


def ensemble(members, leader=None):
    """A whole ensemble with this list, and every other server down."""
    leader = leader or max(members)
    return {
        number: (
            Server(number, True, True, number == leader, frozenset(members))
            if number in members
            else Server(number)
        )
        for number in IDS
    }


def said(turns):
    return [(each.action, each.id, "".join(str(n) for n in sorted(each.members))) for each in turns]


GROWS = [
    *[(START, 4, "1234"), (RESTART, 1, "1234"), (RESTART, 3, "1234"), (RESTART, 2, "1234")],
    *[(START, 5, "12345"), (RESTART, 1, "12345"), (RESTART, 2, "12345"), (RESTART, 3, "12345")],
    (RESTART, 4, "12345"),
]


@pytest.mark.parametrize(
    ("now", "leader", "target", "expected"),
    [
        ({1, 2, 3}, 2, {1, 2, 3}, []),
        ({1, 2, 3}, 2, {1, 2, 3, 4, 5}, GROWS),
        (
            {1, 2, 3, 4, 5},
            2,
            {1, 2, 3},
            [
                *[(RESTART, 1, "1234"), (RESTART, 3, "1234"), (RESTART, 4, "1234")],
                *[(RESTART, 2, "1234"), (STOP, 5, "1234"), (YIELD, 4, "1234")],
                *[(RESTART, 1, "123"), (RESTART, 2, "123"), (RESTART, 3, "123"), (STOP, 4, "123")],
            ],
        ),
        # The leader leaves second: it moves once.
        (
            {1, 2, 3, 4, 5},
            5,
            {1, 2, 3},
            [
                *[(RESTART, 1, "1235"), (RESTART, 2, "1235"), (RESTART, 3, "1235")],
                *[(RESTART, 5, "1235"), (STOP, 4, "1235")],
                *[(RESTART, 1, "123"), (RESTART, 2, "123"), (RESTART, 3, "123"), (STOP, 5, "123")],
            ],
        ),
        # One for another: it grows first.
        (
            {1, 2, 3},
            3,
            {1, 2, 4},
            [
                *[(START, 4, "1234"), (RESTART, 1, "1234"), (RESTART, 2, "1234")],
                *[(RESTART, 3, "1234"), (RESTART, 1, "124")],
                *[(RESTART, 2, "124"), (RESTART, 4, "124"), (STOP, 3, "124")],
            ],
        ),
        ({1}, 1, {1, 2}, [(START, 2, "12"), (RESTART, 1, "12")]),
    ],
)
def test_turns(now, leader, target, expected):
    turns = said(all_turns(ensemble(now, leader), frozenset(target)))
    assert turns == expected


def test_the_leader_that_leaves_is_told_to_let_another_one_lead():
    servers = ensemble({1, 2, 3, 4}, 4)
    assert said(all_turns(servers, frozenset({1, 2, 3})))[0] == (YIELD, 4, "1234")


@pytest.mark.parametrize(
    ("members", "down", "target", "expected"),
    [
        # It leaves, but a majority of the others would be missing without it.
        ({1, 2, 3}, 2, {1, 3, 4}, (START, 2, "123")),
        ({1, 2, 3, 4}, 4, {1, 2, 3}, (START, 4, "1234")),
        ({1, 2, 3, 4, 5}, 4, {1, 2, 3}, (RESTART, 1, "1235")),
        ({1, 2, 3}, 2, {1, 2, 3, 4, 5}, (START, 2, "123")),
    ],
)
def test_what_is_down_starts_where_it_is_needed(members, down, target, expected):
    servers = {**ensemble(members, 3), down: Server(down)}
    assert said([next_turn(servers, frozenset(target))]) == [expected]


@pytest.mark.parametrize(("target", "expected"), [({1, 2, 3}, STOP), ({1, 2, 3, 4, 5}, START)])
def test_what_was_started_again_after_it_had_left_counts_for_nothing(target, expected):
    back = frozenset(range(1, 6))
    servers = {
        **ensemble({1, 2, 3}),
        4: Server(4, True, True, False, back),
        5: Server(5, True, True, False, back),
    }
    turn = next_turn(servers, frozenset(target))
    assert (turn.action, turn.id) == (expected, 4)
    assert said(all_turns(servers, frozenset(target)))[-1][2] == "".join(map(str, sorted(target)))


def lists_of(servers):
    return {each.listed for each in servers.values() if each.runs and each.listed}


@given(now=LISTS, target=LISTS)
def test_neighbouring_lists_always_share_a_majority(now, target):
    seen = [now]
    while seen[-1] != target:
        seen.append(next_list(seen[-1], target, {}))
        assert len(seen) < 20
    for one, other in itertools.pairwise(seen):
        assert len(one ^ other) == 1
        assert majority(one) + majority(other) > len(
            one | other
        ), "two quorums without a server in common"


@given(
    now=LISTS, target=st.frozensets(st.sampled_from(IDS), min_size=3, max_size=7), data=st.data()
)
def test_wherever_it_is_killed_it_ends_and_never_has_two_quorums(now, target, data):
    """Killed between stop and start, too, and with another leader after it."""
    servers = ensemble(now, data.draw(st.sampled_from(sorted(now))))
    kills = data.draw(st.sets(st.integers(0, 40), max_size=2))
    for count in range(100):
        turn = next_turn(servers, target)
        if turn is None:
            break
        serving = {each.id for each in servers.values() if each.serves}
        if turn.action in (RESTART, YIELD):
            leader = next(each for each in servers.values() if each.leads)
            staying = serving - {turn.id}
            if len(leader.listed) > 2 and leader.id in staying:
                assert len(staying & leader.listed) >= majority(
                    leader.listed
                ), "it stops what serves"
        if turn.action == STOP:
            assert not any(
                turn.id in each.listed
                for each in servers.values()
                if each.serves and each.id != turn.id
            )
        if turn.action == RESTART:
            assert (
                not servers[turn.id].leads
                or turn.lists[0] == turn.lists[-1]
                or all(
                    each.listed == turn.members
                    for each in servers.values()
                    if each.serves and each.id in turn.members and each.id != turn.id
                )
            ), "the leader comes last"
        servers = after(servers, turn)
        if count in kills and sum(len(each) > 2 for each in lists_of(servers)) == len(
            lists_of(servers)
        ):
            servers = died(servers, turn.id)
        lists = sorted(lists_of(servers), key=len)
        assert len(lists) <= 2
        for one, other in itertools.combinations(lists, 2):
            assert majority(one) + majority(other) > len(one | other)
    else:
        raise AssertionError("it does not end")
    assert {each.id for each in servers.values() if each.runs} == target
    assert lists_of(servers) == {target}


def died(servers, number):
    """The servers after this one went down; the others elect where they can."""
    servers = {**servers, number: Server(number)}
    for each in servers.values():
        heirs = [one for one in servers.values() if one.serves and one.listed == each.listed]
        if any(one.leads for one in servers.values()):
            break
        if each.serves and len(heirs) >= 1:
            heir = max(heirs, key=lambda one: one.id)
            servers = {**servers, heir.id: replace(heir, leads=True)}
            break
    return servers


@pytest.mark.parametrize(
    ("servers", "target", "words"),
    [
        ({1: Server(1, True), 2: Server(2, True)}, {1, 2}, "no server serves"),
        (
            {**ensemble({1, 2, 3}), 1: Server(1, True, True, False, frozenset(range(1, 6)))},
            {1, 2, 3},
            "more than one",
        ),
        ({1: Server(1, True, True, True, frozenset({1, 9}))}, {1}, "{9} is in the lists"),
        ({1: Server(1, True, True, True, None)}, {1, 2}, "no list that they tell"),
    ],
)
def test_refused(servers, target, words):
    with pytest.raises(Refused) as refusal:
        all_turns(servers, frozenset(target))
    assert words in refusal.value.reason and refusal.value.remedy


def state(number, members, role="follower", synced=None):
    return {
        "id": number,
        "address": "zk",
        "port": 1,
        "serving": True,
        "runs": True,
        "error": None,
        "role": role,
        "listed": sorted(members),
        "synced_followers": synced,
    }


def gone(number):
    return {
        "id": number,
        "address": "zk",
        "port": 1,
        "serving": False,
        "runs": False,
        "role": None,
        "listed": None,
        "synced_followers": None,
        "error": "refused",
    }


def test_a_plan_of_what_the_servers_say():
    three = [state(1, {1, 2, 3}), state(2, {1, 2, 3}, "leader", 2), state(3, {1, 2, 3})]
    plan = ensemble_plan([*three, gone(4), gone(5)], [1, 2, 3, 4, 5])
    assert len(plan["turns"]) == 9 and plan["refused"] == "" and plan["unmet"] == []
    assert plan["told"][0] == "start server 4 with the list {1, 2, 3, 4}"
    assert plan["turns"][0]["required"] == [1, 2, 3] and plan["turns"][0]["stopping"] is None
    second = plan["turns"][1]
    assert (second["stopping"], second["lists"]) == (1, [[1, 2, 3], [1, 2, 3, 4]])
    assert ensemble_plan(three, [1, 2, 3])["turns"] == []
    behind = [*three[:1], {**three[1], "synced_followers": 1}, three[2], gone(4)]
    assert ensemble_plan(behind, [1, 2, 3, 4])["unmet"] == [
        "the leader has 1 synced followers of 2"
    ]
    assert "smaller than 3" in ensemble_plan(three, [1])["refused"]


@pytest.mark.parametrize(
    ("states", "stopping", "words"),
    [
        # Server 4 follows a leader that does not count it yet: nothing is amiss.
        (
            [
                state(1, {1, 2, 3}),
                state(2, {1, 2, 3}, "leader", 2),
                state(3, {1, 2, 3}),
                state(4, {1, 2, 3, 4}),
            ],
            1,
            "",
        ),
        (
            [state(1, {1, 2, 3}), state(2, {1, 2, 3}, "leader", 2), state(3, {1, 2, 3}), gone(4)],
            1,
            "2 of 4 serve",
        ),
        (
            [
                state(1, {1, 2, 3}),
                state(2, {1, 2, 3}, "leader", 1),
                gone(3),
                state(4, {1, 2, 3, 4}),
            ],
            1,
            "1 of 3 serve",
        ),
        (
            [
                state(1, {1, 2, 3}),
                state(2, {1, 2, 3}, "leader", 1),
                state(3, {1, 2, 3}),
                state(4, {1, 2, 3, 4}),
            ],
            1,
            "1 synced followers of 2",
        ),
    ],
)
def test_each_list_in_effect_needs_its_quorum(states, stopping, words):
    found = "; ".join(unmet(states, None, stopping, [[1, 2, 3], [1, 2, 3, 4]]))
    assert words in found and bool(words) == bool(found), found
