# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""KRaft under systemd: formatted as the account, fenced by its own host, booted, rolled, and nothing lost."""

from __future__ import annotations

import contextlib
import re
import time

from tests.support.node_containers import inside
from tests.support.nodes import (
    ADDRESSES,
    Cluster,
    changed,
    dies_and_boots,
    host,
    main_process,
    play,
    state_of,
)
from tests.support.outside import wait_until
from tests.support.traffic import through
from tests.support.watching import cluster_is_whole, quorum_of

NODES = dict(enumerate(ADDRESSES, 1))
TOPIC = "orders"
SESSION_SECONDS = 9  # broker.session.timeout.ms
DATA = "/var/lib/kafka/data"
cluster = Cluster({number: f"{ADDRESSES[name]}:9092" for number, name in NODES.items()})


def quorum():
    return quorum_of(list(cluster.brokers.values()))


def whole():
    """Wait until all are registered and in sync; return the id of the active controller."""
    wait_until(lambda: cluster_is_whole(cluster), 180, "the cluster is whole")
    return quorum()["leader"]


def console(number):
    return inside(NODES[number], "cat /var/log/kafka/console.log")


def epoch_of(number):
    """The broker epoch that a node's log names last."""
    log = inside(NODES[number], "cat /var/log/kafka/server.log")
    found = re.findall(r"Successfully registered broker \d with broker epoch (\d+)", log)
    return int(found[-1])


def leaders():
    return {leader for leader, _replicas, _isr in cluster.partitions(TOPIC).values()}


@contextlib.contextmanager
def traffic(what):
    """Write during a fault and its recovery; the voters are the same afterwards."""
    with through(what, cluster, TOPIC, whole) as running:
        yield running
    assert quorum()["voters"] == [1, 2, 3]


def test_each_node_is_formatted_once_as_its_account():
    """One cluster id, a directory id each; the data belong to the account; the unit is sandboxed."""
    whole()
    found = {}
    for number, name in NODES.items():
        node = host(name)
        assert main_process(node, "kafka") and node.service("kafka").is_enabled
        meta = node.file(f"{DATA}/meta.properties")
        assert (meta.user, meta.group) == ("kafka", "kafka")
        foreign = f"find {DATA} ! -user kafka -o ! -group kafka"
        assert inside(name, foreign).strip() == ""
        shown = node.check_output("systemctl show kafka -p ProtectSystem -p ReadWritePaths")
        assert "ProtectSystem=strict" in shown and DATA in shown
        lines = dict(re.findall(r"^([\w.]+)=(.*)$", meta.content_string, re.MULTILINE))
        assert lines["node.id"] == str(number)
        found[lines["directory.id"]] = lines["cluster.id"]
    assert len(found) == 3 and len(set(found.values())) == 1
    assert quorum()["voters"] == [1, 2, 3]


def test_an_active_controller_that_is_killed_is_told_of_by_its_own_host():
    """SIGKILL: fenced, unregistered, an election called; the session decides nothing."""
    number = whole()
    epoch, pid = epoch_of(number), main_process(host(NODES[number]), "kafka")
    with traffic("SIGKILL of the active controller") as running:
        inside(NODES[number], f"kill -KILL {pid}")
        wait_until(lambda: epoch_of(number) > epoch, 120, "it has registered again")
    told = console(number)
    assert f"fenced and unregistered broker {number} of epoch {epoch}" in told, told[-3000:]
    assert "called for an election at" in told
    assert running.longest_pause < SESSION_SECONDS / 2, "the session decided"


def test_a_broker_that_hangs_is_fenced_and_comes_back():
    """SIGSTOP for less than its session: others lead meanwhile, by `kafka_fence_hanging_seconds`."""
    number = min(leaders() - {whole()})  # who was killed leads nothing yet
    node = host(NODES[number])
    epoch, pid = epoch_of(number), main_process(node, "kafka")
    with traffic("SIGSTOP of a broker, until others lead"):
        inside(NODES[number], f"kill -STOP {pid}")
        began = time.monotonic()
        try:
            wait_until(lambda: number not in leaders(), 60, "others lead what it led")
            moved = time.monotonic() - began
        finally:
            inside(NODES[number], f"kill -CONT {pid}")
    assert f"fenced broker {number} of epoch {epoch}, others lead" in console(number)
    assert moved < SESSION_SECONDS, "the session decided"
    assert (main_process(node, "kafka"), epoch_of(number)) == (pid, epoch), "it lives on"


def test_a_whole_node_dies_and_boots():
    """SIGKILL and start of its container: broker and controller come back at boot."""
    number = min({1, 2, 3} - {whole()})
    name = NODES[number]
    with traffic("death of a node, back at once"):
        dies_and_boots(name, "kafka")


def test_a_changed_setting_rolls_the_quorum():
    """Each restarts once, the active controller last; the next run has nothing to do."""
    active = whole()
    before = {number: main_process(host(name), "kafka") for number, name in NODES.items()}
    key = ("-e", '{"kafka_host_config": {"group.initial.rebalance.delay.ms": 100}}')
    never = ("-e", "flow_validation=never")
    with traffic("rolling_restart.yml of three nodes"):
        said = play("rolling_restart.yml", *key, inventory="kraft")
    after = {number: main_process(host(name), "kafka") for number, name in NODES.items()}
    assert all(after[number] not in (0, before[number]) for number in NODES), said
    turns = re.findall(r"Start Kafka\] \*+\nchanged: \[(ko-node-\d)\]", said)
    assert sorted(turns) == sorted(ADDRESSES) and turns[-1] == NODES[active], said
    kept = {name: state_of(name) for name in NODES.values()}
    said = play("site.yml", *key, *never, inventory="kraft")
    assert set(changed(said).values()) == {0}, said[-5000:]
    assert {name: state_of(name) for name in NODES.values()} == kept


def test_status_shows_the_quorum():
    """As the brokers tell it, and that all run."""
    leader = whole()
    said = play("status.yml", "-e", "status_strict=true", inventory="kraft")
    parts = dict(re.findall(r"(\d)  +(leader|voter)  +\d+  +(?:-|[\d.]+ s ago)", said))
    assert parts == {str(each): "leader" if each == leader else "voter" for each in NODES}, said
