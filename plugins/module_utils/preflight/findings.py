# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Problems that the preflight found: made with the catalogue's level and remedy, sorted, merged.

The catalogue is data, `meta/problems.yml`, and names every id of the collection: a finding with an
id that is not in it cannot be made, and docs/preflight.md is generated from it. It is read on the
controller alone, when the first finding is made; nothing that runs on a managed host needs it.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterable, List, Mapping, Sequence

from ansible.module_utils.common.yaml import yaml_load

from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import masked
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.ids import natural_key
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import LEVELS, Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import shown

HOST = "host"
_CATALOGUE_FILE = os.path.join(os.path.dirname(__file__), "../../../meta/problems.yml")


@dataclass(frozen=True)
class Check:
    """One entry of the catalogue: level by default, what must hold, what to do if it does not.

    `remedy` is empty where only the code says it, of a problem that is not a finding; `concerns`: HOST where it is
    about its own hosts alone, else the whole cluster.
    """

    id: str
    level: str
    holds: str
    remedy: str = ""
    concerns: str = "cluster"


@functools.lru_cache(maxsize=None)
def catalogue() -> Mapping[str, Check]:
    """id -> Check, in the order of the file."""
    with open(_CATALOGUE_FILE, encoding="utf-8") as source:
        entries = yaml_load(source)
    return {check: Check(id=check, **entry) for check, entry in entries.items()}


def found(
    check: str,
    hosts: Any,
    variable: str,
    value: Any,
    reason: str,
    remedy: str = "",
    level: str = "",
) -> Problem:
    """A problem of a catalogued check; level and remedy default to the catalogue's.

    `hosts` is one name or several. Raises KeyError for an id that the catalogue lacks.
    """
    entry = catalogue()[check]
    names = (hosts,) if isinstance(hosts, str) else tuple(sorted(set(hosts), key=natural_key))
    return Problem(
        check=check,
        reason=reason,
        remedy=remedy or entry.remedy,
        subjects=names,
        setting=variable,
        value=shown(value),
        level=level or entry.level,
    )


def found_in_list(
    refusal: Problem, hosts: Sequence[str], variable: str, items: Sequence[Any]
) -> Problem:
    """A module's refusal of an item, as a finding of the variable that lists it: `kafka_topics[orders].retention`.

    The module names an item that has no name of its own by its place in the option, `topics[0]`.
    """
    subject = ", ".join(refusal.subjects)
    option = variable.rpartition("_")[2]
    nameless = {f"{option}[{place}]": (place, item) for place, item in enumerate(items)}
    place, item = nameless.get(subject, (subject, subject))
    value = refusal.value if refusal.setting else masked(variable, item)
    where = f"{variable}[{place}]{refusal.setting and f'.{refusal.setting}'}"
    return found(refusal.check, hosts, where, value, refusal.reason, refusal.remedy)


def reported(problem: Problem) -> Dict[str, Any]:
    """A finding as preflight.json and the module's result have it."""
    return {
        "check": problem.check,
        "level": problem.level,
        "hosts": list(problem.subjects),
        "variable": problem.setting,
        "value": problem.value,
        "reason": problem.reason,
        "remedy": problem.remedy,
        "line": problem.line(),
    }


def in_order(findings: Iterable[Problem]) -> List[Problem]:
    """Errors first, then by id and hosts; each finding once."""
    return sorted(
        dict.fromkeys(findings),
        key=lambda each: (
            LEVELS.index(each.level),
            each.check,
            [natural_key(host) for host in each.subjects],
            each.setting,
            each.value,
        ),
    )


def merged(findings: Sequence[Problem]) -> List[Problem]:
    """One finding for all hosts that share everything else.

    A mistake in group_vars concerns every host of the group; saying it once a host hides the rest.
    """
    hosts: Dict[Problem, set] = {}
    for each in findings:
        hosts.setdefault(replace(each, subjects=()), set()).update(each.subjects)
    return in_order(
        replace(each, subjects=tuple(sorted(names, key=natural_key)))
        for each, names in hosts.items()
    )
