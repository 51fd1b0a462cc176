# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at an instance or stage its configuration, in this process where the module would be here.

A local cluster has six instances on one machine, and each playbook looks at all of them: a module is a
Python of its own, which reads and compiles its files anew. What starts and stops something is left to the
module, which a killed run leaves to its end.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from ansible.plugins.action.normal import ActionModule as ModuleAction

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.edge import (
    REQUIRED_IF,
    SPEC,
    answer,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.on_controller import (
    WrongArguments,
    answered,
    is_here_in_full,
)

# States that start and stop nothing; in check mode none does.
STILL = ("probe", "staged")


class ActionModule(ModuleAction):
    """Answers itself, or calls the module of the same name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Return what the module returns."""
        arguments = self._task.args
        # The module takes its own Python for what watches the instance.
        still = arguments.get("state", "staged") in STILL or self._task.check_mode
        if (
            not still
            or arguments.get("manager") != "supervisor"
            or self._task.delegate_to
            or not is_here_in_full(self, task_vars or {})
        ):
            return super().run(tmp, task_vars)
        try:
            return answered(arguments, SPEC, self._answer, required_if=REQUIRED_IF)
        except WrongArguments:
            return super().run(tmp, task_vars)  # the module says it in Ansible's words

    def _answer(self, parameters: Dict[str, Any]) -> Dict[str, Any]:
        # nobody has to be allowed what neither starts nor stops
        return answer(parameters, self._task.check_mode, _run, lambda: None)


def _run(command: List[str]) -> Tuple[int, str, str]:
    """What systemd would be asked with; supervisord has a socket."""
    raise NotImplementedError(command)
