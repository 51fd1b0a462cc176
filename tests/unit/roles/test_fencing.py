# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told to the controllers of a KRaft cluster after a death, and when nothing is; no Kafka here.

The controllers are sockets that answer as they are told: a real one gives most of these answers only in
moments that nobody can choose. tests/local asks real ones.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.processes import start_record
from tests.support.told_controller import ELIGIBLE, FILES, OF_3, OF_4, fencing, told_controllers
from tests.support.told_log import altered, batch, change, partition, registered, written

DEAD = {"pid": 2**22 + 1, "start_ticks": 1}
LINE = (
    "[2026-11-26 04:19:02,095] INFO [BrokerLifecycleManager id=%d] Successfully registered broker %d with"
    " broker epoch %d (org.apache.kafka.server.BrokerLifecycleManager)\n"
)
EPOCH = 191


# ---------------------------------------------------------------- what is known on a host


@pytest.mark.parametrize(
    "properties, expected",
    [
        (
            {"controller.quorum.bootstrap.servers": "a:9093,[2001:db8::1]:9094"},
            [("a", 9093), ("2001:db8::1", 9094)],
        ),
        ({"controller.quorum.voters": "1@a:9093, 2@b:9093"}, [("a", 9093), ("b", 9093)]),
        ({"controller.quorum.bootstrap.servers": "nonsense"}, []),
        ({}, []),
    ],
)
def test_where_the_controllers_are(properties, expected):
    assert fencing.parse_voters(properties) == expected


def test_an_exit_was_clean_if_all_directories_say_so(tmp_path):
    dirs = [tmp_path / name for name in ("a", "b", "not there")]
    for each in dirs[:2]:
        each.mkdir()
        (each / "meta.properties").write_text("")
    assert fencing.clean_epoch(dirs) is None
    for each, epoch in ((dirs[0], 7), (dirs[1], 7)):
        assert fencing.clean_epoch(dirs) is None
        (each / ".kafka_cleanshutdown").write_text(json.dumps({"version": 0, "brokerEpoch": epoch}))
    assert fencing.clean_epoch(dirs) == 7
    (dirs[1] / ".kafka_cleanshutdown").write_text('{"version": 0, "brokerEpoch": 8}')
    assert fencing.clean_epoch(dirs) is None
    for damaged in ("", "{}", "[]", '{"brokerEpoch": null}'):
        (dirs[1] / ".kafka_cleanshutdown").write_text(damaged)
        assert fencing.clean_epoch(dirs) is None


@pytest.mark.parametrize(
    "state, expected",
    [
        ('{"leaderId":1,"leaderEpoch":3,"votedId":-1,"data_version":1}', 3),
        ('{"leaderId":2,"leaderEpoch":3,"votedId":-1,"data_version":1}', None),
        ('{"leaderId":-1,"leaderEpoch":3}', None),
        ("{", None),
        (None, None),
    ],
)
def test_whether_the_node_led_stands_on_its_disk(tmp_path, state, expected):
    (tmp_path / "__cluster_metadata-0").mkdir()
    if state is not None:
        (tmp_path / "__cluster_metadata-0" / "quorum-state").write_text(state)
    assert fencing.led_epoch(str(tmp_path), 1) == expected


# ---------------------------------------------------------------- what is told to whom


@pytest.fixture
def controllers():
    """Make controllers that are told what to answer; closed at the end."""
    with told_controllers() as make:
        yield make


NOBODY = 9  # a port that nothing listens at


def make_node(tmp_path, ports, clean=None, leads=None, registered=EPOCH, roles=None, **more):
    """Node 1 of a quorum, as a host has it after its end."""
    data = tmp_path / "data"
    (data / "__cluster_metadata-0").mkdir(parents=True)
    (data / "meta.properties").write_text("cluster.id=abc\nnode.id=1\n")
    if clean is not None:
        (data / ".kafka_cleanshutdown").write_text(json.dumps({"version": 0, "brokerEpoch": clean}))
    if leads is not None:
        (data / "__cluster_metadata-0" / "quorum-state").write_text(
            json.dumps({"leaderId": 1, "leaderEpoch": leads, "data_version": 1})
        )
    (tmp_path / "server.log").write_text(
        LINE % (1, 1, registered) if registered is not None else ""
    )
    settings = {
        "node.id": 1,
        "process.roles": roles or "broker,controller",
        "log.dirs": data,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "controller.quorum.bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in ports),
        **more,
    }
    (tmp_path / "server.properties").write_text(
        "".join(f"{key}={value}\n" for key, value in settings.items())
    )
    return fencing.Node(
        str(tmp_path / "server.properties"), str(tmp_path / "server.log"), str(tmp_path)
    )


@pytest.mark.parametrize(
    "heartbeat, unregister, keys, said",
    [
        ([0], [0], [63, 64], "fenced and unregistered broker 1 of epoch 191"),
        # our own call, whose answer did not come in time, was carried out
        ([0], [102], [63, 64], "fenced and unregistered"),
        # a later process, or another host with this id: it must not be touched
        ([77], [0], [63], "is not registered any more"),
        ([102], [0], [63], "is not registered any more"),
        (
            *([31], [0], [63]),
            "stays: the controller answers CLUSTER_AUTHORIZATION_FAILED (the user of the nodes has to be one of"
            " kafka_super_users)",
        ),
        (
            *([0], [31], [63, 64]),
            "it stays registered: CLUSTER_AUTHORIZATION_FAILED (the user of the nodes has to be one of kafka_super",
        ),
        # an election is on, then one leads
        ([41, 41, 0], [0], [63, 63, 63, 64], "fenced and unregistered"),
        # it leads, and is busy with what it has to learn (seen with 3.9.2 on a loaded machine)
        ([7, 0], [0], [63, 63, 64], "fenced and unregistered"),
        ([0, 77], [7], [63, 64, 63], "is not registered any more"),
        # it has lost the leadership between the two
        ([0, 0], [41, 0], [63, 64, 63, 64], "fenced and unregistered"),
    ],
)
def test_unregistered_only_after_a_fence_of_its_own_epoch(
    tmp_path, controllers, heartbeat, unregister, keys, said
):
    leader = controllers(heartbeat=heartbeat, unregister=unregister)
    other = controllers(heartbeat=[41])
    node = make_node(tmp_path, [NOBODY, leader.port, other.port])
    assert said in node.release(DEAD)
    assert leader.keys == keys and set(other.keys) <= {63}
    values = leader.asked[0][1]
    assert values["broker"] == 1 and values["epoch"] == EPOCH
    assert values["want_fence"] and not values["want_shut_down"]


def test_a_dead_leader_calls_for_an_election_first(tmp_path, controllers):
    """One stands at once, the other one if nobody leads yet: two at the same time may share the votes."""
    first, second = controllers(heartbeat=[41, 0]), controllers(heartbeat=[41])
    node = make_node(tmp_path, [NOBODY, first.port, second.port], leads=3)
    assert node.release(DEAD).startswith(
        "called for an election at 2 of the controllers; fenced and"
    )
    assert first.keys == [54, 63, 63, 64] and second.keys == [63, 54]
    (topic,) = first.asked[0][1]["topics"]
    (partition,) = topic["partitions"]
    assert topic["name"] == "__cluster_metadata" and first.asked[0][1]["cluster_id"] == "abc"
    assert partition == {"index": 0, "leader": 1, "epoch": 3, "successors": []}


def test_who_was_elected_at_once_needs_no_other_candidate(tmp_path, controllers):
    first, second = controllers(), controllers(heartbeat=[41])
    node = make_node(tmp_path, [first.port, second.port, NOBODY], leads=3)
    assert node.release(DEAD).startswith(
        "called for an election at 1 of the controllers; fenced and"
    )
    assert second.keys == []


def test_an_election_that_is_over_is_not_told_of(tmp_path, controllers):
    """Fenced leader epoch: others have elected meanwhile."""
    first, second = controllers(election=[74]), controllers(election=[74])
    node = make_node(tmp_path, [NOBODY, first.port, second.port], leads=3)
    assert "election" not in node.release(DEAD)


def test_a_controller_alone_has_no_registration(tmp_path, controllers):
    first, second = controllers(), controllers()
    ports = [NOBODY, first.port, second.port]
    node = make_node(tmp_path, ports, leads=3, roles="controller", registered=None)
    assert node.release(DEAD) == "called for an election at 2 of the controllers"
    assert first.keys == second.keys == [54]
    node.wait_until_registered([].append, patience=0)  # returns although nothing is started


OFF, ON = {ELIGIBLE: 0, "metadata.version": 29}, {"metadata.version": 29, ELIGIBLE: 1}


@pytest.mark.parametrize(
    "fetch, features, starts, keys",
    [
        (OF_4, OFF, False, []),
        (OF_3, OFF, False, []),
        (OF_3, OFF, True, []),
        (OF_4, OFF, True, [63, 64]),
        # the feature was never finalised
        (OF_4, {"metadata.version": 20}, True, [63, 64]),
        (OF_4, {}, True, [63, 64]),
        # it does not know, since it has just begun
        (OF_4, None, True, []),
    ],
)
def test_a_clean_exit_is_helped_at_a_start_where_kafka_4_does_not_remember_it(
    tmp_path, controllers, fetch, features, starts, keys
):
    leader, other = (
        controllers(fetch=fetch, features=features, heartbeat=[error]) for error in (0, 41)
    )
    node = make_node(tmp_path, [leader.port, other.port, NOBODY], clean=EPOCH, leads=3)
    said = node.release(DEAD, starts=starts)
    assert leader.keys == keys
    kept = "is left to the session" if fetch == OF_4 and starts else ""
    assert ("fenced and unregistered" if keys else kept) in said and bool(said) == bool(
        keys or kept
    )


SYNCED = [registered(1), altered(1, fenced=-1), partition("a", 0, [1, 2, 3])]
SPARED = [*SYNCED, altered(1, shuts_down=1), change("a", 0, isr=[2, 3])]
ELIGIBLE_TO_LEAD = [*SYNCED, altered(1, shuts_down=1), change("a", 0, isr=[2], elr=[1])]


@pytest.mark.parametrize(
    "records, quorum, keys, said",
    [
        # the others are enough: it is eligible nowhere, and will not be before it is back
        (SPARED, [(0, 6, 5)], [63, 64], "fenced and unregistered broker 1 of epoch 191"),
        (SPARED, [(0, 6, 9)], [63, 64], "fenced and unregistered"),
        # not committed yet; an election is on
        (SPARED, [(0, 6, 4), (6, 6, 0), (0, 6, 5)], [63, 64], "fenced and unregistered"),
        # it would be taken out of the replicas that may lead, although it has all that they have
        (
            ELIGIBLE_TO_LEAD,
            [(0, 6, 5)],
            [],
            "it is eligible to lead where too few others are in sync (partitions: 1)",
        ),
        (SYNCED, [(0, 6, 5)], [], "does not tell that the controllers have let it go"),
        # the end of its log may not be that of others
        (SPARED, [(0, 7, 9)], [], "another controller leads since"),
        (SPARED, [(31, 0, 0)], [], "the quorum was not described: CLUSTER_AUTHORIZATION_FAILED"),
        ([b"\1\x1d\0"], [(0, 6, 5)], [], "a record of kind 29, version 0, is not known here"),
    ],
)
def test_who_is_eligible_nowhere_needs_no_proof_of_a_clean_exit(
    tmp_path, controllers, records, quorum, keys, said
):
    leader = controllers(features=ON, quorum=quorum)
    other = controllers(features=ON, quorum=[(6, 0, 0)])
    node = make_node(tmp_path, [other.port, leader.port, NOBODY], clean=EPOCH, roles="broker")
    written(tmp_path / "data", {"00000000000000000000.log": batch(0, *records, epoch=6)})
    assert said in node.release(DEAD, starts=True)
    assert leader.keys == keys and other.keys == []


def test_who_was_killed_is_unregistered_though_others_are_eligible(tmp_path, controllers):
    """It loses nothing by that: without the proof of a clean exit Kafka takes it out all the same."""
    leader, other = controllers(features=ON), controllers(features=ON, heartbeat=[41])
    node = make_node(tmp_path, [leader.port, other.port, NOBODY])
    assert "fenced and unregistered" in node.release(DEAD, starts=True)
    assert leader.keys == [63, 64]


@pytest.mark.parametrize("fetch", [OF_3, OF_4], ids=["3.9", "4"])
@pytest.mark.parametrize("clean", [EPOCH, None])
def test_who_leaves_for_good_is_unregistered_however_it_has_ended(
    tmp_path, controllers, fetch, clean
):
    leader, other = controllers(fetch=fetch), controllers(fetch=fetch, heartbeat=[41])
    node = make_node(tmp_path, [leader.port, other.port, NOBODY], clean=clean, roles="broker")
    assert "fenced and unregistered" in node.release(DEAD, leaves=True)
    assert leader.keys == [63, 64]


def test_a_clean_exit_of_an_earlier_process_is_none(tmp_path, controllers):
    leader, other = controllers(fetch=OF_3), controllers(heartbeat=[41])
    node = make_node(tmp_path, [leader.port, other.port, NOBODY], clean=EPOCH - 9)
    assert "fenced and unregistered" in node.release(DEAD)


def test_a_registration_that_has_left_the_logs_is_told_all_the_same(tmp_path, controllers):
    """By what was noted when this process had registered."""
    leader, other = controllers(fetch=OF_4), controllers(heartbeat=[41])
    node = make_node(tmp_path, [leader.port, other.port, NOBODY], registered=None)
    noted = {"pid": DEAD["pid"], "id": 1, "epoch": EPOCH}
    (tmp_path / "registered.json").write_text(json.dumps(noted))
    assert "fenced and unregistered broker 1 of epoch 191" in node.release(DEAD)
    (tmp_path / "started.json").write_text(json.dumps(DEAD))
    assert "fenced broker 1 of epoch 191" in node.fence_hanging()[1]
    other_process = {**DEAD, "pid": DEAD["pid"] + 1}
    assert "does not say which one was ours" in node.release(other_process)
    # what the same process was in ZooKeeper, from where it has come
    (tmp_path / "registered.json").write_text(json.dumps({**noted, "epoch": None, "czxid": EPOCH}))
    assert "does not say which one was ours" in node.release(DEAD)


def test_doubts_are_named_and_nobody_is_asked(tmp_path, controllers):
    leader, other = controllers(), controllers()
    ports = [leader.port, other.port, NOBODY]
    alive = start_record(os.getpid())
    node = make_node(tmp_path / "a", ports)
    assert node.release({}) == ""
    assert "is alive" in node.release(alive) and "is alive" in node.release(alive, leaves=True)
    silent = make_node(tmp_path / "b", ports, registered=None)
    assert "does not say which one was ours" in silent.release(DEAD)
    foreign = make_node(tmp_path / "c", ports)
    Path(foreign.log).write_text(LINE % (2, 2, EPOCH))
    assert "does not say which one was ours" in foreign.release(DEAD)
    assert leader.asked == other.asked == []


# ---------------------------------------------------------------- a broker that hangs


def test_who_hangs_is_fenced_and_stays_registered(tmp_path, controllers):
    """The controller on its own host hangs with it, and is not asked: it would only cost time."""
    own, leader = controllers(), controllers(heartbeat=[41, 0])
    third = controllers(heartbeat=[41])
    listeners = {"listeners": f"PLAINTEXT://:9092,CONTROLLER://127.0.0.1:{own.port}"}
    node = make_node(tmp_path, [own.port, leader.port, third.port], **listeners)
    said = "fenced broker 1 of epoch 191, others lead; it is let in again with its next heartbeat"
    assert node.fence_hanging() == (True, said)
    assert leader.keys == [63, 63] and set(third.keys) == {63} and own.keys == []
    assert leader.asked[0][1]["epoch"] == EPOCH and leader.asked[0][1]["want_fence"]


@pytest.mark.parametrize(
    "registered, heartbeat, said",
    [
        (None, [0], "it is not fenced: the log does not say which registration is its own"),
        (EPOCH, [77], "is not registered any more"),
        (EPOCH, [31], "stays: the controller answers CLUSTER_AUTHORIZATION_FAILED"),
    ],
)
def test_who_hangs_is_left_alone_in_doubt(tmp_path, controllers, registered, heartbeat, said):
    leader, other = controllers(heartbeat=heartbeat), controllers(heartbeat=[41])
    node = make_node(tmp_path, [leader.port, other.port, NOBODY], registered=registered)
    done, told = node.fence_hanging()
    assert said in told and not done and 64 not in leader.keys


def test_who_hangs_is_fenced_without_its_log_which_may_hang_too(tmp_path, controllers):
    """A log that blocks whoever opens it: the registration that was noted decides."""
    leader, other = controllers(heartbeat=[0]), controllers(heartbeat=[41])
    node = make_node(tmp_path, [leader.port, other.port, NOBODY])
    (tmp_path / "started.json").write_text(json.dumps(DEAD))
    noted = {"pid": DEAD["pid"], "id": 1, "epoch": EPOCH}
    (tmp_path / "registered.json").write_text(json.dumps(noted))
    Path(node.log).unlink()
    os.mkfifo(node.log)
    done, told = node.fence_hanging()
    assert done and told.startswith("fenced broker 1 of epoch 191")


def test_who_hangs_under_a_later_registration_is_fenced_by_that(tmp_path, controllers):
    """The one that was noted is not in force any more; the log knows the later one."""
    leader, other = controllers(heartbeat=[77, 0]), controllers(heartbeat=[41])
    node = make_node(tmp_path, [leader.port, other.port, NOBODY], registered=EPOCH + 5)
    (tmp_path / "started.json").write_text(json.dumps(DEAD))
    noted = {"pid": DEAD["pid"], "id": 1, "epoch": EPOCH}
    (tmp_path / "registered.json").write_text(json.dumps(noted))
    done, told = node.fence_hanging()
    assert done and told.startswith(f"fenced broker 1 of epoch {EPOCH + 5}")


def test_a_hang_is_tried_again_until_it_is_fenced(tmp_path, monkeypatch):
    """Controllers that are just being elected must not cost the whole hang; each outcome is told once."""
    node = make_node(tmp_path, [NOBODY])
    now, answers = [0.0], iter([(False, "nobody leads")] * 3 + [(True, "fenced it")])
    asked, told = [], []

    def fence_hanging():
        asked.append(now[0])
        return next(answers)

    def has_ended(_pid, seconds):
        now[0] += seconds
        return now[0] > 60

    monkeypatch.setattr(fencing.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(fencing, "runs_java", lambda _pid: True)
    monkeypatch.setattr(fencing, "threads_of", lambda _pid: ())
    monkeypatch.setattr(
        fencing, "Progress", lambda: SimpleNamespace(look=lambda at, _threads: (at, "stopped"))
    )
    monkeypatch.setattr(node, "fence_hanging", fence_hanging)
    monkeypatch.setattr(node, "has_ended", has_ended)
    node.watch_progress(told.append, 1, 3)
    assert asked == [3.0, 5.0, 7.0, 9.0]
    assert [each.rpartition("; ")[2] for each in told] == ["nobody leads", "fenced it"]


RUNS, SLEEPS, DISK = "R", "S", "D"


@pytest.mark.parametrize(
    "looks, expected",
    [
        # (seconds, {thread: (state, how long it has run)}) one after the other; how long it hangs at the last
        ([(0, {"1": (SLEEPS, 5)})], 0),
        ([(0, {"1": (SLEEPS, 5)}), (1, {"1": (SLEEPS, 5)})], 1),
        ([(0, {"1": (SLEEPS, 5)}), (1, {"1": (SLEEPS, 5)}), (2, {"1": (SLEEPS, 6)})], 0),
        # one of two runs, and is idle now and then
        ([(n / 2, {"1": (SLEEPS, 5), "2": (RUNS, n)}) for n in range(9)], 0),
        # one of two waits for a disk all the time, the other one works
        ([(n / 2, {"1": (DISK, 5), "2": (RUNS, n)}) for n in range(9)], 4),
        # it waits each time, but has run in between
        ([(n / 2, {"1": (DISK, n), "2": (RUNS, n)}) for n in range(9)], 0),
        # somebody else waits each time
        ([(n / 2, {str(n): (DISK, 5), str(n + 1): (DISK, 5)}) for n in range(9)], 0.5),
        # a thread that has just been made has run, and one that has ended says nothing
        ([(0, {"1": (SLEEPS, 5)}), (1, {"1": (SLEEPS, 5), "2": (SLEEPS, 1)})], 0),
        ([(0, {"1": (SLEEPS, 5), "2": (SLEEPS, 1)}), (1, {"1": (SLEEPS, 5)})], 1),
        # who looks was stopped, too: what lies before counts for nothing
        ([(0, {"1": (SLEEPS, 5)}), (1, {"1": (SLEEPS, 5)}), (60, {"1": (SLEEPS, 5)})], 0),
        # it has ended
        ([(0, {"1": (SLEEPS, 5)}), (1, {"1": (SLEEPS, 5)}), (2, {})], 0),
    ],
)
def test_for_how_long_a_process_makes_no_progress(looks, expected):
    progress = fencing.Progress()
    told = [progress.look(now, threads) for now, threads in looks]
    assert told[-1][0] == expected and bool(told[-1][1]) is bool(expected)


def test_a_process_that_is_stopped_hangs_and_one_that_waits_does_not():
    """Real ones: asleep for good is no progress either, which no broker is."""
    code = "import time\nwhile True: time.sleep(0.02)"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        try:
            assert fencing.threads_of(process.pid)
            assert seen_hanging(process.pid) == 0
            process.send_signal(signal.SIGSTOP)
            assert seen_hanging(process.pid) > 0.5
            process.send_signal(signal.SIGCONT)
            assert seen_hanging(process.pid) == 0
        finally:
            process.kill()
    assert fencing.threads_of(process.pid) == {}


def seen_hanging(pid):
    """For how long a process has made no progress, after looks of a second."""
    progress = fencing.Progress()
    for _each in range(5):
        seconds, _why = progress.look(time.monotonic(), fencing.threads_of(pid))
        time.sleep(0.25)
    return seconds


PASSWORD = 'pass "word\\'
SECURED = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
    "sasl.mechanism.controller.protocol": "PLAIN",
    # as the role writes it: escaped for Kafka's parser of logins, then as a property
    "listener.name.controller.plain.sasl.jaas.config": 'M required username="broker"'
    ' password="pass \\\\"word\\\\\\\\";',
}


def test_with_a_login_the_same_is_done(tmp_path, controllers):
    """As the service manager runs it: a program of its own, whose output goes into console.log."""
    users = {"broker": PASSWORD}
    leader = controllers(heartbeat=[41, 0], users=users)
    other = controllers(heartbeat=[41], users=users)
    node = make_node(tmp_path, [NOBODY, leader.port, other.port], leads=3, **SECURED)
    (tmp_path / "started.json").write_text(json.dumps(DEAD))
    command = [sys.executable, FILES / "fencing.py", "after-exit", "--state", tmp_path]
    command += ["--properties", tmp_path / "server.properties", "--log", node.log]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == (
        "registration: called for an election at 2 of the controllers;"
        " fenced and unregistered broker 1 of epoch 191: its process is dead\n"
    )
    assert run.stderr == "" and leader.keys == [54, 63, 63, 64]
    assert not list(FILES.glob("__pycache__"))


def test_who_is_refused_tries_once_at_each_controller_and_says_why(tmp_path, controllers):
    wrong = {"broker": "another"}
    first, second = controllers(users=wrong), controllers(users=wrong)
    ports = [NOBODY, first.port, second.port]
    reason = (
        "the controllers refuse the login of 'broker': SASL_AUTHENTICATION_FAILED, Authentication failed:"
        " Invalid username or password"
    )
    dead = make_node(tmp_path / "dead", ports, leads=3, **SECURED)
    left = "a dead registration is left to the session timeout"
    assert dead.release(DEAD) == f"{reason}; {left}"
    assert first.attempts == second.attempts == 1
    starts = make_node(tmp_path / "starts", ports, clean=EPOCH, **SECURED)
    assert starts.release(DEAD, starts=True) == f"{reason}; {left}"
    alone = {"roles": "controller", "registered": None, **SECURED}
    assert make_node(tmp_path / "alone", ports, leads=3, **alone).release(DEAD) == reason
    assert first.asked == second.asked == []
    # it is tried again at the next occasion
    assert dead.release(DEAD) == f"{reason}; {left}" and first.attempts == 4


def test_one_that_refuses_does_not_stand_in_the_way_of_one_that_leads(tmp_path, controllers):
    strict = controllers(users={"broker": "another"})
    leader = controllers(heartbeat=[41, 41, 0], users={"broker": PASSWORD})
    node = make_node(tmp_path, [NOBODY, strict.port, leader.port], **SECURED)
    # of three it is no majority, so that nobody can tell whether one will lead
    assert "refuse the login" in node.release(DEAD) and leader.keys == [63]
    assert "refuse the login" in node.release(DEAD) and leader.keys == [63, 63]
    assert "fenced and unregistered" in node.release(DEAD) and strict.attempts == 3


def test_a_call_for_an_election_without_the_right_is_told(tmp_path, controllers):
    first, second = controllers(election=[31]), controllers(election=[31])
    alone = {"roles": "controller", "registered": None}
    node = make_node(tmp_path, [NOBODY, first.port, second.port], leads=3, **alone)
    assert node.release(DEAD) == (
        "no election: CLUSTER_AUTHORIZATION_FAILED (the user of the nodes has to be one of kafka_super_users)"
    )
    assert first.keys == second.keys == [54]


def test_without_a_majority_nobody_is_waited_for(tmp_path, controllers):
    node = make_node(tmp_path / "a", [NOBODY, NOBODY, controllers(heartbeat=[41]).port])
    assert "a majority is not there" in node.release(DEAD)
    # all were stopped, and start together
    node = make_node(tmp_path / "b", [NOBODY, NOBODY, NOBODY], clean=EPOCH)
    assert node.release(DEAD, starts=True) == ""


def test_a_version_that_is_not_known_is_refused(tmp_path, controllers):
    """Kafka drops old versions one day."""
    first, second = controllers(newest=-1), controllers(newest=-1)
    node = make_node(tmp_path, [first.port, second.port, NOBODY])
    assert "speaks versions 9 to 9 of BrokerHeartbeat, and not 0" in node.release(DEAD)
    assert first.asked == second.asked == []


def test_something_else_at_the_port_is_no_controller(tmp_path):
    """As TLS answers to PLAINTEXT: an alert, and no length of an answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection = server.accept()[0]
            with connection:
                connection.recv(4096)
                connection.sendall(b"\x15\x03\x03\x00\x02\x02\x32")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        node = make_node(tmp_path, [server.getsockname()[1], NOBODY, NOBODY])
        assert "no Kafka in PLAINTEXT" in node.release(DEAD)
        thread.join(10)
