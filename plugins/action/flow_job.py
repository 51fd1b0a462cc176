# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the validation job like ansible.builtin.command, and say meanwhile how far it is.

An action and not a module, because a module's output appears when it ends. The job writes how far
it is into a file; while the command runs on the controller, a thread reads that and displays it.
"""

from __future__ import annotations

import json
import threading

from ansible.plugins.action import ActionBase

from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress

LOOK_SECONDS = 1.0
SAY_SECONDS = 10.0


class ActionModule(ActionBase):
    """Wraps ansible.builtin.command; documented in plugins/modules/flow_job.py."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp=None, task_vars=None):
        """Validate the arguments, run the command, return its result."""
        result = super().run(tmp, task_vars)
        del tmp
        _validation, arguments = self.validate_argument_spec(
            argument_spec={
                "argv": {"type": "list", "elements": "str", "required": True},
                "progress": {"type": "path"},
            }
        )
        over = threading.Event()
        watcher = None
        # elsewhere the file could only be had through the connection that waits for the command
        if arguments["progress"] and self._connection.transport == "local":
            watcher = threading.Thread(
                target=self._watch, args=(arguments["progress"], over), daemon=True
            )
            watcher.start()
        try:
            result.update(
                self._execute_module(
                    module_name="ansible.legacy.command",
                    module_args={"argv": arguments["argv"]},
                    task_vars=task_vars,
                )
            )
        finally:
            over.set()
            if watcher:
                watcher.join()
        return result

    def _watch(self, path, over):
        progress = Progress(emit=self._tell, every=SAY_SECONDS)
        said = None
        progress.tell("")  # from now on
        while not over.wait(LOOK_SECONDS):
            line = line_of(path)
            if line and line != said:
                said = line
                progress.tell(line)

    def _tell(self, line):
        self._display.display(f"    {line}")


def line_of(path):
    """Return the line for people out of the job's progress file, None while there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return str(json.load(file)["line"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
