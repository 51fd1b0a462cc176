# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What teardown.yml shows without a confirmation: what is there, and no warning about what is not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
PLAYBOOK = ROOT / "playbooks" / "teardown.yml"


def shown(folder):
    """What is printed of a broker and a server with files below `folder`, and of a broker whose Python is gone."""
    own = "{{ kafkaops_home }}/clusters/mine/{{ inventory_hostname }}"
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "kafka_cluster_name": "mine",
        "jvm_service_manager": "supervisor",
        "kafkaops_home": str(folder),
        **{
            f"{role}_{name}_dir": f"{own}/{name}"
            for role in ("kafka", "zookeeper")
            for name in ("config", "state", "application_log")
        },
        "kafka_log_dirs": [f"{own}/data"],
        "zookeeper_data_dir": f"{own}/data",
        "kafka_account": "",
        "zookeeper_account": "",
    }
    groups = {name: {"hosts": {f"{name}-1": {}}} for name in ("kafka", "zookeeper")}
    groups["kafka"]["hosts"]["kafka-2"] = {"ansible_python_interpreter": "/nonexistent"}
    inventory = folder / "hosts.yml"
    inventory.write_text(yaml.safe_dump({"all": {"children": groups, "vars": variables}}))
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "-i", inventory, PLAYBOOK],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0 and set(re.findall(r"changed=(\d+)", said)) == {"0"}, said
    assert "WARNING" not in said.replace("[WARNING]: Could not match supplied host pattern", "")
    return " ".join(said.split())


def test_only_what_is_there_is_shown_and_nothing_is_warned_of(tmp_path):
    broker, server = (tmp_path / "clusters" / "mine" / name for name in ("kafka-1", "zookeeper-1"))
    (broker / "data" / "orders-0").mkdir(parents=True)
    said = shown(tmp_path)
    assert f"cluster mine, kafka-1: would delete {broker}/data" in said
    assert "cluster mine, zookeeper-1: nothing is left of ZooKeeper" in said
    assert (
        "cluster mine, kafka-2: would stop Kafka and delete what is there: the host could not"
        in said
    )
    assert said.count("would stop") == 1 and "Cluster mine: nothing was changed." in said
    assert (broker / "data" / "orders-0").exists() and not server.exists()
