# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bystander sees while a cluster is worked on: who serves, what is in sync, what is acknowledged."""

from __future__ import annotations

from tests.support import outside
from tests.support.outside import ask_zookeeper, mode_of


def zookeeper_port(cluster, name):
    """Return the client port of a ZooKeeper server by its inventory name."""
    return 2180 + int(name.rpartition("-")[2]) + cluster.offset


def zookeeper_says(cluster, name, word="srvr"):
    """Return a server's answer to a four-letter word, "" where it does not answer."""
    return ask_zookeeper("127.0.0.1", zookeeper_port(cluster, name), word)


def zookeeper_mode(cluster, name):
    """Return leader, follower or standalone, or "" for a server that does not serve."""
    return mode_of(zookeeper_says(cluster, name))


def modes(cluster):
    """Return server name -> mode."""
    return {name: zookeeper_mode(cluster, name) for name in cluster.zookeepers}


def ensemble_is_whole(cluster):
    """Tell whether there is one leader, and everybody else follows it."""
    return sorted(modes(cluster).values()) == ["follower", "follower", "leader"]


def changed(before, after):
    """Return the names whose process is another one."""
    return {name for name in before if before[name] != after[name]}


def led_by_others(cluster):
    """Return the partitions of all topics that another broker leads than the preferred one."""
    return [
        (topic.topic, part.id)
        for topic in cluster.admin().list_topics(timeout=30).topics.values()
        for part in topic.partitions.values()
        if part.replicas[0] != part.leader
    ]


def zookeeper(cluster):
    """A connected kazoo client of the cluster's first server, below the chroot that the role sets by default."""
    return outside.zookeeper([f"127.0.0.1:{zookeeper_port(cluster, cluster.zookeepers[0])}"])


def registered_at(cluster):
    """Return broker id -> when it registered, in seconds since the epoch.

    A killed broker stays in the metadata, and in sync, until its session has expired; only the age
    of its registration tells whether the one that answers now is the one that was started again.
    """
    with zookeeper(cluster) as client:
        found = {
            int(number): client.exists(f"/brokers/ids/{number}")
            for number in client.get_children("/brokers/ids")
        }
        return {number: stat.ctime / 1000 for number, stat in found.items() if stat}


def leftovers(cluster):
    """Topics and groups of drills and benchmarks that are there."""
    admin = cluster.admin()
    groups = [each.group_id for each in admin.list_consumer_groups().result(30).valid]
    names = [*admin.list_topics(timeout=30).topics, *groups]
    return sorted(name for name in names if name.startswith("kafkaops-drill-"))
