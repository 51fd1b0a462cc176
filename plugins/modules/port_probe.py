#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: port_probe
short_description: See whether this host reaches ports of others, also before anything listens there
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Connects to ports where P(kafkaops.cluster.port_stand_in#module) listens on other hosts. Checks that the name resolves, that the connection comes
    about, and that it leads to that host and port. All at once, and nothing is changed.
options:
  host:
    description: What to call this host in messages.
    type: str
    required: true
  attempts:
    description: The ports to try.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the other host in the inventory.
        type: str
        required: true
      what:
        description: What will listen there, in words.
        type: str
        required: true
      address:
        description: Name or address to connect to.
        type: str
        required: true
      port:
        description: The port.
        type: int
        required: true
      audience:
        description: Audiences of the listener, where this host tries it for clients.
        type: list
        elements: str
        default: []
      runs:
        description: Whether the instance itself runs there, so that it is enough that the connection comes about.
        type: bool
        default: false
      votes:
        description: Whether it is a voter of a quorum that runs. The others may not restart while they do not reach it.
        type: bool
        default: false
      authorities:
        description:
          - File on this host with the certificates of authorities. Where the instance runs, its own has to be of one of them.
          - Empty where it speaks no TLS.
        type: str
        default: ""
  timeout:
    description: Seconds that a connection may take to come about.
    type: float
    default: 5
  retry_seconds:
    description: For so long what is not reached is tried again.
    type: float
    default: 0
attributes:
  check_mode:
    description: It changes nothing anyway.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
seealso:
  - module: kafkaops.cluster.port_stand_in
  - module: kafkaops.cluster.listener_probe
"""

EXAMPLES = r"""
- name: See whether this host would reach the broker
  kafkaops.cluster.port_probe:
    host: "{{ inventory_hostname }}"
    attempts:
      - {name: kafka-1, what: listener CLIENTS, address: kafka1.example.org, port: 9092}
  register: probe
  failed_when: probe.problems | length > 0
"""

RETURN = r"""
problems:
  description: What is wrong, one sentence each.
  returned: always
  type: list
  elements: str
  sample:
    - "[reach.port] kafka-2: listener INTERNAL of kafka-1=10.0.0.11:9091: timed out. Remedy: let this host through firewall and port mapping, or correct
      `advertised` and `port`."
unreached:
  description: Names of the other hosts that these are about, in the same order.
  returned: always
  type: list
  elements: str
  sample: [kafka-1]
"""

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Mapping, Tuple

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.cluster.seen_from import (
    before_start,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.stand_in import (
    tried,
    tried_for,
)

ATTEMPT = dict(
    name=dict(type="str", required=True),
    what=dict(type="str", required=True),
    address=dict(type="str", required=True),
    port=dict(type="int", required=True),
    audience=dict(type="list", elements="str", default=[]),
    runs=dict(type="bool", default=False),
    votes=dict(type="bool", default=False),
    authorities=dict(type="str", default=""),
)
ARGUMENTS = dict(
    host=dict(type="str", required=True),
    attempts=dict(type="list", elements="dict", required=True, options=ATTEMPT),
    timeout=dict(type="float", default=5),
    retry_seconds=dict(type="float", default=0),
)


def main() -> None:
    """Try all at once, judge, return."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    attempts, timeout = module.params["attempts"], module.params["timeout"]

    def seen(each: Mapping[str, Any]) -> Tuple[Mapping[str, Any], str, str]:
        where = (each["name"], each["address"], each["port"], timeout)
        attempt = functools.partial(tried, *where, each["runs"], each["authorities"])
        return (each, *tried_for(attempt, module.params["retry_seconds"]))

    with ThreadPoolExecutor(max(1, min(32, len(attempts)))) as pool:
        found = list(pool.map(seen, attempts))
    problems = before_start(module.params["host"], found)
    module.exit_json(
        changed=False,
        problems=[each.line() for each in problems],
        unreached=[each["name"] for each, step, _words in found if step],
    )


if __name__ == "__main__":
    main()
