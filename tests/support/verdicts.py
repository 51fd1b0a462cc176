# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts as the job writes them, made without a cluster, for tests of what is done with them.

The package `flow` must be on sys.path (conftest.py of the tests does that).
"""

from __future__ import annotations

import math
import random

from flow.judge import verdict
from flow.present import sentence
from flow.record import timing

START_MS = 1_790_000_000_000
HOSTILE = "<script>alert('x')</script>\"&amp;"


def rows(partitions, seconds, rate, clock: timing.Clock, stall=None) -> list:
    """What the judging pass collects of a run; `stall`: (partitions, from, to) in seconds."""
    bucket_ms, every = clock.bucket_ms, clock.sampled_every
    dice = random.Random(1)
    found = []
    for partition in range(partitions):
        for number in range(int(seconds * 1000 / bucket_ms)):
            start = START_MS + number * bucket_ms
            at = number * bucket_ms / 1000
            if stall and partition in stall[0] and stall[1] <= at < stall[2]:
                continue
            warm = min(1.0, 0.25 + at / 2)
            count = int(rate / partitions * bucket_ms / 1000 * warm * dice.uniform(0.75, 1.1))
            found.append(row(partition, start, bucket_ms, count - count // every))
            for share, median in ((0.97, 22.0), (0.0297, 60.0), (0.0003, 300.0)):
                sampled = int(count // every * share + dice.random())
                wait_ms = max(median * math.exp(dice.gauss(0, 0.5)), 1)
                number_of = 1 + math.floor(math.log2(wait_ms) * timing.CLASSES_PER_OCTAVE)
                if sampled:
                    found.append(row(partition, start, bucket_ms, sampled, number_of, wait_ms))
    return [r for r in found if r["records"]]


def row(partition, start_ms, bucket_ms, records, latency_class=None, wait_ms=0.0) -> dict:
    """One collected row of `checks.confirmation`, as far as times go."""
    return {
        "partition": partition,
        "bucket": start_ms // bucket_ms,
        "latency_class": latency_class,
        "records": records,
        "first_ms": start_ms,
        "last_ms": start_ms + (bucket_ms - 1 if records > 1 else 0),
        "least_latency": int(wait_ms * 1000),
        "most_latency": int(wait_ms * 1000),
    }


def acknowledged(seen: timing.Observed, delay_ms=20) -> timing.Acknowledgements:
    """What producers are told of what was observed, a moment later."""
    told = timing.Acknowledgements()
    for buckets in seen.partitions.values():
        for bucket in buckets.values():
            told.add(bucket.last_ms + delay_ms, bucket.records)
    return told


def took(records: int) -> timing.Latencies:
    """How long acknowledgements took, of one record in 128."""
    dice, told = random.Random(2), timing.Latencies(128)
    for _record in range(min(records, 2000)):
        told.add(0.004 * math.exp(dice.gauss(0, 0.6)))
    return told


def change(at_ms, what, partitions, before, after) -> dict:
    """One entry of `leadership.changes`, `at_ms` after the first record."""
    told = {"at_ms": START_MS + at_ms, "what": what, "partitions": list(partitions)}
    return {**told, "before": list(before), "after": list(after)}


def document(kind: str, summary: str, seen: timing.Observed, brokers=3, partitions=6, found=()):
    """A whole verdict around what was observed; `found`: Checks that are not a pass."""
    by_partition = {
        n: sum(b.records for b in buckets.values()) for n, buckets in seen.partitions.items()
    }
    total = sum(by_partition.values())
    failed = {c.id: c for c in found}
    ids = list(range(1, brokers + 1))
    return {
        "schema_version": verdict.SCHEMA_VERSION,
        "run_id": "5e0c8a4f1b7d4e0f9a3c6b2d8e1f7a90",
        "cluster_id": "Yb3mQn0ZQ6mGq0v3H1kX9w",
        "verdict": kind,
        "summary": summary,
        "started": "2026-09-21T14:13:20+00:00",
        "checks": [failed.get(n, verdict.Check(n)).to_json() for n in verdict.MEANING],
        "counts": {"acked": total, "read": total, "unknown": 0, "failed": 0},
        "topic": {
            "name": "kafkaops-flow-5e0c8a4f1b7d",
            "partitions": partitions,
            "replication_factor": 3,
            "min_insync_replicas": 2,
            "message_timestamp_type": seen.clock.kind,
            "records": total,
            "record_size_bytes": 100,
            "producers": 2,
            "partitions_checked_record_by_record": [],
            "produce_error": None,
        },
        "brokers": [
            {
                "broker": b,
                "address": f"broker-{b}.example.org:9092",
                "led": len(range(b - 1, partitions, brokers)),
                "acked": sum(by_partition.get(n, 0) for n in range(b - 1, partitions, brokers)),
                "read": sum(by_partition.get(n, 0) for n in range(b - 1, partitions, brokers)),
                "longest_pause_ms": timing.longest_pause_ms(seen, range(b - 1, partitions, brokers)),
            }
            for b in ids
        ],
        "listeners": [
            {
                "name": "CLIENTS",
                "bootstrap_servers": "clients.example.org:9094",
                "brokers": [
                    {"broker": b, "address": f"clients-{b}.example.org:9094", "trouble": None}
                    for b in ids
                ],
                "trouble": None,
            }
        ],
        "probes": [
            probe("min-isr", "durability", brokers=brokers, refused=brokers, accepted=0),
            probe("compaction", "compaction", keys=3360, written=9360, read=3360),
            probe("retention", "retention", deleted=18, kept=9, latest_after_expiry_ms=231_207),
        ],
        "partitions": [
            {
                "partition": n,
                "leader": n % brokers + 1,
                "replicas": ids[:3],
                "isr": ids[:3],
                "start": 0,
                "end": by_partition.get(n, 0),
                "acked": by_partition.get(n, 0),
                "read": by_partition.get(n, 0),
                "unknown": 0,
                "longest_pause_ms": timing.longest_pause_ms(seen, [n]),
            }
            for n in range(partitions)
        ],
        "timing": timing.to_json(seen, acknowledged(seen), took(total)),
        "ended": "2026-09-21T14:14:02+00:00",
        "unclear": [],
        "what_now": [],
        "leadership": {"changes": [], "left_out": 0},
        "cluster": {
            "mode": "zookeeper",
            "brokers": [{"broker": b, "version": "3.9.2", "protocol": "3.9-IV0"} for b in ids],
            "topic_settings": {"unclean.leader.election.enable": "false"},
        },
        "settings": {
            "host": "admin.example.org",
            "bootstrap_servers": "broker-1.example.org:9092",
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "rate": None,
            "duration_seconds": None,
            "delivery_timeout_seconds": 120.0,
            "request_timeout_seconds": 60.0,
            "groups": 2,
            "transactional": False,
            "producer_properties": {"compression.type": "zstd"},
            "planned_replication_factor": 3,
            "planned_min_isr": 2,
            "expected_brokers": brokers,
            "spark_master": "local[*, 4]",
            "spark_cores": 4,
            "judging_spark_master": "local[*, 4]",
            "judging_spark_cores": 4,
        },
        "errors": {},
        "versions": {
            "spark": "4.0.0", "scala": "2.13", "java": "17.0.12", "python": "3.11.7",
            "confluent_kafka": "2.11.0", "librdkafka": "2.11.0",
        },
        "timings": {
            "start Spark, prepare topic": 4.1, "produce": 20.4, "write ledger": 1.2,
            "read and judge": 9.8, "total": 36.2,
        },
    }  # fmt: skip


def probe(name: str, check: str, **measured) -> dict:
    """The entry of a probe that found nothing wrong."""
    return {
        "name": name,
        "check": check,
        "topic": f"kafkaops-flow-5e0c8a4f1b7d-{name}",
        "violations": 0,
        "troubles": [],
        "unclear": None,
        "topic_kept": False,
        "seconds": 1.667,
        "measured": measured,
    }


def passing() -> dict:
    """Ten million records through three brokers, undisturbed."""
    clock = timing.clock(timing.APPENDED, 20, 12, 10_000_000)
    seen = timing.observe(clock, rows(12, 20, 520_000, clock))
    total = sum(b.records for b in timing.together(seen.partitions.values()).values())
    says = f"{total:,} acknowledged records came back, once, in order, unchanged, through brokers 1, 2, 3"
    return document(verdict.PASS, says, seen, partitions=12)


def failing() -> dict:
    """A broker stopped for two seconds, all stood still for one; records are lost and damaged."""
    clock = timing.Clock(timing.APPENDED, 50, 1)
    stalled = rows(6, 12, 90_000, clock, stall=({1, 4}, 5, 7.15))
    everywhere = range(START_MS + 5200, START_MS + 6400)
    kept = [r for r in stalled if r["bucket"] * 50 not in everywhere]
    seen = timing.observe(clock, kept)
    where = {"topic": "kafkaops-flow-5e0c8a4f1b7d", "partition": 1}
    writer = {"producer": 1, "attempt": 1}
    one = {**writer, "records": 1, "reason": "acknowledged, not read"}
    lost = [
        {
            **where,
            **one,
            "offset": 51_340,
            "sequence": 51_340,
            "records": 390,
            "last_offset": 51_729,
        },
        *({**where, **one, "offset": n, "sequence": n} for n in range(51_730, 51_752, 2)),
    ]
    hole = {**where, "offset": 51_340, "producer": None, "attempt": None, "sequence": None,
            "records": 412, "reason": "offsets 51340 to 51751 hold nothing"}  # fmt: skip
    found = [verdict.Check("loss", 412, lost), verdict.Check("gap", 412, [hole])]
    result = document(verdict.FAIL, "x", seen, found=found)
    leaders = {each["partition"]: each["leader"] for each in result["partitions"]}
    result["summary"] = sentence.of_failure(result["topic"]["name"], result["checks"], leaders)
    result["counts"]["acked"] += 412
    result["leadership"]["changes"] = [
        change(5200, "leader", [1, 4], [2], []),
        change(6400, "leader", [1, 4], [], [3]),
        change(6400, "in_sync", range(6), [1, 2, 3], [1, 3]),
        change(9100, "in_sync", range(6), [1, 3], [1, 2, 3]),
    ]
    result["what_now"] = [
        "topic kafkaops-flow-5e0c8a4f1b7d is kept",
        "the ledger is /var/lib/kafkaops/reports/main/20260921T141320Z/ledger",
        "to judge it again: ansible-playbook playbooks/validate.yml -e flow_validation_ledger="
        "/var/lib/kafkaops/reports/main/20260921T141320Z/ledger",
    ]
    result["settings"].update(rate=1000, duration_seconds=600)
    result["errors"] = {"_MSG_TIMED_OUT": 3}
    why = "broker 2 acknowledged a write with 1 in sync [2] and min.insync.replicas=2"
    result["probes"][0].update(violations=1, troubles=[why], topic_kept=True)
    return result


def inconclusive() -> dict:
    """Nothing is wrong, but not everything could be written; timestamps are the producers'."""
    clock = timing.Clock(timing.CREATED, 20, 1)
    found = [{**r, "latency_class": None} for r in rows(3, 4, 40_000, clock)]
    says = "nothing wrong was found, but 1,200 records unknown and 0 failed of those to be written"
    result = document(verdict.INCONCLUSIVE, says, timing.observe(clock, found), 1, 3)
    result["counts"]["unknown"] = 1200
    result["probes"][0].update(unclear="broker 2 neither accepted nor refused it", measured={})
    return result


def nothing_read() -> dict:
    """The topic was empty."""
    clock = timing.Clock(timing.APPENDED, 10, 1)
    empty = verdict.Check("emptiness", 1, [{"reason": "no record could be read"}])
    return document(verdict.FAIL, "emptiness: 1", timing.observe(clock, []), found=[empty])


def one_record() -> dict:
    """A single record, appended within Kafka's millisecond."""
    clock = timing.Clock(timing.APPENDED, 1, 1)
    seen = timing.observe(clock, [row(0, START_MS, 1, 1, 0, 0.4)])
    return document(verdict.PASS, "1 acknowledged record came back", seen, 1, 1)


def hostile() -> dict:
    """Text from outside that would be markup if it were not escaped."""
    result = failing()
    result["cluster_id"] = result["summary"] = result["topic"]["name"] = HOSTILE
    result["topic"]["produce_error"] = HOSTILE
    result["errors"] = {HOSTILE: 1}
    result["versions"] = {HOSTILE: HOSTILE}
    result["brokers"][0]["address"] = HOSTILE
    result["listeners"][0]["brokers"][0]["trouble"] = HOSTILE + "x" * 300
    result["listeners"].append(
        {"name": HOSTILE, "bootstrap_servers": HOSTILE, "brokers": [], "trouble": HOSTILE}
    )
    result["probes"][1].update(topic=HOSTILE, unclear=HOSTILE + "x" * 300, measured={HOSTILE: 1})
    for witness in result["checks"][0]["witnesses"]:
        witness["reason"] = HOSTILE + "x" * 300
    return result


def many_partitions() -> dict:
    """More partitions than can be drawn, on a cluster with high broker numbers."""
    clock = timing.Clock(timing.APPENDED, 100, 1)
    seen = timing.observe(clock, rows(120, 6, 400_000, clock, stall=({7}, 2, 4)))
    return document(verdict.PASS, "all came back", seen, 9, 120)


ALL = (passing, failing, inconclusive, nothing_read, one_record, hostile, many_partitions)
