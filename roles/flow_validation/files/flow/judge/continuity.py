# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Consumer groups: do committed offsets survive, and does a group that continues there get everything?

Before the first write each group of the run commits where the run's records will begin. When the
records are judged, the commits must still be the same, and a member that joins its group must be
handed every record from there on, which is what happens to a service that was away meanwhile.
A large run is not read whole by ordinary consumers, but the first
SAMPLE records of it: they share the cores with the judging.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from flow.judge import verdict
from flow.messages import stopping
from flow.messages.failure import CannotRun
from flow.prepare.cluster import quiet_logger
from flow.record import own_names
from flow.record.ledger import common

WHOLE = 100_000  # records: so many, and fewer, each group reads to the end
SAMPLE = 10_000  # that it reads of more than those, evenly of all partitions
_BATCH = 10_000
_AGAIN_SECONDS = 0.2
# Until the cluster takes a silent member for dead: the client's own, and where brokers allow no such time.
_SESSION_MS = (45_000, 10_000)
_TOO_LONG = "INVALID_SESSION_TIMEOUT"
_REFUSALS = 3  # of the same batch, until nothing behind it is waited for
_COORDINATOR_MOVES = frozenset(
    "NOT_COORDINATOR COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS _WAIT_COORD"
    " UNSTABLE_OFFSET_COMMIT _TRANSPORT _TIMED_OUT".split()
)


@dataclass(frozen=True)
class Delivery:
    """What one group was handed.

    `committed`: partition -> offset that the cluster has for the group, None if it has none;
    `missed`: partition -> offsets that were asked for and did not come, as ranges (first, last);
    `complaints`: what the client said.
    """

    committed: dict
    missed: dict = field(default_factory=dict)
    complaints: tuple = ()


def names(run_id: str, number: int) -> list:
    """The groups of a run."""
    return [own_names.own(run_id, index + 1) for index in range(number)]


def sample(starts: dict, ends: dict, whole: int = WHOLE, most: int = SAMPLE) -> dict:
    """partition -> (first offset, end offset) that a group reads: everything of `whole` records or
    fewer, `most` of more.

    starts: partition -> offset of the commits; ends: partition -> end offset now. The shares of
    all partitions are equal, so that each of them is tried.
    """
    spans = {
        number: (start, max(start, ends.get(number, start))) for number, start in starts.items()
    }
    if sum(end - start for start, end in spans.values()) <= whole:
        return spans
    share = -(-most // max(1, len(starts)))
    return {number: (start, min(end, start + share)) for number, (start, end) in spans.items()}


def check(starts: dict, deliveries: dict, doubtful: set) -> verdict.Check:
    """starts: partition -> committed offset; deliveries: group -> Delivery.

    doubtful: partitions where records were found missing or damaged. There only what one group
    got and the other did not is held against the groups, since nobody gets what is gone.
    """
    gone = {
        number: set.intersection(
            *(set(_unfold(each.missed.get(number, ()))) for each in deliveries.values())
        )
        for number in doubtful
    }
    witnesses, count = [], 0
    for group, delivery in sorted(deliveries.items()):
        for number, start in sorted(starts.items()):
            found = delivery.committed.get(number)
            if found != start:
                count += 1
                what = "nothing" if found is None else found
                reason = f"group {group} had committed {start}, the cluster says {what}"
                witnesses.append({"partition": number, "offset": start, "reason": reason})
        told = " ".join(["", *delivery.complaints]).rstrip()
        for number, ranges in sorted(delivery.missed.items()):
            excused = gone.get(number, ())
            missing = [offset for offset in _unfold(ranges) if offset not in excused]
            if missing:
                count += len(missing)
                witnesses.append(
                    {
                        "partition": number,
                        "offset": missing[0],
                        "records": len(missing),
                        "reason": f"group {group} was not handed it.{told}",
                    }
                )
    return verdict.Check("continuity", count, witnesses)


def without(deliveries: dict, expected: dict) -> dict:
    """The deliveries, and of what they missed only what they should have got: expected: partition
    -> [[first, last], ...] of offsets.
    """
    return {
        group: replace(
            each,
            missed={
                number: ranges
                for number, missed_ranges in each.missed.items()
                if (ranges := common(missed_ranges, expected.get(number, [])))
            },
        )
        for group, each in deliveries.items()
    }


def _unfold(ranges) -> list:
    return [offset for first, last in ranges for offset in range(first, last + 1)]


class Groups:
    """The groups of a run; `settings` are librdkafka's, each call ends within `timeout` seconds
    without an answer.
    """

    def __init__(self, settings: dict, topic: str, groups: list, timeout: float):
        self._settings, self._topic, self._names, self._timeout = settings, topic, groups, timeout

    def commit(self, starts: dict) -> None:
        """Commit these offsets (partition -> offset) for each group; CannotRun if the cluster
        refuses.

        The groups leave the cluster with their topic, or with offsets.retention.minutes. They are
        not deleted, nor committed for, by the admin client: what it asks of a coordinator that
        has just died stays without an answer or ends the whole process (librdkafka 2.16.0).
        """
        with ThreadPoolExecutor(max(1, len(self._names))) as pool:
            list(pool.map(lambda name: self._commit(name, starts), self._names))

    def deliveries(self, spans: dict) -> dict:
        """group -> Delivery of these offsets: partition -> (first, end)."""
        with ThreadPoolExecutor(len(self._names)) as pool:
            found = pool.map(lambda name: self._deliver(name, spans), self._names)
            return dict(zip(self._names, found))

    def _consumer(self, name: str, **more):
        from confluent_kafka import Consumer

        settings = {
            **self._settings,
            "group.id": name,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # no commit is a finding; it must not be hidden by starting somewhere else
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 10,
            **more,
        }
        return Consumer(settings, logger=quiet_logger())

    def _commit(self, name: str, starts: dict) -> None:
        from confluent_kafka import KafkaError, TopicPartition

        answers: list = []  # of the cluster: an error, or None

        def answered(error, places):
            errors = [error, *(place.error for place in places)]
            answers.append(next(filter(None, errors), None))

        # Nobody joins here: this is how long a commit waits for a coordinator, and close() for it.
        more = {"session.timeout.ms": 2000, "heartbeat.interval.ms": 1000}
        consumer = self._consumer(name, on_commit=answered, **more)
        places = [TopicPartition(self._topic, number, at) for number, at in starts.items()]
        deadline = time.monotonic() + self._timeout
        try:
            while True:
                answers.clear()
                consumer.commit(offsets=places, asynchronous=True)
                while not answers:
                    # calls answered(); and it alone says that the coordinator may not be asked for
                    message = consumer.poll(0.2)
                    if message is not None and "AUTHORIZATION" in message.error().name():
                        answers.append(message.error())
                    elif time.monotonic() > deadline:
                        answers.append(KafkaError(KafkaError._TIMED_OUT))
                error = answers[0]
                if error is None:
                    return
                # a coordinator that is just being made, or moves, is found by asking again
                if "AUTHORIZATION" in error.name() or time.monotonic() > deadline:
                    raise CannotRun(
                        f"the consumer group {name} cannot commit: {error.str()}; allow the job's"
                        f" principal to read groups {own_names.PREFIX}-*, or judge without groups"
                    )
                time.sleep(0.2)
        finally:
            consumer.close()

    def _committed(self, consumer, numbers) -> dict:
        """partition -> offset, None if there is none; KafkaException without an answer in time.

        A coordinator that moves, or that has just been given the group, is asked again: librdkafka
        does not do that here.
        """
        from confluent_kafka import KafkaException, TopicPartition

        places = [TopicPartition(self._topic, number) for number in numbers]
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                found = consumer.committed(places, timeout=self._timeout)
                for place in found:
                    if place.error is not None:
                        raise KafkaException(place.error)
                return {each.partition: each.offset if each.offset >= 0 else None for each in found}
            except KafkaException as error:
                if error.args[0].name() not in _COORDINATOR_MOVES or time.monotonic() > deadline:
                    raise
            time.sleep(_AGAIN_SECONDS)

    def _deliver(self, name: str, spans: dict) -> Delivery:
        for session in _SESSION_MS:
            delivery = self._deliver_within(name, spans, {"session.timeout.ms": session})
            if _TOO_LONG not in delivery.complaints:
                break
        return delivery

    def _deliver_within(self, name: str, spans: dict, session: dict) -> Delivery:
        from confluent_kafka import KafkaException

        consumer = self._consumer(name, **session)
        seen = {number: bytearray(end - first) for number, (first, end) in spans.items()}
        committed: dict = {}
        try:
            committed = self._committed(consumer, spans)
            complaints = self._read(consumer, spans, seen)
        except KafkaException as error:
            complaints = (error.args[0].str(),)
        finally:
            consumer.close()
        return Delivery(committed, missed(spans, seen), tuple(complaints))

    def _read(self, consumer, spans: dict, seen: dict) -> list:
        """Join the group and mark what comes; ends when all came, at the partitions' ends, or when
        nothing more comes.
        """
        from confluent_kafka import KafkaError, TopicPartition

        left = {number for number, (first, end) in spans.items() if end > first}
        complaints: list = []
        damaged = (KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG)
        refusals: Counter = Counter()
        consumer.subscribe([self._topic])
        deadline = time.monotonic() + self._timeout
        while left and time.monotonic() < deadline and not stopping.requested.is_set():
            before = set(left)
            for message in consumer.consume(_BATCH, timeout=0.2):
                number, at, error = message.partition(), message.offset(), message.error()
                if error is not None:
                    if error.name() == _TOO_LONG:
                        return [*complaints, _TOO_LONG]
                    ended = error.code() == KafkaError._PARTITION_EOF
                    # a new leader may not know yet how far the others have come: wait for the rest
                    reached = ended and at >= spans.get(number, (0, 0))[1]
                    if error.code() in damaged:
                        refusals[number, at] += 1
                    # librdkafka asks for a batch that it cannot decode again and again, and never for the next
                    stuck = refusals[number, at] >= _REFUSALS
                    if reached or stuck or error.code() == KafkaError._AUTO_OFFSET_RESET:
                        left.discard(number)
                    if not ended and len(complaints) < 3:
                        complaints.append(error.str())
                    continue
                first, end = spans.get(number, (0, 0))
                if first <= at < end:
                    # a rebalance may hand out a record twice: the group has it, that is enough
                    seen[number][at - first] = 1
                    deadline = time.monotonic() + self._timeout
                if at >= end - 1:
                    left.discard(number)
            if before - left:  # what lies behind the sample would only be in the others' way
                consumer.pause([TopicPartition(self._topic, number) for number in before - left])
        if left:
            complaints.append(f"Nothing came for {self._timeout:.0f} s.")
        return complaints


def missed(spans: dict, seen: dict) -> dict:
    """partition -> ranges (first, last) of offsets that were not seen; spans: partition -> (first,
    end), seen: partition -> a byte for each offset.
    """
    found = {}
    for number, marks in seen.items():
        first, ranges, at = spans[number][0], [], marks.find(0)
        while at >= 0:
            end = marks.find(1, at)
            end = len(marks) if end < 0 else end
            ranges.append((first + at, first + end - 1))
            at = marks.find(0, end)
        if ranges:
            found[number] = ranges
    return found
