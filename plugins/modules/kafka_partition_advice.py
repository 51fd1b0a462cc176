#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_partition_advice
short_description: How many partitions a cluster and a topic should have, and what more of them cost
version_added: 0.1.0
description:
  - Compares the partitions of a cluster, and those that are planned, with the known bounds. Each bound is told with its
    source and year, because none is a law.
  - Says for a topic how many partitions a throughput needs, which share of the keys moves to another partition when it
    grows, and what growth does to the groups that read it.
  - Estimates for how many seconds partitions have no leader when a broker dies uncleanly, or measures it while somebody
    ends a broker.
  - Nothing is changed.
options:
  topics:
    description: Topics that are asked about. They need not exist.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the topic.
        type: str
        required: true
      partitions:
        description: How many it shall have; counted into the planned numbers. Not fewer than it has.
        type: int
      replication_factor:
        description: Of a topic that is not there yet. By default 3, or as many as there are brokers.
        type: int
      throughput:
        description: Bytes a second that are written to the whole topic, such as V(50MiB).
        type: str
      partition_write:
        description:
          - Bytes a second that one partition takes. Measure it with C(kafka-producer-perf-test.sh) where it matters.
          - The default is the lower end of what was found in 2015, some tens of MB.
        type: str
        default: 10MiB
      consumer_read:
        description: Bytes a second that one consumer of a group reads and works on. By default it is left out of the sum.
        type: str
      consumers:
        description: How many consumers of one group are to read at the same time. Each needs a partition.
        type: int
        default: 0
      keyed:
        description: Whether producers give keys. Then a multiple of the present partitions is suggested, which moves the fewest.
        type: bool
        default: true
  sample_seconds:
    description:
      - For so long it is watched how fast records of growing topics are written and read, so that the time until a group
        has caught up can be told for now and for then; at most an hour. By default only the lag is told.
    type: float
    default: 0.0
  open_files:
    description: How many files a broker's process may have open. The default is what Kafka's documentation asks for.
    type: int
    default: 100000
  max_map_count:
    description: The kernel's C(vm.max_map_count) on the brokers' hosts. The default is that of Linux.
    type: int
    default: 65530
  watch:
    description:
      - Measures instead of estimating. The module looks at a broker until it dies and everything that it led has a leader
        again, and tells the seconds in RV(watched). End the process meanwhile, with SIGKILL, on a cluster that may lose a broker.
      - It ends nothing by itself.
    type: dict
    suboptions:
      broker:
        description: Id of the broker.
        type: int
        required: true
      timeout:
        description: Seconds within which it must die and all must be led again; at most an hour.
        type: float
        default: 300.0
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
  - Needs Describe on the cluster, and DescribeConfigs on the topics; Describe on groups for RV(topics[].groups).
  - Segments are counted as the bytes of replicas and C(segment.bytes) need them at least; where they are closed by time there are more.
    Each counts as one open file and two memory maps. Brokers map an index when it is first used, and none without an entry, so that the
    kernel may have fewer. Where C(segment.bytes) was lowered, older segments are larger and fewer than that.
seealso:
  - module: kafkaops.cluster.kafka_topics
  - module: kafkaops.cluster.kafka_consumer_groups_info
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Where does the cluster stand
  kafkaops.cluster.kafka_partition_advice:
    bootstrap_servers: kafka-1:9092
  register: advice

- name: Show it
  ansible.builtin.debug:
    msg: "{{ advice.lines }}"

- name: What if orders had 12 partitions, and what would 200 MiB a second need
  kafkaops.cluster.kafka_partition_advice:
    bootstrap_servers: kafka-1:9092
    sample_seconds: 30
    topics:
      - {name: orders, partitions: 12, throughput: 200MiB, consumer_read: 20MiB}

- name: No bound of today may be broken
  ansible.builtin.assert:
    that: advice.bounds | selectattr('level', 'eq', 'beyond') | length == 0

- name: Measure how long the partitions of broker 2 are without a leader; kill it meanwhile
  kafkaops.cluster.kafka_partition_advice:
    bootstrap_servers: kafka-1:9092,kafka-3:9092
    watch: {broker: 2}
"""

RETURN = r"""
bounds:
  description: Each bound with the numbers of the cluster; the worst broker or topic counts.
  returned: success
  type: list
  elements: dict
  contains:
    bound:
      description: What is bounded.
      type: str
    now:
      description: What the cluster has.
      type: int
    planned:
      description: What it would have with what O(topics) plan.
      type: int
    limit:
      description: The bound.
      type: int
    level:
      description:
        - V(beyond) and V(near), from 80 % on, of bounds of today.
        - V(note), beyond a bound that is of the Kafka of its year, or of ZooKeeper while this is a KRaft cluster.
        - V(ok) otherwise.
      type: str
    where:
      description: The worst one.
      type: str
    source:
      description: Who found it.
      type: str
    year:
      description: When.
      type: int
  sample:
    - bound: replicas of a broker
      now: 600
      planned: 5609
      limit: 4000
      level: beyond
      where: broker 1
      source: Apache Kafka, KIP-578, Add configuration to limit number of partitions; first said of Kafka 1.1 in 2018
      year: 2020
estimates:
  description: Parts of the time without a leader after an unclean death, at worst, and what replicas add to a write. Nothing of it is measured.
  returned: success
  type: list
  elements: dict
  contains:
    what:
      description: Which part.
      type: str
    seconds:
      description: So long.
      type: float
    source:
      description: What it is made of.
      type: str
    year:
      description: The year of the source; V(null) for the settings of this cluster.
      type: int
  sample:
    - what: until the death of a broker is noticed (zookeeper.session.timeout.ms)
      seconds: 18.0
      source: the settings of this cluster's brokers
      year: null
    - what: electing leaders for all that one broker leads (5 ms each)
      seconds: 1.015
      source: Jun Rao, How to choose the number of topics/partitions in a Kafka cluster, Confluent; of Kafka 0.8
      year: 2015
watched:
  description: What was measured with O(watch), V(null) without it.
  returned: success
  type: dict
  contains:
    broker:
      description: Its id.
      type: int
    partitions:
      description: How many it led.
      type: int
    seconds_first:
      description: Seconds from its death until the first of them had a leader; V(null) for none.
      type: float
    seconds_last:
      description: The same of the last one that got a leader.
      type: float
    without_leader:
      description: Those that nobody can lead, since no other replica is in sync.
      type: list
      elements: str
  sample:
    broker: 2
    partitions: 7
    seconds_first: 3.968
    seconds_last: 3.968
    without_leader: [alone-0]
topics:
  description: The advice for each of O(topics).
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The topic.
      type: str
    partitions:
      description: How many it has; V(null) for one that is not there.
      type: int
    planned:
      description: How many it would have.
      type: int
    needed:
      description: How many the throughput needs.
      type: int
    suggested:
      description: How many to have; with keys the least multiple of the present number.
      type: int
    keys_moved:
      description: Share of the keys that go to another partition with the planned number, 0 to 1.
      type: float
    keys_moved_suggested:
      description: The same with the suggested number.
      type: float
    groups:
      description: What growth does to each group that reads it.
      type: list
      elements: dict
      contains:
        group:
          description: Its name.
          type: str
        members:
          description: Consumers of it that read the topic.
          type: int
        idle_now:
          description: Members without a partition of it.
          type: int
        idle_planned:
          description: The same with the planned number.
          type: int
        lag:
          description: Unread records; they stay in the partitions where they are.
          type: int
        seconds_now:
          description: Until it has caught up at the rates of O(sample_seconds); V(null) for never, or not measured.
          type: float
        seconds_planned:
          description: The same with the planned number, if new records spread evenly.
          type: float
    advice:
      description: All of it in sentences.
      type: list
      elements: str
  sample:
    - name: orders
      partitions: 4
      planned: 6
      needed: 6
      suggested: 8
      keys_moved: 0.6667
      keys_moved_suggested: 0.5
      groups: []
      advice:
        - the throughput needs 6 partitions, it has 4
        - 8 would do, which moves 50% of the keys
        - "from 4 to 6, 66.7% of the keys go to another partition: their records before and after are in no order"
kraft:
  description: Whether the cluster keeps its metadata in KRaft; V(null) if the user may not know.
  returned: success
  type: bool
  sample: false
lines:
  description: All of it as tables for people.
  returned: success
  type: list
  elements: str
cluster_id:
  description: Id of the cluster.
  returned: success
  type: str
  sample: RO6sGagMRYWu7VnngZhBAA
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.client import (
    AdviceClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.advice.info import (
    ADVICE_OPTIONS,
    gather,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once


def main() -> None:
    """Entry point."""
    run_once(
        ADVICE_OPTIONS,
        lambda connection, module: gather(module.params, AdviceClient(connection)),
    )


if __name__ == "__main__":
    main()
