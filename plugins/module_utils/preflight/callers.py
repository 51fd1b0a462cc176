# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Who connects to the members and is none: hosts of clients, and the host that administers.

Runs on the controller only: it alone has the variables of all hosts, and an address of its own.
"""

from __future__ import annotations

import socket
from typing import Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.addresses import (
    bare,
    is_address,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.firewall import (
    ADDRESSES,
    AUDIENCES,
    CLIENTS_OF,
    addresses_of,
    is_wanted,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import Inventory
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import (
    LOCALHOST,
    Callers,
)


def callers_of(
    inventory: Inventory, members: Sequence[Member], groups: Mapping[str, Sequence[str]]
) -> Callers:
    """Who connects to the members; addresses are looked up only where a member has a firewall.

    Raises AnsibleError where the variables of a client's host cannot be evaluated.
    """
    told = {
        name: inventory.evaluated(name, (AUDIENCES, CLIENTS_OF))
        for name in groups.get("kafka_clients", ())
    }
    audiences = {
        name: each[AUDIENCES] for name, each in told.items() if each.get(AUDIENCES, []) != []
    }
    clusters = {name: str(each[CLIENTS_OF]) for name, each in told.items() if each.get(CLIENTS_OF)}
    wanting = [each for each in members if is_wanted(each)]
    if not wanting:
        return Callers(audiences=audiences, clusters=clusters)
    known = {each.name: addresses_of(each) for each in members}
    clients = {
        name: _client(inventory, name, known.get(name, ()))
        for name in groups.get("kafka_clients", ())
    }
    admin = {}
    for member in wanting:
        name = member.text("kafka_admin_host") or LOCALHOST[0]
        if name in LOCALHOST:
            targets = known[member.name] or (member.text("ansible_host") or member.name,)
            admin[member.name] = seen_by(targets[0])
        elif not inventory.has(name):
            admin[member.name] = ()  # a finding of its own
        else:
            admin[member.name] = _client(inventory, name, known.get(name, ()))[1]
    return Callers(clients, admin, audiences, clusters)


def _client(inventory: Inventory, name: str, known: Sequence[str]) -> Tuple[str, Tuple[str, ...]]:
    """(the cluster that it uses, its addresses) of a host that need not be a member."""
    told = inventory.evaluated(name, (ADDRESSES, "ansible_host", CLIENTS_OF))
    stated = told.get(ADDRESSES) or known or [told.get("ansible_host") or name]
    usable = tuple(bare(str(each)) for each in stated if is_address(str(each)))
    return str(told.get(CLIENTS_OF) or ""), usable


def seen_by(target: str) -> Tuple[str, ...]:
    """The address from which this machine would connect to another; nothing is sent.

    What translates addresses on the way is not seen.
    """
    try:
        answers = socket.getaddrinfo(target, 9, type=socket.SOCK_DGRAM)
        family, kind, protocol, _name, address = answers[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)
            return (str(probe.getsockname()[0]),)
    except OSError:
        return ()
