# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets a follower hang and go on several times, and asks the gate meanwhile whether another broker may stop.

Private to this collection. Only on a cluster that is thrown away: a broker that hangs is none while it does.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Dict, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
    KafkaClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.rolling.gatekeeper import (
    Gatekeeper,
    Question,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import PREFIX
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Reader,
    Ticker,
    Watch,
    now_ms,
    written,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_there import (
    groups_seen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_throwaway import (
    RETURN_SECONDS,
    brokers_stopped,
    seen_or_why,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    failed,
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.guarantees_flaps import (
    FLAPS,
    QUIET_SECONDS,
    TIMES,
    row_of_flaps,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import Ask
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Seen,
    longest_since,
    pauses,
    per_bucket,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.throwaway import (
    BROKERS,
    marked,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import row_kept
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

TOPIC = f"{PREFIX}{FLAPS.replace('_', '-')}"
ENOUGH = 20


class Asked(threading.Thread):
    """Asks the gate whether a broker may stop, as a rolling playbook does, until it says so or gives up."""

    def __init__(self, connection: Connection, broker: int, seconds: float):
        super().__init__(daemon=True)
        self.passed_ms: Optional[int] = None
        self.waited_seconds = 0.0
        self.reason = ""
        self._connection = connection
        self._question = Question(
            (broker,), BROKERS, quiet_seconds=QUIET_SECONDS, wait_seconds=seconds
        )

    def run(self) -> None:
        try:
            passed = Gatekeeper(self._question).wait(lambda: KafkaClient(self._connection))
        except AdminError as error:
            self.reason = error.message
        else:
            self.passed_ms, self.waited_seconds = now_ms(), passed.waited_seconds


def measured_flaps_row(connection: Connection, home: str, judge: Ask) -> Dict[str, Any]:
    """{row, seen} of the row of the table; what could not be measured is a row that says why."""
    seen, why = seen_or_why(lambda: flaps(connection, home, judge))
    row = row_of_flaps(seen, BROKERS, why)
    return {"row": row_kept(row, seen), "changed": True}


def flaps(connection: Connection, home: str, judge: Ask) -> Seen:
    """Let a follower flap; returns what was seen. AdminError where nothing can be seen."""
    if not marked(home):
        raise failed(home, "no drill has made a cluster there")
    settings = librdkafka_settings(connection)
    with own_topics(connection, {}, {}) as client:
        controller = client.fetch_metadata().controller
    follower = next(each for each in reversed(BROKERS) if each != controller)
    others = [each for each in BROKERS if each != follower]
    with contextlib.ExitStack() as made:
        replicas = (*others, follower)
        made.enter_context(
            own_topics(connection, {TOPIC: (replicas,)}, {"min.insync.replicas": "2"})
        )
        watch = Watch(settings, TOPIC)
        made.callback(watch.stop)
        reader = Reader(settings, TOPIC, TOPIC)
        made.callback(reader.close)
        ticker = Ticker(settings, TOPIC)
        made.callback(ticker.stop)
        if not wait_until(lambda: len(reader.came) > ENOUGH and _whole(watch), 2 * ANSWER_SECONDS):
            raise failed(TOPIC, "no record came through in time")
        at_ms = now_ms()
        asked = Asked(connection, others[0], 2 * TIMES * RETURN_SECONDS)
        for number in range(TIMES):
            _hang(home, follower, watch)
            if not number:
                asked.start()
        ended_ms = now_ms()
        asked.join(2 * TIMES * RETURN_SECONDS)
        ticker.stop()
        sent = ticker.sent_and_acknowledged
        wait_until(lambda: reader.has(sent), ANSWER_SECONDS)
        reader.close()
        watch.stop()
        return Seen(
            sent=len(ticker.sent),
            acknowledged=len(sent),
            refused=dict(ticker.refused),
            pause_ms=longest_since(pauses(ticker.acknowledged.values(), ticker.ended_ms), at_ms),
            groups=groups_seen(settings, TOPIC, 1, sent, {TOPIC: list(reader.came)}),
            moments=tuple(watch.moments),
            timeline=per_bucket(ticker.acknowledged.values()),
            measured={
                "follower": follower,
                "asked_for": others[0],
                "passed_ms": asked.passed_ms,
                "waited_seconds": asked.waited_seconds,
                "reason": asked.reason,
                "at_ms": at_ms,
                "ended_ms": ended_ms - at_ms,
            },
            judged=judge([written(TOPIC, ticker)]),
        )


def _hang(home: str, follower: int, watch: Watch) -> None:
    """Let it hang until it is out of the ISR, and go on until it is back."""
    with brokers_stopped(home, [follower]):
        if not wait_until(lambda: not _whole(watch), RETURN_SECONDS):
            raise failed(f"broker {follower}", "it hangs, and stays in the ISR")
    if not wait_until(lambda: _whole(watch), RETURN_SECONDS):
        raise failed(f"broker {follower}", "it goes on, and is not back in the ISR")


def _whole(watch: Watch) -> bool:
    moments: Sequence[Any] = watch.moments
    return bool(moments) and moments[-1].isr == frozenset(BROKERS)
