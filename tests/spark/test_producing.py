# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The produce task on a real cluster: the log confirms, record by record, what the ledger says."""

import signal
import threading
import time

from flow import ledger
from flow.produce import produce
from flow.schema import ACKED, FAILED, UNKNOWN

from tests.spark.disturbing import make_whole

PARTITIONS = 3


def produced(cluster, directory, topic, records, client, config=None, delivery_timeout=60):
    """The ledger's rows of `records` to a new topic; `client`, `config`: what differs for the two."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    new = NewTopic(topic, PARTITIONS, replication_factor=3, config=config or {})
    admin.create_topics([new])[topic].result(30)
    task = {
        "client": {"bootstrap.servers": cluster.bootstrap_servers, **client},
        "topic": topic,
        "run_id": "ab" * 16,
        "partitions": PARTITIONS,
        "producers": 1,
        "records": records,
        "record_size": 100,
        "delivery_timeout": delivery_timeout,
        "directory": str(directory),
    }
    rows = produce(task, 0, 7).rows()
    assert sum(row.records for row in rows) == records
    return rows


def in_the_log(cluster, topic):
    """(partition, sequence) -> offset of all records of the topic; none may be there twice."""
    from confluent_kafka import Consumer, TopicPartition

    client = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "none"})
    ends = [client.get_watermark_offsets(TopicPartition(topic, n))[1] for n in range(PARTITIONS)]
    client.assign([TopicPartition(topic, n, 0) for n in range(PARTITIONS)])
    found, read, deadline = {}, 0, time.monotonic() + 60
    while read < sum(ends) and time.monotonic() < deadline:
        for message in client.consume(10_000, 1):
            assert not message.error()
            sequence = int.from_bytes(message.value()[32:40], "big")
            found[message.partition(), sequence] = message.offset()
            read += 1
    client.close()
    assert read == sum(ends) == len(found)
    return found


def contradicted(rows, found):
    """Records of which the log shows something else than the ledger."""
    wrong = []
    for row in rows:
        for number in range(row.records):
            offset = found.get((row.partition, row.first_sequence + number))
            acked, failed = row.outcome == ACKED, row.outcome == FAILED
            if (acked and offset != row.first_offset + number) or (failed and offset is not None):
                wrong.append((row, number, offset))
    return wrong


def test_refused_batches_between_accepted_ones(cluster, tmp_path):
    """The offsets go on over the holes in the sequences, so only the records tell which is which."""
    rows = produced(
        cluster,
        tmp_path,
        "refused",
        24_000,
        config={"max.message.bytes": "20000"},
        # batches of all lengths, some of them small enough
        client={"linger.ms": 0, "batch.num.messages": 200, "queue.buffering.max.messages": 1500},
    )
    ranges = {o: sum(row.outcome == o for row in rows) for o in (ACKED, FAILED, UNKNOWN)}
    assert min(ranges[ACKED], ranges[FAILED]) > 1 and not ranges[UNKNOWN]
    assert {row.error for row in rows if row.outcome == FAILED} == {"MSG_SIZE_TOO_LARGE"}
    assert not contradicted(rows, in_the_log(cluster, "refused"))


def test_answers_that_come_too_late_are_unknown(cluster, tmp_path):
    """Brokers stand still for longer than the client waits, and go on with what they received."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    brokers = cluster.broker_instances.values()

    def stand_still():
        client = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "none"})
        written, deadline = 0, time.monotonic() + 60
        while not written and time.monotonic() < deadline:
            try:
                written = client.get_watermark_offsets(TopicPartition("late", 0))[1]
            except KafkaException:  # not created yet
                time.sleep(0.05)
        for broker in brokers:
            broker.signal(signal.SIGSTOP)
        time.sleep(4)  # less than their ZooKeeper session
        for broker in brokers:
            broker.signal(signal.SIGCONT)
        client.close()

    disturbance = threading.Thread(target=stand_still)
    disturbance.start()
    try:
        rows = produced(
            cluster,
            tmp_path,
            "late",
            600_000,
            client={"queue.buffering.max.messages": 20_000},
            delivery_timeout=2,
        )
    finally:
        disturbance.join()
        make_whole(cluster)
    counts = ledger.counts(rows)
    assert counts[ACKED] and counts[UNKNOWN] and not counts[FAILED]
    assert not contradicted(rows, in_the_log(cluster, "late"))
