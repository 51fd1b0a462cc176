# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that only talks to brokers judges what is declared of their state, and not who has installed them."""

from __future__ import annotations

import pytest

from tests.unit.plugins.module_utils.preflight import good_inventory as ground
from tests.unit.plugins.module_utils.preflight.test_wrong_inventories import said, spoilt

DOWN = {"unreachable": "No route to host"}
BROKERS = ("kafka-1", "kafka-2", "kafka-3")


def judged(tmp_path, raw=None, **brokers):
    """The verdict of a run for the state alone, over the good inventory with variables of its brokers."""
    return ground.verdict_of(spoilt(brokers=brokers), tmp_path, raw=raw, purpose="state")


@pytest.mark.parametrize(
    "brokers",
    [
        {"kafka_group": "kafka", "zookeeper_group": "nobody"},
        {"kafka_heap": "900g"},
        {"kafka_log_dirs": ["/etc/of-others"]},
        {"kafka_config": {"no.such.key": "1"}},
        {"kafka_acls": [{"principal": "User:a", "topic": "b", "operations": ["read"]}]},
        {"kafka_topics": [{"name": "alone", "partitions": 1, "replication_factor": 1}]},
        {"kafka_topics": [{"name": "beyond", "partitions": 1, "replication_factor": 9}]},
    ],
    ids="-".join,
)
def test_what_others_have_made_of_the_hosts_is_no_matter(tmp_path, brokers):
    assert judged(tmp_path, **brokers).errors == ()
    assert "ensemble.size" not in said(judged(tmp_path, **brokers))


@pytest.mark.parametrize(
    "check, brokers",
    [
        ("topics.bad_name", {"kafka_topics": [{"name": "a b", "partitions": 1}]}),
        (
            "quotas.bad_value",
            {"kafka_quotas": [{"user": "a", "limits": {"consumer_byte_rate": 0}}]},
        ),
        ("state.bad_item", {"kafka_quotas": [{"nobody": "a"}]}),
        ("cluster.name", {"kafka_cluster_name": "a b"}),
    ],
)
def test_what_cannot_be_of_the_state_is_refused(tmp_path, check, brokers):
    assert check in {each.check for each in judged(tmp_path, **brokers).errors}


def test_a_broker_that_is_down_is_told_and_another_one_stands_for_the_cluster(tmp_path):
    verdict = judged(tmp_path, {"kafka-1": DOWN})
    assert verdict.errors == () and said(verdict)["host.unreachable"] == ["kafka-1"]
    assert verdict.result["cluster_first"] == {"orders-prod": "kafka-2"}


def test_without_any_host_there_is_nobody_to_ask_for(tmp_path):
    verdict = judged(tmp_path, dict.fromkeys(BROKERS, DOWN))
    assert {each.check for each in verdict.errors} == {"host.unreachable"}
