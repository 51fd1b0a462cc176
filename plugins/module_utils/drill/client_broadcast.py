# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A topic that several groups read at the same time: each gets all of it.

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
    longest_pause_ms,
    per_bucket,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

RECORDS, INTERVAL_SECONDS = 500, 0.02
# Numbers of the records until all groups read: how long a group takes to begin is not a delay of delivery.
BEGUN_FROM = 1000000


def broadcast(
    connection: Connection,
    topic: str,
    assignment: Sequence[Sequence[int]],
    config: Mapping[str, str],
    groups: Sequence[str],
    judge: Ask,
) -> Dict[str, Any]:
    """Write records that each group reads; returns what was seen. AdminError where nothing can be read."""
    settings = librdkafka_settings(connection)
    with own_topics(connection, {topic: assignment}, config):
        readers = [Reader(settings, topic, group) for group in groups]
        try:
            first = _begun(settings, topic, readers)
            ticker = Ticker(settings, topic, interval=INTERVAL_SECONDS)
            wait_until(lambda: len(ticker.acknowledged) >= RECORDS, 2 * ANSWER_SECONDS)
            ticker.stop()
            sent = ticker.sent_and_acknowledged
            wait_until(lambda: all(each.has(sent) for each in readers), ANSWER_SECONDS)
        finally:
            for each in readers:
                each.close()
        came = {
            each.group: [pair for pair in each.came if pair[0] not in first.sent]
            for each in readers
        }
        seen = groups_seen(settings, topic, len(assignment), sent, came)
        answers = judge([written(topic, first, ticker)])
    return Seen(
        sent=len(ticker.sent),
        acknowledged=len(sent),
        refused=dict(ticker.refused),
        pause_ms=longest_pause_ms(ticker.acknowledged.values()),
        groups=seen,
        timeline=per_bucket(ticker.acknowledged.values()),
        judged=answers,
    ).to_dict()


def _begun(settings: Settings, topic: str, readers: Sequence[Reader]) -> Ticker:
    """Write until each group reads; returns what has written."""
    ticker = Ticker(settings, topic, interval=0.2, first=BEGUN_FROM)
    reading = wait_until(lambda: all(each.came for each in readers), 2 * ANSWER_SECONDS)
    ticker.stop()
    if not reading:
        raise failed(topic, "not every group has read in time")
    return ticker
