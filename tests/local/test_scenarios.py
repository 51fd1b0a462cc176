# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Situations from the field, each repeated on a cluster that an inventory alone describes."""

from __future__ import annotations

import hashlib
import re
import tarfile

import pytest
import yaml

from tests.local.drilling import drilled
from tests.local.support import LocalCluster

KAFKAESQUE = {
    "name": "kafkaesque",
    "partitions": 1,
    "replication_factor": 2,
    "config": {"min.insync.replicas": 1},
}


# -- two brokers, one ZooKeeper server


@pytest.fixture(scope="module")
def two_brokers(next_offset):
    """inventories/local-1x2 with the topic `kafkaesque`."""
    with LocalCluster(next_offset(), inventory="inventories/local-1x2") as running:
        running.configure(
            "kafka",
            kafka_topics=[KAFKAESQUE],
            # Kafka looks for leaders that are not the preferred ones each five minutes otherwise.
            kafka_config={"leader.imbalance.check.interval.seconds": 2},
        )
        running.deploy()
        yield running


@pytest.fixture(scope="module")
def rows_of_two(two_brokers):
    """What the drill has kept of S2, by name."""
    before = two_brokers.processes()
    rows = drilled(two_brokers, "leader_stop")
    rows["processes"] = (before, two_brokers.processes())
    return rows


@pytest.mark.soak
def test_leader_stopped_and_started(rows_of_two):
    """The survivor leads alone, both groups get all that was acknowledged; later all is as before."""
    row, (before, after) = rows_of_two["leader_stopped"], rows_of_two["processes"]
    seen, fault = row["seen"], row["fault"]
    moments = [(each["leader"], each["isr"]) for each in seen["moments"]]
    leader = moments[0][0]
    survivor = 3 - leader
    print(*moments, seen["pause_ms"], seen["groups"], sep="\n")
    assert moments[0] == moments[-1] == (leader, [1, 2]), "all is as before"
    assert (survivor, [survivor]) in moments, "the survivor led alone"
    assert fault["at_ms"] <= seen["moments"][1]["at_ms"] and f"kafka-{leader}" in fault["label"]
    assert seen["acknowledged"] == seen["sent"] and seen["lost"] == 0 and not seen["refused"]
    example = seen["measured"]["example"]
    assert example["lines"] > 0 and (example["code"], example["missing"]) == (0, 0)
    for group in seen["groups"]:
        # an idempotent producer's retries write nothing twice
        assert (group["missing"], group["repeated"]) == ([], 0)
    hit = {name for name in before if before[name] != after[name]}
    assert hit == {f"kafka-{leader}"}, "the survivor was left alone"


# -- one broker, one ZooKeeper server


@pytest.fixture(scope="module")
def one_broker(next_offset):
    """inventories/local-1x1 with the topic `test`."""
    with LocalCluster(next_offset(), inventory="inventories/local-1x1") as running:
        running.configure("kafka", kafka_topics=[{"name": "test", "partitions": 1}])
        running.deploy()
        yield running


def from_beginning(cluster, topic, number):
    """Return what Kafka's console consumer reads of a topic, `number` records from the beginning."""
    said = cluster.tool(
        "kafka-console-consumer.sh",
        *("--topic", topic, "--from-beginning", "--max-messages", number, "--timeout-ms", 60000),
    )
    return [line for line in said.splitlines() if not line.startswith("Processed a total")]


def test_smallest_cluster(one_broker):
    """Id 0; what is typed in comes out from the beginning; a restart finds the old data and ids."""
    meta = (one_broker.instance("kafka-1") / "data" / "meta.properties").read_text()
    assert re.search(r"^broker\.id=0$", meta, re.MULTILINE)
    one_broker.tool("kafka-console-producer.sh", "--topic", "test", stdin="one\ntwo\n")
    assert from_beginning(one_broker, "test", 2) == ["one", "two"]

    one_broker.play("stop.yml")
    assert set(one_broker.processes().values()) == {None}
    # Somebody tidied up: without this file ZooKeeper would not start.
    myid = one_broker.instance("zookeeper-1") / "data" / "myid"
    assert myid.read_text().strip() == "1"
    myid.unlink()
    one_broker.deploy()
    assert myid.read_text().strip() == "1"
    assert None not in one_broker.processes().values()

    one_broker.tool("kafka-console-producer.sh", "--topic", "test", stdin="three\n")
    assert from_beginning(one_broker, "test", 3) == ["one", "two", "three"]
    assert (one_broker.instance("kafka-1") / "data" / "meta.properties").read_text() == meta


# -- three and three


@pytest.fixture
def topics_put_back(cluster):
    """The shared cluster; variables that the test sets for topics are taken back afterwards."""
    path = cluster.overlay / "group_vars" / "kafka.yml"
    before = path.read_text() if path.exists() else None
    declared = yaml.safe_load(
        (cluster.checkout / "inventories/local/group_vars/kafka.yml").read_text()
    )["kafka_topics"]
    settings = yaml.safe_load(before) if before else {}

    def declare(topics):
        cluster.configure("kafka", **{**settings, "kafka_topics": topics})

    yield declare, declared
    if before is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(before)


def retention(cluster, topic):
    """Return retention.ms as Kafka's own tool describes it, None where the broker's default holds."""
    said = cluster.tool(
        "kafka-configs.sh", "--entity-type", "topics", "--entity-name", topic, "--describe"
    )
    found = re.search(r"retention\.ms=(-?\d+)", said)
    return int(found[1]) if found else None


@pytest.mark.soak
def test_retention_of_a_live_topic(cluster, topics_put_back):
    """`retention: 1d` is 86400000 for Kafka, and back again, while everything runs."""
    declare, declared = topics_put_back
    before = cluster.processes()
    other = [topic for topic in declared if topic["name"] != "orders"]
    assert retention(cluster, "orders") == 7 * 86400000

    declare([{"name": "orders", "partitions": 6, "retention": "1d"}, *other])
    run = cluster.play("topics.yml", code=2)
    assert "retention.ms down from 7d to 1d" in run.text, "what goes is said, not done"
    consent = ("-e", "kafka_topics_allow=retention_cut")
    run = cluster.play("topics.yml", "--check", "--diff", *consent)
    for line in (r"- +retention.ms: '604800000'", r"\+ +retention.ms: '86400000'"):
        assert re.search(line, run.text)
    assert retention(cluster, "orders") == 7 * 86400000, "announced only"
    run = cluster.play("topics.yml", *consent)
    assert run.changed() == 1 and retention(cluster, "orders") == 86400000

    declare(declared)
    run = cluster.play("topics.yml")
    assert run.changed() == 1 and retention(cluster, "orders") == 7 * 86400000
    assert cluster.play("topics.yml").changed() == 0
    assert cluster.processes() == before


def test_every_server_has_its_myid(cluster):
    """The other half of `ZooKeeper refuses to start`."""
    for number, name in enumerate(cluster.zookeepers, start=1):
        assert (cluster.instance(name) / "data" / "myid").read_text().strip() == str(number)


def test_source_archive(cluster, tmp_path):
    """A source release looks like a binary one until it is to be started: refused by name."""
    archive = tmp_path / "kafka_2.13-3.9.2.tgz"  # a renamed one: the name would be enough
    (tmp_path / "build.gradle").write_text("// sources\n")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tmp_path / "build.gradle", "kafka-3.9.2-src/build.gradle")
    digest = hashlib.sha512(archive.read_bytes()).hexdigest()
    before = cluster.processes()
    run = cluster.play(
        "site.yml",
        *("-e", "distribution_source=archive", "-e", f"distribution_url={archive}"),
        *("-e", f"distribution_sha512={digest}", "-e", f"kafkaops_cache={tmp_path / 'cache'}"),
        code=2,
    )
    assert "[archive.source_release]" in run.text and "build.gradle" in run.text
    assert cluster.processes() == before
    assert not list((tmp_path / "cache").rglob("*.tgz")), "nothing that a later run could take"


def test_duplicate_id(next_offset):
    """Two hosts with one id: both named, before anything is changed."""
    with LocalCluster(next_offset(), own_software=True) as fresh:
        fresh.configure("kafka-3", kafka_broker_id=2)
        run = fresh.play("site.yml", code=2)
        assert re.search(
            r"\[identity\.duplicate_broker_id\] kafka-2, kafka-3: kafka_broker_id=2", run.text
        )
        assert not (fresh.home / "clusters").exists() and not (fresh.home / "opt").exists()
        assert run.changed() == 0


@pytest.fixture(scope="module")
def rows_of_three(cluster):
    """What the drills have kept of S2, S21 and S28, by name."""
    before = cluster.processes()
    rows = drilled(cluster, "groups,leader_stop,coordinator_kill")
    rows["processes"] = (before, cluster.processes())
    return rows


@pytest.fixture(scope="module")
def rows_of_groups(cluster):
    """What the drills have kept of S1 and S24, by name."""
    return drilled(cluster, "broadcast,consumer_close")


@pytest.mark.soak
def test_broadcast_to_groups(rows_of_groups):
    """Each group gets every message of the one producer, once."""
    seen = rows_of_groups["broadcast"]["seen"]
    assert seen["acknowledged"] == seen["sent"] >= 500 and not seen["refused"]
    assert len(seen["groups"]) == 5
    for group in seen["groups"]:
        assert (group["received"], group["missing"], group["repeated"]) == (seen["sent"], [], 0)
        assert 0 <= group["p50_ms"] <= group["p99_ms"] <= group["delay_ms"]


def test_a_leader_that_is_stopped_and_started_loses_nothing(rows_of_three):
    """One of the two others leads meanwhile; with one broker left it is a soak."""
    row = rows_of_three["leader_stopped"]
    seen, led = row["seen"], [each["leader"] for each in row["seen"]["moments"]]
    assert led[0] == led[-1] and len(set(led)) == 2 and f"kafka-{led[0]}" in row["fault"]["label"]
    assert len(seen["moments"][-1]["isr"]) == 3, "all is as before"
    assert seen["acknowledged"] == seen["sent"] and seen["lost"] == 0 and not seen["refused"]
    example = seen["measured"]["example"]
    assert example["lines"] > 0 and (example["code"], example["missing"]) == (0, 0)
    # a group whose coordinator goes along may read again what it has not committed
    assert [group["missing"] for group in seen["groups"]] == [[], []]


def test_groups_and_order(rows_of_three):
    """Same key, same partition, in order; a partition has one reader in a group, and who is too many none."""
    seen = rows_of_three["task_queue"]["seen"]
    measured = seen["measured"]
    assert (measured["keys"], measured["keys_split"], measured["keys_disordered"]) == (12, 0, 0)
    assert (measured["consumers"], measured["partitions"], measured["idle"]) == (4, 3, 1)
    # without a promise how they are shared out
    assert sum(measured["unkeyed"]) == 240
    (group,) = seen["groups"]
    assert (group["missing"], group["repeated"]) == ([], 0), "each task is done once"


@pytest.mark.soak
def test_a_consumer_that_leaves_hands_over(rows_of_groups):
    """examples/consumer.py commits and leaves: the other one has all of its records, none twice."""
    seen = rows_of_groups["consumer_closed"]["seen"]
    (group,) = seen["groups"]
    assert seen["acknowledged"] > 0 and seen["lost"] == 0
    assert (group["missing"], group["repeated"]) == ([], 0)


def test_internal_topics_need_replicas(cluster):
    """With one replica of the offsets, groups would end with the broker that has it."""
    path = cluster.overlay / "group_vars" / "kafka.yml"
    settings = yaml.safe_load(path.read_text()) if path.exists() else {}
    wrong = {**settings.get("kafka_config", {}), "offsets.topic.replication.factor": 1}
    before = cluster.processes()
    run = cluster.play("site.yml", "-e", yaml_argument({"kafka_config": wrong}), code=2)
    assert "[replication.internal]" in run.text
    assert "offsets.topic.replication.factor" in run.text
    assert run.changed() == 0 and cluster.processes() == before


def yaml_argument(variables):
    """Return variables as one argument of -e."""
    return yaml.safe_dump(variables, default_flow_style=True, width=10000).strip()


def test_group_survives_its_coordinator(rows_of_three):
    """The broker that keeps a group's offsets is killed: the group goes on, and it comes back by itself."""
    row, (before, after) = rows_of_three["coordinator_lost"], rows_of_three["processes"]
    stopped = rows_of_three["leader_stopped"]["seen"]["moments"][0]["leader"]
    hit = {name for name in before if before[name] != after[name]}
    assert hit == {row["done"].removesuffix(" killed"), f"kafka-{stopped}"}
    seen = row["seen"]
    assert seen["lost"] == 0 and seen["measured"]["commit_pause_ms"][0] > 0
    assert min(len(each["isr"]) for each in seen["moments"]) == 2
    assert len(seen["moments"][-1]["isr"]) == 3, "every replica in sync again"
