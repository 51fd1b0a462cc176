# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is released of a dead broker on its way from ZooKeeper to KRaft; no Kafka and no ZooKeeper here.

tests/rolls kills real ones.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import start_record
from tests.support.told_controller import FILES, migrating, told_controllers

DEAD = {"pid": 2**22 + 1, "start_ticks": 1}
ZOOKEEPERS = (
    "[2026-11-29 10:00:00,000] INFO Registered broker 1 at path /brokers/ids/1 with addresses: "
    "INTERNAL://127.0.0.1:9092, czxid (broker epoch): %d (kafka.zk.KafkaZkClient)\n"
)
CONTROLLERS = (
    "[2026-11-29 10:00:00,500] INFO [ZkBrokerRegistration id=1] Successfully registered broker 1 with"
    " broker epoch %d (kafka.server.BrokerLifecycleManager)\n"
)
CZXID, EPOCH = 4294967345, 191
NOBODY = 9  # a port that nothing listens at


@pytest.fixture
def controllers():
    """Make controllers that are told what to answer; closed at the end."""
    with told_controllers() as make:
        yield make


def make_broker(tmp_path, ports, log=ZOOKEEPERS % CZXID + CONTROLLERS % EPOCH, clean=None):
    """Broker 1, as a host has it after its end; its ZooKeeper is away."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_text("cluster.id=abc\nbroker.id=1\nversion=0\n")
    if clean is not None:
        (data / ".kafka_cleanshutdown").write_text(json.dumps({"version": 0, "brokerEpoch": clean}))
    (tmp_path / "server.log").write_text(log)
    settings = {
        "broker.id": 1,
        "zookeeper.connect": f"127.0.0.1:{NOBODY}/kafka",
        "zookeeper.metadata.migration.enable": "true",
        "log.dirs": data,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": ",".join(f"300{port}@127.0.0.1:{port}" for port in ports),
    }
    (tmp_path / "server.properties").write_text(
        "".join(f"{key}={value}\n" for key, value in settings.items())
    )
    return migrating.Migrating(
        str(tmp_path / "server.properties"), str(tmp_path / "server.log"), str(tmp_path)
    )


def test_the_controllers_are_told_though_zookeeper_is_away(tmp_path, controllers):
    leader, other = controllers(), controllers(heartbeat=[41])
    broker = make_broker(tmp_path, [leader.port, other.port, NOBODY])
    said = broker.release(DEAD)
    assert "a dead registration is left to the session timeout" in said
    assert "fenced and unregistered broker 1 of epoch 191" in said
    assert leader.keys == [63, 64] and leader.asked[0][1]["epoch"] == EPOCH


def test_who_lives_keeps_both_and_that_is_said_once(tmp_path, controllers):
    leader, other = controllers(), controllers()
    broker = make_broker(tmp_path, [leader.port, other.port, NOBODY])
    said = broker.release(start_record(os.getpid()))
    assert said == f"process {os.getpid()} is alive, its registration stays"
    assert broker.release({}) == "" and leader.asked == other.asked == []


def test_who_has_not_met_the_controllers_has_nothing_to_release_there(tmp_path, controllers):
    leader, other = controllers(), controllers()
    broker = make_broker(tmp_path, [leader.port, other.port, NOBODY], log=ZOOKEEPERS % CZXID)
    assert "the log does not say" not in broker.release(DEAD)
    assert leader.asked == other.asked == []


def test_who_has_ended_cleanly_has_handed_over_already(tmp_path, controllers):
    """Its mark does not have the epoch."""
    leader, other = controllers(), controllers()
    broker = make_broker(tmp_path, [leader.port, other.port, NOBODY], clean=-1)
    for moment in ({}, {"starts": True}):
        assert "fenced" not in broker.release(DEAD, **moment)
    assert leader.asked == other.asked == []


def test_both_registrations_are_remembered_beside_each_other(tmp_path, controllers):
    """Logs rotate; and of neither the other one's number is taken for its own."""
    leader, other = controllers(), controllers(heartbeat=[41])
    broker = make_broker(tmp_path, [leader.port, other.port, NOBODY], log="")
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        broker.note(broker.last_registration(), process.pid)
        Path(broker.log).write_text(ZOOKEEPERS % CZXID + CONTROLLERS % EPOCH)
        broker.remember_registration(process.pid)
    finally:
        process.kill()
        process.wait()
    Path(broker.log).write_text("[x] INFO rotated away\n")
    ended = {"pid": process.pid, "start_ticks": 1}
    assert broker.registration_of(ended) == (1, CZXID)
    assert broker.member.registration_of(ended) == (1, EPOCH)
    assert "fenced and unregistered broker 1 of epoch 191" in broker.release(ended)


def test_a_process_that_has_ended_meanwhile_is_not_waited_for(tmp_path, monkeypatch):
    """Nobody starts it again before."""
    broker = make_broker(tmp_path, [NOBODY], log="")
    monkeypatch.setattr(migrating, "CONTROLLERS_SECONDS", 600)
    monkeypatch.setattr(migrating.Broker, "wait_until_registered", lambda self, say: None)
    (tmp_path / "started.json").write_text(json.dumps(DEAD))
    broker.wait_until_registered([].append)


def test_controllers_that_are_not_there_yet_do_not_hold_a_start_up(tmp_path, monkeypatch):
    monkeypatch.setattr(migrating, "CONTROLLERS_SECONDS", 0.3)
    broker = make_broker(tmp_path, [NOBODY], log=ZOOKEEPERS % CZXID)
    (tmp_path / "started.json").write_text(json.dumps(start_record(os.getpid())))
    for name in ("registration.json", "registration-kraft.json"):
        (tmp_path / name).write_text(json.dumps({"czxid": None, "pid": os.getpid()}))
    said = []
    broker.wait_until_registered(said.append)
    assert said == [] and broker.record("registered.json")["czxid"] == CZXID
    assert broker.record("registered-kraft.json") == {}


def test_it_runs_with_the_python_of_an_old_system():
    """The guard falls back to /usr/bin/python3, which is 3.6 on RHEL 8."""
    tree = ast.parse((FILES / "migrating.py").read_text(encoding="utf-8"), feature_version=(3, 6))
    futures = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [node for node in futures if node.module == "__future__"]
