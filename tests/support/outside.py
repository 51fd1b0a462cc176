# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests see of a cluster from outside, wherever it runs; nothing here belongs to the product."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient


def wait_until(condition, timeout, what):
    """Call `condition` until it returns something true, and return that; fail after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(0.2)


def create_topics(settings, new, timeout=60):
    """Create topics, each a NewTopic; every broker of the client's `bootstrap.servers` knows them afterwards.

    Which one a module asks next is not known, and a broker may learn of a topic seconds after another one.
    """
    admin = AdminClient(settings)  # what it has sent ends with it
    for future in admin.create_topics(new, request_timeout=timeout).values():
        future.result(2 * timeout)
    rest = {key: value for key, value in settings.items() if key != "bootstrap.servers"}
    for server in settings["bootstrap.servers"].split(","):
        wait_until(
            lambda server=server: known(server, new, rest),
            timeout,
            f"{server} knows {sorted(each.topic for each in new)}",
        )


def told_by(server, timeout=10, **settings):
    """The metadata of the broker at this host:port itself; None where it does not answer, or another one does."""
    try:
        told = AdminClient({**settings, "bootstrap.servers": server}).list_topics(timeout=timeout)
    except KafkaException:
        return None
    # The client hears of the other brokers, too, and may have asked one of them. Its name for one is
    # host:port/id, or protocol://host:port/id.
    asked = told.orig_broker_name.rpartition("/")[0].rpartition("//")[2]
    return told if asked == server else None


def known(server, topics, settings):
    """Whether the broker at this host:port itself tells of each NewTopic, with a leader for each partition."""
    told = told_by(server, **settings)
    # Its first answer, before the client knows its id, may come before the broker has made the logs.
    return (
        told is not None
        and told.orig_broker_id >= 0
        and all(
            each.topic in told.topics
            and all(part.leader >= 0 for part in told.topics[each.topic].partitions.values())
            for each in topics
        )
    )


# None twice, and of those that Linux never lends to a client's connection (they begin at 32768).
_ports = iter(random.sample(range(22000, 23000), 1000))


def free_port():
    """Return a port that nobody listens at, another one at each call."""
    for port in _ports:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free from 22000 to 22999")


def ask_zookeeper(address, port=2181, word="srvr"):
    """Return a ZooKeeper server's answer to a four-letter word, "" where it does not answer."""
    try:
        with socket.create_connection((address, port), 5) as stream:
            stream.sendall(word.encode())
            answer = b""
            while part := stream.recv(4096):
                answer += part
            return answer.decode()
    except OSError:
        return ""


@contextlib.contextmanager
def zookeeper(servers, chroot="/kafka"):
    """A connected kazoo client of an ensemble, each of `servers` host:port; the chroot is the role's default."""
    client = KazooClient(f"{','.join(servers)}{chroot}")
    client.start(30)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def znode(servers, path):
    """Return the JSON of a node of ZooKeeper below that chroot, None where there is none."""
    with zookeeper(servers) as client:
        return json.loads(client.get(path)[0]) if client.exists(path) else None


def migration_phase(properties):
    """How far a node is from ZooKeeper to KRaft by the text of its server.properties: zookeeper, migration or kraft."""
    if "zookeeper.metadata.migration.enable=true" in properties:
        return "migration"
    return "kraft" if "process.roles" in properties else "zookeeper"


def mode_of(answer):
    """Return leader, follower or standalone from the answer to `srvr`, "" where it does not serve."""
    return answer.partition("Mode: ")[2].split("\n")[0]


def replicas_of(metadata, topic):
    """Return {partition: (leader, sorted replicas, sorted isr)} of a topic; leader -1 for none."""
    return {
        number: (item.leader, sorted(item.replicas), sorted(item.isrs))
        for number, item in metadata.topics[topic].partitions.items()
    }


def dotted(settings):
    """Return settings of confluent-kafka given as keyword arguments; underscores stand for dots."""
    return {key.replace("_", "."): value for key, value in settings.items()}
