# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is declared of a cluster's state, read as the modules will get it: place, reason and remedy."""

from __future__ import annotations

import pytest

from tests.unit.plugins.module_utils.preflight.test_robustness import verdict_with


def lines(**settings):
    """The errors over the good inventory with these settings, each on one line."""
    return [each.line() for each in verdict_with(settings).errors]


@pytest.mark.parametrize(
    "brokers, head, remedy",
    [
        (
            {"kafka_users": [{"name": "a", "password": "b"}, {"name": "c", "passwrd": "s3cret"}]},
            "[state.bad_item] kafka-1, kafka-2, kafka-3: kafka_users[1].passwrd=...: kafka_users has no such key",
            "did you mean `password`?",
        ),
        (
            {"kafka_users": ["alice s3cret"]},
            "[state.bad_item] kafka-1, kafka-2, kafka-3: kafka_users[0]=...: not a mapping",
            "see `ansible-doc kafkaops.cluster.kafka_users`",
        ),
        (
            {"kafka_dynamic_configs": [{"scope": "cluster", "secrets": "s3cret"}]},
            "kafka_dynamic_configs[0].secrets=...: not a mapping",
            "",
        ),
        (
            {"kafka_dynamic_configs": [{"scope": "broker", "brokers": [1, float("inf")]}]},
            "kafka_dynamic_configs[0].brokers[1]=inf: not a whole number",
            "",
        ),
        (
            {"kafka_acls": [{"principal": "User:a", True: "topic", "operations": ["read"]}]},
            "kafka_acls[0].true=...: kafka_acls has no such key",
            "use topic,",
        ),
        (
            {"kafka_quotas": [{"user": "a", "state": "absnt"}]},
            "kafka_quotas[0].state=absnt: not one of present, absent",
            "did you mean `absent`?",
        ),
        (
            {"kafka_acls": [{"principal": "User:a", "topic": "x", "operations": ["reed"]}]},
            "kafka_acls[0].operations=[reed]: there is no operation reed",
            "ansible-doc kafkaops.cluster.kafka_acls",
        ),
        ({"kafka_acls_purge": {"nosuch": 1}}, "kafka_acls_purge.nosuch=...", "use principals,"),
        (
            {"kafka_acls_purge": {"principals": ["User:a"]}},
            "kafka_acls_purge.maximum=null: missing",
            "",
        ),
        (
            {"kafka_acls_purge": {"maximum": 3}},
            "kafka_acls_purge=...: none of principals, resources is given",
            "",
        ),
        (
            {"kafka_acls_purge": {"resources": ["topic:("], "maximum": 3}},
            "[purge.pattern] kafka-1, kafka-2, kafka-3: kafka_acls_purge.resources=topic:(: not a regular",
            "",
        ),
        (
            {"kafka_quotas_purge": {"patterns": ["a"], "maximum": "x"}},
            "kafka_quotas_purge.maximum=x: not a whole number",
            "see `ansible-doc kafkaops.cluster.kafka_quotas`",
        ),
        (
            {"kafka_quotas_purge": {"patterns": ["("], "maximum": 3}},
            "[purge.pattern] kafka-1, kafka-2, kafka-3: kafka_quotas_purge.patterns=(: not a regular",
            "",
        ),
    ],
)
def test_what_a_module_would_refuse_is_told_with_its_place(brokers, head, remedy):
    told = [each for each in lines(kafka_authorizer=True, **brokers) if head in each]
    assert told and remedy in told[0]
    assert "s3cret" not in told[0]


def test_what_ansible_converts_for_a_module_is_right():
    state = {
        "kafka_users": [
            {"name": "a", "password": "b", "mechanisms": "SCRAM-SHA-256", "iterations": "8192"}
        ],
        "kafka_dynamic_configs": [
            {"scope": "broker", "brokers": "1,2", "settings": {"num.io.threads": 4}}
        ],
        "kafka_acls_purge": {"principals": "User:a", "maximum": "3"},
        "kafka_quotas_purge": {"patterns": "user=a", "maximum": 3},
    }
    before = lines(kafka_authorizer=True)
    assert lines(kafka_authorizer=True, **state) == before
