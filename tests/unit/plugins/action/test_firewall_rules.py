# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose settings are read for the firewalls, and which of them."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.action import firewall_rules as action
from tests.unit.plugins.module_utils.preflight import good_inventory as ground

LISTENERS = [{"name": "OUTSIDE", "port": 9093, "advertised": "{{ outside }}"}]


@pytest.fixture
def read(tmp_path):
    """Read an inventory document; returns ({host: its listeners}, lines of the problems)."""

    def read(document):
        _raws, inventory, groups = ground.gather(document, tmp_path)
        task_vars = {"inventory_hostname": "localhost", "groups": groups}
        problems = []
        members = action._members(inventory, task_vars, problems)
        return (
            {each.name: [one.advertised for one in each.listeners] for each in members},
            [each.line() for each in problems],
        )

    return read


def inventory_of(kafka, zookeeper=None, controllers=None, **settings):
    groups = {"kafka": kafka, "zookeeper": zookeeper or {}, "controllers": controllers or {}}
    return {
        "all": {
            "children": {name: {"hosts": hosts} for name, hosts in groups.items()},
            "vars": {"kafka_listeners": LISTENERS, **settings},
        }
    }


def test_a_server_of_zookeeper_needs_nothing_of_what_brokers_have(read):
    found, problems = read(inventory_of({"b": {"outside": "192.0.2.1"}}, {"b": {}, "z": {}}))
    assert problems == []
    assert found == {"b": ["192.0.2.1"], "z": []}


@pytest.mark.parametrize("mode, read_of", [("kraft", ["b", "c"]), ("zookeeper", ["b"])])
def test_a_controller_is_read_as_a_node_of_kafka_in_kraft_mode_only(read, mode, read_of):
    own = {"outside": "192.0.2.1"}
    found, problems = read(inventory_of({"b": own}, None, {"c": own}, kafka_metadata=mode))
    assert problems == [] and sorted(found) == read_of


def test_of_a_broker_the_variable_that_is_missing_is_named(read):
    _found, problems = read(inventory_of({"b": {}}, {"z": {}}))
    assert len(problems) == 1 and "[settings.undefined] b:" in problems[0], problems
    assert "'outside'" in problems[0]


def test_clusters_with_groups_of_their_own_are_all_read(read):
    """Each host counts by the groups that its own variables name; nobody by those of the first."""

    def cluster(name, **groups):
        named = {f"{kind}_group": f"{name}_{kind}" for kind in ("kafka", "zookeeper")}
        own = {"kafka_cluster_name": name, "outside": "192.0.2.1", **named}
        own["kafka_controllers_group"] = f"{name}_controllers"
        children = {f"{name}_{kind}": {"hosts": hosts} for kind, hosts in groups.items()}
        return {"children": children, "vars": own}

    document = {
        "all": {
            "children": {
                "audit": cluster("audit", kafka={"a-1": {}}, zookeeper={"a-z": {}}),
                "orders": cluster("orders", kafka={"o-1": {}}, controllers={"o-c": {}}),
                "others": {"hosts": {"elsewhere": {}}},
            },
            "vars": {"kafka_listeners": LISTENERS},
        }
    }
    document["all"]["children"]["orders"]["vars"]["kafka_metadata"] = "kraft"
    found, problems = read(document)
    assert problems == [] and sorted(found) == ["a-1", "a-z", "o-1", "o-c"]
