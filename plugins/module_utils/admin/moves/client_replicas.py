# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""LogDirsClient, and what moving replicas needs: reassignments, sizes, throttles.

Private to this collection. librdkafka has no call for reassignments and log directories, so these go
through kafka-python; the rest through confluent-kafka.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import BATCH
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.log_dirs import (
    LogDirsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.throttles import (
    RATES,
    REPLICAS,
    Throttles,
    broker_name,
    topic_name,
)

try:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
    from kafka import TopicPartition as OtherPartition
    from kafka.errors import KafkaError as OtherError
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so


@dataclass(frozen=True)
class Running:
    """A reassignment under way: all replicas of the partition, those that join, those that leave."""

    replicas: Tuple[int, ...]
    adding: Tuple[int, ...]
    removing: Tuple[int, ...]

    @property
    def target(self) -> Tuple[int, ...]:
        """The replicas once it is done."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def origin(self) -> Tuple[int, ...]:
        """The replicas if it is cancelled."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)


class MovesClient(LogDirsClient):
    """One cluster, for one module that moves replicas."""

    # ------------------------------------------------------------ reassignments

    def fetch_running(self) -> Dict[Key, Running]:
        """The reassignments that are under way, of anybody; one request to the controller."""

        def call(admin: Any) -> Dict[Key, Running]:
            return {
                (key.topic, key.partition): Running(
                    *(tuple(entry[name]) for name in _PARTS),
                )
                for key, entry in admin.list_partition_reassignments().items()
            }

        return self.ask("listing reassignments", call)

    def alter(self, wanted: Mapping[Key, Optional[Sequence[int]]]) -> Dict[Key, str]:
        """Start reassignments (None: cancel one); partition to why it was refused.

        What was started by an attempt whose answer was lost is started again, which changes nothing;
        what is cancelled and not there any more is not a refusal, and neither is a topic that is gone.
        """
        asked = {OtherPartition(*key): replicas for key, replicas in wanted.items()}

        def call(admin: Any) -> Dict[Key, str]:
            refused = {}
            for key, error in admin.alter_partition_reassignments(asked).items():
                name = getattr(error, "__name__", "") if error else ""
                if name and name not in _GONE:
                    refused[(key.topic, key.partition)] = getattr(error, "message", "") or name
            return refused

        return self.ask("altering reassignments", call)

    def fetch_replica_sizes(self, names: Sequence[str]) -> Dict[Tuple[int, Key], int]:
        """(broker, partition) to bytes on its disks, of the named topics; one request a broker.

        Empty where they cannot be had: sizes are for people, nothing waits for them.
        """
        self.requests["describe_log_dirs"] += 1
        sizes: Dict[Tuple[int, Key], int] = {}
        try:
            with self.python_admin() as admin:
                for answer in admin.describe_log_dirs(sorted(names)):
                    for directory in answer["log_dirs"]:
                        for topic in directory["topics"]:
                            for part in topic["partitions"]:
                                place = (answer["broker"], (topic["name"], part["partition_index"]))
                                # A future replica moves to another disk of the same broker.
                                if not part.get("is_future_key"):
                                    sizes[place] = part["partition_size"]
        except (OtherError, OSError, ValueError, AssertionError, KeyError):
            return {}
        return sizes

    def fetch_in_kraft_mode(self, broker: int) -> Optional[bool]:
        """Whether this broker is one of a KRaft cluster, None if it does not tell; one request."""
        told, _silent = self.fetch_broker_configs([broker])
        if broker not in told:
            return None
        roles = told[broker].get("process.roles")
        return bool(roles is not None and roles.value)

    # ------------------------------------------------------------ throttles

    def fetch_throttles(self, brokers: Sequence[int], names: Sequence[str]) -> Throttles:
        """The throttles of these live brokers and topics: one request a broker, one for all topics."""
        rates = {broker: self.fetch_broker_config(broker) or {} for broker in brokers}
        return _throttles(rates, self._fetch_topic_configs(names))

    def look_at_throttles(
        self, brokers: Sequence[int], names: Sequence[str]
    ) -> Tuple[Throttles, Set[str]]:
        """The same, once, and whose are not told: of a broker that does not answer, or of a topic that is gone."""
        told, _silent = self.fetch_broker_configs(brokers)
        topics = self._fetch_topic_configs(names)
        silent = {
            *(broker_name(broker) for broker in brokers if broker not in told),
            *(topic_name(name) for name in names if name not in topics),
        }
        return _throttles(told, topics), silent

    def _fetch_topic_configs(self, names: Sequence[str]) -> Dict[str, Mapping[str, Any]]:
        found: Dict[str, Mapping[str, Any]] = {}
        for start in range(0, len(names), BATCH):
            found.update(self.fetch_configs(names[start : start + BATCH]))
        return found

    def set_throttles(
        self,
        brokers: Mapping[int, Mapping[str, Optional[str]]],
        topics: Mapping[str, Mapping[str, Optional[str]]],
    ) -> None:
        """Set (or with None remove) throttles; AdminError if a broker refuses.

        Topics that vanished meanwhile need none.
        """
        for broker, keys in sorted(brokers.items()):
            self._alter_configs("broker", {str(broker): keys})
        names = sorted(topics)
        for start in range(0, len(names), BATCH):
            self._alter_configs(
                "topic", {name: topics[name] for name in names[start : start + BATCH]}
            )

    def _alter_configs(self, kind: str, changes: Mapping[str, Mapping[str, Optional[str]]]) -> None:
        kinds = {"topic": ConfigResource.Type.TOPIC, "broker": ConfigResource.Type.BROKER}
        operations = {True: AlterConfigOpType.DELETE, False: AlterConfigOpType.SET}

        def call(timeout: float) -> None:
            self.requests[f"alter_{kind}_configs"] += 1
            resources = [
                ConfigResource(
                    kinds[kind],
                    name,
                    incremental_configs=[
                        ConfigEntry(
                            key, value or "", incremental_operation=operations[value is None]
                        )
                        for key, value in sorted(keys.items())
                    ],
                )
                for name, keys in changes.items()
            ]
            futures = self._admin.incremental_alter_configs(resources, request_timeout=timeout)
            self._await(futures.values())
            for future in futures.values():
                try:
                    future.result()
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise

        where = "the cluster" if kind == "broker" else "the topics"
        self._read(f"setting throttles of a {kind}", call, rights=f"AlterConfigs on {where}")


_GONE = ("NoReassignmentInProgressError", "UnknownTopicOrPartitionError")
_PARTS = ("replicas", "adding_replicas", "removing_replicas")


def _throttles(
    brokers: Mapping[int, Mapping[str, Any]], topics: Mapping[str, Mapping[str, Any]]
) -> Throttles:
    """The throttles in the settings of brokers and topics."""
    rates = {broker: _own(entries, RATES, "broker") for broker, entries in brokers.items()}
    lists = {name: _own(entries, REPLICAS, "topic") for name, entries in topics.items()}
    return Throttles(
        {broker: keys for broker, keys in rates.items() if keys},
        {name: keys for name, keys in lists.items() if keys},
    )


def _own(entries: Mapping[str, Any], keys: Sequence[str], source: str) -> Dict[str, str]:
    """Those of the keys that were set here, and not inherited."""
    return {
        key: entries[key].value
        for key in keys
        if key in entries and entries[key].source == source and entries[key].value
    }
