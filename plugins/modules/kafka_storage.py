#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module kafka_storage."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kafka_storage
short_description: Format the log directories of a node in KRaft mode
description:
  - Formats each directory that has no C(meta.properties) by Kafka's own tool, and one that has only as O(anew) says.
  - A directory that is formatted with another cluster id or node id is refused. Kafka would start there, and serve nobody.
version_added: 0.1.0
author:
  - kafkaops.cluster contributors (@kafkaops)
options:
  cluster_id:
    description: The cluster's id, 22 characters of base64, the same on all nodes.
    type: str
    required: true
  node_id:
    description: The node's id.
    type: int
    required: true
  log_dirs:
    description: The node's log directories.
    type: list
    elements: path
    required: true
  initial_controllers:
    description: The first voters, C(ID@HOST:PORT:DIRECTORY_ID), separated by commas. Empty for a node that is not a controller.
    type: str
    default: ""
  joins:
    description:
      - Whether the node is a controller of a quorum that has its voters. It follows their leader, and votes when M(kafkaops.cluster.kafka_voters)
        has added it. Not together with O(initial_controllers).
    type: bool
    default: false
  anew:
    description:
      - Whether a format counts for nothing that no process was ever started with. Such directories are formatted anew, so that each
        controller of a new cluster has the voters and users of this run.
      - A directory that holds anything but what a format writes is left alone.
    type: bool
    default: false
  features_of:
    description:
      - The release line whose features are written, such as V(3.9). Every release reads what it finds there at each start, and one that
        does not know the features ends. Empty for those of O(release), as a new cluster begins with.
    type: str
    default: ""
  properties:
    description: The node's C(server.properties).
    type: path
    required: true
  release:
    description: Directory of the release of Kafka.
    type: path
    required: true
  java_home:
    description: Directory of the Java that runs the tool.
    type: path
    required: true
  account:
    description: User who owns the directories. Empty for the user who runs the module.
    type: str
    default: ""
  users:
    description:
      - Users of SCRAM that the cluster begins with, the same for each controller. Without them brokers that log in to each other
        by SCRAM would never start.
      - The tool gets what Kafka keeps of a password, in a file that the account alone can read, for as long as it runs.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The user's name, without commas, quotation marks, brackets and equals signs.
        type: str
        required: true
      password:
        description: The password.
        type: str
        required: true
      mechanisms:
        description: For which mechanisms.
        type: list
        elements: str
        choices: [SCRAM-SHA-256, SCRAM-SHA-512]
        required: true
attributes:
  check_mode:
    description: Formats nothing, and says what it would format.
    support: full
  diff_mode:
    description: There are no files to show.
    support: none
"""

EXAMPLES = r"""
- name: Format the node
  kafkaops.cluster.kafka_storage:
    cluster_id: wJ9ZqC3bT1mC4ZlYb3dM2g
    node_id: 1
    log_dirs: [/var/lib/kafka/data]
    initial_controllers: 1@192.0.2.11:9093:7Q0jI2gXQz2x6m0o9cK0bA
    properties: /etc/kafka/next/server.properties
    release: /opt/kafka/releases/kafka_2.13-4.3.1
    java_home: /usr/lib/jvm/default-java
    account: kafka
"""

RETURN = r"""
formatted:
  description: The directories that were formatted, in check mode those that would be.
  type: list
  elements: str
  returned: always
  sample: [/var/lib/kafka/data]
directory_id:
  description: Id of the directory that holds the node's metadata, the first one. Empty in check mode where it is not formatted.
  type: str
  returned: always
  sample: 7Q0jI2gXQz2x6m0o9cK0bA
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.kraft_storage import (
    Node,
    begin_anew,
    format_node,
    metadata_directory_id,
    metas,
    scram_arguments,
    unformatted,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "cluster_id": {"type": "str", "required": True},
            "node_id": {"type": "int", "required": True},
            "log_dirs": {"type": "list", "elements": "path", "required": True},
            "initial_controllers": {"type": "str", "default": ""},
            "joins": {"type": "bool", "default": False},
            "anew": {"type": "bool", "default": False},
            "features_of": {"type": "str", "default": ""},
            "properties": {"type": "path", "required": True},
            "release": {"type": "path", "required": True},
            "java_home": {"type": "path", "required": True},
            "account": {"type": "str", "default": ""},
            "users": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "password": {"type": "str", "required": True, "no_log": True},
                    "mechanisms": {
                        "type": "list",
                        "elements": "str",
                        "choices": ["SCRAM-SHA-256", "SCRAM-SHA-512"],
                        "required": True,
                    },
                },
            },
        },
        supports_check_mode=True,
    )
    params = module.params
    node = Node(
        params["cluster_id"],
        params["node_id"],
        params["log_dirs"],
        params["initial_controllers"],
        params["account"],
        scram_arguments(params["users"]),
        params["joins"],
        params["anew"],
        params["features_of"],
    )
    if node.joins and node.initial_controllers:
        module.fail_json(msg="initial_controllers and joins exclude each other")
    try:
        left = unformatted(node, metas(node.log_dirs))
        if left and not module.check_mode:
            begin_anew(node)
            format_node(node, params["java_home"], params["release"], params["properties"])
    except ProblemError as error:
        module.fail_json(msg=str(error), problem=error.problem.to_dict())
    except OSError as error:
        module.fail_json(msg=f"{', '.join(node.log_dirs)}: {error}")
    module.exit_json(
        changed=bool(left), formatted=left, directory_id=metadata_directory_id(node.log_dirs)
    )


if __name__ == "__main__":
    main()
