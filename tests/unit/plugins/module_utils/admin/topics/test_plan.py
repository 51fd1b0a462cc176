# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning topics: a table of cases, and the invariants of the module's header."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    ConfigEntry,
    Partition,
    Snapshot,
    Stake,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.dangers import CONSENTS
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    DesiredTopic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.plan import (
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
    "unclean.leader.election.enable": "false",
    "delete.retention.ms": "86400000",
    "min.compaction.lag.ms": "0",
    "message.timestamp.type": "CreateTime",
    "remote.storage.enable": "false",
    "remote.log.delete.on.disable": "false",
}
BROKER_DEFAULTS = {
    "min.insync.replicas": "2",
    "num.partitions": "1",
    "default.replication.factor": "3",
}
CONSENT = TopicPolicy(allow=frozenset(CONSENTS))


def allowing(*consents, **options):
    """A policy that consents to these and to nothing else."""
    return TopicPolicy(allow=frozenset(consents), **options)


def topic(name, partitions=3, replicas=3, **config):
    """A topic as it is in a cluster; keyword `a_b` is the setting `a.b`."""
    own = {key.replace("_", "."): value for key, value in config.items()}
    entries = {
        key: ConfigEntry(
            key, own.get(key, value), "topic" if key in own else "default", fallback=value
        )
        for key, value in {**dict.fromkeys(own, ""), **DEFAULTS}.items()
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
COMPACT = {"cleanup.policy": "compact"}
CASES = [
    (
        "Connect's, as it wants them",
        wish("connect-offsets", partitions=25, config=COMPACT),
        *(cluster(), TopicPolicy(), ["create"], []),
    ),
    (
        "Connect's, by age",
        wish("connect-offsets", partitions=25),
        *(cluster(), TopicPolicy(), [], ["topics.connect"]),
    ),
    (
        "Connect's, by age, so wanted",
        wish("connect-offsets", partitions=25),
        *(cluster(), TopicPolicy(allow_internal=frozenset(["connect-offsets"])), ["create"], []),
    ),
    (
        "Connect's configurations in many partitions",
        wish("connect-configs", partitions=3, config=COMPACT),
        *(cluster(), TopicPolicy(), [], ["topics.connect"]),
    ),
    (
        "Connect's, there and by age",
        wish("connect-status"),
        *(cluster(topic("connect-status")), TopicPolicy(), [], ["topics.connect"]),
    ),
    (
        "Connect's, there and well",
        wish("connect-configs"),
        *(cluster(topic("connect-configs", 1, cleanup_policy="compact")), TopicPolicy(), [], []),
    ),
    (
        "Connect's, there and about to be by age",
        wish("connect-status", config={"cleanup.policy": "delete"}),
        *(cluster(topic("connect-status", cleanup_policy="compact")), CONSENT),
        *([], ["topics.connect"]),
    ),
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
        "replace leaves throttled replicas to whoever moves them",
        wish(),
        cluster(
            topic(
                "x",
                leader_replication_throttled_replicas="0:1",
                follower_replication_throttled_replicas="0:2",
            )
        ),
        TopicPolicy(replace=True),
        [],
        [],
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
        "marks of deletion go sooner from a compacted topic",
        wish(config={"delete.retention.ms": "1"}),
        cluster(topic("x", cleanup_policy="compact")),
        allowing("cleanup_change"),
        [],
        ["retention.cut"],
    ),
    (
        "marks of deletion stay longer",
        wish(config={"delete.retention.ms": "86400001"}),
        cluster(topic("x", cleanup_policy="compact")),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "marks of deletion in a topic that is not compacted",
        wish(config={"delete.retention.ms": "1"}),
        cluster(THREE),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "records may be compacted sooner",
        wish(config={"min.compaction.lag.ms": "0"}),
        cluster(topic("x", cleanup_policy="compact,delete", min_compaction_lag_ms="604800000")),
        TopicPolicy(),
        [],
        ["retention.cut"],
    ),
    (
        "records may be compacted sooner, consented",
        wish(config={"min.compaction.lag.ms": None}),
        cluster(topic("x", cleanup_policy="compact", min_compaction_lag_ms="604800000")),
        allowing("retention_cut"),
        ["configure"],
        [],
    ),
    (
        "age counts from the arrival",
        wish(config={"message.timestamp.type": "LogAppendTime"}),
        cluster(THREE),
        TopicPolicy(),
        [],
        ["retention.cut"],
    ),
    (
        "age counts by the producers' clocks",
        wish(config={"message.timestamp.type": None}),
        cluster(topic("x", message_timestamp_type="LogAppendTime")),
        TopicPolicy(),
        [],
        ["retention.cut"],
    ),
    (
        "another clock where age deletes nothing",
        wish(config={"message.timestamp.type": "LogAppendTime"}),
        cluster(topic("x", retention_ms="-1")),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "another clock in a compacted topic",
        wish(config={"message.timestamp.type": "LogAppendTime"}),
        cluster(topic("x", cleanup_policy="compact")),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "the remote storage is given up, with what it holds",
        wish(config={"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}),
        cluster(topic("x", remote_storage_enable="true")),
        TopicPolicy(),
        [],
        ["retention.cut"],
    ),
    (
        "the remote storage is taken",
        wish(config={"remote.storage.enable": "true"}),
        cluster(THREE),
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
        allowing("cleanup_change"),
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
    (
        "delete to compact",
        wish(config={"cleanup.policy": "compact"}),
        cluster(topic("x", retention_ms="-1")),
        TopicPolicy(),
        [],
        ["cleanup.change"],
    ),
    (
        "delete to both",
        wish(config={"cleanup.policy": "compact,delete"}),
        cluster(THREE),
        allowing("retention_cut", "delete"),
        [],
        ["cleanup.change"],
    ),
    (
        "delete to compact, consented",
        wish(config={"cleanup.policy": "compact"}),
        cluster(THREE),
        allowing("cleanup_change"),
        ["configure"],
        [],
    ),
    (
        "from both to either deletes nothing more",
        wish(config={"cleanup.policy": "compact"}),
        cluster(topic("x", cleanup_policy="compact,delete")),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "from both to the other",
        wish(config={"cleanup.policy": "delete"}),
        cluster(topic("x", cleanup_policy="compact,delete")),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "unclean election on",
        wish(config={"unclean.leader.election.enable": "true"}),
        cluster(THREE),
        allowing("min_insync_cut", "cleanup_change", "retention_cut", "delete"),
        [],
        ["unclean.election"],
    ),
    (
        "unclean election on, consented",
        wish(config={"unclean.leader.election.enable": "true"}),
        cluster(THREE),
        allowing("unclean_election"),
        ["configure"],
        [],
    ),
    (
        "unclean election off",
        wish(config={"unclean.leader.election.enable": "false"}),
        cluster(topic("x", unclean_leader_election_enable="true")),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "min isr lowered",
        wish(config={"min.insync.replicas": "1"}),
        cluster(THREE),
        allowing("unclean_election", "cleanup_change", "retention_cut", "delete"),
        [],
        ["min_insync.cut"],
    ),
    (
        "min isr lowered, consented",
        wish(config={"min.insync.replicas": "1"}),
        cluster(THREE),
        allowing("min_insync_cut"),
        ["configure"],
        [],
    ),
    (
        "min isr lowered by reset",
        wish(config={"min.insync.replicas": None}),
        cluster(topic("x", replicas=4, min_insync_replicas="3"), brokers=4),
        TopicPolicy(),
        [],
        ["min_insync.cut"],
    ),
    (
        "min isr raised",
        wish(config={"min.insync.replicas": "2"}),
        cluster(topic("x", min_insync_replicas="1")),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "a new topic endangers nothing",
        wish(config={"unclean.leader.election.enable": "true", "cleanup.policy": "compact"}),
        cluster(),
        TopicPolicy(),
        ["create"],
        [],
    ),
    (
        "what equals the brokers' default is set on the topic, as by a creation",
        wish(config={"retention.ms": "604800000"}),
        cluster(THREE),
        TopicPolicy(),
        ["configure"],
        [],
    ),
    (
        "set on the topic already",
        wish(config={"retention.ms": "604800000"}),
        cluster(topic("x", retention_ms="604800000")),
        TopicPolicy(),
        [],
        [],
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
    (
        "Connect's own, to create",
        wish("connect-offsets", config=COMPACT),
        cluster(),
        CONSENT,
        ["create"],
        [],
    ),
    ("collision", wish("a.b"), cluster(topic("a_b")), CONSENT, [], ["topics.collision"]),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_cases(case):
    _what, desired, snapshot, policy, kinds, refusals = case
    assert outcome(desired, snapshot, policy) == (kinds, refusals)


def test_refusals_lead_to_settings_of_kafka_below_config():
    keys = {
        refusal.setting
        for _what, desired, snapshot, policy, _kinds, _refusals in CASES
        for refusal in plan_topics([desired], snapshot, replace(policy, allow=frozenset())).refusals
        if "." in refusal.setting
    }
    assert len(keys) > 4 and not [key for key in keys if not key.startswith("config.")]


def test_refusals_name_the_consent_that_suffices():
    """Each refusal names one word of `allow`; with all words that are named, nothing is refused."""
    consents = {
        "partitions.growth": "partition_growth",
        "retention.cut": "retention_cut",
        "cleanup.change": "cleanup_change",
        "topics.delete": "delete",
        "unclean.election": "unclean_election",
        "min_insync.cut": "min_insync_cut",
    }
    seen = set()
    for _what, desired, snapshot, policy, _kinds, _refusals in CASES:
        refusals = plan_topics([desired], snapshot, replace(policy, allow=frozenset())).refusals
        named = {consents[each.check] for each in refusals if each.check in consents}
        seen |= named
        for refusal in refusals:
            if refusal.check in consents:
                word = consents[refusal.check]
                assert f"allow: [{word}]" in refusal.remedy
                assert f"kafka_topics_allow={word}" in refusal.remedy
        if named and len(named) == len(refusals):
            assert not plan_topics(
                [desired], snapshot, replace(policy, allow=frozenset(named))
            ).refusals
    assert seen == set(CONSENTS)


def test_what_is_at_stake_is_in_the_refusal_and_in_the_note():
    stakes = {"x": Stake(records=5, total_records=9, bytes=2048, total_bytes=4096)}
    snapshot = cluster(THREE, stakes=stakes)
    cut = wish(config={"retention.ms": "1000"})
    refusal = plan_topics([cut], snapshot, TopicPolicy()).refusals[0]
    assert "from 7d to 1s: 5 records and about 2.0 KiB" in refusal.reason
    assert plan_topics([cut], snapshot, CONSENT).changes[0].note == refusal.reason
    gone = plan_topics([wish(state="absent")], snapshot, TopicPolicy()).refusals[0]
    assert "9 records and 4.0 KiB" in gone.reason


DANGERS = [
    ({"cleanup.policy": "compact"}, "of 9 records and 4.0 KiB on disk only the newest record of"),
    ({"unclean.leader.election.enable": "true"}, "(9 records and 4.0 KiB on disk in it)"),
    ({"min.insync.replicas": "1"}, "down from 2 to 1: a record acknowledged with acks=all may be"),
    (
        {"message.timestamp.type": "LogAppendTime"},
        "from CreateTime to LogAppendTime: age counts from the arrival at the broker",
    ),
]


@pytest.mark.parametrize("config, words", DANGERS)
def test_each_danger_shows_its_size(config, words):
    """In the refusal, and with consent in the note."""
    stakes = {"x": Stake(total_records=9, total_bytes=4096)}
    snapshot = cluster(THREE, stakes=stakes)
    (refusal,) = plan_topics([wish(config=config)], snapshot, TopicPolicy()).refusals
    assert words in refusal.reason and "9 records" in refusal.reason
    assert plan_topics([wish(config=config)], snapshot, CONSENT).changes[0].note == refusal.reason
    assert subjects_at_stake([wish(config=config)], snapshot, TopicPolicy()) == {"x": (None, None)}


def test_two_dangers_of_one_topic_need_both_consents():
    both = wish(config={"cleanup.policy": "compact", "min.insync.replicas": "1"})
    for policy in (allowing("cleanup_change"), allowing("min_insync_cut")):
        plan = plan_topics([both], cluster(THREE), policy)
        assert not plan.changes and len(plan.refusals) == 1
    plan = plan_topics([both], cluster(THREE), CONSENT)
    assert plan.changes[0].note.count("; ") >= 1


@pytest.mark.parametrize(
    "key, value",
    [
        ("retention.ms", "-1"),
        ("retention.bytes", "5"),
        ("cleanup.policy", "compact"),
        ("cleanup.policy", "delete"),
        ("min.insync.replicas", "1"),
        ("unclean.leader.election.enable", "false"),
        ("message.timestamp.type", "LogAppendTime"),
        ("remote.storage.enable", "true"),
    ],
)
def test_a_default_that_is_not_known_counts_as_dangerous(key, value):
    """A user who may not see the brokers' settings resets an override."""
    own = topic("x", **{key.replace(".", "_"): value})
    blind = replace(own, config={k: replace(e, fallback=None) for k, e in own.config.items()})
    plan = plan_topics([wish(config={key: None})], cluster(blind), TopicPolicy())
    assert not plan.changes and len(plan.refusals) == 1
    assert plan_topics([wish(config={key: None})], cluster(blind), CONSENT).changes


def test_without_bytes_a_cut_by_size_still_shows_how_many_records_there_are():
    stakes = {"x": Stake(total_records=300, unknown="bytes are unknown")}
    cut = wish(config={"retention.bytes": "1000"})
    (refusal,) = plan_topics([cut], cluster(THREE, stakes=stakes), TopicPolicy()).refusals
    assert "up to 300 records (bytes are unknown) would be deleted" in refusal.reason


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


def test_a_name_that_becomes_free_in_the_same_run_is_not_free_yet():
    """Creations come before deletions, and the brokers would refuse the new name."""
    plan = plan_topics([wish("a.b"), wish("a_b", state="absent")], cluster(topic("a_b")), CONSENT)
    (refusal,) = plan.refusals
    assert refusal.check == "topics.collision" and "delete a_b in a run before" in refusal.remedy
    gone = plan_topics([wish("a.b"), wish("a_b", state="absent")], cluster(), CONSENT)
    assert not gone.refusals


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
VALUES_OF = {
    "retention.ms": ["1000", "-1", "604800000", None],
    "retention.bytes": ["1000", "-1", None],
    "cleanup.policy": ["delete", "compact", "compact,delete", "delete,compact", None],
    "compression.type": ["lz4", "zstd", None],
    "min.insync.replicas": ["1", "2", None],
    "unclean.leader.election.enable": ["true", "false", None],
    "delete.retention.ms": ["0", "1000", "86400000", None],
    "min.compaction.lag.ms": ["0", "1000", None],
    "message.timestamp.type": ["CreateTime", "LogAppendTime", None],
    "remote.storage.enable": ["true", "false", None],
}
settings_of_a_topic = st.dictionaries(
    st.sampled_from(sorted(VALUES_OF)), st.integers(0, 4), max_size=4
).map(
    lambda chosen: {
        key: VALUES_OF[key][number % len(VALUES_OF[key])] for key, number in chosen.items()
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
    allow=st.frozensets(st.sampled_from(CONSENTS)),
    purge=st.none() | st.builds(Purge, st.just(("[a-c].*",)), st.integers(0, 5)),
)


@given(wishes, clusters, policies)
def test_a_plan_that_was_applied_is_empty_the_next_time(desired, snapshot, policy):
    plan = plan_topics(desired, snapshot, policy)
    again = plan_topics(desired, apply_to(snapshot, plan), policy)
    assert not again.changes
    assert {item.subjects for item in again.refusals} <= {item.subjects for item in plan.refusals}


@given(wishes, clusters, policies, st.randoms())
def test_order_does_not_matter(desired, snapshot, policy, shuffler):
    shuffled = list(desired)
    random.Random(shuffler.random()).shuffle(shuffled)
    assert plan_topics(shuffled, snapshot, policy) == plan_topics(desired, snapshot, policy)


@given(wishes, clusters, policies)
def test_nothing_dangerous_without_consent(desired, snapshot, policy):
    """Judged by the effective values before and after, not by how the planner looks for them."""
    plan = plan_topics(desired, snapshot, policy)
    refused = {name for item in plan.refusals for name in item.subjects}
    purged = set(snapshot.topics) - {item.name for item in desired}
    applied = apply_to(snapshot, plan)
    for change in plan.changes:
        assert change.subject not in refused
        if change.kind == "delete":
            assert "delete" in policy.allow or (policy.purge and change.subject in purged)
        if change.kind == "grow":
            assert "partition_growth" in policy.allow
            assert change.after["partitions"] > change.before["partitions"]
        if change.kind == "configure":
            was, now = snapshot.topics[change.subject], applied.topics[change.subject]
            assert dangers(was, now) <= policy.allow, (was, now)


def dangers(was, now):
    """The consents that the way from one topic to another needs."""
    needed = set()
    policies_of = [set(each.effective("cleanup.policy").split(",")) for each in (was, now)]
    if policies_of[1] - policies_of[0]:
        needed.add("cleanup_change")
    if "delete" in policies_of[1]:
        for key in ("retention.ms", "retention.bytes"):
            limits = [float(each.effective(key)) for each in (was, now)]
            limits = [float("inf") if limit < 0 else limit for limit in limits]
            if limits[1] < limits[0]:
                needed.add("retention_cut")
        clocks = [each.effective("message.timestamp.type").lower() for each in (was, now)]
        if clocks[0] != clocks[1] and int(now.effective("retention.ms")) >= 0:
            needed.add("retention_cut")
    if "compact" in policies_of[1]:
        for key in ("delete.retention.ms", "min.compaction.lag.ms"):
            if int(now.effective(key)) < int(was.effective(key)):
                needed.add("retention_cut")
    key = "remote.storage.enable"
    if (was.effective(key), now.effective(key)) == ("true", "false"):
        needed.add("retention_cut")
    if int(now.effective("min.insync.replicas")) < int(was.effective("min.insync.replicas")):
        needed.add("min_insync_cut")
    key = "unclean.leader.election.enable"
    if (was.effective(key), now.effective(key)) == ("false", "true"):
        needed.add("unclean_election")
    return needed


@given(wishes, clusters)
def test_the_way_to_a_safer_topic_needs_no_consent(desired, snapshot):
    """What is refused without any consent is a danger, a growth, or a deletion: nothing else is."""
    allowed = plan_topics(desired, snapshot, CONSENT)
    applied = apply_to(snapshot, allowed)
    plan = plan_topics(desired, snapshot, TopicPolicy())
    planned = {(change.kind, change.subject) for change in plan.changes}
    several = {
        name
        for name in snapshot.topics
        if sum(change.subject == name for change in allowed.changes) > 1
    }
    for change in allowed.changes:
        safe = change.kind == "configure" and change.subject not in several
        if safe and not dangers(snapshot.topics[change.subject], applied.topics[change.subject]):
            assert (change.kind, change.subject) in planned


@given(wishes, clusters, policies)
def test_every_danger_is_asked_for_its_size(desired, snapshot, policy):
    """Whatever is refused for a danger was among the topics whose records are counted."""
    plan = plan_topics(desired, snapshot, policy)
    asked = subjects_at_stake(desired, snapshot, policy)
    for refusal in plan.refusals:
        if "allow: [" in refusal.remedy:
            assert set(refusal.subjects) <= set(asked)


@given(wishes, clusters, policies)
def test_the_diff_shows_every_changed_topic_and_no_other(desired, snapshot, policy):
    plan = plan_topics(desired, snapshot, policy)
    diff = plan.diff()
    assert set(diff["before"]) | set(diff["after"]) == {change.subject for change in plan.changes}
