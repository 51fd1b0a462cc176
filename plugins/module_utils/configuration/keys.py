# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Is a configuration key known to this version of the product, and is its value legal?

The tables come from the products themselves (`kafka.server.KafkaConfig` prints type, default, valid
values and update mode of every key); here they are only read. Pure: tables in, problems out.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    parse_duration_ms,
    parse_size_bytes,
)

UNKNOWN = "config.unknown_key"
BAD_VALUE = "config.bad_value"
REMOVED = "config.removed_key"
OWNED = "config.owned_key"
PLUGIN = "config.plugin_key"
DEPRECATED = "config.deprecated_key"

# Keys below these prefixes are read by plug-ins or per listener; Kafka's own table does not list
# them. `listener.name.<name>.<key>` is looked up by its <key> instead.
PLUGIN_PREFIXES = (
    "authorizer.",
    "client.quota.callback.",
    "config.providers.",
    "metrics.jmx.",
    "principal.builder.",
    "rlmm.config.",
    "rsm.config.",
)
# Read by the bundled AclAuthorizer and by the metrics reporter, and so by no table.
UNLISTED_KEYS = {
    "allow.everyone.if.no.acl.found": "boolean",
    "kafka.metrics.polling.interval.secs": "int",
    "kafka.metrics.reporters": "list",
}
LISTENER_KEY = re.compile(r"^listener\.name\.(?P<listener>[^.]+)\.(?P<key>.+)$")

INTEGER_BITS = {"short": 16, "int": 32, "long": 64}
NUMBER = re.compile(r"^[+-]?\d+$")
# What the last word of a key counts, in milliseconds.
UNIT_MS = {"ms": 1, "seconds": 1000, "minutes": 60000, "hours": 3600000}


@dataclass(frozen=True)
class KeyTable:
    """What one version knows: key -> {type, default, valid, ...}, and keys that are gone."""

    version: str
    keys: Mapping[str, Mapping[str, Any]]
    removed: Mapping[str, Mapping[str, str]]
    owned: Mapping[str, str]
    prefixes: Tuple[str, ...] = PLUGIN_PREFIXES
    # Patterns of keys whose middle is free, as server.1 or group.2 of ZooKeeper.
    patterns: Tuple[str, ...] = ()
    # (pattern, what to set instead) of keys that follow from variables, as server.1.
    owned_patterns: Tuple[Tuple[str, str], ...] = ()


def broker_table(
    table: Mapping[str, Any],
    removed: Mapping[str, Any],
    owned: Mapping[str, str],
    prefixes: Iterable[str] = (),
) -> KeyTable:
    """The table of roles/kafka/files/config-keys/<version>.json as a value.

    `removed` is removed.json: a key of it that this version still knows is not removed yet.
    """
    keys = dict(table.get("broker") or {})
    for key, kind in UNLISTED_KEYS.items():
        keys.setdefault(key, {"type": kind})
    gone = {key: about for key, about in removed.items() if key not in keys and key != "version"}
    return KeyTable(
        version=f"Kafka {table.get('version', '?')}",
        keys=keys,
        removed=gone,
        owned=owned,
        prefixes=PLUGIN_PREFIXES + tuple(prefixes),
    )


def zookeeper_table(
    table: Mapping[str, Mapping[str, Any]], owned: Mapping[str, str], version: str = "ZooKeeper"
) -> KeyTable:
    """The table of roles/zookeeper/files/config-keys.json as a value.

    An entry with `pattern` stands for many keys (weight.1); one with `instead` is a setting of
    ZooKeeper that zoo.cfg does not reach. `server.N` follows from the group.
    """
    keys, removed, patterns = {}, {}, []
    for key, about in table.items():
        if about.get("pattern"):
            if key != "server.N":
                patterns.append(about["pattern"])
        elif about.get("instead"):
            removed[key] = {"removed_in": "", "instead": about["instead"]}
        else:
            keys[key] = about
    return KeyTable(
        version=version,
        keys=keys,
        removed=removed,
        owned=owned,
        prefixes=(),
        patterns=tuple(patterns),
        owned_patterns=((r"^server\.", "the hosts of the zookeeper group"),),
    )


def check_key(key: Any, value: Any, table: KeyTable) -> Optional[Problem]:
    """The problem with `key: value`, or None. A note (plug-in key) is a problem of its own kind."""
    if not isinstance(key, str):
        return Problem(
            UNKNOWN, "a key has to be a string", "write the key as text, in quotes if need be"
        )
    if key == "process.roles":
        return Problem(
            OWNED, "it makes a KRaft broker, and this one needs ZooKeeper", "leave it out"
        )
    if key in table.owned:
        return Problem(
            OWNED,
            "the collection computes this key",
            f"set {table.owned[key]} instead",
        )
    for pattern, variable in table.owned_patterns:
        if re.match(pattern, key):
            return Problem(OWNED, "the collection computes this key", f"set {variable}")
    if key in table.removed:
        about = table.removed[key]
        since = about.get("removed_in")
        return Problem(
            REMOVED,
            f"removed in {since}" if since else f"{table.version} does not read this key",
            f"use {about['instead']}" if about.get("instead") else "leave it out",
        )
    listed = table.keys.get(key)
    if listed is None:
        return _unlisted(key, value, table)
    return value_problem(key, value, listed) or _deprecation(listed)


def _unlisted(key: str, value: Any, table: KeyTable) -> Optional[Problem]:
    match = LISTENER_KEY.match(key)
    if match:
        # A mechanism may stand between: listener.name.inside.scram-sha-256.sasl.jaas.config
        rest = match.group("key")
        for candidate in (rest, rest.partition(".")[2]):
            if candidate in table.keys:
                return value_problem(key, value, table.keys[candidate])
        return Problem(
            PLUGIN, "a listener's own key, not in the table", "nothing to do, if it is meant so"
        )
    for pattern in table.patterns:
        if re.match(pattern, key):
            return None
    for prefix in table.prefixes:
        if key.startswith(prefix):
            return Problem(
                PLUGIN,
                f"a key of a plug-in (prefix {prefix}), not checked",
                "nothing to do, if the plug-in knows the key",
            )
    near = nearest(key, list(table.keys) + list(table.removed) + list(table.owned))
    return Problem(
        UNKNOWN,
        f"{table.version} has no such key",
        (
            f"did you mean `{near}`?"
            if near
            else "correct the spelling; if a plug-in reads it, name its prefix in"
            " kafka_plugin_prefixes"
        ),
    )


def nearest(name: str, names: Iterable[str], cutoff: float = 0.75) -> Optional[str]:
    """The name most like `name`, if any is like it at all; 1.0 as `cutoff` is the name itself."""
    pool = list(names)
    swapped = name.replace("_", ".").lower()
    if swapped != name and swapped in pool:
        return swapped
    matches = difflib.get_close_matches(name, pool, n=1, cutoff=cutoff)
    return matches[0] if matches else None


def _deprecation(about: Mapping[str, Any]) -> Optional[Problem]:
    if not about.get("deprecated"):
        return None
    told = about["deprecated"]
    return Problem(
        DEPRECATED,
        "deprecated" if told is True else f"deprecated: {told}",
        "look for what takes its place before the next upgrade",
    )


def _bad(reason: str, remedy: str) -> Problem:
    return Problem(BAD_VALUE, reason, remedy)


def value_problem(key: str, value: Any, about: Mapping[str, Any]) -> Optional[Problem]:
    """Why Kafka would refuse a value; `about` is the key's entry in the table: type, valid."""
    kind = str(about.get("type", "string")).lower()
    valid = about.get("valid")
    if isinstance(valid, (list, tuple)):
        valid = f"[{', '.join(str(item) for item in valid)}]"
    valid = "" if valid is None else str(valid).strip()
    wanted = f"a value of type {kind}{f', {valid}' if valid else ''}"
    if isinstance(value, Mapping):
        return _bad("a mapping, where one value belongs", f"give {wanted}")
    if value is None:
        return _bad("there is no value", f"give {wanted}, or leave the key out")
    if isinstance(value, (list, tuple)):
        if kind != "list":
            return _bad("a list, where one value belongs", f"give {wanted}")
        parts = [_text(item) for item in value]
        text = ",".join(parts)
    else:
        text = _text(value)
        parts = [part.strip() for part in text.split(",")] if kind == "list" else [text]
    if kind == "boolean":
        if text.lower() not in ("true", "false"):
            return _bad("not a boolean", "give true or false")
        return None
    if kind in INTEGER_BITS:
        return _integer_problem(key, text, kind, valid)
    if kind == "double":
        try:
            number = float(text)
        except ValueError:
            return _bad("not a number", f"give a number{f' in {valid}' if valid else ''}")
        return _range_problem(number, valid)
    return _choice_problem(parts if text else [], text, valid)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip()


def _integer_problem(key: str, text: str, kind: str, valid: str) -> Optional[Problem]:
    if not NUMBER.match(text):
        plain = _plain_number(key, text)
        return _bad(
            "not a whole number",
            (
                f"write it as {plain}"
                if plain is not None
                else "give a whole number, without a unit"
            ),
        )
    number = int(text)
    limit = 2 ** (INTEGER_BITS[kind] - 1)
    if not -limit <= number < limit:
        return _bad(f"outside the range of type {kind}", f"give at most {limit - 1}")
    return _range_problem(number, valid)


def _plain_number(key: str, text: str) -> Optional[int]:
    """What a human unit means to this key: 10GiB for bytes, 7d for a key that ends in its unit."""
    try:
        if "bytes" in key:
            return parse_size_bytes(text)
        factor = UNIT_MS.get(key.rpartition(".")[2])
        milliseconds = parse_duration_ms(text)
    except ValueError:
        return None
    if factor and milliseconds % factor == 0:
        return milliseconds // factor
    return None


# As levels of gzip: 1 to 9, and -1 for its default.
OR_ONE_MORE = re.compile(r"^(?P<range>\[.*\]) or (?P<other>-?[0-9]+)$")
RANGE = re.compile(r"^\[(?P<low>[^,\]]*),\s*\.\.\.(?:,\s*(?P<high>[^\]]*))?\]$")


def _range_problem(number: float, valid: str) -> Optional[Problem]:
    several = OR_ONE_MORE.match(valid)
    if several:
        if number == int(several.group("other")):
            return None
        problem = _range_problem(number, several.group("range"))
        return problem and _bad(
            f"outside {valid}", f"{problem.remedy}, or {several.group('other')}"
        )
    match = RANGE.match(valid)
    if not match:
        if valid.startswith("[") and "..." not in valid:
            # Some numbers are an enumeration: acks-like keys, [-1, 0, 1]
            choices = [item.strip() for item in valid.strip("[]").split(",")]
            if choices and all(NUMBER.match(item) for item in choices):
                if f"{number:g}" not in choices:
                    return _bad(f"not one of {valid}", f"give one of {valid}")
        return None
    for name, broken in (
        ("low", lambda limit: number < limit),
        ("high", lambda limit: number > limit),
    ):
        text = (match.group(name) or "").strip()
        try:
            limit = float(text)
        except ValueError:
            continue
        if broken(limit):
            bound = "at least" if name == "low" else "at most"
            return _bad(f"outside {valid}", f"give {bound} {text}")
    return None


THROTTLED = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


def _choice_problem(parts: Iterable[str], text: str, valid: str) -> Optional[Problem]:
    if valid == THROTTLED:
        return _throttled_problem(text)
    if valid in ("non-empty string", "non-empty list") and not text:
        return _bad("empty", "give a value")
    insensitive = valid.startswith("(case insensitive)")
    listed = valid[len("(case insensitive)") :].strip() if insensitive else valid
    match = re.match(r"^\[([^\[\]]*)\]$", listed)
    if not match or "..." in listed:
        return None
    choices = [item.strip() for item in match.group(1).split(",") if item.strip()]
    if not choices:
        return None
    known = {item.lower() for item in choices} if insensitive else set(choices)
    # Kafka reads 3.9 and 3.9.2 as 3.9-IV0, though its table lists only that.
    short = {item.split("-IV")[0] for item in choices if "-IV" in item}
    for part in parts:
        if short and ".".join(part.split(".")[:2]) in short:
            continue
        if (part.lower() if insensitive else part) not in known:
            near = nearest(part, choices)
            return _bad(
                f"{part} is not one of {', '.join(choices)}",
                f"did you mean `{near}`?" if near else f"give one of {', '.join(choices)}",
            )
    return None


def _throttled_problem(text: str) -> Optional[Problem]:
    """Kafka splits the whole at commas and colons, and wants pairs, or an asterisk for all replicas."""
    # The table writes its default, which is empty, with quotes.
    if text in ("*", '""') or re.match(r"^(\d+:\d+)?(\s*,\s*(\d+:\d+)?)*$", text):
        return None
    reason = "not a list of PARTITION:BROKER"
    return _bad(
        reason, "write it like 0:1,0:2, or * for all replicas, or leave it to who moves them"
    )


def check_mapping(mapping: Mapping[Any, Any], table: KeyTable) -> Dict[Any, Problem]:
    """key -> problem, for the keys of `mapping` that have one."""
    problems = {}
    for key, value in mapping.items():
        problem = check_key(key, value, table)
        if problem is not None:
            problems[key] = problem
    return problems
