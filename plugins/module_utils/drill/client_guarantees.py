# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures a guarantee on a cluster that is thrown away: writes, kills, reads back, counts by name.

Private to this collection. It kills brokers only of a directory in which a drill's marker is.
"""

from __future__ import annotations

import collections
import contextlib
import os
import signal
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Partition
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import PREFIX
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Settings,
    Ticker,
    now_ms,
    record_of,
    value_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    DrillClient,
    failed,
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.guarantees import (
    ALL_KILLED,
    ALL_POWER,
    EVERY,
    LEADER_KILLED,
    POWER,
    end_offset,
    flushed_bytes,
    recovery_points,
    row_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Seen,
    group_seen,
    longest_pause_ms,
    per_bucket,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.throwaway import (
    BROKERS,
    data_dir,
    marked,
    state_dir,
    supervisor_pid,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.process import (
    recorded,
    start_ticks,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import Steady, wait_until

try:
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
except ImportError:
    pass  # require_kafka of admin.client.connection says so

# Before the fault as fast as one client can, so many; then about 500 a second.
BURST, INTERVAL_SECONDS = 20000, 0.002
# Brokers that all begin anew take long on a machine that has much else to do.
RETURN_SECONDS = 8 * ANSWER_SECONDS
# So long nothing comes when all has come.
QUIET_SECONDS = 5.0
# While the followers hang, and after the fault, so many are sent.
HANGING, AFTER = 500, 500
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


# Records of acks=all are then on two brokers, or refused.
TOPIC_SETTINGS = {"min.insync.replicas": "2"}


def measured_row(connection: Connection, home: str, acks: str, loss: str) -> Dict[str, Any]:
    """{row, seen} of one row of the table; what could not be measured is a row that says why."""
    topic = f"{PREFIX}acks-{acks}-{loss.replace('_', '-')}"
    seen, why = None, ""
    try:
        seen = guarantee(connection, topic, (BROKERS,), TOPIC_SETTINGS, home, acks, loss)
    except (AdminError, KafkaException, OSError, ValueError) as error:
        why = str(error)
    row = row_of(acks, loss, seen, why)
    return {"row": row.to_dict(), "seen": seen.to_dict() if seen else None, "changed": True}


def guarantee(
    connection: Connection,
    topic: str,
    assignment: Sequence[Sequence[int]],
    config: Mapping[str, str],
    home: str,
    acks: str,
    loss: str,
) -> Seen:
    """Lose what `loss` says under a producer with these acks; returns what was seen.

    `home`: directory of the cluster. AdminError where it is no such cluster, or does not come back.
    """
    if not marked(home):
        raise failed(home, "no drill has made a cluster there")
    settings = librdkafka_settings(connection)
    extra = {"acks": acks, "enable.idempotence": acks == EVERY}
    with own_topics(connection, {topic: assignment}, config) as client:
        burst = _Burst({**settings, **extra}, topic, BURST)
        ticker = Ticker(settings, topic, interval=INTERVAL_SECONDS, first=BURST, extra=extra)
        _reach(topic, ticker.acknowledged, HANGING)
        leader = _led(client, topic)
        if leader is None:
            raise failed(topic, "nobody leads it")
        lost = _lose(home, topic, assignment[0], leader, loss, ticker)
        answered = len(burst.acknowledged) + lost.answered
        led_by = wait_until(lambda: _another(client, topic, leader, loss), RETURN_SECONDS)
        _reach(topic, ticker.acknowledged, len(ticker.acknowledged) + AFTER)
        if not wait_until(lambda: _whole(client, topic, assignment[0]), RETURN_SECONDS):
            raise failed(topic, "its replicas are not in sync again")
        ticker.stop()
        sent = {**burst.acknowledged, **ticker.sent_and_acknowledged}
        came = _read_all(settings, topic, sent)
    return Seen(
        sent=BURST + len(ticker.sent),
        acknowledged=len(sent),
        refused=dict(burst.refused + ticker.refused),
        pause_ms=longest_pause_ms(ticker.acknowledged.values()),
        groups=(group_seen(topic, sent, came),),
        timeline=per_bucket(ticker.acknowledged.values()),
        measured={
            "acks": acks,
            "loss": loss,
            "leader": leader,
            "led_by": led_by,
            "answered": answered,
            "written": lost.written,
            "cut": lost.cut,
            "at_ms": lost.at_ms,
        },
    )


class _Burst:
    """Records as fast as one client can. `acknowledged`: record to when it was sent."""

    def __init__(self, settings: Dict[str, Any], topic: str, count: int):
        self.acknowledged: Dict[str, int] = {}
        self.refused: collections.Counter[str] = collections.Counter()
        self._topic, self._producer = topic, Producer(settings)
        # the first one waits for connections
        self._send(0)
        self._producer.flush(ANSWER_SECONDS)
        for number in range(1, count):
            self._send(number)
        self._producer.flush(ANSWER_SECONDS)

    def _send(self, number: int) -> None:
        at_ms = now_ms()

        def told(error: Any, _message: Any) -> None:
            if error:
                self.refused[error.name().lstrip("_")] += 1
            else:
                self.acknowledged[str(number)] = at_ms

        self._producer.produce(
            self._topic, value_of(str(number), at_ms), partition=0, on_delivery=told
        )
        self._producer.poll(0)


class _Lost:
    """What was done: when, how many were acknowledged by then in this ticker, and what the files had."""

    def __init__(self, at_ms: int, answered: int, written: int, cut: int):
        self.at_ms, self.answered, self.written, self.cut = at_ms, answered, written, cut


def _lose(
    home: str, topic: str, replicas: Sequence[int], leader: int, loss: str, ticker: Ticker
) -> _Lost:
    """Kill the leader or all, cut logs where power is lost; supervisord then starts them again."""
    killed = list(replicas) if loss in (ALL_KILLED, ALL_POWER) else [leader]
    hang = [each for each in replicas if each != leader] if loss == LEADER_KILLED else []
    with _stopped([supervisor_pid(home)]):
        with _stopped([_pid(home, each) for each in hang]):
            if hang:
                # those of acks=all get no answer now
                enough = len(ticker.sent) + HANGING
                wait_until(lambda: len(ticker.sent) >= enough, ANSWER_SECONDS)
            at_ms = now_ms()
            for pid in [_pid(home, each) for each in killed]:
                os.kill(pid, signal.SIGKILL)
            wait_until(
                lambda: all(recorded(state_dir(home, each)) is None for each in killed),
                ANSWER_SECONDS,
            )
            answered = len(ticker.acknowledged)
            written = _written(data_dir(home, leader), topic)
            cut = sum(_cut(data_dir(home, each), topic) for each in killed if loss in POWER)
    return _Lost(at_ms, answered, written, cut)


@contextlib.contextmanager
def _stopped(pids: Sequence[int]) -> Iterator[None]:
    """Processes stand still (SIGSTOP) while the context is open."""
    ticks = {pid: start_ticks(pid) for pid in pids}
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            if start_ticks(pid) == ticks[pid]:
                os.kill(pid, signal.SIGCONT)


def _pid(home: str, broker: int) -> int:
    process = recorded(state_dir(home, broker))
    if process is None:
        raise failed(f"broker {broker} of the drill's cluster", "it does not run")
    return process.pid


def _segments(data: str, partition: str) -> List[Tuple[int, str]]:
    """(base offset, path) of each segment, in their order."""
    folder = os.path.join(data, partition)
    names = sorted(each for each in os.listdir(folder) if each.endswith(".log"))
    return [(int(each[: -len(".log")]), os.path.join(folder, each)) for each in names]


def _written(data: str, topic: str) -> int:
    """How many records the files of a broker have, of the topic's first partition."""
    base, path = _segments(data, f"{topic}-0")[-1]
    with open(path, "rb") as handle:
        return end_offset(handle.read(), base)


def _cut(data: str, topic: str) -> int:
    """Cut every log of a killed broker to what it had flushed; returns how many records of the topic went.

    Kafka's checkpoint says how far it was. What the system has written on its own is taken as lost:
    nobody has promised it.
    """
    before = _written(data, topic)
    with open(os.path.join(data, RECOVERY_POINTS), encoding="utf-8") as handle:
        points = recovery_points(handle.read())
    for partition in os.listdir(data):
        if not os.path.isdir(os.path.join(data, partition)):
            continue
        for _base, path in _segments(data, partition):
            with open(path, "r+b") as handle:
                handle.truncate(flushed_bytes(handle.read(), points.get(partition, 0)))
    return before - _written(data, topic)


def _seen(client: DrillClient, topic: str) -> Optional[Partition]:
    """The topic's first partition; None while nobody tells of it."""
    with contextlib.suppress(AdminError):
        found: Optional[Partition] = client.fetch_metadata().partitions.get((topic, 0))
        return found
    return None


def _led(client: DrillClient, topic: str) -> Optional[int]:
    part = _seen(client, topic)
    return part.leader if part else None


def _another(client: DrillClient, topic: str, leader: int, loss: str) -> Optional[int]:
    """Who leads now; None while nobody does, or, of a leader that is gone alone, while it still does."""
    found = _led(client, topic)
    gone_alone = loss not in (ALL_KILLED, ALL_POWER)
    return None if gone_alone and found == leader else found


def _whole(client: DrillClient, topic: str, replicas: Sequence[int]) -> bool:
    part = _seen(client, topic)
    return part is not None and part.leader is not None and set(part.isr) == set(replicas)


def _reach(topic: str, acknowledged: Mapping[str, int], count: int) -> None:
    if not wait_until(lambda: len(acknowledged) >= count, RETURN_SECONDS):
        raise failed(topic, "its records are not acknowledged")


def _read_all(settings: Settings, topic: str, sent: Iterable[str]) -> List[Tuple[str, int]]:
    """(record, when it was read) of all that is there. AdminError where it cannot be read to its end.

    What nobody has answered for may still be on its way: while some of `sent` are missing, the end is there
    only when nothing has come for a while.
    """
    consumer = Consumer({**settings, "group.id": topic, "enable.auto.commit": False})
    came: List[Tuple[str, int]] = []
    missing, silent = set(sent), Steady(QUIET_SECONDS)
    try:
        place = TopicPartition(topic, 0, 0)
        low, high = consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS)
        consumer.assign([TopicPartition(topic, 0, low)])
        seen = [low]

        def at_end() -> bool:
            before = len(came)
            for message in consumer.consume(1000, 0.5):
                if not message.error():
                    came.append((record_of(message.value()), now_ms()))
                    missing.discard(came[-1][0])
                    seen[0] = (message.offset() or 0) + 1
            quiet = silent(len(came) == before)
            return seen[0] >= high and (quiet or not missing)

        if not wait_until(at_end, RETURN_SECONDS, poll_seconds=0.0):
            raise failed(topic, "it could not be read to its end")
    except KafkaException as error:
        raise failed(topic, str(error)) from error
    finally:
        consumer.close()
    return came
