# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of the ensemble of ZooKeeper servers: its size, list, data and timing. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.identity import identities
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    START,
    Cluster,
    World,
    data_of,
    effective_properties,
    effective_zookeeper,
    ensemble_state,
    server_lines,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import WARNING, Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import whole_number

ENSEMBLE_MAX = 7
SCALE_ZOOKEEPER = "playbooks/scale_zookeeper.yml"


def check_ensemble(world: World) -> Iterator[Problem]:
    """Size, list, data and timing of each ensemble."""
    servers = {member.name for member in world.members if member.is_server}
    # Of a run that changes controllers, metadata.py knows who leaves.
    leaving = frozenset() if world.voters_change else world.leaving or frozenset()
    for name in sorted(leaving - servers):
        yield found(
            "ensemble.unknown_leaver",
            sorted(servers) or [member.name for member in world.members],
            "zookeeper_leaves",
            name,
            "no ZooKeeper server of the inventory has this name",
        )
    for cluster in world.clusters:
        # Also on the way to KRaft, as long as there are servers.
        for server in cluster.servers:
            yield from _data_moved(server)
        if cluster.kraft or not (cluster.brokers or cluster.servers):
            continue
        yield from _size(cluster)
        yield from _data(cluster, world.purpose == START)
        taken = _place_taken(cluster)
        if taken:
            yield _moved(taken, only_brokers=world.replaced is not None)
        else:
            yield from _running_list(cluster)
        yield from _client_ports(cluster, WARNING if world.purpose == START else "")
        yield from _leavers(cluster)
        yield from _addresses(cluster)
        yield from _session_timeout(cluster)


def _size(cluster: Cluster) -> Iterator[Problem]:
    size = len(cluster.staying)
    hosts = [member.name for member in cluster.staying or cluster.brokers]
    group = (cluster.servers or cluster.brokers)[0].text("zookeeper_group") or "zookeeper"
    if size == 0:
        reason = f"the group has no host of cluster {cluster.name}, and Kafka needs an ensemble"
        remedy = f"add one, three or five hosts to the group {group}"
    elif size > ENSEMBLE_MAX:
        reason = f"{size} servers: every write waits for a majority of them"
        remedy = "use five or seven servers"
    elif size % 2 == 0:
        reason = f"{size} servers: an even number tolerates no more failures than {size - 1} and needs one vote more"
        remedy = f"use {size - 1} or {size + 1} servers"
    else:
        if size == 1 and any(member.production for member in cluster.members):
            reason = "one server: when it stops, nothing can change in the cluster"
            yield found("ensemble.single", hosts, "zookeeper_group", group, reason)
        return
    yield found("ensemble.size", hosts, "zookeeper_group", group, reason, remedy)


def _data(cluster: Cluster, as_it_ran: bool) -> Iterator[Problem]:
    members = ensemble_state(cluster)["members"]
    if cluster.leaving is not None or as_it_ran:
        # One that joins starts empty, and counts only when it has fetched the data.
        in_effect = {line for lines in _lists_in_effect(cluster).values() for line in lines}
        ids = identities(cluster)[1]
        joining = {host for host in members if f"server.{ids[host]}" not in in_effect}
        members = {host: data for host, data in members.items() if data or host not in joining}
    empty = [host for host, has_data in members.items() if has_data is False]
    holding = [host for host, has_data in members.items() if has_data]
    majority = len(members) // 2 + 1
    if holding and len(empty) >= majority:
        yield found(
            "ensemble.empty_majority",
            empty,
            "zookeeper_data_dir",
            cluster.servers[0].data_dir,
            f"{len(empty)} of {len(members)} servers would start empty while "
            f"{', '.join(holding)} holds the data, and could elect each other and overwrite it",
        )


def _data_moved(server: Member) -> Iterator[Problem]:
    """Directories of the inventory that do not have the server's data, or not the newest: it would start without it."""
    former = server.product_facts("zookeeper").get("former_data") or {}
    data, log = former.get("data_dir", ""), former.get("data_log_dir", "")
    apart = server.data_log_dir != server.data_dir
    if data and log == data and not apart:
        log = ""  # one move of both
    most = "its myid and version-2" + (" without the files log.*" if apart else "")
    for variable, had, wanted, files in (
        ("zookeeper_data_dir", data, server.data_dir, most),
        ("zookeeper_data_log_dir", log, server.data_log_dir, "the files version-2/log.*"),
    ):
        if had:
            # With two directories, ZooKeeper does not start where one has files of the other.
            move = "move" if had in (server.data_dir, server.data_log_dir) else "move or copy"
            reason = "it would start without data, or with older ones"
            if move != "move":
                reason = f"{wanted} has no copy of it from after the server's stop: {reason}"
            yield found(
                "ensemble.data_moved",
                server.name,
                variable,
                wanted,
                f"the server's data is in {had}, and {reason}",
                f"set {variable}: {had}; or, one server after another, stop it, {move} {files} from {had} to {wanted}"
                " with their owners, and run this again while it is down",
            )


def _lists_in_effect(cluster: Cluster) -> Dict[str, Dict[str, str]]:
    """host -> `server.N` -> address, of the servers that have data, as they run or ran last."""
    lists = {}
    for member in cluster.servers:
        facts = member.product_facts("zookeeper")
        current = facts.get("current")
        if current is not None and data_of(member).get("has_data"):
            lists[member.name] = {
                key: value for key, value in current.items() if key.startswith("server.")
            }
    return lists


def ensemble_in_effect(cluster: Cluster) -> Dict[str, Any]:
    """{servers: [{host, id, address, client_port}], lists: [[id]]} of the ensemble as it ran last, by its own files.

    The inventory may be ahead of it. `host` is "" where the inventory has none of that id; two lists are of a change
    that was left half way. Where no server has data it is what the inventory describes.
    """
    _brokers, ids = identities(cluster)
    hosts = {ids[each.name]: each for each in cluster.servers if each.name in ids}
    addresses: Dict[int, str] = {}
    lists: List[List[int]] = []
    for host, current in sorted(_lists_in_effect(cluster).items()):
        numbered = {whole_number(key.partition(".")[2]): each for key, each in current.items()}
        listed = {number: each for number, each in numbered.items() if number is not None}
        addresses.update((number, _host_of(value)) for number, value in listed.items())
        # one that stands alone has no list
        numbers = sorted(listed) or [ids[host]]
        lists += [] if numbers in lists else [numbers]
    lists = lists or [sorted(ids[each.name] for each in cluster.staying)]
    servers = []
    for number in sorted({number for each in lists for number in each}):
        member = hosts.get(number)
        current = (member.product_facts("zookeeper").get("current") or {}) if member else {}
        port = whole_number(current.get("clientPort")) or (member or cluster.servers[0]).client_port
        address = addresses.get(number) or (member.text("zookeeper_address") if member else "")
        servers.append(
            {
                "host": member.name if member else "",
                "id": number,
                "address": address,
                "client_port": port,
            }
        )
    return {"servers": servers, "lists": lists}


def _host_of(server: str) -> str:
    """The address in the value of `server.N`: ADDRESS:PEER:ELECTION, an IPv6 address in brackets."""
    address = server.partition(";")[0].partition("|")[0].rsplit(":", 2)[0]
    return address[1:-1] if address.startswith("[") else address


@dataclass(frozen=True)
class _Taken:
    """The machine of `host` stands for server `number`, which the others know at the address `before`."""

    host: str
    number: int
    before: str
    now: str


def _place_taken(cluster: Cluster) -> Optional[_Taken]:
    """The machine that takes the place of one that is gone, or None; also where a killed run is half way.

    Safe is one at a time: the ids stay, so majorities by either list share a server, and one without data makes up
    none (zookeeper.db.autocreate). The others have to be a quorum without it.
    """
    if cluster.leaving is not None:
        return None
    _brokers, ids = identities(cluster)
    wanted = server_lines(cluster, ids)
    lists = _lists_in_effect(cluster)
    before = [each for each in lists.values() if each != wanted]
    if not before or any(each != before[0] for each in before) or set(before[0]) != set(wanted):
        return None
    moved = [key for key in wanted if wanted[key] != before[0][key]]
    hosts = [each for each in cluster.servers if f"server.{ids.get(each.name)}" in moved]
    if len(moved) != 1 or len(hosts) != 1:
        return None
    (host,) = hosts
    data = data_of(host)
    is_new = data.get("readable") and not data.get("has_data") and not host.alive("zookeeper")
    if not is_new and lists.get(host.name) != wanted:
        return None
    serving = [each for each in cluster.servers if each is not host and each.alive("zookeeper")]
    if len(serving) <= len(wanted) // 2:
        return None
    number = int(moved[0].partition(".")[2])
    return _Taken(host.name, number, before[0][moved[0]], wanted[moved[0]])


def _moved(taken: _Taken, only_brokers: bool) -> Problem:
    reason = (
        f"the other servers know server {taken.number} at {taken.before}, and another machine takes its place. "
        "If the old one still runs somewhere, two servers vote under one id"
    )
    level = WARNING if only_brokers else ""
    return found("ensemble.moved", taken.host, "zookeeper_address", taken.now, reason, level=level)


def _running_list(cluster: Cluster) -> Iterator[Problem]:
    _brokers, ids = identities(cluster)
    wanted = server_lines(cluster, ids)
    known = server_lines(replace(cluster, leaving=None), ids)
    group = (cluster.servers or cluster.brokers)[0].text("zookeeper_group") or "zookeeper"
    for host, running in _lists_in_effect(cluster).items():
        gone = [
            f"{key}={value}" for key, value in sorted(running.items()) if wanted.get(key) != value
        ]
        new = [
            f"{key}={value}" for key, value in sorted(wanted.items()) if running.get(key) != value
        ]
        unknown = sorted(each for each in running if each not in known)
        moved = sorted(each for each in running if each in known and running[each] != known[each])
        if cluster.leaving is None:
            wrong = running != wanted
        else:
            # The list is about to change, but not the addresses, nor behind anybody's back.
            wrong = bool(moved or unknown)
        if not wrong:
            continue
        remedy = ""
        if moved:
            remedy = f"give {', '.join(moved)} the address again that the servers know"
        elif unknown:
            remedy = (
                f"put the host of {', '.join(unknown)} back into the inventory; a server "
                f"leaves, while its host is there, by ansible-playbook {SCALE_ZOOKEEPER} -e "
                "zookeeper_leaves=HOST"
            )
        yield found(
            "ensemble.server_list",
            host,
            "zookeeper_group",
            group,
            f"the server has data and another list: it has {', '.join(gone) or 'nothing else'}, "
            f"the inventory gives {', '.join(new) or 'nothing else'}",
            remedy,
        )


def _client_ports(cluster: Cluster, level: str) -> Iterator[Problem]:
    """Servers that run with another client port than the inventory has; who starts what was in effect changes none.

    A server listens at one, and a broker learns of another only when it restarts, after the servers: by then
    none of those that it knows would answer.
    """
    for member in cluster.servers:
        if not member.alive("zookeeper") or not member.client_port:
            continue
        current = member.product_facts("zookeeper").get("current") or {}
        running = current.get("clientPort", "")
        if running and running != str(member.client_port):
            yield found(
                "ensemble.client_port",
                member.name,
                "zookeeper_client_port",
                member.client_port,
                f"the server runs, and brokers know it, at port {running}",
                f"set zookeeper_client_port: {running}; or, if the clusters may be down meanwhile, run"
                " playbooks/stop.yml and then playbooks/site.yml, which starts all of it with the other port",
                level=level,
            )


def _leavers(cluster: Cluster) -> Iterator[Problem]:
    """Brokers that know no other ZooKeeper servers than those that leave."""
    if not cluster.leaving:
        return
    stays = {endpoint(each.text("zookeeper_address"), each.client_port) for each in cluster.staying}
    for member in cluster.brokers:
        connect = (member.product_facts("kafka").get("current") or {}).get("zookeeper.connect", "")
        asked = {each for each in connect.partition("/")[0].split(",") if each}
        if asked and not asked & stays:
            yield found(
                "ensemble.unknown_to_brokers",
                member.name,
                "zookeeper_leaves",
                ",".join(sorted(cluster.leaving)),
                f"the broker knows {', '.join(sorted(asked))} alone, and none of these stays",
            )


def _addresses(cluster: Cluster) -> Iterator[Problem]:
    users: Dict[Tuple[str, int], List[str]] = {}
    for member in cluster.servers:
        address = member.text("zookeeper_address")
        for port in (member.client_port, member.peer_port, member.election_port):
            if address and port:
                users.setdefault((address, port), []).append(member.name)
    for (address, port), hosts in sorted(users.items(), key=str):
        if len(hosts) > 1:
            yield found(
                "ensemble.duplicate_address",
                hosts,
                "zookeeper_address",
                address,
                f"more than one use of {endpoint(address, port)} in the ensemble",
            )


def _session_timeout(cluster: Cluster) -> Iterator[Problem]:
    for server in cluster.servers:
        properties = effective_zookeeper(server)
        tick = whole_number(properties.get("tickTime"))
        if not tick or tick < 1:
            continue
        low = whole_number(properties.get("minSessionTimeout")) or 2 * tick
        high = whole_number(properties.get("maxSessionTimeout")) or 20 * tick
        for broker in cluster.brokers:
            wanted = whole_number(
                effective_properties(broker, len(cluster.staying_brokers)).get(
                    "zookeeper.session.timeout.ms"
                )
            )
            if wanted is not None and not low <= wanted <= high:
                yield found(
                    "ensemble.session_timeout",
                    server.name,
                    "zookeeper_config.tickTime",
                    tick,
                    f"it allows session timeouts from {low} to {high} ms, Kafka asks for "
                    f"{wanted}",
                )
