# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The brokers' disks are asked before a large run writes."""

import shutil

import pytest
from confluent_kafka.admin import AdminClient
from flow import room
from flow.cluster import CannotRun

from tests.support.outside import wait_until

GIB = 2**30


@pytest.mark.parametrize(
    "usable, partitions, records, said",
    [
        (100 * GIB, (0, 1), 2000, ""),
        (None, (0, 1), 10**8, ""),
        # 1000 records of 1,000,012 bytes for each of two partitions
        (2 * GIB, (0, 1), 2000, "broker 1 has 2.0 GiB free in /d and would get 1.9 GiB"),
        (2 * GIB, (0,), 2000, ""),
        (0, (), 2000, ""),
    ],
)
def test_what_a_disk_gets_must_fit(usable, partitions, records, said):
    disks = [room.Disk(1, "/d", usable, partitions), room.Disk(2, "/e", 10**15, (0, 1))]
    assert room.shortage(disks, records, 1_000_000, 2) == said


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
