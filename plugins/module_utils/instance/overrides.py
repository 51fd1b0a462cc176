# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""What was changed in a running process without a restart, as a file beside its configuration.

A change without a restart is a setting in the cluster (an override) that beats the process's own file.
It is noted here before it is made, so that whoever comes next knows which overrides are ours, and
removed from here when it is gone from the cluster. Standard library only, no Ansible: the preflight's
facts read it, too.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Dict, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import json_text

RECORD = "overrides.json"
# Setting -> every value that we may have given it: two of them while a change is under way.
Values = Mapping[str, Tuple[str, ...]]


@dataclass(frozen=True)
class Overrides:
    """Our overrides, and with them the configuration `fingerprint` that a process is as good as started with.

    `pid`, `started_at` name that process; pid 0: none was settled.
    """

    settings: Values = field(default_factory=dict)
    fingerprint: str = ""
    pid: int = 0
    started_at: int = 0

    def concerns(self, pid: int, started_at: int) -> bool:
        """Tell whether it was settled for this process, and not for one that ran before."""
        return bool(self.pid) and (self.pid, self.started_at) == (pid, started_at)

    def text(self) -> str:
        """Return what is written."""
        document = {
            "settings": {key: list(values) for key, values in sorted(self.settings.items())},
            "fingerprint": self.fingerprint,
            "pid": self.pid,
            "started_at": self.started_at,
        }
        return json_text(document)


def noted(known: Values, settings: Mapping[str, str]) -> Dict[str, Tuple[str, ...]]:
    """Return `known` with what is about to be set; what was there may still be."""
    merged = {key: tuple(values) for key, values in known.items()}
    for key, value in settings.items():
        merged[key] = tuple(dict.fromkeys((*merged.get(key, ()), value)))
    return merged


def read_overrides(config_dir: str) -> Optional[Overrides]:
    """Return what the file in a configuration directory says, or None where there is none."""
    try:
        with open(os.path.join(config_dir, RECORD), encoding="utf-8") as handle:
            found = json.load(handle)
        return Overrides(
            {
                str(key): tuple(str(value) for value in values)
                for key, values in found["settings"].items()
            },
            str(found["fingerprint"]),
            int(found["pid"]),
            int(found["started_at"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
