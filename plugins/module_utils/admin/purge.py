# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking away what is there and not declared: patterns over names, and a limit. Pure.

Private to this collection. Nothing is purged by default, and never more than was agreed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import some


@dataclass(frozen=True)
class Purge:
    """Delete what is not declared: regular expressions over whole names, and a limit."""

    patterns: Tuple[str, ...]
    maximum: int


def purge_from(option: Optional[Mapping[str, Any]]) -> Optional[Purge]:
    """The Purge of a module's option `purge`; AdminError for a pattern that cannot be one."""
    if not option:
        return None
    return Purge(checked_patterns(option["patterns"], "patterns", ("purge",)), option["maximum"])


def checked_patterns(
    texts: Sequence[str], setting: str, subjects: Tuple[str, ...] = ()
) -> Tuple[str, ...]:
    """The texts, each a regular expression; AdminError for one that is none."""
    for text in texts:
        try:
            re.compile(text)
        except re.error as error:
            reason = f"not a regular expression, {error}"
            raise AdminError(
                Problem("purge.pattern", reason, "correct it", subjects, setting, text)
            ) from error
    return tuple(texts)


def patterns_from(setting: str, texts: Optional[Sequence[str]]) -> Optional[Tuple[str, ...]]:
    """Regular expressions of an option that may be left out; AdminError for a text that is none."""
    return None if texts is None else checked_patterns(texts, setting)


def purged(
    purge: Optional[Purge], undeclared: Iterable[str], what: str
) -> Tuple[List[str], List[Problem]]:
    """(names that go, sorted; refusals) of those that are there and not declared.

    `what` is the word for several of them. Where more match than the maximum, none goes.
    """
    if purge is None:
        return [], []
    patterns = [re.compile(pattern) for pattern in purge.patterns]
    names = sorted(name for name in undeclared if any(each.fullmatch(name) for each in patterns))
    if len(names) <= purge.maximum:
        return names, []
    return [], [
        Problem(
            "purge.maximum",
            f"{len(names)} {what} match and are not declared ({some(names)})",
            f"raise purge maximum to {len(names)} or narrow the patterns",
            ("purge",),
            "maximum",
            str(purge.maximum),
        )
    ]


# The option of every module that purges; its documentation is in the modules.
PURGE_OPTION = dict(
    type="dict",
    options=dict(
        patterns=dict(type="list", elements="str", required=True),
        maximum=dict(type="int", required=True),
    ),
)
