# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""KRaft mode with TLS, passwords and an authorizer, and a controller on a node of its own: closed from its start,
and closed all the way from ZooKeeper.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import struct
import time

import pytest
import yaml

from tests.local.closed import CONTROLLERS, INVENTORY, secure
from tests.local.support import CHECKOUT, LocalCluster
from tests.support.outside import wait_until
from tests.support.traffic import Traffic
from tests.support.watching import cluster_is_whole

OF_ZOOKEEPER = "tests/local/inventories/secured"
TOPIC = "orders"


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
        passwords = secure(cluster, version)
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


def _wants_kraft(cluster, servers=True):
    """Write the inventory that docs/migration.md asks for; `servers`: whether it has ZooKeeper still."""
    hosts = {name: {"kafka_broker_id": number} for name, number in CONTROLLERS.items()}
    (cluster.overlay / "hosts.yml").write_text(
        yaml.safe_dump({"all": {"children": {"controllers": {"hosts": hosts}}}})
    )
    # What the brokers have, its controllers have, too: of the inventory, and of this test.
    shared = CHECKOUT / INVENTORY / "group_vars" / "controllers"
    files = [*sorted(shared.glob("*.yml")), cluster.overlay / "group_vars" / "kafka.yml"]
    text = "".join(path.read_text().replace("---\n", "") for path in files)
    (cluster.overlay / "group_vars" / "controllers.yml").write_text(f"{text}kafka_heap: 256m\n")
    cluster.configure(
        "all",
        kafka_metadata="kraft",
        kafka_version="3.9.2",
        kafka_controller_port="{{ 9290 + local_index | int + local_port_offset | int }}",
        kafka_controller_bind="127.0.0.1",
        **({} if servers else {"zookeeper_group": "none_of_them"}),
    )


@pytest.mark.soak
def test_logins_and_rights_move_with_the_metadata(next_offset):
    """There, back, and there again: who may what is the same all the way, whoever has the metadata."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
        ResourceType,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    said = []
    with LocalCluster(next_offset(), inventory=OF_ZOOKEEPER) as cluster:
        passwords = secure(cluster, "3.9.2")
        passwords.update({name: secrets.token_urlsafe(12) for name in ("bob", "carol")})

        def play(playbook, *arguments):
            run = cluster.play(playbook, *arguments)
            said.append(run.text)
            return run

        def binding(user, kind=AclBinding):
            return kind(
                ResourceType.TOPIC,
                TOPIC,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                AclOperation.DESCRIBE,
                AclPermissionType.ALLOW,
            )

        def granted(user):
            admin = cluster.admin()  # what it has sent ends with it
            for future in admin.create_acls([binding(user)]).values():
                future.result(30)

        def made(user):
            info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
            wish = UserScramCredentialUpsertion(user, info, passwords[user].encode())
            admin = cluster.admin()
            for future in admin.alter_user_scram_credentials([wish]).values():
                future.result(30)

        def sees(user, server):
            """Whether this user is shown the topic by the broker at this address; None without a login."""
            login = {"sasl.username": user, "sasl.password": passwords[user], "log_level": 0}
            settings = {**cluster.client_settings, **login, "bootstrap.servers": server}
            try:
                return TOPIC in AdminClient(settings).list_topics(timeout=5).topics
            except KafkaException:
                return None

        def may(**expected):
            """Wait until each broker lets these users see the topic, or not; None: not even log in."""

            def now():
                servers = cluster.bootstrap_servers.split(",")
                return {user: {sees(user, each) for each in servers} for user in expected}

            wanted = {user: {value} for user, value in expected.items()}
            wait_until(
                lambda: now() == wanted, 60, f"what users may is {expected}, and not {now()}"
            )

        said.append(cluster.deploy("-vvv", "--diff", validation="always").text)
        granted("alice")
        may(alice=True, bob=None)

        _wants_kraft(cluster)
        plan = play("migrate_to_kraft.yml", "--check")
        assert "1. Start the controllers" in " ".join(plan.text.split())
        with Traffic(cluster, TOPIC) as traffic:
            play("migrate_to_kraft.yml", "-e", "migrate_until=dual_write", "-vvv", "--diff")
        assert not traffic.failed and traffic.lost() == []
        made("bob")
        granted("bob")
        may(alice=True, bob=True)

        play("migrate_back.yml")
        knows = {"alice": True, "bob": True}
        may(**knows)
        for playbook in ("migrate_to_kraft.yml", "migrate_back.yml", "migrate_to_kraft.yml"):
            with Traffic(cluster, TOPIC) as traffic:
                play(playbook)
            assert not traffic.failed and traffic.lost() == []
            if "carol" not in knows:  # her login and right are made by brokers that are in KRaft
                made("carol")
                granted("carol")
                knows["carol"] = True
            may(**knows)
        wish = binding("alice", AclBindingFilter)
        admin = cluster.admin()
        for future in admin.delete_acls([wish]).values():
            assert len(future.result(30)) == 1
        play("migrate_to_kraft.yml", "-e", "migrate=finish")
        may(alice=False, bob=True)
        confirmed = ("-e", "migrate=remove_zookeeper", "-e", f"confirm={cluster.name}")
        play("migrate_to_kraft.yml", *confirmed)

        _wants_kraft(cluster, servers=False)
        cluster.zookeepers, cluster.controllers = [], dict(CONTROLLERS)
        before = cluster.processes()
        run = cluster.deploy(validation="always")
        assert "PASS:" in run.text, run.text[-5000:]
        assert cluster.processes() == before
        may(alice=False, bob=True)
        play("status.yml", "-e", "status_strict=true")
        _fenced_at_once(cluster, passwords)
    for text in said:
        for password in passwords.values():
            assert password not in text and password.replace("\\", "\\\\") not in text
