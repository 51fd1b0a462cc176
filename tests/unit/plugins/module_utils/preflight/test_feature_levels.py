# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""KRaft mode: the way to the inventory's version and back, and what of it cannot be taken back."""

from __future__ import annotations

import pytest
import yaml

from tests.unit.plugins.module_utils.preflight import good_inventory as ground
from tests.unit.plugins.module_utils.preflight.test_metadata import (
    CURRENT,
    NODES,
    begun,
    kraft,
    told,
    variables,
)

CLUSTER = "orders-prod"
OLD, NEW = "3.9.2", "4.3.1"
KRAFT_3_9 = {"metadata.version": 21, "kraft.version": 1}
STATIC_3_9 = {"metadata.version": 21}
KRAFT_4_3 = {
    "metadata.version": 30,
    "kraft.version": 1,
    "group.version": 1,
    "transaction.version": 2,
    "eligible.leader.replicas.version": 1,
    "share.version": 1,
    "streams.version": 1,
}
TOO_OLD = {"metadata.version": 6, "kraft.version": 0}


def facts(*releases):
    """Facts of nodes with these releases in force, and running."""
    found = begun()
    current = {**CURRENT, "min.insync.replicas": "2", "log.retention.hours": "168"}
    for name, release in zip(NODES, releases):
        found[name].update({"kafka/release": f"kafka_2.13-{release}", "kafka/current": current})
    return found


def verdict(tmp_path, releases, levels, purpose, wanted=NEW, **values):
    document = kraft(variables(kafka_version=wanted, **values))
    snapshot = None
    if levels is not None:
        snapshot = {"cluster_id": ground.FRESH_CLUSTER_ID, "features": levels}
    return ground.verdict_of(
        document, tmp_path, facts=facts(*releases), snapshot=snapshot, purpose=purpose
    )


@pytest.mark.parametrize(
    "releases, levels, purpose, wanted, values, check, words",
    [
        # site.yml changes no version, and names the way
        ([OLD] * 3, KRAFT_3_9, "deploy", NEW, {}, "version.needs_upgrade", "rolling_upgrade.yml"),
        ([NEW] * 3, KRAFT_3_9, "deploy", OLD, {}, "version.illegal_path", "rollback.yml"),
        ([NEW] * 3, KRAFT_4_3, "deploy", OLD, {}, "version.illegal_path", "no way back"),
        # each playbook in its own direction
        ([OLD] * 3, KRAFT_3_9, "rollback", NEW, {}, "version.illegal_path", "rolling_upgrade.yml"),
        ([NEW] * 3, KRAFT_3_9, "upgrade", OLD, {}, "version.illegal_path", "rollback.yml"),
        # what the older release cannot read, or nobody knows
        ([NEW] * 3, KRAFT_4_3, "rollback", OLD, {}, "version.illegal_path", "metadata.version 30"),
        ([NEW] * 3, KRAFT_4_3, "upgrade", OLD, {}, "version.illegal_path", "no way back"),
        ([NEW] * 3, None, "rollback", OLD, {}, "version.illegal_path", "start.yml"),
        ([OLD] * 3, TOO_OLD, "upgrade", NEW, {}, "version.illegal_path", "3.3"),
        ([OLD] * 3, KRAFT_3_9, "upgrade", "4.2.0", {}, "version.known_bad", "4.2.1"),
        ([OLD] * 3, KRAFT_3_9, "rollback", "3.8.1", {}, "version.illegal_path", "3.9"),
        # finalising waits for all nodes, and for an answer
        (
            *([NEW, NEW, OLD], KRAFT_3_9, "upgrade", NEW, {"kafka_finalize": True}),
            *("version.finalize_early", "could not read"),
        ),
        (
            *([NEW] * 3, None, "upgrade", NEW, {"kafka_finalize": True}),
            *("version.finalize_early", "start.yml"),
        ),
        (
            *(["4.9.0"] * 3, KRAFT_4_3, "upgrade", "4.9.0"),
            {"kafka_finalize": True, "distribution_source": "archive"},
            *("version.features_unknown", "kafka-features.sh"),
        ),
        # what Kafka 4 has no more is told before the first stop
        (
            *([OLD] * 3, KRAFT_3_9, "upgrade", NEW),
            {"kafka_config": {"log.message.format.version": "3.0"}},
            *("config.removed_key", "log.message.format.version"),
        ),
        (
            *([OLD] * 3, KRAFT_3_9, "upgrade", NEW),
            {"kafka_config": {"inter.broker.protocol.version": "3.9"}},
            *("config.removed_key", "inter.broker.protocol.version"),
        ),
        (
            *([OLD] * 3, KRAFT_3_9, "upgrade", NEW, {"java_minimum": 11}),
            *("java.version", "Java 17"),
        ),
    ],
)
def test_what_is_refused(tmp_path, releases, levels, purpose, wanted, values, check, words):
    found = verdict(tmp_path, releases, levels, purpose, wanted, **values)
    assert {each.check for each in found.errors} == {check}, told(found)
    assert {host for each in found.errors for host in each.subjects} <= set(NODES)
    assert words in " ".join(each.line() for each in found.errors)


@pytest.mark.parametrize(
    "releases, levels, purpose, wanted, values",
    [
        ([OLD] * 3, KRAFT_3_9, "upgrade", NEW, {}),
        ([NEW, OLD, OLD], KRAFT_3_9, "upgrade", NEW, {}),
        # nothing runs that could be asked, and forwards there is no need to know
        ([OLD] * 3, None, "upgrade", NEW, {}),
        ([NEW] * 3, KRAFT_3_9, "upgrade", NEW, {"kafka_finalize": True}),
        ([NEW] * 3, KRAFT_4_3, "upgrade", NEW, {"kafka_finalize": True}),
        ([NEW] * 3, KRAFT_3_9, "rollback", OLD, {}),
        ([NEW, NEW, OLD], KRAFT_3_9, "rollback", OLD, {}),
        (["4.3.1"] * 3, KRAFT_4_3, "rollback", "4.3.0", {"distribution_source": "archive"}),
        ([NEW] * 3, KRAFT_3_9, "deploy", NEW, {}),
    ],
)
def test_what_is_let_through(tmp_path, releases, levels, purpose, wanted, values):
    found = verdict(tmp_path, releases, levels, purpose, wanted, **values)
    assert not found.errors, told(found)
    assert set(found.result["protocols"].values()) == {""}, "no protocol is pinned in this mode"


@pytest.mark.parametrize(
    "releases, levels, purpose, values, expected",
    [
        ([OLD] * 3, KRAFT_3_9, "upgrade", {}, {}),
        ([NEW] * 3, KRAFT_3_9, "deploy", {"kafka_finalize": True}, {}),
        ([NEW] * 3, KRAFT_4_3, "upgrade", {"kafka_finalize": True}, {}),
        (
            *([NEW] * 3, STATIC_3_9, "upgrade", {"kafka_finalize": True}),
            {key: level for key, level in KRAFT_4_3.items() if key != "kraft.version"},
        ),
    ],
)
def test_what_is_finalised(tmp_path, releases, levels, purpose, values, expected):
    found = verdict(tmp_path, releases, levels, purpose, **values)
    assert found.result["versions"][CLUSTER]["finalise"] == expected


TOLD = """
upgrade:
  releases: [3.9.2, 3.9.2, 3.9.2]
  levels: KRAFT_3_9
  state: []
  before:
    - "Kafka 3.9.2 -> 4.3.1: kafka-1, kafka-2, kafka-3; one at a time."
    - "The cluster keeps its features, metadata.version 21 of Kafka 3.9, so playbooks/rollback.yml goes back."
  after:
    - "Kafka: every member of this run runs 4.3.1."
    - "Not finalised: metadata.version 21 -> 30, group.version 0 -> 1,"
    - "To finalise, after some days: FINALIZE"
    - "To go back to a 3.9 release: set kafka_version back, then ROLLBACK"
killed:
  releases: [4.3.1, 3.9.2, 3.9.2]
  levels: KRAFT_3_9
  state: ["Mixed versions of Kafka: 3.9.2: kafka-2, kafka-3; 4.3.1: kafka-1.", "playbooks/rolling_upgrade.yml",
          "Not finalised: metadata.version 21 -> 30"]
  before: ["3.9.2 -> 4.3.1: kafka-2, kafka-3; one at a time."]
  after: ["Not finalised"]
upgraded:
  releases: [4.3.1, 4.3.1, 4.3.1]
  levels: KRAFT_3_9
  state: ["Not finalised: metadata.version 21 -> 30", "-e kafka_finalize=true; playbooks/rollback.yml goes back"]
  before: ["no version changes", "pending take effect"]
  after: ["Not finalised", "FINALIZE", "ROLLBACK"]
finalise:
  releases: [4.3.1, 4.3.1, 4.3.1]
  levels: KRAFT_3_9
  values: {kafka_finalize: true}
  state: ["Not finalised"]
  before: ["FINALISING: metadata.version 21 -> 30, group.version 0 -> 1", "no node restarts", "THERE IS NO WAY BACK",
           "min.insync.replicas becomes a setting of the cluster"]
  never: ["stays static"]
  after: ["Every feature has the level of Kafka 4.3: the upgrade is final."]
finalise, with a static quorum:
  releases: [4.3.1, 4.3.1, 4.3.1]
  levels: STATIC_3_9
  values: {kafka_finalize: true}
  state: ["Not finalised"]
  before: ["The quorum stays static: kraft.version is left alone"]
  after: ["the upgrade is final"]
finalised:
  releases: [4.3.1, 4.3.1, 4.3.1]
  levels: KRAFT_4_3
  values: {kafka_finalize: true}
  state: []
  before: ["Every feature has the level of Kafka 4.3.1: there is nothing to finalise."]
  never: ["FINALISING", "NO WAY BACK"]
  after: ["the upgrade is final"]
back:
  releases: [4.3.1, 4.3.1, 3.9.2]
  levels: KRAFT_3_9
  purpose: rollback
  wanted: 3.9.2
  state: ["Mixed versions of Kafka"]
  before: ["Kafka 4.3.1 -> 3.9.2: kafka-1, kafka-2; one at a time."]
  after: ["Kafka: every member of this run runs 3.9.2."]
  never: ["Not finalised", "final."]
nobody answers:
  releases: [3.9.2, 3.9.2, 3.9.2]
  state: []
  before: ["Kafka 3.9.2 -> 4.3.1"]
  never: ["goes back"]
  after: ["Before this run no broker told which features are finalised: playbooks/status.yml tells now."]
"""
CASES = yaml.safe_load(TOLD)


@pytest.mark.parametrize("name", CASES)
def test_what_people_are_told(tmp_path, name):
    case = CASES[name]
    levels = globals()[case["levels"]] if "levels" in case else None
    found = verdict(
        *(tmp_path, case["releases"], levels, case.get("purpose", "upgrade")),
        *(str(case.get("wanted", NEW)),),
        **case.get("values", {}),
    )
    assert not found.errors, told(found)
    lines = found.result["versions"][CLUSTER]
    for part in ("state", "before", "after"):
        text = "\n".join(lines[part])
        if not case[part]:
            assert text == "", part
        for words in case[part]:
            assert words in text, (part, text)
    text = "\n".join(lines["before"] + lines["after"])
    assert not [words for words in case.get("never", ()) if words in text], text


def test_the_newest_version_of_any_node_counts(tmp_path):
    """A node that is to stay on an older release would not read the features of the others."""
    document = ground.merge(
        kraft(variables(kafka_version=NEW, kafka_finalize=True)),
        {"all": {"children": {"kafka": {"hosts": {"kafka-3": {"kafka_version": OLD}}}}}},
    )
    found = ground.verdict_of(
        *(document, tmp_path),
        facts=facts(NEW, NEW, OLD),
        snapshot={"cluster_id": ground.FRESH_CLUSTER_ID, "features": KRAFT_3_9},
        purpose="upgrade",
    )
    early = [each for each in found.errors if each.check == "version.finalize_early"]
    assert [each.subjects for each in early] == [("kafka-3",)], told(found)
    assert "runs 3.9.2, not 4.3.1" in early[0].reason


@pytest.mark.parametrize(
    "releases, purpose, wanted, hosts",
    [
        ([OLD] * 3, "upgrade", NEW, ["kafka-1", "kafka-2", "kafka-3"]),
        ([NEW, OLD, NEW], "upgrade", NEW, ["kafka-2"]),
        ([NEW] * 3, "upgrade", NEW, []),
        ([OLD] * 3, "upgrade", OLD, []),
        ([NEW] * 3, "rollback", OLD, []),
    ],
)
def test_clients_that_the_new_release_refuses_are_told_of(
    tmp_path, releases, purpose, wanted, hosts
):
    found = [
        each
        for each in verdict(tmp_path, releases, KRAFT_3_9, purpose, wanted).findings
        if each.check == "version.old_clients"
    ]
    assert [list(each.subjects) for each in found] == [hosts] * bool(hosts)
    for each in found:
        assert each.level == "warning" and "older than 2.1, which 3.9.2 serves" in each.line()
