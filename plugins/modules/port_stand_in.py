#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: port_stand_in
short_description: Listen on the ports of what does not run yet, for a moment
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Starts a process that listens on ports of this host and says to everybody who connects which host it is. So
    P(kafkaops.cluster.port_probe#module) sees from other hosts whether they get through, before a broker is started.
  - The process ends when it is told to, and by itself after O(seconds). What a killed run has left on such a port is ended first.
options:
  state:
    description: V(present) starts the process, V(absent) ends it.
    type: str
    choices: [present, absent]
    default: present
  name:
    description: What to call this host. Required with O(state=present).
    type: str
  ports:
    description: The ports to listen on.
    type: list
    elements: dict
    default: []
    suboptions:
      port:
        description: The port.
        type: int
        required: true
      bind:
        description: The address to listen on; empty for all of them.
        type: str
        default: ""
  process:
    description: The process to end, as RV(process) of O(state=present).
    type: dict
  seconds:
    description: When the process ends by itself.
    type: float
    default: 60
attributes:
  check_mode:
    description: Not supported; a run in check mode listens nowhere.
    support: none
  diff_mode:
    description: There is nothing to show.
    support: none
seealso:
  - module: kafkaops.cluster.port_probe
"""

EXAMPLES = r"""
- name: Listen in the broker's place
  kafkaops.cluster.port_stand_in:
    name: kafka-1
    ports: [{port: 9092}]
  register: stand_in
  changed_when: false

- name: Stop listening
  kafkaops.cluster.port_stand_in:
    state: absent
    process: "{{ stand_in.process }}"
  changed_when: false
"""

RETURN = r"""
process:
  description: The process that listens, null where there is no port to listen on.
  returned: with O(state=present)
  type: dict
  sample: {pid: 4711, start_ticks: 815}
listening:
  description: The ports on which it listens.
  returned: with O(state=present)
  type: list
  elements: int
  sample: [9092]
refused:
  description: The ports on which it cannot listen, and why.
  returned: with O(state=present)
  type: list
  elements: dict
  sample: [{port: 9093, reason: Address already in use}]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.stand_in import (
    StillThere,
    end,
    stand_in,
)

PORT = dict(port=dict(type="int", required=True), bind=dict(type="str", default=""))
ARGUMENTS = dict(
    state=dict(type="str", choices=["present", "absent"], default="present"),
    name=dict(type="str"),
    ports=dict(type="list", elements="dict", options=PORT, default=[]),
    process=dict(type="dict"),
    seconds=dict(type="float", default=60),
)


def main() -> None:
    """Start the process, or end it."""
    module = AnsibleModule(argument_spec=ARGUMENTS, required_if=[("state", "present", ["name"])])
    given = module.params
    if given["state"] == "absent":
        try:
            ended = bool(given["process"]) and end(given["process"])
        except (StillThere, OSError) as error:
            module.fail_json(msg=f"what listens in the place of the instances stays: {error}")
        module.exit_json(changed=ended)
    try:
        process, listening, refused = stand_in(given["name"], given["ports"], given["seconds"])
    except (StillThere, OSError) as error:
        module.fail_json(msg=f"nothing can listen in the place of the instances: {error}")
    module.exit_json(
        changed=process is not None, process=process, listening=listening, refused=refused
    )


if __name__ == "__main__":
    main()
