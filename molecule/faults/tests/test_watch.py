# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The streaming proof as a unit of systemd on one of the hosts: started, killed, rebooted, stopped, removed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.node_containers import get, inside, restart
from tests.support.nodes import changed, host, main_process, play, three
from tests.support.outside import wait_until

pytestmark = pytest.mark.soak

NODE, ACCOUNT = "ko-node-2", "ops"
DIRECTORY = "/home/ops/watched/watch"
# What requirements.txt would install there, and the connector that Spark would fetch.
PACKAGES = ("pyspark", "py4j", "confluent_kafka", "confluent_kafka.libs", "kafka", "kazoo")
PYTHON = "/usr/local/lib/python3.11/dist-packages"
ASKED = (
    *("-e", f"kafka_admin_host={NODE}", "-e", "kafka_admin_python=/usr/bin/python3"),
    *("-e", "flow_validation_reports_dir=~/watched"),
    *("-e", "flow_validation_watch_manager=systemd"),
    *("-e", "flow_validation_watch_within=10s", "-e", "flow_validation_watch_every=2s"),
)


def bring(folder, names, target):
    """Bring folders of this machine below `folder` into the node's directory `target`."""
    inside(NODE, f"mkdir -p {target}")
    with tempfile.TemporaryFile() as archive:
        there = [name for name in names if (folder / name).exists()]
        subprocess.run(["tar", "-C", folder, "-cf", "-", *there], stdout=archive, check=True)
        archive.seek(0)
        assert get(NODE).put_archive(target, archive)


@pytest.fixture(scope="module")
def cluster():
    """The scenario's cluster, one host of which has what the job needs."""
    play("site.yml", "-e", "flow_validation=never", inventory="faults")
    running = three()
    wait_until(running.is_whole, 180, "whole")
    bring(Path(importlib.util.find_spec("pyspark").origin).parents[1], PACKAGES, PYTHON)
    cache = Path(os.environ.get("KAFKAOPS_CACHE") or Path.home() / ".cache" / "kafkaops")
    bring(cache, ["ivy", "jars", "spark"], f"/home/{ACCOUNT}/.cache/kafkaops")
    inside(NODE, f"chown -R {ACCOUNT}: /home/{ACCOUNT}/.cache")
    yield running
    play("watch.yml", *ASKED, "-e", "watch=absent", inventory="faults")
    inside(NODE, f"rm -rf {' '.join(f'{PYTHON}/{name}' for name in PACKAGES)}")


def status():
    """What it says of itself; empty where it does not."""
    text = inside(NODE, f"cat {DIRECTORY}/status.json 2>/dev/null || true")
    return json.loads(text or "{}")


def files():
    """The units of this collection's streaming proofs."""
    return inside(NODE, "ls /etc/systemd/system | grep kafkaops-watch || true").split()


def played(*arguments):
    """Run the playbook; the number of its changes."""
    return sum(changed(play("watch.yml", *ASKED, *arguments, inventory="faults")).values())


def test_a_unit_outlives_its_death_and_a_reboot_until_it_is_stopped(cluster):
    assert played("--check") > 0 and not files()
    played()
    (name,) = files()
    assert played() == 0
    node = host(NODE)
    main = main_process(node, name)
    assert inside(NODE, f"ps -o user= -p {main}").strip() == ACCOUNT
    wait_until(lambda: status()["counts"]["arrived"] > 50, 180, "records have arrived")

    attempt = status()["attempt"]
    inside(NODE, f"kill -9 {main}")
    wait_until(lambda: status()["attempt"] > attempt, 180, "it has begun anew")

    attempt = status()["attempt"]
    restart([NODE])
    wait_until(lambda: status()["attempt"] > attempt, 300, "it has begun anew after the reboot")
    wait_until(cluster.is_whole, 180, "whole")
    sent = status()["counts"]["acknowledged"]
    wait_until(lambda: status()["counts"]["arrived"] > sent + 50, 180, "records since the reboot")
    seen = status()
    assert seen["counts"]["lost"] == 0 and not seen["alarms"], seen

    assert played("-e", "watch=stopped") == 1 and not files()
    assert played("-e", "watch=stopped") == 0
    assert not inside(NODE, "pgrep -f '[w]atch.py' || true").strip()
    played()
    assert files() == [name]
    played("-e", "watch=absent")
    assert not files() and not inside(NODE, f"ls -d {DIRECTORY} 2>/dev/null || true").strip()
    assert played("-e", "watch=absent") == 0
