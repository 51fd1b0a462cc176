# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where groups are to be: what is read, what is planned, and what needs consent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.model import (
    Group,
    Member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.plan import (
    CONSENTS,
    DELETE,
    FORGET,
    RESET,
    Reading,
    left_of,
    moments_wanted,
    parse_groups,
    parse_offsets_text,
    place_of,
    plan_groups,
    subject_of,
    wanted_keys,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Partition,
    Snapshot,
    Topic,
)

NOW = 1_800_000_000_000
ALL = frozenset(CONSENTS)
OPTIONS = ("state", "topics", "partitions", "to", "offset", "time", "shift", "offsets", "src")


def item(name="g", **options):
    """An item as Ansible hands it over."""
    return {**dict.fromkeys(OPTIONS), "name": name, "state": "present", **options}


def parsed(*items):
    """The groups; nothing is wrong with them."""
    groups, refusals = parse_groups(items, NOW)
    assert not refusals, [refusal.line() for refusal in refusals]
    return groups


def topic(name, count, leader=1):
    return Topic(name, tuple(Partition(number, leader, (1,), (1,)) for number in range(count)))


CLUSTER = Snapshot(topics={"a": topic("a", 2), "b": topic("b", 1)})
COMMITTED = {("a", 0): 50, ("a", 1): 120, ("b", 0): 5}
READING = Reading(
    CLUSTER,
    {"g": Group("g", "Empty", committed=COMMITTED)},
    {("a", 0): 10, ("a", 1): 100, ("b", 0): 20},
    {("a", 0): 90, ("a", 1): 150, ("b", 0): 30},
    {(NOW - 3_600_000, ("a", 0)): 40, (NOW - 3_600_000, ("a", 1)): -1},
)


def offsets(plan):
    """(kind, partition) -> offset afterwards."""
    return {
        (change.kind, *place_of(change.subject)[1]): change.after["offset"]
        for change in plan.changes
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"to": "earliest", "topics": ["a"]}, {0: 10, 1: 100}),
        ({"to": "latest", "topics": ["a"]}, {0: 90, 1: 150}),
        ({"offset": 50, "topics": ["a"], "partitions": [0]}, {}),
        ({"offset": 51, "topics": ["a"], "partitions": [0]}, {0: 51}),
        ({"time": "1h", "topics": ["a"]}, {0: 40, 1: 150}),
        ({"shift": 7, "topics": ["a"]}, {0: 57, 1: 127}),
        ({"shift": -1000, "topics": ["a"]}, {0: 10, 1: 100}),
        ({"shift": 1000, "topics": ["a"]}, {0: 90, 1: 150}),
        ({"shift": 0, "topics": ["a"]}, {}),
        ({"offsets": [{"topic": "a", "partition": 1, "offset": 149}]}, {1: 149}),
        ({"src": [{"topic": "a", "partition": 1, "offset": 149}]}, {1: 149}),
    ],
)
def test_where_a_group_goes(options, expected):
    plan = plan_groups(parsed(item(**options)), READING, ALL)
    assert not plan.refusals
    assert offsets(plan) == {(RESET, "a", number): to for number, to in expected.items()}


def test_without_topics_all_that_is_committed_is_meant():
    plan = plan_groups(parsed(item(to="earliest")), READING, ALL)
    assert offsets(plan) == {(RESET, "a", 0): 10, (RESET, "a", 1): 100, (RESET, "b", 0): 20}
    notes = {change.subject: change.note for change in plan.changes}
    assert notes == {
        "g a-0": "40 records would be read again",
        "g a-1": "20 records would be read again",
        # what it had not read is gone
        "g b-0": "no record is read again or skipped",
    }


@pytest.mark.parametrize(
    ("options", "allow", "check", "words"),
    [
        (
            {"to": "earliest"},
            {"skip", "delete"},
            "groups.reread",
            "60 records would be read again (a-0: 40",
        ),
        (
            {"to": "latest"},
            {"reread", "delete"},
            "groups.skip",
            "80 records would be skipped unread (a-0: 40",
        ),
        ({"state": "absent"}, {"reread", "skip"}, "groups.delete", "forgets 3 offsets"),
        (
            {"state": "absent", "topics": ["b"]},
            {"reread", "skip"},
            "groups.delete",
            "forgets 1 offsets",
        ),
    ],
)
def test_what_needs_consent_is_refused_without_it(options, allow, check, words):
    refused = plan_groups(parsed(item(**options)), READING, frozenset(allow))
    assert not refused.changes
    assert [refusal.check for refusal in refused.refusals] == [check]
    assert words in refused.refusals[0].line()
    assert plan_groups(parsed(item(**options)), READING, ALL).changes


@pytest.mark.parametrize(
    ("options", "check", "words"),
    [
        ({"to": "latest", "topics": ["c"]}, "groups.unknown_topic", "no such topic"),
        (
            {"to": "latest", "topics": ["a"], "partitions": [0, 2]},
            "groups.unknown_partition",
            "partitions=a-2: the topic has 2 partitions",
        ),
        (
            {"offsets": [{"topic": "b", "partition": 7, "offset": 1}]},
            "groups.unknown_partition",
            "b-7",
        ),
        ({"offset": 9, "topics": ["b"]}, "groups.out_of_range", "b-0 has the offsets 20 to 30"),
        ({"offset": 31, "topics": ["b"]}, "groups.out_of_range", "offset=31"),
    ],
)
def test_what_cannot_be(options, check, words):
    plan = plan_groups(parsed(item(**options)), READING, ALL)
    assert [refusal.check for refusal in plan.refusals] == [check] and not plan.changes
    assert words in plan.refusals[0].line()


def test_a_partition_without_a_leader_is_refused():
    for leader, words in ((None, "has no leader"), (1, "was deleted at this moment")):
        cluster = Snapshot(topics={"b": topic("b", 1, leader)})
        reading = replace(READING, cluster=cluster, starts={}, ends={})
        plan = plan_groups(parsed(item(to="latest", topics=["b"])), reading, ALL)
        (refusal,) = plan.refusals
        assert refusal.check == "groups.no_leader" and f"b-0 {words}" in refusal.reason


def test_a_group_that_is_not_there():
    nobody = item("nobody", to="latest")
    plan = plan_groups(parsed(nobody), READING, ALL)
    assert [refusal.check for refusal in plan.refusals] == ["groups.no_offsets"]
    # with topics it is made
    plan = plan_groups(parsed({**nobody, "topics": ["b"]}), READING, frozenset())
    assert offsets(plan) == {(RESET, "b", 0): 30} and not plan.refusals
    assert plan.changes[0].note == "nothing was committed"
    # and it is absent already
    absent = parsed(item("nobody", state="absent"), item("gone", state="absent", topics=["a"]))
    assert plan_groups(absent, READING, frozenset()) == plan_groups((), READING, frozenset())


MEMBERS = (
    Member("1", "app-1", "10.0.0.7", frozenset({("a", 0)}), frozenset({"a"})),
    Member("2", "app-2", "10.0.0.8", frozenset(), frozenset({"a"})),
)
ACTIVE = replace(READING, groups={"g": Group("g", "Stable", "classic", MEMBERS, COMMITTED)})
JOINING = replace(READING, groups={"g": Group("g", "PreparingRebalance", committed=COMMITTED)})


@pytest.mark.parametrize(
    ("options", "reading", "refused"),
    [
        ({"to": "earliest"}, ACTIVE, True),
        ({"to": "earliest", "topics": ["b"]}, ACTIVE, True),
        ({"state": "absent"}, ACTIVE, True),
        ({"state": "absent", "topics": ["a"]}, ACTIVE, True),
        ({"state": "absent", "topics": ["b"]}, ACTIVE, False),
        ({"offset": 50, "topics": ["a"], "partitions": [0]}, ACTIVE, False),
        ({"to": "earliest"}, JOINING, True),
        ({"state": "absent"}, JOINING, True),
        ({"to": "earliest"}, READING, False),
    ],
    ids=[
        "reset",
        "reset of a topic that nobody reads: Kafka refuses it, too",
        "deletion",
        "offsets of a topic that is read",
        "offsets of a topic that is not read",
        "nothing changes",
        "members are about to join",
        "deletion while members are about to join",
        "nobody reads",
    ],
)
def test_a_group_that_is_read_with_is_left_alone(options, reading, refused):
    plan = plan_groups(parsed(item(**options)), reading, ALL)
    assert [refusal.check for refusal in plan.refusals] == ["groups.active"] * refused
    assert not (refused and plan.changes)
    if refused and reading is ACTIVE:
        assert "app-1 at 10.0.0.7, app-2 at 10.0.0.8" in plan.refusals[0].line()


def test_deletion_is_shown_with_what_is_forgotten():
    plan = plan_groups(parsed(item(state="absent")), READING, ALL)
    (change,) = plan.changes
    assert (change.kind, change.subject, change.after) == (DELETE, "g", {})
    assert change.before == {"state": "Empty", "offsets": {"a-0": 50, "a-1": 120, "b-0": 5}}
    plan = plan_groups(parsed(item(state="absent", topics=["a"], partitions=[1])), READING, ALL)
    assert [(each.kind, each.subject) for each in plan.changes] == [(FORGET, "g a-1")]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "nothing says where"),
        ({"to": "latest", "shift": 1}, "to and shift are given"),
        ({"state": "absent", "to": "latest"}, "an absent group has no offset"),
        ({"offset": -1}, "not negative"),
        ({"time": "2026-01-31T08:00:00"}, "no time zone"),
        ({"to": "latest", "topics": []}, "empty or names one twice"),
        ({"to": "latest", "topics": ["a", "a"]}, "empty or names one twice"),
        ({"to": "latest", "partitions": [0]}, "partitions are those of one topic"),
        ({"to": "latest", "topics": ["a", "b"], "partitions": [0]}, "partitions are those of one"),
        ({"offsets": []}, "there are no offsets"),
        ({"offsets": [{"topic": "a", "partition": 0, "offset": -1}]}, "a number is negative"),
        ({"offsets": [{"topic": "a", "partition": 0, "offset": 1}] * 2}, "listed twice"),
        ({"src": [], "topics": ["a"]}, "name topics already"),
        ({"name": "", "to": "latest"}, "needs a name"),
        # what YAML makes of yes and 0123
        ({"name": True, "to": "latest"}, "the boolean true"),
        ({"name": 83, "state": "absent"}, "the number 83"),
        ({"to": "latest", "topics": ["a", 83]}, "the number 83"),
    ],
)
def test_bad_items_are_refused(options, words):
    groups, refusals = parse_groups([item(**options)], NOW)
    assert not groups and {refusal.check for refusal in refusals} == {"groups.bad_item"}
    assert any(words in refusal.line() for refusal in refusals)


ROW = {"topic": "a", "partition": 0, "offset": 1}


@pytest.mark.parametrize(
    ("one", "other", "twice"),
    [
        ({"to": "latest"}, {"to": "latest", "topics": ["a"]}, True),
        ({"to": "latest", "topics": ["b"]}, {"to": "latest", "topics": ["a"]}, False),
        ({"to": "latest", "topics": ["a", "b"]}, {"shift": 1, "topics": ["a"]}, True),
        (
            {"to": "latest", "topics": ["a"], "partitions": [0]},
            {"shift": 1, "topics": ["a"], "partitions": [1]},
            False,
        ),
        ({"offsets": [ROW]}, {"offsets": [{**ROW, "partition": 1}]}, False),
        ({"offsets": [ROW]}, {"offsets": [ROW]}, True),
        ({"offsets": [ROW]}, {"state": "absent", "topics": ["a"]}, True),
    ],
)
def test_a_group_may_be_listed_again_with_other_partitions(one, other, twice):
    _groups, refusals = parse_groups([item(**one), item(**other), item("h", **one)], NOW)
    assert [refusal.check for refusal in refusals] == ["groups.duplicate"] * twice


def test_a_file_of_kafkas_own_tool_is_read():
    plain = 'a,0,5\n"a",1,6\n\n'
    assert parse_offsets_text(plain, "g") == [
        {"topic": "a", "partition": 0, "offset": 5},
        {"topic": "a", "partition": 1, "offset": 6},
    ]
    several = '"g","a",0,5\n"h","a",0,7\n'
    assert parse_offsets_text(several, "g") == [{"topic": "a", "partition": 0, "offset": 5}]
    for wrong in ("a,0\n", "a,x,5\n", "a,0,\n", "a;0;5\n"):
        with pytest.raises(ValueError, match="line 1"):
            parse_offsets_text(wrong, "g")
    for other_file in ("x" * 140_000, "a,0,5\r6"):  # csv.Error, which is no ValueError
        with pytest.raises(ValueError, match="not a list of topic,partition,offset"):
            parse_offsets_text(other_file, "g")


def test_a_group_of_another_kind_is_not_said_to_be_unchanged():
    """It is not among the groups of consumers, as one that is not there."""
    reading = replace(READING, others={"connect-x": "a group of the protocol connect"})
    for options in ({"state": "absent"}, {"to": "latest", "topics": ["a"]}):
        plan = plan_groups(parsed(item("connect-x", **options)), reading, ALL)
        assert [each.check for each in plan.refusals] == ["groups.other_kind"] and not plan.changes
        assert "it is a group of the protocol connect" in plan.refusals[0].reason


def test_a_shift_of_nothing_is_not_said_to_be_unchanged():
    """A mistyped name looks like this; where some of the topics are committed for, the rest is left alone."""
    reading = replace(READING, groups={"g": Group("g", "Empty", committed={("b", 0): 25})})
    for name, topics in (("nobody", ["b"]), ("g", ["a"])):
        plan = plan_groups(parsed(item(name, shift=1, topics=topics)), reading, ALL)
        assert [each.check for each in plan.refusals] == ["groups.no_offsets"], name
    plan = plan_groups(parsed(item("g", shift=1, topics=["a", "b"])), reading, ALL)
    assert offsets(plan) == {(RESET, "b", 0): 26} and not plan.refusals


def test_members_of_streams_are_not_told_and_not_said_to_be_absent():
    streams = Group("g", "Stable", "streams", (), COMMITTED)
    for options in ({"to": "latest"}, {"state": "absent"}):
        plan = plan_groups(parsed(item(**options)), replace(READING, groups={"g": streams}), ALL)
        (refusal,) = plan.refusals
        assert refusal.check == "groups.active"
        assert "its members are not told, it is Stable" in refusal.reason
    empty = replace(streams, state="Empty")
    assert not empty.reads_unseen and streams.reads_unseen
    plan = plan_groups(parsed(item(to="latest")), replace(READING, groups={"g": empty}), ALL)
    assert plan.changes and not plan.refusals


def test_who_has_gone_on_since_the_plan_is_not_put_back():
    """Forward, back, or where it was to be; and a deletion tells what was there at that moment."""
    groups = {
        name: Group(name, "Empty", committed={("a", 0): 50, ("a", 1): 120}) for name in "ghijk"
    }
    reading = replace(READING, groups=groups)
    desired = parsed(
        item("g", offset=60, topics=["a"], partitions=[0]),
        item("h", to="earliest", topics=["a"]),
        item("i", state="absent"),
        item("j", state="absent", topics=["a"]),
        item("k", state="absent"),
    )
    changes = plan_groups(desired, reading, ALL).changes
    now = {
        "g": {("a", 0): 70},
        "h": {("a", 0): 10, ("a", 1): 120},
        "i": {("a", 0): 55},
        "j": {("a", 1): 130},
    }
    left, failures = left_of(changes, now)
    assert [(each.kind, each.subject, each.before) for each in left] == [
        (RESET, "h a-1", {"offset": 120}),
        (FORGET, "j a-1", {"offset": 130}),
        (DELETE, "i", {"state": "Empty", "offsets": {"a-0": 55}}),
        (DELETE, "k", {"state": "Empty", "offsets": {"a-0": 50, "a-1": 120}}),
    ]
    assert [(each.kind, each.subject, each.moot, each.code) for each in failures] == [
        (RESET, "g a-0", False, "changed"),
        (RESET, "h a-0", True, ""),
        (FORGET, "j a-0", True, ""),
    ]
    assert "committed 70 meanwhile, it was 50" in failures[0].error
    assert left_of(changes, {name: each.committed for name, each in groups.items()}) == (
        list(changes),
        [],
    )


@given(st.text(min_size=1), st.sampled_from(["a", "a-b", "x.y_z"]), st.integers(0, 999))
def test_the_name_of_a_place_leads_back_to_it(group, name, number):
    assert place_of(subject_of(group, (name, number))) == (group, (name, number))


def applied(reading, plan):
    """The reading after the plan."""
    groups = {name: dict(group.committed) for name, group in reading.groups.items()}
    gone = set()
    for change in plan.changes:
        if change.kind == DELETE:
            gone.add(change.subject)
            continue
        name, key = place_of(change.subject)
        if change.kind == RESET:
            groups.setdefault(name, {})[key] = change.after["offset"]
        else:
            del groups[name][key]
    left = {name: Group(name, "Empty", committed=each) for name, each in groups.items()}
    return replace(reading, groups={name: each for name, each in left.items() if name not in gone})


GOALS = st.one_of(
    st.sampled_from([{"to": "earliest"}, {"to": "latest"}, {"time": "1h"}, {"state": "absent"}]),
    st.integers(0, 160).map(lambda number: {"offset": number}),
)
TOPICS = st.sampled_from([None, ["a"], ["b"], ["a", "b"]])


@given(
    st.dictionaries(st.sampled_from(sorted(COMMITTED)), st.integers(0, 200)),
    GOALS,
    TOPICS,
    st.sets(st.sampled_from(CONSENTS)),
)
def test_a_plan_leads_where_it_says_and_a_second_one_is_empty(committed, goal, topics, allow):
    groups = {
        "g": Group("g", "Empty", committed=committed),
        "h": Group("h", "Empty", committed=committed),
    }
    reading = replace(READING, groups=groups)
    desired = parsed(item(topics=topics, **goal))
    plan = plan_groups(desired, reading, frozenset(allow))
    if plan.refusals:
        assert not plan.changes
        return
    after = applied(reading, plan)
    assert after.group("h") == reading.group("h")
    meant = wanted_keys(desired[0], reading.group("g"), CLUSTER)
    untouched = set(committed) - meant
    if goal != {"state": "absent"}:
        assert all(after.group("g").committed[key] == committed[key] for key in untouched)
    assert not plan_groups(desired, after, frozenset()).changes
    for change in plan.changes:
        if change.kind != RESET:
            assert "delete" in allow
            continue
        key = place_of(change.subject)[1]
        start, end = reading.starts[key], reading.ends[key]
        before, to = change.before["offset"], change.after["offset"]
        assert start <= to <= end
        if before is not None and to < min(before, end):
            assert "reread" in allow
        if before is not None and to > max(before, start):
            assert "skip" in allow


def test_moments_are_asked_for_once_for_all_groups():
    desired = parsed(
        item("g", time="1h", topics=["a"]),
        item("h", time="1h", topics=["b"]),
        item("i", to="latest"),
    )
    found = moments_wanted(desired, READING.groups, CLUSTER)
    assert found == {NOW - 3_600_000: {("a", 0), ("a", 1), ("b", 0)}}
