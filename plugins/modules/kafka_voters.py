#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_voters
short_description: Add voters to the quorum of a Kafka cluster without ZooKeeper, replace and remove them
version_added: 0.1.0
description:
  - Makes the named controllers the voters of the quorum, one more or less a step. Each step is seen at the leader before the next.
  - A controller is added when it follows the leader and lacks nothing, which is waited for. It has to run by then, from directories that were
    formatted with C(--no-initial-controllers).
  - A voter is removed only while a majority of those that are left keeps up. It is to be stopped afterwards, not before. Of several the
    leader goes last.
  - Adds first, then removes. What has to be done follows from what the leader tells, so that a task goes on with what a killed one has left.
  - Begins nothing more once the playbook that it belongs to has ended, or has lost the lock of the cluster.
  - Starts, stops and formats nothing. The playbook C(scale_controllers) does all of it.
options:
  voters:
    description: All controllers that are to vote.
    type: list
    elements: dict
    required: true
    suboptions:
      id:
        description: Id of the node.
        type: int
        required: true
      directory_id:
        description:
          - C(directory.id) in the C(meta.properties) of the directory that holds the node's metadata. Needed for one that does not vote yet.
          - A voter with another directory is refused, unless it is one of O(replaced).
        type: str
        default: ""
      host:
        description: Where other controllers reach the listener. Needed for one that does not vote yet.
        type: str
        default: ""
      port:
        description: The port of the listener. Needed for one that does not vote yet.
        type: int
        default: 0
  leaving:
    description:
      - Ids of voters to remove. Those that do not vote any more are left alone.
      - A voter that is named neither here nor in O(voters) is refused.
    type: list
    elements: int
    default: []
  replaced:
    description:
      - Ids of voters whose disk is gone and was replaced by an empty one. The former directory is removed first, then the new one added.
      - Refused while the voter with the former directory keeps up.
    type: list
    elements: int
    default: []
  listener:
    description: Name of the controllers' listener, the first of C(controller.listener.names).
    type: str
    default: CONTROLLER
  operation_timeout:
    description: Seconds within which everything must be done, from the first look to the last; at most a day.
    type: float
    default: 120.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.progress
  - kafkaops.cluster.fence
  - kafkaops.cluster.attributes
  - kafkaops.cluster.attributes.actiongroup_kafka
attributes:
  check_mode:
    support: full
    details: Whether a controller that is to be added runs already, and is formatted, does not matter there.
  diff_mode:
    support: full
  idempotent:
    support: full
notes:
  - Needs the right to Alter on the cluster, and to Describe it.
  - Needs a dynamic quorum (C(kraft.version) 1).
  - A controller that has C(controller.quorum.auto.join.enable) is a voter again soon after it was removed, while it runs.
seealso:
  - module: kafkaops.cluster.kafka_cluster_info
  - module: kafkaops.cluster.kafka_features
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Let two more controllers vote
  kafkaops.cluster.kafka_voters:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    voters:
      - id: 101
      - id: 102
      - id: 103
      - {id: 104, directory_id: 7Q0jI2gXQz2x6m0o9cK0bA, host: controller-4, port: 9093}
      - {id: 105, directory_id: mBqz0rXfQ6y8d1pUo2c5Tw, host: controller-5, port: 9093}

- name: Take the vote of two controllers, before they are stopped
  kafkaops.cluster.kafka_voters:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    voters:
      - id: 101
      - id: 102
      - id: 103
    leaving: [104, 105]

- name: Let a controller vote again whose disk was replaced
  kafkaops.cluster.kafka_voters:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    voters:
      - id: 101
      - {id: 102, directory_id: mBqz0rXfQ6y8d1pUo2c5Tw, host: controller-2, port: 9093}
      - id: 103
    replaced: [102]
"""

RETURN = r"""
voters:
  description: The voters as they are now or would be, each with the id of its directory.
  returned: when the cluster was reached
  type: list
  elements: dict
  sample:
    - {id: 101, directory_id: 7Q0jI2gXQz2x6m0o9cK0bA}
before:
  description: Ids of the voters before anything was changed.
  returned: when the cluster was reached
  type: list
  elements: int
  sample: [101]
cluster_id:
  description: Id of the cluster.
  returned: when the cluster was reached
  type: str
  sample: RO6sGagMRYWu7VnngZhBAA
plan:
  description: What was to be done.
  returned: when the cluster was reached
  type: dict
  contains:
    changes:
      description: Each with C(kind), C(subject), C(before), C(after) and C(note), in their order.
      type: list
      elements: dict
    refusals:
      description: What was refused, and why. Nothing is changed while there is one.
      type: list
      elements: dict
  sample:
    changes:
      - kind: add
        subject: voter 104
        before: {}
        after: {directory_id: 7Q0jI2gXQz2x6m0o9cK0bA, endpoint: "controller-4:9093"}
        note: ""
    refusals: []
diff:
  description: The voters that come and go, before and after.
  returned: when the cluster was reached
  type: dict
  sample:
    before: {}
    after:
      voter 104: {directory_id: 7Q0jI2gXQz2x6m0o9cK0bA, endpoint: "controller-4:9093"}
failed_items:
  description: Voters that were not added or removed, and why.
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    name:
      description: The voter.
      type: str
    error:
      description: What Kafka says, or what was waited for in vain.
      type: str
    kind:
      description: Kind of the change.
      type: str
    code:
      description: Name of the protocol's error code; empty if no broker answered.
      type: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import FENCE_OPTIONS
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.voters.client import (
    VotersClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.voters.resource import (
    VOTER_OPTIONS,
    Voters,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import told_into
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.held import (
    why_over,
    why_unread,
)


def voters(connection: Connection, module: AnsibleModule) -> Voters:
    """The voters that the task names."""
    params = module.params

    def over() -> str:
        return why_over(params["run"], params["lock"])

    unread = "" if module.check_mode else why_unread(params["lock"])
    if unread:
        module.warn(unread)
    return Voters(
        VotersClient(connection),
        params,
        module.check_mode,
        told_into(params["progress"], module.log),
        over=over,
    )


def main() -> None:
    """Entry point."""
    run_resource({**VOTER_OPTIONS, **FENCE_OPTIONS}, voters)


if __name__ == "__main__":
    main()
