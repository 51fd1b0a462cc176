#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_guarantee
short_description: Measure on a cluster that is thrown away which acknowledged records a fault costs
version_added: 0.1.0
description:
  - A producer writes to a topic, brokers are killed, lose their disks or what they had not flushed, and all records are read back.
  - It kills brokers of a cluster in a directory that P(kafkaops.cluster.throwaway_cluster#module) has made, and of no other.
  - The playbook C(guarantees.yml) uses it.
options:
  directory:
    description: Directory of the cluster.
    type: path
    required: true
  acks:
    description: Whose acknowledgement the producer waits for.
    type: str
    choices: ["0", "1", all]
    default: all
  fault:
    description:
      - V(leader_killed) kills the leader (SIGKILL) while its followers hang (SIGSTOP), so that they have not got the last records.
      - V(all_killed) kills all brokers at once.
      - V(leader_power_cut) kills the leader, and cuts its logs to what Kafka had flushed, by its own checkpoint.
      - V(all_power_cut) does so with all brokers.
      - What the operating system has written by itself counts as lost, since nothing promises it.
      - V(disk_gone) removes the leader's log directory under it. V(disk_full) lets the leader write no more bytes into files
        (C(RLIMIT_FSIZE) of its process), which is what it sees of a disk that is full or broken. No right is needed for either.
      - V(last_in_sync_killed) hangs the followers until they are out of sync, goes on writing, kills the leader, and lets the followers
        go on while it is away.
      - V(coordinator_killed) and V(coordinator_disk_gone) hit the broker that has the commits of a consumer group, which keeps them in
        O(replicas) replicas. The producer's acks are V(all) then, and the records have three replicas.
      - V(follower_flaps) hangs a follower until it is out of sync and lets it go on, several times, while the gate of the rolling
        playbooks is asked whether another broker may stop. No other option has an effect then.
    type: str
    choices:
      - leader_killed
      - all_killed
      - leader_power_cut
      - all_power_cut
      - disk_gone
      - disk_full
      - last_in_sync_killed
      - coordinator_killed
      - coordinator_disk_gone
      - follower_flaps
    required: true
  flush:
    description:
      - When a log is flushed. V(default) is as Kafka has it, by the operating system.
      - V(messages) is after each message (C(flush.messages=1)), V(ms) after 100 ms (C(flush.ms=100)).
    type: str
    choices: [default, messages, ms]
    default: default
  replicas:
    description: How many brokers have the topic; where a coordinator is hit, how many have the group's commits.
    type: int
    choices: [1, 3]
    default: 3
  min_insync_replicas:
    description: C(min.insync.replicas) of the topic; 1 where O(replicas) is 1.
    type: int
    choices: [1, 2]
    default: 2
  unclean:
    description: C(unclean.leader.election.enable) of the topic.
    type: bool
    default: false
  judge:
    description: A directory in which C(job.py compare) of the role C(flow_validation) answers what is in the topic. Without it nobody is asked.
    type: path
  about_seconds:
    description: About how long it takes. Then Ansible says every ten seconds how long is left; 0 for nothing.
    type: float
    default: 0.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.attributes
  - kafkaops.cluster.attributes.actiongroup_kafka
attributes:
  check_mode:
    support: full
    details: Does nothing.
  diff_mode:
    support: none
    details: There is nothing to show.
  idempotent:
    support: none
    details: Each run writes anew.
seealso:
  - module: kafkaops.cluster.throwaway_cluster
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Measure what acks=all is worth when all brokers are killed
  kafkaops.cluster.kafka_guarantee:
    bootstrap_servers: 127.0.0.1:19132
    directory: /home/me/.local/share/kafkaops/throwaway
    acks: all
    fault: all_killed
"""

RETURN = r"""
row:
  description:
    - The row of a table, with C(case), C(done), C(expected), C(observed), C(pause_ms) and C(verdict), and in words what is C(wrong) or C(open).
    - C(seen) is what was seen, as of P(kafkaops.cluster.kafka_drill#module), V(null) where it could not be measured. C(fault) says when.
  returned: always but in check mode
  type: dict
  sample:
    case: acks=all, all_killed
    verdict: as expected
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.asked_judge import judge_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_guarantees import (
    measured_row,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_guarantees_flaps import (
    measured_flaps_row,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_guarantees_groups import (
    measured_group_row,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.guarantees import (
    ACKS,
    BY_DEFAULT,
    EVERY,
    FAULTS,
    FLUSHES,
    Case,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.guarantees_flaps import FLAPS
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.guarantees_groups import (
    LOSSES,
    GroupCase,
)

OPTIONS: Dict[str, Any] = {
    "directory": {"type": "path", "required": True},
    "acks": {"type": "str", "choices": list(ACKS), "default": EVERY},
    "fault": {"type": "str", "required": True, "choices": [*FAULTS, *LOSSES, FLAPS]},
    "flush": {"type": "str", "choices": list(FLUSHES), "default": BY_DEFAULT},
    "replicas": {"type": "int", "choices": [1, 3], "default": 3},
    "min_insync_replicas": {"type": "int", "choices": [1, 2], "default": 2},
    "unclean": {"type": "bool", "default": False},
    "judge": {"type": "path"},
    "about_seconds": {"type": "float", "default": 0.0},
}


def _measure(connection: Connection, module: AnsibleModule) -> Dict[str, Any]:
    params = module.params
    if module.check_mode:
        return {}
    home, judge = params["directory"], judge_of(params["judge"] or "")
    if params["fault"] == FLAPS:
        return measured_flaps_row(connection, home, judge)
    if params["fault"] in LOSSES:
        group = GroupCase(params["fault"], params["replicas"])
        return measured_group_row(connection, home, group, judge)
    case = Case(
        params["acks"],
        params["fault"],
        params["flush"],
        params["replicas"],
        params["min_insync_replicas"],
        params["unclean"],
    )
    return measured_row(connection, home, case, judge)


def main() -> None:
    """Entry point."""
    run_once(OPTIONS, _measure)


if __name__ == "__main__":
    main()
