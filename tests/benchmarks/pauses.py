# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long clients wait while a cluster is changed by hand, with Kafka's own tools; judges nothing.

    python -m tests.benchmarks.pauses [--only "rolling restart"]

Four brokers and three ZooKeeper servers, started without any role; a topic of twelve partitions with three
replicas on brokers 1 to 3, which takes about 2,000 idempotent records a second. Printed are the longest time
without an acknowledgement of one partition, and how long the operation took. These are the figures of
`BY_HAND` in tests/support/load.py for what reference measurements have not, and how deployment tools
restart that look at the port alone, or at nothing: the order of their steps, not their own code.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.bare_cluster import BareCluster
from tests.support.outside import wait_until
from tests.support.traffic import Traffic

TOPIC = "pauses-by-hand"
PARTITIONS = 12
AT_ONCE = 10  # each 5 ms
TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
THROTTLE = 50_000_000


class Hand:
    """What an operator does by hand on a bare cluster."""

    def __init__(self, bare):
        self.bare = bare
        self._admin = AdminClient({"bootstrap.servers": bare.bootstrap_servers, "log_level": 0})

    def client(self, **settings):
        """Settings of a confluent-kafka client."""
        named = {key.replace("_", "."): value for key, value in settings.items()}
        return {"bootstrap.servers": self.bare.bootstrap_servers, **named}

    def partitions(self, topic):
        """Partition to (leader, replicas, ISR)."""
        found = self._admin.list_topics(timeout=60).topics[topic].partitions
        return {number: (each.leader, each.replicas, each.isrs) for number, each in found.items()}

    def create(self):
        """Make the topic on brokers 1 to 3."""
        placed = [[(number + step) % 3 + 1 for step in range(3)] for number in range(PARTITIONS)]
        topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=placed)
        self._admin.create_topics([topic])[TOPIC].result(60)
        wait_until(self.whole, 60, "the topic")

    def whole(self):
        """Whether all brokers are registered, and all replicas of all topics are in sync."""
        found = self._admin.list_topics(timeout=60)
        return len(found.brokers) == self.bare.brokers and all(
            len(each.isrs) == len(each.replicas)
            for topic in found.topics.values()
            for each in topic.partitions.values()
        )

    def stop(self, broker):
        """SIGTERM, and the end of it."""
        self.bare.broker_instances[broker].stop(120)

    def restart(self, broker, port_only=False):
        """Stop and start a broker; wait for its port alone, or until everything is in sync."""
        self.stop(broker)
        self.bare.broker_instances[broker].start()
        if port_only:
            wait_until(lambda: answers(self.bare.broker_port(broker)), 120, "the port")
        else:
            wait_until(self.whole, 120, "all in sync")

    def move(self, replicas, directories=None):
        """Reassign with Kafka's own tool: `replicas`: partition -> brokers; wait for the end."""
        plan = [
            {
                "topic": TOPIC,
                "partition": number,
                "replicas": brokers,
                "log_dirs": (directories or {}).get(number) or ["any"] * len(brokers),
            }
            for number, brokers in replicas.items()
        ]
        path = self.bare.directory / "plan.json"
        path.write_text(json.dumps({"version": 1, "partitions": plan}))
        options = ["--reassignment-json-file", str(path), "--bootstrap-server"]
        options += [self.bare.bootstrap_servers]
        throttle = ["--throttle", str(THROTTLE), "--replica-alter-log-dirs-throttle", str(THROTTLE)]
        self._tool("--execute", *throttle, *options)
        # The throttle is removed by the first --verify that finds nothing under way.
        wait_until(
            lambda: "still in progress" not in self._tool("--verify", *options), 300, "moved"
        )

    def _tool(self, *arguments):
        start = self.bare.broker_instances[1].command
        java = start[: start.index("kafka.Kafka")]
        kept = [each for each in java if not each.startswith(("-Dinstance", "-Dlog4j", "-Xm"))]
        done = subprocess.run(
            [*kept, TOOL, *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        return done.stdout


def answers(port):
    """Whether something listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# ---------------------------------------------------------------- operations


def roll(hand):
    """One broker after the other, all in sync between."""
    for broker in (1, 2, 3):
        hand.restart(broker)


def one_restart(hand):
    """One broker."""
    hand.restart(2)


def more_and_less(hand):
    """Broker 4 gets a quarter of the replicas, and gives them back."""
    before = {number: found[1] for number, found in hand.partitions(TOPIC).items()}
    spread = {}
    for number, brokers in before.items():
        place = number % 4
        spread[number] = [4 if at == place else each for at, each in enumerate(brokers)]
    hand.move(spread)
    hand.move(before)


def new_disk(hand):
    """Broker 3 comes back with nothing on its disk, and copies everything."""
    hand.stop(3)
    shutil.rmtree(hand.bare.log_directory(3))
    shutil.rmtree(hand.bare.log_directory(3, 2))
    hand.bare.broker_instances[3].start()
    wait_until(hand.whole, 300, "all in sync")


def disks(hand):
    """Half of broker 1's replicas move to its other disk, and all of them back."""
    found = hand.partitions(TOPIC)
    for half in (2, 1):
        places = {}
        for number, (_leader, brokers, _isr) in found.items():
            disk = half if number % 2 else 1
            path = str(hand.bare.log_directory(1, disk))
            places[number] = [path if each == 1 else "any" for each in brokers]
        hand.move({number: each[1] for number, each in found.items()}, places)


def port_alone(hand):
    """One broker after the other, as soon as the port of the one before answers."""
    for broker in (1, 2, 3):
        hand.restart(broker, port_only=True)
    wait_until(hand.whole, 120, "all in sync")


def at_once(hand):
    """All three brokers of the topic together."""
    for broker in (1, 2, 3):
        hand.bare.broker_instances[broker].process.terminate()
    for broker in (1, 2, 3):
        hand.stop(broker)
        hand.bare.broker_instances[broker].start()
    wait_until(hand.whole, 120, "all in sync")


OPERATIONS = {
    "rolling restart": roll,
    "one broker restarted": one_restart,
    "one broker more, and one less": more_and_less,
    "a disk more, and one less": disks,
    "a broker with a new disk": new_disk,
    "one after the other, the port alone": port_alone,
    "all at once": at_once,
}


def measured(hand, operation):
    """(longest pause, seconds, records, failed sends, lost) of an operation under load."""
    with Traffic(hand, TOPIC, at_once=AT_ONCE, waiting=200) as traffic:
        wait_until(lambda: len(traffic.acknowledged) > 2000, 60, "traffic")
        traffic.longest_pause = 0.0
        began = time.monotonic()
        operation(hand)
        seconds = time.monotonic() - began
        sent = len(traffic.acknowledged)
        wait_until(lambda: len(traffic.acknowledged) > sent + 2000, 120, "traffic afterwards")
    lost = len(traffic.lost())
    return traffic.longest_pause, seconds, len(traffic.acknowledged), len(traffic.failed), lost


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(OPERATIONS), help="repeatable")
    parser.add_argument("--port-base", type=int, default=25200)
    options = parser.parse_args()
    layout = "{:38} {:>8} {:>8} {:>8} {:>7} {:>5}"
    print(layout.format("by hand", "pause s", "took s", "records", "failed", "lost"), flush=True)
    with tempfile.TemporaryDirectory(prefix="kafkaops-pauses-") as work:
        cluster = BareCluster(
            Path(work), options.port_base, brokers=4, log_directories=2, broker_heap="384m"
        )
        with cluster:
            hand = Hand(cluster)
            hand.create()
            for name in options.only or OPERATIONS:
                pause, seconds, *counts = measured(hand, OPERATIONS[name])
                print(layout.format(name, f"{pause:.2f}", f"{seconds:.1f}", *counts), flush=True)


if __name__ == "__main__":
    main()
