# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases change while records flow: pinned, killed, taken back, finalised; nothing lost at any moment.

The tests of this file build on each other: each leaves the cluster in the state that its name says.
"""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.local.proof import labels, proven
from tests.local.support import OFFSET, LocalCluster
from tests.local.watching import ensemble_is_whole, modes, zookeeper_says
from tests.support.load import Load
from tests.support.outside import wait_until
from tests.support.watching import cluster_is_whole

TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync
OLD, NEW = "3.8.1", "3.9.2"
OLD_ZOOKEEPER, NEW_ZOOKEEPER = "3.8.6", "3.9.5"
KEY = "inter.broker.protocol.version"


@pytest.fixture(scope="module")
def upgraded():
    """A cluster that was deployed with the older releases."""
    with LocalCluster(OFFSET + 1500) as running:
        wants(running, OLD, OLD_ZOOKEEPER)
        running.deploy()
        yield running


def wants(cluster, kafka, zookeeper):
    """Write the wanted versions into the inventory."""
    cluster.configure("kafka", kafka_version=kafka)
    cluster.configure("zookeeper", zookeeper_version=zookeeper)


def brought_to(cluster, kafka):
    """Bring the brokers to a release, if they have another one: the soak leaves the tests before out."""
    if {release for release, _key in in_force(cluster)} != {kafka}:
        wants(cluster, kafka, OLD_ZOOKEEPER)
        cluster.play("rolling_upgrade.yml" if kafka == NEW else "rollback.yml")


def in_force(cluster):
    """Return the set of (release, protocol version) of the brokers, from the files of what runs."""
    for name in cluster.brokers:
        assert cluster.process(name), f"{name} is down"
    return configured(cluster)


def configured(cluster):
    """Return the same, also while a broker is down for its turn."""
    found = set()
    for name in cluster.brokers:
        conf = cluster.instance(name) / "conf" / "current"
        release = re.search(r"kafka_[\d.]+-([\d.]+)", (conf / "meaning.json").read_text())[1]
        text = (conf / "server.properties").read_text()
        key = re.search(rf"^{re.escape(KEY)}=(.*)$", text, re.MULTILINE)
        found.add((release, key[1] if key else ""))
    return found


def ensemble_runs(cluster):
    """Return the versions that the servers of ZooKeeper tell of themselves."""
    return {
        re.search(r"version: ([\d.]+)-", zookeeper_says(cluster, name))[1]
        for name in cluster.zookeepers
    }


def rolled(cluster, watch, names, last):
    """Check that exactly these instances took turns, the one that leads last."""
    order = [name for name in watch.check() if name in names]
    assert sorted(order) == sorted(names), (watch.events, watch.reasons)
    assert order[-1] == last, order


def test_a_new_version_in_the_inventory_is_no_upgrade(upgraded):
    """site.yml refuses it by name, and nobody can consent to it."""
    assert in_force(upgraded) == {(OLD, "")} and ensemble_runs(upgraded) == {OLD_ZOOKEEPER}
    before = upgraded.processes()
    wants(upgraded, NEW, OLD_ZOOKEEPER)
    accept = '{"kafkaops_preflight_accept": ["version.needs_upgrade"]}'
    refused = upgraded.play("site.yml", "-e", "flow_validation=never", "-e", accept, code=2)
    assert "[version.needs_upgrade] kafka-1, kafka-2, kafka-3: kafka_version=3.9.2" in refused.text
    assert "playbooks/rolling_upgrade.yml" in refused.text
    finalize = upgraded.play("rolling_upgrade.yml", "-e", "kafka_finalize=true", code=2)
    assert "[version.finalize_early]" in finalize.text
    back = upgraded.play("rollback.yml", code=2)
    assert "[version.illegal_path]" in back.text and "rolling_upgrade.yml" in back.text
    plan = upgraded.play("rolling_upgrade.yml", "--check")
    assert "Kafka 3.8.1 -> 3.9.2: kafka-1, kafka-2, kafka-3; one at a time." in plan.text
    assert f"{KEY} (unset) -> 3.8" in plan.text
    assert upgraded.processes() == before


def test_it_is_upgraded_while_records_flow(upgraded):
    wants(upgraded, NEW, OLD_ZOOKEEPER)
    before = upgraded.processes()
    controller = upgraded.name_of(wait_until(lambda: cluster_is_whole(upgraded), 60, "").controller)
    with Load(upgraded, TOPIC, "upgrade") as load:
        run = upgraded.play("rolling_upgrade.yml")
    rolled(upgraded, load.watch, set(upgraded.brokers), controller)
    after = upgraded.processes()
    assert all(before[name] == after[name] for name in upgraded.zookeepers)
    assert in_force(upgraded) == {(NEW, "3.8")}
    assert "Pinned to protocol version 3.8, not finalised: kafka-1, kafka-2, kafka-3." in run.text
    assert "rolling_upgrade.yml" in run.text and "kafka_finalize=true" in run.text

    again = upgraded.play("rolling_upgrade.yml")
    assert again.changed() == 0 and "no version changes" in again.text
    assert upgraded.deploy().changed() == 0, "site.yml keeps the pin"
    status = upgraded.play("status.yml").text
    assert "Pinned to protocol version 3.8, not finalised: kafka-1, kafka-2, kafka-3." in status
    assert upgraded.processes() == after


@pytest.mark.soak
def test_it_is_taken_back_and_forth_again(upgraded):
    brought_to(upgraded, NEW)
    wants(upgraded, OLD, OLD_ZOOKEEPER)
    refused = upgraded.play("site.yml", "-e", "flow_validation=never", code=2)
    assert "playbooks/rollback.yml" in refused.text
    with Load(upgraded, TOPIC, "rollback"):
        upgraded.play("rollback.yml")
    assert in_force(upgraded) == {(OLD, "3.8")}
    assert upgraded.deploy().changed() == 0
    wants(upgraded, NEW, OLD_ZOOKEEPER)
    with Load(upgraded, TOPIC, "upgrade again"):
        upgraded.play("rolling_upgrade.yml")
    assert in_force(upgraded) == {(NEW, "3.8")}


@pytest.mark.soak
@pytest.mark.parametrize("playbook, version", [("rollback.yml", OLD), ("rolling_upgrade.yml", NEW)])
def test_a_run_that_was_killed_half_way_goes_on(upgraded, playbook, version):
    """Mixed versions are reported, and not touched by site.yml; the same command ends it."""
    brought_to(upgraded, NEW if version == OLD else OLD)
    wants(upgraded, version, OLD_ZOOKEEPER)
    with Load(upgraded, TOPIC, f"{playbook}, killed and resumed") as load:
        with upgraded.playing(playbook) as (process, log):
            wait_until(
                lambda: len(configured(upgraded)) == 2 or process.poll() is not None,
                300,
                "the first broker has another release",
            )
            assert process.poll() is None, log.read_text()
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
        wait_until(lambda: cluster_is_whole(upgraded), 120, "the broker of the killed turn is back")
        status = upgraded.play("status.yml").text
        assert "Mixed versions of Kafka: 3.8.1: kafka-" in status, status
        refused = upgraded.play("site.yml", "-e", "flow_validation=never", code=2)
        assert "[version." in refused.text
        upgraded.play("topics.yml")
        upgraded.play(playbook)
    load.watch.check()
    assert {release for release, _key in in_force(upgraded)} == {version}
    assert upgraded.play(playbook).changed() == 0


@pytest.mark.soak
def test_zookeeper_goes_first_and_back(upgraded):
    """Both products in one run, with its proof; each server's data is copied before its release changes."""
    wants(upgraded, OLD, OLD_ZOOKEEPER)
    upgraded.play("rollback.yml")
    (leader,) = [name for name, mode in modes(upgraded).items() if mode == "leader"]
    wants(upgraded, NEW, NEW_ZOOKEEPER)
    with Load(upgraded, TOPIC, "upgrade of both products") as load:
        _run, verdict = proven(upgraded, "rolling_upgrade.yml")
    drawn = sorted(labels(verdict))
    assert drawn == sorted(f"{name} restarted" for name in upgraded.names), drawn
    order = load.watch.check()
    assert order.index(leader) == 2 and set(order[:3]) == set(upgraded.zookeepers), order
    assert ensemble_runs(upgraded) == {NEW_ZOOKEEPER} and in_force(upgraded) == {(NEW, "3.8")}
    for name in upgraded.zookeepers:
        copy = upgraded.instance(name) / "data" / f"before-{NEW_ZOOKEEPER}"
        assert list(copy.rglob("snapshot.*")) and list(copy.rglob("log.*"))
    wants(upgraded, NEW, OLD_ZOOKEEPER)
    with Load(upgraded, TOPIC, "rollback of ZooKeeper"):
        upgraded.play("rollback.yml")
    assert ensemble_runs(upgraded) == {OLD_ZOOKEEPER}
    wait_until(lambda: ensemble_is_whole(upgraded), 60, "a leader and two followers")
    assert TOPIC in upgraded.admin().list_topics(timeout=30).topics


@pytest.mark.soak
def test_finalising_is_the_end_of_the_way_back(upgraded):
    wants(upgraded, NEW, OLD_ZOOKEEPER)
    upgraded.play(
        "rolling_upgrade.yml"
    )  # where the test above was left out, there is nothing to do
    with Load(upgraded, TOPIC, "finalising"):
        run = upgraded.play("rolling_upgrade.yml", "-e", "kafka_finalize=true")
    assert in_force(upgraded) == {(NEW, "3.9")}
    told = run.text.index("THERE IS NO WAY BACK")
    assert told < run.text.index("Restart of kafka-"), "it is said before it begins"
    assert "the upgrade is final" in run.text
    before = upgraded.processes()
    assert upgraded.deploy().changed() == 0
    assert upgraded.play("rolling_upgrade.yml", "-e", "kafka_finalize=true").changed() == 0
    assert "not finalised" not in upgraded.play("status.yml").text
    wants(upgraded, OLD, OLD_ZOOKEEPER)
    for playbook in ("rollback.yml", "site.yml"):
        refused = upgraded.play(playbook, code=2)
        assert "[version.illegal_path]" in refused.text and "no way back" in refused.text
    assert upgraded.processes() == before
