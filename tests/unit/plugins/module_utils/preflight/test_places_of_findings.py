# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a finding says that it is, and what it asks for there: words that lead to the line of the inventory."""

from __future__ import annotations

import copy
import tempfile

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import (
    masked_settings,
)
from tests.unit.plugins.module_utils.preflight import good_inventory as ground

with tempfile.TemporaryDirectory() as DIRECTORY:
    RAWS, _INVENTORY, _GROUPS = ground.gather(ground.good(), DIRECTORY)
FACTS = {raw.name: ground.good_facts(ground.read_member(raw)[0], []) for raw in RAWS}


def lines_with(**settings):
    spoilt = [
        type(raw)(
            **dict(raw.__dict__, settings={**raw.settings, **settings}, facts=FACTS[raw.name])
        )
        for raw in RAWS
    ]
    return [finding.line() for finding in ground.judge(spoilt, ground.VERSIONS).findings]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"kafka_topics": ["orders"]},
            "kafka_topics[0]=orders: an item must be a mapping, not orders",
        ),
        (
            {"kafka_topics": [{"partitions": 3}]},
            "kafka_topics[0].name=null: a topic needs a name. Remedy: write name: ...",
        ),
        (
            {"kafka_topics": [{"name": "a", "retention.ms": 5}]},
            "kafka_topics[a].retention.ms=5: a setting of Kafka, beside config. "
            "Remedy: put it below config: `config: {retention.ms: ...}`",
        ),
        (
            {"kafka_topics": [{"name": "a", "v1.5": 5}]},
            "kafka_topics[a].v1.5=5: unknown option. Remedy: use name, state, ",
        ),
        (
            {"kafka_topics": [{"name": "a", "retention": 5}]},
            "kafka_topics[a].retention=5: YAML hands over the number 5, which may have been written as 1:30 or 010. "
            'Remedy: write it in quotes and with its unit, as "5ms" or "1h".',
        ),
        (
            {"kafka_topics": [{"name": "a", "config": {"retention.ms": {"b": None}}}]},
            "kafka_topics[a].config.retention.ms={b: null}: a value must be a text",
        ),
        (
            {"kafka_topics": [{"name": "a", "config": {"nosuch": True}}]},
            "kafka_topics[a].config.nosuch=true: the brokers know no such topic setting",
        ),
        (
            {"kafka_topics": [{"name": "a"}, {"name": "a"}]},
            "kafka_topics[a]=a: listed twice, as topics[0] and topics[1]",
        ),
        (
            {"kafka_retention_policies": [{"match": "a", "keep_for": "7d"}, [True]]},
            "kafka_retention_policies[1]=[true]: a policy must be a mapping, not [true]",
        ),
        (
            {
                "kafka_topics": [{"name": "a", "retention": "7d"}],
                "kafka_retention_policies": [{"match": "a", "keep_for": "1d"}],
            },
            "kafka_topics[a].retention=7d: kafka_topics declares 604800000, and policies[0] (a) means 86400000",
        ),
        (
            {"kafka_retention_policies": [{True: 1, "x": 2}]},
            "kafka_retention_policies[0].true=1: unknown option",
        ),
        (
            {"kafka_dynamic_configs": [{"scope": "broker", "brokers": []}]},
            "kafka_dynamic_configs[0].scope=broker: no broker is named",
        ),
        (
            {
                "kafka_dynamic_configs": [
                    {"scope": "cluster", "settings": {"log.retention.ms": "1month"}}
                ]
            },
            "kafka_dynamic_configs[0].settings.log.retention.ms=1month: '1month' is not a clear duration.",
        ),
        (
            {"kafka_quotas": [{"user": True, "limits": {"consumer_byte_rate": True}}]},
            "kafka_quotas[0].limits.consumer_byte_rate=true: must be a number, not true",
        ),
        (
            {"kafka_quotas": [{"user": "a", "limits": {"consumer_byte_rate": -5}}]},
            "kafka_quotas[user=a].limits.consumer_byte_rate=-5: must be above 0. "
            "Remedy: correct it, or null for no limit.",
        ),
        (
            {"kafka_topics": [{"name": "a", "retention": "1; 2"}]},
            "kafka_topics[a].retention=1; 2: '1; 2' is not a clear duration. Remedy: write 30m, ",
        ),
        ({"kafka_quotas": [{}]}, "kafka_quotas[0]={state: present}: it names nobody"),
        (
            {"kafka_users": [{"name": "users[7]", "password": "a"}] * 2},
            "kafka_users[users[7]]=users[7]: it is declared twice",
        ),
        (
            {"kafka_users": [{"name": "", "password": "s3cret"}]},
            'kafka_users[0].name="": it is missing or empty',
        ),
        (
            {"kafka_topics": [{"name": "a b"}]},
            "kafka_topics[a b].name=a b: the name contains ' '",
        ),
        (
            {"kafka_listeners": [{"name": "A"}]},
            "kafka_listeners[0].port=null: missing. Remedy: add port, a whole number.",
        ),
        (
            {"kafka_plugins": [{"name": "a.jar", "src": "/a.jar"}]},
            "kafka_plugins[0].sha512=null: missing. Remedy: add sha512, a text.",
        ),
        ({"kafka_cluster_name": "x" * 101}, "use at most 100 letters"),
        ({"kafka_cluster_name": "alpha\n"}, "kafka_cluster_name=alpha: it becomes a directory"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[:40],
)
def test_a_finding_leads_to_its_place(settings, told):
    lines = lines_with(**settings)
    assert any(told in line for line in lines), lines


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"kafka_users": [{"name": "d", "password": {"value": "S3CRET"}}]},
            "kafka_users[d].password={(hidden): (hidden)}: ",
        ),
        (
            {"kafka_users": [{"name": "d", "password": ["S3CRET"]}]},
            "kafka_users[d].password=[(hidden)]: ",
        ),
        (
            {
                "kafka_dynamic_configs": [
                    {"scope": "cluster", "settings": {"ssl.keystore.password": {"v": "S3CRET"}}}
                ]
            },
            "settings.ssl.keystore.password={(hidden): (hidden)}: a value must be a text, number, boolean or "
            "list, not a mapping.",
        ),
        (
            {"kafka_environment": {"A_PASSWORD": {"x": "S3CRET"}}},
            "kafka_environment.A_PASSWORD={(hidden): (hidden)}: not a single value",
        ),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[:40],
)
def test_a_secret_of_another_type_is_not_shown(settings, told):
    lines = lines_with(**masked_settings(settings))
    assert any(told in line for line in lines), lines
    assert "S3CRET" not in "\n".join(lines)


def test_a_name_of_100_characters_is_one():
    assert not [line for line in lines_with(kafka_cluster_name="x" * 100) if "cluster.name" in line]


def test_a_heap_that_the_machine_cannot_give_is_told_of_the_heap():
    """Not of the options beside it, whose remedy would be to correct them."""
    spoilt = []
    for raw in RAWS:
        facts = copy.deepcopy(FACTS[raw.name])
        if raw.name == "kafka-1":
            facts["kafka"]["jvm_refusal"] = "os::commit_memory(0x7, 3, 0) failed"
        settings = {**raw.settings, "kafka_heap": "2g", "kafka_jvm_options": ["-XX:+UseZGC"]}
        spoilt.append(type(raw)(**dict(raw.__dict__, settings=settings, facts=facts)))
    lines = [finding.line() for finding in ground.judge(spoilt, ground.VERSIONS).findings]
    (told,) = [line for line in lines if "jvm.options" in line]
    assert told.startswith("[jvm.options] kafka-1: kafka_heap=2g: ")
    assert told.endswith("Remedy: lower kafka_heap to what the host can spare.")
