# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Order of turns, four-letter words, the status table, the search for Java."""

import os
import socket
import threading

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.four_letter_words import (
    outage,
    parse_mntr,
    parse_srvr,
    says_it_does_not_serve,
    server_state,
    unmet,
    verdict,
    why_another_server,
    why_not_serving,
    without_quorum,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.status import (
    idle_brokers,
    left_undone,
    status,
    what_started,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.ensemble_gate import (
    wrong_parameters,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.order import (
    roll_order,
    turn_events,
    unmended,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.java import find, major

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


def member(host, number, healthy=True, last=False, **more):
    return {"host": host, "id": number, "healthy": healthy, "last": last, **more}


@pytest.mark.parametrize(
    "members, expected",
    [
        ([member("b", 2), member("a", 1)], ["a", "b"]),
        ([member("a", 1, last=True), member("b", 2), member("c", 3)], ["b", "c", "a"]),
        ([member("a", 1), member("b", 2, healthy=False)], ["b", "a"]),
        ([member("a", 1), member("b", 2, healthy=False, last=True)], ["b", "a"]),
        ([member("a", 10), member("b", 9)], ["b", "a"]),
        (
            [
                member("a", 1, votes=True),
                member("b", 2, votes=True, last=True),
                member("c", 3, votes=True),
                member("d", 4, votes=False),
                member("e", 5, votes=True, healthy=False),
            ],
            ["e", "d", "a", "c", "b"],
        ),
        ([], []),
    ],
)
def test_what_is_unhealthy_goes_first_and_the_leader_last(members, expected):
    assert roll_order(members) == expected


def test_nothing_is_expected_of_the_sick_until_their_own_turn():
    turns = [
        {"host": "a", "id": 1, "healthy": True, "pending": True},
        {"host": "b", "id": 2, "healthy": False, "pending": False},
        {"host": "c", "id": 3, "healthy": False, "pending": True},
    ]
    assert unmended(turns) == [3]
    assert unmended(turns, only="c") == [2, 3], "a run about one host leaves the others as they are"
    assert unmended([{**each, "pending": False} for each in turns]) == []


def test_srvr_and_mntr_are_read():
    state = parse_srvr(SRVR)
    assert state["role"] == "leader" and state["version"] == "3.9.5"
    assert state["zxid"] == "0x100000002" and state["nodes"] == 25
    assert parse_srvr("This ZooKeeper instance is not currently serving requests\n")["role"] is None
    assert parse_mntr("zk_synced_followers\t2.0\nnoise\n") == {"zk_synced_followers": "2.0"}


@pytest.mark.parametrize(
    "answer, told",
    [
        (SRVR, None),
        ("This ZooKeeper instance is not currently serving requests\n", "has no quorum"),
        ("srvr is not executed because it is not in the whitelist.\n", "4lw.commands.whitelist"),
        ("", "not the port of a ZooKeeper server"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "SSH-2.0-OpenSSH_9.2"),
    ],
)
def test_why_a_server_does_not_serve(answer, told):
    reason = why_not_serving(answer)
    assert reason is None if told is None else told in reason


def test_a_port_that_closes_at_once_is_no_server_without_quorum():
    """A broker's port, for one: it reads the word as a length and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def hang_up():
            connection, _address = listening.accept()
            connection.recv(4)
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        state = server_state(
            {"id": 1, "address": "127.0.0.1", "port": listening.getsockname()[1]}, timeout=5
        )
        thread.join()
    assert not state["serving"] and "not the port of a ZooKeeper server" in state["error"]


@pytest.mark.parametrize(
    "wanted, role, conf, told",
    [
        (1, "follower", "clientPort=2181\nserverId=1\n", None),
        (1, "leader", "clientPort=2181\nserverId=3\n", "it is server 3, not 1"),
        (1, "standalone", "serverId=0\n", None),
        (None, "leader", "serverId=3\n", None),
        (1, "leader", "conf is not executed because it is not in the whitelist.\n", None),
    ],
)
def test_another_server_behind_the_address_is_noticed(wanted, role, conf, told):
    assert why_another_server(wanted, role, conf) == told


def server(number, role, synced=None, error=None):
    return {
        "id": number,
        "address": "z",
        "port": 2181,
        "role": role,
        "serving": role is not None,
        "synced_followers": synced,
        "error": error or (None if role else "refused"),
    }


IDLE = "it runs, but has no quorum"
LOST = "ZooKeeper has no quorum: "
SILENT = "no ZooKeeper server serves here: "


@pytest.mark.parametrize(
    "roles, errors, words, certain",
    [
        (("leader", "follower", None), {}, "", False),
        # Who does not answer us may answer the brokers.
        ((None, None, "follower"), {1: IDLE}, "", False),
        (("standalone",), {}, "", False),
        (("observer", None), {}, "", False),
        (
            (None, None, None),
            {1: IDLE},
            f"{LOST}1 of 3 answer, 0 serve, 2 are needed: server 1 at z:2181: {IDLE}; server 2 at z:2181: refused;"
            " server 3 at z:2181: refused",
            True,
        ),
        ((None,) * 5, {1: IDLE, 4: IDLE}, f"{LOST}2 of 5 answer, 0 serve, 3 are needed: ", True),
        # Cut off from the others, with readonlymode.enabled.
        (("read", None, None), {}, f"{SILENT}1 of 3 answer, 0 serve, 2 are needed: ", False),
        ((None, None, None), {}, f"{SILENT}0 of 3 answer, 0 serve, 2 are needed: ", False),
        ((), {}, "", False),
    ],
)
def test_an_ensemble_of_which_nobody_serves_is_named(roles, errors, words, certain):
    states = [
        {
            **server(each, role, error=errors.get(each)),
            "runs": role is not None or each in errors,
        }
        for each, role in enumerate(roles, 1)
    ]
    told, sure = without_quorum(states)
    assert (told.startswith(words) and bool(told) is bool(words), sure) == (True, certain), told


LEADER, FOLLOWER, DEAD = server(1, "leader", 1), server(2, "follower"), server(3, None)
FIVE = [server(1, "leader", 3), FOLLOWER, server(3, "follower"), server(4, "follower")]


@pytest.mark.parametrize(
    "states, asked, told",
    [
        ([server(1, "standalone")], {}, ""),
        ([server(1, "follower")], {}, "knows other servers, which are not in the list"),
        ([server(1, "leader", 2), FOLLOWER, server(3, "follower")], {}, ""),
        ([LEADER, FOLLOWER, server(3, "follower")], {}, "the leader has 1 synced followers of 2"),
        ([server(1, "follower"), FOLLOWER, server(3, "follower")], {}, "no server leads"),
        ([LEADER, server(2, "leader", 1), server(3, "follower")], {}, "2 servers lead"),
        ([LEADER, FOLLOWER, server(3, "standalone")], {}, "a standalone and knows no other server"),
        ([LEADER, FOLLOWER, DEAD], {}, "server 3 at z:2181: refused"),
        # one member of three is dead, and not of this run
        ([LEADER, FOLLOWER, DEAD], {"required": [1, 2]}, ""),
        ([LEADER, FOLLOWER, DEAD], {"required": []}, ""),
        ([LEADER, FOLLOWER, DEAD], {"required": [3]}, "server 3 at z:2181: refused"),
        ([LEADER, server(2, None), DEAD], {"required": [1]}, "1 of 3 serve, 2 are needed"),
        ([server(1, "leader", 0), FOLLOWER, DEAD], {"required": [1]}, "0 synced followers of 1"),
        ([LEADER, server(2, "follower", error="it is server 3, not 2"), DEAD], {"required": [1]},
         "1 of 3 serve, 2 are needed"),
        # one is about to stop
        ([server(1, "leader", 2), FOLLOWER, server(3, "follower")], {"stopping": 1}, ""),
        ([server(1, "leader", 1), FOLLOWER, DEAD], {"stopping": 3}, ""),
        ([server(1, "leader", 1), FOLLOWER, DEAD], {"stopping": 2},
         "1 of 3 serve without server 2, 2 are needed"),
        ([*FIVE, server(5, None)], {"stopping": 4}, ""),
        ([server(1, "standalone")], {"stopping": 1}, ""),
        ([LEADER, FOLLOWER], {"stopping": 1}, ""),
        ([LEADER, server(2, None)], {"stopping": 1}, "0 of 2 serve without server 1"),
        # the one that stops is the one to be mended: whatever is wrong with it is not waited for
        ([LEADER, FOLLOWER, server(3, "standalone")], {"stopping": 3}, ""),
        ([LEADER, FOLLOWER, server(3, "standalone")], {"stopping": 2}, "is a standalone"),
        ([LEADER, FOLLOWER, server(3, "leader", 0)], {"stopping": 3}, "synced followers of 2"),
        ([server(1, "leader", 2), FOLLOWER, server(3, "leader", 0)], {"stopping": 3}, ""),
        ([server(1, "leader", 2), FOLLOWER, server(3, "leader", 0)], {"stopping": 2}, "2 servers lead"),
        ([LEADER, FOLLOWER, server(3, "follower", error="it is server 2, not 3")], {"stopping": 3}, ""),
        ([LEADER, FOLLOWER, server(3, "observer")], {"stopping": 3}, ""),
        # a follower that is not synced is not known by name: it may be one of the others
        ([LEADER, FOLLOWER, server(3, "follower")], {"stopping": 3}, "1 synced followers of 2"),
    ],
)  # fmt: skip
def test_what_an_ensemble_lacks(states, asked, told):
    reasons = "; ".join(unmet(states, **asked))
    assert told in reasons and bool(told) == bool(reasons), reasons


LOOKING = [
    {**server(number, None), "error": why_not_serving("... not currently serving requests\n")}
    for number in (1, 2, 3, 4, 5)
]


@pytest.mark.parametrize(
    "states, asked, told",
    [
        # of five, the fourth is back, and the fifth gets its own turn
        ([*FIVE, server(5, None)], {"required": [1, 2, 3, 4], "unmended": [5]}, ""),
        ([*FIVE, server(5, "standalone")], {"required": [1, 2, 3, 4], "unmended": [5]}, ""),
        ([*FIVE, server(5, "standalone")], {"stopping": 4, "unmended": [5]}, ""),
        ([*FIVE, server(5, None)], {"required": [1, 2, 3, 4, 5]}, "server 5 at z:2181: refused"),
        # of three, the second is back and serves with the first
        ([LEADER, FOLLOWER, DEAD], {"required": [1, 2], "unmended": [3]}, ""),
        # no quorum before one more has had its turn: that it answers is all that can be expected
        ([*LOOKING[:2], DEAD], {"required": [1], "unmended": [2, 3]}, ""),
        ([server(1, None), LOOKING[1], DEAD], {"required": [1], "unmended": [2, 3]}, "server 1"),
        ([*LOOKING[:2], DEAD], {"required": [1, 2], "unmended": [3]}, "it runs, but has no quorum"),
    ],
)
def test_nothing_is_expected_of_servers_that_are_still_to_be_mended(states, asked, told):
    reasons = "; ".join(unmet(states, **asked))
    assert told in reasons and bool(told) == bool(reasons), reasons


@pytest.mark.parametrize(
    "listed, asked, told",
    [
        # an ensemble that grew was left half way: the others do not let it in
        ([1, 2, 3, 4], {"required": [5]}, ""),
        ([1, 2, 3, 4], {}, ""),
        ([1, 2, 3, 4, 5], {"required": [5]}, "server 5 at z:2181: it runs, but has no quorum"),
        (None, {"required": [5]}, "server 5 at z:2181: it runs, but has no quorum"),
        # whoever makes it grow says which lists there are, and waits for it
        ([1, 2, 3, 4], {"required": [5], "lists": [[1, 2, 3, 4, 5]]}, "server 5 at z:2181"),
    ],
)
def test_nothing_is_expected_of_a_server_that_is_in_nobodys_list(listed, asked, told):
    leader = {**server(1, "leader", 3), "listed": listed}
    reasons = "; ".join(unmet([leader, *FIVE[1:], LOOKING[4]], **asked))
    assert told in reasons and bool(told) == bool(reasons), reasons


def test_whose_stop_takes_nothing_away_says_so_itself():
    """One that cannot be reached may serve all the same."""
    assert says_it_does_not_serve(LOOKING, 2)
    assert not says_it_does_not_serve([LEADER, FOLLOWER, DEAD], 2)
    assert not says_it_does_not_serve([LEADER, FOLLOWER, DEAD], 3)


@pytest.mark.parametrize(
    "lists, told",
    [
        ([[1]], "it is the only one"),
        ([[1, 2]], "two have no quorum without it"),
        ([[1, 2, 3]], ""),
        ([[1, 2, 3, 4]], ""),
        ([[2, 3], [1, 2, 3]], ""),
    ],
)
def test_an_outage_that_cannot_be_helped_is_told_before_the_stop(lists, told):
    assert told in outage(lists, 1) and bool(told) == bool(outage(lists, 1))


def test_what_the_gate_of_a_server_says_in_a_plan():
    assert verdict([], 1) == "server 1 may stop now"
    assert verdict([], 1, outage([[1]], 1)).endswith("restarts: it is the only one")
    assert verdict(["a", "b"], 1) == "server 1 may not stop yet: a; b"


@pytest.mark.parametrize(
    "changes, told",
    [
        ({}, None),
        ({"required": [1], "stopping": 1}, None),
        ({"timeout": -4}, "[options.range] timeout=-4: must not be negative."),
        ({"required": [1, 7]}, "[options.servers] required=7: no entry of servers has this id."),
        ({"stopping": 7}, "[options.servers] stopping=7: no entry of servers has this id."),
        ({"lists": [[1], [1, 7]]}, "[options.servers] lists=7: no entry of servers has this id."),
        ({"servers": []}, "[options.servers] servers: the list is empty."),
    ],
)
def test_parameters_that_mean_nothing(changes, told):
    good = {"servers": [{"id": 1}], "required": None, "stopping": None, "lists": None}
    good.update(unmended=None, timeout=1)
    wrong = wrong_parameters({**good, **changes})
    assert (wrong and wrong.line().partition(" Remedy")[0]) == told


def running(**more):
    return {"running": True, "started_at": 1, "version": "3.9.2", "restart_reasons": [], **more}


def instance(name, role, number, process, asked=True):
    return {"name": name, "role": role, "id": number, "process": process, "asked": asked}


def test_the_status_table_names_leader_controller_and_what_is_pending():
    down = {"running": False, "version": None, "restart_reasons": ["not running"]}
    told = status(
        [
            instance("z1", "zookeeper", 1, running(version="3.9.5")),
            instance("k1", "kafka", 1, running(restart_reasons=["x 1 -> 2"])),
            instance("k2", "kafka", 2, down),
            instance("k3", "kafka", 3, {"unreachable": True, "msg": "ssh: no route"}),
            instance("k4", "kafka", 4, None),
            instance("k5", "kafka", 5, None, asked=False),
        ],
        [server(1, "leader", 0)],
        {
            "reachable": True,
            "controller": 1,
            "brokers": [{"id": 1}, {"id": 3}],
            "under_replicated": [
                {"topic": "t", "partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1]}
            ],
        },
    )
    lines = told["lines"]
    assert "leader" in lines[1]
    assert "controller" in lines[2] and lines[2].endswith("yes")
    assert "  k1: x 1 -> 2" in lines
    assert "down" in lines[3] and lines[3].endswith("no") and "None" not in lines[3]
    assert "host not reached" in lines[4] and "host not reached" in lines[5]
    assert "Seen by the others only: k3 (broker)." in lines
    assert "not asked" in lines[6]
    assert "1 partition under-replicated:" in lines
    assert "  t-0  leader 1  replicas 1,2  isr 1" in lines
    assert lines[-1] == (
        "ATTENTION: down: k2; host not reached: k3, k4; not asked and not seen: k5;"
        " partitions not in sync."
    )
    assert told["good"] is False


def test_the_status_names_log_directories_that_failed():
    """Also where nothing is under-replicated yet, as with a disk that has just become full."""
    disks = [
        {"broker": 1, "path": "/a", "problem": ""},
        {
            "broker": 1,
            "path": "/b",
            "problem": "[directories.failed] broker 1: /b. Remedy: mend it.",
        },
    ]
    cluster = {"reachable": True, "controller": 1, "brokers": [{"id": 1}], "directories": disks}
    told = status([instance("k1", "kafka", 1, running())], [], cluster)
    assert disks[1]["problem"] in told["lines"] and not told["good"]
    assert told["lines"][-1] == "ATTENTION: log directories failed: broker 1."
    cluster["directories"] = disks[:1]
    assert status([instance("k1", "kafka", 1, running())], [], cluster)["good"]


LAGGING = {"topic": "t", "partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1]}


@pytest.mark.parametrize(
    "moves, line",
    [
        ({"partitions": [], "problem": ""}, ""),
        (None, ""),
        (
            {"partitions": [{"topic": "t", "partition": 0}], "problem": ""},
            "1 partition being reassigned: t-0",
        ),
        (
            {"partitions": [{"topic": "t", "partition": n} for n in range(22)], "problem": ""},
            f"22 partitions being reassigned: {', '.join(f't-{n}' for n in range(20))}, and 2 more",
        ),
        (
            {"partitions": [], "problem": "no answer"},
            "Whether partitions are being reassigned is not known: no answer",
        ),
    ],
)
def test_the_status_says_which_partitions_somebody_moves(moves, line):
    cluster = {"reachable": True, "controller": 1, "brokers": [{"id": 1}]}
    told = status(
        [instance("k1", "kafka", 1, running())],
        [],
        {**cluster, "under_replicated": [LAGGING], "reassignments": moves},
    )
    found = [each for each in told["lines"] if "reassigned" in each]
    assert found == ([line] if line else []) and not told["good"]


@pytest.mark.parametrize(
    "servers, cluster, last, good",
    [
        ([server(1, "standalone")], {"reachable": True, "controller": 1, "brokers": [{"id": 1}]},
         "All 2 instances run.", True),
        ([server(1, None)], {"reachable": True, "controller": 1, "brokers": [{"id": 1}]},
         "ATTENTION: no quorum: z1.", False),
        ([server(1, "standalone")], {"reachable": False},
         "ATTENTION: not registered: k1.", False),
        ([], None, "ATTENTION: no quorum: z1; not registered: k1.", False),
    ],
)  # fmt: skip
def test_the_last_line_of_the_status_sums_up(servers, cluster, last, good):
    rows = [
        instance("z1", "zookeeper", 1, running()),
        instance("k1", "kafka", 1, running()),
    ]
    told = status(rows, servers, cluster)
    assert (told["lines"][-1], told["good"]) == (last, good)


def in_quorum(number, leads=False, keeps_up=True, **more):
    fetched = None if leads else 240
    return {"id": number, "lag": 0, "fetched_ms_ago": fetched, "keeps_up": keeps_up, **more}


@pytest.mark.parametrize(
    "quorum, line, last",
    [
        (
            {"leader": 1, "epoch": 7, "voters": [in_quorum(1, True), in_quorum(2)], "observers": [in_quorum(4)]},
            "  1     leader    0               -",
            "The one instance runs.",
        ),
        (
            {"leader": 1, "epoch": 7, "voters": [in_quorum(1, True), in_quorum(2, keeps_up=False)], "observers": []},
            "  2     voter   0               0.2 s ago",
            "ATTENTION: voters behind: 2.",
        ),
        (
            {
                "leader": 1,
                "epoch": 7,
                "voters": [in_quorum(1, True), in_quorum(2, keeps_up=False, elsewhere="new")],
                "observers": [],
            },
            "  2     voter   0               0.2 s ago",
            "ATTENTION: voters whose disk has another directory: 2"
            " (playbooks/replace_broker.yml -e broker=ID gives the vote back).",
        ),
        (
            {"leader": None, "voters": [], "observers": [], "problem": "no answer"},
            "Quorum of controllers: no answer.",
            "ATTENTION: the quorum has no leader.",
        ),
    ],
)  # fmt: skip
def test_the_status_shows_the_quorum(quorum, line, last):
    rows = [instance("k1", "kafka", 1, running())]
    seen = {"reachable": True, "controller": 1, "brokers": [{"id": 1}], "quorum": quorum}
    lines = status(rows, [], seen)["lines"]
    assert line in lines and lines[-1] == last, lines


@pytest.mark.parametrize(
    ("voters", "last"),
    [
        ((1, 2, 3), "The one instance runs."),
        ((1, 2), "ATTENTION: without a vote: 3."),
        ((1, 2, 3, 4), "ATTENTION: voters unknown: 4."),
    ],
)
def test_the_status_compares_the_voters_with_the_inventory(voters, last):
    found = [in_quorum(number, leads=number == 1) for number in voters]
    quorum = {"leader": 1, "epoch": 7, "voters": found, "observers": []}
    seen = {"reachable": True, "controller": 1, "brokers": [{"id": 1}], "quorum": quorum}
    rows = [instance("k1", "kafka", 1, running())]
    told = status(rows, [], {**seen, "controllers": ["1", 2, 3]})
    assert (told["lines"][-1], told["good"]) == (last, "ATTENTION" not in last)
    assert status(rows, [], seen)["good"]


@pytest.mark.parametrize(
    "keeps_up, process, state, last",
    [
        (True, running(), "voter", "All 3 instances run."),
        (False, running(), "no quorum", "ATTENTION: no quorum: c2; voters behind: 102."),
        (False, {"running": False}, "down", "ATTENTION: down: c2; voters behind: 102."),
    ],
)
def test_the_status_of_controllers_that_are_no_brokers(keeps_up, process, state, last):
    """The quorum tells of them; no broker is registered by their ids."""
    rows = [
        instance("k1", "kafka", 1, running()),
        instance("c1", "controller", 101, running()),
        instance("c2", "controller", 102, process),
    ]
    voters = [in_quorum(101, True), in_quorum(102, keeps_up=keeps_up)]
    seen = {
        "reachable": True,
        "controller": 101,
        "brokers": [{"id": 1}],
        "quorum": {"leader": 101, "epoch": 7, "voters": voters, "observers": [in_quorum(1)]},
    }
    lines = status(rows, [], seen)["lines"]
    assert " leader " in lines[2] and f" {state} " in lines[3], lines
    assert lines[-1] == last


@pytest.mark.parametrize(
    "process, last",
    [(running(), "All 2 instances run."), ({"running": False}, "ATTENTION: down: c1.")],
)
def test_the_status_of_controllers_before_the_brokers_are_theirs(process, last):
    """A broker with its metadata in ZooKeeper knows of no quorum, and nobody is blamed for that."""
    rows = [instance("k1", "kafka", 1, running()), instance("c1", "controller", 101, process)]
    seen = {"reachable": True, "controller": None, "brokers": [{"id": 1}], "quorum_asked": False}
    assert status(rows, [], seen)["lines"][-1] == last


def test_the_status_tells_of_an_upgrade_that_is_not_over():
    rows = [instance("k1", "kafka", 1, running())]
    cluster = {"reachable": True, "controller": 1, "brokers": [{"id": 1}]}
    told = status(rows, [], cluster, ["Pinned to protocol version 3.8, not finalised: k1."])
    assert "Pinned to protocol version 3.8, not finalised: k1." in told["lines"]
    assert told["lines"][-1] == "The one instance runs." and told["good"]


def test_the_status_tells_what_is_noted_above_its_last_lines():
    lines = status([], notes=["Locked on k1: site.yml."])["lines"]
    assert lines.index("Locked on k1: site.yml.") < lines.index("No broker answers.")


UNREACHABLE = {"unreachable": True, "msg": "Task failed: ssh: no route to host."}


@pytest.mark.parametrize(
    "results, absent, told",
    [
        ({"Kafka": [{"running": True}, {"changed": True}], "ZooKeeper": [{}, None]}, "", []),
        ({"Kafka": [UNREACHABLE], "ZooKeeper": [{}]}, "",
         ["Kafka: it cannot be reached: ssh: no route to host"]),
        ({"Kafka": [UNREACHABLE], "ZooKeeper": [UNREACHABLE]}, "",
         ["Kafka and ZooKeeper: it cannot be reached: ssh: no route to host"]),
        ({"Kafka": [{"running": False}, {"failed": True, "msg": "k still runs.\nand so on"}]}, "",
         ["Kafka: k still runs"]),
        ({"Kafka": [{}]}, "it cannot be reached: timed out", ["it cannot be reached: timed out"]),
        ({"Kafka": [{}], "ZooKeeper": [{"running": False}, {"failed": True, "msg": "z does not start"}]},
         "directories.failed, kafka_log_dirs=/data: no disk",
         ["directories.failed, kafka_log_dirs=/data: no disk", "ZooKeeper: z does not start"]),
    ],
)  # fmt: skip
def test_what_a_run_left_undone_on_a_host(results, absent, told):
    assert left_undone(results, absent) == told


def host_of_run(name, product, looked, turn=None, reason="", left=()):
    return {
        "kafkaops_preflight": {"left": dict.fromkeys(left, "java.broken")},
        "inventory_hostname": name,
        f"{product}_staged": looked,
        f"{product}_turn": turn,
        "kafkaops_preflight_collected": {"unreachable_reason": reason},
    }


DEPLOYED_DOWN = {"deployed": True, "running": False}


@pytest.mark.parametrize(
    "hosts, lines, nothing_deployed",
    [
        ([host_of_run("z1", "zookeeper", DEPLOYED_DOWN, {"changed": True}),
          host_of_run("z2", "zookeeper", {"deployed": True, "running": True}),
          host_of_run("k1", "kafka", DEPLOYED_DOWN, {"changed": True}),
          host_of_run("k2", "kafka", DEPLOYED_DOWN, {"failed": True, "changed": False})],
         ["ZooKeeper: started: z1; ran already: z2", "Kafka: started: k1"], False),
        ([host_of_run("k1", "kafka", {"deployed": True, "running": True})],
         ["Kafka: ran already: k1", "There was nothing to start."], False),
        # its service manager was faster
        ([host_of_run("k1", "kafka", DEPLOYED_DOWN, {"changed": False, "running": True})],
         ["Kafka: ran already: k1", "There was nothing to start."], False),
        ([host_of_run("k1", "kafka", {"deployed": False, "running": False})],
         ["Kafka: not deployed: k1", "There was nothing to start."], True),
        ([host_of_run("k1", "kafka", {"deployed": False, "running": False}),
          host_of_run("k2", "kafka", None, reason="it cannot be reached")],
         ["Kafka: not deployed: k1", "There was nothing to start."], False),
        ([host_of_run("k1", "kafka", {"deployed": False, "running": False}, left=["k2"]),
          host_of_run("k2", "kafka", None, left=["k2"])],
         ["Kafka: not deployed: k1", "There was nothing to start."], False),
        ([host_of_run("k2", "kafka", DEPLOYED_DOWN, {"changed": True}),
          host_of_run("k1", "kafka", DEPLOYED_DOWN, {"changed": True})],
         ["Kafka: started: k1, k2"], False),
    ],
)  # fmt: skip
def test_what_start_says_at_its_end(hosts, lines, nothing_deployed):
    for answered in (hosts, hosts[::-1]):  # whoever answered first
        told = what_started(answered)
        assert (told["lines"], told["nothing_deployed"]) == (lines, nothing_deployed)


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


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ({1: 4, 2: 4}, ""),
        ({1: 0, 2: 0}, ""),
        ({1: 4, 2: 4, 4: 0}, "Broker 4 holds no replica: it gets its part"),
        ({1: 4, 5: 0, 4: 0}, "Broker 4, 5 hold no replica: they get their part"),
    ],
)
def test_brokers_that_hold_nothing_are_told_with_the_playbook_that_fills_them(held, told):
    lines = idle_brokers([{"id": broker, "replicas": count} for broker, count in held.items()])
    assert bool(lines) == bool(told)
    assert all(line.startswith(told) and "playbooks/scale_out.yml" in line for line in lines)
    assert lines == [
        line
        for line in status(
            [],
            (),
            {"brokers": [{"id": broker, "replicas": count} for broker, count in held.items()]},
        )["lines"]
        if "scale_out" in line
    ]


def test_what_a_run_has_done_is_told_in_the_order_of_its_beginning():
    turns = [
        {"host": "kafka-4", "from_ms": 9, "to_ms": 10, "done": "stopped"},
        {"host": "", "from_ms": 2, "to_ms": 8, "done": "replicas moved"},
        {"host": "kafka-1", "from_ms": 1, "to_ms": 3, "done": "restarted"},
    ]
    assert turn_events(turns) == [
        {"from_ms": 1, "to_ms": 3, "label": "kafka-1 restarted"},
        {"from_ms": 2, "to_ms": 8, "label": "replicas moved"},
        {"from_ms": 9, "to_ms": 10, "label": "kafka-4 stopped"},
    ]


def test_the_status_shows_no_id_that_is_a_guess():
    instances = [
        {"name": "kafka-1", "role": "kafka", "id": 1, "asked": True, "process": None},
        {"name": "b", "role": "kafka", "id": 2, "id_known": False, "asked": True, "process": None},
    ]
    _head, *rows = [line.split() for line in status(instances)["lines"][:3]]
    assert [row[2] for row in rows] == ["1", "?"]
