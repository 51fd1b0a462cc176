# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unreachable, wrong protocol, wrong credentials: one sentence that says which, with the address."""

from __future__ import annotations

import socket

import pytest

from tests.support.outside import free_port
from tests.support.run_module import Modules, run_module

LOGIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "admin",
    "sasl_password": "correct horse",
}


def test_nobody_listens(modules, name):
    """Refused connections are not waited for."""
    address = f"127.0.0.1:{free_port()}"
    result = modules.topics([{"name": name}], bootstrap_servers=address)
    assert result.failed and not result.changed
    assert result.msg.startswith(
        f"[connection.unreachable] {address}: unreachable: Connection refused. Remedy: "
    )


def test_one_address_of_several_is_enough(modules, name, cluster):
    """A dead first address does not matter."""
    servers = f"127.0.0.1:{free_port()},{cluster.bootstrap_servers}"
    assert modules.topics([{"name": name}], bootstrap_servers=servers).changed


def test_name_that_does_not_resolve(modules, name):
    """The name is in the sentence."""
    result = modules.topics([{"name": name}], bootstrap_servers="no-such-host.invalid:9092")
    assert "no-such-host.invalid:9092: unreachable: the name does not resolve" in result.msg


def test_silence_ends_at_the_timeout(modules, name):
    """A port that accepts and never answers."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(50)
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        result = modules.topics([{"name": name}], bootstrap_servers=address, timeout=2)
    assert (
        result.failed
        and "unreachable: no Kafka broker answered" in result.msg
        and address in result.msg
    )
    assert "2 s" in result.msg


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "http://127.0.0.1:9092", "127.0.0.1:99999", "a b:1", ","]
)
def test_address_of_another_form(modules, name, address):
    """S10: host:port, nothing else."""
    result = modules.topics([{"name": name}], bootstrap_servers=address)
    assert result.failed and "[bootstrap_servers.form]" in result.msg and "host:port" in result.msg


WRONG = [
    ("plain to TLS", "TLS", {}, "{address}: wrong protocol: it speaks TLS, not PLAINTEXT"),
    ("plain to SASL", "LOGIN", {}, "the listener wants SASL"),
    ("TLS to plain", None, {"security_protocol": "SSL"}, "does not speak TLS"),
    ("SASL to plain", None, LOGIN, "wants no SASL"),
    (
        "wrong password",
        "LOGIN",
        {**LOGIN, "sasl_password": "battery staple"},
        "{address}: wrong credentials: it refuses user admin by PLAIN",
    ),
    (
        "wrong mechanism",
        "LOGIN",
        {**LOGIN, "sasl_mechanism": "SCRAM-SHA-256"},
        "does not offer the mechanism SCRAM-SHA-256",
    ),
    ("unknown authority", "TLS", {"security_protocol": "SSL"}, "certificate not trusted"),
]


@pytest.mark.parametrize(
    "listener, options, words", [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_what_is_wrong_is_said(modules, cluster, name, listener, options, words):
    """Long before the timeout, which is 20 s here."""
    address = (
        cluster.listener_address(listener) if listener else cluster.bootstrap_servers.split(",")[0]
    )
    result = modules.topics([{"name": name}], bootstrap_servers=address, **options)
    assert result.failed and not result.changed
    assert words.format(address=address) in result.msg and address in result.msg
    assert "\n" not in result.msg
    assert "battery staple" not in str(result.values)


def test_a_zookeeper_is_not_a_broker(modules, cluster, name):
    """A frequent mistake: the port of the wrong product."""
    address = cluster.zookeeper_connect.split(",")[0]
    result = modules.topics([{"name": name}], bootstrap_servers=address)
    assert "wrong protocol" in result.msg and "not Kafka's" in result.msg


def test_a_kraft_controller_is_not_a_broker(kraft, name):
    """The same for the controller's listener of a KRaft node."""
    address = f"127.0.0.1:{kraft.port_base + 41}"
    result = Modules(address).topics([{"name": name}])
    assert result.failed and "KRaft controller" in result.msg and address in result.msg


def test_login_works(modules, cluster, name):
    """With the right password; the user's name is no secret, the password is."""
    address = cluster.listener_address("LOGIN")
    result = modules.topics([{"name": name}], bootstrap_servers=address, **LOGIN)
    assert result.changed
    assert "correct horse" not in str(result.values)


@pytest.mark.parametrize("form", ["text", "path"])
def test_tls_with_text_and_with_a_path(modules, cluster, certificate, name, tmp_path, form):
    """PEM text is enough; a deletion also goes through the second client."""
    authority = certificate.certificate
    if form == "path":
        (tmp_path / "ca.pem").write_text(authority)
        authority = str(tmp_path / "ca.pem")
    options = {
        "bootstrap_servers": cluster.listener_address("TLS"),
        "security_protocol": "SSL",
        "ssl_ca": authority,
    }
    assert modules.topics([{"name": name}], **options).changed
    gone = modules.topics([{"name": name, "state": "absent"}], allow=["delete"], **options)
    assert gone.changed and "0 B" in gone.plan["changes"][0]["note"]
    # All of this module goes through it.
    quota = {"user": name, "client_id": name, "limits": {"producer_byte_rate": 104101}}
    for changed in (True, False):
        assert run_module("kafka_quotas", {**options, "quotas": [quota]}).changed is changed
    absent = {"user": name, "client_id": name, "state": "absent"}
    assert run_module("kafka_quotas", {**options, "quotas": [absent]}).changed


def test_settings_that_cannot_be(modules, cluster, name):
    """A file that is not there."""
    result = modules.topics(
        [{"name": name}],
        bootstrap_servers=cluster.listener_address("TLS"),
        security_protocol="SSL",
        ssl_ca="/nowhere/ca.pem",
    )
    assert result.failed
    assert "[options.file] ssl_ca=/nowhere/ca.pem: there is no such file. Remedy:" in result.msg


def test_sasl_needs_credentials(modules, name):
    """Said before anything is tried."""
    result = modules.topics([{"name": name}], security_protocol="SASL_PLAINTEXT")
    assert result.failed and "sasl_mechanism" in result.msg


def test_environment_fills_the_gaps(modules, cluster, name, monkeypatch):
    """Each connection option has a variable."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
    assert run_module("kafka_topics", {"topics": [{"name": name}]}).changed


def test_before_the_first_installation(modules, name):
    """Check mode plans against an empty cluster; a real run does not pretend."""
    address = f"127.0.0.1:{free_port()}"
    options = {"bootstrap_servers": address, "assume_empty_if_unreachable": True}
    items = [{"name": name, "partitions": 2, "replication_factor": 3}]
    planned = modules.topics(items, check=True, expected_brokers=3, **options)
    assert planned.changed and planned.kinds == [("create", name)]
    assert "empty cluster" in str(planned.warnings)
    small = modules.topics(items, check=True, expected_brokers=1, **options)
    assert small.checks == [("replication.exceeds_brokers", name)]
    assert modules.topics(items, expected_brokers=3, **options).failed


def test_wrong_credentials_are_not_an_empty_cluster(modules, cluster, name):
    """Something is there: planning against nothing would be a lie."""
    result = modules.topics(
        [{"name": name}],
        check=True,
        bootstrap_servers=cluster.listener_address("LOGIN"),
        assume_empty_if_unreachable=True,
    )
    assert result.failed and "wrong protocol" in result.msg
