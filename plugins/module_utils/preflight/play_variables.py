# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The variables that a playbook reads from its command line: are they what they are meant to be? Pure.

A playbook takes every text that it does not know for false. So `-e cancel=ture` would begin the moves that it was to
end, and with `promve` for `prove` it would end green without any proof. The list is `meta/play_variables.yml`. They
count by the command line alone (the lookup `extra_var`): hosts may have variables of these names for their own ends.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import (
    AbstractSet,
    Any,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from ansible.module_utils.common.yaml import yaml_load

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.variables import declared
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ERROR, Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import whole_number
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import shown

_ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
_FILE = os.path.join(_ROOT, "meta/play_variables.yml")
_PLAYBOOKS = os.path.join(_ROOT, "playbooks")
_QUALIFIED = "kafkaops.cluster."
# What the filter `bool` of every ansible-core that this collection supports reads as it is meant.
TRUE_OR_FALSE = ("true", "false", "yes", "no", "on", "off", "1", "0")
# Ansible's own, and what benchmark.yml reads by its beginning, and asks about itself.
BY_BEGINNING = ("ansible_", "benchmark_")
# The playbook that does nothing but look at an inventory, before others run.
_LOOK = "preflight"


@functools.lru_cache(maxsize=None)
def play_variables() -> Mapping[str, Mapping[str, Any]]:
    """variable -> {type, playbooks, harmless}, in the order of the file."""
    with open(_FILE, encoding="utf-8") as source:
        return yaml_load(source)


@dataclass(frozen=True)
class Running:
    """The playbooks of this collection that a command names, and whether it names others, which may import them."""

    names: FrozenSet[str]
    others: bool

    def read(self, name: str) -> bool:
        """Whether one of them reads this play variable; of others nobody knows."""
        return self.others or bool(self.names & set(play_variables()[name]["playbooks"]))

    def refuse(self, name: str) -> List[str]:
        """Those of them that would do more than whoever gives this play variable wants."""
        return sorted(self.names & set(play_variables().get(name, {}).get("refused_by", ())))


def running(playbooks: Any) -> Running:
    """What runs, by the arguments of ansible-playbook: paths, or names such as kafkaops.cluster.site."""
    given = playbooks if isinstance(playbooks, (list, tuple)) else ()
    ours = [_ours(str(each)) for each in given]
    return Running(frozenset(each for each in ours if each), not ours or None in ours)


def _ours(playbook: str) -> Optional[str]:
    if playbook.startswith(_QUALIFIED) and not os.path.exists(playbook):
        return os.path.splitext(playbook[len(_QUALIFIED) :])[0]
    path = os.path.realpath(playbook)
    if os.path.dirname(path) == _PLAYBOOKS or path == os.path.join(_ROOT, "site.yml"):
        return os.path.splitext(os.path.basename(path))[0]
    return None


def check_values(
    given: Mapping[str, Any], hosts: Sequence[str], runs: Running
) -> Iterator[Problem]:
    """Play variables whose values are not of their type; `given`: name -> value of those that are set.

    An empty one is not set: forms and surveys give what nobody has filled in.
    """
    for name, option in play_variables().items():
        if given.get(name) in (None, "") or not runs.read(name):
            continue
        problem = _problem(option["type"], given[name])
        if problem:
            yield found("settings.bad_value", hosts, name, shown(given[name]), *problem)


def near_names(given: Sequence[str], runs: Running) -> Dict[str, str]:
    """name from the command line -> the play variable of this run that is one slip away from it."""
    read = [name for name in play_variables() if runs.read(name)]
    near = {
        name: next((each for each in read if _one_slip(name, each)), "")
        for name in given
        if not (name in play_variables() or name in declared() or name.startswith(BY_BEGINNING))
    }
    return {name: wanted for name, wanted in near.items() if wanted}


def check_names(
    near: Mapping[str, str], hosts: Sequence[str], consented: bool, runs: Running
) -> Iterator[Problem]:
    """Names that `near_names` has found: the run would do without what they mean."""
    for name, wanted in sorted(near.items()):
        # What is in an inventory waits; this is what somebody wants of this very run. A playbook of somebody's own may
        # read the name itself.
        mild = consented or runs.others or play_variables()[wanted].get("harmless")
        yield found(
            "settings.unknown_variable",
            hosts,
            name,
            "...",
            f"no playbook of this collection reads it, and it is nearly {wanted}",
            f"write {wanted} if that is meant, else give it another name",
            level="" if mild else ERROR,
        )


def check_unread(
    given: AbstractSet[str], hosts: Sequence[str], consented: bool, runs: Running
) -> Iterator[Problem]:
    """Play variables that narrow other playbooks down, and not this one, which would act on everything."""
    for name in sorted(play_variables().keys() & given):
        for playbook in runs.refuse(name):
            yield found(
                "settings.no_effect",
                hosts,
                name,
                "...",
                f"{playbook}.yml does not read it, and would not be about that {name} alone",
                "leave it out if that is meant, or take a playbook that reads it: "
                + ", ".join(
                    f"playbooks/{each}.yml" for each in play_variables()[name]["playbooks"]
                ),
                level="" if consented else ERROR,
            )


def counting_nowhere(given: AbstractSet[str], runs: Running) -> List[str]:
    """The play variables that this run would read if they were given.

    Where it is a mere look at the inventory, those without which something unwanted is done.
    """
    return [
        name
        for name, option in play_variables().items()
        if name not in given
        and (runs.read(name) or (_LOOK in runs.names and not option.get("harmless")))
    ]


def check_elsewhere(elsewhere: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Play variables that hosts have: `elsewhere` is name -> hosts. Whoever has set them may count on them."""
    for name, hosts in sorted(elsewhere.items()):
        yield found(
            "settings.only_given",
            hosts,
            name,
            "...",
            "playbooks take it from the command line alone: what an inventory, or a playbook that imports "
            "them, says has no effect",
            f"give it with -e {name}=... where it is meant; a variable of your own is better called something else",
        )


def _one_slip(name: str, wanted: str) -> bool:
    """Whether one letter is missing, too many or another one, or two neighbours have changed places."""
    while name and wanted and name[0] == wanted[0]:
        name, wanted = name[1:], wanted[1:]
    while name and wanted and name[-1] == wanted[-1]:
        name, wanted = name[:-1], wanted[:-1]
    return max(len(name), len(wanted)) == 1 or (len(name) == 2 and name == wanted[::-1])


def _problem(kind: str, value: Any) -> Optional[Tuple[str, str]]:
    if kind == "bool":
        if isinstance(value, bool) or str(value).strip().lower() in TRUE_OR_FALSE:
            return None
        return "neither true nor false", "write true or false, or leave it out"
    if kind == "seconds" and (whole_number(value) or 0) <= 0:
        return "not a whole number of seconds", "write a number above 0, such as 3600"
    return None
