# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module is about to do: computed once, shown, and then done.

Private to this collection. `Plan` is the only source of `changed`, of the diff and of the returned
`plan`, so check mode and a real run cannot disagree. No I/O, no clock, no Ansible.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError

# The code of a failure of ours: somebody else has changed the subject since the plan, and what was
# planned for it would undo that.
CHANGED = "changed"


class AdminError(ProblemError):
    """A problem that ends a module; `details` are extra return values.

    `reachable=False` among them says that nobody answered: it may become right by waiting.
    """

    def __init__(self, problem: Problem, **details: Any):
        super().__init__(problem)
        self.details = details

    @property
    def message(self) -> str:
        """The problem on one line."""
        return self.problem.line()

    @property
    def reachable(self) -> bool:
        """Whether somebody answered."""
        return self.details.get("reachable", True)

    def refused(self, **values: Any) -> Dict[str, Any]:
        """What a module returns of it, before anything was changed."""
        return {"changed": False, **values, **self.details, "failed": True, "msg": self.message}

    # Whether waiting cannot cure it, so that nobody should.
    final = False


class FinalError(AdminError):
    """A problem that ends a wait at once, also one that was under way."""

    final = True


@dataclass(frozen=True)
class Change:
    """One change of one subject: `before` and `after` name exactly the properties that differ.

    A property that is absent on one side is None there. `note` is for people: what is at stake.
    """

    kind: str
    subject: str
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def to_dict(self) -> Dict[str, Any]:
        """As returned to the playbook."""
        return {
            "kind": self.kind,
            "subject": self.subject,
            "before": dict(self.before),
            "after": dict(self.after),
            "note": self.note,
        }


@dataclass(frozen=True)
class Failure:
    """One change that the cluster refused: the broker's own words and the name of its error code.

    `code` is the protocol's name, such as TOPIC_ALREADY_EXISTS; empty where no broker answered.
    A `moot` one was refused because somebody else has made the same change since the plan: it is not
    ours, and no failure either.
    """

    subject: str
    error: str
    kind: str = ""
    code: str = ""
    moot: bool = False

    def to_dict(self) -> Dict[str, str]:
        """As returned in `failed_items`."""
        return {
            "name": self.subject,
            "error": self.error,
            "kind": self.kind,
            "code": self.code,
        }


@dataclass(frozen=True)
class Plan:
    """All changes in the order in which they are applied, and all refusals and warnings."""

    changes: Tuple[Change, ...] = ()
    refusals: Tuple[Problem, ...] = ()
    warnings: Tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes)

    def refusing(self, more: Tuple[Problem, ...]) -> Plan:
        """The same plan with these refusals before its own: of items that could not be read."""
        return replace(self, refusals=more + self.refusals)

    def diff(self) -> Dict[str, Dict[str, Any]]:
        """`before` and `after` as mappings of the subjects that change; Ansible renders them.

        What is at stake stands among the properties of `after`, as `at stake`. What is absent is left
        out, and so is what the brokers will decide, because nobody can be asked before the first start.
        """
        before: Dict[str, Any] = {}
        after: Dict[str, Any] = {}
        for change in self.changes:
            for side, values in ((before, change.before), (after, change.after)):
                if values:
                    present = {key: value for key, value in values.items() if value is not None}
                    side.setdefault(change.subject, {}).update(present)
            if change.note:
                properties = after.setdefault(change.subject, {})
                notes = [properties["at stake"]] if "at stake" in properties else []
                properties["at stake"] = "; ".join([*notes, change.note])
        return {"before": before, "after": after}

    def to_dict(self) -> Dict[str, Any]:
        """As returned to the playbook."""
        return {
            "changes": [change.to_dict() for change in self.changes],
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }


def left_of(changes: Sequence[Change], now: Plan) -> Tuple[List[Change], List[Failure]]:
    """(what is left of planned changes, the failures), by the plan that is made for them now.

    What somebody else has set to the same meanwhile is left out: a subject without anything else is moot. What
    needs consent now, and has none, fails.
    """
    reasons: Dict[str, List[str]] = {}
    for refusal in now.refusals:
        for subject in refusal.subjects:
            reasons.setdefault(subject, []).append(refusal.line())
    fresh = {change.subject: change for change in now.changes}
    left: List[Change] = []
    failures: List[Failure] = []
    for change in changes:
        subject = change.subject
        if subject in reasons:
            words = f"somebody else has changed settings meanwhile: {'; '.join(reasons[subject])}"
            failures.append(Failure(subject, words, change.kind, CHANGED))
        elif subject in fresh:
            left.append(fresh[subject])
        else:
            words = "somebody else has set it"
            failures.append(Failure(subject, words, change.kind, moot=True))
    return left, failures
