# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which SCRAM credentials are written and removed, and when nobody can tell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.items import (
    MECHANISMS,
    Credential,
    Desired,
    Trial,
    parse_users,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.plan import (
    UserPolicy,
    UserSnapshot,
    apply_to,
    left_of,
    plan_users,
    to_try,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.resource import (
    login_connection,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.scram import (
    credential,
    iterations_of,
)

SHA = "SCRAM-SHA-512"
OLD = "SCRAM-SHA-256"
ANN = {"name": "ann", "password": "secret"}


def plan(items, stored=(), fits=None, reason="nobody listens", may_alter=True, **policy):
    """The plan for items; every trial of a stored credential ends with `fits`."""
    desired, problems = parse_users(items)
    assert not problems
    trials = {key: Trial(fits, reason) for key in dict(stored)}
    return plan_users(desired, UserSnapshot(dict(stored), trials, may_alter), UserPolicy(**policy))


def checks(found):
    """Ids of the refusals."""
    return [refusal.check for refusal in found.refusals]


@pytest.mark.parametrize(
    "stored, fits, policy, kinds, refused",
    [
        ({}, None, {}, ["create"], []),
        ({("ann", SHA): 4096}, True, {}, [], []),
        ({("ann", SHA): 9999}, True, {}, [], []),
        ({("ann", SHA): 4096}, False, {}, ["change"], []),
        ({("ann", SHA): 4096}, None, {}, [], ["users.untried"]),
        ({("ann", SHA): 4096}, False, {"always": False}, [], []),
        ({("ann", SHA): 4096}, None, {"always": False}, [], []),
        ({("bob", SHA): 4096}, None, {"always": False}, ["create"], []),
    ],
)
def test_a_login_decides_and_where_there_is_none_nothing_does(stored, fits, policy, kinds, refused):
    found = plan([ANN], stored, fits, **policy)
    assert ([change.kind for change in found.changes], checks(found)) == (kinds, refused)


def test_other_iterations_need_no_trial_and_are_left_alone_with_on_create():
    item = {**ANN, "iterations": 8192}
    found = plan([item], {("ann", SHA): 4096}, None)
    assert [(change.kind, change.after) for change in found.changes] == [
        ("change", {"iterations": 8192})
    ]
    assert not plan([item], {("ann", SHA): 4096}, always=False).changes
    assert not plan([item], {("ann", SHA): 8192}, True).changes


def test_an_item_may_say_for_itself_whether_its_password_is_updated():
    stored = {("ann", SHA): 4096}
    assert not plan([{**ANN, "update_password": "on_create"}], stored, False).changes
    assert plan([{**ANN, "update_password": "always"}], stored, False, always=False).changes


def test_only_what_a_trial_can_decide_is_tried():
    desired, _problems = parse_users([ANN, {**ANN, "name": "bob", "iterations": 8192}])
    stored = {("ann", SHA): 4096, ("bob", SHA): 4096}
    assert [each.user for each in to_try(desired, stored, UserPolicy())] == ["ann"]
    assert not to_try(desired, {}, UserPolicy())
    assert not to_try(desired, stored, UserPolicy(always=False))


def test_absent_removes_the_named_mechanisms_or_all():
    stored = {("ann", SHA): 4096, ("ann", OLD): 4096, ("bob", SHA): 4096}
    gone = {"name": "ann", "state": "absent"}
    assert [change.subject for change in plan([gone], stored).changes] == [
        "ann SCRAM-SHA-256",
        "ann SCRAM-SHA-512",
    ]
    one = plan([{**gone, "mechanisms": [OLD]}], stored)
    assert [change.subject for change in one.changes] == ["ann SCRAM-SHA-256"]
    assert not plan([{**gone, "name": "cid"}], stored).changes


def test_another_mechanism_that_stays_valid_is_told_until_it_is_declared():
    stored = {("ann", SHA): 4096, ("ann", OLD): 4096}
    assert "ann SCRAM-SHA-256" in plan([ANN], stored, True).warnings[0]
    gone = {"name": "ann", "mechanisms": [OLD], "state": "absent"}
    assert not plan([ANN, gone], stored, True).warnings
    assert not plan([{**ANN, "mechanisms": [SHA, OLD]}], stored, True).warnings


def test_the_own_credential():
    stored, own = {("ann", SHA): 4096}, ("ann", SHA)
    gone = [{"name": "ann", "state": "absent"}]
    assert checks(plan(gone, stored, own=own)) == ["users.lockout"]
    assert not plan(gone, stored, own=own, allow=frozenset(["lockout"])).refusals
    assert not plan(gone, stored, own=("ann", OLD)).refusals
    changed = plan([ANN], stored, False, own=own)
    assert not changed.refusals and "who runs this" in changed.warnings[0]


def test_who_may_not_is_told_before_anything():
    assert checks(plan([ANN], may_alter=False)) == ["users.rights"]
    assert not plan([ANN], {("ann", SHA): 4096}, True, may_alter=False).refusals


@pytest.mark.parametrize(
    "items, check, option",
    [
        ([{**ANN, "name": ""}], "users.bad_value", "name"),
        ([{**ANN, "name": 7}], "users.bad_value", "name"),
        ([{**ANN, "password": 7}], "users.bad_value", "password"),
        # nobody could log in with these
        ([{**ANN, "name": "Änn"}], "users.bad_value", "name"),
        ([{**ANN, "name": " ann"}], "users.bad_value", "name"),
        ([{**ANN, "name": "\tann"}], "users.bad_value", "name"),
        ([{**ANN, "password": " geheim"}], "users.bad_value", "password"),
        ([{**ANN, "password": "\tgeheim"}], "users.bad_value", "password"),
        ([{"name": "ann"}], "users.bad_value", "password"),
        ([{**ANN, "iterations": 4095}], "users.bad_value", "iterations"),
        ([{**ANN, "iterations": 16385}], "users.bad_value", "iterations"),
        ([{**ANN, "password": {"secret": "secret"}}], "users.bad_value", "password"),
        ([{**ANN, "mechanisms": []}], "users.bad_value", "mechanisms"),
        ([{**ANN, "mechanisms": [SHA, SHA]}], "users.duplicate", ""),
        ([ANN, ANN], "users.duplicate", ""),
        ([ANN, {"name": "ann", "state": "absent"}], "users.contradiction", ""),
        ([{"name": "ann", "state": "absent"}, ANN], "users.contradiction", ""),
        (
            [ANN, {"name": "ann", "state": "absent", "mechanisms": [SHA]}],
            *("users.contradiction", ""),
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(items, check, option):
    _desired, problems = parse_users(items)
    assert [(problem.check, problem.setting) for problem in problems] == [(check, option)]
    assert "secret" not in str(problems)


def test_no_password_is_in_a_plan_or_in_the_words_for_a_value():
    found = plan([ANN, {**ANN, "name": "bob"}], {("bob", SHA): 4096}, False)
    assert len(found.changes) == 2
    assert "secret" not in f"{found}{found.to_dict()}{found.diff()}{Credential('a', SHA, 'secret')}"


@pytest.mark.parametrize(
    "protocol, login, expected",
    [
        ("PLAINTEXT", None, None),
        ("SSL", None, None),
        ("SASL_SSL", None, ("a", "SASL_SSL")),
        ("PLAINTEXT", {}, ("b", "SASL_PLAINTEXT")),
        ("SSL", {}, ("b", "SASL_SSL")),
        ("SASL_SSL", {"security_protocol": "SASL_PLAINTEXT"}, ("b", "SASL_PLAINTEXT")),
    ],
)
def test_where_passwords_are_tried(protocol, login, expected):
    if login is not None:
        login = {"security_protocol": None, "ssl_ca": None, **login, "bootstrap_servers": ["b:1"]}
    where = login_connection({"login": login}, Connection((("a", 1),), protocol))
    assert expected == (where and (where.addresses[0][0], where.security_protocol))


def test_iterations_of_a_stored_credential():
    assert iterations_of(credential("x", SHA, b"salt", 5000)) == 5000
    assert iterations_of("salt=x") == 0


KEYS = st.tuples(st.sampled_from(["a", "b c", "d"]), st.sampled_from(MECHANISMS))
STORED = st.dictionaries(KEYS, st.sampled_from([4096, 8192]), max_size=6)
WANTED = st.dictionaries(KEYS, st.sampled_from([None, 4096, 8192]), max_size=6)


@given(STORED, WANTED, st.frozensets(KEYS), st.booleans(), st.booleans())
def test_a_plan_applied_leads_there_and_touches_nothing_else(stored, wanted, absent, fits, always):
    absent = absent - set(wanted)
    present = tuple(Credential(*key, "x", number) for key, number in wanted.items())
    desired, policy = Desired(present, absent), UserPolicy(always)
    trials = {key: Trial(fits) for key in stored}
    found = plan_users(desired, UserSnapshot(stored, trials), policy)
    after = apply_to(stored, found.changes)
    assert not found.refusals and set(wanted) <= set(after) and not absent & set(after)
    for key in set(stored) - set(wanted) - absent:
        assert after[key] == stored[key]
    fitting = {key: Trial(True) for key in after}
    assert not plan_users(desired, UserSnapshot(after, fitting), policy).changes
    if always:
        assert all(after[key] == number for key, number in wanted.items() if number)


def test_what_others_have_made_can_be_taken_away_whatever_its_name():
    for name in ("Änn", " ann"):
        desired, problems = parse_users([{"name": name, "state": "absent"}])
        assert not problems and desired.all_of == {name}


@pytest.mark.parametrize(
    "before, now, fits, items, policy, left, failed",
    [
        # somebody else has made the user meanwhile
        ({}, {SHA: 4096}, True, [ANN], {}, [], [("create", True)]),
        ({}, {SHA: 4096}, False, [ANN], {}, [("create", {"iterations": 4096})], []),
        ({}, {SHA: 4096}, None, [ANN], {}, [], [("create", False)]),
        ({}, {SHA: 4096}, None, [ANN], {"always": False}, [], [("create", True)]),
        # has removed it, or written it anew
        ({SHA: 4096}, {}, None, [ANN], {}, [("change", {})], []),
        ({SHA: 4096}, {SHA: 8192}, True, [ANN], {}, [], [("change", True)]),
        ({SHA: 4096}, {}, None, [{"name": "ann", "state": "absent"}], {}, [], [("delete", True)]),
        (
            *({SHA: 4096}, {SHA: 8192}, None, [{"name": "ann", "state": "absent"}], {}),
            *([("delete", {"iterations": 8192})], []),
        ),
        # has done nothing
        ({SHA: 4096}, {SHA: 4096}, False, [ANN], {}, [("change", {"password": "another one"})], []),
    ],
)
def test_a_user_whom_somebody_else_has_changed_since_the_plan(
    before, now, fits, items, policy, left, failed
):
    """(kind, what was there) of what is left; (kind, whether it is no failure) of the rest."""
    stored, there = ({("ann", name): n for name, n in each.items()} for each in (before, now))
    changes = plan(items, stored, False, **policy).changes
    desired, _problems = parse_users(items)
    trials = {key: Trial(fits, "nobody listens") for key in there}
    others = {"ann SCRAM-SHA-512"} if before != now else set()
    snapshot = UserSnapshot(there, trials)
    found, failures = left_of(changes, others, desired, snapshot, UserPolicy(**policy))
    assert [(each.kind, dict(each.before)) for each in found] == left
    assert [(each.kind, each.moot) for each in failures] == failed
    assert all(each.code == ("" if each.moot else "changed") for each in failures)
