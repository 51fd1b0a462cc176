# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Forms of values that an argument spec cannot say: a path, a heap, a duration, passwords by name. Pure.

A form takes a value that has its declared type, and returns it as the roles use it. It raises ValueError with a reason
and a remedy; that of a mapping raises WrongItems, with all that is wrong in it. `FORMS` has one for each variable, or
part of a variable, that needs one.
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
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import shown

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
NODE_ID = re.compile(r"^[0-9]+$")
# Kafka takes a hyphen, too, and CLIENT-9092 is a common name.
LISTENER_NAME = re.compile(r"^[A-Za-z0-9_-]+$")
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


class WrongItems(ValueError):
    """What is wrong with a mapping: (key, reason, remedy) for each item that is."""


# A form returns the value to go on with, or raises ValueError with (reason, remedy).


def _of_each(form: Callable[[str, Any], Any]) -> Callable[[Mapping[Any, Any]], Dict[Any, Any]]:
    """The form of a mapping by that of an item, which takes its name and its value."""

    def of_all(items: Mapping[Any, Any]) -> Dict[Any, Any]:
        read, wrong = {}, []
        for key, value in items.items():
            try:
                read[key] = form(str(key), value)
            except ValueError as error:
                wrong.append((key, *error.args))
        if wrong:
            raise WrongItems(*wrong)
        return read

    return of_all


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
    if text != text.strip():
        raise ValueError("a blank at its beginning or end", f"write it like {text.strip()}")
    return text


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


def _kernel_setting(name: str, wanted: Any) -> str:
    remedy = "write it like vm.swappiness: 1"
    if not KERNEL_SETTING.match(name):
        raise ValueError("not the name of a kernel setting", remedy)
    if wanted is None or isinstance(wanted, (MappingType, list, bool)) or not str(wanted).strip():
        raise ValueError("not a single number or word", remedy)
    text = " ".join(str(wanted).split())
    if NUMBERS_ONLY.match(name.replace("/", ".")) and not WHOLE_NUMBERS.match(text):
        raise ValueError("not a whole number", remedy)
    return text


def _level(name: str, level: Any) -> Any:
    """The level of a logger; of one that it does not know, log4j makes DEBUG."""
    ((_name, text),) = logger_levels({name: level})
    if text not in LOG_LEVELS:
        raise ValueError(*not_among(text, LOG_LEVELS))
    return level


def _producer_setting(name: str, value: Any) -> Any:
    """A setting of the validation's producers, which stands on the command line of its job."""
    if name.startswith(_LOGIN) or is_secret(name):
        raise ValueError(
            "it would be on a command line, which every user of the host sees",
            "set it in flow_validation_client_properties, which are written into a file",
        )
    return value


def _environment_variable(name: str, value: Any) -> Any:
    """A shell exports it, and ends with an error at a name that it does not take."""
    if not ENVIRONMENT_NAME.match(name):
        remedy = "use letters, digits and `_`, and no digit first"
        raise ValueError("not a name for an environment variable", remedy)
    if value is None or isinstance(value, (MappingType, list)):
        raise ValueError("not a single value", f'write it like {name}: "..."')
    return value


def _unit_setting(name: str, value: Any) -> Any:
    """A setting in a section of a unit; a list is one line for each item."""
    if not UNIT_KEY.match(name):
        raise ValueError("not the name of a setting", "write it like TasksMax: 8192")
    for line in value if isinstance(value, list) else [value]:
        if line is None or isinstance(line, (MappingType, list)) or "\n" in str(line):
            raise ValueError("not a line of text", "write one line, or a list of lines")
        named = re.findall(r"([A-Za-z_][A-Za-z0-9_]*)=", str(line))
        if name == "Environment" and any(map(is_secret, named)):
            reason = "a secret in Environment, and every user of the host can read a unit"
            raise ValueError(reason, "set it in kafka_environment or zookeeper_environment")
    return value


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

    def of_one(value: Any) -> Any:
        problem = shape_problem("str", value) or (line_problem(str(value)) if not choices else None)
        if problem:
            raise ValueError(*problem)
        if choices and value not in choices:
            raise ValueError(*not_among(value, choices))
        return of_text(str(value))

    def of_product(product: str, value: Any) -> Any:
        if product not in ("kafka", "zookeeper"):
            remedy = "write one value, or one each for kafka and zookeeper"
            raise ValueError("not a product of this collection", remedy)
        return of_one(value)

    of_each = _of_each(of_product)
    return lambda value: of_each(value) if isinstance(value, MappingType) else of_one(value)


def _password(_name: str, password: Any) -> Any:
    """A list or a mapping would become a password as Python writes it."""
    problem = shape_problem("str", password) or line_problem(str(password))
    if problem:
        raise ValueError(*problem)
    return password


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
    "flow_validation_producer_properties": _of_each(_producer_setting),
    "flow_validation_reports_dir": _path,
    "flow_validation_topic": _or_empty(_topic_name),
    "flow_validation_watch_every": _DURATION,
    "flow_validation_watch_hold": _DURATION,
    "flow_validation_watch_latency": _or_empty(_DURATION),
    "flow_validation_watch_metrics": _or_empty(_path),
    "flow_validation_watch_rate": _watch_rate,
    "flow_validation_watch_silence": _DURATION,
    "flow_validation_watch_within": _DURATION,
    "host_baseline_sysctl": _of_each(_kernel_setting),
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
    "kafka_environment": _of_each(_environment_variable),
    "kafka_heap": _heap,
    "kafka_heap_dump_file": _or_empty(_path),
    "kafka_install_dir": _path,
    "kafka_instance": _NAME,
    "kafka_listeners.advertised": _bind,
    "kafka_listeners.bind": _bind,
    "kafka_listeners.name": _matching(
        LISTENER_NAME, "not a name for a listener", "use letters, digits, `_` and `-`, as INTERNAL"
    ),
    "kafka_log_dirs": _own_path,
    "kafka_loggers": _of_each(_level),
    "kafka_plugins.name": _matching(
        FILE_NAME, "not a name for a file", "use letters, digits and `_.+-`"
    ),
    "kafka_plugins.sha512": _DIGEST,
    "kafka_reassignment_throttle": _throttle,
    "kafka_sasl.users": _of_each(_password),
    "kafka_state_dir": _own_path,
    "kafka_taken_over.config": _path,
    **{f"kafka_unit_options.{name}": _of_each(_unit_setting) for name in UNIT_SECTIONS},
    "preflight_replaced_broker": _or_empty(
        _matching(NODE_ID, "not an id", "give a whole number, as kafka_broker_id has it")
    ),
    "zookeeper_account": _ACCOUNT,
    "zookeeper_address": _host,
    "zookeeper_application_log_dir": _own_path,
    "zookeeper_bind": _bind,
    "kafka_controller_bind": _bind,
    "zookeeper_config_dir": _own_path,
    "zookeeper_data_dir": _own_path,
    "zookeeper_data_log_dir": _or_empty(_own_path),
    "zookeeper_environment": _of_each(_environment_variable),
    "zookeeper_heap": _heap,
    "zookeeper_heap_dump_file": _or_empty(_path),
    "zookeeper_install_dir": _path,
    "zookeeper_instance": _NAME,
    "zookeeper_loggers": _of_each(_level),
    "zookeeper_state_dir": _own_path,
    "zookeeper_taken_over.config": _path,
    **{f"zookeeper_unit_options.{name}": _of_each(_unit_setting) for name in UNIT_SECTIONS},
}


def shape_problem(kind: str, value: Any) -> Optional[Tuple[str, str]]:
    """(reason, remedy) of a value of another type, which Ansible would convert and the roles not."""
    if value is None and kind != "raw":
        return "has no value", "give it one, or leave the variable out for its default"
    if kind == "list":
        wrong = not isinstance(value, (list, tuple))
        if wrong and isinstance(value, (str, int, float)):
            return "not a list", f"write a list: [{shown(value) if value else ''}]"
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
