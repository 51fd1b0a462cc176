# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that others have installed is taken over host by host, as docs/taking-over.md says.

The others start Kafka's own classes with files of their own; nothing of theirs is known but what the inventory says.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile

import pytest
from confluent_kafka.admin import NewTopic

from tests.local.support import OFFSET, LocalCluster
from tests.rolls.migrating import CONTROLLERS, phases, said, wants_kraft
from tests.support.bare_cluster import BareCluster
from tests.support.outside import wait_until
from tests.support.traffic import Traffic
from tests.support.watching import InSync, cluster_is_whole

OFFSET_HERE = OFFSET + 1300
# So that their brokers listen where the local inventory has its own.
BASE = 9061 + OFFSET_HERE


def made(cluster, topic, replicas):
    """Create a topic by a client of its own; returns its name."""
    admin = cluster.admin()
    admin.create_topics([NewTopic(topic, 6, replicas)])[topic].result(60)
    wait_until(lambda: len(cluster.partitions(topic)) == 6, 60, "the topic is known")
    return topic


class Theirs(LocalCluster):
    """An inventory of this collection for what others have installed: their files, ports, ids and listeners.

    `bare`: their cluster; `settings`: of all brokers, as they have them and the inventory repeats them.
    """

    def __init__(self, bare, inventory, settings):
        super().__init__(OFFSET_HERE, inventory=inventory)
        self.bare, self.settings = bare, settings
        self.brokers = {f"kafka-{number}": number for number in bare.broker_instances}
        for name, number in self.brokers.items():
            self.configure(
                name,
                kafka_broker_id=number,
                kafka_rack=f"rack-{number}",
                kafka_log_dirs=[str(bare.log_directory(number))],
            )
        for server in bare.zookeeper_instances:
            self.configure(
                server.name,
                zookeeper_data_dir=str(server.directory / "data"),
                zookeeper_taken_over={
                    "config": str(server.directory / "zoo.cfg"),
                    "version": "3.9.5",
                },
            )
        ports = {"client": 0, "peer": 10, "election": 20}
        self.configure(
            "zookeeper",
            zookeeper_config={"forceSync": "no"},
            **{
                f"zookeeper_{what}_port": "{{ %d + local_index | int }}" % (BASE + more)
                for what, more in ports.items()
            },
        )
        self.tell()

    def tell(self, named=True, chroot="/prod", **settings):
        """Write what the inventory says of the brokers."""
        config = "{{ kafka_log_dirs[0] | dirname }}/server.properties"
        self.configure(
            "kafka",
            kafka_taken_over={"config": config, "version": self.version} if named else {},
            kafka_zookeeper_chroot=chroot,
            kafka_config={**self.settings, **settings},
            kafka_listeners=[
                {
                    "name": "PLAINTEXT",
                    "port": "{{ %d + local_index | int }}" % (BASE + 30),
                    "bind": "127.0.0.1",
                    "advertised": "127.0.0.1",
                }
            ],
        )

    @property
    def addresses(self):
        """(host, port) of every instance by its name."""
        servers = {name: ("127.0.0.1", BASE + int(name[-1])) for name in self.zookeepers}
        return {**super().addresses, **servers}

    def old(self, name):
        """The process of the others on a host."""
        kind, _dash, number = name.rpartition("-")
        if kind == "kafka":
            return self.bare.broker_instances[int(number)]
        return self.bare.zookeeper_instances[int(number) - 1]

    def take_over(self, name):
        """Stop what others run on a host, and take it over; returns the Run."""
        self.old(name).stop(60)
        return self.deploy("--limit", name)


@contextlib.contextmanager
def installed_by_others(inventory, settings, **size):
    """A cluster that somebody else has installed, and an inventory for it."""
    directory = tempfile.mkdtemp(prefix="ktt-", dir="/tmp")
    # The values by which Kafka would be started here, too: what the inventory does not say is not theirs to change.
    bare = BareCluster(directory, BASE, chroot="/prod", broker_config=settings, **size)
    try:
        with bare, Theirs(bare, inventory, settings) as cluster:
            yield cluster
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def test_one_broker_is_taken_over_with_what_it_holds():
    """What the inventory would change is found before, by their own files; then everything is there, and proven."""
    settings = {"log.retention.hours": 168, "offsets.topic.num.partitions": 5}
    with installed_by_others("inventories/local-1x1", settings, brokers=1, zookeepers=1) as cluster:
        with Traffic(cluster, made(cluster, "theirs", 1)) as traffic:
            wait_until(lambda: len(traffic.acknowledged) > 300, 60, "acknowledgements")
        cluster.tell(named=False)
        refused = said(cluster.deploy(code=2))
        assert "[takeover.unnamed] kafka-1: kafka_taken_over" in refused
        assert "[ports.in_use] kafka-1" in refused and "warning: [takeover.unnamed]" not in refused
        cluster.tell(chroot="/kafka")
        refused = said(cluster.deploy(code=2))
        assert (
            "[cluster.chroot_changed] kafka-1" in refused
            and "set kafka_zookeeper_chroot: /prod" in refused
        )
        cluster.tell(**{"log.retention.hours": 24})
        refused = said(cluster.deploy(code=2))
        assert "[retention.cut] kafka-1: kafka_config.log.retention.hours=24" in refused
        assert "down from 7d to 1d" in refused
        cluster.tell()
        refused = said(cluster.deploy(code=2))
        assert "retention.cut" not in refused and "takeover" not in refused
        assert "run playbooks/site.yml --limit kafka-1" in refused, "the port, and what to do"
        assert "[takeover.first]" in said(cluster.play("rolling_upgrade.yml", code=2))
        assert cluster.old("kafka-1").running() and not cluster.process("kafka-1")

        cluster.take_over("zookeeper-1")
        cluster.take_over("kafka-1")
        assert traffic.acknowledged and traffic.lost() == []
        assert "theirs" in cluster.admin().list_topics(timeout=10).topics
        assert cluster.deploy().changed() == 0
        proven = cluster.play("validate.yml", "-e", "flow_validation_records=3000")
        assert "PASS: " in proven.text, proven.text[-5000:]


@pytest.mark.soak
def test_three_brokers_are_taken_over_and_go_to_kraft():
    """Host by host while records flow: nothing is lost, and never fewer than two replicas are in sync."""
    settings = {"log.retention.hours": 168, "inter.broker.protocol.version": "3.9"}
    with installed_by_others("inventories/local", settings) as cluster:
        topic = made(cluster, "theirs", 3)
        with Traffic(cluster, topic) as traffic, InSync(cluster, topic) as in_sync:
            for name in [*cluster.zookeepers, *cluster.brokers]:
                cluster.take_over(name)
                if name in cluster.brokers:
                    wait_until(lambda: cluster_is_whole(cluster), 120, f"{name} is in sync again")
            assert cluster.deploy().changed() == 0
        print(f"taken over: longest pause of a partition {traffic.longest_pause:.2f} s")
        assert not traffic.failed and traffic.lost() == []
        assert in_sync.fewest >= 2 and in_sync.looks > 100

        wants_kraft(cluster)
        for name in CONTROLLERS:
            cluster.configure(name, kafka_config=settings)
        with Traffic(cluster, topic) as traffic, InSync(cluster, topic) as in_sync:
            cluster.play("migrate_to_kraft.yml")
            cluster.play("migrate_to_kraft.yml", "-e", "migrate=finish")
        print(f"migrated: longest pause of a partition {traffic.longest_pause:.2f} s")
        assert set(phases(cluster).values()) == {"kraft"}
        assert not traffic.failed and traffic.lost() == []
        assert in_sync.fewest >= 2
