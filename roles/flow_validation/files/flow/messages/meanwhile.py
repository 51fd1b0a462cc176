# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What is looked at again and again, in a thread of its own, while something else goes on."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import Callable, Iterator

_END_SECONDS = 5.0  # for the look that goes on; it may wait for a broker, or a disk


@contextmanager
def meanwhile(
    name: str, look: Callable[[], None], every: float, at_once: bool = False
) -> Iterator[None]:
    """Call `look` so many seconds after its last end, while the context is open; first of all, if `at_once`.

    What it raises is nobody's matter: the next look may succeed.
    """
    over = threading.Event()

    def again_and_again() -> None:
        pause = 0.0 if at_once else every
        while not over.wait(pause):
            with suppress(Exception):
                look()
            pause = every

    thread = threading.Thread(target=again_and_again, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_END_SECONDS)
