# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Options of a JVM, divided into those that anybody may see and those that hold a password.

A command line is seen by every user of a host (`ps`). Java reads options from a file, too (`@file`):
those with a secret go there, and the file belongs to the service's account.
"""

from __future__ import annotations

import re
from typing import Iterable, List

from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    masked_text,
    mentions_secret,
)

COLLECTOR = re.compile(r"-XX:\+Use\w+GC$")


def holds_secret(option: str) -> bool:
    """Tell whether the option has a part that must not be seen.

    The whole text is searched, since an agent's own settings stand inside its option
    (`-javaagent:a.jar=password=x`).
    """
    return mentions_secret(option) or masked_text(option) != option


def chooses_collector(option: str) -> bool:
    """Tell whether the option chooses a garbage collector. Java refuses two."""
    return bool(COLLECTOR.match(option))


def public_options(options: Iterable[str]) -> List[str]:
    """Return the options without a secret, in their order."""
    return [str(option) for option in options if not holds_secret(str(option))]


def secret_options_text(options: Iterable[str]) -> str:
    """Return the text of an argument file (`java @file`) with the options that hold a secret.

    Empty if there is none. Each option is quoted, since in such a file a blank divides options, and
    `#` begins a comment.
    """
    lines = []
    for option in map(str, options):
        if holds_secret(option):
            quoted = option.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'"{quoted}"\n')
    return "".join(lines)
