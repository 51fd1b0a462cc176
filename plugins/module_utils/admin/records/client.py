# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RecordsClient: KafkaClient, and the deletion of records.

Private to this collection. librdkafka sends one request to each leader, for all of its partitions.
"""

from __future__ import annotations

from typing import Collection, Dict, Mapping, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.connection import (
    POLL_SECONDS,
    error_of,
    passing_codes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
    BATCH,
    KafkaClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    TIMEOUT_MAX_SECONDS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key

try:
    from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

DELETE_RIGHTS = "Delete on the topic"


class RecordsClient(KafkaClient):
    """One cluster, whose records are deleted."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return int(self._wall_clock() * 1000)

    def fetch_topic_ids(self, names: Collection[str]) -> Dict[str, str]:
        """The ids of topics; those that do not exist are left out. One request."""
        if not names:
            return {}

        def call(timeout: float) -> Dict[str, str]:
            self.requests["topic_ids"] += 1
            futures = self._admin.describe_topics(
                TopicCollection(sorted(names)), request_timeout=timeout
            )
            self._await(futures.values())
            found = {}
            for name, future in futures.items():
                error = error_of(future)
                if error is None:
                    found[name] = str(future.result().topic_id)
                elif error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise KafkaException(error)
            return found

        return self._read("reading ids of topics", call)

    def delete_records(
        self, offsets: Mapping[Key, int], deadline: float
    ) -> Dict[Key, Tuple[str, str]]:
        """Delete the records before an offset of each partition; what was refused, with text and code."""
        refused: Dict[Key, Tuple[str, str]] = {}
        waiting = sorted(offsets)
        for begin in range(0, len(waiting), BATCH):
            pending = waiting[begin : begin + BATCH]
            while pending:
                self.requests["delete_records"] += 1
                timeout = min(TIMEOUT_MAX_SECONDS, max(1.0, deadline - self._clock()))
                futures = self._admin.delete_records(
                    [TopicPartition(*key, offsets[key]) for key in pending],
                    request_timeout=timeout,
                    operation_timeout=max(0.5, timeout - 1),
                )
                self._await(futures.values())
                again = []
                for part, future in futures.items():
                    key, error = (part.topic, part.partition), error_of(future)
                    if error is None:
                        continue
                    if error.code() in passing_codes() and self._clock() < deadline:
                        again.append(key)
                        continue
                    text = self._explained(error)
                    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                        text = f"{text}; the user needs {DELETE_RIGHTS}"
                    refused[key] = (text, error.name())
                pending = again
                if pending:
                    self._sleep(POLL_SECONDS)
        return refused
