# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults under load: nothing acknowledged is lost, the cluster is whole again, and the pause is printed."""

from __future__ import annotations

import contextlib
import time

import pytest

from tests.support import node_containers
from tests.support.node_containers import inside
from tests.support.nodes import ADDRESSES, Cluster, dies_and_boots, host, main_process, three
from tests.support.outside import ask_zookeeper, mode_of, wait_until, zookeeper
from tests.support.traffic import through

NODES = dict(enumerate(ADDRESSES, 1))
SESSION_SECONDS = 18
cluster = three()


def whole():
    """Wait until brokers, replicas and ensemble are whole; return the id of the controller."""
    wait_until(cluster.is_whole, 180, "the cluster is whole")
    wait_until(
        lambda: sorted(mode(name) for name in ADDRESSES) == ["follower", "follower", "leader"],
        120,
        "the ensemble is whole",
    )
    return cluster.metadata().controller_id


def mode(name):
    return mode_of(ask_zookeeper(ADDRESSES[name]))


def a_leader():
    """The id of a broker that leads partitions of `orders` and is not the controller."""
    controller = whole()
    leaders = {leader for leader, _replicas, _isr in cluster.partitions("orders").values()}
    return sorted(leaders - {controller})[0]


def traffic(what, topic="orders"):
    """Write to a topic during a fault and its recovery."""
    return through(what, cluster, topic, whole)


def kill(name, unit="kafka", signal="KILL"):
    """Send a signal to a unit's main process; return (its pid, the node)."""
    node = host(name)
    pid = main_process(node, unit)
    assert pid
    inside(name, f"kill -{signal} {pid}")
    return pid, node


def restarted(node, unit, pid):
    return wait_until(lambda: main_process(node, unit) not in (0, pid), 120, f"{unit} is back")


def a_follower():
    """The id of a broker that only follows in the topic of one partition, and is not the controller."""
    controller = whole()
    (single,) = cluster.partitions("single").values()
    leader, replicas, _isr = single
    return sorted(set(replicas) - {leader, controller})[0]


def killed_broker(victim, what):
    """SIGKILL of a leader, the controller or a follower under load; return the longest pause in seconds."""
    number = {"leader": a_leader, "controller": whole, "follower": a_follower}[victim]()
    with traffic(what, "single" if victim == "follower" else "orders") as running:
        node = host(NODES[number])
        released = f"released /brokers/ids/{number}"
        before = node.file("/var/log/kafka/console.log").content_string.count(released)
        pid, node = kill(NODES[number])
        restarted(node, "kafka", pid)
        wait_until(
            lambda: node.file("/var/log/kafka/console.log").content_string.count(released) > before,
            30,
            released,
        )
    assert running.longest_pause < SESSION_SECONDS / 2, "the session timeout decided"
    return running.longest_pause


# One of them in each run: on this machine, all of them die in tests/local/test_failover.py.
@pytest.mark.parametrize(
    "victim",
    [
        "leader",
        *(pytest.param(each, marks=pytest.mark.soak) for each in ("controller", "follower")),
    ],
)
def test_a_killed_broker(victim):
    killed_broker(victim, f"SIGKILL of a {victim}")


@contextlib.contextmanager
def full_load():
    """As many records as two producers can write, with acks=all, until the end."""
    release = "/opt/kafka/releases/kafka_2.13-3.9.2/bin/kafka-producer-perf-test.sh"
    command = (
        f"JAVA_HOME=$(dirname $(dirname $(readlink -f $(command -v java)))) exec {release} --topic events "
        "--num-records 1000000000 --record-size 1000 --throughput -1 --producer-props acks=all "
        f"bootstrap.servers={','.join(cluster.brokers.values())} >/dev/null 2>&1"
    )
    for name in list(ADDRESSES)[:2]:
        node_containers.begin(name, command)
    try:
        yield
    finally:
        for name in list(ADDRESSES)[:2]:
            inside(name, "pkill -f [P]roducerPerformance || true")


@pytest.mark.soak
def test_twenty_killed_brokers_under_full_load():
    """Nothing acknowledged is lost in any of them; the pauses are printed."""
    pauses = []
    with full_load():
        for number in range(20):
            victim = ("leader", "controller")[number % 2]
            pauses.append(killed_broker(victim, f"{number + 1}: SIGKILL of a {victim}, full load"))
    pauses.sort()
    print(f"\n20 kills under full load: median {pauses[9]:.2f} s, longest {pauses[-1]:.2f} s")


def test_a_killed_zookeeper_leader():
    (name,) = [name for name in ADDRESSES if mode(name) == "leader"]
    with traffic("SIGKILL of ZooKeeper's leader"):
        pid, node = kill(name, "zookeeper")
        restarted(node, "zookeeper", pid)


def test_a_broker_that_is_stopped_and_continued():
    """SIGSTOP for longer than the session: nobody deregisters it, it comes back by itself."""
    number = a_leader()
    with traffic("SIGSTOP of a leader, 25 s"):
        pid, node = kill(NODES[number], signal="STOP")
        try:
            others = Cluster({key: item for key, item in cluster.brokers.items() if key != number})
            wait_until(
                lambda: number not in others.metadata().brokers, 60, "its session has expired"
            )
        finally:
            inside(NODES[number], f"kill -CONT {pid}")
    assert main_process(node, "kafka") == pid, "the same process goes on"


def test_a_whole_node_dies_and_boots():
    """SIGKILL and start of its container: units come back at boot, ZooKeeper first."""
    number = a_leader()
    name = NODES[number]
    with traffic("death of a node, back at once"):
        dies_and_boots(name, "kafka")


def test_two_of_three_zookeepers_gone_and_back():
    """Data keeps flowing through existing leaders; a start waits, and all recovers."""
    first, second, third = ADDRESSES
    with traffic("2 of 3 ZooKeepers gone for 20 s") as running:
        for name in (first, second):
            inside(name, "systemctl stop zookeeper")
        wait_until(lambda: not mode(third), 30, "there is no quorum")
        before = len(running.acknowledged)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            assert not mode(third)
            time.sleep(1)
        assert len(running.acknowledged) > before + 500, "data flows without ZooKeeper"
        for name in (first, second):
            inside(name, "systemctl start zookeeper")


def test_one_of_three_zookeepers_gone_and_back():
    """The leader of the ensemble, so that the others have to elect; brokers keep their sessions."""
    (name,) = [name for name in ADDRESSES if mode(name) == "leader"]
    registered = registrations()
    with traffic("1 of 3 ZooKeepers gone for 20 s") as running:
        inside(name, "systemctl stop zookeeper")
        others = [other for other in ADDRESSES if other != name]
        wait_until(lambda: sorted(map(mode, others)) == ["follower", "leader"], 60, "an election")
        before = len(running.acknowledged)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            assert not mode(name)
            time.sleep(1)
        assert len(running.acknowledged) > before + 500
        inside(name, "systemctl start zookeeper")
    assert registrations() == registered, "no broker lost its session"


def registrations():
    """Broker id -> transaction that created its registration."""
    with zookeeper([f"{address}:2181" for address in ADDRESSES.values()]) as client:
        ids = client.get_children("/brokers/ids")
        return {int(item): client.exists(f"/brokers/ids/{item}").czxid for item in ids}


def test_a_broker_cut_off_from_zookeeper():
    """Its session expires, others lead; when it is heard again it registers anew, as the same process."""
    number = a_leader()
    name, before = NODES[number], registrations()
    pid = main_process(host(name), "kafka")
    rule = "-p tcp -m multiport --dports 2181 -j DROP"
    # its own server too: it is reached by the node's address through the loopback
    with traffic("a broker cut off from ZooKeeper for a session"):
        inside(name, f"iptables -A OUTPUT {rule}")
        try:
            wait_until(lambda: number not in registrations(), 90, "its session has expired")
        finally:
            inside(name, f"iptables -D OUTPUT {rule}")
        wait_until(lambda: registrations().get(number, 0) > before[number], 120, "registered anew")
    assert main_process(host(name), "kafka") == pid, "the same process goes on"


def test_packets_between_two_brokers_are_dropped():
    number = a_leader()
    other = sorted(set(NODES) - {number})[0]
    name, peer = NODES[number], ADDRESSES[NODES[other]]
    rule = f"INPUT -s {peer} -p tcp -m multiport --ports 9092 -j DROP"
    with traffic("packets between two brokers dropped"):
        inside(name, f"iptables -A {rule}")
        try:
            wait_until(
                lambda: any(
                    len(isr) < 3
                    for _leader, _replicas, isr in cluster.partitions("orders").values()
                ),
                90,
                "a replica fell out of sync",
            )
        finally:
            inside(name, f"iptables -D {rule}")


def test_started_means_registered():
    """`systemctl start` returns with the broker registered; with ZooKeeper away it waits."""
    name, number = NODES[2], 2
    whole()
    inside(name, "systemctl stop kafka")
    wait_until(lambda: number not in cluster.metadata().brokers, 60, "it has deregistered")
    inside(name, "systemctl start kafka")
    assert number in Cluster({1: cluster.brokers[1]}).metadata().brokers
    whole()

    inside(name, "systemctl stop kafka")
    for each in ADDRESSES:
        inside(each, "systemctl stop zookeeper")
    inside(name, "systemctl start --no-block kafka")
    node = host(name)
    wait_until(
        lambda: "waiting for ZooKeeper"
        in node.file("/var/log/kafka/console.log").content_string[-400:],
        60,
        "it says what it waits for",
    )
    pid = main_process(node, "kafka")
    state = node.check_output("systemctl show -p ActiveState,NRestarts kafka").split()
    assert state == ["NRestarts=0", "ActiveState=activating"], state
    for each in ADDRESSES:
        inside(each, "systemctl start zookeeper")
    wait_until(lambda: node.service("kafka").is_running, 120, "kafka has started")
    assert main_process(node, "kafka") == pid, "the one start went on waiting"
    whole()


def test_stop_is_a_controlled_shutdown():
    name = NODES[3]
    whole()
    with traffic("systemctl restart of a broker"):
        inside(name, "systemctl restart kafka")
    log = host(name).file("/var/log/kafka/server.log").content_string
    assert "Controlled shutdown request returned successfully" in log
