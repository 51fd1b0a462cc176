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
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Mapping, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils._plan import Refusal
from ansible_collections.kafkaops.cluster.plugins.module_utils._units import (
    parse_duration_ms,
    parse_size_bytes,
)

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
    replicas: tuple
    isr: tuple


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


@dataclass(frozen=True)
class Topic:
    """A topic as it is; `config` maps names to ConfigEntry, None if it was not read."""

    name: str
    partitions: tuple
    config: Optional[Mapping[str, ConfigEntry]] = None

    @property
    def replication_factors(self):
        """The set of replica counts: more than one member only while a reassignment runs."""
        return frozenset(len(partition.replicas) for partition in self.partitions)

    def effective(self, key):
        """The effective value of a setting, None if unknown."""
        entry = (self.config or {}).get(key)
        return entry.value if entry else None


@dataclass(frozen=True)
class Stake:
    """What a change could delete. None where it could not be learned, `unknown` says why."""

    records: Optional[int] = None
    total_records: Optional[int] = None
    bytes: Optional[int] = None
    total_bytes: Optional[int] = None
    unknown: str = ""


@dataclass(frozen=True)
class Snapshot:
    """What was read from the cluster, at one moment.

    `broker_defaults` are effective broker settings (`min.insync.replicas`, `num.partitions`, ...);
    `known_keys` the topic settings that the brokers know, None if that could not be learned;
    `stakes` maps topic names to Stake, for changes that need one.
    """

    cluster_id: Optional[str] = None
    controller: Optional[int] = None
    brokers: tuple = ()
    topics: Mapping[str, Topic] = field(default_factory=dict)
    broker_defaults: Mapping[str, str] = field(default_factory=dict)
    known_keys: Optional[frozenset] = None
    stakes: Mapping[str, Stake] = field(default_factory=dict)
    assumed: bool = False


# ---------------------------------------------------------------- what people ask for


@dataclass(frozen=True)
class DesiredTopic:
    """A topic as it shall be. None: not said. A config value of None: back to the default."""

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
# The friendly option, Kafka's key, and how the friendly value is read.
_SHORTHANDS = (
    ("retention", "retention.ms", parse_duration_ms),
    ("retention_size", "retention.bytes", parse_size_bytes),
)


def name_problem(name):
    """Why Kafka would not accept a topic name, or None."""
    if not isinstance(name, str) or not name:
        return "a topic needs a name"
    if name in (".", ".."):
        return "`.` and `..` cannot be names, they would be directories"
    if len(name) > NAME_MAX:
        return f"the name has {len(name)} characters, Kafka allows {NAME_MAX}"
    if not _NAME.match(name):
        wrong = sorted({sign for sign in name if not _NAME.match(sign)})
        signs = " ".join(repr(sign) for sign in wrong)
        return f"the name contains {signs}, Kafka allows letters, digits and . _ -"
    return None


def collision_key(name):
    """Names with the same key collide: metric names replace `.` by `_`."""
    return name.replace(".", "_")


def nearest(name, known, count=1):
    """`, did you mean ...` for the nearest known names, or an empty string."""
    close = difflib.get_close_matches(str(name), sorted(known), n=count, cutoff=0.6)
    return f", did you mean {' or '.join(close)}" if close else ""


def canonical_value(key, value):
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


def same_value(key, one, other):
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


_COUNT_MAX = {"partitions": 2**31 - 1, "replication_factor": 2**15 - 1}


def _count(item, key):
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

    def __init__(self, item, position):
        self.item = item
        self.refusals = []
        name = item.get("name") if isinstance(item, Mapping) else None
        self.subject = name if isinstance(name, str) and name else f"topics[{position}]"

    def refuse(self, check, reason, remedy, setting=""):
        self.refusals.append(Refusal(check, self.subject, reason, remedy, setting))

    def read(self):
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
                    f"unknown option{nearest(key, _ITEM_KEYS)}",
                    f"use {', '.join(_ITEM_KEYS)}; Kafka's own settings go into config",
                    f"{key}={item[key]}",
                )
        problem = name_problem(item.get("name"))
        if problem:
            self.refuse(
                "topics.bad_name", problem, "choose another name", f"name={item.get('name')}"
            )
        state = item.get("state") or "present"
        if state not in ("present", "absent"):
            self.refuse(
                "topics.bad_value", "not a state", "use present or absent", f"state={state}"
            )
        counts = {}
        for key in ("partitions", "replication_factor"):
            try:
                counts[key] = _count(item, key)
            except ValueError as error:
                self.refuse("topics.bad_value", str(error), f"correct {key}", f"{key}={item[key]}")
        config = self._config()
        if self.refusals:
            return None
        return DesiredTopic(item["name"], state, config=config, **counts)

    def _config(self):
        raw = self.item.get("config")
        raw = {} if raw is None else raw
        if not isinstance(raw, Mapping):
            self.refuse(
                "topics.bad_value", "config must be a mapping", "write key: value", f"config={raw}"
            )
            return {}
        config = {}
        for key, value in raw.items():
            try:
                config[str(key)] = canonical_value(str(key), value)
            except ValueError as error:
                self.refuse("config.bad_value", str(error), f"correct {key}", f"{key}={value}")
        for option, key, parse in _SHORTHANDS:
            value = self.item.get(option)
            if value is None:
                continue
            if key in config:
                self._contradiction(option, key)
                continue
            try:
                config[key] = str(parse(value))
            except ValueError as error:
                self.refuse(
                    "config.bad_value", str(error), f"correct {option}", f"{option}={value}"
                )
        self._cleanup(config)
        return config

    def _cleanup(self, config):
        value = self.item.get("cleanup")
        if value is None:
            return
        if "cleanup.policy" in config:
            self._contradiction("cleanup", "cleanup.policy")
            return
        parts = value if isinstance(value, (list, tuple)) else str(value).split(",")
        policy = ",".join(sorted(str(part).strip() for part in parts))
        if policy not in _CLEANUP_CHOICES:
            self.refuse(
                "config.bad_value",
                "not a cleanup policy",
                "use delete, compact, or compact,delete",
                f"cleanup={value}",
            )
            return
        config["cleanup.policy"] = policy

    def _contradiction(self, option, key):
        self.refuse(
            "topics.contradiction",
            f"both {option} and config {key} are given",
            "keep one of them",
            f"{option}={self.item[option]}",
        )


def parse_topics(items):
    """Desired topics in the order given, and a refusal for everything that is wrong with them.

    Returns (tuple of DesiredTopic, tuple of Refusal); an item that is refused is not among the
    topics.
    """
    topics, refusals, seen = [], [], {}
    for position, item in enumerate(items):
        reader = _ItemReader(item, position)
        topic = reader.read()
        refusals += reader.refusals
        if topic is None:
            continue
        if topic.name in seen:
            refusals.append(
                Refusal(
                    "topics.duplicate",
                    topic.name,
                    f"listed twice, as item {seen[topic.name] + 1} and {position + 1}",
                    "keep one of them",
                )
            )
            continue
        seen[topic.name] = position
        topics.append(topic)
    return tuple(topics), tuple(refusals)


def parse_topics_text(text, source):
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
