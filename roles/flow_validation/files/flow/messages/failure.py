# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""How the job says that it cannot go on."""

from __future__ import annotations


class CannotRun(Exception):
    """The validation could not be done; the message is one sentence for a person (exit code 3)."""
