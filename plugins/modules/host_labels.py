#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_labels
short_description: Give directories the SELinux contexts of what is in them
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - A directory to which the policy gives another type gets a local rule, by C(semanage). One that has another type than it should is
    relabelled, with everything below.
  - Does nothing where SELinux is not enabled. Never switches SELinux on or off, and changes no booleans.
options:
  data:
    description: Directories of data, C(var_lib_t). One that does not exist gets its rule alone.
    type: list
    elements: path
    default: []
  logs:
    description: Directories of logs, C(var_log_t).
    type: list
    elements: path
    default: []
  releases:
    description: Directories of programs, C(usr_t).
    type: list
    elements: path
    default: []
attributes:
  check_mode:
    description: Tells the rules and the directories, and changes none.
    support: full
  diff_mode:
    description: Shows the rules and the directories.
    support: full
"""

EXAMPLES = r"""
- name: Label the directories of a broker
  kafkaops.cluster.host_labels:
    data: [/data/kafka]
    logs: [/var/log/kafka]
    releases: [/opt/kafka]
"""

RETURN = r"""
enabled:
  description: Whether SELinux is enabled on the host.
  returned: success
  type: bool
  sample: true
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.commands import runner
from ansible_collections.kafkaops.cluster.plugins.module_utils.file_contexts import (
    TYPES,
    Directory,
    apply,
    is_enabled,
    read_plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError


def main() -> None:
    """Look, plan, and do it."""
    module = AnsibleModule(
        argument_spec={
            name: {"type": "list", "elements": "path", "default": []} for name in sorted(TYPES)
        },
        supports_check_mode=True,
    )
    if not is_enabled():
        module.exit_json(changed=False, enabled=False)

    run = runner(module)
    semanage = module.get_bin_path("semanage", opt_dirs=["/usr/sbin", "/sbin"])
    wanted = [Directory(path, TYPES[name]) for name in TYPES for path in module.params[name]]
    try:
        planned = read_plan(wanted, run, semanage)
        if not module.check_mode:
            apply(planned, run, semanage)
    except ProblemError as error:
        module.fail_json(msg=str(error))
    told = planned.lines()
    module.exit_json(
        changed=bool(told),
        enabled=True,
        diff={"before": "", "after": "".join(f"{line}\n" for line in told)},
    )


if __name__ == "__main__":
    main()
