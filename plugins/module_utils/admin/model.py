# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Frozen values of a Kafka cluster, and of what people ask for; parsed and normalised once.

Private to this collection. Everything behind this line can rely on: names are legal, numbers are
numbers, configuration values are Kafka's own canonical strings. No I/O, no Ansible.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field, replace
from typing import (
    Any,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    UNLIMITED,
    whole_number,
)

# Kinds of changes to topics.
CREATE, GROW, CONFIGURE, DELETE = "create", "grow", "configure", "delete"

# ---------------------------------------------------------------- what a cluster has


@dataclass(frozen=True)
class Broker:
    """A live broker, at the listener that the client came in by."""

    id: int
    host: str
    port: int
    rack: Optional[str] = None


@dataclass(frozen=True)
class Partition:
    """One partition; `leader` is None while it has none (offline)."""

    id: int
    leader: Optional[int]
    replicas: Tuple[int, ...]
    isr: Tuple[int, ...]


@dataclass(frozen=True)
class ConfigEntry:
    """One effective setting. `source` is topic, broker, cluster, static or default.

    `fallback` is what it would be without the topic's own override, None if unknown.
    """

    name: str
    value: Optional[str]
    source: str = "default"
    sensitive: bool = False
    read_only: bool = False
    fallback: Optional[str] = None


# Settings of a topic that decide which records stay, and what they fall back to: settings of the
# brokers, the first that is set, with its unit in milliseconds.
BROKER_KEYS: Mapping[str, Tuple[Tuple[str, Optional[int]], ...]] = {
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60 * 1000),
        ("log.retention.hours", 60 * 60 * 1000),
    ),
    "retention.bytes": (("log.retention.bytes", 1),),
    "cleanup.policy": (("log.cleanup.policy", None),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", None),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", None),),
}
# (topic, partition), and (broker, partition)
Key = Tuple[str, int]
Place = Tuple[int, Key]
# A disk that is full takes its directory down: so much of it stays free, but not more than a twentieth.
RESERVE_BYTES = 2**30
RESERVE_SHARE = 20
# Two directories whose disks have as many bytes in all and free are on one. So many bytes may be written
# between two answers.
SAME_DISK_BYTES = 16 * 2**20


def topic_default(key: str, settings: Mapping[str, str]) -> Optional[str]:
    """What a topic without its own `key` has with these settings of a broker; None if unknown."""
    for name, factor in BROKER_KEYS.get(key, ()):
        if name not in settings:
            continue
        if factor is None:
            return ",".join(part.strip().lower() for part in settings[name].split(","))
        number = whole_number(settings[name])
        if number is None:
            return None
        # Any negative retention is endless, as -1 is.
        return str(number * factor) if number >= 0 else str(UNLIMITED)
    return None


@dataclass(frozen=True)
class Topic:
    """A topic as it is; `config` maps names to ConfigEntry, None if it was not read."""

    name: str
    partitions: Tuple[Partition, ...]
    config: Optional[Mapping[str, ConfigEntry]] = None

    @property
    def replication_factors(self) -> FrozenSet[int]:
        """The set of replica counts: more than one member only while a reassignment runs."""
        return frozenset(len(partition.replicas) for partition in self.partitions)

    def effective(self, key: str) -> Optional[str]:
        """The effective value of a setting, None if unknown."""
        entry = (self.config or {}).get(key)
        return entry.value if entry else None


def topic_dict(topic: Topic) -> Dict[str, Any]:
    """A topic with its settings as kafka_cluster_info returns it; `topic_of` reads it."""
    return {
        "name": topic.name,
        "replicas": [len(part.replicas) for part in topic.partitions],
        "config": {
            key: {"value": each.value, "source": each.source, "fallback": each.fallback}
            for key, each in sorted((topic.config or {}).items())
        },
    }


def topic_of(told: Mapping[str, Any]) -> Topic:
    """The topic of a `topic_dict`, as far as a plan wants to know it: who has the replicas is left open."""
    return Topic(
        str(told["name"]),
        tuple(
            Partition(index, None, tuple(range(int(count))), ())
            for index, count in enumerate(told["replicas"])
        ),
        {
            str(key): ConfigEntry(
                str(key), each["value"], each["source"], fallback=each["fallback"]
            )
            for key, each in told["config"].items()
        },
    )


@dataclass(frozen=True)
class Stake:
    """What a change could delete. None where it could not be learned, `unknown` says why."""

    records: Optional[int] = None
    total_records: Optional[int] = None
    bytes: Optional[int] = None
    total_bytes: Optional[int] = None
    unknown: str = ""


@dataclass(frozen=True)
class Directory:
    """A log directory as its broker tells it: bytes of each replica; of its disk, None: not told.

    `disk` is its name where somebody knows it, equal for two directories exactly if they share its room, else "".
    """

    path: str
    replicas: Mapping[Key, int] = field(default_factory=dict)
    online: bool = True
    total: Optional[int] = None
    usable: Optional[int] = None
    disk: str = ""

    @property
    def bytes(self) -> int:
        """Bytes of all replicas."""
        return sum(self.replicas.values())

    @property
    def room(self) -> Optional[int]:
        """Bytes that may be copied here, None: not known."""
        if self.usable is None:
            return None
        return self.usable - min(RESERVE_BYTES, (self.total or self.usable) // RESERVE_SHARE)


def one_disk(
    one: Tuple[int, Directory], other: Tuple[int, Directory], hosts: Mapping[int, str]
) -> bool:
    """Whether two directories are on one disk, which counts once, as far as is known, else whether they seem to be.

    Blank disks of one size seem to be one.
    """
    if one[1].disk and other[1].disk:
        return one[1].disk == other[1].disk
    if hosts.get(one[0]) != hosts.get(other[0]):
        return False
    first, second = one[1], other[1]
    if first.total is None or first.total != second.total:
        return False
    return abs((first.usable or 0) - (second.usable or 0)) <= SAME_DISK_BYTES


def by_disk(
    directories: Iterable[Tuple[int, Directory]], hosts: Mapping[int, str]
) -> List[List[Tuple[int, Directory]]]:
    """The directories, each with its broker, in groups of one disk each by `one_disk`; in whichever order they come."""
    groups: List[List[Tuple[int, Directory]]] = []
    for placed in directories:
        sharing = [
            group for group in groups if any(one_disk(other, placed, hosts) for other in group)
        ]
        groups = [group for group in groups if group not in sharing]
        groups.append([*(other for group in sharing for other in group), placed])
    return groups


def with_disks(
    directories: Mapping[int, Iterable[Directory]], known: Iterable[Mapping[str, Any]]
) -> Dict[int, Tuple[Directory, ...]]:
    """The directories of each broker, with the names of their disks where they are `known` (broker, path, disk)."""
    names = {(each["broker"], posixpath.normpath(each["path"])): each["disk"] for each in known}
    return {
        broker: tuple(
            replace(each, disk=names.get((broker, posixpath.normpath(each.path)), ""))
            for each in found
        )
        for broker, found in directories.items()
    }


@dataclass(frozen=True)
class UnderWay:
    """A move that a broker makes already: `copied` bytes of the replica are at the target."""

    source: str
    target: str
    size: int
    copied: int = 0

    @property
    def left(self) -> int:
        """Bytes that are still to be copied."""
        return max(0, self.size - self.copied)


@dataclass(frozen=True)
class Snapshot:
    """What was read from the cluster, at one moment.

    `broker_defaults` are effective broker settings (`min.insync.replicas`, `num.partitions`, ...);
    `known_keys` the topic settings that the brokers know, None if that could not be learned;
    `stakes` maps topic names to Stake, for changes that need one; `defaults_denied` says that the
    user may not see `broker_defaults`; `assumed` that no broker was asked; `answered_by` is the id of
    the broker that was, None if unknown.
    """

    cluster_id: Optional[str] = None
    controller: Optional[int] = None
    brokers: Tuple[Broker, ...] = ()
    topics: Mapping[str, Topic] = field(default_factory=dict)
    broker_defaults: Mapping[str, str] = field(default_factory=dict)
    known_keys: Optional[FrozenSet[str]] = None
    stakes: Mapping[str, Stake] = field(default_factory=dict)
    defaults_denied: bool = False
    assumed: bool = False
    answered_by: Optional[int] = None

    @property
    def partitions(self) -> Dict[Key, Partition]:
        """All partitions, by topic and number."""
        return {
            (name, part.id): part
            for name, topic in self.topics.items()
            for part in topic.partitions
        }

    @property
    def led(self) -> FrozenSet[Key]:
        """The partitions that have a leader."""
        return frozenset(key for key, part in self.partitions.items() if part.leader is not None)


def partition_name(topic: str, partition: int) -> str:
    """How a partition is written: topic-0; `partition_of` reads it."""
    return f"{topic}-{partition}"


def partition_of(name: str) -> Key:
    """(topic, partition) of `partition_name`."""
    topic, _dash, partition = name.rpartition("-")
    return topic, int(partition)
