# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Which broker.id or myid a host has: explicit, else what is on its disk, else the next free one.

Pure. The three promises, kept by construction and tested as properties:

* sticky: an id on a disk, or in the inventory, is never given to another host and never changed;
* unique: no two hosts get one id, unless the input itself names it twice (`conflicts` says so);
* deterministic: the order in which hosts are listed or answer makes no difference.

A host that nobody could look at, and for which no id is written, has one of the ids in use that nobody else has: so all
of these have an owner. Which one is certain only where there is one such host and one such id (`uncertain`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import (
    AbstractSet,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)


@dataclass(frozen=True)
class Claim:
    """What one host says about its id. `on_disk` may hold several ids if its disks disagree.

    `ran_as`: the id of the configuration that last answered; the host keeps it if its disk is gone.
    `staged`: the id of a configuration that never answered: kept, as long as nobody else has it.
    `unseen`: nobody could look at the host, so its disk may hold an id.
    """

    host: str
    explicit: Optional[int] = None
    on_disk: Tuple[int, ...] = ()
    ran_as: Optional[int] = None
    staged: Optional[int] = None
    unseen: bool = False

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


def assign_ids(
    claims: Iterable[Claim],
    taken: AbstractSet[int],
    first: int = 1,
    known: Mapping[str, AbstractSet[int]] = MappingProxyType({}),
) -> Dict[str, int]:
    """host -> id for every claim.

    `taken` are ids in use elsewhere: registered, or in any partition's replica list (a dead broker
    has no registration, but giving its id to an empty newcomer would make that one its heir). `known`: host ->
    those of them that it may have, if nobody could look at it.
    """
    ordered = sorted(claims, key=lambda claim: natural_key(claim.host))
    used = set(taken) | _in_use(ordered)
    again = given_again(ordered, used)
    used.update(again.values())
    open_ids = {
        host: [number for number in ids if number not in again.values()]
        for host, ids in _open_ids(ordered, known).items()
    }
    again.update(_one_each(open_ids))
    used.update(*open_ids.values())
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


def uncertain(claims: Iterable[Claim], known: Mapping[str, AbstractSet[int]]) -> FrozenSet[str]:
    """The hosts whose id is a guess, because nobody could look at them, and no or several ids may be theirs."""
    open_ids = _open_ids(claims, known)
    wanted = [number for ids in open_ids.values() for number in ids]
    return frozenset(
        host for host, ids in open_ids.items() if len(ids) != 1 or wanted.count(ids[0]) > 1
    )


def unowned(
    claims: Iterable[Claim], known: Mapping[str, AbstractSet[int]], in_use: AbstractSet[int]
) -> List[int]:
    """The ids in use that no host has, unless there are enough hosts that may have them, and were not seen."""
    claims = list(claims)
    open_ids = _open_ids(claims, known)
    missing = set(in_use) - _in_use(claims)
    return sorted(missing) if missing - set(_one_each(open_ids).values()) else []


def _open_ids(
    claims: Iterable[Claim], known: Mapping[str, AbstractSet[int]]
) -> Dict[str, List[int]]:
    """host that nobody could look at -> the ids in use that may be its, in order."""
    ordered = sorted(claims, key=lambda claim: natural_key(claim.host))
    used = _in_use(ordered)
    return {
        claim.host: sorted(known.get(claim.host, frozenset()) - used)
        for claim in ordered
        if claim.unseen and claim.settled is None
    }


def _one_each(open_ids: Mapping[str, List[int]]) -> Dict[str, int]:
    """One of its ids for each host, as long as there are any; who may have few is asked first."""
    given: Dict[str, int] = {}
    for host in sorted(open_ids, key=lambda each: (len(open_ids[each]), natural_key(each))):
        free = [number for number in open_ids[host] if number not in given.values()]
        if free:
            given[host] = free[0]
    return given


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
