# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two clusters in one inventory: what is amiss with one of them is said, and keeps nothing from the other."""

from __future__ import annotations

import os
import re
import signal
from contextlib import contextmanager

import pytest
import yaml

from tests.local.support import LocalCluster
from tests.support.outside import migration_phase, wait_until

LEFT, RIGHT = ("zookeeper-1", "kafka-1"), ("zookeeper-2", "kafka-2")
pytestmark = pytest.mark.soak


class Neighbours(LocalCluster):
    """Clusters `left` and `right` in one inventory; `LEFT`: the hosts of the first one."""

    LEFT = LEFT

    def instance(self, name):
        return self.home / "clusters" / ("left" if name in self.LEFT else "right") / name

    def running(self):
        """The names of the instances that run."""
        return {name for name, process in self.processes().items() if process}


class TwoClusters(Neighbours):
    """One server and one broker each."""

    def __init__(self, offset):
        super().__init__(offset, inventory="inventories/local-1x1")
        self.zookeepers, self.brokers = ["zookeeper-1", "zookeeper-2"], {"kafka-1": 0, "kafka-2": 2}
        names = zip(("left", "right"), zip(self.zookeepers, self.brokers))
        groups = {"zookeeper": {}, "kafka": {}}
        for cluster, (server, broker) in names:
            groups["zookeeper"][server] = {"local_cluster_name": cluster}
            groups["kafka"][broker] = {
                "local_cluster_name": cluster,
                "kafka_broker_id": self.brokers[broker],
            }
        children = {name: {"hosts": hosts} for name, hosts in groups.items()}
        (self.overlay / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": children}}))


class BothModes(Neighbours):
    """`left` has its metadata in ZooKeeper, `right` has three nodes of Kafka 4 that are controllers, too."""

    RIGHT = ("kafka-2", "kafka-3", "kafka-4")

    def __init__(self, offset):
        super().__init__(offset, inventory="inventories/local-1x1")
        self.brokers = {"kafka-1": 0, **{name: int(name[-1]) for name in self.RIGHT}}
        kraft = {
            "local_cluster_name": "right",
            "kafka_metadata": "kraft",
            "kafka_version": "4.3.1",
            "kafka_controller_port": "{{ 9190 + local_index | int + local_port_offset | int }}",
            "kafka_controller_bind": "127.0.0.1",
            "kafka_host_config": {"broker.heartbeat.interval.ms": 250},
            "kafka_accept_unavailable": [],
        }
        left = {"local_cluster_name": "left"}
        right = {name: {**kraft, "kafka_broker_id": int(name[-1])} for name in self.RIGHT}
        groups = {
            "zookeeper": {"zookeeper-1": left},
            "kafka": {"kafka-1": left, **right},
            "controllers": dict.fromkeys(self.RIGHT),
        }
        children = {name: {"hosts": hosts} for name, hosts in groups.items()}
        (self.overlay / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": children}}))


def test_one_has_zookeeper_and_the_other_has_not(next_offset):
    """Each is deployed, proven, and changed in its own way, and what is for one mode names the other cluster."""
    with BothModes(next_offset()) as both:
        right = ("--limit", ",".join(both.RIGHT))
        run = both.deploy(validation="always")
        assert len(re.findall(r"PASS: ", run.text)) == 2, run.text
        for name in ("left", "right"):
            assert list((both.home / "reports" / name).glob("*/verdict.json")), run.text
        assert both.deploy().changed() == 0
        status = both.play("status.yml", "-e", "status_strict=true").text
        assert "All 2 instances run." in status and "All 3 instances run." in status
        refused = both.play("scale_controllers.yml", code=2).text
        assert "[quorum.no_controllers] kafka-1" in refused and "--limit" in refused, refused
        assert both.play("scale_controllers.yml", *right).changed() == 0

        before = both.processes()
        os.kill(before["kafka-3"].pid, signal.SIGKILL)
        wait_until(lambda: both.process("kafka-3") not in (None, before["kafka-3"]), 60, "kafka-3")
        console = (both.instance("kafka-3") / "logs" / "console.log").read_text()
        assert "fenced and unregistered broker 3" in console
        both.play("rolling_restart.yml", "-e", "broker=4", *right)
        now = both.processes()
        changed = {name for name in before if now[name] != before[name]}
        assert changed == {"kafka-3", "kafka-4"}, "the neighbour was left alone"
        both.play("stop.yml", *right)
        assert both.running() == set(LEFT)
        both.play("start.yml")
        assert both.deploy().changed() == 0


class Migrating(TwoClusters):
    """`wants_kraft` gives a cluster a controller, which the inventory of before does not have."""

    CONTROLLERS = {"left": "controller-1", "right": "controller-2"}

    def wants_kraft(self, *clusters):
        path = self.overlay / "hosts.yml"
        inventory = yaml.safe_load(path.read_text())
        children = inventory["all"]["children"]
        for cluster in clusters:
            number = self.CONTROLLERS[cluster][-1]
            kraft = {
                "local_cluster_name": cluster,
                "kafka_metadata": "kraft",
                "kafka_version": "3.9.2",
                "kafka_controller_port": "{{ 9190 + local_index | int + local_port_offset | int }}",
                "kafka_controller_bind": "127.0.0.1",
            }
            children["kafka"]["hosts"][f"kafka-{number}"] = kraft
            voters = children.setdefault("controllers", {"hosts": {}})["hosts"]
            heap = {"kafka_broker_id": 3000 + int(number), "kafka_heap": "256m"}
            voters[self.CONTROLLERS[cluster]] = {**kraft, **heap}
        path.write_text(yaml.safe_dump(inventory))
        nodes = yaml.safe_load((self.inventory / "group_vars" / "kafka.yml").read_text())
        self.configure("controllers", **nodes)

    def instance(self, name):
        left = (*self.LEFT, self.CONTROLLERS["left"])
        return self.home / "clusters" / ("left" if name in left else "right") / name

    def phase(self, name):
        text = (self.instance(name) / "conf" / "current" / "server.properties").read_text()
        return migration_phase(text)


def test_one_goes_to_kraft_and_then_the_other(next_offset):
    """With --limit the neighbour is left alone; then one command takes both to the end, each from where it is."""
    with Migrating(next_offset()) as both:
        both.deploy()
        others = {name: both.processes()[name] for name in RIGHT}

        def unchanged():
            return {name: both.processes()[name] for name in RIGHT} == others

        both.wants_kraft("left")
        refused = " ".join(both.play("migrate_to_kraft.yml", code=2).text.split())
        assert "[migration.inventory] kafka-2" in refused and "--limit" in refused, refused
        left = ("--limit", ",".join((*LEFT, "controller-1")))
        both.play("migrate_to_kraft.yml", *left)
        assert (both.phase("kafka-1"), both.phase("kafka-2")) == ("kraft", "zookeeper")
        assert unchanged()
        proven = both.play("validate.yml", *left, "-e", "flow_validation_records=20000").text
        assert "PASS: " in proven and both.play("topics.yml", *left).changed() == 0, proven
        refused = " ".join(both.deploy(code=2).text.split())
        assert "[metadata.migrating] controller-1: " in refused, refused
        assert both.deploy("--limit", ",".join(RIGHT)).changed() == 0
        both.play("migrate_back.yml", *left)
        assert both.phase("kafka-1") == "zookeeper" and unchanged()

        both.play("migrate_to_kraft.yml", *left)
        both.wants_kraft("right")
        both.play("migrate_to_kraft.yml")
        assert both.phase("kafka-2") == "kraft"
        both.play("migrate_to_kraft.yml", "-e", "migrate=finish")
        assert {both.phase(each) for each in both.CONTROLLERS.values()} == {"kraft"}
        away = ("-e", "migrate=remove_zookeeper", "-e", "confirm=left")
        both.play("migrate_to_kraft.yml", *away, *left)
        assert both.running() == {"kafka-1", *RIGHT}


@pytest.fixture(scope="module", name="two")
def _two(next_offset):
    with TwoClusters(next_offset()) as running:
        running.deploy()
        assert running.running() == {*LEFT, *RIGHT}
        yield running


@contextmanager
def halted(cluster, name):
    """The process lives and does nothing, so that it does not end at SIGTERM either."""
    pid = cluster.process(name).pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_broker_that_does_not_stop_keeps_its_own_zookeeper_only(two):
    with halted(two, "kafka-1"):
        run = two.play("stop.yml", "-e", "jvm_service_stop_timeout_seconds=5", code=2)
        assert two.running() == set(LEFT), run.text
        assert re.search(r"\[hosts\.left\] kafka-1: .*still runs", run.text), run.text
        assert "left running for brokers that still run: kafka-1" in run.text
        assert not re.search(r"\[hosts\.left\] \S+-2", run.text)
    # It ends now, as it was told to.
    two.play("stop.yml")
    assert two.running() == set()


def test_a_zookeeper_that_does_not_start_keeps_its_own_brokers_only(two):
    path = two.instance("zookeeper-1") / "conf" / "current" / "zoo.cfg"
    good = path.read_text()
    path.write_text(good + "tickTime=never\n")
    run = two.play("start.yml", code=2)
    assert two.running() == set(RIGHT), run.text
    assert re.search(r"\[hosts\.left\] zookeeper-1: not started", run.text), run.text
    assert re.search(
        r"\[hosts\.left\] kafka-1: not started: Kafka: ZooKeeper has no quorum", run.text
    )
    assert "Kafka: started: kafka-2" in run.text
    path.write_text(good)
    run = two.play("start.yml")
    assert two.running() == {*LEFT, *RIGHT} and "Kafka: started: kafka-1; ran already" in run.text


def test_a_cluster_that_is_not_ready_is_named_and_the_other_is_started(two):
    """The server of `left` runs and answers nobody: there is no quorum to wait for."""
    for name in ("kafka-1", "kafka-2"):
        two.play("stop.yml", "--limit", name)
    with halted(two, "zookeeper-1"):
        run = two.play("start.yml", "-e", "zookeeper_wait_timeout_seconds=5", code=2)
        assert two.running() == {*LEFT, *RIGHT} - {"kafka-1"}, run.text
        assert "Cluster left is not ready: " in run.text
        assert "Cluster right is not ready" not in run.text
        table = two.play("status.yml").text
        assert "All 2 instances run." in table and "ATTENTION: " in table
    two.play("start.yml")
    assert two.running() == {*LEFT, *RIGHT}


def test_a_run_for_one_broker_leaves_the_other_cluster_alone(two):
    """The broker of `left` is down, so that nobody could elect. A stop leaves its server alone, too."""
    two.play("stop.yml", "--limit", "kafka-1")
    before = two.process("kafka-2")
    two.play("rolling_restart.yml", "-e", "broker=2")
    assert two.running() == {"zookeeper-1", *RIGHT} and two.process("kafka-2") != before

    run = two.play("stop.yml", "-e", "broker=2")
    assert two.running() == {"zookeeper-1", "zookeeper-2"}, run.text
    assert "Wait until this broker may stop" in run.text, run.text
    assert two.play("stop.yml", "-e", "broker=2").changed() == 0
    assert "broker.unknown" in two.play("stop.yml", "-e", "broker=9", code=2).text
    two.play("start.yml")
    assert two.running() == {*LEFT, *RIGHT}


def test_teardown_says_how_to_delete_one_of_them(two):
    before = two.processes()
    text = " ".join(two.play("teardown.yml").text.split())
    for name, hosts in (("left", LEFT), ("right", RIGHT)):
        assert f"-e confirm={name} --limit {','.join(hosts)}" in text, text
    text = " ".join(two.play("teardown.yml", "-e", "confirm=left", code=2).text.split())
    assert f"Remedy: -e confirm=right --limit {','.join(RIGHT)}" in text
    assert two.processes() == before
    run = two.play("teardown.yml", "-e", "confirm=left", "--limit", ",".join(LEFT))
    assert two.running() == set(RIGHT), run.text
    assert not two.instance(LEFT[0]).parent.exists(), "nothing is left of a cluster"
    assert "stays" not in run.text
    assert two.instance("kafka-2").joinpath("data", "meta.properties").exists()
