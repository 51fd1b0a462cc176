#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The work is done by the action plugin of the same name; this file documents it.
from __future__ import annotations

DOCUMENTATION = r"""
module: aws_order
short_description: What the clusters of the inventory need of EC2
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Reads the variables of all hosts of the clusters, those outside of C(--limit), too, and returns the options of
    M(kafkaops.cluster.aws_machines), one set for each cluster. Contacts nobody.
  - Each host becomes a machine. The rules come from the listeners, so that who belongs to the audience of a listener is let in at its port, as
    C(aws_sources) says where each audience is. ZooKeeper's ports are for the members, its clients' port for the audience C(admin), too.
    In KRaft mode the hosts of C(kafka_controllers_group) become machines as well, and the controllers' port is for the members.
options:
  state:
    description: With V(absent) the options delete the machines, and nothing but the names of what they share is read.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    description: Changes nothing.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
  action:
    description: Runs as an action plugin on the controller.
    support: full
"""

EXAMPLES = r"""
- name: See what the clusters of the inventory need of EC2
  kafkaops.cluster.aws_order:
  run_once: true
  register: ordered
"""

RETURN = r"""
orders:
  description: The options of M(kafkaops.cluster.aws_machines), one item for each cluster, by its name.
  returned: success
  type: list
  elements: dict
  sample:
    - cluster: orders
      region: eu-central-1
      key_name: orders
      key_file: /home/deploy/.ssh/orders.pem
      rules:
        - {ports: "22", sources: [203.0.113.7/32], purpose: ssh}
        - {ports: "9092", sources: [203.0.113.0/24], purpose: listener CLIENTS}
        - {ports: "9093", sources: [members], purpose: listener INTERNAL}
      machines:
        - name: kafka-01
          groups: [kafka, zookeeper]
          type: m7i.large
          image: ami-0123456789abcdef0
          root_volume: {size: 20GiB}
          public_address: true
"""
