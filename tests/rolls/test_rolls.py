# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changed settings: one restart at a time, the leader last, and what fails is put back."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from kazoo.exceptions import NoNodeError

from tests.local.watching import changed, led_by_others, modes, zookeeper
from tests.support.load import Load
from tests.support.outside import wait_until
from tests.support.watching import Watch, cluster_is_whole

TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync


@pytest.fixture
def rolling(cluster):
    """The shared cluster. Its settings change from test to test, and stay changed."""
    return cluster


def staged(cluster, name):
    """Tell whether another generation than the current one is to be started next."""
    conf = cluster.instance(name) / "conf"
    return os.readlink(conf / "next") != os.readlink(conf / "current")


def move_controller(cluster, broker):
    """Have the brokers elect their controller anew until it is this one."""
    with zookeeper(cluster) as client:

        def moved():
            with contextlib.suppress(NoNodeError):
                if json.loads(client.get("/controller")[0])["brokerid"] == broker:
                    return True
                client.delete("/controller")
            return False

        # who is the fastest is chance, and slow on a machine that has much else to do
        wait_until(moved, 120, f"broker {broker} is the controller")


def test_a_changed_broker_setting_survives_an_interruption_and_rolls(rolling):
    """Killed when everything is staged; still pending; then rolled with full ISR, nothing lost.

    When the first broker is back the controller moves to the one whose turn comes next: it is put off.
    """
    before = rolling.processes()
    rolling.set_brokers({"log.retention.check.interval.ms": 299000})
    with rolling.playing("site.yml", "-e", "flow_validation=never") as (process, log):
        wait_until(
            lambda: all(staged(rolling, name) for name in rolling.brokers)
            or process.poll() is not None,
            300,
            "staged",
        )
        assert process.poll() is None, log.read_text()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
    assert rolling.processes() == before, "the configuration of what runs was left alone"
    status = " ".join(rolling.play("status.yml").text.split())  # long lines are wrapped
    for name in rolling.brokers:
        assert (
            f"{name}: server.properties: log.retention.check.interval.ms (unset) -> 299000"
            in status
        ), status

    controller = rolling.name_of(
        wait_until(lambda: cluster_is_whole(rolling), 60, "whole").controller
    )
    first, second = (name for name in sorted(rolling.brokers) if name != controller)
    with Load(rolling, TOPIC, "rolling restart") as load, ThreadPoolExecutor(1) as pool:
        playing = pool.submit(rolling.deploy, "-v")
        wait_until(lambda: load.watch.is_back(first) or playing.done(), 300, f"{first} is back")
        move_controller(rolling, rolling.brokers[second])
        run = playing.result()
    order = load.watch.check()
    assert changed(before, rolling.processes()) == set(rolling.brokers), "ZooKeeper was left alone"
    assert order == [first, controller, second], (load.watch.events, load.watch.reasons)
    assert "log.retention.check.interval.ms (unset) -> 299000" in " ".join(
        run.text.split()
    ), "it says why it restarts"
    assert led_by_others(rolling) == [], "Kafka itself would take five minutes"
    # 0.02 to 0.04 s with a load of 40. The bound is for what takes its own time, such as a wait.
    stops = sigterms(rolling)
    gaps = from_answer_to_sigterm(stops, run.text)
    print(f"from the brokers' last answer to SIGTERM: {gaps} s")
    assert len(gaps) == 3 and max(gaps.values()) < 15, gaps
    between = from_whole_to_sigterm(stops, load.watch)
    print(f"from all in sync to the next SIGTERM, of which 3 s are the quiet time: {between} s")
    assert len(between) == 2, (load.watch.events, load.watch.times, stops)
    run = rolling.deploy()
    assert run.changed() == 0, run.text


def sigterms(cluster):
    """Broker's name -> when it got its last SIGTERM by its own log, in seconds since the epoch."""
    found = {}
    for name in cluster.brokers:
        log = (cluster.instance(name) / "logs" / "server.log").read_text(errors="replace")
        when = re.findall(r"\[([^\]]+)\] INFO Terminating process due to signal SIGTERM", log)[-1]
        found[name] = datetime.strptime(when, "%Y-%m-%d %H:%M:%S,%f").timestamp()
    return found


def from_answer_to_sigterm(stops, text):
    """Seconds from the last look at the cluster before a turn, in the output of -v, to SIGTERM."""
    # as YAML, which ansible.cfg sets
    looks = [int(number) / 1000 for number in re.findall(r"\blooked_ms: (\d+)", text)]
    return {
        name: round(stop - max(look for look in looks if look <= stop + 0.0015), 3)
        for name, stop in stops.items()
    }


def from_whole_to_sigterm(stops, watch):
    """Seconds from when a bystander saw all in sync again to the next SIGTERM: what a turn takes that is ours."""
    whole = [at for (kind, _what), at in zip(watch.events, watch.times) if kind == "whole"]
    return {
        name: round(stop - max(at for at in whole if at <= stop), 1)
        for name, stop in stops.items()
        if stop > min(stops.values())
    }


@pytest.mark.soak
def test_a_changed_zookeeper_setting_rolls_the_ensemble_alone(rolling):
    before = rolling.processes()
    (leader,) = [name for name, mode in modes(rolling).items() if mode == "leader"]
    rolling.configure("zookeeper", zookeeper_config={"maxClientCnxns": 123})
    planned = rolling.play("rolling_restart.yml", "--check")
    assert set(re.findall(r"server (\d) may stop now", planned.text)) == {"1", "2", "3"}
    with Watch(rolling) as watch:
        rolling.play("rolling_restart.yml")
    order = watch.check()
    assert sorted(order) == sorted(rolling.zookeepers) and order[-1] == leader
    assert changed(before, rolling.processes()) == set(
        rolling.zookeepers
    ), "brokers were left alone"
    wait_until(lambda: cluster_is_whole(rolling), 60, "every broker keeps its session")
    again = rolling.play("rolling_restart.yml")
    assert again.changed() == 0, again.text


def test_a_setting_that_the_broker_refuses_is_put_back_at_the_first(rolling):
    """It passes the tables, as every class name does; the broker does not find the class."""
    before = rolling.processes()
    rolling.set_brokers({"metric.reporters": "no.such.Reporter"})
    failed = rolling.play("site.yml", "-e", "flow_validation=never", code=2)
    (victim,) = changed(before, rolling.processes())
    assert victim in rolling.brokers and rolling.process(victim), "one tried, and runs again"
    conf = rolling.instance(victim) / "conf"
    assert "no.such.Reporter" not in (conf / "current" / "server.properties").read_text()
    assert re.search(rf"{victim} does not start", failed.text), failed.text
    assert (
        "no.such.Reporter" in failed.text.split(f"{victim} does not start")[1]
    ), "the log's last lines"
    assert "The previous configuration was put back and is running again" in failed.text
    wait_until(lambda: cluster_is_whole(rolling), 120, "all three brokers serve")

    before = rolling.processes()
    rolling.set_brokers({"metric.reporters": None})
    rolling.deploy()
    assert rolling.processes() == before, "nothing is pending any more, so nothing restarts"
    assert rolling.deploy().changed() == 0
