# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Between the gate's pass and the stop of a member the cluster changes: the member is not stopped."""

from __future__ import annotations

import sys

import pytest

from tests.local.support import PLAY_TIMEOUT
from tests.local.watching import changed, ensemble_is_whole, zookeeper_mode
from tests.support.outside import wait_until
from tests.support.watching import cluster_is_whole

TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync
# Whatever Ansible starts on the host waits while `hold` is there, and says so.
PYTHON = """#!/bin/sh
if [ -e {place}/hold ]; then
  touch {place}/held
  while [ -e {place}/hold ]; do sleep 0.05; done
fi
exec {python} "$@"
"""


@pytest.fixture
def held(cluster, tmp_path, request):
    """Where a file `hold` keeps the next module on a host (the parameter, with its variables) from its beginning.

    With the variable `kafka_admin_python` another Python than Ansible's asks.
    """
    name, variables = request.param
    python, other = tmp_path / "python", tmp_path / "other"
    python.write_text(PYTHON.format(place=tmp_path, python=sys.executable))
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for each in (python, other):
        each.chmod(0o755)
    if "kafka_admin_python" in variables:
        variables = {**variables, "kafka_admin_python": str(other)}
    cluster.configure(name, ansible_python_interpreter=str(python), **variables)
    try:
        yield tmp_path
    finally:
        (tmp_path / "hold").unlink(missing_ok=True)
        (cluster.overlay / "host_vars" / f"{name}.yml").unlink()
        cluster.play("start.yml")
        wait_until(lambda: cluster_is_whole(cluster), 120, "whole again")


def says(process, log, words):
    """Whether a run that goes on has said it."""
    assert process.poll() is None or words in log.read_text(), log.read_text()
    return words in log.read_text()


BOTH = pytest.mark.parametrize("comes_back", [False, True], ids=["stays away", "comes back"])


@pytest.mark.soak
@BOTH
@pytest.mark.parametrize(
    "held",
    [("kafka-2", {}), ("kafka-2", {"kafka_admin_python": None})],
    indirect=True,
    ids=["kafka-2", "kafka-2, asked by a module"],
)
def test_a_broker_is_lost_behind_the_gate(cluster, held, comes_back):
    """Two of three replicas must be in sync, and with kafka-3 gone kafka-2 may not stop.

    The gate has passed, and the module that stops kafka-2 has been called. It ends with the words of the gate, or
    goes on where the other one is back in time.
    """
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    before = cluster.processes()
    arguments = ("-e", "broker=2", "-e", f"kafka_wait_timeout_seconds={120 if comes_back else 15}")
    with cluster.playing("rolling_restart.yml", *arguments) as (process, log):
        # Of a task Ansible shows the name with its first result: this one only includes the gate, with its quiet time.
        wait_until(lambda: says(process, log, "Ask whether this broker may stop"), 300, "its turn")
        (held / "hold").touch()
        wait_until(
            lambda: says(process, log, "Wait until this broker may stop"),
            120,
            "the gate has passed",
        )
        wait_until((held / "held").exists, 120, "the module that stops it")
        cluster.supervisorctl("stop", "kafka-3")
        wait_until(
            lambda: all(3 not in isr for *_rest, isr in cluster.partitions(TOPIC).values()),
            120,
            "broker 3 is gone",
        )
        (held / "hold").unlink()
        wait_until(
            lambda: says(process, log, "broker 2: it may not stop any more: "),
            120,
            "it was asked again",
        )
        assert cluster.process("kafka-2") == before["kafka-2"]
        if comes_back:
            cluster.supervisorctl("start", "kafka-3")
        process.wait(PLAY_TIMEOUT)
        text = " ".join(log.read_text().split())  # long lines are wrapped
    if comes_back:
        assert process.returncode == 0, text
        assert changed(before, cluster.processes()) == {"kafka-2", "kafka-3"}
    else:
        assert process.returncode == 2, text
        assert "[gate.waiting] broker 2: waited 15 s, and it may not be stopped yet: " in text
        assert "not registered: broker 3" in text and "It was not stopped" in text
        assert cluster.process("kafka-2") == before["kafka-2"]
    assert not list((cluster.instance("kafka-2") / "conf").glob(".*-stop-*"))


@pytest.mark.soak
@BOTH
@pytest.mark.parametrize(
    "held",
    [("zookeeper-2", {"zookeeper_config": {"maxClientCnxns": 124}})],
    indirect=True,
    ids=["zookeeper-2"],
)
def test_a_zookeeper_server_is_lost_behind_the_gate(cluster, held, comes_back):
    """Without zookeeper-3 the first server has no quorum alone, so that zookeeper-2 may not stop."""
    wait_until(lambda: ensemble_is_whole(cluster), 120, "whole before")
    before = cluster.processes()
    limit = "zookeeper_wait_timeout_seconds=" + ("120" if comes_back else "15")
    arguments = ("--limit", "zookeeper-2", "-e", limit)
    with cluster.playing("rolling_restart.yml", *arguments) as (process, log):
        # Until it is stopped no other module runs on its host.
        wait_until(lambda: says(process, log, "Restart of "), 300, "its turn")
        (held / "hold").touch()
        wait_until((held / "held").exists, 120, "the module that stops it")
        assert says(process, log, "Wait until the other servers have a quorum without this one")
        cluster.supervisorctl("stop", "zookeeper-3")
        (held / "hold").unlink()
        wait_until(
            # where server 3 was the leader, the two others have no quorum for a moment, and are named, too
            lambda: says(process, log, "server 2: it may not stop any more: "),
            120,
            "it was asked again",
        )
        assert cluster.process("zookeeper-2") == before["zookeeper-2"]
        assert zookeeper_mode(cluster, "zookeeper-2")
        if comes_back:
            cluster.supervisorctl("start", "zookeeper-3")
        process.wait(PLAY_TIMEOUT)
        text = " ".join(log.read_text().split())  # long lines are wrapped
    if comes_back:
        assert process.returncode == 0, text
        assert changed(before, cluster.processes()) == {"zookeeper-2", "zookeeper-3"}
    else:
        assert process.returncode == 2, text
        assert "[gate.waiting] server 2: waited 15 s, and it may not be stopped yet: " in text
        assert "1 of 3 serve without server 2, 2 are needed. It was not stopped" in text
        assert cluster.process("zookeeper-2") == before["zookeeper-2"]
    assert not list((cluster.instance("zookeeper-2") / "conf").glob(".*-stop-*"))


@pytest.mark.soak
@pytest.mark.parametrize(
    "held",
    [("kafka-3", {"kafka_host_config": {"num.io.threads": 5}, "kafka_dynamic_changes": False})],
    indirect=True,
    ids=["kafka-3"],
)
def test_a_broker_comes_back_before_those_that_are_down_start(cluster, held):
    """It was seen down when its configuration was staged, and runs again when the module comes to start it.

    Then it is no broker that is down: it goes through the gate as any other.
    """
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    before = cluster.processes()
    cluster.supervisorctl("stop", "kafka-3")
    (held / "hold").touch()
    with cluster.playing("rolling_restart.yml", "-v") as (process, log):
        # Staging is the controller's own work here: the first module on the host is that which starts.
        wait_until((held / "held").exists, 300, "the module that starts it")
        cluster.supervisorctl("start", "kafka-3")
        wait_until(lambda: cluster_is_whole(cluster), 120, "back by itself")
        back = cluster.process("kafka-3")
        (held / "hold").unlink()
        process.wait(PLAY_TIMEOUT)
        text = " ".join(log.read_text().split())
    assert process.returncode == 0, text
    assert changed(before, cluster.processes()) == {"kafka-3"}
    assert cluster.process("kafka-3") != back, "it has restarted in its turn"
    assert text.count("done: restarted") == 1 and "looked_ms" in text, text
    assert text.index("Ask whether this broker may stop") < text.index("done: restarted")
