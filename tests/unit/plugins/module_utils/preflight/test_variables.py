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
        ("kafka_rack", True, "", "not a text", "give one line of text"),
        ("kafka_rack", None, "", "has no value", "leave the variable out"),
        ("kafka_log_dirs", "/srv", "", "not a list", "write a list: [/srv]"),
        ("kafka_log_dirs", ["/srv", "data"], "[1]", "not an absolute path", "begin it with /"),
        ("kafka_config", "a=b", "", "not a mapping", "write `key: value` pairs"),
        ("kafka_listeners", [{"name": "A", "prt": 1}], "[0].prt", "no such key", "did you mean"),
        ("kafka_listeners", [{"name": "A", "port": 0}], "[0].port", "outside 1 to 65535", "give"),
        ("flow_validation_probes", ["all"], "[0]", "not one of min-isr", "write one of"),
        ("kafka_client_security", {"timeout": "soon"}, ".timeout", "not a number", "give a number"),
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
    "variable, value, typed",
    [
        ("kafka_fast_failover", "yes", True),
        ("kafka_wait_timeout_seconds", "30", 30),
        ("kafka_scala_version", 2.13, "2.13"),
        ("kafka_topics_allow", "delete,retention_cut", ["delete", "retention_cut"]),
        ("zookeeper_bind", "[::1]", "::1"),
        ("kafka_account", "", ""),
        ("distribution_source", {"kafka": "archive"}, {"kafka": "archive"}),
    ],
)
def test_a_legal_value_gets_its_declared_type(variable, value, typed):
    assert variables.judged(variable, value) == (typed, ())


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
