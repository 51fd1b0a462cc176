# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Which records are handed over in one go, in which turns of the partitions, and their bytes."""

from __future__ import annotations

import time
import zlib
from functools import lru_cache
from itertools import repeat
from struct import Struct
from typing import Callable, Iterable, Iterator

from flow.record.ledger import Attempt, power_of_two
from flow.record.schema import BESIDE_EVERY, BESIDE_ROUND, HEADER, beside, payload_of
from flow.write.client_settings import QUEUE_RECORDS

_SEQUENCE = Struct(">Q")
# Records that are handed over in one go and share a time: a power of two (see _crc_steps), and fewer
# if they are large.
BLOCK_RECORDS = 1024
# A turn is as many records to one partition, before the next one's turn, as make a batch: librdkafka's
# batch.num.messages and batch.size. Brokers work for batches more than for records. Longer turns
# would be a little faster still, and make each partition look as if it paused between its own.
BATCH_RECORDS, BATCH_BYTES = 10_000, 1_000_000
TURN_SECONDS = 0.1  # with a rate: how much of it is handed over in one go


def longest_block(record_size: int) -> int:
    """Records in a block: the largest power of two that both limits allow, at least one."""
    return power_of_two(min(BLOCK_RECORDS, BATCH_BYTES // record_size))


def block_of(settings: dict) -> int:
    """Records in a block; a transaction has at most one of each partition."""
    return settings["transaction_records"] or longest_block(settings["record_size"])


def turn_of(settings: dict, partitions: int) -> int:
    """Records in a turn of a producer with so many partitions: whole blocks, at least one; a
    transaction is one turn of each partition.
    """
    block = block_of(settings)
    if settings["transaction_records"]:
        return block
    share = QUEUE_RECORDS // 2 // max(1, partitions)
    batch = min(BATCH_RECORDS, BATCH_BYTES // settings["record_size"])
    turn = max(block, power_of_two(min(batch, share)))
    if settings.get("rate"):
        of_each = settings["rate"] * TURN_SECONDS / settings["partitions"]
        turn = min(turn, max(1, int(of_each)))
    return turn


def rounds_of(planned: dict, turn: int) -> Iterator:
    """Go round the partitions: each round a list of (partition, range of at most `turn` sequences)."""
    for position in range(0, max(planned.values(), default=0), turn):
        yield [
            (partition, range(position, min(position + turn, count)))
            for partition, count in planned.items()
            if count > position
        ]


def send(
    hand_over: Callable,
    settings: dict,
    state: Attempt,
    partition: int,
    sequences: range,
    reports: tuple,
    listen: Callable,
) -> None:
    """Hand one turn's records over, block by block; what a full queue delays gets the time of its own
    hand-over.
    """
    report, timed = reports
    topic, block = settings["topic"], block_of(settings)
    run_id = bytes.fromhex(settings["run_id"])
    low, high = BESIDE_EVERY, 4 * BESIDE_EVERY  # of a round, those that are not bare
    while sequences:
        first = sequences.start
        behind = min(sequences.stop, first - first % block + block)
        part = range(first, behind)
        # A block is handed over within a millisecond or two: its records share the time.
        now_ms = time.time_ns() // 1_000_000
        values = values_of(settings, state, partition, part, now_ms * 1000)
        for sequence, value in zip(part, values):
            try:
                if low <= sequence % BESIDE_ROUND < high:
                    key, headers = beside(run_id, sequence)
                    told = timed if sequence % BESIDE_ROUND == low else report
                    hand_over(topic, value, key, partition, told, None, now_ms, headers)
                else:
                    hand_over(topic, value, None, partition, report, None, now_ms)
            except BufferError:  # the client's queue is full: let acknowledgements come in
                behind = sequence
                listen(0.1)
                break
        else:
            listen(0)
        sequences = range(behind, sequences.stop)


def values_of(
    settings: dict, state: Attempt, partition: int, sequences: range, microseconds: int
) -> Iterable[bytes]:
    """The records of a block or of the rest of one: the bytes of schema.pack.

    Without a line of Python for each record: they share everything but sequence and CRC, and the
    CRC is that of the block's first, changed by what the lowest bits of the sequence change.
    """
    head = bytes.fromhex(settings["run_id"]) + HEADER.pack(state.producer, state.attempt, partition)
    tail = microseconds.to_bytes(8, "big") + payload_of(settings["record_size"])
    block = block_of(settings)
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
