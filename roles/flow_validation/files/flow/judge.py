# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Reads the topic, applies the checks, writes verdict.json and report.html."""

from __future__ import annotations

import os
import platform
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from flow import (
    checks,
    continuity,
    files,
    ledger,
    listeners,
    probes,
    progress,
    reading,
    report,
    schema,
    timing,
    transactions,
    verdict,
)
from flow.connector import spark_versions

# Seconds beyond transaction.timeout.ms, until a transaction must have been aborted by the cluster.
_TRANSACTION_GRACE = 30
_WITNESS = ("partition", "offset", "producer", "attempt", "sequence", "records", "reason")


@dataclass(frozen=True)
class Results:
    """What judging found."""

    checks: list  # verdict.Check of what was judged, in the order of verdict.MEANING
    now: dict  # partition -> verdict.Partition at the moment of reading
    read: dict  # partition -> records read
    doubtful: set  # partitions that were looked at record by record
    seen: timing.Observed  # when records were appended
    resent: int = 0  # copies that producers wrote themselves
    probes: list = field(default_factory=list)  # probes.Outcomes; their checks are in `checks`


def judge(spark, options, plan, cluster, groups, for_java, rows, attempts, watch) -> Results:
    """Read the topic and apply every check; `groups`: the run's continuity.Groups."""
    layout = plan.transactions()
    hanging: list = []
    if layout:
        with watch.step("wait for open transactions"):
            # of a producer that died the cluster ends them after a while, and looks every 10 s
            limit = plan.transaction_timeout + _TRANSACTION_GRACE
            ends, stable = cluster.stable_ends(plan.topic, limit)
            hanging = transactions.still_open(ends, stable, limit)
    now = cluster.positions(plan.topic, wait=5)

    def deliver() -> dict:
        asked = continuity.sample(plan.first_offsets(), {n: p.end for n, p in now.items()})
        with watch.step("consumer groups"):
            return groups.deliveries(asked)

    with ThreadPoolExecutor(1) as other:  # groups mostly wait: for members, and for brokers
        handed = other.submit(deliver) if plan.groups else None
        found, read, doubtful, seen, resent = _findings(
            spark, options, plan, now, for_java, rows, attempts, watch, hanging
        )
    if handed:
        deliveries = handed.result()
        if layout:  # markers and aborted records are handed to nobody
            deliveries = continuity.without(deliveries, ledger.acknowledged_offsets(rows))
        found["continuity"] = continuity.check(plan.first_offsets(), deliveries, doubtful)
    acked = {r.partition for r in rows if r.outcome == schema.ACKED}
    if not plan.after:
        # The produce step was killed: it may not have come to every broker, which is no broker's fault.
        acked = set(range(plan.partitions))
    moments = [plan.before, plan.after, now]
    found["coverage"] = verdict.coverage(
        list(plan.brokers),
        moments,
        acked,
        options.expected_brokers,
        listeners.troubles(plan.listeners),
    )
    found["durability"] = verdict.durability(
        plan.before, plan.min_isr, plan.planned_replication, plan.planned_min_isr
    )
    total = sum(read.values())
    reason = "no record could be read" if sum(1 for r in rows) else "nothing was written"
    found["emptiness"] = verdict.Check(
        "emptiness", 0 if total else 1, [] if total else [{"reason": reason}]
    )
    judged = [found[name] for name in verdict.MEANING if name in found]
    return Results(judged, now, read, doubtful, seen, resent)


def conclude(spark, options, plan, rows, results: Results, attempts: list, watch) -> int:
    """Decide, write verdict.json and report.html, print one sentence; returns the exit code."""
    read = results.read
    counts = {schema.ABORTED: 0, **ledger.counts(rows), "read": sum(read.values())}
    open_producers = ledger.unfinished(rows, plan.partitions, plan.producers, plan.records)
    unclear = probes.unclear(results.probes)
    if results.resent:
        unclear.append(
            f"{results.resent:,} records are there twice, because their producer gave up waiting"
            " and sent them again"
        )
    kind, summary = verdict.decide(results.checks, counts, open_producers, unclear)
    told_of = ["acked", "read", "unknown", "failed"]
    if plan.transactions():
        told_of.append(schema.ABORTED)
    if results.resent:
        counts["resent"] = results.resent
        told_of.append("resent")
    if kind == verdict.PASS:
        if plan.transactions():
            summary += f"; {counts[schema.ABORTED]:,} of aborted transactions stayed hidden"
        summary += f", through brokers {', '.join(str(b) for b in plan.brokers)}"
        if plan.listeners:
            names = ", ".join(each["name"] for each in plan.listeners)
            summary += f"; each of them answers on {names}, too"
        if results.probes:
            names = ", ".join(each.name for each in results.probes)
            summary += f"; probes found nothing wrong: {names}"
    document = {
        "schema_version": verdict.SCHEMA_VERSION,
        "run_id": plan.run_id,
        "cluster_id": plan.cluster_id,
        "verdict": kind,
        "summary": summary,
        "started": plan.started,
        "checks": [with_topic(c.to_json(), plan.topic) for c in results.checks],
        "counts": {name: counts[name] for name in told_of},
        "topic": {
            "name": plan.topic,
            "partitions": plan.partitions,
            "replication_factor": plan.replication,
            "min_insync_replicas": plan.min_isr,
            "message_timestamp_type": plan.timestamp_type,
            "records": plan.records,
            "record_size_bytes": plan.record_size,
            "transaction_records": plan.transaction_records,
            "producers": plan.producers,
            "partitions_checked_record_by_record": sorted(results.doubtful),
            "produce_error": plan.produce_error,
        },
        "brokers": _brokers(plan, rows, results),
        "partitions": _partitions(rows, results),
        "listeners": plan.listeners,
        "probes": [each.to_json() for each in results.probes],
        "timing": timing.to_json(results.seen, _acknowledgements(attempts)),
        "errors": ledger.errors(attempts),
        "versions": versions(spark),
        "timings": watch.total(),
    }
    page = report.page(document)
    return publish(options.output, "verdict.json", document, "report.html", page)


def publish(output: str, name: str, document: dict, page_name: str, page: str) -> int:
    """Write a document and its page into `output`, print its sentence; returns the exit code."""
    files.write(os.path.join(output, page_name), page)
    # last, because its presence says that all is complete
    files.write_json(os.path.join(output, name), document)
    print(f"{document['verdict'].upper()}: {document['summary']}")
    return verdict.EXIT_CODE[document["verdict"]]


def _findings(spark, options, plan, now, for_java, rows, attempts, watch, hanging: list) -> tuple:
    """({check id: Check}, partition -> records read, partitions checked one record at a time,
    timing.Observed, records sent again). hanging: witnesses of transactions that nobody ends.
    """
    layout = plan.transactions()
    if layout:
        for_java = {**for_java, "isolation.level": "read_committed"}
    clock = timing.clock(
        plan.timestamp_type, _produce_seconds(options, plan), plan.partitions, plan.records
    )
    spans = {
        n: (max(plan.before[n].start if n in plan.before else 0, p.start), p.end)
        for n, p in now.items()
    }
    # what stood there before the first write is none of this run's business
    spans = {
        n: (max(s, plan.before[n].end if n in plan.before else s), e) for n, (s, e) in spans.items()
    }
    stable = {witness["partition"]: witness["offset"] for witness in hanging}
    spans = {n: (s, max(s, min(e, stable.get(n, e)))) for n, (s, e) in spans.items()}

    def source(spans, check_crcs):
        return reading.rows(
            spark, plan.topic, spans, for_java, options.bootstrap_servers, check_crcs
        )

    def summary(spans, check_crcs):
        kafka = source(spans, check_crcs)
        return checks.summary(schema.with_header(kafka, plan.run_id, plan.record_size, clock))

    writing = transactions.writers(rows, layout) if layout else checks.writers(rows)
    division = (layout.records, transactions.ABORT_EVERY) if layout else ()

    def confirmation(spans, check_crcs):
        kafka = source(spans, check_crcs)
        return checks.confirmation(
            schema.with_agreement(kafka, plan.run_id, plan.record_size, writing, clock, division)
        )

    total = sum(end - start for start, end in spans.values())
    count = progress.tasks_done(spark, total)
    with watch.step("read and judge"), progress.following(options.output, "read", total, count):
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
        readable = {n: span for n, span in spans.items() if n in done or n in readable}
        read: dict = {}
        for group in groups:
            read[group.partition] = read.get(group.partition, 0) + group.records
        if layout:
            doubtful = transactions.suspicious(read, done, rows, spans, layout)
        else:
            doubtful = checks.suspicious(groups, rows, spans)
        seen = timing.observe(clock, moments)
    found, resent = {name: verdict.Check(name) for name in (*checks.EXACT, "gap")}, 0
    border = verdict.gaps_at_the_borders(plan.before, plan.after, now)
    if doubtful:
        with watch.step("name what is wrong"):
            part = {n: s for n, s in readable.items() if n in doubtful}
            kafka = source(part, check_crcs)
            exact, resent = _exact(spark, plan, kafka, rows, attempts, doubtful, spans)
            found.update(exact)
    found["gap"] = told(found["gap"], border)
    if layout:
        found["atomicity"] = told(found.get("atomicity", verdict.Check("atomicity")), hanging)
    found["corrupt"] = complained(found["corrupt"], complaints)
    return found, read, doubtful, seen, resent


def _produce_seconds(options, plan) -> float:
    """How long records were produced; of a produce step that was killed, as far as its attempts
    noted.
    """
    noted = [] if plan.produce_seconds else files.load_attempts(options.ledger)
    return plan.produce_seconds or max((a.seconds for a in noted), default=0.0)


def _exact(spark, plan, kafka, rows, attempts, doubtful: set, spans: dict) -> tuple:
    """The checks that look at every record, on the partitions where counting proved nothing:
    ({check id: Check}, records that producers sent again).
    """
    from pyspark import StorageLevel

    records = schema.with_fields(kafka, plan.run_id, plan.record_size)
    records = records.persist(StorageLevel.DISK_ONLY)  # 40 bytes a record, not the payload
    try:
        part = files.rows_frame(spark, plan, [r for r in rows if r.partition in doubtful])
        frame = spark.createDataFrame(
            [(n, *spans[n]) for n in sorted(doubtful) if n in spans],
            "partition int, first bigint, end bigint",
        )
        found = {name: tally(name, check(records, part)) for name, check in checks.EXACT.items()}
        layout = plan.transactions()
        if layout:
            found["gap"] = tally("gap", checks.missing(records, part, frame))
            mine = [r for r in rows if r.partition in doubtful]
            found["atomicity"] = tally("atomicity", checks.atomicity(records, part, mine, layout))
        else:
            found["gap"] = tally("gap", checks.gap(records, frame))
        resent = 0
        renewed = ledger.renewed(attempts)
        if found["duplicate"].count and renewed and not layout:
            copies = checks.resent(records, part, renewed).persist()
            resent = copies.agg({"again": "sum"}).first()[0] or 0
            others = records.join(copies, checks.KEY, "left_anti")
            found["duplicate"] = tally("duplicate", checks.duplicate(others, part))
            copies.unpersist()
        if not resent and not any(c.count for c in found.values()):
            moved = tally("order", checks.displaced(records, part))
            found["order"] = moved
        return found, resent
    finally:
        records.unpersist()


def told(check: verdict.Check, more: list) -> verdict.Check:
    """The check with what was seen beside the records: ends, starts, epochs, open transactions."""
    count = check.count + sum(w["records"] for w in more)
    return verdict.Check(check.id, count, more + check.witnesses)


def complained(corrupt: verdict.Check, complaints: list) -> verdict.Check:
    """The check with the batches that Kafka's own consumer refuses, which hold records counted already."""
    count = max(corrupt.count, len(complaints))
    return verdict.Check("corrupt", count, corrupt.witnesses + complaints)


def _acknowledgements(attempts: list) -> timing.Acknowledgements:
    """Of all attempts together."""
    total = timing.Acknowledgements()
    for attempt in attempts:
        if attempt.acknowledgements:
            total.merge(timing.Acknowledgements(**attempt.acknowledgements))
    return total


def tally(name: str, violations) -> verdict.Check:
    """Count all violations, and take the first ones by partition and offset as witnesses."""
    count = violations.agg({"records": "sum"}).first()[0] or 0
    if not count:
        return verdict.Check(name)
    first = violations.orderBy("partition", "offset").limit(verdict.WITNESSES).collect()
    return verdict.Check(name, count, [{k: row[k] for k in _WITNESS} for row in first])


def with_topic(check: dict, topic: str) -> dict:
    """A check of verdict.json whose witnesses name the topic, too."""
    witnesses = [{"topic": topic, **w} if "partition" in w else w for w in check["witnesses"]]
    return {**check, "witnesses": witnesses}


def _by_partition(rows, outcome: str) -> dict:
    total: dict = {}
    for row in rows:
        if row.outcome == outcome:
            total[row.partition] = total.get(row.partition, 0) + row.records
    return total


def _partitions(rows, results: Results) -> list:
    read = results.read
    acked, unknown = _by_partition(rows, schema.ACKED), _by_partition(rows, schema.UNKNOWN)
    return [
        {
            "partition": n,
            "leader": p.leader,
            "replicas": list(p.replicas),
            "isr": list(p.isr),
            "start": p.start,
            "end": p.end,
            "acked": acked.get(n, 0),
            "read": read.get(n, 0),
            "unknown": unknown.get(n, 0),
            "longest_pause_ms": timing.longest_pause_ms(results.seen, [n]),
        }
        for n, p in sorted(results.now.items())
    ]


def _brokers(plan, rows, results: Results) -> list:
    """By the leaders before the first write; leadership may have moved since."""
    acked, read = _by_partition(rows, schema.ACKED), results.read
    result = []
    for broker, address in plan.brokers.items():
        led = [n for n, p in plan.before.items() if p.leader == broker]
        result.append(
            {
                "broker": broker,
                "address": address,
                "led": len(led),
                "acked": sum(acked.get(n, 0) for n in led),
                "read": sum(read.get(n, 0) for n in led),
                "longest_pause_ms": timing.longest_pause_ms(results.seen, led),
            }
        )
    return result


def versions(spark) -> dict:
    """Of everything that took part."""
    import confluent_kafka

    scala = spark_versions()[1]
    java = spark.sparkContext._jvm.java.lang.System.getProperty("java.version")
    return {
        "spark": spark.version,
        "scala": scala,
        "java": java,
        "python": platform.python_version(),
        "confluent_kafka": confluent_kafka.__version__,
        "librdkafka": confluent_kafka.libversion()[0],
    }
