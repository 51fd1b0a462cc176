# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_scram_credentials: check mode forgives an absent ensemble and nothing else."""

from __future__ import annotations

import socket

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.zookeeper import (
    node_name,
)
from tests.support.run_module import run_module

TASK = {"mechanisms": ["SCRAM-SHA-512"], "users": {"broker": "correct horse"}, "timeout": 2}


@pytest.fixture
def nobody():
    """host:port where nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("check", [True, False])
def test_an_address_of_another_form_is_an_error_in_check_mode_too(check):
    result = run_module(
        "kafka_scram_credentials", {**TASK, "zookeeper": "http://zk:2181/kafka"}, check
    )
    assert result.failed and result.msg.startswith("[zookeeper.form]")
    assert result.changed is False and result.written == []


def test_before_the_first_installation_check_mode_says_what_will_be_written(nobody):
    result = run_module("kafka_scram_credentials", {**TASK, "zookeeper": f"{nobody}/kafka"}, True)
    assert not result.failed and result.changed
    assert result.written == ["broker SCRAM-SHA-512"]


def test_an_absent_ensemble_is_an_error_of_a_real_run(nobody):
    result = run_module("kafka_scram_credentials", {**TASK, "zookeeper": f"{nobody}/kafka"})
    assert result.failed and result.changed is False and result.written == []
    assert f"[connection.unreachable] {nobody}: unreachable: Connection refused" in result.msg
    assert "correct horse" not in str(result.values)


@pytest.mark.parametrize(
    "name, node",
    [
        ("broker", "broker"),
        ("a/b", "a%2Fb"),
        ("50% +x", "50%25%20%2Bx"),
        ("CN=k,O=o", "CN%3Dk%2CO%3Do"),
        ("a.b-c_d~e*f", "a.b-c_d%7Ee%2Af"),
        ("ü", "%C3%BC"),
    ],
)
def test_users_are_named_as_kafka_names_their_nodes(name, node):
    """As Kafka's Sanitizer does: URL encoding, with blank, asterisk and tilde encoded, too."""
    assert node_name(name) == node
