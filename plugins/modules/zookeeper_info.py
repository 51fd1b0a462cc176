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
      - A server that has said for 20 seconds that it runs without a quorum may stop as well. Its stop takes nothing
        away, and its restart may be the cure. ZooKeeper itself begins anew after as long (C(initLimit)).
    type: int
  unmended:
    description:
      - Ids of servers that do not serve and will be restarted later. Nothing is expected of them. Where there can
        be no quorum without them, it is enough that the servers of O(required) answer.
    type: list
    elements: int
  quiet_seconds:
    description:
      - For how long all of it must have been true without a break. A server that loses its leader again and again
        gives good answers in between.
    type: float
    default: 0.0
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
  - kafkaops.cluster.progress
  - kafkaops.cluster.attributes
attributes:
  check_mode:
    support: full
    details: It only reads. In check mode it waits, too; with O(stopping) it looks once, and nothing makes it fail.
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
lines:
  description: One line about the server that is to stop, for people.
  returned: with O(stopping)
  type: list
  elements: str
  sample: ["server 2 may stop now"]
outage:
  description: What its stop costs where the others cannot be a quorum, empty elsewhere.
  returned: with O(stopping)
  type: str
  sample: "the ensemble does not serve while server 1 restarts: it is the only one"
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.four_letter_words import (
    outage,
    says_it_does_not_serve,
    server_state,
    unmet,
    verdict,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import (
    Progress,
    told_into,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import Steady, wait_until

# The default of initLimit (10) in ticks of 2 s: so long a server may read and fetch its database before
# it serves, and that is not to be disturbed.
NOT_SERVING_SECONDS = 20
# Between two lines about what is waited for.
TELL_SECONDS = 5.0
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
    "unmended": {"type": "list", "elements": "int"},
    "quiet_seconds": {"type": "float", "default": 0.0},
    "lists": {"type": "list", "elements": "list"},
    "timeout": {"type": "int", "default": 120},
    "progress": {"type": "path"},
}


def wrong_parameters(params: Dict[str, Any]) -> str:
    """Return what is wrong with the parameters beyond their types; "" if nothing."""
    if not params["servers"]:
        return "servers: the list is empty."
    if params["timeout"] < 0:
        return f"timeout={params['timeout']}: must not be negative."
    known = {server["id"] for server in params["servers"]}
    named = {"required": params["required"] or [], "stopping": [params["stopping"]]}
    named["unmended"] = params["unmended"] or []
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
        remedy = "name at least one server, and others only by their ids"
        module.fail_json(msg=Problem("options.servers", wrong, remedy).line())
    states: List[Dict[str, Any]] = []
    lists = [[int(number) for number in each] for each in params["lists"] or []]
    stopping = params["stopping"]
    asked = (params["required"], stopping, lists, params["unmended"] or ())
    quiet, idle = Steady(params["quiet_seconds"]), Steady(NOT_SERVING_SECONDS)
    missing: List[str] = []
    progress = Progress(told_into(params["progress"], module.log), every=TELL_SECONDS)

    def met() -> bool:
        states[:] = states_of(params["servers"])
        missing[:] = unmet(states, *asked)
        # Both are told of every look.
        harmless = stopping is not None and idle(says_it_does_not_serve(states, stopping))
        if harmless:
            missing[:] = []
        own = "" if stopping is None else f"server {stopping}: "
        progress.tell(
            lambda: f"{own}waiting for {progress.seconds():.0f} s:"
            f" {'; '.join(missing) or 'quiet so far'}"
        )
        return quiet(not missing) or harmless

    # Check mode shows what a turn would have to wait for.
    looks_once = module.check_mode and stopping is not None
    waits = params["wait"] and not looks_once
    if not wait_until(met, params["timeout"] if waits else 0, poll_seconds=0.2) and waits:
        missing[:] = missing or [f"the state was not good for {params['quiet_seconds']:g} s"]
    result = {"servers": states, "whole": not unmet(states), "missing": missing}
    if stopping is not None:
        cost = outage(lists or [[state["id"] for state in states]], stopping)
        result.update(outage=cost, lines=[verdict(missing, stopping, cost)])
        if cost and waits and not missing:
            module.warn(f"{cost[0].upper()}{cost[1:]}.")
    if waits and missing:
        reasons = "; ".join(missing)
        problem = Problem(
            "ensemble.not_ready",
            f"waited {params['timeout']} s for ZooKeeper: {reasons}",
            "bring back what is missing (playbooks/status.yml shows it, its logs say why), then run again",
        )
        if stopping is not None:
            remedy = (
                "bring back what is missing (playbooks/status.yml shows it), then run it again, it"
                " goes on from here"
            )
            if not any(state["serving"] for state in states):
                remedy = (
                    "none serves, so that turns cannot help: run playbooks/stop.yml, then"
                    " playbooks/site.yml, which starts them together"
                )
            problem = Problem(
                "gate.waiting",
                f"waited {params['timeout']} s, and it may not be stopped yet: {reasons}. It was not stopped",
                remedy,
                (f"server {stopping}",),
            )
        module.fail_json(msg=problem.line(), **result)
    if waits:
        for state in states:
            if state["error"]:
                where = endpoint(state["address"], state["port"])
                module.warn(
                    f"Not waited for: ZooKeeper server {state['id']} at {where}: {state['error']}."
                )
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
