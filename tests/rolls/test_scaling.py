# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One broker or disk more and one less, and a broker with a new disk, while a client writes; nothing is lost."""

from __future__ import annotations

import collections
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess

import pytest
import yaml
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import ConfigResource, NewTopic
from kazoo.exceptions import NoNodeError

from tests.local.proof import labels, proven
from tests.local.support import LocalCluster
from tests.local.watching import zookeeper
from tests.support.load import Load
from tests.support.outside import create_topics, wait_until
from tests.support.processes import kill_run
from tests.support.traffic import Traffic
from tests.support.watching import cluster_is_whole

TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync
SLOW = ("-e", "kafka_reassignment_throttle=64KiB", "-e", "kafka_reassignment_batch=3")
LIVE = {"num.io.threads": "10"}  # a change that needs no restart
# Other values for the same: Kafka takes none that is more than twice the one before, or less than half of it.
OTHERS_LIVE = itertools.cycle([{"num.io.threads": str(number)} for number in range(11, 17)])
SECONDS = 60  # about as long as these playbooks take here


@pytest.fixture
def grown(cluster):
    """The shared cluster's inventory with kafka-4 in it, until the end of the test."""
    hosts = cluster.overlay / "hosts.yml"
    before = hosts.read_text()
    more = {"kafka": {"hosts": {"kafka-4": {"kafka_broker_id": 4}}}}
    hosts.write_text(yaml.safe_dump({"all": {"children": more}}))
    yield cluster
    hosts.write_text(before)
    cluster.brokers.pop("kafka-4", None)


def held(cluster):
    """Broker id to the number of its replicas; those that hold none are left out."""
    topics = cluster.admin().list_topics(timeout=60).topics.values()
    return collections.Counter(
        broker for topic in topics for part in topic.partitions.values() for broker in part.replicas
    )


def throttles(cluster):
    """Every throttle of replication that is set on a broker or a topic."""
    admin, found = cluster.admin(), {}
    known = admin.list_topics(timeout=60)
    asked = [ConfigResource(ConfigResource.Type.BROKER, str(broker)) for broker in known.brokers]
    asked += [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in known.topics]
    for resource in asked:
        (future,) = admin.describe_configs([resource]).values()
        for entry in future.result(30).values():
            if ".replication.throttled" in entry.name and entry.value and entry.source in (1, 2):
                found[(resource.name, entry.name)] = entry.value
    return found


def overrides(cluster, broker):
    """The settings of one broker that are in the cluster, and not in its file; as ZooKeeper has them."""
    with zookeeper(cluster) as client:
        try:
            return json.loads(client.get(f"/config/brokers/{broker}")[0])["config"]
        except NoNodeError:
            return {}


def registered(cluster):
    """The ids of the live brokers."""
    return set(cluster.admin().list_topics(timeout=60).brokers)


@pytest.mark.soak
def test_one_more_and_one_less_while_a_client_writes(grown):
    """The new broker gets its part, the old ones run on; then it gives it back, and leaves."""
    before = grown.processes()
    with Load(grown, TOPIC, "one broker more, and one less"):
        grown.brokers["kafka-4"] = 4
        run = grown.play("scale_out.yml")
        assert "replicas are copied" in run.text and "to broker 4" in run.text, run.text
        counts = held(grown)
        assert max(counts.values()) - min(counts.values()) <= 1 and counts[4] > 0, counts
        after = grown.processes()
        assert after.pop("kafka-4")
        assert after == before, "nothing that ran was restarted"
        assert throttles(grown) == {}
        assert 4 in {replica for found in grown.partitions(TOPIC).values() for replica in found[1]}
        assert grown.play("scale_out.yml").changed() == 0

        grown.set_brokers(LIVE)
        grown.deploy()
        assert overrides(grown, 4) == LIVE, "changed without a restart"
        run = grown.play("scale_in.yml", "-e", "broker=4")
        assert overrides(grown, 4) == {}, "a broker of this id on another host would have them"
        assert "Take kafka-4 out of the inventory" in run.text, run.text
        del grown.brokers["kafka-4"]
    assert registered(grown) == {1, 2, 3} == set(held(grown))
    assert grown.process("kafka-4") is None
    assert throttles(grown) == {}


def test_a_broker_is_kept_while_its_replicas_have_nowhere_to_go(cluster):
    """Three replicas need three brokers; and the inventory without kafka-4 is a good one."""
    before = {number: found[1] for number, found in cluster.partitions(TOPIC).items()}
    run = cluster.play("scale_in.yml", "-e", "broker=3", code=2)
    assert "reassignment.nowhere_to_go" in run.text and f"{TOPIC} (6)" in run.text, run.text
    assert "broker.unknown" in cluster.play("scale_in.yml", "-e", "broker=4", code=2).text
    assert "broker.missing" in cluster.play("scale_in.yml", code=2).text
    assert {number: found[1] for number, found in cluster.partitions(TOPIC).items()} == before
    assert cluster.process("kafka-3")


@pytest.mark.soak
def test_a_broker_whose_disk_was_deleted_is_replaced(cluster):
    """Refused by every other playbook, and while it has the last copy; then it copies everything anew."""
    alone = NewTopic("alone", 2, replica_assignment=[[3], [1]])
    admin = cluster.admin()
    admin.create_topics([alone])["alone"].result(30)
    wait_until(lambda: len(cluster.partitions("alone")) == 2, 30, "the topic with one replica")
    others = {name: cluster.process(name) for name in cluster.names if name != "kafka-3"}
    cluster.set_brokers(LIVE)
    cluster.deploy()
    assert overrides(cluster, 3) == LIVE, "changed without a restart"
    with Load(cluster, TOPIC, "a broker with a new disk"):
        cluster.supervisorctl("stop", "kafka-3")
        wait_until(lambda: registered(cluster) == {1, 2}, 60, "broker 3 is not registered")
        shutil.rmtree(cluster.instance("kafka-3") / "data")
        # the note of it goes with the host
        (cluster.instance("kafka-3") / "conf" / "overrides.json").unlink()
        refused = cluster.play("site.yml", "-e", "flow_validation=never", code=2).text
        assert "directories.emptied" in refused and "replace_broker.yml" in refused, refused
        refused = cluster.play("replace_broker.yml", "-e", "broker=3", code=2).text
        assert "broker.last_copy" in refused and "alone-0" in refused, refused
        assert "alone-1" not in refused and cluster.process("kafka-3") is None

        accepted = '{"kafkaops_preflight_accept": ["directories.emptied"]}'
        cluster.play("replace_broker.yml", "-e", "broker=3", "-e", accepted)
        wait_until(lambda: cluster_is_whole(cluster), 60, "every replica is in sync")
    assert registered(cluster) == {1, 2, 3}
    assert overrides(cluster, 3) == {}, "its file has them"
    assert {name: cluster.process(name) for name in others} == others, "others were left alone"
    leaders = {leader for leader, _replicas, _isr in cluster.partitions(TOPIC).values()}
    assert leaders == {1, 2, 3}, "leadership was given back"
    admin = cluster.admin()  # the first one may still ask the controller that was
    admin.delete_topics(["alone"])["alone"].result(30)


@pytest.mark.soak
def test_the_last_copy_is_kept_where_the_isr_is_empty(next_offset):
    """Without ZooKeeper the last one of an ISR leaves it, too, and whoever is eligible and back first leads."""
    with LocalCluster(next_offset(), inventory="inventories/local-kraft-3x3") as cluster:
        cluster.configure("all", kafka_version="4.3.1")
        cluster.deploy()
        alone = NewTopic("alone", 2, replica_assignment=[[3], [1]])
        minimum = {"min.insync.replicas": "2"}
        both = NewTopic("both", 1, replica_assignment=[[2, 3]], config=minimum)
        create_topics(cluster.client(), [alone, both])
        producer = Producer({**cluster.client(), "acks": "all"})
        producer.produce("both", b"acknowledged")
        assert producer.flush(60) == 0
        for broker, left in ((2, {1, 3}), (3, {1})):
            cluster.supervisorctl("stop", f"kafka-{broker}")
            wait_until(
                lambda left=left: registered(cluster) == left, 60, f"broker {broker} is gone"
            )
        assert cluster.partitions("alone")[0][2] == [] == cluster.partitions("both")[0][2]
        shutil.rmtree(cluster.instance("kafka-3") / "data")
        replace = ("replace_broker.yml", "-e", "broker=3")
        told = cluster.play(*replace, code=2).text
        # whoever waits for the cluster before names both as offline
        refused = told.partition("[broker.last_copy] ")[2].partition("Remedy: ")[0]
        assert "alone-0" in refused and "both-0" in refused, told
        assert "alone-1" not in refused and cluster.process("kafka-3") is None

        cluster.supervisorctl("start", "kafka-2")
        wait_until(lambda: cluster.partitions("both")[0][0] == 2, 60, "broker 2 leads again")
        accepted = '{"kafkaops_preflight_accept": ["directories.emptied"]}'
        cluster.play(*replace, "-e", accepted)
        assert set(cluster.partitions("both")[0][2]) == {2, 3}
        assert b"acknowledged" in cluster.log("both", 0)


@pytest.mark.soak
@pytest.mark.parametrize("when", ["once it has started", "whenever", "whenever again"])
def test_a_replacement_that_was_killed_is_completed_by_the_next(cluster, moments, when):
    """As if it had been one run: in sync and leading again, with nothing left of the host before."""
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    others = {name: cluster.process(name) for name in cluster.names if name != "kafka-3"}
    live = next(OTHERS_LIVE)
    cluster.set_brokers(live)
    cluster.deploy()
    assert overrides(cluster, 3) == live, "changed without a restart"
    with Traffic(cluster, TOPIC) as traffic:
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        cluster.supervisorctl("stop", "kafka-3")
        wait_until(lambda: registered(cluster) == {1, 2}, 60, "broker 3 is not registered")
        shutil.rmtree(cluster.instance("kafka-3") / "data")
        (cluster.instance("kafka-3") / "conf" / "overrides.json").unlink()
        how, moment = moments.choice(("group", "tree")), moments.uniform(1, SECONDS / 2)
        with cluster.playing("replace_broker.yml", "-e", "broker=3") as (process, log):
            if when == "once it has started":
                moment = 0
                wait_until(
                    lambda: cluster.process("kafka-3") or process.poll() is not None, 300, "started"
                )
            over = ends_within(process, moment)
            assert not over or process.returncode == 0, log.read_text()
            if not over:
                kill_run(process, how)
        print(f"{how} killed after {moment:.1f} s, over: {over}", flush=True)
        run = cluster.play("replace_broker.yml", "-e", "broker=3")
        assert cluster_is_whole(cluster), run.text
    assert not traffic.failed and traffic.lost() == [], run.text
    assert overrides(cluster, 3) == {}, "its file has them"
    assert {name: cluster.process(name) for name in others} == others, "others were left alone"
    leaders = {leader for leader, _replicas, _isr in cluster.partitions(TOPIC).values()}
    assert leaders == {1, 2, 3}, "leadership was given back"
    assert not list((cluster.home / "locks").glob("*.json")), "the lock is given back"
    assert cluster.play("replace_broker.yml", "-e", "broker=3").changed() == 0


@pytest.mark.soak
def test_one_more_and_one_less_with_a_proof_meanwhile(grown):
    """The proof's own topic is spread over the new broker, and leaves it again; what is done is drawn."""
    grown.brokers["kafka-4"] = 4
    _run, verdict = proven(grown, "scale_out.yml")
    assert labels(verdict) == ["kafka-4 started", "replicas moved"]
    assert [each["broker"] for each in verdict["brokers"]] == [1, 2, 3]
    assert 4 in homes(verdict), "its topic has a part in the new broker"
    _run, verdict = proven(grown, "scale_in.yml", "-e", "broker=4")
    assert labels(verdict) == ["replicas moved", "kafka-4 stopped"]
    assert [each["broker"] for each in verdict["brokers"]] == [1, 2, 3, 4]
    assert homes(verdict) == {1, 2, 3}
    del grown.brokers["kafka-4"]
    assert registered(grown) == {1, 2, 3} == set(held(grown))


@pytest.mark.soak
def test_a_broker_is_replaced_with_a_proof_meanwhile(cluster):
    """It begins while the broker is down, and the broker copies the proof's records like all others."""
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    cluster.supervisorctl("stop", "kafka-3")
    wait_until(lambda: registered(cluster) == {1, 2}, 60, "broker 3 is not registered")
    shutil.rmtree(cluster.instance("kafka-3") / "data")
    _run, verdict = proven(cluster, "replace_broker.yml", "-e", "broker=3")
    assert labels(verdict) == ["kafka-3 started"]
    assert homes(verdict) == {1, 2, 3}
    assert {len(each["isr"]) for each in verdict["partitions"]} == {3}
    assert 3 in {
        each["leader"] for each in verdict["partitions"]
    }, "it is read back from there, too"
    assert cluster_is_whole(cluster)


@pytest.mark.soak
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
def test_a_broker_comes_and_goes_without_zookeeper(next_offset, version):
    """It fills its two disks evenly, gives all of it back, and the controllers forget it."""
    with LocalCluster(next_offset(), inventory="inventories/local-kraft-3x3") as cluster:
        cluster.configure("all", kafka_version=version)
        cluster.version = version
        cluster.deploy()
        before = cluster.processes()
        more = {"kafka": {"hosts": {"kafka-4": {"kafka_broker_id": 4}}}}
        (cluster.overlay / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": more}}))
        disks = [cluster.instance("kafka-4") / name for name in ("data", "data-2")]
        cluster.configure("kafka-4", kafka_log_dirs=list(map(str, disks)))
        with Load(cluster, TOPIC, "one more, one less in KRaft mode"):
            cluster.brokers["kafka-4"] = 4
            cluster.play("scale_out.yml")
            assert held(cluster)[4] > 0 and set(map(bool, map(partitions_in, disks))) == {True}
            drained = ("-e", "broker=4", "-e", f"drain={disks[1]}")
            cluster.play("spread_disks.yml", *drained)
            assert partitions_in(disks[1]) == 0
            cluster.play("spread_disks.yml", "-e", "broker=4")
            assert partitions_in(disks[1]) > 0
            refused = cluster.play("scale_in.yml", "-e", "broker=101", code=2).text
            assert "[broker.votes]" in refused and "scale_controllers.yml" in refused, refused
            run = cluster.play("scale_in.yml", "-e", "broker=4")
            told = " ".join(run.text.split())
            assert "Take kafka-4 out of the inventory" in told and "registered still" not in told
            assert cluster.process("kafka-4") is None
            del cluster.brokers["kafka-4"]
        assert registered(cluster) == {1, 2, 3} == set(held(cluster))
        tool = cluster.release() / "bin" / "kafka-cluster.sh"
        asked = ["unregister", "--bootstrap-server", cluster.bootstrap_servers, "--id", "4"]
        done = subprocess.run([tool, *asked], capture_output=True, text=True, check=False)
        told = done.stdout + done.stderr
        assert "not registered" in told.lower() or "BrokerIdNotRegistered" in told, told
        now = cluster.processes()
        assert {name: now[name] for name in before} == before, "nobody else was restarted"


def homes(verdict):
    """The brokers that hold replicas of the proof's topic at its end."""
    return {broker for each in verdict["partitions"] for broker in each["replicas"]}


@pytest.mark.soak
def test_killed_while_it_spreads_and_run_again(grown):
    """Wherever it is killed, a second run ends with even counts, no throttle, and nothing lost."""
    chance = random.Random(seed := random.randrange(10**6))
    print(f"\nseed {seed}")
    grown.brokers["kafka-4"] = 4
    with Traffic(grown, TOPIC) as traffic:
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        with grown.playing("scale_out.yml", *SLOW) as (process, _log):
            wait_until(
                lambda: throttles(grown) or process.poll() is not None, 300, "the moves have begun"
            )
            if not ends_within(process, chance.uniform(0, 5)):
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(30)
        grown.play("scale_out.yml")
        counts = held(grown)
        assert max(counts.values()) - min(counts.values()) <= 1 and counts[4] > 0, counts
        assert throttles(grown) == {}
        grown.play("scale_in.yml", "-e", "broker=4")
    assert registered(grown) == {1, 2, 3} == set(held(grown))
    assert not traffic.failed and traffic.lost() == []


@pytest.fixture
def heavy(grown):
    """A topic that takes a minute to copy at SLOW: throttles let some ten seconds' bytes pass at once."""
    admin, name = grown.admin(), "heavy"

    def made():
        """Whether it was; the one of the test before is on its way out for a moment, on a busy machine."""
        try:
            admin.create_topics([NewTopic(name, 6, 3)])[name].result(30)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return False
        return True

    wait_until(made, 60, "the heavy topic of the test before is gone")
    wait_until(lambda: len(grown.partitions(name)) == 6, 30, "the heavy topic")
    producer = Producer(grown.client(acks="all"))
    for number in range(6 * 40):
        producer.produce(name, os.urandom(100_000), partition=number % 6)
    assert producer.flush(60) == 0
    yield name
    admin = grown.admin()  # the first one may still ask the controller that was
    admin.delete_topics([name])[name].result(30)


@pytest.mark.soak
@pytest.mark.parametrize("when", ["while it moves", "whenever", "whenever again"])
def test_killed_at_any_moment_and_run_again(grown, heavy, moments, when):
    """Out and in, each killed at a moment nobody chose; the second run ends it, and nobody has noticed.

    The moves are a small part of a run, so one kill of three waits for them.
    """
    grown.brokers["kafka-4"] = 4
    for playbook, arguments in (("scale_out.yml", ()), ("scale_in.yml", ("-e", "broker=4"))):
        how, moment = moments.choice(("group", "tree")), moments.uniform(1, SECONDS)
        if when == "while it moves":
            moment = moments.uniform(0, 3)
        with Traffic(grown, TOPIC) as traffic:
            wait_until(lambda sent=traffic: sent.acknowledged, 60, "the first acknowledgement")
            with grown.playing(playbook, *arguments, *SLOW) as (process, log):
                if when == "while it moves":
                    wait_until(
                        lambda run=process: throttles(grown) or run.poll() is not None,
                        300,
                        "the moves have begun",
                    )
                if over := ends_within(process, moment):
                    assert process.returncode == 0, log.read_text()
                else:
                    kill_run(process, how)
                left = throttles(grown)
            print(
                f"{playbook}: {how} killed after {moment:.1f} s, over: {over}, throttles: {len(left)}",
                flush=True,
            )
            if when == "while it moves":
                assert left and not over
            run = grown.play(playbook, *arguments)
            assert throttles(grown) == {}
            assert not list((grown.home / "locks").glob("*.json")), "the lock is given back"
            # Before consumers come, and with them the topic of their offsets.
            if playbook == "scale_out.yml":
                counts = held(grown)
                assert max(counts.values()) - min(counts.values()) <= 1 and counts[4] > 0, counts
                assert registered(grown) == {1, 2, 3, 4}
                assert 4 in {
                    home for found in grown.partitions(heavy).values() for home in found[1]
                }
                assert grown.play(playbook).changed() == 0
        assert not traffic.failed and traffic.lost() == [], run.text
    assert registered(grown) == {1, 2, 3} == set(held(grown))
    assert grown.process("kafka-4") is None
    del grown.brokers["kafka-4"]
    wait_until(lambda: cluster_is_whole(grown), 120, "every replica is in sync")


@pytest.mark.soak
def test_moves_under_way_are_taken_back(grown, heavy):
    """A run that moves is ended, and its moves with it: replicas are where they were, no throttle stays."""
    before = {number: found[1] for number, found in grown.partitions(heavy).items()}
    grown.brokers["kafka-4"] = 4
    with Traffic(grown, TOPIC) as traffic:
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        with grown.playing("scale_out.yml", *SLOW) as (process, log):
            wait_until(
                lambda: throttles(grown) or process.poll() is not None, 300, "the moves have begun"
            )
            assert process.poll() is None, log.read_text()
            refused = grown.play("scale_out.yml", "-e", "cancel=true", code=2).text
            assert "run.locked" in refused and throttles(grown), refused
            told = " ".join(grown.play("status.yml").text.split())
            assert re.search(r"\d+ partitions? being reassigned: [^ ]+-\d+", told), told
            assert "scale_out.yml -e cancel=true turns it back, whoever began it" in told, told
            kill_run(process, "group")
        assert throttles(grown), "a killed run leaves them"
        run = grown.play("scale_out.yml", "-e", "cancel=true")
        assert "cancelled" in run.text and run.changed() == 1, run.text
        assert throttles(grown) == {}
        assert "being reassigned" not in grown.play("status.yml").text
        assert grown.play("scale_out.yml", "-e", "cancel=true").changed() == 0
        # What one batch had finished before it was killed has moved.
        stayed = [
            number
            for number, found in grown.partitions(heavy).items()
            if set(found[1]) == set(before[number])
        ]
        assert len(stayed) >= 3, grown.partitions(heavy)
        grown.play("scale_in.yml", "-e", "broker=4")
    assert not traffic.failed and traffic.lost() == []
    assert registered(grown) == {1, 2, 3} == set(held(grown))
    del grown.brokers["kafka-4"]


@pytest.mark.soak
def test_a_topic_that_comes_while_an_empty_broker_stops_keeps_it(grown):
    """It is placed there between the last look and the end of the process, as anybody's client may do."""
    grown.brokers["kafka-4"] = 4
    grown.play("scale_out.yml")
    console = grown.instance("kafka-4") / "logs" / "server.log"
    written = console.stat().st_size
    admin, name = grown.admin(), "late"
    made = NewTopic(name, 1, replica_assignment=[[4, 1]])

    def stopping():
        with open(console, encoding="utf-8", errors="replace") as stream:
            stream.seek(written)
            return "shutting down" in stream.read()

    with grown.playing("scale_in.yml", "-e", "broker=4") as (process, log):
        wait_until(lambda: stopping() or process.poll() is not None, 300, "broker 4 stops")
        admin.create_topics([made])[name].result(30)
        assert process.wait(300) == 2, log.read_text()
        said = log.read_text()
    assert "[broker.not_empty]" in said and "Start it again, as it was" in said, said
    assert name in grown.admin().list_topics(timeout=30).topics
    wait_until(lambda: registered(grown) == {1, 2, 3, 4}, 60, "broker 4 runs again")
    wait_until(lambda: cluster_is_whole(grown), 120, "every replica is in sync")
    grown.play("scale_in.yml", "-e", "broker=4")
    del grown.brokers["kafka-4"]
    assert registered(grown) == {1, 2, 3} == set(held(grown))
    admin = grown.admin()
    admin.delete_topics([name])[name].result(30)


def partitions_in(directory):
    """How many replicas a log directory has; what is being copied or deleted is not one."""
    return sum(bool(re.fullmatch(r".+-\d+", path.name)) for path in directory.iterdir())


@pytest.mark.soak
def test_a_disk_more_and_one_less_while_a_client_writes(cluster):
    """Kafka leaves a new disk empty; then it gets its part, and gives it back before it is taken out."""
    first, second = (cluster.instance("kafka-1") / name for name in ("data", "data-2"))
    refused = cluster.play("spread_disks.yml", "-e", "broker=1", code=2).text
    assert "reassignment.one_directory" in refused and "broker 1" in refused, refused
    emptied = ("spread_disks.yml", "-e", f"drain={second}")
    assert "broker.missing" in cluster.play(*emptied, code=2).text
    cluster.configure("kafka-1", kafka_log_dirs=[str(first), str(second)])
    try:
        cluster.deploy()
        assert partitions_in(first) and not partitions_in(second)
        before = cluster.processes()
        with Load(cluster, TOPIC, "a disk more, and one less"):
            # The groups of the load have made the topic of their offsets: new partitions go to the new disk.
            few = partitions_in(second)
            planned = cluster.play("spread_disks.yml", "--check").text
            assert (
                f"{second} " in " ".join(planned.split()) and partitions_in(second) == few
            ), planned
            run = cluster.play("spread_disks.yml")
            assert "copied between directories" in " ".join(run.text.split()), run.text
            assert partitions_in(second) > few, run.text
            run = cluster.play(*emptied, "-e", "broker=1")
            assert "Take it out of kafka_log_dirs" in " ".join(run.text.split()), run.text
            assert not partitions_in(second)
        assert cluster.play(*emptied, "-e", "broker=1").changed() == 0
        assert cluster.processes() == before, "nobody was restarted"
    finally:
        (cluster.overlay / "host_vars" / "kafka-1.yml").unlink()
    cluster.deploy()
    wait_until(lambda: cluster_is_whole(cluster), 60, "every replica is in sync")


def ends_within(process, seconds):
    """Whether the process ends within these seconds."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
