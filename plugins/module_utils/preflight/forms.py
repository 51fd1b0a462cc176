# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Forms of values that an argument spec cannot say: a path, a heap, a duration, passwords by name. Pure.

A form takes a value that has its declared type, and returns it as the roles use it. It raises ValueError with a reason
and a remedy. `FORMS` has one for each variable, or part of a variable, that needs one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as MappingType
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.moving import rate_from
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import name_problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.keys import nearest
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.start import (
    logger_levels,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.deletion import (
    is_of_the_host,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    is_secret,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.addresses import (
    bare,
    host_problem,
    is_wildcard,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply.ivy import mirror_problem

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
TYPES = {
    "str": ("not a text", "give one line of text"),
    "int": ("not a whole number", "give a whole number, without a unit"),
    "float": ("not a number", "give a number, without a unit"),
    "bool": ("neither true nor false", "write true or false"),
    "list": ("not a list", "write a list of items, each beginning with `- `"),
    "dict": ("not a mapping", "write `key: value` pairs"),
}


# A form returns the value to go on with, or raises ValueError with (reason, remedy).


def _path(text: str) -> str:
    text = text.strip()
    if not text:
        raise ValueError("empty", "give an absolute path")
    if text[0] == "~" or "$" in text:
        # Ansible's modules would make the directory that a shell means, and Kafka one that is called so.
        raise ValueError(
            "`~` and `$` mean something to a shell only, Kafka and ZooKeeper take them as names",
            "write the directory itself, beginning with /",
        )
    if text[0] != "/":
        raise ValueError("not an absolute path", "begin it with /")
    if "," in text:
        raise ValueError("a path with a comma, which Kafka reads as two", "choose another path")
    if len(text) > LONGEST_PATH:
        raise ValueError("too long for a path", "choose a shorter path")
    return text


def _own_path(text: str) -> str:
    """A directory that teardown.yml removes with all that it holds."""
    path = _path(text)
    if is_of_the_host(path):
        raise ValueError(
            "a directory that every host has, which teardown.yml would delete",
            f"name one below it, such as {path.rstrip('/')}/kafka",
        )
    return path


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
            reason, remedy = not_among(level, LOG_LEVELS)
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
        raise ValueError(*TYPES["float"]) from error
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
        problem = shape_problem("str", value) or (line_problem(str(value)) if not choices else None)
        if problem:
            raise ValueError(*problem)
        if choices and value not in choices:
            raise ValueError(*not_among(value, choices))
        return of_text(str(value))

    return form


def _passwords(users: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Passwords by name. A list or a mapping would become a password as Python writes it."""
    for name, password in users.items():
        problem = shape_problem("str", password) or line_problem(str(password))
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


def _mirror(text: str) -> str:
    problem = mirror_problem(_LOCATION(text))
    if problem:
        raise ValueError(*problem)
    return text


_DURATION = _matching(DURATION, "not a clear duration", "write 90s, 10m, 2h or 1d")
_DIGEST = _matching(
    SHA512, "not a SHA-512", "write its 128 hexadecimal digits, as sha512sum prints them"
)
_PLACE = _or_empty(
    _matching(PLACE, "neither an absolute path nor a URI", "begin it with / or hdfs://")
)
FORMS: Dict[str, Callable[[Any], Any]] = {
    "distribution_mirror": _mirror,
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
    "flow_validation_watch_latency": _or_empty(_DURATION),
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
    "kafka_application_log_dir": _own_path,
    "kafka_config_dir": _own_path,
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
    "kafka_log_dirs": _own_path,
    "kafka_loggers": _levels,
    "kafka_plugins.name": _matching(
        FILE_NAME, "not a name for a file", "use letters, digits and `_.+-`"
    ),
    "kafka_plugins.sha512": _DIGEST,
    "kafka_reassignment_throttle": _throttle,
    "kafka_sasl.users": _passwords,
    "kafka_state_dir": _own_path,
    **{f"kafka_unit_options.{name}": _unit_section for name in UNIT_SECTIONS},
    "zookeeper_account": _ACCOUNT,
    "zookeeper_address": _host,
    "zookeeper_application_log_dir": _own_path,
    "zookeeper_bind": _bind,
    "kafka_controller_bind": _bind,
    "zookeeper_config_dir": _own_path,
    "zookeeper_data_dir": _own_path,
    "zookeeper_data_log_dir": _or_empty(_own_path),
    "zookeeper_environment": _environment,
    "zookeeper_heap": _heap,
    "zookeeper_heap_dump_file": _or_empty(_path),
    "zookeeper_install_dir": _path,
    "zookeeper_instance": _NAME,
    "zookeeper_loggers": _levels,
    "zookeeper_state_dir": _own_path,
    **{f"zookeeper_unit_options.{name}": _unit_section for name in UNIT_SECTIONS},
}


def shape_problem(kind: str, value: Any) -> Optional[Tuple[str, str]]:
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
    return TYPES[kind] if wrong else None


def line_problem(text: str) -> Optional[Tuple[str, str]]:
    return ("has more than one line", "give one line of text") if "\n" in text else None


def not_among(value: Any, choices: Sequence[Any]) -> Tuple[str, str]:
    listed = ", ".join(str(each) for each in choices)
    near = nearest(str(value), [str(each) for each in choices], cutoff=0.6)
    return f"not one of {listed}", f"did you mean `{near}`?" if near else f"write one of {listed}"
