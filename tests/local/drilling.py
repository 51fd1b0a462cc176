# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs drills on a local cluster, and reads what they have kept: tests look at that, and measure nothing themselves."""

from __future__ import annotations

import json

from tests.local.watching import leftovers
from tests.support import collection_finder
from tests.support.watching import cluster_is_whole

collection_finder.install()

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (  # noqa: E402
    SHORT,
)


def reports(cluster):
    return cluster.home / "reports" / cluster.name


def kept(cluster):
    """What runs of drills have kept, the latest last."""
    found = sorted((reports(cluster) / "drills").glob("*.json"))
    return [json.loads(path.read_text()) for path in found]


def drilled(cluster, names, *arguments, told=""):
    """Run drills that go as expected; return their rows by name. `told`: what the run says, too."""
    run = cluster.play("drill.yml", "-e", f"drill={names}", *arguments, timeout=2400)
    assert "went as expected" in run.text and "VERDICT" in run.text
    # Ansible wraps long lines
    assert told in " ".join(run.text.split()), run.text
    newest = kept(cluster)[-1]
    assert newest["over"] and not newest["next"]
    rows = {row["case"]: row for row in newest["drills"]}
    assert list(rows) == newest["names"]
    assert {row["verdict"] for row in rows.values()} == {"as expected"}
    # whoever counts beside it, the judge has read what each has written
    for row in rows.values():
        (told,) = {each["verdict"] for each in row["seen"]["judged"]}
        assert told == "pass" and "judge: 0 of " in row["observed"], row
    page = (reports(cluster) / "index.html").read_text()
    assert all(name in page for name in rows)
    results = json.loads(sorted(reports(cluster).glob("*/drill.json"))[-1].read_text())
    assert results["verdict"] == "pass" and results["over"]
    assert {each["case"] for each in results["cases"]} == set(rows)
    assert {each["drill"] for each in results["cases"]} <= set(SHORT)
    assert leftovers(cluster) == [] and cluster_is_whole(cluster)
    return rows
