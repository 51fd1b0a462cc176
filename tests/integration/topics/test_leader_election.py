# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_leader_election against real brokers: leaders that a restart has moved come back."""

from __future__ import annotations

from confluent_kafka.admin import NewTopic

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

    checked = election(cluster, check=True, topics=[name])
    assert checked.changed and led(admin, name) == moved
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
