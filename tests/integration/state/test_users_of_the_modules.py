# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who runs a module: an administrator, somebody without rights, somebody with a wrong password."""

from __future__ import annotations

from tests.support.run_module import run_module


def test_an_administrator_creates_and_somebody_without_rights_does_not(secured, name):
    topic = [{"name": name, "partitions": 1, "replication_factor": secured.bare.brokers}]
    refused = secured.run("kafka_topics", user="nobody", topics=topic)
    assert refused.failed and not refused.changed and "uthoriz" in refused.msg
    done = secured.run("kafka_topics", topics=topic)
    assert done.changed, done.msg
    assert name in secured.tool("org.apache.kafka.tools.TopicCommand", "--list").split()


def test_a_wrong_password_is_said_to_be_one(secured):
    arguments = {**secured.arguments("admin", "wrong"), "timeout": 8}
    failed = run_module("kafka_cluster_info", arguments)
    assert failed.failed and "[connection.credentials]" in failed.msg
