# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only importer of confluent-kafka and, where librdkafka has no call, of kafka-python.

Private to this collection. Every method costs a number of requests that does not depend on how
many topics there are, except for writes, which go out in batches of BATCH; `KafkaClient.requests`
counts them, and a test watches. Clock and sleep are passed in.
"""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
import logging
import time
import traceback
from dataclasses import replace
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

from ansible.module_utils.basic import missing_required_lib

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.argspec import (
    TIMEOUT_MAX_SECONDS,
    Connection,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client_settings import (
    kafka_python_settings,
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    CONFIGURE,
    CREATE,
    DELETE,
    GROW,
    Broker,
    ConfigEntry,
    Partition,
    Snapshot,
    Stake,
    Topic,
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    FinalError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.reach import (
    Trouble,
    closes_unasked,
    connection_problem,
    probe_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.stakes import estimate_stake
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

CONFLUENT_IMPORT_ERROR = None
try:
    from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigResource,
        NewPartitions,
        NewTopic,
        OffsetSpec,
    )
    from confluent_kafka.admin import ConfigEntry as AlteredEntry
except ImportError:
    CONFLUENT_IMPORT_ERROR = traceback.format_exc()

# Kafka's KRaft controllers take at most 10,000 records in one request; a topic of 12 partitions
# is 13 of them.
BATCH = 500
POLL_SECONDS = 0.25
WATCH_SECONDS = 3.0
METADATA_SECONDS = 2.0
VIEW_ATTEMPTS = 25
VIEWS_AT_ONCE = 8
OTHER_SECONDS = 5.0

T = TypeVar("T")
# (topic, partition)
PartitionKey = Tuple[str, int]
Configs = Dict[str, Dict[str, ConfigEntry]]

_SOURCES = {1: "topic", 2: "broker", 3: "cluster", 4: "static", 5: "default", 8: "group"}

# What a topic's setting falls back to, as a broker setting with its unit in milliseconds.
_FALLBACKS = {
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60 * 1000),
        ("log.retention.hours", 60 * 60 * 1000),
    ),
    "retention.bytes": (("log.retention.bytes", 1),),
    "cleanup.policy": (("log.cleanup.policy", None),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", None),),
}


def require_kafka(module: Any) -> None:
    """Fail with Ansible's usual sentence if confluent-kafka is missing."""
    if CONFLUENT_IMPORT_ERROR:
        module.fail_json(
            msg=missing_required_lib("confluent-kafka", reason="to talk to Kafka"),
            exception=CONFLUENT_IMPORT_ERROR,
        )


def require_kafka_python(module: Any) -> None:
    """Fail with Ansible's usual sentence if kafka-python is missing."""
    try:
        import kafka  # noqa: F401  pylint: disable=unused-import
    except ImportError:
        module.fail_json(
            msg=missing_required_lib("kafka-python", reason="to learn of reassignments"),
            exception=traceback.format_exc(),
        )


class KafkaClient:
    """One cluster. Use `connect()` first: it tells unreachable from wrong credentials."""

    def __init__(
        self,
        connection: Connection,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        wall_clock: Callable[[], float] = time.time,
    ):
        self.connection = connection
        self.requests: collections.Counter[str] = collections.Counter()
        self._clock = clock
        self._sleep = sleep
        self._wall_clock = wall_clock
        self._trouble = Trouble()
        self._asked = connection.addresses
        self._admin: Any = None
        self._kafka_python: Any = None  # kafka-python's

    # ------------------------------------------------------------ reaching the cluster

    def connect(self) -> None:
        """Reach the cluster within `timeout`, or raise an AdminError that says what is wrong."""
        deadline = self._clock() + self.connection.timeout
        probe_addresses(self.connection.addresses, self.connection.timeout, self._clock)
        self._renew()
        # Several addresses: one of them may be right although another is wrong.
        patience = 0 if len(self.connection.addresses) == 1 else 3
        hopeless_since: Optional[float] = None
        for addresses, seconds in _attempts(self.connection.addresses):
            if addresses != self._asked:
                self._asked = addresses
                self._renew()
            try:
                self._list_topics(max(0.5, min(seconds, deadline - self._clock())))
                return
            except KafkaException as error:
                self._admin.poll(0)
                last = error.args[0]
            now = self._clock()
            verdict = self._trouble.verdict(last)
            hopeless = verdict
            if verdict == "closed" and closes_unasked(self.connection.addresses):
                # A proxy, while the broker behind it is not running yet.
                verdict, hopeless = "nobody_behind", None
            if hopeless and hopeless_since is None:
                hopeless_since = now
            since = now - hopeless_since if hopeless_since is not None else 0.0
            if now >= deadline or (hopeless and since >= patience):
                details = {} if hopeless else {"reachable": False}
                raise AdminError(
                    connection_problem(self.connection, verdict, self._trouble.last), **details
                )
            self._sleep(0.1)

    def _renew(self) -> None:
        """A new AdminClient: after a controller change an old one keeps asking the wrong broker."""
        logger = logging.Logger("kafkaops.librdkafka")
        logger.addHandler(self._trouble)
        settings = {
            **librdkafka_settings(replace(self.connection, addresses=self._asked)),
            "error_cb": self._trouble.error,
            "socket.connection.setup.timeout.ms": int(
                max(1000, min(30, self.connection.timeout) * 1000)
            ),
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1000,
        }
        try:
            self._admin = AdminClient(settings, logger=logger)
        except KafkaException as error:
            # Its text may quote neither key nor password: librdkafka names the property only.
            raise AdminError(
                Problem(
                    "connection.settings",
                    f"the client library refuses the connection settings: {error.args[0].str()}",
                    "correct the connection options",
                    (self.connection.bootstrap,),
                )
            ) from error

    def _list_topics(self, timeout: float) -> Any:
        self.requests["metadata"] += 1
        return self._admin.list_topics(timeout=timeout)

    def _read(self, what: str, call: Callable[[float], T], remedy: str = "") -> T:
        """Run a read until it succeeds or the timeout is over; returns its value."""
        deadline = self._clock() + self.connection.timeout
        while True:
            try:
                return call(max(1.0, deadline - self._clock()))
            except KafkaException as error:
                last = error.args[0]
                self._admin.poll(0)
            if self._clock() >= deadline or not _passing(last):
                denied = last.code() in _denied_codes()
                if denied:
                    remedy = f"grant this user what {what} needs: Describe and DescribeConfigs"
                raise (FinalError if denied else AdminError)(
                    Problem(
                        "cluster.read",
                        f"{what} failed: {self._explained(last)}",
                        remedy or "run it again once the brokers answer, or raise timeout",
                        (self.connection.bootstrap,),
                    )
                )
            self._ask_another()
            self._sleep(POLL_SECONDS)

    def _ask_another(self) -> None:
        """A new client that begins with the next address alone; see _attempts."""
        addresses = self.connection.addresses
        if len(addresses) > 1:
            before = addresses.index(self._asked[0]) if len(self._asked) == 1 else -1
            self._asked = (addresses[(before + 1) % len(addresses)],)
        self._renew()

    def _explained(self, error: Any) -> str:
        """A broker's error; for local ones with what happened to the connections."""
        text = error.str().rstrip(".")
        if error.code() < 0 and self._trouble.last:
            return f"{text} ({self._trouble.last.rstrip('.')})"
        return text

    # ------------------------------------------------------------ reading

    def fetch_metadata(self) -> Snapshot:
        """All brokers and topics, without configurations: one request, to any one broker."""
        # Short at first, so that another address is asked after one that knows of nobody; then long
        # enough for a huge cluster.
        patience = (METADATA_SECONDS * 2**attempt for attempt in itertools.count())
        snapshot = _snapshot(
            self._read(
                "reading metadata", lambda left: self._list_topics(min(left, next(patience)))
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

    def fetch_view_of_others(self, broker: int) -> Snapshot:
        """The metadata that another broker than this one has, one that knows itself to be registered.

        A broker that lost touch answers, too, with what it knew last or with an empty cluster. Which
        one is asked is librdkafka's choice, so that fresh clients are made until it was another one.
        AdminError if none is.
        """
        for _attempt in range(VIEW_ATTEMPTS):
            snapshot = self.fetch_metadata()
            told = {each.id for each in snapshot.brokers}
            if snapshot.answered_by != broker and snapshot.answered_by in told:
                return snapshot
            self._renew()
        raise AdminError(
            Problem(
                "cluster.read",
                f"only broker {broker} itself answers, or brokers that are not registered",
                "start the other brokers (playbooks/start.yml starts what is down)",
                (self.connection.bootstrap,),
            )
        )

    def fetch_every_view(
        self, snapshot: Snapshot, besides: Optional[int] = None
    ) -> Dict[int, Optional[Snapshot]]:
        """The metadata that each live broker has: broker id to Snapshot, None if it is silent.

        Brokers learn of changes one after another. A fresh client whose only address is that broker
        sticks to it or to another one, about every second time (measured), and the answer says who
        gave it: so fresh clients are made until one has asked the right broker. `besides` is the id of
        a broker that is left out. Several are asked at once.
        """
        asked = [broker for broker in snapshot.brokers if broker.id != besides]
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
            client = KafkaClient(alone, self._clock, self._sleep, self._wall_clock)
            try:
                client.connect()
                metadata = client._list_topics(alone.timeout)
            except (AdminError, KafkaException):
                break
            finally:
                requests.update(client.requests)
            if metadata.orig_broker_id == broker.id:
                return _snapshot(metadata), requests
        return None, requests

    def fetch_moving_partitions(self, places: Sequence[Tuple[str, int]]) -> List[PartitionKey]:
        """Partitions that are being moved, sorted; one request, to the controller.

        `places`: the controller's address; another broker, that lost touch, may name none or a wrong one.

        librdkafka has no call for it, metadata show added replicas as any other, and ZooKeeper would
        have to be asked for every topic: since Kafka 2.6 the state is in the topics' nodes. So
        kafka-python asks; its connection stays open until `close`. AdminError if the controller does
        not answer.
        """
        from kafka import KafkaAdminClient
        from kafka.errors import ClusterAuthorizationFailedError
        from kafka.errors import KafkaError as OtherError

        self.requests["list_reassignments"] += 1
        doing = "listing the reassignments"
        try:
            if self._kafka_python is None:
                there = replace(self.connection, addresses=tuple(places))
                with kafka_python_settings(there) as settings:
                    seconds = min(self.connection.timeout, OTHER_SECONDS)
                    settings["bootstrap_timeout_ms"] = settings["request_timeout_ms"] = int(
                        seconds * 1000
                    )
                    self._kafka_python = KafkaAdminClient(**settings)
            return sorted(
                (key.topic, key.partition)
                for key in self._kafka_python.list_partition_reassignments()
            )
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

    def fetch_configs(self, names: Sequence[str]) -> Configs:
        """Effective settings of topics: name to {key: ConfigEntry}; one request.

        Topics that vanished meanwhile are left out.
        """
        if not names:
            return {}
        return self._describe_configs("topic", list(names))

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
                    told[broker] = _entries(future.result())
                except KafkaException as error:
                    silent[broker] = self._explained(error.args[0])
        return told, silent

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
                error = _error_of(future)
                if error is not None:
                    refused[broker] = self._explained(error)
        return refused

    def _describe_configs(
        self, kind: str, names: Sequence[str], denied_ok: bool = False
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
                    if denied_ok and code in _denied_codes():
                        continue
                    raise
                configs[resource.name] = _entries(entries)
            return configs

        return self._read(
            f"describing {kind} settings",
            call,
            "see whether the brokers answer, in ZooKeeper mode also whether ZooKeeper has a "
            "quorum: brokers read these settings from there",
        )

    def fetch_topics(self, names: Sequence[str], everything: bool = False) -> Snapshot:
        """A Snapshot with the settings of the named topics (or of all): three requests.

        When none of them exists, the settings of any one topic are read, because the brokers'
        own list of known settings can only be had from a topic. That, and the brokers' defaults,
        stay unknown to a user who has rights on a prefix only.
        """
        snapshot = self.fetch_metadata()
        present = sorted(snapshot.topics if everything else set(names) & set(snapshot.topics))
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
                topics[name] = _with_config(topics[name], configs[name], defaults or {})
            else:
                del topics[name]
        return replace(
            snapshot,
            topics=topics,
            broker_defaults=defaults or {},
            defaults_denied=bool(snapshot.brokers) and defaults is None,
            known_keys=known,
        )

    def fetch_stakes(
        self,
        snapshot: Snapshot,
        cuts: Mapping[str, Tuple[Optional[int], Optional[int]]],
    ) -> Dict[str, Stake]:
        """What the plan could delete: name to Stake.

        `cuts` maps topic names to the new (retention_ms, retention_bytes), None where unlimited
        or unchanged. Three requests for offsets, whatever the number of topics (librdkafka sends
        each to the leaders concerned), and one for sizes where kafka-python is installed.
        """
        if not cuts:
            return {}
        now_ms = int(self._wall_clock() * 1000)
        ends: List[PartitionKey] = []
        times: Dict[PartitionKey, int] = {}
        for name, (retention_ms, _size) in cuts.items():
            for part in snapshot.topics[name].partitions:
                if part.leader is None:
                    continue
                ends.append((name, part.id))
                if retention_ms is not None and retention_ms >= 0:
                    times[(name, part.id)] = max(0, now_ms - retention_ms)
        try:
            first = self._offsets({key: OffsetSpec.earliest() for key in ends})
            last = self._offsets({key: OffsetSpec.latest() for key in ends})
            young = self._offsets(
                {key: OffsetSpec.for_timestamp(stamp) for key, stamp in times.items()}
            )
            unknown = ""
        except AdminError as error:
            first = last = young = {}
            unknown = f"the records could not be counted: {error.problem.reason}"
        sizes, why_not = self._sizes(cuts)
        stakes = {}
        for name, (retention_ms, retention_bytes) in cuts.items():
            partitions = [(name, part.id) for part in snapshot.topics[name].partitions]
            counted = all(key in first and key in last for key in partitions)
            stakes[name] = estimate_stake(
                (
                    [(first[key], last[key], young.get(key, -1)) for key in partitions]
                    if counted
                    else None
                ),
                [sizes[key] for key in partitions if key in sizes],
                retention_ms,
                retention_bytes,
                unknown or why_not,
            )
        return stakes

    def _offsets(self, specs: Mapping[PartitionKey, Any]) -> Dict[PartitionKey, int]:
        """(topic, partition) to offset, for one specification each; -1 stays -1."""
        if not specs:
            return {}

        def call(timeout: float) -> Dict[PartitionKey, int]:
            self.requests["list_offsets"] += 1
            asked = {TopicPartition(*key): spec for key, spec in specs.items()}
            # Asked again soon: another may lead by then, and it is not asked before.
            futures = self._admin.list_offsets(asked, request_timeout=min(timeout, 5))
            offsets = {
                (partition.topic, partition.partition): future.result().offset
                for partition, future in futures.items()
            }
            # For a leader that does not answer librdkafka 2.16.0 returns this, and no error. Taken
            # for an offset, it would mean a partition without records.
            for (topic, partition), offset in sorted(offsets.items()):
                if offset < -1:
                    text = f"no answer from the leader of {topic}-{partition}"
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, text))
            return offsets

        return self._read("reading offsets", call)

    def _sizes(self, names: Iterable[str]) -> Tuple[Dict[PartitionKey, int], str]:
        """(topic, partition) to bytes of its largest replica, and why there are none."""
        try:
            from kafka import KafkaAdminClient  # librdkafka has no call for log directories
            from kafka.errors import KafkaError as OtherError
        except ImportError:
            return {}, "bytes are unknown, kafka-python is not installed"
        self.requests["describe_log_dirs"] += 1
        sizes: Dict[PartitionKey, int] = {}
        with kafka_python_settings(self.connection) as settings:
            try:
                admin = KafkaAdminClient(**settings)
                try:
                    answers = admin.describe_log_dirs(sorted(names))
                finally:
                    admin.close()
            except (OtherError, OSError, ValueError, AssertionError) as error:
                return {}, f"bytes are unknown: {type(error).__name__}"
        for key, size in _sizes_of(answers):
            sizes[key] = max(size, sizes.get(key, 0))
        return sizes, ""

    # ------------------------------------------------------------ changing topics

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
            for start in range(0, len(chosen), BATCH):
                failures += self._batch(
                    kind, chosen[start : start + BATCH], deadline, validate_only
                )
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
                answer = _error_of(future)
                if answer is None or (not validate_only and _perhaps_done(kind, answer, repeated)):
                    continue
                if answer.code() in _passing_codes() and self._clock() < deadline:
                    again[subject] = pending[subject]
                else:
                    failures.append(Failure(subject, self._explained(answer), kind, answer.name()))
            pending, repeated = again, True
            if pending:
                self._sleep(POLL_SECONDS)
        return failures

    def _await(self, futures: Iterable[Any]) -> None:
        """Wait for a request; every few seconds metadata are read meanwhile.

        A request to a controller that has gone would wait until its timeout for the same broker:
        only fresh metadata tell librdkafka who the new one is.
        """
        futures = list(futures)
        while concurrent.futures.wait(futures, timeout=WATCH_SECONDS).not_done:
            try:
                self._list_topics(WATCH_SECONDS)
            except KafkaException:
                continue

    def _submit(
        self, kind: str, changes: Sequence[Change], timeout: float, validate_only: bool
    ) -> Dict[str, Any]:
        """Send one request; subject to future."""
        # The broker gives up a little before we do, so that its answer arrives.
        limits = {"request_timeout": timeout, "operation_timeout": max(0.5, timeout - 1)}
        if kind == CREATE:
            topics = [
                NewTopic(
                    change.subject,
                    change.after["partitions"] or -1,
                    change.after["replication_factor"] or -1,
                    config=dict(change.after["config"]),
                )
                for change in changes
            ]
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

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """What is not yet true of applied changes, for any broker: subject to a few words.

        The next module may ask any of them, and a deletion or creation reaches one after another.
        """
        snapshot = self.fetch_metadata()
        waiting = _waiting(snapshot, changes)
        if not waiting:
            for view in self.fetch_every_view(snapshot).values():
                # A broker that is registered but silent is for others to worry about.
                waiting.update(_waiting(view, changes) if view else {})
        configured = [
            change
            for change in changes
            if change.kind == CONFIGURE and change.subject not in waiting
        ]
        configs = self.fetch_configs([change.subject for change in configured])
        for change in configured:
            entries = configs.get(change.subject, {})
            wrong = [
                key
                for key, value in change.after["config"].items()
                if not _took(entries.get(key), key, value)
            ]
            if wrong:
                waiting[change.subject] = f"{', '.join(sorted(wrong))} not yet in force"
        return waiting

    # ------------------------------------------------------------ leaders

    def elect_preferred(
        self, partitions: Sequence[PartitionKey], deadline: float
    ) -> Dict[PartitionKey, Tuple[str, str]]:
        """Elect the preferred leader of each partition; those that failed, with text and code.

        One request for BATCH partitions. What already has its preferred leader has not failed.
        """
        failed: Dict[PartitionKey, Tuple[str, str]] = {}
        for start in range(0, len(partitions), BATCH):
            pending = list(partitions[start : start + BATCH])
            while pending:
                self.requests["elect_leaders"] += 1
                try:
                    # Without timeouts of ours: confluent-kafka 2.16.1 takes none of them, in spite of
                    # its documentation (SystemError, "more argument specifiers"). It is a minute.
                    future = self._admin.elect_leaders(
                        ElectionType.PREFERRED, [TopicPartition(*key) for key in pending]
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
                    fine = (KafkaError.NO_ERROR, KafkaError.ELECTION_NOT_NEEDED)
                    if answer is None or answer.code() in fine:
                        continue
                    if _passing(answer) and self._clock() < deadline:
                        again.append(key)
                    else:
                        failed[key] = (self._explained(answer), answer.name())
                pending = again
                if pending:
                    self._renew()
                    self._sleep(POLL_SECONDS)
        return failed


# ---------------------------------------------------------------- pure parts


def _entries(answer: Mapping[str, Any]) -> Dict[str, ConfigEntry]:
    """librdkafka's answer to DescribeConfigs, of one resource, as our values."""
    return {
        entry.name: ConfigEntry(
            entry.name,
            entry.value,
            _SOURCES.get(int(entry.source), "unknown"),
            entry.is_sensitive,
            entry.is_read_only,
        )
        for entry in answer.values()
    }


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


def _attempts(
    addresses: Tuple[Tuple[str, int], ...],
) -> Iterator[Tuple[Tuple[Tuple[str, int], ...], float]]:
    """(addresses to ask, seconds to wait) without end: short first, then long enough for a huge cluster.

    Each address also by itself: a broker that the others do not let in (a wrong password, an expired
    certificate) accepts clients and knows of no broker, and librdkafka keeps asking it.
    """
    yield addresses, 1.0
    seconds = 2.0
    while True:
        yield addresses, seconds
        if len(addresses) > 1:
            for address in addresses:
                yield (address,), min(seconds, 4.0)
        seconds *= 2


def _snapshot(metadata: Any) -> Snapshot:
    """A Snapshot, without settings, of librdkafka's metadata."""
    topics = {}
    for name, topic in metadata.topics.items():
        if topic.error is not None and not topic.partitions:
            continue
        topics[name] = Topic(
            name,
            tuple(
                Partition(
                    part.id,
                    part.leader if part.leader >= 0 else None,
                    tuple(part.replicas),
                    tuple(part.isrs),
                )
                for part in sorted(topic.partitions.values(), key=lambda entry: entry.id)
            ),
        )
    brokers = tuple(
        Broker(node.id, node.host, node.port)
        for node in sorted(metadata.brokers.values(), key=lambda entry: entry.id)
    )
    controller = metadata.controller_id if metadata.controller_id >= 0 else None
    asked = metadata.orig_broker_id if metadata.orig_broker_id >= 0 else None
    return Snapshot(metadata.cluster_id, controller, brokers, topics, answered_by=asked)


def _waiting(snapshot: Snapshot, changes: Sequence[Change]) -> Dict[str, str]:
    """Changes that cannot be seen in a snapshot without settings: subject to a few words."""
    waiting = {}
    for change in changes:
        topic = snapshot.topics.get(change.subject)
        if change.kind == DELETE:
            if topic is not None:
                waiting[change.subject] = "still there"
        elif topic is None:
            waiting[change.subject] = "not there yet"
        elif change.kind in (CREATE, GROW):
            expected = change.after["partitions"] or 1
            led = sum(1 for part in topic.partitions if part.leader is not None)
            if led < expected:
                waiting[change.subject] = f"{led} of {expected} partitions have a leader"
    return waiting


def _took(entry: Optional[ConfigEntry], key: str, value: Optional[str]) -> bool:
    if value is None:
        return entry is None or entry.source != "topic"
    return entry is not None and same_value(key, value, entry.value)


def _with_config(
    topic: Topic, entries: Mapping[str, ConfigEntry], defaults: Mapping[str, str]
) -> Topic:
    """The topic with its settings, each with what it would fall back to, where that matters."""
    config = {}
    for key, entry in entries.items():
        fallback = None
        for name, factor in _FALLBACKS.get(key, ()):
            if name in defaults:
                value = defaults[name]
                fallback = value if factor is None or value == "-1" else str(int(value) * factor)
                break
        config[key] = ConfigEntry(
            entry.name, entry.value, entry.source, entry.sensitive, entry.read_only, fallback
        )
    return Topic(topic.name, topic.partitions, config)


def _sizes_of(answers: Iterable[Any]) -> Iterator[Tuple[PartitionKey, int]]:
    """((topic, partition), bytes) pairs of kafka-python's answer to DescribeLogDirs."""
    for answer in answers:
        for result in answer.get("results") or answer.get("log_dirs") or ():
            for topic in result.get("topics") or ():
                name = topic.get("name") or topic.get("topic")
                for part in topic.get("partitions") or ():
                    index = part.get("partition_index", part.get("partition"))
                    size = part.get("partition_size", part.get("size"))
                    yield (name, index), size


def _error_of(future: Any) -> Any:
    try:
        future.result()
    except KafkaException as error:
        return error.args[0]
    return None


def _perhaps_done(kind: str, error: Any, repeated: bool) -> bool:
    """Whether the change may have been made in spite of the error: the read-back shows it."""
    if error.code() in (KafkaError.REQUEST_TIMED_OUT, KafkaError._TIMED_OUT):
        return True
    # The answer to the first attempt was lost, and this is what the second one finds.
    done = {
        CREATE: KafkaError.TOPIC_ALREADY_EXISTS,
        GROW: KafkaError.INVALID_PARTITIONS,
        DELETE: KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
    return repeated and error.code() == done.get(kind)


def _passing_codes() -> Tuple[int, ...]:
    return (
        KafkaError.NOT_CONTROLLER,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
    )


def _denied_codes() -> Tuple[int, ...]:
    return (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)


def _passing(error: Any) -> bool:
    """Whether trying again may help: connections and elections, not refusals.

    _PARTIAL is the answer of a broker that knows of no broker: another one may know.
    """
    late = (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT, KafkaError._PARTIAL)
    return error.code() in (*_passing_codes(), *late)
