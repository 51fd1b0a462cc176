# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The bytes of a record, the columns of the ledger, and how Spark reads both.

A record's value has a fixed width, so that Spark can cut it with built-in expressions
(all integers big-endian and unsigned):

    offset  bytes  field
         0      4  CRC-32 (zlib) of everything behind it
         4     16  run id
        20      4  producer: the number of the produce task
        24      4  attempt: the number of the attempt at that task, unique in the run
        28      4  partition that the record was sent to
        32      8  sequence within (producer, attempt, partition), from 0
        40      8  produce time, microseconds since 1970
        48      -  payload up to the asked size

Beside the value a record has a key and headers, or none, by the sequence (`beside`), and its produce
time as timestamp.
"""

from __future__ import annotations

import functools
import struct
import zlib
from dataclasses import dataclass
from typing import Mapping

from flow.record.timing import BEFORE_SENT, CLASSES_PER_OCTAVE, Clock

HEADER_BYTES = 48
HEADER = struct.Struct(">III")  # producer, attempt, partition
RECORD = struct.Struct(">16sIIIQQ")  # all but the CRC

# One row a range. For outcome `acked` the record with sequence s stands at
# first_offset + (s - first_sequence); the other outcomes have no offsets.
LEDGER_COLUMNS = (
    ("run_id", "string"),
    ("topic", "string"),
    ("producer", "int"),
    ("attempt", "int"),
    ("partition", "int"),
    ("outcome", "string"),
    ("first_sequence", "bigint"),
    ("last_sequence", "bigint"),
    ("first_offset", "bigint"),
    ("last_offset", "bigint"),
    ("error", "string"),
)
LEDGER_DDL = ", ".join(f"{name} {kind}" for name, kind in LEDGER_COLUMNS)

ACKED, FAILED, UNKNOWN = "acked", "failed", "unknown"
ABORTED = "aborted"  # in the log perhaps, and never to be seen by who reads committed records


def pack(run_id: bytes, producer: int, attempt: int, partition: int, sequence: int,
         microseconds: int, payload: bytes) -> bytes:  # fmt: skip
    """One record's value. The producing loop inlines this; tests and docs use it."""
    body = RECORD.pack(run_id, producer, attempt, partition, sequence, microseconds) + payload
    return zlib.crc32(body).to_bytes(4, "big") + body


# In a round of so many sequences the first few have something beside the value, each of three kinds for
# as many sequences; the rest has nothing, since keys and headers cost their producer a third of its time.
BESIDE_ROUND, BESIDE_EVERY = 128, 8
_KIND = f"& {BESIDE_ROUND - BESIDE_EVERY}L"  # bits of the sequence


def beside(run_id: bytes, sequence: int) -> tuple:
    """(key, headers) of a record, of both also none, an empty one, and one without a value: whoever
    takes one for another is found out.
    """
    kinds = {
        1: (sequence.to_bytes(8, "big"), None),
        2: (None, [("run", run_id)]),
        3: (b"", [("none", None)]),
    }
    return kinds.get(sequence % BESIDE_ROUND // BESIDE_EVERY, (None, None))


@dataclass(frozen=True)
class Sent:
    """Expressions, over the sequence that stands in for {sequence}: whether what is beside a value is what was sent;
    as a whole, which costs less, and each part of it, by its name.
    """

    whole: str
    parts: Mapping[str, str]


def as_sent(run_id_hex: str, appended: tuple = (), timed: bool = True) -> Sent:
    """Of `beside` and the timestamp. `appended`: of a topic that keeps the time of appending instead
    of the producers', from when to when that was possible (seconds since 1970). Without `timed`, whatever
    the timestamp.
    """
    one = "size(headers) = 1 and headers[0].key ="
    if appended:
        first, last = (int(each * 1_000_000) for each in appended)
        times = f"timestampType = 1 and unix_micros(timestamp) between {first}L and {last}L"
    else:
        times = (
            "timestampType = 0 and cast(unix_micros(timestamp) as binary) = substring(value, 41, 8)"
        )
    if not timed:
        times = "true"
    keys = {
        1: "key = substring(value, 33, 8)",
        2: "key is null",
        3: "octet_length(key) = 0",
        0: "key is null",
    }
    headers = {
        1: "headers is null",
        2: f"{one} 'run' and headers[0].value = X'{run_id_hex}'",
        3: f"{one} 'none' and headers[0].value is null",
        0: "headers is null",
    }
    both = {kind: f"{keys[kind]} and {headers[kind]}" for kind in keys}
    parts = {"key": _by_kind(keys), "headers": _by_kind(headers), "timestamp": times}
    return Sent(f"{times} and {_by_kind(both)}", parts)


def _by_kind(wanted: Mapping[int, str]) -> str:
    """The expression of each kind of sequences; 0: of all others."""
    cases = [f"when {n * BESIDE_EVERY}L then {each}" for n, each in wanted.items() if n]
    return f"case {{sequence}} {_KIND} {' '.join(cases)} else {wanted[0]} end"


ANYTHING = Sent("true", {})  # for runs of whose records only the value is known


@functools.lru_cache(maxsize=8)
def payload_of(record_size: int) -> bytes:
    """The filling up to `record_size` bytes; not all alike, so that compression stays honest."""
    need = record_size - HEADER_BYTES
    if need < 0:
        raise ValueError(f"a record needs at least {HEADER_BYTES} bytes, asked were {record_size}")
    pattern = bytes((i * 73 + 41) % 256 for i in range(256))
    return (pattern * (need // 256 + 1))[:need]


def _integer(first: int, length: int) -> str:
    # Spark has no cast from binary to a number; this detour stays inside code generation.
    return f"cast(conv(hex(substring(value, {first}, {length})), 16, 10) as bigint)"


# Comparing four bytes is cheaper than turning them into a number.
_CRC_IS_RIGHT = "substring(value, 1, 4) = cast(cast(crc32(substring(value, 5)) as int) as binary)"


def _intact(run_id_hex: str, record_size: int) -> str:
    return (
        f"coalesce(octet_length(value) = {record_size}"
        f" and substring(value, 5, 16) = unhex('{run_id_hex}') and {_CRC_IS_RIGHT}, false)"
    )


def _timed(rows, ours: str, clock: Clock, columns: tuple):
    """Add to `columns` when a record that is `ours` (a column) was appended, and how long that took.

    micros (Kafka's timestamp) and bucket (its number); latency (microseconds since the record was
    produced) and latency_class (timing.class_edges_ms), of a sample only and only if the timestamp
    is the leader's. All null where a record is not ours, so that foreign bytes and foreign clocks
    make no groups of their own.
    """
    # A power of two, for the cheaper test; and one division a record is enough.
    sampled = f"{ours} and offset & {clock.sampled_every - 1}L = 0" if clock.appended else "false"
    return rows.selectExpr(
        *columns,
        f"if({ours}, unix_micros(timestamp), null) as micros",
        f"if({sampled}, unix_micros(timestamp) - {_integer(41, 8)}, null) as latency",
    ).selectExpr(
        *columns,
        "micros",
        f"micros div {clock.bucket_ms * 1000}L as bucket",
        "latency",
        # the summand: the logarithm of a power of two may fall short of its whole number
        f"case when latency < -1000 then {BEFORE_SENT} when latency < 1000 then 0 else"
        f" cast(floor(log2(latency / 1000) * {CLASSES_PER_OCTAVE} + 1e-9) as int) + 1 end"
        " as latency_class",
    )


def with_header(kafka_rows, run_id_hex: str, record_size: int, clock: Clock, sent: Sent = ANYTHING):
    """Kafka source rows -> partition, offset, header, sequence and times, for counting.

    `header` (producer, attempt, home partition: 12 bytes) and `sequence` are null where a record is
    not intact, or not `sent` so, and foreign bytes can never make more groups than there are producers.
    """
    intact = f"{_intact(run_id_hex, record_size)} and {_beside(sent.whole)}"
    cut = kafka_rows.selectExpr("*", f"{intact} as intact").selectExpr(
        "*",
        "if(intact, substring(value, 21, 12), null) as header",
        f"if(intact, {_integer(33, 8)}, null) as sequence",
    )
    return _timed(cut, "intact", clock, ("partition", "offset", "header", "sequence"))


def _beside(sent: str) -> str:
    """An expression of `Sent`, of the sequence that a value has."""
    return f"coalesce({sent.format(sequence=_integer(33, 8))}, false)"


def _differing(sent: Sent) -> str:
    """The names of the parts that are not what was sent, between commas."""
    names = [f"if({_beside(each)}, null, '{name}')" for name, each in sent.parts.items()]
    return f"concat_ws(', ', {', '.join(names)})" if names else "''"


def with_agreement(
    kafka_rows,
    run_id_hex: str,
    record_size: int,
    writing: dict,
    clock: Clock,
    transaction: tuple = (),
    sent: Sent = ANYTHING,
):
    """Kafka source rows -> partition, offset, agrees and times, to confirm what the ledger says.

    `writing`: partition -> (producer, attempt, offset - sequence). A record agrees if it is intact
    and is the very one that this writer sent to this partition at this place: 36 bytes, compared
    at once, because taking numbers out of bytes is what costs most in Spark.
    `transaction`: of a run with transactions (records of a partition in each, every how many-th is
    aborted). Then the shift is offset - transactions.Layout.place, and what is aborted never agrees.
    """
    size = max(writing, default=-1) + 1
    fixed, shifts = ["null"] * size, ["null"] * size
    for partition, (producer, attempt, shift) in writing.items():
        header = HEADER.pack(producer, attempt, partition).hex()
        fixed[partition], shifts[partition] = f"X'{run_id_hex}{header}'", f"{shift}L"
    at = "partition + 1"
    place = f"(offset - element_at(array({', '.join(shifts)}), {at}))"
    number, visible = place, "true"
    if transaction:
        size, abort_every = transaction
        round_ = f"{place} div {size + 1}L"
        number = f"({round_} * {size}L + {place} % {size + 1}L)"
        visible = f"({round_}) % {abort_every}L != {abort_every - 1}L"
        visible += f" and {place} % {size + 1}L < {size}L"
    beside_it = sent.whole.format(sequence=number)
    sequence = f"cast({number} as binary)"
    agrees = (
        f"{visible} and octet_length(value) = {record_size} and substring(value, 5, 36)"
        f" = concat(element_at(array({', '.join(fixed)}), {at}), {sequence}) and {_CRC_IS_RIGHT}"
        f" and {beside_it}"
    )
    compared = kafka_rows.selectExpr("*", f"coalesce({agrees}, false) as agrees")
    return _timed(compared, "agrees", clock, ("partition", "offset", "agrees"))


def with_fields(kafka_rows, run_id_hex: str, record_size: int, sent: Sent = ANYTHING):
    """Kafka source rows -> one row a record with every field, for naming.

    partition, offset, intact (the value is), ours (carries our run id, intact or not), beside (key,
    headers and timestamp are as they were sent), differing (the names of those that are not), producer,
    attempt, home (the partition it was sent to), sequence. Only trust the last six where `intact`.
    """
    return kafka_rows.selectExpr(
        "partition",
        "offset",
        f"{_intact(run_id_hex, record_size)} as intact",
        f"coalesce(substring(value, 5, 16) = unhex('{run_id_hex}'), false) as ours",
        f"{_beside(sent.whole)} as beside",
        f"{_differing(sent)} as differing",
        f"cast({_integer(21, 4)} as int) as producer",
        f"cast({_integer(25, 4)} as int) as attempt",
        f"cast({_integer(29, 4)} as int) as home",
        f"{_integer(33, 8)} as sequence",
    )


def as_arrived(kafka_rows, run_id_hex: str, record_size: int):
    """Rows of a stream of Kafka's -> the intact records of the run, each with the time when it was sent,
    `sent_us`, and the one when the leader appended it, `appended_us` (both microseconds since 1970).
    """
    intact = kafka_rows.where(_intact(run_id_hex, record_size))
    return intact.selectExpr(
        "partition as read_partition",
        "offset as read_offset",
        "unix_micros(timestamp) as appended_us",
        f"cast({_integer(21, 4)} as int) as producer",
        f"cast({_integer(25, 4)} as int) as attempt",
        f"cast({_integer(29, 4)} as int) as partition",
        f"{_integer(33, 8)} as sequence",
        f"{_integer(41, 8)} as sent_us",
    )


def unpack_header(header: bytes) -> tuple:
    """(producer, attempt, home partition) of the 12 bytes that `with_header` groups by."""
    return HEADER.unpack(bytes(header))
