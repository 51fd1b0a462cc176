# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster without ZooKeeper, by the playbooks: what works with it, and what is refused yet.

The quorum is looked at by kafka-python, and not by anything of ours.
"""

from __future__ import annotations

import re

import pytest

from tests.local.support import LocalCluster
from tests.local.watching import led_by_others
from tests.support.load import Load
from tests.support.watching import Watch

INVENTORY = "inventories/local-kraft"
TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync
# Kafka reads it at its start only.
KEY = "group.initial.rebalance.delay.ms"
# A node of the quorum as the status shows it: id, part, records behind, last fetch.
QUORUM_LINE = r"(\d)  +(leader|voter)  +\d+  +(?:-|[\d.]+ s ago)"
# They change a cluster that runs, in ways that are not fit for a quorum yet.
REFUSED = (
    *("rolling_upgrade", "rollback", "scale_out", "scale_in"),
    *("scale_zookeeper", "replace_broker", "spread_disks", "drill"),
)


def quorum(cluster):
    """{leader, voters: ids} as the brokers tell it."""
    from kafka.admin import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        found = admin.describe_metadata_quorum()
    finally:
        admin.close()
    (partition,) = found["topics"][0]["partitions"]
    return {
        "leader": partition["leader_id"],
        "voters": sorted(each["replica_id"] for each in partition["current_voters"]),
    }


def metas(cluster):
    """instance -> the lines of its meta.properties that are settings."""
    found = {}
    for name in cluster.brokers:
        text = (cluster.instance(name) / "data" / "meta.properties").read_text()
        found[name] = dict(re.findall(r"^([\w.]+)=(.*)$", text, re.MULTILINE))
    return found


@pytest.fixture(scope="module")
def kraft(next_offset):
    """Three nodes of inventories/local-kraft, not deployed yet."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        yield cluster


def test_from_an_inventory_to_a_proven_quorum_and_back(kraft):
    """Deployed, proven, run again, looked at, stopped and started; nothing is formatted twice."""
    few = ("-e", "flow_validation_records=3000")
    run = kraft.deploy(*few, validation="always")
    assert "PASS: 3,000 acknowledged records came back" in run.text, run.text
    assert "config.dynamic_override" not in run.text
    assert quorum(kraft)["voters"] == [1, 2, 3] and quorum(kraft)["leader"] in (1, 2, 3)
    formatted, processes = metas(kraft), kraft.processes()
    assert len({each["cluster.id"] for each in formatted.values()}) == 1
    assert len({each["directory.id"] for each in formatted.values()}) == 3
    assert [each["node.id"] for each in formatted.values()] == ["1", "2", "3"]

    run = kraft.deploy()
    assert run.changed() == 0 and kraft.processes() == processes, run.text
    assert "warning: " not in run.text and "[WARNING]" not in run.text, run.text

    kraft.play("stop.yml")
    assert kraft.processes() == dict.fromkeys(kraft.names)
    kraft.play("start.yml")
    run = kraft.play("status.yml", "-e", "status_strict=true")
    assert "All 3 instances run." in run.text, run.text
    shown = {int(node): part for node, part in re.findall(QUORUM_LINE, run.text)}
    leader = quorum(kraft)["leader"]
    assert shown == {each: "leader" if each == leader else "voter" for each in (1, 2, 3)}, run.text
    assert re.findall(r"(kafka-\d) +kafka .* controller ", run.text) == [kraft.name_of(leader)]
    assert metas(kraft) == formatted and quorum(kraft)["voters"] == [1, 2, 3]


@pytest.mark.soak
def test_what_would_change_a_running_quorum_is_refused(kraft):
    """By its id, in one sentence, and nothing has been stopped."""
    kraft.deploy()
    processes = kraft.processes()
    for name in REFUSED:
        run = kraft.play(f"{name}.yml", "-e", "broker=1", "-e", "drill=leader_kill", code=None)
        assert run.code != 0 and "[metadata.not_yet]" in run.text, f"{name}: {run.text}"
    assert kraft.processes() == processes


@pytest.mark.soak
def test_a_changed_setting_rolls_the_quorum_under_load(kraft):
    """One node at a time, the active controller last; nothing is lost, and never are two down.

    Before, a voter that is away holds back the others; and some settings need no restart here, either.
    """
    kraft.deploy()
    before = kraft.processes()
    kraft.set_brokers({"num.io.threads": 6})
    run = kraft.deploy()
    assert "changed without a restart" in run.text and kraft.processes() == before, run.text
    assert kraft.deploy().changed() == 0

    leader = quorum(kraft)["leader"]
    standby = min({1, 2, 3} - {leader})
    away = kraft.name_of(min({1, 2, 3} - {leader, standby}))
    kraft.set_brokers({"num.io.threads": 6, KEY: 3001})
    kraft.supervisorctl("stop", away)
    brief = ("-e", "kafka_wait_timeout_seconds=5")
    run = kraft.play("rolling_restart.yml", "--limit", f"all:!{away}", *brief, code=2)
    told = " ".join(run.text.split())
    assert "[gate.waiting]" in told and "voters keep up, and 2 are a majority" in told, run.text
    kraft.play("start.yml")
    now = kraft.processes()
    assert {name for name in now if now[name] != before[name]} == {away}

    leader = quorum(kraft)["leader"]
    order = [*sorted({1, 2, 3} - {leader}), leader]
    run = kraft.deploy("--check")
    assert re.findall(r"Restart of kafka-(\d)", run.text) == [str(each) for each in order], run.text
    assert set(re.findall(r"broker (\d) .*may stop now", run.text)) == {"1", "2", "3"}, run.text
    assert kraft.processes() == now
    with Load(kraft, TOPIC, "rolling restart in KRaft mode") as load:
        kraft.deploy()
    assert load.watch.check() == [kraft.name_of(each) for each in order], load.watch.events
    assert quorum(kraft)["voters"] == [1, 2, 3]
    assert led_by_others(kraft) == []
    after = kraft.processes()
    assert not set(after.values()) & set(now.values())
    assert kraft.deploy().changed() == 0

    run = kraft.play("rolling_restart.yml", "-e", f"broker={leader}")
    only = kraft.name_of(leader)
    assert {name for name, each in kraft.processes().items() if each != after[name]} == {only}


@pytest.mark.soak
def test_a_disk_that_was_lost_is_not_formatted_again(kraft):
    """A voter without its past would vote against what was decided."""
    kraft.deploy()
    kraft.play("stop.yml", "--limit", "kafka-3")
    data = kraft.instance("kafka-3") / "data"
    data.rename(data.with_name("kept"))
    run = kraft.deploy(code=2)
    assert "[quorum.unformatted] kafka-3" in run.text, run.text
    assert not (data / "meta.properties").exists()
    data.with_name("kept").rename(data)
    kraft.deploy()
    assert quorum(kraft)["voters"] == [1, 2, 3]


@pytest.mark.soak
def test_a_deployment_that_ended_between_two_formats_goes_on(next_offset):
    """With the same cluster, whoever was formatted; and it is removed without a trace."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.deploy("--tags", "preflight,install,configure")
        before = metas(cluster)
        for path in (cluster.instance("kafka-2") / "data").iterdir():
            if path.is_file():
                path.unlink()
        cluster.deploy()
        after = metas(cluster)
        assert {name: each["directory.id"] for name, each in after.items()} == {
            name: each["directory.id"] for name, each in before.items()
        }
        assert quorum(cluster)["voters"] == [1, 2, 3]
        cluster.play("teardown.yml", "-e", f"confirm={cluster.name}")
        assert not cluster.directory.exists() and not cluster.stray()


@pytest.mark.soak
def test_the_older_release_and_a_broker_that_does_not_vote(next_offset):
    """Kafka 3.9.2, one controller and two brokers only, which restart before it."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        (cluster.overlay / "hosts.yml").write_text(
            "all: {children: {voters: {hosts: {kafka-1: {}}}}}\n"
        )
        older = {"kafka_version": "3.9.2", "kafka_controllers_group": "voters"}
        cluster.configure("all", **older)
        run = cluster.deploy("-e", "flow_validation_records=3000", validation="always")
        assert "PASS: 3,000 acknowledged records came back" in run.text, run.text
        assert quorum(cluster) == {"leader": 1, "voters": [1]}
        assert cluster.deploy().changed() == 0

        cluster.set_brokers({KEY: 3001})
        with Watch(cluster) as watch:
            run = cluster.deploy()
        assert watch.check() == ["kafka-2", "kafka-3", "kafka-1"], watch.events
        told = " ".join(run.text.split())
        assert "nothing in the cluster changes while node 1 restarts: it is the only voter" in told
        assert cluster.deploy().changed() == 0
