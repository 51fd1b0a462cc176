# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports are listened on before a start, and who tries them."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from contextlib import closing, suppress

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.seen_from import (
    before_start,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.listening import (
    attempts_of,
    ports_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.network_facts import (
    port_holders,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.stand_in import (
    end,
    stand_in,
    tried,
    tried_for,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until
from tests.local.certificates import make_certificates
from tests.unit.plugins.module_utils.preflight import good_inventory as ground

CLUSTER = "orders-prod"


def ports(tmp_path, of_kafka=None, facts=None, **variables):
    """{(host, what): (bind, port, address, callers)} of the good inventory."""
    groups = {"kafka": {"vars": of_kafka or {}}, **variables.pop("children", {})}
    overlay = {"all": {"vars": variables, "children": groups}}
    listed = ground.verdict_of(
        ground.merge(ground.good(), overlay), tmp_path, facts, unprotected=True
    ).result["listening"][CLUSTER]
    return {
        (each["host"], each["what"]): (
            each["bind"],
            each["port"],
            each["address"],
            each["callers"],
        )
        for each in listed
    }


def alive(*hosts, product):
    """Facts by which the instances of these hosts run."""
    return {host: {f"{product}/started/alive": True} for host in hosts}


LISTENERS = [
    {"name": "INSIDE", "port": 9091, "bind": "192.0.2.21", "audience": ["brokers"]},
    {"name": "ADMIN", "port": 9090, "audience": ["admin"]},
    {
        "name": "OUTSIDE",
        "port": 9092,
        "advertised": "kafka.example.com",
        "audience": ["brokers", "clients"],
    },
    {"name": "PARTNERS", "port": 9094, "advertised": "198.51.100.7", "audience": ["partners"]},
]


def test_nodes_need_the_listener_by_which_controllers_command_brokers(tmp_path):
    wanted = {"kafka_listeners": LISTENERS, "kafka_inter_broker_listener": "INSIDE"}
    wanted["kafka_config"] = {"control.plane.listener.name": "PARTNERS"}
    assert ports(tmp_path, wanted)["kafka-1", "listener PARTNERS"][-1] == ["nodes", "clients"]


def test_each_port_has_those_who_need_it(tmp_path):
    found = ports(tmp_path, {"kafka_listeners": LISTENERS, "kafka_inter_broker_listener": "INSIDE"})
    kafka = {what: each for (host, what), each in found.items() if host == "kafka-1"}
    assert kafka == {
        "listener INSIDE": ("192.0.2.21", 9091, "192.0.2.21", ["nodes", "admin"]),
        "listener OUTSIDE": ("", 9092, "kafka.example.com", ["clients"]),
        "listener PARTNERS": ("", 9094, "198.51.100.7", ["clients"]),
    }
    servers = {what: each[1:] for (host, what), each in found.items() if host == "zookeeper-1"}
    assert servers == {
        "ZooKeeper's port for clients": (2181, "192.0.2.11", ["nodes", "admin"]),
        "ZooKeeper's port for followers": (2888, "192.0.2.11", ["servers"]),
        "ZooKeeper's port for elections": (3888, "192.0.2.11", ["servers"]),
    }


def test_a_lone_server_has_no_quorum_and_a_controller_has_its_port(tmp_path):
    alone = {"zookeeper": {"hosts": {"zookeeper-2": None, "zookeeper-3": None}}}
    found = ports(tmp_path, children=alone)
    assert [what for host, what in found if host == "zookeeper-1"] == [
        "ZooKeeper's port for clients"
    ]
    voters = {"controllers": {"hosts": dict.fromkeys(("kafka-1", "kafka-2", "kafka-3"), {})}}
    kraft = {"kafka_metadata": "kraft", "kafka_version": "4.3.1", "kafka_controller_bind": "::1"}
    found = ports(tmp_path, {**kraft, "kafka_address": "192.0.2.9"}, children=voters)
    assert found["kafka-2", "the controller's port"] == ("::1", 9093, "192.0.2.9", ["nodes"])


def test_what_runs_is_left_alone(tmp_path):
    facts = {**alive("kafka-1", product="kafka"), **alive("zookeeper-2", product="zookeeper")}
    assert {host for host, _what in ports(tmp_path, facts=facts)} == {
        *("kafka-2", "kafka-3", "zookeeper-1", "zookeeper-3")
    }
    everything = {
        **alive("kafka-1", "kafka-2", "kafka-3", product="kafka"),
        **alive("zookeeper-1", "zookeeper-2", "zookeeper-3", product="zookeeper"),
    }
    assert not ports(tmp_path, facts=everything)


def test_what_is_new_to_a_cluster_has_to_reach_what_runs(tmp_path):
    """A broker that cannot connect to the others registers all the same, and copies nothing."""
    running = {"started/alive": True, "started/recorded": True}
    facts = {}
    for number in (1, 2):
        facts[f"kafka-{number}"] = {f"kafka/{each}": running[each] for each in running}
        facts[f"kafka-{number}"]["ports"] = [
            {"address": "::", "port": 9092, "pid": 7, "command": "java", "ours": number == 1}
        ]
    facts["zookeeper-1"] = {"zookeeper/started/recorded": True}

    def listed(more):
        result = ground.verdict_of(
            ground.good(), tmp_path, {**facts, **more}, unprotected=True
        ).result["listened"][CLUSTER]
        return [(each["host"], each["port"], each["callers"], each["newcomers"]) for each in result]

    # of kafka-2 another process has the port
    (found,) = listed({})
    assert found[:2] == ("kafka-1", 9092) and "nodes" in found[2]
    assert found[3] == ["kafka-3", "zookeeper-2", "zookeeper-3"]
    stopped = {"zookeeper/started/recorded": True}
    ran = {"kafka-3": {"kafka/started/recorded": True}}
    ran.update({"zookeeper-2": stopped, "zookeeper-3": stopped})
    assert not listed(ran)


def port(host, number, what, *callers, bind="", audience=("clients",)):
    """One port of a cluster."""
    return {
        "audience": list(audience),
        "host": host,
        "what": what,
        "bind": bind,
        "port": number,
        "address": f"{host}.example.com",
        "callers": list(callers),
    }


PORTS = [
    port("a", 9091, "listener INSIDE", "nodes", bind="192.0.2.1"),
    port("b", 9091, "listener INSIDE", "nodes"),
    port("b", 9092, "listener OUTSIDE", "clients"),
    port("z", 2181, "ZooKeeper", "nodes"),
    port("z", 2888, "ZooKeeper", "servers"),
]


def test_a_stand_in_listens_on_each_port_of_its_host_once():
    clusters = {"one": PORTS, "other": [port("b", 9092, "again", "clients")]}
    assert ports_of(clusters, "a") == [{"port": 9091, "bind": "192.0.2.1"}]
    assert ports_of(clusters, "b") == [{"port": 9091, "bind": ""}, {"port": 9092, "bind": ""}]
    assert not ports_of(clusters, "c")


@pytest.mark.parametrize(
    "host, kinds, standing, wanted",
    [
        ("a", {"nodes"}, {"a": [9091], "b": [9091, 9092], "z": [2181]}, ["b:9091", "z:2181"]),
        ("a", {"nodes"}, {"z": [2888]}, []),
        ("z", {"servers"}, {"z": [2888]}, []),
        ("y", {"servers"}, {"z": [2888, 2181]}, ["z:2888"]),
        ("app", {"clients"}, {"a": [9091], "b": [9091, 9092]}, ["b:9092"]),
        ("a", {"nodes", "clients"}, {"b": [9092, 9091]}, ["b:9091", "b:9092"]),
        ("a", set(), {"b": [9092]}, []),
    ],
)
def test_a_host_tries_what_it_needs_of_others_where_a_stand_in_is(host, kinds, standing, wanted):
    found = attempts_of(PORTS, host, kinds, standing)
    assert [f"{each['name']}:{each['port']}" for each in found] == wanted
    assert all(each["address"] == f"{each['name']}.example.com" for each in found)


@pytest.mark.parametrize(
    "host, kinds, standing, wanted",
    [
        ("c", {"nodes"}, {"c": [9091]}, ["b:9091"]),
        # who is not about to start, or has run before, tries nothing of it
        ("c", {"nodes"}, {}, []),
        ("a", {"nodes"}, {"a": [9091]}, []),
        ("c", {"servers"}, {"c": [2888]}, ["z:2888"]),
    ],
)
def test_a_newcomer_tries_what_runs(host, kinds, standing, wanted):
    running = [{**each, "newcomers": ["c"]} for each in PORTS if each["host"] in ("b", "z")]
    found = attempts_of([each for each in running if each["port"] != 2181], host, kinds, standing)
    assert [f"{each['name']}:{each['port']}" for each in found] == wanted
    assert all(each["runs"] for each in found)


@pytest.mark.parametrize(
    "kinds, audiences, wanted",
    [
        ({"clients"}, (), [9092, 9094]),
        ({"clients"}, ["clients"], [9092]),
        ({"clients"}, ["partners"], [9094]),
        # what brokers need of each other is no matter of their clients
        ({"nodes", "clients"}, ["clients"], [9092, 9094]),
    ],
)
def test_a_host_of_clients_tries_what_is_for_its_audiences(kinds, audiences, wanted):
    listed = [
        port("b", 9092, "listener OUTSIDE", "nodes", "clients"),
        port("b", 9094, "listener PARTNERS", "nodes", "clients", audience=["partners"]),
    ]
    found = attempts_of(listed, "app", kinds, {"b": [9092, 9094]}, audiences)
    assert [each["port"] for each in found] == wanted
    # whose listener it is counts where it is tried for clients alone
    told = {"listener OUTSIDE": ["clients"], "listener PARTNERS": ["partners"]}
    for each in found:
        assert each["audience"] == ([] if "nodes" in kinds else told[each["what"]])


def test_the_audience_of_a_listener_is_known_to_those_who_try_it(tmp_path):
    wanted = {"kafka_listeners": LISTENERS, "kafka_inter_broker_listener": "INSIDE"}
    overlay = {"all": {"children": {"kafka": {"vars": wanted}}}}
    listed = ground.verdict_of(ground.merge(ground.good(), overlay), tmp_path).result["listening"]
    of_first = {
        each["what"]: each["audience"] for each in listed[CLUSTER] if each["host"] == "kafka-1"
    }
    assert of_first["listener PARTNERS"] == ["partners"]
    assert of_first["listener OUTSIDE"] == ["brokers", "clients"]


# ---------------------------------------------------------------- real sockets


def free_ports(number):
    """Ports of the loopback that nobody listens on."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    found = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return found


@pytest.fixture
def standing():
    """A function that starts a stand-in for kafka-1; what is left of it ends with the test."""
    started = []

    def start(*numbers, seconds=30.0):
        asked = [{"port": number, "bind": "127.0.0.1"} for number in numbers]
        process, listening, refused = stand_in("kafka-1", asked, seconds)
        started.append(process)
        return process, listening, refused

    yield start
    for process in filter(None, started):
        with suppress(ProcessLookupError):
            end(process)


def test_a_stand_in_says_which_host_it_is_on_and_ends_when_told(standing):
    one, other = free_ports(2)
    process, listening, refused = standing(one, other)
    assert (listening, refused) == (sorted([one, other]), [])
    assert tried("kafka-1", "127.0.0.1", one, 5) == ("", "")
    assert tried("kafka-2", "localhost", other, 5) == ("broker", f"port {other} of kafka-1 answers")
    assert end(process) is True and end(process) is False
    assert tried("kafka-1", "127.0.0.1", one, 5) == ("port", "Connection refused")
    # the broker that comes next gets the port at once
    with closing(socket.socket()) as broker:
        broker.bind(("127.0.0.1", one))


def test_a_port_that_somebody_holds_is_not_taken_and_its_holder_not_ended(standing):
    (free,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as held:
        number = held.getsockname()[1]
        process, listening, refused = standing(number, free)
        assert listening == [free] and process
        assert refused == [{"port": number, "reason": "Address already in use"}]
        nobody, listening, refused = standing(number)
        assert nobody is None and not listening and refused
        step, words = tried("kafka-1", "127.0.0.1", number, 0.3)
        assert step == "protocol" and "nothing comes after the connection" in words


def test_what_a_killed_run_has_left_is_no_stranger_and_is_ended_by_the_next(standing):
    (number,) = free_ports(1)
    left, _listening, _refused = standing(number)
    assert number not in {each["port"] for each in port_holders([], [])}
    process, listening, refused = standing(number)
    assert listening == [number] and not refused and process["pid"] != left["pid"]
    assert end(left) is False


def test_a_stand_in_ends_by_itself(standing):
    (number,) = free_ports(1)
    process, _listening, _refused = standing(number, seconds=0.2)
    assert wait_until(lambda: start_ticks(process["pid"]) is None, 30)


def test_another_process_is_never_ended():
    own = {"pid": os.getpid(), "start_ticks": 1}
    assert end(own) is False


def test_what_would_not_be_reached_is_said_with_its_remedy():
    attempt = {"name": "kafka-1", "what": "listener INSIDE", "address": "::1", "port": 9091}
    lines = [
        each.line()
        for each in before_start(
            "kafka-2", [(attempt, "port", "timed out"), (attempt, "", ""), (attempt, "name", "no")]
        )
    ]
    assert lines[0].startswith(
        "[reach.port] kafka-2: listener INSIDE of kafka-1=[::1]:9091: timed out. Remedy: let this host"
    )
    assert len(lines) == 2 and lines[1].startswith("[reach.name]")
    assert "kafka_client_audiences" not in lines[0] + lines[1]


def test_another_port_of_the_right_host_is_another_listener():
    attempt = {"name": "kafka-1", "what": "listener PARTNERS", "address": "::1", "port": 9094}
    words = "port 9091 of kafka-1 answers"
    (found,) = before_start("p", [({**attempt, "audience": ["partners"]}, "listener", words)])
    assert found.line() == (
        f"[reach.listener] p: listener PARTNERS of kafka-1=[::1]:9094: {words}. "
        "Remedy: correct the port mapping: it leads to another listener of this broker."
    )
    (found,) = before_start(
        "p", [({**attempt, "audience": ["partners"]}, "port", "Connection refused")]
    )
    assert "the audience partners, name the audiences of this host" in found.line()


def test_a_voter_that_is_not_reached_has_a_remedy_of_its_own():
    attempt = {"name": "c-1", "what": "the controller's port", "address": "c-1.x.com", "port": 9093}
    (found,) = before_start("c-2", [({**attempt, "votes": True}, "port", "Connection refused")])
    assert found.line().startswith(
        "[voters.unreachable] c-2: the controller's port of c-1=c-1.x.com:9093: Connection refused."
    )
    assert "--limit c-1," in found.remedy and "kafka_controller_bind" in found.remedy
    assert "kafka_accept_unavailable=all" in found.remedy
    # Others than site.yml change voters, and refuse it until they have ended.
    assert "run the same command again" in found.remedy


@pytest.mark.parametrize(
    ("answers", "seconds", "expected", "slept"),
    [
        (["port", "port", ""], 10, ("", ""), 2),
        (["port"] * 20, 3, ("port", "no"), 3),
        (["port", ""], 0, ("port", "no"), 0),
        ([""], 10, ("", ""), 0),
    ],
)
def test_a_lost_moment_is_tried_again(answers, seconds, expected, slept):
    now = [0.0]
    left = iter(answers)

    def attempt():
        step = next(left)
        return step, "no" if step else ""

    def sleep(some):
        now[0] += some

    assert tried_for(attempt, seconds, lambda: now[0], sleep) == expected and now[0] == slept


@pytest.mark.parametrize(
    ("speaks_tls", "authority", "step"),
    [
        (True, "ca.crt", ""),
        # of an authority that this node does not trust
        (True, "other/ca.crt", "certificate"),
        # whether it speaks TLS at all is another question, and so is a file that is not there
        (False, "ca.crt", ""),
        (True, "nowhere.crt", ""),
    ],
)
def test_the_certificate_of_what_runs_is_of_an_authority_that_is_trusted(
    tmp_path, speaks_tls, authority, step
):
    (tmp_path / "other").mkdir()
    for folder in (tmp_path, tmp_path / "other"):
        make_certificates(folder, ["one"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "one.crt", tmp_path / "one.key")
    # the nodes show theirs; who shows none has seen that of the other end before it is turned away
    context.load_verify_locations(tmp_path / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _address = server.accept()
            with suppress(OSError), connection:
                if speaks_tls:
                    context.wrap_socket(connection, server_side=True).close()
                else:
                    connection.recv(10)

        thread = threading.Thread(target=answer)
        thread.start()
        port = server.getsockname()[1]
        path = str(tmp_path / authority)
        assert tried("c-1", "127.0.0.1", port, 5, runs=True, authorities=path)[0] == step
        thread.join(10)
