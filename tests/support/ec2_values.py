# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An order of three machines, and an EC2 in memory that carries a plan out: for the tests of pure plans."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.model import (
    CLUSTER_TAG,
    HOST_TAG,
    Group,
    Image,
    Instance,
    KeyFile,
    KeyPair,
    Machine,
    MachineType,
    Order,
    Rule,
    SeenRule,
    SeenVolume,
    Snapshot,
    Subnet,
    Volume,
    own_tags,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.aws.rules import expanded, subject

GIB = 2**30
NETWORK = "vpc-1"
SUBNETS = tuple(Subnet(f"subnet-{z}", f"zone-{z}", NETWORK) for z in "abc")
IMAGE = Image("ami-1", "/dev/xvda", 8)
TYPES = {"medium": MachineType("medium", 2, 4 * GIB), "large": MachineType("large", 4, 16 * GIB)}
PUBLIC = "ssh-ed25519 AAAA"
FOREIGN = SeenRule("sgr-foreign", Rule("tcp", 3389, 3389, "0.0.0.0/0"), "rdp")
RULES = {
    Rule("tcp", 22, 22, "203.0.113.7/32"): "ssh",
    Rule("tcp", 9092, 9092, "network"): "listener CLIENTS",
    Rule("tcp", 9093, 9093, "members"): "listener INTERNAL",
}


def machine(name, **changes):
    """An ordered machine with a data volume."""
    wanted = Machine(
        name,
        "medium",
        "ami-1",
        Volume("", 20),
        (Volume("/dev/sdf", 100, keep=True),),
        ("kafka",),
        tags=(("owner", "me"),),
    )
    return replace(wanted, **changes)


def order(count=3, **changes):
    """An order of some machines."""
    wanted = Order(
        "orders",
        tuple(machine(f"kafka-{number + 1}") for number in range(count)),
        RULES,
        tuple(each.id for each in SUBNETS),
        "kafkaops-orders",
        "orders",
        "/keys/orders.pem",
    )
    return replace(wanted, **changes)


def nothing(**changes):
    """A region in which nothing is of the cluster."""
    seen = Snapshot(
        subnets=SUBNETS,
        network_addresses=("10.0.0.0/16", "fd00::/56"),
        key_file=KeyFile("/keys/orders.pem"),
        images={"ami-1": IMAGE},
        types=TYPES,
    )
    return replace(seen, **changes)


def made(wanted, one, subnet, number=1):
    """(instance, volumes) as EC2 would have them."""
    zone = next(each.zone for each in SUBNETS if each.id == subnet)
    name = f"i-{one.name}-{number}"
    tags = own_tags(wanted, one)
    volumes = tuple(
        SeenVolume(
            f"vol-{one.name}-{number}-{index}",
            each.size_gib,
            each.type,
            each.encrypted,
            each.iops,
            each.throughput,
            each.device or IMAGE.root_device,
            name,
            not each.keep,
            tags,
        )
        for index, each in enumerate((one.root, *one.volumes))
    )
    instance = Instance(
        name,
        "running",
        one.type,
        one.image,
        subnet,
        zone,
        wanted.key_name,
        IMAGE.root_device,
        ("sg-1",),
        tuple(each.id for each in volumes if each.ends_with_machine),
        f"10.0.0.{number}",
        "203.0.113.9" if one.public_address else "",
        "",
        tags,
    )
    return instance, volumes


def applied(wanted, seen, changes):
    """The snapshot after these changes of a plan for `wanted`."""
    rules = {subject(each): each for each in expanded(wanted.rules, seen.network_addresses)}
    for change in changes:
        if change.kind == "make_key":
            seen = replace(seen, key_file=KeyFile(wanted.key_file, True, 0o600, True, PUBLIC))
        elif change.kind == "mend_key":
            seen = replace(seen, key_file=replace(seen.key_file, mode=0o600))
        elif change.kind == "import_key":
            seen = replace(seen, key_pair=KeyPair(wanted.key_name, PUBLIC, _tag(wanted)))
        elif change.kind == "make_group":
            seen = replace(seen, group=Group("sg-1", change.after["network"], _tag(wanted)))
        elif change.kind == "open":
            rule = SeenRule(f"sgr-{change.subject}", rules[change.subject], "", True)
            seen = replace(seen, group=replace(seen.group, rules=(*seen.group.rules, rule)))
        elif change.kind == "close":
            kept = tuple(r for r in seen.group.rules if subject(r.rule) != change.subject)
            seen = replace(seen, group=replace(seen.group, rules=kept))
        elif change.kind == "make_machine":
            one = next(each for each in wanted.machines if each.name == change.subject)
            number = len(seen.instances) + 1
            instance, volumes = made(wanted, one, change.after["subnet"], number)
            instances = (*seen.instances, instance)
            seen = replace(seen, instances=instances, volumes=(*seen.volumes, *volumes))
        else:
            seen = _mended(seen, change)
    return seen


def _mended(seen, change):
    found = next(each for each in seen.alive() if each.name == change.subject)
    after = {
        "tag": lambda: replace(found, tags={**found.tags, **change.after}),
        "join_group": lambda: replace(found, groups=(*found.groups, "sg-1")),
        "start": lambda: replace(found, state="running"),
    }[change.kind]()
    rest = tuple(each for each in seen.instances if each.id != found.id)
    return replace(seen, instances=(*rest, after))


def _tag(wanted):
    return {CLUSTER_TAG: wanted.cluster}


def with_instance(seen, name, **changes):
    """The snapshot with one machine changed by somebody else."""
    instances = tuple(
        replace(each, **changes) if each.tags.get(HOST_TAG) == name else each
        for each in seen.instances
    )
    return replace(seen, instances=instances)
