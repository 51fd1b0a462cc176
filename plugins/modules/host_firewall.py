#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_firewall
short_description: Open exactly the stated ports of a host to exactly the stated sources
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Each stated port is open to its sources and to the host itself, and refused to everybody else. Nothing is said of any other port.
  - With firewalld it has a policy of its own, from any zone to the host, which comes before the zones' own rules. Making it needs one reload. While
    that would forget a rule of somebody else that was not made permanent, it is refused.
  - With nftables it has a table of its own, replaced in one transaction, and a unit that loads it at boot and after C(nftables.service). The
    table cannot open what another table drops; chains that do so by their policy or by their last rule are named in a warning.
  - Zones, default policies, other tables, other policies and other rules are never touched.
options:
  kind:
    description: Which firewall. V(none) removes what this module has made of O(name) in any of them.
    type: str
    choices: [none, firewalld, nftables]
    required: true
  name:
    description: Name of the policy or table, C(kafkaops-) and 8 hexadecimal digits. Whatever has this name is taken for its own.
    type: str
    required: true
  label:
    description: Whose ports they are, for people.
    type: str
    default: ""
  openings:
    description: The ports.
    type: list
    elements: dict
    default: []
    suboptions:
      port:
        description: TCP port.
        type: int
        required: true
      sources:
        description: Addresses and networks that may reach it.
        type: list
        elements: str
        required: true
      purpose:
        description: What it is for.
        type: str
        default: ""
  keep:
    description: Leave open what is open and not stated, because something may still run there. RV(stale) says whether there is any.
    type: bool
    default: false
attributes:
  check_mode:
    description: Tells the rules, and changes none.
    support: full
  diff_mode:
    description: Shows each port and source before and after.
    support: full
"""

EXAMPLES = r"""
- name: Open the ports of a broker
  kafkaops.cluster.host_firewall:
    kind: nftables
    name: kafkaops-1f2e3d4c
    label: orders/kafka-1
    openings:
      - {port: 9092, sources: [192.0.2.11, 192.0.2.12, 192.0.2.13], purpose: listener INTERNAL}
      - {port: 9093, sources: [203.0.113.0/24], purpose: listener CLIENTS}
"""

RETURN = r"""
stale:
  description: Whether something is still open that is not stated.
  returned: success
  type: bool
  sample: false
"""

import re

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.commands import runner
from ansible_collections.kafkaops.cluster.plugins.module_utils.firewall.bring import KINDS, bring
from ansible_collections.kafkaops.cluster.plugins.module_utils.firewall.firewalld import Firewalld
from ansible_collections.kafkaops.cluster.plugins.module_utils.firewall.nftables import Nftables
from ansible_collections.kafkaops.cluster.plugins.module_utils.firewall.openings import (
    read_openings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError

NAME = re.compile(r"kafkaops-[0-9a-f]{8}")
PLACES = ["/usr/sbin", "/sbin", "/usr/bin"]


def main() -> None:
    """Look, plan, and do it."""
    opening = {
        "port": {"type": "int", "required": True},
        "sources": {"type": "list", "elements": "str", "required": True},
        "purpose": {"type": "str", "default": ""},
    }
    module = AnsibleModule(
        argument_spec={
            "kind": {"type": "str", "choices": list(KINDS), "required": True},
            "name": {"type": "str", "required": True},
            "label": {"type": "str", "default": ""},
            "openings": {
                "type": "list",
                "elements": "dict",
                "options": opening,
                "default": [],
            },
            "keep": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    params = module.params

    run = runner(module)
    name, label = params["name"], params["label"] or params["name"]
    if not NAME.fullmatch(name):
        module.fail_json(msg=f"name={name}: not kafkaops- and 8 hexadecimal digits")
    firewalls = (
        Firewalld(name, label, run, module.get_bin_path("firewall-cmd", opt_dirs=PLACES)),
        Nftables(name, label, run, module.get_bin_path("nft", opt_dirs=PLACES)),
    )
    try:
        openings = read_openings(params["openings"])
        result = bring(params["kind"], firewalls, openings, params["keep"], module.check_mode)
    except ProblemError as error:
        module.fail_json(msg=str(error))
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"{name}: {error}")
    for warning in result.pop("warnings"):
        module.warn(warning)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
