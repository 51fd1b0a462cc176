# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a topic that brokers refuse together, as Kafka's LogConfig does."""

from __future__ import annotations

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.topic_values import (
    contradictions,
    value_of,
)

CASES = [
    ({"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"}, {}, "min.compaction.lag.ms"),
    ({"min.compaction.lag.ms": "50", "max.compaction.lag.ms": "50"}, {}, None),
    ({"max.compaction.lag.ms": "50"}, {}, None),
    ({"remote.storage.enable": "true"}, {"tiered": False}, "remote.storage.enable"),
    ({"remote.storage.enable": "true"}, {}, None),
    ({"remote.storage.enable": "false"}, {"tiered": False}, None),
    ({"remote.storage.enable": "false"}, {"was_remote": True}, "remote.storage.enable"),
    (
        {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"},
        {"was_remote": True},
        None,
    ),
    (
        {"remote.storage.enable": "true", "cleanup.policy": "compact,delete"},
        {},
        "remote.storage.enable",
    ),
    (
        {"remote.storage.enable": "true", "local.retention.ms": "2", "retention.ms": "1"},
        {},
        "local.retention.ms",
    ),
    (
        {"remote.storage.enable": "true", "local.retention.bytes": "-1", "retention.bytes": "1"},
        {},
        "local.retention.bytes",
    ),
    ({"remote.storage.enable": "true", "local.retention.ms": "-2", "retention.ms": "1"}, {}, None),
    ({"remote.storage.enable": "true", "local.retention.ms": "2", "retention.ms": "-1"}, {}, None),
    ({"local.retention.ms": "2", "retention.ms": "1"}, {}, None),
]


@pytest.mark.parametrize("settings, cluster, key", CASES)
def test_what_is_refused_together(settings, cluster, key):
    found = list(contradictions(settings.get, **{"tiered": True, **cluster}))
    assert [each.key for each in found] == ([] if key is None else [key])
    assert all(each.reason and each.remedy for each in found)


@pytest.mark.parametrize(
    "own, of_brokers, expected",
    [
        ({"a": "own"}, {"a": "brokers"}, "own"),
        ({}, {"a": "brokers"}, "brokers"),
        # null in an item: back to what the brokers have
        ({"a": None}, {}, "kafka"),
    ],
)
def test_the_value_that_a_topic_would_have(own, of_brokers, expected):
    assert value_of("a", own, of_brokers.get, {"a": {"default": "kafka"}}) == expected
