#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_lock
short_description: Take or give back the lock of a cluster on one host
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - One file that names the run that holds it. It outlives that run and a reboot.
  - Used by P(kafkaops.cluster.run_lock#module), which takes it on all hosts of a cluster.
options:
  state:
    description:
      - V(taken) takes the lock if it is free or held by the same run, and else tells who holds it, which is not a failure.
      - V(free) gives back what the same run has taken, and nothing else.
    type: str
    choices: [taken, free]
    required: true
  directory:
    description: Directory of the locks on the host, made where it is absent.
    type: path
    required: true
  cluster:
    description: Name of the cluster.
    type: str
    required: true
  owner:
    description: The run that wants it, as RV(holder) has it.
    type: dict
    required: true
  instead_of:
    description: The holder that may be replaced, as RV(holder) was told before. Another one may not.
    type: dict
  instances:
    description:
      - Lock files of the instances that the cluster has on the host. Who holds one of them under another name of the
        cluster holds the lock, too.
      - A module of another run may still work on one. That is waited for.
    type: list
    elements: path
    default: []
  seconds:
    description: For how long it is waited.
    type: float
    default: 0
attributes:
  check_mode:
    description: Not supported; a run in check mode takes no lock.
    support: none
  diff_mode:
    description: There is nothing to show.
    support: none
"""

EXAMPLES = r"""
- name: Take the lock on one host
  kafkaops.cluster.host_lock:
    state: taken
    directory: /var/lib/kafkaops
    cluster: orders-prod
    owner:
      host: deploy-1
      place: 5c1f/4026531836
      pid: 4711
      start_ticks: 880123
      user: alice
      playbook: site.yml
      cluster: orders-prod
      taken_at: 1795256400
"""

RETURN = r"""
granted:
  description: With O(state=taken) whether the lock is ours now; with O(state=free) whether it was.
  type: bool
  returned: always
holder:
  description: Who holds it now.
  type: dict
  returned: with O(state=taken)
waited:
  description: Whether a module of the holder before was still at work on an instance, and was waited for.
  type: bool
  returned: with O(state=taken)
busy:
  description: The lock file of an instance on which one still works after O(seconds); empty for none.
  type: str
  returned: with O(state=taken)
beside:
  description: Who holds the other lock of the cluster here, that of moves between disks or that of starts and stops; none for nobody.
  type: dict
  returned: with O(state=taken)
marks:
  description: What the runs that gave the lock back last have written into the lock files of O(instances).
  type: list
  elements: str
  returned: with O(state=taken)
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.held import give_back, take
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.owner import Owner


def main() -> None:
    """Take or give back, return."""
    module = AnsibleModule(
        argument_spec=dict(
            state=dict(type="str", choices=["taken", "free"], required=True),
            directory=dict(type="path", required=True),
            cluster=dict(type="str", required=True),
            owner=dict(type="dict", required=True),
            instead_of=dict(type="dict"),
            instances=dict(type="list", elements="path", default=[]),
            seconds=dict(type="float", default=0),
        ),
    )
    params = module.params
    place = (params["directory"], params["cluster"])
    try:
        owner = Owner.from_dict(params["owner"])
        before = Owner.from_dict(params["instead_of"]) if params["instead_of"] else None
        if params["state"] == "free":
            module.exit_json(changed=False, granted=give_back(*place, owner))
        taken = take(*place, owner, before, params["instances"], params["seconds"])
    except (KeyError, TypeError, ValueError) as error:
        module.fail_json(msg=f"not the value of a holder: {error!r}")
    except OSError as error:
        module.fail_json(msg=f"{params['directory']}: {error.strerror or error}")
    module.exit_json(
        changed=False,
        granted=taken.granted,
        holder=taken.holder.to_dict(),
        waited=taken.waited,
        busy=taken.busy,
        beside=taken.beside.to_dict() if taken.beside else None,
        marks=list(taken.marks),
    )


if __name__ == "__main__":
    main()
