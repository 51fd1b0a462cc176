# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drill has made in a cluster goes, and what it has moved comes back, however the drill's process ends.

Private to this collection. A process of its own listens to a pipe whose other end the drill has: it hears of
a good end, and the kernel closes the pipe of a drill that was killed, by SIGKILL, too.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Callable, Iterator, List

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import in_background
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

# A cluster that takes no changes is tried so long, and so often.
TRY_SECONDS, TRY_AGAIN_SECONDS = 900.0, 2.0
# Longer than a broker that has died is taken for one that lives: ZooKeeper's session is 18 s by default.
LASTING_SECONDS = 30.0
DONE = b"d"


@contextlib.contextmanager
def removed_by_another(remove: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """While the context is open, have a process beside this one that calls `remove` unless it ends well.

    Yields what says that something is left although it ends well. A drill that fails removes what it can; what
    kept it from its work may keep it from that, too. To be entered before there is any client: their threads do
    not survive a fork.
    """
    reading, writing = os.pipe()

    def listen() -> None:
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            word = pipe.read(1)
        if word != DONE:
            remove()

    in_background(listen)
    os.close(reading)
    left = []
    try:
        yield lambda: left.append(True)
        if not left:
            os.write(writing, DONE)
    finally:
        os.close(writing)


def removed_in_the_end(
    topics: Callable[[], Any],
    groups: Callable[[], Any],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Remove topics, then groups, as soon as the cluster lets it be done; whether it has.

    What was removed is not removed again: another run may begin in a cluster that takes changes, and has the
    same names. So groups that cannot be removed because they have members are left to it, too.
    """

    def tried(work: Callable[[], Any], left_by_others: Callable[[AdminError], bool]) -> str:
        try:
            work()
        except AdminError as error:
            return STAYS if left_by_others(error) else ""
        return GONE

    def until(work: Callable[[], Any], left_by_others: Callable[[AdminError], bool]) -> bool:
        last = wait_until(
            lambda: tried(work, left_by_others), TRY_SECONDS, clock, sleep, TRY_AGAIN_SECONDS
        )
        return last == GONE

    return until(topics, lambda _error: False) and until(groups, lambda error: error.reachable)


def led_in_the_end(
    give_back: Callable[[], bool],
    taken_over: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Give leadership back as soon as the cluster lets it be done; whether it was.

    `give_back()` tells whether all lead that shall: a broker that comes back is in sync with one partition after the
    other. That has to last, since a broker that has just died leads still in the eyes of others. `taken_over()`:
    whether another drill has begun; it has given leadership back, and moves it again.
    """
    # since when all lead that shall
    since: List[float] = []

    def tried() -> str:
        try:
            if taken_over():
                return STAYS
            led = give_back()
        except AdminError:
            led = False
        if not led:
            since.clear()
            return ""
        since.append(clock())
        return GONE if since[-1] - since[0] >= LASTING_SECONDS else ""

    return wait_until(tried, TRY_SECONDS, clock, sleep, TRY_AGAIN_SECONDS) == GONE


GONE, STAYS = "gone", "stays"
