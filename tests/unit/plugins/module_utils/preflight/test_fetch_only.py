# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that only fills the cache judges what says what is fetched, and knows nothing of any host."""

from __future__ import annotations

import pytest

from tests.unit.plugins.module_utils.preflight import good_inventory as ground
from tests.unit.plugins.module_utils.preflight.test_wrong_inventories import said, spoilt

HOSTS = [f"{product}-{number}" for product in ("kafka", "zookeeper") for number in (1, 2, 3)]
NOT_ASKED = {host: {"facts": None} for host in HOSTS}


def judged(tmp_path, **brokers):
    """The verdict over the good inventory with variables of its brokers, and no facts of any host."""
    document = spoilt(brokers=brokers)
    return ground.verdict_of(document, tmp_path, raw=NOT_ASKED, unprotected=True, purpose="fetch")


def test_nothing_is_said_of_hosts_that_nobody_asked(tmp_path):
    assert judged(tmp_path).findings == ()


@pytest.mark.parametrize(
    "check, brokers",
    [
        ("version.unknown", {"kafka_version": "3.9.22"}),
        ("version.unknown", {"kafka_version": "3.9"}),
        ("settings.bad_value", {"kafka_version": ["3.9.2"]}),
        ("settings.bad_value", {"kafka_scala_version": ["2.13"]}),
        ("settings.bad_value", {"distribution_source": "mavn"}),
        ("settings.bad_value", {"kafkaops_cache": ["/cache"]}),
        ("settings.bad_value", {"kafka_plugins": [{"src": "/plugin.jar"}]}),
        ("settings.bad_value", {"flow_validation": "maybe"}),
        ("settings.bad_value", {"kafka_heap": "none"}),
        ("settings.undefined", {"kafka_version": "{{ nobody }}"}),
        ("inventory.empty_group", {"kafka_group": "brokres"}),
    ],
)
def test_what_cannot_be_fetched_is_refused(tmp_path, check, brokers):
    assert check in {each.check for each in judged(tmp_path, **brokers).errors}


@pytest.mark.parametrize(
    "check, brokers",
    [
        ("identity.duplicate_broker_id", {"kafka_broker_id": 1}),
        ("settings.undefined", {"kafka_rack": "{{ a_secret_of_another_controller }}"}),
        ("topics.bad_name", {"kafka_topics": [{"name": "a b", "partitions": 1}]}),
    ],
)
def test_what_nothing_that_is_fetched_depends_on_is_only_said(tmp_path, check, brokers):
    verdict = judged(tmp_path, **brokers)
    assert verdict.errors == () and check in said(verdict)


def test_a_misspelt_variable_is_said(tmp_path):
    verdict = judged(tmp_path, kafka_verison="3.8.1")
    assert verdict.errors == () and "settings.unknown_variable" in said(verdict)
