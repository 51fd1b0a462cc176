# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machines of a cluster as a Resource: what the runner needs to make them, or to delete them.

Private to this collection. The glue between the plans, which decide, `client_ec2`, which does, and the
file of the private key.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import (
    AdminError,
    Change,
    Failure,
    Plan,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.runner import Outcome, Resource
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws import key_file
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.client_ec2 import Ec2Client
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import (
    CLUSTER_TAG,
    Instance,
    Machine,
    Order,
    Snapshot,
    to_result,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.plan_absent import (
    DELETE_GROUP,
    DELETE_KEY,
    DELETE_VOLUME,
    END_MACHINE,
    plan_absent,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.plan_present import (
    IMPORT_KEY,
    JOIN_GROUP,
    MAKE_GROUP,
    MAKE_KEY,
    MAKE_MACHINE,
    MEND_KEY,
    START,
    TAG,
    plan_present,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.rules import (
    CLOSE,
    OPEN,
    expanded,
    subject,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.waiting import wait_until

POLL_SECONDS = 2.0
# What others cannot do without: a failure of theirs ends the work.
NEEDED = (MAKE_KEY, MEND_KEY, IMPORT_KEY, MAKE_GROUP)


class Machines(Resource):
    """All that a cluster has in EC2, to be as ordered."""

    client: Ec2Client

    def __init__(self, client: Ec2Client, order: Order):
        self.client = client
        self.order = order
        self._seen = Snapshot()
        self._group = ""

    def read(self) -> Snapshot:
        """What is there: a constant number of requests, whatever the number of machines."""
        order, client = self.order, self.client
        subnets = client.fetch_subnets(order)
        network = subnets[0].network if subnets else None
        group = client.fetch_group(order, network)
        instances = client.fetch_instances(f"tag:{CLUSTER_TAG}", [order.cluster])
        mine = [each for each in order.machines if order.in_run(each.name)]
        kinds = {each.type for each in mine} | {each.type for each in instances if each.alive}
        self._group = group.id if group else ""
        self._seen = Snapshot(
            subnets=subnets,
            network_addresses=client.fetch_network_addresses(network) if network else (),
            instances=instances,
            strangers=_strangers(client, self._group, instances),
            volumes=client.fetch_volumes(order.cluster, instances),
            group=group,
            key_pair=client.fetch_key_pair(order.key_name) if order.key_name else None,
            key_file=key_file.look(order.key_file) if order.key_file else None,
            images=client.fetch_images(each.image for each in mine),
            types=client.fetch_types(kinds),
        )
        return self._seen

    def plan(self, snapshot: Snapshot) -> Plan:
        """What is missing, and what differs."""
        return plan_present(self.order, snapshot)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """Make the changes, one after the other."""
        rules = _rules_by_subject(self.order, self._seen)
        machines = {machine.name: machine for machine in self.order.machines}
        there = {each.name: each for each in self._seen.alive()}
        act: Dict[str, Callable[[Change], Any]] = {
            MAKE_KEY: lambda change: key_file.make(self.order.key_file, self.order.key_name),
            MEND_KEY: lambda change: key_file.mend(self.order.key_file),
            IMPORT_KEY: lambda change: self._import_key(),
            MAKE_GROUP: self._make_group,
            OPEN: lambda change: self.client.open_rule(
                self._group, self.order.cluster, rules[change.subject], change.after["for"]
            ),
            CLOSE: lambda change: self.client.close_rules(self._group, self._ids_of(change)),
            MAKE_MACHINE: lambda change: self._make_machine(machines[change.subject], change),
            TAG: lambda change: self.client.tag(there[change.subject].id, change.after),
            JOIN_GROUP: lambda change: self.client.set_groups(
                there[change.subject].id, [*there[change.subject].groups, self._group]
            ),
            START: lambda change: self.client.start_machine(there[change.subject].id),
        }
        return _in_turn(changes, act, NEEDED)

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """Machines that do not run yet."""
        wanted = {change.subject for change in changes if change.kind in (MAKE_MACHINE, START)}
        if not wanted:
            return {}
        instances = self.client.fetch_instances(f"tag:{CLUSTER_TAG}", [self.order.cluster])
        self._seen = _with_instances(self._seen, instances)
        states = {each.name: each.state for each in instances if each.alive}
        return {
            name: states.get(name, "not there")
            for name in sorted(wanted)
            if states.get(name) != "running"
        }

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns beside the plan."""
        seen: Snapshot = self._seen
        wanted = expanded(self.order.rules, seen.network_addresses)
        closed = {change.subject for change in outcome.changed if change.kind == CLOSE}
        rules = seen.group.rules if seen.group else ()
        ordered = {machine.name: machine for machine in self.order.machines}
        return {
            "machines": [
                dict(
                    to_result(each, seen.types.get(each.type)),
                    ordered=_ordered(ordered.get(each.name), seen),
                )
                for each in sorted(seen.alive(), key=lambda one: (one.name, one.id))
            ],
            "foreign_rules": sorted(
                each.rule.text()
                for each in rules
                if each.rule not in wanted and subject(each.rule) not in closed
            ),
            "region": self.client.region,
            "requests": self.client.requests,
        }

    def _import_key(self) -> None:
        """Hand EC2 the public half of the file, which exists by now."""
        try:
            public = key_file.public_half(self.order.key_file)
        except (OSError, ValueError) as error:
            reason, remedy = str(error), "name the file of a private key without a passphrase"
            path = self.order.key_file
            raise AdminError(
                Problem("aws.key_file", reason, remedy, (), "aws_key_file", path)
            ) from error
        self.client.import_key_pair(self.order, public)

    def _make_group(self, change: Change) -> None:
        self._group = self.client.create_group(self.order, change.after["network"])

    def _make_machine(self, machine: Machine, change: Change) -> None:
        image = self._seen.images[machine.image]
        self.client.create_machine(self.order, machine, change.after["subnet"], image, self._group)

    def _ids_of(self, change: Change) -> List[str]:
        rules = self._seen.group.rules if self._seen.group else ()
        return [each.id for each in rules if subject(each.rule) == change.subject]


class NoMachines(Machines):
    """All that carries the cluster's tag, to be gone."""

    def __init__(
        self,
        client: Ec2Client,
        order: Order,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
        super().__init__(client, order)
        self._clock, self._sleep = clock, sleep

    def read(self) -> Snapshot:
        """What carries the tag, and what hangs on it."""
        order, client = self.order, self.client
        instances = client.fetch_instances(f"tag:{CLUSTER_TAG}", [order.cluster])
        group = client.fetch_group(order, None)
        self._group = group.id if group else ""
        self._seen = Snapshot(
            instances=instances,
            strangers=_strangers(client, self._group, instances),
            volumes=client.fetch_volumes(order.cluster, instances),
            group=group,
            key_pair=client.fetch_key_pair(order.key_name) if order.key_name else None,
            renamed=client.fetch_renamed(order),
        )
        return self._seen

    def plan(self, snapshot: Snapshot) -> Plan:
        """What goes, by name."""
        return plan_absent(self.order, snapshot)

    def apply(self, changes: Sequence[Change], deadline: float) -> List[Failure]:
        """End the machines, wait until they have ended, then delete what they used."""
        there = {(each.name, each.id): each.id for each in self._seen.alive()}
        act: Dict[str, Callable[[Change], Any]] = {
            END_MACHINE: lambda change: self.client.end_machines(
                [there[change.subject, change.before["id"]]]
            )
        }
        ending = [change for change in changes if change.kind == END_MACHINE]
        failures = _in_turn(ending, act, ())
        if ending:
            wait_until(
                lambda: not self._alive(ending),
                deadline - self._clock(),
                self._clock,
                self._sleep,
                POLL_SECONDS,
            )
        act = {
            DELETE_VOLUME: lambda change: self.client.delete_volume(change.subject.split()[-1]),
            DELETE_GROUP: lambda change: self.client.delete_group(self._group),
            DELETE_KEY: lambda change: self.client.delete_key_pair(self.order.key_name),
        }
        rest = [change for change in changes if change.kind != END_MACHINE]
        return [*failures, *_in_turn(rest, act, ())]

    def unsettled(self, changes: Sequence[Change]) -> Dict[str, str]:
        """Machines that have not ended yet."""
        ending = [change for change in changes if change.kind == END_MACHINE]
        return {each.name: each.state for each in self._alive(ending)} if ending else {}

    def results(self, outcome: Outcome) -> Dict[str, Any]:
        """What the module returns beside the plan."""
        return {
            "machines": [
                dict(to_result(each, None), ordered=None)
                for each in sorted(self._seen.alive(), key=lambda one: (one.name, one.id))
            ],
            "foreign_rules": [],
            "region": self.client.region,
            "requests": self.client.requests,
        }

    def _alive(self, ending: Sequence[Change]) -> List[Instance]:
        ids = {change.before["id"] for change in ending}
        instances = self.client.fetch_instances(f"tag:{CLUSTER_TAG}", [self.order.cluster])
        self._seen = _with_instances(self._seen, instances)
        return [each for each in instances if each.id in ids and each.state != "terminated"]


# ---------------------------------------------------------------- what both need


def _strangers(
    client: Ec2Client, group: str, instances: Sequence[Instance]
) -> Tuple[Instance, ...]:
    """Machines in the security group that do not carry the cluster's tag."""
    ours = {each.id for each in instances}
    found = client.fetch_instances("instance.group-id", [group]) if group else ()
    return tuple(each for each in found if each.id not in ours)


def _with_instances(seen: Snapshot, instances: Tuple[Instance, ...]) -> Snapshot:
    return Snapshot(**{**seen.__dict__, "instances": instances})


def _rules_by_subject(order: Order, seen: Snapshot) -> Dict[str, Any]:
    wanted = expanded(order.rules, seen.network_addresses)
    return {subject(rule): rule for rule in wanted}


def _ordered(machine: Any, seen: Snapshot) -> Any:
    """What the machine has to show when it is reached; None for one that was not ordered."""
    if machine is None:
        return None
    kind = seen.types.get(machine.type)
    return {
        "cores": machine.cores or (kind.cores if kind else None),
        "memory_bytes": machine.memory_bytes or (kind.memory_bytes if kind else None),
        "volume_gib": [each.size_gib for each in (machine.root, *machine.volumes)],
    }


def _in_turn(
    changes: Sequence[Change],
    act: Mapping[str, Callable[[Change], Any]],
    needed: Sequence[str],
) -> List[Failure]:
    """Make each change; one that the others need ends the work when it fails."""
    failures: List[Failure] = []
    stopped = ""
    for change in changes:
        if stopped:
            failures.append(
                Failure(change.subject, f"not tried, because of {stopped}", change.kind)
            )
            continue
        try:
            act[change.kind](change)
        except AdminError as error:
            code = error.details.get("code", "")
            failures.append(Failure(change.subject, error.message, change.kind, code))
            stopped = change.subject if change.kind in needed else ""
        except OSError as error:
            failures.append(Failure(change.subject, str(error), change.kind))
            stopped = change.subject if change.kind in needed else ""
    return failures
