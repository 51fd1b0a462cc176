# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of running brokers: what is refused, what needs consent, and that nothing else is touched."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.plan import (
    CONSENTS,
    ConfigsPolicy,
    DesiredScope,
    apply_to,
    cuts_of,
    endangered,
    own_settings,
    plan_configs,
    scope_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.resource import (
    declared,
    differing,
    parse_configs,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.scopes import (
    BROKER,
    CLUSTER,
    LOGGERS,
    THROTTLES,
    ConfigsSnapshot,
    Level,
    Scope,
    Setting,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    ConfigEntry,
    Partition,
    Snapshot,
    Stake,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.stakes import sum_of

THREADS, AGE, HOURS, MINIMUM = (
    "num.io.threads",
    "log.retention.ms",
    "log.retention.hours",
    "min.insync.replicas",
)
POLICY, UNCLEAN = "log.cleanup.policy", "unclean.leader.election.enable"
PASSWORD = "ssl.keystore.password"
DEFAULTS = {THREADS: "8", MINIMUM: "1", POLICY: "delete", UNCLEAN: "false", HOURS: "168"}
ALL, ONE, TWO = Scope(CLUSTER), Scope(BROKER, 1), Scope(BROKER, 2)
MERGING = ConfigsPolicy()
CONSENTING = ConfigsPolicy(allow=frozenset(CONSENTS))


def snapshot(cluster=None, one=None, two=None, static=None):
    """Two brokers: what is set for all, for each, and in their files."""
    brokers = {}
    for broker, own in ((1, one or {}), (2, two or {})):
        table = {AGE: Setting(AGE)}
        table[PASSWORD] = Setting(PASSWORD, sensitive=True)
        table["broker.id"] = Setting("broker.id", read_only=True)
        for key, value in DEFAULTS.items():
            table[key] = Setting(key, (Level("default", value),), read_only=key == HOURS)
        for source, values in (("static", static), (CLUSTER, cluster), (BROKER, own)):
            for key, value in (values or {}).items():
                before = table.get(key) or Setting(key)
                table[key] = before.with_level(source, value, True)
        brokers[broker] = table
    for_all = {
        key: Setting(key, (Level(CLUSTER, value),)) for key, value in (cluster or {}).items()
    }
    return ConfigsSnapshot(
        "id", brokers, for_all, {1: {"root": "INFO", "kafka": "WARN", "kafka.a.b": "WARN"}}
    )


def plan(has, *wanted, policy=MERGING):
    """(subject, before, after) of each change; no refusals."""
    found = plan_configs(wanted, has, policy)
    assert not found.refusals, found.refusals
    return [(each.subject, each.before, each.after) for each in found.changes]


def test_a_setting_is_set_where_it_is_declared_and_nowhere_else():
    has = snapshot(cluster={THREADS: "5"}, static={THREADS: "4"})
    assert plan(has, DesiredScope(ALL, {THREADS: "5"})) == []
    # The same value from another place does not count: it would move with that one.
    assert plan(has, DesiredScope(ONE, {THREADS: "5"})) == [
        ("broker 1", {THREADS: None}, {THREADS: "5"})
    ]
    assert plan(has, DesiredScope(ONE, {THREADS: None})) == []
    assert plan(has, DesiredScope(ALL, {THREADS: None})) == [
        ("cluster default", {THREADS: "5"}, {THREADS: None})
    ]


def test_replace_takes_away_the_rest_of_that_scope_but_no_throttles():
    rates = dict.fromkeys(THROTTLES, "100")
    has = snapshot(
        one={THREADS: "5", "max.connections": "9", **rates}, two={"max.connections": "9"}
    )
    policy = ConfigsPolicy(replace=True)
    assert plan(has, DesiredScope(ONE, {THREADS: "5"}), policy=policy) == [
        ("broker 1", {"max.connections": "9"}, {"max.connections": None})
    ]


def test_replace_leaves_what_the_controllers_need():
    has = replace(snapshot({MINIMUM: "2", "max.connections": "9"}), fixed=frozenset({MINIMUM}))
    policy = ConfigsPolicy(replace=True)
    assert plan(has, DesiredScope(ALL, {THREADS: "5"}), policy=policy) == [
        (
            "cluster default",
            {"max.connections": "9", THREADS: None},
            {"max.connections": None, THREADS: "5"},
        )
    ]


def test_what_is_in_force_and_what_it_overrides():
    setting = snapshot({THREADS: "5"}, {THREADS: "6"}, static={THREADS: "4"}).brokers[1][THREADS]
    assert (setting.value, setting.source) == ("6", "broker")
    told = [(each["source"], each["value"]) for each in setting.to_dict()["overridden"]]
    assert told == [("cluster", "5"), ("static", "4"), ("default", "8")]


def test_a_default_that_an_override_beats_is_a_warning():
    has = snapshot(two={THREADS: "6"})
    (warning,) = plan_configs([DesiredScope(ALL, {THREADS: "5"})], has, ConfigsPolicy()).warnings
    assert warning.startswith(f"{THREADS}: broker 2 has an override")


@pytest.mark.parametrize(
    ("scope", "settings", "check"),
    [
        (ALL, {"num.io.thread": "5"}, "config.unknown_key"),
        (ALL, {"broker.id": "5"}, "configs.read_only"),
        (ONE, {f"listener.name.x.{HOURS}": "5"}, "configs.read_only"),
        (ONE, {PASSWORD: "geheim"}, "configs.secret"),
        (ONE, {f"listener.name.x.{PASSWORD}": "geheim"}, "configs.secret"),
        (Scope(BROKER, 9), {THREADS: "5"}, "configs.unknown_broker"),
        (Scope(LOGGERS, 1), {"kafk": "DEBUG"}, "configs.unknown_logger"),
        (Scope(LOGGERS, 1), {"kafka": "LOUD"}, "config.bad_value"),
        (Scope(LOGGERS, 1), {"root": None}, "config.bad_value"),
    ],
)
def test_what_is_refused(scope, settings, check):
    found = plan_configs([DesiredScope(scope, settings)], snapshot(), CONSENTING)
    assert not found.changes and [each.check for each in found.refusals] == [check]
    assert "geheim" not in found.refusals[0].line()


def test_a_throttle_that_nobody_has_set_yet_is_known():
    assert plan(snapshot(), DesiredScope(ONE, {THROTTLES[0]: "5"}))


def test_keys_of_plug_ins_are_secrets_and_keys_that_are_set_already_may_be_named():
    """Brokers tell no value of a key that they do not know; the second run could not compare it."""
    policy = ConfigsPolicy(plugin_prefixes=("my.plugin.",))
    assert plan(snapshot(), DesiredScope(ALL, secrets={"my.plugin.a": "5"}), policy=policy)
    (refusal,) = plan_configs(
        [DesiredScope(ALL, {"my.plugin.a": "5"})], snapshot(), policy
    ).refusals
    assert refusal.check == "configs.secret" and "tell no value" in refusal.reason
    assert plan(snapshot(cluster={"other": "5"}), DesiredScope(ALL, {"other": None}))


def test_a_secret_is_set_and_never_shown():
    name = f"listener.name.x.{PASSWORD}"
    wanted = DesiredScope(ONE, secrets={name: "geheim"})
    assert plan(snapshot(), wanted) == [("broker 1", {name: None}, {name: "(hidden)"})]
    has = apply_to(snapshot(), plan_configs([wanted], snapshot(), CONSENTING).changes)
    assert plan(has, wanted) == [("broker 1", {name: "(hidden)"}, {name: "(hidden)"})]
    assert plan(has, wanted, policy=ConfigsPolicy(always_set_secrets=False)) == []
    away = DesiredScope(ONE, secrets={name: None})
    assert plan(has, away) == [("broker 1", {name: "(hidden)"}, {name: None})]
    assert declared(has) == []


@pytest.mark.parametrize(
    ("has", "wanted", "consents"),
    [
        ({}, {AGE: "3600000"}, {"retention.cut"}),
        ({AGE: "3600000"}, {AGE: None}, set()),
        ({AGE: "-1"}, {AGE: None}, {"retention.cut"}),
        ({}, {AGE: "-1"}, set()),
        ({}, {POLICY: "compact,delete"}, {"cleanup.change"}),
        ({}, {UNCLEAN: "true"}, {"unclean.election"}),
        ({MINIMUM: "2"}, {MINIMUM: None}, {"min_insync.cut"}),
        ({MINIMUM: "2"}, {MINIMUM: "3"}, set()),
        ({}, {THREADS: "9"}, set()),
    ],
)
def test_what_endangers_records_needs_consent(has, wanted, consents):
    before = snapshot(cluster=has)
    found = plan_configs([DesiredScope(ALL, wanted)], before, ConfigsPolicy())
    assert {each.check for each in found.refusals} == consents
    assert all("allow: [" in each.remedy for each in found.refusals)
    agreed = plan_configs([DesiredScope(ALL, wanted)], before, CONSENTING)
    assert not agreed.refusals and bool(agreed.changes[0].note) == bool(consents)


def test_a_default_that_every_broker_overrides_endangers_nothing():
    own = {AGE: "604800000"}
    has = snapshot(one=own, two=own)
    assert not plan_configs([DesiredScope(ALL, {AGE: "1"})], has, ConfigsPolicy()).refusals
    (refusal,) = plan_configs(
        [DesiredScope(ALL, {AGE: "1"})], snapshot(one=own), ConfigsPolicy()
    ).refusals
    assert refusal.reason.endswith("own on broker 2")


def test_only_topics_without_a_value_of_their_own_are_at_stake():
    def topic(name, **own):
        config = {key: ConfigEntry(key, value, "topic") for key, value in own.items()}
        return Topic(name, (Partition(0, 1, (1,), (1,)),), config)

    topics = Snapshot(
        topics={"a": topic("a"), "b": topic("b", **{"retention.ms": "5"}), "c": topic("c")}
    )
    before = snapshot()
    changes = plan_configs([DesiredScope(ALL, {AGE: "3600000"})], before, CONSENTING).changes
    assert cuts_of(before, apply_to(before, changes), topics) == {
        "a": (3600000, None),
        "c": (3600000, None),
    }


def test_stakes_add_up():
    assert sum_of([]) is None
    both = sum_of([Stake(1, 2, 3, 4), Stake(1, None, 3, None, "not asked")])
    assert both == Stake(2, 2, 6, 4, "not asked")


def test_a_logger_without_a_level_has_that_of_the_one_above():
    has, loggers = snapshot(), Scope(LOGGERS, 1)
    assert plan(has, DesiredScope(loggers, {"kafka.a.b": None})) == []
    assert plan(has, DesiredScope(loggers, {"kafka.a.b": "DEBUG", "kafka": None})) == [
        (
            "loggers of broker 1",
            {"kafka": "WARN", "kafka.a.b": "WARN"},
            {"kafka": None, "kafka.a.b": "DEBUG"},
        )
    ]


@pytest.mark.parametrize(
    ("item", "check"),
    [
        ({"scope": CLUSTER, "brokers": [1], "settings": {THREADS: 1}}, "configs.bad_item"),
        ({"scope": BROKER, "settings": {THREADS: 1}}, "configs.bad_item"),
        ({"scope": BROKER, "brokers": [], "settings": {THREADS: 1}}, "configs.bad_item"),
        ({"scope": LOGGERS, "secrets": {"a": "b"}}, "configs.bad_item"),
        ({"scope": LOGGERS, "brokers": [], "settings": {"root": "WARN"}}, "configs.bad_item"),
        ({"scope": CLUSTER, "state": "absent"}, "configs.bad_item"),
        ({"scope": CLUSTER, "settings": {AGE: "1month"}}, "config.bad_value"),
        ({"scope": CLUSTER, "settings": {"a.password": {"v": "S3CRET"}}}, "config.bad_value"),
        ({"scope": CLUSTER, "settings": {"a.password": [{"S3CRET": 1}]}}, "config.bad_value"),
        ({"scope": CLUSTER, "settings": {AGE: 1}, "secrets": {AGE: "1"}}, "configs.duplicate"),
    ],
)
def test_items_that_are_refused(item, check):
    refusals = parse_configs([item], [1, 2])[1]
    assert [each.check for each in refusals] == [check]
    assert "S3CRET" not in str(refusals)


def test_items_of_one_scope_are_one_and_name_nothing_twice():
    first = {"scope": BROKER, "brokers": [1, 2], "settings": {THREADS: 5, AGE: "7d"}}
    second = {"scope": BROKER, "brokers": [2], "settings": {THREADS: 6}}
    desired, (refusal,) = parse_configs([first, second], [1, 2])
    assert (refusal.check, refusal.subjects) == ("configs.duplicate", ("broker 2",))
    assert desired[0].settings == {THREADS: "5", AGE: "604800000"}
    loggers = parse_configs([{"scope": LOGGERS, "settings": {"a": "debug"}}], [1, 2])[0]
    assert [(each.scope.broker, each.settings) for each in loggers] == [
        (1, {"a": "DEBUG"}),
        (2, {"a": "DEBUG"}),
    ]


def test_what_differs_between_brokers_is_found():
    assert differing(snapshot(two={THREADS: "6"})) == [
        {"name": THREADS, "values": {"1": "8", "2": "6"}}
    ]


keys = st.sampled_from([THREADS, AGE, MINIMUM, POLICY, UNCLEAN, THROTTLES[0]])
CHOICES = {
    THREADS: ["4", "8"],
    AGE: ["-1", "1000", "604800000"],
    MINIMUM: ["1", "2"],
    POLICY: ["delete", "compact", "compact,delete"],
    UNCLEAN: ["true", "false"],
    THROTTLES[0]: ["5", "6"],
}
present = st.fixed_dictionaries(
    {}, optional={key: st.sampled_from(values) for key, values in CHOICES.items()}
)
asked = st.fixed_dictionaries(
    {}, optional={key: st.none() | st.sampled_from(values) for key, values in CHOICES.items()}
)
clusters = st.builds(snapshot, present, present, present, present)
wishes = st.fixed_dictionaries({}, optional={ALL: asked, ONE: asked, TWO: asked}).map(
    lambda each: [DesiredScope(scope, settings) for scope, settings in each.items()]
)


@given(wishes, clusters, st.booleans())
def test_a_plan_leads_to_what_was_asked_for_and_touches_nothing_else(wanted, has, replacing):
    policy = ConfigsPolicy(replace=replacing, allow=frozenset(CONSENTS))
    found = plan_configs(wanted, has, policy)
    assert not found.refusals
    after = apply_to(has, found.changes)
    assert not plan_configs(wanted, after, policy)
    named = {each.scope: each.settings for each in wanted}
    for scope in (ALL, ONE, TWO):
        before, now = (
            {key: each.at(scope.kind).value for key, each in own_settings(scope, state).items()}
            for state in (has, after)
        )
        said = named.get(scope)
        if said is None:
            assert now == before
            continue
        kept = {
            key: value
            for key, value in before.items()
            if key not in said and (not replacing or key in THROTTLES)
        }
        assert now == {**kept, **{key: value for key, value in said.items() if value is not None}}


@given(wishes, clusters, st.sets(st.sampled_from(CONSENTS)))
def test_nothing_that_endangers_records_is_planned_without_consent(wanted, has, allow):
    found = plan_configs(wanted, has, ConfigsPolicy(allow=frozenset(allow)))
    if not found.refusals:
        state = has
        for change in found.changes:
            after = apply_to(state, [change])
            assert {each.consent for each in endangered(state, after)} <= allow
            state = after


TREE = ["root", "kafka", "kafka.a", "kafka.a.b", "kafkas"]
LEVELS = st.sampled_from(["DEBUG", "INFO", "WARN"])


def in_force(own):
    """What brokers tell of loggers that have these levels of their own: a level for each, from the one above."""
    levels = {}
    for name in TREE:
        above = [each for each in TREE if name.startswith(f"{each}.")]
        levels[name] = own.get(name) or levels[above[-1] if above else "root"]
    return levels


@given(
    st.fixed_dictionaries({"root": LEVELS}, optional=dict.fromkeys(TREE[1:], LEVELS)),
    st.fixed_dictionaries(
        {}, optional={"root": LEVELS, **dict.fromkeys(TREE[1:], st.none() | LEVELS)}
    ),
)
def test_loggers_have_what_was_asked_for_whoever_has_a_level_of_its_own(own, wanted):
    """Brokers do not tell who has one, so a plan must not lean on a logger that it changes."""
    loggers = Scope(LOGGERS, 1)

    def planned(levels):
        has = ConfigsSnapshot("id", {1: {}}, {}, {1: levels})
        found = plan_configs([DesiredScope(loggers, wanted)], has, MERGING)
        assert not found.refusals
        return found.changes

    for change in planned(in_force(own)):
        own = {**own, **change.after}
    levels = in_force(own)
    for name, level in wanted.items():
        above = in_force({**own, name: None})[name] if level is None else level
        assert levels[name] == above
    assert not planned(levels)


@given(clusters)
def test_what_is_read_can_be_declared_and_changes_nothing(has):
    desired, refusals = parse_configs(declared(has), [1, 2])
    assert not refusals
    assert not plan_configs(desired, has, ConfigsPolicy(replace=True))


@given(st.sampled_from([ALL, ONE, TWO, Scope(LOGGERS, 3), Scope(BROKER, 12)]))
def test_a_subject_names_one_scope(scope):
    assert scope_of(scope.subject) == scope
