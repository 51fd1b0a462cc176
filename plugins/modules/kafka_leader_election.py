#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_leader_election
short_description: Elect leaders, the preferred ones or, as the last resort, any that is left
version_added: 0.1.0
description:
  - Elects the first replica of each partition as its leader, where it is in sync and another one leads.
  - A restart moves leaders away from a broker. Kafka by itself gives them back only every 300 seconds, and only if more
    than a tenth of them is elsewhere. Until then the others carry its load.
  - Partitions whose preferred leader is not in sync are left alone and named in a warning.
  - With O(election=unclean), the last resort for partitions whose in-sync replicas are all dead and will not come back,
    a replica that lags behind becomes the leader. What it lacks is lost, although it was acknowledged.
options:
  topics:
    description:
      - Names of topics. Default is all, internal ones included.
      - With O(election=unclean) they must be named.
    type: list
    elements: str
  leave:
    description: Partitions, as RV(plan) names them, that keep their leader where they have one; not with O(election=unclean).
    type: list
    elements: str
    default: []
  election:
    description:
      - V(preferred) gives leadership back to the first replica, and loses nothing.
      - V(unclean) gives a leader to partitions that have none. One that is in sync is taken where it is alive; otherwise
        the first replica that is alive, which needs O(allow=unclean_election). Partitions that have a leader are left
        alone. Needs the library kafka-python, too, which asks brokers how many bytes their replicas have.
    type: str
    choices: [preferred, unclean]
    default: preferred
  allow:
    description:
      - Consent to what loses records.
      - V(unclean_election), a leader that lacks acknowledged records. Without it, what would be done and what each
        replica has is in the refusal.
    type: list
    elements: str
    choices: [unclean_election]
    default: []
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
  - How many records an unclean election loses cannot be known before, since only dead brokers have them. Afterwards
    RV(elected) says where the partition ends now. A broker that returns cuts its replicas to that of the new leader.
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

- name: Broker 1 had the only replicas that were in sync, and its disk is gone
  kafkaops.cluster.kafka_leader_election:
    bootstrap_servers: kafka-2:9092,kafka-3:9092
    topics: [clicks]
    election: unclean
    allow: [unclean_election]
  register: made
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
without_leader:
  description: How many of them have no leader afterwards.
  returned: when the cluster was reached
  type: int
  sample: 0
elected:
  description: Partitions that got a leader, or would get one, with the offset at which they end now.
  returned: when the cluster was reached, with O(election=unclean)
  type: list
  elements: dict
  contains:
    partition:
      description: The partition.
      type: str
    end_offset:
      description: The offset of the next record; V(null) in check mode, and where it could not be read.
      type: int
  sample:
    - partition: clicks-0
      end_offset: 100
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

from typing import Any

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
    KafkaClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.log_dirs import (
    LogDirsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.leaders.plan import UNCLEAN
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.leaders.resource import (
    ELECTION_OPTIONS,
    PreferredLeaders,
    UncleanLeaders,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Resource


def make(connection: Connection, module: Any) -> Resource:
    """The leaders that the options ask for."""
    params = module.params
    if params["election"] == UNCLEAN:
        return UncleanLeaders(LogDirsClient(connection), params["topics"], params["allow"])
    return PreferredLeaders(KafkaClient(connection), params["topics"], params["leave"])


def main() -> None:
    """Entry point."""
    run_resource(ELECTION_OPTIONS, make, required_if=[("election", UNCLEAN, ["topics"])])


if __name__ == "__main__":
    main()
