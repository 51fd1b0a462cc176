#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_broker_settings
short_description: Change settings of running brokers without a restart
version_added: 0.1.0
description:
  - Sets overrides on brokers where Kafka takes the changed settings while it runs, and reads them back. Takes
    away those that are not needed any more because the broker has read its file since.
  - Of each broker either everything is changed or nothing. Where it is nothing, the reasons are returned, and
    a restart is what remains. That is not a failure.
  - Overrides that somebody else has set are left alone.
  - Changes only thread pools, and limits of logs and connections; never listeners, certificates, logins,
    classes, or what decides whether a record is safe.
options:
  brokers:
    description: The brokers, all of them in one call.
    type: list
    elements: dict
    required: true
    suboptions:
      id:
        description: Id of the broker.
        type: int
        required: true
      settings:
        description:
          - What differs between what it has read at its start and what it is to have, as key to C(before) and
            C(after). Null for not set.
        type: dict
        default: {}
      own:
        description:
          - Overrides that were set by this module, as key to C(values), which it may have, and C(file), which
            the broker has read at its start.
        type: dict
        default: {}
  keys:
    description: What the version of Kafka says of each key, with C(update_mode) and C(default).
    type: dict
    required: true
  operation_timeout:
    description: Seconds within which a change must be in effect; at most a day.
    type: float
    default: 15.0
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
  - Needs the rights to DescribeConfigs and AlterConfigs on the cluster.
seealso:
  - module: kafkaops.cluster.jvm_instance
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Give broker 1 more threads while it runs
  kafkaops.cluster.kafka_broker_settings:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    brokers:
      - id: 1
        settings:
          num.io.threads: {before: "8", after: "12"}
    keys:
      num.io.threads: {update_mode: cluster-wide, default: "8"}

- name: Take the override away after the restart
  kafkaops.cluster.kafka_broker_settings:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    brokers:
      - id: 1
        own:
          num.io.threads: {values: ["12"], file: "12"}
    keys:
      num.io.threads: {update_mode: cluster-wide, default: "8"}
"""

RETURN = r"""
outcomes:
  description: What became of each broker, in the order of O(brokers).
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    broker:
      description: Its id.
      type: int
    live:
      description: Whether it has what it is to have without a restart.
      type: bool
    changes:
      description: What was changed, in words.
      type: list
      elements: str
    own:
      description: The overrides of O(brokers) that it has afterwards.
      type: dict
    reasons:
      description: Why it needs a restart.
      type: list
      elements: str
  sample:
    - broker: 1
      live: true
      changes: ["num.io.threads 8 -> 12"]
      own: {num.io.threads: "12"}
      reasons: []
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
    KafkaClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs import broker_settings
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.ranges import (
    OPERATION_MAX_SECONDS,
    checked_seconds,
)


def change(connection: Connection, module: AnsibleModule) -> Dict[str, Any]:
    """Change the settings; what became of each broker's."""
    params = module.params
    seconds = params["operation_timeout"]
    checked_seconds("operation_timeout", seconds, OPERATION_MAX_SECONDS)
    client = KafkaClient(connection)
    client.connect()
    asked = broker_settings.parse_asked(params["brokers"])
    decisions = broker_settings.change_brokers(
        client, asked, params["keys"], module.check_mode, seconds
    )
    return {
        "changed": any(each.after for each in decisions),
        "diff": broker_settings.diff(decisions),
        "outcomes": [broker_settings.to_dict(each) for each in decisions],
    }


def main() -> None:
    """Entry point."""
    run_once(broker_settings.OPTIONS, change)


if __name__ == "__main__":
    main()
