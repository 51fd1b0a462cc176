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
  - A producer writes to a topic of three replicas, brokers are killed or lose what they had not flushed, and all records are read back.
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
    required: true
  fault:
    description:
      - V(leader_killed) kills the leader (SIGKILL) while its followers hang (SIGSTOP), so that they have not got the last records.
      - V(all_killed) kills all brokers at once.
      - V(leader_power_cut) kills the leader, and cuts its logs to what Kafka had flushed, by its own checkpoint.
      - V(all_power_cut) does so with all brokers.
      - What the operating system has written by itself counts as lost, since nothing promises it.
    type: str
    choices: [leader_killed, all_killed, leader_power_cut, all_power_cut]
    required: true
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
  returned: always but in check mode
  type: dict
  sample:
    case: acks=all, all_killed
    verdict: as expected
seen:
  description: What was seen, as of P(kafkaops.cluster.kafka_drill#module). V(null) where it could not be measured.
  returned: always but in check mode
  type: dict
  sample:
    sent: 21503
    acknowledged: 21503
    lost: 0
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    require_both_clients,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_guarantees import (
    measured_row,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.guarantees import (
    ACKS,
    FAULTS,
)

OPTIONS: Dict[str, Any] = {
    "directory": {"type": "path", "required": True},
    "acks": {"type": "str", "required": True, "choices": list(ACKS)},
    "fault": {"type": "str", "required": True, "choices": list(FAULTS)},
}


def _measure(connection: Connection, module: AnsibleModule) -> Dict[str, Any]:
    params = module.params
    if module.check_mode:
        return {}
    return measured_row(connection, params["directory"], params["acks"], params["fault"])


def main() -> None:
    """Entry point."""
    run_once(OPTIONS, _measure, require_both_clients)


if __name__ == "__main__":
    main()
