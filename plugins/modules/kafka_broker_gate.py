#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_broker_gate
short_description: Wait until a broker may be stopped
version_added: 0.1.0
description:
  - Returns as soon as the broker may be stopped without a partition falling below its effective
    C(min.insync.replicas), internal topics included. Refuses where that can never be, and
    names the partitions; says at the deadline what blocks.
  - Besides it waits while a partition is offline, there is no controller or the brokers disagree about
    it, another broker is missing, or partitions are being reassigned.
  - It protects the other replicas and never waits for the broker itself. One that is not registered,
    or that is in sync with no other broker, may be stopped at once. Where the latter would bring a partition back to its
    minimum, it is waited for as long as its replicas of such partitions grow, that is, while it catches up.
  - In KRaft mode it also waits until a majority of the controllers keeps up without this one. With ZooKeeper it waits while
    that has no quorum.
  - Changes nothing.
options:
  broker:
    description: Id of the broker that is about to stop. The module waits until it may.
    type: int
  brokers:
    description:
      - Ids of brokers that are to be stopped one after the other. The module looks once and returns
        the verdict of each as if it alone were stopped now. It does not wait until one may stop, and no verdict
        makes it fail.
    type: list
    elements: int
  expected_brokers:
    description: Ids of all brokers of the cluster. All of them but O(broker) must be there.
    type: list
    elements: int
    default: []
  voters:
    description:
      - Ids of all voters of the quorum of a KRaft cluster. Other voters than these are refused. Leave it out where the
        metadata are in ZooKeeper.
    type: list
    elements: int
    default: []
  zookeeper_servers:
    description:
      - Servers of the ensemble that has the metadata. While none of them serves, and one says that it has no quorum, no
        broker may stop. Leave it out in KRaft mode, and where the servers cannot be reached from here.
    type: list
    elements: dict
    default: []
    suboptions:
      id:
        description: Its C(myid).
        type: int
      address:
        description: Host name or IP address.
        type: str
        required: true
      port:
        description: Port for clients.
        type: int
        default: 2181
  accept_unavailable:
    description:
      - Topics that may be unavailable while the broker restarts, because they have too few replicas
        ever to pass; V(all) for whichever, V(topic:all) for one of that name. Names may also be separated by commas.
      - A partition of such a topic passes as soon as all its replicas on other brokers are in sync.
      - With V(all) a broker may also stop when nobody can be asked, because for O(quiet_seconds) nobody answers or
        all refuse the connection.
    type: list
    elements: str
    default: []
  quiet_seconds:
    description:
      - For how long the gate must have been open without a break. A flapping replica gives good
        samples between two flaps.
      - For as long a partition must have been without a spare replica before it is refused, since topics come and go. With
        O(brokers) and in check mode, too.
    type: float
    default: 3.0
  wait_seconds:
    description: Seconds without progress after which to fail. Progress is fewer replicas out of sync than ever before.
    type: float
    default: 300.0
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.progress
  - kafkaops.cluster.attributes
  - kafkaops.cluster.attributes.actiongroup_kafka
attributes:
  check_mode:
    support: full
    details: It only reads. In check mode it looks once, waits for nothing, and no verdict makes it fail.
  diff_mode:
    support: none
    details: It only reads.
  idempotent:
    support: full
notes:
  - The user needs Describe and DescribeConfigs on all topics, and Describe on the cluster. With
    DescribeConfigs on the cluster it also sees brokers whose defaults differ.
  - The last thing that it does is to read the cluster once more. Stop the broker right afterwards.
seealso:
  - module: kafkaops.cluster.kafka_cluster_info
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Wait until broker 2 may be stopped
  kafkaops.cluster.kafka_broker_gate:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    broker: 2
    expected_brokers: [1, 2, 3]

- name: The same, with consent to an outage of two topics that have one replica
  kafkaops.cluster.kafka_broker_gate:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    broker: 2
    expected_brokers: [1, 2, 3]
    accept_unavailable: [scratch, cache]

- name: Would each of them get past the gate?
  kafkaops.cluster.kafka_broker_gate:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    brokers: [1, 2, 3]
  register: plan
"""

RETURN = r"""
verdict:
  description: V(go), V(wait) or V(cannot_pass).
  returned: with O(broker)
  type: str
  sample: go
reasons:
  description: What it waits for, or would.
  returned: with O(broker)
  type: list
  elements: str
  sample: ["1 partition is below min.insync.replicas in sync without broker 2: orders-0 (1 of 2)"]
cannot_pass:
  description: Partitions that no waiting helps.
  returned: with O(broker)
  type: list
  elements: dict
  contains:
    topic:
      description: Name of the topic.
      type: str
    partition:
      description: Number of the partition.
      type: int
    reason:
      description: Why not.
      type: str
  sample:
    - topic: scratch
      partition: 0
      reason: 1 replica
partitions:
  description: How many partitions have a replica on the broker.
  returned: with O(broker)
  type: int
  sample: 12
mending:
  description: Why nothing holds the broker back, empty for one that works.
  returned: with O(broker)
  type: str
  sample: it is in sync with no other broker
waited_seconds:
  description: Seconds until the gate had been open for long enough.
  returned: with O(broker), when it was waited
  type: float
  sample: 3.26
polls:
  description: How often was looked.
  returned: with O(broker), when it was waited
  type: int
  sample: 13
verdicts:
  description: The same of each broker, with its id as C(broker).
  returned: with O(brokers)
  type: list
  elements: dict
  sample:
    - broker: 1
      verdict: go
      reasons: []
      cannot_pass: []
      partitions: 12
      mending: ""
controller:
  description:
    - Id of the broker that was the controller at the last look; -1 if there was none, or nobody could
      be asked. With O(voters) the leader of the quorum. It moves with each of its restarts, so a roll restarts it last.
  returned: always
  type: int
  sample: 3
looked_ms:
  description: When the last look had ended, by the clock of the host that asked, in ms since 1970.
  returned: always
  type: int
  sample: 1763884800000
refusal:
  description: Of all brokers that can never pass, in one line, with the option that accepts it; empty if none.
  returned: always
  type: str
  sample: ""
lines:
  description: One line a broker, for people.
  returned: always
  type: list
  elements: str
  sample: ["broker 2 (12 partitions) may stop now"]
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
    KAFKA_RULES,
    connection_from,
    kafka_argument_spec,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
    KafkaClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    require_both_clients,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import fail
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling import gate
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.gatekeeper import (
    Gatekeeper,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.options import (
    GATE_OPTIONS,
    GATE_RULES,
    question_of,
    with_way_out,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import told_into


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec=kafka_argument_spec(**GATE_OPTIONS),
        supports_check_mode=True,
        **GATE_RULES,
        **KAFKA_RULES,
    )
    require_both_clients(module)
    params = module.params
    alone = params["broker"] is not None
    question = question_of(params)
    keeper = Gatekeeper(question)
    tell = told_into(params["progress"], module.log)
    waited = {}
    try:
        connection = connection_from(params)
        if alone and not module.check_mode:
            passed = keeper.wait(
                lambda: KafkaClient(connection),
                log=lambda line: tell(f"broker {params['broker']}: {line}"),
            )
            waited = {"waited_seconds": passed.waited_seconds, "polls": passed.polls}
            verdicts = [passed.verdict]
        else:
            verdicts = list(keeper.look_once(lambda: KafkaClient(connection)).values())
    except AdminError as error:
        fail(module, with_way_out(error))
    else:
        looked_ms = int(time.time() * 1000)
        for sentence in keeper.unsure:
            module.warn(f"The gate does not know everything: {sentence}.")
        if keeper.alone:
            module.warn(f"{keeper.alone}.")
        if not waited:
            for problem in keeper.directories.problems:
                module.warn(problem.line())
        refusal = gate.refusal(verdicts, question.accepted)
        told = [verdict.to_dict() for verdict in verdicts]
        result = {**told[0], **waited} if alone else {"verdicts": told}
        module.exit_json(
            changed=False,
            controller=keeper.controller,
            looked_ms=looked_ms,
            refusal=refusal.line() if refusal else "",
            lines=[gate.summary(verdict) for verdict in verdicts],
            **result,
        )


if __name__ == "__main__":
    main()
