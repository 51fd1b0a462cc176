# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who leads where the ISR is empty, by Kafka's eligible leader replicas (KIP-966): the guard takes nobody out of them.

And who is in none of them comes back without waiting.

Elections are Kafka's, and are looked at by its own tool.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from tests.local.support import LocalCluster
from tests.support.outside import create_topics, wait_until
from tests.support.watching import cluster_is_whole

INVENTORY = "inventories/local-kraft-3x3"
TOPIC = "both"  # on brokers 2 and 3, of which both must be in sync
RECORDS = 100


def registered(cluster):
    """The ids of the brokers that are not fenced."""
    return set(cluster.admin().list_topics(timeout=60).brokers)


def described(cluster):
    """{leader, isr, elr, last: texts} of the partition, as kafka-topics.sh tells."""
    text = cluster.tool("kafka-topics.sh", "--describe", "--topic", TOPIC)
    line = next(each for each in text.splitlines() if "Partition: 0" in each)
    words = dict(re.findall(r"(\w+): *([\w,]*)", line))
    return {
        "leader": words["Leader"],
        "isr": words["Isr"],
        "elr": words["Elr"],
        "last": words["LastKnownElr"],
    }


def records(cluster):
    """How many records the partition has, as its leader tells."""
    consumer = Consumer(cluster.client(group_id="eligible", enable_auto_commit=False))
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=60)
    finally:
        consumer.close()
    return high - low


def pends(pid):
    """Whether a SIGTERM waits for a process that stands still."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as handle:
        masks = re.findall(r"(?:SigPnd|ShdPnd):\s+(\w+)", handle.read())
    return any(int(each, 16) >> (signal.SIGTERM - 1) & 1 for each in masks)


def kill_for_good(cluster, name):
    """SIGKILL, and nobody starts it again: its service manager was told to stop it just before."""
    process = cluster.process(name)
    os.kill(process.pid, signal.SIGSTOP)
    stops = threading.Thread(target=cluster.supervisorctl, args=("stop", name))
    stops.start()
    try:
        wait_until(lambda: pends(process.pid), 60, f"{name} is to stop")
    finally:
        os.kill(process.pid, signal.SIGKILL)
        stops.join()


def empty(cluster, name):
    """A new disk in place of the old one, formatted for the same cluster."""
    data = cluster.instance(name) / "data"
    cluster_id = re.search(r"^cluster.id=(.*)$", (data / "meta.properties").read_text(), re.M)[1]
    shutil.rmtree(data)
    data.mkdir()
    command = [cluster.release() / "bin" / "kafka-storage.sh", "format", "-t", cluster_id]
    command += ["-c", cluster.instance(name) / "conf" / "current" / "server.properties"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def start(cluster, broker):
    cluster.supervisorctl("start", f"kafka-{broker}")
    wait_until(lambda: broker in registered(cluster), 90, f"broker {broker} is back")


def console(cluster, broker):
    return (cluster.instance(f"kafka-{broker}") / "logs" / "console.log").read_text()


def is_gone(cluster, broker):
    wait_until(lambda: broker not in registered(cluster), 60, f"broker {broker} is gone")


@pytest.mark.soak
def test_who_has_stopped_cleanly_leads_again_with_all_that_was_acknowledged(next_offset):
    """And not the last leader, which was killed and is back with an empty disk; nor is that one waited for."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.deploy()
        new = NewTopic(TOPIC, 1, replica_assignment=[[2, 3]], config={"min.insync.replicas": "2"})
        create_topics(cluster.client(), [new])
        producer = Producer({**cluster.client(), "acks": "all"})
        for number in range(RECORDS):
            producer.produce(TOPIC, b"acknowledged %d" % number)
        assert producer.flush(60) == 0

        cluster.supervisorctl("restart", "kafka-1")
        wait_until(lambda: "and unregistered broker 1" in console(cluster, 1), 60, "not waited for")
        wait_until(lambda: cluster_is_whole(cluster), 120, "broker 1 is back")

        cluster.supervisorctl("stop", "kafka-2")
        is_gone(cluster, 2)
        kill_for_good(cluster, "kafka-3")
        is_gone(cluster, 3)
        assert described(cluster) == {"leader": "none", "isr": "", "elr": "2,3", "last": "3"}
        empty(cluster, "kafka-3")
        start(cluster, 3)
        assert described(cluster) == {"leader": "none", "isr": "", "elr": "2", "last": "3"}
        start(cluster, 2)
        wait_until(lambda: cluster.partitions(TOPIC)[0][0] != -1, 60, "somebody leads")
        print(f"\n{described(cluster)}, {records(cluster)} records")
        assert records(cluster) == RECORDS and cluster.partitions(TOPIC)[0][0] == 2
        wait_until(lambda: cluster_is_whole(cluster), 120, "both are in sync")

        for broker in (2, 3):
            cluster.supervisorctl("stop", f"kafka-{broker}")
            is_gone(cluster, broker)
        assert described(cluster)["elr"] == "2,3"
        start(cluster, 2)
        wait_until(lambda: cluster.partitions(TOPIC)[0][0] == 2, 60, "the first one leads")
        assert records(cluster) == RECORDS
        assert "it is eligible to lead where too few others are in sync (partitions: 1)" in console(
            cluster, 2
        )
        assert "and unregistered broker 2" not in console(cluster, 2)
