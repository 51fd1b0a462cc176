# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same interface on a KRaft cluster of the 4.x line."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.voters import (
    client as voters_client,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration import features
from tests.integration.topics.conftest import PORT_BASE
from tests.support.bare_cluster import (
    KRAFT_VERSION,
    LOG4J2,
    BareCluster,
    Instance,
)
from tests.support.outside import wait_until
from tests.support.releases import shared_release
from tests.support.run_module import Modules, run_module


@pytest.fixture
def modules(kraft):
    """Modules against the KRaft node."""
    return Modules(kraft.bootstrap_servers)


def test_unknown_key_while_there_is_no_topic(modules, tmp_path):
    """The brokers tell their settings only of a topic; a table helps, else they judge themselves."""
    item = {"name": "first", "config": {"retentoin.ms": 1}}
    result = modules.topics([item])
    assert result.failed and not result.changed and "retentoin.ms" in result.msg
    table = tmp_path / "4.3.1.json"
    table.write_text('{"version": "4.3.1", "topic": {"retention.ms": {}}}')
    result = modules.topics([item], config_keys_file=str(table))
    assert result.checks == [("config.unknown_key", "first")]
    assert "did you mean retention.ms" in result.msg


def test_create_again_change_grow_delete(modules, name):
    """The life of a topic, as on the ZooKeeper line."""
    item = {"name": name, "partitions": 3, "retention": "7d", "config": {"compression.type": "lz4"}}
    assert modules.topics([item], check=True).changed
    assert modules.topics([item]).changed
    assert modules.topics([item]).changed is False
    item["config"]["compression.type"] = "zstd"
    assert modules.topics([item]).kinds == [("configure", name)]
    assert modules.topics([item]).changed is False
    grown = {**item, "partitions": 4}
    assert modules.topics([grown]).checks == [("partitions.growth", name)]
    assert modules.topics([grown], allow=["partition_growth"]).changed
    assert modules.topics([{**item, "partitions": 3}]).checks == [("partitions.decrease", name)]
    cut = modules.topics([{**grown, "retention": "1d"}])
    assert cut.checks == [("retention.cut", name)] and "0 records" in cut.msg
    assert modules.topics([{**grown, "retention": "1d"}], allow=["retention_cut"]).changed
    gone = [{"name": name, "state": "absent"}]
    assert modules.topics(gone).checks == [("topics.delete", name)]
    assert modules.topics(gone, allow=["delete"]).changed
    assert modules.topics([grown]).changed


def test_rejected_by_the_broker(modules, name):
    """Its own words, for the one item."""
    result = modules.topics([{"name": name, "config": {"compression.type": "bogus"}}])
    assert result.failed and not result.changed and result.failed_items[0]["name"] == name


def test_info(modules, name):
    """One node, complete."""
    modules.topics([{"name": name}])
    info = modules.info(wait={"brokers": [1], "full_isr": True})
    assert [broker["id"] for broker in info.brokers] == [1] and info.controller == 1
    assert info.brokers[0]["rack"] == "rack-1" and info.under_replicated == []


def test_the_quorum_as_its_leader_tells_it(modules, kraft):
    """One voter, which may stop: nobody else could ever decide. Others than the asker knows are refused."""
    info = modules.info(wait={"voters": [1]}, quorum=True)
    assert info.quorum["leader"] == 1 and info.quorum["problem"] == ""
    (voter,) = info.quorum["voters"]
    assert (voter["id"], voter["lag"], voter["keeps_up"]) == (1, 0, True)
    assert (voter["fetched_ms_ago"], voter["caught_up_ms_ago"]) == (None, 0)

    def gate(voters):
        asked = {"bootstrap_servers": kraft.bootstrap_servers, "voters": voters, "brokers": [1]}
        return run_module("kafka_broker_gate", {**asked, "accept_unavailable": ["all"]})

    alone = gate([1])
    assert alone.controller == 1 and alone.lines[0].endswith("may stop now"), alone.lines
    assert "it is the only voter" in str(alone.warnings)
    other = gate([1, 2, 3])
    assert (
        other.failed
        and "[gate.other_voters] broker 1: the voters of the quorum are 1," in other.msg
    )


def test_features_are_raised_and_never_lowered(modules, kraft):
    """As Kafka's own tool tells; what the controller would refuse is refused before, and one request raises all."""
    told = modules.info(features=True).features
    assert told["problem"] == "" and told["levels"]["metadata.version"] == 30
    assert told["levels"] == told["levels"] | features.levels_of("4.3.1"), "as it was formatted"

    def raise_to(check=False, **levels):
        asked = {"bootstrap_servers": kraft.bootstrap_servers, "levels": levels}
        return run_module("kafka_features", asked, check=check)

    same = raise_to(**{"metadata.version": 30, "group.version": "1"})
    assert not same.failed and not same.changed and same.levels == told["levels"]
    lower = raise_to(**{"metadata.version": 29})
    assert lower.failed and "[features.lowered] metadata.version: levels=29" in lower.msg
    for check in (True, False):
        high = raise_to(check, **{"metadata.version": 99, "group.version": 1})
        assert high.failed and not high.changed and "nothing was changed" in high.msg, high.values
        assert high.failed_items[0]["name"] == "metadata.version"
        assert high.failed_items[0]["code"] == "INVALID_UPDATE_VERSION", high.failed_items
    assert modules.info(features=True).features["levels"] == told["levels"]


@pytest.mark.soak
@pytest.mark.parametrize("line", sorted(features.LEVELS))
def test_the_levels_of_a_release_are_those_that_kafkas_own_tool_sets(line):
    """But for the quorum's, which nobody should change by the way."""
    release = shared_release("kafka", KRAFT_VERSION)
    told = subprocess.run(
        [release / "bin" / "kafka-features.sh", "version-mapping"]
        + ["--release-version", ".".join(map(str, line))],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    found = {name: int(level) for name, level in re.findall(r"^(\S+)=(\d+)", told, re.MULTILINE)}
    assert found.pop(features.QUORUM) == features.QUORUM_LEVEL
    assert {name: level for name, level in found.items() if level} == features.LEVELS[line]


class Apart:
    """A controller beside a cluster, formatted to join its quorum: as a person makes one by hand."""

    def __init__(self, cluster, node, home):
        self.id, self.port, self.home = node, cluster.port_base + 40 + node, home
        home.mkdir()
        place = f"127.0.0.1:{cluster.port_base + 41}"
        settings = {
            "process.roles": "controller",
            "node.id": node,
            "log.dirs": home / "data",
            "listeners": f"CONTROLLER://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": place,
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        (home / "server.properties").write_text(text)
        (home / "log4j2.yaml").write_text(LOG4J2)
        model = cluster.broker_instances[1]
        own = str(home / "server.properties")
        logs = (f"-Dlog4j2.configurationFile={home / 'log4j2.yaml'}", f"{home / 'server.log'}")
        command = [
            (
                logs[0]
                if word.startswith("-Dlog4j2.configurationFile=")
                else f"-Dinstance.log={logs[1]}" if word.startswith("-Dinstance.log=") else word
            )
            for word in model.command[:-1]
        ]
        self.instance = Instance(f"controller-{node}", [*command, own], home)
        meta = (model.directory / "data" / "meta.properties").read_text()
        self.cluster_id = re.search(r"^cluster.id=(.*)$", meta, re.MULTILINE)[1]
        self.format()

    def format(self):
        """Format its directory, which is empty or not there."""
        place = self.instance.command.index("kafka.Kafka")
        command = [*self.instance.command[:place], "kafka.tools.StorageTool", "format"]
        command += ["-t", self.cluster_id, "--no-initial-controllers"]
        command += ["-c", str(self.home / "server.properties")]
        subprocess.run(command, check=True, capture_output=True)

    @property
    def voter(self):
        """As kafka_voters takes it."""
        meta = (self.home / "data" / "meta.properties").read_text()
        directory = re.search(r"^directory.id=(.*)$", meta, re.MULTILINE)[1]
        return {"id": self.id, "directory_id": directory, "host": "127.0.0.1", "port": self.port}


@pytest.mark.soak
@pytest.mark.parametrize("version", ["4.3.1"])
def test_voters_come_go_and_are_replaced(tmp_path, monkeypatch, version):
    """From a static quorum of one to a dynamic one of three and back; a dead voter comes back with an empty disk."""
    sent = []
    ours = voters_client.send

    def counted(admin, request):
        sent.append(request.name)
        return ours(admin, request)

    monkeypatch.setattr(voters_client, "send", counted)
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(
            BareCluster(
                tmp_path / "c", PORT_BASE + 500, brokers=1, kraft=True, kafka_version=version
            )
        )

        def voters(*apart, check=False, **more):
            asked = {
                "bootstrap_servers": cluster.bootstrap_servers,
                "voters": [{"id": 1}, *(each.voter for each in apart)],
                "operation_timeout": 60,
                **more,
            }
            sent.clear()
            return run_module("kafka_voters", asked, check=check)

        def told():
            """By Kafka's own tool."""
            done = subprocess.run(
                [
                    *(str(cluster.kafka_release / "bin" / "kafka-metadata-quorum.sh"),),
                    *("--bootstrap-server", cluster.bootstrap_servers, "describe", "--replication"),
                ],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            rows = [line.split() for line in done.splitlines()[1:]]
            return {int(row[0]): row[1] for row in rows if row[-1] in ("Leader", "Follower")}

        two, three = (Apart(cluster, node, tmp_path / str(node)) for node in (2, 3))
        for each in (two, three):
            stack.callback(each.instance.kill)
        refused = voters(two)
        assert refused.failed and refused.checks == [("voters.static", "voter 1")], refused.values
        raised = run_module(
            "kafka_features",
            {"bootstrap_servers": cluster.bootstrap_servers, "levels": {"kraft.version": 1}},
        )
        assert raised.changed, raised.values

        # planned before it runs
        planned = voters(two, three, check=True)
        assert planned.kinds == [("add", "voter 2"), ("add", "voter 3")] and planned.changed
        assert sent == [] and list(told()) == [1]
        # what does not run is waited for
        late = voters(two, operation_timeout=2)
        assert late.failed and "does not follow the leader" in late.msg, late.msg
        assert sent == [] and not late.changed

        for each in (two, three):
            each.instance.start()
        # of a run that has lost its lock meanwhile
        lost = {"directory": str(tmp_path / "locks"), "cluster": "c", "owner": "this run"}
        over = voters(two, three, lock=lost)
        assert "[quorum.run_over] the run this run no longer holds the lock" in over.msg, over.msg
        assert over.failed and not over.changed and sent == []
        done = voters(two, three)
        assert done.changed and not done.failed, done.values
        assert sent == ["AddRaftVoterRequest"] * 2
        assert told() == {each["id"]: each["directory_id"] for each in done.voters}
        again = voters(two, three)
        assert not again.changed and not again.failed and sent == []
        assert voters(two).checks == [("voters.unknown", "voter 3")]

        # Its disk is gone, and it with it.
        before = three.voter["directory_id"]
        three.instance.kill()
        shutil.rmtree(three.home / "data")
        three.format()
        assert three.voter["directory_id"] != before
        assert voters(two, three).checks == [("voters.other_directory", "voter 3")]
        three.instance.start()
        wait_until(
            lambda: not voters(two, three, replaced=[3], check=True).checks, 30, "it is seen dead"
        )
        swapped = voters(two, three, replaced=[3])
        assert swapped.kinds == [("remove", "voter 3"), ("add", "voter 3")], swapped.values
        assert not swapped.failed and told()[3] == three.voter["directory_id"]
        assert not voters(two, three, replaced=[3]).changed

        # One that is down leaves; the other one may not then, since it is the majority.
        three.instance.kill()
        short = ("voters.majority", "voter 2")
        wait_until(
            lambda: short in voters(three, leaving=[2], check=True).checks, 30, "it is seen dead"
        )
        left = voters(two, leaving=[3])
        assert left.changed and "2 voters" in str(left.warnings), left.values
        assert not voters(two, leaving=[3]).changed
        alone = voters(leaving=[2])
        assert alone.changed and list(told()) == [1] and sent == ["RemoveRaftVoterRequest"]
