# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that brokers do not have: the table against kafka-python's own, and the words for its errors."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from kafka.errors import UnsupportedVersionError
from kafka.protocol import admin as messages
from kafka.protocol.api_key import ApiKey
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS, BrokerVersionData

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.apis import (
    SINCE,
    missing_api,
    since,
)

ADMIN = Path(__file__).resolve().parents[6] / "plugins" / "module_utils" / "admin"


@pytest.mark.parametrize("name", sorted(SINCE))
def test_the_table_is_that_of_kafka_python(name):
    first = {}
    for kafka in sorted(BROKER_API_VERSIONS):
        versions = BROKER_API_VERSIONS[kafka].get(ApiKey[name])
        for number in range(versions[1] + 1) if versions else ():
            first.setdefault(number, ".".join(map(str, kafka)))
    assert SINCE[name] == tuple(sorted(first.items()))


def test_the_table_has_every_request_that_we_make_ourselves():
    made = {
        node.func.id[: -len("Request")]
        for path in ADMIN.rglob("client*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id.endswith("Request")
    }
    assert "DescribeAcls" in made and made <= set(SINCE), "see admin/client/apis.py"


def error(kafka, request):
    """kafka-python's own error for brokers of a version."""
    with pytest.raises(UnsupportedVersionError) as caught:
        BrokerVersionData(kafka).api_version(request)
    return str(caught.value)


@pytest.mark.parametrize(
    ("kafka", "request_", "reason", "remedy"),
    [
        (
            *((2, 4), messages.DescribeClientQuotasRequest(components=[], strict=False)),
            "these brokers do not have the request DescribeClientQuotas, which came with Kafka 2.6",
            "upgrade Kafka to 2.6 or newer",
        ),
        (
            *((2, 6), messages.DescribeUserScramCredentialsRequest(users=None)),
            "these brokers do not have the request DescribeUserScramCredentials, which came with Kafka 2.7 "
            "(without ZooKeeper 3.5)",
            "upgrade Kafka to 2.7 or newer (without ZooKeeper 3.5)",
        ),
        (
            *((3, 2), messages.DeleteAclsRequest(filters=[], min_version=3)),
            "these brokers do not have the request DeleteAcls in version 3, which came with Kafka 3.3",
            "upgrade Kafka to 3.3 or newer",
        ),
        (
            *((4, 3), messages.DescribeAclsRequest(max_version=0)),
            "these brokers no longer have the request DescribeAcls in version 0 or older",
            "upgrade kafka-python on the host that runs the module",
        ),
    ],
)
def test_what_is_told_of_an_error(kafka, request_, reason, remedy):
    assert missing_api(error(kafka, request_)) == (reason, remedy)


def test_what_the_table_does_not_have_is_named_without_a_version():
    words = "Kafka broker does not support the 'NoSuch' Kafka protocol."
    assert missing_api(words) == ("these brokers do not have the request NoSuch", "upgrade Kafka")
    assert missing_api("not in this mode") == (
        "these brokers have no such request (not in this mode)",
        "upgrade Kafka",
    )
    assert since("DescribeLogDirs", 5) == "4.3" and since("DescribeLogDirs", 9) is None
