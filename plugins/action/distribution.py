# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Obtain a release archive, in the controller's own process.

An action and not a module, because only the controller can say how far a download is while it
runs: a module's output appears when it ends. So it needs no delegation, no interpreter and no
become either.
"""

from __future__ import annotations

from typing import Any, Dict

from ansible.plugins.action import ActionBase

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply import distribution


class ActionModule(ActionBase):
    """Runs `distribution.obtain`; documented in plugins/modules/distribution.py."""

    _supports_check_mode = True
    _supports_async = False
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Validate the arguments, obtain the archive, return it as a task result."""
        result = super().run(tmp, task_vars)
        del tmp
        _validation, arguments = self.validate_argument_spec(
            argument_spec=distribution.ARGUMENT_SPEC
        )
        progress = Progress(emit=self._tell)
        try:
            obtained = distribution.obtain(
                distribution.request_from(arguments), progress, check_mode=self._task.check_mode
            )
        except ProblemError as error:
            result.update(failed=True, msg=str(error), refusals=[error.problem.to_dict()])
            return result
        if self._task.check_mode and obtained.changed:
            # Without -v a changed task prints no message, and this one is the point of the check.
            self._tell(obtained.message)
        result.update(obtained.to_dict())
        return result

    def _tell(self, line: str) -> None:
        self._display.display(f"    {line}")
