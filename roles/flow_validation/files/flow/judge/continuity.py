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
from typing import Iterable

from flow.judge import verdict
from flow.messages.failure import CannotRun
from flow.prepare import consuming
from flow.record import own_names
from flow.record.ledger import common

WHOLE = 100_000  # records: so many, and fewer, each group reads to the end
SAMPLE = 10_000  # that it reads of more than those, evenly of all partitions
_AGAIN_SECONDS = 0.2
_ANSWER_SECONDS = 5.0  # for one answer about commits
# Until the cluster takes a silent member for dead: the client's own, and where brokers allow no such time.
_SESSION_MS = (45_000, 10_000, 6_000, 300_000)
_TOO_LONG = "INVALID_SESSION_TIMEOUT"
# Until a member has its partitions: the brokers wait for others (group.initial.rebalance.delay.ms), and for
# one that was killed as long as its session lasts.
_JOIN_SECONDS = 60.0
_REFUSALS = 3  # of the same batch, until nothing behind it is waited for
_COORDINATOR_MOVES = frozenset(
    "NOT_COORDINATOR COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS _WAIT_COORD"
    " UNSTABLE_OFFSET_COMMIT _TRANSPORT _TIMED_OUT".split()
)


def _lets_commit(refused: str) -> str:
    """What makes a group commit, by the name of the error that refused it."""
    if "AUTHORIZATION" in refused:
        return f"allow the job's principal to read groups {own_names.PREFIX}-*"
    return (
        "start the brokers that are down: the first group of a cluster needs as many as"
        " offsets.topic.replication.factor, for __consumer_offsets is made then"
    )


@dataclass(frozen=True)
class Delivery:
    """What one group was handed.

    `committed`: partition -> offset that the cluster has for the group, None if it has none; empty where
    the cluster did not say;
    `missed`: partition -> offsets that were asked for and that the group was led past, as ranges (first, last);
    `unread`: the same of what it did not come to, before the waiting ended, which proves nothing;
    `complaints`: what the client said.
    """

    committed: dict
    missed: dict = field(default_factory=dict)
    complaints: tuple = ()
    unread: dict = field(default_factory=dict)


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
    commits, passed_over = [], []
    for group, delivery in sorted(deliveries.items()):
        for number, start in sorted(starts.items()):
            found = delivery.committed.get(number)
            if delivery.committed and found != start:  # empty: nobody said
                what = "nothing" if found is None else found
                reason = f"group {group} had committed {start}, the cluster says {what}"
                commits.append({"partition": number, "offset": start, "reason": reason})
        told = " ".join(["", *delivery.complaints]).rstrip()
        reason = f"group {group} was not handed it.{told}"
        for number, ranges in sorted(delivery.missed.items()):
            for first, last in _without(ranges, gone.get(number, set())):
                place = {"partition": number, "offset": first, "records": last - first + 1}
                more = {"last_offset": last} if last > first else {}
                passed_over.append({**place, **more, "reason": reason})
    passed_over.sort(key=lambda each: -each["records"])
    count = len(commits) + sum(each["records"] for each in passed_over)
    return verdict.Check("continuity", count, [*commits, *passed_over])


def _without(ranges: Iterable[tuple], excused: set) -> list:
    """The ranges (first, last) that are left of these without those offsets."""
    found: list = []
    for offset in _unfold(ranges):
        if offset in excused:
            continue
        if found and found[-1][1] == offset - 1:
            found[-1] = (found[-1][0], offset)
        else:
            found.append((offset, offset))
    return found


def unclear(deliveries: dict, doubtful: set) -> list:
    """A sentence for each group of which it is not known what it had committed, or whether it is handed
    everything. In `doubtful` partitions that is no wonder.
    """
    found = []
    for group, delivery in sorted(deliveries.items()):
        left = {n: ranges for n, ranges in delivery.unread.items() if n not in doubtful}
        records = sum(last - first + 1 for ranges in left.values() for first, last in ranges)
        if not delivery.committed:
            what = f"what group {group} had committed could not be asked for"
        elif records:
            places = ", ".join(map(str, sorted(left)))
            what = f"group {group} did not come to {records:,} records of partitions {places}"
        else:
            continue
        said = " ".join(each.rstrip(".") + "." for each in delivery.complaints)
        found.append(f"{what}: {said or 'no answer.'} {_remedy(said)}")
    return found


def _remedy(said: str) -> str:
    """What helps where a client has said this."""
    if "uthoriz" in said:
        return f"Allow the job's principal to read groups {own_names.PREFIX}-*, or judge with --groups=0"
    if _TOO_LONG in said:
        return "Judge with --groups=0, or see the brokers' group.min.session.timeout.ms and group.max...."
    return "Verify it again, by one job at a time, with a longer --timeout"


def without(deliveries: dict, expected: dict) -> dict:
    """The deliveries, and of what they missed or did not come to only what they should have got:
    expected: partition -> [[first, last], ...] of offsets.
    """

    def of(ranges_by_partition: dict) -> dict:
        return {
            number: ranges
            for number, told in ranges_by_partition.items()
            if (ranges := common(told, expected.get(number, [])))
        }

    return {
        group: replace(each, missed=of(each.missed), unread=of(each.unread))
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
        # no commit is a finding; it must not be hidden by starting somewhere else
        own = {"group.id": name, "auto.offset.reset": "error"}
        return consuming.consumer({**self._settings, **own, **more})

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
                        f"the consumer group {name} cannot commit: {error.str()};"
                        f" {_lets_commit(error.name())}, or judge without groups"
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
                found = consumer.committed(places, timeout=min(_ANSWER_SECONDS, self._timeout))
                for place in found:
                    if place.error is not None:
                        raise KafkaException(place.error)
                return {each.partition: each.offset if each.offset >= 0 else None for each in found}
            except KafkaException as error:
                if error.args[0].name() not in _COORDINATOR_MOVES or time.monotonic() > deadline:
                    raise
            # that the coordinator may not be asked for is only said here
            message = consumer.poll(_AGAIN_SECONDS)
            if message is not None and "AUTHORIZATION" in message.error().name():
                raise KafkaException(message.error())

    def _deliver(self, name: str, spans: dict) -> Delivery:
        for session in _SESSION_MS:
            delivery = self._deliver_within(name, spans, session)
            if _TOO_LONG not in delivery.complaints:
                break
        return delivery

    def _deliver_within(self, name: str, spans: dict, session_ms: int) -> Delivery:
        from confluent_kafka import KafkaException

        consumer = self._consumer(name, **{"session.timeout.ms": session_ms})
        handed = Handed(spans)
        committed: dict = {}
        try:
            committed = self._committed(consumer, spans)
            complaints = self._read(consumer, handed)
        except KafkaException as error:
            complaints = [error.args[0].str()]
        finally:
            consumer.close()
        return Delivery(committed, handed.missed(), tuple(complaints), handed.unread())

    def _read(self, consumer, handed: "Handed") -> list:
        """Join the group and note what comes; ends when all came, at the partitions' ends, or when
        nothing more comes. Returns what the client complained about.
        """
        from confluent_kafka import KafkaError

        mine, complaints = set(), []
        damaged = (KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG)
        refusals: Counter = Counter()
        # before it has partitions nobody hands out anything, however long it takes to get there
        patience = consuming.Patience(self._timeout, _JOIN_SECONDS)

        def assigned(_consumer, places) -> None:
            patience.renew()
            mine.clear()
            mine.update(place.partition for place in places)

        def record(message) -> bool:
            handed.note(message.partition(), message.offset())
            return False

        def trouble(message) -> consuming.After:
            error, batch = message.error(), (message.partition(), message.offset())
            if error.name() == _TOO_LONG or "AUTHORIZATION" in error.name():
                complaints.append(_TOO_LONG if error.name() == _TOO_LONG else error.str())
                return consuming.After.END
            if len(complaints) < 3:
                complaints.append(error.str())
            if error.code() == KafkaError._AUTO_OFFSET_RESET:  # as the cluster itself says
                return consuming.After.NOTHING_THERE
            if error.code() in damaged:
                refusals[batch] += 1
            # librdkafka asks for a batch that it cannot decode again and again, and never for the next
            stuck = refusals[batch] >= _REFUSALS
            return consuming.After.LEAVE if stuck else consuming.After.WAIT

        consumer.subscribe([self._topic], on_assign=assigned)
        reading = consuming.read_to_end(consumer, handed.wanted(), patience, record, trouble)
        for number in reading.exhausted:
            handed.end(number)
        if reading.left and reading.ended is not consuming.Ended.ENOUGH:
            complaints.append(self._why_nothing_comes(set(reading.left), mine))
        return complaints

    def _why_nothing_comes(self, left: set, mine: set) -> str:
        """left: partitions that were not read to the end; mine: those that the group gave to this member."""
        if not mine:
            return "It was given no partition."
        if elsewhere := sorted(left - mine):
            places = ", ".join(map(str, elsewhere))
            return f"Another member of the group has partitions {places}."
        return f"Nothing came for {self._timeout:.0f} s."


class Handed:
    """What a member was handed of these spans: partition -> (first, end)."""

    def __init__(self, spans: dict):
        self._spans = spans
        self._seen = {n: bytearray(end - first) for n, (first, end) in spans.items()}
        # before which nothing more is to come
        self._reached = {n: first for n, (first, _end) in spans.items()}

    def wanted(self) -> dict:
        """partition -> end offset, of those of which anything is asked for."""
        return {n: end for n, (first, end) in self._spans.items() if end > first}

    def note(self, number: int, at: int) -> None:
        """A record came, asked for or not. One that comes twice, behind a rebalance, is there: that is enough."""
        first, end = self._spans.get(number, (0, 0))
        if first <= at < end:
            self._seen[number][at - first] = 1
        if number in self._reached:
            self._reached[number] = max(self._reached[number], min(at + 1, end))

    def end(self, number: int) -> None:
        """Nothing more comes of the partition, as the cluster says."""
        if number in self._spans:
            self._reached[number] = self._spans[number][1]

    def missed(self) -> dict:
        """Delivery.missed."""
        reached = {n: (first, self._reached[n]) for n, (first, _end) in self._spans.items()}
        return missed(
            reached, {n: self._seen[n][: end - first] for n, (first, end) in reached.items()}
        )

    def unread(self) -> dict:
        """Delivery.unread."""
        left = {n: (self._reached[n], end) for n, (_first, end) in self._spans.items()}
        return {n: [(first, end - 1)] for n, (first, end) in left.items() if end > first}


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
