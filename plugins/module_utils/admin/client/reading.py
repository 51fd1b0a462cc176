# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a cluster: brokers, topics, settings, rights, the quorum, each as our values.

Private to this collection. The number of requests does not depend on how many topics there are.
kafka-python asks where librdkafka has no call.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import itertools
from dataclasses import replace
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.answers import (
    Configs,
    directory_of,
    entries_of,
    setting_of,
    sizes_of,
    snapshot_of,
    with_config,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.connection import (
    denied_codes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.lanes import lanes_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.offsets import (
    OffsetsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    kafka_python_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.health import Eligible
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Broker,
    ConfigEntry,
    Directory,
    Key,
    Snapshot,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    FinalError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import Quorum, quorum_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

try:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import ConfigResource
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

C = TypeVar("C", bound="ReadingClient")
T = TypeVar("T")

METADATA_SECONDS = 2.0
VIEW_ATTEMPTS = 25
VIEWS_AT_ONCE = 8
# Topics that are worth a connection of their own, and those whose settings are in one answer: it is
# some 30 settings for each.
LANE_LEAST = 200
DESCRIBED_AT_ONCE = 1000
OTHER_SECONDS = 5.0


class ReadingClient(OffsetsClient):
    """What can be asked of one cluster."""

    # ------------------------------------------------------------ brokers and topics

    def fetch_metadata(self) -> Snapshot:
        """All brokers and topics, without configurations: one request, to any one broker."""
        # Short at first, so that another address is asked after one that knows of nobody; then long
        # enough for a huge cluster.
        patience = (METADATA_SECONDS * 2**attempt for attempt in itertools.count())
        snapshot = snapshot_of(
            self._read(
                "reading metadata",
                lambda left: self._list_topics(min(left, next(patience))),
                any_broker=True,
            )
        )
        expected = self.connection.cluster_id
        if expected and snapshot.cluster_id != expected:
            raise AdminError(
                Problem(
                    "cluster.foreign",
                    f"it is the cluster {snapshot.cluster_id}",
                    "correct bootstrap_servers or cluster_id",
                    (self.connection.bootstrap,),
                    "cluster_id",
                    expected,
                )
            )
        return snapshot

    def fetch_view_of_others(self, *besides: int) -> Snapshot:
        """The metadata that another broker than these has, one that knows itself to be registered.

        A broker that lost touch answers, too, with what it knew last or with an empty cluster. Which
        one is asked is librdkafka's choice, so that fresh clients are made until it was another one.
        AdminError if none is.
        """
        for _attempt in range(VIEW_ATTEMPTS):
            snapshot = self.fetch_metadata()
            told = {each.id for each in snapshot.brokers}
            if snapshot.answered_by not in besides and snapshot.answered_by in told:
                return snapshot
            self._renew()
        raise AdminError(
            Problem(
                "cluster.read",
                (
                    f"only broker{'s' * (len(besides) > 1)} {', '.join(map(str, besides))} answer"
                    f"{'s' * (len(besides) == 1)}, or brokers that are not registered"
                    if besides
                    else "only brokers that are not registered answer"
                ),
                "start the other brokers (playbooks/start.yml starts what is down)",
                (self.connection.bootstrap,),
            )
        )

    def fetch_every_view(
        self, snapshot: Snapshot, besides: Collection[int] = ()
    ) -> Dict[int, Optional[Snapshot]]:
        """The metadata that each live broker has: broker id to Snapshot, None if it is silent.

        Brokers learn of changes one after another. A fresh client whose only address is that broker
        sticks to it or to another one, about every second time (measured), and the answer says who
        gave it: so fresh clients are made until one has asked the right broker. `besides` are ids of
        brokers that are left out. Several are asked at once.
        """
        asked = [broker for broker in snapshot.brokers if broker.id not in besides]
        with concurrent.futures.ThreadPoolExecutor(VIEWS_AT_ONCE) as pool:
            answers = list(pool.map(self._view, asked))
        for _view, requests in answers:
            self.requests.update(requests)
        return {broker.id: view for broker, (view, _requests) in zip(asked, answers)}

    def _view(self, broker: Broker) -> Tuple[Optional[Snapshot], collections.Counter[str]]:
        """(the metadata of one broker, None if it is silent; how many requests that took)."""
        alone = replace(self.connection, addresses=((broker.host, broker.port),), timeout=5.0)
        requests: collections.Counter[str] = collections.Counter()
        for _attempt in range(VIEW_ATTEMPTS):
            client = ReadingClient(alone, self._clock, self._sleep, self._wall_clock)
            try:
                client.connect()
                metadata = client._list_topics(alone.timeout)
            except (AdminError, KafkaException):
                break
            finally:
                requests.update(client.requests)
            if metadata.orig_broker_id == broker.id:
                return snapshot_of(metadata), requests
        return None, requests

    def fetch_moving_partitions(self, places: Sequence[Tuple[str, int]]) -> List[Key]:
        """Partitions that are being moved, sorted; as `fetch_joining`."""
        return sorted(self.fetch_joining(places))

    def fetch_joining(self, places: Sequence[Tuple[str, int]]) -> Dict[Key, Tuple[int, ...]]:
        """Partitions that are being moved, with the brokers that are added; one request, to the controller.

        `places`: the controller's address; another broker, that lost touch, may name none or a wrong one.

        librdkafka has no call for it, metadata show added replicas as any other, and ZooKeeper would
        have to be asked for every topic: since Kafka 2.6 the state is in the topics' nodes. So
        kafka-python asks. AdminError if the controller does not answer.
        """
        return self._asked_otherwise(
            "listing the reassignments",
            "list_reassignments",
            places,
            lambda admin: {
                (key.topic, key.partition): tuple(entry["adding_replicas"])
                for key, entry in admin.list_partition_reassignments().items()
            },
        )

    def fetch_quorum(self, places: Sequence[Tuple[str, int]]) -> Quorum:
        """The quorum of controllers of a KRaft cluster, as its leader tells it; one request.

        Any broker hands the question on to the leader: `places` are addresses of some that are to be
        asked. Metadata name any broker as the controller. AdminError if the leader does not answer,
        FinalError where the user may not ask, or the cluster has no quorum.
        """
        from kafka.errors import UnsupportedVersionError

        def call(admin: Any) -> Quorum:
            try:
                return quorum_of(admin.describe_metadata_quorum()["topics"][0]["partitions"][0])
            except UnsupportedVersionError as error:
                raise FinalError(
                    Problem(
                        "cluster.read",
                        "these brokers have no quorum: their cluster keeps its metadata in ZooKeeper",
                        "ask for the quorum of a cluster in KRaft mode only",
                        (self.connection.bootstrap,),
                    )
                ) from error

        return self._asked_otherwise("describing the quorum", "describe_quorum", places, call)

    def fetch_features(self, places: Sequence[Tuple[str, int]]) -> Dict[str, int]:
        """The features of a KRaft cluster with the levels that are finalised; one request.

        As the broker knows them that is asked, one of those at `places`. AdminError if none answers.
        """
        return self._asked_otherwise(
            "describing the features",
            "describe_features",
            places,
            lambda admin: {
                name: int(each["finalized"][1])
                for name, each in admin.describe_features().items()
                if "finalized" in each
            },
        )

    def fetch_eligible(
        self, topics: Sequence[str], places: Sequence[Tuple[str, int]] = ()
    ) -> Dict[Key, Eligible]:
        """The eligible leader replicas of all partitions of these topics; one request for 2000 partitions.

        `places` as of `fetch_quorum`. Topics that vanished, or that the user may not see, are left out.
        AdminError if no broker answers, or none that has the request: it came with Kafka 3.7.
        """

        def call(admin: Any) -> Dict[Key, Eligible]:
            found: Dict[Key, Eligible] = {}
            cursor = None
            while True:
                answer = admin.describe_topic_partitions(list(topics), cursor=cursor)
                found.update(
                    (
                        (topic["name"], part["partition_index"]),
                        Eligible(
                            tuple(part["eligible_leader_replicas"] or ()),
                            tuple(part["last_known_elr"] or ()),
                        ),
                    )
                    for topic in answer["topics"]
                    for part in topic["partitions"]
                )
                cursor = answer["next_cursor"]
                if cursor is None:
                    return found

        return self._asked_otherwise(
            "describing partitions", "describe_topic_partitions", places, call
        )

    def fetch_directories(
        self, brokers: Iterable[int], places: Sequence[Tuple[str, int]] = ()
    ) -> Dict[int, List[Directory]]:
        """The log directories of these brokers, without what is in them; one request for each.

        `places` as of `fetch_quorum`. Brokers that do not answer, or not to this user, are left out.
        """
        found: Dict[int, List[Directory]] = {}
        for broker in brokers:

            def call(admin: Any, of: int = broker) -> List[Directory]:
                (answer,) = admin.describe_log_dirs({}, [of])
                return [directory_of(entry, {}) for entry in answer["log_dirs"]]

            with contextlib.suppress(AdminError):
                found[broker] = self._asked_otherwise(
                    "describing log directories", "describe_log_dirs", places, call
                )
        return found

    def fetch_replica_bytes(
        self, broker: int, keys: Iterable[Key], places: Sequence[Tuple[str, int]] = ()
    ) -> Optional[Dict[Key, int]]:
        """Partition to the bytes of its replica on this broker, in one request; `places` as of `fetch_quorum`.

        Without those that are in a failed directory. None where it does not answer, or not to this user.
        """
        wanted: Dict[str, List[int]] = {}
        for name, number in keys:
            wanted.setdefault(name, []).append(number)

        def call(admin: Any) -> Optional[Dict[Key, int]]:
            answers = admin.describe_log_dirs(wanted, [broker])
            # A broker names all its directories, also those that have failed; to whom it may not, none.
            told = any(each.get("results") or each.get("log_dirs") for each in answers)
            return dict(sizes_of(answers)) if told else None

        try:
            return self._asked_otherwise(
                "describing log directories", "describe_log_dirs", places, call
            )
        except AdminError:
            return None

    def _asked_otherwise(
        self,
        doing: str,
        counter: str,
        places: Sequence[Tuple[str, int]],
        call: Callable[[Any], T],
    ) -> T:
        """Have kafka-python ask at one of these places, where there are none at those of the connection.

        It stays connected until `close`.
        """
        from kafka import KafkaAdminClient
        from kafka.errors import ClusterAuthorizationFailedError
        from kafka.errors import KafkaError as OtherError

        self.requests[counter] += 1
        try:
            if self._kafka_python is None:
                there = replace(
                    self.connection, addresses=tuple(places) or self.connection.addresses
                )
                with kafka_python_settings(there) as settings:
                    seconds = min(self.connection.timeout, OTHER_SECONDS)
                    settings["bootstrap_timeout_ms"] = settings["request_timeout_ms"] = int(
                        seconds * 1000
                    )
                    self._kafka_python = KafkaAdminClient(**settings)
            return call(self._kafka_python)
        except ClusterAuthorizationFailedError as error:
            raise FinalError(
                Problem(
                    "cluster.read",
                    f"{doing} failed: the user may not",
                    "grant this user Describe on the cluster",
                    (self.connection.bootstrap,),
                )
            ) from error
        # RuntimeError: "Failed to find active controller id!"
        except (OtherError, OSError, ValueError, AssertionError, RuntimeError) as error:
            self.close()
            raise AdminError(
                Problem(
                    "cluster.read",
                    f"{doing} failed: {type(error).__name__}: {error}",
                    "run it again once the controller answers",
                    (self.connection.bootstrap,),
                )
            ) from error

    def close(self) -> None:
        """End what kafka-python runs; librdkafka's client ends by itself."""
        if self._kafka_python is not None:
            other, self._kafka_python = self._kafka_python, None
            other.close()

    def fetch_racks(self) -> Dict[int, Optional[str]]:
        """Broker id to rack; metadata as librdkafka shows it has none."""

        def call(timeout: float) -> Any:
            self.requests["describe_cluster"] += 1
            return self._admin.describe_cluster(request_timeout=timeout).result()

        return {node.id: node.rack for node in self._read("describing the cluster", call).nodes}

    def fetch_own_rights(self) -> FrozenSet[str]:
        """What this very user may do with the cluster, by the protocol's names, such as ALTER."""

        def call(timeout: float) -> Any:
            self.requests["describe_cluster"] += 1
            return self._admin.describe_cluster(
                include_authorized_operations=True, request_timeout=timeout
            ).result()

        rights = self._read("describing the cluster", call).authorized_operations
        return frozenset(right.name for right in rights or ())

    # ------------------------------------------------------------ settings

    def fetch_configs(self, names: Sequence[str], denied_ok: bool = False) -> Configs:
        """Effective settings of topics: name to {key: ConfigEntry}; one request, many topics in several.

        Topics that vanished meanwhile are left out; with `denied_ok` also those that the user may not see.
        """
        lanes = lanes_of(list(names), LANE_LEAST, DESCRIBED_AT_ONCE)
        if len(lanes) < 2:
            return self._described(lanes[0] if lanes else (), denied_ok)
        clients = [self._beside(ReadingClient) for _lane in lanes]
        with concurrent.futures.ThreadPoolExecutor(len(lanes)) as pool:
            asked = [
                pool.submit(client._described, lane, denied_ok)
                for client, lane in zip(clients, lanes)
            ]
            configs = {name: each for part in asked for name, each in part.result().items()}
        for client in clients:
            self.requests.update(client.requests)
        return configs

    def fetch_setting(
        self, names: Sequence[str], key: str, places: Sequence[Tuple[str, int]] = ()
    ) -> Configs:
        """One effective setting of topics, in the form of `fetch_configs`; a request for a thousand topics.

        kafka-python asks, which can leave out the other thirty settings of each; `places` as of `fetch_quorum`.
        Topics of which it is not told, because they are gone or not for this user, are left out.
        """
        from kafka.admin import ConfigResource as Asked

        found: Configs = {}
        for start in range(0, len(names), DESCRIBED_AT_ONCE):
            some = [
                Asked("topic", name, [key]) for name in names[start : start + DESCRIBED_AT_ONCE]
            ]

            def call(admin: Any, asked: Sequence[Any] = tuple(some)) -> Any:
                return admin.describe_configs(asked, config_filter="all")

            told = self._asked_otherwise(
                "describing a setting of topics", "describe_topic_setting", places, call
            )
            found.update(setting_of(told.get("topic", {}), key))
        return found

    def _described(self, lane: Sequence[Sequence[str]], denied_ok: bool) -> Configs:
        """Settings of topics, one request after another."""
        configs: Configs = {}
        for names in lane:
            configs.update(self._describe_configs("topic", names, denied_ok))
        return configs

    def _beside(self, kind: Type[C]) -> C:
        """A client of its own for a lane, which asks whom this one asks."""
        client = kind(self.connection, self._clock, self._sleep, self._wall_clock)
        client._asked = self._asked
        client._renew()
        return client

    def fetch_broker_config(self, broker_id: int) -> Optional[Dict[str, ConfigEntry]]:
        """Effective settings of one broker, None without the right to see them; one request."""
        configs = self._describe_configs("broker", [str(broker_id)], denied_ok=True)
        return configs.get(str(broker_id))

    def fetch_broker_settings(self, brokers: Iterable[int], key: str) -> Dict[int, str]:
        """One setting of each of these brokers, as it told it itself; all are asked at once.

        Who does not answer within a few seconds, or may not tell, is left out.
        """
        told, _silent = self.fetch_broker_configs(brokers)
        found = {broker: entries.get(key) for broker, entries in told.items()}
        return {
            broker: str(entry.value)
            for broker, entry in found.items()
            if entry is not None and entry.value is not None
        }

    def fetch_broker_configs(
        self, brokers: Iterable[int]
    ) -> Tuple[Dict[int, Dict[str, ConfigEntry]], Dict[int, str]]:
        """(effective settings of each of these brokers, why others did not tell theirs).

        All are asked at once: each answers for itself alone.
        """
        asked = {}
        for broker in brokers:
            self.requests["describe_broker_configs"] += 1
            resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
            seconds = min(self.connection.timeout, OTHER_SECONDS)
            asked[broker] = self._admin.describe_configs([resource], request_timeout=seconds)
        told: Dict[int, Dict[str, ConfigEntry]] = {}
        silent: Dict[int, str] = {}
        for broker, futures in asked.items():
            for future in futures.values():
                try:
                    told[broker] = entries_of(future.result())
                except KafkaException as error:
                    silent[broker] = self._explained(error.args[0])
        return told, silent

    def _describe_configs(
        self,
        kind: str,
        names: Sequence[str],
        denied_ok: bool = False,
    ) -> Configs:
        """Settings by name; with `denied_ok`, what the user may not see is left out."""

        def call(timeout: float) -> Configs:
            self.requests[f"describe_{kind}_configs"] += 1
            kinds = {"topic": ConfigResource.Type.TOPIC, "broker": ConfigResource.Type.BROKER}
            resources = [ConfigResource(kinds[kind], name) for name in names]
            configs = {}
            futures = self._admin.describe_configs(resources, request_timeout=timeout)
            for resource, future in futures.items():
                try:
                    entries = future.result()
                except KafkaException as error:
                    code = error.args[0].code()
                    if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                        continue
                    if denied_ok and code in denied_codes():
                        continue
                    raise
                configs[resource.name] = entries_of(entries)
            return configs

        return self._read(
            f"describing {kind} settings",
            call,
            "see whether the brokers answer, in ZooKeeper mode also whether ZooKeeper has a "
            "quorum: brokers read these settings from there",
        )

    def fetch_topics(
        self, names: Sequence[str], chosen: Optional[Callable[[str], bool]] = None
    ) -> Snapshot:
        """A Snapshot with the settings of the named topics, and of the `chosen`: three requests.

        When none of them exists, the settings of any one topic are read, because the brokers'
        own list of known settings can only be had from a topic. That, and the brokers' defaults,
        stay unknown to a user who has rights on a prefix only.
        """
        snapshot = self.fetch_metadata()
        named = set(names)
        present = sorted(
            name for name in snapshot.topics if name in named or (chosen and chosen(name))
        )
        if present:
            configs = self.fetch_configs(present)
        else:
            any_one = sorted(snapshot.topics)[:1]
            configs = self._describe_configs("topic", any_one, denied_ok=True) if any_one else {}
        known = frozenset(key for entries in configs.values() for key in entries) or None
        defaults: Optional[Dict[str, str]] = None
        if snapshot.brokers:
            entries = self.fetch_broker_config(snapshot.brokers[0].id)
            if entries is not None:
                defaults = {key: e.value for key, e in entries.items() if e.value is not None}
        topics = dict(snapshot.topics)
        for name in present:
            # A topic that vanished between the two requests is gone, not without settings.
            if name in configs:
                topics[name] = with_config(topics[name], configs[name], defaults or {})
            else:
                del topics[name]
        return replace(
            snapshot,
            topics=topics,
            broker_defaults=defaults or {},
            defaults_denied=bool(snapshot.brokers) and defaults is None,
            known_keys=known,
        )
