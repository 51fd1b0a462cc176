# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""SELinux contexts of directories: what the policy gives them, what they have, and what has to change.

The policy knows /opt, /etc, /var/lib and /var/log. A directory elsewhere gets a local rule, by semanage,
which is part of the policy's store and survives a relabelling of the machine.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.commands import (
    Run,
    run_or_refuse,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError

# What a directory is for -> the type of its context
TYPES = {"data": "var_lib_t", "logs": "var_log_t", "releases": "usr_t"}
# Everything below a directory, as the policy writes it.
BELOW = "(/.*)?"
# what people escape in such patterns: not the hyphen
SPECIAL = re.compile(r"[.+*?()\[\]{}^$|\\]")
ENFORCE = "/sys/fs/selinux/enforce"


@dataclass(frozen=True)
class Directory:
    """A directory and the type that it and everything below is to have."""

    path: str
    type: str

    @property
    def pattern(self) -> str:
        """The directory and everything below, as a regular expression."""
        return SPECIAL.sub(r"\\\g<0>", self.path.rstrip("/")) + BELOW


@dataclass(frozen=True)
class Plan:
    """`rules`: (add or modify, pattern, type); `relabel`: paths whose files get the policy's type."""

    rules: Tuple[Tuple[str, str, str], ...] = ()
    relabel: Tuple[str, ...] = ()

    def lines(self) -> List[str]:
        """How people read it."""
        told = [f"{verb} {pattern} {kind}" for verb, pattern, kind in self.rules]
        return [*told, *(f"relabel {path}" for path in self.relabel)]


def type_of(context: Optional[str]) -> str:
    """The type within a context (user:role:type:level), "" where there is none."""
    parts = (context or "").strip("\0\n ").split(":")
    return parts[2] if len(parts) > 2 else ""


def local_rules(listed: str) -> Dict[str, str]:
    """pattern -> type of the rules that somebody has added here, from `semanage fcontext -l -C -n`."""
    found = {}
    for line in listed.splitlines():
        match = re.match(r"(\S+)\s+all files\s+(\S+)", line)
        if match:
            found[match[1]] = type_of(match[2])
    return found


def plan(
    wanted: Sequence[Directory],
    by_policy: Mapping[str, str],
    local: Mapping[str, str],
    seen: Mapping[str, str],
) -> Plan:
    """What has to change. Pure.

    `by_policy`: path -> the type that the policy gives it; `local`: the rules added here; `seen`: path -> the
    type that it has, of those that exist.
    """
    rules, relabel = [], []
    for each in wanted:
        if by_policy.get(each.path) != each.type:
            verb = "modify" if each.pattern in local else "add"
            rules.append((verb, each.pattern, each.type))
        if each.path in seen and seen[each.path] != each.type:
            relabel.append(each.path)
    return Plan(tuple(rules), tuple(relabel))


# ---------------------------------------------------------------- the host's


def is_enabled(enforce: str = ENFORCE) -> bool:
    """Whether the kernel looks at contexts at all, enforcing or not."""
    return os.path.exists(enforce)


def context_of(path: str) -> Optional[str]:
    """The context of a file, None where it has none."""
    try:
        return os.getxattr(path, "security.selinux", follow_symlinks=False).decode()
    except OSError:
        return None


def read_plan(
    wanted: Sequence[Directory],
    run: Run,
    semanage: Optional[str],
    context: Callable[[str], Optional[str]] = context_of,
) -> Plan:
    """The plan of this host. Raises ProblemError where it needs a rule, and there is no semanage."""
    by_policy, seen = {}, {}
    for each in wanted:
        by_policy[each.path] = type_of(_must(run, ["matchpathcon", "-n", each.path]))
        if os.path.isdir(each.path):
            seen[each.path] = type_of(context(each.path))
    planned = plan(wanted, by_policy, {}, seen)
    if not planned.rules:
        return planned
    if not semanage:
        reason = f"{planned.rules[0][1]} needs a rule of SELinux, and there is no program semanage"
        remedy = (
            "install the package policycoreutils-python-utils, or set jvm_service_selinux to false "
            "and label the directories yourself"
        )
        raise ProblemError(Problem("host.selinux", reason, remedy, (), "jvm_service_selinux"))
    local = local_rules(_must(run, [semanage, "fcontext", "-l", "-C", "-n"]))
    return plan(wanted, by_policy, local, seen)


def apply(planned: Plan, run: Run, semanage: Optional[str]) -> None:
    """Add the rules, then relabel. Raises ProblemError."""
    for verb, pattern, kind in planned.rules:
        _must(run, [str(semanage), "fcontext", f"--{verb}", "--type", kind, pattern])
    for path in planned.relabel:
        _must(run, ["restorecon", "-R", path])


def _must(run: Run, words: List[str]) -> str:
    return run_or_refuse(run, words, "host.selinux", "jvm_service_selinux")
