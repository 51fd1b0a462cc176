# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What the probes have in common: what they work with, writing, reading, waiting."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Optional

from flow.messages.failure import CannotRun
from flow.messages.librdkafka import LastError, quiet_logger
from flow.prepare import consuming
from flow.prepare.cluster import Cluster, spread

_POLL_SECONDS = 0.1


class Debris(CannotRun):
    """A topic that must not simply be deleted stayed behind; the message says what to do."""


@dataclass(frozen=True)
class Bench:
    """What a probe works with.

    settings: librdkafka's; reassigning: a java_admin.Reassigning; brokers: the registered ids;
    replication, min_isr: the planned ones; timeout: seconds for one answer; margin: seconds that
    brokers may take beyond the moment when their own settings have them act.
    """

    cluster: Cluster
    settings: dict
    reassigning: Any
    brokers: tuple
    replication: int
    min_isr: int
    timeout: float
    margin: float
    stopped: threading.Event = field(default_factory=threading.Event)

    def replicas(self) -> list:
        """Of a topic with a partition for each broker to lead, as many as are planned."""
        brokers = list(self.brokers)
        return spread(brokers, len(brokers), min(self.replication, len(brokers)))

    def pause(self, seconds: float) -> None:
        """Wait before the next look; CannotRun as soon as the run ends without this probe."""
        if self.stopped.wait(seconds):
            raise CannotRun("the run ended before it could be judged")


@dataclass(frozen=True)
class Record:
    """To be written; `timestamp_ms` 0: the client's clock."""

    partition: int
    value: Optional[bytes]
    key: Optional[bytes] = None
    timestamp_ms: int = 0


@dataclass(frozen=True)
class Answer:
    """What became of a Record: its offset, or the name of an error and what was said about it. `appended_ms`: when by
    the clock of the leader that appended it, of a topic that keeps that.
    """

    offset: Optional[int] = None
    error: str = ""
    said: str = ""
    appended_ms: Optional[int] = None


@dataclass(frozen=True)
class Read:
    """A record as it was read."""

    partition: int
    offset: int
    key: Optional[bytes]
    value: Optional[bytes]


@dataclass(frozen=True)
class Finding:
    """What a probe found: `count` violations, witnesses of some of them as in verdict.json, and
    numbers for people (name -> number). `unclear`: a sentence about what it could not tell, "" if there is nothing.
    """

    count: int = 0
    witnesses: list = field(default_factory=list)
    measured: dict = field(default_factory=dict)
    unclear: str = ""


def write(bench: Bench, topic: str, records: Iterable[Record], **more) -> list:
    """The Answers to these records, in their order; acks=all. `more`: the client's settings, with
    underscores for dots.
    """
    from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaException, Producer

    heard, answers = LastError(), []
    settings = {
        "acks": "all",
        "linger.ms": 5,
        "delivery.timeout.ms": int(bench.timeout * 1000),
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    client = Producer({**bench.settings, "error_cb": heard, **settings}, logger=quiet_logger())

    def answered(number: int) -> Callable:
        def delivered(error, message) -> None:
            if error is None:
                kind, stamp = message.timestamp()
                appended = stamp if kind == TIMESTAMP_LOG_APPEND_TIME else None
                answers[number] = Answer(offset=message.offset(), appended_ms=appended)
            else:
                answers[number] = Answer(error=error.name(), said=heard.beside(error.str()))

        return delivered

    for number, each in enumerate(records):
        answers.append(Answer(error="_NO_ANSWER", said="no answer"))
        what: dict = {"partition": each.partition, "timestamp": each.timestamp_ms}
        while True:
            try:
                done = answered(number)
                client.produce(topic, each.value, each.key, on_delivery=done, **what)
                break
            except KafkaException as error:  # the client's own refusal
                refused = error.args[0]
                answers[number] = Answer(error=refused.name(), said=heard.beside(refused.str()))
                break
            except BufferError:
                client.poll(_POLL_SECONDS)
            if bench.stopped.is_set():
                break
        client.poll(0)
    # a little longer than the deliveries may take, since their time-outs are answers, too
    deadline = time.monotonic() + bench.timeout + 2
    while client.flush(_POLL_SECONDS) and time.monotonic() < deadline:
        if bench.stopped.is_set():
            break
    client.purge()
    return answers


def offsets(answers: list) -> list:
    """The offsets of Answers that all are acknowledgements; else CannotRun."""
    refused = [each for each in answers if each.offset is None]
    if refused:
        what = f"{len(refused):,} of {len(answers):,} writes were not acknowledged"
        raise CannotRun(f"{what}: {refused[0].said}")
    return [each.offset for each in answers]


def read(
    bench: Bench, topic: str, ends: dict, enough: Callable = lambda record: False
) -> Optional[list]:
    """All Reads from the first to the end offset (partition -> end offset) of each partition; None
    if `enough(read)` was true of one. CannotRun if nothing comes for bench.timeout seconds.
    """
    from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

    found, heard = [], LastError()
    wanted = {number: end for number, end in ends.items() if end > 0}

    def record(message) -> bool:
        found.append(Read(message.partition(), message.offset(), message.key(), message.value()))
        return enough(found[-1])

    def trouble(message) -> consuming.After:
        heard(message.error())
        return consuming.After.WAIT

    settings = {**bench.settings, "error_cb": heard, "auto.offset.reset": "earliest"}
    client = consuming.consumer(settings)
    try:
        client.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in wanted])
        patience = consuming.Patience(bench.timeout)
        stopped = bench.stopped.is_set
        reading = consuming.read_to_end(client, wanted, patience, record, trouble, stopped)
    except KafkaException as error:
        what = f"{topic} could not be read: {error.args[0].str()}"
        raise CannotRun(heard.beside(what)) from error
    finally:
        client.close()
    if reading.ended is consuming.Ended.SILENT:
        text = f"partitions {sorted(reading.left)} of {topic} could not be read to their end"
        raise CannotRun(heard.beside(text))
    if reading.ended is consuming.Ended.STOPPED:
        raise CannotRun("the run ended before it could be judged")
    return None if reading.ended is consuming.Ended.ENOUGH else found
