#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_quotas
short_description: Limit what Kafka's clients may use
version_added: 0.1.0
description:
  - Brings the quotas of users, client ids, both together, and addresses to a declared state in one call, with a number
    of requests that does not grow with the number of quotas.
  - Everything is planned first. The plan is what check mode returns, what diff mode shows, and what is done. If one
    item is refused, nothing at all is changed. The brokers are asked whether they would do it before the first change.
  - Quotas that are not named are left alone, unless O(purge) says otherwise.
options:
  quotas:
    description:
      - The quotas. None must be listed twice.
      - Each names a O(quotas[].user), a O(quotas[].client_id), or both, or an O(quotas[].ip). C(<default>) stands for
        everybody without a quota of their own.
      - Names are texts. What YAML reads as something else, such as C(yes) or C(0123), is refused; write it in quotes.
    type: list
    elements: dict
    required: true
    suboptions:
      user:
        description: Name of the user that a client logs in as, without C(User:).
        type: raw
      client_id:
        description: The C(client.id) that a client announces. Anybody may announce any.
        type: raw
      ip:
        description:
          - IP address that clients connect from. Not together with the others.
          - Brokers of the ZooKeeper line refuse IPv6 addresses.
        type: raw
      state:
        description: With V(absent), all limits of this entity are taken away.
        type: str
        choices: [present, absent]
        default: present
      limits:
        description:
          - The limits. V(null) takes one away. Each broker applies them by itself, so a client may use as much on each.
          - C(producer_byte_rate) and C(consumer_byte_rate), bytes in a second, as C(512KiB), C(10MiB) or plain bytes.
          - C(request_percentage), share of the time of a thread that handles requests, as C(50) or C("50%"). More than
            100 is more than one thread.
          - C(controller_mutation_rate), partitions created, deleted or added in a second.
          - C(connection_creation_rate), new connections in a second; of addresses, and only of these.
        type: dict
  limits_mode:
    description:
      - With V(merge), limits that an item does not name are left alone.
      - With V(replace), limits that its entity has and the item does not name are taken away.
    type: str
    choices: [merge, replace]
    default: merge
  purge:
    description: Take away quotas that are not declared.
    type: dict
    suboptions:
      patterns:
        description:
          - Regular expressions; only quotas whose whole name matches one are taken away. Names are written as in the
            plan, C(user=billing), C(user=billing, client-id=report) or C(ip=<default>).
        type: list
        elements: str
        required: true
      maximum:
        description:
          - If more quotas than this would be taken away, nothing at all is changed.
        type: int
        required: true
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
  idempotent:
    support: full
notes:
  - Needs the rights to DescribeConfigs and AlterConfigs on the cluster.
  - A client that exceeds a quota is slowed down, not refused; only C(connection_creation_rate) keeps connections waiting.
seealso:
  - module: kafkaops.cluster.kafka_quotas_info
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Limit one user, and give everybody else less
  kafkaops.cluster.kafka_quotas:
    bootstrap_servers: kafka-1:9092,kafka-2:9092,kafka-3:9092
    quotas:
      - user: billing
        limits:
          producer_byte_rate: 20MiB
          consumer_byte_rate: 40MiB
      - user: <default>
        limits:
          producer_byte_rate: 5MiB
          request_percentage: 50

- name: Limit one application of a user, and connections from one address
  kafkaops.cluster.kafka_quotas:
    bootstrap_servers: kafka-1:9092
    quotas:
      - user: billing
        client_id: nightly-report
        limits: {consumer_byte_rate: 1MiB}
      - ip: 192.0.2.17
        limits: {connection_creation_rate: 10}

- name: Take one limit away, and all of another user
  kafkaops.cluster.kafka_quotas:
    bootstrap_servers: kafka-1:9092
    quotas:
      - user: billing
        limits: {consumer_byte_rate: null}
      - user: retired
        state: absent

- name: Only the declared quotas of users, and no others
  kafkaops.cluster.kafka_quotas:
    bootstrap_servers: kafka-1:9092
    quotas: "{{ kafka_quotas }}"
    limits_mode: replace
    purge:
      patterns: ["user=.*"]
      maximum: 5
"""

RETURN = r"""
plan:
  description: What was planned, in the order in which it is done. The same in check mode and in a real run.
  returned: when the cluster was reached
  type: dict
  contains:
    changes:
      description: The changes; RV(ignore:before) and RV(ignore:after) name only what differs.
      type: list
      elements: dict
      contains:
        kind:
          description: One of C(create), C(configure) and C(delete).
          type: str
        subject:
          description: Name of the quota.
          type: str
        before:
          description: Its limits before. V(null) is none.
          type: dict
        after:
          description: Its limits afterwards.
          type: dict
        note:
          description: Always empty.
          type: str
    refusals:
      description: What is refused, each as C(check), C(subjects), C(reason), C(remedy) and C(line). If there is one,
        nothing at all was changed.
      type: list
      elements: dict
  sample:
    changes:
      - kind: configure
        subject: user=billing
        before: {producer_byte_rate: 10485760}
        after: {producer_byte_rate: 20971520}
        note: ""
    refusals: []
diff:
  description: The quotas that change, before and after.
  returned: when the cluster was reached
  type: dict
  sample:
    before:
      user=billing: {producer_byte_rate: 10485760}
    after:
      user=billing: {producer_byte_rate: 20971520}
quotas:
  description:
    - The declared quotas that exist, with all their limits, as they are after the run, or would be in check mode. In the
      form of O(quotas).
  returned: when the cluster was reached
  type: list
  elements: dict
  sample:
    - user: billing
      limits: {consumer_byte_rate: 41943040, producer_byte_rate: 20971520}
failed_items:
  description:
    - Quotas for which the cluster refused a change, or of which a change was made, but could not be seen on every broker
      within O(operation_timeout). All other changes were made.
  returned: when the cluster was reached
  type: list
  elements: dict
  contains:
    name:
      description: Name of the quota.
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
    - name: ip=2001:db8::1
      error: 2001%3Adb8%3A%3A1 is not a valid IP or resolvable host
      kind: create
      code: INVALID_REQUEST
cluster_id:
  description: Id of the cluster.
  returned: when the cluster was reached
  type: str
  sample: RO6sGagMRYWu7VnngZhBAA
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.client import (
    QuotasClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.resource import (
    QUOTA_OPTIONS,
    Quotas,
)


def main() -> None:
    """Entry point."""
    run_resource(
        QUOTA_OPTIONS,
        lambda connection, module: Quotas(QuotasClient(connection), module.params),
    )


if __name__ == "__main__":
    main()
