# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people write becomes one form, or is refused by name."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import (
    did_you_mean,
    name_problem,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    canonical_value,
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.items import (
    DesiredTopic,
    parse_topics,
    parse_topics_text,
)


def checks(items):
    """Ids of the refusals."""
    return [refusal.check for refusal in parse_topics(items)[1]]


def test_an_item_in_full():
    topics, refusals = parse_topics(
        [
            {
                "name": "orders",
                "partitions": "12",
                "replication_factor": 3,
                "retention": "7d",
                "retention_size": "10GiB",
                "cleanup": ["delete", "compact"],
                "config": {"min.insync.replicas": 2, "segment.ms": "1h", "flush.ms": None},
            }
        ]
    )
    assert refusals == ()
    assert topics == (
        DesiredTopic(
            "orders",
            "present",
            12,
            3,
            {
                "min.insync.replicas": "2",
                "segment.ms": "3600000",
                "flush.ms": None,
                "retention.ms": "604800000",
                "retention.bytes": "10737418240",
                "cleanup.policy": "compact,delete",
            },
        ),
    )


def test_an_item_says_no_more_than_its_name():
    assert parse_topics([{"name": "x"}])[0] == (DesiredTopic("x"),)


@pytest.mark.parametrize("key", ["retention.ms ", " retention.ms", "a\n b", "x" * 200, ""])
def test_a_key_of_config_stays_as_it_is_written(key):
    """Nothing is mended: whether the brokers know it is another check."""
    (topic,) = parse_topics([{"name": "x", "config": {key: "1"}}])[0]
    assert topic.config == {key: "1"}


VALUES = [
    ("k", True, "true"),
    ("k", "True", "true"),
    ("k", "FALSE", "false"),
    ("k", 7, "7"),
    ("k", "007", "7"),
    ("k", 1.0, "1"),
    ("k", 0.25, "0.25"),
    ("k", [1, "b", True], "1,b,true"),
    ("k", None, None),
    ("k", "  text ", "text"),
    ("retention.ms", "-1", "-1"),
    ("retention.ms", -1, "-1"),
    ("retention.ms", "forever", "-1"),
    ("segment.bytes", "512MiB", "536870912"),
    ("cleanup.policy", "compact , delete", "compact,delete"),
]


@pytest.mark.parametrize("key, value, text", VALUES, ids=repr)
def test_canonical_values(key, value, text):
    assert canonical_value(key, value) == text


@pytest.mark.parametrize(
    "key, value",
    [
        ("segment.bytes", "10G"),
        ("retention.ms", "1y"),
        ("k", {}),
        ("k", float("inf")),
        ("k", float("nan")),
    ],
)
def test_values_that_are_none(key, value):
    with pytest.raises(ValueError):
        canonical_value(key, value)


SAME = [
    ("k", "0.5", "0.50", True),
    ("k", "1", "1.0", True),
    ("k", "1e3", "1000", True),
    ("k", "a", "b", False),
    ("k", "a,b", "b,a", False),
    ("cleanup.policy", "compact,delete", "delete,compact", True),
    ("cleanup.policy", "compact", "delete,compact", False),
    ("k", None, "x", False),
    ("k", "1.0.0", "1.0", False),
    # Two large numbers are not equal because a float cannot tell them apart.
    ("k", "9223372036854775807", "9223372036854775806", False),
]


@pytest.mark.parametrize("key, one, other, same", SAME, ids=repr)
def test_same_values(key, one, other, same):
    assert same_value(key, one, other) is same
    assert same_value(key, other, one) is same


@pytest.mark.parametrize("name", ["a", "a.b_c-D9", "x" * 249, "__consumer_offsets", "..."])
def test_legal_names(name):
    assert name_problem(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ü", "a\n", None, 7])
def test_illegal_names(name):
    assert name_problem(name)


REFUSED = [
    ([{"name": "x", "partition": 3}], ["topics.unknown_option"]),
    ([{"name": "x", "state": "gone"}], ["topics.bad_value"]),
    ([{"name": "x", "partitions": 0}], ["topics.bad_value"]),
    ([{"name": "x", "partitions": 2**31}], ["topics.bad_value"]),
    # More than the client library can send.
    ([{"name": "x", "partitions": 3000000}], ["topics.bad_value"]),
    ([{"name": "x", "replication_factor": 20000}], ["topics.bad_value"]),
    ([{"name": "x", "config": {"a": float("inf")}}], ["config.bad_value"]),
    ([{"name": "x", "partitions": 1.5}], ["topics.bad_value"]),
    ([{"name": "x", "replication_factor": True}], ["topics.bad_value"]),
    ([{"name": "x", "replication_factor": 40000}], ["topics.bad_value"]),
    ([{"name": "x", "config": ["a"]}], ["topics.bad_value"]),
    ([{"name": "x", "config": {"a": {}}}], ["config.bad_value"]),
    ([{"name": "x", "cleanup": "delete,shred"}], ["config.bad_value"]),
    ([{"name": "x", "retention": "10G"}], ["config.bad_value"]),
    ([{"name": "x", "retention": "7d", "config": {"retention.ms": 1}}], ["topics.contradiction"]),
    ([{"name": "x"}, {"name": "x"}], ["topics.duplicate"]),
    ([{"name": "x"}, {"name": "x", "state": "absent"}], ["topics.duplicate"]),
    (["x"], ["topics.bad_item"]),
    ([{}], ["topics.bad_name"]),
    # Everything that is wrong with an item is said, not only the first.
    (
        [{"name": "a b", "partitions": 0, "retention": "soon"}],
        ["topics.bad_name", "topics.bad_value", "config.bad_value"],
    ),
]


@pytest.mark.parametrize("items, found", REFUSED)
def test_refused_items(items, found):
    assert checks(items) == found
    assert all(refusal.remedy for refusal in parse_topics(items)[1])


def test_a_refused_item_is_no_topic_and_its_neighbour_is():
    topics, _refusals = parse_topics([{"name": "a b"}, {"name": "good"}])
    assert [topic.name for topic in topics] == ["good"]


@pytest.mark.parametrize("text", ["yes", "off", "0123", "12:30", "1.0", "7", "~"])
def test_a_name_that_yaml_reads_as_something_else_is_refused_with_that_reason(text):
    topics, (refusal,) = parse_topics(parse_topics_text(f"- name: {text}", "f"))
    assert refusal.check == "topics.bad_name" and not topics
    if text != "~":
        assert "YAML reads" in refusal.reason and refusal.remedy == "write the name in quotes"
    quoted = parse_topics_text(f"- name: '{text}'", "f")
    if ":" not in text and text != "~":
        assert parse_topics(quoted)[0][0].name == text


@pytest.mark.parametrize(
    "text, key, value",
    [
        ("retention: 1:30", None, None),
        ("retention: 12:30:00", None, None),
        ("retention: 010", None, None),
        ("retention: 0", None, None),
        ("retention_size: 10:00", None, None),
        ("retention_size: 0777", None, None),
        ("retention: '90'", "retention.ms", "90"),
        ("retention: 90ms", "retention.ms", "90"),
        ("retention: 86400000", "retention.ms", "86400000"),
        ("retention_size: 10485760", "retention.bytes", "10485760"),
        ("retention: -1", "retention.ms", "-1"),
        ("retention: '-1'", "retention.ms", "-1"),
        ("retention_size: -1", "retention.bytes", "-1"),
        # Under Kafka's own names plain numbers are what Kafka takes.
        ("config: {retention.ms: 90}", "retention.ms", "90"),
        ("config: {retention.ms: -1}", "retention.ms", "-1"),
    ],
)
def test_a_bare_number_that_is_no_likely_limit_is_refused(text, key, value):
    """YAML reads 1:30 as 90 and 010 as 8: as milliseconds they would delete everything."""
    topics, refusals = parse_topics(parse_topics_text(f"- {{name: x, {text}}}", "f"))
    if key is None:
        (refusal,) = refusals
        assert refusal.check == "config.bad_value" and "in quotes" in refusal.remedy
    else:
        assert topics[0].config == {key: value} and not refusals


def test_nearest_names():
    assert did_you_mean("retention.mss", {"retention.ms", "segment.ms"}) == (
        ", did you mean retention.ms"
    )
    assert did_you_mean("zzz", {"retention.ms"}) == ""


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "x"}]',
        "- name: x",
        "kafka_topics:\n  - name: x",
        '{"topics": [{"name": "x"}]}',
    ],
)
def test_files(text):
    assert parse_topics_text(text, "f") == [{"name": "x"}]


@pytest.mark.parametrize(
    "text", ["", "7", "name: x", "topics: 3", "a: [", "{topics: [], kafka_topics: []}"]
)
def test_files_that_hold_no_list(text):
    with pytest.raises(ValueError, match="^f "):
        parse_topics_text(text, "f")
