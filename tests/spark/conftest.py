# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One Spark session for all tests of the validation job, and one real cluster for those that need
it.
"""

import os
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
JOB = CHECKOUT / "roles" / "flow_validation" / "files" / "job.py"
sys.path[:0] = [str(JOB.parent), str(CHECKOUT)]
# Python workers import the package from here, too
os.environ["PYTHONPATH"] = os.pathsep.join([str(JOB.parent), os.environ.get("PYTHONPATH", "")])


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session as the job starts it, with the Kafka connector; a task may fail once."""
    from flow.engine import session

    started = session.start(
        "local[2, 2]", session.prepare_java(""), str(tmp_path_factory.mktemp("spark"))
    )
    yield started
    session.stop()


@pytest.fixture(autouse=True)
def left_whole(request):
    """Fail the test that leaves a broker dead, instead of all that follow it."""
    yield
    if "cluster" not in request.fixturenames:
        return
    cluster = request.getfixturevalue("cluster")
    dead = [each.name for each in cluster.broker_instances.values() if not each.running()]
    if dead:
        from tests.spark.disturbing import make_whole

        make_whole(cluster)
        pytest.fail(f"left dead: {dead}")


@pytest.fixture(scope="session")
def port_base():
    """Of the cluster that all tests share. Others of one broker are at +150 (KRaft), +200, +250, +300."""
    return int(os.environ.get("KAFKAOPS_TEST_PORT_BASE", "30000"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory, port_base):
    """Three brokers started by hand."""
    from tests.support.bare_cluster import BareCluster

    with BareCluster(
        directory=tmp_path_factory.mktemp("cluster"),
        port_base=port_base,
        zookeepers=1,
        extra_listeners={"PROXY": "PLAINTEXT"},
        proxied=("PROXY",),
        broker_config={
            "zookeeper.session.timeout.ms": 6000,
            # how often it looks for transactions that nobody ends
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
            # for probes, which wait for what brokers do every so often
            "log.cleaner.backoff.ms": 500,
            "log.retention.check.interval.ms": 1000,
            "log.initial.task.delay.ms": 1000,
        },
    ) as running:
        yield running
