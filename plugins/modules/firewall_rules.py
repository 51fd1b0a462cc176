#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The work is done by the action plugin of the same name; this file documents it.
from __future__ import annotations

DOCUMENTATION = r"""
module: firewall_rules
short_description: Which ports of each host the inventory opens to whom
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Reads the variables of all hosts of the clusters, those outside of C(--limit), too, and returns the option O(kafkaops.cluster.host_firewall#module:openings)
    of each host that has C(host_baseline_firewall). Contacts nobody.
  - Whoever belongs to the audience of a listener is let in at its port, as C(host_baseline_firewall_sources) says where each audience is. Brokers are
    let in at each other's listener for brokers and at ZooKeeper, servers at each other's ports, and the host in C(kafka_admin_host) where
    the modules need it.
options: {}
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
- name: See which ports are open to whom
  kafkaops.cluster.firewall_rules:
  run_once: true
  register: ports
"""

RETURN = r"""
openings:
  description: The ports of each host that has a firewall, by its name.
  returned: success
  type: dict
  sample:
    kafka-1:
      - {port: 2181, sources: [192.0.2.11, 192.0.2.12], purpose: "ZooKeeper, clients"}
      - {port: 9092, sources: [192.0.2.11, 192.0.2.12, 203.0.113.0/24], purpose: listener INTERNAL}
"""
