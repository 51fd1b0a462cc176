# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""KRaft mode with TLS, passwords and an authorizer, and a controller on a node of its own: closed from its start."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import struct
import time

import pytest

from tests.local.certificates import make_certificates
from tests.local.support import LocalCluster, Unsafe
from tests.support.outside import wait_until
from tests.support.traffic import Traffic
from tests.support.watching import cluster_is_whole

INVENTORY = "tests/local/inventories/secured-kraft"
USERS = ("broker", "admin", "alice")
SCRAM = "SCRAM-SHA-512"
TOPIC = "orders"


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


def _fenced_at_once(cluster, passwords):
    """A broker is killed: its host tells the controllers through TLS and a login; nothing is lost."""
    name, number = "kafka-1", cluster.brokers["kafka-1"]
    folder = cluster.instance(name) / "logs"
    registered = r"Successfully registered broker \d with broker epoch (\d+)"

    def epochs():
        return [int(each) for each in re.findall(registered, (folder / "server.log").read_text())]

    wait_until(lambda: cluster_is_whole(cluster), 180, "the cluster is whole")
    before = epochs()
    with Traffic(cluster, TOPIC) as traffic:
        wait_until(lambda: len(traffic.acknowledged) > 100, 60, "acknowledgements")
        killed = time.monotonic()
        os.kill(cluster.process(name).pid, signal.SIGKILL)
        wait_until(
            lambda: number not in {each[0] for each in cluster.partitions(TOPIC).values()},
            60,
            f"another broker leads what {name} has led",
        )
        moved = time.monotonic() - killed
        wait_until(lambda: len(epochs()) > len(before), 120, f"{name} has registered")
        wait_until(lambda: cluster_is_whole(cluster), 180, "the cluster is whole")
    print(f"\nSIGKILL of a broker: another one leads after {moved:.2f} s,", end=" ")
    print(f"longest pause of a partition {traffic.longest_pause:.2f} s")
    assert not traffic.failed and traffic.lost() == []
    told = (folder / "console.log").read_text()
    line = f"fenced and unregistered broker {number} of epoch {before[-1]}: its process is dead"
    assert line in told, told
    # Its new process was let in at once, and not when the session was over.
    assert "DUPLICATE_BROKER" not in (folder / "server.log").read_text()
    assert not [text for text in passwords.values() if text in told]


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
        assert TOPIC in cluster.admin().list_topics(timeout=60).topics

        _fenced_at_once(cluster, passwords)
        processes = cluster.processes()
        assert cluster.deploy().changed() == 0 and cluster.processes() == processes

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
