# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Reads the topic and applies the checks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from flow.judge import checks, continuity, reading, verdict
from flow.messages import progress
from flow.messages.failure import CannotRun
from flow.prepare import listeners, room
from flow.record import files, ledger, schema, timing, transactions

# Seconds beyond transaction.timeout.ms, until a transaction must have been aborted by the cluster.
_TRANSACTION_GRACE = 30
# For what no broker knows that was asked: brokers that have just started learn of partitions one by one.
_ABSENT_SECONDS = 15
_WITNESS = ("partition", "offset", "producer", "attempt", "sequence", "records", "reason")


@dataclass(frozen=True)
class Results:
    """What judging found."""

    checks: list  # verdict.Check of what was judged, in the order of verdict.MEANING
    now: dict  # partition -> partition.Partition at the moment of reading
    read: dict  # partition -> records read
    doubtful: set  # partitions that were looked at record by record
    seen: timing.Observed  # when records were appended
    resent: int = 0  # copies that producers wrote themselves
    probes: list = field(default_factory=list)  # probes.Outcomes; their checks are in `checks`


@dataclass(frozen=True)
class _Counted:
    """What the passes found that count records instead of naming them."""

    read: dict  # partition -> records
    doubtful: set  # partitions in which counting does not prove that all is in order
    readable: dict  # partition -> (first, end) of what can be read at all
    complaints: list  # batches that Kafka's consumer refuses, as witnesses
    check_crcs: bool  # whether it may look at its own checksums
    seen: timing.Observed


@dataclass(frozen=True)
class Judge:
    """Judges one run.

    options: the command line's; plan: the run's files.Plan; groups: its continuity.Groups;
    for_java: client settings for Spark; rows: the ledger; attempts: what it was made of.
    """

    spark: object
    options: object
    plan: files.Plan
    cluster: object
    groups: continuity.Groups
    for_java: dict
    rows: list
    attempts: list
    watch: object

    @property
    def _layout(self):
        return self.plan.transactions()

    def results(self) -> Results:
        """Read the topic and apply every check."""
        hanging = self._hanging() if self._layout else []
        wait = min(_ABSENT_SECONDS, self.options.timeout)
        now = self.cluster.positions(self.plan.topic, wait=wait, known=self.plan.after)
        with ThreadPoolExecutor(1) as other:  # groups mostly wait: for members, and for brokers
            handed = other.submit(self._deliveries, now) if self.plan.groups else None
            spans = self._spans(now, hanging)
            counted = self._counted(spans)
            found, resent = self._named(spans, counted)
        border = verdict.gaps_at_the_borders(self.plan.before, self.plan.after, now)
        found["gap"] = told(found["gap"], border)
        found["corrupt"] = complained(found["corrupt"], counted.complaints)
        if self._layout:
            found["atomicity"] = told(found["atomicity"], hanging)
        if handed:
            found["continuity"] = continuity.check(
                self.plan.first_offsets(), handed.result(), counted.doubtful
            )
        found.update(self._of_the_whole(now, counted.read))
        judged = [found[name] for name in verdict.MEANING if name in found]
        return Results(judged, now, counted.read, counted.doubtful, counted.seen, resent)

    def _hanging(self) -> list:
        """Witnesses of transactions that nobody ends."""
        with self.watch.step("wait for open transactions"):
            # of a producer that died the cluster ends them after a while, and looks every 10 s
            limit = self.plan.transaction_timeout + _TRANSACTION_GRACE
            ends, stable = self.cluster.stable_ends(self.plan.topic, limit)
            return transactions.still_open(ends, stable, limit)

    def _deliveries(self, now: dict) -> dict:
        """group -> continuity.Delivery."""
        ends = {number: place.end for number, place in now.items()}
        with self.watch.step("consumer groups"):
            asked = continuity.sample(self.plan.first_offsets(), ends)
            deliveries = self.groups.deliveries(asked)
        if self._layout:  # markers and aborted records are handed to nobody
            return continuity.without(deliveries, ledger.acknowledged_offsets(self.rows))
        return deliveries

    def _spans(self, now: dict, hanging: list) -> dict:
        """partition -> (first offset, end offset) of what is to be read."""
        stable = {witness["partition"]: witness["offset"] for witness in hanging}
        spans = {}
        for number, place in now.items():
            before, start = self.plan.before.get(number), place.start
            if before is not None:
                # what stood there before the first write is none of this run's business
                start = max(start, before.start, before.end)
            end = min(place.end, stable.get(number, place.end))
            spans[number] = (start, max(start, end))
        return spans

    def _source(self, spans: dict, check_crcs: bool):
        """The topic's records as a DataFrame."""
        client = self.for_java
        if self._layout:
            client = {**client, "isolation.level": "read_committed"}
        servers = self.options.bootstrap_servers
        return reading.rows(self.spark, self.plan.topic, spans, client, servers, check_crcs)

    def _counted(self, spans: dict) -> _Counted:
        """Read once, and confirm by counting what the ledger says; where that fails, count anew."""
        plan, layout = self.plan, self._layout
        seconds = plan.produce_seconds or max((each.seconds for each in self.attempts), default=0.0)
        clock = timing.clock(plan.timestamp_type, seconds, plan.partitions, plan.records)
        if layout:
            writing = transactions.writers(self.rows, layout)
            division = (layout.records, transactions.ABORT_EVERY)
        else:
            writing, division = checks.writers(self.rows), ()
        shape = (plan.run_id, plan.record_size)

        def confirmation(spans, check_crcs):
            kafka = self._source(spans, check_crcs)
            return checks.confirmation(
                schema.with_agreement(kafka, *shape, writing, clock, division)
            )

        def summary(spans, check_crcs):
            kafka = self._source(spans, check_crcs)
            return checks.summary(schema.with_header(kafka, *shape, clock))

        total = sum(end - start for start, end in spans.values())
        count = progress.tasks_done(self.spark, total)
        following = progress.following(self.options.output, "read", total, count)
        with self.watch.step("read and judge"), following:
            simple = {n: span for n, span in spans.items() if n in writing}
            agreed, refused = reading.collect(confirmation, simple)[:2]
            # A batch that Kafka's consumer refuses leaves open what the pass has seen.
            groups = [] if refused else checks.confirmed(agreed, writing)
            done = {group.partition for group in groups}
            rest = {n: span for n, span in spans.items() if n not in done}
            moments = [row for row in agreed if row["partition"] in done]
            complaints, readable, check_crcs = [], rest, True
            if any(end > start for start, end in rest.values()):
                collected, complaints, readable, check_crcs = reading.collect(summary, rest)
                groups += checks.groups(collected)
                moments += collected
            read: dict = {}
            for group in groups:
                read[group.partition] = read.get(group.partition, 0) + group.records
            if layout:
                doubtful = transactions.suspicious(read, done, self.rows, spans, layout)
            else:
                doubtful = checks.suspicious(groups, self.rows, spans)
            readable = {n: span for n, span in spans.items() if n in done or n in readable}
            seen = timing.observe(clock, moments)
        return _Counted(read, doubtful, readable, complaints, check_crcs, seen)

    def _named(self, spans: dict, counted: _Counted) -> tuple:
        """({check id: Check} of the checks that look at every record, where counting proved nothing;
        how many records producers sent again).
        """
        names = [*checks.EXACT, "gap", *(["atomicity"] if self._layout else [])]
        if not counted.doubtful:
            return {name: verdict.Check(name) for name in names}, 0
        from pyspark import StorageLevel

        with self.watch.step("name what is wrong"):
            part = {n: span for n, span in counted.readable.items() if n in counted.doubtful}
            self._find_room(part)
            kafka = self._source(part, counted.check_crcs)
            records = schema.with_fields(kafka, self.plan.run_id, self.plan.record_size)
            records = records.persist(StorageLevel.DISK_ONLY)  # 40 bytes each, not the payload
            try:
                return self._exact(records, counted.doubtful, spans)
            finally:
                records.unpersist()

    def _find_room(self, spans: dict) -> None:
        """CannotRun if Spark's disk cannot hold what naming takes: a full one helps nobody."""
        records = sum(end - start for start, end in spans.values())
        short = room.short_for_naming(self.spark, records)
        if short:
            raise CannotRun(
                f"counting is no proof for {len(spans)} of the partitions of {self.plan.topic}, and"
                f" {short};"
                f" with more room, `job.py verify --ledger {self.options.ledger}` names what is wrong"
            )

    def _exact(self, records, doubtful: set, spans: dict) -> tuple:
        """The same of these records (schema.with_fields)."""
        rows = [row for row in self.rows if row.partition in doubtful]
        part = files.rows_frame(self.spark, self.plan, rows)
        frame = self.spark.createDataFrame(
            [(n, *spans[n]) for n in sorted(doubtful) if n in spans],
            "partition int, first bigint, end bigint",
        )
        found = {name: tally(name, check(records, part)) for name, check in checks.EXACT.items()}
        resent = 0
        if self._layout:
            found["gap"] = tally("gap", checks.missing(records, part, frame))
            torn = checks.atomicity(records, part, rows, self._layout)
            found["atomicity"] = tally("atomicity", torn)
        else:
            found["gap"] = tally("gap", checks.gap(records, frame))
            renewed = ledger.renewed(self.attempts)
            if found["duplicate"].count and renewed:
                copies = checks.resent(records, part, renewed).persist()
                resent = copies.agg({"again": "sum"}).first()[0] or 0
                others = records.join(copies, checks.KEY, "left_anti")
                found["duplicate"] = tally("duplicate", checks.duplicate(others, part))
                copies.unpersist()
        if not resent and not any(check.count for check in found.values()):
            found["order"] = tally("order", checks.displaced(records, part))
        return found, resent

    def _of_the_whole(self, now: dict, read: dict) -> dict:
        """{check id: Check} of what is not about single records."""
        plan = self.plan
        # Those that the run had records for, whatever became of them: a produce step that was killed, or
        # a task that never began, is no broker's fault.
        tested = set(range(min(plan.partitions, plan.records)))
        coverage = verdict.coverage(
            list(plan.brokers),
            [plan.before, plan.after, now],
            tested,
            self.options.expected_brokers,
            listeners.troubles(plan.listeners),
        )
        durability = verdict.durability(
            plan.before, plan.min_isr, plan.planned_replication, plan.planned_min_isr
        )
        reason = "no record could be read" if self.rows else "nothing was written"
        nothing = [] if sum(read.values()) else [{"reason": reason}]
        emptiness = verdict.Check("emptiness", len(nothing), nothing)
        return {check.id: check for check in (coverage, durability, emptiness)}


def told(check: verdict.Check, more: list) -> verdict.Check:
    """The check with what was seen beside the records: ends, starts, epochs, open transactions."""
    count = check.count + sum(w["records"] for w in more)
    return verdict.Check(check.id, count, more + check.witnesses)


def complained(corrupt: verdict.Check, complaints: list) -> verdict.Check:
    """The check with the batches that Kafka's own consumer refuses, which hold records counted already."""
    count = max(corrupt.count, len(complaints))
    return verdict.Check("corrupt", count, corrupt.witnesses + complaints)


def tally(name: str, violations) -> verdict.Check:
    """Count all violations, and take the first ones by partition and offset as witnesses."""
    count = violations.agg({"records": "sum"}).first()[0] or 0
    if not count:
        return verdict.Check(name)
    first = violations.orderBy("partition", "offset").limit(verdict.WITNESSES).collect()
    return verdict.Check(name, count, [{k: row[k] for k in _WITNESS} for row in first])
