# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers come and go, one loses its disk, and a static quorum becomes a dynamic one; while a client writes.

The quorum is looked at by kafka-python, and not by anything of ours.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import shutil
import signal

import pytest
import yaml

from tests.local.support import LocalCluster
from tests.local.test_kraft import TOPIC, quorum
from tests.support.outside import wait_until
from tests.support.traffic import Traffic
from tests.support.watching import cluster_is_whole

INVENTORY = "inventories/local-kraft-3x3"
THREE = ["controller-1", "controller-2", "controller-3"]
NEW = ["controller-4", "controller-5"]
NEVER = ("-e", "flow_validation=never")
ALONE = "alone"
LEAVE = ("-e", f"controllers_leave={','.join(NEW)}")


@contextlib.contextmanager
def with_new(cluster):
    """The inventory with two controllers more."""
    hosts = cluster.overlay / "hosts.yml"
    before = hosts.read_text()
    new = {name: {"kafka_broker_id": 100 + int(name[-1]), "kafka_heap": "256m"} for name in NEW}
    hosts.write_text(yaml.safe_dump({"all": {"children": {"controllers": {"hosts": new}}}}))
    cluster.controllers.update({name: each["kafka_broker_id"] for name, each in new.items()})
    try:
        yield
    finally:
        hosts.write_text(before)
        for name in NEW:
            del cluster.controllers[name]


@contextlib.contextmanager
def written_to(cluster):
    """Records flow meanwhile, and all that were acknowledged are there at the end."""
    with Traffic(cluster, TOPIC) as traffic:
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        yield
        sent = len(traffic.acknowledged)
        wait_until(lambda: len(traffic.acknowledged) > sent, 60, "acknowledgements afterwards")
    assert not traffic.failed and traffic.lost() == []
    print(f"\nlongest pause of a partition: {traffic.longest_pause:.2f} s")


def known(cluster):
    """Where the controllers are, by what each node runs with."""
    key = re.compile(r"^controller\.quorum\.(\w+)(?:\.servers)?=(.*)$", re.MULTILINE)
    found = {}
    for name in cluster.names:
        path = cluster.instance(name) / "conf" / "current" / "server.properties"
        found[name] = key.search(path.read_text()).groups()
    return found


def begun(log):
    """Whether the playbook has come to the voters, by its output."""
    return "Change the voters, one a step" in log.read_text()


@contextlib.contextmanager
def a_topic_without_a_spare(cluster):
    """Its one replica keeps its broker from every restart that nobody has consented to."""
    cluster.tool("kafka-topics.sh", "--create", "--topic", ALONE, "--replication-factor", "1")
    try:
        yield
    finally:
        cluster.tool("kafka-topics.sh", "--delete", "--topic", ALONE)


def level_of(cluster, feature):
    """The finalised level of a feature, by Kafka's own tool."""
    told = cluster.tool("kafka-features.sh", "describe")
    return int(re.search(rf"Feature: {feature}\s.*FinalizedVersionLevel: (\d+)", told)[1])


def voters(cluster):
    """The ids of the voters."""
    return quorum(cluster)["voters"]


@pytest.mark.soak
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
def test_three_become_five_and_three_again(next_offset, version):
    """Nothing but the playbook for it changes the controllers; it plans, proves, and goes back."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.configure("all", kafka_version=version)
        cluster.version = version
        cluster.deploy()
        before = cluster.processes()
        with written_to(cluster), with_new(cluster):
            refused = cluster.play("site.yml", *NEVER, code=2).text
            assert "[quorum.unformatted]" in refused, refused
            assert "playbooks/scale_controllers.yml" in refused
            planned = cluster.play("scale_controllers.yml", "--check", "--diff").text
            assert "add voter 104" in planned and "add voter 105" in planned, planned
            now = cluster.processes()
            assert {name: now[name] for name in before} == before, planned
            assert voters(cluster) == [101, 102, 103]
            assert not (cluster.instance(NEW[0]) / "data").exists()

            with a_topic_without_a_spare(cluster):
                refused = cluster.play("scale_controllers.yml", code=2).text
                assert "[gate.cannot_pass]" in refused and ALONE in refused, refused
            assert voters(cluster) == [101, 102, 103]
            assert cluster.processes() == {**before, **dict.fromkeys(NEW)}
            run = cluster.play("scale_controllers.yml", "-e", "prove=true")
            assert "PASS: " in run.text, run.text
            assert voters(cluster) == [101, 102, 103, 104, 105]
            assert {each[1].count(",") for each in known(cluster).values()} == {4}
            assert None not in cluster.processes().values()
            again = cluster.play("scale_controllers.yml")
            assert again.changed() == 0, again.text
            assert cluster.play("site.yml", *NEVER).changed() == 0
            run = cluster.play("status.yml", "-e", "status_strict=true")
            assert "All 8 instances run." in run.text, run.text

            planned = cluster.play("scale_controllers.yml", *LEAVE, "--check").text
            told = " ".join(planned.split())
            for name in NEW:
                assert f"remove voter 10{name[-1]} ({name}, " in told, planned
                assert f"{name} would stop then" in told, planned
            assert len(voters(cluster)) == 5
            one = ("-e", "controllers_leave=controller-5")
            refused = cluster.play("scale_controllers.yml", *one, code=2).text
            assert "[quorum.size]" in refused, refused
            run = cluster.play("scale_controllers.yml", *LEAVE, "-e", "prove=true")
            assert "PASS: " in run.text and "Take controller-4 out of the inventory" in run.text
            assert voters(cluster) == [101, 102, 103]
            assert [cluster.process(name) for name in NEW] == [None, None]
            again = cluster.play("scale_controllers.yml", *LEAVE)
            assert again.changed() == 0, again.text
        assert {each[1].count(",") for each in known(cluster).values()} == {2}
        assert cluster.play("site.yml", *NEVER).changed() == 0
        assert cluster_is_whole(cluster)


def held_by(cluster):
    """The ids of the brokers that hold a replica."""
    topics = cluster.admin().list_topics(timeout=60).topics.values()
    return {
        each for topic in topics for part in topic.partitions.values() for each in part.replicas
    }


@pytest.mark.soak
def test_nodes_that_are_both_come_and_go(next_offset):
    """As brokers and voters: they come empty, get their part by scale_out.yml, and leave empty; killed in between."""
    both = ["kafka-4", "kafka-5"]
    leave = ("-e", f"controllers_leave={','.join(both)}")
    hosts = {name: {"kafka_broker_id": int(name[-1])} for name in both}
    more = {"kafka": {"hosts": hosts}, "controllers": {"hosts": dict.fromkeys(both)}}
    with LocalCluster(next_offset(), inventory="inventories/local-kraft") as cluster:
        cluster.deploy()
        (cluster.overlay / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": more}}))
        cluster.brokers.update({name: each["kafka_broker_id"] for name, each in hosts.items()})
        with written_to(cluster):
            refused = cluster.play("scale_out.yml", code=2).text
            assert "[quorum.unformatted]" in refused and "scale_controllers.yml" in refused, refused
            planned = cluster.play("scale_controllers.yml", "--check", "--diff").text
            assert "add voter 4" in planned and "add voter 5" in planned, planned
            assert voters(cluster) == [1, 2, 3]
            run = cluster.play("scale_controllers.yml", "-e", "prove=true")
            assert "PASS: " in run.text, run.text
            assert voters(cluster) == [1, 2, 3, 4, 5] and held_by(cluster) >= {1, 2, 3}
            again = cluster.play("scale_controllers.yml")
            assert again.changed() == 0, again.text
            assert cluster.play("site.yml", *NEVER).changed() == 0
            cluster.play("scale_out.yml")
            assert held_by(cluster) == {1, 2, 3, 4, 5}

            refused = cluster.play("scale_in.yml", "-e", "broker=5", code=2).text
            assert "[broker.votes]" in refused and "controllers_leave=kafka-5" in refused, refused
            planned = " ".join(
                cluster.play("scale_controllers.yml", *leave, "--check").text.split()
            )
            assert "remove voter 5 (kafka-5, " in planned and "kafka-5 would stop then" in planned
            assert "broker 4, 5: " in planned and held_by(cluster) == {1, 2, 3, 4, 5}, planned
            with cluster.playing("scale_controllers.yml", *leave) as (process, log):
                wait_until(
                    lambda: "Empty the brokers that leave" in log.read_text(), 600, "the moves"
                )
                with contextlib.suppress(Exception):
                    process.wait(3)
                os.killpg(process.pid, signal.SIGKILL)
            run = cluster.play("scale_controllers.yml", *leave, "-e", "prove=true")
            assert "PASS: " in run.text, run.text
            assert "Take kafka-4 out of the inventory" in run.text, run.text
            assert voters(cluster) == [1, 2, 3] and held_by(cluster) == {1, 2, 3}
            assert [cluster.process(name) for name in both] == [None, None]
            assert cluster.play("scale_controllers.yml", *leave).changed() == 0
            (cluster.overlay / "hosts.yml").write_text("all: {}\n")
            for name in both:
                del cluster.brokers[name]
        registered = cluster.admin().list_topics(timeout=60).brokers
        assert set(registered) == {1, 2, 3}
        assert {each[1].count(",") for each in known(cluster).values()} == {2}
        assert cluster.play("site.yml", *NEVER).changed() == 0
        assert cluster_is_whole(cluster)


@pytest.mark.soak
@pytest.mark.parametrize("static", [False, True])
def test_a_dead_controller_with_an_empty_disk_votes_again(next_offset, static):
    """Its former vote is removed, and it gets a new one; nobody else restarts.

    In a static quorum it has its vote still, and starts while all others keep up.
    """
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.configure("all", kafka_static_quorum=static)
        cluster.deploy()
        dead = quorum(cluster)["leader"]
        name = cluster.name_of(dead)
        others = {each: cluster.process(each) for each in cluster.names if each != name}
        replace = ("-e", f"broker={dead}")
        with written_to(cluster):
            # one that lives is left alone
            now = cluster.process(name)
            assert cluster.play("replace_broker.yml", *replace).changed() == 0
            assert cluster.process(name) == now
            cluster.supervisorctl("stop", name)
            shutil.rmtree(cluster.instance(name) / "data")
            refused = cluster.play("site.yml", *NEVER, code=2).text
            assert "[quorum.unformatted]" in refused and "replace_broker.yml" in refused
            planned = cluster.play("replace_broker.yml", *replace, "--check").text
            swapped = [f"{how} voter {dead}" in planned for how in ("remove", "add")]
            assert swapped == [not static] * 2, planned
            if static:
                # as a run does that is killed between format and start
                cluster.play("replace_broker.yml", *replace, "--skip-tags", "run")
                assert (cluster.instance(name) / "data" / "meta.properties").exists()
                for playbook in ("site.yml", "start.yml"):
                    told = cluster.play(playbook, *NEVER, code=None).text
                    assert "quorum.lost_vote" in told and not cluster.process(name), told
            cluster.play("replace_broker.yml", *replace)
            assert voters(cluster) == [101, 102, 103] and cluster.process(name)
            assert cluster.play("replace_broker.yml", *replace).changed() == 0
        assert {each: cluster.process(each) for each in others} == others
        assert cluster.play("site.yml", *NEVER).changed() == 0
        # each vote counts: any one of the others may go now
        for each in {101, 102, 103} - {dead}:
            cluster.play("rolling_restart.yml", "-e", f"broker={each}")


@pytest.mark.soak
def test_a_static_quorum_becomes_a_dynamic_one(next_offset):
    """And takes two more controllers, which it refused before."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.configure("all", kafka_static_quorum=True)
        cluster.deploy()
        assert {each[0] for each in known(cluster).values()} == {"voters"}
        with written_to(cluster):
            with with_new(cluster):
                refused = cluster.play("scale_controllers.yml", code=2).text
                assert "[quorum.static]" in refused and "dynamic_quorum.yml" in refused, refused
            before = cluster.processes()
            planned = cluster.play("dynamic_quorum.yml", "--check", "--diff").text
            assert "kraft.version" in planned and cluster.processes() == before, planned
            # what no restart would get past is said before the feature is raised, which is final
            with a_topic_without_a_spare(cluster):
                for arguments in (("--check",), ()):
                    refused = cluster.play("dynamic_quorum.yml", *arguments, code=2).text
                    assert "[gate.cannot_pass]" in refused and ALONE in refused, refused
            assert level_of(cluster, "kraft.version") == 0
            assert cluster.processes() == before
            assert {each[0] for each in known(cluster).values()} == {"voters"}
            # The next active controller has not heard of the one that is down, which could not start without a list.
            leader = quorum(cluster)["leader"]
            cluster.supervisorctl("stop", cluster.name_of(leader))
            wait_until(lambda: quorum(cluster)["leader"] not in (leader, -1), 60, "a leader")
            planned = " ".join(cluster.play("dynamic_quorum.yml", "--check").text.split())
            assert f"{cluster.name_of(leader)} would start first" in planned, planned
            assert cluster.process(cluster.name_of(leader)) is None
            cluster.play("dynamic_quorum.yml")
            assert level_of(cluster, "kraft.version") == 1
            assert {each[0] for each in known(cluster).values()} == {"bootstrap"}
            assert cluster.play("dynamic_quorum.yml").changed() == 0
            assert cluster.play("site.yml", *NEVER).changed() == 0
            with with_new(cluster):
                cluster.play("scale_controllers.yml")
                assert voters(cluster) == [101, 102, 103, 104, 105]
        assert cluster_is_whole(cluster)


@pytest.mark.soak
def test_killed_while_controllers_come_and_go(next_offset):
    """Wherever it is killed, a second run ends with the wanted voters; it starts one that is down meanwhile.

    A second person is refused while the first one's run is at work.
    """
    chance = random.Random(seed := random.randrange(10**6))
    print(f"\nseed {seed}")
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.deploy()
        with written_to(cluster), with_new(cluster):
            for arguments, wanted in (
                ((), [101, 102, 103, 104, 105]),
                (LEAVE, [101, 102, 103]),
            ):
                with cluster.playing("scale_controllers.yml", *arguments) as (process, log):
                    wait_until(functools.partial(begun, log), 600, "the step of the voters")
                    if not arguments:
                        second = cluster.play("scale_controllers.yml", code=2).text
                        assert "[run.locked]" in second, second
                    with contextlib.suppress(Exception):
                        process.wait(chance.uniform(0, 30))
                    os.killpg(process.pid, signal.SIGKILL)
                now = quorum(cluster)
                print(f"killed with {now['voters']}")
                down = next(each for each in (101, 102, 103) if each != now["leader"])
                cluster.supervisorctl("stop", cluster.name_of(down))
                cluster.play("scale_controllers.yml", *arguments)
                assert voters(cluster) == wanted and cluster.process(cluster.name_of(down))
                again = cluster.play("scale_controllers.yml", *arguments)
                assert again.changed() == 0, again.text
        assert cluster_is_whole(cluster)


@pytest.mark.soak
def test_killed_and_all_down_it_is_gone_on_with(next_offset):
    """Some nodes know five controllers then, and the others three; the playbook asks brokers, which are down."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.deploy()
        with with_new(cluster):
            with cluster.playing("scale_controllers.yml") as (process, log):
                wait_until(functools.partial(begun, log), 600, "the step of the voters")
                wait_until(lambda: len(voters(cluster)) == 5, 120, "five voters")
                os.killpg(process.pid, signal.SIGKILL)
            assert {each[1].count(",") for each in known(cluster).values()} == {2, 4}
            cluster.play("stop.yml")
            told = cluster.play("start.yml").text
            assert "[quorum.changed]" in told, told
            assert None not in cluster.processes().values()
            assert {each[1].count(",") for each in known(cluster).values()} == {2, 4}
            cluster.play("stop.yml")
            cluster.play("scale_controllers.yml")
            assert voters(cluster) == [101, 102, 103, 104, 105]
            assert {each[1].count(",") for each in known(cluster).values()} == {4}
            assert cluster.play("scale_controllers.yml").changed() == 0
        assert cluster_is_whole(cluster)


@pytest.mark.soak
def test_a_voter_that_the_others_do_not_reach_is_the_last_one_that_restarts(next_offset):
    """It fetches from the leader as before, and with the next ones like it no quorum would be left."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.deploy()
        cluster.configure("controllers", kafka_controller_bind="127.0.0.2")
        refused = cluster.play("site.yml", *NEVER, code=2).text
        assert "[listeners.bind]" in refused, refused
        before = cluster.processes()
        accept = ("-e", "kafkaops_preflight_accept=listeners.bind")
        stopped = cluster.play("site.yml", *NEVER, *accept, code=2).text
        assert "[voters.unreachable]" in stopped, stopped
        now = cluster.processes()
        moved = [name for name in THREE if now[name] != before[name]]
        assert len(moved) == 1 and quorum(cluster)["leader"] > 0
        # nor does the next run go on
        stopped = cluster.play("site.yml", *NEVER, *accept, code=2).text
        assert "[voters.unreachable]" in stopped and f"--limit {moved[0]}" in stopped, stopped
        assert cluster.processes() == now
        cluster.configure("controllers", kafka_controller_bind="127.0.0.1")
        cluster.play("site.yml", *NEVER)
        assert cluster_is_whole(cluster)
