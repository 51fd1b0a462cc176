# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client's pure parts: settings, stakes, and the words for what went wrong."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
import types

import pytest

from ansible_collections.kafkaops.cluster.plugins.module_utils import _client_kafka
from ansible_collections.kafkaops.cluster.plugins.module_utils._argspec import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils._client_kafka import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._model import (
    Partition,
    Snapshot,
    Stake,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan import Change
from ansible_collections.kafkaops.cluster.plugins.module_utils._reach import Trouble, sentence
from ansible_collections.kafkaops.cluster.plugins.module_utils._stakes import estimate_stake

HERE = (("h", 9092), ("::1", 9093))


def test_plain_settings():
    settings = librdkafka_settings(Connection(HERE, sasl_password="x", ssl_key="y"))
    assert settings["bootstrap.servers"] == "h:9092,[::1]:9093"
    assert not [key for key in settings if key.startswith(("sasl", "ssl"))]


def test_pem_text_stays_in_memory_and_paths_stay_paths():
    text = "-----BEGIN CERTIFICATE-----"
    settings = librdkafka_settings(
        Connection(HERE, "SASL_SSL", "PLAIN", "u", "p", text, "/c.pem", text, "k", False)
    )
    assert settings["ssl.ca.pem"] == settings["ssl.key.pem"] == text
    assert settings["ssl.certificate.location"] == "/c.pem"
    assert settings["ssl.key.password"] == "k" and settings["sasl.password"] == "p"
    assert settings["ssl.endpoint.identification.algorithm"] == "none"


def test_secrets_of_the_second_client_leave_no_file(certificate_files, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    certificate, key = (path.read_text() for path in certificate_files)
    connection = Connection(HERE, "SSL", ssl_certificate=certificate, ssl_key=key)
    with _client_kafka._kafka_python_settings(connection) as settings:
        assert isinstance(settings["ssl_context"], ssl.SSLContext)
        (directory,) = tmp_path.iterdir()
        assert directory.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def certificate_files(tmp_path_factory):
    """A self-signed pair, as paths."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder(
            name, name, key.public_key(), 1, now, now.replace(year=now.year + 1)
        )
    ).sign(key, hashes.SHA256())
    directory = tmp_path_factory.mktemp("pair")
    pem = serialization.Encoding.PEM
    (directory / "c.pem").write_bytes(certificate.public_bytes(pem))
    (directory / "k.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return directory / "c.pem", directory / "k.pem"


# (first, end, first young or -1) of partitions, sizes, new ms, new bytes -> records, bytes
STAKES = [
    ([(0, 10, 4), (5, 10, -1)], [], 1000, None, Stake(9, 15, None, None)),
    ([(0, 10, 0)], [1000], 1000, None, Stake(0, 10, 0, 1000)),
    ([(0, 10, 5)], [1000], 1000, None, Stake(5, 10, 500, 1000)),
    ([(0, 10, -1)], [1000], None, 400, Stake(6, 10, 600, 1000)),
    ([(0, 10, 9)], [1000], 1000, 400, Stake(9, 10, 900, 1000)),
    ([(0, 10, -1)], [1000], -1, None, Stake(0, 10, 0, 1000)),
    ([(0, 10, -1)], [1000], None, -1, Stake(0, 10, 0, 1000)),
    ([(0, 0, -1)], [0], 1000, 400, Stake(0, 0, 0, 0)),
    # The log begins after the border already.
    ([(7, 10, 3)], [], 1000, None, Stake(0, 3, None, None)),
    (None, [1000], 1000, None, Stake(None, None, 0, 1000)),
    ([(0, 10, -1)], [], None, 400, Stake(None, 10, None, None)),
]


@pytest.mark.parametrize("offsets, sizes, retention_ms, retention_bytes, stake", STAKES)
def test_stakes(offsets, sizes, retention_ms, retention_bytes, stake):
    assert estimate_stake(offsets, sizes, retention_ms, retention_bytes) == stake


FAIL = "FAIL [rdkafka#producer-1] [thrd:h:9092/bootstrap]: h:9092/bootstrap: "
CLOSED = "Disconnected: connection closed by peer: receive 0 after POLLIN (after 1ms in state UP)"
NOT_TLS = (
    "ssl://h:9092/bootstrap: SSL handshake failed: Disconnected: SSL connection closed by peer: "
    "connecting to a PLAINTEXT broker listener? (after 1ms in state SSL_HANDSHAKE)"
)
# the same, where the connection's end was seen before its language
CLOSED_TLS = "Disconnected: SSL connection closed by peer (after 9ms in state X)"
UNTRUSTED = (
    "ssl://h:9092/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify "
    "failed: broker certificate could not be verified (after 49ms in state SSL_HANDSHAKE)"
)
LOGIN = (
    "sasl_plaintext://h:9092/bootstrap: SASL authentication error: Authentication failed: Invalid "
    "username or password (after 313ms in state AUTH_REQ)"
)
MECHANISM = (
    "sasl_plaintext://h:9092/bootstrap: SASL SCRAM-SHA-256 mechanism handshake failed: Broker: "
    "Unsupported SASL mechanism: broker's supported mechanisms: PLAIN (after 300ms in state X)"
)
NO_SASL = (
    "sasl_plaintext://h:9092/bootstrap: SASL PLAIN mechanism handshake failed: Broker: Request not "
    "valid in current SASL state: broker's supported mechanisms:  (after 1ms in state X)"
)


def kafka_error(name, text=""):
    """What librdkafka hands to its error callback."""
    return types.SimpleNamespace(name=lambda: name, str=lambda: text)


# Recorded from librdkafka 2.16.0 against Kafka 3.9.2 and 4.3.1.
VERDICTS = [
    ([], [], None),
    ([], [CLOSED], None),
    ([], [CLOSED] * 3, "closed"),
    ([], [CLOSED_TLS] * 2, None),
    ([], [CLOSED_TLS] * 3, "closed"),
    ([("_SSL", UNTRUSTED)], [CLOSED_TLS] * 3, "certificate"),
    ([("_TRANSPORT", NOT_TLS)], [], "not_tls"),
    ([("_SSL", UNTRUSTED)], [], "certificate"),
    ([("_SSL", "ssl://h:9092/bootstrap: SSL handshake failed: alert")], [], "tls_failed"),
    ([("_AUTHENTICATION", LOGIN)], [], "credentials"),
    ([("_AUTHENTICATION", MECHANISM)], [], "mechanism"),
    ([("_AUTHENTICATION", NO_SASL)], [], "not_sasl"),
    ([("_ALL_BROKERS_DOWN", "1/1 brokers are down")], [], None),
]


@pytest.mark.parametrize("errors, lines, verdict", VERDICTS)
def test_verdicts(errors, lines, verdict):
    trouble = Trouble()
    for name, text in errors:
        trouble.error(kafka_error(name, text))
    for line in lines:
        trouble.handle(logging.makeLogRecord({"msg": FAIL + line}))
    assert trouble.verdict(kafka_error("_TRANSPORT")) == verdict
    assert "bootstrap" not in trouble.last and "after" not in trouble.last.split("POLLIN")[-1]


def test_a_controller_is_told_by_the_answer():
    assert Trouble().verdict(kafka_error("_UNSUPPORTED_FEATURE")) == "controller"


@pytest.mark.parametrize(
    "verdict, words",
    [
        (None, "unreachable: no Kafka broker answered at h:9092 within 30 s: told."),
        ("not_tls", "wrong protocol: h:9092 does not speak TLS"),
        ("credentials", "wrong credentials: h:9092 refuses user u by PLAIN: told."),
        ("certificate", "certificate not trusted: h:9092: told."),
    ],
)
def test_sentences_name_the_address(verdict, words):
    connection = Connection((("h", 9092),), "SASL_SSL", "PLAIN", "u", "secret")
    text = sentence(connection, verdict, "told")
    assert words in text and "secret" not in text and text.endswith(".") and "\n" not in text


def test_who_closes_at_once_is_asked_for_its_language():
    """A listener without TLS, which takes the client's first words for a size that cannot be."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()

        def close_each():
            with contextlib.suppress(OSError):  # the end of the test
                while True:
                    client = server.accept()[0]
                    client.recv(1024)
                    client.close()

        threading.Thread(target=close_each, daemon=True).start()
        text = sentence(Connection((address,), "SSL"), "closed", "told")
    assert "does not speak TLS" in text


def view(*partitions):
    """A snapshot with the topic `t`."""
    topics = {"t": Topic("t", tuple(partitions))} if partitions else {}
    return Snapshot(topics=topics)


LED, LEADERLESS = Partition(0, 1, (1,), (1,)), Partition(1, None, (1,), ())


@pytest.mark.parametrize(
    "kind, after, seen, waits",
    [
        ("create", {"partitions": 1}, view(), True),
        ("create", {"partitions": 1}, view(LED), False),
        ("create", {"partitions": 2}, view(LED), True),
        ("create", {"partitions": 2}, view(LED, LEADERLESS), True),
        ("create", {"partitions": None}, view(LED), False),
        ("grow", {"partitions": 2}, view(LED), True),
        ("delete", {}, view(LED), True),
        ("delete", {}, view(), False),
        ("configure", {"config": {}}, view(LED), False),
    ],
)
def test_what_is_waited_for(kind, after, seen, waits):
    assert bool(_client_kafka._waiting(seen, [Change(kind, "t", {}, after)])) is waits
