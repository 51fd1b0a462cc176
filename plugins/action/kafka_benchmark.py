# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module kafka_benchmark, and say after each row what it was, and how long the others take."""

from __future__ import annotations

import os
from typing import Any, Dict

from ansible.plugins.action.normal import ActionModule as ModuleAction

from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import shown_of_module

# each row is to be seen
SAY_SECONDS = 0.0


class ActionModule(ModuleAction):
    """Wraps the module of the same name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Return what the module returns."""
        # os.getppid: the process of ansible-playbook, whose end ends the load
        with shown_of_module(self, SAY_SECONDS, beside=os.getppid()):
            return super().run(tmp, task_vars)
