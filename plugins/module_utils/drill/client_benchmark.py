# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load of a benchmark's row: producers and consumers, each a process, and what they and the brokers used.

Private to this collection. They are forked before there is any client: librdkafka's threads do not survive
a fork. A process ends when its parent is gone.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import struct
import sys
import time
from array import array
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark import (
    ACKS,
    LEAST_RECORD,
    OVERHEAD_BYTES,
    SYNC,
    Plan,
    Setup,
    assignments,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.benchmark_limit import (
    Load,
    percentiles,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_processes import (
    Trouble,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    DrillClient,
    failed,
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.usage import (
    between,
    fullest,
    network_rates,
    snapshot,
    threads_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

try:
    from confluent_kafka import Consumer, Producer, TopicPartition, libversion
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

# What a client may have under way, as Java's buffer.memory.
QUEUE_KIB, QUEUE_RECORDS = 32768, 100000
DELIVERY_SECONDS = 60.0
# So many records go to a partition before the next one gets some, as batches do.
BURST = 100
PART_SECONDS = 0.25
# Of so many records, the time of one is taken; with one at a time, of all.
SAMPLED = 10
_TIME = struct.Struct(">q")
POOL_BYTES, PAYLOADS = 4 * 2**20, (4, 20000)
_LETTERS = bytes(65 + each % 26 for each in range(256))
FILL_RECORD_BYTES = 10000

Settings = Mapping[str, Any]


class Talk:
    """A process's end of a pipe."""

    def __init__(self, pipe: Any, parent: int):
        self._pipe, self._parent = pipe, parent

    def tell(self, value: Any) -> None:
        """Tell the parent something."""
        self._pipe.send(value)

    def hear(self) -> Any:
        """Wait for the parent's word; the process ends where there is no parent."""
        while not self._pipe.poll(0.2):
            if not self.going():
                os._exit(1)
        return self._pipe.recv()

    def heard(self) -> bool:
        """Whether the parent has said something."""
        return bool(self._pipe.poll(0))

    def going(self) -> bool:
        """Whether the parent is there."""
        return os.getppid() == self._parent


class Worker:
    """A forked process that runs `body`. `going` says whether the wait for it has a purpose."""

    def __init__(self, body: Callable[[Talk], None], going: Callable[[], bool]):
        context = multiprocessing.get_context("fork")
        self._going = going
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(theirs, body))
        self._process.start()
        theirs.close()

    def say(self, value: Any) -> None:
        """Say something to it."""
        self._pipe.send(value)

    def hear(self, seconds: float) -> Any:
        """Its next word. AdminError where none comes in time."""

        def over() -> bool:
            return bool(self._pipe.poll(0.1)) or not self._going()

        if not wait_until(over, seconds, poll_seconds=0.01):
            raise failed("a client of the benchmark", f"it has not answered in {seconds:g} s")
        if not self._going():
            raise failed("the benchmark", "it was interrupted")
        try:
            told = self._pipe.recv()
        except EOFError:
            told = Trouble("it has ended")
        if isinstance(told, Trouble):
            raise failed("a client of the benchmark", told.text)
        return told

    def end(self) -> None:
        """Kill it, if it still runs."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join(ANSWER_SECONDS)


def _run(pipe: Any, body: Callable[[Talk], None]) -> None:
    """The process; never returns."""
    try:
        body(Talk(pipe, os.getppid()))
    except Exception as error:  # pylint: disable=broad-except  # the parent tells it
        pipe.send(Trouble.of(error))
    finally:
        os._exit(0)


def clients_here() -> str:
    """What the load is made of: another Python or librdkafka is faster or slower."""
    return f"Python {sys.version_info[0]}.{sys.version_info[1]}, librdkafka {libversion()[0]}"


def producer_settings(setup: Setup) -> Dict[str, Any]:
    """librdkafka's settings of a row's producers."""
    one = setup.mode == SYNC
    return {
        "acks": ACKS[setup.mode],
        "enable.idempotence": ACKS[setup.mode] == "all",
        "batch.size": setup.batch_bytes,
        "linger.ms": 0 if one else setup.linger_ms,
        "compression.type": setup.compression,
        "message.max.bytes": max(1000000, 2 * setup.record_bytes),
        "queue.buffering.max.kbytes": QUEUE_KIB,
        "queue.buffering.max.messages": QUEUE_RECORDS,
        "message.timeout.ms": int(DELIVERY_SECONDS * 1000),
        "delivery.report.only.error": True,
    }


def payloads(record_bytes: int) -> List[bytes]:
    """Random letters behind the time of sending: they compress as much as those of Kafka's own tool."""
    size = record_bytes - _TIME.size
    count = max(PAYLOADS[0], min(PAYLOADS[1], POOL_BYTES // size))
    return [os.urandom(size).translate(_LETTERS) for _each in range(count)]


class _Sender:
    """A producer process at work."""

    def __init__(self, talk: Talk, settings: Settings, setup: Setup, keys: Sequence[Key]):
        self._talk, self._setup, self._keys = talk, setup, keys
        self.failed: Dict[Key, int] = {}
        self.sent: Dict[Key, int] = {}
        self.waited = 0.0
        self.throttled = False
        self.marks: List[Tuple[float, int]] = []
        self._producer = Producer(
            {
                **settings,
                **producer_settings(setup),
                "on_delivery": self._told,
                "throttle_cb": self._throttle,
            }
        )

    def _told(self, error: Any, message: Any) -> None:
        if error:
            key = (message.topic(), message.partition())
            self.failed[key] = self.failed.get(key, 0) + 1

    def _throttle(self, _event: Any) -> None:
        self.throttled = True

    def fill(self, size: int) -> Dict[Key, int]:
        """Write so many bytes, at least one record for each partition: connections are there then, too.

        Returns how many records were written.
        """
        value = _TIME.pack(0) + payloads(max(LEAST_RECORD, min(FILL_RECORD_BYTES, size)))[0]
        for number in range(max(len(self._keys), size // len(value))):
            self._send(self._keys[number % len(self._keys)], value)
            if not number % BURST and not self._talk.going():
                break
        self._producer.flush(DELIVERY_SECONDS)
        written = {key: count - self.failed.get(key, 0) for key, count in self.sent.items()}
        self.waited = 0.0
        self.sent.clear()
        self.failed.clear()
        return written

    def _send(self, key: Key, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(key[0], value, partition=key[1])
                break
            except BufferError:
                begun = time.monotonic()
                self._producer.poll(0.01)
                self.waited += time.monotonic() - begun
        self.sent[key] = self.sent.get(key, 0) + 1

    def run(self, seconds: float, most: int) -> Tuple[float, float]:
        """Send until the time is over, or so many records are sent; returns when it began and ended."""
        values, number, one = payloads(self._setup.record_bytes), 0, self._setup.mode == SYNC
        # a burst shall not be all of a queue
        burst = 1 if one else max(1, min(BURST, 2**20 // self._setup.record_bytes))
        began = now = time.monotonic()
        until, mark = began + seconds, began + PART_SECONDS
        self.marks.append((began, 0))
        while now < until and number < most and self._talk.going():
            key = self._keys[number // burst % len(self._keys)]
            for _each in range(burst):
                value = _TIME.pack(time.monotonic_ns()) + values[number % len(values)]
                self._send(key, value)
                number += 1
            if one:
                self._producer.flush(DELIVERY_SECONDS)
            else:
                self._producer.poll(0)
            now = time.monotonic()
            if now >= mark:
                self.marks.append((now, number - len(self._producer)))
                mark = now + PART_SECONDS
        left = self._producer.flush(DELIVERY_SECONDS)
        ended = time.monotonic()
        self.marks.append((ended, number - left))
        return began, ended


def _produce(
    talk: Talk, settings: Settings, setup: Setup, keys: Sequence[Key], seconds: float, most: int
) -> None:
    """A producer's process."""
    talk.hear()
    sender = _Sender(talk, settings, setup, keys)
    talk.tell(sender.fill(setup.retained_bytes // setup.producers))
    talk.hear()
    before = threads_of(os.getpid())
    began, ended = sender.run(seconds, most)
    used = _used(before)
    talk.tell(
        {
            "began": began,
            "ended": ended,
            "sent": sender.sent,
            "failed": sender.failed,
            "waited": sender.waited,
            "throttled": sender.throttled,
            "marks": sender.marks,
            **used,
        }
    )
    talk.hear()


def _used(before: Mapping[int, float]) -> Dict[str, float]:
    """Seconds of CPU of this process since then, of its busiest thread and of all."""
    used = [each - before.get(key, 0.0) for key, each in threads_of(os.getpid()).items()]
    return {"thread_seconds": max(used, default=0.0), "cpu_seconds": sum(used)}


def _consume(talk: Talk, settings: Settings, setup: Setup) -> None:
    """A consumer's process. It hears where to begin, and then how many records there are."""
    starts: Dict[Key, int] = talk.hear()
    consumer = Consumer(
        {**settings, "group.id": "kafkaops-drill-benchmark", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(*key, offset) for key, offset in starts.items()])
    consumer.consume(1, 0.2)
    sampled = 1 if setup.mode == SYNC else SAMPLED
    before, latencies, count, goal = threads_of(os.getpid()), array("d"), 0, None
    first = last = 0.0
    until = float("inf")
    talk.tell("ready")
    while talk.going():
        messages = consumer.consume(1000, 0.1)
        now_ns, good = time.monotonic_ns(), [each for each in messages if not each.error()]
        for message in good[-count % sampled :: sampled]:
            latencies.append((now_ns - _TIME.unpack_from(message.value() or b"")[0]) / 1e6)
        count += len(good)
        if good:
            last = time.monotonic()
            first = first or last
        if goal is None and talk.heard():
            goal, until = talk.hear(), time.monotonic() + ANSWER_SECONDS
        if goal is not None and (count >= goal or time.monotonic() > until):
            break
    used = _used(before)
    talk.tell({"count": count, "seconds": last - first, "latencies": latencies, **used})
    talk.hear()


def keys_of(setup: Setup, topics: Sequence[str]) -> List[Key]:
    """The partitions of a row."""
    return [(topic, part) for part in range(setup.partitions) for topic in topics]


def measured_row(
    connection: Connection,
    plan: Plan,
    setup: Setup,
    number: int,
    brokers: Sequence[int],
    pids: Mapping[int, int],
    going: Callable[[], bool],
) -> Load:
    """Measure a row with topics of its own, which have this number. AdminError where it cannot be done.

    `pids`: processes of brokers that run on this machine. `going` says whether somebody still wants it.
    """
    layout = assignments(setup, brokers, number)
    keys, settings = keys_of(setup, list(layout)), librdkafka_settings(connection)
    most = max(1, plan.row_bytes // setup.producers // (setup.record_bytes + OVERHEAD_BYTES))
    producers, consumers = [], []
    try:
        for each in range(setup.producers):
            # each begins with another partition
            turned = [*keys[each % len(keys) :], *keys[: each % len(keys)]]
            body = functools.partial(
                _produce,
                settings=settings,
                setup=setup,
                keys=turned,
                seconds=plan.seconds,
                most=most,
            )
            producers.append(Worker(body, going))
        for _each in range(setup.consumers * setup.groups):
            consumers.append(
                Worker(functools.partial(_consume, settings=settings, setup=setup), going)
            )
        with own_topics(connection, layout, setup.topic_config) as client:
            return _measured(client, plan, setup, keys, producers, consumers, pids)
    finally:
        for worker in [*producers, *consumers]:
            worker.end()


def _measured(
    client: DrillClient,
    plan: Plan,
    setup: Setup,
    keys: Sequence[Key],
    producers: Sequence[Worker],
    consumers: Sequence[Worker],
    pids: Mapping[int, int],
) -> Load:
    for each in producers:
        each.say("fill")
    fills = [each.hear(2 * ANSWER_SECONDS + setup.retained_bytes / 2**20) for each in producers]
    starts = _arrived(client, keys, {}, fills)
    shares = [keys[number % setup.consumers :: setup.consumers] for number in range(len(consumers))]
    for each, share in zip(consumers, shares):
        each.say({key: starts[key] for key in share})
    for each in consumers:
        each.hear(ANSWER_SECONDS)
    before = snapshot(pids)
    for each in producers:
        each.say("go")
    made = [each.hear(plan.seconds + DELIVERY_SECONDS + ANSWER_SECONDS) for each in producers]
    after = snapshot(pids)
    rate, bits = fullest(network_rates(before, after), network_speeds())
    used = {**between(before, after), "network_rate": rate}
    ends = _arrived(client, keys, starts, [_acknowledged(each) for each in made])
    there = {key: ends[key] - starts[key] for key in keys}
    for each, share in zip(consumers, shares):
        each.say(sum(there[key] for key in share))
    got = [each.hear(2 * ANSWER_SECONDS) for each in consumers]
    return replace(_load(made, got, there, used), network_bits=bits)


def _acknowledged(made: Mapping[str, Any]) -> Dict[Key, int]:
    return {key: count - made["failed"].get(key, 0) for key, count in made["sent"].items()}


def _arrived(
    client: DrillClient,
    keys: Sequence[Key],
    starts: Mapping[Key, int],
    counts: Sequence[Mapping[Key, int]],
) -> Dict[Key, int]:
    """The end offsets of partitions once so many records are behind the starts, or at a deadline.

    With acks of 0 and 1 some are on their way, or followers lag.
    """
    ends: Dict[Key, int] = {}

    def arrived() -> bool:
        ends.update(client.fetch_both_ends(keys, first=False)[1])
        return all(
            ends.get(key, 0) - starts.get(key, 0) >= sum(each.get(key, 0) for each in counts)
            for key in keys
        )

    wait_until(arrived, ANSWER_SECONDS)
    return dict(ends)


def _load(
    made: Sequence[Mapping[str, Any]],
    got: Sequence[Mapping[str, Any]],
    there: Mapping[Key, int],
    used: Mapping[str, Any],
) -> Load:
    seconds = max(each["ended"] for each in made) - min(each["began"] for each in made)
    received_seconds = max((each["seconds"] for each in got), default=0.0)
    acknowledged = [_acknowledged(each) for each in made]
    lengths = [each["ended"] - each["began"] for each in made]
    return Load(
        sent=sum(sum(each["sent"].values()) for each in made),
        failed=sum(sum(each["failed"].values()) for each in made),
        there=sum(there.values()),
        missing=sum(
            max(0, sum(each.get(key, 0) for each in acknowledged) - count)
            for key, count in there.items()
        ),
        seconds=seconds,
        received=sum(each["count"] for each in got),
        latency_ms=percentiles([time_ms for each in got for time_ms in each["latencies"]]),
        parts=tuple(parts_of([each["marks"] for each in made])),
        waited=max(each["waited"] / length for each, length in zip(made, lengths)),
        throttled=any(each["throttled"] for each in made),
        client_core=max(each["thread_seconds"] / length for each, length in zip(made, lengths)),
        client_cores=sum(each["cpu_seconds"] for each in made) / seconds,
        consumer_core=_highest(each["thread_seconds"] / max(each["seconds"], 1e-3) for each in got),
        consumer_cores=sum(each["cpu_seconds"] for each in got) / max(seconds, received_seconds),
        received_seconds=received_seconds,
        cores=os.cpu_count() or 1,
        usage=used,
    )


def _highest(shares: Any) -> Optional[float]:
    return max(shares, default=None)


def parts_of(marks: Sequence[Sequence[Tuple[float, int]]]) -> List[float]:
    """Records acknowledged a second in each part of a row, of all producers together.

    The first and the last part are left out: one begins, the other waits for what is under way.
    """
    rates: Dict[int, float] = {}
    for each in marks:
        spans = list(zip(each, each[1:]))[1:-1]
        for number, ((began, before), (ended, after)) in enumerate(spans):
            rates[number] = rates.get(number, 0.0) + (after - before) / max(ended - began, 1e-9)
    return list(rates.values())


def network_speeds(root: str = "/sys/class/net") -> Dict[str, int]:
    """{interface: bits a second} of those that tell."""
    found = {}
    for name in os.listdir(root) if os.path.isdir(root) else ():
        try:
            with open(os.path.join(root, name, "speed"), encoding="ascii") as stream:
                found[name] = int(stream.read()) * 10**6
        except (OSError, ValueError):
            continue
    return {name: each for name, each in found.items() if each > 0}
