# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host that administers: what is missing there is told before anything is deployed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from ansible import constants as C

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.host_facts import (
    missing_packages,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    LOCALHOST,
    AdminHost,
    Controller,
)
from tests.unit.plugins.module_utils.preflight import good_inventory as ground
from tests.unit.plugins.module_utils.preflight.test_two_clusters import both
from tests.unit.plugins.module_utils.preflight.test_wrong_inventories import spoilt

ROLES = Path(ground.ROLES)


def told(tmp_path, wish="auto", **known):
    """The findings about the host, of brokers with this flow_validation."""
    admin = AdminHost("kafka-1", "/py", **known)
    admin = Controller(java={"version": "17"}, admins={"orders-prod": admin})
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


BROKERS = ["kafka-1", "kafka-2", "kafka-3"]


@pytest.mark.parametrize(
    "where, name, hosts, remedy",
    [
        ("brokers", "kafka-9", BROKERS, "did you mean `kafka-3`?"),
        ("servers", "bastion", ["zookeeper-1", "zookeeper-2", "zookeeper-3"], "add it to the inv"),
        ("kafka-2", "bastion", ["kafka-2"], "add it to the inventory"),
        ("brokers", 5, BROKERS, "add it to the inventory"),
        ("brokers", "elsewhere", [], ""),
        ("brokers", "localhost", [], ""),
        ("kafka-3", "::1", [], ""),
    ],
)
def test_a_host_that_the_inventory_does_not_have(tmp_path, where, name, hosts, remedy):
    """Ansible would make one up, and reach it by whatever all hosts have."""
    named = {"kafka_admin_host": name}
    laid = {where: named} if where in ("brokers", "servers") else {"hosts": {where: named}}
    elsewhere = {"all": {"children": {"apart": {"hosts": {"elsewhere": {}}}}}}
    verdict = ground.verdict_of(spoilt(**laid, document=elsewhere), tmp_path)
    lines = [each.line() for each in verdict.findings]
    assert len(lines) == bool(hosts), lines
    beginning = (
        f"[host.admin] {', '.join(hosts)}: kafka_admin_host={name}: no host of the inventory"
    )
    assert all(each.startswith(beginning) and remedy in each for each in lines)


def test_each_name_that_no_host_has_is_told_once(tmp_path):
    hosts = {"kafka-2": {"kafka_admin_host": "a"}, "kafka-3": {"kafka_admin_host": "b"}}
    document = spoilt(everywhere={"kafka_admin_host": "a"}, hosts=hosts)
    verdict = ground.verdict_of(document, tmp_path)
    assert [(each.value, len(each.subjects)) for each in verdict.findings] == [("a", 5), ("b", 1)]


def test_the_names_of_the_controller_are_those_of_ansible():
    assert set(LOCALHOST) == set(C.LOCALHOST)


def test_roles_have_the_names_of_the_controller():
    texts = [path.read_text(encoding="utf-8") for path in ROLES.glob("*/*/*.yml")]
    lists = [each for text in texts for each in re.findall(r"in (\['localhost'.*?\])", text)]
    assert len(lists) > 2 and {tuple(ast.literal_eval(each)) for each in lists} == {LOCALHOST}
    assert not [text for text in texts if re.search(r"[!=]= 'localhost'", text)]


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


def test_each_cluster_has_the_findings_of_its_own_host(tmp_path):
    """One that two clusters share is told once."""
    good, bad = AdminHost("a-jump", "/py"), AdminHost("b-jump", "/py", unreachable="no route")
    for admins, names in (
        ({"orders-prod": good, "payments": bad}, ("kafka-4", "kafka-5", "kafka-6")),
        ({"orders-prod": bad, "payments": bad}, [f"kafka-{number}" for number in range(1, 7)]),
        ({"orders-prod": good}, None),
    ):
        verdict = ground.verdict_of(both(), tmp_path, controller=Controller(admins=admins))
        told_of = [each.subjects for each in verdict.findings if each.check == "host.admin"]
        assert told_of == ([tuple(names)] if names else [])
