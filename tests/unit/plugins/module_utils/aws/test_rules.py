# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A security group gets exactly what is stated; what others opened is closed with consent only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import (
    Group,
    Rule,
    SeenRule,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.rules import (
    CLOSE,
    OPEN,
    expanded,
    plan_rules,
    subject,
)

SSH = Rule("tcp", 22, 22, "0.0.0.0/0")
KAFKA = Rule("tcp", 9092, 9094, "members")


def group(*seen):
    return Group("sg-1", "vpc-1", {}, seen)


@pytest.mark.parametrize(
    "wanted, seen, consent, kinds, foreign",
    [
        ({SSH: "ssh"}, None, False, [OPEN], []),
        ({SSH: "ssh"}, group(SeenRule("1", SSH, "", True)), False, [], []),
        # somebody else opened what we want: nothing to do
        ({SSH: "ssh"}, group(SeenRule("1", SSH, "by hand", False)), False, [], []),
        ({}, group(SeenRule("1", SSH, "", True)), False, [CLOSE], []),
        ({}, group(SeenRule("1", SSH, "by hand", False)), False, [], ["1"]),
        ({}, group(SeenRule("1", SSH, "by hand", False)), True, [CLOSE], []),
        ({KAFKA: "k"}, group(SeenRule("1", SSH, "", True)), False, [OPEN, CLOSE], []),
        # one port more is another rule
        (
            {KAFKA: "k"},
            group(SeenRule("1", Rule("tcp", 9092, 9093, "members"), "", True)),
            False,
            [OPEN, CLOSE],
            [],
        ),
    ],
)
def test_what_is_opened_and_closed(wanted, seen, consent, kinds, foreign):
    changes, stay = plan_rules(wanted, seen, consent)
    assert [each.kind for each in changes] == kinds
    assert [each.id for each in stay] == foreign


@pytest.mark.parametrize(
    "rule, text",
    [
        (SSH, "tcp 22 from 0.0.0.0/0"),
        (KAFKA, "tcp 9092-9094 from members"),
        (Rule("-1", -1, -1, "sg-2"), "everything from sg-2"),
        (Rule("icmp", -1, -1, "10.0.0.0/8"), "icmp from 10.0.0.0/8"),
    ],
)
def test_a_rule_in_words(rule, text):
    assert rule.text() == text


def test_the_network_is_all_of_its_address_ranges():
    wanted = {Rule("tcp", 1, 1, "network"): "a", Rule("tcp", 1, 1, "10.0.0.0/8"): "b"}
    found = expanded(wanted, ["10.0.0.0/8", "fd00::/56"])
    assert found == {
        Rule("tcp", 1, 1, "10.0.0.0/8"): "b, a",
        Rule("tcp", 1, 1, "fd00::/56"): "a",
    }


RULES = st.builds(
    lambda port, source: Rule("tcp", port, port, source),
    st.integers(1, 4),
    st.sampled_from(["members", "10.0.0.0/8", "sg-2"]),
)


@given(
    st.dictionaries(RULES, st.just("why")),
    st.dictionaries(RULES, st.booleans()),
    st.booleans(),
)
def test_a_carried_out_plan_leaves_the_stated_rules_and_at_most_foreign_ones(
    wanted, there, consent
):
    seen = group(*(SeenRule(rule.text(), rule, "", ours) for rule, ours in there.items()))
    changes, foreign = plan_rules(wanted, seen, consent)
    closed = {each.subject for each in changes if each.kind == CLOSE}
    opened = {each.subject for each in changes if each.kind == OPEN}
    after = {rule for rule in there if subject(rule) not in closed}
    after |= {rule for rule in wanted if subject(rule) in opened}
    assert set(wanted) <= after
    assert after - set(wanted) == {each.rule for each in foreign}
    assert not consent or after == set(wanted)
    # what others made is never closed without consent
    assert consent or not [r for r, ours in there.items() if not ours and subject(r) in closed]
    # ours are ours, also those opened now; and a second run has nothing to do
    kept = [SeenRule("x", rule, "", there.get(rule, True)) for rule in after]
    again, _foreign = plan_rules(wanted, group(*kept), consent)
    assert again == ()
