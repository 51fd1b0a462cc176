# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan: truthiness, diff and dict all say the same."""

from __future__ import annotations

import json

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError

GROW = Change("grow", "orders", {"partitions": 3}, {"partitions": 6}, "keys move")
SET = Change(
    "configure", "orders", {"config": {"retention.ms": "1"}}, {"config": {"retention.ms": "2"}}, "x"
)
DROP = Change("delete", "old", {"partitions": 1, "config": {}}, {}, "deletes 5 records")


def test_a_plan_is_true_if_it_changes_something():
    assert not Plan()
    assert not Plan(refusals=(Problem("a.b", "why", "what", ("x",)),))
    assert Plan((GROW,))


def test_diff_merges_the_changes_of_a_subject_and_shows_what_is_at_stake():
    diff = Plan((SET, GROW, DROP)).diff()
    assert diff["before"] == {
        "old": {"partitions": 1, "config": {}},
        "orders": {"config": {"retention.ms": "1"}, "partitions": 3},
    }
    assert diff["after"] == {
        "orders": {
            "at stake": "x; keys move",
            "config": {"retention.ms": "2"},
            "partitions": 6,
        },
        "old": {"at stake": "deletes 5 records"},
    }
    assert SET.before == {"config": {"retention.ms": "1"}}, "the changes stay as they are"


def test_diff_shows_no_property_that_is_absent():
    created = Change("create", "orders", {}, {"partitions": 6, "replication_factor": None})
    replaced = Change("alter", "users", {"password": None, "quota": 0}, {"password": "new"})
    assert Plan((created, replaced)).diff() == {
        "before": {"users": {"quota": 0}},
        "after": {"orders": {"partitions": 6}, "users": {"password": "new"}},
    }


def test_diff_of_nothing_is_nothing():
    assert Plan().diff() == {"before": {}, "after": {}}


def test_the_dict_names_every_change_in_order_and_every_refusal():
    refusal = Problem("partitions.decrease", "has 6", "declare 6", ("orders",), "partitions", "3")
    plan = Plan((GROW, DROP), (refusal,)).to_dict()
    assert [(change["kind"], change["subject"]) for change in plan["changes"]] == [
        ("grow", "orders"),
        ("delete", "old"),
    ]
    assert plan["changes"][0]["after"] == {"partitions": 6}
    assert plan["refusals"][0]["line"] == (
        "[partitions.decrease] orders: partitions=3: has 6. Remedy: declare 6."
    )
    json.dumps(plan)


def test_a_failure_keeps_the_code_of_the_broker():
    failure = Failure("orders", "Topic 'orders' already exists.", "create", "TOPIC_ALREADY_EXISTS")
    assert failure.to_dict()["code"] == "TOPIC_ALREADY_EXISTS"


def test_an_admin_error_is_a_problem_with_more_to_return():
    error = AdminError(Problem("a.b", "why", "what"), reachable=False)
    assert isinstance(error, ProblemError) and str(error) == error.message
    assert not error.reachable and AdminError(error.problem).reachable
