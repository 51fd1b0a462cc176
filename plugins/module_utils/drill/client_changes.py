# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes that need a quorum, asked for while members of it are away: a new topic, and another leader.

Private to this collection. The quorum is that of ZooKeeper, or of the controllers of a KRaft cluster. Each is
asked for once until it is answered: in ZooKeeper mode a broker's thread waits with it, and brokers have few. A
KRaft broker has no controller to hand it on to, and says so after a minute (REQUEST_TIMED_OUT): it is asked again.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import CREATE
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_replicas import (
    MovesClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import now_ms
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    DrillClient,
    drill_client,
    failed,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

# The playbook asks by such files, with the number of members that are away, and says when one is back.
ASK, BACK = "drill-ask-", "drill-back"
# A change may wait for as long as the members are away.
WAIT_SECONDS = 900.0
# So long after its answer a change that was made is known to the broker that is asked.
KNOWN_SECONDS = 5.0
# So many answered sends since it was asked say that data flow and that the change waits.
FLOWING = 100


class Stage:
    """What was asked for with `away` members stopped, and when it was done; each in a thread of its own."""

    def __init__(self, connection: Connection, topic: str, away: int, replicas: Sequence[int]):
        self.away, self.asked_ms = away, now_ms()
        self.topic_ms: Optional[int] = None
        self.leader_ms: Optional[int] = None
        # whether the leader that was asked for led before it was asked for
        self.led_already = False
        self._asked: Dict[str, int] = {}
        self.trouble = ""
        self._connection, self._topic, self._replicas = connection, topic, list(replicas)
        for work in (self._make, self._elect):
            threading.Thread(target=self._guarded, args=(work,), daemon=True).start()

    @property
    def done(self) -> bool:
        """Whether both have happened, or could not be tried."""
        led = self.leader_ms is not None or self.led_already
        return self.topic_ms is not None and led

    @property
    def asked_again(self) -> int:
        """How often one of them was asked for once more, since the answer came without it."""
        return max(dict(self._asked).values(), default=1) - 1

    def _guarded(self, work: Callable[[DrillClient], None]) -> None:
        try:
            work(drill_client(self._connection))
        except AdminError as error:
            self.trouble = error.message

    def _make(self, client: DrillClient) -> None:
        name = f"{self._topic}-{self.away}"
        after = {
            "partitions": 1,
            "replication_factor": None,
            "assignment": [self._replicas],
            "config": {},
        }

        def ask(deadline: float) -> None:
            self._count("topic")
            for each in client.apply([Change(CREATE, name, after=after)], deadline):
                self.trouble = each.error

        if asked_until(ask, lambda: _leader(client, name, 0) is not None):
            self.topic_ms = now_ms()

    def _elect(self, client: DrillClient) -> None:
        wanted = swapped(self._replicas)[0]
        # Kafka itself has given it leadership since it was preferred: it does so now and then
        if _leader(client, self._topic, self.away) == wanted:
            self.led_already = True
            return

        def ask(deadline: float) -> None:
            self._count("leader")
            client.elect_leaders([(self._topic, self.away)], deadline)

        if asked_until(ask, lambda: _leader(client, self._topic, self.away) == wanted):
            self.leader_ms = now_ms()

    def _count(self, change: str) -> None:
        self._asked[change] = self._asked.get(change, 0) + 1


def asked_until(
    ask: Callable[[float], None],
    done: Callable[[], bool],
    seconds: float = WAIT_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Ask, and ask again once that is answered and not done; returns whether it was done in the end.

    `ask(deadline)` returns with the answer, `done()` tells whether it is so. `seconds`: for all of it.
    """
    deadline = clock() + seconds

    def answered() -> bool:
        ask(deadline)
        return wait_until(done, KNOWN_SECONDS, clock, sleep)

    return wait_until(answered, seconds, clock, sleep, poll_seconds=0)


class Changes:
    """What is asked for while members are away. `answered()`: how many sends were answered so far."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        replicas: Sequence[int],
        directory: str,
        answered: Callable[[], int],
    ):
        self.back_ms: Optional[int] = None
        self._connection, self._topic, self._replicas = connection, topic, replicas
        self._directory, self._answered = directory, answered
        self._stages: List[Stage] = []
        self._begun_at: List[int] = []

    def look(self) -> Dict[str, int]:
        """Do what the playbook asks for; returns how far it is, for the playbook.

        `changed`: with how many members away all was done that was asked for; `flowing`: with how many data
        have flowed since it was asked.
        """
        number = len(self._stages) + 1
        if self._there(f"{ASK}{number}"):
            self._begun_at.append(self._answered())
            self._stages.append(Stage(self._connection, self._topic, number, self._replicas))
        if self.back_ms is None and self._there(BACK):
            self.back_ms = now_ms()
        done = [each.away for each in self._stages if each.done]
        flowing = self._begun_at and self._answered() - self._begun_at[-1] >= FLOWING
        return {
            "changed": len(done) if len(done) == len(self._stages) else 0,
            "flowing": len(self._stages) if flowing else 0,
        }

    def _there(self, name: str) -> bool:
        return os.path.exists(os.path.join(self._directory, name))

    def told(self) -> Dict[str, Any]:
        """What was measured: for each stage, how long each change took, and when a member was back."""
        return {
            "stages": [
                {
                    "away": each.away,
                    "topic_ms": _since(each.asked_ms, each.topic_ms),
                    "leader_ms": _since(each.asked_ms, each.leader_ms),
                    "back_ms": _since(each.asked_ms, self.back_ms),
                    "led_already": each.led_already,
                    "asked_again": each.asked_again,
                    "trouble": each.trouble,
                }
                for each in self._stages
            ]
        }


def _since(begin: int, end: Optional[int]) -> Optional[int]:
    return None if end is None else end - begin


def swapped(replicas: Sequence[int]) -> List[int]:
    """The same replicas with another preferred leader."""
    return [replicas[1], replicas[0], *replicas[2:]]


def _leader(client: DrillClient, topic: str, partition: int) -> Optional[int]:
    try:
        found = client.fetch_metadata().topics.get(topic)
    except AdminError:
        return None
    if found is None:
        return None
    return next((each.leader for each in found.partitions if each.id == partition), None)


def prepare_leaders(
    connection: Connection, topic: str, assignment: Sequence[Sequence[int]]
) -> None:
    """Prefer another leader for each partition but the first; an election is then all that is missing."""
    client = MovesClient(connection)
    client.connect()
    wanted: Mapping[Any, Any] = {
        (topic, number): swapped(replicas) for number, replicas in enumerate(assignment) if number
    }
    for (_topic, number), why in client.alter(wanted).items():
        raise failed(f"{topic}-{number}", f"another leader cannot be preferred: {why}")

    def preferred() -> bool:
        found = client.fetch_metadata().topics.get(topic)
        return found is not None and all(
            list(each.replicas) == wanted[(topic, each.id)] for each in found.partitions if each.id
        )

    if not wait_until(preferred, ANSWER_SECONDS):
        raise failed(topic, "another leader is not preferred in time")
