# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The voters of a quorum as a Resource: what the runner needs to know to add and remove them.

Private to this collection. The glue between `plan`, which decides, and `client`, which does. One voter a
step: the next one begins when the leader tells the voters as they are to be.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.quorum import NO_LEADER, Quorum
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.voters.client import (
    VotersClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.voters.plan import (
    ADD,
    node_of,
    not_yet,
    parse_voters,
    plan_voters,
    votes,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    CONTROLLER_LISTENER,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import Progress
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

POLL_SECONDS = 0.25
# Between two lines about what is waited for.
TELL_SECONDS = 5.0
RUN_OVER = "quorum.run_over"


@dataclass(frozen=True)
class VotersSnapshot:
    """The quorum as its leader tells it."""

    cluster_id: Optional[str]
    quorum: Quorum


class Voters(Resource):
    """The voters of one task. `tell` gets a line now and then; `over` says why this run must not go on, "" if it may.

    A module can outlive its playbook. So `over` is asked before each change, and while one is waited for.
    """

    client: VotersClient

    def __init__(
        self,
        client: VotersClient,
        params: Mapping[str, Any],
        check_mode: bool = False,
        tell: Callable[[str], None] = lambda line: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        over: Callable[[], str] = lambda: "",
    ):
        self.client = client
        self._tell, self._over = tell, over
        self._leaving, self._replaced = params["leaving"], params["replaced"]
        self._listener = params["listener"]
        self._wanted, self._refusals = parse_voters(params["voters"], self._leaving, self._replaced)
        self._check_mode = check_mode
        self._clock, self._sleep = clock, sleep
        self._patience = params["operation_timeout"]
        self._cluster_id = ""

    def read(self) -> VotersSnapshot:
        """The quorum, once it has a leader: while one is elected, nobody can tell."""
        snapshot = wait_until(self._led, self._patience, self._clock, self._sleep, POLL_SECONDS)
        if snapshot is None:
            raise AdminError(
                Problem(
                    "cluster.read",
                    f"the quorum of controllers has had no leader for {self._patience:g} s",
                    "bring back a majority of its voters, playbooks/start.yml starts what is down",
                    (self.client.connection.bootstrap,),
                )
            )
        self._cluster_id = snapshot.cluster_id or ""
        return snapshot

    def _led(self) -> Optional[VotersSnapshot]:
        cluster_id, quorum = self.client.fetch_voters()
        return VotersSnapshot(cluster_id, quorum) if quorum.head else None

    def plan(self, snapshot: VotersSnapshot) -> Plan:
        """The plan, and what could not be read."""
        return plan_voters(
            snapshot.quorum,
            self._wanted,
            self._leaving,
            self._replaced,
            formatted=not self._check_mode,
        ).refusing(self._refusals)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Make one change after the other; where one fails, none that comes after it is tried."""
        for place, change in enumerate(changes):
            failure = self._make(change, deadline)
            if failure:
                left = "not tried, since a change before it failed"
                later = [Failure(each.subject, left, each.kind) for each in changes[place + 1 :]]
                return [failure, *later]
        return []

    def _make(self, change: Change, deadline: float) -> Optional[Failure]:
        """Wait until it may be made, make it, and see that it was."""
        progress = Progress(
            lambda line: self._tell(f"{change.subject}: {line}"), self._clock, TELL_SECONDS
        )
        why = self._until(
            lambda quorum: self._in_the_way(change, quorum), deadline, progress, self._stopped
        )
        if why:
            return Failure(change.subject, why, change.kind)
        node = node_of(change)
        if change.kind == ADD:
            (wanted,) = [each for each in self._wanted if each.id == node]
            where = (self._listener, wanted.host, wanted.port)
            error = self.client.add_voter(self._cluster_id, node, wanted.directory, where, deadline)
        else:
            directory = change.before["directory_id"]
            error = self.client.remove_voter(self._cluster_id, node, directory, deadline)
        # An answer may be lost of what was done, and what is done again is said to be there.
        why = self._until(
            lambda quorum: _undone(change, quorum), self._clock() if error else deadline, progress
        )
        if why:
            words, code = error or (why, "")
            return Failure(change.subject, words, change.kind, code)
        return None

    def _in_the_way(self, change: Change, quorum: Quorum) -> str:
        if not _undone(change, quorum):
            return ""
        return not_yet(change, quorum, self._wanted)

    def _stopped(self) -> str:
        """Why this run must change nothing more, with the id and the remedy of that; "" where it may."""
        why = self._over()
        return f"[{RUN_OVER}] {why}; run the task again to go on" if why else ""

    def _until(
        self,
        unmet: Callable[[Quorum], str],
        deadline: float,
        progress: Progress,
        stopped: Callable[[], str] = lambda: "",
    ) -> str:
        """Look until nothing is unmet; at the deadline what still is, in words. Or why it is `stopped`."""
        words = over = ""

        def met() -> bool:
            nonlocal words, over
            over = stopped()
            if over:
                return True
            try:
                _cluster_id, quorum = self.client.fetch_voters()
            except AdminError as error:
                words = error.problem.reason
            else:
                words = unmet(quorum) if quorum.head else NO_LEADER
            if words:
                progress.tell(words)
                return False
            # The leader's answer can take long.
            over = stopped()
            return True

        wait_until(met, deadline - self._clock(), self._clock, self._sleep, POLL_SECONDS)
        return over or words

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """Nothing: each change was seen before the next one."""
        return {}

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """The voters as they are now, or would be."""
        quorum = outcome.snapshot.quorum
        after: Dict[int, str] = {each.id: each.directory for each in quorum.voters}
        for change in outcome.changed:
            if change.kind == ADD:
                after[node_of(change)] = change.after["directory_id"]
            else:
                after.pop(node_of(change), None)
        return {
            "cluster_id": outcome.snapshot.cluster_id,
            "before": sorted(each.id for each in quorum.voters),
            "voters": [{"id": each, "directory_id": after[each]} for each in sorted(after)],
        }


def _undone(change: Change, quorum: Quorum) -> str:
    """In words, that a change is not made; "" if it is."""
    node = node_of(change)
    if change.kind == ADD:
        done = votes(quorum, node, change.after["directory_id"])
        return "" if done else "the leader does not name it as a voter"
    done = not votes(quorum, node, change.before["directory_id"])
    return "" if done else "the leader still names it as a voter"


# The module's own options; their documentation is in the module.
VOTER_OPTIONS = dict(
    voters=dict(
        type="list",
        elements="dict",
        required=True,
        options=dict(
            id=dict(type="int", required=True),
            directory_id=dict(type="str", default=""),
            host=dict(type="str", default=""),
            port=dict(type="int", default=0),
        ),
    ),
    leaving=dict(type="list", elements="int", default=[]),
    replaced=dict(type="list", elements="int", default=[]),
    listener=dict(type="str", default=CONTROLLER_LISTENER),
    operation_timeout=dict(type="float", default=120.0),
    progress=dict(type="path"),
)
