# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""One produce task: writes records with an idempotent producer, in transactions if asked, and notes
what became of each.

Runs inside Spark's Python workers, so it touches Kafka and the attempt's own notes.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import time
import zlib
from contextlib import contextmanager
from functools import lru_cache
from itertools import repeat
from struct import Struct
from typing import Callable, Iterable, Iterator, Optional

from flow.messages.failure import CannotRun
from flow.record import own_names, transactions
from flow.record.ledger import Acknowledged, Attempt, Refused, Row, power_of_two, share
from flow.record.schema import BESIDE_EVERY, BESIDE_ROUND, FAILED, HEADER, beside, payload_of
from flow.record.timing import Acknowledgements, Latencies
from flow.write.notes import notes_of
from flow.write.pacing import Pace

# Records that are handed over in one go and share a time: a power of two (see _crc_steps), and fewer
# if they are large.
BLOCK_RECORDS = 1024
# A turn is as many records to one partition, before the next one's turn, as make a batch: librdkafka's
# batch.num.messages and batch.size. Brokers work for batches more than for records. Longer turns
# would be a little faster still, and make each partition look as if it paused between its own.
BATCH_RECORDS, BATCH_BYTES = 10_000, 1_000_000
# What a client keeps until it is acknowledged. Turns are so short that two of each partition fit, so
# that all partitions have something under way.
QUEUE_RECORDS = 200_000
QUEUE_KBYTES = 128 * 1024
SAVE_SECONDS = 1.0
STATISTICS_MS = 100  # how often the client tells its epoch, among other things
LOOK_SECONDS = 0.02  # a fifth of the steps in which acknowledgements are told
# With a rate: how much of it is handed over in one go, and how far the plan that an attempt writes down
# is ahead of what it has sent.
TURN_SECONDS = 0.1
AHEAD_SECONDS = 10.0
# How long acknowledgements take is asked of one record in so many, and of each where they are few.
LATENCY_EVERY = BESIDE_ROUND
LATENCY_OF_ALL = 50_000  # records of a run, or LATENCY_OF_ALL / 10 of them a second

# What a run is judged by, so that nobody else may set it, and why.
OWN_SETTINGS = {
    "acks": "it is all, since only that promises anything",
    "request.required.acks": "it is all, since only that promises anything",
    "enable.idempotence": "it is true, else the client itself writes records twice",
    "delivery.timeout.ms": "give --delivery-timeout",
    "message.timeout.ms": "give --delivery-timeout",
    "statistics.interval.ms": "the job hears of new epochs by it",
    "transactional.id": "give --transactional",
    "transaction.timeout.ms": "it follows from --delivery-timeout",
    "bootstrap.servers": "give --bootstrap-servers",
}
# Besides the value: the head of a batch, of a record, its key and header
BESIDE_BYTES = 512

# What a broker says that appended nothing of this try, and what the client says of its own accord,
# perhaps before any try. Every other error (a timeout above all) leaves open whether the record is in
# the log, and is therefore `unknown`. So does one of these if the record was sent before: librdkafka tries
# again what had no answer, and tells of the last try alone (its own status of a message, which Python is
# not told, is that of the last try, too). Whether any was sent twice is seen from its statistics.
REFUSED_BY_BROKERS = frozenset(
    "MSG_SIZE_TOO_LARGE INVALID_MSG_SIZE RECORD_LIST_TOO_LARGE INVALID_RECORD POLICY_VIOLATION"
    " INVALID_REQUIRED_ACKS".split()
)
REFUSALS = REFUSED_BY_BROKERS | frozenset(
    "TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED"
    " _UNKNOWN_TOPIC _UNKNOWN_PARTITION _PURGE_QUEUE _QUEUE_FULL".split()
)
NO_OFFSET = "acknowledged without an offset"
_EPOCH = re.compile(r'"producer_id":\s*(-?\d+),\s*"producer_epoch":\s*(-?\d+)')
_SEQUENCE = Struct(">Q")
_SEQUENCE_AT = 32  # where the record has it


def produce(settings: dict, producer_number: int, attempt_number: int) -> Attempt:
    """Send this task's share and return what became of it.

    `settings`: client (librdkafka configuration), topic, run_id (hex), partitions, producers,
    records, record_size, delivery_timeout (seconds), transaction_records (of a partition in each
    transaction; 0: no transactions), transaction_timeout (seconds), directory (for the attempts'
    files) or relay (see write.notes), files (setting of the client -> text of what it names, on
    another machine), rate (records a second of this task, 0: as fast as it goes). With a rate the run may be
    ended early, by the file END.
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
        self._known = _Known(planned, latency_every(settings))
        self._pace = Pace(self._rate, self._started) if self._rate else None
        self._acks, self._counted = Acknowledgements(), 0
        self._error = KafkaException
        self._epochs: set = set()  # (producer id, epoch) of what was sent
        self._told = 0  # times that the client told them
        self._statistics = ""  # what it told last
        client = _client_settings(settings, producer_number)
        with _files(settings.get("files", {})) as places:
            self._client = Producer({**client, **places, "stats_cb": self._learn_epoch})
        self._ended = False  # by a fatal error
        # librdkafka settles every record within the delivery timeout; the margin is for its own
        # threads
        self._patience = settings["delivery_timeout"] + 15

    def run(self) -> Attempt:
        """Send, and wait until all is settled."""
        rounds = _rounds(self._whole, _turn_of(self._settings, len(self._whole)))
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
        end = self._notes.end()
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
        """Wait until the next records may be sent behind these."""
        if self._pace is None:
            return
        self._pace.sent(sum(len(s) for _p, s in turns), time.monotonic())
        while (left := self._pace.left(time.monotonic())) > 0:
            self._listen(min(left, 0.05))

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
            _send(send, self._settings, state, partition, sequences, reports, self._listen)

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
        """Write down what is known; `sent`: by `sent_of`, once all is settled."""
        self._look()
        state = self._state
        state.complete = complete
        state.planned = self._whole if complete else self._promised(state.position)
        state.acknowledgements = self._acks.to_json()
        self._known.tell(state, sent or {})
        state.epochs = max(1, len(self._epochs))
        state.seconds = time.monotonic() - self._started
        self._notes.save(state)
        return state


@contextmanager
def _files(texts: dict) -> Iterator[dict]:
    """key -> path of a file that only this process may read, while the context is open: what the
    settings name is on another machine. The client has read it when it is made.
    """
    with tempfile.TemporaryDirectory(prefix="kafkaops-flow-") as directory:
        places = {key: os.path.join(directory, key) for key in texts}
        for key, path in places.items():
            with open(path, "w", encoding="utf-8", opener=_private) as file:
                file.write(texts[key])
        yield places


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def refuse_wrong(settings: dict) -> None:
    """CannotRun if the client does not take its settings, before anything is made for it."""
    from confluent_kafka import KafkaException, Producer

    try:
        Producer(_client_settings(settings, 0), logger=_silent())
    except KafkaException as error:
        raise CannotRun(
            f"the producer's settings are not usable: {error.args[0].str()};"
            " see --producer-property and --command-config"
        ) from error


def _silent() -> logging.Logger:
    logger = logging.getLogger("kafkaops.flow.settings")
    logger.propagate = False
    return logger


def all_refused(rows: Iterable[Row]) -> str:
    """The error by which most records were refused, if nothing else is known of any of them, else ""."""
    by_error: dict = {}
    for row in rows:
        if row.outcome != FAILED and row.error not in REFUSALS:
            return ""
        by_error[row.error] = by_error.get(row.error, 0) + row.records
    return max(by_error, key=by_error.get, default="")


def _client_settings(settings: dict, producer_number: int) -> dict:
    """librdkafka's, of one producer."""
    limit = int(settings["delivery_timeout"] * 1000)
    client = {
        "queue.buffering.max.messages": QUEUE_RECORDS,
        "queue.buffering.max.kbytes": QUEUE_KBYTES,
        # else the client itself refuses a record that the brokers take
        "message.max.bytes": max(1_000_000, settings["record_size"] + BESIDE_BYTES),
        "log_level": 2,  # its warnings are about retries; what stays is in the ledger
        **settings["client"],
        "acks": "all",
        "enable.idempotence": True,
        "delivery.timeout.ms": limit,
        "statistics.interval.ms": STATISTICS_MS,
    }
    if settings["transaction_records"]:
        # the same for each attempt at the task, so that the next one ends what a killed one began
        client["transactional.id"] = own_names.own(settings["run_id"], producer_number)
        client["transaction.timeout.ms"] = int(settings["transaction_timeout"] * 1000)
    return client


class _Known:
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
        """Write down what is known for certain. sent: partition -> how often any of its records was sent.

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


def latency_every(settings: dict) -> int:
    """Of how many records one is asked how long its acknowledgement took."""
    rate = settings.get("rate", 0)
    few = settings["records"] <= LATENCY_OF_ALL or 0 < rate <= LATENCY_OF_ALL / 10
    return 1 if few else LATENCY_EVERY


def longest_block(record_size: int) -> int:
    """Records in a block: the largest power of two that both limits allow, at least one."""
    return power_of_two(min(BLOCK_RECORDS, BATCH_BYTES // record_size))


def _block_of(settings: dict) -> int:
    """Records in a block; a transaction has at most one of each partition."""
    return settings["transaction_records"] or longest_block(settings["record_size"])


def _turn_of(settings: dict, partitions: int) -> int:
    """Records in a turn of a producer with so many partitions: whole blocks, at least one; a
    transaction is one turn of each partition.
    """
    block = _block_of(settings)
    if settings["transaction_records"]:
        return block
    share = QUEUE_RECORDS // 2 // max(1, partitions)
    batch = min(BATCH_RECORDS, BATCH_BYTES // settings["record_size"])
    turn = max(block, power_of_two(min(batch, share)))
    if settings.get("rate"):
        of_each = settings["rate"] * TURN_SECONDS / settings["partitions"]
        turn = min(turn, max(1, int(of_each)))
    return turn


def _rounds(planned: dict, turn: int) -> Iterator:
    """Go round the partitions: each round a list of (partition, range of at most `turn` sequences)."""
    for position in range(0, max(planned.values(), default=0), turn):
        yield [
            (partition, range(position, min(position + turn, count)))
            for partition, count in planned.items()
            if count > position
        ]


def _send(send: Callable, settings: dict, state: Attempt, partition: int, sequences: range,
          reports: tuple, listen: Callable) -> None:  # fmt: skip
    """Hand one turn's records over, block by block; what a full queue delays gets the time of its own
    hand-over.
    """
    report, timed = reports
    topic, block = settings["topic"], _block_of(settings)
    run_id = bytes.fromhex(settings["run_id"])
    low, high = BESIDE_EVERY, 4 * BESIDE_EVERY  # of a round, those that are not bare
    while sequences:
        first = sequences.start
        behind = min(sequences.stop, first - first % block + block)
        part = range(first, behind)
        # A block is handed over within a millisecond or two: its records share the time.
        now_ms = time.time_ns() // 1_000_000
        values = _values(settings, state, partition, part, now_ms * 1000)
        for sequence, value in zip(part, values):
            try:
                if low <= sequence % BESIDE_ROUND < high:
                    key, headers = beside(run_id, sequence)
                    told = timed if sequence % BESIDE_ROUND == low else report
                    send(topic, value, key, partition, told, None, now_ms, headers)
                else:
                    send(topic, value, None, partition, report, None, now_ms)
            except BufferError:  # the client's queue is full: let acknowledgements come in
                behind = sequence
                listen(0.1)
                break
        else:
            listen(0)
        sequences = range(behind, sequences.stop)


def _values(
    settings: dict, state: Attempt, partition: int, sequences: range, microseconds: int
) -> Iterable[bytes]:
    """The records of a block or of the rest of one: the bytes of schema.pack.

    Without a line of Python for each record: they share everything but sequence and CRC, and the
    CRC is that of the block's first, changed by what the lowest bits of the sequence change.
    """
    head = bytes.fromhex(settings["run_id"]) + HEADER.pack(state.producer, state.attempt, partition)
    tail = microseconds.to_bytes(8, "big") + payload_of(settings["record_size"])
    block = _block_of(settings)
    begun = sequences.start % block
    crc = zlib.crc32(head + _SEQUENCE.pack(sequences.start - begun) + tail)
    crcs = map(crc.__xor__, _crc_steps(block, len(tail))[begun:])
    pack = Struct(f">I{len(head)}sQ{len(tail)}s").pack
    return map(pack, crcs, repeat(head), sequences, repeat(tail))


@lru_cache(maxsize=8)
def _crc_steps(block: int, length: int) -> list:
    """What 0, 1, ... `block` - 1, added to a multiple of `block` that is a 64-bit number `length`
    bytes before the end, change in any CRC-32; to be applied by exclusive or.

    `block` is a power of two, so adding sets bits that were 0, and CRC-32 is linear: crc(a ^ b) is
    crc(a) ^ crc(b) ^ crc(0) for a, b and 0 of one length. Zeros at the beginning of b add nothing
    to crc(b) ^ crc(0). So neither the other bytes matter nor how many stand before the number.
    """
    rest = bytes(length)
    nothing = zlib.crc32(_SEQUENCE.pack(0) + rest)
    return [zlib.crc32(_SEQUENCE.pack(n) + rest) ^ nothing for n in range(block)]
