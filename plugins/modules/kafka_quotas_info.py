#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_quotas_info
short_description: Read the quotas of Kafka's clients
version_added: 0.1.0
description:
  - Returns all client quotas of a cluster, in the form in which M(kafkaops.cluster.kafka_quotas) takes them. Applied to
    the same cluster, they change nothing.
options: {}
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
seealso:
  - module: kafkaops.cluster.kafka_quotas
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Read the quotas
  kafkaops.cluster.kafka_quotas_info:
    bootstrap_servers: kafka-1:9092
  register: found

- name: Show who may write more than 10 MiB in a second
  ansible.builtin.debug:
    msg: "{{ found.quotas | selectattr('limits.producer_byte_rate', 'defined')
      | selectattr('limits.producer_byte_rate', '>', 10485760) }}"
"""

RETURN = r"""
quotas:
  description: The quotas, sorted by name.
  returned: always
  type: list
  elements: dict
  contains:
    user:
      description: The user; C(<default>) for everybody without a quota of their own. Missing where none is meant.
      type: str
    client_id:
      description: The client id, likewise.
      type: str
    ip:
      description: The address, likewise.
      type: str
    limits:
      description: The limits as numbers.
      type: dict
  sample:
    - client_id: nightly-report
      user: billing
      limits: {consumer_byte_rate: 1048576}
    - user: <default>
      limits: {producer_byte_rate: 5242880, request_percentage: 50}
cluster_id:
  description: Id of the cluster.
  returned: always
  type: str
  sample: RO6sGagMRYWu7VnngZhBAA
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.client import (
    QuotasClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quotas.resource import (
    all_quotas,
)


def main() -> None:
    """Entry point."""
    run_once({}, lambda connection, module: all_quotas(QuotasClient(connection)))


if __name__ == "__main__":
    main()
