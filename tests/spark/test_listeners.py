# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other listeners than the run's own: one record to each broker and back, or a broker is named."""

import signal
import threading

import pytest
from confluent_kafka import Producer

from tests.spark.disturbing import accusations, make_whole
from tests.support import verdict_schema
from tests.support.lying_proxy import LyingProxy
from tests.support.outside import free_port


@pytest.fixture
def run(cluster, tmp_path):
    """Run with these listeners besides: (exit code, verdict)."""
    import job
    from flow import steps

    def run(**listeners):
        options = [f"--listener={name}={address}" for name, address in listeners.items()]
        where = [f"--ledger={tmp_path / 'ledger'}", f"--output={tmp_path}", "--records=600"]
        servers = f"--bootstrap-servers={cluster.bootstrap_servers}"
        code = steps.run(job.arguments(["run", servers, *where, "--timeout=6", *options]))
        return code, verdict_schema.read(tmp_path / "verdict.json")

    return run


def test_each_listener_is_written_to_and_read_through(spark, cluster, run):
    with LyingProxy.before_brokers(cluster, (1, 2, 3)):
        code, verdict = run(PROXY=cluster.listener_address("PROXY"), SAME=cluster.bootstrap_servers)
    assert (accusations(verdict), code) == ([], 0)
    assert verdict["summary"].endswith("; each of them answers on PROXY, SAME, too")
    proxy, same = verdict["listeners"]
    assert [each["address"] for each in proxy["brokers"]] == [
        cluster.announced_address("PROXY", number) for number in (1, 2, 3)
    ]
    assert [each["broker"] for each in same["brokers"]] == [1, 2, 3]
    # what was written on the way in is none of the run's records
    assert verdict["counts"]["read"] == 600


def test_a_broker_that_announces_a_wrong_address_is_named(spark, cluster, run, tmp_path):
    """Its clients find the cluster, and cannot write to one broker of it."""
    with LyingProxy.before_brokers(cluster, (1, 3)):
        code, verdict = run(PROXY=cluster.listener_address("PROXY"))
    assert (accusations(verdict), code) == (["coverage"], 1)
    (coverage,) = [check for check in verdict["checks"] if check["id"] == "coverage"]
    (witness,) = coverage["witnesses"]
    wrong = cluster.announced_address("PROXY", 2)
    assert witness["broker"] == 2 and coverage["count"] == 1
    assert f"listener PROXY: nothing could be written through {wrong}" in witness["reason"]
    assert "refused" in witness["reason"]
    page = (tmp_path / "report.html").read_text()
    assert "Other listeners" in page and wrong in page


def test_a_listener_where_nobody_answers_is_named(spark, cluster, run):
    nobody = f"127.0.0.1:{free_port()}"
    code, verdict = run(OUTSIDE=nobody)
    assert (accusations(verdict), code) == (["coverage"], 1)
    (coverage,) = [check for check in verdict["checks"] if check["id"] == "coverage"]
    assert f"listener OUTSIDE at {nobody}: " in coverage["witnesses"][0]["reason"]
    assert "refused" in coverage["witnesses"][0]["reason"]


def test_a_listener_of_another_cluster_is_no_listener(cluster):
    from flow.prepare.listeners import Listener, exercise, troubles

    there = Listener("ELSEWHERE", {"bootstrap.servers": cluster.bootstrap_servers})
    tried = exercise([there], "of-this-cluster", "any", {1: 0}, 10, lambda: [1])
    (witness,) = troubles(tried)
    assert "it leads to another cluster" in witness["reason"]


def test_a_record_that_was_sent_twice_is_there_once(cluster):
    """Followers stand still, and the client gives up waiting and sends it again: a second copy would stand
    behind the place from which the run's records are read."""
    from flow.prepare.cluster import Cluster
    from flow.prepare.listeners import Listener, exercise, troubles

    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    client, topic = Cluster(servers, 30), "sent-twice"
    client.create_topic(topic, [[1, 2, 3]], {})
    cluster_id = client.describe().cluster_id
    here = {
        "bootstrap.servers": f"127.0.0.1:{cluster.broker_port(1)}",
        "request.timeout.ms": 1500,  # the leader's patience with its followers
    }
    brokers = [cluster.broker_instances[number] for number in (2, 3)]
    for broker in brokers:
        broker.signal(signal.SIGSTOP)
    awake = threading.Timer(4, lambda: [broker.signal(signal.SIGCONT) for broker in brokers])
    awake.start()  # before their sessions with ZooKeeper end
    try:
        tried = exercise([Listener("SLOW", here)], cluster_id, topic, {1: 0}, 30, lambda: [1])
    finally:
        awake.join()
        make_whole(cluster)
    assert troubles(tried) == []
    next_one = []  # acknowledged by all replicas, so all before it is there
    writer = Producer({**servers, "acks": "all"})
    writer.produce(
        topic, b"", partition=0, on_delivery=lambda _e, said: next_one.append(said.offset())
    )
    assert writer.flush(30) == 0 and next_one == [1]


@pytest.mark.parametrize(
    "options, words",
    [
        (["--listener=CLIENTS"], "--listener must be NAME=..."),
        (["--listener-config==file"], "--listener-config must be NAME=..."),
        (["--listener=A=h:1", "--listener-config=B=f"], "--listener-config of B, but no such"),
    ],
)
def test_a_listener_that_cannot_be_meant_is_refused(capsys, options, words):
    import job

    known = ["run", "--bootstrap-servers=h:1", "--ledger=l", "--output=o"]
    with pytest.raises(SystemExit) as refused:
        job.arguments([*known, *options])
    assert refused.value.code == 3 and words in capsys.readouterr().err
