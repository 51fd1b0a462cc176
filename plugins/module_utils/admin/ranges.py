# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options whose value cannot be.

Private to this collection. Pure.
"""

from __future__ import annotations

import re
from typing import Any, Callable, List, Pattern, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# Of `operation_timeout`, where no records are copied.
OPERATION_MAX_SECONDS = 86400


def out_of_range(option: str, value: Any, reason: str, remedy: str) -> AdminError:
    """Return the error to raise for an option whose value is outside what can be."""
    return AdminError(Problem("options.range", reason, remedy, setting=option, value=value))


def checked_seconds(option: str, value: float, most: float) -> float:
    """A number of seconds of an option; AdminError unless it is above 0 and at most `most`."""
    if not 0 < value <= most:
        reason = f"must be more than 0 and at most {most:g} seconds"
        remedy = f"choose a number of seconds up to {most:g}"
        raise out_of_range(option, f"{value:g}", reason, remedy)
    return value


def chooser(
    names: Sequence[str], patterns: Sequence[str], option: str = "patterns"
) -> Callable[[str], bool]:
    """Whether a topic is asked for by its name, or by an expression over its whole name.

    AdminError for what is not a regular expression.
    """
    compiled: List[Pattern[str]] = []
    for text in patterns:
        try:
            compiled.append(re.compile(text))
        except re.error as error:
            reason = f"not a regular expression, {error}"
            raise out_of_range(option, text, reason, "correct it") from error
    named = frozenset(names)
    return lambda name: name in named or any(each.fullmatch(name) for each in compiled)
