# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ACLs of a cluster: read, created, deleted, in as many requests for a thousand as for ten.

Private to this collection. kafka-python sends the messages: librdkafka knows neither users nor delegation
tokens as resources.
"""

from __future__ import annotations

import functools
import math
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
    Tuple,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.acls.items import (
    NO_AUTHORIZER,
    Binding,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
    BATCH,
    POLL_SECONDS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.python import (
    PythonClient,
    release_of,
    send,
    send_to_each,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Failure,
    FinalError,
)

try:
    from kafka.errors import KafkaError as OtherError
    from kafka.errors import SecurityDisabledError, for_code
    from kafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

# The protocol's numbers.
_TYPES = dict(topic=2, group=3, cluster=4, transactional_id=5, delegation_token=6, user=7)
_PATTERNS = dict(literal=3, prefixed=4)
_PERMISSIONS = dict(deny=2, allow=3)
_IN_ORDER = (
    *("all", "read", "write", "create", "delete", "alter", "describe", "cluster_action"),
    *("describe_configs", "alter_configs", "idempotent_write", "create_tokens", "describe_tokens"),
    "two_phase_commit",
)
_OPERATIONS = {name: number for number, name in enumerate(_IN_ORDER, 2)}
_ANY = 1
_DENIED = "CLUSTER_AUTHORIZATION_FAILED"
# How long brokers that differ are waited for although they do not come closer.
STALE_SECONDS = 30.0
# As long as more of an unanswered batch becomes true, the broker is at work on it.
AT_WORK_SECONDS = 5.0
UNKNOWN = "the brokers may do it later: run the task again"
THERE = "somebody else has made it"
GONE = "somebody else has taken it away"
LATE = "not sent within operation_timeout; run the task again, it goes on where this one stopped"


# By broker.
Views = Dict[int, FrozenSet[Binding]]
# (error code, text) of each binding.
Answers = List[Tuple[int, str]]


class AclClient(PythonClient):
    """One cluster, for the modules of ACLs."""

    def fetch_bindings(self) -> FrozenSet[Binding]:
        """All bindings as some broker has them; one request.

        FinalError without the right, and where the brokers have no authorizer.
        """
        return self.ask(
            "reading ACLs",
            lambda admin: _bindings(send(admin, _description(()))),
            "Describe on the cluster",
        )

    def fetch_release(self) -> Tuple[int, ...]:
        """The release of some broker, such as (3, 9); empty where that cannot be told."""
        return self.ask("learning the release", release_of, "Describe on the cluster")

    def fetch_views(self, concerned: Optional[Collection[Binding]]) -> Views:
        """Which of these bindings (None: of all) each live broker that answers has; the errors of fetch_bindings."""
        brokers = [broker.id for broker in self.fetch_metadata().brokers]

        def call(admin: Any) -> Views:
            self.requests["reading ACLs"] += len(brokers) - 1  # one is counted by ask
            views: Views = {}
            silent: Optional[Exception] = None
            request = functools.partial(_description, concerned or ())
            for broker, answer in send_to_each(admin, request, brokers).items():
                try:
                    if isinstance(answer, Exception):
                        raise answer
                    found = _bindings(answer)
                    views[broker] = found if concerned is None else found.intersection(concerned)
                except (OtherError, OSError) as error:
                    silent = error
            if not views and silent is not None:
                raise silent
            return views

        return self.ask("reading ACLs", call, "Describe on the cluster")

    def fetch_agreed_views(
        self,
        concerned: Optional[Collection[Binding]],
        deadline: float = math.inf,
        select: Callable[[FrozenSet[Binding]], FrozenSet[Binding]] = frozenset,
    ) -> Views:
        """The views, or what `select` takes of each, once they are the same.

        In ZooKeeper mode each broker answers by what it has heard so far: one that has not heard of a
        removal would even say that it has just made it. They are waited for until the deadline, as long
        as they come closer.
        """
        least, since = math.inf, 0.0
        while True:
            told = self.fetch_views(concerned)
            views = {broker: select(view) for broker, view in told.items()}
            number, now = len(in_dispute(views)), self._clock()
            if number < least:
                least, since = number, now
            if not number or now >= min(deadline, since + STALE_SECONDS):
                return views
            self._sleep(POLL_SECONDS)

    def look(self, select: Callable[[FrozenSet[Binding]], FrozenSet[Binding]]) -> Views:
        """All views of what `select` takes, once they are the same or the connection's timeout is over."""
        return self.fetch_agreed_views(None, self._clock() + self.connection.timeout, select)

    def create(self, bindings: Sequence[Binding], deadline: float) -> List[Failure]:
        """Create bindings, BATCH in a request; those that the cluster refused, or did not reach in time."""
        return self._change("create", bindings, _create, deadline)

    def delete(self, bindings: Sequence[Binding], deadline: float) -> List[Failure]:
        """Delete bindings, BATCH in a request; those that the cluster refused, or did not reach in time."""
        return self._change("delete", bindings, _delete, deadline)

    def _change(
        self,
        kind: str,
        bindings: Sequence[Binding],
        sent: Callable[..., Answers],
        deadline: float,
    ) -> List[Failure]:
        """Send batches until the deadline. In ZooKeeper mode a broker writes one binding after another.

        So a request may take long, and the connection's timeout, which tells whether anybody is
        there, does not bound it. Where no answer came, the cluster is asked what it has done.
        """
        failures: List[Failure] = []
        unanswered: List[Binding] = []
        for start in range(0, len(bindings), BATCH):
            batch = bindings[start : start + BATCH]
            left = deadline - self._clock()
            if start and left <= 0:
                failures += [Failure(each.subject, LATE, kind) for each in bindings[start:]]
                break
            what = f"changing ACLs ({kind})"
            asked = self.requests[what]
            try:
                call = functools.partial(sent, bindings=batch)
                answers = self.ask(what, call, "Alter on the cluster", left)
            except AdminError as error:
                reason = error.problem.reason
                failures += [Failure(each.subject, reason, kind) for each in batch]
                unanswered += [] if error.final else batch
                continue
            for binding, (code, text) in zip(batch, answers):
                if code:
                    failures.append(_failure(binding, kind, code, text))
                elif text == GONE and self.requests[what] == asked + 1:
                    # Otherwise it may be what an attempt without an answer has done.
                    failures.append(Failure(binding.subject, text, kind, moot=True))
        return self._without_done(kind, failures, unanswered, deadline)

    def _without_done(
        self,
        kind: str,
        failures: Sequence[Failure],
        unanswered: Sequence[Binding],
        deadline: float,
    ) -> List[Failure]:
        """The failures without changes that were made although no answer came.

        The broker may still be at work on them: it is watched until the deadline, and for as long as
        more of them become true. One broker that shows a change is enough, since none did before.
        """
        if not unanswered:
            return list(failures)
        left, since = set(unanswered), self._clock()
        while True:
            try:
                views = list(self.fetch_views(left).values())
            except AdminError:
                views = []
            done = {each for each in left for view in views if (each in view) == (kind == "create")}
            now = self._clock()
            left, since = left - done, now if done else since
            if not left or now >= max(deadline, since + AT_WORK_SECONDS):
                break
            self._sleep(POLL_SECONDS)
        subjects = {each.subject: each in left for each in unanswered}
        return [
            replace(each, error=f"{each.error}; {UNKNOWN}") if subjects.get(each.subject) else each
            for each in failures
            if subjects.get(each.subject, True)
        ]


def in_dispute(views: Views) -> FrozenSet[Binding]:
    """The bindings that some brokers have and others have not."""
    each = list(views.values())
    return frozenset().union(*each) - frozenset.intersection(*each) if each else frozenset()


def _failure(binding: Binding, kind: str, code: int, text: str) -> Failure:
    error = for_code(code)
    name = getattr(error, "message", "") or error.__name__
    words = text or getattr(error, "description", "") or name
    if name == _DENIED:
        words = "the user may not; it needs Alter on the cluster"
    return Failure(binding.subject, words, kind, name)


def _description(concerned: Collection[Binding]) -> Any:
    """The request for what these bindings have in common, so that brokers send little else; for all if none."""

    def common(field: str) -> Optional[str]:
        values = {getattr(each, field) for each in concerned}
        return values.pop() if len(values) == 1 else None

    def number(field: str, table: str = "") -> int:
        value = common(field)
        return _ANY if value is None else _number(table or field, value)

    return DescribeAclsRequest(
        resource_type_filter=number("resource_type", "type"),
        resource_name_filter=common("resource_name"),
        pattern_type_filter=number("pattern"),
        principal_filter=common("principal"),
        host_filter=common("host"),
        operation=number("operation"),
        permission_type=number("permission"),
    )


def _bindings(response: Any) -> FrozenSet[Binding]:
    """The bindings of an answer; raises kafka-python's error."""
    if response.error_code:
        error = for_code(response.error_code)
        if issubclass(error, SecurityDisabledError):
            raise FinalError(NO_AUTHORIZER)
        raise error(response.error_message)
    names = {key: _names(table) for key, table in _TABLES.items()}
    return frozenset(
        Binding(
            _word(names["type"], found.resource_type),
            found.resource_name,
            _word(names["pattern"], found.pattern_type),
            acl.principal,
            _word(names["permission"], acl.permission_type),
            _word(names["operation"], acl.operation),
            acl.host,
        )
        for found in response.resources
        for acl in found.acls
    )


_TABLES: Mapping[str, Mapping[str, int]] = {
    "type": _TYPES,
    "pattern": _PATTERNS,
    "permission": _PERMISSIONS,
    "operation": _OPERATIONS,
}


def _names(table: Mapping[str, int]) -> Dict[int, str]:
    return {number: name for name, number in table.items()}


def _word(names: Mapping[int, str], number: int) -> str:
    """The word for a number; the number itself for what a younger Kafka has."""
    return names.get(number, str(number))


def _number(table: str, word: str) -> int:
    return _TABLES[table][word] if word in _TABLES[table] else int(word)


def _create(admin: Any, bindings: Sequence[Binding]) -> Answers:
    """(error code, text) of each."""
    creations = [
        CreateAclsRequest.AclCreation(
            resource_type=_number("type", each.resource_type),
            resource_name=each.resource_name,
            resource_pattern_type=_number("pattern", each.pattern),
            principal=each.principal,
            host=each.host,
            operation=_number("operation", each.operation),
            permission_type=_number("permission", each.permission),
        )
        for each in bindings
    ]
    version = _least_version(bindings)
    response = send(admin, CreateAclsRequest(creations=creations, min_version=version))
    return [(result.error_code, result.error_message or "") for result in response.results]


def _delete(admin: Any, bindings: Sequence[Binding]) -> Answers:
    """(error code, text) of each; what is no longer there is no error, and its text is GONE."""
    filters = [
        DeleteAclsRequest.DeleteAclsFilter(
            resource_type_filter=_number("type", each.resource_type),
            resource_name_filter=each.resource_name,
            pattern_type_filter=_number("pattern", each.pattern),
            principal_filter=each.principal,
            host_filter=each.host,
            operation=_number("operation", each.operation),
            permission_type=_number("permission", each.permission),
        )
        for each in bindings
    ]
    version = _least_version(bindings)
    response = send(admin, DeleteAclsRequest(filters=filters, min_version=version))
    answers = []
    for result in response.filter_results:
        # within a filter that was accepted, the one binding may still not have gone
        parts = [(match.error_code, match.error_message) for match in result.matching_acls]
        parts = [(result.error_code, result.error_message), *parts]
        fine = (0, "" if result.matching_acls else GONE)
        answers.append(next(((code, text or "") for code, text in parts if code), fine))
    return answers


def _least_version(bindings: Sequence[Binding]) -> int:
    """Users are resources since version 3 of the messages."""
    return 3 if any(each.resource_type == "user" for each in bindings) else 1
