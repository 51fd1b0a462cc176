# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of playbooks/migrate_to_kraft.yml and migrate_back.yml: what is left to do, and what is waited for."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.migration.plan import (
    WISHES,
    awaited,
    plan,
    situation_of,
    to_dict,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem


def migration_plan(situation: Mapping[str, Any], wish: str = "") -> Dict[str, Any]:
    """Return {steps, lines, refused, after} of a cluster; see the documentation."""
    if wish not in WISHES:
        known = ", ".join(each for each in WISHES if each and each != "back")
        problem = Problem(
            "migration.unknown_wish",
            "there is no such step",
            f"leave it out, or use one of {known}",
            setting="migrate",
            value=wish,
        )
        return {"steps": {}, "lines": [], "refused": [problem.line()], "after": []}
    return to_dict(plan(situation_of(situation), wish))


def migration_awaits(situation: Mapping[str, Any]) -> List[str]:
    """Return why the controllers do not have a cluster's metadata yet; see the documentation."""
    return awaited(situation_of(situation))


class FilterModule:
    """Filters of the migration to KRaft."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"migration_awaits": migration_awaits, "migration_plan": migration_plan}
