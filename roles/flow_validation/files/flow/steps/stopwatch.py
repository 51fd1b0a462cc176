# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""How long each step took."""

from __future__ import annotations

import time
from contextlib import contextmanager


class Stopwatch:
    """Seconds by step, in the order of their beginning."""

    def __init__(self) -> None:
        self.seconds: dict = {}
        self._start = time.monotonic()

    @contextmanager
    def step(self, name: str):
        began = time.monotonic()
        self.seconds[name] = 0.0
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - began, 3)

    def total(self) -> dict:
        """All steps and their sum by the clock."""
        return {**self.seconds, "total": round(time.monotonic() - self._start, 3)}
