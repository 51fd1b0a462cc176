# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far long work is, said now and then and not all the time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Callable, Optional


@dataclass
class Progress:
    """Says now and then how far things are; `emit` gets a line at most every `every` seconds."""

    emit: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    every: float = 4.0
    _last: Optional[float] = field(default=None)

    def tell(self, line):
        """Emit `line`, unless the last one (or the start) was less than `every` seconds ago."""
        now = self.clock()
        if self._last is None:
            self._last = now
        elif now - self._last >= self.every:
            self._last = now
            self.emit(line)
