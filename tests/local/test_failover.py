# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A dead broker is deregistered at once by its own host, and in any doubt it is not."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from confluent_kafka.admin import NewTopic
from kazoo.security import READ_ACL_UNSAFE, make_acl

from tests.local.support import CHECKOUT, start_ticks
from tests.local.watching import registered_at, zookeeper, zookeeper_port
from tests.support import collection_finder, verdict_schema
from tests.support.outside import wait_until
from tests.support.traffic import Traffic
from tests.support.watching import cluster_is_whole

collection_finder.install()

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.cast import (  # noqa: E402
    partition_of,
)

FILE = CHECKOUT / "roles" / "kafka" / "files" / "registration.py"
spec = importlib.util.spec_from_file_location("registration", FILE)
registration = importlib.util.module_from_spec(spec)
spec.loader.exec_module(registration)

SESSION_SECONDS = 18
DEAD = {"pid": 2**22 + 1, "start_ticks": 1}


def whole(cluster):
    return wait_until(lambda: cluster_is_whole(cluster), 180, "the cluster is whole")


def leader_of(cluster, topic):
    """The name of a broker that leads a partition of the topic, and is not the controller."""
    controller = whole(cluster).controller
    leaders = {leader for leader, _replicas, _isr in cluster.partitions(topic).values()}
    return cluster.name_of(sorted(leaders - {controller})[0])


@pytest.mark.parametrize("victim", [pytest.param("leader", marks=pytest.mark.smoke), "controller"])
def test_a_killed_broker_pauses_nobody_for_a_session(cluster, victim):
    """Without it every partition stands still for the session timeout, 18 s. Its log may have rotated since."""
    name = cluster.name_of(whole(cluster).controller)
    if victim == "leader":
        name = leader_of(cluster, "orders")
    number, before = cluster.brokers[name], cluster.process(name)
    with Traffic(cluster, "orders") as traffic:
        wait_until(lambda: len(traffic.acknowledged) > 500, 60, "acknowledgements")
        if victim == "controller":
            os.truncate(cluster.instance(name) / "logs" / "server.log", 0)
        killed_at = time.time()
        os.kill(before.pid, signal.SIGKILL)
        wait_until(
            lambda: registered_at(cluster).get(number, 0) > killed_at, 120, f"{name} is registered"
        )
        whole(cluster)
    print(f"\nSIGKILL of a {victim}: longest pause {traffic.longest_pause:.2f} s")
    assert not traffic.failed and traffic.lost() == []
    assert traffic.longest_pause < SESSION_SECONDS / 2, "the session timeout decided"
    console = (cluster.instance(name) / "logs" / "console.log").read_text()
    assert "released /brokers/ids/%d" % number in console


@pytest.mark.soak
def test_the_example_that_reads_goes_on_when_its_coordinator_dies(cluster, tmp_path):
    """examples/consumer.py commits each second; three times the broker dies that takes its commits."""
    topic, group = "read-by-the-example", "kafkaops-example"
    whole(cluster)
    admin = cluster.admin()
    admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(30)
    settings, output = tmp_path / "librdkafka.json", tmp_path / "read"
    settings.write_text(json.dumps(cluster.client()))
    program = [cluster.python, cluster.checkout / "examples/consumer.py", settings, topic, group]
    with Traffic(cluster, topic) as traffic, output.open("w") as stream:
        reading = subprocess.Popen(
            list(map(str, program)), stdout=stream, stderr=subprocess.PIPE, text=True
        )
        try:
            wait_until(lambda: output.read_text().count("\n") > 200, 60, "records come")
            for _each in range(3):
                killed_by_coordinating(cluster, group)
                enough = output.read_text().count("\n") + 1000
                wait_until(
                    lambda enough=enough: output.read_text().count("\n") > enough
                    or reading.poll() is not None,
                    60,
                    "it reads on",
                )
                assert reading.poll() is None, reading.stderr.read()
        finally:
            reading.send_signal(signal.SIGTERM)
            _out, said = reading.communicate(timeout=60)
        assert reading.returncode == 0 and "records processed" in said, said
        print(said)
    # with what was written after it had left
    with output.open("a") as stream:
        again = subprocess.Popen(list(map(str, program)), stdout=stream, stderr=subprocess.PIPE)
        try:
            wait_until(
                lambda: traffic.acknowledged <= values_of(output), 60, "all that was acknowledged"
            )
        finally:
            again.terminate()
            again.communicate(timeout=60)
    admin.delete_topics([topic])[topic].result(30)


def killed_by_coordinating(cluster, group):
    """Kill the broker that has the offsets of a group; returns when it is back and all replicas are in sync."""
    parts, killed_at = cluster.partitions("__consumer_offsets"), time.time()
    number = parts[partition_of(group, len(parts))][0]
    name = cluster.name_of(number)
    os.kill(cluster.process(name).pid, signal.SIGKILL)
    wait_until(
        lambda: registered_at(cluster).get(number, 0) > killed_at, 120, f"{name} is registered"
    )
    whole(cluster)


def values_of(output):
    """The values that examples/consumer.py has printed; the last line may not be whole."""
    return {line.split("\t")[3] for line in output.read_text().split("\n")[:-1]}


@pytest.mark.smoke
def test_a_cluster_whose_brokers_were_killed_is_proven(cluster):
    pytest.importorskip("pyspark")
    whole(cluster)
    cluster.play("validate.yml")
    verdict = verdict_schema.read(cluster.home / "reports/local/latest/verdict.json")
    assert verdict["verdict"] == "pass", verdict
    counts = verdict["counts"]
    assert counts["acked"] == counts["read"] > 0 and counts["unknown"] == counts["failed"] == 0


@pytest.fixture
def guard(cluster, tmp_path):
    """A registration.Broker that looks like kafka-1, but whose settings and records are the test's."""
    instance = cluster.instance("kafka-1")
    state = tmp_path / "run"
    shutil.copytree(instance / "run", state)
    settings = tmp_path / "server.properties"

    def make(log=instance / "logs" / "server.log", log_dirs=None, **more):
        lines = [f"{key.replace('_', '.')}={value}" for key, value in more.items()]
        if log_dirs is not None:
            lines.append(f"log.dirs={log_dirs}")
        text = (instance / "conf" / "current" / "server.properties").read_text()
        settings.write_text(text + "\n".join(lines) + "\n")
        return registration.Broker(str(settings), str(log), str(state))

    return make


def check_nothing_happens(cluster, act):
    """Run `act`, and fail if it touched a registration or the controller; returns what it said."""
    whole(cluster)
    with zookeeper(cluster) as client:
        paths = ["/controller", *(f"/brokers/ids/{number}" for number in (1, 2, 3))]
        before = [client.exists(path).czxid for path in paths]
        said = act()
        assert [client.exists(path).czxid for path in paths] == before
    return said


@pytest.mark.soak
def test_an_orphan_that_dies_is_deregistered_too(cluster):
    """With supervisord gone nobody starts it again, and its partitions have leaders at once all the same."""
    daemon = int((cluster.directory / "supervisor" / "supervisord.pid").read_text())
    name = leader_of(cluster, "orders")
    os.kill(daemon, signal.SIGKILL)
    wait_until(lambda: start_ticks(daemon) is None, 30, "supervisord is gone")
    process = cluster.process(name)
    os.kill(process.pid, signal.SIGKILL)
    killed_at = time.monotonic()
    wait_until(lambda: cluster.brokers[name] not in registered_at(cluster), 60, "deregistered")
    assert time.monotonic() - killed_at < SESSION_SECONDS / 2, "the session timeout decided"
    cluster.deploy()
    whole(cluster)


def test_a_living_process_keeps_its_registration(cluster, guard):
    broker = guard()
    said = check_nothing_happens(cluster, lambda: broker.release(broker.record("started.json")))
    assert "is alive" in said


def test_a_stopped_process_keeps_its_registration(cluster, guard):
    """SIGSTOP: it would come back as a zombie that never notices."""
    process = cluster.process("kafka-1")
    broker = guard()
    os.kill(process.pid, signal.SIGSTOP)
    try:
        said = broker.release(broker.record("started.json"))
        assert "is alive" in said
        # even if the record were wrong: it holds its locks
        assert ".lock is held" in broker.release(DEAD)
        assert 1 in registered_at(cluster)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert start_ticks(process.pid) == process.start_ticks
    whole(cluster)


def test_a_held_lock_proves_life(cluster, guard):
    said = check_nothing_happens(cluster, lambda: guard().release(DEAD))
    assert said.endswith("all registrations stay")


@pytest.mark.parametrize(
    "line, doubt",
    [
        ("", "does not say"),
        ("Registered broker 2 at path /brokers/ids/2 with addresses: x, czxid (broker epoch): 7\n", "does not say"),
        ("Registered broker 1 at path /brokers/ids/1 with addresses: x, czxid (broker epoch): 7\n", "ours was 7"),
    ],
    ids=["unknown", "other-id", "other-incarnation"],
)  # fmt: skip
def test_a_registration_that_is_not_its_own_stays(cluster, guard, tmp_path, line, doubt):
    """Of another host, process or session: its transaction is another one."""
    log = tmp_path / "server.log"
    log.write_text(line)
    broker = guard(log=log, log_dirs=tmp_path)  # a directory that nobody has locked
    said = check_nothing_happens(cluster, lambda: broker.release(DEAD))
    assert doubt in said


def test_without_zookeeper_it_is_left_to_the_timeout(cluster, guard, tmp_path):
    broker = guard(log_dirs=tmp_path, zookeeper_connect="127.0.0.1:9/kafka")
    said = check_nothing_happens(cluster, lambda: broker.release(DEAD))
    assert "no ZooKeeper server gives a session" in said


def test_without_the_right_to_delete_it_is_left_to_the_timeout(cluster, guard, tmp_path):
    """A parent whose list of children only its creator may change."""
    log = tmp_path / "server.log"
    owner = make_acl("digest", "owner:" + "x" * 28, all=True)
    with zookeeper(cluster) as client:
        client.create("/guarded/brokers/ids", b"", makepath=True)
        client.create("/guarded/brokers/ids/1", b"{}")
        czxid = client.exists("/guarded/brokers/ids/1").czxid
        client.set_acls("/guarded/brokers/ids", [*READ_ACL_UNSAFE, owner])
        log.write_text(
            "Registered broker 1 at path /brokers/ids/1 with addresses: x, "
            f"czxid (broker epoch): {czxid}\n"
        )
        connect = f"127.0.0.1:{zookeeper_port(cluster, cluster.zookeepers[0])}/kafka/guarded"
        broker = guard(log=log, log_dirs=tmp_path, zookeeper_connect=connect)
        assert "no right to delete" in broker.release(DEAD)
        assert client.exists("/guarded/brokers/ids/1")


def test_it_can_be_switched_off(cluster, guard, tmp_path, capsys):
    """--keep leaves registrations alone; the start is noted all the same."""
    instance = cluster.instance("kafka-1")
    state = tmp_path / "run"
    arguments = ["--properties", str(instance / "conf" / "current" / "server.properties")]
    arguments += ["--log", str(instance / "logs" / "server.log"), "--state", str(state), "--keep"]
    guard()  # makes `state`
    (state / "started.json").write_text(json.dumps(DEAD))
    check_nothing_happens(cluster, lambda: registration.main(["after-exit", *arguments]))
    assert capsys.readouterr().out == ""
