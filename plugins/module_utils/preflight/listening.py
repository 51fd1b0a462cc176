# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Which ports will be listened on by what does not run yet, and who has to reach them. Pure.

Also those of what runs, as far as what is new to the cluster has to reach them.
"""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterator, List, Mapping, Sequence, Set

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.seen_from import (
    is_for_clients,
    outside,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ports import (
    CONTROLLERS,
    ELECTION,
    FOLLOWERS,
    FOR_CLIENTS,
    Port,
    admin_listener,
    is_inside,
    ports,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import Cluster

PRODUCTS = ("kafka", "zookeeper")
# Who connects: brokers and controllers of the cluster, its ZooKeeper servers, hosts of the group kafka_clients, and
# the host that administers.
NODES, SERVERS, CLIENTS, ADMIN = "nodes", "servers", "clients", "admin"
_WHAT = {
    CONTROLLERS: "the controller's port",
    FOR_CLIENTS: "ZooKeeper's port for clients",
    FOLLOWERS: "ZooKeeper's port for followers",
    ELECTION: "ZooKeeper's port for elections",
}


def listening(cluster: Cluster) -> List[Dict[str, Any]]:
    """Every port of the cluster's instances that do not run, by host.

    As dicts: `host`, `what` in words, `bind` ("" for all addresses) and `port` to listen on, `address` to
    connect to, `callers`, `audience` of a listener. A port without an address to connect to is left out.
    """
    found = [each for member in cluster.members for each in _of_member(cluster, member)]
    return [each for each in found if each["address"] and each["callers"]]


def listened(cluster: Cluster) -> List[Dict[str, Any]]:
    """Ports where instances of the cluster listen now, as `listening`, with `newcomers`.

    These are hosts where nothing of the cluster has ever run: whether they get through nobody knows yet. A port that
    the inventory names and that nobody has in effect is left out.
    """
    new = sorted(
        member.name
        for member in cluster.members
        if member.facts is not None
        and not any(
            (member.product_facts(each).get("started") or {}).get("recorded") for each in PRODUCTS
        )
    )
    held = {
        (member.name, holder["port"])
        for member in cluster.members
        for holder in (member.facts or {}).get("ports") or []
        if holder["ours"]
    }
    found = [
        each for member in cluster.members for each in _of_member(cluster, member, running=True)
    ]
    return [
        {**each, "newcomers": new}
        for each in found
        if new and each["address"] and each["callers"] and (each["host"], each["port"]) in held
    ]


def _of_member(cluster: Cluster, member: Member, running: bool = False) -> Iterator[Dict[str, Any]]:
    for each in ports(member, len(cluster.servers)):
        if member.alive(each.product) is not running:
            continue
        yield {
            "host": member.name,
            "what": _what(each),
            "bind": each.bind,
            "port": each.number,
            "address": each.address,
            "callers": _callers(member, each),
            "audience": sorted(each.listener.audience) if each.listener else [],
        }


def _what(port: Port) -> str:
    if port.listener:
        return f"listener {port.listener.name}"
    return _WHAT[port.purpose]


def _callers(member: Member, port: Port) -> List[str]:
    """Who connects to it: kinds of hosts."""
    if port.listener:
        inside = [NODES] if is_inside(member, port.listener) else []
        admin = [ADMIN] if port.listener.name == admin_listener(member) else []
        return inside + ([CLIENTS] if is_for_clients(port.listener.audience) else []) + admin
    return {CONTROLLERS: [NODES], FOR_CLIENTS: [NODES, ADMIN]}.get(port.purpose, [SERVERS])


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


def unknown_of(
    ports: Sequence[Mapping[str, Any]], refused: Mapping[str, Sequence[Mapping[str, Any]]]
) -> List[str]:
    """A line for each port where no stand-in can listen, so that nothing is known of it before the start.

    `ports`: as `listening` has them; `refused`: by host, `port reason` of the module port_stand_in.
    """
    reasons = {
        (host, int(each["port"])): each["reason"] for host in refused for each in refused[host]
    }
    return sorted(
        f"{each['host']}, {each['what']} ({endpoint(each['address'], each['port'])}): unknown until it runs, "
        f"since nothing else can listen there: {reasons[each['host'], each['port']]}"
        for each in ports
        if (each["host"], each["port"]) in reasons
    )


def attempts_of(
    ports: Sequence[Mapping[str, Any]],
    host: str,
    kinds: Set[str],
    standing: Mapping[str, Sequence[int]],
    audiences: Collection[str] = (),
) -> List[Dict[str, Any]]:
    """What this host is to connect to, as the module port_probe takes it.

    `ports`: of one cluster, as `listening` and `listened` have them; `kinds`: of callers that the host is one of;
    `standing`: by host, the ports where a stand-in listens. Of others nothing is known before they run. Those of what
    runs are tried by a newcomer that is about to start. `audiences`: those that a host of clients belongs to, empty
    for all.
    """
    return [
        {
            "name": each["host"],
            "what": each["what"],
            "address": each["address"],
            "port": each["port"],
            # of whoever tries it for clients alone
            "audience": (
                list(outside(each["audience"])) if kinds & set(each["callers"]) == {CLIENTS} else []
            ),
            "runs": "newcomers" in each,
        }
        for each in ports
        if each["host"] != host
        and _is_caller(each, kinds, audiences)
        and (
            (host in each["newcomers"] and bool(standing.get(host)))
            if "newcomers" in each
            else each["port"] in standing.get(each["host"], ())
        )
    ]


def _is_caller(port: Mapping[str, Any], kinds: Set[str], audiences: Collection[str]) -> bool:
    found = kinds & set(port["callers"])
    return bool(found - {CLIENTS}) or bool(found) and is_for_clients(port["audience"], audiences)
