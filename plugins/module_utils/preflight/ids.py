# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Which broker.id or myid a host has: explicit, else what is on its disk, else the next free one.

Pure. The three promises, kept by construction and tested as properties:

* sticky: an id on a disk, or in the inventory, is never given to another host and never changed;
* unique: no two hosts get one id, unless the input itself names it twice (`conflicts` says so);
* deterministic: the order in which hosts are listed or answer makes no difference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import AbstractSet, Dict, Iterable, List, Optional, Sequence, Set, Tuple


@dataclass(frozen=True)
class Claim:
    """What one host says about its id. `on_disk` may hold several ids if its disks disagree.

    `ran_as`: the id of the configuration that last answered; the host keeps it if its disk is gone.
    `staged`: the id of a configuration that never answered: kept, as long as nobody else has it.
    """

    host: str
    explicit: Optional[int] = None
    on_disk: Tuple[int, ...] = ()
    ran_as: Optional[int] = None
    staged: Optional[int] = None

    @property
    def settled(self) -> Optional[int]:
        """The id that is not ours to choose: the inventory's, else the disk's, else what ran here."""
        if self.explicit is not None:
            return self.explicit
        return self.on_disk[0] if self.on_disk else self.ran_as


def natural_key(name: str) -> List[Tuple[int, int, str]]:
    """Sort key under which kafka-2 comes before kafka-10."""
    return [
        (0, int(part), "") if part.isdigit() else (1, 0, part)
        for part in re.split(r"([0-9]+)", name)
        if part
    ]


def assign_ids(claims: Iterable[Claim], taken: AbstractSet[int], first: int = 1) -> Dict[str, int]:
    """host -> id for every claim.

    `taken` are ids in use elsewhere: registered, or in any partition's replica list (a dead broker
    has no registration, but giving its id to an empty newcomer would make that one its heir).
    """
    ordered = sorted(claims, key=lambda claim: natural_key(claim.host))
    used = set(taken) | _in_use(ordered)
    again = given_again(ordered, used)
    used.update(again.values())
    assigned = {}
    candidate = first
    for claim in ordered:
        if claim.settled is not None:
            assigned[claim.host] = claim.settled
            continue
        if claim.host in again:
            assigned[claim.host] = again[claim.host]
            continue
        while candidate in used:
            candidate += 1
        assigned[claim.host] = candidate
        used.add(candidate)
    return assigned


def _in_use(claims: Iterable[Claim]) -> Set[int]:
    used: Set[int] = set()
    for claim in claims:
        used.update(claim.on_disk)
        if claim.settled is not None:
            used.add(claim.settled)
    return used


def without_id(claims: Sequence[Claim]) -> List[str]:
    """The hosts for which an id would have to be made up: neither settled nor staged before."""
    again = given_again(claims, _in_use(claims))
    return [claim.host for claim in claims if claim.settled is None and claim.host not in again]


def given_again(claims: Iterable[Claim], used: AbstractSet[int]) -> Dict[str, int]:
    """host -> the id that an earlier run has staged for it, where nobody else has or wants it."""
    wanted: Dict[int, List[str]] = {}
    for claim in claims:
        if claim.settled is None and claim.staged is not None and claim.staged not in used:
            wanted.setdefault(claim.staged, []).append(claim.host)
    return {hosts[0]: value for value, hosts in wanted.items() if len(hosts) == 1}


def duplicates(claims: Iterable[Claim]) -> Dict[int, Tuple[str, ...]]:
    """id -> the hosts that have it, for ids that more than one host has."""
    owners: Dict[int, List[str]] = {}
    for claim in claims:
        if claim.settled is not None:
            owners.setdefault(claim.settled, []).append(claim.host)
    return {
        number: tuple(sorted(hosts, key=natural_key))
        for number, hosts in sorted(owners.items())
        if len(hosts) > 1
    }


def contradictions(claims: Iterable[Claim]) -> Dict[str, Tuple[Optional[int], Tuple[int, ...]]]:
    """host -> (explicit, ids on disk), where those are not one and the same id."""
    return {
        claim.host: (claim.explicit, claim.on_disk)
        for claim in claims
        if len(set(claim.on_disk) | ({claim.explicit} - {None})) > 1 and claim.on_disk
    }
