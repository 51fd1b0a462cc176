# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""One produce task: writes records with an idempotent producer, and notes what became of each.

Runs inside Spark's Python workers, so it touches Kafka and the attempt's own file.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from functools import lru_cache
from itertools import repeat
from struct import Struct
from typing import Callable, Iterable, Iterator

from flow.ledger import Acknowledged, Attempt, as_ranges, share
from flow.schema import HEADER, payload_of
from flow.timing import Acknowledgements

# Records to one partition before the next one's turn: a power of two (see _crc_steps), and fewer if
# they are large. Long turns make long batches, and clients and brokers work for batches more than
# for records; but a turn stays short enough to keep the partitions in step.
TURN_RECORDS = 1024
TURN_BYTES = 1_000_000
SAVE_SECONDS = 1.0
LOOK_SECONDS = 0.02  # a fifth of the steps in which acknowledgements are told

# Refused by the broker or the client before anything was appended. Every other error (a timeout
# above all) leaves open whether the record is in the log, and is therefore `unknown`.
SURELY_NOT_WRITTEN = frozenset(
    "MSG_SIZE_TOO_LARGE INVALID_MSG_SIZE RECORD_LIST_TOO_LARGE INVALID_RECORD POLICY_VIOLATION"
    " TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED INVALID_REQUIRED_ACKS"
    " _UNKNOWN_TOPIC _UNKNOWN_PARTITION _PURGE_QUEUE _QUEUE_FULL".split()
)
NO_OFFSET = "acknowledged without an offset"
_SEQUENCE = Struct(">Q")
_SEQUENCE_AT = 32  # where the record has it


def save(attempt: Attempt, directory: str) -> None:
    """Write the attempt's file; a reader finds the old or the new text, never half of one."""
    path = os.path.join(directory, f"{attempt.producer:05d}-{attempt.attempt:05d}.json")
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(attempt.to_json(), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)


def produce(settings: dict, producer_number: int, attempt_number: int) -> Attempt:
    """Send this task's share and return what became of it.

    `settings`: client (librdkafka configuration), topic, run_id (hex), partitions, producers,
    records, record_size, delivery_timeout (seconds), directory (for the attempts' files).
    The file is written before the first record, so that an attempt that is killed is known to have
    run; whatever it sent since its last save is unknown, not phantom.
    """
    from confluent_kafka import KafkaException, Producer  # only where records are really sent

    planned = share(
        settings["partitions"], settings["producers"], producer_number, settings["records"]
    )
    state = Attempt(producer_number, attempt_number, False, planned)
    save(state, settings["directory"])
    saved = looked = started = time.monotonic()

    acknowledged = {p: Acknowledged() for p in planned}
    refused: dict = {p: {} for p in planned}  # partition -> sequence -> error name
    errors: dict = {}
    reports = {p: _listener(acknowledged[p].add, refused[p], errors) for p in planned}

    acks = Acknowledgements()
    known = 0

    def look() -> None:
        """Note when what was acknowledged since the last look was."""
        nonlocal known
        before, known = known, sum(each.count() for each in acknowledged.values())
        acks.add(time.time_ns() // 1_000_000, known - before)

    def snapshot(complete: bool) -> Attempt:
        look()
        state.complete = complete
        state.acknowledgements = acks.to_json()
        state.acked = {p: a.merged() for p, a in acknowledged.items()}
        state.failed = {p: _refusals(r) for p, r in refused.items()}
        state.errors = dict(errors)
        state.seconds = time.monotonic() - started
        save(state, settings["directory"])
        return state

    client = Producer(
        {
            "queue.buffering.max.messages": 200_000,
            "log_level": 2,  # its warnings are about retries; what stays is in the ledger
            **settings["client"],
            "acks": "all",
            "enable.idempotence": True,
            "delivery.timeout.ms": int(settings["delivery_timeout"] * 1000),
        }
    )

    def listen(seconds: float) -> None:
        client.poll(seconds)
        mind_the_time()

    def mind_the_time() -> None:
        nonlocal looked, saved
        now = time.monotonic()
        if now - looked > LOOK_SECONDS:
            look()
            looked = now
        if now - saved > SAVE_SECONDS:
            snapshot(False)
            saved = time.monotonic()

    try:
        for partition, sequences in _turns(planned, _turn_of(settings["record_size"])):
            _send(client.produce, settings, state, partition, sequences, reports[partition], listen)
            listen(0)
    except KafkaException as error:  # fatal: the client will not send any more
        name = error.args[0].name()
        errors[name] = errors.get(name, 0) + 1
    # librdkafka settles every record within the delivery timeout; the margin is for its own threads
    deadline = time.monotonic() + settings["delivery_timeout"] + 15
    while len(client) and time.monotonic() < deadline:
        client.flush(0.05)  # short, because it does not tell when the reports came that it served
        mind_the_time()
    return snapshot(True)


def _listener(add: Callable, refusals: dict, errors: dict) -> Callable:
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
            if name in SURELY_NOT_WRITTEN:
                refusals[sequence] = name
        errors[name] = errors.get(name, 0) + 1

    return delivered


def _turn_of(record_size: int) -> int:
    """Records in a turn: the largest power of two that both limits allow, at least one."""
    most = min(TURN_RECORDS, TURN_BYTES // record_size)
    return 1 << max(0, most.bit_length() - 1)


def _turns(planned: dict, turn: int) -> Iterator:
    """Go round the partitions: (partition, range of at most `turn` sequences)."""
    position = 0
    while any(count > position for count in planned.values()):
        for partition, count in planned.items():
            if count > position:
                yield partition, range(position, min(position + turn, count))
        position += turn


def _send(send: Callable, settings: dict, state: Attempt, partition: int, sequences: range,
          report: Callable, listen: Callable) -> None:  # fmt: skip
    """Hand one turn's records over; what a full queue delays gets the time of its own hand-over."""
    topic = settings["topic"]
    while sequences:
        values = _values(settings, state, partition, sequences)
        for sequence, value in zip(sequences, values):
            try:
                send(topic, value, None, partition, report)
            except BufferError:  # the client's queue is full: let acknowledgements come in
                sequences = range(sequence, sequences.stop)
                listen(0.1)
                break
        else:
            return


def _values(settings: dict, state: Attempt, partition: int, sequences: range) -> Iterable[bytes]:
    """The records of a turn or of the rest of one: the bytes of schema.pack.

    Without a line of Python for each record: they share everything but sequence and CRC, and the
    CRC is that of the turn's first, changed by what the lowest bits of the sequence change.
    """
    head = bytes.fromhex(settings["run_id"]) + HEADER.pack(state.producer, state.attempt, partition)
    # A turn is handed over within a millisecond or two: its records share the time.
    tail = (time.time_ns() // 1000).to_bytes(8, "big") + payload_of(settings["record_size"])
    turn = _turn_of(settings["record_size"])
    begun = sequences.start % turn
    crc = zlib.crc32(head + _SEQUENCE.pack(sequences.start - begun) + tail)
    crcs = map(crc.__xor__, _crc_steps(turn, len(tail))[begun:])
    pack = Struct(f">I{len(head)}sQ{len(tail)}s").pack
    return map(pack, crcs, repeat(head), sequences, repeat(tail))


@lru_cache(maxsize=8)
def _crc_steps(turn: int, length: int) -> list:
    """What 0, 1, ... `turn` - 1, added to a multiple of `turn` that is a 64-bit number `length`
    bytes before the end, change in any CRC-32; to be applied by exclusive or.

    `turn` is a power of two, so adding sets bits that were 0, and CRC-32 is linear: crc(a ^ b) is
    crc(a) ^ crc(b) ^ crc(0) for a, b and 0 of one length. Zeros at the beginning of b add nothing
    to crc(b) ^ crc(0). So neither the other bytes matter nor how many stand before the number.
    """
    rest = bytes(length)
    nothing = zlib.crc32(_SEQUENCE.pack(0) + rest)
    return [zlib.crc32(_SEQUENCE.pack(n) + rest) ^ nothing for n in range(turn)]


def _refusals(refused: dict) -> list:
    by_error: dict = {}
    for sequence, error in refused.items():
        by_error.setdefault(error, []).append(sequence)
    return [[*r, error] for error, numbers in by_error.items() for r in as_ranges(numbers)]
