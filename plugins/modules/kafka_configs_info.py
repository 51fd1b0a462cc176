#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_configs_info
short_description: Read the settings of Kafka's brokers, and what overrides what
version_added: 0.1.0
description:
  - Returns the settings that are in force on each broker, where each value comes from, and the values that it overrides.
  - Returns what is set in the cluster in the form in which M(kafkaops.cluster.kafka_configs) takes it. Applied to the
    same cluster, it changes nothing.
options:
  brokers:
    description: Ids of the brokers to ask. Default is all that run.
    type: list
    elements: int
  include:
    description:
      - Which settings to return in RV(settings). V(overrides) are those set in the cluster, for one broker or for all;
        V(set) also those of the brokers' files; V(all) also Kafka's defaults.
    type: str
    choices: [overrides, set, all]
    default: overrides
  names:
    description: Regular expressions; only settings whose whole name matches one are returned in RV(settings).
    type: list
    elements: str
    default: []
  loggers:
    description: Whether to return the levels of loggers, too.
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
    support: N/A
    details: It changes nothing.
  idempotent:
    support: full
notes:
  - Needs the right to DescribeConfigs on the cluster.
  - Secrets are hidden; brokers do not tell them.
seealso:
  - module: kafkaops.cluster.kafka_configs
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: What is set in the cluster, beside the brokers' files
  kafkaops.cluster.kafka_configs_info:
    bootstrap_servers: kafka-1:9092
  register: found

- name: How long records are kept, on each broker, and why
  kafkaops.cluster.kafka_configs_info:
    bootstrap_servers: kafka-1:9092
    include: all
    names: ['log\.retention\..*']
"""

RETURN = r"""
settings:
  description: The settings in force, by broker and name.
  returned: always
  type: list
  elements: dict
  contains:
    broker:
      description: Id of the broker.
      type: int
    name:
      description: The setting.
      type: str
    value:
      description: The value in force; V(null) if there is none, C((hidden\)) for a secret.
      type: str
    source:
      description: Where it comes from, C(broker), C(cluster), C(static) (its file) or C(default).
      type: str
    read_only:
      description: Whether Kafka reads it only at its start.
      type: bool
    overridden:
      description: The values that would follow, the strongest first, each with C(source) and C(value).
      type: list
      elements: dict
  sample:
    - broker: 1
      name: num.io.threads
      value: "6"
      source: broker
      read_only: false
      overridden:
        - {source: cluster, value: "5"}
        - {source: static, value: "4"}
        - {source: default, value: "8"}
configs:
  description: What is set in the cluster, in the form that O(kafkaops.cluster.kafka_configs#module:configs) has, without secrets.
  returned: always
  type: list
  elements: dict
  sample:
    - scope: cluster
      settings: {num.io.threads: "5"}
    - scope: broker
      brokers: [1]
      settings: {num.io.threads: "6"}
differing:
  description: Settings whose values in force differ between these brokers, without those that every broker has of its own.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: The setting.
      type: str
    values:
      description: The values by broker.
      type: dict
  sample:
    - name: num.io.threads
      values: {"1": "6", "2": "5", "3": "5"}
loggers:
  description: The levels of the loggers of each broker, with O(loggers).
  returned: always
  type: list
  elements: dict
  contains:
    broker:
      description: Id of the broker.
      type: int
    levels:
      description: The levels by logger.
      type: dict
  sample:
    - broker: 1
      levels: {kafka.request.logger: INFO, root: INFO}
cluster_id:
  description: Id of the cluster.
  returned: always
  type: str
  sample: RO6sGagMRYWu7VnngZhBAA
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.client import (
    ConfigsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.resource import (
    INFO_OPTIONS,
    all_configs,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once


def main() -> None:
    """Entry point."""
    run_once(
        INFO_OPTIONS,
        lambda connection, module: all_configs(ConfigsClient(connection), module.params),
    )


if __name__ == "__main__":
    main()
