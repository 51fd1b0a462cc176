#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_drill
short_description: Put a drill's load on a cluster, and tell what was seen
version_added: 0.1.0
description:
  - Makes a topic and groups of its own, whose names begin with C(kafkaops-drill-), writes and reads meanwhile, and removes them at the end.
  - It touches no broker. P(kafkaops.cluster.drill_fault#module) does that.
  - A process beside it removes them where it is killed.
  - The playbook C(drill.yml) uses it.
options:
  part:
    description:
      - V(observe) writes and reads from before a fault until the file C(drill-end) is in O(directory). It tells in C(drill-progress.json),
        in the same directory, how far it is.
      - V(coordinators) tells who coordinates groups.
      - V(hand_over) has two consumers in a group, ends one of them, and measures until the other has its partitions.
      - V(recreate) deletes its topic under a group that reads and one that is away, and makes it anew.
      - V(broadcast) has each of O(groups) read the same records.
      - V(task_queue) has one consumer after the other join a group that is behind.
      - V(commit_modes) kills consumers in the midst of their work. The last words of O(groups) say when each commits.
      - V(exactly_once) kills processes that read and write, with transactions and without, before they commit.
      - V(grow) doubles the partitions of the topic under a group that lags.
      - V(clean) removes topics and groups that killed drills have left, with O(topic) those of this one. Without it, also the
        directories in which they met the playbook, an hour after the last word there.
    type: str
    choices: [observe, coordinators, hand_over, recreate, broadcast, task_queue, commit_modes, exactly_once, grow, clean]
    required: true
  topic:
    description: The topic to make. It has to begin with C(kafkaops-drill-).
    type: str
  groups:
    description: The groups that read it.
    type: list
    elements: str
    default: []
  assignment:
    description: Brokers of each partition, its preferred leader first.
    type: list
    elements: list
    default: []
  config:
    description: Settings of the topic.
    type: dict
    default: {}
  directory:
    description: Where V(observe) and the playbook meet.
    type: path
  program:
    description:
      - Text of a program. That of C(examples/consumer.py) is what the consumers of V(hand_over) run, that of C(examples/producer.py) writes
        lines to the topic of V(observe), too.
    type: str
  retry:
    description: Whether the producer sends again what was refused. Without, each refusal is counted.
    type: bool
    default: true
  kill:
    description: Whether V(hand_over) kills the consumer. Otherwise it is closed.
    type: bool
    default: false
  judge:
    description: A directory in which C(job.py compare) of the role C(flow_validation) answers what is in the topics. Without it nobody is asked.
    type: path
  leave:
    description:
      - Partitions that keep their leader, as P(kafkaops.cluster.kafka_leader_election#module) names them. Given this, the process that
        removes topics and groups of V(observe) also has preferred leaders lead again, where the playbook is gone.
    type: list
    elements: str
  changes:
    description:
      - Whether V(observe) makes topics and changes leaders. It does so when files C(drill-ask-1) and so on are in O(directory); C(drill-back)
        says that what was away is back.
    type: bool
    default: false
  quorum:
    description: Whether the cluster is in KRaft mode. Then V(observe) asks the controllers which one leads them.
    type: bool
    default: false
  copied:
    description:
      - Whether two programs copy the topic of V(observe) meanwhile, one with transactions. The last two of O(groups), which end with
        C(-transactional) and C(-plain), are theirs, and the topics to which they copy have the same names.
    type: bool
    default: false
  beside:
    description: A process. When it is gone, V(observe) ends.
    type: int
    default: 0
  seconds:
    description: How long V(observe) lasts at most.
    type: float
    default: 1800.0
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
    details: Does nothing but tell who coordinates groups, where they have been used.
  diff_mode:
    support: none
    details: There is nothing to show.
  idempotent:
    support: none
    details: Each run writes anew.
notes:
  - Needs the rights to Create, Delete, Describe, Read and Write the topics, and to Read and Delete the groups, of this prefix.
  - V(exactly_once) and O(copied) also need Write and Describe on transactional ids of this prefix, V(grow) Alter on the topic, and O(changes) and
    O(leave) Alter on the cluster.
seealso:
  - module: kafkaops.cluster.drill_fault
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Watch what becomes of a topic until the file drill-end is there
  kafkaops.cluster.kafka_drill:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    part: observe
    topic: kafkaops-drill-mine
    groups: [kafkaops-drill-mine-1]
    assignment: [[2, 1, 3]]
    directory: /tmp/drill
  async: 600
  poll: 0

- name: Remove what killed drills have left
  kafkaops.cluster.kafka_drill:
    bootstrap_servers: kafka-1:9092
    part: clean
"""

RETURN = r"""
seen:
  description:
    - What was seen. C(sent), C(acknowledged), C(refused) (by the broker's word), C(lost), C(pause_ms), C(groups) with what each has
      received, C(measured) numbers of its own, C(moments) at which leader, ISR or controller changed, and acknowledgements for each
      tenth of a second as C(timeline), and the judge's answers as C(judged).
  returned: with each O(part) but V(clean) and V(coordinators)
  type: dict
  sample:
    sent: 412
    acknowledged: 412
    lost: 0
    pause_ms: 310
coordinators:
  description: For each partition of the internal topic of groups the broker that leads it, V(null) while there is none.
  returned: with O(part=coordinators)
  type: dict
  sample: {"0": 2, "1": 3}
removed:
  description: Topics, groups and directories that were removed.
  returned: with O(part=clean)
  type: list
  elements: str
  sample: [kafkaops-drill-leader-killed]
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.parts import (
    DRILL_OPTIONS,
    DRILL_RULES,
    play_part,
)


def _play(connection: Connection, module: AnsibleModule) -> Dict[str, Any]:
    return play_part(connection, module.params, module.check_mode)


def main() -> None:
    """Entry point."""
    run_once(DRILL_OPTIONS, _play, **DRILL_RULES)


if __name__ == "__main__":
    main()
