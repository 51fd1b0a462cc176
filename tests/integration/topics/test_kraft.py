# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same interface on a KRaft cluster of the 4.x line."""

from __future__ import annotations

import re
import subprocess

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration import features
from tests.support.bare_cluster import KRAFT_VERSION, shared_releases, unpack_release
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
    release = unpack_release("kafka", KRAFT_VERSION, shared_releases())
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
