# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""What the driver asks the cluster for: brokers, a topic, offsets. The only importer of the admin
client.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Collection, Mapping, Optional, Sequence

from flow.messages.failure import CannotRun, lacks
from flow.messages.librdkafka import LastError, quiet_logger
from flow.record.partition import Partition

# what is asked of a topic's settings
MIN_ISR, TIMESTAMP_TYPE = "min.insync.replicas", "message.timestamp.type"
CLEANUP_POLICY = "cleanup.policy"
MOST_BYTES, SEGMENT_BYTES = "max.message.bytes", "segment.bytes"

# Seconds for one answer of a partition's leader. The new one is not asked before the next try, and
# librdkafka keeps a core busy while it waits for one that has died.
_LEADER_ANSWERS = 3
# The same of the controller, which is asked for settings.
_CONTROLLER_SECONDS = 5
# Seconds in which a partition gets another leader, once it is known to have none.
_LEADER_MOVES = 5

# For what no broker knows that was asked: brokers that have just started learn of partitions one by one.
ABSENT_SECONDS = 15

# Seconds for one bootstrap server, which may be down.
_ALONE_SECONDS = 3

# Answers of why_unseen.
HIDDEN, GONE = "hidden", "gone"

# Errors by which the controller refuses a topic, although its name is not taken.
_NOT_TAKEN = ("POLICY_VIOLATION", "INVALID_REPLICATION_FACTOR")


_REMEDY_OF = {
    "POLICY_VIOLATION": "give a --topic that exists, or --partitions and --replication-factor as that wants them",
    "INVALID_REPLICATION_FACTOR": "give another --replication-factor",
    "INVALID_PARTITIONS": "give another number of --partitions",
    "TOPIC_EXCEPTION": "give another --topic",  # its name
    "TOPIC_ALREADY_EXISTS": "give another --topic, or run it again",
    "INVALID_CONFIG": "see that the cluster allows topics their own settings, or give a --topic that exists",
}


@dataclass(frozen=True)
class Description:
    """The cluster as the job sees it."""

    cluster_id: str
    brokers: dict  # id -> "host:port" as advertised on the listener that the job uses


def addresses_of(metadata) -> dict:
    """id -> "host:port" of the brokers, IPv6 in brackets; the job runs without the collection."""
    addresses = {}
    for number, broker in sorted(metadata.brokers.items()):
        host = f"[{broker.host}]" if ":" in broker.host else broker.host
        addresses[number] = f"{host}:{broker.port}"
    return addresses


class Refused(CannotRun):
    """The controller has answered that it does not create the topic, so none comes of it."""


class AlreadyThere(Refused):
    """A topic of this name exists: somebody else's, unless only this run can have thought of the name."""


class Cluster:
    """One connection; every call has a deadline and raises CannotRun with a sentence."""

    def __init__(self, client_settings: dict, timeout: float):
        try:
            import confluent_kafka
            from confluent_kafka.admin import AdminClient
        except ImportError as error:
            raise CannotRun(lacks("confluent_kafka")) from error
        self._kafka = confluent_kafka
        self._timeout = timeout
        self._heard = LastError()
        self._hopeless = False  # waiting will not make these credentials right
        # whoever asks for a topic by its name would make one that is gone anew, where brokers allow that
        own = {"error_cb": self._remember, "allow.auto.create.topics": False}
        settings = {**own, **client_settings}
        try:
            self._admin = AdminClient(settings, logger=quiet_logger())
        except confluent_kafka.KafkaException as error:
            raise CannotRun(f"the client settings are not usable: {error.args[0].str()}") from error
        self._servers = client_settings["bootstrap.servers"]

    def _remember(self, error) -> None:
        self._hopeless |= error.name() in ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL")
        self._heard(error)

    def _failure(self, what: str, error, right: str = "Describe on it") -> CannotRun:
        """The sentence, with the remedy; right: what the user may lack, if the cluster says so."""
        self._admin.poll(0)  # serves error_cb
        detail = error.args[0].str() if error.args and hasattr(error.args[0], "str") else str(error)
        told = f"{what} at {self._servers}: {self._heard.beside(detail)}"
        return CannotRun(f"{told}; {self._remedy(error, right)}")

    def _remedy(self, error, right: str) -> str:
        name = _name_of(error)
        if name.endswith("AUTHORIZATION_FAILED"):
            return f"allow this user {right}"
        if self._hopeless:
            return "see the credentials and certificates of --command-config"
        return _REMEDY_OF.get(
            name, "see that the brokers run and can be reached, then run it again"
        )

    def describe(self) -> Description:
        """Cluster id and registered brokers."""
        metadata = self._metadata()
        return Description(metadata.cluster_id, addresses_of(metadata))

    def _metadata(self, topic: Optional[str] = None):
        """The cluster's metadata, of all topics or of this one; brokers that are just starting give half an
        answer, so ask again.
        """
        more = {} if topic is None else {"topic": topic}
        deadline = time.monotonic() + self._timeout
        while True:
            left = deadline - time.monotonic()
            try:
                return self._admin.list_topics(timeout=max(1, min(left, 5)), **more)
            except self._kafka.KafkaException as error:
                self._admin.poll(0)  # serves error_cb
                if left < 1 or self._hopeless:
                    raise self._failure("no answer from the cluster", error) from error
            time.sleep(0.2)

    def has_topic(self, topic: str) -> bool:
        """Whether the topic exists."""
        return topic in self._metadata().topics

    def why_unseen(self, topic: str) -> str:
        """Why brokers leave a topic out where they are asked for all: HIDDEN, GONE, or "" where it is there
        after all, or nobody could say.

        Metadata of all topics has nothing of those that the principal may not see; asked by name, a broker
        says which of both it is.
        """
        from confluent_kafka import KafkaError

        collection = self._kafka.TopicCollection([topic])
        try:
            self._admin.describe_topics(collection)[topic].result(self._timeout)
        except Exception as error:
            code = getattr(error.args[0], "code", None) if error.args else None
            number = code() if code is not None else KafkaError._FAIL
            return {
                KafkaError.TOPIC_AUTHORIZATION_FAILED: HIDDEN,
                KafkaError.UNKNOWN_TOPIC_OR_PART: GONE,
            }.get(number, "")
        return ""

    def absent_holders(self) -> list:
        """Ids of brokers that hold replicas and are not registered: they are down."""
        metadata = self._metadata()
        held = {
            broker
            for topic in metadata.topics.values()
            for partition in topic.partitions.values()
            for broker in partition.replicas
        }
        return sorted(held - set(metadata.brokers))

    def create_topic(
        self, topic: str, assignment: list, config: dict, absent: Sequence = ()
    ) -> None:
        """Create the topic with these replicas (partition -> broker ids, preferred leader first)
        and settings, and wait for its leaders. Brokers that are `absent` lead nothing. AlreadyThere
        where there is one of this name; Refused for any other reason that the controller gives.
        """
        from confluent_kafka import KafkaError
        from confluent_kafka.admin import NewTopic

        new = NewTopic(
            topic,
            num_partitions=len(assignment),
            replica_assignment=assignment,
            config=config,
        )
        future = self._admin.create_topics([new], operation_timeout=self._timeout)[topic]
        try:
            future.result(self._timeout + 5)
        except Exception as error:
            failure = self._failure(
                f"topic {topic} could not be created",
                error,
                "Create on it, or give a --topic that exists",
            )
            code = getattr(error.args[0], "code", None) if error.args else None
            number = code() if code is not None else KafkaError._FAIL
            if number == KafkaError.TOPIC_ALREADY_EXISTS:
                raise AlreadyThere(str(failure)) from error
            if (
                number > 0 and number != KafkaError.REQUEST_TIMED_OUT
            ):  # below it is the client's own
                raise Refused(str(failure)) from error
            raise failure from error
        deadline = time.monotonic() + self._timeout
        wanted = [next(b for b in replicas if b not in absent) for replicas in assignment]
        while True:
            leaders = [p["leader"] for _, p in sorted(self.layout(topic).items())]
            if leaders == wanted:
                return
            if time.monotonic() > deadline:
                # judged later: coverage says which broker leads nothing
                if None not in leaders and len(leaders) == len(wanted):
                    return
                if not leaders and self.why_unseen(topic) == HIDDEN:
                    raise CannotRun(
                        f"topic {topic} was created, and this user may not see it; allow it Describe on it"
                    )
                raise CannotRun(
                    f"topic {topic} has no leaders after {self._timeout:.0f} s: {leaders}"
                )
            time.sleep(0.05)

    def add_partitions(self, topic: str, total: int, assignment: list) -> None:
        """Let the topic have so many partitions, the new ones with these replicas, preferred leader first."""
        from confluent_kafka.admin import NewPartitions

        new = NewPartitions(topic, total, replica_assignment=assignment)
        try:
            self._admin.create_partitions([new], operation_timeout=self._timeout)[topic].result(
                self._timeout + 5
            )
        except Exception as error:
            raise self._failure(
                f"partitions could not be added to {topic}", error, "Alter on it"
            ) from error

    def delete_topic(
        self, topic: str, within: Optional[float] = None, until_gone: bool = False
    ) -> bool:
        """Delete the topic, if it is there, and say whether it was; raises CannotRun if the cluster does
        not, `within` so many seconds (default: the timeout).

        Asked again with new metadata, because the controller may have moved during the run.

        until_gone: wait until nothing of it is left. What brokers say of a topic is of no use for that. One may not
        have heard of it yet; and with ZooKeeper a deleted topic leaves the metadata at once, but the cluster only when
        each of its replicas has been deleted. So the controller is asked, whether the name is taken.
        """
        seconds = self._timeout if within is None else within
        deadline = time.monotonic() + seconds
        is_there = self._is_taken if until_gone else self.has_topic
        trouble: Exception = TimeoutError("no answer")
        found = False
        while is_there(topic):
            found = True
            try:
                self._admin.delete_topics([topic])[topic].result(seconds)
                if not until_gone:
                    break
            except self._kafka.KafkaException as error:  # it is going, or the controller moves
                trouble = error
            except Exception as error:
                trouble = TimeoutError(str(error) or "no answer")
            if time.monotonic() > deadline or "AUTHORIZATION" in str(trouble):
                raise self._failure(
                    f"topic {topic} could not be deleted", trouble, "Delete on it"
                ) from trouble
            time.sleep(0.1)
        return found

    def why_in_use(self, topic: str, ends: Optional[Mapping[int, int]], patience: float) -> str:
        """Why a topic may hold records of others, "" if it does not: records stand behind these ends (partition ->
        end offset; None: nobody knows them), or its own cannot be asked for within so many seconds.
        """
        try:
            now = self.positions(topic, patience=patience)
        except CannotRun as error:
            return f"whether others write to it is not known: {error}"
        more = [n for n, place in now.items() if ends is None or place.end > ends.get(n, 0)]
        return f"others write to it, to partitions {more}" if more else ""

    def _is_taken(self, topic: str) -> bool:
        """Whether the controller would refuse to create such a topic, since there is one."""
        from confluent_kafka.admin import NewTopic

        new = NewTopic(topic, num_partitions=1, replication_factor=1)
        try:
            self._admin.create_topics([new], validate_only=True)[topic].result(self._timeout)
            return False
        except self._kafka.KafkaException as error:
            name = error.args[0].name()
            # refused for another reason: it is not taken. Anything else is not an answer: ask again
            return not ("AUTHORIZATION" in name or name in _NOT_TAKEN)
        except Exception:  # no answer
            return True

    def set_config(self, topic: str, values: dict) -> None:
        """Change these settings of the topic and leave its others as they are."""
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

        change = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in values.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=change)
        try:
            self._admin.incremental_alter_configs([resource])[resource].result(self._timeout)
        except Exception as error:
            raise self._failure(
                f"the settings of {topic} could not be set", error, "AlterConfigs on it"
            ) from error

    def broker_config(self, brokers: list, names: tuple) -> dict:
        """broker -> {name: value in force there}, of the names that it knows."""
        # librdkafka asks one broker at a time
        return {
            broker: self._config("BROKER", str(broker), f"broker {broker}", names)
            for broker in brokers
        }

    def settings_of_brokers(self, brokers: list, names: tuple, seconds: float) -> dict:
        """The same of those that answer within so many seconds, all asked at once; others are left out."""
        from confluent_kafka.admin import ConfigResource

        asked = {}
        for broker in brokers:  # a request may name one broker
            resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
            asked[broker] = self._admin.describe_configs([resource], request_timeout=seconds)
        return self._told(asked, names, seconds)

    def settings_applied(self, topic: str, brokers: list, names: tuple, seconds: float) -> dict:
        """broker -> {name: value that this broker applies to the topic}, of those that answer within so many
        seconds; asked again meanwhile, since one that has just started does not know the topic yet.

        Any broker may be asked for a topic's settings, and answers by its own file where the topic has none.
        """
        from confluent_kafka.admin import ConfigResource

        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        deadline, found = time.monotonic() + seconds, {}
        while left := [broker for broker in brokers if broker not in found]:
            within = deadline - time.monotonic()
            if within < 0.1:
                break
            asked = {
                broker: self._admin.describe_configs(
                    [resource], request_timeout=within, broker=broker
                )
                for broker in left
            }
            found.update(self._told(asked, names, within))
            time.sleep(0 if len(found) == len(brokers) else 0.1)
        return found

    @staticmethod
    def _told(asked: dict, names: tuple, seconds: float) -> dict:
        """broker -> {name: value} of the brokers' answers that come within so many seconds."""
        deadline, found = time.monotonic() + seconds, {}
        for broker, futures in asked.items():
            try:
                (future,) = futures.values()
                entries = future.result(max(0.0, deadline - time.monotonic()))
            except Exception:  # dead, or this principal may not ask
                continue
            found[broker] = {name: entries[name].value for name in names if name in entries}
        return found

    def topics(self) -> list:
        """Names of all topics that this principal may see."""
        return sorted(self._metadata().topics)

    def last_records_ms(self, topics: list) -> tuple:
        """(topic -> the greatest timestamp in it, milliseconds since 1970, None if it is empty;
        topic -> why that is not known, such as a partition whose brokers are all down).

        All are asked at once, and those again whose leaders do not answer, or move; a topic that is gone
        is in neither.
        """
        deadline = time.monotonic() + self._timeout
        moved = None  # when a partition that is still without a leader will not get one soon
        moments: dict = {}
        unread: dict = {}
        left = list(topics)
        while left:
            read, dark, silent = self._ask_last_records(left)
            moments.update(read)
            unread = {topic: why for topic, why in unread.items() if topic not in left}
            unread.update({**dark, **silent})
            now = time.monotonic()
            if dark and moved is None:
                moved = now + _LEADER_MOVES
            moving = dark if moved is not None and now < moved else {}
            left = [*silent, *moving] if now < deadline else []
            if left:
                time.sleep(0.1)
        return moments, unread

    def _ask_last_records(self, topics: list) -> tuple:
        """The two results of last_records_ms as of now, and topic -> the error of a leader that gave no
        answer.
        """
        from confluent_kafka.admin import OffsetSpec

        known, moments, dark, silent, wanted = self._metadata().topics, {}, {}, {}, {}
        for topic in topics:
            partitions = known[topic].partitions if topic in known else {}
            leaderless = sorted(n for n, p in partitions.items() if p.leader < 0)
            if leaderless:
                dark[topic] = f"partitions {leaderless} have no leader"
            elif partitions:
                moments[topic] = None
                for number in partitions:
                    place = self._kafka.TopicPartition(topic, number)
                    wanted[place] = OffsetSpec.max_timestamp()
        answers_within = min(_LEADER_ANSWERS, self._timeout)
        asked = wanted and self._admin.list_offsets(wanted, request_timeout=answers_within)
        for place, future in dict(asked).items():
            try:
                moment = _answered(place, future.result(self._timeout)).timestamp
            except Exception as error:
                silent[place.topic] = f"partition {place.partition} cannot be asked ({error})"
                continue
            if moment is not None and moment >= 0:
                moments[place.topic] = max(moment, moments[place.topic] or 0)
        return {topic: ms for topic, ms in moments.items() if topic not in silent}, dark, silent

    def topic_id(self, topic: str) -> str:
        """The topic's id, "" where the cluster gives none or there is no such topic: one that is
        deleted and created again has another.
        """
        collection = self._kafka.TopicCollection([topic])
        try:
            described = self._admin.describe_topics(collection)[topic].result(self._timeout)
        except Exception:  # not every version and not every principal may ask
            return ""
        number = described.topic_id
        return "" if number is None or set(str(number)) <= {"A"} else str(number)

    def layout(self, topic: str, known: Collection = (), wait: float = 0) -> dict:
        """partition -> {leader (None if there is none), replicas, isr}; empty if there is no such
        topic. Asked again for up to `wait` seconds while partitions that are `known` are absent: a broker that
        has just started knows none of a topic's, or some of them.
        """
        started = time.monotonic()
        while True:
            found = self._layout(topic)
            if set(known) <= set(found) or time.monotonic() - started >= wait:
                return found
            time.sleep(0.1)

    def _layout(self, topic: str) -> dict:
        found = self._metadata(topic).topics.get(topic)
        if found is None or found.error is not None:
            return {}
        return {
            n: {
                "leader": p.leader if p.leader >= 0 else None,
                "replicas": tuple(p.replicas),
                "isr": tuple(sorted(p.isrs)),
            }
            for n, p in sorted(found.partitions.items())
        }

    def positions(
        self,
        topic: str,
        wait: float = 0,
        committed: bool = False,
        known: Collection = (),
        patience: Optional[float] = None,
    ) -> dict:
        """partition -> partition.Partition, with the offsets of this moment; asks again while leaders
        are gone or move, for `patience` seconds (default: the timeout).

        `committed`: ends before the first transaction that is still open.
        No such topic: an empty dictionary, but only after `wait` seconds, since brokers hear of a
        new topic one after another. As long is waited for partitions that are `known` and absent: a
        broker that has just started knows some partitions of a topic before the others.
        """
        from confluent_kafka.admin import OffsetSpec

        started, most = time.monotonic(), self._timeout if patience is None else patience
        while True:
            layout = self.layout(topic)
            waited = time.monotonic() - started
            if not layout and waited >= wait:
                return {}
            try:
                # they are numbered from 0 on, without gaps
                holes = sorted(set(range(max(layout, default=0))) - set(layout))
                absent = sorted(set(known) - set(layout)) if waited < wait else []
                if holes or absent:
                    raise LookupError(f"partitions {holes or absent} are not known")
                leaderless = [n for n, p in layout.items() if p["leader"] is None]
                if leaderless:
                    raise LookupError(f"partitions {leaderless} have no leader")
                first = self._offsets(topic, layout, OffsetSpec.earliest())
                end = self._offsets(topic, layout, OffsetSpec.latest(), committed)
                if layout:
                    break
            except Exception as error:
                if waited >= most:
                    raise self._failure(f"offsets of {topic} could not be read", error) from error
            time.sleep(0.1)
        return {
            n: Partition(n, start=first[n][0], end=end[n][0], epoch=end[n][1], **p)
            for n, p in layout.items()
        }

    def stable_ends(
        self, topic: str, wait: float, known: Collection, upto: Optional[dict] = None
    ) -> tuple:
        """(partition -> end offset at the time of the call, partition -> last stable offset) of the partitions that
        are `known`: the latter is not before the former where all transactions of that time have ended. Asks for
        up to `wait` seconds until that is so everywhere. `upto`: partition -> offset, for which it is
        asked instead of the ends. CannotRun if no broker tells of one of these partitions.
        """
        deadline = time.monotonic() + wait

        def offsets(**more) -> dict:
            told = self.positions(topic, wait=ABSENT_SECONDS, known=known, **more)
            if absent := sorted(set(known) - set(told)):
                raise CannotRun(
                    f"no broker tells of partitions {absent} of {topic} any more; wait until the brokers answer again,"
                    " then judge again"
                )
            return {n: told[n].end for n in known}

        ends = {n: end for n, end in (upto or {}).items() if n in known}
        while True:
            now = offsets()
            # a new leader may not have what nobody acknowledged
            ends = {n: min(end, now[n]) for n, end in (ends or now).items()}
            stable = offsets(committed=True)
            if time.monotonic() > deadline or all(stable[n] >= end for n, end in ends.items()):
                return ends, stable
            time.sleep(0.5)

    def _offsets(self, topic: str, layout: dict, spec, committed: bool = False) -> dict:
        isolation = self._kafka.IsolationLevel
        wanted = {self._kafka.TopicPartition(topic, n): spec for n in layout}
        answers = self._admin.list_offsets(
            wanted,
            isolation_level=isolation.READ_COMMITTED if committed else isolation.READ_UNCOMMITTED,
            request_timeout=min(_LEADER_ANSWERS, self._timeout),
        )
        found = {}
        for place, future in answers.items():
            answer = _answered(place, future.result(self._timeout), least=0)
            epoch = answer.leader_epoch
            found[place.partition] = (
                answer.offset,
                epoch if epoch is not None and epoch >= 0 else None,
            )
        return found

    def effective_config(self, topic: str, names: tuple) -> dict:
        """Values in force for the topic, defaults and the brokers' settings included."""
        return self._config("TOPIC", topic, topic, names)

    def _config(self, kind: str, name: str, told: str, keys: tuple) -> dict:
        """Values in force of a TOPIC or a BROKER, which is `told` so in an error."""
        from confluent_kafka.admin import ConfigResource

        resource = ConfigResource(ConfigResource.Type[kind], name)
        deadline = time.monotonic() + self._timeout
        while True:
            left = max(1.0, deadline - time.monotonic())
            try:
                asked = self._admin.describe_configs(
                    [resource], request_timeout=min(left, _CONTROLLER_SECONDS)
                )
                entries = asked[resource].result(left)
                return {key: entries[key].value for key in keys if key in entries}
            except Exception as error:
                if _name_of(error) != "_TIMED_OUT" or time.monotonic() >= deadline:
                    raise self._failure(
                        f"the settings of {told} could not be read", error, "DescribeConfigs on it"
                    ) from error
            # The client waits for a controller that has died, and asks nobody which one it is now.
            with suppress(self._kafka.KafkaException):
                self._admin.list_topics(timeout=min(left, 5))


def _name_of(error: Exception) -> str:
    """The name that librdkafka has for an error; "" of any other."""
    return error.args[0].name() if error.args and hasattr(error.args[0], "name") else ""


def refuse_several(settings: Mapping[str, str]) -> None:
    """CannotRun if the bootstrap servers of these client settings are of several clusters: a client takes whichever
    answers first, and each of the job's clients another one. Whoever does not answer soon is left out.
    """
    servers = [each.strip() for each in settings["bootstrap.servers"].split(",")]
    if len(servers) == 1:
        return
    with ThreadPoolExecutor(len(servers)) as pool:
        ids = list(pool.map(lambda server: _cluster_id(settings, server), servers))
    of_each: dict = {}
    for server, cluster_id in zip(servers, ids):
        if cluster_id:
            of_each.setdefault(cluster_id, []).append(server)
    if len(of_each) > 1:
        told = "; ".join(f"{', '.join(each)}: {cluster_id}" for cluster_id, each in of_each.items())
        raise CannotRun(
            f"the bootstrap servers are of {len(of_each)} clusters ({told}); give those of one cluster"
        )


def _cluster_id(settings: Mapping[str, str], server: str) -> str:
    """The id of the cluster that one server belongs to; "" if it does not say."""
    try:
        alone = Cluster({**settings, "bootstrap.servers": server}, _ALONE_SECONDS)
        return alone.describe().cluster_id or ""
    except CannotRun:  # who asks all of them says why
        return ""


def _answered(place, answer, least: int = -1):
    """The answer, unless it is none: of a leader that has died librdkafka 2.16.0 says offset -1001, and no
    error. Taken for an offset, it would mean a partition without records. `least`: 0 where there is always
    an offset; asked by time, -1 is an answer, too.
    """
    if answer.offset < least:
        raise LookupError(f"the leader of partition {place.partition} does not answer")
    return answer


def spread(brokers: list, partitions: int, replication: int) -> list:
    """Replicas of each partition, so that brokers lead in turn: [[leader, follower, ...], ...]."""
    n = len(brokers)

    def replicas(partition: int) -> list:
        # each round of partitions starts its followers one further, so that pairs mix
        steps = [1 + (partition // n + i) % (n - 1) for i in range(replication - 1)]
        return [brokers[(partition + step) % n] for step in (0, *steps)]

    return [replicas(partition) for partition in range(partitions)]
