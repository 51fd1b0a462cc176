# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""One inventory name as a value: its settings read and typed once, its facts beside them.

What cannot be read becomes a finding, and a harmless stand-in, so that every later check may rely
on types and all mistakes are told in one run. Pure.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.addresses import (
    ADDRESS_SUFFIXES,
    host_problem,
    is_address,
    is_wildcard,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import (
    OWN_CHECKS,
    declared,
    judged,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

BROKER_ID_MAX = 2**31 - 1
MYID_MAX = 255
VERSION = re.compile(r"^\d+\.\d+\.\d+$")
# A directory has this name, and a service and files with more in theirs: 255 characters are the most.
CLUSTER_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}\Z")
# The package by which processes are kept running where systemd is not.
SUPERVISOR = "supervisor"
CHROOT = re.compile(r"^(/[A-Za-z0-9._-]+)+$")


@dataclass(frozen=True)
class Listener:
    """One usable listener of a broker."""

    name: str
    port: int
    protocol: str
    bind: str
    advertised: str
    audience: Tuple[str, ...]

    def to_dict(self) -> Dict[str, Any]:
        """As an item of kafka_listeners, with nothing left out."""
        return dict(asdict(self), audience=list(self.audience))


@dataclass(frozen=True)
class Raw:
    """What is known of a host before its settings are read (see `read_member`).

    `settings`: variable -> plain value, secrets hidden; `errors`: variable -> why it could not be evaluated;
    `faults`: what is wrong with the secrets, see variables.faults_of_secrets.
    """

    name: str
    is_broker: bool
    is_server: bool
    settings: Mapping[str, Any]
    errors: Mapping[str, str] = field(default_factory=dict)
    faults: Sequence[Mapping[str, str]] = ()
    facts: Optional[Mapping[str, Any]] = None
    # Why there are no facts, in words; in_play is false for members outside --limit.
    unreachable: str = ""
    in_play: bool = True
    clock_offset_seconds: Optional[float] = None
    clock_uncertainty_seconds: float = 0.0
    # What tls.examine returned.
    tls: Optional[Mapping[str, Any]] = None
    # The hosts of the group of controllers, of whichever cluster.
    controllers: Tuple[str, ...] = ()

    @property
    def kraft(self) -> bool:
        """Whether it runs Kafka, and its cluster keeps its metadata in a quorum of controllers."""
        has_part = self.is_broker or self.name in self.controllers
        return has_part and str(self.settings.get("kafka_metadata") or "").strip() == "kraft"

    @property
    def is_controller(self) -> bool:
        """Whether it is a voter of that quorum."""
        return self.kraft and self.name in self.controllers

    @property
    def runs_kafka(self) -> bool:
        """Whether it is a node of Kafka: a broker, a controller, or both."""
        return self.is_broker or self.is_controller


@dataclass(frozen=True)
class Member(Raw):
    """One inventory name that runs Kafka, a ZooKeeper server, or both: its settings are read.

    Of a variable in `errors` its own finding says so, and nothing follows from it.
    """

    cluster: str = ""
    broker_id: Optional[int] = None
    myid: Optional[int] = None
    listeners: Tuple[Listener, ...] = ()
    log_dirs: Tuple[str, ...] = ()
    client_port: Optional[int] = None
    peer_port: Optional[int] = None
    election_port: Optional[int] = None

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
        """Whether this host's profile is production or small (also if it is misspelt)."""
        return self.text("kafkaops_profile") != "development"

    @property
    def small(self) -> bool:
        """Whether this host is one with a core and 2 GB."""
        return self.text("kafkaops_profile") == "small"

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

    @property
    def is_local(self) -> bool:
        """Whether Ansible reaches this name without a connection, on the controller itself."""
        return self.text("ansible_connection") == "local"

    def _address(self) -> str:
        if self.is_local:
            return "local"
        return endpoint(self.text("ansible_host") or self.name, self.text("ansible_port"))

    @property
    def inter_broker_listener(self) -> Optional[Listener]:
        """The listener that the brokers use among themselves."""
        wanted = self.text("kafka_inter_broker_listener")
        return next((each for each in self.listeners if wanted in ("", each.name)), None)

    def product_facts(self, product: str) -> Mapping[str, Any]:
        """The facts of this name's instance of a product, empty where there are none."""
        return (self.facts or {}).get(product) or {}

    def alive(self, product: str) -> bool:
        """Whether a process of the product runs here, as its start record says."""
        return bool((self.product_facts(product).get("started") or {}).get("alive"))

    @property
    def log_directories(self) -> List[Mapping[str, Any]]:
        """Facts of the wanted log directories, then of those that only the current configuration has."""
        facts = self.product_facts("kafka")
        return [*(facts.get("log_dirs") or []), *(facts.get("other_log_dirs") or [])]


# Directories of an instance beside its data, as the ends of their variables.
PLACES = ("config_dir", "install_dir", "application_log_dir", "state_dir")
# Variables that every member reads, whichever product owns them: they say to which cluster it belongs.
SHARED_VARIABLES = (
    *("kafka_cluster_name", "kafka_group", "kafka_controllers_group", "zookeeper_group"),
    "kafka_admin_host",
)


def is_wanted(variable: str, runs_kafka: bool, is_server: bool) -> bool:
    """Whether a variable concerns such a member: what nobody reads is not evaluated."""
    if variable in SHARED_VARIABLES or variable.endswith(ADDRESS_SUFFIXES):
        return True
    if variable.startswith("kafka_"):
        return runs_kafka
    if variable.startswith("zookeeper_"):
        return is_server
    if variable.startswith("aws_"):
        return False  # aws_order reads them, before there is a host to look at
    return runs_kafka or not variable.startswith("flow_validation")


# ---------------------------------------------------------------- a whole member


def read_member(raw: Raw) -> Tuple[Member, List[Problem]]:
    """The member as a value, and a finding for every setting that could not be read."""
    findings: List[Problem] = []
    settings = dict(raw.settings)
    for variable, message in sorted(raw.errors.items()):
        findings.append(found("settings.undefined", raw.name, variable, "(not evaluated)", message))
    for variable in sorted(settings):
        if variable in raw.errors or not is_wanted(variable, raw.runs_kafka, raw.is_server):
            continue
        if variable in declared() and variable not in OWN_CHECKS:
            settings[variable], faults = judged(variable, settings[variable])
            for each in faults:
                findings.append(
                    found(each.check, raw.name, each.where, each.value, each.reason, each.remedy)
                )
    for told in raw.faults:
        where, reason, remedy = told["where"], told["reason"], told["remedy"]
        findings.append(found(told["check"], raw.name, where, "...", reason, remedy))
    cluster = _cluster_name(raw, findings)
    member = Member(
        **{**raw.__dict__, "settings": settings},
        cluster=cluster,
        broker_id=(
            _identity(raw, "kafka_broker_id", 0, BROKER_ID_MAX, findings)
            if raw.runs_kafka
            else None
        ),
        myid=_identity(raw, "zookeeper_myid", 1, MYID_MAX, findings) if raw.is_server else None,
        listeners=_listeners(raw, settings, findings) if raw.is_broker else (),
        log_dirs=tuple(settings.get("kafka_log_dirs") or ()) if raw.runs_kafka else (),
        client_port=settings.get("zookeeper_client_port") if raw.is_server else None,
        peer_port=settings.get("zookeeper_peer_port") if raw.is_server else None,
        election_port=settings.get("zookeeper_election_port") if raw.is_server else None,
    )
    if raw.is_broker:
        findings += _chroot(member)
    return member, findings


def _identity(
    raw: Raw, variable: str, low: int, high: int, findings: List[Problem]
) -> Optional[int]:
    value = raw.settings.get(variable)
    if value is None or value == "":
        return None
    if isinstance(value, str) and re.match(r"^\s*-?\d+\s*$", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        reason = "not a whole number"
    elif not low <= value <= high:
        reason = f"outside {low} to {high}"
    else:
        return value
    findings.append(
        found(
            "identity.out_of_range",
            raw.name,
            variable,
            raw.settings[variable],
            reason,
            f"give a whole number from {low} to {high}",
        )
    )
    return None


def _cluster_name(raw: Raw, findings: List[Problem]) -> str:
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


def _chroot(member: Member) -> List[Problem]:
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


def _listeners(
    raw: Raw, settings: Mapping[str, Any], findings: List[Problem]
) -> Tuple[Listener, ...]:
    """The listeners that have a name and a port; what is wrong with others was told before."""
    listeners = []
    for index, item in enumerate(settings.get("kafka_listeners") or ()):
        if not item.get("name") or not item.get("port"):
            continue
        bind = item.get("bind") or ""
        advertised = item.get("advertised", "")  # None: its own finding says why
        if advertised == "" and is_wildcard(bind):
            reason = "nothing to announce to clients"
            variable = f"kafka_listeners[{index}].advertised"
            findings.append(found("listeners.bad_value", raw.name, variable, None, reason))
        listeners.append(
            Listener(
                name=item["name"],
                port=item["port"],
                protocol=item.get("protocol") or "",
                bind=bind,
                advertised="" if advertised is None else advertised or bind,
                audience=tuple(item.get("audience") or ()),
            )
        )
    return tuple(listeners)


# ---------------------------------------------------------------- what to ask the host


def facts_request(member: Member, names: Sequence[str]) -> Dict[str, Any]:
    """Parameters of the module `host_info` for this member.

    What could not be read is left out: its own finding says so.
    """
    request: Dict[str, Any] = {"names": list(names), "java_home": member.text("java_home")}
    for name in ("java_minimum", "java_maximum"):
        if isinstance(member.get(name), int):
            request[name] = member.get(name)
    if member.text("jvm_service_manager") == SUPERVISOR:
        request["packages"] = [SUPERVISOR]
    if member.text("kafkaops_lock_dir"):
        of_kafka = [member.text("kafka_config_dir")] if member.runs_kafka else []
        of_server = [member.text("zookeeper_config_dir")] if member.is_server else []
        request["lock"] = {
            "directory": member.text("kafkaops_lock_dir"),
            "cluster": member.cluster,
            # what jvm_instance holds while it works
            "instances": [f"{path.rstrip('/')}/.lock" for path in of_kafka + of_server if path],
        }
    if member.runs_kafka and member.text("kafka_config_dir"):
        request["kafka"] = {
            "instance": member.text("kafka_instance"),
            "config_dir": member.text("kafka_config_dir"),
            "started": member.text("kafka_state_dir").rstrip("/") + "/started.json",
            "log_dirs": list(member.log_dirs),
            **_installed(member, "kafka"),
        }
    if member.is_server and member.text("zookeeper_config_dir") and member.data_dir:
        request["zookeeper"] = {
            "instance": member.text("zookeeper_instance"),
            "config_dir": member.text("zookeeper_config_dir"),
            "started": member.text("zookeeper_state_dir").rstrip("/") + "/started.json",
            "data_dir": member.data_dir,
            "data_log_dir": member.data_log_dir,
            **_installed(member, "zookeeper"),
        }
    return request


def _installed(member: Member, product: str) -> Dict[str, Any]:
    """Where the release and the account are looked for, so that the roles need not ask again; and other places."""
    names = {"install_dir": f"{product}_install_dir", "account": f"{product}_account"}
    told: Dict[str, Any] = {
        key: member.text(name) for key, name in names.items() if member.text(name)
    }
    paths = {kind: member.text(f"{product}_{kind}") for kind in PLACES}
    former = {key: str(value) for key, value in member.mapping(f"{product}_taken_over").items()}
    if former.get("config") and former.get("version"):
        told["taken_over"] = {"config": former["config"], "version": former["version"]}
    return {**told, "places": {kind: path for kind, path in paths.items() if path}}


def names_to_resolve(member: Member) -> List[str]:
    """The host names that this member announces or binds; addresses need no resolution."""
    names = [listener.advertised for listener in member.listeners]
    names += [listener.bind for listener in member.listeners]
    if member.is_controller:
        names += [member.text("kafka_address"), member.text("kafka_controller_bind")]
    if member.is_server:
        names += [member.text("zookeeper_address"), member.text("zookeeper_bind")]
    return sorted(
        {name for name in names if name and not is_address(name) and not host_problem(name)}
    )
