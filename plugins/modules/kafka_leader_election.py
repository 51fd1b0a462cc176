#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_leader_election
short_description: Give partitions back to their preferred leaders
version_added: 0.1.0
description:
  - Elects the first replica of each partition as its leader, where it is in sync and another one leads.
  - A restart moves leaders away from a broker. Kafka by itself gives them back only every 300 seconds, and only if more
    than a tenth of them is elsewhere. Until then the others carry its load.
  - Partitions whose preferred leader is not in sync are left alone and named in a warning.
options:
  topics:
    description: Names of topics. Default is all, internal ones included.
    type: list
    elements: str
  operation_timeout:
    description: Seconds within which the new leaders must be seen; at most a day.
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
    support: full
notes:
  - Needs the right to Alter on the cluster.
  - Clients notice a moved leader by an error that they retry, within milliseconds.
seealso:
  - module: kafkaops.cluster.kafka_cluster_info
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Give all partitions back to their preferred leaders
  kafkaops.cluster.kafka_leader_election:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092

- name: Show which leaders of one topic would move
  kafkaops.cluster.kafka_leader_election:
    bootstrap_servers: kafka-1:9092
    topics: [orders]
  check_mode: true
  diff: true
"""

RETURN = r"""
plan:
  description: The changes, one for each partition, and the refusals.
  returned: when the cluster was reached
  type: dict
  sample:
    changes:
      - kind: elect
        subject: orders-0
        before: {leader: 2}
        after: {leader: 1}
        note: ""
    refusals: []
cluster_id:
  description: Id of the cluster.
  returned: when the cluster was reached
  type: str
  sample: RO6sGagMRYWu7VnngZhBAA
partition_count:
  description: Number of partitions of all topics.
  returned: when the cluster was reached
  type: int
  sample: 9
not_preferred:
  description: How many of them have another leader than the preferred one afterwards.
  returned: when the cluster was reached
  type: int
  sample: 0
failed_items:
  description: Partitions whose leader was not elected, or not seen within O(operation_timeout).
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
      description: C(elect) or C(unsettled).
      type: str
    code:
      description: The protocol's name of the broker's error code; empty where no broker answered.
      type: str
  sample: []
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
    KafkaClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.leaders.resource import (
    ELECTION_OPTIONS,
    PreferredLeaders,
)


def main() -> None:
    """Entry point."""
    run_resource(
        ELECTION_OPTIONS,
        lambda connection, module: PreferredLeaders(
            KafkaClient(connection), module.params["topics"]
        ),
    )


if __name__ == "__main__":
    main()
