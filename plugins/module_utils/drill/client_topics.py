# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topics and groups of drills: made, grown and removed by the client of all modules, which asks every broker.

Private to this collection.
"""

from __future__ import annotations

import contextlib
from typing import Collection, Dict, Iterator, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.settled import (
    unsettled,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.connection import Connection
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.groups.client import (
    GroupsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.leaders.plan import (
    plan_preferred,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    CREATE,
    DELETE,
    GROW,
    partition_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import (
    PREFIX,
    SESSION_SECONDS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

ANSWER_SECONDS = 30.0
POLL_SECONDS = 0.5
# When a controller can make changes again, it makes in this time what it was asked for before.
LATE_SECONDS = 5.0
GROUPS_TOPIC = "__consumer_offsets"
ALREADY = "TOPIC_ALREADY_EXISTS"


def failed(what: str, why: str) -> AdminError:
    """The error that ends a drill before its verdict."""
    return AdminError(
        Problem("drill.failed", f"{what}: {why}", "see with playbooks/status.yml whether all runs")
    )


class DrillClient(GroupsClient):
    """One cluster, and what drills make in it. AdminError where something cannot be done in time."""

    def make(
        self, topic: str, assignment: Sequence[Sequence[int]], config: Mapping[str, str]
    ) -> None:
        """Make a topic with these replicas; returns when every broker knows it, in sync, led as preferred."""
        change = Change(
            CREATE,
            topic,
            after={
                "partitions": len(assignment),
                "replication_factor": None,
                "assignment": [list(each) for each in assignment],
                "config": dict(config),
            },
        )
        # one of this name may be being deleted: ZooKeeper forgets it last
        refused = wait_until(
            lambda: _last(self.apply([change], self._deadline())),
            ANSWER_SECONDS,
            poll_seconds=POLL_SECONDS,
        )
        if refused is not MADE:
            raise failed(f"topic {topic} could not be made", refused.error if refused else ALREADY)
        if not wait_until(lambda: self._led(topic, assignment), ANSWER_SECONDS):
            raise failed(f"topic {topic}", "its replicas are not in sync in time")
        self._settle(change, "not every broker knows it in time")

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions; returns when every broker knows them."""
        change = Change(GROW, topic, after={"partitions": partitions})
        for each in self.apply([change], self._deadline()):
            raise failed(f"topic {topic} could not be grown", each.error)
        self._settle(change, "not every broker knows its new partitions in time")

    def remove_topics(
        self, topics: Optional[Sequence[str]] = None, late_seconds: float = 0.0
    ) -> List[str]:
        """Remove these topics of drills with those named after them, or all; returns their names.

        It returns when no broker knows them. `late_seconds`: and none has appeared for so long. A topic that was
        asked for while the controller could make none is made when it can remove others again.
        """
        removed = self._remove_topics(topics)
        while late_seconds and wait_until(
            lambda: self._there(topics), late_seconds, poll_seconds=POLL_SECONDS
        ):
            removed += self._remove_topics(topics)
        return list(dict.fromkeys(removed))

    def _there(self, topics: Optional[Sequence[str]]) -> List[str]:
        return [name for name in self.fetch_metadata().topics if _ours(name, topics)]

    def _remove_topics(self, topics: Optional[Sequence[str]]) -> List[str]:
        there = self._there(topics)
        changes = [Change(DELETE, name) for name in there]
        for each in self.apply(changes, self._deadline()) if changes else ():
            if not each.moot:
                raise failed(f"topic {each.subject} could not be removed", each.error)
        if changes:
            wait_until(
                lambda: not unsettled(self, changes), ANSWER_SECONDS, poll_seconds=POLL_SECONDS
            )
        return there

    def remove_groups(self, topics: Optional[Sequence[str]] = None) -> List[str]:
        """Remove the groups of these topics, or of all drills; returns their names.

        A group can go when its last member is away: a killed one is there until its session ends.
        """
        gone: Dict[str, None] = {}

        def left() -> List[str]:
            return [each.name for each in self.fetch_groups(lambda name: _ours(name, topics))]

        def removed() -> bool:
            there = left()
            if there:
                refused = self.delete_groups(there)
                gone.update({name: None for name in there if name not in refused})
            return not there

        if not wait_until(removed, SESSION_SECONDS + ANSWER_SECONDS, poll_seconds=POLL_SECONDS):
            raise failed(f"groups {', '.join(left())}", "they could not be removed")
        return list(gone)

    def clean(self, topics: Optional[Sequence[str]] = None, late_seconds: float = 0.0) -> List[str]:
        """Remove drills' topics and groups: these topics with their groups, or all; returns their names."""
        return [*self.remove_topics(topics, late_seconds), *self.remove_groups(topics)]

    def any_there(self) -> bool:
        """Whether there is a topic of a drill."""
        return bool(self._there(None))

    def give_back(self, leave: Collection[str]) -> bool:
        """Have preferred leaders lead again, but of the partitions `leave`; whether all of them did already.

        Those that are not in sync yet cannot.
        """
        plan = plan_preferred(self.fetch_metadata(), leave=leave)
        if plan.changes:
            keys = [partition_of(each.subject) for each in plan.changes]
            self.elect_leaders(keys, self._deadline())
        return not plan.changes and not plan.warnings

    def coordinators(self, make: bool) -> Dict[int, Optional[int]]:
        """For each partition of the internal topic of groups the broker that leads it; empty if it is absent.

        `make`: it is made then, as for any group that asks who coordinates it.
        """

        def found() -> Dict[int, Optional[int]]:
            topic = self.fetch_metadata().topics.get(GROUPS_TOPIC)
            return {each.id: each.leader for each in topic.partitions} if topic else {}

        def led() -> bool:
            leaders = found()
            if not leaders:
                with contextlib.suppress(AdminError):
                    self.fetch_committed([PREFIX.rstrip("-")])
            return bool(leaders) and None not in leaders.values()

        if make:
            wait_until(led, ANSWER_SECONDS, poll_seconds=POLL_SECONDS)
        return found()

    def _deadline(self) -> float:
        return self._clock() + ANSWER_SECONDS

    def _led(self, topic: str, assignment: Sequence[Sequence[int]]) -> bool:
        found = self.fetch_metadata().topics.get(topic)
        return (
            found is not None
            and len(found.partitions) == len(assignment)
            and all(
                part.leader == replicas[0] and set(part.isr) == set(replicas)
                for part, replicas in zip(found.partitions, assignment)
            )
        )

    def _settle(self, change: Change, otherwise: str) -> None:
        if not wait_until(
            lambda: not unsettled(self, [change]), ANSWER_SECONDS, poll_seconds=POLL_SECONDS
        ):
            raise failed(f"topic {change.subject}", otherwise)


MADE = Failure("", "")


def _last(failures: Sequence[Failure]) -> Optional[Failure]:
    """MADE, or the failure; None while the name is still taken, so that it is asked again."""
    if not failures:
        return MADE
    return None if failures[0].code == ALREADY else failures[0]


def _ours(name: str, topics: Optional[Sequence[str]]) -> bool:
    return name.startswith(PREFIX) and (
        topics is None or any(name == each or name.startswith(f"{each}-") for each in topics)
    )


def drill_client(connection: Connection) -> DrillClient:
    """A connected DrillClient. AdminError tells unreachable from wrong credentials."""
    client = DrillClient(connection)
    client.connect()
    return client


@contextlib.contextmanager
def own_topics(
    connection: Connection,
    topics: Mapping[str, Sequence[Sequence[int]]],
    config: Mapping[str, str],
    late_seconds: float = 0.0,
) -> Iterator[DrillClient]:
    """Topics of a drill while the context is open; they and their groups are removed at the end.

    `late_seconds`: as of `remove_topics`. What ends the context is what is raised, also where nothing can be removed
    then.
    """
    client = drill_client(connection)
    try:
        for topic, assignment in topics.items():
            client.make(topic, assignment, config)
        yield client
    except BaseException:
        with contextlib.suppress(AdminError):
            client.clean(list(topics), late_seconds)
        raise
    client.clean(list(topics), late_seconds)
