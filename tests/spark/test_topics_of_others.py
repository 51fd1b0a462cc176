# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A topic that others made and use: they write between the run's records, in transactions, too; it deletes what is
old; it lies on few brokers. None of that is a fault of the cluster, and none of it makes a pass of what is not proven.
"""

import threading
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from flow.judge import expiry, verdict
from flow.messages.failure import CannotRun
from flow.record.ledger import Row
from flow.record.partition import Partition
from flow.record.schema import ACKED, UNKNOWN

from tests.support import verdict_schema
from tests.support.outside import wait_until

# -- without Kafka


def retention(age_ms="-1", size="-1"):
    return {"retention.ms": age_ms, "retention.bytes": size}


@pytest.mark.parametrize(
    "settings, age, sizes, reasons",
    [
        (retention(), 10**9, {}, {}),
        ({}, 10**9, {}, {}),
        (retention("604800000"), 600, {}, {}),
        (retention("604800000"), 604_796, {}, dict.fromkeys((0, 1), "retention.ms=604800000")),
        ({"retention.ms": "0"}, 0, {}, dict.fromkeys((0, 1), "retention.ms=0")),
        (
            retention("604800000", "0"),
            600,
            {0: 0, 1: 9},
            dict.fromkeys((0, 1), "retention.bytes=0"),
        ),
        # what deletes by its size is left with as much as it may have; a small one has not done that
        (retention(size="4096"), 1, {0: 4100, 1: 300}, {0: "retention.bytes=4096"}),
        (retention(size=str(10**12)), 60, {0: 10**6, 1: 10**6}, {}),
        # where nobody could say how large it is, it may have
        (retention(size="4096"), 1, None, dict.fromkeys((0, 1), "retention.bytes=4096")),
        (retention(size="4096"), 1, {1: 5}, {0: "retention.bytes=4096"}),
    ],
)
def test_what_a_topic_may_have_deleted(settings, age, sizes, reasons):
    assert expiry.reasons(settings, age, [0, 1], sizes) == reasons


AHEAD = "retention.ms=3600000 (if a broker's clock is {} s ahead of the job's: see that they agree)"


@pytest.mark.parametrize(
    ("stamped", "age", "why"),
    [
        # brokers ten minutes ahead of the producers delete the first records when they are fifty minutes old
        ("CreateTime", 53 * 60, AHEAD.format(420)),
        ("CreateTime", 1, AHEAD.format("3,599")),
        ("CreateTime", 3600, "retention.ms=3600000"),
        # by their own clocks alone
        ("LogAppendTime", 53 * 60, None),
        ("LogAppendTime", 3600, "retention.ms=3600000"),
    ],
)
def test_a_broker_whose_clock_is_ahead_may_delete_what_looks_young(stamped, age, why):
    found = expiry.reasons(retention("3600000"), age, [0], {}, stamped=stamped)
    assert found == ({0: why} if why else {})


def test_no_clock_explains_what_was_to_stay_for_a_week():
    assert expiry.reasons(retention("604800000"), 600, [0], {}, stamped="CreateTime") == {}


def test_what_is_left_of_a_ledger():
    whole, other = Row(0, 1, 0, ACKED, 0, 9, 100, 109), Row(0, 1, 1, ACKED, 0, 9, 100, 109)
    unknown = Row(0, 1, 0, UNKNOWN, 10, 12)
    later = Row(0, 1, 0, ACKED, 13, 20, 113, 120)
    rows = [whole, other, unknown, later]
    assert expiry.left(rows, {}) == rows
    assert expiry.left(rows, {0: 100}) == rows
    assert expiry.left(rows, {0: 104}) == [
        Row(0, 1, 0, ACKED, 4, 9, 104, 109),
        other,
        unknown,
        later,
    ]
    assert expiry.left(rows, {0: 110}) == [other, unknown, later]
    assert expiry.left(rows, {0: 121, 1: 109}) == [Row(0, 1, 1, ACKED, 9, 9, 109, 109), unknown]


def place(number, start, end, leader=1):
    return Partition(number, leader, (1, 2, 3), (1, 2, 3), start, end, 3)


def test_only_a_first_offset_behind_the_runs_first_has_risen():
    now = {0: place(0, 90, 200), 1: place(1, 101, 200), 3: place(3, 5, 9)}
    assert expiry.begins_later({0: 100, 1: 100, 2: 0}, now) == {1: 101}


def test_what_expired_is_no_gap_and_another_partitions_start_is():
    before, after = (
        {n: place(n, 0, 100) for n in range(2)},
        {n: place(n, 0, 200) for n in range(2)},
    )
    now = {n: place(n, 150, 200) for n in range(2)}
    found = verdict.gaps_at_the_borders(before, after, now, expired={0})
    assert [(each["partition"], each["records"]) for each in found] == [(1, 50)]


@pytest.mark.parametrize(
    "brokers, minutes, forgotten",
    [
        ({1: {"offsets.retention.minutes": "10080"}}, 10_079, False),
        ({1: {"offsets.retention.minutes": "10080"}}, 10_080, True),
        ({1: {"offsets.retention.minutes": "10080"}, 2: {"offsets.retention.minutes": "1"}}, 2, True),
        # nobody may ask
        ({}, 0.5, False),
        ({}, 2, True),
        ({1: {}}, 2, True),
    ],
)  # fmt: skip
def test_when_groups_may_be_forgotten(brokers, minutes, forgotten):
    assert expiry.offsets_forgotten(brokers, minutes * 60) is forgotten


# -- with Kafka


@pytest.fixture(scope="module")
def admin(cluster):
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


@pytest.fixture
def judged(spark, cluster, tmp_path):
    """A function: one mode of the job with options; (exit code, verdict)."""
    import job
    from flow import steps

    def judged(mode, *options):
        where = [f"--bootstrap-servers={cluster.bootstrap_servers}", f"--output={tmp_path}"]
        arguments = job.arguments([mode, *where, f"--ledger={tmp_path}/ledger", *options])
        code = getattr(steps, mode)(arguments)
        path = tmp_path / "verdict.json"
        return code, verdict_schema.read(path) if path.exists() else None

    return judged


def failed(found):
    return {c["id"]: c["count"] for c in found["checks"] if c["status"] == "fail"}


@contextmanager
def others_writing(cluster, topic, partitions):
    """Others write to all partitions meanwhile: one at its leisure, one in transactions, every other one aborted."""
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    plain = Producer(servers)
    careful = Producer({**servers, "transactional.id": f"others-of-{topic}"})
    careful.init_transactions(30)
    over, written = threading.Event(), []

    def write():
        while not over.is_set():
            careful.begin_transaction()
            for number in range(partitions):
                plain.produce(topic, b"somebody else's", partition=number)
                careful.produce(topic, b"in a transaction", key=b"k", partition=number)
            careful.flush(30)
            (careful.abort_transaction if len(written) % 2 else careful.commit_transaction)(30)
            written.append(plain.flush(30))
            over.wait(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(written) > 3, 30, "others write")
        yield
    finally:
        over.set()
        writer.join()


@pytest.mark.soak
def test_a_topic_in_use_is_judged_by_what_the_run_wrote(cluster, admin, judged):
    """Others' records are counted, their transactions' markers are no gap, and what they aborted nobody misses."""
    topic = "in-use"
    admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(30)
    with others_writing(cluster, topic, 3):
        code, found = judged("run", f"--topic={topic}", "--records=6000", "--rate=3000")
    assert (code, failed(found)) == (0, {}), found["summary"]
    others = found["counts"]["others"]
    assert others == found["counts"]["read"] - 6000 and others > 6
    assert f"{others:,} records of others stand between them" in found["summary"]
    assert topic in admin.list_topics(timeout=30).topics


@pytest.mark.soak
def test_what_no_group_is_handed_is_named_though_others_write(cluster, admin, judged, monkeypatch):
    """Others' records make all partitions doubtful; that excuses nobody who hands out what is there."""
    from flow.judge import continuity

    topic = "handed-out"
    admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(30)
    with others_writing(cluster, topic, 3):
        assert judged("produce", f"--topic={topic}", "--records=600", "--rate=300")[0] == 0
    code, found = judged("verify")
    assert code == 0 and found["counts"]["others"] > 3, found["summary"]
    monkeypatch.setattr(continuity, "missed", lambda spans, _seen: {0: [(spans[0][0],) * 2]})
    code, found = judged("verify")
    assert (code, failed(found)) == (1, {"continuity": 2}), found["summary"]


def test_a_long_transaction_of_others_is_waited_for_and_not_accused(
    cluster, admin, judged, monkeypatch
):
    """It hides what was committed behind it, for as long as its brokers allow."""
    from flow.judge import judge

    monkeypatch.setattr(judge, "_TRANSACTION_GRACE", 0)
    topic = "long-transactions"
    admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(30)
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    others = Producer({**servers, "transactional.id": "patient", "transaction.timeout.ms": 600_000})
    others.init_transactions(30)
    others.begin_transaction()
    others.produce(topic, b"part of it", partition=1)
    assert others.flush(30) == 0
    with pytest.raises(CannotRun) as open_still:
        judged(
            "run", f"--topic={topic}", "--records=600", "--transactional", "--delivery-timeout=5"
        )
    assert "begins at offset 0 of partition 1 is open" in str(open_still.value)
    assert "brokers let a transaction take 900 s" in str(open_still.value)
    assert "verify --ledger" in str(open_still.value)
    others.commit_transaction(30)
    # the next one is behind the run's records, and hides none of them
    others.begin_transaction()
    others.produce(topic, b"and of another", partition=1)
    assert others.flush(30) == 0
    code, found = judged("verify")
    others.abort_transaction(30)
    assert (code, failed(found)) == (0, {}), found["summary"]


def test_a_topic_on_one_broker_proves_nothing_of_the_others(admin, judged):
    topic = "on-one-broker"
    admin.create_topics([NewTopic(topic, 1, replica_assignment=[[2]])])[topic].result(30)
    code, found = judged("run", f"--topic={topic}", "--records=600")
    assert (code, failed(found)) == (2, {}), found["summary"]
    assert "brokers 1, 3 acknowledged nothing" in found["unclear"]


@pytest.mark.soak
@pytest.mark.parametrize("settings", [{"retention.ms": "4000"}, {"retention.bytes": "20000"}])
def test_what_a_topic_deletes_by_its_settings_is_no_loss(admin, judged, cluster, settings):
    """All but the last segment of the run's records is deleted before they are judged."""
    from flow.prepare.cluster import Cluster

    topic = "forgetful-" + next(iter(settings)).replace(".", "-")
    short = {"segment.bytes": "16384", **settings}
    admin.create_topics([NewTopic(topic, 3, 3, config=short)])[topic].result(30)
    asked = Cluster({"bootstrap.servers": cluster.bootstrap_servers}, 30)
    assert judged("produce", f"--topic={topic}", "--records=6000", "--rate=6000")[0] == 0
    wait_until(
        lambda: all(each.start > 0 for each in asked.positions(topic).values()), 60, "some are gone"
    )
    code, found = judged("verify")
    assert (code, failed(found)) == (2, {}), found["summary"]
    (name,) = settings
    assert f"were deleted by the topic's {name}={settings[name]}" in found["summary"]
    assert found["counts"]["acked"] == 6000


@pytest.mark.soak
def test_a_large_limit_of_bytes_excuses_no_loss(admin, judged):
    """A partition of a few kilobytes has not deleted anything by a limit of a terabyte."""
    topic = "roomy"
    config = {"retention.bytes": str(10**12), "retention.ms": "-1"}
    admin.create_topics([NewTopic(topic, 3, 3, config=config)])[topic].result(30)
    assert judged("produce", f"--topic={topic}", "--records=600")[0] == 0
    for future in admin.delete_records([TopicPartition(topic, 0, 10)]).values():
        future.result(30)
    code, found = judged("verify")
    assert code == 1 and failed(found)["gap"] == 10 and failed(found)["loss"] == 10


@pytest.mark.soak
def test_a_topic_that_deletes_while_it_is_read_accuses_nobody(cluster, admin, judged):
    """A steady run of 20 s in a topic that keeps 2 s, which others use as well."""
    topic = "keeps-two-seconds"
    config = {"retention.ms": "2000", "segment.ms": "500", "segment.bytes": "16384"}
    admin.create_topics([NewTopic(topic, 3, 3, config=config)])[topic].result(30)
    with others_writing(cluster, topic, 3):
        try:
            code, found = judged("run", f"--topic={topic}", "--duration=20s", "--rate=1000")
        except CannotRun as error:
            assert f"{topic} deletes records by its retention.ms=2000" in str(error)
        else:
            assert (code, failed(found)) == (2, {}), found["summary"]


@pytest.mark.soak
@pytest.mark.parametrize("kraft", [False, True], ids=["zookeeper", "kraft"])
def test_a_cluster_with_small_defaults_is_not_accused(
    spark, port_base, tmp_path_factory, tmp_path, kraft
):
    """Small batches, segments and times, as a cluster for other purposes may have them."""
    import job
    from flow import steps

    from tests.support.bare_cluster import BareCluster

    small = {
        "message.max.bytes": 12_000,
        "log.segment.bytes": 1_048_576,
        "log.roll.ms": 1000,
        "log.retention.ms": 1000,
        "log.retention.check.interval.ms": 500,
        "log.cleanup.policy": "compact,delete",
        "min.insync.replicas": 1,
        "offsets.retention.minutes": 1,
        "offsets.retention.check.interval.ms": 1000,
        "group.max.session.timeout.ms": 15_000,
        "log.cleaner.backoff.ms": 100,
        "log.cleaner.delete.retention.ms": 1,
        "transaction.max.timeout.ms": 60_000,
        "log.message.timestamp.type": "LogAppendTime",
    }
    with BareCluster(
        directory=tmp_path_factory.mktemp("small"),
        port_base=port_base + 300,
        kraft=kraft,
        broker_config=small,
        **({} if kraft else {"zookeepers": 1}),
    ) as running:

        def judged(mode, *options):
            where = [f"--bootstrap-servers={running.bootstrap_servers}", f"--output={tmp_path}"]
            arguments = job.arguments([mode, *where, *options])
            code = getattr(steps, mode)(arguments)
            return code, verdict_schema.read(tmp_path / "verdict.json")

        for number, more in enumerate(
            (
                [],
                ["--transactional", "--delivery-timeout=40"],
                ["--record-size=10000", "--probe=compaction"],
            )
        ):
            ledger = f"--ledger={tmp_path}/{number}"
            code, found = judged("run", ledger, "--records=9000", "--keep", *more)
            # what takes more than a minute, on a busy machine, is longer than these brokers remember groups
            late = "the brokers' offsets.retention.minutes" in found["summary"]
            assert (code, failed(found)) == (2 if late else 0, {}), (more, found["summary"])
        with pytest.raises(CannotRun) as refused:
            judged("run", f"--ledger={tmp_path}/long", "--records=9000", "--transactional")
        assert "transaction.max.timeout.ms allows 60 s; give --delivery-timeout=50" in str(
            refused.value
        )
        wait_until(lambda: _groups(running) == set(), 150, "what groups committed is forgotten")
        code, found = judged("verify", f"--ledger={tmp_path}/0")
        assert (code, failed(found)) == (2, {}), found["summary"]
        assert "older than the brokers' offsets.retention.minutes" in found["summary"]


def _groups(cluster):
    """Names of the groups that the cluster knows."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    listed = admin.list_consumer_groups(request_timeout=30).result(60)
    return {each.group_id for each in listed.valid}
