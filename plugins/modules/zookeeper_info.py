#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module zookeeper_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: zookeeper_info
short_description: Describe a ZooKeeper ensemble, or wait until it serves
description:
  - Asks each server by four-letter words (C(srvr), C(mntr), C(conf)); no ZooKeeper client is needed.
  - Can wait until the ensemble has a quorum and given servers serve, and warns about the servers that
    it does not wait for.
  - Changes nothing.
version_added: 0.1.0
author:
  - kafkaops.cluster contributors (@kafkaops)
options:
  servers:
    description: All servers of the ensemble, also those that are down; a quorum is reckoned from their number.
    type: list
    elements: dict
    required: true
    suboptions:
      id:
        description: The server's id (myid). A server that answers with another id is not the one asked for.
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
    description:
      - Wait until a quorum serves under one leader, its followers are synced, and every server of
        O(required) serves.
    type: bool
    default: false
  required:
    description:
      - Ids of the servers that must serve. All servers by default; none with O(stopping).
    type: list
    elements: int
  stopping:
    description:
      - Id of a server that is about to stop. The others must have a quorum without it, where there are
        three or more.
    type: int
  lists:
    description:
      - Lists of ids, where the list of servers changes. Each of them must have its quorum. By default, all servers are one list.
    type: list
    elements: list
  timeout:
    description: Seconds to wait at the most.
    type: int
    default: 120
extends_documentation_fragment:
  - kafkaops.cluster.attributes
attributes:
  check_mode:
    support: full
    details: It only reads. In check mode it waits, too.
  diff_mode:
    support: none
    details: It only reads.
  idempotent:
    support: full
"""

EXAMPLES = r"""
- name: Wait until the ensemble is whole
  kafkaops.cluster.zookeeper_info:
    servers:
      - {id: 1, address: zk1.example.org}
      - {id: 2, address: zk2.example.org}
      - {id: 3, address: zk3.example.org}
    wait: true

- name: Wait for a quorum and for servers 1 and 2, whatever became of server 3
  kafkaops.cluster.zookeeper_info:
    servers: "{{ ensemble }}"
    wait: true
    required: [1, 2]

- name: Wait until server 2 may be stopped
  kafkaops.cluster.zookeeper_info:
    servers: "{{ ensemble }}"
    wait: true
    stopping: 2
"""

RETURN = r"""
servers:
  description:
    - One entry a server. Its C(error) says why it does not serve or is another one.
    - C(listed) are the ids of the list of servers that it has in effect, which only one that serves tells.
  returned: always
  type: list
  elements: dict
  sample:
    - {id: 1, address: 127.0.0.1, port: 2181, serving: true, role: leader, version: 3.9.5,
       zxid: "0x100000000", outstanding: 0, connections: 1, nodes: 5, synced_followers: 2, listed: [1, 2, 3], runs: true, error: null}
whole:
  description: Whether every server serves and every follower is synced.
  returned: always
  type: bool
  sample: true
missing:
  description: What is missing of what was asked for, in words.
  returned: always
  type: list
  elements: str
  sample: ["server 3 at 127.0.0.1:2183: [Errno 111] Connection refused"]
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.four_letter_words import (
    server_state,
    unmet,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

SERVER = {
    "id": {"type": "int"},
    "address": {"type": "str", "required": True},
    "port": {"type": "int", "default": 2181},
}
OPTIONS = {
    "servers": {"type": "list", "elements": "dict", "required": True, "options": SERVER},
    "wait": {"type": "bool", "default": False},
    "required": {"type": "list", "elements": "int"},
    "stopping": {"type": "int"},
    "lists": {"type": "list", "elements": "list"},
    "timeout": {"type": "int", "default": 120},
}


def wrong_parameters(params: Dict[str, Any]) -> str:
    """Return what is wrong with the parameters beyond their types; "" if nothing."""
    if not params["servers"]:
        return "servers: the list is empty."
    if params["timeout"] < 0:
        return f"timeout={params['timeout']}: must not be negative."
    known = {server["id"] for server in params["servers"]}
    named = {"required": params["required"] or [], "stopping": [params["stopping"]]}
    named["lists"] = [int(number) for each in params["lists"] or [] for number in each]
    for option, ids in named.items():
        for number in ids:
            if number is not None and number not in known:
                return f"{option}={number}: no entry of servers has this id."
    return ""


def states_of(servers: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return the state of each server; all are asked at once, as one that is gone may be slow to say so."""
    with ThreadPoolExecutor(max_workers=len(servers)) as pool:
        return list(pool.map(server_state, servers))


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=OPTIONS, supports_check_mode=True)
    params = module.params
    wrong = wrong_parameters(params)
    if wrong:
        module.fail_json(msg=wrong)
    states: List[Dict[str, Any]] = []
    lists = [[int(number) for number in each] for each in params["lists"] or []]
    asked = (params["required"], params["stopping"], lists)

    def met() -> bool:
        states[:] = states_of(params["servers"])
        return not unmet(states, *asked)

    wait_until(met, params["timeout"] if params["wait"] else 0, poll_seconds=0.2)
    missing = unmet(states, *asked)
    result = {"servers": states, "whole": not unmet(states), "missing": missing}
    if params["wait"] and missing:
        reasons = "; ".join(missing)
        told = f"Waited {params['timeout']} s for ZooKeeper: {reasons}."
        if params["stopping"] is not None:
            remedy = (
                "bring back what is missing (playbooks/status.yml shows it), then run it again, it"
                " goes on from here"
            )
            if not any(state["serving"] for state in states):
                remedy = (
                    "none serves, so that turns cannot help: run playbooks/stop.yml, then"
                    " playbooks/site.yml, which starts them together"
                )
            told = Problem(
                "gate.waiting",
                f"waited {params['timeout']} s, and it may not be stopped yet: {reasons}. It was not stopped",
                remedy,
                (f"server {params['stopping']}",),
            ).line()
        module.fail_json(msg=told, **result)
    if params["wait"]:
        for state in states:
            if state["error"]:
                told = f"{state['id']} at {state['address']}:{state['port']}: {state['error']}"
                module.warn(f"Not waited for: ZooKeeper server {told}.")
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
