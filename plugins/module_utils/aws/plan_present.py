# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is there to what was ordered: the key pair, the security group, the machines. Pure.

Private to this collection. A machine that exists is never replaced, stopped or shrunk: where it is
not what was ordered, the run is refused, and says what differs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.plan import Change, Plan
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import (
    CLUSTER_TAG,
    KEY_MODES,
    Image,
    Instance,
    Machine,
    MachineType,
    Order,
    SeenVolume,
    Snapshot,
    Volume,
    own_tags,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.placement import place
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.rules import (
    expanded,
    plan_rules,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem
from ansible_collections.kafkaops.cluster.plugins.module_utils.units import approximate_size

MAKE_KEY, MEND_KEY, IMPORT_KEY = "make_key", "mend_key", "import_key"
MAKE_GROUP = "make_group"
MAKE_MACHINE, START, TAG, JOIN_GROUP = "make_machine", "start", "tag", "join_group"
FOREIGN_RULES = "foreign_rules"
CONSENTS = (FOREIGN_RULES,)


def plan_present(order: Order, seen: Snapshot) -> Plan:
    """The changes in the order in which they are made, the refusals, and what is only told."""
    key_changes, key_refusals = _key(order, seen)
    group_changes, group_refusals, group_warnings = _group(order, seen)
    changes: List[Change] = [*key_changes, *group_changes]
    refusals = [*_ordered(order, seen), *key_refusals, *group_refusals, *_identities(order, seen)]
    warnings = [*group_warnings, *_leftovers(order, seen)]
    warnings += [f"{each.subject}: {each.note}" for each in key_changes if each.kind == MEND_KEY]
    places = place(order.machines, seen.alive(), _choice(order, seen))
    there = {each.name: each for each in seen.alive()}
    for machine in order.machines:
        if not order.in_run(machine.name):
            continue
        instance = there.get(machine.name)
        if instance is None:
            changes.append(_made(machine, places.get(machine.name, ""), seen))
            continue
        changes += _mended(order, machine, instance, seen)
        refusals += _differences(order, machine, instance, seen)
        warnings += _told(machine, instance, seen)
    return Plan(tuple(changes), tuple(refusals), tuple(warnings))


def _choice(order: Order, seen: Snapshot) -> Any:
    """The subnets among which the placement chooses, in the order's sequence."""
    if not order.subnets:
        explicit = {machine.subnet for machine in order.machines if machine.subnet}
        return [each for each in seen.subnets if each.id not in explicit] or seen.subnets
    rank = {each: index for index, each in enumerate(order.subnets)}
    return sorted((s for s in seen.subnets if s.id in rank), key=lambda each: rank[each.id])


# ---------------------------------------------------------------- the order itself


def _ordered(order: Order, seen: Snapshot) -> Iterator[Problem]:
    """What the order names and EC2 does not have, or has in another size."""
    mine = [machine for machine in order.machines if order.in_run(machine.name)]
    for image in sorted({each.image for each in mine} - set(seen.images)):
        names = tuple(each.name for each in mine if each.image == image)
        reason = "there is no such image in this region for these credentials"
        remedy = "set it to the id of an image of this region; ids differ from region to region"
        yield Problem("aws.no_image", reason, remedy, names, "aws_image", image or "''")
    for kind in sorted({each.type for each in mine} - set(seen.types)):
        names = tuple(each.name for each in mine if each.type == kind)
        reason = "there is no such type of machine in this region"
        remedy = "set it to a type that the region has, such as m7i.large"
        yield Problem("aws.no_type", reason, remedy, names, "aws_type", kind or "''")
    yield from _subnets(order, seen)
    for machine in mine:
        yield from _too_small(machine, seen.types.get(machine.type), seen.images.get(machine.image))


def _subnets(order: Order, seen: Snapshot) -> Iterator[Problem]:
    named = {*order.subnets, *(each.subnet for each in order.machines if each.subnet)}
    known = {each.id for each in seen.subnets}
    missing = sorted(named - known)
    remedy = "set aws_subnets to ids of subnets of this region"
    if missing:
        reason = "there is no such subnet"
        yield Problem("aws.no_subnet", reason, remedy, (), "aws_subnets", ", ".join(missing))
    elif not known:
        reason = "the region has no default subnet, and the inventory names none"
        yield Problem("aws.no_subnet", reason, remedy, (), "aws_subnets", "[]")
    networks = sorted({each.network for each in seen.subnets})
    if len(networks) > 1:
        reason = f"the subnets are in {len(networks)} networks: {', '.join(networks)}"
        remedy = "name subnets of one network; one security group protects all machines"
        yield Problem("aws.no_subnet", reason, remedy, (), "aws_subnets", ", ".join(sorted(named)))


def _too_small(
    machine: Machine, kind: Optional[MachineType], image: Optional[Image]
) -> Iterator[Problem]:
    if kind:
        remedy = "choose a larger type, or order less"
        if machine.cores and kind.cores < machine.cores:
            reason = f"{kind.name} has {kind.cores} cores"
            yield Problem(
                "aws.too_small",
                reason,
                remedy,
                (machine.name,),
                "aws_cores",
                str(machine.cores),
            )
        if machine.memory_bytes and kind.memory_bytes < machine.memory_bytes:
            reason = f"{kind.name} has {approximate_size(kind.memory_bytes)} of memory"
            wanted = approximate_size(machine.memory_bytes)
            yield Problem("aws.too_small", reason, remedy, (machine.name,), "aws_memory", wanted)
    if image and machine.root.size_gib < image.least_gib:
        reason = f"the image {image.id} needs {image.least_gib} GiB"
        remedy = "order at least as much"
        size = f"{machine.root.size_gib}GiB"
        yield Problem(
            "aws.too_small", reason, remedy, (machine.name,), "aws_root_volume.size", size
        )


def _identities(order: Order, seen: Snapshot) -> Iterator[Problem]:
    """Machines of which it is not clear which one they are: another one must not be made."""
    names = Counter(each.name for each in seen.alive())
    for name in sorted(name for name, count in names.items() if count > 1):
        ids = ", ".join(sorted(each.id for each in seen.alive() if each.name == name))
        yield Problem(
            "aws.duplicate_machine",
            f"several machines carry this name and cluster {order.cluster}: {ids}",
            "end the one that holds no data, or give it another value of the tag kafkaops:host",
            (name,),
        )
    ordered = {machine.name for machine in order.machines}
    for each in seen.strangers:
        if each.alive and each.name in ordered and each.name not in names:
            yield Problem(
                "aws.untagged",
                f"{each.id} has this name and the cluster's security group, but not its tag {CLUSTER_TAG}",
                f"give it the tag {CLUSTER_TAG}={order.cluster} again, or take it out of the group",
                (each.name,),
            )


def _leftovers(order: Order, seen: Snapshot) -> Iterator[str]:
    """Machines that cost money, and that the inventory does not name; and strangers in the group."""
    ordered = {machine.name for machine in order.machines}
    for each in seen.alive():
        if each.name not in ordered:
            yield (
                f"{each.name} ({each.id}, {each.type}) belongs to cluster {order.cluster}, but the inventory does "
                "not name it: it was left as it is"
            )
    for each in seen.strangers:
        if each.alive and each.name not in ordered:
            yield f"{each.id} uses the security group of the cluster, but is none of its machines"


# ---------------------------------------------------------------- key pair and security group


def _key(order: Order, seen: Snapshot) -> Tuple[List[Change], List[Problem]]:
    """The key's file and its pair in EC2; the private half never leaves this machine."""
    changes: List[Change] = []
    refusals: List[Problem] = []
    file, pair = seen.key_file, seen.key_pair
    subject = f"key file {order.key_file}"
    if file is None:
        if order.key_name and pair is None:
            reason, remedy = (
                "there is no such key pair",
                "name one that is there, or set aws_key_file",
            )
            refusals.append(
                Problem("aws.no_key", reason, remedy, (), "aws_key_name", order.key_name)
            )
        return changes, refusals
    if not file.exists and pair is not None:
        refusals.append(
            Problem(
                "aws.no_key",
                f"key pair {order.key_name} exists, but not the file of its private key",
                "put the private key there, or name another pair in aws_key_name",
                (),
                "aws_key_file",
                order.key_file,
            )
        )
    elif not file.exists:
        changes.append(Change(MAKE_KEY, subject, {}, {"mode": "0600", "type": "ed25519"}))
    elif file.mode not in KEY_MODES and not file.ours:
        reason = f"its mode is {file.mode:04o}, and it belongs to another account"
        remedy = f"let its owner run: chmod 600 {order.key_file}"
        refusals.append(Problem("aws.key_file", reason, remedy, (), "aws_key_file", order.key_file))
    elif file.mode not in KEY_MODES:
        changes.append(
            Change(
                MEND_KEY,
                subject,
                {"mode": f"{file.mode:04o}"},
                {"mode": "0600"},
                f"its mode was {file.mode:04o}, so that others could read the private key; it becomes 0600. If "
                "anybody may have read it, make a new key",
            )
        )
    if file.exists and file.fault:
        refusals.append(
            Problem(
                "aws.key_file",
                f"no private key can be read from it: {file.fault}",
                "name the file of a private key without a passphrase, or none, and load the key into ssh-agent",
                (),
                "aws_key_file",
                order.key_file,
            )
        )
    elif file.exists and pair is not None and pair.public.split()[:2] != file.public.split()[:2]:
        refusals.append(
            Problem(
                "aws.key_differs",
                f"key pair {order.key_name} of EC2 is not the key of {order.key_file}",
                "name the file that belongs to the pair, or another pair in aws_key_name",
                (),
                "aws_key_name",
                order.key_name,
            )
        )
    if pair is None:
        changes.append(Change(IMPORT_KEY, f"key pair {order.key_name}", {}, {"of": order.key_file}))
    return changes, refusals


def _group(order: Order, seen: Snapshot) -> Tuple[List[Change], List[Problem], List[str]]:
    group = seen.group
    changes: List[Change] = []
    refusals: List[Problem] = []
    if group is None:
        network = seen.subnets[0].network if seen.subnets else ""
        changes.append(
            Change(MAKE_GROUP, f"security group {order.group_name}", {}, {"network": network})
        )
    elif group.tags.get(CLUSTER_TAG) != order.cluster:
        refusals.append(
            Problem(
                "aws.group_foreign",
                f"{group.id} has this name, and does not carry the tag {CLUSTER_TAG}={order.cluster}",
                "set another name, or give the group the tag if it is the cluster's",
                (),
                "aws_security_group",
                order.group_name,
            )
        )
        return changes, refusals, []
    elif seen.subnets and group.network not in {each.network for each in seen.subnets}:
        refusals.append(
            Problem(
                "aws.no_subnet",
                f"the cluster's security group is in network {group.network}, the subnets in {seen.subnets[0].network}",
                "name subnets of the network in which the cluster is",
                (),
                "aws_subnets",
                ", ".join(order.subnets),
            )
        )
    wanted = expanded(order.rules, seen.network_addresses)
    rules, foreign = plan_rules(wanted, group, FOREIGN_RULES in order.allow)
    warnings = [
        f"security group {order.group_name} has a rule that the inventory does not state: {each.rule.text()}"
        f"{f' ({each.description})' if each.description else ''}; it stays. State it in aws_rules, or close it with "
        f"aws_allow: [{FOREIGN_RULES}]"
        for each in foreign
    ]
    return [*changes, *rules], refusals, warnings


# ---------------------------------------------------------------- one machine


def _made(machine: Machine, subnet: str, seen: Snapshot) -> Change:
    zone = next((each.zone for each in seen.subnets if each.id == subnet), None)
    after: Dict[str, Any] = {
        "type": machine.type,
        "image": machine.image,
        "subnet": subnet,
        "zone": zone,
        "public_address": machine.public_address,
        "groups": " ".join(machine.groups),
    }
    for volume in (machine.root, *machine.volumes):
        after[f"volume {volume.label}"] = volume.text()
    if machine.tags:
        after["tags"] = dict(machine.tags)
    left = [
        each.text()
        for each in seen.volumes
        if not each.machine and each.tags.get("kafkaops:host") == machine.name
    ]
    note = f"of a former machine there is still {', '.join(left)}; the new one has new volumes"
    return Change(MAKE_MACHINE, machine.name, {}, after, note if left else "")


def _mended(order: Order, machine: Machine, instance: Instance, seen: Snapshot) -> Iterator[Change]:
    """What can be put right on a machine without stopping it."""
    wanted = own_tags(order, machine)
    changed = {key: value for key, value in wanted.items() if instance.tags.get(key) != value}
    if changed:
        before = {key: instance.tags.get(key) for key in changed}
        yield Change(TAG, machine.name, before, changed)
    if seen.group and seen.group.id not in instance.groups:
        before = {"security groups": ", ".join(instance.groups) or None}
        after = {"security groups": ", ".join([*instance.groups, seen.group.id])}
        yield Change(JOIN_GROUP, machine.name, before, after, "it was out of the cluster's group")
    if instance.state == "stopped":
        yield Change(START, machine.name, {"state": "stopped"}, {"state": "running"})


def _differences(
    order: Order, machine: Machine, instance: Instance, seen: Snapshot
) -> Iterator[Problem]:
    """What cannot be put right without stopping the machine, or at all."""

    def differs(setting: str, wanted: str, has: str) -> Problem:
        return Problem(
            "aws.differs",
            f"machine {instance.id} has {has}",
            "order what is there, or replace the machine: aws_teardown.yml with --limit, then aws_provision.yml",
            (machine.name,),
            setting,
            wanted,
        )

    if instance.type != machine.type:
        yield differs("aws_type", machine.type, f"type {instance.type}")
    if machine.subnet and instance.subnet != machine.subnet:
        yield differs("aws_subnet", machine.subnet, f"subnet {instance.subnet}")
    if order.key_name and instance.key_name != order.key_name:
        yield differs("aws_key_name", order.key_name, f"key pair {instance.key_name or 'none'}")
    public = bool(instance.public_address)
    if instance.state == "running" and public != machine.public_address:
        has = f"the public address {instance.public_address}" if public else "no public address"
        yield differs("aws_public_address", str(machine.public_address).lower(), has)
    there = {each.device: each for each in seen.volumes_of(instance)}
    for volume in (machine.root, *machine.volumes):
        device = volume.device or instance.root_device
        found = there.get(device)
        has = _volume_difference(volume, found, device)
        if has:
            setting = "aws_volumes" if volume.device else "aws_root_volume"
            yield differs(setting, f"{device} {volume.text()}", has)


def _volume_difference(volume: Volume, found: Optional[SeenVolume], device: str) -> str:
    """What another volume there is, in words; empty where it is the ordered one."""
    if found is None:
        return f"no volume at {device}"
    same = found.size_gib == volume.size_gib and found.type == volume.type
    for name in ("iops", "throughput"):
        wanted = getattr(volume, name)
        if wanted and getattr(found, name) != wanted:
            return f"{found.text()} with {name} {getattr(found, name)} instead of {wanted}"
    if volume.encrypted and not found.encrypted:
        return f"{found.text()}, which is not encrypted"
    return "" if same else found.text()


def _told(machine: Machine, instance: Instance, seen: Snapshot) -> Iterator[str]:
    """What is another than ordered, and neither harms nor can be put right."""
    if instance.image != machine.image:
        yield (
            f"{machine.name} was made from image {instance.image}; {machine.image} counts for new machines only"
        )
    if instance.state == "stopping":
        yield f"{machine.name} is stopping: run it again, it will be started then"
    ordered = {each.device for each in machine.volumes} | {instance.root_device}
    extra = [each.text() for each in seen.volumes_of(instance) if each.device not in ordered]
    if extra:
        yield f"{machine.name} has volumes that were not ordered: {', '.join(extra)}"
    others = sorted(set(instance.groups) - ({seen.group.id} if seen.group else set()))
    if others:
        yield f"{machine.name} is in other security groups, too, whose rules add to ours: {', '.join(others)}"
