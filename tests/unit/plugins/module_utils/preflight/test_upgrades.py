# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way from what runs to the inventory's versions, and what people are told of it."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.keys import (
    broker_table,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    Raw,
    read_member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.versions_and_keys import (
    broker_table_for,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import Versions
from tests.unit.plugins.module_utils.preflight import good_inventory as ground
from tests.unit.plugins.module_utils.preflight.test_wrong_inventories import said, spoilt

KEY = "inter.broker.protocol.version"
OLD = {"kafka/release": "kafka_2.13-3.8.1", "kafka/current": {}}
PINNED = {"kafka/release": "kafka_2.13-3.9.2", "kafka/current": {KEY: "3.8"}}
FINAL = {"kafka/release": "kafka_2.13-3.9.2", "kafka/current": {KEY: "3.9"}}
UNPINNED = {"kafka/release": "kafka_2.13-3.9.2", "kafka/current": {}}
BROKERS = ("kafka-1", "kafka-2", "kafka-3")
CLUSTER = "orders-prod"


def verdict(tmp_path, facts, purpose, outside=(), **brokers):
    """The verdict over the good inventory with variables of its brokers; facts in their order; `outside` of --limit."""
    return ground.verdict_of(
        spoilt(brokers=brokers),
        tmp_path,
        facts=dict(zip(BROKERS, facts)),
        raw={name: {"in_play": False} for name in outside},
        purpose=purpose,
    )


@pytest.mark.parametrize(
    "check, facts, purpose, brokers",
    [
        ("version.needs_upgrade", [OLD] * 3, "deploy", {}),
        ("version.illegal_path", [PINNED] * 3, "deploy", {"kafka_version": "3.8.1"}),
        ("version.illegal_path", [FINAL] * 3, "rollback", {"kafka_version": "3.8.1"}),
        ("version.finalize_early", [OLD] * 3, "upgrade", {"kafka_finalize": True}),
        ("version.protocol", [PINNED] * 3, "deploy", {"kafka_config": {KEY: "3.9"}}),
    ],
)
def test_nobody_can_consent_to_it(tmp_path, check, facts, purpose, brokers):
    refused = ground.verdict_of(
        spoilt(brokers=brokers),
        tmp_path,
        facts=dict(zip(BROKERS, facts)),
        purpose=purpose,
        accept=[check],
    )
    assert {each.check for each in refused.errors} == {check}


@pytest.mark.parametrize(
    "brokers, check",
    [
        (
            {"kafka_listeners": [{"name": "A", "port": 9092, "advertised": "localhost"}]},
            "listeners",
        ),
        ({"kafka_config": {"num.partitons": 3}}, "config.unknown_key"),
        ({"kafka_version": "3.9.2"}, "version.needs_upgrade"),
        ({"kafka_topics": [{"name": "a", "partitions": 0}]}, "topics.bad_value"),
        ({"kafka_config": {"default.replication.factor": 9}}, "replication.exceeds_brokers"),
    ],
)
def test_a_start_minds_no_mistake_in_what_the_inventory_would_write(tmp_path, brokers, check):
    """It starts what was in effect; a mistake that has been made since is only told."""
    assert verdict(tmp_path, [OLD] * 3, "deploy", **brokers).errors
    told = verdict(tmp_path, [OLD] * 3, "start", **brokers)
    assert not told.errors, [each.line() for each in told.errors]
    assert any(each.check.startswith(check) for each in told.findings), said(told)


def test_a_start_minds_what_is_on_the_host(tmp_path):
    twice = dict.fromkeys(("kafka-2", "kafka-3"), {"kafka_broker_id": 2})
    refused = ground.verdict_of(spoilt(hosts=twice), tmp_path, purpose="start")
    assert "identity.duplicate_broker_id" in {each.check for each in refused.errors}


@pytest.mark.parametrize(
    "facts, purpose, wanted, check, remedy",
    [
        ([OLD] * 3, "deploy", "3.9.2", "version.needs_upgrade", "playbooks/rolling_upgrade.yml"),
        ([PINNED] * 3, "deploy", "3.8.1", "version.illegal_path", "playbooks/rollback.yml"),
        ([FINAL] * 3, "deploy", "3.8.1", "version.illegal_path", "set kafka_version: 3.9.2"),
        ([FINAL] * 3, "rollback", "3.8.1", "version.illegal_path", "set kafka_version: 3.9.2"),
        ([OLD] * 3, "rollback", "3.9.2", "version.illegal_path", "playbooks/rolling_upgrade.yml"),
    ],
)
def test_the_remedy_names_the_way_that_there_is(tmp_path, facts, purpose, wanted, check, remedy):
    (finding,) = verdict(tmp_path, facts, purpose, kafka_version=wanted).findings
    assert finding.check == check and remedy in finding.remedy
    assert ("no way back" in finding.reason) == (facts[0] is FINAL)


def test_what_changes_no_version_only_warns(tmp_path):
    """topics.yml, start.yml and validate.yml work in the middle of an upgrade, also a killed one."""
    found = verdict(tmp_path, [PINNED, OLD, OLD], "keep")
    assert not found.errors and set(said(found)) == {"version.needs_upgrade"}


@pytest.mark.parametrize(
    "facts, purpose, brokers, expected",
    [
        ([{}, {}, {}], "deploy", {}, ["", "", ""]),
        ([OLD, OLD, OLD], "upgrade", {}, ["3.8", "3.8", "3.8"]),
        ([PINNED, OLD, {}], "upgrade", {}, ["3.8", "3.8", "3.8"]),
        ([PINNED, PINNED, {}], "deploy", {}, ["3.8", "3.8", "3.8"]),
        ([PINNED, PINNED, PINNED], "upgrade", {"kafka_finalize": "true"}, ["3.9", "3.9", "3.9"]),
        # only rolling_upgrade.yml finalises
        ([PINNED, PINNED, PINNED], "deploy", {"kafka_finalize": "true"}, ["3.8", "3.8", "3.8"]),
        ([FINAL, PINNED, PINNED], "deploy", {}, ["3.9", "3.8", "3.8"]),
        ([UNPINNED, UNPINNED, UNPINNED], "upgrade", {"kafka_finalize": True}, ["", "", ""]),
        # a configuration that was staged, and never ran
        ([{"kafka/current": {KEY: "3.8"}}, {}, {}], "deploy", {}, ["", "", ""]),
    ],
)
def test_what_is_written(tmp_path, facts, purpose, brokers, expected):
    found = verdict(tmp_path, facts, purpose, **brokers)
    assert [found.result["protocols"][name] for name in BROKERS] == expected


STATES = st.lists(st.sampled_from([OLD, PINNED, FINAL, UNPINNED, {}]), min_size=3, max_size=3)
GATHERED = {}


def judged(tmp_path_factory, version, facts, purpose):
    """The same verdict; reading an inventory is what takes the time, so it is read once a version."""
    if version not in GATHERED:
        GATHERED[version] = ground.gather(
            spoilt(brokers={"kafka_version": version}), tmp_path_factory.mktemp("inventory")
        )
    return ground.judge_gathered(
        GATHERED[version], facts=dict(zip(BROKERS, facts)), purpose=purpose
    )


@settings(max_examples=40, deadline=None)
@given(facts=STATES, version=st.sampled_from(["3.8.1", "3.9.2"]))
def test_a_deploy_that_is_not_refused_changes_no_key_in_force(tmp_path_factory, facts, version):
    found = judged(tmp_path_factory, version, facts, "deploy")
    if not any(each.check.startswith("version.") for each in found.errors):
        for name, each in zip(BROKERS, facts):
            key = each.get("kafka/current", {}).get(KEY, "")
            assert not key or found.result["protocols"][name] == key


@settings(max_examples=40, deadline=None)
@given(facts=STATES.filter(lambda each: FINAL in each or UNPINNED in each))
def test_after_finalising_a_rollback_is_refused(tmp_path_factory, facts):
    found = judged(tmp_path_factory, "3.8.1", facts, "rollback")
    newer = {
        name
        for name, each in zip(BROKERS, facts)
        if each.get("kafka/release") == UNPINNED["kafka/release"]
    }
    refused = [each for each in found.errors if each.check == "version.illegal_path"]
    assert {host for each in refused for host in each.subjects} == newer


SILENT = {"facts": None, "unreachable": "it was not asked", "in_play": False}


@pytest.mark.parametrize(
    "purpose, registered, wanted, checks",
    [
        ("rollback", {1: []}, "3.8.1", {"version.illegal_path"}),
        # nobody tells who is registered
        ("rollback", None, "3.8.1", {"version.illegal_path"}),
        # it is down, and so keeps nobody waiting
        ("rollback", {2: []}, "3.8.1", set()),
        # every release of a line speaks the same
        ("rollback", {1: []}, "3.9.1", set()),
    ],
)
def test_a_rollback_waits_for_who_may_speak_what_is_finalised(
    tmp_path, purpose, registered, wanted, checks
):
    """Finalising was killed after kafka-1, and its host does not answer."""
    source = {"distribution_source": {"kafka": "archive"}, "kafka_version": wanted}
    found = ground.verdict_of(
        spoilt(brokers=source, hosts={"kafka-1": {"kafka_broker_id": 1}}),
        tmp_path,
        facts={"kafka-2": PINNED, "kafka-3": PINNED},
        raw={"kafka-1": SILENT},
        snapshot=None if registered is None else {"brokers": registered},
        purpose=purpose,
    )
    refused = [each for each in found.errors if each.check.startswith("version.")]
    assert {each.check for each in refused} == checks, said(found)
    assert all("kafka-1 cannot be asked" in each.reason for each in refused)
    assert all("bring that host back" in each.remedy for each in refused)


@pytest.mark.parametrize(
    "others, own, wanted, refused",
    [
        (FINAL, {}, "3.8.1", True),
        (UNPINNED, {}, "3.8.1", True),
        # its configuration outlived its disk
        (FINAL, FINAL, "3.8.1", True),
        # before finalising, an older one may join; a newer one is pinned
        (PINNED, {}, "3.8.1", False),
        (OLD, {}, "3.9.2", False),
        (FINAL, {}, "3.9.2", False),
    ],
)
def test_a_replaced_broker_gets_no_release_that_cannot_follow(
    tmp_path, others, own, wanted, refused
):
    found = ground.verdict_of(
        spoilt(brokers={"kafka_version": wanted}, hosts={"kafka-3": {"kafka_broker_id": 3}}),
        tmp_path,
        facts={"kafka-1": others, "kafka-2": others, "kafka-3": own},
        purpose="keep",
        replaced=3,
    )
    errors = {host for each in found.errors for host in each.subjects}
    assert errors == ({"kafka-3"} if refused else set()), said(found)
    assert {each.check for each in found.errors} <= {"version.illegal_path"}


TOLD = """
upgrade:
  facts: [OLD, OLD, OLD]
  state: []
  before:
    - "Kafka 3.8.1 -> 3.9.2: kafka-1, kafka-2, kafka-3; one at a time."
    - "protocol version 3.8, so playbooks/rollback.yml"
  after:
    - "Kafka: every member of this run runs 3.9.2."
    - "Pinned to protocol version 3.8, not finalised"
    - "To finalise, after some days: FINALIZE"
    - "set kafka_version back, then ROLLBACK"
killed:
  facts: [PINNED, OLD, OLD]
  state: ["Mixed versions of Kafka: 3.8.1: kafka-2, kafka-3; 3.9.2: kafka-1.", "playbooks/rolling_upgrade.yml",
          "Pinned to protocol version 3.8, not finalised: kafka-1."]
  before: ["3.8.1 -> 3.9.2: kafka-2, kafka-3; one at a time."]
  after: ["Pinned to protocol version 3.8, not finalised: kafka-1, kafka-2, kafka-3."]
upgraded:
  facts: [PINNED, PINNED, PINNED]
  state: ["Pinned to protocol version 3.8, not finalised: kafka-1, kafka-2, kafka-3."]
  before: ["no version changes", "pending take effect"]
  after: ["Pinned to protocol version 3.8, not finalised"]
finalise:
  facts: [PINNED, PINNED, PINNED]
  brokers: {kafka_finalize: true}
  state: ["not finalised"]
  before: ["FINALISING: protocol version 3.8 -> 3.9: kafka-1, kafka-2, kafka-3", "NO WAY BACK"]
  after: ["No broker is pinned to an older protocol version: the upgrade is final."]
finalise, killed:
  facts: [PINNED, FINAL, PINNED]
  state: ["Finalising is half done: kafka-2 speaks protocol version 3.9, kafka-1, kafka-3 still 3.8.", "no way back"]
  before: ["no version changes", "pending take effect"]
  after: ["Finalising is half done", "To go on: FINALIZE; there is no way back"]
finalise, one alone:
  facts: [PINNED, PINNED, PINNED]
  brokers: {kafka_finalize: true}
  outside: [kafka-2, kafka-3]
  state: ["not finalised"]
  before:
    - "FINALISING: protocol version 3.8 -> 3.9: kafka-1; one at a time."
    - "Not in this run, and still pinned: kafka-2, kafka-3."
  after:
    - "Finalising is half done: kafka-1 speaks protocol version 3.9, kafka-2, kafka-3 still 3.8."
    - "To go on: FINALIZE; there is no way back"
finalise, one alone once more:
  facts: [FINAL, PINNED, FINAL]
  brokers: {kafka_finalize: true}
  outside: [kafka-2]
  state: ["Finalising is half done"]
  before: ["No broker of this run is pinned: there is nothing to finalise.", "still pinned: kafka-2."]
  after: ["Finalising is half done: kafka-1, kafka-3 speak protocol version 3.9, kafka-2 still 3.8."]
upgrade, one alone:
  facts: [OLD, OLD, OLD]
  outside: [kafka-2, kafka-3]
  state: []
  before: ["Kafka 3.8.1 -> 3.9.2: kafka-1; one at a time.", "protocol version 3.8, so playbooks/rollback.yml"]
  after:
    - "Not in this run, and still on another version: kafka-2, kafka-3."
    - "Pinned to protocol version 3.8, not finalised: kafka-1."
finalised:
  facts: [FINAL, FINAL, FINAL]
  brokers: {kafka_finalize: true}
  state: []
  before: ["there is nothing to finalise"]
  after: ["the upgrade is final"]
back:
  facts: [PINNED, PINNED, OLD]
  purpose: rollback
  brokers: {kafka_version: 3.8.1}
  state: ["Mixed versions of Kafka"]
  before: ["Kafka 3.9.2 -> 3.8.1: kafka-1, kafka-2; one at a time."]
  after: ["Kafka: every member of this run runs 3.8.1."]
"""
CASES = yaml.safe_load(TOLD)


@pytest.mark.parametrize("name", CASES)
def test_what_people_are_told(tmp_path, name):
    case = CASES[name]
    found = verdict(
        tmp_path,
        [globals()[each] for each in case["facts"]],
        case.get("purpose", "upgrade"),
        case.get("outside", ()),
        **case.get("brokers", {}),
    )
    assert not found.errors
    told = found.result["versions"][CLUSTER]
    for part in ("state", "before", "after"):
        text = "\n".join(told[part])
        if not case[part]:
            assert text == "", part
        for words in case[part]:
            assert words in text, (part, text)


@pytest.mark.parametrize(
    "version, table", [("3.9.2", "Kafka 3.9.2"), ("3.9.11", "Kafka 3.9.10"), ("3.7.1", None)]
)
def test_a_release_without_a_table_has_that_of_the_newest_one_of_its_line(version, table):
    tables = {each: broker_table({"version": each}, {}, {}) for each in ("3.9.10", "3.9.2")}
    member, _problems = read_member(Raw("kafka-1", True, False, {"kafka_version": version}))
    found = broker_table_for(member, Versions(broker_tables=tables))
    assert (found.version if found else None) == table
