# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brokers that lose their disks, or their host, between ZooKeeper and KRaft: replaced, and the migration ends.

The tests of this file build on each other. Controllers of another inventory: refused before anything is deleted.
"""

from __future__ import annotations

import shutil

import pytest

from tests.local.support import OFFSET, LocalCluster
from tests.rolls.migrating import phases, said, wants_kraft, znode
from tests.support.outside import wait_until
from tests.support.traffic import Traffic
from tests.support.watching import cluster_is_whole

pytestmark = pytest.mark.soak

ONE = {"controller-1": 3001}
MIGRATING = {"controller-1": "migration"}
TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync


@pytest.fixture(scope="module")
def migrated():
    """Three brokers whose metadata are in ZooKeeper, and which know a controller that writes them there, too."""
    with LocalCluster(OFFSET + 1950) as cluster:
        cluster.deploy()
        wants_kraft(cluster, ONE)
        cluster.play("migrate_to_kraft.yml", "-e", "migrate_until=dual_write")
        yield cluster


def lost(cluster, name, host=False):
    """Stop a broker and delete its disks; `host`: all that there is of it."""
    cluster.play("stop.yml", "--limit", name)
    shutil.rmtree(cluster.instance(name) if host else cluster.instance(name) / "data")


def test_controllers_of_another_inventory_are_not_taken_for_those_that_live(migrated):
    """Nobody listens at the new addresses, and ZooKeeper is not given back to the brokers for that."""
    wants_kraft(migrated, {"controller-9": 3009})
    migrated.configure("controllers", kafka_controller_port=9890 + migrated.offset)
    for playbook in ("migrate_back.yml", "migrate_to_kraft.yml"):
        refused = said(migrated.play(playbook, code=2))
        assert "[quorum.changed] kafka-1, kafka-2, kafka-3" in refused, refused
    wants_kraft(migrated, ONE)
    assert znode(migrated, "/controller")["brokerid"] == 3001 and znode(migrated, "/migration")
    assert None not in migrated.processes().values()


def test_a_broker_whose_disks_are_lost_is_replaced_in_dual_write(migrated):
    """Each playbook that is refused names the one that goes, and the broker stays on its way with the others."""
    with Traffic(migrated, TOPIC) as traffic:
        lost(migrated, "kafka-3")
        for playbook in ("migrate_to_kraft.yml", "migrate_back.yml"):
            refused = said(migrated.play(playbook, code=2))
            assert "[directories.emptied] kafka-3" in refused, refused
            assert "playbooks/replace_broker.yml" in refused
        migrated.play("replace_broker.yml", "-e", "broker=3")
    assert not traffic.failed and traffic.lost() == []
    assert phases(migrated) == {**dict.fromkeys(migrated.brokers, "migration"), **MIGRATING}
    wait_until(lambda: cluster_is_whole(migrated), 120, "whole")
    assert migrated.play("replace_broker.yml", "-e", "broker=3").changed() == 0


def test_a_new_host_gets_a_broker_of_kraft_where_the_others_are(migrated):
    """Nothing there tells how far its broker was. Its directory is formatted, and ZooKeeper has all still."""
    migrated.play("migrate_to_kraft.yml")
    with Traffic(migrated, TOPIC) as traffic:
        lost(migrated, "kafka-2", host=True)
        refused = said(migrated.play("migrate_to_kraft.yml", code=2))
        assert "[migration.not_installed] kafka-2" in refused, refused
        assert "playbooks/replace_broker.yml" in refused
        migrated.play("replace_broker.yml", "-e", "broker=2")
    assert not traffic.failed and traffic.lost() == []
    assert phases(migrated) == {**dict.fromkeys(migrated.brokers, "kraft"), **MIGRATING}
    wait_until(lambda: cluster_is_whole(migrated), 120, "whole")
    assert migrated.play("migrate_to_kraft.yml").changed() == 0


def test_it_comes_back_to_zookeeper_with_the_others_and_goes_to_the_end(migrated):
    """A broker that was replaced in KRaft mode has its metadata in ZooKeeper, too."""
    with Traffic(migrated, TOPIC) as traffic:
        migrated.play("migrate_back.yml")
        assert phases(migrated) == dict.fromkeys(migrated.brokers, "zookeeper") | {
            "controller-1": ""
        }
        migrated.play("migrate_to_kraft.yml")
        migrated.play("migrate_to_kraft.yml", "-e", "migrate=finish")
        away = ("-e", "migrate=remove_zookeeper", "-e", f"confirm={migrated.name}")
        migrated.play("migrate_to_kraft.yml", *away)
    assert not traffic.failed and traffic.lost() == []
    migrated.zookeepers = []
    wants_kraft(migrated, ONE, servers=False)
    assert migrated.deploy().changed() == 0
