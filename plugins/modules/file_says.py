#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: file_says
short_description: Wait until a file says something, and say meanwhile for what
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Waits like M(ansible.builtin.wait_for), and displays every ten seconds for what, and how long it takes, such as C(until the ISR has shrunk, 10s of
    about 20s, 10s left).
  - If the file is JSON with a C(line), this is shown, too, where the connection is V(local).
  - The playbook C(drill.yml) uses it.
options:
  path:
    description: The file. It need not be there yet.
    type: path
    required: true
  search_regex:
    description: What it has to say; the module ends when it matches.
    type: str
    required: true
  timeout:
    description: After so many seconds it fails.
    type: int
    default: 300
  awaited:
    description: What is waited for, in words.
    type: str
    required: true
  about_seconds:
    description: About how long it takes.
    type: float
    required: true
attributes:
  check_mode:
    description: It is skipped.
    support: none
  diff_mode:
    description: There is nothing to show.
    support: none
  action:
    description: Runs as an action plugin on the controller, and waits on the host.
    support: full
seealso:
  - module: ansible.builtin.wait_for
"""

EXAMPLES = r"""
- name: Wait until the others have gone on
  kafkaops.cluster.file_says:
    path: /tmp/drill/drill-progress.json
    search_regex: '"shrank": true'
    awaited: the ISR has shrunk
    about_seconds: 20
"""

RETURN = r"""
match_groups:
  description: What the groups of O(search_regex) have matched.
  returned: if it has matched
  type: list
  elements: str
  sample: []
match_groupdict:
  description: The same of groups with names.
  returned: if it has matched
  type: dict
  sample: {"state": "full"}
"""
