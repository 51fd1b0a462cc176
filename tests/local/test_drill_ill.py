# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/drill.yml where the cluster is ill, or the run does not reach all of it: the table tells the truth."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time

import pytest

from tests.local.drilling import drilled, kept
from tests.local.support import LocalCluster
from tests.local.watching import leftovers
from tests.support.outside import wait_until
from tests.support.slow_proxy import SlowProxy
from tests.support.watching import cluster_is_whole

TOPIC = "kafkaops-drill-broadcast"


@pytest.fixture(name="unsafe", scope="module")
def _unsafe(next_offset):
    """A cluster whose brokers take one replica in sync for enough, and let one lead that lags."""
    with LocalCluster(next_offset()) as running:
        running.set_brokers({"min.insync.replicas": 1, "unclean.leader.election.enable": True})
        running.deploy()
        yield running


@pytest.mark.soak
def test_drills_of_a_cluster_that_promises_less_say_so(unsafe):
    """Their topics ask for more than its defaults, but for the elections: nothing is lost, and it is said of what."""
    rows = drilled(
        unsafe,
        "leader_killed,below_min_isr",
        told="defaults are min ISR 1, unclean election on",
    )
    below = rows["below_min_isr"]["seen"]
    assert below["refused"]["NOT_ENOUGH_REPLICAS"] > 0 and below["unprotected"] == 0
    run = unsafe.play("drill.yml", "-e", "drill=leader_killed", "--check")
    said = " ".join(run.text.split())
    assert "(3 replicas, min ISR 2, unclean election on)" in said, run.text


@pytest.mark.soak
def test_a_broker_that_hangs_for_its_disk_is_a_pause_that_is_not_as_expected(unsafe):
    """SIGSTOP stands for a disk that answers nothing: shorter than the session, so that nobody else leads."""
    with unsafe.playing("drill.yml", "-e", "drill=broadcast") as (process, log):

        def end():
            try:
                found = unsafe.log(TOPIC, 0)
            except Exception:
                return 0
            return len(found)

        def flows():
            """As fast as only the load that is measured is."""
            before = end()
            time.sleep(0.5)
            return process.poll() is not None or before and end() - before > 10 * 60

        wait_until(flows, 300, "the load flows")
        assert process.poll() is None, log.read_text()[-5000:]
        leader = unsafe.partitions(TOPIC)[0][0]
        (name,) = [name for name, broker in unsafe.brokers.items() if broker == leader]
        pid = unsafe.process(name).pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(12)
        os.kill(pid, signal.SIGCONT)
        process.wait(300)
        text = log.read_text()
    (row,) = kept(unsafe)[-1]["drills"]
    assert process.returncode == 2 and row["verdict"] == "NOT as expected", text[-5000:]
    assert row["pause_ms"] >= 11000
    assert any("is longer than 10 s" in each for each in row["wrong"]), row["wrong"]
    # late is not lost, which the judge says, too
    assert row["seen"]["lost"] == 0 and "judge: 0 of " in row["observed"]
    wait_until(lambda: cluster_is_whole(unsafe), 180, "all replicas are in sync")
    assert leftovers(unsafe) == []


def told_truly(row):
    """Where nothing was lost nothing is called so, whatever else was not as expected; and that is said."""
    assert row["seen"]["lost"] == 0 and "judge: 0 of " in row["observed"], row
    said = [*row["wrong"], *row["open"]]
    assert not any(" lost" in each or "never" in each for each in said), said
    assert bool(said) is (row["verdict"] != "as expected"), row


DELAY_SECONDS = 1.2


@pytest.fixture(name="far")
def _far(next_offset):
    """A cluster whose clients go through proxies, with the proxies: brokers reach each other without."""
    with LocalCluster(next_offset()) as running, contextlib.ExitStack() as stack:
        port = "{{ 9091 + local_index | int + local_port_offset | int }}"
        inside = "{{ 9100 + local_index | int + local_port_offset | int }}"
        here = {"bind": "127.0.0.1", "protocol": "PLAINTEXT"}
        running.configure(
            "kafka",
            kafka_inter_broker_listener="INSIDE",
            kafka_admin_listener="LOCAL",
            kafka_listeners=[
                {"name": "LOCAL", "port": port, "advertised": "127.0.0.2", "audience": ["clients"]}
                | here,
                {"name": "INSIDE", "port": inside, "advertised": "127.0.0.1"}
                | {"audience": ["brokers"], **here},
            ],
        )
        ports = [running.port(name) for name in running.brokers]
        proxies = [SlowProxy(("127.0.0.2", port), ("127.0.0.1", port)) for port in ports]
        for proxy in proxies:
            stack.enter_context(proxy)
        running.deploy()
        yield running, proxies


@pytest.mark.soak
def test_a_slow_network_before_the_brokers_is_not_taken_for_what_they_do(far):
    """Each request takes more than a second, as through a proxy far away: what was lost, who led, is told as it was."""
    cluster, proxies = far
    before = cluster.processes()
    for proxy in proxies:
        proxy.delay_seconds = DELAY_SECONDS
    run = cluster.play("drill.yml", "-e", "drill=leader_killed", code=None, timeout=2400)
    for proxy in proxies:
        proxy.delay_seconds = 0.0
    found = kept(cluster)
    if not found:  # refused before anything was done, which a slow network may be a reason for
        said = " ".join(run.text.split())
        assert re.search(r"\[[a-z_]+\.[a-z_]+\] .*Remedy: ", said), run.text
        assert cluster.processes() == before
        return
    (row,) = found[-1]["drills"]
    told_truly(row)
    # who leads is seen, although each look takes so long
    assert re.search(r"^\d led after ", row["observed"]), row
    assert re.fullmatch(r"kafka-\d killed", row["done"]), row
    assert row["pause_ms"] >= 1000 * DELAY_SECONDS
    wait_until(lambda: cluster_is_whole(cluster), 180, "all replicas are in sync")
    assert leftovers(cluster) == []


@pytest.mark.soak
def test_a_run_on_some_hosts_refuses_what_would_hit_another_and_does_the_rest(cluster):
    """Drills hit the broker with the lowest id that is not the controller: never the third of three."""
    before, limit = cluster.processes(), ("--limit", "kafka-3")
    run = cluster.play(
        "drill.yml", "-e", "drill=leader_stopped,broadcast", *limit, code=2, timeout=1200
    )
    stopped, broadcast = kept(cluster)[-1]["drills"]
    assert stopped["verdict"] == "open" and stopped["done"] == "nothing"
    assert "[drill.not_reached]" in stopped["open"][0] and "without --limit" in run.text
    assert broadcast["verdict"] == "as expected"
    assert cluster.processes() == before and leftovers(cluster) == []
