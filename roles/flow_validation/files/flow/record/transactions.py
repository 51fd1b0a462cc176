# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Transactions: which records share one, which are aborted on purpose, and what readers may see.

A producer's transaction number n holds, of each of its partitions, the sequences n * records to
(n + 1) * records - 1. So the record itself tells its transaction, and nothing more has to be
written down. Every ABORT_EVERY-th transaction is aborted when all of its records are in the log.

In the log the marker that ends a transaction follows its records in each partition. Undisturbed,
the record with sequence s stands s + s div records places behind the first one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable

from flow.record import ledger
from flow.record.schema import ABORTED, ACKED, UNKNOWN

ABORT_EVERY = 5
# so that at least two transactions of a run are aborted, if its partitions have records for it
_LEAST_TRANSACTIONS = 2 * ABORT_EVERY


def records_of_each(block: int, least_of_a_partition: int) -> int:
    """Records of a partition in a transaction: a power of two, at most `block` (itself one)."""
    return min(block, ledger.power_of_two(least_of_a_partition // _LEAST_TRANSACTIONS))


def on_purpose(number: int) -> bool:
    """Whether the transaction is one that is aborted on purpose."""
    return number % ABORT_EVERY == ABORT_EVERY - 1


@dataclass(frozen=True)
class Layout:
    """How the run's records are divided: `records` of a partition in each transaction; `partitions`,
    `producers`, `total` as in ledger.share.
    """

    records: int
    partitions: int
    producers: int
    total: int

    def number(self, sequence: int) -> int:
        """The transaction of a sequence."""
        return sequence // self.records

    def place(self, sequence: int) -> int:
        """Offset of a sequence from the partition's first, if nothing disturbed its producer."""
        return sequence + self.number(sequence)

    def share(self, producer: int) -> dict:
        """partition -> records of that producer."""
        return ledger.share(self.partitions, self.producers, producer, self.total)

    def size(self, producer: int, number: int) -> int:
        """Records of one transaction, in all of its partitions."""
        first = number * self.records
        shares = self.share(producer).values()
        return sum(max(0, min(self.records, planned - first)) for planned in shares)

    def offsets(self, planned: int) -> int:
        """Offsets that so many records of a partition take with their markers, undisturbed."""
        return planned + -(-planned // self.records)


def writers(rows: Iterable[ledger.Row], layout: Layout) -> dict:
    """partition -> (producer, attempt, offset - place), where the ledger leaves no doubt.

    One attempt wrote it; each of its transactions is committed, or aborted on purpose; and all
    stand where `Layout.place` says.
    """
    seen: dict = {}
    doubtful = set()
    for row in rows:
        who = (row.producer, row.attempt)
        if row.outcome == ACKED and row.first_offset is not None:
            shift = row.first_offset - layout.place(row.first_sequence)
            seen.setdefault(row.partition, set()).add((*who, shift))
            if layout.number(row.first_sequence) != layout.number(row.last_sequence):
                doubtful.add(row.partition)  # no marker between them
        elif row.outcome != ABORTED or not on_purpose(layout.number(row.first_sequence)):
            doubtful.add(row.partition)
        else:
            seen.setdefault(row.partition, set())
    return {
        partition: next(iter(found))
        for partition, found in seen.items()
        if len(found) == 1 and partition not in doubtful
    }


def suspicious(
    read: dict, confirmed: set, rows: Iterable[ledger.Row], spans: dict, layout: Layout
) -> set:
    """Partitions where counting does not prove that everything is in order.

    read: partition -> records; confirmed: those in which every record is the very one that
    `writers` expects at its offset, and none is of a transaction aborted on purpose; spans:
    partition -> (first offset, end offset).
    The proof: n records at n offsets are n different sequences, each of a transaction that was to
    be committed. As many were acknowledged, and no others were sent: so these are they. And if the
    partition has as many offsets as its records and markers take, none is empty.

    A transaction is whole or not in all of its partitions together, so a doubtful partition makes
    the others of its producers doubtful.
    """
    rows = list(rows)
    acked = dict.fromkeys(spans, 0)
    for row in rows:
        if row.outcome == ACKED:
            acked[row.partition] = acked.get(row.partition, 0) + row.records
    planned: dict = {}
    for producer in range(layout.producers):
        planned.update(layout.share(producer))
    doubtful = {
        number
        for number, (start, end) in spans.items()
        if number not in confirmed
        or read.get(number, 0) != acked[number]
        or end - start != layout.offsets(planned.get(number, 0))
    }
    together: dict = {}
    for row in rows:
        together.setdefault(row.producer, set()).add(row.partition)
    return doubtful.union(*(each for each in together.values() if each & doubtful)) & set(spans)


def open_ended(rows: Iterable[ledger.Row], layout: Layout) -> list:
    """Transactions of which the ledger does not know how they ended:
    [(producer, attempt, number, records)].
    """
    found = set()
    for row in rows:
        if row.outcome == UNKNOWN:
            numbers = range(layout.number(row.first_sequence), layout.number(row.last_sequence) + 1)
            found.update((row.producer, row.attempt, number) for number in numbers)
    return [
        (producer, attempt, number, layout.size(producer, number))
        for producer, attempt, number in sorted(found)
    ]


def still_open(ends: dict, stable: dict, waited: float) -> list:
    """Witnesses of transactions that nobody ends: ends, stable: partition -> end offset, and last
    stable offset, after `waited` seconds. Of a partition without the latter nothing is said.
    """
    return [
        {
            "partition": number,
            "offset": stable[number],
            "records": end - stable[number],
            "reason": f"a transaction that begins here is still open after {waited:.0f} s: who reads"
            " committed records gets nothing from here on",
        }
        for number, end in sorted(ends.items())
        if stable.get(number, end) < end
    ]
