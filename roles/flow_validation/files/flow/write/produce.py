# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""One produce task: writes records with an idempotent producer, in transactions if asked, and notes
what became of each.

Runs inside Spark's Python workers, so it touches Kafka and the attempt's own notes.
"""

from __future__ import annotations

import math
import re
import time
from typing import Callable, Optional

from flow.messages.librdkafka import quiet_logger
from flow.record import transactions
from flow.record.ledger import Attempt, share
from flow.record.schema import BESIDE_ROUND
from flow.record.timing import Acknowledgements
from flow.write import blocks
from flow.write.client_settings import STATISTICS_MS, client_settings, named_files
from flow.write.notes import notes_of
from flow.write.outcomes import Outcomes, sent_of
from flow.write.pacing import Pace

SAVE_SECONDS = 1.0
# Acknowledged ranges that are written down again each time. Where others write as well, each record may be one.
PART_RANGES = 10_000
LOOK_SECONDS = 0.02  # a fifth of the steps in which acknowledgements are told
AHEAD_SECONDS = 10.0  # with a rate: how far the plan that is written down is ahead of what was sent
# How long acknowledgements take is asked of one record in so many, and of each where they are few.
LATENCY_EVERY = BESIDE_ROUND
LATENCY_OF_ALL = 50_000  # records of a run, or LATENCY_OF_ALL / 10 of them a second
_EPOCH = re.compile(r'"producer_id":\s*(-?\d+),\s*"producer_epoch":\s*(-?\d+)')


def produce(settings: dict, producer_number: int, attempt_number: int) -> Attempt:
    """Send this task's share and return what became of it, as its file says it.

    `settings`: client (librdkafka configuration), topic, run_id (hex), partitions, producers,
    records, record_size, delivery_timeout (seconds), transaction_records (of a partition in each
    transaction; 0: no transactions), transaction_timeout (seconds), directory (for the attempts'
    files) or relay (see write.notes), files (setting of the client -> text of what it names, on
    another machine), rate (records a second of this task, 0: as fast as it goes), repeated (whether an earlier
    attempt at the task has failed), ends_at (when the time of the run is over, of time.time()). With
    a rate the run may be ended early, by the file END.
    The file is written before the first record, so that an attempt that is killed is known to have
    run; whatever it sent since its last save is unknown, not phantom.
    """
    return _Task(settings, producer_number, attempt_number).run()


class _Task:
    """One attempt at a produce task."""

    def __init__(self, settings: dict, producer_number: int, attempt_number: int):
        from confluent_kafka import KafkaException, Producer  # only where records are really sent

        shares = (settings["partitions"], settings["producers"])
        planned = share(*shares, producer_number, settings["records"])
        self._settings = settings
        self._whole = planned
        self._rate = settings.get("rate", 0) * len(planned) / settings["partitions"]
        # What is to be sent may never be, where somebody else decides when to end; an attempt that is
        # killed must not leave millions in doubt that it never sent.
        self._ahead = int(self._rate * AHEAD_SECONDS / max(1, len(planned))) + 1
        self._state = Attempt(
            producer_number, attempt_number, False, self._promised(0), run_id=settings["run_id"]
        )
        self._notes = notes_of(settings)
        self._notes.save(self._state)
        self._started = self._saved = self._looked = time.monotonic()
        self._known = Outcomes(planned, latency_every(settings))
        self._pace = Pace(self._rate, self._started) if self._rate else None
        self._acks, self._counted = Acknowledgements(), 0
        self._error = KafkaException
        self._epochs: set = set()  # (producer id, epoch) of what was sent
        self._ended = False  # by a fatal error
        self._end: Optional[int] = None  # what END says, if it is there
        self._told = 0  # times that the client told them
        self._statistics = ""  # what it told last
        client = client_settings(settings, producer_number)
        with named_files(settings.get("files", {})) as places:
            told = {"stats_cb": self._learn_epoch, "error_cb": self._hear}
            self._client = Producer({**client, **places, **told}, logger=quiet_logger())
        # librdkafka settles every record within the delivery timeout; the margin is for its own
        # threads
        self._patience = settings["delivery_timeout"] + 15

    def run(self) -> Attempt:
        """Send, and wait until all is settled."""
        rounds = blocks.rounds_of(self._whole, blocks.turn_of(self._settings, len(self._whole)))
        try:
            if self._settings["transaction_records"]:
                self._insist(self._client.init_transactions)
                for number, turns in enumerate(rounds):
                    self._transact(number, turns)
            else:
                for turns in rounds:
                    turns = self._until_the_end(turns)
                    if not turns:
                        break
                    self._send(turns)
                    self._keep_the_rate(turns)
        except self._error as error:  # the client will not send any more
            self._note(error)
        self._flush()
        sent = self._hear_the_last()
        return self._snapshot(True, sent)

    def _promised(self, position: int) -> dict:
        """What the attempt's file says is planned while records up to `position` are handed over."""
        if not self._rate:
            return self._whole
        return {p: min(count, position + self._ahead) for p, count in self._whole.items()}

    def _until_the_end(self, turns: list) -> list:
        """The turns as far as the run goes; nothing where it has ended."""
        if not self._rate:
            return turns
        end = self._end = self._notes.end()
        if end is not None:
            # Never less than what is sent already: those records must be judged.
            end = max(end, self._state.position)
            self._whole = {p: min(count, end) for p, count in self._whole.items()}
            turns = [(p, range(s.start, min(s.stop, end))) for p, s in turns if s.start < end]
        position = max((s.stop for _p, s in turns), default=self._state.position)
        self._state.position = position
        if any(position > self._state.planned[p] for p, s in turns if s.stop == position):
            self._state.planned = self._promised(position)
            self._notes.save(self._state)
        return turns

    def _keep_the_rate(self, turns: list) -> None:
        """Wait until the next records may be sent behind these. A repeated attempt begins with the first record again:
        when all others end, it goes on as fast as it can, or the run would last so much longer.
        """
        if self._pace is None or (self._settings.get("repeated") and self._is_over()):
            return
        self._pace.sent(sum(len(s) for _p, s in turns), time.monotonic())
        while (left := self._pace.left(time.monotonic())) > 0:
            self._listen(min(left, 0.05))

    def _is_over(self) -> bool:
        # Nobody writes END where the time is over and the others are through their plan.
        return self._end is not None or time.time() >= self._settings.get("ends_at", math.inf)

    def _learn_epoch(self, statistics: str) -> None:
        """librdkafka's stats_cb."""
        self._told += 1
        self._statistics = statistics
        found = _EPOCH.search(statistics)
        if found and int(found[1]) >= 0:
            self._epochs.add(found.groups())

    def _hear_the_last(self) -> dict:
        """Wait for statistics from now on, which tell the last epoch; `sent_of` them if anything was
        refused.
        """
        now, before = time.monotonic(), self._told
        deadline = now + 10 * STATISTICS_MS / 1000
        refused, sent = self._known.refusals(), None
        while time.monotonic() < deadline:
            if self._told > before:
                sent = sent_of(self._statistics, self._settings["topic"], now) if refused else {}
                if sent is not None:
                    break
            try:
                self._listen(0.02)
            except self._error as error:
                self._note(error)
        return sent or {}

    def _note(self, error) -> None:
        """Count a KafkaException; one that is fatal is raised by several calls, and counted once."""
        fatal = error.args[0].fatal() or error.args[0].name() == "_FATAL"
        if not (fatal and self._ended):
            self._known.count_error(error.args[0].name())
        self._ended |= fatal

    def _hear(self, error) -> None:
        """librdkafka's error_cb, which has the cause of a fatal error: whoever calls the client is told only that there
        was one, and the reports of what it had not sent that they were thrown away.
        """
        if error.fatal():
            self._known.count_error(error.name())
            self._ended = True

    def _transact(self, number: int, turns: list) -> None:
        """One transaction; raises KafkaException where it is not known how it ended."""
        self._known.begin()
        self._client.begin_transaction()
        aborted_by = None
        try:
            self._send(turns)
            self._flush()  # what is aborted on purpose shall have been in the log
            if not transactions.on_purpose(number):
                self._insist(self._client.commit_transaction)
                self._known.committed()
                return
        except self._error as error:
            reason = error.args[0]
            if reason.fatal() or not (reason.txn_requires_abort() or reason.name() == "_STATE"):
                raise
            self._note(error)
            aborted_by = reason.name()
        self._insist(self._client.abort_transaction)
        self._known.aborted(turns, aborted_by)

    def _send(self, turns: list) -> None:
        for partition, sequences in turns:
            reports = self._known.reports[partition]
            send, state = self._client.produce, self._state
            blocks.send(send, self._settings, state, partition, sequences, reports, self._listen)

    def _insist(self, call: Callable) -> None:
        """Call (seconds -> None) until it has an answer; raises KafkaException."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return call(1.0)
            except self._error as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
            self._mind_the_time()

    def _flush(self) -> None:
        deadline = time.monotonic() + self._patience
        while len(self._client) and time.monotonic() < deadline:
            try:
                self._client.flush(0.05)  # short: it does not say when the reports came it served
            except self._error as error:  # fatal; the reports of what it makes hopeless are to come
                self._note(error)
            self._mind_the_time()

    def _listen(self, seconds: float) -> None:
        self._client.poll(seconds)
        self._mind_the_time()

    def _mind_the_time(self) -> None:
        now = time.monotonic()
        if now - self._looked > LOOK_SECONDS:
            self._look()
            self._looked = now
        if now - self._saved > SAVE_SECONDS:
            self._snapshot(False)
            self._saved = time.monotonic()

    def _look(self) -> None:
        """Note when what was acknowledged since the last look was."""
        before, self._counted = self._counted, self._known.acknowledgements()
        self._acks.add(time.time_ns() // 1_000_000, self._counted - before)

    def _snapshot(self, complete: bool, sent: Optional[dict] = None) -> Attempt:
        """Write down what is known, and return what is not in parts; `sent`: by `sent_of`, once all is settled."""
        self._look()
        state = self._state
        if self._known.ranges() > PART_RANGES:
            part = self._known.hand_out()
            self._notes.part(state, part)
            state.parts += 1
            state.in_parts += sum(
                b - a + 1 for ranges in part.values() for a, b, *_offsets in ranges
            )
        state.complete = complete
        state.planned = self._whole if complete else self._promised(state.position)
        state.acknowledgements = self._acks.to_json()
        self._known.tell(state, sent or {})
        state.epochs = max(1, len(self._epochs))
        state.seconds = time.monotonic() - self._started
        self._notes.save(state)
        return state


def latency_every(settings: dict) -> int:
    """Of how many records one is asked how long its acknowledgement took."""
    rate = settings.get("rate", 0)
    few = settings["records"] <= LATENCY_OF_ALL or 0 < rate <= LATENCY_OF_ALL / 10
    return 1 if few else LATENCY_EVERY
