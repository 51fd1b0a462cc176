# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module kafka_broker_gate, and say meanwhile what it waits for."""

from __future__ import annotations

from typing import Any, Dict

from ansible.plugins.action.normal import ActionModule as ModuleAction

from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import shown_of_module


class ActionModule(ModuleAction):
    """Wraps the module of the same name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Return what the module returns."""
        with shown_of_module(self):
            return super().run(tmp, task_vars)
