# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topics and log directories as tables: what is not known is null, and the largest come first."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.tables import (
    broker_row,
    replica_sizes,
    topic_row,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    ConfigEntry,
    Directory,
    Partition,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import chooser

CONFIG = {
    "retention.ms": ConfigEntry("retention.ms", "5", "topic"),
    "segment.ms": ConfigEntry("segment.ms", "6", "default"),
    "secret": ConfigEntry("secret", "hush", "broker", sensitive=True),
}
TOPIC = Topic("a", (Partition(0, 1, (1, 2), (1,)), Partition(1, None, (2, 1), ())), CONFIG)


def test_names_and_expressions_over_whole_names_choose():
    chosen = chooser(["x"], ["a.*", "b"])
    assert [name for name in ("x", "a", "abc", "b", "bc", "xa") if chosen(name)] == [
        *("x", "a", "abc"),
        "b",
    ]
    with pytest.raises(AdminError, match="topic_patterns=\\("):
        chooser([], ["("], "topic_patterns")


def test_a_topic_with_the_sizes_of_all_replicas():
    directories = {
        1: [Directory("/1", {("a", 0): 10, ("a", 1): 7})],
        2: [Directory("/1", {("a", 0): 11}), Directory("/2", {("a", 1): 7})],
    }
    sizes = replica_sizes(directories)
    row = topic_row(TOPIC, sizes, {("a", 0): (5, 9), ("a", 1): (0, 3)}, False, True)
    assert (row["bytes"], row["bytes_on_disks"], row["records"]) == (18, 35, 7)
    assert row["config"] == {
        "retention.ms": {"value": "5", "source": "topic"},
        "secret": {"value": None, "source": "broker"},
    }
    assert row["partition_list"][1]["leader"] is None
    # one partition is not known: the sum would be too small
    del sizes[("a", 1)]
    row = topic_row(TOPIC, sizes, {("a", 0): (5, 9)}, True, False)
    assert row["bytes"] is row["bytes_on_disks"] is row["records"] is None
    assert "segment.ms" in row["config"] and "partition_list" not in row


def test_the_fullest_disk_and_the_largest_topics_come_first():
    held = {("a", 0): 5, ("a", 1): 5, ("b", 0): 9, ("c", 0): 1}
    row = broker_row(
        Broker(1, "h", 9092),
        [
            Directory("/1", {}, total=100, usable=90),
            Directory("/2", held, total=100, usable=10),
            Directory("/3", online=False),
        ],
        2,
    )
    assert [each["path"] for each in row["directories"]] == ["/2", "/1", "/3"]
    full, _empty, dead = row["directories"]
    assert full["topics"] == [
        {"name": "a", "bytes": 10, "replicas": 2},
        {"name": "b", "bytes": 9, "replicas": 1},
    ]
    assert (full["used_share"], full["kafka_bytes"], full["others_bytes"]) == (0.9, 20, 70)
    assert full["topic_count"] == 3
    assert not dead["online"] and dead["used_share"] is dead["others_bytes"] is None
