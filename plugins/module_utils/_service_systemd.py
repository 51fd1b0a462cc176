# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd as service manager: real hosts.

Private to the collection: names may change without notice.
"""

from __future__ import annotations

import os

from ansible_collections.kafkaops.cluster.plugins.module_utils._service_supervisor import (
    ServiceError,
    write_atomically,
)

UNIT_DIR = "/etc/systemd/system"


class Systemd:
    """Units of this machine, driven by systemctl; `run` is AnsibleModule.run_command."""

    def __init__(self, run, unit_text, unit_dir=UNIT_DIR):
        self._run = run
        self._unit_text = unit_text
        self._unit_dir = unit_dir

    def _systemctl(self, *words):
        code, out, err = self._run(["systemctl", *words])
        if code != 0:
            raise ServiceError("systemctl %s: %s" % (" ".join(words), (err or out).strip()))
        return out

    def _show(self, name, *properties):
        dummy, out, dummy = self._run(
            ["systemctl", "show", name + ".service", "--property", ",".join(properties)]
        )
        return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)

    def supervises(self, name, pid):
        """Tell whether `pid` is the unit's main process."""
        return self._show(name, "MainPID").get("MainPID") == str(pid)

    def wants_running(self, name):
        """Tell whether the unit runs or is about to be started again."""
        state = self._show(name, "ActiveState").get("ActiveState")
        return state in ("active", "activating", "reloading", "deactivating")

    def unit(self, name, command, console, stop_timeout):
        """Return the unit's text, which the role has rendered."""
        return self._unit_text

    def install(self, name, text):
        """Make `text` the unit `name` and enable it at boot."""
        path = os.path.join(self._unit_dir, name + ".service")
        write_atomically(path, text, mode=0o644)
        self._systemctl("daemon-reload")
        self._systemctl("enable", "--quiet", name + ".service")

    def start(self, name):
        """Start the unit without waiting for readiness; earlier failures are forgotten."""
        self._run(["systemctl", "reset-failed", name + ".service"])
        self._systemctl("start", "--no-block", name + ".service")

    def stop(self, name):
        """Ask for a controlled stop without waiting for the exit."""
        self._systemctl("stop", "--no-block", name + ".service")

    def failures(self, name):
        """Return a number that grows with each failed start, and whether the manager has given up."""
        values = self._show(name, "NRestarts", "ActiveState")
        return int(values.get("NRestarts") or 0), values.get("ActiveState") in (
            "failed",
            "inactive",
        )

    def remove(self, name):
        """Forget a stopped unit."""
        path = os.path.join(self._unit_dir, name + ".service")
        if os.path.exists(path):
            self._run(["systemctl", "disable", "--quiet", name + ".service"])
            os.unlink(path)
            self._systemctl("daemon-reload")
