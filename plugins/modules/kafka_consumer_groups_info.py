#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_consumer_groups_info
short_description: Show how far consumer groups are behind, and when they lose unread records
version_added: 0.1.0
description:
  - Tells for each group and partition what is committed, where the partition ends, how many records are unread, and who reads it.
  - Tells when retention deletes the first record that a group has not read, and how many it has deleted unread already.
  - With O(sample_seconds) also tells whether the group catches up.
  - Changes nothing.
options:
  groups:
    description:
      - Names of groups. Those that the cluster does not know are returned in RV(missing).
      - Default is all groups that the user may see, or those that O(match) chooses.
    type: list
    elements: str
  match:
    description: A regular expression. Groups in whose name it is found are described.
    type: str
  sample_seconds:
    description:
      - Seconds during which offsets are read up to ten times, for the status by trend. With 0 they are read once, and there is no
        status.
      - Take several times the interval in which the consumers commit, which is 5 seconds by default. Up to 3600.
    type: float
    default: 0.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.attributes
  - kafkaops.cluster.attributes.actiongroup_kafka
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
notes:
  - Needs confluent-kafka and kafka-python.
  - Needs the right to Describe the groups and their topics. When records are deleted needs DescribeConfigs on the topics; if a
    topic has a limit of size, also Describe on the cluster. It needs no right to read records, and reads none.
  - The number of requests does not depend on the number of topics and partitions. It grows with groups only where their members
    speak the protocol C(consumer) of Kafka 4.
  - Groups of Kafka Connect, and share groups, commit no offsets to Kafka as consumers do, and are left out. One that is named is
    warned about.
  - Of groups of Kafka Streams' own protocol (Kafka 4.2), members are not told by the client libraries. Whether one is there is
    known by the state.
seealso:
  - module: kafkaops.cluster.kafka_consumer_groups
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Read how far all groups are behind
  kafkaops.cluster.kafka_consumer_groups_info:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
  register: lag

- name: Show it as a table
  ansible.builtin.debug:
    msg: "{{ lag.lines }}"

- name: See whether two groups catch up
  kafkaops.cluster.kafka_consumer_groups_info:
    bootstrap_servers: kafka-1:9092
    groups: [billing, search]
    sample_seconds: 30
  register: lag

- name: Fail if unread records are deleted within a day
  ansible.builtin.assert:
    that: lag.groups | selectattr('deleted_in_seconds') | selectattr('deleted_in_seconds', 'lt', 86400) | length == 0
"""

RETURN = r"""
cluster_id:
  description: Id of the cluster.
  returned: success
  type: str
  sample: RO6sGagMRYWu7VnngZhBAA
lines:
  description:
    - A table of the partitions that are not read to their end, the worst first, and a line that sums up. At most 50 partitions.
    - The worst are those where records were deleted unread, then by status, then those whose unread records are deleted next.
  returned: success
  type: list
  elements: str
  sample:
    - GROUP    PARTITION  COMMITTED  END  LAG  DELETED IN  MEMBER
    - billing  orders-0   120        500  380  6d 23h      app-1 at 10.0.0.7
    - ""
    - 1 of 1 group behind, by 380 records; unread records may be deleted in 6d 23h at the soonest.
missing:
  description: Names of O(groups) that the cluster does not know.
  returned: success
  type: list
  elements: str
  sample: []
groups:
  description: The groups, by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the group.
      type: str
    state:
      description: State in Kafka's words, such as C(Stable) with members, C(Empty) without.
      type: str
    type:
      description: The protocol of its members, C(classic), C(consumer) or C(streams).
      type: str
    members:
      description: Its consumers, each with C(id), C(client) and C(host).
      type: list
      elements: dict
    lag:
      description: Unread records of all its partitions.
      type: int
    status:
      description:
        - C(ERR) if a partition has C(STOP), C(STALL) or C(REWIND); C(WARN) if one has C(WARN); else C(OK).
        - Null without O(sample_seconds).
      type: str
    lost:
      description: Records that were deleted before the group read them.
      type: int
    deleted_in_seconds:
      description: The smallest one of its partitions.
      type: float
    partitions:
      description: Its partitions, the worst first.
      type: list
      elements: dict
      contains:
        topic:
          description: Name of the topic.
          type: str
        partition:
          description: Number of the partition.
          type: int
        committed:
          description: Offset of the next record that the group reads. Null where it has committed none.
          type: int
        start:
          description: Offset of the first record that is still there. Null while nobody leads the partition.
          type: int
        end:
          description: Offset behind the last record. Null while nobody leads the partition.
          type: int
        lag:
          description: Unread records, by offsets; in a compacted topic an upper bound. Null if unknown.
          type: int
        member:
          description: Who reads the partition, null if nobody.
          type: str
        status:
          description:
            - C(OK) if nothing is unread, or was at some moment of the sample, or if the lag became smaller.
            - C(WARN) if records are read, but the lag never became smaller.
            - C(STALL) if a member has the partition, and what is committed stood still.
            - C(STOP) if nobody has the partition, and what is committed stood still.
            - C(REWIND) if what is committed went back.
            - Null without O(sample_seconds), or if nothing is committed.
          type: str
        unread_since_ms:
          description:
            - The timestamp by which the first unread record is deleted, in milliseconds since 1970, at most a second too early.
              It is the largest one of all records up to there.
            - Null if nothing is unread, or if the age of a record deletes nothing.
          type: int
        lost:
          description: Records that were deleted before the group read them.
          type: int
        deleted_in_seconds:
          description:
            - Seconds until the first unread record may be deleted. Null if nothing is unread, and if nothing deletes it.
            - A limit of size is reached by the average growth since the oldest record, or by that during O(sample_seconds) if that
              is more.
          type: float
        gone_in_seconds:
          description:
            - Seconds after which it is deleted for sure. Kafka deletes whole segments, and looks every few minutes.
            - Null if unknown.
          type: float
        deleted_by:
          description: What deletes it, C(time) or C(size). If nothing does, why, C(compacted) or C(unlimited).
          type: str
        unknown:
          description: What could not be learned, null if nothing.
          type: str
  sample:
    - name: billing
      state: Stable
      type: classic
      members: [{id: app-1-3f2b, client: app-1, host: 10.0.0.7}]
      lag: 380
      status: null
      lost: 0
      deleted_in_seconds: 602340.5
      partitions:
        - topic: orders
          partition: 0
          committed: 120
          start: 0
          end: 500
          lag: 380
          member: app-1 at 10.0.0.7
          status: null
          unread_since_ms: 1769846400000
          lost: 0
          deleted_in_seconds: 602340.5
          gone_in_seconds: 1207440.5
          deleted_by: time
          unknown: null
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups import (
    info as groups_info,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.client import (
    GroupsClient,
)


def describe(connection: Connection, module: AnsibleModule) -> Dict[str, Any]:
    """Everything that the module returns."""
    client = GroupsClient(connection)
    client.connect()
    return groups_info.gather(module.params, client)


def main() -> None:
    """Entry point."""
    run_once(
        groups_info.OPTIONS,
        describe,
        mutually_exclusive=[("groups", "match")],
    )


if __name__ == "__main__":
    main()
