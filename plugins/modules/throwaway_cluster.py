#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: throwaway_cluster
short_description: Make room for a cluster that is thrown away, or remove it
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Such a cluster is for measurements that cost records. It lies in one directory, with a marker that names the playbook's process.
  - A process stays behind and removes the cluster as soon as the playbook has ended, also by Ctrl-C or a signal. What it could not
    remove, as when the machine went down, is found by the marker and removed by the next one.
  - The playbook C(guarantees.yml) uses it.
options:
  state:
    description:
      - V(prepared) makes the directory, with an inventory of one ZooKeeper server and three brokers, and chooses free ports. It starts nothing.
      - V(absent) kills the processes of the cluster, and deletes the directory.
    type: str
    choices: [prepared, absent]
    required: true
  directory:
    description: The directory. One that no such playbook has made is refused.
    type: path
    required: true
  owner:
    description: Process id of the playbook. As long as it runs, no other one removes the cluster.
    type: int
    required: true
  variables:
    description: Directory C(group_vars) of a local inventory. O(state=prepared) needs it.
    type: path
attributes:
  check_mode:
    description: Does nothing.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
"""

EXAMPLES = r"""
- name: Remove the cluster
  kafkaops.cluster.throwaway_cluster:
    state: absent
    directory: /home/me/.local/share/kafkaops/throwaway
    owner: 4711
"""

RETURN = r"""
ended:
  description: Process ids that were killed.
  returned: always
  type: list
  elements: int
  sample: [4712, 4730]
inventory:
  description: Directory of the inventory.
  returned: with O(state=prepared), not in check mode
  type: str
  sample: /home/me/.local/share/kafkaops/throwaway/inventory
offset:
  description: What to add to the ports of a local inventory, as C(local_port_offset).
  returned: with O(state=prepared), not in check mode
  type: int
  sample: 10040
bootstrap_servers:
  description: Addresses at which the brokers will be.
  returned: with O(state=prepared), not in check mode
  type: list
  elements: str
  sample: ["127.0.0.1:19132"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.throwaway import (
    guard,
    prepare,
    removed,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "required": True, "choices": ["prepared", "absent"]},
            "directory": {"type": "path", "required": True},
            "owner": {"type": "int", "required": True},
            "variables": {"type": "path"},
        },
        required_if=[("state", "prepared", ("variables",))],
        supports_check_mode=True,
    )
    params = module.params
    if module.check_mode:
        module.exit_json(changed=False, ended=[])
    try:
        if params["state"] == "prepared":
            result = prepare(params["directory"], params["owner"], params["variables"])
            guard(params["directory"], params["owner"])
        else:
            result = {"ended": removed(params["directory"], params["owner"])}
    except ProblemError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{params['directory']}: {error}")
    module.exit_json(changed=True, **result)


if __name__ == "__main__":
    main()
