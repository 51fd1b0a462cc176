# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module kafka_guarantee, and say meanwhile how long a row of the guarantees takes."""

from __future__ import annotations

from typing import Any, Dict

from ansible.plugins.action.normal import ActionModule as ModuleAction

from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import passing


class ActionModule(ModuleAction):
    """Wraps the module of the same name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Return what the module returns."""
        about = float(self._task.args.get("about_seconds") or 0)
        if not about or self._task.async_val or self._task.check_mode:
            return super().run(tmp, task_vars)
        with passing(about, lambda line: self._display.display(f"    {line}")):
            return super().run(tmp, task_vars)
