# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The quorum of a KRaft cluster: what Kafka answers, whether a voter may stop, and whether one is back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import (
    CAUGHT_UP_MS,
    FETCHED_MS,
    NOBODY,
    Quorum,
    Replica,
    Return,
    cut_off,
    held_back,
    other_voters,
    quorum_of,
    without_quorum,
)

NOW, END = 1_800_000_000_000, 500


def voter(number, fetched=100, caught_up=100, end=END, directory=""):
    """Ages in ms, None where they are unknown."""

    def at(age):
        return -1 if age is None else NOW - age

    return Replica(number, end, at(fetched), at(caught_up), directory)


def leader(number, end=END):
    return Replica(number, end, -1, NOW)


def quorum(*voters, leads=1):
    return Quorum(leads, 7, voters)


DEAD = {"fetched": FETCHED_MS + 1, "caught_up": FETCHED_MS + 1}
WHOLE = (leader(1), voter(2), voter(3))
FIVE = (leader(1), voter(2), voter(3), voter(4), voter(5))
# The voters, who leads, who shall stop, words of why not.
TABLE = [
    (WHOLE, 1, 1, ""),
    (WHOLE, 1, 2, ""),
    (WHOLE, NOBODY, 2, "no leader"),
    # a leader that is not a voter tells no time
    (WHOLE, 9, 2, "no leader"),
    # the dead one is listed with lag 0
    ((leader(1), voter(2), voter(3, **DEAD)), 1, 1, "3 (its last fetch was 2.0 s ago)"),
    ((leader(1), voter(2), voter(3, **DEAD)), 1, 2, "without node 2 1 of 3 voters keep up, and 2"),
    ((leader(1), voter(2), voter(3, **DEAD)), 1, 3, ""),
    ((leader(1), voter(2), voter(3, caught_up=CAUGHT_UP_MS + 1, end=9)), 1, 2, "3 (it lacks 491"),
    ((leader(1), voter(2), voter(3, None, None)), 1, 2, "3 (it has not fetched)"),
    ((leader(1), voter(2), voter(3, caught_up=None)), 1, 2, "3 (it was not caught up lately)"),
    # with it the leader and it decide, and it fetches: it may be catching up, and would begin anew
    (
        (leader(1), voter(2, **DEAD), voter(3, caught_up=9000, end=9)),
        1,
        3,
        "without node 3, which fetches and may be catching up, 1 of 3 voters keep up",
    ),
    ((leader(1), voter(2, **DEAD), voter(3, caught_up=None)), 1, 3, "may be catching up"),
    ((leader(1), voter(2), voter(3, caught_up=9000, end=9)), 1, 3, ""),
    # who does not fetch is cured by a restart
    ((leader(1), voter(2, **DEAD), voter(3, **DEAD)), 1, 3, ""),
    ((*FIVE[:3], voter(4, caught_up=9000), voter(5, **DEAD)), 1, 4, ""),
    ((*FIVE[:2], voter(3, caught_up=9000), voter(4, **DEAD), voter(5, **DEAD)), 1, 3, "2 of 5"),
    # lag alone says nothing of a busy cluster
    ((leader(1), voter(2), voter(3, end=END - 90)), 1, 2, ""),
    (FIVE, 1, 1, ""),
    ((*FIVE[:4], voter(5, **DEAD)), 1, 2, ""),
    ((*FIVE[:3], voter(4, **DEAD), voter(5, **DEAD)), 1, 2, "2 of 5 voters keep up, and 3 are"),
    ((*FIVE[:3], voter(4, **DEAD), voter(5, **DEAD)), 1, 4, ""),
    # nobody else could ever decide
    ((leader(1),), 1, 1, ""),
    # no vote
    ((leader(1), voter(2, **DEAD), voter(3, **DEAD)), 1, 4, ""),
    (WHOLE, NOBODY, 4, "no leader"),
]


@pytest.mark.parametrize("voters, leads, node, words", TABLE)
def test_may_this_voter_stop(voters, leads, node, words):
    told = "; ".join(held_back(quorum(*voters, leads=leads), node))
    assert words in told and bool(words) == bool(told)


@given(
    ages=st.lists(st.tuples(*[st.sampled_from([None, 0, 100, 1999, 2001, 60000])] * 2), max_size=6),
    node=st.integers(1, 8),
)
def test_whoever_fetches_is_only_spared_where_a_majority_of_others_counts(ages, node):
    found = quorum(leader(1), *(voter(number, *age) for number, age in enumerate(ages, start=2)))
    size = len(found.voters)
    counting = {each.id for each in found.voters if found.keeps_up(each)}
    fetches = {1} | {
        number for number, (age, _) in enumerate(ages, start=2) if age in (0, 100, 1999)
    }
    allowed = not held_back(found, node)
    left = len(counting - {node})
    if node in fetches and size > 1:
        assert allowed == (left > size / 2)
    else:
        assert allowed
    assert bool(without_quorum(found, node)) == (size == 1 and node == 1)


@given(st.permutations(FIVE))
def test_the_order_of_the_voters_changes_nothing(voters):
    assert [held_back(quorum(*voters), node) for node in range(7)] == [[]] * 7


def test_other_voters_than_those_of_the_inventory_are_told():
    assert other_voters(quorum(*WHOLE), [3, 2, 1]) == ""
    assert "are 1, 2, 3, and the inventory has 1, 2" in other_voters(quorum(*WHOLE), [1, 2])
    assert "and the inventory has 1, 2, 3, 4" in other_voters(quorum(*WHOLE), [1, 2, 3, 4])


def look(offset, ms, leads=1, epoch=7, **voters):
    """A look `ms` later, the leader's log at `offset`; v2=(end, ms of its fetch)."""
    others = tuple(
        Replica(int(name[1:]), end, NOW + fetched, NOW + fetched)
        for name, (end, fetched) in voters.items()
    )
    return Quorum(leads, epoch, (Replica(leads, offset, -1, NOW + ms), *others))


def test_a_voter_is_back_once_it_has_fetched_after_the_first_look():
    """The leader lists one that is dead, too, with lag 0 and a fetch of a moment ago."""
    back = Return([2])
    assert back.unmet(look(100, 0, v2=(100, -50))) == ["voter 2 has not fetched from leader 1 yet"]
    assert back.unmet(look(100, 5000, v2=(100, -50)))
    assert back.unmet(look(130, 6000, v2=(99, 5500))) == ["voter 2 lacks 1 records of leader 1"]
    assert not back.unmet(look(140, 7000, v2=(101, 6500))), "what came later is not waited for"


def test_where_another_one_leads_its_clock_counts_from_its_first_look():
    back = Return([1, 2])
    assert back.unmet(look(100, 0, v2=(100, -50)))
    late = look(120, -90000, leads=3, epoch=8, v1=(120, -90100), v2=(120, -90100))
    assert len(back.unmet(late)) == 2
    now = look(120, -89000, leads=3, epoch=8, v1=(120, -89500), v2=(120, -89600))
    assert not back.unmet(now)


def test_a_voter_that_leads_is_back_and_one_that_is_no_voter_is_not():
    assert not Return([1]).unmet(look(1, 0))
    assert Return([4]).unmet(look(1, 0)) == ["node 4 is not a voter of the quorum"]
    assert Return([1]).unmet(Quorum()) == ["the quorum of controllers has no leader"]
    assert not Return([]).unmet(look(1, 0))


@pytest.mark.parametrize(
    "voted, observers, elsewhere",
    [
        # formatted anew: the voter of the old disk, and the node that follows
        (dict(DEAD, directory="old"), [voter(3, directory="new")], "new"),
        (dict(DEAD, directory="old"), [voter(3, **DEAD, directory="new")], ""),
        (dict(DEAD, directory="old"), [voter(4, directory="new")], ""),
        # both run
        ({"directory": "old"}, [voter(3, directory="new")], ""),
        # a static quorum knows of no directories
        (DEAD, [voter(3, directory="new")], ""),
    ],
)
def test_a_voter_that_runs_with_another_directory_is_told_apart(voted, observers, elsewhere):
    found = Quorum(1, 7, (leader(1), voter(2), voter(3, **voted)), tuple(observers))
    assert found.elsewhere(found.voters[2]) == elsewhere
    assert found.to_dict()["voters"][2]["elsewhere"] == elsewhere
    told = "; ".join(held_back(found, 2))
    assert ("replace_broker.yml -e broker=3" in told) is bool(elsewhere)
    assert ("votes with directory old, and its disk has new" in told) is bool(elsewhere)


def test_an_answer_of_kafka_becomes_a_quorum():
    """As kafka-python 3.0.12 returns the partition, from Kafka 4.3.1."""

    def replica(number, fetched, caught_up):
        return {
            "replica_id": number,
            "replica_directory_id": "ed0d23d8-8d17-433b-aee0-1a2a5e4a3e1c",
            "log_end_offset": END,
            "last_fetch_timestamp": fetched,
            "last_caught_up_timestamp": caught_up,
        }

    answer = {
        "partition_index": 0,
        "leader_id": 2,
        "leader_epoch": 9,
        "high_watermark": 499,
        "current_voters": [replica(2, -1, NOW), replica(1, NOW - 5, NOW - 6)],
        "observers": [replica(4, NOW - 7, NOW - 7)],
        "error": None,
    }
    found = quorum_of(answer)
    disk = "7Q0j2I0XQzuu4BoqXko-HA"
    assert found == Quorum(
        2,
        9,
        (Replica(1, END, NOW - 5, NOW - 6, disk), Replica(2, END, -1, NOW, disk)),
        (Replica(4, END, NOW - 7, NOW - 7, disk),),
    )
    assert found.to_dict()["voters"][0] == {
        "id": 1,
        "lag": 0,
        "fetched_ms_ago": 5,
        "caught_up_ms_ago": 6,
        "keeps_up": True,
        "directory": disk,
        "elsewhere": "",
    }
    assert found.to_dict()["voters"][1]["fetched_ms_ago"] is None
    assert quorum_of({**answer, "leader_id": -1}).to_dict()["leader"] is None
    with pytest.raises(ValueError, match="NotLeader"):
        quorum_of({**answer, "error": "NotLeaderOrFollowerError"})


FIVE = ("c-1", "c-2", "c-3", "c-4", "c-5")


@pytest.mark.parametrize(
    ("voters", "unreached", "known", "expected"),
    [
        (FIVE[:1], [], {}, []),
        (FIVE[:3], [], {}, []),
        # it has died since, or ends at each start: the gate goes on, or waits for it
        (FIVE, ["c-5"], {"keep_up": FIVE[:4]}, []),
        (FIVE[:3], ["c-3"], {"keep_up": FIVE[:2]}, []),
        # nobody tells
        (FIVE, ["c-5"], {}, []),
        # it fetches, and is not reached
        (FIVE, ["c-5"], {"keep_up": FIVE}, ["c-5"]),
        (FIVE[:3], ["c-3"], {"keep_up": FIVE[:3]}, ["c-3"]),
        # a restart of this run has done that, whatever the quorum says
        (FIVE, ["c-4", "c-5"], {"restarted": ["c-4"], "keep_up": FIVE[:3]}, ["c-4"]),
        (FIVE[:3], ["c-2"], {"restarted": ["c-2"]}, ["c-2"]),
        # no election would come about
        (FIVE[:3], ["c-3", "c-2"], {}, ["c-2", "c-3"]),
        (FIVE[:2], ["c-2"], {"keep_up": ["c-1"]}, ["c-2"]),
        # it is the one that shall be mended
        (FIVE[:3], ["c-2"], {"keep_up": FIVE[:3], "is_reached": False}, []),
        (FIVE[:3], ["c-2", "c-3"], {"restarted": ["c-2"], "is_reached": False}, []),
    ],
)
def test_for_whose_sake_a_voter_may_not_restart(voters, unreached, known, expected):
    """As c-1 sees it."""
    reached = [each for each in voters if each not in ("c-1", *unreached)]
    assert cut_off(unreached, voters, reached, **known) == expected


def test_voters_that_were_down_before_count_for_no_majority():
    assert cut_off(["c-2"], FIVE, ["c-3"]) == ["c-2"]
    assert cut_off([], FIVE, []) == [], "they are none that it has tried"
