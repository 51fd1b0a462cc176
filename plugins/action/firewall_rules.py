# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports of each host the inventory opens to whom: its edge to Ansible.

An action, because only the controller has the variables of all hosts, also of those outside --limit:
rules without them would cut them off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict, List

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.kafkaops.cluster.plugins.module_utils.firewall.openings import order
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.callers import callers_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.firewall import (
    VARIABLES,
    openings_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import (
    Inventory,
    first_line,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    Member,
    Raw,
    is_wanted,
    read_member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import World
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem


class ActionModule(ActionBase):
    """Read the inventory, return the openings; documented in plugins/modules/firewall_rules.py."""

    _supports_check_mode = True
    _supports_async = False
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Return `openings`, or fail with all refusals at once."""
        result = super().run(tmp, task_vars)
        del tmp
        self.validate_argument_spec(argument_spec={})
        result["changed"] = False
        inventory = Inventory(self._templar, self._loader, task_vars)
        problems: List[Problem] = []
        members = _members(inventory, task_vars, problems)
        openings: Dict[str, List[Dict[str, Any]]] = {}
        if not problems:
            try:
                callers = callers_of(inventory, members, task_vars["groups"])
            except AnsibleError as error:
                result.update(failed=True, msg=f"the hosts of clients: {first_line(error)}")
                return result
            for cluster in World(tuple(members)).clusters:
                found, more = openings_of(cluster, callers)
                problems += more
                for host, ports in found.items():
                    openings[host] = [
                        {
                            "port": each.port,
                            "sources": sorted(each.sources, key=order),
                            "purpose": each.purpose,
                        }
                        for each in ports
                    ]
        if problems:
            lines = "\n".join(dict.fromkeys(each.line() for each in problems))
            result.update(failed=True, msg=f"no port was opened or closed, refused:\n{lines}")
            return result
        result["openings"] = openings
        return result


def _members(
    inventory: Inventory, task_vars: Mapping[str, Any], problems: List[Problem]
) -> List[Member]:
    """The members of all clusters; what cannot be evaluated or read is added to `problems`."""
    found = inventory.members()
    members = []
    for name in sorted(set().union(*found.values())):
        is_broker, is_server = name in found["kafka"], name in found["zookeeper"]
        runs_kafka = is_broker or name in found["controllers"]
        # an expression for brokers may need what a server of ZooKeeper does not have
        wanted = [each for each in VARIABLES if is_wanted(each, runs_kafka, is_server)]
        try:
            settings = inventory.evaluated(name, wanted)
        except AnsibleError as error:
            reason = f"its variables cannot be evaluated: {first_line(error)}"
            remedy = "define what the expression needs, or write the value plainly"
            problems.append(Problem("settings.undefined", reason, remedy, (name,)))
            continue
        quorum = task_vars["groups"].get(str(settings.get("kafka_controllers_group")), [])
        raw = Raw(
            *(name, is_broker, is_server, settings),
            controllers=tuple(map(str, quorum)),
        )
        member, findings = read_member(raw)
        problems += findings
        members.append(member)
    return members
