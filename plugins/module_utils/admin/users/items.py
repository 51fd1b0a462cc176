# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SCRAM users as values: declared credentials, and the items of a playbook that stand for them. Pure.

Private to this collection. A Trial says whether a stored credential fits the declared password.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.scram import (
    HASHES,
    ITERATIONS,
    ITERATIONS_MAX,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import masked
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

CREATE, CHANGE, DELETE = "create", "change", "delete"
KINDS = (CREATE, CHANGE, DELETE)
ALWAYS, ON_CREATE = "always", "on_create"
STATES = ("present", "absent")
MECHANISMS = tuple(sorted(HASHES))
DEFAULT_MECHANISM = "SCRAM-SHA-512"

# (user, mechanism)
Key = Tuple[str, str]


@dataclass(frozen=True)
class Credential:
    """A declared credential. `iterations` None: 4096 for a new one, an existing one is left alone.

    `always` None: as the policy says.
    """

    user: str
    mechanism: str
    password: str = field(default="", repr=False)
    iterations: Optional[int] = None
    always: Optional[bool] = None

    @property
    def key(self) -> Key:
        """(user, mechanism)."""
        return self.user, self.mechanism


@dataclass(frozen=True)
class Desired:
    """What the items come to: credentials that shall be there, and those that shall not.

    `all_of` names users of whom no credential shall be left.
    """

    present: Tuple[Credential, ...] = ()
    absent: FrozenSet[Key] = frozenset()
    all_of: FrozenSet[str] = frozenset()


@dataclass(frozen=True)
class Trial:
    """Whether a stored credential fits the declared password; None, and why, where nobody can tell."""

    fits: Optional[bool]
    reason: str = ""


# isspace() of C: librdkafka leaves such characters out at the beginning of any text in its configuration.
_CUT_OFF = " \t\n\v\f\r"


def subject_of(key: Key) -> str:
    """A credential in words: the user and the mechanism."""
    return " ".join(key)


# ---------------------------------------------------------------- what people write


def parse_users(items: Sequence[Mapping[str, Any]]) -> Tuple[Desired, Tuple[Problem, ...]]:
    """What the items of `users` come to, and a Problem for each that cannot be."""
    present: Dict[Key, Credential] = {}
    absent: Dict[Key, None] = {}
    all_of: Dict[str, None] = {}
    problems: List[Problem] = []
    for position, item in enumerate(items):
        wrong = _wrong_with(item)
        name = item.get("name")
        if wrong:
            option, reason, remedy = wrong
            where = (name if isinstance(name, str) and name else f"users[{position}]",)
            problems.append(
                Problem(
                    "users.bad_value",
                    reason,
                    remedy,
                    where,
                    option,
                    masked(option, item.get(option)),
                )
            )
            continue
        mechanisms = item.get("mechanisms")
        gone = item.get("state") == "absent"
        keys = [(str(name), each) for each in mechanisms or (DEFAULT_MECHANISM,)]
        if gone and mechanisms is None:
            twice = name in all_of
            against = any(user == name for user, _mechanism in present)
            all_of[str(name)] = None
        else:
            mine, other = (absent, present) if gone else (present, absent)
            twice = any(key in mine for key in keys) or len(set(keys)) < len(keys)
            against = any(key in other for key in keys) or (not gone and name in all_of)
            for key in keys:
                if gone:
                    absent[key] = None
                else:
                    present[key] = _credential(key, item)
        if twice or against:
            check = "users.contradiction" if against else "users.duplicate"
            reason = "it is declared present and absent" if against else "it is declared twice"
            problems.append(Problem(check, reason, "keep one of the two", (str(name),)))
    desired = Desired(tuple(present.values()), frozenset(absent), frozenset(all_of))
    return desired, tuple(problems)


def _credential(key: Key, item: Mapping[str, Any]) -> Credential:
    update = item.get("update_password")
    always = None if update is None else update == ALWAYS
    return Credential(*key, item["password"], item.get("iterations"), always)


def _wrong_with(item: Mapping[str, Any]) -> Optional[Tuple[str, str, str]]:
    """(option, reason, remedy) of an item that cannot be; its password is never quoted."""
    gone = item.get("state") == "absent"
    for option in ("name",) if gone else ("name", "password"):
        value = item.get(option)
        if value is None or value == "":
            return option, "it is missing or empty", f"give a {option}"
        if not isinstance(value, str):
            reason = "YAML reads what is written here as something else than a text"
            return option, reason, "write it in quotes"
    if not gone:
        if not item["name"].isascii():
            reason = "Kafka stores it, and lets nobody log in by SCRAM with a name beyond ASCII"
            return "name", reason, "choose a name of ASCII characters"
        for option in ("name", "password"):
            if item[option][0] in _CUT_OFF:
                reason = (
                    "it begins with a blank, which librdkafka cuts off: "
                    "clients with it cannot log in"
                )
                return option, reason, "choose one that begins with another character"
    if item.get("mechanisms") is not None and not item["mechanisms"]:
        return "mechanisms", "an empty list", f"name {' or '.join(MECHANISMS)}, or leave it out"
    iterations = item.get("iterations")
    if iterations is not None and not ITERATIONS <= iterations <= ITERATIONS_MAX:
        reason = f"{iterations} is not between {ITERATIONS} and {ITERATIONS_MAX}, as Kafka wants it"
        return "iterations", reason, "choose a number in this range, or leave it out"
    return None


# The options of one item.
USER_ITEM = dict(
    # raw: what YAML has read as a number must not become a text silently.
    name=dict(type="raw", required=True),
    password=dict(type="raw", no_log=True),
    mechanisms=dict(type="list", elements="str", choices=list(MECHANISMS)),
    iterations=dict(type="int"),
    update_password=dict(type="str", choices=[ALWAYS, ON_CREATE], no_log=False),
    state=dict(type="str", choices=list(STATES), default="present"),
)
