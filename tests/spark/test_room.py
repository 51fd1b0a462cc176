# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The brokers' disks are asked before a large run writes."""

import shutil
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from flow.engine import session
from flow.messages.failure import CannotRun
from flow.prepare import room
from flow.write import blocks

from tests.support.outside import wait_until

GIB = 2**30


@pytest.mark.parametrize(
    "usable, partitions, records, said",
    [
        (100 * GIB, (0, 1), 2000, ""),
        (None, (0, 1), 10**8, ""),
        # 1000 records of 1,000,073 bytes for each of two partitions
        (2 * GIB, (0, 1), 2000, "broker 1 has 2.0 GiB free in /d and would get 1.9 GiB"),
        (2 * GIB, (0,), 2000, ""),
        (0, (), 2000, ""),
    ],
)
def test_what_a_disk_gets_must_fit(usable, partitions, records, said):
    disks = [room.Disk(1, "/d", usable, partitions), room.Disk(2, "/e", 10**15, (0, 1))]
    assert room.shortage(disks, records, 1_000_000, 2, 1) == said


@pytest.mark.parametrize(
    ("rate", "turn", "gib"),
    [
        (50, 1, "20.9 GiB"),  # six partitions: no two records of one come within a turn
        (1200, 20, "13.9 GiB"),
        (0, 8192, "13.5 GiB"),
    ],
)
def test_records_that_come_one_by_one_need_room_for_their_batches(rate, turn, gib):
    asked = {"transaction_records": 0, "record_size": 100, "rate": rate, "partitions": 6}
    assert blocks.turn_of(asked, 6) == turn
    assert room.size(room.needed(50 * 30 * 86_400, 100, turn)) == gib


@pytest.mark.parametrize(
    "wanted, free, short",
    [
        (8 * 10**7, {"/a": 0}, False),  # not worth a word
        (8 * 10**9, {}, False),  # elsewhere
        (8 * 10**9, {"/a": 9 * 10**9}, False),
        (8 * 10**9, {"/a": 8 * 10**9}, True),
        (8 * 10**9, {"/a": 8 * 10**9, "/b": 10**9}, False),
    ],
)
def test_what_is_sorted_must_fit(wanted, free, short):
    assert bool(room.sorting_shortage("it", wanted, free)) == short


@pytest.mark.parametrize(
    ("place", "named"),
    [(f"/big/{session.WORK}x", "/big"), (f"/big/{session.WORK}x/below", None), ("/big", None)],
)
def test_a_directory_that_goes_with_the_run_is_not_named(place, named, monkeypatch):
    """The job gives Spark one of its own below what a person has given."""
    monkeypatch.setattr(room.shutil, "disk_usage", lambda where: SimpleNamespace(free=len(where)))
    java = SimpleNamespace(Utils=SimpleNamespace(getConfiguredLocalDirs=lambda _conf: [place]))
    jvm = SimpleNamespace(
        org=SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(util=java)))
    )
    scala = SimpleNamespace(sc=lambda: SimpleNamespace(conf=lambda: None))
    context = SimpleNamespace(master="local[2]", _jsc=scala, _jvm=jvm)
    found = room._spark_directories(SimpleNamespace(sparkContext=context))
    assert found == {named or place: len(place)}


def test_records_in_doubt_that_do_not_fit_are_not_named_and_the_ledger_stays(
    spark, cluster, tmp_path, monkeypatch, capfd
):
    """The first verdict says how to come to a second one; with room that one names the record."""
    import job
    from flow import steps

    servers, output = f"--bootstrap-servers={cluster.bootstrap_servers}", f"--output={tmp_path}"
    ledger = f"--ledger={tmp_path / 'ledger'}"
    sizes = ("--records=3000", "--partitions=3", "--topic=in-doubt")
    assert steps.produce(job.arguments(["produce", servers, ledger, *sizes])) == 0
    intruder = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    intruder.produce("in-doubt", b"somebody else's", partition=1)
    assert intruder.flush(30) == 0
    verify = job.arguments(["verify", servers, ledger, output])
    with monkeypatch.context() as patch:
        patch.setattr(room, "_NAMED_BYTES", 2**50)
        with pytest.raises(CannotRun) as refused:
            steps.verify(verify)
    assert "counting is not a proof for 1 of the partitions of in-doubt" in str(refused.value)
    assert "to look at 1,001 records one by one takes" in str(refused.value)
    assert f"verify --ledger {tmp_path / 'ledger'}" in str(refused.value)
    assert "note: should records be in doubt: to look at 3,000 records" in capfd.readouterr().err
    assert steps.verify(verify) == 1
    assert "in doubt" not in capfd.readouterr().err


def test_a_run_that_no_disk_can_hold_is_refused_and_leaves_no_topic(spark, cluster, tmp_path):
    """With what the brokers themselves say is free."""
    import job
    from flow import steps

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    def topics():
        return {name for name in admin.list_topics(timeout=30).topics if "kafkaops-flow" in name}

    before = topics()
    free = shutil.disk_usage(cluster.log_directory(1)).free
    records = 3 * free // 100_000
    where = [f"--ledger={tmp_path / 'ledger'}", f"--output={tmp_path}", "--partitions=6"]
    servers = f"--bootstrap-servers={cluster.bootstrap_servers}"
    much = [f"--records={records}", "--record-size=100000"]
    with pytest.raises(CannotRun) as refused:
        steps.run(job.arguments(["run", servers, *where, *much]))
    for broker in (1, 2, 3):
        place = cluster.log_directory(broker)
        assert f"broker {broker} has {room.size(free)[:2]}" in str(refused.value)
        assert f"free in {place} and would get" in str(refused.value)
    wait_until(lambda: topics() == before, 30, "the run's topic is gone")


def test_a_cluster_that_does_not_tell_is_no_obstacle(spark):
    with pytest.raises(CannotRun):
        settings = {"default.api.timeout.ms": "1000", "request.timeout.ms": "1000"}
        room.disks(spark, "127.0.0.1:1", settings, "none", {0: (1,)}, 5)
