# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a benchmark measures: its rows, what they may write, and whether the disks have room for it. Pure.

Private to this collection. The first row has the first value of each dimension. Each other row differs from
it in one value; one on fewer brokers than replicas differs in these, too. The last one is the first again, which
shows how much the machine itself varies. Before all of them the first one is measured once for nothing: brokers
that have just started are slower.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import did_you_mean
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import PREFIX
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import (
    ProblemError,
    refusal,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    approximate_duration,
    approximate_size,
    format_size_bytes,
    parse_size_bytes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import counted

# Names of its topics begin so; a drill's clean-up removes them, too.
TOPIC = f"{PREFIX}benchmark"
# The row of the table of scenarios.
SCENARIO = "S6"
ASYNC, SYNC, LEADER, NONE = "async", "sync", "leader", "none"
# How a producer waits: acks, and what a row says of it.
ACKS = {ASYNC: "all", SYNC: "all", LEADER: "1", NONE: "0"}
MODES = {
    ASYNC: "acks=all, many in flight",
    SYNC: "acks=all, waits for each record",
    LEADER: "acks=1, many in flight",
    NONE: "acks=0",
}
COMPRESSIONS = ("none", "lz4", "zstd", "snappy", "gzip")
FIRST, AGAIN = "first row", "first row again"
# What a record has beside its value on disk, about; smaller ones could not have the time of sending.
OVERHEAD_BYTES, LEAST_RECORD = 12, 10
# About the time of a row beside its load, and of Kafka's own tools: for what is said before.
ROW_SECONDS, TOOLS_SECONDS = 4.0, 15.0
FILL_BYTES_A_SECOND = 40 * 2**20
# What a disk has to keep free.
RESERVE_SHARE = 0.05


@dataclass(frozen=True)
class Setup:
    """What a row is measured with."""

    mode: str = ASYNC
    record_bytes: int = 100
    batch_bytes: int = 65536
    linger_ms: int = 5
    compression: str = "none"
    producers: int = 1
    consumers: int = 1
    groups: int = 1
    partitions: int = 3
    topics: int = 1
    replication: int = 3
    brokers: int = 3
    retained_bytes: int = 0
    flush_messages: int = 0

    @property
    def topic_config(self) -> Dict[str, str]:
        """Settings of its topics: nothing goes by itself, as it is counted by offsets."""
        config = {
            "min.insync.replicas": "2" if self.replication > 2 else "1",
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "cleanup.policy": "delete",
            "max.message.bytes": str(max(1048588, 2 * self.record_bytes)),
        }
        if self.flush_messages:
            config["flush.messages"] = str(self.flush_messages)
        return config

    def to_dict(self) -> Dict[str, Any]:
        """As JSON has it; equal ones can be compared."""
        return asdict(self)

    def told(self) -> str:
        """In words."""
        words = [
            f"{self.mode} ({MODES[self.mode]})",
            f"records of {self.record_bytes:,} B",
            f"batches up to {self.batch_bytes:,} B",
            f"linger {self.linger_ms} ms",
            f"compression {self.compression}",
            counted(self.producers, "producer"),
            f"{counted(self.consumers, 'consumer')} in {counted(self.groups, 'group')}",
            f"{counted(self.topics, 'topic')} of {counted(self.partitions, 'partition')}",
            f"replicas: {self.replication}, on {counted(self.brokers, 'broker')}",
        ]
        if self.retained_bytes:
            words.append(f"{approximate_size(self.retained_bytes)} there before")
        if self.flush_messages:
            words.append(f"flush.messages={self.flush_messages}")
        return ", ".join(words)


@dataclass(frozen=True)
class Case:
    """A row: its name in the table, and what it is measured with."""

    name: str
    setup: Setup


@dataclass(frozen=True)
class Plan:
    """The rows, how long each has load (seconds), and how many bytes each may write, without replicas."""

    cases: Tuple[Case, ...]
    seconds: float
    row_bytes: int
    tools: bool = True

    @property
    def bytes_at_most(self) -> int:
        """What all rows together leave on disks: a broker frees what a removed topic had after a minute."""
        return sum(self.bytes_of(each) for each in self._written())

    @property
    def seconds_about(self) -> float:
        """How long it takes, about."""
        rows = [self.cases[0], *self.cases]
        return sum(self.seconds_of(each) for each in rows) + TOOLS_SECONDS * self.tools

    def seconds_of(self, case: Case) -> float:
        """How long a row takes, about."""
        return self.seconds + ROW_SECONDS + case.setup.retained_bytes / FILL_BYTES_A_SECOND

    def bytes_of(self, case: Case) -> int:
        """What a row writes at most, with all replicas."""
        return (self.row_bytes + case.setup.retained_bytes) * case.setup.replication

    def _written(self) -> Tuple[Case, ...]:
        """The rows, the first one before to warm up, and what Kafka's own tools write."""
        return (self.cases[0], *self.cases, *(self.cases[:1] if self.tools else ()))

    def needs(self, brokers: Sequence[int]) -> Dict[int, int]:
        """{broker: what it writes at most}."""
        found = dict.fromkeys(brokers, 0)
        for case in self._written():
            places = [each for part in placed(case.setup, brokers) for each in part]
            parts = len(places) // case.setup.replication
            for broker in places:
                found[broker] += (self.row_bytes + case.setup.retained_bytes) // parts + 1
        return found

    def lines(self, cluster: str) -> List[str]:
        """What is said before."""
        told = [
            f"does: measures {cluster} with topics of its own ({TOPIC}-...), which it removes again",
            f"first row: {self.cases[0].setup.told()}",
            "other rows, each with one difference:",
            *(f"  {each.name}" for each in self.cases[1:]),
            f"rows: {len(self.cases)}, each with {self.seconds:g} s of load, or until it has written"
            f" {approximate_size(self.row_bytes)}",
            f"takes: about {approximate_duration(self.seconds_about)}",
            f"bytes: at most {approximate_size(self.bytes_at_most)} on all disks together,"
            " freed a minute after the end",
        ]
        return told


def assignments(setup: Setup, brokers: Sequence[int], row: int) -> Dict[str, List[List[int]]]:
    """{topic: brokers of each partition, the leader first}: leaders and followers as even as can be.

    Each row has topics of other names: those of the one before are still being removed.
    """
    parts = placed(setup, brokers)
    return {
        f"{TOPIC}-{row}-{number + 1}": parts[number * setup.partitions :][: setup.partitions]
        for number in range(setup.topics)
    }


def placed(setup: Setup, brokers: Sequence[int]) -> List[List[int]]:
    """Brokers of each partition of all its topics."""
    used = sorted(brokers)[: setup.brokers]
    return [
        [used[(part + each) % len(used)] for each in range(setup.replication)]
        for part in range(setup.topics * setup.partitions)
    ]


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a whole number") from None
        if not least <= number <= most:
            raise ValueError(f"{number} is not from {least} to {most}")
        return number

    return read


def _size(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        size = parse_size_bytes(text)
        if not least <= size <= most:
            raise ValueError(f"{text} is not from {least} to {most} bytes")
        return size

    return read


def _one_of(words: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"there is no {text}{did_you_mean(text, words)}")
        return text

    return read


@dataclass(frozen=True)
class Dimension:
    """One thing that rows differ in. `values`: by default, the first row's first."""

    values: str
    read: Callable[[str], Any]
    form: str


DIMENSIONS: Dict[str, Dimension] = {
    "mode": Dimension("async,sync,leader,none", _one_of(list(MODES)), ", ".join(MODES)),
    "record_bytes": Dimension(
        "100,10,1000,100000", _size(LEAST_RECORD, 8 * 2**20), f"sizes from {LEAST_RECORD} on"
    ),
    "batch_bytes": Dimension("65536,16384", _size(1, 8 * 2**20), "sizes"),
    "linger_ms": Dimension("5", _number(0, 60000), "milliseconds"),
    "compression": Dimension("none,lz4", _one_of(COMPRESSIONS), ", ".join(COMPRESSIONS)),
    "producers": Dimension("1,2", _number(1, 64), "whole numbers from 1 on"),
    "consumers": Dimension("1,3", _number(1, 64), "whole numbers from 1 on"),
    "groups": Dimension("1", _number(1, 16), "whole numbers from 1 on"),
    "partitions": Dimension("3,12", _number(1, 1000), "whole numbers from 1 on"),
    "topics": Dimension("1,4", _number(1, 100), "whole numbers from 1 on"),
    "replication": Dimension("3,1", _number(1, 100), "whole numbers from 1 on"),
    "brokers": Dimension("", _number(1, 1000), "whole numbers from 1 on"),
    "retained_bytes": Dimension("0,128MiB", _size(0, 2**50), "sizes such as 128MiB"),
    "flush_messages": Dimension("0,1", _number(0, 2**31), "whole numbers, 0 for Kafka's default"),
}
OTHERS: Dict[str, Dimension] = {
    "seconds": Dimension("3", _number(1, 3600), "seconds of load of each row"),
    "row_bytes": Dimension("192MiB", _size(2**20, 2**50), "what a row may write at most"),
    "tools": Dimension("true", _one_of(["true", "false"]), "true or false"),
}
_ORDER = [each.name for each in fields(Setup)]


@dataclass(frozen=True)
class Asked:
    """What a user has asked for: the dimensions to vary, and values by dimension."""

    vary: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


def planned(asked: Asked, brokers: int) -> Plan:
    """The plan for a cluster of so many brokers. ProblemError names the variable and what may be written."""
    unknown = [name for name in asked.values if name not in {**DIMENSIONS, **OTHERS}]
    if unknown:
        raise _unknown(f"benchmark_{unknown[0]}", "", [f"benchmark_{each}" for each in _ALL])
    given = [name for name in DIMENSIONS if str(asked.values.get(name, "")).strip()]
    varied = _varied(asked.vary, given)
    values = {name: _values(name, asked, brokers) for name in DIMENSIONS}
    first = Setup(**{name: found[0] for name, found in values.items()})
    cases = [Case(FIRST, first)]
    for name in _ORDER:
        if name in varied:
            cases += [_case(first, name, each, "replication" in given) for each in values[name][1:]]
    if len(cases) > 1:
        cases.append(Case(AGAIN, first))
    for case in cases:
        _possible(case.setup, brokers)
    more = {name: _values(name, asked, brokers)[0] for name in OTHERS}
    return Plan(tuple(cases), float(more["seconds"]), more["row_bytes"], more["tools"] == "true")


def _case(first: Setup, name: str, value: Any, replicas_given: bool) -> Case:
    """The row that has this value. Fewer brokers have fewer replicas, unless somebody has said how many."""
    more: Dict[str, Any] = {name: value}
    if name == "brokers" and value < first.replication and not replicas_given:
        more["replication"] = value
    said = ", ".join(f"{each}={_written(each, of)}" for each, of in more.items())
    return Case(said, replace(first, **more))


_ALL = [*DIMENSIONS, *OTHERS]


def _written(name: str, value: Any) -> str:
    return format_size_bytes(value) if name.endswith("_bytes") else str(value)


def _varied(text: str, given: Sequence[str]) -> List[str]:
    """What varies: what is named, otherwise that of which there are values, otherwise everything."""
    names = [each.strip() for each in text.split(",") if each.strip()]
    if not names and given:
        return list(given)
    if not names or names == ["all"]:
        return list(DIMENSIONS)
    if names == ["first"]:
        return []
    for name in names:
        if name not in DIMENSIONS:
            raise _unknown("benchmark", text, [*DIMENSIONS, "all", "first"], name)
    return names


def _unknown(setting: str, value: str, known: Sequence[str], name: str = "") -> ProblemError:
    name = name or setting
    return refusal(
        "benchmark.unknown",
        f"{setting}={value}" if value else setting,
        f"there is no {name}{did_you_mean(name, known)}",
        f"choose of {', '.join(known)}",
    )


def _values(name: str, asked: Asked, brokers: int) -> List[Any]:
    dimension = {**DIMENSIONS, **OTHERS}[name]
    text = str(asked.values.get(name, "")).strip()
    given = text or _default(name, brokers)
    try:
        found = [dimension.read(each.strip()) for each in given.split(",")]
        if name in OTHERS and len(found) > 1:
            raise ValueError("it takes one value")
    except ValueError as error:
        remedy = f"write {dimension.form}" + ("" if name in OTHERS else ", several with commas")
        raise refusal(
            "benchmark.bad_value", f"benchmark_{name}={text}", str(error), remedy
        ) from None
    # a value twice would be a row twice
    return list(dict.fromkeys(found))


def _default(name: str, brokers: int) -> str:
    """Of small clusters, what they can have."""
    if name == "brokers":
        return ",".join(str(each) for each in dict.fromkeys([brokers, min(3, brokers), 1]))
    if name == "replication":
        return ",".join(dict.fromkeys([str(min(3, brokers)), "1"]))
    return {**DIMENSIONS, **OTHERS}[name].values


def _possible(setup: Setup, brokers: int) -> None:
    for name, value in (("brokers", setup.brokers), ("replication", setup.replication)):
        most = brokers if name == "brokers" else setup.brokers
        if value > most:
            raise refusal(
                "benchmark.too_few_brokers",
                f"benchmark_{name}={value}",
                f"there are {counted(most, 'broker')} for it",
                f"choose at most {most}",
            )


@dataclass(frozen=True)
class Place:
    """A log directory: its broker, the host of it, and the file system's size and free bytes (None: not told)."""

    broker: int
    host: str
    total: Optional[int]
    usable: Optional[int]


def short_of_room(plan: Plan, brokers: Sequence[int], places: Sequence[Place]) -> Iterator[str]:
    """What is said of each file system that has not enough room. Those of one host and size count as one."""
    needs = plan.needs(brokers)
    wanted: Dict[Tuple[str, int], float] = {}
    free: Dict[Tuple[str, int], int] = {}
    for place in places:
        if place.total is None or place.usable is None:
            continue
        key = (place.host, place.total)
        directories = sum(each.broker == place.broker for each in places)
        wanted[key] = wanted.get(key, 0.0) + needs.get(place.broker, 0) / directories
        free[key] = min(free.get(key, place.usable), place.usable)
    for (host, total), bytes_wanted in wanted.items():
        room = free[(host, total)] - int(total * RESERVE_SHARE)
        if bytes_wanted > room:
            yield (
                f"{host}: up to {approximate_size(int(bytes_wanted))} may be written, and"
                f" {approximate_size(free[(host, total)])} are free,"
                f" of which {approximate_size(int(total * RESERVE_SHARE))} stay so"
            )


def untold(places: Sequence[Place]) -> bool:
    """Whether some broker does not tell how much room it has."""
    return any(each.total is None or each.usable is None for each in places)
