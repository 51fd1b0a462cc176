# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning topics: a table of cases, and the invariants of the module's header."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils._model import (
    Broker,
    ConfigEntry,
    DesiredTopic,
    Partition,
    Snapshot,
    Stake,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan_topics import (
    Purge,
    TopicPolicy,
    apply_to,
    plan_topics,
    subjects_at_stake,
)

DEFAULTS = {
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "min.insync.replicas": "2",
    "compression.type": "producer",
    "segment.bytes": "1073741824",
}
BROKER_DEFAULTS = {
    "min.insync.replicas": "2",
    "num.partitions": "1",
    "default.replication.factor": "3",
}
CONSENT = TopicPolicy(
    allow_partition_growth=True,
    allow_retention_cut=True,
    allow_cleanup_change=True,
    allow_delete=True,
)


def topic(name, partitions=3, replicas=3, **config):
    """A topic as it is in a cluster; keyword `a_b` is the setting `a.b`."""
    own = {key.replace("_", "."): value for key, value in config.items()}
    entries = {
        key: ConfigEntry(
            key, own.get(key, value), "topic" if key in own else "default", fallback=value
        )
        for key, value in DEFAULTS.items()
    }
    members = tuple(range(1, replicas + 1))
    return Topic(name, tuple(Partition(i, 1, members, members) for i in range(partitions)), entries)


def cluster(*topics, brokers=3, stakes=None):
    """A snapshot of brokers 1 to N with these topics."""
    return Snapshot(
        "id",
        1,
        tuple(Broker(i, "h", 9092) for i in range(1, brokers + 1)),
        {each.name: each for each in topics},
        BROKER_DEFAULTS,
        frozenset(DEFAULTS),
        stakes or {},
    )


def wish(name="x", **options):
    """A desired topic; `config` as a mapping."""
    return DesiredTopic(name, **options)


def outcome(desired, snapshot, policy):
    """Kinds of changes and ids of refusals."""
    plan = plan_topics([desired], snapshot, policy)
    return [change.kind for change in plan.changes], [item.check for item in plan.refusals]


THREE = topic("x")
CASES = [
    # what, desired, snapshot, policy, kinds, refusals
    ("new", wish(partitions=3, replication_factor=3), cluster(), TopicPolicy(), ["create"], []),
    ("new, brokers' defaults", wish(), cluster(), TopicPolicy(), ["create"], []),
    ("as it is", wish(partitions=3, replication_factor=3), cluster(THREE), TopicPolicy(), [], []),
    ("nothing said", wish(), cluster(THREE), TopicPolicy(), [], []),
    (
        "rf above brokers",
        wish(replication_factor=4),
        cluster(),
        CONSENT,
        [],
        ["replication.exceeds_brokers"],
    ),
    (
        "default rf above live brokers",
        wish(),
        cluster(brokers=2),
        CONSENT,
        [],
        ["replication.exceeds_brokers"],
    ),
    (
        "rf equals min isr",
        wish(replication_factor=2),
        cluster(),
        CONSENT,
        [],
        ["replication.min_insync"],
    ),
    (
        "rf below min isr",
        wish(replication_factor=1),
        cluster(),
        CONSENT,
        [],
        ["replication.min_insync"],
    ),
    (
        "one and one",
        wish(replication_factor=1, config={"min.insync.replicas": "1"}),
        cluster(brokers=1),
        TopicPolicy(),
        ["create"],
        [],
    ),
    (
        "two and one",
        wish(replication_factor=2, config={"min.insync.replicas": "1"}),
        cluster(brokers=2),
        TopicPolicy(),
        ["create"],
        [],
    ),
    (
        "min isr raised to rf",
        wish(config={"min.insync.replicas": "3"}),
        cluster(THREE),
        CONSENT,
        [],
        ["replication.min_insync"],
    ),
    (
        "an old topic that breaks the rule is left alone",
        wish(config={"compression.type": "lz4"}),
        cluster(topic("x", replicas=1)),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    ("fewer partitions", wish(partitions=2), cluster(THREE), CONSENT, [], ["partitions.decrease"]),
    ("more", wish(partitions=4), cluster(THREE), TopicPolicy(), [], ["partitions.growth"]),
    ("more, consented", wish(partitions=4), cluster(THREE), CONSENT, ["grow"], []),
    ("other rf", wish(replication_factor=2), cluster(THREE), CONSENT, [], ["replication.change"]),
    (
        "retention down",
        wish(config={"retention.ms": "1000"}),
        cluster(THREE),
        TopicPolicy(),
        [],
        ["retention.cut"],
    ),
    (
        "retention down, consented",
        wish(config={"retention.ms": "1000"}),
        cluster(THREE),
        CONSENT,
        ["configure"],
        [],
    ),
    (
        "retention up",
        wish(config={"retention.ms": "604800001"}),
        cluster(THREE),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "forever is up",
        wish(config={"retention.ms": "-1"}),
        cluster(THREE),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "from forever is down",
        wish(config={"retention.ms": "999999999999"}),
        cluster(topic("x", retention_ms="-1")),
        TopicPolicy(),
        [],
        ["retention.cut"],
    ),
    (
        "size limit on unlimited",
        wish(config={"retention.bytes": "1"}),
        cluster(THREE),
        TopicPolicy(),
        [],
        ["retention.cut"],
    ),
    (
        "reset to a shorter default",
        wish(config={"retention.ms": None}),
        cluster(topic("x", retention_ms="-1")),
        TopicPolicy(),
        [],
        ["retention.cut"],
    ),
    (
        "reset to a longer default",
        wish(config={"retention.ms": None}),
        cluster(topic("x", retention_ms="1")),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "replace resets to a shorter default",
        wish(),
        cluster(topic("x", retention_ms="-1")),
        TopicPolicy(replace=True),
        [],
        ["retention.cut"],
    ),
    (
        "compacted topics have no retention",
        wish(config={"retention.ms": "1"}),
        cluster(topic("x", cleanup_policy="compact")),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "compact to delete",
        wish(config={"cleanup.policy": "delete"}),
        cluster(topic("x", cleanup_policy="compact")),
        TopicPolicy(),
        [],
        ["cleanup.change"],
    ),
    (
        "compact to both",
        wish(config={"cleanup.policy": "compact,delete"}),
        cluster(topic("x", cleanup_policy="compact")),
        TopicPolicy(),
        [],
        ["cleanup.change"],
    ),
    (
        "compact to delete by reset",
        wish(config={"cleanup.policy": None}),
        cluster(topic("x", cleanup_policy="compact")),
        TopicPolicy(),
        [],
        ["cleanup.change"],
    ),
    (
        "compact to delete, consented",
        wish(config={"cleanup.policy": "delete"}),
        cluster(topic("x", cleanup_policy="compact")),
        TopicPolicy(allow_cleanup_change=True),
        ["configure"],
        [],
    ),
    (
        "the same cleanup in another order",
        wish(config={"cleanup.policy": "compact,delete"}),
        cluster(topic("x", cleanup_policy="delete,compact")),
        TopicPolicy(),
        [],
        [],
    ),
    (
        "unknown key",
        wish(config={"retention": "1"}),
        cluster(THREE),
        CONSENT,
        [],
        ["config.unknown_key"],
    ),
    ("delete", wish(state="absent"), cluster(THREE), TopicPolicy(), [], ["topics.delete"]),
    ("delete, consented", wish(state="absent"), cluster(THREE), CONSENT, ["delete"], []),
    ("delete what is not there", wish(state="absent"), cluster(), TopicPolicy(), [], []),
    ("internal", wish("_x"), cluster(), CONSENT, [], ["topics.protected"]),
    (
        "internal, named",
        wish("_x"),
        cluster(),
        TopicPolicy(allow_internal=frozenset(["_x"])),
        ["create"],
        [],
    ),
    (
        "internal, another named",
        wish("_x"),
        cluster(),
        TopicPolicy(allow_internal=frozenset(["_y"])),
        [],
        ["topics.protected"],
    ),
    (
        "Connect's own, to delete",
        wish("connect-offsets", state="absent"),
        cluster(topic("connect-offsets")),
        CONSENT,
        [],
        ["topics.protected"],
    ),
    ("Connect's own, to create", wish("connect-offsets"), cluster(), CONSENT, ["create"], []),
    ("collision", wish("a.b"), cluster(topic("a_b")), CONSENT, [], ["topics.collision"]),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_cases(case):
    _what, desired, snapshot, policy, kinds, refusals = case
    assert outcome(desired, snapshot, policy) == (kinds, refusals)


def test_refusals_name_the_option_that_consents():
    for item in CASES:
        plan = plan_topics([item[1]], item[2], TopicPolicy())
        for refusal in plan.refusals:
            if refusal.check in (
                "partitions.growth",
                "retention.cut",
                "cleanup.change",
                "topics.delete",
            ):
                assert "allow_" in refusal.remedy and ": true" in refusal.remedy


def test_what_is_at_stake_is_in_the_refusal_and_in_the_note():
    stakes = {"x": Stake(records=5, total_records=9, bytes=2048, total_bytes=4096)}
    snapshot = cluster(THREE, stakes=stakes)
    cut = wish(config={"retention.ms": "1000"})
    refusal = plan_topics([cut], snapshot, TopicPolicy()).refusals[0]
    assert "from 7d to 1s: 5 records and about 2.0 KiB" in refusal.reason
    assert plan_topics([cut], snapshot, CONSENT).changes[0].note == refusal.reason
    gone = plan_topics([wish(state="absent")], snapshot, TopicPolicy()).refusals[0]
    assert "9 records and 4.0 KiB" in gone.reason


def test_what_could_not_be_counted_is_said():
    stakes = {"x": Stake(unknown="bytes are unknown")}
    plan = plan_topics([wish(state="absent")], cluster(THREE, stakes=stakes), TopicPolicy())
    assert "bytes are unknown" in plan.refusals[0].reason


def test_stakes_are_asked_for_what_could_lose_something_and_nothing_else():
    snapshot = cluster(
        *(topic(name) for name in ("cut", "same", "gone", "grow", "more", "small")),
        topic("keyed", cleanup_policy="compact"),
    )
    desired = [
        wish("cut", config={"retention.ms": "1000"}),
        wish("small", config={"retention.bytes": "77"}),
        wish("same"),
        wish("gone", state="absent"),
        wish("grow", partitions=9),
        wish("more", config={"retention.ms": "-1"}),
        wish("keyed", config={"cleanup.policy": "delete"}),
    ]
    assert subjects_at_stake(desired, snapshot, TopicPolicy()) == {
        "cut": (1000, None),
        "small": (None, 77),
        "gone": (None, None),
        "grow": (None, None),
        "keyed": (604800000, None),
    }


def test_two_declared_topics_that_collide():
    plan = plan_topics([wish("a.b"), wish("a_b")], cluster(), CONSENT)
    assert [item.check for item in plan.refusals] == ["topics.collision"] * 2


def test_a_name_that_becomes_free_in_the_same_run_does_not_collide():
    plan = plan_topics([wish("a.b"), wish("a_b", state="absent")], cluster(topic("a_b")), CONSENT)
    assert not plan.refusals


def purge(maximum, *patterns, **policy):
    """A policy that purges."""
    return TopicPolicy(purge=Purge(patterns, maximum), **policy)


MANY = cluster(*(topic(name) for name in ("a.1", "a.2", "xa.3", "_a.4", "mm2-offsets.b.internal")))


@pytest.mark.parametrize(
    "policy, gone",
    [
        (purge(9, r"a\..*"), ["a.1", "a.2"]),
        (purge(9, ".*"), ["a.1", "a.2", "xa.3"]),
        (purge(9, "a"), []),
        (purge(9, r"a\.1", r"xa.*"), ["a.1", "xa.3"]),
        (purge(9, ".*", allow_internal=frozenset(["_a.4"])), ["_a.4", "a.1", "a.2", "xa.3"]),
    ],
)
def test_purge_takes_whole_names_and_spares_what_is_not_ours(policy, gone):
    plan = plan_topics([], MANY, policy)
    assert [change.subject for change in plan.changes] == gone and not plan.refusals


def test_purge_spares_the_declared_and_stops_at_the_maximum():
    plan = plan_topics([wish("a.1")], MANY, purge(1, r"a\..*"))
    assert [change.subject for change in plan.changes] == ["a.2"]
    plan = plan_topics([], MANY, purge(1, r"a\..*"))
    assert not plan.changes and [item.check for item in plan.refusals] == ["purge.maximum"]


def test_mixed_replication_is_a_reassignment_and_no_refusal():
    mixed = replace(
        THREE, partitions=(Partition(0, 1, (1, 2, 3), (1, 2)), Partition(1, 1, (1, 2), (1, 2)))
    )
    plan = plan_topics([wish(replication_factor=3)], cluster(mixed), TopicPolicy())
    assert not plan.refusals and "reassignment" in plan.warnings[0]


# ---------------------------------------------------------------- properties

names = st.sampled_from(["a", "b", "c.d", "e-f", "g"])
settings_of_a_topic = st.dictionaries(
    st.sampled_from(["retention.ms", "retention.bytes", "cleanup.policy", "compression.type"]),
    st.sampled_from(["1000", "-1", "604800000", None]),
    max_size=3,
).map(
    lambda config: {
        key: (
            (value and ("delete" if value == "1000" else "compact"))
            if key == "cleanup.policy"
            else value
        )
        for key, value in config.items()
    }
)
wishes = st.lists(
    st.builds(
        DesiredTopic,
        name=names,
        state=st.sampled_from(["present", "present", "absent"]),
        partitions=st.none() | st.integers(1, 6),
        replication_factor=st.none() | st.just(3),
        config=settings_of_a_topic,
    ),
    unique_by=lambda item: item.name,
)
clusters = st.lists(
    st.builds(
        lambda name, count, config: topic(
            name,
            count,
            **{key.replace(".", "_"): value for key, value in config.items() if value is not None},
        ),
        names,
        st.integers(1, 6),
        settings_of_a_topic,
    ),
    unique_by=lambda item: item.name,
).map(lambda topics: cluster(*topics))
policies = st.builds(
    TopicPolicy,
    replace=st.booleans(),
    allow_partition_growth=st.booleans(),
    allow_retention_cut=st.booleans(),
    allow_cleanup_change=st.booleans(),
    allow_delete=st.booleans(),
    purge=st.none() | st.builds(Purge, st.just(("[a-c].*",)), st.integers(0, 5)),
)


@given(wishes, clusters, policies)
def test_a_plan_that_was_applied_is_empty_the_next_time(desired, snapshot, policy):
    plan = plan_topics(desired, snapshot, policy)
    again = plan_topics(desired, apply_to(snapshot, plan), policy)
    assert not again.changes
    assert {item.subject for item in again.refusals} <= {item.subject for item in plan.refusals}


@given(wishes, clusters, policies, st.randoms())
def test_order_does_not_matter(desired, snapshot, policy, shuffler):
    shuffled = list(desired)
    random.Random(shuffler.random()).shuffle(shuffled)
    assert plan_topics(shuffled, snapshot, policy) == plan_topics(desired, snapshot, policy)


@given(wishes, clusters, policies)
def test_nothing_dangerous_without_consent(desired, snapshot, policy):
    plan = plan_topics(desired, snapshot, policy)
    refused = {item.subject for item in plan.refusals}
    purged = set(snapshot.topics) - {item.name for item in desired}
    for change in plan.changes:
        assert change.subject not in refused
        if change.kind == "delete":
            assert policy.allow_delete or (policy.purge and change.subject in purged)
        if change.kind == "grow":
            assert policy.allow_partition_growth
            assert change.after["partitions"] > change.before["partitions"]
        if change.kind == "configure" and not policy.allow_retention_cut:
            was = snapshot.topics[change.subject]
            now = apply_to(snapshot, plan).topics[change.subject]
            if "delete" in now.effective("cleanup.policy"):
                for key in ("retention.ms", "retention.bytes"):
                    limits = [float(each.effective(key)) for each in (was, now)]
                    limits = [float("inf") if limit < 0 else limit for limit in limits]
                    assert limits[1] >= limits[0]


@given(wishes, clusters, policies)
def test_the_diff_shows_every_changed_topic_and_no_other(desired, snapshot, policy):
    plan = plan_topics(desired, snapshot, policy)
    diff = plan.diff()
    shown = {
        line[:-1]
        for side in diff.values()
        for line in side.splitlines()
        if line.endswith(":") and not line.startswith(" ")
    }
    assert shown == {change.subject for change in plan.changes}
