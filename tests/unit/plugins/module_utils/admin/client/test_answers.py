# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of kafka-python, read by its own functions from messages of the protocol."""

from __future__ import annotations

import pytest
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import DescribeConfigsResponse

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.answers import (
    SOURCES,
    setting_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import ConfigEntry

KEY = "min.insync.replicas"
Result = DescribeConfigsResponse.DescribeConfigsResult


def told(name, source=None, error=0):
    """What a broker says of one topic, as kafka-python gives it to a caller."""
    settings = []
    if source is not None:
        entry = Result.DescribeConfigsResourceResult(name=KEY, value="2", config_source=source)
        settings.append(entry)
    result = Result(error_code=error, resource_type=2, resource_name=name, configs=settings)
    answer = DescribeConfigsResponse(results=[result], version=4)
    return KafkaAdminClient._describe_configs_process_responses([answer], "all")["topic"]


@pytest.mark.parametrize("source", [each for each in SOURCES if each < 8])
def test_a_setting_has_the_source_that_the_protocol_numbers(source):
    expected = {"t": {KEY: ConfigEntry(KEY, "2", SOURCES[source])}}
    assert setting_of(told("t", source), KEY) == expected


@pytest.mark.parametrize("error", [3, 29])
def test_a_topic_that_is_gone_or_hidden_is_left_out(error):
    assert setting_of(told("t", error=error), KEY) == {}
