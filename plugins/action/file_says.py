# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait like ansible.builtin.wait_for until a file says something, and say meanwhile for what, and for how long.

An action and not a module, because a module's output appears when it ends.
"""

from __future__ import annotations

from typing import Any, Dict

from ansible.plugins.action import ActionBase

from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import line_of, passing


class ActionModule(ActionBase):
    """Wraps ansible.builtin.wait_for; documented in plugins/modules/file_says.py."""

    _supports_check_mode = False
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Validate the arguments, wait, return the result."""
        result = super().run(tmp, task_vars)
        del tmp
        _validation, given = self.validate_argument_spec(
            argument_spec={
                "path": {"type": "path", "required": True},
                "search_regex": {"type": "str", "required": True},
                "timeout": {"type": "int", "default": 300},
                "awaited": {"type": "str", "required": True},
                "about_seconds": {"type": "float", "required": True},
            }
        )
        # elsewhere the file could only be had through the connection that waits for the module
        here = self._connection.transport == "local"

        def tell(time: str) -> None:
            line = line_of(given["path"]) if here else None
            self._display.display(
                f"    until {given['awaited']}: {time}{f'; {line}' if line else ''}"
            )

        wanted = {key: given[key] for key in ("path", "search_regex", "timeout")}
        with passing(given["about_seconds"], tell):
            result.update(
                self._execute_module(
                    module_name="ansible.legacy.wait_for",
                    module_args={**wanted, "sleep": 1},
                    task_vars=task_vars,
                )
            )
        return result
