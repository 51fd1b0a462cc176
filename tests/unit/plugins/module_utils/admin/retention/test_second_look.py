# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kafka_retention still does when somebody else has changed the same topics after the plan: for every such change.

The cluster here is a model that answers from snapshots; real ones are in tests/integration/state/test_second_writer.py.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import DISK_OPTIONS
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import ConfigEntry, Stake
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change, Plan
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.plan import (
    CONSENTS,
    KEYS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.resource import (
    RETENTION_OPTIONS,
    Holdings,
    Retention,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.dangers import dangers
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.plan import apply_to
from tests.unit.plugins.module_utils.admin.retention.test_plan import DAY, DEFAULTS, cluster, topic

PARAMETERS = {
    name: option.get("default") for name, option in {**RETENTION_OPTIONS, **DISK_OPTIONS}.items()
}
BROKERS = {
    "log.retention.ms": DEFAULTS["retention.ms"],
    "log.retention.bytes": DEFAULTS["retention.bytes"],
    "log.cleanup.policy": DEFAULTS["cleanup.policy"],
}
NAMES = ["a.x", "a.y", "b.x"]
VALUES = {
    "retention.ms": ["-1", str(DAY), str(30 * DAY), str(90 * DAY)],
    "retention.bytes": ["-1", str(2**20), str(2**40)],
    "cleanup.policy": ["delete", "compact", "compact,delete"],
    "segment.ms": ["60000", str(DAY)],
}
SETTINGS = st.fixed_dictionaries(
    {}, optional={key: st.none() | st.sampled_from(values) for key, values in VALUES.items()}
)
TOPICS = st.fixed_dictionaries(dict.fromkeys(NAMES, SETTINGS)).map(
    lambda chosen: replace(
        cluster(
            *(
                topic(name, **{key.replace(".", "_"): each for key, each in own.items() if each})
                for name, own in chosen.items()
            )
        ),
        broker_defaults=BROKERS,
    )
)
POLICIES = st.lists(
    st.fixed_dictionaries(
        {
            "match": st.sampled_from([r"a\..*", r".*\.x", ".*"]),
            "keep_for": st.sampled_from(["1h", "1d", "30d", "forever", "default"]),
        },
        optional={
            "keep_up_to": st.sampled_from(["2MiB", "unlimited", "default"]),
            "cleanup": st.sampled_from(["delete", "compact,delete", "default"]),
            "fit_segments": st.booleans(),
        },
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda each: each["match"],
)
ALLOW = st.sets(st.sampled_from(CONSENTS)).map(sorted)
# No consent at all: what is planned is safe then, and may not be so any more.
ONE_LIMIT = st.sampled_from(["1h", "1d", "30d", "forever"]).map(
    lambda each: [{"match": ".*", "keep_for": each}]
)
MEANWHILE = st.dictionaries(st.sampled_from(NAMES), SETTINGS)
CLEANUPS = st.fixed_dictionaries({"cleanup.policy": st.sampled_from(VALUES["cleanup.policy"])})
LIMITED = CLEANUPS.map(
    lambda each: replace(
        cluster(
            topic("a.x", cleanup_policy=each["cleanup.policy"], retention_ms=str(30 * DAY)),
            topic("a.y"),
            topic("b.x"),
        ),
        broker_defaults=BROKERS,
    )
)
OF_ONE = CLEANUPS.map(lambda each: {"a.x": each})
# Often what is wanted, too.
SAME_KEY = st.sampled_from(["-1", str(DAY // 24), str(DAY), str(30 * DAY)]).map(
    lambda each: {"a.x": {"retention.ms": each}}
)


class Model:
    """A cluster that notes what it is told to change."""

    def __init__(self, snapshot):
        self.now, self.told = snapshot, []

    def fetch_configs(self, names):
        return {
            name: {
                key: replace(each, fallback=None)
                for key, each in self.now.topics[name].config.items()
            }
            for name in names
            if name in self.now.topics
        }

    def fetch_stakes(self, _snapshot, cuts, _sizes):
        return {name: Stake(1, 2, 1, 2) for name in cuts}

    def apply(self, changes, _deadline):
        self.told = list(changes)
        return []


def own(found):
    """What is set at a topic itself."""
    return {key: each.value for key, each in found.config.items() if each.source == "topic"}


def set_by(snapshot, changed):
    """The snapshot after somebody else has set these; None takes away."""
    changes = [Change("configure", name, {}, {"config": keys}) for name, keys in changed.items()]
    return apply_to(snapshot, Plan(tuple(changes)))


def looked_again(policies, then, allow, meanwhile, gone=frozenset()):
    """(the plan, the cluster when the changes are made, and after them, the failures, the resource)."""
    model = Model(then)
    params = {**PARAMETERS, "policies": policies, "allow": allow}
    resource = Retention(model, params, False)
    plan = resource.plan(Holdings(then))
    assert not resource.refusals
    now = set_by(then, meanwhile)
    now = replace(now, topics={name: each for name, each in now.topics.items() if name not in gone})
    model.now = now
    failures = resource.apply(plan.changes, 1.0)
    left = [change for change in model.told if change.subject in now.topics]
    return plan, now, apply_to(now, Plan(tuple(left))), failures, resource


@given(
    st.tuples(POLICIES, TOPICS, MEANWHILE) | st.tuples(ONE_LIMIT, LIMITED, SAME_KEY),
    ALLOW | st.just(CONSENTS),
)
def test_only_what_was_planned_is_set_and_all_of_it_or_it_is_told_as_failed(case, allow):
    policies, then, meanwhile = case
    plan, now, after, failures, resource = looked_again(policies, then, allow, meanwhile)
    planned = {change.subject: change.after["config"] for change in plan.changes}
    told = {failure.subject: failure for failure in failures}
    assert len(told) == len(failures) and set(told) <= set(planned)
    for name in NAMES:
        was, has = own(now.topics[name]), own(after.topics[name])
        wanted, failure = planned.get(name, {}), told.get(name)
        event(f"failure: {failure and (failure.code or 'moot')}")
        kept = [
            {key: value for key, value in each.items() if key not in wanted} for each in (was, has)
        ]
        assert kept[0] == kept[1], "only what was planned may be set"
        if failure is not None:
            assert has == was, "refused as a whole, or as wanted"
        if failure is None or failure.moot:
            for key, value in wanted.items():
                assert same_value(key, value, has.get(key))
        else:
            assert failure.code == "changed" and "somebody else has set" in failure.error
            there = [same_value(key, value, was.get(key)) for key, value in wanted.items()]
            assert not all(there), "nothing is left to do"
    for change in resource.as_made([each for each in plan.changes if each.subject not in told]):
        for key, value in change.before["config"].items():
            found = now.topics[change.subject]
            assert value in (own(found).get(key), found.config[key].value), "what was replaced"
            sent = change.after["config"][key]
            assert not same_value(key, sent, own(found).get(key)), "the other one's, not ours"


@given(
    st.tuples(POLICIES, TOPICS, MEANWHILE) | st.tuples(ONE_LIMIT, LIMITED, OF_ONE),
    ALLOW | st.just([]),
)
def test_what_has_become_dangerous_meanwhile_is_not_done(case, allow):
    """Judged by the effective values at that moment: only a danger that was planned with consent is taken."""
    policies, then, meanwhile = case
    plan, now, after, _failures, _resource = looked_again(policies, then, allow, meanwhile)
    for change in plan.changes:
        name = change.subject
        was, has = now.topics[name], after.topics[name]
        set_now = {key: own(has).get(key) for key in KEYS if own(has).get(key) != own(was).get(key)}
        needed = {each.consent for each in dangers(was, set_now)}
        event(f"dangerous: {bool(needed)}")
        assert needed <= set(allow), (was, has)
        if needed and name in meanwhile:
            counted = {each.consent for each in dangers(then.topics[name], change.after["config"])}
            assert needed <= counted, "nobody was told what that costs"


@given(POLICIES, TOPICS, ALLOW, st.frozensets(st.sampled_from(NAMES)))
def test_where_nobody_has_changed_anything_the_plan_is_made_to_the_letter(
    policies, then, allow, gone
):
    """Of a topic that is gone the brokers say so, which is no reason to leave out another one."""
    plan, _now, _after, failures, resource = looked_again(policies, then, allow, {}, gone)
    assert tuple(resource.client.told) == plan.changes == resource.as_made(plan.changes)
    assert not failures


@given(POLICIES, TOPICS, ALLOW, MEANWHILE)
def test_what_is_told_of_topics_is_what_they_have_then(policies, then, allow, meanwhile):
    plan, _now, after, failures, resource = looked_again(policies, then, allow, meanwhile)
    failed = {failure.subject for failure in failures}
    planned = {change.subject for change in plan.changes}
    made = resource.as_made([each for each in plan.changes if each.subject not in failed])
    for told in resource.results(Outcome(plan, made, snapshot=Holdings(then)))["topics"]:
        if told["name"] not in planned:
            continue  # it was not looked at again
        for key, shown in told["after"].items():
            entry: ConfigEntry = after.topics[told["name"]].config[key]
            assert (shown["value"], shown["source"]) == (entry.value, entry.source)
