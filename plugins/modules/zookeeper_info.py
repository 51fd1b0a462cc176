#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module zookeeper_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: zookeeper_info
short_description: Describe a ZooKeeper ensemble, or wait until it is whole
description:
  - Asks each server by four-letter words (C(srvr), C(mntr)); no ZooKeeper client is needed.
version_added: 0.1.0
author:
  - kafkaops.cluster contributors (@kafkaops)
options:
  servers:
    description: The servers of the ensemble.
    type: list
    elements: dict
    required: true
    suboptions:
      id:
        description: The server's id (myid).
        type: int
      address:
        description: Address for clients.
        type: str
        required: true
      port:
        description: Port for clients.
        type: int
        default: 2181
  wait:
    description: Wait until every server serves and every follower is synced.
    type: bool
    default: false
  timeout:
    description: Seconds to wait at the most.
    type: int
    default: 120
attributes:
  check_mode:
    description: Reads only.
    support: full
  diff_mode:
    description: Reads only.
    support: none
"""

EXAMPLES = r"""
- name: Wait until the ensemble is whole
  kafkaops.cluster.zookeeper_info:
    servers:
      - {id: 1, address: zk1.example.org}
      - {id: 2, address: zk2.example.org}
      - {id: 3, address: zk3.example.org}
    wait: true
"""

RETURN = r"""
servers:
  description: One entry a server.
  returned: always
  type: list
  elements: dict
  sample:
    - {id: 1, address: 127.0.0.1, port: 2181, serving: true, role: leader, version: 3.9.5,
       zxid: "0x100000000", outstanding: 0, connections: 1, nodes: 5, synced_followers: 2, error: null}
whole:
  description: Whether every server serves and every follower is synced.
  returned: always
  type: bool
missing:
  description: What is missing, in words.
  returned: always
  type: list
  elements: str
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils._four_letter_words import (
    missing_to_whole,
    server_state,
)

SERVER = {
    "id": {"type": "int"},
    "address": {"type": "str", "required": True},
    "port": {"type": "int", "default": 2181},
}


def observe(servers, wait, timeout, clock=time.monotonic, sleep=time.sleep):
    """Return (states, missing); with `wait`, polls until nothing is missing or `timeout` seconds are over."""
    deadline = clock() + timeout
    while True:
        states = [server_state(server) for server in servers]
        missing = missing_to_whole(states)
        if not wait or not missing or clock() > deadline:
            return states, missing
        sleep(0.2)


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "servers": {"type": "list", "elements": "dict", "required": True, "options": SERVER},
            "wait": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    params = module.params
    states, missing = observe(params["servers"], params["wait"], params["timeout"])
    result = {"servers": states, "whole": not missing, "missing": missing}
    if params["wait"] and missing:
        module.fail_json(
            msg="The ensemble is not whole after %d s: %s."
            % (params["timeout"], "; ".join(missing)),
            **result,
        )
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
