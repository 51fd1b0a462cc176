# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which records are deleted: what is read, what is planned, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    ConfigEntry,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.records.plan import (
    CONSENTS,
    Extent,
    parse_cuts,
    plan_records,
)

NOW = 1_800_000_000_000
ALL = frozenset(CONSENTS)
OPTIONS = ("partitions", "before_offset", "before_time")


def item(name="a", **options):
    """An item as Ansible hands it over."""
    return {**dict.fromkeys(OPTIONS), "name": name, "all": False, **options}


def parsed(*items):
    """The cuts; nothing is wrong with them."""
    cuts, refusals = parse_cuts(items, NOW)
    assert not refusals, [refusal.line() for refusal in refusals]
    return cuts


def topic(name, count, policy="delete"):
    parts = tuple(Partition(number, 1, (1,), (1,)) for number in range(count))
    return Topic(name, parts, {"cleanup.policy": ConfigEntry("cleanup.policy", policy)})


TOPICS = (topic("a", 2), topic("b", 1, "compact"), topic("c", 1, "compact,delete"), topic("_x", 1))
EXTENT = Extent(
    Snapshot(topics={each.name: each for each in TOPICS}),
    {("a", 0): 10, ("a", 1): 0, ("b", 0): 0, ("c", 0): 0, ("_x", 0): 0},
    {("a", 0): 110, ("a", 1): 50, ("b", 0): 5, ("c", 0): 5, ("_x", 0): 5},
    {("a", 0): 60, ("a", 1): -1},
    {("a", 0): 2 * 2**20, ("a", 1): 2**20},
)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"all": True}, {"a-0": 110, "a-1": 50}),
        ({"before_offset": 20}, {"a-0": 20, "a-1": 20}),
        ({"before_offset": 10}, {"a-1": 10}),
        ({"before_offset": 0}, {}),
        ({"before_offset": 50, "partitions": [1]}, {"a-1": 50}),
        ({"before_time": "1h"}, {"a-0": 60, "a-1": 50}),
    ],
)
def test_up_to_where(options, expected):
    plan = plan_records(parsed(item(**options)), EXTENT, ALL)
    assert not plan.refusals
    assert {each.subject: each.after["first_offset"] for each in plan.changes} == expected


def test_what_is_at_stake_is_said_with_and_without_consent():
    cuts = parsed(item(before_offset=35))
    refused = plan_records(cuts, EXTENT, frozenset())
    assert [each.check for each in refused.refusals] == ["records.delete"] and not refused.changes
    # 25 of 100 records of 2 MiB, 35 of 50 of 1 MiB: 60 of 150 records in 3 MiB
    assert "60 records, about 1.2 MiB on disk would be deleted" in refused.refusals[0].line()
    notes = [change.note for change in plan_records(cuts, EXTENT, ALL).changes]
    assert notes == ["25 records, about 512.0 KiB on disk", "35 records, about 716.8 KiB on disk"]
    blind = replace(EXTENT, sizes={}, unknown="bytes are unknown, kafka-python is not installed")
    first, _second = plan_records(cuts, blind, ALL).changes
    assert first.note == "25 records (bytes are unknown, kafka-python is not installed)"


@pytest.mark.parametrize(
    ("options", "check", "words"),
    [
        ({"name": "aa", "all": True}, "records.unknown_topic", "did you mean a"),
        ({"name": "b", "all": True}, "records.compacted", "cleanup.policy=compact"),
        ({"name": "_x", "all": True}, "topics.protected", "allow_internal: [_x]"),
        ({"before_offset": 60}, "records.out_of_range", "a-1 ends at 50"),
        ({"all": True, "partitions": [1, 2]}, "records.unknown_partition", "partitions=2"),
    ],
)
def test_what_is_refused_whatever_the_consent(options, check, words):
    plan = plan_records(parsed(item(**options)), EXTENT, ALL)
    assert [each.check for each in plan.refusals] == [check] and not plan.changes
    assert words in plan.refusals[0].line()


def test_what_is_named_or_also_deletes_is_not_refused():
    cuts = parsed(item("_x", all=True), item("c", all=True))
    plan = plan_records(cuts, EXTENT, ALL, frozenset({"_x"}))
    assert [each.subject for each in plan.changes] == ["_x-0", "c-0"] and not plan.refusals


def test_a_partition_without_a_leader_is_refused():
    starts = {key: start for key, start in EXTENT.starts.items() if key != ("a", 1)}
    a = EXTENT.cluster.topics["a"]
    parts = tuple(replace(part, leader=None) if part.id == 1 else part for part in a.partitions)
    dark = replace(EXTENT.cluster, topics={"a": replace(a, partitions=parts)})
    extent = replace(EXTENT, starts=starts, cluster=dark)
    plan = plan_records(parsed(item(all=True)), extent, ALL)
    assert [each.check for each in plan.refusals] == ["records.no_leader"]
    assert "a-1: no leader" in plan.refusals[0].line()


def test_a_topic_that_is_deleted_while_it_is_read_is_not_said_to_have_no_leader():
    plan = plan_records(parsed(item(all=True)), replace(EXTENT, starts={}, ends={}), ALL)
    (refusal,) = plan.refusals
    assert refusal.check == "records.unknown_topic" and "deleted at this moment" in refusal.reason


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "nothing says up to where"),
        ({"all": True, "before_offset": 5}, "before_offset and all are given"),
        ({"before_offset": -1}, "not negative"),
        ({"before_time": "2026-01-31"}, "no time zone"),
        ({"before_time": "2099-01-31T00:00:00Z"}, "in the future"),
        ({"all": True, "partitions": []}, "empty"),
        ({"name": 83, "all": True}, "the number 83"),
        ({"name": False, "all": True}, "the boolean false"),
    ],
)
def test_bad_items_are_refused(options, words):
    cuts, refusals = parse_cuts([item(**options)], NOW)
    assert not cuts and {each.check for each in refusals} == {"records.bad_item"}
    assert words in refusals[0].line()


@pytest.mark.parametrize(
    ("one", "other", "twice"),
    [(None, None, True), ([0], None, True), ([0], [0, 1], True), ([0], [1], False)],
)
def test_a_topic_may_be_listed_again_with_other_partitions(one, other, twice):
    items = [item(all=True, partitions=one), item(before_offset=5, partitions=other)]
    _cuts, refusals = parse_cuts([*items, item("c", all=True)], NOW)
    assert ["listed twice" in each.line() for each in refusals] == [True] * twice


LIMITS = st.one_of(
    st.just({"all": True}),
    st.just({"before_time": "1h"}),
    st.integers(0, 60).map(lambda number: {"before_offset": number}),
)


@given(LIMITS, st.sampled_from([None, [0], [1], [0, 1]]), st.booleans())
def test_a_plan_deletes_what_it_says_and_a_second_one_is_empty(limit, partitions, consent):
    cuts = parsed(item(partitions=partitions, **limit))
    plan = plan_records(cuts, EXTENT, ALL if consent else frozenset())
    if plan.refusals:
        assert not plan.changes
        return
    starts = dict(EXTENT.starts)
    for change in plan.changes:
        assert consent
        name, _dash, number = change.subject.rpartition("-")
        key = (name, int(number))
        assert partitions is None or key[1] in partitions
        assert starts[key] < change.after["first_offset"] <= EXTENT.ends[key]
        starts[key] = change.after["first_offset"]
    after = plan_records(cuts, replace(EXTENT, starts=starts), frozenset())
    assert not after.changes and not after.refusals
