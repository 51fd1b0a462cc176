# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reaching a cluster with confluent-kafka: the connection, and which errors are worth another attempt.

Private to this collection. `reading` builds on this, and `kafka` on that. Clock and
sleep are passed in. `requests` counts what is sent.
"""

from __future__ import annotations

import collections
import concurrent.futures
import logging
import time
from dataclasses import replace
from typing import Any, Callable, Iterable, Iterator, Optional, Tuple, TypeVar

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.reach import (
    ConnectionLog,
    closes_unasked,
    connection_problem,
    listens,
    probe_addresses,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.token import fetch_token
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import (
    OAUTHBEARER,
    Connection,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    FinalError,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

try:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

POLL_SECONDS = 0.25
WATCH_SECONDS = 3.0
# How often another broker may be named as controller, until one listens.
CONTROLLER_LOOKS = 6

T = TypeVar("T")


class ClusterConnection:
    """The connection to one cluster. `connect()` first: it tells unreachable from wrong credentials."""

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
        self._log = ConnectionLog()
        self._asked = connection.addresses
        self._admin: Any = None
        self._kafka_python: Any = None  # kafka-python's
        # The last metadata, until somebody has looked at the controller in them.
        self._named: Any = None

    def connect(self) -> None:
        """Reach the cluster within `timeout`, or raise an AdminError that says what is wrong."""
        deadline = self._clock() + self.connection.timeout
        probe_addresses(self.connection.addresses, self.connection.timeout, self._clock)
        if self.connection.sasl_mechanism == OAUTHBEARER:
            fetch_token(self.connection)
        self._renew()
        # Several addresses: one of them may be right although another is wrong.
        patience = 0 if len(self.connection.addresses) == 1 else 3
        hopeless_since: Optional[float] = None
        for addresses, seconds in attempts(self.connection.addresses):
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
            verdict = self._log.verdict(last)
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
                    connection_problem(self.connection, verdict, self._log.last), **details
                )
            self._sleep(0.1)

    @property
    def mechanism_offered(self) -> bool:
        """False once a broker has said that it does not offer the SASL mechanism."""
        return not self._log.unsupported_mechanism

    def _renew(self) -> None:
        """A new AdminClient: after a controller change an old one keeps asking the wrong broker."""
        logger = logging.Logger("kafkaops.librdkafka")
        logger.addHandler(self._log)
        settings = {
            **librdkafka_settings(replace(self.connection, addresses=self._asked)),
            "error_cb": self._log.error,
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
        self._named = self._admin.list_topics(timeout=timeout)
        return self._named

    def _look_at_controller(self) -> None:
        """Have another broker named as controller where nobody listens at the one that is named.

        librdkafka asks the controller for much, and waits for it to the end of its time. Where controllers of KRaft
        tell brokers who is there, these name any of them; in the midst of a migration also one that is gone.
        """
        for _again in range(CONTROLLER_LOOKS):
            named, self._named = self._named, None
            controller = named.brokers.get(named.controller_id) if named else None
            if controller is None or len(named.brokers) < 2:
                return
            if listens((controller.host, controller.port)):
                return
            try:
                self._list_topics(max(1.0, self.connection.timeout / 4))
            except KafkaException:
                return  # the request itself says why

    def _read(
        self,
        what: str,
        call: Callable[[float], T],
        remedy: str = "",
        rights: str = "Describe and DescribeConfigs",
        any_broker: bool = False,
    ) -> T:
        """Run a read until it succeeds or the timeout is over; returns its value.

        `remedy` is for what may pass, `rights` are what the user needs for it. `any_broker`: whether librdkafka asks
        any broker, so that nobody has to look whether the controller listens.
        """
        deadline = self._clock() + self.connection.timeout
        while True:
            if not any_broker:
                self._look_at_controller()
            try:
                return call(max(1.0, deadline - self._clock()))
            except KafkaException as error:
                last = error.args[0]
                self._admin.poll(0)
            if self._clock() >= deadline or not passing(last):
                denied = last.code() in denied_codes()
                lacking = last.code() == KafkaError._UNSUPPORTED_FEATURE
                if lacking:
                    remedy = "upgrade Kafka"  # the text names request and version
                if denied:
                    remedy = f"grant this user what {what} needs: {rights}"
                raise (FinalError if denied or lacking else AdminError)(
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
        """A new client that begins with the next address alone; see attempts."""
        addresses = self.connection.addresses
        if len(addresses) > 1:
            before = addresses.index(self._asked[0]) if len(self._asked) == 1 else -1
            self._asked = (addresses[(before + 1) % len(addresses)],)
        self._renew()

    def _explained(self, error: Any) -> str:
        """A broker's error; for local ones with what happened to the connections."""
        text = error.str().rstrip(".")
        if error.code() < 0 and self._log.last:
            return f"{text} ({self._log.last.rstrip('.')})"
        return text

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


def attempts(
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


def error_of(future: Any) -> Any:
    try:
        future.result()
    except KafkaException as error:
        return error.args[0]
    return None


def passing_codes() -> Tuple[int, ...]:
    return (
        KafkaError.NOT_CONTROLLER,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        # The first group of a cluster, whose request has the topic of offsets made; and an election.
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
    )


def denied_codes() -> Tuple[int, ...]:
    return (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)


def passing(error: Any) -> bool:
    """Whether trying again may help: connections and elections, not refusals.

    _PARTIAL is the answer of a broker that knows of no broker: another one may know.
    """
    late = (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT, KafkaError._PARTIAL)
    return error.code() in (*passing_codes(), *late)
