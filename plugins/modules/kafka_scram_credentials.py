#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module kafka_scram_credentials."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_scram_credentials
short_description: Put the first SCRAM credentials into ZooKeeper, before any broker runs
description:
  - Brokers that speak to each other by SCRAM cannot start before their credentials exist, and there is no broker yet to create them.
  - A credential that already belongs to the given password is left alone. Needs kazoo.
  - While brokers run, users are changed through them, by M(kafkaops.cluster.kafka_users); this module does not notify anybody.
version_added: 0.1.0
author:
  - kafkaops.cluster contributors (@kafkaops)
options:
  zookeeper:
    description: Connect string of the ensemble, with the chroot.
    type: str
    required: true
  mechanisms:
    description: Mechanisms to create credentials for.
    type: list
    elements: str
    choices: [SCRAM-SHA-256, SCRAM-SHA-512]
    required: true
  users:
    description: Passwords by user name.
    type: dict
    required: true
  timeout:
    description: Seconds within which ZooKeeper must answer.
    type: int
    default: 30
attributes:
  check_mode:
    description:
      - Reports whose credentials would be written; those of all users, if no ZooKeeper server answers, as before the
        first installation. Every other error is an error in check mode, too.
    support: full
  diff_mode:
    description: Says whose credentials are written. Neither passwords nor credentials are ever shown.
    support: full
seealso:
  - module: kafkaops.cluster.kafka_users
"""

EXAMPLES = r"""
- name: Create the credentials that the brokers need for their own start
  kafkaops.cluster.kafka_scram_credentials:
    zookeeper: zk1:2181,zk2:2181,zk3:2181/kafka
    mechanisms: [SCRAM-SHA-512]
    users:
      broker: "{{ vault_broker_password }}"
  no_log: true
"""

RETURN = r"""
written:
  description: Users whose credentials were written, with the mechanism; also where others failed.
  returned: always
  type: list
  elements: str
  sample: ["broker SCRAM-SHA-512"]
plan:
  description: The changes, one for each user and mechanism.
  returned: when ZooKeeper was reached, or need not be
  type: dict
  sample:
    changes:
      - kind: create
        subject: broker SCRAM-SHA-512
        before: {}
        after: {iterations: 4096, password: the declared one}
        note: ""
    refusals: []
failed_items:
  description: Credentials that were not written.
  returned: when ZooKeeper was reached, or need not be
  type: list
  elements: dict
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.zookeeper import (
    KAZOO_IMPORT_ERROR,
    ZookeeperClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.edge import run
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.first_credentials import (
    FIRST_OPTIONS,
    FirstCredentials,
)


def main() -> None:
    """Entry point."""
    module = AnsibleModule(argument_spec=FIRST_OPTIONS, supports_check_mode=True)
    if KAZOO_IMPORT_ERROR:
        module.fail_json(
            msg=missing_required_lib("kazoo", reason="to write to ZooKeeper"),
            exception=KAZOO_IMPORT_ERROR,
        )
    params = module.params
    users = {name: str(password) for name, password in params["users"].items()}
    made = []

    def make() -> FirstCredentials:
        client = ZookeeperClient(params["zookeeper"], timeout=params["timeout"], read_only=False)
        made.append(FirstCredentials(client, users, params["mechanisms"], module.check_mode))
        return made[0]

    try:
        run(module, make, params["timeout"], "not written", written=[])
    finally:
        for resource in made:
            resource.close()


if __name__ == "__main__":
    main()
