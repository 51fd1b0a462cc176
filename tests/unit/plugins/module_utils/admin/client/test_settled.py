# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is still waited for after topics were changed: brokers hear of it one after another."""

from __future__ import annotations

import collections

import pytest
from kafka.admin import ConfigResourceType
from kafka.errors import KafkaTimeoutError, TopicAuthorizationFailedError
from kafka.protocol.admin import DescribeConfigsResponse
from kafka.protocol.metadata import MetadataResponse

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client import settled
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    Partition,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change

HERE = Topic("t", (Partition(0, 1, (1,), (1,)),))
LONGER = Change(
    "configure", "t", {"config": {"retention.ms": "1"}}, {"config": {"retention.ms": "9"}}
)
BACK = Change(
    "configure", "t", {"config": {"retention.ms": "9"}}, {"config": {"retention.ms": None}}
)


@pytest.mark.parametrize(
    "kind, after, led, waits",
    [
        ("create", {"partitions": 1}, {}, True),
        ("create", {"partitions": 1}, {"t": 1}, False),
        ("create", {"partitions": 2}, {"t": 1}, True),
        ("create", {"partitions": None}, {"t": 1}, False),
        ("grow", {"partitions": 2}, {"t": 1}, True),
        ("delete", {}, {"t": 0}, True),
        ("delete", {}, {"another": 1}, False),
    ],
)
def test_a_topic_is_as_declared_once_a_broker_tells_so(kind, after, led, waits):
    assert bool(settled.not_yet(settled.Told(led), [Change(kind, "t", {}, after)])) is waits


@pytest.mark.parametrize(
    "change, told, waits",
    [
        (LONGER, {"retention.ms": ("9", True)}, False),
        (LONGER, {"retention.ms": ("1", True)}, True),
        (LONGER, {}, True),
        (BACK, {"retention.ms": ("9", True)}, True),
        (BACK, {"retention.ms": ("9", False)}, False),
    ],
)
def test_a_setting_is_there_once_a_broker_tells_it(change, told, waits):
    assert bool(settled.not_yet(settled.Told(settings={"t": told}), [change])) is waits


def settings_answer(value, error=0):
    """Of the protocol, for the topic `t`; source 1 is the topic itself."""
    config = DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult(
        name="retention.ms", value=value, config_source=1
    )
    result = DescribeConfigsResponse.DescribeConfigsResult(
        error_code=error, resource_type=2, resource_name="t", configs=[config]
    )
    return DescribeConfigsResponse(results=[result])


def topics_answer(*leaders, error=0):
    """Of the protocol, for the topic `t` with a partition for each leader."""
    Part = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition
    partitions = [Part(partition_index=i, leader_id=who) for i, who in enumerate(leaders)]
    topic = MetadataResponse.MetadataResponseTopic(
        error_code=error, name="t", partitions=partitions
    )
    return MetadataResponse(topics=[topic])


class Cluster:
    """Brokers of which each answers in its own way; the first question, to any of them, is of before."""

    def __init__(self, monkeypatch, answers, topics=(HERE,)):
        self.answers, self.sent, self.requests = answers, [], collections.Counter()
        self.snapshot = Snapshot(
            brokers=tuple(Broker(each, "h", 1) for each in answers),
            topics={topic.name: topic for topic in topics},
        )
        monkeypatch.setattr(settled, "send_to_each", self.send_to_each)

    def fetch_metadata(self):
        return self.snapshot

    def ask(self, _what, call, _rights):
        self.requests["asking each broker"] += 1
        return call(None)

    def send_to_each(self, _admin, make_request, brokers):
        self.sent.append(make_request())
        return {broker: self.answers[broker] for broker in brokers}


NEW, OLD, SILENT = settings_answer("9"), settings_answer("1"), KafkaTimeoutError("silent")


@pytest.mark.parametrize(
    "told, late",
    [
        ({1: NEW, 2: NEW, 3: NEW}, False),
        ({1: NEW, 2: NEW, 3: OLD}, True),
        ({1: OLD, 2: NEW, 3: NEW}, True),
        ({1: SILENT, 2: NEW, 3: NEW}, False),
        ({1: SILENT, 2: NEW, 3: OLD}, True),
    ],
)
def test_a_setting_is_settled_once_every_live_broker_tells_it(monkeypatch, told, late):
    """The next module may ask any of them, and in KRaft mode they learn of it one after another."""
    cluster = Cluster(monkeypatch, told)
    assert bool(settled.unsettled(cluster, [LONGER])) is late
    assert cluster.requests["asking each broker"] == len(told)
    (request,) = cluster.sent
    assert request.resources == [(ConfigResourceType.TOPIC, "t", ["retention.ms"])]


@pytest.mark.parametrize(
    "answer, late",
    [
        (topics_answer(1), False),
        (topics_answer(-1), True),
        (topics_answer(error=3), True),
        (topics_answer(error=29), True),
    ],
)
def test_a_topic_is_settled_once_every_broker_tells_its_leaders(monkeypatch, answer, late):
    """3: there is none. 29: this user may not know."""
    create = Change("create", "t", {}, {"partitions": 1})
    cluster = Cluster(monkeypatch, {1: topics_answer(1), 2: answer})
    assert bool(settled.unsettled(cluster, [create])) is late
    assert cluster.sent[0].allow_auto_topic_creation is False


def test_a_deleted_topic_is_gone_once_no_broker_tells_of_it(monkeypatch):
    delete = Change("delete", "t")
    gone = topics_answer(error=3)
    assert not settled.unsettled(Cluster(monkeypatch, {1: gone, 2: gone}, ()), [delete])
    told = {1: gone, 2: topics_answer(1)}
    assert settled.unsettled(Cluster(monkeypatch, told, ()), [delete]) == {"t": "still there"}


def test_each_broker_is_asked_only_once_any_of_them_knows_all(monkeypatch):
    cluster = Cluster(monkeypatch, {1: NEW}, ())
    assert settled.unsettled(cluster, [LONGER]) == {"t": "not there yet"} and not cluster.sent


def test_where_no_broker_answers_nobody_can_tell(monkeypatch):
    with pytest.raises(KafkaTimeoutError):
        settled.unsettled(Cluster(monkeypatch, {1: SILENT, 2: SILENT}), [LONGER])


def test_who_may_not_see_a_setting_is_told_so(monkeypatch):
    with pytest.raises(TopicAuthorizationFailedError):
        settled.unsettled(Cluster(monkeypatch, {1: settings_answer("9", 29)}), [LONGER])


def test_many_topics_are_asked_for_in_few_requests(monkeypatch):
    names = [f"n{number}" for number in range(25_000)]
    there = [Topic(name, HERE.partitions) for name in names]
    changes = [Change("create", name, {}, {"partitions": 1}) for name in names]
    cluster = Cluster(monkeypatch, {1: topics_answer(1)}, there)
    settled.unsettled(cluster, changes)
    assert [len(request.topics) for request in cluster.sent] == [10_000, 10_000, 5000]
