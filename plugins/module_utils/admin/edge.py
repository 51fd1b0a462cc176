# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge to Ansible of every module that talks to a cluster: options in, exit_json or fail_json out.

Private to this collection. A module that changes something is documentation, options and `run_resource`;
one that reads, or does a thing of its own kind, is documentation, options and `run_once`.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
    KAFKA_RULES,
    connection_from,
    kafka_argument_spec,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    require_both_clients,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import (
    OPERATION_MAX_SECONDS,
    checked_seconds,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import (
    Outcome,
    Resource,
    reconcile,
)

PROBLEMS_SHOWN = 20
REFUSED = "refused by the cluster"
LATE = "made, but not visible on every broker yet"


def kafka_module(options: Dict[str, Any], **rules: Any) -> AnsibleModule:
    """An AnsibleModule with the connection options and `options`; `rules` as AnsibleModule has them."""
    both = {name: [*KAFKA_RULES[name], *rules[name]] for name in KAFKA_RULES if name in rules}
    return AnsibleModule(
        argument_spec=kafka_argument_spec(**options),
        supports_check_mode=True,
        **{**KAFKA_RULES, **rules, **both},
    )


def run_resource(
    options: Dict[str, Any],
    make: Callable[[Connection, AnsibleModule], Resource],
    failed: str = REFUSED,
    **rules: Any,
) -> None:
    """Run a module that brings a Resource to its desired state; `make` makes it, unconnected.

    `options` contain `operation_timeout`, in seconds; `failed` is the heading of failed changes.
    """
    module = kafka_module(options, **rules)
    require_both_clients(module)
    run(
        module,
        lambda: make(connection_from(module.params), module),
        module.params["operation_timeout"],
        failed,
    )


def run(
    module: AnsibleModule,
    make: Callable[[], Resource],
    seconds: float,
    failed: str = REFUSED,
    **unreached: Any,
) -> None:
    """Bring the Resource that `make` makes to its desired state, and end the module.

    `unreached` are extra return values for an error before anything was changed.
    """
    end(module, answer(make, module.check_mode, seconds, failed, **unreached))


def answer(
    make: Callable[[], Resource],
    check_mode: bool,
    seconds: float,
    failed: str = REFUSED,
    **unreached: Any,
) -> Dict[str, Any]:
    """Bring the Resource that `make` makes to its desired state; returns what the module returns.

    That is with `warnings`, and of a failure with `failed` and `msg`. `seconds` and `unreached` as in `run`.
    """
    try:
        checked_seconds("operation_timeout", seconds, OPERATION_MAX_SECONDS)
        resource = make()
        resource.connect()
        outcome = reconcile(resource, check_mode, seconds)
    except AdminError as error:
        return error.refused(**unreached)
    return reported(outcome, seconds, failed, **resource.results(outcome))


def run_once(
    options: Dict[str, Any],
    call: Callable[[Connection, AnsibleModule], Dict[str, Any]],
    also: Callable[[AnsibleModule], None] = lambda module: None,
    **rules: Any,
) -> None:
    """Run a module that is one call; it returns the values, of which `warnings` are printed.

    `also` may end the module where something else than the clients is missing on its host.
    """
    module = kafka_module(options, **rules)
    require_both_clients(module)
    also(module)
    try:
        results = call(connection_from(module.params), module)
    except AdminError as error:
        fail(module, error)
    else:
        for warning in results.pop("warnings", ()):
            module.warn(warning)
        module.exit_json(**{"changed": False, **results})


def report(module: Any, outcome: Outcome, seconds: float, **how: Any) -> None:
    """End the module with what was done and what was not; `how` as of `reported`."""
    end(module, reported(outcome, seconds, **how))


def end(module: Any, values: Dict[str, Any]) -> None:
    """End the module with what `answer` or `reported` returned."""
    for warning in values.pop("warnings", ()):
        module.warn(warning)
    if values.pop("failed", False):
        module.fail_json(**values)
    module.exit_json(**values)


def reported(
    outcome: Outcome,
    seconds: float,
    failed: str = REFUSED,
    late: str = LATE,
    **results: Any,
) -> Dict[str, Any]:
    """What a module returns, as `answer` does: what was done and what was not.

    `failed` is the heading of the failures, `late` that of changes which cannot be seen yet.
    """
    plan = outcome.plan
    shown = Plan(outcome.changed)
    unsettled = [
        Failure(subject, f"{state} after {seconds:g} s", "unsettled")
        for subject, state in outcome.unsettled.items()
    ]
    results.update(
        changed=bool(shown),
        diff=shown.diff(),
        plan=plan.to_dict(),
        failed_items=[failure.to_dict() for failure in [*outcome.failures, *unsettled]],
        warnings=list(plan.warnings),
    )
    if plan.refusals:
        lines = "\n".join(refusal.line() for refusal in plan.refusals)
        return {**results, "failed": True, "msg": f"nothing was changed, refused:\n{lines}"}
    sections = []
    if outcome.failures:
        sections.append(f"{failed}:\n{_some(outcome.failures)}")
    if unsettled:
        sections.append(
            f"{late}:\n{_some(unsettled)}\n"
            "Remedy: run the task again later, or raise operation_timeout."
        )
    if outcome.check_error:
        results = {**outcome.check_error.details, **results}
        sections.append(
            f"the check afterwards failed: {outcome.check_error.message}\n"
            "Remedy: run the task again once the cluster answers; it makes no change twice."
        )
    if not sections:
        return results
    made = len(outcome.changed)
    count = f"{made} of {len(plan.changes)} changes were made" if made else "nothing was changed"
    return {**results, "failed": True, "msg": "; ".join([count, *sections])}


def _some(failures: Sequence[Failure]) -> str:
    lines = [f"{failure.subject}: {failure.error}" for failure in failures[:PROBLEMS_SHOWN]]
    if len(failures) > PROBLEMS_SHOWN:
        lines.append(f"and {len(failures) - PROBLEMS_SHOWN} more, see failed_items")
    return "\n".join(lines)


def fail(module: Any, error: AdminError, **values: Any) -> None:
    """End the module with an AdminError, before anything was changed."""
    end(module, error.refused(**values))
