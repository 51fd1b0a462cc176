#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_topics_info
short_description: Describe topics, with settings, sizes and records
version_added: 0.1.0
description:
  - Returns partitions, replication factor, settings with their source, bytes on disks and records of topics.
  - The number of requests does not depend on the number of topics. Nothing is changed.
options:
  topics:
    description:
      - Names of topics. One that does not exist is named in a warning, and in RV(missing).
      - Without O(topics) and O(patterns) all topics are returned, internal ones included.
    type: list
    elements: str
    default: []
  patterns:
    description: Regular expressions over whole names; topics that one of them matches are returned, too.
    type: list
    elements: str
    default: []
  config:
    description: Whether settings are returned that are V(set) somewhere, on the topic or for the brokers, or V(all), with Kafka's own defaults.
    type: str
    choices: [set, all]
    default: set
  sizes:
    description: Whether brokers are asked for bytes on their disks; one request for each broker.
    type: bool
    default: true
  offsets:
    description: Whether leaders are asked for first and last offsets.
    type: bool
    default: true
  partitions:
    description: Whether each partition is returned, too.
    type: bool
    default: false
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
  - Needs Describe and DescribeConfigs on the topics; for sizes also Describe on the cluster, without which they are V(null).
seealso:
  - module: kafkaops.cluster.kafka_topics
  - module: kafkaops.cluster.kafka_log_dirs_info
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: How much each topic of logs holds
  kafkaops.cluster.kafka_topics_info:
    bootstrap_servers: kafka-1:9092
    patterns: ['logs\..*']
  register: logs

- name: The largest first
  ansible.builtin.debug:
    msg: "{{ logs.topics | sort(attribute='bytes', reverse=true) | items2dict(key_name='name', value_name='bytes') }}"
"""

RETURN = r"""
topics:
  description: The topics, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the topic.
      type: str
    internal:
      description: Whether it looks like the state of Kafka, Connect, a mirror or a stream.
      type: bool
    partitions:
      description: Number of partitions.
      type: int
    replication_factor:
      description: Number of replicas of each partition.
      type: int
    config:
      description:
        - Setting to C(value) and C(source), which is C(topic), C(broker), C(cluster), C(static) (the broker's file) or C(default) (Kafka's own).
      type: dict
    bytes:
      description: Bytes of the largest replica of each partition; V(null) if they are not known.
      type: int
    bytes_on_disks:
      description: Bytes of all replicas.
      type: int
    records:
      description: Number of records by offsets; in a compacted topic there are fewer. V(null) if they are not known.
      type: int
    partition_list:
      description:
        - With O(partitions), C(partition), C(leader) (V(null) while there is none), C(replicas), C(isr), C(first_offset), C(end_offset) and C(bytes).
      type: list
      elements: dict
  sample:
    - name: logs.web
      internal: false
      partitions: 2
      replication_factor: 3
      config:
        retention.ms:
          value: '604800000'
          source: topic
        segment.bytes:
          value: '1048576'
          source: topic
      bytes: 9613094
      bytes_on_disks: 28839282
      records: 1200
      partition_list:
      - partition: 0
        leader: 2
        replicas:
        - 2
        - 3
        - 1
        isr:
        - 2
        - 3
        - 1
        first_offset: 0
        end_offset: 600
        bytes: 4806466
missing:
  description: Names in O(topics) that do not exist, or that this user may not see.
  returned: success
  type: list
  elements: str
  sample: []
cluster_id:
  description: Id of the cluster.
  returned: success
  type: str
  sample: HJApaBPOSuOLtHWS0snxMA
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.tables import (
    TOPICS_INFO_OPTIONS,
    gather_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.client import (
    RetentionClient,
)


def main() -> None:
    """Entry point."""
    run_once(
        TOPICS_INFO_OPTIONS,
        lambda connection, module: gather_topics(module.params, RetentionClient(connection)),
    )


if __name__ == "__main__":
    main()
