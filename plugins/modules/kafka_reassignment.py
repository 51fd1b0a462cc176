#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_reassignment
short_description: Move replicas of Kafka between brokers, and between the disks of a broker
version_added: 0.1.0
description:
  - Empties brokers, spreads replicas evenly over all brokers or onto new ones, and changes the
    replication factor, in one plan.
  - The plan is the same every time, and copies no more replicas than even counts need. Replicas that
    need not move stay. Each partition keeps its replicas on as many racks as before, or on more.
    Which brokers are preferred as leaders is evened out by the order of replicas, which copies
    nothing.
  - Moves a few partitions at a time, under a throttle that it removes at the end, and waits until all
    of it is done. The preferred leaders of what was moved are elected then.
  - With O(disks), moves replicas between the log directories of each of these brokers instead, and none
    to another broker. Evens the directories out in bytes, or empties some of them.
  - A second run goes on with what a killed one has left, its throttles included. It refuses while a
    reassignment of somebody else is under way that goes elsewhere.
  - Begins nothing more once the playbook that it belongs to has ended, once somebody has cancelled what it has
    begun, or once somebody has taken its throttles away. Then it fails, and what is under way goes on.
options:
  state:
    description:
      - V(applied) brings replicas to where the other options want them.
      - V(cancelled) ends all reassignments that are under way, whoever began them, and removes their
        throttles and ours. Partitions that have been moved by then stay where they are. What somebody else begins
        during the run goes on, and the throttles stay for it; that is told as a failure.
      - With O(disks), V(cancelled) ends the moves between the log directories of these brokers, and no
        others. Kafka 3.8 and 3.9 delete and compact nothing of these partitions until the broker
        restarts (KAFKA-19458); the module warns of it.
    type: str
    choices: [applied, cancelled]
    default: applied
  drain:
    description:
      - Ids of brokers that shall hold no replica. They need not be alive.
      - Refused while some partition has more replicas than there are other brokers.
    type: list
    elements: int
    default: []
  spread:
    description: Whether all brokers shall hold the same number of replicas, give or take one.
    type: bool
    default: false
  onto:
    description:
      - Ids of the only brokers that may get replicas; all live ones by default.
      - Alone, it means O(spread=true).
    type: list
    elements: int
    default: []
  replication_factor:
    description:
      - How many replicas each partition shall have. Without it each keeps its number.
      - Fewer than now need O(allow=[fewer_replicas]), since a record is lost once all brokers that still have it are lost.
      - Refused if it is not above the C(min.insync.replicas) of a topic that has more now.
    type: int
  topics:
    description:
      - Names of the only topics that may change; all by default, internal ones included.
      - Only their replicas are counted, then, when they are spread.
    type: list
    elements: str
  disks:
    description:
      - Ids of brokers whose replicas move between their own log directories. They have to be alive, and
        all of their directories online.
      - A directory's share of the bytes is that of its disk in all disks of the broker, or the same for
        each where the broker does not tell their sizes.
      - Brokers that have one directory are left alone, and refused if no other one is named.
    type: list
    elements: int
  drain_directories:
    description:
      - With O(disks), paths of log directories that shall hold no replica, on whichever of the brokers
        have them. The rest is not evened out then.
      - Kafka puts new partitions into the directory that has the fewest, so take it out of C(log.dirs)
        soon.
    type: list
    elements: str
  tolerance:
    description:
      - With O(disks), how many percent of its share a directory may hold more or less; 10 by default.
        Nothing moves until one of them exceeds it; then all are brought within half of it, as far as
        whole replicas allow.
    type: int
  allow:
    description:
      - What the task consents to. V(fewer_replicas) lets a lower O(replication_factor) take copies of records away.
      - V(racks_ignored) lets replicas move without regard to racks where some of the brokers that stay have one and others none.
    type: list
    elements: str
    choices: [fewer_replicas, racks_ignored]
    default: []
  throttle:
    description:
      - How many bytes a second a broker may send and receive for the moves, such as V(50MiB), or
        V(unlimited). With O(disks), how many it may copy between its directories.
      - It must be more than what producers write into the partitions that move, or they never catch
        up. Between brokers, what leaders send to the replicas in sync counts as well. A warning names
        brokers whose throttle is too low for what is written when the module begins.
      - Throttles that somebody else has set stay, and the module warns of them. A broker that has such a
        rate copies at it. Ours are marked by a zero in front of each number (C(052428800), C(00:1)), which
        Kafka reads as the same. What somebody has set for a move that this run finishes or cancels goes
        with that move.
    type: str
    default: 50MiB
  batch:
    description: How many partitions move at the same time.
    type: int
    default: 20
  operation_timeout:
    description:
      - Seconds since the last progress after which the module fails; what is under way goes on, under its throttle. Progress
        between brokers is a partition that has arrived, or a byte that was copied; between disks of a broker it is a replica that
        has arrived, or has less left to copy than before.
      - A live broker that has copied nothing for 120 seconds, of what is added to it or moves between its disks, ends the run
        earlier (C(reassignment.stalled)).
      - So does one of which nothing has come nearer to what it is a copy of for half an hour, since records are written as fast
        as they are copied (C(reassignment.outpaced)). What takes long and comes nearer does not.
    type: float
    default: 86400.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.disks
  - kafkaops.cluster.progress
  - kafkaops.cluster.fence
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
  - Needs confluent-kafka and kafka-python.
  - Sizes are those of the log directories. If they cannot be read, replicas are counted as empty.
  - While some brokers have a rack and others none, racks have no say, and no replica is copied without O(allow=[racks_ignored]).
seealso:
  - module: kafkaops.cluster.kafka_topics
  - module: kafkaops.cluster.kafka_cluster_info
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Say what would move, and how many bytes
  kafkaops.cluster.kafka_reassignment:
    bootstrap_servers: kafka-1:9092,kafka-2:9092
    spread: true
  check_mode: true
  register: plan

- name: Give brokers 4 and 5 their part
  kafkaops.cluster.kafka_reassignment:
    bootstrap_servers: kafka-1:9092,kafka-2:9092
    onto: [4, 5]
    throttle: 100MiB

- name: Empty broker 3
  kafkaops.cluster.kafka_reassignment:
    bootstrap_servers: kafka-1:9092,kafka-2:9092
    drain: [3]

- name: Three replicas for one topic
  kafkaops.cluster.kafka_reassignment:
    bootstrap_servers: kafka-1:9092,kafka-2:9092
    topics: [orders]
    replication_factor: 3

- name: Even out the log directories of brokers 1 and 2
  kafkaops.cluster.kafka_reassignment:
    bootstrap_servers: kafka-1:9092,kafka-2:9092
    disks: [1, 2]

- name: Empty a disk of broker 2 that is to be taken out
  kafkaops.cluster.kafka_reassignment:
    bootstrap_servers: kafka-1:9092,kafka-2:9092
    disks: [2]
    drain_directories: [/var/lib/kafka/disk3]

- name: Stop moving
  kafkaops.cluster.kafka_reassignment:
    bootstrap_servers: kafka-1:9092,kafka-2:9092
    state: cancelled
"""

RETURN = r"""
cluster_id:
  description: Id of the cluster.
  returned: when the cluster was reached
  type: str
  sample: RO6sGagMRYWu7VnngZhBAA
summary:
  description: What moves, in one sentence.
  returned: when the cluster was reached
  type: str
  sample: >-
    9 partitions change, 9 replicas are copied, 4.4 GiB in all (4.4 GiB to broker 4), at most 50.0 MiB a second from
    and to each broker
bytes:
  description: Bytes that are copied between brokers, or between directories.
  returned: when the cluster was reached
  type: int
  sample: 4724464025
copies:
  description: Number of replicas that are copied.
  returned: when the cluster was reached
  type: int
  sample: 9
took:
  description: When the moves began and when they had ended, in milliseconds since 1970.
  returned: when something was moved
  type: dict
  sample: {from_ms: 1763791202000, to_ms: 1763791322000}
under_way:
  description: Partitions, or replicas with O(disks), that were moving already when the module began.
  returned: when the cluster was reached
  type: list
  elements: str
  sample: [orders-3]
plan:
  description: What is to be done.
  returned: when the cluster was reached
  type: dict
  contains:
    changes:
      description:
        - Each with C(kind) (V(move), V(reorder), V(finish) for what is under way already, V(cancel),
          V(unthrottle)), C(subject), C(before), C(after) and C(note).
      type: list
      elements: dict
    refusals:
      description: Why nothing was done, each with C(check), C(reason), C(remedy) and C(line).
      type: list
      elements: dict
  sample:
    changes:
      - kind: move
        subject: orders-3
        before: {replicas: [1, 2, 3]}
        after: {replicas: [4, 2, 3]}
        note: 512.0 MiB to broker 4
    refusals: []
failed_items:
  description: What was not done, each with C(name), C(error), C(kind) and C(code).
  returned: when the cluster was reached
  type: list
  elements: dict
  sample: []
"""


from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
    DISK_OPTIONS,
    FENCE_OPTIONS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_disks import (
    DisksClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_replicas import (
    MovesClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.disks import (
    DiskReassignment,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.moving import (
    OPTIONS,
    Moving,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.reassignment import (
    Reassignment,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import told_into
from ansible_collections.kafkaops.cluster.plugins.module_utils.run_lock.held import (
    why_over,
    why_unread,
)

# Between brokers and between disks: one at a time.
BETWEEN_BROKERS = ("drain", "spread", "onto", "replication_factor", "topics")


def reassignment(connection: Connection, module: AnsibleModule) -> Moving:
    """The moves between brokers, or with O(disks) those between the disks of some."""
    params = module.params
    tell = told_into(params["progress"], module.log)

    def over() -> str:
        return why_over(params["run"], params["lock"])

    unread = "" if module.check_mode else why_unread(params["lock"])
    if unread:
        module.warn(unread)
    if params["disks"] is None:
        return Reassignment(MovesClient(connection), params, tell, over=over)
    return DiskReassignment(DisksClient(connection), params, tell, over=over)


def main() -> None:
    """Entry point."""
    run_resource(
        {**OPTIONS, **DISK_OPTIONS, **FENCE_OPTIONS},
        reassignment,
        failed="not done",
        mutually_exclusive=[("disks", option) for option in BETWEEN_BROKERS],
        required_by={"drain_directories": ["disks"], "tolerance": ["disks"]},
    )


if __name__ == "__main__":
    main()
