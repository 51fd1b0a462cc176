# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounds on partitions: what is counted, how planned partitions are added, and how each level comes about."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.bounds import (
    BEYOND,
    KIP_578,
    NEAR,
    NOTE,
    OK,
    RAO,
    Bound,
    Limits,
    bounds_of,
    load_of,
    segments_of,
    with_added,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.items import Addition
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    ConfigEntry,
    Partition,
    Snapshot,
    Topic,
)

HOSTS = Limits(100_000, 65_530, kraft=False)


def topic(name, *replicas, **config):
    """A topic; the first replica of each partition leads."""
    entries = {key.replace("_", "."): value for key, value in config.items()}
    return Topic(
        name,
        tuple(Partition(number, each[0], each, each) for number, each in enumerate(replicas)),
        {key: ConfigEntry(key, value) for key, value in entries.items()},
    )


def cluster(*topics, brokers=3):
    """A Snapshot of topics."""
    alive = tuple(Broker(number, "", 0) for number in range(1, brokers + 1))
    return Snapshot(brokers=alive, topics={each.name: each for each in topics})


@pytest.mark.parametrize(
    ("planned", "source", "level"),
    [
        (3200, KIP_578, OK),
        (3201, KIP_578, NEAR),
        (4000, KIP_578, NEAR),
        (4001, KIP_578, BEYOND),
        (4000, RAO, OK),
        (4001, RAO, NOTE),
        (4001, replace(KIP_578, dated=True), NOTE),
    ],
)
def test_levels_and_what_is_dated_is_noted_only(planned, source, level):
    assert Bound("b", 0, planned, 4000, "", source).level == level


def test_a_small_cluster_is_counted_as_it_is():
    state = cluster(
        topic("orders", (1, 2, 3), (2, 3, 1), min_insync_replicas="2", segment_bytes="100"),
        topic("single", (3,)),
        topic("tight", (1, 2), min_insync_replicas="2"),
    )
    load = load_of(state, {(1, ("orders", 0)): 250, (3, ("single", 0)): 10**9})
    assert (load.partitions, load.all_replicas) == (4, 9)
    assert load.replicas == {1: 3, 2: 3, 3: 3} and load.leaders == {1: 2, 2: 1, 3: 1}
    assert load.pairs[(1, 2)] == 2 and load.pairs[(1, 3)] == 1 and (3, 1) not in load.pairs
    # 250 bytes in segments of 100 are three; without a known segment.bytes it is one.
    assert load.segments == {1: 5, 2: 3, 3: 3}
    assert load.widest == ("orders", 2) and load.single == ("single",)
    assert load.stopping == ("tight",)
    found = {each.name.partition(",")[0]: each for each in bounds_of(load, load, HOSTS)}
    assert found["memory maps of a broker"].planned == 10
    assert found["open files of a broker"].planned == 5
    assert found["topics with a single replica"].level == BEYOND
    assert found["topics with a single replica"].where == "single"
    # 100 x 3 brokers x 2 replicas, as the average is 2.25
    dated = found["replicas of a broker"]
    assert dated.limit == 600 and dated.source is RAO


def test_without_sizes_nothing_is_said_of_files():
    load = load_of(cluster(topic("t", (1, 2, 3))), None)
    assert load.segments is None
    assert not [each for each in bounds_of(load, load, HOSTS) if "at least" in each.name]


def test_what_was_said_of_zookeeper_is_noted_only_in_kraft():
    load = load_of(cluster(topic("t", *[(1, 2, 3)] * 5000)), None)
    by_mode = {
        kraft: bounds_of(load, load, replace(HOSTS, kraft=kraft))[0].level
        for kraft in (False, None, True)
    }
    assert by_mode == {False: BEYOND, None: BEYOND, True: NOTE}


def test_an_empty_cluster_has_nothing_to_worry_about():
    load = load_of(Snapshot(), {})
    assert {each.level for each in bounds_of(load, load, HOSTS)} == {OK}


@pytest.mark.parametrize(
    ("size", "largest", "segments"),
    [(0, "100", 1), (1, "100", 1), (100, "100", 1), (101, "100", 2), (5, None, 1), (5, "x", 1)],
)
def test_segments(size, largest, segments):
    given_config = {"segment_bytes": largest} if largest else {}
    assert segments_of(topic("t", (1,), **given_config), size) == segments


@given(st.integers(1, 9), st.integers(1, 200), st.data())
def test_no_broker_gets_more_than_is_planned_for_it(brokers, partitions, data):
    """Wherever Kafka begins, its assignment round the brokers fits what was added."""
    factor = data.draw(st.integers(1, brokers))
    first = data.draw(st.integers(0, brokers - 1))
    empty = load_of(cluster(brokers=brokers), {})
    planned = with_added(empty, [Addition("t", partitions, factor, partitions)])
    assigned = Counter(
        (first + number + step) % brokers + 1
        for number in range(partitions)
        for step in range(factor)
    )
    led = Counter((first + number) % brokers + 1 for number in range(partitions))
    assert all(planned.replicas[broker] >= count for broker, count in led.items())
    assert all(planned.leaders[broker] >= count for broker, count in led.items())
    assert sum(assigned.values()) <= planned.all_replicas < partitions * factor + brokers
    assert planned.partitions == partitions and planned.widest == ("t", partitions)
    if factor > 1 and brokers > 1:
        assert sum(planned.pairs.values()) >= partitions * (factor - 1)


def test_two_hundred_thousand_partitions_on_a_hundred_brokers():
    topics = []
    for number in range(2000):
        replicas = [
            tuple((number + part + step * 31) % 100 + 1 for step in range(3)) for part in range(100)
        ]
        topics.append(topic(f"t{number}", *replicas, segment_bytes="1073741824"))
    load = load_of(cluster(*topics, brokers=100), {})
    found = bounds_of(load, load, HOSTS)
    assert [each.planned for each in found[:2]] == [6000, 200_000]
    assert [each.level for each in found[:2]] == [BEYOND, NEAR]
