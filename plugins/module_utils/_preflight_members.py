# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""One inventory name as a value: its settings read and typed once, its facts beside them.

What cannot be read becomes a finding, and a harmless stand-in, so that every later check may rely
on types and all mistakes are told in one run. Pure.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils._findings import Finding, found

BROKER_ID_MAX = 2**31 - 1
MYID_MAX = 255
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LISTENER_KEYS = ("name", "port", "protocol", "bind", "advertised", "audience")
VERSION = re.compile(r"^\d+\.\d+\.\d+$")
HEAP = re.compile(r"^(\d+)([kKmMgG]?)$")
HEAP_FACTOR = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
INSTANCE_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.@-]*$")
CLUSTER_NAME = re.compile(r"^[A-Za-z0-9._-]+$")
KERNEL_SETTING = re.compile(r"^[a-z0-9_-]+([./][A-Za-z0-9_-]+)+$")
CHROOT = re.compile(r"^(/[A-Za-z0-9._-]+)+$")
LISTENER_NAME = re.compile(r"^[A-Za-z0-9_]+$")
HOST_NAME = re.compile(
    r"^(?=.{1,253}\.?$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?"
    r"(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$"
)
IPV6 = re.compile(r"^\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9]+)?\]?$")
# What a variable of ours begins with: anything else in an inventory is none of our business.
OWN_PREFIXES = (
    "kafka_",
    "zookeeper_",
    "kafkaops_",
    "jvm_service_",
    "java_",
    "host_baseline_",
    "distribution_",
)
MAX_TICKS_PATH = 4096


@dataclass(frozen=True)
class Listener:
    """One usable listener of a broker."""

    name: str
    port: int
    protocol: str
    bind: str
    advertised: str
    audience: Tuple[str, ...]


@dataclass(frozen=True)
class Member:
    """One inventory name that is a broker, a ZooKeeper server, or both."""

    name: str
    is_broker: bool
    is_server: bool
    settings: Mapping[str, Any]
    facts: Optional[Mapping[str, Any]] = None
    # Why there are no facts, in words; in_play is false for members outside --limit.
    unreachable: str = ""
    in_play: bool = True
    clock_offset_seconds: Optional[float] = None
    clock_uncertainty_seconds: float = 0.0
    cluster: str = ""
    broker_id: Optional[int] = None
    myid: Optional[int] = None
    listeners: Tuple[Listener, ...] = ()
    log_dirs: Tuple[str, ...] = ()
    client_port: Optional[int] = None
    peer_port: Optional[int] = None
    election_port: Optional[int] = None
    # Variables that could not be evaluated: their own finding says so, and nothing follows from them.
    unevaluated: FrozenSet[str] = frozenset()

    def get(self, name: str, default: Any = None) -> Any:
        """A setting; `default` where it is missing or could not be read."""
        value = self.settings.get(name)
        return default if value is None else value

    def text(self, name: str) -> str:
        """A setting as text, empty where it is missing."""
        value = self.get(name, "")
        return "" if isinstance(value, (dict, list, tuple)) else str(value).strip()

    def of_product(self, name: str, product: str) -> str:
        """A setting that may be one value for all products or a mapping of them, as text."""
        value = self.get(name, "")
        return str(value.get(product, "") if isinstance(value, Mapping) else value)

    def mapping(self, name: str) -> Mapping[str, Any]:
        """A setting that has to be a mapping; empty where it is none."""
        value = self.get(name, {})
        return value if isinstance(value, Mapping) else {}

    def items(self, name: str) -> Sequence[Any]:
        """A setting that has to be a list; empty where it is none."""
        value = self.get(name, [])
        return value if isinstance(value, (list, tuple)) else []

    @property
    def production(self) -> bool:
        """Whether this host's profile is production (also if it is misspelt)."""
        return self.text("kafkaops_profile") != "development"

    @property
    def data_dir(self) -> str:
        return self.text("zookeeper_data_dir")

    @property
    def data_log_dir(self) -> str:
        return self.text("zookeeper_data_log_dir") or self.data_dir

    @property
    def network(self) -> str:
        """Key of the machine as far as ports go: two names with one key share them."""
        if self.facts:
            return self.facts["machine"]["network"]
        return self._address()

    @property
    def filesystem(self) -> str:
        """Key of the machine as far as files go."""
        if self.facts:
            return self.facts["machine"]["filesystem"]
        return self._address()

    def _address(self) -> str:
        if self.text("ansible_connection") == "local":
            return "local"
        return "%s:%s" % (self.text("ansible_host") or self.name, self.text("ansible_port"))

    def product_facts(self, product: str) -> Mapping[str, Any]:
        """The facts of this name's instance of a product, empty where there are none."""
        return (self.facts or {}).get(product) or {}


@dataclass(frozen=True)
class Raw:
    """What is known of a host before its settings are read (see `read_member`).

    `settings`: variable -> plain value; `errors`: variable -> why it could not be evaluated.
    """

    name: str
    is_broker: bool
    is_server: bool
    settings: Mapping[str, Any]
    errors: Mapping[str, str] = field(default_factory=dict)
    facts: Optional[Mapping[str, Any]] = None
    unreachable: str = ""
    in_play: bool = True
    clock_offset_seconds: Optional[float] = None
    clock_uncertainty_seconds: float = 0.0


# ---------------------------------------------------------------- single values
# A reader returns the value to go on with, or raises ValueError with (reason, remedy).


def _whole(value: Any, low: int, high: int) -> int:
    if isinstance(value, str) and re.match(r"^\s*[+-]?\d+\s*$", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("not a whole number", "give a number from %d to %d" % (low, high))
    if not low <= value <= high:
        raise ValueError(
            "outside %d to %d" % (low, high), "give a number from %d to %d" % (low, high)
        )
    return value


def read_port(value: Any) -> int:
    """A TCP port, 1 to 65535."""
    return _whole(value, 1, 65535)


def read_seconds(value: Any) -> int:
    """A positive number of seconds."""
    return _whole(value, 1, 10**6)


def read_count(value: Any) -> int:
    """A positive number."""
    return _whole(value, 1, 2**31 - 1)


def read_text(value: Any) -> str:
    """One line of text, possibly empty."""
    if value is None or isinstance(value, (dict, list, tuple, bool)):
        raise ValueError("not a text", "give one line of text")
    text = str(value)
    if "\n" in text:
        raise ValueError("has more than one line", "give one line of text")
    return text


def read_path(value: Any) -> str:
    """An absolute path."""
    text = read_text(value).strip()
    if not text:
        raise ValueError("empty", "give an absolute path")
    if text[0] not in "/~":
        raise ValueError("not an absolute path", "begin it with /")
    if "," in text:
        raise ValueError("a path with a comma, which Kafka reads as two", "choose another path")
    if len(text) > MAX_TICKS_PATH:
        raise ValueError("too long for a path", "choose a shorter path")
    return text


def read_optional_path(value: Any) -> str:
    """An absolute path, or nothing."""
    return "" if value is None or value == "" else read_path(value)


def read_paths(value: Any) -> List[str]:
    """A list of absolute paths, at least one."""
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise ValueError("not a list", "write a list: [%s]" % (value if value else "/path"))
    if not value:
        raise ValueError("an empty list", "name at least one directory")
    return [read_path(item) for item in value]


def read_texts(value: Any) -> List[str]:
    """A list of texts."""
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise ValueError("not a list", "write a list: [%s]" % (value if value else ""))
    return [read_text(item) for item in value]


def read_list(value: Any) -> List[Any]:
    """A list."""
    if isinstance(value, (str, dict)) or not isinstance(value, (list, tuple)):
        raise ValueError("not a list", "write a list of items, each beginning with `- `")
    return list(value)


def read_mapping(value: Any) -> Dict[Any, Any]:
    """A mapping."""
    if not isinstance(value, Mapping):
        raise ValueError("not a mapping", "write `key: value` pairs")
    return dict(value)


def read_kernel_settings(value: Any) -> Dict[str, str]:
    """Kernel settings by their names, as sysctl writes both."""
    settings = {}
    for name, wanted in read_mapping(value).items():
        if not KERNEL_SETTING.match(str(name)):
            raise ValueError(
                "%r is no name of a kernel setting" % (name,), "write it like vm.swappiness: 1"
            )
        if isinstance(wanted, (Mapping, list)) or not str(wanted).strip():
            raise ValueError("%s has no single value" % name, "write it like vm.swappiness: 1")
        settings[str(name)] = " ".join(str(wanted).split())
    return settings


def read_boolean(value: Any) -> bool:
    """true or false, also as text from the command line."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in ("true", "yes"):
        return True
    if text in ("false", "no"):
        return False
    raise ValueError("neither true nor false", "write true or false")


def read_heap(value: Any) -> str:
    """A JVM heap size: 512m, 6g."""
    text = str(value).strip()
    match = HEAP.match(text)
    if not match or isinstance(value, bool):
        raise ValueError("not a heap size of the JVM", "write it like 512m or 6g")
    if heap_bytes(text) < 16 * 2**20:
        raise ValueError("less than 16 MiB: no JVM starts with it", "write it like 512m or 6g")
    return text


def heap_bytes(text: str) -> int:
    """Bytes of a heap size that `read_heap` accepts; 0 for anything else."""
    match = HEAP.match(str(text).strip())
    return int(match.group(1)) * HEAP_FACTOR[match.group(2).lower()] if match else 0


def read_version(value: Any) -> str:
    """A version of three numbers. YAML makes a number of an unquoted 3.9."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise ValueError("a number, not a version", 'write all three parts, in quotes: "3.9.2"')
    return read_text(value).strip()


def read_instance(value: Any) -> str:
    """A name that can be a unit, a program and a directory."""
    text = read_text(value).strip()
    if not INSTANCE_NAME.match(text):
        raise ValueError("no name for a service", "use letters, digits, `_`, `.`, `@` and `-`")
    return text


def read_host(value: Any) -> str:
    """A host name or address, without port and scheme."""
    text = read_text(value).strip()
    problem = host_problem(text)
    if problem:
        raise ValueError(*problem)
    return text


def read_optional_host(value: Any) -> str:
    """A host name or address, or nothing."""
    return "" if value is None or value == "" else read_host(value)


def host_problem(text: str) -> Optional[Tuple[str, str]]:
    """(reason, remedy) if `text` is no host name or address."""
    if not text:
        return "empty", "give a host name or an address"
    if "://" in text:
        bare = text.split("://", 1)[1].split("/")[0]
        return "a URL, where a host belongs", "write the host alone: %s" % bare.rsplit(":", 1)[0]
    if re.match(r"^[^:\[\]]+:\d+$", text) or re.match(r"^\[.*\]:\d+$", text):
        host = text.rsplit(":", 1)[0]
        return "host:port, where a host belongs", "write the host alone: %s" % host
    if IPV6.match(text) or HOST_NAME.match(text):
        if re.match(r"^[\d.]+$", text) and not is_ipv4(text):
            return "no IPv4 address", "give four numbers from 0 to 255"
        return None
    return "neither a host name nor an address", "give a host name or an address"


def is_ipv4(text: str) -> bool:
    """Whether the text is a dotted IPv4 address."""
    parts = text.split(".")
    return len(parts) == 4 and all(part.isdigit() and int(part) < 256 for part in parts)


def is_address(text: str) -> bool:
    """Whether the text is an IP address and needs no resolution."""
    return is_ipv4(text) or bool(IPV6.match(text))


def is_loopback(text: str) -> bool:
    """Whether an address or name means the machine itself."""
    bare = text.strip("[]").lower()
    return bare.startswith("127.") and is_ipv4(bare) or bare in ("::1", "localhost", "localhost.")


def is_wildcard(text: str) -> bool:
    """Whether an address means all addresses of the machine."""
    return text.strip("[]") in ("", "0.0.0.0", "::", "*")


def choice(*values: str) -> Callable[[Any], str]:
    """A reader that takes one of the values."""

    def read(value: Any) -> str:
        if value not in values:
            raise ValueError(
                "not one of %s" % ", ".join(values), "write one of %s" % ", ".join(values)
            )
        return str(value)

    return read


def for_each_product(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A reader that takes one value for all products, or a mapping of `kafka` and `zookeeper`."""

    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return reader(value)
        strange = sorted(str(key) for key in value if key not in ("kafka", "zookeeper"))
        if strange:
            raise ValueError(
                "%s is no product" % ", ".join(strange),
                "write one value, or one each for kafka and zookeeper",
            )
        return {key: reader(item) for key, item in value.items()}

    return read


# Variables of every member, of brokers, and of ZooKeeper servers. What is not here passes as it is.
GENERAL_READERS = {
    "kafkaops_profile": choice("production", "development"),
    "jvm_service_manager": choice("systemd", "supervisor"),
    "jvm_service_start_timeout_seconds": read_seconds,
    "jvm_service_stop_timeout_seconds": read_seconds,
    "jvm_service_open_files": read_count,
    "distribution_source": for_each_product(choice("maven", "archive")),
    "distribution_url": for_each_product(read_text),
    "distribution_sha512": for_each_product(read_text),
    "java_home": read_optional_path,
    "java_source": read_text,
    "java_minimum": read_count,
    "java_maximum": read_count,
    "host_baseline_manage_sysctl": read_boolean,
    "host_baseline_manage_limits": read_boolean,
    "host_baseline_manage_hosts_file": read_boolean,
    "host_baseline_manage_hostname": read_boolean,
    "host_baseline_sysctl": read_kernel_settings,
    "host_baseline_limits": read_mapping,
    "host_baseline_limits_accounts": read_texts,
    "host_baseline_hosts": read_mapping,
    "host_baseline_hostname": read_text,
}
BROKER_READERS = {
    "kafka_version": read_version,
    "kafka_scala_version": read_text,
    "kafka_heap": read_heap,
    "kafka_jvm_options": read_texts,
    "kafka_instance": read_instance,
    "kafka_account": read_text,
    "kafka_install_dir": read_path,
    "kafka_config_dir": read_path,
    "kafka_log_dirs": read_paths,
    "kafka_application_log_dir": read_path,
    "kafka_state_dir": read_path,
    "kafka_rack": read_text,
    "kafka_inter_broker_listener": read_text,
    "kafka_admin_listener": read_text,
    "kafka_config": read_mapping,
    "kafka_host_config": read_mapping,
    "kafka_ssl": read_mapping,
    "kafka_sasl": read_mapping,
    "kafka_client_security": read_mapping,
    "kafka_authorizer": read_boolean,
    "kafka_super_users": read_texts,
    "kafka_topics": read_list,
    "flow_validation": choice("auto", "always", "never"),
}
SERVER_READERS = {
    "zookeeper_version": read_version,
    "zookeeper_heap": read_heap,
    "zookeeper_jvm_options": read_texts,
    "zookeeper_instance": read_instance,
    "zookeeper_account": read_text,
    "zookeeper_install_dir": read_path,
    "zookeeper_config_dir": read_path,
    "zookeeper_data_dir": read_path,
    "zookeeper_data_log_dir": read_optional_path,
    "zookeeper_application_log_dir": read_path,
    "zookeeper_state_dir": read_path,
    "zookeeper_client_port": read_port,
    "zookeeper_peer_port": read_port,
    "zookeeper_election_port": read_port,
    "zookeeper_config": read_mapping,
}
# These say addresses.form, because people mix up hosts, host:port and URLs.
HOST_READERS = {
    "kafka_address": (True, read_optional_host),
    "zookeeper_address": (False, read_host),
    "zookeeper_bind": (False, read_optional_host),
}
# Identity and connection, read apart; known all the same.
OTHER_KNOWN = (
    "kafka_broker_id",
    "zookeeper_myid",
    "kafka_cluster_name",
    "kafka_group",
    "zookeeper_group",
    "kafka_zookeeper_chroot",
    "kafka_listeners",
    "kafka_address",
    "kafka_admin_host",
    "kafka_plugin_prefixes",
    "kafka_finalize",
    "kafka_accept_unavailable",
    "kafka_fast_failover",
    "kafkaops_break_lock",
    "kafkaops_preflight_accept",
)


def known_variables() -> Tuple[str, ...]:
    """Every variable that the preflight knows by itself, beside the roles' defaults."""
    names = set(OTHER_KNOWN) | set(GENERAL_READERS) | set(BROKER_READERS)
    return tuple(sorted(names | set(SERVER_READERS) | set(HOST_READERS)))


# Of the other product's variables, what a member needs to know whom it belongs to.
SHARED_VARIABLES = ("kafka_cluster_name", "kafka_group", "zookeeper_group", "kafka_admin_host")
# Addresses are checked by the end of the name, whatever part of the platform reads them.
ADDRESS_SUFFIXES = ("bootstrap_servers", "bootstrap_server", "registry_url", "registry_urls")


def is_wanted(variable: str, is_broker: bool, is_server: bool) -> bool:
    """Whether a variable concerns such a member: what nobody reads is not evaluated."""
    if variable in SHARED_VARIABLES or variable.endswith(ADDRESS_SUFFIXES):
        return True
    if variable.startswith("kafka_"):
        return is_broker
    if variable.startswith("zookeeper_"):
        return is_server
    if variable == "flow_validation":
        return is_broker
    return not variable.startswith("flow_validation")


def misspelt(names: Sequence[str], known: Sequence[str]) -> Dict[str, str]:
    """variable -> the variable it was probably meant to be."""
    suspects = {}
    pool = sorted(known)
    for name in sorted(names):
        if name in known or not name.startswith(OWN_PREFIXES):
            continue
        near = difflib.get_close_matches(name, pool, n=1, cutoff=0.86)
        if near:
            suspects[name] = near[0]
    return suspects


# ---------------------------------------------------------------- a whole member


def read_member(raw: Raw) -> Tuple[Member, List[Finding]]:
    """The member as a value, and a finding for every setting that could not be read."""
    findings: List[Finding] = []
    settings = dict(raw.settings)
    for variable, message in sorted(raw.errors.items()):
        findings.append(found("settings.undefined", raw.name, variable, "(not evaluated)", message))
    readers: Dict[str, Any] = dict(GENERAL_READERS)
    if raw.is_broker:
        readers.update(BROKER_READERS)
    if raw.is_server:
        readers.update(SERVER_READERS)
    for variable, reader in sorted(readers.items()):
        if variable in settings and variable not in raw.errors:
            check = "version.unknown" if reader is read_version else "settings.bad_value"
            settings[variable] = _read(raw.name, variable, settings, reader, check, findings)
    for variable, (of_broker, reader) in sorted(HOST_READERS.items()):
        if variable in settings and (raw.is_broker if of_broker else raw.is_server):
            settings[variable] = _read(
                raw.name, variable, settings, reader, "addresses.form", findings
            )
    cluster = _cluster_name(raw, findings)
    member = Member(
        name=raw.name,
        is_broker=raw.is_broker,
        is_server=raw.is_server,
        settings=settings,
        facts=raw.facts,
        unreachable=raw.unreachable,
        in_play=raw.in_play,
        clock_offset_seconds=raw.clock_offset_seconds,
        clock_uncertainty_seconds=raw.clock_uncertainty_seconds,
        unevaluated=frozenset(raw.errors),
        cluster=cluster,
        broker_id=(
            _identity(raw, "kafka_broker_id", 0, BROKER_ID_MAX, findings) if raw.is_broker else None
        ),
        myid=_identity(raw, "zookeeper_myid", 1, MYID_MAX, findings) if raw.is_server else None,
        listeners=read_listeners(raw, findings) if raw.is_broker else (),
        log_dirs=tuple(settings.get("kafka_log_dirs") or ()) if raw.is_broker else (),
        client_port=settings.get("zookeeper_client_port") if raw.is_server else None,
        peer_port=settings.get("zookeeper_peer_port") if raw.is_server else None,
        election_port=settings.get("zookeeper_election_port") if raw.is_server else None,
    )
    if raw.is_broker:
        findings += _chroot(member)
    return member, findings


def _read(host, variable, settings, reader, check, findings):
    value = settings[variable]
    try:
        return reader(value)
    except ValueError as error:
        reason, remedy = error.args if len(error.args) == 2 else (str(error), "")
        findings.append(found(check, host, variable, value, reason, remedy))
        return None


def _identity(raw, variable, low, high, findings):
    value = raw.settings.get(variable)
    if value is None or value == "":
        return None
    if isinstance(value, str) and re.match(r"^\s*-?\d+\s*$", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        reason = "not a whole number"
    elif not low <= value <= high:
        reason = "outside %d to %d" % (low, high)
    else:
        return value
    findings.append(
        found(
            "identity.out_of_range",
            raw.name,
            variable,
            raw.settings[variable],
            reason,
            "give a whole number from %d to %d" % (low, high),
        )
    )
    return None


def _cluster_name(raw, findings):
    value = raw.settings.get("kafka_cluster_name")
    text = "" if value is None else str(value)
    if isinstance(value, (dict, list, bool)) or not CLUSTER_NAME.match(text) or text in (".", ".."):
        if "kafka_cluster_name" not in raw.errors:
            findings.append(
                found(
                    "cluster.name",
                    raw.name,
                    "kafka_cluster_name",
                    value,
                    "it becomes a directory and part of unit names",
                )
            )
    return text


def _chroot(member):
    value = member.get("kafka_zookeeper_chroot", "")
    if value in ("", "/"):
        return []
    if isinstance(value, str) and CHROOT.match(value) and ".." not in value.split("/"):
        return []
    return [
        found(
            "cluster.chroot",
            member.name,
            "kafka_zookeeper_chroot",
            value,
            "not a path of ZooKeeper",
            "write it like /kafka: a slash first, none at the end",
        )
    ]


def read_listeners(raw: Raw, findings: List[Finding]) -> Tuple[Listener, ...]:
    """The usable listeners; a finding for every one that is not."""
    value = raw.settings.get("kafka_listeners")
    if "kafka_listeners" in raw.errors:
        return ()
    if isinstance(value, (str, Mapping)) or not isinstance(value, (list, tuple)) or not value:
        reason = "an empty list" if value == [] else "not a list of listeners"
        findings.append(found("listeners.bad_value", raw.name, "kafka_listeners", value, reason))
        return ()
    listeners = []
    for index, item in enumerate(value):
        listener = _read_listener(raw, index, item, findings)
        if listener is not None:
            listeners.append(listener)
    return tuple(listeners)


def _read_listener(raw, index, item, findings):
    where = "kafka_listeners[%d]" % index

    def bad(key, value, reason, remedy="", check="listeners.bad_value"):
        variable = "%s.%s" % (where, key) if key else where
        findings.append(found(check, raw.name, variable, value, reason, remedy))

    if not isinstance(item, Mapping):
        bad("", item, "not a mapping")
        return None
    before = len(findings)
    for key in item:
        if key not in LISTENER_KEYS:
            near = difflib.get_close_matches(str(key), LISTENER_KEYS, n=1, cutoff=0.6)
            bad(
                key,
                item[key],
                "a listener has no such key",
                "did you mean `%s`?" % near[0] if near else "use %s" % ", ".join(LISTENER_KEYS),
            )
    name = item.get("name")
    if not isinstance(name, str) or not LISTENER_NAME.match(name):
        bad("name", name, "no name for a listener", "use letters, digits and `_`, as INTERNAL")
        name = None
    protocol = item.get("protocol", "PLAINTEXT")
    if protocol not in PROTOCOLS:
        bad("protocol", protocol, "no protocol of Kafka", "use one of %s" % ", ".join(PROTOCOLS))
    port = None
    try:
        port = read_port(item.get("port"))
    except ValueError as error:
        bad("port", item.get("port"), "%s" % error.args[0], error.args[1])
    hosts = {}
    for key in ("bind", "advertised"):
        text = item.get(key)
        text = "" if text is None else text
        if not isinstance(text, str):
            bad(key, text, "not a text", "give a host name or an address")
            text = ""
        if text and not is_wildcard(text) and host_problem(text):
            bad(key, text, *host_problem(text), check="addresses.form")
        hosts[key] = text.strip()
    if not hosts["advertised"] and is_wildcard(hosts["bind"]):
        bad("advertised", item.get("advertised"), "nothing to announce to clients")
    audience = item.get("audience", [])
    audience = [audience] if isinstance(audience, str) else audience
    if not isinstance(audience, (list, tuple)) or not all(isinstance(a, str) for a in audience):
        bad("audience", audience, "not a list of texts", "write it like [brokers, clients]")
        audience = []
    if len(findings) > before and (name is None or port is None):
        return None
    return Listener(
        name=name,
        port=port,
        protocol=str(protocol),
        bind=hosts["bind"],
        advertised=hosts["advertised"] or hosts["bind"],
        audience=tuple(audience),
    )


# ---------------------------------------------------------------- what to ask the host


def facts_request(member: Member, names: Sequence[str]) -> Dict[str, Any]:
    """Parameters of the module `node_identity` for this member.

    What could not be read is left out: its own finding says so.
    """
    request: Dict[str, Any] = {"names": list(names), "java_home": member.text("java_home")}
    for name in ("java_minimum", "java_maximum"):
        if isinstance(member.get(name), int):
            request[name] = member.get(name)
    if member.is_broker and member.text("kafka_config_dir"):
        request["kafka"] = {
            "instance": member.text("kafka_instance"),
            "config_dir": member.text("kafka_config_dir"),
            "started": member.text("kafka_state_dir").rstrip("/") + "/started.json",
            "log_dirs": list(member.log_dirs),
        }
    if member.is_server and member.text("zookeeper_config_dir") and member.data_dir:
        request["zookeeper"] = {
            "instance": member.text("zookeeper_instance"),
            "config_dir": member.text("zookeeper_config_dir"),
            "started": member.text("zookeeper_state_dir").rstrip("/") + "/started.json",
            "data_dir": member.data_dir,
            "data_log_dir": member.data_log_dir,
        }
    return request


def names_to_resolve(member: Member) -> List[str]:
    """The host names that this member announces or binds; addresses need no resolution."""
    names = [listener.advertised for listener in member.listeners]
    names += [listener.bind for listener in member.listeners]
    if member.is_server:
        names += [member.text("zookeeper_address"), member.text("zookeeper_bind")]
    return sorted(
        {name for name in names if name and not is_address(name) and not host_problem(name)}
    )
