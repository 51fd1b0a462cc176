# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of where a cluster keeps its metadata: in ZooKeeper, or in a quorum of controllers (KRaft). Pure."""

from __future__ import annotations

from typing import Iterator, List

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.migration import (
    IN_KRAFT,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.identity import identities
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    KRAFT,
    MIGRATION,
    START,
    Cluster,
    World,
    phase_in_force,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import WARNING, Problem

MIGRATE = "playbooks/migrate_to_kraft.yml"
# Version of a meta.properties that a broker in ZooKeeper mode has written.
OF_ZOOKEEPER_MODE = "0"


def check_metadata(world: World) -> Iterator[Problem]:
    """The mode of each cluster, and whether it is on its way from one to the other."""
    for cluster in world.clusters:
        under_way = [each.name for each in cluster.under_way]
        settled = not (under_way or world.migrates)
        if settled:
            yield from _mode_in_force(world, cluster)
        elif not (world.migrates or _is_replaced(cluster)):
            yield from _migrating(world, cluster, under_way)
        if not cluster.kraft:
            yield from _controllers_of_zookeeper_mode(cluster)
            continue
        yield from _not_yet(world, cluster)
        if settled:
            yield from _zookeeper_servers(world, cluster)


def _mode_in_force(world: World, cluster: Cluster) -> Iterator[Problem]:
    """A broker whose configuration in force, or whose disk, is of the other mode."""
    for member in cluster.nodes:
        current = member.product_facts("kafka").get("current") or {}
        here = ""
        if current:
            here = "kraft" if current.get("process.roles") else "zookeeper"
        for each in member.log_directories:
            version = (each.get("meta") or {}).get("version")
            # A broker that has begun to migrate writes the other version while it is in ZooKeeper mode.
            if not here and version == OF_ZOOKEEPER_MODE:
                here = "zookeeper"
        if here and here != ("kraft" if member.kraft else "zookeeper"):
            prepared = here == "zookeeper" and member.kraft
            yield found(
                "metadata.changed",
                member.name,
                "kafka_metadata",
                member.text("kafka_metadata"),
                f"what is installed on the host is of {_called(here)} mode",
                f"set kafka_metadata: {here}"
                + (f"; or take the cluster to KRaft with {MIGRATE}" if prepared else ""),
                # The inventory may be made ready before the first step, and what was in effect starts without it.
                level=WARNING if prepared and world.purpose == START else "",
            )


def _is_replaced(cluster: Cluster) -> bool:
    """Whether the run starts a node of a cluster that is under way, as far as the others are: nothing else brings back
    one that has lost its disks.

    A controller once all brokers are in KRaft: before, nobody tells whether the other controllers keep up, and the
    migration judges whether one may be empty.
    """
    ids, _servers = identities(cluster)
    told = all(phase_in_force(each) == IN_KRAFT for each in cluster.brokers)
    nodes = cluster.nodes if told else cluster.brokers
    return cluster.is_staged_by_phase and cluster.replaced in [ids[each.name] for each in nodes]


def _migrating(world: World, cluster: Cluster, hosts: List[str]) -> Iterator[Problem]:
    yield found(
        "metadata.migrating",
        hosts,
        "kafka_metadata",
        cluster.nodes[0].text("kafka_metadata"),
        f"cluster {cluster.name} is on its way from ZooKeeper to KRaft, and another configuration would leave"
        " the node behind",
        # What was in effect may start: each node goes on where it was. Others write no configuration.
        level=WARNING if world.purpose == START or MIGRATION in world.fit_for else "",
    )


def _called(mode: str) -> str:
    return "KRaft" if mode == "kraft" else "ZooKeeper"


def _controllers_of_zookeeper_mode(cluster: Cluster) -> Iterator[Problem]:
    hosts = [each.name for each in cluster.brokers if each.name in each.controllers]
    if hosts:
        yield found(
            "metadata.mixed",
            hosts,
            "kafka_metadata",
            "zookeeper",
            f"the hosts are in the group of controllers as well, and cluster {cluster.name} has its"
            " metadata in ZooKeeper",
            "set kafka_metadata: kraft for a new cluster, or take the hosts out of the group",
        )


def _zookeeper_servers(world: World, cluster: Cluster) -> Iterator[Problem]:
    if cluster.servers:
        yield found(
            "metadata.mixed",
            [each.name for each in cluster.servers],
            "kafka_metadata",
            "kraft",
            f"cluster {cluster.name} has controllers, and the inventory has ZooKeeper servers for it",
            f"stop them with {MIGRATE} -e migrate=remove_zookeeper if the cluster was migrated, and take the"
            " servers out of the inventory of this cluster",
            # As they ran last, between the last step of a migration and their removal; it may be proven before that.
            level=WARNING if world.purpose == START or MIGRATION in world.fit_for else "",
        )


def _not_yet(world: World, cluster: Cluster) -> Iterator[Problem]:
    if KRAFT not in world.fit_for:
        yield found(
            "metadata.not_yet",
            [each.name for each in cluster.nodes],
            "kafka_metadata",
            "kraft",
            "this playbook changes a running cluster in a way that is not fit for KRaft mode yet",
        )
