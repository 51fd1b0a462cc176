# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the module kafka_drill, from its parameters to what was seen.

Private to this collection.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import PREFIX
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Settings,
    clean,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_members import (
    hand_over,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_observe import (
    Watched,
    observe,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_recreate import (
    recreate,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import refusal

DRILL_OPTIONS: Dict[str, Any] = {
    "part": {
        "type": "str",
        "required": True,
        "choices": ["observe", "hand_over", "recreate", "clean"],
    },
    "topic": {"type": "str"},
    "groups": {"type": "list", "elements": "str", "default": []},
    "assignment": {"type": "list", "elements": "list", "default": []},
    "config": {"type": "dict", "default": {}},
    "directory": {"type": "path"},
    "retry": {"type": "bool", "default": True},
    "kill": {"type": "bool", "default": False},
    "beside": {"type": "int", "default": 0},
    "seconds": {"type": "float", "default": 1800.0},
}
DRILL_RULES: Dict[str, Any] = {
    "required_if": [
        ("part", "observe", ("topic", "groups", "assignment", "directory")),
        ("part", "hand_over", ("topic", "groups", "assignment")),
        ("part", "recreate", ("topic", "groups", "assignment")),
    ],
}


def play_part(settings: Settings, params: Mapping[str, Any]) -> Dict[str, Any]:
    """Play one part; returns the module's values. AdminError where it cannot come to its end."""
    # another topic of this name would be somebody's, and would be deleted
    for name in [params["topic"] or PREFIX, *params["groups"]]:
        if not name.startswith(PREFIX):
            error = refusal(
                "drill.foreign",
                f"topic={name}",
                f"what a drill makes begins with {PREFIX}",
                "leave the names to playbooks/drill.yml",
            )
            raise AdminError(error.problem)
    if params["part"] == "clean":
        removed = clean(settings)
        return {"removed": removed, "changed": bool(removed)}
    assignment = [[int(each) for each in replicas] for replicas in params["assignment"]]
    config = {str(key): str(value) for key, value in params["config"].items()}
    topic, groups = params["topic"], params["groups"]
    if params["part"] == "hand_over":
        seen = hand_over(settings, topic, assignment, config, groups[0], params["kill"])
        return {"seen": seen}
    if params["part"] == "recreate":
        return {"seen": recreate(settings, topic, assignment, config, groups)}
    asked = Watched(
        topic,
        assignment,
        config,
        groups,
        params["directory"] or "",
        params["retry"],
        params["beside"],
        params["seconds"],
    )
    return {"seen": observe(settings, asked, lambda pid: start_ticks(pid) is not None)}
