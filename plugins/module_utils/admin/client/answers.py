# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of the client libraries as our values: pure functions, no library is imported.

Private to this collection. `reading` asks.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    ConfigEntry,
    Directory,
    Key,
    Partition,
    Snapshot,
    Topic,
    topic_default,
)

# (topic, partition)
Configs = Dict[str, Dict[str, ConfigEntry]]

# By the numbers of the protocol.
SOURCES = {1: "topic", 2: "broker", 3: "cluster", 4: "static", 5: "default", 8: "group"}
# As kafka-python names them.
_BY_NAME = {
    "DYNAMIC_TOPIC_CONFIG": "topic",
    "DYNAMIC_BROKER_CONFIG": "broker",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "cluster",
    "STATIC_BROKER_CONFIG": "static",
    "DEFAULT_CONFIG": "default",
}


def entries_of(answer: Mapping[str, Any]) -> Dict[str, ConfigEntry]:
    """librdkafka's answer to DescribeConfigs, of one resource, as our values."""
    return {
        entry.name: _entry(
            entry.name,
            entry.value,
            SOURCES.get(int(entry.source), "unknown"),
            entry.is_sensitive,
            entry.is_read_only,
        )
        for entry in answer.values()
    }


def setting_of(answers: Mapping[str, Mapping[str, Any]], key: str) -> Configs:
    """One setting of the topics that have it, from kafka-python's answer to DescribeConfigs."""
    found: Configs = {}
    for name, entries in answers.items():
        if key in entries:
            source = _BY_NAME.get(entries[key]["config_source"], "unknown")
            found[name] = {key: _entry(key, entries[key]["value"], source, False, False)}
    return found


# Most topics have the same settings, so that thousands of them share a few values.
@functools.lru_cache(maxsize=4096)
def _entry(
    name: str, value: Optional[str], source: str, sensitive: bool, read_only: bool
) -> ConfigEntry:
    return ConfigEntry(name, value, source, sensitive, read_only)


@functools.lru_cache(maxsize=4096)
def _falling_back(entry: ConfigEntry, fallback: Optional[str]) -> ConfigEntry:
    return replace(entry, fallback=fallback)


def snapshot_of(metadata: Any) -> Snapshot:
    """A Snapshot, without settings, of librdkafka's metadata."""
    topics = {}
    for name, topic in metadata.topics.items():
        if topic.error is not None and not topic.partitions:
            continue
        topics[name] = Topic(
            name,
            tuple(
                Partition(
                    part.id,
                    part.leader if part.leader >= 0 else None,
                    tuple(part.replicas),
                    tuple(part.isrs),
                )
                for part in sorted(topic.partitions.values(), key=lambda entry: entry.id)
            ),
        )
    brokers = tuple(
        Broker(node.id, node.host, node.port)
        for node in sorted(metadata.brokers.values(), key=lambda entry: entry.id)
    )
    controller = metadata.controller_id if metadata.controller_id >= 0 else None
    asked = metadata.orig_broker_id if metadata.orig_broker_id >= 0 else None
    return Snapshot(metadata.cluster_id, controller, brokers, topics, answered_by=asked)


def with_config(
    topic: Topic, entries: Mapping[str, ConfigEntry], defaults: Mapping[str, str]
) -> Topic:
    """The topic with its settings, each with what it would fall back to, where that matters."""
    config = {
        key: _falling_back(entry, topic_default(key, defaults)) for key, entry in entries.items()
    }
    return Topic(topic.name, topic.partitions, config)


def directory_of(entry: Mapping[str, Any], replicas: Mapping[Key, int]) -> Directory:
    """A Directory of what kafka-python says of one, in its answer to DescribeLogDirs, with these replicas."""
    # -1: the broker does not know, or is older than 3.3.
    total, usable = (
        size if size is not None and size >= 0 else None
        for size in (entry.get("total_bytes"), entry.get("usable_bytes"))
    )
    return Directory(entry["log_dir"], replicas, not entry["error_code"], total, usable)


def sizes_of(answers: Iterable[Any]) -> Iterator[Tuple[Key, int]]:
    """((topic, partition), bytes) pairs of kafka-python's answer to DescribeLogDirs."""
    for answer in answers:
        for result in answer.get("results") or answer.get("log_dirs") or ():
            for topic in result.get("topics") or ():
                name = topic.get("name") or topic.get("topic")
                for part in topic.get("partitions") or ():
                    index = part.get("partition_index", part.get("partition"))
                    size = part.get("partition_size", part.get("size"))
                    yield (name, index), size
