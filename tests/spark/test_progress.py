# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far the job says it is."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from flow.messages import progress
from flow.messages.meanwhile import meanwhile

from tests.support import verdict_schema
from tests.support.outside import wait_until


@pytest.mark.parametrize(
    "records, of, seconds, line",
    [
        (0, 10_000_000, 3.0, "written 0 of 10,000,000 records"),
        (5, 10, 0.0, "written 5 of 10 records"),
        (
            3_400_000,
            10_000_000,
            7.1,
            "written 3,400,000 of 10,000,000 records, 478,873/s, about 14 s left",
        ),
        (1000, 100_000, 1.0, "written 1,000 of 100,000 records, 1,000/s, about 1 min 39 s left"),
        (10, 100_000, 1.0, "written 10 of 100,000 records, 10/s, about 2 h 46 min left"),
        (10, 10, 2.0, "written 10 of 10 records, 5/s, about 0 s left"),
    ],
)
def test_a_line_says_how_far_how_fast_and_how_long(records, of, seconds, line):
    assert progress.Progress("written", records, of, seconds).line() == line


def read(path):
    """The file as it is now, None where there is none; a half-written one is an error."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def test_the_file_is_there_while_the_step_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.01)
    path = tmp_path / progress.NAME
    with progress.following(str(tmp_path), "read", 100, lambda: 120):
        found = wait_until(lambda: read(path), 10, "the file")
        assert (found["step"], found["records"], found["of"]) == ("read", 100, 100)
        assert found["line"].startswith("read 100 of 100 records")
    assert not list(tmp_path.iterdir())


def test_what_is_waited_for_is_said_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.01)
    path = tmp_path / progress.NAME
    with progress.waiting(str(tmp_path), "probes", lambda: "waiting for the probes retention"):
        found = wait_until(lambda: read(path), 10, "the file")
        assert found["line"].startswith("waiting for the probes retention, for ")
        assert (found["step"], found["records"], found["of"]) == ("probes", 0, 0)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_counted_or_written_is_not_worth_failing_for(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.01)
    asked = threading.Event()

    def count():
        asked.set()
        raise OSError("gone")

    (tmp_path / "file").touch()
    for directory, counting in ((tmp_path, count), (tmp_path / "file", lambda: asked.set() or 1)):
        asked.clear()
        with progress.following(str(directory), "read", 100, counting):
            assert asked.wait(10)
    assert not (tmp_path / progress.NAME).exists()


def test_one_moment_that_cannot_be_counted_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.01)
    failing = iter([OSError("not now")])

    def count():
        for error in failing:
            raise error
        return 50

    with progress.following(str(tmp_path), "read", 100, count):
        found = wait_until(lambda: read(tmp_path / progress.NAME), 10, "the file")
    assert found["records"] == 50


def test_records_read_are_told_by_the_tasks_that_are_done(spark, tmp_path):
    """Two of four tasks have ended, the others wait: half of the records."""
    gate = tmp_path / "gate"

    def one(number, _nothing):
        while number > 1 and not os.path.exists(gate):
            time.sleep(0.05)
        return [number]

    count = progress.tasks_done(spark, 1000)
    assert count() == 0
    tasks = spark.sparkContext.parallelize(range(4), 4)
    with ThreadPoolExecutor(1) as other:
        job = other.submit(tasks.mapPartitionsWithIndex(one).collect)
        try:
            wait_until(lambda: count() == 500, 60, "two of four tasks are done")
        finally:
            gate.touch()
        assert job.result(60) == [0, 1, 2, 3]
    assert count() >= 500, "it never falls"


def test_a_run_says_how_far_it_is(spark, cluster, tmp_path, monkeypatch):
    """Each of two producers has at most 1,000 records under way, and each of those waits for 0.3 s:
    12,000 take 3.6 s on the fastest machine, and attempts are written down every second.
    """
    import job
    from flow import steps

    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.05)
    seen, over = [], threading.Event()

    def look():
        while not over.wait(0.02):
            seen.append(read(tmp_path / progress.NAME))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        servers = f"--bootstrap-servers={cluster.bootstrap_servers}"
        where = [f"--ledger={tmp_path}/ledger", f"--output={tmp_path}"]
        size = ["--records=24000", "--partitions=12", "--producers=2", "--groups=0"]
        slow = ["queue.buffering.max.messages=1000", "linger.ms=300"]
        slowly = [f"--producer-property={each}" for each in slow]
        assert steps.run(job.arguments(["run", servers, *where, *size, *slowly])) == 0
    finally:
        over.set()
        watcher.join()
    acknowledged = verdict_schema.read(tmp_path / "verdict.json")["timing"]["acknowledged"]
    assert sum(acknowledged["records"]) == 24_000, "each acknowledgement has its time"
    told = [moment for moment in seen if moment]
    steps_told = [moment["step"] for moment in told]
    assert steps_told == sorted(steps_told, key=["written", "read"].index)
    written = {moment["records"] for moment in told if moment["step"] == "written"}
    assert len(written) > 2, "it does not only say that it begins and ends"
    for step in ("written", "read"):
        counts = [moment["records"] for moment in told if moment["step"] == step]
        assert counts and counts == sorted(counts), step
        assert all(0 <= count <= 24_000 for count in counts)
    assert not (tmp_path / progress.NAME).exists()


@pytest.mark.parametrize("at_once", [True, False])
def test_what_is_looked_at_meanwhile_goes_on_after_a_look_that_failed(at_once):
    looks, enough = [], threading.Event()

    def look():
        looks.append(time.monotonic())
        if len(looks) == 1:
            raise OSError("the disk is full")
        enough.set()

    began = time.monotonic()
    with meanwhile("test", look, 0.2, at_once):
        assert enough.wait(30)
    assert looks[0] - began >= (0 if at_once else 0.2)
    assert looks[1] - looks[0] >= 0.2
    done = len(looks)
    time.sleep(0.5)
    assert len(looks) == done, "it ends with the context"
