# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of a cluster from the variables of its hosts: who may reach which port, and the machines. Pure.

Private to this collection. The rules come from the audiences of the listeners: whoever is to use a
listener is let in at its port, and nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import MEMBERS
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# Variables of the role `aws` that concern the whole cluster, by the module's option.
SHARED = {
    "region": "aws_region",
    "subnets": "aws_subnets",
    "security_group": "aws_security_group",
    "key_name": "aws_key_name",
    "key_file": "aws_key_file",
    "allow": "aws_allow",
    "operation_timeout": "aws_wait_timeout_seconds",
}
# Those of one machine.
OWN = {
    "type": "aws_type",
    "image": "aws_image",
    "root_volume": "aws_root_volume",
    "volumes": "aws_volumes",
    "subnet": "aws_subnet",
    "public_address": "aws_public_address",
    "tags": "aws_tags",
    "user_data": "aws_user_data",
    "cores": "aws_cores",
    "memory": "aws_memory",
}
UNIFORM = (*SHARED.values(), "aws_sources", "aws_ssh_sources", "aws_rules")
PORTS = ("zookeeper_client_port", "zookeeper_peer_port", "zookeeper_election_port")
CONTROLLER_PORT = "kafka_controller_port"
# All that is read of a host.
VARIABLES = (
    *(*UNIFORM, *OWN.values(), *PORTS, CONTROLLER_PORT),
    *("kafka_listeners", "kafka_inter_broker_listener"),
)
ADMIN, BROKERS = "admin", "brokers"


@dataclass(frozen=True)
class Host:
    """One host of the inventory: its groups, and the values of VARIABLES.

    `is_controller`: a voter of the quorum in KRaft mode, whether it is a broker or not.
    """

    name: str
    groups: Tuple[str, ...]
    is_broker: bool
    is_server: bool
    settings: Mapping[str, Any]
    ssh_port: Any = 22
    is_controller: bool = False


def options_of(
    cluster: str, hosts: Sequence[Host], only: Optional[Sequence[str]] = None
) -> Tuple[Dict[str, Any], List[Problem]]:
    """(options of the module aws_machines, refusals); `only`: names of the hosts of a run with --limit.

    Rules are those of all hosts, whatever `only` says: the others keep theirs.
    """
    hosts = sorted(hosts, key=lambda each: each.name)
    refusals = [*_not_uniform(cluster, hosts, UNIFORM), *_unset(hosts)]
    rules, rule_refusals = _rules(hosts)
    options = _shared(cluster, hosts, only)
    options.update(machines=[_machine(host) for host in hosts], rules=rules)
    return options, [*refusals, *rule_refusals]


def removal_of(
    cluster: str, hosts: Sequence[Host], only: Optional[Sequence[str]] = None
) -> Tuple[Dict[str, Any], List[Problem]]:
    """(options that delete the machines, refusals); of the hosts' settings only SHARED are needed."""
    hosts = sorted(hosts, key=lambda each: each.name)
    options = dict(_shared(cluster, hosts, only), state="absent")
    return options, _not_uniform(cluster, hosts, tuple(SHARED.values()))


def _shared(cluster: str, hosts: Sequence[Host], only: Optional[Sequence[str]]) -> Dict[str, Any]:
    settings = hosts[0].settings
    options = {name: settings.get(variable) for name, variable in SHARED.items()}
    options = {name: value for name, value in options.items() if value not in (None, "")}
    options["cluster"] = cluster
    if only is not None:
        options["only"] = sorted(only)
    return options


def _machine(host: Host) -> Dict[str, Any]:
    own = {name: host.settings.get(variable) for name, variable in OWN.items()}
    own = {name: value for name, value in own.items() if value not in (None, "")}
    return {"name": host.name, "groups": sorted(host.groups), **own}


def _not_uniform(cluster: str, hosts: Sequence[Host], variables: Sequence[str]) -> List[Problem]:
    found = []
    for variable in variables:
        values = [host.settings.get(variable) for host in hosts]
        if any(value != values[0] for value in values):
            others = tuple(h.name for h in hosts if h.settings.get(variable) != values[0])
            reason = f"other than on {hosts[0].name}, though it concerns all of cluster {cluster}"
            remedy = "set it once, in group_vars/all"
            found.append(Problem("settings.not_uniform", reason, remedy, others, variable))
    return found


def _unset(hosts: Sequence[Host]) -> List[Problem]:
    found = []
    for variable in ("aws_image", "aws_type"):
        names = tuple(host.name for host in hosts if not host.settings.get(variable))
        if names:
            reason = "not set, and nothing can stand in for it"
            remedy = "set it in group_vars, or for a host"
            found.append(Problem("aws.bad_order", reason, remedy, names, variable, "''"))
    return found


# ---------------------------------------------------------------- rules


def _rules(hosts: Sequence[Host]) -> Tuple[List[Dict[str, Any]], List[Problem]]:
    """The rules as the module takes them: one for each port, source and purpose set, sorted."""
    purposes: Dict[Tuple[int, str], List[str]] = {}
    refusals: Dict[Problem, List[str]] = {}

    def let_in(port: Any, sources: Any, purpose: str) -> None:
        for source in sources:
            known = purposes.setdefault((int(port), str(source)), [])
            if purpose not in known:
                known.append(purpose)

    servers = sum(host.is_server for host in hosts)
    for host in hosts:
        sources = host.settings.get("aws_sources") or {}
        let_in(host.ssh_port, host.settings.get("aws_ssh_sources") or (), "ssh")
        if host.is_server:
            client, peer, election = (host.settings[name] for name in PORTS)
            let_in(client, [MEMBERS, *(sources.get(ADMIN) or ())], "ZooKeeper, clients")
            if servers > 1:  # a lone one listens on neither
                let_in(peer, [MEMBERS], "ZooKeeper, followers")
                let_in(election, [MEMBERS], "ZooKeeper, election")
        if host.is_controller:
            let_in(host.settings[CONTROLLER_PORT], [MEMBERS], "KRaft, controllers")
        for index, listener in enumerate(_listeners(host)):
            for audience in _audiences(host, listener):
                problem = _unknown(index, audience, sources)
                if problem:
                    refusals.setdefault(problem, []).append(host.name)
                else:
                    let_in(listener["port"], sources[audience], f"listener {listener['name']}")
            if not _audiences(host, listener):
                problem = Problem(
                    "aws.audience",
                    "no audience, so that it is not known whom to let in",
                    "give the listener an audience that aws_sources has",
                    (),
                    f"kafka_listeners[{index}].audience",
                    "[]",
                )
                refusals.setdefault(problem, []).append(host.name)
    rules: Dict[Tuple[int, str], Dict[str, Any]] = {}
    for (port, source), words in sorted(purposes.items()):
        purpose = ", ".join(words)
        item = {"ports": str(port), "sources": [], "purpose": purpose}
        rules.setdefault((port, purpose), item)["sources"].append(source)
    own = hosts[0].settings.get("aws_rules") or []
    named = [
        Problem(each.check, each.reason, each.remedy, tuple(names), each.setting, each.value)
        for each, names in refusals.items()
    ]
    return [*rules.values(), *own], named


def _listeners(host: Host) -> Sequence[Mapping[str, Any]]:
    found = host.settings.get("kafka_listeners") or () if host.is_broker else ()
    return [each for each in found if isinstance(each, Mapping) and each.get("port")]


def _audiences(host: Host, listener: Mapping[str, Any]) -> List[str]:
    """Who uses it; brokers always use the listener among themselves."""
    given = listener.get("audience") or ()
    found = [given] if isinstance(given, str) else [str(each) for each in given]
    inter = host.settings.get("kafka_inter_broker_listener")
    if inter and listener.get("name") == inter and BROKERS not in found:
        found.append(BROKERS)
    return found


def _unknown(index: int, audience: str, sources: Any) -> Optional[Problem]:
    if isinstance(sources, Mapping) and isinstance(sources.get(audience), (list, tuple)):
        return None
    return Problem(
        "aws.audience",
        "aws_sources does not say as a list where this audience is",
        f"add it, such as {audience}: [203.0.113.0/24], or an empty list to let nobody in",
        (),
        f"kafka_listeners[{index}].audience",
        audience,
    )
