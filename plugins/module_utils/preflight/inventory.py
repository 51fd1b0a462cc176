# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of any host of the inventory: roles' defaults below what the inventory says, as plain data.

Runs on the controller only. `hostvars` hold the inventory's variables of every host, and the defaults
of no role: so these are loaded here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    TOKEN_SECRETS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import HIDDEN, masked
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.addresses import (
    ADDRESS_SUFFIXES,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.identity import identities
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    Raw,
    is_wanted,
    names_to_resolve,
    read_member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.tls import examine
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import (
    WITH_SECRETS,
    declared,
    faults_of_secrets,
    faults_of_urls,
    meant,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import World

HERE = os.path.dirname(os.path.abspath(__file__))
ROLES = os.path.normpath(os.path.join(HERE, "../../../roles"))
# Their defaults are what an inventory leaves unsaid.
SETTING_ROLES = (
    "jvm_service",
    "java",
    "host_baseline",
    "zookeeper",
    "kafka",
    "flow_validation",
    "preflight",
    "aws",
)
# Variables in which a play keeps what was collected: of its own hosts, and of those outside --limit.
COLLECTED = "kafkaops_preflight_collected"
OUTSIDE = "kafkaops_preflight_hidden"
CONNECTION_VARIABLES = ("ansible_host", "ansible_connection", "ansible_port")
# Other variables are made of them: evaluated first, they are evaluated once a host.
FIRST_OF_ALL = ("kafkaops_home", "kafka_cluster_name")
_PATH = re.compile(r"[/~][\w./~-]*\Z")
_DEFAULTS: Dict[str, Any] = {}


def role_defaults(loader: Any) -> Mapping[str, Any]:
    """variable -> the default that its role gives it, not evaluated; read once."""
    if not _DEFAULTS:
        for role in SETTING_ROLES:
            path = os.path.join(ROLES, role, "defaults", "main.yml")
            if os.path.exists(path):
                _DEFAULTS.update(loader.load_from_file(path, trusted_as_template=True) or {})
    return _DEFAULTS


# What a host can be, and the variable that names the group of such hosts; without it, the group has the part's name.
GROUP_OF = {
    "kafka": "kafka_group",
    "zookeeper": "zookeeper_group",
    "controllers": "kafka_controllers_group",
}


class Inventory:
    """Settings of any host of the inventory: role defaults below what the inventory says."""

    def __init__(self, templar: Any, loader: Any, task_vars: Mapping[str, Any]) -> None:
        self._templar = templar
        self._task_vars = task_vars
        self._defaults = role_defaults(loader)
        self.known = frozenset(self._defaults) | frozenset(declared())

    def raw_variables(self, host: str) -> Mapping[str, Any]:
        """The host's variables, untemplated; those of the task for the host of the task itself."""
        if host == self._task_vars["inventory_hostname"]:
            return self._task_vars
        return self._task_vars["hostvars"].raw_get(host)

    def has(self, host: str) -> bool:
        """Whether a host of this name exists; the controller does, by each of its names."""
        return host in self._task_vars["hostvars"]

    def templar_for(
        self, host: str, extra: Optional[Mapping[str, Any]] = None
    ) -> Tuple[Any, Dict[str, Any]]:
        """(templar, variables) of a host, not evaluated; `extra` stand for the host's own."""
        variables = dict(self._defaults)
        if host != self._task_vars["inventory_hostname"]:
            # What a template may look at besides the host's own variables.
            for name in (
                "hostvars",
                "groups",
                "playbook_dir",
                "inventory_dir",
                "ansible_playbook_python",
            ):
                if name in self._task_vars:
                    variables[name] = self._task_vars[name]
        variables.update(self.raw_variables(host))
        variables.update(extra or {})
        return self._templar.copy_with_new_env(available_variables=variables), variables

    def evaluated(
        self, host: str, names: Iterable[str], extra: Optional[Mapping[str, Any]] = None
    ) -> Dict[str, Any]:
        """{name: plain value} of some settings of a host; those that are not set are left out.

        `extra` are variables that stand for the host's own. Raises AnsibleError where one cannot be evaluated.
        """
        templar, variables = self.templar_for(host, extra)
        return {
            name: plain(templar.template(variables[name])) for name in names if name in variables
        }

    def mentioned(self, names: Iterable[str]) -> Set[str]:
        """Those of the names that a template in some host's variables has in it."""
        texts = [
            text
            for host in self._task_vars["hostvars"]
            for text in _texts(self._task_vars["hostvars"].raw_get(host))
            if "{{" in text or "{%" in text
        ]
        return {
            name
            for name in names
            if any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts)
        }

    def having(self, names: Sequence[str], hosts: Iterable[str]) -> Dict[str, List[str]]:
        """name -> the hosts that have a variable of this name; those that are known to be no members do not count."""
        found: Dict[str, List[str]] = {}
        for host in hosts if names else ():
            variables = self.raw_variables(host)
            collected = variables.get(COLLECTED)
            if not isinstance(collected, Mapping) or collected.get("member", True):
                for name in names:
                    if name in variables:
                        found.setdefault(name, []).append(host)
        return found

    def default(self, name: str) -> Any:
        """The default that a role gives a variable, not evaluated."""
        return self._defaults.get(name)

    def group(self, host: str, product: str) -> str:
        """The name of the group of brokers or servers, as this host sees it."""
        templar, variables = self.templar_for(host)
        name = f"{product}_group"
        return str(templar.template(variables.get(name, product)))

    def members(self) -> Dict[str, Set[str]]:
        """{"kafka", "zookeeper", "controllers": hosts} of all clusters; controllers are those in KRaft mode.

        Each host counts by the groups that its own variables name, as in `gather`: several clusters in one inventory
        may have groups of their own.
        """
        groups = self._task_vars["groups"]
        found: Dict[str, Set[str]] = {"kafka": set(), "zookeeper": set()}
        of_controllers = set()
        for host in sorted(set().union(*groups.values())):
            try:
                named = self.evaluated(host, tuple(GROUP_OF.values()))
            except Exception:  # pylint: disable=broad-except
                named = {}  # that host's own turn says what is wrong
            for product, hosts in found.items():
                if host in groups.get(str(named.get(GROUP_OF[product]) or product), []):
                    hosts.add(str(host))
            apart = str(named.get(GROUP_OF["controllers"]) or "controllers")
            if host in {*found["kafka"], *groups.get(apart, [])}:
                of_controllers.add(apart)
        voters = [self._in_kraft_mode(group) for group in of_controllers]
        return {**found, "controllers": set().union(*voters)}

    def by_cluster(self) -> Dict[str, List[str]]:
        """cluster -> its members, each by its own variables; without those whose cluster cannot be read."""
        found: Dict[str, List[str]] = {}
        for host in sorted(set().union(*self.members().values())):
            try:
                name = self.evaluated(host, ("kafka_cluster_name",))["kafka_cluster_name"]
            except Exception:  # pylint: disable=broad-except
                continue  # that host's own turn says what is wrong
            found.setdefault(str(name), []).append(host)
        return found

    def _in_kraft_mode(self, group: str) -> Set[str]:
        found_there = set()
        for name in map(str, self._task_vars["groups"].get(group, [])):
            try:
                mode = self.evaluated(name, ("kafka_metadata",))["kafka_metadata"]
            except Exception:  # pylint: disable=broad-except
                continue  # that host's own turn says what is wrong
            if str(mode).strip() == "kraft":
                found_there.add(name)
        return found_there

    def gather(self, host: str, extra: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """{settings, errors, faults, tls, is_broker, is_server, runs_kafka, controllers...} of a host, plain data."""
        templar, variables = self.templar_for(host, extra)
        settings: Dict[str, Any] = {}
        errors: Dict[str, str] = {}

        def read(name: Any) -> None:
            name = plain(name)
            try:
                value = templar.template(variables[name])
                settings[name] = plain(value)
                if isinstance(value, str):
                    # What is made of it need not evaluate it again; other types would not stay what they are.
                    variables[name] = settings[name]
            except Exception as error:  # pylint: disable=broad-except
                # Whatever a template may raise is told as a finding of its variable.
                errors[name] = first_line(error)

        members = {}
        for product in ("kafka", "zookeeper"):
            name = f"{product}_group"
            if name in variables:
                read(name)
            group = str(settings.get(name) or product)
            members[product] = list(self._task_vars["groups"].get(group, []))
        if "kafka_controllers_group" in variables:
            read("kafka_controllers_group")
        controllers = self._task_vars["groups"].get(
            str(settings.get("kafka_controllers_group") or "controllers"), []
        )
        is_broker, is_server = host in members["kafka"], host in members["zookeeper"]
        # Any other group may have this name: only in KRaft mode it makes members.
        if "kafka_metadata" in variables and (is_broker or host in controllers):
            read("kafka_metadata")
        raw = Raw(host, is_broker, is_server, settings, controllers=tuple(plain(controllers)))
        runs_kafka = raw.runs_kafka
        if runs_kafka or is_server:
            addresses = {name for name in variables if str(name).endswith(ADDRESS_SUFFIXES)}
            wanted = sorted((self.known | addresses).intersection(variables))
            for name in sorted(wanted, key=lambda each: each not in FIRST_OF_ALL):
                if is_wanted(name, runs_kafka, is_server):
                    read(name)
            for name in CONNECTION_VARIABLES:
                if name in variables:
                    read(name)
        return {
            "settings": settings,
            "errors": errors,
            # Before anybody hides the secrets, and without them.
            "faults": (_faults(settings) if runs_kafka else [])
            + (self._other_secret(raw) if raw.kraft else [])
            + faults_of_urls(settings),
            "tls": examine(settings) if runs_kafka else None,
            "is_broker": is_broker,
            "is_server": is_server,
            "runs_kafka": runs_kafka,
            "brokers": members["kafka"],
            "servers": members["zookeeper"],
            "controllers": sorted(plain(controllers)),
            "siblings": sorted(
                {*members["kafka"], *members["zookeeper"], *(controllers if raw.kraft else ())}
            ),
        }

    def _other_secret(self, raw: Raw) -> List[Dict[str, str]]:
        """A fault where a node signs delegation tokens with another secret than the first controller that has one."""
        own = _token_secret(raw.settings)
        for name in sorted(raw.controllers) if own else ():
            if name == raw.name:
                break
            wanted = ("kafka_cluster_name", "kafka_config", "kafka_host_config")
            try:
                theirs = self.evaluated(name, wanted)
            except Exception:  # pylint: disable=broad-except
                continue  # that host's own turn says what is wrong
            secret = _token_secret(theirs)
            if secret and theirs.get(wanted[0]) == raw.settings.get(wanted[0]):
                reason = (
                    f"it is another one than on {name}, and nodes take no tokens of another secret"
                )
                fault = {"check": "quorum.settings", "where": TOKEN_SECRETS[0], "reason": reason}
                return [] if secret == own else [{**fault, "remedy": "set one for all nodes"}]
        return []

    def gather_again(self, host: str) -> Dict[str, Any]:
        """As `gather`, for a host that may be the task's own while the task is another host's to do.

        Its connection is that of the inventory then, and not that of the host that works for it.
        """
        own = self._task_vars["hostvars"].raw_get(host)
        gathered = self.gather(
            host, {name: own[name] for name in CONNECTION_VARIABLES if name in own}
        )
        for name in CONNECTION_VARIABLES:
            if name not in own:
                gathered["settings"].pop(name, None)
                gathered["errors"].pop(name, None)
        return gathered

    def names_of(
        self, host: str, is_broker: bool, is_server: bool, is_controller: bool = False
    ) -> List[str]:
        """The names that another member announces; empty where its settings cannot be read.

        A broker's listeners and a server's address: the other role's defaults announce nothing, and
        looking up what nobody uses may take a resolver's whole patience.
        """
        templar, variables = self.templar_for(host)
        names = set()
        try:
            if is_broker:
                for listener in templar.template(variables.get("kafka_listeners") or []):
                    names.add(listener.get("advertised"))
            if is_controller:
                names.add(templar.template(variables.get("kafka_address") or ""))
            if is_server:
                names.add(templar.template(variables.get("zookeeper_address") or ""))
        except Exception:  # pylint: disable=broad-except
            pass  # that host's own turn says what is wrong
        settings = {
            "kafka_listeners": [
                {"name": "A", "port": 1, "advertised": plain(name)} for name in names
            ]
        }
        member, _findings = read_member(Raw(host, True, False, settings))
        return names_to_resolve(member)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value that is not evaluated."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)


def plain(value: Any) -> Any:
    """The value without Ansible's tags, lazy containers and secrets' wrappers."""
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    return str(value)


def _token_secret(settings: Mapping[str, Any]) -> str:
    """The secret of delegation tokens in the settings of Kafka, "" where there is none."""
    given = [settings.get(name) for name in ("kafka_config", "kafka_host_config")]
    both = {
        key: value for each in given if isinstance(each, Mapping) for key, value in each.items()
    }
    return next((str(both[key]).strip() for key in TOKEN_SECRETS if both.get(key)), "")


def _faults(settings: Mapping[str, Any]) -> List[Dict[str, str]]:
    given = {name: settings[name] for name in WITH_SECRETS & settings.keys()}
    return faults_of_secrets(given, masked_settings(given))


def masked_settings(settings: Mapping[str, Any]) -> Dict[str, Any]:
    """The same settings with every secret hidden: they travel through results and logs."""
    result = {name: masked(name, value) for name, value in settings.items()}
    for name in WITH_SECRETS & result.keys():
        if isinstance(result[name], dict):
            # What is unknown may be a misspelt secret.
            known = declared()[name]["options"]
            result[name] = {
                key: value if key in known or not value else HIDDEN
                for key, value in result[name].items()
            }
        elif result[name]:
            result[name] = HIDDEN  # where the secrets are in it nobody can tell
    # Names that are not secret elsewhere.
    for name, key in (("kafka_ssl", "key"), ("kafka_client_security", "ssl_key")):
        if isinstance(result.get(name), dict) and result[name].get(key):
            text = result[name][key]
            path = isinstance(text, str) and _PATH.match(text)  # no secret, and it is judged
            result[name][key] = text if path else HIDDEN
    sasl = result.get("kafka_sasl")
    if isinstance(sasl, dict) and sasl.get("users"):
        users = sasl["users"]
        sasl["users"] = dict.fromkeys(users, HIDDEN) if isinstance(users, dict) else HIDDEN
    return result


def first_line(error: Any) -> str:
    text = getattr(error, "message", None) or str(error)
    return (str(text).strip().splitlines() or ["no reason given"])[0][:300]


def raw_of(host: str, gathered: Mapping[str, Any], **more: Any) -> Raw:
    """What `Inventory.gather` found of a host, as a value; `more`: other fields of it."""
    return Raw(
        name=host,
        is_broker=gathered["is_broker"],
        is_server=gathered["is_server"],
        settings=gathered["settings"],
        errors=gathered["errors"],
        faults=gathered["faults"],
        tls=gathered["tls"],
        controllers=tuple(gathered["controllers"]),
        **more,
    )


def with_assigned_ids(inventory: Inventory, raws: Iterable[Raw]) -> List[Raw]:
    """Settings that need an id nobody named (a port made of it) are read again with the assigned one."""
    members = tuple(read_member(raw)[0] for raw in raws)
    ids = {}
    for cluster in World(members).clusters:
        brokers, servers = identities(cluster)
        for variable, assigned in (("kafka_broker_id", brokers), ("zookeeper_myid", servers)):
            for host, value in assigned.items():
                ids.setdefault(host, {})[variable] = value
    result = []
    for raw in raws:
        missing = {
            name: value for name, value in ids.get(raw.name, {}).items() if name not in raw.settings
        }
        if raw.errors and missing:
            gathered = inventory.gather(raw.name, missing)
            settings = {
                name: value for name, value in gathered["settings"].items() if name not in missing
            }
            changes = {key: gathered[key] for key in ("errors", "faults", "tls")}
            changes["settings"] = masked_settings(settings)
            raw = replace(raw, **changes)
        result.append(raw)
    return result


def misspelt(inventory: Inventory, raws: Iterable[Raw]) -> Dict[str, Dict[str, str]]:
    """variable -> {host: the variable that it was probably meant to be}."""
    suspects = {}
    for raw in raws:
        for name in inventory.raw_variables(raw.name):
            near = meant(name) if isinstance(name, str) else None
            if near:
                suspects.setdefault(name, {})[raw.name] = near
    return suspects
