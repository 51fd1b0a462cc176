#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_users_info
short_description: Tell which users with passwords (SCRAM) a cluster has
version_added: 0.1.0
description:
  - Names, mechanisms and iterations. Kafka tells nobody what a credential was made from.
extends_documentation_fragment:
  - kafkaops.cluster.kafka
  - kafkaops.cluster.attributes
  - kafkaops.cluster.attributes.actiongroup_kafka
attributes:
  check_mode:
    support: full
    details: It only reads.
  diff_mode:
    support: none
    details: It only reads.
  idempotent:
    support: full
notes:
  - Needs the right to Describe on the cluster.
seealso:
  - module: kafkaops.cluster.kafka_users
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: Ask for the users
  kafkaops.cluster.kafka_users_info:
    bootstrap_servers: kafka-1:9092
  register: found
"""

RETURN = r"""
users:
  description: The users, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the user, without C(User:).
      type: str
    iterations:
      description: Iterations by mechanism.
      type: dict
  sample:
    - name: app
      iterations: {SCRAM-SHA-512: 4096}
cluster_id:
  description: Id of the cluster.
  returned: success
  type: str
  sample: HJApaBPOSuOLtHWS0snxMA
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run_once
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.client import UserClient
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.resource import (
    read_users,
)


def main() -> None:
    """Entry point."""
    run_once(
        {},
        lambda connection, _module: read_users(UserClient(connection)),
    )


if __name__ == "__main__":
    main()
