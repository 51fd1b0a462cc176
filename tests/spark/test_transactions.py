# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs with transactions: what was aborted stays hidden, what was committed is whole.

See test_real_logs for transactions that are torn or shown in a real log.
"""

import threading
import uuid

import pytest
from confluent_kafka import Producer
from flow.messages.failure import CannotRun
from flow.record import ledger, transactions
from flow.record.ledger import Row
from flow.record.schema import ABORTED, ACKED, FAILED, UNKNOWN
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.disturbing import (
    accusations,
    kill_producing_job,
    kill_python_workers,
    make_whole,
    run_and_disturb,
)
from tests.support import verdict_schema
from tests.support.outside import wait_until

# -- without Kafka

LAYOUT = transactions.Layout(records=4, partitions=2, producers=1, total=44)  # 22 a partition


@given(
    records=st.sampled_from([1, 2, 64, 1024]),
    partitions=st.integers(1, 7),
    producers=st.integers(1, 4),
    total=st.integers(0, 5000),
)
def test_every_record_has_one_transaction_and_one_place(records, partitions, producers, total):
    layout = transactions.Layout(records, partitions, producers, total)
    planned = {p: n for w in range(producers) for p, n in layout.share(w).items()}
    assert sum(planned.values()) == total
    for number in planned.values():
        places = [layout.place(sequence) for sequence in range(number)]
        # the places that are left out are those of the markers, one behind each transaction
        assert places == sorted(set(places))
        assert layout.offsets(number) - number == len({layout.number(s) for s in range(number)})
        assert not number or layout.offsets(number) == places[-1] + 2
    for producer in range(producers):
        numbers = range(layout.number(total) + 1)
        sizes = sum(layout.size(producer, number) for number in numbers)
        assert sizes == sum(layout.share(producer).values())


@pytest.mark.parametrize(
    "turn, of_a_partition, records", [(1024, 10**6, 1024), (1024, 1000, 64), (8, 500, 8), (1, 1, 1)]
)
def test_a_run_has_transactions_to_abort(turn, of_a_partition, records):
    assert transactions.records_of_each(turn, of_a_partition) == records


def healthy(partition=0, shift=100):
    """The ledger of one partition of LAYOUT: numbers 0 to 5, of which 4 was aborted on purpose."""
    rows = []
    for number in range(6):
        first, last = 4 * number, min(4 * number + 3, 21)
        if number == 4:
            rows.append(Row(0, 7, partition, ABORTED, first, last))
        else:
            place = LAYOUT.place(first) + shift
            rows.append(Row(0, 7, partition, ACKED, first, last, place, place + last - first))
    return rows


SPAN = (100, 100 + LAYOUT.offsets(22))
ROWS = healthy(0) + healthy(1)


def replaced(index, row):
    return [row if at == index else each for at, each in enumerate(ROWS)]


@pytest.mark.parametrize(
    "rows, writing",
    [
        (ROWS, {0, 1}),
        (replaced(0, Row(0, 7, 0, UNKNOWN, 0, 3)), {1}),
        (replaced(0, Row(0, 7, 0, FAILED, 0, 3, None, None, "X")), {1}),
        (replaced(0, Row(0, 7, 0, ABORTED, 0, 3, None, None, "X")), {1}),  # not on purpose
        (replaced(0, Row(0, 7, 0, ACKED, 0, 3, 101, 104)), {1}),  # elsewhere
        (replaced(0, Row(0, 6, 0, ACKED, 0, 3, 100, 103)), {1}),  # another attempt's
        ([Row(0, 7, 0, ACKED, 0, 4, 100, 104)], set()),  # no marker between two transactions
        ([Row(0, 7, 0, ABORTED, 16, 19)], set()),
    ],
)
def test_only_a_ledger_without_doubt_says_what_stands_where(rows, writing):
    found = transactions.writers(rows, LAYOUT)
    assert found == dict.fromkeys(writing, (0, 7, 100))


@pytest.mark.parametrize(
    "read, confirmed, span, doubtful",
    [
        (18, {0, 1}, SPAN, set()),
        (18, {1}, SPAN, {0, 1}),  # a transaction has records in both
        (17, {0, 1}, SPAN, {0, 1}),
        (19, {0, 1}, SPAN, {0, 1}),
        (18, {0, 1}, (100, SPAN[1] + 1), {0, 1}),
    ],
)
def test_counting_proves_only_what_is_so(read, confirmed, span, doubtful):
    counts, spans = {0: read, 1: 18}, {0: span, 1: SPAN}
    assert transactions.suspicious(counts, confirmed, ROWS, spans, LAYOUT) == doubtful


def test_what_nobody_saw_end_is_looked_at_whole():
    rows = replaced(2, Row(0, 7, 0, UNKNOWN, 8, 11))
    assert transactions.open_ended(rows, LAYOUT) == [(0, 7, 2, 8)]
    last = [Row(0, 7, 0, UNKNOWN, 19, 21)]
    assert transactions.open_ended(last, LAYOUT) == [(0, 7, 4, 8), (0, 7, 5, 4)]


def test_groups_miss_only_what_was_committed():
    expected = ledger.acknowledged_offsets(ROWS)[0]
    assert expected[:2] == [[100, 103], [105, 108]]
    # two markers, and half of a transaction
    assert ledger.common([(102, 104), (106, 106), (109, 109)], expected) == [(102, 103), (106, 106)]


# -- with Kafka


@pytest.fixture
def run(cluster, tmp_path):
    """Run with these options: (exit code, verdict)."""
    import job
    from flow import steps

    def run(mode, *options):
        where = [f"--ledger={tmp_path / 'ledger'}", f"--output={tmp_path}"]
        servers = f"--bootstrap-servers={cluster.bootstrap_servers}"
        code = getattr(steps, mode)(job.arguments([mode, servers, *where, *options]))
        return code, verdict_schema.read(tmp_path / "verdict.json")

    return run


def witnesses(verdict, name):
    (check,) = [check for check in verdict["checks"] if check["id"] == name]
    return check["witnesses"]


def test_a_healthy_run_is_proven_by_counting(spark, cluster, run, tmp_path):
    code, verdict = run("run", "--transactional", "--records=60000", "--partitions=6")
    assert (accusations(verdict), code) == ([], 0)
    topic, counts = verdict["topic"], verdict["counts"]
    assert topic["transaction_records"] == 512  # 10,000 a partition
    assert topic["partitions_checked_record_by_record"] == []
    # of 20 transactions each number 4, 9, 14 and 19, which is the short one
    aborted = 6 * (3 * 512 + 10_000 - 19 * 512)
    assert (counts["aborted"], counts["acked"]) == (aborted, 60_000 - aborted)
    assert counts["read"] == counts["acked"] and not counts["unknown"] + counts["failed"]
    assert f"; {aborted:,} of aborted transactions stayed hidden" in verdict["summary"]
    page = (tmp_path / "report.html").read_text()
    assert "in aborted transactions" in page and "all records are visible, or none" in page


def test_a_dead_leader_and_a_second_run_in_the_same_topic(spark, cluster, tmp_path):
    """Both runs' markers and aborted records lie in one log, and its leader is killed."""
    more = ("--transactional", "--topic=transactions-twice")
    code, verdict = run_and_disturb(cluster, tmp_path / "1", lambda: None, 20_000, more)
    assert (accusations(verdict), code) == ([], 0)
    broker = cluster.broker_instances[2]
    try:
        code, verdict = run_and_disturb(cluster, tmp_path / "2", broker.kill, 200_000, more)
        assert not broker.running()
    finally:
        make_whole(cluster)
    # nothing is wrong, but a replica of each partition is on a broker that is down
    assert (accusations(verdict), code) == ([], 2)
    counts = verdict["counts"]
    assert counts["acked"] + counts["aborted"] == 200_000 and counts["read"] == counts["acked"]


def test_killed_tasks_leave_nothing_half(spark, cluster, tmp_path):
    """The next attempt ends what the killed one began: aborted, though no ledger says so."""
    killed = []
    code, verdict = run_and_disturb(
        cluster,
        tmp_path,
        lambda: killed.extend(kill_python_workers()),
        records=300_000,
        more=("--transactional",),
    )
    assert killed
    assert (accusations(verdict), code) == ([], 0)
    counts = verdict["counts"]
    assert counts["unknown"] > 0 and counts["acked"] + counts["aborted"] >= 300_000


def test_a_killed_job_is_waited_for(spark, cluster, run, tmp_path):
    """Its transactions are open: nobody reads on before the cluster has ended them."""
    options = ["--transactional", "--records=2000000", "--delivery-timeout=2"]
    kill_producing_job(cluster, tmp_path, *options)
    code, verdict = run("verify")
    assert (accusations(verdict), verdict["verdict"], code) == ([], "inconclusive", 2)
    counts = verdict["counts"]
    assert counts["acked"] > 1000
    assert counts["acked"] + counts["aborted"] + counts["unknown"] == 2_000_000


def test_transactions_that_begin_later_are_not_waited_for(cluster):
    """Of a topic in which somebody always has one open."""
    from flow.prepare.cluster import Cluster

    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    client, topic = Cluster(servers, 30), "transactions-without-end"
    client.create_topic(topic, [[1, 2, 3]], {})
    writers = [
        Producer({**servers, "transactional.id": f"{name}-{uuid.uuid4().hex}"}) for name in "ab"
    ]
    over = threading.Event()

    def begin(writer):
        writer.begin_transaction()
        writer.produce(topic, b"one of many", partition=0)
        writer.flush(30)

    def keep_one_open():
        while not over.is_set():
            for writer, other in (writers, reversed(writers)):
                begin(other)
                writer.commit_transaction(30)

    for writer in writers:
        writer.init_transactions(30)
    begin(writers[0])
    busy = threading.Thread(target=keep_one_open)
    busy.start()
    try:
        wait_until(lambda: client.positions(topic)[0].end > 20, 30, "a few transactions")
        ends, stable = client.stable_ends(topic, 20, client.positions(topic))
    finally:
        over.set()
        busy.join()
        writers[0].abort_transaction(30)
    assert transactions.still_open(ends, stable, 20) == [] and stable[0] >= ends[0] > 20


def test_a_long_transaction_of_others_is_named_and_accuses_nobody(spark, cluster, run, monkeypatch):
    """It hides from readers all that is committed behind it, for as long as the brokers allow."""
    from flow.judge import judge
    from flow.prepare.cluster import Cluster
    from flow.steps import task

    monkeypatch.setattr(judge, "_TRANSACTION_GRACE", 1)
    monkeypatch.setattr(task, "_TO_END_SECONDS", 1)
    topic = "transactions-hang"
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    Cluster(servers, 30).create_topic(topic, [[1, 2, 3], [2, 3, 1], [3, 1, 2]], {})
    other = Producer({**servers, "transactional.id": f"other-{uuid.uuid4().hex}"})
    other.init_transactions(30)
    other.begin_transaction()
    # before the run; a second record of it comes into the run's records
    other.produce(topic, b"somebody else's", partition=1)
    other.flush(30)
    try:
        more = ["--transactional", f"--topic={topic}", "--records=3000", "--delivery-timeout=3"]
        with pytest.raises(CannotRun) as refused:
            run("run", *more, "--timeout=3")
    finally:
        other.abort_transaction(30)
    said = str(refused.value)
    # with twice the half second in which these brokers look for such ones
    assert "begins at offset 0 of partition 1 is open after 6 s" in said, said
    assert "let a transaction take 900 s" in said and "job.py verify --ledger " in said
