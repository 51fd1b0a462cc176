# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner: refusals before anything, validation before the first write, exact outcome."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import fail, report
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import (
    Outcome,
    Resource,
    reconcile,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from tests.support.still_time import Time

A = Change("create", "a", {}, {"n": 1})
B = Change("create", "b", {}, {"n": 2})
AWAY = AdminError(Problem("cluster.read", "no answer", "wait", ("h:1",)), reachable=False)


class Fake(Resource):
    """Records what is asked of it."""

    def __init__(self, plans, validation=((),), failures=(), unsettled=({},)):
        self.calls = []
        self._plans = list(plans)
        self._validation = list(validation)
        self._failures = list(failures)
        self._unsettled = list(unsettled)

    @staticmethod
    def _next(values):
        return values.pop(0) if len(values) > 1 else values[0]

    def read(self):
        self.calls.append("read")
        return "snapshot"

    def plan(self, snapshot):
        return self._next(self._plans)

    def stale(self, failure):
        return "brokers disagree" if failure.code == "STALE" else ""

    def validate(self, changes, deadline):
        self.calls.append("validate")
        return list(self._next(self._validation))

    def apply(self, changes, deadline):
        self.calls.append("apply")
        return self._failures

    def unsettled(self, changes):
        self.calls.append("look")
        seen = self._next(self._unsettled)
        if isinstance(seen, Exception):
            raise seen  # pylint: disable=raising-bad-type  # it takes the default for all there is
        return seen


def run(resource, check=False, seconds=10):
    """reconcile with a clock of our own."""
    time = Time()
    outcome = reconcile(resource, check, seconds, time.clock, time.sleep)
    return outcome, time.now


def test_what_somebody_else_has_done_meanwhile_is_neither_ours_nor_a_failure():
    moot = Failure("a", "gone", "create", moot=True)
    outcome = reconcile(Fake([Plan((A, B))], failures=[moot]), False, 30, Time().clock)
    assert outcome.changed == (B,) and not outcome.failures
    outcome = reconcile(Fake([Plan((A,))], failures=[moot]), False, 30, Time().clock)
    assert outcome.changed == () and not outcome.failures


def test_nothing_to_do_asks_nothing_more():
    resource = Fake([Plan()])
    outcome, _now = run(resource)
    assert resource.calls == ["read"] and outcome.changed == ()


def test_one_refusal_stops_everything():
    resource = Fake([Plan((A,), (Problem("x.y", "why", "what", ("b",)),))])
    outcome, _now = run(resource)
    assert resource.calls == ["read"] and outcome.changed == ()


def test_check_mode_validates_and_stops():
    resource = Fake([Plan((A,))])
    outcome, _now = run(resource, check=True)
    assert resource.calls == ["read", "validate"] and outcome.changed == (A,)


@pytest.mark.parametrize("check", [True, False])
def test_what_the_cluster_would_turn_down_is_not_begun(check):
    resource = Fake([Plan((A, B))], validation=[[Failure("b", "no", "create")]])
    outcome, _now = run(resource, check)
    assert "apply" not in resource.calls
    assert outcome.changed == () and [item.subject for item in outcome.failures] == ["b"]


def test_a_stale_view_is_read_again():
    resource = Fake(
        [Plan((A, B)), Plan((A,))], validation=[[Failure("b", "nie", "create", "STALE")], []]
    )
    outcome, _now = run(resource)
    assert resource.calls == ["read", "validate", "read", "validate", "apply", "look"]
    assert outcome.changed == (A,)


def test_a_view_that_stays_stale_is_a_failure_at_the_deadline():
    resource = Fake([Plan((A,))], validation=[[Failure("a", "nie.", "create", "STALE")]])
    outcome, now = run(resource, seconds=3)
    assert "apply" not in resource.calls and 3 <= now < 4
    assert outcome.failures[0].error == "nie (brokers disagree)"


def test_a_view_that_stays_stale_does_not_use_up_a_long_timeout():
    resource = Fake([Plan((A,))], validation=[[Failure("a", "no", "create", "STALE")]])
    _outcome, now = run(resource, seconds=3600)
    assert now < 60


def test_a_failed_look_afterwards_takes_nothing_back():
    """Two changes were made; that nobody answers now does not undo them."""
    resource = Fake([Plan((A, B))], unsettled=[{"a": "not there"}, AWAY])
    outcome, _now = run(resource)
    assert outcome.changed == (A, B) and outcome.check_error is AWAY and not outcome.unsettled


def test_what_fails_is_not_changed_and_the_rest_is():
    resource = Fake([Plan((A, B))], failures=[Failure("a", "late", "create")])
    outcome, _now = run(resource)
    assert outcome.changed == (B,) and [item.subject for item in outcome.failures] == ["a"]


def test_it_looks_until_it_is_true():
    resource = Fake([Plan((A,))], unsettled=[{"a": "not there"}, {"a": "not there"}, {}])
    outcome, now = run(resource)
    assert resource.calls.count("look") == 3 and not outcome.unsettled and 0 < now < 1


def test_it_looks_until_the_deadline_and_no_longer():
    resource = Fake([Plan((A,))], unsettled=[{"a": "not there"}])
    outcome, now = run(resource, seconds=5)
    assert outcome.unsettled == {"a": "not there"} and 5 <= now < 6


class Module:
    """What report() needs of an AnsibleModule."""

    def __init__(self, check_mode=False):
        self.check_mode = check_mode
        self.warnings = []
        self.ended = None

    def warn(self, text):
        self.warnings.append(text)

    def exit_json(self, **values):
        self.ended = ("exit", values)
        raise SystemExit

    def fail_json(self, **values):
        self.ended = ("fail", values)
        raise SystemExit


def ended(outcome, check_mode=False):
    """How the module ends."""
    module = Module(check_mode)
    with pytest.raises(SystemExit):
        report(module, outcome, 7, extra=1)
    json.dumps(module.ended)
    return (*module.ended, module)


def test_success_returns_plan_and_diff():
    how, values, module = ended(Outcome(Plan((A,), warnings=("mind",)), (A,)))
    assert how == "exit" and values["changed"] is True and values["extra"] == 1
    assert values["plan"]["changes"][0]["subject"] == "a"
    assert values["diff"] == {"before": {}, "after": {"a": {"n": 1}}}
    assert module.warnings == ["mind"]


def test_refusals_are_lines_and_nothing_changed():
    refusals = tuple(Problem(check, "why", "what", ("a",)) for check in ("x.y", "x.z"))
    how, values, _module = ended(Outcome(Plan((A,), refusals)))
    assert how == "fail" and values["changed"] is False
    assert values["msg"].splitlines()[1:] == [str(refusals[0]), str(refusals[1])]


def test_partial_failure_shows_what_was_done_only():
    outcome = Outcome(Plan((A, B)), (B,), [Failure("a", "late", "create")])
    how, values, _module = ended(outcome)
    assert how == "fail" and values["changed"] is True
    assert values["failed_items"] == [{"name": "a", "error": "late", "kind": "create", "code": ""}]
    assert values["diff"]["after"] == {"b": {"n": 2}}
    assert values["msg"] == "1 of 2 changes were made; refused by the cluster:\na: late"


def test_unsettled_is_a_failure_with_its_seconds():
    how, values, _module = ended(Outcome(Plan((A,)), (A,), [], {"a": "not there yet"}))
    assert how == "fail" and "a: not there yet after 7 s" in values["msg"]
    assert values["failed_items"][0]["name"] == "a" and values["changed"] is True
    # It was made: nothing was refused.
    assert "1 of 1 changes were made; made, but not visible" in values["msg"]
    assert "refused" not in values["msg"]


def test_a_failed_look_is_a_failure_that_says_what_was_done():
    how, values, _module = ended(Outcome(Plan((A,)), (A,), check_error=AWAY))
    assert how == "fail" and values["changed"] is True and values["failed_items"] == []
    assert values["diff"]["after"] == {"a": {"n": 1}} and values["plan"]["changes"]
    assert "1 of 1 changes were made; the check afterwards failed: [cluster.read]" in values["msg"]
    assert "Remedy: run the task again" in values["msg"] and values["reachable"] is False


def test_many_problems_are_shown_in_part():
    failures = [Failure(f"t{i}", "no", "create") for i in range(50)]
    _how, values, _module = ended(Outcome(Plan((A,)), (), failures))
    assert "and 30 more" in values["msg"] and len(values["failed_items"]) == 50
    assert values["changed"] is False and "nothing was changed" in values["msg"]


def test_the_one_error_becomes_fail_json():
    module = Module()
    with pytest.raises(SystemExit):
        fail(module, AWAY)
    assert module.ended == (
        "fail",
        {"msg": AWAY.problem.line(), "changed": False, "reachable": False},
    )
