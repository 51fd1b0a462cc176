# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Listeners of one broker on one port, on addresses of their own: what Kafka itself takes."""

from __future__ import annotations

import pytest

from tests.unit.plugins.module_utils.preflight import good_inventory as ground
from tests.unit.plugins.module_utils.preflight.test_wrong_inventories import spoilt

FOUR, FOUR_TOO, SIX, SIX_TOO = "192.0.2.11", "198.51.100.11", "2001:db8::11", "2001:db8::12"
NAMED = "inside.example.com"
# what the host's resolver says of it: an address that no other listener has
KNOWN = {"names/inside.example.com": {"addresses": ["203.0.113.11"], "error": None}}


def told(tmp_path, *binds, **other):
    """The lines of listeners.duplicate of a broker whose listeners have one port."""
    listeners = [
        {
            "name": f"L{place}",
            "port": 9092,
            "bind": bind,
            "advertised": f"outside-{place}.example.com",
        }
        for place, bind in enumerate(binds)
    ]
    facts = {"kafka-1": {"addresses": [FOUR, FOUR_TOO, SIX, SIX_TOO, "203.0.113.11"], **KNOWN}}
    document = spoilt(hosts={"kafka-1": {"kafka_listeners": listeners, **other}})
    found = ground.verdict_of(document, tmp_path, facts=facts)
    return [each.line() for each in found.findings if each.check == "listeners.duplicate"]


@pytest.mark.parametrize(
    "binds, pairs",
    [
        ((FOUR, FOUR_TOO), 1),
        ((SIX, SIX_TOO), 1),
        ((FOUR, NAMED), 1),
        ((SIX, NAMED), 1),
        ((FOUR, SIX), 0),
        ((SIX, FOUR), 0),
        ((f"[{SIX}]", FOUR), 0),
        ((FOUR, SIX, SIX_TOO), 1),
    ],
)
def test_one_port_for_two_listeners_is_for_one_address_of_each_family(binds, pairs, tmp_path):
    """KafkaConfig of 3.9.2 and 4.3.1 refuses all others, and so no broker starts."""
    lines = told(tmp_path, *binds)
    assert len(lines) == pairs, lines
    for line in lines:
        assert "Kafka takes one port for two listeners only where" in line
        assert line.endswith("Remedy: give each listener its own port.")


def test_the_port_of_controllers_is_no_other(tmp_path):
    """It is one of the listeners of a node that is both."""
    hosts = {"kafka-1": {"kafka_controller_bind": FOUR_TOO, "kafka_controller_port": 9092}}
    listeners = [{"name": "INTERNAL", "port": 9092, "bind": FOUR, "advertised": "a.example.com"}]
    hosts["kafka-1"]["kafka_listeners"] = listeners
    document = spoilt(brokers={"kafka_metadata": "kraft", "kafka_version": "4.3.1"}, hosts=hosts)
    document["all"]["children"]["controllers"] = {"hosts": {f"kafka-{n}": {} for n in (1, 2, 3)}}
    facts = {"kafka-1": {"addresses": [FOUR, FOUR_TOO]}}
    found = ground.verdict_of(document, tmp_path, facts=facts)
    lines = [each.line() for each in found.findings if each.check == "listeners.duplicate"]
    assert len(lines) == 1 and "kafka_controller_port" in lines[0], lines
