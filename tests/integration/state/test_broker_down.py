# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One broker of three is down: each module does what can be done, and says what cannot."""

from __future__ import annotations

import contextlib

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.state.conftest import PORT_BASE, whole
from tests.support.outside import create_topics, replicas_of, wait_until
from tests.support.readers import commit
from tests.support.secured_cluster import secured_cluster

DOWN = 3


@pytest.fixture(scope="module", params=["zookeeper", pytest.param("kraft", marks=pytest.mark.soak)])
def hurt(request, tmp_path_factory):
    """`everywhere` is on all brokers, `pair` on 1 and 3, led by 3 before, `alone` on 3 only; 3 is dead."""
    folder, kraft = tmp_path_factory.mktemp("hurt"), request.param == "kraft"
    with secured_cluster(folder, PORT_BASE + 340, kraft, 3) as running:
        cluster = whole(running)
        admin = AdminClient(cluster.client_settings())
        one = {"min.insync.replicas": "1"}
        new = [
            NewTopic("everywhere", 3, replica_assignment=[[3, 1, 2], [1, 2, 3], [2, 3, 1]]),
            NewTopic("pair", 1, replica_assignment=[[3, 1]], config=one),
            NewTopic("alone", 2, replica_assignment=[[3], [1]], config=one),
        ]
        create_topics(cluster.client_settings(), new)
        ready = cluster.run("kafka_cluster_info", wait={"brokers": [1, 2, 3], "full_isr": True})
        assert not ready.failed, ready.msg
        producer = Producer(cluster.client_settings())
        for number in range(30):
            producer.produce("everywhere", b"x" * 100, partition=number % 3)
            producer.produce("alone", b"x" * 100, partition=number % 2)
        assert producer.flush(60) == 0
        commit(
            cluster.client_settings(),
            "readers",
            {("everywhere", number): 4 for number in range(3)},
        )
        running.broker_instances[DOWN].kill()
        wait_until(lambda: leader_of_pair(admin) == 1, 60, "another one leads")
        yield cluster


def leader_of_pair(admin):
    """Who leads `pair`; None where nobody tells in time, as on a machine that has much else to do."""
    with contextlib.suppress(KafkaException):
        return replicas_of(admin.list_topics("pair", timeout=10), "pair")[0][0]
    return None


def refused(result):
    """Ids and subjects of what is refused; nothing was changed."""
    assert result.failed and result.changed is False, result.values
    return result.checks


def test_topics_that_two_brokers_can_hold(hurt):
    one = {"partitions": 1, "config": {"min.insync.replicas": 1}}
    full = {"name": "full", "replication_factor": 3, "partitions": 1}
    told = hurt.run("kafka_topics", topics=[full])
    assert refused(told) == [("replication.exceeds_brokers", "full")]
    assert "only 2 brokers are alive. Remedy: start the missing brokers" in told.msg
    topics = [{"name": "two", "replication_factor": 2, **one}, {"name": "pair", "retention": "30d"}]
    done = hurt.run("kafka_topics", topics=topics)
    assert not done.failed and sorted(done.diff["after"]) == ["pair", "two"]
    assert hurt.run("kafka_topics", topics=topics).changed is False
    grown = hurt.run(
        "kafka_topics",
        topics=[{"name": "everywhere", "partitions": 4}],
        allow=["partition_growth"],
    )
    if hurt.bare.kraft:
        # Its controller places replicas on the dead one, too.
        assert grown.changed and not grown.failed, grown.msg
    else:
        assert refused(grown) == [] and "larger than available brokers: 2" in grown.msg


def test_what_a_cut_costs_is_not_said_to_be_nothing_where_nobody_knows(hurt):
    policies = [{"match": "everywhere|alone", "keep_for": "1h"}]
    told = hurt.run("kafka_retention", policies=policies)
    assert ("retention.cut", "alone") in refused(told)
    lines = dict(line.partition("] ")[2].split(": ", 1) for line in told.msg.splitlines()[1:])
    assert "of 1 partition without a leader nothing is known" in lines["alone"]
    assert "0 B" not in lines["alone"] and "0 records and about 0 B" in lines["everywhere"]


def test_sizes_of_what_only_the_dead_one_has_are_not_known(hurt):
    found = {each["name"]: each for each in hurt.run("kafka_topics_info").topics}
    assert found["alone"]["bytes"] is None and found["alone"]["records"] is None
    assert found["everywhere"]["records"] == 30 and found["everywhere"]["bytes"] > 0
    assert hurt.run("kafka_log_dirs_info").missing_brokers == [DOWN]


def test_settings_of_all_brokers_but_not_of_the_dead_one(hurt):
    whole_cluster = [{"scope": "cluster", "settings": {"log.cleaner.backoff.ms": 14000}}]
    assert hurt.run("kafka_configs", configs=whole_cluster).changed
    of_both = [{"scope": "broker", "brokers": [1, DOWN], "settings": {"num.io.threads": 5}}]
    told = hurt.run("kafka_configs", configs=of_both)
    assert refused(told) == [("configs.unknown_broker", f"broker {DOWN}")]
    assert "no such broker is running, these are: 1, 2. Remedy: start it" in told.msg


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("kafka_acls", {"acls": [{"topic": "pair", "principal": "a", "operations": "read"}]}),
        ("kafka_users", {"users": [{"name": "u", "password": "a long password"}]}),
        ("kafka_quotas", {"quotas": [{"user": "u", "limits": {"producer_byte_rate": 5000}}]}),
        (
            "kafka_consumer_groups",
            {"groups": [{"name": "readers", "to": "earliest"}], "allow": ["reread"]},
        ),
    ],
)
def test_what_needs_no_third_broker_is_done_and_seen(hurt, module, options):
    done = hurt.run(module, **options)
    assert not done.failed and done.changed, done.msg
    assert hurt.run(module, **options).changed is False


def test_records_where_somebody_leads(hurt):
    both = [
        {"name": "everywhere", "partitions": [0, 1, 2], "before_offset": 3},
        {"name": "alone", "before_offset": 3},
    ]
    told = hurt.run("kafka_records", topics=both, allow=["delete_records"])
    assert refused(told) == [("records.no_leader", "alone")] and "alone-0: no leader" in told.msg
    led = [both[0], {**both[1], "partitions": [1]}]
    done = hurt.run("kafka_records", topics=led, allow=["delete_records"])
    assert not done.failed and done.records == 12, done.msg


def test_leaders_and_replicas_of_the_dead_one_stay(hurt):
    told = hurt.run("kafka_leader_election")
    assert not told.failed and told.changed is False
    assert "everywhere-0 (broker 3)" in str(told.warnings)
    drained = hurt.run("kafka_reassignment", drain=[DOWN])
    assert "reassignment.nowhere_to_go" in drained.msg and drained.changed is False
    spread = hurt.run("kafka_reassignment", spread=True, operation_timeout=30)
    assert not spread.failed, spread.msg
    assert "broker 3 holds replicas and is not alive" in str(spread.warnings)
    admin = AdminClient(hurt.client_settings())
    _leader, replicas, _isr = replicas_of(admin.list_topics("pair", timeout=10), "pair")[0]
    assert set(replicas) == {1, DOWN}, "a move would wait for the dead one"
    beside = {"drain": [1], "topics": ["pair"], "operation_timeout": 60}
    looked = hurt.run("kafka_reassignment", True, **beside)
    if hurt.bare.kraft:
        assert looked.changed and looked.checks == [], "there only the new one has to be in sync"
        moved = hurt.run("kafka_reassignment", **beside)
        assert not moved.failed, moved.msg
    else:
        for told in (looked, hurt.run("kafka_reassignment", **beside)):
            assert refused(told) == [("reassignment.dead_replica", "broker 3")]
            assert "playbooks/scale_in.yml -e broker=3" in told.msg


def test_a_topic_is_deleted_as_far_as_brokers_live(hurt):
    """Last: the controller deletes what the dead broker has once it is back."""
    done = hurt.run("kafka_topics", topics=[{"name": "alone", "state": "absent"}], allow=["delete"])
    assert not done.failed and done.changed, done.msg
    again = hurt.run("kafka_topics", topics=[{"name": "alone", "state": "absent"}])
    assert again.changed is False
