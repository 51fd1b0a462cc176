# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""SIGTERM, Ctrl-C, a terminal that goes, and a limit of time: the run ends within seconds, in order.

What waits for brokers or for Spark in another thread looks at `requested`, so that nobody waits for it.
"""

from __future__ import annotations

import logging
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Callable, Iterator, Optional

from flow.messages.failure import LIMIT, Stopped

requested = threading.Event()
_by: list = []  # the signal's name
_handler: list = []
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
# Those of _SIGNALS that nobody has told this process to ignore, as nohup does with SIGHUP.
_taken: list = []
_concluded: list = []  # the exit code of a verdict that is written
_closed = threading.Event()  # all has been said


def listen(halt: Callable[[], None], limit: float = 0) -> None:
    """From here on each signal calls `halt`, which ends what others would wait for, and raises
    Stopped in the main thread, before `close`. A second one has its usual effect. limit: seconds after
    which it is the same as with a signal, 0 for none.
    """
    _closed.clear()
    _concluded.clear()
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    _taken[:] = [each for each in _SIGNALS if not (ignored and each == signal.SIGHUP)]

    def stop(number: int, _frame: object) -> None:
        for each in _taken:
            signal.signal(each, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _by.append(LIMIT if number == signal.SIGALRM else signal.Signals(number).name)
        requested.set()
        logging.disable()  # py4j logs the traceback of whatever it was waiting for
        halt()
        if not _closed.is_set():
            check()

    _handler[:] = [stop]
    listen_again()
    signal.setitimer(signal.ITIMER_REAL, limit)


def conclude(code: int) -> None:
    """The verdict is written, so that a signal does not change this exit code any more."""
    _concluded[:] = [code]


def concluded() -> Optional[int]:
    """The exit code of the verdict that was written before the run was to end; None if there is none."""
    return _concluded[0] if _concluded and requested.is_set() else None


def close() -> None:
    """The outcome is known and told: from here on a signal hurries what is left to do, and raises nothing."""
    _closed.set()
    signal.setitimer(signal.ITIMER_REAL, 0)


def interrupted() -> None:
    """Whoever had taken Ctrl-C made KeyboardInterrupt of it: what `listen` makes of it happens now."""
    if _handler and not requested.is_set():
        _handler[0](signal.SIGINT, None)
    check()


def listen_again() -> None:
    """Take the signals back from whoever has taken them since `listen`, as PySpark does; without it,
    nothing happens.
    """
    for each in _taken if _handler else ():
        signal.signal(each, _handler[0])


def check() -> None:
    """Raise Stopped if the run is to end: whoever goes on after an exception asks, since libraries make
    exceptions of their own of it.
    """
    if requested.is_set():
        raise Stopped(_signal_name())


def stopped() -> Optional[Stopped]:
    """What `check` raises; None if the run goes on."""
    return Stopped(_signal_name()) if requested.is_set() else None


def _signal_name() -> str:
    return _by[0] if _by else "a signal"


@contextmanager
def threads(number: int) -> Iterator[ThreadPoolExecutor]:
    """A pool that nobody waits for where the body ends by an exception."""
    pool = ThreadPoolExecutor(number)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
