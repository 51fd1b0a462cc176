# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""S16: the retention of a live topic changes, and segments disappear from the brokers' disks."""

from __future__ import annotations

import signal
import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.outside import wait_until
from tests.support.run_module import Modules

DAY_MS = 24 * 60 * 60 * 1000


def produce(cluster, name, records, age_ms=0, size=1000, partition=0):
    """Write records with a timestamp of that age, acknowledged by all replicas."""
    from confluent_kafka import Producer

    failed = []
    # A batch must fit into a segment, and be smaller than what the test tells apart.
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"}
    producer = Producer({**settings, "batch.num.messages": 10})
    stamp = int(time.time() * 1000) - age_ms
    for number in range(records):
        producer.produce(
            name,
            value=number.to_bytes(8, "big") + b"x" * (size - 8),
            partition=partition,
            timestamp=stamp,
            on_delivery=lambda error, _message: failed.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(30) == 0 and not failed


def segments(cluster, name, partition=0):
    """Broker id to the set of segment files of a partition on its disk."""
    return {
        broker: {
            path.name
            for path in (cluster.log_directory(broker) / f"{name}-{partition}").glob("*.log")
        }
        for broker in cluster.broker_instances
    }


@pytest.fixture
def live(modules, cluster, name):
    """A topic of small segments: 200 records of two days ago, then 100 of now."""
    modules.topics(
        [{"name": name, "partitions": 1, "retention": "7d", "config": {"segment.bytes": "16KiB"}}]
    )
    produce(cluster, name, 200, age_ms=2 * DAY_MS)
    produce(cluster, name, 100)
    return name


def test_a_cut_says_what_goes_and_then_it_goes(modules, cluster, live):
    """The refusal counts records and names the option; with it the old segments vanish."""
    before = segments(cluster, live)
    assert all(len(files) > 15 for files in before.values())
    item = {"name": live, "retention": "1d"}

    refused = modules.topics([item])
    assert refused.failed and refused.checks == [("retention.cut", live)]
    assert "retention.ms down from 7d to 1d: 200 records" in refused.msg
    assert "on disk would be deleted" in refused.msg
    assert "allow: [retention_cut]" in refused.msg
    assert segments(cluster, live) == before

    shown = modules.topics([item], check=True, allow=["retention_cut"])
    assert (
        "200 records" in shown.diff["after"][live]["at stake"] and segments(cluster, live) == before
    )

    assert modules.topics([item], allow=["retention_cut"]).changed
    oldest = {"00000000000000000000.log"}
    wait_until(
        lambda: not any(files & oldest for files in segments(cluster, live).values()),
        30,
        "the old ones are deleted",
    )
    wait_until(
        lambda: all(len(files) < 12 for files in segments(cluster, live).values()), 30, "fewer"
    )
    assert modules.topics([item]).changed is False

    # Back again needs no consent; what is gone stays gone.
    back = modules.topics([{"name": live, "retention": "7d"}])
    assert back.changed and not back.failed


def test_a_cut_by_size_frees_disk(modules, cluster, live):
    """retention.bytes is per partition; the bytes that go are shown."""
    item = {"name": live, "retention_size": "64KiB"}
    refused = modules.topics([item])
    assert refused.checks == [("retention.cut", live)]
    assert "retention.bytes down from unlimited to 64KiB" in refused.msg and "KiB" in refused.msg
    assert modules.topics([item], allow=["retention_cut"]).changed

    def size(path):
        try:
            return path.stat().st_size
        except FileNotFoundError:  # the broker has just renamed it
            return 0

    def occupied(broker):
        return sum(map(size, (cluster.log_directory(broker) / f"{live}-0").glob("*.log")))

    wait_until(
        lambda: all(occupied(broker) < 100 * 1024 for broker in cluster.broker_instances),
        30,
        "room",
    )


def test_deletion_says_how_much_it_deletes(modules, live):
    """All records count, and the bytes of one replica of each partition."""
    refused = modules.topics([{"name": live, "state": "absent"}])
    assert refused.checks == [("topics.delete", live)]
    assert "300 records" in refused.msg and "KiB" in refused.msg


@pytest.mark.parametrize(
    "config, check, consent, words",
    [
        ({"cleanup.policy": "compact"}, "cleanup.change", "cleanup_change", "only the newest"),
        ({"unclean.leader.election.enable": True}, "unclean.election", "unclean_election", "lost"),
        ({"min.insync.replicas": 1}, "min_insync.cut", "min_insync_cut", "from 2 to 1"),
    ],
)
def test_what_endangers_records_is_refused_with_its_size(
    modules, live, config, check, consent, words
):
    """No consent: nothing changes, and the refusal counts the records; the way back is free."""
    back = {"cleanup.policy": "delete", "unclean.leader.election.enable": False}
    safe = {key: back.get(key, 2) for key in config}
    modules.topics([{"name": live, "config": safe}])
    item = {"name": live, "config": config}
    if "cleanup.policy" in config:
        # The way back to deletion is a danger of its own, so begin with both and leave one.
        both = {"cleanup.policy": "compact,delete"}
        assert modules.topics([{"name": live, "config": both}]).checks == [(check, live)]
    refused = modules.topics([item])
    assert refused.failed and not refused.changed and refused.checks == [(check, live)]
    assert words in refused.msg and "300 records" in refused.msg
    assert f"allow: [{consent}]" in refused.msg
    others = ["delete", "retention_cut", "partition_growth"]
    assert modules.topics([item], allow=others).checks == [(check, live)]
    checked = modules.topics([item], check=True, allow=[consent])
    assert "300 records" in checked.diff["after"][live]["at stake"]
    assert modules.topics([item], allow=[consent]).changed
    assert modules.topics([item]).changed is False
    if "cleanup.policy" not in config:
        assert modules.topics([{"name": live, "config": safe}]).changed


@pytest.fixture
def silent_leader(cluster, name):
    """The leader of the topic's partition is stopped, but not for as long as a session.

    It is neither the controller, which is asked for settings, nor the first broker, which is asked
    for what is the default in the cluster.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    controller = admin.describe_cluster().result(30).controller.id
    number, other = sorted({2, 3}, key=lambda broker: broker == controller)
    new = NewTopic(name, num_partitions=1, replica_assignment=[[number, other, 1]])
    admin.create_topics([new])[name].result(30)
    produce(cluster, name, 100)
    leader = cluster.broker_instances[number]
    leader.signal(signal.SIGSTOP)
    yield leader
    leader.signal(signal.SIGCONT)


def test_records_that_nobody_counted_are_not_none(cluster, name, silent_leader):
    """Its leader says nothing: then that is said, and not that there is nothing to lose."""
    others = [
        f"127.0.0.1:{cluster.broker_port(broker)}"
        for broker, instance in cluster.broker_instances.items()
        if instance is not silent_leader
    ]
    gone = Modules(",".join(others)).topics([{"name": name, "state": "absent"}], timeout=3)
    assert gone.failed and "records could not be counted" in gone.msg, gone.msg
    assert f"no answer from the leader of {name}-0" in gone.msg, gone.msg


def test_growth_says_how_many_records_are_concerned(modules, live):
    """Keys of 300 records would go elsewhere."""
    refused = modules.topics([{"name": live, "partitions": 2}])
    assert refused.checks == [("partitions.growth", live)] and "300 records" in refused.msg


def test_a_compacted_topic_has_no_retention_to_cut(modules, name):
    """Age deletes nothing there, so no consent is asked."""
    modules.topics([{"name": name, "cleanup": "compact", "retention": "7d"}])
    assert modules.topics([{"name": name, "cleanup": "compact", "retention": "1d"}]).changed


def test_replace_that_shortens_retention_is_a_cut_too(modules, name):
    """Resetting `forever` to the brokers' seven days deletes as well."""
    modules.topics([{"name": name, "retention": "forever"}])
    refused = modules.topics([{"name": name}], config_mode="replace")
    assert refused.checks == [("retention.cut", name)]
    assert "from forever to 7d" in refused.msg
