# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the validation job like ansible.builtin.command, and say meanwhile how far it is.

An action and not a module, because a module's output appears when it ends. The job writes how far
it is into a file; while the command runs on the controller, a thread reads that and displays it.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict

from ansible.plugins.action import ActionBase

from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import shown


class ActionModule(ActionBase):
    """Wraps ansible.builtin.command; documented in plugins/modules/flow_job.py."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Validate the arguments, run the command, return its result."""
        result = super().run(tmp, task_vars)
        del tmp
        _validation, arguments = self.validate_argument_spec(
            argument_spec={
                "argv": {"type": "list", "elements": "str", "required": True},
                "progress": {"type": "path"},
            }
        )
        # elsewhere the file could only be had through the connection that waits for the command
        watched = arguments["progress"] and self._connection.transport == "local"
        with shown(arguments["progress"], self._tell) if watched else contextlib.nullcontext():
            result.update(
                self._execute_module(
                    module_name="ansible.legacy.command",
                    module_args={"argv": arguments["argv"]},
                    task_vars=task_vars,
                )
            )
        return result

    def _tell(self, line: str) -> None:
        self._display.display(f"    {line}")
