# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module kafka_voters, and say meanwhile what it waits for: a new voter may have much to read.

The module is told which run it belongs to, where it can see that process: it can outlive it.
"""

from __future__ import annotations

from typing import Any, Dict

from ansible.errors import AnsibleActionFail
from ansible.plugins.action.normal import ActionModule as ModuleAction

from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import shown_of_module
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.owner import as_option


class ActionModule(ModuleAction):
    """Wraps the module of the same name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Return what the module returns."""
        try:
            run = as_option()
        except LookupError as error:
            raise AnsibleActionFail(str(error)) from error
        with shown_of_module(self, run=run):
            return super().run(tmp, task_vars)
