# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topics, and log directories, as tables for people and programs. Nothing here changes anything.

Private to this collection. `gather_topics` and `gather_log_dirs` ask; the rest is pure.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.log_dirs import (
    LogDirsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    Directory,
    Key,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import did_you_mean
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import (
    chooser,
    out_of_range,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.client import (
    RetentionClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.plan import holds_state

ALL = "all"
DIRECTORY_RIGHTS = "DescribeLogDirs needs Describe on the cluster"


# ---------------------------------------------------------------- topics


def gather_topics(params: Mapping[str, Any], client: RetentionClient) -> Dict[str, Any]:
    """Everything that kafka_topics_info returns, for its parameters."""
    asked = chooser(params["topics"], params["patterns"])
    everything = not params["topics"] and not params["patterns"]

    def chosen(name: str) -> bool:
        return everything or asked(name)

    client.connect()
    snapshot = client.fetch_topics((), chosen)
    missing = sorted(set(params["topics"]) - set(snapshot.topics))
    topics = {name: each for name, each in sorted(snapshot.topics.items()) if chosen(name)}
    warnings = [
        f"there is no topic {name}{did_you_mean(name, snapshot.topics)}" for name in missing
    ]
    sizes: Dict[Key, List[int]] = {}
    ends: Dict[Key, Tuple[int, int]] = {}
    if params["sizes"] and topics:
        try:
            found = client.fetch_disks([broker.id for broker in snapshot.brokers], sorted(topics))
            sizes = replica_sizes(found.directories)
        except AdminError as error:
            warnings.append(f"sizes are unknown: {error.problem.reason}; {DIRECTORY_RIGHTS}")
    if params["offsets"] and topics:
        try:
            ends = client.fetch_ends(snapshot, topics)
        except AdminError as error:
            warnings.append(f"the records could not be counted: {error.problem.reason}")
    every = params["config"] == ALL
    return {
        "cluster_id": snapshot.cluster_id,
        "topics": [
            topic_row(topic, sizes, ends, every, params["partitions"]) for topic in topics.values()
        ],
        "missing": missing,
        "warnings": warnings,
    }


def replica_sizes(directories: Mapping[int, Sequence[Directory]]) -> Dict[Key, List[int]]:
    """(topic, partition) to the bytes of each of its replicas that a broker told of."""
    sizes: Dict[Key, List[int]] = {}
    for found in directories.values():
        for directory in found:
            for key, size in directory.replicas.items():
                sizes.setdefault(key, []).append(size)
    return sizes


def topic_row(
    topic: Topic,
    sizes: Mapping[Key, Sequence[int]],
    ends: Mapping[Key, Tuple[int, int]],
    every_setting: bool,
    with_partitions: bool,
) -> Dict[str, Any]:
    """One topic. `bytes` is one replica of each partition, `bytes_on_disks` is all; null: not known."""
    keys = [(topic.name, part.id) for part in topic.partitions]
    known = all(key in sizes for key in keys)
    counted = all(key in ends for key in keys)
    row: Dict[str, Any] = {
        "name": topic.name,
        "internal": holds_state(topic.name),
        "partitions": len(keys),
        "replication_factor": max(topic.replication_factors, default=0),
        "config": {
            key: {"value": None if each.sensitive else each.value, "source": each.source}
            for key, each in sorted((topic.config or {}).items())
            if every_setting or each.source != "default"
        },
        "bytes": sum(max(sizes[key]) for key in keys) if known else None,
        "bytes_on_disks": sum(sum(sizes[key]) for key in keys) if known else None,
        "records": (
            sum(max(0, end - first) for first, end in map(ends.__getitem__, keys))
            if counted
            else None
        ),
    }
    if with_partitions:
        row["partition_list"] = [
            {
                "partition": part.id,
                "leader": part.leader,
                "replicas": list(part.replicas),
                "isr": list(part.isr),
                "first_offset": ends[key][0] if key in ends else None,
                "end_offset": ends[key][1] if key in ends else None,
                "bytes": max(sizes[key]) if key in sizes else None,
            }
            for key, part in zip(keys, topic.partitions)
        ]
    return row


# ---------------------------------------------------------------- log directories


def gather_log_dirs(params: Mapping[str, Any], client: LogDirsClient) -> Dict[str, Any]:
    """Everything that kafka_log_dirs_info returns, for its parameters."""
    if params["largest"] < 0:
        raise out_of_range("largest", params["largest"], "less than nothing", "give 0 for all")
    client.connect()
    snapshot = client.fetch_metadata()
    alive = {broker.id: broker for broker in snapshot.brokers}
    asked = sorted(set(params["brokers"] or alive))
    unknown = sorted(set(asked) - set(alive))
    if unknown:
        raise out_of_range(
            "brokers",
            ", ".join(map(str, unknown)),
            f"no such broker is alive; alive are {', '.join(map(str, sorted(alive)))}",
            "correct the ids, or leave brokers out for all",
        )
    disks = client.fetch_disks(asked)
    holders = {
        each for topic in snapshot.topics.values() for p in topic.partitions for each in p.replicas
    }
    return {
        "cluster_id": snapshot.cluster_id,
        "brokers": [
            broker_row(alive[number], disks.directories.get(number, ()), params["largest"])
            for number in asked
        ],
        "missing_brokers": sorted(holders - set(alive)),
    }


def broker_row(broker: Broker, directories: Sequence[Directory], largest: int) -> Dict[str, Any]:
    """One broker and its directories, those with the least room first."""
    rows = [directory_row(each, largest) for each in directories]
    rows.sort(key=lambda row: (-(row["used_share"] or 0), row["path"]))
    return {"id": broker.id, "host": broker.host, "directories": rows}


def directory_row(directory: Directory, largest: int) -> Dict[str, Any]:
    """One directory: bytes of its disk, and of the `largest` topics in it (0: of all)."""
    by_topic: Dict[str, List[int]] = {}
    for (name, _partition), size in directory.replicas.items():
        by_topic.setdefault(name, []).append(size)
    ordered = sorted(by_topic.items(), key=lambda each: (-sum(each[1]), each[0]))
    total, usable = directory.total, directory.usable
    used: Optional[int] = None if total is None or usable is None else total - usable
    return {
        "path": directory.path,
        "online": directory.online,
        "total_bytes": total,
        "usable_bytes": usable,
        "used_share": round(used / total, 4) if used is not None and total else None,
        "kafka_bytes": directory.bytes,
        "others_bytes": None if used is None else max(0, used - directory.bytes),
        "topic_count": len(ordered),
        "topics": [
            {"name": name, "bytes": sum(sizes), "replicas": len(sizes)}
            for name, sizes in (ordered[:largest] if largest else ordered)
        ],
    }


# The modules' own options; their documentation is in the modules.
TOPICS_INFO_OPTIONS = dict(
    topics=dict(type="list", elements="str", default=[]),
    patterns=dict(type="list", elements="str", default=[]),
    config=dict(type="str", choices=["set", ALL], default="set"),
    sizes=dict(type="bool", default=True),
    offsets=dict(type="bool", default=True),
    partitions=dict(type="bool", default=False),
)
LOG_DIRS_INFO_OPTIONS = dict(
    brokers=dict(type="list", elements="int", default=[]),
    largest=dict(type="int", default=20),
)
