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
  - While brokers run, users are to be changed through them; this module does not notify anybody.
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
    description: Credentials are never shown.
    support: none
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
  description: Users whose credentials were written, with the mechanism; also where a later one failed.
  returned: always
  type: list
  elements: str
  sample: ["broker SCRAM-SHA-512"]
"""

import os
from typing import List, Mapping, Sequence

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin import client_zookeeper
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.scram import (
    HASHES,
    credential,
    matches,
)


def reconcile(
    client: client_zookeeper.ZookeeperClient,
    users: Mapping[str, str],
    mechanisms: Sequence[str],
    apply: bool,
    written: List[str],
) -> None:
    """Write what is missing or belongs to another password.

    Appends "user mechanism" to `written` as soon as it is there: what was done is known although a
    later user fails.
    """
    for user in sorted(users):
        config = client.user_config(user)
        missing = [name for name in mechanisms if not matches(config.get(name), users[user], name)]
        if missing and apply:
            for name in missing:
                config[name] = credential(users[user], name, os.urandom(18))
            client.write_user_config(user, config)
        written += [f"{user} {name}" for name in missing]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "zookeeper": {"type": "str", "required": True},
            "mechanisms": {
                "type": "list",
                "elements": "str",
                "required": True,
                "choices": sorted(HASHES),
            },
            "users": {"type": "dict", "required": True, "no_log": True},
            "timeout": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    if client_zookeeper.KAZOO_IMPORT_ERROR:
        module.fail_json(
            msg=missing_required_lib("kazoo", reason="to write to ZooKeeper"),
            exception=client_zookeeper.KAZOO_IMPORT_ERROR,
        )
    params = module.params
    users = {name: str(password) for name, password in params["users"].items()}
    written: List[str] = []
    try:
        with client_zookeeper.ZookeeperClient(
            params["zookeeper"], timeout=params["timeout"], read_only=False
        ) as client:
            reconcile(client, users, params["mechanisms"], not module.check_mode, written)
    except AdminError as error:
        if error.reachable or not module.check_mode:
            done = [] if module.check_mode else written
            before = f"written: {', '.join(done)}; then: " if done else ""
            module.fail_json(msg=f"{before}{error.message}", changed=bool(done), written=done)
        # Before the first installation: check mode can only say what the first run would do.
        written = [f"{user} {name}" for user in sorted(users) for name in params["mechanisms"]]
    module.exit_json(changed=bool(written), written=written)


if __name__ == "__main__":
    main()
