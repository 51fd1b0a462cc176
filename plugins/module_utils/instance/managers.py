# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The service managers that there are, by the names that variables and options have for them."""

from __future__ import annotations

from typing import Dict, Type

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceManager,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.supervisor import Supervisor
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.systemd import Run, Systemd

MANAGERS: Dict[str, Type[ServiceManager]] = {"systemd": Systemd, "supervisor": Supervisor}


def service_manager(name: str, run: Run, unit: str, supervisor_dir: str) -> ServiceManager:
    """Return the service manager `name`; KeyError for one that there is not.

    `run` is AnsibleModule.run_command, `unit` the text of a unit of systemd, `supervisor_dir` the directory of
    a supervisord; each takes what it needs.
    """
    chosen = MANAGERS[name]
    return Systemd(run, unit) if chosen is Systemd else Supervisor(supervisor_dir)
