# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GroupsClient: consumer groups, their members and offsets, read and changed.

Private to this collection. kafka-python reads: it asks each coordinator once for all of its groups, where
librdkafka sends a request for each group. It does not know the members of groups of the newer protocol
(type consumer, Kafka 4): for those librdkafka asks, all at once. Neither knows those of Kafka Streams'
own protocol (type streams, Kafka 4.2). A commit and a deletion of offsets are
one request for each group, because the protocol has no other.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    FrozenSet,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.connection import (
    POLL_SECONDS,
    error_of,
    passing,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    PythonClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.model import (
    CLASSIC,
    CONSUMER,
    DEAD,
    Group,
    Member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError

try:
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
    from confluent_kafka import TopicPartition as RdPartition
    from kafka import TopicPartition, errors
    from kafka.errors import (
        AuthorizationError,
        BrokerResponseError,
        GroupAuthorizationFailedError,
        GroupIdNotFoundError,
        NoError,
        for_code,
    )
    from kafka.errors import KafkaError as OtherError
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

# What reads offsets and members, and what changes them.
READ_RIGHTS = "Describe on the groups and on their topics"
COMMIT_RIGHTS = "Read on the group and on the topics"
DELETE_RIGHTS = "Delete on the group, and Read on the topics whose offsets are deleted"
# Groups that keep offsets: consumers, those that only ever committed, and Kafka Streams by its own protocol.
_PROTOCOLS = ("consumer", "", "streams")
_SHARE = "share"
# The protocol's number of GROUP_AUTHORIZATION_FAILED.
_DENIED = 30

# (text, the protocol's name of the code)
Refused = Tuple[str, str]


class GroupsClient(PythonClient):
    """One cluster, and the consumer groups that read from it.

    `left_out`: groups that were chosen when it was last asked, and are none of consumers, with what they are;
    `denied`: those that this user may not see.
    """

    def __init__(self, connection: Connection, **rest: Any):
        super().__init__(connection, **rest)
        self.left_out: Dict[str, str] = {}
        self.denied: List[str] = []

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return int(self._wall_clock() * 1000)

    def pause(self, seconds: float) -> None:
        """Let time pass between two looks."""
        self._sleep(seconds)

    # ------------------------------------------------------------ reading

    def fetch_groups(self, chosen: Callable[[str], Any], denied_ok: bool = False) -> List[Group]:
        """The consumer groups whose name is chosen, with members and offsets, sorted by name.

        A group that is deleted meanwhile has the state Dead. `left_out` has those of another kind afterwards.
        With `denied_ok` those that the user may not see are left out, and in `denied`: who may Describe the
        cluster is told the names of all.
        """

        def call(admin: Any) -> List[Group]:
            everything = {
                each["group_id"]: each for each in admin.list_groups() if chosen(each["group_id"])
            }
            self.left_out = {
                name: words
                for name, each in everything.items()
                for words in [_other_kind(each)]
                if words
            }
            listed = {name: each for name, each in everything.items() if name not in self.left_out}
            names = sorted(listed)
            kinds = {name: (listed[name].get("group_type") or CLASSIC).lower() for name in names}
            classic = [name for name in names if kinds[name] == CLASSIC]
            closed: Set[str] = set()

            def permitted(asked: Callable[[List[str]], Dict[str, Any]], names: List[str]) -> Any:
                try:
                    return asked(names) if names else {}
                except GroupAuthorizationFailedError:
                    if not denied_ok:
                        raise
                # One of them is denied, and it is not said which: already who its coordinator is.
                found: Dict[str, Any] = {}
                for name in names:
                    try:
                        found.update(asked([name]))
                    except GroupAuthorizationFailedError:
                        closed.add(name)
                return found

            described = permitted(admin.describe_groups, classic)
            closed.update(name for name, each in described.items() if _code_of(each) == _DENIED)
            if closed and not denied_ok:
                raise GroupAuthorizationFailedError(", ".join(sorted(closed)))
            names = [name for name in names if name not in closed]
            offsets = permitted(lambda names: _committed(admin, names), names)
            names = [name for name in names if name not in closed]
            self.denied = sorted(closed)
            return [
                (
                    _classic_group(name, described[name], offsets.get(name, {}))
                    if name in described
                    else Group(
                        name,
                        listed[name].get("group_state") or "",
                        kinds[name],
                        (),
                        offsets.get(name, {}),
                    )
                )
                for name in names
            ]

        groups = self.ask("reading consumer groups", call, READ_RIGHTS)
        newer = [group for group in groups if group.kind == CONSUMER]
        told = self._describe_newer([group.name for group in newer])
        return [told[group.name](group) if group.name in told else group for group in groups]

    def fetch_committed(self, names: Sequence[str]) -> Dict[str, Dict[Key, int]]:
        """Group to the offsets that it has committed; empty for one that is not there."""
        if not names:
            return {}
        return self.ask(
            "reading offsets of groups", lambda admin: _committed(admin, names), READ_RIGHTS
        )

    def _describe_newer(self, names: Sequence[str]) -> Dict[str, Callable[[Group], Group]]:
        """What completes groups of the newer protocol: state and members."""
        if not names:
            return {}

        def call(timeout: float) -> Dict[str, Callable[[Group], Group]]:
            self.requests["describe_groups"] += len(names)
            futures = self._admin.describe_consumer_groups(list(names), request_timeout=timeout)
            self._await(futures.values())
            found = {}
            for name, future in futures.items():
                error = error_of(future)
                if error is None:
                    found[name] = _completed(future.result())
                elif error.code() == KafkaError.GROUP_ID_NOT_FOUND:
                    # Deleted meanwhile.
                    found[name] = lambda group: replace(group, state=DEAD)
                else:
                    raise KafkaException(error)
            return found

        remedy = f"run it again; this user needs {READ_RIGHTS}"
        return self._read("reading the members of consumer groups", call, remedy)

    # ------------------------------------------------------------ changing

    def alter_offsets(
        self, offsets: Mapping[str, Mapping[Key, int]], deadline: float
    ) -> Dict[Tuple[str, Key], Refused]:
        """Commit offsets in the name of groups without members; those that were refused.

        A request for each group, all at once.
        """
        refused: Dict[Tuple[str, Key], Refused] = {}
        pending = {name: dict(parts) for name, parts in offsets.items() if parts}
        while pending:
            futures = {}
            for name, parts in pending.items():
                self.requests["alter_offsets"] += 1
                wanted = [RdPartition(*key, offset) for key, offset in parts.items()]
                futures.update(
                    self._admin.alter_consumer_group_offsets(
                        [ConsumerGroupTopicPartitions(name, wanted)],
                        request_timeout=max(
                            1.0, min(self.connection.timeout, deadline - self._clock())
                        ),
                    )
                )
            self._await(futures.values())
            again: Dict[str, Dict[Key, int]] = {}
            for name, future in futures.items():
                for key, error in _commit_errors(future, pending[name]).items():
                    if passing(error) and self._clock() < deadline:
                        again.setdefault(name, {})[key] = pending[name][key]
                    else:
                        refused[(name, key)] = (self._why(error), error.name())
            pending = again
            if pending:
                self._sleep(POLL_SECONDS)
                self._renew()  # librdkafka remembers who the coordinator was
        return refused

    def _why(self, error: Any) -> str:
        text = self._explained(error)
        if error.code() in (
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ):
            return f"{text}; the user needs {COMMIT_RIGHTS}"
        return text

    def forget_offsets(
        self, offsets: Mapping[str, Collection[Key]]
    ) -> Dict[Tuple[str, Key], Refused]:
        """Delete what groups have committed for partitions; those that were refused."""
        refused: Dict[Tuple[str, Key], Refused] = {}
        for name, keys in sorted(offsets.items()):

            def call(admin: Any, name: str = name, keys: Collection[Key] = keys) -> Any:
                parts = [TopicPartition(*key) for key in keys]
                try:
                    return admin.delete_group_offsets(name, parts)
                except BrokerResponseError as error:
                    if error.retriable:
                        raise
                    return dict.fromkeys(parts, type(error))

            try:
                answers = self.ask(f"deleting offsets of {name}", call, DELETE_RIGHTS)
            except AdminError as error:
                refused.update(dict.fromkeys(((name, key) for key in keys), (error.message, "")))
                continue
            for part, answer in answers.items():
                if answer is not NoError:
                    refused[(name, (part.topic, part.partition))] = _words(answer)
        return refused

    def delete_groups(self, names: Sequence[str]) -> Dict[str, Refused]:
        """Delete groups: a request to each coordinator; those that were refused."""
        if not names:
            return {}
        what = "deleting groups"
        asked = self.requests[what]
        try:
            answers = self.ask(what, lambda admin: admin.delete_groups(list(names)), DELETE_RIGHTS)
        except AdminError as error:
            return dict.fromkeys(names, (error.message, ""))
        # By the names of classes. What is gone may have been deleted by an attempt without an answer.
        repeated = self.requests[what] > asked + 1
        fine = ("OK", GroupIdNotFoundError.__name__) if repeated else ("OK",)
        return {
            name: _words(getattr(errors, error, OtherError))
            for name, error in answers.items()
            if error not in fine
        }


# ---------------------------------------------------------------- answers as our values


def _other_kind(listed: Mapping[str, Any]) -> str:
    """What a listed group is that keeps no offsets as consumers do, "" for one that does."""
    if (listed.get("group_type") or CLASSIC).lower() == _SHARE:
        return "a share group"
    protocol = listed["protocol_type"]
    return "" if protocol in _PROTOCOLS else f"a group of the protocol {protocol}"


def _committed(admin: Any, names: Sequence[str]) -> Dict[str, Dict[Key, int]]:
    told = admin.list_group_offsets(list(names)) if names else {}
    return {
        name: {
            (part.topic, part.partition): each.offset
            for part, each in parts.items()
            if each.offset >= 0
        }
        for name, parts in told.items()
    }


def _code_of(told: Mapping[str, Any]) -> int:
    """The error code of a described group, which kafka-python gives in words; 0 for none."""
    found = re.match(r"\[Error (-?\d+)\]", told.get("error") or "")
    return int(found[1]) if found else 0


def _classic_group(name: str, told: Mapping[str, Any], offsets: Mapping[Key, int]) -> Group:
    """The group; raises kafka-python's error where the coordinator does not tell of it, as while it loads."""
    code = _code_of(told)
    # Of one that was deleted meanwhile younger brokers say so, and older ones that it is dead.
    if code not in (0, GroupIdNotFoundError.errno):
        raise for_code(code)(told["error"])
    members = tuple(_classic_member(each) for each in told["members"])
    return Group(name, told["group_state"] or DEAD, CLASSIC, members, offsets)


def _classic_member(told: Mapping[str, Any]) -> Member:
    # Bytes where another kind of client uses them for something else.
    assigned, asked = told["member_assignment"], told["member_metadata"]
    assigned = assigned if isinstance(assigned, Mapping) else {}
    partitions = frozenset(
        (each["topic"], number)
        for each in assigned.get("assigned_partitions") or ()
        for number in each["partitions"]
    )
    topics: Optional[FrozenSet[str]] = None
    if isinstance(asked, Mapping):
        topics = frozenset(asked.get("topics") or ())
    return Member(
        told["member_id"], told["client_id"], told["client_host"].lstrip("/"), partitions, topics
    )


def _completed(told: Any) -> Callable[[Group], Group]:
    members = tuple(
        Member(
            each.member_id,
            each.client_id,
            each.host.lstrip("/"),
            frozenset(
                (part.topic, part.partition) for part in each.assignment.topic_partitions or ()
            ),
        )
        for each in told.members
    )
    state = told.state.name.title().replace("_", "")
    return lambda group: Group(group.name, state, CONSUMER, members, group.committed)


def _commit_errors(future: Any, parts: Mapping[Key, int]) -> Dict[Key, Any]:
    """What became of each partition of one group that was not committed."""
    whole = error_of(future)
    if whole is not None:
        return dict.fromkeys(parts, whole)
    answer = future.result()
    return {
        (part.topic, part.partition): (
            part.error.args[0] if isinstance(part.error, KafkaException) else part.error
        )
        for part in answer.topic_partitions
        if part.error is not None
    }


def _words(error: Any) -> Refused:
    """An error class of kafka-python in words, and the protocol's name of its code."""
    code = str(getattr(error, "message", "") or error.__name__)
    text = str(getattr(error, "description", "") or code).rstrip(".")
    if issubclass(error, AuthorizationError):
        text = f"{text}; the user needs {DELETE_RIGHTS}"
    return text, code
