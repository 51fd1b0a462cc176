# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventories of wrong_inventories.yml: the whole verdict has to be right, nothing missing, nothing more."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from tests.unit.plugins.module_utils import preflight_inventory as ground

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
        told.setdefault(each.check, set()).update(each.hosts)
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
    )
    lines = "\n".join(each.line() for each in verdict.findings)
    assert said(verdict) == case["expect"], lines


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


def test_memory_maps_that_the_roles_raise_are_no_finding(tmp_path):
    facts = {"kafka-1": {"limits/max_map_count": 100}}
    assert said(ground.verdict_of(spoilt(), tmp_path, facts=facts)) == {}
