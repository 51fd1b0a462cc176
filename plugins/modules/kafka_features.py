#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_features
short_description: Raise the finalised features of a Kafka cluster without ZooKeeper
version_added: 0.1.0
description:
  - Raises features such as C(metadata.version) to a level, which is the end of an upgrade. There is no way back from it, since Kafka
    lowers no level whose metadata an older release could not read.
  - The active controller judges all of them before anything is changed, and refuses what a node of the cluster does not support.
    They are raised in one request, and read back from every live broker.
  - Never lowers a feature. A level below the finalised one is refused.
  - Finalised features are read by M(kafkaops.cluster.kafka_cluster_info) with O(kafkaops.cluster.kafka_cluster_info#module:features).
options:
  levels:
    description:
      - Name of each feature with its level, a whole number. Features that are not named stay as they are.
      - C(kraft.version) makes a quorum whose voters stand in the configuration a dynamic one, for good. From Kafka 4.1 on; Kafka 3.9 says that it
        is raised, and leaves the voters where they are.
    type: dict
    required: true
  operation_timeout:
    description: Seconds within which everything must be done, from the judgement to the last look; at most a day.
    type: float
    default: 60.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.attributes
  - kafkaops.cluster.attributes.actiongroup_kafka
attributes:
  check_mode:
    support: full
    details: Kafka is asked to judge the change, and not to make it.
  diff_mode:
    support: full
  idempotent:
    support: full
notes:
  - Needs the right to Alter on the cluster.
  - From a C(metadata.version) of Kafka 4.1 with C(eligible.leader.replicas.version) on, C(min.insync.replicas) is a setting of the
    cluster, as the active controller has it in its configuration.
seealso:
  - module: kafkaops.cluster.kafka_cluster_info
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Finalise metadata.version of Kafka 4.3, and leave all else as it is
  kafkaops.cluster.kafka_features:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    levels:
      metadata.version: 30

- name: See whether a node is in the way of the new group and transaction protocols
  kafkaops.cluster.kafka_features:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    levels:
      group.version: 1
      transaction.version: 2
  check_mode: true
"""

RETURN = r"""
levels:
  description: All finalised features with their levels, as they are now or would be.
  returned: when the cluster was reached
  type: dict
  sample: {metadata.version: 30, kraft.version: 1, group.version: 1, transaction.version: 2}
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
      description: Each with C(kind), C(subject), C(before), C(after) and C(note).
      type: list
      elements: dict
    refusals:
      description: What was refused, and why. Nothing is changed while there is one.
      type: list
      elements: dict
  sample:
    changes:
      - kind: raise
        subject: metadata.version
        before: {level: 21}
        after: {level: 30}
        note: there is no way back
    refusals: []
diff:
  description: The features that are raised, before and after.
  returned: when the cluster was reached
  type: dict
  sample:
    before:
      metadata.version: {level: 21}
    after:
      metadata.version: {level: 30, at stake: there is no way back}
failed_items:
  description: Features that Kafka did not raise, with its words.
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    name:
      description: Name of the feature.
      type: str
    error:
      description: What Kafka says.
      type: str
    kind:
      description: Kind of the change, or V(unsettled) where it was made and cannot be seen yet.
      type: str
    code:
      description: Name of the protocol's error code; empty if no broker answered.
      type: str
  sample: []
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.features.client import (
    FeaturesClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.features.resource import (
    FEATURE_OPTIONS,
    Features,
)


def main() -> None:
    """Entry point."""
    run_resource(
        FEATURE_OPTIONS,
        lambda connection, module: Features(FeaturesClient(connection), module.params),
    )


if __name__ == "__main__":
    main()
