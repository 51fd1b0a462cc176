# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drill does to the process of an instance on its host, and the note that it leaves there.

Private to this collection. Standard library only: managed hosts have nothing else.
"""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any, Dict

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    json_text,
    read_text,
    remove,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import (
    recorded,
    start_ticks,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import refusal
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

NOTE = "drill.json"
KILL_SECONDS = 10.0


def carry_out(state: str, name: str, state_dir: str, drill: str) -> Dict[str, Any]:
    """Do what `state` says; returns the module's result.

    Raises ProblemError where there is no process to kill, and OSError where the note cannot be written.
    """
    path = os.path.join(state_dir, NOTE)
    result: Dict[str, Any] = {"changed": False}
    if state in ("noted", "killed"):
        write_atomically(path, json_text({"drill": drill}))
    if state == "killed":
        result.update(changed=True, at_ms=_kill(name, state_dir))
    if state == "forgotten":
        remove(path)
    return {**result, "note": _noted(path), "running": recorded(state_dir) is not None}


def _kill(name: str, state_dir: str) -> int:
    """Send SIGKILL and wait until the process is gone; returns when it was sent."""
    process = recorded(state_dir)
    if process is None:
        raise refusal(
            "drill.no_process", f"drill={name}", f"{name} does not run", "run playbooks/start.yml"
        )
    ticks = start_ticks(process.pid)
    at_ms = int(time.time() * 1000)
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: start_ticks(process.pid) != ticks, KILL_SECONDS)
    return at_ms


def _noted(path: str) -> str:
    text = read_text(path)
    try:
        return str(json.loads(text or "{}").get("drill") or "")
    except ValueError:
        return "unknown"
