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
