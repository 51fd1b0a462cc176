# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which finalised features are raised, and which must not be touched.

Private to this collection. Pure: no I/O, no clock. A level is only ever raised: Kafka lowers none whose
metadata an older release could not read, and what it would lower is nothing to do by the way.
"""

from __future__ import annotations

from typing import Any, List, Mapping, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change, Plan
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

RAISE = "raise"
NO_WAY_BACK = "there is no way back"


def parse_levels(given: Mapping[str, Any]) -> Tuple[Mapping[str, int], Tuple[Problem, ...]]:
    """(feature to level, what cannot be read) of the module's option."""
    levels, refusals = {}, []
    for name, value in given.items():
        text = str(value).strip()
        if not isinstance(value, bool) and text.isdigit() and int(text) > 0:
            levels[str(name)] = int(text)
            continue
        refusals.append(
            Problem(
                "features.bad_value",
                "a level is a whole number from 1 on",
                "see `kafka-features.sh version-mapping` for the levels of a release",
                (str(name),),
                "levels",
                value,
            )
        )
    return levels, tuple(refusals)


def plan_levels(wanted: Mapping[str, int], finalised: Mapping[str, int]) -> Plan:
    """The plan that raises features to their wanted levels."""
    changes: List[Change] = []
    refusals: List[Problem] = []
    for name, level in sorted(wanted.items()):
        now = finalised.get(name, 0)
        if level < now:
            refusals.append(
                Problem(
                    "features.lowered",
                    f"level {now} is finalised, and {NO_WAY_BACK}",
                    f"leave it out, or write {now}",
                    (name,),
                    "levels",
                    level,
                )
            )
        elif level > now:
            changes.append(Change(RAISE, name, {"level": now}, {"level": level}, NO_WAY_BACK))
    return Plan(tuple(changes), tuple(refusals))


def raised(finalised: Mapping[str, int], changes: Any) -> Mapping[str, int]:
    """The levels with these changes."""
    return {**finalised, **{each.subject: each.after["level"] for each in changes}}
