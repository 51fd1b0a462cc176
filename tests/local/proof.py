# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change with -e prove=true, and what its verdict says."""

from __future__ import annotations

import json

from tests.local.support import PLAY_TIMEOUT
from tests.support import verdict_schema


def proven(cluster, playbook, *arguments):
    """Run a playbook with a proof; return (Run, verdict). Fail unless it passed, and records flowed all the time."""
    reports = cluster.home / "reports" / cluster.name
    earlier = set(reports.glob("2*"))
    run = cluster.play(playbook, *arguments, "-e", "prove=true", timeout=2 * PLAY_TIMEOUT)
    (report,) = set(reports.glob("2*")) - earlier
    verdict = verdict_schema.read(report / "verdict.json")
    assert verdict["verdict"] == "pass" and "PASS" in run.text, run.text
    events = verdict["events"]
    assert events and all(event["from_ms"] <= event["to_ms"] for event in events)
    assert verdict["timing"]["first_ms"] < events[0]["from_ms"], "records flowed before"
    acknowledged = verdict["timing"]["acknowledged"]
    last = acknowledged["start_ms"] + acknowledged["bucket_ms"] * len(acknowledged["records"])
    assert last > max(event["to_ms"] for event in events), "and afterwards"
    assert not list(report.glob(".client*")), "no password stays behind"
    jobs = cluster.home / "user" / ".ansible_async"
    assert jobs.is_dir(), "jobs are where HOME says, whatever the list of accounts does"
    assert json.loads((report / "events.json").read_text()) == events
    return run, verdict


def labels(verdict):
    """What was drawn into the report, in its order."""
    return [event["label"] for event in verdict["events"]]
