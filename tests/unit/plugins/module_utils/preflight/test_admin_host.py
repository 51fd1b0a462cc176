# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host that administers: what is missing there is told before anything is deployed."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.host_facts import (
    missing_packages,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    AdminHost,
    Controller,
)
from tests.unit.plugins.module_utils.preflight import good_inventory as ground
from tests.unit.plugins.module_utils.preflight.test_wrong_inventories import spoilt


def told(tmp_path, wish="auto", name="kafka-1", **known):
    """The findings about the host, of brokers with this flow_validation."""
    admin = Controller(java={"version": "17"}, admin=AdminHost(name, "/py", **known))
    document = spoilt(brokers={"flow_validation": wish})
    verdict = ground.verdict_of(document, tmp_path, controller=admin)
    return [each for each in verdict.findings if each.check == "host.admin"]


def test_nothing_is_missing(tmp_path):
    assert told(tmp_path) == []


@pytest.mark.parametrize(
    "known, wish, setting, words",
    [
        (
            {"unreachable": "no route"},
            "auto",
            "kafka_admin_host",
            "it cannot be used: no route. Remedy: name a host that answers, and in kafka_admin_python a",
        ),
        ({"missing": ("kazoo",)}, "never", "kafka_admin_python", "/py on kafka-1 has no kazoo"),
        ({"missing": ("pyspark",)}, "auto", "flow_validation", "has no pyspark"),
    ],
)
def test_what_is_missing(tmp_path, known, wish, setting, words):
    (finding,) = told(tmp_path, wish, **known)
    assert finding.level == "error" and finding.setting == setting
    assert words in finding.line() and len(finding.subjects) == 3


@pytest.mark.parametrize(
    "name, remedy",
    [
        ("kafka-9", "did you mean `kafka-3`?"),
        ("bastion", "add it to the inventory"),
        ("localhost", None),
        ("::1", None),
    ],
)
def test_a_host_that_the_inventory_does_not_have(tmp_path, name, remedy):
    """Ansible would make one up, and reach it by whatever all hosts have."""
    lines = [each.line() for each in told(tmp_path, name=name)]
    assert len(lines) == bool(remedy)
    assert all(f"kafka_admin_host={name}: no host of the inventory" in each for each in lines)
    assert all(remedy in each for each in lines)


def test_spark_is_missed_only_where_the_flow_is_validated(tmp_path):
    assert told(tmp_path, "never", missing=("pyspark",)) == []


@pytest.mark.parametrize(
    "wish, java, level",
    [
        ("auto", {"version": "11.0.2"}, "warning"),
        ("always", {"version": "11.0.2"}, "error"),
        ("always", {"seen": ["11", "8"]}, "error"),
        ("always", {"version": "21.0.1"}, None),
        ("never", {"version": "11.0.2"}, None),
    ],
)
def test_a_java_that_spark_does_not_take(tmp_path, wish, java, level):
    document = spoilt(brokers={"flow_validation": wish})
    verdict = ground.verdict_of(document, tmp_path, controller=Controller(java=java))
    findings = [each for each in verdict.findings if each.check == "java.spark"]
    assert [each.level for each in findings] == ([level] if level else [])
    assert all("11" in each.reason for each in findings)


def test_what_this_python_has():
    assert missing_packages(["json", "no_such_package"]) == ["no_such_package"]
