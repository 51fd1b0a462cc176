# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""From what was found to verdict.json and report.html."""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any, Iterable, Optional

from flow.engine import executors
from flow.engine.connector import spark_versions
from flow.judge import verdict
from flow.judge.judge import Judge, Results
from flow.messages import stopping
from flow.messages.failure import TRACE
from flow.messages.output import as_json, remove, say, write_all
from flow.prepare import leadership
from flow.present import exports, report, sentence
from flow.probe import probes
from flow.record import complaints, files, ledger, schema, timing


def conclude(judging: Judge, results: Results) -> int:
    """Decide, write verdict.json and report.html, print one sentence; returns the exit code."""
    plan, rows = judging.plan, judging.rows
    counts = _counts(plan, rows, results)
    open_producers = ledger.unfinished(rows, plan.partitions, plan.producers, plan.records)
    unclear = _unclear(plan, rows, results, open_producers)
    if open_producers:
        unclear += [
            *_refusing(plan, counts),
            *_complaint(complaints.errors(judging.attempts), plan.topic),
        ]
    kind, passed = verdict.decide(results.checks, counts, open_producers, unclear)
    unclear = [*verdict.unfinished(counts, open_producers), *unclear]
    found = [with_topic(check.to_json(), plan.topic) for check in results.checks]
    if kind == verdict.PASS:
        summary = f"{passed}{_besides(plan, results, counts)}"
    elif kind == verdict.FAIL:
        summary = _accusation(plan, results, found, unclear)
    else:
        summary = passed
    document = {
        "schema_version": verdict.SCHEMA_VERSION,
        "run_id": plan.run_id,
        "cluster_id": plan.cluster_id,
        "verdict": kind,
        "summary": summary,
        "started": plan.started,
        "ended": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "checks": found,
        "unclear": unclear,
        "what_now": sentence.what_now(
            vars(judging.options),
            plan.topic,
            kind == verdict.PASS,
            _goes(judging.options, plan),
            not results.now,
            {each.name: each.topic for each in results.probes if each.kept},
        ),
        "counts": {name: counts[name] for name in _told(plan, counts)},
        **_evidence(judging, results),
    }
    return publish(
        judging.options.output, "verdict", document, "report.html", report.page(document)
    )


def _counts(plan: files.Plan, rows: list, results: Results) -> dict:
    """Records by what became of them."""
    planned = (plan.partitions, plan.producers, plan.records)
    counts = {schema.ABORTED: 0, **ledger.counts(rows), "read": sum(results.read.values())}
    counts["never_sent"] = ledger.never_sent(rows, *planned)
    if results.resent:
        counts["resent"] = results.resent
    if results.others:
        counts["others"] = results.others
    return counts


def _told(plan: files.Plan, counts: dict) -> list:
    """Names of the counts that a person is told."""
    aborted = [schema.ABORTED] if plan.transactions() else []
    rare = [name for name in ("resent", "others") if name in counts]
    return ["acked", "read", "unknown", "failed", *aborted, *rare]


def _unclear(plan: files.Plan, rows: list, results: Results, open_producers: Any) -> list:
    """Sentences about what keeps this run from a verdict of its own."""
    unclear = [*_silence(plan, rows, results), *results.unclear, *probes.unclear(results.probes)]
    if results.resent:
        unclear.append(
            f"{results.resent:,} records are there twice, because their producer gave up waiting"
            " and sent them again"
        )
    if open_producers and plan.produce_error:
        unclear.append(f"the produce step was broken off: {plan.produce_error}")
    return unclear


def _refusing(plan: files.Plan, counts: dict) -> list:
    """A sentence, if nothing was acknowledged, and min.insync.replicas is more than partitions have replicas."""
    fewest = min((len(place.replicas) for place in plan.before.values()), default=plan.min_isr)
    if counts[schema.ACKED] or fewest >= plan.min_isr:
        return []
    few = f"{fewest} replica{'s' * (fewest > 1)}"
    return [
        f"min.insync.replicas is {plan.min_isr}, and there are partitions with {few}: many releases of Kafka"
        " refuse every write then; lower it, or give them more replicas"
    ]


def _complaint(errors: dict, topic: str) -> list:
    """A sentence about the producers' error that says most (error name -> times), if there was one."""
    name = complaints.cause(errors)
    if not name:
        return []
    said = f"{name} ({errors[name]:,} times)"
    if right := complaints.missing_right(name, topic):
        return [f"the producers lacked a right, {said}; allow this user {right}"]
    return [f"the chief error of the producers was {said}"]


def _accusation(plan: files.Plan, results: Results, found: list, unclear: list) -> str:
    """The sentence of a FAIL: the worst first, with places; what stays open is not hidden by it."""
    leaders = {number: place.leader for number, place in results.now.items()}
    summary = sentence.of_failure(plan.topic, found, leaders)
    return f"{summary}; besides, this stays open: {'; '.join(unclear)}" if unclear else summary


def _besides(plan: files.Plan, results: Results, counts: dict) -> str:
    """What else a PASS has shown, to be appended to its sentence."""
    more = ""
    if plan.transactions():
        more += f"; {counts[schema.ABORTED]:,} of aborted transactions stayed hidden"
    more += f", through brokers {', '.join(str(b) for b in plan.brokers)}"
    if results.others:
        more += f"; {results.others:,} records of others stand between them"
    if plan.listeners:
        names = ", ".join(each["name"] for each in plan.listeners)
        more += f"; each of them answers on {names}, too"
    if results.probes:
        names = ", ".join(each.name for each in results.probes)
        more += f"; probes found nothing wrong: {names}"
    return more


def _evidence(judging: Judge, results: Results) -> dict:
    """The part of the verdict that says of what it was found: topic, cluster, times, software."""
    plan, rows, attempts = judging.plan, judging.rows, judging.attempts
    return {
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
        "timing": timing.to_json(
            results.seen,
            _together(timing.Acknowledgements(), (each.acknowledgements for each in attempts)),
            _together(timing.Latencies(), (each.latencies for each in attempts)),
        ),
        "events": events(judging.options.events),
        "leadership": _leadership(plan, results),
        "cluster": plan.cluster or None,
        "settings": _settings(judging) or None,
        "errors": complaints.errors(attempts),
        "versions": versions(judging.spark),
        "timings": judging.watch.total(),
    }


def _settings(judging: Judge) -> dict:
    """Of the run that wrote, and which Spark judges now; nothing of a ledger from before there was such a key."""
    known = judging.plan.settings
    now = {f"judging_{name}": value for name, value in executors.told(judging.spark).items()}
    return {**known, **now} if known else {}


def _goes(options, plan: files.Plan) -> bool:
    """Whether the topic is deleted after a pass."""
    return options.mode == "run" and plan.created and not options.keep


def _silence(plan: files.Plan, rows: list, results: Results) -> list:
    """Sentences about brokers that did not acknowledge anything; of a killed run that is not known."""
    acked = {row.partition for row in rows if row.outcome in (schema.ACKED, schema.ABORTED)}
    moments = [plan.before, plan.after, results.now]
    silent = verdict.leading_none(plan.brokers, moments, acked) if plan.after else []
    if not silent:
        return []
    return [f"broker{'s' * (len(silent) > 1)} {', '.join(map(str, silent))} acknowledged nothing"]


def events(path: str) -> list:
    """What happened to the cluster meanwhile, as whoever did it has written down; it judges nothing.

    A file that is absent or spoilt costs the drawing and no verdict.
    """
    try:
        with open(path, encoding="utf-8") as file:
            found = [
                {"from_ms": int(e["from_ms"]), "to_ms": int(e["to_ms"]), "label": str(e["label"])}
                for e in json.load(file)
            ]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return sorted(found, key=lambda event: event["from_ms"])


def publish(output: str, name: str, document: dict, page_name: str, page: str) -> int:
    """Write a document, NAME.json, into `output`, with its page and what other programs read of it;
    print its sentence and what now; returns the exit code.
    """
    texts = {
        page_name: page,
        f"{name}.prom": exports.prometheus(name, document),
        f"{name}.junit.xml": exports.junit(name, document),
        # last, because its presence says that all is complete
        f"{name}.json": as_json(document),
    }
    code = verdict.EXIT_CODE[document["verdict"]]
    write_all({os.path.join(output, file): text for file, text in texts.items()})
    stopping.conclude(code)
    with suppress(OSError):  # of an earlier run, which these results are behind
        remove(os.path.join(output, TRACE))
    say(f"{document['verdict'].upper()}: {document['summary']}")
    for each in document["what_now"]:
        say(f"what now: {each}")
    return code


def _leadership(plan: files.Plan, results: Results) -> Optional[dict]:
    """What changed while the run wrote, and from then to the moment of judging; None where nobody looked, or what was
    seen is gone: that nothing changed is not known.
    """
    told = plan.leadership
    if not plan.last_seen():
        return told if told.get("changes") else None
    if not told:
        return None
    moments = (leadership.standing(each) for each in (plan.last_seen(), results.now))
    since = leadership.changes(int(time.time() * 1000), *moments)
    room = leadership.MOST_CHANGES - len(told["changes"])
    shown = [asdict(each) for each in since[: max(0, room)]]
    return {
        "changes": [*told["changes"], *shown],
        "left_out": told["left_out"] + len(since) - len(shown),
    }


def _together(total: Any, parts: Iterable[dict]) -> Any:
    """An empty timing.Acknowledgements or timing.Latencies with what these attempts told merged in."""
    for part in parts:
        if part:
            total.merge(type(total)(**part))
    return total


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
