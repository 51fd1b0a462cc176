# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The work is done by the action plugin of the same name; this file documents it.
from __future__ import annotations

DOCUMENTATION = r"""
module: run_lock
short_description: Let one run at a time start and stop the instances of a cluster
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Takes the lock of each cluster of the play on all of its hosts, those outside of C(--limit), too, in the name of the process of
    C(ansible-playbook). Of two runs that start at once, one gets it.
  - Who holds the lock of the same instances on a host under another name of the cluster holds this one, too.
  - A lock that a killed run has left is taken over if this machine can see that its process is gone, also with a boot before this
    one. Another one is refused, unless C(kafkaops_break_lock) names its holder.
  - Use the playbooks C(phases/lock.yml) and C(phases/unlock.yml), which run the phases in the right order.
options:
  phase:
    description:
      - V(plan) finds the hosts, and V(judge) whether the run may go on; both contact nobody.
      - V(take) and V(give_back) are for one place of the plan, with the task delegated to its C(host).
      - V(judge) reads what was registered as C(kafkaops_lock_first) and C(kafkaops_lock_others).
    type: str
    choices: [plan, take, judge, give_back]
    required: true
  place:
    description: One item of RV(first), RV(others) or RV(shares).
    type: dict
  disks:
    description:
      - With V(plan) and V(judge), the lock of who moves replicas between the disks of brokers, beside that of who starts and stops.
        Moves take hours, and restarts need not wait for them.
    type: bool
    default: false
attributes:
  check_mode:
    description: No lock is taken.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
  action:
    description: Runs as an action plugin on the controller, and on the hosts as M(kafkaops.cluster.host_lock).
    support: full
"""

EXAMPLES = r"""
- name: Lock
  ansible.builtin.import_playbook: kafkaops.cluster.phases.lock
"""

RETURN = r"""
first:
  description: The place of each cluster that is asked before all others.
  returned: with phase plan
  type: list
  elements: dict
  sample:
    - {cluster: prod, host: kafka-1, directory: /var/lib/kafkaops, members: [kafka-1, zookeeper-1], instances: [/etc/kafka/.lock], absent: ""}
others:
  description: What each host of the play asks then.
  returned: with phase plan
  type: dict
shares:
  description: All places, shared out among the hosts of the play.
  returned: with phase plan
  type: dict
granted:
  description: With V(judge) whether the run may go on, else whether this place has granted the lock or had it.
  returned: with the other phases
  type: bool
holder:
  description: Who holds the lock of this place, or held it before it was replaced.
  returned: with phase take
  type: dict
outdated:
  description: Whether another run held the lock when the preflight looked, or has left it since, so that the look may be too old.
  returned: with phase judge
  type: bool
told:
  description: The refusals, one a line.
  returned: with phase judge
  type: str
fences:
  description: By inventory name, what the module M(kafkaops.cluster.jvm_instance) takes as its option C(lock).
  returned: with phase judge
  type: dict
"""
