# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a client's host sees of real brokers: as it should be, and through mappings that lead elsewhere."""

from __future__ import annotations

import socket
import threading

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.wire import look
from tests.support.lying_proxy import LyingProxy
from tests.support.run_module import run_module
from tests.support.secured_cluster import LISTENER, PASSWORDS


def login(user="admin", mechanism="PLAIN", password=""):
    return {
        "sasl_mechanism": mechanism,
        "sasl_username": user,
        "sasl_password": password or PASSWORDS[user],
    }


def target(cluster, broker=1, address="", protocol="SASL_PLAINTEXT"):
    host, _colon, port = (address or cluster.bare.listener_address(LISTENER, broker)).rpartition(
        ":"
    )
    return {
        "listener": LISTENER,
        "protocol": protocol,
        "broker": broker,
        "name": f"kafka-{broker}",
        "host": host,
        "port": int(port),
    }


def probe(cluster, *targets, **options):
    """(what is wrong, brokers whose identity is not known)."""
    options = {
        "host": "app-1",
        "targets": list(targets),
        "login": login(),
        "timeout": 10,
        **options,
    }
    result = run_module("listener_probe", options)
    assert not result.failed, result.msg
    return result.problems, result.unknown


def told(broker, address, check):
    return f"[{check}] app-1: listener {LISTENER} of kafka-{broker}={address}: "


def test_nothing_is_wrong_with_brokers_that_announce_their_addresses(secured):
    every = [target(secured, i + 1) for i in range(secured.bare.brokers)]
    cluster_id = secured.run("kafka_cluster_info").cluster_id
    assert probe(secured, *every, cluster_id=cluster_id) == ([], [])


def test_a_mapping_that_leads_to_another_broker(on_zookeeper):
    """And clients are told another address than the mapping's."""
    listen = ("127.0.0.1", on_zookeeper.bare.port_base + 95)
    host, _colon, port = on_zookeeper.bare.listener_address(LISTENER, 2).rpartition(":")
    with LyingProxy(listen=listen, broker=(host, int(port))):
        found, _unknown = probe(on_zookeeper, target(on_zookeeper, 1, f"127.0.0.1:{listen[1]}"))
    head = f"127.0.0.1:{listen[1]}"
    assert found[0].startswith(f"{told(1, head, 'reach.broker')}broker 2 answers, not broker 1. ")
    real = on_zookeeper.bare.listener_address(LISTENER, 1)
    assert found[1].startswith(
        f"{told(1, head, 'reach.advertised')}clients are told {real} for broker 1. "
    )


def test_another_cluster(secured):
    (found,), _unknown = probe(secured, target(secured), cluster_id="elsewhere")
    assert "another cluster answers, " in found and "not elsewhere" in found


def test_who_may_not_ask_reaches_brokers_whose_identity_is_not_known(secured):
    assert probe(secured, target(secured), login=login("team")) == ([], [1])


@pytest.mark.parametrize(
    "who, words",
    [
        (login(password="wrong"), "Authentication failed"),
        (login(mechanism="SCRAM-SHA-512"), "credentials"),  # a user of PLAIN alone
    ],
)
def test_a_login_that_is_refused(on_zookeeper, who, words):
    (found,), _unknown = probe(on_zookeeper, target(on_zookeeper), login=who)
    assert "[reach.login] " in found and words in found


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login_by_scram(secured, name, mechanism):
    password = "a,b=c"
    user = {"name": f"{name},=", "password": password, "mechanisms": [mechanism]}
    made = secured.run("kafka_users", users=[{**user, "iterations": 4096}])
    assert not made.failed, made.msg
    who = {**login(mechanism=mechanism, password=password), "sasl_username": user["name"]}
    assert probe(secured, target(secured), login=who) == ([], [1])


def test_nobody_there_and_names_that_do_not_resolve(on_zookeeper):
    free = on_zookeeper.bare.port_base + 96
    found, _unknown = probe(
        on_zookeeper,
        target(on_zookeeper, 1, f"127.0.0.1:{free}"),
        target(on_zookeeper, 2, "no-such-host.invalid:9092"),
    )
    assert found[0].startswith(f"{told(1, f'127.0.0.1:{free}', 'reach.port')}Connection refused. ")
    assert "[reach.name] " in found[1] and "the name does not resolve" in found[1]


def test_a_broker_without_tls_where_tls_is_expected(on_zookeeper):
    (found,), _unknown = probe(on_zookeeper, target(on_zookeeper, protocol="SASL_SSL"))
    assert "[reach.certificate] " in found and "it does not speak TLS" in found


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\4\0\0\0\0"])
def test_something_else_answers(answer):
    """A web server, or a forwarder without anybody behind it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def once():
            connection, _address = server.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(answer)

        threading.Thread(target=once, daemon=True).start()
        seen = look("127.0.0.1", server.getsockname()[1], 1, "PLAINTEXT", {}, 5)
    assert seen.failed == "protocol" and seen.detail
