# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real cluster with passwords and an authorizer, in either mode, and Kafka's own tools against it.

Users log in by SASL on the listener LOGIN. `admin` may do everything; `team` and `nobody` have no right
until a test gives them one. The plain listener is the brokers' own.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support import collection_finder
from tests.support.bare_cluster import BareCluster
from tests.support.run_module import Result, run_module
from tests.support.self_signed import Certificate

collection_finder.install()

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (  # noqa: E402
    kafka_argument_spec,
)

PASSWORDS = {"admin": "correct horse", "team": "battery staple", "nobody": "tr0ub4dor"}
_USERS = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
LISTENER = "LOGIN"
# Only with a certificate, whose name is COMMON_NAME.
SAFE, MUTUAL = "SAFE", "MUTUAL"
COMMON_NAME = "kafkaops test"
AUTHORIZERS = {
    False: "kafka.security.authorizer.AclAuthorizer",
    True: "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}


@dataclass
class SecuredCluster:
    """A running BareCluster with users; modules and tools run as one of them."""

    bare: BareCluster

    @property
    def bootstrap_servers(self) -> str:
        """The listener with passwords, of all brokers."""
        count = self.bare.brokers
        return ",".join(self.bare.listener_address(LISTENER, i + 1) for i in range(count))

    def arguments(self, user: str = "admin", password: str = "") -> dict:
        """Connection options of our modules."""
        return {
            "bootstrap_servers": self.bootstrap_servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_username": user,
            "sasl_password": password or PASSWORDS[user],
            "timeout": 20,
        }

    def parameters(self, user: str = "admin") -> dict:
        """The same as a module sees them: with every option that was not given, as the spec says."""
        given = self.arguments(user)
        given["bootstrap_servers"] = given["bootstrap_servers"].split(",")
        spec = kafka_argument_spec()
        return {**{name: option.get("default") for name, option in spec.items()}, **given}

    def run(self, module: str, check: bool = False, user: str = "admin", **options) -> Result:
        """Run one of our modules as a user."""
        return run_module(module, {**self.arguments(user), **options}, check)

    def acl_tool(self, *arguments: str) -> str:
        """Kafka's own tool for ACLs."""
        package = "org.apache.kafka.tools" if self.bare.kraft else "kafka.admin"
        return self.tool(f"{package}.AclCommand", *arguments)

    def client_settings(self, user: str = "admin") -> dict:
        """librdkafka's settings, for a client that is not ours."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORDS[user],
        }

    def tool(self, main: str, *arguments: str) -> str:
        """Run one of Kafka's own tools as admin, by its class; returns what it printed.

        Such as `tool("kafka.admin.AclCommand", "--list")`; a new JVM, about two seconds.
        """
        settings = self.bare.directory / "tool.properties"
        settings.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="admin" password="{PASSWORDS["admin"]}";\n'
        )
        start = self.bare.broker_instances[1].command
        java = start[: start.index("kafka.Kafka")]
        kept = [each for each in java if not each.startswith(("-Dinstance", "-Dlog4j", "-Xm"))]
        where = ["--bootstrap-server", self.bootstrap_servers, "--command-config", str(settings)]
        done = subprocess.run(
            [*kept, main, *where, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{main} {arguments}: {done.stdout}{done.stderr}"
        return done.stdout


def _with_tls(certificate: Certificate) -> dict:
    """Properties of the listeners SAFE, with passwords, and MUTUAL, whose clients show this certificate."""
    plain = f"org.apache.kafka.common.security.plain.PlainLoginModule required {_USERS};"
    return {
        **certificate.of_brokers(),
        **certificate.of_clients(MUTUAL),
        f"listener.name.{SAFE.lower()}.sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{SAFE.lower()}.plain.sasl.jaas.config": plain,
        "super.users": f"User:ANONYMOUS;User:admin;User:CN={COMMON_NAME}",
    }


def secured_cluster(
    directory: Path,
    port_base: int,
    kraft: bool,
    brokers: int = 0,
    certificate: Certificate | None = None,
    **config: object,
) -> BareCluster:
    """Three brokers with one ZooKeeper, or one combined KRaft node of the 4.x line, or so many; not started.

    `config` is added to the brokers' properties, with `_` for each dot. With a `certificate` there are listeners
    with TLS, too.
    """
    prefix = f"listener.name.{LISTENER.lower()}"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    plain = f"org.apache.kafka.common.security.plain.PlainLoginModule required {_USERS};"
    return BareCluster(
        directory=directory,
        port_base=port_base,
        brokers=brokers or (1 if kraft else 3),
        zookeepers=0 if kraft else 1,
        kraft=kraft,
        broker_heap="256m",
        extra_listeners={
            LISTENER: "SASL_PLAINTEXT",
            **({SAFE: "SASL_SSL", MUTUAL: "SSL"} if certificate else {}),
        },
        broker_config={
            "authorizer.class.name": AUTHORIZERS[kraft],
            "super.users": "User:ANONYMOUS;User:admin",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            f"{prefix}.plain.sasl.jaas.config": plain,
            f"{prefix}.scram-sha-256.sasl.jaas.config": scram,
            f"{prefix}.scram-sha-512.sasl.jaas.config": scram,
            "auto.create.topics.enable": "false",
            # Half of the heap by default: a change of message.max.bytes ended in an OutOfMemoryError.
            "log.cleaner.dedupe.buffer.size": 8388608,
            "offsets.topic.num.partitions": 3,
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            # Retention acts within a second here, not within minutes.
            "log.retention.check.interval.ms": 500,
            "log.initial.task.delay.ms": 500,
            "log.segment.delete.delay.ms": 200,
            **(_with_tls(certificate) if certificate else {}),
            **{key.replace("_", "."): value for key, value in config.items()},
        },
    )
