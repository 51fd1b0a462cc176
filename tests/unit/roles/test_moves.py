# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose disks are evened out, and which lock the module that moves is told of."""

from __future__ import annotations

import copy

import pytest

from tests.support.role_variables import FACTS, evaluated

PREFLIGHT = copy.deepcopy(FACTS["kafkaops_preflight"])
PREFLIGHT["brokers"]["kafka"] = [
    {"host": host, "id": number, "listeners": []}
    for number, host in enumerate(("one", "two", "three"), 1)
]


PREFLIGHT["ids"]["two"] = {"broker_id": 2}


@pytest.mark.parametrize(
    ("answering", "registered", "asked", "left_alone"),
    [
        (("one", "two", "three"), (1, 2, 3), [1, 2, 3], []),
        (("one", "two", "three"), (1, 3, 9), [1, 3], [2]),
        (("one", "three"), (1, 2, 3), [1, 3], []),
    ],
)
def test_the_disks_of_a_broker_that_is_down_are_left_alone(
    answering, registered, asked, left_alone
):
    given = {
        "kafkaops_preflight": PREFLIGHT,
        "kafka_cluster_name": "kafka",
        "ansible_play_hosts": list(answering),
        "__kafka_registered": {"brokers": [{"id": broker} for broker in registered]},
    }
    assert evaluated("kafka", "__kafka_disks_of", given) == asked
    assert evaluated("kafka", "__kafka_disks_down", given) == left_alone
    named = {**given, "kafkaops_broker": "two"}
    assert evaluated("kafka", "__kafka_disks_of", named) == [2], "the module says that it is down"
    assert evaluated("kafka", "__kafka_disks_down", named) == []


@pytest.mark.parametrize(
    ("given", "owner"),
    [
        ({}, None),
        ({"ansible_connection": "local"}, "of one"),
        ({"kafka_admin_host": "two"}, "of two"),
        ({"kafka_admin_host": "elsewhere", "ansible_connection": "local"}, None),
    ],
    ids=["on a controller without a lock", "local", "on a member", "elsewhere"],
)
def test_what_moves_or_changes_voters_is_told_of_the_lock_that_is_on_its_host(given, owner):
    fences = {host: {"directory": "/l", "owner": f"of {host}"} for host in ("one", "two")}
    lock = evaluated("kafka", "__kafka_admin_lock", {"kafkaops_lock": {"fences": fences}, **given})
    assert lock.get("owner") == owner
    assert evaluated("kafka", "__kafka_admin_lock", given) == {}, "no lock was taken"
