# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of playbooks/drill.yml: which drills there are, who is hit, and what came of it."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.cast import (
    Cast,
    announced,
    cast,
    durability,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    chosen,
    drill_of,
    progress_line,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import Seen
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import (
    drill_table,
    fault_of,
    interrupted_lines,
    judged,
    not_begun,
    results,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError


def drill_names(text: str, kraft: bool = False, apart: bool = False) -> Dict[str, Any]:
    """Return {names, quorum, problem} of what -e drill=... names; see the documentation."""
    try:
        drills = chosen(text, kraft, apart)
    except ProblemError as error:
        return {"names": [], "quorum": [], "problem": str(error)}
    return {
        "names": [each.name for each in drills],
        "quorum": [each.name for each in drills if each.hits_quorum],
        "problem": "",
    }


def drill_left(names: Sequence[str], name: str, seconds: float = 0.0) -> str:
    """Return what is said before a drill; see the documentation."""
    return progress_line([drill_of(each) for each in names], name, float(seconds))


def drill_plan(
    name: str,
    cluster: Mapping[str, Any],
    hosts: Mapping[Any, str],
    coordinators: Optional[Mapping[Any, Optional[int]]] = None,
    servers: Optional[Mapping[Any, str]] = None,
    settings: Optional[Sequence[Mapping[str, Any]]] = None,
) -> Dict[str, Any]:
    """Return who is hit, and what is said before; see the documentation."""
    # metadata name any broker as the controller of a quorum
    quorum = cluster.get("quorum") or {}
    plan = {
        "name": name,
        "brokers": [int(each["id"]) for each in cluster.get("brokers") or ()],
        "controller": quorum.get("leader") if quorum else cluster.get("controller"),
        "voters": sorted(int(each["id"]) for each in quorum.get("voters") or ()),
        # of JSON, whose keys are texts
        "coordinators": {str(number): each for number, each in (coordinators or {}).items()},
        "ensemble": sorted(int(number) for number in servers or {}),
    }
    try:
        play = _cast(plan)
    except ProblemError as error:
        none = {"hits_broker": False, "hits_quorum": False, "host": "", "server_hosts": []}
        return {"name": name, **none, "problem": str(error)}
    nodes = {int(number): each for number, each in hosts.items()}
    # 0 is a broker like any other
    host = "" if play.victim is None else nodes.get(play.victim, "")
    ensemble = {int(number): each for number, each in (servers or {}).items()}
    names = ensemble if play.drill.hits_zookeeper else nodes
    has = durability(play, settings)
    told = {
        "host": host,
        "lines": announced(play, host, settings),
        "durability": has.topic,
        "otherwise": has.otherwise,
        "problem": "",
    }
    return {
        **play.to_dict(),
        **plan,
        **told,
        "server_hosts": [names[each] for each in play.servers],
    }


def _cast(plan: Mapping[str, Any]) -> Cast:
    return cast(
        drill_of(plan["name"]),
        plan["brokers"],
        plan["controller"],
        {int(number): each for number, each in plan["coordinators"].items()},
        plan["ensemble"],
        plan["voters"],
    )


def drill_row(
    plan: Mapping[str, Any],
    seen: Optional[Mapping[str, Any]] = None,
    fault_ms: int = 0,
    proof: Optional[Mapping[str, Any]] = None,
    error: str = "",
    amiss: Sequence[str] = (),
    before_ms: int = 0,
) -> Dict[str, Any]:
    """Return the row of a drill's table; see the documentation."""
    if "brokers" not in plan:
        return not_begun(drill_of(plan["name"]), error or plan["problem"]).to_dict()
    play = _cast(plan)
    what = Seen.from_dict(seen) if seen else None
    row = judged(
        play, plan["host"], what, int(fault_ms or 0), proof, error, amiss, int(before_ms or 0)
    )
    has = {each: plan.get(each, "") for each in ("durability", "otherwise")}
    return {**row.to_dict(), **has, "fault": fault_of(row, what)}


def drill_results(told: Mapping[str, Any], path: str) -> Dict[str, Any]:
    """Return drill.json of a run; see the documentation."""
    return results(told, os.path.basename(path).partition(".")[0])


def drills_interrupted(text: str, path: str) -> List[str]:
    """Return what is told of drills that were interrupted; see the documentation."""
    try:
        kept = json.loads(text or "{}")
    except ValueError:
        kept = {"over": False, "drills": [], "names": []}
    return interrupted_lines(kept, os.path.basename(path).partition(".")[0])


class FilterModule:
    """Filters of drills."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "drill_left": drill_left,
            "drill_names": drill_names,
            "drill_plan": drill_plan,
            "drill_results": drill_results,
            "drill_row": drill_row,
            "drill_table": drill_table,
            "drills_interrupted": drills_interrupted,
        }
