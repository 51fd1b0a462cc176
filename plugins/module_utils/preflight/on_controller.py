# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an action does itself instead of sending a module, and why a module that it sent said nothing.

Runs on the controller only: a module costs about 0.4 s a host, and locally it would be this process.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Callable, Dict, Mapping, Optional

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator, ValidationResult
from ansible.module_utils.common.parameters import remove_values

from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import masked_text
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import (
    first_line,
    plain,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

OLDEST = (2, 19)  # as in meta/runtime.yml: from here on Ansible marks what may be a template


def too_old(version: str, python: str = sys.executable) -> Optional[Problem]:
    """The refusal of an ansible-core that this collection does not run on; None for others.

    Ansible itself only warns, and goes on until something fails that names no version.
    """
    if tuple(int(part) for part in version.split(".")[:2]) >= OLDEST:
        return None
    wanted = ".".join(map(str, OLDEST))
    return Problem(
        "controller.ansible_core",
        f"the controller has ansible-core {version}, and this collection needs {wanted} or newer",
        f"install it there: {python} -m pip install 'ansible-core>={wanted}'",
    )


def not_linux(platform: str = sys.platform) -> Optional[Problem]:
    """The refusal of a controller that does not run Linux; None for one that does.

    The lock of a cluster, and which process is whose, rest on /proc.
    """
    if platform.startswith("linux"):
        return None
    return Problem(
        "controller.system",
        f"the controller runs {platform}, which has no /proc, and a cluster's lock rests on it",
        "run Ansible on Linux: on another machine, in a virtual one, or in a container",
    )


def is_here(action: Any) -> bool:
    """Whether this process is what the action's module would be: its machine, user and environment.

    Which Python the module would have does not count: only who asks about it has to look.
    """
    if action._connection.transport != "local" or action._connection.become:
        return False
    return not has_environment(action)


def has_environment(action: Any) -> bool:
    """Whether a module of the action would have more in its environment than its host has."""
    environment: Dict[str, Any] = {}
    action._compute_environment_string(environment)
    return bool(environment)


def is_here_in_full(action: Any, task_vars: Mapping[str, Any]) -> bool:
    """`is_here`, of a module that is bound to its Python, and that nobody runs in the background."""
    python = action._templar.template(task_vars.get("ansible_python_interpreter"))
    return python == sys.executable and not action._task.async_val and is_here(action)


class WrongArguments(ValueError):
    """What a module's options refuse."""


def answered(
    arguments: Any,
    spec: Mapping[str, Any],
    call: Callable[[Dict[str, Any]], Mapping[str, Any]],
    **rules: Any,
) -> Dict[str, Any]:
    """What `call` returns of the arguments, as a module would: plain data, and no secret in it.

    `spec` and `rules` as of `checked`.
    """
    found = checked(arguments, spec, **rules)
    result = json.loads(json.dumps(call(found.validated_parameters)))
    return remove_values({"changed": False, **result}, found._no_log_values)


def checked(arguments: Any, spec: Mapping[str, Any], **rules: Any) -> ValidationResult:
    """The arguments as a module gets them. `spec` and `rules` are its own; WrongArguments for what they refuse."""
    # Without Ansible's marks, and with texts for keys.
    sent = json.loads(json.dumps(plain(arguments)))
    found = ArgumentSpecValidator(dict(spec), **rules).validate(sent)
    if found.error_messages:
        raise WrongArguments("; ".join(found.error_messages))
    return found


def why_no_answer(answer: Mapping[str, Any]) -> str:
    """Why a module's result is none: what the host itself wrote, where it wrote anything.

    A become that is refused and a Python that does not start say so there, and Ansible's own
    message is only that there was no result.
    """
    written = f"{answer.get('module_stderr') or ''}\n{answer.get('module_stdout') or ''}"
    lines = [line.strip() for line in written.splitlines() if line.strip()]
    if not lines:
        return first_line(answer.get("msg") or "the module did not answer")
    if any(line.startswith("Traceback") for line in lines):
        lines = lines[-1:]
    return masked_text(" ".join(lines[:3]))[:300]
