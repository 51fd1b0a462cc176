# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of playbooks/migrate_to_kraft.yml and migrate_back.yml: what is left to do, and what is waited for."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.migration.plan import (
    BACK,
    DUAL_WRITE_END,
    ENDS,
    NO_END,
    WISHES,
    awaited,
    not_written,
    plan,
    situation_of,
    to_dict,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem


def migration_plan(
    situation: Mapping[str, Any], wish: str = "", until: Any = NO_END
) -> Dict[str, Any]:
    """Return {steps, lines, refused, after} of a cluster; see the documentation."""
    end = NO_END if until is None else str(until)
    problem = _unknown(wish, end)
    if problem:
        return {"steps": {}, "lines": [], "refused": [problem.line()], "after": []}
    return to_dict(plan(situation_of(situation), wish, end))


def _unknown(wish: str, until: str) -> Optional[Problem]:
    """What was asked for and is not there: a run that took it for nothing would go on past the way back."""
    setting, value = "migrate_until", until
    if wish not in WISHES:
        setting, value, reason = "migrate", wish, "there is no such step"
        known = ", ".join(each for each in WISHES if each and each != BACK)
        remedy = f"leave it out, or use one of {known}"
    elif until not in ENDS:
        reason, remedy = "there is no such end", f"leave it out, or use {DUAL_WRITE_END}"
    elif until and wish:
        reason, remedy = f"this run is to do {wish}, which has no such end", "leave it out"
    else:
        return None
    return Problem("migration.unknown_wish", reason, remedy, setting=setting, value=value)


def migration_awaits(situation: Mapping[str, Any], most: bool = False) -> List[str]:
    """Return why the controllers do not have a cluster's metadata yet; see the documentation."""
    return awaited(situation_of(situation), most)


def migration_not_written(situation: Mapping[str, Any]) -> List[str]:
    """Return why a cluster's controllers may not be deleted yet; see the documentation."""
    return not_written(situation_of(situation))


class FilterModule:
    """Filters of the migration to KRaft."""

    def filters(self) -> Dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "migration_awaits": migration_awaits,
            "migration_not_written": migration_not_written,
            "migration_plan": migration_plan,
        }
