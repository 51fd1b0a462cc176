# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that people write: whether Kafka takes them, which collide, and which was meant.

Private to this collection. Pure.
"""

from __future__ import annotations

import difflib
import re
from typing import Any, Iterable, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.wording import shown

NAME_MAX = 249
_NAME = re.compile(r"[A-Za-z0-9._-]+\Z")


def name_problem(name: Any) -> Optional[str]:
    """Why Kafka would not accept a topic name, or why it is unclear which one is meant; or None."""
    if name is None or name == "":
        return "a topic needs a name"
    if not isinstance(name, str):
        return unclear_name(name)
    if name in (".", ".."):
        return "`.` and `..` cannot be names, they would be directories"
    if len(name) > NAME_MAX:
        return f"the name has {len(name)} characters, Kafka allows {NAME_MAX}"
    if not _NAME.match(name):
        wrong = sorted({sign for sign in name if not _NAME.match(sign)})
        signs = " ".join(repr(sign) for sign in wrong)
        return f"the name contains {signs}, Kafka allows letters, digits and . _ -"
    return None


def unclear_name(name: Any) -> str:
    """Why it is unclear which name is meant by what is not a text."""
    what = "boolean" if isinstance(name, bool) else "number"
    if not isinstance(name, (bool, int, float)):
        return f"a name must be text, not {type(name).__name__}"
    return f"YAML reads what is written here as the {what} {shown(name)}, as it does with yes, 0123 and 12:30"


def collision_key(name: str) -> str:
    """Names with the same key collide: metric names replace `.` by `_`."""
    return name.replace(".", "_")


def did_you_mean(name: Any, known: Iterable[str], count: int = 1) -> str:
    """`, did you mean ...` for the known names nearest to this one, or an empty string."""
    close = difflib.get_close_matches(str(name), sorted(known), n=count, cutoff=0.6)
    return f", did you mean {' or '.join(close)}" if close else ""
