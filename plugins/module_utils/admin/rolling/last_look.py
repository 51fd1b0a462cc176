# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stop behind a gate: it is asked once more right before, and what has changed is waited for.

The same for a broker (`gatekeeper`) and for a ZooKeeper server (`ensemble_gate`). Private to this collection.
"""

from __future__ import annotations

import time
from typing import Callable, ContextManager, List, Optional, Tuple, TypeVar

from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import ProblemError

# Why it may not stop now, nothing where it may: one look.
Look = Callable[[], List[str]]
AtHand = Callable[[], ContextManager[Look]]
T = TypeVar("T")


def until_stopped(
    attempt: Callable[[AtHand], Tuple[T, List[str]]],
    at_hand: AtHand,
    wait: Callable[[], object],
    in_vain: Callable[[List[str]], ProblemError],
    wait_seconds: float,
    log: Callable[[str], None] = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """What `attempt` returns of the stop; ProblemError if it may not be stopped.

    `attempt(at_hand)` takes a last look with the context that `at_hand()` makes, right before the stop, and
    returns its result with why it was not made. Then `wait()` waits as the gate does, or raises; what changes each
    time at that moment ends with `in_vain(reasons)` after `wait_seconds`.
    """
    began: Optional[float] = None
    while True:
        result, reasons = attempt(at_hand)
        if not reasons:
            return result
        log(f"it may not stop any more: {'; '.join(reasons)}")
        began = clock() if began is None else began
        if clock() - began >= wait_seconds:
            raise in_vain(reasons)
        wait()
