#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_retention
short_description: Keep records for so long and up to so much, by patterns of topic names
version_added: 0.1.0
description:
  - Policies over topic names say how long records are kept, how much is kept, and how old records are cleaned up. Each topic
    gets the first policy whose expression is its whole name; a topic that no policy matches is left alone.
  - Everything is planned first. The plan is what check mode returns, what diff mode shows, and what is done. If one thing is
    refused, nothing at all is changed.
  - Shows for each topic the old and the new values with their source, and how many records and bytes become deletable.
    A cut needs consent, may be limited to a share of the topic, and can be made in steps.
  - With O(disk_budget), policies are refused that could fill a disk, in the worst case of all topics on it.
options:
  policies:
    description: The policies. The first one that matches counts.
    type: list
    elements: dict
    required: true
    suboptions:
      match:
        description: A regular expression over the whole name of a topic, such as C(logs\\..*). Write it in single quotes.
        type: raw
        required: true
      keep_for:
        description:
          - How long records are kept, at least; Kafka's C(retention.ms).
          - Write C(30m), C(12h), C(7d), C(4w), C(forever), plain milliseconds, or V(default) to take the topic's own value away.
          - A bare number below an hour is refused, because YAML reads C(1:30) as 90; in quotes it is accepted.
        type: raw
      keep_up_to:
        description:
          - How much is kept of each topic, over all its partitions, not counting replicas. Divided by the number of
            partitions it is Kafka's C(retention.bytes).
          - Write C(512MiB), C(200GiB), C(unlimited), plain bytes, or V(default) to take the topic's own value away.
        type: raw
      cleanup:
        description:
          - Kafka's C(cleanup.policy). One of C(delete), C(compact), C(compact,delete), or V(default) to take the topic's own value away.
        type: raw
      fit_segments:
        description:
          - Whether C(segment.ms) and C(segment.bytes) are lowered, where they would keep far more than is asked. Kafka deletes whole
            segments only, so that the oldest record of one stays until its newest may go.
          - Sets a tenth of what is kept, at least a minute and 1 MiB, where it is more than a quarter. Without it
            there is a warning where a segment may span longer, or more, than what is kept.
        type: bool
      leave_alone:
        description: Topics that match are not touched, whatever later policies say.
        type: bool
  disk_budget:
    description:
      - The share of each disk that may be filled in the worst case, such as C(80%). If the policies do not fit, they are refused.
      - The worst case of a topic is its limit by size and one segment, for each replica where it lies; without a limit by size
        it is what is written to it (see O(growth_window)) while records are kept. Topics without a policy count, too, and so
        does what others hold on these disks.
      - Topics that nothing bounds count with what they hold now, and are named in RV(not_bounded).
    type: str
  growth_window:
    description: How far to look back for how fast a topic grows, for O(disk_budget).
    type: str
    default: 1d
  maximum_cut:
    description:
      - The largest share of a topic's records or bytes that may become deletable, such as C(30%). A larger cut is refused, or
        made in steps.
    type: str
  cut_in_steps:
    description:
      - Whether a cut larger than O(maximum_cut) is made in steps. Each run makes one step of at most that share, and goes no
        further until the brokers have deleted what the step before let go. RV(unfinished) names the topics that need
        another run.
    type: bool
    default: false
  allow:
    description:
      - Consent to changes that delete records. Without it such a change is refused, with what is at stake.
      - V(retention_cut), keep records for a shorter time, or less of them.
      - V(cleanup_change), another C(cleanup.policy) by which more is deleted.
    type: list
    elements: str
    choices: [retention_cut, cleanup_change]
    default: []
  allow_internal:
    description:
      - Exact names of topics that policies may touch although they hold the state of Kafka, Connect, mirrors or streams. Others of
        this kind are left alone, and named in RV(protected).
    type: list
    elements: str
    default: []
  declared_topics:
    description:
      - What a task with M(kafkaops.cluster.kafka_topics) declares. If a topic there says something else than its policy, that is refused,
        because each run would undo the other.
    type: list
    elements: raw
    default: []
  assume_empty_if_unreachable:
    description:
      - In check mode, plan against an empty cluster if no broker can be reached, as before the first installation. Without
        meaning in a real run.
    type: bool
    default: false
  operation_timeout:
    description: Seconds from the first change until all changes can be seen; at most a day.
    type: float
    default: 300.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.disks
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
    details: With O(cut_in_steps) a further run makes the next step, until RV(unfinished) is empty.
notes:
  - Needs Describe, DescribeConfigs and AlterConfigs on the topics. Without Describe on the cluster bytes are not known, and
    O(disk_budget) cannot be used.
  - Brokers look every C(log.retention.check.interval.ms) (five minutes by default) for what they may delete.
seealso:
  - module: kafkaops.cluster.kafka_topics
  - module: kafkaops.cluster.kafka_topics_info
  - module: kafkaops.cluster.kafka_log_dirs_info
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Keep logs for a week and at most 200 GiB of each topic, and never fill a disk
  kafkaops.cluster.kafka_retention:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    policies:
      - match: 'audit\..*'
        leave_alone: true
      - match: 'logs\..*'
        keep_for: 7d
        keep_up_to: 200GiB
      - match: 'ref\..*'
        cleanup: compact
    disk_budget: 80%

- name: Show what a shorter retention would delete
  kafkaops.cluster.kafka_retention:
    bootstrap_servers: kafka-1:9092
    policies:
      - match: 'clicks\..*'
        keep_for: 1d
        fit_segments: true
    allow: [retention_cut]
  check_mode: true
  diff: true

- name: Cut it by at most 30% at a time, until it is done
  kafkaops.cluster.kafka_retention:
    bootstrap_servers: kafka-1:9092
    policies:
      - match: 'clicks\..*'
        keep_for: 1d
    allow: [retention_cut]
    maximum_cut: 30%
    cut_in_steps: true
  register: cut
  until: cut.unfinished | default([1]) | length == 0
  retries: 50
  delay: 330
"""

RETURN = r"""
plan:
  description: The changes as those of M(kafkaops.cluster.kafka_topics), and the refusals. The same in check mode and in a real run.
  returned: when the cluster was reached
  type: dict
  sample:
    changes:
    - kind: configure
      subject: logs.web
      before:
        config:
          retention.ms: '604800000'
      after:
        config:
          retention.ms: '86400000'
      note: 'retention.ms down from 7d to 1d: 600 records and about 4.6 MiB on disk would be deleted'
    refusals: []
report:
  description: For people; how many topics are concerned, and a line for each topic that changes, the most bytes at stake first.
  returned: when the cluster was reached
  type: list
  elements: str
  sample:
    - 2 topics have a policy, 2 change, 0 match none
    - 'not bounded, counted with what they hold now: logs.web-2'
    - 'logs.web: retention.ms 7d (topic) -> 1d; deletable: 600 records and about 4.6 MiB'
    - 'logs.web-2: retention.ms 7d (topic) -> 1d'
topics:
  description: The topics that have a policy.
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    name:
      description: Name of the topic.
      type: str
    policy:
      description: The expression that matched.
      type: str
    partitions:
      description: Number of partitions.
      type: int
    bytes:
      description: Bytes of one replica of each partition; V(null) if they are not known.
      type: int
    before:
      description:
        - C(retention.ms), C(retention.bytes), C(cleanup.policy), C(segment.ms) and C(segment.bytes), each with C(value), C(means) for people, and
          C(source), which is C(topic), C(broker), C(cluster), C(static) (the broker's file) or C(default) (Kafka's own).
      type: dict
    after:
      description: The same afterwards, or as it would be in check mode.
      type: dict
    deletable:
      description:
        - What the whole cut makes deletable, C(records) and C(bytes) of C(total_records) and C(total_bytes), of one replica of each
          partition; V(null) if there is no cut. Brokers delete whole segments, so it may be less by up to one of each partition.
      type: dict
    unfinished:
      description: Whether a further run is needed, because the cut is made in steps.
      type: bool
  sample:
    - name: logs.web
      policy: logs\..*
      partitions: 2
      bytes: 9613094
      before:
        retention.ms:
          value: '604800000'
          means: 7d
          source: topic
        segment.bytes:
          value: '1048576'
          means: 1MiB
          source: topic
      after:
        retention.ms:
          value: '86400000'
          means: 1d
          source: topic
        segment.bytes:
          value: '1048576'
          means: 1MiB
          source: topic
      deletable:
        records: 600
        bytes: 4806547
        total_records: 1200
        total_bytes: 9613094
      unfinished: false
unfinished:
  description: Names of topics whose cut needs a further run. Empty when all is as the policies say.
  returned: when the cluster was reached
  type: list
  elements: str
  sample: []
protected:
  description: Names of topics that match a policy and are left alone, because they hold somebody's state.
  returned: when the cluster was reached
  type: list
  elements: str
  sample: [__consumer_offsets]
left_alone:
  description: Names of topics that a policy with C(leave_alone) matches.
  returned: when the cluster was reached
  type: list
  elements: str
  sample: []
without_policy:
  description: How many topics match no policy.
  returned: when the cluster was reached
  type: int
  sample: 2
disks:
  description: With O(disk_budget), the disks, those that may become fullest first.
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    directories:
      description: The log directories on it, each with its broker. Directories of one host whose disks have as many bytes count as one.
      type: list
      elements: str
    total_bytes:
      description: Size of the disk.
      type: int
    usable_bytes:
      description: Free bytes.
      type: int
    others_bytes:
      description: What is neither free nor of Kafka.
      type: int
    worst_case_bytes:
      description: The most that may lie on it, others included.
      type: int
    worst_case_share:
      description: The same as a share of the disk.
      type: str
    budget_bytes:
      description: What O(disk_budget) allows.
      type: int
  sample:
    - directories:
      - broker 1 /var/lib/kafka/data
      total_bytes: 270553174016
      usable_bytes: 78370803712
      others_bytes: 192151713076
      worst_case_bytes: 192174242119
      worst_case_share: 71%
      budget_bytes: 216442539212
not_bounded:
  description: With O(disk_budget), names of topics that neither a size nor their growth bounds.
  returned: when the cluster was reached
  type: list
  elements: str
  sample: [logs.web-2]
failed_items:
  description: Topics for which the cluster refused a change, or of which a change could not be seen within O(operation_timeout).
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
  sample: []
cluster_id:
  description: Id of the cluster; V(null) if it was assumed empty.
  returned: when the cluster was reached
  type: str
  sample: HJApaBPOSuOLtHWS0snxMA
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import DISK_OPTIONS
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.client import (
    RetentionClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.retention.resource import (
    RETENTION_OPTIONS,
    Retention,
)


def main() -> None:
    """Entry point."""
    run_resource(
        {**RETENTION_OPTIONS, **DISK_OPTIONS},
        lambda connection, module: Retention(
            RetentionClient(connection), module.params, module.check_mode
        ),
    )


if __name__ == "__main__":
    main()
