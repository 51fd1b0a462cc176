# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Which ports will be listened on by what does not run yet, and who has to reach them. Pure."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Sequence, Set

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import Cluster

# Who connects: brokers and controllers of the cluster, its ZooKeeper servers, hosts of the group kafka_clients.
NODES, SERVERS, CLIENTS = "nodes", "servers", "clients"
# Audiences of a listener that are not on hosts of clients.
INSIDE = {"brokers", "admin"}


def listening(cluster: Cluster) -> List[Dict[str, Any]]:
    """Every port of the cluster's instances that do not run, by host.

    As dicts: `host`, `what` in words, `bind` ("" for all addresses) and `port` to listen on, `address` to
    connect to, `callers`. A port without an address to connect to is left out.
    """
    found = [each for member in cluster.members for each in _of_member(cluster, member)]
    return [each for each in found if each["address"] and each["callers"]]


def _of_member(cluster: Cluster, member: Member) -> Iterator[Dict[str, Any]]:
    def port(
        what: str, bind: str, number: Any, address: str, callers: Sequence[str]
    ) -> Dict[str, Any]:
        return {
            "host": member.name,
            "what": what,
            "bind": bind,
            "port": int(number),
            "address": address,
            "callers": list(callers),
        }

    if not member.alive("kafka"):
        inner = member.inter_broker_listener
        for each in member.listeners:
            callers = [NODES] if inner and inner.name == each.name else []
            callers += [CLIENTS] if set(each.audience) - INSIDE else []
            told = each.advertised or each.bind
            yield port(f"listener {each.name}", each.bind, each.port, told, callers)
        if member.is_controller and member.get("kafka_controller_port"):
            bind, own = member.text("kafka_controller_bind"), member.text("kafka_address")
            yield port(
                "the controller's port", bind, member.get("kafka_controller_port"), own, [NODES]
            )
    if member.is_server and not member.alive("zookeeper"):
        own, bind = member.text("zookeeper_address"), member.text("zookeeper_bind")
        if member.client_port:
            yield port("ZooKeeper's port for clients", bind, member.client_port, own, [NODES])
        if len(cluster.servers) > 1:
            # ZooKeeper binds these to the address of its own server line.
            quorum = {"followers": member.peer_port, "elections": member.election_port}
            for purpose, number in quorum.items():
                if number:
                    yield port(f"ZooKeeper's port for {purpose}", own, number, own, [SERVERS])


def ports_of(
    clusters: Mapping[str, Sequence[Mapping[str, Any]]], host: str
) -> List[Dict[str, Any]]:
    """What a stand-in on this host is to listen on, as the module port_stand_in takes it."""
    found = {
        (each["port"], each["bind"])
        for ports in clusters.values()
        for each in ports
        if each["host"] == host
    }
    return [{"port": port, "bind": bind} for port, bind in sorted(found)]


def attempts_of(
    ports: Sequence[Mapping[str, Any]],
    host: str,
    kinds: Set[str],
    standing: Mapping[str, Sequence[int]],
) -> List[Dict[str, Any]]:
    """What this host is to connect to, as the module port_probe takes it.

    `ports`: of one cluster, as `listening` has them; `kinds`: of callers that the host is one of; `standing`: by
    host, the ports where a stand-in listens. Of others nothing is known before they run.
    """
    return [
        {
            "name": each["host"],
            "what": each["what"],
            "address": each["address"],
            "port": each["port"],
        }
        for each in ports
        if each["host"] != host
        and kinds & set(each["callers"])
        and each["port"] in standing.get(each["host"], ())
    ]
