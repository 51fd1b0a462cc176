#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_log_dirs_info
short_description: Show how full the disks of brokers are, and by which topics
version_added: 0.1.0
description:
  - Returns the log directories of brokers with the size and the free bytes of their disks, and the bytes of each topic in them, the
    largest first.
  - Brokers tell it themselves, so that no login on their hosts is needed. Nothing is changed.
options:
  brokers:
    description: Ids of brokers. By default all that are alive.
    type: list
    elements: int
    default: []
  largest:
    description: How many topics are returned of each directory; V(0) for all.
    type: int
    default: 20
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
  - Needs Describe on the cluster.
seealso:
  - module: kafkaops.cluster.kafka_topics_info
  - module: kafkaops.cluster.kafka_retention
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: What fills the disks
  kafkaops.cluster.kafka_log_dirs_info:
    bootstrap_servers: kafka-1:9092
    largest: 5
  register: disks

- name: No disk may be fuller than 85%
  ansible.builtin.assert:
    that: disks.brokers | map(attribute='directories') | flatten | selectattr('used_share', 'gt', 0.85) | length == 0
"""

RETURN = r"""
brokers:
  description: The brokers, sorted by id.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Id of the broker.
      type: int
    host:
      description: Its host, as clients know it.
      type: str
    directories:
      description: Its log directories, the fullest disk first.
      type: list
      elements: dict
      contains:
        path:
          description: The directory.
          type: str
        online:
          description: Whether the broker can use it.
          type: bool
        total_bytes:
          description: Size of its disk; V(null) where the broker does not know it.
          type: int
        usable_bytes:
          description: Free bytes of its disk.
          type: int
        used_share:
          description: How full the disk is, from 0 to 1.
          type: float
        kafka_bytes:
          description: Bytes of all replicas in this directory.
          type: int
        others_bytes:
          description: What else is on the disk, also other log directories.
          type: int
        topic_count:
          description: How many topics have replicas here.
          type: int
        topics:
          description: The O(largest) topics with C(name), C(bytes), and the number of C(replicas) here.
          type: list
          elements: dict
  sample:
    - id: 1
      host: kafka-1.example.com
      directories:
      - path: /var/lib/kafka/data
        online: true
        total_bytes: 270553174016
        usable_bytes: 78370799616
        used_share: 0.7103
        kafka_bytes: 10219076
        others_bytes: 192172155324
        topic_count: 8
        topics:
        - name: logs.web
          bytes: 9613094
          replicas: 2
        - name: name-1.full
          bytes: 201994
          replicas: 2
missing_brokers:
  description: Brokers that hold replicas and are not alive.
  returned: success
  type: list
  elements: int
  sample: []
cluster_id:
  description: Id of the cluster.
  returned: success
  type: str
  sample: HJApaBPOSuOLtHWS0snxMA
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.log_dirs import (
    LogDirsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.tables import (
    LOG_DIRS_INFO_OPTIONS,
    gather_log_dirs,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once


def main() -> None:
    """Entry point."""
    run_once(
        LOG_DIRS_INFO_OPTIONS,
        lambda connection, module: gather_log_dirs(module.params, LogDirsClient(connection)),
    )


if __name__ == "__main__":
    main()
