# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Order of turns, four-letter words, the status table, the search for Java."""

import os

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils._four_letter_words import (
    missing_to_whole,
    parse_mntr,
    parse_srvr,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._java import find, major
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan_roll import roll_order
from ansible_collections.kafkaops.cluster.plugins.module_utils._status import status_lines

SRVR = """Zookeeper version: 3.9.5-abc, built on 2025-01-01 00:00 UTC
Latency min/avg/max: 0/0.5/4
Received: 12
Sent: 11
Connections: 3
Outstanding: 0
Zxid: 0x100000002
Mode: leader
Node count: 25
"""


def member(host, number, running=True, last=False):
    return {"host": host, "id": number, "running": running, "last": last}


@pytest.mark.parametrize(
    "members, expected",
    [
        ([member("b", 2), member("a", 1)], ["a", "b"]),
        ([member("a", 1, last=True), member("b", 2), member("c", 3)], ["b", "c", "a"]),
        ([member("a", 1), member("b", 2, running=False)], ["b", "a"]),
        ([member("a", 10), member("b", 9)], ["b", "a"]),
        ([], []),
    ],
)
def test_what_is_down_goes_first_and_the_leader_last(members, expected):
    assert roll_order(members) == expected


def test_srvr_and_mntr_are_read():
    state = parse_srvr(SRVR)
    assert state["role"] == "leader" and state["version"] == "3.9.5"
    assert state["zxid"] == "0x100000002" and state["nodes"] == 25
    assert parse_srvr("This ZooKeeper instance is not currently serving requests\n")["role"] is None
    assert parse_mntr("zk_synced_followers\t2.0\nnoise\n") == {"zk_synced_followers": "2.0"}


def server(number, role, synced=None, serving=True):
    return {
        "id": number,
        "address": "z",
        "port": 2181,
        "role": role,
        "serving": serving,
        "synced_followers": synced,
        "error": None if serving else "refused",
    }


@pytest.mark.parametrize(
    "states, whole",
    [
        ([server(1, "standalone")], True),
        ([server(1, "leader", 2), server(2, "follower"), server(3, "follower")], True),
        ([server(1, "leader", 1), server(2, "follower"), server(3, "follower")], False),
        ([server(1, "follower"), server(2, "follower"), server(3, "follower")], False),
        ([server(1, "leader", 1), server(2, "follower"), server(3, None, serving=False)], False),
    ],
)
def test_an_ensemble_is_whole_only_with_all_followers_synced(states, whole):
    assert (missing_to_whole(states) == []) is whole


def test_the_status_table_names_leader_controller_and_what_is_pending():
    lines = status_lines(
        [
            {"name": "z1", "role": "zookeeper", "id": 1, "version": "3.9.5",
             "process": {"running": True, "started_at": 0, "restart_reasons": []}},
            {"name": "k1", "role": "kafka", "id": 1, "version": "3.9.2",
             "process": {"running": True, "started_at": 1, "restart_reasons": ["x 1 -> 2"]}},
            {"name": "k2", "role": "kafka", "id": 2, "version": "3.9.2",
             "process": {"running": False, "restart_reasons": ["not running"]}},
            {"name": "k3", "role": "kafka", "id": 3, "version": "-", "process": None},
        ],
        [server(1, "leader", 0)],
        {
            "reachable": True,
            "controller": 1,
            "brokers": [{"id": 1}],
            "under_replicated": [
                {"topic": "t", "partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1]}
            ],
        },
    )  # fmt: skip
    text = "\n".join(lines)
    assert "leader" in lines[1]
    assert "controller" in lines[2] and lines[2].endswith("yes")
    assert "  k1: x 1 -> 2" in lines
    assert "down" in lines[3] and lines[3].rstrip().endswith("no")
    assert "host not reached" in lines[4]
    assert "1 partitions under-replicated:" in text and "t-0  leader 1  replicas 1,2  isr 1" in text


@pytest.mark.parametrize(
    "version, expected", [("17.0.15", 17), ("1.8.0_402", 8), ("21", 21), ("", None)]
)
def test_feature_release_of_a_java_version(version, expected):
    assert major(version) == expected


def _java(folder, version):
    os.makedirs(folder / "bin")
    (folder / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (folder / "bin" / "java").chmod(0o755)
    (folder / "release").write_text('JAVA_VERSION="%s"\n' % version)


def test_java_in_the_range_is_found_and_an_explicit_home_is_the_only_candidate(tmp_path):
    _java(tmp_path / "old", "11.0.2")
    _java(tmp_path / "good", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path / "good" / "bin")}
    found = find(17, 23, environment=environment)
    assert found["home"] == str(tmp_path / "good") and "11.0.2" in found["seen"][0]
    explicit = find(17, 23, java_home=str(tmp_path / "old"), environment=environment)
    assert explicit["home"] is None
