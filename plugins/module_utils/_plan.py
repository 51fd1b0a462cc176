# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module is about to do: computed once, shown, and then done.

Private to this collection. `Plan` is the only source of `changed`, of the diff and of the returned
`plan`, so check mode and a real run cannot disagree. No I/O, no clock, no Ansible.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Mapping


class AdminError(Exception):
    """The one error that crosses the layers; `_runner` turns it into fail_json.

    `message` is a sentence for people; `details` are extra return values.
    """

    def __init__(self, message, **details):
        super().__init__(message)
        self.message = message
        self.details = details


@dataclass(frozen=True)
class Refusal:
    """Something that will not be done, why, and what to do instead.

    `check` is the stable id (`partitions.decrease`); `setting` the input that led here, as
    `name=value`.
    """

    check: str
    subject: str
    reason: str
    remedy: str
    setting: str = ""

    def __str__(self):
        setting = f"{self.setting}: " if self.setting else ""
        return f"[{self.check}] {self.subject}: {setting}{self.reason}. Remedy: {self.remedy}."

    def to_dict(self):
        """As returned to the playbook."""
        return {
            "check": self.check,
            "subject": self.subject,
            "setting": self.setting,
            "reason": self.reason,
            "remedy": self.remedy,
        }


@dataclass(frozen=True)
class Change:
    """One change of one subject: `before` and `after` name exactly the properties that differ.

    A property that is absent on one side is None there. `note` is for people: what is at stake.
    """

    kind: str
    subject: str
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def to_dict(self):
        """As returned to the playbook."""
        return {
            "kind": self.kind,
            "subject": self.subject,
            "before": dict(self.before),
            "after": dict(self.after),
            "note": self.note,
        }


@dataclass(frozen=True)
class Failure:
    """One subject that the cluster turned down, in its own words."""

    subject: str
    error: str
    kind: str = ""

    def to_dict(self):
        """As returned in `failed_items`."""
        return {"name": self.subject, "error": self.error, "kind": self.kind}


@dataclass(frozen=True)
class Plan:
    """All changes in the order in which they are applied, and all refusals and warnings."""

    changes: tuple = ()
    refusals: tuple = ()
    warnings: tuple = ()

    def __bool__(self):
        return bool(self.changes)

    def diff(self):
        """`before` and `after` as sorted YAML text, of the subjects that change only."""
        sides = ({}, {})
        notes = {}
        for change in self.changes:
            for side, values in zip(sides, (change.before, change.after)):
                if values:
                    side.setdefault(change.subject, {}).update(values)
            if change.note:
                notes.setdefault(change.subject, []).append(change.note)
        after = sides[1]
        for subject, remarks in notes.items():
            after.setdefault(subject, {})["# at stake"] = "; ".join(remarks)
        return {"before": render(sides[0]), "after": render(after)}

    def to_dict(self):
        """As returned to the playbook."""
        return {
            "changes": [change.to_dict() for change in self.changes],
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }


_PLAIN = re.compile(r"[A-Za-z0-9_./]([A-Za-z0-9_./ ,:%()\-]*[A-Za-z0-9_./%()\-])?\Z")


def _scalar(value):
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    text = str(value)
    # A colon followed by a blank would make it a mapping.
    return text if _PLAIN.match(text) and ": " not in text else json.dumps(text)


def render(tree, indent=0):
    """Nested mappings of scalars and lists as sorted YAML text.

    Written here because the diff must not depend on a YAML library on the host.
    """
    lines = []
    for key in sorted(tree, key=str):
        value = tree[key]
        blank = "  " * indent
        if str(key).startswith("# "):
            lines.append(f"{blank}{key}: {value}\n")
            continue
        name = _scalar(key)
        if isinstance(value, Mapping):
            if value:
                lines.append(f"{blank}{name}:\n{render(value, indent + 1)}")
        elif isinstance(value, (list, tuple)):
            items = ", ".join(_scalar(item) for item in value)
            lines.append(f"{blank}{name}: [{items}]\n")
        else:
            lines.append(f"{blank}{name}: {_scalar(value)}\n")
    return "".join(lines)
