# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load of drills, on the brokers that librdkafka itself plays: what is sent again is counted."""

from __future__ import annotations

import ctypes
import glob
import os

import confluent_kafka
import pytest
from confluent_kafka import Consumer, TopicPartition

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import (
    client_load,
    client_there,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Ticker,
    Watch,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_there import (
    There,
    groups_seen,
    records_there,
)
from tests.support.outside import wait_until

PRODUCE, NOT_LEADER = 0, 6


class Brokers:
    """librdkafka's mock cluster, which can be told to refuse; confluent-kafka hands out no such thing."""

    def __init__(self, library):
        self._library = library
        library.rd_kafka_conf_new.restype = ctypes.c_void_p
        library.rd_kafka_new.restype = ctypes.c_void_p
        library.rd_kafka_new.argtypes = [
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_size_t,
        ]
        library.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
        library.rd_kafka_mock_cluster_new.argtypes = [ctypes.c_void_p, ctypes.c_int]
        library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        library.rd_kafka_mock_cluster_bootstraps.argtypes = [ctypes.c_void_p]
        library.rd_kafka_mock_push_request_errors_array.argtypes = [
            ctypes.c_void_p,
            ctypes.c_int16,
            ctypes.c_size_t,
            ctypes.c_void_p,
        ]
        said = ctypes.create_string_buffer(512)
        handle = library.rd_kafka_new(0, library.rd_kafka_conf_new(), said, 512)
        self._cluster = library.rd_kafka_mock_cluster_new(handle, 3)

    @property
    def settings(self):
        found = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster)
        return {"bootstrap.servers": found.decode()}

    def refuse(self, count):
        """Refuse so many requests that write."""
        errors = (ctypes.c_int * count)(*[NOT_LEADER] * count)
        self._library.rd_kafka_mock_push_request_errors_array(self._cluster, PRODUCE, count, errors)


@pytest.fixture(scope="module")
def brokers():
    beside = os.path.join(os.path.dirname(os.path.dirname(confluent_kafka.__file__)))
    found = glob.glob(os.path.join(beside, "confluent_kafka.libs", "librdkafka*"))
    if not found:
        pytest.skip("confluent-kafka has not brought its own librdkafka")
    return Brokers(ctypes.CDLL(found[0]))


@pytest.mark.parametrize("refused", [0, 3])
def test_what_is_sent_again_is_counted(brokers, refused):
    ticker = Ticker(brokers.settings, f"topic-{refused}", interval=0.01)
    wait_until(lambda: len(ticker.acknowledged) >= 20, 30, "it writes")
    # the first ones may have come in one heap
    before = len(ticker.acknowledged)
    brokers.refuse(refused)
    wait_until(lambda: len(ticker.acknowledged) >= before + 40, 30, "it goes on")
    assert not ticker.ended_ms
    ticker.stop()
    ended_ms = ticker.ended_ms
    ticker.stop()
    assert max(ticker.sent.values()) <= ended_ms == ticker.ended_ms
    assert len(ticker.acknowledged) == len(ticker.sent) and not ticker.refused
    # how many requests the records went in is chance
    assert (ticker.retried > 0) == bool(refused)


class Behind(Ticker):
    """Hears each count only when the next one is there, as where nobody asks for a while."""

    told = ""

    def _hear(self, statistics):
        self.told, earlier = statistics, self.told
        if earlier:
            super()._hear(earlier)


def test_a_count_from_before_the_last_record_is_not_the_last_one(brokers):
    """It would lack the last records, as many as were sent again: none of them would be told."""
    ticker = Behind(brokers.settings, "topic-behind-counts", interval=0.01)
    wait_until(lambda: len(ticker.acknowledged) >= 20, 30, "it writes")
    before = len(ticker.acknowledged)
    brokers.refuse(3)
    wait_until(lambda: len(ticker.acknowledged) >= before + 180, 30, "it goes on")
    ticker.stop()
    assert ticker.retried > 0


def test_what_a_group_has_not_had_is_late_where_the_topic_has_it(brokers):
    ticker = Ticker(brokers.settings, "topic-there", partitions=3, interval=0.01)
    wait_until(lambda: len(ticker.acknowledged) >= 30, 30, "it writes")
    ticker.stop()
    sent = {**ticker.sent_and_acknowledged, "never written": 1}
    came = [(record, at_ms) for record, at_ms in sent.items() if record[-1] in "0123456"]
    seen = groups_seen(brokers.settings, "topic-there", 3, sent, {"one": came, "two": []})
    assert [each.missing for each in seen] == [("never written",)] * 2
    assert [each.late for each in seen] == [len(sent) - 1 - len(came), len(sent) - 1]
    gone = records_there(brokers.settings, "topic-none", 1, ["0"])
    assert gone == There(frozenset(), whole=False)


def test_a_look_that_is_not_answered_is_none(brokers, monkeypatch):
    monkeypatch.setattr(client_load, "ANSWERED_SECONDS", 0.3)
    ticker = Ticker(brokers.settings, "topic-looked", interval=0.01)
    wait_until(lambda: ticker.acknowledged, 30, "it writes")
    ticker.stop()
    watch = Watch(brokers.settings, "topic-looked")
    blind = Watch({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, "topic-looked")
    wait_until(lambda: watch.moments, 30, "it has looked")
    first_ms = watch.looked_ms
    # leader and replicas stay the same, and each look counts
    wait_until(lambda: watch.looked_ms > first_ms, 30, "it has looked again")
    watch.stop()
    blind.stop()
    assert len(watch.moments) == 1 and watch.moments[0].at_ms <= first_ms
    assert (blind.looked_ms, blind.moments) == (0, [])


def test_what_could_not_be_looked_for_is_not_called_lost(monkeypatch):
    monkeypatch.setattr(client_there, "ANSWER_SECONDS", 0.3)
    nowhere = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    (seen,) = groups_seen(nowhere, "t", 1, {"0": 1, "1": 1, "2": 1}, {"one": [("0", 2)]})
    assert (seen.missing, seen.late, seen.unknown) == ((), 0, 2)


def test_what_a_group_has_before_it_still_is_late_and_what_it_has_left_behind_is_lost(brokers):
    ticker = Ticker(brokers.settings, "topic-behind", interval=0.01)
    wait_until(lambda: len(ticker.acknowledged) >= 30, 30, "it writes")
    ticker.stop()
    sent = ticker.sent_and_acknowledged
    came = [(str(number), 1) for number in range(10) if number != 4]
    for group, upto in (("half", 20), ("all", len(sent))):
        consumer = Consumer({**brokers.settings, "group.id": group, "enable.auto.commit": False})
        consumer.commit(offsets=[TopicPartition("topic-behind", 0, upto)], asynchronous=False)
        consumer.close()
    groups = {"half": came, "all": came, "never committed": came}
    half, everything, never = groups_seen(
        brokers.settings, "topic-behind", 1, sent, groups, still_to_come=True
    )
    assert half.missing == ("4", *map(str, range(10, 20))) and half.late == len(sent) - 20
    assert len(everything.missing) == len(sent) - 9 and everything.late == 0
    assert never.missing == () and never.late == len(sent) - 9
