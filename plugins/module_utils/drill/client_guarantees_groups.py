# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures what becomes of a consumer group and its commits when their broker is lost, by replicas of its topic.

Private to this collection. Of the internal topic of groups the one partition that has the group's commits gets
one replica, or three, for the time of the row.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.client_replicas import (
    MovesClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.cast import partition_of
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import PREFIX
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Reader,
    Settings,
    Ticker,
    written,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_there import (
    groups_seen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_throwaway import (
    RETURN_SECONDS,
    end_without_directory,
    kill,
    seen_or_why,
    supervisor_stopped,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    GROUPS_TOPIC,
    DrillClient,
    failed,
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.guarantees_groups import (
    DISK_GONE,
    GroupCase,
    enough,
    row_of_group,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import Ask
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Seen,
    longest_since,
    pauses,
    per_bucket,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.throwaway import (
    BROKERS,
    marked,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import (
    FOUND_SECONDS,
    row_kept,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import Steady, wait_until

# So many records have been committed before, and are afterwards.
ENOUGH = 100
# So long a group is watched at least, once the others know that the broker that coordinated it is away.
AWAY_SECONDS = 8.0


def measured_group_row(
    connection: Connection, home: str, case: GroupCase, judge: Ask
) -> Dict[str, Any]:
    """{row, seen} of one row of the table; what could not be measured is a row that says why."""
    seen, why = seen_or_why(lambda: group_guarantee(connection, home, case, judge))
    row = row_of_group(case, seen, why)
    return {"row": row_kept(row, seen), "changed": True}


def group_guarantee(connection: Connection, home: str, case: GroupCase, judge: Ask) -> Seen:
    """Lose the broker that coordinates a group; returns what was seen. AdminError where it does not come back."""
    if not marked(home):
        raise failed(home, "no drill has made a cluster there")
    topic = group = f"{PREFIX}{case.topic}"
    settings = librdkafka_settings(connection)
    with contextlib.closing(MovesClient(connection)) as moves:
        moves.connect()
        with own_topics(connection, {}, {}) as client:
            leaders = client.coordinators(make=True)
        place = (GROUPS_TOPIC, partition_of(group, len(leaders)))
        victim = leaders[place[1]]
        if victim is None:
            raise failed(group, "nobody coordinates it")
        others = [each for each in BROKERS if each != victim]
        # the records are led by another one: they shall not wait
        replicas = (*others, victim)
        config = {"min.insync.replicas": "2"}
        with contextlib.ExitStack() as made:
            client = made.enter_context(own_topics(connection, {topic: (replicas,)}, config))
            made.enter_context(_placed(client, moves, place, [victim, *others][: case.replicas]))
            ticker = Ticker(settings, topic)
            reader = Reader(settings, topic, group)
            try:
                seen = _watched((client, settings), home, case, place, victim, ticker, reader)
                return replace(seen, judged=judge([written(topic, ticker)]))
            finally:
                ticker.stop()
                reader.close()


def _watched(
    asked: Tuple[DrillClient, Settings],
    home: str,
    case: GroupCase,
    place: Key,
    victim: int,
    ticker: Ticker,
    reader: Reader,
) -> Seen:
    client, settings = asked
    group, records = reader.group, (f"{PREFIX}{case.topic}", 0)
    if not wait_until(lambda: len(reader.committed_ms) >= ENOUGH, 2 * ANSWER_SECONDS):
        raise failed(group, "it commits nothing")
    committed = client.fetch_committed([group])[group].get(records, 0)
    with supervisor_stopped(home):
        at_ms = (
            end_without_directory(home, victim) if case.loss == DISK_GONE else kill(home, [victim])
        )
        if not wait_until(lambda: victim not in _in_sync(client, records), RETURN_SECONDS):
            raise failed(group, "nobody notices that its broker is away")
        before = len(reader.committed_ms)
        quiet = Steady(AWAY_SECONDS)
        wait_until(
            lambda: enough(case, len(reader.committed_ms) - before, ENOUGH, quiet(True)),
            FOUND_SECONDS if case.replicas > 1 else RETURN_SECONDS,
        )
        meanwhile = len(reader.committed_ms) - before
    # it may first have to learn that its coordinator is back
    if not wait_until(lambda: _goes_on(reader, before + meanwhile), RETURN_SECONDS):
        raise failed(group, "it commits nothing after its broker is back")
    if not wait_until(lambda: _in_sync(client, records) == set(BROKERS), RETURN_SECONDS):
        raise failed(group, "the replicas are not in sync again")
    ticker.stop()
    sent = ticker.sent_and_acknowledged
    wait_until(lambda: reader.has(sent), ANSWER_SECONDS)
    reader.close()
    came = list(reader.came)
    return Seen(
        sent=len(ticker.sent),
        acknowledged=len(sent),
        refused=dict(ticker.refused),
        pause_ms=longest_since(pauses(reader.committed_ms, ticker.ended_ms), at_ms),
        groups=groups_seen(settings, records[0], 1, sent, {group: came}),
        timeline=per_bucket(ticker.acknowledged.values()),
        measured={
            "loss": case.loss,
            "replicas": case.replicas,
            "leader": victim,
            "committed": committed,
            "meanwhile": meanwhile,
            "again": came_again(came, committed),
            "at_ms": at_ms,
            "partition": place[1],
        },
    )


def _goes_on(reader: Reader, before: int) -> bool:
    return len(reader.committed_ms) > before + ENOUGH


def came_again(came: Sequence[Tuple[str, int]], committed: int) -> int:
    """How many records came again although they had been committed before: they are numbered from 0."""
    seen: Dict[str, int] = {}
    for record, _at in came:
        seen[record] = seen.get(record, 0) + 1
    return sum(count > 1 and int(record) < committed for record, count in seen.items())


def _in_sync(client: DrillClient, place: Key) -> set:
    with contextlib.suppress(AdminError):
        part = client.fetch_metadata().partitions.get(place)
        if part is not None:
            return set(part.isr)
    return set(BROKERS)


@contextlib.contextmanager
def _placed(
    client: DrillClient, moves: MovesClient, place: Key, replicas: Sequence[int]
) -> Iterator[None]:
    """A partition has these replicas while the context is open, and its former ones afterwards."""
    former = client.fetch_metadata().partitions[place].replicas
    _place(client, moves, place, replicas)
    try:
        yield
    finally:
        # on a cluster that does not answer, the next row says why
        with contextlib.suppress(AdminError):
            _place(client, moves, place, former)


def _place(client: DrillClient, moves: MovesClient, place: Key, replicas: Sequence[int]) -> None:
    for why in moves.alter({place: list(replicas)}).values():
        raise failed(GROUPS_TOPIC, why)

    def there() -> bool:
        part: Any = client.fetch_metadata().partitions[place]
        wanted: List[int] = list(replicas)
        return list(part.replicas) == wanted and set(part.isr) == set(wanted)

    if not wait_until(there, RETURN_SECONDS):
        raise failed(GROUPS_TOPIC, "its partition is not where it was moved in time")
