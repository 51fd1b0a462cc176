# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""How fast and how long: a run that people can do while somebody else works on the cluster. Pure."""

from __future__ import annotations

import re

# Records a second over all producers, of a run of some duration that names no rate.
POLITE_RATE = 1000
LONGEST_SECONDS = 30 * 86_400
CATCH_UP = 2  # times the rate at which records are written that were held up

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_FORM = re.compile(r"([1-9][0-9]*) ?([smhd])\Z")


def seconds(text: str) -> int:
    """Seconds of `90s`, `10m`, `2h`, `1d`. ValueError with what to write instead: a number alone could
    mean any of them.
    """
    found = _FORM.match(text.strip())
    if not found:
        raise ValueError(f"{text!r} is not a clear duration; write 90s, 10m, 2h or 1d")
    return int(found[1]) * _UNITS[found[2]]


def steady(rate: float, duration: float, records: int) -> tuple:
    """(records a second, records in all) of what was asked for: a rate (0: none) and a duration in
    seconds (0: none, so that the number of records decides).
    """
    if not duration:
        return rate, records
    rate = rate or POLITE_RATE
    return rate, max(1, round(rate * duration))


class Pace:
    """When the next records may be sent, by a clock in seconds.

    Those that were held up are not sent all at once when brokers come back, but at CATCH_UP times the
    rate until they are made up for.
    """

    def __init__(self, rate: float, started: float):
        self._rate, self._started, self._sent = rate, started, 0
        self._soonest = started

    def sent(self, records: int, now: float) -> None:
        """So many were handed over until `now`, since the last call."""
        self._sent += records
        self._soonest = max(self._soonest, now) + records / (self._rate * CATCH_UP)

    def left(self, now: float) -> float:
        """Seconds to wait before the next ones; 0 or less: none."""
        due = self._started + self._sent / self._rate
        return max(due, self._soonest) - now
