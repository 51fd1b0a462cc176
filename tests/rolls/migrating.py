# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A local cluster on its way from ZooKeeper to KRaft: the inventory that it is given, and how far it is."""

from __future__ import annotations

import yaml

from tests.support import outside

CONTROLLERS = {"controller-1": 3001, "controller-2": 3002, "controller-3": 3003}
KRAFT = {
    "kafka_metadata": "kraft",
    "kafka_controller_port": "{{ 9190 + local_index | int + local_port_offset | int }}",
    "kafka_controller_bind": "127.0.0.1",
}


def wants_kraft(cluster, controllers=CONTROLLERS, servers=True):
    """Write the inventory that docs/migration.md asks for; `servers`: whether it has ZooKeeper still."""
    groups = {
        "controllers": {
            "hosts": {
                name: {"kafka_broker_id": number, "kafka_heap": "256m"}
                for name, number in controllers.items()
            }
        }
    }
    (cluster.overlay / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))
    nodes = yaml.safe_load((cluster.inventory / "group_vars" / "kafka.yml").read_text())
    cluster.configure("controllers", **nodes)
    cluster.configure("all", **KRAFT, **({} if servers else {"zookeeper_group": "none_of_them"}))
    cluster.controllers = dict(controllers)


def wants_zookeeper(cluster):
    (cluster.overlay / "hosts.yml").write_text("all: {}\n")
    for group in ("controllers", "all"):
        cluster.configure(group)
    cluster.controllers = {}


def said(run):
    """Return what a playbook has told, its lines joined: Ansible breaks long ones."""
    return " ".join(run.text.split())


def phases(cluster):
    """Return node -> zookeeper, migration or kraft, by what it was started with."""
    found = {}
    for name in [*cluster.brokers, *cluster.controllers]:
        path = cluster.instance(name) / "conf" / "current" / "server.properties"
        text = path.read_text() if path.exists() else ""
        found[name] = outside.migration_phase(text) if text else ""
    return found


def servers_of(cluster):
    """Return host:port of each server of ZooKeeper."""
    return [
        f"{host}:{port}"
        for name, (host, port) in cluster.addresses.items()
        if name in cluster.zookeepers
    ]


def znode(cluster, path):
    """Return the JSON of a node of ZooKeeper, None where there is none."""
    return outside.znode(servers_of(cluster), path)
