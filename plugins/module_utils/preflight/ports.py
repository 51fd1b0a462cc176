# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The ports that a member's instances listen on, as the inventory states them: read here and nowhere else. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    Listener,
    Member,
)

KAFKA, ZOOKEEPER = "kafka", "zookeeper"
# What a port is for.
LISTENER, CONTROLLERS = "listener", "controllers"
FOR_CLIENTS, FOLLOWERS, ELECTION = "clients", "followers", "election"
# The setting that makes a listener the one through which controllers of ZooKeeper mode command brokers.
CONTROL_PLANE = "control.plane.listener.name"


@dataclass(frozen=True)
class Port:
    """One port of a member. `bind`: the address it listens on, "" for all; `address`: where others connect
    to, "" if the inventory has none; `variable`: the one that states the number.
    """

    product: str
    purpose: str
    variable: str
    number: int
    bind: str
    address: str
    index: int = 0  # of the listener in kafka_listeners
    listener: Optional[Listener] = None


def ports(member: Member, servers: int) -> List[Port]:
    """All ports of a member. `servers`: of the ensemble; a lone one opens no ports for a quorum."""
    found = [
        Port(
            *(KAFKA, LISTENER, f"kafka_listeners[{index}].port", each.port, each.bind),
            *(each.advertised or each.bind, index, each),
        )
        for index, each in enumerate(member.listeners)
    ]
    controllers = member.get("kafka_controller_port")
    if member.is_controller and isinstance(controllers, int):
        bind, own = member.text("kafka_controller_bind"), member.text("kafka_address")
        found.append(Port(KAFKA, CONTROLLERS, "kafka_controller_port", controllers, bind, own))
    if not member.is_server:
        return found
    bind, own = member.text("zookeeper_bind"), member.text("zookeeper_address")
    # ZooKeeper binds those of the quorum to the address of its own server line.
    of_server = [(FOR_CLIENTS, "zookeeper_client_port", member.client_port, bind)]
    if servers > 1:
        of_server.append((FOLLOWERS, "zookeeper_peer_port", member.peer_port, own))
        of_server.append((ELECTION, "zookeeper_election_port", member.election_port, own))
    found += [
        Port(ZOOKEEPER, purpose, variable, number, place, own)
        for purpose, variable, number, place in of_server
        if number
    ]
    return found


def is_inside(member: Member, listener: Listener) -> bool:
    """Whether the nodes of the cluster speak to one another through this listener."""
    inner = member.inter_broker_listener
    control = str(member.mapping("kafka_config").get(CONTROL_PLANE) or "")
    return bool(inner and inner.name == listener.name) or listener.name == control


def admin_listener(member: Member) -> str:
    """The name of the listener that the modules use: the first one, unless the inventory names another."""
    first = member.listeners[0].name if member.listeners else ""
    return member.text("kafka_admin_listener") or first
