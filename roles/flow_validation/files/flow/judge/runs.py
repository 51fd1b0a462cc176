# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Runs: the records of one writer in a partition with the same offset - sequence, by number and ends.

What disturbs a healthy run (another leader, an aborted transaction, a repeated task) moves what comes
after it by a few offsets. So its partitions hold few runs, each without a hole, and these say where every
single record stands, though none was looked at by itself.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Iterable, Optional

from flow.record.ledger import Row
from flow.record.schema import ABORTED, ACKED, UNKNOWN

# More of them are not taken to the driver: then every partition is looked at record by record. A run of
# 100 million records in transactions has a fifth of it.
MOST = 500_000


@dataclass(frozen=True)
class Run:
    """`records` of one writer with the sequences `first` to `last`, at offset `shift` + sequence; of what
    is damaged only partition and records are known.
    """

    partition: int
    producer: Optional[int]
    attempt: Optional[int]
    home: Optional[int]
    shift: Optional[int]
    records: int
    first: Optional[int]
    last: Optional[int]

    @property
    def whole(self) -> bool:
        """Whether it has no hole: offsets differ, so as many sequences as they span are all of them."""
        if self.first is None or self.last is None:
            return False
        return self.home == self.partition and self.records == self.last - self.first + 1


def collected(records) -> Optional[list]:
    """`schema.with_fields` rows as Runs; None if they are more than MOST."""
    from pyspark.sql import functions as F

    who = ("producer", "attempt", "home")
    fine = [f"if(intact and beside, {name}, null) as {name}" for name in (*who, "sequence")]
    grouped = (
        records.selectExpr("partition", "offset", *fine)
        .withColumn("shift", F.expr("offset - sequence"))
        .groupBy("partition", *who, "shift")
        .agg(
            F.count("*").alias("records"),
            F.min("sequence").alias("first"),
            F.max("sequence").alias("last"),
        )
    )
    rows = grouped.limit(MOST + 1).collect()
    return None if len(rows) > MOST else [Run(*row) for row in rows]


def _by_writer(of: Iterable) -> dict:
    """Runs or ledger rows by partition, producer and attempt."""
    found: dict = {}
    for each in of:
        found.setdefault((each.partition, each.producer, each.attempt), []).append(each)
    return found


def disordered(found: Iterable[Run]) -> set:
    """Partitions in which a record may be twice or out of order: two runs of a writer overlap, the later
    sequences stand earlier, or a record was sent to another partition.
    """
    found = list(found)
    wrong = {n for run in found if run.home not in (None, run.partition)
             for n in (run.partition, run.home)}  # fmt: skip
    intact = [run for run in found if run.home == run.partition]
    for (partition, *_who), runs in _by_writer(intact).items():
        if not _in_order(sorted(runs, key=lambda run: run.first)):
            wrong.add(partition)
    return wrong


def _in_order(runs: list) -> bool:
    """Whether each of these Runs begins behind the end of the one before, in sequence and in offset."""
    return all(
        before.last < run.first and before.last + before.shift < run.first + run.shift
        for before, run in zip(runs, runs[1:])
    )


def proven(found: Iterable[Run], rows: Iterable[Row], spans: dict, dense: bool) -> set:
    """Partitions of which the runs prove that nothing is wrong in them.

    rows: the ledger; spans: partition -> (first offset, end offset); dense: no offset may be empty, as
    without transactions.
    Every run is whole, and each writer's are in order: so every record that is there stands at a known
    offset, once, and sequences rise with offsets. What was acknowledged is within a run with the shift at
    which it was acknowledged: it is there, in its place. All of each run is told by the ledger: nothing
    else is there. Whether an aborted record or half a transaction is visible is not answered here.
    """
    found, rows = list(found), list(rows)
    wrong = {n for run in found if not run.whole for n in (run.partition, run.home)}
    standing, expected = _by_writer(found), _by_writer(rows)
    for who in {*standing, *expected}:
        if who[0] not in wrong and not _as_told(standing.get(who, []), expected.get(who, [])):
            wrong.add(who[0])
    if dense:
        read = dict.fromkeys(spans, 0)
        for run in found:
            read[run.partition] = read.get(run.partition, 0) + run.records
        wrong |= {n for n, (start, end) in spans.items() if read[n] != end - start}
    return set(spans) - wrong


def _as_told(runs: list, rows: list) -> bool:
    """Whether whole Runs of one writer in one partition are what these rows of its say."""
    runs = sorted(runs, key=lambda run: run.first)
    if not _in_order(runs):
        return False
    begins = [run.first for run in runs]
    for row in rows:
        if row.outcome == ACKED:
            run = runs[at] if (at := bisect_right(begins, row.first_sequence) - 1) >= 0 else None
            if run is None or run.last < row.last_sequence:
                return False
            if run.shift != row.first_offset - row.first_sequence:
                return False
    told = _joined(rows)
    begins = [first for first, _last in told]
    return all(
        (at := bisect_right(begins, run.first) - 1) >= 0 and run.last <= told[at][1] for run in runs
    )


def _joined(rows: list) -> list:
    """[first, last] of the sequences that may be there, neighbours joined."""
    joined: list = []
    may = (ACKED, UNKNOWN, ABORTED)
    for first, last in sorted(
        (row.first_sequence, row.last_sequence) for row in rows if row.outcome in may
    ):
        if joined and first <= joined[-1][1] + 1:
            joined[-1][1] = max(joined[-1][1], last)
        else:
            joined.append([first, last])
    return joined
