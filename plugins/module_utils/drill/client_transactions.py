# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, process, write: with transactions, and without; each is killed between writing and committing.

Private to this collection. Two processes of each kind: the first is killed, the second goes on.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    PLAIN,
    TRANSACTIONAL,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_copying import (
    BATCH,
    Mended,
    copied,
    copying,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Settings,
    Ticker,
    filled,
    now_ms,
    written,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_processes import (
    Pair,
    ended,
    faults,
    longest_pause_ms,
    take_over,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import Ask
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Seen,
    per_bucket,
)

RECORDS = 400
# It is killed after it has written so many batches, before it commits the last.
BATCHES = 6


class Copiers(Pair):
    """Two processes that copy from one topic to another."""

    def __init__(self, settings: Settings, source: str, target: str, kind: str):
        self.kind, self.target = kind, target
        # batches whose commit was answered, by either
        self.committed: List[int] = []
        # when, for each of their records
        self.committed_ms: List[int] = []
        self.mended = Mended()
        self._written = 0
        plain = None if kind == TRANSACTIONAL else {"enable.idempotence": True}
        super().__init__(copying(settings, source, target, plain, asks=True))

    def _commits(self, told: Tuple[int, str]) -> None:
        count, _last = told
        self.committed.append(count)
        self.committed_ms.extend([now_ms()] * count)

    def _of_first(self, what: str, told: Any = None) -> None:
        if what == "committed":
            self._commits(told)
        elif what == "written":
            self._written += 1
            if self._written >= BATCHES:
                self.kill_first()
            else:
                self.first.go_on()
        else:
            self.mended.note(what, told)

    def _of_second(self, what: str, told: Any = None) -> None:
        if what == "committed":
            self.resumed_ms = self.resumed_ms or now_ms()
            self._commits(told)
        elif what == "written":
            self.second.go_on()
        else:
            self.mended.note(what, told)


def exactly_once(
    connection: Connection,
    topic: str,
    assignment: Sequence[Sequence[int]],
    config: Mapping[str, str],
    judge: Ask,
) -> Dict[str, Any]:
    """Copy a topic twice, with transactions and without; returns what was seen.

    AdminError where nothing can be read or written.
    """
    settings = librdkafka_settings(connection)
    pairs = [Copiers(settings, topic, f"{topic}-{kind}", kind) for kind in (TRANSACTIONAL, PLAIN)]
    topics = {topic: assignment, **{each.target: assignment for each in pairs}}
    with ended(pairs), own_topics(connection, topics, config), ended(pairs):
        ticker = Ticker(settings, topic, interval=0.001)
        sent = filled(ticker, topic, RECORDS)
        # the batch that was killed before its commit is committed by the second
        unmet = "not every process has written in time"
        take_over(pairs, lambda each: sum(each.committed) >= len(sent), topic, unmet)
        found = copied(
            settings, topic, len(assignment), {each.target: each.kind for each in pairs}, ticker
        )
        answers = judge([written(topic, ticker), *found.written])
    return Seen(
        sent=len(ticker.sent),
        acknowledged=len(sent),
        refused=dict(ticker.refused),
        pause_ms=longest_pause_ms(pairs),
        groups=found.groups,
        timeline={
            **per_bucket(at_ms for each in pairs for at_ms in each.committed_ms),
            "of": "Records that were copied and committed,",
        },
        measured={
            "kinds": [each.kind for each in pairs],
            "errors": [each.mended.told() for each in pairs],
            "aborted": found.aborted,
            "batch": BATCH,
            **faults(pairs),
        },
        judged=answers,
    ).to_dict()
