# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting until a cluster has been as it should be for a while, with one client for as long as it lives.

Private to this collection. Clock and sleep are handed in.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Callable, List, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin import health
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress

if TYPE_CHECKING:
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
        KafkaClient,
    )
    from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Snapshot

POLL_SECONDS = 0.25
# Brokers are asked for their log directories after so many looks in vain, and again after so many more: most are just
# catching up.
DIRECTORIES_AFTER, DIRECTORIES_EVERY = 20, 40
# Between two lines of progress in the log.
TELL_SECONDS = 5.0
# A look that takes so much longer than the quickest one that found nothing leaves a hole in the quiet time: who was
# asked has hung, and what came and went meanwhile nobody has seen.
HOLE_SECONDS = 1.0

# Each asks the cluster and says, in sentences, what is not as it should be.
Look = Callable[["KafkaClient"], List[str]]
# What has been waited for in vain, and for how many seconds.
Failed = Callable[[Sequence[str], float], Problem]


@dataclass(frozen=True)
class Waited:
    """How long it took, and how often was asked."""

    seconds: float
    polls: int


class FailedDirectories:
    """Log directories that take nothing, of brokers whose replicas are not in sync.

    Partitions tell who is behind, and not why. `problems` has what was told last.
    """

    def __init__(self) -> None:
        self.problems: List[Problem] = []
        self._looks = 0

    def look(self, client: KafkaClient, snapshot: Snapshot) -> None:
        """Ask the brokers that are behind in `snapshot`."""
        places = [(each.host, each.port) for each in snapshot.brokers]
        found = client.fetch_directories(health.not_in_sync(snapshot), places)
        self.problems = health.bad_directories(found)

    def told_with(
        self, reasons: List[str], client: KafkaClient, snapshot: Optional[Snapshot]
    ) -> List[str]:
        """Why a look was in vain, with what is wrong with directories; asked for now and then."""
        if not reasons or snapshot is None:
            return reasons
        self._looks += 1
        if self._looks % DIRECTORIES_EVERY == DIRECTORIES_AFTER:
            self.look(client, snapshot)
        return [*reasons, *(f"{each.subjects[0]}: {each.reason}" for each in self.problems)]

    def with_remedies(self, problem: Problem) -> Problem:
        """What was waited for in vain, with the remedies for the directories."""
        more = [f"{each.subjects[0]}: {each.remedy}" for each in self.problems]
        return replace(problem, remedy="; ".join([problem.remedy, *more]))


def until_quiet(
    make_client: Callable[[], KafkaClient],
    look: Look,
    confirm: Look,
    failed: Failed,
    quiet_seconds: float = 0.0,
    timeout: float = 120.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    log: Callable[[str], None] = lambda text: None,
    left: Callable[[], Optional[int]] = lambda: None,
    begins: Look = lambda client: [],
) -> Waited:
    """Return once `look` found nothing at every poll of `quiet_seconds`, and then `confirm` nothing.

    One broker is asked at each look, and one that has just gone on after it hung tells what was so before. So the
    quiet time begins when `begins` finds nothing, either, which asks all of them; and anew after a look that hung.

    `make_client()` gives a new, unconnected client: what does not answer is waited for, too, and a
    lost connection is made anew. Wrong credentials and protocols end the waiting, and a FinalError of
    `look` or `confirm`. What `confirm` finds starts the quiet time anew. At the deadline the AdminError
    is `failed(reasons, seconds)` with what was found last.

    The deadline is `timeout` after the last progress: replicas that join one after another for half an
    hour are not a failure. `left()` says how much the last look has left to do, None if it cannot tell;
    progress is less than ever before, so that what comes and goes does not count.
    """
    started = clock()
    deadline = started + timeout
    least: Optional[int] = None
    client: Optional[KafkaClient] = None
    met_since: Optional[float] = None
    quickest = math.inf
    polls = 0
    progress = Progress(log, clock, TELL_SECONDS)
    try:
        while True:
            polls += 1
            try:
                if client is None:
                    fresh = make_client()
                    fresh.connect()
                    client = fresh
                looked = clock()
                reasons = look(client)
                took = clock() - looked
                if not reasons:
                    # One that finds something early has less to ask.
                    quickest = min(quickest, took)
                if reasons or took > quickest + HOLE_SECONDS:
                    met_since = None
                if not reasons and met_since is None:
                    met = clock()
                    reasons = begins(client) if quiet_seconds else []
                    met_since = None if reasons else met
            except AdminError as error:
                if error.final or (client is None and error.reachable):
                    raise  # wrong credentials do not become right by waiting
                _close(client)
                client, reasons, met_since = None, [told(error)], None
            now = clock()
            rest = None if client is None else left()
            if rest is not None and (least is None or rest < least):
                # The first look is not progress yet.
                deadline = deadline if least is None else now + timeout
                least = rest
            if client is not None and met_since is not None:
                if now - met_since >= quiet_seconds:
                    try:
                        reasons = confirm(client)
                    except AdminError as error:
                        if error.final:
                            raise
                        _close(client)
                        client, reasons = None, [told(error)]
                    now = clock()
                    if not reasons:
                        return Waited(round(now - started, 2), polls)
                    met_since = None
            if now >= deadline:
                if not reasons and met_since is not None:
                    reasons = [
                        f"the state has been good for {now - met_since:.1f} s only, "
                        f"{quiet_seconds:g} s were asked for"
                    ]
                raise AdminError(failed(reasons, now - started), reachable=client is not None)
            said = "; ".join(reasons) or "quiet so far"
            progress.tell(f"waiting for {now - started:.0f} s: {said}")
            sleep(POLL_SECONDS)
    finally:
        _close(client)


def told(error: AdminError) -> str:
    """What an answer that failed says, among reasons."""
    return f"{', '.join(error.problem.subjects)}: {error.problem.reason}"


def _close(client: Optional[KafkaClient]) -> None:
    if client is not None:
        client.close()
