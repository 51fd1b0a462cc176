# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""A problem and its remedy: the one value for everything that is refused, found or failed.

Every refusal, finding and error with a remedy prints as one line of this form, and outside checks
rely on it: `[check.id] SUBJECT: SETTING=VALUE: reason. Remedy: ...`.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any, Dict, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    masked_text,
    masked_url,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import shown

ERROR = "error"
WARNING = "warning"
NOTE = "note"
LEVELS = (ERROR, WARNING, NOTE)


def _printable(character: str) -> str:
    """A character as a terminal may get it: what moves a cursor or changes colours is written as an escape."""
    if unicodedata.category(character) in ("Cc", "Cf", "Cs"):
        return character.encode("unicode_escape").decode()
    return character


@dataclass(frozen=True)
class Problem:
    """One problem, ready to be printed.

    `check` is its stable id, as in the catalogue (`identity.duplicate_myid`); `subjects` name the
    hosts, topics or files that it concerns; `setting` and `value` are the input that led to it
    (`value` may be of any type, and becomes text as people write it; a secret is masked before it gets here,
    but for the password of a URL, which every problem hides); `reason` and
    `remedy` are sentences without their full stop.
    """

    check: str
    reason: str
    remedy: str
    subjects: Tuple[str, ...] = ()
    setting: str = ""
    value: Any = ""
    level: str = ERROR

    def __post_init__(self) -> None:
        if not isinstance(self.value, str):
            object.__setattr__(self, "value", shown(self.value))
        # Whoever refuses an address shows it, and one may have a password.
        for name in ("value", "reason", "remedy"):
            text = getattr(self, name)
            if isinstance(text, str):
                object.__setattr__(self, name, masked_url(text))

    def line(self) -> str:
        """The problem on one line, in the form above; what is empty is left out."""
        setting = f"{self.setting}={self.value}" if self.value else self.setting
        head = ": ".join(part for part in (", ".join(self.subjects), setting) if part)
        remedy = self.remedy if self.remedy.endswith((".", "?", "`")) else f"{self.remedy}."
        text = f"[{self.check}] {head}{': ' if head else ''}{self.reason.rstrip('.')}. Remedy: {remedy}"
        return "".join(map(_printable, " ".join(text.split())))

    __str__ = line

    def to_dict(self) -> Dict[str, Any]:
        """As returned to the playbook and as written into reports."""
        return {
            "check": self.check,
            "level": self.level,
            "subjects": list(self.subjects),
            "setting": self.setting,
            "value": self.value,
            "reason": self.reason,
            "remedy": self.remedy,
            "line": self.line(),
        }


class ProblemError(Exception):
    """A problem that ends the work at hand; the edge to Ansible turns it into fail_json."""

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem.line()


def refusal(check: str, setting: str, reason: str, remedy: str) -> ProblemError:
    """Return the error to raise for input that is refused; `setting` is NAME=VALUE.

    Passwords in setting and reason (those of a URL, say) are hidden.
    """
    name, _equals, value = masked_text(setting).partition("=")
    return ProblemError(
        Problem(check=check, reason=masked_text(reason), remedy=remedy, setting=name, value=value)
    )
