# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The archive of the classes of Spark's JVM: who writes it, who uses it, what a killed run leaves."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from flow.engine import class_archive, connector
from flow.engine.class_archive import LEAVE, MARK, ROOM_BYTES, USE, WRITE

SESSION = """
import sys, tempfile
from flow.engine import session
with tempfile.TemporaryDirectory() as work:
    spark = session.start("local[1]", session.prepare_java(""), work, 1, typical=True)
    assert spark.range(10).selectExpr("sum(id)").first()[0] == 45
    session.stop(True, sys.argv[1])
"""


@pytest.mark.parametrize(
    "there,marked,typical,in_work,room,action",
    [
        (False, False, True, False, 0, MARK),
        (False, False, False, False, 0, LEAVE),
        (False, True, True, False, ROOM_BYTES, WRITE),
        (False, True, True, False, ROOM_BYTES - 1, LEAVE),
        (False, True, True, True, ROOM_BYTES, LEAVE),
        (False, True, False, False, ROOM_BYTES, LEAVE),
        (True, True, False, True, 0, USE),
    ],
)
def test_what_a_run_does(there, marked, typical, in_work, room, action):
    assert class_archive.decide(there, marked, typical, in_work, room) == action


@pytest.fixture(name="java")
def java_fixture(tmp_path):
    """What there is of a Java that has an archive of its own classes."""
    for part in ("bin/java", "lib/server/classes.jsa", "release"):
        path = tmp_path / "java" / part
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "java"


def find(java, tmp_path, folder="classes", more_jars=()):
    (tmp_path / "spark" / "jars").mkdir(parents=True, exist_ok=True)
    return class_archive.find(
        str(java / "bin/java"), str(tmp_path / "spark"), str(tmp_path / folder), True, more_jars
    )


def test_a_java_without_classes_of_its_own_has_none(java, tmp_path):
    assert find(java, tmp_path).action == MARK
    assert find(java, tmp_path, "two words") is None
    (java / "lib/server/classes.jsa").unlink()
    assert find(java, tmp_path) is None


def test_another_java_or_spark_has_another_one(java, tmp_path):
    first = find(java, tmp_path)
    (tmp_path / "spark/jars/spark-core.jar").write_bytes(b"core")
    second = find(java, tmp_path)
    (java / "release").write_text('JAVA_VERSION="17.0.99"')
    assert len({first.path, second.path, find(java, tmp_path).path}) == 3


def test_another_connector_has_another_one(java, tmp_path):
    jars = [str(tmp_path / name) for name in ("kafka.jar", "pool.jar")]
    for jar in jars:
        open(jar, "wb").close()
    orders = ([], jars[:1], jars, jars[::-1])
    assert len({find(java, tmp_path, more_jars=each).path for each in orders}) == 4


def test_one_run_at_a_time_writes_and_a_killed_one_is_forgotten(java, tmp_path):
    find(java, tmp_path).begin()
    first = find(java, tmp_path)
    assert first.action == WRITE
    first.begin()
    assert find(java, tmp_path).action == LEAVE
    gone = subprocess.Popen(["true"])
    gone.wait()
    (mine,) = Path(first.path).parent.glob(f"*.{os.getpid()}")
    mine.rename(f"{first.path}.{gone.pid}")
    assert find(java, tmp_path).action == WRITE
    assert not list(Path(first.path).parent.glob(f"*.{gone.pid}"))


def test_a_place_that_cannot_be_written_is_no_trouble(java, tmp_path):
    (tmp_path / "classes").write_text("a file")
    archive = find(java, tmp_path)
    assert archive.action == MARK
    archive.begin()
    archive.finish(None, True)
    assert (tmp_path / "classes").read_text() == "a file"
    assert find(java, tmp_path).action == MARK, "no mark was left"


@pytest.mark.soak  # Java takes its time; the jobs of all other parts use what they keep as well
def test_the_second_run_keeps_the_classes_and_the_third_uses_them(spark, tmp_path):
    """Real sessions; the connector is not fetched anew. Skipped where Java has no classes of its own."""
    home = Path(connector.home_of(connector.java_path()))
    if not (home / "lib/server/classes.jsa").exists():
        pytest.skip("this Java was cut to size and has no archive to found another one on")
    cache = tmp_path / "cache"
    shutil.copytree(
        Path(connector.cache_directory()) / "spark",
        cache / "spark",
        ignore=shutil.ignore_patterns("classes"),
    )
    classes = cache / "spark" / "classes"

    def run(name):
        log = tmp_path / name
        log.mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        env.update(
            KAFKAOPS_CACHE=str(cache), JDK_JAVA_OPTIONS=f"-Xlog:class+load:file={log}/%p.log"
        )
        command = [sys.executable, "-c", SESSION, str(log)]
        told = set()
        with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as running:
            deadline = time.monotonic() + 300
            while running.poll() is None:
                if time.monotonic() > deadline:
                    running.kill()
                with suppress(OSError, ValueError):
                    told.add(json.loads((log / "progress.json").read_text())["step"])
                time.sleep(0.1)
            noted = running.stderr.read()
        assert running.returncode == 0, noted
        said = max((path.read_text() for path in log.glob("*.log")), key=len)
        return said.count("shared objects file (top)"), noted, told

    used, noted, told = run("first")
    assert used == 0 and "keeping" not in noted and not told
    assert sorted(path.suffix for path in classes.iterdir()) == [".wanted"]
    used, noted, told = run("second")
    assert used == 0 and "keeping the classes" in noted and told == {"keep"}
    assert sorted(path.suffix for path in classes.iterdir()) == [".jsa", ".wanted"]
    used, noted, told = run("third")
    assert used > 3000 and "keeping" not in noted and not told


@pytest.mark.parametrize("whole", [False, True])
def test_what_did_not_come_to_its_end_is_not_kept(java, tmp_path, whole):
    """A run that was broken off, and a JVM that ended without having written anything."""
    find(java, tmp_path).begin()
    archive = find(java, tmp_path)
    archive.begin()
    # ends at the end of its input, as PySpark's JVM does
    stands_in = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    archive.finish(stands_in, whole)
    assert stands_in.poll() == (0 if whole else -signal.SIGKILL)
    assert [path.suffix for path in Path(archive.path).parent.iterdir()] == [".wanted"]


def test_those_used_longest_ago_go_first(tmp_path):
    for age in range(5):
        for path in (tmp_path / f"{age}.jsa", tmp_path / f"{age}.jsa.wanted"):
            path.touch()
            os.utime(path, (1000 - age, 1000 - age))
    class_archive._prune(str(tmp_path))
    assert sorted(path.name[0] for path in tmp_path.iterdir()) == ["0", "0", "1", "1", "2", "2"]
