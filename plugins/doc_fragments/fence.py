# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""By what modules that can outlive their playbook know that it is there; once."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  lock:
    description:
      - The lock of the cluster that this run holds on the host where the module runs, as
        P(kafkaops.cluster.run_lock#module) has told it; empty for none.
      - Once another run holds it, nothing more is begun, and the module fails.
    type: dict
    default: {}
    suboptions:
      directory:
        description: Directory of the locks.
        type: path
      cluster:
        description: Name of the cluster.
        type: str
      owner:
        description: The run.
        type: str
  run:
    description:
      - The process that the module belongs to, on the same machine. Once it has ended, nothing more is begun.
      - Set by the action of the same name, except for a task with C(async).
    type: dict
    default: {}
    suboptions:
      pid:
        description: Its number.
        type: int
      start_ticks:
        description: When it began, in clock ticks since the machine was started.
        type: int
"""
