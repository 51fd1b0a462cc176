# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A disk that is full while the job writes, names or tells: one sentence, and what was there stays.

The disk is a small one in memory, which only the job sees: it is mounted in a namespace of its own.
"""

import json
import os
import re
import subprocess
import sys

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from flow.messages import failure
from flow.record import files

from tests.support import verdict_schema

# What is in the place first is on the small disk, and what is there last is in the place afterwards.
_ON_A_SMALL_DISK = """
set -e
place=$1 size=$2 kept=$3
shift 3
cp -a "$place" "$kept"
mount -t tmpfs -o "size=$size" none "$place"
cp -a "$kept/." "$place/"
code=0
"$@" || code=$?
rm -rf "$kept"
cp -a "$place" "$kept"
exit $code
"""
_ALONE = ("unshare", "--map-root-user", "--mount")


@pytest.fixture
def on_a_small_disk(tmp_path):
    """A function: run a command while the directory `place` is on a disk of `size`."""
    if subprocess.run([*_ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a namespace for mounts of its own")

    def run(place, size, command, **more):
        place.mkdir(parents=True, exist_ok=True)
        kept = tmp_path / "as-it-was-on-the-small-disk"
        shell = ["bash", "-c", _ON_A_SMALL_DISK, "_", str(place), size, str(kept)]
        done = subprocess.run(
            [*_ALONE, *shell, *command], capture_output=True, text=True, check=False, **more
        )
        return done, kept

    return run


def job_of(cluster, tmp_path, mode, *options):
    import job

    where = [f"--bootstrap-servers={cluster.bootstrap_servers}", f"--output={tmp_path}/out"]
    where += [f"--ledger={tmp_path}/l/ledger", "--master=local[2]"]
    return [sys.executable, job.__file__, mode, *where, *options]


# A worker of PySpark whose task Spark has cancelled just before it asked for the next one: its daemon prints
# that, by nobody's leave, and it says nothing about the job.
_CANCELLED_WORKER = re.compile(
    r"Traceback \(most recent call last\):\n"
    r'  File "\S+/pyspark/daemon\.py", line \d+, in manager\n(?:[ ].*\n)*EOFError\n'
)


def is_one_sentence(done):
    """What was said has the cause, and no stack of Python or Java."""
    said = _CANCELLED_WORKER.sub("", done.stderr)
    assert done.returncode == 3, f"ended with {done.returncode}: {said}"
    for stack in ("Traceback", "\tat ", " ERROR "):
        assert stack not in said, f"{stack!r} in {said}"
    (line,) = [each for each in said.splitlines() if each.startswith("could not run: ")]
    return line


REPLACE = """
import sys
from flow.messages.output import write_all
page, verdict = sys.argv[1:]
try:
    write_all({page: "new", verdict: "v" * 100_000})
except OSError as error:
    print(error.errno, error.filename)
"""


def test_earlier_results_stay_together_where_new_ones_do_not_fit(tmp_path, on_a_small_disk):
    """The page came first, so it could be of the new run, and the verdict of the old one."""
    place = tmp_path / "out"
    place.mkdir()
    for name in ("report.html", "verdict.json"):
        (place / name).write_text("old")
    names = [str(place / name) for name in ("report.html", "verdict.json")]
    done, kept = on_a_small_disk(place, "32k", [sys.executable, "-c", REPLACE, *names])
    assert done.stdout.split() == ["28", str(place / "verdict.json")], done.stderr
    assert {each.name: each.read_text() for each in kept.iterdir()} == {
        "report.html": "old",
        "verdict.json": "old",
    }


@pytest.mark.parametrize("text", ["java.io.IOException: No space left on device", "all is well"])
def test_a_full_disk_of_spark_is_told_by_what_java_says(text):
    full = "SPARK_LOCAL_DIRS" in failure.sentence(RuntimeError(f"o1.collect\n: {text}"), "")
    assert full is ("No space" in text)


def test_a_disk_that_is_full_while_naming_leaves_ledger_and_verdict(
    spark, cluster, tmp_path, on_a_small_disk
):
    import job
    from flow import steps

    options = job_of(cluster, tmp_path, "produce", "--records=120000", "--partitions=3")[2:]
    assert steps.produce(job.arguments([*options, "--topic=named-on-a-full-disk"])) == 0
    intruder = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(3):
        intruder.produce("named-on-a-full-disk", b"somebody else's", partition=number)
    assert intruder.flush(30) == 0
    (tmp_path / "out" / "verdict.json").write_text("earlier")
    ledger = sorted((tmp_path / "l").rglob("*.json"))
    before = [each.read_bytes() for each in ledger]

    place = tmp_path / "sorting"
    verify = job_of(cluster, tmp_path, "verify")
    where = {**os.environ, "SPARK_LOCAL_DIRS": str(place)}
    done, _kept = on_a_small_disk(place, "1m", verify, env=where)
    said = is_one_sentence(done)
    assert "the disk is full where Spark keeps what it sorts; make room there, or" in said
    assert "SPARK_LOCAL_DIRS; then `job.py verify --ledger" in said
    assert [each.read_bytes() for each in ledger] == before
    assert (tmp_path / "out" / "verdict.json").read_text() == "earlier"
    assert steps.verify(job.arguments(verify[2:])) == 1
    found = verdict_schema.read(tmp_path / "out" / "verdict.json")
    assert {c["id"]: c["count"] for c in found["checks"] if c["status"] == "fail"} == {"phantom": 3}


@pytest.mark.soak
@pytest.mark.parametrize("size", ["8k", "24k", "28k", "36k", "44k", "64k"])
def test_a_disk_that_is_full_while_records_are_written_leaves_what_is_known(
    cluster, tmp_path, on_a_small_disk, size
):
    """At its first note, between two of them, or when the ledger is written at last."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "verdict.json").write_text("earlier")
    many = ("--records=3000000", "--partitions=6")
    place = tmp_path / "l"
    done, kept = on_a_small_disk(place, size, job_of(cluster, tmp_path, "run", *many))
    if done.returncode == 0:  # it was large enough
        assert (out / "verdict.json").read_text() != "earlier"
        return
    said = is_one_sentence(done)
    assert "the disk is full" in said and "make room" in said
    assert str(place) in said, "which one"
    assert (out / "verdict.json").read_text() == "earlier"
    plan = files.load_plan(str(kept / "ledger"))
    there = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=30)
    assert (plan.topic in there.topics) is (f"topic {plan.topic} stays" in done.stderr)
    for note in (kept / "ledger" / "_attempts").glob("*.json"):
        json.loads(note.read_text())  # the last one that had room, and no half one
