# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every node from inside: units, accounts, sandbox, ids, ports, modes, logs."""

from __future__ import annotations

import pytest

from tests.support.nodes import ADDRESSES, STATE, host, listening, main_process, state_of

UNITS = ("zookeeper", "kafka")


@pytest.fixture(params=ADDRESSES)
def name(request):
    return request.param


@pytest.fixture
def node(name):
    return host(name)


@pytest.fixture(params=UNITS)
def unit(request):
    return request.param


def test_runs_as_its_account_and_at_boot(node, unit):
    service = node.service(unit)
    assert service.is_running and service.is_enabled
    process = node.process.get(pid=main_process(node, unit))
    assert process.user == process.group == unit
    account = node.user(unit)
    assert account.shell.endswith("nologin") and account.uid < 1000


def status_of(node, pid):
    lines = node.file(f"/proc/{pid}/status").content_string.splitlines()
    return {key: value.strip() for key, dummy, value in (line.partition(":") for line in lines)}


def test_the_sandbox_is_in_effect(name, node, unit):
    pid = main_process(node, unit)
    status = status_of(node, pid)
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert int(status["CapBnd"], 16) == int(status["CapEff"], 16) == 0
    # what the process itself could write to, and what not: its own view of the mounts
    data = {"kafka": "/var/lib/kafka/data", "zookeeper": "/var/lib/zookeeper"}[unit]
    writable = f"{data} /var/log/{unit}"
    for place, works in [(writable, True), (f"/etc/{unit} /usr /opt /home /etc", False)]:
        for path in place.split():
            done = node.run(f"nsenter --target {pid} --mount sh -c 'test -w {path}'")
            assert (done.rc == 0) is works, path
    # a /tmp of its own
    mounts = node.file(f"/proc/{pid}/mountinfo").content_string
    assert "/systemd-private-" in mounts and f"-{unit}.service-" in mounts


def test_limits(node, unit):
    assert node.check_output(f"systemctl show -p LimitNOFILE --value {unit}") == "100000"
    limits = node.file(f"/proc/{main_process(node, unit)}/limits").content_string
    (line,) = [line for line in limits.splitlines() if line.startswith("Max open files")]
    # the container's own ceiling may be below
    assert int(line.split()[3]) >= 20000


def test_start_limits_outlast_the_session(node, unit):
    shown = dict(
        line.split("=", 1)
        for line in node.check_output(
            f"systemctl show -p Restart,RestartUSec,StartLimitBurst,TimeoutStopUSec {unit}"
        ).splitlines()
    )
    assert shown["Restart"] == "on-failure" and shown["TimeoutStopUSec"] == "5min"
    assert int(shown["StartLimitBurst"]) * int(shown["RestartUSec"].rstrip("s")) > 3 * 18


def test_ids_are_those_of_the_inventory(name, node):
    number = name[-1]
    assert node.file("/var/lib/zookeeper/myid").content_string.strip() == number
    meta = node.file("/var/lib/kafka/data/meta.properties").content_string.splitlines()
    assert f"broker.id={number}" in meta


def test_ports(name, node):
    expected = {("*", 22), ("*", 2181), ("*", 9092), (ADDRESSES[name], 3888)}
    found = listening(node)
    # only the leader of the ensemble listens for its followers
    assert found - {(ADDRESSES[name], 2888)} == expected


def test_nothing_is_open_to_the_world(node):
    """No bit for others; the account owns its files, and none of the directories in which root writes."""
    for unit in UNITS:
        for path in (f"/etc/{unit}", f"/var/lib/{unit}", f"/var/log/{unit}"):
            assert node.check_output(f"find {path} -mindepth 1 ! -type l -perm /o=rwx") == "", path
        config = f"find /etc/{unit} ! -type l"
        assert node.check_output(f"{config} -type d -printf '%m %u:%g\\n' | sort -u") == (
            f"750 root:{unit}"
        )
        assert node.check_output(f"{config} ! -type d ! -user {unit}") == ""
        for path in (f"/var/lib/{unit}", f"/var/log/{unit}"):
            assert node.check_output(f"find {path} ! -type l ! -user {unit}") == "", path
        launch = node.check_output(f"stat -Lc '%a %U:%G' /etc/{unit}/current/launch")
        assert launch == f"750 {unit}:{unit}"
    mode = node.check_output("stat -Lc '%a %U:%G' /etc/kafka/current/server.properties")
    assert mode == "640 kafka:kafka"


def test_releases_belong_to_root(node):
    found = node.check_output(
        "find /opt/kafka /opt/zookeeper ! -user root -o ! -type l -perm /go=w"
    )
    assert found == ""


def test_nothing_under_tmp(node):
    for path in ("/tmp", "/var/tmp"):
        # what a unit has for itself alone goes when it stops
        ours = f"find {path} -path '*/systemd-private-*' -prune -o"
        assert node.check_output(f"{ours} '(' -user kafka -o -user zookeeper ')' -print") == ""
        assert node.check_output(f"{ours} -name '*.tgz' -print") == ""


@pytest.mark.parametrize(
    "unit, flags",
    [
        ("kafka", ["-Xmx512m", "-Xms512m", "-Xlog:gc"]),
        ("zookeeper", ["-Xmx128m", "-Dzookeeper.db.autocreate=false"]),
    ],
)
def test_java_flags(node, unit, flags):
    words = node.file(f"/proc/{main_process(node, unit)}/cmdline").content_string.split("\0")
    for flag in flags:
        assert any(word.startswith(flag) for word in words), (flag, words)


def test_logs(node, unit):
    name = {"kafka": "server.log", "zookeeper": "zookeeper.log"}[unit]
    log = node.file(f"/var/log/{unit}/{name}").content_string
    assert " INFO " in log
    errors = [line for line in log.splitlines() if " ERROR " in line]
    # A follower that starts before its leader listens says so once, and tries again.
    assert [line for line in errors if "Learner$LeaderConnector" not in line] == []
    assert node.check_output(f"find /var/log/{unit} -name 'gc*'"), "a log of the collector"


def test_logs_rotate(node):
    kafka = node.file("/etc/kafka/current/log4j.properties").content_string
    assert "RollingFileAppender" in kafka and "MaxBackupIndex" in kafka
    assert "RollingFileAppender" in node.file("/etc/zookeeper/current/logback.xml").content_string


def test_the_second_run_left_everything_alone(name):
    """Processes with their start times, files with their times, as before the idempotence run."""
    before = (STATE / f"{name}.state").read_text().strip().splitlines()
    now = state_of(name)
    assert len([line for line in before if line.startswith("process")]) == 2
    assert now == before
