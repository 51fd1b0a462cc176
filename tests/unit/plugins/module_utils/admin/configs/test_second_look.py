# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kafka_configs still does when somebody else has changed the same settings after the plan: for every such change.

The brokers here are a model that answers from snapshots; real ones: tests/integration/state/test_second_writer.py.
"""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.plan import (
    CONSENTS,
    apply_to,
    endangered,
    own_settings,
    scope_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.resource import Configs
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.scopes import (
    LOGGERS,
    Scope,
    inherited_level,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Broker, Snapshot
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import HIDDEN
from tests.unit.plugins.module_utils.admin.configs.test_plan import (
    AGE,
    ALL,
    ONE,
    PASSWORD,
    THREADS,
    TWO,
    asked,
    clusters,
    snapshot,
)

OF_ONE = Scope(LOGGERS, 1)
SECRET = f"listener.name.x.{PASSWORD}"
LEVELS = st.sampled_from(["INFO", "WARN", "DEBUG"])
LOGGERS_ASKED = st.dictionaries(st.sampled_from(["kafka", "kafka.a.b"]), st.none() | LEVELS)
WISHES = st.fixed_dictionaries(
    {}, optional={ALL: asked, ONE: asked, TWO: asked, OF_ONE: LOGGERS_ASKED}
)
SECRETS = st.sets(st.sampled_from([ALL, ONE]))
MEANWHILE = st.fixed_dictionaries(
    {},
    optional={
        **{
            scope: asked | st.just({SECRET: HIDDEN}) | st.just({SECRET: None})
            for scope in (ALL, ONE, TWO)
        },
        OF_ONE: st.dictionaries(st.sampled_from(["root", "kafka", "kafka.a.b"]), LEVELS),
    },
)
# What is safe as it is planned, and may not be so by what the other one writes: ages only, and no consent.
AGES = st.fixed_dictionaries(
    {}, optional={AGE: st.none() | st.sampled_from(["-1", "1000", "604800000"])}
)
ONLY_AGES = st.fixed_dictionaries({ALL: AGES, ONE: AGES})
OLD = {AGE: "604800000"}
AGED = st.builds(
    lambda each, one: snapshot(
        {key: value for key, value in each.items() if value},
        {key: value for key, value in one.items() if value},
    ),
    AGES,
    AGES,
)
ALLOW = st.sets(st.sampled_from(CONSENTS)).map(sorted)


class Model:
    """Brokers that note what they are told to set."""

    def __init__(self, found):
        self.now, self.told = found, {}

    def fetch_metadata(self):
        brokers = tuple(Broker(each, "h", 9092) for each in sorted(self.now.brokers))
        return Snapshot(self.now.cluster_id, 1, brokers)

    def fetch_features(self, _places):
        return {}

    def fetch_settings(self, brokers, loggers):
        levels = {each: self.now.loggers[each] for each in loggers if each in self.now.loggers}
        return {each: self.now.brokers[each] for each in brokers}, self.now.cluster, levels

    def fetch_topics(self, _names, chosen):
        assert chosen("any")
        return Snapshot()

    def fetch_stakes(self, _topics, _cuts):
        return {}

    def alter_settings(self, wanted, _deadline, _validate_only):
        self.told = dict(wanted)
        return {}


def items_of(wanted, secrets):
    """What people write for these scopes."""
    scopes = sorted({*wanted, *secrets})
    return [
        {
            "scope": each.kind,
            "brokers": None if each.broker is None else [each.broker],
            "settings": dict(wanted.get(each, {})),
            "secrets": {SECRET: "geheim"} if each in secrets else {},
        }
        for each in scopes
    ]


def set_by(found, changed):
    """The snapshot after somebody else has set these; None takes away."""
    return apply_to(
        found,
        [Change("configure", scope.subject, {}, settings) for scope, settings in changed.items()],
    )


def looked_again(then, meanwhile, items, **options):
    """(the plan, the settings when the changes are made, what was sent, the failures, the resource)."""
    model = Model(then)
    params = {
        "configs": items,
        "config_mode": "merge",
        "allow": [],
        "update_secrets": "on_create",
        "plugin_prefixes": [],
        **options,
    }
    resource = Configs(model, params)
    plan = resource.plan(then)
    model.now = set_by(then, meanwhile)
    failures = resource.apply(plan.changes, 1.0)
    return plan, model.now, model.told, failures, resource


def step(found, scope, values):
    """The snapshot after what was sent for one scope."""
    shown = {
        key: HIDDEN if key == SECRET and value is not None else value
        for key, value in values.items()
    }
    return set_by(found, {scope: shown})


def after_all(now, told):
    """The snapshot after everything that was sent."""
    for scope, values in told.items():
        now = step(now, scope, values)
    return now


def own(found, scope):
    """What is set at a scope itself; the levels that are in force, of loggers."""
    if scope.kind == LOGGERS:
        return dict(found.loggers[scope.broker])
    return {key: each.at(scope.kind).value for key, each in own_settings(scope, found).items()}


def is_there(scope, key, value, found):
    """Whether a scope has what was planned for it."""
    has = own(found, scope)
    if scope.kind == LOGGERS:
        return has[key] == (value or inherited_level(has, key))
    return (
        key not in has
        if value is None
        else key in has and (key == SECRET or same_value(key, value, has[key]))
    )


@given(WISHES, SECRETS, clusters, MEANWHILE, ALLOW, st.booleans(), st.booleans())
def test_only_what_was_planned_is_sent_and_all_of_it_or_it_is_told_as_failed(
    wanted, secrets, then, meanwhile, allow, replacing, always
):
    plan, now, told, failures, resource = looked_again(
        then,
        meanwhile,
        items_of(wanted, secrets),
        allow=allow,
        config_mode="replace" if replacing else "merge",
        update_secrets="always" if always else "on_create",
    )
    after = after_all(now, told)
    planned = {scope_of(change.subject): change.after for change in plan.changes}
    assert all(set(values) <= set(planned[scope]) for scope, values in told.items())
    failed = {failure.subject: failure for failure in failures}
    assert len(failed) == len(failures)
    for scope, values in planned.items():
        failure = failed.get(scope.subject)
        event(f"failure: {failure and (failure.code or 'moot')}")
        if failure is not None:
            assert scope not in told, "refused as a whole, or as wanted"
        if failure is None or failure.moot:
            assert all(is_there(scope, key, value, after) for key, value in values.items())
        else:
            assert failure.code == "changed" and "somebody else" in failure.error
            there = [is_there(scope, key, value, now) for key, value in values.items()]
            assert always or not all(there), "nothing is left to do"
    for change in resource.as_made([each for each in plan.changes if each.subject not in failed]):
        scope = scope_of(change.subject)
        assert change.after.keys() == told[scope].keys()
        has = own(now, scope)
        for key, value in change.before.items():
            assert value == (has.get(key) if key != SECRET or key not in has else HIDDEN)
            if key != SECRET and scope.kind != LOGGERS:
                assert not is_there(scope, key, change.after[key], now), "the other one's, not ours"


@given(
    st.tuples(WISHES, clusters, MEANWHILE) | st.tuples(ONLY_AGES, AGED, ONLY_AGES),
    ALLOW | st.just([]),
    st.booleans(),
)
def test_what_has_become_dangerous_meanwhile_needs_its_consent(case, allow, replacing):
    """Judged by what is in force on each broker before and after, not by how the planner looks for it."""
    wanted, then, meanwhile = case
    _plan, now, told, _failures, _resource = looked_again(
        then,
        meanwhile,
        items_of(wanted, ()),
        allow=allow,
        config_mode="replace" if replacing else "merge",
    )
    for scope, values in told.items():
        after = step(now, scope, values)
        needed = {each.consent for each in endangered(now, after)}
        event(f"dangerous: {bool(needed)}")
        assert needed <= set(allow), (scope, values)
        now = after


@given(WISHES, SECRETS, clusters, ALLOW, st.booleans(), st.booleans())
def test_where_nobody_has_changed_anything_the_plan_is_made_to_the_letter(
    wanted, secrets, then, allow, replacing, always
):
    plan, _now, told, failures, resource = looked_again(
        then,
        {},
        items_of(wanted, secrets),
        allow=allow,
        config_mode="replace" if replacing else "merge",
        update_secrets="always" if always else "on_create",
    )
    if plan.refusals:
        return  # the runner makes nothing of such a plan
    assert resource.as_made(plan.changes) == plan.changes and not failures
    assert [scope.subject for scope in told] == [change.subject for change in plan.changes]
    for change in plan.changes:
        sent = told[scope_of(change.subject)]
        shown = {key: HIDDEN if key == SECRET and value else value for key, value in sent.items()}
        assert shown == change.after


def test_an_override_stays_when_what_would_replace_it_is_gone():
    """Safe as planned: broker 1 gets the week that all have. An hour is all that they have now."""
    then = snapshot(cluster=OLD, one={AGE: "86400000"})
    items = items_of({ONE: {AGE: None}, ALL: OLD}, ())
    _plan, _now, told, (failure,), _resource = looked_again(then, {ALL: {AGE: "3600000"}}, items)
    assert not told and failure.code == "changed" and "[retention.cut] broker 1" in failure.error


def test_what_is_safe_only_with_what_is_refused_is_refused_too():
    """The default of all would have made way for the override; it needs consent now for another setting."""
    then = snapshot(cluster={AGE: "3600000"}, one={AGE: "86400000"}, two={AGE: "86400000"})
    items = items_of({ALL: {**OLD, "min.insync.replicas": "2"}, ONE: {AGE: None}}, ())
    plan, _now, told, failures, _resource = looked_again(
        then, {ALL: {"min.insync.replicas": "3"}}, items
    )
    assert not plan.refusals and len(plan.changes) == 2
    assert not told and [each.subject for each in failures] == ["cluster default", "broker 1"]


@pytest.mark.parametrize("meanwhile", [{}, {ONE: {"max.connections": None}}])
def test_what_nobody_declares_is_not_asked_for_once_it_is_gone(meanwhile):
    then = snapshot(one={"max.connections": "9", THREADS: "4"})
    items = items_of({ONE: {THREADS: "5"}}, ())
    _plan, _now, told, failures, _resource = looked_again(
        then, meanwhile, items, config_mode="replace"
    )
    gone = {} if meanwhile else {"max.connections": None}
    assert not failures and told == {ONE: {THREADS: "5", **gone}}
