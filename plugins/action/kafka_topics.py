# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""See in this process whether topics are as declared, where the module would be here.

Each `site.yml` asks, and mostly nothing is to be done. A change is left to the module, which a killed run leaves
to its end.
"""

from __future__ import annotations

from typing import Any, Dict

from ansible.plugins.action.normal import ActionModule as ModuleAction

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.on_controller import (
    answered,
    is_here_in_full,
)

# Of a longer list the start of a module is the lesser part, and planning it twice is not.
FEW = 100


class ActionModule(ModuleAction):
    """Answers itself, or calls the module of the same name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Return what the module returns."""
        topics = self._task.args.get("topics")
        few = isinstance(topics, list) and len(topics) <= FEW
        if not few or not is_here_in_full(self, task_vars or {}):
            return super().run(tmp, task_vars)
        # Only the process that asks needs the client's libraries.
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
            KAFKA_RULES,
            kafka_argument_spec,
        )
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.resource import (
            TOPIC_OPTIONS,
            TOPIC_RULES,
        )

        try:
            spec = kafka_argument_spec(**TOPIC_OPTIONS)
            found = answered(self._task.args, spec, self._look, **KAFKA_RULES, **TOPIC_RULES)
        except Exception:  # pylint: disable=broad-except
            return super().run(tmp, task_vars)  # the module says it in Ansible's words
        if found["changed"] and not self._task.check_mode:
            return super().run(tmp, task_vars)
        return found

    def _look(self, parameters: Dict[str, Any]) -> Dict[str, Any]:
        """What the module returns, or would return of the changes that it would make."""
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
            connection_from,
        )
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import answer
        from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.resource import (
            topics_of,
        )

        return answer(
            lambda: topics_of(connection_from(parameters), parameters, self._task.check_mode),
            True,
            parameters["operation_timeout"],
        )
