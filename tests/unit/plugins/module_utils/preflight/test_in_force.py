# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory would change in a cluster that exists: how much it is refused, and with which remedy."""

from __future__ import annotations

import pytest
import yaml

from tests.unit.plugins.module_utils.preflight import good_inventory as ground

CURRENT = {
    "zookeeper.connect": "192.0.2.11:2181,192.0.2.12:2181,192.0.2.13:2181/kafka",
    "listeners": "INTERNAL://:9092",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
    "min.insync.replicas": "2",
}
TLS = yaml.safe_load("""
kafka_listeners: [{name: INTERNAL, port: 9092, protocol: SASL_PLAINTEXT, advertised: "{{ ansible_host }}"}]
kafka_sasl: {mechanisms: [PLAIN], inter_broker_user: broker, inter_broker_password: x}
kafka_client_security: {security_protocol: SASL_PLAINTEXT, sasl_mechanism: PLAIN}
""")


def findings(tmp_path, variables, alive=True, accept=(), snapshot=None, current=None):
    """Findings of the good cluster, after it ran, with new variables for the brokers."""
    facts = {f"zookeeper-{n}": {"zookeeper/data/has_data": True} for n in (1, 2, 3)}
    for number in (1, 2, 3):
        facts[f"kafka-{number}"] = {
            "kafka/started/alive": alive,
            "kafka/log_dirs/0/meta": {"broker.id": str(number), "cluster.id": "AAAA"},
            "kafka/current": {**CURRENT, **(current or {})},
        }
    document = ground.merge(ground.good(), {"all": {"children": {"kafka": {"vars": variables}}}})
    return ground.verdict_of(document, tmp_path, facts, snapshot, accept=accept).findings


def test_the_remedy_names_the_chroot_that_the_brokers_have(tmp_path):
    (finding,) = findings(tmp_path, {"kafka_zookeeper_chroot": "/other"})
    assert finding.remedy == "set kafka_zookeeper_chroot: /kafka"


def test_a_chroot_is_never_consented_to(tmp_path):
    wanted = {"kafka_zookeeper_chroot": "/other"}
    (finding,) = findings(tmp_path, wanted, accept=["cluster.chroot_changed"])
    assert finding.level == "error"


def test_the_disk_of_each_log_directory_is_told_where_the_host_knows_it(tmp_path):
    """Also of directories that the inventory has no more, and of no host that has not answered."""
    found = ground.directory("/srv/old", disk="8:1", meta=None, meta_broken="", quorum_state=False)
    facts = {
        "kafka-1": {
            "machine/boot": "b1",
            "kafka/log_dirs/0/disk": "8:17",
            "kafka/other_log_dirs": [found],
        },
        "kafka-2": {"machine/boot": "b2", "kafka/log_dirs/0/disk": ""},
        "kafka-3": {"machine/boot": "b3", "kafka/log_dirs/0/disk": "8:17"},
    }
    dead = {"kafka-3": {"facts": None, "unreachable": "no route to host"}}
    verdict = ground.verdict_of(ground.good(), tmp_path, facts, raw=dead)
    (told,) = verdict.result["disks"].values()
    assert [(each["broker"], each["disk"]) for each in told] == [(1, "b1/8:17"), (1, "b1/8:1")]
    assert told[1]["path"] == "/srv/old" != told[0]["path"]


@pytest.mark.parametrize(
    "alive,accept,level",
    [
        (True, [], "error"),
        (True, ["listeners.protocol_changed"], "warning"),
        (False, [], "warning"),
    ],
)
def test_a_new_protocol_is_refused_while_brokers_run(tmp_path, alive, accept, level):
    (finding,) = findings(tmp_path, TLS, alive=alive, accept=accept)
    assert (finding.check, finding.level) == ("listeners.protocol_changed", level)
    assert finding.setting == "kafka_listeners[0].protocol"
    assert "speaks PLAINTEXT now" in finding.reason


@pytest.mark.parametrize(
    "wanted,replicas,expected", [(2, 1, "any more"), (2, 2, "a broker is down")]
)
def test_more_in_sync_replicas_than_topics_can_spare(tmp_path, wanted, replicas, expected):
    topics = {replicas: (7, ("a", "b", "c", "d", "e")), 3: (1, ("new",))}
    (finding,) = findings(
        tmp_path,
        {"kafka_config": {"min.insync.replicas": wanted}},
        snapshot={"cluster_id": "AAAA", "on_default_min_isr": topics},
        current={"min.insync.replicas": "1"},
    )
    assert finding.check == "replication.min_insync_raised"
    assert expected in finding.reason and finding.reason.endswith("and 2 more")
    assert finding.remedy == (
        "set kafka_config: {min.insync.replicas: 1} until these topics have 3 replicas"
    )


def in_effect(tmp_path, listeners, current, admin=""):
    """The addresses at which the preflight says that the cluster is to be asked now."""
    facts = {
        f"kafka-{number}": {"kafka/current": each} for number, each in enumerate(current, 1) if each
    }
    variables = {"kafka_listeners": listeners, "kafka_admin_listener": admin}
    document = ground.merge(ground.good(), {"all": {"children": {"kafka": {"vars": variables}}}})
    (cluster,) = ground.verdict_of(document, tmp_path, facts).result["in_effect"].values()
    return cluster


def listener(name, port, protocol="PLAINTEXT"):
    return {"name": name, "port": port, "protocol": protocol, "advertised": "{{ ansible_host }}"}


def current(advertised, protocols="A:PLAINTEXT,B:SSL"):
    """What decides in a server.properties; listeners bind to every address."""
    listeners = ",".join(
        f"{name}://:{address.rpartition(':')[2]}"
        for name, _slashes, address in (each.partition("://") for each in advertised.split(","))
    )
    return {
        "listeners": listeners,
        "advertised.listeners": advertised,
        "listener.security.protocol.map": protocols,
    }


OLD = current("A://k:9092,B://k:9093")


@pytest.mark.parametrize(
    "listeners, files, admin, expected",
    [
        # a new port, and one broker that has it already
        ([listener("A", 9192)], [OLD, current("A://k2:9192"), None], "", ["k:9092", "k2:9192"]),
        # the listener that admins use, not the first
        ([listener("A", 1), listener("B", 2, "SSL")], [OLD], "B", ["k:9093"]),
        # a new name: the one that speaks the same
        ([listener("C", 9092)], [OLD], "", ["k:9092"]),
        ([listener("C", 9092, "SASL_SSL")], [OLD], "", []),
        ([listener("A", 9092)], [current("A://[2001:db8::1]:9092")], "", ["[2001:db8::1]:9092"]),
        # nothing is known, or nothing can be made of it
        ([listener("A", 9092)], [None], "", []),
        ([listener("A", 9092)], [{"listeners": "A://:9092"}], "", []),
        ([listener("A", 9092)], [{**OLD, "advertised.listeners": "A://:9092"}], "", []),
    ],
)  # fmt: skip
def test_brokers_are_asked_where_they_are_now(tmp_path, listeners, files, admin, expected):
    assert in_effect(tmp_path, listeners, files, admin) == expected


# ---------------------------------------------------------------- overrides


def overridden(tmp_path, *overrides, ours=None):
    """Findings of the good cluster while it runs with overrides."""
    facts = {f"zookeeper-{n}": {"zookeeper/data/has_data": True} for n in (1, 2, 3)}
    for number in (1, 2, 3):
        facts[f"kafka-{number}"] = {
            "kafka/started/alive": True,
            "kafka/log_dirs/0/meta": {"broker.id": str(number), "cluster.id": "AAAA"},
            "kafka/current": {**CURRENT, "broker.id": str(number)},
            "kafka/overrides": ours or {},
        }
    snapshot = {
        "cluster_id": "AAAA",
        "brokers": {number: ((f"192.0.2.2{number}", 9092),) for number in (1, 2, 3)},
        "overrides": tuple(overrides),
    }
    found = ground.verdict_of(ground.good(), tmp_path, facts, snapshot).findings
    return [each for each in found if each.check == "config.dynamic_override"]


def test_an_override_that_somebody_else_has_set_is_told_with_the_command_that_takes_it_away(
    tmp_path,
):
    (finding,) = overridden(tmp_path, (2, "num.io.threads", "4"))
    assert (finding.level, finding.subjects) == ("warning", ("kafka-2",))
    assert (finding.setting, finding.value) == ("num.io.threads", "4")
    assert (
        "`kafka-configs.sh --bootstrap-server 192.0.2.22:9092 --alter --entity-type brokers"
        " --entity-name 2 --delete-config num.io.threads`"
    ) in finding.remedy


def test_one_of_all_brokers_is_told_once(tmp_path):
    (finding,) = overridden(tmp_path, (None, "num.io.threads", "4"))
    assert finding.subjects == ("kafka-1", "kafka-2", "kafka-3")
    assert "--entity-default --delete-config num.io.threads" in finding.remedy


def test_a_secret_is_not_shown(tmp_path):
    (finding,) = overridden(tmp_path, (1, "ssl.keystore.password", None))
    assert finding.value == "(hidden)"


@pytest.mark.parametrize(
    "key,value,ours,count",
    [
        ("num.io.threads", "12", {"num.io.threads": ["8", "12"]}, 0),
        ("num.io.threads", "13", {"num.io.threads": ["8", "12"]}, 1),
        ("leader.replication.throttled.rate", "1000", {}, 0),
    ],
)
def test_our_own_overrides_are_no_finding(tmp_path, key, value, ours, count):
    assert len(overridden(tmp_path, (1, key, value), ours=ours)) == count


# ---------------------------------------------------------------- what deletes or endangers records

HAD = {"log.retention.hours": "168", "unclean.leader.election.enable": "false"}


def endangered(tmp_path, config, had=None, allow=(), **more):
    """What is found where brokers that ran with `had` get `config`."""
    facts = {f"zookeeper-{n}": {"zookeeper/data/has_data": True} for n in (1, 2, 3)}
    for number in (1, 2, 3):
        facts[f"kafka-{number}"] = {
            "kafka/started/alive": more.get("alive", True),
            "kafka/log_dirs/0/meta": {"broker.id": str(number), "cluster.id": "AAAA"},
            "kafka/current": {**CURRENT, **HAD, **(had or {})},
            "kafka/overrides": more.get("ours") or {},
        }
    variables = {"kafka_config": config, "kafka_topics_allow": list(allow)}
    document = ground.merge(ground.good(), {"all": {"children": {"kafka": {"vars": variables}}}})
    verdict = ground.verdict_of(
        document,
        tmp_path,
        facts,
        purpose=more.get("purpose", "deploy"),
        accept=more.get("accept", ()),
        raw=more.get("raw"),
    )
    # What is wished is told beside what it does.
    return [each for each in verdict.findings if each.check != "replication.unclean"]


@pytest.mark.parametrize(
    "config, had, check, consent, setting, sentence",
    [
        (
            {"log.retention.ms": 3600000},
            {},
            "retention.cut",
            "retention_cut",
            "kafka_config.log.retention.ms",
            "retention.ms down from 7d to 1h",
        ),
        # ms win over minutes, and minutes over hours; whichever was set before
        (
            {"log.retention.minutes": 60},
            {},
            "retention.cut",
            "retention_cut",
            "kafka_config.log.retention.minutes",
            "retention.ms down from 7d to 1h",
        ),
        (
            {"log.retention.hours": 24},
            {"log.retention.ms": "-1"},
            "retention.cut",
            "retention_cut",
            "kafka_config.log.retention.hours",
            "retention.ms down from forever to 1d",
        ),
        # back to the role's own
        (
            {},
            {"log.retention.hours": "720"},
            "retention.cut",
            "retention_cut",
            "log.retention.hours",
            "retention.ms down from 30d to 7d",
        ),
        (
            {"log.retention.bytes": 2**30},
            {},
            "retention.cut",
            "retention_cut",
            "kafka_config.log.retention.bytes",
            "retention.bytes down from unlimited to 1GiB",
        ),
        # also where topics by default are compacted: others have a policy of their own
        (
            {"log.retention.hours": 24, "log.cleanup.policy": "compact"},
            {"log.cleanup.policy": "compact"},
            "retention.cut",
            "retention_cut",
            "kafka_config.log.retention.hours",
            "retention.ms down from 7d to 1d",
        ),
        (
            {"log.cleanup.policy": "compact"},
            {},
            "cleanup.change",
            "cleanup_change",
            "kafka_config.log.cleanup.policy",
            "cleanup.policy from delete to compact",
        ),
        (
            {"log.cleanup.policy": ["delete", "compact"]},
            {"log.cleanup.policy": "compact"},
            "cleanup.change",
            "cleanup_change",
            "kafka_config.log.cleanup.policy",
            "cleanup.policy from compact to delete,compact",
        ),
        (
            {"min.insync.replicas": 1},
            {},
            "min_insync.cut",
            "min_insync_cut",
            "kafka_config.min.insync.replicas",
            "down from 2 to 1",
        ),
        (
            {"unclean.leader.election.enable": True},
            {},
            "unclean.election",
            "unclean_election",
            "kafka_config.unclean.leader.election.enable",
            "one that lags behind becomes the leader",
        ),
    ],
)
def test_a_default_that_costs_records_needs_consent(
    tmp_path, config, had, check, consent, setting, sentence
):
    (error,) = endangered(tmp_path, config, had)
    assert (error.check, error.level, error.setting) == (check, "error", setting)
    assert error.subjects == ("kafka-1", "kafka-2", "kafka-3")
    assert sentence in error.reason and "every topic without a value of its own" in error.reason
    assert f"-e kafka_topics_allow={consent}" in error.remedy
    for accepted in ({"allow": [consent]}, {"accept": [check]}):
        (warning,) = endangered(tmp_path, config, had, **accepted)
        assert (warning.check, warning.level) == (check, "warning")
        assert warning.reason == f"{error.reason} (accepted)"


@pytest.mark.parametrize(
    "config, had, told",
    [
        ({"offsets.retention.minutes": 1440}, {}, "down from 7d to 1d"),
        ({}, {"offsets.retention.minutes": "20160"}, "down from 14d to 7d"),
        ({"offsets.retention.minutes": 20160}, {}, ""),
        ({"offsets.retention.minutes": 10080}, {}, ""),
    ],
)
def test_offsets_that_expire_sooner_need_the_consent_of_a_retention(tmp_path, config, had, told):
    findings = endangered(tmp_path, config, had)
    assert [(each.check, each.level) for each in findings] == (
        [("retention.offsets_cut", "error")] if told else []
    )
    assert all(told in each.reason for each in findings)
    consented = endangered(tmp_path, config, had, allow=["retention_cut"])
    assert [each.level for each in consented] == (["warning"] if told else [])
    assert not endangered(tmp_path, config, had, purpose="keep")


@pytest.mark.parametrize("alive", [True, False])
def test_several_are_told_at_once_and_also_of_a_stopped_cluster(tmp_path, alive):
    config = {"log.retention.ms": 3600000, "min.insync.replicas": 1}
    found = endangered(tmp_path, config, alive=alive)
    assert [each.check for each in found] == ["min_insync.cut", "retention.cut"]


@pytest.mark.parametrize(
    "config, had, ours",
    [
        # the same in another unit, and longer
        ({"log.retention.ms": 604800000}, {}, {}),
        ({"log.retention.hours": 169}, {}, {}),
        ({"log.retention.ms": -1}, {}, {}),
        ({"log.retention.hours": -1}, {"log.retention.ms": "-1"}, {}),
        ({"log.retention.bytes": -1, "log.cleanup.policy": "delete"}, {}, {}),
        # safer
        ({"log.cleanup.policy": "delete"}, {"log.cleanup.policy": "delete,compact"}, {}),
        ({}, {"unclean.leader.election.enable": "true"}, {}),
        # changed without a restart, by an earlier run
        ({"log.retention.ms": 3600000}, {}, {"log.retention.ms": ["3600000"]}),
    ],
)
def test_what_costs_no_record_needs_no_consent(tmp_path, config, had, ours):
    assert not endangered(tmp_path, config, had, ours=ours)


def test_a_change_without_a_restart_that_was_killed_is_asked_for_again(tmp_path):
    """It had begun: the older of the two values may still be in effect."""
    ours = {"log.retention.ms": ["86400000", "3600000"]}
    (error,) = endangered(tmp_path, {"log.retention.ms": 3600000}, ours=ours)
    assert "retention.ms down from 1d to 1h" in error.reason


@pytest.mark.parametrize("purpose", ["start", "keep"])
def test_a_playbook_that_writes_no_configuration_asks_for_no_consent(tmp_path, purpose):
    assert not endangered(tmp_path, {"log.retention.ms": 3600000}, purpose=purpose)


def test_a_broker_outside_of_limit_is_judged_and_one_that_never_ran_is_not(tmp_path):
    cut = {"log.retention.ms": 3600000}
    raw = {"kafka-2": {"in_play": False}}
    (error,) = endangered(tmp_path, cut, raw=raw)
    assert error.subjects == ("kafka-1", "kafka-2", "kafka-3")
    staged = {f"kafka-{n}": {"kafka/current": {**CURRENT, **HAD}} for n in (1, 2, 3)}
    document = ground.merge(
        ground.good(), {"all": {"children": {"kafka": {"vars": {"kafka_config": cut}}}}}
    )
    assert not ground.verdict_of(document, tmp_path, staged).findings
