# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters that the previous release of this collection has deployed, changed by the present one.

The previous release is taken from git: where there is no history, there is nothing to deploy with.
"""

from __future__ import annotations

import copy
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from tests.local.certificates import make_certificates
from tests.local.support import CHECKOUT, OFFSET, LocalCluster
from tests.local.test_secured import as_user
from tests.local.watching import changed
from tests.rolls.test_upgrade import NEW, NEW_ZOOKEEPER, OLD, OLD_ZOOKEEPER, ensemble_runs, in_force
from tests.support.load import Load
from tests.support.outside import wait_until
from tests.support.watching import cluster_is_whole

pytestmark = pytest.mark.soak
# A tag or a commit.
PREVIOUS = os.environ.get(
    "KAFKAOPS_TEST_PREVIOUS_RELEASE", "dd2b922afb8cb43d5d7390022d60acaab3a99561"
)
TOPIC = "orders"
BROKERS = {
    "kafka_version": OLD,
    "kafka_heap": "400m",
    "kafka_jvm_options": ["-Dmine=yes", "-Dmy.password=of-the-brokers"],
    "kafka_config": {"num.io.threads": 5, "log.cleaner.dedupe.buffer.size": 33554432},
}
SERVERS = {
    "zookeeper_version": OLD_ZOOKEEPER,
    "zookeeper_jvm_options": ["-XX:+UseSerialGC", "-Dmy.password=of-the-servers"],
    "zookeeper_config": {"maxClientCnxns": 120},
}


@pytest.fixture(scope="session")
def previous(tmp_path_factory):
    """A checkout of the previous release."""
    made = subprocess.run(
        ["git", "-C", str(CHECKOUT), "archive", PREVIOUS], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"{PREVIOUS} is not in the history: {made.stderr.decode().strip()}")
    folder = tmp_path_factory.mktemp("previous")
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def cluster(previous):
    """A cluster as the previous release leaves it, with its inventory; playbooks are the present ones."""
    with LocalCluster(OFFSET + 1800, checkout=previous) as before:
        yield deployed(before)


def deployed(before, brokers=None, servers=None):
    """Deploy with the checkout of a LocalCluster, and return the same one with the present playbooks."""
    before.configure("kafka", **{**BROKERS, **(brokers or {})})
    before.configure("zookeeper", **{**SERVERS, **(servers or {})})
    before.deploy()
    now = copy.copy(before)
    now.checkout = CHECKOUT
    assert in_force(now) == {(OLD, "")}
    return now


def wants(cluster, brokers=None, servers=None):
    """Change the inventory."""
    cluster.configure("kafka", **{**BROKERS, **(brokers or {})})
    cluster.configure("zookeeper", **{**SERVERS, **(servers or {})})


def nothing_is_pending(cluster):
    """Check that a new release alone restarts nothing, and has nothing to do a second time."""
    before = cluster.processes()
    for arguments in (["--check", "--diff"], []):
        run = cluster.deploy(*arguments)
        assert "Restart of" not in run.text, run.text
        assert cluster.processes() == before
    assert cluster.deploy().changed() == 0
    status = cluster.play("status.yml").text
    assert status.count(" no\n") == len(cluster.names), status
    assert cluster.processes() == before


def options(cluster, name):
    """The command line of an instance's JVM."""
    path = Path(f"/proc/{cluster.process(name).pid}/cmdline")
    return path.read_bytes().decode().split("\0")


def test_a_new_release_alone_restarts_nothing(cluster):
    """Its own defaults come with the next restart, which is pending for another reason."""
    nothing_is_pending(cluster)
    before = cluster.processes()
    assert not [word for word in options(cluster, "kafka-1") if "ErrorFile" in word]

    wants(cluster, {"kafka_config": {**BROKERS["kafka_config"], "num.io.threads": 6}})
    run = cluster.deploy()
    assert "num.io.threads" in run.text and "changed without a restart" in run.text, run.text
    assert cluster.processes() == before and cluster.deploy().changed() == 0

    wants(cluster, {"kafka_config": {**BROKERS["kafka_config"], "queued.max.requests": 400}})
    with Load(cluster, TOPIC, "first restart after a new release"):
        run = cluster.play("rolling_restart.yml")
    assert changed(before, cluster.processes()) == set(cluster.brokers)
    for name in cluster.brokers:
        words = options(cluster, name)
        assert [word for word in words if "ErrorFile" in word] and "-Dmine=yes" in words
        assert not [word for word in words if "of-the-brokers" in word], "a password is in a file"
    assert cluster.deploy().changed() == 0


def test_a_secured_cluster_does_not_restart_either(previous):
    """Keys, passwords, and settings whose names count as secrets today."""
    passwords = {user: f"of {user}, \"'#=" for user in ("broker", "admin", "alice")}
    secret = {"rsm.config.storage.access.key": "hidden-today"}
    inventory = "tests/local/inventories/secured"
    with LocalCluster(OFFSET + 1800, inventory=inventory, checkout=previous) as before:
        folder = before.overlay / "certificates"
        folder.mkdir()
        make_certificates(folder, before.brokers)
        before.client_settings = as_user(folder, "admin", passwords["admin"])
        nothing_is_pending(
            deployed(
                before,
                {
                    "secured_certificates": str(folder),
                    "secured_passwords": passwords,
                    "kafka_config": secret,
                },
            )
        )


def test_both_products_are_upgraded_and_taken_back(cluster):
    """At once, without a site.yml of the present release before."""
    new = {"kafka_version": NEW}, {"zookeeper_version": NEW_ZOOKEEPER}
    wants(cluster, *new)
    with Load(cluster, TOPIC, "upgrade from the previous release"):
        cluster.play("rolling_upgrade.yml")
    assert in_force(cluster) == {(NEW, "3.8")} and ensemble_runs(cluster) == {NEW_ZOOKEEPER}
    wants(cluster)
    with Load(cluster, TOPIC, "rollback after the previous release"):
        cluster.play("rollback.yml")
    assert in_force(cluster) == {(OLD, "3.8")} and ensemble_runs(cluster) == {OLD_ZOOKEEPER}
    wants(cluster, *new)
    cluster.play("rolling_upgrade.yml")
    with Load(cluster, TOPIC, "finalising after the previous release"):
        cluster.play("rolling_upgrade.yml", "-e", "kafka_finalize=true")
    assert in_force(cluster) == {(NEW, "3.9")} and ensemble_runs(cluster) == {NEW_ZOOKEEPER}
    assert cluster.deploy().changed() == 0


def test_it_grows_and_shrinks(cluster):
    before = cluster.processes()
    (cluster.overlay / "hosts.yml").write_text(
        yaml.safe_dump(
            {"all": {"children": {"kafka": {"hosts": {"kafka-4": {"kafka_broker_id": 4}}}}}}
        )
    )
    with Load(cluster, TOPIC, "growth after the previous release"):
        cluster.brokers["kafka-4"] = 4
        cluster.play("scale_out.yml")
        assert 4 in {each for found in cluster.partitions(TOPIC).values() for each in found[1]}
        cluster.play("scale_in.yml", "-e", "broker=4")
        del cluster.brokers["kafka-4"]
    assert cluster.process("kafka-4") is None
    assert {name: cluster.process(name) for name in before} == before


def test_it_is_stopped_started_and_removed(cluster):
    """What was in effect comes back, whoever stops it and however; one broker restarts on purpose."""
    before = cluster.processes()
    with Load(cluster, TOPIC, "one broker after the previous release"):
        cluster.play("rolling_restart.yml", "-e", "broker=2")
    assert changed(before, cluster.processes()) == {"kafka-2"}
    cluster.play("stop.yml")
    assert set(cluster.processes().values()) == {None}
    # staged by the present release, and never started
    wants(cluster, {"kafka_config": {"queued.max.requests": 400}})
    cluster.deploy("--tags", "install,configure")
    cluster.play("start.yml")
    wait_until(lambda: cluster_is_whole(cluster), 60, "all brokers are back")
    for name in ("kafka-1", "kafka-3"):
        text = (cluster.instance(name) / "conf" / "current" / "server.properties").read_text()
        assert "num.io.threads=5" in text and "queued.max.requests" not in text
    wants(cluster)
    cluster.deploy()
    assert cluster.deploy().changed() == 0
    cluster.play("teardown.yml", "-e", f"confirm={cluster.name}")
    assert not cluster.stray()
    assert not cluster.instance(cluster.names[0]).parent.exists()
