# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A topic that is deleted and made anew: under a group that reads, and one that is away meanwhile.

Private to this collection.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Reader,
    Settings,
    Ticker,
    now_ms,
    written,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_there import (
    groups_seen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    failed,
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import Ask
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Seen,
    group_seen,
    per_bucket,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

# The new topic gets more records than the old one had: what a group remembers lies within it.
OLD_RECORDS, NEW_RECORDS = 40, 100
# Numbers of the new topic's records begin here.
NEW_FROM = 1000000


def recreate(
    connection: Connection,
    topic: str,
    assignment: Sequence[Sequence[int]],
    config: Mapping[str, str],
    groups: Sequence[str],
    judge: Ask,
) -> Dict[str, Any]:
    """Delete the topic and make it anew; returns what was seen. AdminError where nothing can be written."""
    reading, away = groups
    settings = librdkafka_settings(connection)
    with own_topics(connection, {topic: assignment}, config) as client:
        reader, other = Reader(settings, topic, reading), Reader(settings, topic, away)
        try:
            before = _wrote(settings, topic, OLD_RECORDS, 0)
            old = before.sent_and_acknowledged
            if not wait_until(lambda: reader.has(old) and other.has(old), ANSWER_SECONDS):
                raise failed(topic, "what was written was not read in time")
            other.close()
            at_ms = now_ms()
            client.remove_topics([topic])
            client.make(topic, assignment, config)
            made_ms = now_ms()
            ticker = _wrote(settings, topic, NEW_RECORDS, NEW_FROM)
            new = ticker.sent_and_acknowledged
            other = Reader(settings, topic, away)
            wait_until(lambda: other.has(new), ANSWER_SECONDS)
            wait_until(lambda: reader.has(new), ANSWER_SECONDS / 2)
            # of the old topic nothing may be there
            answers = judge([written(topic, ticker)])
        finally:
            reader.close()
            other.close()
        kept = groups_seen(settings, topic, len(assignment), new, {away: _new(other)})
    missed = len(group_seen(reading, new, _new(reader)).missing)
    return Seen(
        sent=len(before.sent) + len(ticker.sent),
        acknowledged=len(new),
        refused=before.refused + ticker.refused,
        groups=kept,
        notes=(f"the group that went on reading missed {missed} of {len(new)}",),
        timeline=per_bucket([*old.values(), *new.values()]),
        measured={"at_ms": at_ms, "ended_ms": made_ms - at_ms},
        judged=answers,
    ).to_dict()


def _new(reader: Reader) -> Any:
    return [(record, at_ms) for record, at_ms in reader.came if int(record) >= NEW_FROM]


def _wrote(settings: Settings, topic: str, count: int, first: int) -> Ticker:
    """Write so many records; returns what has written them. AdminError where it takes too long."""
    ticker = Ticker(settings, topic, interval=0.02, first=first)
    wait_until(lambda: len(ticker.acknowledged) >= count, ANSWER_SECONDS)
    ticker.stop()
    if len(ticker.acknowledged) < count:
        raise failed(
            topic, f"{len(ticker.acknowledged)} of {count} records were acknowledged in time"
        )
    return ticker
