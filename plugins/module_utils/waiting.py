# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The one way to wait: for a condition, with a deadline; clock and sleep are passed in."""

from __future__ import annotations

import time
from typing import Callable, Optional, TypeVar

T = TypeVar("T")
POLL_SECONDS = 0.1


def wait_until(
    condition: Callable[[], T],
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    poll_seconds: float = POLL_SECONDS,
) -> T:
    """Return the first true value of `condition()`, or its last one at the deadline.

    It is asked at least once, and the last time not before `seconds` have passed: what becomes true
    during the last pause still counts. What `condition` raises ends the waiting.
    """
    deadline = clock() + seconds
    while True:
        late = clock() >= deadline
        value = condition()
        if value or late:
            return value
        sleep(poll_seconds)


class Steady:
    """Tells when something has been so, at every look, for some seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic):
        self.seconds = seconds
        self._clock = clock
        self._since: Optional[float] = None

    def __call__(self, so: bool) -> bool:
        """Note one look, and return whether all looks of the last `seconds` found it so."""
        now = self._clock()
        self._since = None if not so else now if self._since is None else self._since
        return self._since is not None and now - self._since >= self.seconds
