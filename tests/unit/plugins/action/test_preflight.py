# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action's own part: reading settings as Ansible sees them, hiding secrets, writing the report."""

from __future__ import annotations

import json
import os
import pathlib
import re
import socket
import sys
from types import SimpleNamespace

import pytest
import yaml
from ansible.errors import AnsibleError

from ansible_collections.kafkaops.cluster.plugins.action import preflight as action
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    ConfigEntry,
    Partition,
    Topic,
    topic_dict,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.asking import asked_here
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import (
    first_line,
    masked_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    read_member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.network_facts import (
    held_sockets,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.running_cluster import (
    question,
    snapshot_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import meant
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import World
from ansible_collections.kafkaops.cluster.plugins.modules import host_info
from tests.support.outside import free_port
from tests.support.run_module import run_module
from tests.unit.plugins.module_utils.preflight import good_inventory as ground
from tests.unit.plugins.module_utils.preflight.test_two_clusters import OF_KRAFT, both
from tests.unit.plugins.module_utils.test_java import make_java

ROOT = pathlib.Path(__file__).resolve().parents[4]


def gathered(tmp_path, overlay=None):
    """Raw members by name of the good inventory with an overlay."""
    raws, inventory, _groups = ground.gather(ground.merge(ground.good(), overlay), tmp_path)
    return {each.name: each for each in raws}, inventory


def test_settings_are_the_roles_defaults_below_the_inventory(tmp_path):
    raws, _inventory = gathered(tmp_path)
    settings = raws["kafka-1"].settings
    assert settings["kafka_version"] == "3.9.2"
    assert settings["kafka_cluster_name"] == "orders-prod"
    assert settings["kafka_listeners"][0]["advertised"] == "kafka-1.example.com"
    assert raws["kafka-1"].errors == {}


def test_settings_are_plain_data(tmp_path):
    raws, _inventory = gathered(tmp_path)

    def types(value):
        if isinstance(value, dict):
            return set().union({type(key) for key in value}, *map(types, value.values()), {dict})
        if isinstance(value, list):
            return set().union(*map(types, value), {list})
        return {type(value)}

    for raw in raws.values():
        assert types(raw.settings) <= {dict, list, str, int, float, bool, type(None)}


def test_groups_may_have_other_names(tmp_path):
    document = ground.good()
    children = document["all"]["children"]
    document["all"]["children"] = {"brokers": children["kafka"], "ensemble": children["zookeeper"]}
    document["all"]["vars"].update(kafka_group="brokers", zookeeper_group="ensemble")
    raws, _inventory, _groups = ground.gather(document, tmp_path)
    roles = {each.name: (each.is_broker, each.is_server) for each in raws}
    assert roles["kafka-1"] == (True, False)
    assert roles["zookeeper-3"] == (False, True)
    assert ground.verdict_of(document, tmp_path).findings == ()


def test_a_host_may_be_both(tmp_path):
    overlay = {
        "all": {
            "children": {
                "zookeeper": {"=hosts": {"kafka-1": None, "kafka-2": None, "kafka-3": None}},
            }
        }
    }
    document = ground.merge(ground.good(), overlay)
    verdict = ground.verdict_of(document, tmp_path)
    assert [each.line() for each in verdict.errors] == []
    assert verdict.result["ids"]["kafka-2"] == {"broker_id": 2, "myid": 2}


def test_two_clusters_in_one_inventory_may_use_the_same_ids(tmp_path):
    document = ground.good()
    for group, name, host in (
        ("zookeeper", "zookeeper-9", "192.0.2.90"),
        ("kafka", "kafka-9", "kafka-9.example.com"),
    ):
        document["all"]["children"][group]["hosts"][name] = {
            "ansible_host": host,
            "kafka_cluster_name": "other",
            "kafkaops_profile": "development",
            "kafka_broker_id": 1,
            "zookeeper_myid": 1,
            "kafka_topics": [],
        }
    verdict = ground.verdict_of(document, tmp_path)
    assert [each.line() for each in verdict.findings] == []
    assert [each["host"] for each in verdict.result["brokers"]["other"]] == ["kafka-9"]
    assert verdict.result["ids"]["kafka-1"]["broker_id"] == 1
    assert verdict.result["cluster_first"] == {"orders-prod": "kafka-1", "other": "kafka-9"}


def test_a_port_made_of_an_id_that_nobody_wrote_down(tmp_path):
    listeners = [
        {"name": "A", "port": "{{ 9090 + kafka_broker_id }}", "advertised": "{{ kafka_address }}"}
    ]
    overlay = {
        "all": {
            "children": {
                "kafka": {
                    "vars": {"kafka_listeners": listeners},
                    "hosts": {"kafka-2": {"kafka_broker_id": 1}},
                }
            }
        }
    }
    raws, _inventory = gathered(tmp_path, overlay)
    ports = {
        name: raw.settings["kafka_listeners"][0]["port"]
        for name, raw in raws.items()
        if raw.is_broker
    }
    assert ports == {"kafka-1": 9092, "kafka-2": 9091, "kafka-3": 9093}
    # It stays unwritten: what was assigned is no word of the inventory.
    assert "kafka_broker_id" not in raws["kafka-1"].settings


def test_variables_of_the_other_product_are_not_evaluated(tmp_path):
    overlay = {"all": {"vars": {"zookeeper_heap": "{{ only_servers_have_this }}"}}}
    raws, _inventory = gathered(tmp_path, overlay)
    assert raws["kafka-1"].errors == {}
    assert list(raws["zookeeper-1"].errors) == ["zookeeper_heap"]


@pytest.mark.parametrize(
    "secret",
    ["hush-sasl", "hush-user", "hush-key", "hush-config", "hush-client", "hush-option"],
)
def test_no_secret_leaves_the_controller(tmp_path, secret):
    overlay = {
        "all": {
            "children": {
                "kafka": {
                    "vars": {
                        "kafka_sasl": {
                            "mechanisms": ["PLAIN"],
                            "inter_broker_user": "broker",
                            "inter_broker_password": "hush-sasl",
                            "users": {"admin": "hush-user"},
                        },
                        "kafka_ssl": {"certificate": "public", "key": "hush-key", "ca": "public"},
                        "kafka_config": {"ssl.keystore.password": "hush-config"},
                        "kafka_jvm_options": ["-Djavax.net.ssl.keyStorePassword=hush-option"],
                        "kafka_client_security": {
                            "sasl_password": "hush-client",
                            "ssl_key": "hush-key",
                        },
                    }
                }
            }
        }
    }
    raws, _inventory = gathered(tmp_path, overlay)
    assert secret not in json.dumps([raw.settings for raw in raws.values()])
    verdict = ground.verdict_of(ground.merge(ground.good(), overlay), tmp_path)
    assert secret not in " ".join(each.line() for each in verdict.findings)
    # What is there still counts as being there.
    member, _findings = read_member(raws["kafka-1"])
    assert member.mapping("kafka_sasl")["inter_broker_password"]


@pytest.mark.parametrize(
    "name", ["local", "local-1x1", "local-1x2", "local-kraft", "local-kraft-3x3"]
)
def test_the_local_inventories_are_good(name):
    one_machine = {"all": {"machine": {"network": "here", "filesystem": "here"}}}
    verdict = ground.judge_gathered(
        ground.gather_files(ROOT / "inventories" / name), facts=one_machine
    )
    assert [each.line() for each in verdict.findings] == []


def test_the_production_example_is_good_on_hosts_with_enough_disk():
    gathered = ground.gather_files(ROOT / "inventories" / "production", secrets="example")
    disks = {"kafka/log_dirs/%d/total_bytes" % index: 2**42 for index in (0, 1)}
    disks.update({"kafka/log_dirs/%d/free_bytes" % index: 2**42 for index in (0, 1)})
    # The example's firewall is nftables.
    host = {"firewall/firewalld": "", "firewall/nft": True}
    facts = {f"zk{number}.example.org": host for number in (1, 2, 3)}
    facts.update({f"kafka{number}.example.org": {**host, **disks} for number in (1, 2, 3)})
    verdict = ground.judge_gathered(gathered, facts=facts, unprotected=True)
    assert [each.line() for each in verdict.findings] == []


def test_the_production_example_is_open_to_nobody_without_a_login():
    raws = ground.gather_files(ROOT / "inventories" / "production", secrets="example")[0]
    servers = [each.settings for each in raws if each.is_server]
    brokers = [each.settings for each in raws if each.is_broker]
    assert {each["host_baseline_firewall"] for each in servers + brokers} == {"nftables"}
    assert {each["zookeeper_bind"] for each in servers} == {"10.0.0.11", "10.0.0.12", "10.0.0.13"}
    assert len(brokers) == 3
    for each in brokers:
        assert {listener["protocol"] for listener in each["kafka_listeners"]} == {"SASL_SSL"}
        assert each["kafka_authorizer"] is True


def test_everybody_who_logs_in_at_the_production_example_may_do_something():
    """With the authorizer, a user without an ACL may do nothing."""
    raws = ground.gather_files(ROOT / "inventories" / "production", secrets="example")[0]
    for each in (raw.settings for raw in raws if raw.is_broker):
        may = {*each["kafka_super_users"], *(item["principal"] for item in each["kafka_acls"])}
        assert set(each["kafka_sasl"]["users"]) <= may


def test_without_the_vault_only_what_it_hides_is_told(tmp_path):
    overlay = {"kafka_sasl": {"mechanisms": ["PLAIN"], "inter_broker_password": "{{ vault }}"}}
    listener = {"name": "A", "port": 9092, "protocol": "SASL_PLAINTEXT"}
    overlay["kafka_listeners"] = [dict(listener, advertised="{{ kafka_address }}")]
    document = ground.merge(ground.good(), {"all": {"children": {"kafka": {"vars": overlay}}}})
    verdict = ground.verdict_of(document, tmp_path)
    assert {each.check for each in verdict.findings} == {"settings.undefined"}


def test_a_report_that_cannot_be_written_stops_nothing(tmp_path, monkeypatch):
    warned = []
    monkeypatch.setattr(action.display, "warning", warned.append)
    (tmp_path / "file").write_text("")
    places = {"a": tmp_path / "reports" / "a.json", "b": tmp_path / "file" / "b.json"}
    paths = action._write_reports({name: (str(path), "{}\n") for name, path in places.items()})
    assert paths == {"a": str(places["a"])}
    assert places["a"].read_text() == "{}\n"
    assert len(warned) == 1 and warned[0].startswith(f"cannot write {places['b']}: ")


def test_the_snapshot_of_an_answer():
    answer = {
        "reachable": True,
        "cluster_id": "AAAA",
        "controller": 2,
        "brokers": [{"id": 1, "host": "a", "port": 9092}],
        "replica_holders": [1, 7],
        "on_default_min_isr": [{"replicas": 2, "topics": 7, "examples": ["orders"]}],
    }
    snapshot, controller = snapshot_of(answer)
    assert controller == 2
    assert (snapshot.cluster_id, dict(snapshot.brokers), snapshot.replicas) == (
        "AAAA",
        {1: (("a", 9092),)},
        frozenset({1, 7}),
    )
    assert snapshot.on_default_min_isr == {2: (7, ("orders",))}
    for leader in (3, None):
        quorum = {"leader": leader, "voters": [{"id": 3}, {"id": 4}] if leader else []}
        told, controller = snapshot_of({**answer, "quorum": quorum})
        assert controller == leader, "metadata name any broker"
        assert told.voters == (None if leader is None else {3, 4})
        assert told.features is None
    for levels in ({"metadata.version": 30}, None):
        features = {"levels": levels, "problem": "" if levels else "no answer"}
        assert snapshot_of({**answer, "features": features})[0].features == levels
    assert snapshot_of({"reachable": False, "brokers": []}) == (None, None)
    silent = {"reachable": False, "exists": False}
    assert snapshot_of({"reachable": False, "zookeeper": silent}) == (None, None)


def test_the_declared_topics_are_asked_for_where_the_run_changes_them(tmp_path):
    raws, _inventory, _groups = ground.gather(ground.good(), tmp_path)
    (cluster,) = World(tuple(read_member(raw)[0] for raw in raws)).clusters
    brokers, servers = list(cluster.brokers), list(cluster.servers)
    assert "topics" not in question(cluster, brokers, servers, {})
    asked = question(cluster, brokers, servers, {}, topics=True)
    assert asked["topics"] == ["orders", "customers"]


def test_the_topics_of_an_answer_are_those_that_were_told():
    config = {"retention.ms": ConfigEntry("retention.ms", "1000", "topic", fallback="604800000")}
    parts = tuple(Partition(index, 1, (1, 2, 3), (1, 2)) for index in range(2))
    told = topic_dict(Topic("orders", parts, config))
    assert told["replicas"] == [3, 3]
    snapshot, _controller = snapshot_of(
        {"reachable": True, "topics": json.loads(json.dumps([told]))}
    )
    topic = snapshot.topics["orders"]
    assert (len(topic.partitions), topic.replication_factors) == (2, frozenset({3}))
    assert topic.config == config


def test_an_ensemble_that_knows_of_no_cluster_has_answered():
    ensemble = {"reachable": True, "exists": False, "cluster_id": None, "brokers": []}
    snapshot, _controller = snapshot_of({"reachable": False, "zookeeper": ensemble})
    assert snapshot is not None and snapshot.replicas == frozenset()


def test_consent_makes_a_warning_of_an_error_but_not_of_a_contradiction(tmp_path):
    overlay = {
        "all": {
            "children": {
                "zookeeper": {"hosts": {"zookeeper-3": None}},
                "kafka": {
                    "hosts": {"kafka-1": {"kafka_broker_id": 3}, "kafka-3": {"kafka_broker_id": 3}}
                },
            }
        }
    }
    verdict = ground.verdict_of(
        ground.merge(ground.good(), overlay),
        tmp_path,
        accept=["ensemble.size", "identity.duplicate_broker_id"],
    )
    levels = {each.check: each.level for each in verdict.findings}
    assert levels == {"ensemble.size": "warning", "identity.duplicate_broker_id": "error"}


def test_brokers_that_only_zookeeper_knows_keep_their_endpoints():
    """Kafka registers texts; where no broker of ours runs, they are all that is known."""
    answer = {
        "reachable": False,
        "zookeeper": {
            "exists": True,
            "cluster_id": "AAAA",
            "brokers": [
                {"id": 1, "endpoints": ["PLAINTEXT://elsewhere.example.com:9092"]},
                {"id": 2, "endpoints": ["IN-SIDE://[2001:db8::1]:9093", "not an endpoint"]},
            ],
        },
    }
    snapshot, _controller = snapshot_of(answer)
    assert dict(snapshot.brokers) == {
        1: (("elsewhere.example.com", 9092),),
        2: (("2001:db8::1", 9093),),
    }


@pytest.mark.parametrize(
    "answer, told",
    [
        ({"msg": "no result", "module_stderr": "sudo: a password is required\n"}, "sudo: a pass"),
        (
            {"msg": "no result", "module_stdout": "/bin/sh: 1: /nope: not found\n"},
            "/bin/sh: 1: /nope: not f",
        ),
        ({"msg": "x", "module_stderr": "Traceback (most..\n  File\nSyntaxError: bad\n"}, "Syntax"),
        ({"msg": "Failed to find required executable"}, "Failed to find"),
        ({}, "the module did not answer"),
    ],
)
def test_a_host_that_cannot_be_examined_speaks_for_itself(answer, told):
    assert action.why_no_answer(answer).startswith(told)


@pytest.mark.parametrize(
    "given, ids",
    [
        ("a.b, c.d", ["a.b", "c.d"]),
        ([True, None, "a.b", ["c.d"]], ["a.b"]),
        ({"a": 1}, []),
        (5, []),
    ],
)
def test_consents_are_texts(given, ids):
    """What is none is a finding of its own, and no id that does not exist."""
    assert [each.strip() for each in action._consents(given)] == ids


@pytest.mark.parametrize(
    "given, name, value",
    [
        ({}, "purpose", "deploy"),
        ({"purpose": "fetch"}, "purpose", "fetch"),
        ({"purpose": "x"}, "purpose", "deploy"),
        ({"enforce": "no"}, "enforce", False),
        ({"enforce": "x"}, "enforce", True),
        ({"leaving": {"a": 1}}, "leaving", []),
        ({"quorum": ["a"]}, "quorum", "keep"),
        ({"accept": "a.b"}, "accept", "a.b"),
    ],
)
def test_a_wrong_argument_has_its_default_and_hides_nothing(given, name, value):
    """It is a finding of its variable, preflight_NAME."""
    assert action._taken({"phase": "judge", **given})[name] == value


@pytest.mark.parametrize("given", [{}, {"phase": "x"}, {"phase": "judge", "purpos": "fetch"}])
def test_an_argument_that_no_variable_gives_is_refused(given):
    with pytest.raises(AnsibleError, match="phase|purpos"):
        action._taken(given)


def test_a_become_that_fails_is_told_in_the_words_of_the_host():
    error = AnsibleError("Premature end of stream.\n>>> Standard Error\nsudo: no tty present\n")
    answer = {"module_stderr": action._standard_error(error), "msg": first_line(error)}
    assert action.why_no_answer(answer) == "sudo: no tty present"
    silent = AnsibleError("Missing sudo password")
    answer = {"module_stderr": action._standard_error(silent), "msg": first_line(silent)}
    assert action.why_no_answer(answer) == "Missing sudo password"


def test_collected_settings_show_no_secret():
    settings = {
        "kafka_jvm_options": ["-Xmx1g", "-Djavax.net.ssl.keyStorePassword=s3cret"],
        "kafka_config": {"rsm.config.s3.access.key": "s3cret", "num.partitions": 3},
        "kafka_ssl": {"key": "s3cret", "certificate": "public"},
        "kafka_sasl": {"users": {"bob": "s3cret"}, "inter_broker_password": "s3cret"},
        "kafka_client_security": {"ssl_key": "s3cret", "sasl_password": "s3cret"},
        "distribution_url": "https://bob:s3cret@mirror.example.com/kafka.tgz",
    }
    shown = masked_settings(settings)
    assert "s3cret" not in repr(shown)
    assert "********" not in repr(shown)  # one mark everywhere
    assert shown["kafka_config"]["num.partitions"] == 3
    assert settings["kafka_sasl"]["users"] == {"bob": "s3cret"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka_sasl", {"inter_broker_pasword": "s3cret"}),
        ("kafka_ssl", {"private_key": "-----BEGIN PRIVATE KEY-----s3cret"}),
        ("kafka_client_security", {"sasl_pass": {"x": ["s3cret"]}}),
        (
            "flow_validation_listener_security",
            {"C": {"ssl_key": "-----BEGIN PRIVATE KEY-----s3cret"}},
        ),
    ],
)
def test_what_may_be_a_misspelt_secret_is_hidden(name, value):
    shown = masked_settings({name: value})
    assert "s3cret" not in repr(shown) and list(shown[name]) == list(value)


@pytest.mark.parametrize(
    ("given", "repeated"),
    [
        ("kafka_gate_quiet_seconds=5", True),
        ("@vars.yml", True),
        ('{"kafkaops_preflight_accept": ["disk.small"]}', True),
        ("kafka_version=3.9.2", False),
        (f"{action.FINALIZE}=true", False),
        ('{"kafka_version": "3.9.2"}', False),
        ("kafka_password=x a=b", False),
        ('{"kafka_client_security": {"sasl_password": "x"}}', False),
        ("{kafka_client_security: {sasl_username: x}}", False),
        ('{"kafka_users": [{"name": "bob", "password": "x"}]}', False),
        ('{"kafka_config": {"sasl.jaas.config": "x"}}', False),
        ("{not: [closed", False),
        ("[1, 2]", False),
    ],
)
def test_the_next_command_repeats_no_secret(given, repeated):
    assert action._to_repeat(given) is repeated


def plugin_of(task="one", transport="local", become=None, environment=None, delegate_to=None):
    """The action, as far as it looks at its task and its connection."""
    plugin = object.__new__(action.ActionModule)
    plugin._task = SimpleNamespace(_uuid=task, environment=environment, delegate_to=delegate_to)
    shell = SimpleNamespace(env_prefix=lambda **_environment: "")
    plugin._connection = SimpleNamespace(transport=transport, become=become, _shell=shell)
    return plugin


HERE = {"ansible_python_interpreter": sys.executable}


@pytest.mark.parametrize(
    ("about", "variables", "expected"),
    [
        ({}, HERE, True),
        ({"transport": "ssh"}, HERE, False),
        ({"become": "sudo"}, HERE, False),
        ({"environment": [{"JAVA_HOME": "/opt/java"}]}, HERE, False),
        ({}, {"ansible_python_interpreter": "/usr/bin/python3"}, False),
        ({}, {}, False),
    ],
    ids=["here", "ssh", "become", "environment", "other Python", "Python to be found"],
)
def test_a_host_is_examined_without_a_module_only_where_all_is_the_same(about, variables, expected):
    inventory = SimpleNamespace(evaluated=lambda host, names: variables)
    plugin = plugin_of(**about)
    plugin._templar = SimpleNamespace(template=lambda value: value)
    assert plugin._is_here(inventory, "kafka-1") is expected


def test_a_host_that_is_examined_here_answers_as_the_module_would(tmp_path, monkeypatch):
    monkeypatch.setattr(action.C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    monkeypatch.setattr(action.ActionModule, "_is_here", lambda *_arguments: True)
    directory = "~/no-such-directory-of-kafkaops"
    common = {"instance": "k", "config_dir": directory, "started": f"{directory}/started.json"}
    request = {"kafka": {**common, "log_dirs": [directory]}, "names": ["localhost"]}
    facts = plugin_of()._examine(None, "kafka-1", request, {})["facts"]
    assert facts["kafka"]["log_dirs"][0]["path"] == os.path.expanduser(directory)
    assert set(facts) == set(yaml.safe_load(host_info.RETURN)["facts"]["sample"])
    told = plugin_of()._examine(None, "kafka-1", {"kafka": {"instance": "k"}}, {})
    assert told == {
        "msg": "missing required arguments: config_dir, log_dirs, started found in kafka"
    }


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("kafka-2", True),
        ("127.0.0.1", True),
        (None, True),
        ("kafka-9", False),
        (5, False),
        (["x"], False),
    ],
)
def test_a_host_that_does_not_exist_is_not_asked(tmp_path, name, wanted):
    """The task is the controller's then, which is not the one to ask in its place."""
    overlay = {"all": {"vars": {} if name is None else {"kafka_admin_host": name}}}
    raws, inventory = gathered(tmp_path, overlay)
    plugin = plugin_of(delegate_to="localhost")
    plugin._templar = SimpleNamespace(template=lambda value: value)
    members = [read_member(each)[0] for each in raws.values()]
    own = {"inventory_hostname": "kafka-1"}
    assert set(plugin._admins(inventory, members, own)) == ({"orders-prod"} if wanted else set())


def test_an_examination_that_breaks_is_a_finding_of_its_host(monkeypatch):
    monkeypatch.setattr(action.ActionModule, "_is_here", lambda *_arguments: True)
    monkeypatch.setattr(action, "host_facts", lambda *_arguments, **_more: 1 // 0)
    told = plugin_of()._examine(None, "kafka-1", {}, {})
    assert action.why_no_answer(told) == "ZeroDivisionError: integer division or modulo by zero"


def test_the_jvm_of_this_machine_judges_the_same_options_once(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(action.C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    monkeypatch.setattr(action, "jvm_refusal", lambda home, options: tried.append(options) or "no")
    assert [plugin_of()._jvm_refusal("/java", ["-Xmx1g"]) for _host in "ab"] == ["no", "no"]
    plugin_of()._jvm_refusal("/java", ["-Xmx2g"])
    assert tried == [["-Xmx1g"], ["-Xmx2g"]]


def test_this_machine_is_asked_once_who_listens(tmp_path, monkeypatch):
    """Of a hundred local hosts each would look into all processes."""
    looked = []
    monkeypatch.setattr(action.C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    monkeypatch.setattr(action.ActionModule, "_is_here", lambda *_arguments: True)
    monkeypatch.setattr(action, "held_sockets", lambda: looked.append(1) or held_sockets())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found = [plugin_of()._examine(None, host, {}, {})["facts"]["ports"] for host in "ab"]
        port = listening.getsockname()[1]
    assert len(looked) == 1 and found[0] == found[1]
    (ours,) = [each for each in found[0] if each["port"] == port]
    assert ours == {**ours, "address": "127.0.0.1", "pid": os.getpid(), "ours": False}


def test_what_others_are_made_of_is_evaluated_once(tmp_path):
    home = "{{ lookup('ansible.builtin.pipe', 'echo {{ inventory_hostname }} >> %s/asked; echo /srv') }}"
    variables = {
        "kafkaops_home": home % tmp_path,
        "kafka_config_dir": "{{ kafkaops_home }}/conf",
        "kafka_state_dir": "{{ kafkaops_home }}/state",
    }
    raws, _inventory = gathered(tmp_path, {"all": {"vars": variables}})
    assert raws["kafka-1"].settings["kafka_config_dir"] == "/srv/conf"
    assert raws["kafka-1"].settings["kafka_state_dir"] == "/srv/state"
    assert sorted((tmp_path / "asked").read_text().split()) == sorted(raws)


def test_what_is_made_of_a_variable_that_fails_fails_as_well(tmp_path):
    variables = {"kafka_cluster_name": "{{ nowhere }}", "kafka_rack": "{{ kafka_cluster_name }}"}
    raws, _inventory = gathered(tmp_path, {"all": {"vars": variables}})
    assert {"kafka_cluster_name", "kafka_rack"} <= set(raws["kafka-1"].errors)


def test_what_is_made_of_a_variable_that_is_no_text_sees_its_type(tmp_path):
    variables = {
        "kafka_cluster_name": "{{ '2026-01-02 03:04' | to_datetime('%Y-%m-%d %H:%M') }}",
        "kafka_rack": "{{ kafka_cluster_name.year + 1 }}",
    }
    raws, _inventory = gathered(tmp_path, {"all": {"vars": variables}})
    assert raws["kafka-1"].errors == {}
    assert raws["kafka-1"].settings["kafka_rack"] == 2027


def test_the_names_of_all_members_are_evaluated_once_for_all_hosts(tmp_path, monkeypatch):
    """Each host's process asks; evaluating every member for every host would grow with the square."""
    asked = []

    class Inventory:
        def names_of(self, host, is_broker, is_server, is_controller):
            asked.append((host, is_broker, is_server, is_controller))
            return [f"{host}.example.com"]

    def announced(task):
        return plugin_of(task)._announced(Inventory(), gathered)

    monkeypatch.setattr(action.C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    gathered = {"brokers": ["a", "b"], "servers": ["b"], "controllers": ["c"]}
    gathered["siblings"] = ["a", "b", "c"]
    assert announced("one") == announced("one") == {f"{host}.example.com" for host in "abc"}
    assert asked == [
        ("a", True, False, False),
        ("b", True, True, False),
        ("c", False, False, True),
    ]
    announced("two")  # another task may see other variables
    assert len(asked) == 6


@pytest.mark.parametrize(
    "java_home, path, version",
    [
        (None, ["19", "17"], "17"),
        (None, ["21"], "21"),
        (None, ["11", "19"], None),
        ("17", [], "17"),
        # The job looks no further than JAVA_HOME.
        ("11", ["17"], None),
    ],
)
def test_the_java_of_spark_is_the_one_that_the_job_takes(
    tmp_path, monkeypatch, java_home, path, version
):
    java = sys.modules[action.find_java.__module__]
    monkeypatch.setattr(java.glob, "glob", lambda pattern: [])
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    homes = {each: make_java(tmp_path / each, each) for each in {java_home, *path} if each}
    monkeypatch.setenv("PATH", os.pathsep.join(f"{homes[each]}/bin" for each in path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if java_home:
        monkeypatch.setenv("JAVA_HOME", homes[java_home])
    assert action.spark_java()["version"] == version


@pytest.mark.parametrize(
    "options",
    [
        {"missing_ok": True, "every_view": True},
        {},
        {"timeout": 100000},
        {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "u"},
        {"ssl_ca": "/none/ca.pem", "security_protocol": "SSL"},
    ],
    ids=["missing", "failed", "too long", "incomplete", "no file"],
)
def test_a_cluster_that_is_asked_here_is_asked_as_by_the_module(options):
    asking = {"bootstrap_servers": [f"127.0.0.1:{free_port()}"], "timeout": 1, **options}
    here = dict(asked_here(asking))
    module = run_module("kafka_cluster_info", asking)
    assert here.pop("failed", False) == module.failed
    values = {key: module.values[key] for key in module.values if key in here}
    assert here == values
    assert here.get("msg") or here["unreachable_reason"]


class Elsewhere:
    """Another host than the task's own: what was run on it, and whether it is this machine."""

    ran: list = []

    def __init__(self, _action, host, _python, _task_vars):
        if host == "broken":
            raise AnsibleError("'nobody' is undefined")
        self.host = host

    def is_controller(self):
        return self.host == "here"

    def connected(self):
        def run(module, arguments):
            self.ran.append((self.host, module.rpartition(".")[2]))
            return {"facts": {"missing_packages": []}} if "packages" in arguments else {"said": 1}

        return run


@pytest.mark.parametrize(
    "host, environment, unreachable, ran",
    [
        ("far", None, "", [("far", "host_info"), ("far", "kafka_cluster_info")]),
        ("here", None, "", []),
        (
            *("here", [{"JAVA_HOME": "/opt/java"}], ""),
            [("here", "host_info"), ("here", "kafka_cluster_info")],
        ),
        ("broken", None, "'nobody' is undefined", []),
        ("localhost", None, "", []),
        ("in-no-inventory", None, None, []),
    ],
)
def test_each_cluster_is_asked_from_its_own_host(
    host, environment, unreachable, ran, tmp_path, monkeypatch
):
    """Never from that of the first cluster, which this task is delegated to, with the logins of the other one."""
    own = {name: {"kafka_admin_host": host} for name in OF_KRAFT}
    hosts = {name: {} for name in ("far", "here", "broken")}
    document = ground.merge(
        both(), {"all": {"hosts": hosts, "children": {"kafka": {"hosts": own}}}}
    )
    raws, inventory, _groups = ground.gather(document, tmp_path)
    members = [read_member(each)[0] for each in raws]
    monkeypatch.setattr(action, "AnotherHost", Elsewhere)
    monkeypatch.setattr(Elsewhere, "ran", [])
    monkeypatch.setattr(action, "asked_here", lambda asking: {"said": 1})
    plugin = plugin_of(environment=environment, delegate_to="localhost")
    plugin._execute_module = lambda **_given: pytest.fail("asked from the first cluster's host")
    plugin._templar = SimpleNamespace(template=lambda value: value)
    admins = plugin._admins(inventory, members, {"inventory_hostname": "kafka-1"})
    assert admins["orders-prod"][0].name == "localhost"
    if unreachable is None:
        assert set(admins) == {"orders-prod"}
        return
    admin, ask = admins["payments"]
    assert (admin.name, admin.unreachable) == (host, unreachable)
    if not admin.unreachable:
        assert ask({}) == {"said": 1}
    assert Elsewhere.ran == ran


def test_the_second_look_behind_the_lock_asks_what_the_first_one_has_asked():
    """Of all arguments but those of a phase, and the consents, which are variables of the inventory."""
    (play,) = yaml.safe_load((ROOT / "playbooks" / "phases" / "lock.yml").read_text())
    (again,) = [
        task
        for task in _tasks(play["tasks"])
        if (task.get("ansible.builtin.include_role") or {}).get("name", "").endswith(".preflight")
    ]
    registered = [each["register"] for each in _tasks(play["tasks"]) if "register" in each]
    assert registered and not [name for name in registered if meant(name)], "told as misspelt"
    given = set(re.findall(r"kafkaops_preflight\.asked\.(\w+)", str(again["vars"])))
    assert given == set(action.ASKED) == set(action.OPTIONS) - {"phase", "host", "accept"}


def _tasks(tasks):
    for task in tasks:
        yield task
        yield from _tasks(task.get("block", ()))


STOP = (str(ROOT / "playbooks" / "stop.yml"),)
SCALE_IN = (str(ROOT / "playbooks" / "scale_in.yml"),)


def commanded(tmp_path, monkeypatch, playbooks, given, overlay=None, **arguments):
    """The action in its phase `command`, after ansible-playbook was called so."""
    monkeypatch.setattr(action.context, "CLIARGS", {"args": playbooks})
    monkeypatch.setattr(action, "load_extra_vars", lambda _loader: given)
    everywhere = ground.merge({"all": {"vars": given}}, overlay or {})
    _raws, inventory = gathered(tmp_path, everywhere)
    task_vars = {"inventory_hostname": "kafka-1", "ansible_play_hosts_all": ["kafka-1"]}
    plugin = SimpleNamespace(_loader=None)
    found = action.ActionModule._of_the_command(
        plugin, inventory, {"accept": [], **arguments}, task_vars
    )
    return [(each.setting, each.level) for each in found]


@pytest.mark.parametrize(
    "playbooks, given, expected",
    [
        (SCALE_IN, {"cancel": "{{ 'ture' }}"}, [("cancel", "error")]),
        (SCALE_IN, {"cancel": "{{ 'true' }}", "kafka_version": "3.9.2"}, []),
        (SCALE_IN, {"cancel": None, "prove": ""}, []),
        (SCALE_IN, {"promve": True}, [("promve", "error")]),
        (STOP, {"brokr": 2}, [("brokr", "error")]),
        # it may not even be possible to evaluate what nobody reads
        (STOP, {"prove": "{{ nowhere }}"}, []),
        (("mine.yml",), {"brokr": 2}, [("brokr", "warning")]),
        ((str(ROOT / "playbooks" / "teardown.yml"),), {"broker": 2}, [("broker", "error")]),
    ],
)
def test_what_was_mistyped_on_the_command_line_is_found(
    tmp_path, monkeypatch, playbooks, given, expected
):
    assert commanded(tmp_path, monkeypatch, playbooks, given) == expected


SITE, LOOK = ((str(ROOT / "playbooks" / f"{each}.yml"),) for each in ("site", "preflight"))


@pytest.mark.parametrize(
    "playbooks, given, hosts, expected",
    [
        (SCALE_IN, {}, {"prove": True, "user": "bob"}, ["prove"]),
        (SCALE_IN, {}, {"broker": 1, "cancel": True}, ["broker", "cancel"]),
        # given, and so what counts
        (SCALE_IN, {"prove": True}, {"prove": False}, []),
        # not read there
        (SITE, {}, {"prove": True, "broker": 1}, []),
        (LOOK, {}, {"prove": True, "user": "bob"}, ["prove"]),
        (("mine.yml",), {}, {"prove": True, "user": "bob"}, ["prove", "user"]),
        # a name of somebody's own
        (SCALE_IN, {}, {"broker": 1, "kafka_rack": "{{ 'rack' ~ broker }}"}, []),
    ],
)
def test_what_hosts_have_under_the_name_of_a_play_variable_is_told(
    tmp_path, monkeypatch, playbooks, given, hosts, expected
):
    found = commanded(tmp_path, monkeypatch, playbooks, given, {"all": {"vars": hosts}})
    assert found == [(name, "warning") for name in expected]


def test_only_members_have_variables_that_matter(tmp_path):
    _raws, inventory = gathered(tmp_path, {"all": {"vars": {"prove": True}}})
    inventory._task_vars = {
        "inventory_hostname": "kafka-1",
        "prove": True,
        action.COLLECTED: {"member": True},
        "hostvars": SimpleNamespace(
            raw_get={
                "web": {"prove": True, action.COLLECTED: {"member": False}},
                "kafka-2": {"prove": True, action.COLLECTED: {"failed": True}},
                "kafka-3": {},
            }.get
        ),
    }
    hosts = ["kafka-1", "web", "kafka-2", "kafka-3"]
    assert inventory.having(["prove", "broker"], hosts) == {"prove": ["kafka-1", "kafka-2"]}


def test_a_name_that_the_inventory_is_made_with_is_nobody_s_slip(tmp_path, monkeypatch):
    """A plain text that has the word in it is no such place."""
    for text, expected in (("{{ brokers | int }}", []), ("brokers", [("brokers", "error")])):
        overlay = {"all": {"vars": {"team": [{"size": text}]}}}
        assert commanded(tmp_path, monkeypatch, STOP, {"brokers": 3}, overlay) == expected


def test_a_command_is_refused_by_what_is_wrong_about_it_alone(monkeypatch):
    wrong = action.found("settings.bad_value", "a", "prove", "x", "neither true nor false")
    doubtful = action.found("settings.unknown_variable", "a", "users", "...", "nearly user")
    refused = action._refused([wrong, doubtful])
    assert refused["failed"] and refused["checks"] == ["settings.bad_value"]
    assert "prove" in refused["msg"] and "users" not in refused["msg"]
    assert action._refused([doubtful]) == {}
    # and so a run that would only show its findings begins by it
    plugin = object.__new__(action.ActionModule)
    monkeypatch.setattr(action.ActionModule, "_of_the_command", lambda *_arguments: [wrong])
    assert plugin._judge(None, {"enforce": False}, {}) == action._refused([wrong])
