# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A topic that its owner deletes while the job has to do with it, on brokers that make topics anew which
somebody asks for: nothing of the job may.
"""

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from flow.judge import reading
from flow.messages.failure import CannotRun
from flow.prepare import java_admin
from flow.steps import options as steps_options
from flow.write import client_settings

SILENT_SECONDS = 6  # in which clients ask several times for what they write to or read
AGAIN = {"topic.metadata.refresh.interval.ms": 500}


@pytest.fixture(name="servers", scope="module")
def servers_fixture(tmp_path_factory, port_base):
    from tests.support.bare_cluster import BareCluster

    with BareCluster(
        directory=tmp_path_factory.mktemp("makes_topics"),
        port_base=port_base + 250,
        brokers=1,
        zookeepers=1,
        broker_config={"auto.create.topics.enable": "true"},
    ) as running:
        yield running.bootstrap_servers


class Topic:
    """A topic of somebody else's, with a thousand records."""

    def __init__(self, servers: str, name: str):
        self.name = name
        # the owner's own look must not make it, either
        self._admin = AdminClient({"bootstrap.servers": servers, "allow.auto.create.topics": False})
        self.create()
        writing = Producer({"bootstrap.servers": servers, "allow.auto.create.topics": False})
        for number in range(1000):
            writing.produce(name, str(number).encode(), partition=number % 2)
        assert writing.flush(30) == 0

    def create(self) -> None:
        self._admin.create_topics([NewTopic(self.name, 2, 1)])[self.name].result(30)
        time.sleep(1)

    def delete(self) -> None:
        self._admin.delete_topics([self.name])[self.name].result(30)
        time.sleep(1)

    def is_there(self) -> bool:
        return self.name in self._admin.list_topics(timeout=30).topics


@pytest.fixture(name="topic")
def topic_fixture(servers, request):
    return Topic(servers, request.node.name.replace("[", "-").rstrip("]"))


def test_no_client_of_the_job_is_told_to_make_topics():
    for_python, for_java = steps_options.clients_settings("h:1", None)
    assert for_python["allow.auto.create.topics"] is False
    assert for_java["allow.auto.create.topics"] == "false"
    assert "allow.auto.create.topics" in client_settings.OWN_SETTINGS


@pytest.mark.parametrize("told", [True, False])
def test_a_producer_leaves_a_deleted_topic_deleted(servers, topic, told):
    """Unless it is not told. Consumers of librdkafka make none by default."""
    settings, _for_java = steps_options.clients_settings(servers, None)
    if not told:
        del settings["allow.auto.create.topics"]
    wanted = {"client": {**settings, **AGAIN}, "record_size": 100, "delivery_timeout": 30}
    client = Producer(client_settings.client_settings({**wanted, "transaction_records": 0}, 0))
    client.produce(topic.name, b"first", partition=0)
    assert client.flush(30) == 0
    topic.delete()
    until = time.monotonic() + SILENT_SECONDS
    while time.monotonic() < until:
        try:
            client.produce(topic.name, b"more", partition=0)
        except Exception as error:
            assert "unknown" in str(error).lower()
        client.poll(0.2)
    assert topic.is_there() != told


@pytest.mark.parametrize("told", [True, False])
def test_javas_reader_leaves_a_deleted_topic_deleted(spark, servers, topic, told):
    """Unless it is not told."""
    _settings, for_java = steps_options.clients_settings(servers, None)
    mine = {"metadata.max.age.ms": "500", "auto.offset.reset": "earliest"}
    with java_admin.consumer(spark, servers, {**(for_java if told else {}), **mine}) as (
        jvm,
        client,
    ):
        place = jvm.org.apache.kafka.common.TopicPartition(topic.name, 0)
        client.assign(jvm.java.util.Collections.singletonList(place))
        client.poll(jvm.java.time.Duration.ofSeconds(2))
        topic.delete()
        until = time.monotonic() + SILENT_SECONDS
        while time.monotonic() < until:
            client.poll(jvm.java.time.Duration.ofMillis(200))
    assert topic.is_there() != told


@pytest.mark.parametrize("when", ["before", "after"])
def test_inspecting_leaves_a_deleted_topic_deleted(
    spark, servers, topic, tmp_path, monkeypatch, when
):
    """Spark's consumers live on for a while behind the read that they were made for."""
    _delete_at(monkeypatch, topic.delete, when)
    with pytest.raises(CannotRun, match=f"topic {topic.name} was deleted while it was read$"):
        _inspect(servers, topic, tmp_path, "--id=offset", "--timeout=15")
    time.sleep(SILENT_SECONDS)
    assert not topic.is_there()


def test_a_topic_that_is_made_again_meanwhile_is_another_one(
    spark, servers, topic, tmp_path, monkeypatch
):
    """Its end is below what was read, which is not the cluster's fault."""

    def renew():
        topic.delete()
        topic.create()

    _delete_at(monkeypatch, renew, "after")
    with pytest.raises(CannotRun, match="was deleted while it was read, and is another one since"):
        _inspect(servers, topic, tmp_path)


def _delete_at(monkeypatch, delete, when: str) -> None:
    """Call `delete` before or after the topic is read."""
    read = reading.collect

    def collect(*given, **more):
        if when == "before":
            delete()
        found = read(*given, **more)
        if when == "after":
            delete()
        return found

    monkeypatch.setattr(reading, "collect", collect)


def _inspect(servers: str, topic: Topic, directory: Path, *more: str) -> None:
    import job
    from flow import steps

    where = [f"--bootstrap-servers={servers}", f"--topic={topic.name}", f"--output={directory}"]
    steps.inspect(job.arguments(["inspect", *where, *more]))
