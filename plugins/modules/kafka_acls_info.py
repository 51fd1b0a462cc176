#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_acls_info
short_description: Show who may do what (ACLs)
version_added: 0.1.0
description:
  - Returns the ACLs of a cluster in the form in which M(kafkaops.cluster.kafka_acls) takes them. Applied to the same
    cluster, they change nothing.
  - Every live broker is asked. In ZooKeeper mode one hears of a change after another; brokers that differ are waited for until
    O(timeout) is over. What only some of them have then is returned, with a warning and RV(differing).
options:
  principals:
    description:
      - Regular expressions; only ACLs of principals that match one as a whole, such as V(User:team-a.*).
    type: list
    elements: str
  resources:
    description:
      - Regular expressions; only ACLs whose type and name match one as a whole, such as V(topic:orders).
      - The texts are compared. That of a prefixed ACL is the beginning that it names, and V(topic:*) is written
        V(topic:\\*).
    type: list
    elements: str
  missing_ok:
    description: Return no ACLs instead of failing where the brokers have no authorizer.
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
    support: none
  idempotent:
    support: full
notes:
  - Needs confluent-kafka and kafka-python, and the right to Describe on the cluster.
seealso:
  - module: kafkaops.cluster.kafka_acls
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Look at the rights of one team
  kafkaops.cluster.kafka_acls_info:
    bootstrap_servers: kafka-1:9092
    principals: ['User:team-a.*']
  register: rights
"""

RETURN = r"""
acls:
  description: The ACLs. Those that differ in the operation only are one item.
  returned: success
  type: list
  elements: dict
  sample:
    - topic: team-a.
      pattern: prefixed
      principal: User:team-a
      host: "*"
      permission: allow
      operations: [describe, read]
binding_count:
  description: How many ACLs of Kafka these are; one operation is one.
  returned: success
  type: int
  sample: 2
differing:
  description: Brokers that lack some of the ACLs, with these. Empty where all of them have the same.
  returned: success
  type: list
  elements: dict
  sample: []
cluster_id:
  description: Id of the cluster.
  returned: success
  type: str
  sample: HJApaBPOSuOLtHWS0snxMA
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.client import AclClient
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.resource import (
    ACL_INFO_OPTIONS,
    read_acls,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once


def main() -> None:
    """Entry point."""
    run_once(
        ACL_INFO_OPTIONS,
        lambda connection, module: read_acls(AclClient(connection), module.params),
    )


if __name__ == "__main__":
    main()
