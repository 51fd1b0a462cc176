# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On hosts with systemd: from ZooKeeper to KRaft while records flow, back, there again, and to the end.

The controllers are second instances on the brokers' nodes, as docs/migration.md has it for whoever has three machines.
"""

from __future__ import annotations

import pytest
import yaml
from confluent_kafka.admin import NewTopic

from tests.support import outside
from tests.support.load import Load
from tests.support.node_containers import inside
from tests.support.nodes import (
    ADDRESSES,
    CHECKOUT,
    changed,
    dies_and_boots,
    host,
    main_process,
    play,
    three,
)
from tests.support.outside import wait_until
from tests.support.traffic import through
from tests.support.watching import cluster_is_whole

pytestmark = pytest.mark.soak

CLEANUP = str(CHECKOUT / "molecule" / "cleanup.yml")
TOPIC = "orders"
RATE = 19  # of Load: some 4,000 records a second in all
NODES = dict(enumerate(ADDRESSES, 1))
BROKER, CONTROLLER, SERVER = "kafka", "kafka-controller", "zookeeper"
SESSION_SECONDS = 9  # broker.session.timeout.ms
KRAFT = {"kafka_metadata": "kraft", "kafka_version": "3.9.2"}
cluster = three()


@pytest.fixture(name="wanted", scope="module")
def of_zookeeper(tmp_path_factory):
    """A cluster of ZooKeeper on empty nodes, and the path of what the tests add to its inventory; gone at the end.

    Whatever comes next would find a cluster that its inventory does not know.
    """
    play(CLEANUP, inventory="faults")
    play("site.yml", "-e", "flow_validation=never", inventory="faults")
    path = tmp_path_factory.mktemp("wanted") / "kraft.yml"
    write(path)
    yield path
    play(CLEANUP, "-i", path, inventory="faults")


def write(path, servers=True):
    """The inventory that docs/migration.md asks for; `servers`: whether it has ZooKeeper still."""
    hosts = {
        f"controller-{number}": {
            "ansible_host": ADDRESSES[name],
            "kafka_instance": CONTROLLER,
            "kafka_broker_id": 3000 + number,
            "kafka_heap": "256m",
        }
        for number, name in NODES.items()
    }
    groups = {
        "nodes": {"children": {"second_names": {"hosts": hosts}}},
        "controllers": {"hosts": dict.fromkeys(hosts)},
    }
    more = {} if servers else {"zookeeper_group": "none_of_them"}
    path.write_text(yaml.safe_dump({"all": {"vars": {**KRAFT, **more}, "children": groups}}))


def run(playbook, wanted, *arguments, **more):
    return play(playbook, "-i", wanted, *arguments, inventory="faults", **more)


def said(output):
    return " ".join(output.split())


def znode(path):
    """Return the JSON of a node of ZooKeeper, None where there is none."""
    return outside.znode(cluster.servers.values(), path)


def phases(unit):
    """What the instances of all nodes run as: zookeeper, migration or kraft; "" where there is none."""
    found = set()
    for name in ADDRESSES:
        text = inside(name, f"cat /etc/{unit}/current/server.properties", check=False)
        runs = host(name).service(unit).is_running
        found.add(outside.migration_phase(text) if runs else "")
    return found


def whole():
    wait_until(lambda: cluster_is_whole(cluster), 180, "the cluster is whole")


def test_to_dual_write_where_a_broker_dies_and_a_node_boots(wanted):
    """A second run has nothing to do; its own host tells of the death; all come back at boot as they were."""
    with Load(cluster, TOPIC, "migration to dual-write", RATE) as load:
        run("migrate_to_kraft.yml", wanted, "-e", "migrate_until=dual_write")
    assert sorted(load.watch.check()) == ["kafka-1", "kafka-2", "kafka-3"]
    assert phases(BROKER) == phases(CONTROLLER) == {"migration"}
    assert znode("/controller")["brokerid"] > 3000
    again = run("migrate_to_kraft.yml", wanted, "-e", "migrate_until=dual_write")
    assert set(changed(again).values()) == {0}, again[-5000:]

    node = host(NODES[2])
    pid = main_process(node, BROKER)
    with through("SIGKILL of a broker in dual-write", cluster, TOPIC, whole) as running:
        inside(NODES[2], f"kill -KILL {pid}")
        wait_until(lambda: main_process(node, BROKER) not in (0, pid), 120, "it runs again")
    console = inside(NODES[2], "cat /var/log/kafka/console.log")
    assert "of a process that is dead; fenced and unregistered" in console, console[-3000:]
    assert running.longest_pause < SESSION_SECONDS / 2, "the session decided"

    with through("death of a node with all three, back at once", cluster, TOPIC, whole):
        dies_and_boots(NODES[3], SERVER, CONTROLLER, BROKER)
    assert phases(BROKER) == phases(CONTROLLER) == {"migration"}


def test_to_kraft_and_back_from_there(wanted):
    """What was made in KRaft is in ZooKeeper then, the controllers are gone, and all is as before."""
    with Load(cluster, TOPIC, "migration to KRaft", RATE) as load:
        run("migrate_to_kraft.yml", wanted)
    assert set(load.watch.check()) == {"kafka-1", "kafka-2", "kafka-3"}
    assert (phases(BROKER), phases(CONTROLLER)) == ({"kraft"}, {"migration"})
    run("stop.yml", wanted)
    run("start.yml", wanted)
    whole()
    admin = cluster.admin()  # what it has sent ends with it
    admin.create_topics([NewTopic("made-in-kraft", 2, 3)])["made-in-kraft"].result(60)
    with Load(cluster, TOPIC, "brokers taken back from KRaft", RATE) as load:
        run("migrate_back.yml", wanted)
    load.watch.check()
    assert phases(BROKER) == {"zookeeper"} and phases(CONTROLLER) == {""}
    assert znode("/brokers/topics/made-in-kraft") and znode("/migration") is None
    assert znode("/controller")["brokerid"] in cluster.brokers
    for name in ADDRESSES:
        left = inside(name, f"ls -d /etc/systemd/system/{CONTROLLER}* || true")
        assert left.strip() == ""
    again = play("site.yml", "-e", "flow_validation=never", inventory="faults")
    assert set(changed(again).values()) == {0}, again[-5000:]


def test_to_the_end(wanted):
    """Without ZooKeeper nothing is left to do, a node boots, and nobody goes back."""
    with Load(cluster, TOPIC, "migration to KRaft once more", RATE):
        run("migrate_to_kraft.yml", wanted)
    with Load(cluster, TOPIC, "end of the migration", RATE):
        run("migrate_to_kraft.yml", wanted, "-e", "migrate=finish")
    assert phases(BROKER) == phases(CONTROLLER) == {"kraft"}
    refused = run("migrate_back.yml", wanted, code=2)
    assert "[migration.no_way_back]" in said(refused), refused[-3000:]
    away = ("-e", "migrate=remove_zookeeper", "-e", "confirm=nodes")
    with Load(cluster, TOPIC, "servers of ZooKeeper alone", RATE):
        run("migrate_to_kraft.yml", wanted, *away)
    assert not any(host(name).service(SERVER).exists for name in ADDRESSES)
    write(wanted, servers=False)
    again = run("site.yml", wanted, "-e", "flow_validation=never")
    assert set(changed(again).values()) == {0}, again[-5000:]
    with through("death of a node in KRaft, back at once", cluster, TOPIC, whole):
        dies_and_boots(NODES[1], CONTROLLER, BROKER)
    proven = run("validate.yml", wanted)
    assert "PASS" in proven, proven[-5000:]
