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


def kept_reports(directory):
    """Seven runs of six weeks: good, bad, interrupted, and one whose verdict is cut off."""
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
