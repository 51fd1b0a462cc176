# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options become an order, or are refused with the remedy; and what is documented is what there is."""

from __future__ import annotations

import importlib

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import Rule, Volume
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.order import (
    ORDER_OPTIONS,
    order_from,
    source,
)

MACHINE = {"name": "a", "type": "t", "image": "ami-1", "root_volume": {"size": "20GiB"}}


def options(**changes):
    """Options as Ansible hands them to the module."""
    given = {"cluster": "orders", "machines": [MACHINE], **changes}
    checked = ArgumentSpecValidator(ORDER_OPTIONS).validate(given)
    assert not checked.error_messages
    return checked.validated_parameters


def rule(**changes):
    return [{"ports": "22", "sources": ["members"], **changes}]


def with_machine(**changes):
    return options(machines=[{**MACHINE, **changes}])


def test_an_order_of_few_words():
    found = order_from(options(rules=rule(sources=["members", "10.0.0.0/8"], purpose="ssh")))
    assert found.group_name == "kafkaops-orders" and found.only is None
    assert found.machines[0].root == Volume("", 20)
    assert found.rules == {
        Rule("tcp", 22, 22, "members"): "ssh",
        Rule("tcp", 22, 22, "10.0.0.0/8"): "ssh",
    }


def test_a_rule_that_is_stated_twice_has_both_purposes():
    twice = order_from(options(rules=[*rule(purpose="a"), *rule(purpose="b"), *rule(purpose="a")]))
    assert list(twice.rules.values()) == ["a, b"]


@pytest.mark.parametrize(
    "given, words",
    [
        (options(cluster="a b"), "cluster=a b"),
        (options(machines=[MACHINE, MACHINE]), "named twice"),
        (options(only=["b"]), "not among the machines"),
        (options(rules=rule(ports="0")), "no port"),
        (options(rules=rule(ports="9094-9092")), "no port"),
        (options(rules=rule(ports="99999")), "no port"),
        (options(rules=rule(sources=["home"])), "not a source"),
        (options(rules=rule(sources=["203.0.113.7/24"])), "write 203.0.113.0/24"),
        (with_machine(root_volume={"size": "20"}), "whole GiB"),
        (with_machine(root_volume={"size": "20G"}), "write it like 100GiB"),
        (with_machine(volumes=[{"device": "sdf", "size": "1GiB"}]), "/dev/sdf"),
        (with_machine(volumes=[{"device": "/dev/sdf", "size": "1GiB"}] * 2), "named twice"),
        (with_machine(tags={"Name": "x"}), "which machine it is"),
        (with_machine(memory="lots"), "memory=lots"),
    ],
)
def test_what_cannot_be_ordered_is_refused_with_the_remedy(given, words):
    with pytest.raises(AdminError) as refused:
        order_from(given)
    line = refused.value.message
    assert line.startswith("[aws.bad_order] ") and words in line and "Remedy: " in line


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("203.0.113.7", "203.0.113.7/32"),
        ("FD00::/56", "fd00::/56"),
        ("sg-0a1", "sg-0a1"),
        ("pl-0a1", "pl-0a1"),
        ("network", "network"),
    ],
)
def test_a_source_has_one_form(text, canonical):
    assert source(text) == canonical


def described(documented, spec, path=""):
    """Differences between the documentation's options and the argument spec, as text."""
    found = [f"{path}{name}" for name in sorted(set(documented) ^ set(spec))]
    for name in set(documented) & set(spec):
        said, is_so = documented[name], spec[name]
        for key, default in (
            ("type", None),
            ("default", None),
            ("choices", None),
            ("required", False),
            ("elements", None),
        ):
            if said.get(key, default) != is_so.get(key, default):
                found.append(f"{path}{name}.{key}: {said.get(key)} is {is_so.get(key)}")
        found += described(said.get("suboptions", {}), is_so.get("options", {}), f"{path}{name}.")
    return found


def test_the_documentation_has_the_options_that_there_are():
    name = "ansible_collections.kafkaops.cluster.plugins.modules.aws_machines"
    documentation = yaml.safe_load(importlib.import_module(name).DOCUMENTATION)
    assert described(documentation["options"], ORDER_OPTIONS) == []
