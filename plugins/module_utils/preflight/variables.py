# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Is the value of a variable what the roles declare it to be?

The declaration is `roles/*/meta/argument_specs.yml`, judged by Ansible's own validator; here stands
only what a spec cannot say (ranges, forms of texts), and what the validator would let pass although
the roles, which read the value as it was written, could not work with it: a text is not a list, a list
is not a text. A role that is imported as a whole is judged by Ansible itself with the same file.
"""

from __future__ import annotations

import functools
import glob
import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.yaml import yaml_load
from ansible.module_utils.errors import ArgumentValueError

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import url_problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
    kafka_argument_spec,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.keys import nearest
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    masked,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.forms import (
    FORMS,
    TYPES,
    WrongItems,
    line_problem,
    not_among,
    shape_problem,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    parse_duration_ms,
    parse_size_bytes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import shown

_ROLES = os.path.join(os.path.dirname(__file__), "../../../roles")
# Judged by functions of their own, with ids of their own, which also take values of other types.
OWN_CHECKS = ("kafka_broker_id", "zookeeper_myid", "kafka_cluster_name", "kafka_zookeeper_chroot")
# Lists of words, of which a single one may be written without brackets: whoever reads it can.
ONE_WORD_WILL_DO = (
    "kafka_accept_unavailable",
    "kafka_client_audiences",
    "kafka_listeners.audience",
    "kafka_retention_allow_internal",
    "kafka_topics_allow",
    "kafkaops_preflight_accept",
)
# The id of a fault, where it is not settings.bad_value; the longest beginning counts.
CHECKS = {
    "distribution_mirror": "addresses.form",
    "distribution_url": "addresses.form",
    "kafka_address": "addresses.form",
    "kafka_controller_bind": "addresses.form",
    "kafka_client_security": "listeners.security",
    "kafka_listeners": "listeners.bad_value",
    "kafka_listeners.bind": "addresses.form",
    "kafka_listeners.advertised": "addresses.form",
    "kafka_sasl": "listeners.security",
    "kafka_ssl": "listeners.security",
    "zookeeper_address": "addresses.form",
    "zookeeper_bind": "addresses.form",
}
# Mappings in which secrets stand beside other values.
WITH_SECRETS = frozenset(("kafka_client_security", "kafka_sasl", "kafka_ssl"))
COUNT_MAX = 2**31 - 1
# Ranges, which a spec cannot say: of a variable, or of all whose names end so.
BOUNDS = {
    "_seconds": (1, 10**6),
    "port": (1, 65535),
    "kafka_gate_quiet_seconds": (0, 3600),
    # The controllers' own session, after which they fence a broker anyway, is one of 9 s.
    "kafka_fence_hanging_seconds": (0, 8),
    "java_minimum": (8, 999),
    "java_maximum": (8, 999),
    "jvm_service_open_files": (1, COUNT_MAX),
    "kafka_reassignment_batch": (1, COUNT_MAX),
    "flow_validation_records": (1, 10**12),
    "flow_validation_record_size_bytes": (48, 10**6),
    "flow_validation_partitions": (0, 100000),
    "flow_validation_replication_factor": (0, 2**15 - 1),
    "flow_validation_groups": (0, 16),
    "flow_validation_producers": (0, 10_000),
    "flow_validation_expected_brokers": (0, COUNT_MAX),
    "flow_validation_min_isr": (0, COUNT_MAX),
    "flow_validation_probe_margin_seconds": (0, 10**6),
    "flow_validation_rate": (0, 10**9),
    "flow_validation_prove_rate": (1, 10**6),
    "flow_validation_prove_minutes": (1, 7 * 24 * 60),
}
PEM_TEXTS = ("kafka_ssl.", "kafka_client_security.ssl_")


@dataclass(frozen=True)
class Fault:
    """What is wrong with a part of a variable's value; `where` names the part."""

    check: str
    where: str
    value: Any
    reason: str
    remedy: str


# Lists whose items have shorthands; they are judged by the modules' own readers.
READ_BY_MODULES = (
    *("kafka_topics", "kafka_retention_policies"),
    *("kafka_users", "kafka_dynamic_configs", "kafka_acls", "kafka_quotas"),
)


@functools.lru_cache(maxsize=None)
def declared() -> Mapping[str, Mapping[str, Any]]:
    """variable -> its option in the role's argument spec, of all roles of the collection."""
    options: Dict[str, Mapping[str, Any]] = {}
    for path in sorted(glob.glob(os.path.join(_ROLES, "*", "meta", "argument_specs.yml"))):
        with open(path, encoding="utf-8") as source:
            entries = yaml_load(source)["argument_specs"]
        # The first entry point is the one that declares the role's variables.
        for name, option in (next(iter(entries.values())).get("options") or {}).items():
            options.setdefault(name, option)
    for name in READ_BY_MODULES:
        options[name] = {"type": "list"}
    # The connection options of the Kafka modules, but where to connect.
    connection = {
        name: {key: option[key] for key in ("type", "choices") if key in option}
        for name, option in kafka_argument_spec().items()
        if name not in ("bootstrap_servers", "cluster_id")
    }
    options["kafka_client_security"] = {"type": "dict", "options": connection}
    return options


NOT_EMPTY = {
    "kafka_log_dirs": "name at least one directory",
    "kafka_listeners": "write at least one listener",
}

# ---------------------------------------------------------------- the judgement

_SEEN: Dict[Tuple[str, str], Tuple[Any, Tuple[Fault, ...]]] = {}
_MANY = 10000


def judged(variable: str, value: Any) -> Tuple[Any, Tuple[Fault, ...]]:
    """(the value with its declared types, faults); None where nothing can be made of the value.

    Of a list of mappings, what is right in each item is kept. The result is shared between hosts
    that have the same value: nobody may change it.
    """
    key = (variable, repr(value))
    if key not in _SEEN:
        if len(_SEEN) > _MANY:
            _SEEN.clear()
        faults: List[Fault] = []
        typed = _read(variable, variable, value, declared()[variable], faults)
        _SEEN[key] = (typed, tuple(faults))
    return _SEEN[key]


def faults_of_secrets(
    settings: Mapping[str, Any], hidden: Mapping[str, Any]
) -> List[Dict[str, str]]:
    """Faults that only the values themselves show, and not what is `hidden`: {check, where, reason, remedy}.

    Without the value, so that they may travel through results and logs.
    """
    found = []
    for name in sorted(WITH_SECRETS & settings.keys()):
        seen = {each.where for each in judged(name, hidden[name])[1]}
        found += [
            {key: getattr(each, key) for key in ("check", "where", "reason", "remedy")}
            for each in judged(name, settings[name])[1]
            if each.where not in seen
        ]
    return found


def faults_of_urls(settings: Mapping[str, Any]) -> List[Dict[str, str]]:
    """Faults of URLs that may have a login, as of `faults_of_secrets`: with it hidden, nobody sees them any more."""
    found = []
    for where, text in _urls(settings):
        problem = url_problem(text) if isinstance(text, str) else None
        if problem:
            reason, remedy = problem
            fault = {"check": _check_of(where), "where": where}
            found.append({**fault, "reason": reason, "remedy": remedy})
    return found


def _urls(settings: Mapping[str, Any]) -> Iterator[Tuple[str, Any]]:
    yield "distribution_mirror", settings.get("distribution_mirror")
    url = settings.get("distribution_url")
    for key, text in url.items() if isinstance(url, Mapping) else [("", url)]:
        yield f"distribution_url{'.' if key else ''}{key}", text
    plugins = settings.get("kafka_plugins")
    for index, each in enumerate(plugins if isinstance(plugins, (list, tuple)) else ()):
        if isinstance(each, Mapping):
            yield f"kafka_plugins[{index}].src", each.get("src")


def judged_for_module(
    variable: str, value: Any, option: Mapping[str, Any]
) -> Tuple[Any, Tuple[Fault, ...]]:
    """(the value as the module with this `option` gets it, faults) of a variable that is passed on to it.

    Ansible converts for a module what the roles' own readers refuse: one text where a list is wanted,
    say. Options that are not given are left out, but for their defaults. No fault shows a secret.
    """
    faults: List[Fault] = []
    return _read_for_module(variable, variable, value, option, faults), tuple(faults)


# where, name, value, option, faults -> the typed value
_Reader = Callable[[str, str, Any, Mapping[str, Any], List[Fault]], Any]


def _read(where: str, name: str, value: Any, option: Mapping[str, Any], faults: List[Fault]) -> Any:
    """The typed value of one option; `name` is `where` without indexes: kafka_listeners.port."""
    kind = option.get("type", "str")
    if kind == "list" and name in ONE_WORD_WILL_DO and isinstance(value, str):
        value = [each.strip() for each in value.split(",") if each.strip()]
    problem = shape_problem(kind, value)
    if problem is None and kind == "list":
        return _read_list(where, name, value, option, faults, _read)
    if problem is None and kind == "dict" and option.get("options"):
        return _read_dict(where, name, value, option, faults, _read)
    typed = value
    if problem is None and kind != "raw":
        typed, problem = _validated(name, value, kind, option.get("choices"))
    if problem is None and kind == "str" and not name.startswith(PEM_TEXTS):
        problem = line_problem(typed)
    if problem is None and kind == "int":
        problem = _outside(name, typed)
    if problem is None and name in FORMS:
        try:
            return FORMS[name](typed)
        except WrongItems as error:
            for key, *told in error.args:
                faults.append(Fault(_check_of(name), f"{where}.{shown(key)}", typed[key], *told))
            return None
        except ValueError as error:
            problem = error.args
    if problem is None:
        return typed
    faults.append(Fault(_check_of(name), where, value, *problem))
    return None


def _read_for_module(
    where: str, name: str, value: Any, option: Mapping[str, Any], faults: List[Fault]
) -> Any:
    """The value of one option as Ansible gives it to a module."""
    kind = option.get("type", "str")
    typed, problem = value, None
    if value is None:
        problem = shape_problem(kind, value)
    elif kind != "raw":
        # What is in a list is judged below, each item with its place.
        choices = None if kind == "list" else option.get("choices")
        typed, problem = _validated(name, value, kind, choices)
    if problem is not None:
        hidden = option.get("no_log") or "options" in option
        visible = "..." if hidden else masked(where.rpartition(".")[2], value)
        faults.append(Fault(_check_of(name), where, visible, *problem))
        return None
    if kind == "list":
        return _read_list(where, name, typed, option, faults, _read_for_module)
    if kind == "dict" and option.get("options"):
        return _read_dict(where, name, typed, option, faults, _read_for_module)
    return typed


def _read_list(
    where: str,
    name: str,
    value: Sequence[Any],
    option: Mapping[str, Any],
    faults: List[Fault],
    read: _Reader,
) -> Optional[List[Any]]:
    if not value and name in NOT_EMPTY:
        faults.append(Fault(_check_of(name), where, value, "an empty list", NOT_EMPTY[name]))
        return None
    inner = {key: option[key] for key in ("choices", "no_log", "options") if key in option}
    inner["type"] = option.get("elements", "raw")
    before = len(faults)
    items = [
        read(f"{where}[{index}]", name, item, inner, faults) for index, item in enumerate(value)
    ]
    if "options" in option:
        return [item for item in items if item is not None]
    return items if len(faults) == before else None


def _wanted(option: Mapping[str, Any]) -> str:
    """What an option takes, in words."""
    if "choices" in option:
        return f"one of {', '.join(map(str, option['choices']))}"
    kinds = {
        "int": "a whole number",
        "list": "a list",
        "dict": "a mapping",
        "bool": "true or false",
    }
    return kinds.get(option.get("type", "str"), "a text")


def _read_dict(
    where: str,
    name: str,
    value: Mapping[Any, Any],
    option: Mapping[str, Any],
    faults: List[Fault],
    read: _Reader,
) -> Dict[str, Any]:
    options: Mapping[str, Mapping[str, Any]] = option["options"]
    typed = {key: each["default"] for key, each in options.items() if "default" in each}
    for key, item in value.items():
        if key not in options:
            near = nearest(str(key), options, cutoff=0.6)
            remedy = f"did you mean `{near}`?" if near else f"use {', '.join(options)}"
            reason = f"{name} has no such key"
            # What is unknown may be a misspelt secret.
            faults.append(Fault(_check_of(name), f"{where}.{shown(key)}", "...", reason, remedy))
        elif item is not None or options[key].get("required"):
            typed[key] = read(f"{where}.{key}", f"{name}.{key}", item, options[key], faults)
    for key, each in options.items():
        if each.get("required") and key not in value:
            fault = ("missing", f"add {key}, {_wanted(each)}")
            faults.append(Fault(_check_of(f"{name}.{key}"), f"{where}.{key}", None, *fault))
    for names in option.get("required_one_of", ()):
        if all(value.get(key) is None for key in names):
            fault = (f"none of {', '.join(names)} is given", "name what it is about")
            faults.append(Fault(_check_of(name), where, "...", *fault))
    return typed


def _validated(
    name: str, value: Any, kind: str, choices: Optional[Sequence[Any]]
) -> Tuple[Any, Optional[Tuple[str, str]]]:
    """(value, problem) by Ansible's validator."""
    spec = {"type": kind, "choices": choices} if choices else {"type": kind}
    try:
        result = ArgumentSpecValidator({name: spec}).validate({name: value})
        errors = result.errors.errors
    except (ValueError, OverflowError, TypeError):  # .inf as a whole number
        return None, TYPES[kind]
    if not errors:
        return result.validated_parameters[name], None
    if isinstance(errors[0], ArgumentValueError):
        return None, not_among(value, choices or ())
    return None, _with_suggestion(name, value, kind)


def _with_suggestion(name: str, value: Any, kind: str) -> Tuple[str, str]:
    reason, remedy = TYPES[kind]
    try:
        if kind == "int" and name.endswith("_seconds"):
            remedy = f"write {parse_duration_ms(value) // 1000}"
        elif kind == "int" and name.endswith("_bytes"):
            remedy = f"write {parse_size_bytes(value)}"
    except ValueError:
        pass
    return reason, remedy


def _outside(name: str, number: int) -> Optional[Tuple[str, str]]:
    ends = [end for end in BOUNDS if name.endswith(end)]
    if not ends:
        return None
    low, high = BOUNDS[max(ends, key=len)]
    if low <= number <= high:
        return None
    return f"outside {low} to {high}", f"give a number from {low} to {high}"


def _check_of(name: str) -> str:
    beginnings = [each for each in CHECKS if name == each or name.startswith(f"{each}.")]
    return CHECKS[max(beginnings, key=len)] if beginnings else "settings.bad_value"


# ---------------------------------------------------------------- misspelt names


# What phases/lock.yml registers, before the preflight looks again behind the lock.
_REGISTERED = frozenset(f"kafkaops_lock{each}" for each in ("", "_plan", "_first", "_others"))


@functools.lru_cache(maxsize=None)
def meant(name: str) -> Optional[str]:
    """The variable that an unknown one was probably meant to be, None if it is like none."""
    if name in declared() or name in _REGISTERED or name.startswith("ansible_"):
        return None
    return nearest(name, sorted(declared()), cutoff=0.86)
