# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values against the roles' argument specs: what is typed, what is refused, and in which words."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight import variables
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.judge import judge
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Raw
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import Versions

ROOT = pathlib.Path(__file__).resolve().parents[5]


@pytest.mark.parametrize(
    "variable, value, where, reason, remedy",
    [
        ("kafka_wait_timeout_seconds", "5m", "", "not a whole number", "write 300"),
        ("flow_validation_record_size_bytes", "1KiB", "", "not a whole number", "write 1024"),
        ("flow_validation_records", -1, "", "outside 1 to 1000000000000", "give a number from"),
        ("kafka_log_level", "WARNING", "", "not one of TRACE, ", "did you mean `WARN`?"),
        ("kafka_fast_failover", "maybe", "", "neither true nor false", "write true or false"),
        ("kafka_admin_host", [1], "", "not a text", "give one line of text"),
        ("kafka_admin_host", "a ", "", "a blank at its beginning or end", "write it like a"),
        ("preflight_replaced_broker", "kafka-1", "", "not an id", "as kafka_broker_id has it"),
        ("kafka_super_users", True, "", "not a list", "write a list: [true]"),
        ("kafka_rack", True, "", "not a text", "give one line of text"),
        ("kafka_rack", None, "", "has no value", "leave the variable out"),
        ("kafka_log_dirs", "/srv", "", "not a list", "write a list: [/srv]"),
        ("kafka_log_dirs", ["/srv", "data"], "[1]", "not an absolute path", "begin it with /"),
        (
            "kafka_config_dir",
            "//etc/",
            "",
            "a directory that every host has",
            "such as //etc/kafka",
        ),
        (
            "kafka_application_log_dir",
            "/var/log",
            "",
            "teardown.yml would delete",
            "/var/log/kafka",
        ),
        (
            "zookeeper_data_log_dir",
            "/var/lib/./",
            "",
            "teardown.yml would delete",
            "name one below",
        ),
        ("kafka_config", "a=b", "", "not a mapping", "write `key: value` pairs"),
        ("kafka_listeners", [{"name": "A", "prt": 1}], "[0].prt", "no such key", "did you mean"),
        ("kafka_listeners", [{"name": "A", "port": 0}], "[0].port", "outside 1 to 65535", "give"),
        ("flow_validation_probes", ["all"], "[0]", "not one of min-isr", "write one of"),
        ("kafka_client_security", {"timeout": "soon"}, ".timeout", "not a number", "give a number"),
        ("kafka_loggers", {"a.b": "INFOO"}, ".a.b", "not one of TRACE", "`INFO`"),
        ("zookeeper_loggers", {"x": True}, ".x", "not one of TRACE", "did you"),
        ("kafka_environment", {"MY-VAR": "x"}, ".MY-VAR", "not a name", "use letters"),
        ("zookeeper_environment", {"A": ["x"]}, ".A", "not a single value", "write it like A"),
        ("kafkaops_lock_dir", "locks", "", "not an absolute path", "begin it with /"),
        ("kafkaops_cache", "cache", "", "not an absolute path", "begin it with /"),
        ("kafka_heap_dump_file", "dump", "", "not an absolute path", "begin it with /"),
        ("zookeeper_heap_dump_file", "dump", "", "not an absolute path", "begin it with /"),
        (
            *("host_baseline_sysctl", {"vm.swappiness": "abc"}, ".vm.swappiness"),
            *("not a whole number", "write"),
        ),
        (
            *("host_baseline_sysctl", {"net.ipv4.tcp_rmem": "1 x"}, ".net.ipv4.tcp_rmem"),
            *("not a whole number", "write"),
        ),
        (
            *("host_baseline_sysctl", {"net.core.default_qdisc": None}, ".net.core.default_qdisc"),
            *("not a single number or word", "write"),
        ),
        (
            *("host_baseline_sysctl", {"kernel.core_pattern": True}, ".kernel.core_pattern"),
            *("not a single number or word", "write"),
        ),
        ("kafka_reassignment_throttle", "fast", "", "not a clear size", "such as"),
        ("kafka_reassignment_batch", -3, "", "outside 1 to", "give a number from 1"),
        ("kafka_scala_version", 2.99, "", "not one of 2.12, 2.13", ""),
        ("kafka_plugins", [{"name": "../x", "src": "/x", "sha512": "0" * 128}], "[0].name", "", ""),
        ("kafka_unit_options", {"Service": {"A": {"b": 1}}}, ".Service.A", "not a line", "line"),
        ("zookeeper_unit_options", {"Unit": {"a b": 1}}, ".Unit.a b", "not the name", "write"),
        ("flow_validation_replication_factor", -5, "", "outside 0 to", "give a number from 0"),
        # what the job itself refuses
        ("flow_validation_groups", 17, "", "outside 0 to 16", "give a number from 0"),
        ("flow_validation_partitions", 100_001, "", "outside 0 to 100000", "give a number from 0"),
        ("flow_validation_topic", "a b", "", "the name contains ' '", "choose"),
        ("flow_validation_master", "sparkle", "", "not a master of Spark", "local[4]"),
        ("flow_validation_bootstrap_servers", "a", "", "not host:port", "kafka-1:9092"),
        ("flow_validation_ledger_dir", "ledgers", "", "neither an absolute path", "begin it"),
        ("flow_validation_watch_every", "5", "", "not a clear duration", "write 90s"),
        ("flow_validation_watch_rate", "fast", "", "not a number", "give a number"),
        ("flow_validation_watch_rate", 1000, "", "outside 0.1 to 100", "give a number"),
        ("distribution_sha512", "zz", "", "not a SHA-512", "128"),
        (
            *("kafka_unit_options", {"Service": {"Environment": ["A=1", "X_PASSWORD=a,b"]}}),
            *(".Service.Environment", "a secret in Environment", "set it in kafka_environment"),
        ),
        (
            *("flow_validation_producer_properties", {"linger.ms": 5, "sasl.password": "x"}),
            *(
                ".sasl.password",
                "it would be on a command line",
                "flow_validation_client_properties",
            ),
        ),
        (
            *("flow_validation_producer_properties", {"ssl.key.pem": "x"}, ".ssl.key.pem"),
            *("it would be on a command line", "flow_validation_client_properties"),
        ),
        ("distribution_sha512", {"kafka": "zz"}, ".kafka", "not a SHA-512", "128"),
    ],
)
def test_a_fault_names_its_place_its_reason_and_what_to_write(
    variable, value, where, reason, remedy
):
    _typed, faults = variables.judged(variable, value)
    assert faults[0].where == variable + where
    assert reason in faults[0].reason
    assert remedy in faults[0].remedy


@pytest.mark.parametrize(
    "variable, value, wrong",
    [
        ("kafka_environment", {"1A": "x", "B": None, "C": [1], "D": "fine"}, ["1A", "B", "C"]),
        ("zookeeper_loggers", {"a": "LOUD", "b": "INFO", "c": "QUIET"}, ["a", "c"]),
        ("kafka_unit_options", {"Service": {"A": None, "b": 1}}, ["Service.A", "Service.b"]),
        ("host_baseline_sysctl", {"x": 1, "fs.file-max": [1]}, ["x", "fs.file-max"]),
        ("flow_validation_producer_properties", {"sasl.a": 1, "ssl.b": 2}, ["sasl.a", "ssl.b"]),
        (
            "distribution_url",
            {"kafka": "u", "spark": "/srv", True: "v"},
            ["kafka", "spark", "true"],
        ),
        ("kafka_sasl", {"users": {"a": [1], "b": "c", "d": "e\nf"}}, ["users.a", "users.d"]),
    ],
)
def test_all_faults_of_a_mapping_are_told(variable, value, wrong):
    _typed, faults = variables.judged(variable, value)
    assert [each.where for each in faults] == [f"{variable}.{key}" for key in wrong]


@pytest.mark.parametrize(
    "variable, value, typed",
    [
        ("kafka_fast_failover", "yes", True),
        ("kafka_wait_timeout_seconds", "30", 30),
        ("kafka_scala_version", 2.13, "2.13"),
        ("kafka_topics_allow", "delete,retention_cut", ["delete", "retention_cut"]),
        ("zookeeper_bind", "[::1]", "::1"),
        ("kafka_account", "", ""),
        ("distribution_source", {"kafka": "archive"}, {"kafka": "archive"}),
        ("distribution_sha512", {"kafka": "0" * 128, "zookeeper": ""}, None),
        # YAML reads a plain OFF as false
        ("kafka_loggers", {"kafka.controller": "debug", "a": False, "b": "OFF"}, None),
        ("kafka_environment", {"LANG": "C", "_x1": 5, "EMPTY": ""}, None),
        ("kafka_heap_dump_file", "", None),
        ("kafka_reassignment_throttle", "unlimited", None),
        (
            "host_baseline_sysctl",
            {"net.ipv4.tcp_congestion_control": "bbr", "net.core.default_qdisc": "fq"},
            None,
        ),
        (
            "host_baseline_sysctl",
            {"net.ipv4.tcp_rmem": "4096  87380\t6291456", "vm/swappiness": 1},
            {"net.ipv4.tcp_rmem": "4096 87380 6291456", "vm/swappiness": "1"},
        ),
        ("kafka_unit_options", {"Service": {"TasksMax": 8192, "Environment": ["A=1", ""]}}, None),
        ("flow_validation_master", "local[*, 4]", None),
        ("flow_validation_master", "spark://a:7077,b:7077", None),
        ("flow_validation_ledger_dir", "hdfs://namenode:8020/kafkaops", None),
        ("flow_validation_watch_rate", 0.5, None),
        ("flow_validation_producer_properties", {"linger.ms": 5, "compression.type": "lz4"}, None),
    ],
)
def test_a_legal_value_gets_its_declared_type(variable, value, typed):
    assert variables.judged(variable, value) == (value if typed is None else typed, ())


# Texts and mappings without a form in FORMS, and who judges them instead: by whole names, and by beginnings
# that end in . or _.
EXEMPT = {
    "aws_": "aws.from_inventory and aws.order, with ids of their own, where machines are ordered",
    "flow_validation_audiences": "any word: audiences are names that the inventory gives",
    "flow_validation_broker_versions": "passed by the role kafka, only shown",
    "flow_validation_client_properties": "settings of clients, judged by the clients",
    "flow_validation_cluster_id": "passed by the role kafka, only compared",
    "flow_validation_declared": "passed by the role kafka, from what is judged there",
    "flow_validation_events": "made by the playbooks that prove",
    "flow_validation_inspect_": "expressions of SQL, judged by Spark with the topic at hand",
    "flow_validation_jars": "files or a folder on the host of the job, which refuses what is not there",
    "flow_validation_ledger": "a directory of the host of the job, which refuses what is not there",
    "flow_validation_listener_security": "passed by the role kafka, from listeners that are judged there",
    "flow_validation_listeners": "passed by the role kafka, from listeners that are judged there",
    "flow_validation_python": "any command",
    "flow_validation_spark_settings": "settings of Spark, judged by it",
    "host_baseline_firewall_": "preflight.firewall",
    "host_baseline_hostname": "that of the inventory by default, which may be any",
    "host_baseline_hosts": "names of hosts and their addresses, which may be any",
    "java_packages": "names of packages, judged by apt or dnf",
    "kafka_accept_unavailable": "names of topics, compared with those that exist",
    "kafka_acls": "admin.acls",
    "kafka_acls_purge": "declared_state.PURGES",
    "kafka_admin_listener": "compared with the names of kafka_listeners",
    "kafka_admin_python": "any command",
    "kafka_client_security": "logins and PEM texts, any text; certificates are parsed by preflight.tls",
    "kafka_cluster_name": "OWN_CHECKS",
    "kafka_config": "versions_and_keys, by the keys of the release",
    "kafka_controllers_group": "the name of a group: inventory.group_name",
    "kafka_dynamic_configs": "admin.configs",
    "kafka_gc_options": "tried by the JVM itself",
    "kafka_group": "the name of a group: inventory.group_name",
    "kafka_host_config": "versions_and_keys, by the keys of the release",
    "kafka_inter_broker_listener": "compared with the names of kafka_listeners",
    "kafka_jvm_options": "tried by the JVM itself",
    "kafka_listeners.audience": "any word",
    "kafka_plugin_prefixes": "beginnings of keys, any text",
    "kafka_plugins.src": "a file that the controller must have, or a URL that it fetches, by its digest",
    "kafka_quotas": "admin.quotas",
    "kafka_quotas_purge": "declared_state.PURGES",
    "kafka_rack": "any text",
    "kafka_retention_": "preflight.retention",
    "kafka_sasl.": "logins, any text",
    "kafka_ssl.": "PEM texts, parsed by preflight.tls",
    "kafka_super_users": "names of principals, any text",
    "kafka_topics": "admin.topics",
    "kafka_unit_options": "its sections have forms",
    "kafka_users": "admin.users",
    "kafka_version": "versions_and_keys",
    "kafka_zookeeper_chroot": "OWN_CHECKS",
    "kafkaops_break_lock": "compared with the run that holds the lock",
    "kafkaops_home": "judge._told_of_the_home, once for all paths below it",
    "kafkaops_preflight_accept": "judge._unknown_ids",
    "preflight_leaving": "set by playbooks",
    "kafka_client_audiences": "words that network.py holds against the listeners",
    "kafka_taken_over.version": "taking_over.py",
    "zookeeper_config": "versions_and_keys, by the keys of the release",
    "zookeeper_gc_options": "tried by the JVM itself",
    "zookeeper_group": "the name of a group: inventory.group_name",
    "zookeeper_jvm_options": "tried by the JVM itself",
    "zookeeper_taken_over.version": "taking_over.py",
    "zookeeper_unit_options": "its sections have forms",
    "zookeeper_version": "versions_and_keys",
}


def leaves(name, option):
    """(name, option) of an option that holds a value, and of all below it."""
    below = option.get("options") or {}
    if not below:
        yield name, option
    for key, each in below.items():
        yield from leaves(f"{name}.{key}", each)


LEAVES = [leaf for name, option in variables.declared().items() for leaf in leaves(name, option)]


def test_every_whole_number_has_bounds():
    numbers = [name for name, option in LEAVES if option.get("type") == "int"]
    # aws_cores: the types of machines decide, in aws.plan_present
    own = {*variables.OWN_CHECKS, "aws_cores"}
    without = [name for name in numbers if not name.endswith(tuple(variables.BOUNDS))]
    assert numbers and set(without) <= own


def test_every_free_text_has_a_form_or_somebody_else_who_judges_it():
    free = {
        name
        for name, option in LEAVES
        if {option.get("type", "str"), option.get("elements")}.isdisjoint(("int", "float", "bool"))
        and "choices" not in option
    }
    without = free - set(variables.FORMS) - set(variables.OWN_CHECKS)
    assert {name for name in without if not any(covers(each, name) for each in EXEMPT)} == set()
    names = {name for name, _option in LEAVES} | set(variables.declared())
    for exempt in EXEMPT:
        assert any(covers(exempt, name) for name in names), exempt


def covers(exempt, name):
    """Whether a row of EXEMPT is about this variable: by its whole name, or by a beginning that ends so."""
    return name == exempt or name.startswith(exempt if exempt[-1] in "._" else f"{exempt}.")


def test_a_misspelt_key_that_may_be_a_secret_is_not_shown():
    _typed, faults = variables.judged("kafka_sasl", {"inter_broker_pasword": "s3cret"})
    assert "s3cret" not in repr(faults)


def test_every_variable_of_every_role_is_declared():
    for path in ROOT.glob("roles/*/defaults/main.yml"):
        defaults = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        assert set(defaults) <= set(variables.declared()), path


@pytest.mark.parametrize("table", ["FORMS", "BOUNDS", "CHECKS", "NOT_EMPTY"])
def test_what_a_spec_cannot_say_is_about_variables_that_exist(table):
    names = set(variables.declared())
    for name in getattr(variables, table):
        ends = [each for each in names if each.endswith(name)] if table == "BOUNDS" else []
        assert name.partition(".")[0] in names or ends, name


def test_consent_to_an_unknown_check_is_refused():
    raw = Raw("kafka-1", True, False, {"kafka_cluster_name": "a"})
    lines = [each.line() for each in judge([raw], Versions(), accept=["ensemble.sise"]).findings]
    assert any("kafkaops_preflight_accept=ensemble.sise" in each for each in lines)
    assert any("did you mean `ensemble.size`?" in each for each in lines)
