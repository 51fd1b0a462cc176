# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""Other listeners than the run's own: can their clients write to every broker, and read from it?

The run goes through one listener. Clients of another one are told other addresses, and log in
otherwise; that this is wrong nobody notices before they come. So one record goes through each of
these listeners to each broker and back, before the run's first.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Callable, Collection, Iterator

from flow.messages.librdkafka import LastError, quiet_logger
from flow.prepare import consuming
from flow.prepare.cluster import addresses_of

# For brokers that another one has not heard of yet, since they have just started.
_BROKERS_SECONDS = 15
_AGAIN_SECONDS = 0.5


@dataclass(frozen=True)
class Listener:
    """One of the cluster's; `settings`: librdkafka's, `bootstrap.servers` among them."""

    name: str
    settings: dict


def exercise(
    listeners: list,
    cluster_id: str,
    topic: str,
    leaders: dict,
    timeout: float,
    registered: Callable[[], Collection[int]],
) -> list:
    """What became of each listener, as verdict.json has it:
    [{name, bootstrap_servers, brokers: [{broker, address, trouble (None: none), unclear}], trouble, unclear}];
    unclear: the trouble is of who asks, and says nothing about the cluster.

    leaders: broker -> a partition of `topic` that it leads. registered: asks the run's own listener for the brokers
    that are there: of others a listener need not know. No step takes longer than `timeout` seconds.
    """
    with ThreadPoolExecutor(max(1, len(listeners))) as pool:
        tried = [
            pool.submit(_Trial(each, timeout).result, cluster_id, topic, leaders, registered)
            for each in listeners
        ]
        return [each.result() for each in tried]


# Names of librdkafka's errors, and words of those that it calls transport's: login, rights, TLS, names.
_OF_THE_CLIENT = re.compile(
    r"_RESOLVE|_SSL|_AUTHENTICATION|SASL_\w+|UNSUPPORTED_SASL_MECHANISM|\w+AUTHORIZATION_FAILED"
)
_SAID_OF_THE_CLIENT = re.compile(r"security\.protocol|in state (SSL|AUTH)")


def of_the_client(name: str, said: str) -> bool:
    """Whether the cause of an error lies with who asks: another one, with other settings, may get through."""
    return bool(_OF_THE_CLIENT.fullmatch(name) or _SAID_OF_THE_CLIENT.search(said))


class Heard(LastError):
    """The same, and of which addresses it was of_the_client; a denied right is of all."""

    def __init__(self) -> None:
        super().__init__()
        self._own: set = set()

    def __call__(self, error) -> None:
        super().__call__(error)
        name, said = error.name(), error.str()
        if of_the_client(name, said):
            self._own.add("" if name.endswith("AUTHORIZATION_FAILED") else said)

    def of_the_client(self, address: str) -> bool:
        """Whether one of the errors was, of this address "host:port"; "": of any."""
        return any(not (said and address) or f"{address}/" in said for said in self._own)


class _Trial:
    """One listener's."""

    def __init__(self, listener: Listener, timeout: float):
        self._listener, self._timeout = listener, timeout
        self._heard = Heard()

    def result(self, cluster_id: str, topic: str, leaders: dict, registered: Callable) -> dict:
        """The listener's entry of verdict.json."""
        from confluent_kafka import KafkaException

        servers = self._listener.settings["bootstrap.servers"]
        entry = {"name": self._listener.name, "bootstrap_servers": servers, "brokers": []}
        try:
            addresses = self._addresses(cluster_id, topic, leaders)
            troubles = self._pass_through(topic, leaders, addresses)
        except LookupError as error:
            return {**entry, "trouble": str(error), "unclear": False}
        except KafkaException as error:
            self._heard_of(error.args[0])
            said = self._heard.beside(error.args[0].str())
            return {**entry, "trouble": said, "unclear": self._heard.of_the_client("")}
        brokers: list = []
        there = registered() if troubles else leaders
        for broker in sorted(leaders):
            address, trouble = addresses.get(broker), troubles.get(broker)
            own = bool(trouble and address and self._heard.of_the_client(address))
            if trouble and broker not in there:
                trouble, own = f"broker {broker} {_LEFT}", True
            found = {"broker": broker, "address": address, "trouble": trouble, "unclear": own}
            brokers.append(found)
        return {**entry, "brokers": brokers, "trouble": None, "unclear": False}

    def _heard_of(self, error) -> None:
        """Of an error that came otherwise than by error_cb, which is only of all at once."""
        if error.name().endswith("AUTHORIZATION_FAILED"):
            self._heard(error)

    def _settings(self, **more) -> dict:
        return {**self._listener.settings, "error_cb": self._heard, **more}

    def _addresses(self, cluster_id: str, topic: str, wanted: Collection[int]) -> dict:
        """broker -> address that the listener's clients are told, as soon as these are all told; LookupError if it
        is another cluster's.
        """
        from confluent_kafka import Consumer

        deadline = time.monotonic() + min(_BROKERS_SECONDS, self._timeout)
        asking = Consumer(self._settings(**{"group.id": "none"}), logger=quiet_logger())
        try:
            found = asking.list_topics(topic, timeout=self._timeout)
            while (
                found.cluster_id == cluster_id
                and not set(wanted) <= set(found.brokers)
                and time.monotonic() < deadline
            ):
                time.sleep(_AGAIN_SECONDS)
                found = asking.list_topics(topic, timeout=self._timeout)
        finally:
            asking.poll(0)  # serves error_cb
            asking.close()
        if found.cluster_id != cluster_id:
            raise LookupError(f"it leads to another cluster, {found.cluster_id}")
        return addresses_of(found)

    def _pass_through(self, topic: str, leaders: dict, addresses: dict) -> dict:
        """broker -> what went wrong with its record."""
        troubles = dict.fromkeys(set(leaders) - set(addresses), "its clients are not told of it")
        asked = {number: broker for broker, number in leaders.items() if broker in addresses}
        offsets, refused = self._write(topic, asked)
        came = self._read(topic, offsets)
        for number, broker in asked.items():
            if number not in offsets:
                reason = refused.get(number) or self._heard.text or "no answer"
                troubles[broker] = f"nothing could be written through {addresses[broker]}: {reason}"
            elif number not in came:
                reason = self._heard.text or "no answer"
                troubles[broker] = f"nothing could be read through {addresses[broker]}: {reason}"
        return troubles

    def _value(self) -> bytes:
        return f"through listener {self._listener.name}".encode()

    def _write(self, topic: str, asked) -> tuple:
        """(partition -> offset of the record, partition -> why it was not acknowledged)."""
        from confluent_kafka import Producer

        offsets, refused = {}, {}

        def delivered(error, message) -> None:
            if error is None:
                offsets[message.partition()] = message.offset()
            else:
                refused[message.partition()] = self._heard.beside(error.str())
                self._heard_of(error)

        limit = int(self._timeout * 1000)
        # a copy of the record that came later would stand among the run's
        settings = {"acks": "all", "enable.idempotence": True, "delivery.timeout.ms": limit}
        client = Producer(self._settings(**settings), logger=quiet_logger())
        for number in asked:
            client.produce(topic, self._value(), partition=number, on_delivery=delivered)
        client.flush(self._timeout)
        client.purge()
        return offsets, refused

    def _read(self, topic: str, offsets: dict) -> set:
        """Partitions whose record came back, as it was."""
        from confluent_kafka import TopicPartition

        came: set = set()

        def record(message) -> bool:
            number = message.partition()
            if (message.offset(), message.value()) == (offsets[number], self._value()):
                came.add(number)
            return False

        def trouble(message) -> consuming.After:
            self._heard(message.error())
            return consuming.After.WAIT

        client = consuming.consumer(self._settings())
        try:
            client.assign([TopicPartition(topic, n, offset) for n, offset in offsets.items()])
            ends = {number: offset + 1 for number, offset in offsets.items()}
            patience = consuming.Patience(self._timeout)
            consuming.read_to_end(client, ends, patience, record, trouble)
        finally:
            client.close()
        return came


_LEFT = "has left the cluster meanwhile"
_WHEN_IT_IS_BACK = "run it again when that broker is back"
_SEE_TO_THE_CLIENT = "see the --listener-config and its rights, and that the name is known here"


def troubles(listeners: list) -> list:
    """Witnesses of the check coverage, from entries of verdict.json."""
    return [
        {"broker": broker, "reason": reason} for broker, reason, own in _told(listeners) if not own
    ]


def unclear(listeners: list) -> list:
    """Sentences about what who asks could not try, from entries of verdict.json."""
    return [
        f"{reason}; {_WHEN_IT_IS_BACK if reason.endswith(_LEFT) else _SEE_TO_THE_CLIENT}"
        for _broker, reason, own in _told(listeners)
        if own
    ]


def _told(listeners: list) -> Iterator[tuple]:
    """(broker or None, its trouble, whether that is of who asks) of each trouble."""
    for entry in listeners:
        if entry["trouble"]:
            where = f"listener {entry['name']} at {entry['bootstrap_servers']}"
            yield None, f"{where}: {entry['trouble']}", entry.get("unclear", False)
        for each in entry["brokers"]:
            if each["trouble"]:
                reason = f"listener {entry['name']}: {each['trouble']}"
                yield each["broker"], reason, each.get("unclear", False)
