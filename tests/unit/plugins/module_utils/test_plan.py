# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan: truthiness, diff and dict all tell the same."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils._plan import (
    Change,
    Plan,
    Refusal,
    render,
)

GROW = Change("grow", "orders", {"partitions": 3}, {"partitions": 6}, "keys move")
SET = Change(
    "configure", "orders", {"config": {"retention.ms": "1"}}, {"config": {"retention.ms": "2"}}
)
DROP = Change("delete", "old", {"partitions": 1, "config": {}}, {})


def test_a_plan_is_true_if_it_changes_something():
    assert not Plan()
    assert not Plan(refusals=(Refusal("a.b", "x", "why", "what"),))
    assert Plan((GROW,))


def test_diff_merges_the_changes_of_a_subject_and_shows_what_is_at_stake():
    diff = Plan((SET, GROW, DROP)).diff()
    assert diff["before"] == (
        "old:\n  partitions: 1\norders:\n  config:\n    retention.ms: 1\n  partitions: 3\n"
    )
    assert diff["after"] == (
        "orders:\n  # at stake: keys move\n  config:\n    retention.ms: 2\n  partitions: 6\n"
    )


def test_diff_of_nothing_is_nothing():
    assert Plan().diff() == {"before": "", "after": ""}


def test_a_refusal_reads_as_the_contract_says():
    refusal = Refusal("partitions.decrease", "orders", "has 6", "declare 6", "partitions=3")
    assert str(refusal) == ("[partitions.decrease] orders: partitions=3: has 6. Remedy: declare 6.")
    assert str(Refusal("a.b", "x", "why", "what")) == "[a.b] x: why. Remedy: what."


def test_the_dict_names_every_change_in_order():
    plan = Plan((GROW, DROP)).to_dict()
    assert [(change["kind"], change["subject"]) for change in plan["changes"]] == [
        ("grow", "orders"),
        ("delete", "old"),
    ]
    assert plan["changes"][0]["after"] == {"partitions": 6}


@pytest.mark.parametrize("value", ["a: b", "", " x", "#x", "- x", "{}", "yes: no", "ü", "a\nb"])
def test_awkward_text_is_quoted(value):
    assert yaml.safe_load(render({"key": value})) == {"key": value}


keys = st.from_regex(r"k[a-z.]{0,8}", fullmatch=True)
scalars = st.one_of(st.text("abc :#-{}[]'\"\n\\%@&*!|>?", max_size=12), st.booleans(), st.none())


@given(st.dictionaries(keys, st.one_of(scalars, st.dictionaries(keys, scalars)), max_size=5))
def test_rendering_is_yaml_and_sorted(tree):
    shown = {key: value for key, value in tree.items() if value != {}}
    loaded = yaml.safe_load(render(tree)) or {}
    assert list(loaded) == sorted(shown)
    for key, value in shown.items():
        if isinstance(value, (str, dict)):
            assert loaded[key] == value
