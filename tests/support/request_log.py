# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What brokers were asked, by their own request log: counted where it arrives, whoever has sent it."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

from confluent_kafka.admin import AdminClient, ConfigResource

from tests.support.outside import wait_until
from tests.support.secured_cluster import LISTENER, SecuredCluster

LOGGER = "kafka.request.logger"
BEGIN = "Completed request:"
# What a connection begins with; how many connections a library opens is its own matter.
CONNECTING = frozenset({"API_VERSIONS", "SASL_HANDSHAKE", "SASL_AUTHENTICATE"})
_numbers = itertools.count(1)


class RequestLog:
    """The request logs of all brokers of a cluster, while it is entered.

    Only what came in by the listener of clients counts: brokers talk to each other on another one.
    """

    def __init__(self, cluster: SecuredCluster):
        self._cluster = cluster
        self._paths = [each.log for each in cluster.bare.broker_instances.values()]
        self._read: dict[Path, int] = {}

    def _level(self, level: str) -> None:
        configs = [{"scope": "loggers", "settings": {LOGGER: level}}]
        done = self._cluster.run("kafka_configs", configs=configs)
        assert not done.failed and done.changed, done.values

    def __enter__(self) -> RequestLog:
        self._level("DEBUG")
        self.take()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._level("INFO")

    def take(self) -> Counter:
        """How many requests of each kind have come in since it was asked last, those for connecting left out."""
        mark = f"mark-{next(_numbers)}"
        admin = AdminClient({**self._cluster.client_settings(), "client.id": mark})
        brokers = self._cluster.bare.broker_instances
        asked = [ConfigResource("broker", str(each)) for each in brokers]
        for resource in asked:
            for future in admin.describe_configs([resource]).values():
                future.result(30)
        found: Counter = Counter()
        for path in self._paths:
            lines: list[dict] = []

            def marked(path: Path = path, lines: list = lines) -> bool:
                """Whether the log has come to the mark: what was asked before stands before it."""
                lines.extend(self._lines(path))
                return any(
                    (each["requestHeader"]["clientId"], each["requestHeader"]["requestApiKeyName"])
                    == (mark, "DESCRIBE_CONFIGS")
                    for each in lines
                )

            wait_until(marked, 30, "the request log has come so far")
            for each in lines:
                header = each["requestHeader"]
                if each["listener"] != LISTENER or header["clientId"].startswith("mark-"):
                    continue
                if header["requestApiKeyName"] not in CONNECTING:
                    found[header["requestApiKeyName"]] += 1
        return found

    def _lines(self, path: Path) -> list[dict]:
        """What was added to one log, whole lines only."""
        with open(path, "rb") as stream:
            stream.seek(self._read.get(path, 0))
            text = stream.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read[path] = self._read.get(path, 0) + len(whole)
        told = [
            line.partition(BEGIN)[2].rpartition(" (")[0]
            for line in whole.decode("utf-8", "replace").splitlines()
            if BEGIN in line
        ]
        return [json.loads(each) for each in told]
