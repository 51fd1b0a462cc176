# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""By what modules that judge what fits a disk know which log directories are on one; once."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  known_disks:
    description:
      - The disks of log directories, as far as they are known, such as C(disks) of P(kafkaops.cluster.preflight#module).
      - Brokers tell only how large the disk of a directory is, and how much of it is left. So directories of one host for
        which both are the same are taken for one disk, whose room counts once, unless it is said here. Blank disks of one
        size look like that.
    type: list
    elements: dict
    default: []
    suboptions:
      broker:
        description: Id of the broker.
        type: int
        required: true
      path:
        description: The log directory, as in C(log.dirs).
        type: str
        required: true
      disk:
        description: A name of the disk, equal for two directories exactly if they share the room of one file system.
        type: str
        required: true
"""
