# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Features are raised, and never lowered, whatever somebody writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.features.plan import (
    parse_levels,
    plan_levels,
    raised,
)

LEVELS = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.integers(1, 40))


@given(wanted=LEVELS, finalised=LEVELS)
def test_a_plan_lowers_nothing_and_leads_to_what_was_asked_for(wanted, finalised):
    plan = plan_levels(wanted, finalised)
    after = raised(finalised, plan.changes)
    assert all(after[name] >= level for name, level in finalised.items())
    refused = {each.subjects[0] for each in plan.refusals}
    assert refused == {name for name, level in wanted.items() if level < finalised.get(name, 0)}
    assert {name: level for name, level in after.items() if name not in refused} == {
        name: level for name, level in {**finalised, **wanted}.items() if name not in refused
    }
    assert not plan_levels({name: after[name] for name in wanted}, after)


def test_what_is_shown():
    (change,) = plan_levels({"metadata.version": 30}, {"metadata.version": 21}).changes
    assert (change.before, change.after) == ({"level": 21}, {"level": 30})
    assert "no way back" in change.note
    (refusal,) = plan_levels({"metadata.version": 21}, {"metadata.version": 30}).refusals
    assert refusal.line().startswith("[features.lowered] metadata.version: levels=21: level 30")


@pytest.mark.parametrize("value", [0, -1, "x", "1.5", True, None, ""])
def test_what_is_no_level(value):
    levels, (refusal,) = parse_levels({"group.version": value})
    assert levels == {} and refusal.check == "features.bad_value"


def test_levels_as_templates_give_them():
    assert parse_levels({"a": 1, "b": " 2 "}) == ({"a": 1, "b": 2}, ())
