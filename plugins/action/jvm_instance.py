# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at an instance or stage its configuration, in this process where the module would be here.

A local cluster has six instances on one machine, and each playbook looks at all of them: a module is a
Python of its own, which reads and compiles its files anew. What starts and stops something is left to the
module, which a killed run leaves to its end.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, List, Tuple

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action.normal import ActionModule as ModuleAction

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.edge import (
    REQUIRED_IF,
    SPEC,
    answer,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import plain
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.on_controller import (
    is_here,
)

# States that start and stop nothing.
STILL = ("probe", "staged")


class ActionModule(ModuleAction):
    """Answers itself, or calls the module of the same name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Return what the module returns."""
        arguments = self._task.args
        # The module takes its own Python for what watches the instance.
        python = self._templar.template((task_vars or {}).get("ansible_python_interpreter"))
        if (
            arguments.get("state", "staged") not in STILL
            or arguments.get("manager") != "supervisor"
            or python != sys.executable
            or self._task.delegate_to
            or self._task.async_val
            or not is_here(self)
        ):
            return super().run(tmp, task_vars)
        # As a module gets them: without Ansible's marks, and with texts for keys.
        sent = json.loads(json.dumps(plain(arguments)))
        checked = ArgumentSpecValidator(SPEC, required_if=REQUIRED_IF).validate(sent)
        if checked.error_messages:
            return super().run(tmp, task_vars)  # the module says it in Ansible's words
        result = answer(
            checked.validated_parameters,
            self._task.check_mode,
            _run,
            # nobody has to be allowed what neither starts nor stops
            lambda: None,
        )
        return remove_values({"changed": False, **result}, checked._no_log_values)


def _run(command: List[str]) -> Tuple[int, str, str]:
    """What systemd would be asked with; supervisord has a socket."""
    raise NotImplementedError(command)
