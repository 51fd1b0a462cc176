# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory says other than the defaults is what the hosts have, and no default is left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import verdict_schema
from tests.support.nodes import ADDRESSES, STATE, Cluster, host, listening, main_process, state_of
from tests.support.outside import ask_zookeeper, mode_of, wait_until

INSIDE = {102: "172.29.78.12:19092", 103: "172.29.78.13:19092", 203: "172.29.78.13:19192"}
OUTSIDE = {102: "172.29.78.22:19093", 103: "172.29.78.23:19093", 203: "172.29.78.23:19193"}
BROKERS = {
    102: ("ko-node-2", "kafka"),
    103: ("ko-node-3", "kafka"),
    203: ("ko-node-3", "second"),
}
cluster = Cluster(OUTSIDE)


@pytest.fixture(params=BROKERS)
def number(request):
    return request.param


@pytest.fixture
def node(number):
    return host(BROKERS[number][0])


@pytest.fixture
def unit(number):
    return BROKERS[number][1]


def test_each_node_runs_what_the_inventory_says():
    for name in ADDRESSES:
        wanted = {"keeper"} | {unit for place, unit in BROKERS.values() if place == name}
        running = host(name).check_output(
            "systemctl list-units --plain --no-legend --state=running 'kafka*' 'second*' 'keeper*' 'zookeeper*'"
        )
        assert {line.split(".service")[0] for line in running.splitlines()} == wanted


def test_a_broker_runs_with_its_own_account_paths_and_limits(node, unit):
    process = node.process.get(pid=main_process(node, unit))
    assert (process.user, process.group) == ("broker", "broker")
    words = node.file(f"/proc/{process.pid}/cmdline").content_string.split("\0")
    assert "-Dmine=yes" in words and f"/srv/settings/{unit}/current/server.properties" in words
    assert any(word.startswith("/srv/programs/kafka/") for word in words), words
    limits = node.file(f"/proc/{process.pid}/limits").content_string
    (line,) = [line for line in limits.splitlines() if line.startswith("Max open files")]
    assert line.split()[3:5] == ["15000", "15000"]
    assert node.check_output(f"systemctl show -p TimeoutStopUSec --value {unit}") == "3min 20s"
    logs = f"/srv/logs/{unit}"
    assert node.file(f"{logs}/gc.log").exists
    # opened by the account: systemd would follow a link of the account's as root
    console = node.file(f"{logs}/console.log")
    assert (console.user, console.mode) == ("broker", 0o640)
    assert node.check_output(f"readlink /proc/{process.pid}/fd/1") == console.path
    # WARN; at INFO speaks only the class that registers, because the guard reads that
    told = node.file(f"{logs}/server.log").content_string.splitlines()
    assert [line for line in told if " INFO " in line and "(kafka.server." in line] == []


def test_an_account_that_was_there_is_left_as_it_was():
    account = host("ko-node-2").user("broker")
    assert (account.uid, account.shell, account.home) == (4711, "/bin/bash", "/srv/broker")
    made = host("ko-node-3").user("broker")
    assert (made.shell, made.home) == ("/usr/sbin/nologin", "/nonexistent")


SECRETS = ("of-the-environment", "of-the-brokers", "of-the-servers", "of-the-ensemble")


@pytest.mark.parametrize("name", ADDRESSES)
def test_secrets_are_neither_in_the_system_log_nor_on_a_command_line(name):
    """Ansible writes the parameters of each module there."""
    node = host(name)
    told = node.check_output("journalctl --no-pager") + node.check_output("ps -e -o args")
    assert "Invoked with" in told and "zoo.cfg" in told
    assert not [secret for secret in SECRETS if secret in told]
    settings = node.file("/etc/keeper/current/zoo.cfg").content_string
    assert "ssl.quorum.keyStore.password=of-the-ensemble" in settings


def test_a_broker_has_its_environment_plugin_loggers_and_unit_settings(node, unit):
    pid = main_process(node, unit)
    told = set(node.check_output(f"tr '\\0' '\\n' < /proc/{pid}/environ").splitlines())
    assert {"MINE=yes", "MY_PASSWORD=of-the-environment"} <= told
    words = node.file(f"/proc/{pid}/cmdline").content_string.split("\0")
    plugin = words[words.index("-cp") + 1].split(":")[1]
    assert plugin.endswith("/mine.jar") and node.file(plugin).exists
    assert f"@/srv/settings/{unit}/current/jvm.options" in words
    assert node.check_output(f"systemctl show -p TasksMax --value {unit}") == "4321"
    assert node.check_output(f"systemctl show -p SendSIGKILL --value {unit}") == "no"
    settings = node.file(f"/srv/settings/{unit}/current/log4j.properties").content_string
    assert "log4j.logger.kafka.controller=INFO" in settings


def test_every_log_directory_of_a_broker_is_used(node, number, unit):
    for disk in ("disk1", "disk2"):
        directory = f"/srv/{disk}/{unit}"
        meta = node.file(f"{directory}/meta.properties").content_string
        assert f"broker.id={number}\n" in meta
        assert node.check_output(f"ls -d {directory}/*-[0-9]*").splitlines()
        assert node.check_output(f"stat -c '%a %U:%G' {directory}") == "750 broker:broker"


@pytest.mark.parametrize("name", ADDRESSES)
def test_zookeeper_has_its_own_places(name):
    node = host(name)
    assert node.process.get(pid=main_process(node, "keeper")).user == "keeper"
    assert node.file("/srv/disk1/zookeeper/myid").content_string.strip() == f"3{name[-1]}"
    assert node.check_output(
        "find /srv/disk2/zookeeper -name 'log.*'"
    ), "transactions on their own disk"
    assert node.check_output("find /srv/disk1/zookeeper -name 'log.*'") == ""
    settings = node.file("/etc/keeper/current/zoo.cfg").content_string.splitlines()
    assert {"maxClientCnxns=77", "autopurge.snapRetainCount=4", "clientPort=12181"} <= set(settings)


def test_one_server_leads_and_the_chroot_holds_the_brokers():
    found = [mode_of(ask_zookeeper(address, 12181)) for address in ADDRESSES.values()]
    assert sorted(found) == ["follower", "follower", "leader"]
    shell = "/srv/programs/kafka/releases/kafka_2.13-3.8.1/bin/zookeeper-shell.sh"
    said = host("ko-node-2").check_output(
        f"JAVA_HOME=$(dirname $(dirname $(readlink -f $(command -v java)))) {shell} "
        "172.29.78.12:12181 ls /clusters/alternatives/brokers/ids 2>/dev/null"
    )
    assert said.splitlines()[-1] == "[102, 103, 203]"


@pytest.mark.parametrize("name", ADDRESSES)
def test_ports_and_the_addresses_they_are_bound_to(name):
    address = ADDRESSES[name]
    expected = {("*", 22), (address, 12181), (address, 13888)}
    for number, (place, _unit) in BROKERS.items():
        if place == name:
            for listener in (INSIDE[number], OUTSIDE[number]):
                bound, port = listener.split(":")
                expected.add((bound, int(port)))
    # only the leader of the ensemble listens for its followers
    assert listening(host(name)) - {(address, 12888)} == expected


def test_a_second_instance_and_other_names_leave_nothing_at_the_default_places():
    for name in ADDRESSES:
        for path in (
            "/opt/kafka",
            "/etc/zookeeper",
            "/var/lib/kafka",
            "/var/lib/zookeeper",
            "/var/log/kafka",
        ):
            assert not host(name).file(path).exists, (name, path)
    # the node without a broker has none of a broker's things
    for path in (
        "/srv/programs/kafka",
        "/srv/settings",
        "/srv/disk1/kafka",
        "/etc/systemd/system/kafka.service",
    ):
        assert not host("ko-node-1").file(path).exists, path


# ---------------------------------------------------------------- from outside


@pytest.mark.parametrize("listener", [INSIDE, OUTSIDE], ids=["inside", "outside"])
def test_each_listener_tells_its_own_addresses_and_takes_records(listener):
    through = Cluster(listener)
    found = through.metadata()
    assert {n: f"{item.host}:{item.port}" for n, item in found.brokers.items()} == listener
    assert through.is_whole()
    assert through.round_trip("orders", 60) == 60


def test_effective_configuration(number, unit):
    found = cluster.effective(number)
    expected = {
        "broker.id": str(number),
        "broker.rack": "left" if number == 102 else "right",
        "num.io.threads": "4",
        "log.segment.bytes": "16777216",
        "log.dirs": f"/srv/disk1/{unit},/srv/disk2/{unit}",
        "inter.broker.listener.name": "INSIDE",
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
    }
    assert {key: found[key] for key in expected} == expected


def test_replicas_are_spread_over_the_racks():
    """Two brokers on one machine are one rack: no partition of two replicas has both there."""
    placed = [replicas for _leader, replicas, _isr in cluster.partitions("local").values()]
    assert placed and all(102 in replicas for replicas in placed), placed


def test_the_other_version_runs():
    kafka = host("ko-node-2")
    assert kafka.check_output("ls /srv/programs/kafka/releases") == "kafka_2.13-3.8.1"
    words = kafka.file(f"/proc/{main_process(kafka, 'kafka')}/cmdline").content_string
    assert "/kafka_2.13-3.8.1/libs/" in words
    assert (
        host("ko-node-1").check_output("ls /srv/programs/zookeeper/releases") == "zookeeper-3.8.6"
    )


def test_each_release_was_fetched_once():
    """Two runs, six hosts: the controller asked the web server once for each."""
    asked = (STATE / "served" / "access.log").read_text()
    for name in ("kafka_2.13-3.8.1.tgz", "zookeeper-3.8.6.tgz"):
        assert asked.count(f"GET /{name} ") == 1, asked


def test_proven_by_the_validation_job():
    home = Path(os.environ.get("KAFKAOPS_HOME") or Path.home() / ".local" / "share" / "kafkaops")
    verdict = verdict_schema.read(home / "reports" / "alternatives" / "latest" / "verdict.json")
    assert verdict["verdict"] == "pass" and verdict["counts"]["acked"] > 0
    (inside,) = verdict["listeners"]
    assert inside["name"] == "INSIDE" and not any(each["trouble"] for each in inside["brokers"])


@pytest.mark.parametrize("name", ADDRESSES)
def test_the_second_run_left_everything_alone(name):
    before = (STATE / f"{name}.state").read_text().strip().splitlines()
    assert before and state_of(name) == before


# ---------------------------------------------------------------- last, because it restarts a broker


def test_a_broker_starts_without_one_of_its_disks():
    """The unit lets it, and Kafka takes the directory out of use until the next start."""
    node = host("ko-node-2")
    disk = "/srv/disk2/kafka"

    def serves():
        found = cluster.metadata()
        return found is not None and 102 in found.brokers

    node.check_output("systemctl stop kafka")
    node.check_output(f"mv {disk} {disk}.away")
    try:
        node.check_output("systemctl start kafka")
        wait_until(serves, 90, "the broker without a disk")
        assert not node.file(disk).exists
    finally:
        node.check_output(f"systemctl stop kafka && mv {disk}.away {disk} && systemctl start kafka")
    wait_until(cluster.is_whole, 120, "a whole cluster")
