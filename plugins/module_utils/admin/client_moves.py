# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KafkaClient, and what moving replicas needs: reassignments, sizes, throttles.

Private to this collection. librdkafka has no call for reassignments and log directories, so these go
through kafka-python; the rest through confluent-kafka.
"""

from __future__ import annotations

import contextlib
import traceback
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence, Tuple, TypeVar

from ansible.module_utils.basic import missing_required_lib

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client_kafka import (
    BATCH,
    POLL_SECONDS,
    KafkaClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client_settings import (
    kafka_python_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

CLIENTS_IMPORT_ERROR = None
try:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
    from kafka import KafkaAdminClient
    from kafka import TopicPartition as OtherPartition
    from kafka.errors import KafkaError as OtherError
except ImportError:
    CLIENTS_IMPORT_ERROR = traceback.format_exc()

T = TypeVar("T")
# (topic, partition)

LEADER, FOLLOWER = "leader", "follower"
RATES = tuple(f"{side}.replication.throttled.rate" for side in (LEADER, FOLLOWER))
REPLICAS = tuple(f"{side}.replication.throttled.replicas" for side in (LEADER, FOLLOWER))


def require_both_clients(module: Any) -> None:
    """Fail with Ansible's usual sentence if a client library is missing."""
    if CLIENTS_IMPORT_ERROR:
        module.fail_json(
            msg=missing_required_lib(
                "confluent-kafka and kafka-python", reason="to move replicas of Kafka"
            ),
            exception=CLIENTS_IMPORT_ERROR,
        )


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


@dataclass(frozen=True)
class Throttles:
    """Throttles of replication as the cluster has them: broker id or topic to {key: value}."""

    brokers: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    topics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def foreign(self) -> Tuple[str, ...]:
        """Topics whose throttle is `*`, all replicas. Somebody else has set it: ours are lists."""
        return tuple(sorted(name for name, keys in self.topics.items() if "*" in keys.values()))


class MovesClient(KafkaClient):
    """One cluster, for one module that moves replicas."""

    def _other(self, what: str, call: Callable[[Any], T]) -> T:
        """Run a call of kafka-python until it succeeds or the timeout is over.

        A client is made for each attempt: one that has lost its controller stays with the old one.
        """
        deadline = self._clock() + self.connection.timeout
        while True:
            self.requests[what] += 1
            try:
                with self._other_admin() as admin:
                    return call(admin)
            # RuntimeError: "Failed to find active controller id!"
            except (OtherError, OSError, ValueError, AssertionError, RuntimeError) as error:
                if self._clock() >= deadline:
                    text = " ".join(str(error).split())[:200]
                    raise AdminError(
                        Problem(
                            "cluster.read",
                            f"{what} failed: {type(error).__name__}: {text}",
                            "run it again once the brokers answer; the user needs Alter and Describe "
                            "on the cluster",
                            (self.connection.bootstrap,),
                        )
                    ) from error
            self._sleep(POLL_SECONDS)

    @contextlib.contextmanager
    def _other_admin(self) -> Iterator[Any]:
        with kafka_python_settings(self.connection) as settings:
            admin = KafkaAdminClient(**settings)
            try:
                yield admin
            finally:
                admin.close()

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

        return self._other("listing reassignments", call)

    def alter(self, wanted: Mapping[Key, Optional[Sequence[int]]]) -> Dict[Key, str]:
        """Start reassignments (None: cancel one); partition to why it was refused.

        What was started by an attempt whose answer was lost is started again, which changes nothing;
        what is cancelled and not there any more is no refusal, and neither is a topic that is gone.
        """
        asked = {OtherPartition(*key): replicas for key, replicas in wanted.items()}

        def call(admin: Any) -> Dict[Key, str]:
            refused = {}
            for key, error in admin.alter_partition_reassignments(asked).items():
                name = getattr(error, "__name__", "") if error else ""
                if name and name not in _GONE:
                    refused[(key.topic, key.partition)] = getattr(error, "message", "") or name
            return refused

        return self._other("altering reassignments", call)

    def fetch_replica_sizes(self, names: Sequence[str]) -> Dict[Tuple[int, Key], int]:
        """(broker, partition) to bytes on its disks, of the named topics; one request a broker.

        Empty where they cannot be had: sizes are for people, nothing waits for them.
        """
        self.requests["describe_log_dirs"] += 1
        sizes: Dict[Tuple[int, Key], int] = {}
        try:
            with self._other_admin() as admin:
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

    # ------------------------------------------------------------ throttles

    def fetch_throttles(self, brokers: Sequence[int], names: Sequence[str]) -> Throttles:
        """The throttles of these live brokers and topics: one request a broker, one for all topics."""
        rates = {}
        for broker in brokers:
            entries = self.fetch_broker_config(broker) or {}
            found = _own(entries, RATES, "broker")
            if found:
                rates[broker] = found
        lists = {}
        for start in range(0, len(names), BATCH):
            configs = self.fetch_configs(names[start : start + BATCH])
            for name, entries in configs.items():
                found = _own(entries, REPLICAS, "topic")
                if found:
                    lists[name] = found
        return Throttles(rates, lists)

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

        self._read(f"setting throttles of a {kind}", call, "grant this user AlterConfigs")


_GONE = ("NoReassignmentInProgressError", "UnknownTopicOrPartitionError")
_PARTS = ("replicas", "adding_replicas", "removing_replicas")


def _own(entries: Mapping[str, Any], keys: Sequence[str], source: str) -> Dict[str, str]:
    """Those of the keys that were set here, and not inherited."""
    return {
        key: entries[key].value
        for key in keys
        if key in entries and entries[key].source == source and entries[key].value
    }
