# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told to the controllers of a KRaft cluster after a death, and when nothing is; no Kafka here.

The controllers are sockets that answer as they are told: a real one gives most of these answers only in
moments that nobody can choose. tests/local asks real ones.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import socket
import struct
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

FILES = Path(__file__).resolve().parents[3] / "roles" / "kafka" / "files"
FILE = FILES / "fencing.py"


def load():
    """The guard as it runs: the file beside it is found by its name, and leaves no bytecode there."""
    kept, path = sys.dont_write_bytecode, list(sys.path)
    sys.path.insert(0, str(FILES))
    try:
        spec = importlib.util.spec_from_file_location("fencing", FILE)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode, sys.path[:] = kept, path
        sys.modules.pop("registration", None)
    return module


fencing = load()
DEAD = {"pid": 2**22 + 1, "start_ticks": 1}
LINE = (
    "[2026-11-26 04:19:02,095] INFO [BrokerLifecycleManager id=%d] Successfully registered broker %d with"
    " broker epoch %d (org.apache.kafka.server.BrokerLifecycleManager)\n"
)
EPOCH = 191
OF_3, OF_4 = (0, 17), (4, 18)  # versions of Fetch


# ---------------------------------------------------------------- requests and answers


def test_requests_are_written_as_kafka_reads_them():
    """Byte by byte, as they were seen to work (reference: kraft-wire.py)."""
    beat = {
        "broker": 2,
        "epoch": 155,
        "metadata_offset": 0,
        "want_fence": True,
        "want_shut_down": False,
    }
    assert (
        fencing.BROKER_HEARTBEAT.request.encode(beat)
        == struct.pack(">iqq??", 2, 155, 0, True, False) + b"\0"
    )
    assert fencing.UNREGISTER_BROKER.request.encode({"broker": 2}) == b"\0\0\0\2\0"
    partition = {"index": 0, "leader": 3, "epoch": 7, "successors": [-1]}
    election = {
        "cluster_id": "abc",
        "topics": [{"name": "__cluster_metadata", "partitions": [partition]}],
    }
    assert fencing.END_QUORUM_EPOCH.request.encode(election) == (
        b"\0\3abc"
        + struct.pack(">ih", 1, 18)
        + b"__cluster_metadata"
        + struct.pack(">iiiiii", 1, 0, 3, 7, 1, -1)
    )


ANSWERS = [
    (fencing.BROKER_HEARTBEAT, {"throttle_ms": 0, "error": 0, "caught_up": True, "fenced": True}),
    (fencing.UNREGISTER_BROKER, {"throttle_ms": 0, "error": 31, "message": "no"}),
    (fencing.API_VERSIONS, {"error": 0, "apis": [{"key": 63, "min": 0, "max": 2}] * 3}),
    (
        fencing.END_QUORUM_EPOCH,
        {
            "error": 0,
            "topics": [
                {"name": "t", "partitions": [{"index": 0, "error": 74, "leader": 1, "epoch": 9}]}
            ],
        },
    ),
]


@pytest.mark.parametrize("api, values", ANSWERS, ids=[api.name for api, values in ANSWERS])
def test_an_answer_that_ends_early_is_no_answer(api, values):
    full = {"should_shut_down": False, **values}
    data = api.answer.encode(full)
    found, end = api.answer.decode(data, 0)
    assert end == len(data) and {**found, **values} == found
    for cut in range(len(data)):
        with pytest.raises(fencing.WireError):
            api.answer.decode(data[:cut], 0)


@given(st.binary(max_size=60), st.sampled_from([api for api, values in ANSWERS]))
def test_noise_is_read_or_refused(data, api):
    try:
        dummy, end = api.answer.decode(data, 0)
    except fencing.WireError:
        return
    assert end <= len(data)


@given(st.integers(min_value=0, max_value=2**31 - 1))
def test_numbers_in_groups_of_seven_bits(number):
    data = fencing.varint(number)
    assert fencing.read_varint(data, 0) == (number, len(data))


def test_fields_that_a_later_version_adds_are_skipped():
    # two tagged fields: 0 of three bytes, 5 of none
    assert fencing.Tags.decode(b"\2\0\3abc\5\0rest", 0) == (None, 8)


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


@pytest.mark.parametrize(
    "listeners, expected",
    [
        ("PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "PLAINTEXT"),
        ("CONTROLLER:SASL_SSL,A:PLAINTEXT", "SASL_SSL"),
        ("A:SSL", "PLAINTEXT"),
    ],
)
def test_how_the_controllers_are_spoken_to(listeners, expected):
    properties = {
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": listeners,
    }
    assert fencing.protocol_of(properties) == expected


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


def test_it_runs_with_the_python_of_an_old_system():
    """The guard falls back to /usr/bin/python3, which is 3.6 on RHEL 8."""
    tree = ast.parse(FILE.read_text(encoding="utf-8"), feature_version=(3, 6))
    futures = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [node for node in futures if node.module == "__future__"]


# ---------------------------------------------------------------- what is told to whom


class ToldController(threading.Thread):
    """A controller that gives the errors it was told, in their order; `asked`: (key, values) of requests."""

    APIS = {
        api.key: api
        for api in (
            *(fencing.API_VERSIONS, fencing.BROKER_HEARTBEAT),
            *(fencing.UNREGISTER_BROKER, fencing.END_QUORUM_EPOCH),
        )
    }

    def __init__(self, heartbeat=(0,), unregister=(0,), election=(0,), fetch=OF_4, newest=2):
        super().__init__(daemon=True)
        self._errors = {63: list(heartbeat), 64: list(unregister), 54: list(election)}
        self._fetch, self._newest = fetch, newest
        self.asked = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                connection = self._socket.accept()[0]
            except OSError:
                return
            with connection:
                self._serve(connection)

    def _serve(self, connection):
        while True:
            head = connection.recv(4, socket.MSG_WAITALL)
            if len(head) < 4:
                return
            data = connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
            key, version, correlation, size = struct.unpack(">hhih", data[:10])
            api, at = self.APIS[key], 10 + size
            assert version == api.version
            if api.flexible:
                at += 1
            values, end = api.request.decode(data, at)
            assert end == len(data)
            answer = struct.pack(">i", correlation) + (b"\0" if api.flexible else b"")
            answer += api.answer.encode(self._answer(key, values))
            connection.sendall(struct.pack(">i", len(answer)) + answer)

    def _answer(self, key, values):
        if key == 18:
            lowest = 0 if self._newest >= 0 else 9
            apis = [{"key": each, "min": lowest, "max": 9} for each in (54, 63, 64)]
            apis.append({"key": 1, "min": self._fetch[0], "max": self._fetch[1]})
            return {"error": 0, "apis": apis}
        self.asked.append((key, values))
        errors = self._errors[key]
        error = errors.pop(0) if len(errors) > 1 else errors[0]
        partition = {"index": 0, "error": error, "leader": 1, "epoch": 3}
        return {
            "throttle_ms": 0,
            "error": 0 if key == 54 else error,
            "message": None,
            "caught_up": True,
            "fenced": True,
            "should_shut_down": False,
            "topics": [{"name": "__cluster_metadata", "partitions": [partition]}],
        }

    @property
    def keys(self):
        """The kinds of requests, in their order."""
        return [key for key, values in self.asked]

    def close(self):
        """End the thread, too: a closed socket alone leaves it in its call."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def controllers():
    """Make controllers that are told what to answer; closed at the end."""
    made = []

    def make(**told):
        made.append(ToldController(**told))
        return made[-1]

    yield make
    for each in made:
        each.close()


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
        ([31], [0], [63], "stays: the controller answers CLUSTER_AUTHORIZATION_FAILED"),
        ([0], [31], [63, 64], "it stays registered: CLUSTER_AUTHORIZATION_FAILED"),
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


@pytest.mark.parametrize(
    "fetch, starts, keys",
    [(OF_4, False, []), (OF_3, False, []), (OF_3, True, []), (OF_4, True, [63, 64])],
    ids=["4 stops", "3.9 stops", "3.9 starts", "4 starts"],
)
def test_a_clean_exit_needs_help_at_a_start_under_kafka_4_alone(
    tmp_path, controllers, fetch, starts, keys
):
    leader, other = controllers(fetch=fetch), controllers(fetch=fetch, heartbeat=[41])
    node = make_node(tmp_path, [leader.port, other.port, NOBODY], clean=EPOCH, leads=3)
    said = node.release(DEAD, starts=starts)
    assert leader.keys == keys and bool(said) == bool(keys)


def test_a_clean_exit_of_an_earlier_process_is_none(tmp_path, controllers):
    leader, other = controllers(fetch=OF_3), controllers(heartbeat=[41])
    node = make_node(tmp_path, [leader.port, other.port, NOBODY], clean=EPOCH - 9)
    assert "fenced and unregistered" in node.release(DEAD)


def test_doubts_are_named_and_nobody_is_asked(tmp_path, controllers):
    leader, other = controllers(), controllers()
    ports = [leader.port, other.port, NOBODY]
    fields = Path("/proc/self/stat").read_text().rpartition(") ")[2].split()
    alive = {"pid": os.getpid(), "start_ticks": int(fields[19])}
    node = make_node(tmp_path / "a", ports)
    assert node.release({}) == ""
    assert "is alive" in node.release(alive)
    silent = make_node(tmp_path / "b", ports, registered=None)
    assert "does not say which one was ours" in silent.release(DEAD)
    foreign = make_node(tmp_path / "c", ports)
    Path(foreign.log).write_text(LINE % (2, 2, EPOCH))
    assert "does not say which one was ours" in foreign.release(DEAD)
    secured = {"listener.security.protocol.map": "CONTROLLER:SASL_SSL"}
    assert "is SASL_SSL" in make_node(tmp_path / "d", ports, **secured).release(DEAD)
    assert leader.asked == other.asked == []


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
