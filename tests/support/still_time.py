# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time for tests of what waits: nothing passes unless somebody sleeps."""

from __future__ import annotations


class Time:
    """A clock that only pauses move; `now` in seconds."""

    def __init__(self):
        self.now = 0.0

    def clock(self):
        """Return the time, as time.monotonic does."""
        return self.now

    def sleep(self, seconds):
        """Let time pass, as time.sleep does."""
        self.now += seconds
