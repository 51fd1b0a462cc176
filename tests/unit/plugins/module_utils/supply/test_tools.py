# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of tools, and the launcher that reads it (with a stand-in for java)."""

import os
import subprocess

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.supply import distribution, tools

PROMISED = """kafka-acls kafka-broker-api-versions kafka-configs kafka-console-consumer
 kafka-console-producer kafka-consumer-groups kafka-consumer-perf-test kafka-delete-records
 kafka-dump-log kafka-features kafka-get-offsets kafka-leader-election kafka-log-dirs
 kafka-metadata-quorum kafka-producer-perf-test kafka-reassign-partitions kafka-run-class
 kafka-server-start kafka-storage kafka-topics kafka-verifiable-consumer kafka-verifiable-producer
 connect-distributed connect-mirror-maker connect-standalone""".split()


def names(product, version):
    return [tool.name for tool, _main_class in tools.tools_of(product, version)]


@pytest.mark.parametrize("version", ["3.8.1", "3.9.2", "4.3.1"])
def test_promised_tools_are_there(version):
    assert set(names("kafka", version)) >= {f"{name}.sh" for name in PROMISED}


@pytest.mark.parametrize("name", ["zookeeper-shell.sh", "zookeeper-server-start.sh"])
def test_zookeeper_tools_end_with_zookeeper_mode(name):
    assert name in names("kafka", "3.9.2")
    assert name not in names("kafka", "4.3.1")


@pytest.mark.parametrize(
    "version, name, main_class",
    [
        ("3.8.1", "kafka-acls.sh", "kafka.admin.AclCommand"),
        ("3.9.2", "kafka-acls.sh", "kafka.admin.AclCommand"),
        ("4.3.1", "kafka-acls.sh", "org.apache.kafka.tools.AclCommand"),
        ("3.9.2", "kafka-dump-log.sh", "kafka.tools.DumpLogSegments"),
        ("4.3.1", "kafka-dump-log.sh", "org.apache.kafka.tools.DumpLogSegments"),
        ("4.3.1", "kafka-storage.sh", "kafka.tools.StorageTool"),
    ],
)
def test_classes_that_moved(version, name, main_class):
    table = tools.tools_table("kafka", version)
    assert f"\n{name} {main_class} " in table


@pytest.mark.parametrize(
    "version, suffix", [("3.9.2", "log4j.properties"), ("4.3.1", "log4j2.yaml")]
)
def test_logging_follows_the_line(version, suffix):
    files = tools.launcher_files("kafka", version, distribution.LAUNCHER)
    logging = {path for path in files if path.startswith("config/launcher/") and "-" in path}
    assert logging == {f"config/launcher/tools-{suffix}", f"config/launcher/server-{suffix}"}


@pytest.fixture(name="release")
def make_release(tmp_path):
    """A release without jars, and a java that prints its arguments."""
    files = tools.launcher_files("kafka", "3.9.2", distribution.LAUNCHER)
    home = tmp_path / "a release" / "kafka_2.13-3.9.2"
    for path, content in files.items():
        target = home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            target.symlink_to(content)
        else:
            target.write_bytes(content)
    (home / "bin" / "launch").chmod(0o755)
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    return home


def run(command, *arguments, **environment):
    """Run a launcher; returns (status, lines of stdout, stderr). PATH has the stand-in java."""
    path = f"{environment.pop('java_path')}:/usr/bin:/bin"
    done = subprocess.run(
        [str(command), *arguments],
        env={"PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


def java_path(release):
    return str(release.parent.parent / "bin")


def test_a_tool_runs_its_class_with_all_arguments_as_given(release):
    status, lines, _error = run(
        release / "bin" / "kafka-topics.sh", "--list", "a b", "*", java_path=java_path(release)
    )
    assert status == 0
    assert lines[-4:] == ["org.apache.kafka.tools.TopicCommand", "--list", "a b", "*"]
    assert lines[lines.index("-cp") + 1] == f"{release}/libs/*"
    assert "-Xmx256m" in lines


def test_the_tool_is_found_through_links_to_links(release, tmp_path):
    (tmp_path / "current").symlink_to(release)
    (tmp_path / "topics").symlink_to("current/bin/kafka-topics.sh")
    (tmp_path / "t").symlink_to(tmp_path / "topics")
    status, lines, error = run(tmp_path / "t", "--list", java_path=java_path(release))
    assert (status, lines[-2:]) == (0, ["org.apache.kafka.tools.TopicCommand", "--list"]), error


def test_the_environment_is_honoured(release):
    _status, lines, _error = run(
        release / "bin" / "kafka-topics.sh",
        java_path=java_path(release),
        KAFKA_HEAP_OPTS="-Xms1m -Xmx2m",
        KAFKA_OPTS="-Da=1 -Db=2",
        KAFKA_LOG4J_OPTS="-Dlog4j.configuration=file:/x",
        CLASSPATH="/more.jar",
    )
    assert lines[:2] == ["-Xms1m", "-Xmx2m"]
    assert {"-Da=1", "-Db=2", "-Dlog4j.configuration=file:/x"} <= set(lines)
    assert lines[lines.index("-cp") + 1] == f"/more.jar:{release}/libs/*"


def test_java_home_goes_before_path(release, tmp_path):
    other = tmp_path / "jre" / "bin" / "java"
    other.parent.mkdir(parents=True)
    other.write_text("#!/bin/sh\necho from JAVA_HOME\n")
    other.chmod(0o755)
    _status, lines, _error = run(
        release / "bin" / "kafka-topics.sh",
        java_path=java_path(release),
        JAVA_HOME=str(tmp_path / "jre"),
    )
    assert lines == ["from JAVA_HOME"]


def test_first_arguments_and_run_class(release):
    _status, lines, _error = run(
        release / "bin" / "zookeeper-shell.sh", "h:1", "ls", "/", java_path=java_path(release)
    )
    assert lines[-4:] == ["-server", "h:1", "ls", "/"]
    _status, lines, _error = run(
        release / "bin" / "kafka-run-class.sh", "a.B", "c", java_path=java_path(release)
    )
    assert lines[-2:] == ["a.B", "c"]


@pytest.mark.parametrize(
    "command, arguments, status, message",
    [
        ("launch", [], 64, "kafka-topics.sh"),
        ("launch", ["kafka-nothing.sh"], 64, "no tool is called kafka-nothing.sh"),
        ("kafka-run-class.sh", [], 64, "usage: kafka-run-class.sh CLASS"),
    ],
)
def test_wrong_calls_are_explained(release, command, arguments, status, message):
    code, _lines, error = run(release / "bin" / command, *arguments, java_path=java_path(release))
    assert code == status
    assert message in error


def test_no_java_is_said(release, tmp_path):
    only = tmp_path / "only"
    only.mkdir()
    for name in ("sh", "readlink", "dirname", "cut", "grep", "tr"):
        (only / name).symlink_to(
            next(f"{d}/{name}" for d in ("/bin", "/usr/bin") if os.path.exists(f"{d}/{name}"))
        )
    done = subprocess.run(
        [str(release / "bin" / "kafka-topics.sh")],
        env={"PATH": str(only)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 127
    assert "set JAVA_HOME" in done.stderr
