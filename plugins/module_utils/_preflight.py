# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The preflight's verdict over the whole inventory: all findings, and who is who.

Pure: facts come in, a verdict goes out. Invariants:

* every check runs on every inventory, however broken: what one check cannot read is the finding of
  another, so all mistakes are told at once;
* the order of hosts does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import AbstractSet, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils import (
    _preflight_config,
    _preflight_identity,
    _preflight_network,
    _preflight_storage,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._findings import (
    ERROR,
    WARNING,
    Finding,
    in_order,
    merged,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan_identity import natural_key
from ansible_collections.kafkaops.cluster.plugins.module_utils._preflight_members import (
    Member,
    Raw,
    read_member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._preflight_world import (
    Cluster,
    Controller,
    Snapshot,
    Versions,
    World,
)

CHECKS = (
    _preflight_identity.check_inventory,
    _preflight_identity.check_identity,
    _preflight_identity.check_ensemble,
    _preflight_network.check_listeners,
    _preflight_network.check_ports,
    _preflight_network.check_addresses,
    _preflight_storage.check_directories,
    _preflight_storage.check_space,
    _preflight_storage.check_hosts,
    _preflight_config.check_versions,
    _preflight_config.check_config,
    _preflight_config.check_replication,
    _preflight_config.check_topics,
)
# Nobody may consent to two brokers with one id, or to one directory for two.
NEVER_ACCEPTED = frozenset(
    (
        "directories.shared",
        "identity.contradicts_disk",
        "identity.duplicate_broker_id",
        "identity.duplicate_myid",
        "identity.foreign_cluster",
        "listeners.duplicate",
        "settings.undefined",
    )
)


NO_CONTROLLER = Controller()


@dataclass(frozen=True)
class Verdict:
    """Findings in the order in which they are shown, and what later plays build on."""

    findings: Tuple[Finding, ...]
    result: Mapping[str, Any]

    @property
    def errors(self) -> Tuple[Finding, ...]:
        """What stops the run."""
        return tuple(each for each in self.findings if each.level == ERROR)


def judge(
    raws: Iterable[Raw],
    versions: Versions,
    controller: Controller = NO_CONTROLLER,
    snapshots: Optional[Mapping[str, Snapshot]] = None,
    host_names: AbstractSet[str] = frozenset(),
    group_names: AbstractSet[str] = frozenset(),
    misspelt: Optional[Mapping[str, Mapping[str, str]]] = None,
    accept: Sequence[str] = (),
) -> Verdict:
    """The verdict over all members of an inventory.

    `snapshots`: cluster name -> what the running cluster says; `accept`: ids of checks whose errors
    somebody consents to, which makes warnings of them (not of those in NEVER_ACCEPTED).
    """
    findings: List[Finding] = []
    members = []
    for raw in sorted(raws, key=lambda each: natural_key(each.name)):
        member, problems = read_member(raw)
        members.append(member)
        findings += problems
    world = World(
        members=tuple(members),
        snapshots=snapshots or {},
        versions=versions,
        controller=controller,
        host_names=frozenset(host_names),
        group_names=frozenset(group_names),
        misspelt=misspelt or {},
    )
    for check in CHECKS:
        findings += list(check(world))
    consented = frozenset(accept) - NEVER_ACCEPTED
    findings = [
        _as_warning(each) if each.level == ERROR and each.check in consented else each
        for each in findings
    ]
    return Verdict(tuple(merged(in_order(findings))), result_of(world))


def _as_warning(finding: Finding) -> Finding:
    values = dict(finding.__dict__, level=WARNING, reason=finding.reason + " (accepted)")
    return Finding(**values)


def result_of(world: World) -> Dict[str, Any]:
    """What later plays need: ids, lists of servers and brokers, who is first, who runs."""
    result: Dict[str, Any] = {
        "ids": {},
        # What templates of the inventory may need, and nobody wrote down.
        "unwritten": {},
        "servers": {},
        "brokers": {},
        "ensembles": {},
        "cluster_first": {},
        "first_on_machine": first_on_machine(world.members),
        "running": {
            product: [
                member.name
                for member in world.members
                if (member.product_facts(product).get("started") or {}).get("alive")
            ]
            for product in ("kafka", "zookeeper")
        },
        "products": _preflight_config.products(world.members),
        "cluster_ids": {},
    }
    for cluster in world.clusters:
        broker_ids, server_ids = _preflight_identity.identities(cluster)
        for member in cluster.members:
            result["ids"][member.name] = {
                "broker_id": broker_ids.get(member.name),
                "myid": server_ids.get(member.name),
            }
            unwritten = {}
            if member.is_broker and member.broker_id is None:
                unwritten["kafka_broker_id"] = broker_ids[member.name]
            if member.is_server and member.myid is None:
                unwritten["zookeeper_myid"] = server_ids[member.name]
            result["unwritten"][member.name] = unwritten
        result["servers"][cluster.name] = _servers(cluster, server_ids)
        result["brokers"][cluster.name] = _brokers(cluster, broker_ids)
        result["ensembles"][cluster.name] = dict(
            _preflight_identity.ensemble_state(cluster),
            unstarted=[
                member.name
                for member in cluster.servers
                if not (member.product_facts("zookeeper").get("data") or {}).get("snapshot")
            ],
        )
        result["cluster_ids"][cluster.name] = (
            cluster.snapshot.cluster_id if cluster.snapshot else None
        )
        in_play = [member.name for member in cluster.brokers if member.in_play]
        if in_play:
            result["cluster_first"][cluster.name] = in_play[0]
    return result


def _servers(cluster: Cluster, ids: Mapping[str, int]) -> List[Dict[str, Any]]:
    return [
        {
            "host": member.name,
            "id": ids[member.name],
            "address": member.text("zookeeper_address"),
            "client_port": member.client_port,
            "peer_port": member.peer_port,
            "election_port": member.election_port,
        }
        for member in sorted(cluster.servers, key=lambda each: ids[each.name])
    ]


def _brokers(cluster: Cluster, ids: Mapping[str, int]) -> List[Dict[str, Any]]:
    return [
        {
            "host": member.name,
            "id": ids[member.name],
            "listeners": [
                {
                    "name": each.name,
                    "port": each.port,
                    "protocol": each.protocol,
                    "bind": each.bind,
                    "advertised": each.advertised,
                    "audience": list(each.audience),
                }
                for each in member.listeners
            ],
        }
        for member in sorted(cluster.brokers, key=lambda each: ids[each.name])
    ]


def first_on_machine(members: Sequence[Member]) -> Dict[str, Dict[str, bool]]:
    """host -> {kafka, zookeeper, any}: whether it is the machine's first name of that kind.

    Only names in the run count: a step for the machine must not wait for a host outside --limit.
    """
    seen = set()
    firsts = {}
    for member in members:
        if not member.in_play:
            continue
        entry = {}
        for kind, has in (
            ("any", True),
            ("kafka", member.is_broker),
            ("zookeeper", member.is_server),
        ):
            key = (kind, member.filesystem)
            entry[kind] = has and key not in seen
            if has:
                seen.add(key)
        firsts[member.name] = entry
    return firsts
