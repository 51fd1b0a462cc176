#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: drill_fault
short_description: Kill the process of an instance, for a drill
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Before it acts it leaves a note on the host, so that the next drill starts again what a killed drill has left stopped.
  - The playbook C(drill.yml) uses it.
options:
  state:
    description:
      - V(noted) leaves the note, and touches no process. The instance is stopped by P(kafkaops.cluster.jvm_instance#module) afterwards.
      - V(killed) leaves the note, and sends SIGKILL to the process of the start record, if it still is that process.
      - V(forgotten) removes the note.
      - V(looked) tells whether there is a note.
    type: str
    choices: [noted, killed, forgotten, looked]
    required: true
  name:
    description: Name of the instance.
    type: str
    required: true
  state_dir:
    description: Directory of the instance's start record.
    type: path
    required: true
  drill:
    description: Which drill it is, for the note.
    type: str
    default: ""
attributes:
  check_mode:
    description: Does nothing but look.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
"""

EXAMPLES = r"""
- name: Kill a broker
  kafkaops.cluster.drill_fault:
    state: killed
    name: kafka-1
    state_dir: /var/lib/kafka
    drill: leader_killed
"""

RETURN = r"""
note:
  description: Of which drill there is a note; empty if there is none.
  returned: always
  type: str
  sample: leader_killed
running:
  description: Whether the instance's process runs.
  returned: always
  type: bool
at_ms:
  description: When the process was killed, by the host's clock, in ms since 1970.
  returned: with O(state=killed)
  type: int
  sample: 1763884800000
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.fault import carry_out
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "required": True,
                "choices": ["noted", "killed", "forgotten", "looked"],
            },
            "name": {"type": "str", "required": True},
            "state_dir": {"type": "path", "required": True},
            "drill": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    params = module.params
    state = "looked" if module.check_mode else params["state"]
    try:
        result = carry_out(state, params["name"], params["state_dir"], params["drill"])
    except ProblemError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{params['name']}: the drill's note: {error}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
