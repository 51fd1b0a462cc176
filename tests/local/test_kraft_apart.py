# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers on nodes of their own: deployed, proven, looked at, restarted in order, stopped, removed.

The quorum is looked at by kafka-python, and not by anything of ours.
"""

from __future__ import annotations

import re

import pytest

from tests.local.drilling import drilled
from tests.local.support import LocalCluster
from tests.local.test_drill import comes_back, killed_when_away, tells_of_it
from tests.local.test_kraft import KEY, TOPIC, metas, quorum
from tests.support import collection_finder
from tests.support.load import Load
from tests.support.outside import wait_until

collection_finder.install()

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (  # noqa: E402
    Connection,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_changes import (  # noqa: E402
    Stage,
    prepare_leaders,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (  # noqa: E402
    own_topics,
)

INVENTORY = "inventories/local-kraft-3x3"
CONTROLLERS = ["controller-1", "controller-2", "controller-3"]
ASKED = "kafkaops-drill-asked"


@pytest.mark.soak
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
def test_controllers_on_nodes_of_their_own(next_offset, version):
    """From an inventory to a proven quorum, through a roll, and away again without a trace."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.configure("all", kafka_version=version)
        run = cluster.deploy("-e", "flow_validation_records=3000", validation="always")
        assert "PASS: 3,000 acknowledged records came back" in run.text, run.text
        assert "3 brokers of Kafka" in run.text and ", 3 controllers (KRaft)" in run.text, run.text
        formatted, processes = metas(cluster), cluster.processes()
        assert [each["node.id"] for each in formatted.values()] == ["1", "2", "3"]
        assert quorum(cluster)["voters"] == [101, 102, 103] and None not in processes.values()
        for name in CONTROLLERS:
            text = (cluster.instance(name) / "data" / "meta.properties").read_text()
            assert f"node.id={cluster.controllers[name]}\n" in text

        run = cluster.deploy()
        assert run.changed() == 0 and cluster.processes() == processes, run.text

        run = cluster.play("status.yml", "-e", "status_strict=true")
        assert "All 6 instances run." in run.text, run.text
        leader = quorum(cluster)["leader"]
        assert re.findall(r"(controller-\d) +controller .* leader ", run.text) == [
            cluster.name_of(leader)
        ]
        assert len(re.findall(r"(controller-\d) +controller .* voter ", run.text)) == 2, run.text

        _rolls_in_order(cluster, leader)

        # One of them by its id, with a proof that goes on meanwhile.
        standby = min({101, 102, 103} - {quorum(cluster)["leader"]})
        now = cluster.processes()
        run = cluster.play("rolling_restart.yml", "-e", f"broker={standby}", "-e", "prove=true")
        changed = {name for name, each in cluster.processes().items() if each != now[name]}
        assert changed == {cluster.name_of(standby)} and "PASS: " in run.text, run.text

        _drill(cluster)

        # One dead controller is seen, and starts again.
        standby = cluster.name_of(min({101, 102, 103} - {quorum(cluster)["leader"]}))
        cluster.supervisorctl("stop", standby)
        run = cluster.play("status.yml", "-e", "status_strict=true", code=2)
        assert f"down: {standby}" in " ".join(run.text.split()), run.text
        cluster.deploy()

        cluster.play("stop.yml")
        assert cluster.processes() == dict.fromkeys(cluster.names)
        cluster.play("start.yml")
        cluster.play("status.yml", "-e", "status_strict=true")
        assert metas(cluster) == formatted and quorum(cluster)["voters"] == [101, 102, 103]

        cluster.play("teardown.yml", "-e", f"confirm={cluster.name}")
        assert not cluster.directory.exists() and not cluster.stray()


@pytest.mark.soak
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
def test_drills_take_the_quorum_of_controllers_away(next_offset, version):
    """A follower is stopped and the leader killed, and all are back; also where the drill is killed meanwhile."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.configure("all", kafka_version=version)
        cluster.deploy()
        leader, before = quorum(cluster)["leader"], cluster.processes()
        stopped = [max({101, 102, 103} - {leader}), leader]
        run = cluster.play("drill.yml", "-e", "drill=controllers_kill", "--check")
        assert f"stops controllers {stopped[0]}, {stopped[1]}, one after the other" in run.text
        assert run.changed() == 0 and cluster.processes() == before

        row = drilled(cluster, "controllers_kill")["controllers_quorum"]
        print(f"pause {row['pause_ms']} ms: {row['observed']}")
        assert row["done"] == "2 of 3 controllers gone, the last killed"
        assert row["seen"]["lost"] == 0 and not row["seen"]["refused"]
        first, last = row["seen"]["measured"]["stages"]
        assert max(first["topic_ms"], first["leader_ms"]) < first["back_ms"]
        assert min(last["topic_ms"], last["leader_ms"]) > last["back_ms"] > 0
        # brokers stay in sync and lead as before; no broker was restarted
        assert len({(each["leader"], *each["isr"]) for each in row["seen"]["moments"]}) == 1
        changed = {name for name, each in cluster.processes().items() if each != before[name]}
        assert changed == {cluster.name_of(each) for each in stopped}
        assert quorum(cluster)["voters"] == [101, 102, 103]

        away, met = killed_when_away(cluster, "controllers_quorum", 2)
        assert all(name in CONTROLLERS for name in away)
        comes_back(cluster)
        tells_of_it(cluster, "controllers_quorum", met)

        _asks_again(cluster)

        run = cluster.play("drill.yml", "-e", "drill=zookeeper_kill", code=2)
        assert "[drill.no_zookeeper]" in run.text and "run controllers_quorum" in run.text


@pytest.mark.soak
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
def test_the_next_run_starts_controllers_that_a_killed_drill_has_left(next_offset, version):
    """Nobody on the hosts does: the machine has died meanwhile. The brokers have no controller until then."""
    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        cluster.configure("all", kafka_version=version)
        cluster.deploy()
        before = cluster.processes()
        away, met = killed_when_away(cluster, "controllers_quorum", 2, rebooted=True)
        assert set(away) < set(CONTROLLERS)
        assert [name for name, each in cluster.processes().items() if each is None] == away
        tells_of_it(cluster, "controllers_quorum", met)
        after = cluster.processes()
        assert None not in after.values()
        assert {name for name in after if after[name] != before[name]} == set(away)
        assert not list(cluster.directory.glob("*/run/drill.json"))


def _asks_again(cluster):
    """A broker that has no controller for a minute refuses a topic: it is asked for again, and made in the end."""
    addresses = [each.rpartition(":") for each in cluster.bootstrap_servers.split(",")]
    connection = Connection(tuple((host, int(port)) for host, _colon, port in addresses))
    with own_topics(connection, {ASKED: [[1, 2, 3], [1, 2, 3]]}, {}):
        prepare_leaders(connection, ASKED, [[1, 2, 3], [1, 2, 3]])
        leader = quorum(cluster)["leader"]
        away = [cluster.name_of(each) for each in (max({101, 102, 103} - {leader}), leader)]
        for name in away:
            cluster.supervisorctl("stop", name)
        stage = Stage(connection, ASKED, 1, [1, 2, 3])
        wait_until(lambda: stage.asked_again or stage.topic_ms, 180, "the topic is refused")
        assert stage.asked_again == 1 and not stage.done
        for name in away:
            cluster.supervisorctl("start", name)
        wait_until(lambda: stage.done, 120, "both are done")
        print(f"asked again {stage.asked_again} times; {stage.trouble}")


def _rolls_in_order(cluster, leader):
    """A setting that all of them have: brokers, then controllers that follow, the leader last."""
    order = [1, 2, 3, *sorted({101, 102, 103} - {leader}), leader]
    for group in ("kafka", "controllers"):
        cluster.configure(group, kafka_config={KEY: 3001})
    now = cluster.processes()
    run = cluster.deploy("--check")
    names = [cluster.name_of(each) for each in order]
    assert re.findall(r"Restart of ([a-z]+-\d)", run.text) == names, run.text
    assert set(re.findall(r"controller (\d+) may stop now", run.text)) == {"101", "102", "103"}
    assert cluster.processes() == now
    with Load(cluster, TOPIC, "rolling restart in KRaft mode") as load:
        cluster.deploy()
    assert load.watch.check() == names, load.watch.events
    assert not set(cluster.processes().values()) & set(now.values())
    assert cluster.deploy().changed() == 0


def _drill(cluster):
    """A controller that is no broker is killed: no replica is away, another controller leads."""
    leader = quorum(cluster)["leader"]
    row = drilled(cluster, "controller_killed")["controller_killed"]
    assert row["done"] == f"{cluster.name_of(leader)} killed" and row["seen"]["lost"] == 0
    assert len({tuple(each["isr"]) for each in row["seen"]["moments"]}) == 1
    assert {each["controller"] for each in row["seen"]["moments"]} >= {leader}
