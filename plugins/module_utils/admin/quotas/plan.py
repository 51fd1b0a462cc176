# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client quotas: desired state + snapshot -> Plan. Pure.

Private to this collection. A quota belongs to an entity: a user, a client id, both, or an address, and
to the default of each. Invariants, kept for every input:

* a plan that is applied to its snapshot and computed again is empty;
* what is not named is not touched, neither entities nor, with merge, their other limits;
* where one item is refused, nothing is planned for it.
"""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    CONFIGURE,
    CREATE,
    DELETE,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.names import (
    did_you_mean,
    unclear_name,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.purge import Purge, purged
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.entities import (
    DEFAULT,
    KINDS,
    Entity,
    Limits,
    entity_of,
    operations,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.setting_values import (
    INTEGER,
    reason_and_remedy,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import (
    Unclear,
    parse_size_bytes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import shown

BYTES, SHARE, RATE, COUNT = "bytes", "share", "rate", "count"
LIMITS = {
    "producer_byte_rate": BYTES,
    "consumer_byte_rate": BYTES,
    "request_percentage": SHARE,
    "controller_mutation_rate": RATE,
}
IP_LIMITS = {"connection_creation_rate": COUNT}
# The protocol sends all of them as float64: above this whole numbers are not exact.
EXACT_MAX = 2**53
COUNT_MAX = 2**31 - 1
OUT_OF_RANGE = "correct it, or null for no limit"


@dataclass(frozen=True)
class QuotaSnapshot:
    """The quotas of a cluster, at one moment."""

    cluster_id: Optional[str] = None
    quotas: Mapping[Entity, Limits] = field(default_factory=dict)


@dataclass(frozen=True)
class DesiredQuota:
    """An entity as declared. A limit of None is taken away; `absent`: all of them are."""

    entity: Entity
    limits: Mapping[str, Optional[float]] = field(default_factory=dict)
    absent: bool = False


# ---------------------------------------------------------------- what people write


class _Reader:
    """Reads one item and collects everything that is wrong with it."""

    def __init__(self, item: Mapping[str, Any], position: int):
        self._item = item
        self._subject = f"quotas[{position}]"
        self.refusals: List[Problem] = []

    def _refuse(
        self, check: str, reason: str, remedy: str, setting: str = "", value: Any = ""
    ) -> None:
        self.refusals.append(Problem(check, reason, remedy, (self._subject,), setting, value))

    def read(self) -> Optional[DesiredQuota]:
        """The desired quota, None if it is refused."""
        entity = self._entity()
        if entity is not None:
            self._subject = entity.subject
        limits = self._limits(IP_LIMITS if self._item.get("ip") is not None else LIMITS)
        absent = self._item.get("state") == "absent"
        if absent and limits:
            self._refuse(
                "quotas.contradiction",
                "state: absent takes all limits away, and limits are named, too",
                "leave out one of both; a limit of null takes away that one alone",
            )
        if not absent and not self._item.get("limits"):
            self._refuse(
                "quotas.bad_entity",
                "it has no limits",
                "name one in limits, or declare state: absent",
            )
        if entity is None or self.refusals:
            return None
        return DesiredQuota(entity, limits, absent)

    def _entity(self) -> Optional[Entity]:
        given = {kind: self._item[kind] for kind in KINDS if self._item.get(kind) is not None}
        wrong = _entity_problem(given)
        if wrong:
            self._refuse("quotas.bad_entity", *wrong)
            return None
        for kind, name in given.items():
            if not isinstance(name, str):
                remedy = "write the name in quotes"
                self._refuse("quotas.bad_entity", unclear_name(name), remedy, kind, name)
        if self.refusals:
            return None
        if given.get("ip", DEFAULT) != DEFAULT:
            try:
                given["ip"] = str(ipaddress.ip_address(given["ip"]))
            except ValueError:
                self._refuse(
                    "quotas.bad_entity",
                    "not an IP address, and Kafka would look a name up once, with its own resolver",
                    f"write an address such as 192.0.2.1, or {DEFAULT}",
                    "ip",
                    given["ip"],
                )
                return None
        return Entity(**given)

    def _limits(self, known: Mapping[str, str]) -> Dict[str, Optional[float]]:
        limits: Dict[str, Optional[float]] = {}
        for key, value in (self._item.get("limits") or {}).items():
            if key not in known:
                other = {**LIMITS, **IP_LIMITS}
                reason = (
                    f"there is no such limit{did_you_mean(key, other)}"
                    if key not in other
                    else "it belongs to addresses" if key in IP_LIMITS else "an address has none"
                )
                remedy = f"use {' or '.join(known)}"
                self._refuse("quotas.unknown_limit", reason, remedy, key, value)
                continue
            try:
                limits[key] = None if value is None else read_limit(known[key], value)
            except ValueError as error:
                told = reason_and_remedy(error, f"correct {key}")
                self._refuse("quotas.bad_value", *told, f"limits.{key}", value)
        return limits


def _entity_problem(given: Mapping[str, Any]) -> Optional[Tuple[str, str]]:
    """(reason, remedy) if these options together are not an entity."""
    if not given:
        return "it names nobody", f"give user, client_id or both, or ip; {DEFAULT} for the rest"
    if "ip" in given and len(given) > 1:
        return "an address cannot be combined with a user or client id", "make two items of it"
    empty = [kind for kind, name in given.items() if name == ""]
    if empty:
        return f"{empty[0]} is empty", f"write a name, or {DEFAULT} for everybody without a quota"
    return None


def read_limit(kind: str, value: Any) -> float:
    """The number that is sent for a limit of BYTES, SHARE, RATE or COUNT; ValueError with a sentence.

    Kafka without ZooKeeper refuses 0, Kafka with it takes it; it is refused here.
    """
    if isinstance(value, bool):
        raise ValueError(f"must be a number, not {shown(value)}")
    text = str(value).strip()
    if kind == BYTES and not INTEGER.match(text):
        number = float(_bytes_a_second(value))
    else:
        if kind == SHARE and text.endswith("%"):
            text = text[:-1].strip()
        try:
            number = float(text)
        except ValueError:
            raise ValueError(f"must be a number, not {shown(value)}") from None
    if not math.isfinite(number) or number <= 0:
        raise Unclear("must be above 0", OUT_OF_RANGE)
    if kind in (BYTES, COUNT) and number != int(number):
        raise ValueError("must be a whole number")
    largest = COUNT_MAX if kind == COUNT else EXACT_MAX
    if number > largest:
        raise Unclear(f"must be at most {largest}", OUT_OF_RANGE)
    return number


def _bytes_a_second(value: Any) -> int:
    size = parse_size_bytes(value)
    if size < 0:
        raise Unclear("no limit is written as null", "write null")
    return size


def parse_quotas(
    items: Sequence[Mapping[str, Any]],
) -> Tuple[Tuple[DesiredQuota, ...], Tuple[Problem, ...]]:
    """Desired quotas in the order given, and a refusal for everything that is wrong with them."""
    found: Dict[Entity, int] = {}
    desired: List[DesiredQuota] = []
    refusals: List[Problem] = []
    for position, item in enumerate(items):
        reader = _Reader(item, position)
        quota = reader.read()
        refusals += reader.refusals
        if quota is None:
            continue
        first = found.setdefault(quota.entity, position)
        if first != position:
            refusals.append(
                Problem(
                    "quotas.duplicate",
                    f"listed twice, as quotas[{first}] and quotas[{position}]",
                    "keep one of them",
                    (quota.entity.subject,),
                )
            )
            continue
        desired.append(quota)
    return tuple(desired), tuple(refusals)


# ---------------------------------------------------------------- what is to be done


def plan_quotas(
    desired: Sequence[DesiredQuota],
    snapshot: QuotaSnapshot,
    replacing: bool = False,
    purge: Optional[Purge] = None,
) -> Plan:
    """The Plan that gives the entities their limits; with `replacing` their others are taken away."""
    changes = []
    for quota in sorted(desired, key=lambda each: each.entity.subject):
        change = _change(quota, snapshot.quotas.get(quota.entity, {}), replacing)
        if change is not None:
            changes.append(change)
    declared = {quota.entity for quota in desired}
    others = {each.subject: each for each in snapshot.quotas if each not in declared}
    names, refusals = purged(purge, others, "quotas")
    for name in names:
        changes.append(Change(DELETE, name, _plain(snapshot.quotas[others[name]])))
    changes.sort(key=lambda change: (change.kind == DELETE, change.subject))
    return Plan(tuple(changes), tuple(refusals))


def _change(quota: DesiredQuota, current: Limits, replacing: bool) -> Optional[Change]:
    wanted: Dict[str, Optional[float]] = dict(quota.limits)
    if quota.absent or replacing:
        wanted = {**dict.fromkeys(current), **wanted}
    differing = {key: value for key, value in wanted.items() if current.get(key) != value}
    if not differing:
        return None
    subject = quota.entity.subject
    kept = [key for key in current if wanted.get(key, current[key]) is not None]
    if not kept and all(value is None for value in differing.values()):
        return Change(DELETE, subject, _plain(current))
    before = {key: _number(current[key]) if key in current else None for key in sorted(differing)}
    after = {key: _number(differing[key]) for key in sorted(differing)}
    return Change(CONFIGURE if current else CREATE, subject, before, after)


def left_of(
    changes: Sequence[Change], quotas: Mapping[Entity, Limits]
) -> Tuple[List[Change], List[Failure]]:
    """(what is left of planned changes, the rest), with the quotas that there are at this moment.

    What somebody else has set alike is left out, and what there was before is what there is now.
    """
    left: List[Change] = []
    moot: List[Failure] = []
    for change in changes:
        now = quotas.get(entity_of(change.subject), {})
        asked = operations(change)
        differing = {key: value for key, value in asked.items() if now.get(key) != value}
        if not differing:
            moot.append(Failure(change.subject, "somebody else has set it", change.kind, moot=True))
            continue
        before = {key: _number(now.get(key)) for key in sorted(differing)}
        after = {key: _number(differing[key]) for key in sorted(differing)}
        if change.kind == DELETE:
            before, after = {key: value for key, value in before.items() if value is not None}, {}
        left.append(replace(change, before=before, after=after))
    return left, moot


def apply_to(snapshot: QuotaSnapshot, changes: Sequence[Change]) -> QuotaSnapshot:
    """The snapshot after these changes."""
    entities = {entity.subject: entity for entity in snapshot.quotas}
    quotas = dict(snapshot.quotas)
    for change in changes:
        entity = entities.get(change.subject) or entity_of(change.subject)
        limits = {**quotas.get(entity, {}), **operations(change)}
        quotas[entity] = {key: value for key, value in limits.items() if value is not None}
    return replace(snapshot, quotas={entity: each for entity, each in quotas.items() if each})


def describe(entity: Entity, limits: Limits) -> Dict[str, Any]:
    """A quota as modules return it, and as kafka_quotas takes it."""
    return {**entity.parts, "limits": _plain(limits)}


def _plain(limits: Limits) -> Dict[str, Any]:
    return {key: _number(limits[key]) for key in sorted(limits)}


def _number(value: Optional[float]) -> Any:
    """A whole number without its fraction."""
    return int(value) if value is not None and value == int(value) else value


# The options of one item.
QUOTA_ITEM = dict(
    # raw: a name that YAML has read as a number or a boolean must not become a text silently
    user=dict(type="raw"),
    client_id=dict(type="raw"),
    ip=dict(type="raw"),
    state=dict(type="str", choices=["present", "absent"], default="present"),
    limits=dict(type="dict"),
)
