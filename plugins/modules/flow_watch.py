#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: flow_watch
short_description: Keep the streaming proof of a cluster running
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Runs the streaming proof under a supervisord of its own, or as a unit of systemd, which starts it again when it fails.
  - The role P(kafkaops.cluster.flow_validation#role) uses it, and the playbook C(watch.yml).
options:
  name:
    description: Name of the program.
    type: str
    required: true
  state:
    description:
      - V(started) starts it, and waits until it has written O(sign). If it runs and was started by other words, or made of other
        files, it is stopped before.
      - V(stopped) ends it with SIGTERM and waits. It is never killed.
      - V(absent) ends it and removes the program or unit, and with it supervisord; other files stay.
    type: str
    choices: [started, stopped, absent]
    default: started
  manager:
    description:
      - What keeps it running. V(supervisor) needs no rights, and does not outlive a reboot.
      - V(systemd) needs root, and its unit is started at boot. It runs as the account that O(directory) belongs to.
    type: str
    choices: [supervisor, systemd]
    default: supervisor
  supervisor_dir:
    description: Directory of its supervisord.
    type: path
    default: ""
  directory:
    description: Directory for C(launch), which starts it, and for C(console.log), what it says.
    type: path
    required: true
  argv:
    description: The command and its arguments.
    type: list
    elements: str
    default: []
  environment:
    description: Variables of its environment.
    type: dict
    default: {}
  made_of:
    description: Files and directories. If one of them has changed since the start, it is started anew.
    type: list
    elements: path
    default: []
  sign:
    description: A file that it replaces while it works.
    type: path
    default: ""
  timeout:
    description: Seconds for a start until there is O(sign), and for a stop.
    type: int
    default: 180
attributes:
  check_mode:
    description: Reports what would change, and changes nothing.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
"""

EXAMPLES = r"""
- name: Watch a cluster
  kafkaops.cluster.flow_watch:
    name: kafkaops-watch-orders
    supervisor_dir: /home/me/watch/supervisor
    directory: /home/me/watch
    argv:
      - python3
      - roles/flow_validation/files/watch.py
      - --bootstrap-servers=127.0.0.1:9092
      - --state=/home/me/watch/state
      - --output=/home/me/watch
    sign: /home/me/watch/status.json
"""

RETURN = r"""
running:
  description: Whether it runs.
  returned: success
  type: bool
sign_age_seconds:
  description: How long ago O(sign) was written. Of a program that dies at each start it grows, although it is to run.
  returned: with O(state=started), where there is one
  type: int
last_lines:
  description: The last lines of C(console.log).
  returned: with RV(sign_age_seconds)
  type: str
"""

import os
import pwd

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance import program
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.managers import (
    MANAGERS,
    service_manager,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

SPEC = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["started", "stopped", "absent"], "default": "started"},
    "manager": {"type": "str", "choices": sorted(MANAGERS), "default": "supervisor"},
    "supervisor_dir": {"type": "path", "default": ""},
    "directory": {"type": "path", "required": True},
    "argv": {"type": "list", "elements": "str", "default": []},
    "environment": {"type": "dict", "default": {}},
    "made_of": {"type": "list", "elements": "path", "default": []},
    "sign": {"type": "path", "default": ""},
    "timeout": {"type": "int", "default": 180},
}


def _owner(directory: str) -> str:
    """The account that a directory belongs to, "" where there is none."""
    try:
        return pwd.getpwuid(os.stat(directory).st_uid).pw_name
    except (OSError, KeyError):
        return ""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=SPEC,
        supports_check_mode=True,
        required_if=[
            ("state", "started", ["argv", "sign"]),
            ("manager", "supervisor", ["supervisor_dir"]),
        ],
    )
    params = module.params
    of_the_machine = MANAGERS[params["manager"]].of_the_machine
    wanted = program.Program(
        *(params["name"], params["directory"], params["argv"], params["environment"]),
        *(params["made_of"], params["sign"], _owner(params["directory"]) if of_the_machine else ""),
    )
    unit = program.unit_text(wanted, "Streaming proof of a Kafka cluster (kafkaops.cluster)")
    manager = service_manager(params["manager"], module.run_command, unit, params["supervisor_dir"])
    try:
        if params["state"] == "started":
            result = program.start(wanted, manager, module.check_mode, params["timeout"])
            result.update(program.sign_of(wanted))
        else:
            remove = params["state"] == "absent"
            result = program.stop(wanted, manager, module.check_mode, params["timeout"], remove)
    except (ServiceError, OSError) as error:
        remedy = ServiceError.REMEDY
        module.fail_json(
            msg=Problem(ServiceError.CHECK, str(error), remedy, (params["name"],)).line()
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
