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
  - Can wait until given brokers are registered and their replicas, or those of all brokers, are in
    sync. Says at the deadline what is missing, and warns about absent brokers that it does not wait
    for.
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
  overrides:
    description:
      - Also ask every broker which of its settings do not come from its own file, but were set in the cluster.
        Brokers that do not answer, or may not tell this user, are left out.
    type: bool
    default: false
  topics:
    description:
      - Names of topics that are returned with their settings, under RV(topics); those that do not exist are left out.
      - Topics whose names differ from one of them only in C(.) and C(_) are returned, too, since no topic can be made beside them.
    type: list
    elements: str
    default: []
  topic_patterns:
    description: Regular expressions; topics whose whole name one of them matches are returned under RV(topics), too.
    type: list
    elements: str
    default: []
  every_view:
    description:
      - Also ask every live broker how it sees the others, and return RV(in_sync). One that lost touch tells what was.
    type: bool
    default: false
  quorum:
    description:
      - Also ask for the quorum of controllers of a KRaft cluster, and return RV(quorum).
      - With O(missing_ok) a leader that does not answer is not an error.
    type: bool
    default: false
  features:
    description:
      - Also ask for the finalised features of a KRaft cluster, and return RV(features).
      - With O(missing_ok) a broker that does not answer is not an error.
    type: bool
    default: false
  reassignments:
    description:
      - Where replicas are not in sync, also ask the controller which partitions are being reassigned, and return
        RV(reassignments).
      - With O(missing_ok) a controller that does not answer is not an error.
    type: bool
    default: false
  directories:
    description:
      - Also ask each broker for its log directories, and return RV(directories).
      - Brokers that do not answer are left out.
    type: bool
    default: false
  last_copies:
    description:
      - Id of a broker that is down. Return RV(last_copies), the partitions whose last copy may be on it.
      - Where nobody is in sync any more, a broker is asked for the eligible leader replicas (Kafka 3.7 or newer).
    type: int
  zookeeper:
    description:
      - Connect string of the ensemble, with the chroot, as in C(zookeeper.connect). Its contents are
        returned under RV(zookeeper). Needs kazoo.
    type: str
  zookeeper_timeout:
    description: Seconds within which a ZooKeeper server must answer. Default is O(timeout).
    type: float
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
      in_sync:
        description:
          - Ids of brokers whose replicas must all be in sync, whatever became of the other brokers.
          - A partition is left out while it has no leader, and all brokers with an in-sync replica of
            it are absent. Nobody can lead it before one of them is back.
          - Replicas that a reassignment adds are left out, too, and told in a warning. The controller is asked for them.
        type: list
        elements: int
      full_isr:
        description: Whether every partition of every topic must have all its replicas in sync.
        type: bool
        default: false
      gone:
        description: Ids that must not be registered any more.
        type: list
        elements: int
      unmended:
        description:
          - Ids of brokers that are sick and will be restarted later. They are not asked, and partitions that only
            they lead are not waited for, as nobody can follow there.
        type: list
        elements: int
      voters:
        description:
          - Ids of controllers of a KRaft quorum. Each must have fetched from the leader once more, all that there was when the waiting began.
          - The leader goes on listing a dead voter as one that lacks nothing.
        type: list
        elements: int
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
        description: Seconds without progress after which to fail. Progress is fewer replicas out of sync than ever before.
        type: float
        default: 120.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.progress
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
    clients. RV(quorum) has the one that is.
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

- name: Wait for brokers 1 and 2, whatever became of broker 3
  kafkaops.cluster.kafka_cluster_info:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    wait:
      brokers: [1, 2]
      in_sync: [1, 2]

- name: See what is there before the first installation, quickly
  kafkaops.cluster.kafka_cluster_info:
    bootstrap_servers: kafka-1:9092
    timeout: 3
    zookeeper: zookeeper-1:2181,zookeeper-2:2181,zookeeper-3:2181/kafka
    missing_ok: true
"""

RETURN = r"""
reachable:
  description: Whether a broker answered. Without O(missing_ok) the module fails if none does.
  returned: always
  type: bool
  sample: true
unreachable_reason:
  description: Why no broker answered.
  returned: with O(missing_ok), when no broker answered
  type: str
  sample: "unreachable: 127.0.0.1:9092: Connection refused."
cluster_id:
  description: Id of the cluster.
  returned: always
  type: str
  sample: RO6sGagMRYWu7VnngZhBAA
controller:
  description: Id of the controller; on KRaft, of the broker that answers for it.
  returned: always
  type: int
  sample: 3
brokers:
  description: The live brokers, at the listener that was asked, sorted by id.
  returned: always
  type: list
  elements: dict
  contains:
    id:
      description: Id of the broker.
      type: int
    host:
      description: Advertised host.
      type: str
    port:
      description: Advertised port.
      type: int
    rack:
      description: Rack, V(null) if it has none.
      type: str
    leaders:
      description: Number of partitions that it leads.
      type: int
    replicas:
      description: Number of replicas that it holds.
      type: int
    out_of_sync:
      description: Number of its replicas that are not in sync.
      type: int
  sample:
    - id: 1
      host: 127.0.0.1
      port: 9092
      rack: rack-1
      leaders: 3
      replicas: 9
      out_of_sync: 0
topic_count:
  description: Number of topics, internal ones included.
  returned: always
  type: int
  sample: 3
partition_count:
  description: Number of partitions of all topics.
  returned: always
  type: int
  sample: 9
replica_holders:
  description:
    - Ids of all brokers that hold a replica, alive or not. Read from ZooKeeper if no broker answers
      and O(zookeeper) is given.
  returned: always
  type: list
  elements: int
  sample: [1, 2, 3]
on_default_min_isr:
  description:
    - Topics whose C(min.insync.replicas) is the brokers' default, by the number of their replicas.
      Read from ZooKeeper if no broker answers and O(zookeeper) is given.
  returned: always
  type: list
  elements: dict
  contains:
    replicas:
      description: Number of replicas; that of the partition with the fewest.
      type: int
    topics:
      description: How many topics have so many.
      type: int
    examples:
      description: Names of some of them, five at most.
      type: list
      elements: str
  sample:
    - replicas: 3
      topics: 2
      examples: [clicks, orders]
overrides:
  description: Settings of brokers that were set in the cluster and not in their files.
  returned: with O(overrides), when a broker answered
  type: list
  elements: dict
  contains:
    broker:
      description: Id of the broker, V(null) for a setting of all brokers.
      type: int
    name:
      description: Key of the setting.
      type: str
    value:
      description: Its value, V(null) for a secret.
      type: str
  sample:
    - broker: 1
      name: num.io.threads
      value: "12"
topics:
  description: The topics of O(topics) and O(topic_patterns) that exist, and those that collide with one of O(topics), sorted by name.
  returned: with O(topics) or O(topic_patterns), when a broker answered
  type: list
  elements: dict
  contains:
    name:
      description: Name of the topic.
      type: str
    replicas:
      description: Number of replicas of each partition, in their order.
      type: list
      elements: int
    config:
      description:
        - By key, the effective C(value), its C(source) (V(topic), V(broker), V(cluster), V(static) or V(default)), and the
          C(fallback) that it has without a value of the topic's own, V(null) if that is not known.
      type: dict
  sample:
    - name: orders
      replicas: [3, 3, 3]
      config:
        retention.ms: {value: "86400000", source: topic, fallback: "604800000"}
missing_brokers:
  description: Those of RV(replica_holders) that are not alive.
  returned: always
  type: list
  elements: int
  sample: []
under_replicated:
  description: Partitions with fewer replicas in sync than they have.
  returned: always
  type: list
  elements: dict
  contains: &partition
    topic:
      description: Name of the topic.
      type: str
    partition:
      description: Number of the partition.
      type: int
    leader:
      description: Id of the leader, V(null) if there is none.
      type: int
    replicas:
      description: Ids of the brokers that hold a replica; the first is the preferred leader.
      type: list
      elements: int
    isr:
      description: Those of them that are in sync.
      type: list
      elements: int
  sample:
    - topic: orders
      partition: 0
      leader: 1
      replicas: [3, 1, 2]
      isr: [1, 2]
under_min_isr:
  description:
    - Partitions with fewer replicas in sync than their topic's effective C(min.insync.replicas); they
      take no writes with acks=all.
  returned: always
  type: list
  elements: dict
  contains: *partition
  sample: []
offline:
  description: Partitions without a leader.
  returned: always
  type: list
  elements: dict
  contains: *partition
  sample: []
last_copies:
  description:
    - Partitions without a leader whose last copy may be on the broker that O(last_copies) names. If it starts empty, it leads
      them, and the other replicas are cut to what it has.
    - It is one of those in sync, none of which is there; or nobody is, and it is one of those that are eligible, or that led last where nobody is
      eligible. Without an answer about that, all count that the broker has a replica of. So do all of a topic with
      C(unclean.leader.election.enable).
  returned: with O(last_copies), when a broker answered
  type: list
  elements: dict
  contains: *partition
  sample: []
wait:
  description: How long was waited.
  returned: with O(wait)
  type: dict
  contains:
    waited_seconds:
      description: Seconds until all of it was true for long enough.
      type: float
    polls:
      description: How often the metadata were read.
      type: int
    not_waited_for:
      description: What is amiss although all of it was true; also printed as warnings.
      type: list
      elements: str
  sample:
    waited_seconds: 1.04
    polls: 5
    not_waited_for: ["broker 3 holds replicas and is not registered"]
in_sync:
  description:
    - Ids of brokers that every live broker sees in sync. V(null) where nobody who answers is registered.
    - A broker is not in sync while it shares no ISR with another one, or is behind a leader that does.
  returned: with O(every_view)
  type: list
  elements: int
  sample: [1, 3]
reassignments:
  description: What is being reassigned, whoever began it.
  returned: with O(reassignments), when a broker answered
  type: dict
  contains:
    partitions:
      description: Each with its C(topic) and its number C(partition), sorted.
      type: list
      elements: dict
    problem:
      description: Why it is not known; empty where it is.
      type: str
  sample: {partitions: [{topic: orders, partition: 0}], problem: ""}
directories:
  description: The log directories of the brokers, by id and path.
  returned: with O(directories), when a broker answered
  type: list
  elements: dict
  contains:
    broker:
      description: Id of the broker.
      type: int
    path:
      description: The directory.
      type: str
    online:
      description: Whether the broker uses it. One that could not be read or written is offline until a restart.
      type: bool
    usable_bytes:
      description: Bytes that may still be written to its disk; V(null) where that is not known, as before Kafka 3.3.
      type: int
    problem:
      description: What is wrong with it, and the remedy; empty where nothing is.
      type: str
  sample:
    - {broker: 1, path: /srv/kafka/1, online: true, usable_bytes: 83886080000, problem: ""}
quorum:
  description: The quorum of controllers, as its leader tells it.
  returned: with O(quorum), when a broker answered
  type: dict
  contains:
    leader:
      description: Id of the active controller, V(null) if there is none.
      type: int
    epoch:
      description: Number of its election.
      type: int
    voters:
      description: The controllers that vote, sorted by id.
      type: list
      elements: dict
      contains: &replica
        id:
          description: Id of the node.
          type: int
        lag:
          description: How many metadata records it lacks, V(null) if that is not known.
          type: int
        fetched_ms_ago:
          description: Milliseconds since its last fetch, by the leader's clock; V(null) for the leader, and if that is not known.
          type: int
        caught_up_ms_ago:
          description: Milliseconds since it had all of the leader's records.
          type: int
        keeps_up:
          description: Whether it counts for a majority. It leads, or has fetched and was caught up within the last seconds.
          type: bool
        directory:
          description: Id of the directory with which the quorum knows it, empty in a static quorum.
          type: str
        elsewhere:
          description: Of a voter that does not keep up, the other directory with which the node follows without a vote; empty if it does not.
          type: str
    observers:
      description: Brokers, and controllers without a vote, that follow.
      type: list
      elements: dict
      contains: *replica
    problem:
      description: Why the leader did not tell, empty if it did.
      type: str
  sample:
    leader: 2
    epoch: 5
    voters:
      - id: 1
        lag: 0
        fetched_ms_ago: 112
        caught_up_ms_ago: 112
        keeps_up: true
        directory: 7Q0j2I0XQzuu4BoqXko-HA
        elsewhere: ""
      - id: 2
        lag: 0
        fetched_ms_ago: null
        caught_up_ms_ago: 0
        keeps_up: true
        directory: pLzVBRKbTyKv6Rl8Fq1mdQ
        elsewhere: ""
    observers: []
    problem: ""
features:
  description: The features that are finalised in a KRaft cluster, as the broker knows them that was asked.
  returned: with O(features), when a broker answered
  type: dict
  contains:
    levels:
      description: Name of each feature with its level. V(null) where no broker told.
      type: dict
    problem:
      description: Why no broker told, empty if one did.
      type: str
  sample: {levels: {metadata.version: 30, kraft.version: 1}, problem: ""}
zookeeper:
  description: What Kafka has registered below the chroot.
  returned: with O(zookeeper)
  type: dict
  contains:
    reachable:
      description: Whether a server answered.
      type: bool
    unreachable_reason:
      description: Why none answered.
      type: str
    exists:
      description: Whether the chroot exists.
      type: bool
    cluster_id:
      description: Id of the cluster, V(null) before the first broker.
      type: str
    controller:
      description:
        - The controller's C(id), and the C(ephemeral_owner) and C(czxid) of its node. V(null) if there
          is none.
      type: dict
    brokers:
      description:
        - Registered brokers, each with C(id), C(endpoints), C(rack), and the C(ephemeral_owner) and
          C(czxid) of its node, by which one start of a broker is told from the next.
      type: list
      elements: dict
  sample:
    reachable: true
    exists: true
    cluster_id: RO6sGagMRYWu7VnngZhBAA
    controller:
      id: 3
      ephemeral_owner: 144115286968565762
      czxid: 4294967364
    brokers:
      - id: 3
        endpoints:
          - PLAINTEXT://127.0.0.1:9094
        rack: rack-3
        ephemeral_owner: 144115286968565762
        czxid: 4294967362
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client import (
    zookeeper as client_zookeeper,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
    KafkaClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.info import (
    OPTIONS,
    gather,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import told_into


def describe(connection: Connection, module: AnsibleModule) -> Dict[str, Any]:
    """Describe the cluster, after waiting for it where that is asked."""
    tell = told_into(module.params["progress"], module.log)
    results = gather(module.params, lambda: KafkaClient(connection), log=tell)
    waited = results.get("wait", {})
    results["warnings"] = [f"Not waited for: {each}." for each in waited.get("not_waited_for", ())]
    return results


def require_kazoo(module: AnsibleModule) -> None:
    """Fail with Ansible's usual sentence if kazoo is missing where ZooKeeper is to be read."""
    if module.params["zookeeper"] and client_zookeeper.KAZOO_IMPORT_ERROR:
        module.fail_json(
            msg=missing_required_lib("kazoo", reason="to read ZooKeeper"),
            exception=client_zookeeper.KAZOO_IMPORT_ERROR,
        )


def main() -> None:
    """Entry point."""
    run_once(OPTIONS, describe, also=require_kazoo)


if __name__ == "__main__":
    main()
