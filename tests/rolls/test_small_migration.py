# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One broker goes from ZooKeeper to KRaft, in each run.

With three of each, under load, back, killed and resumed: test_migration.py, which is a soak.
"""

from __future__ import annotations

from tests.local.support import LocalCluster
from tests.rolls.migrating import phases, said, wants_kraft, znode
from tests.support.traffic import Traffic

ONE = {"controller-1": 3001}


def test_one_broker_goes_to_kraft_and_to_the_end(next_offset):
    """What was written on the way is there at the end; site.yml is refused before, and has nothing to do then."""
    with LocalCluster(next_offset(), inventory="inventories/local-1x1") as cluster:
        cluster.deploy()
        wants_kraft(cluster, ONE)
        before = cluster.processes()
        refused = cluster.deploy(code=2)
        assert "[metadata.changed]" in said(refused) and cluster.processes() == before

        with Traffic(cluster, "orders") as traffic:
            cluster.play("migrate_to_kraft.yml")
        assert not traffic.failed and traffic.acknowledged
        assert phases(cluster) == {"kafka-1": "kraft", "controller-1": "migration"}
        assert znode(cluster, "/controller")["brokerid"] == 3001, "ZooKeeper has all still"
        proven = cluster.play("validate.yml", "-e", "flow_validation_records=3000")
        assert "PASS: " in proven.text, proven.text[-5000:]
        cluster.play("migrate_to_kraft.yml", "-e", "migrate=finish")
        refused = cluster.play("migrate_back.yml", code=2)
        assert "[migration.no_way_back]" in said(refused)
        away = ("-e", "migrate=remove_zookeeper", "-e", f"confirm={cluster.name}")
        cluster.play("migrate_to_kraft.yml", *away)
        assert cluster.process("zookeeper-1") is None
        cluster.zookeepers = []
        wants_kraft(cluster, ONE, servers=False)
        assert cluster.deploy().changed() == 0
        assert traffic.lost() == []
