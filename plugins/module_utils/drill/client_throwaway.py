# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be done to the brokers of a cluster that is thrown away: hang, kill, take the disk away.

Private to this collection. supervisord starts again what ends, so it hangs meanwhile, too. No rights are needed.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
from typing import Callable, ContextManager, Iterator, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import now_ms
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    failed,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import Seen
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.throwaway import (
    data_dir,
    state_dir,
    supervisor_pid,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import (
    recorded,
    start_ticks,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

# Brokers that all begin anew take long on a machine that has much else to do.
RETURN_SECONDS = 8 * ANSWER_SECONDS
# A broker looks at its directory when it writes its checkpoints, or a record.
DISK_SECONDS = 2 * ANSWER_SECONDS


def seen_or_why(measure: Callable[[], Seen]) -> Tuple[Optional[Seen], str]:
    """(what was seen, ""), or (None, why not). A row that nobody has foreseen the error of costs no other row."""
    try:
        return measure(), ""
    except AdminError as error:
        return None, str(error)
    except Exception as error:  # pylint: disable=broad-except  # the row tells it
        return None, f"{type(error).__name__}: {error}"


def supervisor_stopped(home: str) -> ContextManager[None]:
    """Nothing is started again while the context is open."""
    return _stopped([supervisor_pid(home)])


def brokers_stopped(home: str, brokers: Sequence[int]) -> ContextManager[None]:
    """Brokers stand still (SIGSTOP) while the context is open."""
    return _stopped([_pid(home, each) for each in brokers])


def kill(home: str, brokers: Sequence[int]) -> int:
    """Kill brokers; returns when. They are gone then."""
    at_ms = now_ms()
    for pid in [_pid(home, each) for each in brokers]:
        os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: all(recorded(state_dir(home, each)) is None for each in brokers), ANSWER_SECONDS
    )
    return at_ms


def end_without_directory(home: str, broker: int) -> int:
    """Remove a broker's log directory under it; returns when, once the broker has ended by itself."""
    data, at_ms = data_dir(home, broker), now_ms()
    gone = f"{data}-gone"
    os.rename(data, gone)
    _ended(home, broker)
    shutil.rmtree(gone)
    return at_ms


def end_without_room(home: str, broker: int) -> int:
    """Let a broker write no more bytes into files; returns when, once it has ended by itself.

    The limit is of the process alone, and the next one has none of it.
    """
    pid, at_ms = _pid(home, broker), now_ms()
    _soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    _ended(home, broker)
    return at_ms


def _ended(home: str, broker: int) -> None:
    if not wait_until(lambda: recorded(state_dir(home, broker)) is None, DISK_SECONDS):
        raise failed(f"broker {broker}", "it goes on without its log directory")


@contextlib.contextmanager
def _stopped(pids: Sequence[int]) -> Iterator[None]:
    """Processes stand still (SIGSTOP) while the context is open."""
    ticks = {pid: start_ticks(pid) for pid in pids}
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            if start_ticks(pid) == ticks[pid]:
                os.kill(pid, signal.SIGCONT)


def _pid(home: str, broker: int) -> int:
    process = recorded(state_dir(home, broker))
    if process is None:
        raise failed(f"broker {broker} of the drill's cluster", "it does not run")
    return process.pid
