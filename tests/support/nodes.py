# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of the Molecule scenarios, from inside (testinfra) and from outside (clients that are not ours)."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import time
from pathlib import Path

import testinfra
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.support import node_containers
from tests.support.node_containers import inside
from tests.support.outside import dotted, replicas_of, wait_until
from tests.support.watching import cluster_is_whole

CHECKOUT = Path(__file__).resolve().parents[2]
STATE = CHECKOUT / ".ansible" / "nodes"
ADDRESSES = {f"ko-node-{number}": f"172.29.78.1{number}" for number in (1, 2, 3)}


def host(name):
    """Return testinfra's host of a node, as root inside of it."""
    return testinfra.get_host(f"docker://{name}")


def main_process(node, unit):
    """Return the main process of a unit, 0 if it has none."""
    return int(node.check_output(f"systemctl show -p MainPID --value {unit}"))


def dies_and_boots(name, *units):
    """SIGKILL and start of a node's container; return when the units are active again, as at a boot."""
    node_containers.get(name).kill()
    wait_until(lambda: not node_containers.is_running(name), 10, "the node is dead")
    node_containers.get(name).start()
    for unit in units:
        active = f"systemctl is-active {unit}"
        wait_until(
            lambda active=active: host(name).run(active).stdout.strip() == "active",
            180,
            f"{unit} is active",
        )


def listening(node):
    """Return the (address, port) pairs of a node's listening TCP sockets; address "*" is any."""
    lines = node.check_output("ss -Hltn").splitlines()
    found = set()
    for line in lines:
        address, dummy, port = line.split()[3].rpartition(":")
        address = re.sub(r"^\[(::ffff:)?|\]$", "", address)
        found.add(("*" if address in ("*", "0.0.0.0", "::") else address, int(port)))
    # Docker's own resolver
    return {item for item in found if item[0] != "127.0.0.11"}


def play_command(playbook, *arguments, inventory):
    """Return (command line, environment) of ansible-playbook on the nodes with a scenario's inventory.

    `playbook`: its name in playbooks/, or the path of another one.
    """
    command = [
        *("ansible-playbook", CHECKOUT / "playbooks" / playbook),
        *("-i", CHECKOUT / "molecule" / "inventory"),
        *("-i", CHECKOUT / "molecule" / inventory / "inventory", *arguments),
    ]
    # Molecule's own settings are for its own runs: colours above all
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
        "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
        "MOLECULE_PROJECT_DIRECTORY": str(CHECKOUT),
    }
    return command, environment


def play(playbook, *arguments, inventory, code=0):
    """Run ansible-playbook on the nodes with a scenario's inventory; return its output."""
    command, environment = play_command(playbook, *arguments, inventory=inventory)
    done = subprocess.run(
        command,
        cwd=CHECKOUT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout[-20000:]
    return done.stdout


def changed(said):
    """Return how many tasks changed each node, from the recap of a playbook's output."""
    found = re.findall(
        r"^(\S+)\s+: .*changed=(\d+)", said.rpartition("PLAY RECAP")[2], re.MULTILINE
    )
    assert found, said[-5000:]  # else "nothing changed" would be true of nothing
    return {name: int(count) for name, count in found}


def state_of(name):
    """Return what a run that changes nothing leaves alone: processes, files, with their times."""
    script = (CHECKOUT / "molecule" / "state_of_node.sh").read_text()
    return inside(name, script.replace("#!/bin/sh", "")).strip().splitlines()


class Cluster:
    """A Kafka cluster on the nodes, looked at by confluent-kafka from this machine."""

    def __init__(self, brokers, servers=None):
        """`brokers`: id -> host:port of the listener to be used; `servers`: of ZooKeeper, likewise."""
        self.brokers = dict(brokers)
        self.servers = dict(servers or {})
        self.settings = {"bootstrap.servers": ",".join(self.brokers.values())}

    @property
    def broker_ids(self):
        """The ids of all brokers."""
        return set(self.brokers)

    @property
    def addresses(self):
        """(host, port) of every instance by a name of its own: kafka-1, zookeeper-1..."""
        named = {f"zookeeper-{number}": at for number, at in self.servers.items()}
        named |= {f"kafka-{number}": at for number, at in self.brokers.items()}
        split = {name: at.rpartition(":") for name, at in named.items()}
        return {name: (address, int(port)) for name, (address, _colon, port) in split.items()}

    def client(self, **settings):
        """Return settings of a confluent-kafka client; underscores of names stand for dots."""
        return {**self.settings, **dotted(settings)}

    def admin(self):
        """Return a confluent-kafka AdminClient."""
        return AdminClient(self.settings)

    def partitions(self, topic):
        """Return {partition: (leader, sorted replicas, sorted isr)}; leader -1 for none."""
        return replicas_of(self.admin().list_topics(topic, timeout=60), topic)

    def log(self, topic, partition):
        """The bytes of a partition's segments, from the disk of a first instance that is in sync."""
        _leader, _replicas, isr = self.partitions(topic)[partition]
        name = list(ADDRESSES)[min(isr) - 1]
        text = inside(name, f"cat /var/lib/kafka/data/{topic}-{partition}/*.log | base64 -w0")
        return base64.b64decode(text)

    def metadata(self, timeout=15):
        """Return confluent-kafka's ClusterMetadata, or None where nobody answers."""
        try:
            return AdminClient(self.settings).list_topics(timeout=timeout)
        except KafkaException:
            return None

    def under_replicated(self):
        """Return "topic-partition" of what has replicas out of sync or no leader."""
        found = self.metadata()
        return [
            f"{topic.topic}-{number}"
            for topic in found.topics.values()
            for number, item in topic.partitions.items()
            if item.leader < 0 or len(item.isrs) < len(item.replicas)
        ]

    def is_whole(self):
        """Tell whether every broker is registered, and every replica in sync."""
        return cluster_is_whole(self) is not None

    def effective(self, broker_id):
        """Return the configuration that a broker runs with: key -> value."""
        admin = AdminClient(self.settings)
        resource = ConfigResource(ConfigResource.Type.BROKER, str(broker_id))
        (future,) = admin.describe_configs([resource]).values()
        return {key: entry.value for key, entry in future.result(30).items()}

    def round_trip(self, topic, number=100):
        """Write records to every partition and read them back; return how many came."""
        admin_topics = self.metadata().topics
        partitions = list(admin_topics[topic].partitions)
        mark = f"{time.time_ns()}"
        producer = Producer({**self.settings, "acks": "all"})
        failed = []
        starts = {}
        consumer = Consumer({**self.settings, "group.id": mark, "enable.auto.commit": False})
        for partition in partitions:
            starts[partition] = consumer.get_watermark_offsets(TopicPartition(topic, partition))[1]
        for item in range(number):
            producer.produce(
                topic,
                f"{mark}:{item}",
                key=str(item),
                partition=partitions[item % len(partitions)],
                on_delivery=lambda error, _message: error and failed.append(error),
            )
        producer.flush(60)
        assert not failed, failed[:3]
        consumer.assign([TopicPartition(topic, item, starts[item]) for item in partitions])
        seen, deadline = set(), time.monotonic() + 60
        while len(seen) < number and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message and not message.error() and message.value().decode().startswith(mark):
                seen.add(message.value())
        consumer.close()
        return len(seen)


def three():
    """Return the cluster of the scenarios cluster and faults: a broker and a server on each node."""
    nodes = dict(enumerate(ADDRESSES.values(), 1))
    return Cluster(
        {number: f"{address}:9092" for number, address in nodes.items()},
        {number: f"{address}:2181" for number, address in nodes.items()},
    )
