# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of playbooks/drill.yml: which drills there are, who is hit, and what came of it."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.cast import announced, cast
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    chosen,
    drill_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import Seen
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import (
    drill_table,
    judged,
    not_begun,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError


def drill_names(text: str) -> Dict[str, Any]:
    """Return {names, problem} of what -e drill=... names; see the documentation."""
    try:
        return {"names": [each.name for each in chosen(text)], "problem": ""}
    except ProblemError as error:
        return {"names": [], "problem": str(error)}


def drill_plan(name: str, cluster: Mapping[str, Any], hosts: Mapping[Any, str]) -> Dict[str, Any]:
    """Return who is hit, and what is said before; see the documentation."""
    found = [int(each["id"]) for each in cluster.get("brokers") or ()]
    try:
        play = cast(drill_of(name), found, cluster.get("controller"))
    except ProblemError as error:
        return {"name": name, "hits_broker": False, "host": "", "problem": str(error)}
    host = {int(number): each for number, each in hosts.items()}.get(play.victim or 0, "")
    told = {"host": host, "lines": announced(play, host), "problem": ""}
    return {**play.to_dict(), **told, "brokers": found, "controller": cluster.get("controller")}


def drill_row(
    plan: Mapping[str, Any],
    seen: Optional[Mapping[str, Any]] = None,
    fault_ms: int = 0,
    proof: Optional[Mapping[str, Any]] = None,
    error: str = "",
) -> Dict[str, Any]:
    """Return the row of a drill's table; see the documentation."""
    if "brokers" not in plan:
        return not_begun(drill_of(plan["name"]), error or plan["problem"]).to_dict()
    play = cast(drill_of(plan["name"]), plan["brokers"], plan["controller"])
    what = Seen.from_dict(seen) if seen else None
    return judged(play, plan["host"], what, int(fault_ms or 0), proof, error).to_dict()


class FilterModule:
    """Filters of drills."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "drill_names": drill_names,
            "drill_plan": drill_plan,
            "drill_row": drill_row,
            "drill_table": drill_table,
        }
