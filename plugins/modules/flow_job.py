#!/usr/bin/python
# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: flow_job
short_description: Run the flow validation's job and show how far it is
version_added: 0.1.0
author: kafkaops.cluster contributors (@kafkaops)
description:
  - Runs a command like M(ansible.builtin.command), and displays every ten seconds the C(line) of the file that the job keeps up to date while
    it runs, such as C(written 3,400,000 of 10,000,000 records, 480,000/s, about 14 s left).
  - The role P(kafkaops.cluster.flow_validation#role) uses it. The job tells for itself what it found, so a task should judge RV(ignore:rc).
options:
  argv:
    description: The command and its arguments, not through a shell.
    type: list
    elements: str
    required: true
  progress:
    description:
      - The JSON file in which the job says how far it is.
      - It is only looked at if the task's connection is V(local), as it is unless the job was sent to another host.
    type: path
attributes:
  check_mode:
    description: The command is skipped.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
  action:
    description: Runs as an action plugin on the controller, and the command on the host.
    support: full
seealso:
  - module: ansible.builtin.command
"""

EXAMPLES = r"""
- name: Write, read back and judge ten million records
  kafkaops.cluster.flow_job:
    argv:
      - "{{ ansible_playbook_python }}"
      - roles/flow_validation/files/job.py
      - run
      - --bootstrap-servers=127.0.0.1:9092
      - --records=10000000
      - --ledger=/var/tmp/run/ledger
      - --output=/var/tmp/run
    progress: /var/tmp/run/progress.json
  register: job
  changed_when: false
  failed_when: job.rc not in [0, 1, 2]
"""

RETURN = r"""
rc:
  description: The job's exit code; 0 pass, 1 violation, 2 inconclusive, 3 could not run.
  returned: success
  type: int
  sample: 0
stdout:
  description: What the job said.
  returned: success
  type: str
stderr:
  description: Why it could not run.
  returned: success
  type: str
"""
