# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of a drill's own, which can be killed as a client can; what they tell comes by a pipe.

Private to this collection. They are forked before there is any client: librdkafka's threads do not
survive a fork. A pair of them: the first is killed in the midst of its work, and the second takes it over.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, TypeVar

from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    SESSION_SECONDS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import now_ms
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    failed,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

GO = "go"


@dataclass(frozen=True)
class Trouble:
    """What has ended a process."""

    text: str

    @classmethod
    def of(cls, error: Exception) -> Trouble:
        """The Trouble of what a process has raised."""
        return cls(f"{type(error).__name__}: {error}")


class Inside:
    """What a process can do: tell, ask, and see whether it shall go on."""

    def __init__(self, pipe: Any, over: threading.Event, parent: int):
        self._pipe, self._over, self._parent = pipe, over, parent

    def going(self) -> bool:
        """Whether nobody has ended it, and its parent is there."""
        return not self._over.is_set() and os.getppid() == self._parent

    def pause(self, seconds: float) -> None:
        """Be at work for a while."""
        self._over.wait(seconds)

    def tell(self, *words: Any) -> None:
        """Tell the parent something."""
        self._pipe.send(words)

    def ask(self, *words: Any) -> None:
        """Tell the parent something, and go on when it says so."""
        self.tell(*words)
        while self.going() and not self._pipe.poll(0.2):
            continue
        if self.going():
            self._pipe.recv()

    def waits(self) -> bool:
        """Wait for the word to begin; false where it was ended before."""
        while self.going():
            if self._pipe.poll(0.5):
                self._pipe.recv()
                return True
        return False


class Process:
    """A forked process. It waits until `begin`, then runs `body`; `heard` gets each thing that it tells.

    `trouble`: what has ended it, other than a signal; empty where nothing has.
    """

    def __init__(self, body: Callable[[Inside], None], heard: Callable[..., None]):
        context = multiprocessing.get_context("fork")
        self._heard = heard
        self.trouble = ""
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(theirs, body), daemon=True)
        self._process.start()
        theirs.close()

    def begin(self) -> None:
        """Let it do its work."""
        self.go_on()
        threading.Thread(target=self._listen, daemon=True).start()

    def go_on(self) -> None:
        """Answer what it has asked."""
        with contextlib.suppress(OSError):
            self._pipe.send(GO)

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                told = self._pipe.recv()
                if isinstance(told, Trouble):
                    self.trouble = told.text
                else:
                    self._heard(*told)

    def kill(self) -> None:
        """Send SIGKILL; `end` waits until it is gone."""
        if self._process.pid and self._process.is_alive():
            os.kill(self._process.pid, signal.SIGKILL)

    def end(self, kill: bool) -> int:
        """Kill it, or let it come to its end; returns when that began."""
        at_ms = now_ms()
        if kill:
            self.kill()
        elif self._process.pid and self._process.is_alive():
            os.kill(self._process.pid, signal.SIGTERM)
        self._process.join(ANSWER_SECONDS)
        return at_ms


class Pair:
    """Two processes with the same work. `killed_ms`: when the first was killed; `resumed_ms`: when the second
    had done something.
    """

    def __init__(self, body: Callable[[Inside], None]):
        self.killed_ms = 0
        self.resumed_ms = 0
        self.first, self.second = Process(body, self._of_first), Process(body, self._of_second)

    def _of_first(self, what: str, told: Any = None) -> None:
        """Hear the first one; kill it when it has done enough."""
        raise NotImplementedError

    def _of_second(self, what: str, told: Any = None) -> None:
        """Hear the second one."""
        raise NotImplementedError

    @property
    def trouble(self) -> str:
        """What has ended one of them, other than a signal; empty where nothing has."""
        return self.first.trouble or self.second.trouble

    def kill_first(self) -> None:
        """Kill it, and note when."""
        self.killed_ms = self.killed_ms or now_ms()
        self.first.kill()


P = TypeVar("P", bound=Pair)


def take_over(pairs: Sequence[P], whole: Callable[[P], bool], topic: str, unmet: str) -> None:
    """Let the first of each pair work and be killed, and the second go on until the work is `whole`.

    AdminError with the words `unmet` where a first one has not worked in time, and where one has ended by itself.
    """

    def wait(done: Callable[[P], bool], seconds: float) -> bool:
        wait_until(lambda: any(map(trouble, pairs)) or all(map(done, pairs)), seconds)
        for text in filter(None, map(trouble, pairs)):
            raise failed(topic, f"a process has ended: {text}")
        return all(map(done, pairs))

    def trouble(pair: P) -> str:
        return pair.trouble

    for pair in pairs:
        pair.first.begin()
    if not wait(lambda each: bool(each.killed_ms), 2 * ANSWER_SECONDS):
        raise failed(topic, unmet)
    for pair in pairs:
        pair.second.begin()
    wait(whole, SESSION_SECONDS + 2 * ANSWER_SECONDS)
    for pair in pairs:
        pair.second.end(kill=False)


@contextlib.contextmanager
def ended(pairs: Sequence[Pair]) -> Iterator[None]:
    """Whatever comes, no process is left: a group with members cannot be removed."""
    with all_ended([each for pair in pairs for each in (pair.first, pair.second)]):
        yield


@contextlib.contextmanager
def all_ended(processes: Sequence[Process]) -> Iterator[None]:
    """Whatever comes, none of these is left."""
    try:
        yield
    finally:
        for each in processes:
            each.end(kill=True)


def longest_pause_ms(pairs: Sequence[Pair]) -> Optional[int]:
    """The longest time from a kill until somebody went on; None where nobody did."""
    pauses = [each.resumed_ms - each.killed_ms for each in pairs if each.resumed_ms]
    return max(pauses, default=None)


def faults(pairs: Sequence[Pair]) -> Dict[str, int]:
    """When the first process was killed (`at_ms`), and after how long all went on (`ended_ms`)."""
    at_ms = min((each.killed_ms for each in pairs if each.killed_ms), default=0)
    end_ms = max((each.resumed_ms for each in pairs), default=0)
    return {"at_ms": at_ms, "ended_ms": max(0, end_ms - at_ms)}


def _run(pipe: Any, body: Callable[[Inside], None]) -> None:
    """The process. It ends with SIGTERM, or when its parent is gone; never returns."""
    parent, over = os.getppid(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_signal: over.set())
    inside = Inside(pipe, over, parent)
    try:
        if inside.waits():
            body(inside)
    except Exception as error:  # pylint: disable=broad-except  # the parent tells it
        # where it is there
        with contextlib.suppress(OSError):
            pipe.send(Trouble.of(error))
    finally:
        os._exit(0)
