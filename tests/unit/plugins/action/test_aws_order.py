# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory orders of EC2, by Ansible's own reading of it."""

from __future__ import annotations

import json
import sys

import yaml

from tests.support.here_and_sent import played


def ordered(folder, children):
    """cluster -> {machine: its groups}, of what the action returns for an inventory."""
    inventory, playbook, out = (folder / name for name in ("hosts.yml", "play.yml", "orders.json"))
    machines = {
        "aws_image": "ami-1",
        "aws_type": "t3.micro",
        "aws_subnets": ["subnet-1"],
        "aws_key_name": "k",
    }
    machines |= {
        "aws_ssh_sources": ["192.0.2.0/24"],
        "aws_sources": {"clients": ["192.0.2.0/24"], "brokers": ["members"]},
    }
    inventory.write_text(yaml.safe_dump({"all": {"vars": machines, "children": children}}))
    tasks = [
        {"kafkaops.cluster.aws_order": {}, "run_once": True, "register": "found"},
        {
            "ansible.builtin.copy": {"content": "{{ found.orders | to_json }}", "dest": str(out)},
            "run_once": True,
            "connection": "local",
            "vars": {"ansible_python_interpreter": sys.executable},
        },
    ]
    playbook.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    played("-i", inventory, playbook)
    return {
        each["cluster"]: {one["name"]: one["groups"] for one in each["machines"]}
        for each in json.loads(out.read_text())
    }


def hosts(*names, **variables):
    return {"hosts": dict.fromkeys(names), "vars": variables}


def test_each_cluster_may_have_groups_of_its_own(tmp_path):
    """The first host's names were taken for all: the second cluster got no machine."""
    kraft = {"kafka_metadata": "kraft", "kafka_cluster_name": "second"}
    own = {"kafka_group": "log", "kafka_controllers_group": "voters"}
    children = {
        "kafka": hosts("a-1", "a-2", kafka_cluster_name="first"),
        "zookeeper": hosts("a-3", kafka_cluster_name="first"),
        "log": hosts("b-1", **kraft, **own),
        "voters": hosts("b-1", "b-2", **kraft, **own),
    }
    assert ordered(tmp_path, children) == {
        "first": {"a-1": ["kafka"], "a-2": ["kafka"], "a-3": ["zookeeper"]},
        "second": {"b-1": ["log", "voters"], "b-2": ["voters"]},
    }
