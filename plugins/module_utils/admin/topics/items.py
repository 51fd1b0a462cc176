# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people write of topics: items, read into desired topics. Pure.

Private to this collection.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import (
    did_you_mean,
    name_problem,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    CLEANUP_REMEDY,
    INTEGER,
    canonical_value,
    cleanup_policy,
    reason_and_remedy,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import masked
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    UNLIMITED,
    Unclear,
    format_duration_ms,
    format_size_bytes,
    parse_duration_ms,
    parse_size_bytes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import shown


@dataclass(frozen=True)
class DesiredTopic:
    """A topic as declared. None: not declared. A config value of None: back to the default.

    `written`: of Kafka's keys that another option than `config` sets, that option and its value as people wrote it.
    """

    name: str
    state: str = "present"
    partitions: Optional[int] = None
    replication_factor: Optional[int] = None
    config: Mapping[str, Optional[str]] = field(default_factory=dict)
    written: Mapping[str, Tuple[str, Any]] = field(default_factory=dict, compare=False)

    def where(self, key: str, value: Any) -> Tuple[str, Any]:
        """(option, value) that a problem of this key leads to; `value` where it stands in `config` or nowhere."""
        return self.written.get(key, (f"config.{key}", value))


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
_OF_KAFKA = re.compile(r"[a-z]+(\.[a-z]+)+\Z")
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
            raise Unclear(
                f"YAML hands over the number {number}, which may have been written as 1:30 or 010",
                f'write it in quotes and with its unit, as "{number}{self.unit}" or '
                f'"{self.write(self.unclear_below)}"',
            )
        return str(number)


RETENTION = Shorthand(
    "retention", "retention.ms", parse_duration_ms, format_duration_ms, "ms", 3600000
)
RETENTION_SIZE = Shorthand(
    "retention_size", "retention.bytes", parse_size_bytes, format_size_bytes, "B", 2**20
)
_SHORTHANDS = (RETENTION, RETENTION_SIZE)
# Options of an item that stand for a setting of Kafka.
_SHORT = {**{each.option: each.key for each in _SHORTHANDS}, "cleanup": "cleanup.policy"}


def _count(item: Mapping[str, Any], key: str) -> Optional[int]:
    """A positive integer option of an item, None if absent; raises ValueError."""
    value = item.get(key)
    if value is None:
        return None
    if isinstance(value, str) and INTEGER.match(value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be a whole number, not {shown(value)}")
    if not 1 <= value <= _COUNT_MAX[key]:
        raise ValueError(f"must be between 1 and {_COUNT_MAX[key]}")
    return value


def _stray(key: Any) -> Tuple[str, str]:
    """(reason, remedy) of a key that no item has; Kafka's own names are words with dots between them."""
    if _OF_KAFKA.match(str(key)):
        return "a setting of Kafka, beside config", f"put it below config: `config: {{{key}: ...}}`"
    options = f"use {', '.join(_ITEM_KEYS)}; Kafka's own settings go below config"
    return f"unknown option{did_you_mean(key, _ITEM_KEYS)}", options


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
        self.refusals.append(Problem(check, reason, remedy, (self.subject,), setting, value))

    def read(self) -> Optional[DesiredTopic]:
        """The topic; None if something is wrong with it."""
        item = self.item
        if not isinstance(item, Mapping):
            self.refuse(
                "topics.bad_item",
                f"an item must be a mapping, not {shown(item)}",
                "write name: ...",
            )
            return None
        for key in item:
            if key not in _ITEM_KEYS:
                self.refuse("topics.unknown_option", *_stray(key), shown(key), item[key])
        name = item.get("name")
        problem = name_problem(name)
        if problem:
            quote = isinstance(name, (bool, int, float))
            remedy = "write the name in quotes" if quote else "choose another name"
            remedy = "write name: ..." if name in (None, "") else remedy
            self.refuse("topics.bad_name", problem, remedy, "name", name)
        state = item.get("state") or "present"
        if state not in ("present", "absent"):
            self.refuse("topics.bad_value", "not a state", "use present or absent", "state", state)
        counts = {}
        for key in ("partitions", "replication_factor"):
            try:
                counts[key] = _count(item, key)
            except ValueError as error:
                self.refuse(
                    "topics.bad_value", *reason_and_remedy(error, f"correct {key}"), key, item[key]
                )
        config = self._config()
        if self.refusals:
            return None
        written = {
            key: (option, item[option])
            for option, key in _SHORT.items()
            if item.get(option) is not None
        }
        return DesiredTopic(item["name"], state, config=config, written=written, **counts)

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
                told = reason_and_remedy(error, f"correct {key}")
                visible = masked(str(key), value)
                self.refuse("config.bad_value", *told, f"config.{shown(key)}", visible)
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
                told = reason_and_remedy(error, f"correct {option}")
                self.refuse("config.bad_value", *told, option, value)
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
                    f"listed twice, as topics[{seen[topic.name]}] and topics[{position}]",
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
