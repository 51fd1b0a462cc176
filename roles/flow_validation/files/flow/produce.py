# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""One produce task: writes records with an idempotent producer and keeps the ledger of what Kafka
said about each.

Runs inside Spark's Python workers, so it touches Kafka and the attempt's own file.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from functools import partial
from struct import Struct

from flow.ledger import Acknowledged, Attempt, as_ranges, share
from flow.schema import HEADER, payload_of

# records to one partition before the next one's turn: fills batches, keeps partitions in step
BURST = 100
SAVE_SECONDS = 1.0

# Refused by the broker or the client before anything was appended. Every other error (a timeout
# above
# all) leaves open whether the record is in the log, and is therefore `unknown`.
SURELY_NOT_WRITTEN = frozenset(
    "MSG_SIZE_TOO_LARGE INVALID_MSG_SIZE RECORD_LIST_TOO_LARGE INVALID_RECORD POLICY_VIOLATION"
    " TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED INVALID_REQUIRED_ACKS"
    " _UNKNOWN_TOPIC _UNKNOWN_PARTITION _PURGE_QUEUE _QUEUE_FULL".split()
)


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
    records,
    record_size, delivery_timeout (seconds), directory (for the attempts' files).
    The file is written before the first record, so that an attempt that is killed is known to have
    run; whatever it sent since its last save is unknown, not phantom.
    """
    from confluent_kafka import KafkaException, Producer  # only where records are really sent

    planned = share(
        settings["partitions"], settings["producers"], producer_number, settings["records"]
    )
    state = Attempt(producer_number, attempt_number, False, planned)
    save(state, settings["directory"])
    started = time.monotonic()

    acknowledged = {p: Acknowledged() for p in planned}
    refused: dict = {p: {} for p in planned}  # partition -> sequence -> error name
    errors: dict = {}

    def delivered(add, refusals, sequence, error, message):
        if error is None:
            add(sequence, message.offset())
            return
        errors[error.name()] = errors.get(error.name(), 0) + 1
        if error.name() in SURELY_NOT_WRITTEN:
            refusals[sequence] = error.name()

    def snapshot(complete: bool) -> Attempt:
        state.complete = complete
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
    saved = started
    try:
        for partition, sequences in _turns(planned):
            _send(client, settings, state, partition, sequences,
                  partial(delivered, acknowledged[partition].add, refused[partition]))  # fmt: skip
            client.poll(0)
            if time.monotonic() - saved > SAVE_SECONDS:
                snapshot(False)
                saved = time.monotonic()
    except KafkaException as error:  # fatal: the client will not send any more
        name = error.args[0].name()
        errors[name] = errors.get(name, 0) + 1
    # librdkafka settles every record within the delivery timeout; the margin is for its own threads
    deadline = time.monotonic() + settings["delivery_timeout"] + 15
    while len(client) and time.monotonic() < deadline:
        client.flush(SAVE_SECONDS)
        snapshot(False)
    return snapshot(True)


def _turns(planned: dict):
    """Round the partitions in bursts: (partition, range of sequences)."""
    position = 0
    while any(count > position for count in planned.values()):
        for partition, count in planned.items():
            if count > position:
                yield partition, range(position, min(position + BURST, count))
        position += BURST


def _send(client, settings: dict, state: Attempt, partition: int, sequences: range, report) -> None:
    # The loop that decides the speed: everything is a local name, and schema.pack is written out.
    # The CRC goes on from that of the bytes that all of these records share.
    topic, send, crc, payload = (
        settings["topic"], client.produce, zlib.crc32, payload_of(settings["record_size"]))  # fmt: skip
    head = bytes.fromhex(settings["run_id"]) + HEADER.pack(state.producer, state.attempt, partition)
    head_crc = crc(head)
    pack_tail = Struct(f">QQ{len(payload)}s").pack
    pack = Struct(f">I{len(head)}s{16 + len(payload)}s").pack
    # A burst is handed over within a millisecond: its records share the time.
    now = time.time_ns() // 1000
    for sequence in sequences:
        tail = pack_tail(sequence, now, payload)
        value = pack(crc(tail, head_crc), head, tail)
        callback = partial(report, sequence)
        while True:
            try:
                send(topic, value, None, partition, callback)
                break
            except BufferError:  # the client's queue is full: let acknowledgements come in
                client.poll(0.1)


def _refusals(refused: dict) -> list:
    by_error: dict = {}
    for sequence, error in refused.items():
        by_error.setdefault(error, []).append(sequence)
    return [[*r, error] for error, numbers in by_error.items() for r in as_ranges(numbers)]
