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

LEFT, RIGHT = ("zookeeper-1", "kafka-1"), ("zookeeper-2", "kafka-2")
pytestmark = pytest.mark.soak


class TwoClusters(LocalCluster):
    """`left` and `right`, one server and one broker each."""

    def __init__(self, offset):
        super().__init__(offset, inventory="inventories/local-1x1")
        self.zookeepers, self.brokers = ["zookeeper-1", "zookeeper-2"], {"kafka-1": 0, "kafka-2": 0}
        names = zip(("left", "right"), zip(self.zookeepers, self.brokers))
        groups = {"zookeeper": {}, "kafka": {}}
        for cluster, (server, broker) in names:
            groups["zookeeper"][server] = {"local_cluster_name": cluster}
            groups["kafka"][broker] = {"local_cluster_name": cluster}
        children = {name: {"hosts": hosts} for name, hosts in groups.items()}
        (self.overlay / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": children}}))

    def instance(self, name):
        cluster = "left" if name in LEFT else "right"
        return self.home / "clusters" / cluster / name

    def running(self):
        """The names of the instances that run."""
        return {name for name, process in self.processes().items() if process}


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
