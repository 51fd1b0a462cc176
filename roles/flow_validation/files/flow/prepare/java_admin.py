# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Kafka's own admin client, which Spark has loaded with the connector: for what librdkafka has no
request for.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Iterator, Optional

from flow.messages import stack_trace
from flow.messages.failure import CannotRun

_POLL_SECONDS = 0.1
_UNKNOWN = "UnknownTopicOrPartitionException"
_NOTHING_TO_CALL_OFF = (_UNKNOWN, "NoReassignmentInProgressException")


@contextmanager
def opened(spark, servers: str, client: dict) -> Iterator[tuple]:
    """(jvm, admin client) for the body of the `with`; `client`: settings for Java.

    What Java says in the body becomes CannotRun with its first line, and so does a JVM that is gone, or whose
    class loader does not show the client to Python (spark-submit without the connector's jars).
    """
    with _java(spark, servers, client) as (jvm, settings):
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        try:
            yield jvm, admin
        finally:
            admin.close(jvm.java.time.Duration.ofSeconds(0))


@contextmanager
def _java(spark, servers: str, client: dict) -> Iterator[tuple]:
    """(jvm, java.util.Properties for a client); what Java says in the body becomes CannotRun."""
    from py4j.protocol import Py4JError

    jvm = spark._jvm
    try:
        settings = jvm.java.util.Properties()
        for key, value in {"bootstrap.servers": servers, **client}.items():
            settings.setProperty(key, str(value))
        yield jvm, settings
    except TypeError as error:
        raise CannotRun("Kafka's Java client is out of reach") from error
    except Py4JError as error:
        cause = getattr(error, "java_exception", None)
        raise CannotRun(stack_trace.first_line(str(cause or error))) from error
    except OSError as error:
        # Nobody is there to connect to, of which Py4J makes nothing of its own. Its words are those of a broker that is
        # gone, for which the role would send to the brokers.
        raise CannotRun(f"Spark's Java is gone: {stack_trace.JAVA_GONE}") from error


@contextmanager
def consumer(spark, servers: str, client: dict) -> Iterator[tuple]:
    """(jvm, Kafka's own consumer of bytes) for the body of the `with`; otherwise as `opened`."""
    with _java(spark, servers, client) as (jvm, settings):
        bytes_ = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        for part in ("key", "value"):
            settings.setProperty(f"{part}.deserializer", bytes_)
        made = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
        try:
            yield jvm, made
        finally:
            made.close(jvm.java.time.Duration.ofSeconds(0))


def answer(jvm, future, timeout: float):
    """What a KafkaFuture yields within `timeout` seconds."""
    return future.get(int(timeout), jvm.java.util.concurrent.TimeUnit.SECONDS)


def reassigned(spark, servers: str, client: dict, topic: str, timeout: float) -> Optional[set]:
    """Partitions of the topic whose replicas are being reassigned now; None where nobody could say: Java
    is out of reach, there was no answer, or the principal may not Describe the cluster.
    """
    try:
        with opened(spark, servers, client) as (jvm, admin):
            there = answer(jvm, admin.listPartitionReassignments().reassignments(), timeout)
            return {each.partition() for each in there.keySet() if each.topic() == topic}
    except CannotRun:
        return None


class Reassigning:
    """Moves replicas; asks nothing before it is used. `client`: settings for Java."""

    def __init__(self, spark, servers: str, client: dict, timeout: float):
        self._spark, self._servers, self._client = spark, servers, client
        self._timeout = timeout

    def ready(self, topic: str) -> None:
        """CannotRun if Java or the cluster cannot be asked, or the principal may not move replicas.

        Asked by calling off what nobody has begun, of a topic that is not there: who may do that
        is told that there is nothing to call off.
        """
        with opened(self._spark, self._servers, self._client) as (jvm, admin):
            place = jvm.org.apache.kafka.common.TopicPartition(topic, 0)
            nothing = jvm.java.util.Collections.singletonMap(place, jvm.java.util.Optional.empty())
            future = admin.alterPartitionReassignments(nothing).values().get(place)
            try:
                answer(jvm, future, self._timeout)
            except Exception as error:
                said = str(getattr(error, "java_exception", error))
                if "AuthorizationException" in said:
                    raise CannotRun(
                        "the job's principal may not move replicas; allow it Alter on the cluster"
                    ) from error
                if not any(name in said for name in _NOTHING_TO_CALL_OFF):
                    raise

    def move(self, topic: str, replicas: dict) -> None:
        """Give partitions these replicas (partition -> brokers), and wait until they have them.
        A topic that the controller does not know has none to move.
        """
        with opened(self._spark, self._servers, self._client) as (jvm, admin):
            package = jvm.org.apache.kafka.clients.admin
            wanted, places = jvm.java.util.HashMap(), jvm.java.util.HashSet()
            for partition, brokers in replicas.items():
                place = jvm.org.apache.kafka.common.TopicPartition(topic, partition)
                chosen = jvm.java.util.ArrayList()
                for broker in brokers:
                    chosen.add(broker)
                there = jvm.java.util.Optional.of(package.NewPartitionReassignment(chosen))
                wanted.put(place, there)
                places.add(place)
            try:
                answer(jvm, admin.alterPartitionReassignments(wanted).all(), self._timeout)
            except Exception as error:
                if _UNKNOWN in str(getattr(error, "java_exception", error)):
                    return
                raise
            deadline = time.monotonic() + self._timeout
            while True:
                moving = admin.listPartitionReassignments(places).reassignments()
                if answer(jvm, moving, self._timeout).isEmpty():
                    return
                if time.monotonic() > deadline:
                    raise CannotRun(f"the replicas of {topic} are still being moved")
                time.sleep(_POLL_SECONDS)
