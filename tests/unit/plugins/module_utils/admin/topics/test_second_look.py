# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kafka_topics still does when somebody else has changed the same topics after the plan: for every such change.

The cluster here is a model that answers from snapshots; real ones are in tests/integration/state/test_second_writer.py.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.answers import (
    with_config,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    BROKER_KEYS,
    Stake,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change, Plan
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.dangers import CONSENTS
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    DesiredTopic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.plan import (
    TopicPolicy,
    apply_to,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.resource import (
    TOPIC_OPTIONS,
    Topics,
)
from tests.unit.plugins.module_utils.admin.topics.test_plan import (
    DEFAULTS,
    VALUES_OF,
    cluster,
    clusters,
    dangers,
    policies,
    settings_of_a_topic,
    topic,
    wishes,
)

PARAMETERS = {name: option.get("default") for name, option in TOPIC_OPTIONS.items()}
# Of each setting that decides which records stay, the brokers say their own value, too.
BROKERS = {settings[0][0]: DEFAULTS[key] for key, settings in BROKER_KEYS.items()}
NAMES = ["a", "b", "c.d", "e-f", "g"]
MEANWHILE = st.dictionaries(st.sampled_from(NAMES), settings_of_a_topic)
# Where both write to the same topics, and often to the same keys.
BUSY = NAMES[:3]
BOTH_WANT = st.tuples(
    *(st.builds(DesiredTopic, name=st.just(name), config=settings_of_a_topic) for name in BUSY)
)
# What is safe as it is planned, and dangerous by what the other one writes: one key, and hardly any consent.
ONE_KEY = st.sampled_from(sorted(VALUES_OF)).flatmap(
    lambda key: st.sampled_from(VALUES_OF[key]).map(lambda value: {key: value})
)
ONE_WANTED = st.tuples(
    *(st.builds(DesiredTopic, name=st.just(name), config=ONE_KEY) for name in BUSY)
)
STRICT = st.builds(TopicPolicy, allow=st.frozensets(st.sampled_from(CONSENTS), max_size=1))
BOTH_WRITE = st.fixed_dictionaries(dict.fromkeys(BUSY, settings_of_a_topic))
BUSY_CLUSTERS = BOTH_WRITE.map(
    lambda chosen: as_read(
        cluster(
            *(
                topic(name, **{key.replace(".", "_"): each for key, each in keys.items() if each})
                for name, keys in chosen.items()
            )
        )
    )
)


class Model:
    """A cluster that notes what it is told to change, and what it was asked for."""

    def __init__(self, snapshot):
        self.now, self.told, self.looked_at = snapshot, [], []

    def fetch_configs(self, names):
        self.looked_at += names
        return {name: self.now.topics[name].config for name in names if name in self.now.topics}

    def fetch_stakes(self, _snapshot, cuts):
        return {name: Stake(1, 1) for name in cuts}

    def apply(self, changes, _deadline):
        self.told = list(changes)
        return []


def as_read(snapshot):
    """The snapshot as the client reads it: a setting falls back to what the brokers have, where that matters."""
    defaults = {**snapshot.broker_defaults, **BROKERS}
    topics = {
        name: with_config(each, each.config, defaults) for name, each in snapshot.topics.items()
    }
    return replace(snapshot, topics=topics, broker_defaults=defaults)


def own(found):
    """What is set at a topic itself."""
    return {key: each.value for key, each in found.config.items() if each.source == "topic"}


def written(snapshot, settings):
    """The snapshot after somebody else has set these of its topics; None takes away."""
    there = {
        name: {key: value for key, value in keys.items() if key in snapshot.topics[name].config}
        for name, keys in settings.items()
        if name in snapshot.topics
    }
    changes = [Change("configure", name, {}, {"config": keys}) for name, keys in there.items()]
    return apply_to(snapshot, Plan(tuple(changes)))


def looked_again(desired, then, policy, meanwhile, gone=frozenset()):
    """(the plan, the cluster as it is when the changes are made, the model, the failures, the resource)."""
    model = Model(then)
    resource = Topics(model, [], PARAMETERS, False)
    resource.desired, resource.policy = desired, policy
    plan = resource.plan(then)
    now = written(then, meanwhile)
    model.now = replace(
        now, topics={name: each for name, each in now.topics.items() if name not in gone}
    )
    failures = resource.apply(plan.changes, 1.0)
    return plan, model.now, model, failures, resource


@given(wishes | BOTH_WANT, clusters.map(as_read) | BUSY_CLUSTERS, policies, MEANWHILE | BOTH_WRITE)
def test_nothing_that_was_not_planned_is_touched_and_no_change_of_somebody_else_undone(
    desired, then, policy, meanwhile
):
    plan, now, model, _failures, _resource = looked_again(desired, then, policy, meanwhile)
    planned = {change.subject: change for change in plan.changes if change.kind == "configure"}
    after = apply_to(now, Plan(tuple(model.told)))
    for name in set(now.topics) & set(after.topics):
        named = planned[name].after["config"] if name in planned else {}
        kept = [
            {key: value for key, value in own(each).items() if key not in named}
            for each in (now.topics[name], after.topics[name])
        ]
        assert kept[0] == kept[1], "only what was planned may be set"
    assert {change.subject for change in model.told} <= {change.subject for change in plan.changes}


@given(BOTH_WANT, BUSY_CLUSTERS, policies, BOTH_WRITE)
def test_a_planned_change_that_is_still_needed_is_made_or_told_as_failed(
    desired, then, policy, meanwhile
):
    plan, now, model, failures, resource = looked_again(desired, then, policy, meanwhile)
    after = apply_to(now, Plan(tuple(model.told)))
    told = {failure.subject: failure for failure in failures}
    assert len(told) == len(failures)
    gone = {change.subject for change in plan.changes if change.kind == "delete"}
    for change in plan.changes:
        if change.kind != "configure":
            assert change in model.told, "only settings are looked at again"
            continue
        assert change.subject not in gone
        failure, there = told.get(change.subject), own(now.topics[change.subject])
        event(f"failure: {failure and (failure.code or 'moot')}")
        if failure is None or failure.moot:
            for key, value in change.after["config"].items():
                assert same_value(key, value, own(after.topics[change.subject]).get(key))
        if failure is not None:
            assert own(after.topics[change.subject]) == there, "refused as a whole, or as wanted"
        if failure is not None and not failure.moot:
            assert failure.code == "changed" and "somebody else" in failure.error
    made = resource.as_made([each for each in plan.changes if each.subject not in told])
    for change in made:
        if change.kind == "configure":
            was = now.topics[change.subject]
            for key, value in change.before["config"].items():
                told = (own(was).get(key), was.config[key].value)
                assert value in told, "the diff is of what was replaced"


@given(ONE_WANTED, BUSY_CLUSTERS, STRICT, BOTH_WRITE)
def test_what_has_become_dangerous_meanwhile_needs_its_consent(desired, then, policy, meanwhile):
    """Judged by the effective values at that moment and after, not by how the planner looks for them."""
    _plan, now, model, _failures, _resource = looked_again(desired, then, policy, meanwhile)
    settings = [change for change in model.told if change.kind == "configure"]
    after = apply_to(now, Plan(tuple(settings)))
    for change in settings:
        was, will = now.topics[change.subject], after.topics[change.subject]
        needed = dangers(was, will)
        event(f"dangerous: {bool(needed)}")
        assert needed <= policy.allow, (was, will)


@given(
    wishes,
    clusters.map(as_read),
    policies,
    st.frozensets(st.sampled_from(NAMES)),
)
def test_where_nobody_has_changed_anything_the_plan_is_made_to_the_letter(
    desired, then, policy, gone
):
    """Of a topic that is gone the brokers say so, which is no reason to leave out another one."""
    plan, _now, model, failures, resource = looked_again(desired, then, policy, {}, gone)
    assert tuple(model.told) == plan.changes == resource.as_made(plan.changes)
    assert not failures
    configured = [change.subject for change in plan.changes if change.kind == "configure"]
    assert model.looked_at == configured, "nothing is asked twice, and nothing else"
