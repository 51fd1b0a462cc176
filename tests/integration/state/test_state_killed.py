# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""state.yml is killed while it writes, or the module alone is: the next run makes the rest, another one nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from tests.support.adopted import Adopted, hosts_of
from tests.support.outside import wait_until
from tests.support.processes import command_line, descendants, kill_run

TOPICS = 60
# Half a minute in each mode, and the same code: the slower one runs in soak.
IN_BOTH_MODES = pytest.mark.parametrize(
    "secured", [pytest.param("zookeeper", marks=pytest.mark.soak), "kraft"], indirect=True
)


@pytest.fixture
def declared(secured, tmp_path, name):
    """An inventory with a little of each kind of state, and many topics."""
    inventory = Adopted(tmp_path / "inventory", hosts_of(secured))
    one = {"partitions": 1, "replication_factor": secured.bare.brokers, "retention": "7d"}
    names = [f"{name}-killed-{number}" for number in range(TOPICS)]
    users = [f"{each}-reader" for each in names[:10]]
    state = {
        "kafka_topics": [{"name": each, **one} for each in names],
        "kafka_acls": [
            {"principal": user, "operations": "read", "topic": topic}
            for user in users
            for topic in names
        ],
        "kafka_quotas": [{"user": user, "limits": {"producer_byte_rate": 2048}} for user in users],
    }
    inventory.state.write_text(yaml.safe_dump(state))
    return inventory, names, users


def begin(inventory):
    """Start state.yml in a process group of its own."""
    return subprocess.Popen(
        inventory.command("state.yml"),
        env=inventory.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def wait_until_it_writes(secured, run, moment, names):
    """Until the run has come to the first of its topics, or to the first of its rights."""
    admin = AdminClient(secured.client_settings())

    def writes():
        assert run.poll() is None, run.communicate()[0]
        if moment == "topics":
            return names[0] in admin.list_topics(timeout=10).topics
        return bool(secured.run("kafka_acls_info").acls)

    wait_until(writes, 120, "it has begun to write")


def converges(secured, inventory, names, users):
    """The next run makes all that is missing, and the one after it nothing."""
    run = inventory.play("state.yml")
    assert run.changed > 0, "it was killed before its end"
    again = inventory.play("state.yml")
    assert again.changed == 0, again.text
    kinds = {kind: again.lines[kind] for kind in ("topics", "rights", "quotas")}
    assert set(kinds.values()) == {"as declared"}, again.text
    there = AdminClient(secured.client_settings()).list_topics(timeout=30).topics
    assert {len(there[each].partitions) for each in names} == {1}
    assert len(secured.run("kafka_acls_info").acls) >= len(users)
    quotas = [each.get("user") for each in secured.run("kafka_quotas_info").quotas]
    assert set(users) <= set(quotas)


@IN_BOTH_MODES
@pytest.mark.parametrize("moment", ["topics", pytest.param("rights", marks=pytest.mark.soak)])
def test_the_playbook_is_killed(secured, declared, moment):
    inventory, names, users = declared
    run = begin(inventory)
    wait_until_it_writes(secured, run, moment, names)
    kill_run(run, "tree")
    run.communicate()
    converges(secured, inventory, names, users)


@pytest.mark.soak
@pytest.mark.parametrize("secured", ["zookeeper"], indirect=True)
def test_the_module_is_killed(secured, declared):
    """The run ends with an error that says where. In ZooKeeper mode rights are written for seconds."""
    inventory, names, users = declared
    run = begin(inventory)
    wait_until_it_writes(secured, run, "rights", names)
    # Ansible's workers have its own command line; what runs a module has another one.
    killed = [pid for pid in descendants(run.pid) if "ansible-playbook" not in command_line(pid)]
    for pid in killed:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    text = run.communicate(timeout=120)[0]
    assert killed and run.returncode == 2, text
    assert "Grant and take away rights" in text
    converges(secured, inventory, names, users)
