# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that copy, whatever their calls come to: with transactions each record once, else at least once."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill import client_copying
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_copying import (
    BATCH,
    NO_IDEMPOTENCE,
    Mended,
    copying,
)

RECORDS = 50
# What a call may come to, as the documentation of the client tells them apart; "" is a good end.
RETRIABLE, ABORTABLE, FATAL, OTHER = "retriable", "abortable", "fatal", "other"


def error_of(kind, code=KafkaError._TIMED_OUT):
    """The error of this kind."""
    return KafkaError(
        code,
        kind,
        fatal=kind == FATAL,
        retriable=kind == RETRIABLE,
        txn_requires_abort=kind == ABORTABLE,
    )


class Message:
    """A record of the source."""

    def __init__(self, number):
        self.number = number

    def error(self):
        return None

    def topic(self):
        return "source"

    def partition(self):
        return 0

    def offset(self):
        return self.number

    def value(self):
        return f"{self.number} 1".encode()


class Cluster:
    """Source, copy and the group's offset. `calls`: what the calls to come will come to."""

    def __init__(self, calls):
        self.calls, self.offset, self.copy = list(calls), 0, []
        self.producers, self.told, self.looks, self.pauses = [], [], 0, 0

    def comes_to(self):
        return self.calls.pop(0) if self.calls else ""

    # of a process

    def going(self):
        self.looks += 1
        assert self.looks < 10000, "it goes round in circles"
        return self.offset < RECORDS

    def tell(self, *words):
        self.told.append(words)

    def pause(self, seconds):
        assert seconds > 0
        self.pauses += 1


class Producing:
    """A producer; the last one that has begun with transactions fences the others."""

    def __init__(self, cluster, settings):
        self.cluster, self.settings = cluster, settings
        self.batch, self.offsets, self.ill = None, None, ""
        cluster.producers.append(self)

    def _call(self, aborts=False):
        fenced = self is not self.cluster.producers[-1]
        ill = "" if aborts and self.ill == ABORTABLE else self.ill
        told = FATAL if fenced else ill or self.cluster.comes_to()
        if aborts and told == ABORTABLE:
            told = ""
        if told in (FATAL, ABORTABLE):
            self.ill = told
        if told:
            raise KafkaException(error_of(told))

    def init_transactions(self, _timeout):
        told = self.cluster.comes_to()
        if told == RETRIABLE:
            raise KafkaException(error_of(told))

    def begin_transaction(self):
        self._call()
        assert self.batch is None, "the one before has ended"
        self.batch = []

    def produce(self, _topic, value, partition, on_delivery):
        assert partition == 0
        if self.ill:
            raise KafkaException(error_of(OTHER, KafkaError._FATAL))
        if "transactional.id" in self.settings:
            self.batch.append(value)
            return
        # nobody has said whether it was written
        self.cluster.copy.append(value)
        told = self.cluster.comes_to()
        if told == FATAL:
            self.ill = told
        on_delivery(error_of(told) if told else None, None)

    def flush(self, _timeout):
        pass

    def send_offsets_to_transaction(self, offsets, _member, _timeout):
        self._call()
        ((self.offsets),) = offsets

    def commit_transaction(self, _timeout):
        self._call()
        self.cluster.copy += self.batch
        self.cluster.offset = self.offsets.offset
        self.batch = self.offsets = None

    def abort_transaction(self, _timeout):
        self._call(aborts=True)
        self.batch, self.offsets, self.ill = None, None, ""


class Consuming:
    """A member of the group, alone."""

    def __init__(self, cluster):
        self.cluster, self.at = cluster, cluster.offset

    def subscribe(self, _topics):
        pass

    def consume(self, count, _seconds):
        found = [Message(number) for number in range(self.at, min(self.at + count, RECORDS))]
        self.at += len(found)
        return found

    def assignment(self):
        return [TopicPartition("source", 0)]

    def committed(self, places, timeout):
        assert timeout
        if self.cluster.comes_to():
            raise KafkaException(error_of(OTHER))
        # of a group that has committed nothing there is none
        return [TopicPartition(each.topic, 0, self.cluster.offset or -1001) for each in places]

    def seek(self, place):
        self.at = max(0, place.offset)

    def commit(self, offsets, asynchronous):
        assert not asynchronous
        if self.cluster.comes_to():
            raise KafkaException(error_of(OTHER))
        self.cluster.offset = offsets[0].offset

    def consumer_group_metadata(self):
        return "member"

    def close(self):
        self.closed = True


def copied_by(calls, plain):
    """Let a program copy all of the source; returns the cluster."""
    cluster = Cluster(calls)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(client_copying, "Producer", lambda own: Producing(cluster, own))
        patched.setattr(client_copying, "Consumer", lambda _own: Consuming(cluster))
        copying({}, "source", "target", plain)(cluster)
    return cluster


ALL = [f"{number} 1".encode() for number in range(RECORDS)]
CALLS = st.lists(st.sampled_from(["", "", "", RETRIABLE, ABORTABLE, FATAL, OTHER]), max_size=40)


@given(CALLS)
def test_with_transactions_each_record_is_there_once_and_in_order(calls):
    assert copied_by(calls, None).copy == ALL


@given(CALLS)
def test_at_least_once_each_record_is_there(calls):
    cluster = copied_by(calls, NO_IDEMPOTENCE)
    assert set(cluster.copy) == set(ALL)
    again = [words for words in cluster.told if words[0] != "committed"]
    assert (len(cluster.copy) > RECORDS) is bool(again)
    assert {each.settings["enable.idempotence"] for each in cluster.producers} == {False}


@pytest.mark.parametrize("plain", [None, NO_IDEMPOTENCE])
@given(CALLS)
def test_after_an_error_nobody_goes_on_at_once(plain, calls):
    """Else what fails at once fails a hundred thousand times a second, each time with a word by the pipe."""
    cluster = copied_by(calls, plain)
    assert cluster.pauses >= sum(words[0] != "committed" for words in cluster.told)


@pytest.mark.parametrize(
    "calls, producers, told",
    [
        ([OTHER], 1, ["again"]),
        ([FATAL], 2, ["renewed"]),
        # none of a batch gets out behind it
        (["", FATAL], 2, ["renewed"]),
    ],
)
def test_a_producer_that_can_never_go_on_is_followed_by_another(calls, producers, told):
    """As an idempotent one that has lost its place."""
    cluster = copied_by(calls, {"enable.idempotence": True})
    assert len(cluster.producers) == producers and set(cluster.copy) == set(ALL)
    assert [words[0] for words in cluster.told if words[0] != "committed"] == told


def test_what_was_done_about_errors_is_counted_with_the_first_of_each():
    mended = Mended()
    for done, error in (("again", "a"), ("renewed", "b"), ("again", "c")):
        mended.note(done, error)
    assert mended.told() == [["again", 2, "a"], ["renewed", 1, "b"]]


@pytest.mark.parametrize(
    "calls, producers, told",
    [
        ([], 1, []),
        # init, begin, send offsets, commit
        ([RETRIABLE, "", "", RETRIABLE, "", RETRIABLE, RETRIABLE], 1, []),
        (["", "", ABORTABLE], 1, ["aborted"]),
        (["", "", "", ABORTABLE], 1, ["aborted"]),
        (["", "", "", FATAL], 2, ["renewed"]),
        # what it cannot abort
        (["", "", "", ABORTABLE, RETRIABLE, FATAL], 2, ["renewed"]),
        (["", "", "", OTHER], 2, ["renewed"]),
    ],
)
def test_an_error_is_handled_as_the_client_says(calls, producers, told):
    cluster = copied_by(calls, None)
    assert len(cluster.producers) == producers
    assert [words[0] for words in cluster.told if words[0] != "committed"] == told
    commits = [words[1] for words in cluster.told if words[0] == "committed"]
    assert commits[0] == (BATCH, str(BATCH - 1)) and commits[-1][1] == str(RECORDS - 1)


@pytest.mark.parametrize("plain", [None, NO_IDEMPOTENCE])
def test_who_lacks_a_right_ends_and_says_so(plain):
    """Tried again, nobody would ever hear of it."""
    code = KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            client_copying,
            "offsets_after",
            lambda _batch: (_ for _ in ()).throw(KafkaException(error_of(ABORTABLE, code))),
        )
        with pytest.raises(KafkaException, match="AUTHORIZATION_FAILED"):
            copied_by([], plain)
