#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module kafka_migration."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_migration
short_description: See how far a migration from ZooKeeper to KRaft is, and give ZooKeeper back to the brokers
description:
  - Reads what ZooKeeper has of the controller and of the migration, or what a controller has of it in the metadata log on its
    own disk. The latter is the record of which Kafka makes its metric C(ZkMigrationState).
  - Can delete C(/controller) and C(/migration), by which the brokers of a migration that is taken back get a controller
    again. That is refused while a controller of the quorum still listens. Kafka has no tool for it.
version_added: 0.1.0
author:
  - kafkaops.cluster contributors (@kafkaops)
options:
  zookeeper:
    description: Connect string of the ensemble, with the chroot. Where it is given, ZooKeeper is asked.
    type: str
    default: ""
  metadata_dir:
    description: The directory with a controller's metadata log. Where it is given, that log is read, on its host.
    type: path
  controllers:
    description: Where controllers listen, as C(HOST:PORT). Each is tried once.
    type: list
    elements: str
    default: []
  release:
    description: Delete C(/controller), where a controller of KRaft holds it, and C(/migration). Needs O(zookeeper) and O(controllers).
    type: bool
    default: false
  others:
    description: Look also who else is at work with the ensemble. Needs O(zookeeper).
    type: bool
    default: false
  timeout:
    description: Seconds for each answer of ZooKeeper.
    type: float
    default: 10.0
attributes:
  check_mode:
    description: Deletes nothing, and says whether it would.
    support: full
  diff_mode:
    description: There are no files to show.
    support: none
"""

EXAMPLES = r"""
- name: See who is the controller
  kafkaops.cluster.kafka_migration:
    zookeeper: 192.0.2.11:2181,192.0.2.12:2181,192.0.2.13:2181/kafka

- name: See what a controller knows
  kafkaops.cluster.kafka_migration:
    metadata_dir: /var/lib/kafka/data
    controllers: ["192.0.2.21:9093"]
"""

RETURN = r"""
znodes:
  description:
    - Who is the C(controller), its C(epoch) in KRaft, and the C(offset) of the last record of KRaft that is in ZooKeeper. The
      numbers are -1 where there is none. C(migration) says whether that node is there.
  returned: with O(zookeeper)
  type: dict
  sample: {controller: 3001, epoch: 1, offset: 412, migration: true}
others:
  description:
    - Some ephemeral nodes that are not those of this cluster, by which others are at work with the ensemble now; also what may not be read, or is
      too much to look through.
  returned: with O(others)
  type: list
  elements: str
  sample: []
state:
  description: C(PRE_MIGRATION), C(MIGRATION), C(POST_MIGRATION) or C(NONE); empty where the log tells none.
  returned: with O(metadata_dir)
  type: str
  sample: MIGRATION
last:
  description:
    - Offset of the last record in the controller's log that says anything, -1 where there is none. ZooKeeper has all of it once the
      C(offset) of C(znodes) is as high.
  returned: with O(metadata_dir)
  type: int
  sample: 412
listening:
  description: Which of O(controllers) take a connection.
  returned: always
  type: list
  elements: str
  sample: ["192.0.2.21:9093"]
"""

import socket
from typing import Any, Dict, List

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.zookeeper import (
    KAZOO_IMPORT_ERROR,
    ZookeeperClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    parse_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.migration.plan import (
    Znodes,
    znodes_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.migration.records import (
    last_on_disk,
    state_on_disk,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

CONNECT_SECONDS = 2.0


def listening(places: List[str]) -> List[str]:
    """Those of HOST:PORT that take a connection."""
    there = []
    for place, address in zip(places, parse_addresses(places, option="controllers")):
        try:
            with socket.create_connection(address, CONNECT_SECONDS):
                there.append(place)
        except OSError:
            continue
    return there


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "zookeeper": {"type": "str", "default": ""},
            "metadata_dir": {"type": "path"},
            "controllers": {"type": "list", "elements": "str", "default": []},
            "release": {"type": "bool", "default": False},
            "others": {"type": "bool", "default": False},
            "timeout": {"type": "float", "default": 10.0},
        },
        supports_check_mode=True,
    )
    params = module.params
    if params["release"] and not (params["zookeeper"] and params["controllers"]):
        module.fail_json(msg="release needs zookeeper and controllers")
    try:
        there = listening(params["controllers"]) if params["controllers"] else []
        result: Dict[str, Any] = {"listening": there, "changed": False}
        if params["metadata_dir"]:
            result["state"] = state_on_disk(params["metadata_dir"]) or ""
            result["last"] = last_on_disk(params["metadata_dir"])
        if params["release"] and there:
            raise AdminError(
                Problem(
                    "migration.alive",
                    "a controller of KRaft listens there, and would take ZooKeeper back at once",
                    "stop the controllers first, as playbooks/migrate_back.yml does",
                    tuple(there),
                )
            )
        if params["zookeeper"]:
            if KAZOO_IMPORT_ERROR:
                module.fail_json(
                    msg=missing_required_lib("kazoo", reason="to ask ZooKeeper"),
                    exception=KAZOO_IMPORT_ERROR,
                )
            writes = params["release"] and not module.check_mode
            with ZookeeperClient(params["zookeeper"], params["timeout"], not writes) as client:
                result["znodes"] = client.migration()
                if params["others"]:
                    result["others"] = client.others()
                now = znodes_of(result["znodes"]) or Znodes()
                result["changed"] = params["release"] and (now.held or now.migration)
                if result["changed"] and writes:
                    client.release_controller(now.held)
    except AdminError as error:
        module.fail_json(msg=error.message, problem=error.problem.to_dict())
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"{params['metadata_dir']}: {error}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
