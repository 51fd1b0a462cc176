# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The produce task on a real cluster: the log confirms, record by record, what the ledger says."""

import signal
import threading
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from flow.record import files, ledger
from flow.record.schema import ACKED, FAILED, UNKNOWN
from flow.write.produce import produce

from tests.spark.disturbing import make_whole, started_records
from tests.support.outside import wait_until

PARTITIONS = 3
# of write.produce, but for what a test is about
TASK = {
    "run_id": "ab" * 16,
    "producers": 1,
    "record_size": 100,
    "transaction_records": 0,
    "transaction_timeout": 0,
}


def produced(cluster, directory, topic, records, client, config=None, delivery_timeout=60,
             expected=None, **more):  # fmt: skip
    """The ledger's rows of `records` to a new topic; `client`, `config`, `more` (of the task): what
    differs; `expected`: how many rows tell of, if not of all.
    """
    directory.mkdir(exist_ok=True)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    new = NewTopic(topic, PARTITIONS, replication_factor=3, config=config or {})
    admin.create_topics([new])[topic].result(30)
    task = {
        **TASK,
        "client": {"bootstrap.servers": cluster.bootstrap_servers, **client},
        "topic": topic,
        "partitions": PARTITIONS,
        "records": records,
        "delivery_timeout": delivery_timeout,
        "directory": str(directory),
        **more,
    }
    rows = produce(task, 0, 7).rows()
    assert sum(row.records for row in rows) == (expected or records)
    return rows


def ends_of(cluster, topic, partitions=PARTITIONS):
    """Records in the log, of all partitions."""
    client = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "none"})
    places = [TopicPartition(topic, number) for number in range(partitions)]
    ends = [client.get_watermark_offsets(place)[1] for place in places]
    client.close()
    return sum(ends)


def in_the_log(cluster, topic, partitions=PARTITIONS):
    """(partition, sequence) -> offsets of all records of the topic, rising."""
    ends = ends_of(cluster, topic, partitions)
    client = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "none"})
    client.assign([TopicPartition(topic, n, 0) for n in range(partitions)])
    found, read, deadline = {}, 0, time.monotonic() + 60
    while read < ends and time.monotonic() < deadline:
        for message in client.consume(10_000, 1):
            assert not message.error()
            sequence = int.from_bytes(message.value()[32:40], "big")
            found.setdefault((message.partition(), sequence), []).append(message.offset())
            read += 1
    client.close()
    assert read == ends
    return found


def contradicted(rows, found, renewed=False):
    """Records of which the log shows something else than the ledger; `renewed`: by a producer that
    began a new epoch, and may have sent some of them twice.
    """
    wrong = []
    for row in rows:
        for number in range(row.records):
            offsets = found.get((row.partition, row.first_sequence + number), [])
            if row.outcome == ACKED:
                # the last, if the client itself has sent it again
                right = offsets[-1:] == [row.first_offset + number]
                right = right and (len(offsets) == 1 or renewed)
            else:
                right = row.outcome != FAILED or not offsets
            if not right:
                wrong.append((row, number, offsets))
    return wrong


def test_refused_batches_between_accepted_ones(cluster, tmp_path):
    """The offsets go on over the holes in the sequences, so only the records tell which is which."""
    rows = produced(
        cluster,
        tmp_path,
        "refused",
        24_300,  # so that the last batch of each partition is a small one, however fast they are sent
        config={"max.message.bytes": "20000"},
        # batches of all lengths, some of them small enough
        client={
            "linger.ms": 0,
            "batch.num.messages": 200,
            "queue.buffering.max.messages": 1500,
            # else what is under way behind a refused batch is sent again
            "max.in.flight.requests.per.connection": 1,
        },
    )
    ranges = {o: sum(row.outcome == o for row in rows) for o in (ACKED, FAILED, UNKNOWN)}
    assert min(ranges[ACKED], ranges[FAILED]) > 1 and not ranges[UNKNOWN]
    assert {row.error for row in rows if row.outcome == FAILED} == {"MSG_SIZE_TOO_LARGE"}
    assert not contradicted(rows, in_the_log(cluster, "refused"))


def test_what_is_refused_while_others_are_sent_again_is_open(cluster, tmp_path):
    """Of a partition in which something was sent twice nobody says which; so none surely was refused only."""
    rows = produced(
        cluster,
        tmp_path,
        "refused-among-repeated",
        24_000,
        config={"max.message.bytes": "20000"},
        client={"linger.ms": 0, "batch.num.messages": 200, "queue.buffering.max.messages": 1500},
    )
    refused = [row for row in rows if row.error == "MSG_SIZE_TOO_LARGE"]
    assert refused and all(row.outcome in (FAILED, UNKNOWN) for row in refused)
    assert {row.outcome for row in rows if row not in refused} == {ACKED}
    assert not contradicted(rows, in_the_log(cluster, "refused-among-repeated"))


def test_what_was_written_and_refused_when_it_was_sent_again_is_unknown(cluster, tmp_path):
    """Followers stand still, so the leader does not answer for what it has written, and the client sends it
    again; meanwhile the topic takes no records of this size any more."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    leader = admin.describe_cluster().result(30).controller.id  # who can change a topic's settings
    others = [number for number in cluster.broker_instances if number != leader]
    topic = "written-and-refused"
    new = NewTopic(topic, 1, replica_assignment=[[leader, *others]])
    admin.create_topics([new])[topic].result(30)
    written = cluster.log_directory(leader) / f"{topic}-0" / f"{0:020}.log"
    wait_until(written.exists, 30, "the leader has its log")
    begun = []

    def make_smaller():
        wait_until(lambda: written.stat().st_size > 0, 30, "the leader has written")
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        resource.add_incremental_config(
            ConfigEntry("max.message.bytes", "60", incremental_operation=AlterConfigOpType.SET)
        )
        begun.append(admin.incremental_alter_configs([resource])[resource].result(5))

    for number in others:
        cluster.broker_instances[number].signal(signal.SIGSTOP)
    smaller = threading.Thread(target=make_smaller)
    smaller.start()
    try:
        rows = produce(
            {
                **TASK,
                "client": {
                    "bootstrap.servers": f"127.0.0.1:{cluster.broker_port(leader)}",
                    "request.timeout.ms": 1500,  # the leader's patience with its followers
                },
                "topic": topic,
                "partitions": 1,
                "records": 10,
                "delivery_timeout": 20,
                "directory": str(tmp_path),
            },
            0,
            7,
        ).rows()
    finally:
        smaller.join()
        for number in others:
            cluster.broker_instances[number].signal(signal.SIGCONT)
        make_whole(cluster)
    assert begun, "the topic was made smaller while the client waited"
    assert [(row.outcome, row.records, row.error) for row in rows] == [
        (UNKNOWN, 10, "MSG_SIZE_TOO_LARGE")
    ]
    wait_until(lambda: ends_of(cluster, topic, 1) == 10, 30, "the first try is there")


def test_answers_that_come_too_late_are_unknown(cluster, tmp_path):
    """Brokers stand still for longer than the client waits, and go on with what they received."""
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
            tmp_path / "_attempts",
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
    renewed = ledger.renewed(files.load_attempts(str(tmp_path)))
    assert renewed, "a client that gives up waiting begins a new epoch"
    assert not contradicted(rows, in_the_log(cluster, "late"), renewed)


def test_a_producer_that_is_fenced_ends_in_order(cluster, tmp_path):
    """Another one takes its transactional id; what it had under way is unknown, and no exception."""
    other = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "transactional.id": "kafkaops-flow-abababababababababab-0",
        }
    )

    def fence():
        deadline = time.monotonic() + 60
        while not started_records(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.05)
        other.init_transactions(30)

    disturbance = threading.Thread(target=fence)
    disturbance.start()
    try:
        rows = produced(
            cluster,
            tmp_path / "_attempts",
            "fenced",
            3_000_000,
            client={},
            transaction_records=256,
            transaction_timeout=60,
        )
    finally:
        disturbance.join()
    (attempt,) = files.load_attempts(str(tmp_path))
    assert attempt.complete and attempt.errors["_FENCED"] == 1
    counts = ledger.counts(rows)
    assert counts[ACKED] and counts[UNKNOWN] and not counts.get("aborted_by_errors")


def test_what_the_client_sends_again_is_known_to_be_its_own(cluster, tmp_path, monkeypatch):
    """Of a batch that is under way the older half is given up: the rest goes again, in a new epoch."""
    from flow.write import blocks

    brokers = cluster.broker_instances.values()
    rounds = blocks.rounds_of

    def with_a_break(planned, _turn):
        first, second = rounds(planned, 512)
        yield first
        time.sleep(4)  # so much younger is what follows, in the same batch
        yield second
        for broker in brokers:
            broker.signal(signal.SIGSTOP)

    def given_up():
        return any(attempt.errors for attempt in files.load_attempts(str(tmp_path)))

    def go_on():
        deadline = time.monotonic() + 30
        while not given_up() and time.monotonic() < deadline:
            time.sleep(0.05)
        for broker in brokers:
            broker.signal(signal.SIGCONT)

    monkeypatch.setattr(blocks, "rounds_of", with_a_break)
    rest = threading.Thread(target=go_on)
    rest.start()
    try:
        rows = produced(
            cluster,
            tmp_path / "_attempts",
            "again",
            3 * 1024,  # whole batches fit what the kernel takes for a broker that stands still
            client={"linger.ms": 5500},  # the batch goes when all is written
            delivery_timeout=6,
        )
    finally:
        rest.join()
        make_whole(cluster)
    (attempt,) = files.load_attempts(str(tmp_path))
    assert attempt.epochs > 1 and ledger.renewed([attempt]) == [(0, 7)]
    counts = ledger.counts(rows)
    assert counts[ACKED] and counts[UNKNOWN]
    assert ends_of(cluster, "again") > 3 * 1024, "nothing is there twice"
