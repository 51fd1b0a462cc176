# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which drills of a quorum a cluster has, as the preflight tells, and what the roles of its members have in common."""

from __future__ import annotations

import re

import pytest

from tests.support.role_variables import FACTS, ROLES, evaluated

BROKERS = ["one", "two", "three"]


def known(metadata, voters):
    """A cluster of three brokers, and hosts of voters; none is a ZooKeeper cluster's."""
    members = {"kafka": [{"host": host, "id": number} for number, host in enumerate(BROKERS, 1)]}
    stay = [{"host": host, "id": number} for number, host in enumerate(voters, 101)]
    preflight = {
        **FACTS["kafkaops_preflight"],
        "brokers": members,
        "nodes": members,
        "voters": {"kafka": {"stay": stay, "leave": [], "now": [], "asked": True}},
    }
    return {"kafkaops_preflight": preflight, "kafka_metadata": metadata, "drill": "all"}


@pytest.mark.parametrize(
    "metadata, voters, quorum",
    [
        ("zookeeper", [], ["zookeeper_quorum"]),
        ("kraft", ["c-1", "c-2", "c-3"], ["controllers_quorum"]),
        ("kraft", BROKERS, []),
        # one of them is a broker, whose replicas would be away
        ("kraft", ["one", "c-2", "c-3"], []),
        ("kraft", [], []),
    ],
)
def test_which_quorum_a_cluster_has_decides_which_drill(metadata, voters, quorum):
    found = evaluated("kafka", "__kafka_drills_chosen", known(metadata, voters))
    assert found["problem"] == "" and found["quorum"] == quorum
    assert len(found["names"]) > 10


@pytest.mark.parametrize(
    "plan, beyond",
    [
        ({"host": "one", "server_hosts": []}, []),
        ({"host": "two", "server_hosts": []}, ["two"]),
        # no broker is hit
        ({"host": "", "server_hosts": []}, []),
        ({"host": "", "server_hosts": ["three", "one"]}, ["three"]),
    ],
)
def test_a_drill_hits_nobody_whom_the_run_does_not_reach(plan, beyond):
    """With --limit, or after a host has dropped out."""
    variables = {"kafka_drill_plan": plan, "ansible_play_hosts": ["one"]}
    assert evaluated("kafka", "__kafka_drill_beyond", variables) == beyond


@pytest.mark.parametrize("role", ["kafka", "zookeeper"])
def test_members_of_either_quorum_go_and_come_by_the_same_names(role):
    """The tasks of the drill ask for ROLE_gate, ROLE_stop, ROLE_turn and ROLE_drill_stopped."""
    tasks = ROLES / role / "tasks"
    asked = set()
    for path in sorted((ROLES / "kafka" / "tasks").glob("drill_quorum_*.yml")):
        asked |= set(re.findall(r"member_role ~ '(_\w+)'", path.read_text(encoding="utf-8")))
    told = {
        *re.findall(
            rf"(?:register: |^    ){role}(_\w+)",
            "".join(
                (tasks / name).read_text(encoding="utf-8")
                for name in ("gate.yml", "stop.yml", "start.yml", "drill_stop.yml")
            ),
            flags=re.M,
        )
    }
    assert asked == {"_gate", "_stop", "_turn", "_drill_stopped"} and asked <= told
