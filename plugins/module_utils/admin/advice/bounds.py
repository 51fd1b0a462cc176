# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The known bounds on partitions, each with its source and year, against a cluster. Pure.

Private to this collection. No bound is a law: each was found on somebody's machines with the Kafka of its
year. So a row says where it comes from, and those of the first years are only noted.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.items import Addition
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Place,
    Snapshot,
    Topic,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import whole_number

OK, NOTE, NEAR, BEYOND = "ok", "note", "near", "beyond"
REPLICAS_PER_BROKER = 4000
# The next controller reads a partition once, whatever its number of replicas.
PARTITIONS_PER_CLUSTER = 200_000
# From this share of a bound on it is near.
NEAR_SHARE = 0.8

# Of a segment: its log, and its two indexes. A broker maps an index when it is first used, and none that
# has no entry: two are what it may come to, which is what a limit is for.
FILES_OF_SEGMENT = 1
MAPS_OF_SEGMENT = 2
# Of a producer: what it may use, and a batch of each partition that it writes to, by default.
BUFFER_BYTES = 32 * 2**20
BATCH_BYTES = 16 * 2**10


@dataclass(frozen=True)
class Source:
    """Where a number comes from. `dated` ones are of the Kafka of then, and exceeding them is only noted."""

    short: str
    year: int
    name: str
    dated: bool = False

    def __str__(self) -> str:
        return f"{self.short}, {self.year}" if self.year else self.short


RAO = Source(
    "Rao",
    2015,
    "Jun Rao, How to choose the number of topics/partitions in a Kafka cluster, Confluent; of Kafka 0.8",
    dated=True,
)
KIP_578 = Source(
    "KIP-578",
    2020,
    "Apache Kafka, KIP-578, Add configuration to limit number of partitions; first said of Kafka 1.1 in 2018",
)
MANUAL = Source(
    "Kafka", 2024, "Apache Kafka 3.9, documentation of hardware, OS, producer and replication"
)


@dataclass(frozen=True)
class Limits:
    """What the hosts of the brokers allow a process, and how the cluster keeps its metadata.

    `kraft` is None where nobody may tell.
    """

    open_files: int
    max_map_count: int
    kraft: Optional[bool] = None


@dataclass(frozen=True)
class Load:
    """What is counted of a cluster. Brokers map to numbers; `pairs` are (leader, follower).

    `segments` are at least so many: `None` where sizes are not known.
    """

    brokers: Tuple[int, ...]
    partitions: int = 0
    replicas: Mapping[int, int] = field(default_factory=dict)
    leaders: Mapping[int, int] = field(default_factory=dict)
    pairs: Mapping[Tuple[int, int], int] = field(default_factory=dict)
    segments: Optional[Mapping[int, int]] = None
    widest: Tuple[str, int] = ("", 0)
    single: Tuple[str, ...] = ()
    stopping: Tuple[str, ...] = ()

    @property
    def all_replicas(self) -> int:
        """Replicas of all brokers."""
        return sum(self.replicas.values())


@dataclass(frozen=True)
class Bound:
    """One bound. `found` is now, `planned` with what is planned; `where` names the worst."""

    name: str
    found: int
    planned: int
    limit: int
    where: str
    source: Source

    @property
    def level(self) -> str:
        """How the planned number stands to the limit."""
        if self.planned > self.limit:
            return NOTE if self.source.dated else BEYOND
        return NEAR if self.planned > self.limit * NEAR_SHARE and not self.source.dated else OK

    def to_dict(self) -> Dict[str, Any]:
        """As the module returns it."""
        return {
            "bound": self.name,
            "now": self.found,
            "planned": self.planned,
            "limit": self.limit,
            "level": self.level,
            "where": self.where,
            "source": self.source.name,
            "year": self.source.year,
        }


# ---------------------------------------------------------------- counting


def load_of(snapshot: Snapshot, sizes: Optional[Mapping[Place, int]]) -> Load:
    """The Load of a cluster whose topics have their settings; `sizes` are bytes of replicas, None: unknown."""
    replicas: collections.Counter[int] = collections.Counter()
    leaders: collections.Counter[int] = collections.Counter()
    pairs: collections.Counter[Tuple[int, int]] = collections.Counter()
    segments: collections.Counter[int] = collections.Counter()
    partitions, widest = 0, ("", 0)
    single, stopping = [], []
    for name, topic in sorted(snapshot.topics.items()):
        partitions += len(topic.partitions)
        if len(topic.partitions) > widest[1]:
            widest = (name, len(topic.partitions))
        least = min(topic.replication_factors, default=0)
        if least == 1:
            single.append(name)
        elif least <= (whole_number(topic.effective("min.insync.replicas")) or 0):
            stopping.append(name)
        for part in topic.partitions:
            replicas.update(part.replicas)
            if part.leader is not None:
                leaders[part.leader] += 1
                pairs.update((part.leader, each) for each in part.replicas if each != part.leader)
            for broker in part.replicas if sizes is not None else ():
                size = (sizes or {}).get((broker, (name, part.id)), 0)
                segments[broker] += segments_of(topic, size)
    return Load(
        tuple(broker.id for broker in snapshot.brokers),
        partitions,
        replicas,
        leaders,
        pairs,
        None if sizes is None else segments,
        widest,
        tuple(single),
        tuple(stopping),
    )


def segments_of(topic: Topic, size: int) -> int:
    """At least so many segments has a replica of so many bytes; time makes more of them than size does."""
    largest = whole_number(topic.effective("segment.bytes")) or 0
    return max(1, -(-size // largest)) if largest > 0 else 1


def with_added(load: Load, additions: Iterable[Addition]) -> Load:
    """The Load with more partitions, spread evenly over the live brokers, as Kafka does it.

    Of what cannot be divided each broker may get one, so that each is taken to get it.
    """
    for added in additions:
        count = len(load.brokers) or 1
        held = -(-added.partitions * added.replicas // count)
        led = -(-added.partitions // count)
        followed = -(-added.partitions * (added.replicas - 1) // (count * max(1, count - 1)))
        load = replace(
            load,
            partitions=load.partitions + added.partitions,
            replicas=_more(load.replicas, load.brokers, held),
            leaders=_more(load.leaders, load.brokers, led),
            pairs=_more(
                load.pairs,
                [(a, b) for a in load.brokers for b in load.brokers if a != b],
                followed,
            ),
            segments=None if load.segments is None else _more(load.segments, load.brokers, held),
            widest=max(load.widest, (added.topic, added.total), key=lambda each: each[1]),
            single=load.single + ((added.topic,) if added.replicas == 1 else ()),
        )
    return load


def _more(numbers: Mapping[Any, int], keys: Iterable[Any], more: int) -> Dict[Any, int]:
    return {**numbers, **{key: numbers.get(key, 0) + more for key in keys}}


# ---------------------------------------------------------------- the bounds


def bounds_of(now: Load, planned: Load, limits: Limits) -> List[Bound]:
    """Every bound that can be compared with what was read."""
    of_zookeeper = replace(KIP_578, dated=limits.kraft is True)
    factor = round(now.all_replicas / now.partitions) if now.partitions else 1
    found = [
        _of_brokers(
            "replicas of a broker",
            now.replicas,
            planned.replicas,
            REPLICAS_PER_BROKER,
            of_zookeeper,
        ),
        Bound(
            "partitions of the cluster",
            now.partitions,
            planned.partitions,
            PARTITIONS_PER_CLUSTER,
            "",
            of_zookeeper,
        ),
        _of_brokers(
            "replicas of a broker, where latency matters (100 x brokers x replication factor)",
            now.replicas,
            planned.replicas,
            100 * max(1, len(now.brokers)) * max(1, factor),
            RAO,
        ),
    ]
    if now.segments is not None and planned.segments is not None:
        found += [
            _of_brokers(
                "memory maps of a broker, two a segment",
                _times(now.segments, MAPS_OF_SEGMENT),
                _times(planned.segments, MAPS_OF_SEGMENT),
                limits.max_map_count,
                MANUAL,
            ),
            _of_brokers(
                "open files of a broker, at least",
                _times(now.segments, FILES_OF_SEGMENT),
                _times(planned.segments, FILES_OF_SEGMENT),
                limits.open_files,
                MANUAL,
            ),
        ]
    found += [
        Bound(
            "partitions that one producer writes to with its default memory",
            now.widest[1],
            planned.widest[1],
            BUFFER_BYTES // BATCH_BYTES,
            planned.widest[0],
            MANUAL,
        ),
        _named("topics with a single replica", now.single, planned.single),
        _named(
            "topics that no one can write to with acks=all once a broker is down",
            now.stopping,
            planned.stopping,
        ),
    ]
    return found


def _times(numbers: Mapping[int, int], factor: int) -> Dict[int, int]:
    return {key: number * factor for key, number in numbers.items()}


def _of_brokers(
    name: str, now: Mapping[int, int], planned: Mapping[int, int], limit: int, source: Source
) -> Bound:
    worst = max(planned, key=lambda broker: (planned[broker], -broker), default=None)
    if worst is None:
        return Bound(name, 0, 0, limit, "", source)
    return Bound(
        name, max(now.values(), default=0), planned[worst], limit, f"broker {worst}", source
    )


def _named(name: str, now: Tuple[str, ...], planned: Tuple[str, ...]) -> Bound:
    where = ", ".join(planned[:3]) + (", ..." if len(planned) > 3 else "")
    return Bound(name, len(now), len(planned), 0, where, MANUAL)
