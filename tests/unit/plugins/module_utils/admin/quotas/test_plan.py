# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client quotas: what is read, what is refused, and that a plan leads to what was asked for, and no further."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.purge import Purge
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.entities import (
    DEFAULT,
    Entity,
    entity_of,
    operations,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.plan import (
    BYTES,
    COUNT,
    RATE,
    SHARE,
    DesiredQuota,
    QuotaSnapshot,
    apply_to,
    describe,
    left_of,
    parse_quotas,
    plan_quotas,
    read_limit,
)

WRITE, READ, TIME = "producer_byte_rate", "consumer_byte_rate", "request_percentage"


@pytest.mark.parametrize(
    ("kind", "value", "number"),
    [
        (BYTES, "10MiB", 10 * 2**20),
        (BYTES, 2048, 2048),
        (BYTES, "90B", 90),
        (BYTES, 1, 1),
        (SHARE, "50%", 50),
        (SHARE, 12.5, 12.5),
        (SHARE, "250 %", 250),
        (RATE, "2.5", 2.5),
        (COUNT, 10, 10),
    ],
)
def test_limits_as_people_write_them(kind, value, number):
    assert read_limit(kind, value) == number


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (BYTES, "10M", "not a clear size"),
        (BYTES, "unlimited", "null"),
        (BYTES, 0, "above 0"),
        (BYTES, True, "number"),
        (BYTES, 2**60, "at most"),
        (SHARE, "half", "number"),
        (SHARE, "-1", "above 0"),
        (SHARE, "nan", "above 0"),
        (SHARE, "inf", "above 0"),
        (COUNT, 1.5, "whole"),
        (COUNT, 2**31, "at most"),
        (RATE, None, "number"),
    ],
)
def test_limits_that_are_none(kind, value, words):
    with pytest.raises(ValueError, match=words):
        read_limit(kind, value)


@pytest.mark.parametrize(
    ("item", "check"),
    [
        ({"limits": {WRITE: "1MiB"}}, "quotas.bad_entity"),
        ({"user": "a"}, "quotas.bad_entity"),
        ({"user": "", "limits": {WRITE: "1MiB"}}, "quotas.bad_entity"),
        ({"user": 123, "limits": {WRITE: "1MiB"}}, "quotas.bad_entity"),
        ({"client_id": True, "limits": {WRITE: "1MiB"}}, "quotas.bad_entity"),
        ({"ip": "host", "limits": {"connection_creation_rate": 1}}, "quotas.bad_entity"),
        (
            {"ip": "10.0.0.1", "user": "a", "limits": {"connection_creation_rate": 1}},
            "quotas.bad_entity",
        ),
        ({"ip": "10.0.0.1", "limits": {WRITE: "1MiB"}}, "quotas.unknown_limit"),
        ({"user": "a", "limits": {"connection_creation_rate": 1}}, "quotas.unknown_limit"),
        ({"user": "a", "limits": {"producer_rate": 1}}, "quotas.unknown_limit"),
        ({"user": "a", "limits": {WRITE: "10M"}}, "quotas.bad_value"),
        ({"user": "a", "limits": {WRITE: "1MiB"}, "state": "absent"}, "quotas.contradiction"),
    ],
)
def test_items_that_are_refused(item, check):
    desired, refusals = parse_quotas([item])
    assert not desired and [each.check for each in refusals] == [check]


def test_everything_that_is_wrong_is_said_at_once():
    item = {"user": "a", "limits": {"producer_rate": 1, READ: "10M"}}
    refusals = parse_quotas([item])[1]
    assert [each.check for each in refusals] == ["quotas.unknown_limit", "quotas.bad_value"]
    assert "did you mean producer_byte_rate" in refusals[0].reason


def test_one_entity_twice_is_refused_however_it_is_written():
    item = {"limits": {"connection_creation_rate": 1}}
    both = [{"ip": "2001:DB8::0:1", **item}, {"ip": "2001:db8::1", **item}]
    desired, (refusal,) = parse_quotas(both)
    assert len(desired) == 1 and refusal.check == "quotas.duplicate"


ADA, BOB = Entity("ada"), Entity("bob")


def plan(wanted, has, replacing=False, purge=None):
    """(kind, subject, before, after) of each change."""
    found = plan_quotas(wanted, QuotaSnapshot("id", has), replacing, purge)
    return [(each.kind, each.subject, each.before, each.after) for each in found.changes]


def test_only_what_differs_is_changed():
    wanted = [DesiredQuota(ADA, {WRITE: 5.0, READ: 7.0})]
    assert plan(wanted, {ADA: {WRITE: 5.0, TIME: 1.5}}) == [
        ("configure", "user=ada", {READ: None}, {READ: 7})
    ]
    assert plan(wanted, {ADA: {WRITE: 5.0, TIME: 1.5}}, replacing=True) == [
        ("configure", "user=ada", {READ: None, TIME: 1.5}, {READ: 7, TIME: None})
    ]
    assert plan(wanted, {})[0][0] == "create"
    assert plan(wanted, {ADA: {WRITE: 5.0, READ: 7.0}}) == []


def test_what_loses_its_last_limit_is_gone():
    has = {ADA: {WRITE: 5.0}, BOB: {WRITE: 5.0}}
    assert plan([DesiredQuota(ADA, {WRITE: None})], has) == [("delete", "user=ada", {WRITE: 5}, {})]
    assert plan([DesiredQuota(ADA, absent=True)], has) == [("delete", "user=ada", {WRITE: 5}, {})]
    assert plan([DesiredQuota(ADA, absent=True)], {BOB: {WRITE: 5.0}}) == []


def test_a_purge_takes_what_matches_and_no_more_than_was_agreed():
    has = {ADA: {WRITE: 5.0}, BOB: {WRITE: 5.0}, Entity("bob", "x"): {WRITE: 5.0}}
    purge = Purge(("user=[a-z]+",), 1)
    assert [each[1] for each in plan([DesiredQuota(ADA, {WRITE: 5.0})], has, False, purge)] == [
        "user=bob"
    ]
    found = plan_quotas([], QuotaSnapshot("id", has), purge=purge)
    assert not found.changes and found.refusals[0].check == "purge.maximum"


def test_what_somebody_else_has_set_meanwhile_is_not_ours():
    """And what was there before is what there was when it was changed."""
    wanted = [
        DesiredQuota(ADA, {WRITE: 5.0, READ: 7.0}),
        DesiredQuota(BOB, {WRITE: 5.0}),
        DesiredQuota(Entity("cid"), absent=True),
        DesiredQuota(Entity("dan"), absent=True),
    ]
    before = {Entity("cid"): {WRITE: 1.0}, Entity("dan"): {WRITE: 1.0, READ: 2.0}}
    changes = plan_quotas(wanted, QuotaSnapshot("id", before)).changes
    now = {ADA: {WRITE: 5.0, READ: 3.0, TIME: 1.5}, BOB: {WRITE: 5.0}, Entity("dan"): {WRITE: 9.0}}
    left, moot = left_of(changes, now)
    assert [(each.kind, each.subject, each.before, each.after) for each in left] == [
        ("create", "user=ada", {READ: 3}, {READ: 7}),
        ("delete", "user=dan", {WRITE: 9}, {}),
    ]
    assert [(each.subject, each.moot) for each in moot] == [("user=bob", True), ("user=cid", True)]
    after = apply_to(QuotaSnapshot("id", now), left).quotas
    assert after == {ADA: {WRITE: 5.0, READ: 7.0, TIME: 1.5}, BOB: {WRITE: 5.0}}


names = st.sampled_from(["a", "b", DEFAULT, 'x, client-id="y', " ", "\\", "user=a"]) | st.text(
    min_size=1, max_size=5
)
people = st.builds(Entity, names, st.none() | names)
entities = people | st.builds(Entity, client_id=names)
limits = st.fixed_dictionaries(
    {},
    optional={
        WRITE: st.sampled_from([1.0, 2.0**20]),
        READ: st.sampled_from([1.0, 2.0]),
        TIME: st.sampled_from([1.0, 2.5]),
    },
)
clusters = st.dictionaries(entities, limits.filter(bool), max_size=5)
changed = st.dictionaries(
    st.sampled_from([WRITE, READ, TIME]), st.none() | st.sampled_from([1.0, 2.0]), min_size=1
)
wishes = st.lists(
    st.builds(DesiredQuota, entities, changed)
    | st.builds(DesiredQuota, entities, absent=st.just(True)),
    max_size=5,
    unique_by=lambda each: each.entity,
)


@given(entities, entities)
def test_a_subject_names_one_entity(one, other):
    assert entity_of(one.subject) == one
    assert (one.subject == other.subject) == (one == other)


@given(wishes, clusters, st.booleans())
def test_a_plan_leads_to_what_was_asked_for_and_touches_nothing_else(wanted, has, replacing):
    before = QuotaSnapshot("id", has)
    changes = plan_quotas(wanted, before, replacing).changes
    after = apply_to(before, changes)
    assert not plan_quotas(wanted, after, replacing)
    named = {each.entity: each for each in wanted}
    assert {key: each for key, each in after.quotas.items() if key not in named} == {
        key: each for key, each in has.items() if key not in named
    }
    for entity, quota in named.items():
        now, kept = after.quotas.get(entity, {}), has.get(entity, {})
        if quota.absent:
            assert not now
            continue
        assert all(now.get(key) == value for key, value in quota.limits.items())
        rest = {key: value for key, value in now.items() if key not in quota.limits}
        unnamed = {key: value for key, value in kept.items() if key not in quota.limits}
        assert rest == ({} if replacing else unnamed)


@given(wishes, clusters, clusters, st.booleans())
def test_with_a_second_writer_it_leads_to_the_same(wanted, has, now, replacing):
    """What is left of a plan brings what it names where the plan would have brought it."""
    changes = plan_quotas(wanted, QuotaSnapshot("id", has), replacing).changes
    left, moot = left_of(changes, now)
    after = apply_to(QuotaSnapshot("id", now), left).quotas
    for change in changes:
        found = after.get(entity_of(change.subject), {})
        assert all(found.get(key) == value for key, value in operations(change).items())
    subjects = {change.subject for change in changes}
    assert {each.subject for each in (*left, *moot)} == subjects
    assert {key: each for key, each in after.items() if key.subject not in subjects} == {
        key: each for key, each in now.items() if key.subject not in subjects
    }
    assert left_of(left, now) == (left, [])


@given(clusters)
def test_what_is_read_can_be_declared_and_changes_nothing(has):
    items = [describe(entity, each) for entity, each in has.items()]
    desired, refusals = parse_quotas(items)
    assert not refusals and not plan_quotas(desired, QuotaSnapshot("id", has))


@given(wishes, clusters, st.integers(0, 4))
def test_a_purge_never_takes_a_declared_one_or_too_many(wanted, has, maximum):
    purge = Purge((".*",), maximum)
    found = plan_quotas(wanted, QuotaSnapshot("id", has), purge=purge)
    declared = {each.entity.subject for each in wanted}
    taken = [each for each in found.changes if each.subject not in declared]
    assert len(taken) <= maximum
    assert bool(found.refusals) == (len(set(has) - {each.entity for each in wanted}) > maximum)
