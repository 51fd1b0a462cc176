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
  - With O(manager) it also leaves a process that starts the instance again if the run ends, however it does, and the note is still there.
  - The playbook C(drill.yml) uses it.
options:
  state:
    description:
      - V(noted) leaves the note, and touches no process. The instance is stopped by P(kafkaops.cluster.jvm_instance#module) afterwards.
      - V(killed) leaves the note, and sends SIGKILL to the process of the start record, if it still is that process.
      - V(forgotten) removes the note.
      - V(given_back) removes it, and that of O(leads), too.
      - V(looked) tells whether there is a note.
    type: str
    choices: [noted, killed, forgotten, given_back, looked]
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
  leads:
    description:
      - Whether V(noted) and V(killed) leave a second note, that others lead what the instance has led. It outlives the process that starts
        the instance again, which gives no leadership back.
    type: bool
    default: false
  stays_away:
    description: Whether the instance that V(killed) hits is not to be started again by its service manager; needs O(manager).
    type: bool
    default: false
  manager:
    description: The service manager that starts the instance again when the run is gone; nobody does so without it.
    type: str
    choices: [systemd, supervisor]
  supervisor_dir:
    description: Directory of the supervisord that all local instances share.
    type: path
  config_dir:
    description: Configuration directory of the instance; needed with O(manager).
    type: path
  lock:
    description:
      - The lock of the cluster that this run holds on the host, as P(kafkaops.cluster.run_lock#module) has told it; empty for none.
      - By it the run is known to be gone, or to be replaced by another one, which decides what runs until it has ended.
    type: dict
    default: {}
    suboptions:
      directory:
        description: Directory of the locks.
        type: path
      cluster:
        description: Name of the cluster.
        type: str
      owner:
        description: The run.
        type: str
  away_seconds:
    description: After so many seconds the instance is started again, although the run seems to be there.
    type: int
    default: 300
  clock:
    description:
      - What this host's and another one's clock have said, in ms since 1970, to be compared with what this host's says now.
    type: dict
    suboptions:
      before_ms:
        description: This host's, before the other one was asked.
        type: int
        required: true
      there_ms:
        description: The other one's.
        type: int
        required: true
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
leaders:
  description: Whether leadership that a drill has taken from the instance has not been given back, as O(leads) has noted it.
  returned: always
  type: bool
running:
  description: Whether the instance's process runs.
  returned: always
  type: bool
now_ms:
  description: What the host's clock says at the end, in ms since 1970.
  returned: always
  type: int
  sample: 1763884800120
ahead_ms:
  description: By how many ms the other host's clock is ahead of this one's, negative if it is behind; V(0) if it may be right.
  returned: with O(clock)
  type: int
  sample: 60250
at_ms:
  description: When the process was killed, by the host's clock, in ms since 1970.
  returned: with O(state=killed)
  type: int
  sample: 1763884800000
"""

import subprocess
from typing import Any, Dict, List, Optional, Tuple

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.fault import (
    Guarded,
    carry_out,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    clock_ahead_ms,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.managers import MANAGERS
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.service_manager import (
    ServiceError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.states import (
    service_manager,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.held import (
    GONE,
    REPLACED,
    THERE,
    run_is,
)


def guarded_of(params: Dict[str, Any]) -> Optional[Guarded]:
    """What a guard has to know; None where nobody is to start the instance again."""
    if not params["manager"]:
        return None
    lock = params["lock"]

    def run() -> str:
        if not lock.get("owner"):
            return THERE
        return run_is(lock["directory"], lock["cluster"], lock["owner"])

    return Guarded(
        params["name"],
        params["state_dir"],
        params["config_dir"],
        service_manager({**params, "generation": None}, _run),
        lambda: run() == GONE,
        lambda: run() == REPLACED,
        params["away_seconds"],
        lock.get("owner") or "",
    )


def _run(words: List[str]) -> Tuple[int, str, str]:
    """Run a command, in a process that Ansible has left."""
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "required": True,
                "choices": ["noted", "killed", "forgotten", "given_back", "looked"],
            },
            "name": {"type": "str", "required": True},
            "state_dir": {"type": "path", "required": True},
            "drill": {"type": "str", "default": ""},
            "manager": {"type": "str", "choices": list(MANAGERS)},
            "supervisor_dir": {"type": "path"},
            "config_dir": {"type": "path"},
            "lock": {
                "type": "dict",
                "default": {},
                "options": {
                    "directory": {"type": "path"},
                    "cluster": {"type": "str"},
                    "owner": {"type": "str"},
                },
            },
            "away_seconds": {"type": "int", "default": 300},
            "leads": {"type": "bool", "default": False},
            "stays_away": {"type": "bool", "default": False},
            "clock": {
                "type": "dict",
                "options": {
                    "before_ms": {"type": "int", "required": True},
                    "there_ms": {"type": "int", "required": True},
                },
            },
        },
        required_if=[
            ("manager", "supervisor", ("supervisor_dir", "config_dir")),
            ("manager", "systemd", ("config_dir",)),
            ("stays_away", True, ("manager",)),
        ],
        supports_check_mode=True,
    )
    params = module.params
    state = "looked" if module.check_mode else params["state"]
    try:
        guarded = guarded_of(params)
        result = carry_out(
            state,
            params["name"],
            params["state_dir"],
            params["drill"],
            guarded,
            params["stays_away"],
            params["leads"],
        )
    except (ProblemError, ServiceError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{params['name']}: the drill's note: {error}")
    clock = params["clock"]
    if clock:
        result["ahead_ms"] = clock_ahead_ms(clock["before_ms"], clock["there_ms"], result["now_ms"])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
