# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The worst case of topics against the disks that they lie on."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    ConfigEntry,
    Directory,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.budget import (
    disks_of_topics,
    needs_rate,
    refuse_overfull,
    told,
    unknown_disks,
    worst_of,
)

GIB = 2**30
DEFAULTS = {
    "retention.ms": "10000",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "segment.ms": "5000",
    "segment.bytes": "1000",
}


def topic(name, partitions=1, replicas=(1,), **own):
    """A topic; dots of settings written as underscores."""
    settings = {**DEFAULTS, **{key.replace("_", "."): value for key, value in own.items()}}
    config = {key: ConfigEntry(key, value) for key, value in settings.items()}
    parts = tuple(Partition(index, 1, replicas, replicas) for index in range(partitions))
    return Topic(name, parts, config)


def cluster(*topics, hosts=("h1", "h2")):
    """A snapshot with brokers on these hosts."""
    brokers = tuple(Broker(number, host, 9092) for number, host in enumerate(hosts, 1))
    return Snapshot("id", 1, brokers, {each.name: each for each in topics})


@pytest.mark.parametrize(
    "own, rate, worst, needs",
    [
        ({"retention_bytes": "5000"}, None, 6000, False),
        # 100 bytes a second: 10 s, and half a segment that spans 5 s
        ({}, 100, 1500, True),
        ({}, 1000, 11000, True),
        ({}, None, None, True),
        ({"retention_bytes": "5000"}, 100, 1500, False),
        ({"retention_ms": "-1"}, 100, None, False),
        ({"cleanup_policy": "compact", "retention_bytes": "5"}, 100, None, False),
        ({"cleanup_policy": "compact,delete", "retention_bytes": "5000"}, None, 6000, False),
    ],
)
def test_the_worst_case_of_a_replica(own, rate, worst, needs):
    assert worst_of(topic("a", **own), 0, rate) == worst
    assert needs_rate(topic("a", **own)) is needs


def test_every_replica_counts_where_it_lies_and_others_do_too():
    small, large = topic("a", 2, (1, 2), retention_bytes="4000"), topic("b", replicas=(2,))
    directories = {
        1: [
            Directory("/1", {("a", 0): 10, ("a", 1): 10}, total=10**6, usable=10**6 - 500),
            Directory("/2", {}, total=2 * 10**6, usable=2 * 10**6),
        ],
        2: [Directory("/1", {("a", 0): 10, ("b", 0): 700}, total=10**6, usable=10**6 - 710)],
    }
    disks, unbounded = disks_of_topics(cluster(small, large), directories, {})
    assert [(disk.places, disk.foreign, disk.worst) for disk in disks] == [
        (("broker 1 /1",), 480, {"a": 10000}),
        (("broker 1 /2",), 0, {}),
        (("broker 2 /1",), 0, {"a": 5000, "b": 700}),
    ]
    assert unbounded == ["b"] and not refuse_overfull(disks, 0.0105)
    (refusal,) = refuse_overfull(disks, 0.01)
    assert refusal.check == "retention.over_budget" and refusal.subjects == ("broker 1 /1",)
    assert "most: a 9.8 KiB" in refusal.reason and "to 95% of it" in refusal.remedy
    assert told(disks, 0.01)[0]["directories"] == ["broker 1 /1"]


@pytest.mark.parametrize(
    "hosts, other, count",
    [
        (("h", "h"), {"total": 100 * GIB, "usable": 50 * GIB + 5}, 1),
        (("h", "g"), {"total": 100 * GIB, "usable": 50 * GIB + 5}, 2),
        (("h", "h"), {"total": 101 * GIB, "usable": 50 * GIB}, 2),
        (("h", "h"), {"total": 100 * GIB, "usable": 49 * GIB}, 2),
    ],
)
def test_directories_of_one_disk_count_it_once(hosts, other, count):
    bounded = topic("a", replicas=(1, 2), retention_bytes="4000")
    directories = {
        1: [Directory("/1", {("a", 0): 10}, total=100 * GIB, usable=50 * GIB)],
        2: [Directory("/2", {("a", 0): 10}, **other)],
    }
    disks, _unbounded = disks_of_topics(cluster(bounded, hosts=hosts), directories, {})
    assert len(disks) == count and sum(disk.worst["a"] for disk in disks) == 10000


def test_blank_disks_of_one_size_count_each_where_they_are_known():
    bounded = topic("a", 2, replicas=(1,), retention_bytes="4000")
    two = [
        Directory(path, {("a", number): 10}, True, 100 * GIB, 50 * GIB, f"b1/{path}")
        for number, path in enumerate(("/1", "/2"))
    ]
    disks, _unbounded = disks_of_topics(cluster(bounded, hosts=("h",)), {1: two}, {})
    assert [disk.worst for disk in disks] == [{"a": 5000}, {"a": 5000}]


@pytest.mark.parametrize("order", list(permutations((0, 12, 24))))
def test_three_brokers_of_one_disk_count_it_once_in_whichever_order(order):
    """They tell one after another how much is left, while it fills."""
    bounded = topic("a", replicas=(1, 2, 3), retention_bytes="4000")
    directories = {
        broker: [
            Directory(f"/{broker}", {("a", 0): 10}, total=100 * GIB, usable=50 * GIB - mebi * 2**20)
        ]
        for broker, mebi in enumerate(order, 1)
    }
    disks, _unbounded = disks_of_topics(cluster(bounded, hosts="hhh"), directories, {})
    assert [disk.worst for disk in disks] == [{"a": 15000}]


def test_what_cannot_be_judged_is_refused():
    there = cluster(topic("a", replicas=(1, 2, 3)))
    directories = {
        1: [Directory("/1", total=1, usable=1), Directory("/2", online=False)],
        2: [Directory("/1")],
    }
    refusals = unknown_disks(there, directories, 0.8)
    assert [each.subjects[0] for each in refusals] == ["broker 3", "broker 1 /2", "broker 2 /1"]
    assert {each.check for each in refusals} == {"retention.budget_unknown"}


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 10**5), min_size=1),
    st.integers(1, 10**6),
    st.floats(0.01, 1),
)
def test_what_is_proposed_fits(limits, total, budget):
    """Where a share of the limits is proposed, limits of that share fit (but for the segments)."""
    topics = [
        topic(name, retention_bytes=str(size), segment_bytes="0") for name, size in limits.items()
    ]
    directories = {
        1: [Directory("/", {(name, 0): 0 for name in limits}, total=total, usable=total)]
    }
    disks, _none = disks_of_topics(cluster(*topics), directories, {})
    refusals = refuse_overfull(disks, budget)
    assert bool(refusals) == (sum(limits.values()) > int(budget * total))
    if refusals and "% of it" in refusals[0].remedy:
        percent = int(refusals[0].remedy.split(" to ")[1].split("%")[0])
        assert sum(limits.values()) * percent / 100 <= budget * total
