# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On hosts with systemd: restarts, more and fewer brokers and servers, and new disks, while records flow.

The members that join are second instances on the nodes, with units, directories and ports of their own.
"""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest
import yaml

from tests.support.load import Load
from tests.support.node_containers import inside
from tests.support.nodes import ADDRESSES, changed, host, main_process, play, three
from tests.support.outside import ask_zookeeper, mode_of, wait_until
from tests.support.watching import cluster_is_whole, metadata

NEVER = ("-e", "flow_validation=never")
RATE = 19  # of Load: some 4,000 records a second in all
NODES = list(ADDRESSES)
UNITS = ("kafka", "zookeeper")


@pytest.fixture(name="cluster")
def whole_cluster():
    """The scenario's cluster as its inventory wants it, whatever the tests before have left."""
    play("site.yml", *NEVER, inventory="faults")
    running = three()
    wait_until(running.is_whole, 180, "whole")
    return running


def processes():
    """(node, unit) -> main process of the first instances."""
    return {(name, unit): main_process(host(name), unit) for name in NODES for unit in UNITS}


def under_load(cluster, what):
    """The load of an operation."""
    return Load(cluster, "orders", what, RATE)


@contextlib.contextmanager
def second_instances(path, group, numbers, **variables):
    """Yield arguments of a playbook that add members to a group of the inventory; `numbers`: node -> id.

    They are gone at the end, also after a failure: whatever comes next knows nothing of them.
    """
    own = {"kafka": "kafka_broker_id", "zookeeper": "zookeeper_myid"}[group]
    hosts = {
        f"{name}-second": {
            "ansible_host": ADDRESSES[name],
            f"{group}_instance": f"{group}-second",
            own: number,
            **variables,
        }
        for name, number in numbers.items()
    }
    # the nodes' variables say how to get in
    groups = {"nodes": {"hosts": hosts}, group: {"hosts": dict.fromkeys(hosts)}}
    overlay = path / "second.yml"
    overlay.write_text(yaml.safe_dump({"all": {"children": groups}}))
    try:
        yield "-i", overlay
    finally:
        for name in numbers:
            inside(
                name,
                f"systemctl disable --now {group}-second 2>/dev/null || true\n"
                f"rm -rf /etc/systemd/system/{group}-second.service* /var/lib/{group}-second\n"
                "systemctl daemon-reload",
            )


def held(cluster):
    """Broker id to the number of its replicas; those that hold none are left out."""
    topics = cluster.admin().list_topics(timeout=60).topics.values()
    return Counter(
        broker for topic in topics for part in topic.partitions.values() for broker in part.replicas
    )


@pytest.mark.soak
def test_all_are_restarted_and_then_one_broker_alone(cluster):
    """Of both products, one at a time, the controller last of the brokers; what is pending is why."""
    before = processes()
    changes = (
        *("-e", '{"kafka_config": {"num.network.threads": 3, "queued.max.requests": 501}}'),
        *("-e", '{"zookeeper_config": {"maxClientCnxns": 123}}'),
    )
    with under_load(cluster, "rolling restart of servers and brokers") as load:
        play("rolling_restart.yml", *changes, inventory="faults")
    order = load.watch.check()
    assert sorted(order) == sorted(cluster.addresses), order
    assert all(name.startswith("zookeeper") for name in order[:3]), order
    assert not set(processes().values()) & set(before.values())

    controller = metadata(cluster).controller
    with under_load(cluster, "rolling restart") as load:
        same = ("-e", '{"zookeeper_config": {"maxClientCnxns": 123}}')
        play("rolling_restart.yml", *same, inventory="faults")  # the brokers' setting is taken back
    order = load.watch.check()
    assert sorted(order) == ["kafka-1", "kafka-2", "kafka-3"] and order[-1] == f"kafka-{controller}"

    before = processes()
    with under_load(cluster, "one broker restarted") as load:
        play("rolling_restart.yml", *same, "-e", "broker=2", inventory="faults")
    assert load.watch.check() == ["kafka-2"]
    now = processes()
    assert [key for key in now if now[key] != before[key]] == [(NODES[1], "kafka")]


@pytest.mark.soak
def test_one_broker_more_and_one_less(cluster, tmp_path):
    """The new broker gets its part, the others run on; then it gives it back, and leaves."""
    before = processes()
    listener = {
        "name": "INTERNAL",
        "port": 9192,
        "protocol": "PLAINTEXT",
        "advertised": ADDRESSES[NODES[2]],
    }
    with second_instances(
        tmp_path, "kafka", {NODES[2]: 4}, kafka_listeners=[listener]
    ) as with_four:
        with under_load(cluster, "one broker more"):
            play("scale_out.yml", *with_four, inventory="faults")
            cluster.brokers[4] = f"{ADDRESSES[NODES[2]]}:9192"
        counts = held(cluster)
        assert max(counts.values()) - min(counts.values()) <= 1 and counts[4] > 0, counts
        orders = cluster.partitions("orders").values()
        assert any(4 in replicas for _leader, replicas, _isr in orders)
        again = play("scale_out.yml", *with_four, inventory="faults")
        assert set(changed(again).values()) == {0}, again

        with under_load(cluster, "one broker less"):
            play("scale_in.yml", *with_four, "-e", "broker=4", inventory="faults")
            del cluster.brokers[4]
        assert set(held(cluster)) == {1, 2, 3} == metadata(cluster).brokers
        unit = host(NODES[2]).service("kafka-second")
        assert not unit.is_running and not unit.exists
    assert processes() == before, "nothing that ran was restarted"


@pytest.mark.soak
def test_two_servers_more_and_two_less(cluster, tmp_path):
    """From three to five by one a step, and back; then the brokers, one at a time."""
    ports = {
        "zookeeper_client_port": 2182,
        "zookeeper_peer_port": 2889,
        "zookeeper_election_port": 3889,
    }
    numbers = {NODES[0]: 4, NODES[1]: 5}
    joined = [(ADDRESSES[name], 2182) for name in numbers]

    def modes(addresses):
        return sorted(mode_of(ask_zookeeper(*address)) for address in addresses)

    first = [(address, 2181) for address in ADDRESSES.values()]
    with second_instances(tmp_path, "zookeeper", numbers, **ports) as with_five:
        with under_load(cluster, "two ZooKeeper servers more") as load:
            play("scale_zookeeper.yml", *with_five, inventory="faults")
        more = load.watch.check()
        assert modes(first + joined) == ["follower"] * 4 + ["leader"]
        again = play("scale_zookeeper.yml", *with_five, inventory="faults")
        assert set(changed(again).values()) == {0}, again

        leave = ("-e", f"zookeeper_leaves={','.join(f'{name}-second' for name in numbers)}")
        with under_load(cluster, "two ZooKeeper servers less") as load:
            play("scale_zookeeper.yml", *with_five, *leave, inventory="faults")
        less = load.watch.check()
        assert modes(joined) == ["", ""]
        assert not any(host(name).service("zookeeper-second").exists for name in numbers)
    assert modes(first) == ["follower", "follower", "leader"]
    for turns in (more, less):
        assert set(turns) == set(cluster.addresses), turns
        assert all(turns.count(name) == 1 for name in turns if name.startswith("kafka")), turns
    again = play("site.yml", *NEVER, inventory="faults")
    assert set(changed(again).values()) == {0}, again


@pytest.mark.soak
def test_a_broker_with_a_new_disk(cluster):
    """It keeps its id, copies everything anew, and leads again; nobody else is restarted."""
    before = processes()
    with under_load(cluster, "a broker with a new disk"):
        inside(NODES[2], "systemctl stop kafka; rm -rf /var/lib/kafka/data")
        wait_until(lambda: metadata(cluster).brokers == {1, 2}, 60, "broker 3 is not registered")
        refused = play("site.yml", *NEVER, inventory="faults", code=2)
        assert "directories.emptied" in refused and "replace_broker.yml" in refused, refused
        play("replace_broker.yml", "-e", "broker=3", inventory="faults")
        wait_until(lambda: cluster_is_whole(cluster), 60, "every replica is in sync")
    now = processes()
    assert [key for key in now if now[key] != before[key]] == [(NODES[2], "kafka")]
    leaders = {leader for leader, _replicas, _isr in cluster.partitions("orders").values()}
    assert leaders == {1, 2, 3}, "leadership was given back"


@pytest.mark.soak
def test_a_server_with_a_new_disk(cluster):
    """ZooKeeper's leader dies and its disk is gone: it starts empty and fetches all; nobody else restarts."""
    before = processes()
    (dead,) = [name for name in NODES if mode_of(ask_zookeeper(ADDRESSES[name])) == "leader"]
    with under_load(cluster, "a ZooKeeper server with a new disk"):
        inside(dead, "systemctl stop zookeeper; rm -rf /var/lib/zookeeper")
        play("site.yml", *NEVER, inventory="faults")
    assert mode_of(ask_zookeeper(ADDRESSES[dead])) == "follower"
    now = processes()
    assert [key for key in now if now[key] != before[key]] == [(dead, "zookeeper")]
