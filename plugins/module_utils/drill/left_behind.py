# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drill has made in a cluster goes, however the drill's process ends, SIGKILL included.

Private to this collection. A process of its own listens to a pipe whose other end the drill has: it hears of
a good end, and the kernel closes the pipe of a drill that was killed.
"""

from __future__ import annotations

import contextlib
import os
from typing import Callable, Iterator

from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import in_background
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

LOOK_SECONDS = 1.0
DONE, KEPT = b"d", b"k"


@contextlib.contextmanager
def removed_by_another(
    remove: Callable[[], None], kept: bool, playbook_is_there: Callable[[], bool]
) -> Iterator[None]:
    """While the context is open, have a process beside this one that calls `remove` if this one dies.

    To be entered before there is any client: their threads do not survive a fork. `kept`: what was made
    outlives the context; it is removed when the playbook has ended, too.
    """
    reading, writing = os.pipe()

    def listen() -> None:
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            word = pipe.read(1)
        if word == KEPT:
            wait_until(lambda: not playbook_is_there(), float("inf"), poll_seconds=LOOK_SECONDS)
        if word != DONE:
            remove()

    in_background(listen)
    os.close(reading)
    try:
        yield
        os.write(writing, KEPT if kept else DONE)
    except Exception:
        # a drill that fails has removed it itself
        os.write(writing, DONE)
        raise
    finally:
        os.close(writing)
