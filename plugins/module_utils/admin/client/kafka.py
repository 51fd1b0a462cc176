# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing a cluster: topics, settings of brokers, leaders. `KafkaClient` is the whole client.

Private to this collection. Four classes, each inherits from the one before it: `ClusterConnection`
reaches a cluster, `OffsetsClient` knows what its partitions hold, `ReadingClient` reads the rest, and
`KafkaClient` changes it. Writes go out in batches of
BATCH, many of them on several connections; `requests` counts what is sent, and a test watches.
"""

from __future__ import annotations

import concurrent.futures
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.connection import (
    POLL_SECONDS,
    denied_codes,
    error_of,
    passing,
    passing_codes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.lanes import lanes_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.reading import (
    OTHER_SECONDS,
    ReadingClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    TIMEOUT_MAX_SECONDS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    CONFIGURE,
    CREATE,
    DELETE,
    GROW,
    Key,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
)

try:
    from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
    from confluent_kafka.admin import (
        AlterConfigOpType,
        ConfigResource,
        NewPartitions,
        NewTopic,
    )
    from confluent_kafka.admin import ConfigEntry as AlteredEntry
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

# Kafka's KRaft controllers take at most 10,000 records in one request; a topic of 12 partitions
# is 13 of them.
BATCH = 500
# What a user needs for a change of each kind.
_RIGHTS = {
    CREATE: "Create on the topic or on the cluster; or Describe on the topic, if it is there already",
    GROW: "Alter on the topic",
    CONFIGURE: "AlterConfigs on the topic",
    DELETE: "Delete on the topic",
}
# Changes that are worth a connection of their own.
LANE_LEAST = 50


class KafkaClient(ReadingClient):
    """One cluster. Use `connect()` first: it tells unreachable from wrong credentials."""

    # ------------------------------------------------------------ topics

    def validate(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Ask the brokers whether they would do it, without doing it: a list of Failure.

        Deletions have no such question in the protocol.
        """
        return self._run(changes, deadline, validate_only=True)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Apply changes in their order; the rest goes on where one fails. A list of Failure."""
        return self._run(changes, deadline, validate_only=False)

    def _run(
        self, changes: Sequence[Change], deadline: float, validate_only: bool
    ) -> List[Failure]:
        failures: List[Failure] = []
        for kind in (CREATE, GROW, CONFIGURE, DELETE):
            if kind == DELETE and validate_only:
                continue
            chosen = [change for change in changes if change.kind == kind]
            lanes = lanes_of(chosen, LANE_LEAST, BATCH)
            if len(lanes) == 1:
                failures += self._lane(kind, lanes[0], deadline, validate_only)
            elif lanes:
                failures += self._side_by_side(kind, lanes, deadline, validate_only)
        return failures

    def _side_by_side(
        self,
        kind: str,
        lanes: Sequence[Sequence[Sequence[Change]]],
        deadline: float,
        validate_only: bool,
    ) -> List[Failure]:
        """Send each lane through a client of its own; the failures, by subject."""
        clients = [self._beside(KafkaClient) for _lane in lanes]
        with concurrent.futures.ThreadPoolExecutor(len(lanes)) as pool:
            sent = [
                pool.submit(client._lane, kind, lane, deadline, validate_only)
                for client, lane in zip(clients, lanes)
            ]
            failures = [failure for each in sent for failure in each.result()]
        for client in clients:
            self.requests.update(client.requests)
        return sorted(failures, key=lambda failure: failure.subject)

    def _lane(
        self,
        kind: str,
        batches: Sequence[Sequence[Change]],
        deadline: float,
        validate_only: bool,
    ) -> List[Failure]:
        """Send batches of one kind, one after another."""
        failures: List[Failure] = []
        for batch in batches:
            failures += self._batch(kind, batch, deadline, validate_only)
        return failures

    def _batch(
        self, kind: str, changes: Sequence[Change], deadline: float, validate_only: bool
    ) -> List[Failure]:
        """Send one batch until each change succeeded or failed; never raises for a failure."""
        pending = {change.subject: change for change in changes}
        failures: List[Failure] = []
        repeated = False
        while pending:
            timeout = min(TIMEOUT_MAX_SECONDS, max(1.0, deadline - self._clock()))
            self.requests[kind] += 1
            try:
                if repeated:
                    self._renew()
                futures = self._submit(kind, list(pending.values()), timeout, validate_only)
            except (AdminError, KafkaException, TypeError, ValueError) as error:
                # The library refused the request as a whole: none of it was sent.
                failures += [Failure(subject, str(error), kind) for subject in pending]
                break
            self._await(futures.values())
            again = {}
            for subject, future in futures.items():
                answer = error_of(future)
                if answer is None or (not validate_only and _perhaps_done(kind, answer, repeated)):
                    continue
                if answer.code() in passing_codes() and self._clock() < deadline:
                    again[subject] = pending[subject]
                else:
                    moot = kind == DELETE and answer.code() in _gone_codes()
                    words = self._explained(answer)
                    if answer.code() in denied_codes():
                        words = f"{words.rstrip('.')}; the user needs {_RIGHTS[kind]}"
                    failures.append(Failure(subject, words, kind, answer.name(), moot))
            pending, repeated = again, True
            if pending:
                self._sleep(POLL_SECONDS)
        return failures

    def _submit(
        self, kind: str, changes: Sequence[Change], timeout: float, validate_only: bool
    ) -> Dict[str, Any]:
        """Send one request; subject to future."""
        # The broker gives up a little before we do, so that its answer arrives.
        limits = {"request_timeout": timeout, "operation_timeout": max(0.5, timeout - 1)}
        if kind == CREATE:
            topics = [_new_topic(change) for change in changes]
            return self._admin.create_topics(topics, validate_only=validate_only, **limits)
        if kind == GROW:
            grown = [
                NewPartitions(change.subject, change.after["partitions"]) for change in changes
            ]
            return self._admin.create_partitions(grown, validate_only=validate_only, **limits)
        if kind == DELETE:
            return self._admin.delete_topics([change.subject for change in changes], **limits)
        resources = []
        for change in changes:
            entries = _altered(change.after["config"])
            resources.append(
                ConfigResource(
                    ConfigResource.Type.TOPIC, change.subject, incremental_configs=entries
                )
            )
        futures = self._admin.incremental_alter_configs(
            resources, validate_only=validate_only, request_timeout=timeout
        )
        return {resource.name: future for resource, future in futures.items()}

    # ------------------------------------------------------------ brokers and leaders

    def alter_broker_configs(
        self, changes: Mapping[int, Mapping[str, Optional[str]]], validate_only: bool = False
    ) -> Dict[int, str]:
        """Set overrides of brokers, None takes one away; those that refuse, with their words.

        All are asked at once. Each alone can change its own.
        """
        sent = {}
        for broker, settings in changes.items():
            self.requests["alter_broker_configs"] += 1
            resource = ConfigResource(
                ConfigResource.Type.BROKER, str(broker), incremental_configs=_altered(settings)
            )
            sent[broker] = self._admin.incremental_alter_configs(
                [resource],
                validate_only=validate_only,
                request_timeout=min(self.connection.timeout, OTHER_SECONDS),
            )
        refused = {}
        for broker, futures in sent.items():
            for future in futures.values():
                error = error_of(future)
                if error is not None:
                    refused[broker] = self._explained(error)
        return refused

    def elect_leaders(
        self, partitions: Sequence[Key], deadline: float, unclean: bool = False
    ) -> Dict[Key, Tuple[str, str]]:
        """Elect the preferred leader of each partition; those that failed, with text and code.

        With `unclean` any replica that is alive, where a partition has no leader. One request for
        BATCH partitions. What needs no election any more is among them, as ELECTION_NOT_NEEDED, unless it
        may have been an attempt of ours whose answer was lost.
        """
        kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
        failed: Dict[Key, Tuple[str, str]] = {}
        for start in range(0, len(partitions), BATCH):
            pending = list(partitions[start : start + BATCH])
            repeated = False
            while pending:
                self.requests["elect_leaders"] += 1
                try:
                    # Without timeouts of ours: confluent-kafka 2.16.1 takes none of them, in spite of
                    # its documentation (SystemError, "more argument specifiers"). It is a minute.
                    future = self._admin.elect_leaders(
                        kind, [TopicPartition(*key) for key in pending]
                    )
                    self._await([future])
                    # None, an error, or an exception around one: the client's own words differ
                    found = {
                        (part.topic, part.partition): (
                            error.args[0] if isinstance(error, KafkaException) else error
                        )
                        for part, error in future.result().items()
                    }
                except KafkaException as error:
                    found = dict.fromkeys(pending, error.args[0])
                again = []
                for key, answer in found.items():
                    if answer is None or answer.code() == KafkaError.NO_ERROR:
                        continue
                    if repeated and answer.code() == KafkaError.ELECTION_NOT_NEEDED:
                        continue
                    if passing(answer) and self._clock() < deadline:
                        again.append(key)
                    else:
                        failed[key] = (self._explained(answer), answer.name())
                pending, repeated = again, True
                if pending:
                    self._renew()
                    self._sleep(POLL_SECONDS)
        return failed


# ---------------------------------------------------------------- pure parts


def _new_topic(change: Change) -> Any:
    """What librdkafka wants of a topic. `assignment`, if there is one: each partition's brokers."""
    partitions, config = change.after["partitions"] or -1, dict(change.after["config"])
    assignment = change.after.get("assignment")
    if assignment:
        return NewTopic(change.subject, partitions, replica_assignment=assignment, config=config)
    return NewTopic(
        change.subject, partitions, change.after["replication_factor"] or -1, config=config
    )


def _altered(config: Mapping[str, Optional[str]]) -> List[Any]:
    """What librdkafka wants of settings that change; None takes one away."""
    return [
        AlteredEntry(
            key,
            value,
            incremental_operation=(
                AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
            ),
        )
        for key, value in config.items()
    ]


def _perhaps_done(kind: str, error: Any, repeated: bool) -> bool:
    """Whether the change may have been made in spite of the error: the read-back shows it."""
    if error.code() in (KafkaError.REQUEST_TIMED_OUT, KafkaError._TIMED_OUT):
        return True
    # The answer to the first attempt was lost, and this is what the second one finds.
    done = {
        CREATE: (KafkaError.TOPIC_ALREADY_EXISTS,),
        GROW: (KafkaError.INVALID_PARTITIONS,),
        DELETE: _gone_codes(),
    }
    return repeated and error.code() in done.get(kind, ())


def _gone_codes() -> Tuple[int, ...]:
    """What a broker answers to the deletion of a topic, or of a credential, that is not there."""
    return (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.RESOURCE_NOT_FOUND)
