# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An unclean election while the run goes on: the run itself writes over what was lost."""

import contextlib
import threading

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from flow.prepare.cluster import Cluster

from tests.spark.disturbing import appended, make_whole
from tests.support import verdict_schema
from tests.support.outside import wait_until


@pytest.mark.soak
@pytest.mark.parametrize("more", [[], ["--producer-property=compression.type=lz4"]])
def test_loss_by_an_unclean_election_during_the_run_is_told_as_that(spark, cluster, tmp_path, more):
    """Broker 1 alone acknowledges for a while, dies, and 2 or 3 take the lead without that."""
    import job
    from flow import steps

    servers, topic = cluster.bootstrap_servers, f"unclean-meanwhile-{len(more)}"
    config = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    new = NewTopic(topic, 3, replica_assignment=[[1, 2, 3]] * 3, config=config)
    admin = AdminClient({"bootstrap.servers": servers})  # kept: its end would end the request
    admin.create_topics([new])[topic].result(30)
    brokers, asked = cluster.broker_instances, Cluster({"bootstrap.servers": servers}, 60)
    alone: list = []  # how many partition 0 had, when 1 was alone and when it died

    def disturb():
        wait_until(lambda: appended(cluster, tmp_path / "ledger") > 300, 60, "records flow")
        for number in (2, 3):
            brokers[number].kill()
        wait_until(
            lambda: {each["isr"] for each in asked.layout(topic).values()} == {(1,)},
            60,
            "1 is alone",
        )
        wait_until(lambda: set(asked.describe().brokers) == {1}, 60, "2 and 3 are forgotten")
        alone.append(appended(cluster, tmp_path / "ledger"))
        wait_until(
            lambda: appended(cluster, tmp_path / "ledger") > alone[0] + 600, 60, "1 writes on"
        )
        brokers[1].kill()
        for number in (2, 3):
            brokers[number].start()

    def disturb_and_end():
        with contextlib.suppress(Exception):  # then nothing was disturbed, and that is found below
            disturb()

    where = [f"--bootstrap-servers={servers}", f"--ledger={tmp_path}/ledger"]
    options = [f"--topic={topic}", "--duration=60s", "--rate=900", "--groups=0", *more]
    disturber = threading.Thread(target=disturb_and_end)
    disturber.start()
    try:
        code = steps.run(job.arguments(["run", *where, f"--output={tmp_path}", *options]))
    finally:
        disturber.join()
        make_whole(cluster)
    found = verdict_schema.read(tmp_path / "verdict.json")
    failed = {c["id"]: c for c in found["checks"] if c["status"] == "fail"}
    assert alone, "nothing was disturbed"
    assert code == 1, found["summary"]
    assert failed["loss"]["count"] > 300 and "corrupt" not in failed, found["summary"]
    assert "an unclean election" in found["summary"]
