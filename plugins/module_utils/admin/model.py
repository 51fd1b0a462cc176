# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Frozen values of a Kafka cluster, and of what people ask for; parsed and normalised once.

Private to this collection. Everything behind this line can rely on: names are legal, numbers are
numbers, configuration values are Kafka's own canonical strings. No I/O, no Ansible.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    UNLIMITED,
    format_duration_ms,
    format_size_bytes,
    parse_duration_ms,
    parse_size_bytes,
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
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", None),),
}
# (topic, partition), and (broker, partition)
Key = Tuple[str, int]
Place = Tuple[int, Key]
# A disk that is full takes its directory down: so much of it stays free, but not more than a twentieth.
RESERVE_BYTES = 2**30
RESERVE_SHARE = 20


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
    """A log directory as its broker tells it: bytes of each replica; of its disk, None: not told."""

    path: str
    replicas: Mapping[Key, int] = field(default_factory=dict)
    online: bool = True
    total: Optional[int] = None
    usable: Optional[int] = None

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
    def led(self) -> FrozenSet[Key]:
        """The partitions that have a leader."""
        return frozenset(
            (name, part.id)
            for name, topic in self.topics.items()
            for part in topic.partitions
            if part.leader is not None
        )


def partition_name(topic: str, partition: int) -> str:
    """How a partition is written: topic-0; `partition_of` reads it."""
    return f"{topic}-{partition}"


def partition_of(name: str) -> Key:
    """(topic, partition) of `partition_name`."""
    topic, _dash, partition = name.rpartition("-")
    return topic, int(partition)


# ---------------------------------------------------------------- what people ask for


@dataclass(frozen=True)
class DesiredTopic:
    """A topic as declared. None: not declared. A config value of None: back to the default."""

    name: str
    state: str = "present"
    partitions: Optional[int] = None
    replication_factor: Optional[int] = None
    config: Mapping[str, Optional[str]] = field(default_factory=dict)


NAME_MAX = 249
_NAME = re.compile(r"[A-Za-z0-9._-]+\Z")
_INTEGER = re.compile(r"-?[0-9]+\Z")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE]-?[0-9]+)?\Z")
# Order means nothing to Kafka in these.
_LIST_KEYS = frozenset(
    (
        "cleanup.policy",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
    )
)
_CLEANUP_CHOICES = ("delete", "compact", "compact,delete")
CLEANUP_REMEDY = "use delete, compact, or compact,delete"
_ITEM_KEYS = (
    "name",
    "state",
    "partitions",
    "replication_factor",
    "retention",
    "retention_size",
    "cleanup",
    "config",
)
# What the client library can send.
_COUNT_MAX = {"partitions": 100000, "replication_factor": 10000}


@dataclass(frozen=True)
class Shorthand:
    """A friendly option: Kafka's key, how its value is read and written, and `unclear_below`.

    YAML reads 1:30 as the number 90 and 010 as 8. A bare number below `unclear_below` is more
    likely one of those than a limit in milliseconds or bytes: the wrong guess deletes records.
    """

    option: str
    key: str
    parse: Callable[[Any], int]
    write: Callable[[int], str]
    unit: str
    unclear_below: int

    def read(self, value: Any) -> str:
        """Kafka's text for the value; ValueError with a sentence."""
        if value in (UNLIMITED, str(UNLIMITED)) and not isinstance(value, bool):
            return str(UNLIMITED)  # as in config, under Kafka's own name
        number = self.parse(value)
        if isinstance(value, int) and 0 <= number < self.unclear_below:
            raise ValueError(
                f"YAML hands over the number {number}, which may have been written as 1:30 or 010; "
                f'write it in quotes and with its unit, as "{number}{self.unit}" or '
                f'"{self.write(self.unclear_below)}"'
            )
        return str(number)


RETENTION = Shorthand(
    "retention", "retention.ms", parse_duration_ms, format_duration_ms, "ms", 3600000
)
RETENTION_SIZE = Shorthand(
    "retention_size", "retention.bytes", parse_size_bytes, format_size_bytes, "B", 2**20
)
_SHORTHANDS = (RETENTION, RETENTION_SIZE)


def cleanup_policy(value: Any) -> str:
    """Kafka's text for a cleanup policy, a text or a list; ValueError for one that does not exist."""
    parts = value if isinstance(value, (list, tuple)) else str(value).split(",")
    policy = ",".join(sorted(str(part).strip() for part in parts))
    if policy not in _CLEANUP_CHOICES:
        raise ValueError("not a cleanup policy")
    return policy


def name_problem(name: Any) -> Optional[str]:
    """Why Kafka would not accept a topic name, or why it is unclear which one is meant; or None."""
    if name is None or name == "":
        return "a topic needs a name"
    if not isinstance(name, str):
        return unclear_name(name)
    if name in (".", ".."):
        return "`.` and `..` cannot be names, they would be directories"
    if len(name) > NAME_MAX:
        return f"the name has {len(name)} characters, Kafka allows {NAME_MAX}"
    if not _NAME.match(name):
        wrong = sorted({sign for sign in name if not _NAME.match(sign)})
        signs = " ".join(repr(sign) for sign in wrong)
        return f"the name contains {signs}, Kafka allows letters, digits and . _ -"
    return None


def unclear_name(name: Any) -> str:
    """Why it is unclear which name is meant by what is not a text."""
    what = "boolean" if isinstance(name, bool) else "number"
    if not isinstance(name, (bool, int, float)):
        return f"a name must be text, not {type(name).__name__}"
    return (
        f"YAML reads what is written here as the {what} {name}, as it does with yes, 0123 and "
        "12:30; write the name in quotes"
    )


def collision_key(name: str) -> str:
    """Names with the same key collide: metric names replace `.` by `_`."""
    return name.replace(".", "_")


def did_you_mean(name: Any, known: Iterable[str], count: int = 1) -> str:
    """`, did you mean ...` for the known names nearest to this one, or an empty string."""
    close = difflib.get_close_matches(str(name), sorted(known), n=count, cutoff=0.6)
    return f", did you mean {' or '.join(close)}" if close else ""


def canonical_value(key: str, value: Any) -> Optional[str]:
    """Kafka's string for a value as YAML gives it; None stays None (back to the default).

    Booleans become true/false, lists are joined by commas, `7d` and `512MiB` are read where the
    key ends in `.ms` or `.bytes`. Raises ValueError with a sentence.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(canonical_value(key, item)) for item in value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a number that Kafka knows")
        return str(int(value)) if value == int(value) else repr(value)
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"a value must be a text, number, boolean or list, not {value!r}")
    text = value.strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    if _INTEGER.match(text):
        return str(int(text))
    if key.endswith(".ms"):
        return str(parse_duration_ms(text))
    if key.endswith(".bytes"):
        return str(parse_size_bytes(text))
    if key in _LIST_KEYS:
        return ",".join(part.strip() for part in text.split(",") if part.strip())
    return text


def same_value(key: str, one: Optional[str], other: Optional[str]) -> bool:
    """Whether two canonical values mean the same to Kafka: 0.5 and 0.50, a,b and b,a."""
    if one == other:
        return True
    if one is None or other is None:
        return False
    if _NUMBER.match(one) and _NUMBER.match(other):
        return Decimal(one) == Decimal(other)
    if key in _LIST_KEYS:
        return set(one.split(",")) == set(other.split(","))
    return one.lower() == other.lower() and one.lower() in ("true", "false")


def _count(item: Mapping[str, Any], key: str) -> Optional[int]:
    """A positive integer option of an item, None if absent; raises ValueError."""
    value = item.get(key)
    if value is None:
        return None
    if isinstance(value, str) and _INTEGER.match(value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be a whole number, not {value!r}")
    if not 1 <= value <= _COUNT_MAX[key]:
        raise ValueError(f"must be between 1 and {_COUNT_MAX[key]}")
    return value


class _ItemReader:
    """Reads one item and collects everything that is wrong with it, not only the first."""

    def __init__(self, item: Any, position: int):
        self.item = item
        self.refusals: List[Problem] = []
        name = item.get("name") if isinstance(item, Mapping) else None
        self.subject = name if isinstance(name, str) and name else f"topics[{position}]"

    def refuse(
        self, check: str, reason: str, remedy: str, setting: str = "", value: Any = ""
    ) -> None:
        """Note a problem of this item."""
        self.refusals.append(Problem(check, reason, remedy, (self.subject,), setting, str(value)))

    def read(self) -> Optional[DesiredTopic]:
        """The topic; None if something is wrong with it."""
        item = self.item
        if not isinstance(item, Mapping):
            self.refuse(
                "topics.bad_item", f"an item must be a mapping, not {item!r}", "write name: ..."
            )
            return None
        for key in item:
            if key not in _ITEM_KEYS:
                self.refuse(
                    "topics.unknown_option",
                    f"unknown option{did_you_mean(key, _ITEM_KEYS)}",
                    f"use {', '.join(_ITEM_KEYS)}; Kafka's own settings go into config",
                    str(key),
                    item[key],
                )
        name = item.get("name")
        problem = name_problem(name)
        if problem:
            quote = isinstance(name, (bool, int, float))
            remedy = "write the name in quotes" if quote else "choose another name"
            self.refuse("topics.bad_name", problem, remedy, "name", name)
        state = item.get("state") or "present"
        if state not in ("present", "absent"):
            self.refuse("topics.bad_value", "not a state", "use present or absent", "state", state)
        counts = {}
        for key in ("partitions", "replication_factor"):
            try:
                counts[key] = _count(item, key)
            except ValueError as error:
                self.refuse("topics.bad_value", str(error), f"correct {key}", key, item[key])
        config = self._config()
        if self.refusals:
            return None
        return DesiredTopic(item["name"], state, config=config, **counts)

    def _config(self) -> Dict[str, Optional[str]]:
        raw = self.item.get("config")
        raw = {} if raw is None else raw
        if not isinstance(raw, Mapping):
            self.refuse(
                "topics.bad_value", "config must be a mapping", "write key: value", "config", raw
            )
            return {}
        config: Dict[str, Optional[str]] = {}
        for key, value in raw.items():
            try:
                config[str(key)] = canonical_value(str(key), value)
            except ValueError as error:
                self.refuse("config.bad_value", str(error), f"correct {key}", str(key), value)
        for shorthand in _SHORTHANDS:
            value = self.item.get(shorthand.option)
            if value is None:
                continue
            if shorthand.key in config:
                self._contradiction(shorthand.option, shorthand.key)
                continue
            try:
                config[shorthand.key] = shorthand.read(value)
            except ValueError as error:
                option = shorthand.option
                self.refuse("config.bad_value", str(error), f"correct {option}", option, value)
        self._cleanup(config)
        return config

    def _cleanup(self, config: Dict[str, Optional[str]]) -> None:
        value = self.item.get("cleanup")
        if value is None:
            return
        if "cleanup.policy" in config:
            self._contradiction("cleanup", "cleanup.policy")
            return
        try:
            config["cleanup.policy"] = cleanup_policy(value)
        except ValueError as error:
            self.refuse("config.bad_value", str(error), CLEANUP_REMEDY, "cleanup", value)

    def _contradiction(self, option: str, key: str) -> None:
        self.refuse(
            "topics.contradiction",
            f"both {option} and config {key} are given",
            "keep one of them",
            option,
            self.item[option],
        )


def parse_topics(
    items: Sequence[Any],
) -> Tuple[Tuple[DesiredTopic, ...], Tuple[Problem, ...]]:
    """Desired topics in the order given, and a refusal for everything that is wrong with them.

    An item that is refused is not among the topics.
    """
    topics: List[DesiredTopic] = []
    refusals: List[Problem] = []
    seen: Dict[str, int] = {}
    for position, item in enumerate(items):
        reader = _ItemReader(item, position)
        topic = reader.read()
        refusals += reader.refusals
        if topic is None:
            continue
        if topic.name in seen:
            refusals.append(
                Problem(
                    "topics.duplicate",
                    f"listed twice, as item {seen[topic.name] + 1} and {position + 1}",
                    "keep one of them",
                    (topic.name,),
                )
            )
            continue
        seen[topic.name] = position
        topics.append(topic)
    return tuple(topics), tuple(refusals)


def parse_topics_text(text: str, source: str) -> List[Any]:
    """Items of a YAML or JSON file: a list, or a mapping with the key `kafka_topics` or `topics`.

    Raises ValueError with a sentence that names the source; ImportError without a YAML library,
    if the text is not JSON.
    """
    try:
        document = json.loads(text)
    except ValueError:
        import yaml  # only YAML files need it

        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(f"{source} is neither YAML nor JSON: {error}") from error
    if isinstance(document, Mapping):
        named = [document[key] for key in ("kafka_topics", "topics") if key in document]
        if len(named) != 1:
            raise ValueError(f"{source} must be a list of topics, or hold one under `kafka_topics`")
        document = named[0]
    if not isinstance(document, list):
        raise ValueError(f"{source} must be a list of topics")
    return document
