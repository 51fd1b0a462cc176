# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies over topic names: reading, matching, what they mean, and that a plan of them is a plan of topics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    ConfigEntry,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.plan import (
    CONSENTS,
    contradictions,
    match_policies,
    parse_policies,
    segment_warnings,
    settings_of,
    wish_of,
    wishes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    DesiredTopic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.plan import (
    TopicPolicy,
    apply_to,
    plan_topics,
)

DAY = 24 * 60 * 60 * 1000
DEFAULTS = {
    "retention.ms": str(7 * DAY),
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "segment.ms": str(7 * DAY),
    "segment.bytes": str(2**30),
    "max.message.bytes": "1048588",
    "min.insync.replicas": "2",
}


def topic(name, partitions=2, **own):
    """A topic with Kafka's defaults and settings of its own, dots written as underscores."""
    own = {key.replace("_", "."): value for key, value in own.items()}
    config = {
        key: ConfigEntry(
            key, own.get(key, value), "topic" if key in own else "default", fallback=value
        )
        for key, value in DEFAULTS.items()
    }
    parts = tuple(Partition(index, 1, (1, 2, 3), (1, 2, 3)) for index in range(partitions))
    return Topic(name, parts, config)


def cluster(*topics):
    """A snapshot with these topics."""
    return Snapshot("id", 1, (), {each.name: each for each in topics}, {}, frozenset(DEFAULTS))


def policies(*items):
    """Policies, of which none may be refused."""
    found, refusals = parse_policies(items)
    assert not refusals, refusals
    return found


WRONG = [
    ("text", "retention.bad_policy", ""),
    ({"keep_for": "7d"}, "retention.bad_policy", "match"),
    ({"match": "[", "keep_for": "7d"}, "retention.bad_policy", "match"),
    ({"match": 12, "keep_for": "7d"}, "retention.bad_policy", "match"),
    ({"match": "a"}, "retention.bad_policy", ""),
    ({"match": "a", "fit_segments": True}, "retention.bad_policy", ""),
    ({"match": "a", "keep": "7d"}, "retention.bad_policy", "keep"),
    (
        {"match": "a", "keep_for": "7d", "fit_segments": "often"},
        "retention.bad_policy",
        "fit_segments",
    ),
    ({"match": "a", "keep_for": "1month"}, "config.bad_value", "keep_for"),
    ({"match": "a", "keep_for": 90}, "config.bad_value", "keep_for"),
    ({"match": "a", "keep_for": "0"}, "config.bad_value", "keep_for"),
    ({"match": "a", "keep_up_to": "10G"}, "config.bad_value", "keep_up_to"),
    ({"match": "a", "cleanup": "compacted"}, "config.bad_value", "cleanup"),
    (
        {"match": "a", "leave_alone": True, "keep_for": "7d"},
        "retention.contradiction",
        "leave_alone",
    ),
    ({"match": "a", "cleanup": "compact", "keep_for": "7d"}, "retention.contradiction", "cleanup"),
]


@pytest.mark.parametrize("item, check, setting", WRONG)
def test_what_is_no_policy_is_refused(item, check, setting):
    found, refusals = parse_policies([item])
    assert not found and (refusals[0].check, refusals[0].setting) in {
        (check, setting),
        (check, setting or "match"),
    }
    assert refusals[0].subjects == ("policies[0]",) and refusals[0].remedy


def test_the_same_expression_twice_is_refused_and_told_which():
    item = {"match": "a", "keep_for": "7d"}
    found, (refusal,) = parse_policies([item, {"match": "b", "keep_for": "7d"}, item])
    assert len(found) == 2 and refusal.check == "retention.duplicate"
    assert "policies[0]" in refusal.reason and refusal.subjects == ("policies[2]",)


@pytest.mark.parametrize(
    "item, partitions, settings",
    [
        ({"keep_for": "7d"}, 3, {"retention.ms": str(7 * DAY)}),
        ({"keep_for": "forever"}, 3, {"retention.ms": "-1"}),
        ({"keep_for": "default"}, 3, {"retention.ms": None}),
        ({"keep_up_to": "300GiB"}, 3, {"retention.bytes": str(100 * 2**30)}),
        ({"keep_up_to": "10B"}, 3, {"retention.bytes": "3"}),
        ({"keep_up_to": "2B"}, 3, {"retention.bytes": "1"}),
        ({"keep_up_to": "unlimited"}, 3, {"retention.bytes": "-1"}),
        ({"keep_up_to": "default"}, 3, {"retention.bytes": None}),
        ({"cleanup": ["delete", "compact"]}, 1, {"cleanup.policy": "compact,delete"}),
        ({"leave_alone": True}, 1, {}),
    ],
)
def test_what_a_policy_means_in_kafkas_keys(item, partitions, settings):
    (policy,) = policies({"match": "a", **item})
    assert settings_of(policy, partitions) == settings


def test_the_first_policy_whose_expression_is_the_whole_name_counts():
    found = policies(
        {"match": r"logs\.audit", "leave_alone": True},
        {"match": r"logs\..*", "keep_for": "7d"},
        {"match": ".*", "keep_for": "1d"},
        {"match": "never", "keep_for": "1d"},
    )
    names = ["logs.audit", "logs.web", "xlogs.web", "_schemas", "connect-offsets", "a-changelog"]
    matching = match_policies(found, names, frozenset(["_schemas"]))
    assert {name: each.position for name, each in matching.policies.items()} == {
        "logs.web": 1,
        "xlogs.web": 2,
        "_schemas": 2,
    }
    assert matching.left_alone == ("logs.audit",)
    assert matching.protected == ("a-changelog", "connect-offsets")
    assert [each.position for each in matching.idle] == [3] and not matching.without
    assert match_policies(found[:2], names, frozenset()).without == (
        *("_schemas", "a-changelog", "connect-offsets"),
        "xlogs.web",
    )


@pytest.mark.parametrize(
    "item, own, fitted",
    [
        ({"keep_for": "12h"}, {}, {"segment.ms": str(DAY // 20)}),
        ({"keep_for": "28d"}, {}, {}),
        ({"keep_for": "12h"}, {"segment_ms": str(DAY // 8)}, {}),
        ({"keep_for": "5m"}, {}, {"segment.ms": "60000"}),
        ({"keep_for": "10s"}, {}, {"segment.ms": "10000"}),
        ({"keep_for": "forever"}, {}, {}),
        ({"keep_up_to": "2GiB"}, {}, {"segment.bytes": str(2**30 // 10)}),
        ({"keep_up_to": "8GiB"}, {}, {}),
        # a batch must fit into it
        ({"keep_up_to": "4MiB"}, {}, {"segment.bytes": str(2 * 1048588)}),
        ({"keep_up_to": "4MiB"}, {"segment_bytes": "1048576"}, {}),
    ],
)
def test_segments_are_made_to_fit_where_they_do_not(item, own, fitted):
    (policy,) = policies({"match": "a", "fit_segments": True, **item})
    wish = wish_of(policy, topic("a", **own))
    assert {key: value for key, value in wish.config.items() if "segment" in key} == fitted


@pytest.mark.parametrize(
    "item, own, sizes, words",
    [
        ({"keep_for": "1d"}, {}, {}, "up to 8d instead of 1d"),
        ({"keep_for": "7d"}, {}, {}, ""),
        # it is full before it is old
        ({"keep_for": "1d"}, {}, {("a", 0): 2**31}, ""),
        ({"keep_up_to": "1GiB"}, {}, {}, "grow to 1.5 GiB instead of 512.0 MiB"),
        ({"keep_up_to": "8GiB"}, {}, {}, ""),
        ({"keep_for": "1d"}, {"cleanup_policy": "compact"}, {}, "neither age nor size"),
    ],
)
def test_what_keeps_far_more_than_asked_is_told(item, own, sizes, words):
    matching = match_policies(policies({"match": "a", **item}), ["a"], frozenset())
    snapshot = cluster(topic("a", **own))
    consent = TopicPolicy(allow=frozenset(CONSENTS))
    after = apply_to(snapshot, plan_topics(wishes(matching, snapshot), snapshot, consent))
    told = segment_warnings(matching, after.topics, sizes)
    assert (words in told[0] and len(told) == 1) if words else not told


def test_a_declared_topic_that_says_otherwise_is_a_contradiction():
    found = policies(
        {"match": "free", "leave_alone": True},
        {"match": ".*", "keep_for": "7d", "keep_up_to": "4GiB"},
    )
    declared = [
        DesiredTopic("same", config={"retention.ms": str(7 * DAY), "retention.bytes": str(2**30)}),
        DesiredTopic("other", config={"retention.ms": str(DAY)}),
        DesiredTopic("reset", config={"retention.bytes": None}),
        DesiredTopic("silent", config={"compression.type": "zstd"}),
        DesiredTopic("free", config={"retention.ms": "1"}),
        DesiredTopic("gone", "absent", config={"retention.ms": "1"}),
        DesiredTopic("x-changelog", config={"retention.ms": "1"}),
    ]
    refusals = contradictions(found, declared, Snapshot(broker_defaults={"num.partitions": "4"}))
    assert [(each.check, each.subjects, each.setting) for each in refusals] == [
        ("retention.contradiction", ("other",), "config.retention.ms"),
        ("retention.contradiction", ("reset",), "config.retention.bytes"),
    ]
    assert "policies[1]" in refusals[0].reason


# ---------------------------------------------------------------- properties

NAMES = st.sampled_from(["a.x", "a.y", "b.x", "_b", "b-changelog", "c"])
ITEMS = st.fixed_dictionaries(
    {"match": st.sampled_from([r"a\..*", r".*\.x", "b.*", ".*", "_.*"])},
    optional={
        "keep_for": st.sampled_from(["1h", "1d", "30d", "forever", "default"]),
        "keep_up_to": st.sampled_from(["1MiB", "10GiB", "unlimited", "default"]),
        "cleanup": st.sampled_from(["delete", "compact,delete", "default"]),
        "fit_segments": st.booleans(),
    },
)
OWN = st.fixed_dictionaries(
    {},
    optional={
        "retention_ms": st.sampled_from(["-1", str(DAY), str(90 * DAY)]),
        "retention_bytes": st.sampled_from(["-1", "1048576"]),
        "segment_ms": st.sampled_from(["60000", str(DAY)]),
        "cleanup_policy": st.sampled_from(["compact", "compact,delete"]),
    },
)
TOPICS = st.dictionaries(NAMES, st.tuples(st.integers(1, 5), OWN), max_size=6)
ALLOW = st.sets(st.sampled_from(CONSENTS))


@given(st.lists(ITEMS, max_size=4), TOPICS, ALLOW, st.sets(NAMES))
def test_a_plan_leads_there_and_the_second_one_is_empty(items, topics, allow, internal):
    found = parse_policies(items)[0]
    snapshot = cluster(*(topic(name, count, **own) for name, (count, own) in topics.items()))
    matching = match_policies(found, snapshot.topics, frozenset(internal))
    policy = TopicPolicy(allow=frozenset(allow), allow_internal=frozenset(internal))
    plan = plan_topics(wishes(matching, snapshot), snapshot, policy)
    # each topic is in one class
    classes = [*matching.policies, *matching.protected, *matching.left_alone, *matching.without]
    assert sorted(classes) == sorted(topics)
    assert {each.subject for each in plan.changes} <= set(matching.policies)
    assert not {each.subject for each in plan.changes} & {
        subject for refusal in plan.refusals for subject in refusal.subjects
    }
    after = apply_to(snapshot, plan)
    for name in set(topics) - {each.subject for each in plan.changes}:
        assert after.topics[name] == snapshot.topics[name]
    refused = {subject for each in plan.refusals for subject in each.subjects}
    for name, each in matching.policies.items():
        for key, value in settings_of(each, topics[name][0]).items():
            entry = after.topics[name].config[key]
            if name not in refused:
                assert entry.source != "topic" if value is None else entry.value == value
    again = plan_topics(wishes(matching, after), after, policy)
    assert not again.changes and again.refusals == plan.refusals


@given(st.lists(ITEMS, min_size=1, max_size=4), TOPICS, st.sets(NAMES))
def test_without_consent_no_record_becomes_deletable(items, topics, internal):
    found = parse_policies(items)[0]
    snapshot = cluster(*(topic(name, count, **own) for name, (count, own) in topics.items()))
    matching = match_policies(found, snapshot.topics, frozenset(internal))
    plan = plan_topics(
        wishes(matching, snapshot), snapshot, TopicPolicy(allow_internal=frozenset(internal))
    )
    after = apply_to(snapshot, plan)
    for name, old in snapshot.topics.items():
        new = after.topics[name]
        if "delete" not in new.effective("cleanup.policy"):
            continue
        assert "delete" in old.effective("cleanup.policy")
        for key in ("retention.ms", "retention.bytes"):
            before, now = (float(each.effective(key)) for each in (old, new))
            assert now < 0 or 0 <= before <= now
