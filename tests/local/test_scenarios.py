# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Situations from the field, each repeated on a cluster that an inventory alone describes."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import tarfile
from contextlib import ExitStack

import pytest
import yaml
from confluent_kafka import Producer

from tests.local.clients import Reader, Ticker
from tests.local.support import LocalCluster
from tests.support.outside import wait_until

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


def test_broadcast_to_groups(two_brokers):
    """Each group gets every message of the one producer: two groups, and a third that comes later."""
    with ExitStack() as stack:
        readers = [
            stack.enter_context(Reader(two_brokers.client(), "kafkaesque", f"broadcast-{number}"))
            for number in range(2)
        ]
        with Ticker(two_brokers.client(), "kafkaesque") as ticker:
            ticker.wait_for_more(20)
        readers.append(
            stack.enter_context(Reader(two_brokers.client(), "kafkaesque", "broadcast-late"))
        )
        assert not ticker.failed and len(ticker.acknowledged) == ticker.sent
        for reader in readers:
            reader.wait_for(ticker.acknowledged)
            assert set(reader.values.values()) == {1}, "once each"


def test_leader_stopped_and_started(two_brokers):
    """The survivor leads alone, both groups get all that was acknowledged; later all is as before."""
    table = []

    def note(moment):
        leader, replicas, isr = two_brokers.partitions("kafkaesque")[0]
        table.append(f"{moment:<8} leader {leader}  replicas {replicas}  isr {isr}")
        return leader, replicas, isr

    def state():
        return two_brokers.partitions("kafkaesque")[0]

    leader, replicas, isr = note("before")
    assert (replicas, isr) == ([1, 2], [1, 2])
    survivor = 3 - leader
    name = two_brokers.name_of(leader)
    other = two_brokers.process(two_brokers.name_of(survivor))
    with ExitStack() as stack:
        readers = [
            stack.enter_context(Reader(two_brokers.client(), "kafkaesque", group))
            for group in ("first", "second")
        ]
        with Ticker(two_brokers.client(), "kafkaesque") as ticker:
            ticker.wait_for_more(10)
            two_brokers.play("stop.yml", "--limit", name)
            assert two_brokers.process(name) is None
            wait_until(
                lambda: state() == (survivor, [1, 2], [survivor]), 120, "the survivor leads alone"
            )
            note("stopped")
            ticker.wait_for_more(10)
            two_brokers.play("start.yml", "--limit", name)
            wait_until(lambda: state() == (leader, [1, 2], [1, 2]), 180, "all is as before")
            note("started")
            ticker.wait_for_more(10)
        print(*table, sep="\n")
        print(
            f"sent {ticker.sent}, acknowledged {len(ticker.acknowledged)}, failed {ticker.failed}"
        )
        assert len(ticker.acknowledged) + len(ticker.failed) == ticker.sent
        for reader in readers:
            reader.wait_for(ticker.acknowledged)
            # an idempotent producer's retries write nothing twice
            assert all(reader.values[value] == 1 for value in ticker.acknowledged - old(reader))
    assert (
        two_brokers.process(two_brokers.name_of(survivor)) == other
    ), "the survivor was left alone"


def old(reader):
    """Return the values that also another test's ticker has sent: numbers start anew each time."""
    return {value for value, number in reader.values.items() if number > 1 and int(value) < 100}


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


def test_groups_and_order(cluster, topics_put_back):
    """Same key, same partition, in order; a partition has one reader in a group; every group gets all."""
    declare, declared = topics_put_back
    declare(
        [
            *declared,
            {"name": "topic-A", "partitions": 2, "replication_factor": 3},
            {"name": "topic-B", "partitions": 1},
        ]
    )
    assert cluster.play("topics.yml").changed() == 1
    keys = [f"customer-{number}" for number in range(10)]
    written = [(keys[number % len(keys)], str(number)) for number in range(200)]
    for topic in ("topic-A", "topic-B"):
        producer = Producer(cluster.client(acks="all"))
        for key, value in written:
            producer.produce(topic, value.encode(), key.encode())
        assert producer.flush(120) == 0
    values = [value for _key, value in written]

    with ExitStack() as stack:

        def reader(topic, group):
            return stack.enter_context(Reader(cluster.client(), topic, group))

        pair = [reader("topic-A", "pair"), reader("topic-A", "pair")]
        wait_until(
            lambda: sorted(len(item.assigned) for item in pair) == [1, 1], 120, "a partition each"
        )
        wait_until(
            lambda: set(pair[0].values) | set(pair[1].values) == set(values), 120, "all read"
        )
        by_key = {}
        for place in sorted(set(pair[0].places) | set(pair[1].places)):
            by_key.setdefault(place[2], []).append(place)
        for key, places in by_key.items():
            assert len({place[0] for place in places}) == 1, f"{key} stays in one partition"
            assert [place[3] for place in places] == [v for k, v in written if k == key], "in order"

        crowd = [reader("topic-B", "crowd"), reader("topic-B", "crowd")]
        wait_until(
            lambda: sorted(len(item.assigned) for item in crowd) == [0, 1], 120, "one idle reader"
        )
        for single in (reader("topic-B", "own-1"), reader("topic-B", "own-2")):
            single.wait_for(values)
            assert [place[3] for place in single.places] == values, "one partition, one order"


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


def test_group_survives_its_coordinator(cluster):
    """The broker that keeps a group's offsets is killed: the group goes on, and it comes back by itself."""
    with Reader(cluster.client(), "orders", "survivors") as reader:
        with Ticker(cluster.client(), "orders") as ticker:
            ticker.wait_for_more(1)
            reader.wait_for(list(ticker.acknowledged)[:1])
            offsets = cluster.partitions("__consumer_offsets")
            assert {len(replicas) for _leader, replicas, _isr in offsets.values()} == {3}
            admin = cluster.admin()  # kept: its answers come only while it lives
            described = admin.describe_consumer_groups(["survivors"])["survivors"].result(60)
            name = cluster.name_of(described.coordinator.id)
            before = cluster.process(name)
            os.kill(before.pid, signal.SIGKILL)
            ticker.wait_for_more(20)
            seen = len(reader.values)
            wait_until(lambda: len(reader.values) > seen + 10, 180, "the group goes on")
            wait_until(
                lambda: cluster.process(name) not in (None, before),
                180,
                f"{name} comes back by itself",
            )
        reader.wait_for(ticker.acknowledged)
    wait_until(
        lambda: all(
            len(isr) == 3 for _leader, _replicas, isr in cluster.partitions("orders").values()
        ),
        180,
        "every replica in sync again",
    )
