# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KafkaClient, and kafka-python for what librdkafka has no call for.

Private to this collection. Reassignments, log directories, quotas, defaults of all brokers, loggers and
single offsets of groups go through `ask` and `send`, with the errors of the other client. kafka-python
has no public way to send a message of the protocol that it knows but wraps nowhere: `send` is the one
place that uses its private one.
"""

from __future__ import annotations

import contextlib
import functools
import traceback
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Optional, Tuple, TypeVar

from ansible.module_utils.basic import missing_required_lib

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.apis import missing_api
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import (
    POLL_SECONDS,
    KafkaClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    kafka_python_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    FinalError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

CLIENTS_IMPORT_ERROR = None
try:
    import confluent_kafka  # noqa: F401  pylint: disable=unused-import
    from kafka import KafkaAdminClient
    from kafka.errors import AuthorizationError, UnsupportedVersionError, for_code
    from kafka.errors import KafkaError as OtherError
except ImportError:
    CLIENTS_IMPORT_ERROR = traceback.format_exc()

# A broker that is there and silent is not waited for longer, so that another one is asked.
REQUEST_MAX_SECONDS = 120.0

T = TypeVar("T")
K = TypeVar("K")
# (error code of the protocol, 0 for none; the broker's words)
Answer = Tuple[int, Optional[str]]


def require_both_clients(module: Any) -> None:
    """Fail with Ansible's usual sentence if a client library is missing."""
    if CLIENTS_IMPORT_ERROR:
        module.fail_json(
            msg=missing_required_lib(
                "confluent-kafka and kafka-python", reason="for what only both can do"
            ),
            exception=CLIENTS_IMPORT_ERROR,
        )


class PythonClient(KafkaClient):
    """One cluster, for modules that need both client libraries."""

    def ask(
        self,
        what: str,
        call: Callable[[Any], T],
        rights: str = "Alter and Describe on the cluster",
        seconds: float = 0.0,
    ) -> T:
        """Run a call with a KafkaAdminClient until it succeeds or the timeout is over.

        A client is made for each attempt: one that has lost its controller stays with the old one.
        `what` are words for messages, `rights` what the user needs for it. `seconds`, where they are more
        than the connection's timeout, are for what takes brokers long. AdminError, FinalError where the
        user may not or the brokers cannot.
        """
        seconds = max(seconds, self.connection.timeout)
        deadline = self._clock() + seconds
        while True:
            self.requests[what] += 1
            try:
                with self.python_admin(min(seconds, REQUEST_MAX_SECONDS)) as admin:
                    return call(admin)
            except AuthorizationError as error:
                raise FinalError(
                    self._failed(what, f"the user may not ({error.message})", f"grant it {rights}")
                ) from error
            except UnsupportedVersionError as error:
                reason, remedy = missing_api(str(error))
                raise FinalError(self._failed(what, reason, remedy)) from error
            # RuntimeError: "Failed to find active controller id!"
            except (OtherError, OSError, ValueError, AssertionError, RuntimeError) as error:
                if self._clock() >= deadline:
                    text = " ".join(str(error).split())[:200]
                    remedy = f"run it again once the brokers answer; the user needs {rights}"
                    raise AdminError(
                        self._failed(what, f"{type(error).__name__}: {text}", remedy)
                    ) from error
            self._sleep(POLL_SECONDS)

    def ask_for_each(
        self,
        what: str,
        items: Mapping[K, T],
        call: Callable[[Mapping[K, T], Any], Mapping[K, Answer]],
        rights: str,
        deadline: float,
    ) -> Dict[K, Tuple[str, str]]:
        """Send a request of several items until each is done or refused; (words, code) of the refused.

        What a broker refuses only for now is sent again until `deadline`, so a repetition must do no
        harm. Never raises: where nobody answers, that is what became of every item that is left.
        """
        pending, failed = dict(items), {}
        while pending:
            try:
                left = deadline - self._clock()
                answers = self.ask(what, functools.partial(call, pending), rights, left)
            except AdminError as error:
                return {**failed, **dict.fromkeys(pending, (error.problem.reason, ""))}
            again = {}
            for key, (code, words) in answers.items():
                if not code:
                    continue
                error_type = for_code(code)
                if getattr(error_type, "retriable", False) and self._clock() < deadline:
                    again[key] = pending[key]
                    continue
                text = " ".join((words or error_type.__name__).split()).rstrip(".")
                if issubclass(error_type, AuthorizationError):
                    text = f"{text}; the user needs {rights}"
                failed[key] = (text, getattr(error_type, "message", ""))
            pending = again
            if pending:
                self._sleep(POLL_SECONDS)
        return failed

    def _failed(self, what: str, reason: str, remedy: str) -> Problem:
        where = (self.connection.bootstrap,)
        return Problem("cluster.read", f"{what} failed: {reason}", remedy, where)

    @contextlib.contextmanager
    def python_admin(self, seconds: float = 0.0) -> Iterator[Any]:
        """A KafkaAdminClient of kafka-python, closed afterwards; its own errors come through.

        A request may take the connection's timeout, or `seconds` where they are more.
        """
        with kafka_python_settings(self.connection) as settings:
            longest = max(settings["request_timeout_ms"], int(seconds * 1000))
            settings["request_timeout_ms"] = longest
            admin = KafkaAdminClient(**settings)
            try:
                yield admin
            finally:
                admin.close()


def send(admin: Any, request: Any, broker: Optional[int] = None, controller: bool = False) -> Any:
    """Send a message of kafka.protocol through a KafkaAdminClient; returns the response as it came.

    To `broker`, to the `controller`, or to any broker. Errors within the response are the caller's.
    """
    if controller:
        # With a function that reads them it would try again by itself: `ask` does, with a new client.
        return admin._manager.run(admin._send_request_to_controller, request)
    return admin._manager.run(admin._manager.send, request, broker)


def send_to_each(
    admin: Any, make_request: Callable[[], Any], brokers: Iterable[int]
) -> Dict[int, Any]:
    """Send a message to several brokers at once; the response, or the error, of each.

    So a broker that is silent costs its timeout once, whatever the number of brokers.
    """
    answers: Dict[int, Any] = {}

    async def all_of_them() -> None:
        sent = {broker: admin._manager.send(make_request(), broker) for broker in brokers}
        for broker, future in sent.items():
            try:
                answers[broker] = await future
            except (OtherError, OSError) as error:
                answers[broker] = error

    admin._manager.run(all_of_them)
    return answers


def release_of(admin: Any) -> Tuple[int, ...]:
    """The release of the broker that a KafkaAdminClient has reached, such as (4, 1), as its requests tell."""
    return tuple(admin._manager.broker_version or ())


def raise_for(code: int, words: Optional[str] = None) -> None:
    """Raise kafka-python's error for an error code of the protocol, unless it is 0; `ask` knows them."""
    if code:
        raise for_code(code)(words or "")
