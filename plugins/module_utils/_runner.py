# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one way in which a module changes something: read, plan, verify, apply, read back, tell.

Private to this collection. `reconcile` knows neither Ansible nor Kafka: it gets a `Resource`, which
does. `run` is the edge: it builds what is needed from the module and turns the outcome, or the one
error type, into exit_json or fail_json.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ansible.module_utils.basic import missing_required_lib

from ansible_collections.kafkaops.cluster.plugins.module_utils import _client_kafka
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan import (
    AdminError,
    Failure,
    Plan,
)

POLL_SECONDS = 0.25


@dataclass
class Outcome:
    """What a run did. `changed` lists exactly the changes that were made (or would be)."""

    plan: Plan
    changed: tuple = ()
    failures: list = field(default_factory=list)
    unsettled: dict = field(default_factory=dict)
    snapshot: object = None


class Resource:
    """What `reconcile` needs to know about a kind of thing; implemented once per module."""

    def read(self):
        """The snapshot, at this moment."""
        raise NotImplementedError

    def plan(self, snapshot):
        """The Plan; may ask the cluster for what is at stake, and for nothing else."""
        raise NotImplementedError

    def stale(self, failure):
        """Whether a validation failure means that the snapshot was out of date."""
        return False

    def validate(self, changes, deadline):
        """Failures that the cluster foresees."""
        return []

    def apply(self, changes, deadline):
        """Make the changes; returns a list of Failure."""
        raise NotImplementedError

    def unsettled(self, changes):
        """Changes that cannot be seen yet: subject to a few words."""
        return {}


def reconcile(resource, check_mode, seconds, clock=time.monotonic, sleep=time.sleep):
    """Bring a resource to its desired state; returns an Outcome.

    Nothing is applied while there is one refusal, or one change that the cluster itself says it
    would turn down. `seconds` bounds everything from the first write to the last look.
    """
    deadline = clock() + seconds
    while True:
        snapshot = resource.read()
        plan = resource.plan(snapshot)
        if plan.refusals or not plan:
            return Outcome(plan, snapshot=snapshot)
        failures = resource.validate(plan.changes, deadline)
        # Not every broker knows of a deletion or creation at the same moment: look again.
        if not any(resource.stale(failure) for failure in failures) or clock() >= deadline:
            break
        sleep(POLL_SECONDS)
    if failures:
        return Outcome(plan, failures=failures, snapshot=snapshot)
    if check_mode:
        return Outcome(plan, changed=plan.changes, snapshot=snapshot)
    failures = resource.apply(plan.changes, deadline)
    failed = {(failure.subject, failure.kind) for failure in failures}
    made = tuple(change for change in plan.changes if (change.subject, change.kind) not in failed)
    unsettled = resource.unsettled(made) if made else {}
    while unsettled and clock() < deadline:
        sleep(POLL_SECONDS)
        unsettled = resource.unsettled(made)
    return Outcome(plan, made, failures, unsettled, snapshot)


def require_kafka(module):
    """Fail with Ansible's usual sentence if confluent-kafka is missing."""
    if _client_kafka.CONFLUENT_IMPORT_ERROR:
        module.fail_json(
            msg=missing_required_lib("confluent-kafka", reason="to talk to Kafka"),
            exception=_client_kafka.CONFLUENT_IMPORT_ERROR,
        )


def tell(module, outcome, seconds, **results):
    """End the module with what happened: exit_json, or fail_json that says what did not."""
    plan = outcome.plan
    for warning in plan.warnings:
        module.warn(warning)
    shown = Plan(outcome.changed)
    results.update(
        changed=bool(shown) and not (module.check_mode and outcome.failures),
        diff=shown.diff(),
        plan=plan.to_dict(),
        failed_items=[failure.to_dict() for failure in outcome.failures],
    )
    if plan.refusals:
        lines = "\n".join(str(refusal) for refusal in plan.refusals)
        module.fail_json(msg=f"nothing was changed, refused:\n{lines}", **results)
    problems = [f"{failure.subject}: {failure.error}" for failure in outcome.failures]
    problems += [
        f"{subject}: {state} after {seconds:g} s" for subject, state in outcome.unsettled.items()
    ]
    if not problems:
        module.exit_json(**results)
    for subject, state in outcome.unsettled.items():
        failure = Failure(subject, f"{state} after {seconds:g} s", "unsettled")
        results["failed_items"].append(failure.to_dict())
    made = len(outcome.changed)
    count = f"{made} of {len(plan.changes)} changes were made" if made else "nothing was changed"
    some = "\n".join(problems[:20])
    more = f"\nand {len(problems) - 20} more, see failed_items" if len(problems) > 20 else ""
    module.fail_json(msg=f"{count}, the cluster turned down:\n{some}{more}", **results)


def fail(module, error):
    """The edge: an AdminError becomes fail_json."""
    module.fail_json(msg=error.message, **{"changed": False, **error.details})


__all__ = ("AdminError", "Outcome", "Resource", "fail", "reconcile", "require_kafka", "tell")
