# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_leader_election against real brokers: leaders that a restart has moved come back; the last resort."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.support.bare_cluster import BareCluster
from tests.support.outside import replicas_of, wait_until
from tests.support.run_module import run_module


def election(cluster, check=False, **options):
    """The module."""
    arguments = {"bootstrap_servers": cluster.bootstrap_servers, **options}
    return run_module("kafka_leader_election", arguments, check)


def led(admin, topic):
    """Return partition -> leader, once all three replicas are in sync."""
    found = replicas_of(admin.list_topics(topic, timeout=30), topic)
    whole = len(found) == 3 and all(len(isr) == 3 for _leader, _all, isr in found.values())
    return {number: leader for number, (leader, _all, _isr) in found.items()} if whole else None


def test_leaders_that_a_restart_has_moved_come_back(cluster, admin, name):
    new = NewTopic(name, 3, replica_assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    admin.create_topics([new])[name].result(30)
    wait_until(lambda: led(admin, name), 30, "created")
    broker = cluster.broker_instances[2]
    broker.stop()
    broker.start()

    def led_elsewhere():
        """What is led by whom, once all are in sync again; a broker may still tell of the time before."""
        found = led(admin, name)
        return found if found and found[1] != 2 else None

    moved = wait_until(led_elsewhere, 60, "in sync again, and nobody has given leadership back")

    def planned():
        """The plan, once the broker that is asked knows, too, that all are in sync."""
        found = election(cluster, check=True, topics=[name])
        return found if found.changed else None

    checked = wait_until(planned, 60, "whoever is asked knows that broker 2 may lead")
    assert led(admin, name) == moved
    assert checked.plan["changes"] == [
        {
            "kind": "elect",
            "subject": f"{name}-1",
            "before": {"leader": moved[1]},
            "after": {"leader": 2},
            "note": "",
        }
    ]
    done = election(cluster, topics=[name])
    assert done.changed and led(admin, name) == {0: 1, 1: 2, 2: 3}
    assert election(cluster, topics=[name]).changed is False

    assert election(cluster).not_preferred == 0, "all topics, the internal ones too"
    assert election(cluster).changed is False


def test_a_topic_that_is_not_there_is_refused(cluster, name):
    failed = election(cluster, topics=[name])
    assert failed.failed and f"[topics.unknown] {name}:" in failed.msg


def write(cluster, topic, count):
    """Write records of 100 bytes to partition 0, each acknowledged by all that are in sync."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for _each in range(count):
        producer.produce(topic, b"x" * 100, partition=0)
    assert producer.flush(60) == 0


def end_of(admin, topic):
    """The end of partition 0."""
    key = TopicPartition(topic, 0)
    return admin.list_offsets({key: OffsetSpec.latest()})[key].result(30).offset


def lose_what_is_in_sync(cluster, admin, topic):
    """A topic on brokers 1 and 2: 100 records are on both, 23 on 1 alone, and 1 is stopped."""
    new = NewTopic(topic, 1, replica_assignment=[[1, 2]], config={"min.insync.replicas": "1"})
    admin.create_topics([new])[topic].result(30)

    def state():
        return replicas_of(admin.list_topics(topic, timeout=30), topic).get(0)

    def is_now(leader, isr):
        found = state()
        return found is not None and found[0] == leader and set(found[2]) == isr

    wait_until(lambda: is_now(1, {1, 2}), 30, "created")
    write(cluster, topic, 100)
    cluster.broker_instances[2].stop()
    wait_until(lambda: is_now(1, {1}), 60, "broker 2 is out of sync")
    write(cluster, topic, 23)
    assert end_of(admin, topic) == 123
    cluster.broker_instances[1].stop()
    cluster.broker_instances[2].start()
    # The ISR is broker 1 alone still; KRaft empties it.
    wait_until(lambda: (state() or (0,))[0] == -1, 60, "nobody leads")
    ready = run_module(
        "kafka_cluster_info",
        {"bootstrap_servers": cluster.bootstrap_servers, "wait": {"brokers": [2, 3], "gone": [1]}},
    )
    assert not ready.failed, ready.msg

    def led_but_for_the_stopped():
        told = admin.list_topics(timeout=30)
        return all(
            leader != -1 or set(isr) <= {1}
            for name in told.topics
            for leader, _replicas, isr in replicas_of(told, name).values()
        )

    # Broker 2 has started, and leads what it had alone a moment later: topics of others, which are counted, too.
    wait_until(led_but_for_the_stopped, 60, "all that broker 1 has not alone is led")


def unclean(cluster, admin, topic):
    """Refused, shown, done; and what is lost is lost."""
    lose_what_is_in_sync(cluster, admin, topic)
    options = {"topics": [topic], "election": "unclean"}
    refused = election(cluster, **options)
    assert refused.failed and refused.changed is False
    assert refused.checks == [("unclean.leader", f"{topic}-0")]
    assert "broker 2 would lead" in refused.msg and "start broker 1" in refused.msg
    # 100 records of 100 bytes with their headers
    assert "; it has 1" in refused.msg and "KiB. Remedy" in refused.msg, refused.msg

    options["allow"] = ["unclean_election"]
    checked = election(cluster, check=True, **options)
    # other topics may have none either: those that lie on broker 1 alone
    assert checked.changed and checked.without_leader == refused.without_leader - 1
    assert checked.elected == [{"partition": f"{topic}-0", "end_offset": None}]
    assert replicas_of(admin.list_topics(topic, timeout=30), topic)[0][0] == -1
    done = election(cluster, **options)
    assert not done.failed and done.plan == checked.plan
    assert done.kinds == [("elect", f"{topic}-0")] and done.plan["changes"][0]["after"] == {
        "leader": 2
    }
    assert done.elected == [{"partition": f"{topic}-0", "end_offset": 100}]
    again = election(cluster, **options)
    assert again.changed is False and again.elected == []
    # Broker 1 returns, and cuts off what it had alone.
    cluster.broker_instances[1].start()

    def whole():
        return len(replicas_of(admin.list_topics(topic, timeout=30), topic)[0][2]) == 2

    wait_until(whole, 60, "in sync again")
    assert end_of(admin, topic) == 100


def test_a_replica_that_lags_behind_leads_with_consent_only(cluster, admin, name):
    try:
        unclean(cluster, admin, name)
    finally:
        # others use these brokers, too, whatever has failed here
        for broker in cluster.broker_instances.values():
            if not broker.running():
                broker.start()
        wait = {"brokers": [*cluster.broker_instances], "full_isr": True}
        whole = run_module(
            "kafka_cluster_info", {"bootstrap_servers": cluster.bootstrap_servers, "wait": wait}
        )
    assert not whole.failed, whole.msg


@pytest.mark.soak  # the same with three KRaft nodes of their own
def test_a_replica_that_lags_behind_leads_with_consent_only_in_kraft(tmp_path):
    with BareCluster(tmp_path, port_base=21200, kraft=True) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        unclean(running, admin, "left-behind")


def test_unclean_elections_name_their_topics(cluster):
    failed = election(cluster, election="unclean")
    assert failed.failed and "topics" in failed.msg
