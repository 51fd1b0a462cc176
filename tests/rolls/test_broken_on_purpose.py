# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker that does not come back from its turn: the roll stops there, says why, and goes on when it is mended.

A configuration that the broker refuses is in test_rolls.py, a wrong password or certificate in
test_changes.py. Here the configuration is right, and the disk is full, or the Java is none.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import subprocess
import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.local.support import PLAY_TIMEOUT, LocalCluster
from tests.local.watching import changed, ensemble_is_whole, modes, zookeeper_mode
from tests.support.outside import wait_until
from tests.support.traffic import Traffic
from tests.support.watching import InSync, Watch, cluster_is_whole

TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync
DISK = "64m"
values = itertools.count(510)


@contextlib.contextmanager
def mounted(path):
    """A small disk at `path`; skips where nobody may mount one."""
    path.mkdir(parents=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "kafkaops-test", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture(scope="module")
def small(next_offset):
    """A cluster with two small disks: everything of kafka-2 is on one, of kafka-3 the records are."""
    with LocalCluster(next_offset()) as cluster, contextlib.ExitStack() as disks:
        cluster.disks = {
            "kafka-2": disks.enter_context(mounted(cluster.instance("kafka-2"))),
            "kafka-3": disks.enter_context(mounted(cluster.instance("kafka-3") / "data")),
        }
        cluster.deploy()
        try:
            yield cluster
        finally:
            cluster.kill()


def fill(disk):
    """Leave no byte on a disk."""
    with (disk / "ballast").open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 65536)
    with (disk / "ballast").open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0")


class FullWhileDown(threading.Thread):
    """Fills a disk as soon as the process of an instance has gone for its turn."""

    def __init__(self, cluster, name):
        super().__init__(daemon=True)
        self._cluster, self._name, self._done = cluster, name, threading.Event()
        self._before, self.filled = cluster.process(name), False

    def run(self):
        while not self._done.wait(0.005):
            if self._cluster.process(self._name) != self._before:
                fill(self._cluster.disks[self._name])
                self.filled = True
                return

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_exc):
        self._done.set()
        self.join(60)


@pytest.mark.soak
@pytest.mark.parametrize("victim", ["kafka-2", "kafka-3"])
def test_a_disk_that_fills_up_in_its_turn(small, victim):
    """Nothing can be put back on it; the message names the directories, and room is the whole cure.

    Records flow: without them a broker may well run on a disk that is full.
    """
    wait_until(lambda: cluster_is_whole(small), 120, "whole before")
    small.set_brokers({"queued.max.requests": next(values)})
    before = small.processes()
    during = FullWhileDown(small, victim)
    roll = ("rolling_restart.yml", "-e", "kafka_wait_timeout_seconds=60")
    with Traffic(small, TOPIC) as traffic:
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        with during, Watch(small) as watch, InSync(small, TOPIC) as seen:
            run = small.play(*roll, code=2)
    assert not traffic.failed and traffic.lost() == []
    assert during.filled and seen.looks and seen.fewest >= 2, run.text
    order = watch.check()
    assert order[-1] == victim, (watch.events, watch.reasons)
    assert changed(before, small.processes()) == set(order), "those after it were left alone"
    full = r"No space is left on the disk of [^.]*" + re.escape(f"/{victim}/data")
    assert re.search(full, " ".join(run.text.split())), run.text

    (small.disks[victim] / "ballast").unlink()
    small.play("rolling_restart.yml")
    wait_until(lambda: cluster_is_whole(small), 120, "whole again")
    after = small.processes()
    assert changed(before, after) == set(small.brokers) and all(after.values())
    assert small.play("rolling_restart.yml").changed() == 0
    assert not list(small.instance(victim).glob("run/started.json.*")), "what failed starts leave"


@pytest.fixture
def two_disks(next_offset):
    """A cluster in which kafka-3 has two log directories, of which one is a small disk."""
    with LocalCluster(next_offset()) as cluster, contextlib.ExitStack() as disks:
        data = cluster.instance("kafka-3")
        small = disks.enter_context(mounted(data / "data-2"))
        cluster.configure("kafka-3", kafka_log_dirs=[str(data / "data"), str(small)])
        cluster.deploy()
        try:
            yield cluster, small
        finally:
            cluster.kill()


@pytest.mark.soak
def test_one_of_two_log_directories_fails(two_disks):
    """The broker runs on, and replicas in it follow nobody: status and gate name it, and the remedy is the cure."""
    cluster, disk = two_disks
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    fill(disk)
    producer = Producer(cluster.client(acks=1))

    def failed():
        for _record in range(50):
            producer.produce(TOPIC, bytes(100_000))
        producer.flush(30)
        return any(3 not in isr for *_rest, isr in cluster.partitions(TOPIC).values())

    wait_until(failed, 180, "the directory is offline")
    before = cluster.processes()
    assert before["kafka-3"], "the other directory is enough to run"
    told = f"broker 3: its log directory {disk} is offline"
    remedy = "restart this broker (playbooks/rolling_restart.yml -e broker=ID)"
    status = " ".join(cluster.play("status.yml").text.split())  # long lines are wrapped
    assert f"[directories.failed] {told}" in status and remedy in status, status
    assert "log directories failed: broker 3" in status
    roll = ("rolling_restart.yml", "-e", "broker=1")
    run = cluster.play(*roll, "-e", "kafka_wait_timeout_seconds=15", code=2)
    text = " ".join(run.text.split())
    assert "[gate.waiting] broker 1: waited" in text and told in text and remedy in text, text
    assert cluster.processes() == before
    (disk / "ballast").unlink()
    cluster.play("rolling_restart.yml", "-e", "broker=3")
    wait_until(lambda: cluster_is_whole(cluster), 180, "whole again")
    assert "directories.failed" not in cluster.play("status.yml").text
    cluster.play(*roll)
    assert changed(before, cluster.processes()) == {"kafka-1", "kafka-3"}


# --- Java -------------------------------------------------------------------------------------------------

# What each Java does; the real one is {real}.
JAVAS = {
    # seen by the preflight, which starts a Java that never ran there
    "no program of this machine": b"\x7fELF of another processor",
    # says a version like any other, and dies of the broker
    "dies of the broker": b"""#!/bin/sh
case "$*" in *kafka.Kafka*) echo 'no such class file version' >&2; exit 1;; esac
exec {real} "$@"
""",
}


def a_java(directory, what, real):
    """Make an installation that looks right from outside; return its home."""
    (directory / "bin").mkdir(parents=True)
    (directory / "release").write_text('JAVA_VERSION="21.0.1"\n')
    java = directory / "bin" / "java"
    java.write_bytes(JAVAS[what].replace(b"{real}", str(real).encode()))
    java.chmod(0o755)
    return str(directory)


@pytest.mark.soak
@pytest.mark.parametrize("what", JAVAS)
def test_a_java_that_starts_no_broker(cluster, tmp_path, what):
    """Refused before the first stop where asking it shows that; else the first broker is put back."""
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    before = cluster.processes()
    real = Path(f"/proc/{before['kafka-1'].pid}/exe").resolve()
    cluster.set_brokers({}, java_home=a_java(tmp_path / "jdk", what, real))
    with InSync(cluster, TOPIC) as seen:
        run = cluster.play("rolling_restart.yml", code=2)
    tried, after = changed(before, cluster.processes()), cluster.processes()
    assert all(after.values()) and seen.looks and seen.fewest >= 2, run.text
    text = " ".join(run.text.split())  # long lines are wrapped
    if what == "dies of the broker":
        (victim,) = tried
        assert victim in cluster.brokers
        assert f"{victim} does not start: its process exits again and again." in text
        assert "The previous configuration was put back and is running again" in text
        assert "no such class file version" in text
        assert "java home" in text, "the reason of the restart"
    else:
        assert tried == set()
        assert "[java.broken] kafka-1, kafka-2, kafka-3: java_home=" in text
        assert "Exec format error" in text
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole again")
    cluster.set_brokers({})
    cluster.play("rolling_restart.yml")
    assert cluster.processes() == after, "nothing is pending any more"


# --- what else may happen meanwhile -----------------------------------------------------------------------


@pytest.mark.soak
def test_a_partition_that_stays_at_the_minimum(cluster):
    """One of three replicas follows at a byte a second: nobody who has the others may stop.

    A replica in sync is never throttled, so it has to fall behind first, by much more than it fetches at once.
    """
    topic, told = "narrow", "follower.replication.throttled"
    configure = ("kafka-configs.sh", "--alter")
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    of_broker = ("--entity-type", "brokers", "--entity-name", cluster.brokers["kafka-3"])
    cluster.tool(
        *("kafka-topics.sh", "--create", "--topic", topic, "--replica-assignment", "1:2:3"),
        *("--config", "min.insync.replicas=2"),
    )
    cluster.tool(*configure, *of_topic, "--add-config", f"{told}.replicas=*")
    cluster.tool(*configure, *of_broker, "--add-config", f"{told}.rate=1")
    restart_1 = ("rolling_restart.yml", "-e", "broker=1")

    def in_sync():
        return cluster.partitions(topic)[0][2]

    try:
        with Traffic(cluster, topic) as traffic:
            wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
            cluster.supervisorctl("stop", "kafka-3")
            wait_until(lambda: in_sync() == [1, 2], 180, "broker 3 is gone")
            producer = Producer(cluster.client(acks="all"))
            for _record in range(64):
                producer.produce(topic, bytes(900_000))
                producer.poll(0.1)
            assert producer.flush(120) == 0
            cluster.supervisorctl("start", "kafka-3")
            wait_until(
                lambda: all(len(isr) == 3 for *_rest, isr in cluster.partitions(TOPIC).values()),
                180,
                "it follows where it is not throttled",
            )
            assert in_sync() == [1, 2]
            before = cluster.processes()
            run = cluster.play(*restart_1, "-e", "kafka_wait_timeout_seconds=10", code=2)
            assert "[gate.waiting] broker 1: waited 10 s" in run.text, run.text
            assert f"{topic}-0 (1 of 2)" in run.text
            assert cluster.processes() == before
            cluster.tool(*configure, *of_broker, "--delete-config", f"{told}.rate")
            cluster.play(*restart_1)
    finally:
        cluster.tool(*configure, *of_broker, "--delete-config", f"{told}.rate", code=None)
    assert changed(before, cluster.processes()) == {"kafka-1"}
    assert not traffic.failed and traffic.lost() == []
    cluster.tool("kafka-topics.sh", "--delete", "--topic", topic)


@pytest.mark.soak
def test_zookeeper_loses_its_leader_while_brokers_roll(cluster):
    """Two of three servers are enough, and elect another leader meanwhile: the roll goes on."""
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    before = cluster.processes()
    (leader,) = [name for name, mode in modes(cluster).items() if mode == "leader"]
    cluster.set_brokers({"queued.max.requests": next(values)})
    with Traffic(cluster, TOPIC) as traffic, InSync(cluster, TOPIC) as seen:
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        with cluster.playing("rolling_restart.yml") as (process, log):
            one_rolled(cluster, before, process)
            cluster.supervisorctl("stop", leader)
            process.wait(PLAY_TIMEOUT)
            assert process.returncode == 0, log.read_text()
    assert changed(before, cluster.processes()) == {*cluster.brokers, leader}
    assert cluster.process(leader) is None
    assert seen.looks and seen.fewest >= 2 and not traffic.failed and traffic.lost() == []
    cluster.play("start.yml")
    wait_until(lambda: ensemble_is_whole(cluster), 60, "three servers")


@pytest.mark.soak
def test_zookeeper_loses_its_quorum_while_brokers_roll(cluster):
    """No further broker stops, since it could not come back, and the message says what starts ZooKeeper."""
    wait_until(
        lambda: cluster_is_whole(cluster) and ensemble_is_whole(cluster), 120, "whole before"
    )
    before = cluster.processes()
    lost = sorted(cluster.zookeepers)[1:]
    cluster.set_brokers({"queued.max.requests": next(values)})
    patience = ("-e", "kafka_wait_timeout_seconds=30", "-e", "kafka_gate_quiet_seconds=20")
    with Traffic(cluster, TOPIC) as traffic:
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        with cluster.playing("rolling_restart.yml", *patience) as (process, log):
            (rolled,) = one_rolled(cluster, before, process)
            gate = "Ask whether this broker may stop]"
            wait_until(
                lambda: log.read_text().count(gate) == 2 or process.poll() is not None,
                300,
                "the gate of the next one",
            )
            cluster.supervisorctl("stop", *lost)
            process.wait(PLAY_TIMEOUT)
            text = " ".join(log.read_text().split())  # long lines are wrapped
        assert process.returncode == 2, text
        assert changed(before, cluster.processes()) == {rolled, *lost}, text
        told = (
            # longer, where a broker was just asked for settings: that question hangs without a quorum
            r"\[gate\.waiting\] broker \d: waited \d\d s, and it may not be stopped yet: ZooKeeper has no quorum:"
            r" 1 of 3 answer, 0 serve, 2 are needed: server 1 at \S+: it runs, but has no quorum; server 2 at .*?;"
            r" server 3 at .*? It was not stopped\. Remedy: playbooks/start\.yml starts the servers that are down"
        )
        assert re.search(told, text), text
        cluster.play("start.yml")
        wait_until(lambda: ensemble_is_whole(cluster), 60, "three servers")
        cluster.play("rolling_restart.yml")
    assert changed(before, cluster.processes()) == {*cluster.brokers, *lost}
    assert not traffic.failed and traffic.lost() == []


@pytest.mark.soak
def test_zookeeper_loses_a_member_while_it_rolls(cluster):
    """The next server may not stop, since one alone is no quorum; the same command goes on afterwards."""
    wait_until(
        lambda: cluster_is_whole(cluster) and ensemble_is_whole(cluster), 120, "whole before"
    )
    before = cluster.processes()
    cluster.configure("zookeeper", zookeeper_config={"maxClientCnxns": next(values)})
    with Traffic(cluster, TOPIC) as traffic:
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        patience = ("-e", "zookeeper_wait_timeout_seconds=30")
        with cluster.playing("rolling_restart.yml", *patience) as (process, log):
            (lost,) = one_rolled(cluster, before, process)
            wait_until(lambda: zookeeper_mode(cluster, lost), 120, "it serves")
            cluster.supervisorctl("stop", lost)
            process.wait(PLAY_TIMEOUT)
            text = " ".join(log.read_text().split())  # long lines are wrapped
        assert process.returncode == 2, text
        assert changed(before, cluster.processes()) == {lost}, text
        # It was lost before the end of its own turn, or the next one may not begin.
        number = lost.rpartition("-")[2]
        own = rf"\[ensemble\.not_ready\] waited 30 s for ZooKeeper: server {number} at "
        following = (
            r"\[gate\.waiting\] server \d: waited 30 s, and it may not be stopped yet: "
            rf"server {number} at .*?; 1 of 3 serve without server \d, 2 are needed"
        )
        assert re.search(own, text) or re.search(following, text), text
        cluster.play("rolling_restart.yml")
    after = cluster.processes()
    assert changed(before, after) == set(cluster.zookeepers) and all(after.values())
    assert not traffic.failed and traffic.lost() == []
    assert cluster.play("rolling_restart.yml").changed() == 0


def one_rolled(cluster, before, process):
    """Wait until the first instance has had its turn; return its name in a set."""

    def rolled():
        now = cluster.processes()
        return process.poll() is not None or {
            name for name in changed(before, now) if now[name] is not None
        }

    found = wait_until(rolled, 300, "the first instance is new")
    assert process.poll() is None
    return found
