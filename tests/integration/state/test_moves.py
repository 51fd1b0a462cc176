# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replicas and leaders are moved where brokers ask for passwords and rights, as Kafka's own tool sees it."""

from __future__ import annotations

import re

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.state.conftest import PORT_BASE, whole
from tests.support.by_hand import throttles
from tests.support.outside import wait_until
from tests.support.readers import allow, write
from tests.support.secured_cluster import secured_cluster

TOPIC = "org.apache.kafka.tools.TopicCommand"


@pytest.fixture(scope="module")
def three_kraft(tmp_path_factory):
    """Three KRaft nodes, so that something can move."""
    with secured_cluster(tmp_path_factory.mktemp("moves"), PORT_BASE + 340, True, 3) as running:
        yield whole(running)


@pytest.fixture(params=["zookeeper", pytest.param("kraft", marks=pytest.mark.soak)])
def three(request):
    """Three brokers in each mode."""
    return request.getfixturevalue("three_kraft" if request.param == "kraft" else "on_zookeeper")


@pytest.fixture
def other(three):
    """A client that is not ours."""
    return AdminClient(three.client_settings())


@pytest.fixture
def placed(three, other, name):
    """A topic of three partitions with some records, each on broker 1 alone; its name."""
    new = NewTopic(name, 3, replica_assignment=[[1]] * 3, config={"min.insync.replicas": "1"})
    other.create_topics([new])[name].result(30)
    wait_until(lambda: described(three, name) == {0: [1], 1: [1], 2: [1]}, 30, "created")
    write(three.client_settings(), name, dict.fromkeys(range(3), 5), size=10_000)
    yield name
    other.delete_topics([name])[name].result(30)


def described(cluster, name, what="Replicas"):
    """Partition to its replicas (or its leader), as Kafka's own tool tells."""
    text = cluster.tool(TOPIC, "--describe", "--topic", name)
    found = re.findall(rf"Partition: (\d+)\t.*{what}: ([\d,]+)", text)
    return {int(part): [int(each) for each in told.split(",")] for part, told in found}


def test_more_replicas_fewer_with_consent_and_a_broker_emptied(three, other, placed):
    def run(check=False, **options):
        return three.run("kafka_reassignment", check, topics=[placed], **options)

    def as_checked(**options):
        before = described(three, placed)
        looked = run(True, **options)
        assert looked.changed and described(three, placed) == before, looked.values
        done = run(**options)
        assert not done.failed and (done.plan, done.diff) == (looked.plan, looked.diff), done.msg
        after = {each["subject"]: each["after"]["replicas"] for each in done.plan["changes"]}
        found = described(three, placed)
        assert {f"{placed}-{part}": each for part, each in found.items()}.items() >= after.items()
        again = run(**options)
        assert again.changed is False and not again.failed, again.values
        assert throttles(other) == {}
        return found

    found = as_checked(replication_factor=3)
    assert {len(set(each)) for each in found.values()} == {3}
    refused = run(replication_factor=2)
    assert refused.checks == [("reassignment.fewer_replicas",)] and refused.changed is False
    assert re.search(r"3 partitions, [\d.]+ KiB in all, would have fewer copies", refused.msg)
    assert f"{placed} (3 to 2)" in refused.msg and described(three, placed) == found
    found = as_checked(replication_factor=2, allow=["fewer_replicas"])
    assert {len(set(each)) for each in found.values()} == {2}
    found = as_checked(drain=[2])
    assert not any(2 in each for each in found.values())


@pytest.fixture
def moved_leaders(three, placed):
    """The topic with replicas on all brokers, of which another one is preferred than leads."""
    assert three.run("kafka_reassignment", topics=[placed], replication_factor=3).changed
    wait_until(lambda: len(described(three, placed)[0]) == 3, 30, "moved")
    replicas = described(three, placed)
    from kafka import KafkaAdminClient, TopicPartition

    settings = three.client_settings()
    client = KafkaAdminClient(
        bootstrap_servers=settings["bootstrap.servers"].split(","),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username=settings["sasl.username"],
        sasl_plain_password=settings["sasl.password"],
    )
    turned = {TopicPartition(placed, part): each[::-1] for part, each in replicas.items()}
    client.alter_partition_reassignments(turned)
    client.close()
    expected = {part: each[::-1] for part, each in replicas.items()}
    wait_until(lambda: described(three, placed) == expected, 30, "another order")
    ready = three.run("kafka_cluster_info", wait={"brokers": [1, 2, 3], "full_isr": True})
    assert not ready.failed, ready.msg
    return {part: each[0] for part, each in expected.items()}


def test_leaders_are_elected_as_checked(three, placed, moved_leaders):
    def run(check=False, **options):
        return three.run("kafka_leader_election", check, topics=[placed], **options)

    now = {part: each[0] for part, each in described(three, placed, "Leader").items()}
    looked = run(True)
    wanted = {
        f"{placed}-{part}": {"leader": leader}
        for part, leader in moved_leaders.items()
        if now[part] != leader
    }
    assert wanted and looked.diff["after"] == wanted
    assert {p: each[0] for p, each in described(three, placed, "Leader").items()} == now
    done = run()
    assert not done.failed and (done.plan, done.diff) == (looked.plan, looked.diff), done.msg
    found = {part: each[0] for part, each in described(three, placed, "Leader").items()}
    assert found == moved_leaders
    assert run().changed is False


def test_who_may_only_look_is_told_the_right_before_anything_is_begun(
    three, other, placed, moved_leaders
):
    """With each right that is added one thing less is refused."""
    allow(
        three,
        *(("topic", placed, right) for right in ("describe", "describe_configs")),
        ("cluster", True, "describe"),
    )
    before = described(three, placed)
    now = described(three, placed, "Leader")
    moves = {"topics": [placed], "drain": [3], "replication_factor": 2, "allow": ["fewer_replicas"]}

    def refused(check, words, **more):
        for looked in (True, False):
            told = three.run("kafka_reassignment", looked, "team", **moves, **more)
            assert told.failed and told.changed is False and told.checks == [(check,)], told.values
            assert words in told.msg, told.msg
        assert described(three, placed) == before and throttles(other) == {}

    refused("reassignment.rights", "grant it Alter on the cluster, or run as a super user")
    for looked in (True, False):
        told = three.run("kafka_leader_election", looked, "team", topics=[placed])
        assert told.failed and told.changed is False and told.checks == [("leaders.rights",)]
    assert described(three, placed, "Leader") == now
    allow(three, ("cluster", True, "alter"))
    more = {"topics": [placed], "replication_factor": 2, "allow": ["fewer_replicas"]}
    done = three.run("kafka_reassignment", user="team", **more)
    assert not done.failed and {len(each) for each in described(three, placed).values()} == {2}
    back = {"topics": [placed], "replication_factor": 3}
    for looked in (True, False):
        told = three.run("kafka_reassignment", looked, "team", **back)
        assert told.checks == [("reassignment.rights",)], told.values
        assert "this user may not throttle moves" in told.msg and "AlterConfigs" in told.msg
    assert throttles(other) == {}
    done = three.run("kafka_reassignment", user="team", throttle="unlimited", **back)
    assert not done.failed and {len(each) for each in described(three, placed).values()} == {3}


def test_a_throttle_that_the_topic_refuses_is_said_with_its_right_and_nothing_moves(
    three, other, placed
):
    """AlterConfigs on the cluster says nothing about the topic: only trying tells."""
    allow(
        three,
        *(("topic", placed, right) for right in ("describe", "describe_configs")),
        *(
            ("cluster", True, right)
            for right in ("describe", "alter", "alter_configs", "describe_configs")
        ),
    )
    told = three.run("kafka_reassignment", user="team", topics=[placed], replication_factor=2)
    assert told.failed and told.changed is False, told.values
    assert "AlterConfigs on the topics" in str(told.failed_items), told.values
    assert set(map(len, described(three, placed).values())) == {1}
    wait_until(lambda: throttles(other) == {}, 30, "no throttle is left")
