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
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

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
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_throwaway import (
    DISK_SECONDS,
    RETURN_SECONDS,
    brokers_stopped,
    end_without_directory,
    end_without_room,
    kill,
    seen_or_why,
    supervisor_stopped,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    DrillClient,
    failed,
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.guarantees import (
    DISK,
    DISK_GONE,
    EACH_MESSAGE,
    EVERY,
    LAST_IN_SYNC,
    LEADER_KILLED,
    POWER,
    Case,
    end_offset,
    flushed_bytes,
    recovery_points,
    row_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import (
    Ask,
    Written,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Seen,
    group_seen,
    longest_since,
    pauses,
    per_bucket,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.throwaway import (
    BROKERS,
    data_dir,
    marked,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import row_kept
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import Steady, wait_until

try:
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
except ImportError:
    pass  # require_both_clients of admin/client/python.py says so

# Before the fault as fast as one client can, so many; then about 500 a second.
BURST, INTERVAL_SECONDS = 20000, 0.002
# So long nothing comes when all has come.
QUIET_SECONDS = 5.0
# While the followers hang, and after the fault, so many are sent.
HANGING, AFTER = 500, 500
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
# Brokers that are out of sync have told so long that they are there, and nobody has made one the leader.
NOBODY_SECONDS = 3.0


def measured_row(connection: Connection, home: str, case: Case, judge: Ask) -> Dict[str, Any]:
    """{row, seen} of one row of the table; what could not be measured is a row that says why."""
    seen, why = seen_or_why(lambda: guarantee(connection, home, case, judge))
    row = row_of(case, seen, why)
    return {"row": row_kept(row, seen), "changed": True}


def guarantee(connection: Connection, home: str, case: Case, judge: Ask) -> Seen:
    """Lose what the case says under a producer with its acks; returns what was seen.

    `home`: directory of the cluster. AdminError where it is no such cluster, or does not come back.
    """
    if not marked(home):
        raise failed(home, "no drill has made a cluster there")
    topic, replicas = f"{PREFIX}{case.topic}", BROKERS[: case.replicas]
    settings = librdkafka_settings(connection)
    # an idempotent producer sees that its last records are gone, and ends: here others would go on unaware
    extra = {"acks": case.acks, "enable.idempotence": case.acks == EVERY and not case.unclean}
    with own_topics(connection, {topic: (replicas,)}, case.config) as client:
        burst = _Burst({**settings, **extra}, topic, BURST)
        ticker = Ticker(settings, topic, interval=INTERVAL_SECONDS, first=BURST, extra=extra)
        _reach(topic, ticker.acknowledged, HANGING)
        leader = _led(client, topic)
        if leader is None:
            raise failed(topic, "nobody leads it")
        lost = _lose(_Scene(home, topic, replicas, leader, client, ticker), case)
        answered = len(burst.acknowledged) + lost.answered
        led_by = lost.led_by
        if case.loss != LAST_IN_SYNC:
            led_by = wait_until(lambda: _another(client, topic, leader, case), RETURN_SECONDS)
        _reach(topic, ticker.acknowledged, len(ticker.acknowledged) + AFTER)
        if not wait_until(lambda: _whole(client, topic, replicas), RETURN_SECONDS):
            raise failed(topic, "its replicas are not in sync again")
        ticker.stop()
        sent = {**burst.acknowledged, **ticker.sent_and_acknowledged}
        came = _read_all(settings, topic, sent)
        found = group_seen(topic, sent, came)
        everything = {*map(str, range(BURST)), *ticker.sent}
        answers = judge([Written(topic, everything, sent, found.missing, found.repeated)])
    return Seen(
        sent=BURST + len(ticker.sent),
        acknowledged=len(sent),
        refused=dict(burst.refused + ticker.refused),
        pause_ms=longest_since(pauses(ticker.acknowledged.values(), ticker.ended_ms), lost.at_ms),
        groups=(found,),
        timeline=per_bucket(ticker.acknowledged.values()),
        measured={
            "acks": case.acks,
            "flush": case.flush,
            "loss": case.loss,
            "leader": leader,
            "led_by": led_by,
            "rate": burst.rate,
            "answered": answered,
            "written": lost.written,
            "cut": lost.cut,
            "alone": lost.alone,
            "at_ms": lost.at_ms,
            "ended_ms": lost.ended_ms,
        },
        judged=answers,
    )


class _Burst:
    """Records as fast as one client can. `acknowledged`: record to when it was sent.

    `rate`: so many a second were acknowledged.
    """

    def __init__(self, settings: Dict[str, Any], topic: str, count: int):
        self.acknowledged: Dict[str, int] = {}
        self.refused: collections.Counter[str] = collections.Counter()
        self._topic, self._producer = topic, Producer(settings)
        # the first one waits for connections
        self._send(0)
        self._producer.flush(ANSWER_SECONDS)
        begun, first = now_ms(), len(self.acknowledged)
        for number in range(1, count):
            self._send(number)
        self._producer.flush(ANSWER_SECONDS)
        self.rate = (len(self.acknowledged) - first) * 1000 // max(1, now_ms() - begun)

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


@dataclass(frozen=True)
class _Scene:
    """On which cluster, and under which load, something is lost."""

    home: str
    topic: str
    replicas: Sequence[int]
    leader: int
    client: DrillClient
    ticker: Ticker

    @property
    def followers(self) -> List[int]:
        """The replicas that do not lead."""
        return [each for each in self.replicas if each != self.leader]

    def written(self) -> int:
        """How many records the leader's files have."""
        return _written(data_dir(self.home, self.leader), self.topic)

    def cut(self, brokers: Iterable[int]) -> int:
        """Cut the logs of killed brokers; returns how many records of the topic went."""
        return sum(_cut(data_dir(self.home, each), self.topic) for each in brokers)


@dataclass(frozen=True)
class _Lost:
    """What was done: when, how many records of the ticker were acknowledged by then, what the files had.

    `written` is None where there are no files any more. `alone`: how many one alone in sync has acknowledged,
    `ended_ms`: how long a broker went on without its disk, `led_by`: who led before the leader was back.
    """

    at_ms: int
    answered: int
    written: Optional[int]
    cut: int = 0
    alone: int = 0
    ended_ms: int = 0
    led_by: Optional[int] = None


def _lose(scene: _Scene, case: Case) -> _Lost:
    """Do what the case says; afterwards supervisord starts again what has ended."""
    with supervisor_stopped(scene.home):
        if case.loss in DISK:
            return _without_disk(scene, case.loss)
        if case.loss == LAST_IN_SYNC:
            return _last_in_sync(scene, case)
        hang = scene.followers if case.loss == LEADER_KILLED else []
        with brokers_stopped(scene.home, hang):
            if hang:
                # those of acks=all get no answer now
                _send_more(scene.ticker)
            killed = list(scene.replicas) if case.everybody else [scene.leader]
            with contextlib.ExitStack() as held:
                if case.loss in POWER and case.flush == EACH_MESSAGE:
                    # Kafka notes what it has flushed only now and then
                    held.enter_context(scene.ticker.held())
                    _noted(scene.home, killed)
                at_ms = kill(scene.home, killed)
                answered = len(scene.ticker.acknowledged)
                written = scene.written()
                cut = scene.cut(killed) if case.loss in POWER else 0
    return _Lost(at_ms, answered, written, cut)


def _without_disk(scene: _Scene, loss: str) -> _Lost:
    """Remove the leader's directory, or let it take no more; returns when the leader has ended by itself."""
    end = end_without_directory if loss == DISK_GONE else end_without_room
    at_ms = end(scene.home, scene.leader)
    ended, answered = now_ms() - at_ms, len(scene.ticker.acknowledged)
    written = None if loss == DISK_GONE else scene.written()
    return _Lost(at_ms, answered, written, ended_ms=ended)


def _last_in_sync(scene: _Scene, case: Case) -> _Lost:
    """Hang the followers until they are out of sync, kill the leader, and let them go on without it."""
    ticker, followers = scene.ticker, set(scene.followers)
    with brokers_stopped(scene.home, sorted(followers)):
        if not wait_until(lambda: _in_sync(scene) == {scene.leader}, RETURN_SECONDS):
            raise failed(scene.topic, "its followers hang, and are not out of sync in time")
        before = len(ticker.acknowledged)
        _send_more(ticker)
        if case.min_isr == 1:
            _reach(scene.topic, ticker.acknowledged, before + HANGING)
        at_ms = kill(scene.home, [scene.leader])
        answered = len(ticker.acknowledged)
        written = scene.written()
    quiet = Steady(NOBODY_SECONDS)
    led: List[int] = []

    def over() -> bool:
        with contextlib.suppress(AdminError):
            told = scene.client.fetch_metadata()
            part = told.partitions.get((scene.topic, 0))
            if part and part.leader in followers:
                led.append(part.leader)
                return True
            # with an unclean election, somebody leads in the end
            there = part is not None and followers <= {each.id for each in told.brokers}
            return quiet(there) and not case.unclean
        return quiet(False)

    if not wait_until(over, RETURN_SECONDS):
        raise failed(scene.topic, "its followers did not come back")
    return _Lost(at_ms, answered, written, alone=answered - before, led_by=led[0] if led else None)


def _in_sync(scene: _Scene) -> Set[int]:
    part = _seen(scene.client, scene.topic)
    return set(part.isr) if part else set()


def _send_more(ticker: Ticker) -> None:
    enough = len(ticker.sent) + HANGING
    wait_until(lambda: len(ticker.sent) >= enough, ANSWER_SECONDS)


def _noted(home: str, brokers: Sequence[int]) -> None:
    """Wait until brokers have begun and written a note of what they have flushed; they do it now and then."""
    paths = [os.path.join(data_dir(home, each), RECOVERY_POINTS) for each in brokers]

    # the first may have been begun before
    if not (_made_anew(paths) and _made_anew(paths)):
        raise failed(home, "its brokers do not note what they have flushed")


def _made_anew(paths: Sequence[str]) -> bool:
    """Wait until each of these files has been made anew; whether it was so in time."""
    before = [_made_ns(path) for path in paths]
    return wait_until(
        lambda: all(_made_ns(path) > each for path, each in zip(paths, before)), DISK_SECONDS
    )


def _made_ns(path: str) -> int:
    """When a file was made: each note is a new one, and there is none for a moment."""
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


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


def _another(client: DrillClient, topic: str, leader: int, case: Case) -> Optional[int]:
    """Who leads now; None while nobody does, or, where somebody else has to, while the leader still does."""
    found = _led(client, topic)
    return None if case.another_leads and found == leader else found


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
