# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection plug-in to this machine that counts as one to another: what its host is told goes into a file."""

from __future__ import annotations

from ansible.plugins.connection.local import Connection as Local

DOCUMENTATION = """
name: far
short_description: This machine, as if it were another one
author: kafkaops.cluster contributors
description: For tests.
options:
  told:
    description: File to which each command is added.
    type: path
    required: true
    vars: [{name: far_told}]
"""


class Connection(Local):
    """As `local`, under another name."""

    transport = "far"

    def exec_command(self, cmd, *arguments, **named):
        """Run it, and note it."""
        with open(self.get_option("told"), "a", encoding="utf-8") as told:
            told.write(f"{cmd}\n")
        return super().exec_command(cmd, *arguments, **named)
