# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory of reports as runs leave it, made without a cluster.

The package `flow` must be on sys.path (conftest.py of the tests does that).
"""

from __future__ import annotations

import json

from tests.support import verdicts

HOSTILE_CASE = verdicts.HOSTILE


def drilled(rows, **more):
    """What playbooks/drill.yml keeps; `rows`: (case, verdict, pause in ms)."""
    told = [
        {
            "case": case,
            "verdict": verdict,
            "pause_ms": pause_ms,
            "observed": f"3 led after 0.4 s; judge: 36,510 acknowledged; {verdict}; {'x' * 20}",
        }
        for case, verdict, pause_ms in rows
    ]
    names = [case for case, _verdict, _pause in rows]
    return {"cluster": "local", "names": names, "next": "", "over": True, "drills": told, **more}


def measured(case, verdict, missing=(), rate=None):
    """A row of playbooks/guarantees.yml with what was seen."""
    counts = [200, 180, 0, 0, 0, 0, 0, 40, 210, 190]
    seen = {
        "acknowledged": 21_503,
        "lost": len(missing),
        "groups": [{"name": "g", "missing": list(missing)}],
        "timeline": {"start_ms": 1_790_000_000_000, "bucket_ms": 100, "records": counts},
        "moments": [
            {"at_ms": 1_789_999_999_000, "leader": 1, "isr": [1, 2, 3], "controller": 2},
            {"at_ms": 1_790_000_000_400, "leader": 2, "isr": [2, 3], "controller": 2},
        ],
        "measured": {"rate": rate, "at_ms": 1_790_000_000_200},
    }
    lost = f"{len(missing)} lost"
    return {
        "case": case,
        "done": "all brokers killed, logs cut to the last flush",
        "expected": "lost is what was not flushed, whatever acks",
        "observed": f"21,503 acknowledged; {lost}; killed leader's files had 20,529 of 20,532",
        "pause_ms": 1234,
        "verdict": verdict,
        "wrong": ["2 acknowledged records are lost"] if verdict.startswith("NOT") else [],
        "open": [],
        "seen": seen,
        "fault": {"at_ms": 1_790_000_000_200, "to_ms": 1_790_000_000_700, "label": "all killed"},
    }


def clients():
    """What playbooks/drill.yml keeps of drills of clients: a queue, and partitions that grow under lag."""
    begin = 1_790_000_000_000
    queue = measured("task_queue", "as expected")
    queue["fault"] = {}
    counts = [(step, 1 + step // 32) for step in range(128)]
    queue["seen"]["measured"] = {
        "backlog": [
            [begin + 250 * step, max(0, round(20 - abs(step - 60) / 3)), consumers]
            for step, consumers in counts
        ]
    }
    grown = measured("partitions_grown", "as expected")
    grown["fault"] = {"at_ms": begin + 8000, "to_ms": begin + 11900, "label": "partitions doubled"}
    grown["seen"]["timeline"] = {
        "start_ms": begin,
        "bucket_ms": 100,
        "records": [2] * 240,
        "of": "Records that were copied,",
    }
    grown["seen"]["measured"] = {
        "backlog": [[begin + 250 * step, 10 + 4 * min(step, 96 - step), 4] for step in range(97)]
    }
    rows = [queue, grown, measured(HOSTILE_CASE, "NOT as expected")]
    rows[2]["seen"]["measured"] = {"backlog": [[begin, 3, 1], [begin, 4, 1]]}
    names = [each["case"] for each in rows]
    return {"cluster": "local", "names": names, "over": True, "drills": rows}


def commits():
    """What playbooks/drill.yml keeps of commit_modes: a group has skipped records, as it should, another is slow."""
    row = measured("commit_modes", "as expected")
    row["seen"]["groups"] = [
        {"name": "kafkaops-drill-commit-modes-after", "missing": [], "late": 3},
        {"name": "kafkaops-drill-commit-modes-before", "missing": [], "skipped": ["120", "121"]},
    ]
    row["seen"]["late"] = 3
    return {"cluster": "local", "names": [row["case"]], "over": True, "drills": [row]}


def guarantees(**more):
    """What playbooks/guarantees.yml keeps."""
    rows = [
        measured("acks=all, all_power_cut", "as expected", ["7", "9", "8", "1200"], 18_000),
        measured("acks=all, min ISR 1, unclean election off, last_in_sync_killed", "as expected"),
        measured(HOSTILE_CASE, "NOT as expected", ["3", "4"]),
        {"case": "acks=1, disk_gone", "verdict": "open", "open": ["nobody leads"], "seen": None},
    ]
    names = [each["case"] for each in rows]
    return {"cluster": "throwaway", "names": names, "over": True, "drills": rows, **more}


def benchmark(**more):
    """What playbooks/benchmark.yml keeps: a row, one of a hostile name that lost records, one that failed."""
    rows = []
    for case, verdict, rate in (
        ("first row", "as expected", 20_000),
        (HOSTILE_CASE, "NOT as expected", 60_000),
    ):
        latency = {"p50": 1.25, "p95": 2.5, "p99": 30.0, "p99.9": 400.0, "max": 5000.0}
        rows.append(
            {
                "case": case,
                "done": "async (acks=all, many in flight), records of 100 B",
                "observed": f"{rate:,} records/s",
                "pause_ms": None,
                "verdict": verdict,
                "wrong": ["2 acknowledged records are not there"] if rate > 20_000 else [],
                "open": [],
                "setup": {"record_bytes": 100},
                "load": {"latency_ms": latency, "parts": [19_000.0, 20_000.5, 21_000.0, 18_000.0]},
                "ratio": rate / 20_000,
                "limit": "client core",
                "why": "one thread of a producer fills its core; busiest producer thread 97 % of a core",
                "change": {"ratio": 0.98},
                "not_compared": ["the run of 20261101T100000Z: 60 s of load a row, not 3"],
                "seen": {"acknowledged": 60_001, "lost": 0, "measured": {"rate": rate}},
            }
        )
    rows.append({"case": "mode=sync", "verdict": "open", "open": ["it was late"], "load": None})
    witness = {
        "producer": {"records": 500, "rate": 1234.5},
        "consumer": {"records": 500, "rate": 9876.5},
        "there": 500,
    }
    names = [each["case"] for each in rows]
    told = {"cluster": "local", "names": names, "over": True, "drills": rows, "witness": witness}
    return {**told, **more}


def kept_reports(directory):
    """Eight runs of six weeks: good, bad, interrupted, and one whose verdict is cut off."""
    good, bad = verdicts.passing(), verdicts.failing()
    for where, document in (
        ("20261001T100000Z", good),
        ("drills/20261002T100001Z", bad),
        ("inspections/20261104T100000Z", good),
    ):
        place = directory / where
        place.mkdir(parents=True)
        kind = "inspection" if where.startswith("inspections") else "verdict"
        (place / f"{kind}.json").write_text(json.dumps(document))
        (place / f"{'inspection' if kind == 'inspection' else 'report'}.html").write_text("a page")
    # one that goes on, one that was cut off, and links that are no runs
    (directory / "20261106T100000Z").mkdir()
    (directory / "20261105T100000Z").mkdir()
    (directory / "20261105T100000Z" / "verdict.json").write_text('{"verdict": "pa')
    (directory / "latest").symlink_to("20261001T100000Z")
    runs = {
        "20261002T100000Z": drilled(
            [("leader_killed", "as expected", 1400), ("broadcast", "as expected", None)]
        ),
        "20261102T100000Z": drilled(
            [("leader_killed", "NOT as expected", 9000), (HOSTILE_CASE, "open", None)]
        ),
        "20261103T100000Z": drilled(
            [("leader_killed", "as expected", 1300)],
            names=["leader_killed", "broadcast"],
            next="broadcast",
            interrupted=True,
        ),
    }
    for when, told in runs.items():
        (directory / "drills" / f"{when}.json").write_text(json.dumps(told))
    (directory / "guarantees").mkdir()
    told = json.dumps(guarantees(drills=guarantees()["drills"][:1]))
    (directory / "guarantees" / "20261103T110000Z.json").write_text(told)
