#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_records
short_description: Delete records from the beginning of partitions
version_added: 0.1.0
description:
  - Deletes the records of topics that are before an offset or older than a moment, or all. Topic and settings stay.
  - Shows the records and bytes at stake, and deletes only with consent. Nothing brings them back.
options:
  topics:
    description:
      - The topics. A topic may be listed again with other partitions.
      - Exactly one of O(topics[].before_offset), O(topics[].before_time), and O(topics[].all).
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the topic.
        type: raw
        required: true
      partitions:
        description: Numbers of partitions. Default is all.
        type: list
        elements: int
      before_offset:
        description: Records before this offset are deleted, in each of the partitions.
        type: int
      before_time:
        description:
          - Records before the first one that is not older are deleted; all, if all are older. Where timestamps are not in order, an older
            record behind that one stays.
          - A moment with its time zone, such as V(2026-01-31T08:00:00Z), a duration such as V(2h) for two hours ago, or
            milliseconds since 1970.
        type: str
      all:
        description: All records that are there at the beginning are deleted.
        type: bool
        default: false
  allow:
    description: What this task consents to. V(delete_records), records are deleted.
    type: list
    elements: str
    choices: [delete_records]
    default: []
  allow_internal:
    description: Exact names of topics that hold the state of Kafka, Connect, mirrors or streams, and are touched all the same.
    type: list
    elements: str
    default: []
  operation_timeout:
    description: Seconds within which the records must be gone; at most a day.
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
    details: Fully with O(topics[].before_offset) and a fixed moment. Else new records may have come, or become old enough.
notes:
  - Needs the rights to Describe, DescribeConfigs and Delete the topics. With kafka-python and Describe on the cluster also the bytes are shown.
  - Kafka deletes no records before an offset where C(cleanup.policy) is C(compact) only.
  - Disk space is free once a whole segment is deleted.
seealso:
  - module: kafkaops.cluster.kafka_topics
  - module: kafkaops.cluster.kafka_consumer_groups_info
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Show how much would go
  kafkaops.cluster.kafka_records:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    topics:
      - {name: clicks, before_time: 2d}
    allow: [delete_records]
  check_mode: true
  diff: true

- name: Empty a topic, and skip a record that no consumer can read, at offset 4711
  kafkaops.cluster.kafka_records:
    bootstrap_servers: kafka-1:9092
    topics:
      - {name: test-input, all: true}
      - {name: orders, partitions: [3], before_offset: 4712}
    allow: [delete_records]
"""

RETURN = r"""
plan:
  description: The changes, one for each partition, and the refusals.
  returned: when the cluster was reached
  type: dict
  sample:
    changes:
      - kind: delete_records
        subject: orders-0
        before: {first_offset: 0}
        after: {first_offset: 120}
        note: 120 records, about 1.2 MiB on disk
    refusals: []
cluster_id:
  description: Id of the cluster.
  returned: when the cluster was reached
  type: str
  sample: RO6sGagMRYWu7VnngZhBAA
records:
  description: How many records were deleted, or would be, by offsets.
  returned: when the cluster was reached
  type: int
  sample: 120
failed_items:
  description: Partitions whose records were not deleted, or not within O(operation_timeout).
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    name:
      description: The partition.
      type: str
    error:
      description: The broker's own words.
      type: str
    kind:
      description: C(delete_records) or C(unsettled).
      type: str
    code:
      description: The protocol's name of the broker's error code; empty where no broker answered.
      type: str
  sample: []
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.records.client import (
    RecordsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.records.resource import (
    RECORD_OPTIONS,
    Records,
)


def main() -> None:
    """Entry point."""
    run_resource(
        RECORD_OPTIONS,
        lambda connection, module: Records(RecordsClient(connection), module.params),
    )


if __name__ == "__main__":
    main()
