# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only importer of confluent-kafka and, where librdkafka has no call, of kafka-python.

Private to this collection. Every method costs a number of requests that does not depend on how
many topics there are, except for writes, which go out in batches of BATCH; `KafkaClient.requests`
counts them, and a test watches. Clock and sleep are handed in.
"""

from __future__ import annotations

import collections
import concurrent.futures
import logging
import os
import ssl
import tempfile
import time
import traceback
from dataclasses import replace

from ansible_collections.kafkaops.cluster.plugins.module_utils._model import (
    Broker,
    ConfigEntry,
    Partition,
    Snapshot,
    Topic,
    same_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan import AdminError, Failure
from ansible_collections.kafkaops.cluster.plugins.module_utils._plan_topics import (
    CONFIGURE,
    CREATE,
    DELETE,
    GROW,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._reach import (
    Trouble,
    probe_addresses,
    sentence,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils._stakes import estimate_stake

CONFLUENT_IMPORT_ERROR = None
try:
    from confluent_kafka import KafkaError, KafkaException, TopicPartition
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
VIEW_ATTEMPTS = 25

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
}


class KafkaClient:
    """One cluster. Use `connect()` first: it tells unreachable from wrong credentials."""

    def __init__(self, connection, clock=time.monotonic, sleep=time.sleep, wall_clock=time.time):
        self.connection = connection
        self.requests = collections.Counter()
        self._clock = clock
        self._sleep = sleep
        self._wall_clock = wall_clock
        self._trouble = Trouble()
        self._admin = None

    # ------------------------------------------------------------ reaching the cluster

    def connect(self):
        """Reach the cluster within `timeout`, or raise an AdminError that says what is wrong."""
        deadline = self._clock() + self.connection.timeout
        probe_addresses(self.connection, self._clock)
        self._renew()
        # Several addresses: one of them may be right although another is wrong.
        patience = 0 if len(self.connection.addresses) == 1 else 3
        hopeless_since = None
        # Short first, so that a hopeless case is told soon; then long enough for a huge cluster.
        attempt = 1.0
        while True:
            try:
                self._list_topics(max(0.5, min(attempt, deadline - self._clock())))
                return
            except KafkaException as error:
                self._admin.poll(0)
                last = error.args[0]
            attempt *= 2
            now = self._clock()
            verdict = self._trouble.verdict(last)
            if verdict and hopeless_since is None:
                hopeless_since = now
            if now >= deadline or (verdict and now - hopeless_since >= patience):
                details = {} if verdict else {"reachable": False}
                raise AdminError(sentence(self.connection, verdict, self._trouble.last), **details)
            self._sleep(0.1)

    def _renew(self):
        """A new AdminClient: after a controller change an old one keeps asking the wrong broker."""
        logger = logging.Logger("kafkaops.librdkafka")
        logger.addHandler(self._trouble)
        settings = {
            **librdkafka_settings(self.connection),
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
            raise AdminError(f"connection settings are refused: {error.args[0].str()}.") from error

    def _list_topics(self, timeout):
        self.requests["metadata"] += 1
        return self._admin.list_topics(timeout=timeout)

    def _read(self, what, call):
        """Run a read until it succeeds or the timeout is over; returns its value."""
        deadline = self._clock() + self.connection.timeout
        while True:
            try:
                return call(max(1.0, deadline - self._clock()))
            except KafkaException as error:
                last = error.args[0]
                self._admin.poll(0)
            if self._clock() >= deadline or not _passing(last):
                raise AdminError(
                    f"{what} failed at {self.connection.bootstrap}: {self._told(last)}."
                )
            self._renew()
            self._sleep(POLL_SECONDS)

    def _told(self, error):
        """A broker's error; for local ones with what the connections suffered."""
        text = error.str().rstrip(".")
        if error.code() < 0 and self._trouble.last:
            return f"{text} ({self._trouble.last.rstrip('.')})"
        return text

    # ------------------------------------------------------------ reading

    def fetch_metadata(self):
        """All brokers and topics, without configurations: one request, to any one broker."""
        snapshot = _snapshot(self._read("reading metadata", self._list_topics))
        expected = self.connection.cluster_id
        if expected and snapshot.cluster_id != expected:
            raise AdminError(
                f"[cluster.foreign] {self.connection.bootstrap}: cluster_id={expected}: it is the "
                f"cluster {snapshot.cluster_id}. Remedy: correct bootstrap_servers or cluster_id."
            )
        return snapshot

    def fetch_every_view(self, snapshot):
        """The metadata as each live broker tells it: broker id to Snapshot, None if it is silent.

        Brokers learn of changes one after another. A fresh client whose only address is that broker
        sticks to it or to another one, about every second time (measured), and the answer tells who
        gave it: so fresh clients are made until one has asked the right broker.
        """
        views = {}
        for broker in snapshot.brokers:
            alone = replace(self.connection, addresses=((broker.host, broker.port),), timeout=5.0)
            views[broker.id] = None
            for _attempt in range(VIEW_ATTEMPTS):
                client = KafkaClient(alone, self._clock, self._sleep, self._wall_clock)
                try:
                    client.connect()
                    metadata = client._list_topics(alone.timeout)
                except (AdminError, KafkaException):
                    break
                finally:
                    self.requests.update(client.requests)
                if metadata.orig_broker_id == broker.id:
                    views[broker.id] = _snapshot(metadata)
                    break
        return views

    def fetch_racks(self):
        """Broker id to rack; metadata as librdkafka shows it has none."""

        def call(timeout):
            self.requests["describe_cluster"] += 1
            return self._admin.describe_cluster(request_timeout=timeout).result()

        return {node.id: node.rack for node in self._read("describing the cluster", call).nodes}

    def fetch_configs(self, names):
        """Effective settings of topics: name to {key: ConfigEntry}; one request.

        Topics that vanished meanwhile are left out.
        """
        if not names:
            return {}
        return self._describe_configs("topic", list(names))

    def fetch_broker_config(self, broker_id):
        """Effective settings of one broker; one request."""
        found = self._describe_configs("broker", [str(broker_id)])
        return found.get(str(broker_id), {})

    def _describe_configs(self, kind, names):
        def call(timeout):
            self.requests[f"describe_{kind}_configs"] += 1
            kinds = {"topic": ConfigResource.Type.TOPIC, "broker": ConfigResource.Type.BROKER}
            resources = [ConfigResource(kinds[kind], name) for name in names]
            found = {}
            futures = self._admin.describe_configs(resources, request_timeout=timeout)
            for resource, future in futures.items():
                try:
                    entries = future.result()
                except KafkaException as error:
                    if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                        continue
                    raise
                found[resource.name] = {
                    entry.name: ConfigEntry(
                        entry.name,
                        entry.value,
                        _SOURCES.get(int(entry.source), "unknown"),
                        entry.is_sensitive,
                        entry.is_read_only,
                    )
                    for entry in entries.values()
                }
            return found

        return self._read(f"describing {kind} settings", call)

    def fetch_topics(self, names, everything=False):
        """A Snapshot with the settings of the named topics (or of all): three requests.

        When none of them exists, the settings of any one topic are read, because the brokers'
        own list of known settings can only be had from a topic.
        """
        snapshot = self.fetch_metadata()
        present = sorted(snapshot.topics if everything else set(names) & set(snapshot.topics))
        asked = present or sorted(snapshot.topics)[:1]
        configs = self.fetch_configs(asked)
        known = frozenset(key for entries in configs.values() for key in entries) or None
        defaults = {}
        if snapshot.brokers:
            entries = self.fetch_broker_config(snapshot.brokers[0].id)
            defaults = {key: e.value for key, e in entries.items() if e.value is not None}
        topics = dict(snapshot.topics)
        for name in present:
            # A topic that vanished between the two requests is gone, not without settings.
            if name in configs:
                topics[name] = _with_config(topics[name], configs[name], defaults)
            else:
                del topics[name]
        return Snapshot(
            snapshot.cluster_id, snapshot.controller, snapshot.brokers, topics, defaults, known
        )

    def fetch_stakes(self, snapshot, cuts):
        """What the plan could delete: name to Stake.

        `cuts` maps topic names to the new (retention_ms, retention_bytes), None where unlimited
        or unchanged. Three requests for offsets, whatever the number of topics (librdkafka sends
        each to the leaders concerned), and one for sizes where kafka-python is installed.
        """
        if not cuts:
            return {}
        now_ms = int(self._wall_clock() * 1000)
        ends, times = [], {}
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
            unknown = f"the records could not be counted: {error.message.rstrip('.')}"
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

    def _offsets(self, specs):
        """(topic, partition) to offset, for one specification each; -1 stays -1."""
        if not specs:
            return {}

        def call(timeout):
            self.requests["list_offsets"] += 1
            asked = {TopicPartition(*key): spec for key, spec in specs.items()}
            # Asked again soon: another may lead by then, and it is not asked before.
            futures = self._admin.list_offsets(asked, request_timeout=min(timeout, 5))
            found = {}
            for partition, future in futures.items():
                found[(partition.topic, partition.partition)] = future.result().offset
            # Of a leader that does not answer librdkafka 2.16.0 says this, and no error. Taken for
            # an offset, it would tell of partitions without records.
            for (topic, partition), offset in sorted(found.items()):
                if offset < -1:
                    text = f"no answer from the leader of {topic}-{partition}"
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, text))
            return found

        return self._read("reading offsets", call)

    def _sizes(self, names):
        """(topic, partition) to bytes of its largest replica, and why there are none."""
        try:
            from kafka import KafkaAdminClient  # librdkafka has no call for log directories
            from kafka.errors import KafkaError as OtherError
        except ImportError:
            return {}, "bytes are unknown, kafka-python is not installed"
        self.requests["describe_log_dirs"] += 1
        sizes = {}
        with _kafka_python_settings(self.connection) as settings:
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

    def validate(self, changes, deadline):
        """Ask the brokers whether they would do it, without doing it: a list of Failure.

        Deletions have no such question in the protocol.
        """
        return self._run(changes, deadline, validate_only=True)

    def apply(self, changes, deadline):
        """Apply changes in their order; the rest goes on where one fails. A list of Failure."""
        return self._run(changes, deadline, validate_only=False)

    def _run(self, changes, deadline, validate_only):
        failures = []
        for kind in (CREATE, GROW, CONFIGURE, DELETE):
            if kind == DELETE and validate_only:
                continue
            chosen = [change for change in changes if change.kind == kind]
            for start in range(0, len(chosen), BATCH):
                failures += self._batch(
                    kind, chosen[start : start + BATCH], deadline, validate_only
                )
        return failures

    def _batch(self, kind, changes, deadline, validate_only):
        pending = {change.subject: change for change in changes}
        failures = []
        repeated = False
        while pending:
            timeout = max(1.0, deadline - self._clock())
            self.requests[kind] += 1
            futures = self._submit(kind, list(pending.values()), timeout, validate_only)
            self._await(futures.values())
            again = {}
            for subject, future in futures.items():
                error = _error_of(future)
                if error is None or (not validate_only and _perhaps_done(kind, error, repeated)):
                    continue
                if error.code() in _passing_codes() and self._clock() < deadline:
                    again[subject] = pending[subject]
                else:
                    failures.append(Failure(subject, self._told(error), kind))
            pending, repeated = again, True
            if pending:
                self._renew()
                self._sleep(POLL_SECONDS)
        return failures

    def _await(self, futures):
        """Wait for a request; every few seconds metadata are read meanwhile.

        A request to a controller that has gone would wait until its timeout for the same broker:
        only fresh metadata tell librdkafka who the new one is.
        """
        while concurrent.futures.wait(futures, timeout=WATCH_SECONDS).not_done:
            try:
                self._list_topics(WATCH_SECONDS)
            except KafkaException:
                continue

    def _submit(self, kind, changes, timeout, validate_only):
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
            entries = [
                AlteredEntry(
                    key,
                    value,
                    incremental_operation=(
                        AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
                    ),
                )
                for key, value in change.after["config"].items()
            ]
            resources.append(
                ConfigResource(
                    ConfigResource.Type.TOPIC, change.subject, incremental_configs=entries
                )
            )
        futures = self._admin.incremental_alter_configs(
            resources, validate_only=validate_only, request_timeout=timeout
        )
        return {resource.name: future for resource, future in futures.items()}

    def unsettled(self, changes):
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
        found = self.fetch_configs([change.subject for change in configured])
        for change in configured:
            entries = found.get(change.subject, {})
            wrong = [
                key
                for key, value in change.after["config"].items()
                if not _took(entries.get(key), key, value)
            ]
            if wrong:
                waiting[change.subject] = f"{', '.join(sorted(wrong))} not yet in force"
        return waiting


# ---------------------------------------------------------------- pure parts


def _snapshot(metadata):
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
    return Snapshot(metadata.cluster_id, controller, brokers, topics)


def _waiting(snapshot, changes):
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


def _took(entry, key, value):
    if value is None:
        return entry is None or entry.source != "topic"
    return entry is not None and same_value(key, value, entry.value)


def _with_config(topic, entries, defaults):
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


def _sizes_of(answers):
    """((topic, partition), bytes) pairs of kafka-python's answer to DescribeLogDirs."""
    for answer in answers:
        for result in answer.get("results") or answer.get("log_dirs") or ():
            for topic in result.get("topics") or ():
                name = topic.get("name") or topic.get("topic")
                for part in topic.get("partitions") or ():
                    index = part.get("partition_index", part.get("partition"))
                    size = part.get("partition_size", part.get("size"))
                    yield (name, index), size


def _error_of(future):
    try:
        future.result()
    except KafkaException as error:
        return error.args[0]
    return None


def _perhaps_done(kind, error, repeated):
    """Whether the change may have been made in spite of the error: the read-back will tell."""
    if error.code() in (KafkaError.REQUEST_TIMED_OUT, KafkaError._TIMED_OUT):
        return True
    # The answer to the first attempt was lost, and this is what the second one finds.
    done = {
        CREATE: KafkaError.TOPIC_ALREADY_EXISTS,
        GROW: KafkaError.INVALID_PARTITIONS,
        DELETE: KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
    return repeated and error.code() == done.get(kind)


def _passing_codes():
    return (
        KafkaError.NOT_CONTROLLER,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
    )


def _passing(error):
    """Whether trying again may help: connections and elections, not refusals."""
    return error.code() in (*_passing_codes(), KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)


def librdkafka_settings(connection):
    """librdkafka's properties of a connection; PEM text is passed on in memory."""
    settings = {
        "bootstrap.servers": connection.bootstrap,
        "security.protocol": connection.security_protocol,
        "client.id": "kafkaops",
        # It would cut short what is allowed to take long, such as creating 500 topics: every call
        # has a timeout of its own instead.
        "socket.timeout.ms": 300000,
    }
    if connection.security_protocol.startswith("SASL"):
        settings["sasl.mechanism"] = connection.sasl_mechanism
        settings["sasl.username"] = connection.sasl_username
        settings["sasl.password"] = connection.sasl_password
    if connection.security_protocol.endswith("SSL"):
        for value, pem, location in (
            (connection.ssl_ca, "ssl.ca.pem", "ssl.ca.location"),
            (connection.ssl_certificate, "ssl.certificate.pem", "ssl.certificate.location"),
            (connection.ssl_key, "ssl.key.pem", "ssl.key.location"),
        ):
            if value:
                settings[pem if "-----BEGIN" in value else location] = value
        if connection.ssl_key_password:
            settings["ssl.key.password"] = connection.ssl_key_password
        if not connection.ssl_check_hostname:
            settings["ssl.endpoint.identification.algorithm"] = "none"
    return settings


class _kafka_python_settings:  # pylint: disable=invalid-name
    """kafka-python's keyword arguments of a connection, as a context.

    Python's ssl module reads certificates and keys from files only: PEM text goes into a
    directory that only we can read, and is gone afterwards.
    """

    def __init__(self, connection):
        self._connection = connection
        self._directory = None

    def __enter__(self):
        connection = self._connection
        settings = {
            "bootstrap_servers": connection.bootstrap.split(","),
            "security_protocol": connection.security_protocol,
            "request_timeout_ms": int(max(1000, connection.timeout * 1000)),
            "client_id": "kafkaops",
        }
        if connection.security_protocol.startswith("SASL"):
            settings["sasl_mechanism"] = connection.sasl_mechanism
            settings["sasl_plain_username"] = connection.sasl_username
            settings["sasl_plain_password"] = connection.sasl_password
        if connection.security_protocol.endswith("SSL"):
            settings["ssl_context"] = self._context()
        return settings

    def _context(self):
        connection = self._connection
        context = ssl.create_default_context()
        context.check_hostname = connection.ssl_check_hostname
        if connection.ssl_ca:
            if "-----BEGIN" in connection.ssl_ca:
                context.load_verify_locations(cadata=connection.ssl_ca)
            else:
                context.load_verify_locations(connection.ssl_ca)
        if connection.ssl_certificate:
            context.load_cert_chain(
                self._path(connection.ssl_certificate, "certificate.pem"),
                self._path(connection.ssl_key, "key.pem"),
                connection.ssl_key_password,
            )
        return context

    def _path(self, value, name):
        if "-----BEGIN" not in value:
            return value
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="kafkaops-")  # mode 0700
        path = os.path.join(self._directory.name, name)
        with open(path, "w", encoding="ascii") as stream:
            stream.write(value)
        return path

    def __exit__(self, *_exc):
        if self._directory is not None:
            self._directory.cleanup()
