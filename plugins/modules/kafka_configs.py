#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_configs
short_description: Set what Kafka's brokers take while they run
version_added: 0.1.0
description:
  - Brings settings of single brokers, the default of all brokers, and levels of loggers to a declared state, in one
    call, with one request to each broker, whatever the number of settings.
  - Kafka looks for a setting at the broker itself, then in the default of all brokers, then in the broker's file, and
    takes its own default last. What is set here is kept by the cluster and survives restarts; levels of loggers do not.
  - Everything is planned first. The plan is what check mode returns, what diff mode shows, and what is done. If one
    setting is refused, nothing at all is changed. The brokers are asked whether they would do it before the first change.
  - What could delete or endanger records needs its own consent, as with M(kafkaops.cluster.kafka_topics); the refusal
    says how much is at stake.
options:
  configs:
    description: The settings. None must be named twice for one scope.
    type: list
    elements: dict
    required: true
    suboptions:
      scope:
        description:
          - V(cluster), the default of all brokers; V(broker), single brokers; V(loggers), levels of the loggers of
            brokers.
        type: str
        choices: [cluster, broker, loggers]
        required: true
      brokers:
        description:
          - Ids of the brokers, for the scopes V(broker) and V(loggers). They must be running.
          - For V(loggers) default is all that run.
        type: list
        elements: int
      state:
        description: With V(absent), the named settings are taken away, whatever their values.
        type: str
        choices: [present, absent]
        default: present
      settings:
        description:
          - The settings, under Kafka's own names. V(null) takes one away.
          - Values of keys that end in C(.ms) or C(.bytes) may be written as durations and sizes, as C(7d) and C(10GiB).
          - For V(loggers), names of loggers with C(TRACE), C(DEBUG), C(INFO), C(WARN), C(ERROR) or C(FATAL). V(null)
            gives a logger the level of the one above it.
        type: dict
      secrets:
        description:
          - Settings whose values must not be shown, such as passwords of key stores. Brokers do not tell them, so see
            O(update_secrets).
        type: dict
  config_mode:
    description:
      - With V(merge), settings that are not named are left alone.
      - With V(replace), settings that are set at a named scope and are not named there are taken away. Throttles of
        those who move replicas, and levels of loggers, stay; and so does C(min.insync.replicas) of the cluster while
        it keeps eligible leader replicas (Kafka 4.1 and later), because the controllers need it.
    type: str
    choices: [merge, replace]
    default: merge
  update_secrets:
    description:
      - With V(always), secrets are set by each run, and the module reports a change.
      - With V(on_create), only where there is none yet.
    type: str
    choices: [always, on_create]
    default: always
  plugin_prefixes:
    description:
      - Beginnings of keys that the brokers do not know, because a plug-in reads them.
      - Brokers tell no value of such a key, so they belong into C(secrets) of an item.
    type: list
    elements: str
    default: []
  allow:
    description:
      - Consent to changes that can delete or endanger records of topics without a value of their own.
      - V(retention_cut), C(log.retention.ms), C(log.retention.bytes), C(log.cleaner.delete.retention.ms) or
        C(log.cleaner.min.compaction.lag.ms) down, or another C(log.message.timestamp.type).
      - V(cleanup_change), another C(log.cleanup.policy) by which more is deleted.
      - V(unclean_election), C(unclean.leader.election.enable) on.
      - V(min_insync_cut), C(min.insync.replicas) down.
      - Taking a setting away counts as well, by the value that is in force then.
    type: list
    elements: str
    choices: [retention_cut, cleanup_change, unclean_election, min_insync_cut]
    default: []
  operation_timeout:
    description: Seconds from the first change until all brokers show all changes; at most a day.
    type: float
    default: 60.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.attributes
  - kafkaops.cluster.attributes.actiongroup_kafka
attributes:
  check_mode:
    support: full
    details: The plan is verified by the brokers, which are asked to validate only.
  diff_mode:
    support: full
    details: Secrets are hidden.
  idempotent:
    support: partial
    details: Not with O(configs[].secrets), unless O(update_secrets=on_create).
notes:
  - Needs the rights to DescribeConfigs and AlterConfigs on the cluster; to say how much is at stake, also Describe on topics.
  - What is set here beats the brokers' files. Where this collection writes these files, settings belong into
    C(kafka_config); the preflight warns of what beats it.
  - Kafka does not let C(min.insync.replicas) be taken away from the default of all brokers while it keeps eligible
    leader replicas.
seealso:
  - module: kafkaops.cluster.kafka_configs_info
  - module: kafkaops.cluster.kafka_topics
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: A default for all brokers, and more threads for one
  kafkaops.cluster.kafka_configs:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    configs:
      - scope: cluster
        settings:
          log.retention.ms: 14d
          message.max.bytes: 2MiB
      - scope: broker
        brokers: [1]
        settings:
          num.io.threads: 16

- name: Let all brokers log every request for a while
  kafkaops.cluster.kafka_configs:
    bootstrap_servers: kafka-1:9092
    configs:
      - scope: loggers
        settings:
          kafka.request.logger: DEBUG

- name: Back to what it was
  kafkaops.cluster.kafka_configs:
    bootstrap_servers: kafka-1:9092
    configs:
      - scope: loggers
        settings:
          kafka.request.logger: null
      - scope: broker
        brokers: [1]
        state: absent
        settings:
          num.io.threads: null

- name: Keep records for one day only where a topic does not say otherwise
  kafkaops.cluster.kafka_configs:
    bootstrap_servers: kafka-1:9092
    configs:
      - scope: cluster
        settings:
          log.retention.ms: 1d
    allow: [retention_cut]

- name: A new key store for a listener of broker 2
  kafkaops.cluster.kafka_configs:
    bootstrap_servers: kafka-1:9092
    configs:
      - scope: broker
        brokers: [2]
        settings:
          listener.name.clients.ssl.keystore.location: /etc/kafka/new.p12
        secrets:
          listener.name.clients.ssl.keystore.password: "{{ vault_keystore_password }}"
"""

RETURN = r"""
plan:
  description: What was planned, in the order in which it is done. The same in check mode and in a real run.
  returned: when the cluster was reached
  type: dict
  contains:
    changes:
      description: The changes, one for each scope; RV(ignore:before) and RV(ignore:after) name only what differs.
      type: list
      elements: dict
      contains:
        kind:
          description: Always C(configure).
          type: str
        subject:
          description: The scope, as C(cluster default), C(broker 1) or C(loggers of broker 1).
          type: str
        before:
          description: What is set there before. V(null) is nothing.
          type: dict
        after:
          description: What is set there afterwards. V(null) is nothing.
          type: dict
        note:
          description: What is at stake, for people.
          type: str
    refusals:
      description: What is refused, each as C(check), C(subjects), C(setting), C(value), C(reason), C(remedy) and C(line).
        If there is one, nothing at all was changed.
      type: list
      elements: dict
  sample:
    changes:
      - kind: configure
        subject: broker 1
        before: {num.io.threads: null}
        after: {num.io.threads: "16"}
        note: ""
    refusals: []
diff:
  description: The scopes that change, before and after. C(at stake) in C(after) says what the change can endanger.
  returned: when the cluster was reached
  type: dict
  sample:
    before:
      broker 1: {}
    after:
      broker 1: {num.io.threads: "16"}
settings:
  description:
    - What is in force of the declared settings on each broker concerned, after the run, or would be in check mode.
  returned: when the cluster was reached
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
      description: The value in force; V(null) if there is none.
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
      value: "16"
      source: broker
      read_only: false
      overridden:
        - {source: static, value: "4"}
        - {source: default, value: "8"}
failed_items:
  description:
    - Scopes for which the cluster refused a change, or of which a change was made, but could not be seen on every broker
      within O(operation_timeout). All other changes were made.
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    name:
      description: The scope.
      type: str
    error:
      description: The broker's own words.
      type: str
    kind:
      description: C(configure) or C(unsettled).
      type: str
    code:
      description: The protocol's name of the broker's error code; empty where no broker answered.
      type: str
  sample:
    - name: cluster default
      error: Cluster-level min.insync.replicas cannot be removed while ELR is enabled
      kind: configure
      code: INVALID_CONFIG
cluster_id:
  description: Id of the cluster.
  returned: when the cluster was reached
  type: str
  sample: RO6sGagMRYWu7VnngZhBAA
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.client import (
    ConfigsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.resource import (
    CONFIGS_OPTIONS,
    Configs,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource


def main() -> None:
    """Entry point."""
    run_resource(
        CONFIGS_OPTIONS,
        lambda connection, module: Configs(ConfigsClient(connection), module.params),
    )


if __name__ == "__main__":
    main()
