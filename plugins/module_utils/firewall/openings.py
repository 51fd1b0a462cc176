# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Ports of a host and who may reach them, as values, and the change from one state to another. Pure.

A port that is stated is open to its sources and refused to everybody else. Of a port that is not stated
nothing is said: it belongs to others.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Tuple

# port -> its sources, as `canonical` writes them
Ports = Mapping[int, FrozenSet[str]]
CLOSED: Ports = {}
NOT_INTACT = "not as it was written: somebody has changed it, or a run was killed"


def canonical(source: Any) -> str:
    """An address or a network, as firewalls print it.

    Raises ValueError for anything else, such as a network with bits of a host (192.0.2.7/24).
    """
    text = str(source).strip()
    network = ipaddress.ip_network(text, strict=True)
    whole = network.prefixlen == network.max_prefixlen
    return str(network.network_address) if whole else str(network)


def is_ipv6(source: str) -> bool:
    """Whether a canonical source is of IPv6."""
    return ":" in source


def is_everybody(source: str) -> bool:
    """Whether a canonical source is all addresses of its family."""
    return source.endswith("/0")


def order(source: str) -> Tuple[int, int, int]:
    """Key to sort canonical sources by: IPv4 first, then by number."""
    network = ipaddress.ip_network(source)
    return network.version, int(network.network_address), network.prefixlen


@dataclass(frozen=True)
class Opening:
    """One TCP port, its sources, and what it is for."""

    port: int
    sources: FrozenSet[str]
    purpose: str = ""


def read_openings(items: Iterable[Mapping[str, Any]]) -> Tuple[Opening, ...]:
    """Openings from a module's option; two of one port become one. Raises ValueError as `canonical`."""
    sources: Dict[int, FrozenSet[str]] = {}
    purposes: Dict[int, List[str]] = {}
    for item in items:
        port = int(item["port"])
        more = frozenset(canonical(each) for each in item["sources"])
        sources[port] = sources.get(port, frozenset()) | more
        known = purposes.setdefault(port, [])
        if item.get("purpose") and item["purpose"] not in known:
            known.append(item["purpose"])
    return tuple(
        Opening(port, sources[port], "; ".join(purposes[port])) for port in sorted(sources)
    )


def ports_of(openings: Iterable[Opening]) -> Ports:
    """The same without purposes."""
    return {each.port: each.sources for each in openings}


def together(seen: Ports, wanted: Ports) -> Ports:
    """All that is open in either: nothing that runs is cut off."""
    return {
        port: seen.get(port, frozenset()) | wanted.get(port, frozenset())
        for port in sorted({*seen, *wanted})
    }


@dataclass(frozen=True)
class State:
    """What a firewall says of our ports: now, and after a boot.

    Not `intact`: there is something else in what is ours, or something of it is missing. Then the ports are
    those that could be read.
    """

    now: Ports
    boot: Ports
    intact: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing of ours."""
        return self == NOTHING


NOTHING = State(CLOSED, CLOSED)


def lines(ports: Ports, purposes: Mapping[int, str]) -> List[str]:
    """How people read it, a line for each source; `purposes` of the ports that are stated."""
    told = []
    for port in sorted(ports):
        purpose = f" ({purposes[port]})" if purposes.get(port) else ""
        told += [f"tcp {port} from {each}{purpose}" for each in sorted(ports[port], key=order)]
        told.append(f"tcp {port} from anybody else: refused")
    return told


def state_lines(state: State, purposes: Mapping[int, str]) -> List[str]:
    """The lines of a state; where a boot would change them, those that hold after it, too."""
    told = lines(state.now, purposes)
    if state.boot != state.now:
        after = lines(state.boot, purposes) or ["nothing"]
        told += [f"after a boot: {each}" for each in after]
    return told if state.intact else [*told, NOT_INTACT]
