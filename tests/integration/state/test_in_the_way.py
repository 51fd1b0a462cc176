# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""state.yml and export.yml where something is in the way: a host that is down, nobody there, somebody else at work."""

from __future__ import annotations

import subprocess

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from tests.support.adopted import Adopted, hosts_of

# Nobody listens on port 1.
DEAD = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


def names_on(cluster):
    """The topics of a cluster."""
    return set(AdminClient(cluster.client_settings()).list_topics(timeout=30).topics)


def test_nobody_answers_and_no_drift_is_invented(tmp_path):
    listener = {"name": "A", "port": 1, "protocol": "PLAINTEXT", "advertised": "127.0.0.1"}
    listener["audience"] = ["brokers", "clients"]
    inventory = Adopted(tmp_path / "inventory", {"broker-1": {"kafka_listeners": [listener]}})
    topics = [{"name": "orders", "partitions": 1}]
    inventory.state.write_text(yaml.safe_dump({"kafka_topics": topics}))
    told = inventory.play("state.yml", "--check", code=2)
    assert "[connection.unreachable]" in told.text and "would change" not in told.text


def test_a_host_that_is_down_keeps_nobody_from_the_others(on_kraft, tmp_path):
    hosts = hosts_of(on_kraft)
    inventory = Adopted(
        tmp_path / "inventory", {"broker-0": {**hosts["broker-1"], **DEAD}, **hosts}
    )
    inventory.export()
    told = inventory.play("state.yml", "--check")
    assert "[host.unreachable] broker-0" in told.text
    assert set(told.lines.values()) == {"as declared"}, told.text


@pytest.mark.soak
def test_of_two_clusters_only_the_one_that_is_named_is_touched(on_zookeeper, on_kraft, tmp_path):
    """The same is declared for both; `--limit` to the brokers of one, to one broker of it, and without."""
    left = {f"left-{key}": value for key, value in hosts_of(on_zookeeper).items()}
    right = {f"right-{key}": value for key, value in hosts_of(on_kraft).items()}
    for hosts, cluster in ((left, "left"), (right, "right")):
        for host in hosts.values():
            host["kafka_cluster_name"] = cluster
    inventory = Adopted(tmp_path / "inventory", {**left, **right})
    declared = {
        "kafka_topics": [
            {
                "name": "of-both",
                "partitions": 1,
                "replication_factor": 1,
                "config": {"min.insync.replicas": 1},
            }
        ],
        "kafka_acls": [{"principal": "of-both", "operations": "read", "topic": "of-both"}],
        "kafka_quotas": [{"user": "of-both", "limits": {"producer_byte_rate": 4096}}],
    }
    inventory.state.write_text(yaml.safe_dump(declared))
    kinds = ("rights", "quotas")

    def told_by(*arguments):
        return inventory.play("state.yml", *arguments)

    run = told_by("--limit", "right-broker-1")
    assert run.lines["topics"].startswith("1 changed"), run.text
    assert "left" not in run.text.partition("PLAY RECAP")[2], run.text
    assert "of-both" in names_on(on_kraft) and "of-both" not in names_on(on_zookeeper)
    assert not on_zookeeper.run("kafka_acls_info").acls
    users = [each.get("user") for each in on_zookeeper.run("kafka_quotas_info").quotas]
    assert "of-both" not in users
    # One broker of three stands for its cluster.
    run = told_by("--limit", "left-broker-2")
    assert all(run.lines[kind].startswith("1 changed") for kind in kinds), run.text
    assert "of-both" in names_on(on_zookeeper)
    assert told_by().changed == 0


@pytest.mark.soak
def test_two_people_apply_it_at_once(on_kraft, tmp_path):
    inventory = Adopted(tmp_path / "inventory", hosts_of(on_kraft))
    names = [f"both-{number}" for number in range(300)]
    declared = [{"name": name, "partitions": 2, "retention": "7d"} for name in names]
    inventory.state.write_text(yaml.safe_dump({"kafka_topics": declared}))
    runs = [
        subprocess.Popen(
            inventory.command("state.yml"),
            env=inventory.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _person in range(2)
    ]
    told = [run.communicate(timeout=300)[0] for run in runs]
    for run, text in zip(runs, told):
        assert run.returncode == 0 or "already exists" in text, text[-5000:]
    again = inventory.play("state.yml")
    assert again.changed == 0 and again.lines["topics"] == "as declared"
    there = AdminClient(on_kraft.client_settings()).list_topics(timeout=30).topics
    assert {len(there[name].partitions) for name in names} == {2}
