# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which SCRAM credentials are written and removed. Pure, and no password ever enters a plan.

Private to this collection. Nobody can read back what a stored credential was made from, so that whether a
password is the declared one is found out by a login, or where the hash can be read (in ZooKeeper) by
computing it. Both come here as a Trial.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Collection, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    CHANGED,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.items import (
    CHANGE,
    CREATE,
    DELETE,
    KINDS,
    Credential,
    Desired,
    Key,
    Trial,
    subject_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.scram import ITERATIONS
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

UNTRIED = "users.untried"
LOCKOUT = "lockout"
CONSENTS = (LOCKOUT,)


@dataclass(frozen=True)
class UserPolicy:
    """How passwords are treated; `own` is the credential by which the module itself is logged in."""

    always: bool = True
    allow: FrozenSet[str] = frozenset()
    own: Optional[Key] = None

    def updates(self, credential: Credential) -> bool:
        """Whether a stored credential is made to fit the declared password."""
        return self.always if credential.always is None else credential.always


@dataclass(frozen=True)
class UserSnapshot:
    """What was read: the iterations of every stored credential, and the trials of some."""

    stored: Mapping[Key, int] = field(default_factory=dict)
    trials: Mapping[Key, Trial] = field(default_factory=dict)
    may_alter: bool = True
    cluster_id: Optional[str] = None


def to_try(desired: Desired, stored: Mapping[Key, int], policy: UserPolicy) -> List[Credential]:
    """The credentials of which the plan has to know whether the password fits."""
    return [
        each
        for each in desired.present
        if policy.updates(each)
        and each.key in stored
        and each.iterations in (None, stored[each.key])
    ]


def plan_users(desired: Desired, snapshot: UserSnapshot, policy: UserPolicy) -> Plan:
    """The Plan that makes the present credentials fit and the absent ones go."""
    changes: List[Change] = []
    refusals: List[Problem] = []
    for each in desired.present:
        change, untold = _one(each, snapshot, policy)
        changes += [change] if change else []
        refusals += [untold] if untold else []
    gone = {key for key in snapshot.stored if key in desired.absent or key[0] in desired.all_of}
    changes += [
        Change(DELETE, subject_of(key), {"iterations": snapshot.stored[key]}) for key in gone
    ]
    if policy.own in gone and LOCKOUT not in policy.allow:
        refusals.append(
            Problem(
                "users.lockout",
                "it is the credential by which this module is logged in",
                f"log in as somebody else, or consent with allow: [{LOCKOUT}]",
                (subject_of(policy.own or ("", "")),),
            )
        )
    if changes and not snapshot.may_alter:
        reason, remedy = "this user may not change credentials", "grant it Alter on the cluster"
        who = (f"User:{policy.own[0]}",) if policy.own else ()
        refusals.append(Problem("users.rights", reason, remedy, who))
    changes.sort(key=lambda change: (KINDS.index(change.kind), change.subject))
    return Plan(
        tuple(changes), tuple(refusals), tuple(_warnings(desired, snapshot, policy, changes))
    )


def _one(
    each: Credential, snapshot: UserSnapshot, policy: UserPolicy
) -> Tuple[Optional[Change], Optional[Problem]]:
    """The change of one credential, or why nobody can say whether there is one to make."""
    subject = subject_of(each.key)
    found = snapshot.stored.get(each.key)
    if found is None:
        after = {"iterations": each.iterations or ITERATIONS, "password": "the declared one"}
        return Change(CREATE, subject, {}, after), None
    if not policy.updates(each):
        return None, None
    if each.iterations not in (None, found):
        # The new credential is made from the declared password, whatever the old one was made from.
        return Change(CHANGE, subject, {"iterations": found}, {"iterations": each.iterations}), None
    trial = snapshot.trials.get(each.key, Trial(None, "nobody has tried"))
    if trial.fits:
        return None, None
    if trial.fits is None:
        reason = f"whether its password is the declared one cannot be tried: {trial.reason}"
        remedy = (
            "name in login a listener that offers the mechanism, or set update_password: on_create"
        )
        return None, Problem(UNTRIED, reason, remedy, (subject,))
    before, after = {"password": "another one"}, {"password": "the declared one"}
    return Change(CHANGE, subject, before, after), None


def _warnings(
    desired: Desired, snapshot: UserSnapshot, policy: UserPolicy, changes: Sequence[Change]
) -> List[str]:
    """What people may not expect: passwords that stay valid, and the own one, which does not."""
    present = {each.key for each in desired.present}
    users = {user for user, _mechanism in present}
    others = [
        subject_of(key)
        for key in sorted(snapshot.stored)
        if key[0] in users - desired.all_of and key not in present | desired.absent
    ]
    warnings = []
    if others:
        warnings.append(
            "these users can also log in by a mechanism that is not declared, with the password of then: "
            f"{', '.join(others)}. Declare it, or make it absent"
        )
    if policy.own and any(
        change.kind == CHANGE and change.subject == subject_of(policy.own) for change in changes
    ):
        warnings.append(
            f"{policy.own[0]}, who runs this, gets the declared password: what logs in after this with "
            "another one fails"
        )
    return warnings


def left_of(
    changes: Sequence[Change],
    others: Collection[str],
    desired: Desired,
    now: UserSnapshot,
    policy: UserPolicy,
) -> Tuple[List[Change], List[Failure]]:
    """(what is left of planned changes, the failures), at this moment.

    `others` are the subjects that somebody else has changed since the plan, `desired` the credentials of them that
    are declared. What is as it should be by now is not ours.
    """
    plan = plan_users(desired, now, policy)
    fresh = {change.subject: change for change in plan.changes}
    untold = {each.subjects[0]: each.line() for each in plan.refusals if each.check == UNTRIED}
    stored = {subject_of(key): iterations for key, iterations in now.stored.items()}
    left: List[Change] = []
    failures: List[Failure] = []
    for change in changes:
        subject = change.subject
        if subject not in others:
            left.append(change)
        elif change.kind == DELETE and subject in stored:
            left.append(replace(change, before={"iterations": stored[subject]}))
        elif subject in fresh:
            before = {"iterations": stored[subject]} if subject in stored else {}
            # Whatever it is now, it was planned as this kind.
            left.append(replace(fresh[subject], kind=change.kind, before=before))
        elif subject in untold:
            words = f"somebody else has written it meanwhile: {untold[subject]}"
            failures.append(Failure(subject, words, change.kind, CHANGED))
        else:
            words = "somebody else has done it"
            failures.append(Failure(subject, words, change.kind, moot=True))
    return left, failures


def apply_to(stored: Mapping[Key, int], changes: Sequence[Change]) -> Dict[Key, int]:
    """The stored credentials as they are after these changes."""
    after = dict(stored)
    for change in changes:
        user, _blank, mechanism = change.subject.rpartition(" ")
        if change.kind == DELETE:
            after.pop((user, mechanism), None)
        else:
            before = after.get((user, mechanism), ITERATIONS)
            after[(user, mechanism)] = change.after.get("iterations", before)
    return after
