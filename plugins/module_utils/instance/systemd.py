# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""systemd as service manager: real hosts."""

from __future__ import annotations

import os
from typing import Callable, Dict, List, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import write_atomically
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    Attempt,
    ServiceError,
    ServiceManager,
    holds,
)

UNIT_DIR = "/etc/systemd/system"
Run = Callable[[List[str]], Tuple[int, str, str]]


class Systemd(ServiceManager):
    """Units of this machine, driven by systemctl.

    `run` is AnsibleModule.run_command: words to (exit code, output, errors). `unit` is the unit's
    text: the role renders it.
    """

    of_the_machine = True
    # It would open the file as root, also what a link there leads to.
    keeps_console = False
    runs_after_exit = True
    wakes_what_it_stops = True

    def __init__(self, run: Run, unit: str = "", unit_dir: str = UNIT_DIR):
        self._run = run
        self._unit = unit
        self._unit_dir = unit_dir

    def _systemctl(self, *words: str) -> str:
        code, out, err = self._run(["systemctl", *words])
        if code != 0:
            raise ServiceError(f"systemctl {' '.join(words)}: {(err or out).strip()}")
        return out

    def _show(self, name: str, *properties: str) -> Dict[str, str]:
        out = self._systemctl("show", f"{name}.service", "--property", ",".join(properties))
        return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)

    def definition(self, name: str, command: str, console: str) -> str:
        """Return the unit's text, which the role has rendered for this command and console."""
        return self._unit

    def install(self, name: str, definition: str) -> None:
        """Write the unit and enable it at boot."""
        path = os.path.join(self._unit_dir, f"{name}.service")
        if not holds(path, definition):
            write_atomically(path, definition, mode=0o644)
        self._systemctl("daemon-reload")
        self._systemctl("enable", "--quiet", f"{name}.service")

    def start(self, name: str) -> None:
        """Queue the start; earlier failures are forgotten, so that they use up no start limit."""
        self._run(["systemctl", "reset-failed", f"{name}.service"])
        self._systemctl("start", "--no-block", f"{name}.service")

    def stop(self, name: str) -> None:
        """Queue the stop. A unit that nobody has installed runs nothing."""
        if self._show(name, "LoadState").get("LoadState") != "not-found":
            self._systemctl("stop", "--no-block", f"{name}.service")

    def attempt(self, name: str) -> Attempt:
        """Return how far the unit's start is. A unit whose job waits for others is inactive, too."""
        values = self._show(name, "NRestarts", "ActiveState", "Job")
        queued = values.get("Job", "0") not in ("", "0")
        ended = values.get("ActiveState") in ("failed", "inactive")
        return Attempt(int(values.get("NRestarts") or 0), ended and not queued)

    def supervises(self, name: str, pid: int) -> bool:
        """Tell whether `pid` is the unit's main process."""
        return self._show(name, "MainPID").get("MainPID") == str(pid)

    def wants_running(self, name: str) -> bool:
        """Tell whether the unit runs, is being stopped, or is about to be started."""
        values = self._show(name, "ActiveState", "Job")
        busy = ("active", "activating", "reloading", "refreshing", "deactivating", "maintenance")
        return values.get("ActiveState") in busy or values.get("Job", "0") not in ("", "0")

    def stopping(self, name: str) -> bool:
        """Tell whether the unit is being stopped."""
        return self._show(name, "ActiveState").get("ActiveState") == "deactivating"

    def remove(self, name: str) -> None:
        """Disable the unit and delete its file."""
        path = os.path.join(self._unit_dir, f"{name}.service")
        if os.path.exists(path):
            self._run(["systemctl", "disable", "--quiet", f"{name}.service"])
            os.unlink(path)
            self._systemctl("daemon-reload")
