# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the preflight says of a list of ZooKeeper servers that changes, or is not allowed to."""

from __future__ import annotations

import pytest

from tests.unit.plugins.module_utils.preflight import good_inventory as ground
from tests.unit.plugins.module_utils.preflight.test_wrong_inventories import said, spoilt, staged

SERVERS = ["zookeeper-1", "zookeeper-2", "zookeeper-3"]
MORE = {
    "zookeeper-4": {"ansible_host": "192.0.2.14"},
    "zookeeper-5": {"ansible_host": "192.0.2.15"},
}


def lines(*numbers):
    """A list of servers as zoo.cfg has it."""
    return {f"server.{number}": f"192.0.2.1{number}:2888:3888" for number in numbers}


def facts(**of):
    """Facts of servers that have data and this list in effect, and of brokers that an earlier run has staged."""
    brokers = {f"kafka-{number}": staged(number) for number in (1, 2, 3)}
    servers = {
        host.replace("_", "-"): {
            "zookeeper/data/has_data": True,
            "zookeeper/data/myid": host[-1],
            "zookeeper/current": {"clientPort": "2181", **current},
        }
        for host, current in of.items()
    }
    return {**brokers, **servers}


THREE = facts(**{f"zookeeper_{number}": lines(1, 2, 3) for number in (1, 2, 3)})
FIVE = facts(**{f"zookeeper_{number}": lines(1, 2, 3, 4, 5) for number in (1, 2, 3, 4, 5)})
HALF = facts(
    zookeeper_1=lines(1, 2, 3, 4),
    zookeeper_2=lines(1, 2, 3),
    zookeeper_3=lines(1, 2, 3),
    zookeeper_4=lines(1, 2, 3, 4),
)


@pytest.mark.parametrize(
    ("hosts", "of", "leaving", "expected"),
    [
        ({}, THREE, None, {}),
        ({}, THREE, (), {}),
        (MORE, THREE, None, {"ensemble.server_list": SERVERS}),
        (MORE, THREE, (), {}),
        (MORE, HALF, None, {"ensemble.server_list": [*SERVERS, "zookeeper-4"]}),
        (MORE, HALF, (), {}),
        ({}, FIVE, None, {"ensemble.server_list": SERVERS}),
        # Taken out of the inventory before it has left.
        ({}, FIVE, (), {"ensemble.server_list": SERVERS}),
        (MORE, FIVE, MORE, {}),
        (MORE, FIVE, ("zookeeper-5",), {"ensemble.size": [*SERVERS, "zookeeper-4"]}),
        (MORE, FIVE, SERVERS + list(MORE), {"ensemble.size": ["kafka-1", "kafka-2", "kafka-3"]}),
        (MORE, FIVE, (*MORE, "zk-9"), {"ensemble.unknown_leaver": [*SERVERS, *MORE]}),
        # Another address is no matter of joining or leaving.
        (
            {"zookeeper-3": {"ansible_host": "192.0.2.33"}},
            THREE,
            (),
            {"ensemble.server_list": SERVERS},
        ),
        # A server that stands alone, with two that join: they fetch its data.
        ({}, facts(zookeeper_1={}), (), {}),
        (
            {},
            facts(zookeeper_1={}),
            None,
            {"ensemble.empty_majority": SERVERS[1:], "ensemble.server_list": SERVERS[:1]},
        ),
        # Two of three that were members have lost their data.
        ({}, facts(zookeeper_1=lines(1, 2, 3)), (), {"ensemble.empty_majority": SERVERS[1:]}),
    ],
)
def test_a_list_that_changes(hosts, of, leaving, expected, tmp_path):
    leaving = None if leaving is None else set(leaving)
    verdict = ground.verdict_of(spoilt(hosts=hosts), tmp_path, facts=of, leaving=leaving)
    assert said(verdict) == expected, "\n".join(each.line() for each in verdict.findings)


@pytest.mark.parametrize(
    ("port", "alive", "refused"),
    [
        (2181, SERVERS, []),
        (2182, SERVERS, SERVERS),
        (2182, SERVERS[:1], SERVERS[:1]),
        (2182, [], []),
    ],
)
def test_the_client_port_of_what_runs_stays(port, alive, refused, tmp_path):
    """A broker would know no server that answers, before it restarts itself."""
    found = ground.verdict_of(
        spoilt(servers={"zookeeper_client_port": port}),
        tmp_path,
        facts={
            **THREE,
            **{host: {**THREE[host], "zookeeper/started/alive": host in alive} for host in SERVERS},
        },
    )
    refusals = {
        each.subjects: each.remedy for each in found.errors if each.check == "ensemble.client_port"
    }
    assert sorted(host for hosts in refusals for host in hosts) == refused, said(found)
    assert all("zookeeper_client_port: 2181" in remedy for remedy in refusals.values())


ALONE = facts(zookeeper_1={})
# A step from one server to three that was killed: the second one waits for the first, which is down.
GROWING = facts(zookeeper_1=lines(1, 2))


@pytest.mark.parametrize(
    ("hosts", "of", "expected"),
    [
        ({}, ALONE, []),
        ({}, GROWING, []),
        # members that have lost their data
        ({}, facts(zookeeper_1=lines(1, 2, 3)), SERVERS[1:]),
        (MORE, THREE, []),
    ],
)
def test_who_starts_what_ran_last_asks_no_data_of_servers_that_nobody_lists(
    hosts, of, expected, tmp_path
):
    verdict = ground.verdict_of(
        spoilt(hosts=hosts), tmp_path, facts=of, purpose="start", accept=("ensemble.server_list",)
    )
    refused = {each.check: list(each.subjects) for each in verdict.errors}
    assert refused == ({"ensemble.empty_majority": expected} if expected else {})


def test_who_starts_what_ran_last_leaves_the_client_port_as_it_is(tmp_path):
    of = {**THREE, **{host: {**THREE[host], "zookeeper/started/alive": True} for host in SERVERS}}
    wish = spoilt(servers={"zookeeper_client_port": 2182})
    found = ground.verdict_of(wish, tmp_path, facts=of, purpose="start")
    assert not found.errors, said(found)
    assert {each.check for each in found.findings} >= {"ensemble.client_port"}
    (told,) = found.result["ensembles_in_effect"].values()
    assert {each["client_port"] for each in told["servers"]} == {2181}


@pytest.mark.parametrize(
    ("hosts", "of", "ids", "lists"),
    [
        ({}, THREE, [1, 2, 3], [[1, 2, 3]]),
        (MORE, THREE, [1, 2, 3], [[1, 2, 3]]),
        ({}, ALONE, [1], [[1]]),
        ({}, GROWING, [1, 2], [[1, 2]]),
        (MORE, HALF, [1, 2, 3, 4], [[1, 2, 3, 4], [1, 2, 3]]),
        ({}, FIVE, [1, 2, 3, 4, 5], [[1, 2, 3, 4, 5]]),
        # nothing was ever started: what the inventory describes
        (MORE, facts(), [1, 2, 3, 4, 5], [[1, 2, 3, 4, 5]]),
    ],
)
def test_the_ensemble_in_effect_is_that_of_the_servers_own_lists(hosts, of, ids, lists, tmp_path):
    found = ground.verdict_of(spoilt(hosts=hosts), tmp_path, facts=of, purpose="start")
    (told,) = found.result["ensembles_in_effect"].values()
    assert [each["id"] for each in told["servers"]] == ids and told["lists"] == lists
    assert [each["address"] for each in told["servers"]] == [f"192.0.2.1{each}" for each in ids]
    named = {*SERVERS, *hosts}
    for each in told["servers"]:
        name = f"zookeeper-{each['id']}"
        assert each["host"] == (name if name in named else "") and each["client_port"] == 2181


def test_the_address_in_effect_is_the_one_that_the_servers_know(tmp_path):
    """Of a machine that has taken the place of another one, and of an IPv6 address."""
    of = facts(zookeeper_1={**lines(1, 2), "server.3": "[2001:db8::3]:2888:3888"})
    found = ground.verdict_of(spoilt(), tmp_path, facts=of, purpose="start")
    (told,) = found.result["ensembles_in_effect"].values()
    assert told["servers"][2]["address"] == "2001:db8::3"


def test_what_leaves_is_known_to_later_plays_and_not_to_brokers(tmp_path):
    verdict = ground.verdict_of(spoilt(hosts=MORE), tmp_path, facts=FIVE, leaving=set(MORE))
    (stays,) = verdict.result["servers"].values()
    (leaves,) = verdict.result["leaving"].values()
    assert [each["host"] for each in stays] == SERVERS and [each["id"] for each in leaves] == [4, 5]
    assert ground.verdict_of(spoilt(), tmp_path, facts=THREE).result["leaving"] == {}


def test_brokers_keep_a_server_that_they_know(tmp_path):
    connect = "192.0.2.14:2181,192.0.2.15:2181/kafka"
    knows = {"kafka-1": {**staged(1), "kafka/current": {"zookeeper.connect": connect}}}
    verdict = ground.verdict_of(
        spoilt(hosts=MORE), tmp_path, facts={**FIVE, **knows}, leaving=set(MORE)
    )
    assert said(verdict) == {"ensemble.unknown_to_brokers": ["kafka-1"]}


def test_a_host_that_leaves_need_not_answer(tmp_path):
    dead = {"zookeeper-5": {"facts": None, "unreachable": "no route to host"}}
    verdict = ground.verdict_of(
        spoilt(hosts=MORE), tmp_path, facts=FIVE, raw=dead, leaving=set(MORE)
    )
    assert [(each.check, each.level) for each in verdict.findings] == [
        ("host.unreachable", "warning")
    ]
    verdict = ground.verdict_of(spoilt(hosts=MORE), tmp_path, facts=FIVE, raw=dead, leaving=())
    assert [each.check for each in verdict.errors] == ["host.unreachable"]


@pytest.mark.parametrize(
    ("hosts", "of", "words"),
    [
        (MORE, THREE, "ansible-playbook playbooks/scale_zookeeper.yml, which adds"),
        ({}, FIVE, "put the host of server.4, server.5 back"),
        ({"zookeeper-3": {"ansible_host": "192.0.2.33"}}, THREE, "give server.3 the address again"),
    ],
)
def test_the_remedy_is_a_command(hosts, of, words, tmp_path):
    verdict = ground.verdict_of(spoilt(hosts=hosts), tmp_path, facts=of)
    assert {words in each.remedy for each in verdict.findings} == {True}, verdict.findings


# Server 3 is at another address now.
ELSEWHERE = {"zookeeper-3": {"ansible_host": "192.0.2.33"}}
NEW_LIST = {**lines(1, 2), "server.3": "192.0.2.33:2888:3888"}
RUNS = {"zookeeper/started/alive": True}
EMPTY = {"zookeeper/data/has_data": False, "zookeeper/current": None}


def moved(first=None, second=None, third=None):
    """Facts of three servers that run with the old list, but for what is given; the third is new and empty."""
    old = facts(zookeeper_1=lines(1, 2, 3), zookeeper_2=lines(1, 2, 3), zookeeper_3=NEW_LIST)
    own = {1: {**RUNS, **(first or {})}, 2: {**RUNS, **(second or {})}, 3: third or EMPTY}
    for number, more in own.items():
        old[f"zookeeper-{number}"] = {**old[f"zookeeper-{number}"], **more}
    return old


WITH_NEW_LIST = {"zookeeper/current": {"clientPort": "2181", **NEW_LIST}}


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (moved(), {"ensemble.moved": ["zookeeper-3"]}),
        # of a run that was killed
        (moved(third=RUNS), {"ensemble.moved": ["zookeeper-3"]}),
        (moved(first=WITH_NEW_LIST, third=RUNS), {"ensemble.moved": ["zookeeper-3"]}),
        (moved(WITH_NEW_LIST, WITH_NEW_LIST, RUNS), {}),
        # the others are no quorum without it
        (moved(second={"zookeeper/started/alive": False}), None),
        # it is the same machine, with what it had
        (moved(third={"zookeeper/current": {"clientPort": "2181", **lines(1, 2, 3)}}), None),
        # something runs there already that has no data
        (moved(third={**EMPTY, **RUNS}), None),
        # the others do not agree
        (moved(first={"zookeeper/current": {"clientPort": "2181", **lines(1, 2, 4)}}), None),
    ],
)
def test_a_new_machine_takes_the_place_of_a_server_by_consent(of, expected, tmp_path):
    verdict = ground.verdict_of(spoilt(hosts=ELSEWHERE), tmp_path, facts=of)
    lines_said = "\n".join(each.line() for each in verdict.findings)
    if expected is None:
        assert set(said(verdict)) == {"ensemble.server_list"}, lines_said
        return
    assert said(verdict) == expected, lines_said
    assert bool(verdict.errors) == bool(expected)
    if expected:
        assert "server 3 at 192.0.2.13:2888:3888" in lines_said
        agreed = {"accept": ["ensemble.moved"]}
        assert not ground.verdict_of(spoilt(hosts=ELSEWHERE), tmp_path, facts=of, **agreed).errors


def test_who_replaces_a_broker_leaves_the_servers_alone(tmp_path):
    verdict = ground.verdict_of(spoilt(hosts=ELSEWHERE), tmp_path, facts=moved(), replaced=3)
    assert [(each.check, each.level) for each in verdict.findings] == [
        ("ensemble.moved", "warning")
    ]


def test_two_servers_do_not_move_at_once(tmp_path):
    both = {**ELSEWHERE, "zookeeper-2": {"ansible_host": "192.0.2.32"}}
    verdict = ground.verdict_of(spoilt(hosts=both), tmp_path, facts=moved())
    assert set(said(verdict)) == {"ensemble.server_list"}


FORMER = {"data_dir": "/var/lib/zookeeper", "data_log_dir": "/var/lib/zookeeper", "myid": "1"}


@pytest.mark.parametrize(
    "settings, former, told",
    [
        (
            {"zookeeper_data_dir": "/srv/zk"},
            FORMER,
            [
                "set zookeeper_data_dir: /var/lib/zookeeper; or, one server after another, stop it, move or copy its"
                " myid and version-2 from"
            ],
        ),
        (
            {"zookeeper_data_log_dir": "/srv/log"},
            {**FORMER, "data_dir": ""},
            [
                "set zookeeper_data_log_dir: /var/lib/zookeeper; or, one server after another, stop it, move the"
                " files version-2/log.* from"
            ],
        ),
        (
            {"zookeeper_data_dir": "/srv/zk", "zookeeper_data_log_dir": "/srv/log"},
            FORMER,
            ["set zookeeper_data_dir", "set zookeeper_data_log_dir"],
        ),
    ],
)
def test_who_has_changed_a_directory_of_zookeeper_is_told_what_to_move(
    tmp_path, settings, former, told
):
    wrong = spoilt(hosts={"zookeeper-1": settings})
    elsewhere = {"zookeeper-1": {"zookeeper/former_data": former}}
    findings = ground.verdict_of(wrong, tmp_path, elsewhere, accept=["ensemble.data_moved"]).errors
    moved = [each for each in findings if each.check == "ensemble.data_moved"]
    assert len(moved) == len(told)
    assert all(each.remedy.startswith(text) for each, text in zip(moved, told))


def test_the_data_of_another_directory_has_the_id_and_is_started_as_it_was(tmp_path):
    wrong = spoilt(servers={"zookeeper_data_dir": "/srv/zk"})
    former = {"data_dir": "/var/lib/zookeeper", "data_log_dir": ""}
    elsewhere = {
        f"zookeeper-{host}": {"zookeeper/former_data": dict(former, myid=myid)}
        for host, myid in ((1, "3"), (2, "1"), (3, "2"))
    }
    verdict = ground.verdict_of(wrong, tmp_path, elsewhere, purpose="start")
    assert not verdict.errors
    assert [verdict.result["ids"][f"zookeeper-{host}"]["myid"] for host in (1, 2, 3)] == [3, 1, 2]
    assert verdict.result["ensembles"]["orders-prod"]["state"] == "existing"


def test_nobody_empties_the_disks_of_kafka_because_those_of_zookeeper_are_missing(tmp_path):
    disk = {"kafka-1": {"kafka/log_dirs/0/meta": {"broker.id": "1", "cluster.id": "AAAA"}}}
    (finding,) = ground.verdict_of(spoilt(), tmp_path, disk).errors
    assert finding.check == "identity.foreign_cluster"
    assert "no ZooKeeper server has data" in finding.reason
    assert finding.remedy.startswith("mount or restore the data of the ZooKeeper servers")
