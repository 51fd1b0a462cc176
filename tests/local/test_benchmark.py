# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/benchmark.yml on a local cluster: its table, its guards, and what it leaves, also when it is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

import pytest

from tests.local.watching import leftovers
from tests.support.outside import wait_until
from tests.support.watching import cluster_is_whole

LONGER = ("-e", "benchmark_seconds=2", "-e", "benchmark_tools=false")
NARROW = ("-e", "benchmark_mode=async,none", "-e", "benchmark_seconds=1")


def kept(cluster):
    """What runs of benchmarks have kept, the latest last, with the path of each."""
    found = sorted((cluster.home / "reports" / cluster.name / "benchmarks").glob("*.json"))
    return [(path, json.loads(path.read_text())) for path in found]


def sound(cluster, names):
    """Check what the last run has kept, and that the cluster is as before; return its rows by name, and its JSON."""
    path, told = kept(cluster)[-1]
    rows = {row["case"]: row for row in told["drills"]}
    assert list(rows) == told["names"] and told["over"] and set(names) <= set(rows)
    for row in rows.values():
        assert row["load"]["there"] >= row["seen"]["acknowledged"] > 0 and row["wrong"] == []
        # each consumer has got all, by another client's count
        assert row["load"]["received"] == row["load"]["there"]
        assert row["load"]["usage"]["processes"].keys() == {"1", "2", "3"}
        assert 0 < row["load"]["latency_ms"]["p50"] <= row["load"]["latency_ms"]["max"]
    made = told["witness"]["producer"]
    assert made["records"] == told["witness"]["there"] == told["witness"]["consumer"]["records"]
    page = path.with_suffix(".html").read_text()
    index = (path.parents[1] / "index.html").read_text()
    assert all(name in page and name in index for name in rows)
    assert leftovers(cluster) == [] and cluster_is_whole(cluster)
    return rows, told


def test_guards_refuse_before_anything_is_written(cluster):
    before = cluster.processes()
    known = '{"kafkaops_preflight_accept": ["directories.temporary"]}'
    strict = ("-e", "kafkaops_profile=production", "-e", known)
    for arguments, words in (
        (
            ("-e", "benchmark=mod"),
            "[benchmark.unknown] benchmark=mod: there is no mod, did you mean",
        ),
        (("-e", "benchmark_row_bytes=64TiB"), "[benchmark.no_room] local"),
        (strict, "[benchmark.not_allowed]"),
        ((*strict, "-e", "confirm=other"), "[benchmark.confirm]"),
    ):
        run = cluster.play("benchmark.yml", *arguments, code=2)
        text = " ".join(run.text.split())
        assert words in text and "Remedy: " in text, run.text
    assert cluster.processes() == before and leftovers(cluster) == [] and kept(cluster) == []


def test_check_mode_says_what_would_be_measured_and_writes_nothing(cluster):
    before = kept(cluster)
    run = cluster.play("benchmark.yml", "--check")
    assert run.changed() == 0 and leftovers(cluster) == [] and kept(cluster) == before
    for words in (
        "first row: async",
        "record_bytes=10",
        "rows: 18",
        "takes: about",
        "bytes: at most",
    ):
        assert words in run.text, run.text


def test_rows_are_measured_and_compared_with_the_run_before(either):
    first = either.play("benchmark.yml", *NARROW)
    rows, told = sound(either, ["first row", "mode=none", "first row again"])
    for words in (
        "ROW ",
        "RATIO",
        "P99.9",
        "What limits the rows",
        "Second witness",
        "No earlier run",
    ):
        assert words in first.text, first.text
    assert "3 of 3 rows done, first row again" in first.text and " left" in first.text
    assert told["cluster_id"] and rows["first row"]["ratio"] == 1
    second = either.play(
        "benchmark.yml", *NARROW, "-e", "benchmark=first", "-e", "benchmark_tools=false"
    )
    assert "No earlier run" not in second.text, second.text
    assert "Second witness: none. not asked for" in second.text
    for row in kept(either)[-1][1]["drills"]:
        # where something else takes the machine's cores, nothing is compared, and the reason is told
        busy = row["limit"] == "other processes" or "other processes" in str(row["not_compared"])
        assert busy or row["change"]["runs"] == 1, row
        words = row["not_compared"] if row["change"] is None else ["the run of "]
        assert words and all(each in second.text for each in words), second.text


@pytest.mark.soak
def test_a_run_under_other_conditions_is_not_compared(either):
    either.play("benchmark.yml", *NARROW, "-e", "benchmark=first", "-e", "benchmark_tools=false")
    third = either.play("benchmark.yml", *NARROW[:2], "-e", "benchmark=first", *LONGER)
    assert "No comparable run of this cluster" in third.text, third.text
    assert "1 s of load a row, not 2" in third.text, third.text


def of_modules(cluster):
    """Python processes of this cluster's playbooks: they have its home in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes()
                own = (
                    f"KAFKAOPS_HOME={cluster.home}\0".encode() in (folder / "environ").read_bytes()
                )
                if own and b"python" in words and b"supervisord" not in words:
                    found.append(int(folder.name))
    return found


@pytest.mark.soak
@pytest.mark.parametrize("everything", [False, True], ids=["the_playbook", "every_process"])
def test_a_run_that_is_killed_in_mid_row_leaves_nothing_for_long(either, everything):
    """Its row ends with the playbook, and removes its topics. Where it is killed, too, the next run does."""
    count = len(kept(either))
    with either.playing("benchmark.yml", "-e", "benchmark=mode", "-e", "benchmark_seconds=20") as (
        process,
        log,
    ):
        wait_until(
            lambda: leftovers(either) or process.poll() is not None, 240, "its topic is there"
        )
        assert process.poll() is None, log.read_text()[-5000:]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        if everything:
            for pid in of_modules(either):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            assert leftovers(either) != []
        else:
            wait_until(lambda: not leftovers(either), 120, "the row removes its topics")
    wait_until(lambda: not of_modules(either), 120, "no process of it is left")
    either.play("benchmark.yml", *NARROW)
    sound(either, ["mode=none"])
    assert len(kept(either)) > count


@pytest.mark.soak
def test_a_full_run(either):
    run = either.play("benchmark.yml", "-e", "benchmark=all", timeout=2400)
    print(run.text[run.text.index("ROW ") :])
    rows, _told = sound(
        either, ["mode=sync", "record_bytes=10", "compression=lz4", "replication=1"]
    )
    assert len(rows) == 18 and rows["mode=sync"]["ratio"] < 1
    assert rows["retained_bytes=128MiB"]["load"]["there"] > 0


@pytest.mark.soak
def test_a_cluster_that_is_not_whole_is_refused(cluster):
    cluster.supervisorctl("stop", "kafka-3")
    try:
        run = cluster.play("benchmark.yml", *NARROW, "-e", "kafka_drill_patience_seconds=3", code=2)
        assert "[benchmark.not_whole] local: benchmark=all" in " ".join(run.text.split()), run.text
    finally:
        cluster.supervisorctl("start", "kafka-3")
    wait_until(lambda: cluster_is_whole(cluster), 240, "the cluster is whole again")
