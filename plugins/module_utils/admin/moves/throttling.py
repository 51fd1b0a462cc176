# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The throttles of one run: set before replicas move, taken away at the end, seen to be gone.

Private to this collection. What is whose is decided in `throttles`.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Collection, Dict, List, Mapping, Sequence, Set, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import Key
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.moving import (
    KNOWN_SECONDS,
    LIFT_POLL_SECONDS,
    SETTLE_SECONDS,
    lift,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.moves.throttles import (
    Removals,
    Throttles,
    additions,
    before,
    broker_name,
    lacking,
    missing,
    removals,
    topic_name,
    unseen,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import AdminError
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until


class Throttling:
    """Sets and removes, for one run. `begun_since`: topics in which somebody has begun to move since the plan."""

    def __init__(
        self,
        client: Any,
        begun_since: Callable[[], Collection[str]],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ):
        self._client, self._begun_since = client, begun_since
        self._clock, self._sleep = clock, sleep
        # What was there and goes with the moves that are taken over; what this run has set; what brings back what
        # was there before; what was left to somebody else at the end.
        self.taken = Throttles()
        self._set = Throttles()
        self._own: Removals = ({}, {})
        self._left: Removals = ({}, {})
        # Subjects that brokers have told to be throttled since, and those that they have not told in time.
        self._told: Set[str] = set()
        self._untold: Set[str] = set()

    def on(
        self,
        found: Throttles,
        rate: int,
        brokers: Sequence[int],
        lists: Mapping[str, Mapping[str, str]],
    ) -> None:
        """Throttle what moves, before it moves. What a killed run has left is overwritten.

        Where one of them is refused, what was there before is brought back, and the AdminError goes on.
        """
        self._set = additions(found, self.taken, rate, brokers, lists)
        new = missing(found, self._set)
        self._own = before(found, self.taken, new)
        try:
            self._client.set_throttles(new.brokers, new.topics)
        except AdminError:
            own, self._own = self._own, ({}, {})
            for brokers_now, topics_now in ((own[0], {}), ({}, own[1])):
                with contextlib.suppress(AdminError):
                    self._client.set_throttles(brokers_now, topics_now)
            raise

    def gone(
        self, alive: Collection[int], moves: Mapping[Key, Tuple[Sequence[int], Sequence[int]]]
    ) -> List[str]:
        """Brokers and topics whose throttle has been taken away since, of what these moves need; sorted.

        `moves`: partitions with (who may send, who receives). A throttle that brokers have not told yet is no such
        one; it is waited for a little.
        """
        concerned = {broker for sides in moves.values() for side in sides for broker in side}
        brokers = sorted(concerned & set(alive) & set(self._set.brokers))
        topics = sorted({topic for topic, _partition in moves})
        wanted = {*map(broker_name, brokers), *map(topic_name, topics)}
        missed: Set[str] = set()

        def look() -> Set[str]:
            nonlocal missed
            throttles, silent = self._client.look_at_throttles(brokers, topics)
            missed = lacking(throttles, brokers, moves) - silent
            self._told |= wanted - missed - silent
            return missed

        def wait(told: Callable[[], bool], seconds: float) -> None:
            wait_until(told, seconds, self._clock, self._sleep, LIFT_POLL_SECONDS)

        wait(lambda: look() <= self._untold, KNOWN_SECONDS)
        self._untold |= missed - self._told
        if missed & self._told:
            # Not every broker tells the same at once.
            wait(lambda: not look() & self._told, SETTLE_SECONDS)
        return sorted(missed & self._told)

    def off(self, names: Sequence[str]) -> None:
        """Remove every throttle of ours from the live brokers and these topics, and see that it is gone."""
        alive = [broker.id for broker in self._client.fetch_metadata().brokers]
        own, self._own = self._own, ({}, {})
        first: Removals = ({}, {})
        # Unseen, what brokers do not tell yet may be of one who has begun since: then only what is seen goes.
        if any(own) and not self._begun_since():
            # A broker that is gone cannot be told; the next run finds what it still has.
            own = {broker: keys for broker, keys in own[0].items() if broker in alive}, own[1]
            first = unseen(own, self._client.fetch_throttles(alive, names))
        lift(
            first,
            lambda: self._ours(self._client.fetch_throttles(alive, names)),
            lambda limits: self._client.set_throttles(*limits),
            lambda limits: (
                "throttles could not be removed: "
                + ", ".join([*(f"broker {broker}" for broker in limits[0]), *limits[1]][:10])
            ),
            self._clock,
            self._sleep,
        )

    def left_to_others(self) -> Set[str]:
        """The subjects of throttles that were to be removed, and hold for what somebody has begun since."""
        brokers, topics = self._left
        return {
            *map(broker_name, brokers),
            *map(topic_name, topics),
        }

    def _ours(self, throttles: Throttles) -> Removals:
        """What removes throttles of ours; what somebody has begun since goes on under his.

        Another run of this collection marks its throttles, too. So all stay then but those that this run has set.
        """
        brokers, topics = removals(throttles, self.taken)
        self._left = ({}, {})
        # Looked at after the throttles, since everybody sets them before he begins.
        begun = self._begun_since() if brokers or topics else ()
        if begun:
            rates, lists = self._set.brokers, self._set.topics
            left_brokers: Dict[int, Any] = {
                each: keys
                for each, keys in brokers.items()
                if not _as_set(rates.get(each, {}), throttles.brokers[each], keys)
            }
            left_topics: Dict[str, Any] = {
                each: keys
                for each, keys in topics.items()
                if each in begun and not _as_set(lists.get(each, {}), throttles.topics[each], keys)
            }
            self._left = (left_brokers, left_topics)
        left = self._left
        return (
            {each: keys for each, keys in brokers.items() if each not in left[0]},
            {each: keys for each, keys in topics.items() if each not in left[1]},
        )


def _as_set(ours: Mapping[str, str], now: Mapping[str, str], keys: Collection[str]) -> bool:
    """Whether this run has set these keys to what they are now."""
    return all(ours.get(key) == now.get(key) for key in keys)
