# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tasks refuse that need a broken host, or a moment, to be met in a run: when, and in which words.

The conditions and texts are those of the roles, evaluated by Ansible; each lets pass what is in order.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.ensemble import (
    ensemble_plan,
)
from tests.support.role_variables import FACTS, evaluated, refusal

ROOT = Path(__file__).resolve().parents[3]
PREFLIGHT = FACTS["kafkaops_preflight"]
SERVERS = [
    {"host": f"zk-{number}", "id": number, "address": f"zk-{number}"} for number in range(1, 6)
]


def serving(number, listed, role="follower"):
    """What zookeeper_info tells of a server."""
    seen = {"id": number, "runs": True, "error": None, "role": role, "listed": list(listed)}
    return {**seen, "synced_followers": len(listed) - 1 if role == "leader" else None}


def resize(task, states, target, reached, rounds=1):
    """What a task of the change of an ensemble refuses: servers as they are, ids that are wanted, hosts of the play."""
    leaving = [each for each in SERVERS[: len(states)] if each["id"] not in target]
    staying = [each for each in SERVERS if each["id"] in target]
    facts = {**PREFLIGHT, "servers": {"kafka": staying}, "leaving": {"kafka": leaving}}
    given = {
        "inventory_hostname": "zk-1",
        "kafka_cluster_name": "kafka",
        "kafkaops_preflight": facts,
        "ansible_play_hosts": reached,
        "zookeeper_round": rounds,
        "zookeeper_plan": ensemble_plan(states, target),
    }
    return refusal("zookeeper", "resize.yml", task, given)


THREE = [serving(1, (1, 2, 3), "leader"), serving(2, (1, 2, 3)), serving(3, (1, 2, 3))]
JOINING = {
    "id": 4,
    "runs": False,
    "error": "refused",
    "role": "",
    "listed": None,
    "synced_followers": None,
}
HOSTS = [each["host"] for each in SERVERS]


def test_an_ensemble_that_would_be_too_small_is_refused_before_a_turn():
    task = "Refuse what has no safe way"
    said = resize(task, THREE, [1, 2], HOSTS)
    assert said.startswith("[ensemble.refused] zk-1, zk-2: "), said
    assert "does not get smaller than 3" in said and "Nothing more was changed." in said
    assert said.endswith("Remedy: let three servers stay")
    assert resize(task, THREE, [1, 2, 3], HOSTS) == ""


def test_the_turn_of_a_host_that_is_not_there_is_refused():
    task = "Refuse a turn of a host that is not there"
    states = [*THREE, JOINING]
    turn = ensemble_plan(states, [1, 2, 3, 4])["turns"][0]
    host = f"zk-{turn['id']}"
    assert resize(task, states, [1, 2, 3, 4], HOSTS) == ""
    said = resize(task, states, [1, 2, 3, 4], [each for each in HOSTS if each != host])
    assert said.startswith(f"[ensemble.absent] {host}: it is its turn ({turn['told']})"), said
    assert "bring the host back" in said and f"server {turn['id']}" in said


def test_a_change_that_never_ends_is_given_up():
    task = "Fail if the servers need more turns than planned"
    states = [*THREE, JOINING]
    assert resize(task, states, [1, 2, 3, 4], HOSTS, rounds=60) == ""
    said = resize(task, states, [1, 2, 3, 4], HOSTS, rounds=61)
    assert said.startswith("[ensemble.unfinished] zk-1, zk-2, zk-3, zk-4: after 61 turns "), said
    assert "server 4" in said and "it goes on where it stopped" in said


@pytest.mark.parametrize(
    "role, version, product", [("kafka", "3.9.2", "broker"), ("zookeeper", "3.9.5", "server")]
)
@pytest.mark.parametrize(
    "state, said",
    [
        ({}, ""),
        ({"running": False}, "is down"),
        ({"version": "3.8.1"}, "runs 3.8.1"),
        ({"restart_pending": True}, "runs {version}; pending: another heap; another unit"),
    ],
)
def test_a_version_that_does_not_run_yet_is_named(role, version, product, state, said):
    reached = {
        "running": True,
        "version": version,
        "restart_pending": False,
        "restart_reasons": ["another heap", "another unit"],
    }
    given = {f"{role}_staged": {**reached, **state}, f"{role}_version": version}
    told = refusal(role, "version.yml", "Compare the version that runs with the inventory's", given)
    if not said:
        assert told == ""
        return
    begin = f"[version.not_reached] one: {role}_version={version}: the {product} "
    assert told.startswith(begin + said.format(version=version) + ". Remedy: "), told


@pytest.mark.parametrize(
    ("named", "phases", "running", "refused"),
    [
        ((1, 2), {}, [], True),
        ((1, 2, 3), {}, [], False),
        # in the midst of a migration brokers name one that is gone; a killed run may have started it
        ((1, 2, 3), {"three": "migration"}, [], True),
        ((1, 2, 3), {"three": "migration"}, ["three"], False),
    ],
)
def test_the_last_copy_of_a_record_is_kept(command_line, named, phases, running, refused):
    given = {
        "inventory_hostname": "three",
        "kafka_cluster_name": "kafka",
        "kafkaops_broker": "three",
        "kafkaops_preflight": {
            **PREFLIGHT,
            "quorums": {"three": None},
            "ids": {"three": {"broker_id": 3}},
            "running": {"kafka": running},
            "migration": {"kafka": {"keeps": phases}} if phases else {},
        },
        "__kafka_before": {
            "brokers": [{"id": each} for each in named],
            "last_copies": [{"topic": "alone", "partition": 0}],
        },
    }
    command_line(broker=3)
    told = refusal("kafka", "last_copies.yml", "Refuse to lose the last copy of a record", given)
    assert told.startswith("[broker.last_copy] three: broker=3: 1 partitions") == refused, told


def voting(ids, behind=(), leader=1):
    """What kafka_quorum_info tells."""
    voters = [{"id": each, "keeps_up": each not in behind} for each in ids]
    return {"quorum": {"leader": leader, "voters": voters}}


@pytest.mark.parametrize(
    "seen, running, said",
    [
        (voting((1, 2, 3), behind=(3,)), [], ""),
        (voting((1, 2, 3), behind=(2, 3)), [], "of the other voters these do not keep up: 2"),
        (voting((1, 2, 3), leader=None), [], "the quorum does not tell who keeps up"),
        ({}, [], "the quorum does not tell who keeps up"),
        # it has its disk, and votes already
        (voting((1, 2, 3), behind=(2,)), ["three"], ""),
    ],
)
def test_an_empty_voter_waits_for_the_others(command_line, seen, running, said):
    """Of a static quorum: it votes at once, for whatever it is asked."""
    quorum = {"static": True, "roles": ["controller"]}
    given = {
        "inventory_hostname": "three",
        "kafkaops_broker": "three",
        "kafkaops_preflight": {
            **PREFLIGHT,
            "quorums": {"three": quorum},
            "ids": {"three": {"broker_id": 3}},
            "running": {"kafka": running},
        },
        "__kafka_voting": seen,
    }
    command_line(broker=3)
    task = "Refuse to start an empty voter of a static quorum while another one is behind"
    told = refusal("kafka", "last_copies.yml", task, given)
    if not said:
        assert told == ""
        return
    assert told.startswith("[quorum.others_behind] three: broker=3: "), told
    assert said in told and "playbooks/start.yml" in told
    given["kafkaops_preflight"]["quorums"]["three"] = {**quorum, "static": False}
    assert refusal("kafka", "last_copies.yml", task, given) == ""


@pytest.mark.parametrize(
    "running, code, said",
    [
        (
            ["c-1", "c-2"],
            "INVALID_UPDATE_VERSION",
            "[quorum.voters_down] c-3: it votes, and is down.",
        ),
        (["c-1", "c-2", "c-3"], "INVALID_UPDATE_VERSION", ""),
        (["c-1", "c-2"], "CLUSTER_AUTHORIZATION_FAILED", ""),
    ],
)
def test_voters_that_are_down_are_named_where_kafka_blames_the_feature(running, code, said):
    given = {
        "kafka_cluster_name": "kafka",
        "kafkaops_preflight": {
            **PREFLIGHT,
            "running": {"kafka": running},
            "voters": {
                "kafka": {"stay": [{"host": f"c-{each}", "id": each} for each in (1, 2, 3)]}
            },
        },
        "ansible_play_hosts": ["c-1", "c-2"],
        "ansible_check_mode": False,
        "kafka_dynamic_plan": {"failed_items": [{"code": code}]},
    }
    told = refusal("kafka", "dynamic.yml", "Say which voters are down", given)
    assert told.startswith(said) and bool(told) is bool(said), told
    assert not said or "playbooks/start.yml" in told


def awaited(task, nodes, seen, **more):
    """What the wait of a migration refuses: its controllers, and what was read of each."""
    given = {
        "kafka_cluster_name": "kafka",
        "kafka_wait_timeout_seconds": 300,
        "kafkaops_preflight": {
            **PREFLIGHT,
            "migration": {"kafka": {"nodes": nodes, "servers": ["zk-1:2181"]}},
        },
        "__kafka_await": ["MIGRATION"],
        "__kafka_controllers_seen": {"results": seen},
        "__kafka_znodes": {"znodes": None},
        **more,
    }
    return refusal("kafka", "migration_await.yml", task, given)


def test_a_controller_that_does_not_get_there_is_named():
    nodes = [{"host": f"c-{each}", "is_broker": False} for each in (1, 2, 3)]
    seen = [
        {"item": {"host": "c-1"}, "state": "MIGRATION", "last": 9, "listening": ["*:9093"]},
        {"item": {"host": "c-2"}, "state": "PRE_MIGRATION", "last": 7, "listening": ["*:9093"]},
        {"item": {"host": "c-3"}, "state": "", "last": -1, "listening": []},
    ]
    told = awaited("Say what is missing", nodes, seen)
    begin = (
        "[migration.not_reached] kafka: waited 300 s for MIGRATION: c-2 is in state PRE_MIGRATION; "
    )
    assert told.startswith(begin + "c-3 is in state (none) and does not answer. Remedy: "), told
    assert "c-1" not in told and "run the playbook again" in told
    told = awaited("Say what is missing", nodes[:1], seen, __kafka_await_seconds=20)
    assert "waited 20 s for MIGRATION: it came just now" in told


@pytest.mark.parametrize(
    "staged, said",
    [
        ({"running": True, "restart_pending": False}, ""),
        ({"running": False, "restart_pending": True, "restart_reasons": []}, "it does not run"),
        (
            {"running": True, "restart_pending": True, "restart_reasons": ["server.properties"]},
            "it runs as before: server.properties",
        ),
    ],
)
def test_a_node_that_a_step_has_left_behind_is_named(staged, said):
    book = ROOT / "playbooks" / "phases" / "migration_roll.yml"
    told = refusal("kafka", "", "Refuse to go on without it", {"kafka_staged": staged}, book=book)
    assert told == (
        f"[migration.not_reached] one: {said}. Remedy: see its log, and run the same command again"
        if said
        else ""
    )


@pytest.mark.parametrize(
    ("running", "returning", "heirs"),
    [
        ([True, False], [], ["b-1"]),
        ([False, False], ["b-2"], ["b-2"]),
        # all are down, and the next step starts them: nobody is waited for
        ([False, False], [], []),
    ],
)
def test_a_broker_becomes_the_controller_where_one_runs(running, returning, heirs):
    nodes = [
        {"host": f"b-{number}", "is_broker": True, "running": each}
        for number, each in enumerate(running, 1)
    ]
    nodes.append({"host": "c-1", "is_broker": False, "running": True})
    given = {
        "kafka_cluster_name": "kafka",
        "kafka_wait_timeout_seconds": 300,
        "kafkaops_preflight": {**PREFLIGHT, "migration": {"kafka": {"nodes": nodes}}},
        "kafka_migration": {"steps": {"return": returning, "release": []} if returning else {}},
    }
    assert evaluated("kafka", "__kafka_heirs", given) == heirs
    seen = ({}, "it does not answer"), ({"znodes": {"controller": None}}, "it has none")
    for znodes, said in (*seen, ({"znodes": {"controller": 3001}}, "it has node 3001")):
        more = {**given, "__kafka_znodes": znodes}
        told = refusal("kafka", "migration_release.yml", "Say that there is none", more)
        assert told.startswith("[migration.not_reached] kafka: waited 300 s for a broker"), told
        assert f"{said}. Remedy: " in told and "run the playbook again" in told


@pytest.mark.parametrize("duration", ["10", "ten minutes", "0s", "1.5h", "-5m", "10m "])
def test_a_duration_without_a_clear_meaning_is_refused(duration):
    told = refusal(
        "flow_validation",
        "prepare.yml",
        "Check the duration",
        {"flow_validation_duration": duration},
    )
    assert told.startswith(f"[validation.duration] flow_validation_duration={duration}: "), told
    assert told.endswith("Remedy: write 90s, 10m, 2h or 1d")


@pytest.mark.parametrize("duration", ["", "90s", "10m", "2h", "1d"])
def test_a_clear_duration_passes(duration):
    given = {"flow_validation_duration": duration}
    assert refusal("flow_validation", "prepare.yml", "Check the duration", given) == ""


def test_leftovers_that_cannot_be_listed_are_an_error_with_the_jobs_own_words():
    task = "Say why they could not be listed or removed"
    given = {"__flow_validation_left": {"rc": 3, "stderr_lines": ["could not run:", "no answer"]}}
    told = refusal("flow_validation", "leftovers.yml", task, given)
    assert told.startswith("[validation.leftovers] one: could not run: no answer. Remedy: "), told
    given["__flow_validation_left"] = {"rc": 0, "stderr_lines": []}
    assert refusal("flow_validation", "leftovers.yml", task, given) == ""


@pytest.mark.parametrize(
    "host, servers, said",
    [
        ("kafka-2", [], ""),
        ("", ["zk-1", "zk-2"], ""),
        ("", [], ""),
        ("kafka-3", [], "it hits kafka-3, and this run does not reach it, so nothing was done."),
        (
            "",
            ["zk-1", "zk-4", "zk-3"],
            "it hits zk-4, zk-3, and this run does not reach them, so nothing was done.",
        ),
    ],
)
def test_a_drill_beyond_the_limit_is_refused(host, servers, said):
    given = {
        "kafka_cluster_name": "kafka",
        "kafkaops_drill": "one",
        "kafka_drill_plan": {"host": host, "server_hosts": servers},
        "ansible_play_hosts": ["kafka-1", "kafka-2", "zk-1", "zk-2"],
    }
    told = refusal("kafka", "drill_plan.yml", "Refuse whom this run does not reach", given)
    begin = "[drill.not_reached] kafka: drill=one: "
    assert told == (f"{begin}{said} Remedy: run it without --limit" if said else "")


@pytest.mark.parametrize(
    "given, remedy",
    [
        (
            {"prove": True},
            "run playbooks/validate.yml, which says more, or leave out -e prove=true",
        ),
        # a drill and its proof cannot be had apart
        ({"kafkaops_drill": "leader_killed"}, "run playbooks/validate.yml, which says more"),
    ],
)
def test_what_nobody_has_asked_for_need_not_be_left_out(command_line, given, remedy):
    command_line(**{name: given[name] for name in given if name == "prove"})
    job = {"finished": True, "stderr_lines": ["no module named pyspark"]}
    given = {**given, "__flow_validation_job": job, "__flow_validation_said": ""}
    said = refusal("flow_validation", "begin.yml", "Say why nothing can be proven", given)
    assert "no module named pyspark" in said and said.endswith(f"Remedy: {remedy}")


STAYS = "note: records were written; topic t stays with them; `job.py verify --ledger l ...` judges what is known"


@pytest.mark.parametrize("rc", [1, 2, 3])
def test_what_a_run_leaves_is_told_with_why_it_ended(rc):
    job = {
        "rc": rc,
        "finished": True,
        "stderr": "",
        "stderr_lines": ["WARNING of Java", "could not run: it was stopped", STAYS],
    }
    given = {
        "__flow_validation_job": job,
        "__flow_validation_verdict": {},
        "__flow_validation_dir": {"path": "/r"},
        "flow_validation_bootstrap_servers": "h:1",
    }
    task = "Say why the job could not run"
    if rc < 3:
        task = "Say what was proven"
        found = json.dumps({"verdict": "fail", "summary": "it is wrong", "checks": []})
        content = base64.b64encode(found.encode()).decode()
        given["__flow_validation_verdict"] = {"content": content}
    said = refusal("flow_validation", "conclude.yml", task, given)
    assert STAYS in said and "WARNING of Java" not in said
    assert rc < 3 or f"it was stopped. {STAYS}. Remedy: " in said
