# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The variables that a playbook reads from its command line: are they what they are meant to be? Pure.

A playbook takes every text that it does not know for false. So `-e cancel=ture` would begin the moves that it was to
end, and with `promve` for `prove` it would end green without any proof. The list is `meta/play_variables.yml`.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible.module_utils.common.yaml import yaml_load

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.keys import nearest
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import declared
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ERROR, Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import whole_number
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import shown

_FILE = os.path.join(os.path.dirname(__file__), "../../../meta/play_variables.yml")
# What the filter `bool` of every ansible-core that this collection supports reads as it is meant.
TRUE_OR_FALSE = ("true", "false", "yes", "no", "on", "off", "1", "0")
# Ansible's own, and what benchmark.yml reads by its beginning, and asks about itself.
BY_BEGINNING = ("ansible_", "benchmark_")
# Names are short: one letter of five may be wrong, or two have changed places.
LIKE = 0.8


@functools.lru_cache(maxsize=None)
def play_variables() -> Mapping[str, Mapping[str, Any]]:
    """variable -> {type, playbooks, harmless}, in the order of the file."""
    with open(_FILE, encoding="utf-8") as source:
        return yaml_load(source)


def check_values(given: Mapping[str, Any], hosts: Sequence[str]) -> Iterator[Problem]:
    """Play variables whose values are not of their type; `given`: name -> value of those that are set."""
    for name, option in play_variables().items():
        problem = _problem(option["type"], given[name]) if name in given else None
        if problem:
            yield found("settings.bad_value", hosts, name, shown(given[name]), *problem)


def check_names(given: Sequence[str], hosts: Sequence[str], consented: bool) -> List[Problem]:
    """Names from the command line that are nearly one of a play variable: the run would do without it."""
    near: Dict[str, Optional[str]] = {
        name: nearest(name, play_variables(), cutoff=LIKE)
        for name in given
        if not (name in play_variables() or name in declared() or name.startswith(BY_BEGINNING))
    }
    return [
        found(
            "settings.unknown_variable",
            hosts,
            name,
            "...",
            "no playbook has such a variable, and this run would do without it",
            f"write {wanted} if that is meant, else give it another name",
            # What is in an inventory waits; this is what somebody wants of this very run.
            level="" if consented or play_variables()[wanted].get("harmless") else ERROR,
        )
        for name, wanted in sorted(near.items())
        if wanted
    ]


def _problem(kind: str, value: Any) -> Optional[Tuple[str, str]]:
    if kind == "bool":
        if isinstance(value, bool) or str(value).strip().lower() in TRUE_OR_FALSE:
            return None
        return "neither true nor false", "write true or false, or leave it out"
    if kind == "seconds" and not (whole_number(value) or 0) > 0:
        return "not a whole number of seconds", "write a number above 0, such as 3600"
    return None
