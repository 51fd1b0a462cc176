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
import re
from collections.abc import Mapping as MappingType
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.yaml import yaml_load
from ansible.module_utils.errors import ArgumentValueError

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
    kafka_argument_spec,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.moving import rate_from
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import name_problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.keys import nearest
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.start import (
    logger_levels,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    is_secret,
    masked,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.addresses import (
    bare,
    host_problem,
    is_wildcard,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    parse_duration_ms,
    parse_size_bytes,
)

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
    "flow_validation_partitions": (0, 200000),
    "flow_validation_replication_factor": (0, 2**15 - 1),
    "flow_validation_groups": (0, 100),
    "flow_validation_producers": (0, 10_000),
    "flow_validation_expected_brokers": (0, COUNT_MAX),
    "flow_validation_min_isr": (0, COUNT_MAX),
    "flow_validation_probe_margin_seconds": (0, 10**6),
    "flow_validation_rate": (0, 10**9),
    "flow_validation_prove_rate": (1, 10**6),
    "flow_validation_prove_minutes": (1, 7 * 24 * 60),
}
HEAP = re.compile(r"^(\d+)([kKmMgG]?)$")
HEAP_FACTOR = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
INSTANCE_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.@-]*$")
ACCOUNT = re.compile(r"^[A-Za-z_][A-Za-z0-9_.-]*$")
KERNEL_SETTING = re.compile(r"^[a-z0-9_-]+([./][A-Za-z0-9_-]+)+$")
# Kernel settings that only whole numbers can be, one or several; others may be words, such as
# net.ipv4.tcp_congestion_control.
NUMBERS_ONLY = re.compile(
    r"^(vm\.(?!numa_zonelist_order$)|fs\.(aio-max-nr|file-max|nr_open)$"
    r"|net\.core\.([rw]mem_(default|max)|netdev_max_backlog|somaxconn)$"
    r"|net\.ipv4\.tcp_([rw]?mem|max_syn_backlog|keepalive_.*|retries[12]|fin_timeout)$)"
)
WHOLE_NUMBERS = re.compile(r"^-?[0-9]+( -?[0-9]+)*$")
ENVIRONMENT_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
UNIT_KEY = re.compile(r"^[A-Z][A-Za-z0-9]*$")
FILE_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")
BOOTSTRAP = re.compile(r"^[^\s,]+:[0-9]+(,[^\s,]+:[0-9]+)*$")
SPARK_MASTER = re.compile(
    r"^(local(\[([1-9][0-9]*|\*)(, *[1-9][0-9]*)?\])?|local-cluster\[.+\]|yarn|(spark|k8s)://\S+)$"
)
PLACE = re.compile(r"^[/~]|^[a-z][a-z0-9+.-]*:/")
# What begins so says how a client logs in, with its secrets.
_LOGIN = ("sasl.", "ssl.")
UNIT_SECTIONS = ("Unit", "Service", "Install")
LOG_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF")
URL_OR_PATH = re.compile(r"^(https?|ftp|file)://|^[/~.]")
LISTENER_NAME = re.compile(r"^[A-Za-z0-9_]+$")
DURATION = re.compile(r"^[1-9][0-9]*[smhd]$")
SHA512 = re.compile(r"^[0-9a-fA-F]{128}$")
LONGEST_PATH = 4096
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


# ---------------------------------------------------------------- forms that a spec cannot say
# A form returns the value to go on with, or raises ValueError with (reason, remedy).


def _path(text: str) -> str:
    text = text.strip()
    if not text:
        raise ValueError("empty", "give an absolute path")
    if text[0] not in "/~":
        raise ValueError("not an absolute path", "begin it with /")
    if "," in text:
        raise ValueError("a path with a comma, which Kafka reads as two", "choose another path")
    if len(text) > LONGEST_PATH:
        raise ValueError("too long for a path", "choose a shorter path")
    return text


def _host(text: str) -> str:
    problem = host_problem(text.strip())
    if problem:
        raise ValueError(*problem)
    return bare(text)


def _inventory_name(text: str) -> str:
    """The name of a host to delegate to; Ansible's own error does not explain an empty one."""
    if not text.strip():
        raise ValueError("empty", "name a host of the inventory, or leave the variable out")
    return text.strip()


def _bind(text: str) -> str:
    return bare(text) if is_wildcard(text) else _host(text)


def _or_empty(form: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: form(text) if text else ""


def _matching(pattern: "re.Pattern[str]", reason: str, remedy: str) -> Callable[[str], str]:
    def form(text: str) -> str:
        if not pattern.match(text.strip()):
            raise ValueError(reason, remedy)
        return text.strip()

    return form


def _heap(text: str) -> str:
    text = text.strip()
    if not HEAP.match(text):
        raise ValueError("not a heap size of the JVM", "write it like 512m or 6g")
    if heap_bytes(text) < 16 * 2**20:
        raise ValueError("less than 16 MiB: no JVM starts with it", "write it like 512m or 6g")
    return text


def heap_bytes(text: str) -> int:
    """Bytes of a legal heap size (512m, 6g); 0 for anything else."""
    match = HEAP.match(str(text).strip())
    return int(match.group(1)) * HEAP_FACTOR[match.group(2).lower()] if match else 0


def _kernel_settings(settings: Mapping[Any, Any]) -> Dict[str, str]:
    result = {}
    for name, wanted in settings.items():
        if not KERNEL_SETTING.match(str(name)):
            reason = f"{name} is not the name of a kernel setting"
            raise ValueError(reason, "write it like vm.swappiness: 1")
        if isinstance(wanted, (MappingType, list)) or not str(wanted).strip():
            raise ValueError(f"{name} has no single value", "write it like vm.swappiness: 1")
        text = " ".join(str(wanted).split())
        if NUMBERS_ONLY.match(str(name).replace("/", ".")) and not WHOLE_NUMBERS.match(text):
            raise ValueError(f"{name}={text}: not a whole number", "write it like vm.swappiness: 1")
        result[str(name)] = text
    return result


def _levels(loggers: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Levels by logger; of one that it does not know, log4j makes DEBUG."""
    for name, level in logger_levels(loggers):
        if level not in LOG_LEVELS:
            reason, remedy = _not_among(level, LOG_LEVELS)
            raise ValueError(f"{name}={level}: {reason}", remedy)
    return loggers


def _producer_settings(settings: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Settings of the validation's producers, which stand on the command line of its job."""
    for name in settings:
        if str(name).startswith(_LOGIN) or is_secret(str(name)):
            raise ValueError(
                f"{name} would be on a command line, which every user of the host sees",
                "set it in flow_validation_client_properties, which are written into a file",
            )
    return settings


def _environment(variables: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Values by name; a shell exports them, and ends with an error at a name that it does not take."""
    for name, value in variables.items():
        if not ENVIRONMENT_NAME.match(str(name)):
            remedy = "use letters, digits and `_`, and no digit first"
            raise ValueError(f"{name} is not a name for an environment variable", remedy)
        if value is None or isinstance(value, (MappingType, list)):
            raise ValueError(f"{name} has no single value", f'write it like {name}: "..."')
    return variables


def _unit_section(settings: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Settings of a section of a unit; a list is one line for each item."""
    for key, value in settings.items():
        if not UNIT_KEY.match(str(key)):
            reason, remedy = f"{key} is not the name of a setting", "write it like TasksMax: 8192"
            raise ValueError(reason, remedy)
        for line in value if isinstance(value, list) else [value]:
            if line is None or isinstance(line, (MappingType, list)) or "\n" in str(line):
                remedy = "write one line, or a list of lines"
                raise ValueError(f"{key} has a value that is not a line of text", remedy)
            named = re.findall(r"([A-Za-z_][A-Za-z0-9_]*)=", str(line))
            if key == "Environment" and any(map(is_secret, named)):
                reason = "a secret in Environment, and every user of the host can read a unit"
                remedy = "set it in kafka_environment or zookeeper_environment"
                raise ValueError(reason, remedy)
    return settings


def _throttle(text: str) -> str:
    try:
        rate_from(text)
    except ProblemError as error:
        raise ValueError(error.problem.reason, error.problem.remedy) from error
    return text


def _topic_name(text: str) -> str:
    problem = name_problem(text)
    if problem:
        raise ValueError(problem, "choose another name")
    return text


def _watch_rate(value: Any) -> float:
    try:
        rate = float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(*_TYPES["float"]) from error
    if isinstance(value, bool) or not 0.1 <= rate <= 100:
        raise ValueError("outside 0.1 to 100", "give a number from 0.1 to 100")
    return value


def _for_each_product(*choices: str, of_text: Callable[[str], str] = str) -> Callable[[Any], Any]:
    """One text for both products, or a mapping of `kafka` and `zookeeper`; `of_text` is its form."""

    def form(value: Any) -> Any:
        if isinstance(value, MappingType):
            strange = sorted(str(key) for key in value if key not in ("kafka", "zookeeper"))
            if strange:
                raise ValueError(
                    f"{', '.join(strange)}: not a product of this collection",
                    "write one value, or one each for kafka and zookeeper",
                )
            return {key: form(item) for key, item in value.items()}
        problem = _shape("str", value) or (_one_line(str(value)) if not choices else None)
        if problem:
            raise ValueError(*problem)
        if choices and value not in choices:
            raise ValueError(*_not_among(value, choices))
        return of_text(str(value))

    return form


def _passwords(users: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Passwords by name. A list or a mapping would become a password as Python writes it."""
    for name, password in users.items():
        problem = _shape("str", password) or _one_line(str(password))
        if problem:
            raise ValueError(f"the password of {name}: {problem[0]}", problem[1])
    return users


_NAME = _matching(INSTANCE_NAME, "not a name for a service", "use letters, digits and `_.@-`")
_ACCOUNT = _or_empty(_matching(ACCOUNT, "not a name for a user", "use letters, digits and `_.-`"))
_LOCATION = _or_empty(
    _matching(
        URL_OR_PATH,
        "neither a URL nor a path",
        "write it like https://mirror.example.com/ or /srv/mirror",
    )
)
_DURATION = _matching(DURATION, "not a clear duration", "write 90s, 10m, 2h or 1d")
_DIGEST = _matching(
    SHA512, "not a SHA-512", "write its 128 hexadecimal digits, as sha512sum prints them"
)
_PLACE = _or_empty(
    _matching(PLACE, "neither an absolute path nor a URI", "begin it with / or hdfs://")
)
FORMS: Dict[str, Callable[[Any], Any]] = {
    "distribution_mirror": _LOCATION,
    "distribution_sha512": _for_each_product(of_text=_or_empty(_DIGEST)),
    "distribution_source": _for_each_product("maven", "archive"),
    "distribution_url": _for_each_product(of_text=_LOCATION),
    "flow_validation_bootstrap_servers": _or_empty(
        _matching(BOOTSTRAP, "not host:port", "write it like kafka-1:9092,kafka-2:9092")
    ),
    "flow_validation_duration": _or_empty(_DURATION),
    "flow_validation_ledger_dir": _PLACE,
    "flow_validation_master": _matching(
        SPARK_MASTER,
        "not a master of Spark",
        "write local[4], spark://HOST:PORT, yarn or k8s://...",
    ),
    "flow_validation_older_than": _DURATION,
    "flow_validation_producer_properties": _producer_settings,
    "flow_validation_reports_dir": _path,
    "flow_validation_topic": _or_empty(_topic_name),
    "flow_validation_watch_every": _DURATION,
    "flow_validation_watch_hold": _DURATION,
    "flow_validation_watch_latency": _DURATION,
    "flow_validation_watch_metrics": _or_empty(_path),
    "flow_validation_watch_rate": _watch_rate,
    "flow_validation_watch_silence": _DURATION,
    "flow_validation_watch_within": _DURATION,
    "host_baseline_sysctl": _kernel_settings,
    "java_expected_home": _path,
    "java_home": _or_empty(_path),
    "jvm_service_class_data_dir": _or_empty(_path),
    "jvm_service_supervisor_dir": _path,
    "kafkaops_cache": _path,
    "kafkaops_lock_dir": _path,
    "kafka_account": _ACCOUNT,
    "kafka_address": _or_empty(_host),
    "kafka_admin_host": _inventory_name,
    "kafka_application_log_dir": _path,
    "kafka_config_dir": _path,
    "kafka_environment": _environment,
    "kafka_heap": _heap,
    "kafka_heap_dump_file": _or_empty(_path),
    "kafka_install_dir": _path,
    "kafka_instance": _NAME,
    "kafka_listeners.advertised": _bind,
    "kafka_listeners.bind": _bind,
    "kafka_listeners.name": _matching(
        LISTENER_NAME, "not a name for a listener", "use letters, digits and `_`, as INTERNAL"
    ),
    "kafka_log_dirs": _path,
    "kafka_loggers": _levels,
    "kafka_plugins.name": _matching(
        FILE_NAME, "not a name for a file", "use letters, digits and `_.+-`"
    ),
    "kafka_plugins.sha512": _DIGEST,
    "kafka_reassignment_throttle": _throttle,
    "kafka_sasl.users": _passwords,
    "kafka_state_dir": _path,
    **{f"kafka_unit_options.{name}": _unit_section for name in UNIT_SECTIONS},
    "zookeeper_account": _ACCOUNT,
    "zookeeper_address": _host,
    "zookeeper_application_log_dir": _path,
    "zookeeper_bind": _bind,
    "kafka_controller_bind": _bind,
    "zookeeper_config_dir": _path,
    "zookeeper_data_dir": _path,
    "zookeeper_data_log_dir": _or_empty(_path),
    "zookeeper_environment": _environment,
    "zookeeper_heap": _heap,
    "zookeeper_heap_dump_file": _or_empty(_path),
    "zookeeper_install_dir": _path,
    "zookeeper_instance": _NAME,
    "zookeeper_loggers": _levels,
    "zookeeper_state_dir": _path,
    **{f"zookeeper_unit_options.{name}": _unit_section for name in UNIT_SECTIONS},
}
NOT_EMPTY = {
    "kafka_log_dirs": "name at least one directory",
    "kafka_listeners": "write at least one listener",
}

# ---------------------------------------------------------------- the judgement

_TYPES = {
    "str": ("not a text", "give one line of text"),
    "int": ("not a whole number", "give a whole number, without a unit"),
    "float": ("not a number", "give a number, without a unit"),
    "bool": ("neither true nor false", "write true or false"),
    "list": ("not a list", "write a list of items, each beginning with `- `"),
    "dict": ("not a mapping", "write `key: value` pairs"),
}
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
    problem = _shape(kind, value)
    if problem is None and kind == "list":
        return _read_list(where, name, value, option, faults, _read)
    if problem is None and kind == "dict" and option.get("options"):
        return _read_dict(where, name, value, option, faults, _read)
    typed = value
    if problem is None and kind != "raw":
        typed, problem = _validated(name, value, kind, option.get("choices"))
    if problem is None and kind == "str" and not name.startswith(PEM_TEXTS):
        problem = _one_line(typed)
    if problem is None and kind == "int":
        problem = _outside(name, typed)
    if problem is None and name in FORMS:
        try:
            return FORMS[name](typed)
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
        problem = _shape(kind, value)
    elif kind != "raw":
        # What is in a list is judged below, each item with its place.
        choices = None if kind == "list" else option.get("choices")
        typed, problem = _validated(name, value, kind, choices)
    if problem is not None:
        hidden = option.get("no_log") or "options" in option
        shown = "..." if hidden else masked(where.rpartition(".")[2], value)
        faults.append(Fault(_check_of(name), where, shown, *problem))
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
            faults.append(Fault(_check_of(name), f"{where}.{key}", "...", reason, remedy))
        elif item is not None or options[key].get("required"):
            typed[key] = read(f"{where}.{key}", f"{name}.{key}", item, options[key], faults)
    for key, each in options.items():
        if each.get("required") and key not in value:
            fault = ("missing", f"write it like {key}: ...")
            faults.append(Fault(_check_of(f"{name}.{key}"), f"{where}.{key}", None, *fault))
    for names in option.get("required_one_of", ()):
        if all(value.get(key) is None for key in names):
            fault = (f"none of {', '.join(names)} is given", "name what it is about")
            faults.append(Fault(_check_of(name), where, "...", *fault))
    return typed


def _shape(kind: str, value: Any) -> Optional[Tuple[str, str]]:
    """(reason, remedy) of a value of another type, which Ansible would convert and the roles not."""
    if value is None and kind != "raw":
        return "has no value", "give it one, or leave the variable out for its default"
    if kind == "list":
        wrong = not isinstance(value, (list, tuple))
        if wrong and isinstance(value, (str, int, float)):
            return "not a list", f"write a list: [{value if value else ''}]"
    elif kind == "dict":
        wrong = not isinstance(value, MappingType)
    elif kind in ("str", "int", "float"):
        wrong = isinstance(value, (MappingType, list, tuple, bool))
    else:
        wrong = False
    return _TYPES[kind] if wrong else None


def _validated(
    name: str, value: Any, kind: str, choices: Optional[Sequence[Any]]
) -> Tuple[Any, Optional[Tuple[str, str]]]:
    """(value, problem) by Ansible's validator."""
    spec = {"type": kind, "choices": choices} if choices else {"type": kind}
    try:
        result = ArgumentSpecValidator({name: spec}).validate({name: value})
        errors = result.errors.errors
    except (ValueError, OverflowError, TypeError):  # .inf as a whole number
        return None, _TYPES[kind]
    if not errors:
        return result.validated_parameters[name], None
    if isinstance(errors[0], ArgumentValueError):
        return None, _not_among(value, choices or ())
    return None, _with_suggestion(name, value, kind)


def _not_among(value: Any, choices: Sequence[Any]) -> Tuple[str, str]:
    listed = ", ".join(str(each) for each in choices)
    near = nearest(str(value), [str(each) for each in choices], cutoff=0.6)
    return f"not one of {listed}", f"did you mean `{near}`?" if near else f"write one of {listed}"


def _with_suggestion(name: str, value: Any, kind: str) -> Tuple[str, str]:
    reason, remedy = _TYPES[kind]
    try:
        if kind == "int" and name.endswith("_seconds"):
            remedy = f"write {parse_duration_ms(value) // 1000}"
        elif kind == "int" and name.endswith("_bytes"):
            remedy = f"write {parse_size_bytes(value)}"
    except ValueError:
        pass
    return reason, remedy


def _one_line(text: str) -> Optional[Tuple[str, str]]:
    return ("has more than one line", "give one line of text") if "\n" in text else None


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


@functools.lru_cache(maxsize=None)
def meant(name: str) -> Optional[str]:
    """The variable that an unknown one was probably meant to be, None if it is like none."""
    if name in declared() or name.startswith("ansible_"):
        return None
    return nearest(name, sorted(declared()), cutoff=0.86)
