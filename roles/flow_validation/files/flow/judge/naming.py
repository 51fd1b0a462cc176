# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Names what is wrong in partitions in which counting is not a proof.

First by runs, which prove most disturbed and healthy partitions and cost one look at the records. What
they do not prove is looked at record by record.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import Any, Collection, Iterable, Iterator

from flow.judge import checks, runs, verdict
from flow.record import files, ledger

_WITNESS = ("partition", "offset", "producer", "attempt", "sequence", "records", "reason")
_PLACES = ("duplicate", "order")  # checks of what is in `runs.disordered` partitions alone
_PARTS = "spark.sql.shuffle.partitions"  # into how many Spark divides what it sorts
_OF_A_TASK = 500_000  # records, of one that sorts


@dataclass(frozen=True)
class Named:
    """What naming found."""

    checks: dict  # check id -> verdict.Check
    resent: int  # copies that producers wrote themselves
    hurt: set  # partitions that were looked at record by record
    touched: set = field(default_factory=set)  # those of them in which something is wrong
    others: int = 0  # records of others between those of the run, in a topic that is shared
    places: dict = field(default_factory=dict)  # check id -> all partitions of its violations


@dataclass(frozen=True)
class Naming:
    """Of one run: its files.Plan, ledger rows, attempts, and transactions.Layout if it has any; `shared`:
    others may write to the topic, and in transactions.
    """

    spark: Any
    plan: files.Plan
    rows: list
    attempts: list
    layout: Any  # transactions.Layout, or None
    shared: bool = False

    def named(self, records, doubtful: set, spans: dict, overwritten: Collection[int]) -> Named:
        """records: schema.with_fields of the partitions in doubt; spans: partition -> (first offset, end
        offset); overwritten: partitions in which others wrote over the run's records.
        """
        spans = {number: spans[number] for number in sorted(doubtful) if number in spans}
        known = runs.collected(records)
        hurt, mixed = set(doubtful), set(doubtful)
        if known is not None:
            rows = self._rows_of(doubtful)
            hurt -= runs.proven(known, rows, spans, dense=not self.layout)
            mixed = hurt & runs.disordered(known)
        found = {name: verdict.Check(name) for name in (*checks.EXACT, "gap")}
        touched: set = set()
        named_at: dict = {}

        def note(name: str, violations) -> None:
            found[name], where = tally(name, violations)
            named_at[name] = where
            touched.update(where)

        told = self._frame(hurt)
        exact, others = checks.EXACT, 0
        if self.shared and hurt:
            exact = {**exact, "phantom": checks.unexplained}
            others = checks.foreign(_of(records, hurt), told, overwritten).count()
        for name, check in exact.items():
            places = mixed if name in _PLACES else hurt
            if places:
                note(name, check(_of(records, places), told, overwritten))
        resent = 0
        if hurt:
            known_ends = {n: s for n, s in spans.items() if n in hurt}
            note("gap", self._gaps(_of(records, hurt), told, known_ends))
        if self.layout:
            note("atomicity", self._atomicity(records, doubtful))
        elif found["duplicate"].count and (renewed := ledger.renewed(self.attempts)):
            found["duplicate"], resent = self._without_resent(_of(records, mixed), told, renewed)
        untouched = hurt - touched
        if untouched and found["order"].count:
            moved = _of(records, mixed).where("intact and home != partition")
            untouched -= {row[0] for row in moved.select("home").distinct().collect()}
        if untouched:
            elsewhere, _where = tally("order", checks.displaced(_of(records, untouched), told))
            found["order"] = _together(found["order"], elsewhere)
        return Named(found, resent, hurt, touched, others, named_at)

    def _rows_of(self, partitions: set) -> list:
        return [row for row in self.rows if row.partition in partitions]

    def _frame(self, partitions: set):
        """These partitions' ledger rows as a DataFrame."""
        return files.rows_frame(self.spark, self.plan, self._rows_of(partitions))

    def _gaps(self, records, told, spans: dict):
        frame = self.spark.createDataFrame(
            [(number, *span) for number, span in spans.items()],
            "partition int, first bigint, end bigint",
        )
        if self.layout or self.shared:
            return checks.missing(records, told, frame)
        return checks.gap(records, frame)

    def _atomicity(self, records, doubtful: set):
        """Of all partitions in doubt: a transaction is whole or not in all of its partitions together."""
        rows = self._rows_of(doubtful)
        told = files.rows_frame(self.spark, self.plan, rows)
        return checks.atomicity(records, told, rows, self.layout)

    def _without_resent(self, records, told, renewed: list) -> tuple:
        """(the check duplicate without what producers sent again themselves, how many that are)."""
        copies = checks.resent(records, told, renewed).persist()
        resent = copies.agg({"again": "sum"}).first()[0] or 0
        others = records.join(copies, checks.KEY, "left_anti")
        found, _where = tally("duplicate", checks.duplicate(others, told))
        copies.unpersist()
        return found, resent


def _of(records, partitions: Iterable[int]):
    """The records that stand in these partitions."""
    from pyspark.sql import functions as F

    return records.where(F.col("partition").isin(sorted(partitions)))


@contextlib.contextmanager
def sorting(spark, records: int) -> Iterator[None]:
    """Spark's settings for joins and sorts of so many records, and the others again afterwards: as many
    tasks as they need, and plans that are made anew when it is known how much they have to do. Of few
    records that would only take longer.
    """
    tasks = -(-records // _OF_A_TASK)
    wanted = {}
    if tasks > spark.sparkContext.defaultParallelism:
        wanted["spark.sql.adaptive.enabled"] = "true"
        if not spark.sparkContext.getConf().contains(_PARTS):  # else a person has chosen
            wanted[_PARTS] = str(tasks)
    before = {name: spark.conf.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        with contextlib.suppress(Exception):  # Spark may be what is gone
            for name, value in before.items():
                spark.conf.set(name, value)


def tally(name: str, violations) -> tuple:
    """(check, partitions that it names): all violations are counted, and the worst are witnesses:
    neighbours as one range, the longest first.
    """
    from pyspark.sql.functions import desc_nulls_last

    counts = violations.groupBy("partition").agg({"records": "sum"}).collect()
    if not counts:
        return verdict.Check(name), set()
    worst = [desc_nulls_last("records"), "partition", "offset"]
    first = checks.in_ranges(violations).orderBy(*worst).limit(verdict.WITNESSES).collect()
    witnesses = []
    for row in first:
        told = {k: row[k] for k in _WITNESS}
        if row["records"] > 1 and row["last_offset"] is not None:
            told["last_offset"] = row["last_offset"]
        witnesses.append(told)
    return verdict.Check(name, sum(row[1] for row in counts), witnesses), {
        row["partition"] for row in counts
    }


def _together(one: verdict.Check, other: verdict.Check) -> verdict.Check:
    """Both findings of one check, the longest ranges first."""
    witnesses = sorted(one.witnesses + other.witnesses, key=lambda each: -each["records"])
    return replace(one, count=one.count + other.count, witnesses=witnesses)
