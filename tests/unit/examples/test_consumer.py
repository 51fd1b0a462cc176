# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What examples/consumer.py makes of a commit that fails, and of work that takes long."""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import KafkaError, KafkaException


class Consumer:
    """Its commits end with these errors, one after the other, and then well."""

    def __init__(self, *errors):
        self.errors, self.commits = list(errors), 0

    def commit(self, asynchronous):
        assert not asynchronous
        self.commits += 1
        if self.errors:
            raise KafkaException(KafkaError(self.errors.pop(0)))


# what librdkafka tells of a coordinator that has died, or has just become one
DEAD = [
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
]


@pytest.mark.parametrize("code", DEAD)
def test_a_coordinator_that_dies_does_not_end_it(example, code, capsys):
    consumer = Consumer(code)
    assert not example.commit(consumer) and "not committed yet" in capsys.readouterr().err
    assert example.commit(consumer)


@pytest.mark.parametrize(
    "code", [KafkaError._NO_OFFSET, KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID]
)
def test_what_is_settled_is_not_tried_again(example, code):
    assert example.commit(Consumer(code))


@pytest.mark.parametrize(
    "code", [KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.OFFSET_METADATA_TOO_LARGE]
)
def test_what_does_not_pass_ends_it(example, code):
    with pytest.raises(KafkaException):
        example.commit(Consumer(code))


def test_before_it_leaves_it_tries_for_some_time(example):
    consumer = Consumer(*[KafkaError.NOT_COORDINATOR] * 2)
    example.commit_at_last(consumer)
    assert consumer.commits == 3
    nobody = Consumer(*[KafkaError.NOT_COORDINATOR] * 9)
    example.commit_at_last(nobody, seconds=0)
    assert nobody.commits == 1


class Told:
    """What `poll` returns of an error."""

    def __init__(self, code):
        self.code = code

    def error(self):
        return KafkaError(self.code)


class Polled(Consumer):
    """Its polls tell these errors, one after the other; then it is to stop."""

    def __init__(self, *errors):
        super().__init__()
        self.told, self.stopped = list(errors), threading.Event()

    def poll(self, _seconds):
        if self.told:
            return Told(self.told.pop(0))
        self.stopped.set()
        return None


def test_work_that_takes_longer_than_the_group_waits_does_not_end_it(example, capsys):
    consumer = Polled(KafkaError._MAX_POLL_EXCEEDED)
    assert example.run(consumer, consumer.stopped) == 0 and consumer.stopped.is_set()
    assert "max.poll.interval.ms" in capsys.readouterr().err


def test_what_a_poll_tells_otherwise_ends_it(example):
    consumer = Polled(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaException):
        example.run(consumer, consumer.stopped)
