# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts without Spark and Kafka: ledger ranges, shares, settings, verdict."""

import json
import time
import zlib
from types import SimpleNamespace

import pytest
from flow.judge import verdict
from flow.messages.failure import CannotRun
from flow.prepare import client, cluster, leadership
from flow.record import files, ledger, schema
from flow.record.ledger import Attempt
from flow.record.partition import Partition
from flow.record.schema import ACKED, FAILED, UNKNOWN
from flow.write import blocks, outcomes
from flow.write.notes import notes_of
from hypothesis import given, settings
from hypothesis import strategies as st


def test_record_is_as_documented():
    value = schema.pack(b"r" * 16, 1, 2, 3, 4, 5, schema.payload_of(60))
    assert len(value) == 60
    assert value[4:20] == b"r" * 16
    fields = [
        int.from_bytes(value[a:b], "big") for a, b in ((20, 24), (24, 28), (28, 32), (32, 40))
    ]
    assert fields == [1, 2, 3, 4]
    assert schema.unpack_header(value[20:32]) == (1, 2, 3)
    with pytest.raises(ValueError):
        schema.payload_of(47)


def test_addresses_of_brokers_are_as_clients_write_them():
    brokers = {
        2: SimpleNamespace(host="::1", port=9093),
        1: SimpleNamespace(host="kafka-1", port=9092),
    }
    told = cluster.addresses_of(SimpleNamespace(brokers=brokers))
    assert list(told.items()) == [(1, "kafka-1:9092"), (2, "[::1]:9093")]


def test_partitions_that_a_broker_does_not_know_yet_are_asked_for_again():
    """One that has just started knows some of a topic; told as gone, their records would be a loss."""
    place = {"leader": 1, "replicas": (1,), "isr": (1,)}
    answers = []

    class Starting(cluster.Cluster):
        _timeout = 30

        def __init__(self):
            pass

        def layout(self, topic):
            return dict.fromkeys(answers.pop(0) if len(answers) > 1 else answers[0], place)

        def _offsets(self, topic, layout, spec, committed=False):
            return dict.fromkeys(layout, (0, None))

    answers[:] = [[0], [], [0, 1], [0, 1, 2]]
    assert sorted(Starting().positions("t", wait=30, known=[0, 1, 2])) == [0, 1, 2]
    answers[:] = [[0, 1]]
    assert sorted(Starting().positions("t", wait=0.3, known=[0, 1, 2])) == [0, 1], "it is gone"
    assert sorted(Starting().positions("t")) == [0, 1]


@given(partitions=st.integers(1, 40), producers=st.integers(1, 9), records=st.integers(0, 10_000))
def test_shares_are_everything_once(partitions, producers, records):
    shares = [ledger.share(partitions, producers, p, records) for p in range(producers)]
    owned = [partition for share in shares for partition in share]
    assert sorted(owned) == list(range(partitions))
    assert sum(sum(share.values()) for share in shares) == records


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)))
def test_ranges_hold_exactly_what_was_acknowledged(arrival, unanswered):
    acknowledged = ledger.Acknowledged()
    for sequence in arrival:
        if sequence not in unanswered:
            acknowledged.add(sequence, 1000 + sequence)
    attempt = ledger.Attempt(0, 1, True, {5: 12}, {5: acknowledged.merged()})
    rows = attempt.rows()
    acked = {
        (s, r.first_offset + s - r.first_sequence)
        for r in rows
        if r.outcome == ACKED
        for s in range(r.first_sequence, r.last_sequence + 1)
    }
    assert acked == {(s, 1000 + s) for s in range(12) if s not in unanswered}
    assert ledger.counts(rows)[UNKNOWN] == len(unanswered)
    assert sum(r.records for r in rows) == 12


def test_ranges_break_where_an_offset_jumps():
    acknowledged = ledger.Acknowledged()
    for sequence, offset in ((0, 10), (1, 11), (2, 15), (3, 16)):
        acknowledged.add(sequence, offset)
    assert acknowledged.merged() == [[0, 1, 10, 11], [2, 3, 15, 16]]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans())))
def test_acknowledgements_are_counted_at_any_moment(steps):
    """`count` is asked now and then, between acknowledgements in any order."""
    acknowledged, sequence, offset, known = ledger.Acknowledged(), 0, 0, 0
    for skipped, jumped, asked in steps:
        sequence, offset = sequence + 1 + skipped % 2, offset + 1 + jumped % 3
        acknowledged.add(sequence, offset)
        known += 1
        if asked:
            assert acknowledged.count() == known
    assert acknowledged.count() == known


def test_attempt_survives_its_file():
    attempt = ledger.Attempt(3, 9, False, {0: 10}, {0: [[0, 4, 7, 11]]}, {0: [[9, 9, "X"]]})
    again = ledger.Attempt.from_json(json.loads(json.dumps(attempt.to_json())))
    assert again == attempt
    outcomes = [(r.outcome, r.first_sequence, r.last_sequence) for r in again.rows()]
    assert outcomes == [(ACKED, 0, 4), (FAILED, 9, 9), (UNKNOWN, 5, 8)]


def test_a_dead_attempt_does_not_matter_once_its_work_is_done():
    dead = [ledger.Row(0, 1, 0, ACKED, 0, 1, 0, 1), ledger.Row(0, 1, 0, UNKNOWN, 2, 4)]
    whole = [ledger.Row(0, 2, 0, ACKED, 0, 4, 2, 6)]
    other = [ledger.Row(1, 3, 1, ACKED, 0, 4, 0, 4)]
    sizes = {"partitions": 2, "producers": 2, "records": 10}
    assert ledger.unfinished(dead + whole + other, **sizes) == []
    assert ledger.unfinished(dead + other, **sizes) == [0]
    assert ledger.unfinished(whole, **sizes) == [1]  # its task never started


COUNTS = {"acked": 10, "failed": 0, "unknown": 0, "read": 10}


@pytest.mark.parametrize(
    "checks,unfinished,expected",
    [
        ([verdict.Check("loss")], [], "pass"),
        ([verdict.Check("loss", 1)], [], "fail"),
        ([verdict.Check("loss")], [0], "inconclusive"),
        ([verdict.Check("loss", 1)], [0], "fail"),
    ],
)
def test_decision(checks, unfinished, expected):
    assert verdict.decide(checks, COUNTS, unfinished)[0] == expected


def place(number, leader, start=0, end=10, epoch=3, replicas=(1, 2, 3)):
    return Partition(number, leader, replicas, replicas, start, end, epoch)


def test_coverage_names_the_broker_that_led_nothing():
    moment = {0: place(0, 1), 1: place(1, 2), 2: place(2, 3)}
    assert verdict.coverage([1, 2, 3], [moment], {0, 1, 2}).check.count == 0
    idle = verdict.coverage([1, 2, 3], [moment], {0, 1}).check
    assert [w["broker"] for w in idle.witnesses] == [3]
    absent = verdict.coverage([1, 2, 3], [moment], {0, 1, 2}, expected_brokers=5).check
    assert (absent.count, absent.status) == (2, "fail")


@pytest.mark.parametrize(
    "brokers, isr, registered, settled, count, said",
    [
        # a broker restarts while the run begins, and is back in the end
        ([1, 2], (1, 2), {1, 2, 3}, (1, 2, 3), 0, "broker 3 was not registered when the run began"),
        ([1, 2], (1, 2), {1, 2}, (1, 2), 1, ""),
        ([1, 2, 3], (1, 2), {1, 2, 3}, (1, 2, 3), 0, "broker 3 was not in sync when the run began"),
        ([1, 2, 3], (1, 2), {1, 2, 3}, (1, 2), 1, ""),  # it is not back
        ([1, 2, 3], (1, 2), {1, 2}, (1, 2), 1, ""),
        ([1, 2, 3], (1, 2, 3), {1, 2, 3}, (1, 2, 3), 1, ""),  # nothing excuses it
    ],
)
def test_a_broker_that_restarts_when_the_run_begins_is_not_accused(
    brokers, isr, registered, settled, count, said
):
    def led_by(leader, in_sync):
        return Partition(leader - 1, leader, (1, 2, 3), in_sync, 0, 9)

    moment, end = ({n - 1: led_by(n, at) for n in (1, 2)} for at in (isr, settled))
    found = verdict.coverage(
        brokers, [moment, moment, end], {0, 1}, 3, registered=registered, settled=end
    )
    assert (found.check.count, len(found.check.witnesses)) == (count, count)
    assert [said in each for each in found.unclear] == [True] * bool(said)


@pytest.mark.parametrize(
    "now,text",
    [
        ({0: place(0, 1, end=8)}, "the end offset fell from 10 to 8"),
        ({0: place(0, 1, start=2)}, "the first offset rose to 2, beyond the run's first, 0"),
        ({0: place(0, 1, epoch=2)}, "the leader epoch fell from 3 to 2"),
        ({}, "the partition is gone"),
    ],
)
def test_borders_that_move_the_wrong_way(now, text):
    before = {0: place(0, 1, end=0)}
    found = verdict.gaps_at_the_borders(before, {0: place(0, 1)}, now)
    assert [w["reason"] for w in found] == [text]


def test_borders_that_move_the_right_way():
    before, after = {0: place(0, 1, end=0)}, {0: place(0, 1)}
    assert not verdict.gaps_at_the_borders(before, after, {0: place(0, 2, end=12, epoch=4)})


def test_what_others_wrote_may_expire_and_partitions_may_be_added():
    """4,000 old records are deleted, as retention does, and somebody adds a partition."""
    before, after = {0: place(0, 1, start=1000, end=9000)}, {0: place(0, 1, start=1000, end=9500)}
    now = {0: place(0, 1, start=5000, end=9500), 1: place(1, 2)}
    assert verdict.gaps_at_the_borders(before, {**after, 1: place(1, 2)}, now) == []
    now[0] = place(0, 1, start=9003, end=9500)
    assert [w["records"] for w in verdict.gaps_at_the_borders(before, after, now)] == [3]


def standing(*places, min_isr=2, moment="now"):
    return verdict.Standing(moment, {each.partition: each for each in places}, min_isr)


def durable(*arguments, **more):
    """(witnesses, sentences about what stays open)."""
    found = verdict.durability(*arguments, **more)
    assert found.check.count == len(found.check.witnesses)
    return found.check.witnesses, found.unclear


def test_durability_is_judged_at_both_moments_and_told_once():
    good, single = place(0, 1), place(1, 2, replicas=(2,))
    assert durable([standing(good)], 3, 2) == ([], [])
    assert durable([standing(good, single)], 3, 2)[0] == [
        {"partition": 1, "reason": "now: 1 replicas instead of 3"}
    ]
    assert len(durable([standing(good, min_isr=1)], 3, 2)[0]) == 1
    later = standing(place(0, 1, replicas=(1,)), min_isr=1, moment="later")
    witnesses, _unclear = durable([standing(good), later], 3, 2)
    assert [each["reason"][:7] for each in witnesses] == ["later: "] * 2
    assert len(durable([later, later], 3, 2)[0]) == 2
    assert durable([standing(good, min_isr=None)], 3, 2) == ([], [])


@pytest.mark.parametrize(
    "registered, known, reasons, said",
    [
        ([1, 2, 3], [1, 2], [], ["only brokers 1, 2 were registered when the run began"]),
        ([1, 2], [1, 2], ["then: 2 replicas instead of 3"], []),  # as few as ever
        ([1, 2, 3], [1, 2, 3], ["then: 2 replicas instead of 3"], []),  # there were enough
    ],
)
def test_a_topic_that_began_with_too_few_brokers_is_not_held_against_the_cluster(
    registered, known, reasons, said
):
    few = placed(0, (1, 2), (1, 2))
    moments = [standing(few, moment="then"), standing(few)]
    witnesses, unclear = durable(moments, 3, 2, registered=registered, known=known)
    assert [each["reason"] for each in witnesses] == reasons
    assert [each[: len(told)] for each, told in zip(unclear, said)] == said
    assert len(unclear) == len(said)


def placed(number, replicas, isr):
    return Partition(number, replicas[0], replicas, isr, 0, 9)


WHOLE = placed(0, (1, 2, 3), (1, 2, 3))
MORE = placed(0, (1, 2, 3, 4), (1, 2, 3))
_DOWN = ["broker 3, which is down, has replicas of partition 0 that are not in sync"]


@pytest.mark.parametrize(
    "before, now, more, reasons, unclear",
    [
        # the new replicas of a reassignment are listed, too, and not in sync for as long as it takes
        (WHOLE, MORE, {"registered": [1, 2, 3, 4], "moving": {0}}, [], ["being reassigned"]),
        (WHOLE, MORE, {"registered": [1, 2, 3, 4], "moving": None}, [], ["Describe on the cluster"]),
        (WHOLE, MORE, {"registered": [1, 2, 3, 4]}, ["4 replicas instead of 3", "brokers 4"], []),
        (MORE, WHOLE, {"registered": [1, 2, 3, 4]}, [], ["had more replicas than planned"]),
        (WHOLE, placed(0, (1, 2), (1, 2)), {"registered": [1, 2], "moving": {0}},
         ["2 replicas instead of 3"], []),
        # who is there must be in sync; who is down is not accused, and told
        (WHOLE, placed(0, (1, 2, 3), (1, 3)), {"registered": [1, 2, 3]}, ["brokers 2, which are"], []),
        (WHOLE, placed(0, (1, 2, 3), (1, 2)), {"registered": [1, 2]}, [], _DOWN),
        (WHOLE, placed(0, (1, 2, 3), (1, 2)), {"registered": [1, 2], "known": [1, 2, 3]}, [],
         [*_DOWN, "broker 3 was there when the run began, and is not any more"]),
        (WHOLE, placed(0, (1, 2, 4), (1, 2, 4)),
         {"registered": [1, 2, 4], "known": [1, 2, 3, 4], "leaving": [3]}, [], []),
        # fewer than the minimum take no write
        (WHOLE, placed(0, (1, 2, 3), (1,)), {"registered": [1]},
         ["1 replicas in sync, and min.insync.replicas is 2"], ["broker 2", "broker 3"]),
        (placed(0, (1, 2, 3), (1,)), WHOLE, {"registered": [1, 2, 3]}, ["1 replicas in sync"], []),
    ],
)  # fmt: skip
def test_what_the_replicas_prove_and_what_they_leave_open(before, now, more, reasons, unclear):
    witnesses, told = durable([standing(before, moment="before"), standing(now)], 3, 2, **more)
    assert [part in w["reason"] for part, w in zip(reasons, witnesses)] == [True] * len(reasons)
    assert len(witnesses) == len(reasons), witnesses
    assert len(told) == len(unclear) and all(p in each for p, each in zip(unclear, told)), told


def test_partitions_of_others_may_have_different_numbers_of_replicas():
    """Nobody has said how many there are to be."""
    double = placed(1, (1, 2), (1, 2))
    before, now = standing(WHOLE, double), standing(WHOLE, double)
    assert durable([before, now], 0, 1, registered=[1, 2, 3]) == ([], [])
    (told,) = durable([before, standing(WHOLE, placed(1, (1, 2, 3), (1, 2, 3)))], 0, 1)[1]
    assert "partition 1 had another number of replicas" in told


@given(brokers=st.integers(1, 9), partitions=st.integers(1, 40), wanted=st.integers(1, 3))
def test_replicas_differ_and_brokers_lead_in_turn(brokers, partitions, wanted):
    ids = list(range(10, 10 + brokers))
    assignment = cluster.spread(ids, partitions, min(wanted, brokers))
    assert all(len(set(r)) == min(wanted, brokers) for r in assignment)
    assert [r[0] for r in assignment] == [ids[p % brokers] for p in range(partitions)]


JAAS = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required"
    ' username="me" password="a \\"b\\" c";'
)


def test_settings_in_javas_spelling():
    properties = client.parse_properties(
        "# a comment\nsecurity.protocol = SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config="
        + JAAS.replace("\\", "\\\\")
        + "\nssl.truststore.location=/ca.pem\nssl.truststore.type=PEM\n"
    )
    assert client.for_librdkafka(properties) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": 'a "b" c',
        "ssl.ca.location": "/ca.pem",
    }
    assert client.for_java(properties) == properties
    assert properties["sasl.jaas.config"] == JAAS


def test_settings_in_librdkafkas_spelling():
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "me",
        "sasl.password": 'a"b',
        "ssl.ca.location": "/ca.pem",
    }
    java = client.for_java(properties)
    assert java["sasl.jaas.config"].endswith('username="me" password="a\\"b";')
    assert "plain.PlainLoginModule" in java["sasl.jaas.config"]
    assert (java["ssl.truststore.location"], java["ssl.truststore.type"]) == ("/ca.pem", "PEM")
    assert client.for_librdkafka(properties)["sasl.mechanism"] == "PLAIN"


@pytest.mark.parametrize("servers", ["", "broker", "a:9092,", "a:9092 b:9092", "a:port"])
def test_servers_that_cannot_be_meant_are_refused(capsys, servers):
    """At once: an empty list was asked for a minute."""
    import job

    with pytest.raises(SystemExit) as refused:
        job.arguments(["run", f"--bootstrap-servers={servers}", "--ledger=l", "--output=o"])
    assert refused.value.code == 3
    assert f"must be HOST:PORT,..., not {servers!r}" in capsys.readouterr().err
    if servers:
        whole = ["run", "--bootstrap-servers=a:9092", "--ledger=l", "--output=o"]
        with pytest.raises(SystemExit):
            job.arguments([*whole, f"--listener=INNER={servers}"])
        assert f"--listener INNER must be HOST:PORT,..., not {servers!r}" in capsys.readouterr().err


@pytest.mark.parametrize("servers", ["a:9092", "a:9092, b:9092", "[::1]:9092", "SSL://a:9093"])
def test_servers_as_clients_take_them_are_not(servers):
    import job

    job.arguments(["run", f"--bootstrap-servers={servers}", "--ledger=l", "--output=o"])


def test_a_store_that_only_java_reads_is_refused():
    with pytest.raises(ValueError, match="only PEM"):
        client.for_librdkafka({"ssl.truststore.location": "/store.jks"})


SETTINGS = {"topic": "t", "run_id": "ab" * 16, "record_size": 60, "transaction_records": 0}


class Queue:
    """Stands for the client: takes what it is handed until it is full."""

    def __init__(self, room):
        self.room, self.records = room, []

    def produce(self, topic, value, key, partition, report, _again, timestamp_ms, headers=None):
        if len(self.records) == self.room:
            raise BufferError
        assert (topic, report) == ("t", "report")
        sequence, micros = (int.from_bytes(value[n : n + 8], "big") for n in (32, 40))
        assert (key, headers) == schema.beside(b"\xab" * 16, sequence)
        assert timestamp_ms * 1000 == micros
        self.records.append((partition, value))


@settings(deadline=None)  # of a busy machine
@given(
    first=st.integers(0, 2**40),
    number=st.integers(1, 5),
    size=st.sampled_from([48, 49, 60, 100, 1000, 10_000, 600_000]),
    transaction=st.sampled_from([0, 1, 8]),
)
def test_the_quick_loop_writes_what_the_documented_layout_says(first, number, size, transaction):
    settings = {**SETTINGS, "record_size": size, "transaction_records": transaction}
    block = blocks.block_of(settings)
    number = min(number, block - first % block)  # what is left of the block
    state = Attempt(2, 5, False, {3: 4})
    values = list(
        blocks.values_of(settings, state, 3, range(first, first + number), 1_790_000_000_000_000)
    )
    assert len(values) == number
    for sequence, value in enumerate(values, first):
        when, payload = 1_790_000_000_000_000, schema.payload_of(size)
        expected = schema.pack(b"\xab" * 16, 2, 5, 3, sequence, when, payload)
        assert value == expected


def test_every_record_of_a_whole_block_has_its_own_checksum():
    state = Attempt(2, 5, False, {3: 4096})
    for value in blocks.values_of(SETTINGS, state, 3, range(3072, 4096), 7):
        assert zlib.crc32(value[4:]) == int.from_bytes(value[:4], "big")


def test_turns_are_everything_once():
    planned = {0: 2500, 4: 1, 8: 0, 12: 1024}
    rounds = list(blocks.rounds_of(planned, 1024))
    assert [[turn[0] for turn in each] for each in rounds] == [[0, 4, 12], [0], [0]]
    turns = [turn for each in rounds for turn in each]
    for partition, count in planned.items():
        sent = [s for where, sequences in turns if where == partition for s in sequences]
        assert sent == list(range(count))
    assert all(turn[1].start % 1024 == 0 for turn in turns)


@pytest.mark.parametrize(
    "size,records", [(48, 1024), (900, 1024), (10_000, 64), (600_000, 1), (2_000_000, 1)]
)
def test_large_records_have_short_blocks(size, records):
    assert blocks.longest_block(size) == records


@pytest.mark.parametrize(
    "size,transaction,partitions,records",
    [
        (100, 0, 6, 8192),
        (48, 0, 6, 8192),
        (100, 0, 12, 8192),
        (100, 0, 13, 4096),  # so that two turns of each partition fit the client's queue
        (100, 0, 60, 1024),
        (100, 0, 10_000, 1024),  # never less than a block
        (100, 0, 0, 8192),  # a producer without records
        (1000, 0, 6, 512),
        (10_000, 0, 1000, 64),
        (2_000_000, 0, 6, 1),
        (100, 256, 6, 256),
    ],
)
def test_turns_are_blocks_of_which_all_partitions_have_some_under_way(
    size, transaction, partitions, records
):
    settings = {**SETTINGS, "record_size": size, "transaction_records": transaction}
    assert blocks.turn_of(settings, partitions) == records
    assert records % blocks.block_of(settings) == 0


def test_a_turn_of_several_blocks_is_sent_in_order_and_acknowledgements_are_heard_between():
    queue, waited = Queue(10**6), []
    state = Attempt(1, 0, False, {9: 5000})
    blocks.send(
        queue.produce, SETTINGS, state, 9, range(1000, 5000), ("report", "report"), waited.append
    )
    sent = [int.from_bytes(value[32:40], "big") for dummy, value in queue.records]
    assert sent == list(range(1000, 5000))
    assert waited == [0] * 5, "at 1024, 2048, 3072, 4096 and 5000"
    now = time.time_ns() // 1000
    times = {int.from_bytes(value[40:48], "big") for dummy, value in queue.records}
    assert len(times) <= 5 and all(now - 60_000_000 < each <= now for each in times)


def test_full_queue_loses_and_repeats_nothing():
    queue, waited = Queue(0), []

    def listen(seconds):
        waited.append(seconds)
        queue.room += 3  # less than a turn

    state = Attempt(2, 5, False, {3: 4})
    blocks.send(queue.produce, SETTINGS, state, 3, range(7, 18), ("report", "report"), listen)
    assert {record[0] for record in queue.records} == {3}
    numbers = [int.from_bytes(value[32:40], "big") for dummy, value in queue.records]
    assert numbers == list(range(7, 18)) and waited == [0.1] * 4 + [0]


class Report:
    """What the client says of one record: stands for its message and its error."""

    def __init__(self, sequence, offset=None, error=None):
        self._value = schema.pack(b"r" * 16, 0, 1, 5, sequence, 0, b"")
        self._offset, self._error = offset, error

    def value(self):
        return self._value

    def offset(self):
        return self._offset

    def latency(self):
        return 0.001

    def name(self):
        return self._error

    @property
    def error(self):
        return self if self._error else None


REPORTS = (
    *(Report(s, 1000 + s) for s in range(6)),
    *(Report(s, error="MSG_SIZE_TOO_LARGE") for s in (6, 7)),
    Report(8, error="_MSG_TIMED_OUT"),
    Report(9),  # acknowledged, but who knows where
    *(Report(s, 998 + s) for s in (10, 11)),
)


@given(st.permutations(REPORTS))
def test_reports_in_any_order_make_the_same_ledger(reports):
    acknowledged, refused, errors = ledger.Acknowledged(), ledger.Refused(), {}
    listener = outcomes._listener(acknowledged.add, refused.add, errors)
    for said in reports:
        listener(said.error, said)
    assert errors == {"MSG_SIZE_TOO_LARGE": 2, "_MSG_TIMED_OUT": 1, outcomes.NO_OFFSET: 1}
    acked = {5: acknowledged.merged()}
    attempt = Attempt(0, 1, True, {5: 13}, acked, {5: refused.merged()})
    rows = [(r.outcome, r.first_sequence, r.last_sequence, r.first_offset) for r in attempt.rows()]
    assert rows == [
        (ACKED, 0, 5, 1000),
        (ACKED, 10, 11, 1008),
        (FAILED, 6, 7, None),
        (UNKNOWN, 8, 9, None),
        (UNKNOWN, 12, 12, None),
    ]


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)))
def test_refusals_are_kept_as_ranges(order, by_one, by_another):
    refused = ledger.Refused()
    expected = {n: "ONE" if n in by_one else "ANOTHER" for n in by_one | by_another}
    for sequence in order:
        if sequence in expected:
            refused.add(sequence, expected[sequence])
    ranges = refused.merged()
    assert {n: error for a, b, error in ranges for n in range(a, b + 1)} == expected
    assert all(
        behind[0] > last + 1 or behind[2] != error
        for (_first, last, error), behind in zip(ranges, ranges[1:])
    )
    assert refused.count({"ONE"}) == len(by_one)


def test_a_million_refusals_take_no_room():
    """Ten million in a dictionary were a gigabyte in each worker."""
    known = outcomes.Outcomes({0: 1_000_000})
    for sequence in range(1_000_000):
        report = Report(sequence, error="MSG_SIZE_TOO_LARGE")
        known.reports[0][0](report, report)
    assert len(known._refused[0].ranges) == 1
    state = Attempt(0, 0, False, {0: 1_000_000})
    known.tell(state, {0: 1_000_000})
    assert state.failed == {0: [[0, 999_999, "MSG_SIZE_TOO_LARGE"]]}


@pytest.mark.parametrize(
    "error, sent, outcome",
    [
        ("MSG_SIZE_TOO_LARGE", {0: 5}, FAILED),  # 3 acknowledged, 2 refused, each sent once
        ("MSG_SIZE_TOO_LARGE", {0: 6}, UNKNOWN),  # one of them was sent twice: who knows which
        ("MSG_SIZE_TOO_LARGE", {0: 3}, UNKNOWN),  # or by the client itself, for reasons not known
        ("MSG_SIZE_TOO_LARGE", {}, UNKNOWN),  # nobody has told
        ("_PURGE_QUEUE", {0: 3}, FAILED),  # never sent
        ("TOPIC_AUTHORIZATION_FAILED", {0: 3}, FAILED),  # the client knew it
        ("TOPIC_AUTHORIZATION_FAILED", {0: 5}, UNKNOWN),  # sent, but which, and how often
    ],
)
def test_what_was_refused_is_failed_only_if_nothing_was_sent_twice(error, sent, outcome):
    known = outcomes.Outcomes({0: 5})
    acknowledged = [Report(n, 100 + n) for n in range(3)]
    for report in (*acknowledged, *(Report(n, error=error) for n in (3, 4))):
        known.reports[0][0](report.error, report)
    state = Attempt(0, 0, True, {0: 5})
    known.tell(state, sent)
    rows = [(row.outcome, row.first_sequence, row.last_sequence, row.error) for row in state.rows()]
    assert rows == [(ACKED, 0, 2, None), (outcome, 3, 4, error)]
    assert Attempt.from_json(json.loads(json.dumps(state.to_json()))) == state
    assert outcomes.all_refused(state.rows()) == ""
    assert outcomes.all_refused(state.rows()[1:]) == error


def test_what_was_sent_in_aborted_transactions_counts_as_sent():
    known = outcomes.Outcomes({0: 4})
    known.begin()
    known.reports[0][0](None, Report(0, 100))
    refused = Report(1, error="MSG_SIZE_TOO_LARGE")
    known.reports[0][0](refused.error, refused)
    known.aborted([(0, range(2))], "MSG_SIZE_TOO_LARGE")
    known.begin()
    known.reports[0][0](None, Report(2, 103))
    refused = Report(3, error="MSG_SIZE_TOO_LARGE")
    known.reports[0][0](refused.error, refused)
    state = Attempt(0, 0, True, {0: 4})
    known.tell(state, {0: 4})
    assert state.failed == {0: [[3, 3, "MSG_SIZE_TOO_LARGE"]]} and not state.doubted
    known.tell(state, {0: 5})
    assert state.doubted == {0: [[3, 3, "MSG_SIZE_TOO_LARGE"]]} and not state.failed


def test_statistics_tell_what_was_sent_unless_they_are_old():
    told = {
        "ts": 5_000_000,
        "topics": {"t": {"partitions": {"-1": {"txmsgs": 0}, "3": {"txmsgs": 7}}}},
    }
    assert outcomes.sent_of(json.dumps(told), "t", 4.9) == {3: 7}
    assert outcomes.sent_of(json.dumps(told), "other", 4.9) == {}
    assert outcomes.sent_of(json.dumps(told), "t", 5.1) is None


def test_attempts_of_another_run_are_refused(tmp_path):
    attempts = tmp_path / "_attempts"
    attempts.mkdir()
    kept = notes_of({"directory": str(attempts)})
    mine, old, foreign = "aa" * 16, "", "bb" * 16
    for number, run_id in enumerate((mine, old)):
        kept.save(Attempt(number, 0, True, {number: 1}, run_id=run_id))
    assert len(files.load_attempts(str(tmp_path), run_id=mine)) == 2
    kept.save(Attempt(2, 0, True, {2: 1}, run_id=foreign))
    with pytest.raises(CannotRun, match="00002-00000.json is of another run"):
        files.load_attempts(str(tmp_path), run_id=mine)
    with pytest.raises(CannotRun, match="of another run"):
        files.load_attempts(str(tmp_path), broken=True, run_id=mine)
    # and nobody begins where they lie
    with pytest.raises(CannotRun, match="holds the ledger of another run"):
        files.new_ledger(str(tmp_path))


@pytest.mark.parametrize(
    "moments, partitions",
    [
        ([(1, (1, 2)), (2, (2,)), (1, (1, 2))], [0]),  # 1 came back without having been in sync
        ([(1, (1, 2)), (2, (2,)), (2, (1, 2)), (1, (1, 2))], []),
        ([(1, (1,)), (None, (1,)), (3, (3,))], [0]),
        ([(1, (1,)), (None, (1,)), (1, (1,))], []),
        ([(3, (3,))], []),
        ([(1, ()), (3, (3,))], []),  # nothing was known
    ],
)
def test_a_leader_that_was_not_in_sync_is_suspected(moments, partitions):
    found = leadership.unclean([{0: each} for each in moments])
    assert [each.partition for each in found] == partitions
