# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds up the start of an empty voter of a static quorum, and how a broker that has left is unregistered."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.support.role_variables import FACTS, evaluated


def about(node, quorum=None):
    """What the preflight has told of a node `one` of this id, which leaves or is replaced."""
    listener = {"name": "A", "port": 9092, "advertised": "one"}
    known = {
        **FACTS["kafkaops_preflight"],
        "ids": {"one": {"broker_id": node, "myid": None}},
        "running": {"kafka": []},
        "quorums": {"one": quorum},
        "brokers": {"kafka": [{"host": "one", "id": node, "listeners": [listener]}]},
    }
    return {"kafkaops_preflight": known, "kafkaops_broker": "one"}


def told(leader, *voters):
    """What kafka_cluster_info returns; `voters`: (id, keeps_up)."""
    voters = [{"id": number, "keeps_up": keeps_up} for number, keeps_up in voters]
    return {"quorum": {"leader": leader, "voters": voters}}


BROKER = {"roles": ["broker"]}


@pytest.mark.parametrize(
    ("seen", "behind"),
    [
        (told(1, (1, True), (2, False), (3, True)), []),
        # it is empty, and so it is not asked of itself
        (told(1, (1, True), (2, False), (3, False)), [3]),
        (told(1, (1, True), (2, False), (3, False), (4, True), (5, False)), [3, 5]),
        # its former one, elsewhere, says nothing of the others
        (told(1, (1, True), (2, True), (3, False)), [3]),
        (told(None, (1, False), (2, False), (3, False)), ["?"]),
        ({"msg": "nobody answered"}, ["?"]),
    ],
)
def test_an_empty_voter_starts_while_all_others_keep_up(seen, behind):
    given = {"__kafka_voting": seen, **about("2")}
    assert evaluated("kafka", "__kafka_behind", given) == behind
    # one that votes with its disk is left alone, whoever else is behind
    given["kafkaops_preflight"]["running"] = {"kafka": ["one"]}
    assert evaluated("kafka", "__kafka_behind", given) == []


@pytest.mark.parametrize(
    ("seen", "here", "elsewhere"),
    [
        (told(1, (1, True), (2, True), (3, True)), [], True),
        (told(2, (1, True), (2, True), (3, True)), ["two"], True),
        (told(1, (1, True), (2, True), (3, True)), ["one"], False),
        (told(1, (1, True), (2, False), (3, True)), [], False),
        (told(None, (1, False), (2, False), (3, False)), [], False),
        ({"msg": "nobody answered"}, [], False),
    ],
)
def test_who_votes_under_its_id_while_nothing_runs_here(seen, here, elsewhere):
    given = {"__kafka_voting": seen, **about("2")}
    given["kafkaops_preflight"]["running"] = {"kafka": here}
    assert evaluated("kafka", "__kafka_votes_elsewhere", given) is elsewhere


@pytest.mark.parametrize(
    ("quorum", "votes"),
    [
        ({"roles": ["controller"], "static": True}, True),
        ({"roles": ["broker"], "static": True}, False),
        ({"roles": ["broker", "controller"], "static": False}, False),
        ({}, False),
        (None, False),
    ],
)
def test_who_votes_in_a_static_quorum(quorum, votes):
    assert evaluated("kafka", "__kafka_votes_statically", about(2, quorum)) is votes


@pytest.mark.parametrize("account", ["", "kafka"])
def test_the_guard_of_its_own_host_unregisters_it_as_the_account(account):
    """By the words with which it runs beside the broker."""
    given = {"kafka_account": account, "kafka_config_dir": "/etc/kafka", **about(4, BROKER)}
    words = evaluated("kafka", "__kafka_leave", given)
    before = ["runuser", "-u", "kafka", "--"] if account else []
    assert words[: len(before) + 2] == [*before, "/bin/sh", "-c"]
    words = words[len(before) + 4 :]
    assert words[1:3] == ["/etc/kafka/current/fencing.py", "leave"]
    assert words[3:5] == ["--properties", "/etc/kafka/current/server.properties"]
    assert "--state" in words and not [each for each in words if "{" in each]


@pytest.mark.parametrize(
    "known",
    [
        {"ansible_python_interpreter": "{own}"},
        {"ansible_facts": {"discovered_interpreter_python": "{own}"}},
        {
            "ansible_python_interpreter": "auto_silent",
            "ansible_facts": {"discovered_interpreter_python": "{own}"},
        },
        # the account may not run it
        {"ansible_python_interpreter": "/root/none/python"},
    ],
)
def test_it_is_run_by_the_python_of_the_modules_where_none_is_in_the_path(tmp_path, known):
    own = tmp_path / "own"
    own.write_text('#!/bin/sh\necho "own $2"\n', encoding="utf-8")
    own.chmod(0o755)
    guard = tmp_path / "current" / "fencing.py"
    guard.parent.mkdir()
    guard.write_text("import sys; print('system', sys.argv[1])", encoding="utf-8")
    given = {
        "kafka_account": "",
        "kafka_config_dir": str(tmp_path),
        "ansible_facts": {},
        **json.loads(json.dumps(known).replace("{own}", str(own))),
        **about(4, BROKER),
    }
    words = evaluated("kafka", "__kafka_leave", given)
    ended = subprocess.run(words, env={"PATH": "/none"}, stdout=subprocess.PIPE, check=True)
    expected = "own leave" if "{own}" in str(known) else "system leave"
    assert ended.stdout.decode().strip() == expected


@pytest.mark.parametrize(
    ("quorum", "said", "left"),
    [
        (None, "", ""),
        (BROKER, "registration: fenced and unregistered broker 4 of epoch 9", ""),
        (BROKER, "registration: broker 4 of epoch 9 is not registered any more", ""),
        (BROKER, None, "unregister --bootstrap-server one:9092 --id 4"),
        (BROKER, "of the quorum a majority is not there", "a majority is not there"),
    ],
)
def test_what_is_left_of_a_broker_that_has_left(quorum, said, left):
    host = {} if said is None else {"kafka_left": {"stdout": said}}
    given = {"hostvars": {"one": host}, **about(4, quorum)}
    found = evaluated("kafka", "__kafka_still_registered", given)
    assert left in found and bool(found) == bool(left)


@pytest.mark.parametrize(
    "quorum, expected", [(None, {}), ({"roles": ["broker"]}, {"roles": ["broker"]})]
)
def test_the_quorum_of_a_node_is_empty_with_zookeeper(quorum, expected):
    """Not None, of which no condition could take the length: what leaves a quorum is asked of each broker that goes."""
    given = {
        "kafkaops_preflight": {"quorums": {"kafka-4": quorum}},
        "inventory_hostname": "kafka-4",
    }
    assert evaluated("kafka", "__kafka_quorum", given) == expected


@pytest.mark.parametrize(
    ("registered", "holders", "expected"),
    [([1, 5], [1], [5]), ([1], [1, 5], [5]), ([1], [1], [])],
)
def test_only_who_is_known_still_is_emptied(registered, holders, expected):
    """Of two that leave, an earlier run may have stopped one; Kafka refuses to empty who is nowhere."""
    seen = {"brokers": [{"id": each} for each in registered], "replica_holders": holders}
    given = {"__kafka_before": seen, **about("5")}
    assert list(evaluated("kafka", "__kafka_emptied_there", given)) == expected
