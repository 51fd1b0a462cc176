# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A group of two consumers, each examples/consumer.py in a process; one is killed or closed, and comes back.

Private to this collection.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settings import (
    librdkafka_settings,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    HEARTBEAT_SECONDS,
    SESSION_SECONDS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_load import (
    Settings,
    Ticker,
    now_ms,
    record_of,
    written,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_there import (
    groups_seen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.client_topics import (
    ANSWER_SECONDS,
    failed,
    own_topics,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.examples import Example
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.judgement import Ask
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.observed import (
    Seen,
    handed_over_ms,
    per_bucket,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

STEADY_SECONDS = 2.0
# What examples/consumer.py prints of a record: partition, offset, key, value.
FIELDS = 4


class Member:
    """examples/consumer.py in a process. `came`: (record, when), `places`: (partition, when) of each."""

    def __init__(self, program: str, settings: Settings, topic: str, group: str):
        self.came: List[Tuple[str, int]] = []
        self.places: List[Tuple[int, int]] = []
        self._begin = lambda: Example(
            program, member_settings(settings), [topic, group], self._heard
        )
        self._example: Optional[Example] = None

    def _heard(self, line: str) -> None:
        fields = line.split("\t")
        if len(fields) == FIELDS:
            at_ms = now_ms()
            self.came.append((record_of(fields[-1].encode()), at_ms))
            self.places.append((int(fields[0]), at_ms))

    @property
    def partitions(self) -> Set[int]:
        """Those of which it has had records lately: each partition gets some all the time."""
        begun = now_ms() - int(STEADY_SECONDS * 1000)
        return {place for place, at_ms in list(self.places) if at_ms > begun}

    @property
    def trouble(self) -> str:
        """The last word of one that has ended by itself; empty where it runs."""
        if self._example is None or self._example.alive():
            return ""
        return self._example.said[-1] if self._example.said else "it has ended"

    def join(self) -> None:
        """Let it become a member of the group."""
        self._example = self._begin()

    def end(self, kill: bool) -> int:
        """Kill it, or let it commit and leave; returns when that began."""
        at_ms = now_ms()
        if self._example is not None:
            if kill:
                self._example.kill()
            else:
                self._example.terminate()
            self._example.wait(ANSWER_SECONDS)
        return at_ms


def member_settings(settings: Settings) -> Dict[str, Any]:
    """What the example gets as librdkafka.json: as playbooks/client.yml writes it, but for a shorter session."""
    return {
        **settings,
        "session.timeout.ms": SESSION_SECONDS * 1000,
        "heartbeat.interval.ms": HEARTBEAT_SECONDS * 1000,
    }


def hand_over(
    connection: Connection,
    topic: str,
    assignment: Sequence[Sequence[int]],
    config: Dict[str, str],
    group: str,
    kill: bool,
    program: str,
    judge: Ask,
) -> Dict[str, Any]:
    """End one of two members, and let it come back; returns what was seen. AdminError where none reads.

    `program`: the text of examples/consumer.py.
    """
    settings = librdkafka_settings(connection)
    stays, leaves, returns = members = [
        Member(program, settings, topic, group) for _each in range(3)
    ]
    try:
        with own_topics(connection, {topic: assignment}, config):
            ticker = Ticker(settings, topic, len(assignment))
            try:
                stays.join()
                leaves.join()
                _shared(
                    stays, leaves, len(assignment), "two consumers did not share the partitions"
                )
                theirs = set(leaves.partitions)
                at_ms = leaves.end(kill)
                pause = wait_until(
                    lambda: handed_over_ms(theirs, stays.places, at_ms),
                    SESSION_SECONDS + ANSWER_SECONDS,
                )
                back_ms = now_ms()
                returns.join()
                _shared(stays, returns, len(assignment), "the consumer that returned got nothing")
                back = now_ms() - back_ms
            except BaseException:
                # a group with members cannot be removed
                for each in members:
                    each.end(kill=True)
                raise
            finally:
                ticker.stop()
            sent = ticker.sent_and_acknowledged

            def came() -> List[Tuple[str, int]]:
                return sorted((pair for each in members for pair in each.came), key=lambda p: p[1])

            wait_until(lambda: set(sent) <= {record for record, _at in came()}, ANSWER_SECONDS)
            for each in members:
                each.end(kill=False)
            return Seen(
                sent=len(ticker.sent),
                acknowledged=len(sent),
                refused=dict(ticker.refused),
                pause_ms=pause,
                measured={"at_ms": at_ms, "ended_ms": pause or 0},
                groups=groups_seen(settings, topic, len(assignment), sent, {group: came()}),
                notes=(f"shared again {back / 1000:.1f} s after its return",),
                timeline=per_bucket(ticker.acknowledged.values()),
                judged=judge([written(topic, ticker)]),
            ).to_dict()
    finally:
        for each in members:
            each.end(kill=True)


def _shared(one: Member, other: Member, partitions: int, otherwise: str) -> None:
    """Wait until the two have all partitions between them, and none has had one of the other's lately."""

    def so() -> bool:
        ones, others = one.partitions, other.partitions
        return bool(ones and others) and not ones & others and len(ones | others) == partitions

    if not wait_until(so, 2 * ANSWER_SECONDS):
        trouble = one.trouble or other.trouble
        raise failed("consumer group", f"{otherwise}: {trouble}" if trouble else otherwise)
