# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the preflight asks of clusters that run, and says where it has no answer."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.asking import not_asked


def test_a_cluster_that_runs_and_does_not_answer_is_named_with_its_brokers():
    """One that could be asked is not."""
    brokers = [SimpleNamespace(name=name) for name in ("kafka-1", "kafka-2")]
    asked = {
        "payments": {"cluster": SimpleNamespace(brokers=brokers), "problem": "wrong credentials"},
        "orders": {"cluster": SimpleNamespace(brokers=brokers), "problem": ""},
    }
    assert [each.line().split(" Remedy")[0] for each in not_asked(asked)] == [
        "[cluster.unreadable] kafka-1, kafka-2: kafka_client_security=...: the running cluster payments could not be "
        "asked: wrong credentials."
    ]
