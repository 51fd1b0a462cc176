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
idle:
  description: Whether it was found that the server has run without a quorum for so long that it may stop for this reason alone.
  returned: with O(stopping)
  type: bool
  sample: false
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.addresses import endpoint
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.four_letter_words import (
    outage,
    unmet,
    verdict,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.ensemble_gate import (
    ENSEMBLE_OPTIONS,
    EnsembleGate,
    question_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem, ProblemError
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import told_into

OPTIONS = {
    **ENSEMBLE_OPTIONS,
    "wait": {"type": "bool", "default": False},
    "progress": {"type": "path"},
}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=OPTIONS, supports_check_mode=True)
    try:
        question = question_of(module.params)
    except ProblemError as error:
        module.fail_json(msg=str(error))
    stopping = question.stopping
    gate = EnsembleGate(question)
    own = "" if stopping is None else f"server {stopping}: "
    tell = told_into(module.params["progress"], module.log)
    # Check mode shows what a turn would have to wait for.
    looks_once = module.check_mode and stopping is not None
    waits = module.params["wait"] and not looks_once
    if waits:
        gate.wait(question.wait_seconds, lambda line: tell(own + line))
    else:
        gate.look()
    states, missing = gate.states, gate.missing
    result = {"servers": states, "whole": not unmet(states), "missing": missing}
    if stopping is not None:
        cost = outage(question.lists or [[state["id"] for state in states]], stopping)
        result.update(outage=cost, lines=[verdict(missing, stopping, cost)], idle=gate.idle)
        if cost and waits and not missing:
            module.warn(f"{cost[0].upper()}{cost[1:]}.")
    if waits and missing:
        problem = Problem(
            "ensemble.not_ready",
            f"waited {question.wait_seconds:g} s for ZooKeeper: {'; '.join(missing)}",
            "bring back what is missing (playbooks/status.yml shows it, its logs say why), then run again",
        )
        if stopping is not None:
            problem = gate.waited_in_vain()
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
