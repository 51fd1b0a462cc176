# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of listeners, addresses, names and ports. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple, Union

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.seen_from import INSIDE
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight import taking_over
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.addresses import (
    address_faults,
    bare,
    canonical,
    host_problem,
    is_address,
    is_loopback,
    is_wildcard,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.firewall import (
    AUDIENCES as CLIENT_AUDIENCES,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.firewall import (
    CLIENTS_OF,
    audiences_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    Listener,
    Member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ports import Port, ports
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import judged
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    WRITING,
    Callers,
    Cluster,
    World,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import WARNING, Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some

# Of a listener: the preflight resolves its name on all brokers' hosts, or it is one that clients use; and
# the validation tries those of `flow_validation_audiences`.
AUDIENCES = ("admin", "brokers", "clients")
# Kafka's own rule, whatever the machine could do.
FAMILIES_WANTED = (
    "Kafka takes one port for two listeners only where one is bound to an IPv4 address and the other"
    " to an IPv6 address"
)


@dataclass(frozen=True)
class Socket:
    """One socket that an instance will listen on. `addresses` empty: all of the machine's; `bind`: as it is written."""

    host: str
    product: str
    variable: str
    port: int
    addresses: Tuple[str, ...]
    bind: str


def wanted_sockets(member: Member, servers: int) -> List[Socket]:
    """What this member's instances will listen on; `servers`: of its ensemble."""
    return [_socket(member, each) for each in ports(member, servers)]


def _socket(member: Member, port: Port) -> Socket:
    bind = bare(port.bind)
    if is_wildcard(bind):
        addresses: Tuple[str, ...] = ()
    elif is_address(bind):
        addresses = (canonical(bind),)
    else:
        known = ((member.facts or {}).get("names") or {}).get(bind) or {}
        # An unresolved name could be any address; assume it is all of them.
        addresses = tuple(canonical(each) for each in known.get("addresses") or ())
    return Socket(member.name, port.product, port.variable, port.number, addresses, bind)


def overlap(one: Tuple[str, ...], other: Tuple[str, ...]) -> bool:
    """Whether two sets of addresses of one machine meet; empty means all."""
    return not one or not other or bool(set(one) & set(other))


# ---------------------------------------------------------------- ports


def check_ports(world: World) -> Iterator[Problem]:
    """Ports that two instances want, and ports that somebody else holds."""
    machines: Dict[str, List[Socket]] = {}
    for cluster in world.clusters:
        servers = len(cluster.servers)
        wanted = [(each, wanted_sockets(each, servers)) for each in cluster.members]
        for member, sockets in wanted:
            machines.setdefault(member.network, []).extend(sockets)
            yield from _held(world, member, sockets)
            yield from _elsewhere(member)
        yield from _ephemeral(wanted)
    for _network, sockets in sorted(machines.items()):
        yield from _collisions(sockets)


def _collisions(sockets: List[Socket]) -> Iterator[Problem]:
    for index, one in enumerate(sockets):
        for other in sockets[index + 1 :]:
            if one.port != other.port:
                continue
            same_kind = one.product == other.product == "kafka"
            meet = overlap(one.addresses, other.addresses)
            one_instance = same_kind and one.host == other.host
            if not meet and not (one_instance and _refused_by_kafka(one, other)):
                continue
            yield found(
                "listeners.duplicate" if same_kind else "ports.duplicate",
                [one.host, other.host],
                (
                    one.variable
                    if one.variable == other.variable
                    else f"{one.variable} and {other.variable}"
                ),
                one.port,
                (
                    "both want this port on one machine"
                    if one.host != other.host
                    else "used twice on the host" if meet else FAMILIES_WANTED
                ),
                "" if meet else "give each listener its own port",
            )


def _refused_by_kafka(one: Socket, other: Socket) -> bool:
    """Whether a broker does not start with two listeners on one port, though their addresses differ."""
    literals = [each.bind for each in (one, other) if is_address(each.bind)]
    return {ipaddress.ip_address(each).version for each in literals} != {4, 6}


def _held(world: World, member: Member, sockets: List[Socket]) -> Iterator[Problem]:
    if member.facts is None:
        return
    for socket in sockets:
        for holder in member.facts.get("ports") or []:
            address = () if is_wildcard(holder["address"]) else (canonical(holder["address"]),)
            if holder["port"] != socket.port or not overlap(socket.addresses, address):
                continue
            if holder["ours"]:
                continue
            yield found(
                "ports.in_use",
                member.name,
                socket.variable,
                socket.port,
                f"{_who(world, member, holder)} listens on {endpoint(holder['address'], holder['port'])}",
                _taken_over(member, socket),
            )


def _taken_over(member: Member, socket: Socket) -> str:
    """What to do where others have installed what listens; "" where they have not."""
    if not taking_over.is_former(member, socket.product):
        return ""
    return (
        "take over one host at a time: stop what others have installed there, and run"
        f" playbooks/site.yml --limit {member.name}"
    )


def _ephemeral(wanted: Sequence[Tuple[Member, List[Socket]]]) -> Iterator[Problem]:
    """One finding for all members that have the variable, and whose kernel takes the same ports.

    Where they have several ports, it says which host has which.
    """
    # A port that is free now may be the local end of any connection when the instance is restarted.
    lent: Dict[Tuple[int, int, str], List[Socket]] = {}
    for member, sockets in wanted:
        kernel = (member.facts or {}).get("ephemeral_ports")
        if not kernel:
            continue
        first, last = kernel["first"], kernel["last"]
        for socket in sockets:
            reserved = any(low <= socket.port <= high for low, high in kernel["reserved"])
            if first <= socket.port <= last and not reserved:
                lent.setdefault((first, last, socket.variable), []).append(socket)
    for (first, last, variable), sockets in sorted(lent.items()):
        numbers = sorted({each.port for each in sockets})
        owned = [endpoint(each.host, each.port) for each in sockets]
        yield found(
            "ports.ephemeral",
            [each.host for each in sockets],
            variable,
            owned if len(numbers) > 1 else numbers[0],
            f"the kernel uses ports {first} to {last} for outgoing connections; "
            "one of these may hold the port when the instance starts",
        )


def _elsewhere(member: Member) -> Iterator[Problem]:
    binds = [
        (f"kafka_listeners[{index}].bind", each.bind) for index, each in enumerate(member.listeners)
    ]
    if member.is_controller:
        binds.append(("kafka_controller_bind", member.text("kafka_controller_bind")))
    if member.is_server:
        binds.append(("zookeeper_bind", member.text("zookeeper_bind")))
    here = (member.facts or {}).get("addresses")
    for variable, written in binds:
        bind = bare(written)
        if not here or not is_address(bind) or is_wildcard(bind) or is_loopback(bind):
            continue
        if ipaddress.ip_address(bind) not in {ipaddress.ip_address(each) for each in here}:
            yield found(
                "listeners.bind",
                member.name,
                variable,
                written,
                "no interface of this host has the address; it has "
                f"{', '.join(each for each in here if not is_loopback(each))}",
            )


def _not_where_it_is_sought(cluster: Cluster) -> Iterator[Problem]:
    """Controllers that listen on another address of their host than the one to which kafka_address leads.

    No voter reaches them there, and nobody notices before the last one has restarted: those that restart fetch from the
    leader, which still has its former address. Where the host does not have the address, something maps it.
    """
    for member in cluster.controllers:
        written, address = member.text("kafka_controller_bind"), member.text("kafka_address")
        bind = bare(written)
        here = set(_parsed((member.facts or {}).get("addresses") or ()))
        if not here or not is_address(bind) or is_wildcard(bind):
            continue
        if is_address(bare(address)):
            meant = _parsed([bare(address)])
        else:
            asked = [each for each in cluster.nodes if each.network != member.network] or [member]
            answers = [((each.facts or {}).get("names") or {}).get(address) or {} for each in asked]
            meant = _parsed(one for each in answers for one in each.get("addresses") or ())
        mapped = not is_loopback(bind) and not here & set(meant)
        if not meant or mapped or set(_parsed([bind])) & set(meant):
            continue
        yield found(
            "listeners.bind",
            member.name,
            "kafka_controller_bind",
            written,
            f"the other nodes connect to kafka_address {address} ({', '.join(sorted({str(each) for each in meant}))}),"
            " and nothing would listen there: after a roll no controller reaches another",
            "bind to the address that kafka_address means, or to all of them by leaving kafka_controller_bind empty",
        )


def _parsed(texts: Iterable[str]) -> List[Union[ipaddress.IPv4Address, ipaddress.IPv6Address]]:
    return [ipaddress.ip_address(each.partition("%")[0]) for each in texts if is_address(each)]


def _who(world: World, member: Member, holder: Mapping[str, Any]) -> str:
    if holder["pid"] is None:
        return "a process that this user may not see"
    for other in world.members:
        for product in ("kafka", "zookeeper"):
            if other.network != member.network or not other.alive(product):
                continue
            if other.product_facts(product)["started"].get("pid") == holder["pid"]:
                return f"{product} of {other.name} (process {holder['pid']})"
    command = holder["command"].split(" ")[0] or "unknown"
    return f"process {holder['pid']} ({command})"


# ---------------------------------------------------------------- listeners


def check_listeners(world: World) -> Iterator[Problem]:
    """Names, announced addresses and resolution of the listeners."""
    announced: Dict[Tuple[str, int], List[Tuple[Member, int]]] = {}
    yield from _clients(world)
    for cluster in world.clusters:
        for member in cluster.brokers:
            yield from _names(member)
            yield from _audiences(member, world.controller.callers)
            for index, each in enumerate(member.listeners):
                if each.advertised:
                    announced.setdefault((each.advertised, each.port), []).append((member, index))
                yield from _loopback(cluster, member, index, each)
        yield from _same_names(cluster)
        yield from _resolution(world, cluster)
        yield from _not_where_it_is_sought(cluster)
    for (host, port), users in sorted(announced.items()):
        if len(users) > 1 and len({member.name for member, _index in users}) > 1:
            yield found(
                "listeners.duplicate",
                [member.name for member, _index in users],
                f"kafka_listeners[{users[0][1]}].advertised",
                endpoint(host, port),
                "these brokers announce one address: clients would reach either",
            )


def _clients(world: World) -> Iterator[Problem]:
    """Clusters and audiences of hosts of clients: a misspelt one would leave the host without its look."""
    callers = world.controller.callers
    names = sorted(cluster.name for cluster in world.clusters if cluster.brokers)
    for host, cluster_name in sorted(callers.clusters.items()):
        if names and cluster_name not in names:
            yield found(
                "listeners.clients_of",
                host,
                CLIENTS_OF,
                cluster_name,
                f"nothing is tried from there: of this run no cluster has this name; there are {', '.join(names)}",
            )
    for host, value in sorted(callers.audiences.items()):
        of_host = callers.clusters.get(host, "")
        read = [
            listener
            for cluster in world.clusters
            if of_host in ("", cluster.name)
            for member in cluster.brokers
            for listener in member.listeners
        ]
        known = sorted({audience for each in read for audience in each.audience} - INSIDE)
        for fault in judged(CLIENT_AUDIENCES, value)[1]:
            yield found(fault.check, host, fault.where, fault.value, fault.reason, fault.remedy)
        for audience in audiences_of(callers, host):
            if read and audience not in known:
                yield found(
                    "listeners.client_audience",
                    host,
                    CLIENT_AUDIENCES,
                    audience,
                    f"no listener has this audience; there are {', '.join(known) or 'none for clients'}",
                )


def _audiences(member: Member, callers: Callers) -> Iterator[Problem]:
    """Audiences that nothing reads: a misspelt one leaves a listener without its checks and its proof."""
    wanted = member.settings.get("flow_validation_audiences")
    own = map(str, wanted) if isinstance(wanted, list) else ()
    tried = (each for host in callers.audiences for each in audiences_of(callers, host))
    known = sorted({*AUDIENCES, *own, *tried})
    for index, each in enumerate(member.listeners):
        for audience in each.audience:
            if audience not in known:
                yield found(
                    "listeners.audience",
                    member.name,
                    f"kafka_listeners[{index}].audience",
                    audience,
                    f"nothing is checked or proven for it; known are {', '.join(known)}",
                )


def _names(member: Member) -> Iterator[Problem]:
    names = [each.name.upper() for each in member.listeners]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield found(
            "listeners.duplicate",
            member.name,
            "kafka_listeners.name",
            name,
            "two listeners have this name",
            "give each listener a name of its own",
        )
    for variable in ("kafka_inter_broker_listener", "kafka_admin_listener"):
        wanted = member.text(variable)
        if wanted and member.listeners and wanted not in {each.name for each in member.listeners}:
            yield found(
                "listeners.inter_broker",
                member.name,
                variable,
                wanted,
                "no listener has this name; there are "
                f"{', '.join(each.name for each in member.listeners)}",
            )


def _same_names(cluster: Cluster) -> Iterator[Problem]:
    """A listener that one broker lacks: its clients would lose every partition led there."""
    shapes = {
        member.name: {each.name: each.protocol for each in member.listeners}
        for member in cluster.brokers
        if member.listeners
    }
    every = {(name, protocol) for shape in shapes.values() for name, protocol in shape.items()}
    for name, protocol in sorted(every):
        lacking = [host for host, shape in shapes.items() if shape.get(name) != protocol]
        if lacking and len(lacking) * 2 <= len(shapes):
            having = [host for host in shapes if host not in lacking]
            yield found(
                "listeners.mismatch",
                lacking,
                "kafka_listeners",
                f"{name} ({protocol})",
                f"missing here, while {', '.join(having)} has it",
            )


def _loopback(cluster: Cluster, member: Member, index: int, each: Listener) -> Iterator[Problem]:
    variable = f"kafka_listeners[{index}].advertised"
    level = ""
    if each.advertised and is_wildcard(each.advertised):
        reason = "means every address, so no client can connect to it"
    elif not is_loopback(each.advertised):
        return
    elif len(cluster.machines) > 1:
        reason = "on every other machine of the cluster it means that machine itself"
    elif member.production:
        reason, level = "only clients on this machine can connect", WARNING
    else:
        return
    yield found("listeners.loopback", member.name, variable, each.advertised, reason, level=level)


def _resolution(world: World, cluster: Cluster) -> Iterator[Problem]:
    for member in cluster.brokers:
        for index, each in enumerate(member.listeners):
            if not each.advertised or is_address(each.advertised) or host_problem(each.advertised):
                continue
            for_brokers = each is member.inter_broker_listener or "brokers" in each.audience
            yield from _resolves(
                world,
                cluster,
                member,
                f"kafka_listeners[{index}].advertised",
                each.advertised,
                "listeners.unresolvable",
                everywhere=for_brokers or not each.audience,
            )
    others = [(each, "kafka_address", "listeners.unresolvable") for each in cluster.controllers]
    others += [(each, "zookeeper_address", "ensemble.unresolvable") for each in cluster.servers]
    for member, variable, check in others:
        address = member.text(variable)
        if address and not is_address(address) and not host_problem(address):
            yield from _resolves(world, cluster, member, variable, address, check, everywhere=True)


def _resolves(
    world: World,
    cluster: Cluster,
    member: Member,
    variable: str,
    name: str,
    check: str,
    everywhere: bool,
) -> Iterator[Problem]:
    """`everywhere`: each member has to resolve it; else one vantage point is enough."""
    answers = {
        other.name: _answer(world, other, name)
        for other in cluster.members
        if other.facts and name in (other.facts.get("names") or {})
    }
    failing = {host: answer["error"] for host, answer in answers.items() if answer["error"]}
    from_controller = world.controller.names.get(name)
    if not everywhere:
        vantages = dict(answers)
        if from_controller:
            vantages["the controller"] = from_controller
        if any(not answer["error"] for answer in vantages.values()):
            return
        failing = {host: answer["error"] for host, answer in vantages.items()}
    if failing:
        reason = "; ".join(sorted({str(error) for error in failing.values()}))
        yield found(
            check,
            member.name,
            variable,
            name,
            f"does not resolve on {some(sorted(failing))} ({reason})",
        )
    misled = [
        host
        for host, answer in sorted(answers.items())
        if any(is_loopback(address) for address in answer["addresses"])
        and _network_of(cluster, host) != member.network
    ]
    if misled and not is_loopback(name):
        yield found(
            "listeners.loopback" if check.startswith("listeners") else check,
            member.name,
            variable,
            name,
            f"resolves to a loopback address on {some(misled)}",
            f"correct /etc/hosts there: the name has to mean {member.name}",
        )


def _answer(world: World, host: Member, name: str) -> Mapping[str, Any]:
    """What a host says of a name; of one that it does not know yet, what this run writes into its /etc/hosts.

    A name that it knows it may know from another line of that file, which counts before the one that is written.
    """
    told: Mapping[str, Any] = (host.facts or {})["names"][name]
    writes = world.purpose in WRITING and host.in_play and not host.unreachable
    if not told["error"] or not writes or host.get("host_baseline_manage_hosts_file") is not True:
        return told
    address = str(host.mapping("host_baseline_hosts").get(name) or _written(world, name))
    return {"addresses": [address], "error": None} if is_address(address) else told


def _written(world: World, name: str) -> str:
    """The address beside a member's name, as the template hosts.j2 of host_baseline takes it; "" for none."""
    for member in world.members:
        if member.name == name:
            own = "kafka_address" if member.runs_kafka else "zookeeper_address"
            return member.text(own) or member.text("ansible_host")
    return ""


def _network_of(cluster: Cluster, host: str) -> str:
    return next(member.network for member in cluster.members if member.name == host)


# ---------------------------------------------------------------- forms of addresses


def check_addresses(world: World) -> Iterator[Problem]:
    """Brokers are host:port, registries are URLs; people mix them up, in variables and in settings."""
    for member in world.members:
        written = sorted(member.settings.items())
        for variable in ("kafka_config", "kafka_host_config"):
            written += [
                (f"{variable}.{key}", each) for key, each in member.mapping(variable).items()
            ]
        for variable, value in written:
            for text, reason, remedy in address_faults(variable, value):
                yield found("addresses.form", member.name, variable, text, reason, remedy)
