# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring topics to their declared state in this process, where the module would be here.

To send the module and all that it imports, and to compile it once more, takes longer than to see that a thousand
topics are as declared.
"""

from __future__ import annotations

from typing import Any, Dict

from ansible.plugins.action.normal import ActionModule as ModuleAction

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.on_controller import (
    WrongArguments,
    answered,
    is_here_in_full,
)


class ActionModule(ModuleAction):
    """Answers itself, or calls the module of the same name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Return what the module returns."""
        if not is_here_in_full(self, task_vars or {}):
            return super().run(tmp, task_vars)
        # Only the process that asks needs the client's libraries.
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
            KAFKA_RULES,
            kafka_argument_spec,
        )
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
            CLIENTS_IMPORT_ERROR,
        )
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.resource import (
            TOPIC_OPTIONS,
            TOPIC_RULES,
        )

        if CLIENTS_IMPORT_ERROR:
            return super().run(tmp, task_vars)  # the module names them
        spec = kafka_argument_spec(**TOPIC_OPTIONS)
        try:
            return answered(self._task.args, spec, self._reconciled, **KAFKA_RULES, **TOPIC_RULES)
        except WrongArguments:
            return super().run(tmp, task_vars)  # the module says it in Ansible's words

    def _reconciled(self, parameters: Dict[str, Any]) -> Dict[str, Any]:
        """What the module returns of these parameters."""
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
            connection_from,
        )
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import answer
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.resource import (
            topics_of,
        )

        return answer(
            lambda: topics_of(connection_from(parameters), parameters, self._task.check_mode),
            self._task.check_mode,
            parameters["operation_timeout"],
        )
