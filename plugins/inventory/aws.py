# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machines of a cluster in EC2 as hosts; the decisions are in module_utils/aws/hosts.py."""

from __future__ import annotations

DOCUMENTATION = r"""
name: aws
short_description: The machines of a cluster in Amazon EC2, by their tags
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Finds the machines that M(kafkaops.cluster.aws_machines) made, by the tag C(kafkaops:cluster), and says how each audience reaches them.
  - Machines that have ended are left out. The file's name has to end in C(aws.yml) or C(aws.yaml).
  - Sets C(ansible_host), C(kafka_rack) (the zone), C(aws_instance_id), C(aws_private_ip), C(aws_public_ip), C(aws_public_dns), and
    C(aws_addresses), a mapping of each audience to its address. What other sources of the inventory set for a host wins.
options:
  plugin:
    description: Has to be V(kafkaops.cluster.aws).
    type: str
    required: true
    choices: [kafkaops.cluster.aws]
  cluster:
    description: The cluster's name, the value of the tag C(kafkaops:cluster).
    type: str
    required: true
  region:
    description: The region. Default is that of the environment (E(AWS_REGION), E(AWS_DEFAULT_REGION)) or of the profile.
    type: str
  addresses:
    description:
      - Which address each audience uses, V(private) or V(public). V(public) is the public DNS name, which within the VPC resolves to the private
        address; where there is none, it is the public address; where there is none either, the private one.
      - C(ansible_host) is the address of the audience C(admin).
    type: dict
    default: {brokers: private, clients: public, admin: public}
  groups_from_tags:
    description:
      - Whether a host joins the groups that its tag C(kafkaops:groups) names, as the inventory had them when the machine was made.
      - Otherwise it is in the group C(aws) only, and another source of the inventory has to name it.
    type: bool
    default: true
requirements:
  - boto3
notes:
  - Credentials, proxy and endpoint are those of boto3, E(AWS_PROFILE) or E(AWS_ACCESS_KEY_ID) and E(AWS_SECRET_ACCESS_KEY), E(HTTPS_PROXY),
    E(AWS_ENDPOINT_URL).
seealso:
  - module: kafkaops.cluster.aws_machines
"""

EXAMPLES = r"""
# aws.yml
plugin: kafkaops.cluster.aws
cluster: orders
region: eu-central-1
addresses: {brokers: private, clients: public, admin: public}
"""

from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws import client_ec2
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.hosts import (
    EVERYBODY,
    hosts_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import CLUSTER_TAG
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError


class InventoryModule(BaseInventoryPlugin):
    """Ask EC2, add hosts."""

    NAME = "kafkaops.cluster.aws"

    def verify_file(self, path: str) -> bool:
        """Whether the file is one of ours, by its name."""
        return bool(super().verify_file(path)) and path.endswith(("aws.yml", "aws.yaml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Add every living machine of the cluster."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        if client_ec2.IMPORT_ERROR:
            raise AnsibleParserError(
                "the inventory plugin kafkaops.cluster.aws needs the Python package boto3"
            )
        cluster = self.get_option("cluster")
        try:
            client = client_ec2.Ec2Client(self.get_option("region"))
            client.connect()
            instances = client.fetch_instances(f"tag:{CLUSTER_TAG}", [cluster])
            hosts = hosts_of(instances, self.get_option("addresses"))
        except ProblemError as error:
            raise AnsibleParserError(str(error)) from error
        self.inventory.add_group(EVERYBODY)
        for host in hosts:
            self.inventory.add_host(host.name, group=EVERYBODY)
            for group in host.groups if self.get_option("groups_from_tags") else ():
                self.inventory.add_group(group)
                self.inventory.add_host(host.name, group=group)
            for variable, value in host.variables.items():
                self.inventory.set_variable(host.name, variable, value)
