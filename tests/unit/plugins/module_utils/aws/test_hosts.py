# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines as hosts: addresses by audience, and no variable that means something else already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.hosts import hosts_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import meant
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from tests.support.ec2_values import machine, made, order

ROOT = Path(__file__).resolve().parents[5]
AUDIENCES = {"brokers": "private", "clients": "public", "admin": "public"}
ONE = replace(
    made(order(), machine("kafka-1", groups=("kafka", "zookeeper")), "subnet-b")[0],
    public_address="203.0.113.9",
    public_dns="ec2.example.org",
)


@pytest.mark.parametrize(
    "instance, address",
    [
        (ONE, "ec2.example.org"),
        (replace(ONE, public_dns=""), "203.0.113.9"),
        (replace(ONE, public_dns="", public_address=""), "10.0.0.1"),
    ],
)
def test_each_audience_gets_its_address(instance, address):
    (host,) = hosts_of([instance], AUDIENCES)
    assert host.variables["aws_addresses"] == {
        "brokers": "10.0.0.1",
        "clients": address,
        "admin": address,
    }
    assert host.variables["ansible_host"] == address
    assert (host.name, host.groups) == ("kafka-1", ("kafka", "zookeeper"))
    assert host.variables["kafka_rack"] == "zone-b"


def test_who_has_ended_is_no_host_and_who_has_no_address_gets_none():
    ended = replace(ONE, state="terminated")
    assert hosts_of([ended, replace(ended, state="shutting-down")], AUDIENCES) == []
    bare = replace(ONE, private_address="", public_address="", public_dns="")
    assert "ansible_host" not in hosts_of([bare], AUDIENCES)[0].variables


def test_what_is_not_clear_is_refused():
    with pytest.raises(ProblemError, match="two machines carry this name: i-kafka-1-1 and i-z"):
        hosts_of([ONE, replace(ONE, id="i-z")], AUDIENCES)
    with pytest.raises(ProblemError, match="write private or public"):
        hosts_of([ONE], {"admin": "internal"})


def test_no_variable_of_the_inventory_plugin_is_one_of_the_role():
    """The machine's public address would become the switch that orders one."""
    defaults = yaml.safe_load((ROOT / "roles/aws/defaults/main.yml").read_text(encoding="utf-8"))
    (host,) = hosts_of([ONE], AUDIENCES)
    assert len(defaults) > 10 and not set(host.variables) & set(defaults)


def test_no_variable_of_the_inventory_plugin_looks_like_a_misspelt_one():
    """The preflight would warn of it on every host."""
    (host,) = hosts_of([ONE], AUDIENCES)
    assert not [name for name in host.variables if meant(name)]
