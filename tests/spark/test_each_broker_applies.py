# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brokers whose own files differ: a topic without settings of its own has those of whoever leads."""

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from flow.prepare.cluster import Cluster

from tests.support import verdict_schema
from tests.support.bare_cluster import BareCluster

MIN_ISR, STAMPED = "min.insync.replicas", "message.timestamp.type"


@pytest.fixture(scope="module")
def uneven(tmp_path_factory, port_base):
    """Broker 3 was started with other values than 1 and 2, which says another one than the controller."""
    other = {MIN_ISR: 1, "log.message.timestamp.type": "LogAppendTime"}
    with BareCluster(
        directory=tmp_path_factory.mktemp("uneven"),
        port_base=port_base + 300,
        zookeepers=1,
        of_broker={3: other},
    ) as running:
        yield running


@pytest.fixture
def judged(spark, uneven, tmp_path):
    """A function: one mode of the job with options; (exit code, its document)."""
    import job
    from flow import steps

    def judged(mode, *options):
        where = [f"--bootstrap-servers={uneven.bootstrap_servers}", f"--output={tmp_path}"]
        ledger = [f"--ledger={tmp_path}/ledger"] if mode != "inspect" else []
        arguments = job.arguments([mode, *where, *ledger, *options])
        name = "inspection" if mode == "inspect" else "verdict"
        return getattr(steps, mode)(arguments), verdict_schema.read(tmp_path / f"{name}.json")

    return judged


def reasons(found, check):
    (of_it,) = [each for each in found["checks"] if each["id"] == check]
    return [each["reason"] for each in of_it["witnesses"]]


def test_every_broker_tells_what_it_applies_itself(uneven):
    asked, topic = Cluster({"bootstrap.servers": uneven.bootstrap_servers}, 30), "told"
    asked.create_topic(topic, [[1, 2, 3], [2, 3, 1], [3, 1, 2]], {})
    told = asked.settings_applied(topic, [1, 2, 3], (MIN_ISR, STAMPED), 10)
    same = {MIN_ISR: "2", STAMPED: "CreateTime"}
    assert told == {1: same, 2: same, 3: {MIN_ISR: "1", STAMPED: "LogAppendTime"}}
    # a setting of the topic's own wins everywhere, and who is not there tells nothing
    asked.set_config(topic, {MIN_ISR: "2"})
    told = asked.settings_applied(topic, [1, 3, 9], (MIN_ISR,), 3)
    assert told == {1: {MIN_ISR: "2"}, 3: {MIN_ISR: "2"}}


def test_a_lower_minimum_of_one_broker_alone_is_a_violation(judged):
    code, found = judged("run", "--records=900", "--min-isr=2", "--keep")
    why = "effective min.insync.replicas is 1 at broker 3, planned is 2"
    assert (code, reasons(found, "durability")) == (1, [f"before the first write: {why}"])
    assert found["topic"]["min_insync_replicas"] == 1
    applied = {
        each["broker"]: each["topic_settings"][MIN_ISR] for each in found["cluster"]["brokers"]
    }
    assert applied == {1: "2", 2: "2", 3: "1"}
    assert judged("verify", "--min-isr=1")[0] == 0
    code, found = judged("inspect", f"--topic={found['topic']['name']}", "--min-isr=2")
    assert (code, reasons(found, "durability")) == (1, [f"now: {why}"])


def test_timestamps_of_another_kind_at_one_broker_are_no_damage(uneven, judged):
    topic = "of-others"
    admin = AdminClient({"bootstrap.servers": uneven.bootstrap_servers})
    new = NewTopic(topic, 3, replica_assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    admin.create_topics([new])[topic].result(30)
    code, found = judged("run", f"--topic={topic}", "--records=900")
    told = "CreateTime at brokers 1, 2, LogAppendTime at broker 3"
    assert code == 2 and f"({told})" in found["summary"], found["summary"]
