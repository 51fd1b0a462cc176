# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leadership as a Resource: what the runner needs to give partitions their leaders.

Private to this collection. The glue between `plan`, which decides, and `client.kafka`,
which does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Collection, Dict, Iterator, List, Optional, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.kafka import KafkaClient
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.client.log_dirs import (
    LogDirsClient,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.leaders.plan import (
    CONSENTS,
    ELECT,
    PREFERRED,
    UNCLEAN,
    Leaderless,
    as_permitted,
    plan_preferred,
    plan_unclean,
    preferred,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.model import (
    Key,
    Partition,
    Place,
    Snapshot,
    partition_name,
    partition_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource

# Somebody else has elected them since the plan.
_NOT_NEEDED = "ELECTION_NOT_NEEDED"


class PreferredLeaders(Resource):
    """The leaders of all topics, or of some, but of the partitions that are left alone."""

    def __init__(
        self, client: KafkaClient, topics: Optional[Collection[str]], leave: Collection[str] = ()
    ):
        self.client = client
        self._topics = topics
        self._leave = leave
        # Elections of somebody else, and the cluster as it was seen after ours.
        self._moot: List[Change] = []
        self._seen: Optional[Snapshot] = None

    def read(self) -> Snapshot:
        """All partitions, without settings: one request."""
        return self.client.fetch_metadata()

    def plan(self, snapshot: Snapshot) -> Plan:
        """The partitions that another broker leads than the preferred one."""
        plan = plan_preferred(snapshot, self._topics, self._leave)
        return as_permitted(plan, self.client.fetch_own_rights()) if plan else plan

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Elect, in batches."""
        failures = _elected(self.client, changes, deadline)
        self._moot = _moot(changes, failures)
        return failures

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """Partitions of which the leader has not moved yet, or has moved on, as any broker sees it.

        Brokers learn of it one after another: who asks next may ask one that knows of nothing yet. Where
        somebody else has changed the order of replicas since the plan, the one that is preferred now leads.
        """
        snapshot = self._seen = self.client.fetch_metadata()
        self.made = {
            change.subject: replace(change, after={"leader": leader})
            for change, leader in _preferred_anew(snapshot, changes)
        }
        found = _led_by_others(snapshot, self.as_made(changes))
        for broker, view in {} if found else self.client.fetch_every_view(snapshot).items():
            for subject, text in (
                _led_by_others(view, self.as_made(changes)).items() if view else ()
            ):
                found[subject] = f"broker {broker} still says: {text}"
        return found

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns beside the plan."""
        snapshot = self._seen or outcome.snapshot
        return _counted(snapshot, [*self._moot, *outcome.changed])


class UncleanLeaders(Resource):
    """The leaders of topics of which partitions have none."""

    def __init__(self, client: LogDirsClient, topics: Collection[str], allow: Collection[str]):
        self.client: LogDirsClient = client
        self._topics = topics
        self._allow = allow
        self._moot: List[Change] = []

    def read(self) -> Leaderless:
        """All partitions, and the bytes of the replicas that are left of those without a leader."""
        snapshot = self.client.fetch_metadata()
        lost: Dict[Key, Sequence[int]] = {
            (name, part.id): part.replicas
            for name in sorted(set(self._topics) & set(snapshot.topics))
            for part in snapshot.topics[name].partitions
            if part.leader is None
        }
        alive = [broker.id for broker in snapshot.brokers]
        asked = [broker for broker in alive if any(broker in each for each in lost.values())]
        sizes: Dict[Place, int] = {}
        if asked:
            names = sorted({name for name, _partition in lost})
            found = self.client.look_at_disks(asked, names).sizes
            sizes = {place: size for place, size in found.items() if place[1] in lost}
        return Leaderless(snapshot, sizes)

    def plan(self, snapshot: Leaderless) -> Plan:
        """The partitions without a leader, as far as there is consent."""
        plan = plan_unclean(snapshot, self._topics, self._allow)
        return as_permitted(plan, self.client.fetch_own_rights()) if plan else plan

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Elect, in batches."""
        failures = _elected(self.client, changes, deadline, unclean=True)
        self._moot = _moot(changes, failures)
        return failures

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """Partitions that have no leader yet, as any broker sees it. Who leads is the controller's choice."""
        snapshot = self.client.fetch_metadata()
        found: Dict[str, str] = {}
        for view in (snapshot, *self.client.fetch_every_view(snapshot).values()):
            led = {partition_name(*key) for key in view.led} if view else set()
            for change in changes if view else ():
                if change.subject not in led:
                    found[change.subject] = "without a leader"
        return found

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns beside the plan, with what the new leaders have."""
        made = [partition_of(change.subject) for change in outcome.changed]
        ends: Dict[Key, int] = {}
        try:
            # None in check mode, and of those that have no leader yet.
            led = self.client.fetch_metadata().led if made else frozenset()
            ends = self.client.fetch_both_ends(led.intersection(made), first=False)[1]
        except AdminError:
            pass  # the elections were made, and that is what counts
        return {
            **_counted(outcome.snapshot.cluster, [*self._moot, *outcome.changed]),
            "elected": [
                {"partition": partition_name(*key), "end_offset": ends.get(key)} for key in made
            ],
        }


def _elected(
    client: KafkaClient, changes: Sequence[Change], deadline: float, unclean: bool = False
) -> List[Failure]:
    """Elect the leaders of changes; those of which the cluster refused it, or which others have elected."""
    partitions = [partition_of(change.subject) for change in changes]
    failed = client.elect_leaders(partitions, deadline, unclean)
    return [
        Failure(partition_name(*key), text, ELECT, code, moot=code == _NOT_NEEDED)
        for key, (text, code) in sorted(failed.items())
    ]


def _moot(changes: Sequence[Change], failures: Sequence[Failure]) -> List[Change]:
    """The changes that somebody else has made."""
    moot = {failure.subject for failure in failures if failure.moot}
    return [change for change in changes if change.subject in moot]


def _by_subject(snapshot: Snapshot) -> Dict[str, Partition]:
    """All partitions, by the subjects of changes."""
    return {partition_name(*key): part for key, part in snapshot.partitions.items()}


def _counted(snapshot: Snapshot, elected: Sequence[Change]) -> Dict[str, Any]:
    """How many partitions there are, and with which leaders after these elections."""
    partitions = _by_subject(snapshot)
    leaders = {name: part.leader for name, part in partitions.items()}
    leaders.update(
        {change.subject: change.after["leader"] for change in elected if change.subject in leaders}
    )
    return {
        "cluster_id": snapshot.cluster_id,
        "partition_count": len(partitions),
        "not_preferred": sum(preferred(part) != leaders[name] for name, part in partitions.items()),
        "without_leader": sum(leader is None for leader in leaders.values()),
    }


def _preferred_anew(
    snapshot: Snapshot, changes: Sequence[Change]
) -> Iterator[Tuple[Change, Optional[int]]]:
    """Changes of partitions that are led by their preferred leader, which is not the one of the plan."""
    parts = _by_subject(snapshot)
    for change in changes:
        part = parts.get(change.subject)
        if part and part.leader == preferred(part) != change.after["leader"]:
            yield change, part.leader


def _led_by_others(snapshot: Snapshot, changes: Sequence[Change]) -> Dict[str, str]:
    """Partitions that another broker leads than they were to get, with words that name it."""
    leaders = {name: part.leader for name, part in _by_subject(snapshot).items()}
    return {
        change.subject: f"led by broker {leaders[change.subject]}"
        for change in changes
        if leaders.get(change.subject, change.after["leader"]) != change.after["leader"]
    }


# The module's own options; their documentation is in the module.
ELECTION_OPTIONS = dict(
    topics=dict(type="list", elements="str"),
    leave=dict(type="list", elements="str", default=[]),
    election=dict(type="str", choices=[PREFERRED, UNCLEAN], default=PREFERRED),
    allow=dict(type="list", elements="str", choices=list(CONSENTS), default=[]),
    operation_timeout=dict(type="float", default=60.0),
)
