# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From Kafka 3.9 to 4.3 without ZooKeeper, while records flow: there, back, killed, there again, finalised.

The tests of this file build on each other: each leaves the cluster in the state that its name says. Features
are read by Kafka's own tool.
"""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.local.support import OFFSET, LocalCluster
from tests.local.test_kraft import quorum
from tests.support.load import Load
from tests.support.outside import wait_until
from tests.support.watching import cluster_is_whole

pytestmark = pytest.mark.soak

TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync
OLD, NEW = "3.9.2", "4.3.1"
LEFT = "Not finalised: metadata.version 21 -> 30, group.version 0 -> 1,"


@pytest.fixture(scope="module")
def upgraded():
    """Three combined nodes that were deployed with the older release."""
    with LocalCluster(OFFSET + 1700, inventory="inventories/local-kraft") as running:
        wants(running, OLD)
        running.deploy()
        yield running


def wants(cluster, version, **more):
    """Write the wanted version into the inventory."""
    cluster.configure("all", kafka_version=version, **more)


def brought_to(cluster, version):
    """Bring the nodes to a release, if they have another one: -k leaves the tests before out."""
    wants(cluster, version)
    if set(releases(cluster).values()) != {version}:
        cluster.play("rolling_upgrade.yml" if version == NEW else "rollback.yml")


def releases(cluster):
    """Return node -> the release in force, from the files of what runs or ran last."""
    found = {}
    for name in cluster.names:
        text = (cluster.instance(name) / "conf" / "current" / "meaning.json").read_text()
        found[name] = re.search(r"kafka_[\d.]+-([\d.]+)", text)[1]
    return found


def said(run):
    """Return what a playbook has told, its lines joined: Ansible breaks long ones."""
    return " ".join(run.text.split())


def all_run(cluster, version):
    assert None not in cluster.processes().values()
    assert set(releases(cluster).values()) == {version}


def finalised(cluster):
    """Return feature -> level, as Kafka's own tool tells, that of the release in force."""
    cluster.version = releases(cluster)["kafka-1"]
    told = cluster.tool("kafka-features.sh", "describe")
    return dict(re.findall(r"Feature: (\S+)\s.*?FinalizedVersionLevel: (\S+)", told))


def order_of(cluster):
    """The names of the voters in the order of a roll: the active controller last."""
    leader = quorum(cluster)["leader"]
    return [cluster.name_of(each) for each in [*sorted({1, 2, 3} - {leader}), leader]]


def test_a_new_version_in_the_inventory_is_no_upgrade(upgraded):
    """Nothing is stopped by what is refused, nor by the plan."""
    before = upgraded.processes()
    wants(upgraded, NEW)
    refused = upgraded.deploy(code=2)
    assert "[version.needs_upgrade] kafka-1, kafka-2, kafka-3: kafka_version=4.3.1" in said(refused)
    assert "playbooks/rolling_upgrade.yml" in said(refused)
    early = upgraded.play("rolling_upgrade.yml", "-e", "kafka_finalize=true", code=2)
    assert "[version.finalize_early]" in said(early)
    back = upgraded.play("rollback.yml", code=2)
    assert "[version.illegal_path]" in said(back) and "rolling_upgrade.yml" in said(back)
    wants(upgraded, NEW, kafka_config={"log.message.format.version": "3.0"})
    removed = upgraded.play("rolling_upgrade.yml", code=2)
    assert "[config.removed_key]" in said(removed) and "log.message.format.version" in said(removed)
    wants(upgraded, NEW)
    plan = upgraded.play("rolling_upgrade.yml", "--check")
    assert "Kafka 3.9.2 -> 4.3.1: kafka-1, kafka-2, kafka-3; one at a time." in said(plan)
    assert "metadata.version 21 of Kafka 3.9, so playbooks/rollback.yml goes back" in said(plan)
    assert re.findall(r"Restart of (kafka-\d)", said(plan)) == order_of(upgraded), said(plan)
    assert upgraded.processes() == before


def test_it_is_upgraded_while_records_flow(upgraded):
    brought_to(upgraded, OLD)
    wants(upgraded, NEW)
    order, before = order_of(upgraded), finalised(upgraded)
    with Load(upgraded, TOPIC, "upgrade in KRaft mode") as load:
        run = upgraded.play("rolling_upgrade.yml")
    assert load.watch.check() == order, load.watch.events
    all_run(upgraded, NEW)
    assert LEFT in said(run) and "kafka_finalize=true" in said(run), said(run)
    assert "To go back to a 3.9 release: set kafka_version back" in said(run)

    after = upgraded.processes()
    again = upgraded.play("rolling_upgrade.yml")
    assert again.changed() == 0 and "no version changes" in said(again)
    assert upgraded.deploy().changed() == 0
    assert LEFT in said(upgraded.play("status.yml"))
    assert upgraded.processes() == after
    assert finalised(upgraded)["metadata.version"] == before["metadata.version"] == "3.9-IV0"


def test_it_is_taken_back(upgraded):
    brought_to(upgraded, NEW)
    wants(upgraded, OLD)
    refused = upgraded.deploy(code=2)
    assert "[version.illegal_path]" in said(refused) and "playbooks/rollback.yml" in said(refused)
    order = order_of(upgraded)
    with Load(upgraded, TOPIC, "rollback in KRaft mode") as load:
        upgraded.play("rollback.yml")
    assert load.watch.check() == order, load.watch.events
    all_run(upgraded, OLD)
    assert upgraded.deploy().changed() == 0
    assert "Not finalised" not in said(upgraded.play("status.yml"))


def test_a_run_that_was_killed_half_way_goes_on(upgraded):
    """Mixed versions are reported, and not touched by site.yml; the same command ends it."""
    brought_to(upgraded, OLD)
    wants(upgraded, NEW)
    with Load(upgraded, TOPIC, "upgrade in KRaft mode, killed and resumed") as load:
        with upgraded.playing("rolling_upgrade.yml") as (process, log):
            wait_until(
                lambda: len(set(releases(upgraded).values())) == 2 or process.poll() is not None,
                300,
                "the first node has another release",
            )
            assert process.poll() is None, log.read_text()
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
        wait_until(lambda: cluster_is_whole(upgraded), 120, "the node of the killed turn is back")
        status = said(upgraded.play("status.yml"))
        assert "Mixed versions of Kafka: 3.9.2: kafka-" in status and LEFT in status, status
        refused = upgraded.deploy(code=2)
        assert "[version.needs_upgrade]" in said(refused)
        upgraded.play("rolling_upgrade.yml")
    load.watch.check()
    all_run(upgraded, NEW)
    assert upgraded.play("rolling_upgrade.yml").changed() == 0


def levels_of_release(cluster, line):
    """Return feature -> level that Kafka's own tool sets for a release line, of those that are not the quorum's."""
    tool = cluster.release(NEW) / "bin" / "kafka-features.sh"
    told = cluster.run([tool, "version-mapping", "--release-version", line]).text
    found = {name: int(level) for name, level in re.findall(r"^(\S+)=(\d+)", told, re.MULTILINE)}
    assert found.pop("kraft.version") == 1
    return {name: level for name, level in found.items() if level}


def is_final(cluster, old):
    """Nothing is left to finalise, and every way back is refused with its reason, before anything stops."""
    processes = cluster.processes()
    assert "Not finalised" not in said(cluster.play("status.yml"))
    again = cluster.play("rolling_upgrade.yml", "-e", "kafka_finalize=true")
    assert again.changed() == 0 and "there is nothing to finalise" in said(again)
    assert cluster.deploy().changed() == 0
    wants(cluster, old)
    for playbook in ("rollback.yml", "site.yml"):
        refused = cluster.play(playbook, code=2)
        assert "[version.illegal_path]" in said(refused) and "no way back" in said(refused)
        assert "metadata.version 30" in said(refused), said(refused)
    wants(cluster, NEW)
    assert cluster.processes() == processes


def test_finalising_is_the_end_of_the_way_back(upgraded):
    """It is said before, restarts nobody, raises what Kafka's own tool would, and leaves the quorum alone."""
    brought_to(upgraded, NEW)
    processes, before = upgraded.processes(), finalised(upgraded)
    plan = upgraded.play("rolling_upgrade.yml", "-e", "kafka_finalize=true", "--check", "--diff")
    assert "THERE IS NO WAY BACK" in said(plan)
    assert "FINALISING: metadata.version 21 -> 30" in said(plan)
    assert finalised(upgraded) == before
    with Load(upgraded, TOPIC, "finalising in KRaft mode") as load:
        run = upgraded.play("rolling_upgrade.yml", "-e", "kafka_finalize=true")
    assert load.watch.check() == [], "nobody restarts"
    told = said(run).index("THERE IS NO WAY BACK")
    assert told < said(run).index("Finalise the features"), "it is said before"
    assert "min.insync.replicas becomes a setting of the cluster" in said(run)
    assert "the upgrade is final" in said(run) and run.changed() == 1
    after = finalised(upgraded)
    # the tool names the level of metadata.version by its release
    expected = {name: str(level) for name, level in levels_of_release(upgraded, "4.3").items()}
    expected["metadata.version"] = "4.3-IV0"
    assert {name: after[name] for name in expected} == expected
    assert after["kraft.version"] == before["kraft.version"] == "1"
    is_final(upgraded, OLD)
    assert upgraded.processes() == processes


def test_controllers_apart_and_a_static_quorum(next_offset):
    """Brokers first, then standby controllers, the active one last; the quorum stays as it began."""
    with LocalCluster(next_offset(), inventory="inventories/local-kraft-3x3") as cluster:
        wants(cluster, OLD)
        cluster.configure("controllers", kafka_static_quorum=True)
        cluster.deploy()
        began, voters = finalised(cluster), quorum(cluster)["voters"]
        assert began["kraft.version"] == "0"
        wants(cluster, NEW)
        leader = quorum(cluster)["leader"]
        last = [cluster.name_of(each) for each in [*sorted(set(voters) - {leader}), leader]]
        with Load(cluster, TOPIC, "upgrade in KRaft mode, controllers apart") as load:
            cluster.play("rolling_upgrade.yml")
        assert load.watch.check() == [*cluster.brokers, *last], load.watch.events
        all_run(cluster, NEW)
        run = cluster.play("rolling_upgrade.yml", "-e", "kafka_finalize=true")
        assert "The quorum stays static" in said(run)
        assert finalised(cluster)["metadata.version"] == "4.3-IV0"
        assert finalised(cluster)["kraft.version"] == "0" and quorum(cluster)["voters"] == voters
        is_final(cluster, OLD)
