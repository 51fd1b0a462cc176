#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_topics
short_description: Create, grow, configure and delete Kafka topics
version_added: 0.1.0
description:
  - Brings a whole set of topics to a declared state in one call, with a number of requests that does
    not grow with the number of topics.
  - Everything is planned first. The plan is what check mode returns, what diff mode shows, and what
    is done. If one item is refused, nothing at all is changed.
  - What could delete records, or change the order of keys, needs its own consent; the refusal says
    how much is at stake and which option to add.
options:
  topics:
    description:
      - The topics. A topic must not be listed twice.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Name of the topic. Letters, digits, C(.), C(_) and C(-), at most 249 characters.
          - Names that begin with C(_) are refused unless they are listed in O(allow_internal).
          - A text. What YAML reads as something else, such as C(yes), C(0123) or C(12:30), is refused;
            write it in quotes.
        type: raw
        required: true
      state:
        description: Whether the topic shall exist.
        type: str
        choices: [present, absent]
        default: present
      partitions:
        description:
          - Number of partitions. Never fewer than there are; more needs V(partition_growth) in O(allow).
          - By default the brokers' C(num.partitions) for a new topic; an existing one is left alone.
        type: raw
      replication_factor:
        description:
          - Number of replicas of each partition. At most the number of live brokers, and above
            C(min.insync.replicas) (1 with 1 is accepted).
          - By default the brokers' C(default.replication.factor) for a new topic; an existing one
            is left alone. That of an existing topic is not changed by this module.
        type: raw
      retention:
        description:
          - How long records are kept, at least; Kafka's C(retention.ms).
          - Write C(30m), C(12h), C(7d), C(4w), C(forever), or plain milliseconds.
          - A bare number below an hour is refused, because YAML reads C(1:30) as 90; in quotes it is
            accepted.
        type: raw
      retention_size:
        description:
          - How much is kept of each partition; Kafka's C(retention.bytes).
          - Write C(512MiB), C(10GiB), C(unlimited), or plain bytes.
          - A bare number below 1 MiB is refused; in quotes it is accepted.
        type: raw
      cleanup:
        description:
          - What happens to old records; Kafka's C(cleanup.policy). One of C(delete), C(compact) and
            C(compact,delete).
        type: raw
      config:
        description:
          - Any other topic setting, under Kafka's own name. V(null) brings it back to the default.
          - Values of keys that end in C(.ms) or C(.bytes) may be written as durations and sizes.
        type: dict
  src:
    description:
      - Path of a YAML or JSON file with the same items, a list or a mapping with the key
        C(kafka_topics) or C(topics). Read by the module, so that thousands of topics do not pass
        through templates. Not together with O(topics).
    type: path
  config_mode:
    description:
      - With V(merge), settings that an item does not name are left alone.
      - With V(replace), settings that are set on the topic but not named by its item go back to
        the default; but not the lists of throttled replicas, which belong to whoever moves them.
    type: str
    choices: [merge, replace]
    default: merge
  allow:
    description:
      - Consent to changes that can delete or endanger records. Without it such a change is refused,
        with what is at stake.
      - V(partition_growth), more partitions. Keys then move to other partitions, so that records of one
        key before and after are not in order.
      - V(retention_cut), keep records for a shorter time, or less of them. C(delete.retention.ms) and
        C(min.compaction.lag.ms) of a compacted topic count, and another C(message.timestamp.type), by which
        the age of records counts, and the end of C(remote.storage.enable).
      - V(cleanup_change), another C(cleanup.policy) by which more is deleted, by age and size, or all
        but the newest record of each key.
      - V(unclean_election), let a replica that lags behind become the leader
        (C(unclean.leader.election.enable)).
      - V(min_insync_cut), a lower C(min.insync.replicas).
      - V(delete), delete the topics that are declared V(absent).
      - The way back to a safer value needs no consent.
    type: list
    elements: str
    choices:
      - partition_growth
      - retention_cut
      - cleanup_change
      - unclean_election
      - min_insync_cut
      - delete
    default: []
  allow_internal:
    description:
      - Exact names of topics that are protected otherwise; those that begin with C(_), and for
        deletion those of Connect, mirrors and streams.
    type: list
    elements: str
    default: []
  purge:
    description:
      - Delete topics that are not declared. Needs no V(delete) in O(allow), protected topics stay.
    type: dict
    suboptions:
      patterns:
        description:
          - Regular expressions; only topics whose whole name matches one are deleted.
        type: list
        elements: str
        required: true
      maximum:
        description:
          - If more topics than this would be deleted, nothing at all is changed.
        type: int
        required: true
  operation_timeout:
    description:
      - Seconds from the first change until all changes can be seen; at most a day.
      - A cluster of the ZooKeeper line takes about 0.1 s for a topic of three partitions.
    type: float
    default: 300.0
  assume_empty_if_unreachable:
    description:
      - In check mode, plan against an empty cluster if no broker can be reached, as before the first
        installation. Without meaning in a real run.
    type: bool
    default: false
  expected_brokers:
    description:
      - How many brokers there will be, for O(assume_empty_if_unreachable).
    type: int
  config_keys_file:
    description:
      - Path of a JSON file whose key C(topic) maps the known topic settings. Used to refuse unknown
        settings while the cluster has no topic, from which they are learned otherwise.
    type: path
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
  idempotent:
    support: full
seealso:
  - module: kafkaops.cluster.kafka_cluster_info
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Create or update topics
  kafkaops.cluster.kafka_topics:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    topics:
      - name: orders
        partitions: 12
        replication_factor: 3
        retention: 7d
        config:
          min.insync.replicas: 2
      - name: customers
        partitions: 6
        replication_factor: 3
        cleanup: compact

- name: Keep records of orders for one day only, and say so
  kafkaops.cluster.kafka_topics:
    bootstrap_servers: kafka-1:9092
    topics:
      - name: orders
        retention: 1d
    allow: [retention_cut]

- name: Thousands of topics from a file, and no others below their prefix
  kafkaops.cluster.kafka_topics:
    bootstrap_servers: kafka-1:9092
    src: /etc/kafkaops/topics.yml
    purge:
      patterns:
        - team-a\..*
      maximum: 5

- name: Set the connection once for all modules
  module_defaults:
    group/kafkaops.cluster.kafka:
      bootstrap_servers: kafka-1:9092
      security_protocol: SASL_SSL
      sasl_mechanism: SCRAM-SHA-512
      sasl_username: admin
      sasl_password: "{{ vault_kafka_admin_password }}"
      ssl_ca: /etc/kafkaops/ca.pem
  block:
    - name: Delete a topic
      kafkaops.cluster.kafka_topics:
        topics:
          - name: retired
            state: absent
        allow: [delete]
"""

RETURN = r"""
plan:
  description:
    - What was planned, in the order in which it is done. The same in check mode and in a real run.
  returned: when the cluster was reached
  type: dict
  contains:
    changes:
      description: The changes; RV(ignore:before) and RV(ignore:after) name only what differs.
      type: list
      elements: dict
      contains:
        kind:
          description: One of C(create), C(grow), C(configure) and C(delete).
          type: str
        subject:
          description: Name of the topic.
          type: str
        before:
          description: What is there before.
          type: dict
        after:
          description: What is there afterwards. V(null) is the brokers' default.
          type: dict
        note:
          description: What is at stake, for people.
          type: str
    refusals:
      description: What is refused. If there is one, nothing at all was changed.
      type: list
      elements: dict
      contains:
        check:
          description: Stable id of the rule, as in C([partitions.decrease]).
          type: str
        level:
          description: Always C(error).
          type: str
        subjects:
          description: Names of the topics.
          type: list
          elements: str
        setting:
          description: The option that led here.
          type: str
        value:
          description: Its value, as text.
          type: str
        reason:
          description: Why.
          type: str
        remedy:
          description: What to do instead.
          type: str
        line:
          description: All of it, as in the message.
          type: str
  sample:
    changes:
      - kind: configure
        subject: orders
        before:
          config:
            retention.ms: "604800000"
        after:
          config:
            retention.ms: "86400000"
        note: >-
          retention.ms down from 7d to 1d: 200 records and about 203.1 KiB on disk would be deleted
    refusals: []
diff:
  description:
    - The topics that change, before and after. C(at stake) in C(after) says what the change can delete or
      endanger.
  returned: when the cluster was reached
  type: dict
  sample:
    before:
      orders:
        config:
          retention.ms: "604800000"
    after:
      orders:
        at stake: >-
          retention.ms down from 7d to 1d: 200 records and about 203.1 KiB on disk would be deleted
        config:
          retention.ms: "86400000"
topics:
  description:
    - The declared topics that exist, as they are after the run, or would be in check mode.
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    name:
      description: Name of the topic.
      type: str
    partitions:
      description: Number of partitions.
      type: int
    replication_factor:
      description: Number of replicas of each partition.
      type: int
    config:
      description: Settings that are set on the topic itself; what comes from the brokers is left out.
      type: dict
  sample:
    - name: orders
      partitions: 3
      replication_factor: 3
      config:
        min.insync.replicas: "2"
        retention.ms: "86400000"
failed_items:
  description:
    - Topics for which the cluster refused a change, or of which a change was made, but could not be seen
      on every broker within O(operation_timeout). All other changes were made.
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    name:
      description: Name of the topic.
      type: str
    error:
      description: The broker's own words.
      type: str
    kind:
      description: The change that failed, or C(unsettled).
      type: str
    code:
      description: The protocol's name of the broker's error code; empty where no broker answered.
      type: str
  sample:
    - name: orders
      error: Topic 'orders' already exists.
      kind: create
      code: TOPIC_ALREADY_EXISTS
cluster_id:
  description: Id of the cluster; V(null) if it was assumed empty.
  returned: when the cluster was reached
  type: str
  sample: HJApaBPOSuOLtHWS0snxMA
reachable:
  description: V(false) if the failure is that no broker answered.
  returned: when no broker answered
  type: bool
  sample: false
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.topics.resource import (
    TOPIC_OPTIONS,
    TOPIC_RULES,
    topics_of,
)


def main() -> None:
    """Entry point."""
    run_resource(
        TOPIC_OPTIONS,
        lambda connection, module: topics_of(connection, module.params, module.check_mode),
        **TOPIC_RULES,
    )


if __name__ == "__main__":
    main()
