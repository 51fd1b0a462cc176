# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventories of wrong_inventories.yml: the whole verdict has to be right, nothing missing, nothing more."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.jvm import options_to_try
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import read_member
from tests.unit.plugins.module_utils.preflight import good_inventory as ground

TABLE = pathlib.Path(__file__).with_name("wrong_inventories.yml")
CASES = yaml.safe_load(TABLE.read_text(encoding="utf-8"))


def spoilt(everywhere=None, brokers=None, servers=None, hosts=None, document=None):
    """The good inventory with variables laid over it, as the table writes them."""
    groups = {"kafka": {"vars": brokers, "hosts": {}}, "zookeeper": {"vars": servers, "hosts": {}}}
    for host, variables in (hosts or {}).items():
        groups[host.rsplit("-", 1)[0]]["hosts"][host] = variables
    for group in groups.values():
        group["vars"] = group["vars"] or {}
    result = ground.merge(ground.good(), {"all": {"vars": everywhere or {}, "children": groups}})
    return ground.merge(result, document)


def said(verdict):
    """check id -> hosts, over all findings of a verdict."""
    told = {}
    for each in verdict.findings:
        told.setdefault(each.check, set()).update(each.subjects)
    return {check: sorted(hosts) for check, hosts in told.items()}


@pytest.mark.parametrize("name", CASES)
def test_wrong_inventory(name, tmp_path):
    case = CASES[name]
    verdict = ground.verdict_of(
        spoilt(**(case.get("spoil") or {})),
        tmp_path,
        facts=case.get("facts"),
        snapshot=_snapshot(case.get("snapshot")),
        raw=case.get("raw"),
        unprotected=case.get("unprotected", False),
        purpose=case.get("purpose", "deploy"),
    )
    lines = "\n".join(each.line() for each in verdict.findings)
    assert said(verdict) == case["expect"], lines
    assert case.get("count", len(verdict.findings)) == len(verdict.findings), lines


def _snapshot(written):
    if not written:
        return None
    brokers = {
        number: tuple(tuple(each) for each in endpoints)
        for number, endpoints in (written.get("brokers") or {}).items()
    }
    return dict(written, brokers=brokers, replicas=frozenset(written.get("replicas") or ()))


def test_the_good_inventory_has_no_findings(tmp_path):
    assert ground.verdict_of(ground.good(), tmp_path).findings == ()


def test_there_are_at_least_forty_wrong_inventories():
    assert len(CASES) >= 40


@pytest.mark.parametrize(
    "variable, value, where",
    [
        ("kafka_sasl", {"inter_broker_password": ["hush"]}, ".inter_broker_password"),
        ("kafka_sasl", {"inter_broker_password": True}, ".inter_broker_password"),
        ("kafka_sasl", {"inter_broker_password": "hush\nhush"}, ".inter_broker_password"),
        ("kafka_sasl", {"users": {"a": {"hush": 1}}}, ".users.a"),
        ("kafka_sasl", {"users": {"a": "hush", "b": None}}, ".users.b"),
        ("kafka_sasl", {"users": [{"a": "hush"}]}, ".users"),
        ("kafka_sasl", [{"users": {"a": "hush"}}], ""),
        ("kafka_ssl", {"key": ["hush"]}, ".key"),
        ("kafka_client_security", {"sasl_password": ["hush"]}, ".sasl_password"),
    ],
)
def test_secrets_of_a_wrong_type_are_found_and_not_shown(tmp_path, variable, value, where):
    """The brokers would get them as Python writes a list."""
    verdict = ground.verdict_of(spoilt(brokers={variable: value}), tmp_path)
    (finding,) = [each for each in verdict.errors if each.setting == f"{variable}{where}"]
    assert finding.check == "listeners.security"
    assert "hush" not in repr(verdict)


BAD_URL = "https://bob:hun/ter2@mirror.example/x.jar"


@pytest.mark.parametrize(
    "variable, value, where",
    [
        ("distribution_url", BAD_URL, ""),
        ("distribution_url", {"kafka": BAD_URL}, ".kafka"),
        ("distribution_mirror", BAD_URL, ""),
        (
            "kafka_plugins",
            [
                {"name": "a", "src": "/a.jar", "sha512": "0" * 128},
                {"name": "b", "src": BAD_URL, "sha512": "1" * 128},
            ],
            "[1].src",
        ),
    ],
)
def test_urls_with_a_login_that_is_not_encoded_are_found_and_not_shown(
    tmp_path, variable, value, where
):
    verdict = ground.verdict_of(spoilt(everywhere={variable: value}), tmp_path)
    found = [each for each in verdict.errors if "%2F" in each.remedy]
    assert {each.setting for each in found} == {f"{variable}{where}"}
    assert {each.check for each in found} <= {"addresses.form", "settings.bad_value"}
    assert "hun" not in repr(verdict) and "ter2" not in repr(verdict)


def test_numbers_are_passwords(tmp_path):
    sasl = {"inter_broker_user": "b", "inter_broker_password": 4711, "users": {"a": 4711}}
    assert said(ground.verdict_of(spoilt(brokers={"kafka_sasl": sasl}), tmp_path)) == {}


@pytest.mark.parametrize(
    "chosen, tried",
    [
        ({}, []),
        ({"kafka_gc_options": []}, []),
        ({"kafka_gc_options": ["-XX:+UseFooGC"]}, ["-XX:+UseFooGC"]),
        (
            {"kafka_gc_options": ["-XX:+UseFooGC"], "kafka_jvm_options": ["-XX:A=1", "-Da=b"]},
            ["-XX:+UseFooGC", "-XX:A=1"],
        ),
        (
            {"kafka_gc_options": ["-XX:+UseFooGC"], "kafka_jvm_options": ["-XX:+UseZGC"]},
            ["-XX:+UseZGC"],
        ),
    ],
)
def test_options_that_the_inventory_chooses_are_tried(tmp_path, chosen, tried):
    raws, _inventory, _groups = ground.gather(spoilt(brokers=chosen), tmp_path)
    member = next(read_member(raw)[0] for raw in raws if raw.name == "kafka-1")
    assert options_to_try(member, "kafka")[2:] == tried


@pytest.mark.parametrize(
    "mechanism, told",
    [
        ("PLAIN", "passwords and records travel in clear"),
        ("SCRAM-SHA-512", "records travel in clear"),
    ],
)
def test_what_a_login_without_encryption_shows_is_told(tmp_path, mechanism, told):
    settings = {
        "=kafka_listeners": [
            {"name": "A", "port": 9092, "protocol": "SASL_PLAINTEXT", "advertised": "10.0.0.1"}
        ],
        "kafka_sasl": {
            "mechanisms": [mechanism],
            "inter_broker_user": "b",
            "inter_broker_password": "x",
        },
    }
    verdict = ground.verdict_of(spoilt(brokers=settings), tmp_path, unprotected=True)
    plain = [each for each in verdict.findings if each.check == "security.plaintext"]
    assert [(each.value, each.reason) for each in plain] == [("SASL_PLAINTEXT", told)]


@pytest.mark.parametrize(
    "group, key, check",
    [
        ("brokers", "sasl.jaas.confg", "config.unknown_key"),
        ("brokers", "ssl.key.pasword", "config.unknown_key"),
        ("brokers", "rsm.config.azure.sas", "config.plugin_key"),
        ("servers", "ssl.quorum.keyStore.passwrd", "config.unknown_key"),
    ],
)
def test_the_value_of_a_key_that_nobody_knows_is_not_shown(tmp_path, group, key, check):
    variable = {"brokers": "kafka_config", "servers": "zookeeper_config"}[group]
    verdict = ground.verdict_of(spoilt(**{group: {variable: {key: "hush"}}}), tmp_path)
    (finding,) = verdict.findings
    assert finding.check == check
    assert (
        finding.line().startswith(f"[{check}]") and f"{variable}.{key}=(hidden)" in finding.line()
    )
    assert "hush" not in repr(finding)


@pytest.mark.parametrize(
    "maps, partitions, managed, remedy",
    [
        (100, 100, False, "sysctl vm.max_map_count=262144"),
        (262144, 140000, False, "sysctl vm.max_map_count=560400"),
        (262144, 140000, True, "set vm.max_map_count in host_baseline_sysctl to 560400"),
    ],
)
def test_memory_maps_are_raised_to_what_is_needed(tmp_path, maps, partitions, managed, remedy):
    """262144 was advised also where that is set, and too low."""
    settings = {"host_baseline_manage_sysctl": managed, "jvm_service_open_files": 200000}
    topics = [{"name": "many", "partitions": partitions}]
    verdict = ground.verdict_of(
        spoilt(everywhere=settings, brokers={"=kafka_topics": topics}),
        tmp_path,
        facts={"all": {"limits/max_map_count": maps}},
    )
    told = {each.remedy for each in verdict.findings if each.check == "host.memory_maps"}
    assert told == {remedy}


def test_memory_maps_that_the_roles_raise_are_no_finding(tmp_path):
    facts = {"kafka-1": {"limits/max_map_count": 100}}
    assert said(ground.verdict_of(spoilt(), tmp_path, facts=facts)) == {}


ONE = {"broker.id": "3", "log.dirs": "/srv/a"}
TWO = ["/srv/a", "/srv/b"]


@pytest.mark.parametrize(
    "log_dirs, facts",
    [
        # a first start that failed before Kafka wrote anything: staged and current, never answered
        (TWO, {"kafka/current": {"broker.id": "3", "log.dirs": "/srv/a,/srv/b"}}),
        # the record of a start alone, as after a first start whose process was killed
        (TWO, {"kafka/started/recorded": True}),
        # a directory that the running configuration does not have yet
        (TWO, {"kafka/answered": ONE, "kafka/current": ONE, "kafka/log_dirs/0/meta": ONE}),
        # the same, staged and never started
        (TWO, {"kafka/answered": ONE, "kafka/staged": ONE, "kafka/log_dirs/0/meta": ONE}),
        # everything in its place
        (["/srv/a"], {"kafka/answered": ONE, "kafka/log_dirs/0/meta": ONE}),
    ],
)
def test_no_data_is_missed_where_none_was(tmp_path, log_dirs, facts):
    wrong = spoilt(brokers={"kafka_log_dirs": log_dirs})
    verdict = ground.verdict_of(wrong, tmp_path, facts={"kafka-3": facts})
    assert said(verdict) == {}


def test_a_disk_that_was_replaced_on_purpose_can_be_accepted(tmp_path):
    facts = {"kafka-3": {"kafka/answered": ONE}}
    snapshot = {"cluster_id": "AAAA", "replicas": frozenset({3})}
    accepted = ground.verdict_of(
        spoilt(brokers={"kafka_log_dirs": ["/srv/a"]}),
        tmp_path,
        facts=facts,
        snapshot=snapshot,
        accept=["directories.emptied"],
    )
    assert not accepted.errors
    # and the host stays the broker that it was
    assert accepted.result["ids"]["kafka-3"]["broker_id"] == 3


@pytest.mark.parametrize(
    "replaced, registered, accepted",
    [(3, False, True), (3, True, False), (2, False, False), (None, False, False)],
)
def test_a_replaced_broker_may_be_empty_once_its_id_is_not_registered(
    tmp_path, replaced, registered, accepted
):
    """As replace_broker.yml asks: for this broker alone, and not while somebody else has its id."""
    verdict = ground.verdict_of(
        spoilt(brokers={"kafka_log_dirs": ["/srv/a"]}),
        tmp_path,
        facts={"kafka-3": {"kafka/answered": ONE}},
        snapshot={
            "cluster_id": "AAAA",
            "replicas": frozenset({3}),
            "brokers": {3: (("10.0.0.3", 9092),)} if registered else {},
        },
        replaced=replaced,
    )
    assert ("directories.emptied" not in {each.check for each in verdict.errors}) is accepted


def test_damage_cannot_be_accepted(tmp_path):
    facts = {"kafka-3": {"kafka/log_dirs/0/meta_broken": "it is empty"}}
    verdict = ground.verdict_of(spoilt(), tmp_path, facts=facts, accept=["identity.broken_meta"])
    assert [each.check for each in verdict.errors] == ["identity.broken_meta"]


@pytest.mark.parametrize("purpose, level", [("deploy", "error"), ("start", "warning")])
def test_logs_around_anothers_data_are_never_accepted_and_start_as_they_ran(
    tmp_path, purpose, level
):
    """A start after an outage deletes nothing, and is not the time to refuse what has run for months."""
    case = CASES["logs of one instance around the data of another"]
    verdict = ground.verdict_of(
        spoilt(**case["spoil"]),
        tmp_path,
        facts=case["facts"],
        accept=["directories.shared"],
        purpose=purpose,
    )
    (finding,) = verdict.findings
    assert (finding.level, verdict.result["left"]) == (level, {})
    assert "kafka_application_log_dir holds it" in finding.reason


DEAD_DISK = {
    "kafka/log_dirs/0/meta_broken": "Input/output error",
    "kafka/answered": {"broker.id": "3", "log.dirs": "/var/lib/kafka/data"},
}
ELSEWHERE = {"kafka-3": {"in_play": False}}


@pytest.mark.parametrize("purpose", ["deploy", "keep", "start"])
@pytest.mark.parametrize(
    "check, facts",
    [
        ("identity.broken_meta", DEAD_DISK),
        ("host.unreadable", {**DEAD_DISK, "kafka/log_dirs/0/readable": False}),
        ("directories.emptied", {"kafka/answered": DEAD_DISK["kafka/answered"]}),
        ("directories.unwritable", {"kafka/log_dirs/0/read_only": True}),
        ("java.broken", {"java/refusal": "Exec format error"}),
    ],
)
def test_what_is_amiss_with_a_host_outside_of_the_run_is_only_told(tmp_path, check, facts, purpose):
    def judged(raw=None):
        return ground.verdict_of(
            spoilt(), tmp_path, facts={"kafka-3": facts}, raw=raw, purpose=purpose
        )

    outside = judged(ELSEWHERE)
    assert outside.errors == () and outside.result["left"] == {}
    (told,) = [each for each in outside.findings if each.check == check]
    assert told.level == "warning" and told.reason.endswith("(outside of this run)")
    inside = judged()
    if purpose == "start":
        assert inside.errors == () and list(inside.result["left"]) == ["kafka-3"]
        assert check in inside.result["left"]["kafka-3"]
    else:
        assert check in said(inside) and inside.errors and inside.result["left"] == {}


@pytest.mark.parametrize("purpose, level", [("deploy", "error"), ("start", "warning")])
@pytest.mark.parametrize(
    "check, facts",
    [
        ("space.low", {"kafka/log_dirs/0/free_bytes": 1000000}),
        ("host.memory_maps", {"limits/max_map_count": 100, "container": "docker"}),
        (
            "directories.dropped",
            {
                "kafka/other_log_dirs": [
                    {
                        "path": "/srv/old",
                        "partitions": 1,
                        "topics": ["t"],
                        "readable": True,
                        "meta": None,
                    }
                ]
            },
        ),
    ],
)
def test_what_has_run_so_starts_again(tmp_path, check, facts, purpose, level):
    """After a power loss all disks of a cluster may be nearly full, and it has run with them."""
    verdict = ground.verdict_of(spoilt(), tmp_path, facts={"kafka-3": facts}, purpose=purpose)
    assert verdict.result["left"] == {}
    assert {each.level for each in verdict.findings if each.check == check} == {level}
    assert "kafkaops_kafka" in verdict.result["groups"]["kafka-3"]


def test_a_limit_of_open_files_that_was_enough_until_now_starts_again(tmp_path):
    few = spoilt(everywhere={"jvm_service_open_files": 500})
    assert "host.open_files" in {
        each.check for each in ground.verdict_of(few, tmp_path, purpose="deploy").errors
    }
    verdict = ground.verdict_of(few, tmp_path, purpose="start")
    assert (verdict.errors, verdict.result["left"]) == ((), {})


BOTH = {"zookeeper": {"hosts": {"kafka-2": {}, "kafka-3": {}}}}


@pytest.mark.parametrize(
    "facts, groups, words",
    [
        ({}, {"kafka", "zookeeper"}, ""),
        ({"kafka/log_dirs/0/read_only": True}, {"zookeeper"}, "(Kafka is left out there)"),
        ({"zookeeper/data/data_dir/read_only": True}, {"kafka"}, "(ZooKeeper is left out there)"),
        (
            {"kafka/log_dirs/0/read_only": True, "zookeeper/data/data_dir/read_only": True},
            set(),
            "is left out there)",
        ),
        ({"java/refusal": "Exec format error"}, set(), "(the host is left out)"),
    ],
)
def test_a_product_is_left_out_where_only_its_disks_are_broken(tmp_path, facts, groups, words):
    """A server on the host of a broken broker may be what a quorum lacks."""
    verdict = ground.verdict_of(
        spoilt(document={"all": {"children": BOTH}}),
        tmp_path,
        facts={"kafka-3": facts},
        purpose="start",
    )
    assert verdict.errors == () and (list(verdict.result["left"]) == ["kafka-3"]) is bool(facts)
    of_host = set(verdict.result["groups"]["kafka-3"])
    assert {each for each in ("kafka", "zookeeper") if f"kafkaops_{each}" in of_host} == groups
    assert ("kafkaops_members" in of_host) is bool(groups)
    assert words in "".join(each.line() for each in verdict.findings)


def test_who_is_left_out_is_first_in_nothing(tmp_path):
    facts = {"kafka-1": {"java/refusal": "Exec format error"}}
    verdict = ground.verdict_of(spoilt(), tmp_path, facts=facts, purpose="start")
    assert verdict.result["cluster_first"] == {"orders-prod": "kafka-2"}


@pytest.mark.parametrize("check", ["identity.broken_meta", "host.unreadable"])
@pytest.mark.parametrize(
    "known, refused",
    [
        ({}, True),
        ({"hosts": {"kafka-3": {"kafka_broker_id": 3}}}, False),
        ({"snapshot": {"cluster_id": "AAAA", "replicas": frozenset({3})}}, False),
    ],
)
def test_a_disk_that_alone_has_the_id_is_no_matter_of_its_host(tmp_path, check, known, refused):
    """A newcomer might get the same id, while nobody tells which are in use."""
    amiss = {"meta_broken": "Input/output error"} if "meta" in check else {"readable": False}
    facts = {f"kafka/log_dirs/0/{name}": value for name, value in amiss.items()}
    verdict = ground.verdict_of(
        spoilt(hosts=known.get("hosts")),
        tmp_path,
        facts={"kafka-3": facts},
        raw=ELSEWHERE,
        snapshot=known.get("snapshot"),
    )
    assert (check in {each.check for each in verdict.errors}) is refused


@pytest.mark.parametrize("purpose", ["deploy", "start"])
def test_what_concerns_the_cluster_stays_an_error_outside_of_the_run(tmp_path, purpose):
    ids = {"kafka-2": {"kafka_broker_id": 2}, "kafka-3": {"kafka_broker_id": 2}}
    raw = {host: {"in_play": False} for host in ids}
    verdict = ground.verdict_of(spoilt(hosts=ids), tmp_path, raw=raw, purpose=purpose)
    assert {each.check for each in verdict.errors} == {"identity.duplicate_broker_id"}


HAS_DATA = {"zookeeper/data/has_data": True}
ENSEMBLE = {"zookeeper-1": HAS_DATA, "zookeeper-2": HAS_DATA}


def on_disk(number):
    """Facts of a host whose disk holds the data of a broker."""
    return {"kafka/log_dirs/0/meta": {"broker.id": str(number), "cluster.id": "AAAA"}}


def staged(number):
    """Facts of a host for which an id was staged, and nothing else happened."""
    return {"kafka/staged": {"broker.id": str(number), "log.dirs": "/var/lib/kafka/data"}}


@pytest.mark.parametrize(
    "facts, snapshot, hosts, ids",
    [
        # a first installation
        ({}, None, {}, [1, 2, 3]),
        # one that was killed before any broker began, ZooKeeper stopped since
        (
            dict(ENSEMBLE, **{f"kafka-{number}": staged(number) for number in (1, 2, 3)}),
            None,
            {},
            [1, 2, 3],
        ),
        # one that was killed while the brokers began
        (
            dict(ENSEMBLE, **{"kafka-1": staged(1), "kafka-2": on_disk(2), "kafka-3": staged(3)}),
            None,
            {},
            [1, 2, 3],
        ),
        # the cluster answers
        (
            dict(ENSEMBLE, **{"kafka-1": on_disk(1), "kafka-2": on_disk(2)}),
            {"cluster_id": "AAAA"},
            {},
            [1, 2, 3],
        ),
        # everything is down, and everybody has an id
        (
            dict(ENSEMBLE, **{"kafka-1": on_disk(5), "kafka-2": on_disk(6), "kafka-3": on_disk(7)}),
            None,
            {},
            [5, 6, 7],
        ),
        # the new host has one in the inventory, and the cluster answers
        (
            dict(ENSEMBLE, **{"kafka-1": on_disk(1), "kafka-2": on_disk(2)}),
            {"cluster_id": "AAAA"},
            {"kafka-3": {"kafka_broker_id": 8}},
            [1, 2, 8],
        ),
    ],
)
def test_ids_that_may_be_given(tmp_path, facts, snapshot, hosts, ids):
    verdict = ground.verdict_of(spoilt(hosts=hosts), tmp_path, facts=facts, snapshot=snapshot)
    assert said(verdict) == {}
    given = verdict.result["ids"]
    assert [given[f"kafka-{index}"]["broker_id"] for index in (1, 2, 3)] == ids


PARTITIONS = {"kafka/log_dirs/0/partitions": 7}
NEW = {"kafka-3": {"kafka_broker_id": 3}}
UNSEEN = {"facts": None, "unreachable": "no route", "in_play": False}


@pytest.mark.parametrize(
    "facts, hosts, raw, refused, why",
    [
        # a new machine under a written id, while nothing runs
        (
            {"kafka-1": {**on_disk(1), **PARTITIONS}, "kafka-2": on_disk(2)},
            NEW,
            {},
            ["kafka-3"],
            "it is not there, and kafka-1 has partitions, and nobody can tell whether broker 3 holds",
        ),
        # a run that had found it in order was killed before its first start
        (
            {"kafka-1": {**on_disk(1), **PARTITIONS}, "kafka-2": on_disk(2), "kafka-3": staged(3)},
            NEW,
            {},
            ["kafka-3"],
            "kafka-1 has partitions",
        ),
        # the other brokers have nothing but their ids, and nobody has been here
        (
            {"kafka-1": on_disk(1), "kafka-2": on_disk(2)},
            NEW,
            {},
            ["kafka-3"],
            "the ensemble holds",
        ),
        # all brokers are new, their ids written or not
        (
            {},
            {f"kafka-{number}": {"kafka_broker_id": number} for number in (1, 2, 3)},
            {},
            ["kafka-1", "kafka-2", "kafka-3"],
            "the ensemble holds data",
        ),
        ({}, {}, {}, ["kafka-1", "kafka-2", "kafka-3"], "the ensemble holds data"),
    ],
)
def test_an_empty_host_starts_only_where_its_id_is_known_to_hold_nothing(
    tmp_path, facts, hosts, raw, refused, why
):
    """It could be elected, if it was the last in sync, and the others would cut their logs."""
    verdict = ground.verdict_of(spoilt(hosts=hosts), tmp_path, dict(ENSEMBLE, **facts), raw=raw)
    assert said(verdict) == {"directories.emptied": refused}
    assert why in verdict.findings[0].reason
    assert "playbooks/start.yml" in verdict.findings[0].remedy


def test_nobody_starts_empty_while_those_who_may_hold_the_data_are_not_seen(tmp_path):
    hosts = {f"kafka-{number}": {"kafka_broker_id": number} for number in (1, 2, 3)}
    hosts.update({f"zookeeper-{number}": {"zookeeper_myid": number} for number in (1, 2, 3)})
    others = [name for name in hosts if name != "kafka-3"]
    raw = dict.fromkeys(others, UNSEEN)
    verdict = ground.verdict_of(spoilt(hosts=hosts), tmp_path, raw=raw)
    (error,) = verdict.errors
    assert (error.check, error.subjects) == ("directories.emptied", ("kafka-3",))
    assert "kafka-1, kafka-2 may have partitions" in error.reason
    # A first installation of some hosts that was killed: this one has its configuration.
    again = ground.verdict_of(spoilt(hosts=hosts), tmp_path, {"kafka-3": staged(3)}, raw=raw)
    assert not again.errors


@pytest.mark.parametrize("purpose", ["start", "keep"])
def test_a_playbook_that_starts_no_new_broker_does_not_ask_for_it(tmp_path, purpose):
    facts = dict(ENSEMBLE, **{"kafka-1": {**on_disk(1), **PARTITIONS}})
    verdict = ground.verdict_of(spoilt(hosts=NEW), tmp_path, facts, purpose=purpose)
    assert "directories.emptied" not in said(verdict)


def test_a_host_that_is_known_to_be_new_can_be_accepted(tmp_path):
    facts = dict(ENSEMBLE, **{"kafka-1": {**on_disk(1), **PARTITIONS}, "kafka-2": on_disk(2)})
    accept = ["directories.emptied"]
    assert not ground.verdict_of(spoilt(hosts=NEW), tmp_path, facts, accept=accept).errors


def test_a_staged_id_that_another_broker_has_is_not_given_again(tmp_path):
    facts = dict(ENSEMBLE, **{"kafka-1": on_disk(1), "kafka-2": on_disk(2), "kafka-3": staged(2)})
    verdict = ground.verdict_of(spoilt(), tmp_path, facts=facts)
    assert said(verdict) == {"identity.unknown_ids_in_use": ["kafka-3"]}


def test_who_replaces_a_dead_broker_is_told_which_id_to_write(tmp_path):
    facts = dict(ENSEMBLE, **{"kafka-1": on_disk(1), "kafka-2": on_disk(2)})
    snapshot = {"cluster_id": "AAAA", "replicas": frozenset({1, 2, 3})}
    wrong = spoilt(
        document={
            "all": {
                "children": {
                    "kafka": {
                        "hosts": {
                            "kafka-3": None,
                            "kafka-9": {"ansible_host": "kafka-9.example.com"},
                        }
                    }
                }
            }
        }
    )
    (finding,) = ground.verdict_of(wrong, tmp_path, facts=facts, snapshot=snapshot).findings
    assert finding.check == "identity.missing_broker"
    assert (
        "set kafka_broker_id: 3 on the host that replaces it (kafka-9 has no id yet)"
        in finding.remedy
    )


def test_topics_have_as_many_partitions_as_the_brokers_make_by_default(tmp_path):
    """3 topics of 1000 partitions, 3 replicas on 3 brokers, and Kafka's own 100: 3100 a broker."""
    settings = {
        "jvm_service_open_files": 3000,
        "kafka_config": {"num.partitions": 1000},
        "=kafka_topics": [{"name": name} for name in "abc"],
    }
    verdict = ground.verdict_of(spoilt(brokers=settings), tmp_path)
    (error,) = verdict.errors
    assert error.check == "host.open_files"
    assert error.reason == "3100 replicas need at least 4100 open files"


@pytest.mark.parametrize(
    "protocol, remedy",
    [
        ("PLAINTEXT", "give the listener between the brokers a protocol with SASL or SSL;"),
        ("SASL_PLAINTEXT", "add User:broker."),
    ],
)
def test_nobody_is_told_to_make_every_client_a_super_user(tmp_path, protocol, remedy):
    listener = {"name": "INTERNAL", "port": 9092, "protocol": protocol}
    settings = {
        "kafka_authorizer": True,
        "kafka_super_users": ["admin"],
        "=kafka_listeners": [dict(listener, advertised="{{ kafka_address }}")],
        "kafka_sasl": {"inter_broker_user": "broker", "inter_broker_password": "x"},
    }
    verdict = ground.verdict_of(spoilt(brokers=settings), tmp_path)
    (line,) = [each.line() for each in verdict.errors if each.check == "security.super_users"]
    assert f"Remedy: {remedy}" in line


@pytest.mark.parametrize("version", ["3.7.9", "4.3", "4.3.x"])
def test_who_has_zookeeper_is_offered_no_version_without_it(version, tmp_path):
    """The next run would refuse it."""
    wrong = spoilt(brokers={"kafka_version": version})
    found = [
        each
        for each in ground.verdict_of(wrong, tmp_path).findings
        if each.check == "version.unknown"
    ]
    assert found
    for each in found:
        assert "3.9.2" in each.remedy and "4.3.1" not in each.remedy


def test_ports_that_the_kernel_lends_are_told_together_with_whose_they_are(tmp_path):
    def listening(host, port):
        advertised = f"{host}.example.com"
        return {"kafka_listeners": [{"name": "INTERNAL", "port": port, "advertised": advertised}]}

    hosts = {"kafka-1": listening("kafka-1", 40999), "kafka-2": listening("kafka-2", 42000)}
    hosts["zookeeper-1"] = hosts["zookeeper-2"] = {"zookeeper_client_port": 33000}
    verdict = ground.verdict_of(spoilt(hosts=hosts), tmp_path)
    lines = [each.line() for each in verdict.findings if each.check == "ports.ephemeral"]
    assert [line.partition(": the kernel uses ports 32768 to 60999")[0] for line in lines] == [
        "[ports.ephemeral] kafka-1, kafka-2: kafka_listeners[0].port=[kafka-1:40999, kafka-2:42000]",
        "[ports.ephemeral] zookeeper-1, zookeeper-2: zookeeper_client_port=33000",
    ]


REPLICAS = {"kafka-1": on_disk(1), "kafka-2": on_disk(2)}


@pytest.mark.parametrize("purpose", ["start", "keep"])
def test_a_dead_broker_without_a_written_id_stops_nobody(tmp_path, purpose):
    """As start.yml and scale_in.yml ask: whose host does not answer is left out, or leaves."""
    verdict = ground.verdict_of(
        spoilt(),
        tmp_path,
        dict(ENSEMBLE, **REPLICAS),
        snapshot={"cluster_id": "AAAA", "replicas": frozenset({1, 2, 7})},
        raw={"kafka-3": {"facts": None, "unreachable": "no route"}},
        accept=["host.unreachable", "limit.hidden_member"],
        purpose=purpose,
    )
    assert not verdict.errors
    assert verdict.result["ids"]["kafka-3"]["broker_id"] == 7
    brokers = verdict.result["brokers"]["orders-prod"]
    assert {each["host"]: each["id"] for each in brokers} == {
        "kafka-1": 1,
        "kafka-2": 2,
        "kafka-3": 7,
    }


def test_an_id_that_is_a_guess_is_shown_to_nobody(tmp_path):
    silent = {"facts": None, "unreachable": "no route"}
    verdict = ground.verdict_of(
        spoilt(),
        tmp_path,
        {"kafka-1": on_disk(1)},
        snapshot={"cluster_id": "AAAA", "replicas": frozenset({1, 2, 3})},
        raw={"kafka-2": silent, "kafka-3": silent},
    )
    ids = {host: each["broker_id"] for host, each in verdict.result["ids"].items()}
    assert (ids["kafka-1"], ids["kafka-2"], ids["kafka-3"]) == (1, None, None)
    assert [each["id"] for each in verdict.result["brokers"]["orders-prod"]] == [1, 2, 3]
    told = {each["host"] for each in verdict.result["unwritten"]}
    assert "kafka-1" in told and not told & {"kafka-2", "kafka-3"}


def test_a_server_that_cannot_be_asked_has_the_id_that_the_others_list(tmp_path):
    listed = {f"server.{number}": f"192.0.2.1{number}:2888:3888" for number in (2, 3, 9)}
    facts = {
        f"zookeeper-{number}": {
            **HAS_DATA,
            "zookeeper/data/myid": str(number),
            "zookeeper/current": listed,
        }
        for number in (2, 3)
    }
    raw = {"zookeeper-1": {"facts": None, "unreachable": "no route"}}
    result = ground.verdict_of(spoilt(), tmp_path, facts, raw=raw).result
    assert [result["ids"][f"zookeeper-{number}"]["myid"] for number in (1, 2, 3)] == [9, 2, 3]
    # while the others have no data, nobody knows
    assert (
        ground.verdict_of(spoilt(), tmp_path, raw=raw).result["ids"]["zookeeper-1"]["myid"] is None
    )


def test_who_is_merely_down_is_not_replaced(tmp_path):
    verdict = ground.verdict_of(
        spoilt(),
        tmp_path,
        REPLICAS,
        snapshot={"cluster_id": "AAAA", "replicas": frozenset({1, 2, 3, 4})},
        raw={"kafka-3": {"facts": None, "unreachable": "no route"}},
    )
    missing = [each for each in verdict.errors if each.check == "identity.missing_broker"]
    assert [each.value for each in missing] == ["3", "4"] or [each.value for each in missing] == [
        3,
        4,
    ]
    assert all(each.remedy.startswith("write kafka_broker_id on kafka-3") for each in missing)


@pytest.mark.parametrize(
    "purpose, level",
    [
        ("deploy", "error"),
        ("keep", "warning"),
        ("start", "warning"),
        ("upgrade", "warning"),
        ("rollback", "warning"),
    ],
)
def test_racks_of_some_brokers_keep_nobody_from_replacing_or_emptying_one(tmp_path, purpose, level):
    """scale_in.yml of the broker without a rack is one of the ways out."""
    wrong = spoilt(hosts={"kafka-1": {"kafka_rack": "a"}, "kafka-3": {"kafka_rack": "c"}})
    verdict = ground.verdict_of(wrong, tmp_path, purpose=purpose)
    levels = {each.level for each in verdict.findings if each.check == "racks.some"}
    assert levels == {level}
