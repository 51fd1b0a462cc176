# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory orders of EC2: its edge to Ansible.

An action, because only the controller has the variables of all hosts, also of those outside --limit:
a security group without their rules would cut them off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict, Iterable, List, Tuple

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.from_inventory import (
    SHARED,
    VARIABLES,
    Host,
    options_of,
    removal_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.inventory import (
    GROUP_OF,
    Inventory,
    first_line,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

# All that the rules need of a listener. Its address may be one that the machine gets only when it is made.
OF_LISTENER = ("name", "port", "audience")
SSH_PORT = 22


class ActionModule(ActionBase):
    """Read the inventory, return the orders; documented in plugins/modules/aws_order.py."""

    _supports_check_mode = True
    _supports_async = False
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> Dict[str, Any]:
        """Return `orders`, or fail with all refusals at once."""
        result = super().run(tmp, task_vars)
        del tmp
        _validation, arguments = self.validate_argument_spec(
            argument_spec={
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"}
            }
        )
        absent = arguments["state"] == "absent"
        result["changed"] = False
        inventory = Inventory(self._templar, self._loader, task_vars)
        clusters, problems = _clusters(inventory, SHARED.values() if absent else VARIABLES)
        in_play = set(task_vars["ansible_play_hosts_all"])
        orders = []
        for cluster, hosts in sorted(clusters.items()):
            chosen = [each.name for each in hosts if each.name in in_play]
            if not chosen:
                continue
            only = chosen if len(chosen) < len(hosts) else None
            options, refusals = (removal_of if absent else options_of)(cluster, hosts, only)
            orders.append(options)
            problems += refusals
        if problems:
            lines = "\n".join(each.line() for each in problems)
            result.update(failed=True, msg=f"nothing was changed, refused:\n{lines}")
            result["refusals"] = [each.to_dict() for each in problems]
            return result
        result["orders"] = orders
        return result


def _clusters(
    inventory: Inventory, wanted: Iterable[str]
) -> Tuple[Dict[str, List[Host]], List[Problem]]:
    """cluster -> its hosts, and a problem for each host whose variables cannot be evaluated."""
    # In KRaft mode those of the controllers are members, too, of which some may be no brokers.
    members = inventory.members()
    found: Dict[str, List[Host]] = {}
    problems: List[Problem] = []
    for name in sorted(set().union(*members.values())):
        try:
            # of several clusters in one inventory, each may have groups of its own
            names = (*wanted, "kafka_cluster_name", "ansible_port", *GROUP_OF.values())
            settings = inventory.evaluated(name, names, _without_addresses(inventory, name))
        except AnsibleError as error:
            reason = f"its variables cannot be evaluated: {first_line(error)}"
            remedy = "define what the expression needs, or write the value plainly"
            problems.append(Problem("settings.undefined", reason, remedy, (name,)))
            continue
        host = Host(
            name=name,
            groups=tuple(
                str(settings.get(variable) or part)
                for part, variable in GROUP_OF.items()
                if name in members[part]
            ),
            is_broker=name in members["kafka"],
            is_server=name in members["zookeeper"],
            is_controller=name in members["controllers"],
            settings=settings,
            ssh_port=settings.get("ansible_port") or SSH_PORT,
        )
        found.setdefault(str(settings["kafka_cluster_name"]), []).append(host)
    return found, problems


def _without_addresses(inventory: Inventory, name: str) -> Dict[str, Any]:
    """The listeners of a host, as far as they can be known before its machine is made."""
    default = inventory.default("kafka_listeners")
    listeners = inventory.raw_variables(name).get("kafka_listeners", default)
    if not isinstance(listeners, (list, tuple)):
        return {}
    known = [
        (
            {key: item[key] for key in OF_LISTENER if key in item}
            if isinstance(item, Mapping)
            else item
        )
        for item in listeners
    ]
    return {"kafka_listeners": known}
