# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module kafka_benchmark, and say after each row what it was, and how long the others take.

An action and not a module, because a module's output appears when it ends.
"""

from __future__ import annotations

import os
import tempfile

from ansible.plugins.action import ActionBase

from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import shown

# each row is to be seen
SAY_SECONDS = 0.0


class ActionModule(ActionBase):
    """Wraps the module of the same name."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp=None, task_vars=None):
        """Run the module with its arguments; return its result."""
        result = super().run(tmp, task_vars)
        del tmp
        arguments = dict(self._task.args)
        # elsewhere the file could only be had through the connection that waits for the module
        if self._connection.transport != "local" or arguments.get("progress"):
            result.update(self._execute(arguments, task_vars))
            return result
        with tempfile.TemporaryDirectory(prefix="kafkaops-") as directory:
            path = os.path.join(directory, "progress.json")
            with shown(path, self._tell, SAY_SECONDS):
                # os.getppid: the process of ansible-playbook, whose end ends the load
                here = {"progress": path, "beside": os.getppid()}
                result.update(self._execute({**arguments, **here}, task_vars))
        return result

    def _execute(self, arguments, task_vars):
        return self._execute_module(
            module_name="kafkaops.cluster.kafka_benchmark",
            module_args=arguments,
            task_vars=task_vars,
        )

    def _tell(self, line):
        self._display.display(f"    {line}")
