#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_cluster_info
short_description: Describe a Kafka cluster, or wait until it is as it should be
version_added: 0.1.0
description:
  - Tells which brokers are there, who is the controller, and which partitions lack replicas or a
    leader.
  - Can wait until given brokers are registered and every partition has all its replicas in sync, and
    says at the deadline what is missing.
  - Can also read what Kafka has registered in ZooKeeper, with the marks by which one incarnation of
    a broker is told from the next.
  - Changes nothing.
options:
  missing_ok:
    description:
      - Return C(reachable=false) instead of failing when nothing answers. Wrong credentials and
        wrong protocols still fail, because then something is there.
    type: bool
    default: false
  zookeeper:
    description:
      - Connect string of the ensemble, with the chroot, as in C(zookeeper.connect). Its contents are
        returned under RV(zookeeper). Needs kazoo.
    type: str
  zookeeper_timeout:
    description: Seconds within which a ZooKeeper server must answer.
    type: float
    default: 10.0
  wait:
    description:
      - Wait until all of this is true before describing the cluster. An unreachable cluster is waited
        for, too.
      - Metadata are read anew at every poll. At the end every live broker is asked by itself, because
        brokers learn of changes one after another.
    type: dict
    suboptions:
      brokers:
        description: Ids that must be registered.
        type: list
        elements: int
      full_isr:
        description: Whether every partition of every topic must have all its replicas in sync.
        type: bool
        default: false
      controller:
        description: Whether there must be a controller, and it must be alive.
        type: bool
        default: true
      quiet_seconds:
        description:
          - For how long all of it must have been true without a break. A flapping replica gives good
            samples between two flaps.
        type: float
        default: 0.0
      timeout:
        description: Seconds after which to fail.
        type: float
        default: 120.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.attributes
  - kafkaops.cluster.attributes.actiongroup_kafka
attributes:
  check_mode:
    support: full
    details: It only reads. In check mode it waits, too.
  diff_mode:
    support: none
    details: It only reads.
  idempotent:
    support: full
notes:
  - On KRaft clusters RV(controller) is the broker that answers for the controller, as Kafka tells all
    clients.
  - After a broker was killed, the others keep it in metadata until its session expires. What this
    module waits for can be true meanwhile.
seealso:
  - module: kafkaops.cluster.kafka_topics
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Describe the cluster
  kafkaops.cluster.kafka_cluster_info:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
  register: cluster

- name: Wait until three brokers have been in sync for five seconds
  kafkaops.cluster.kafka_cluster_info:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    wait:
      brokers: [1, 2, 3]
      full_isr: true
      quiet_seconds: 5
      timeout: 300

- name: See what is there before the first installation, quickly
  kafkaops.cluster.kafka_cluster_info:
    bootstrap_servers: kafka-1:9092
    timeout: 3
    zookeeper: zookeeper-1:2181,zookeeper-2:2181,zookeeper-3:2181/kafka
    zookeeper_timeout: 3
    missing_ok: true
"""

RETURN = r"""
reachable:
  description: Whether a broker answered. False only with O(missing_ok).
  returned: always
  type: bool
  sample: true
"""

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.kafkaops.cluster.plugins.module_utils import _client_zookeeper
from ansible_collections.kafkaops.cluster.plugins.module_utils._argspec import (
    KAFKA_RULES,
    connection_from,
    kafka_argument_spec,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._client_kafka import KafkaClient
from ansible_collections.kafkaops.cluster.plugins.module_utils._cluster_info import (
    OPTIONS,
    gather,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils._runner import (
    fail,
    require_kafka,
)


def main():
    """Entry point."""
    module = AnsibleModule(
        argument_spec=kafka_argument_spec(**OPTIONS), supports_check_mode=True, **KAFKA_RULES
    )
    require_kafka(module)
    if module.params["zookeeper"] and _client_zookeeper.KAZOO_IMPORT_ERROR:
        module.fail_json(
            msg=missing_required_lib("kazoo", reason="to read ZooKeeper"),
            exception=_client_zookeeper.KAZOO_IMPORT_ERROR,
        )
    try:
        connection = connection_from(module.params)
        results = gather(module.params, lambda: KafkaClient(connection), log=module.log)
    except AdminError as error:
        fail(module, error)
    else:
        module.exit_json(changed=False, **results)


if __name__ == "__main__":
    main()
