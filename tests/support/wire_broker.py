# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A broker on the wire, without a JVM: both client libraries talk to it, and it counts what they ask.

One node that leads everything, with topics, quotas and ACLs in dicts. Messages are kafka-python's, which are
made of Apache's own schemas::

    with WireBroker() as broker:
        run_module("kafka_topics", {"bootstrap_servers": broker.address, ...})
        assert broker.requests["CreateTopics"] == 1

`without` are names of requests that it does not have, `refusals` maps subjects to (code, words) of changes
that it refuses only once they are made.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import threading
from collections import Counter
from typing import Any, Callable, Iterable

from kafka.protocol import admin as messages
from kafka.protocol import consumer, metadata
from kafka.protocol.api_key import ApiKey

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
TOPIC, BROKER = 2, 4
OF_TOPIC, OF_BROKER_FILE, DEFAULT = 1, 4, 5
DELETE = 1
UNKNOWN_TOPIC, EXISTS, INVALID_PARTITIONS, INVALID_CONFIG = 3, 36, 37, 40
# Everything that a user may do with the cluster, by the protocol's numbers.
ALL_RIGHTS = {*range(3, 13)}
DEFAULTS = {
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "segment.ms": "604800000",
    "segment.bytes": "1073741824",
    "min.insync.replicas": "1",
    "max.message.bytes": "1048588",
    "unclean.leader.election.enable": "false",
}
OF_BROKER = {
    "log.retention.hours": "168",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
}


_ELSEWHERE = {"ApiVersions": metadata, "Metadata": metadata, "ListOffsets": consumer}
_MESSAGES = {
    name: tuple(
        getattr(_ELSEWHERE.get(name, messages), f"{name}{kind}") for kind in ("Request", "Response")
    )
    for name in (
        *("ApiVersions", "Metadata", "DescribeConfigs", "IncrementalAlterConfigs"),
        *("CreateTopics", "CreatePartitions", "DeleteTopics", "ListOffsets", "DescribeLogDirs"),
        *("DescribeClientQuotas", "AlterClientQuotas"),
        *("DescribeAcls", "CreateAcls", "DeleteAcls"),
    )
}


class WireBroker:
    """See the module. `topics`: name to [partitions, settings]; `quotas`: entity to limits; `acls`: a list of dicts."""

    def __init__(self, without: Iterable[str] = ()):
        self.topics: dict[str, list[Any]] = {}
        self.quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
        self.acls: list[dict[str, Any]] = []
        self.requests: Counter[str] = Counter()
        self.refusals: dict[str, tuple[int, str]] = {}
        self._has = {
            ApiKey[name].value: (name, *both)
            for name, both in _MESSAGES.items()
            if name not in without
        }
        self._lock = threading.Lock()
        self._server: Any = None

    # ------------------------------------------------------------ connections

    def __enter__(self) -> WireBroker:
        broker = self

        class Connection(socketserver.StreamRequestHandler):
            """One client; requests are answered in their order."""

            def handle(self) -> None:
                with contextlib.suppress(OSError, struct.error):
                    while True:
                        (size,) = struct.unpack(">i", self.rfile.read(4))
                        self.wfile.write(broker._answer(self.rfile.read(size)))

        class Server(socketserver.ThreadingTCPServer):
            """Leaves no thread behind."""

            daemon_threads = True
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", 0), Connection)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        """host:port."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def _answer(self, frame: bytes) -> bytes:
        key, version, correlation = struct.unpack(">hhi", frame[:8])
        if key not in self._has:
            raise OSError(f"a client sent {ApiKey(key).name}, which was not offered to it")
        name, request_class, response_class = self._has[key]
        if name == "ApiVersions" and version > request_class.max_version:
            # As brokers do it: they answer what they understand.
            answer = response_class[0](error_code=35, api_keys=self._offered())
        else:
            asked = request_class.decode(frame, version=version, header=True)
            with self._lock:
                self.requests[name] += 1
                handle: Callable[..., Any] = getattr(self, f"_{name}")
                answer = response_class[version](**handle(asked))
        answer.with_header(correlation_id=correlation)
        return answer.encode(header=True, framed=True)

    # ------------------------------------------------------------ reading

    def _offered(self) -> list[Any]:
        version = metadata.ApiVersionsResponse.ApiVersion
        return [
            version(api_key=key, min_version=request.min_version, max_version=request.max_version)
            for key, (_name, request, _response) in sorted(self._has.items())
        ]

    def _ApiVersions(self, _asked: Any) -> dict[str, Any]:
        return {"error_code": 0, "api_keys": self._offered()}

    def _Metadata(self, asked: Any) -> dict[str, Any]:
        host, port = self._server.server_address
        response = metadata.MetadataResponse
        node, topic = response.MetadataResponseBroker, response.MetadataResponseTopic
        part = topic.MetadataResponsePartition
        named = (
            sorted(self.topics) if asked.topics is None else [each.name for each in asked.topics]
        )
        return {
            "brokers": [node(node_id=1, host=host, port=port)],
            "cluster_id": CLUSTER_ID,
            "controller_id": 1,
            "authorized_operations": ALL_RIGHTS,
            "topics": [
                topic(
                    error_code=0 if name in self.topics else UNKNOWN_TOPIC,
                    name=name,
                    partitions=[
                        part(partition_index=number, leader_id=1, replica_nodes=[1], isr_nodes=[1])
                        for number in range(self.topics.get(name, [0])[0])
                    ],
                )
                for name in named
            ],
        }

    def _DescribeConfigs(self, asked: Any) -> dict[str, Any]:
        result = messages.DescribeConfigsResponse.DescribeConfigsResult
        entry = result.DescribeConfigsResourceResult
        results = []
        for each in asked.resources:
            kind, name = each.resource_type, each.resource_name
            own = self.topics.get(name, [0, {}])[1] if kind == TOPIC else {}
            values, source = (DEFAULTS, DEFAULT) if kind == TOPIC else (OF_BROKER, OF_BROKER_FILE)
            keys = each.configuration_keys
            results.append(
                result(
                    error_code=UNKNOWN_TOPIC if kind == TOPIC and name not in self.topics else 0,
                    resource_type=kind,
                    resource_name=name,
                    configs=[
                        entry(
                            name=key,
                            value=own.get(key, value),
                            config_source=OF_TOPIC if key in own else source,
                        )
                        for key, value in values.items()
                        if not keys or key in keys
                    ],
                )
            )
        return {"results": results}

    def _ListOffsets(self, asked: Any) -> dict[str, Any]:
        """No topic has a record."""
        topic = consumer.ListOffsetsResponse.ListOffsetsTopicResponse
        part = topic.ListOffsetsPartitionResponse
        return {
            "topics": [
                topic(
                    name=each.name,
                    partitions=[
                        part(
                            partition_index=one.partition_index,
                            error_code=0 if each.name in self.topics else UNKNOWN_TOPIC,
                            offset=0 if one.timestamp < 0 else -1,
                        )
                        for one in each.partitions
                    ],
                )
                for each in asked.topics
            ]
        }

    def _DescribeLogDirs(self, _asked: Any) -> dict[str, Any]:
        result = messages.DescribeLogDirsResponse.DescribeLogDirsResult
        topic = result.DescribeLogDirsTopic
        topics = [
            topic(
                name=name,
                partitions=[
                    topic.DescribeLogDirsPartition(partition_index=number, partition_size=0)
                    for number in range(count)
                ],
            )
            for name, (count, _settings) in sorted(self.topics.items())
        ]
        directory = {"log_dir": "/d", "topics": topics, "total_bytes": 2**40, "usable_bytes": 2**39}
        return {"results": [result(error_code=0, **directory)]}

    # ------------------------------------------------------------ topics

    def _CreateTopics(self, asked: Any) -> dict[str, Any]:
        result = messages.CreateTopicsResponse.CreatableTopicResult
        found = []
        for each in asked.topics:
            code, words = self._verdict(each.name, asked.validate_only)
            wrong = [entry.name for entry in each.configs if entry.name not in DEFAULTS]
            if each.name in self.topics:
                code, words = EXISTS, f"Topic '{each.name}' already exists."
            elif wrong:
                code, words = INVALID_CONFIG, f"Unknown topic config name: {wrong[0]}"
            elif not code and not asked.validate_only:
                settings = {entry.name: entry.value for entry in each.configs}
                self.topics[each.name] = [max(1, each.num_partitions), settings]
            found.append(result(name=each.name, error_code=code, error_message=words))
        return {"topics": found}

    def _CreatePartitions(self, asked: Any) -> dict[str, Any]:
        result = messages.CreatePartitionsResponse.CreatePartitionsTopicResult
        found = []
        for each in asked.topics:
            code, words = self._verdict(each.name, asked.validate_only)
            if each.name not in self.topics:
                code, words = UNKNOWN_TOPIC, "This server does not host this topic-partition."
            elif each.count <= self.topics[each.name][0]:
                code, words = INVALID_PARTITIONS, "Topic has as many already."
            elif not code and not asked.validate_only:
                self.topics[each.name][0] = each.count
            found.append(result(name=each.name, error_code=code, error_message=words))
        return {"results": found}

    def _DeleteTopics(self, asked: Any) -> dict[str, Any]:
        result = messages.DeleteTopicsResponse.DeletableTopicResult
        names = asked.topic_names or [each.name for each in asked.topics]
        found = []
        for name in names:
            code, words = self._verdict(name, False)
            if not code and self.topics.pop(name, None) is None:
                code = UNKNOWN_TOPIC
            found.append(result(name=name, error_code=code, error_message=words))
        return {"responses": found}

    def _IncrementalAlterConfigs(self, asked: Any) -> dict[str, Any]:
        result = messages.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
        found = []
        for each in asked.resources:
            code, words = self._verdict(each.resource_name, asked.validate_only)
            if each.resource_name not in self.topics:
                code = UNKNOWN_TOPIC
            elif not code and not asked.validate_only:
                own = self.topics[each.resource_name][1]
                for entry in each.configs:
                    if entry.config_operation == DELETE:
                        own.pop(entry.name, None)
                    else:
                        own[entry.name] = entry.value
            found.append(
                result(
                    error_code=code,
                    error_message=words,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                )
            )
        return {"responses": found}

    def _verdict(self, subject: str, validated: bool) -> tuple[int, str | None]:
        """What is said of a change that is made; nothing while it is only judged."""
        return (0, None) if validated else self.refusals.get(subject, (0, None))

    # ------------------------------------------------------------ quotas

    def _DescribeClientQuotas(self, _asked: Any) -> dict[str, Any]:
        entry = messages.DescribeClientQuotasResponse.EntryData
        return {
            "error_code": 0,
            "entries": [
                entry(
                    entity=[
                        entry.EntityData(entity_type=kind, entity_name=name) for kind, name in key
                    ],
                    values=[
                        entry.ValueData(key=limit, value=value) for limit, value in limits.items()
                    ],
                )
                for key, limits in self.quotas.items()
            ],
        }

    def _AlterClientQuotas(self, asked: Any) -> dict[str, Any]:
        result = messages.AlterClientQuotasResponse.EntryData
        found = []
        for each in asked.entries:
            key = tuple((part.entity_type, part.entity_name) for part in each.entity)
            code, words = self._verdict(str(key[0][1]), asked.validate_only)
            if not code and not asked.validate_only:
                limits = dict(self.quotas.get(key, {}))
                for change in each.ops:
                    limits[change.key] = change.value
                    if change.remove:
                        del limits[change.key]
                self.quotas[key] = limits
                if not limits:
                    del self.quotas[key]
            entity = [result.EntityData(entity_type=kind, entity_name=name) for kind, name in key]
            found.append(result(error_code=code, error_message=words, entity=entity))
        return {"entries": found}

    # ------------------------------------------------------------ ACLs

    def _DescribeAcls(self, asked: Any) -> dict[str, Any]:
        resource = messages.DescribeAclsResponse.DescribeAclsResource
        named = {"resource_name": asked.resource_name_filter, "principal": asked.principal_filter}
        return {
            "error_code": 0,
            "resources": [
                resource(
                    resource_type=each["resource_type"],
                    resource_name=each["resource_name"],
                    pattern_type=each["pattern_type"],
                    acls=[
                        resource.AclDescription(
                            **{
                                key: each[key]
                                for key in ("principal", "host", "operation", "permission_type")
                            }
                        )
                    ],
                )
                for each in self.acls
                if all(value in (None, each[key]) for key, value in named.items())
            ],
        }

    def _CreateAcls(self, asked: Any) -> dict[str, Any]:
        result = messages.CreateAclsResponse.AclCreationResult
        found = []
        for each in asked.creations:
            code, words = self._verdict(each.resource_name, False)
            acl = {
                **{
                    key: getattr(each, key)
                    for key in ("resource_type", "resource_name", "principal", "host", "operation")
                },
                "pattern_type": each.resource_pattern_type,
                "permission_type": each.permission_type,
            }
            if not code and acl not in self.acls:
                self.acls.append(acl)
            found.append(result(error_code=code, error_message=words))
        return {"results": found}

    def _DeleteAcls(self, asked: Any) -> dict[str, Any]:
        result = messages.DeleteAclsResponse.DeleteAclsFilterResult
        found = []
        for each in asked.filters:
            acl = {
                "resource_type": each.resource_type_filter,
                "resource_name": each.resource_name_filter,
                "principal": each.principal_filter,
                "host": each.host_filter,
                "operation": each.operation,
                "pattern_type": each.pattern_type_filter,
                "permission_type": each.permission_type,
            }
            gone = [result.DeleteAclsMatchingAcl(error_code=0, **acl)] if acl in self.acls else []
            self.acls = [kept for kept in self.acls if kept != acl]
            found.append(result(error_code=0, matching_acls=gone))
        return {"filter_results": found}


def closed_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
