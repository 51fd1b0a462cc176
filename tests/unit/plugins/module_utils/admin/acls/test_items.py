# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Items of kafka_acls as bindings: what they stand for, and what is refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.items import (
    OPERATIONS,
    PATTERNS,
    PERMISSIONS,
    Binding,
    items_of,
    parse_acls,
)

TOPIC = {"topic": "orders", "principal": "User:app", "operations": ["read"]}


def rights(*items):
    """(state, subject) of what the items stand for; no item is refused."""
    wanted, problems = parse_acls(items)
    assert not problems, problems
    return sorted((each.state, each.binding.subject) for each in wanted)


def refused(*items):
    """(id, option) of what is refused."""
    return [(problem.check, problem.setting) for problem in parse_acls(items)[1]]


@pytest.mark.parametrize(
    "item, subjects",
    [
        (TOPIC, ["allow User:app read topic orders"]),
        ({**TOPIC, "principal": "app"}, ["allow User:app read topic orders"]),
        ({**TOPIC, "topic": "*", "permission": "deny"}, ["deny User:app read every topic"]),
        (
            {**TOPIC, "pattern": "prefixed", "host": ["10.0.0.1", "::1"]},
            [
                "allow User:app read topics that begin with orders from 0:0:0:0:0:0:0:1",
                "allow User:app read topics that begin with orders from 10.0.0.1",
            ],
        ),
        (
            {**TOPIC, "principal": ["User:a", "User:CN=b c"], "operations": "DescribeConfigs"},
            [
                'allow "User:CN=b c" describe_configs topic orders',
                "allow User:a describe_configs topic orders",
            ],
        ),
        (
            {"cluster": True, "principal": "User:a", "operations": ["ALTER"]},
            ["allow User:a alter cluster"],
        ),
        (
            {"user": "b", "principal": "User:a", "operations": ["create_tokens"]},
            ["allow User:a create_tokens user User:b"],
        ),
        (
            {"topic": ["o", "p"], "group": "g", "principal": "User:a", "grant": "read"},
            [
                "allow User:a describe topic o",
                "allow User:a describe topic p",
                "allow User:a read group g",
                "allow User:a read topic o",
                "allow User:a read topic p",
            ],
        ),
        (
            {
                "topic": "o",
                "transactional_id": "t",
                "principal": "User:a",
                "grant": ["write"],
                "idempotent": True,
            },
            [
                "allow User:a create topic o",
                "allow User:a describe topic o",
                "allow User:a describe transactional id t",
                "allow User:a idempotent_write cluster",
                "allow User:a write topic o",
                "allow User:a write transactional id t",
            ],
        ),
    ],
)
def test_what_an_item_stands_for(item, subjects):
    assert rights(item) == sorted(("present", subject) for subject in subjects)


@pytest.mark.parametrize(
    "item, check, option",
    [
        ("orders", "acls.bad_item", ""),
        ({**TOPIC, "topics": "x"}, "acls.bad_value", "topics"),
        ({**TOPIC, "principal": None}, "acls.bad_value", "principal"),
        ({**TOPIC, "principal": ":app"}, "acls.bad_value", "principal"),
        ({**TOPIC, "topic": 12}, "acls.bad_value", "topic"),
        ({**TOPIC, "topic": []}, "acls.bad_value", "topic"),
        ({**TOPIC, "topic": ""}, "acls.bad_value", "topic"),
        ({**TOPIC, "host": True}, "acls.bad_value", "host"),
        ({**TOPIC, "operations": ["reed"]}, "acls.bad_value", "operations"),
        ({**TOPIC, "operations": None}, "acls.bad_value", "operations"),
        ({**TOPIC, "topic": None}, "acls.bad_value", "operations"),
        ({**TOPIC, "group": "g"}, "acls.bad_value", "operations"),
        ({**TOPIC, "pattern": "match"}, "acls.bad_value", "pattern"),
        ({**TOPIC, "permission": "maybe"}, "acls.bad_value", "permission"),
        ({**TOPIC, "state": "gone"}, "acls.bad_value", "state"),
        ({**TOPIC, "idempotent": True}, "acls.bad_value", "idempotent"),
        ({**TOPIC, "grant": "read"}, "acls.contradiction", "grant"),
        (
            {"cluster": True, "pattern": "prefixed", "principal": "a", "operations": "all"},
            *("acls.bad_value", "pattern"),
        ),
        ({"topic": "o", "principal": "a", "grant": "both"}, "acls.bad_value", "grant"),
        ({"group": "g", "principal": "a", "grant": "read"}, "acls.bad_value", "topic"),
        (
            {"topic": "o", "group": "g", "principal": "a", "grant": "write"},
            *("acls.bad_value", "group"),
        ),
        (
            {"topic": "o", "principal": "a", "grant": "read", "permission": "deny"},
            *("acls.bad_value", "permission"),
        ),
        (
            {"topic": "o", "principal": "a", "grant": "read", "idempotent": True},
            *("acls.bad_value", "idempotent"),
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_option(item, check, option):
    assert refused(item) == [(check, option)]


def test_the_same_twice_is_refused_and_what_grants_share_is_not():
    assert refused(TOPIC, TOPIC) == [("acls.duplicate", "")]
    one = {"topic": "a", "group": "g", "principal": "User:x", "grant": "read"}
    assert ("present", "allow User:x read group g") in rights(one, {**one, "topic": "b"})
    assert rights(one, {"topic": "a", "principal": "User:x", "operations": "read"}) == rights(one)


def test_what_one_item_wants_stays_when_a_grant_is_absent():
    one = {"topic": "a", "group": "g", "principal": "User:x", "grant": "read"}
    for items in ([one, {**one, "topic": "b", "state": "absent"}],) * 2:
        found = rights(*items)
        assert ("present", "allow User:x read group g") in found
        assert ("absent", "allow User:x read topic b") in found
        assert ("absent", "allow User:x read group g") not in found
        items.reverse()


def test_contradictions_are_refused():
    assert refused(TOPIC, {**TOPIC, "state": "absent"}) == [("acls.contradiction", "")]
    assert refused(TOPIC, {**TOPIC, "permission": "deny"}) == [("acls.contradiction", "")]
    denied = {**TOPIC, "permission": "deny", "state": "absent"}
    assert refused(TOPIC, denied) == []


def test_what_an_item_names_itself_is_not_given_up_for_a_grant_in_any_order():
    grant = {"topic": "orders", "principal": "User:app", "grant": "read"}
    items = [{**grant, "state": "absent"}, {**TOPIC, "state": "absent"}, grant]
    for order in itertools.permutations(items):
        assert refused(*order) == [("acls.contradiction", "")]


@st.composite
def bindings(draw):
    """A binding as Kafka stores them, some odd."""
    kind = draw(st.sampled_from(sorted(OPERATIONS)))
    pattern = "literal" if kind == "cluster" else draw(st.sampled_from(PATTERNS))
    name = draw(st.text("ab. \"'*", min_size=1, max_size=3))
    return Binding(
        kind,
        {"cluster": "kafka-cluster", "user": f"User:{name}"}.get(kind, name),
        pattern,
        draw(st.sampled_from(["User:a", "User:*", "User:CN=a, O=b", "Group:g"])),
        draw(st.sampled_from(PERMISSIONS)),
        draw(st.sampled_from((*OPERATIONS[kind], "all"))),
        draw(st.sampled_from(["*", "10.0.0.1", "0:0:0:0:0:0:0:1", "host"])),
    )


@given(st.frozensets(bindings(), max_size=12))
def test_bindings_written_as_items_are_read_as_the_same_bindings(found):
    """What kafka_acls_info returns is what kafka_acls takes."""
    wanted, problems = parse_acls(items_of(found))
    assert {problem.check for problem in problems} <= {"acls.contradiction"}  # allowed and denied
    assert {each.binding for each in wanted} == found


@given(st.lists(bindings(), max_size=12, unique=True))
def test_no_two_bindings_are_said_in_the_same_words(found):
    assert len({each.subject for each in found}) == len(found)
