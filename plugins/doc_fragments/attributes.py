# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules of this collection say about check mode, diff mode and idempotence; once."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Whether check mode says what would happen, and changes nothing.
  diff_mode:
    description: Whether diff mode shows what changes.
  idempotent:
    description: Whether a second run, with nothing else in between, changes nothing.
"""

    ACTIONGROUP_KAFKA = r"""
options: {}
attributes:
  action_group:
    description:
      - Set connection options for all modules of the group with C(module_defaults), under
        C(group/kafkaops.cluster.kafka).
    support: full
    membership:
      - kafkaops.cluster.kafka
"""
