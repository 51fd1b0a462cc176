# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What became of an attempt's records: acknowledged, refused for certain, or not known. Pure, but for the
reports that the client calls.
"""

from __future__ import annotations

import json
from struct import Struct
from typing import Callable, Iterable, Optional

from flow.record.ledger import Acknowledged, Attempt, Refused, Row
from flow.record.schema import FAILED
from flow.record.timing import Latencies

# What a broker says that appended nothing of this try, and what the client says of its own accord,
# perhaps before any try. Every other error (a timeout above all) leaves open whether the record is in
# the log, and is therefore `unknown`. So does one of these if the record was sent before: librdkafka tries
# again what had no answer, and tells of the last try alone (its own status of a message, which Python is
# not told, is that of the last try, too). Whether any was sent twice is seen from its statistics.
REFUSED_BY_BROKERS = frozenset(
    "MSG_SIZE_TOO_LARGE INVALID_MSG_SIZE RECORD_LIST_TOO_LARGE INVALID_RECORD INVALID_TIMESTAMP"
    " POLICY_VIOLATION INVALID_REQUIRED_ACKS".split()
)
REFUSALS = REFUSED_BY_BROKERS | frozenset(
    "TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED"
    " _UNKNOWN_TOPIC _UNKNOWN_PARTITION _PURGE_QUEUE _QUEUE_FULL".split()
)
NO_OFFSET = "acknowledged without an offset"
_SEQUENCE = Struct(">Q")
_SEQUENCE_AT = 32  # where the record has it


class Outcomes:
    """What became of one attempt's records so far. In a transaction nothing is known before its end."""

    def __init__(self, planned: dict, latency_every: int = 1):
        self._acknowledged = {p: Acknowledged() for p in planned}
        self._latencies = Latencies(latency_every)
        self._open: dict = {}  # of the transaction that is open
        self._refused = {p: Refused() for p in planned}
        self._open_refused: dict = {}  # of the transaction that is open
        self._answered = dict.fromkeys(planned, 0)  # by brokers, in transactions that were aborted
        self._aborted: dict = {p: [] for p in planned}  # partition -> [first, last, error name]
        self._errors: dict = {}
        self._taken_back = 0  # acknowledgements in transactions that were aborted
        # delivery callbacks, by partition: of most records, and of those whose latency is asked for
        self.reports = {
            p: self._listeners(a.add, self._refused[p].add) for p, a in self._acknowledged.items()
        }

    def _listeners(self, add: Callable, refuse: Callable) -> tuple:
        plain = _listener(add, refuse, self._errors)
        timed = _timed(plain, self._latencies)
        return (plain if self._latencies.sampled_every > 1 else timed), timed

    def acknowledgements(self) -> int:
        """Records that a broker has acknowledged, whatever became of their transactions."""
        noted = (*self._acknowledged.values(), *self._open.values())
        return self._taken_back + sum(each.count() for each in noted)

    def ranges(self) -> int:
        """In how many ranges the records that were acknowledged for certain are."""
        return sum(len(each.ranges) for each in self._acknowledged.values())

    def hand_out(self) -> dict:
        """partition -> ranges of records that were acknowledged for certain, which will not grow any more.
        `tell` does not have them again.
        """
        return {p: each.hand_out() for p, each in self._acknowledged.items()}

    def count_error(self, name: str) -> None:
        """Note what the client said, besides its delivery reports."""
        self._errors[name] = self._errors.get(name, 0) + 1

    def begin(self) -> None:
        """A transaction begins."""
        self._open = {p: Acknowledged() for p in self._acknowledged}
        self._open_refused = {p: Refused() for p in self._acknowledged}
        for partition, noted in self._open.items():
            refused = self._open_refused[partition]
            self.reports[partition] = self._listeners(noted.add, refused.add)

    def committed(self) -> None:
        """The open transaction was committed."""
        for partition, noted in self._open.items():
            self._acknowledged[partition].take(noted)
            self._refused[partition].take(self._open_refused[partition])
        self._open, self._open_refused = {}, {}

    def aborted(self, turns: list, error: Optional[str]) -> None:
        """The open transaction, these turns, was aborted; without an error: on purpose."""
        self._taken_back += sum(each.count() for each in self._open.values())
        for partition, noted in self._open.items():
            refused = self._open_refused[partition]
            self._answered[partition] += noted.count() + refused.count(REFUSED_BY_BROKERS)
        self._open, self._open_refused = {}, {}
        for partition, sequences in turns:
            self._aborted[partition].append([sequences.start, sequences.stop - 1, error])

    def _all_refused(self) -> dict:
        """partition -> Refused, those of the open transaction among them."""
        found = {}
        for partition, refused in self._refused.items():
            found[partition] = Refused()
            found[partition].take(refused)
            if partition in self._open_refused:
                found[partition].take(self._open_refused[partition])
        return found

    def refusals(self) -> int:
        """How many records were refused, without those of aborted transactions."""
        return sum(each.count(REFUSALS) for each in self._all_refused().values())

    def tell(self, state: Attempt, sent: dict) -> None:
        """Write down what is known for certain, without what was handed out. sent: partition -> how often any
        of its records was sent.

        Each record that a broker answered for was sent once at least. Were they sent as often as they are,
        then none was sent twice, and no other at all: what was refused was never written.
        """
        state.acked = {p: a.merged() for p, a in self._acknowledged.items()}
        state.failed, state.doubted = {}, {}
        for partition, refused in self._all_refused().items():
            answered = self._answered[partition] + refused.count(REFUSED_BY_BROKERS)
            for noted in (self._acknowledged, self._open):
                answered += noted[partition].count() if partition in noted else 0
            once = sent.get(partition) == answered
            (state.failed if once else state.doubted)[partition] = refused.merged()
        state.aborted = {p: list(ranges) for p, ranges in self._aborted.items()}
        state.errors = dict(self._errors)
        state.latencies = self._latencies.to_json()


def all_refused(rows: Iterable[Row]) -> str:
    """The error by which most records were refused, if nothing else is known of any of them, else ""."""
    by_error: dict = {}
    for row in rows:
        if row.outcome != FAILED and row.error not in REFUSALS:
            return ""
        by_error[row.error] = by_error.get(row.error, 0) + row.records
    return max(by_error, key=lambda error: by_error[error], default="")


def sent_of(statistics: str, topic: str, since: float) -> Optional[dict]:
    """partition -> how many records of it were sent to brokers, each as often as it was, by librdkafka's
    statistics; None if those are older than `since` (time.monotonic, which is librdkafka's clock, too).
    """
    told = json.loads(statistics)
    if told["ts"] < since * 1_000_000:
        return None
    partitions = told.get("topics", {}).get(topic, {}).get("partitions", {})
    return {int(number): each["txmsgs"] for number, each in partitions.items() if int(number) >= 0}


def _listener(add: Callable, refuse: Callable, errors: dict) -> Callable:
    """The delivery callback of one partition: (error or None, message) -> None.

    It takes the sequence from the record itself. So nothing depends on the order of the reports,
    and no object has to be made and kept for each record that is under way.
    """
    sequence_of = _SEQUENCE.unpack_from

    def delivered(error, message) -> None:
        sequence = sequence_of(message.value(), _SEQUENCE_AT)[0]
        if error is None:
            offset = message.offset()
            if offset is not None:
                add(sequence, offset)
                return
            # librdkafka learnt it from a later answer only. The ledger cannot say where the record
            # is, so it does not say that it is acknowledged.
            name = NO_OFFSET
        else:
            name = error.name()
            if name in REFUSALS:
                refuse(sequence, name)
        errors[name] = errors.get(name, 0) + 1

    return delivered


def _timed(delivered: Callable, latencies: Latencies) -> Callable:
    """A delivery callback that also notes how long the acknowledgement took, by the client's clock."""

    def noted(error, message) -> None:
        if error is None:
            latencies.add(message.latency())
        delivered(error, message)

    return noted
