#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module zookeeper_data_copy."""

from __future__ import annotations

DOCUMENTATION = r"""
module: zookeeper_data_copy
short_description: Copy the data that a ZooKeeper server would start from
description:
  - Copies the newest two snapshots, and the transaction logs after the older of them, into a directory beside the data. The server
    may run meanwhile.
  - The copy is complete or not there, also after a crash. One of the same name is replaced.
  - It is refused where less than 128 MiB would stay free on the disk of O(data_dir), two transaction logs of the server.
version_added: 0.1.0
author:
  - kafkaops.cluster contributors (@kafkaops)
options:
  data_dir:
    description: The server's C(dataDir). The copy is made in it.
    type: path
    required: true
  data_log_dir:
    description: The server's C(dataLogDir), if it has one.
    type: path
  name:
    description: Name of the copy's directory.
    type: str
    required: true
attributes:
  check_mode:
    description: Copies nothing, and says that it would.
    support: full
  diff_mode:
    description: Files are not shown.
    support: none
"""

EXAMPLES = r"""
- name: Copy what the server would start from
  kafkaops.cluster.zookeeper_data_copy:
    data_dir: /var/lib/zookeeper
    name: before-3.9.5
"""

RETURN = r"""
path:
  description: The copy, empty where the server has no data.
  type: str
  returned: not in check mode
  sample: /var/lib/zookeeper/before-3.9.5
files:
  description: Copied files and their bytes.
  type: dict
  returned: not in check mode
  sample: {snapshot.100000012: 4711, log.100000013: 67108880}
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.zookeeper_data import copy
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "data_dir": {"type": "path", "required": True},
            "data_log_dir": {"type": "path"},
            "name": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    params = module.params
    if module.check_mode:
        module.exit_json(changed=True)
    try:
        files = copy(
            params["data_dir"], params["data_log_dir"] or params["data_dir"], params["name"]
        )
    except OSError as error:
        problem = Problem(
            "ensemble.no_copy",
            f"the server's data could not be copied: {error}",
            "make room, and run the playbook again; the server was not touched",
            (params["data_dir"],),
        )
        module.fail_json(msg=problem.line(), problem=problem.to_dict())
    path = os.path.join(params["data_dir"], params["name"]) if files else ""
    module.exit_json(changed=bool(files), path=path, files=files)


if __name__ == "__main__":
    main()
