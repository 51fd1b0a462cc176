# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From ZooKeeper to KRaft while records flow: refused, there, back, there again, killed, and to the end.

The tests of this file build on each other: each leaves the cluster in the state that its name says. What a node is,
is read in its server.properties and by Kafka's own tools.
"""

from __future__ import annotations

import os
import shutil
import signal

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from tests.local.support import OFFSET, LocalCluster
from tests.rolls.migrating import (
    CONTROLLERS,
    KRAFT,
    phases,
    said,
    servers_of,
    wants_kraft,
    wants_zookeeper,
    znode,
)
from tests.support.load import Load
from tests.support.outside import wait_until, zookeeper
from tests.support.traffic import Traffic
from tests.support.watching import cluster_is_whole

pytestmark = pytest.mark.soak

TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync


@pytest.fixture(scope="module")
def migrated():
    """Three brokers and three servers of ZooKeeper, deployed as people have them."""
    with LocalCluster(OFFSET + 1900) as running:
        running.deploy()
        yield running


def all_are(cluster, brokers, controllers):
    assert None not in cluster.processes().values(), cluster.processes()
    wanted = {**dict.fromkeys(cluster.brokers, brokers), **dict.fromkeys(CONTROLLERS, controllers)}
    assert phases(cluster) == {
        name: wanted[name] for name in [*cluster.brokers, *cluster.controllers]
    }


def made(cluster, topic):
    """Create a topic by Kafka's own tool."""
    cluster.tool(
        "kafka-topics.sh",
        "--create",
        "--topic",
        topic,
        "--partitions",
        2,
        "--replication-factor",
        3,
    )


def forward(cluster, *arguments, **more):
    return cluster.play("migrate_to_kraft.yml", *arguments, **more)


def killed_when(cluster, playbook, wanted):
    """Run a playbook until the first broker is in a phase, kill it, and wait until that broker is back."""
    with cluster.playing(playbook) as (process, log):
        wait_until(
            lambda: wanted in (phases(cluster)[name] for name in cluster.brokers)
            or process.poll() is not None,
            600,
            f"the first broker is in {wanted}",
        )
        assert process.poll() is None, log.read_text()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
    wait_until(lambda: cluster_is_whole(cluster), 120, "the broker of the killed turn is back")


def killed_and_back(cluster, name):
    """SIGKILL; returns the longest pause of a partition, in seconds, when the node is back. Nothing is lost."""
    before = cluster.process(name)
    with Traffic(cluster, TOPIC) as traffic:
        wait_until(lambda: len(traffic.acknowledged) > 300, 120, "acknowledgements")
        os.kill(before.pid, signal.SIGKILL)
        wait_until(lambda: cluster.process(name) not in (None, before), 120, f"{name} runs again")
        sent = len(traffic.acknowledged)
        wait_until(lambda: len(traffic.acknowledged) > sent + 300, 120, "acknowledgements after it")
        wait_until(lambda: cluster_is_whole(cluster), 180, "the cluster is whole")
    assert not traffic.failed and traffic.lost() == []
    return traffic.longest_pause


DUAL = ("-e", "migrate_until=dual_write")


def test_nothing_else_takes_the_new_inventory(migrated):
    """Refused before anything starts, and the plan changes nothing."""
    before = migrated.processes()
    refused = forward(migrated, code=2)
    assert "[migration.inventory]" in said(refused)
    wants_kraft(migrated)
    refused = migrated.deploy(code=2)
    assert "[metadata.changed]" in said(refused) and "migrate_to_kraft.yml" in said(refused)
    migrated.controllers = {}
    plan = forward(migrated, "--check")
    for step in (
        "1. Start the controllers",
        "2. Restart the brokers",
        "3. Wait until",
        "4. Restart",
    ):
        assert step in said(plan), said(plan)
    assert plan.changed() == 0 and migrated.processes() == before
    early = forward(migrated, "-e", "migrate=finish", code=2)
    assert "[migration.not_ready]" in said(early)
    limited = forward(migrated, "--limit", "kafka-1,kafka-2", code=2)
    assert "[migration.limited]" in said(limited)
    assert migrated.processes() == before
    assert phases(migrated) == dict.fromkeys(migrated.brokers, "zookeeper")


def test_brokers_that_speak_another_protocol_are_refused(migrated):
    """The controllers would wait for them for ever, without a word in the brokers' logs."""
    wants_kraft(migrated)
    migrated.controllers = {}
    migrated.configure("kafka", kafka_config={"inter.broker.protocol.version": "3.8"})
    refused = forward(migrated, code=2)
    migrated.configure("kafka")
    assert "[migration.protocol] kafka-1, kafka-2, kafka-3" in said(refused), said(refused)
    assert "kafka_finalize=true" in said(refused)


def test_dual_write_and_back(migrated):
    """A topic that is made in between stays, and the inventory of before changes nothing."""
    wants_kraft(migrated)
    migrated.controllers = {}
    with Load(migrated, TOPIC, "migration to dual-write") as load:
        run = forward(migrated, *DUAL)
    assert sorted(load.watch.check()) == sorted(migrated.brokers), load.watch.events
    migrated.controllers = dict(CONTROLLERS)
    all_are(migrated, "migration", "migration")
    assert znode(migrated, "/controller")["brokerid"] in CONTROLLERS.values()
    assert "All controllers have the metadata" in said(run)
    again = forward(migrated, *DUAL)
    assert again.changed() == 0, again.text
    refused = migrated.deploy(code=2)
    assert "[metadata.migrating]" in said(refused)
    # it may stay so for some days: what starts and stops nothing works, and the rest is refused
    migrated.play("topics.yml")
    proven = migrated.play("validate.yml", "-e", "flow_validation_records=20000")
    assert "PASS: " in proven.text, proven.text[-5000:]
    migrated.play("benchmark.yml", "-e", "benchmark=first", "-e", "benchmark_seconds=2")
    refused = migrated.play("drill.yml", "-e", "drill=leader_killed", code=2)
    assert "[metadata.migrating]" in said(refused)
    status = said(migrated.play("status.yml"))
    assert "Migration to KRaft under way" in status, status
    assert "All 9 instances run" in status, status
    active = znode(migrated, "/controller")["brokerid"]
    pauses = [killed_and_back(migrated, each) for each in ("kafka-2", migrated.name_of(active))]
    console = (migrated.instance("kafka-2") / "logs" / "console.log").read_text()
    assert "released /brokers/ids/2 of a process that is dead; fenced and unregistered" in console
    print(f"\nSIGKILL in dual-write of a broker: a pause of {pauses[0]:.2f} s,", end=" ")
    print(f"of the active controller: {pauses[1]:.2f} s")
    assert znode(migrated, "/controller")["brokerid"] in CONTROLLERS.values()
    all_are(migrated, "migration", "migration")
    migrated.play("stop.yml", "--limit", "kafka-3,controller-2")
    migrated.play("start.yml")
    stopped = migrated.instance("kafka-3") / "logs" / "console.log"
    assert "fenced" not in stopped.read_text(), "it has stopped cleanly, and handed over"
    all_are(migrated, "migration", "migration")
    made(migrated, "made-in-dual-write")
    assert znode(migrated, "/brokers/topics/made-in-dual-write")

    plan = migrated.play("migrate_back.yml", "--check")
    assert "1. Stop the controllers" in said(plan) and plan.changed() == 0
    migrated.controllers = {}
    with Load(migrated, TOPIC, "migration taken back, killed and resumed") as load:
        killed_when(migrated, "migrate_back.yml", "zookeeper")
        refused = said(forward(migrated, code=2))
        assert "[migration.half_back]" in refused, refused
        assert not any((migrated.instance(name) / "data").exists() for name in CONTROLLERS)
        run = migrated.play("migrate_back.yml", "-e", "prove=true")
    assert sorted(load.watch.check()) == sorted(migrated.brokers), load.watch.events
    assert "PASS: " in run.text, run.text[-5000:]
    assert phases(migrated) == dict.fromkeys(migrated.brokers, "zookeeper")
    assert znode(migrated, "/controller")["brokerid"] in migrated.brokers.values()
    assert znode(migrated, "/migration") is None
    assert "made-in-dual-write" in migrated.tool("kafka-topics.sh", "--list")
    assert not any((migrated.instance(name) / "data").exists() for name in CONTROLLERS)
    wants_zookeeper(migrated)
    assert migrated.deploy().changed() == 0


def test_disks_of_another_cluster_and_a_broker_ahead_are_refused(migrated):
    """Kafka's controllers run happily with a foreign id, and a broker ahead takes its partitions for strays."""
    wants_kraft(migrated)
    migrated.controllers = {}
    before = migrated.processes()
    foreign = migrated.instance("controller-1") / "data"
    foreign.mkdir(parents=True)
    (foreign / "meta.properties").write_text(
        "version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=3001\ndirectory.id=BBBBBBBBBBBBBBBBBBBBBQ\n"
    )
    refused = forward(migrated, code=2)
    assert "[identity.foreign_cluster] controller-1" in said(refused), said(refused)
    shutil.rmtree(foreign.parent)
    path = (migrated.instance("kafka-3") / "conf" / "current" / "server.properties").resolve()
    text = path.read_text()
    voters = ",".join(
        f"{number}@127.0.0.1:{9190 + place + migrated.offset}"
        for place, number in enumerate(CONTROLLERS.values(), 1)
    )
    in_kraft = f"process.roles=broker\ncontroller.quorum.voters={voters}\n"
    path.write_text(text.replace("broker.id=3", "node.id=3") + in_kraft)
    try:
        refused = forward(migrated, code=2)
    finally:
        path.write_text(text)
    assert "[migration.left_behind] kafka-1, kafka-2" in said(refused), said(refused)
    assert migrated.processes() == before


def test_the_brokers_leave_zookeeper_though_runs_are_killed(migrated):
    """Once while brokers get to know the controllers, once while they leave; start.yml starts what was killed."""
    wants_kraft(migrated)
    migrated.controllers = {}
    with Load(migrated, TOPIC, "migration to KRaft, killed and resumed") as load:
        for wanted in ("migration", "kraft"):
            killed_when(migrated, "migrate_to_kraft.yml", wanted)
        migrated.controllers = dict(CONTROLLERS)
        now = phases(migrated)
        assert {now[name] for name in migrated.brokers} == {"kraft", "migration"}, now
        plan = said(migrated.play("migrate_back.yml", "--check"))
        assert "1. Restart the brokers one at a time with their metadata in ZooKeeper again" in plan
        status = said(migrated.play("status.yml"))
        assert "in KRaft" in status and "Migration to KRaft under way" in status, status
        run = forward(migrated)
    load.watch.check()
    all_are(migrated, "kraft", "migration")
    assert "-e migrate=finish" in said(run)
    assert forward(migrated).changed() == 0
    made(migrated, "made-with-zookeeper-beside")
    assert znode(
        migrated, "/brokers/topics/made-with-zookeeper-beside"
    ), "ZooKeeper has all until the end"


def test_a_migration_under_way_starts_as_it_was(migrated):
    """Everything stops and starts by the playbooks that people know."""
    migrated.play("stop.yml")
    assert set(migrated.processes().values()) == {None}
    migrated.play("start.yml")
    all_are(migrated, "kraft", "migration")
    wait_until(lambda: cluster_is_whole(migrated), 120, "whole")
    assert forward(migrated).changed() == 0


def test_brokers_in_kraft_come_back_though_a_controller_has_lost_its_disk(migrated):
    """What was made and set in KRaft is there in ZooKeeper; a killed run goes on; and forward again."""
    made(migrated, "made-in-kraft")
    admin = AdminClient({"bootstrap.servers": migrated.bootstrap_servers})
    kept = ConfigResource("topic", "made-in-kraft")
    kept.add_incremental_config(
        ConfigEntry("retention.ms", "86400000", incremental_operation=AlterConfigOpType.SET)
    )
    admin.incremental_alter_configs([kept])[kept].result(30)
    migrated.play("stop.yml", "--limit", "controller-3")
    shutil.rmtree(migrated.instance("controller-3") / "data")
    refused = forward(migrated, code=2)
    assert "[migration.lost_controller] controller-3" in said(refused), said(refused)
    migrated.controllers = {}  # one of them stays down
    with Load(migrated, TOPIC, "brokers taken back from KRaft") as load:
        killed_when(migrated, "migrate_back.yml", "migration")
        now = {phases(migrated)[name] for name in migrated.brokers}
        assert now == {"kraft", "migration"}, now
        run = migrated.play("migrate_back.yml", "-e", "prove=true")
    load.watch.check()
    assert "PASS: " in run.text, run.text[-5000:]
    assert phases(migrated) == dict.fromkeys(migrated.brokers, "zookeeper")
    assert znode(migrated, "/controller")["brokerid"] in migrated.brokers.values()
    assert znode(migrated, "/migration") is None
    assert {"made-in-kraft", "made-with-zookeeper-beside"} <= set(
        migrated.tool("kafka-topics.sh", "--list").split()
    )
    told = migrated.tool("kafka-topics.sh", "--describe", "--topic", "made-in-kraft")
    assert "retention.ms=86400000" in told, told
    wants_zookeeper(migrated)
    assert migrated.deploy().changed() == 0
    # ZooKeeper's own fail-over works as before
    print(f"\nSIGKILL after it: a pause of {killed_and_back(migrated, 'kafka-1'):.2f} s")

    wants_kraft(migrated)
    migrated.controllers = {}
    with Load(migrated, TOPIC, "migration to KRaft once more"):
        forward(migrated)
    migrated.controllers = dict(CONTROLLERS)
    all_are(migrated, "kraft", "migration")


def test_the_end_is_reached_under_load(migrated):
    """The active controller is the last; then nobody goes back, and ZooKeeper stops with the cluster's name alone."""
    with Load(migrated, TOPIC, "end of the migration") as load:
        run = forward(migrated, "-e", "migrate=finish")
    assert sorted(load.watch.check()) == sorted(CONTROLLERS), load.watch.events
    all_are(migrated, "kraft", "kraft")
    assert "-e migrate=remove_zookeeper -e confirm=local" in said(run)
    assert forward(migrated, "-e", "migrate=finish").changed() == 0
    refused = migrated.play("migrate_back.yml", code=2)
    assert "[migration.no_way_back]" in said(refused)
    refused = forward(migrated, "-e", "migrate=remove_zookeeper", code=2)
    assert "[migration.confirm]" in said(refused)
    with zookeeper(servers_of(migrated), chroot="") as client:
        client.create("/another-product/leader", ephemeral=True, makepath=True)
        away = ("-e", "migrate=remove_zookeeper", "-e", "confirm=local")
        refused = forward(migrated, *away, code=2)
    assert "[migration.others]" in said(refused) and "/another-product/leader" in said(refused)
    assert None not in migrated.processes().values()


def test_zookeeper_goes_and_the_cluster_is_as_any_other(migrated):
    """site.yml finds nothing to do, and the next upgrade goes to a Kafka without ZooKeeper."""
    gone = list(migrated.zookeepers)
    with Load(migrated, TOPIC, "servers of ZooKeeper alone"):
        forward(migrated, "-e", "migrate=remove_zookeeper", "-e", "confirm=local")
        assert not any(migrated.process(name) for name in gone)
        migrated.zookeepers = []
    wants_kraft(migrated, servers=False)
    made(migrated, "made-without-zookeeper")
    before = migrated.processes()
    looked = migrated.play("site.yml", "-e", "flow_validation=never", "--check", "--diff")
    assert looked.changed() == 0, looked.text
    assert migrated.deploy().changed() == 0
    assert migrated.processes() == before
    status = said(migrated.play("status.yml"))
    assert "Migration" not in status, status

    migrated.configure("all", **KRAFT, zookeeper_group="none_of_them", kafka_version="4.3.1")
    with Load(migrated, TOPIC, "upgrade in KRaft mode, controllers apart"):
        migrated.play("rolling_upgrade.yml")
        migrated.play("rolling_upgrade.yml", "-e", "kafka_finalize=true")
    assert migrated.deploy().changed() == 0
    migrated.version = "4.3.1"
    topics = migrated.tool("kafka-topics.sh", "--list").split()
    assert {"made-in-dual-write", "made-with-zookeeper-beside", "made-without-zookeeper"} <= set(
        topics
    )
