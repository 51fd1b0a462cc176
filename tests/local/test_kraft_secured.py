# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""KRaft mode with TLS, passwords and an authorizer, and a controller on a node of its own: closed from its start."""

from __future__ import annotations

import re
import secrets
import socket
import struct

import pytest

from tests.local.certificates import make_certificates
from tests.local.support import LocalCluster, Unsafe

INVENTORY = "tests/local/inventories/secured-kraft"
USERS = ("broker", "admin", "alice")
SCRAM = "SCRAM-SHA-512"


def _secured(cluster, version):
    """Give the cluster its certificates and passwords; nothing is deployed yet."""
    passwords = {user: secrets.token_urlsafe(9) + " \"$\\'#=,[]:{{" + user for user in USERS}
    folder = cluster.overlay / "certificates"
    folder.mkdir()
    make_certificates(folder, [*cluster.brokers, *cluster.controllers])
    cluster.configure("all", kafka_version=version)
    for group in ("kafka", "controllers"):
        told = {user: Unsafe(text) for user, text in passwords.items()}
        cluster.configure(
            group,
            secured_certificates=str(folder),
            secured_passwords=told,
            kafka_sasl={
                "mechanisms": [SCRAM],
                "inter_broker_user": "broker",
                "inter_broker_password": told["broker"],
                "users": {user: told[user] for user in ("admin", "alice")},
            },
            kafka_client_security={
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": SCRAM,
                "sasl_username": "admin",
                "sasl_password": told["admin"],
                "ssl_ca": "{{ kafka_ssl.ca }}",
            },
        )
    cluster.client_settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": SCRAM,
        "sasl.username": "admin",
        "sasl.password": passwords["admin"],
        "ssl.ca.location": str(folder / "ca.crt"),
    }
    return passwords


def _answers(port):
    """What a port says to a request in clear (ApiVersions), b"" where it closes."""
    body = struct.pack(">hhih", 18, 0, 1, -1)
    with socket.create_connection(("127.0.0.1", port), 10) as channel:
        channel.settimeout(20)
        channel.sendall(struct.pack(">i", len(body)) + body)
        try:
            # A TLS alert is what an honest answer of Kafka never begins with.
            return channel.recv(64)
        except ConnectionError:
            return b""


@pytest.mark.parametrize(
    ("version", "rolls"),
    [
        ("4.3.1", False),
        pytest.param("4.3.1", True, marks=pytest.mark.soak),
        pytest.param("3.9.2", True, marks=pytest.mark.soak),
    ],
)
def test_closed_from_the_start(next_offset, version, rolls):
    """site.yml ends with a verdict through the doors that everybody has to use; others get nowhere."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    with LocalCluster(next_offset(), inventory=INVENTORY) as cluster:
        passwords = _secured(cluster, version)
        run = cluster.deploy(
            *("-vvv", "--diff", "-e", "flow_validation_records=3000"), validation="always"
        )
        assert "PASS: 3,000 acknowledged records came back" in run.text, run.text[-5000:]
        for text in passwords.values():
            assert text not in run.text
            assert text.replace("\\", "\\\\") not in run.text
        processes = cluster.processes()
        assert cluster.deploy().changed() == 0 and cluster.processes() == processes

        alice = {**cluster.client_settings, "sasl.username": "alice"}
        for name, settings, error in (
            ("with her own password, and no right", {"sasl.password": passwords["alice"]}, None),
            ("with the wrong password", {"sasl.password": "wrong"}, KafkaException),
        ):
            admin = AdminClient({**cluster.client(), **alice, **settings, "log_level": 0})
            if error is None:  # what she may not see is not there
                assert admin.list_topics(timeout=60).topics == {}, name
            else:
                with pytest.raises(error):
                    admin.list_topics(timeout=5)
        assert "orders" in cluster.admin().list_topics(timeout=60).topics

        port = 9291 + cluster.offset
        assert _answers(port)[:1] in (b"", b"\x15"), "the controllers answer in clear"

        if not rolls:
            return
        # Its settings change behind the gate, the controller last; the same doors are used meanwhile.
        for path in (cluster.overlay / "group_vars").glob("*.yml"):
            if path.stem in ("kafka", "controllers"):
                path.write_text(
                    path.read_text() + "kafka_config: {group.initial.rebalance.delay.ms: 3001}\n"
                )
        run = cluster.deploy()
        assert re.findall(r"Restart of ([a-z]+-\d)", run.text) == [
            "kafka-1",
            "kafka-2",
            "controller-1",
        ]
        cluster.play("status.yml", "-e", "status_strict=true")
