# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the module kafka_drill, from its parameters to what was seen.

Private to this collection.
"""

from __future__ import annotations

import tempfile
import time
from typing import Any, Callable, ContextManager, Dict, List, Mapping

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.asked_judge import judge_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import PREFIX
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_broadcast import (
    broadcast,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_commits import (
    commit_modes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_members import (
    hand_over,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_observe import (
    LEFT,
    Watched,
    observe,
    remove_left_meetings,
    told_to_end,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_queue import (
    partitions_grown,
    task_queue,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_recreate import (
    recreate,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    LATE_SECONDS,
    DrillClient,
    drill_client,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_transactions import (
    exactly_once,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.left_behind import (
    led_in_the_end,
    removed_by_another,
    removed_in_the_end,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import start_ticks
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import refusal

DRILL_OPTIONS: Dict[str, Any] = {
    "part": {
        "type": "str",
        "required": True,
        "choices": [
            "observe",
            "coordinators",
            "hand_over",
            "recreate",
            "broadcast",
            "task_queue",
            "commit_modes",
            "exactly_once",
            "grow",
            "clean",
        ],
    },
    "topic": {"type": "str"},
    "groups": {"type": "list", "elements": "str", "default": []},
    "assignment": {"type": "list", "elements": "list", "default": []},
    "config": {"type": "dict", "default": {}},
    "directory": {"type": "path"},
    "program": {"type": "str"},
    "retry": {"type": "bool", "default": True},
    "kill": {"type": "bool", "default": False},
    "judge": {"type": "path"},
    "leave": {"type": "list", "elements": "str"},
    "changes": {"type": "bool", "default": False},
    "quorum": {"type": "bool", "default": False},
    "copied": {"type": "bool", "default": False},
    "beside": {"type": "int", "default": 0},
    "seconds": {"type": "float", "default": 1800.0},
    "about_seconds": {"type": "float", "default": 0.0},
}
DRILL_RULES: Dict[str, Any] = {
    "required_if": [
        ("part", "observe", ("topic", "groups", "assignment", "directory")),
        ("part", "hand_over", ("topic", "groups", "assignment", "program")),
        *(
            ("part", each, ("topic", "groups", "assignment"))
            for each in (
                "recreate",
                "broadcast",
                "task_queue",
                "commit_modes",
                "exactly_once",
                "grow",
            )
        ),
    ],
}


def play_part(
    connection: Connection, params: Mapping[str, Any], check: bool = False
) -> Dict[str, Any]:
    """Play one part; returns the module's values. AdminError where it cannot come to its end.

    With `check` nothing is made, and only what can be read is returned.
    """
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
    if check and params["part"] != "coordinators":
        return {}
    if params["part"] == "clean":
        removed = drill_client(connection).clean([params["topic"]] if params["topic"] else None)
        if not params["topic"]:
            removed += remove_left_meetings(tempfile.gettempdir(), time.time())
        return {"removed": removed, "changed": bool(removed)}
    if params["part"] == "coordinators":
        return {"coordinators": drill_client(connection).coordinators(make=not check)}
    with _guarded(connection, params) as something_is_left:
        seen = _seen(connection, params)
        if LEFT in (seen.get("measured") or {}) or _deserted(params):
            something_is_left()
        return {"seen": seen}


def _guarded(
    connection: Connection, params: Mapping[str, Any]
) -> ContextManager[Callable[[], None]]:
    """Where this process is killed, or fails, topic and groups go, too, and leaders that have moved come back."""
    topics, leave = [params["topic"]], params["leave"]
    clients: List[DrillClient] = []

    def client() -> DrillClient:
        if not clients:
            clients.append(drill_client(connection))
        return clients[0]

    def remove() -> None:
        # nobody would hear of an error; the next drill removes what is left
        removed_in_the_end(
            lambda: drill_client(connection).remove_topics(topics, LATE_SECONDS),
            lambda: drill_client(connection).remove_groups(topics),
        )
        if leave is not None:
            led_in_the_end(
                lambda: client().give_back(leave),
                lambda: client().any_there(),
            )

    return removed_by_another(remove)


def _deserted(params: Mapping[str, Any]) -> bool:
    """Whether the playbook has not said that it is over, and so has not put back what it has moved."""
    return params["part"] == "observe" and not told_to_end(params["directory"])


def _seen(connection: Connection, params: Mapping[str, Any]) -> Dict[str, Any]:
    """Play a part that puts load on the cluster; returns what was seen."""
    assignment = [[int(each) for each in replicas] for replicas in params["assignment"]]
    config = {str(key): str(value) for key, value in params["config"].items()}
    topic, groups = params["topic"], params["groups"]
    judge = judge_of(params["judge"] or "")
    if params["part"] == "hand_over":
        program = params["program"]
        return hand_over(
            connection, topic, assignment, config, groups[0], params["kill"], program, judge
        )
    given = (connection, topic, assignment, config)
    if params["part"] == "recreate":
        return recreate(*given, groups, judge)
    if params["part"] == "broadcast":
        return broadcast(*given, groups, judge)
    if params["part"] == "task_queue":
        return task_queue(*given, groups[0], judge)
    if params["part"] == "commit_modes":
        modes = {name.rpartition("-")[2]: name for name in groups}
        return commit_modes(*given, modes, judge)
    if params["part"] == "exactly_once":
        return exactly_once(*given, judge)
    if params["part"] == "grow":
        return partitions_grown(*given, groups[0], judge)
    asked = Watched(
        topic,
        assignment,
        config,
        groups,
        params["directory"] or "",
        params["retry"],
        params["beside"],
        params["seconds"],
        params["changes"],
        params["program"] or "",
        params["quorum"],
        params["copied"],
    )
    return observe(connection, asked, lambda pid: start_ticks(pid) is not None, judge)
