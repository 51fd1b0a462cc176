# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules that take long say meanwhile; once."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  progress:
    description:
      - A file into which the module writes how far it is or what it waits for, as JSON with the key C(line).
      - With the connection V(local) the task makes a file of its own, and Ansible shows its line every
        ten seconds.
    type: path
"""
