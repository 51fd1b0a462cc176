# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topics that somebody else wrote: orders as JSON, with an id, and a version that rises by key."""

import json
import uuid
import zlib

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from flow.messages.failure import CannotRun
from flow.prepare import room

from tests.support import verdict_schema
from tests.support.outside import wait_until

KEYS, VERSIONS = 12, 50
ID = "--id=get_json_object(string(value), '$.id')"
SEQUENCE = "--sequence=try_cast(get_json_object(string(value), '$.version') as bigint)"
INTACT = "--intact=crc32(substring(value, 5)) = conv(hex(substring(value, 1, 4)), 16, 10)"


class Topic:
    """A topic, and a client that writes to it."""

    def __init__(self, cluster, partitions=3, config=None, **settings):
        self.cluster, self.name = cluster, f"orders-{uuid.uuid4().hex[:8]}"
        self.servers = {"bootstrap.servers": cluster.bootstrap_servers}
        new = NewTopic(self.name, partitions, 3, config=config or {})
        admin = AdminClient(self.servers)
        # those that have just started hear of each other one after another
        wait_until(lambda: len(admin.list_topics(timeout=30).brokers) == 3, 30, "three brokers")
        admin.create_topics([new])[self.name].result(30)
        self.producer = Producer({**self.servers, "linger.ms": 20, **settings})

    def write(self, key, version, identity=None, partition=None, body=None, headers=None):
        """One order; its key decides the partition if none is given."""
        identity = identity or f"{key}-{version}"
        value = json.dumps({"id": identity, "version": version}).encode()
        self.producer.produce(
            self.name,
            value if body is None else body,
            key=f"order-{key}".encode(),
            partition=key % 3 if partition is None else partition,
            headers=headers or {},
        )

    def write_all(self, leave_out=()):
        for version in range(VERSIONS):
            for key in range(KEYS):
                if (key, version) not in leave_out:
                    self.write(key, version)

    def inspect(self, directory, *options):
        """(exit code, inspection.json, text of the page)."""
        import job
        from flow import steps

        self.producer.flush(30)
        where = [f"--bootstrap-servers={self.cluster.bootstrap_servers}", f"--topic={self.name}"]
        output = f"--output={directory}"
        code = steps.inspect(job.arguments(["inspect", *where, output, *options]))
        page = (directory / "inspection.html").read_text(encoding="utf-8")
        return code, verdict_schema.read(directory / "inspection.json"), page


def failed(found):
    return {check["id"]: check["count"] for check in found["checks"] if check["status"] == "fail"}


def witnesses(found, name):
    (check,) = [check for check in found["checks"] if check["id"] == name]
    return check["witnesses"]


@pytest.fixture
def topic(spark, cluster):
    return Topic(cluster)


def test_a_healthy_topic_passes_everything_that_was_asked(topic, tmp_path):
    topic.write_all()
    code, found, page = topic.inspect(
        tmp_path, ID, SEQUENCE, "--contiguous", "--replication-factor=3"
    )
    assert (code, found["verdict"], failed(found)) == (0, "pass", {})
    total = KEYS * VERSIONS
    assert found["counts"] == {"read": total, "chosen": total, "unjudged": 0}
    assert [check["id"] for check in found["checks"]] == [
        "gap", "duplicate", "order", "loss", "durability", "emptiness",
    ]  # fmt: skip
    assert found["not_judged"] == [{"id": "corrupt", "reason": "no --intact"}]
    assert found["summary"] == "600 records: no offset empty, no id twice, in order, none left out"
    assert topic.name in page and "PASS" in page and "no --intact" in page


def test_schema_lists_the_checks_there_are():
    from flow import inspection

    schema = verdict_schema.of("inspection")["properties"]
    assert schema["checks"]["items"]["properties"]["id"]["enum"] == list(inspection.MEANING)
    assert schema["schema_version"]["const"] == inspection.SCHEMA_VERSION


def test_without_expressions_only_offsets_are_judged(topic, tmp_path):
    topic.write_all()
    code, found, _page = topic.inspect(tmp_path)
    assert (code, found["summary"]) == (0, "600 records: no offset empty")
    assert {each["id"] for each in found["not_judged"]} == {"duplicate", "order", "loss", "corrupt"}


def test_an_id_at_two_places_is_named_even_in_another_partition(topic, tmp_path):
    topic.write_all()
    topic.write(7, 99, identity="3-20", partition=2)
    code, found, _page = topic.inspect(tmp_path, ID, SEQUENCE)
    assert (code, failed(found)) == (1, {"duplicate": 1})
    (witness,) = witnesses(found, "duplicate")
    assert (witness["partition"], witness["offset"]) == (2, 200)
    assert witness["reason"].startswith("first read at partition 0 offset ")


def test_disorder_and_what_is_left_out_are_named(topic, tmp_path):
    topic.write_all(leave_out={(4, 20), (4, 21), (8, 0)})
    topic.write(5, 10, identity="late")
    code, found, _page = topic.inspect(tmp_path, ID, SEQUENCE, "--contiguous")
    # what comes before the first, (8, 0), nobody can know
    assert (code, failed(found)) == (1, {"order": 1, "loss": 2})
    (late,) = witnesses(found, "order")
    assert (late["partition"], late["offset"], late["sequence"]) == (2, 199, 10)
    assert late["reason"] == "stands behind sequence 49"
    (hole,) = witnesses(found, "loss")
    assert (hole["records"], hole["sequence"]) == (2, 22)
    assert hole["reason"] == "numbers 20 to 21 of order-4 are left out"


def test_numbers_that_may_have_expired_are_not_lost(topic, tmp_path):
    """One sequence goes through all partitions, of which each loses its own beginning, as by retention."""
    for number in range(300):
        topic.write(0, number, identity=str(number), partition=number % 3)
    topic.producer.flush(30)
    admin = AdminClient(topic.servers)
    begins = [TopicPartition(topic.name, n, offset) for n, offset in ((0, 20), (1, 60), (2, 10))]
    for future in admin.delete_records(begins).values():
        future.result(30)
    everything = "--by='all of them'"
    code, found, _page = topic.inspect(tmp_path, SEQUENCE, everything, "--contiguous")
    assert (code, failed(found)) == (2, {}), found["summary"]
    # from 32, the first that is left, to 181, the first of the partition that lost most
    assert "58 numbers are left out, which may have stood among the first" in found["summary"]
    for number in range(300, 310):
        topic.write(1, number, identity=f"one-{number}", partition=1)
    topic.write(1, 315, identity="one-315", partition=1)
    by_key = "--by=string(key)"
    code, found, _page = topic.inspect(tmp_path, SEQUENCE, by_key, "--contiguous")
    assert (code, failed(found)) == (1, {"loss": 5}), "that one stands in one partition alone"


def test_the_sequence_may_belong_to_something_else_than_the_key(topic, tmp_path):
    for number in range(30):
        topic.write(
            number, number // 3, partition=number % 3, headers={"shop": b"s%d" % (number % 3)}
        )
    shop = "--by=string(filter(headers, h -> h.key = 'shop')[0].value)"
    code, found, _page = topic.inspect(tmp_path, SEQUENCE, shop, "--contiguous")
    assert (code, failed(found)) == (0, {})
    code, found, _page = topic.inspect(tmp_path, SEQUENCE, "--by='all shops'")
    assert (code, failed(found)) == (0, {})  # within a partition


def test_a_damaged_record_is_named(topic, tmp_path):
    for number in range(300):
        body = b"payload %d" % number
        checksum = zlib.crc32(body) ^ (number == 123)
        topic.write(0, number, body=checksum.to_bytes(4, "big") + body)
    code, found, _page = topic.inspect(tmp_path, INTACT)
    assert (code, failed(found)) == (1, {"corrupt": 1})
    assert [w["offset"] for w in witnesses(found, "corrupt")] == [123]


def test_what_has_no_id_is_neither_fine_nor_wrong(topic, tmp_path):
    topic.write_all()
    topic.write(1, 50, body=b"not JSON")
    topic.write(2, 50, body=b"")
    code, found, page = topic.inspect(tmp_path, ID, SEQUENCE)
    assert (code, found["verdict"], failed(found)) == (2, "inconclusive", {})
    assert found["counts"]["unjudged"] == 2
    assert "2 of 602 records have no id or sequence" in found["summary"] and "INCONCLUSIVE" in page
    chosen = "--where=get_json_object(string(value), '$.id') is not null"
    code, found, _page = topic.inspect(tmp_path, ID, SEQUENCE, chosen)
    assert (code, found["counts"]) == (0, {"read": 602, "chosen": 600, "unjudged": 0})


def test_transactions_leave_offsets_out_rightfully(spark, cluster, tmp_path):
    topic = Topic(cluster, **{"transactional.id": f"t-{uuid.uuid4().hex}"})
    topic.producer.init_transactions(30)
    for number, end in enumerate(["commit", "abort", "commit"]):
        topic.producer.begin_transaction()
        for key in range(KEYS):
            topic.write(key, number)
        topic.producer.flush(30)
        getattr(topic.producer, f"{end}_transaction")(30)
    code, found, _page = topic.inspect(tmp_path, ID, "--transactional")
    assert (code, failed(found), found["counts"]["read"]) == (0, {}, 2 * KEYS)
    (why,) = [each["reason"] for each in found["not_judged"] if each["id"] == "gap"]
    assert why.startswith("--transactional: ")
    # who does not say so sees what was aborted, and is told of the markers, three in each partition
    code, found, _page = topic.inspect(tmp_path, ID)
    assert (code, failed(found), found["counts"]["read"]) == (2, {}, 3 * KEYS)
    assert "9 offsets hold nothing" in found["summary"] and "--transactional" in found["summary"]
    assert "gap" in [each["id"] for each in found["not_judged"]]


def test_an_open_transaction_is_not_waited_for(spark, cluster, tmp_path):
    topic = Topic(cluster, **{"transactional.id": f"t-{uuid.uuid4().hex}"})
    topic.producer.init_transactions(30)
    topic.producer.begin_transaction()
    topic.write(0, 0)
    topic.producer.flush(30)
    topic.producer.commit_transaction(30)
    topic.producer.begin_transaction()
    topic.write(0, 1)
    code, found, _page = topic.inspect(tmp_path, ID, "--transactional")
    topic.producer.abort_transaction(30)
    assert (code, found["counts"]["read"]) == (0, 1)


def test_of_a_compacted_topic_offsets_are_not_judged(spark, cluster, tmp_path):
    topic = Topic(cluster, config={"cleanup.policy": "compact"})
    topic.write_all()
    code, found, _page = topic.inspect(tmp_path, ID, SEQUENCE)
    assert (code, failed(found)) == (0, {})
    assert {"id": "gap", "reason": "cleanup.policy is compact: compaction leaves offsets out"} in (
        found["not_judged"]
    )


def test_a_pass_says_how_little_was_asked(spark, cluster, tmp_path):
    topic = Topic(cluster, config={"cleanup.policy": "compact,delete"})
    topic.write(0, 0)
    code, found, _page = topic.inspect(tmp_path)
    assert code == 0
    assert found["summary"] == "1 records: every batch has its checksum; nothing more was asked"


def test_records_are_not_compared_where_that_fills_the_disk(topic, tmp_path, monkeypatch):
    """The longer the ids the more it takes; counting alone needs no room."""
    topic.write_all()
    monkeypatch.setattr(room, "_COMPARED_BYTES", 0)
    monkeypatch.setattr(room, "_COMPARED_TIMES", 2**50 // (KEYS * VERSIONS))
    assert topic.inspect(tmp_path)[0] == 0
    with pytest.raises(CannotRun) as refused:
        topic.inspect(tmp_path, "--id=repeat('x', 10)")
    assert "to compare 600 records with each other takes 10.0 PiB in " in str(refused.value)
    with pytest.raises(CannotRun, match="takes 5.0 PiB"):
        topic.inspect(tmp_path, "--sequence=offset", "--by=false")
    code, found, _page = topic.inspect(tmp_path, "--id=offset", "--where=offset < 0")
    assert (code, failed(found)) == (2, {})
    assert "--where is true of none of 600 records" in found["summary"]


def test_an_empty_topic_is_no_pass(topic, tmp_path):
    code, found, page = topic.inspect(tmp_path, ID)
    assert (code, failed(found)) == (1, {"emptiness": 1})
    assert "no record to judge" in page


def test_fewer_replicas_than_planned_are_named(topic, tmp_path):
    topic.write(0, 0)
    code, found, _page = topic.inspect(tmp_path, "--replication-factor=2", "--min-isr=3")
    assert (code, failed(found)) == (1, {"durability": 4})


@pytest.mark.parametrize(
    "options, sentence",
    [
        (["--id=no_such_column"], "--id: .*no_such_column"),
        (["--id=string(value"], "--id: .*[Ss]yntax"),
        (["--id=count(*)"], "--id: "),
        (["--intact=string(value)"], "--intact: it must be true or false, and is string"),
        (["--where=1"], "--where: it must be true or false, and is int"),
        (["--sequence=string(value)"], "--sequence: it must be ordered, and is string; cast it"),
        (["--sequence=timestamp", "--contiguous"], "--sequence: it must be a whole number"),
        (["--id=raise_error('no such order')"], "Spark could not read the topic: .*no such order"),
        (["--topic=nobody-has-made-this"], "there is no topic nobody-has-made-this"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_a_sentence(topic, tmp_path, options, sentence):
    from flow.messages.failure import CannotRun

    topic.write(0, 0)
    (tmp_path / "inspection.json").write_text("of an earlier time")
    with pytest.raises(CannotRun, match=sentence):
        topic.inspect(tmp_path, *options)
    kept = (tmp_path / "inspection.json").read_text()
    assert kept == "of an earlier time", "nothing is deleted before it can be replaced"


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["inspect", "--output=x"], "inspect needs --topic"),
        (["inspect", "--topic=t"], "inspect needs --output"),
        (["inspect", "--topic=t", "--output=x", "--contiguous"], "--contiguous needs --sequence"),
        (["verify", "--output=x"], "verify needs --ledger"),
    ],
)
def test_a_wrong_command_line_is_refused(capsys, arguments, sentence):
    import job

    with pytest.raises(SystemExit) as refused:
        job.arguments([*arguments, "--bootstrap-servers=127.0.0.1:1"])
    assert refused.value.code == 3 and sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("servers", "good"),
    [
        ("a:1", True),
        ("a:1, [::1]:2", True),
        ("SASL_SSL://a:1", True),
        ("http://a:1", False),
        ("a", False),
        ("a:1,", False),
    ],
)
def test_brokers_are_addresses_and_no_urls(capsys, servers, good):
    import job

    command = ["inspect", "--topic=t", "--output=o", f"--bootstrap-servers={servers}"]
    if good:
        assert job.arguments(command).bootstrap_servers == servers
        return
    with pytest.raises(SystemExit):
        job.arguments(command)
    assert "must be HOST:PORT" in capsys.readouterr().err
