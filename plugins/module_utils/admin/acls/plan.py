# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which bindings are added and removed, and what needs consent. Pure.

Private to this collection. Two things take rights away without a word of Kafka's. Whoever administrates
may remove, or deny, the right by which it does. And where `allow.everyone.if.no.acl.found` is true the
first ACL of a resource closes it for everybody who is not named, the last one opens it to all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import (
    Any,
    Collection,
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

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.items import (
    ALL,
    ANY,
    CLUSTER_NAME,
    OPERATIONS,
    OPERATIONS_SINCE,
    Binding,
    Wanted,
    is_address,
    known_principal_type,
    resource_words,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change, Plan
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.purge import patterns_from
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some

CREATE = "create"
DELETE = "delete"
FIRST, LAST, LOCKOUT = "first_acl", "last_acl", "lockout"
CONSENTS = (FIRST, LAST, LOCKOUT)
EVERYONE = "allow.everyone.if.no.acl.found"
EVERYBODY = "User:*"
SHOWN = 10


@dataclass(frozen=True)
class AclPurge:
    """Remove bindings that are not declared: regular expressions over whole texts, and a limit.

    `resources` are matched with `topic:orders` and the like. None: any.
    """

    principals: Optional[Tuple[str, ...]]
    resources: Optional[Tuple[str, ...]]
    maximum: int


# The option `purge` of kafka_acls; its documentation is in the module.
ACL_PURGE_OPTION = dict(
    type="dict",
    options=dict(
        principals=dict(type="list", elements="str"),
        resources=dict(type="list", elements="str"),
        maximum=dict(type="int", required=True),
    ),
    required_one_of=[("principals", "resources")],
)


def acl_purge_from(option: Optional[Mapping[str, Any]]) -> Optional[AclPurge]:
    """The AclPurge of a module's option `purge`; AdminError for a pattern that cannot be one."""
    if not option:
        return None
    return AclPurge(
        patterns_from("purge.principals", option.get("principals")),
        patterns_from("purge.resources", option.get("resources")),
        option["maximum"],
    )


@dataclass(frozen=True)
class AclPolicy:
    """What the task consents to (of CONSENTS), and what it knows of the brokers and of itself.

    `principal` is who this very user is for the brokers, None if that is unknown.
    """

    allow: FrozenSet[str] = frozenset()
    purge: Optional[AclPurge] = None
    principal: Optional[str] = None


@dataclass(frozen=True)
class AclSnapshot:
    """What was read. `may_alter`: whether this very user may change ACLs now.

    `everyone`: whether a resource without any ACL is open to all; None if that cannot be known,
    because brokers hide the value of a setting that belongs to their authorizer.
    """

    bindings: FrozenSet[Binding] = frozenset()
    may_alter: bool = True
    everyone: Optional[bool] = False
    cluster_id: Optional[str] = None
    # The release of the brokers, such as (3, 9); empty where it does not matter.
    release: Tuple[int, ...] = ()

    def knows(self, binding: Binding) -> bool:
        """Whether the brokers have the operation of a binding."""
        since = OPERATIONS_SINCE.get(binding.operation)
        return not since or not self.release or self.release >= since


@dataclass
class _Consents:
    """Refusals and warnings that are collected on the way."""

    policy: AclPolicy
    refusals: List[Problem] = field(default_factory=list)
    warnings: List[str] = field(default_factory=list)
    notes: Dict[Binding, str] = field(default_factory=dict)


def plan_acls(desired: Sequence[Wanted], snapshot: AclSnapshot, policy: AclPolicy) -> Plan:
    """The Plan that makes the present bindings exist and the absent ones not.

    What is added comes first, so that nobody is without a right in between.
    """
    present = {wanted.binding for wanted in desired if wanted.state == "present"}
    absent = {wanted.binding for wanted in desired if wanted.state == "absent"}
    missing = present - snapshot.bindings
    surplus = absent & snapshot.bindings
    state = _Consents(policy)
    state.refusals += _too_new(missing, snapshot) + _without_effect(missing)
    surplus |= _purged(snapshot.bindings - present - absent, state)
    after = (snapshot.bindings | missing) - surplus
    _open_and_closed(snapshot, after, missing, surplus, state)
    _lockout(snapshot, after, state)
    if (missing or surplus) and not snapshot.may_alter:
        state.refusals.append(
            Problem(
                "acls.rights",
                "this user may not change ACLs",
                "grant it Alter on the cluster, or run as a super user",
                (policy.principal,) if policy.principal else (),
            )
        )
    changes = [
        Change(CREATE, each.subject, {}, each.to_dict(), state.notes.get(each, ""))
        for each in sorted(missing)
    ]
    changes += [
        Change(DELETE, each.subject, each.to_dict(), {}, state.notes.get(each, ""))
        for each in sorted(surplus)
    ]
    return Plan(tuple(changes), tuple(state.refusals), tuple(state.warnings))


def apply_to(bindings: Collection[Binding], changes: Iterable[Change]) -> FrozenSet[Binding]:
    """The bindings as they are after these changes."""
    after = set(bindings)
    for change in changes:
        if change.kind == CREATE:
            after.add(Binding(**change.after))
        else:
            after.discard(Binding(**change.before))
    return frozenset(after)


def chosen(
    bindings: Iterable[Binding],
    principals: Optional[Sequence[str]],
    resources: Optional[Sequence[str]],
) -> Set[Binding]:
    """The bindings whose principal and resource match one regular expression each; None: any."""
    who = None if principals is None else [re.compile(text) for text in principals]
    what = None if resources is None else [re.compile(text) for text in resources]

    def fits(patterns: Optional[List[Any]], text: str) -> bool:
        return patterns is None or any(pattern.fullmatch(text) for pattern in patterns)

    return {
        each
        for each in bindings
        if fits(who, each.principal) and fits(what, f"{each.resource_type}:{each.resource_name}")
    }


def _too_new(missing: Collection[Binding], snapshot: AclSnapshot) -> List[Problem]:
    """A Problem for each new binding of an operation that the brokers do not have."""
    return [
        Problem(
            "acls.too_new",
            f"these brokers do not have the operation {each.operation}, which came with Kafka {since}",
            f"upgrade Kafka to {since} or newer",
            (each.subject,),
        )
        for each in sorted(missing)
        if not snapshot.knows(each)
        for since in [".".join(map(str, OPERATIONS_SINCE[each.operation]))]
    ]


def _without_effect(missing: Collection[Binding]) -> List[Problem]:
    """A Problem for each new binding that Kafka stores and never looks at."""
    problems = []
    for each in sorted(missing):
        supported = OPERATIONS.get(each.resource_type, ())
        meant = known_principal_type(each.principal)
        if each.operation not in (*supported, ALL):
            reason = f"there is no {each.operation} on a {each.resource_type.replace('_', ' ')}"
            remedy = f"use {', '.join((*supported, ALL))}"
        elif not is_address(each.host):
            reason = f"the host {each.host} is not an address: Kafka compares addresses, one by one"
            remedy = f"write the address of each host, or {ANY}"
        elif each.resource_name == ANY and each.pattern == "prefixed":
            reason = f"no name begins with {ANY}"
            remedy = f"use pattern: literal with {ANY} for all, or the beginning of the names"
        elif meant:
            reason = f"no user is of the type {each.principal.partition(':')[0]}"
            remedy = f"write {meant}:{each.principal.partition(':')[2]}"
        else:
            continue
        problems.append(Problem("acls.without_effect", reason, remedy, (each.subject,)))
    return problems


def _purged(undeclared: Collection[Binding], state: _Consents) -> Set[Binding]:
    """What the purge removes; nothing, and a refusal, where that is more than was agreed."""
    purge = state.policy.purge
    if purge is None:
        return set()
    found = chosen(undeclared, purge.principals, purge.resources)
    if len(found) <= purge.maximum:
        return found
    shown = some([each.subject for each in sorted(found)], SHOWN)
    state.refusals.append(
        Problem(
            "purge.maximum",
            f"{len(found)} undeclared ACLs match: {shown}",
            "raise the maximum, or narrow the patterns",
            ("purge",),
            "maximum",
            str(purge.maximum),
        )
    )
    return set()


# ---------------------------------------------------------------- the first and the last ACL


class _Cover:
    """Which resources have an ACL, so that what is not named is refused there."""

    def __init__(self, bindings: Iterable[Binding]):
        self._literal: Set[Tuple[str, str]] = set()
        self._prefixes: Dict[str, Set[str]] = {}
        for kind, name, pattern in {each.resource for each in bindings}:
            if pattern == "prefixed":
                self._prefixes.setdefault(kind, set()).add(name)
            else:
                self._literal.add((kind, name))

    def __contains__(self, resource: Tuple[str, str, str]) -> bool:
        kind, name, pattern = resource
        if (kind, ANY) in self._literal:
            return True
        if pattern != "prefixed" and (kind, name) in self._literal:
            return True
        if pattern != "prefixed" and name == ANY:
            return False
        prefixes = self._prefixes.get(kind, ())
        return any(name[:length] in prefixes for length in range(1, len(name) + 1))


def _open_and_closed(
    snapshot: AclSnapshot,
    after: Collection[Binding],
    missing: Collection[Binding],
    surplus: Collection[Binding],
    state: _Consents,
) -> None:
    """Resources that get their first ACL, or lose their last one, where that means something."""
    if snapshot.everyone is False:
        return
    covered, will_be = _Cover(snapshot.bindings), _Cover(after)
    closed = {each.resource for each in missing if each.resource not in covered}
    opened = {each.resource for each in surplus if each.resource not in will_be}
    for consent, resources, check, words in (
        (FIRST, closed, "acls.first", "it has no ACL yet, so that everybody may use it: from the "
         "first one on everybody who is not named is refused"),
        (LAST, opened, "acls.last", "it keeps no ACL, so that everybody may use it"),
    ):  # fmt: skip
        if not resources:
            continue
        names = [resource_words(each) for each in sorted(resources)]
        if snapshot.everyone is None:
            state.warnings.append(
                f"if the brokers have {EVERYONE}=true, which they do not tell, this changes who may use "
                f"{some(names, SHOWN)}: {words}. Say so in allow_everyone_if_no_acl_found"
            )
        elif consent not in state.policy.allow:
            state.refusals += [
                Problem(
                    check, f"{words} ({EVERYONE}=true)", f"consent with allow: [{consent}]", (name,)
                )
                for name in names
            ]
        else:
            for each in (*missing, *surplus):
                if each.resource in resources:
                    state.notes[each] = words


# ---------------------------------------------------------------- this very user


def _lockout(snapshot: AclSnapshot, after: Collection[Binding], state: _Consents) -> None:
    """Refuse what may take this very user's right to change ACLs, unless the task consents."""
    before, ours = snapshot.bindings, state.policy.principal
    reason = _lost(_on_cluster(before), _on_cluster(after), ours, snapshot.everyone)
    if not reason:
        return
    if LOCKOUT in state.policy.allow:
        state.warnings.append(reason)
        return
    state.refusals.append(
        Problem(
            "acls.lockout",
            reason,
            f"leave it out, or consent with allow: [{LOCKOUT}]; a super user always can",
            (ours,) if ours else (),
            "" if ours else "own_principal",
        )
    )


def _lost(
    before: Collection[Binding],
    after: Collection[Binding],
    ours: Optional[str],
    everyone: Optional[bool],
) -> str:
    """Why this user may be without Alter on the cluster afterwards, or "". All are of the cluster."""
    allows = {each.host for each in before if _allows(each, ours)}
    left = {each.host for each in after if _allows(each, ours)}
    who = f"{ours}, who runs this," if ours else "who runs this (own_principal is not given)"
    if not before and after and everyone is not False and not left:
        return (
            f"the cluster gets its first ACL, and none by which {who} may change ACLs, if the brokers "
            f"have {EVERYONE}=true"
        )
    # With ACLs on the cluster, and none of ours, the right comes from super.users: it stays.
    if before and not allows:
        return ""
    if allows - left and ANY not in left:
        return f"it is the last ACL by which {who} may change ACLs"
    denies = {each for each in after if _denies(each, ours)} - set(before)
    if denies:
        words = ", ".join(each.subject for each in sorted(denies))
        return f"it takes the right to change ACLs from {who}: {words}"
    return ""


def _on_cluster(bindings: Iterable[Binding]) -> List[Binding]:
    return [
        each
        for each in bindings
        if each.resource_type == "cluster" and each.resource_name in (CLUSTER_NAME, ANY)
    ]


def _allows(binding: Binding, ours: Optional[str]) -> bool:
    return (
        binding.permission == "allow"
        and binding.operation in ("alter", ALL)
        and (ours is None or binding.principal in (ours, EVERYBODY))
    )


def _denies(binding: Binding, ours: Optional[str]) -> bool:
    """Also Describe, without which ACLs cannot be read."""
    return (
        binding.permission == "deny"
        and binding.operation in ("alter", "describe", ALL)
        and (ours is None or binding.principal in (ours, EVERYBODY))
    )
