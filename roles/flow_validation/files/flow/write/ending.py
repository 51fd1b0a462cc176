# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The end of a run that goes on while something else does, a roll or an upgrade, or for a while.

Whoever waits for that makes a file, or the time is over. Then all produce tasks end at one position, a moment later. So
each partition has as many records as any other, and the run is judged like one that was planned so. Where a task is far
behind, since brokers have held it up, that position is its own: nobody waits until it has made up for that.
"""

from __future__ import annotations

import argparse
import math
import os
import threading
import time
from collections import Counter
from typing import Optional

from flow.messages import failure
from flow.messages.output import note
from flow.record import files
from flow.write.notes import end_of, set_end
from flow.write.produce import AHEAD_SECONDS

_LOOK_SECONDS = 0.2
# From the position that an attempt has written down last to the one at which it has heard of the end.
_NOTICE_SECONDS = 3.0


def end_position(position: int, rate: float, partitions: int, most: int) -> int:
    """At which position all produce tasks can still end, if the fastest was at `position`; at least 1.

    `rate`: records a second over all partitions; `most`: what each partition has at the most.
    """
    margin = int(rate / partitions * _NOTICE_SECONDS) + 1
    return max(1, min(position + margin, most))


def end_of_all(
    fastest: int, slowest: int, rate: float, partitions: int, most: int
) -> Optional[int]:
    """`end_position` of tasks of which these two are the foremost and the last; None where all come to the end of the
    plan by themselves, in a moment.
    """
    ahead = rate / partitions * AHEAD_SECONDS
    if fastest - slowest > ahead:
        return end_position(slowest, rate, partitions, most)
    # The whole plan must be beyond it: partitions may differ by one record there. When a duration is over, the fastest
    # task is mostly at the end of the plan.
    return end_position(fastest, rate, partitions, most) if fastest + ahead < most else None


class ending:
    """While the context is open, the tasks are told when the run shall end; nothing without --until and
    --duration. The clock of --duration begins with the context.
    """

    def __init__(self, options: argparse.Namespace, plan: files.Plan):
        self._options, self._plan = options, plan
        self._over = threading.Event()
        self._began = time.monotonic()
        self._watcher = threading.Thread(target=self._watch, name="ending", daemon=True)

    def __enter__(self) -> "ending":
        self._began = time.monotonic()
        if self._options.until or self._options.duration:
            self._watcher.start()
        return self

    def __exit__(self, *_error) -> None:
        self._over.set()
        if self._watcher.is_alive():
            self._watcher.join()

    def ends_at(self) -> float:
        """When the time is over, as time.time() tells it everywhere; infinity without --duration."""
        if not self._options.duration:
            return math.inf
        return time.time() + self._began + self._options.duration - time.monotonic()

    def records(self) -> int:
        """How many records the run has: those of the command line, or fewer if it was ended."""
        end = end_of(self._options.ledger)
        return self._plan.records if end is None else end * self._plan.partitions

    def _watch(self) -> None:
        said = False
        while not self._over.wait(_LOOK_SECONDS):
            if not self._is_time():
                continue
            try:
                if self._end():
                    return
            except Exception as error:  # a full disk may have room a moment later
                if not said:
                    note(f"note: the run cannot be told yet to end: {failure.sentence(error, '')}")
                said = True

    def _end(self) -> bool:
        """Tell the tasks where to end, if they have to be told; whether they were. They may yet have to, later."""
        plan = self._plan
        attempts = files.load_attempts(self._options.ledger, parts=False)
        fastest = max((each.position for each in attempts), default=0)
        # Who had to begin again is behind, too, and goes on as fast as it can.
        begun = Counter(each.producer for each in attempts)
        once = (each.position for each in attempts if begun[each.producer] == 1)
        slowest = min(once, default=fastest)
        most = plan.records // plan.partitions
        end = end_of_all(fastest, slowest, self._options.rate, plan.partitions, most)
        if end is None:
            return False
        set_end(self._options.ledger, end)
        return True

    def _is_time(self) -> bool:
        options = self._options
        over = options.duration and time.monotonic() - self._began >= options.duration
        alone = options.beside and not os.path.exists(f"/proc/{options.beside}")
        return bool(over or alone or (options.until and os.path.exists(options.until)))
