# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Which ports of each host are open to whom, as the inventory states it, and what is wrong with that. Pure.

Whoever belongs to the audience of a listener is let in at its port. What the cluster itself needs is let in
without being stated: brokers among themselves and at ZooKeeper, servers among themselves, and the host that
administers. Nobody else is.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.firewall import (
    firewalld,
    nftables,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.firewall.openings import (
    Opening,
    canonical,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.addresses import (
    bare,
    is_address,
    is_loopback,
    is_wildcard,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    Listener,
    Member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ports import (
    CONTROLLERS,
    ELECTION,
    FOLLOWERS,
    FOR_CLIENTS,
    admin_listener,
    is_inside,
    ports,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import judged
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    START,
    Callers,
    Cluster,
    World,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# All that is read of a member for its openings.
VARIABLES = (
    *("ansible_connection", "ansible_host", "ansible_port", "flow_validation"),
    *("flow_validation_audiences", "host_baseline_firewall", "host_baseline_firewall_addresses"),
    *("host_baseline_firewall_sources", "jvm_service_manager", "kafka_address", "kafka_admin_host"),
    *("kafka_admin_listener", "kafka_cluster_name", "kafka_config", "kafka_controller_port"),
    *(
        "kafka_controllers_group",
        "kafka_inter_broker_listener",
        "kafka_listeners",
        "kafka_metadata",
    ),
    *("zookeeper_address", "zookeeper_bind", "zookeeper_client_port"),
    *("zookeeper_election_port", "zookeeper_peer_port"),
)
CHOICE = "host_baseline_firewall"
SOURCES = "host_baseline_firewall_sources"
ADDRESSES = "host_baseline_firewall_addresses"
AUDIENCES = "kafka_client_audiences"
CLIENTS_OF = "kafka_clients_of"
# Words for a source.
BROKERS, MEMBERS, CLIENTS, ADMIN_HOST = "brokers", "members", "kafka_clients", "admin_host"
WORDS = (ADMIN_HOST, BROKERS, CLIENTS, MEMBERS)
# Where each audience is, as long as host_baseline_firewall_sources does not say it.
ADMIN = "admin"
USUAL = {"brokers": [BROKERS], "clients": [CLIENTS], ADMIN: [ADMIN_HOST]}
# As a rule of the firewall says it.
PURPOSES = {
    CONTROLLERS: "KRaft, controllers",
    FOR_CLIENTS: "ZooKeeper, clients",
    FOLLOWERS: "ZooKeeper, followers",
    ELECTION: "ZooKeeper, election",
}
NEVER = "never"
SSH_PORT = 22


def is_wanted(member: Member) -> bool:
    """Whether the role sets a firewall on this host: it is left alone by default, and in containers."""
    if member.text(CHOICE) in ("", "none") or member.text("jvm_service_manager") != "systemd":
        return False
    return not (member.facts or {}).get("container")


def addresses_of(member: Member) -> Tuple[str, ...]:
    """The addresses from which a member connects to others; nothing where the inventory has only names.

    The address that Ansible uses may be one that only Ansible sees, so it is the last resort.
    """
    stated = [str(each).strip() for each in member.items(ADDRESSES)]
    inner = member.inter_broker_listener
    first = [
        member.text("kafka_address") if member.runs_kafka else "",
        inner.advertised if inner else "",
        member.text("zookeeper_address") if member.is_server else "",
        *(each.bind for each in member.listeners),
        member.text("zookeeper_bind") if member.is_server else "",
    ]
    for candidates in (stated, first, [member.text("ansible_host")], [member.name]):
        usable = {bare(each) for each in candidates if _is_of_a_machine(each)}
        if usable:
            return tuple(sorted(usable))
    return ()


def _is_of_a_machine(text: str) -> bool:
    return is_address(text) and not is_wildcard(text) and not is_loopback(text)


def audiences_of(callers: Callers, host: str) -> Tuple[str, ...]:
    """The audiences that a host of clients belongs to; empty for all, and where they cannot be read."""
    typed, _faults = judged(AUDIENCES, callers.audiences.get(host, []))
    return tuple(typed or ())


# ---------------------------------------------------------------- who is let in


def openings_of(
    cluster: Cluster, callers: Callers
) -> Tuple[Dict[str, Tuple[Opening, ...]], List[Problem]]:
    """(host -> its openings, of those that have a firewall; what could not be read)."""
    openings: Dict[str, Tuple[Opening, ...]] = {}
    problems: List[Problem] = []
    for member in cluster.members:
        if not is_wanted(member):
            continue
        reader = _Reader(cluster, member, callers)
        openings[member.name] = reader.openings()
        problems += reader.problems
    return openings, problems


class _Reader:
    """Reads the openings of one member; what cannot be read is a problem, and lets nobody in."""

    def __init__(self, cluster: Cluster, member: Member, callers: Callers) -> None:
        self._cluster, self._member, self._callers = cluster, member, callers
        self._sources = {**USUAL, **member.mapping(SOURCES)}
        self.problems: List[Problem] = []

    def openings(self) -> Tuple[Opening, ...]:
        """One for each port, by number."""
        sources: Dict[int, Set[str]] = {}
        purposes: Dict[int, List[str]] = {}
        for port, purpose, words in self._stated():
            sources.setdefault(port, set())
            for setting, word in dict.fromkeys(words):
                sources[port].update(self._resolved(setting, word))
            purposes.setdefault(port, []).append(purpose)
        return tuple(
            Opening(port, frozenset(sources[port]), "; ".join(purposes[port]))
            for port in sorted(sources)
        )

    def _stated(self) -> Iterator[Tuple[int, str, List[Tuple[str, str]]]]:
        """(port, purpose, its sources as (setting, word)) of everything that listens here."""
        cluster = self._cluster
        among = {
            CONTROLLERS: cluster.nodes,
            FOR_CLIENTS: cluster.members,
            FOLLOWERS: cluster.servers,
            ELECTION: cluster.servers,
        }
        for each in ports(self._member, len(cluster.servers)):
            if each.listener:
                words = self._of_listener(each.index, each.listener)
                yield each.number, f"listener {each.listener.name}", words
                continue
            words = [(ADDRESSES, address) for address in self._addresses(among[each.purpose])]
            words += self._of_audience(ADMIN) if each.purpose == FOR_CLIENTS else []
            yield each.number, PURPOSES[each.purpose], words

    def _of_listener(self, index: int, listener: Listener) -> List[Tuple[str, str]]:
        member, audiences = self._member, list(listener.audience)
        words: List[Tuple[str, str]] = []
        is_inner = is_inside(member, listener)
        is_for_admin = listener.name == admin_listener(member)
        if is_inner:
            callers = self._cluster.brokers
            # the controllers tell brokers of ZooKeeper what to do
            if self._cluster.is_staged_by_phase:
                callers += self._cluster.controllers_apart
            words += [(ADDRESSES, each) for each in self._addresses(callers)]
        if is_for_admin or _is_validated(member, listener):
            words += self._of_audience(ADMIN)
        for audience in audiences:
            if audience in self._sources:
                words += self._of_audience(audience)
            else:
                self._refuse(
                    "firewall.audience",
                    f"kafka_listeners[{index}].audience",
                    audience,
                    f"{SOURCES} does not say where this audience is",
                    f"add it, such as {audience}: [203.0.113.0/24], or an empty list to let nobody in",
                )
        if not audiences and not is_inner and not is_for_admin:
            self._refuse(
                "firewall.audience",
                f"kafka_listeners[{index}].audience",
                [],
                "no audience, so that it is not known whom to let in",
                f"give the listener an audience that {SOURCES} has",
            )
        return words

    def _of_audience(self, audience: str) -> List[Tuple[str, str]]:
        setting, listed = f"{SOURCES}.{audience}", self._sources[audience]
        if isinstance(listed, (list, tuple)):
            return [(setting, str(each).strip()) for each in listed]
        self._refuse(
            "firewall.source",
            setting,
            listed,
            "not a list",
            "write a list, such as [203.0.113.0/24]",
        )
        return []

    def _resolved(self, setting: str, word: str) -> Sequence[str]:
        """The canonical sources that a word or an address stands for."""
        cluster, member = self._cluster, self._member
        if word == BROKERS:
            return self._addresses(cluster.brokers)
        if word == MEMBERS:
            return self._addresses(cluster.members)
        if word == ADMIN_HOST:
            return [canonical(each) for each in self._callers.admin.get(member.name, ())]
        if word == CLIENTS:
            resolved: List[str] = []
            audience = setting[len(SOURCES) + 1 :]
            for host, (of_cluster, addresses) in sorted(self._callers.clients.items()):
                belongs = audiences_of(self._callers, host)
                if of_cluster not in ("", cluster.name) or belongs and audience not in belongs:
                    continue
                resolved += [canonical(each) for each in addresses]
                if not addresses:
                    self._nameless(host)
            return resolved
        try:
            return [canonical(word)]
        except ValueError:
            pass
        near = _as_network(word)
        self._refuse(
            "firewall.source",
            setting,
            word,
            "not the address of a network" if near else "not an address, nor a network",
            (
                f"write {near}, or {word.partition('/')[0]}"
                if near
                else f"write 203.0.113.7, 203.0.113.0/24, or one of {', '.join(WORDS)}"
            ),
        )
        return []

    def _addresses(self, members: Sequence[Member]) -> List[str]:
        """Of other machines; a host reaches itself without them."""
        resolved = []
        for each in members:
            if each.name == self._member.name:
                continue
            addresses = addresses_of(each)
            resolved += [canonical(address.partition("%")[0]) for address in addresses]
            if not addresses:
                self._nameless(each.name)
        return resolved

    def _nameless(self, host: str) -> None:
        self.problems.append(
            found(
                "firewall.source",
                host,
                ADDRESSES,
                [],
                "the inventory has no address of this host, only names, and it has to be let in elsewhere",
                f"set {ADDRESSES} to the addresses from which it connects, or kafka_address, "
                "zookeeper_address or ansible_host to one",
            )
        )

    def _refuse(self, check: str, setting: str, value: Any, reason: str, remedy: str) -> None:
        self.problems.append(found(check, self._member.name, setting, value, reason, remedy))


def _is_validated(member: Member, listener: Listener) -> bool:
    wanted = member.text("flow_validation")
    audiences = member.items("flow_validation_audiences")
    return wanted not in ("", NEVER) and bool(set(map(str, audiences)) & set(listener.audience))


def _as_network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        return ""


# ---------------------------------------------------------------- the checks


def check_firewall(world: World) -> Iterator[Problem]:
    """Who is let in, whether the firewall is there, and whom it would shut out.

    Whoever only starts what was in effect sets no firewall.
    """
    if world.purpose == START:
        return
    for cluster in world.clusters:
        openings, problems = openings_of(cluster, world.controller.callers)
        yield from problems
        for member in cluster.members:
            if member.name in openings:
                yield from _ssh(member, openings[member.name])
                yield from _tools(member)
                yield from _shut_out(member, openings[member.name], world.controller.callers)
        stated = {each.name: each for each in cluster.members if each.items(ADDRESSES)}
        for name, member in sorted(stated.items()) if openings else ():
            for each in member.items(ADDRESSES):
                if not is_address(str(each)):
                    reason, remedy = "not an address", "write 192.0.2.11"
                    yield found("firewall.source", name, ADDRESSES, each, reason, remedy)


def _ssh(member: Member, openings: Sequence[Opening]) -> Iterator[Problem]:
    port = int(member.text("ansible_port") or SSH_PORT) if _is_number(member) else SSH_PORT
    for each in openings:
        if each.port == port:
            reason = (
                f"this port is that of ssh, and {each.purpose} would shut out who is not its client"
            )
            yield found("firewall.ssh_port", member.name, CHOICE, port, reason)


def _is_number(member: Member) -> bool:
    return member.text("ansible_port").isdigit()


def _tools(member: Member) -> Iterator[Problem]:
    known: Optional[Mapping[str, Any]] = (member.facts or {}).get("firewall")
    if known is None:
        return
    chosen = member.text(CHOICE)
    if chosen == "firewalld" and known["firewalld"] != "running":
        stopped = known["firewalld"] == "stopped"
        yield found(
            "host.firewall",
            member.name,
            CHOICE,
            chosen,
            *(firewalld.STOPPED if stopped else firewalld.ABSENT),
        )
    if chosen == "nftables" and not known["nft"]:
        yield found("host.firewall", member.name, CHOICE, chosen, *nftables.ABSENT)
    if chosen == "nftables" and known["firewalld"] == "running":
        reason = "firewalld runs on this host, and refuses what it has not opened itself"
        yield found("host.two_firewalls", member.name, CHOICE, chosen, reason)


def _shut_out(member: Member, openings: Sequence[Opening], callers: Callers) -> Iterator[Problem]:
    """Whether the host that administers could not go on with what it has begun."""
    admin = callers.admin.get(member.name)
    if admin is None:
        return
    own = {canonical(each.partition("%")[0]) for each in addresses_of(member)}
    needed = {each.port for each in member.listeners if each.name == admin_listener(member)}
    needed |= {member.client_port} if member.is_server and member.client_port else set()
    for each in openings:
        if each.port in needed and not any(_lets_in(each, address, own) for address in admin):
            yield found(
                "firewall.admin_host",
                member.name,
                f"{SOURCES}.{ADMIN}",
                member.mapping(SOURCES).get(ADMIN, USUAL[ADMIN]),
                f"port {each.port} ({each.purpose}) would be closed to the host that administers, "
                f"{' or '.join(admin) if admin else 'whose address is not known'}",
            )


def _lets_in(opening: Opening, address: str, own: Set[str]) -> bool:
    if address in own:
        return True
    candidate = ipaddress.ip_address(address)
    return any(
        candidate in network
        for network in map(ipaddress.ip_network, opening.sources)
        if network.version == candidate.version
    )
