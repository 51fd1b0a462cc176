# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brokers and servers that others have installed: what counts as theirs, and what is refused until the first start."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.asking import ask_clusters
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.host_facts import (
    instance_facts,
)
from tests.unit.plugins.module_utils.preflight.good_inventory import (
    gather,
    good,
    good_facts,
    merge,
    read_member,
    verdict_of,
)

NAMED = {"config": "/etc/kafka/server.properties", "version": "3.9.2"}
THEIR_SERVER = {"config": "/etc/zookeeper/zoo.cfg", "version": "3.9.5"}
ID = "b25lLWNsdXN0ZXItb25seQ"
CONFIG = {
    "zookeeper.connect": "z:2181/kafka",
    "log.retention.hours": "168",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "unclean.leader.election.enable": "false",
}


def theirs(number, current=None, ours=False, release="/etc/kafka/server.properties-3.9.2"):
    """Facts of a broker's host on which others run a broker with data."""
    return {
        "kafka/ours": ours,
        "kafka/current": {**CONFIG, "broker.id": str(number)} if current is None else current,
        "kafka/release": release,
        "kafka/log_dirs/0/meta": {"version": "0", "broker.id": str(number), "cluster.id": ID},
    }


def all_theirs(**more):
    facts = {f"kafka-{number}": theirs(number, **more) for number in (1, 2, 3)}
    servers = {f"zookeeper-{number}": {"zookeeper/data/has_data": True} for number in (1, 2, 3)}
    return {**facts, **servers}


ALIVE = {"cluster_id": ID, "brokers": {n: ((f"kafka-{n}.example.com", 9092),) for n in (1, 2, 3)}}


def found(tmp_path, facts, brokers=None, servers=None, **more):
    """Check -> findings of the good inventory with these variables of its groups."""
    document = merge(
        good(),
        {
            "all": {
                "children": {"kafka": {"vars": brokers or {}}, "zookeeper": {"vars": servers or {}}}
            }
        },
    )
    verdict = verdict_of(document, tmp_path, facts, more.pop("snapshot", ALIVE), **more)
    told = {}
    for each in verdict.findings:
        told.setdefault(each.check, []).append(each)
    return told


BROKERS = ("kafka-1", "kafka-2", "kafka-3")


@pytest.mark.parametrize(
    "facts, snapshot, level",
    [
        # a cluster that answers, and nobody has ever started one of its brokers from here
        (all_theirs(current={}), ALIVE, "error"),
        # directories that outlived a teardown
        (all_theirs(current={}), None, "warning"),
        # one host of several was installed anew
        (
            {**all_theirs(), "kafka-1": theirs(1, current={}), "kafka-2": theirs(2, ours=True)},
            ALIVE,
            "warning",
        ),
    ],
)
def test_what_others_have_installed_has_to_be_named(tmp_path, facts, snapshot, level):
    for each in facts.values():
        if each.get("kafka/current") == {}:
            each["kafka/current"] = None
    told = found(tmp_path, facts, snapshot=snapshot)
    assert {each.level for each in told["takeover.unnamed"]} == {level}
    named = found(tmp_path, facts, {"kafka_taken_over": NAMED}, snapshot=snapshot)
    assert "takeover.unnamed" not in named and "takeover.no_config" in named


def test_nothing_is_said_of_what_is_named_or_ours(tmp_path):
    checks = set(found(tmp_path, all_theirs(), {"kafka_taken_over": NAMED}))
    assert not {each for each in checks if each.startswith("takeover")}
    assert not {
        each for each in found(tmp_path, all_theirs(ours=True)) if each.startswith("takeover")
    }


def test_their_configuration_is_what_is_in_force(tmp_path):
    """A shorter retention, another chroot and another version are found as in a cluster of ours."""
    told = found(
        tmp_path,
        all_theirs(),
        {
            "kafka_taken_over": NAMED,
            "kafka_config": {"log.retention.hours": 24},
            "kafka_zookeeper_chroot": "/other",
            "kafka_version": "3.8.1",
        },
    )
    assert {"retention.cut", "cluster.chroot_changed", "version.needs_upgrade"} <= set(told)


@pytest.mark.parametrize(
    "brokers, servers, refused",
    [
        # servers of different releases serve together, and so do brokers of one line
        ({"version": "3.9.1"}, {"version": "3.8.4"}, ()),
        ({"version": "3.9.2"}, {"version": "3.9.5"}, ()),
        ({"version": "3.8.1"}, {"version": "3.9.5"}, ("kafka_version",)),
        ({"version": "3.9.3"}, {"version": "3.9.6"}, ("kafka_version", "zookeeper_version")),
    ],
)
def test_versions_with_which_it_is_taken_over(tmp_path, brokers, servers, refused):
    """A broker of another line is upgraded afterwards, one after another, behind the gate."""
    facts = all_theirs(release=f"former-{brokers['version']}")
    for number in (1, 2, 3):
        facts[f"zookeeper-{number}"].update(
            {
                "zookeeper/ours": False,
                "zookeeper/current": {"clientPort": "2181"},
                "zookeeper/release": f"former-{servers['version']}",
            }
        )
    told = found(
        tmp_path,
        facts,
        {"kafka_taken_over": {**NAMED, **brokers}},
        {"zookeeper_taken_over": {**THEIR_SERVER, **servers}},
    )
    wrong = told.get("version.needs_upgrade", ())
    assert {each.setting for each in wrong} == set(refused)
    assert all("take it over with the version that runs" in each.remedy for each in wrong)


def test_a_host_that_was_taken_over_before_and_has_lost_its_disk_of_the_system(tmp_path):
    """Another broker is ours: then it may be a host of ours, and nothing else waits for it."""
    facts = {**all_theirs(ours=True), "kafka-1": theirs(1, current={})}
    facts["kafka-1"]["kafka/current"] = facts["kafka-1"]["kafka/release"] = None
    told = found(tmp_path, facts, {"kafka_taken_over": NAMED}, purpose="keep")
    (one,) = told["takeover.no_config"]
    assert one.level == "warning" and "kafka_taken_over: {}" in one.remedy
    assert "takeover.first" not in told


def test_a_chroot_without_a_cluster_is_refused_whoever_runs(tmp_path):
    told = found(
        tmp_path, all_theirs(current={}, ours=True), snapshot={**ALIVE, "no_cluster_there": True}
    )
    (one,) = told["cluster.chroot_changed"]
    assert one.subjects == BROKERS and "keeps no cluster there" in one.reason


@pytest.mark.parametrize(
    "purpose, fit_for, refused",
    [
        ("deploy", ("kraft",), False),
        ("upgrade", ("kraft",), True),
        ("rollback", ("kraft",), True),
        ("keep", ("kraft",), True),
        ("keep", ("kraft", "migration"), False),
        ("state", ("kraft",), False),
    ],
)
def test_nothing_else_is_done_to_a_host_before_it_is_taken_over(
    tmp_path, purpose, fit_for, refused
):
    told = found(
        tmp_path,
        all_theirs(),
        {"kafka_taken_over": NAMED},
        purpose=purpose,
        fit_for=frozenset(fit_for),
    )
    assert ("takeover.first" in told) == refused


def test_a_process_of_others_that_still_runs_leads_to_its_host(tmp_path):
    facts = all_theirs()
    held = {"address": "0.0.0.0", "port": 9092, "pid": 77, "command": "java", "ours": False}
    facts["kafka-2"]["ports"] = [held]
    told = found(tmp_path, facts, {"kafka_taken_over": NAMED})
    (one,) = told["ports.in_use"]
    assert one.remedy.endswith("run playbooks/site.yml --limit kafka-2")


@pytest.mark.parametrize(
    "value, variable",
    [
        ({"config": "/x"}, "kafka_taken_over"),
        ({"config": "/x", "version": "3.9"}, "kafka_taken_over.version"),
        ({"config": "/x", "version": "3.9.2", "more": 1}, "kafka_taken_over"),
        ("/etc/kafka", "kafka_taken_over"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, value, variable):
    told = found(tmp_path, {}, {"kafka_taken_over": value}, snapshot=None)
    places = [each.setting for each in told.get("settings.bad_value", ())]
    assert any(each.startswith(variable) for each in places), told


def test_of_a_host_with_the_data_of_others_the_cluster_is_asked(tmp_path):
    """Nothing of ours runs, and yet a cluster may answer."""
    raws, _inventory, _groups = gather(good(), tmp_path)
    members = []
    for raw in raws:
        member = read_member(raw)[0]
        facts = good_facts(member, [])
        if member.is_broker:
            facts["kafka"]["ours"] = False
            facts["kafka"]["log_dirs"][0]["meta"] = {"broker.id": "1", "cluster.id": ID}
        members.append(read_member(type(raw)(**{**vars(raw), "facts": facts}))[0])
    asked = []
    cluster = members[0].text("kafka_cluster_name")
    asks = {cluster: lambda asking: asked.append(asking) or {"reachable": False}}
    ask_clusters(members, {}, asks, False)
    (asking,) = asked
    assert asking["zookeeper"].endswith("/kafka") and asking["bootstrap_servers"]


def instance(tmp_path, **more):
    return {
        "instance": "kafka",
        "config_dir": str(tmp_path / "conf"),
        "properties": "server.properties",
        "started": str(tmp_path / "started.json"),
        **more,
    }


def test_facts_of_what_others_have_installed(tmp_path):
    """Their file counts until a start of ours was answered; one that was begun and undone is none."""
    old, data = tmp_path / "old.properties", tmp_path / "data"
    data.mkdir()
    old.write_text(f"broker.id=7\nlog.dirs={data}\n")
    wanted = instance(tmp_path, taken_over={"config": str(old), "version": "3.8.1"})
    facts = instance_facts(wanted)
    assert (facts["current"], facts["release"]) == (None, None), "a host that joins later"
    (data / "meta.properties").write_text("broker.id=7\n")
    facts = instance_facts(wanted)
    assert facts["current"]["broker.id"] == "7" and facts["release"].endswith("-3.8.1")
    assert not facts["ours"]
    assert instance_facts(instance(tmp_path))["current"] is None
    gone = {"config": str(tmp_path / "none"), "version": "3.8.1"}
    facts = instance_facts(instance(tmp_path, taken_over=gone, log_dirs=[str(data)]))
    assert (facts["current"], facts["release"]) == (None, None)

    generation = tmp_path / "conf" / "generations" / "a"
    generation.mkdir(parents=True)
    (generation / "server.properties").write_text("broker.id=7\nlog.dirs=/wrong\n")
    (generation / "meaning.json").write_text(json.dumps({"release": "/opt/kafka_2.13-3.9.2"}))
    (tmp_path / "conf" / "current").symlink_to(generation)
    assert instance_facts(wanted)["current"]["log.dirs"] == str(data)
    (tmp_path / "conf" / "answered").symlink_to(generation)
    facts = instance_facts(wanted)
    assert facts["ours"] and facts["current"]["log.dirs"] == "/wrong"
    assert facts["release"] == "kafka_2.13-3.9.2"
