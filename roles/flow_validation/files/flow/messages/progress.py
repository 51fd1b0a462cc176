# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""How far a long step is: a file for whoever waits for the job, and lines for who sits before it.

OUTPUT/progress.json is there while a step runs, and replaced about once a second:
{"step": "written", "records": 3400000, "of": 10000000, "seconds": 7.1, "line": "written ..."}
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Callable, Iterator

from flow.messages.meanwhile import meanwhile
from flow.messages.output import note, remove, write_json

NAME = "progress.json"
EVERY_SECONDS = 1.0
LINES_SECONDS = 10.0


@dataclass(frozen=True)
class Progress:
    """One moment of a step."""

    step: str  # written, read
    records: int
    of: int
    seconds: float

    def line(self) -> str:
        """For people: how far, how fast, how long it will take at that pace."""
        text = f"{self.step} {self.records:,} of {self.of:,} records"
        rate = self.records / self.seconds if self.seconds > 0 else 0
        if not rate:
            return text
        left = (self.of - self.records) / rate
        return f"{text}, {rate:,.0f}/s, about {_duration(left)} left"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def following(directory: str, step: str, of: int, count: Callable[[], int]) -> Iterator[None]:
    """Say how far the body of the `with` is; `count` returns the records so far, from any thread.

    `directory`: where the file goes, "" for none. What cannot be counted or written is not worth
    failing for: the step goes on unwatched.
    """

    def moment(seconds: float) -> dict:
        now = Progress(step, min(count(), of), of, seconds)
        return {**asdict(now), "line": now.line()}

    with _told(directory, moment):
        yield


@contextmanager
def waiting(directory: str, step: str, what: Callable[[], str]) -> Iterator[None]:
    """The same of a body that counts nothing: `what` says in words what it waits for."""

    def moment(seconds: float) -> dict:
        line = f"{what()}, for {_duration(seconds)}"
        return {"step": step, "records": 0, "of": 0, "seconds": seconds, "line": line}

    with _told(directory, moment):
        yield


@contextmanager
def _told(directory: str, moment: Callable[[float], dict]) -> Iterator[None]:
    """Tell what `moment`, seconds since the beginning -> content of the file, says meanwhile."""
    path = os.path.join(directory, NAME) if directory else ""
    began = told = time.monotonic()

    def look() -> None:
        nonlocal told
        now = time.monotonic()
        found = moment(round(now - began, 1))
        if path:
            write_json(path, found)
        if sys.stderr is not None and sys.stderr.isatty() and now - told >= LINES_SECONDS:
            told = now
            note(found["line"])

    try:
        with meanwhile("progress", look, EVERY_SECONDS):
            yield
    finally:
        if path:
            with suppress(OSError):
                remove(path)


def tasks_done(spark, of: int) -> Callable[[], int]:
    """A count for a Spark job that reads `of` records: by the share of its tasks that are done.

    Spark tells tasks and not records; a partition is a task, so this moves in steps. It never
    falls, though Spark plans the rest anew after each stage.
    """
    tracker = spark.sparkContext.statusTracker()
    most = 0

    def count() -> int:
        nonlocal most
        total = done = 0
        for job in tracker.getActiveJobsIds():
            known = tracker.getJobInfo(job)  # None: it ended a moment ago
            for stage in known.stageIds if known else ():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    total, done = total + info.numTasks, done + info.numCompletedTasks
        most = max(most, of * done // total if total else 0)
        return most

    return count
