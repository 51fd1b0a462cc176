# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An ensemble of three servers becomes one of five and one of three again, while a client writes; nothing is lost."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess

import pytest
import yaml
from confluent_kafka.admin import NewTopic

from tests.local.proof import labels, proven
from tests.local.support import LocalCluster
from tests.local.watching import (
    changed,
    ensemble_is_whole,
    modes,
    zookeeper,
    zookeeper_mode,
    zookeeper_port,
    zookeeper_says,
)
from tests.support.outside import ask_zookeeper, create_topics, mode_of, wait_until
from tests.support.traffic import Traffic
from tests.support.watching import Watch, cluster_is_whole

TOPIC = "orders"  # of inventories/local: three replicas, of which two must be in sync
NEVER = ("-e", "flow_validation=never")
NEW = ["zookeeper-4", "zookeeper-5"]


@contextlib.contextmanager
def with_new(cluster):
    """The inventory with two servers more."""
    hosts = cluster.overlay / "hosts.yml"
    before = hosts.read_text()
    new = {name: {"zookeeper_myid": int(name[-1])} for name in NEW}
    hosts.write_text(yaml.safe_dump({"all": {"children": {"zookeeper": {"hosts": new}}}}))
    cluster.zookeepers += NEW
    try:
        yield
    finally:
        hosts.write_text(before)
        cluster.zookeepers[:] = [name for name in cluster.zookeepers if name not in NEW]


def listed(cluster, name):
    """The ids of the list that a server has in effect, as it says itself."""
    found = re.findall(r"^server\.(\d+)=", zookeeper_says(cluster, name, "conf"), re.MULTILINE)
    return sorted(int(number) for number in found)


def have_one_list(cluster, numbers):
    """Whether these servers serve, and each of them lists exactly these."""
    lists = {name: listed(cluster, name) for name in cluster.zookeepers if int(name[-1]) in numbers}
    return all(each == numbers for each in lists.values()) and len(lists) == len(numbers)


def connect_strings(cluster):
    """What the brokers were told of the ensemble, by the configuration that they run with."""
    texts = [
        (cluster.instance(name) / "conf" / "current" / "server.properties").read_text()
        for name in cluster.brokers
    ]
    return {re.search(r"^zookeeper\.connect=(.*)$", text, re.MULTILINE)[1] for text in texts}


@pytest.mark.soak
def test_more_servers_are_planned_and_nothing_but_the_playbook_for_it_adds_them(cluster):
    before = cluster.processes()
    with with_new(cluster):
        refused = cluster.play("site.yml", "--check", *NEVER, code=2).text
        assert "[ensemble.server_list]" in refused and "playbooks/scale_zookeeper.yml" in refused
        planned = cluster.play("scale_zookeeper.yml", "--check").text
        assert "start server 4 with the list {1, 2, 3, 4}" in planned, planned
        assert "start server 5 with the list {1, 2, 3, 4, 5}" in planned, planned
        # the brokers restart last, and what keeps them from it is known before
        create_topics(cluster.client(), [NewTopic("alone", 1, replica_assignment=[[3]])])
        refused = cluster.play("scale_zookeeper.yml", code=2).text
        assert "[gate.cannot_pass]" in refused and "alone" in refused, refused
        assert have_one_list(cluster, [1, 2, 3])
        assert {**before, **dict.fromkeys(NEW)} == cluster.processes()
    admin = cluster.admin()  # its answers end with it
    admin.delete_topics(["alone"])["alone"].result(30)
    cluster.deploy()
    assert cluster.processes() == before


@pytest.mark.soak
def test_the_client_port_changes_only_while_nothing_runs(next_offset):
    """Brokers would know no server that answers; refused while all is as it was, and the way round works."""
    with LocalCluster(next_offset()) as cluster:
        cluster.deploy()
        before, known = cluster.processes(), connect_strings(cluster)
        port = "{{ 2240 + local_index | int + local_port_offset | int }}"
        cluster.configure("zookeeper", zookeeper_client_port=port)
        refused = cluster.play("site.yml", *NEVER, code=2).text
        assert "[ensemble.client_port]" in refused and "playbooks/stop.yml" in refused, refused
        assert cluster.processes() == before and connect_strings(cluster) == known
        cluster.play("stop.yml")
        cluster.play("site.yml", *NEVER)
        assert connect_strings(cluster).isdisjoint(known)
        assert cluster.play("site.yml", *NEVER).changed() == 0
        assert cluster_is_whole(cluster)


@pytest.mark.soak
def test_three_five_and_three_while_a_client_writes(cluster):
    """One server a step: the old ones take turns, never two are down, and no broker loses its session."""
    with Traffic(cluster, TOPIC) as traffic:
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        with Watch(cluster) as watch, with_new(cluster):
            _run, verdict = proven(cluster, "scale_zookeeper.yml")
            drawn = labels(verdict)
            assert all(drawn.count(f"zookeeper-{number} restarted") >= 2 for number in (1, 2, 3))
            assert [drawn.count(f"{name} started") for name in NEW] == [1, 1], drawn
            assert all(drawn.count(f"{name} restarted") == 1 for name in cluster.brokers), drawn
            assert have_one_list(cluster, [1, 2, 3, 4, 5])
            assert sorted(modes(cluster).values()) == ["follower"] * 4 + ["leader"]
            (connect,) = connect_strings(cluster)
            assert connect.count(",") == 4, connect
            assert cluster.play("scale_zookeeper.yml").changed() == 0
            assert cluster.play("site.yml", *NEVER).changed() == 0

            leave = ("-e", f"zookeeper_leaves={','.join(NEW)}")
            _run, verdict = proven(cluster, "scale_zookeeper.yml", *leave)
            assert {f"{name} stopped" for name in NEW} <= set(labels(verdict)), verdict["events"]
            assert [cluster.process(name) for name in NEW] == [None, None]
            refused = cluster.play("site.yml", *NEVER, code=2).text
            assert "[ensemble.server_list]" in refused, "they are still in the inventory"
            again = cluster.play("scale_zookeeper.yml", *leave)
            assert again.changed() == 0
        assert have_one_list(cluster, [1, 2, 3]) and ensemble_is_whole(cluster)
        (connect,) = connect_strings(cluster)
        assert connect.count(",") == 2, connect
        assert cluster.play("site.yml", *NEVER).changed() == 0
        sent = len(traffic.acknowledged)
        wait_until(lambda: len(traffic.acknowledged) > sent, 60, "acknowledgements afterwards")
    turns = watch.check()
    # Twice to five and twice back: at least four turns each; then the brokers, twice each.
    assert all(turns.count(f"zookeeper-{number}") >= 4 for number in (1, 2, 3)), turns
    assert all(turns.count(name) == 2 for name in cluster.brokers), turns
    assert not traffic.failed and traffic.lost() == []
    print(f"\nlongest pause of a partition: {traffic.longest_pause:.2f} s")


def killed_in_turn(cluster, arguments, number, later):
    """Run the playbook, and kill it so many seconds after the turn of this number has begun."""
    with cluster.playing("scale_zookeeper.yml", *arguments) as (process, log):

        def begun():
            turns = log.read_text().count("Show whose turn it is")
            return turns >= number or process.poll() is not None

        wait_until(begun, 400, f"turn {number}")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(later)
        assert process.poll() is None, log.read_text()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


@pytest.mark.soak
def test_killed_while_it_grows_and_while_it_shrinks(cluster):
    """Wherever it is killed, start.yml may follow, and a second run ends with the wanted list."""
    chance = random.Random(seed := random.randrange(10**6))
    print(f"\nseed {seed}")
    with Traffic(cluster, TOPIC) as traffic, with_new(cluster):
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        for arguments, wanted in (
            ((), [1, 2, 3, 4, 5]),
            (("-e", f"zookeeper_leaves={','.join(NEW)}"), [1, 2, 3]),
        ):
            killed_in_turn(cluster, arguments, chance.randint(1, 8), chance.uniform(0, 4))
            if chance.random() < 0.5:
                cluster.play("start.yml")
            cluster.play("scale_zookeeper.yml", *arguments)
            assert have_one_list(cluster, wanted), {
                name: listed(cluster, name) for name in cluster.zookeepers
            }
    assert ensemble_is_whole(cluster) and cluster_is_whole(cluster)
    assert not traffic.failed and traffic.lost() == []


@pytest.mark.soak
def test_a_dead_server_is_replaced_under_its_old_id(cluster):
    """An empty disk on a new host: it joins, fetches everything from the leader, and nobody else restarts."""
    with zookeeper(cluster) as client:
        client.ensure_path("/written/before")
    dead = next(name for name in cluster.zookeepers if zookeeper_mode(cluster, name) == "leader")
    others = {name: cluster.process(name) for name in cluster.names if name != dead}
    with Traffic(cluster, TOPIC) as traffic:
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        cluster.supervisorctl("stop", dead)
        shutil.rmtree(cluster.instance(dead))
        cluster.play("site.yml", *NEVER)
        assert ensemble_is_whole(cluster) and zookeeper_mode(cluster, dead) == "follower"
    assert changed(others, {name: cluster.process(name) for name in others}) == set()
    nodes = {
        re.search(r"Node count: (\d+)", zookeeper_says(cluster, name))[1]
        for name in cluster.zookeepers
    }
    assert len(nodes) == 1, nodes
    assert not traffic.failed and traffic.lost() == []


ELSEWHERE = "127.0.0.9"
GONE_FOR_GOOD = ("-e", '{"kafkaops_preflight_accept": ["ensemble.moved"]}')


def asked(cluster, name, word="srvr"):
    """What a server says, wherever it is."""
    moved = cluster.overlay / "host_vars" / f"{name}.yml"
    address = ELSEWHERE if moved.exists() else "127.0.0.1"
    return ask_zookeeper(address, zookeeper_port(cluster, name), word)


def is_registered(cluster, number):
    """Whether the brokers tell their clients of this one."""
    return number in cluster.admin().list_topics(timeout=30).brokers


def all_serve_with_one_list(cluster):
    """Whether all servers serve, one leads, and each has the same list of servers in effect."""
    served = sorted(mode_of(asked(cluster, name)) for name in cluster.zookeepers)
    lists = {
        tuple(re.findall(r"^server\.\d+=.*$", asked(cluster, name, "conf"), re.MULTILINE))
        for name in cluster.zookeepers
    }
    return served == ["follower", "follower", "leader"] and len(lists) == 1


@pytest.mark.soak
def test_a_machine_comes_back_empty_and_with_another_address(next_offset):
    """As one of EC2 that was ended: its server joins under its id, then the others learn of the address in turns."""
    with LocalCluster(next_offset()) as cluster:
        cluster.deploy()
        with Traffic(cluster, TOPIC) as traffic:
            wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
            # the highest and the lowest id: which of two servers connects to the other depends on it
            for name, broker in (("zookeeper-3", ""), ("zookeeper-1", "kafka-1")):
                cluster.configure(name, zookeeper_address=ELSEWHERE, zookeeper_bind=ELSEWHERE)
                refused = cluster.play("site.yml", "--check", *NEVER, code=2).text
                assert "[ensemble.server_list]" in refused, refused
                cluster.supervisorctl("stop", name)
                shutil.rmtree(cluster.instance(name))
                if broker:
                    # the machine had both; its broker comes first, since site.yml starts none empty
                    number = cluster.brokers[broker]
                    cluster.supervisorctl("stop", broker)
                    wait_until(lambda it=number: not is_registered(cluster, it), 60, "it has left")
                    shutil.rmtree(cluster.instance(broker) / "data")
                    cluster.play("replace_broker.yml", "-e", f"broker={number}")
                    assert cluster.process(name) is None, "ZooKeeper is left alone"
                refused = cluster.play("site.yml", *NEVER, code=2).text
                assert f"[ensemble.moved] {name}: zookeeper_address=" in refused, refused
                cluster.play("site.yml", *NEVER, *GONE_FOR_GOOD)
                assert all_serve_with_one_list(cluster)
                assert cluster.play("site.yml", *NEVER).changed() == 0
            sent = len(traffic.acknowledged)
            wait_until(lambda: len(traffic.acknowledged) > sent, 60, "acknowledgements afterwards")
            nodes = {
                re.search(r"Node count: (\d+)", asked(cluster, name))[1]
                for name in cluster.zookeepers
            }
            (connect,) = connect_strings(cluster)
        assert connect.count(ELSEWHERE) == 2 and len(nodes) == 1, (connect, nodes)
        assert cluster_is_whole(cluster)
        assert not traffic.failed and traffic.lost() == []
