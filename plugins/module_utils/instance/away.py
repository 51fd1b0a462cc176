# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The note that a run has taken an instance away for a while: whoever waits beside it starts the instance again.

Standard library only. The note goes when the instance runs again, or when another run decides that it stays away.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import read_text, remove

NOTE = "drill.json"


def note_of(state_dir: str) -> Optional[Dict[str, Any]]:
    """Return what the note says, empty where there is none; None where it cannot be read."""
    try:
        told = json.loads(read_text(os.path.join(state_dir, NOTE)) or "{}")
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def leave_away(state_dir: str, run: str) -> None:
    """Remove the note of another run than this one, which decides that the instance does not run. Raises OSError."""
    note = note_of(state_dir)
    if note is None or (note and str(note.get("run") or "") != run):
        remove(os.path.join(state_dir, NOTE))
