# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_reassignment against a real cluster of three brokers: drain, spread, factor, cancel, resume."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from kafka import KafkaAdminClient, TopicPartition

from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until
from tests.support.by_hand import THROTTLED as KEYS
from tests.support.by_hand import throttles
from tests.support.processes import command_line, descendants, hang_ups_count, kill_run
from tests.support.run_module import Background, run_module


@pytest.fixture
def reassign(modules, name):
    """The module, for the test's own topic."""

    def call(check=False, **options):
        arguments = {"bootstrap_servers": modules.bootstrap_servers, "timeout": 20}
        if options.get("state") != "cancelled":
            arguments["topics"] = [name]
        return run_module("kafka_reassignment", {**arguments, **options}, check)

    return call


@pytest.fixture
def place(admin, name):
    """Make the test's topic with given replicas and bytes in each partition; returns its name."""

    def call(replicas, size=0, **config):
        config = {key.replace("_", "."): str(value) for key, value in config.items()}
        topic = NewTopic(name, len(replicas), replica_assignment=replicas, config=config)
        admin.create_topics([topic])[name].result(30)
        wait_until(lambda: len(now(admin, name)) == len(replicas), 20)
        return name

    return call


@pytest.fixture
def other(cluster):
    """A client of the other library, for what confluent-kafka has no call."""
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    yield client
    client.close()


@pytest.fixture
def nothing_left(admin, other, reassign):
    """After the test nothing moves and nothing is throttled, whatever became of it."""
    yield
    if other.list_partition_reassignments() or throttles(admin):
        reassign(state="cancelled")


def now(admin, name):
    """Partition to its replicas, as a foreign client sees it."""
    topic = admin.list_topics(timeout=10).topics.get(name)
    return {part.id: list(part.replicas) for part in topic.partitions.values()} if topic else {}


def in_sync(admin, name):
    """Whether all replicas of a topic are in sync."""
    parts = admin.list_topics(timeout=10).topics[name].partitions.values()
    return all(set(part.isrs) == set(part.replicas) for part in parts)


def write(cluster, name, partitions, size, value=100_000):
    """Write about `size` bytes into each partition; returns the number of records."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    records = size // value
    for number in range(partitions):
        for index in range(records):
            producer.produce(name, b"%d" % index + os.urandom(value - 10), partition=number)
            producer.poll(0)
        producer.flush(60)
    return partitions * records


def read(cluster, name, partitions):
    """How many records can be read."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "unused"})
    total = 0
    for number in range(partitions):
        low, high = consumer.get_watermark_offsets(Place(name, number), timeout=20)
        total += high - low
    consumer.close()
    return total


def moving(other, name):
    """Partitions of the topic that move."""
    return {key.partition for key in other.list_partition_reassignments() if key.topic == name}


# ------------------------------------------------------------------ plain life


def test_drain_then_again(reassign, place, admin, cluster):
    name = place([[1, 3], [2, 3], [3, 1], [1, 2]])
    records = write(cluster, name, 4, 400_000)
    plan = reassign(check=True, drain=[3])
    assert plan.changed and plan.copies == 3
    assert plan.bytes > 3 * 390_000
    assert not plan.values.get("warnings"), "these brokers tell how much room they have"
    assert now(admin, name)[0] == [1, 3]  # check mode
    done = reassign(drain=[3])
    assert not done.failed, done.msg
    assert done.plan == plan.plan and done.diff == plan.diff
    after = now(admin, name)
    assert all(3 not in replicas for replicas in after.values())
    assert after[3] == [1, 2]
    assert in_sync(admin, name)
    assert throttles(admin) == {}
    assert read(cluster, name, 4) == records
    assert reassign(drain=[3]).changed is False


def test_spread_evens_replicas_and_leaders(reassign, place, admin):
    name = place([[1, 2]] * 6)
    done = reassign(spread=True)
    assert not done.failed, done.msg
    after = now(admin, name)
    assert [sum(broker in each for each in after.values()) for broker in (1, 2, 3)] == [4, 4, 4]
    parts = admin.list_topics(timeout=10).topics[name].partitions.values()
    assert {part.id: part.leader for part in parts} == {
        number: replicas[0] for number, replicas in after.items()  # elected
    }
    assert sorted(replicas[0] for replicas in after.values()) == [1, 1, 2, 2, 3, 3]
    assert reassign(spread=True).changed is False


def test_more_and_fewer_replicas(reassign, place, admin):
    name = place([[1], [2], [3]], min_insync_replicas=1)
    up = reassign(replication_factor=3)
    assert not up.failed, up.msg
    assert {len(set(replicas)) for replicas in now(admin, name).values()} == {3}
    assert in_sync(admin, name)
    before = now(admin, name)
    refused = reassign(replication_factor=1)
    assert refused.checks == [("reassignment.fewer_replicas",)] and not refused.changed
    assert "3 partitions" in refused.msg and now(admin, name) == before
    down = reassign(replication_factor=1, allow=["fewer_replicas"])
    assert not down.failed, down.msg
    assert {len(replicas) for replicas in now(admin, name).values()} == {1}
    assert down.bytes == 0


def test_refusals_change_nothing(reassign, place, admin):
    name = place([[1, 2, 3]] * 2, min_insync_replicas=2)
    before = now(admin, name)
    nowhere = reassign(drain=[1])
    assert nowhere.failed and "reassignment.nowhere_to_go" in nowhere.msg
    below = reassign(replication_factor=2)
    assert below.failed and "reassignment.below_min_isr" in below.msg
    assert "reassignment.unknown_broker" in reassign(drain=[9]).msg
    assert "reassignment.nothing_asked" in reassign().msg
    assert now(admin, name) == before


# ------------------------------------------------------------------ throttle, cancel, resume


@pytest.fixture
def slow(place, cluster, nothing_left):
    """A topic of 2 partitions with 8 MB each on brokers 1 and 2: half a minute at 512 KiB a second."""
    name = place([[1, 2], [2, 1]])
    return name, write(cluster, name, 2, 8_000_000)


@pytest.fixture
def background(modules, slow):
    """The module draining broker 2 of the slow topic, killed at the end if it still runs."""
    name, _records = slow
    running = Background(
        "kafka_reassignment",
        {
            "bootstrap_servers": modules.bootstrap_servers,
            "topics": [name],
            "drain": [2],
            "throttle": "512KiB",
        },
    )
    yield running
    if running.process.poll() is None:
        running.kill()


def test_killed_half_way_and_gone_on_with(reassign, slow, background, admin, other, cluster):
    """The throttle is there while it moves, is left by the kill, and gone when a second run is done."""
    name, records = slow
    assert wait_until(lambda: moving(other, name), 30) == {0, 1}
    background.kill()
    # The zero in front is the mark of what is ours. A broker hears of it from ZooKeeper, soon.
    ours = {
        ("1", "leader.replication.throttled.rate"): f"0{512 * 1024}",
        ("3", "follower.replication.throttled.rate"): f"0{512 * 1024}",
        (name, "follower.replication.throttled.replicas"): "00:3,01:3",
    }
    assert wait_until(lambda: ours.items() <= throttles(admin).items(), 30), throttles(admin)
    assert moving(other, name) == {0, 1}

    plan = reassign(check=True, drain=[2])
    assert {kind for kind, _subject in plan.kinds} == {"finish"}
    done = reassign(drain=[2], throttle="unlimited")
    assert not done.failed, done.msg
    assert sorted(sorted(replicas) for replicas in now(admin, name).values()) == [[1, 3], [1, 3]]
    assert in_sync(admin, name)
    assert throttles(admin) == {}
    assert read(cluster, name, 2) == records


@pytest.mark.soak
def test_a_topic_that_is_deleted_meanwhile_needs_no_more_moves(slow, modules, admin, other):
    """One partition moves when somebody deletes the topic; the other one was to come behind it."""
    name, _records = slow
    arguments = {"topics": [name], "drain": [2], "throttle": "2MiB", "batch": 1}
    arguments["bootstrap_servers"] = modules.bootstrap_servers
    running = Background("kafka_reassignment", arguments)
    try:
        assert wait_until(lambda: moving(other, name), 30)
        admin.delete_topics([name], operation_timeout=1)
        result = running.end()
    finally:
        running.process.kill()
    assert not result.get("failed"), result["msg"]
    assert wait_until(lambda: not now(admin, name), 30)
    assert throttles(admin) == {}


def test_cancelled(reassign, slow, background, admin, other):
    name, _records = slow
    assert wait_until(lambda: moving(other, name), 30)
    background.kill()
    assert reassign(check=True, state="cancelled").changed
    assert moving(other, name)
    done = reassign(state="cancelled")
    assert not done.failed, done.msg
    assert not moving(other, name)
    # Kafka puts those that stay before those that come back.
    assert {number: set(each) for number, each in now(admin, name).items()} == {
        0: {1, 2},
        1: {1, 2},
    }
    assert throttles(admin) == {}
    assert reassign(state="cancelled").changed is False


PLAY = """
- hosts: localhost
  gather_facts: false
  connection: local
  tasks:
    - name: Move
      kafkaops.cluster.kafka_reassignment:
        bootstrap_servers: {servers}
        topics: [{name}]
        drain: [2]
        throttle: 512KiB
        batch: 1
"""


@pytest.fixture
def playing(slow, modules, tmp_path):
    """A playbook that drains broker 2 of the slow topic, one partition after the other; its process."""
    book = tmp_path / "drain.yml"
    book.write_text(PLAY.format(servers=modules.bootstrap_servers, name=slow[0]))
    program = Path(sys.executable).with_name("ansible-playbook")
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [
                program,
                "-i",
                "localhost,",
                "-e",
                f"ansible_python_interpreter={sys.executable}",
                book,
            ],
            cwd=Path(__file__).resolve().parents[3],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=hang_ups_count,
        )
    yield process
    if process.poll() is None:
        kill_run(process, "tree")


@pytest.mark.parametrize("sent", [signal.SIGHUP, signal.SIGKILL])
def test_a_module_that_outlives_its_playbook_begins_nothing_more(
    reassign, slow, playing, admin, other, sent
):
    """The terminal is closed, or memory is short: Ansible's worker has a session of its own and lives on."""
    name, _records = slow
    assert wait_until(lambda: moving(other, name), 60), playing.poll()
    begun = moving(other, name)
    assert len(begun) == 1
    left = descendants(playing.pid)
    assert any("ansible-playbook" not in command_line(pid) for pid in left), "one is the module"
    os.killpg(playing.pid, sent)
    playing.wait(60)
    # the module may have taken its move back by itself by now
    done = reassign(state="cancelled")
    assert not done.failed, done.values
    assert wait_until(lambda: not any(map(command_line, left)), 60), "it has ended by itself"
    assert not moving(other, name) and throttles(admin) == {}
    assert {number: set(each) for number, each in now(admin, name).items()} == {
        0: {1, 2},
        1: {1, 2},
    }


def test_what_is_cancelled_beside_a_module_is_not_begun_anew_by_it(
    reassign, slow, modules, admin, other
):
    """As by a run from another machine: the module sees it by what has become of its moves."""
    name, _records = slow
    arguments = {"topics": [name], "drain": [2], "throttle": "512KiB", "batch": 1}
    running = Background(
        "kafka_reassignment", {**arguments, "bootstrap_servers": modules.bootstrap_servers}
    )
    try:
        assert wait_until(lambda: moving(other, name), 60)
        done = reassign(state="cancelled")
        assert not done.failed and done.changed, done.values
        result = running.end()
    finally:
        running.process.kill()
    assert result["failed"] and not result["changed"], result
    assert "somebody else has cancelled what moved" in result["msg"]
    assert {item["code"] for item in result["failed_items"]} == {"changed", "stopped"}
    assert not moving(other, name) and throttles(admin) == {}
    assert all(set(each) == {1, 2} for each in now(admin, name).values())


@pytest.fixture
def writing(cluster, name):
    """Write into the two partitions of the test's topic all the time, so many bytes a second into each."""
    over, writers = threading.Event(), []

    def write_on(rate):
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
        while not over.wait(0.05):
            for number in (0, 1):
                producer.produce(name, os.urandom(rate // 20), partition=number)
            producer.poll(0)
        producer.flush(20)

    def call(rate):
        writers.append(threading.Thread(target=write_on, args=(rate,)))
        writers[-1].start()

    yield call
    over.set()
    for writer in writers:
        writer.join()


def test_a_throttle_below_what_is_written_is_told_beforehand(reassign, slow, writing):
    """Leaders send to a replica in sync, too, and all of it counts."""
    writing(200_000)
    low = reassign(check=True, drain=[2], throttle="256KiB")
    assert not low.failed and low.changed
    assert "a second of what moves would have to pass its throttle of 256.0 KiB" in str(
        low.warnings
    )
    enough = reassign(check=True, drain=[2])
    assert enough.kinds == low.kinds
    assert "kafka_reassignment_throttle" not in str(enough.values)


def test_too_late_says_how_to_go_on(reassign, slow, admin, other):
    name, _records = slow
    late = reassign(drain=[2], throttle="512KiB", operation_timeout=3)
    assert late.failed
    assert "still under way" in late.msg and "state: cancelled" in late.msg
    assert moving(other, name)
    assert {item["code"] for item in late.failed_items} == {"timeout"}


def test_a_reassignment_of_somebody_else_is_refused(reassign, slow, admin, other):
    """Towards broker 3 it is what is wanted, away from where it is wanted it is not."""
    name, _records = slow
    own = throttled(admin, name)
    other.alter_partition_reassignments({TopicPartition(name, 0): [2, 3]})
    assert wait_until(lambda: moving(other, name), 10)
    refused = reassign(drain=[3])
    assert refused.failed and "reassignment.running" in refused.msg
    assert f"{name}-0" in refused.msg
    assert throttles(admin).keys() == own.keys()


def throttled(admin, name):
    """Throttle the moves of a topic as somebody would by hand, so that they last."""
    rate = {f"{key}.rate": str(256 * 1024) for key in KEYS}
    lists = {f"{KEYS[0]}.replicas": "0:1,0:2", f"{KEYS[1]}.replicas": "0:3"}
    kinds = ConfigResource.Type
    asked = [(kinds.BROKER, broker, rate) for broker in "123"] + [(kinds.TOPIC, name, lists)]
    for kind, subject, keys in asked:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in keys.items()
        ]
        resource = ConfigResource(kind, subject, incremental_configs=entries)
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(20)
    # Brokers take a change of settings before they tell it.
    wanted = {(str(subject), key) for _kind, subject, keys in asked for key in keys}
    assert wait_until(lambda: wanted <= throttles(admin).keys(), 30)
    return throttles(admin)


def test_kraft(kraft, request):
    """The same calls on KRaft, as far as one broker goes: nothing to move, nothing left."""
    from tests.support.run_module import run_module

    asked = {"bootstrap_servers": kraft.bootstrap_servers, "timeout": 20}
    done = run_module("kafka_reassignment", {**asked, "spread": True})
    assert not done.failed and done.changed is False, done.values
    assert run_module("kafka_reassignment", {**asked, "state": "cancelled"}).changed is False
