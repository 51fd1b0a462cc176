# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine of three is gone: the playbooks do what can be done with the others, and name what they left.

The machine is kafka-1 and zookeeper-1. They are out of Ansible's reach as soon as `gone` says so; whether
their processes live is another matter, as in reality.
"""

from __future__ import annotations

import contextlib
import re

import pytest

from tests.local.support import LocalCluster
from tests.support.outside import wait_until

DEAD = ("kafka-1", "zookeeper-1")
ALIVE = ("kafka-2", "kafka-3", "zookeeper-2", "zookeeper-3")
# A port of this machine where nobody listens, and an interpreter that is not there.
NO_SSH = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}
NO_PYTHON = {"ansible_python_interpreter": "/nonexistent/python3"}


@pytest.fixture(scope="module")
def degraded(next_offset):
    """Three servers and three brokers."""
    with LocalCluster(next_offset()) as running:
        running.deploy()
        yield running


@contextlib.contextmanager
def gone(cluster, *names, how=None):
    """Ansible does not reach these hosts."""
    for name in names:
        cluster.configure(name, **(how or NO_SSH))
    try:
        yield
    finally:
        for name in names:
            (cluster.overlay / "host_vars" / f"{name}.yml").unlink()


def rows(text):
    """Return the state of each instance in the status table."""
    found = re.findall(r"^\W*((?:kafka|zookeeper)-\d)  +(?:kafka|zookeeper) +\d +(.*)$", text, re.M)
    return dict(found)


def running(cluster):
    """Return the names of the instances that run."""
    return {name for name, process in cluster.processes().items() if process}


def test_status_has_its_table_whoever_is_gone(degraded):
    """The first of all hosts, and all brokers' hosts at once."""
    before = degraded.processes()
    text = degraded.play("status.yml").text
    assert "All 6 instances run." in text
    with gone(degraded, *DEAD):
        text = degraded.play("status.yml").text
        table = rows(text)
        assert set(table) == set(degraded.names), text
        for name, row in table.items():
            assert ("host not reached" in row) == (name in DEAD), row
        assert "Seen by the others only: zookeeper-1 (" in text
        assert "ATTENTION: host not reached: zookeeper-1, kafka-1." in text
        degraded.play("status.yml", "-e", "status_strict=true", code=2)
    with gone(degraded, *degraded.brokers, how=NO_PYTHON):
        table = rows(degraded.play("status.yml").text)
        assert set(table) == set(degraded.names)
        assert all("host not reached" in table[name] for name in degraded.brokers)
    assert degraded.processes() == before


def test_stop_stops_what_can_be_reached(degraded):
    """The others are down, brokers first; what was left is named; the exit code says so."""
    with gone(degraded, *DEAD):
        run = degraded.play("stop.yml", code=2)
    assert running(degraded) == set(DEAD), "what is out of reach runs on"
    for name in DEAD:
        assert f"[hosts.left] {name}: not stopped: " in run.text, run.text
    assert not re.search(r"\[hosts\.left\] \S+-[23]", run.text)


def test_start_starts_the_others(degraded):
    """Now the machine is dead indeed: two servers make a quorum, and two brokers start."""
    # A broker ends only while ZooKeeper serves: what stop.yml says of a broker that was out of reach.
    degraded.play("start.yml", "--limit", "zookeeper-2,zookeeper-3")
    assert running(degraded) == {*DEAD, "zookeeper-2", "zookeeper-3"}
    for name in ("kafka-1", *degraded.zookeepers):
        degraded.supervisorctl("stop", name)
    assert running(degraded) == set()
    with gone(degraded, *DEAD, how=NO_PYTHON):
        # also one after the other: the first server must not wait for those that come later
        run = degraded.play("start.yml", "--forks", "1", code=2)
        assert running(degraded) == set(ALIVE)
        assert "[hosts.left] kafka-1: not started: it cannot be examined" in run.text, run.text
        assert "Not waited for: ZooKeeper server 1 at 127.0.0.1" in run.text
        assert "Not waited for: broker 1 holds replicas and is not registered" in run.text
        # kafka-1 was the last to stop, so it alone has all records: nobody may lead before it is back
        assert "without a leader until the brokers with the last in-sync replicas" in run.text

        others = ("--limit", ",".join(ALIVE))
        run = degraded.play("start.yml", *others)
        assert run.changed() == 0 and "There was nothing to start." in run.text
        degraded.play("stop.yml", "--limit", "kafka-2,zookeeper-2")
        assert running(degraded) == {"kafka-3", "zookeeper-3"}
        degraded.deploy(*others)
        assert running(degraded) == set(ALIVE)
        # The machine that is left out takes part in no quorum: one server less would end ZooKeeper.
        run = degraded.play(
            "site.yml",
            *(*others, "-e", "flow_validation=never", "-e", "zookeeper_wait_timeout_seconds=5"),
            *("-e", "{zookeeper_config: {maxClientCnxns: 70}}"),
            code=2,
        )
        assert re.search(r"1 of 3 serve without server [23], 2 are needed", run.text), run.text
        assert running(degraded) == set(ALIVE)


@pytest.mark.soak
def test_start_starts_what_was_in_effect(degraded):
    """A staged change is not started, nor the refused one of two servers where the test above has run."""
    degraded.play("start.yml")
    assert running(degraded) == set(degraded.names)
    wait_until(
        lambda: all(
            len(isr) == 3 for _leader, _replicas, isr in degraded.partitions("orders").values()
        ),
        180,
        "every replica in sync again",
    )
    stage = ("--tags", "preflight,install,configure")
    degraded.deploy(*stage, "-e", "{kafka_config: {num.io.threads: 21}}")
    degraded.play("stop.yml")
    # A mistake in the inventory that concerns only a later site.yml is told, and stops nobody at night.
    run = degraded.play("start.yml", "-e", "{kafka_config: {num.partitons: 3}}")
    assert re.search(r"warning: \[config.unknown_key\].*what was in effect is started", run.text)
    assert "Kafka: started: kafka-1, kafka-2, kafka-3" in run.text, run.text[-5000:]
    for name in degraded.names:
        for file in ("server.properties", "zoo.cfg"):
            path = degraded.instance(name) / "conf" / "current" / file
            text = path.read_text() if path.exists() else ""
            assert "num.io.threads=21" not in text and "maxClientCnxns=70" not in text, path
    assert degraded.play("start.yml").changed() == 0


def test_start_of_what_was_never_installed(next_offset):
    """Said, and no success."""
    with LocalCluster(next_offset()) as fresh:
        run = fresh.play("start.yml", code=2)
        assert "nothing was ever started here" in run.text and "site.yml" in run.text
        assert run.changed() == 0 and not (fresh.home / "clusters").exists()
        # site.yml with a part that has nothing to work on is no success either
        run = fresh.deploy("--tags", "run", code=2)
        assert "[instance.nothing_staged] zookeeper-1: " in run.text and not run.changed()
        assert not (fresh.home / "clusters").exists()
