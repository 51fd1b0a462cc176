#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: aws_machines
short_description: Have the machines of a cluster made by EC2, or delete them
version_added: 0.1.0
description:
  - Makes what a cluster needs of Amazon EC2 and does not have yet, which is a key pair, a security group and one machine for each host.
  - A machine is found again by its tags. It is never replaced, stopped or shrunk. Where it is not what was ordered, nothing is changed, and
    the message says what differs.
  - The security group gets exactly the rules of O(rules). A rule that somebody else made is shown, and closed only with O(allow).
  - With O(state=absent) it deletes what carries the tag C(kafkaops:cluster) with the cluster's name, and nothing else.
  - The playbooks C(aws_provision.yml) and C(aws_teardown.yml) run it with options from the inventory, see M(kafkaops.cluster.aws_order).
options:
  cluster:
    description: The cluster's name. It is the value of the tag C(kafkaops:cluster) of everything that is made.
    type: str
    required: true
  state:
    description: Whether the machines are there.
    type: str
    choices: [present, absent]
    default: present
  region:
    description: The region. Default is that of the environment (E(AWS_REGION), E(AWS_DEFAULT_REGION)) or of the profile.
    type: str
  machines:
    description: The machines that there have to be.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The host's name in the inventory, the value of the tags C(kafkaops:host) and C(Name).
        type: str
        required: true
      type:
        description: Type of the machine, such as V(m7i.large).
        type: str
        required: true
      image:
        description: Id of the image. It counts for machines that are made; one that exists keeps its own.
        type: str
        required: true
      root_volume:
        description: The volume with the operating system. It is deleted with the machine.
        type: dict
        required: true
        suboptions:
          size:
            description: Its size in whole GiB, such as V(20GiB).
            type: str
            required: true
          type:
            description: Type of the volume.
            type: str
            default: gp3
          iops:
            description: Operations per second, where the type lets one choose.
            type: int
          throughput:
            description: MiB per second, where the type lets one choose.
            type: int
          encrypted:
            description: Whether it is encrypted, with the account's key for volumes.
            type: bool
            default: true
      volumes:
        description: More volumes. They are empty, with no file system.
        type: list
        elements: dict
        default: []
        suboptions:
          device:
            description: The device's name as EC2 knows it, such as V(/dev/sdf). The machine may see it under another one.
            type: str
            required: true
          keep:
            description: Whether it survives its machine. O(state=absent) deletes it in any case.
            type: bool
            default: true
          size:
            description: Its size in whole GiB, such as V(20GiB).
            type: str
            required: true
          type:
            description: Type of the volume.
            type: str
            default: gp3
          iops:
            description: Operations per second, where the type lets one choose.
            type: int
          throughput:
            description: MiB per second, where the type lets one choose.
            type: int
          encrypted:
            description: Whether it is encrypted, with the account's key for volumes.
            type: bool
            default: true
      groups:
        description: Groups of the inventory, the value of the tag C(kafkaops:groups).
        type: list
        elements: str
        default: []
      subnet:
        description: Id of its subnet. Default is one of O(subnets), in the zone that has the fewest machines of the same groups.
        type: str
        default: ""
      public_address:
        description: Whether it gets a public address.
        type: bool
        default: false
      tags:
        description: More tags of the machine and its volumes. Tags that are not named here stay.
        type: dict
        default: {}
      user_data:
        description: What cloud-init is given at the first start. Every process on the machine can read it, so it is not a place for secrets.
        type: str
        default: ""
      cores:
        description: How many cores its type must have at least.
        type: int
      memory:
        description: How much memory its type must have at least, such as V(8GiB).
        type: str
  rules:
    description: Who is let in. Traffic to the outside is not restricted.
    type: list
    elements: dict
    default: []
    suboptions:
      protocol:
        description: The protocol.
        type: str
        choices: [tcp, udp]
        default: tcp
      ports:
        description: A port or a range of ports, such as V(9092) or V(9092-9094).
        type: str
        required: true
      sources:
        description:
          - Networks, security groups (C(sg-...)) or prefix lists (C(pl-...)).
          - V(members) are all machines in the cluster's own security group, V(network) are the address ranges of its VPC.
        type: list
        elements: str
        required: true
      purpose:
        description: What it is for; the rule's description in EC2.
        type: str
        default: ""
  subnets:
    description: Ids of subnets of one VPC. Default is the default subnet of each zone.
    type: list
    elements: str
    default: []
  security_group:
    description: Name of the security group. Default is C(kafkaops-) and the cluster's name.
    type: str
  key_name:
    description: Name of the key pair in EC2. If it is empty, the machines get none.
    type: str
    default: ""
  key_file:
    description:
      - Path of the private key. If neither the file nor the key pair exists, a key is made here (ed25519), and EC2 gets its public half.
      - Its mode has to be 0600 or 0400; another one is set to 0600, which is said. A file of another account is refused then.
      - If it is empty, the key pair must exist in EC2.
    type: path
    default: ""
  only:
    description: Names of the machines that this run is about. Default is all of them. The rules are always those of all.
    type: list
    elements: str
  allow:
    description: V(foreign_rules) closes rules that somebody else made, and that O(rules) do not state.
    type: list
    elements: str
    choices: [foreign_rules]
    default: []
  operation_timeout:
    description: Seconds within which the machines must run, or have ended.
    type: float
    default: 300.0
requirements:
  - boto3, where the module runs
  - ssh-keygen
extends_documentation_fragment:
  - kafkaops.cluster.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
notes:
  - Credentials, proxy and endpoint are those of boto3, E(AWS_PROFILE) or E(AWS_ACCESS_KEY_ID) and E(AWS_SECRET_ACCESS_KEY), E(HTTPS_PROXY),
    E(AWS_ENDPOINT_URL).
  - A run that was killed half way is run again. Tags and a token go with the request that makes a machine, so it is not made twice.
seealso:
  - module: kafkaops.cluster.aws_order
  - plugin: kafkaops.cluster.aws
    plugin_type: inventory
author:
  - kafkaops.cluster contributors (@kafkaops)
"""

EXAMPLES = r"""
- name: One machine, reached by ssh from one address
  kafkaops.cluster.aws_machines:
    cluster: orders
    region: eu-central-1
    key_name: orders
    key_file: ~/.ssh/orders.pem
    machines:
      - name: kafka-01
        type: m7i.large
        image: ami-0123456789abcdef0
        root_volume: {size: 20GiB}
        volumes: [{device: /dev/sdf, size: 200GiB}]
        public_address: true
    rules:
      - {ports: "22", sources: [203.0.113.7/32], purpose: ssh}
      - {ports: "9092", sources: [members], purpose: brokers}
  delegate_to: localhost

- name: What deleting the cluster would delete
  kafkaops.cluster.aws_machines:
    cluster: orders
    state: absent
    region: eu-central-1
    key_name: orders
  check_mode: true
  diff: true
  delegate_to: localhost
"""

RETURN = r"""
plan:
  description: The changes and the refusals.
  returned: when EC2 was reached
  type: dict
  sample:
    changes:
      - kind: open
        subject: rule tcp 22 from 203.0.113.7/32
        before: {}
        after: {for: ssh}
        note: ""
    refusals: []
machines:
  description: The machines that carry the cluster's tag and have not ended.
  returned: when EC2 was reached
  type: list
  elements: dict
  sample:
    - name: kafka-01
      id: i-d624aec1248ef6cb6
      state: running
      type: t3.medium
      zone: eu-central-1a
      private_address: 172.31.16.4
      public_address: 54.214.168.13
      public_dns: ec2-54-214-168-13.eu-central-1.compute.amazonaws.com
      cores: 2
      memory_bytes: 4294967296
      ordered: {cores: 2, memory_bytes: 4294967296, volume_gib: [20, 200]}
foreign_rules:
  description: Rules of the security group that O(rules) do not state and that stay.
  returned: when EC2 was reached
  type: list
  elements: str
  sample: [tcp 3389 from 0.0.0.0/0]
region:
  description: The region.
  returned: when EC2 was reached
  type: str
  sample: eu-central-1
requests:
  description: Number of requests to EC2, those that boto3 repeated by itself not counted.
  returned: when EC2 was reached
  type: int
  sample: 11
failed_items:
  description: What EC2 refused, or what was not done within O(operation_timeout).
  returned: when EC2 was reached
  type: list
  elements: dict
  contains:
    name:
      description: What it is about.
      type: str
    error:
      description: Why, and what to do.
      type: str
    kind:
      description: What was to be done, or C(unsettled).
      type: str
    code:
      description: EC2's error code.
      type: str
  sample: []
"""

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.edge import run


def main() -> None:
    """Entry point."""
    run()


if __name__ == "__main__":
    main()
