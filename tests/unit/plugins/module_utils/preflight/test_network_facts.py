# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sockets, names, ports and addresses: on a made-up /proc, and real ones of this machine."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight import (
    network_facts as network,
)


@pytest.fixture(name="listener")
def _listener():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_holder_of_a_real_port(listener):
    holders = [each for each in network.port_holders([], []) if each["port"] == listener]
    assert [(each["address"], each["pid"], each["ours"]) for each in holders] == [
        ("127.0.0.1", os.getpid(), False)
    ]
    ours = [each for each in network.port_holders([os.getpid()], []) if each["port"] == listener]
    assert ours[0]["ours"] is True


def test_a_socket_that_is_closed_during_the_look_is_nobody_s(listener, monkeypatch):
    """A ZooKeeper that loses its quorum closes the port that a leader has; it was taken for a stranger's."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        look = network.socket_owners

        def closed_first(inodes, proc):
            server.close()
            return look(inodes, proc)

        monkeypatch.setattr(network, "socket_owners", closed_first)
        ports = {each["port"] for each in network.held_sockets()}
    assert listener in ports and port not in ports


def test_a_process_is_ours_by_its_command_line_too(listener):
    word = next(part for part in network.command_line(os.getpid()).split() if "/" in part)
    found = [
        each
        for each in network.port_holders([], [os.path.dirname(word)])
        if each["port"] == listener
    ]
    assert found[0]["ours"] is True


@pytest.mark.parametrize(
    "written, address",
    [
        ("0100007F", "127.0.0.1"),
        ("00000000", "0.0.0.0"),
        ("00000000000000000000000000000000", "::"),
        ("00000000000000000000000001000000", "::1"),
        ("0000000000000000FFFF00000100007F", "127.0.0.1"),
    ],
)
def test_addresses_of_proc_net(written, address):
    assert network._address(written) == address


def test_names_are_resolved_or_excused():
    def resolver(name):
        if name == "good":
            return [(2, 1, 6, "", ("192.0.2.1", 0)), (2, 1, 6, "", ("192.0.2.1", 0))]
        raise socket.gaierror(-2, "Name or service not known")

    answers = network.resolve_names(["bad", "good"], resolver=resolver)
    assert answers == {
        "good": {"addresses": ["192.0.2.1"], "error": None},
        "bad": {"addresses": [], "error": "Name or service not known"},
    }


def test_a_dead_name_server_does_not_hold_the_run():
    over = threading.Event()

    def resolver(name):
        over.wait()
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    answers = network.resolve_names(["slow"], 0.05, resolver=resolver)
    over.set()
    assert "no answer" in answers["slow"]["error"]


@pytest.mark.parametrize(
    "reserved, expected",
    [
        ("\n", []),
        ("9092,40000-40009\n", [[9092, 9092], [40000, 40009]]),
    ],
)
def test_ports_lent_to_connections_and_those_kept_back(tmp_path, reserved, expected):
    kernel = tmp_path / "sys" / "net" / "ipv4"
    kernel.mkdir(parents=True)
    (kernel / "ip_local_port_range").write_text("32768\t60999\n")
    (kernel / "ip_local_reserved_ports").write_text(reserved)
    assert network.ephemeral_ports(str(tmp_path)) == {
        "first": 32768,
        "last": 60999,
        "reserved": expected,
    }


def test_a_kernel_that_does_not_tell_lends_nothing(tmp_path):
    assert network.ephemeral_ports(str(tmp_path)) == {"first": 0, "last": 0, "reserved": []}


def test_this_kernel_lends_what_a_connection_gets(listener):
    lent = network.ephemeral_ports()
    with socket.create_connection(("127.0.0.1", listener)) as connection:
        assert lent["first"] <= connection.getsockname()[1] <= lent["last"]


def test_addresses_are_those_that_can_be_bound():
    found = network.local_addresses()
    assert "127.0.0.1" in found
    for address in found:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        if not address.startswith("fe80:"):  # bound with a scope only
            with socket.socket(family) as probe:
                probe.bind((address, 0))


def test_a_kernel_that_does_not_tell_has_no_addresses(tmp_path):
    assert network.local_addresses(str(tmp_path)) == []
