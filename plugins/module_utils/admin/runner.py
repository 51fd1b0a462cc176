# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one way in which a module changes something: read, plan, validate, apply, read back, report.

Private to this collection. `reconcile` knows neither Ansible nor Kafka: it works on a `Resource`.
`edge` turns its Outcome into the end of a module.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

POLL_SECONDS = 0.1
# How long a snapshot may stay out of date: brokers learn of changes one after another.
STALE_SECONDS = 30.0


@dataclass
class Outcome:
    """What a run did. `changed` lists exactly the changes that were made (or would be).

    `unsettled` maps the subjects of changes that were made, but cannot be seen everywhere, to a few
    words; `check_error` is why it could not be read back.
    """

    plan: Plan
    changed: Tuple[Change, ...] = ()
    failures: List[Failure] = field(default_factory=list)
    unsettled: Dict[str, str] = field(default_factory=dict)
    snapshot: Any = None
    check_error: Optional[AdminError] = None


class Resource:
    """What `reconcile` needs to know about a kind of thing; implemented once per module."""

    client: Any
    # Changes that `apply` has made otherwise than planned, by their subjects; a resource that does so replaces it.
    made: Mapping[str, Change] = {}

    def connect(self) -> None:
        """Reach the cluster, or raise an AdminError that says what is wrong."""
        self.client.connect()

    def read(self) -> Any:
        """The snapshot, at this moment."""
        raise NotImplementedError

    def plan(self, snapshot: Any) -> Plan:
        """The Plan; may ask the cluster for what is at stake, and for nothing else."""
        raise NotImplementedError

    def stale(self, failure: Failure) -> str:
        """Why a validation failure may mean that the snapshot was out of date, else "".

        The words are added to the failure if it persists.
        """
        return ""

    def validate(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """The failures that the cluster foresees."""
        return []

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Make the changes; a change that is not among the failures was made, by this very call."""
        raise NotImplementedError

    def as_made(self, changes: Sequence[Change]) -> Tuple[Change, ...]:
        """The changes as they were made, where somebody else has changed something since the plan."""
        found = [(change, self.made.get(change.subject)) for change in changes]
        return tuple(
            made if made is not None and made.kind == change.kind else change
            for change, made in found
        )

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """Changes that cannot be seen yet: subject to a few words."""
        return {}

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns beside changed, diff, plan and failed_items."""
        return {}


def reconcile(
    resource: Resource,
    check_mode: bool,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Bring a resource to its desired state.

    Nothing is applied while there is one refusal, or one change that the cluster itself says it
    would refuse. `seconds` bounds everything from the first validation to the last look. An
    AdminError leaves this function only while nothing has been changed.
    """
    deadline = clock() + seconds
    patience = clock() + min(seconds, STALE_SECONDS)
    while True:
        late = clock() >= patience
        outcome, stale = _prepare(resource, deadline)
        if late or not stale:
            break
        sleep(POLL_SECONDS)
    plan = outcome.plan
    if outcome.failures or plan.refusals or not plan:
        return outcome
    if check_mode:
        return replace(outcome, changed=plan.changes)

    failures = resource.apply(plan.changes, deadline)
    failed = {(failure.subject, failure.kind) for failure in failures}
    made = resource.as_made(
        [change for change in plan.changes if (change.subject, change.kind) not in failed]
    )
    outcome = replace(outcome, changed=made, failures=[each for each in failures if not each.moot])
    try:
        # Read back at least once, however long applying took.
        wait_until(
            lambda: not _look(resource, outcome), deadline - clock(), clock, sleep, POLL_SECONDS
        )
    except AdminError as error:
        outcome.check_error, outcome.unsettled = error, {}
    return outcome


def _prepare(resource: Resource, deadline: float) -> Tuple[Outcome, bool]:
    """The outcome up to the first write, and whether its snapshot may have been out of date."""
    snapshot = resource.read()
    plan = resource.plan(snapshot)
    if plan.refusals or not plan:
        return Outcome(plan, snapshot=snapshot), False
    failures = resource.validate(plan.changes, deadline)
    hints = [resource.stale(failure) for failure in failures]
    explained = [
        replace(failure, error=f"{failure.error.rstrip('.')} ({hint})") if hint else failure
        for failure, hint in zip(failures, hints)
    ]
    return Outcome(plan, failures=explained, snapshot=snapshot), any(hints)


def _look(resource: Resource, outcome: Outcome) -> Dict[str, str]:
    """Note in the outcome which of its changes cannot be seen yet."""
    outcome.unsettled = resource.unsettled(outcome.changed) if outcome.changed else {}
    outcome.changed = resource.as_made(outcome.changed)
    return outcome.unsettled
