#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_consumer_groups
short_description: Set the offsets of consumer groups, or delete groups
version_added: 0.1.0
description:
  - Brings consumer groups to an offset, a moment, or one of the ends of their partitions, or some records further or back.
  - Deletes groups, or what they have committed for single topics.
  - A group that somebody reads with is refused, and its members are named. They would commit over what is set.
  - Going back reads records again, going forward skips records unread. Both are counted, and done only with consent.
options:
  groups:
    description:
      - The groups. A group may be listed again with other topics.
      - With O(groups[].state=present), exactly one of O(groups[].to), O(groups[].offset), O(groups[].time), O(groups[].shift),
        O(groups[].offsets), and O(groups[].src).
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the group. A group that does not exist is made with these offsets, if topics are named.
        type: raw
        required: true
      state:
        description:
          - With V(absent) the group is deleted, or, if O(groups[].topics) are named, what it has committed for them.
          - What is committed for a topic that no member reads can be deleted while the group reads others.
        type: str
        choices: [present, absent]
        default: present
      topics:
        description: Names of topics, with all their partitions. Default is every partition for which the group has committed.
        type: list
        elements: raw
      partitions:
        description: Numbers of partitions, if only one topic is named.
        type: list
        elements: int
      to:
        description: To V(earliest), the first record that is still there, or V(latest), behind the last one.
        type: str
        choices: [earliest, latest]
      offset:
        description: To this offset in each partition. One that a partition does not have is refused.
        type: int
      time:
        description:
          - To the first record that is not older, or to the end if all are.
          - A moment with its time zone, such as V(2026-01-31T08:00:00Z), a duration such as V(2h) for two hours ago, or
            milliseconds since 1970.
        type: str
      shift:
        description:
          - So many records further, back if it is negative, and not beyond the ends. Each run moves the group again.
        type: int
      offsets:
        description: To the offset of each partition that is listed, as RV(before) returns them.
        type: list
        elements: dict
        suboptions:
          topic:
            description: Name of the topic.
            type: str
            required: true
          partition:
            description: Number of the partition.
            type: int
            required: true
          offset:
            description: Offset of the next record that is read.
            type: int
            required: true
      src:
        description:
          - A file of offsets on the machine that runs the module, as C(kafka-consumer-groups.sh --reset-offsets --export) writes
            it. Lines of topic, partition, offset, or with the group before them; those of other groups are left out.
        type: path
  allow:
    description:
      - What this task consents to. V(reread), records are read again. V(skip), unread records are skipped. V(delete), groups or
        offsets are deleted.
    type: list
    elements: str
    choices: [reread, skip, delete]
    default: []
  operation_timeout:
    description: Seconds within which it is done and seen; at most a day.
    type: float
    default: 60.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.attributes
  - kafkaops.cluster.attributes.actiongroup_kafka
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details: Not with O(groups[].shift), and with V(latest) only while nothing is written.
notes:
  - Needs confluent-kafka and kafka-python.
  - Needs the rights to Read and Describe on the groups, and to Read on their topics; to delete a group, Delete on it.
seealso:
  - module: kafkaops.cluster.kafka_consumer_groups_info
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Show what would be read again if a group went back to eight o'clock
  kafkaops.cluster.kafka_consumer_groups:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    groups:
      - {name: billing, time: "2026-01-31T08:00:00Z"}
    allow: [reread]
  check_mode: true
  diff: true

- name: Skip everything in one topic, and let another group begin anew
  kafkaops.cluster.kafka_consumer_groups:
    bootstrap_servers: kafka-1:9092
    groups:
      - {name: billing, topics: [orders], to: latest}
      - {name: search, to: earliest}
    allow: [skip, reread]
  register: moved

- name: Take that back
  kafkaops.cluster.kafka_consumer_groups:
    bootstrap_servers: kafka-1:9092
    groups: "{{ moved.before }}"
    allow: [skip, reread]

- name: Delete a group, and what another one has committed for a topic that it reads no more
  kafkaops.cluster.kafka_consumer_groups:
    bootstrap_servers: kafka-1:9092
    groups:
      - {name: test-17, state: absent}
      - {name: billing, topics: [invoices-old], state: absent}
    allow: [delete]
"""

RETURN = r"""
plan:
  description: The changes, one for each partition, and the refusals.
  returned: when the cluster was reached
  type: dict
  sample:
    changes:
      - kind: reset
        subject: billing orders-0
        before: {offset: 120}
        after: {offset: 100}
        note: 20 records would be read again
    refusals: []
cluster_id:
  description: Id of the cluster.
  returned: when the cluster was reached
  type: str
  sample: RO6sGagMRYWu7VnngZhBAA
before:
  description: What the groups that change had committed, in the form of O(groups), so that a later task can take it back.
  returned: when the cluster was reached
  type: list
  elements: dict
  sample:
    - name: billing
      offsets:
        - {topic: orders, partition: 0, offset: 120}
failed_items:
  description: Changes that were not made, or not seen within O(operation_timeout).
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    name:
      description: The group, with the partition.
      type: str
    error:
      description: The broker's own words.
      type: str
    kind:
      description: C(reset), C(forget), C(delete), or C(unsettled).
      type: str
    code:
      description: The protocol's name of the broker's error code; empty where no broker answered.
      type: str
  sample: []
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.client import (
    GroupsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.resource import (
    GROUP_OPTIONS,
    ConsumerGroups,
)


def main() -> None:
    """Entry point."""
    run_resource(
        GROUP_OPTIONS,
        lambda connection, module: ConsumerGroups(GroupsClient(connection), module.params),
    )


if __name__ == "__main__":
    main()
